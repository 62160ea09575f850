//! Passes: the four strategies differ, every stop is reported, the best result is kept, memory keeps its sources.

use crate::room::{Answer, Run, good, plan, run, run_with, seat};
use kd_core::FailureKind;
use kd_core::deliberation::plan::Strategy;
use kd_core::deliberation::{AnswerKind, Fact, Plan, why};
use kd_core::machine::Input;
use kd_core::view::View;
use kd_core::{Op, TimerId};
use kd_vote::Outcome;

fn iterating(strategy: Strategy) -> Plan {
    let mut plan = plan();
    plan.answers = AnswerKind::Text;
    plan.iteration.enabled = true;
    plan.iteration.strategy = strategy;
    plan.iteration.improvement_threshold = 0.0;
    plan.seats.push(seat("bea", "backup"));
    plan.seats.push(seat("ben", "backup"));
    plan
}

/// Runs a council in which no member agrees with another, and each makes a new point every time.
fn quarrel(plan: &Plan) -> Run {
    let mut turn = 0;
    run(plan, |asked| {
        turn += 1;
        let words = ["alpha", "beta", "gamma", "delta", "omega", "sigma"][turn % 6];
        match asked.stage.as_str() {
            "opinions" | "argue" => Answer::Text(format!(
                "Number {turn} {words} is what {} holds.\nConfidence: 0.7",
                asked.seat
            )),
            "vote" => {
                let other = asked
                    .labels
                    .iter()
                    .find(|l| !l.item.ends_with(&asked.seat))
                    .expect("another");
                Answer::Text(format!(
                    "{{\"choice\": \"{}\", \"reason\": \"r{turn}\", \"confidence\": 0.5}}",
                    other.label
                ))
            }
            _ => Answer::Text(good(asked, words)),
        }
    })
}

fn stages(run: &Run) -> Vec<String> {
    run.facts()
        .filter_map(|f| match f {
            Fact::StageBegan {
                pass,
                depth,
                stage,
                seats,
                ..
            } => Some(format!("{pass}.{depth} {stage} {}", seats.len())),
            _ => None,
        })
        .collect()
}

#[test]
fn the_four_strategies_really_differ() {
    let strategies = [
        Strategy::Refine,
        Strategy::Escalate,
        Strategy::Specialize,
        Strategy::Debate,
    ];
    let runs: Vec<Run> = strategies.iter().map(|s| quarrel(&iterating(*s))).collect();
    let courses: Vec<Vec<String>> = runs.iter().map(stages).collect();
    for (at, course) in courses.iter().enumerate() {
        runs[at].replays();
        assert!(
            course.iter().any(|s| s.starts_with("2.0 opinions")),
            "{:?}: {course:?}",
            strategies[at]
        );
        assert!(
            courses
                .iter()
                .enumerate()
                .all(|(other, c)| other == at || c != course),
            "{:?}: {course:?}",
            strategies[at]
        );
    }
    let opinions = |at: usize| {
        courses[at]
            .iter()
            .find(|s| s.starts_with("2.0 opinions"))
            .cloned()
            .expect("a pass")
    };
    assert_eq!(opinions(1), "2.0 opinions 5", "two more seats joined");
    assert!(
        courses[2].iter().any(|s| s.starts_with("2.1 opinions")),
        "a sub-council sat: {:?}",
        courses[2]
    );
    assert!(
        courses[2].iter().all(|s| !s.contains(".3 ")),
        "none deeper than two: {:?}",
        courses[2]
    );
    assert!(
        courses[3].iter().any(|s| s.starts_with("2.0 argue")),
        "{:?}",
        courses[3]
    );
    let argued = courses[3]
        .iter()
        .filter(|s| s.starts_with("2.0 argue"))
        .count();
    assert!(argued <= 2, "two rounds at most");
}

#[test]
fn a_later_pass_reads_the_seeds_context_and_memory_keeps_its_sources() {
    let plan = iterating(Strategy::Refine);
    let mut turn = 0;
    let mut contexts = Vec::new();
    let run = run(&plan, |asked| {
        turn += 1;
        if asked.stage == "opinions" && turn > 8 {
            contexts.push(asked.request.prompt.history.clone());
        }
        if asked.stage == "compress" {
            return Answer::Fail(FailureKind::Crashed);
        }
        Answer::Text(match asked.stage.as_str() {
            "opinions" => format!("Thing {turn} by {}.", asked.seat),
            _ => good(asked, "ann"),
        })
    });
    assert!(
        contexts
            .iter()
            .any(|c| c.contains("## Iteration 2 Context")
                && c.contains("### Focus for This Iteration")),
        "{contexts:?}"
    );
    let lines: Vec<_> = run
        .facts()
        .filter_map(|f| match f {
            Fact::Remembered { lines, by: None } => Some(lines.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    assert!(
        !lines.is_empty(),
        "sentences are taken out where the seat fails"
    );
    assert!(lines.iter().all(|l| !l.messages.is_empty()), "{lines:?}");
    run.replays();
    // Every remembered line names its source messages.
    let told = why(&View::of(&run.records).report);
    let remembered: Vec<&String> = told
        .iter()
        .filter(|l| l.starts_with("Remembered from #"))
        .collect();
    assert!(!remembered.is_empty(), "{told:?}");
}

#[test]
fn a_seat_sums_up_in_points_that_name_their_sources() {
    let plan = iterating(Strategy::Refine);
    let mut contexts = Vec::new();
    let mut turn = 0;
    let run = run(&plan, |asked| {
        turn += 1;
        if asked.request.prompt.history.contains("## Iteration") {
            contexts.push(asked.request.prompt.history.clone());
        }
        Answer::Text(match asked.stage.as_str() {
            "opinions" => format!("Thing {turn} by {}.", asked.seat),
            "compress" => "{\"points\": [{\"text\": \"They differ on things.\", \"from\": [\"A\", \"B\"]}, {\"text\": \"Made up.\", \"from\": []}]}".into(),
            _ => good(asked, "ann"),
        })
    });
    let lines: Vec<_> = run
        .facts()
        .filter_map(|f| match f {
            Fact::Remembered {
                lines,
                by: Some(by),
            } => Some((lines.clone(), by.to_string())),
            _ => None,
        })
        .collect();
    assert_eq!(lines[0].1, "eve", "no moderator sits: the chair sums up");
    assert_eq!(
        lines[0].0.len(),
        1,
        "what rests on nothing is not remembered"
    );
    assert_eq!(lines[0].0[0].messages.len(), 2);
    assert!(
        contexts
            .iter()
            .any(|c| c.contains("They differ on things.")),
        "the next pass reads it"
    );
    run.replays();
}

#[test]
fn the_reason_of_the_stop_is_told_and_why_tells_it_all() {
    let run = quarrel(&iterating(Strategy::Refine));
    let verdict = run.verdict();
    assert!(!verdict.stopped.is_empty());
    assert!(verdict.passes >= 2, "{}", verdict.stopped);
    let told = why(&View::of(&run.records).report).join("\n");
    for part in [
        "protocol council",
        "counted by plurality",
        &verdict.stopped,
        &verdict.heading,
    ] {
        assert!(told.contains(part), "{part} in\n{told}");
    }
    let report = View::of(&run.records).report;
    assert_eq!(report.trend().len(), verdict.passes as usize);
    assert!(!report.map().claims.is_empty());
}

#[test]
fn time_that_is_over_still_leaves_the_best_so_far() {
    let mut plan = iterating(Strategy::Refine);
    plan.limits.duration_ms = Some(1000);
    for at in 0..60 {
        let mut turn = 0;
        let run = run_with(
            &plan,
            &mut |asked| {
                turn += 1;
                Answer::Text(good(asked, if turn % 2 == 0 { "ann" } else { "bob" }))
            },
            |step| match step {
                s if s == at + 3 => Some(Input::Woke {
                    timer: TimerId::new(1),
                }),
                s if s == at + 6 => Some(Input::Woke {
                    timer: TimerId::new(2),
                }),
                _ => None,
            },
        );
        let verdict = run.verdict();
        assert!(!verdict.answer.is_empty(), "rung at {at}");
        run.replays();
    }
}

#[test]
fn the_king_stops_it_at_any_moment_and_nobody_is_asked_any_more() {
    for at in 1..40 {
        let plan = plan();
        let run = run_with(
            &plan,
            &mut |asked| Answer::Text(good(asked, "yes")),
            |step| (step == at).then_some(Input::Op(Op::Interrupt)),
        );
        let stopped = run.facts().position(|f| matches!(f, Fact::Stopped));
        if let Some(stopped) = stopped {
            let after = run
                .facts()
                .skip(stopped)
                .any(|f| matches!(f, Fact::SeatAsked { .. }));
            assert!(!after, "stopped at {at}");
            run.replays();
        }
    }
}

#[test]
fn a_threshold_that_is_not_reached_is_a_split() {
    let mut plan = plan();
    plan.voting.threshold = Some(0.7);
    let run = run(&plan, |asked| {
        Answer::Text(good(asked, if asked.seat == "cyd" { "no" } else { "yes" }))
    });
    assert_eq!(run.verdict().outcome, Outcome::Split);
    assert_eq!(run.verdict().winner, None);
    run.replays();
}

#[test]
fn the_focus_of_refine_names_the_answer_that_leads() {
    let mut plan = plan();
    plan.iteration.enabled = true;
    plan.iteration.convergence_threshold = 0.99;
    plan.iteration.improvement_threshold = 0.0;
    let mut later = String::new();
    let run = run(&plan, |asked| {
        if asked.request.prompt.history.contains("Iteration 2")
            || asked.request.prompt.turn.contains("Iteration 2")
        {
            later = format!(
                "{}{}",
                asked.request.prompt.history, asked.request.prompt.turn
            );
        }
        Answer::Text(good(asked, if asked.seat == "cyd" { "no" } else { "yes" }))
    });
    run.replays();
    assert!(later.contains("Improve the leading answer"), "{later}");
    assert!(later.contains("It is: “"), "{later}");
}
