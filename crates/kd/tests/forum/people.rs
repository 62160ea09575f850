//! Users of the forum: from an empty folder to a cycle that was stopped, resumed and audited; motions; exporting and
//! importing the store.

use super::support::{Home, Said};
use super::{forum, house, quick, script, scripted, store};
use kd_core::config::forum::Settings;
use kd_forum::MAIN;
use kd_forum::account::Proof;
use kd_forum::cards::{Candidate, Cards};
use kd_forum::cycle::draw;
use kd_forum::logline::{LogEvent, LogLine};
use kd_forum::words::Outcome;
use kd_sql::forum::{Caller, ForumStore, NewPost, Place};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

#[test]
fn from_an_empty_folder_to_threads_that_can_be_found() {
    let home = house(&json!({}), &[]);
    let none = forum(&home, &["run-once"]);
    assert_eq!(none.code, Some(3), "{}", none.err);
    assert!(none.err.contains("kd forum agent new"), "{}", none.err);
    let made = forum(
        &home,
        &["agent", "new", "ada", "--prompt", "You love bees."],
    );
    assert_eq!(made.code, Some(0), "{}", made.err);
    let twice = forum(&home, &["agent", "new", "ada", "--prompt", "x"]);
    assert!(twice.err.contains("already exists"), "{}", twice.err);
    let listed = forum(&home, &["agents"]);
    assert!(listed.out.starts_with("ada"), "{}", listed.out);
    assert_eq!(listed.err, "");
    let pasted = [
        "agent",
        "new",
        "cy",
        "--backend",
        "kd forum post \"Bees\"",
        "--prompt",
        "x",
    ];
    let pasted = forum(&home, &pasted);
    assert_eq!(pasted.code, Some(2), "{}", pasted.err);
    assert!(
        pasted.err.contains("is neither a backend nor a provider"),
        "{}",
        pasted.err
    );
    let cy = home.work().join(".kd/forum/agents/cy.yaml");
    assert!(!cy.exists());
    std::fs::write(&cy, "name: cy\nsystem_prompt: x\nbackend: mainframe\n").expect("written");
    let listed = forum(&home, &["agents"]);
    assert!(
        listed
            .err
            .contains("cy cannot take turns: `mainframe` is neither"),
        "{}",
        listed.err
    );
    std::fs::remove_file(cy).expect("removed");
    std::fs::write(
        home.work().join(".kd/forum/agents/bad.yaml"),
        "name: bad\nsystem_prompt: x\npreferences:\n  skip_probability: 7\n",
    )
    .expect("written");
    let bad = forum(&home, &["agents"]);
    assert!(
        bad.err.contains("bad.yaml:4:") && bad.err.contains("from 0 to 1"),
        "{}",
        bad.err
    );

    assert_eq!(
        forum(&home, &["post", "Bees", "Why do they \u{1b}[31mdance?"]).out,
        "thread 1\n"
    );
    assert_eq!(
        forum(&home, &["reply", "1", "To point the way.", "--quote", "1"]).out,
        "post 2 in thread 1\n"
    );
    let read = forum(&home, &["read", "1"]).out;
    assert!(
        read.contains("> #1 king: Why do they dance?") && !read.contains('\u{1b}'),
        "{read}"
    );
    let found = forum(&home, &["search", "POINT"]).out;
    assert!(found.contains("To point the way."), "{found}");
    assert_eq!(forum(&home, &["search", "wasps"]).out, "nothing found\n");
    // No one can post as the forum itself, or under an invalid name.
    for name in ["forum", "a b", "\u{1b}[2J"] {
        let forged = forum(&home, &["reply", "1", "x", "--as", name]);
        assert!(forged.code != Some(0), "{name:?}: {}", forged.out);
    }
    let wrong = forum(&home, &["reply", "7", "x"]);
    assert!(
        wrong.code != Some(0) && wrong.err.contains("thread 7"),
        "{}",
        wrong.err
    );
}

/// Waits for a line that contains this text.
pub(super) fn hear(lines: &mut impl BufRead, words: &str) {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(
            lines.read_line(&mut line).expect("text") > 0,
            "`{words}` never came"
        );
        if line.contains(words) {
            return;
        }
    }
}

#[test]
fn ctrl_c_stops_a_cycle_and_the_next_call_goes_on_with_it() {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why?"]);
    let reply = json!({"tool": "reply_to_thread", "thread_id": 1, "body": "So."});
    let finish = json!({"tool": "finish", "did": "reply_to_thread"});
    scripted(&home, "ada", &[reply.clone(), finish.clone()]);
    script(
        &home,
        "bob",
        &json!({"runs": [[{"text": reply.to_string()}], ["hang"]]}),
    );
    scripted(&home, "cyd", &[reply, finish]);
    let mut child = quick(&home, &["run-once", "--scheduler", "fixed"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = Pid::from_child(&child);
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut errors = BufReader::new(child.stderr.take().expect("piped"));
    hear(&mut lines, "Starting run for agent: bob");
    // The post exists before its agent is stopped: the first post, ada's, and this one.
    let mut beside = store(&home);
    while beside.thread(1, 0, 9).unwrap().1.len() < 3 {
        std::thread::yield_now();
    }
    kill_process(pid, Signal::INT).expect("it lives");
    hear(&mut errors, "Ctrl+C again stops it now");
    kill_process(pid, Signal::INT).expect("it lives");
    hear(&mut lines, "Cycle 1 stopped: no turn yet: ['cyd']");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest}");

    let resumed = forum(&home, &["run-once", "--scheduler", "fixed"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(
        resumed
            .out
            .contains("Resuming cycle 1: no turn yet: ['cyd']"),
        "{}",
        resumed.out
    );
    let runs: Vec<(String, Outcome)> = store(&home)
        .runs(MAIN, 9)
        .unwrap()
        .into_iter()
        .rev()
        .map(|run| (run.agent, run.outcome))
        .collect();
    let wanted = [
        ("ada", Outcome::Acted),
        ("bob", Outcome::Interrupted),
        ("cyd", Outcome::Acted),
    ];
    assert_eq!(
        runs,
        wanted.map(|(name, outcome)| (name.to_owned(), outcome))
    );
    assert_eq!(
        store(&home).thread(1, 0, 9).unwrap().1.len(),
        4,
        "what bob posted stays"
    );
    let audit = forum(&home, &["audit", "1"]);
    assert!(
        audit.code == Some(0) && audit.out.contains("identical"),
        "{}",
        audit.out
    );
}

/// Creates three agents who agree on a motion.
fn agreed() -> (Home, Said) {
    let home = house(&json!({}), &[]);
    let motion = json!({"tool": "propose", "kind": "set", "key": "skip_probability", "value": "0.1", "title": "Sit out less", "reason": "we miss too much"});
    let vote = json!({"tool": "vote", "motion_id": 1, "choice": "yes", "reason": "yes"});
    let finish = |did: &str| json!({"tool": "finish", "did": did});
    scripted(&home, "ada", &[motion, vote.clone(), finish("vote")]);
    scripted(&home, "bob", &[vote.clone(), finish("vote")]);
    scripted(&home, "cyd", &[vote, finish("vote")]);
    // A motion of the first cycle is open for votes until the end of the second.
    let args = [
        "run-cycle",
        "--cycles",
        "2",
        "--scheduler",
        "fixed",
        "--set",
        "voting_cycles=1",
    ];
    let ran = forum(&home, &args);
    (home, ran)
}

#[test]
fn what_agents_decide_waits_for_a_person_and_can_be_refused() {
    let (home, ran) = agreed();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("Motion 1: passed"), "{}", ran.out);
    let passed = forum(&home, &["motions", "1"]).out;
    assert!(
        passed.contains("passed") && passed.contains("yes      bob"),
        "{passed}"
    );
    let confirmed = forum(&home, &["motions", "1", "--confirm"]).out;
    assert!(confirmed.contains("in_force"), "{confirmed}");
    // It is in force, and documented in the forum with its reason.
    let thread = forum(&home, &["read", "1"]).out;
    assert!(
        thread.contains("we miss too much") && thread.contains("In force:"),
        "{thread}"
    );
    let agents = Said::of(home.kd(&["forum", "agents"]).output().expect("it runs"));
    assert!(agents.out.contains("sits out 10 %"), "{}", agents.out);

    let (home, _) = agreed();
    let vetoed = forum(&home, &["motions", "1", "--veto", "too dear"]).out;
    assert!(
        vetoed.contains("vetoed") && vetoed.contains("too dear"),
        "{vetoed}"
    );
    let late = forum(&home, &["motions", "1", "--confirm"]);
    assert!(late.code != Some(0), "{}", late.out);
    let agents = Said::of(home.kd(&["forum", "agents"]).output().expect("it runs"));
    assert!(agents.out.contains("sits out 20 %"), "{}", agents.out);
}

#[test]
fn a_store_goes_out_as_lines_and_comes_back_the_same() {
    let (home, _) = agreed();
    forum(&home, &["motions", "1", "--confirm"]);
    let lines = forum(&home, &["export"]).out;
    let other = house(&json!({}), &[]);
    let file = other.path().join("forum.jsonl");
    std::fs::write(&file, &lines).expect("written");
    let path = file.to_str().expect("text");
    let done = forum(&other, &["import", path, "--settings"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(forum(&other, &["export"]).out, lines);
    let closed = house(&json!({}), &[]);
    let left = forum(&closed, &["import", path]);
    let told = "left out: motion \"Sit out less\" (in_force), skip_probability = 0.1, ";
    assert!(left.err.contains(told), "{}", left.err);
    assert_eq!(
        forum(&other, &["read", "1"]).out,
        forum(&home, &["read", "1"]).out
    );
    std::fs::write(&file, format!("{lines}{{\"record\": \"po")).expect("written");
    let empty = house(&json!({}), &[]);
    let torn = forum(&empty, &["import", file.to_str().expect("text")]);
    assert!(torn.code != Some(0), "{}", torn.out);
    assert_eq!(
        forum(&empty, &["read", "--json"]).out,
        "[]\n",
        "all of it or nothing"
    );
}

#[test]
fn a_study_on_the_virtual_clock_has_its_table() {
    let home = house(&json!({}), &[]);
    let args = [
        "forum",
        "run-cycle",
        "--virtual",
        "--cycles",
        "600",
        "--agents",
        "4",
        "--seed",
        "11",
        "--json",
    ];
    let study = |scheduler: &str| {
        let all: Vec<&str> = args
            .iter()
            .copied()
            .chain(["--scheduler", scheduler])
            .collect();
        home.run(&all)
    };
    let fair = study("williams");
    assert_eq!(fair.code, Some(0), "{}", fair.err);
    assert_eq!(
        study("williams").out,
        fair.out,
        "the same seed, the same life"
    );
    let table = fair.json()["fairness"].clone();
    assert_eq!(table["cycles"], 600);
    let fixed = study("fixed");
    assert_eq!(
        fixed.code,
        Some(1),
        "it fails, and says so by its exit code"
    );
    let rows = fixed.json()["fairness"]["rows"].clone();
    let failed: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["pass"] == false)
        .filter_map(|row| row["key"].as_str())
        .collect();
    assert!(
        failed.contains(&"mean_place") && failed.contains(&"neighbors"),
        "{failed:?}"
    );
}

/// Adds a store made by another user: an election in each of two forums, and an unfinished cycle.
fn plant(home: &Home) {
    let place = Place::File(home.work().join(".kd/forum.db"));
    let mut planted = ForumStore::open(&place, None).unwrap();
    let (settings, now) = (Settings::default(), jiff::Timestamp::now());
    for (motion, forum) in [(1, MAIN), (2, "side")] {
        let mallory = Caller::new("mallory", forum).unwrap();
        let mallory = mallory.proven(Proof::Persona);
        let wants = json!({"kind": "set", "key": "max_tool_calls", "value": "500", "title": "more", "reason": "more"});
        let vote = json!({"motion_id": motion, "choice": "yes"});
        for (tool, arguments) in [("propose", wants), ("vote", vote)] {
            let done = planted.call(&mallory, &settings, tool, &arguments, now);
            assert_eq!(done.unwrap()["success"], true);
        }
        planted.decide_motions(forum, 9, &settings, now).unwrap();
        planted
            .confirm_motion(motion, "king", &settings, now)
            .unwrap();
    }
    let cards = Cards::new(&settings, 1, 0, vec![Candidate::named("mallory")]);
    planted
        .begin_cycle(MAIN, &cards, &draw(&cards), now)
        .unwrap();
}

#[test]
fn a_planted_forum_raises_no_limit_and_seats_nobody() {
    let home = house(&json!({}), &[]);
    plant(&home);
    scripted(
        &home,
        "ada",
        &[json!({"tool": "skip", "arguments": {"reason": "rest"}})],
    );
    let held = "held back: max_tool_calls = 500 elected in a forum that your kd did not make";
    let ran = forum(&home, &["run-once"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(held), "{}", ran.err);
    assert!(
        ran.out.contains("ada") && !ran.out.contains("mallory"),
        "{}",
        ran.out
    );
    // Running in it does not make it the user's own.
    let again = forum(&home, &["read"]);
    assert!(again.err.contains(held), "{}", again.err);
    // Accepting the store lets every forum in it hold elections, so all are shown.
    let shown = home.run(&["trust"]);
    for line in [
        "  forum.max_tool_calls = 500\n",
        "  forum.max_tool_calls = 500 (in side)\n",
    ] {
        assert!(shown.out.contains(line), "{line} in {}", shown.out);
    }
    assert!(shown.code != Some(0) && forum(&home, &["read"]).err.contains(held));
    let trusted = home.run(&["trust", "--yes"]);
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
    assert_eq!(forum(&home, &["read"]).err, "");
    assert_eq!(
        store(&home)
            .settings(MAIN, &Settings::default())
            .unwrap()
            .max_tool_calls,
        500
    );
}

#[test]
fn elections_in_the_users_own_forum_count() {
    let home = house(&json!({}), &[]);
    assert_eq!(forum(&home, &["post", "Bees", "Why?"]).code, Some(0));
    plant(&home);
    let read = forum(&home, &["read"]);
    assert_eq!(read.err, "", "the user's kd made it");
    let elected = store(&home).settings(MAIN, &Settings::default());
    assert_eq!(elected.unwrap().max_tool_calls, 500);
}

#[test]
fn lists_say_what_they_leave_out() {
    let home = house(&json!({}), &[]);
    let mut store = store(&home);
    for number in 0..205 {
        let post = NewPost {
            author: "ada",
            body: "the same words",
            ..NewPost::default()
        };
        let title = format!("thread {number}");
        store
            .create_thread(MAIN, &title, &post, jiff::Timestamp::UNIX_EPOCH)
            .unwrap();
    }
    let said = |args: &[&str]| {
        let said = forum(&home, args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        (said.out.lines().count(), said.err)
    };
    let cut = "200 of 205 threads are shown; `kd forum read -n 205` lists all";
    assert_eq!(said(&["read"]), (200, format!("{cut}\n")));
    assert_eq!(said(&["read", "-n", "205"]), (205, String::new()));
    let (lines, told) = said(&["search", "same"]);
    assert_eq!(lines, 100);
    assert!(told.contains("only the newest 100 are shown"), "{told}");
    assert_eq!(said(&["search", "same", "-n", "300"]), (205, String::new()));
    for number in 0..4 {
        forum(&home, &["reply", "1", &format!("reply {number}")]);
    }
    let (_, told) = said(&["read", "1", "-n", "2"]);
    assert!(told.starts_with("2 of 5 posts are shown;"), "{told}");
    // The JSON of a truncated list is still complete.
    let read = forum(&home, &["read", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&read.out).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 200);
    assert!(read.err.contains(cut), "{}", read.err);
}

#[test]
fn records_are_complete_for_programs_and_say_what_they_leave_out_for_people() {
    let home = house(&json!({}), &[]);
    let mut store = store(&home);
    let now = jiff::Timestamp::UNIX_EPOCH;
    for seed in 0..55 {
        let cards = Cards::new(
            &Settings::default(),
            seed,
            seed,
            vec![Candidate::named("ada")],
        );
        let cycle = store.begin_cycle(MAIN, &cards, &draw(&cards), now).unwrap();
        store.end_cycle(cycle.id, 1, now).unwrap();
        let event = LogEvent::CycleComplete { cycle: 1 };
        let forum = MAIN.to_owned();
        store
            .log(&LogLine {
                at: now,
                forum,
                event,
            })
            .unwrap();
    }
    let said = |args: &[&str]| {
        let said = forum(&home, args);
        (said.out.lines().count(), said.err)
    };
    assert_eq!(said(&["audit", "--json"]), (56, String::new()));
    let audit = forum(&home, &["audit"]);
    let (lines, told) = (audit.out.lines(), audit.err);
    assert_eq!(lines.filter(|line| line.starts_with("cycle ")).count(), 50);
    let cut = "the newest 50 of 55 cycles are listed, and all are checked; `--json` lists all\n";
    assert_eq!(told, cut);
    assert_eq!(said(&["log", "--jsonl"]), (55, String::new()));
    let cut = "50 of 55 lines are shown; `kd forum log -n 55` prints all\n";
    assert_eq!(said(&["log"]), (50, cut.to_owned()));
    let cut = cut.replace("50 of", "7 of");
    assert_eq!(said(&["log", "--jsonl", "-n", "7"]), (7, cut));
}

#[test]
fn an_export_is_private_and_says_what_it_replaces_and_an_empty_file_is_no_backup() {
    use std::os::unix::fs::PermissionsExt;
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why do they dance?"]);
    let file = home.work().join("forum.jsonl");
    for end in ["forum.jsonl\n", "forum.jsonl, replaced\n"] {
        let said = forum(&home, &["export", "forum.jsonl"]);
        assert!(said.err.ends_with(end), "{}", said.err);
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let none = forum(&home, &["export", "nosuch/forum.jsonl"]);
    assert_eq!(none.code, Some(2), "{}", none.err);
    assert!(none.err.contains("no folder nosuch"), "{}", none.err);
    std::fs::write(&file, "").unwrap();
    let empty = forum(&home, &["import", "forum.jsonl"]);
    assert_eq!(empty.code, Some(2), "{}", empty.out);
    assert!(empty.err.contains("forum.jsonl is empty"), "{}", empty.err);
    // Nobody reads the output.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let cut = quick(&home, &["export"]).stdout(writer).output().unwrap();
    let err = String::from_utf8_lossy(&cut.stderr);
    assert!(
        !err.contains("a link") && !err.contains("Broken pipe"),
        "{err}"
    );
}

#[test]
fn an_import_of_what_is_there_is_refused() {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why do they dance?"]);
    let file = home.work().join("forum.jsonl");
    let file = file.to_str().unwrap();
    assert_eq!(forum(&home, &["export", file]).code, Some(0));
    let twice = forum(&home, &["import", file]);
    assert_eq!(twice.code, Some(1), "{}", twice.out);
    let why = "\"Bees\" is in the forum already, as thread 1";
    assert!(
        twice.err.contains(why) && twice.err.contains("--again"),
        "{}",
        twice.err
    );
    assert_eq!(forum(&home, &["read"]).out.lines().count(), 1);
    assert_eq!(forum(&home, &["import", file, "--again"]).code, Some(0));
    assert_eq!(forum(&home, &["read"]).out.lines().count(), 2);
}

#[test]
fn the_hint_of_a_wrong_setting_names_a_command_that_works() {
    let home = house(&json!({}), &[]);
    let wrong = forum(&home, &["run-once", "--set", "skip_probability=7"]);
    let hint = "kd config show forum";
    assert!(wrong.err.contains(hint), "{}", wrong.err);
    let shown = Said::of(home.kd(&["config", "show", "forum"]).output().unwrap());
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    for parameter in kd_core::config::forum::PARAMETERS {
        let line = format!("forum.{} ", parameter.key);
        assert!(shown.out.contains(&line), "{line}: {}", shown.out);
    }
    assert!(shown.out.lines().all(|line| line.starts_with("forum.")));
    let none = Said::of(home.kd(&["config", "show", "for"]).output().unwrap());
    assert_eq!(none.code, Some(2), "{}", none.out);
}
