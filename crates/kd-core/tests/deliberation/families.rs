//! Members of one vendor make correlated errors: for the quorum and for ties, three of them do not count as three
//! opinions.

use crate::room::{Answer, Run, good, plan, run, seat};
use kd_core::FailureKind;
use kd_core::deliberation::fact::Counted;
use kd_core::deliberation::{Fact, Plan};
use kd_vote::Outcome;

/// Builds a council of these models, each with an opinion.
fn council(models: &[&str]) -> Plan {
    let mut plan = plan();
    plan.seats.retain(|s| s.role == "synthesizer");
    for (at, model) in models.iter().enumerate() {
        let mut seat = seat(&format!("m{at}"), "opinion-giver");
        seat.member.model = Some((*model).to_owned());
        plan.seats.insert(at, seat);
    }
    plan
}

#[test]
fn votes_of_one_vendor_are_no_quorum_where_others_are_silent() {
    let outcome = |models: &[&str], silent: &'static [&'static str]| {
        let plan = council(models);
        let run = run(&plan, |asked| {
            let is_silent = silent.iter().any(|s| asked.seat == *s);
            // One member disagrees, so that a vote is held.
            let answer = if asked.seat == "m0" && asked.stage == "opinions" {
                "no"
            } else {
                "yes"
            };
            match asked.stage.as_str() {
                "vote" if is_silent => Answer::Fail(FailureKind::Crashed),
                _ => Answer::Text(good(asked, answer)),
            }
        });
        run.replays();
        let counted = counted(&run);
        (run.verdict().form, counted.notes.join("; "))
    };
    let mixed = [
        "gpt-5",
        "gpt-5-mini",
        "o3",
        "claude-sonnet-4-5",
        "gemini-2.5-pro",
    ];
    let (form, notes) = outcome(&mixed, &["m3", "m4"]);
    assert_eq!(form, Outcome::NoQuorum, "{notes}");
    assert!(notes.contains("one family (OpenAI)"), "{notes}");
    let (form, _) = outcome(&mixed, &["m1", "m3"]);
    assert_ne!(form, Outcome::NoQuorum, "two families voted");
    let (form, _) = outcome(&["gpt-5", "gpt-5-mini", "o3"], &["m2"]);
    assert_ne!(
        form,
        Outcome::NoQuorum,
        "a council of one family is counted by heads"
    );
}

#[test]
fn a_tie_goes_to_the_answer_of_more_families() {
    let plan = council(&["gpt-5", "gpt-4.1", "claude-sonnet-4-5", "gemini-2.5-pro"]);
    for seed in 0..8 {
        let plan = Plan {
            seed,
            ..plan.clone()
        };
        let run = run(&plan, |asked| {
            let one_vendor = ["m0", "m1"].contains(&asked.seat.as_str());
            let answer = if one_vendor { "yes" } else { "no" };
            Answer::Text(good(asked, answer))
        });
        run.replays();
        assert_eq!(run.verdict().winner.as_deref(), Some("no"), "seed {seed}");
        let path = counted(&run).tie_path.join("; ");
        assert!(path.contains("families"), "{path}");
        assert_eq!(run.verdict().form, Outcome::Plurality, "it is decided");
    }
}

#[test]
fn a_tie_that_an_arbiter_settles_is_decided_and_one_by_lot_is_a_split() {
    let outcome = |arbiter: bool| {
        let mut plan = plan();
        plan.seats.push(seat("dan", "opinion-giver"));
        if arbiter {
            plan.seats.push(seat("umpire", "arbiter"));
        }
        let run = run(&plan, |asked| {
            let answer = match asked.seat.as_str() {
                "ann" | "bob" => "yes",
                _ => "no",
            };
            Answer::Text(good(asked, answer))
        });
        run.replays();
        (run.verdict().form, run.verdict().winner.clone())
    };
    assert_eq!(outcome(true), (Outcome::Plurality, Some("no".into())));
    assert_eq!(outcome(false).0, Outcome::Split);
}

fn counted(run: &Run) -> Counted {
    let facts = run.facts().filter_map(|fact| match fact {
        Fact::Counted(counted) => Some(counted.clone()),
        _ => None,
    });
    facts.last().expect("it is counted")
}
