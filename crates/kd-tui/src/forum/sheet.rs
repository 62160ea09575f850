//! The posts of one thread as lines. Layouts are cached, so that a long thread is laid out only once.

use super::Looks;
use crate::text::style::speaker;
use crate::text::wrap::{self, Line, Span};
use crate::text::{clean, markdown};
use anstyle::Style;
use kd_forum::words::{Post, Thread};
use std::collections::BTreeMap;

/// Maximum lines and bytes of a post to lay out. Far above what an agent may write; an import can exceed it.
const LINES_MAX: usize = 2_000;
const BYTES_MAX: usize = 200_000;

/// The posts of a thread, with the scroll position.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    posts: Vec<Laid>,
    /// The columns they were laid out for.
    columns: usize,
    /// Authors in order of their first post, so that each keeps its color.
    voices: Vec<String>,
    /// The first visible line; `None` follows the end.
    pub(super) top: Option<usize>,
    /// Index of the chosen post.
    at: usize,
    /// Rows of the last frame.
    rows: usize,
    /// Hidden posts, each with the account that hid it and the reason.
    pub(super) hidden: BTreeMap<i64, String>,
    /// Whether the text of hidden posts is shown.
    unfolded: bool,
    /// Lines above the first post: the title.
    head: Vec<Line>,
}

#[derive(Debug)]
struct Laid {
    post: Post,
    lines: Option<Vec<Line>>,
}

impl Sheet {
    /// Creates an empty sheet, scrolled to the top.
    pub(super) fn new() -> Self {
        Self {
            top: Some(0),
            rows: 1,
            ..Self::default()
        }
    }

    /// Returns the number of the last post; 0 if there is none.
    pub(super) fn last(&self) -> i64 {
        self.posts.last().map_or(0, |laid| laid.post.id)
    }

    /// Returns the number of posts that are not deleted.
    pub(super) fn count(&self) -> i64 {
        let there = |laid: &&Laid| laid.post.deleted_at.is_none();
        self.posts.iter().filter(there).count() as i64
    }

    /// Returns the chosen post.
    pub(super) fn chosen(&self) -> Option<&Post> {
        self.posts.get(self.at).map(|laid| &laid.post)
    }

    /// Appends posts and updates known ones. Returns true if anything is new.
    pub(super) fn learn(&mut self, more: Vec<Post>, again: Vec<Post>) -> bool {
        let mut new = false;
        for post in again {
            let Ok(at) = self
                .posts
                .binary_search_by_key(&post.id, |laid| laid.post.id)
            else {
                continue;
            };
            let laid = &mut self.posts[at];
            if laid.post != post {
                *laid = Laid { post, lines: None };
                new = true;
            }
        }
        for post in more {
            if post.id > self.last() {
                if !self.voices.contains(&post.author) {
                    self.voices.push(post.author.clone());
                }
                self.posts.push(Laid { post, lines: None });
                new = true;
            }
        }
        new
    }

    /// Returns the first and last visible post.
    pub(super) fn seen(&self) -> Option<(i64, i64)> {
        let (mut first, mut last) = (None, None);
        let (top, end) = self.window();
        let mut line = self.head.len();
        for laid in &self.posts {
            let next = line + laid.lines.as_ref().map_or(1, Vec::len);
            if next > top && line < end {
                first = first.or(Some(laid.post.id));
                last = Some(laid.post.id);
            }
            line = next;
        }
        Some((first?, last?))
    }

    /// Chooses the next or previous post and shows its beginning. Returns false if there is none.
    pub(super) fn step(&mut self, by: i64) -> bool {
        let next = self.at as i64 + by;
        if next < 0 || next >= self.posts.len() as i64 {
            return false;
        }
        self.go(next as usize);
        true
    }

    /// Chooses a post by its number, if loaded.
    pub(super) fn find(&mut self, id: i64) -> bool {
        match self.posts.binary_search_by_key(&id, |laid| laid.post.id) {
            Ok(at) => {
                self.go(at);
                true
            }
            Err(_) => false,
        }
    }

    /// Shows or folds the text of hidden posts.
    pub(super) fn unfold(&mut self) {
        self.unfolded = !self.unfolded;
        let hidden = |laid: &&mut Laid| laid.post.hidden_at.is_some();
        self.posts
            .iter_mut()
            .filter(hidden)
            .for_each(|laid| laid.lines = None);
    }

    /// Goes to the beginning.
    pub(super) fn begin(&mut self) {
        self.at = 0;
        self.top = Some(0);
    }

    /// Goes to the end and follows it.
    pub(super) fn follow(&mut self) {
        self.at = self.posts.len().saturating_sub(1);
        self.top = None;
    }

    /// Scrolls by lines; keeps the chosen post on the screen.
    pub(super) fn scroll(&mut self, by: i64) {
        let last = self.lines().saturating_sub(self.rows) as i64;
        let at = self.top.map_or(last, |top| top.min(last as usize) as i64) + by;
        self.top = (at < last).then_some(at.max(0) as usize);
        let (top, end) = self.window();
        let starts = self.starts();
        let Some(start) = starts.get(self.at) else {
            return;
        };
        if *start >= end {
            self.at = starts.iter().rposition(|s| *s < end).unwrap_or(0);
        } else if starts.get(self.at + 1).is_some_and(|next| *next <= top) {
            self.at = starts.iter().rposition(|s| *s <= top).unwrap_or(0);
        }
    }

    fn go(&mut self, at: usize) {
        self.at = at;
        let start = self.starts().get(at).copied().unwrap_or(0);
        // A post's first line is blank; the first post shows the title above it.
        let top = if at == 0 { 0 } else { start + 1 };
        self.top = (top + self.rows < self.lines()).then_some(top);
    }

    /// Returns the lines on which posts begin.
    fn starts(&self) -> Vec<usize> {
        let mut line = self.head.len();
        let mut starts = Vec::with_capacity(self.posts.len());
        for laid in &self.posts {
            starts.push(line);
            line += laid.lines.as_ref().map_or(1, Vec::len);
        }
        starts
    }

    fn lines(&self) -> usize {
        let heights = self
            .posts
            .iter()
            .map(|laid| laid.lines.as_ref().map_or(1, Vec::len));
        self.head.len() + heights.sum::<usize>()
    }

    fn window(&self) -> (usize, usize) {
        let last = self.lines().saturating_sub(self.rows);
        let top = self.top.map_or(last, |top| top.min(last));
        (top, top + self.rows)
    }

    /// Returns the visible lines for a size. `active` marks the chosen post.
    pub(super) fn draw(
        &mut self,
        thread: &Thread,
        columns: usize,
        rows: usize,
        active: bool,
        looks: &Looks,
    ) -> Vec<Line> {
        if self.columns != columns {
            self.columns = columns;
            self.posts.iter_mut().for_each(|laid| laid.lines = None);
        }
        self.rows = rows;
        let bold = Style::new().bold();
        let mut title = wrap::wrap(&clean::line(&thread.title), columns);
        let state = [
            (thread.hidden_at, "(hidden from agents)"),
            (thread.closed_at, "(closed: it takes no more posts)"),
        ];
        title.extend(
            state
                .iter()
                .filter(|(at, _)| at.is_some())
                .map(|(_, words)| wrap::clip(words, columns)),
        );
        self.head = title
            .into_iter()
            .map(|line| vec![Span::new(bold, line)])
            .collect();
        for laid in self.posts.iter_mut().filter(|laid| laid.lines.is_none()) {
            let voice = self.voices.iter().position(|v| *v == laid.post.author);
            let why = self.hidden.get(&laid.post.id).map_or("", String::as_str);
            let folded = !self.unfolded;
            laid.lines = Some(lay(
                &laid.post,
                voice.unwrap_or(0),
                columns,
                looks,
                why,
                folded,
            ));
        }
        let (top, end) = self.window();
        let mut out = Vec::with_capacity(rows);
        let mut line = 0;
        for head in &self.head {
            if (top..end).contains(&line) {
                out.push(head.clone());
            }
            line += 1;
        }
        for (at, laid) in self.posts.iter().enumerate() {
            let lines = laid.lines.as_deref().unwrap_or_default();
            if line + lines.len() <= top {
                line += lines.len();
                continue;
            }
            if line >= end {
                break;
            }
            for (i, words) in lines.iter().enumerate() {
                if (top..end).contains(&line) {
                    let mut words = words.clone();
                    if active && at == self.at && i == 1 {
                        words
                            .iter_mut()
                            .for_each(|span| span.style = span.style.invert());
                    }
                    out.push(words);
                }
                line += 1;
            }
        }
        out
    }
}

/// Lays out a post: a blank line, author and time, the quote, and the text.
fn lay(
    post: &Post,
    voice: usize,
    columns: usize,
    looks: &Looks,
    why: &str,
    folded: bool,
) -> Vec<Line> {
    let dim = Style::new().dimmed();
    let at = post.created_at.to_zoned(looks.zone.clone());
    let mut notes = format!(" #{} {}", post.id, at.strftime("%Y-%m-%d %H:%M"));
    if post.edited_at.is_some() {
        notes.push_str(" (edited)");
    }
    let mark = looks.styles.mark(voice);
    let name = format!("{mark} {}", clean::line(&post.author));
    let head = vec![Span::new(speaker(voice), name), Span::new(dim, notes)];
    let mut out = vec![Line::new(), wrap::clip_spans(&head, columns)];
    if post.hidden_at.is_some() {
        let key = if folded { "; t shows it" } else { "" };
        let why = clean::line(why);
        let lead = if why.is_empty() { "" } else { " " };
        let text = format!("  (hidden{lead}{why}{key})");
        out.push(vec![Span::new(dim, wrap::clip(&text, columns))]);
        if folded {
            return out;
        }
    }
    if let (Some(id), Some(author)) = (post.quote_post_id, &post.quoted_author) {
        let quoted = post
            .quoted_post_body
            .as_deref()
            .unwrap_or("(deleted or hidden)");
        let quoted = quoted.lines().next().unwrap_or_default();
        let quoted = &quoted[..quoted.floor_char_boundary(4 * columns)];
        let text = format!("> #{id} {author}: {}", clean::line(quoted));
        let text = wrap::clip(&clean::line(&text), columns.saturating_sub(2));
        out.push(vec![Span::new(dim, format!("  {text}"))]);
    }
    if post.deleted_at.is_some() {
        let word = match post.erased_at {
            Some(_) => "  (erased)",
            None => "  (deleted)",
        };
        out.push(vec![Span::new(dim, word)]);
        return out;
    }
    let inner = columns.saturating_sub(2).max(8);
    let (body, left) = beginning(&post.body);
    let mut lines = markdown::lines(body, inner, looks.styles);
    let cut = lines.len() > LINES_MAX;
    lines.truncate(LINES_MAX);
    for mut line in lines {
        line.insert(0, Span::plain("  "));
        out.push(line);
    }
    if left > 0 || cut {
        let more = match left {
            0 => String::new(),
            left => format!("{left} more lines: "),
        };
        let text = format!("  ({more}kd forum read {} prints all)", post.thread_id);
        out.push(vec![Span::new(dim, wrap::clip(&text, columns))]);
    }
    out
}

/// Returns the part of a text that can be laid out quickly, and the number of lines left out.
fn beginning(body: &str) -> (&str, usize) {
    let mut end = body.floor_char_boundary(BYTES_MAX.min(body.len()));
    if let Some((at, _)) = body[..end].match_indices('\n').nth(LINES_MAX - 1) {
        end = at;
    }
    let rest = body[end..].strip_prefix('\n').unwrap_or(&body[end..]);
    let left = match rest.trim_end() {
        "" => 0,
        rest => rest.lines().count().max(1),
    };
    (&body[..end], left)
}
