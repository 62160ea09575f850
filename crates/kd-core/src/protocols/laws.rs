//! Property tests that every protocol must pass; a new row in the table is covered automatically.

use super::*;
use crate::speech::Speech;
use proptest::prelude::*;

/// A simulated round: the members, the user's message, and the result of each turn.
#[derive(Clone, Debug)]
struct Play {
    seats: usize,
    call: Call,
    first: bool,
    auto: Option<u32>,
    /// Number of turns after which the user speaks again.
    over: Option<usize>,
    /// For each turn: whether it is answered, the members it mentions, and the member muted after it.
    turns: Vec<(bool, Vec<usize>, Option<usize>)>,
}

const NAMES: [&str; 5] = ["ada", "bob", "cyd", "dan", "eve"];

fn seat(i: usize) -> SeatName {
    SeatName::new(NAMES[i % NAMES.len()]).unwrap()
}

fn play() -> impl Strategy<Value = Play> {
    let call = proptest::sample::select(vec![Call::Everyone, Call::All, Call::Named]);
    let mentions = proptest::collection::vec(0usize..5, 0..4);
    let turn = (
        proptest::bool::weighted(0.8),
        mentions,
        proptest::option::weighted(0.1, 0usize..5),
    );
    let turns = proptest::collection::vec(turn, 40);
    (
        0usize..=5,
        call,
        any::<bool>(),
        proptest::option::of(0u32..9),
        proptest::option::of(0usize..12),
        turns,
    )
        .prop_map(|(seats, call, first, auto, over, turns)| Play {
            seats,
            call,
            first,
            auto,
            over,
            turns,
        })
}

/// Plays a round to its end and returns the moves.
fn run(protocol: &mut dyn Protocol, play: &Play) -> Result<Vec<Move>, TestCaseError> {
    let mut seats: Vec<SeatName> = (0..play.seats).map(seat).collect();
    let answers = seats.len();
    let extra = match play.auto {
        Some(n) => n as usize,
        None => answers,
    };
    let mut spoke: Vec<Spoke> = Vec::new();
    let mut moves = Vec::new();
    let mut turns = play.turns.iter().cycle();
    // The announced next member, if nothing said since then changes it.
    let mut told: Option<SeatName> = None;
    loop {
        let over = play.over.is_some_and(|turns| spoke.len() >= turns);
        let table = Table {
            seats: &seats,
            call: play.call,
            first: play.first,
            auto_messages: play.auto,
            over,
            spoke: &spoke,
        };
        let moved = protocol.next(&table);
        let ahead = protocol.ahead(&table);
        if let Some(told) = told.take().filter(|_| !over) {
            let asked = match &moved {
                Move::Ask(asked) => asked.first().map(|a| &a.seat),
                Move::Yield(_) => None,
            };
            prop_assert_eq!(
                asked,
                Some(&told),
                "another member was announced as the next"
            );
        }
        moves.push(moved.clone());
        let Move::Ask(asked) = moved else {
            return Ok(moves);
        };
        prop_assert!(!asked.is_empty(), "asking nobody is yielding");
        let mut names: Vec<_> = asked.iter().map(|a| &a.seat).collect();
        let heard = |name: &SeatName| spoke.iter().any(|s| &s.seat == name);
        prop_assert!(
            !(over && names.iter().any(|name| heard(name))),
            "{names:?} were asked again although the king had spoken"
        );
        prop_assert!(
            names.iter().all(|n| seats.contains(n)),
            "{names:?} of {seats:?}"
        );
        names.sort();
        names.dedup();
        prop_assert_eq!(names.len(), asked.len(), "a seat is asked twice at once");
        let mut as_told = ahead.first().cloned();
        for Assignment { seat: who, .. } in asked {
            let Some((answered, mentions, mute)) = turns.next() else {
                break;
            };
            let mentions = if *answered {
                mentions.iter().map(|i| seat(*i)).collect()
            } else {
                Vec::new()
            };
            let fails = !answered && as_told.as_ref() == Some(&who);
            if fails || !mentions.is_empty() || mute.is_some() {
                as_told = None;
            }
            spoke.push(Spoke {
                seat: who,
                answered: *answered,
                mentions,
                speech: Speech::Words,
            });
            if let Some(mute) = mute {
                seats.retain(|s| s != &seat(*mute));
            }
        }
        told = as_told;
        let talk = play.call == Call::All || (play.call == Call::Everyone && !play.first);
        let most = if talk { answers + extra } else { answers };
        prop_assert!(
            spoke.len() <= most,
            "{} turns of at most {most}",
            spoke.len()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_round_ends_within_its_budget_and_asks_only_who_is_offered(plays in proptest::collection::vec(play(), 1..4), seed in any::<u64>()) {
        for kind in PROTOCOLS {
            let mut protocol = (kind.new)(seed);
            for play in &plays {
                run(&mut *protocol, play)?;
            }
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_moves(plays in proptest::collection::vec(play(), 1..4), seed in any::<u64>()) {
        for kind in PROTOCOLS {
            let (mut one, mut two) = ((kind.new)(seed), (kind.new)(seed));
            for play in &plays {
                prop_assert_eq!(run(&mut *one, play)?, run(&mut *two, play)?);
            }
        }
    }

    #[test]
    fn a_named_seat_is_asked_once_and_nobody_else(mut play in play(), seed in any::<u64>()) {
        play.call = Call::Named;
        play.turns.iter_mut().for_each(|t| t.2 = None);
        for kind in PROTOCOLS {
            let moves = run(&mut *(kind.new)(seed), &play)?;
            let asked = moves.iter().filter_map(|m| if let Move::Ask(a) = m { Some(a.len()) } else { None });
            prop_assert_eq!(asked.sum::<usize>(), play.seats, "{}", kind.name);
        }
    }
}

#[test]
fn every_row_has_a_name_of_its_own_and_says_what_it_does() {
    for kind in PROTOCOLS {
        assert_eq!(
            find(kind.name).map(|k| k.doc),
            Some(kind.doc),
            "a name stands twice"
        );
        assert!(kind.doc.len() > 20, "{}", kind.name);
    }
}
