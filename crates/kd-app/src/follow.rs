//! Follows a round from outside: turns message files and stream files into the same events that the engine emits for
//! its own rounds, so that every output can show them.

use crate::error::UserError;
use crate::threads::{self, State};
use kd_backends::adapters::agent_cli;
use kd_backends::dialects::{Reading, named};
use kd_core::config::Config;
use kd_core::council::{PURPOSE, concludes};
use kd_core::event::{FORMAT, Outcome, Purpose};
use kd_core::last_round::RoundKind;
use kd_core::message::{CHOSEN, settled};
use kd_core::{
    Delta, Event, Failure, FailureKind, Message, Record, SeatName, Status, Timestamp, TurnId, Usage,
};
use kd_store::{StreamReader, Thread, log};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of a thread's log that are read for the usage and the times of a round.
const LOGGED_BYTES: u64 = 4 << 20;

/// The newest round of a thread.
pub struct Follow {
    thread: Thread,
    config: Config,
    members: Vec<SeatName>,
    /// The number of the message before the round.
    before: u32,
    /// Messages of the round: the user's, and what followed.
    turn: Vec<Message>,
    /// Running turns, as reported to outputs.
    open: BTreeMap<SeatName, TurnId>,
    streams: BTreeMap<SeatName, Stream>,
    turns: u32,
    seq: u64,
    told: Vec<Record>,
}

/// One member's stream.
struct Stream {
    reader: StreamReader,
    /// Decodes an agent program's output; `None` for kd's own streams.
    reading: Option<Reading>,
}

impl Follow {
    /// Opens the newest round; the first look reports all of it.
    ///
    /// # Errors
    /// The thread cannot be read.
    pub fn new(thread: Thread, config: Config) -> Result<Self, UserError> {
        let members = thread.members();
        let newest = threads::newest(&thread, 1)?.messages;
        let last = threads::turns(&newest).last().map(|turn| turn[0].seq);
        let mut follow = Self {
            before: last.map_or(0, |seq| seq.saturating_sub(1)),
            members,
            thread,
            config,
            turn: Vec::new(),
            open: BTreeMap::new(),
            streams: BTreeMap::new(),
            turns: 0,
            seq: 0,
            told: Vec::new(),
        };
        let members = follow.members.clone();
        let messages = follow.before;
        follow.tell(Event::ThreadOpened { members, messages });
        Ok(follow)
    }

    /// Returns the events since the last look.
    ///
    /// # Errors
    /// The thread cannot be read.
    pub fn look(&mut self) -> Result<Vec<Record>, UserError> {
        // A member may have ended since: report its stream first, then its message. But the user's message comes first.
        let first = self.turn.is_empty();
        if !first {
            self.hear_streams()?;
        }
        let since = self.thread.since(self.before)?.messages;
        let mut logged = None;
        for message in settled(&since).into_iter().cloned() {
            // A repeated answer replaces the failed one.
            if !self.turn.contains(&message) {
                self.turn.retain(|m| m.seq != message.seq);
                let logged = logged.get_or_insert_with(|| self.logged());
                self.hear_message(message, logged)?;
            }
        }
        if first && !self.turn.is_empty() {
            self.hear_streams()?;
        }
        // A called member without output is waiting. A debate or a deliberation asks the members it needs.
        let king = self.turn.first();
        let council = king.is_none_or(|king| RoundKind::of(king) == RoundKind::Council);
        let running = threads::running(&self.thread)?;
        let states = threads::states(&self.turn, &self.members, &running);
        for (seat, state) in states.into_iter().filter(|_| council) {
            let spoke = self.turn.iter().any(|m| m.from == seat.as_str());
            if matches!(state, State::Running | State::Pending) && !spoke {
                self.turn_of(&seat);
            }
        }
        Ok(std::mem::take(&mut self.told))
    }

    /// Returns whether every member asked has ended, and no other is running.
    ///
    /// # Errors
    /// The thread cannot be read.
    pub fn is_over(&self) -> Result<bool, UserError> {
        Ok(!self.turn.is_empty()
            && threads::running(&self.thread)?.is_empty()
            && threads::standing(&self.thread, &self.turn)?.is_over())
    }

    /// Returns whether an answer is awaited but no process is working on it.
    ///
    /// # Errors
    /// The thread cannot be read.
    pub fn is_deserted(&self) -> Result<bool, UserError> {
        // There is a short delay between the question and the first output of a member.
        let asked = self.turn.last().map(|m| m.at).unwrap_or_default();
        let since = Timestamp::now().duration_since(asked);
        Ok(since.as_secs() >= 5 && threads::running(&self.thread)?.is_empty())
    }

    /// Returns the command that repeats the question, once no process is working on it.
    ///
    /// # Errors
    /// The thread cannot be read.
    pub fn again(&self) -> Result<&'static str, UserError> {
        let standing = threads::standing(&self.thread, &self.turn)?;
        Ok(match standing.kind {
            RoundKind::Council => "`kd council retry` asks again",
            RoundKind::Debate => "`kd think --continue` asks again",
            RoundKind::Deliberation => "`kd deliberate` asks again, in a new thread",
            RoundKind::Review => "`kd review` reviews again, in a new thread",
            RoundKind::Acting => "the program that asked can ask again",
        })
    }

    /// Returns the end of the round.
    ///
    /// # Errors
    /// The thread cannot be read.
    pub fn yielded(&mut self) -> Result<Record, UserError> {
        let standing = threads::standing(&self.thread, &self.turn)?;
        let states = standing.states;
        let well = states
            .iter()
            .filter(|(_, s)| *s == State::Responded)
            .count();
        let stopped = self
            .turn
            .iter()
            .any(|m| m.status == Some(Status::Interrupted));
        let outcome = standing.outcome.unwrap_or(match well {
            _ if stopped => Outcome::Interrupted,
            n if n == states.len() => Outcome::Complete,
            0 => Outcome::Failed,
            _ => Outcome::Partial,
        });
        let usage = self.logged_usage().unwrap_or_default();
        let event = Event::FloorYielded { outcome, usage };
        Ok(self.record(event, None))
    }

    /// Returns the usage of the round as its log tells it, once the round has ended.
    fn logged_usage(&self) -> Option<Usage> {
        let king = self.turn.first()?.seq;
        let records = self.logged();
        let asks = |record: &Record| matches!(&record.event, Event::MessageAdded { message, .. } if message.seq == king);
        let asked = records.iter().rposition(asks);
        let mut sum: Option<Usage> = None;
        // A round that was retried has several ends.
        for record in records.iter().skip(asked?) {
            if let Event::FloorYielded { usage, .. } = &record.event {
                sum.get_or_insert_default().add(usage);
            }
        }
        sum
    }

    /// Returns the newest records of the thread's log; none if it cannot be read.
    fn logged(&self) -> Vec<Record> {
        log::read_last(&self.thread, LOGGED_BYTES)
            .map(|logged| logged.records)
            .unwrap_or_default()
    }

    fn hear_streams(&mut self) -> Result<(), UserError> {
        for seat in threads::running(&self.thread)? {
            if !self.streams.contains_key(&seat) {
                let stream = Stream {
                    reader: StreamReader::new(&self.thread, seat.as_str()),
                    reading: self.reading(&seat),
                };
                self.streams.insert(seat, stream);
            }
        }
        let seats: Vec<SeatName> = self.streams.keys().cloned().collect();
        for seat in seats {
            for delta in self.pieces(&seat)? {
                let turn = self.turn_of(&seat);
                self.tell(Event::TurnDelta { turn, delta });
            }
        }
        Ok(())
    }

    /// Returns the pieces that were added to a member's stream since the last look.
    fn pieces(&mut self, seat: &SeatName) -> Result<Vec<Delta>, UserError> {
        let fresh = self.reading(seat);
        let mut pieces = Vec::new();
        let Some(stream) = self.streams.get_mut(seat) else {
            return Ok(pieces);
        };
        // One read per look: a stream that grows forever must not delay the others or the end of the wait.
        let heard = stream.reader.read()?;
        if heard.restarted {
            stream.reading = fresh;
            let why = Failure::new(FailureKind::Crashed, "a new attempt started");
            pieces.push(Delta::Retrying {
                attempt: 1,
                after: Duration::ZERO,
                failure: why,
            });
        }
        for line in &heard.lines {
            match (serde_json::from_str::<Delta>(line), &mut stream.reading) {
                (Ok(delta), _) => pieces.push(delta),
                (Err(_), Some(reading)) => {
                    pieces.extend(reading.feed(format!("{line}\n").as_bytes()));
                }
                (Err(_), None) => {}
            }
        }
        Ok(pieces)
    }

    /// Tells a message; `logged`: the newest records of the thread's log.
    fn hear_message(&mut self, message: Message, logged: &[Record]) -> Result<(), UserError> {
        // The chosen answer can be one of an earlier round.
        let is_question = match message.extra.contains_key(CHOSEN) {
            true => message.is_question(&self.thread.messages()?.messages),
            false => message.is_king(),
        };
        if is_question {
            self.turn = vec![message.clone()];
            self.before = message.seq.saturating_sub(1);
            self.tell(Event::MessageAdded {
                message,
                turn: None,
                found: false,
            });
            return Ok(());
        }
        self.turn.push(message.clone());
        let Ok(seat) = SeatName::sender(message.from.as_str()) else {
            return Ok(());
        };
        // The rest of its stream is in the message.
        let _ = self.pieces(&seat);
        let (seq, failure) = (message.seq, failure(&message));
        let (began, last) = logged_turn(logged, seq);
        let purpose = match message.extra.contains_key(PURPOSE) {
            true if concludes(&message) => Purpose::Conclude,
            true => Purpose::Format,
            false => self.purpose_of(&seat),
        };
        let turn = self.turn_for(&seat, purpose, began);
        self.open.remove(&seat);
        self.tell(Event::MessageAdded {
            message,
            turn: Some(turn),
            found: false,
        });
        let (usage, tools, thought) = if let Some(Event::TurnFinished {
            usage,
            tools,
            thought,
            ..
        }) = last.map(|record| &record.event)
        {
            (*usage, *tools, *thought)
        } else {
            (None, 0, 0)
        };
        let event = match failure {
            None => Event::TurnFinished {
                turn,
                seat,
                message: Some(seq),
                usage,
                tools,
                thought,
            },
            Some(failure) => Event::TurnFailed {
                turn,
                seat,
                failure,
                message: Some(seq),
            },
        };
        let record = self.record(event, last.map(|record| record.ts));
        self.told.push(record);
        Ok(())
    }

    /// Returns the purpose of a turn without a message yet.
    fn purpose_of(&self, seat: &SeatName) -> Purpose {
        match self.members.contains(seat) {
            true => Purpose::Answer,
            false => Purpose::Conclude,
        }
    }

    /// Returns a member's turn; a new one if it has none.
    fn turn_of(&mut self, seat: &SeatName) -> TurnId {
        self.turn_for(seat, self.purpose_of(seat), None)
    }

    /// The same, for a turn with this purpose that began then.
    fn turn_for(&mut self, seat: &SeatName, purpose: Purpose, began: Option<Timestamp>) -> TurnId {
        if let Some(turn) = self.open.get(seat) {
            return *turn;
        }
        self.turns += 1;
        let turn = TurnId::new(self.turns);
        self.open.insert(seat.clone(), turn);
        let event = Event::TurnQueued {
            turn,
            seat: seat.clone(),
            purpose,
            replaces: None,
            ahead: Vec::new(),
        };
        let record = self.record(event, began);
        self.told.push(record);
        turn
    }

    /// Returns a decoder for a member's program.
    fn reading(&self, seat: &SeatName) -> Option<Reading> {
        let agent = self.config.agents.get(seat.as_str())?;
        let program = agent_cli::program(&agent.backend)?;
        named(program.dialect).map(Reading::new)
    }

    fn tell(&mut self, event: Event) {
        let record = self.record(event, None);
        self.told.push(record);
    }

    /// Numbers an event. Its time is that in the thread's log, if it is known, and otherwise now.
    fn record(&mut self, event: Event, at: Option<Timestamp>) -> Record {
        self.seq += 1;
        Record {
            v: FORMAT,
            seq: self.seq,
            ts: at.unwrap_or_else(Timestamp::now),
            thread: self.thread.id().clone(),
            event,
        }
    }
}

/// Returns the beginning and the end of the turn that wrote a message, as far as the log tells them.
fn logged_turn(records: &[Record], seq: u32) -> (Option<Timestamp>, Option<&Record>) {
    let ended = |record: &Record| {
        matches!(&record.event, Event::TurnFinished { message, .. } | Event::TurnFailed { message, .. }
            if *message == Some(seq))
    };
    let Some(end) = records.iter().rposition(ended) else {
        return (None, None);
    };
    let last = &records[end];
    let began = records[..end].iter().rev().find(|record| {
        let is_begin = matches!(record.event, Event::TurnQueued { .. });
        is_begin && record.event.turn() == last.event.turn()
    });
    (began.map(|record| record.ts), Some(last))
}

/// Returns why a message is not a complete answer.
fn failure(message: &Message) -> Option<Failure> {
    if message.is_sound() {
        return None;
    }
    let kind = match message.status {
        Some(Status::Timeout) => FailureKind::Timeout,
        Some(Status::Interrupted) => FailureKind::Cancelled,
        _ => FailureKind::Crashed,
    };
    // The body of a partial answer is no reason.
    Some(Failure::new(kind, message.why().unwrap_or_default()))
}
