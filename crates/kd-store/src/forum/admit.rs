//! What the records of an import may do, kind by kind.
//!
//! Input: a record of a file. Output: the record as it may be added, or nothing, which is counted. Someone else may have
//! written the file: it may add words and a history under marked names, and nothing that acts here.

use super::export::{Governance, Record};
use kd_core::clean::clean_line;
use kd_core::forum::governance::{Motion, MotionState};
use kd_core::forum::order::Target;
use kd_core::forum::words::Outcome;
use std::collections::BTreeMap;

/// Behind every name of a file that is not the user's own. No account has a space in its name.
const MARK: &str = " (imported)";
/// Maximum characters of a name in front of the mark.
const NAME_MAX: usize = 60;
/// Maximum of a counter; far above every real one, and far below an overflow.
const COUNT_MAX: i64 = 1 << 50;

/// What was left out of an import.
#[derive(Default)]
pub(super) struct LeftOut {
    named: Vec<String>,
    /// Kinds, as one and as several, with their numbers.
    counts: BTreeMap<(&'static str, &'static str), usize>,
}

impl LeftOut {
    fn name<T>(&mut self, what: String) -> Option<T> {
        self.named.push(what);
        None
    }

    fn count<T>(&mut self, one: &'static str, several: &'static str) -> Option<T> {
        *self.counts.entry((one, several)).or_default() += 1;
        None
    }

    /// Each by name, the rest by kind and number.
    pub(super) fn told(self) -> Vec<String> {
        let counts = self.counts.into_iter();
        let counts = counts.map(|((one, several), count)| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {several}"),
        });
        self.named.into_iter().chain(counts).collect()
    }
}

/// The name of an author elsewhere.
pub(super) fn marked(name: &str) -> String {
    let name = name.strip_suffix(MARK).unwrap_or(name);
    format!("{}{MARK}", clean_line(name, NAME_MAX))
}

/// Returns the record as it may be added; `None` for one that is left out.
pub(super) fn admit(record: Record, governance: Governance, left: &mut LeftOut) -> Option<Record> {
    match governance {
        Governance::InForce => Some(own(record)),
        Governance::Closed => foreign(record, left),
    }
}

/// Everything of the user's own file, with counters that can be counted on. A cycle that is open there stays so: its
/// secret is not in a file.
fn own(mut record: Record) -> Record {
    match &mut record {
        Record::Agent {
            energy,
            tokens,
            turns,
            skipped,
            ..
        } => {
            *energy = if energy.is_finite() {
                energy.clamp(0.0, 1.0)
            } else {
                1.0
            };
            for count in [tokens, turns, skipped] {
                *count = (*count).clamp(0, COUNT_MAX);
            }
        }
        Record::Cycle(cycle) if cycle.ended_at.is_none() => cycle.number = 0,
        _ => {}
    }
    record
}

/// Words and history of a file that anybody may have written.
fn foreign(record: Record, left: &mut LeftOut) -> Option<Record> {
    match record {
        Record::Forum { .. } => Some(record),
        Record::Thread(mut thread) => {
            thread.author = marked(&thread.author);
            thread.last_author = marked(&thread.last_author);
            Some(Record::Thread(thread))
        }
        Record::Post(mut post) => {
            post.author = marked(&post.author);
            Some(Record::Post(post))
        }
        Record::Cycle(mut cycle) => {
            cycle.number = 0;
            cycle.link = None;
            Some(Record::Cycle(cycle))
        }
        Record::Run(mut run) => {
            run.agent = marked(&run.agent);
            if run.ended_at.is_none() || run.outcome == Outcome::Running {
                run.ended_at = Some(run.started_at);
                run.outcome = Outcome::Interrupted;
            }
            (run.calls, run.tokens) = (
                run.calls.clamp(0, COUNT_MAX),
                run.tokens.clamp(0, COUNT_MAX),
            );
            Some(Record::Run(run))
        }
        Record::Motion(mut motion) => {
            left.named.extend(close(&mut motion));
            motion.proposer = marked(&motion.proposer);
            "imported".clone_into(&mut motion.outcome);
            Some(Record::Motion(motion))
        }
        Record::Setting { key, value, .. } => left.name(format!("{key} = {value}")),
        // They would speak to agents as their own memory, as the owner, or as another member.
        Record::Note { name, .. } => left.name(format!("notes of {name}")),
        Record::Charter { forum, .. } => left.name(format!("charter of {forum}")),
        Record::Rule { forum, key, value } => {
            left.name(format!("rule of {forum}: {key} = {value}"))
        }
        Record::Profile { .. } => left.count("profile", "profiles"),
        // Nobody gets a right, a vote or a reputation from a file.
        Record::Member(_) => left.count("account", "accounts"),
        Record::Elector { .. } => left.count("voter", "voters"),
        Record::Vote(_) => left.count("vote", "votes"),
        // To undo an entry would do what it says was there before.
        Record::Order(entry) => match entry.target {
            Target::Rule(_) | Target::Charter(_) => {
                left.count("entry of rules", "entries of rules")
            }
            _ => left.count("entry", "entries"),
        },
        Record::Log(_) => left.count("log line", "log lines"),
        // What agents have used and seen here is known here.
        Record::Agent { .. } => left.count("agent's counters", "agents' counters"),
        Record::Seen { .. } | Record::Mark { .. } => left.count("reading mark", "reading marks"),
        Record::Mention { .. } => left.count("mention", "mentions"),
        Record::FirstWords { .. } => left.count("digest", "digests"),
    }
}

/// Closes a motion that could still change something; its title, if it did.
fn close(motion: &mut Motion) -> Option<String> {
    let closed = match motion.state {
        MotionState::Open | MotionState::Passed => MotionState::NoQuorum,
        MotionState::InForce => MotionState::Undone,
        MotionState::Rejected
        | MotionState::NoQuorum
        | MotionState::Vetoed
        | MotionState::Undone => return None,
    };
    let was = motion.state.word();
    motion.state = closed;
    Some(format!("motion \"{}\" ({was})", motion.title))
}
