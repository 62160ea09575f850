//! A what-if result equals what would really have happened: recomputed from recorded replies, compared with a real run
//! of the changed plan by members that say the same.

use crate::room::{Answer, Asked, Run, good, plan, run, seat};
use kd_core::deliberation::{
    AnswerKind, BadChange, Change, Counted, Fact, Plan, Robustness, Verdict, WhatIf, what_if,
};
use kd_core::{FailureKind, SeatName};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const RULES: &[&str] = &[
    "plurality",
    "majority",
    "super-majority",
    "weighted",
    "borda",
    "schulze",
    "irv",
    "approval",
    "copeland",
    "score",
    "veto",
];
const PROTOCOLS: &[&str] = &[
    "council",
    "vote",
    "peer-review",
    "round-table",
    "debate",
    "solo",
];

/// A seeded number generator.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

fn name(text: &str) -> SeatName {
    SeatName::new(text).expect("a name")
}

/// Returns a member's reply, determined by the member and the request, not by labels: it names candidates.
pub(crate) fn says(asked: &Asked, world: u64) -> Answer {
    wanting(asked, world, &["yes", "no"])
}

/// As [`says`]; each member wants one of these answers.
pub(crate) fn wanting(asked: &Asked, world: u64, answers: &[&str]) -> Answer {
    let mut hash = world;
    for byte in asked.seat.bytes().chain(asked.stage.bytes()) {
        hash = hash.wrapping_mul(31).wrapping_add(u64::from(byte));
    }
    let mut dice = Dice(hash);
    dice.roll(2);
    let wants = answers[dice.roll(answers.len())];
    let fails = dice.roll(12) == 0 && asked.stage != "conclude";
    if fails {
        return Answer::Fail(FailureKind::Crashed);
    }
    if dice.roll(12) == 0 && asked.stage == "vote" {
        return Answer::Text("I would rather not say.".into());
    }
    let text = good(asked, wants);
    Answer::Text(match serde_json::from_str(&text) {
        Ok(Value::Object(reply)) if !asked.labels.is_empty() => by_meaning(asked, reply, world),
        _ => text,
    })
}

/// Returns a reply that marks what a member prefers, whatever its label.
fn by_meaning(asked: &Asked, mut reply: Map<String, Value>, world: u64) -> String {
    let likes = |item: &str| {
        let seed = asked
            .seat
            .bytes()
            .chain(item.bytes())
            .fold(world, |hash, byte| {
                hash.wrapping_mul(131).wrapping_add(u64::from(byte))
            });
        Dice(seed).roll(1000)
    };
    let mut labels = asked.labels.clone();
    labels.sort_by_key(|label| std::cmp::Reverse(likes(&label.item)));
    let ranked: Vec<&String> = labels.iter().map(|label| &label.label).collect();
    for (field, value) in &mut reply {
        *value = match field.as_str() {
            "choice" => json!(ranked[0]),
            "ranking" => json!(ranked),
            "approve" => json!(ranked[..ranked.len().min(1 + likes("approve") % 2)]),
            "scores" => labels
                .iter()
                .map(|l| (l.label.clone(), json!(likes(&l.item) % 6)))
                .collect::<Map<_, _>>()
                .into(),
            _ => match asked.labels.iter().find(|l| l.label == *field) {
                Some(label) => {
                    json!({"rating": 1 + likes(&label.item) % 10, "weakness": label.item})
                }
                None => continue,
            },
        };
    }
    Value::Object(reply).to_string()
}

/// Draws the plan of a case.
fn case(dice: &mut Dice) -> Plan {
    let mut plan = plan();
    PROTOCOLS[dice.roll(PROTOCOLS.len())].clone_into(&mut plan.protocol);
    RULES[dice.roll(RULES.len())].clone_into(&mut plan.voting.method);
    for extra in ["dan", "fay"].iter().take(dice.roll(3)) {
        plan.seats.insert(2, seat(extra, "opinion-giver"));
    }
    plan.seed = dice.roll(1000) as u64;
    plan.limits.tokens = None;
    plan.limits.calls = None;
    plan.iteration.enabled = dice.roll(4) == 0;
    plan.answers =
        AnswerKind::parse(["yes-no", "choice:yes,no,maybe"][dice.roll(2)]).expect("known");
    plan
}

fn change(dice: &mut Dice, plan: &Plan) -> Change {
    let someone = |dice: &mut Dice| plan.seats[dice.roll(plan.seats.len() - 1)].name().clone();
    let mut change = Change::default();
    match dice.roll(5) {
        0 => change.without.push(someone(dice)),
        1 => change.rule = Some(RULES[dice.roll(RULES.len())].to_owned()),
        2 => change.seed = Some(dice.roll(1000) as u64),
        3 => change
            .weights
            .push((someone(dice), [0.0, 0.5, 2.0, 5.0][dice.roll(4)])),
        _ => {
            change.without.push(someone(dice));
            change.seed = Some(dice.roll(1000) as u64);
        }
    }
    change
}

/// Returns the plan with the change, as a user would write it to run it for real.
fn changed(plan: &Plan, change: &Change) -> Plan {
    let mut plan = plan.clone();
    plan.seats.retain(|s| !change.without.contains(s.name()));
    for (name, weight) in &change.weights {
        for seat in plan.seats.iter_mut().filter(|s| s.name() == name) {
            seat.member.weight = *weight;
        }
    }
    if let Some(rule) = &change.rule {
        let rule = kd_vote::find(rule).expect("a rule");
        rule.name.clone_into(&mut plan.voting.method);
    }
    plan.seed = change.seed.unwrap_or(plan.seed);
    plan
}

fn counts(run: &Run) -> Vec<Counted> {
    let counts = run.facts().filter_map(|fact| match fact {
        Fact::Counted(counted) => Some(counted.clone()),
        _ => None,
    });
    counts.collect()
}

/// Returns everything of a count except the reasons' texts, which name labels.
fn compared(counts: &[Counted]) -> Vec<Counted> {
    let mut counts = counts.to_vec();
    for counted in &mut counts {
        counted.abstained.sort();
        for first in &mut counted.firsts {
            first.reason.clear();
        }
    }
    counts
}

fn agrees(found: &WhatIf, real: &Run, told: &str) {
    assert_eq!(compared(&found.counts), compared(&counts(real)), "{told}");
    let decided = found.decided.as_ref().expect("a decision");
    let verdict: &Verdict = real.verdict();
    assert_eq!(decided.outcome, verdict.outcome, "{told}");
    assert_eq!(decided.form, verdict.form, "{told}");
    assert_eq!(decided.heading, verdict.heading, "{told}");
    assert_eq!(decided.support, verdict.support, "{told}");
    let stands = |d: &[kd_core::deliberation::Dissenter]| -> Vec<(SeatName, String)> {
        d.iter()
            .map(|d| (d.seat.clone(), d.stands_for.clone()))
            .collect()
    };
    assert_eq!(stands(&decided.dissent), stands(&verdict.dissent), "{told}");
    assert_eq!(decided.passes, verdict.passes, "{told}");
    assert_eq!(decided.best_pass, verdict.best_pass, "{told}");
}

#[test]
fn what_would_have_been_is_what_happens() {
    let (mut compared, mut stopped) = (0, BTreeMap::new());
    let mut by_kind: BTreeMap<&str, usize> = BTreeMap::new();
    for number in 0..6_000_u64 {
        if compared >= 1_050 {
            break;
        }
        let mut dice = Dice(number);
        let plan = case(&mut dice);
        let then = run(&plan, |asked| says(asked, number));
        let change = change(&mut dice, &plan);
        let told = format!(
            "case {number}: {} {} {change:?}",
            plan.protocol, plan.voting.method
        );
        let found = what_if(&then.records, &change, false).expect(&told);
        if let Some(why) = found.stopped {
            let why: String = why.chars().filter(|c| !c.is_numeric()).take(28).collect();
            *stopped.entry(why).or_insert(0) += 1;
            continue;
        }
        let real = run(&changed(&plan, &change), |asked| says(asked, number));
        agrees(&found, &real, &told);
        compared += 1;
        let kind = match &change {
            c if !c.without.is_empty() => "without",
            c if c.rule.is_some() => "rule",
            c if c.seed.is_some() => "seed",
            _ => "weights",
        };
        *by_kind.entry(kind).or_default() += 1;
    }
    // Shown with `--nocapture`.
    println!("{compared} cases compared; stopped: {stopped:?}");
    assert!(compared >= 1_000, "{compared} cases; stopped: {stopped:#?}");
    for kind in ["without", "rule", "seed", "weights"] {
        assert!(by_kind.get(kind).is_some_and(|n| *n > 50), "{by_kind:?}");
    }
}

#[test]
fn nothing_changed_is_what_was() {
    for number in 0..200 {
        let mut dice = Dice(number);
        let plan = case(&mut dice);
        let then = run(&plan, |asked| says(asked, number));
        let found = what_if(&then.records, &Change::default(), false).expect("a plan");
        assert_eq!(found.stopped, None, "case {number}");
        assert_eq!(found.asked_otherwise, 0, "case {number}");
        assert_eq!(found.counts, counts(&then), "case {number}");
        agrees(&found, &then, &format!("case {number}"));
    }
}

/// Runs three members with these votes.
fn votes(protocol: &str, votes: [&'static str; 3]) -> Run {
    let mut plan = plan();
    protocol.clone_into(&mut plan.protocol);
    let who = ["ann", "bob", "cyd"];
    run(&plan, |asked| {
        let at = who.iter().position(|w| *w == asked.seat);
        Answer::Text(good(asked, at.map_or("yes", |at| votes[at])))
    })
}

fn robust(run: &Run) -> Robustness {
    let found = what_if(&run.records, &Change::default(), true).expect("a plan");
    found.robustness.expect("a count")
}

#[test]
fn a_council_of_three_hangs_on_who_makes_the_majority() {
    let close = robust(&votes("council", ["yes", "yes", "no"]));
    assert_eq!(close.rules.len(), kd_vote::RULES.len());
    assert_eq!(close.winner.as_deref(), Some("yes"));
    let margin = close.margin.clone().expect("a margin");
    assert_eq!((margin.ballots, margin.of, margin.exact), (1, 3, true));
    assert_eq!(margin.winner, "no");
    let sentence = close.sentence().expect("a winner");
    let holds = format!(
        "yes holds under {} of {} rules ({} cannot count these ballots, most count ballots for one answer alike); ",
        close.holds,
        close.rules.len(),
        close.rules.iter().filter(|by| by.voters == 0).count()
    );
    assert!(sentence.starts_with(&holds), "{sentence}");
    assert!(
        sentence.ends_with("; changing 1 of 3 ballots elects another"),
        "{sentence}"
    );
    let sure = robust(&votes("council", ["yes", "yes", "yes"]));
    assert_eq!(sure.hangs_on, []);
}

#[test]
fn a_reply_that_does_not_exist_stops_the_course() {
    let then = votes("council", ["yes", "yes", "no"]);
    // A choice is not a ranking: members would have been asked for another kind of ballot.
    let change = Change {
        rule: Some("schulze".into()),
        ..Change::default()
    };
    let found = what_if(&then.records, &change, false).expect("a plan");
    assert_eq!(found.decided, None);
    let why = found.stopped.expect("a reason");
    assert!(why.contains("never asked"), "{why}");
}

#[test]
fn changes_that_cannot_be_made_are_refused() {
    let then = votes("vote", ["yes", "yes", "no"]);
    let fails = |change: Change| what_if(&then.records, &change, false).expect_err("refused");
    let without = |names: &[&str]| Change {
        without: names.iter().map(|n| name(n)).collect(),
        ..Change::default()
    };
    assert!(matches!(
        fails(without(&["zoe"])),
        BadChange::NoMember { .. }
    ));
    assert_eq!(
        fails(without(&["ann", "bob", "cyd"])),
        BadChange::NobodyLeft
    );
    let rule = Some("coin".to_owned());
    assert_eq!(
        fails(Change {
            rule,
            ..Change::default()
        }),
        BadChange::NoRule("coin".into())
    );
    for weight in [-1.0, f64::NAN, f64::INFINITY] {
        let weights = vec![(name("ann"), weight)];
        assert!(matches!(
            fails(Change {
                weights,
                ..Change::default()
            }),
            BadChange::BadWeight(_)
        ));
    }
    assert_eq!(
        what_if(&then.records[2..], &Change::default(), false),
        Err(BadChange::NoPlan)
    );
}
