//! Models that users name without configuring them: the family of a name, its vendor, and the service and agent program
//! that provide it.
//!
//! Input: the name of a model. Output: its [`Family`]. This way a plan that names `gpt-5` runs if only a key or a
//! program is available.

use crate::borders::Borders;
use crate::config::{AgentConfig, Config};

/// Models of one vendor.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// The vendor's own name.
    pub vendor: &'static str,
    /// Prefixes of its model names, in lower case. A digit or a separator follows.
    prefixes: &'static [&'static str],
    /// Other names of the vendor and its assistants, in lower case.
    pub also: &'static [&'static str],
    /// The service that provides them, if known.
    pub service: Option<&'static str>,
    /// The backend of the agent program that provides them.
    pub program: Option<&'static str>,
}

/// All vendors whose models are known by name.
pub const FAMILIES: &[Family] = &[
    Family {
        vendor: "OpenAI",
        prefixes: &["gpt", "chatgpt", "o1", "o3", "o4"],
        also: &["openai", "chatgpt", "codex"],
        service: Some("openai"),
        program: Some("codex"),
    },
    Family {
        vendor: "Anthropic",
        prefixes: &["claude"],
        also: &["anthropic", "claude", "claude_code"],
        service: Some("anthropic"),
        program: Some("claude_code"),
    },
    Family {
        vendor: "Google",
        prefixes: &["gemini"],
        also: &["google", "google deepmind", "gemini", "gemini_api"],
        service: Some("gemini_api"),
        program: Some("gemini"),
    },
    Family {
        vendor: "Google",
        prefixes: &["gemma", "codegemma"],
        also: &[],
        service: None,
        program: None,
    },
    Family {
        vendor: "Meta",
        prefixes: &["llama", "meta-llama", "codellama"],
        also: &["meta", "meta ai", "llama"],
        service: None,
        program: None,
    },
    Family {
        vendor: "Mistral AI",
        prefixes: &[
            "mistral",
            "mixtral",
            "magistral",
            "codestral",
            "ministral",
            "devstral",
        ],
        also: &["mistral", "mistral ai"],
        service: None,
        program: None,
    },
    Family {
        vendor: "Alibaba",
        prefixes: &["qwen", "qwq"],
        also: &["alibaba", "alibaba cloud", "qwen", "tongyi"],
        service: None,
        program: None,
    },
    Family {
        vendor: "DeepSeek",
        prefixes: &["deepseek"],
        also: &["deepseek"],
        service: None,
        program: None,
    },
    Family {
        vendor: "xAI",
        prefixes: &["grok"],
        also: &["xai", "x.ai", "grok"],
        service: None,
        program: None,
    },
    Family {
        vendor: "Microsoft",
        prefixes: &["phi"],
        also: &["microsoft"],
        service: None,
        program: None,
    },
    Family {
        vendor: "Cohere",
        prefixes: &["command-r", "command-a"],
        also: &["cohere"],
        service: None,
        program: None,
    },
    Family {
        vendor: "Moonshot AI",
        prefixes: &["kimi", "moonshot"],
        also: &["moonshot", "moonshot ai", "kimi"],
        service: None,
        program: None,
    },
    Family {
        vendor: "Zhipu AI",
        prefixes: &["glm", "chatglm"],
        also: &["zhipu", "zhipu ai", "z.ai"],
        service: None,
        program: None,
    },
];

/// Returns the family of a model. Ignores a vendor prefix as used by routers (`openai/gpt-5`).
pub fn family(model: &str) -> Option<&'static Family> {
    let lower = model.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    FAMILIES.iter().find(|family| {
        let mut prefixes = family.prefixes.iter();
        prefixes.any(|prefix| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| family.has(prefix, rest))
        })
    })
}

impl Family {
    /// Returns whether a model of this family has a name with this prefix and rest.
    fn has(&self, prefix: &str, rest: &str) -> bool {
        let digit = |c: char| c.is_ascii_digit();
        let numbered = prefix.ends_with(digit);
        match rest.chars().next() {
            // `o3` alone is a model, `gpt` alone is not; neither are `o32` and `claudette`.
            None => numbered,
            // A name without a number is more likely a mistyped agent, which must not be sent to a service.
            Some('-' | '.' | ':' | '_') => {
                rest.len() > 1 && (numbered || self.service.is_none() || rest.contains(digit))
            }
            Some(c) => !numbered && self.service.is_none() && digit(c),
        }
    }
}

impl Family {
    /// Replaces each model of this family in a text: `GPT-5`, `gpt 4.1`, `Claude Sonnet 4.5`. Keeps a model named in
    /// `subject`, which is in lower case.
    pub(crate) fn without_models(
        &self,
        text: &str,
        subject: &str,
        borders: Borders,
        by: impl Fn(&str) -> String,
    ) -> String {
        let mut out = text.to_owned();
        for prefix in self.prefixes {
            let lower = out.to_ascii_lowercase();
            let mut made = String::with_capacity(out.len());
            let mut from = 0;
            for (at, _) in lower.match_indices(prefix) {
                let first = out[at..].chars().next();
                if at < from || !borders(first, out[..at].chars().next_back()) {
                    continue;
                }
                let end = at + prefix.len() + name_tail(&lower[at + prefix.len()..]);
                let numbered = prefix.ends_with(|c: char| c.is_ascii_digit());
                let last = out[..end].chars().next_back();
                let ends = borders(last, out[end..].chars().next());
                // `O3` is also ozone.
                if numbered && !out[at..].starts_with(prefix) {
                    continue;
                }
                if (end > at + prefix.len() || numbered)
                    && ends
                    && !subject.contains(&lower[at..end])
                {
                    made.push_str(&out[from..at]);
                    made.push_str(&by(&out[at..end]));
                    from = end;
                }
            }
            made.push_str(&out[from..]);
            out = made;
        }
        out
    }
}

/// Returns the number of bytes after a prefix that belong to the name of a model: up to the last part with a digit, and
/// words for sizes after it.
fn name_tail(rest: &str) -> usize {
    const SIZES: [&str; 14] = [
        "mini", "nano", "pro", "turbo", "flash", "lite", "large", "medium", "small", "preview",
        "latest", "sonnet", "opus", "haiku",
    ];
    let mut end = 0;
    let mut at = 0;
    // Names are short: three words after the first.
    for _ in 0..4 {
        let Some(part) = rest.get(at..) else { break };
        let gap = part.len() - part.trim_start_matches(['-', ' ', '_']).len();
        if gap > 1 {
            break;
        }
        let word = &part[gap..];
        let stop = |c: char| !(c.is_ascii_alphanumeric() || c == '.');
        let word = &word[..word.find(stop).unwrap_or(word.len())];
        let word = word.trim_end_matches('.');
        let versioned = word.starts_with(|c: char| c.is_ascii_digit());
        if word.is_empty() || !(versioned || SIZES.contains(&word)) {
            break;
        }
        at += gap + word.len();
        end = at;
    }
    end
}

/// Returns the vendor of a member, by its model, otherwise by its backend.
pub fn vendor(backend: &str, model: Option<&str>) -> Option<&'static str> {
    let by_model = model.and_then(family);
    let by_backend = || {
        FAMILIES
            .iter()
            .find(|f| f.service == Some(backend) || f.program == Some(backend))
    };
    by_model.or_else(by_backend).map(|f| f.vendor)
}

/// Returns the group of members that make the same mistakes: the vendor, otherwise the model, otherwise the agent.
pub fn kin(backend: &str, model: Option<&str>, agent: &str) -> String {
    match (vendor(backend, model), model) {
        (Some(vendor), _) => vendor.to_owned(),
        (None, Some(model)) => model.to_owned(),
        (None, None) => agent.to_owned(),
    }
}

/// Returns whether a name says that the model has at most four billion parameters: `qwen3:0.6b`, `smollm2-360m`.
pub fn is_small(model: &str) -> bool {
    let model = model.to_lowercase();
    let parts = model.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    parts.into_iter().any(|part| {
        let size = |unit: char| part.strip_suffix(unit)?.parse::<f32>().ok();
        // `-1m` is a context of a million tokens.
        size('b').is_some_and(|billions| billions <= 4.0) || size('m').is_some_and(|m| m >= 50.0)
    })
}

/// Returns whether a model is meant to be fast and cheap, by the words that vendors use for that.
pub fn is_fast(model: &str) -> bool {
    const WORDS: [&str; 8] = [
        "mini", "nano", "haiku", "flash", "lite", "small", "fast", "instant",
    ];
    let lower = model.to_ascii_lowercase();
    lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| WORDS.contains(&word))
}

/// Returns the agent meant by a model's name if no agent has that name: the first agent with that model, otherwise the
/// provider that lists it, otherwise the known service or installed program. Includes the agent's name if it has one.
pub fn agent_for<'c>(config: &'c Config, model: &str) -> Option<(Option<&'c str>, AgentConfig)> {
    if model.is_empty() {
        return None;
    }
    let same = |agent: &&AgentConfig| agent.model.as_deref() == Some(model);
    if let Some((name, agent)) = config.agents.iter().find(|(_, agent)| same(agent)) {
        return Some((Some(name), agent.clone()));
    }
    let of = |backend: &str| AgentConfig {
        backend: backend.to_owned(),
        model: Some(model.to_owned()),
        ..AgentConfig::default()
    };
    let lists = config.providers.iter().find(|(_, provider)| {
        provider.model.as_deref() == Some(model) || provider.prices.contains_key(model)
    });
    if let Some((name, _)) = lists {
        return Some((None, of(name)));
    }
    let family = family(model)?;
    let program = family
        .program
        .filter(|program| config.programs_for_models.contains(*program));
    program.or(family.service).map(|name| (None, of(name)))
}

/// Returns whether a name is a model that can be a member without an agent of that name. `value` is a configuration as
/// JSON.
pub fn is_known(value: &serde_json::Value, name: &str) -> bool {
    use serde_json::Value;
    let section = |name: &str| value.get(name).and_then(Value::as_object);
    let has_model = |entry: &Value| entry.get("model").and_then(Value::as_str) == Some(name);
    let has_price = |entry: &Value| entry.get("prices").is_some_and(|p| p.get(name).is_some());
    let by_agent = section("agents").is_some_and(|agents| agents.values().any(has_model));
    let by_provider = section("providers").is_some_and(|all| {
        all.values()
            .any(|entry| has_model(entry) || has_price(entry))
    });
    !name.is_empty()
        && (by_agent || by_provider || family(name).is_some_and(|f| f.service.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borders;

    #[test]
    fn a_models_name_tells_its_vendor() {
        for (name, vendor) in [
            ("gpt-5", Some("OpenAI")),
            ("GPT-5-mini", Some("OpenAI")),
            ("gpt-4.1", Some("OpenAI")),
            ("o3", Some("OpenAI")),
            ("o4-mini", Some("OpenAI")),
            ("openai/gpt-5", Some("OpenAI")),
            ("claude-sonnet-4-5", Some("Anthropic")),
            ("gemini-2.5-pro", Some("Google")),
            ("llama3.1:8b", Some("Meta")),
            ("qwen2.5-coder", Some("Alibaba")),
            ("deepseek-r1", Some("DeepSeek")),
            ("gpt", None),
            ("claude", None),
            ("claudette", None),
            ("claude-helper", None),
            ("gpt5", None),
            ("o32", None),
            ("o3x", None),
            ("gpt-", None),
            ("ann", None),
            ("philosopher", None),
            ("", None),
        ] {
            assert_eq!(family(name).map(|f| f.vendor), vendor, "{name}");
        }
    }

    #[test]
    fn a_model_is_answered_for_by_its_agent_its_provider_its_program_or_its_service() {
        let mut config = Config::default();
        let backend = |config: &Config, model: &str| {
            agent_for(config, model)
                .map(|(name, agent)| (name.map(str::to_owned), agent.backend, agent.model))
        };
        let some = |name: Option<&str>, backend: &str, model: &str| {
            Some((
                name.map(str::to_owned),
                backend.to_owned(),
                Some(model.to_owned()),
            ))
        };
        assert_eq!(backend(&config, "gpt-5"), some(None, "openai", "gpt-5"));
        assert_eq!(backend(&config, "llama3"), None);
        config.programs_for_models.insert("codex");
        assert_eq!(backend(&config, "gpt-5"), some(None, "codex", "gpt-5"));
        let provider = crate::config::ProviderConfig {
            model: Some("gpt-5".into()),
            ..Default::default()
        };
        config.providers.insert("router".into(), provider);
        assert_eq!(backend(&config, "gpt-5"), some(None, "router", "gpt-5"));
        let agent = AgentConfig {
            backend: "scripted".into(),
            model: Some("gpt-5".into()),
            ..AgentConfig::default()
        };
        config.agents.insert("ann".into(), agent);
        assert_eq!(
            backend(&config, "gpt-5"),
            some(Some("ann"), "scripted", "gpt-5")
        );
    }

    #[test]
    fn models_are_found_in_text_as_people_write_them() {
        let without = |text: &str, subject: &str| {
            FAMILIES.iter().fold(text.to_owned(), |text, family| {
                family.without_models(&text, subject, borders::of_scripts, |_| "X".to_owned())
            })
        };
        for (text, wanted) in [
            ("As GPT-5, I say no.", "As X, I say no."),
            ("gpt 4.1 mini and o3-mini agree", "X and X agree"),
            ("Claude Sonnet 4.5 said so.", "X said so."),
            ("Gemini 2.5 Pro.", "X."),
            (
                "O3 is ozone, o3x is nothing, claudette sings",
                "O3 is ozone, o3x is nothing, claudette sings",
            ),
            ("My llama 3 years ago", "My X years ago"),
            ("我是GPT-5模型", "我是X模型"),
        ] {
            assert_eq!(without(text, ""), wanted);
        }
        assert_eq!(without("Take GPT-5.", "gpt-5 or claude 4?"), "Take GPT-5.");
    }

    #[test]
    fn fast_models_are_known_by_their_names() {
        for name in ["gpt-5-mini", "claude-haiku-4-5", "gemini-2.5-flash-lite"] {
            assert!(is_fast(name), "{name}");
        }
        for name in ["gpt-5", "o3", "minimax-m1", "gemini-2.5-pro"] {
            assert!(!is_fast(name), "{name}");
        }
    }

    #[test]
    fn small_models_say_so_in_their_names() {
        for name in [
            "qwen3:0.6b",
            "smollm2:135m",
            "SmolLM2-360M-Instruct",
            "llama3.2:3b-instruct-q4_0",
            "x:4b",
        ] {
            assert!(is_small(name), "{name}");
        }
        for name in [
            "qwen3",
            "llama3.1:8b",
            "gpt-5",
            "qwen3:30b-a3b",
            "qwen2.5-14b-instruct-1m",
            "phi4",
            "m",
            "b",
            "",
        ] {
            assert!(!is_small(name), "{name}");
        }
    }
}
