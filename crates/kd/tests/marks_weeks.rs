//! Three weeks with marks on a virtual clock: a scripted council that is asked seven questions a day, and a user who marks
//! one in four. `docs/marks.md` shows what is printed on some of these days; `BLESS=1` writes it there.

use crate::support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use support::Home;
use support::pty;

const BEGIN: &str = "<!-- three weeks: begin -->\n";
const END: &str = "<!-- three weeks: end -->\n";
const QUESTIONS_A_DAY: u32 = 7;
/// The days that are shown.
const SHOWN: [u32; 3] = [1, 7, 20];
const ASK: [&str; 6] = [
    "deliberate",
    "--protocol",
    "vote",
    "--answer",
    "number",
    "--plain",
];

struct Week {
    home: Home,
    /// The names under which threads are shown, by their real ids.
    names: BTreeMap<String, String>,
}

impl Week {
    fn new() -> Self {
        let nothing = json!({"runs": [[]]});
        let home = Home::scripted(&[
            ("ann", nothing.clone()),
            ("bob", nothing.clone()),
            ("cyd", nothing),
        ]);
        Self {
            home,
            names: BTreeMap::new(),
        }
    }

    /// Prepares what the members say to question `n`. Returns the question and its right answer.
    fn question(&self, n: u32) -> (String, u32) {
        let right = (10 + n) * (16 + n);
        let says = |member: &str, answer: u32| {
            let reply = json!({"answer": answer.to_string(), "confidence": 0.9, "reason": "r", "choice": answer.to_string()});
            let script = json!({"runs": [[{"text": reply.to_string()}, {"finish": {}}]]});
            let file = self.home.path().join(format!("{member}.json"));
            std::fs::write(file, script.to_string()).expect("written");
        };
        // All are wrong about one question in sixty, and the third member about one in three.
        let wrong = right + 10;
        let answer = if n % 60 == 40 { wrong } else { right };
        says("ann", answer);
        says("bob", answer);
        says("cyd", if n.is_multiple_of(3) { wrong } else { answer });
        (format!("What is {}*{}?", 10 + n, 16 + n), right)
    }

    fn run(&mut self, day: u32, args: &[&str]) {
        let mut command = self.home.kd(args);
        command.env("KD_NOW", now(day));
        let said = support::Said::of(command.output().expect("it runs"));
        assert_eq!(said.code, Some(0), "{args:?}: {}{}", said.out, said.err);
        self.name_threads();
    }

    /// Names the thread that the last command created: in the order of creation, unlike the random ids.
    fn name_threads(&mut self) {
        for thread in self.home.threads() {
            let id = thread.file_name().expect("a name").to_string_lossy();
            let short = id.trim_start_matches("council-").to_owned();
            let next = format!("{:04x}", 0xa100 + self.names.len());
            self.names.entry(short).or_insert(next);
        }
    }

    /// Runs a command on a terminal of 80 columns. Returns what is on it.
    fn on_terminal(&mut self, day: u32, args: &[&str]) -> String {
        let now = now(day);
        let more = [("TZ", "UTC"), ("KD_NOW", now.as_str())];
        let mut on = pty::on_terminal(&self.home, 80, &more, args);
        let mut seen = Vec::new();
        while let Ok(more) = on.bytes.recv() {
            seen.extend(more);
        }
        assert_eq!(on.child.wait().expect("it ends").exit_code(), 0);
        let text = String::from_utf8(seen).expect("text").replace("\r\n", "\n");
        self.named(&text)
    }

    /// Replaces the random ids of threads.
    fn named(&mut self, text: &str) -> String {
        self.name_threads();
        let word = |word: &str| {
            let id = word.strip_prefix("council-");
            let name = self.names.get(id.unwrap_or(word));
            match (id, name) {
                (Some(_), Some(name)) => format!("council-{name}"),
                (None, Some(name)) => name.clone(),
                _ => word.to_owned(),
            }
        };
        let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(line).collect();
        lines.join("\n") + "\n"
    }
}

fn now(day: u32) -> String {
    format!("2026-03-{day:02}T09:00:00Z")
}

/// Plays the session. Returns what the page shows.
fn played() -> String {
    let mut week = Week::new();
    let mut page = String::new();
    for n in 1..=21 * QUESTIONS_A_DAY {
        let day = n.div_ceil(QUESTIONS_A_DAY);
        let (question, right) = week.question(n);
        let ask = [&ASK[..], &[&question]].concat();
        let is_last = n % QUESTIONS_A_DAY == 0;
        if is_last && SHOWN.contains(&day) {
            let shown = week.on_terminal(day, &ask);
            page.push_str(&format!(
                "Day {day}:\n\n```console\n$ kd deliberate --protocol vote --answer number \"{question}\"\n…\n{}```\n\n",
                from_promise(&shown)
            ));
        } else {
            week.run(day, &[&ask[..], &["-q"]].concat());
        }
        if n % 4 == 0 {
            week.run(day, &["mark", &right.to_string()]);
        }
    }
    page
}

/// Returns what is shown from the line about the promise on.
fn from_promise(shown: &str) -> String {
    let at = shown
        .find("promise: ")
        .unwrap_or_else(|| panic!("no promise in {shown}"));
    let start = shown[..at].rfind('\n').map_or(0, |at| at + 1);
    shown[start..].to_owned()
}

#[test]
fn three_weeks_print_what_the_page_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/marks.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("a place for the session");
    let (shown, after) = rest.split_once(END).expect("its end");
    let played = played();
    for (day, part) in played.split("Day ").skip(1).zip([
        "no promise: about",
        "no promise: about",
        "promise: verdicts like this are right at least 80 %",
    ]) {
        assert!(day.contains(part), "{part}: {day}");
    }
    let hints = played
        .matches("marks of these verdicts would teach most")
        .count();
    assert_eq!(hints, 2, "once a week: {played}");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{played}{END}{after}")).expect("written");
        return;
    }
    assert_eq!(shown, played, "BLESS=1 writes the page");
}

#[test]
fn the_hint_needs_a_terminal_a_mark_and_the_setting() {
    let mut week = Week::new();
    let (question, right) = week.question(1);
    let ask = [&ASK[..], &[&question]].concat();
    let has_hint = |shown: &str| shown.contains("would teach most");
    assert!(!has_hint(&week.on_terminal(1, &ask)), "without marks");
    week.run(1, &["mark", &right.to_string()]);
    let list = ["marks"];
    // The only verdict is marked.
    assert!(!has_hint(&week.on_terminal(1, &list)));
    week.run(1, &[&ask[..], &["-q"]].concat());
    let said = week.home.run(&list);
    assert!(
        !has_hint(&said.out) && !has_hint(&said.err),
        "{}{}",
        said.out,
        said.err
    );
    week.run(1, &["config", "set", "marks.hint", "false"]);
    assert!(!has_hint(&week.on_terminal(1, &list)), "switched off");
    week.run(1, &["config", "set", "marks.hint", "true"]);
    for (day, expected) in [(1, true), (1, false), (7, false), (8, true), (9, false)] {
        let shown = week.on_terminal(day, &list);
        assert_eq!(has_hint(&shown), expected, "day {day}: {shown}");
    }
    // On request it also goes to a pipe.
    let said = week.home.run(&["marks", "next", "--json"]).json();
    let next: &Value = &said["verdicts"][0];
    assert_eq!(
        (&next["kind"], &next["verdict"], &next["question"]),
        (&json!("number"), &json!("187"), &json!("What is 11*17?"))
    );
    let said = week.home.run(&["marks", "next"]);
    assert!(
        said.out.contains("right|wrong   187   What is 11*17?"),
        "{}",
        said.out
    );
}
