//! Key handling in the chat: typing, reading, and what Escape means in each state.

use super::{App, Effect, Screen, TWICE};
use crate::compare::Comparison;
use crate::complete::{self, Known};
use crate::editor::Move;
use crate::keymap::{self, Action};
use crate::keys::{Code, Input, Key};
use kd_core::slash::{self, Fork, Line, Part, Slash};
use kd_core::{Message, Op, attached};

impl App {
    pub(super) fn key(
        &mut self,
        key: Key,
        files: &dyn Fn(&str) -> Vec<String>,
        fx: &mut Vec<Effect>,
    ) {
        let mut action = self.settings.keys.action(key);
        if self.reading && action.is_none() {
            action = keymap::reading(key);
            self.reading = action.is_some();
        }
        match action {
            Some(action) => self.act(action, files, fx),
            None => {
                if let Code::Char(c) = key.code
                    && !key.ctrl
                    && !key.alt
                {
                    // A lone question mark opens the help.
                    if c == '?' && self.editor.is_empty() {
                        self.screen = Screen::Help(0);
                        return;
                    }
                    self.editor.insert(c.encode_utf8(&mut [0; 4]));
                    self.complete_anew(files, false);
                }
            }
        }
    }

    fn act(&mut self, action: Action, files: &dyn Fn(&str) -> Vec<String>, fx: &mut Vec<Effect>) {
        let look = self.look();
        let page = i64::from(self.size.1 / 2).max(1);
        let empty = self.editor.is_empty();
        let mut edited = false;
        match action {
            Action::Send => self.enter(files, fx),
            Action::Newline | Action::DeleteBack | Action::DeleteWord => {
                keymap::edit(&mut self.editor, action);
                edited = true;
            }
            Action::Escape => self.escape(fx),
            Action::Interrupt => self.ctrl_c(fx),
            Action::Leave if empty => self.quit(fx),
            Action::Leave => {
                self.editor.delete(Move::Right);
                edited = true;
            }
            Action::Stash => self.stash(),
            Action::Complete | Action::CompleteBack => {
                self.tab(action == Action::CompleteBack, files)
            }
            Action::Up | Action::Down => self.vertical(action == Action::Up),
            Action::Search => {
                self.reading = false;
                self.search = Some(super::Search::default());
            }
            Action::LineStart | Action::LineEnd if !empty => {
                keymap::edit(&mut self.editor, action);
            }
            Action::Left
            | Action::Right
            | Action::WordLeft
            | Action::WordRight
            | Action::DeleteForward
            | Action::DeleteWordForward
            | Action::DeleteToStart
            | Action::DeleteToEnd
            | Action::Yank
            | Action::Undo
            | Action::Redo => {
                keymap::edit(&mut self.editor, action);
            }
            Action::LineStart | Action::Top => {
                let fetch = self.log.go_first(&look);
                fx.extend(fetch.map(|(before, most)| Effect::FetchOlder(before, most)));
            }
            Action::LineEnd | Action::Bottom => self.log.follow(),
            Action::Editor => fx.push(Effect::Edit(self.editor.whole().into_owned())),
            Action::PageUp => self.log.scroll(-page, &look),
            Action::PageDown => self.log.scroll(page, &look),
            Action::LineUp => self.log.scroll(-1, &look),
            Action::LineDown => self.log.scroll(1, &look),
            Action::KingBefore => {
                if !self.log.jump_king(-1, &look) {
                    let fetch = self.log.go_before(&look);
                    fx.extend(fetch.map(|(before, most)| Effect::FetchOlder(before, most)));
                }
            }
            Action::KingAfter => {
                self.log.jump_king(1, &look);
            }
            Action::Focus(n) => self.focus(n),
            Action::Everybody => self.log.set_focus(None),
            Action::Thinking => self.fold_thinking(),
            Action::Retry => {
                self.log.follow();
                self.send(Op::Retry { seat: None }, fx);
            }
            Action::Copy => self.copy(&Part::Last, fx),
            Action::CopyCode => self.copy(&Part::Code, fx),
            Action::MarkRight => fx.push(Effect::Mark("right".to_owned())),
            Action::MarkWrong => fx.push(Effect::Mark("wrong".to_owned())),
            Action::Rewind => self.change(Effect::Fork(Fork::Rewind(1)), fx),
            Action::Read => self.reading = !self.reading,
            Action::Merge => self.merge(),
            Action::Compare => self.compare(None),
            Action::Help => self.screen = Screen::Help(0),
            Action::Redraw => fx.push(Effect::Redraw),
            Action::Suspend => fx.push(Effect::Suspend),
        }
        if edited {
            self.reading = false;
            self.complete_anew(files, false);
        } else if !matches!(
            action,
            Action::Complete | Action::CompleteBack | Action::Up | Action::Down
        ) {
            self.candidates = None;
        }
    }

    pub(super) fn help_input(&mut self, input: &Input) {
        let (Screen::Help(from) | Screen::Keys(from) | Screen::Compare(Comparison { from, .. })) =
            &mut self.screen
        else {
            return;
        };
        match input {
            Input::Wheel(lines) => *from = from.saturating_add_signed(*lines as isize),
            Input::Key(key) => match key.code {
                Code::Up | Code::Char('k') => *from = from.saturating_sub(1),
                Code::Down | Code::Char('j') => *from += 1,
                Code::PageUp => *from = from.saturating_sub(10),
                Code::PageDown | Code::Char(' ') => *from += 10,
                Code::Home => *from = 0,
                _ => self.screen = Screen::Chat,
            },
            _ => {}
        }
    }

    /// Handles Enter: sends, unless a candidate was chosen or the line ends in a backslash.
    fn enter(&mut self, files: &dyn Fn(&str) -> Vec<String>, fx: &mut Vec<Effect>) {
        if self.candidates.as_ref().is_some_and(|c| c.moved) {
            self.accept(files);
            return;
        }
        let cursor = self.editor.cursor();
        if self.editor.text()[..cursor].ends_with('\\') {
            self.editor.replace(cursor - 1..cursor, "\n");
            return;
        }
        if self.editor.text().trim().is_empty() {
            return;
        }
        if self.warns_of_shell() {
            return;
        }
        // Pasted, recalled and edited texts attach nothing.
        let typed = self.editor.typed().to_owned();
        self.is_typed = self.editor.is_typed();
        let mut text = self.editor.take();
        // It runs as typed: nobody but the user's own shell gets it.
        let shell_line = self.shell_line(&text);
        if self.settings.shell && text.starts_with('!') && text.trim().contains('\n') {
            self.editor.give_back(&text, self.is_typed);
            return self.tell("a shell line is one line: without the `!` it is sent as text");
        }
        let masked = self.settings.secrets.mask_in_place(&mut text);
        self.reading = false;
        // The notice was about the previous line.
        self.toast = None;
        if let Some(line) = shell_line {
            fx.push(Effect::Remember(text.clone()));
            return self.ask_to_run(&format!("!{line}"), &line);
        }
        match slash::read(&text) {
            Line::Say(body) => {
                fx.push(Effect::Remember(text.clone()));
                if self.leaving || self.thread.is_none() {
                    self.editor.give_back(&text, self.is_typed);
                    self.tell("this thread takes no more messages");
                    return;
                }
                self.unsaid = Some(text);
                self.log.follow();
                self.say(body, typed, fx);
                if let Some(line) = masked.line() {
                    self.tell(line);
                }
            }
            Line::Slash(slash) => {
                fx.push(Effect::Remember(text.clone()));
                if matches!(
                    slash,
                    Slash::Op(Op::Mute { .. } | Op::Unmute { .. } | Op::Mode { .. })
                ) {
                    self.wished = Some(text);
                }
                self.slash(slash, fx);
            }
            Line::Wrong(why) => {
                self.editor.give_back(&text, self.is_typed);
                self.not_done(why);
            }
        }
    }

    /// Returns the shell line of an input of one line, where the settings allow it. The user is asked about every one, typed
    /// or not.
    fn shell_line(&self, text: &str) -> Option<String> {
        let line = text.strip_prefix('!')?.trim();
        let is_one = !line.is_empty() && !line.contains('\n');
        (self.settings.shell && is_one).then(|| line.to_owned())
    }

    /// Where shell lines are not allowed: says so about an input that looks like one, the first time. Returns whether it did.
    fn warns_of_shell(&mut self) -> bool {
        let text = self.editor.whole().trim_end().to_owned();
        let begins =
            |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || "./~".contains(c));
        let looks_so = text.strip_prefix('!').is_some_and(begins) && !text.contains('\n');
        let warned = self.not_run.take();
        if self.settings.shell || !looks_so || warned.as_ref() == Some(&text) {
            return false;
        }
        self.not_run = Some(text);
        let key = self.settings.keys.label(Action::Send);
        self.tell(format!(
            "! runs nothing (chat.shell is off); {key} again sends it as text"
        ));
        true
    }

    fn escape(&mut self, fx: &mut Vec<Effect>) {
        if self.candidates.take().is_some() {
            return;
        }
        if self.leaving {
            fx.push(Effect::Leave);
        } else if self.reading {
            self.reading = false;
        } else if self.can_stop() {
            self.stop(fx);
        } else if self.has_just_stopped() {
            // An extra press should not discard the draft.
        } else if !self.editor.is_empty() {
            self.clear();
        } else if self.log.focus.is_some() {
            self.log.set_focus(None);
        } else {
            self.edit_last(fx);
        }
    }

    /// At the second press: continues in a fork without the user's last message, which goes into the input.
    fn edit_last(&mut self, fx: &mut Vec<Effect>) {
        let asked = |m: &&Message| m.is_king() && !m.is_choice(self.log.newest_first());
        let Some(last) = self.log.newest_first().find(asked) else {
            return;
        };
        // Attached files are read again.
        let typed = self.as_typed(&last.body);
        let said = typed
            .unwrap_or_else(|| attached::typed(&last.body))
            .to_owned();
        let seq = last.seq;
        if self.editing.take().is_none_or(|until| until <= self.now) {
            self.editing = self.now.checked_add(TWICE).ok();
            let key = self.settings.keys.label(Action::Escape);
            let place = if seq == 1 { "new thread" } else { "fork" };
            return self.tell(format!("{key} again: edit your last message, in a {place}"));
        }
        let before = fx.len();
        match seq {
            // Before the first message there is nothing to fork.
            1 => self.go_to(None, fx),
            _ => self.change(Effect::Fork(Fork::Before(seq)), fx),
        }
        if fx.len() > before {
            self.editor.set(&said);
        }
    }

    /// Puts the draft aside, or takes it back.
    fn stash(&mut self) {
        self.reading = false;
        let was_empty = self.editor.is_empty();
        let key = self.settings.keys.label(Action::Stash);
        let came_back = self.editor.stash();
        self.tell(match (was_empty, came_back) {
            (true, true) => "your draft is back".to_owned(),
            (true, false) => "there is no draft to put aside".to_owned(),
            (false, true) => format!("this is the other draft; {key} changes them"),
            (false, false) => format!("put aside; {key} brings it back, and so does sending"),
        });
    }

    /// Stops the members, whatever waits for its files. Keeps the draft.
    pub(super) fn stop(&mut self, fx: &mut Vec<Effect>) {
        self.stopped = Some(self.now);
        self.send_at_once(Op::Interrupt, fx);
    }

    /// Sends an op before a message that waits for its files.
    fn send_at_once(&mut self, op: Op, fx: &mut Vec<Effect>) {
        match self.attaching.is_some() {
            true => fx.push(Effect::Send(op)),
            false => self.send(op, fx),
        }
    }

    fn has_just_stopped(&self) -> bool {
        self.stopped
            .is_some_and(|at| crate::panels::since(at, self.now) < TWICE)
    }

    fn clear(&mut self) {
        self.editor.clear();
        let undo = self.settings.keys.label(Action::Undo);
        self.tell(format!("cleared; {undo} brings it back"));
    }

    fn ctrl_c(&mut self, fx: &mut Vec<Effect>) {
        self.candidates = None;
        if self.leaving || self.armed.is_some() {
            self.interrupted = true;
            fx.push(Effect::Leave);
        } else if !self.editor.is_empty() {
            self.clear();
        } else {
            if self.can_stop() {
                // What is queued comes back into the input: only Esc sends it.
                self.send_at_once(Op::TakeBack, fx);
                self.stop(fx);
            }
            self.armed = self.now.checked_add(TWICE).ok();
        }
    }

    pub(super) fn quit(&mut self, fx: &mut Vec<Effect>) {
        if self.leaving || !self.ready || self.changing {
            fx.push(Effect::Leave);
            return;
        }
        self.keep_unsent();
        self.leaving = true;
        fx.push(Effect::Close);
    }

    fn vertical(&mut self, up: bool) {
        if let Some(candidates) = &mut self.candidates {
            let n = candidates.list.len();
            candidates.chosen = (candidates.chosen + if up { n - 1 } else { 1 }) % n;
            candidates.moved = true;
            return;
        }
        let step = if up { -1 } else { 1 };
        let columns = self.input_columns();
        if !self.editor.vertical(step, columns) {
            self.editor.recall(step);
        }
    }

    fn tab(&mut self, back: bool, files: &dyn Fn(&str) -> Vec<String>) {
        if self.editor.is_empty() {
            let keys = &self.settings.keys;
            let (tab, read) = (keys.label(Action::Complete), keys.label(Action::Read));
            self.tell(format!(
                "{tab} completes @member, /command and @file; {read} reads"
            ));
            return;
        }
        if self.candidates.is_none() {
            self.complete_anew(files, true);
        }
        let Some(candidates) = &mut self.candidates else {
            return;
        };
        if back {
            self.vertical(true);
            return;
        }
        // First complete the common prefix, then the chosen candidate.
        let common = common(candidates.list.iter().map(|(c, _)| c.as_str()));
        let written = &self.editor.text()[candidates.range.clone()];
        let extends = common.len() > written.len() && common.starts_with(written);
        if candidates.list.len() > 1 && extends && !candidates.moved {
            let range = candidates.range.clone();
            self.editor.replace(range, &common);
            self.complete_anew(files, true);
        } else {
            self.accept(files);
        }
    }

    fn accept(&mut self, files: &dyn Fn(&str) -> Vec<String>) {
        let Some(candidates) = self.candidates.take() else {
            return;
        };
        if let Some((chosen, _)) = candidates.list.get(candidates.chosen) {
            // A folder path continues; everything else is a complete word.
            let space = if chosen.ends_with('/') { "" } else { " " };
            self.editor
                .replace(candidates.range, &format!("{chosen}{space}"));
            if space.is_empty() {
                self.complete_anew(files, true);
            }
        }
    }

    /// Recomputes the candidates; files are looked up only when needed.
    pub(super) fn complete_anew(&mut self, files: &dyn Fn(&str) -> Vec<String>, asked: bool) {
        let none = |_: &str| Vec::new();
        let known = Known {
            members: &self.members,
            modes: &self.settings.modes,
            files: if asked { files } else { &none },
        };
        self.candidates = complete::candidates(self.editor.text(), self.editor.cursor(), &known);
    }

    fn focus(&mut self, n: u8) {
        match self.members.get(usize::from(n) - 1) {
            Some(seat) if self.log.focus.as_ref() != Some(seat) => {
                self.log.set_focus(Some(seat.clone()))
            }
            Some(_) => self.log.set_focus(None),
            None => self.tell(format!("there is no member {n}")),
        }
    }

    pub(super) fn fold_thinking(&mut self) {
        self.unfolded = !self.unfolded;
        self.tell(if self.unfolded {
            "shown in full"
        } else {
            "folded"
        });
    }
}

/// Returns the longest common prefix.
fn common<'a>(mut words: impl Iterator<Item = &'a str>) -> String {
    let mut common = words.next().unwrap_or_default().to_owned();
    for word in words {
        while !word.starts_with(&common) {
            common.pop();
        }
    }
    common
}
