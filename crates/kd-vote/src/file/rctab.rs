//! RCTab's configuration of an instant-runoff.

use super::RoundExpected;
use crate::amount::NANOS;
use crate::rules::{Overvote, Runoff, TiePolicy};
use serde_json::Value;

/// Undeclared write-ins: RCTab eliminates them first.
const WRITE_INS: &str = "Undeclared Write-ins";

/// The reason why a setting cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadRules {
    /// A maximum that is not a number.
    #[error("`rules.{key}` is {value}: a whole number, `max` or `unlimited`")]
    Number { key: String, value: String },
    /// An unknown treatment of ballots with two marks at one rank.
    #[error(
        "`rules.overvoteRule` is `{0}`: exhaustImmediately, alwaysSkipToNextRank or exhaustIfMultipleContinuing"
    )]
    Overvote(String),
}

/// Converts its settings to ours. Recorded rounds resolve its ties, because we cannot repeat RCTab's random draws.
pub(super) fn runoff(
    rules: Option<&Value>,
    candidates: &[String],
    rounds: &[RoundExpected],
) -> Result<Runoff, BadRules> {
    let word = |key: &str| rules.and_then(|r| r.get(key)).and_then(Value::as_str);
    let flag = |key: &str| {
        rules
            .and_then(|r| r.get(key))
            .and_then(Value::as_bool)
            .unwrap_or(false)
    };
    let number = |key: &str| -> Result<Option<usize>, BadRules> {
        let bad = |value: String| BadRules::Number {
            key: key.to_owned(),
            value,
        };
        match rules.and_then(|r| r.get(key)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text == "max" || text == "unlimited" => Ok(None),
            Some(Value::String(text)) => {
                let number = text.parse().map_err(|_| bad(format!("`{text}`")))?;
                Ok(Some(number))
            }
            Some(other) => {
                let number = other.as_u64().ok_or_else(|| bad(other.to_string()))?;
                Ok(Some(number as usize))
            }
        }
    };
    let overvote = match word("overvoteRule") {
        None | Some("exhaustImmediately") => Overvote::Exhaust,
        Some("alwaysSkipToNextRank") => Overvote::Skip,
        Some("exhaustIfMultipleContinuing") => Overvote::ExhaustIfSeveralStay,
        Some(other) => {
            return Err(BadRules::Overvote(other.to_owned()));
        }
    };
    let all = || (0..candidates.len()).collect();
    let ties = if rounds.is_empty() {
        match word("tiebreakMode") {
            None => TiePolicy::Batch,
            Some(mode) if mode.starts_with("previousRoundCounts") => TiePolicy::Backward,
            Some("useCandidateOrder" | "usePermutationInConfig") => TiePolicy::Order(all()),
            Some(_) => TiePolicy::Seeded,
        }
    } else {
        let answer = |r: &RoundExpected| {
            if r.elected.is_empty() {
                r.eliminated.clone()
            } else {
                r.elected.clone()
            }
        };
        TiePolicy::Answers(rounds.iter().map(answer).collect())
    };
    Ok(Runoff {
        ties,
        overvote,
        skips_max: number("maxSkippedRanksAllowed")?,
        ranks_max: number("maxRankingsAllowed")?,
        exhaust_on_duplicate: flag("exhaustOnDuplicateCandidate"),
        least: number("minimumVoteThreshold")?.map(|n| n as i128 * NANOS),
        drop_hopeless: flag("batchElimination"),
        until_two: flag("continueUntilTwoCandidatesRemain"),
        drop_first: (0..candidates.len())
            .filter(|c| candidates[*c] == WRITE_INS)
            .collect(),
    })
}
