//! Compares an output with the documentation: what differs from run to run is left out, and `…` stands for any text.

use fancy_regex::Regex;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

/// What differs from run to run, and what takes its place.
static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"council-[0-9a-f]{4}\b", "council-ID"),
        (r"batch-[0-9a-f]{8}\b", "batch-ID"),
        (r"\b[0-9a-f]{64}\b|\b[0-9a-f]{8}…", "HASH"),
        (r"/home/\w+|/tmp/\.tmp\w+", "HOME"),
        (r"~/\.local/state/kd/projects/\w+-[0-9a-f]+", "PROJECT"),
        (r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?Z?)?)?", "DATE"),
        (r"\b\d+(\.\d+)? (ms|s|min|h)\b", "TIME"),
        (r"\bkd \d+\b", "kd PID"),
        // Progress is an event, too.
        (r"\b\d+ events\b", "N events"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        // Numbers of messages, which members of a stage write in any order.
        (r"\(#\d+", "(#N"),
    ]
    .map(|(mask, name)| (Regex::new(mask).unwrap(), name))
    .into()
});

/// The ids of threads and batches.
static IDS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(council-[0-9a-f]{4}|batch-[0-9a-f]{8})\b").unwrap());

/// The documented id that matches any thread of the reader: the newest of the session.
pub(crate) const ANY_THREAD: &str = "council-a94d";

/// Removes from a line what differs from run to run.
fn normal(line: &str) -> String {
    let mut line = line.trim_end().to_owned();
    for (mask, name) in MASKS.iter() {
        line = mask.replace_all(&line, *name).into_owned();
    }
    line
}

/// Tells whether a documented line stands for any number of lines.
fn is_gap(line: &str) -> bool {
    let line = line.trim();
    line == "…" || line == "[…]" || line.starts_with("… ") && line.ends_with(" more lines")
}

/// Tells whether a line is as documented; `…` there stands for any text.
fn fits(documented: &str, line: &str) -> bool {
    let Some((head, rest)) = documented.split_once('…') else {
        return documented == line;
    };
    let Some(mut line) = line.strip_prefix(head) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('…').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        match line.find(part) {
            Some(at) => line = &line[at + part.len()..],
            None => return false,
        }
    }
    line.ends_with(tail)
}

/// Tells whether the documented lines are those of stdout, alone or mixed in any order with all of stderr.
pub(crate) fn same(documented: &[String], out: &str, err: &str) -> bool {
    let lines = |text: &str| -> Vec<String> { text.trim_end().lines().map(normal).collect() };
    let (out, err) = (lines(out), lines(err));
    // The lines of stdout and stderr that the documented lines so far can have used up.
    let mut used = BTreeSet::from([(0, 0)]);
    for documented in documented {
        let documented_ = normal(documented);
        let mut next = BTreeSet::new();
        for (o, e) in used {
            if is_gap(documented) {
                next.extend((o..=out.len()).flat_map(|o| (e..=err.len()).map(move |e| (o, e))));
            }
            if out.get(o).is_some_and(|line| fits(&documented_, line)) {
                next.insert((o + 1, e));
            }
            if err.get(e).is_some_and(|line| fits(&documented_, line)) {
                next.insert((o, e + 1));
            }
        }
        used = next;
    }
    used.contains(&(out.len(), 0)) || used.contains(&(out.len(), err.len()))
}

/// The ids of the documentation, each with the id in this session.
#[derive(Default)]
pub(crate) struct Ids(HashMap<String, String>);

impl Ids {
    /// Pairs the new ids of a documented output with the new ids of the real one, in order.
    pub(crate) fn learn(&mut self, documented: &[String], real: &str) {
        let found = |text: &str, known: &dyn Fn(&str) -> bool| {
            let mut ids: Vec<String> = Vec::new();
            for id in IDS.find_iter(text) {
                let id = id.unwrap().as_str();
                if !known(id) && !ids.iter().any(|other| other == id) {
                    ids.push(id.to_owned());
                }
            }
            ids
        };
        let documented = found(&documented.join("\n"), &|id| self.0.contains_key(id));
        let real = found(real, &|id| self.0.values().any(|known| known == id));
        for (documented, real) in documented.into_iter().zip(real) {
            self.0.insert(documented, real);
        }
    }

    /// Puts the ids of this session into a command line. They may be written without `council-` or `batch-`.
    pub(crate) fn real(&self, line: &str, newest: Option<&str>) -> String {
        let mut line = line.to_owned();
        let any = newest.map(|newest| (ANY_THREAD, newest));
        let known = self.0.iter().map(|(id, real)| (id.as_str(), real.as_str()));
        for (id, real) in known.chain(any) {
            let short = |id: &str| id.split_once('-').map(|(_, id)| id.to_owned());
            let (Some(id), Some(real)) = (short(id), short(real)) else {
                continue;
            };
            let id = Regex::new(&format!(r"\b{id}\b")).unwrap();
            line = id.replace_all(&line, real.as_str()).into_owned();
        }
        line
    }

    /// Puts the ids of the documentation into an output.
    pub(crate) fn documented(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (id, real) in &self.0 {
            text = text.replace(real, id);
        }
        text
    }
}

#[test]
fn outputs_differ_only_in_what_changes_from_run_to_run() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let doc = lines("council-37c4 · 0.4 s · 2026-11-23 01:42\nx … y\n…\nend");
    assert!(same(
        &doc,
        "council-aaaa · 1.9 s · 2026-01-01 00:00\nx 1 y\na\nb\nend\n",
        "unseen\n"
    ));
    assert!(!same(
        &doc,
        "council-aaaa · 1.9 s · 2026-01-01 00:00\nx 1\nend\n",
        ""
    ));
    let doc = lines("e1\no1\ne2");
    assert!(same(&doc, "o1\n", "e1\ne2\n"), "mixed");
    assert!(!same(&doc, "o1\n", "e1\ne2\ne3\n"), "a line is missing");
    assert!(!same(&doc, "o1\no2\n", "e1\ne2\n"), "a line is missing");
    assert!(!same(&doc, "o1\n", "e2\ne1\n"), "another order");
}

#[test]
fn ids_of_the_documentation_become_those_of_the_session() {
    let mut ids = Ids::default();
    ids.learn(
        &["council-9b1e, batch-3f1c90ab".into()],
        "council-1111\nbatch-22222222",
    );
    assert_eq!(
        ids.real("kd show 9b1e a94d 3f1c90ab x9b1e", Some("council-4444")),
        "kd show 1111 4444 22222222 x9b1e"
    );
    assert_eq!(ids.documented("council-1111: done"), "council-9b1e: done");
}
