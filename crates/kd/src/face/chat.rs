//! Plain chat output: append-only lines, each prefixed with its speaker's name. For screen readers, pipes, slow
//! connections and dumb terminals. Nothing is repainted or repeated.
//!
//! `name | text` is message text: every line of a body carries the name, so no body can forge another speaker. `name !
//! text` is something that happened to a member. `kd: text` is the program. Paragraphs are written as a whole, so that
//! members writing at the same time stay readable.

#![deny(clippy::wildcard_enum_match_arm)]

use super::plain::{ready, same_words};
use super::{json, words};
use crate::render::clean;
use crate::render::style::{Styles, speaker};
use crate::render::wrap::width;
use kd_app::Update;
use kd_core::event::{FORMAT, Outcome};
use kd_core::message::{CHOSEN, folded};
use kd_core::names::KING;
use kd_core::view::{State, Turn, View};
use kd_core::{
    Delta, Event, FailureKind, Message, Record, Roster, SeatName, Status, ThreadId, Timestamp,
    TurnId,
};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

/// Maximum messages of a long thread written at the start; a command shows the rest.
const HISTORY_MAX: usize = 200;

/// Plain chat output.
pub(crate) struct ChatLines {
    styles: Styles,
    /// The current thread.
    pub(crate) view: View,
    /// Whether the user's messages are written too; not where they see their own typing.
    echo: bool,
    /// The written text of each open turn. A text may be replaced by another, so a length would not be enough.
    written: BTreeMap<TurnId, String>,
    /// Members speaking for other programs, already announced.
    elsewhere: Vec<SeatName>,
    /// Messages the user sent that are not yet in the thread.
    sent: VecDeque<String>,
    /// Whether the last of them was neither accepted nor refused yet.
    open: bool,
    /// Whether the user requested something that is reported when done.
    wished: bool,
    /// Whether answers to a sent message are still expected.
    awaited: bool,
    /// For programs: events are written as JSON, and lines of the program to stderr.
    json: Option<Json>,
}

/// The output for programs.
struct Json {
    thread: ThreadId,
    members: Vec<SeatName>,
    /// The number of the last line, over all threads of this chat.
    seq: u64,
}

/// The reason why a message waits.
const WAITS: &str = "your message waits until the members have answered";

/// Maximum piped lines queued: fewer than a thread allows.
const PIPED_MAX: usize = 32;

impl ChatLines {
    /// Creates the output for an existing thread.
    pub(crate) fn new(styles: Styles, view: View, echo: bool) -> Self {
        Self {
            styles,
            view,
            echo,
            written: BTreeMap::new(),
            elsewhere: Vec::new(),
            sent: VecDeque::new(),
            open: false,
            wished: false,
            awaited: false,
            json: None,
        }
    }

    /// Returns this output, for programs: one line of JSON for each event, numbered after the last line of the thread
    /// before.
    pub(crate) fn with_json(mut self, thread: ThreadId, roster: &Roster, seq: u64) -> Self {
        let members = roster.members().iter().map(|member| member.name.clone());
        self.json = Some(Json {
            thread,
            members: members.collect(),
            seq,
        });
        self
    }

    /// Returns the number of the last line of JSON.
    pub(crate) fn seq(&self) -> u64 {
        self.json.as_ref().map_or(0, |json| json.seq)
    }

    /// Writes an event as the next line of JSON, if programs read this output.
    fn event(&mut self, ts: Timestamp, event: Event, out: &mut dyn Write) -> io::Result<()> {
        let Some(json) = &mut self.json else {
            return Ok(());
        };
        json.seq += 1;
        let record = Record {
            v: FORMAT,
            seq: json.seq,
            ts,
            thread: json.thread.clone(),
            event,
        };
        writeln!(out, "{}", json::text(&record, false)?)?;
        out.flush()
    }

    /// Says why a line of the user does nothing. A program gets an event, so that it does not wait for an answer.
    pub(crate) fn refuse(&mut self, why: &str, out: &mut dyn Write) -> io::Result<()> {
        let why = why.to_owned();
        self.kd(&why, out)?;
        self.event(Timestamp::now(), Event::OpRefused { why }, out)
    }

    /// Notes that the user sent a message.
    pub(crate) fn send(&mut self, body: &str) {
        self.sent
            .push_back(kd_core::clean::clean_text(body).trim().to_owned());
        self.open = true;
    }

    /// Notes that the user requested something that is reported when done or refused.
    pub(crate) fn wish(&mut self) {
        self.wished = true;
    }

    /// Returns whether the last message was accepted or refused: only then is the meaning of the next line known.
    pub(crate) fn is_ready(&self) -> bool {
        !self.open && !self.wished
    }

    /// Returns whether to read a line that cannot be typed again: it would not be refused because the queue is full.
    pub(crate) fn has_room(&self) -> bool {
        self.sent.len() < PIPED_MAX
    }

    /// Returns whether everything the user sent is answered as far as possible.
    pub(crate) fn is_idle(&self) -> bool {
        self.sent.is_empty()
            && !self.awaited
            && !self.view.is_busy()
            && self.view.waiting.is_empty()
    }

    /// Writes the introduction: the thread and its messages.
    pub(crate) fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(json) = &self.json {
            let messages = self
                .view
                .panels
                .iter()
                .filter_map(|panel| panel.content.message());
            let opened = Event::ThreadOpened {
                members: json.members.clone(),
                messages: messages
                    .map(|message| message.seq)
                    .max()
                    .unwrap_or_default(),
            };
            return self.event(Timestamp::now(), opened, out);
        }
        let messages: Vec<Message> = self
            .view
            .panels
            .iter()
            .filter_map(|panel| panel.content.message().cloned())
            .collect();
        let older = messages.len().saturating_sub(HISTORY_MAX);
        if older > 0 {
            let id = self.view.thread.as_ref().map_or("", |id| id.0.as_str());
            self.kd(
                &format!("{older} older messages are left out: kd show {id} --all"),
                out,
            )?;
        }
        for message in &messages[older..] {
            self.message(message, out)?;
        }
        out.flush()
    }

    /// Writes a line of the program.
    pub(crate) fn kd(&self, text: &str, out: &mut dyn Write) -> io::Result<()> {
        if self.json.is_some() {
            for line in clean::text(text).lines() {
                writeln!(crate::out::stderr(), "kd: {line}")?;
            }
            return Ok(());
        }
        for line in clean::text(text).lines() {
            writeln!(out, "kd: {line}")?;
        }
        out.flush()
    }

    /// Handles an update.
    pub(crate) fn hear(&mut self, update: &Update, out: &mut dyn Write) -> io::Result<()> {
        match update {
            Update::Record(record) if self.json.is_some() => {
                self.record(record, &mut io::sink())?;
                // `begin` has written the thread.
                if !matches!(record.event, Event::ThreadOpened { .. }) {
                    self.event(record.ts, record.event.clone(), out)?;
                }
            }
            Update::Record(record) => self.record(record, out)?,
            Update::Lagged(view) => {
                self.view.clone_from(view);
                let mut written = std::mem::take(&mut self.written);
                let open = self.view.turns.iter().filter(|turn| !turn.is_over());
                self.written = open
                    .filter_map(|turn| turn.id)
                    .map(|id| (id, written.remove(&id).unwrap_or_default()))
                    .collect();
                self.wished = false;
                self.awaited = self.view.outcome.is_none();
                let text =
                    "output was too slow, so some events are missing: `kd show` shows everything";
                self.kd(text, out)?;
                let text = text.to_owned();
                self.event(Timestamp::now(), Event::Noticed { text }, out)?;
            }
        }
        out.flush()
    }

    fn record(&mut self, record: &Record, out: &mut dyn Write) -> io::Result<()> {
        self.view.fold_record(record);
        match &record.event {
            Event::TurnQueued {
                turn,
                seat,
                replaces,
                ..
            } => {
                self.awaited = true;
                let again = if replaces.is_some() { " again" } else { "" };
                writeln!(out, "{seat}: asked{again}")?;
                self.written.insert(*turn, String::new());
            }
            Event::TurnDelta { turn, delta } => self.delta(*turn, delta, out)?,
            Event::MessageAdded {
                message,
                turn,
                found,
            } => match turn.filter(|t| self.written.contains_key(t)) {
                Some(turn) => self.said(turn, message, out)?,
                None => self.added(message, *found, out)?,
            },
            Event::TurnFinished { turn, usage, .. } => {
                let was_open = self.written.remove(turn).is_some();
                if let Some(turn) = self.view.turn(*turn).filter(|_| was_open) {
                    let mut parts: Vec<String> =
                        turn.model.as_deref().map(clean::line).into_iter().collect();
                    parts.extend(turn.took().map(words::seconds));
                    parts.extend(usage.as_ref().map(words::usage));
                    writeln!(out, "{}: done, {}", turn.seat, parts.join(", "))?;
                }
            }
            Event::TurnFailed {
                turn,
                seat,
                failure,
                ..
            } => {
                let written = self.written.remove(turn);
                if let Some((turn, written)) = self.view.turn(*turn).zip(written) {
                    let rest = turn.text.strip_prefix(written.as_str());
                    self.body(seat.as_str(), rest.unwrap_or_default(), out)?;
                }
                if failure.kind == FailureKind::Cancelled {
                    self.happened(
                        seat.as_str(),
                        "interrupted; the partial answer is saved",
                        out,
                    )?;
                } else if self.fails_alike(*turn, &failure.message) {
                    // The same cause is reported once.
                    let what = format!("failed for the same reason; /retry {seat} asks again");
                    self.happened(seat.as_str(), &what, out)?;
                } else {
                    let what = format!("failed: {}", failure.message);
                    self.happened(seat.as_str(), &what, out)?;
                    let hint = clean::line(failure.hint());
                    writeln!(out, "{seat}: {hint}; /retry {seat} asks again")?;
                }
            }
            Event::SayQueued { .. } => {
                self.open = false;
                let waiting = self.view.waiting.len();
                let what = match self.elsewhere.as_slice() {
                    _ if self.view.is_busy() => WAITS.to_owned(),
                    [] => WAITS.to_owned(),
                    names => format!(
                        "your message waits for {}, which another program is asking",
                        list(names)
                    ),
                };
                self.kd(&format!("{what} ({waiting} waiting)"), out)?;
            }
            Event::SayTakenBack { body, .. } => {
                self.open = false;
                if let Some(at) = self.sent.iter().rposition(|sent| sent == body) {
                    self.sent.remove(at);
                }
                self.kd(&format!("withdrawn: {}", clean::line(body)), out)?;
            }
            Event::StreamFound { seat, .. } if !self.elsewhere.contains(seat) => {
                self.elsewhere.push(seat.clone());
                writeln!(out, "{seat}: answers another program")?;
            }
            Event::StreamLost { seat } => {
                self.elsewhere.retain(|s| s != seat);
                self.happened(
                    seat.as_str(),
                    "the other program stopped before the answer was complete",
                    out,
                )?;
            }
            Event::SeatMuted { seat, muted } => {
                self.wished = false;
                let what = if *muted {
                    "muted: it is not asked"
                } else {
                    "asked from now on"
                };
                writeln!(out, "{seat}: {what}")?;
            }
            Event::ModeSet {
                mode,
                auto_messages,
            } => {
                self.wished = false;
                self.kd(&mode_line(mode, *auto_messages), out)?;
            }
            Event::OpRefused { why } => {
                self.wished = false;
                if std::mem::take(&mut self.open) {
                    self.sent.pop_back();
                }
                self.kd(why, out)?;
            }
            Event::SaveFailed { turn, why } => {
                if turn.is_none() {
                    self.wished = false;
                    self.sent.pop_front();
                    self.open = false;
                }
                self.kd(&format!("a message could not be saved: {why}"), out)?;
            }
            Event::Noticed { text } => self.kd(text, out)?,
            Event::Promised { message, promise } => {
                if self.view.report.can_be_true(*message, promise) {
                    self.kd(&promise.words(), out)?;
                }
            }
            Event::HeldBack { members, .. } if !members.is_empty() => {
                self.kd(&format!("held back: {}", members.join(", ")), out)?;
            }
            Event::FloorYielded { outcome, .. } => {
                self.awaited = false;
                let turns = || self.view.turns.iter();
                let answered = turns().filter(|turn| turn.state == State::Done).count();
                let failed = turns().filter(|turn| turn.failure().is_some()).count();
                let how = match outcome {
                    Outcome::Complete if answered == 0 => "no member was asked".to_owned(),
                    Outcome::Complete => kd_app::words::count(answered as u64, "answer"),
                    Outcome::Interrupted => "stopped".to_owned(),
                    Outcome::Partial | Outcome::Failed => format!(
                        "{}, {failed} failed",
                        kd_app::words::count(answered as u64, "answer")
                    ),
                };
                self.kd(&format!("your turn ({how})"), out)?;
            }
            Event::CouncilSaid {
                from, to, chars, ..
            } => writeln!(out, "{from}: wrote {chars} characters to {to}")?,
            Event::DuetEnded { why, exchanged, .. } => {
                self.kd(
                    &format!(
                        "the debate: {}",
                        kd_app::words::debate(*why, *exchanged, "")
                    ),
                    out,
                )?;
            }
            // The stream's answer is written when its last message is on disk; pieces before that are not shown.
            Event::StreamFound { .. } => {}
            // Nothing but settings: told before the chat.
            Event::HeldBack { .. } => {}
            // `begin` writes the thread; the command line names the members.
            Event::ThreadOpened { .. } => {}
            // Notices report what is visible of them.
            Event::PhaseBegan { .. } | Event::Deliberated { .. } | Event::Reviewed { .. } => {}
        }
        Ok(())
    }

    fn delta(&mut self, id: TurnId, delta: &Delta, out: &mut dyn Write) -> io::Result<()> {
        let Some((turn, mut written)) = self.view.turn(id).zip(self.written.remove(&id)) else {
            return Ok(());
        };
        match delta {
            Delta::Text { .. } => {
                // A replaced text is written as a whole at the end.
                let rest = turn.text.strip_prefix(written.as_str()).unwrap_or_default();
                let ready = &rest[..ready(rest)];
                self.body(turn.seat.as_str(), ready, out)?;
                written.push_str(ready);
            }
            Delta::Tool { name, detail } => {
                writeln!(
                    out,
                    "{}: uses {} {}",
                    turn.seat,
                    clean::line(name),
                    clean::line(detail)
                )?;
            }
            Delta::Retrying {
                attempt, failure, ..
            } => {
                let void = match written.is_empty() {
                    true => "",
                    false => "; its answer so far is void",
                };
                written.clear();
                let what = format!("attempt {attempt} failed: {}{void}", failure.message);
                self.happened(turn.seat.as_str(), &what, out)?;
            }
            Delta::Notice { text } => writeln!(out, "{}: {}", turn.seat, clean::line(text))?,
            // Only what a reader can use: the text, and the model with its end.
            Delta::Started { .. }
            | Delta::Thinking { .. }
            | Delta::Call { .. }
            | Delta::Finished { .. } => {}
        }
        self.written.insert(id, written);
        Ok(())
    }

    /// Writes the rest of a turn's message once it is on disk.
    fn said(&mut self, id: TurnId, message: &Message, out: &mut dyn Write) -> io::Result<()> {
        if message.status != Some(Status::Complete) {
            return Ok(());
        }
        let Some((turn, written)) = self.view.turn(id).zip(self.written.get_mut(&id)) else {
            return Ok(());
        };
        // All of it is written now.
        let written = std::mem::replace(written, turn.text.clone());
        let name = message.from.as_str();
        if message.is_pass() {
            return self.happened(name, "passes: it has nothing to add", out);
        }
        if same_words(&turn.text, &message.body)
            && let Some(rest) = turn.text.strip_prefix(written.as_str())
        {
            let mark = message.cut_mark().unwrap_or_default();
            return self.body(name, &format!("{rest}{mark}"), out);
        }
        if !written.is_empty() {
            self.happened(name, "the answer was restated; the full text:", out)?;
        }
        self.body(name, &message.shown(), out)
    }

    /// Writes a message that belongs to none of our turns: the user's, or another program's.
    fn added(&mut self, message: &Message, found: bool, out: &mut dyn Write) -> io::Result<()> {
        self.elsewhere.retain(|s| s.as_str() != message.from);
        let ours = message.is_king()
            && !found
            && self.sent.front().is_some_and(|sent| message.body == *sent);
        if message.is_king() && message.extra.contains_key(CHOSEN) {
            self.wished = false;
        }
        if ours {
            self.sent.pop_front();
            self.open &= !self.sent.is_empty();
            self.awaited = true;
            if !self.echo {
                return Ok(());
            }
        }
        self.message(message, out)
    }

    fn message(&self, message: &Message, out: &mut dyn Write) -> io::Result<()> {
        let name = message.from.as_str();
        if message.is_pass() {
            return self.happened(name, "passed: it had nothing to add", out);
        }
        match folded(&message.body).filter(|_| message.is_king()) {
            // The user knows what they said.
            Some((shown, more)) => {
                self.body(name, shown, out)?;
                let more = kd_app::words::count(more as u64, "more line");
                self.happened(name, &format!("{more}: `kd show` shows them"), out)?;
            }
            None => self.body(name, &message.shown(), out)?,
        }
        let because = message
            .reason()
            .map_or(String::new(), |why| format!(": {why}"));
        match message.status {
            Some(Status::Error) => self.happened(name, &format!("failed{because}"), out),
            Some(Status::Timeout) => self.happened(name, &format!("timed out{because}"), out),
            Some(Status::Interrupted) => self.happened(name, "stopped", out),
            Some(Status::Complete) | None => Ok(()),
        }
    }

    fn label(&self, name: &str, mark: char) -> String {
        let names = self.view.members.iter().map(SeatName::as_str);
        let longest = names.chain([KING]).map(width).max().unwrap_or(0);
        let pad = " ".repeat(longest.saturating_sub(width(name)));
        let clean = clean::line(name);
        let is_member = self.view.members.iter().any(|m| m.as_str() == name);
        let shown = match is_member {
            true => self.styles.paint(speaker(self.view.look(name)), &clean),
            false => clean,
        };
        format!("{shown}{pad} {mark}")
    }

    fn body(&self, name: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
        let label = self.label(name, '|');
        for line in clean::text(text).lines() {
            match line.trim_end() {
                "" => writeln!(out, "{label}")?,
                line => writeln!(out, "{label} {line}")?,
            }
        }
        Ok(())
    }

    /// Returns whether another member of the round failed with this message, so its cause and advice are already shown.
    fn fails_alike(&self, turn: TurnId, message: &str) -> bool {
        let others = self
            .view
            .turns
            .iter()
            .filter(|other| other.id != Some(turn));
        let mut failures = others.filter_map(Turn::failure);
        failures.any(|failure| failure.message == message)
    }

    fn happened(&self, name: &str, what: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} {}", self.label(name, '!'), clean::line(what))
    }
}

/// Describes the rule for who speaks next, in one line.
pub(crate) fn mode_line(mode: &str, auto_messages: Option<u32>) -> String {
    let auto = match auto_messages {
        Some(0) => "no turns follow the answers".to_owned(),
        Some(n) => format!(
            "up to {} follow the answers",
            kd_app::words::count(u64::from(n), "turn")
        ),
        None if mode == "broadcast" => {
            "from your second message on, one turn for each member follows the answers".to_owned()
        }
        None => "no turns follow the answers".to_owned(),
    };
    format!("mode {mode}; {auto}")
}

/// `a`, `a and b`, `a, b and c`.
fn list(names: &[SeatName]) -> String {
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(SeatName::as_str).collect();
            format!("{} and {last}", most.join(", "))
        }
    }
}
