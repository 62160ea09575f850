//! `kd mark`, `kd marks` and promises, through the real program with scripted members.

use crate::support;

mod gold;
mod notes;
mod promises;
mod shown;
mod whose;

use serde_json::{Value, json};
use std::fs;
use support::{Home, Said};

fn votes(answer: &str) -> Value {
    let reply = json!({"answer": answer, "confidence": 0.9, "reason": "r", "choice": answer, "recommendation": "Do it.", "cites": ["A"]});
    json!({"runs": [[{"text": reply.to_string()}, {"finish": {}}]]})
}

/// Ann is the last to answer: a vote that is certain would stop cyd otherwise, and marks need the answers of all.
fn home() -> Home {
    let mut last = votes("391");
    let replies = last["runs"][0].as_array_mut().expect("a run");
    replies.insert(0, json!({"sleep_ms": 300}));
    Home::scripted(&[("ann", last), ("bob", votes("391")), ("cyd", votes("381"))])
}

const QUESTION: &str = "What is 17*23?";

fn asked(home: &Home, more: &[&str]) -> Said {
    let line = [
        &[
            "deliberate",
            "-m",
            "ann,bob,cyd",
            "--protocol",
            "vote",
            "--rule",
            "plurality",
            "--answer",
            "number",
            "--seed",
            "3",
        ],
        more,
        &[QUESTION],
    ];
    home.run(&line.concat())
}

fn ok(said: &Said) -> &str {
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    &said.out
}

/// Adds marks for verdicts like those of [`asked`], one per day.
fn marks_like(home: &Home, n: usize, wrong: impl Fn(usize) -> bool) -> String {
    ok(&asked(home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    let text = home.run(&["marks", "export"]).out;
    let one: Value = serde_json::from_str(&text).expect("one mark");
    ok(&home.run(&["marks", "forget", "--all", "--yes"]));
    let lines = (0..n).map(|at| {
        let mut mark = one.clone();
        mark["thread"] = json!(format!("council-{at}"));
        mark["at"] = json!(format!(
            "2026-{:02}-{:02}T12:00:00Z",
            1 + at / 28,
            1 + at % 28
        ));
        // Ann and bob gave the winning answer, cyd the other one.
        mark["credit"] = json!(f64::from(u8::from(!wrong(at))));
        mark["answer"] = json!(if wrong(at) { "381" } else { "391" });
        format!("{mark}\n")
    });
    lines.collect()
}

#[test]
fn a_member_that_was_stopped_because_the_vote_was_certain_is_not_marked() {
    let mut slow = votes("381");
    slow["runs"][0]
        .as_array_mut()
        .expect("a run")
        .insert(0, json!({"sleep_ms": 60_000}));
    let home = Home::scripted(&[("ann", votes("391")), ("bob", votes("391")), ("cyd", slow)]);
    // Three members give opinions, and two of them agree.
    let line = [
        "deliberate",
        "-m",
        "ann,bob,cyd",
        "--preset",
        "standard",
        "--protocol",
        "vote",
        "--answer",
        "number",
        "-q",
        QUESTION,
    ];
    ok(&home.run(&line));
    ok(&home.run(&["mark", "right"]));
    let mark: Value = serde_json::from_str(&home.run(&["marks", "export"]).out).expect("a mark");
    let members: Vec<&str> = mark["members"]
        .as_array()
        .expect("members")
        .iter()
        .filter_map(|m| m["name"].as_str())
        .collect();
    assert!(
        members.contains(&"ann") && !members.iter().any(|name| name.starts_with("cyd")),
        "{members:?}"
    );
}

#[test]
fn verdicts_are_marked_corrected_listed_and_forgotten() {
    let home = home();
    let none = home.run(&["marks"]);
    assert!(ok(&none).contains("no marks yet"), "{}", none.out);
    ok(&asked(&home, &["-q"]));
    let said = home.run(&["mark", "right"]);
    assert!(
        ok(&said).ends_with("is right; you have 1 mark\n"),
        "{}",
        said.out
    );
    for (word, expected) in [
        ("wrong", "is wrong (was right)"),
        ("391", "is right (was wrong)"),
        ("381", "is wrong (was right)"),
        ("RIGHT", "is right (was wrong)"),
    ] {
        let said = home.run(&["mark", word]);
        assert!(ok(&said).contains(expected), "{word}: {}", said.out);
    }
    let id = home.threads()[0]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let short = id.trim_start_matches("council-");
    assert!(ok(&home.run(&["mark", short, "381"])).contains("is wrong"));
    let listed = home.run(&["marks", "--json"]).json();
    let mark = &listed["marks"][0];
    assert_eq!(
        (&listed["v"], &mark["v"], &mark["kind"]),
        (&json!(1), &json!(1), &json!("number"))
    );
    assert_eq!(
        (&mark["winner"], &mark["answer"]),
        (&json!("391"), &json!("381"))
    );
    assert_eq!(mark["members"].as_array().map(Vec::len), Some(3));
    assert_eq!(mark["members"][2]["backs"], false);
    let listed = home.run(&["marks"]);
    assert!(
        ok(&listed).contains("number  wrong, it was 381  391"),
        "{}",
        listed.out
    );
    // Not in the project.
    assert!(!home.work().join(".kd/marks.db").exists());
    assert!(home.path().join(".local/share/kd/marks.db").exists());
    assert_eq!(
        ok(&home.run(&["marks", "forget", short])),
        "forgot 1 mark\n"
    );
    assert_eq!(
        ok(&home.run(&["marks", "forget", "--all", "--yes"])),
        "forgot 0 marks\n"
    );
}

#[test]
fn a_mark_in_a_fork_is_the_forks_and_is_forgotten_with_it() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    let source = home.threads().remove(0);
    let forked = home.run(&["fork", "--json"]).json();
    let id = forked["thread_id"].as_str().expect("an id").to_owned();
    let said = home.run(&["mark", "wrong"]);
    assert!(ok(&said).starts_with(&format!("{id} #")), "{}", said.out);
    let marks = |home: &Home| home.run(&["marks", "--json"]).json()["marks"].clone();
    let marked = marks(&home);
    let name = source.file_name().expect("a name").to_string_lossy();
    assert_eq!(
        (&marked[0]["thread"], &marked[0]["credit"]),
        (&json!(name), &json!(1.0))
    );
    assert_eq!(
        (&marked[1]["thread"], &marked[1]["credit"]),
        (&json!(id), &json!(0.0))
    );
    ok(&home.run(&["forget", &id, "--yes"]));
    let left = marks(&home);
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
}

#[test]
fn a_word_that_could_mean_two_things_marks_nothing() {
    let home = Home::scripted(&[("ann", votes("left")), ("bob", votes("left"))]);
    let ask = |answer: &str| {
        let line = [
            "deliberate",
            "-q",
            "--protocol",
            "vote",
            "--answer",
            answer,
            "Where to?",
        ];
        ok(&home.run(&line));
    };
    ask("choice:left,right");
    for word in ["right", "Right"] {
        let said = home.run(&["mark", word]);
        assert_eq!(said.code, Some(2), "{}", said.out);
        assert!(said.err.contains("is a mark and an option"), "{}", said.err);
    }
    for (word, expected) in [
        ("1.0", "is right"),
        ("answer: right", "is wrong"),
        ("left", "is right"),
        ("wrong", "is wrong"),
    ] {
        let said = home.run(&["mark", word]);
        assert!(ok(&said).contains(expected), "{word}: {}", said.out);
    }
    // Any word can be an exact answer, but not a thread's ID.
    ask("exact");
    let before = home.run(&["marks", "export"]).out;
    for thread in home.threads() {
        let id = thread.file_name().expect("a name").to_string_lossy();
        for word in [&*id, id.trim_start_matches("council-")] {
            let said = home.run(&["mark", word]);
            assert_eq!(said.code, Some(2), "{}", said.out);
            assert!(said.err.contains("its mark is missing"), "{}", said.err);
            let swapped = home.run(&["mark", "right", word]);
            assert_eq!(swapped.code, Some(2), "{}", swapped.out);
            let advice = format!("help: `kd mark {word} right`");
            assert!(swapped.err.contains(&advice), "{}", swapped.err);
        }
    }
    assert_eq!(home.run(&["marks", "export"]).out, before);
}

#[test]
fn commands_of_the_user_mark_and_nonsense_is_refused() {
    let home = home();
    let nothing = home.run(&["mark", "right"]);
    assert_eq!(nothing.code, Some(1), "{}", nothing.err);
    ok(&asked(&home, &["-q"]));
    for (line, code, part) in [
        (&["mark", "--by", "exit 0"][..], 0, "is right"),
        (&["mark", "--by", "test -e nowhere"], 0, "is wrong"),
        (
            &["mark", "--by", "no-such-command-here"],
            2,
            "nothing was marked",
        ),
        (&["mark"], 2, "a mark is missing"),
        (
            &["mark", "perhaps so"],
            2,
            "is not a mark of a number question",
        ),
        (&["mark", "zzzz", "right"], 1, "zzzz"),
        (
            &["mark", "a", "right", "--by", "true"],
            2,
            "replaces the mark",
        ),
    ] {
        let said = home.run(line);
        assert_eq!(said.code, Some(code), "{line:?}: {}{}", said.out, said.err);
        assert!(
            format!("{}{}", said.out, said.err).contains(part),
            "{line:?}: {}{}",
            said.out,
            said.err
        );
    }
    let said = home.run(&["mark", "--by", "echo noise", "--json"]);
    assert_eq!(said.json()["mark"]["by"], "command");
    assert!(said.err.contains("noise"), "{}", said.err);
    ok(&home.run(&["mark", "--by", "false"]));
    let file = home.work().join("marks.jsonl");
    let good = home.run(&["marks", "export"]).out;
    for (text, part) in [
        (format!("{good}not json\n"), "line 2"),
        (good.replace("\"v\":1", "\"v\":2"), "line 1 has version 2"),
        (
            good.replace("\"credit\":0.0", "\"credit\":7.0"),
            "a share is not from 0 to 1",
        ),
    ] {
        fs::write(&file, text).expect("written");
        let said = home.run(&["marks", "import", "marks.jsonl"]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(
            said.err.contains(part) && said.err.contains("nothing was changed"),
            "{}",
            said.err
        );
    }
    assert_eq!(home.run(&["marks", "export"]).out, good);
}

#[test]
fn a_verdict_is_marked_in_a_chat() {
    let home = home();
    let input = "/mark right\n/deliberate What is 17*23?\n/mark right\n/mark 381\n/mark perhaps\n/mark\n/quit\n";
    let said = Said::fed(home.kd(&["chat", "--plain", "--new"]), input);
    let out = ok(&said);
    for part in [
        "the thread has no deliberation, so there is nothing to mark",
        "is right; you have 1 mark",
        "is wrong (was right); you have 1 mark",
        "is not a mark of",
        "write `right`, `wrong`, or the right answer",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn an_empty_command_marks_nothing() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "wrong"]));
    let before = home.run(&["marks", "export"]).out;
    for command in ["", " ", "\t\n"] {
        let said = home.run(&["mark", "--by", command]);
        assert_eq!(said.code, Some(2), "{command:?}: {}{}", said.out, said.err);
        assert!(
            said.err.contains("the command of `--by` is empty"),
            "{}",
            said.err
        );
    }
    assert_eq!(home.run(&["marks", "export"]).out, before);
}

#[test]
fn a_mark_of_another_project_names_it_and_a_wrong_clock_is_refused() {
    let home = home();
    ok(&asked(&home, &["-q"]));
    ok(&home.run(&["mark", "right"]));
    assert!(!ok(&home.run(&["marks"])).contains("in project"));
    let mut mark: Value =
        serde_json::from_str(&home.run(&["marks", "export"]).out).expect("one mark");
    mark["project"] = json!("copy-0123456789abcdef0123456789abcdef");
    fs::write(home.work().join("m.jsonl"), mark.to_string()).expect("written");
    ok(&home.run(&["marks", "import", "m.jsonl"]));
    let listed = home.run(&["marks"]);
    let there: Vec<&str> = ok(&listed).lines().collect();
    assert_eq!(there.len(), 2, "{there:?}");
    assert!(!there[0].contains("in project"), "{there:?}");
    assert!(
        there[1].ends_with("  in project copy-01234567"),
        "{there:?}"
    );
    for now in ["garbage", "2026-03-01", " "] {
        let mut kd = home.kd(&["mark", "wrong"]);
        kd.env("KD_NOW", now);
        let said = Said::fed(kd, "");
        assert_eq!(said.code, Some(2), "{now:?}: {}{}", said.out, said.err);
        assert!(
            said.err.contains("KD_NOW=2026-03-01T09:00:00Z"),
            "{}",
            said.err
        );
    }
    assert!(
        ok(&home.run(&["marks"]))
            .lines()
            .all(|line| !line.contains("wrong"))
    );
}
