//! A deliberation shows the members' own words: names, the decision between open answers, private text, labels.

use crate::room::{Answer, Asked, Run, good, plan, run, seat};
use kd_core::SeatName;
use kd_core::deliberation::{AnswerKind, Change, Counted, Fact, Plan, what_if};
use kd_vote::Outcome;
use serde_json::json;
use std::collections::BTreeMap;

/// Returns the label and text of each answer in a prompt.
fn answers_in(asked: &Asked) -> Vec<(String, String)> {
    let prompt = asked.request.prompt.as_text();
    let fences = prompt.split("<<").skip(1);
    fences
        .filter_map(|fence| {
            let (head, text) = fence.split_once('\n')?;
            let label = head.split_once("Answer ")?.1;
            let label = label.split([' ', ',']).next()?;
            let text = text.split(">>").next()?.rsplit_once('\n')?.0;
            Some((label.to_owned(), text.to_owned()))
        })
        .collect()
}

fn label_of(asked: &Asked, begins: &str) -> String {
    let found = answers_in(asked);
    let found = found.iter().find(|(_, text)| text.starts_with(begins));
    found.map_or_else(|| "A".to_owned(), |(label, _)| label.clone())
}

fn open(question: &str, names: &[&str]) -> Plan {
    let mut plan = plan();
    plan.question = question.into();
    plan.answers = AnswerKind::Text;
    plan.judged = true;
    plan.seats = names.iter().map(|n| seat(n, "opinion-giver")).collect();
    plan.seats.push(seat("eve", "synthesizer"));
    plan
}

fn messages(run: &Run) -> Vec<(String, String)> {
    let bodies = run.records.iter().filter_map(|r| match &r.event {
        kd_core::Event::MessageAdded { message, .. } => {
            Some((message.from.clone(), message.body.to_string()))
        }
        _ => None,
    });
    bodies.collect()
}

/// Puts answers of equal text together, as a careful judge does.
fn grouped(asked: &Asked) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (label, text) in answers_in(asked) {
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, labels)) => labels.push(label),
            None => groups.push((text, vec![label])),
        }
    }
    let groups: Vec<Vec<String>> = groups.into_iter().map(|(_, labels)| labels).collect();
    json!({"groups": groups, "claims": [], "missing": []}).to_string()
}

#[test]
fn answers_that_are_names_of_members_stay_apart() {
    let said = |name: &str| match name {
        "codex" => "Use Codex.",
        _ => "Use Claude.",
    };
    let mut prompts = String::new();
    let plan = open(
        "Which agent should write our tests?",
        &["claude", "codex", "gemini"],
    );
    let mut play = |asked: &Asked| {
        let name = asked.seat.as_str();
        if asked.stage != "opinions" {
            prompts.push_str(&asked.request.prompt.history);
        }
        Answer::Text(match asked.stage.as_str() {
            "opinions" => said(name).into(),
            "sameness" => grouped(asked),
            "vote" | "open-vote" => {
                let wants = if name == "codex" { "codex" } else { "claude" };
                let label = asked.labels.iter().find(|l| l.item.ends_with(wants));
                let choice = &label.expect("both answers are shown").label;
                json!({"reason": "r", "choice": choice, "confidence": 0.8}).to_string()
            }
            "conclude" => {
                let first = answers_in(asked).remove(0).1;
                json!({"recommendation": first, "consensus": "none", "support": "Tests.", "dissent": "none", "cites": ["A"]}).to_string()
            }
            _ => good(asked, "A"),
        })
    };
    let run = run(&plan, &mut play);
    let verdict = run.verdict();
    assert_eq!(verdict.form, Outcome::Majority, "{}", verdict.answer);
    assert_eq!(verdict.winner.as_deref(), Some("Use Claude."));
    for wanted in [
        "**Decided.** Use Claude. (claude, #2)",
        "**Recommendation.** Use Claude.",
    ] {
        assert!(verdict.answer.contains(wanted), "{}", verdict.answer);
    }
    for name in ["laude", "odex", "emini"] {
        assert!(!prompts.contains(name), "{prompts}");
    }
    run.replays();
}

#[test]
fn a_changed_replay_keeps_the_stand_ins_of_its_record() {
    let plan = open(
        "Which agent should write tests?",
        &["claude", "codex", "fay"],
    );
    let run = run(&plan, |asked| {
        Answer::Text(match (asked.stage.as_str(), asked.seat.as_str()) {
            ("opinions", "claude") => "Use codex.".into(),
            ("opinions", _) => "Use claude.".into(),
            ("sameness", _) => grouped(asked),
            ("vote" | "open-vote", _) => {
                let other = answers_in(asked).remove(0);
                let reason = format!("It says: {}", other.1);
                json!({"reason": reason, "choice": other.0, "confidence": 0.8}).to_string()
            }
            _ => good(asked, "A"),
        })
    });
    let said = |counted: &Counted| -> BTreeMap<String, String> {
        let firsts = counted.firsts.iter();
        firsts
            .map(|f| (f.seat.to_string(), f.reason.clone()))
            .collect()
    };
    let counted = run.facts().filter_map(|fact| match fact {
        Fact::Counted(counted) => Some(said(counted)),
        _ => None,
    });
    let recorded = counted.last().expect("a count");
    assert!(
        recorded.values().all(|r| r.starts_with("It says: Use c")),
        "{recorded:?}"
    );
    let mut changes: Vec<Change> = (0..20)
        .map(|seed| Change {
            seed: Some(seed),
            ..Change::default()
        })
        .collect();
    changes.push(Change {
        without: vec![SeatName::new("fay").expect("a name")],
        ..Change::default()
    });
    changes.push(Change {
        weights: vec![(SeatName::new("codex").expect("a name"), 3.0)],
        ..Change::default()
    });
    for change in changes {
        let found = what_if(&run.records, &change, false).expect("possible");
        let reasons = found.counts.last().map(said).expect("a count");
        for (seat, reason) in reasons {
            assert_eq!(Some(&reason), recorded.get(&seat), "{change:?}");
        }
    }
}

#[test]
fn the_decision_between_open_answers_precedes_the_chair() {
    const QUEUE: &str = "Put a message queue between them.\nConfidence: 0.9";
    let plan = open("How should two services talk?", &["ann", "bob", "cyd"]);
    for (chair, heading) in [
        (
            "Let the services call each other directly.",
            "Recommendation in the words of eve",
        ),
        ("Put a message queue between them", "Recommendation"),
        (
            "Use a shared database.",
            "Recommendation of the chair, against the count",
        ),
    ] {
        let run = run(&plan, |asked| {
            Answer::Text(match (asked.stage.as_str(), asked.seat.as_str()) {
                ("opinions", "cyd") => "Use a shared database.".into(),
                ("opinions", _) => QUEUE.into(),
                ("sameness", _) => grouped(asked),
                ("vote", _) => {
                    let choice = label_of(asked, "Put");
                    json!({"reason": "It decouples.", "choice": choice, "confidence": 0.9})
                        .to_string()
                }
                ("conclude", _) => chair.into(),
                _ => good(asked, "A"),
            })
        });
        let verdict = run.verdict();
        assert_eq!(verdict.form, Outcome::Unanimous, "{}", verdict.answer);
        let decided = "**Decided.** Put a message queue between them. (ann, #2)";
        let heading = format!("**{heading}.** {chair}");
        let (at, then) = (verdict.answer.find(decided), verdict.answer.find(&heading));
        assert!(at.is_some() && at < then, "{}", verdict.answer);
        run.replays();
    }
    // Records follow the rules of their time.
    let mut older = plan;
    older.writing = 2;
    let run = run(&older, |asked| match asked.stage.as_str() {
        "opinions" => Answer::Text(QUEUE.into()),
        _ => Answer::Text(good(asked, "A")),
    });
    assert!(
        !run.verdict().answer.contains("Decided"),
        "{}",
        run.verdict().answer
    );
}

#[test]
fn a_chair_that_cannot_be_compared_is_named() {
    let run = run(&plan(), |asked| match asked.stage.as_str() {
        "conclude" => Answer::Text("Watch the logs for a day.".into()),
        _ => Answer::Text(good(asked, "yes")),
    });
    let wanted = "**Recommendation in the words of eve.** Watch the logs for a day.";
    assert!(
        run.verdict().answer.contains(wanted),
        "{}",
        run.verdict().answer
    );
}

#[test]
fn a_unanimous_vote_has_no_dissent_whatever_the_chair_says() {
    let held = run(&plan(), |asked| {
        Answer::Text(match asked.stage.as_str() {
            "conclude" => json!({"recommendation": "Yes.", "consensus": "c", "support": "s", "dissent": "bob says no", "cites": ["A"]}).to_string(),
            _ => good(asked, "yes"),
        })
    });
    assert_eq!(held.verdict().form, Outcome::Unanimous);
    assert!(
        !held.verdict().answer.contains("issent"),
        "{}",
        held.verdict().answer
    );
}

#[test]
fn private_text_reaches_nobody() {
    for reply in [
        "<think>SECRET no.</think>Yes, it is safe.",
        "SECRET no.</think>Yes, it is safe.",
        "<council>SECRET</council>Yes, it is safe.",
        "<thinking>SECRET no.</thinking>Yes, it is safe.",
        "SECRET no.</thinking>Yes, it is safe.",
        "<scratchpad>SECRET</scratchpad>Yes, <thought>SECRET</thought>it is safe.",
    ] {
        let mut prompts = String::new();
        let run = run(&plan(), |asked| {
            if asked.stage != "opinions" {
                prompts.push_str(&asked.request.prompt.as_text());
            }
            Answer::Text(match asked.stage.as_str() {
                "opinions" => reply.into(),
                "conclude" => "<think>SECRET</think>Yes, go on.".into(),
                _ => good(asked, "yes"),
            })
        });
        assert_eq!(run.verdict().form, Outcome::Unanimous, "{reply}");
        assert_eq!(run.verdict().winner.as_deref(), Some("yes"), "{reply}");
        assert!(!prompts.contains("SECRET"), "{reply}: {prompts}");
        assert!(!run.verdict().answer.contains("SECRET"), "{reply}");
        for (from, body) in messages(&run) {
            assert!(!body.contains("SECRET"), "{reply}: {from}: {body}");
        }
        run.replays();
    }
}

#[test]
fn a_reply_of_nothing_but_private_text_is_empty() {
    let run = run(&plan(), |asked| match asked.stage.as_str() {
        "opinions" => Answer::Text("<think>Yes, it is safe. I should say".into()),
        _ => Answer::Text(good(asked, "yes")),
    });
    let verdict = run.verdict();
    assert_eq!(verdict.form, Outcome::NoQuorum, "{}", verdict.answer);
    assert!(
        verdict.troubles[0].contains("empty response"),
        "{:?}",
        verdict.troubles
    );
    assert!(
        !verdict.answer.contains("I should say"),
        "{}",
        verdict.answer
    );
    let replayed = run.replays();
    assert!(replayed.finished);
}

#[test]
fn labels_are_replaced_by_what_stood_under_them() {
    let plan = open(
        "How should two services talk?",
        &["ann", "bob", "cyd", "dan"],
    );
    let run = run(&plan, |asked| {
        let queue = label_of(asked, "Put");
        let other = if queue == "A" { "B" } else { "A" };
        Answer::Text(match (asked.stage.as_str(), asked.seat.as_str()) {
            ("opinions", "ann") => "Put a queue between them.".into(),
            ("opinions", name) => format!("Let {name} explain: call them directly."),
            ("sameness", _) => "No idea.".into(),
            ("vote", _) => {
                let reason =
                    format!("Answer {queue} gives evidence while Answer {other} does not.");
                json!({"reason": reason, "choice": queue, "confidence": 0.9}).to_string()
            }
            ("conclude", _) => json!({"recommendation": format!("Follow Answer {queue}."),
                "consensus": format!("Clearer than {other}."), "support": "s", "dissent": "none", "cites": [queue]})
            .to_string(),
            _ => good(asked, "A"),
        })
    });
    let reasons: Vec<(String, String)> = run
        .facts()
        .filter_map(|fact| match fact {
            Fact::BallotRead { seat, reason, .. } => Some((seat.to_string(), reason.clone())),
            _ => None,
        })
        .collect();
    let voted: Vec<_> = reasons.iter().filter(|(seat, _)| seat != "ann").collect();
    assert_eq!(voted.len(), 3, "{reasons:?}");
    for (seat, reason) in voted {
        assert!(
            reason.starts_with("The answer of ann gives evidence while the answer of "),
            "{seat}: {reason}"
        );
        assert!(
            !reason.contains("Answer A") && !reason.contains("Answer B"),
            "{reason}"
        );
    }
    let answer = &run.verdict().answer;
    assert!(answer.contains("Follow the answer of ann."), "{answer}");
    assert!(answer.contains("Clearer than “"), "{answer}");
    run.replays();
}

#[test]
fn a_chair_that_copies_its_list_of_fields_has_not_concluded() {
    let run = run(&plan(), |asked| match asked.stage.as_str() {
        "conclude" => {
            let prompt = asked.request.prompt.as_text();
            let from = prompt
                .rfind("\"recommendation\" (")
                .expect("a list of fields");
            Answer::Text(prompt[from..].to_owned())
        }
        _ => Answer::Text(good(asked, "yes")),
    });
    let answer = &run.verdict().answer;
    assert!(
        answer.contains("(in the words of the winning answer)"),
        "{answer}"
    );
    assert!(!answer.contains("what to do or believe"), "{answer}");
}

#[test]
fn a_calculation_is_decided_as_its_value() {
    let mut number = plan();
    number.question = "What is 17*23?".into();
    number.answers = AnswerKind::Number;
    for (said, decided) in [
        ("17*23 is 17*20 + 17*3. So it is 391.", "391"),
        ("391 apples", "391 apples"),
    ] {
        let run = run(&number, |asked| match asked.stage.as_str() {
            "opinions" => Answer::Text(said.into()),
            _ => Answer::Text(good(asked, "391")),
        });
        let wanted = format!("**Decided.** {decided}\n");
        assert!(
            run.verdict().answer.contains(&wanted),
            "{}",
            run.verdict().answer
        );
    }
}

#[test]
fn a_text_field_of_a_reply_keeps_the_other_fields() {
    let reply = json!({"reason": "Mind the <think> tag", "answer": "yes", "confidence": 0.9});
    let run = run(&plan(), |asked| match asked.stage.as_str() {
        "opinions" => Answer::Text(reply.to_string()),
        _ => Answer::Text(good(asked, "yes")),
    });
    assert_eq!(run.verdict().winner.as_deref(), Some("yes"));
}
