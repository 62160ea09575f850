//! The candidates of a poll that lists none: all names on its ballots. Refuses names that were not meant as such.

use super::{MARKS, Notices, OVERVOTE, Place, name};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The names on ballots, sorted, because the order of ballots must not matter; and where each is first.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, Place>);

/// Names that cannot be candidates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadName {
    /// A whole ranking.
    #[error("`{name}` reads like a ranking, not like one candidate")]
    Ranking { at: Place, name: String },
    /// One candidate in two spellings.
    #[error("`{name}` and `{other}` ({first}) differ only in case or blanks")]
    Spelling {
        at: Place,
        name: String,
        other: String,
        first: Place,
    },
}

impl BadName {
    pub(super) fn line(&self) -> usize {
        match self {
            BadName::Ranking { at, .. } | BadName::Spelling { at, .. } => at.line,
        }
    }
}

impl Names {
    /// Adds all names of a ballot.
    pub(super) fn add(&mut self, ballot: &Value, at: Place) {
        match ballot {
            Value::Array(ranks) => self.list(ranks, at),
            Value::Object(object) => self.object(object, at),
            _ => {}
        }
    }

    fn object(&mut self, ballot: &Map<String, Value>, at: Place) {
        for key in MARKS {
            match ballot.get(key) {
                // Numbers in the order of the candidates.
                Some(Value::Array(_)) if matches!(key, "scores" | "points") => {}
                Some(Value::Array(list)) => self.list(list, at),
                Some(Value::Object(each)) => each.keys().for_each(|k| self.text(k, at)),
                Some(one) => self.one(one, at),
                None => {}
            }
        }
    }

    fn list(&mut self, list: &[Value], at: Place) {
        for item in list {
            match item {
                Value::Array(several) => several.iter().for_each(|one| self.one(one, at)),
                one => self.one(one, at),
            }
        }
    }

    fn one(&mut self, value: &Value, at: Place) {
        if let Some(name) = name(value) {
            self.text(&name, at);
        }
    }

    fn text(&mut self, name: &str, at: Place) {
        if name != OVERVOTE && !name.trim().is_empty() {
            self.0.entry(name.to_owned()).or_insert(at);
        }
    }

    /// Returns the candidates, and notices of names that may be several.
    ///
    /// # Errors
    /// The first name, by place, that was not meant as one candidate.
    pub(super) fn candidates(self) -> Result<(Vec<String>, Notices), BadName> {
        let mut bad: Vec<(Place, BadName)> = Vec::new();
        let mut folded: BTreeMap<String, (&String, Place)> = BTreeMap::new();
        for (name, at) in &self.0 {
            if is_ranking(name) {
                let (at, name) = (*at, name.clone());
                bad.push((at, BadName::Ranking { at, name }));
            }
            if let Some((other, there)) = folded.insert(fold(name), (name, *at)) {
                let mut both = [(there, other), (*at, name)];
                both.sort_by_key(|(at, _)| *at);
                let [(first, other), (at, name)] = both.map(|(at, name)| (at, name.clone()));
                let spelling = BadName::Spelling {
                    at,
                    name,
                    other,
                    first,
                };
                bad.push((at, spelling));
            }
        }
        bad.sort_by_key(|(at, _)| *at);
        if let Some((_, bad)) = bad.into_iter().next() {
            return Err(bad);
        }
        let known: BTreeSet<&String> = folded.keys().collect();
        let several = |name: &&String| SEPARATORS.iter().any(|by| is_several(name, *by, &known));
        let mut notices = Notices::default();
        for name in self.0.keys().filter(several) {
            let what = format!(
                "`{name}` is counted as one candidate, though its parts are candidates too"
            );
            notices.add(what, self.0[name]);
        }
        Ok((self.0.into_keys().collect(), notices))
    }
}

/// The signs between names that people write into one cell.
const SEPARATORS: [char; 6] = [',', ';', '|', '/', '=', '+'];

/// Returns a name without the differences that a reader would not take for one.
pub(super) fn fold(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Returns whether a text is names with `>` between them. Arrows, comparisons and types such as `List<T>` are not.
fn is_ranking(text: &str) -> bool {
    let is_name = |part: &str| {
        let part = part.trim();
        !part.is_empty() && !part.starts_with('=') && !part.ends_with(['-', '=', '~'])
    };
    text.contains('>') && !text.contains('<') && text.split('>').all(is_name)
}

fn is_several(name: &str, separator: char, known: &BTreeSet<&String>) -> bool {
    name.contains(separator)
        && name
            .split(separator)
            .all(|part| known.contains(&fold(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rankings_are_told_from_names_with_the_same_sign() {
        for (text, expected) in [
            ("A>B", true),
            ("A > B=C > D", true),
            ("A", false),
            ("a -> b", false),
            ("a => b", false),
            ("n >= 3", false),
            ("Vec<String>", false),
            ("A >", false),
            ("> A", false),
        ] {
            assert_eq!(is_ranking(text), expected, "{text}");
        }
    }
}
