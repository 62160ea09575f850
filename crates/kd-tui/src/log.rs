//! The log: a vertical list of panels, of which only the visible ones are laid out. Takes records, older messages and
//! scroll requests; returns which lines of which cards are visible.
//!
//! The scroll position is a line of a panel, not a number of rows from the top, so that nothing above has to be laid
//! out, and growing text elsewhere does not move the visible part. A reader at the bottom keeps following.

mod beside;

use self::beside::Place;
pub use self::beside::WIDE_FROM;
use crate::panels::{self, Body, Card, Look, Shown};
use crate::text::growing::Growing;
use crate::text::wrap::Line;
use kd_app::Older;
use kd_core::Message;
use kd_core::SeatName;
use kd_core::names::KING;
use kd_core::view::{Content, View};
use std::collections::{BTreeMap, VecDeque};

/// A position in the log: 0 is the first panel of the view; older messages count down from -1.
pub type Item = i64;

/// Cards cached beyond the visible ones.
const KEPT: usize = 256;
/// Maximum number of upcoming members shown.
const COMING_MAX: usize = 8;
/// Minimum number of rows above the visible part; below it, older messages are fetched.
const MARGIN: i64 = 64;

/// The log of a thread.
#[derive(Debug, Default)]
pub struct Log {
    /// The thread since it was opened, including its newest messages before that.
    pub view: View,
    /// Messages before those, oldest first.
    older: VecDeque<Content>,
    /// Whether there are more before them.
    has_older: bool,
    fetching: bool,
    /// Whether the reader wants the very first message, which is being fetched.
    to_first: bool,
    cards: BTreeMap<Item, Entry>,
    /// The first visible line; `None` while following the end.
    anchor: Option<(Item, usize)>,
    /// The first visible line of the last frame.
    top: (Item, usize),
    rows: usize,
    /// Columns of the screen of the last frame.
    wide: usize,
    /// Messages that arrived below the visible part.
    unseen: usize,
    /// Show only this member's panels and the user's.
    pub focus: Option<SeatName>,
}

#[derive(Debug)]
struct Entry {
    /// The values on which the cached layout depends.
    key: (u64, usize, bool, usize),
    card: Card,
    growing: Growing,
}

/// The visible lines of one card, or of several side by side.
#[derive(Debug)]
pub struct Slice<'a> {
    /// The cards.
    pub cards: Vec<Placed<'a>>,
    /// The first visible line.
    pub from: usize,
    /// The number of visible lines.
    pub rows: usize,
}

/// A card and its place inside its slice.
#[derive(Debug)]
pub struct Placed<'a> {
    /// Its position in the log.
    pub item: Item,
    /// The card.
    pub card: &'a Card,
    /// Its text.
    pub body: &'a [Line],
    /// Its first column.
    pub x: usize,
    /// Its first line.
    pub y: usize,
    /// Its columns.
    pub width: usize,
    /// The number of its lines.
    pub height: usize,
}

impl Entry {
    fn body(&self) -> &[Line] {
        match &self.card.body {
            Body::None => &[],
            Body::Lines(lines) => lines,
            Body::Growing => self.growing.shown(),
        }
    }

    fn height(&self) -> usize {
        let card = &self.card;
        let title = usize::from(!card.bare || !card.title.is_empty());
        let edge = usize::from(!card.bare);
        // A growing text shows its cursor before the first word.
        let body = match card.body {
            Body::Growing => self.body().len().max(1),
            _ => self.body().len(),
        };
        title + card.head.len() + body + card.foot.len() + edge
    }
}

impl Log {
    /// Creates a log that begins with these newest messages of a thread.
    pub fn open(tail: Vec<Message>, has_older: bool) -> Self {
        Self {
            view: View::open(tail),
            has_older,
            ..Self::default()
        }
    }

    /// Replaces the view of the session. The view begins with the session, so older messages stay before it.
    pub fn replace(&mut self, view: View) {
        let messages = || {
            view.panels.iter().filter_map(|p| match &p.content {
                Content::Message { message, .. } => Some(message),
                _ => None,
            })
        };
        let from = messages().map(|m| m.seq).min();
        let replaced: Vec<u32> = messages().filter_map(|m| m.replaces()).collect();
        for panel in std::mem::take(&mut self.view.panels) {
            if let Some(message) = panel.content.message()
                && from.is_none_or(|from| message.seq < from)
            {
                self.older.push_back(panel.content);
            }
        }
        let is_replaced = |m: &Message| replaced.contains(&m.seq);
        self.older
            .retain(|old| !old.message().is_some_and(is_replaced));
        self.view = view;
        self.cards.clear();
        self.follow();
    }

    /// Adds older messages, with their data from the thread's log.
    pub fn add_older(&mut self, older: Older) {
        self.fetching = false;
        self.has_older = older.has_more && !older.messages.is_empty();
        let mut view = View::open(older.messages);
        view.recall(&older.records);
        for panel in view.panels.into_iter().rev() {
            self.older.push_front(panel.content);
        }
        if self.to_first {
            self.to_first = self.has_older;
            self.anchor = self.next(self.first() - 1).map(|first| (first, 0));
        }
    }

    /// Adds messages written while the thread was being opened.
    pub fn add_newer(&mut self, messages: Vec<Message>) {
        for message in messages {
            if !self.knows(&message) {
                self.view.fold(&kd_core::Event::MessageAdded {
                    message,
                    turn: None,
                    found: false,
                });
            }
        }
    }

    /// Returns whether a message is in the log already.
    pub fn knows(&self, message: &Message) -> bool {
        self.view.panels.iter().rev().take(256).any(|p| {
            matches!(&p.content, Content::Message { message: m, .. }
                if m.seq == message.seq && m.from == message.from)
        })
    }

    /// Returns the number before which to fetch older messages, and how many; `None` if none are needed.
    pub fn wants_older(&mut self) -> Option<(u32, usize)> {
        let near = self.to_first || self.top.0 - self.first() < MARGIN;
        if !self.has_older || self.fetching || !near {
            return None;
        }
        self.fetch(if self.to_first { usize::MAX } else { 256 })
    }

    fn fetch(&mut self, most: usize) -> Option<(u32, usize)> {
        if !self.has_older || self.fetching {
            return None;
        }
        let before = self
            .older
            .front()
            .and_then(Content::message)
            .map(|m| m.seq)
            .or_else(|| {
                self.view.panels.iter().find_map(|p| match &p.content {
                    Content::Message { message, .. } => Some(message.seq),
                    _ => None,
                })
            })?;
        self.fetching = true;
        Some((before, most))
    }

    /// Notes that something arrived; `message` says whether it is a finished message.
    pub fn came(&mut self, message: bool) {
        if self.anchor.is_some() && message {
            self.unseen += 1;
        }
    }

    /// Returns the number of unread messages below the visible part; `None` while following the end.
    pub fn unseen(&self) -> Option<usize> {
        self.anchor.is_some().then_some(self.unseen)
    }

    /// Returns whether the end is followed.
    pub fn is_following(&self) -> bool {
        self.anchor.is_none()
    }

    /// Follows the end.
    pub fn follow(&mut self) {
        self.to_first = false;
        self.anchor = None;
        self.unseen = 0;
    }

    /// Returns the first position.
    pub fn first(&self) -> Item {
        -(self.older.len() as i64)
    }

    /// Returns the position after the last.
    pub fn end(&self) -> Item {
        (self.view.panels.len() + self.coming().len() + self.view.waiting.len()) as i64
    }

    /// Returns the members whose turns follow one by one.
    fn coming(&self) -> &[SeatName] {
        let next = self.view.course.as_ref().map(|course| &*course.next);
        let next = next.unwrap_or_default();
        &next[..next.len().min(COMING_MAX)]
    }

    /// Returns the item at a position.
    pub fn shown(&self, item: Item) -> Option<Shown<'_>> {
        if item < 0 {
            let at = usize::try_from(item - self.first()).ok()?;
            return self.older.get(at).map(Shown::Panel);
        }
        let at = item as usize;
        match self.view.panels.get(at) {
            Some(panel) => Some(match self.view.growing(&panel.content) {
                Some(turn) => Shown::Turn(turn),
                None => Shown::Panel(&panel.content),
            }),
            None => {
                let at = at - self.view.panels.len();
                let coming = self.coming();
                if let Some(seat) = coming.get(at) {
                    return Some(Shown::Coming(seat, at));
                }
                let words = self.view.waiting.get(at - coming.len())?;
                Some(Shown::Queued(&words.0, &words.1))
            }
        }
    }

    /// Returns whether an item is shown under the current focus, and begins its block.
    fn is_in_focus(&self, item: Item) -> bool {
        let Some(focus) = &self.focus else {
            return self.block(item).start == item;
        };
        self.shown(item).is_some_and(|shown| {
            panels::whose(shown).is_none_or(|name| name == KING || name == focus.as_str())
        })
    }

    fn next(&self, item: Item) -> Option<Item> {
        (item + 1..self.end()).find(|i| self.is_in_focus(*i))
    }

    fn before(&self, item: Item) -> Option<Item> {
        (self.first()..item).rev().find(|i| self.is_in_focus(*i))
    }

    /// Shows only one member, or all; follows the end.
    pub fn set_focus(&mut self, seat: Option<SeatName>) {
        self.focus = seat;
        self.follow();
    }

    /// Scrolls by lines, negative upwards.
    pub fn scroll(&mut self, lines: i64, look: &Look) {
        self.wide = look.wide;
        self.to_first = false;
        let (mut item, line) = self.anchor.unwrap_or(self.top);
        item = self.block(item).start;
        if !self.is_in_focus(item) {
            item = self.next(item).or(self.before(item)).unwrap_or(item);
        }
        let mut line = line as i64 + lines;
        while line < 0 {
            match self.before(item) {
                Some(before) => {
                    item = before;
                    line += self.height(item, look) as i64;
                }
                None => {
                    line = 0;
                }
            }
        }
        while line > 0 {
            let height = self.height(item, look) as i64;
            if line < height {
                break;
            }
            match self.next(item) {
                Some(next) => {
                    line -= height;
                    item = next;
                }
                None => break,
            }
        }
        self.place(item, line as usize, look);
    }

    /// Scrolls a line of an item to the top, or follows the end if that shows all the rest.
    fn place(&mut self, item: Item, line: usize, look: &Look) {
        let mut left = (self.rows + line) as i64;
        let mut at = Some(item);
        while let Some(i) = at {
            left -= self.height(i, look) as i64;
            if left < 0 {
                self.anchor = Some((item, line));
                return;
            }
            at = self.next(i);
        }
        self.follow();
    }

    /// Goes to the very first message, at the latest when it has been fetched; returns what has to be fetched for it.
    pub fn go_first(&mut self, look: &Look) -> Option<(u32, usize)> {
        self.go_oldest(look);
        // Older messages may be on their way already, but not all of them.
        self.to_first = self.has_older;
        self.fetch(usize::MAX)
    }

    /// Goes to the oldest message that was fetched; returns which ones to fetch before it.
    pub fn go_before(&mut self, look: &Look) -> Option<(u32, usize)> {
        self.go_oldest(look);
        self.fetch(256)
    }

    fn go_oldest(&mut self, look: &Look) {
        let first = self.before(self.end()).map(|_| self.first());
        if let Some(first) = first {
            let item = if self.is_in_focus(first) {
                first
            } else {
                self.next(first).unwrap_or(first)
            };
            self.place(item, 0, look);
        }
    }

    /// Goes to the user's message before (-1) or after (1) the first visible line. Returns false if there is none.
    pub fn jump_king(&mut self, step: i64, look: &Look) -> bool {
        self.to_first = false;
        let (item, line) = self.anchor.unwrap_or(self.top);
        let is_king = |i: &Item| {
            self.shown(*i)
                .is_some_and(|s| panels::whose(s) == Some(KING))
        };
        let found = if step < 0 {
            let from = if line > 0 { item + 1 } else { item };
            (self.first()..from).rev().find(is_king)
        } else {
            (item + 1..self.end()).find(is_king)
        };
        match found {
            Some(item) => self.place(item, 0, look),
            None if step > 0 => self.follow(),
            None => return false,
        }
        true
    }

    fn height(&mut self, item: Item, look: &Look) -> usize {
        let places = self.places(item, look);
        places
            .iter()
            .map(|place| place.y + place.height)
            .max()
            .unwrap_or(0)
    }

    /// Lays out the block that begins with an item. Returns the places of its cards.
    fn places(&mut self, item: Item, look: &Look) -> Vec<Place> {
        let block = self.block(item);
        let count = block.clone().count();
        let shape = match count {
            1 => (1, look.columns),
            _ => beside::shape(count, look.wide),
        };
        let heights: Vec<(Item, usize)> = block
            .map(|item| {
                self.lay(item, shape.1, look);
                (item, self.cards.get(&item).map_or(0, Entry::height))
            })
            .collect();
        beside::arrange(&heights, shape)
    }

    /// Lays out an item for these columns, unless cached.
    fn lay(&mut self, item: Item, columns: usize, look: &Look) {
        let seconds = if self.shown(item).is_some_and(panels::is_alive) {
            look.now.as_second() as u64
        } else {
            0
        };
        let revision = match self.shown(item) {
            Some(Shown::Turn(_) | Shown::Panel(_)) => usize::try_from(item)
                .ok()
                .and_then(|at| self.view.panels.get(at))
                .map_or(0, |panel| panel.revision),
            Some(Shown::Queued(body, _)) => body.len() as u64,
            Some(Shown::Coming(seat, at)) => {
                let name = seat.as_str().bytes();
                name.fold(at as u64, |sum, byte| {
                    sum.wrapping_mul(31).wrapping_add(byte.into())
                })
            }
            _ => 0,
        };
        let place = match self.shown(item) {
            Some(Shown::Queued(..)) => 1,
            Some(Shown::Coming(..)) => 2,
            _ => 0,
        };
        let key = (revision ^ seconds << 40, columns, look.unfolded, place);
        if self.cards.get(&item).is_some_and(|e| e.key == key) {
            return;
        }
        let mut growing = match self.cards.remove(&item) {
            Some(entry) => entry.growing,
            None => Growing::default(),
        };
        let Some(shown) = self.shown(item) else {
            return;
        };
        let narrow;
        let look = if columns == look.columns {
            look
        } else {
            narrow = Look {
                columns,
                ..look.clone()
            };
            &narrow
        };
        let card = panels::card(shown, look, &mut growing);
        if !matches!(card.body, Body::Growing) {
            growing = Growing::default();
        }
        self.cards.insert(item, Entry { key, card, growing });
    }

    /// Returns the visible part, from the top. Stores the number of rows for scrolling.
    pub fn slices(&mut self, rows: usize, look: &Look) -> Vec<Slice<'_>> {
        self.rows = rows;
        self.wide = look.wide;
        let (mut item, mut line): (Item, usize);
        let mut start = self.anchor.map(|(at, line)| match self.block(at).start {
            // The screen became wider.
            start if start != at => (start, 0),
            _ => (at, line),
        });
        if let Some((at, _)) = start
            && (!self.is_in_focus(at) || self.shown(at).is_none())
        {
            start = None;
        }
        let from_end = start.is_none();
        match start {
            Some(place) => (item, line) = place,
            None => {
                let mut left = rows;
                let mut at = self.before(self.end());
                (item, line) = (at.unwrap_or(0), 0);
                while let Some(i) = at {
                    item = i;
                    let height = self.height(i, look);
                    if height >= left {
                        line = height - left;
                        break;
                    }
                    left -= height;
                    at = self.before(i);
                }
            }
        }
        // A card may now be shorter than the scroll position.
        if !from_end {
            let height = self.height(item, look);
            line = line.min(height.saturating_sub(1));
        }
        self.top = (item, line);
        let mut list = Vec::new();
        let (mut left, mut from) = (rows, line);
        let mut at = self.shown(item).map(|_| item);
        while let Some(i) = at
            && left > 0
        {
            let places = self.places(i, look);
            let height = places.iter().map(|place| place.y + place.height).max();
            let height = height.unwrap_or(0);
            let shown = (height - from.min(height)).min(left);
            list.push((places, from, shown));
            left -= shown;
            from = 0;
            at = self.next(i);
        }
        self.forget_far(&list);
        list.into_iter()
            .map(|(places, from, rows)| {
                let cards = places.into_iter().filter_map(|place| {
                    let entry = self.cards.get(&place.item)?;
                    let place = place.kept_in_view(entry.height(), from..from + rows);
                    Some(Placed {
                        item: place.item,
                        card: &entry.card,
                        body: entry.body(),
                        x: place.x,
                        y: place.y,
                        width: place.width,
                        height: place.height,
                    })
                });
                Slice {
                    cards: cards.collect(),
                    from,
                    rows,
                }
            })
            .collect()
    }

    /// Returns a line of text of a card that was drawn, and the column of the card where it begins.
    pub fn text_line(&self, item: Item, at: usize) -> Option<(usize, &Line)> {
        let entry = self.cards.get(&item)?;
        entry.card.text_line(entry.body(), at)
    }

    /// Drops cached cards far from the visible part.
    fn forget_far(&mut self, seen: &[(Vec<Place>, usize, usize)]) {
        if self.cards.len() <= KEPT + seen.len() {
            return;
        }
        let mut items = seen.iter().flat_map(|(places, ..)| places).map(|p| p.item);
        let Some(first) = items.next() else {
            return;
        };
        let last = items.next_back().unwrap_or(first);
        let near = first - (KEPT / 4) as i64..=last + (KEPT / 4) as i64;
        self.cards.retain(|i, _| near.contains(i));
    }

    /// Returns whether something visible changes with time.
    pub fn is_alive(&self) -> bool {
        self.view.is_growing()
    }

    /// Returns the loaded messages, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Message> {
        let new = self
            .view
            .panels
            .iter()
            .rev()
            .filter_map(|p| match &p.content {
                Content::Message { message, .. } => Some(&**message),
                _ => None,
            });
        new.chain(self.older.iter().rev().filter_map(Content::message))
    }
}
