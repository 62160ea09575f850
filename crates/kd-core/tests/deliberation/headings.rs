//! The heading of each protocol says what was counted: votes of the council, answers of one member, estimates.

use crate::room::{Answer, plan, run};
use kd_core::FailureKind;
use kd_core::deliberation::protocols::PROTOCOLS;
use kd_core::deliberation::{AnswerKind, Plan};
use serde_json::json;

/// What the members answer, in turn; `None` is a reply that cannot be read.
const CASES: [(&str, &[Option<u32>]); 5] = [
    ("agree", &[Some(7), Some(7), Some(7)]),
    ("two", &[Some(7), Some(7), Some(9)]),
    ("differ", &[Some(7), Some(8), Some(9)]),
    ("silent", &[Some(7), None, Some(7)]),
    ("nobody", &[None, None, None]),
];

const HEADINGS: &str = "
council agree: The council is unanimous (3 of 3)
council two: A majority of the council (2 of 3)
council differ: The council is split (1 of 3)
council silent: All votes agree (2 of 2, 1 abstained)
council nobody: No quorum: too few readable votes to decide
council failed: Degraded: seats failed on the way; of those who voted: unanimous (2 of 2, 1 abstained)
solo agree: One answer, without a council
solo two: One answer, without a council
solo differ: One answer, without a council
solo silent: One answer, without a council
solo nobody: No quorum: too few readable answers to decide
solo failed: One answer, without a council
sample-vote agree: All answers of ann agree (2 of 2)
sample-vote two: All answers of ann agree (2 of 2)
sample-vote differ: The answers of ann are split (1 of 3)
sample-vote silent: All answers of ann agree (2 of 2, 1 abstained)
sample-vote nobody: No quorum: too few readable answers to decide
sample-vote failed: All answers of ann agree (2 of 2)
vote agree: All votes agree (2 of 2, 1 not needed)
vote two: All votes agree (2 of 2, 1 not needed)
vote differ: The council is split (1 of 3)
vote silent: All votes agree (2 of 2, 1 abstained)
vote nobody: No quorum: too few readable votes to decide
vote failed: All votes agree (2 of 2, 1 not needed)
cascade agree: All members that were asked agree (2 of 2)
cascade two: All members that were asked agree (2 of 2)
cascade differ: The council is split (1 of 3)
cascade silent: All votes agree (2 of 2, 1 abstained)
cascade nobody: No quorum: too few readable votes to decide
cascade failed: All members that were asked agree (2 of 2)
certain-enough agree: All members that were asked agree (2 of 2)
certain-enough two: All members that were asked agree (2 of 2)
certain-enough differ: The council is split (1 of 3)
certain-enough silent: All votes agree (2 of 2, 1 abstained)
certain-enough nobody: No quorum: too few readable votes to decide
certain-enough failed: All members that were asked agree (2 of 2)
gated-debate agree: The council is unanimous (3 of 3)
gated-debate two: A majority of the council (2 of 3)
gated-debate differ: The council is split (1 of 3)
gated-debate silent: All votes agree (2 of 2, 1 abstained)
gated-debate nobody: No quorum: too few readable votes to decide
gated-debate failed: Degraded: seats failed on the way; of those who voted: unanimous (2 of 2, 1 abstained)
debate agree: The council is unanimous (3 of 3)
debate two: A majority of the council (2 of 3)
debate differ: The council is split (1 of 3)
debate silent: All votes agree (2 of 2, 1 abstained)
debate nobody: No quorum: too few readable votes to decide
debate failed: Degraded: seats failed on the way; of those who voted: unanimous (2 of 2, 1 abstained)
round-table agree: The council is unanimous (3 of 3)
round-table two: A majority of the council (2 of 3)
round-table differ: The council is split (1 of 3)
round-table silent: All votes agree (2 of 2, 1 abstained)
round-table nobody: No quorum: too few readable votes to decide
round-table failed: Degraded: seats failed on the way; of those who voted: unanimous (2 of 2, 1 abstained)
collective-improvement agree: The council is unanimous (3 of 3)
collective-improvement two: A majority of the council (2 of 3)
collective-improvement differ: The council is split (1 of 3)
collective-improvement silent: All votes agree (2 of 2, 1 abstained)
collective-improvement nobody: No quorum: too few readable votes to decide
collective-improvement failed: Degraded: seats failed on the way; of those who voted: unanimous (2 of 2, 1 abstained)
peer-review agree: The council is unanimous (3 of 3)
peer-review two: A majority of the council (2 of 3)
peer-review differ: A majority of the council (2 of 3)
peer-review silent: All votes agree (2 of 2, 1 abstained)
peer-review nobody: No quorum: too few readable votes to decide
peer-review failed: Degraded: seats failed on the way; of those who voted: unanimous (2 of 2, 1 abstained)
layers agree: The council is unanimous (3 of 3)
layers two: A majority of the council (2 of 3)
layers differ: The council is split (1 of 3)
layers silent: All votes agree (2 of 2, 1 abstained)
layers nobody: No quorum: too few readable votes to decide
layers failed: Degraded: seats failed on the way; of those who voted: unanimous (2 of 2, 1 abstained)
delphi agree: All estimates are equal (3 of 3)
delphi two: The median of 3 estimates (2 in the middle half)
delphi differ: The median of 3 estimates (1 in the middle half)
delphi silent: All estimates are equal (2 of 2, 1 abstained)
delphi nobody: No quorum: too few readable estimates to decide
delphi failed: Degraded: seats failed on the way; all estimates are equal (2 of 2, 1 abstained)
red-team agree: One answer, which other members checked
red-team two: One answer, which other members checked
red-team differ: A majority of the council (2 of 3)
red-team silent: No quorum: too few readable votes to decide
red-team nobody: No quorum: too few readable votes to decide
red-team failed: Degraded: seats failed on the way; one answer, which other members checked
";

fn number(protocol: &str) -> Plan {
    let mut plan = plan();
    plan.protocol = protocol.into();
    plan.question = "How many?".into();
    plan.answers = AnswerKind::parse("number").expect("known");
    plan.limits.calls = None;
    plan.limits.tokens = None;
    plan
}

/// Returns the heading if members say these numbers; with `fails`, the chair's first call fails.
fn heading(protocol: &str, says: &[Option<u32>], fails: bool) -> String {
    let plan = number(protocol);
    let mut samples = 0;
    let held = run(&plan, |asked| {
        if fails && asked.seat == "cyd" {
            return Answer::Fail(FailureKind::Crashed);
        }
        let at = match (asked.stage.as_str(), asked.seat.as_str()) {
            ("rebut", _) => 1,
            ("samples", _) => {
                samples += 1;
                samples - 1
            }
            (_, "ann") => 0,
            (_, "bob") => 1,
            _ => 2,
        };
        let Some(wants) = says[at % says.len()] else {
            return Answer::Text("Hm.".into());
        };
        let wants = wants.to_string();
        let label = asked.labels.iter().find(|l| l.item == wants);
        let label = label.or(asked.labels.first()).map(|l| &l.label);
        Answer::Text(match asked.stage.as_str() {
            "vote" | "open-vote" => json!({"reason": "r", "choice": label}).to_string(),
            "review" => {
                let all = asked.labels.iter();
                let mut review: serde_json::Map<_, _> = all
                    .map(|l| (l.label.clone(), json!({"rating": 5, "weakness": "w"})))
                    .collect();
                let mut order: Vec<&String> = asked.labels.iter().map(|l| &l.label).collect();
                order.sort_by_key(|l| Some(*l) != label);
                review.insert("ranking".into(), json!(order));
                json!(review).to_string()
            }
            "attack" => json!({"defects": ["It is too low."]}).to_string(),
            "conclude" => "So it is.".into(),
            _ => json!({"reason": "r", "answer": wants.parse::<u32>().unwrap_or(0), "confidence": 0.8})
                .to_string(),
        })
    });
    held.replays();
    held.verdict().heading.clone()
}

#[test]
fn headings_say_what_was_counted() {
    let mut table = String::from("\n");
    for protocol in PROTOCOLS {
        for (name, says) in CASES {
            let heading = heading(protocol.name, says, false);
            table.push_str(&format!("{} {name}: {heading}\n", protocol.name));
        }
        let failed = heading(protocol.name, CASES[1].1, true);
        table.push_str(&format!("{} failed: {failed}\n", protocol.name));
    }
    for line in table.lines() {
        let is = |name: &str| line.starts_with(&format!("{name} "));
        if is("delphi") || is("solo") || is("sample-vote") {
            for word in [
                "plurality, no majority",
                "The council",
                "of the council",
                "votes",
            ] {
                assert!(
                    !line.contains(word) || is("sample-vote") && word.starts_with("plur"),
                    "{line}"
                );
            }
        }
    }
    assert_eq!(table, HEADINGS);
}

#[test]
fn older_records_keep_their_headings() {
    let mut older = number("delphi");
    older.writing = 2;
    let held = run(&older, |asked| {
        let says = if asked.seat == "ann" { 7 } else { 9 };
        Answer::Text(json!({"reason": "r", "answer": says, "confidence": 0.8}).to_string())
    });
    assert!(held.verdict().heading.contains("of the council"));
}
