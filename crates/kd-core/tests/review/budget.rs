//! Tests limits: reviews leave enough for votes, and a notice names the parts that were left out.

use crate::room::{Ran, Reply, finding, findings, kind, labels, review, run, votes};
use kd_core::review::{OpenReview, Reported};
use kd_core::spending::{Ceiling, Price};
use kd_core::{Request, SeatName};
use std::collections::BTreeMap;

const MEMBERS: [&str; 3] = ["ann", "bob", "cyd"];
const LINES: [&str; 3] = [
    "    for i in 0..=items.len() {",
    "        sum += items[i].price;",
    "    total(items) / items.len() as u32",
];
const CLAIMS: [&str; 3] = [
    "The loop runs one past the end",
    "The addition wraps around",
    "An empty list divides by zero",
];

/// Every member finds something else, and all findings are real.
fn each_its_own(name: &str, request: &Request) -> Reply {
    let at = MEMBERS.iter().position(|n| *n == name).expect("a member");
    Reply::Text(match kind(request) {
        "findings" => findings(&[finding("src/sum.rs", 1, LINES[at], CLAIMS[at])]),
        _ => votes(request, |_| "real"),
    })
}

fn limited(members: &[&str], ceiling: Ceiling) -> OpenReview {
    let mut open = review(members);
    let name = |name: &&str| SeatName::new(*name).expect("a name");
    open.judged = true;
    open.ceiling = ceiling;
    let price = Price::per_million(1.0, 5.0);
    open.prices = members.iter().map(|n| (name(n), price)).collect();
    open
}

fn calls(most: u64) -> Ceiling {
    Ceiling {
        calls: Some(most),
        ..Ceiling::default()
    }
}

fn tokens(most: u64) -> Ceiling {
    Ceiling {
        tokens: Some(most),
        ..Ceiling::default()
    }
}

fn asked(ran: &Ran, what: &str) -> usize {
    ran.asked.iter().filter(|r| kind(r) == what).count()
}

/// Returns the number before `would do`.
fn would_do(shortage: &str) -> f64 {
    let (before, _) = shortage.split_once(" would do").expect("the least");
    let word = before.rsplit(' ').next().expect("a number");
    word.trim_start_matches('$').parse().expect("a number")
}

#[test]
fn limits_that_are_too_low_for_votes_are_told_with_what_would_do() {
    for (ceiling, said) in [
        (
            calls(5),
            "the limit of 5 calls is too low for votes: 6 would do",
        ),
        (
            calls(2),
            "the limit of 2 calls is too low for reviews by all members and their votes: 6 would do",
        ),
        (tokens(9000), "the limit of 9000 tokens is too low for "),
        (
            Ceiling {
                micro_usd: Some(10_000),
                ..Ceiling::default()
            },
            "the limit of $0.01 is too low for ",
        ),
    ] {
        let told = limited(&MEMBERS, ceiling).shortage().expect(said);
        assert!(told.starts_with(said), "{told}");
        let least = would_do(&told);
        let (mut enough, mut less) = (ceiling, ceiling);
        for (limits, least) in [(&mut enough, least), (&mut less, least * 0.99)] {
            limits.calls = limits.calls.map(|_| least as u64);
            limits.tokens = limits.tokens.map(|_| least as u64);
            limits.micro_usd = limits.micro_usd.map(|_| (least * 1e6) as u64);
        }
        assert_eq!(limited(&MEMBERS, enough).shortage(), None, "{told}");
        assert!(limited(&MEMBERS, less).shortage().is_some(), "{told}");
    }
    assert_eq!(limited(&MEMBERS, Ceiling::default()).shortage(), None);
    // A single member has nobody to vote.
    assert_eq!(limited(&MEMBERS[..1], calls(1)).shortage(), None);
    let none = limited(&MEMBERS[..1], calls(0)).shortage();
    let said = "the limit of 0 calls is too low for a review of the whole change: 1 would do";
    assert_eq!(none.as_deref(), Some(said));
}

#[test]
fn no_limit_that_is_high_enough_costs_a_vote() {
    let of = |ceiling| limited(&MEMBERS, ceiling);
    let least = would_do(&of(tokens(1)).shortage().expect("told")) as u64;
    for ceiling in [
        calls(6),
        calls(7),
        calls(30),
        tokens(least),
        tokens(least * 3),
    ] {
        let ran = run(of(ceiling), each_its_own);
        assert_eq!(ran.report.findings.len(), 3, "{ceiling:?}");
        for reported in &ran.report.findings {
            assert_eq!(reported.votes.len(), 2, "{ceiling:?} {reported:?}");
        }
        assert_eq!(ran.report.notices, [""; 0], "{ceiling:?}");
    }
}

#[test]
fn what_a_low_limit_leaves_out_is_in_the_report() {
    let ran = run(limited(&MEMBERS, calls(4)), each_its_own);
    assert_eq!((asked(&ran, "findings"), asked(&ran, "votes")), (3, 1));
    let told = ran.report.notices.join("\n");
    for part in [
        "bob did not vote on any finding: the limit is reached",
        "cyd did not vote on any finding: the limit is reached",
        "the limit of 4 calls is too low for votes: 6 would do",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(!told.contains("ann did not"), "{told}");
}

#[test]
fn a_second_request_never_takes_the_votes_of_others() {
    for (most, first, repaired) in [(6, "bob", true), (6, "ann", true), (9, "cyd", true)] {
        let mut tries = BTreeMap::new();
        let ran = run(limited(&MEMBERS, calls(most)), |name, request| {
            let tried = tries.entry((kind(request), name.to_owned())).or_insert(0);
            *tried += 1;
            match (kind(request), *tried) {
                ("findings", 1) if name == first => Reply::Text("Hm.".into()),
                _ => each_its_own(name, request),
            }
        });
        let failed = ran.report.members.iter().filter(|m| m.failed.is_some());
        assert_eq!(failed.count() == 0, repaired, "{most} {first}");
        for reported in &ran.report.findings {
            let voters = MEMBERS.iter().filter(|n| !reported.makers().contains(n));
            for voter in voters.filter(|voter| **voter != first) {
                assert!(reported.votes.contains_key(*voter), "{first}: {reported:?}");
            }
        }
        assert!(ran.asked.len() as u64 <= most);
    }
    // All replies cannot be parsed: what their votes would have cost pays for second requests.
    let ran = run(limited(&MEMBERS, calls(6)), |_, request| {
        assert_eq!(kind(request), "findings");
        Reply::Text("Hm.".into())
    });
    assert_eq!(ran.asked.len(), 6);
}

#[test]
fn many_findings_are_voted_on_in_several_requests() {
    let line = |at: usize| format!("let value_{at} = compute_{at}(input_{at});");
    let code: Vec<String> = (0..120).map(line).collect();
    let many = |from: usize| {
        let all = (from..from + 40).map(|at| {
            let claim = format!("compute_{at} input_{at} reason_{at} thing_{at}");
            let mut one = finding("src/sum.rs", at as u32 + 1, &code[at], &claim);
            one["evidence"] = "x\"y\n".repeat(400).into();
            one
        });
        findings(&all.collect::<Vec<_>>())
    };
    let reply = |name: &str, request: &Request| {
        let at = MEMBERS.iter().position(|n| *n == name).expect("a member");
        Reply::Text(match kind(request) {
            "findings" => many(at * 40),
            _ => votes(request, |_| "real"),
        })
    };
    let of = |ceiling| {
        let mut open = limited(&MEMBERS, ceiling);
        open.files.insert("src/sum.rs".into(), code.join("\n"));
        open
    };
    let ran = run(of(Ceiling::default()), reply);
    assert!(ran.report.findings.len() > 100);
    let heard = |r: &Reported| r.votes.len() + r.makers().len();
    assert!(ran.report.findings.iter().all(|r| heard(r) == 3));
    let requests = ran.asked.iter().filter(|r| kind(r) == "votes");
    assert!(requests.clone().count() > 6);
    for request in requests {
        assert!(request.prompt.history.len() < 50 << 10);
        assert!(!labels(request).is_empty());
    }
    // A limit leaves only six requests: each voter gets the first findings, and a notice names the rest.
    let ran = run(of(calls(6)), reply);
    let told = ran.report.notices.join("\n");
    assert!(told.contains("bob did not vote on "), "{told}");
    assert!(told.contains(" findings: the limit is reached"), "{told}");
    assert!(ran.asked.len() <= 6);
    assert!(asked(&ran, "votes") == 3, "{told}");
}

#[test]
fn a_flood_by_one_member_leaves_room_for_the_others() {
    let code: Vec<String> = (0..800)
        .map(|at| format!("let value_{at} = compute_{at}(input_{at});"))
        .collect();
    let about = |at: usize| {
        let claim = format!("compute_{at} input_{at} reason_{at} thing_{at}");
        finding("src/sum.rs", at as u32 + 1, &code[at], &claim)
    };
    let mut open = limited(&["ann", "bob"], Ceiling::default());
    open.files.insert("src/sum.rs".into(), code.join("\n"));
    open.parts = (0..14)
        .map(|part| format!("This is part {part} of it."))
        .collect();
    let ran = run(open, |name, request| {
        let prompt = &request.prompt;
        let is_of = |part: &usize| {
            let words = format!("This is part {part} of it.");
            prompt.history.contains(&words) || prompt.turn.contains(&words)
        };
        Reply::Text(match (kind(request), (0..14).find(is_of)) {
            ("findings", Some(part)) if name == "ann" => {
                findings(&(part * 50..part * 50 + 50).map(about).collect::<Vec<_>>())
            }
            ("findings", Some(13)) => findings(&[about(799)]),
            ("findings", _) => findings(&[]),
            _ => votes(request, |_| "real"),
        })
    });
    let by = |name: &str| {
        let made = |r: &&Reported| r.makers().contains(&name);
        ran.report.findings.iter().filter(made).count()
    };
    assert!(by("ann") <= 300, "its share");
    assert_eq!(by("bob"), 1);
}

#[test]
fn a_flood_by_one_member_takes_no_votes_from_the_others() {
    let code: Vec<String> = (0..60)
        .map(|at| format!("let value_{at} = compute_{at}(input_{at});"))
        .collect();
    let about = |at: usize, severity: &str, evidence: usize| {
        // Words that no other finding has.
        let letter = |n: usize| char::from(b'a' + n as u8);
        let own = format!("{}{}", letter(at / 26), letter(at % 26));
        let claim = format!("{own}compute {own}input {own}reason {own}thing");
        let mut one = finding("src/sum.rs", at as u32 + 1, &code[at], &claim);
        one["severity"] = severity.into();
        one["evidence"] = "x\"y\n".repeat(evidence).into();
        one
    };
    for flooder in MEMBERS {
        let mut open = limited(&MEMBERS, calls(6));
        open.files.insert("src/sum.rs".into(), code.join("\n"));
        let ran = run(open, |name, request| {
            let at = MEMBERS.iter().position(|n| *n == name).expect("a member");
            Reply::Text(match kind(request) {
                "findings" if name == flooder => {
                    let all = (0..50).map(|at| about(at, "blocker", 400));
                    findings(&all.collect::<Vec<_>>())
                }
                "findings" => findings(&[about(55 + at, "nit", 1)]),
                _ => votes(request, |_| "real"),
            })
        });
        assert_eq!((asked(&ran, "findings"), asked(&ran, "votes")), (3, 3));
        let honest = |r: &&Reported| r.makers() != [flooder];
        let honest: Vec<&Reported> = ran.report.findings.iter().filter(honest).collect();
        assert_eq!(honest.len(), 2, "{flooder}");
        for reported in honest {
            let claim = reported.finding().map(|f| f.claim.as_str());
            assert_eq!(reported.votes.len(), 2, "{flooder}: {claim:?}");
        }
        let told = ran.report.notices.join("\n");
        assert!(
            told.contains(" findings"),
            "the notice counts the findings left out: {told}"
        );
    }
}

#[test]
fn a_limit_leaves_comparisons_out_before_votes() {
    let pair = crate::council::unclear("x");
    let reply = |name: &str, request: &Request| {
        let at = MEMBERS.iter().position(|n| *n == name).expect("a member");
        Reply::Text(match kind(request) {
            "findings" if at < 2 => findings(&[finding("src/sum.rs", 3, LINES[0], &pair[at])]),
            "findings" => findings(&[]),
            "pairs" => "{\"pairs\": [{\"id\": \"A\", \"same\": false}]}".to_owned(),
            _ => votes(request, |_| "real"),
        })
    };
    // The limit, and how many requests are for comparisons. A cluster of both findings needs one vote, two need four.
    for (most, compared) in [(3, 0), (4, 0), (5, 0), (6, 0), (7, 1), (9, 1), (12, 1)] {
        let ran = run(limited(&MEMBERS, calls(most)), reply);
        assert_eq!(asked(&ran, "pairs"), compared, "{most}");
        assert_eq!(asked(&ran, "votes") > 0, most > 3, "{most}");
        let told = ran.report.notices.join("\n");
        let left = told.contains("the rules decided 1 unclear pair of findings");
        assert_eq!(left, compared == 0, "{most}: {told}");
    }
}
