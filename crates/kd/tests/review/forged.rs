//! Findings that quote what is not there, through the real program: what the tree does not confirm is in no output.

use super::{AFTER, BEFORE, LINE, home, ok, reply, write};
use crate::support::{Home, git};
use serde_json::{Value, json};

/// The fate of a finding.
enum Fate {
    /// It is reported at this file and line.
    At(&'static str, u32),
    /// It is dropped, for this reason.
    Dropped(&'static str),
}
use Fate::{At, Dropped};

/// A different claim for each case, the file, the lines and the quote of the finding, and its fate.
type Case = (&'static str, &'static str, (u32, u32), &'static str, Fate);

const GONE: &str = "does not hold the quoted code";
const OTHER: &str = "not part of the change";
const OUT: &str = "out of the reviewed tree";
const EMPTY: &str = "quotes no code";

const CASES: &[Case] = &[
    ("honest", "src/mean.rs", (2, 2), LINE, At("src/mean.rs", 2)),
    (
        "misplaced",
        "src/mean.rs",
        (77, 78),
        LINE,
        At("src/mean.rs", 2),
    ),
    (
        "endless",
        "src/mean.rs",
        (1, 4_000_000_000),
        LINE,
        At("src/mean.rs", 2),
    ),
    (
        "prefixed",
        "b/src/mean.rs",
        (2, 2),
        LINE,
        At("src/mean.rs", 2),
    ),
    (
        "numbered",
        "src/mean.rs",
        (2, 2),
        "900 | list.iter().sum::<u32>() / list.len() as u32",
        At("src/mean.rs", 2),
    ),
    (
        "fenced",
        "src/mean.rs",
        (2, 2),
        "```suggestion APPROVED\nlist.iter().sum::<u32>() / list.len() as u32\n```",
        At("src/mean.rs", 2),
    ),
    (
        "invented",
        "src/mean.rs",
        (2, 2),
        "unsafe { *pointer };",
        Dropped(GONE),
    ),
    (
        "removed",
        "src/mean.rs",
        (2, 2),
        "    if list.is_empty() {",
        Dropped(GONE),
    ),
    (
        "minus",
        "src/mean.rs",
        (2, 2),
        "-    if list.is_empty() {\n-        return 0;",
        Dropped(GONE),
    ),
    (
        "hunk",
        "src/mean.rs",
        (1, 1),
        "@@ -1,6 +1,3 @@\n fn mean(list: &[u32]) -> u32 {",
        Dropped(GONE),
    ),
    (
        "header",
        "src/mean.rs",
        (1, 1),
        "--- a/src/mean.rs\n+++ b/src/mean.rs",
        Dropped(GONE),
    ),
    (
        "joined",
        "src/mean.rs",
        (1, 3),
        "fn mean(list: &[u32]) -> u32 {\n}",
        Dropped(GONE),
    ),
    (
        "swapped",
        "src/mean.rs",
        (1, 2),
        "    list.iter().sum::<u32>() / list.len() as u32\nfn mean(list: &[u32]) -> u32 {",
        Dropped(GONE),
    ),
    ("short", "src/mean.rs", (2, 2), "u32", Dropped(GONE)),
    ("blank", "src/mean.rs", (2, 2), " \n\t\n", Dropped(EMPTY)),
    ("fences", "src/mean.rs", (2, 2), "```\n```", Dropped(EMPTY)),
    (
        "neighbour",
        "src/mean.rs",
        (1, 1),
        "let carriage = 1;",
        Dropped(GONE),
    ),
    (
        "elsewhere",
        "src/use.rs",
        (1, 1),
        "fn f() { mean(&[]); }",
        Dropped(OTHER),
    ),
    (
        "deleted",
        "src/gone.rs",
        (1, 1),
        "let deleted_line = true;",
        At("src/gone.rs", 1),
    ),
    (
        "undeleted",
        "src/gone.rs",
        (1, 1),
        "let never_there = true;",
        Dropped(GONE),
    ),
    (
        "renamed",
        "src/new_name.rs",
        (1, 1),
        "let moved_line = 1;",
        At("src/new_name.rs", 1),
    ),
    (
        "former",
        "src/old_name.rs",
        (1, 1),
        "let moved_line = 1;",
        Dropped(OTHER),
    ),
    ("binary", "data.bin", (1, 1), "binary_word", Dropped(GONE)),
    (
        "unix",
        "src/crlf.rs",
        (1, 2),
        "let carriage = 1;\nlet second = 2;",
        At("src/crlf.rs", 1),
    ),
    (
        "dos",
        "src/crlf.rs",
        (1, 2),
        "let carriage = 1;\r\nlet second = 2;\r\n",
        At("src/crlf.rs", 1),
    ),
    (
        "cyrillic",
        "src/look.rs",
        (1, 1),
        "let \u{430}dmin = check();",
        Dropped(GONE),
    ),
    (
        "fullwidth",
        "src/look.rs",
        (1, 1),
        "let admin \u{ff1d} check();",
        Dropped(GONE),
    ),
    (
        "decomposed",
        "src/look.rs",
        (2, 2),
        "let cafe\u{301} = 1;",
        Dropped(GONE),
    ),
    (
        "hidden",
        "src/look.rs",
        (1, 1),
        "let ad\u{200b}min = check();",
        At("src/look.rs", 1),
    ),
    (
        "bidi",
        "src/bidi.rs",
        (1, 1),
        "let role = \"user\u{202e} \u{2066}// admin\u{2069}\";",
        At("src/bidi.rs", 1),
    ),
    (
        "marked",
        "src/mean.rs",
        (1, 1),
        "fn mean(list: &[u32]) -> \u{202e}u32 {",
        At("src/mean.rs", 1),
    ),
    ("parent", "../src/mean.rs", (2, 2), LINE, Dropped(OUT)),
    ("inner", "src/../src/mean.rs", (2, 2), LINE, Dropped(OUT)),
    (
        "absolute",
        "/etc/passwd",
        (1, 1),
        "root:x:0:0:root:/root:/bin/sh",
        Dropped(OUT),
    ),
    (
        "homely",
        "~/.ssh/id_ed25519",
        (1, 1),
        "BEGIN PRIVATE KEY",
        Dropped(OUT),
    ),
    ("drive", "C:\\src\\mean.rs", (2, 2), LINE, Dropped(OUT)),
    ("slashed", "C:/src/mean.rs", (2, 2), LINE, Dropped(OTHER)),
    (
        "share",
        "\\\\host\\src\\mean.rs",
        (2, 2),
        LINE,
        Dropped(OUT),
    ),
    (
        "scheme",
        "file:///src/mean.rs",
        (2, 2),
        LINE,
        Dropped(OTHER),
    ),
    ("encoded", "src%2fmean.rs", (2, 2), LINE, Dropped(OTHER)),
    ("upper", "SRC/MEAN.RS", (2, 2), LINE, Dropped(OTHER)),
    ("folder", "src", (1, 1), LINE, Dropped(OTHER)),
    (
        "dashed",
        "-rf.rs",
        (1, 1),
        "let dashed_line = 1;",
        At("-rf.rs", 1),
    ),
    (
        "quoted",
        "it's \"q\".rs",
        (1, 1),
        "let quoted_line = 1;",
        At("it's \"q\".rs", 1),
    ),
    (
        "lined",
        "two\nlines.rs",
        (1, 1),
        "let lined_line = 1;",
        At("two lines.rs", 1),
    ),
    (
        "command",
        "::error::x.rs",
        (1, 1),
        "let command_line = 1;",
        At("::error::x.rs", 1),
    ),
    ("settings", ".kd/config.json", (1, 1), "{", Dropped(OTHER)),
];

/// Adds a change of every kind to the branch.
fn change(home: &Home) {
    git(home, &["checkout", "-q", "main"]);
    write(home, "src/gone.rs", "let deleted_line = true;\n");
    let long = "let moved_line = 1;\n".to_owned() + &"let same = 2;\n".repeat(9);
    write(home, "src/old_name.rs", &long);
    write(
        home,
        "src/crlf.rs",
        "let carriage = 0;\r\nlet second = 2;\r\n",
    );
    let data = home.work().join("data.bin");
    std::fs::write(&data, b"\0\x01binary_word\0").expect("written");
    git(home, &["add", "."]);
    git(home, &["commit", "-qm", "more"]);
    git(home, &["checkout", "-qB", "topic"]);
    write(home, "src/mean.rs", AFTER);
    git(home, &["rm", "-q", "src/gone.rs"]);
    git(home, &["mv", "src/old_name.rs", "src/new_name.rs"]);
    write(home, "src/new_name.rs", &(long + "let added = 3;\n"));
    write(
        home,
        "src/crlf.rs",
        "let carriage = 1;\r\nlet second = 2;\r\n",
    );
    std::fs::write(&data, b"\0\x02binary_word\0").expect("written");
    write(
        home,
        "src/look.rs",
        "let admin = check();\nlet caf\u{e9} = 1;\n",
    );
    write(
        home,
        "src/bidi.rs",
        "let role = \"user\u{202e} \u{2066}// admin\u{2069}\";\n",
    );
    for (file, word) in [
        ("-rf.rs", "dashed"),
        ("it's \"q\".rs", "quoted"),
        ("two\nlines.rs", "lined"),
        ("::error::x.rs", "command"),
    ] {
        write(home, file, &format!("let {word}_line = 1;\n"));
    }
    git(home, &["add", "."]);
    git(home, &["commit", "-qm", "all kinds"]);
    assert!(BEFORE.contains("is_empty"));
}

/// Returns a claim that shares no word with those of other cases.
fn claim(name: &str) -> String {
    format!("{name} {name}claim {name}finding")
}

#[test]
fn what_the_tree_does_not_confirm_is_in_no_output() {
    let home = home();
    change(&home);
    let all: Vec<Value> = CASES
        .iter()
        .map(|(name, file, (first, last), quote, _)| {
            json!({"file": file, "lines": {"first": first, "last": last}, "quote": quote,
                "claim": claim(name), "severity": "minor", "evidence": "none"})
        })
        .collect();
    let write_script = |name: &str, findings: &Value| {
        let script = home.path().join(format!("{name}.json"));
        std::fs::write(script, reply(findings).to_string()).expect("written");
    };
    write_script("ann", &json!(all));
    write_script("bob", &json!([]));
    write_script("cyd", &json!([]));
    let said = home.run(&["review", "main..topic", "--format", "json"]);
    ok(&said);
    let kept = said.json();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let find = |list: &str, at: &str, name: &str| {
        let all = kept["report"][list].as_array().expect("a list").clone();
        let of = |one: &Value| one.pointer(at).cloned().expect("a finding");
        let mut found = all
            .into_iter()
            .filter(|one| of(one)["claim"] == claim(name));
        let one = found.next();
        one.map(|one| {
            (
                of(&one),
                text(&one.get("why").cloned().unwrap_or(json!(""))),
            )
        })
    };
    for (name, file, _, quote, fate) in CASES {
        let reported = find("findings", "/cluster/findings/0/finding", name);
        let dropped = find("dropped", "/finding", name);
        match fate {
            At(place, line) => {
                let (finding, _) = reported.unwrap_or_else(|| panic!("{name}: {dropped:?}"));
                assert_eq!(finding["file"], *place, "{name}");
                assert_eq!(finding["lines"]["first"], *line, "{name}");
                assert!(dropped.is_none(), "{name}");
            }
            Dropped(why) => {
                let (_, said) = dropped.unwrap_or_else(|| panic!("{name}: {file} {quote}"));
                assert!(said.contains(why), "{name}: {said}");
                assert!(reported.is_none(), "{name}");
            }
        }
    }
    for format in ["terminal", "markdown", "sarif", "json", "github", "gitlab"] {
        let shown = home.run(&["review", "show", "--all", "--format", format]);
        ok(&shown);
        for (name, _, _, _, fate) in CASES {
            let is_shown = shown.out.contains(&claim(name));
            // Programs get the dropped findings too, apart from the others.
            let expected = matches!(fate, At(..)) || format == "json";
            assert_eq!(is_shown, expected, "{name} as {format}: {}", shown.out);
        }
        let odd =
            |c: char| matches!(c, '\u{1b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(!shown.out.contains(odd), "{format}: {:?}", shown.out);
        assert!(
            !shown
                .out
                .lines()
                .any(|line| line.trim().starts_with("::error"))
        );
    }
    let dropped = CASES
        .iter()
        .filter(|case| matches!(case.4, Dropped(_)))
        .count();
    let told = format!("dropped {dropped} findings of ann: not in the code");
    assert!(home.run(&["review", "show"]).out.contains(&told), "{told}");
}
