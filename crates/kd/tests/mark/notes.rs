//! The files that say which verdicts are the user's own, and what was marked: not used if others can write them.

use super::support::{Home, Said};
use super::{asked, home, ok};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the notes of the verdicts of the home's project.
fn notes(home: &Home) -> PathBuf {
    let projects = home.path().join(".local/state/kd/projects");
    let mut found = fs::read_dir(projects).expect("projects");
    let project = found.next().expect("one").expect("a folder").path();
    project.join("verdicts.jsonl")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
}

const UNNOTED: &str = "this verdict was not noted as your own, so it cannot be marked later";

fn is_told_once(said: &Said, why: &str) {
    let all: String = ok(said).chars().chain(said.err.chars()).collect();
    // Lines are wrapped on a terminal only.
    assert_eq!(all.matches(UNNOTED).count(), 1, "{all}");
    assert!(all.contains(why), "{why}: {all}");
}

#[test]
fn a_verdict_that_cannot_be_noted_is_said_when_it_falls_and_so_is_the_file() {
    let home = home();
    let quiet = asked(&home, &[]);
    assert!(!quiet.err.contains("not noted"), "{}", quiet.err);
    let file = notes(&home);
    for mode in [0o620, 0o602, 0o666] {
        set_mode(&file, mode);
        is_told_once(
            &asked(&home, &[]),
            "is not used: others can write it; `kd mark right` names the file",
        );
        for line in [&["mark", "right"][..], &["marks", "next"], &["fork"]] {
            let said = home.run(line);
            assert_ne!(said.code, Some(0), "{line:?}: {}", said.out);
            let path = file.to_string_lossy();
            assert!(
                said.err.contains(&format!("{path} is not used"))
                    && said.err.contains(&format!("`chmod go-w {path}`")),
                "{line:?}: {}",
                said.err
            );
        }
    }
    set_mode(&file, 0o600);
    // The verdict that fell before can still be marked; those that were not noted cannot.
    let first = home.run(&["marks", "next", "--json"]).json();
    let first = first["verdicts"][0]["thread"].as_str().expect("a thread");
    assert!(ok(&home.run(&["mark", first, "right"])).contains("is right"));
    let said = home.run(&["mark", "right"]);
    assert_eq!(said.code, Some(2), "{}", said.out);
    assert!(said.err.contains("fall here"), "{}", said.err);
    // What is not a file cannot be written either.
    fs::remove_file(&file).expect("removed");
    fs::create_dir(&file).expect("a folder");
    is_told_once(
        &asked(&home, &[]),
        "verdicts.jsonl in your state folder: is a directory",
    );
}

#[test]
fn marks_that_others_can_write_are_not_used() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    let db = home.path().join(".local/share/kd/marks.db");
    set_mode(&db, 0o666);
    for line in [
        &["mark", "wrong"][..],
        &["marks"],
        &["marks", "export"],
        &["marks", "forget", "--all", "--yes"],
    ] {
        let said = home.run(line);
        assert_ne!(said.code, Some(0), "{line:?}: {}", said.out);
        assert!(
            said.err.contains("is not used: others can write it")
                && said.err.contains("`chmod go-w "),
            "{line:?}: {}",
            said.err
        );
    }
    let said = asked(&home, &[]);
    let all = ok(&said).to_owned() + &said.err;
    assert!(
        all.contains("your marks cannot be read") && !all.contains("promise: verdicts"),
        "{all}"
    );
    set_mode(&db, 0o644);
    assert!(ok(&home.run(&["marks"])).contains("right"));
    let mode = fs::metadata(&db).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "closed to others who could read it");
}

#[test]
fn names_of_a_file_of_marks_show_all_that_they_are_and_any_date_is_read() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    let own = home.run(&["marks", "export"]).out;
    let own: Value = serde_json::from_str(&own).expect("one mark");
    let import = |change: &dyn Fn(&mut Value)| {
        let mut mark = own.clone();
        mark["thread"] = json!("council-1111");
        let good = mark.to_string();
        mark["thread"] = json!("council-2222");
        change(&mut mark);
        fs::write(home.work().join("m.jsonl"), format!("{good}\n{mark}\n")).expect("written");
        let mut kd = home.kd(&["marks", "import", "m.jsonl"]);
        kd.env("KD_NOW", "2026-12-24T09:00:00Z");
        Said::fed(kd, "")
    };
    for name in [
        "an\u{200b}n",
        "ann\u{202e}",
        "\u{2066}ann",
        "an\u{2028}n",
        "ann ",
    ] {
        for place in ["name", "model"] {
            let said = import(&|mark| mark["members"][0][place] = json!(name));
            assert_eq!(said.code, Some(2), "{name:?}: {}", said.out);
            assert!(
                said.err
                    .contains("line 2: a name is empty, begins or ends with a space, has characters that show nothing"),
                "{}",
                said.err
            );
        }
    }
    let said = import(&|mark| mark["at"] = json!("tomorrow"));
    assert_eq!(said.code, Some(2), "{}", said.out);
    assert!(said.err.contains("line 2: "), "{}", said.err);
    assert_eq!(home.run(&["marks", "export"]).out.lines().count(), 1);
    // No time zone has all of the last day.
    let said = import(&|mark| mark["at"] = json!("9999-12-31T23:59:59-12:00"));
    assert_eq!(ok(&said), "imported 2 marks\n");
    let all = home.run(&["marks", "export"]).out;
    assert!(all.contains("\"at\":\"2026-12-24T09:00:00Z\""), "{all}");
}
