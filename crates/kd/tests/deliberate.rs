//! `kd deliberate` and the commands that inspect it, through the real program with scripted members.

use crate::support;

use serde_json::{Value, json};
use std::path::Path;
use support::Home;

/// A reply that fits every stage: each stage reads the part it asked for.
fn script(answer: &str) -> Value {
    let reply = json!({
        "reason": format!("it is {answer}"), "answer": answer, "confidence": 0.8, "choice": "A",
        "A": {"rating": 7, "weakness": "<script>alert(1)</script>"}, "B": {"rating": 6, "weakness": "w"},
        "ranking": ["A", "B"], "recommendation": "Do it.", "consensus": "All like it.", "support": "Reasons.",
        "dissent": "none", "cites": ["A"],
    });
    json!({"runs": [[{"text": reply.to_string()}, {"finish": {"usage": {"input_tokens": 10, "output_tokens": 5}}}]]})
}

fn home(answers: [&str; 3]) -> Home {
    let home = Home::scripted(&[
        ("ann", script(answers[0])),
        ("bob", script(answers[1])),
        ("cyd", script(answers[2])),
    ]);
    let plan = json!({
        "council": {
            "size": 4,
            "members": [
                {"model": "ann", "role": "opinion-giver", "persona": "Deep Reasoner"},
                {"model": "bob", "role": "opinion-giver"},
                {"model": "cyd", "role": "skeptic", "temperature": 0.5},
                {"model": "ann", "role": "synthesizer"},
            ],
            "voting": {"method": "majority"},
        },
        "meta": {"planningMode": "static", "complexity": "simple"},
        "memory": {"longTerm": true},
    });
    std::fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
    home
}

const QUESTION: &str = "Is it safe?";

#[test]
fn a_question_whose_lines_end_with_spaces_is_decided_again() {
    let home = home(["yes", "yes", "yes"]);
    let question = "Is it safe?\n\n| quoted  \n| \n|\u{2028}\tindented\t\r\n\n";
    let said = home.run(&["deliberate", "-q", "--plan", "plan.json", question]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let replayed = home.run(&["replay", "--json"]).json();
    assert_eq!(replayed["agrees"], true, "{replayed}");
}

#[test]
fn a_limit_that_lets_nobody_answer_is_a_limit() {
    let home = home(["yes", "yes", "yes"]);
    let ask = [
        "deliberate",
        "-m",
        "ann,bob,cyd",
        "--max-calls",
        "1",
        QUESTION,
    ];
    let said = home.run(&ask);
    assert_eq!(said.code, Some(4), "{}{}", said.out, said.err);
}

#[test]
fn answers_that_the_token_limit_cut_are_marked() {
    for (length, marked) in [(true, true), (false, false)] {
        let script = || {
            let text = script("yes")["runs"][0][0].clone();
            json!({"runs": [[text, {"finish": {"length": length}}]]})
        };
        let home = Home::scripted(&[("ann", script()), ("bob", script()), ("cyd", script())]);
        let ask = [
            "deliberate",
            "-m",
            "ann,bob,cyd",
            "--protocol",
            "vote",
            QUESTION,
        ];
        let said = home.run(&ask);
        // Two equal answers decide, so the third may not be waited for.
        let notes = said.err.matches("'s answer was cut at the token limit");
        assert_eq!(notes.count() >= 2, marked, "{}", said.err);
        let note = "note: the conclusion was cut at the token limit";
        assert_eq!(said.err.contains(note), marked, "{}", said.err);
        let mark = "…[cut at ";
        assert_eq!(said.out.contains(mark), marked, "{}", said.out);
    }
}

#[test]
fn a_council_decides_and_its_record_decides_the_same_again() {
    let home = home(["yes", "yes", "yes"]);
    let said = home.run(&[
        "deliberate",
        "--plan",
        "plan.json",
        "--json",
        "--seed",
        "3",
        "--export",
        "r.html",
        QUESTION,
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let object = said.json();
    assert_eq!(object["outcome"], "unanimous");
    assert_eq!(object["verdict"]["winner"], "yes");
    assert_eq!(object["verdict"]["by"], "ann-synthesizer");
    let answer = object["verdict"]["answer"].as_str().expect("text");
    for part in [
        "## The council is unanimous (3 of 3)",
        "**Recommendation.** Do it.",
    ] {
        assert!(answer.contains(part), "{part} in\n{answer}");
    }
    // Faster members come first in the thread; each name goes with the number of its own message.
    let messages = object["messages"].as_array().expect("messages");
    let number = |name: &str| {
        let of = |m: &&Value| m["from"] == name && m["extra"]["stage"] == "opinions";
        messages.iter().find(of).expect("an opinion")["seq"].clone()
    };
    let cited = format!(
        "**Rests on.** ann (#{}), bob (#{}), cyd (#{})",
        number("ann"),
        number("bob"),
        number("cyd")
    );
    assert!(answer.contains(&cited), "{cited} in\n{answer}");
    assert_eq!(object["verdict"]["cites"], json!([2, 3, 4]));
    let page = std::fs::read_to_string(home.work().join("r.html")).expect("a page");
    assert!(
        page.contains("class=\"bar\"") && page.matches("<script").count() == 2,
        "charts, and no markup of a model's"
    );

    let replayed = home.run(&["replay", "--json"]).json();
    assert_eq!(replayed["agrees"], true, "{replayed}");
    assert!(replayed["events"].as_u64().expect("a number") > 20);
    let why = home.run(&["why"]);
    assert_eq!(why.code, Some(0));
    assert!(
        why.out.contains("ann (opinion-giver)") && why.out.contains("for yes"),
        "{}",
        why.out
    );

    let memory = home.run(&["memory", "show"]);
    assert!(
        memory.out.contains(QUESTION) && memory.out.contains("yes"),
        "{}",
        memory.out
    );
    assert_eq!(home.run(&["memory", "forget", "--all"]).code, Some(0));
    assert!(
        home.run(&["memory", "show"])
            .out
            .contains("nothing is remembered")
    );
}

#[test]
fn the_page_shows_what_the_rule_counted_and_what_reviewers_said() {
    let home = home(["yes", "yes", "no"]);
    let plan = json!({"council": {"size": 4, "members": [
        {"model": "ann", "role": "opinion-giver", "persona": "Deep Reasoner", "weight": 0.4},
        {"model": "bob", "role": "opinion-giver", "weight": 0.5},
        {"model": "cyd", "role": "opinion-giver", "weight": 2},
        {"model": "ann", "role": "synthesizer"},
    ], "voting": {"method": "weighted"}}});
    std::fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
    let args = [
        "deliberate",
        "--plan",
        "plan.json",
        "--seed",
        "3",
        "--json",
        "--export",
        "r.html",
        QUESTION,
    ];
    let said = home.run(&args).json();
    let page = std::fs::read_to_string(home.work().join("r.html")).expect("a page");
    // Two of three members are for yes; the weights are for no.
    assert_eq!(said["verdict"]["winner"], "no");
    let row = |name: &str| {
        let row = page
            .split("<tr")
            .find(|row| row.contains(&format!("<td dir=\"auto\">{name}")));
        row.expect("a row")
    };
    let wide = |name: &str| {
        let bar = row(name)
            .split("class=\"fill\" width=\"")
            .nth(1)
            .expect("a bar");
        bar.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(wide("no") > wide("yes"), "{page}");
    assert!(row("no").contains("won"), "{page}");
    for part in [
        "<th>Weight</th>",
        "<td>0.4</td>",
        "Deep Reasoner",
        " of 10): &lt;script&gt;alert(1)&lt;/script&gt;",
        "see its message",
    ] {
        assert!(page.contains(part), "{part} in\n{page}");
    }
    // A narrow screen scrolls tables and wraps everything else.
    assert_eq!(
        page.matches("<table").count(),
        page.matches("<div class=\"wide\" tabindex=\"0\"><table")
            .count()
    );
}

#[test]
fn a_plan_cannot_loosen_the_users_limits() {
    let home = home(["yes", "yes", "no"]);
    let calls = |user: Value, plan: Value, flags: &[&str]| {
        std::fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
        let local = json!({"deliberation": user});
        std::fs::create_dir_all(home.work().join(".kd")).expect("made");
        std::fs::write(home.work().join(".kd/config.json"), local.to_string()).expect("written");
        let mut args = vec!["deliberate", "--dry-run", "--json", "--plan", "plan.json"];
        args.extend(flags);
        args.push(QUESTION);
        let said = home.run(&args);
        assert_eq!(said.code, Some(0), "{}", said.err);
        (said.json(), said.err)
    };
    let seats = json!([{"model": "ann", "role": "opinion-giver"}, {"model": "bob", "role": "opinion-giver"},
        {"model": "cyd", "role": "skeptic"}]);
    let plan = |more: Value| {
        let mut plan = json!({"council": {"members": seats}});
        plan.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        plan
    };
    // A limit set by the user is kept; a default gives way to the plan.
    for (user, wide, most) in [
        (json!({"maxCalls": 20}), json!({"maxCalls": 500}), 20),
        (json!({"maxCalls": 20}), json!({}), 20),
        (json!({}), json!({"maxCalls": 500}), 500),
        (json!({"maxCalls": 20}), json!({"maxCalls": 15}), 15),
    ] {
        let raises = wide["maxCalls"] == 500 && user["maxCalls"] == 20;
        let (planned, said) = calls(user.clone(), plan(wide.clone()), &[]);
        assert_eq!(
            planned.pointer("/plan/maxCalls"),
            Some(&json!(most)),
            "{user} {wide}: {planned}"
        );
        assert_eq!(
            said.contains("the plan sets deliberation.maxCalls"),
            raises,
            "{said}"
        );
    }
    let (planned, _) = calls(
        json!({"maxCalls": 20}),
        plan(json!({"maxCalls": 500})),
        &["--max-calls", "30"],
    );
    assert_eq!(
        planned.pointer("/plan/maxCalls"),
        Some(&json!(30)),
        "{planned}"
    );
}

#[test]
fn a_record_that_was_changed_does_not_agree() {
    let home = home(["yes", "yes", "no"]);
    let said = home.run(&["deliberate", "--plan", "plan.json", "--seed", "3", QUESTION]);
    assert!(
        said.out.contains("Vote by majority"),
        "{}\n{}",
        said.out,
        said.err
    );
    assert!(said.err.contains("opinions, blind"), "{}", said.err);
    let log = home.threads()[0].join(".kd-events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    std::fs::write(
        &log,
        text.replacen("\\\"answer\\\":\\\"no\\\"", "\\\"answer\\\":\\\"yes\\\"", 1),
    )
    .expect("written");
    let replayed = home.run(&["replay"]);
    assert_eq!(replayed.code, Some(1));
    assert!(replayed.out.contains("differ"), "{}", replayed.out);
}

#[test]
fn what_differs_from_the_record_is_said_by_every_command_that_shows_it() {
    let home = home(["yes", "yes", "no"]);
    home.run(&["deliberate", "--plan", "plan.json", "--seed", "3", QUESTION]);
    let thread = home.threads().remove(0);
    let commands: [&[&str]; 4] = [&["show"], &["why"], &["export"], &["fsck"]];
    for command in commands {
        let said = home.run(command);
        assert_eq!(said.code, Some(0), "{command:?} {}{}", said.out, said.err);
        let all = said.out + &said.err;
        assert!(!all.contains("record"), "{command:?} {all}");
    }
    assert_eq!(home.run(&["why", "--json"]).json()["agrees"], true);
    let mut files: Vec<_> = std::fs::read_dir(&thread)
        .expect("a folder")
        .map(|file| file.expect("a file").path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "md"));
    files.sort();
    let last = files.last().expect("a message");
    let text = std::fs::read_to_string(last).expect("a message");
    std::fs::write(last, text.trim_end().to_owned() + " Not.\n").expect("written");
    let words = format!("message {} of", files.len());
    for command in commands {
        let said = home.run(command);
        let code = i32::from(command == ["fsck"]);
        assert_eq!(
            said.code,
            Some(code),
            "{command:?} {}{}",
            said.out,
            said.err
        );
        let all = (said.out + &said.err).replace('\n', " ");
        assert!(all.contains(&words), "{command:?} {all}");
        assert!(
            all.contains("other words than were recorded"),
            "{command:?} {all}"
        );
    }
    for command in [&["show", "--json"][..], &["why", "--json"]] {
        let changed = home.run(command).json()["changed_messages"].clone();
        assert_eq!(changed.as_array().map(Vec::len), Some(1), "{command:?}");
    }
    // An event that was changed.
    std::fs::write(last, text).expect("written");
    let log = thread.join(".kd-events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    let edited = text.replacen("\\\"answer\\\":\\\"no\\\"", "\\\"answer\\\":\\\"yes\\\"", 1);
    std::fs::write(&log, edited).expect("written");
    let said = home.run(&["why"]);
    let told = said.out.replace('\n', " ");
    assert!(
        told.contains("The record does not agree with itself"),
        "{told}"
    );
    assert_eq!(home.run(&["why", "--json"]).json()["agrees"], false);
}

/// Returns the output of `kd replay` after a change to a record.
fn replayed_after(change: impl Fn(&std::path::Path)) -> String {
    let home = home(["yes", "yes", "no"]);
    home.run(&["deliberate", "--plan", "plan.json", "--seed", "3", QUESTION]);
    assert_eq!(home.run(&["replay"]).code, Some(0), "before the change");
    change(&home.threads()[0]);
    let said = home.run(&["replay"]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert_eq!(home.run(&["replay", "--json"]).json()["agrees"], false);
    said.out
}

#[test]
fn a_message_that_was_changed_is_named() {
    // The text of every recorded message in turn: the question and at least three opinions.
    let mut count = 4;
    let mut at = 0;
    let messages = std::cell::Cell::new(count);
    while at < count {
        let said = replayed_after(|thread| {
            let log = thread.join(".kd-events.jsonl");
            let text = std::fs::read_to_string(&log).expect("a log");
            let mut seen = 0;
            let lines = text.lines().map(|line| {
                let mut value: Value = serde_json::from_str(line).expect("JSON");
                if let Some(body) = value.pointer_mut("/message/body") {
                    if seen == at {
                        *body = json!(format!("{} no", body.as_str().expect("text")));
                    }
                    seen += 1;
                }
                format!("{value}\n")
            });
            let changed: String = lines.collect();
            assert!(seen >= 4, "{seen} messages");
            messages.set(seen);
            std::fs::write(&log, changed).expect("written");
        });
        count = messages.get();
        assert!(said.contains("differ"), "message {at}: {said}");
        assert!(said.contains("other words than were recorded"), "{said}");
        at += 1;
    }
    let first = |thread: &std::path::Path| {
        let files = std::fs::read_dir(thread).expect("a folder").flatten();
        let mut files: Vec<_> = files.map(|file| file.path()).collect();
        files.retain(|path| path.extension().is_some_and(|ext| ext == "md"));
        files.sort();
        files.remove(1)
    };
    let said = replayed_after(|thread| {
        let path = first(thread);
        let text = std::fs::read_to_string(&path).expect("a message");
        std::fs::write(&path, text.trim_end().to_owned() + " Not.\n").expect("written");
    });
    assert!(said.contains("message 2 of"), "{said}");
    let said = replayed_after(|thread| std::fs::remove_file(first(thread)).expect("removed"));
    assert!(said.contains("is gone"), "{said}");
}

#[test]
fn a_record_that_was_cut_off_anywhere_does_not_agree() {
    let home = home(["yes", "yes", "no"]);
    home.run(&["deliberate", "--plan", "plan.json", "--seed", "3", QUESTION]);
    let log = home.threads()[0].join(".kd-events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    let lines: Vec<&str> = text.lines().collect();
    let (mut differ, mut early) = (0, 0);
    for end in 1..lines.len() {
        std::fs::write(&log, lines[..end].join("\n") + "\n").expect("written");
        let said = home.run(&["replay"]);
        assert_eq!(said.code, Some(1), "{end} lines: {}", said.out);
        differ += usize::from(said.out.contains("then the record and the decision differ"));
        early += usize::from(said.out.contains("The record is incomplete"));
    }
    // A record that ends within a step is incomplete too, not another one.
    assert!(differ == 0 && early > 10, "{differ} {early}");
    std::fs::write(&log, text).expect("written");
    assert_eq!(home.run(&["replay"]).code, Some(0));
}

#[test]
fn the_exit_code_follows_the_outcome() {
    let split = home(["yes", "no", "yes"]);
    // All vote for label A of their own order.
    let said = split.run(&[
        "deliberate",
        "--plan",
        "plan.json",
        "--seed",
        "1",
        "--rule",
        "unanimity",
        "--quiet",
        QUESTION,
    ]);
    assert!(matches!(said.code, Some(0 | 7)), "{}", said.out);
    assert_eq!(
        said.code == Some(7),
        said.out.contains("The council is split"),
        "{}",
        said.out
    );
    let cut = split.run(&[
        "deliberate",
        "--plan",
        "plan.json",
        "--max-calls",
        "2",
        "--quiet",
        QUESTION,
    ]);
    assert_eq!(cut.code, Some(4), "{}", cut.out);
    assert!(
        cut.out.contains("The limit of calls cut the deliberation"),
        "{}",
        cut.out
    );
    let low = split.run(&[
        "deliberate",
        "--plan",
        "plan.json",
        "--max-total-tokens",
        "100",
        QUESTION,
    ]);
    assert_eq!(low.code, Some(2));
    assert!(low.err.contains("too low"), "{}", low.err);
}

#[test]
fn a_plan_is_shown_and_nothing_is_asked() {
    let home = home(["yes", "yes", "yes"]);
    let said = home.run(&["deliberate", "--dry-run", "--plan", "plan.json", QUESTION]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for part in [
        "a choice of yes, no",
        "rule majority",
        "Deep Reasoner",
        // Three opinions, reviews and votes, and the conclusion.
        "cost: at most 10 calls if no member fails",
        "free",
    ] {
        assert!(said.out.contains(part), "{part} in\n{}", said.out);
    }
    assert!(home.threads().is_empty());
    // The JSON shown is a plan that can be run.
    let shown = home
        .run(&[
            "deliberate",
            "--dry-run",
            "--plan",
            "plan.json",
            "--json",
            QUESTION,
        ])
        .json();
    std::fs::write(home.work().join("again.json"), shown["plan"].to_string()).expect("written");
    let again = home
        .run(&[
            "deliberate",
            "--dry-run",
            "--plan",
            "again.json",
            "--json",
            QUESTION,
        ])
        .json();
    assert_eq!(again["plan"], shown["plan"]);
}

#[test]
fn a_plan_shows_who_is_not_asked_and_who_has_no_vote() {
    let home = home(["yes", "yes", "yes"]);
    let dry = |args: &[&str]| {
        let all = [&["deliberate", "--dry-run"][..], args, &[QUESTION]].concat();
        home.run(&all)
    };
    let solo = ["--protocol", "solo", "-m", "ann,bob,cyd"];
    let note = "solo asks ann alone, the strongest of the named members or the first of equal ones: bob, cyd are not asked";
    assert!(dry(&solo).out.contains(note), "{}", dry(&solo).out);
    let json = dry(&[&solo[..], &["--json"]].concat()).json();
    assert!(json["notices"].to_string().contains(note), "{json}");
    let plan = json!({"council": {"size": 3, "members": [
        {"model": "ann", "role": "opinion-giver"}, {"model": "bob", "role": "skeptic"}, {"model": "ann", "role": "creative"}],
        "voting": {"method": "majority"}}});
    std::fs::write(home.work().join("twice.json"), plan.to_string()).expect("written");
    let said = dry(&["--plan", "twice.json"]);
    let row = said.out.lines().find(|line| line.contains("ann-creative"));
    assert!(
        row.is_some_and(|row| row.contains("creative, no vote")),
        "{}",
        said.out
    );
    let note =
        "no vote, since two seats of an agent are no two opinions: ann-creative (ann votes as ann)";
    assert!(said.out.contains(note), "{}", said.out);
}

#[test]
fn estimates_are_shown_as_estimates() {
    let script = |number: u32| {
        let said = json!([{"text": json!({"reason": "r", "answer": number}).to_string()}]);
        json!({"runs": [said, said, said, said]})
    };
    let home = Home::scripted(&[("ann", script(40)), ("bob", script(60))]);
    let said = home.run(&[
        "deliberate",
        "--protocol",
        "delphi",
        "--answer",
        "number",
        "-m",
        "ann,bob",
        "How many?",
    ]);
    assert!(
        said.out.contains("The median of 2 estimates"),
        "{}{}",
        said.out,
        said.err
    );
    assert!(said.out.contains("\nEstimates\n"), "{}", said.out);
    for absent in ["plurality", "Vote by"] {
        assert!(!said.out.contains(absent), "{absent}: {}", said.out);
    }
    let why = home.run(&["why"]);
    assert!(!why.out.contains("plurality,"), "{}", why.out);
}

#[test]
fn every_mistake_of_a_plan_is_told_at_once() {
    let home = home(["yes", "yes", "yes"]);
    let plan = json!({
        "council": {"size": 12, "members": [
            {"model": "ann", "role": "opinion-givr"}, {"model": "gtp-9", "role": "skeptic"}, {"role": "skeptic", "weight": 5}],
            "voting": {"method": "majorty"}},
        "iteration": {"maxIterations": 9, "startegy": "refine"},
    });
    std::fs::write(home.work().join("bad.json"), plan.to_string()).expect("written");
    let said = home.run(&["deliberate", "--plan", "bad.json", QUESTION]);
    assert_eq!(said.code, Some(2));
    for part in [
        "council.size",
        "council.members.0.role",
        "opinion-giver",
        "council.members.1.model",
        "council.members.2.model",
        "council.members.2.weight",
        "council.voting.method",
        "majority",
        "iteration.maxIterations",
        "iteration.startegy",
        "iteration.strategy",
    ] {
        assert!(said.err.contains(part), "{part} in\n{}", said.err);
    }
    assert!(home.threads().is_empty());
}

#[test]
fn a_model_that_plans_badly_is_asked_once_more_and_then_the_rules_plan() {
    let home = home(["yes", "yes", "yes"]);
    let said = home.run(&[
        "deliberate",
        "--planning",
        "llm",
        "--preset",
        "small",
        "--json",
        "--seed",
        "1",
        QUESTION,
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let notices = said.json()["notices"].to_string();
    assert!(notices.contains("planning by rules"), "{notices}");
    assert_eq!(home.run(&["replay", "--json"]).json()["agrees"], true);
}

#[test]
fn what_was_written_in_the_editor_is_kept_when_it_cannot_be_used() {
    let home = home(["yes", "yes", "yes"]);
    for (editor, why) in [
        ("sed -i s/skeptic/skeptik/", "skeptik"),
        ("sed -i 1d", "not JSON any more"),
    ] {
        let mut command = home.kd(&["deliberate", "--edit", "--plan", "plan.json", QUESTION]);
        let output = command
            .env("EDITOR", editor)
            .env("TMPDIR", home.path())
            .output();
        let said = support::Said::of(output.expect("it runs"));
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains(why), "{}", said.err);
        let (_, path) = said.err.split_once("--plan ").expect("where it is");
        let path = path.split_whitespace().next().expect("a path");
        let kept = std::fs::read_to_string(path).expect("it is there");
        assert!(kept.contains("Deep Reasoner"), "{kept}");
    }
    assert!(home.threads().is_empty(), "nothing was asked");

    let mut command = home.kd(&[
        "deliberate",
        "--edit",
        "--dry-run",
        "--plan",
        "plan.json",
        QUESTION,
    ]);
    let output = command.env("EDITOR", "sed -i s/skeptic/creative/").output();
    let said = support::Said::of(output.expect("it runs"));
    assert!(
        said.out.contains("cyd              creative"),
        "{}",
        said.out
    );
}

#[test]
fn texts_of_the_project_are_marked_in_the_record() {
    let home = home(["yes", "yes", "yes"]);
    let config = json!({"council": {"preamble": "Be brief."}});
    std::fs::write(home.work().join(".kd/config.json"), config.to_string()).expect("written");
    let roles = home.work().join(".kd/roles");
    std::fs::create_dir(&roles).expect("made");
    std::fs::write(roles.join("skeptic.md"), "You doubt.").expect("written");
    let said = home.run(&["deliberate", "--plan", "plan.json", "--json", QUESTION]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let why = home.run(&["why"]);
    let line = "texts from this project: council.preamble (.kd/config.json:1, 9 characters), roles/skeptic.md (10 bytes)";
    assert!(why.out.contains(line), "{}", why.out);
}

#[test]
fn open_answers_are_compared_and_the_claims_are_in_every_form() {
    let says = |text: &str| json!([{"text": text}, {"finish": {}}]);
    // Both readings say that all three mean the same.
    let same = json!({
        "groups": [["A", "B", "C"]],
        "claims": [
            {"claim": "Calls <b>may</b> fail.", "says": ["A", "B", "C"], "denies": []},
            {"claim": "A queue is `needed`.", "says": ["A"], "denies": ["B"]},
        ],
        "missing": ["How to roll back"],
    });
    let last = json!({
        "recommendation": "Do it.", "consensus": "All like it.", "support": "Reasons.", "dissent": "none",
        "cites": ["A"],
    });
    let runs =
        |texts: &[&str]| json!({"runs": texts.iter().map(|text| says(text)).collect::<Vec<_>>()});
    let home = Home::scripted(&[
        (
            "ann",
            runs(&["Put a queue between them.", &same.to_string()]),
        ),
        ("bob", runs(&["Decouple them by a queue."])),
        ("cyd", runs(&["A queue should sit in the middle."])),
        ("dee", runs(&[&same.to_string(), &last.to_string()])),
    ]);
    let plan = json!({
        "council": {"size": 4, "members": [
            {"model": "ann", "role": "opinion-giver"},
            {"model": "bob", "role": "opinion-giver"},
            {"model": "cyd", "role": "opinion-giver"},
            {"model": "dee", "role": "synthesizer"},
        ]},
        "protocol": "vote",
    });
    std::fs::write(home.work().join("plan.json"), plan.to_string()).expect("written");
    let question = "How should two services talk to each other?";
    let run = |more: &[&str]| {
        let mut args = vec!["deliberate", "--plan", "plan.json", "--seed", "3"];
        args.extend(more);
        args.push(question);
        home.run(&args)
    };

    let planned = run(&["--dry-run"]);
    assert!(planned.out.contains("are compared by"), "{}", planned.out);
    let shown = run(&["--dry-run", "--json"]).json();
    assert_eq!(
        shown["compared_by"].as_array().map(Vec::len),
        Some(2),
        "{shown}"
    );
    assert_eq!(shown["plan"]["answer"], Value::Null);
    let apart = run(&["--dry-run", "--json", "--answer", "text"]).json();
    assert_eq!(apart["compared_by"], json!([]));
    let calls = |of: &Value| of["estimate"]["calls"].as_u64().expect("a number");
    assert_eq!(calls(&shown), calls(&apart) + 2);

    let said = run(&["--json", "--export", "r.html"]);
    let object = said.json();
    assert_eq!(object["map"]["of"], "claims", "{object}\n{}", said.err);
    assert_eq!(object["map"]["missing"], json!(["How to roll back"]));
    let standings: Vec<&Value> = object["claims"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| &row["standing"])
        .collect();
    assert_eq!(standings, ["consensus", "contradiction"]);
    let stood = object["counts"][0]["candidates"].as_array().map(Vec::len);
    assert_eq!(stood, Some(1), "{object:#}");
    let page = std::fs::read_to_string(home.work().join("r.html")).expect("a page");
    assert!(
        page.contains("Calls &lt;b&gt;may&lt;/b&gt; fail."),
        "{page}"
    );
    assert!(page.contains("Not covered: <span dir=\"auto\">How to roll back"));
    let text = home.run(&["why", "--export", "md"]).out;
    assert!(
        text.contains("## Claims") && text.contains("Calls <b>may</b> fail."),
        "{text}"
    );
    let why = home.run(&["why"]).out;
    assert!(why.contains("answers compared by"), "{why}");
    let replayed = home.run(&["replay", "--json"]).json();
    assert_eq!(replayed["agrees"], true, "{replayed}");

    // The map of answers explains itself.
    let home = self::home(["yes", "no", "yes"]);
    let said = home
        .run(&["deliberate", "--plan", "plan.json", "--json", QUESTION])
        .json();
    assert_eq!(said["map"]["of"], "answers");
}

/// Deliberations recorded by older versions are decided as they were: replies are parsed and conclusions written by the
/// rules of their version.
#[test]
fn a_recorded_deliberation_is_decided_as_it_was() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded");
    let home = Home::new(&json!({}));
    let threads = home.work().join(".kd/branches/main/threads");
    let mut count = 0;
    for folder in std::fs::read_dir(recorded).expect("read") {
        let folder = folder.expect("an entry");
        let id = folder.file_name().into_string().expect("text");
        let thread = threads.join(&id);
        std::fs::create_dir_all(&thread).expect("made");
        for file in std::fs::read_dir(folder.path()).expect("read") {
            let file = file.expect("an entry");
            std::fs::copy(file.path(), thread.join(file.file_name())).expect("copied");
        }
        let again = home.run(&["replay", &id]);
        assert_eq!(again.code, Some(0), "{id}: {}{}", again.out, again.err);
        assert!(
            again.out.contains("agree byte for byte"),
            "{id}: {}",
            again.out
        );
        // The newest was written by a version that did not parse `Answer: SQLite` as a ranking.
        let noted = again.out.contains("reads one ballot differently");
        assert_eq!(noted, id == "council-2e98", "{}", again.out);
        let object = home.run(&["replay", "--json", &id]).json();
        let reread = object["read_otherwise_today"].as_array().map(Vec::len);
        assert_eq!(reread > Some(0), noted, "{object}");
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn the_count_stands_before_the_chair_and_a_chair_that_differs_is_named() {
    let says = |text: &str| json!({"runs": [[{"text": text}]]});
    let council = |ann: &str, others: &str| {
        Home::scripted(&[
            ("ann", says(ann)),
            ("bob", says(others)),
            ("cyd", says(others)),
            ("dan", says(others)),
            ("eve", says("I cannot help with that.")),
        ])
    };
    // The fact checker and the chair belong to ann, too, who votes once.
    let rows = [
        (
            "Answer: PostgreSQL",
            "Recommendation of the chair, against the count. Answer: PostgreSQL",
        ),
        ("Answer: SQLite", "Recommendation. Answer: SQLite"),
        (
            "{\"answer\": \"SQLite\"}",
            "Recommendation. (in the words of the winning answer)",
        ),
        (
            "I cannot help with that.",
            "Recommendation. (in the words of the winning answer)",
        ),
    ];
    for (ann, wanted) in rows {
        let home = council(ann, "Answer: SQLite");
        let question = "Which is better for a small shop: (A) SQLite or (B) PostgreSQL?";
        let args = [
            "deliberate",
            "--seed",
            "4",
            "--preset",
            "diverse",
            "--rule",
            "plurality",
            question,
        ];
        let said = home.run(&args);
        let text: Vec<&str> = said.out.split_whitespace().collect();
        let text = text.join(" ").replace("**", "");
        assert!(text.contains(wanted), "{ann}: {}{}", said.out, said.err);
        let (decided, chair) = (text.find("Decided. SQLite"), text.find("Recommendation"));
        assert!(decided.is_some() && decided < chair, "{ann}: {}", said.out);
        if ann.contains("PostgreSQL") {
            assert!(
                text.contains("A majority of the votes (3 of 4, 1 abstained)"),
                "{}",
                said.out
            );
        }
    }
    let home = council("It depends.", "It depends.");
    let question = "Which is better for a small shop: (A) SQLite or (B) PostgreSQL?";
    let said = home.run(&[
        "deliberate",
        "--preset",
        "diverse",
        "--rule",
        "plurality",
        question,
    ]);
    assert!(said.out.contains("No quorum"), "{}", said.out);
    for absent in ["Dissent.", "Confidence.", "Decided."] {
        assert!(!said.out.contains(absent), "{absent} {}", said.out);
    }
}

#[test]
fn only_the_members_beyond_the_seats_are_named() {
    let names: Vec<String> = (1..=9).map(|n| format!("x{n}")).collect();
    let says = json!({"runs": [[{"text": "Answer: yes"}]]});
    let members: Vec<(&str, Value)> = names.iter().map(|n| (n.as_str(), says.clone())).collect();
    let home = Home::scripted(&members);
    let all = names.join(",");
    let said = home.run(&[
        "deliberate",
        "-m",
        &all,
        "--preset",
        "small",
        "Is 17 prime? yes or no",
    ]);
    assert!(
        said.err.starts_with("error: x9 cannot take part"),
        "{}",
        said.err
    );
}

#[test]
fn the_decision_between_open_answers_is_in_every_output() {
    let says = |text: &str| json!({"runs": [[{"text": text}]]});
    let queue = "Put a message queue between them.";
    let home = Home::scripted(&[
        ("ann", says(queue)),
        ("bob", says(queue)),
        ("cyd", says(queue)),
    ]);
    let question = "How would you connect two services, in your own words?";
    let ask = [
        "deliberate",
        "-m",
        "ann,bob,cyd",
        "--answer",
        "text",
        question,
    ];
    let said = home.run(&ask);
    // Members answer in any order; the number is that of ann's message.
    let start = format!("**Decided.** {queue} (ann, #");
    let (_, rest) = said
        .out
        .split_once(&start)
        .unwrap_or_else(|| panic!("{}{}", said.out, said.err));
    let number = rest.split_once(')').expect("a number").0;
    let decided = format!("{start}{number})");
    for format in ["md", "html", "json"] {
        let said = home.run(&["export", "--format", format]);
        let wanted = if format == "html" {
            decided.trim_start_matches("**Decided.** ")
        } else {
            &decided
        };
        assert!(
            said.out.contains(wanted),
            "{format}: {}{}",
            said.out,
            said.err
        );
    }
}

#[test]
fn one_voice_is_no_vote() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes, it is safe."}]]}))]);
    let said = home.run(&["deliberate", "--protocol", "solo", "-m", "ann", QUESTION]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    for absent in ["Vote by", "Agreement", "unanimous"] {
        assert!(!said.out.contains(absent), "{absent}: {}", said.out);
    }
}
