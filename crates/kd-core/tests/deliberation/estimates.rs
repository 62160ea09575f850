//! Estimates: the trimmed mean decides, whatever the number of members.

use crate::room::{Answer, Run, plan, run, seat};
use kd_core::deliberation::fact::Counted;
use kd_core::deliberation::{AnswerKind, Fact, Plan};
use kd_vote::Outcome;
use serde_json::json;

fn delphi(members: usize) -> Plan {
    let mut plan = plan();
    plan.protocol = "delphi".into();
    plan.answers = AnswerKind::parse("number").expect("known");
    plan.seats = (0..members)
        .map(|n| seat(&format!("m{n}"), "opinion-giver"))
        .collect();
    plan
}

fn estimated(plan: &Plan, numbers: &[f64]) -> Run {
    let held = run(plan, |asked| {
        let at: usize = asked.seat[1..].parse().expect("a number");
        let reply = json!({"reason": "so", "answer": numbers[at], "confidence": 0.8});
        Answer::Text(reply.to_string())
    });
    held.replays();
    held
}

fn counted(held: &Run) -> Counted {
    let of = |fact: &Fact| match fact {
        Fact::Counted(counted) => Some(counted.clone()),
        _ => None,
    };
    held.facts().filter_map(of).last().expect("a count")
}

/// The mean without a fifth at each end; of fewer than five numbers, their median.
fn middle(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = match sorted.len() {
        few @ ..5 => (few - 1) / 2,
        many => many / 5,
    };
    let kept = &sorted[cut..sorted.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

#[test]
fn the_trimmed_mean_is_the_only_winner() {
    let numbers = [40.0, 60.0, 50.0, 44.0, 1000.0, 52.0, 3.0, 48.0, 56.0];
    for members in 1..=numbers.len() {
        let numbers = &numbers[..members];
        let held = estimated(&delphi(members), numbers);
        let counted = counted(&held);
        assert_eq!(counted.winners, [0], "{members}");
        let decided: f64 = counted.candidates[0].parse().expect("a number");
        let wanted = middle(numbers);
        assert!(
            (decided - wanted).abs() < 1e-3,
            "{members}: {decided} for {wanted}"
        );
        assert_eq!(counted.tie_path, Vec::<String>::new(), "{members}");
        let verdict = held.verdict();
        let decides = [Outcome::Unanimous, Outcome::Majority, Outcome::Plurality];
        assert!(
            decides.contains(&verdict.outcome),
            "{members}: {:?}",
            verdict.outcome
        );
        assert!(verdict.answer.contains(&counted.candidates[0]), "{members}");
        // Whoever is outside of the middle half dissents.
        let outside = verdict.dissent.len();
        assert_eq!(
            outside as u64,
            counted.voters - counted.backers,
            "{members}"
        );
    }
}

#[test]
fn equal_estimates_are_unanimous_and_others_are_not() {
    let outcome = |numbers: &[f64]| {
        let held = estimated(&delphi(numbers.len()), numbers);
        (held.verdict().outcome, counted(&held).candidates[0].clone())
    };
    assert_eq!(outcome(&[7.0, 7.0, 7.0]), (Outcome::Unanimous, "7".into()));
    assert_eq!(
        outcome(&[1.0, 1.0, 9.0, 9.0]),
        (Outcome::Majority, "5".into())
    );
    assert_eq!(
        outcome(&[40.0, 50.0, 60.0]),
        (Outcome::Plurality, "50".into())
    );
}

#[test]
fn half_of_the_members_or_fewer_decide_nothing() {
    let held = run(&delphi(4), |asked| match asked.seat.as_str() {
        "m0" | "m1" => Answer::Text(json!({"answer": 40}).to_string()),
        _ => Answer::Text("I cannot help with that.".into()),
    });
    held.replays();
    assert_eq!(counted(&held).winner, None);
    assert_eq!(held.verdict().outcome, Outcome::NoQuorum);
}

#[test]
fn older_records_of_estimates_are_counted_as_they_were() {
    let mut plan = delphi(3);
    plan.reading = 2;
    let held = estimated(&plan, &[40.0, 50.0, 60.0]);
    assert_eq!(counted(&held).source, "answers");
    assert_eq!(held.verdict().outcome, Outcome::Split);
}
