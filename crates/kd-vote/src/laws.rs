//! Properties that every rule must have: a new rule is tested as soon as it is registered.

use super::*;
use proptest::prelude::*;

const NAMES: [&str; 5] = ["ada", "bob", "cyd", "dan", "eve"];

/// Generates ballots for `n` candidates, valid and invalid.
fn ballots(n: usize) -> impl Strategy<Value = Vec<Ballot>> {
    let candidate = 0..n;
    let order = Just((0..n).collect::<Vec<_>>()).prop_shuffle();
    let ranking = (order, 0..=n).prop_map(|(order, end)| {
        Mark::Ranking(order.into_iter().take(end).map(Rank::One).collect())
    });
    let rank = prop_oneof![
        4 => candidate.clone().prop_map(Rank::One),
        1 => proptest::collection::vec(candidate.clone(), 0..3).prop_map(Rank::Tied),
        1 => Just(Rank::Skipped),
        1 => Just(Rank::Overvote),
        1 => Just(Rank::Nobody),
    ];
    let score = proptest::option::weighted(0.8, (0i128..=5).prop_map(|s| s * NANOS));
    let mark = prop_oneof![
        2 => candidate.clone().prop_map(Mark::Choice),
        4 => ranking,
        2 => proptest::collection::vec(rank, 0..6).prop_map(Mark::Ranking),
        3 => proptest::collection::vec(score, 0..=n).prop_map(Mark::Scores),
        2 => proptest::collection::vec(candidate.clone(), 0..4).prop_map(Mark::Approvals),
        2 => proptest::collection::vec(proptest::option::of(candidate), 0..4).prop_map(Mark::Trail),
        1 => Just(Mark::Unreadable("it is no ballot".into())),
        1 => Just(Mark::Choice(99)),
    ];
    let share = proptest::option::of((0i128..=10).prop_map(|t| t * NANOS / 10));
    let ballot = (
        mark,
        0u64..4,
        0i128..4,
        share.clone(),
        share,
        proptest::collection::vec(0..=NANOS, 0..=n),
    )
        .prop_map(
            |(mark, count, weight, confidence, reliability, predicted)| Ballot {
                count,
                weight: weight * NANOS / 2,
                confidence,
                reliability,
                predicted,
                family: (count == 2).then(|| "twins".to_owned()),
                ..Ballot::new(mark)
            },
        );
    proptest::collection::vec(ballot, 0..9)
}

fn rules(n: usize) -> impl Strategy<Value = Rules> {
    let ties = prop_oneof![
        3 => Just(TiePolicy::Batch),
        1 => Just(TiePolicy::Parallel),
        1 => Just(TiePolicy::Backward),
        1 => Just(TiePolicy::Forward),
        1 => Just(TiePolicy::Borda),
        1 => Just(TiePolicy::Seeded),
    ];
    let overvote = prop_oneof![
        Just(Overvote::Exhaust),
        Just(Overvote::Skip),
        Just(Overvote::ExhaustIfSeveralStay)
    ];
    let map = prop_oneof![
        Just(ConfidenceMap::Identity),
        Just(ConfidenceMap::Steps),
        Just(ConfidenceMap::Logit),
        Just(ConfidenceMap::Fitted(vec![(0, 0), (NANOS, NANOS / 2)])),
    ];
    (
        ties,
        overvote,
        map,
        any::<[bool; 4]>(),
        proptest::option::of(0usize..3),
        any::<u64>(),
    )
        .prop_map(
            move |(
                ties,
                overvote,
                confidence,
                [weighted, hopeless, two, twice],
                skips_max,
                seed,
            )| Rules {
                weighted,
                confidence,
                seed,
                runoff: Runoff {
                    ties,
                    overvote,
                    skips_max,
                    exhaust_on_duplicate: twice,
                    drop_hopeless: hopeless,
                    until_two: two,
                    ..Runoff::default()
                },
                round_decay: NANOS / 2,
                family_correlation: NANOS / 2,
                excluded: if hopeless && n > 2 { vec![1] } else { vec![] },
                ..Rules::of(NAMES.into_iter().take(n))
            },
        )
}

fn polls() -> impl Strategy<Value = (Vec<Ballot>, Rules)> {
    (0usize..=5).prop_flat_map(|n| (ballots(n.max(1)), rules(n)))
}

/// Returns the ballot with every candidate renamed.
fn renamed(ballot: &Ballot, to: &[usize]) -> Ballot {
    let new = |c: &usize| to.get(*c).copied().unwrap_or(*c);
    let place = |values: &[Option<Nano>]| {
        let mut moved = vec![None; to.len()];
        for (c, value) in values.iter().enumerate() {
            if let Some(slot) = moved.get_mut(new(&c)) {
                *slot = *value;
            }
        }
        moved
    };
    let mark = match &ballot.mark {
        Mark::Choice(c) => Mark::Choice(new(c)),
        Mark::Ranking(ranks) => Mark::Ranking(
            ranks
                .iter()
                .map(|r| match r {
                    Rank::One(c) => Rank::One(new(c)),
                    Rank::Tied(several) => Rank::Tied(several.iter().map(new).collect()),
                    other => other.clone(),
                })
                .collect(),
        ),
        Mark::Scores(points) => Mark::Scores(place(points)),
        Mark::Approvals(set) => Mark::Approvals(set.iter().map(new).collect()),
        Mark::Trail(trail) => Mark::Trail(trail.iter().map(|c| c.as_ref().map(new)).collect()),
        Mark::Unreadable(why) => Mark::Unreadable(why.clone()),
    };
    let predicted = if ballot.predicted.len() == to.len() {
        let shares: Vec<Option<Nano>> = ballot.predicted.iter().map(|p| Some(*p)).collect();
        place(&shares).into_iter().flatten().collect()
    } else {
        ballot.predicted.clone()
    };
    Ballot {
        mark,
        predicted,
        ..ballot.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_rule_answers_whatever_the_ballots((ballots, rules) in polls()) {
        for rule in RULES {
            let t = tally(rule, &ballots, &rules);
            prop_assert!(t.winners.windows(2).all(|w| w[0] < w[1]), "{}: a set, rising", rule.name);
            prop_assert!(t.winners.iter().all(|w| *w < rules.candidates.len() && !rules.excluded.contains(w)));
            prop_assert_eq!(t.winner.is_some(), !t.winners.is_empty(), "{}", rule.name);
            prop_assert!(t.winner.is_none_or(|w| t.winners.contains(&w)));
            // A tie is reported, with each step of breaking it.
            prop_assert_eq!(t.tie_path.is_empty(), t.winners.len() < 2, "{}", rule.name);
            if t.winners.len() > 1 {
                prop_assert_eq!(t.outcome, Outcome::Split);
                let last = t.tie_path.last().unwrap();
                prop_assert_eq!(&last.left, &vec![t.winner.unwrap()], "{}", rule.name);
                prop_assert!(t.tie_path.windows(2).all(|w| w[1].left.iter().all(|c| w[0].left.contains(c))));
            }
            // Every abstention has a reason.
            prop_assert!(t.abstained.iter().all(|a| !a.why.is_empty()));
            let broken = ballots.iter().filter(|b| matches!(b.mark, Mark::Unreadable(_) | Mark::Choice(99))).count();
            prop_assert!(t.abstained.len() >= broken, "{}", rule.name);
            prop_assert_eq!(t.electorate, ballots.iter().map(|b| b.count).sum::<u64>());
        }
    }

    #[test]
    fn the_order_of_ballots_leaves_no_trace(
        ((ballots, rules), shuffled) in polls().prop_flat_map(|(b, r)| ((Just(b.clone()), Just(r)), Just(b).prop_shuffle()))
    ) {
        for rule in RULES.iter().filter(|r| r.satisfies.contains(&Axiom::Anonymous)) {
            let (a, b) = (tally(rule, &ballots, &rules), tally(rule, &shuffled, &rules));
            prop_assert_eq!((a.winners, a.winner, a.outcome, a.scores), (b.winners, b.winner, b.outcome, b.scores), "{}", rule.name);
            prop_assert_eq!((a.tie_path, a.rounds), (b.tie_path, b.rounds), "{}", rule.name);
        }
    }

    #[test]
    fn every_ballot_twice_changes_nothing((ballots, mut rules) in polls()) {
        rules.confidence = ConfidenceMap::Identity;
        // Families are excluded: doubling a jury of two doubles its family, and families count members.
        let ballots: Vec<Ballot> = ballots.into_iter().map(|b| Ballot { family: None, ..b }).collect();
        let twice: Vec<Ballot> = ballots.iter().map(|b| b.clone().times(b.count * 2)).collect();
        // Other rules depend on the number of voters: `bradley-terry` adds half a victory per pair.
        for rule in RULES.iter().filter(|r| r.ignores_scale) {
            let (a, b) = (tally(rule, &ballots, &rules), tally(rule, &twice, &rules));
            prop_assert_eq!((a.winners, a.winner), (b.winners, b.winner), "{}", rule.name);
        }
    }

    #[test]
    fn new_names_for_candidates_are_new_names_for_winners(
        ((ballots, rules), to) in polls().prop_flat_map(|(b, r)| {
            let n = r.candidates.len();
            ((Just(b), Just(r)), Just((0..n).collect::<Vec<_>>()).prop_shuffle())
        })
    ) {
        // Random draws depend on names, so only the winner *set* must match, and only if no draw is needed on the way.
        let lots = matches!(rules.runoff.ties, TiePolicy::Seeded | TiePolicy::Backward | TiePolicy::Forward | TiePolicy::Borda);
        let forced = rules.runoff.until_two;
        let moved: Vec<Ballot> = ballots.iter().map(|b| renamed(b, &to)).collect();
        let named = Rules { excluded: rules.excluded.iter().map(|c| to[*c]).collect(), ..rules.clone() };
        for rule in RULES.iter().filter(|r| !((lots || forced) && r.draws_lots) && r.satisfies.contains(&Axiom::Anonymous)) {
            let mut expected: Vec<usize> = tally(rule, &ballots, &rules).winners.iter().map(|c| to[*c]).collect();
            expected.sort_unstable();
            prop_assert_eq!(tally(rule, &moved, &named).winners, expected, "{}", rule.name);
        }
    }

    #[test]
    fn equal_weights_are_no_weights(choices in proptest::collection::vec(0usize..4, 1..9)) {
        let rules = Rules::of(NAMES.into_iter().take(4));
        let ballots: Vec<Ballot> = choices.into_iter().map(Ballot::choice).collect();
        let plain = tally(find("plurality").unwrap(), &ballots, &rules);
        for name in ["weighted", "confidence", "log-odds", "pooled-rounds", "trajectory", "surprising"] {
            prop_assert_eq!(&tally(find(name).unwrap(), &ballots, &rules).winners, &plain.winners, "{}", name);
        }
    }
}
