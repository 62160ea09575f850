//! The reader in a real pseudo-terminal: it opens, follows what others write, and leaves the terminal as it was.

use super::support::pty;
use super::{forum, house};
use assert_cmd::cargo::cargo_bin;
use portable_pty::{CommandBuilder, native_pty_system};
use serde_json::json;
use std::io::Write;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Longer than any step takes on a busy machine; reached only when the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

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

#[test]
fn it_follows_what_others_write_and_gives_the_terminal_back() {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why do they dance?"]);
    forum(&home, &["post", "Ants", "Who leads them?"]);
    let terminal = native_pty_system()
        .openpty(pty::size(90, 20))
        .expect("a terminal");
    let before = terminal.master.get_termios().expect("modes");
    let mut command = CommandBuilder::new(cargo_bin("kd"));
    command.env_clear();
    command.env("HOME", home.path());
    command.env("TERM", "xterm-256color");
    command.env("LANG", "C.UTF-8");
    command.args(["forum", "tui"]);
    command.cwd(home.work());
    let mut child = terminal.slave.spawn_command(command).expect("it runs");
    let mut keys = terminal.master.take_writer().expect("a writer");
    let bytes = pty::listen(terminal.master.as_ref());
    let mut parser = vt100::Parser::new(20, 90, 0);
    wait_for(
        &mut parser,
        &bytes,
        &["forum main", "› Ants", "Bees", "Who leads them?"],
    );
    keys.write_all(b"\x1b[B").expect("typed");
    wait_for(&mut parser, &bytes, &["› Bees", "Why do they dance?"]);
    forum(&home, &["reply", "1", "To point the way.", "--as", "ada"]);
    wait_for(&mut parser, &bytes, &["To point the way.", "■ ada"]);
    forum(&home, &["reply", "2", "Nobody does."]);
    wait_for(&mut parser, &bytes, &["Ants", "2 new"]);
    keys.write_all(b"q").expect("typed");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(terminal.master.get_termios().expect("modes"), before);
}
