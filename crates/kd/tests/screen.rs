//! The chat screen in a real pseudo-terminal: first paint, a message, streaming, Escape, a draft that survives a kill,
//! and a terminal that is as it was, whatever ended us.

mod support;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::json;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use support::Home;

/// Longer than any step takes on a busy machine; reached only when the test has failed.
const PATIENCE: Duration = Duration::from_secs(90);

/// A home where `ann` answers once and then hangs after a few words.
fn home() -> Home {
    let home = Home::new(&json!({}));
    let script = home.path().join("ann.json");
    let runs = r#"{"runs": [[{"text": "Ann says **yes**."}], [{"text": "Half of it"}, "hang"]]}"#;
    std::fs::write(&script, runs).expect("written");
    let config = json!({
        "council": {"members": ["ann"], "auto_messages": 0},
        "agents": {"ann": {"backend": "scripted", "model": script}},
    });
    let file = home.work().join(".kd/config.local.json");
    std::fs::write(file, config.to_string()).expect("written");
    home
}

struct Chat {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    parser: vt100::Parser,
    raw: Vec<u8>,
    bytes: Receiver<Vec<u8>>,
}

impl Chat {
    fn open(home: &Home, args: &[&str]) -> Self {
        let size = PtySize {
            rows: 24,
            cols: 80,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pty = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_kd"));
        command.args(args);
        command.cwd(home.work());
        command.env_clear();
        command.env("HOME", home.path());
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        let child = pty.slave.spawn_command(command).expect("it runs");
        let mut reader = pty.master.try_clone_reader().expect("a reader");
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            keys: pty.master.take_writer().expect("a keyboard"),
            master: pty.master,
            parser: vt100::Parser::new(24, 80, 0),
            raw: Vec::new(),
            bytes,
        }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits until the screen shows all of these.
    fn shows(&mut self, words: &[&str]) -> String {
        loop {
            let shown = self.parser.screen().contents();
            if words.iter().all(|w| shown.contains(w)) {
                return shown;
            }
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => {
                    self.parser.process(&bytes);
                    self.raw.extend(bytes);
                }
                Err(_) => panic!("{words:?} never came:\n{shown}"),
            }
        }
    }

    /// The exit code, when the terminal is as it was.
    fn ends(mut self) -> u32 {
        let status = self.child.wait().expect("it ends");
        while let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(200)) {
            self.raw.extend(bytes);
        }
        let raw = String::from_utf8_lossy(&self.raw).into_owned();
        for undone in [
            "\x1b[<u",
            "\x1b[?1000l",
            "\x1b[?1004l",
            "\x1b[?2004l",
            "\x1b[?7h",
            "\x1b[?25h",
            "\x1b[?1049l",
        ] {
            assert!(raw.contains(undone), "{undone:?} is missing");
        }
        let modes = self.master.get_termios().expect("modes");
        assert!(is_usual(&modes), "echo and line mode are back");
        status.exit_code()
    }
}

/// Whether a terminal echoes and gathers lines.
fn is_usual(modes: &impl std::fmt::Debug) -> bool {
    let text = format!("{modes:?}");
    text.contains("ECHO") && text.contains("ICANON")
}

#[test]
fn a_message_its_answer_escape_and_the_way_out() {
    let home = home();
    let mut chat = Chat::open(&home, &["chat"]);
    chat.shows(&["kd chat · council-", "● ann", "your message"]);
    chat.types("\x1b[200~Yes\nor no?\x1b[201~");
    chat.shows(&["> Yes", "or no?", "Esc: clear"]);
    chat.types("\r");
    let shown = chat.shows(&["♔ king", "Ann says yes.", "Esc: read"]);
    assert!(!shown.contains("**"), "Markdown is rendered:\n{shown}");
    chat.types("more\r");
    chat.shows(&["Half of it▍", "ann speaks"]);
    chat.types("\x1b");
    chat.shows(&["(interrupted)", "what came is kept", "F5 asks again"]);
    chat.types("/quit\r");
    assert_eq!(chat.ends(), 0);
    let kept = walk(&home.work().join(".kd/branches")).iter().any(|p| {
        std::fs::read_to_string(p)
            .is_ok_and(|t| t.contains("interrupted") && t.contains("Half of it"))
    });
    assert!(kept, "what came is on disk");
}

#[test]
fn a_killed_screen_loses_no_draft_and_sigterm_gives_the_terminal_back() {
    let home = home();
    let mut chat = Chat::open(&home, &["chat"]);
    chat.shows(&["your message"]);
    chat.types("a thought that is long");
    chat.shows(&["a thought that is long"]);
    // The draft is on disk a moment after the last key.
    let drafts = home.work().join(".kd/branches");
    let kept = || {
        walk(&drafts).iter().any(|p| {
            p.parent().is_some_and(|f| f.ends_with("drafts"))
                && std::fs::read_to_string(p).is_ok_and(|t| t == "a thought that is long")
        })
    };
    while !kept() {
        std::thread::yield_now();
    }
    chat.child.kill().expect("killed");
    chat.child.wait().expect("dead");
    let mut chat = Chat::open(&home, &["chat"]);
    chat.shows(&["> a thought that is long"]);
    let pid = chat.child.process_id().expect("it lives");
    let pid = rustix::process::Pid::from_raw(pid as i32).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
    assert_eq!(chat.ends(), 0);
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(path);
        }
    }
    found
}
