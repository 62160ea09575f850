//! The name that marks give to the origin of a member's model: service, address or command.

use super::LOCAL;
use crate::config::own::comparable;
use crate::config::{AgentConfig, Config};
use crate::hex::hex;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Environment variables that give an agent program the address of its service, by backend.
pub const SERVICES: &[(&str, &[&str])] = &[
    (
        "claude_code",
        &[
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
        ],
    ),
    ("codex", &["OPENAI_BASE_URL"]),
    (
        "gemini",
        &["GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI"],
    ),
];

/// Suffixes of variable names that give the address of a service, for variables that `agents.<name>.env` passes to a
/// program.
const ENDS: [&str; 6] = [
    "_BASE_URL",
    "_API_BASE",
    "_API_URL",
    "_ENDPOINT",
    "_HOST",
    "_PROVIDER",
];

/// Returns the service that a variable of the environment names for programs, without the parts that could be secret:
/// the user and the query of an address. `None` if it names none.
pub fn service_of(variable: &str, value: &str) -> Option<String> {
    let is_listed = SERVICES
        .iter()
        .any(|(_, variables)| variables.contains(&variable));
    match is_listed || ENDS.iter().any(|end| variable.ends_with(end)) {
        true => service(value),
        false => None,
    }
}

/// Returns the services that the environment names for an agent program, with their variables.
fn services_of(config: &Config, agent: &AgentConfig) -> Vec<String> {
    let listed = SERVICES.iter().find(|(of, _)| *of == agent.backend);
    let listed = listed.map_or(&[][..], |(_, variables)| variables);
    let is_seen = |name: &str| listed.contains(&name) || agent.env.iter().any(|own| own == name);
    let set = config.services.iter();
    let set = set.filter(|(name, _)| is_seen(name));
    set.map(|(name, service)| format!("{name}={service}"))
        .collect()
}

/// Returns the services that the environment names for the agent programs of the settings, with their variables; if
/// `by_name`, also for programs that are asked by their own names.
pub fn services(config: &Config, by_name: bool) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = config
        .agents
        .values()
        .flat_map(|agent| services_of(config, agent))
        .collect();
    if by_name {
        for (backend, _) in SERVICES {
            let backend = (*backend).to_owned();
            let program = AgentConfig {
                backend,
                ..AgentConfig::default()
            };
            found.extend(services_of(config, &program));
        }
    }
    found
}

/// Returns what a variable says about a service; `None` if it says nothing.
fn service(value: &str) -> Option<String> {
    let value = value.trim();
    if matches!(value, "" | "0" | "false" | "no" | "off") {
        return None;
    }
    let Some((scheme, rest)) = value.split_once("://") else {
        return Some(value.to_ascii_lowercase());
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let rest = &rest[..end];
    let authority = rest.find('/').unwrap_or(rest.len());
    let user = rest[..authority].rfind('@').map_or(0, |at| at + 1);
    Some(comparable(&format!("{scheme}://{}", &rest[user..])))
}

/// Returns the name of a model in marks: with the provider or the program that serves it, and a fingerprint of an address
/// or a command in the settings, and of the service that the environment names for a program. The same model may answer
/// otherwise elsewhere. `None` if the name of the backend or of a built-in model says it all.
pub(super) fn served_as(
    config: &Config,
    agent: &AgentConfig,
    model: Option<&str>,
) -> Option<String> {
    let backend = agent.backend.as_str();
    if matches!(backend, LOCAL | "scripted") {
        return None;
    }
    let provider = config.providers.get(backend);
    let model = model.or_else(|| provider?.model.as_deref());
    let address = provider.and_then(|provider| provider.elsewhere(backend));
    let services = services_of(config, agent);
    let origin = match (address, &agent.command[..]) {
        (Some(address), _) => fingerprint(&comparable(address)),
        (None, []) if services.is_empty() => {
            return model.map(|model| format!("{model}@{backend}"));
        }
        (None, command) => {
            let parts: Vec<String> = [command.join("\0")].into_iter().chain(services).collect();
            fingerprint(&parts.join("\0\0"))
        }
    };
    Some(format!("{}@{backend}-{origin}", model.unwrap_or(backend)))
}

fn fingerprint(text: &str) -> String {
    hex(&Sha256::digest(text)[..4])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seating::{SeatRequest, seat};

    #[test]
    fn the_same_model_at_another_address_is_another_member() {
        use crate::config::ProviderConfig;
        use crate::deliberation::model_of;
        let seated_as = |model: Option<&str>, address: Option<&str>, default: Option<&str>| {
            let agent = AgentConfig {
                backend: "openai".into(),
                model: model.map(str::to_owned),
                ..AgentConfig::default()
            };
            let mut config = Config::default();
            config.agents.insert("a".into(), agent);
            let provider = ProviderConfig {
                base_url: address.map(str::to_owned),
                model: default.map(str::to_owned),
                ..ProviderConfig::default()
            };
            config.providers.insert("openai".into(), provider);
            let seated = seat(&config, &SeatRequest::default()).unwrap();
            model_of(&seated.roster.members()[0]).into_owned()
        };
        let (near, far) = (
            Some("http://localhost:1/v1"),
            Some("https://far.example/v1"),
        );
        assert_eq!(seated_as(Some("m"), None, None), "m@openai");
        assert_eq!(seated_as(None, None, Some("m")), "m@openai");
        assert_eq!(seated_as(None, None, None), "openai");
        let own = Some("https://api.openai.com/v1/");
        assert_eq!(seated_as(Some("m"), own, None), "m@openai");
        let names = [
            seated_as(Some("m"), near, None),
            seated_as(Some("m"), far, None),
            seated_as(Some("other"), far, None),
        ];
        assert!(names[0].starts_with("m@openai-"), "{names:?}");
        assert!(
            !names[1].contains("far"),
            "the address is not told: {names:?}"
        );
        assert!(names[0] != names[1] && names[1] != names[2], "{names:?}");
        assert_eq!(seated_as(None, far, Some("m")), names[1]);
        assert_eq!(
            seated_as(Some("m"), Some("https://FAR.example/v1/"), None),
            names[1]
        );
        // A path is case-sensitive, and so is a user; the scheme is not.
        let at = |address: &str| seated_as(Some("m"), Some(address), None);
        assert_eq!(at("HTTPS://far.example/v1"), names[1]);
        assert_ne!(at("https://far.example/V1"), names[1]);
        assert_ne!(
            at("https://a@far.example/v1"),
            at("https://A@far.example/v1")
        );
        assert_eq!(
            at("https://a@FAR.example?K=V"),
            at("https://a@far.example?K=V")
        );
        assert_ne!(at("https://far.example?K=v"), at("https://far.example?k=v"));
        // Its marks elsewhere count as those of another version, and so do older marks, which name the model alone.
        for name in [&names[1], "m@openai"] {
            assert_eq!(kd_eval::marks::family(name), "m");
        }
    }

    #[test]
    fn what_serves_a_model_is_in_its_name() {
        use crate::deliberation::model_of;
        let seated_as = |backend: &str, model: Option<&str>, command: &[&str]| {
            let mut config = Config::default();
            let agent = AgentConfig {
                backend: backend.into(),
                model: model.map(str::to_owned),
                command: command.iter().map(|part| (*part).to_owned()).collect(),
                ..AgentConfig::default()
            };
            config.agents.insert("a".into(), agent);
            let seated = seat(&config, &SeatRequest::default()).unwrap();
            model_of(&seated.roster.members()[0]).into_owned()
        };
        assert_eq!(seated_as("openai", Some("m"), &[]), "m@openai");
        assert_eq!(seated_as("openrouter", Some("m"), &[]), "m@openrouter");
        assert_eq!(seated_as("claude_code", Some("m"), &[]), "m@claude_code");
        assert_eq!(seated_as("claude_code", None, &[]), "claude_code");
        assert_eq!(seated_as("codex", None, &[]), "codex");
        assert_eq!(seated_as(LOCAL, Some("m"), &[]), "m");
        assert_eq!(seated_as(LOCAL, None, &[]), "local");
        let programs = [
            seated_as("acp", None, &["one", "--acp"]),
            seated_as("acp", None, &["two", "--acp"]),
            seated_as("command", None, &["one", "--acp"]),
            seated_as("acp", Some("m"), &["one", "--acp"]),
            seated_as("codex", None, &["one", "--acp"]),
        ];
        assert!(programs[0].starts_with("acp@acp-"), "{programs:?}");
        assert!(programs[3].starts_with("m@acp-"), "{programs:?}");
        assert!(programs[4].starts_with("codex@codex-"), "{programs:?}");
        let names: std::collections::BTreeSet<&String> = programs.iter().collect();
        assert_eq!(names.len(), programs.len(), "{programs:?}");
        assert!(
            !programs.concat().contains("one"),
            "the command is not told"
        );
    }

    #[test]
    fn a_service_of_the_environment_is_in_the_name_of_a_programs_model() {
        use crate::deliberation::model_of;
        let seated_as = |backend: &str, env: &[&str], set: &[(&str, &str)]| {
            let mut config = Config::default();
            let agent = AgentConfig {
                backend: backend.into(),
                model: Some("m".into()),
                env: env.iter().map(|name| (*name).to_owned()).collect(),
                ..AgentConfig::default()
            };
            config.agents.insert("a".into(), agent);
            let set = set.iter();
            let set = set.filter_map(|(n, v)| Some(((*n).into(), service_of(n, v)?)));
            config.services = set.collect();
            let seated = seat(&config, &SeatRequest::default()).unwrap();
            model_of(&seated.roster.members()[0]).into_owned()
        };
        let at = |address: &str| seated_as("claude_code", &[], &[("ANTHROPIC_BASE_URL", address)]);
        let near = at("http://127.0.0.1:7717");
        assert!(near.starts_with("m@claude_code-"), "{near}");
        assert_eq!(near.len(), "m@claude_code-3f1c90ab".len());
        assert_ne!(near, at("http://127.0.0.1:7718"));
        // Users and queries may be secrets, and do not say what serves it.
        assert_eq!(near, at("HTTP://key:word@127.0.0.1:7717/?token=s3cret"));
        for nothing in ["", " ", "0"] {
            assert_eq!(at(nothing), "m@claude_code", "{nothing:?}");
        }
        let bedrock = |on| seated_as("claude_code", &[], &[("CLAUDE_CODE_USE_BEDROCK", on)]);
        assert_ne!(bedrock("1"), bedrock("0"));
        // Variables that a program does not see change nothing.
        let url = [("OPENAI_BASE_URL", "http://127.0.0.1:1")];
        assert_eq!(seated_as("claude_code", &[], &url), "m@claude_code");
        assert_ne!(seated_as("codex", &[], &url), "m@codex");
        assert_eq!(seated_as("opencode", &[], &url), "m@opencode");
        assert_ne!(
            seated_as("opencode", &["OPENAI_BASE_URL"], &url),
            "m@opencode"
        );
        for name in ["GOOSE_PROVIDER", "OLLAMA_HOST"] {
            assert_eq!(service_of(name, "Near:1").as_deref(), Some("near:1"));
        }
        for name in ["OPENAI_API_KEY", "PATH"] {
            assert_eq!(service_of(name, "http://127.0.0.1"), None);
        }
    }
}
