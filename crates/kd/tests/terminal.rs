//! Live output in a real pseudo-terminal: three members stream, the window is resized, Ctrl+C is typed, and the
//! terminal is restored.

use crate::support;

use assert_cmd::cargo::cargo_bin;
use portable_pty::{CommandBuilder, MasterPty, native_pty_system};
use std::io::Write;
use std::sync::mpsc::Receiver;
use support::PATIENCE;
use support::pty::{listen, size};

/// The terminal's content, updated by a thread that reads the other end.
struct Screen {
    parser: vt100::Parser,
    bytes: Receiver<Vec<u8>>,
}

impl Screen {
    fn new(master: &dyn MasterPty, columns: u16, rows: u16) -> Self {
        Self {
            parser: vt100::Parser::new(rows, columns, 1000),
            bytes: listen(master),
        }
    }

    /// Waits until the screen shows all of the words.
    fn wait_for(&mut self, words: &[&str]) -> String {
        loop {
            let shown = self.parser.screen().contents();
            if words.iter().all(|w| shown.contains(w)) {
                return shown;
            }
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(_) => panic!("{words:?} never came:\n{shown}"),
            }
        }
    }
}

#[test]
fn three_stream_a_resize_and_ctrl_c_leave_the_terminal_as_it_was() {
    let home = tempfile::tempdir().expect("a folder");
    let work = home.path().join("work");
    std::fs::create_dir_all(work.join(".kd")).expect("made");
    let mut agents = serde_json::Map::new();
    for name in ["ada", "bob", "cyd"] {
        let script = format!(r#"{{"runs": [[{{"text": "words of {name}"}}, "hang"]]}}"#);
        let file = home.path().join(format!("{name}.json"));
        std::fs::write(&file, script).expect("written");
        agents.insert(
            name.into(),
            serde_json::json!({"backend": "scripted", "model": file}),
        );
    }
    let config =
        serde_json::json!({"council": {"members": ["ada", "bob", "cyd"]}, "agents": agents});
    let own = home.path().join(".config/kd");
    std::fs::create_dir_all(&own).expect("made");
    std::fs::write(own.join("config.json"), config.to_string()).expect("written");

    let pty = native_pty_system()
        .openpty(size(80, 24))
        .expect("a terminal");
    let before = pty.master.get_termios().expect("modes");
    let mut command = CommandBuilder::new(cargo_bin("kd"));
    command.env_clear();
    command.env("HOME", home.path());
    command.env(support::SANDBOX, "false");
    command.env("TERM", "xterm-256color");
    command.env("LANG", "C.UTF-8");
    command.args(["ask", "Which?"]);
    command.cwd(&work);
    let mut child = pty.slave.spawn_command(command).expect("it runs");
    let mut screen = Screen::new(pty.master.as_ref(), 80, 24);

    let shown = screen.wait_for(&[
        "● ada",
        "■ bob",
        "◆ cyd",
        "words of ada▍",
        "words of bob▍",
        "words of cyd▍",
        "Ctrl+C",
    ]);
    assert_eq!(shown.matches("● ada").count(), 1, "{shown}");
    assert!(screen.parser.screen().hide_cursor());

    pty.master.resize(size(40, 12)).expect("resized");
    screen.parser.screen_mut().set_size(12, 40);
    let shown = screen.wait_for(&["● ada", "■ bob", "◆ cyd", "words of cyd▍"]);
    assert_eq!(shown.matches("● ada").count(), 1, "{shown}");

    let mut keys = pty.master.take_writer().expect("a keyboard");
    keys.write_all(b"typed ahead\x03").expect("typed");
    let status = child.wait().expect("it ends");
    assert_eq!(status.exit_code(), 130);
    let shown = screen.wait_for(&["✗ interrupted", "interrupted; 0 of 3", "see it: kd show"]);
    assert!(
        !shown.contains("typed"),
        "what is typed is not echoed:\n{shown}"
    );
    assert!(!shown.contains('▍'), "no panel is left:\n{shown}");
    assert!(!screen.parser.screen().hide_cursor(), "the cursor is back");
    let after = pty.master.get_termios().expect("modes");
    assert_eq!(
        before.local_flags, after.local_flags,
        "echo and line mode are back"
    );
}

/// A chat without the alternate screen, in which a shell line is run.
#[test]
fn a_chat_in_the_scrollback_leaves_its_messages_there() {
    let script = r#"{"runs": [[{"text": "An answer that stays."}, {"finish": {}}]]}"#;
    let (home, work) = home(&serde_json::json!({
        "council": {"members": ["ada"], "auto_messages": 0},
        "chat": {"screen": "never", "shell": true},
        "agents": {"ada": {"backend": "scripted", "model": "ada.json"}},
    }));
    std::fs::write(work.join("ada.json"), script).expect("written");
    let pty = native_pty_system()
        .openpty(size(80, 24))
        .expect("a terminal");
    let mut command = CommandBuilder::new(cargo_bin("kd"));
    command.env_clear();
    command.env("HOME", home.path());
    command.env("PATH", "/usr/bin:/bin");
    command.env(support::SANDBOX, "false");
    command.env("TERM", "xterm-256color");
    command.env("LANG", "C.UTF-8");
    command.args(["chat", "--new"]);
    command.cwd(&work);
    let mut child = pty.slave.spawn_command(command).expect("it runs");
    let mut screen = Screen::new(pty.master.as_ref(), 80, 24);
    screen.parser.process(b"$ kd chat\r\n");
    let mut keys = pty.master.take_writer().expect("a keyboard");
    screen.wait_for(&["No messages yet", "Enter: send"]);
    assert!(!screen.parser.screen().alternate_screen());
    keys.write_all(b"!echo from-$((40 + 2))\r").expect("typed");
    screen.wait_for(&["run it? y: yes"]);
    // The key counts once the question was shown for a moment.
    std::thread::sleep(std::time::Duration::from_millis(600));
    keys.write_all(b"y").expect("typed");
    screen.wait_for(&["from-42", "nothing is sent yet"]);
    keys.write_all(b"\r").expect("typed");
    screen.wait_for(&["An answer that stays.", "your turn"]);
    keys.write_all(b"/quit\r").expect("typed");
    assert!(child.wait().expect("it ends").success());
    let shown = screen.wait_for(&["ada\nAn answer that stays.", "go on: kd chat council-"]);
    assert!(shown.contains("from-42"), "{shown}");
    assert!(
        !shown.contains("Enter: send"),
        "nothing of the screen is left:\n{shown}"
    );
    // What was there before is in the scrollback.
    screen.parser.screen_mut().set_scrollback(1000);
    let before = screen.parser.screen().contents();
    assert!(before.contains("$ kd chat"), "{before}");
}

/// What a shell line started in a session of its own ends with the chat, also if the chat is killed.
#[cfg(target_os = "linux")]
#[test]
fn nothing_that_a_shell_line_started_outlives_the_chat() {
    for is_killed in [false, true] {
        let (home, work) = home(&serde_json::json!({
            "council": {"members": ["ada"]},
            "chat": {"shell": true},
            "agents": {"ada": {"backend": "scripted", "model": "ada.json"}},
        }));
        std::fs::write(work.join("ada.json"), r#"{"runs": []}"#).expect("written");
        let pty = native_pty_system()
            .openpty(size(80, 24))
            .expect("a terminal");
        let mut command = CommandBuilder::new(cargo_bin("kd"));
        command.env_clear();
        command.env("HOME", home.path());
        command.env("PATH", "/usr/bin:/bin");
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.args(["chat", "--new"]);
        command.cwd(&work);
        let mut child = pty.slave.spawn_command(command).expect("it runs");
        let mut screen = Screen::new(pty.master.as_ref(), 80, 24);
        let mut keys = pty.master.take_writer().expect("a keyboard");
        screen.wait_for(&["No messages yet", "Enter: send"]);
        // Without the mark by which it would be found, too.
        let line = b"!env -i setsid sh -c 'echo $$ > pid; exec sleep 600' & sleep 600\r";
        keys.write_all(line).expect("typed");
        screen.wait_for(&["run it? y: yes"]);
        // The key counts once the question was shown for a moment.
        std::thread::sleep(std::time::Duration::from_millis(600));
        keys.write_all(b"y").expect("typed");
        let pid = support::until("the process of the line", || {
            let text = std::fs::read_to_string(work.join("pid")).ok()?;
            text.trim().parse::<u32>().ok()
        });
        match is_killed {
            true => child.kill().expect("killed"),
            false => keys.write_all(b"/quit\r").expect("typed"),
        }
        child.wait().expect("it ends");
        support::until("the end of the process", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        });
    }
}

/// Creates a working folder in a new home with this configuration.
fn home(config: &serde_json::Value) -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().expect("a folder");
    let work = home.path().join("work");
    std::fs::create_dir_all(work.join(".kd")).expect("made");
    if !config.is_null() {
        let own = home.path().join(".config/kd");
        std::fs::create_dir_all(&own).expect("made");
        std::fs::write(own.join("config.json"), config.to_string()).expect("written");
    }
    (home, work)
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_ctrl_c_leaves_at_once_and_a_stubborn_agent_does_not_outlive_it() {
    let config = serde_json::json!({
        "council": {"members": ["ada"]},
        "agents": {"ada": {"backend": "codex"}},
    });
    let (home, work) = home(&config);
    let program = home.path().join("codex");
    std::fs::copy(kd_fake::fake_agent(), &program).expect("copied");
    let shell = home.path().join("shell");
    let steps = serde_json::json!([
        {"ignore": ["INT", "TERM"]},
        {"shell": shell, "session": true, "orphan": true, "stubborn": true},
        {"hang": true},
    ]);
    std::fs::write(home.path().join("codex.script"), steps.to_string()).expect("written");
    let pty = native_pty_system()
        .openpty(size(80, 24))
        .expect("a terminal");
    let before = pty.master.get_termios().expect("modes");
    let mut command = CommandBuilder::new(cargo_bin("kd"));
    command.env_clear();
    command.env("HOME", home.path());
    command.env(support::SANDBOX, "false");
    command.env("PATH", "/usr/bin:/bin");
    command.env("CODEX_CLI_PATH", &program);
    command.env("TERM", "xterm-256color");
    command.env("LANG", "C.UTF-8");
    command.args(["ask", "Which?"]);
    command.cwd(&work);
    let mut child = pty.slave.spawn_command(command).expect("it runs");
    let mut screen = Screen::new(pty.master.as_ref(), 80, 24);
    screen.wait_for(&["● ada", "Ctrl+C"]);
    let pid = loop {
        // The shell writes its process ID when it runs: only then can anything be left behind.
        match std::fs::read_to_string(&shell).map(|text| text.parse::<u32>()) {
            Ok(Ok(pid)) => break pid,
            _ => std::thread::yield_now(),
        }
    };
    let mut keys = pty.master.take_writer().expect("a keyboard");
    keys.write_all(b"\x03").expect("typed");
    keys.write_all(b"\x03").expect("typed");
    let status = child.wait().expect("it ends");
    assert_eq!(status.exit_code(), 130);
    let after = pty.master.get_termios().expect("modes");
    assert_eq!(
        before.local_flags, after.local_flags,
        "echo and line mode are back"
    );
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(
        stat.is_empty() || stat.contains(") Z "),
        "the shell of a stubborn agent lives on: {stat}"
    );
}

#[test]
fn kd_init_asks_who_shall_sit_and_writes_what_was_chosen() {
    let (home, work) = home(&serde_json::Value::Null);
    for name in ["claude", "codex"] {
        let program = home.path().join(name);
        std::fs::write(&program, "#!/bin/sh\n").expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("set");
    }
    let pty = native_pty_system()
        .openpty(size(100, 24))
        .expect("a terminal");
    let mut command = CommandBuilder::new(cargo_bin("kd"));
    command.env_clear();
    command.env("HOME", home.path());
    command.env(support::SANDBOX, "false");
    command.env("PATH", home.path());
    command.env("OLLAMA_HOST", "http://127.0.0.1:1");
    command.env("TERM", "xterm-256color");
    command.env("LANG", "C.UTF-8");
    command.args(["init"]);
    command.cwd(&work);
    let mut child = pty.slave.spawn_command(command).expect("it runs");
    let mut screen = Screen::new(pty.master.as_ref(), 100, 24);
    screen.wait_for(&["1. claude", "2. codex", "members? numbers"]);
    let mut keys = pty.master.take_writer().expect("a keyboard");
    keys.write_all(b"7\n").expect("typed");
    screen.wait_for(&["please type numbers from 1 to 2"]);
    keys.write_all(b"2\n").expect("typed");
    screen.wait_for(&["codex is a member now"]);
    assert_eq!(child.wait().expect("it ends").exit_code(), 0);
    let written = std::fs::read_to_string(work.join(".kd/config.local.json")).expect("written");
    assert!(
        written.contains("\"codex\"") && !written.contains("\"claude_code\""),
        "{written}"
    );
}

#[test]
fn a_deliberation_shows_its_plan_its_stages_and_what_came_of_it() {
    let says = |answer: &str, choice: &str| {
        let reply = serde_json::json!({
            "reason": format!("{answer} it is"), "answer": answer, "confidence": 0.8, "choice": choice,
            "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 3, "weakness": "w"}, "ranking": ["A", "B"],
            "recommendation": "Do it.", "consensus": "All like it.", "support": "Reasons.", "dissent": "none", "cites": ["A"],
        });
        serde_json::json!({"runs": [[{"text": reply.to_string()}]]}).to_string()
    };
    let files = tempfile::tempdir().expect("a folder");
    let mut agents = serde_json::Map::new();
    for (name, script) in [
        ("ada", says("yes", "A")),
        ("bob", says("yes", "A")),
        ("cyd", says("yes", "A")),
    ] {
        let file = files.path().join(format!("{name}.json"));
        std::fs::write(&file, script).expect("written");
        agents.insert(
            name.into(),
            serde_json::json!({"backend": "scripted", "model": file}),
        );
    }
    let (home, work) = home(&serde_json::json!({"agents": agents}));
    let pty = native_pty_system()
        .openpty(size(100, 60))
        .expect("a terminal");
    let mut command = CommandBuilder::new(cargo_bin("kd"));
    command.env_clear();
    command.env("HOME", home.path());
    command.env(support::SANDBOX, "false");
    command.env("TERM", "xterm-256color");
    command.env("LANG", "C.UTF-8");
    command.args([
        "deliberate",
        "--preset",
        "standard",
        "--seed",
        "1",
        "Is it safe?",
    ]);
    command.cwd(&work);
    let mut child = pty.slave.spawn_command(command).expect("it runs");
    let mut screen = Screen::new(pty.master.as_ref(), 100, 60);
    let shown = screen.wait_for(&[
        "Plan · council · a choice of yes, no",
        "calls if no member fails",
        "opinions, blind",
        "review, anonymous",
        "conclusion",
        "The council is unanimous",
        "Recommendation.",
        "Do it.",
        "Vote by",
        "Agreement by pass",
        "stopped: one pass was planned",
        "kd why",
        "kd replay",
    ]);
    assert_eq!(child.wait().expect("it ends").exit_code(), 0);
    assert_eq!(
        shown.matches("opinions, blind").count(),
        1,
        "painted over, not again:\n{shown}"
    );
    assert!(!screen.parser.screen().hide_cursor(), "the cursor is back");
}
