//! What is said where nothing can be promised, and how `kd why` fits a terminal.

use super::support::Home;
use super::support::pty::on_terminal;
use super::{asked, home, ok, votes};
use std::fs;

#[test]
fn a_required_promise_without_readable_marks_is_an_error_before_anything_is_asked() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    let threads = home.threads().len();
    fs::write(
        home.path().join(".local/share/kd/marks.db"),
        "not a database",
    )
    .expect("written");
    for more in [&["-q"][..], &[], &["--json"]] {
        let said = asked(&home, &[&["--require", "0.95"], more].concat());
        assert_eq!(said.code, Some(11), "{}{}", said.out, said.err);
        let told = format!("{}{}", said.out, said.err);
        for part in [
            "your marks cannot be read, so nothing can be promised",
            "marks.db",
            "`kd marks` tests the file",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    assert_eq!(home.threads().len(), threads);
    // Without it, the question is asked all the same.
    ok(&asked(&home, &["-q"]));
}

#[test]
fn why_breaks_no_word_on_a_terminal() {
    let path = format!("/srv/{}config.json", "a-long-folder/".repeat(8));
    let home = Home::scripted(&[("ann", votes(&path)), ("bob", votes(&path))]);
    ok(&home.run(&[
        "deliberate",
        "-q",
        "--protocol",
        "vote",
        "--answer",
        "exact",
        "Where?",
    ]));
    let on = on_terminal(&home, 80, &[], &["why"]);
    let bytes: Vec<u8> = on.bytes.iter().flatten().collect();
    let seen = String::from_utf8_lossy(&bytes);
    assert!(seen.contains(&path[1..]), "{seen}");
    let short = seen.lines().filter(|line| !line.contains("srv/"));
    assert!(short.clone().count() > 3);
    assert!(
        short
            .clone()
            .all(|line| line.trim_end().chars().count() < 80),
        "{seen}"
    );
}
