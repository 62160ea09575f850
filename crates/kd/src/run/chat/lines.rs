//! The effect of a line of input: a message, a command, or a refusal with a reason.

use super::keyboard::{Input, Typed};
use super::naming::Answer;
use super::{Next, OFFERED, Room, Stay, offer};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::chat::{ChatLines, mode_line};
use crate::run::fork;
use kd_app::Session;
use kd_app::export::{self, Format};
use kd_app::threads::Thread;
use kd_core::protocols::PROTOCOLS;
use kd_core::slash::{self, Line, Seating, Slash, Way};
use kd_core::{Address, Aside, Op, Roster, SeatName};
use std::path::Path;
use tokio::runtime::Handle;

/// The notice about a message whose files the user does not attach.
const UNSENT: &str = "not sent; in `backticks`, @NAME is text";

impl Room<'_> {
    /// Prepares an aside that answers a question in another way. Members that another window has removed are not planned.
    fn aside(
        &self,
        way: Way,
        question: Option<String>,
        folder: &Path,
        roster: &Roster,
        session: &Session,
    ) -> Result<Aside, Error> {
        let thread = Thread::open_folder(folder)?;
        let planned = || {
            let view = Handle::current().block_on(session.follow_members())?;
            let muted: Vec<SeatName> = view.muted.into_iter().collect();
            let what = (way, question);
            Ok(self.chat.aside_in(&thread, roster, what, &muted, false)?)
        };
        tokio::task::block_in_place(planned)
    }

    /// Handles a line the user typed. An error refuses the line and changes nothing.
    pub(super) fn line(
        &self,
        typed: &Typed,
        session: &Session,
        roster: &Roster,
        folder: &Path,
        face: &mut ChatLines,
        stay: &mut Stay,
    ) {
        if let Err(error) = self.read(typed, session, roster, folder, face, stay) {
            let why = self.numbered(typed, &error.as_line());
            stay.show(|out| face.refuse(&why, out));
        }
    }

    /// Returns why a line is refused; for a program, with its number.
    fn numbered(&self, typed: &Typed, why: &str) -> String {
        match self.args.jsonl {
            true => format!("line {}: {why}", typed.number),
            false => why.to_owned(),
        }
    }

    fn read(
        &self,
        typed: &Typed,
        session: &Session,
        roster: &Roster,
        folder: &Path,
        face: &mut ChatLines,
        stay: &mut Stay,
    ) -> Result<(), Error> {
        let read = match self.args.jsonl {
            true => typed.driven(),
            false => typed.said(),
        };
        let (said, is_said) = match read {
            Ok(Input::Said(said)) => (said, true),
            Ok(Input::Typed(line)) => (line, false),
            Ok(Input::Nothing) => return Ok(()),
            Err(why) => {
                let why = self.numbered(typed, &why);
                stay.show(|out| face.refuse(&why, out));
                return Ok(());
            }
        };
        let (line, masked) = self.chat.secrets().mask(&said);
        if let Some(text) = masked.line() {
            stay.show(|out| face.kd(&text, out));
        }
        let mut agreed = false;
        let read = match stay.answer(&line, typed).filter(|_| !is_said) {
            Some(Answer::Yes(line)) => {
                agreed = true;
                line
            }
            Some(Answer::No) => {
                stay.show(|out| face.kd(UNSENT, out));
                return Ok(());
            }
            other => {
                if other.is_some() {
                    stay.show(|out| face.kd(UNSENT, out));
                }
                match is_said {
                    true => Line::Say(line.trim().to_owned()),
                    false => slash::read(&line),
                }
            }
        };
        let slash = match read {
            Line::Say(body) if body.is_empty() => {
                if is_said {
                    let why = self.numbered(typed, "an empty message is not sent");
                    stay.show(|out| face.refuse(&why, out));
                }
                return Ok(());
            }
            Line::Say(_) if stay.ending => {
                let why = "quitting after the running turns: /quit again quits at once";
                let why = self.numbered(typed, why);
                stay.show(|out| face.refuse(&why, out));
                return Ok(());
            }
            Line::Say(body) => {
                let said = match is_said {
                    // A program may pass on words of others.
                    true => Some(body),
                    false => self.attached((None, body), agreed, roster, face, stay)?,
                };
                let Some(body) = said else {
                    return Ok(());
                };
                session.send(Op::Say {
                    body: body.clone(),
                    to: Address::All,
                })?;
                face.send(&body);
                return Ok(());
            }
            Line::Wrong(why) => {
                let why = self.numbered(typed, &why);
                stay.show(|out| face.refuse(&why, out));
                return Ok(());
            }
            Line::Slash(slash) => slash,
        };
        let mut told: Vec<String> = Vec::new();
        let mut refused: Vec<String> = Vec::new();
        match slash {
            Slash::Op(op) => {
                let told_when_done = matches!(
                    op,
                    Op::Mute { .. }
                        | Op::Unmute { .. }
                        | Op::Mode { .. }
                        | Op::Auto { .. }
                        | Op::Choose { .. }
                );
                if let Op::Mute { seat } = &op {
                    stay.muted.insert(seat.clone());
                } else if let Op::Unmute { seat } = &op {
                    stay.muted.remove(seat);
                }
                match session.send(op) {
                    Ok(()) if told_when_done => face.wish(),
                    Ok(()) => {}
                    Err(error) => refused.push(error.to_string()),
                }
            }
            Slash::ShowMode => {
                let mode = face.view.mode.clone().unwrap_or_default();
                told.push(mode_line(&mode, face.view.auto_messages));
                told.extend(
                    PROTOCOLS
                        .iter()
                        .map(|kind| format!("{}: {}", kind.name, kind.doc)),
                );
            }
            Slash::ShowAuto => {
                let mode = face.view.mode.clone().unwrap_or_default();
                told.push(mode_line(&mode, face.view.auto_messages));
            }
            Slash::Members => {
                let speaks: Vec<_> = face.view.growing_turns().map(|g| g.seat.clone()).collect();
                for member in roster.members() {
                    let mut parts = vec![member.backend.clone()];
                    parts.extend(member.model.clone());
                    parts.extend(member.role.clone());
                    if face.view.muted.contains(&member.name) {
                        parts.push("muted".to_owned());
                    }
                    if speaks.contains(&member.name) {
                        parts.push("speaks now".to_owned());
                    }
                    told.push(format!("{}: {}", member.name, parts.join(", ")));
                }
            }
            Slash::Thread(Some(_)) | Slash::New | Slash::Fork(_) | Slash::Seat(_)
                if !face.is_idle() =>
            {
                refused.push("members are speaking: wait for them, or /stop first".to_owned());
            }
            Slash::Thread(None) => {
                told.extend(offer(&self.chat.recent(OFFERED)?));
                told.push("/thread ID switches to it; /new starts another".to_owned());
            }
            Slash::Thread(Some(id)) => match self.chat.find(Some(&id)) {
                Ok(place) => stay.go_to(session, Next::Thread(place), &face.view),
                Err(error) => refused.push(error.as_line()),
            },
            Slash::New => stay.go_to(session, Next::New, &face.view),
            Slash::Seat(change) => {
                let thread = Thread::open_folder(folder)?;
                // The member may have to be downloaded.
                let reseat = || self.chat.reseat(&thread, &change, false);
                match tokio::task::block_in_place(reseat) {
                    Ok(line) => {
                        told.push(line);
                        let mut kept = face.view.clone();
                        if let Seating::Add(name) = &change {
                            // It may be muted because another window had removed it.
                            kept.muted.remove(name);
                            stay.muted.remove(name);
                        }
                        stay.kept = Some(kept);
                        let place = self.chat.find(Some(&thread.id().0))?;
                        stay.end(session, Next::Thread(place));
                    }
                    Err(error) => refused.push(error.as_line()),
                }
            }
            Slash::Fork(wanted) => {
                let thread = Thread::open_folder(folder)?;
                match self.chat.fork_of(&thread, wanted) {
                    Ok(forked) => {
                        told.extend(fork::told(&forked, &[]));
                        let place = self.chat.find(Some(&forked.id().0))?;
                        stay.go_to(session, Next::Thread(place), &face.view);
                    }
                    Err(error) => refused.push(error.as_line()),
                }
            }
            Slash::Mark(word) => {
                let thread = Thread::open_folder(folder)?;
                match self.chat.mark_in(&thread, &word, &face.view.report) {
                    Ok(marked) => told.push(marked.line()),
                    Err(error) => refused.push(error.as_line()),
                }
            }
            Slash::Export(None) if self.args.jsonl => {
                let what =
                    "the thread is no line of JSON: /export and a file's name writes it there";
                refused.push(what.to_owned());
            }
            Slash::Export(file) => told.push(write_out(&self.chat, folder, file.as_deref(), stay)?),
            Slash::Aside(..) if stay.ending => {
                refused
                    .push("quitting after the running turns: /quit again quits at once".to_owned());
            }
            Slash::Aside(way, question) => {
                let question = match question {
                    Some(question) if !self.args.jsonl => {
                        let question = (Some(way), question);
                        match self.attached(question, agreed, roster, face, stay)? {
                            Some(question) => Some(question),
                            None => return Ok(()),
                        }
                    }
                    question => question,
                };
                match self.aside(way, question, folder, roster, session) {
                    Ok(aside) => {
                        let question = aside.says().map(str::to_owned);
                        session.aside(aside)?;
                        if let Some(question) = question {
                            face.send(&question);
                        }
                    }
                    Err(error) => refused.push(error.as_line()),
                }
            }
            Slash::Copy(_) | Slash::Compare(_) | Slash::Merge | Slash::Keys | Slash::Thinking => {
                refused.push("that needs a screen: start `kd chat` without --plain".to_owned());
            }
            Slash::Help => {
                told.extend(slash::help(false));
                told.push("@member asks one, @all asks all and lets them discuss, @PATH attaches a file; a \\ at the end of a line continues it".to_owned());
            }
            Slash::Quit if stay.ending => {
                // If it has already ended, that is what the user wants.
                let _ = session.send(Op::Interrupt);
            }
            Slash::Quit => {
                if face.view.is_busy() {
                    told.push(
                        "quitting after the running turns; /quit again quits at once".to_owned(),
                    );
                }
                stay.end(session, Next::Out(Exit::Done));
            }
        }
        stay.show(|out| {
            let mut refused = refused.iter().map(|why| self.numbered(typed, why));
            refused.try_for_each(|why| face.refuse(&why, out))?;
            told.iter().try_for_each(|line| face.kd(line, out))
        });
        Ok(())
    }
}

/// Returns whether a line requests something that can only start, or is only clear, when the members have answered.
pub(super) fn waits(line: &str, face: &ChatLines) -> bool {
    let Line::Slash(slash) = slash::read(line) else {
        return false;
    };
    match slash {
        Slash::Aside(..)
        | Slash::Op(Op::Choose { .. })
        | Slash::Fork(_)
        | Slash::Mark(_)
        | Slash::Seat(_)
        | Slash::New
        | Slash::Thread(Some(_)) => !face.is_idle(),
        // It is about the messages after it, not about those that wait.
        Slash::Op(Op::Mute { .. } | Op::Unmute { .. }) => !face.view.waiting.is_empty(),
        _ => false,
    }
}

/// Exports the thread to a file, or shows it.
fn write_out(
    chat: &kd_app::Chat,
    folder: &Path,
    file: Option<&str>,
    stay: &mut Stay,
) -> Result<String, Error> {
    let open = Thread::open_folder(folder)?;
    let Some(path) = file.map(Path::new) else {
        let text = export::text(&open, Format::Md, chat.kingdom().env())?;
        stay.show(|out| out.write_all(text.as_bytes()).and_then(|()| out.flush()));
        return Ok(
            "that is the thread as Markdown; /export and a file's name writes it there".to_owned(),
        );
    };
    Ok(match chat.export_to(&open, path) {
        Ok(()) => format!("written to {}", path.display()),
        Err(error) => Error::from(error).to_string(),
    })
}
