//! Simulates a forum on a virtual clock: thousands of cycles in a moment, with scripted agents, for tests and studies.
//! The draws are the real ones; only the visits are simulated, from the same seed.

use super::cards::{Candidate, Cards};
use super::cycle::draw;
use super::fairness::Sample;
use super::interval;
use kd_core::config::forum::Settings;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// The setup of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The settings.
    pub settings: Settings,
    /// The agents.
    pub agents: Vec<Candidate>,
    /// The number of cycles.
    pub cycles: usize,
    /// The seed of the whole simulation.
    pub seed: u64,
}

/// The result of a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Studied {
    /// The time on the virtual clock, in seconds.
    pub secs: f64,
    /// Turns taken.
    pub turns: usize,
    /// Turns that ended in a post.
    pub posts: usize,
    /// Pairs of an author and the author of the post that they answered.
    pub answers: Vec<(String, String)>,
}

impl Study {
    /// Creates agents that differ only in their names.
    pub fn alike(settings: &Settings, agents: usize, cycles: usize, seed: u64) -> Self {
        let width = agents.to_string().len();
        let agents = (1..=agents)
            .map(|i| Candidate {
                skip_probability: settings.skip_probability,
                ..Candidate::named(&format!("agent-{i:0width$}"))
            })
            .collect();
        Self {
            settings: settings.clone(),
            agents,
            cycles,
            seed,
        }
    }
}

/// Simulates all cycles and passes each to `each`.
pub fn study(what: &Study, each: &mut dyn FnMut(&Sample<'_>)) -> Studied {
    // Visits have their own random generator: their length must not affect the order.
    let mut visits = ChaCha12Rng::seed_from_u64(what.seed);
    visits.set_stream(u64::MAX / 2);
    let mut cards = Cards::new(&what.settings, what.seed, 0, what.agents.clone());
    let mut done = Studied::default();
    let mut last_author: Option<String> = None;
    let mut interval_ms = None;
    let mut start = 0.0;
    for index in 0..what.cycles {
        cards.index = index as u64;
        let plan = draw(&cards);
        let mut sample = Sample {
            foreseeable: true,
            ..Sample::of(&cards, &plan)
        };
        let mut now = start;
        let mut posts = 0;
        for (turn, planned) in sample.turns.iter_mut().zip(&plan.turns) {
            now += planned.delay_ms as f64 / 1000.0;
            turn.at_secs = Some(now);
            now += visits.random_range(2.0..20.0);
            turn.tokens = visits.random_range(200..1200);
            if visits.random_bool(0.8) {
                posts += 1;
                turn.posts = 1;
                turn.words = visits.random_range(10..200);
                turn.threads = u64::from(visits.random_bool(0.1));
                if let Some(other) = last_author.filter(|other| other != turn.agent) {
                    done.answers.push((turn.agent.to_owned(), other));
                }
                last_author = Some(turn.agent.to_owned());
            }
        }
        each(&sample);
        let took = |name: &str| sample.turns.iter().find(|turn| turn.agent == name);
        let tokens: Vec<Option<u64>> = cards
            .candidates
            .iter()
            .map(|c| took(&c.name).map(|turn| turn.tokens))
            .collect();
        let next = interval::next_ms(&what.settings, interval_ms, posts, plan.turns.len());
        interval_ms = Some(next);
        done.turns += plan.turns.len();
        done.posts += posts;
        for (candidate, took) in cards.candidates.iter_mut().zip(tokens) {
            candidate.lived(took.is_some(), took.unwrap_or(0));
        }
        // Measured from start to start; a cycle that takes longer is followed at once.
        start = now.max(start + next as f64 / 1000.0);
    }
    done.secs = start;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_life_and_another_is_another() {
        let of = |seed| {
            let mut orders = Vec::new();
            let what = Study::alike(&Settings::default(), 5, 200, seed);
            let done = study(&what, &mut |sample| orders.push(sample.order.to_vec()));
            (done, orders)
        };
        assert_eq!(of(11), of(11));
        assert_ne!(of(11).1, of(12).1);
        let (lived, _) = of(11);
        assert!(
            lived.secs >= 200.0 * 300.0,
            "from start to start: {}",
            lived.secs
        );
        let share = lived.turns as f64 / 1000.0;
        assert!(
            (0.77..0.86).contains(&share),
            "a fifth sits out, less those who are due: {share}"
        );
    }
}
