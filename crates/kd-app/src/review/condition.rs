//! `--fail-on`: the findings that make the command fail.

use super::report::FailOn;
use crate::error::UserError;
use kd_core::review::{Reported, Severity};
use std::fmt;

/// A condition; every part of it must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    share: Option<f64>,
    severity: Option<Severity>,
}

impl Condition {
    /// Parses `P>=0.7`, `blocker`, or both separated by a comma.
    ///
    /// # Errors
    /// If the text is none of these.
    pub fn read(text: &str) -> Result<Self, UserError> {
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
                let share = share.ok_or_else(|| unreadable(part))?;
                if condition.share.replace(share).is_some() {
                    return Err(twice(text, "probabilities"));
                }
                continue;
            }
            let severity = Severity::ALL
                .iter()
                .find(|s| s.word() == part.to_lowercase());
            let severity = severity.ok_or_else(|| unreadable(part))?;
            if condition.severity.replace(*severity).is_some() {
                return Err(twice(text, "severities"));
            }
        }
        Ok(condition)
    }

    /// Returns whether a finding meets the condition. Its share is compared as reports show it, in whole percent: a
    /// finding shown with 70 % meets `P>=0.7`.
    pub fn holds(&self, finding: &Reported) -> bool {
        let shown = f64::from(finding.chance.percent());
        // 0.07 times 100 is a little more than 7.
        let least = |share: f64| share * 100.0 - 1e-9;
        self.share.is_none_or(|share| shown >= least(share))
            && self
                .severity
                .is_none_or(|least| finding.severity() >= least)
    }

    /// Checks all findings against conditions, one of which is enough; `None` if there are no conditions.
    pub(super) fn check(conditions: &[Self], findings: &[Reported]) -> Option<FailOn> {
        let met = |finding: &Reported| {
            let met = conditions.iter().filter(|one| one.holds(finding));
            let met: Vec<String> = met.map(ToString::to_string).collect();
            (!met.is_empty()).then(|| (finding.id.clone(), met))
        };
        (!conditions.is_empty()).then(|| FailOn {
            conditions: conditions.iter().map(ToString::to_string).collect(),
            met: findings.iter().filter_map(met).collect(),
            unseen: Vec::new(),
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.severity, self.share) {
            (Some(severity), Some(share)) => write!(f, "{},P>={share}", severity.word()),
            (Some(severity), None) => f.write_str(severity.word()),
            (None, Some(share)) => write!(f, "P>={share}"),
            (None, None) => Ok(()),
        }
    }
}

fn twice(text: &str, what: &str) -> UserError {
    UserError::usage(format!("--fail-on `{text}` names two {what}"))
        .next("name one (a severity includes higher ones), or repeat the option if one condition is enough: --fail-on blocker --fail-on 'P>=0.7'")
}

fn unreadable(part: &str) -> UserError {
    UserError::usage(format!("--fail-on cannot read `{part}`"))
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
            severity: None,
            cluster: Cluster {
                findings: vec![Raw {
                    member: "ann".into(),
                    finding,
                }],
                how: Vec::new(),
            },
            votes: Default::default(),
            missing_votes: Vec::new(),
            independent: None,
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
        // Both sides of each rounding limit: what is shown decides.
        for (text, share, shown, holds) in [
            ("P>=0.7", 0.694_9, "69 %", false),
            ("P>=0.7", 0.695, "70 %", true),
            ("P>=0.7", 0.698, "70 %", true),
            ("P>=0.7", 0.704_9, "70 %", true),
            ("P>=0.695", 0.694, "69 %", false),
            ("P>=0.695", 0.698, "70 %", true),
            ("P>=0.07", 0.07, "7 %", true),
            ("P>=0.29", 0.286, "29 %", true),
            ("P>=0.58", 0.58, "58 %", true),
            ("P>=1", 0.994, "99 %", false),
            ("P>=1", 0.995, "100 %", true),
            ("P>=0", 0.0, "0 %", true),
            ("P>=0.01", 0.004, "0 %", false),
        ] {
            let finding = finding(share, Minor);
            let condition = Condition::read(text).expect(text);
            let at = format!("{text} of {share}");
            assert_eq!(format!("{} %", finding.chance.percent()), shown, "{at}");
            assert_eq!(condition.holds(&finding), holds, "{at}");
            let met = Condition::check(&[condition], &[finding])
                .expect("a condition")
                .met;
            assert_eq!(
                met.get("1").map(Vec::as_slice),
                holds.then_some(&[text.to_owned()][..])
            );
        }
        assert_eq!(Condition::check(&[], &[finding(1.0, Blocker)]), None);
        for percent in 0..=100_u32 {
            // Every displayed share meets a condition with the same number.
            let condition = Condition::read(&format!("P>=0.{percent:02}"));
            let condition = condition.unwrap_or_else(|_| Condition::read("P>=1").expect("one"));
            let least = if percent == 100 {
                0.0
            } else {
                f64::from(percent) / 100.0
            };
            for share in [
                least,
                (least - 0.005).max(0.0) + 1e-6,
                (least + 0.004).min(1.0),
            ] {
                let one = finding(share, Minor);
                let shown = one.chance.percent();
                if percent < 100 {
                    assert_eq!(condition.holds(&one), shown >= percent, "{percent} {share}");
                }
            }
        }
        for bad in [
            "",
            "P",
            "P>0.7",
            "P>=1.7",
            "P>=nan",
            "severe",
            "P>=0.5,,",
            "high",
            "major,blocker",
            "nit,P>=0.5,nit",
            "P>=0.5,P>=0.1",
            "P>=0.5,major,P>=0.5",
        ] {
            assert!(Condition::read(bad).is_err(), "{bad}");
        }
    }
}
