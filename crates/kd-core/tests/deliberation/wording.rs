//! Replies in prose: they count, the parsing step is recorded, and an unreadable reply is requested once more.

use crate::room::{Answer, good, plan, run, seat};
use kd_core::deliberation::{AnswerKind, Fact};
use kd_vote::Outcome;
use serde_json::json;

/// Returns the notices in the record about the answers or ballots of a member.
fn notices(run: &crate::room::Run, name: &str) -> Vec<String> {
    run.facts()
        .filter_map(|fact| match fact {
            Fact::AnswerRead { seat, notice, .. } | Fact::BallotRead { seat, notice, .. }
                if seat.as_str() == name =>
            {
                notice.clone()
            }
            _ => None,
        })
        .collect()
}

#[test]
fn a_council_that_answers_in_prose_is_counted() {
    for (prose, step) in [
        ("I checked both paths.\n\nYes, it is safe.", "option words"),
        ("Some reasons.\n\n**Final answer:** yes", "labelled line"),
        (
            "Here you go:\n```json\n{\"answer\": \"yes\", \"reason\": \"r\"}\n```",
            "fenced JSON",
        ),
        ("Sure: {\"answer\": \"yes\"} as asked.", "embedded JSON"),
        ("{'answer': 'yes', 'reason': 'r',}", "repaired JSON"),
    ] {
        let run = run(&plan(), |asked| match asked.stage.as_str() {
            "opinions" => Answer::Text(prose.into()),
            _ => Answer::Text(good(asked, "yes")),
        });
        let verdict = run.verdict();
        assert_eq!(
            verdict.form,
            Outcome::Unanimous,
            "{prose}: {}",
            verdict.answer
        );
        assert_eq!(verdict.winner.as_deref(), Some("yes"), "{prose}");
        let notices = notices(&run, "ann");
        assert!(
            notices.iter().any(|n| n.contains(step)),
            "{prose}: {notices:?}"
        );
        run.replays();
    }
}

#[test]
fn the_prose_of_the_chair_is_kept() {
    let said = "Ship it, but watch the logs for a day.";
    let run = run(&plan(), |asked| match asked.stage.as_str() {
        "conclude" => Answer::Text(said.into()),
        _ => Answer::Text(good(asked, "yes")),
    });
    assert!(
        run.verdict().answer.contains(said),
        "{}",
        run.verdict().answer
    );
    run.replays();
}

#[test]
fn fields_of_the_chair_that_say_nothing_are_left_out() {
    let form = "Evidence **Answer:** yes **Confidence:** 1.0";
    for (recommended, consensus, by_count) in [
        ("0.8", "2.0", true),
        (form, "4", true),
        ("Ship it.", "3", false),
    ] {
        let said = json!({"recommendation": recommended, "consensus": consensus, "support": "It works.", "dissent": "none", "cites": ["A"]});
        let chair = |asked: &crate::room::Asked| match asked.stage.as_str() {
            "conclude" => Answer::Text(said.to_string()),
            _ => Answer::Text(good(asked, "yes")),
        };
        let now = run(&plan(), chair);
        let answer = &now.verdict().answer;
        let counted = answer.contains("(in the words of the winning answer)");
        assert_eq!(counted, by_count, "{answer}");
        assert!(!answer.contains("**Consensus.**"), "{answer}");
        assert_eq!(answer.contains("Ship it."), !by_count, "{answer}");
        now.replays();
        // Records follow the rules of their time.
        let mut older = plan();
        older.writing = 3;
        let then = run(&older, chair);
        assert!(then.verdict().answer.contains(recommended));
        then.replays();
    }
}

#[test]
fn an_unclear_reply_is_asked_for_once_and_then_abstains() {
    for (second, counts) in [("{\"answer\": \"no\"}", true), ("Hard to say.", false)] {
        let mut asked_ann = 0;
        let run = run(&plan(), |asked| {
            if asked.seat == "ann" && asked.stage == "opinions" {
                asked_ann += 1;
                return Answer::Text(match asked_ann {
                    1 => "Yes and no.".into(),
                    _ => {
                        let prompt = asked.request.prompt.as_text();
                        assert!(prompt.contains("Yes and no."), "{prompt}");
                        second.into()
                    }
                });
            }
            let wants = if asked.seat == "ann" { "no" } else { "yes" };
            Answer::Text(good(asked, wants))
        });
        assert_eq!(asked_ann, 2, "once more, and not again");
        let notices = notices(&run, "ann").join("; ");
        let wanted = if counts {
            "asked once more"
        } else {
            "abstains"
        };
        assert!(notices.contains(wanted), "{second}: {notices}");
        run.replays();
    }
}

#[test]
fn a_refusal_is_not_asked_for_again() {
    let mut asked_ann = 0;
    let run = run(&plan(), |asked| {
        if asked.seat == "ann" && asked.stage == "opinions" {
            asked_ann += 1;
            return Answer::Text("I'm sorry, but I can't help with that.".into());
        }
        Answer::Text(good(asked, "yes"))
    });
    assert_eq!(asked_ann, 1);
    let notices = notices(&run, "ann").join("; ");
    assert!(notices.contains("declined"), "{notices}");
    run.replays();
}

#[test]
fn a_ballot_by_the_options_own_words_counts() {
    let run = run(&plan(), |asked| {
        let wants = if asked.seat == "cyd" { "no" } else { "yes" };
        match (asked.seat.as_str(), asked.stage.as_str()) {
            ("ann", "vote") => Answer::Text("{\"choice\": \"yes\"}".into()),
            ("bob", "vote") => {
                let label = asked.labels.iter().find(|l| l.item == "yes");
                let label = label.map(|l| l.label.clone()).unwrap_or_default();
                Answer::Text(format!("I vote for Answer {label}, for its reasons."))
            }
            _ => Answer::Text(good(asked, wants)),
        }
    });
    let ballots: Vec<String> = run
        .facts()
        .filter_map(|fact| match fact {
            Fact::BallotRead { marks, .. } => Some(marks.join(",")),
            _ => None,
        })
        .collect();
    assert_eq!(
        ballots.iter().filter(|b| *b == "yes").count(),
        2,
        "{ballots:?}"
    );
    run.replays();
}

#[test]
fn a_ballot_for_an_open_answer_counts_in_its_own_words() {
    let mut open = plan();
    open.question = "Why is the sky blue?".into();
    open.answers = AnswerKind::Text;
    let (sun, sea) = ("Rayleigh scattering of sunlight.", "It reflects the sea.");
    let in_json = json!({"reason": "it is blue", "answer": sea}).to_string();
    for (ballot, winner) in [
        (
            json!({"choice": sun, "confidence": 0.8}).to_string(),
            Some(sun),
        ),
        ("rayleigh scattering of sunlight".to_owned(), Some(sun)),
        (json!({"choice": sea}).to_string(), Some(sea)),
        // An answer that nobody gave, and one that is not an answer.
        ("Refraction in ice crystals.".to_owned(), None),
        ("-".to_owned(), None),
    ] {
        let run = run(&open, |asked| match asked.stage.as_str() {
            "opinions" if asked.seat == "cyd" => Answer::Text(in_json.clone()),
            "opinions" => Answer::Text(sun.into()),
            "sameness" => Answer::Text("I cannot tell.".into()),
            "open-vote" | "vote" => Answer::Text(ballot.clone()),
            _ => Answer::Text(good(asked, "A")),
        });
        let counted = run.facts().find_map(|fact| match fact {
            Fact::Counted(counted) => Some(counted),
            _ => None,
        });
        let counted = counted.expect("a count");
        let author = counted.winner.map(|at| counted.candidates[at].clone());
        let expected = winner.map(|text| {
            if text == sun {
                "the answer of ann"
            } else {
                "the answer of cyd"
            }
        });
        assert_eq!(author.as_deref(), expected, "{ballot}");
        run.replays();
    }
}

#[test]
fn a_member_asked_again_for_its_ballot_sees_the_open_answers() {
    let mut open = plan();
    open.question = "Why is the sky blue?".into();
    open.answers = AnswerKind::Text;
    let mut seen = 0;
    let run = run(&open, |asked| match asked.stage.as_str() {
        "opinions" if asked.seat == "cyd" => Answer::Text("It reflects the sea.".into()),
        "opinions" => Answer::Text("Sunlight is scattered, says ann.".into()),
        "open-vote" | "vote" => {
            let prompt = asked.request.prompt.as_text();
            if !prompt.contains("Your reply to it:") {
                return Answer::Text("The one about the sea, I suppose.".into());
            }
            seen += 1;
            let place = |words: &str| prompt.find(words).unwrap_or_else(|| panic!("{prompt}"));
            assert!(place("reflects the sea") < place("Your reply to it:"));
            assert!(prompt.contains("scattered, says member "), "{prompt}");
            let sea = prompt[..place("reflects the sea")].rfind("Answer ");
            let label = sea.and_then(|at| prompt[at..].chars().nth("Answer ".len()));
            Answer::Text(json!({"choice": label.expect("a label").to_string()}).to_string())
        }
        _ => Answer::Text(good(asked, "A")),
    });
    assert_eq!(seen, 3);
    let winner = run.verdict().winner.clone();
    assert_eq!(winner.as_deref(), Some("It reflects the sea."));
    run.replays();
}

#[test]
fn a_record_without_a_version_of_reading_is_read_as_before() {
    let mut old = plan();
    old.reading = 0;
    let prose = "Checked.\n\n```json\n{\"answer\": \"yes\"}\n```";
    let run = run(&old, |asked| match asked.stage.as_str() {
        "opinions" if asked.seat == "ann" => Answer::Text(prose.into()),
        _ => Answer::Text(good(asked, "yes")),
    });
    let notices = notices(&run, "ann").join("; ");
    assert!(notices.contains("not in the form asked for"), "{notices}");
    assert!(
        !serde_json::to_string(&old)
            .expect("JSON")
            .contains("reading")
    );
    run.replays();
}

#[test]
fn equal_open_answers_stand_once_and_need_no_vote() {
    let mut open = plan();
    open.answers = AnswerKind::Text;
    let run = run(&open, |asked| match asked.stage.as_str() {
        "opinions" if asked.seat == "ann" => {
            Answer::Text("**Use a queue.**\nConfidence: 0.8".into())
        }
        "opinions" => Answer::Text("Use a queue.".into()),
        _ => Answer::Text(good(asked, "yes")),
    });
    let counted = run.facts().find_map(|fact| match fact {
        Fact::Counted(counted) => Some(counted.clone()),
        _ => None,
    });
    let counted = counted.expect("a count");
    assert_eq!(counted.candidates.len(), 1, "{:?}", counted.candidates);
    assert_eq!(counted.form, Outcome::Unanimous);
    let voted = run
        .facts()
        .any(|fact| matches!(fact, Fact::BallotRead { .. }));
    assert!(!voted, "all answers alike need no vote");
    run.replays();
}

#[test]
fn a_changed_mind_is_progress() {
    let mut again = plan();
    again.iteration.enabled = true;
    again.iteration.max_iterations = 3;
    again.iteration.convergence_threshold = 0.99;
    again.iteration.improvement_threshold = -1.0;
    again.seats.insert(3, seat("dan", "skeptic"));
    let mut opinions = 0;
    let run = run(&again, |asked| {
        opinions += usize::from(asked.stage == "opinions");
        // First two against two, then three against one; no answer is new.
        let changed = asked.seat == "cyd" && opinions > 4;
        let wants = match asked.seat.as_str() {
            "cyd" if !changed => "no",
            "dan" => "no",
            _ => "yes",
        };
        Answer::Text(good(asked, wants))
    });
    let reasons: Vec<String> = run
        .facts()
        .filter_map(|fact| match fact {
            Fact::IterationDecided(decision) => Some(decision.reason.clone()),
            _ => None,
        })
        .collect();
    assert!(reasons.len() >= 2, "{reasons:?}");
    assert!(!reasons[1].contains("no progress"), "{reasons:?}");
    run.replays();
}

#[test]
fn checkers_of_facts_and_the_devils_advocate_have_work_of_their_own_that_voters_read() {
    let mut plan = plan();
    plan.seats.insert(3, seat("fay", "fact-checker"));
    plan.seats.insert(4, seat("dan", "devil-advocate"));
    let mut prompts = std::collections::BTreeMap::new();
    let run = run(&plan, |asked| {
        let text = format!(
            "{}\n{}",
            asked.request.prompt.history, asked.request.prompt.turn
        );
        prompts.insert((asked.stage.clone(), asked.seat.clone()), text);
        let answer = if asked.seat == "ann" { "no" } else { "yes" };
        let found = match asked.seat.as_str() {
            "fay" => "QUESTIONABLE: the lock is held",
            "dan" => "it fails after a crash",
            _ => "w",
        };
        let good = good(asked, answer);
        Answer::Text(match serde_json::from_str::<serde_json::Value>(&good) {
            Ok(mut value) if asked.stage == "review" => {
                for label in &asked.labels {
                    value[label.label.as_str()]["weakness"] = found.into();
                }
                value.to_string()
            }
            _ => good,
        })
    });
    run.replays();
    let of = |stage: &str, seat: &str| {
        let key = (stage.to_owned(), seat.to_owned());
        prompts.get(&key).cloned().unwrap_or_default()
    };
    assert!(of("review", "fay").contains("VERIFIED"), "{prompts:?}");
    assert!(of("review", "dan").contains("strongest case against"));
    assert!(!of("review", "ann").contains("VERIFIED"));
    let voter = of("vote", "bob");
    assert!(voter.contains("QUESTIONABLE: the lock is held"), "{voter}");
    assert!(voter.contains("it fails after a crash"), "{voter}");
}
