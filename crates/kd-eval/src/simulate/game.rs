//! One question asked of scripted members: their drafts, and how they revise them when they see the others' answers.

use super::beta::{STEPS, quantiles};
use super::spec::{Script, Spec};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// The number of the right answer, and of the common wrong one.
pub(super) const RIGHT: usize = 0;
const LURE: usize = 1;

/// The members of a simulation.
pub(super) struct Table {
    pub(super) seats: Vec<Script>,
    difficulty: Vec<Vec<f64>>,
    options: usize,
    lure: f64,
    seed: u64,
}

/// The rules of a discussion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manners {
    /// Members do not see who said what, so nobody is followed for a name.
    pub(super) anonymous: bool,
    /// A changed answer counts only if the member can say what was wrong with the old one.
    pub(super) justified: bool,
}

/// One question. It has its own random generator: protocols that ask the same members see the same drafts.
pub(super) struct Game<'t> {
    table: &'t Table,
    chance: ChaCha12Rng,
    /// Each member's current answer; `None` if it gives none.
    pub(super) says: Vec<Option<usize>>,
    /// Number of answers requested.
    pub(super) calls: u64,
}

impl Table {
    pub(super) fn of(spec: &Spec) -> Self {
        let seats = spec.seats();
        let difficulty = seats
            .iter()
            .map(|s| quantiles(s.accuracy, spec.correlation))
            .collect();
        Self {
            seats,
            difficulty,
            options: spec.options as usize,
            lure: spec.lure,
            seed: spec.seed,
        }
    }

    /// Opens a question.
    pub(super) fn ask(&self, question: u32) -> Game<'_> {
        let mut chance = ChaCha12Rng::seed_from_u64(self.seed);
        chance.set_stream(u64::from(question));
        let hardness = chance.random_range(0..STEPS);
        let mut game = Game {
            table: self,
            chance,
            says: Vec::new(),
            calls: 0,
        };
        for m in 0..self.seats.len() {
            let draft = game.draft(m, hardness);
            game.says.push(draft);
        }
        game
    }
}

impl Game<'_> {
    fn draft(&mut self, member: usize, hardness: usize) -> Option<usize> {
        let script = &self.table.seats[member];
        // Every member draws the same random numbers whatever its script, so that changing one changes only that
        // member.
        let (fails, knows, lured, other) = (
            self.chance.random::<f64>(),
            self.chance.random::<f64>(),
            self.chance.random::<f64>(),
            self.chance.random_range(1..self.table.options),
        );
        if fails < script.failure {
            return None;
        }
        if script.adversary {
            return Some(LURE);
        }
        if knows < self.table.difficulty[member][hardness] {
            return Some(RIGHT);
        }
        Some(if lured < self.table.lure { LURE } else { other })
    }

    /// Every member reads all other answers, and may change its own.
    pub(super) fn discuss(&mut self, manners: Manners) {
        let seen = self.says.clone();
        for m in 0..seen.len() {
            self.calls += 1;
            self.says[m] = self.revised(m, &seen, manners);
        }
    }

    fn revised(
        &mut self,
        member: usize,
        seen: &[Option<usize>],
        manners: Manners,
    ) -> Option<usize> {
        let script = &self.table.seats[member];
        let draws: [f64; 4] = std::array::from_fn(|_| self.chance.random());
        let own = seen[member];
        if script.adversary || draws[0] < script.obstinacy {
            return own;
        }
        let others = || seen.iter().enumerate().filter(|(o, _)| *o != member);
        let shown_right = others().any(|(_, s)| *s == Some(RIGHT));
        // Recognizing one's own mistake is a reason; following others is not.
        if own != Some(RIGHT) && shown_right && draws[1] < script.skill {
            return Some(RIGHT);
        }
        if draws[2] >= script.conformity || manners.justified {
            return own;
        }
        if !manners.anonymous {
            let voice = others()
                .filter_map(|(o, s)| Some((self.table.seats[o].persuasion, (*s)?)))
                .max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((persuasion, said)) = voice
                && draws[3] < persuasion
            {
                return Some(said);
            }
        }
        let most = crate::deciders::commonest(others().filter_map(|(_, s)| *s));
        match (most.as_slice(), own) {
            // If several answers are equally common among the others, the member keeps its own.
            ([single], _) => Some(*single),
            (_, own) => own,
        }
    }

    /// Returns the most common answers of these members.
    pub(super) fn vote(&self, among: impl Iterator<Item = usize>) -> Vec<usize> {
        crate::deciders::commonest(among.filter_map(|m| self.says[m]))
    }

    /// Returns the most common answers of all members.
    pub(super) fn vote_all(&self) -> Vec<usize> {
        self.vote(0..self.says.len())
    }
}
