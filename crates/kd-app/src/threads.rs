//! Thread data for show, list, status and export: finding the thread, its turns, and who has answered. Pure except for
//! [`find`], [`resolve`], [`running`], [`last_round`] and [`standing`].

mod list;
mod whispers;

pub use list::{Listed, list};
pub use whispers::{Whisper, whispers};

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_core::event::Outcome;
use kd_core::formats::Newer;
use kd_core::last_round::{RoundKind, TurnSeen};
use kd_core::message::CHOSEN;
use kd_core::{Address, FailureKind, LastRound, Message, SeatName, Status};
use kd_store::Lease;
pub use kd_store::fork::Lineage;
use kd_store::recorded::{Recorded, SHOWN_BYTES};
pub use kd_store::seal::Origin;
pub use kd_store::{Layout, Place, Thread, Watch, Watching};

/// Returns the thread that a command refers to: the named one. Without a name it is the current thread; if there is no
/// current thread, it is the newest.
///
/// # Errors
/// If there is no project or no such thread.
pub fn find(env: &Env, id: Option<&str>) -> Result<(Layout, Place), UserError> {
    let layout = env.layout()?;
    let place = resolve(&layout, id)?;
    Ok((layout, place))
}

/// Resolves an ID or its prefix. Without one, returns the current thread; if there is no current thread, returns the
/// newest.
///
/// # Errors
/// If there is no such thread.
pub fn resolve(layout: &Layout, id: Option<&str>) -> Result<Place, UserError> {
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        // Every ID begins with `council-`; the rest is enough.
        return match layout.resolve(id) {
            Ok(place) => Ok(place),
            Err(error) => match layout.resolve(&format!("council-{id}")) {
                Err(several @ kd_store::Error::AmbiguousThread { .. }) => Err(several.into()),
                found => found.map_err(|_| error.into()),
            },
        };
    }
    if let Some(place) = layout.current_thread()? {
        return Ok(place);
    }
    Err(UserError::new(
        ErrorKind::NoThread,
        "there is no current thread on this branch",
    )
    .next("name one of `kd list`, or start one with `kd ask \"…\"`"))
}

/// Returns enough of the tail for the newest `turns` turns. Reads backwards in growing steps, so that a long thread
/// costs no more than its end.
///
/// # Errors
/// If the thread cannot be read.
pub fn newest(thread: &Thread, turns: usize) -> Result<kd_store::Messages, UserError> {
    let mut n = 16_usize.max(turns.saturating_mul(4));
    loop {
        let read = thread.tail(n)?;
        let all = &read.messages;
        let asked = all.iter().filter(|m| m.is_question(all)).count();
        // A choice is one only together with the answer that it names.
        let named = |m: &&Message| m.is_king() && m.extra.contains_key(CHOSEN);
        let is_settled = all.iter().filter(named).all(|m| m.is_choice(all));
        if asked >= turns.max(1) && is_settled || read.messages.len() + read.problems.len() < n {
            return Ok(read);
        }
        n = n.saturating_mul(4);
    }
}

/// Returns how messages of a thread differ from what its log recorded: a sentence each. Those whose text was left out
/// because of its size are not compared; without a readable log, nothing is.
pub fn changed<'m>(
    thread: &Thread,
    messages: impl IntoIterator<Item = &'m Message>,
) -> Vec<String> {
    let messages: Vec<&Message> = messages.into_iter().collect();
    let first = messages.iter().map(|message| message.seq).min();
    let recorded = first.and_then(|first| Recorded::since(thread, first, SHOWN_BYTES).ok());
    let recorded = recorded.unwrap_or_default();
    let whole = messages
        .into_iter()
        .filter(|message| !kd_store::thread::is_left_out(message));
    whole
        .filter_map(|message| recorded.change(message))
        .collect()
}

/// Like [`changed`], of all messages of a thread, one after the other.
///
/// # Errors
/// If the folder of the thread cannot be listed.
pub fn all_changed(thread: &Thread) -> Result<Vec<String>, UserError> {
    let recorded = Recorded::since(thread, 0, u64::MAX).unwrap_or_default();
    let mut changed = Vec::new();
    thread.each(|message| -> Result<(), UserError> {
        changed.extend(recorded.change(&message));
        Ok(())
    })?;
    Ok(changed)
}

/// Returns a line about forgotten messages. `None` if there are none.
pub fn shortened(thread: &Thread) -> Option<String> {
    let forgotten = thread.meta().forgotten();
    let last = forgotten.last()?;
    let numbers: Vec<String> = forgotten
        .iter()
        .map(|one| one.message.to_string())
        .collect();
    let (noun, verb) = match numbers.len() {
        1 => ("message", "was"),
        _ => ("messages", "were"),
    };
    let day = last.at.strftime("%Y-%m-%d");
    Some(format!(
        "This record was shortened: {noun} {} {verb} forgotten, last on {day}.",
        numbers.join(", ")
    ))
}

/// Returns the members that are writing to a thread right now.
///
/// kd's own writers hold a lock; other programs do not, and count while their stream grows.
///
/// # Errors
/// If the streams cannot be read.
pub fn running(thread: &Thread) -> Result<Vec<SeatName>, UserError> {
    let signs: Vec<kd_store::stream::StreamSign> = kd_store::stream::streams(thread)?;
    Ok(signs
        .into_iter()
        .filter(|sign| sign.is_live(kd_store::stream::PATIENCE))
        .filter_map(|sign| SeatName::new(sign.member).ok())
        .collect())
}

/// Returns the process that asks a member in a thread now, or 0 if it is unknown; `None` if none does. Whether for the
/// newest question or for another one is unknown.
pub fn asked_by(thread: &Thread, seat: &SeatName) -> Option<u32> {
    let is_held = Lease::is_held(thread, seat.as_str()).unwrap_or(false);
    is_held.then(|| Lease::holder(thread, seat.as_str()).unwrap_or(0))
}

/// Splits messages into turns: a question of the user and everything up to the next one. Messages before the first are a
/// turn too.
pub fn turns(messages: &[Message]) -> Vec<&[Message]> {
    let mut starts: Vec<usize> = messages
        .iter()
        .enumerate()
        .filter(|(_, m)| m.is_question(messages))
        .map(|(i, _)| i)
        .collect();
    if starts.first() != Some(&0) && !messages.is_empty() {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &messages[*start..end])
        .collect()
}

/// The state of a member for the newest question, in kingdom-cli's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Answered.
    Responded,
    /// Failed.
    Errored,
    /// The user stopped it, or its output was closed; kingdom-cli reports this as an error.
    Interrupted,
    /// Took too long.
    TimedOut,
    /// Is writing.
    Running,
    /// Has not answered yet.
    Pending,
}

impl State {
    /// Returns the word for JSON.
    pub fn word(self) -> &'static str {
        match self {
            State::Responded => "responded",
            State::Errored | State::Interrupted => "errored",
            State::TimedOut => "timed_out",
            State::Running => "running",
            State::Pending => "pending",
        }
    }

    /// Returns the word for users.
    pub fn told(self) -> &'static str {
        match self {
            State::Interrupted => "interrupted",
            State::TimedOut => "timed out",
            State::Pending => "open",
            other => other.word(),
        }
    }

    /// Returns the glyph shown before the word.
    pub fn mark(self, unicode: bool) -> &'static str {
        match (self, unicode) {
            (State::Responded, true) => "✓",
            (State::Errored, true) => "✗",
            (State::Interrupted, true) => "⊘",
            (State::TimedOut, true) => "⧖",
            (State::Running, true) => "○",
            (State::Pending, true) => "…",
            (State::Responded, false) => "ok",
            (State::Errored, false) => "failed",
            (State::Interrupted, false) => "interrupted",
            (State::TimedOut, false) => "late",
            (State::Running, false) => "busy",
            (State::Pending, false) => "open",
        }
    }
}

/// The newest turn of a thread: the members that were asked, with the state of each.
#[derive(Debug, Default)]
pub struct Standing {
    /// The kind of round that answers the question.
    pub kind: RoundKind,
    /// The outcome of the round, if the log has it and no member is writing.
    pub outcome: Option<Outcome>,
    /// Whether a member puts the answer into a JSON schema now.
    pub formats: bool,
    /// The members that were asked, each with its state.
    pub states: Vec<(SeatName, State)>,
}

/// Threads written by a newer kd, which a list leaves out.
#[derive(Default)]
pub struct LeftOut {
    count: u64,
    first: String,
}

impl LeftOut {
    /// Opens a thread; `None` if it is left out.
    ///
    /// # Errors
    /// If the thread cannot be read for another reason.
    pub fn open(&mut self, place: &Place) -> Result<Option<Thread>, UserError> {
        match Thread::open(place) {
            Err(error @ kd_store::Error::Newer { .. }) => {
                if self.count == 0 {
                    self.first = error.to_string();
                }
                self.count += 1;
                Ok(None)
            }
            opened => Ok(Some(opened?)),
        }
    }

    /// Reports them in one line.
    pub fn tell(&self, env: &Env) {
        let which = match self.count {
            0 => return,
            1 => format!("1 thread: {}", self.first),
            n => format!("{n} threads, such as: {}", self.first),
        };
        env.warn(format!("note: left out {which}; {}", Newer::HINT));
    }
}

impl Standing {
    /// Returns whether every member asked is done. For a debate or deliberation, only the log tells that, not the
    /// messages.
    pub fn is_over(&self) -> bool {
        let busy = |state: &State| matches!(state, State::Running | State::Pending);
        let answered = self.kind == RoundKind::Council
            && !self.formats
            && !self.states.iter().any(|s| busy(&s.1));
        self.outcome.is_some() || answered
    }
}

/// Maximum bytes of the log to search for the newest round, because the log is read again after every change.
const ROUND_BYTES: u64 = 4 << 20;

/// Returns the round of a turn from the thread's log, if logged.
///
/// # Errors
/// If the log cannot be read.
pub fn last_round(thread: &Thread, turn: &[Message]) -> Result<Option<LastRound>, UserError> {
    let Some(king) = turn.first().filter(|m| m.is_king()) else {
        return Ok(None);
    };
    let logged = kd_store::log::read_last(thread, ROUND_BYTES)?;
    Ok(LastRound::of(&logged.records, king.seq))
}

/// Returns the state of a thread's newest turn, from its messages, streams and log.
///
/// # Errors
/// If the thread cannot be read.
pub fn standing(thread: &Thread, turn: &[Message]) -> Result<Standing, UserError> {
    let running = running(thread)?;
    let states = states(turn, &thread.members(), &running);
    let round = last_round(thread, turn)?;
    let formatting = round.as_ref().and_then(|round| round.formatting.clone());
    // A process that was killed leaves its turn open.
    let formats = formatting.is_some_and(|seat| asked_by(thread, &seat).is_some());
    let standing = with_log(states, round, &running);
    Ok(Standing {
        formats,
        ..standing
    })
}

/// Returns each member's state; reads the log only if a member seems to be missing.
///
/// # Errors
/// If the thread cannot be read.
pub fn states_now(thread: &Thread, turn: &[Message]) -> Result<Vec<(SeatName, State)>, UserError> {
    let running = running(thread)?;
    let states = states(turn, &thread.members(), &running);
    if states.iter().all(|(_, state)| *state != State::Pending) {
        return Ok(states);
    }
    Ok(with_log(states, last_round(thread, turn)?, &running).states)
}

/// Adds data of the log to the states known from messages and streams.
fn with_log(
    mut states: Vec<(SeatName, State)>,
    round: Option<LastRound>,
    running: &[SeatName],
) -> Standing {
    let Some(round) = round else {
        return Standing {
            states,
            ..Standing::default()
        };
    };
    let outcome = round.outcome.filter(|_| running.is_empty());
    match round.kind {
        // A protocol does not have to ask every member that was called.
        RoundKind::Council if outcome.is_some() && round.is_whole() => {
            let asked = |seat: &SeatName| round.asked.iter().any(|(s, ..)| s == seat);
            states.retain(|(seat, state)| *state != State::Pending || asked(seat));
        }
        RoundKind::Council => {}
        // These ask the members they need, and most replies are only in the log.
        RoundKind::Debate | RoundKind::Deliberation | RoundKind::Review | RoundKind::Acting => {
            let state = |(seat, _, seen): &(SeatName, _, TurnSeen)| match seen {
                _ if running.contains(seat) => State::Running,
                TurnSeen::Open => State::Pending,
                TurnSeen::Finished => State::Responded,
                TurnSeen::Failed(FailureKind::Timeout) => State::TimedOut,
                TurnSeen::Failed(FailureKind::Cancelled) => State::Interrupted,
                TurnSeen::Failed(_) => State::Errored,
            };
            states = round
                .asked
                .iter()
                .map(|a| (a.0.clone(), state(a)))
                .collect();
        }
    }
    Standing {
        kind: round.kind,
        outcome,
        formats: false,
        states,
    }
}

/// Returns the members that were asked in a turn, with the state of each. `running` lists the members that are writing
/// right now.
pub fn states(
    turn: &[Message],
    members: &[SeatName],
    running: &[SeatName],
) -> Vec<(SeatName, State)> {
    let asked: Vec<SeatName> = match turn.first().filter(|m| m.is_king()).map(|m| &m.to) {
        Some(Address::Seats(seats)) => seats.clone(),
        _ => members.to_vec(),
    };
    asked
        .into_iter()
        .map(|seat| {
            let reply = turn.iter().rev().find(|m| m.from == seat.as_str());
            let state = match reply {
                Some(reply) if reply.is_sound() => State::Responded,
                Some(reply) if reply.status == Some(Status::Timeout) => State::TimedOut,
                Some(_) if running.contains(&seat) => State::Running,
                Some(reply) if reply.status == Some(Status::Interrupted) => State::Interrupted,
                Some(_) => State::Errored,
                None if running.contains(&seat) => State::Running,
                None => State::Pending,
            };
            (seat, state)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::Timestamp;
    use kd_core::message::Provenance;
    use std::collections::BTreeMap;

    fn message(seq: u32, from: &str, to: &str, status: Option<Status>) -> Message {
        Message {
            seq,
            from: from.into(),
            to: Address::parse(to),
            at: Timestamp::UNIX_EPOCH,
            status,
            refs: Vec::new(),
            provenance: Provenance::default(),
            extra: BTreeMap::new(),
            body: "words".into(),
        }
    }

    fn seats(names: &[&str]) -> Vec<SeatName> {
        names.iter().map(|n| SeatName::new(*n).unwrap()).collect()
    }

    #[test]
    fn a_turn_is_the_king_and_what_follows() {
        let messages = [
            message(1, "claude", "all", None),
            message(2, "king", "all", None),
            message(3, "claude", "king", None),
            message(4, "king", "claude", None),
        ];
        let lengths: Vec<usize> = turns(&messages).iter().map(|t| t.len()).collect();
        assert_eq!(lengths, [1, 2, 1]);
        assert!(turns(&[]).is_empty());
    }

    #[test]
    fn only_who_was_asked_is_waited_for() {
        let members = seats(&["claude", "codex", "cursor", "late"]);
        let turn = [
            message(1, "king", "all", None),
            message(2, "claude", "king", Some(Status::Complete)),
            message(3, "codex", "king", Some(Status::Error)),
            message(4, "late", "king", Some(Status::Timeout)),
        ];
        let words: Vec<&str> = states(&turn, &members, &seats(&["cursor"]))
            .iter()
            .map(|(_, s)| s.word())
            .collect();
        assert_eq!(words, ["responded", "errored", "running", "timed_out"]);
        let turn = [
            message(1, "king", "codex", None),
            message(2, "codex", "king", Some(Status::Interrupted)),
        ];
        let state = states(&turn, &members, &[])[0].1;
        assert_eq!((state.told(), state.word()), ("interrupted", "errored"));
        let turn = [message(1, "king", "codex", None)];
        assert_eq!(
            states(&turn, &members, &[]),
            [(seats(&["codex"])[0].clone(), State::Pending)]
        );
    }
}
