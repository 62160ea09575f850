//! Forks, through the real program with scripted members.

use crate::support;

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use support::{Home, Said};

fn script(text: &str) -> Value {
    let run = json!([{"text": text}, {"finish": {}}]);
    json!({"runs": [run, run, run, run]})
}

fn home() -> Home {
    Home::scripted(&[("ann", script("Ann says so.")), ("bob", script("Bob too."))])
}

/// Returns the names and bytes of a thread's messages.
fn messages(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("a thread")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .map(|path| {
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (name, std::fs::read(&path).expect("read"))
        })
        .collect();
    files.sort();
    files
}

/// Returns the only thread that is not among these.
fn new_of(home: &Home, known: &[std::path::PathBuf]) -> std::path::PathBuf {
    let threads = home.threads();
    let mut new = threads.into_iter().filter(|t| !known.contains(t));
    let one = new.next().expect("a new thread");
    assert_eq!(new.next(), None);
    one
}

fn id(folder: &Path) -> String {
    folder
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

#[test]
fn a_fork_goes_on_and_is_shown_below_its_source() {
    let home = home();
    assert_eq!(home.run(&["ask", "-q", "First?"]).code, Some(0));
    assert_eq!(home.run(&["ask", "-qc", "Second?"]).code, Some(0));
    let known = home.threads();
    let source = known[0].clone();
    let said = home.run(&["fork", "--before", "4"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let fork = new_of(&home, &known);
    let line = format!(
        "{}: fork of {} before message 4, with 3 messages\n",
        id(&fork),
        id(&source)
    );
    assert_eq!(said.out, line);
    assert!(said.err.contains("kd ask --continue"), "{}", said.err);
    assert_eq!(messages(&fork), messages(&source)[..3]);

    // It is the current thread, and its messages are new.
    let said = home.run(&["ask", "-qc", "Another second?"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let (forked, old) = (messages(&fork), messages(&source));
    assert_eq!((forked.len(), old.len()), (6, 6));
    assert_eq!(forked[3].0, "0004-king.md");
    assert!(String::from_utf8_lossy(&forked[3].1).contains("Another second?"));
    assert!(String::from_utf8_lossy(&old[3].1).contains("Second?"));

    let listed = home.run(&["council", "list"]).out;
    let at = |text: &str| {
        listed
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {listed}"))
    };
    assert!(
        at(&id(&source)) < at(&format!("└ {}", id(&fork))),
        "{listed}"
    );
    // On a separate line, which is as wide as the page.
    let origin = |line: &str| line.trim() == "fork before message 4";
    assert!(listed.lines().any(origin), "{listed}");
    let rows = home.run(&["council", "list", "--json"]).json();
    assert_eq!(rows[0].get("fork"), None);
    assert_eq!(rows[1]["fork"]["of"], id(&source).as_str());
    assert_eq!(rows[1]["fork"]["before"], 4);

    let shown = home.run(&["show", "--all"]).out;
    let origin = format!("fork of {} before message 4", id(&source));
    assert!(shown.contains(&origin), "{shown}");
    assert!(
        shown.contains("*message 4 · "),
        "numbers are shown: {shown}"
    );
    assert_eq!(home.run(&["show", "--json"]).json()["fork"]["messages"], 3);
    let exported = home.run(&["export"]).out;
    assert!(exported.contains("- fork of: "), "{exported}");
    let exported = home.run(&["export", "-f", "json"]).json();
    assert_eq!(exported["thread"]["fork"]["of"], id(&source).as_str());
    assert_eq!(home.run(&["fsck"]).code, Some(0));
}

#[test]
fn to_stay_keeps_the_current_thread() {
    let home = home();
    home.run(&["ask", "-q", "First?"]);
    let source = home.threads()[0].clone();
    let made = home.run(&["fork", "--stay", "--json"]).json();
    assert_eq!(made["current"], false);
    assert_eq!(made["fork"]["of"], id(&source).as_str());
    assert_ne!(made["thread_id"], id(&source).as_str());
    let shown = home.run(&["show", "--json"]).json();
    assert_eq!(shown["thread_id"], id(&source).as_str());
}

#[test]
fn errors_say_what_to_type_next() {
    let home = home();
    home.run(&["ask", "-q", "First?"]);
    for (args, what, next) in [
        (
            &["fork", "--before", "9"][..],
            "has no message 9: the last one is 3",
            "`--before 3` leaves out the last message",
        ),
        (
            &["fork", "--before", "1"],
            "comes before message 1",
            "start an empty thread",
        ),
        (
            &["fork", "--stage", "review"],
            "has no deliberation",
            "`--before N`",
        ),
        (&["fork", "council-zzzz"], "council-zzzz", "kd list"),
    ] {
        let said = home.run(args);
        assert_ne!(said.code, Some(0), "{args:?}");
        assert!(said.err.contains(what), "{args:?}: {}", said.err);
        assert!(said.err.contains(next), "{args:?}: {}", said.err);
        assert_eq!(home.threads().len(), 1, "{args:?}");
        let args = [args, &["--json"]].concat();
        let object = home.run(&args).json();
        assert!(object["error"]["hint"].is_string(), "{args:?}");
    }
}

/// A reply that fits every stage of a deliberation.
fn decides(answer: &str) -> Value {
    let reply = json!({
        "reason": format!("it is {answer}"), "answer": answer, "confidence": 0.8,
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
        "ranking": ["A", "B"], "choice": answer, "recommendation": "Do it.", "cites": ["A"],
    });
    let run = json!([{"text": reply.to_string()}, {"finish": {}}]);
    json!({"runs": [run]})
}

/// Creates a home in which ann and bob answered yes, and cyd no.
fn decided() -> Home {
    let home = Home::scripted(&[
        ("ann", decides("yes")),
        ("bob", decides("yes")),
        ("cyd", decides("no")),
    ]);
    let said = home.run(&[
        "deliberate",
        "-q",
        "-m",
        "ann,bob,cyd",
        "--protocol",
        "council",
        "--rule",
        "plurality",
        "--answer",
        "yes-no",
        "--seed",
        "3",
        "Is it safe?",
    ]);
    assert!(said.err.is_empty(), "{}", said.err);
    home
}

#[test]
fn what_would_have_been_is_told_and_asks_nobody() {
    let home = decided();
    let before = messages(&home.threads()[0]);
    // No member could answer now: the scripts are gone.
    for name in ["ann", "bob", "cyd"] {
        std::fs::remove_file(home.path().join(format!("{name}.json"))).expect("removed");
    }
    let said = home.run(&["replay", "--without", "bob"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for line in [
        "what if: without bob",
        "no model asked",
        "recorded: ",
        "would be: ",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
    assert!(said.out.contains("Counterfactual: "), "{}", said.out);
    let weighs = ["--rule", "weighted", "--weights", "cyd=5", "--seed", "9"];
    let found = home
        .run(&[&["replay", "--json"], &weighs[..]].concat())
        .json();
    assert_eq!(found["v"], 1);
    assert_eq!(found["counterfactual"], true);
    assert_eq!(found["change"]["weights"]["cyd"], 5.0);
    assert_eq!(found["stopped"], Value::Null, "{found:#}");
    assert_eq!(found["recorded"]["winner"], "yes");

    let all = home.run(&["replay", "--all-rules"]).out;
    let words: Vec<&str> = all.split_whitespace().collect();
    let words = words.join(" ");
    let cannot = all.lines().filter(|line| line.starts_with("- ")).count();
    let holds = format!(
        "of 53 rules ({cannot} cannot count these ballots, most count ballots for one answer alike)"
    );
    assert!(cannot > 0 && words.contains(&holds), "{all}");
    assert!(words.contains("yes holds under"), "{all}");
    let rows = all
        .lines()
        .take_while(|line| !line.is_empty())
        .collect::<Vec<_>>();
    let all = home.run(&["replay", "--all-rules", "--weights", "cyd=5"]);
    assert_eq!(all.code, Some(0), "among all rules is the weighted one");
    let all = all.out;
    assert!(rows.iter().all(|row| !row.starts_with(' ')), "{rows:?}");
    assert!(
        words.ends_with("changing 1 of 3 ballots elects another"),
        "{all}"
    );
    let counted = home.run(&["replay", "--all-rules", "--json"]).json();
    let rules = counted["robustness"]["rules"].as_array().expect("a table");
    assert_eq!(rules.len(), kd_vote::RULES.len());
    let same = rules.iter().filter(|r| r["same"] == true).count();
    assert_eq!(counted["robustness"]["holds"], same);
    let why = home.run(&["why"]).out;
    let told = counted["sentence"].as_str().expect("a sentence");
    assert!(why.contains(told), "{told}: {why}");

    // The plain replay still compares, and nothing was written.
    assert_eq!(home.run(&["replay"]).code, Some(0));
    assert_eq!(messages(&home.threads()[0]), before);
    for (args, what, next) in [
        (
            ["--without", "zoe"],
            "zoe is not a member",
            "its members: ann, bob, cyd",
        ),
        (
            ["--without", "ann,bob,cyd"],
            "no member would be left",
            "leave out fewer",
        ),
        (
            ["--weights", "cyd=5"],
            "plurality uses no weights",
            "add `--rule weighted`",
        ),
        (["--rule", "coin"], "no voting rule `coin`", "kd vote rules"),
        (
            ["--rule", "shulze"],
            "no voting rule `shulze`",
            "did you mean schulze?",
        ),
    ] {
        let said = home.run(&[&["replay"], &args[..]].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.err.contains(what), "{args:?}: {}", said.err);
        assert!(said.err.contains(next), "{args:?}: {}", said.err);
    }
}

#[test]
fn a_deliberation_forks_at_a_stage_with_the_records_until_then() {
    let home = decided();
    let known = home.threads();
    let said = home.run(&["fork", "--stage", "review"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("at the stage review"), "{}", said.out);
    let fork = new_of(&home, &known);
    let shared = messages(&fork);
    assert_eq!(shared.len(), 4, "the question and three opinions");
    assert_eq!(shared, messages(&known[0])[..4]);
    let why = home.run(&["why"]).out;
    assert!(why.contains("It did not conclude."), "{why}");
    let said = home.run(&["replay"]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("agree byte for byte"), "{}", said.out);
    assert!(
        said.out.contains("The record is incomplete"),
        "{}",
        said.out
    );
    let said = home.run(&["fork", "--stage", "reviews"]);
    assert!(
        said.err.contains("its stages: opinions, review"),
        "{}",
        said.err
    );
}

#[test]
fn a_fork_at_a_stage_goes_on_asking() {
    let home = decided();
    let known = home.threads();
    let said = home.run(&["deliberate", "--resume"]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(
        said.err.contains("its deliberation has ended"),
        "{}",
        said.err
    );
    assert!(said.err.contains("kd fork council-"), "{}", said.err);

    let said = home.run(&["fork", "--stage", "review"]);
    assert!(said.err.contains("kd deliberate --resume"), "{}", said.err);
    let fork = new_of(&home, &known);
    // Everybody thinks otherwise now; opinions are not asked for again.
    for name in ["ann", "bob", "cyd"] {
        let script = decides("no").to_string();
        std::fs::write(home.path().join(format!("{name}.json")), script).expect("written");
    }
    let said = home.run(&["deliberate", "--resume", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let found = said.json();
    assert_eq!(found["thread_id"], id(&fork).as_str());
    let shared = messages(&known[0]);
    assert_eq!(messages(&fork)[..4], shared[..4], "the opinions");
    assert!(messages(&fork).len() > 4);
    // One record, decided again as one.
    let said = home.run(&["replay"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("agree byte for byte"), "{}", said.out);
    let why = home.run(&["why"]).out;
    assert!(!why.contains("It did not conclude."), "{why}");
    assert_eq!(messages(&known[0]), shared, "the source is unchanged");
    // A question asked later is not part of the record.
    assert_eq!(home.run(&["ask", "-qc", "And now?"]).code, Some(0));
    let said = home.run(&["replay"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let said = home.run(&["fork", "--stage", "review", "--stay"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("kd deliberate --resume council-"),
        "{}",
        said.err
    );
}

/// The record is data: it neither starts another program nor lifts a limit.
#[test]
fn a_record_that_goes_on_decides_neither_who_answers_nor_how_much_is_spent() {
    let home = decided();
    let known = home.threads();
    assert_eq!(home.run(&["fork", "--stage", "review"]).code, Some(0));
    let fork = new_of(&home, &known);
    let log = fork.join(".kd-events.jsonl");
    let text = std::fs::read_to_string(&log).expect("a log");
    for (from, to, what, cause) in [
        (
            "\"backend\":\"scripted\"",
            "\"backend\":\"openai\"",
            "configured otherwise than recorded",
            "its backend was openai",
        ),
        ("\"agent\":\"ann\"", "\"agent\":\"zoe\"", "zoe", ""),
        (
            "\"calls\":64",
            "\"calls\":6400",
            "its plan may use 6400 calls",
            "your settings allow 64",
        ),
        (
            "\"micro_usd\":null",
            "\"micro_usd\":null,\"calls\":null",
            "",
            "",
        ),
        (
            "\"pass\":1",
            "\"pass\":2",
            "differs from what would be decided",
            "kd replay",
        ),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&log, text.replace(from, to)).expect("written");
        let said = home.run(&["deliberate", "--resume"]);
        assert_ne!(said.code, Some(0), "{from}: {}", said.out);
        assert!(
            said.err.contains(what) && said.err.contains(cause),
            "{from}: {}",
            said.err
        );
        assert_eq!(messages(&fork).len(), 4, "{from}");
    }
    // A message that the record does not know.
    std::fs::write(&log, &text).expect("written");
    let last = messages(&fork).pop().expect("the fourth").0;
    std::fs::copy(fork.join(last), fork.join("0005-cyd.md")).expect("copied");
    let said = home.run(&["deliberate", "--resume"]);
    assert!(
        said.err.contains("another question was asked after"),
        "{}",
        said.err
    );
    std::fs::remove_file(fork.join("0005-cyd.md")).expect("removed");
    // Two processes do not continue it together.
    let place = kd_store::Thread::open_folder(&fork).expect("a thread");
    let lease = kd_store::Lease::try_take(&place, "council").expect("a lock");
    let said = home.run(&["deliberate", "--resume"]);
    assert!(
        said.err.contains("another session continues"),
        "{}",
        said.err
    );
    drop(lease);
    let said = home.run(&["deliberate", "-q", "--resume", "--max-calls", "64"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
}

/// A limit of one run that cuts the rest would end the deliberation for good.
#[test]
fn a_run_whose_limits_do_not_allow_the_rest_leaves_the_deliberation_open() {
    let home = decided();
    assert_eq!(home.run(&["fork", "--stage", "review"]).code, Some(0));
    let fork = current(&home);
    let log = std::fs::read(fork.join(".kd-events.jsonl")).expect("a log");
    for (key, few, what) in [
        ("limits.calls", "1", "calls"),
        ("limits.tokens", "9", "tokens"),
    ] {
        let set = |value: &str| {
            let said = home.run(&["config", "set", "--layer", "user", key, value]);
            assert_eq!(said.code, Some(0), "{}", said.err);
        };
        set(few);
        let said = home.run(&["deliberate", "--resume"]);
        assert_ne!(said.code, Some(0), "{}", said.out);
        let cause = format!("{key} allows {few} in one run");
        assert!(said.err.contains(&cause), "{}", said.err);
        let help = format!("kd config set --layer user {key} ");
        assert!(said.err.contains(&help), "{}", said.err);
        assert!(said.err.contains(what), "{}", said.err);
        let now = std::fs::read(fork.join(".kd-events.jsonl")).expect("a log");
        assert_eq!(now, log, "nothing was recorded");
        // What the error says is enough.
        let need = said.err.split(&help).nth(1).expect("a number");
        let need = need.split('`').next().expect("a number").to_owned();
        match key {
            "limits.calls" => set(&need),
            _ => set("1000000"),
        }
    }
    let said = home.run(&["deliberate", "-q", "--resume"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(home.run(&["replay"]).code, Some(0));
}

#[test]
fn a_fork_of_an_open_deliberation_says_how_to_finish_it() {
    let home = decided();
    assert_eq!(home.run(&["fork", "--stage", "review"]).code, Some(0));
    let open = id(&current(&home));
    let said = home.run(&["fork", &open]);
    assert!(
        said.err.contains("go on:  kd deliberate --resume\n"),
        "{}",
        said.err
    );
    let said = home.run(&["fork", &open, "--stay"]);
    assert!(
        said.err.contains("kd deliberate --resume council-"),
        "{}",
        said.err
    );
    let said = home.run(&["deliberate", "--resume", "and the price?"]);
    assert_ne!(said.code, Some(0), "{}", said.out);
    assert!(
        said.err.contains("--resume takes the id of a thread"),
        "{}",
        said.err
    );
}

/// Returns the folder of the current thread.
fn current(home: &Home) -> std::path::PathBuf {
    let shown = home.run(&["show", "--json"]).json();
    let current = shown["thread_id"].as_str().expect("an id").to_owned();
    let threads = home.threads().into_iter();
    threads
        .into_iter()
        .find(|t| id(t) == current)
        .expect("a folder")
}

#[test]
fn a_tree_is_exported_as_one_document() {
    let home = home();
    home.run(&["ask", "-q", "First?"]);
    let source = home.threads()[0].clone();
    home.run(&["fork", "--before", "3"]);
    home.run(&["fork", "--before", "2"]);
    let tree = home
        .run(&["export", &id(&source), "--tree", "-f", "json"])
        .json();
    assert_eq!(tree["v"], 1);
    let threads = tree["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 3);
    assert_eq!(threads[0]["thread"]["id"], id(&source).as_str());
    assert_eq!(threads[1]["thread"]["fork"]["of"], id(&source).as_str());
    assert_eq!(
        threads[2]["thread"]["fork"]["of"],
        threads[1]["thread"]["id"]
    );
    assert_eq!(threads[2]["messages"].as_array().map(Vec::len), Some(1));
    let text = home.run(&["export", &id(&source), "--tree"]).out;
    assert_eq!(text.matches("- fork of: ").count(), 2, "{text}");
}

#[test]
fn a_chat_says_what_to_type_there_if_a_fork_is_refused() {
    let home = home();
    let said = Said::fed(home.kd(&["chat", "--plain"]), "First?\n/fork 99\n/fork 1\n").out;
    for next in ["/fork 3 leaves out", "/new starts an empty thread"] {
        assert!(said.contains(next), "{next}: {said}");
    }
    assert!(!said.contains("--before"), "{said}");
    assert_eq!(home.threads().len(), 1);
}

#[test]
fn a_chat_rewinds_into_a_fork() {
    let home = home();
    let typed = "First?\nSecond?\n/rewind\nThird?\n";
    let out = Said::fed(home.kd(&["chat", "--plain"]), typed).out;
    let threads = home.threads();
    assert_eq!(threads.len(), 2, "{out}");
    let words = |folder: &Path| -> String {
        let files = messages(folder).into_iter();
        files
            .map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    };
    let (a, b) = (words(&threads[0]), words(&threads[1]));
    let (old, new) = match a.contains("Third?") {
        true => (b, a),
        false => (a, b),
    };
    assert!(old.contains("Second?") && !old.contains("Third?"), "{old}");
    assert!(new.contains("First?") && new.contains("Third?"), "{new}");
    assert!(!new.contains("Second?"), "{new}");
    assert!(out.contains("fork of council-"), "{out}");
}

/// Creates a home in which a chat deliberated, and returns what the chat printed.
fn deliberated_in_a_chat(bob: &Value) -> (Home, Said) {
    let home = Home::scripted(&[
        ("ann", decides("yes")),
        ("bob", bob.clone()),
        ("cyd", decides("no")),
    ]);
    let typed = "Hello?\n/deliberate Is it safe? yes or no\n";
    let said = Said::fed(home.kd(&["chat", "--plain"]), typed);
    (home, said)
}

#[test]
fn a_deliberation_of_a_chat_forks_at_a_stage_and_goes_on_there_or_from_a_shell() {
    let (home, said) = deliberated_in_a_chat(&decides("yes"));
    assert!(said.out.contains("kd: counted by "), "{}", said.out);
    let known = home.threads();
    let source = id(&known[0]);
    let shared = messages(&known[0]);
    let typed = "/resume\nThanks?\n/resume\n";
    for in_chat in [false, true] {
        let threads = home.threads();
        let said = home.run(&["fork", &source, "--stage", "review"]);
        assert!(said.err.contains("kd deliberate --resume"), "{}", said.err);
        let fork = new_of(&home, &threads);
        assert!(messages(&fork).len() < shared.len());
        let out = match in_chat {
            false => home.run(&["deliberate", "--resume"]).out,
            true => Said::fed(home.kd(&["chat", "--plain"]), typed).out,
        };
        let ended = ["A majority of the council (2 of 3)"];
        let offered = [
            "kd: this thread's deliberation has not ended: /resume finishes it",
            "king | Thanks?",
            "its deliberation has ended",
        ];
        let told = ended.iter().chain(offered.iter().filter(|_| in_chat));
        for told in told {
            assert!(out.contains(told), "{told}: {out}");
        }
        assert_eq!(
            out.matches("king | Is it safe?").count(),
            usize::from(in_chat)
        );
        assert_eq!(messages(&fork)[..8], shared[..8], "the opinions");
        let said = home.run(&["replay"]);
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
        assert!(said.out.contains("agree byte for byte"), "{}", said.out);
    }
    assert_eq!(messages(&known[0]), shared, "the source is unchanged");
}

#[test]
fn a_killed_deliberation_of_a_chat_goes_on_as_one_record() {
    let home = Home::scripted(&[
        ("ann", decides("yes")),
        ("bob", json!({"runs": [["hang"]]})),
        ("cyd", decides("no")),
    ]);
    let mut command = home.kd(&["chat", "--plain"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut typed = child.stdin.take().expect("piped");
    writeln!(typed, "/deliberate Is it safe? yes or no").expect("typed");
    let opinion = support::until("two opinions", || {
        let thread = home.threads().pop()?;
        (messages(&thread).len() == 3).then_some(thread)
    });
    // While it runs, nobody else may continue it.
    let said = home.run(&["deliberate", "--resume", &id(&opinion)]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains("bob is still answering"), "{}", said.err);
    child.kill().expect("killed");
    child.wait().expect("gone");
    std::fs::write(home.path().join("bob.json"), decides("yes").to_string()).expect("written");
    let said = Said::fed(home.kd(&["chat", "--plain", &id(&opinion)]), "/resume\n");
    for told in [
        "this thread's deliberation has not ended: /resume finishes it",
        "bob: asked",
        "A majority of the council (2 of 3)",
    ] {
        assert!(said.out.contains(told), "{told}: {}", said.out);
    }
    assert!(
        !said.out.contains("ann: asked\nbob: asked\nann  | it is"),
        "{}",
        said.out
    );
    let again = home.run(&["replay", &id(&opinion)]);
    assert!(
        again.out.contains("agree byte for byte"),
        "{}{}",
        again.out,
        again.err
    );
    let why = home.run(&["why", &id(&opinion)]).out;
    assert!(why.contains("; cyd for no ("), "{why}");
}

#[test]
fn what_cannot_be_resumed_in_a_chat_says_what_to_type() {
    let home = decided();
    let source = id(&home.threads()[0]);
    assert_eq!(home.run(&["fork", "--stage", "review"]).code, Some(0));
    let typed = format!("/resume\n/thread {source}\n/resume\n/new\n/resume\n");
    let said = Said::fed(home.kd(&["chat", "--plain"]), &typed);
    for told in [
        "this thread's deliberation has not ended: kd deliberate --resume council-",
        "was begun outside of a chat; kd deliberate --resume council-",
        "its deliberation has ended; kd fork council-",
        "the thread has no deliberation; ",
    ] {
        assert!(said.out.contains(told), "{told}: {}", said.out);
    }
}

#[test]
fn a_question_asks_in_a_fork_together_with_other_options() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let says = |text: &str| json!({"runs": [[{"text": text}, {"finish": {}}]]});
    let home = Home::scripted(&[("ann", says("{\"n\": 4}"))]);
    assert_eq!(home.run(&["ask", "-q", "First?"]).code, Some(0));
    let known = home.threads();
    let before = messages(&known[0]);
    let said = home.run(&["ask", "-q", "--fork", "Second?"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let fork = new_of(&home, &known);
    assert_eq!(current(&home), fork);
    assert_eq!(messages(&known[0]), before, "the source stays");
    assert_eq!(messages(&fork)[..before.len()], before);
    assert_eq!(messages(&fork).len(), 4);

    // Of a named thread, with a file, a schema and JSON.
    let known = home.threads();
    let named = format!("--fork={}", id(&fork));
    let schema = schema.to_string();
    let with = [
        "ask",
        &named,
        "--json",
        "-o",
        "a.md",
        "--output-schema",
        &schema,
        "Third?",
    ];
    let said = home.run(&with);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let value: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(value["output"], json!({"n": 4}));
    assert!(home.work().join("a.md").exists());
    let third = new_of(&home, &known);
    assert_eq!(value["thread_id"], json!(id(&third)));

    // A debate, and a chat.
    let known = home.threads();
    let said = home.run(&[
        "think",
        "-q",
        "--fork",
        "--fast",
        "ann",
        "--rigorous",
        "ann",
        "Fourth?",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let debated = new_of(&home, &known);
    assert_eq!(
        messages(&debated)[..messages(&third).len()],
        messages(&third)
    );
    let known = home.threads();
    let said = Said::fed(home.kd(&["chat", "--fork"]), "Fifth?\n/quit\n");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("fork of"), "{}", said.err);
    assert_eq!(current(&home), new_of(&home, &known));

    // Nothing is forked if there is nothing to fork, or nobody to ask.
    let known = home.threads();
    let said = home.run(&["ask", "--fork=0000000", "Sixth?"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let now = current(&home);
    for args in [
        &["ask", "--fork", "--members", "nobody", "Sixth?"][..],
        &["chat", "--fork", "--members", "nobody"],
    ] {
        let said = Said::fed(home.kd(args), "");
        let command = args[0];
        assert_eq!(said.code, Some(2), "{command}: {}", said.err);
        assert_eq!(home.threads(), known, "{command}");
        assert_eq!(current(&home), now, "{command}");
    }
}
