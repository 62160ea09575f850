//! A share of ordinary questions is also asked of the council's best member alone, and of samples of it: `eval.share`.
//!
//! Input: a deliberation that just ended. Output: the two other ways to ask its question, by the code of
//! [`crate::live`], within a budget of their own for each day. The answers are kept as batches; once the verdict is marked
//! with the right answer, [`Kingdom::shared`] returns them for the paired comparison.
//!
//! The settings count only from the user's own file, and nothing is asked without the user's consent to them.

use crate::batch::of;
use crate::env::Env;
use crate::error::UserError;
use crate::kingdom::Kingdom;
use crate::live::{
    Answered, Bill, Cost, Known, Live, LiveRequest, Way, all_marked, judged, places, read_rows,
    thread_of,
};
use crate::request::Limits;
use crate::trust;
use kd_core::batch::Row;
use kd_core::config::{Config, EvalConfig, KeyPath, Layer};
use kd_core::deliberation::report::Report;
use kd_core::deliberation::unmarked;
use kd_core::roles::Duty;
use kd_store::user_dirs::{make_private, project_key};
use kd_store::{Layout, Thread, private};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
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
    /// What the council's answer cost.
    pub council: Cost,
}

/// Whether the user agreed to the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// To these, or to more.
    Given,
    /// The user said no to these.
    Refused,
    /// Never asked.
    Unasked,
}

/// The answers to shared questions, those whose right answer the user's marks tell.
pub struct SharedAnswers {
    /// The questions.
    pub known: Vec<Known>,
    /// The answers of each way.
    pub ways: Vec<(Way, Answered)>,
    /// Number of shared questions whose right answer is unknown.
    pub unmarked: u64,
}

impl Kingdom {
    /// Prepares the question of a deliberation for the two other ways, if it is one of the share. `config` has the settings
    /// of the deliberation. `None` without a share, for private threads, open answers, councils of one member, or if the
    /// budget of the day is spent.
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
        let voters = plan.seats.iter().filter(|seat| seat.has(Duty::Opine));
        let mut members: Vec<String> = Vec::new();
        for seat in voters {
            if !members.contains(&seat.agent) {
                members.push(seat.agent.clone());
            }
        }
        let left = own.max_usd - self.shared_today()?;
        if members.len() < 2 || left <= 0.0 {
            return Ok(None);
        }
        trust::check(self.project(), trust::Named::only(&members), self.env())?;
        let request = LiveRequest {
            members,
            limits: Limits {
                usd: Some(left),
                ..Limits::default()
            },
            concurrency: 1,
            source: SOURCE.to_owned(),
            command: REPORT.to_owned(),
            offline: true,
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
        Ok(Some(Shared {
            live: kingdom.ways(request, vec![known])?,
            council: Bill::of(report).cost(),
        }))
    }

    /// Returns the settings, as the user's own file has them: what a project says about them does not count.
    pub fn eval_settings(&self) -> EvalConfig {
        let loaded = self.loaded();
        let is_own = |key: &str| {
            let layer = loaded.origins.of(&KeyPath::new(["eval", key])).layer;
            matches!(layer, Layer::User | Layer::Builtin)
        };
        match is_own("share") && is_own("maxUsd") {
            true => loaded.config.eval.clone(),
            false => EvalConfig {
                share: 0.0,
                ..EvalConfig::default()
            },
        }
    }

    /// Returns the US dollars that shared questions of this project have cost today (UTC).
    fn shared_today(&self) -> Result<f64, UserError> {
        let Some(batches) = of(self.env())? else {
            return Ok(0.0);
        };
        let day = |time: kd_core::Timestamp| time.as_second().div_euclid(24 * 60 * 60);
        let today = day(self.env().now()?);
        let all = batches.all()?.into_iter();
        let ours =
            all.filter(|batch| is_shared(&batch.about.source) && day(batch.created) == today);
        Ok(ours.map(|batch| batch.spent.usd()).sum())
    }

    /// Returns the answers to shared questions.
    ///
    /// # Errors
    /// If the marks, the batches or the threads of the project cannot be read.
    pub fn shared(&self) -> Result<SharedAnswers, UserError> {
        let layout = self.env().layout()?;
        let mut threads = places(layout.all_threads(true)?);
        threads.extend(places(layout.batch_threads()?));
        let mut rows: BTreeMap<Way, BTreeMap<String, Row>> = BTreeMap::new();
        if let Some(batches) = of(self.env())? {
            for batch in batches.all()? {
                let of_way = |way: &Way| batch.about.source == source(*way);
                if let Some(way) = Way::ALL.into_iter().find(of_way) {
                    read_rows(&batches, &batch.about.id, rows.entry(way).or_default())?;
                }
            }
        }
        let ids: BTreeSet<&String> = rows.values().flat_map(BTreeMap::keys).collect();
        let mut known = all_marked(self)?;
        known.retain(|known| ids.contains(&known.id));
        let unmarked = (ids.len() - known.len()) as u64;
        let answers = |way: Way| {
            let mut found = Answered::default();
            for known in &known {
                let thread = match way {
                    Way::Council => known.id.split('#').next(),
                    _ => (rows.get(&way))
                        .and_then(|rows| rows.get(&known.id))
                        .and_then(thread_of),
                };
                found.add(way, known, judged(known, thread, (&layout, &threads)));
            }
            (way, found)
        };
        let ways = Way::ALL.map(answers).into();
        Ok(SharedAnswers {
            known,
            ways,
            unmarked,
        })
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
    let Some(bytes) = private::read(&consent_file(env)?, CONSENT_BYTES_MAX)? else {
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
    let is_same = share == settings.share && usd == settings.max_usd;
    match answer {
        "yes" if share >= settings.share && usd >= settings.max_usd => Consent::Given,
        "no" if is_same => Consent::Refused,
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
    Ok(private::replace_synced(
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
    fn consent_is_to_these_settings_or_to_less() {
        let of =
            |text: &str, share: f64, max_usd: f64| consent_in(text, &EvalConfig { share, max_usd });
        assert_eq!(of("yes 0.1 0.5\n", 0.1, 0.5), Consent::Given);
        assert_eq!(of("yes 0.1 0.5\n", 0.05, 0.2), Consent::Given);
        assert_eq!(of("yes 0.1 0.5\n", 0.2, 0.5), Consent::Unasked);
        assert_eq!(of("yes 0.1 0.5\n", 0.1, 1.0), Consent::Unasked);
        assert_eq!(of("no 0.1 0.5\n", 0.1, 0.5), Consent::Refused);
        assert_eq!(of("no 0.1 0.5\n", 0.1, 0.2), Consent::Unasked);
        for broken in ["", "yes", "yes x y", "maybe 0.1 0.5", "yes NaN NaN"] {
            assert_eq!(of(broken, 0.1, 0.5), Consent::Unasked, "{broken}");
        }
    }
}
