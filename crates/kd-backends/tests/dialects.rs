//! Tests the decoders with recorded streams: the meaning of each recording (snapshots), and invariants of all of them.
//!
//! `KD_AGENT_STREAMS=FOLDER cargo test -p kd-backends --test dialects` checks the invariants on other recordings.
#![allow(clippy::unwrap_used)]

use kd_backends::dialects::{Dialect, Exit, ExitSeen, Reading, decode_all, named};
use kd_core::{Delta, Failure, FailureKind, Finish};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

type Turn = Vec<Result<Delta, Failure>>;

/// The fixed answer of the canned server.
const NORMAL: &str = "Hello from the stub council member. I think we should normalise the schema first, then measure, \
                      then denormalise only the hot path.";

/// One recorded stream.
struct Recording {
    /// Folder and file name.
    name: String,
    bytes: Vec<u8>,
    exit: ExitSeen,
}

impl Recording {
    fn dialect(&self) -> &'static Dialect {
        let name = match self.name.split('/').next().unwrap() {
            folder if folder.starts_with("acp-") => "acp",
            "codex" if self.is_dialog() => "codex-app-server",
            folder => folder.split('-').next().unwrap(),
        };
        named(name).unwrap_or_else(|| panic!("no dialect for {}", self.name))
    }

    fn is_dialog(&self) -> bool {
        self.name.ends_with(".dialog.jsonl")
    }

    /// Decodes these bytes of it into turns, as `kd debug decode` shows them.
    fn decode(&self, bytes: impl Read) -> Turn {
        decode_all(self.dialect(), bytes).collect()
    }

    /// Decodes its only turn, with a given exit.
    fn decode_with_exit(&self, bytes: &[u8], exit: &ExitSeen) -> Turn {
        let mut reading = Reading::new(self.dialect());
        let mut turn: Turn = reading.feed(bytes).into_iter().map(Ok).collect();
        turn.extend(reading.finish().into_iter().map(Ok));
        turn.push(reading.end(exit));
        turn
    }

    fn lines(&self) -> Vec<&[u8]> {
        self.bytes.split_inclusive(|b| *b == b'\n').collect()
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agent-streams")
}

/// Returns the recordings listed in the index, or those in a folder named by the environment.
fn recordings() -> Vec<Recording> {
    let root = std::env::var_os("KD_AGENT_STREAMS").map_or_else(folder, PathBuf::from);
    let exits: BTreeMap<String, Exit> = std::fs::read_to_string(root.join("exits.tsv"))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(file, how)| {
            let exit = match how.split_once(' ') {
                Some(("code", code)) => Exit::Code(code.parse().unwrap()),
                Some(("signal", signal)) => Exit::Signal(signal.parse().unwrap()),
                _ => Exit::Unseen,
            };
            (file.to_owned(), exit)
        })
        .collect();
    let mut all = Vec::new();
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    folders.sort();
    for folder in folders.iter().filter(|path| path.is_dir()) {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        files.sort();
        for file in files
            .iter()
            .filter(|file| file.extension().is_some_and(|e| e == "jsonl"))
        {
            let name = file
                .strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let stderr =
                std::fs::read_to_string(file.with_extension("stderr.txt")).unwrap_or_default();
            all.push(Recording {
                bytes: std::fs::read(file).unwrap(),
                exit: ExitSeen {
                    how: exits.get(&name).copied().unwrap_or_default(),
                    stderr,
                },
                name,
            });
        }
    }
    assert!(all.len() > 5, "no recordings in {}", root.display());
    all
}

/// Returns the final text of each turn, as a reader of the deltas has it.
fn texts(turns: &Turn) -> Vec<String> {
    let (mut all, mut text) = (Vec::new(), String::new());
    for delta in turns {
        match delta {
            Ok(Delta::Text { text: piece }) => text.push_str(piece),
            Ok(Delta::Retrying { .. }) => text.clear(),
            Ok(Delta::Finished { text: stated, .. }) => {
                all.push(stated.clone().unwrap_or_else(|| text.clone()));
                text.clear();
            }
            Err(_) => text.clear(),
            Ok(_) => {}
        }
    }
    all
}

/// Hashes a text (FNV-1a).
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Abbreviates a long text to its ends, length and hash.
fn short(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= 60 {
        return format!("{text:?}");
    }
    let head: String = chars[..30].iter().collect();
    let tail: String = chars[chars.len() - 20..].iter().collect();
    format!(
        "{head:?}…{tail:?} ({} chars, {:08x})",
        chars.len(),
        hash(text)
    )
}

/// Formats turns for a snapshot: pieces of one kind are joined.
fn show(turns: &Turn) -> String {
    let mut shown = String::new();
    let (mut kind, mut pieces, mut joined) = ("", 0, String::new());
    for delta in turns {
        let (next, piece) = match delta {
            Ok(Delta::Text { text }) => ("text", text.as_str()),
            Ok(Delta::Thinking { text }) => ("thinking", text.as_str()),
            _ => ("", ""),
        };
        if next != kind && pieces > 0 {
            writeln!(shown, "  {kind} ×{pieces} {}", short(&joined)).unwrap();
            (pieces, joined) = (0, String::new());
        }
        kind = next;
        if !kind.is_empty() {
            pieces += 1;
            joined.push_str(piece);
            continue;
        }
        match delta {
            Ok(Delta::Started {
                model,
                version,
                session,
            }) => {
                let word = |w: &Option<String>| w.clone().unwrap_or_else(|| "-".into());
                writeln!(
                    shown,
                    "  started {} {} {}",
                    word(model),
                    word(version),
                    word(session)
                )
                .unwrap();
            }
            Ok(Delta::Tool { name, detail }) => {
                writeln!(shown, "  tool {name}: {}", short(detail)).unwrap()
            }
            Ok(Delta::Retrying {
                attempt,
                after,
                failure,
            }) => {
                let kind = failure.kind.as_str();
                writeln!(
                    shown,
                    "  retrying {attempt} after {after:?}: {kind}, {}",
                    short(&failure.message)
                )
                .unwrap();
            }
            Ok(Delta::Notice { text }) => writeln!(shown, "  notice {}", short(text)).unwrap(),
            Ok(Delta::Finished {
                finish,
                text,
                usage,
                ..
            }) => {
                let finish = if *finish == Finish::Stop {
                    "stop"
                } else {
                    "length"
                };
                let usage = usage.map_or("-".into(), |u| {
                    let cost = u.cost_usd.map_or("-".into(), |c| format!("{c:.6}"));
                    format!(
                        "{}+{} of {}+{} ${cost}",
                        u.cached_tokens, u.thinking_tokens, u.input_tokens, u.output_tokens
                    )
                });
                let text = text
                    .as_ref()
                    .map_or(String::new(), |t| format!(" says {}", short(t)));
                writeln!(shown, "  FINISHED {finish} {usage}{text}").unwrap();
            }
            Err(failure) => {
                writeln!(
                    shown,
                    "  FAILED {}: {}",
                    failure.kind.as_str(),
                    short(&failure.message)
                )
                .unwrap();
            }
            Ok(_) => {}
        }
    }
    if pieces > 0 {
        writeln!(shown, "  {kind} ×{pieces} {}", short(&joined)).unwrap();
    }
    shown
}

#[test]
fn every_recording_means_what_its_snapshot_says() {
    if std::env::var_os("KD_AGENT_STREAMS").is_some() {
        return;
    }
    let mut by_folder: BTreeMap<String, String> = BTreeMap::new();
    for recording in recordings() {
        let (folder, file) = recording.name.split_once('/').unwrap();
        let turns = if recording.is_dialog() {
            recording.decode(recording.bytes.as_slice())
        } else {
            recording.decode_with_exit(&recording.bytes, &recording.exit)
        };
        let page = by_folder.entry(folder.to_owned()).or_default();
        write!(page, "{file}\n{}\n", show(&turns)).unwrap();
    }
    for (folder, page) in by_folder {
        insta::assert_snapshot!(folder, page);
    }
}

#[test]
fn the_outcome_does_not_depend_on_where_the_bytes_were_cut() {
    for recording in recordings() {
        let bytes = recording.bytes.as_slice();
        let whole = recording.decode(bytes);
        // Every byte of a short one; as many cuts of a long one as time allows, and both sides of some line endings.
        let cuts = (400_000 / bytes.len().max(1)).max(8);
        let step = (bytes.len() / cuts).max(1);
        let ends = memchr::memchr_iter(b'\n', bytes).flat_map(|at| [at, at + 1]);
        for cut in (0..=bytes.len()).step_by(step).chain(ends.take(8)) {
            let halves = bytes[..cut].chain(&bytes[cut..]);
            assert_eq!(
                recording.decode(halves),
                whole,
                "{} cut at {cut}",
                recording.name
            );
        }
    }
}

#[test]
fn a_turn_ends_once_and_never_well_without_words() {
    for recording in recordings() {
        let turns = recording.decode(recording.bytes.as_slice());
        let last = turns
            .last()
            .unwrap_or_else(|| panic!("{} says nothing", recording.name));
        assert!(
            matches!(last, Err(_) | Ok(Delta::Finished { .. })),
            "{}: {last:?}",
            recording.name
        );
        if !recording.is_dialog() {
            let ends = turns
                .iter()
                .filter(|d| matches!(d, Err(_) | Ok(Delta::Finished { .. })))
                .count();
            assert_eq!(ends, 1, "{}", recording.name);
        }
        for text in texts(&turns) {
            assert!(
                !text.trim().is_empty(),
                "{} finished without a word",
                recording.name
            );
        }
        for delta in &turns {
            if let Ok(Delta::Text { text }) = delta {
                for raw in [
                    "{\"type\":",
                    "\"jsonrpc\"",
                    "\"session_id\"",
                    "sessionUpdate",
                ] {
                    assert!(
                        !text.contains(raw),
                        "{}: protocol in the text: {text}",
                        recording.name
                    );
                }
            }
        }
    }
}

#[test]
fn without_its_terminal_event_no_turn_went_well_whatever_the_exit_code() {
    let mut judged = 0;
    for recording in recordings().iter().filter(|r| !r.is_dialog()) {
        let finished = |bytes: &[u8]| {
            let exit = ExitSeen {
                how: Exit::Code(0),
                stderr: String::new(),
            };
            recording
                .decode_with_exit(bytes, &exit)
                .pop()
                .unwrap()
                .is_ok()
        };
        if !finished(&recording.bytes) {
            continue;
        }
        let lines = recording.lines();
        let counts: Vec<usize> = (0..=lines.len()).collect();
        let shortest = counts.partition_point(|n| !finished(&lines[..*n].concat()));
        let terminal = String::from_utf8_lossy(lines[shortest - 1]);
        let words = [
            "\"type\":\"result\"",
            "\"type\": \"result\"",
            "turn.completed",
            "step_finish",
        ];
        assert!(
            words.iter().any(|word| terminal.contains(word)),
            "{} ended with {terminal}",
            recording.name
        );
        // Half of the terminal line is not the terminal event.
        let half = lines[..shortest].concat();
        assert!(!finished(&half[..half.len() - 10]), "{}", recording.name);
        judged += 1;
    }
    assert!(judged > 3, "only {judged} recordings went well");
}

#[test]
fn unknown_events_pass_and_a_broken_line_is_one_notice() {
    for recording in recordings() {
        let whole = recording.decode(recording.bytes.as_slice());
        let lines = recording.lines();
        let unknown = br#"{"type":"brand.new","method":"brand/new","part":{"type":"new"},"params":{"deep":[{"er":1}]}}"#;
        for at in [0, lines.len() / 2, lines.len().saturating_sub(1)] {
            let with = |line: &[u8]| {
                let (before, after) = lines.split_at(at);
                [&before.concat(), line, b"\n", &after.concat()].concat()
            };
            assert_eq!(
                recording.decode(with(unknown).as_slice()),
                whole,
                "{} at {at}",
                recording.name
            );
            let broken =
                recording.decode(with(b"{\"type\":\"result\",\"subtype\":\"succ").as_slice());
            let notices = |turns: &Turn| {
                turns
                    .iter()
                    .filter(|d| matches!(d, Ok(Delta::Notice { .. })))
                    .count()
            };
            assert_eq!(
                notices(&broken),
                notices(&whole) + 1,
                "{} at {at}",
                recording.name
            );
            let ends = |turns: &Turn| turns.iter().filter(|d| d.is_err()).count();
            assert_eq!(
                (texts(&broken), ends(&broken)),
                (texts(&whole), ends(&whole)),
                "{} at {at}",
                recording.name
            );
        }
    }
}

#[test]
fn no_byte_can_break_a_decoder() {
    // xorshift64, so that a failure is reproducible.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below.max(1) as u64).unwrap()
    };
    for recording in recordings()
        .iter()
        .filter(|r| r.bytes.len() < 100_000 && !r.bytes.is_empty())
    {
        for _ in 0..12 {
            let mut bytes = recording.bytes.clone();
            for _ in 0..=random(20) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] = u8::try_from(random(256)).unwrap(),
                    1 => bytes.truncate(at.max(1)),
                    2 => bytes.insert(at, b"\"\\{}[]\n:0\xff"[random(10)]),
                    _ => {
                        let to = (at + random(200)).min(bytes.len());
                        let piece = bytes[at..to].to_vec();
                        let into = random(bytes.len());
                        bytes.splice(into..into, piece);
                    }
                }
            }
            let turns = recording.decode(bytes.as_slice());
            assert!(
                matches!(turns.last(), Some(Err(_) | Ok(Delta::Finished { .. }))),
                "{}",
                recording.name
            );
            assert!(
                texts(&turns).iter().all(|text| !text.trim().is_empty()),
                "{}",
                recording.name
            );
        }
    }
}

/// Decodes a stream of these lines, and an exit.
fn made(
    dialect: &str,
    lines: &[&str],
    how: Exit,
    stderr: &str,
) -> (Vec<String>, Result<Delta, Failure>) {
    let mut reading = Reading::new(named(dialect).unwrap());
    let mut turn: Turn = reading
        .feed((lines.join("\n") + "\n").as_bytes())
        .into_iter()
        .map(Ok)
        .collect();
    let end = reading.end(&ExitSeen {
        how,
        stderr: stderr.into(),
    });
    turn.push(end.clone());
    (texts(&turn), end)
}

#[test]
fn retries_do_not_repeat_the_words() {
    let file = |name: &str| std::fs::read(folder().join(name)).unwrap();
    for (dialect, name) in [
        ("claude", "claude/drop_midstream.jsonl"),
        ("claude", "claude/drop_retries0.jsonl"),
        ("claude", "claude/err_midstream.jsonl"),
        ("claude", "claude/err529-then-ok.jsonl"),
        ("claude", "claude-2.1.197/drop_midstream.jsonl"),
        ("codex", "codex/err500-then-ok.jsonl"),
        (
            "codex-app-server",
            "codex/appserver_drop_then_ok.dialog.jsonl",
        ),
        ("opencode", "opencode/err500-then-ok.jsonl"),
    ] {
        let turns: Turn = decode_all(named(dialect).unwrap(), file(name).as_slice()).collect();
        assert_eq!(texts(&turns), [NORMAL], "{name}");
    }
}

#[test]
fn the_first_of_two_text_blocks_is_not_lost() {
    let file = std::fs::read(folder().join("claude/thinking.jsonl")).unwrap();
    let turns: Turn = decode_all(named("claude").unwrap(), file.as_slice()).collect();
    assert_eq!(
        texts(&turns),
        [format!("{NORMAL}\n\nSecond block: and measure.")]
    );
}

#[test]
fn a_persistent_process_is_charged_turn_by_turn() {
    let file = std::fs::read(folder().join("claude/persistent_multiturn.dialog.jsonl")).unwrap();
    let turns: Turn = decode_all(named("claude").unwrap(), file.as_slice()).collect();
    let costs: Vec<f64> = turns
        .iter()
        .filter_map(|delta| match delta {
            Ok(Delta::Finished {
                usage: Some(usage), ..
            }) => usage.cost_usd,
            _ => None,
        })
        .collect();
    assert_eq!(costs.len(), 6);
    assert!(
        (costs.iter().sum::<f64>() - 0.298_524).abs() < 1e-9,
        "{costs:?}"
    );
    assert!(
        costs.iter().all(|cost| (0.04..0.06).contains(cost)),
        "{costs:?}"
    );
}

#[test]
fn cursor_follows_its_documentation() {
    let piece = |text: &str| {
        format!(
            r#"{{"type":"assistant","timestamp_ms":1,"message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let flush = |text: &str, rest: &str| {
        format!(
            r#"{{"type":"assistant",{rest}"message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let result = |text: &str| {
        format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}"}}"#)
    };
    let tool = r#"{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"readToolCall":{"args":{"path":"a.rs"}}}}"#;
    let (one, two) = (piece("Let me "), piece("look."));
    let called = flush("Let me look.", r#""timestamp_ms":2,"model_call_id":"m","#);
    let (three, last) = (piece("It is fine."), flush("Let me look.It is fine.", ""));
    let short = result("It is fine.");
    let whole = "Let me look.\n\nIt is fine.";
    // A short result never overrides longer streamed text.
    let (texts, end) = made(
        "cursor",
        &[&one, &two, &called, tool, &three, &last, &short],
        Exit::Unseen,
        "",
    );
    assert_eq!(texts, [whole]);
    assert!(
        matches!(end, Ok(Delta::Finished { text: None, .. })),
        "{end:?}"
    );
    // Without partial output, every line is a stretch of text.
    let (a, b) = (flush("Let me look.", ""), flush("It is fine.", ""));
    assert_eq!(
        made("cursor", &[&a, tool, &b, &short], Exit::Unseen, "").0,
        [whole]
    );
    // Plan limits arrive as prose.
    let (_, end) = made(
        "cursor",
        &["You've hit your usage limit"],
        Exit::Code(1),
        "",
    );
    assert_eq!(end.unwrap_err().kind, FailureKind::RateLimit);
}

#[test]
fn an_agent_that_exits_well_without_an_answer_failed() {
    for (dialect, kind) in [
        ("claude", FailureKind::Decode),
        ("codex", FailureKind::Decode),
        ("gemini", FailureKind::Decode),
    ] {
        let (_, end) = made(dialect, &["{\"type\":\"init\"}"], Exit::Code(0), "");
        assert_eq!(end.unwrap_err().kind, kind, "{dialect}");
    }
    let (_, end) = made("gemini", &[], Exit::Code(41), "Please set an Auth method");
    assert_eq!(end.unwrap_err().kind, FailureKind::Auth);
    let (_, end) = made("gemini", &[], Exit::Code(173), "");
    assert_eq!(end.unwrap_err().kind, FailureKind::RateLimit);
}

/// Maps the programs' own error texts to failure kinds, in each dialect.
#[test]
fn every_way_to_fail_has_its_kind() {
    use FailureKind::*;
    let claude = |status: &str, error: &str, rest: &str, said: &str| {
        vec![
            format!(
                r#"{{"type":"assistant","is_api_error_message":true,"error":"{error}","message":{{"id":"m","model":"<synthetic>","content":[{{"type":"text","text":"{said}"}}]}}}}"#
            ),
            format!(
                r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},{rest}"result":"{said}"}}"#
            ),
        ]
    };
    let exec = |said: &str| {
        let told = format!(r#"{{"type":"error","message":"{said}"}}"#);
        let end = format!(r#"{{"type":"turn.failed","error":{{"message":"{said}"}}}}"#);
        vec![told, end]
    };
    let server = |info: &str| {
        let error = format!(r#"{{"message":"it did not work","codexErrorInfo":{info}}}"#);
        vec![
            r#"{"method":"turn/started","params":{"threadId":"t"}}"#.to_owned(),
            format!(
                r#"{{"method":"error","params":{{"threadId":"t","willRetry":false,"error":{error}}}}}"#
            ),
            format!(
                r#"{{"method":"turn/completed","params":{{"threadId":"t","turn":{{"status":"failed","error":{error}}}}}}}"#
            ),
        ]
    };
    let gemini = |said: &str| {
        vec![format!(
            r#"{{"type":"result","status":"error","error":{{"type":"unknown","message":"{said}"}}}}"#
        )]
    };
    let opencode = |name: &str, data: &str| {
        vec![format!(
            r#"{{"type":"error","sessionID":"s","error":{{"name":"{name}","data":{{{data}}}}}}}"#
        )]
    };
    let acp = |error: &str| vec![format!(r#"{{"jsonrpc":"2.0","id":3,"error":{{{error}}}}}"#)];
    let cases: Vec<(&str, Vec<String>, FailureKind)> = vec![
        ("claude", claude("401", "authentication_failed", "", "Please run /login"), Auth),
        ("claude", claude("null", "authentication_failed", "", "Not logged in"), Auth),
        ("claude", claude("403", "authentication_failed", "", "no"), Auth),
        ("claude", claude("400", "invalid_request", r#""terminal_reason":"prompt_too_long","#, "Prompt is too long"), Invalid),
        ("claude", claude("404", "model_not_found", "", "no such model"), Invalid),
        ("claude", claude("429", "rate_limit", "", "slow down"), RateLimit),
        ("claude", claude("529", "overloaded", "", "busy"), Overloaded),
        ("claude", claude("500", "server_error", "", "oh"), Overloaded),
        ("claude", claude("null", "unknown", r#""api_error":"connection_failed","#, "Connection error."), Crashed),
        ("codex", exec("unexpected status 401 Unauthorized: no key"), Auth),
        ("codex", exec("unexpected status 403 Forbidden: no"), Auth),
        ("codex", exec("Codex ran out of room in the model's context window."), Invalid),
        ("codex", exec("The model `x` does not exist or you do not have access to it."), Invalid),
        ("codex", exec("exceeded retry limit, last status: 429 Too Many Requests"), RateLimit),
        ("codex", exec("Quota exceeded. Check your plan and billing details."), RateLimit),
        ("codex", exec("You've hit your usage limit. Upgrade to Pro or try again later."), RateLimit),
        ("codex", exec("unexpected status 529 <unknown status code>: overloaded"), Overloaded),
        ("codex", exec("Selected model is at capacity. Please try a different model."), Overloaded),
        ("codex", exec("We're currently experiencing high demand, which may cause temporary errors."), Overloaded),
        ("codex", exec("stream disconnected before completion: idle timeout waiting for SSE"), Timeout),
        ("codex", exec("stream disconnected before completion: stream closed before response.completed"), Crashed),
        ("codex", exec("Missing environment variable: `OPENAI_API_KEY`."), Auth),
        ("codex-app-server", server(r#""unauthorized""#), Auth),
        ("codex-app-server", server(r#""rateLimitExceeded""#), RateLimit),
        ("codex-app-server", server(r#""usageLimitExceeded""#), RateLimit),
        ("codex-app-server", server(r#""serverOverloaded""#), Overloaded),
        ("codex-app-server", server(r#""internalServerError""#), Overloaded),
        ("codex-app-server", server(r#""contextWindowExceeded""#), Invalid),
        ("codex-app-server", server(r#""modelNotFound""#), Invalid),
        ("codex-app-server", server(r#""cyberPolicy""#), Refused),
        ("codex-app-server", server(r#""other""#), Crashed),
        ("codex-app-server", server(r#""a word of next year""#), Crashed),
        ("codex-app-server", server(r#"{"httpConnectionFailed":{"httpStatusCode":403}}"#), Auth),
        ("codex-app-server", server(r#"{"responseTooManyFailedAttempts":{"httpStatusCode":429}}"#), RateLimit),
        ("codex-app-server", server(r#"{"responseTooManyFailedAttempts":{"httpStatusCode":529}}"#), Overloaded),
        ("codex-app-server", server(r#"{"responseStreamDisconnected":{"httpStatusCode":null}}"#), Crashed),
        ("gemini", gemini(r#"[API Error: {\"error\":{\"code\":401,\"message\":\"no\"}}]"#), Auth),
        ("gemini", gemini(r#"[API Error: {\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}]"#), RateLimit),
        ("gemini", gemini(r#"[API Error: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}]"#), Overloaded),
        ("gemini", gemini("[API Error: terminated]"), Crashed),
        ("gemini", gemini("[API Error: fetch failed]"), Crashed),
        ("gemini", gemini("something of next year"), Crashed),
        ("opencode", opencode("APIError", r#""message":"no","statusCode":401"#), Auth),
        ("opencode", opencode("APIError", r#""message":"slow","statusCode":429"#), RateLimit),
        ("opencode", opencode("APIError", r#""message":"busy","statusCode":503"#), Overloaded),
        ("opencode", opencode("ContextOverflowError", r#""message":"long""#), Invalid),
        ("opencode", opencode("ProviderAuthError", r#""message":"who""#), Auth),
        ("opencode", opencode("MessageAbortedError", r#""message":"stop""#), Cancelled),
        ("opencode", opencode("UnknownError", r#""message":"of next year""#), Crashed),
        ("acp", acp(r#""code":-32000,"message":"Authentication required""#), Auth),
        ("acp", acp(r#""code":401,"message":"API key not valid""#), Auth),
        ("acp", acp(r#""code":-32603,"message":"Internal error","data":{"errorKind":"overloaded"}"#), Overloaded),
        ("acp", acp(r#""code":-32603,"message":"Internal error","data":{"errorKind":"rate_limit"}"#), RateLimit),
        ("acp", acp(r#""code":-32603,"message":"Internal error","data":{"message":"APIError: 429 Too Many Requests"}"#), RateLimit),
        ("acp", acp(r#""code":-32602,"message":"Invalid params""#), Invalid),
        (
            "acp",
            acp(r#""code":-32603,"message":"Internal error","data":{"details":"Input exceeds the maximum length of 1048576 characters."}"#),
            Invalid,
        ),
        (
            "acp",
            acp(r#""code":-32603,"message":"Internal error","data":"unexpected status 529 of the service""#),
            Overloaded,
        ),
        ("acp", acp(r#""code":-32603,"message":"Internal error""#), Crashed),
        ("cursor", vec![r#"{"type":"result","subtype":"error","is_error":true,"result":"rate limit reached"}"#.to_owned()], RateLimit),
    ];
    for (dialect, lines, kind) in cases {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (said, end) = made(dialect, &lines, Exit::Code(0), "");
        let failure = end.unwrap_err();
        assert_eq!(failure.kind, kind, "{dialect}: {lines:?}: {failure}");
        assert!(!failure.hint().is_empty(), "{dialect}: {failure}");
        assert_eq!(
            said, [""; 0],
            "{dialect}: a failure is no answer: {lines:?}"
        );
    }
}

#[test]
fn who_ends_while_asking_again_failed_as_the_last_attempt_did() {
    let claude = |status: &str, word: &str| {
        format!(
            r#"{{"type":"system","subtype":"api_retry","attempt":1,"max_retries":9,"retry_delay_ms":9,"error_status":{status},"error":"{word}"}}"#
        )
    };
    let busy = claude("529", "overloaded");
    let codex = r#"{"type":"error","message":"Reconnecting... 2/5 (unexpected status 401 Unauthorized: no)"}"#;
    let server = r#"{"method":"error","params":{"willRetry":true,"error":{"message":"Reconnecting... 1/2","codexErrorInfo":"serverOverloaded"}}}"#;
    for (dialect, line, kind) in [
        ("claude", busy.as_str(), FailureKind::Overloaded),
        ("codex", codex, FailureKind::Auth),
        ("codex-app-server", server, FailureKind::Overloaded),
    ] {
        for how in [Exit::Unseen, Exit::Code(0), Exit::Code(1)] {
            let (_, end) = made(dialect, &[line], how, "");
            assert_eq!(end.unwrap_err().kind, kind, "{dialect} {how:?}");
        }
        // If it was stopped or killed, that is the reason.
        let (_, end) = made(dialect, &[line], Exit::Signal(15), "");
        assert_eq!(end.unwrap_err().kind, FailureKind::Cancelled, "{dialect}");
        let (_, end) = made(dialect, &[line], Exit::Signal(9), "");
        assert_eq!(end.unwrap_err().kind, FailureKind::Crashed, "{dialect}");
    }
    // Text has arrived since: then the end of the stream is the reason.
    let word = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"We"}}}"#;
    let (_, end) = made("claude", &[&busy, word], Exit::Unseen, "");
    assert_eq!(end.unwrap_err().kind, FailureKind::Decode);
}

/// Decodes a two-way recording, written as `> ours` and `< theirs`.
fn dialog(dialect: &str, lines: &[&str]) -> Turn {
    let recorded: String = lines
        .iter()
        .map(|line| {
            let dir = if line.starts_with('>') { "in" } else { "out" };
            format!("{{\"t\":0,\"dir\":\"{dir}\",\"msg\":{}}}\n", &line[2..])
        })
        .collect();
    decode_all(named(dialect).unwrap(), recorded.as_bytes()).collect()
}

#[test]
fn other_threads_of_a_codex_server_are_not_heard() {
    let turns = dialog(
        "codex-app-server",
        &[
            r#"> {"id":3,"method":"turn/start","params":{"threadId":"A"}}"#,
            r#"> {"id":4,"method":"turn/start","params":{"threadId":"B"}}"#,
            r#"< {"method":"turn/started","params":{"threadId":"A"}}"#,
            r#"< {"method":"item/agentMessage/delta","params":{"threadId":"A","itemId":"1","delta":"Ay"}}"#,
            r#"< {"method":"item/agentMessage/delta","params":{"threadId":"B","itemId":"2","delta":"Bee"}}"#,
            r#"< {"method":"error","params":{"threadId":"B","willRetry":true,"error":{"message":"Reconnecting... 1/2"}}}"#,
            r#"< {"method":"item/completed","params":{"threadId":"A","item":{"type":"agentMessage","id":"1","text":"Aye"}}}"#,
            r#"< {"method":"turn/completed","params":{"threadId":"B","turn":{"status":"failed"}}}"#,
            r#"< {"method":"turn/completed","params":{"threadId":"A","turn":{"status":"completed"}}}"#,
        ],
    );
    assert_eq!(texts(&turns), ["Aye"]);
    assert!(turns.iter().all(Result::is_ok), "{turns:?}");
}

#[test]
fn every_thread_of_a_codex_server_counts_from_zero() {
    let turn = |id: u8, thread: &str, total: u64| {
        let count = {
            format!(
                r#"< {{"method":"thread/tokenUsage/updated","params":{{"threadId":"{thread}","tokenUsage":{{"total":{{"inputTokens":{total},"outputTokens":7}}}}}}}}"#
            )
        };
        [
            format!(r#"> {{"id":{id},"method":"turn/start","params":{{"threadId":"{thread}"}}}}"#),
            format!(
                r#"< {{"method":"item/completed","params":{{"threadId":"{thread}","item":{{"type":"agentMessage","id":"{id}","text":"Aye"}}}}}}"#
            ),
            count,
            format!(
                r#"< {{"method":"turn/completed","params":{{"threadId":"{thread}","turn":{{"status":"completed"}}}}}}"#
            ),
        ]
    };
    let threads = [turn(1, "A", 9980), turn(2, "B", 9980), turn(3, "B", 20_000)];
    let lines: Vec<&str> = threads.iter().flatten().map(String::as_str).collect();
    let turns = dialog("codex-app-server", &lines);
    let used: Vec<u64> = turns
        .iter()
        .filter_map(|delta| match delta {
            Ok(Delta::Finished { usage, .. }) => Some(usage.map_or(0, |used| used.input_tokens)),
            _ => None,
        })
        .collect();
    assert_eq!(used, [9980, 9980, 10_020], "{turns:?}");
}

#[test]
fn what_codex_does_not_take_is_told_in_its_words() {
    let refused = |said: &str| {
        let ours = r#"> {"id":3,"method":"turn/start","params":{"threadId":"A"}}"#;
        let theirs = format!(r#"< {{"id":3,"error":{{"code":-32600,"message":"{said}"}}}}"#);
        let turns = dialog("codex-app-server", &[ours, &theirs]);
        turns.into_iter().next_back().unwrap().unwrap_err()
    };
    let long = refused("Input exceeds the maximum length of 1048576 characters.");
    assert_eq!(long.kind, FailureKind::Invalid, "{long}");
    assert!(long.message.contains("1048576"), "{long}");
    assert!(long.hint().contains("does not fit"), "{}", long.hint());
    assert_eq!(refused("no such thread").kind, FailureKind::Invalid);
}

#[test]
fn a_recording_of_both_sides_of_codex_is_that_of_its_server() {
    let lines = [
        r#"> {"id":3,"method":"turn/start","params":{"threadId":"A"}}"#,
        r#"< {"method":"item/completed","params":{"threadId":"A","item":{"type":"agentMessage","id":"1","text":"Aye"}}}"#,
        r#"< {"method":"turn/completed","params":{"threadId":"A","turn":{"status":"completed"}}}"#,
    ];
    assert_eq!(dialog("codex", &lines), dialog("codex-app-server", &lines));
    assert_eq!(texts(&dialog("codex", &lines)), ["Aye"]);
}

#[test]
fn acp_prompts_that_wait_are_answered_one_by_one() {
    let prompt = |id: u8, session: &str| {
        format!(r#"> {{"id":{id},"method":"session/prompt","params":{{"sessionId":"{session}"}}}}"#)
    };
    let chunk = |session: &str, text: &str| {
        format!(
            r#"< {{"method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    };
    let done = |id: u8| format!(r#"< {{"id":{id},"result":{{"stopReason":"end_turn"}}}}"#);
    let lines = [
        prompt(1, "s"),
        prompt(2, "s"),
        prompt(3, "other"),
        chunk("s", "one"),
        chunk("other", "three"),
        done(3),
        done(1),
        chunk("s", "two"),
        done(2),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let turns = dialog("acp", &lines);
    assert_eq!(texts(&turns), ["one", "two"]);
    assert!(turns.iter().all(Result::is_ok), "{turns:?}");
}

#[test]
fn an_acp_agent_that_began_again_keeps_only_its_last_words() {
    let chunk = |id: &str, text: &str| {
        format!(
            r#"< {{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","messageId":"{id}","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    };
    let prompt = r#"> {"id":1,"method":"session/prompt","params":{"sessionId":"s"}}"#;
    let done = r#"< {"id":1,"result":{"stopReason":"end_turn"}}"#;
    let (a, b) = (chunk("a", "Hello from"), chunk("b", "Hello from us all"));
    let turns = dialog("acp", &[prompt, &a, &b, done]);
    assert_eq!(texts(&turns), ["Hello from us all"]);
    let notices = turns
        .iter()
        .filter(|d| matches!(d, Ok(Delta::Notice { .. })));
    assert_eq!(notices.count(), 1);
    // Two consecutive messages are both part of the answer.
    let c = chunk("c", "And more");
    assert_eq!(
        texts(&dialog("acp", &[prompt, &a, &c, done])),
        ["Hello from\n\nAnd more"]
    );
}
