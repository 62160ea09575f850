//! The forum screen in a real pseudo-terminal: it opens, follows other writers, and restores the terminal.

use super::support::pty;
use super::support::{Home, PATIENCE};
use super::{forum, house};
use assert_cmd::cargo::cargo_bin;
use portable_pty::{Child, CommandBuilder, MasterPty, native_pty_system};
use serde_json::json;
use std::io::Write;
use std::sync::mpsc::Receiver;

fn wait_for(parser: &mut vt100::Parser, bytes: &Receiver<Vec<u8>>, words: &[&str]) {
    loop {
        let shown = parser.screen().contents();
        if words.iter().all(|word| shown.contains(word)) {
            return;
        }
        match bytes.recv_timeout(PATIENCE) {
            Ok(more) => parser.process(&more),
            Err(_) => panic!("{words:?} never came:\n{shown}"),
        }
    }
}

fn modes(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().expect("modes"))
}

/// `kd forum tui` in a terminal.
struct Screen {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    bytes: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    master: Box<dyn MasterPty + Send>,
    before: String,
}

impl Screen {
    fn open(home: &Home, columns: u16, rows: u16) -> Self {
        let terminal = native_pty_system()
            .openpty(pty::size(columns, rows))
            .expect("a terminal");
        let before = modes(terminal.master.as_ref());
        let mut command = CommandBuilder::new(cargo_bin("kd"));
        command.env_clear();
        command.env("HOME", home.path());
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.env("TZ", "UTC");
        command.args(["forum", "tui"]);
        command.cwd(home.work());
        let child = terminal.slave.spawn_command(command).expect("it runs");
        Self {
            child,
            keys: terminal.master.take_writer().expect("a writer"),
            bytes: pty::listen(terminal.master.as_ref()),
            parser: vt100::Parser::new(rows, columns, 0),
            master: terminal.master,
            before,
        }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("typed");
        self.keys.flush().expect("typed");
    }

    fn waits_for(&mut self, words: &[&str]) -> String {
        wait_for(&mut self.parser, &self.bytes, words);
        self.parser.screen().contents()
    }

    /// Checks that it exits and the terminal is restored.
    fn leaves(mut self, keys: &str) {
        self.types(keys);
        assert!(self.child.wait().expect("it ends").success());
        assert_eq!(modes(self.master.as_ref()), self.before);
    }
}

#[test]
fn it_follows_what_others_write_and_gives_the_terminal_back() {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why do they dance?"]);
    forum(&home, &["post", "Ants", "Who leads them?"]);
    let mut screen = Screen::open(&home, 90, 20);
    screen.waits_for(&["forum main", "› Ants", "Bees", "Who leads them?"]);
    screen.types("\x1b[B");
    screen.waits_for(&["› Bees", "Why do they dance?"]);
    forum(&home, &["reply", "1", "To point the way.", "--as", "ada"]);
    screen.waits_for(&["To point the way.", "■ ada"]);
    forum(&home, &["reply", "2", "Nobody does."]);
    screen.waits_for(&["Ants", "1 new"]);
    screen.leaves("q");
}

#[test]
fn a_person_reads_searches_writes_and_decides_on_every_screen() {
    for (columns, rows) in [(60, 15), (80, 24), (200, 50)] {
        let home = house(&json!({}), &[]);
        forum(
            &home,
            &["post", "Bees", "Why do they dance?", "--as", "ada"],
        );
        let mut screen = Screen::open(&home, columns, rows);
        screen.waits_for(&[
            "1 thread · 1 post · you: king (owner)",
            "Why do they dance?",
        ]);
        // A reply of two lines, seen by another process.
        screen.types("rTo point the way.\x0aReally.\r");
        screen.waits_for(&["post 2 is written", "Really."]);
        let read = forum(&home, &["read", "1"]).out;
        assert!(read.contains("  To point the way.\n  Really.\n"), "{read}");
        // A new thread.
        screen.types("wAnts\rWho leads them?\r");
        screen.waits_for(&["thread 2 is open", "› Ants"]);
        // A search, and opening the post found.
        screen.types("/really\r");
        screen.waits_for(&["› king: To", "#2"]);
        screen.types("\r");
        // The list of hits shows their text, too.
        screen.waits_for(&["king #2 "]);
        // Editing a post.
        screen.types("e\x15Nobody knows.\r");
        screen.waits_for(&["post 2 is changed", "(edited)"]);
        // A motion, and a veto.
        screen.types("2");
        screen.waits_for(&["no motions"]);
        screen.types("wset skip_probability 0.1\rwe miss too much\r");
        screen.waits_for(&["motion 1 is open", "1 Set skip"]);
        screen.types("xtoo dear\r");
        screen.waits_for(&["motion 1 is refused", "vetoed"]);
        // A refusal says why, and the input is kept.
        screen.types("wset skip_probability 7\rmore\r");
        screen.waits_for(&["`skip_probability` must be", "> more"]);
        screen.types("\x03\x03");
        screen.types("4");
        screen.waits_for(&["fairness over 0 cycles"]);
        screen.types("5");
        screen.waits_for(&["No cycle is running"]);
        screen.types("?");
        screen.waits_for(&["Up Down, k j"]);
        screen.types("q");
        screen.leaves("q");
    }
}

#[test]
fn two_people_write_at_once_and_both_see_both() {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why do they dance?"]);
    let mut one = Screen::open(&home, 80, 24);
    let mut two = Screen::open(&home, 80, 24);
    for screen in [&mut one, &mut two] {
        screen.waits_for(&["Why do they dance?"]);
        screen.types("rI begin");
        screen.waits_for(&["> I begin"]);
    }
    for (screen, end) in [(&mut one, ", says one"), (&mut two, ", says two")] {
        screen.types(end);
        screen.types("\r");
    }
    for screen in [&mut one, &mut two] {
        screen.waits_for(&["I begin, says one", "I begin, says two", "3 posts"]);
    }
    one.leaves("q");
    two.leaves("\x03");
}
