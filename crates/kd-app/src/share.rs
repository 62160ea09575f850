//! A share of ordinary questions is also asked of the council's best member alone, and of samples of it: `eval.share`.
//!
//! Input: a deliberation that just ended. Output: the two other ways to ask its question, by the code of
//! [`crate::live`], within a budget of their own for each day. The answers are kept as batches; once the verdict is marked
//! with the right answer, [`Kingdom::shared`] returns them for the paired comparison.
//!
//! The settings count from the user's own file; others can only lower them. Nothing is asked without the user's consent to
//! them, and nothing of an agent program or of a member whose price is unknown: its cost has no limit. All money is reserved
//! in the budget of the day before it is spent ([`budget`]).

mod budget;
mod private;
mod report;

pub use budget::{Reserved, is_news};
pub use private::may_share;
pub use report::{SharedAnswers, SharedCouncil};

use crate::batch::of;
use crate::env::Env;
use crate::error::UserError;
use crate::kingdom::Kingdom;
use crate::live::{Bill, Cost, Known, Live, LiveRequest, Way};
use crate::request::Limits;
use crate::trust;
use kd_core::config::{Config, EvalConfig, is_program};
use kd_core::deliberation::plan::Plan;
use kd_core::deliberation::report::Report;
use kd_core::deliberation::unmarked;
use kd_core::roles::Duty;
use kd_core::spending::{Ceiling, Spent};
use kd_store::config::load;
use kd_store::user_dirs::{make_private, project_key};
use kd_store::{Layout, Thread};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// The source of the batches, as lists show it.
const SOURCE: &str = "a share of your questions";
/// The command that compares their answers.
pub const REPORT: &str = "kd eval --live --report";
/// Maximum bytes of the file with the consent.
const CONSENT_BYTES_MAX: u64 = 256;

/// A question to ask in the two other ways.
pub struct Shared {
    /// The ways.
    pub live: Live,
    /// The cost of the council's answer.
    pub council: Cost,
    /// The probable maximum cost of the two ways, in US dollars; `None` if the price of the member is unknown, or it
    /// is an agent program.
    usd: Option<f64>,
    /// Whether the limits of the run leave too little.
    is_over: bool,
}

/// Whether the other ways can be asked.
#[derive(Debug)]
pub enum Afforded {
    /// They can: their money is reserved.
    Yes(Reserved),
    /// They cannot, for this reason.
    No(&'static str),
}

/// How far the reservation is above the estimate, as long as the budget has it: requests are checked by their worst case.
const ROOM: f64 = 2.0;

impl Shared {
    /// Returns whether the two ways may be asked, whatever the budget has left.
    ///
    /// # Errors
    /// The reason why they may not, as a clause.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.usd {
            None => Err(
                "the best member is an agent program or has no known price, so that no budget limits it",
            ),
            Some(_) if self.is_over => Err("the limits of this run leave too little"),
            Some(_) => Ok(()),
        }
    }

    /// Reserves the money for the two ways in the budget of the day, and limits them to it.
    ///
    /// # Errors
    /// If the user's state folder cannot be read or written.
    pub fn afford(&mut self, env: &Env, settings: &EvalConfig) -> Result<Afforded, UserError> {
        if let Err(why) = self.check() {
            return Ok(Afforded::No(why));
        }
        let least = self.usd.unwrap_or(f64::MAX);
        let own = self.live.limits().usd.unwrap_or(f64::MAX);
        let most = (least * ROOM).min(own);
        Ok(
            match budget::reserve(env, settings.max_usd, (least, most))? {
                Some(reserved) => {
                    // Members that cost nothing need no limit, and get no answer within one of 0.
                    if least > 0.0 {
                        self.live.limit_usd(reserved.usd().min(own));
                    }
                    Afforded::Yes(reserved)
                }
                None => Afforded::No("the budget of today does not suffice"),
            },
        )
    }
}

/// Whether the user agreed to the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// To these, or to more.
    Given,
    /// The user declined these.
    Refused,
    /// Never asked.
    Unasked,
}

/// Returns the agents that gave opinions, each once.
fn voters(plan: &Plan) -> Vec<String> {
    let voters = plan.seats.iter().filter(|seat| seat.has(Duty::Opine));
    let mut members: Vec<String> = Vec::new();
    for seat in voters {
        if !members.contains(&seat.agent) {
            members.push(seat.agent.clone());
        }
    }
    members
}

impl Kingdom {
    /// Prepares the question of a deliberation for the two other ways, if it is one of the share. `config` has the settings
    /// of the deliberation. `None` without a share, for private threads, open answers, or councils of one member. The
    /// two ways may spend what is left of the limits of the deliberation: see also [`Shared::afford`].
    ///
    /// # Errors
    /// If the batches cannot be read, or a member may not be asked.
    pub fn share(
        &self,
        config: &Config,
        layout: &Layout,
        thread: &Thread,
        report: &Report,
    ) -> Result<Option<Shared>, UserError> {
        let own = self.eval_settings();
        let Some(verdict) = unmarked(report, &project_key(layout.root())) else {
            return Ok(None);
        };
        let Some(plan) = &report.plan else {
            return Ok(None);
        };
        let id = format!("{}#{}", verdict.thread, verdict.message);
        let is_private = thread.meta().is_private() || config.council.private;
        let is_elsewhere = config.serves_others || self.env().is_in_fleet();
        if !is_drawn(&id, own.share) || is_private || is_elsewhere || verdict.winner.is_none() {
            return Ok(None);
        }
        let members = voters(plan);
        if members.len() < 2 {
            return Ok(None);
        }
        let bill = Bill::of(report);
        let left = left_of(
            [plan.limits.ceiling(), config.limits.ceiling()],
            bill.spent(),
        );
        trust::check(self.project(), trust::Named::only(&members), self.env())?;
        let request = LiveRequest {
            members,
            limits: left,
            concurrency: 1,
            source: SOURCE.to_owned(),
            command: REPORT.to_owned(),
            offline: true,
            // Comparing stored answers with a new answer of the council would measure luck.
            fresh: true,
            ..LiveRequest::default()
        };
        let known = Known {
            id,
            text: plan.question.clone(),
            // It is known once the verdict is marked.
            gold: Value::Null,
        };
        let kingdom = self.changed(|own| {
            own.clone_from(config);
            own.deliberation.ask_back = false;
        });
        let mut live = kingdom.ways(request, vec![known])?;
        let best = &live.best().name;
        let mut seats = plan.seats.iter().filter(|seat| seat.agent == *best);
        let is_limited = seats.all(|seat| !is_program(&seat.member.backend));
        let council = bill.cost();
        let is_spent = [
            left.usd.map(|usd| usd <= 0.0),
            left.calls.map(|n| n == 0),
            left.tokens.map(|n| n == 0),
        ];
        let (mut usd, mut is_over) = (is_limited.then_some(0.0), is_spent.contains(&Some(true)));
        if !is_over && is_limited {
            let estimate = live.estimate_beside(council)?;
            usd = estimate.usd.map(|usd| usd.high);
            is_over = left.usd.zip(usd).is_some_and(|(left, usd)| left < usd)
                || left.calls.is_some_and(|left| left < estimate.calls.high)
                || left.tokens.is_some_and(|left| left < estimate.tokens.high);
        }
        Ok(Some(Shared {
            live,
            council,
            usd,
            is_over,
        }))
    }

    /// Cancels shared batches that were interrupted: they are not continued.
    ///
    /// # Errors
    /// If the batches cannot be read or written.
    pub fn end_shared(&self) -> Result<(), UserError> {
        let Some(mut batches) = of(self.env())? else {
            return Ok(());
        };
        for batch in batches.all()? {
            let is_open = is_shared(&batch.about.source) && !batch.counts.is_over();
            if is_open && let Some(_lock) = batches.lock(&batch.about.id)? {
                batches.cancel(&batch.about.id)?;
            }
        }
        Ok(())
    }

    /// Returns the settings: those of the user's own file, which other files and variables can only lower.
    pub fn eval_settings(&self) -> EvalConfig {
        let here = &self.loaded().config.eval;
        if here.share <= 0.0 {
            return here.clone();
        }
        let own = load(&self.env().config_paths(None), [], &[]);
        // A file that cannot be read allows nothing.
        let own = own.map_or_else(
            |_| EvalConfig {
                share: 0.0,
                max_usd: 0.0,
            },
            |own| own.config.eval,
        );
        EvalConfig {
            share: own.share.min(here.share),
            max_usd: own.max_usd.min(here.max_usd),
        }
    }
}

/// Returns the remaining limits; the strictest limit of each kind counts.
fn left_of(limits: [Ceiling; 2], spent: Spent) -> Limits {
    let least = |of: fn(&Ceiling) -> Option<u64>, spent: u64| {
        let least = limits.iter().filter_map(of).min();
        least.map(|limit| limit.saturating_sub(spent))
    };
    let micro = least(
        |limits| limits.micro_usd,
        spent.pico_usd.div_ceil(1_000_000),
    );
    Limits {
        usd: micro.map(|micro| micro as f64 / 1e6),
        calls: least(|limits| limits.calls, spent.calls),
        tokens: least(|limits| limits.tokens, spent.tokens),
    }
}

/// Returns whether a question is one of the share: the same for the same verdict.
fn is_drawn(id: &str, share: f64) -> bool {
    let digest = Sha256::digest(id);
    let drawn = digest[..4]
        .iter()
        .fold(0_u32, |sum, byte| (sum << 8) | u32::from(*byte));
    f64::from(drawn) < share * (f64::from(u32::MAX) + 1.0)
}

/// Returns the source of the batch of a way, as [`Live::batching`] writes it.
fn source(way: Way) -> String {
    format!("{SOURCE} ({})", way.word())
}

/// Returns whether a batch has shared questions.
fn is_shared(of: &str) -> bool {
    Way::ALL.into_iter().any(|way| source(way) == of)
}

fn consent_file(env: &Env) -> Result<PathBuf, UserError> {
    Ok(env.user_dirs().state()?.join("eval-share"))
}

/// Returns whether the user agreed to these settings.
///
/// # Errors
/// The user's state folder cannot be read.
pub fn consent(env: &Env, settings: &EvalConfig) -> Result<Consent, UserError> {
    let Some(bytes) = kd_store::private::read(&consent_file(env)?, CONSENT_BYTES_MAX)? else {
        return Ok(Consent::Unasked);
    };
    Ok(consent_in(&String::from_utf8_lossy(&bytes), settings))
}

fn consent_in(text: &str, settings: &EvalConfig) -> Consent {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [answer, share, usd] = words[..] else {
        return Consent::Unasked;
    };
    let (Ok(share), Ok(usd)) = (share.parse::<f64>(), usd.parse::<f64>()) else {
        return Consent::Unasked;
    };
    match answer {
        "yes" if share >= settings.share && usd >= settings.max_usd => Consent::Given,
        "no" if share >= settings.share && usd >= settings.max_usd => Consent::Refused,
        _ => Consent::Unasked,
    }
}

/// Keeps the user's answer about these settings.
///
/// # Errors
/// The user's state folder cannot be written.
pub fn keep_consent(env: &Env, settings: &EvalConfig, agrees: bool) -> Result<(), UserError> {
    make_private(env.user_dirs().state()?)?;
    let answer = if agrees { "yes" } else { "no" };
    let text = format!("{answer} {} {}\n", settings.share, settings.max_usd);
    Ok(kd_store::private::replace_synced(
        &consent_file(env)?,
        text.as_bytes(),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_the_share_of_all_questions_is_drawn() {
        let drawn = |share: f64| {
            let ids = (0..2000).map(|at| format!("council-{at:04x}#6"));
            ids.filter(|id| is_drawn(id, share)).count()
        };
        assert_eq!((drawn(0.0), drawn(1.0)), (0, 2000));
        assert!((150..250).contains(&drawn(0.1)), "{}", drawn(0.1));
        assert_eq!(
            is_drawn("council-a94d#6", 0.5),
            is_drawn("council-a94d#6", 0.5)
        );
    }

    #[test]
    fn the_strictest_limit_of_the_run_counts_and_what_it_spent_is_gone() {
        let ceiling = |calls, tokens, micro_usd| Ceiling {
            calls,
            tokens,
            micro_usd,
        };
        let spent = Spent {
            calls: 3,
            tokens: 100,
            pico_usd: 40_000_000_001,
            ..Spent::default()
        };
        let limits = [
            ceiling(Some(50), Some(9000), None),
            ceiling(Some(5), None, Some(60_000)),
        ];
        let left = left_of(limits, spent);
        assert_eq!((left.calls, left.tokens), (Some(2), Some(8900)));
        assert_eq!(left.usd, Some(0.019_999));
        let none = left_of(
            [ceiling(None, None, None), ceiling(Some(2), None, None)],
            spent,
        );
        assert_eq!(
            none,
            Limits {
                calls: Some(0),
                ..Limits::default()
            }
        );
    }

    #[test]
    fn consent_is_to_these_settings_or_to_less() {
        let of =
            |text: &str, share: f64, max_usd: f64| consent_in(text, &EvalConfig { share, max_usd });
        assert_eq!(of("yes 0.1 0.5\n", 0.1, 0.5), Consent::Given);
        assert_eq!(of("yes 0.1 0.5\n", 0.05, 0.2), Consent::Given);
        assert_eq!(of("yes 0.1 0.5\n", 0.2, 0.5), Consent::Unasked);
        assert_eq!(of("yes 0.1 0.5\n", 0.1, 1.0), Consent::Unasked);
        assert_eq!(of("no 0.1 0.5\n", 0.1, 0.5), Consent::Refused);
        // Nor is what was refused asked again if it gets less.
        assert_eq!(of("no 0.1 0.5\n", 0.1, 0.2), Consent::Refused);
        assert_eq!(of("no 0.1 0.5\n", 0.1, 0.6), Consent::Unasked);
        for broken in ["", "yes", "yes x y", "maybe 0.1 0.5", "yes NaN NaN"] {
            assert_eq!(of(broken, 0.1, 0.5), Consent::Unasked, "{broken}");
        }
    }
}
