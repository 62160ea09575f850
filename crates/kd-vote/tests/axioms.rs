//! The axioms that rules claim hold on random polls; those they do not claim are violated on a stored one.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use kd_vote::{Axiom, Ballot, Mark, NANOS, RULES, Rank, Reads, Rule, Rules, find, tally};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

const STORED: &str = include_str!("data/elections/axioms.jsonl");

const AXIOMS: [Axiom; 7] = [
    Axiom::Anonymous,
    Axiom::Majority,
    Axiom::Condorcet,
    Axiom::Smith,
    Axiom::Monotone,
    Axiom::Clones,
    Axiom::Reversal,
];

/// Strict complete rankings of `n` candidates.
type Profile = Vec<Vec<usize>>;

/// Iterates over the rules that read rankings: the axioms are about rankings only.
fn ranked() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().filter(|r| {
        matches!(r.reads, Reads::Ranking | Reads::Paper | Reads::Choice) && r.name != "surprising"
    })
}

fn winners(rule: &'static Rule, profile: &Profile, n: usize) -> Vec<usize> {
    let ballots: Vec<Ballot> = profile
        .iter()
        .map(|b| Ballot::ranking(b.iter().copied()))
        .collect();
    tally(rule, &ballots, &Rules::of((0..n).map(|c| c.to_string()))).winners
}

/// Returns whether a rule violates an axiom on a profile.
fn breaks(axiom: Axiom, rule: &'static Rule, profile: &Profile, n: usize) -> bool {
    let own = winners(rule, profile, n);
    let alone = |c: Option<usize>| c.is_some_and(|c| own != [c]);
    let margin = |a: usize, b: usize| -> i64 {
        let above =
            |p: &Vec<usize>| p.iter().position(|c| *c == a) < p.iter().position(|c| *c == b);
        profile.iter().map(|p| if above(p) { 1 } else { -1 }).sum()
    };
    match axiom {
        Axiom::Anonymous => (1..profile.len()).any(|k| {
            let mut turned = profile.clone();
            turned.rotate_left(k);
            winners(rule, &turned, n) != own
        }),
        Axiom::Majority => {
            let firsts = |c: usize| profile.iter().filter(|p| p[0] == c).count();
            alone((0..n).find(|c| firsts(*c) * 2 > profile.len()))
        }
        Axiom::Condorcet => alone((0..n).find(|a| (0..n).all(|b| *a == b || margin(*a, b) > 0))),
        Axiom::Smith => {
            let smith = winners(find("smith").unwrap(), profile, n);
            own.iter().any(|c| !smith.contains(c))
        }
        Axiom::Monotone => own.iter().any(|w| {
            profile.iter().enumerate().any(|(at, ballot)| {
                let place = ballot.iter().position(|c| c == w).unwrap();
                place > 0 && {
                    let mut raised = profile.clone();
                    raised[at].swap(place, place - 1);
                    !winners(rule, &raised, n).contains(w)
                }
            })
        }),
        Axiom::Clones => (0..n).filter(|c| !own.contains(c)).any(|loser| {
            // The twin is ranked right below on even ballots and right above on odd ones.
            let twinned: Profile = profile
                .iter()
                .enumerate()
                .map(|(i, p)| {
                    let pair = if i % 2 == 0 { [loser, n] } else { [n, loser] };
                    p.iter()
                        .flat_map(|c| if *c == loser { pair.to_vec() } else { vec![*c] })
                        .collect()
                })
                .collect();
            let now: Vec<usize> = winners(rule, &twinned, n + 1)
                .into_iter()
                .filter(|c| *c != loser && *c != n)
                .collect();
            now != own
        }),
        Axiom::Reversal => {
            let turned: Profile = profile
                .iter()
                .map(|p| p.iter().rev().copied().collect())
                .collect();
            own.len() == 1 && n > 1 && winners(rule, &turned, n) == own
        }
    }
}

/// Generates small polls before large ones, the same in every run.
fn profiles(count: usize, seed: u64) -> impl Iterator<Item = (Profile, usize)> {
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    (0..count).map(move |i| {
        let n = 3 + (i * 3 / count).min(1) + usize::from(i % 3 == 2);
        let voters = 2 + i * 12 / count + chance.random_range(0..4);
        let ballot = |chance: &mut ChaCha12Rng| {
            let mut order: Vec<usize> = (0..n).collect();
            for at in (1..n).rev() {
                order.swap(at, chance.random_range(0..=at));
            }
            order
        };
        // Few distinct ballots, each cast several times: that is where rules disagree.
        let kinds: Vec<Vec<usize>> = (0..chance.random_range(2..6))
            .map(|_| ballot(&mut chance))
            .collect();
        let profile = (0..voters)
            .map(|_| kinds[chance.random_range(0..kinds.len())].clone())
            .collect();
        (profile, n)
    })
}

#[test]
fn each_rule_satisfies_the_axioms_of_its_row() {
    let mut broken = std::collections::BTreeMap::new();
    for (profile, n) in profiles(150, 7) {
        for rule in ranked() {
            for axiom in rule.satisfies {
                if breaks(*axiom, rule, &profile, n) {
                    broken
                        .entry((rule.name, format!("{axiom:?}")))
                        .or_insert_with(|| profile.clone());
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn what_a_rule_does_not_promise_breaks_on_a_stored_poll() {
    let mut shown = std::collections::BTreeSet::new();
    for line in STORED.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let rule = find(row["rule"].as_str().unwrap()).unwrap();
        let axiom = AXIOMS
            .into_iter()
            .find(|a| format!("{a:?}") == row["breaks"].as_str().unwrap())
            .unwrap();
        let profile: Profile = serde_json::from_value(row["ballots"].clone()).unwrap();
        let n = row["candidates"].as_u64().unwrap() as usize;
        assert!(
            !rule.satisfies.contains(&axiom),
            "{} promises {axiom:?}",
            rule.name
        );
        assert!(
            breaks(axiom, rule, &profile, n),
            "{} satisfies {axiom:?} on {profile:?}",
            rule.name
        );
        shown.insert((rule.name, format!("{axiom:?}")));
    }
    for (rule, axiom) in MUST_BREAK {
        assert!(
            shown.contains(&(*rule, (*axiom).to_owned())),
            "no stored poll shows that {rule} breaks {axiom}"
        );
    }
}

/// Violations known from the literature: each must be shown by a stored poll.
const MUST_BREAK: &[(&str, &str)] = &[
    ("plurality", "Condorcet"),
    ("borda", "Majority"),
    ("borda", "Condorcet"),
    ("borda", "Clones"),
    ("irv", "Condorcet"),
    ("irv", "Monotone"),
    ("irv-parallel", "Monotone"),
    ("runoff", "Condorcet"),
    ("runoff", "Monotone"),
    ("coombs", "Condorcet"),
    ("coombs", "Monotone"),
    ("bucklin", "Condorcet"),
    ("anti-plurality", "Majority"),
    ("mrr", "Condorcet"),
    ("copeland", "Clones"),
    ("minimax", "Smith"),
    ("ranked-pairs-zt", "Anonymous"),
    ("baldwin", "Monotone"),
    ("nanson", "Monotone"),
    ("smith-irv", "Monotone"),
    ("benham", "Monotone"),
];

/// Searches for violations; prints `axioms.jsonl`.
#[test]
#[ignore = "a search, run when rules are added"]
fn search() {
    for rule in ranked() {
        for axiom in AXIOMS.into_iter().filter(|a| !rule.satisfies.contains(a)) {
            if let Some((profile, n)) =
                profiles(6_000, 11).find(|(p, n)| breaks(axiom, rule, p, *n))
            {
                println!(
                    "{}",
                    json!({"rule": rule.name, "breaks": format!("{axiom:?}"), "candidates": n, "ballots": profile})
                );
            }
        }
    }
}

#[test]
fn star_elects_one_of_the_two_with_the_greatest_sums() {
    let mut chance = ChaCha12Rng::seed_from_u64(3);
    for _ in 0..300 {
        let ballots: Vec<Ballot> = (0..chance.random_range(1..8))
            .map(|_| {
                Ballot::new(Mark::Scores(
                    (0..4)
                        .map(|_| Some(chance.random_range(0..6i128) * NANOS))
                        .collect(),
                ))
            })
            .collect();
        let rules = Rules::of(["a", "b", "c", "d"]);
        let t = tally(find("star").unwrap(), &ballots, &rules);
        let mut sums: Vec<_> = t.scores.iter().flatten().cloned().collect();
        sums.sort();
        let second = &sums[2];
        assert!(
            t.winners
                .iter()
                .all(|w| t.scores[*w].as_ref().unwrap() >= second),
            "{t:?}"
        );
    }
}

#[test]
fn a_ballot_is_read_as_it_stands_on_paper() {
    let rules = Rules::of(["a", "b", "c"]);
    let irv = find("irv").unwrap();
    let paper = |ranks: Vec<Rank>| Ballot::new(Mark::Ranking(ranks));
    let ballots = [
        paper(vec![Rank::Tied(vec![0, 1]), Rank::One(2)]),
        paper(vec![Rank::Skipped, Rank::One(1)]),
        paper(vec![Rank::Overvote, Rank::One(2)]),
        paper(vec![Rank::Nobody, Rank::One(2), Rank::One(0)]),
    ];
    let t = tally(irv, &ballots, &rules);
    assert_eq!(
        t.rounds[0].exhausted.as_ref().unwrap().to_string(),
        "2",
        "a tie of two who stand, and an overvote"
    );
    assert_eq!(t.winners, [1, 2], "one vote each and none for a");
    assert_eq!(t.rounds[0].eliminated, [0]);
    // Two ballots rank b before c, one ranks c before b; the overvote says nothing about either.
    assert_eq!(t.tie_path.last().unwrap().step, "pairwise");
    assert_eq!(t.winner, Some(1));
    // If nothing separates them, a random draw decides.
    let even = [1, 2].map(|at| paper(vec![Rank::One(at)]));
    let t = tally(irv, &even, &rules);
    assert_eq!(t.tie_path.last().unwrap().step, "lot", "{t:?}");
    let again = tally(irv, &even, &rules);
    assert_eq!(t.winner, again.winner, "the lot is drawn from the seed");
}
