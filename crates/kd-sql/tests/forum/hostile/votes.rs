//! Votes: motions are decided by those who may vote, as counted here.

use super::*;

impl World<'_> {
    /// Ends a vote; a careless user confirms everything that passed.
    pub(super) fn decide(&mut self, cycle: i64) {
        let (settings, now, forum) = (self.settings(), self.now(), self.forum.clone());
        for motion in self
            .store
            .decide_motions(&forum, cycle, &settings, now)
            .unwrap()
        {
            let risky = self.ledger.risky.contains(&motion.id);
            if risky {
                assert_eq!(motion.state, MotionState::Passed, "{motion:?}");
            }
            let state = match motion.state {
                MotionState::Passed if risky => {
                    let vetoed = self.store.veto_motion(motion.id, KING, "no", now);
                    vetoed.unwrap().state
                }
                MotionState::Passed => {
                    self.store
                        .confirm_motion(motion.id, KING, &settings, now)
                        .unwrap()
                        .state
                }
                state => state,
            };
            if motion.kind == MotionKind::Hide && state == MotionState::InForce {
                let post: i64 = motion.value.as_deref().unwrap().parse().unwrap();
                let word = self.ledger.words.get(&post).cloned();
                self.ledger.hidden.extend(word.map(|word| (post, word)));
            }
            let expected = match self.ledger.wanted.get(&motion.id) {
                Some(true) if risky => MotionState::Vetoed,
                Some(true) => MotionState::InForce,
                _ => MotionState::Rejected,
            };
            let (_, votes) = self.store.motion(motion.id).unwrap();
            let told = || format!("{motion:?} {votes:?}");
            assert_eq!(state, expected, "{}", told());
            // Counted here from what members really did.
            let electors = &self.ledger.electors[&motion.id];
            let count = |choice: &str| {
                let votes = self.ledger.votes.iter();
                let mine = votes.filter(|((id, who), vote)| {
                    *id == motion.id && electors.contains(who) && *vote == choice
                });
                mine.count()
            };
            let sums = format!(
                "{} yes, {} no, {} abstained, of {}",
                count("yes"),
                count("no"),
                count("abstain"),
                electors.len()
            );
            assert!(
                motion.outcome.contains(&sums),
                "{} is not {sums}",
                motion.outcome
            );
        }
    }
}
