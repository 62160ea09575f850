//! The state of the forum screen and its transitions. Pure: no clock, no terminal, no store.

use super::keys::{self, Act, View};
use super::sheet::Sheet;
use super::writing::{Next, Writing};
use super::{Deed, Done, Found, Item, Looks, PAGE, Wants};
use crate::editor::{Editor, Move};
use crate::keymap::{self, Action};
use crate::keys::{Code, Key};
use crate::run::EditError;
use crate::text::clean;
use kd_app::UserError;
use kd_forum::order::Order;
use kd_forum::words::{Hit, Thread};
use std::collections::BTreeMap;

/// Threads listed at first, and how many more to load when the last ones are near.
const LISTED: i64 = 200;
const NEAR: usize = 50;

/// The side that keys move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    List,
    Text,
}

/// An action for the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Effect {
    Nothing,
    /// Perform an action in the forum.
    Do(Deed),
    /// Read immediately what is wanted now.
    Look,
    /// Edit a text in the user's editor.
    Edit(String),
    /// Copy a text; the second string names it.
    Copy(String, String),
    Redraw,
    Suspend,
    Leave,
}

/// A search and its hits.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) words: String,
    pub(super) hits: Option<Vec<Hit>>,
    pub(super) at: usize,
}

/// The state of the screen.
#[derive(Debug)]
pub struct Reader {
    pub(super) forum: String,
    pub(super) looks: Looks,
    pub(super) view: View,
    pub(super) side: Side,
    pub(super) threads: Vec<Thread>,
    pub(super) counts: (i64, i64),
    pub(super) open_motions: usize,
    pub(super) me: (String, String),
    /// The open thread and its details.
    pub(super) chosen: Option<i64>,
    pub(super) thread: Option<Thread>,
    pub(super) sheet: Sheet,
    /// A post to go to once it is loaded.
    goal: Option<i64>,
    pub(super) search: Option<Search>,
    /// Motions or members, and the chosen one.
    pub(super) items: Vec<Item>,
    keys: BTreeMap<u8, String>,
    /// Text of a view without a list, or of the chosen item, and its scroll position.
    pub(super) text: Vec<String>,
    pub(super) text_top: usize,
    pub(super) text_lines: usize,
    pub(super) rows: usize,
    /// The last post and the number of posts of each thread when it was last read.
    read: BTreeMap<i64, (i64, i64)>,
    listed: i64,
    pub(super) writing: Option<Writing>,
    pub(super) editor: Editor,
    /// The input sent and not confirmed yet.
    sent: Option<(Writing, String)>,
    pub(super) told: Option<String>,
    /// The reason why the store could not be read.
    pub(super) broken: Option<String>,
    pub(super) help: Option<usize>,
    pub(super) opened: bool,
    /// Columns of the input.
    pub(super) columns: usize,
}

impl Reader {
    /// Creates a screen that has read nothing yet.
    pub fn new(forum: &str, looks: Looks) -> Self {
        Self {
            forum: forum.to_owned(),
            looks,
            view: View::Threads,
            side: Side::List,
            threads: Vec::new(),
            counts: (0, 0),
            open_motions: 0,
            me: Default::default(),
            chosen: None,
            thread: None,
            sheet: Sheet::new(),
            goal: None,
            search: None,
            items: Vec::new(),
            keys: BTreeMap::new(),
            text: Vec::new(),
            text_top: 0,
            text_lines: 0,
            rows: 1,
            read: BTreeMap::new(),
            listed: LISTED,
            writing: None,
            editor: Editor::default(),
            sent: None,
            told: None,
            broken: None,
            help: None,
            opened: false,
            columns: 20,
        }
    }

    /// Returns the data that have to be read for the screen.
    pub fn wants(&self) -> Wants {
        let reads = self.view == View::Threads;
        Wants {
            view: self.view,
            threads: self.listed,
            search: self.search.as_ref().map(|s| s.words.clone()),
            thread: self.chosen.filter(|_| reads),
            after: self.sheet.last(),
            again: self.sheet.seen().filter(|_| reads),
        }
    }

    /// Takes over what was found for `wants`. Returns true if anything is new.
    pub fn learn(&mut self, wants: &Wants, found: Result<Found, UserError>) -> bool {
        let found = match found {
            Ok(found) => found,
            Err(why) => {
                let why = why.as_line();
                let new = self.broken.as_ref() != Some(&why);
                self.broken = Some(why);
                return new;
            }
        };
        let mut new = self.broken.take().is_some() || !self.opened;
        new |= self.threads != found.threads || self.counts != found.counts || self.me != found.me;
        new |= self.open_motions != found.open_motions;
        if !self.opened {
            // Threads that existed when the user arrived are not new.
            let seen = |t: &Thread| (t.id, (t.last_post_id, t.post_count));
            self.read = found.threads.iter().map(seen).collect();
            self.opened = true;
        }
        self.threads = found.threads;
        self.counts = found.counts;
        self.open_motions = found.open_motions;
        self.me = found.me;
        if let (Some((words, hits)), Some(search)) = (found.hits, &mut self.search)
            && search.words == words
            && search.hits.as_ref() != Some(&hits)
        {
            let first = search.hits.is_none();
            search.at = search.at.min(hits.len().saturating_sub(1));
            search.hits = Some(hits);
            new = true;
            if first {
                self.step_list(0);
            }
        }
        if wants.view == self.view {
            new |= self.items != found.items || self.text != found.text;
            self.items = found.items;
            self.text = found.text;
        }
        self.sheet.hidden.extend(found.hidden);
        new |= self.learn_posts(wants, found.thread, found.posts, found.again);
        if self.chosen.is_none() && self.search.is_none() {
            let first = self.threads.first().map(|t| t.id);
            self.choose(first);
        }
        new
    }

    fn learn_posts(
        &mut self,
        wants: &Wants,
        thread: Option<Thread>,
        posts: Vec<kd_forum::words::Post>,
        again: Vec<kd_forum::words::Post>,
    ) -> bool {
        // The look was for another thread than the one now chosen.
        if wants.thread.is_none() || wants.thread != self.chosen {
            return false;
        }
        let Some(thread) = thread else {
            // The thread was deleted.
            self.choose(None);
            self.side = Side::List;
            return true;
        };
        let mut new = self.thread.as_ref() != Some(&thread);
        new |= self.sheet.learn(posts, again);
        if self.goal.is_some_and(|goal| self.sheet.find(goal)) {
            self.goal = None;
            new = true;
        }
        self.read
            .insert(thread.id, (self.sheet.last(), self.sheet.count()));
        self.thread = Some(thread);
        new
    }

    /// Returns whether the thread has more posts than one look returns, so that the next look can follow at once.
    pub(super) fn has_more(&self, wants: &Wants, found: &Result<Found, UserError>) -> bool {
        wants.thread == self.chosen && found.as_ref().is_ok_and(|f| f.posts.len() as i64 == PAGE)
    }

    /// Returns the number of posts added to a thread since it was last read.
    pub(super) fn fresh(&self, thread: &Thread) -> i64 {
        match self.read.get(&thread.id) {
            Some((last, _)) if *last >= thread.last_post_id => 0,
            Some((_, count)) => (thread.post_count - count).max(1),
            None => thread.post_count.max(1),
        }
    }

    pub(super) fn place(&self, id: i64) -> Option<usize> {
        self.threads.iter().position(|t| t.id == id)
    }

    /// Returns the index of this view's chosen item.
    pub(super) fn item_at(&self) -> usize {
        let key = self.keys.get(&(self.view as u8));
        let at = key.and_then(|key| self.items.iter().position(|i| i.key == *key));
        at.unwrap_or(0)
    }

    fn item(&self) -> Option<&Item> {
        self.items.get(self.item_at())
    }

    fn choose(&mut self, id: Option<i64>) {
        if self.chosen != id {
            self.chosen = id;
            self.thread = None;
            self.sheet = Sheet::new();
            self.goal = None;
        }
    }

    fn choose_item(&mut self, at: usize) {
        if let Some(item) = self.items.get(at) {
            self.keys.insert(self.view as u8, item.key.clone());
            self.text_top = 0;
        }
    }

    /// Handles a key.
    pub fn key(&mut self, key: Key) -> Effect {
        if let Some(from) = &mut self.help {
            match keys::act(key) {
                Some(Act::Up) => *from = from.saturating_sub(1),
                Some(Act::Down) => *from += 1,
                Some(Act::PageUp) => *from = from.saturating_sub(10),
                Some(Act::PageDown) => *from += 10,
                Some(Act::Top) => *from = 0,
                _ => self.help = None,
            }
            return Effect::Nothing;
        }
        if self.writing.is_some() {
            return self.write(key);
        }
        self.told = None;
        match keys::act(key) {
            Some(act) => self.act(act),
            None => Effect::Nothing,
        }
    }

    fn act(&mut self, act: Act) -> Effect {
        let before = (self.chosen, self.view);
        match act {
            Act::Up => self.step(-1),
            Act::Down => self.step(1),
            Act::PageUp => self.page(-1),
            Act::PageDown => self.page(1),
            Act::Top => self.end(false),
            Act::Bottom => self.end(true),
            Act::In => self.side = Side::Text,
            Act::Back if self.side == Side::Text => self.side = Side::List,
            Act::Back => self.search = None,
            Act::Side => {
                self.side = match self.side {
                    Side::List => Side::Text,
                    Side::Text => Side::List,
                }
            }
            Act::PostAfter | Act::PostBefore if self.view == View::Threads => {
                self.side = Side::Text;
                if !self.sheet.step(if act == Act::PostAfter { 1 } else { -1 }) {
                    self.tell("there is no further post");
                }
            }
            Act::PostAfter => self.step_list(1),
            Act::PostBefore => self.step_list(-1),
            Act::View(view) => self.show(view),
            Act::Search => {
                self.show(View::Threads);
                self.begin(Writing::Search, "");
            }
            Act::Help => self.help = Some(0),
            Act::Redraw => return Effect::Redraw,
            Act::Suspend => return Effect::Suspend,
            Act::Leave => return Effect::Leave,
            Act::Copy => return self.copy(),
            Act::Unfold => self.sheet.unfold(),
            Act::Undo => self.begin(Writing::Undo, "last"),
            Act::Write
            | Act::Reply
            | Act::Quote
            | Act::Edit
            | Act::Vote
            | Act::Confirm
            | Act::Refuse
            | Act::Close
            | Act::Role => self.begin_to(act),
        }
        if (self.chosen, self.view) == before {
            Effect::Nothing
        } else {
            Effect::Look
        }
    }

    fn show(&mut self, view: View) {
        if self.view != view {
            self.view = view;
            self.items.clear();
            self.text.clear();
            self.text_top = 0;
            self.side = if view.has_list() {
                Side::List
            } else {
                Side::Text
            };
        }
    }

    /// Starts writing for a key's action, if it applies to something.
    fn begin_to(&mut self, act: Act) {
        let post = self.sheet.chosen().cloned();
        let motion = self.item().and_then(|item| item.key.parse().ok());
        match (self.view, act) {
            (View::Motions, Act::Write) => self.begin(Writing::Motion, ""),
            (View::Motions, Act::Vote | Act::Confirm | Act::Refuse) => match (motion, act) {
                (Some(motion), Act::Vote) => self.begin(Writing::Vote { motion }, ""),
                (Some(motion), Act::Confirm) => self.begin(Writing::Confirm { motion }, ""),
                (Some(motion), _) => self.begin(Writing::Veto { motion }, ""),
                (None, _) => self.tell("there is no motion"),
            },
            (View::Members, Act::Refuse | Act::Role) => match (self.item(), act) {
                (Some(item), Act::Role) => {
                    let name = item.key.clone();
                    self.begin(Writing::Role { name }, "");
                }
                (Some(item), _) => {
                    let (name, banned) = (item.key.clone(), item.note == "banned");
                    let called = match banned {
                        true => format!("unban {name}"),
                        false => format!("ban {name}"),
                    };
                    self.order(Order::ban(&name, !banned), called);
                }
                (None, _) => self.tell("there is no member"),
            },
            (View::Threads, Act::Refuse) => match post {
                Some(post) => {
                    let hidden = post.hidden_at.is_some();
                    let called = match hidden {
                        true => format!("show post {} again", post.id),
                        false => format!("hide post {} by {} from agents", post.id, post.author),
                    };
                    self.order(Order::hide(post.id, !hidden), called);
                }
                None => self.tell("there is no post"),
            },
            (View::Threads, Act::Close) => match &self.thread {
                Some(thread) => {
                    let (id, closed) = (thread.id, thread.closed_at.is_some());
                    let called = match closed {
                        true => format!("open thread {id} again"),
                        false => format!("close thread {id}"),
                    };
                    self.order(Order::close(id, !closed), called);
                }
                None => self.tell("there is no thread"),
            },
            (_, Act::Role) => self.tell("3 shows the members; choose one there"),
            (_, Act::Write) => {
                self.show(View::Threads);
                self.begin(Writing::Title, "");
            }
            (View::Threads, Act::Reply | Act::Quote | Act::Edit) => {
                match (self.chosen, post, act) {
                    (Some(thread), _, Act::Reply) => self.begin(
                        Writing::Reply {
                            thread,
                            quote: None,
                        },
                        "",
                    ),
                    (Some(thread), Some(post), Act::Quote) => {
                        self.begin(
                            Writing::Reply {
                                thread,
                                quote: Some(post.id),
                            },
                            "",
                        );
                    }
                    (_, Some(post), Act::Edit)
                        if post.author == self.me.0 && post.deleted_at.is_none() =>
                    {
                        self.begin(Writing::Edit { post: post.id }, &post.body);
                    }
                    (_, Some(post), Act::Edit) => {
                        let text = format!(
                            "post {} is by {}: only its author can change it",
                            post.id, post.author
                        );
                        self.tell(&text);
                    }
                    _ => self.tell("there is no thread"),
                }
            }
            (_, Act::Vote | Act::Confirm) => self.tell("2 shows the motions; choose one there"),
            _ => self.tell("1 shows the threads; choose one there"),
        }
    }

    fn order(&mut self, order: Order, called: String) {
        self.begin(Writing::Order { order, called }, "");
    }

    fn copy(&mut self) -> Effect {
        match self.sheet.chosen() {
            Some(post) if self.view == View::Threads => {
                let body = clean::text(&post.body).into_owned();
                Effect::Copy(body, format!("post {}", post.id))
            }
            _ => Effect::Nothing,
        }
    }

    pub(super) fn begin(&mut self, writing: Writing, text: &str) {
        self.editor = Editor::default();
        self.editor.insert(&clean::text(text));
        self.writing = Some(writing);
    }

    /// Shows a notice until the next key.
    pub(super) fn tell(&mut self, what: &str) {
        self.told = Some(clean::line(what));
    }

    fn write(&mut self, key: Key) -> Effect {
        self.told = None;
        let action = keymap::action(key);
        match action {
            Some(Action::Send) => return self.enter(),
            Some(Action::Newline) if self.writing.as_ref().is_some_and(Writing::is_line) => {}
            Some(Action::Escape | Action::Interrupt) => {
                if self.editor.is_empty() {
                    self.writing = None;
                } else {
                    self.editor.clear();
                    self.tell("cleared; Ctrl+_ brings it back, Esc stops writing");
                }
            }
            Some(Action::Leave) => {
                self.editor.delete(Move::Right);
            }
            Some(Action::Up | Action::Down) => {
                let step = if action == Some(Action::Up) { -1 } else { 1 };
                self.editor.vertical(step, self.columns);
            }
            Some(Action::PageUp) => self.page(-1),
            Some(Action::PageDown) => self.page(1),
            Some(Action::Help) if key.code == Code::F(1) => self.help = Some(0),
            Some(Action::Editor) => return Effect::Edit(self.editor.text().to_owned()),
            Some(Action::Redraw) => return Effect::Redraw,
            Some(Action::Suspend) => return Effect::Suspend,
            Some(action) => {
                keymap::edit(&mut self.editor, action);
            }
            None => {
                if let (Code::Char(c), false, false) = (key.code, key.ctrl, key.alt) {
                    self.editor.insert(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
        Effect::Nothing
    }

    fn enter(&mut self) -> Effect {
        let Some(writing) = self.writing.clone() else {
            return Effect::Nothing;
        };
        let cursor = self.editor.cursor();
        if self.editor.text()[..cursor].ends_with('\\') && !writing.is_line() {
            self.editor.replace(cursor - 1..cursor, "\n");
            return Effect::Nothing;
        }
        if self.sent.is_some() {
            self.tell("one moment: the last action is not done yet");
            return Effect::Nothing;
        }
        let text = self.editor.text().to_owned();
        match writing.next(&text) {
            Next::Wrong(why) => self.tell(&why),
            Next::Write(next) => self.begin(next, ""),
            Next::Search(words) => {
                self.writing = None;
                self.side = Side::List;
                self.choose(None);
                self.search = Some(Search {
                    words,
                    ..Search::default()
                });
                return Effect::Look;
            }
            Next::Do(deed) => {
                self.writing = None;
                self.sent = Some((writing, text));
                return Effect::Do(deed);
            }
        }
        Effect::Nothing
    }

    /// Handles the result of a deed. Refused text goes back into the input: nothing written is lost.
    pub fn done(&mut self, done: Result<Done, UserError>) -> Effect {
        let sent = self.sent.take();
        match done {
            Ok(done) => {
                self.tell(&done.told);
                if let Some(thread) = done.thread {
                    self.show(View::Threads);
                    self.search = None;
                    self.choose(Some(thread));
                    self.sheet.follow();
                    self.side = Side::Text;
                }
            }
            Err(why) => {
                self.tell(&why.as_line());
                if let (Some((writing, text)), None) = (sent, &self.writing) {
                    self.begin(writing, &text);
                }
            }
        }
        Effect::Look
    }

    /// Handles pasted text as one edit.
    pub fn paste(&mut self, text: &str) {
        let text = clean::text(text);
        match &self.writing {
            Some(writing) if writing.is_line() => self.editor.insert(&clean::line(&text)),
            Some(_) => self.editor.insert(&text),
            None => self.tell("r replies, w writes a new thread: paste it there"),
        }
    }

    /// Takes over a text from the user's editor.
    pub(crate) fn edited(&mut self, text: Result<String, EditError>) {
        match text {
            Ok(text) if self.writing.as_ref().is_some_and(Writing::is_line) => {
                self.editor.set(&clean::line(&text));
            }
            Ok(text) => self.editor.set(clean::text(&text).trim_end_matches('\n')),
            Err(why) => self.tell(&why.to_string()),
        }
    }

    /// Handles the mouse wheel.
    pub fn wheel(&mut self, lines: i32) {
        self.scroll(i64::from(lines));
    }

    fn step(&mut self, by: i64) {
        match self.side {
            Side::List => self.step_list(by),
            Side::Text => self.scroll(by),
        }
    }

    pub(super) fn step_list(&mut self, by: i64) {
        let next =
            |at: usize, len: usize| (at as i64 + by).clamp(0, len.max(1) as i64 - 1) as usize;
        if self.view != View::Threads {
            let at = next(self.item_at(), self.items.len());
            return self.choose_item(at);
        }
        if let Some(search) = &mut self.search {
            let hits = search.hits.as_deref().unwrap_or_default();
            search.at = next(search.at, hits.len());
            let hit = hits.get(search.at).map(|hit| (hit.thread.id, hit.post_id));
            self.choose(hit.map(|(thread, _)| thread));
            if let Some((_, post)) = hit
                && !self.sheet.find(post)
            {
                self.goal = Some(post);
            }
            return;
        }
        let at = self.chosen.and_then(|id| self.place(id)).unwrap_or(0);
        let at = next(at, self.threads.len());
        self.choose(self.threads.get(at).map(|t| t.id));
        if at + NEAR > self.threads.len() && self.threads.len() as i64 == self.listed {
            self.listed += LISTED;
        }
    }

    fn page(&mut self, by: i64) {
        match (self.side, self.view) {
            (Side::List, _) if self.view != View::Threads => self.step_list(by * self.rows as i64),
            _ => self.scroll(by * self.rows.saturating_sub(1).max(1) as i64),
        }
    }

    fn end(&mut self, last: bool) {
        match (self.side, self.view, last) {
            (Side::List, _, _) => self.step_list(if last { i64::MAX / 2 } else { i64::MIN / 2 }),
            (_, View::Threads, true) => self.sheet.follow(),
            (_, View::Threads, false) => self.sheet.begin(),
            (_, _, true) => self.text_top = self.text_lines.saturating_sub(self.rows),
            (_, _, false) => self.text_top = 0,
        }
    }

    fn scroll(&mut self, by: i64) {
        if self.view == View::Threads {
            return self.sheet.scroll(by);
        }
        let last = self.text_lines.saturating_sub(self.rows) as i64;
        self.text_top = (self.text_top as i64 + by).clamp(0, last) as usize;
    }
}
