//! The screen of `kd chat` in a real terminal: two agent programs and the built-in model, killed while they speak, and
//! resumed; pastes and keys; and every way to exit, after which the terminal is restored.

use crate::support;
use crate::tiny;

use kd_core::Status;
use portable_pty::{Child, CommandBuilder, MasterPty, native_pty_system};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use support::{Home, PATIENCE, pty, whole};

/// Interval between checks of the disk, where it shows more than the screen.
const LOOK: Duration = Duration::from_millis(20);
const COLUMNS: u16 = 100;
const ROWS: u16 = 40;

fn print(value: &Value) -> Value {
    json!({"print": format!("{value}\n")})
}

fn claude_piece(text: &str) -> Value {
    print(
        &json!({"type": "stream_event", "session_id": "s-1", "event":
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}}),
    )
}

fn claude(text: &str) -> Value {
    json!([
        {"read": true},
        claude_piece(text),
        print(&json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s-1",
            "usage": {"input_tokens": 3, "output_tokens": 2}})),
    ])
}

/// Half an answer, then silence for a while.
fn claude_hangs() -> Value {
    json!([{"read": true}, claude_piece("Half an **answer**.\n\n- and a"), {"hang": true}])
}

fn codex(text: &str) -> Value {
    json!([
        {"read": true},
        print(&json!({"type": "thread.started", "thread_id": "t-1"})),
        print(&json!({"type": "turn.started"})),
        print(&json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": text}})),
        print(&json!({"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 2}})),
    ])
}

fn plays(home: &Home, name: &str, steps: &Value) {
    let file = home.path().join("bin").join(format!("{name}.script"));
    std::fs::write(file, steps.to_string()).expect("written");
}

/// Creates a home where `claude` and `codex` are scripted programs, and `moss` is a tiny built-in model.
fn home() -> Home {
    furnished(&json!({
        "council": {"members": ["claude", "codex", "moss"], "auto_messages": 0},
        "agents": {
            "claude": {"backend": "claude_code", "warm": false},
            "codex": {"backend": "codex", "warm": false},
            "moss": {"backend": "local", "max_tokens": 24, "seed": 7},
        },
    }))
}

/// Creates the same home with other settings.
fn furnished(config: &Value) -> Home {
    let home = Home::new(config);
    let model = tiny::Tiny {
        context: 8192,
        ..tiny::Tiny::default()
    };
    std::fs::write(home.path().join("tiny.gguf"), model.build().bytes()).expect("written");
    std::fs::create_dir(home.path().join("bin")).expect("made");
    for name in ["claude", "codex"] {
        let program = home.path().join("bin").join(name);
        std::fs::hard_link(kd_fake::fake_agent(), &program)
            .or_else(|_| std::fs::copy(kd_fake::fake_agent(), &program).map(drop))
            .expect("a program");
    }
    plays(&home, "claude", &claude_hangs());
    plays(&home, "codex", &codex("Codex's answer."));
    home
}

/// `kd` in a terminal.
struct Chat {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    bytes: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    master: Box<dyn MasterPty + Send>,
    before: String,
}

impl Chat {
    fn open(home: &Home, args: &[&str], env: &[(&str, &str)]) -> Self {
        let terminal = native_pty_system()
            .openpty(pty::size(COLUMNS, ROWS))
            .expect("a terminal");
        let before = modes(terminal.master.as_ref());
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_kd"));
        command.args(args);
        command.cwd(home.work());
        command.env_clear();
        command.env("HOME", home.path());
        command.env(support::SANDBOX, "false");
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.env("TZ", "UTC");
        command.env("KD_MODEL", home.path().join("tiny.gguf"));
        let programs = home.path().join("bin");
        command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        for (name, value) in env {
            command.env(name, value);
        }
        let child = terminal.slave.spawn_command(command).expect("it runs");
        Self {
            child,
            keys: terminal.master.take_writer().expect("a keyboard"),
            bytes: pty::listen(terminal.master.as_ref()),
            screen: vt100::Parser::new(ROWS, COLUMNS, 0),
            master: terminal.master,
            before,
        }
    }

    fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).expect("typed");
        self.keys.flush().expect("typed");
    }

    fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until the screen or the disk satisfies a condition.
    fn waits_until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            if is_so(&shown) {
                return shown;
            }
            match self.bytes.recv_timeout(LOOK) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(_) => panic!("{what} never came:\n{shown}"),
            }
        }
    }

    fn waits_for(&mut self, words: &[&str]) -> String {
        self.waits_until(&format!("{words:?}"), |shown| {
            words.iter().all(|w| shown.contains(w))
        })
    }

    fn signals(&self, name: &str) {
        let pid = self.child.process_id().expect("it runs").to_string();
        let sent = std::process::Command::new("kill")
            .args([name, &pid])
            .status();
        assert!(sent.expect("sent").success());
    }

    /// Checks that it exits, says how to resume, and restores the terminal.
    fn ends_with(mut self, code: u32) {
        let shown = self.waits_for(&["go on: kd chat council-"]);
        assert_eq!(
            self.child.wait().expect("it ends").exit_code(),
            code,
            "{shown}"
        );
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "{shown}");
        assert!(!screen.hide_cursor(), "{shown}");
        assert!(!screen.bracketed_paste(), "{shown}");
        assert_eq!(
            screen.mouse_protocol_mode(),
            vt100::MouseProtocolMode::None,
            "{shown}"
        );
        assert_eq!(modes(self.master.as_ref()), self.before);
    }
}

/// Returns echo, line mode and all other terminal settings.
fn modes(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().expect("modes"))
}

fn said(home: &Home) -> Vec<String> {
    match home.threads().as_slice() {
        [one] => whole(one)
            .into_values()
            .map(|m| format!("{}: {}", m.from, m.body))
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns whether a file under the home has this text in its name and contains the other.
fn is_kept(home: &Home, name: &str, text: &str) -> bool {
    let mut folders = vec![home.path().join(".local/state/kd")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if entry.file_name().to_string_lossy().contains(name)
                && std::fs::read_to_string(path).is_ok_and(|kept| kept == text)
            {
                return true;
            }
        }
    }
    false
}

#[test]
fn killed_while_they_speak_and_resumed_nothing_is_lost() {
    let home = home();
    let mut chat = Chat::open(&home, &["chat"], &[]);
    chat.waits_for(&[
        "kd chat · council-",
        "● claude ■ codex ★ moss",
        "broadcast",
        "Ctrl+J: newline",
    ]);
    chat.types("\x1b[200~Which store?\r\nFor a *small* team.\x1b[201~");
    chat.waits_for(&["> Which store?", "For a *small* team.", "Enter: send"]);
    assert_eq!(said(&home), [""; 0], "a paste never sends");
    chat.types("\r");
    chat.waits_for(&[
        "♔ king",
        "│ For a small team. ",
        "● claude (streaming · 28 chars)",
        "Half an answer.",
        "• and a▍",
        "■ codex · ",
        "Codex's answer.",
        "claude speaks",
        "Esc: interrupt",
    ]);
    for row in chat.screen.screen().rows(0, COLUMNS) {
        if row.starts_with('│') {
            assert!(row.ends_with('│') && row.matches('│').count() == 2, "{row}");
        }
    }
    chat.types("And then?\r");
    chat.waits_for(&["(queued"]);
    chat.types("日本 draft");
    chat.waits_for(&["> 日本 draft"]);
    chat.waits_until("the draft on disk", |_| {
        is_kept(&home, "council-", "日本 draft")
    });
    chat.signals("-KILL");
    chat.child.wait().expect("dead");
    let before = said(&home);
    assert_eq!(before.len(), 3, "the question and two answers: {before:?}");
    assert!(
        before
            .iter()
            .any(|m| m.starts_with("moss: ") && m.len() > 6),
        "the built-in model has answered: {before:?}"
    );

    plays(&home, "claude", &claude("Claude's answer."));
    let mut chat = Chat::open(&home, &["chat"], &[]);
    chat.waits_for(&["before claude had answered", "> 日本 draft"]);
    chat.waits_until("all answers", |shown| {
        said(&home).len() == 8 && !shown.contains("speak") && !shown.contains("queued")
    });
    let said = said(&home);
    assert_eq!(said[..3], before[..]);
    assert_eq!(
        said[3], "claude: Claude's answer.",
        "only who had not answered was asked"
    );
    assert_eq!(said[4], "king: And then?");
    chat.types("\x1b");
    chat.waits_for(&["cleared; Ctrl+_ brings it back"]);
    chat.types("/quit\r");
    chat.ends_with(0);
}

#[test]
fn every_way_out_leaves_the_terminal_as_it_was_and_the_thread_whole() {
    for (way, code) in [
        ("-TERM", 130),
        ("-HUP", 130),
        ("\x03\x03", 130),
        ("/quit\r\x1b", 0),
        ("/exit\r/quit\r", 0),
    ] {
        let home = home();
        let mut chat = Chat::open(&home, &["council", "chat", "--new"], &[]);
        chat.waits_for(&["your message"]);
        chat.types("@claude why?\r");
        chat.waits_for(&["• and a▍"]);
        if way.starts_with('-') {
            chat.signals(way);
        } else {
            chat.types(way);
        }
        chat.ends_with(code);
        let messages = whole(&home.threads()[0]);
        assert_eq!(messages.len(), 2, "{way:?}");
        assert_eq!(messages[&2].status, Some(Status::Interrupted), "{way:?}");
        let kept = "Half an **answer**.\n\n- and a\n\n*[Interrupted — response may be incomplete]*";
        assert_eq!(messages[&2].body, kept);
    }
}

#[test]
fn an_agent_starts_while_the_king_writes_to_it_and_leaves_with_him() {
    let home = furnished(&json!({
        "council": {"members": ["claude", "codex"], "auto_messages": 0},
        "agents": {"claude": {"backend": "claude_code"}, "codex": {"backend": "codex", "warm": true}},
    }));
    let (up, gone) = (home.path().join("up"), home.path().join("never"));
    plays(
        &home,
        "claude",
        &json!([{"write": up}, {"hear": "Which"}, claude_piece("This one."),
            print(&json!({"type": "result", "subtype": "success", "is_error": false, "result": "This one."})),
            {"hear": "nothing more"}]),
    );
    plays(&home, "codex", &json!([{"write": gone}, {"hang": true}]));
    let mut chat = Chat::open(&home, &["chat"], &[]);
    chat.waits_for(&["your message"]);
    chat.types("@claude Which ");
    chat.waits_until("the agent", |_| up.exists());
    assert!(said(&home).is_empty(), "no member was asked yet");
    chat.types("way?\r");
    chat.waits_for(&["This one."]);
    assert!(!gone.exists(), "who is not meant is left alone");
    chat.types("\x04");
    chat.ends_with(0);
}

#[test]
fn escape_stops_who_speaks_and_a_failed_answer_can_be_asked_again() {
    let home = home();
    let mut chat = Chat::open(&home, &["chat"], &[]);
    chat.waits_for(&["your message"]);
    chat.types("@claude why?\r");
    chat.waits_for(&["• and a▍"]);
    chat.types("\x1b");
    chat.waits_for(&["(interrupted)", "partial answer saved", "F5 asks again"]);
    plays(&home, "claude", &claude("Claude's answer."));
    chat.types("\x1b[15~");
    chat.waits_until("the answer in its place", |shown| {
        shown.contains("Claude's answer.")
            && !shown.contains("interrupted")
            && !shown.contains("speaks")
    });
    chat.types("/mut claude\r");
    chat.waits_for(&["did you mean /mute?"]);
    chat.types("\x15/mute claude\r");
    chat.waits_for(&["claude (muted)"]);
    chat.types("\x04");
    chat.ends_with(0);
}

#[test]
fn what_another_kd_asks_is_seen_as_it_comes_and_its_member_is_not_asked_twice() {
    let home = Home::scripted(&[
        (
            "ann",
            json!({"runs": [[{"text": "Ann's answer.\n\n"}, {"sleep_ms": 3000}, {"text": "All of it."}]]}),
        ),
        ("bob", json!({"runs": [[{"text": "Bob's answer."}]]})),
    ]);
    let mut chat = Chat::open(&home, &["chat"], &[]);
    chat.waits_for(&["your message"]);
    chat.types("/auto 0\r");
    chat.waits_for(&["(auto 0)"]);
    let mut other = home
        .kd(&["ask", "--continue", "@ann", "why?"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    chat.waits_for(&["@ann why?", "■ ann (streaming", "another program asked"]);
    chat.types("And you all?\r");
    chat.waits_for(&["(queued"]);
    assert!(other.wait().expect("it ends").success());
    let shown = chat.waits_until("both answers", |shown| {
        shown.contains("Bob's answer.") && !shown.contains("queued") && !shown.contains("speak")
    });
    assert_eq!(shown.matches("Bob's answer.").count(), 1, "{shown}");
    chat.types("/quit\r");
    chat.ends_with(0);
    assert_eq!(whole(&home.threads()[0]).len(), 5);
}

#[test]
fn without_a_current_thread_there_is_a_choice() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    home.run(&["ask", "Which colour for the shed?"]);
    home.run(&["ask", "Which database?"]);
    let branch = home.threads()[0].join("../..");
    std::fs::remove_file(branch.join("state.json")).expect("no thread is current any more");
    let mut chat = Chat::open(&home, &["chat"], &[]);
    chat.waits_for(&[
        "which thread?",
        "a new thread",
        "Which database?",
        "Which colour",
    ]);
    chat.types("colour");
    chat.waits_until("one thread", |shown| {
        shown.contains("Which colour") && !shown.contains("Which database?")
    });
    chat.types("\r");
    chat.waits_for(&["♔ king", "Which colour for the shed?", "■ ann"]);
    chat.types("/quit\r");
    chat.ends_with(0);
}

#[test]
fn terminals_that_cannot_and_people_who_do_not_want_it_get_lines() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    for (args, env) in [
        (["chat", "--plain"].as_slice(), [("X", "1")]),
        (&["chat"], [("ACCESSIBLE", "1")]),
        (&["chat"], [("TERM", "dumb")]),
    ] {
        let mut chat = Chat::open(&home, args, &env);
        chat.waits_for(&["kd: /help lists the commands"]);
        assert!(!chat.screen.screen().alternate_screen());
        chat.types("/quit\r");
        chat.ends_with(0);
    }
}
