//! A persona: the description of a forum agent, from a YAML file. Input: the text of the file. Output: a [`Persona`],
//! or an error with its line.

use crate::ids::SeatName;
use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;
use std::fmt;

/// An agent's persona.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Persona {
    /// Its handle; the author name of everything it writes.
    pub name: SeatName,
    /// The display name.
    pub display_name: String,
    /// Its backend: `local`, a provider, an agent program.
    pub backend: String,
    /// The model, if the backend serves several.
    pub model: Option<String>,
    /// The description of the agent, for its prompt.
    pub system_prompt: String,
    /// Its preferences.
    pub preferences: Preferences,
    /// The groups it belongs to: a cycle can be limited to one group.
    pub groups: Vec<String>,
    /// The forums it visits; empty for all.
    pub forums: Vec<String>,
    /// The way of calling tools, if the default does not suit the model: `native`, `json`, or `mcp` for agent programs.
    pub tools: Option<String>,
}

/// Preferences of an agent that override the forum's settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preferences {
    /// The probability of sitting a cycle out.
    pub skip_probability: Option<f64>,
    /// `brief`, `normal` or `detailed`.
    pub verbosity: Option<String>,
    /// The tone, in a word or two.
    pub tone: Option<String>,
    /// The minimum and the maximum delay before its turn, in seconds.
    pub delays: Option<(f64, f64)>,
    /// Its activity relative to others; 1 is normal.
    pub weight: f64,
    /// Its initial energy, 0 to 1.
    pub energy: f64,
    /// The sampling temperature, 0 to 2.
    pub temperature: Option<f32>,
    /// Maximum tokens per answer.
    pub max_tokens: Option<u32>,
}

/// An error in a persona's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPersona {
    /// The line, 1-based; 0 if no line applies.
    pub line: u64,
    /// The reason it is invalid.
    pub why: String,
}

impl fmt::Display for BadPersona {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.why),
            line => write!(f, "line {line}: {}", self.why),
        }
    }
}

impl std::error::Error for BadPersona {}

/// The file format. Also accepts the original forum's files: `provider`, `reply_probability`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    display_name: Option<String>,
    backend: Option<Spanned<String>>,
    provider: Option<Spanned<String>>,
    model: Option<String>,
    system_prompt: Spanned<String>,
    #[serde(default)]
    preferences: Likes,
    #[serde(default)]
    groups: Vec<Spanned<String>>,
    #[serde(default)]
    forums: Vec<Spanned<String>>,
    tools: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Likes {
    skip_probability: Option<Spanned<f64>>,
    reply_probability: Option<Spanned<f64>>,
    verbosity: Option<Spanned<String>>,
    tone: Option<String>,
    min_delay: Option<Spanned<f64>>,
    max_delay: Option<Spanned<f64>>,
    weight: Option<Spanned<f64>>,
    energy: Option<Spanned<f64>>,
    temperature: Option<Spanned<f64>>,
    max_tokens: Option<Spanned<u32>>,
}

/// The provider names of the original forum, and their names here.
const PROVIDERS: &[(&str, &str)] = &[("anthropic", "anthropic"), ("google-gla", "gemini_api")];
const VERBOSITY: &[&str] = &["brief", "normal", "detailed"];
const TOOLS: &[&str] = &["native", "json", "mcp"];

fn bad<T>(at: &Spanned<T>, why: impl Into<String>) -> BadPersona {
    BadPersona {
        line: at.defined.line(),
        why: why.into(),
    }
}

fn within(
    key: &str,
    value: &Option<Spanned<f64>>,
    least: f64,
    most: f64,
) -> Result<Option<f64>, BadPersona> {
    match value {
        None => Ok(None),
        Some(v) if (least..=most).contains(&v.value) => Ok(Some(v.value)),
        Some(v) => Err(bad(
            v,
            format!(
                "`{key}` must be a number from {least} to {most}, not {}",
                v.value
            ),
        )),
    }
}

fn one_of(
    key: &str,
    value: &Option<Spanned<String>>,
    words: &[&str],
) -> Result<Option<String>, BadPersona> {
    match value {
        None => Ok(None),
        Some(v) if words.contains(&v.value.as_str()) => Ok(Some(v.value.clone())),
        Some(v) => Err(bad(
            v,
            format!(
                "`{key}` must be one of {}, not `{}`",
                words.join(", "),
                v.value
            ),
        )),
    }
}

fn handles(key: &str, values: &[Spanned<String>]) -> Result<Vec<String>, BadPersona> {
    values
        .iter()
        .map(|v| {
            SeatName::new(v.value.clone())
                .map(String::from)
                .map_err(|e| bad(v, format!("`{key}`: {e}")))
        })
        .collect()
}

impl Persona {
    /// Parses a persona file.
    ///
    /// # Errors
    /// If the text is not a persona file: not YAML, no system prompt, an unknown or contradictory field, or a value out
    /// of range. The error names the line.
    pub fn parse(text: &str) -> Result<Self, BadPersona> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| {
            let line = error.location().map_or(0, |at| at.line());
            let said = error.without_snippet().to_string();
            // The parser's message includes its position; we report the line ourselves.
            let why = said
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned();
            BadPersona { line, why }
        })?;
        let name =
            SeatName::new(file.name.value.clone()).map_err(|e| bad(&file.name, e.to_string()))?;
        let backend = match (&file.backend, &file.provider) {
            (Some(backend), Some(provider)) if backend.value != provider.value => {
                return Err(bad(
                    provider,
                    "`backend` and `provider` mean the same: keep one",
                ));
            }
            (Some(backend), _) => backend.value.clone(),
            (None, Some(provider)) => PROVIDERS
                .iter()
                .find(|(old, _)| *old == provider.value)
                .map_or_else(|| provider.value.clone(), |(_, new)| (*new).to_owned()),
            // Files of the original forum omit this provider.
            (None, None) if file.model.is_some() => "anthropic".to_owned(),
            (None, None) => crate::seating::LOCAL.to_owned(),
        };
        if file.system_prompt.value.trim().is_empty() {
            return Err(bad(
                &file.system_prompt,
                "`system_prompt` is empty: say who the agent is",
            ));
        }
        let likes = &file.preferences;
        let skip = within("skip_probability", &likes.skip_probability, 0.0, 1.0)?;
        let reply = within("reply_probability", &likes.reply_probability, 0.0, 1.0)?;
        let (least, most) = (
            within("min_delay", &likes.min_delay, 0.0, 604_800.0)?,
            within("max_delay", &likes.max_delay, 0.0, 604_800.0)?,
        );
        let delays = match (least, most, &likes.min_delay) {
            (Some(least), Some(most), Some(at)) if least > most => {
                return Err(bad(
                    at,
                    format!("`min_delay` ({least}) is longer than `max_delay` ({most})"),
                ));
            }
            (Some(least), Some(most), _) => Some((least, most)),
            (Some(only), None, _) | (None, Some(only), _) => Some((only, only)),
            (None, None, _) => None,
        };
        Ok(Self {
            display_name: file.display_name.unwrap_or_else(|| name.to_string()),
            name,
            backend,
            model: file.model.filter(|model| !model.is_empty()),
            system_prompt: file.system_prompt.value,
            preferences: Preferences {
                // The reply probability is the complement of the skip probability.
                skip_probability: skip.or(reply.map(|p| 1.0 - p)),
                verbosity: one_of("verbosity", &likes.verbosity, VERBOSITY)?,
                tone: likes.tone.clone(),
                delays,
                weight: within("weight", &likes.weight, 0.01, 100.0)?.unwrap_or(1.0),
                energy: within("energy", &likes.energy, 0.0, 1.0)?.unwrap_or(1.0),
                temperature: within("temperature", &likes.temperature, 0.0, 2.0)?.map(|t| t as f32),
                max_tokens: likes.max_tokens.as_ref().map(|n| n.value.max(1)),
            },
            groups: handles("groups", &file.groups)?,
            forums: handles("forums", &file.forums)?,
            tools: one_of("tools", &file.tools, TOOLS)?,
        })
    }

    /// Describes how it likes to write, for its prompt.
    pub fn manner(&self) -> Vec<String> {
        let length = self.preferences.verbosity.as_deref().and_then(|v| match v {
            "brief" => Some("Write briefly: a few sentences.".to_owned()),
            "detailed" => Some("Write in detail, with reasons and examples.".to_owned()),
            _ => None,
        });
        let tone = self
            .preferences
            .tone
            .as_ref()
            .map(|tone| format!("Your tone: {tone}."));
        length.into_iter().chain(tone).collect()
    }

    /// Returns a file for a new agent, with all possible settings.
    pub fn template(name: &str, backend: &str, model: Option<&str>, prompt: &str) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let model = model
            .map(|m| format!("model: {}\n", quoted(m)))
            .unwrap_or_default();
        let body: String = prompt.lines().map(|line| format!("  {line}\n")).collect();
        format!(
            "name: {}\nbackend: {}\n{model}system_prompt: |\n{body}\n\
             # All below is optional.\n\
             # preferences:\n\
             #   skip_probability: 0.3   # chance of sitting a cycle out; else the forum's\n\
             #   verbosity: brief        # brief, normal, detailed\n\
             #   tone: warm\n\
             #   min_delay: 30           # seconds before its turn\n\
             #   max_delay: 120\n\
             #   weight: 1.0             # activity beside others (scheduler `weighted`)\n\
             #   energy: 1.0             # how rested it begins (scheduler `energy`)\n\
             #   temperature: 0.8\n\
             # groups: [founders]\n\
             # forums: [main]\n",
            quoted(name),
            quoted(backend),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "name: thoughtful-agent\ndisplay_name: The Thinker\nbackend: openai\nmodel: gpt-5.1\nsystem_prompt: |\n  You think.\n  Twice.\npreferences:\n  skip_probability: 0.3\n  verbosity: detailed\n  tone: calm\n  min_delay: 1\n  max_delay: 2\n  weight: 2\n  energy: 0.5\n  temperature: 0.7\ngroups: [founders]\nforums: [main]\ntools: json\n";

    #[test]
    fn a_full_file_is_read_and_a_new_one_comes_back() {
        let persona = Persona::parse(FULL).unwrap();
        assert_eq!(
            (persona.backend.as_str(), persona.model.as_deref()),
            ("openai", Some("gpt-5.1"))
        );
        assert_eq!(persona.system_prompt, "You think.\nTwice.\n");
        let likes = &persona.preferences;
        assert_eq!(
            (
                likes.skip_probability,
                likes.delays,
                likes.weight,
                likes.energy
            ),
            (Some(0.3), Some((1.0, 2.0)), 2.0, 0.5)
        );
        assert_eq!(persona.manner().len(), 2);
        let fresh = Persona::parse(&Persona::template(
            "ada",
            "local",
            None,
            "You love \"bees\": all of them.\n# and ants",
        ))
        .unwrap();
        assert_eq!(
            (fresh.name.as_str(), fresh.backend.as_str()),
            ("ada", "local")
        );
        assert_eq!(
            fresh.system_prompt,
            "You love \"bees\": all of them.\n# and ants\n"
        );
        let old = "name: haiku\nmodel: claude-haiku-4-5\nsystem_prompt: You are short.\npreferences:\n  reply_probability: 0.9\n";
        let old = Persona::parse(old).unwrap();
        assert_eq!(old.backend, "anthropic");
        assert!((old.preferences.skip_probability.unwrap() - 0.1).abs() < 1e-12);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (from, to, line, told) in [
            (
                "skip_probability: 0.3",
                "skip_probability: 1.5",
                9,
                "from 0 to 1",
            ),
            (
                "verbosity: detailed",
                "verbosity: loud",
                10,
                "brief, normal, detailed",
            ),
            ("min_delay: 1", "min_delay: 9", 12, "longer than"),
            ("tone: calm", "tune: calm", 11, "tune"),
            ("weight: 2", "weight: much", 14, ""),
            ("groups: [founders]", "groups: [a b]", 17, "groups"),
            ("name: thoughtful-agent", "name: king", 1, "king"),
            (
                "name: thoughtful-agent",
                "name: forum",
                1,
                "the forum's own posts",
            ),
            ("tools: json", "tools: hammer", 19, "native, json"),
        ] {
            let error = Persona::parse(&FULL.replace(from, to)).unwrap_err();
            assert_eq!(error.line, line, "{to}: {error}");
            assert!(error.why.contains(told), "{to}: {error}");
        }
        assert!(
            Persona::parse("name: ada\n")
                .unwrap_err()
                .why
                .contains("system_prompt")
        );
        assert!(Persona::parse("a: [1\n").is_err() && Persona::parse("").is_err());
    }
}
