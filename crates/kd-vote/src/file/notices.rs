//! What a reader of ballots found odd and counted otherwise than somebody may expect, and where.

use std::collections::BTreeMap;
use std::fmt;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, 1-based.
    pub line: usize,
    /// The ballot within a poll of one line, 1-based; 0 if the line is the ballot.
    pub ballot: usize,
}

impl Place {
    pub(super) fn of(line: usize) -> Self {
        Self { line, ballot: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ballot {
            0 => write!(f, "line {}", self.line),
            ballot => write!(f, "line {}, ballot {ballot}", self.line),
        }
    }
}

/// Notices, each with all places that it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notices(BTreeMap<String, Vec<Place>>);

/// Maximum places that are named of one notice.
const PLACES_SHOWN: usize = 3;

impl Notices {
    pub(super) fn add(&mut self, what: String, at: Place) {
        let places = self.0.entry(what).or_default();
        if places.last() != Some(&at) {
            places.push(at);
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        for (what, places) in other.0 {
            self.0.entry(what).or_default().extend(places);
        }
    }

    /// Returns each notice as one line of text.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(what, places)| {
            let shown: Vec<String> = places
                .iter()
                .take(PLACES_SHOWN)
                .map(Place::to_string)
                .collect();
            let rest = match places.len().saturating_sub(PLACES_SHOWN) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            format!("{what} ({}{rest})", shown.join("; "))
        })
    }
}
