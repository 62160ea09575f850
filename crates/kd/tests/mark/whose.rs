//! Records of somebody else, and marks that cannot be read.

use super::support::git;
use super::{asked, home, marks_like, ok};
use serde_json::json;
use std::fs;

const WHY: &str = "its members are named by somebody else's file";

#[test]
fn verdicts_of_a_clone_or_an_import_are_not_proposed_and_not_marked() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    let next = || home.run(&["marks", "next", "--json"]).json()["verdicts"].clone();
    assert_eq!(next().as_array().map(Vec::len), Some(1));
    let own = home.threads().remove(0);
    let id = own.file_name().expect("a name").to_string_lossy();
    ok(&home.run(&["seal", &id, "-o", "sealed.json"]));
    let made = home.run(&["import", "--again", "sealed.json", "--json"]);
    let made = made.json();
    let imported = made["thread_id"].as_str().or(made["id"].as_str());
    let imported = imported.unwrap_or_else(|| panic!("an id: {made}"));
    assert_eq!(next()[0]["thread"], json!(id));
    assert_eq!(next().as_array().map(Vec::len), Some(1));
    let refused = |id: &str, part: &str| {
        let said = home.run(&["mark", id, "right"]);
        assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
        for part in [part, WHY, "asks your own members"] {
            assert!(said.err.contains(part), "{part}: {}", said.err);
        }
    };
    refused(imported, "was imported; nothing was marked");
    let gold = json!({"thread": imported, "gold": "391"}).to_string();
    fs::write(home.work().join("gold.jsonl"), gold).expect("written");
    let said = home.run(&["mark", "--gold", "gold.jsonl"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("was imported"), "{}", said.out);
    // As in a clone: git tracks the record.
    git(&home, &["init", "-q"]);
    let log = own.join(".kd-events.jsonl");
    git(&home, &["add", "-f", &log.to_string_lossy()]);
    assert_eq!(next(), json!([]));
    refused(&id, "is tracked by git");
    assert_eq!(ok(&home.run(&["marks", "export"])), "");
    git(&home, &["rm", "-q", "--cached", &log.to_string_lossy()]);
    assert!(ok(&home.run(&["mark", &id, "right"])).contains("is right"));
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
