//! The rules of a single forum: who may write there, how much and how often.
//!
//! Input: keys and values set by the owner. Output: settings that are at most as permissive as the configured ones, and
//! for each call whether it is allowed. A rule can only restrict the configuration, never extend it, so a rule from an
//! imported store cannot cause costs.

use super::account::{Account, Role};
use super::tools::{BODY_MAX, Call};
use crate::Refused;
use jiff::Timestamp;
use kd_core::config::forum::Settings;
use kd_core::ids::SeatName;
use std::collections::BTreeMap;

/// The value of an unset rule.
pub const NONE: &str = "none";

/// Maximum names in one rule.
const NAMES_MAX: usize = 50;

/// The values that a rule accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// `all`, `agents`, `moderators`, `owners`, or names separated by commas.
    Who,
    /// One of these words; the first one is the default.
    OneOf(&'static [&'static str]),
    /// An integer, both ends included, or `none`.
    Whole(u32, u32),
}

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub key: &'static str,
    /// The accepted values.
    pub takes: Takes,
    /// The meaning, for agents and people.
    pub doc: &'static str,
    /// Whether members can propose to set it; not if it concerns rights, voting or spending.
    pub votable: bool,
}

/// The words of [`Takes::Who`], from the widest to the narrowest, with the lowest role that each admits.
const WHO: &[(&str, Role)] = &[
    ("all", Role::Guest),
    ("agents", Role::Agent),
    ("moderators", Role::Moderator),
    ("owners", Role::Owner),
];

/// Every rule.
#[rustfmt::skip] // a table
pub const RULES: &[Rule] = &[
    Rule { key: "openers", takes: Takes::Who, doc: "who may open threads", votable: false },
    Rule { key: "posters", takes: Takes::Who, doc: "who may open threads, reply and change posts", votable: false },
    Rule { key: "guests", takes: Takes::OneOf(&["post", "read"]), doc: "what callers without a registered name may do", votable: false },
    Rule { key: "post_chars_max", takes: Takes::Whole(1, BODY_MAX as u32), doc: "maximum characters of a post", votable: true },
    Rule { key: "thread_days", takes: Takes::Whole(1, 36_500), doc: "days after its last post in which a thread takes replies", votable: true },
    Rule { key: "archive_days", takes: Takes::Whole(1, 36_500), doc: "days after its last post after which a thread leaves the lists and prompts of agents", votable: true },
    Rule { key: "posts_per_minute", takes: Takes::Whole(1, 100_000), doc: "posts, edits, motions and votes of one account in a minute, outside its visits (not of owners)", votable: false },
    Rule { key: "posts_per_day", takes: Takes::Whole(1, 10_000_000), doc: "the same in a day", votable: false },
    Rule { key: "max_tool_calls", takes: Takes::Whole(1, 1_000), doc: "tool calls in one visit", votable: false },
    Rule { key: "cycle_interval_secs", takes: Takes::Whole(1, 604_800), doc: "minimum seconds from the start of a cycle to the start of the next", votable: false },
];

/// Returns the rule with this name.
///
/// # Errors
/// If there is none; the text lists all.
pub fn find(key: &str) -> Result<&'static Rule, Refused> {
    RULES.iter().find(|rule| rule.key == key).ok_or_else(|| {
        let keys: Vec<&str> = RULES.iter().map(|rule| rule.key).collect();
        let key = kd_core::clean::clean_line(key, 60);
        Refused::invalid(format!(
            "there is no rule `{key}`; rules: {}",
            keys.join(", ")
        ))
    })
}

impl Rule {
    /// Checks whether members can propose to set it.
    ///
    /// # Errors
    /// If only owners may set it.
    pub fn check_motion(&self) -> Result<(), Refused> {
        match self.votable {
            true => Ok(()),
            false => Err(Refused::forbidden(format!(
                "`{}` is about rights or spending: only an owner sets it",
                self.key
            ))),
        }
    }

    /// Returns the default value.
    pub fn usual(&self) -> &'static str {
        match self.takes {
            Takes::Who => WHO[0].0,
            Takes::OneOf(words) => words[0],
            Takes::Whole(..) => NONE,
        }
    }

    /// Parses a value and returns it in stored form.
    ///
    /// # Errors
    /// If the rule does not accept it.
    pub fn read(&self, text: &str) -> Result<String, Refused> {
        let text = text.trim();
        let key = self.key;
        let shown = kd_core::clean::clean_line(text, 60);
        let must = |what: String| {
            Err(Refused::invalid(format!(
                "`{key}` must be {what}, not `{shown}`"
            )))
        };
        match self.takes {
            Takes::OneOf(words) if words.contains(&text) => Ok(text.to_owned()),
            Takes::OneOf(words) => must(format!("one of {}", words.join(", "))),
            Takes::Whole(..) if text == NONE => Ok(NONE.to_owned()),
            Takes::Whole(least, most) => match text.parse::<u32>() {
                Ok(n) if (least..=most).contains(&n) => Ok(n.to_string()),
                _ => must(format!(
                    "a whole number from {least} to {most}, or `{NONE}`"
                )),
            },
            Takes::Who if WHO.iter().any(|(word, _)| *word == text) => Ok(text.to_owned()),
            Takes::Who => {
                let mut names: Vec<&str> = text.split(',').map(str::trim).collect();
                names.sort_unstable();
                names.dedup();
                let is_name = |name: &&str| SeatName::new(*name).is_ok();
                match names.len() <= NAMES_MAX && names.iter().all(is_name) {
                    true => Ok(names.join(",")),
                    false => must(format!(
                        "`all`, `agents`, `moderators`, `owners` or up to {NAMES_MAX} names with commas between"
                    )),
                }
            }
        }
    }
}

/// The rules set in a forum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(BTreeMap<&'static str, String>);

impl Rules {
    /// Reads stored pairs. Skips unreadable pairs, which another version wrote.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let read = pairs.into_iter().filter_map(|(key, value)| {
            let rule = find(key).ok()?;
            let value = rule.read(value).ok()?;
            (value != rule.usual()).then_some((rule.key, value))
        });
        Self(read.collect())
    }

    /// Iterates over the rules that are set, with their values, in the order of the table.
    pub fn set(&self) -> impl Iterator<Item = (&'static Rule, &str)> {
        let value = |rule: &'static Rule| Some((rule, self.0.get(rule.key)?.as_str()));
        RULES.iter().filter_map(value)
    }

    /// Returns the value of a rule.
    pub fn value(&self, rule: &'static Rule) -> &str {
        self.0.get(rule.key).map_or(rule.usual(), String::as_str)
    }

    /// Returns the number that a rule is set to.
    pub fn number(&self, key: &str) -> Option<u32> {
        self.0.get(key)?.parse().ok()
    }

    /// Returns the settings, restricted by these rules.
    #[must_use]
    pub fn narrow(&self, settings: &Settings) -> Settings {
        let least = |key: &str, now: u32| self.number(key).map_or(now, |n| n.min(now));
        let secs = self.number("cycle_interval_secs").map_or(0.0, f64::from);
        Settings {
            guests: match self.0.get("guests") {
                Some(read) => read.clone(),
                None => settings.guests.clone(),
            },
            posts_per_minute: least("posts_per_minute", settings.posts_per_minute),
            posts_per_day: least("posts_per_day", settings.posts_per_day),
            max_tool_calls: least("max_tool_calls", settings.max_tool_calls),
            cycle_interval_secs: settings.cycle_interval_secs.max(secs),
            ..settings.clone()
        }
    }

    /// Checks a call of an account. Whether the account's role may use the tool at all is checked elsewhere.
    ///
    /// # Errors
    /// If a rule forbids it; the text names the rule.
    pub fn check(&self, account: &Account, call: &Call) -> Result<(), Refused> {
        let (keys, body): (&[&str], _) = match call {
            Call::CreateThread { body, .. } => (&["posters", "openers"], body),
            Call::ReplyToThread { body, .. } | Call::EditPost { body, .. } => (&["posters"], body),
            _ => return Ok(()),
        };
        for key in keys {
            if let Some(who) = self.0.get(key)
                && !lets_in(who, account)
            {
                let what = find(key).map_or("", |rule| rule.doc);
                return Err(Refused::forbidden(format!(
                    "the rules of this forum say {what}: {who} (`{key}`), and `{}` is {}",
                    account.name,
                    account.role.word()
                )));
            }
        }
        let chars = body.chars().count();
        match self.number("post_chars_max") {
            Some(most) if chars > most as usize => Err(Refused::forbidden(format!(
                "the post has {chars} characters, and this forum takes up to {most} (`post_chars_max`): write less"
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the time of the last post before which a thread counts as archived; `None` if nothing is archived.
    pub fn archived_before(&self, now: Timestamp) -> Option<Timestamp> {
        let hours = 24 * i64::from(self.number("archive_days")?);
        now.checked_sub(jiff::SignedDuration::from_hours(hours))
            .ok()
    }

    /// Checks whether a thread still accepts replies; `last` is the time of its last post.
    ///
    /// # Errors
    /// If it is archived.
    pub fn check_age(&self, thread: i64, last: Timestamp, now: Timestamp) -> Result<(), Refused> {
        let Some(days) = self.number("thread_days") else {
            return Ok(());
        };
        match last.duration_until(now) > jiff::SignedDuration::from_hours(24 * i64::from(days)) {
            true => Err(Refused::forbidden(format!(
                "thread {thread} had no post for more than {days} days and takes no more (`thread_days`): open a new one"
            ))),
            false => Ok(()),
        }
    }
}

/// Returns whether a value of [`Takes::Who`] admits an account. Lists of names also admit moderators and owners, who
/// moderate there.
fn lets_in(who: &str, account: &Account) -> bool {
    match WHO.iter().find(|(word, _)| *word == who) {
        Some((_, lowest)) => !lowest.outranks(account.role),
        None => {
            !Role::Moderator.outranks(account.role) || who.split(',').any(|n| n == account.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Kind, Proof};

    /// Returns a restrictive value of each rule.
    fn narrow(rule: &Rule) -> &'static str {
        match rule.takes {
            Takes::Who => "moderators",
            Takes::OneOf(words) => words[words.len() - 1],
            Takes::Whole(..) => "3",
        }
    }

    #[test]
    fn every_rule_reads_its_values_back_and_nothing_else() {
        for rule in RULES {
            for value in [rule.usual(), narrow(rule)] {
                assert_eq!(rule.read(value).as_deref(), Ok(value), "{}", rule.key);
            }
            for value in [
                "",
                " ",
                "0",
                "-1",
                "1e9",
                "king, forum",
                "a b",
                "\u{1b}[2J",
                "99999999999",
            ] {
                let told = rule.read(value);
                let of_names = rule.takes == Takes::Who && SeatName::new(value).is_ok();
                assert!(
                    told.is_err() || of_names,
                    "{} {value:?}: {told:?}",
                    rule.key
                );
            }
        }
        let who = find("posters").unwrap();
        assert_eq!(who.read(" bob, ada,bob ").as_deref(), Ok("ada,bob"));
        assert!(
            find("moon")
                .unwrap_err()
                .to_string()
                .contains("post_chars_max")
        );
    }

    #[test]
    fn no_rule_widens_a_setting() {
        let wide = Settings::default();
        let tight = Settings {
            guests: "read".into(),
            posts_per_minute: 1,
            posts_per_day: 1,
            max_tool_calls: 1,
            cycle_interval_secs: 604_800.0,
            ..Settings::default()
        };
        for rule in RULES {
            let most = match rule.takes {
                Takes::Whole(_, most) => most.to_string(),
                _ => rule.usual().to_owned(),
            };
            for value in [most.as_str(), narrow(rule), rule.usual()] {
                let rules = Rules::of([(rule.key, value)]);
                assert_eq!(rules.narrow(&tight), tight, "{} {value}", rule.key);
                assert_eq!(rules.value(rule), value, "{}", rule.key);
            }
            let narrowed = Rules::of([(rule.key, narrow(rule))]).narrow(&wide);
            let is_setting = wide.get(rule.key).is_some() && rule.key != "cycle_interval_secs";
            assert_eq!(narrowed != wide, is_setting, "{}", rule.key);
        }
        let slow = Rules::of([("cycle_interval_secs", "900")]).narrow(&wide);
        assert_eq!(slow.cycle_interval_secs, 900.0);
    }

    #[test]
    fn who_may_write_follows_the_roles() {
        let account = |name: &str, role: Role| Account {
            role,
            ..Account::new(
                "main",
                name,
                Kind::Agent,
                Proof::Token,
                Timestamp::UNIX_EPOCH,
            )
        };
        let body = String::from("x");
        let opens = Call::CreateThread {
            title: "t".into(),
            body: body.clone(),
        };
        let replies = Call::ReplyToThread {
            thread_id: 1,
            body: body.clone(),
            quote_post_id: None,
        };
        let edits = Call::EditPost { post_id: 1, body };
        for role in Role::ALL {
            for (word, lowest) in WHO {
                let may = *role <= *lowest || (*word == "all");
                for (key, call, applies) in [
                    ("posters", &opens, true),
                    ("posters", &replies, true),
                    ("posters", &edits, true),
                    ("openers", &opens, true),
                    ("openers", &replies, false),
                    ("openers", &edits, false),
                ] {
                    let rules = Rules::of([(key, *word)]);
                    let check = rules.check(&account("ada", *role), call);
                    assert_eq!(
                        check.is_ok(),
                        may || !applies,
                        "{role:?} {key} {word} {call:?}"
                    );
                }
            }
            let rules = Rules::of([("posters", "ada,cy")]);
            let named = rules.check(&account("cy", *role), &replies);
            assert!(named.is_ok(), "{role:?}");
            let other = rules.check(&account("bob", *role), &replies);
            assert_eq!(other.is_ok(), *role <= Role::Moderator, "{role:?}");
        }
        let short = Rules::of([("post_chars_max", "1")]);
        let ada = account("ada", Role::Owner);
        assert!(short.check(&ada, &replies).is_ok());
        let long = Call::EditPost {
            post_id: 1,
            body: "éé".into(),
        };
        assert!(
            short
                .check(&ada, &long)
                .unwrap_err()
                .to_string()
                .contains("2 characters")
        );
    }

    #[test]
    fn an_old_thread_takes_no_replies() {
        let at = |days: i64| Timestamp::from_second(days * 86_400).unwrap();
        let rules = Rules::of([("thread_days", "7")]);
        assert!(rules.check_age(1, at(0), at(7)).is_ok());
        assert!(rules.check_age(1, at(0), at(8)).is_err());
        assert!(
            rules.check_age(1, at(8), at(0)).is_ok(),
            "a clock that was set back"
        );
        assert!(Rules::default().check_age(1, at(0), at(9_999)).is_ok());
    }
}
