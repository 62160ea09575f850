//! The commented configuration that `kd init` writes.
//!
//! Input: the chosen members. Output: JSON with comments, generated from the table of keys: each key that is set
//! follows its description, and useful unset keys are commented out with their defaults.

use super::path::KeyPath;
use super::{Wire, keys};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A member found by `kd init` and chosen by the user. Names are unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitSeat {
    /// The member's name.
    pub name: String,
    /// Its backend: one of [`BACKENDS`](super::BACKENDS) or a provider's name.
    pub backend: String,
    /// The model.
    pub model: Option<String>,
    /// Its role.
    pub role: Option<String>,
    /// Its own prompt.
    pub prompt: Option<String>,
    /// The variable with the key of its provider.
    pub key_env: Option<String>,
    /// The address of its provider.
    pub base_url: Option<String>,
    /// The API at that address; `None` for OpenAI's.
    pub wire: Option<Wire>,
    /// A comment for readers of the file, for example where the member was found.
    pub comment: String,
}

/// Renders the file with every member, in order.
pub fn render_init(seats: &[InitSeat]) -> String {
    let mut page = Page::default();
    page.comment("Settings of kd. `kd config show --origin` prints the effective ones, and `kd config check` finds mistakes.");
    page.comment("JSON with comments; trailing commas are fine. Uncomment a line to set it.");
    page.comment("Never put an API key here: name the variable or file that holds it.");
    page.open(None);

    page.open(Some("council"));
    let names: Vec<&str> = seats.iter().map(|seat| seat.name.as_str()).collect();
    page.set("council", "members", json!(names));
    page.offer(
        "council",
        &[
            "timeout",
            "mode",
            "auto_messages",
            "conclude",
            "chair",
            "writable",
            "preamble",
        ],
    );
    page.close();

    page.open(Some("agents"));
    for (at, seat) in seats.iter().enumerate() {
        page.comment(&seat.comment);
        page.open(Some(&seat.name));
        page.set("agents.<name>", "backend", json!(seat.backend));
        let texts = [
            ("model", &seat.model),
            ("role", &seat.role),
            ("prompt", &seat.prompt),
        ];
        for (key, value) in texts {
            match value {
                Some(value) => page.set("agents.<name>", key, json!(value)),
                None if at == 0 => page.offer("agents.<name>", &[key]),
                None => {}
            }
        }
        if at == 0 {
            page.offer(
                "agents.<name>",
                &["temperature", "max_tokens", "weight", "timeout"],
            );
        }
        page.close();
    }
    page.close();

    let mut served = BTreeSet::new();
    let services: Vec<&InitSeat> = seats
        .iter()
        .filter(|seat| seat.key_env.is_some() || seat.base_url.is_some())
        .filter(|seat| served.insert(&seat.backend))
        .collect();
    if !services.is_empty() {
        page.open(Some("providers"));
        for (at, seat) in services.into_iter().enumerate() {
            page.open(Some(&seat.backend));
            if let Some(wire) = &seat.wire {
                page.set("providers.<name>", "wire", json!(wire));
            }
            for (key, value) in [("base_url", &seat.base_url), ("key_env", &seat.key_env)] {
                if let Some(value) = value {
                    page.set("providers.<name>", key, json!(value));
                }
            }
            if at == 0 {
                page.offer("providers.<name>", &["requests_per_minute", "attempts"]);
            }
            page.close();
        }
        page.close();
    }

    page.open(Some("local"));
    page.offer("local", &["model", "threads", "context", "offline"]);
    page.close();
    page.close();
    page.text
}

/// The text so far.
#[derive(Default)]
struct Page {
    text: String,
    depth: usize,
    /// The keys already described: each is described once.
    told: BTreeSet<String>,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn comment(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let clean: String = line
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            self.line(&format!("// {}", clean.trim()));
        }
    }

    fn open(&mut self, name: Option<&str>) {
        match name {
            Some(name) => self.line(&format!("{}: {{", json!(name))),
            None => self.line("{"),
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.line(if self.depth == 0 { "}" } else { "}," });
    }

    fn tell(&mut self, section: &str, key: &str) -> Value {
        let pattern = format!("{section}.{key}");
        let row = keys::find(&KeyPath::new(pattern.split('.')));
        if let Some(row) = row
            && self.told.insert(pattern)
        {
            self.comment(row.doc);
        }
        row.and_then(|row| serde_json::from_str(row.default).ok())
            .unwrap_or_default()
    }

    fn set(&mut self, section: &str, key: &str, value: Value) {
        self.tell(section, key);
        let value = match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(Value::to_string).collect();
                format!("[{}]", items.join(", "))
            }
            other => other.to_string(),
        };
        self.line(&format!("{}: {value},", json!(key)));
    }

    fn offer(&mut self, section: &str, keys: &[&str]) {
        for key in keys {
            let default = self.tell(section, key);
            self.line(&format!("// {}: {default},", json!(key)));
        }
    }
}
