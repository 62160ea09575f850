//! Learns from the user's marks in which order to ask members, and when enough have answered.
//!
//! Input: the members of a plan, and marks. Output: an [`Enough`], the weights of the members' votes, and a sentence for
//! the user.

use crate::deliberation::plan::Seat;
use crate::roles::Duty;
use kd_eval::auto::Strength;
use kd_eval::enough::{Aim, Enough, MARGIN, QUESTIONS_MIN};
use kd_eval::marks::Learned;

/// The input from which the rule is learned, and its requirement.
pub(super) struct Asked<'a> {
    /// The user's marks about the members that give opinions.
    pub(super) learned: &'a Learned,
    /// Whether each member's strength is configured or measured by marks of this kind.
    pub(super) measured: bool,
    /// Whether all marks were imported.
    pub(super) imported: bool,
    /// The kind of question.
    pub(super) kind: &'a str,
    /// The chance of being right that is enough; `None` leaves it to the margin.
    pub(super) certainty: Option<f64>,
    /// The seed that splits the marks.
    pub(super) seed: u64,
}

/// Learns the rule for the members that give opinions, and sets the weights of their votes.
pub(super) fn rule(seats: &mut [Seat], asked: &Asked<'_>) -> (Enough, String) {
    let opining: Vec<&mut Seat> = seats.iter_mut().filter(|s| s.has(Duty::Opine)).collect();
    let aim = asked.certainty.map_or(Aim::Margin(MARGIN), Aim::Chance);
    let learned = asked.learned.enough(&costs(&opining), aim, asked.seed);
    let (rule, told) = match learned {
        Some(rule) => {
            let told = learned_words(&rule, &opining, asked);
            (rule, told)
        }
        None => {
            let rule = by_strength(&opining, asked.learned, asked.measured);
            let told = format!(
                "members are asked until no missing answer can change the leader; with {} marked {} questions that \
                 these members answered under `--protocol vote`, and whose right answer is known, it stops once the leader is likely enough to be right \
                 ({} so far)",
                QUESTIONS_MIN,
                asked.kind,
                asked.learned.rows.len()
            );
            (rule, told)
        }
    };
    for (seat, weight) in opining.into_iter().zip(&rule.weights) {
        seat.member.weight = *weight as f64 / 1e9;
    }
    (rule, told)
}

/// Describes a rule that was learned.
fn learned_words(rule: &Enough, seats: &[&mut Seat], asked: &Asked<'_>) -> String {
    let names: Vec<&str> = rule
        .order
        .iter()
        .map(|at| seats[*at].name().as_str())
        .collect();
    let Some(forecast) = &rule.forecast else {
        return format!("members are asked in the order {}", names.join(", "));
    };
    let (low, high) = forecast.calls_interval;
    let until = match asked.certainty {
        Some(chance) => format!(
            "until the leader is right with a chance of {:.0} %",
            chance * 100.0
        ),
        None => "until asking all would gain at most half a point".to_owned(),
    };
    let gain = match forecast.loss > 0.0 {
        true => format!(
            "{:.1} points fewer are right than if all were asked",
            forecast.loss * 100.0
        ),
        false => "as many are right as if all were asked".to_owned(),
    };
    format!(
        "asks {}, in this order, {until}: on {} {} questions {} that takes {:.1} of {} members \
         (95 %: {:.1} to {:.1}), and {gain} (95 %: at most {:.1} points fewer)",
        names.join(", "),
        forecast.questions,
        asked.kind,
        match asked.imported {
            true => "with imported marks",
            false => "with marks of the person who asked",
        },
        forecast.calls,
        names.len(),
        low.max(1.0),
        high,
        (forecast.loss_most * 100.0).max(0.0),
    )
}

/// Returns the rule without common marks: the strongest member first, judged by the evidence about each member alone.
fn by_strength(seats: &[&mut Seat], learned: &Learned, measured: bool) -> Enough {
    let known: Option<Vec<f64>> = seats
        .iter()
        .zip(&learned.strengths)
        .map(|(seat, learned)| seat.reliability.or(learned.map(Strength::estimate)))
        .collect();
    match known {
        Some(right) => Enough::by_strength(&right, measured),
        // Unless the strengths of all members are known, none is weighted.
        None => {
            let weights: Vec<f64> = seats.iter().map(|seat| seat.member.weight).collect();
            Enough::unlearned((0..seats.len()).collect(), &weights)
        }
    }
}

/// Returns the cost of asking each member: by price where all prices are known, otherwise the same for all.
fn costs(seats: &[&mut Seat]) -> Vec<f64> {
    let price = |seat: &&mut Seat| seat.price.map(|price| (price.input + price.output) as f64);
    let prices: Option<Vec<f64>> = seats.iter().map(price).collect();
    let paid = prices.filter(|prices| prices.iter().sum::<f64>() > 0.0);
    paid.unwrap_or_else(|| vec![1.0; seats.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use kd_eval::marks::{By, Evidence, Mark, Member, VERSION};

    fn mark(protocol: &str, members: &[(&str, Option<&str>)], answer: &str) -> Mark {
        Mark {
            v: VERSION,
            project: "p".into(),
            thread: "t".into(),
            message: 1,
            at: Timestamp::UNIX_EPOCH,
            by: By::User,
            kind: "number".into(),
            protocol: protocol.into(),
            members: members
                .iter()
                .map(|(model, key)| Member {
                    name: (*model).into(),
                    model: (*model).into(),
                    key: key.map(Into::into),
                    backs: *key == Some("7"),
                    confidence: None,
                })
                .collect(),
            unasked: Vec::new(),
            stopping: None,
            winner: Some("7".into()),
            credit: 1.0,
            answer: Some(answer.into()),
            calls: 0,
            usd: 0.0,
        }
    }

    #[test]
    fn a_plan_learns_from_marks_of_its_members_and_says_what_to_expect() {
        use crate::config::{AgentConfig, Config};
        use crate::planner::{Brief, plan};
        let mut config = Config::default();
        let names = ["ann", "bob", "cyd"].map(str::to_owned);
        for name in &names {
            let agent = AgentConfig {
                backend: "scripted".into(),
                model: Some(format!("m-{name}")),
                ..AgentConfig::default()
            };
            config.agents.insert(name.clone(), agent);
        }
        config.deliberation.protocol = "certain-enough".into();
        config.deliberation.answer = Some("number".into());
        // The last member is always right, the others in every second question.
        let marks: Vec<Mark> = (0..300)
            .map(|at| {
                let says = |right: bool| Some(if right { "7" } else { "8" });
                let members = [
                    ("m-ann", says(at % 2 == 0)),
                    ("m-bob", says(at % 4 < 2)),
                    ("m-cyd", Some("7")),
                ];
                mark("vote", &members, "7")
            })
            .collect();
        let planned_for = |marks: Vec<Mark>, certainty| {
            let mut config = config.clone();
            config.deliberation.certainty = certainty;
            let brief = Brief {
                question: "What is 3 + 4?",
                asked: "What is 3 + 4?",
                members: &names,
                all_sit: true,
                marks: Evidence::of(marks).into(),
                ..Brief::default()
            };
            plan(&config, &brief).unwrap()
        };
        let planned = |marks: Vec<Mark>| planned_for(marks, None);
        let learned = planned(marks.clone());
        let opining: Vec<&Seat> = learned
            .plan
            .seats
            .iter()
            .filter(|s| s.has(Duty::Opine))
            .collect();
        let rule = learned.plan.enough.as_ref().unwrap();
        assert_eq!(opining[rule.order[0]].agent, "cyd");
        let weight = |agent: &str| {
            opining
                .iter()
                .find(|s| s.agent == agent)
                .unwrap()
                .member
                .weight
        };
        assert!(
            weight("cyd") > 10.0 * weight("ann"),
            "its vote outweighs the others"
        );
        let told = learned.notices.join("\n");
        assert!(told.contains("certain-enough: asks cyd"), "{told}");
        assert!(
            told.contains("on 300 number questions with marks of the person who asked"),
            "{told}"
        );
        let unlearned = planned(marks[..10].to_vec());
        let told = unlearned.notices.join("\n");
        assert!(told.contains("(10 so far)"), "{told}");
        // Marks of different rules are counted separately.
        let rule = |planned: &crate::planner::Planned| {
            crate::deliberation::protocols::stopping(&planned.plan)
        };
        assert_eq!(rule(&learned).as_deref(), Some("margin"));
        assert_eq!(rule(&unlearned).as_deref(), Some("settled"));
        let low = planned_for(marks, Some(0.5));
        assert_eq!(rule(&low).as_deref(), Some("certainty 0.5"));
        assert_eq!(unlearned.plan.enough.unwrap().forecast, None);
    }

    #[test]
    fn marks_change_no_plan_of_a_protocol_that_does_not_use_them() {
        use crate::config::{AgentConfig, Config};
        use crate::deliberation::protocols::CHOICES;
        use crate::planner::{Brief, plan, uses_marks};
        let mut config = Config::default();
        for name in ["ann", "bob", "cyd"] {
            let agent = AgentConfig {
                backend: "scripted".into(),
                model: Some(format!("m-{name}")),
                ..AgentConfig::default()
            };
            config.agents.insert(name.into(), agent);
        }
        config.deliberation.answer = Some("number".into());
        let said = [
            ("m-ann", Some("1")),
            ("m-bob", Some("2")),
            ("m-cyd", Some("7")),
        ];
        let marks: Vec<Mark> = (0..300).map(|_| mark("vote", &said, "7")).collect();
        let mut using = 0;
        for protocol in CHOICES {
            config.deliberation.protocol = (*protocol).into();
            let planned = |marks: Vec<Mark>| {
                let brief = Brief {
                    question: "How many?",
                    asked: "How many?",
                    marks: Evidence::of(marks).into(),
                    ..Brief::default()
                };
                plan(&config, &brief).unwrap()
            };
            let is_used = uses_marks(&config.deliberation);
            assert_eq!(
                planned(marks.clone()) != planned(Vec::new()),
                is_used,
                "{protocol}"
            );
            using += usize::from(is_used);
        }
        assert_eq!(using, 2, "auto, certain-enough");
    }
}
