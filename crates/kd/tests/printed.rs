//! What commands print: Markdown documents in pipes and files, and lists that fit a narrow terminal.

use crate::support;

use pulldown_cmark::{Event, Options, Parser, Tag};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use support::pty::on_terminal;
use support::{Home, Said, git};

/// An answer whose headings skip levels and begin at any.
const ANSWER: &str = "#### Deep\n\ntext\n\n# Top\n\n### Below\n\nend";

fn council() -> Home {
    let reply = |answer: &str| {
        let reply = json!({
            "reason": "it is", "answer": answer, "confidence": 0.8, "choice": "A",
            "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
            "ranking": ["A", "B"], "recommendation": ANSWER, "consensus": "All like it.",
            "support": "Reasons.", "dissent": "none", "cites": ["A"],
            "findings": [], "votes": [], "pairs": [],
        });
        let usage = json!({"finish": {"usage": {"input_tokens": 10, "output_tokens": 5}}});
        json!({"runs": [[{"text": reply.to_string()}, usage]]})
    };
    let plain = json!({"runs": [[{"text": ANSWER}]]});
    Home::scripted(&[
        ("ann", reply("yes")),
        ("bob", reply("no")),
        ("cyd", reply("yes")),
        ("max", plain),
    ])
}

/// Asserts that a document has one title, the first heading, and that no heading skips a level.
fn is_document(name: &str, text: &str) {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES);
    let levels: Vec<usize> = parser
        .filter_map(|event| match event {
            Event::Start(Tag::Heading { level, .. }) => Some(level as usize),
            _ => None,
        })
        .collect();
    assert_eq!(levels.first(), Some(&1), "{name}: {levels:?}\n{text}");
    let titles = levels.iter().filter(|level| **level == 1).count();
    assert_eq!(titles, 1, "{name}: {levels:?}\n{text}");
    let skips = levels.windows(2).any(|pair| pair[1] > pair[0] + 1);
    assert!(!skips, "{name}: {levels:?}\n{text}");
}

/// Runs the program with a text on stdin.
fn piped(home: &Home, args: &[&str], text: &str) -> Said {
    let mut command = home.kd(args);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("written");
    drop(stdin);
    Said::of(child.wait_with_output().expect("it ends"))
}

#[test]
fn every_document_has_one_title_and_skips_no_level() {
    let home = council();
    let mut documents: Vec<(String, String)> = Vec::new();
    let mut add = |args: &[&str], said: Said| {
        let failed = said.code.is_none_or(|code| !matches!(code, 0 | 7));
        assert!(!failed, "{args:?}: {}{}", said.out, said.err);
        let written = args.iter().find(|arg| arg.ends_with(".md"));
        let text = match written {
            Some(file) => fs::read_to_string(home.work().join(file)).expect("written"),
            None => said.out.clone(),
        };
        documents.push((args.join(" "), text));
        said.out
    };
    for args in [
        &["ask", "-m", "max,ann", "Which one?"][..],
        &["ask", "-m", "max", "# Which\n\n### one?"],
        &["ask", "-m", "max", "Which one?", "-o", "ask.md"],
        &["think", "--fast", "max", "--rigorous", "max", "Which one?"],
        &["think", "-m", "max,max", "Which one?", "-o", "think.md"],
    ] {
        add(args, home.run(args));
        for again in [&["export"][..], &["last"], &["show", "--council"]] {
            add(again, home.run(again));
        }
    }
    add(
        &["ask"],
        home.run(&["ask", "-q", "-c", "-m", "max", "And then?"]),
    );
    let out = add(&["show"], home.run(&["show", "--all"]));
    assert!(out.starts_with("# Which one?\n\n## "), "{out}");
    assert!(out.contains("\n## king\n"), "{out}");
    let args = ["ask", "-m", "max", "Safe?"];
    let out = add(&args, piped(&home, &args, "# a\n### b\n+// x\n"));
    assert_eq!(
        out.matches("Safe?").count(),
        1,
        "the title stands once: {out}"
    );
    assert!(out.contains("```\n# a\n### b\n+// x\n```"), "{out}");
    let question = "Is it safe to use SQLite here?";
    let ask = ["deliberate", "-m", "ann,bob,cyd", "--seed", "3", question];
    let out = add(&ask, home.run(&ask));
    assert_eq!(out.matches(question).count(), 1, "{out}");
    assert!(out.starts_with(&format!("# {question}\n\n## ")), "{out}");
    for part in [
        "\n## The vote\n\n```text\n",
        "**Recommendation",
        "\n---\n\n",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let quiet = home.run(&[&ask[..], &["-q"]].concat());
    is_document("quiet", &quiet.out);
    assert_eq!(quiet.err, "");
    for file in ["-o", "--export"] {
        let args = [&ask[..], &[file, "d.md"]].concat();
        add(&args, home.run(&args));
    }
    for args in [&["why", "--export", "md"][..], &["export"]] {
        add(args, home.run(args));
    }
    let plain = home.run(&[&ask[..], &["--plain"]].concat());
    assert!(!plain.out.contains("## The vote"), "{}", plain.out);
    let chat = piped(&home, &["chat", "--plain", "--new", "-m", "max"], "Hello\n");
    assert_eq!(chat.code, Some(0), "{}{}", chat.out, chat.err);
    add(&["export"], home.run(&["export"]));

    git(&home, &["init", "-q"]);
    fs::write(home.work().join("a.rs"), "fn a() {}\n").expect("written");
    git(&home, &["add", "a.rs"]);
    git(&home, &["commit", "-qm", "one"]);
    fs::write(home.work().join("a.rs"), "fn b() {}\n").expect("written");
    let review = ["review", "-m", "ann,bob", "--format", "markdown"];
    add(&review, home.run(&review));
    for (name, text) in &documents {
        is_document(name, text);
    }
    assert!(documents.len() > 15, "{}", documents.len());
}

/// Commands with lists and tables, in the prepared home.
const LISTS: &[&[&str]] = &[
    &["doctor"],
    &["cost"],
    &["cost", "--by", "model"],
    &["prices", "claude-sonnet"],
    &["model", "list"],
    &[
        "deliberate",
        "--dry-run",
        "Should a small team start with SQLite or PostgreSQL?",
    ],
    &["batch", "list"],
    &["batch", "status"],
    &["memory", "show"],
    &["fsck"],
    &["marks"],
    &["list"],
    &["status"],
    &["show"],
    &["why"],
    &["eval", "--replay", "few.csv"],
    &["eval", "--list"],
    &["vote", "tally", "-r", "irv", "polls.jsonl"],
    &["vote", "rules", "schulze"],
    &["config", "path"],
    &["config", "check"],
    &["forum", "read"],
    &["forum", "read", "1"],
    &["forum", "search", "dance"],
    &["forum", "members"],
    &["forum", "list"],
    &["forum", "rules"],
    &["forum", "log"],
    &["forum", "motions"],
    &["forum", "agents"],
    &["trust", "--list"],
    &["help", "exit-codes"],
    &["exit-codes"],
];

fn lists() -> Home {
    let home = council();
    let run = |args: &[&str]| {
        let said = home.run(args);
        assert!(matches!(said.code, Some(0 | 7)), "{args:?}: {}", said.err);
    };
    let long =
        "Should a small team with one server and two people start with SQLite or PostgreSQL?";
    run(&["deliberate", "-m", "ann,bob,cyd", "--seed", "3", long]);
    run(&["mark", "right"]);
    let question = json!({"id": "q", "question": long}).to_string();
    fs::write(home.work().join("q.jsonl"), question).expect("written");
    run(&["batch", "run", "q.jsonl", "-o", "r.jsonl", "-m", "ann,bob"]);
    let kept = json!({"preferences": {"tone": "short and plain, without any words of courtesy"},
        "sessions": [{"thread": "council-1", "question": long, "answer": long, "message": 2}]});
    fs::write(home.work().join(".kd/memory.json"), kept.to_string()).expect("written");
    let polls = json!({"candidates": ["Monday", "Tuesday", "Wednesday"],
        "ballots": [["Monday", "Tuesday"], ["Monday", "Wednesday"], ["Tuesday"], []]});
    fs::write(home.work().join("polls.jsonl"), format!("{polls}\n")).expect("written");
    let few = "id,gold,ada,bob\n1,A,A,B\n2,B,B,B\n3,A,C,A\n";
    fs::write(home.work().join("few.csv"), few).expect("written");
    for post in [["Bees", "They dance before they fly."], [long, long]] {
        run(&[&["forum", "post"][..], &post, &["--as", "eve"]].concat());
    }
    run(&["forum", "role", "king", "voter", "takes part"]);
    let propose = ["forum", "propose", "text", long, "--reason", long];
    run(&propose);
    run(&["trust", "--yes"]);
    let threads = home.work().join(".kd/branches/main/threads");
    let thread = fs::read_dir(threads).expect("read").next().expect("one");
    let stray = thread.expect("an entry").path().join("0009-eve.md");
    fs::write(stray, "no header").expect("written");
    home
}

/// Runs a command on a terminal of this width, and returns the bytes that it writes.
fn written(home: &Home, columns: u16, args: &[&str]) -> Vec<u8> {
    let mut terminal = on_terminal(home, columns, &[("TZ", "UTC")], args);
    let mut bytes = Vec::new();
    while let Ok(more) = terminal.bytes.recv() {
        bytes.extend(more);
    }
    terminal.child.wait().expect("it ends");
    bytes
}

/// Returns the lines that a command shows on a terminal of this width.
fn shown(home: &Home, columns: u16, args: &[&str]) -> String {
    String::from_utf8_lossy(&written(home, columns, args)).replace('\r', "")
}

/// Returns the words of a text without what frames them.
fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn lists_fit_a_narrow_terminal_and_break_no_word() {
    let home = lists();
    let mut wrong = Vec::new();
    for args in LISTS {
        let wide = words(&shown(&home, 400, args));
        for columns in [60, 80] {
            let narrow = shown(&home, columns, args);
            assert!(!narrow.trim().is_empty(), "{args:?}");
            for line in narrow.lines() {
                let is_one = line.trim().split(' ').count() == 1;
                let width = kd_tui::text::wrap::width(line);
                // A path or an address stays whole, so that it can be copied.
                if width > columns.into() && !is_one {
                    wrong.push(format!("{args:?} at {columns}: {width}: {line}"));
                }
            }
            // A number of seconds differs from run to run, and a clipped text ends in `…`.
            let broken = words(&narrow).into_iter().filter(|word| {
                let measured = word.starts_with(|c: char| c.is_ascii_digit());
                !wide.contains(word) && !word.ends_with('…') && !measured
            });
            for word in broken {
                wrong.push(format!("{args:?} at {columns}: the word {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the kinds of lines of a transcript: numbers are N, ids are ID, and texts of members are left out.
fn shape(text: &str) -> Vec<String> {
    let masks = [
        (r"council-[0-9a-f]{4}", "ID"),
        (r"\d[\d,]*(\.\d+)?", "N"),
        (
            r"^\S \w+( · conclusion)? · [^·]+ · N s · N tokens$",
            "MEMBER$1",
        ),
        (r"^  .*", ""),
    ];
    let masks = masks.map(|(mask, name)| (fancy_regex::Regex::new(mask).expect("a mask"), name));
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut line = line.trim_end().to_owned();
        for (mask, name) in &masks {
            line = mask.replace_all(&line, *name).into_owned();
        }
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The first transcript of the README is of the built-in model, which tests do not have: the members here have its names.
#[test]
fn the_first_transcript_has_the_shape_of_what_is_printed() {
    let answer = json!({"runs": [[{"text": "So."}, {"finish": {"usage": {"input_tokens": 10, "output_tokens": 5}}}]]});
    let names = ["pragmatist", "explorer", "skeptic"];
    let home = Home::scripted(&names.map(|name| (name, answer.clone())));
    let file = home.config_file();
    let config = fs::read_to_string(&file).expect("read");
    let config = config.replace("\"conclude\":false", "\"conclude\":true");
    fs::write(&file, config).expect("written");
    let mut screen = vt100::Parser::new(24, 100, 0);
    screen.process(&written(&home, 100, &["ask", "Which one?"]));
    let printed = shape(screen.screen().contents().trim());

    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(readme).expect("read");
    let (_, block) = readme
        .split_once("\n$ cargo run ")
        .expect("the first question");
    let block = block.split("\n```").next().expect("a block");
    let at = block.find("\n● ").expect("an answer") + 1;
    assert_eq!(shape(&block[at..]), printed);
}

/// Three members with one wrong key have one cause.
#[test]
fn equal_failures_are_told_once() {
    let fails = json!({"runs": [[{"fail": {"kind": "auth", "message": "the key is wrong"}}]]});
    let names = ["ann", "bob", "cyd"];
    let home = Home::scripted(&names.map(|name| (name, fails.clone())));
    let question = json!({"id": "q", "question": "Which?"}).to_string();
    fs::write(home.work().join("q.jsonl"), question).expect("written");
    for args in [
        &["ask", "Which?"][..],
        &["ask", "--plain", "Which?"],
        &["deliberate", "Which?"],
        &["batch", "run", "q.jsonl", "-o", "r.jsonl"],
        &["doctor"],
    ] {
        let said = home.run(args);
        let all = format!("{}{}", said.out, said.err);
        // A document names the failure of each member, and stderr tells it once.
        let is_document = matches!(args[..], ["ask", "Which?"] | ["deliberate", ..]);
        let text = if is_document { &said.err } else { &all };
        let told = text.matches("the key is wrong").count();
        assert_eq!(told, 1, "{args:?}: {all}");
        for name in names {
            assert!(all.contains(name), "{args:?}: {name}: {all}");
        }
    }
    let chat = piped(&home, &["chat", "--plain", "--new"], "Hello\n");
    let told = chat.out.matches("the key is wrong").count();
    assert_eq!(told, 1, "{}", chat.out);
    let alike = chat.out.matches("failed for the same reason").count();
    assert_eq!(alike, 2, "{}", chat.out);
}

#[test]
fn a_list_of_many_threads_shows_the_newest_and_tells_of_the_others() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    for number in 1..=3 {
        let said = home.run(&["ask", "-q", &format!("Question {number}?")]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let said = home.run(&["list", "--limit", "1"]);
    assert!(
        said.out.contains("Question 3?"),
        "the current one: {}",
        said.out
    );
    assert!(!said.out.contains("Question 1?"), "{}", said.out);
    assert_eq!(said.err, "2 older threads left out: kd list --limit 3\n");
    let json = |args: &[&str]| home.run(args).json().as_array().map(Vec::len);
    assert_eq!(json(&["list", "--json"]), Some(3), "JSON has all");
    assert_eq!(json(&["list", "--json", "-n", "2"]), Some(2));
    let all = home.run(&["list"]);
    let at = |text: &str| all.out.find(text).expect(text);
    assert!(at("Question 3?") > at("Question 1?").max(at("Question 2?")));
    assert_eq!(all.err, "");
}

#[test]
fn a_setting_of_another_file_and_an_empty_section_are_explained() {
    let home = Home::new(&json!({"council": {"timeout": 60}}));
    let said = home.run(&["config", "unset", "council.timeout"]);
    assert_ne!(said.code, Some(0));
    let help = "help: kd config unset --layer user council.timeout\n";
    assert!(said.err.ends_with(help), "{}", said.err);
    let unset = home.run(&["config", "unset", "council.speak"]);
    assert!(!unset.err.contains("--layer user"), "{}", unset.err);
    for section in ["chat.keys", "forum.remotes."] {
        let said = home.run(&["config", "show", section]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(0), ""),
            "{}",
            said.err
        );
        assert!(said.err.contains("nothing is set below"), "{}", said.err);
        assert_eq!(home.run(&["config", "show", "--json", section]).out, "[]\n");
    }
    assert_eq!(home.run(&["config", "show", "chat.kyes"]).code, Some(2));
}

/// What a member wrote before it failed does not hide why it failed.
#[test]
fn the_reason_of_a_failure_is_shown_below_what_was_written() {
    let fails = json!({"runs": [[{"text": "It is fo"}, {"fail": {"kind": "crashed", "message": "the pipe broke"}}]]});
    let home = Home::scripted(&[("ann", fails)]);
    home.run(&["ask", "What is 2 + 2?"]);
    for args in [&["show"][..], &["export"], &["export", "--format", "html"]] {
        let out = home.run(args).out;
        let (text, reason) = (out.find("It is fo"), out.find("the pipe broke"));
        assert!(text.is_some() && text < reason, "{args:?}: {out}");
    }
    let mut terminal = on_terminal(&home, 80, &[], &["show"]);
    let shown: Vec<u8> = terminal.bytes.iter().flatten().collect();
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("failed: the pipe broke"), "{shown}");
    terminal.child.wait().expect("it ends");
    let said = Said::fed(home.kd(&["chat", "--plain"]), "/quit\n");
    let told = said.out + &said.err;
    assert!(told.contains("failed: the pipe broke"), "{told}");
}

#[test]
fn a_thread_in_a_pipe_is_a_document_and_forced_colors_are_those_of_a_terminal() {
    let home = council();
    home.run(&["ask", "-m", "max", "Which one?"]);
    let out = home.run(&["show"]).out;
    assert!(out.starts_with("# Which one?\n\n## max\n"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");
    let out = home.run(&["show", "--color", "always"]).out;
    assert!(out.contains('\u{1b}') && !out.contains("# Which"), "{out}");
}

/// A document in another format than its name says helps nobody.
#[test]
fn the_name_of_a_file_says_its_format() {
    let home = council();
    let refused = |args: &[&str]| {
        let said = home.run(args);
        assert_eq!(said.code, Some(2), "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains("kd cannot write .pdf"), "{}", said.err);
        let file = args.last().expect("a file");
        assert!(!home.work().join(file).exists(), "{args:?}");
    };
    // Before anybody is asked.
    for args in [
        &["ask", "-m", "max", "Which?", "-o", "a.pdf"][..],
        &["think", "-m", "max,max", "Which?", "-o", "a.pdf"],
        &["deliberate", "-m", "ann,bob,cyd", "Which?", "-o", "a.pdf"],
        &[
            "deliberate",
            "-m",
            "ann,bob,cyd",
            "Which?",
            "--export",
            "a.pdf",
        ],
    ] {
        refused(args);
    }
    assert!(home.threads().is_empty());
    let asked = home.run(&["ask", "-q", "-m", "max", "Which?", "-o", "a.html"]);
    assert_eq!(asked.code, Some(0), "{}", asked.err);
    let page = fs::read_to_string(home.work().join("a.html")).expect("written");
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("Which?"),
        "{page}"
    );
    fs::write(home.work().join("q.txt"), "Which?\n").expect("written");
    for args in [
        &["export", "-o", "a.pdf"][..],
        &["council", "watch", "-o", "a.pdf"],
        &["seal", "-o", "a.pdf"],
        &["batch", "run", "q.txt", "-m", "max", "-o", "a.pdf"],
        &["chat", "--plain", "-m", "max"],
    ] {
        match args[0] {
            "chat" => {
                let said = Said::fed(home.kd(args), "/export a.pdf\n/quit\n");
                let told = said.out + &said.err;
                assert!(told.contains("kd cannot write .pdf"), "{told}");
            }
            _ => refused(args),
        }
    }
    for (name, begins) in [
        ("a.txt", "# Which?"),
        ("a.json", "{"),
        ("a.htm", "<!DOCTYPE"),
        ("a-1.5", "# Which?"),
    ] {
        let said = home.run(&["export", "-o", name]);
        assert_eq!(said.code, Some(0), "{name}: {}", said.err);
        let text = fs::read_to_string(home.work().join(name)).expect("written");
        assert!(text.starts_with(begins), "{name}: {text}");
    }
    // Who names the format means it.
    assert_eq!(
        home.run(&["export", "--format", "md", "-o", "b.pdf"]).code,
        Some(0)
    );
    // JSON on the screen is JSON in the file, whatever the name of the file.
    for (command, form) in [
        ("ask", "--json"),
        ("ask", "--jsonl"),
        ("deliberate", "--json"),
        ("deliberate", "--jsonl"),
    ] {
        let name = format!("{command}{form}.pdf");
        let said = home.run(&[command, "-m", "ann,bob,cyd", form, "Which?", "-o", &name]);
        let text = fs::read_to_string(home.work().join(&name)).unwrap_or_default();
        assert!(text.starts_with('{'), "{name}: {text}{}", said.err);
        assert!(!said.out.contains("kd cannot write"), "{}", said.out);
    }
}

/// A program that asks for JSON gets it, whatever is wrong.
#[test]
fn a_mistyped_command_line_is_json_too() {
    let home = Home::new(&json!({}));
    for (args, what) in [
        (&["show", "--json", "--nope"][..], "--nope"),
        (
            &["ask", "--jsonl", "Which?", "--timeout", "0"],
            "'--timeout <TIME>'",
        ),
        (&["ask", "--json", "Which?", "--new"], "`--new`"),
        (&["shwo", "--json"], "`shwo`"),
        (&["config", "shwo", "--json"], "`kd config shwo`"),
        (&["export", "--format", "json", "--nope"], "--nope"),
        (&["review", "--format=json", "--nope"], "--nope"),
        (&["mcp", "--json"], "--json"),
        (&["config", "--json"], "--json"),
    ] {
        let output = home.kd(args).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stderr.is_empty(), "{args:?}: {output:?}");
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let error = &value["error"];
        assert_eq!(
            (error["kind"].as_str(), error["code"].as_i64()),
            (Some("usage"), Some(2))
        );
        let message = error["message"].as_str().unwrap_or_default();
        assert!(
            message.contains(what) && !message.contains('\n'),
            "{args:?}: {message}"
        );
        assert!(error["hint"].is_string(), "{args:?}: {value}");
    }
    let help = home.run(&["show", "--json", "--help"]);
    assert_eq!(help.code, Some(0));
    assert!(help.out.contains("Usage: kd show"), "{}", help.out);
}

/// No request uses no tokens: a count that nobody told is unknown.
#[test]
fn tokens_that_nobody_counted_are_null() {
    let counts =
        |usage: serde_json::Value| json!({"runs": [[{"text": "Yes."}, {"finish": usage}]]});
    let told = json!({"usage": {"input_tokens": 10, "output_tokens": 5}});
    let home = Home::scripted(&[("ann", counts(json!({}))), ("bob", counts(told))]);
    let ask = |members: &str| home.run(&["ask", "--json", "-m", members, "Which?"]).json();
    let alone = ask("ann");
    assert_eq!(alone["usage"]["input_tokens"], json!(null), "{alone}");
    assert_eq!(alone["usage"]["output_tokens"], json!(null), "{alone}");
    let both = ask("ann,bob");
    assert_eq!(both["usage"]["input_tokens"], json!(10), "{both}");
    assert_eq!(both["usage"]["certainty"], json!("at_least"), "{both}");
}

#[test]
fn an_address_of_the_environment_is_a_setting_with_its_origin() {
    let home = Home::new(&json!({}));
    let show = |args: &[&str], address: &str| {
        let mut kd = home.kd(&[&["config", "show", "providers", "--origin"], args].concat());
        kd.env("OPENAI_API_KEY", "sk-never-shown");
        Said::of(
            kd.env("OPENAI_BASE_URL", address)
                .output()
                .expect("it runs"),
        )
    };
    let said = show(&[], "http://127.0.0.1:9/v1");
    let line = "providers.openai.base_url  \"http://127.0.0.1:9/v1\"  (OPENAI_BASE_URL)\n";
    assert_eq!(said.out, line, "{}", said.err);
    let row = &show(&["--json"], "http://127.0.0.1:9/v1").json()[0];
    assert_eq!(row["origin"]["source"], "OPENAI_BASE_URL", "{row}");
    let secret = show(&[], "http://ada:hunter2@127.0.0.1:9/v1");
    assert!(!secret.out.contains("hunter2"), "{}", secret.out);
}
