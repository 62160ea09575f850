//! Messages on their way: they wait for the session and for their files, and come back into the input if they are not
//! sent.

use super::{App, Effect};
use crate::editor::Move;
use crate::keymap::Action;
use crate::keys::{Code, Key};
use crate::text::{clean, wrap};
pub use kd_app::shell::Output;
use kd_app::words::count;
use kd_app::{Said, Unsaid};
use kd_core::mention;
use kd_core::slash::{self, Line, Way};
use kd_core::{Address, Op, SeatName, Timestamp};
use std::time::Duration;

/// Time for which a question has to be shown before a key answers it with yes.
const READ: Duration = Duration::from_millis(300);

/// Messages with files that are remembered without them.
const ATTACHED_MAX: usize = 64;

/// A message that may name files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// The message, or the question of an aside.
    pub body: String,
    /// The input, in which pasted texts are folded: only files in words that the user typed are meant.
    pub typed: String,
    /// The protocol, if it is the question of an aside.
    pub way: Option<Way>,
}

impl Naming {
    /// Returns the input that sends it.
    fn input(&self) -> String {
        match self.way {
            Some(Way::Think) => format!("/think {}", self.body),
            Some(Way::Deliberate) => format!("/deliberate {}", self.body),
            Some(Way::Resume) | None => self.body.clone(),
        }
    }
}

/// A confirmation that the user is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Whether to attach the files of a message.
    Files,
    /// Whether to run this shell line.
    Command(String),
}

/// A question about the files of a message, or about a shell line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// What is asked.
    pub asks: Asks,
    /// Which files, and why; or the shell line.
    pub doubts: String,
    /// The time when it was first shown.
    shown: Option<Timestamp>,
}

/// Maximum columns of a shell line above its folded output.
const LABEL_COLUMNS_MAX: usize = 40;

impl App {
    /// Notes that a message is saved: the draft that was put aside for it comes back.
    pub(super) fn is_said(&mut self, fx: &mut Vec<Effect>) {
        if self.unsaid.take().is_some() && self.editor.is_empty() {
            self.editor.stash();
        }
        self.post(fx);
    }

    /// Puts unsent messages back into the input, so that nothing typed is lost.
    pub(super) fn give_back(&mut self) {
        if let Some(text) = self.unsaid.take() {
            self.put_back(&text, self.is_typed);
        }
    }

    /// Puts messages that wait for files back into the input, where they are saved as a draft.
    pub(super) fn keep_unsent(&mut self) {
        self.consent = None;
        if let Some(message) = self.attaching.take() {
            self.unpost();
            let is_typed = message.body.trim() == message.typed.trim();
            self.put_back(&message.input(), is_typed);
        }
    }

    /// Puts a text into the input, before its current text.
    fn put_back(&mut self, text: &str, is_typed: bool) {
        match self.editor.is_empty() {
            true => self.editor.give_back(text, is_typed),
            false => self.take_back(text),
        }
        self.log.follow();
        // An aside without a question would answer an older one.
        let before = self.outbox.len();
        self.outbox
            .retain(|effect| !matches!(effect, Effect::Aside(_, None)));
        if self.outbox.len() < before {
            self.refuse(
                "the command after it was not carried out: it has no question without it"
                    .to_owned(),
            );
        }
    }

    /// Returns a message of this window without its files.
    pub(super) fn as_typed(&self, body: &str) -> Option<&str> {
        let mut sent = self.attached.iter();
        let (_, typed) = sent.find(|(sent, _)| sent.trim() == body.trim())?;
        Some(typed)
    }

    /// Puts a message that was not sent back into the input.
    pub(super) fn come_back(&mut self, body: &str) {
        let said = Line::Say(self.as_typed(body).unwrap_or(body).trim().to_owned());
        // Only the last one is known to be typed: its files are attached when it is sent again.
        match self.unsaid.take_if(|text| slash::read(text) == said) {
            Some(text) => self.put_back(&text, self.is_typed),
            // What would be read as a command was sent with another slash.
            None if slash::read(body) != said && body.starts_with('/') => {
                self.take_back(&format!("/{body}"));
            }
            None => self.take_back(body),
        }
    }

    /// Puts a retracted message into the input, before its current text.
    pub(super) fn take_back(&mut self, body: &str) {
        // What it attaches is read again when it is sent. Only this window knows what it has attached: a text can look so.
        let body = self.as_typed(body).unwrap_or(body);
        let text = match self.editor.text() {
            "" => body.to_owned(),
            rest => format!("{body}\n{rest}"),
        };
        self.editor.set(&text);
        self.log.follow();
    }

    /// Requests the size of the files that the input names, if the files have changed.
    pub(super) fn weigh(&mut self, fx: &mut Vec<Effect>) {
        let known: Vec<&SeatName> = self.members.iter().collect();
        let text = self.editor.text();
        let named = match text.contains('@') {
            true => mention::paths(text, &known),
            false => Vec::new(),
        };
        if named == self.named {
            return;
        }
        match named.is_empty() {
            true => self.attaches = None,
            false => fx.push(Effect::Weigh(text.to_owned())),
        }
        self.named = named;
    }

    pub(super) fn send(&mut self, op: Op, fx: &mut Vec<Effect>) {
        self.put(Effect::Send(op), fx);
    }

    /// Sends a message. The loop looks for files only where it may name some.
    pub(super) fn say(&mut self, body: String, typed: String, fx: &mut Vec<Effect>) {
        let way = None;
        self.name(Naming { body, typed, way }, fx);
    }

    /// Sends a message or the question of an aside.
    pub(super) fn name(&mut self, message: Naming, fx: &mut Vec<Effect>) {
        let known: Vec<&SeatName> = self.members.iter().collect();
        let effect = match mention::paths(&message.typed, &known).is_empty() {
            true => sent(message.way, message.body),
            false => Effect::Attach {
                message,
                agreed: false,
            },
        };
        self.put(effect, fx);
    }

    pub(super) fn put(&mut self, effect: Effect, fx: &mut Vec<Effect>) {
        self.prepared = false;
        self.outbox.push(effect);
        self.post(fx);
    }

    /// Sends what waits, if the session is there to stay, in order: what comes after a message with files waits for these,
    /// and an aside about the last message for this message.
    pub(super) fn post(&mut self, fx: &mut Vec<Effect>) {
        while self.ready && !self.changing && self.attaching.is_none() {
            match self.outbox.first() {
                None => return,
                Some(Effect::Aside(_, None)) if self.unsaid.is_some() => return,
                Some(Effect::Attach { message, .. }) => self.attaching = Some(message.clone()),
                Some(_) => {}
            }
            fx.push(self.outbox.remove(0));
        }
    }

    /// Puts messages that wait for a session that cannot be opened back into the input.
    pub(super) fn unpost(&mut self) {
        let said: Vec<String> = std::mem::take(&mut self.outbox)
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Send(Op::Say { body, .. }) => Some(body),
                Effect::Attach { message, .. } => Some(message.input()),
                _ => None,
            })
            .collect();
        if !said.is_empty() {
            self.unsaid = None;
            self.take_back(&said.join("\n"));
        }
    }

    /// Sends a message whose files were read, asks about them, or says why it is not sent.
    pub(super) fn read(&mut self, read: Result<Said, Unsaid>, fx: &mut Vec<Effect>) {
        let Some(message) = &self.attaching else {
            return;
        };
        match read {
            Ok(said) => {
                if said.body != message.body {
                    self.attached.truncate(ATTACHED_MAX - 1);
                    self.attached
                        .insert(0, (said.body.clone(), message.body.clone()));
                }
                let effect = sent(message.way, said.body);
                self.attaching = None;
                for line in said.told {
                    self.note(line);
                }
                fx.push(effect);
            }
            Err(Unsaid::Asks { doubts, .. }) => {
                self.note(format!("not sent yet: {doubts}"));
                self.consent = Some(Consent {
                    asks: Asks::Files,
                    doubts,
                    shown: None,
                });
                // Large files take a while to read.
                self.notify("a question waits for you", fx);
            }
            Err(Unsaid::Failed(error)) => self.unattached(error.as_line()),
        }
        self.post(fx);
    }

    /// Puts the message whose files are not attached back into the input.
    fn unattached(&mut self, why: String) {
        self.consent = None;
        let Some(message) = self.attaching.take() else {
            return;
        };
        // A later message may be waiting too.
        self.unsaid.take_if(|text| {
            message.way.is_none() && text.trim_end().ends_with(message.body.trim())
        });
        self.refuse(why);
        // Pasted texts are in the message, but not in what was typed.
        let is_typed = message.body.trim() == message.typed.trim();
        self.put_back(&message.input(), is_typed);
    }

    /// Notes that a frame was shown.
    pub fn painted(&mut self, now: Timestamp) {
        let is_chat = matches!(self.screen, super::Screen::Chat);
        if let Some(consent) = self.consent.as_mut().filter(|_| is_chat) {
            consent.shown.get_or_insert(now);
        }
    }

    /// Answers the question about files. Enter says nothing: it may have been pressed for something else, as may a key from
    /// before the question could be read.
    pub(super) fn consent_key(&mut self, key: Key, fx: &mut Vec<Effect>) {
        let shown = self.consent.as_ref().and_then(|consent| consent.shown);
        let was_read = shown.is_some_and(|at| crate::panels::since(at, self.now) >= READ);
        let action = self.settings.keys.action(key);
        let is_plain = !key.ctrl && !key.alt;
        match key.code {
            Code::Char('y' | 'Y') if is_plain && was_read => {
                let consent = self.consent.take();
                match consent.map(|consent| consent.asks) {
                    Some(Asks::Command(line)) => {
                        self.renote(&line, &format!("running: {line}"));
                        fx.push(Effect::Shell(line));
                    }
                    Some(Asks::Files) | None => {
                        let message = self.attaching.clone();
                        fx.extend(message.map(|message| Effect::Attach {
                            message,
                            agreed: true,
                        }));
                    }
                }
            }
            Code::Char('n' | 'N') if is_plain => self.decline(fx),
            _ if matches!(action, Some(Action::Escape | Action::Interrupt)) => self.decline(fx),
            _ => {}
        }
    }

    /// Asks whether to run a shell line, which the user typed after `!`.
    pub(super) fn ask_to_run(&mut self, text: &str, line: &str) {
        if self.attaching.is_some() {
            self.editor.give_back(text, self.is_typed);
            return self.tell("a message waits for its files: try again");
        }
        self.note(not_yet(line));
        self.consent = Some(Consent {
            asks: Asks::Command(line.to_owned()),
            doubts: line.to_owned(),
            shown: None,
        });
    }

    /// Reports the result of a shell line in the log, in place of the notice that it has not run.
    fn renote(&mut self, line: &str, text: &str) {
        let before = [not_yet(line), format!("running: {line}")];
        let is_renoted = before
            .iter()
            .any(|old| self.log.view.replace_notice(old, text));
        if !is_renoted {
            self.note(text.to_owned());
        }
        self.dirty = true;
    }

    /// Adds the output of a shell line to the draft. Nothing is sent.
    pub(super) fn ran(&mut self, line: &str, output: std::io::Result<Output>) {
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                self.renote(line, &format!("not run: {line}"));
                return self.refuse(format!("/bin/sh cannot be started: {error}"));
            }
        };
        let lines = count(output.lines as u64, "line");
        let ended = output.ended.as_deref().unwrap_or("exit status: 0");
        self.renote(line, &format!("ran {line}: {lines}, {ended}"));
        let gap = match self.editor.is_empty() {
            true => "",
            false => "\n\n",
        };
        self.editor.go(Move::End);
        // An @ in the label would name a file.
        let named = line
            .split_once('@')
            .map_or_else(|| line.to_owned(), |(begin, _)| format!("{begin}…"));
        let named = wrap::clip(&clean::line(&named), LABEL_COLUMNS_MAX);
        let label = format!("[output of {named}, {lines}]");
        self.editor
            .paste_as(&format!("{gap}{}\n", output.block), &label);
        let key = self.settings.keys.label(Action::Editor);
        self.tell(match self.editor.text().ends_with(&label) {
            true => format!("the output is in your draft, {key} shows it; nothing is sent yet"),
            false => "the output is in your draft; nothing is sent yet".to_owned(),
        });
    }

    fn decline(&mut self, fx: &mut Vec<Effect>) {
        if let Some(Asks::Command(line)) = self.consent.as_ref().map(|consent| &consent.asks) {
            let line = line.clone();
            self.consent = None;
            self.renote(&line, &format!("not run: {line}"));
            self.put_back(&format!("!{line}"), true);
            return self.tell("not run");
        }
        let next = "not sent; in `backticks`, @NAME is text";
        self.unattached(next.to_owned());
        self.weigh(fx);
        self.post(fx);
    }
}

/// Returns the notice about a shell line that waits for a yes.
fn not_yet(line: &str) -> String {
    format!("not run yet, in this folder: {line}")
}

/// Returns the effect that sends a message whose files are read.
fn sent(way: Option<Way>, body: String) -> Effect {
    match way {
        Some(way) => Effect::Aside(way, Some(body)),
        None => Effect::Send(Op::Say {
            body,
            to: Address::All,
        }),
    }
}
