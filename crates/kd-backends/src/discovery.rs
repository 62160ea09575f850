//! Finds what else on this machine could be a member: agent programs on the PATH, an Ollama server, keys in the environment.
//!
//! Starts no program, sends no key, calls nothing that costs money.

use crate::adapters::programs::PROGRAMS;
use crate::env::Env;
use crate::providers::{KNOWN, is_usable};
use crate::transport::client::{self, Certificates};
use kd_core::config::Config;
use kd_core::models::FAMILIES;
use reqwest::StatusCode;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Connection timeout for Ollama: it runs on this machine or not at all.
const CONNECT_LIMIT: Duration = Duration::from_millis(100);
/// Timeout for listing its models.
const LIST_LIMIT: Duration = Duration::from_millis(1000);
/// Maximum bytes of that list.
const LIST_MAX: usize = 1 << 20;

/// The kind of thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An agent program, at this path.
    Program(PathBuf),
    /// A running Ollama, with these models.
    Ollama(Vec<String>),
    /// A key in this environment variable. Its value is not used.
    Key(String),
}

/// A potential member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Discovered {
    /// The kind of thing that was found.
    pub what: What,
    /// Its display name.
    pub name: String,
    /// The value of `agents.<name>.backend` for it.
    pub backend: String,
}

/// Searches this machine. Takes a few milliseconds, and at most about a second if the Ollama server is slow.
pub async fn discover(env: &Env) -> Vec<Discovered> {
    let mut found = programs(env);
    if let Some(models) = ollama(env).await {
        found.push(Discovered {
            what: What::Ollama(models),
            name: "Ollama".into(),
            backend: "ollama".into(),
        });
    }
    found.extend(keys(env));
    found
}

fn programs(env: &Env) -> Vec<Discovered> {
    let Some(path) = env.get("PATH") else {
        return Vec::new();
    };
    let found = PROGRAMS.iter().filter_map(|program| {
        let at = program
            .names
            .iter()
            .find_map(|name| which::which_in(name, Some(&path), "/").ok())?;
        Some(Discovered {
            what: What::Program(at),
            name: program.title.into(),
            backend: program.backend.into(),
        })
    });
    found.collect()
}

fn keys(env: &Env) -> impl Iterator<Item = Discovered> {
    KNOWN.iter().filter_map(|known| {
        let variable = known.key_variable(env)?;
        // A key for an address that cannot be used is of no use.
        known
            .address(env)
            .is_none_or(|address| is_usable(&address))
            .then(|| Discovered {
                what: What::Key(variable.into()),
                name: known.name.into(),
                backend: known.name.into(),
            })
    })
}

/// Returns the backends of installed agent programs that run a vendor's models, for vendors whose service has neither a
/// key nor settings.
pub fn programs_for_models(env: &Env, config: &Config) -> BTreeSet<&'static str> {
    let has_service = |service: &str| {
        let keyed = keys(env).any(|key| key.backend == service);
        keyed || config.providers.contains_key(service)
    };
    let installed: Vec<Discovered> = programs(env);
    let on_the_path = |program: &str| installed.iter().any(|found| found.backend == program);
    FAMILIES
        .iter()
        .filter(|family| !family.service.is_some_and(has_service))
        .filter_map(|family| family.program.filter(|program| on_the_path(program)))
        .collect()
}

/// Returns the address where Ollama is expected: `host:port` of `OLLAMA_HOST`, or its usual port on this machine.
pub fn ollama_at(env: &Env) -> String {
    ollama_address(env.get("OLLAMA_HOST").as_deref())
}

/// Returns `providers.ollama.base_url` for that address; `None` if it is the usual one.
pub fn ollama_base_url(env: &Env) -> Option<String> {
    let at = ollama_at(env);
    (at != ollama_address(None)).then(|| format!("http://{at}/v1"))
}

/// Lists the models of the Ollama server at that address; `None` if no server is running there.
async fn ollama(env: &Env) -> Option<Vec<String>> {
    let url = format!("http://{}/api/tags", ollama_at(env));
    let client = client::create(&url, Certificates::Nothing, |builder| {
        builder
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_LIMIT)
            .timeout(CONNECT_LIMIT + LIST_LIMIT)
    })
    .ok()?;
    let mut response = client.get(&url).send().await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    let mut list = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        list.extend_from_slice(&chunk);
        if list.len() > LIST_MAX {
            return None;
        }
    }
    let json: serde_json::Value = serde_json::from_slice(&list).ok()?;
    let models = json.get("models")?.as_array()?.iter();
    let names = models.filter_map(|model| Some(model.get("name")?.as_str()?.to_owned()));
    Some(names.collect())
}

/// Returns `host:port` from the forms that Ollama accepts: a host, a port, both, an address.
fn ollama_address(host: Option<&str>) -> String {
    let given = host.unwrap_or_default().trim();
    let bare = given
        .split_once("://")
        .map_or(given, |(_, rest)| rest)
        .split('/')
        .next()
        .unwrap_or_default();
    let (host, port) = match bare.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, port),
        _ => (bare, "11434"),
    };
    // A server that listens on all addresses is reached at localhost.
    let host = if matches!(host, "" | "0.0.0.0" | "[::]") {
        "127.0.0.1"
    } else {
        host
    };
    format!("{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_fake::{Fake, Reply, Script, Wire};

    #[test]
    fn ollama_hosts_are_read_in_every_form() {
        for (given, address) in [
            (None, "127.0.0.1:11434"),
            (Some("0.0.0.0"), "127.0.0.1:11434"),
            (Some(":8080"), "127.0.0.1:8080"),
            (Some("box.example"), "box.example:11434"),
            (Some("http://127.0.0.1:7/"), "127.0.0.1:7"),
            (Some("[::1]:9"), "[::1]:9"),
        ] {
            assert_eq!(ollama_address(given), address);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn programs_keys_and_an_ollama_are_found_without_starting_or_telling_anything() {
        use std::os::unix::fs::PermissionsExt;
        let bin = tempfile::tempdir().unwrap();
        let ran = bin.path().join("ran");
        for name in ["claude", "agent", "cursor-agent"] {
            let file = bin.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let body = br#"{"models":[{"name":"llama3:8b"},{"name":"qwen3:4b"},{"odd":1}]}"#;
        let reply = Reply::Body {
            mime: "application/json".into(),
            body: body.as_slice().into(),
        };
        let fake = Fake::start(Script::always(Wire::OpenAi, reply))
            .await
            .unwrap();
        let env = Env::of([
            ("PATH", bin.path().to_str().unwrap()),
            ("OLLAMA_HOST", &fake.url()),
            ("GOOGLE_API_KEY", "sk-secret"),
            ("OPENAI_API_KEY", ""),
        ]);
        let found = discover(&env).await;
        let backends: Vec<&str> = found.iter().map(|f| f.backend.as_str()).collect();
        assert_eq!(backends, ["claude_code", "cursor", "ollama", "gemini_api"]);
        assert_eq!(
            found[2].what,
            What::Ollama(vec!["llama3:8b".into(), "qwen3:4b".into()])
        );
        assert_eq!(found[3].what, What::Key("GOOGLE_API_KEY".into()));
        assert!(!format!("{found:?}").contains("sk-secret"));
        assert!(!ran.exists(), "a program was started");
        assert_eq!(ollama_base_url(&env), Some(format!("{}/v1", fake.url())));
        assert_eq!(ollama_base_url(&Env::of([("A", "b")])), None);
        assert_eq!(fake.seen()[0].path, "/api/tags");
    }

    #[test]
    fn a_key_for_an_address_that_cannot_be_used_is_not_found() {
        for (address, count) in [
            ("http://127.0.0.1:9/v1", 1),
            ("gateway", 0),
            ("ftp://127.0.0.1:9", 0),
            ("http://me:secret@127.0.0.1:9", 0),
        ] {
            let env = Env::of([("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", address)]);
            assert_eq!(keys(&env).count(), count, "{address}");
        }
    }

    #[tokio::test]
    async fn an_empty_machine_offers_nothing() {
        let gone = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let env = Env::of([
            ("PATH", "/nowhere".to_owned()),
            ("OLLAMA_HOST", gone.to_string()),
        ]);
        assert_eq!(discover(&env).await, []);
    }
}
