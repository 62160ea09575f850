//! The effects that records of an import may have, by kind.
//!
//! Input: a record of a file. Output: the record to add, or nothing, which is counted. Someone else may have written
//! the file, so it may add posts and history under marked names, but nothing that takes effect here.

use super::record::{Governance, Record};
use kd_core::clean::clean_line;
use kd_forum::governance::{Motion, MotionState};
use kd_forum::order::Target;
use kd_forum::words::Outcome;
use std::collections::BTreeMap;

/// Suffix of every name from a file that is not the user's own. No account has a space in its name.
const MARK: &str = " (imported)";
/// Maximum characters of a name before the mark.
const NAME_MAX: usize = 60;
/// Maximum of a counter; far above every real one, and far below an overflow.
const COUNT_MAX: i64 = 1 << 50;

/// The records that an import left out.
#[derive(Default)]
pub(super) struct LeftOut {
    named: Vec<String>,
    /// Numbers by kind, as singular and plural.
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

    /// Lists a few records by name, and the others by kind and number.
    pub(super) fn told(self) -> Vec<String> {
        let counts = self.counts.into_iter();
        let counts = counts.map(|((one, several), count)| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {several}"),
        });
        self.named.into_iter().chain(counts).collect()
    }
}

/// Returns an author's name with the mark.
pub(super) fn marked(name: &str) -> String {
    let name = name.strip_suffix(MARK).unwrap_or(name);
    format!("{}{MARK}", clean_line(name, NAME_MAX))
}

/// Returns the record to add; `None` if it is left out.
pub(super) fn admit(record: Record, governance: Governance, left: &mut LeftOut) -> Option<Record> {
    match governance {
        Governance::InForce => Some(own(record)),
        Governance::Closed => foreign(record, left),
    }
}

/// Admits everything of the user's own file, with valid counters. An open cycle stays open: its secret is not in a
/// file.
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

/// Admits posts and history of a file by an unknown author.
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
        // Agents would read them as their own memory, or as the owner's or another member's words.
        Record::Note { name, .. } => left.name(format!("notes of {name}")),
        Record::Charter { forum, .. } => left.name(format!("charter of {forum}")),
        Record::Rule { forum, key, value } => {
            left.name(format!("rule of {forum}: {key} = {value}"))
        }
        Record::Profile { .. } => left.count("profile", "profiles"),
        // No file grants rights, votes or reputation.
        Record::Member(_) => left.count("account", "accounts"),
        Record::Elector { .. } => left.count("voter", "voters"),
        Record::Vote(_) => left.count("vote", "votes"),
        // Undoing an entry would restore the state that it claims.
        Record::Order(entry) => match entry.target {
            Target::Rule(_) | Target::Charter(_) | Target::Setting(_) => {
                left.count("entry of rules", "entries of rules")
            }
            _ => left.count("entry", "entries"),
        },
        Record::Erasure(_) => left.count("note of an erased text", "notes of erased texts"),
        Record::Log(_) => left.count("log line", "log lines"),
        // This forum already counts what its agents used and saw.
        Record::Agent { .. } => left.count("agent's counters", "agents' counters"),
        Record::Seen { .. } | Record::Mark { .. } => left.count("reading mark", "reading marks"),
        Record::Mention { .. } => left.count("mention", "mentions"),
        Record::FirstWords { .. } => left.count("digest", "digests"),
    }
}

/// Closes a motion that could still change something; returns its title if so.
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
