//! Records of somebody else, and marks that cannot be read.

use super::promises::cut;
use super::support::{Home, Said, git};
use super::{asked, home, marks_like, ok, votes};
use kd_eval::marks::Mark;
use kd_sql::marks::Marks;
use kd_store::user_dirs::UserDirs;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

const WHY: &str = "its members may be named by somebody else's file";

fn refused(said: &Said, part: &str) {
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
    for part in [part, WHY, "asks your own members"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

fn name(thread: &Path) -> String {
    let name = thread.file_name().expect("a name");
    name.to_string_lossy().into_owned()
}

#[test]
fn verdicts_of_an_import_and_of_its_forks_are_not_proposed_and_not_marked() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    let next = || home.run(&["marks", "next", "--json"]).json()["verdicts"].clone();
    assert_eq!(next().as_array().map(Vec::len), Some(1));
    let id = name(&home.threads()[0]);
    ok(&home.run(&["seal", &id, "-o", "sealed.json"]));
    let made = home.run(&["import", "--again", "sealed.json", "--json"]);
    let made = made.json();
    let imported = made["thread_id"].as_str().or(made["id"].as_str());
    let imported = imported.unwrap_or_else(|| panic!("an id: {made}"));
    let forked = home.run(&["fork", imported, "--json"]).json();
    assert_eq!(forked["fork"]["foreign"], true);
    let again = home.run(&["fork", "--json"]).json();
    assert_eq!(again["fork"]["of"], forked["thread_id"]);
    assert_eq!(next()[0]["thread"], json!(id));
    assert_eq!(next().as_array().map(Vec::len), Some(1));
    let mark = |id: &str| home.run(&["mark", id, "right"]);
    refused(&mark(imported), "was imported; nothing was marked");
    for fork in [&forked, &again] {
        let fork = fork["thread_id"].as_str().expect("an id");
        refused(&mark(fork), "is a fork of a thread that may be");
    }
    let gold = json!({"thread": imported, "gold": "391"}).to_string();
    fs::write(home.work().join("gold.jsonl"), gold).expect("written");
    let said = home.run(&["mark", "--gold", "gold.jsonl"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("was imported"), "{}", said.out);
    assert_eq!(ok(&home.run(&["marks", "export"])), "");
}

#[test]
fn verdicts_in_threads_that_the_user_commits_are_marked_and_those_of_a_clone_are_not() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    let own = home.threads().remove(0);
    let id = name(&own);
    let log = own.join(".kd-events.jsonl");
    git(&home, &["init", "-q"]);
    git(&home, &["add", "-f", &log.to_string_lossy()]);
    let next = home.run(&["marks", "next", "--json"]).json();
    assert_eq!(next["verdicts"][0]["thread"], json!(id));
    assert!(ok(&home.run(&["mark", &id, "right"])).contains("is right"));
    // Another folder with the same files, as of a clone.
    let clone = home.path().join("clone");
    let mut cp = Command::new("cp");
    let copied = cp.arg("-R").arg(home.work()).arg(&clone).status();
    assert!(copied.expect("copied").success());
    for tracked in [true, false] {
        if !tracked {
            fs::remove_dir_all(clone.join(".git")).expect("removed");
        }
        let mut kd = home.kd(&["mark", &id, "wrong"]);
        kd.current_dir(&clone);
        let part = match tracked {
            true => "is tracked by git or belongs to another user",
            false => "kd did not see the verdict of",
        };
        refused(&Said::fed(kd, ""), part);
        // A fork of it is no less somebody else's.
        let run = |line: &[&str]| {
            let mut kd = home.kd(line);
            kd.current_dir(&clone);
            Said::fed(kd, "")
        };
        let forked = run(&["fork", &id, "--json"]).json();
        assert_eq!(forked["fork"]["foreign"], true, "{forked}");
        let fork = forked["thread_id"].as_str().expect("an id");
        refused(
            &run(&["mark", fork, "right"]),
            "is a fork of a thread that may be",
        );
        let shown = run(&["council", "show", fork]);
        assert!(
            ok(&shown).contains("; may be somebody else's"),
            "{}",
            shown.out
        );
    }
    // Nor is a record marked that somebody changed: another model would earn the mark.
    let text = fs::read_to_string(&log).expect("read");
    fs::write(&log, text.replace("ann", "eve")).expect("written");
    refused(
        &home.run(&["mark", &id, "wrong"]),
        "differs from what kd saw",
    );
    fs::write(&log, text).expect("written");
    let said = home.run(&["mark", &id, "wrong"]);
    assert!(ok(&said).contains("is wrong (was right)"), "{}", said.out);
}

#[test]
fn a_verdict_whose_answers_come_from_a_record_is_nobodys() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    // Without the note of the first time, having opened the thread proves nothing.
    cut(&home);
    let projects = home.path().join(".local/state/kd/projects");
    for project in fs::read_dir(projects).expect("read") {
        let notes = project.expect("a folder").path().join("verdicts.jsonl");
        fs::remove_file(notes).expect("the note of a verdict");
    }
    ok(&home.run(&["deliberate", "--resume", "-q"]));
    refused(&home.run(&["mark", "right"]), "fall here");
}

#[test]
fn a_torn_note_costs_no_other() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    let projects = home.path().join(".local/state/kd/projects");
    for project in fs::read_dir(projects).expect("read") {
        let notes = project.expect("a folder").path().join("verdicts.jsonl");
        let mut text = fs::read_to_string(&notes).expect("notes");
        text.push_str("{\"thread\":\"coun");
        fs::write(&notes, text).expect("written");
    }
    ok(&asked(&home, &["-q"]));
    assert!(ok(&home.run(&["mark", "right"])).contains("is right"));
}

#[test]
fn marks_of_other_projects_and_of_threads_that_are_gone_are_forgotten_one_by_one() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    let own = home.run(&["marks", "export"]).out;
    let own: Value = serde_json::from_str(&own).expect("one mark");
    let mark = |project: &str, thread: &str| {
        let mut mark = own.clone();
        mark["project"] = json!(project);
        mark["thread"] = json!(thread);
        mark.to_string()
    };
    let (app, copy) = (
        "app-0123456789abcdef0123456789abcdef",
        "app-89abcdef0123456789abcdef01234567",
    );
    let here = own["project"].as_str().expect("a project");
    let lines = [
        mark(app, "council-1111"),
        mark(app, "council-1122"),
        mark(copy, "council-1111"),
        mark(here, "council-gone"),
    ];
    fs::write(home.work().join("m.jsonl"), lines.join("\n")).expect("written");
    ok(&home.run(&["marks", "import", "m.jsonl"]));
    let said = home.run(&["marks", "forget", "1122"]);
    assert_eq!(said.code, Some(2), "{}", said.out);
    assert!(
        said.err
            .contains("council-1122 has no marks in this project")
            && said
                .err
                .contains("`kd marks forget 1122 --project app-01234567`"),
        "{}",
        said.err
    );
    for (line, part) in [
        (["11", "--project", "app-01234567"], "could be several"),
        (["1111", "--project", "app"], "could be several threads"),
        (["1111", "--project", "web"], "has marks in a project web"),
    ] {
        let said = home.run(&[&["marks", "forget"][..], &line].concat());
        assert_eq!(said.code, Some(2), "{line:?}: {}", said.out);
        assert!(said.err.contains(part), "{line:?}: {}", said.err);
    }
    for line in [
        &["1122", "--project", "app-01234567"][..],
        &["council-1111", "--project", copy],
        &["gone"],
    ] {
        let said = home.run(&[&["marks", "forget"][..], line].concat());
        assert_eq!(ok(&said), "forgot 1 mark\n", "{line:?}");
    }
    let left = home.run(&["marks", "--json"]).json();
    let left: Vec<(&str, &str)> = (left["marks"].as_array().expect("marks").iter())
        .filter_map(|mark| Some((mark["project"].as_str()?, mark["thread"].as_str()?)))
        .collect();
    let own_thread = own["thread"].as_str().expect("a thread");
    assert_eq!(left, [(here, own_thread), (app, "council-1111")]);
}

#[test]
fn marks_that_no_import_would_take_are_not_exported_and_named() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    let mut future: Value =
        serde_json::from_str(&home.run(&["marks", "export"]).out).expect("one mark");
    future["thread"] = json!("council-later");
    future["at"] = json!("9000-01-01T00:00:00Z");
    fs::write(home.work().join("m.jsonl"), future.to_string()).expect("written");
    let mut kd = home.kd(&["marks", "import", "m.jsonl"]);
    kd.env("KD_NOW", "2026-12-24T09:00:00Z");
    assert_eq!(ok(&Said::fed(kd, "")), "imported 1 mark\n");
    let all = home.run(&["marks", "export"]).out;
    assert!(
        all.contains("\"at\":\"2026-12-24T09:00:00Z\"") && !all.contains("9000"),
        "{all}"
    );
    // A mark of an earlier version of kd, without members.
    let dirs = UserDirs::from_env(&|name| (name == "HOME").then(|| home.path().into()));
    let mut bad: Mark = serde_json::from_value(future).expect("a mark");
    bad.members.clear();
    bad.thread = "council-empty".into();
    Marks::open(&dirs).expect("open").add(&bad).expect("kept");
    let said = home.run(&["marks", "export"]);
    assert_eq!((said.code, &said.out), (Some(5), &all), "{}", said.err);
    assert!(
        said.err
            .contains("the mark of council-empty #5 was passed over: it must have from 1 to"),
        "{}",
        said.err
    );
    fs::write(home.work().join("all.jsonl"), &all).expect("written");
    ok(&home.run(&["marks", "forget", "--all", "--yes"]));
    assert_eq!(
        ok(&home.run(&["marks", "import", "all.jsonl"])),
        "imported 2 marks\n"
    );
}

#[test]
fn a_verdict_of_300_kilobytes_is_marked() {
    let long = format!("[\"{}\"]", "a long answer ".repeat(22_000));
    let home = Home::scripted(&[("ann", votes(&long)), ("bob", votes(&long))]);
    let line = [
        "deliberate",
        "-q",
        "--protocol",
        "vote",
        "--answer",
        "json",
        "Which?",
    ];
    ok(&home.run(&line));
    assert!(ok(&home.run(&["mark", "right"])).contains("is right; you have 1 mark"));
    let line = home.run(&["marks", "export"]).out;
    assert!(
        line.len() < 2000 && line.contains("bytes, sha256 "),
        "{line}"
    );
}

#[test]
fn marks_that_cannot_be_read_are_passed_over_and_named() {
    let home = home();
    let lines = marks_like(&home, 3, |_| false);
    fs::write(home.work().join("marks.jsonl"), &lines).expect("written");
    ok(&home.run(&["marks", "import", "marks.jsonl"]));
    let db = home.path().join(".local/share/kd/marks.db");
    let mut bytes = fs::read(&db).expect("read");
    // Of the same length, so that only the text of this mark is spoilt.
    let (good, bad) = (br#""thread":"council-1""#, br#""thread":xcouncil-1""#);
    let at = bytes.windows(good.len()).position(|part| part == good);
    let at = at.expect("the text of the mark");
    bytes[at..at + good.len()].copy_from_slice(bad);
    fs::write(&db, bytes).expect("written");
    for (line, shown) in [
        (&["marks"][..], "council-2"),
        (&["marks", "--json"], "council-2"),
        (&["marks", "export"], "council-2"),
    ] {
        let said = home.run(line);
        assert_eq!(said.code, Some(5), "{line:?}: {}{}", said.out, said.err);
        assert!(said.out.contains(shown), "{line:?}: {}", said.out);
        assert!(!said.out.contains("council-1"), "{line:?}: {}", said.out);
        assert!(
            said.err.contains("of marks.db was passed over") && said.err.contains("marks export"),
            "{line:?}: {}",
            said.err
        );
    }
    let said = home.run(&["mark", "right"]);
    assert!(ok(&said).ends_with("you have 4 marks\n"), "{}", said.out);
    let said = home.run(&["marks", "forget", "--all", "--yes"]);
    assert_eq!(ok(&said), "forgot 4 marks\n");
    assert!(ok(&home.run(&["marks"])).contains("no marks yet"));
}
