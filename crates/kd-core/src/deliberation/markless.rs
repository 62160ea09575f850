//! Removes from a record everything that reveals how the person who asked marks verdicts.

use super::fact::Fact;
use crate::event::Event;

/// How words about the strengths of members begin, in the reasons of a plan.
pub(crate) const STRENGTHS: &str = "auto: how often members are right on ";
/// The first words of a notice about unequal members.
const UNEQUAL: &str = "the members are unequal (";
/// The first words of a notice about marked questions.
const ENOUGH: &str = "certain-enough: ";

/// Returns whether a notice about a plan reveals the user's marks.
fn tells_marks(text: &str) -> bool {
    [STRENGTHS, ENOUGH, UNEQUAL]
        .iter()
        .any(|words| text.starts_with(words))
}

/// Removes from an event everything that reveals how the person who asked marks verdicts. Returns whether anything is
/// left of the event. The weights of votes stay, because counting the votes needs them.
pub fn without_marks(event: &mut Event) -> bool {
    match event {
        Event::Promised { .. } => return false,
        Event::Noticed { text } => return !tells_marks(text),
        Event::Deliberated { fact } => match &mut **fact {
            Fact::PlanMade { plan, notices } | Fact::Opened { plan, notices, .. } => {
                notices.retain(|text| !tells_marks(text));
                if let Some(at) = plan.meta.reasoning.find(STRENGTHS) {
                    // These words are the last of the reasons.
                    plan.meta.reasoning.truncate(at);
                    let rest = plan.meta.reasoning.trim_end_matches([' ', ';', '.']).len();
                    plan.meta.reasoning.truncate(rest);
                }
                if let Some(rule) = &mut plan.enough {
                    rule.forecast = None;
                }
            }
            Fact::AskedEnough { chance, .. } => *chance = None,
            _ => {}
        },
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_marks_are_left_out_and_the_rest_stays() {
        let enough = |chance: Option<f64>| Event::Deliberated {
            fact: Box::new(Fact::AskedEnough {
                asked: Vec::new(),
                spared: Vec::new(),
                chance,
                settled: false,
            }),
        };
        let mut told = enough(Some(0.98));
        assert!(without_marks(&mut told));
        assert_eq!(told, enough(None));
        for (text, stays) in [
            (
                "certain-enough: asks ann: on 250 number questions with marks of the person who asked",
                false,
            ),
            (
                "auto: how often members are right on number questions",
                false,
            ),
            ("members are unequal", true),
        ] {
            let mut event = Event::Noticed { text: text.into() };
            assert_eq!(without_marks(&mut event), stays, "{text}");
        }
    }
}
