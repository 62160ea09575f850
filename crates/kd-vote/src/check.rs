//! Compares our counts with the counts that another program recorded.

use super::amount::Amount;
use super::file::{Case, RoundExpected};
use super::tally::{Round, Tally};
use super::{find, tally};

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseReport {
    /// Number of winner sets compared.
    pub sets: u64,
    /// Number of rounds compared.
    pub rounds: u64,
    /// Recorded rule names that are unknown here.
    pub unknown: Vec<String>,
    /// The differences.
    pub differences: Vec<Difference>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The rule's recorded name.
    pub rule: String,
    /// The recorded and the recounted value.
    pub what: String,
}

/// The rule of recorded rounds.
const ROUNDS_OF: &str = "rctab";

/// Compares every recorded winner set and round of a poll with ours.
pub fn check(case: &Case) -> CaseReport {
    let mut report = CaseReport::default();
    for (name, recorded) in &case.expected.winners {
        let Some(rule) = find(name) else {
            report.unknown.push(name.clone());
            continue;
        };
        report.sets += 1;
        let ours = tally(rule, &case.ballots, &case.rules).winners;
        if &ours != recorded {
            let what = format!(
                "winners: recorded {}, counted {}",
                names(case, recorded),
                names(case, &ours)
            );
            report.differences.push(Difference {
                rule: name.clone(),
                what,
            });
        }
    }
    if let (false, Some(rule)) = (case.expected.rounds.is_empty(), find(ROUNDS_OF)) {
        rounds(case, &tally(rule, &case.ballots, &case.rules), &mut report);
    }
    report
}

fn rounds(case: &Case, ours: &Tally, report: &mut CaseReport) {
    let mut differ = |what: String| {
        report.differences.push(Difference {
            rule: ROUNDS_OF.into(),
            what,
        })
    };
    let recorded = &case.expected.rounds;
    for (at, then) in recorded.iter().enumerate() {
        let number = at + 1;
        let Some(now) = ours.rounds.get(at) else {
            differ(format!(
                "round {number}: recorded, but our count ended before it"
            ));
            break;
        };
        report.rounds += 1;
        round(case, (number, then, now), &mut differ);
    }
    let mut elected: Vec<usize> = recorded
        .iter()
        .flat_map(|r| r.elected.iter().copied())
        .collect();
    elected.sort_unstable();
    // A recorded count that elects nobody was stopped early: ours may go on.
    if !elected.is_empty() {
        report.sets += 1;
        if elected != ours.winners {
            differ(format!(
                "winner: recorded {}, counted {}",
                names(case, &elected),
                names(case, &ours.winners)
            ));
        }
        if ours.rounds.len() > recorded.len() {
            differ(format!(
                "rounds: recorded {}, counted {}",
                recorded.len(),
                ours.rounds.len()
            ));
        }
    }
}

/// Compares one recorded round with ours.
fn round(
    case: &Case,
    (number, then, now): (usize, &RoundExpected, &Round),
    differ: &mut impl FnMut(String),
) {
    let mut tally: Vec<(usize, Amount)> = now.tally.clone();
    tally.sort();
    let wanted: Vec<(usize, Amount)> = then
        .tally
        .iter()
        .map(|(c, n)| (*c, Amount::of_nanos(*n)))
        .collect();
    for (c, n) in &wanted {
        match tally.iter().find(|(t, _)| t == c) {
            Some((_, own)) if own == n => {}
            Some((_, own)) => differ(format!(
                "round {number}: {} recorded {n}, counted {own}",
                case.rules.candidates[*c]
            )),
            None => differ(format!(
                "round {number}: {} recorded {n}, but was dropped here",
                case.rules.candidates[*c]
            )),
        }
    }
    for (c, own) in tally
        .iter()
        .filter(|(c, _)| !wanted.iter().any(|(w, _)| w == c))
    {
        differ(format!(
            "round {number}: {} counted {own}, but is not recorded",
            case.rules.candidates[*c]
        ));
    }
    for (what, then, now) in [
        ("eliminated", &then.eliminated, &now.eliminated),
        ("elected", &then.elected, &now.elected),
    ] {
        let mut now = now.clone();
        now.sort_unstable();
        if &now != then {
            differ(format!(
                "round {number}: {what} recorded {}, counted {}",
                names(case, then),
                names(case, &now)
            ));
        }
    }
}

/// Returns the names of candidates.
fn names(case: &Case, places: &[usize]) -> String {
    if places.is_empty() {
        return "nobody".into();
    }
    let each: Vec<&str> = places
        .iter()
        .filter_map(|c| case.rules.candidates.get(*c))
        .map(String::as_str)
        .collect();
    format!("{{{}}}", each.join(", "))
}
