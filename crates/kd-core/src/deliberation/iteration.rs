//! Decides whether another pass follows. Input: the settings and the result of each pass. Output: a decision and its
//! reason.
//!
//! The default threshold is applied to agreement, since the confidence that members state is not a probability; both
//! thresholds are heuristics.

use super::ledger::Spent;
use super::plan::{Iteration, Strategy};
use serde::{Deserialize, Serialize};

/// The result of a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PassEnd {
    /// The agreement, 0 to 1.
    pub agreement: f64,
    /// The answer that each member supports, in member order.
    pub stands: Vec<Option<String>>,
    /// Whether it has content that no earlier pass had.
    pub news: bool,
    /// Whether all countable members support the same answer.
    pub unanimous: bool,
    /// Tokens used so far.
    pub tokens: u64,
}

/// The action after a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Another pass.
    Continue,
    /// Another pass with more members.
    Escalate,
    /// Stop and answer.
    Stop,
}

/// The decision after a pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The pass, from 1.
    pub iteration: u32,
    /// The action.
    pub action: Action,
    /// The reason.
    pub reason: String,
    /// The agreement.
    pub confidence: f64,
    /// Tokens used so far.
    pub tokens_used: u64,
    /// The cost of this pass; `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// Agreement below which reserve members join, whatever the strategy.
const LOW: f64 = 0.5;

/// The reason in records for a single pass.
const OFF: &str = "iteration is off";

/// Returns the reason why there is no further pass, as shown to users.
pub(super) fn words(reason: &str) -> &str {
    match reason {
        OFF => "one pass was planned",
        other => other,
    }
}

/// Decides after the last of these passes. `cut` names a limit that allows no more; `backups` tells whether there are
/// reserve members.
pub(super) fn decide(
    settings: &Iteration,
    passes: &[PassEnd],
    cut: Option<&str>,
    backups: bool,
) -> Decision {
    let count = passes.len() as u32;
    let last = passes.last().cloned().unwrap_or_default();
    let before = &passes[..passes.len().saturating_sub(1)];
    let stop = |reason: String| (Action::Stop, reason);
    let (action, reason) = if let Some(limit) = cut {
        stop(format!("{limit} is reached"))
    } else if !settings.enabled {
        stop(OFF.into())
    } else if last.unanimous {
        stop("certain: everybody stands for the same".into())
    } else if count >= settings.max_iterations {
        stop(format!(
            "{count} of at most {} passes are made",
            settings.max_iterations
        ))
    } else if last.agreement >= settings.convergence_threshold {
        stop(format!(
            "converged: agreement {:.2} reaches {:.2}",
            last.agreement, settings.convergence_threshold
        ))
    } else if let Some(at) = before.iter().position(|p| p.stands == last.stands) {
        stop(format!(
            "a cycle: everybody stands where they stood in pass {}",
            at + 1
        ))
    } else if count > 1 && !last.news {
        stop("no progress: nothing was said that was not said before".into())
    } else if let Some(previous) = before.last()
        && last.agreement - previous.agreement < settings.improvement_threshold
    {
        stop(format!(
            "agreement moved from {:.2} to {:.2}, less than {:.2}",
            previous.agreement, last.agreement, settings.improvement_threshold
        ))
    } else if backups && (settings.strategy == Strategy::Escalate || last.agreement < LOW) {
        (
            Action::Escalate,
            format!("agreement is only {:.2}: more seats join", last.agreement),
        )
    } else {
        (
            Action::Continue,
            format!("agreement is only {:.2}", last.agreement),
        )
    };
    Decision {
        iteration: count,
        action,
        reason,
        confidence: last.agreement,
        tokens_used: last.tokens,
        spent: None,
    }
}

/// Returns the pass whose result counts: the one with the highest agreement, the latest on a tie.
pub(super) fn best(passes: &[PassEnd]) -> usize {
    let mut best = 0;
    for (at, pass) in passes.iter().enumerate() {
        if pass.agreement >= passes[best].agreement {
            best = at;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on() -> Iteration {
        Iteration {
            enabled: true,
            ..Iteration::default()
        }
    }

    fn pass(agreement: f64, stands: &[&str]) -> PassEnd {
        PassEnd {
            agreement,
            stands: stands.iter().map(|s| Some((*s).to_owned())).collect(),
            news: true,
            ..PassEnd::default()
        }
    }

    #[test]
    fn each_stop_has_its_reason() {
        let a = pass(0.55, &["x", "y", "x"]);
        let b = pass(0.65, &["x", "x", "y"]);
        let cases = [
            (
                Iteration::default(),
                vec![a.clone()],
                None,
                "iteration is off",
            ),
            (
                on(),
                vec![a.clone()],
                Some("the limit of tokens"),
                "the limit of tokens is reached",
            ),
            (on(), vec![pass(0.9, &["x"])], None, "converged"),
            (
                on(),
                vec![PassEnd {
                    unanimous: true,
                    ..a.clone()
                }],
                None,
                "certain",
            ),
            (
                on(),
                vec![a.clone(), b.clone(), pass(0.75, &["y", "x", "y"])],
                None,
                "3 of at most 3",
            ),
            (
                on(),
                vec![
                    a.clone(),
                    PassEnd {
                        agreement: 0.8,
                        ..a.clone()
                    },
                ],
                None,
                "a cycle",
            ),
            (
                on(),
                vec![
                    a.clone(),
                    PassEnd {
                        news: false,
                        ..b.clone()
                    },
                ],
                None,
                "no progress",
            ),
            (
                on(),
                vec![a.clone(), pass(0.58, &["z", "x", "x"])],
                None,
                "less than 0.05",
            ),
        ];
        for (settings, passes, cut, reason) in cases {
            let decision = decide(&settings, &passes, cut, false);
            assert_eq!(decision.action, Action::Stop, "{reason}");
            assert!(decision.reason.contains(reason), "{}", decision.reason);
        }
        assert_eq!(
            decide(&on(), &[a.clone(), b], None, false).action,
            Action::Continue
        );
        assert_eq!(
            decide(&on(), &[pass(0.3, &["x", "y"])], None, true).action,
            Action::Escalate
        );
        assert_eq!(decide(&on(), &[a], None, true).action, Action::Continue);
    }

    #[test]
    fn the_best_so_far_is_kept() {
        let passes = [pass(0.5, &[]), pass(0.8, &[]), pass(0.6, &[])];
        assert_eq!(best(&passes), 1);
        assert_eq!(best(&passes[..1]), 0);
    }
}
