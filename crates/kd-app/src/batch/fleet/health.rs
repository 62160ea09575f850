//! Whether this worker is fit to ask. One whose service is gone or whose configuration is broken fails fast, and would take one
//! question after the other. Its failures are held back while there are several in a row: if others answer questions meanwhile, it is the
//! worker that fails, and it steps aside; else it is the questions, and they fail.
//!
//! Input: what jobs gave, and what other workers have written since the first failure in a row. Output: what is to be written, and
//! whether to go on.

use super::super::queue::{Back, Done};
use kd_core::batch::Status;
use kd_sql::fleet::Others;
use std::time::{Duration, Instant};

/// Failures in a row that make a worker look at others; doubled up to the maximum each time that theirs fail too.
const IN_A_ROW: usize = 5;
const IN_A_ROW_MAX: usize = 640;
/// Results of others that are enough to compare with.
const COMPARED: u64 = 3;
/// Answers of others for each of their failures, at least, if the questions are good.
const ANSWERS: u64 = 4;
/// How long a worker waits for results of others that are asking.
const PATIENCE: Duration = Duration::from_secs(300);

/// What failures in a row mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The worker is not fit.
    Sick,
    /// Others have not written enough yet.
    Unknown,
    /// The questions fail, whoever asks them.
    Questions,
}

/// The state of a worker in a batch.
pub(super) struct Health {
    /// Failures in a row that are enough.
    enough: usize,
    /// It has stepped aside before: it asks one question, and more when that was answered.
    probes: bool,
    /// Questions that are being asked.
    asking: usize,
    streak: Option<Streak>,
}

/// Failures in a row.
struct Streak {
    /// When they began, for the database.
    moment: String,
    began: Instant,
    count: usize,
    /// Those that are not written yet.
    held: Vec<Done>,
    reason: String,
}

impl Health {
    /// Creates that of a worker, which may have stepped aside before.
    pub(super) fn new(probes: bool) -> Self {
        Self {
            enough: IN_A_ROW,
            probes,
            asking: 0,
            streak: None,
        }
    }

    /// Returns how many of `most` questions may be started now.
    pub(super) fn most(&self, most: usize) -> usize {
        match (self.probes, self.asking) {
            (false, _) => most,
            (true, 0) => most.min(1),
            (true, _) => 0,
        }
    }

    /// Counts questions that were started.
    pub(super) fn started(&mut self, count: usize) {
        self.asking += count;
    }

    /// Hears what jobs gave; returns what of it, and of earlier failures, is to be written now. `moment` tells the time of the database.
    pub(super) fn hears<E>(
        &mut self,
        done: Vec<Done>,
        back: &[Back],
        moment: impl FnOnce() -> Result<String, E>,
    ) -> Result<Vec<Done>, E> {
        self.asking = self.asking.saturating_sub(done.len() + back.len());
        if done.iter().any(|one| one.row.status == Status::Answered) {
            (self.probes, self.enough) = (false, IN_A_ROW);
            let mut all = self.questions_failed();
            all.extend(done);
            return Ok(all);
        }
        let again = back.iter().filter(|one| one.asked);
        let reasons = done.iter().map(|one| &one.row.reason);
        let reasons = reasons.chain(again.map(|one| &one.reason));
        let reasons: Vec<String> = reasons
            .map(|reason| reason.clone().unwrap_or_default())
            .collect();
        let Some(reason) = reasons.last().cloned() else {
            return Ok(done);
        };
        let streak = match &mut self.streak {
            Some(streak) => streak,
            none => none.insert(Streak {
                moment: moment()?,
                began: Instant::now(),
                count: 0,
                held: Vec::new(),
                reason: String::new(),
            }),
        };
        streak.count += reasons.len();
        streak.reason = reason;
        streak.held.extend(done);
        Ok(Vec::new())
    }

    /// Returns since when others are to be looked at, if there are enough failures in a row. `last`: whether nothing is left to be asked.
    pub(super) fn suspects(&self, last: bool) -> Option<&str> {
        let enough = if self.probes { 1 } else { self.enough };
        let streak = self.streak.as_ref()?;
        (streak.count >= enough || last && !streak.held.is_empty()).then_some(&*streak.moment)
    }

    /// Returns what the failures mean. Few of them, when nothing is left to be asked, are those of the questions.
    pub(super) fn verdict(&mut self, others: &Others) -> Verdict {
        let Some(streak) = &self.streak else {
            return Verdict::Questions;
        };
        if self.suspects(false).is_none() {
            return Verdict::Questions;
        }
        let all = others.answered + others.failed;
        match others.answered >= ANSWERS * others.failed {
            true if all >= COMPARED => Verdict::Sick,
            _ if all < COMPARED && others.asking && streak.began.elapsed() < PATIENCE => {
                Verdict::Unknown
            }
            _ => {
                if all >= COMPARED {
                    self.enough = (self.enough * 2).min(IN_A_ROW_MAX);
                }
                Verdict::Questions
            }
        }
    }

    /// Ends the failures in a row; returns those that were held back.
    pub(super) fn questions_failed(&mut self) -> Vec<Done> {
        self.streak.take().map(|one| one.held).unwrap_or_default()
    }

    /// Says why this worker steps aside.
    pub(super) fn told(&self) -> String {
        let (questions, reason) = self.failures();
        format!("{questions} failed on this worker while others answered theirs: {reason}")
    }

    /// Says what this worker waits for.
    pub(super) fn waits(&self) -> String {
        let (questions, reason) = self.failures();
        format!("{questions} failed on this worker, which waits for what others get: {reason}")
    }

    fn failures(&self) -> (String, &str) {
        let (count, reason) = match &self.streak {
            Some(streak) => (streak.count, streak.reason.as_str()),
            None => (0, ""),
        };
        match count {
            1 => ("a question".to_owned(), reason),
            n => (format!("{n} questions in a row"), reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use kd_core::batch::{Method, Row};
    use kd_sql::batch::Job;

    fn job() -> Job {
        Job {
            place: 1,
            id: "1".into(),
            question: "One?".into(),
            attempt: 1,
            token: 1,
        }
    }

    fn done(status: Status) -> Done {
        let row = Row {
            status,
            ..Row::failed(Method::Ask, "ada: HTTP 404", Timestamp::UNIX_EPOCH)
        };
        Done {
            job: job(),
            row: Box::new(row),
            keep: false,
        }
    }

    fn back(asked: bool) -> Back {
        Back {
            job: job(),
            pause: Duration::ZERO,
            reason: Some("ada: HTTP 503".into()),
            asked,
        }
    }

    fn hears(health: &mut Health, done: Vec<Done>, back: &[Back]) -> usize {
        let moment = || Ok::<_, ()>("7".to_owned());
        health.hears(done, back, moment).unwrap().len()
    }

    fn others(answered: u64, failed: u64, asking: bool) -> Others {
        Others {
            answered,
            failed,
            asking,
        }
    }

    #[test]
    fn failures_in_a_row_are_held_back_until_it_is_known_whose_they_are() {
        let mut health = Health::new(false);
        for n in 1..IN_A_ROW {
            assert_eq!(hears(&mut health, vec![done(Status::Failed)], &[]), 0);
            assert_eq!(health.suspects(false), None, "{n}");
        }
        assert_eq!(health.suspects(true), Some("7"), "nothing is left");
        assert_eq!(health.verdict(&others(9, 0, true)), Verdict::Questions);
        // One that is asked again counts too; one that was interrupted does not.
        assert_eq!(hears(&mut health, vec![], &[back(false)]), 0);
        assert_eq!(health.suspects(false), None);
        assert_eq!(hears(&mut health, vec![], &[back(true)]), 0);
        assert_eq!(health.suspects(false), Some("7"));
        assert!(health.told().starts_with("5 questions in a row failed on"));
        assert!(health.told().ends_with("HTTP 503"), "{}", health.told());
        for (seen, verdict) in [
            (others(3, 0, true), Verdict::Sick),
            (others(16, 4, true), Verdict::Sick),
            (others(2, 0, true), Verdict::Unknown),
            (others(0, 0, false), Verdict::Questions),
        ] {
            assert_eq!(health.verdict(&seen), verdict, "{seen:?}");
        }
        let streak = health.streak.as_mut().unwrap();
        streak.began = Instant::now().checked_sub(PATIENCE).unwrap();
        assert_eq!(health.verdict(&others(2, 0, true)), Verdict::Questions);
        // Others fail too: more are asked before the next look.
        assert_eq!(health.verdict(&others(15, 4, true)), Verdict::Questions);
        assert_eq!(health.suspects(false), None);
        let more = (0..IN_A_ROW).map(|_| done(Status::Failed)).collect();
        assert_eq!(hears(&mut health, more, &[]), 0);
        assert_eq!(health.verdict(&others(0, 3, true)), Verdict::Questions);
        // An answer shows that the worker is fit: the failures were those of the questions.
        assert_eq!(hears(&mut health, vec![done(Status::Answered)], &[]), 10);
        assert_eq!(health.suspects(true), None);
    }

    #[test]
    fn a_worker_that_has_stepped_aside_asks_one_question_first() {
        let mut health = Health::new(true);
        assert_eq!(health.most(8), 1);
        health.started(1);
        assert_eq!(health.most(8), 0);
        assert_eq!(hears(&mut health, vec![done(Status::Failed)], &[]), 0);
        assert_eq!(health.verdict(&others(3, 0, true)), Verdict::Sick);
        let mut health = Health::new(true);
        health.started(1);
        assert_eq!(hears(&mut health, vec![done(Status::Answered)], &[]), 1);
        assert_eq!(health.most(8), 8);
    }
}
