//! Deficit round robin (Shreedhar and Varghese, 1995) on tokens: every agent is entitled to the same amount, and an
//! agent far ahead of its share sits out until the others have caught up. The order is still random: ordering by
//! deficit would let the same agent speak first for as long as it is behind, which is a hierarchy too.

use super::super::cards::Candidate;
use super::{FAIR, Scheduler};

/// Maximum lead of an agent over its share before it sits out, in average turns: one long turn is acceptable.
const AHEAD: f64 = 2.0;
/// Maximum deficit relative to the leader, in average turns. Older deficits are dropped, as for an idle flow; otherwise
/// all would have to wait until a newcomer has used as much as they did in a year.
const OWED: f64 = 6.0;

pub(super) const ROW: Scheduler = Scheduler {
    name: "deficit",
    doc: "a random order; every agent has the same share of tokens, and one far ahead of its share sits out",
    order: |draw| draw.shuffled(),
    skip: |candidate, all| {
        if is_ahead(candidate, all) {
            1.0
        } else {
            candidate.skip_probability
        }
    },
    weighs: false,
    promises: FAIR,
};

fn is_ahead(candidate: &Candidate, all: &[Candidate]) -> bool {
    let turns: u64 = all.iter().map(|c| c.turns).sum();
    let tokens: u64 = all.iter().map(|c| c.tokens).sum();
    if turns == 0 {
        return false;
    }
    let turn = tokens as f64 / turns as f64;
    let most = all.iter().map(|c| c.tokens).max().unwrap_or(0) as f64;
    let used = all
        .iter()
        .map(|c| (c.tokens as f64).max(most - OWED * turn))
        .sum::<f64>();
    candidate.tokens as f64 > used / all.len() as f64 + AHEAD * turn
}

#[cfg(test)]
mod tests {
    use super::super::super::cards::Cards;
    use super::super::super::cycle::draw;
    use super::*;
    use kd_core::config::forum::Settings;

    /// Returns the tokens of each agent after `cycles`, if the first one uses six times as many per turn.
    fn lived(scheduler: &str, cycles: u64) -> Vec<u64> {
        let settings = Settings {
            scheduler: scheduler.into(),
            ..Settings::default()
        };
        let all = ["a", "b", "c", "d"].map(Candidate::named).to_vec();
        let mut cards = Cards::new(&settings, 11, 0, all);
        for index in 0..cycles {
            cards.index = index;
            let plan = draw(&cards);
            for candidate in &mut cards.candidates {
                let spoke = plan.turns.iter().any(|t| t.agent == candidate.name);
                let tokens = if candidate.name == "a" { 600 } else { 100 };
                candidate.lived(spoke, tokens);
            }
        }
        cards.candidates.iter().map(|c| c.tokens).collect()
    }

    #[test]
    fn who_talks_more_at_once_comes_less_often() {
        let share = |tokens: &[u64]| tokens[0] as f64 / tokens.iter().sum::<u64>() as f64;
        let (shuffled, owed) = (lived("shuffle", 400), lived("deficit", 400));
        assert!(share(&shuffled) > 0.6, "{shuffled:?}");
        // The limit on skips gives it every fourth turn, which is still more than a quarter of all tokens.
        assert!(share(&owed) < 0.4, "{owed:?}");
    }

    #[test]
    fn a_newcomer_makes_nobody_wait() {
        let mut all = ["a", "b", "c"].map(Candidate::named).to_vec();
        for old in &mut all {
            (old.tokens, old.turns) = (1_000_000, 1_000);
        }
        all.push(Candidate::named("new"));
        assert!(!all.iter().any(|one| is_ahead(one, &all)));
    }
}
