//! The live face in a real pseudo-terminal: three members stream, the window is resized, Ctrl+C is typed, and the
//! terminal is as it was.

use assert_cmd::cargo::cargo_bin;
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than any step takes on a busy machine; reached only when the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols: columns,
        pixel_width: 0,
        pixel_height: 0,
    }
}

/// What the terminal shows, fed by a thread that reads the other end.
struct Screen {
    parser: vt100::Parser,
    bytes: Receiver<Vec<u8>>,
}

impl Screen {
    fn new(master: &dyn MasterPty, columns: u16, rows: u16) -> Self {
        let mut reader = master.try_clone_reader().expect("a reader");
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
            parser: vt100::Parser::new(rows, columns, 1000),
            bytes,
        }
    }

    /// Waits until the screen shows all of these.
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
    std::fs::write(work.join(".kd/config.local.json"), config.to_string()).expect("written");

    let pty = native_pty_system()
        .openpty(size(80, 24))
        .expect("a terminal");
    let before = pty.master.get_termios().expect("modes");
    let mut command = CommandBuilder::new(cargo_bin("kd"));
    command.env_clear();
    command.env("HOME", home.path());
    command.env("TERM", "xterm-256color");
    command.env("LANG", "C.UTF-8");
    command.args(["ask", "Which?"]);
    command.cwd(&work);
    let mut child = pty.slave.spawn_command(command).expect("it runs");
    let mut screen = Screen::new(pty.master.as_ref(), 80, 24);

    let shown = screen.wait_for(&[
        "● ada",
        "■ bob",
        "▲ cyd",
        "words of ada▍",
        "words of bob▍",
        "words of cyd▍",
        "Ctrl+C",
    ]);
    assert_eq!(shown.matches("● ada").count(), 1, "{shown}");
    assert!(screen.parser.screen().hide_cursor());

    pty.master.resize(size(40, 12)).expect("resized");
    screen.parser.screen_mut().set_size(12, 40);
    let shown = screen.wait_for(&["● ada", "■ bob", "▲ cyd", "words of cyd▍"]);
    assert_eq!(shown.matches("● ada").count(), 1, "{shown}");

    let mut keys = pty.master.take_writer().expect("a keyboard");
    keys.write_all(b"typed ahead\x03").expect("typed");
    let status = child.wait().expect("it ends");
    assert_eq!(status.exit_code(), 130);
    let shown = screen.wait_for(&[
        "✗ stopped",
        "interrupted; 0 of 3",
        "see it: kd council show",
    ]);
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
