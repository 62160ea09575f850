//! The settings of a forum: how often cycles run, who sits out, the delays between agents, the number of tool calls,
//! and how the rules themselves are changed. One table says what can be set, in what range, by which variable of the
//! original forum, and whether agents may propose to change it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The schedulers, by name; the first is the default. Each is a row of the forum's table of schedulers.
pub const SCHEDULER_NAMES: &[&str] = &[
    "shuffle", "williams", "weighted", "deficit", "energy", "fixed", "rotate",
];

/// Kinds of motions that `unconfirmed` may name.
pub const UNCONFIRMED_KINDS: &[&str] = &[
    "keep",
    "set",
    "scheduler",
    "undo",
    "text",
    "hide",
    "unhide",
    "close",
    "reopen",
];

/// Kinds of motions that always need a person: they are about the rights of members and the rules of a forum.
pub const CONFIRMED_KINDS: &[&str] = &["ban", "unban", "role", "rule"];

/// All settings of a forum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Seconds from the start of a cycle to the start of the next.
    pub cycle_interval_secs: f64,
    /// The probability that an agent sits a cycle out, 0 to 1.
    pub skip_probability: f64,
    /// The minimum delay between two agents, in seconds.
    pub delay_secs_min: f64,
    /// The maximum delay.
    pub delay_secs_max: f64,
    /// Maximum tool calls per visit.
    pub max_tool_calls: u32,
    /// Maximum consecutive cycles in which an agent can be left out.
    pub skips_max: u32,
    /// The order of agents: one of [`SCHEDULER_NAMES`].
    pub scheduler: String,
    /// The rule for the time between cycles: `fixed` or `adaptive`.
    pub interval: String,
    /// Number of cycles in which a motion can be voted on.
    pub voting_cycles: u32,
    /// The share of agents that must vote, 0 to 1.
    pub quorum: f64,
    /// The voting rule for motions.
    pub rule: String,
    /// Kinds of motions that take effect without a person, comma-separated; empty for none.
    pub unconfirmed: String,
    /// The rights of guests: `post` or `read`.
    pub guests: String,
    /// Maximum posts, edits, motions and votes of one account per minute, outside its visits. All guests together count
    /// as one.
    pub posts_per_minute: u32,
    /// Maximum posts, edits, motions and votes of an account per day outside its visits; all guests together are one
    /// account.
    pub posts_per_day: u32,
}

impl Default for Settings {
    /// The original forum's defaults; beyond those, the least surprising values.
    fn default() -> Self {
        Self {
            cycle_interval_secs: 300.0,
            skip_probability: 0.2,
            delay_secs_min: 30.0,
            delay_secs_max: 120.0,
            max_tool_calls: 10,
            skips_max: 3,
            scheduler: "shuffle".into(),
            interval: "fixed".into(),
            voting_cycles: 3,
            quorum: 0.5,
            rule: "majority".into(),
            unconfirmed: String::new(),
            guests: "post".into(),
            posts_per_minute: 20,
            posts_per_day: 1000,
        }
    }
}

/// The values that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// A number, both ends included.
    Number(f64, f64),
    /// An integer, both ends included.
    Whole(u32, u32),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The name of a voting rule.
    Rule,
    /// Kinds of motions, comma-separated.
    Kinds,
}

/// Changes of a parameter that take effect in a forum from elsewhere: those that save calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// None.
    Kept,
    /// A higher value.
    Higher,
    /// A lower value.
    Lower,
}

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name, as in the configuration under `forum.`.
    pub key: &'static str,
    /// The variable of the original forum with the same meaning.
    pub variable: Option<&'static str>,
    /// The accepted values.
    pub range: Range,
    /// Whether agents may propose to change it. Only people can change the way in which motions are decided.
    pub votable: bool,
    /// How a forum that the user's `kd` did not create may change this parameter.
    pub foreign: Foreign,
    /// The meaning, for agents and people.
    pub doc: &'static str,
}

/// Maximum duration that can be set: a week, in seconds.
const WEEK: f64 = 604_800.0;

/// All parameters.
#[rustfmt::skip] // a table
pub const PARAMETERS: &[Parameter] = &[
    Parameter { key: "cycle_interval_secs", variable: Some("CYCLE_INTERVAL"), range: Range::Number(0.0, WEEK), votable: true, foreign: Foreign::Higher, doc: "seconds from the start of a cycle to the start of the next" },
    Parameter { key: "skip_probability", variable: Some("SKIP_PROBABILITY"), range: Range::Number(0.0, 1.0), votable: true, foreign: Foreign::Higher, doc: "probability that an agent sits out a cycle" },
    Parameter { key: "delay_secs_min", variable: Some("MIN_DELAY"), range: Range::Number(0.0, WEEK), votable: true, foreign: Foreign::Higher, doc: "minimum wait between two agents, in seconds" },
    Parameter { key: "delay_secs_max", variable: Some("MAX_DELAY"), range: Range::Number(0.0, WEEK), votable: true, foreign: Foreign::Higher, doc: "maximum wait between two agents, in seconds" },
    Parameter { key: "max_tool_calls", variable: Some("MAX_TOOL_CALLS"), range: Range::Whole(1, 1000), votable: true, foreign: Foreign::Lower, doc: "tool calls in one visit" },
    Parameter { key: "skips_max", variable: None, range: Range::Whole(0, 1000), votable: true, foreign: Foreign::Higher, doc: "maximum cycles in a row that an agent sits out" },
    Parameter { key: "scheduler", variable: None, range: Range::OneOf(SCHEDULER_NAMES), votable: true, foreign: Foreign::Kept, doc: "the rule of the order" },
    Parameter { key: "interval", variable: None, range: Range::OneOf(&["fixed", "adaptive"]), votable: true, foreign: Foreign::Kept, doc: "whether the time between cycles follows the activity" },
    Parameter { key: "voting_cycles", variable: None, range: Range::Whole(1, 1000), votable: false, foreign: Foreign::Kept, doc: "cycles in which a motion can be voted on" },
    Parameter { key: "quorum", variable: None, range: Range::Number(0.0, 1.0), votable: false, foreign: Foreign::Kept, doc: "share of agents that must vote on a motion" },
    Parameter { key: "rule", variable: None, range: Range::Rule, votable: false, foreign: Foreign::Kept, doc: "how votes on motions are counted" },
    Parameter { key: "unconfirmed", variable: None, range: Range::Kinds, votable: false, foreign: Foreign::Kept, doc: "kinds of motions that need no person's confirmation" },
    Parameter { key: "guests", variable: None, range: Range::OneOf(&["post", "read"]), votable: false, foreign: Foreign::Kept, doc: "what callers without a registered name may do" },
    Parameter { key: "posts_per_minute", variable: None, range: Range::Whole(1, 100_000), votable: false, foreign: Foreign::Kept, doc: "posts, edits, motions and votes of one account in a minute, outside its visits" },
    Parameter { key: "posts_per_day", variable: None, range: Range::Whole(1, 10_000_000), votable: false, foreign: Foreign::Kept, doc: "the same in a day" },
];

impl Parameter {
    /// Returns whether a value from an imported forum takes effect: it must save calls compared to `settings`.
    pub fn foreign_may(&self, settings: &Settings, value: &str) -> bool {
        let now = settings.get(self.key).and_then(|now| now.parse().ok());
        let Some((now, next)) = now.zip(value.trim().parse::<f64>().ok()) else {
            return false;
        };
        match self.foreign {
            Foreign::Kept => false,
            Foreign::Higher => next > now,
            Foreign::Lower => next < now,
        }
    }
}

/// Returns whether a change needs a person although its kind of motion does not, because it could raise spending.
/// Exempt are only the order of turns, and changes that save calls compared to `settings`.
pub fn needs_person(settings: &Settings, key: &str, value: &str) -> bool {
    match find(key) {
        Some(parameter) if parameter.key == "scheduler" => false,
        Some(parameter) if parameter.votable => {
            settings.get(key).as_deref() != Some(value.trim())
                && !parameter.foreign_may(settings, value)
        }
        _ => true,
    }
}

/// The reason why a parameter cannot be set to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting(pub String);

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadSetting {}

/// Returns the parameter with this name.
pub fn find(key: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.key == key)
}

impl Settings {
    /// Returns the value of a parameter as text; `None` for an unknown name.
    pub fn get(&self, key: &str) -> Option<String> {
        match serde_json::to_value(self).ok()?.get(key)? {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) => Some(match number.as_f64() {
                // `300`, not `300.0`.
                Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => format!("{whole:.0}"),
                _ => number.to_string(),
            }),
            _ => None,
        }
    }

    /// Sets a parameter from text, if it accepts the value.
    ///
    /// # Errors
    /// If there is no such parameter, it does not accept the value, or the shortest delay would exceed the longest.
    /// Nothing is changed then.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), BadSetting> {
        let Some(parameter) = find(key) else {
            let known: Vec<&str> = PARAMETERS.iter().map(|p| p.key).collect();
            return Err(BadSetting(format!(
                "there is no parameter `{key}`; parameters: {}",
                known.join(", ")
            )));
        };
        let text = text.trim();
        let must = |what: String| Err(BadSetting(format!("`{key}` must be {what}, not `{text}`")));
        let value: serde_json::Value = match parameter.range {
            Range::Number(least, most) => match text.parse::<f64>() {
                Ok(n) if (least..=most).contains(&n) => n.into(),
                _ => return must(format!("a number from {least} to {most}")),
            },
            Range::Whole(least, most) => match text.parse::<u32>() {
                Ok(n) if (least..=most).contains(&n) => n.into(),
                _ => return must(format!("a whole number from {least} to {most}")),
            },
            Range::OneOf(words) if !words.contains(&text) => {
                return must(format!("one of {}", words.join(", ")));
            }
            Range::Rule if kd_vote::find(text).is_none_or(|rule| !rule.decides_motions) => {
                return must("a voting rule (`kd vote rules` lists them)".into());
            }
            Range::Kinds => {
                let kinds = [UNCONFIRMED_KINDS, CONFIRMED_KINDS].concat();
                if let Some(stranger) = text
                    .split(',')
                    .map(str::trim)
                    .find(|k| !k.is_empty() && !kinds.contains(k))
                {
                    return Err(BadSetting(format!(
                        "`{key}` names `{stranger}`; kinds are {}",
                        kinds.join(", ")
                    )));
                }
                if let Some(kind) = text
                    .split(',')
                    .map(str::trim)
                    .find(|kind| CONFIRMED_KINDS.contains(kind))
                {
                    return Err(BadSetting(format!(
                        "`{key}` names `{kind}`: motions about the rights of members and the rules of a forum always need a person"
                    )));
                }
                text.into()
            }
            _ => text.into(),
        };
        let mut all = serde_json::to_value(&*self).map_err(|e| BadSetting(e.to_string()))?;
        all[key] = value;
        let next: Self = serde_json::from_value(all).map_err(|e| BadSetting(e.to_string()))?;
        if next.delay_secs_min > next.delay_secs_max {
            return Err(BadSetting(format!(
                "the shortest delay ({} s) is longer than the longest ({} s)",
                next.delay_secs_min, next.delay_secs_max
            )));
        }
        *self = next;
        Ok(())
    }

    /// Sets several parameters at once, so that intermediate states of a pair (the two delays) do not have to be valid.
    ///
    /// # Errors
    /// Those of [`Self::set`]. Nothing is changed then.
    pub fn set_all<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), BadSetting> {
        let pairs: Vec<(&str, &str)> = pairs.into_iter().collect();
        let mut next = self.clone();
        // The range is widened while single values are set; the order of the two is checked at the end.
        if pairs.iter().any(|(key, _)| *key == "delay_secs_max") {
            next.delay_secs_max = WEEK;
        }
        for (key, text) in pairs.iter().filter(|(key, _)| *key != "delay_secs_max") {
            next.set(key, text)?;
        }
        for (key, text) in pairs.iter().filter(|(key, _)| *key == "delay_secs_max") {
            next.set(key, text)?;
        }
        *self = next;
        Ok(())
    }

    /// Returns whether a kind of motion takes effect without a person.
    pub fn unconfirmed(&self, kind: &str) -> bool {
        self.unconfirmed.split(',').any(|word| word.trim() == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_fields_are_the_same() {
        let all = serde_json::to_value(Settings::default()).unwrap();
        let fields: Vec<&String> = all.as_object().unwrap().keys().collect();
        let rows: Vec<&str> = PARAMETERS.iter().map(|p| p.key).collect();
        assert_eq!(fields, rows);
        let mut settings = Settings::default();
        for parameter in PARAMETERS {
            let value = settings.get(parameter.key).unwrap();
            settings
                .set(parameter.key, &value)
                .unwrap_or_else(|e| panic!("{}: {e}", parameter.key));
        }
        assert_eq!(
            settings,
            Settings::default(),
            "the defaults are in range and come back as they were"
        );
    }

    #[test]
    fn a_forum_from_elsewhere_only_saves_calls() {
        let settings = Settings {
            skip_probability: 0.5,
            ..Settings::default()
        };
        for parameter in PARAMETERS {
            let may = |value: &str| parameter.foreign_may(&settings, value);
            let (low, high) = match parameter.range {
                Range::Number(low, high) => (low.to_string(), high.to_string()),
                Range::Whole(low, high) => (low.to_string(), high.to_string()),
                _ => ("adaptive".to_owned(), "fixed".to_owned()),
            };
            let key = parameter.key;
            assert_eq!(may(&low), parameter.foreign == Foreign::Lower, "{key}");
            assert_eq!(may(&high), parameter.foreign == Foreign::Higher, "{key}");
            assert!(
                parameter.votable || parameter.foreign == Foreign::Kept,
                "{key}"
            );
            let same = settings.get(key).unwrap();
            assert!(!may(&same) && !may("NaN") && !may(""), "{key}");
        }
    }

    #[test]
    fn only_changes_that_save_calls_need_no_person() {
        let settings = Settings {
            skip_probability: 0.5,
            ..Settings::default()
        };
        for parameter in PARAMETERS {
            let key = parameter.key;
            let values: &[&str] = match parameter.range {
                Range::Number(..) | Range::Whole(..) => &["0.25", "1", "100000"],
                Range::OneOf(words) => words,
                Range::Rule => &["unanimity"],
                Range::Kinds => &["", "set"],
            };
            for value in values {
                let free = key == "scheduler"
                    || parameter.foreign_may(&settings, value)
                    || parameter.votable && settings.get(key).as_deref() == Some(value);
                assert_eq!(needs_person(&settings, key, value), !free, "{key} {value}");
            }
        }
        assert!(needs_person(&settings, "max_tool_calls", "11"));
        assert!(!needs_person(&settings, "max_tool_calls", "9"));
        assert!(needs_person(&settings, "interval", "adaptive"));
        assert!(needs_person(&settings, "posts_per_minute", "1"));
    }

    #[test]
    fn values_out_of_range_are_told_and_change_nothing() {
        let mut settings = Settings::default();
        for (key, value, told) in [
            ("skip_probability", "1.5", "from 0 to 1"),
            ("skip_probability", "NaN", "from 0 to 1"),
            ("max_tool_calls", "0", "from 1"),
            ("scheduler", "loud", "shuffle"),
            ("rule", "loud", "kd vote rules"),
            ("delay_secs_min", "500", "longer than the longest"),
            ("unconfirmed", "set, war", "`war`"),
            ("moon", "1", "no parameter"),
        ] {
            let error = settings.set(key, value).unwrap_err();
            assert!(error.0.contains(told), "{error}");
        }
        assert_eq!(settings, Settings::default());
        settings
            .set_all([("delay_secs_max", "900"), ("delay_secs_min", "500")])
            .unwrap();
        assert_eq!(
            (settings.delay_secs_min, settings.delay_secs_max),
            (500.0, 900.0)
        );
        settings
            .set_all([("delay_secs_min", "1"), ("delay_secs_max", "2")])
            .unwrap();
        assert!(
            settings
                .set_all([("delay_secs_min", "3"), ("delay_secs_max", "2")])
                .is_err()
        );
    }
}
