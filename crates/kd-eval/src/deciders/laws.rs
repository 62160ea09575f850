//! Properties that every decider must have: a new one is tested as soon as it is registered.

use super::*;
use crate::replay::{Select, read_csv};
use kd_vote::RULES;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// Generates a record of members of any strength, including missing answers.
fn record(seed: u64, members: usize, questions: usize, trails: bool) -> Replay {
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    let mut text = String::from("id,gold");
    for m in 0..members {
        text.push_str(&format!(",m{m}"));
    }
    for q in 0..questions {
        text.push_str(&format!("\n{q},A"));
        for m in 0..members {
            let right = chance.random::<f64>() < 0.3 + 0.1 * m as f64;
            text.push_str(match (right, chance.random_range(0..6)) {
                (true, _) => ",A",
                (_, 0) => ",",
                (_, n) if n < 3 => ",B",
                _ => ",C",
            });
        }
    }
    let mut replay = read_csv(&text, &Select::default()).unwrap();
    if trails {
        for q in &mut replay.questions {
            let again = q.answers.iter().rev().copied();
            q.trails = q
                .answers
                .iter()
                .copied()
                .zip(again)
                .map(|(last, first)| vec![first, last])
                .collect();
        }
    }
    replay
}

fn drawn(replay: &Replay) -> Halves {
    Halves::drawn(replay.questions.len(), 5)
}

fn ways() -> Vec<Way> {
    DECIDERS
        .iter()
        .map(Way::Decider)
        .chain(RULES.iter().map(Way::Rule))
        .collect()
}

#[test]
fn every_way_decides_every_question_among_the_answers_given() {
    for (members, questions) in [(1, 1), (2, 3), (5, 60), (4, 400)] {
        let replay = record(9, members, questions, true);
        let setting = Setting {
            replay: &replay,
            options: 3,
            seed: 5,
            halves: &drawn(&replay),
        };
        for way in ways().into_iter().filter(|w| w.fits(&replay).is_ok()) {
            let decisions = way.decide(&setting);
            assert_eq!(decisions.len(), questions, "{}", way.name());
            assert_eq!(
                decisions,
                way.decide(&setting),
                "{}: the same in, the same out",
                way.name()
            );
            for (q, d) in replay.questions.iter().zip(&decisions) {
                assert!(
                    d.winners.iter().all(|k| *k < q.keys.len()),
                    "{}",
                    way.name()
                );
                let asked = d.asked.clone().unwrap_or_else(|| (0..members).collect());
                assert!(
                    asked.windows(2).all(|w| w[0] < w[1]) && asked.iter().all(|m| *m < members),
                    "{}",
                    way.name()
                );
                // A member that was not asked cannot have decided.
                let heard = |k: &usize| {
                    asked
                        .iter()
                        .any(|m| q.answers[*m] == Some(*k) || q.trails[*m].contains(&Some(*k)))
                };
                let approves_none = matches!(way, Way::Rule(r) if r.name == "anti-plurality");
                assert!(
                    approves_none || d.winners.iter().all(heard),
                    "{}",
                    way.name()
                );
            }
        }
    }
}

/// No leakage: the right answers of one half do not affect decisions on that half.
#[test]
fn no_way_but_the_oracle_looks_at_what_it_decides() {
    let replay = record(3, 5, 300, true);
    let mut blind = replay.clone();
    let halves = drawn(&replay);
    for (at, q) in blind.questions.iter_mut().enumerate() {
        let last = q.right.len() - 1;
        if halves.of(at) == 0 {
            q.right.swap(0, last);
        }
    }
    for way in ways()
        .into_iter()
        .filter(|w| w.fits(&replay).is_ok() && w.name() != "oracle")
    {
        let (a, b) = (
            way.decide(&Setting {
                replay: &replay,
                options: 3,
                seed: 5,
                halves: &drawn(&replay),
            }),
            way.decide(&Setting {
                replay: &blind,
                options: 3,
                seed: 5,
                halves: &drawn(&replay),
            }),
        );
        for (at, (a, b)) in a.iter().zip(&b).enumerate() {
            assert!(
                halves.of(at) != 0 || a == b,
                "{} on question {at}",
                way.name()
            );
        }
    }
}

#[test]
fn stopping_early_changes_no_answer_and_saves_calls() {
    let replay = record(4, 5, 400, false);
    let setting = Setting {
        replay: &replay,
        options: 3,
        seed: 5,
        halves: &drawn(&replay),
    };
    let decide = |name: &str| Way::find(name).unwrap().decide(&setting);
    let (mut calls, full) = (0, decide("plurality"));
    for (early, full) in decide("certain").into_iter().zip(full) {
        let mut winners = early.winners;
        winners.sort_unstable();
        assert_eq!(winners, full.winners);
        calls += early.asked.unwrap().len();
    }
    assert!(calls < 400 * 5 - 200, "{calls}");
}

#[test]
fn names_are_found_and_every_row_is_told() {
    for d in DECIDERS {
        assert_eq!(
            Way::find(&d.name.to_uppercase().replace('-', "_"))
                .unwrap()
                .name(),
            d.name
        );
        assert!(
            kd_vote::find(d.name).is_none(),
            "{} is a rule already",
            d.name
        );
        assert!(
            [d.doc, d.source]
                .iter()
                .all(|t| t.len() > 10 && !t.ends_with('.'))
        );
    }
    assert_eq!(Way::find("simple").unwrap().name(), "plurality");
    assert!(Way::find("nonsense").is_none());
}

#[test]
fn what_the_record_lacks_is_said() {
    let table = record(1, 3, 4, false);
    let says = |name: &str| Way::find(name).unwrap().fits(&table).unwrap_err();
    for (name, word) in [
        ("lock", "rounds"),
        ("star", "points"),
        ("jury", "orders"),
        ("surprising", "expect"),
        ("confidence", "confidence:NAME"),
    ] {
        assert!(says(name).contains(word), "{name}: {}", says(name));
    }
    let debate = Replay {
        named: false,
        ..record(1, 3, 4, true)
    };
    assert!(
        Way::find("best")
            .unwrap()
            .fits(&debate)
            .unwrap_err()
            .contains("same members")
    );
}

/// Rows that alternate in difficulty: each of two members is right on every second row. Halves by row teach the exact
/// opposite of what is right; drawn halves cannot.
#[test]
fn the_order_of_rows_teaches_nothing() {
    let rows: Vec<String> = (0..400)
        .map(|q| match q % 2 {
            0 => format!("{q},A,A,B"),
            _ => format!("{q},A,B,A"),
        })
        .collect();
    let text = format!("id,gold,m0,m1\n{}", rows.join("\n"));
    let replay = read_csv(&text, &Select::default()).unwrap();
    let right = |name: &str, halves: &Halves| {
        let decided = Way::find(name).unwrap().decide(&Setting {
            replay: &replay,
            options: 2,
            seed: 5,
            halves,
        });
        let pairs = replay.questions.iter().zip(&decided);
        pairs.map(|(q, d)| q.share_right(&d.winners)).sum::<f64>() / 400.0
    };
    for name in ["best", "auto", "log-odds", "plurality-best", "learned"] {
        assert_eq!(right(name, &Halves::by_row(400)), 0.0, "{name} by row");
        for seed in 0..5 {
            let share = right(name, &Halves::drawn(400, seed));
            assert!(share >= 0.4, "{name}, seed {seed}: {share}");
        }
    }
}
