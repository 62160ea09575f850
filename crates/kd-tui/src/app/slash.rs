//! Slash commands, as far as the screen handles them.

use super::{App, Effect, Naming, Screen};
use crate::clipboard;
use crate::compare::Comparison;
use crate::merge::Merge;
use crate::text::clean;
use kd_app::words::count;
use kd_core::slash::{Part, Seating, Slash};
use kd_core::{Event, Message, Op, SeatName};

impl App {
    #[deny(clippy::wildcard_enum_match_arm)]
    pub(super) fn slash(&mut self, slash: Slash, fx: &mut Vec<Effect>) {
        match slash {
            Slash::Op(Op::Interrupt) if !self.can_stop() => {
                self.not_done("nobody is speaking: there is nothing to stop");
            }
            Slash::Op(Op::Interrupt) => self.stop(fx),
            Slash::Op(op) => {
                if let Op::Mute { seat } = &op {
                    self.muted.insert(seat.clone());
                } else if let Op::Unmute { seat } = &op {
                    self.muted.remove(seat);
                }
                self.log.follow();
                self.send(op, fx);
            }
            Slash::ShowMode => {
                let mode = self.log.view.mode.as_deref().unwrap_or("from the settings");
                let modes = self.settings.modes.join(", ");
                self.note(format!(
                    "mode: {mode} (of {modes}); /mode <name> changes it for this session"
                ));
            }
            Slash::ShowAuto => {
                let auto = self
                    .log
                    .view
                    .auto_messages
                    .map_or_else(|| "default of the mode".to_owned(), |n| n.to_string());
                self.note(format!(
                    "turns after the answers: {auto}; /auto N changes it for this session"
                ));
            }
            Slash::Members => self.note(self.members_told()),
            Slash::Seat(change) => {
                self.added = match &change {
                    Seating::Add(name) => Some(name.clone()),
                    Seating::Remove(_) => None,
                };
                self.change(Effect::Seat(change), fx);
            }
            Slash::Thread(None) => fx.push(Effect::ListThreads),
            Slash::Thread(Some(id)) => self.go_to(Some(id), fx),
            Slash::New => self.go_to(None, fx),
            Slash::Fork(fork) => self.change(Effect::Fork(fork), fx),
            Slash::Copy(part) => self.copy(&part, fx),
            Slash::Export(file) => fx.push(Effect::Export(file)),
            Slash::Aside(way, question) => {
                self.log.follow();
                match question {
                    None => self.put(Effect::Aside(way, None), fx),
                    Some(body) => {
                        // What was not typed as a whole attaches nothing.
                        let typed = if self.is_typed {
                            body.clone()
                        } else {
                            String::new()
                        };
                        let way = Some(way);
                        self.name(Naming { body, typed, way }, fx);
                    }
                }
            }
            Slash::Mark(word) => fx.push(Effect::Mark(word)),
            Slash::Compare(names) => self.compare(names),
            Slash::Merge => self.merge(),
            Slash::Keys => self.screen = Screen::Keys(0),
            Slash::Thinking => self.fold_thinking(),
            Slash::Help => self.screen = Screen::Help(0),
            Slash::Quit => self.quit(fx),
        }
    }

    /// Adds a line to the log that is not part of the thread.
    pub(super) fn note(&mut self, text: String) {
        self.log.follow();
        self.log.view.fold(&Event::Noticed { text });
        self.dirty = true;
    }

    fn members_told(&self) -> String {
        let view = &self.log.view;
        let look = self.look();
        let mut lines = vec!["members:".to_owned()];
        for (i, member) in self.members.iter().enumerate() {
            let (mark, _) = look.speaker(member.as_str());
            let mut line = format!("  {} {mark} {member}", i + 1);
            if view.muted.contains(member) {
                line.push_str(" (muted: not asked)");
            }
            if let Some((_, why)) = self.absent.iter().find(|(absent, _)| absent == member) {
                line.push_str(&format!(" (absent: {why})"));
            }
            if view.growing_turns().any(|g| &g.seat == member) {
                line.push_str(" (speaks)");
            }
            if let Some(used) = view.usage_by_seat.get(member) {
                line.push_str(&format!(", {} out", count(used.output_tokens, "token")));
            }
            lines.push(line);
        }
        for (member, why) in &self.disabled {
            let (mark, _) = look.speaker(member.as_str());
            lines.push(format!("  - {mark} {member} (disabled: {why})"));
        }
        lines.join("\n")
    }

    /// Returns the newest answer of each member since your last question, in order.
    fn answers(&self) -> Vec<&Message> {
        let round = self
            .log
            .newest_first()
            .take_while(|m| !m.is_king() || m.is_choice(self.log.newest_first()));
        let mut answers: Vec<&Message> = Vec::new();
        for message in round.filter(|m| !m.is_king() && m.is_sound() && !m.is_pass()) {
            if answers.iter().all(|a| a.from != message.from) {
                answers.push(message);
            }
        }
        answers.reverse();
        answers
    }

    pub(super) fn compare(&mut self, names: Option<(SeatName, SeatName)>) {
        let sides = match &names {
            None => match self.answers().as_slice() {
                [.., one, other] => Ok([*one, *other]),
                _ => Err(
                    "two members have to answer first: /compare A B takes older answers".to_owned(),
                ),
            },
            Some((one, other)) => {
                let newest = |name: &SeatName| {
                    let of = |m: &&Message| m.from == name.as_str() && m.is_sound() && !m.is_pass();
                    let found = self.log.newest_first().find(of);
                    found.ok_or_else(|| format!("there is no answer of {name}"))
                };
                newest(one).and_then(|one| Ok([one, newest(other)?]))
            }
        };
        match sides.map(|sides| sides.map(|m| (m.from.clone(), clean::text(&m.body).into_owned())))
        {
            Ok(sides) => self.screen = Screen::Compare(Comparison::new(sides)),
            Err(why) if names.is_some() => self.not_done(why),
            Err(why) => self.tell(why),
        }
    }

    pub(super) fn merge(&mut self) {
        let answers = self.answers();
        let merge = Merge::new(answers.iter().map(|m| (m.from.as_str(), &*m.body)));
        match merge.pieces().is_empty() {
            true => self.tell("there are no answers to your last message yet"),
            false => self.screen = Screen::Merge(merge),
        }
    }

    pub(super) fn copy(&mut self, part: &Part, fx: &mut Vec<Effect>) {
        let answer = |m: &&Message| !m.is_king() && m.is_sound();
        let found = match part {
            Part::Last => self
                .log
                .newest_first()
                .find(answer)
                .map(|m| (m.body.to_string(), format!("the answer of {}", m.from))),
            Part::Of(seat) => self
                .log
                .newest_first()
                .filter(answer)
                .find(|m| m.from == seat.as_str())
                .map(|m| (m.body.to_string(), format!("the answer of {}", m.from))),
            Part::Code => self.log.newest_first().find_map(|m| {
                clipboard::last_code(&m.body).map(|code| (code, format!("the code of {}", m.from)))
            }),
            Part::All => {
                let mut all: Vec<String> = self
                    .log
                    .newest_first()
                    .map(|m| format!("## {}\n\n{}\n", m.from, m.body.trim_end()))
                    .collect();
                all.reverse();
                (!all.is_empty()).then(|| (all.join("\n"), count(all.len() as u64, "message")))
            }
        };
        match found {
            Some((text, what)) => fx.push(Effect::Copy(text, what)),
            None => self.tell("there is nothing to copy yet"),
        }
    }
}
