//! A model server for real agent programs. It accepts any request in any wire format, and the first part of the path
//! selects the case, so one server plays every case: `http://…/drop.claude-1/v1/messages` plays `drop`; the part after
//! the dot separates the cases of several agents.
//!
//! | case | what happens |
//! |---|---|
//! | `answer` | [`ANSWER`], a word each 5 ms |
//! | `slow` | words for a minute, ten a second |
//! | `steady` | words for ten seconds, two hundred a second |
//! | `silent` | no word, not even a status |
//! | `drop` | the first stream breaks after five words; later ones answer |
//! | `tool` | asks for a shell that starts two sleepers ([`SLEEPERS`]), if one is offered |
//! | `orphan` | asks for a shell that starts a daemon ([`ORPHAN`]), if one is offered |
//! | `write` | asks for a shell that writes `broken.txt`, if one is offered |
//! | `read` | asks for a tool that reads `notes.txt`, and says whether [`NOTE`] came back |
//! | `rights` | asks for a shell, else a tool, that reads `../.ssh/id`, and says whether [`KEY`] came back |
//! | a number | this status, each time |

use crate::server::Seen;
use crate::{Fake, Reply, Step, Wire};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The model's answer in a case without faults.
pub const ANSWER: &str = "Hello from the loopback model. Normalise the schema first, then measure, then denormalise only the hot path.";
/// The command of the case `tool`: two sleepers, one of them in the background.
pub const SLEEPERS: &str = "tail -f /dev/null & tail -f /dev/null";
/// The command of the case `orphan`: a daemon without the environment, session or a parent of its agent, and another
/// sleeper that keeps the turn open.
pub const ORPHAN: &str =
    "env -i PATH=\"$PATH\" setsid -f setsid -f tail -F /dev/null; tail -f /dev/null";

/// The content of the file in the case `read`.
pub const NOTE: &str = "the note has the number 4711";

/// The content of the file in the case `rights`.
pub const KEY: &str = "the key of somebody else";

/// Starts the server on a free loopback port.
///
/// # Errors
/// It cannot listen.
pub async fn start() -> io::Result<Fake> {
    // Cases whose first stream was already broken.
    let broken = Mutex::new(BTreeSet::new());
    Fake::choosing(SocketAddr::from(([127, 0, 0, 1], 0)), move |seen, _| {
        Some(choose(seen, |case| {
            let mut broken = broken.lock().unwrap_or_else(PoisonError::into_inner);
            broken.insert(case.to_owned())
        }))
    })
    .await
}

/// Chooses the reply to a request; `first` says whether a case is played for the first time.
fn choose(seen: &Seen, first: impl FnOnce(&str) -> bool) -> (Wire, Reply) {
    let path = seen.path.split('?').next().unwrap_or_default();
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let (case, rest) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let Some(wire) = wire(rest) else {
        // Probes and model lists.
        return (Wire::OpenAi, whole(&json!({"data": [], "models": []})));
    };
    let body = seen.json();
    if rest.ends_with("count_tokens") {
        return (wire, whole(&json!({"input_tokens": 11})));
    }
    let scene = case.split('.').next().unwrap_or_default();
    if let Ok(code) = scene.parse() {
        let reply = Reply::Status {
            code,
            headers: Vec::new(),
            body: Some(wire.error_body(code, words_of(code))),
        };
        return (wire, reply);
    }
    let streams =
        rest.contains("streamGenerateContent") || (wire != Wire::Gemini && body["stream"] == true);
    if !streams {
        return (wire, whole(&spoken(wire)));
    }
    let reply = match scene {
        "slow" => Reply::paced(600, Duration::from_millis(100)),
        "steady" => Reply::steady(2000, Duration::ZERO, Duration::from_millis(5)),
        "silent" => Reply::Silence,
        "drop" if first(case) => {
            let mut steps: Vec<Step> = words().take(5).collect();
            steps.push(Step::Cut);
            Reply::Stream(steps)
        }
        "tool" | "orphan" | "write" if !used_tool(&seen.body) => match shell(&body) {
            Some(tool) => {
                let command = match scene {
                    "tool" => SLEEPERS,
                    "orphan" => ORPHAN,
                    _ => "echo broken > broken.txt",
                };
                Reply::Stream(vec![
                    Step::Text("Let me see. ".into()),
                    Step::Tool(tool.into(), input(tool, command)),
                ])
            }
            None => Reply::words(&["No shell was offered to me."]),
        },
        "read" | "rights" if !used_tool(&seen.body) => match reader(&body, scene) {
            Some((tool, input)) => Reply::Stream(vec![
                Step::Text("Let me see. ".into()),
                Step::Tool(tool.into(), input),
            ]),
            None => Reply::words(&["No tool was offered to me."]),
        },
        "rights" if seen.body.contains(KEY) => Reply::words(&["The key came back."]),
        "read" if !seen.body.contains(NOTE) => Reply::words(&["The tool read nothing."]),
        _ => Reply::Stream(
            words()
                .flat_map(|word| [Step::Pause(Duration::from_millis(5)), word])
                .chain([Step::End])
                .collect(),
        ),
    };
    (wire, reply)
}

/// Returns a service's typical message for a status: some agents pass on nothing else.
fn words_of(code: u16) -> &'static str {
    match code {
        401 | 403 => "Incorrect API key provided: dummy.",
        429 => "Rate limit reached for requests.",
        503 | 529 => "Overloaded",
        _ => "The server had an error while processing your request.",
    }
}

fn wire(rest: &str) -> Option<Wire> {
    if rest.contains("/messages") {
        Some(Wire::Anthropic)
    } else if rest.ends_with("/responses") || rest == "responses" {
        Some(Wire::Responses)
    } else if rest.contains("enerateContent") {
        Some(Wire::Gemini)
    } else if rest.ends_with("chat/completions") {
        Some(Wire::OpenAi)
    } else {
        None
    }
}

fn words() -> impl Iterator<Item = Step> {
    ANSWER
        .split_inclusive(' ')
        .map(|word| Step::Text(word.to_owned()))
}

/// Returns the answer as one body, for requests without streaming.
fn spoken(wire: Wire) -> Value {
    match wire {
        Wire::Anthropic => {
            json!({"id": "m1", "type": "message", "role": "assistant", "model": "fake-1",
            "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 11, "output_tokens": 7}})
        }
        Wire::Gemini => {
            json!({"candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7}})
        }
        Wire::OpenAi => {
            json!({"id": "c1", "object": "chat.completion", "created": 1, "model": "fake-1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}})
        }
        Wire::Responses => json!({"id": "r1", "status": "completed", "model": "fake-1",
            "output": [{"type": "message", "id": "msg1", "role": "assistant",
                "content": [{"type": "output_text", "text": ANSWER, "annotations": []}]}],
            "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}}),
    }
}

fn whole(body: &Value) -> Reply {
    Reply::Body {
        mime: "application/json".into(),
        body: body.to_string().into_bytes().into(),
    }
}

/// Returns whether the conversation already contains a tool result.
fn used_tool(body: &str) -> bool {
    [
        "\"tool_result\"",
        "\"function_call_output\"",
        "\"functionResponse\"",
        "\"role\":\"tool\"",
    ]
    .iter()
    .any(|mark| body.contains(mark))
}

/// Returns the shell among the tools that a request offers.
fn shell(body: &Value) -> Option<&'static str> {
    const SHELLS: [&str; 6] = [
        "Bash",
        "exec_command",
        "shell_command",
        "shell",
        "run_shell_command",
        "bash",
    ];
    let names = offered(body);
    SHELLS.into_iter().find(|shell| names.contains(shell))
}

/// Returns a tool that reads the file of the case `read` or `rights`, and its arguments.
fn reader(body: &Value, scene: &str) -> Option<(&'static str, Value)> {
    const READERS: [(&str, &str); 3] = [
        ("Read", "file_path"),
        ("read_file", "file_path"),
        ("read", "filePath"),
    ];
    let names = offered(body);
    let own = READERS.into_iter().find(|(tool, _)| names.contains(tool));
    let by_shell = |file: &str| shell(body).map(|tool| (tool, input(tool, &format!("cat {file}"))));
    let by_own = |folder: &str, file: &str| {
        own.map(|(tool, argument)| (tool, json!({ argument: format!("{folder}{file}") })))
    };
    let work = working(body).unwrap_or_default();
    if scene == "rights" {
        // A shell reaches further than a tool that knows its folder.
        let home = work.strip_suffix("work/").unwrap_or("../");
        return by_shell("../.ssh/id").or_else(|| by_own(home, ".ssh/id"));
    }
    by_own(&work, "notes.txt").or_else(|| by_shell("notes.txt"))
}

/// Returns the agent's working folder, with a trailing slash, if its prompt names a folder `work`: some tools require
/// absolute paths.
fn working(body: &Value) -> Option<String> {
    match body {
        Value::String(text) => work_in(text),
        Value::Array(items) => items.iter().find_map(working),
        Value::Object(fields) => fields.values().find_map(working),
        _ => None,
    }
}

/// Returns the first path to a folder `work` in a text.
fn work_in(text: &str) -> Option<String> {
    const NAME: &str = "/work";
    let is_path = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    text.match_indices(NAME).find_map(|(at, _)| {
        let goes_on = |c: char| c.is_alphanumeric() || "_-".contains(c);
        if text[at + NAME.len()..].starts_with(goes_on) {
            return None;
        }
        let before = text[..at].trim_end_matches(is_path).len();
        let top = &text[before..at];
        // Programs have hidden folders of the same name for their own files.
        (top.starts_with('/') && !top.contains("/.")).then(|| format!("{top}{NAME}/"))
    })
}

/// Returns the names of the tools that a request offers.
fn offered(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools
        .flat_map(|tool| {
            let declared = tool["functionDeclarations"]
                .as_array()
                .into_iter()
                .flatten();
            declared
                .map(|tool| &tool["name"])
                .chain([&tool["name"], &tool["function"]["name"]])
        })
        .filter_map(Value::as_str)
        .collect()
}

/// Builds the input of that shell for a command.
fn input(tool: &str, command: &str) -> Value {
    match tool {
        "exec_command" => json!({"cmd": command}),
        "shell" => json!({"command": ["sh", "-c", command]}),
        "Bash" | "bash" => json!({"command": command, "description": "a command of the test"}),
        _ => json!({"command": command}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_folder_is_found_in_the_words_of_any_program() {
        for (text, want) in [
            (
                "Working directory: /tmp/a-1/work\nPlatform: linux",
                Some("/tmp/a-1/work/"),
            ),
            (
                "in /tmp/a/workspace/x, not there; in /tmp/b/work.",
                Some("/tmp/b/work/"),
            ),
            ("see `/tmp/a/work/notes.txt`", Some("/tmp/a/work/")),
            (
                "temporary: /tmp/a/.gemini/tmp/work\nin: /tmp/a/work",
                Some("/tmp/a/work/"),
            ),
            ("é/work and a/work", None),
            ("", None),
        ] {
            let body = json!({"model": "m", "contents": [{"parts": [{"text": text}]}]});
            assert_eq!(working(&body).as_deref(), want, "{text}");
        }
    }
}
