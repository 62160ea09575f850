//! `--fail-on`: the findings that make the command fail.

use crate::error::Error;
use kd_core::review::{Reported, Severity};

/// A condition; every part of it must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Condition {
    share: Option<f64>,
    severity: Option<Severity>,
}

impl Condition {
    /// Parses `P>=0.7`, `blocker`, or both separated by a comma.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let mut condition = Self::default();
        for part in text.split(',').map(str::trim) {
            let compact: String = part.chars().filter(|c| !c.is_whitespace()).collect();
            let share = compact
                .strip_prefix(['P', 'p'])
                .and_then(|rest| rest.strip_prefix(">=").or_else(|| rest.strip_prefix('≥')));
            if let Some(share) = share {
                let share = share
                    .parse()
                    .ok()
                    .filter(|share| (0.0..=1.0).contains(share));
                condition.share = Some(share.ok_or_else(|| unreadable(part))?);
                continue;
            }
            let severity = Severity::ALL
                .iter()
                .find(|s| s.word() == part.to_lowercase());
            condition.severity = Some(*severity.ok_or_else(|| unreadable(part))?);
        }
        Ok(condition)
    }

    pub(super) fn holds(&self, finding: &Reported) -> bool {
        let severity = finding.finding().map(|about| about.severity);
        self.share.is_none_or(|share| finding.chance.share >= share)
            && self
                .severity
                .is_none_or(|least| severity.is_some_and(|s| s >= least))
    }
}

fn unreadable(part: &str) -> Error {
    Error::usage(format!("--fail-on cannot read `{part}`"))
        .next("'P>=0.7', blocker, major, minor, nit, or both with a comma: 'major,P>=0.5'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::review::{Chance, Cluster, Finding, Raw, Source};

    fn finding(share: f64, severity: Severity) -> Reported {
        let finding = Finding {
            severity,
            ..Finding::default()
        };
        Reported {
            id: "1".into(),
            cluster: Cluster {
                findings: vec![Raw {
                    member: "ann".into(),
                    finding,
                }],
                how: Vec::new(),
            },
            votes: Default::default(),
            chance: Chance {
                share,
                low: 0.0,
                high: 1.0,
                source: Source::Marks { marks: 1 },
            },
            of: None,
        }
    }

    #[test]
    fn a_condition_holds_for_what_it_says() {
        use Severity::{Blocker, Major, Minor};
        for (text, share, severity, holds) in [
            ("P>=0.7", 0.7, Minor, true),
            ("p >= 0.7", 0.69, Blocker, false),
            ("blocker", 0.0, Blocker, true),
            ("major", 0.0, Blocker, true),
            ("major", 1.0, Minor, false),
            ("major,P>=0.5", 0.6, Major, true),
            ("major, P≥0.5", 0.4, Major, false),
        ] {
            let condition = Condition::read(text).expect(text);
            assert_eq!(condition.holds(&finding(share, severity)), holds, "{text}");
        }
        for bad in [
            "", "P", "P>0.7", "P>=1.7", "P>=nan", "severe", "P>=0.5,,", "high",
        ] {
            assert!(Condition::read(bad).is_err(), "{bad}");
        }
    }
}
