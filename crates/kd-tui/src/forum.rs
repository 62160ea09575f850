//! The forum's reader: threads on the left, posts on the right, live. Comes in: what a [`Library`] holds, and keys. Goes
//! out: cells. Posts are data: they are cleaned, and wrapped into their own column.

use crate::draw::pen::Pen;
use crate::keys::{Code, Input, Key, Reply};
use crate::paint::Painter;
use crate::run::{Signals, Wish};
use crate::terminal::Terminal;
use crate::text::style::{Styles, speaker};
use crate::text::wrap::{self, Line, Span};
use crate::text::{clean, markdown};
use crate::theme::Theme;
use anstyle::Style;
use kd_core::forum::words::{Post, Thread};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often the reader looks for news: posts come every few seconds at most.
const LOOK: Duration = Duration::from_millis(300);
/// From this width on both sides are shown.
const BOTH_FROM: u16 = 60;
/// The widest list of threads.
const LIST_MAX: u16 = 40;

/// Where threads and posts come from. Its calls may block: they are made off the screen's loop.
pub trait Library: Send + Sync + 'static {
    /// The threads, the newest activity first.
    fn threads(&self) -> Result<Vec<Thread>, String>;

    /// The posts of a thread behind a number, the oldest first.
    fn posts(&self, thread: i64, after: i64) -> Result<Vec<Post>, String>;
}

/// How the reader looks.
#[derive(Clone, Debug)]
pub struct Looks {
    /// Colours.
    pub theme: Theme,
    /// Glyphs.
    pub styles: Styles,
    /// The zone of times.
    pub zone: jiff::tz::TimeZone,
}

/// What a look at the library brought.
#[derive(Clone, Debug)]
pub enum News {
    /// The threads, and posts of one of them behind those that are known.
    Found(Vec<Thread>, Option<(i64, Vec<Post>)>),
    /// It could not be read.
    Failed(String),
}

/// Which side the keys move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Threads,
    Posts,
}

/// The state of the reader.
#[derive(Debug)]
pub struct Reader {
    forum: String,
    looks: Looks,
    threads: Vec<Thread>,
    chosen: Option<i64>,
    posts: Vec<Post>,
    side: Side,
    /// The first line of the posts that is shown; none follows the end.
    top: Option<usize>,
    /// Rows and lines of the last frame, for keys that move by pages.
    rows: usize,
    lines: usize,
    /// The last post of each thread when it was last looked at.
    read: BTreeMap<i64, i64>,
    told: Option<String>,
    opened: bool,
}

impl Reader {
    /// A reader that has read nothing yet.
    pub fn new(forum: &str, looks: Looks) -> Self {
        Self {
            forum: forum.to_owned(),
            looks,
            threads: Vec::new(),
            chosen: None,
            posts: Vec::new(),
            side: Side::Threads,
            top: Some(0),
            rows: 1,
            lines: 0,
            read: BTreeMap::new(),
            told: None,
            opened: false,
        }
    }

    /// The thread whose posts are wanted, and the last that is known.
    pub fn wants(&self) -> Option<(i64, i64)> {
        let last = self.posts.last().map_or(0, |post| post.id);
        self.chosen.map(|thread| (thread, last))
    }

    /// Takes in what was found. True if anything is new.
    pub fn learn(&mut self, news: News) -> bool {
        let (threads, posts) = match news {
            News::Failed(why) => {
                let new = self.told.as_ref() != Some(&why);
                self.told = Some(why);
                return new;
            }
            News::Found(threads, posts) => (threads, posts),
        };
        let mut new = self.told.take().is_some() || self.threads != threads || !self.opened;
        if !self.opened {
            // What was there when the reader came is not new.
            self.read = threads.iter().map(|t| (t.id, t.last_post_id)).collect();
            self.opened = true;
        }
        self.threads = threads;
        if self.chosen.is_none_or(|id| self.place(id).is_none()) {
            let first = self.threads.first().map(|t| t.id);
            self.choose(first);
        }
        if let Some((thread, posts)) = posts
            && self.chosen == Some(thread)
        {
            let last = self.posts.last().map_or(0, |post| post.id);
            let before = self.posts.len();
            self.posts.extend(posts.into_iter().filter(|p| p.id > last));
            new |= self.posts.len() > before;
            if let Some(last) = self.posts.last() {
                self.read.insert(thread, last.id);
            }
        }
        new
    }

    fn place(&self, id: i64) -> Option<usize> {
        self.threads.iter().position(|t| t.id == id)
    }

    fn choose(&mut self, id: Option<i64>) {
        if self.chosen != id {
            self.chosen = id;
            self.posts.clear();
            self.top = Some(0);
        }
    }

    /// Hears a key. False if the person leaves.
    pub fn key(&mut self, key: Key) -> bool {
        let page = self.rows.saturating_sub(1).max(1);
        match key.code {
            Code::Char('q') if !key.ctrl && !key.alt => return false,
            Code::Char('c' | 'd') if key.ctrl => return false,
            Code::Escape if self.side == Side::Threads => return false,
            Code::Escape | Code::Left | Code::Char('h') => self.side = Side::Threads,
            Code::Enter | Code::Right | Code::Char('l') => self.side = Side::Posts,
            Code::Tab => {
                self.side = match self.side {
                    Side::Threads => Side::Posts,
                    Side::Posts => Side::Threads,
                };
            }
            Code::Up | Code::Char('k') => self.step(-1),
            Code::Down | Code::Char('j') => self.step(1),
            Code::PageUp => self.scroll(-(page as i64)),
            Code::PageDown | Code::Char(' ') => self.scroll(page as i64),
            Code::Home | Code::Char('g') => self.top = Some(0),
            Code::End | Code::Char('G') => self.top = None,
            _ => {}
        }
        true
    }

    /// The wheel was turned.
    pub fn wheel(&mut self, lines: i32) {
        self.scroll(i64::from(lines));
    }

    fn step(&mut self, by: i64) {
        if self.side == Side::Posts {
            self.scroll(by);
            return;
        }
        let at = self.chosen.and_then(|id| self.place(id)).unwrap_or(0) as i64;
        let last = self.threads.len().saturating_sub(1) as i64;
        let next = self.threads.get((at + by).clamp(0, last) as usize);
        self.choose(next.map(|t| t.id));
    }

    fn scroll(&mut self, by: i64) {
        let last = self.lines.saturating_sub(self.rows) as i64;
        let at = self.top.map_or(last, |top| top as i64) + by;
        // At the end the reader follows what comes.
        self.top = (at < last).then_some(at.max(0) as usize);
    }

    /// Draws everything.
    pub fn draw(&mut self, buffer: &mut Buffer) {
        let area = buffer.area;
        if area.width < 10 || area.height < 4 {
            return;
        }
        let theme = self.looks.theme;
        let unicode = self.looks.styles.unicode;
        let mut pen = Pen {
            buffer,
            theme,
            unicode,
        };
        let dim = Style::new().dimmed();
        let styles = self.looks.styles;
        let glyph = |unicode: &'static str, ascii: &'static str| styles.glyph(unicode, ascii);
        let dot = glyph(" · ", " - ");
        let posts: i64 = self.threads.iter().map(|t| t.post_count).sum();
        let counts = format!(
            "{dot}{}{dot}{}",
            plural(self.threads.len() as i64, "thread"),
            plural(posts, "post")
        );
        let name = format!("forum {}", clean::line(&self.forum));
        let head = [Span::new(Style::new().bold(), name), Span::new(dim, counts)];
        pen.line(0, 0, area.width, &head);
        let rule = glyph("─", "-");
        pen.repeat(0, area.width, 1, rule, dim);
        let bottom = area.height - 1;
        let keys = match self.side {
            Side::Threads => "Up Down: thread  Enter: read  PgUp PgDn: scroll  q: leave",
            Side::Posts => "Up Down PgUp PgDn: scroll  End: follow  Tab: threads  q: leave",
        };
        let status = match &self.told {
            Some(why) => Span::new(Style::new().bold(), clean::line(why)),
            None => Span::new(dim, keys),
        };
        pen.line(0, bottom, area.width, &[status]);
        self.rows = usize::from(bottom - 2);
        let both = area.width >= BOTH_FROM;
        let list = if both {
            (area.width / 3).min(LIST_MAX)
        } else {
            area.width
        };
        if both || self.side == Side::Threads {
            self.draw_threads(&mut pen, list);
        }
        if both {
            let bar = [Span::new(dim, glyph("│", "|"))];
            for y in 2..bottom {
                pen.line(list, y, list + 1, &bar);
            }
            pen.line(list, 1, list + 1, &[Span::new(dim, glyph("┬", "+"))]);
        }
        if both || self.side == Side::Posts {
            let left = if both { list + 2 } else { 0 };
            self.draw_posts(&mut pen, left);
        }
    }

    fn draw_threads(&self, pen: &mut Pen<'_>, width: u16) {
        if self.threads.is_empty() {
            let text = if self.opened {
                "no threads yet: kd forum post"
            } else {
                "reading"
            };
            pen.line(1, 2, width, &[Span::new(Style::new().dimmed(), text)]);
            return;
        }
        let at = self.chosen.and_then(|id| self.place(id)).unwrap_or(0);
        let first = at.saturating_sub(self.rows.saturating_sub(1));
        for (i, thread) in self.threads.iter().enumerate().skip(first).take(self.rows) {
            let y = 2 + (i - first) as u16;
            let chosen = i == at;
            let style = match (chosen, self.side) {
                (true, Side::Threads) => Style::new().invert(),
                (true, Side::Posts) => Style::new().bold(),
                (false, _) => Style::new(),
            };
            let mark = if chosen {
                self.looks.styles.glyph("› ", "> ")
            } else {
                "  "
            };
            let fresh = self.read.get(&thread.id).copied().unwrap_or(0) < thread.last_post_id;
            let count = match fresh {
                true => format!(" {} new", thread.post_count),
                false => format!(" {}", thread.post_count),
            };
            let room = usize::from(width).saturating_sub(3 + count.len());
            let title = wrap::clip(&clean::line(&thread.title), room);
            let gap = room.saturating_sub(wrap::width(&title));
            let line = [
                Span::new(style, format!("{mark}{title}{}", " ".repeat(gap))),
                Span::new(if fresh { style.bold() } else { style.dimmed() }, count),
            ];
            pen.line(0, y, width, &line);
        }
    }

    fn draw_posts(&mut self, pen: &mut Pen<'_>, left: u16) {
        let right = pen.buffer.area.width;
        let lines = self.lines_of(usize::from(right - left));
        self.lines = lines.len();
        let last = lines.len().saturating_sub(self.rows);
        let top = self.top.map_or(last, |top| top.min(last));
        for (i, line) in lines.iter().skip(top).take(self.rows).enumerate() {
            pen.line(left, 2 + i as u16, right, line);
        }
    }

    /// The posts of the thread as lines of so many columns.
    fn lines_of(&self, columns: usize) -> Vec<Line> {
        let dim = Style::new().dimmed();
        let mut out: Vec<Line> = Vec::new();
        let Some(thread) = self.chosen.and_then(|id| self.threads.get(self.place(id)?)) else {
            return out;
        };
        for line in wrap::wrap(&clean::line(&thread.title), columns) {
            out.push(vec![Span::new(Style::new().bold(), line)]);
        }
        // Each voice keeps its colour through a thread: by its first post in it.
        let mut voices: Vec<&str> = Vec::new();
        for post in &self.posts {
            let voice = voices.iter().position(|v| *v == post.author);
            let voice = voice.unwrap_or_else(|| {
                voices.push(&post.author);
                voices.len() - 1
            });
            out.push(Line::new());
            let at = post.created_at.to_zoned(self.looks.zone.clone());
            let mut notes = format!(" #{} {}", post.id, at.strftime("%Y-%m-%d %H:%M"));
            if post.edited_at.is_some() {
                notes.push_str(" (edited)");
            }
            let mark = self.looks.styles.mark(voice);
            let name = format!("{mark} {}", clean::line(&post.author));
            out.push(vec![Span::new(speaker(voice), name), Span::new(dim, notes)]);
            if let (Some(id), Some(author)) = (post.quote_post_id, &post.quoted_author) {
                let quoted = post.quoted_post_body.as_deref().unwrap_or("(deleted)");
                let quoted = quoted.lines().next().unwrap_or_default();
                let text = format!("> #{id} {author}: {}", clean::line(quoted));
                let text = wrap::clip(&clean::line(&text), columns.saturating_sub(2));
                out.push(vec![Span::new(dim, format!("  {text}"))]);
            }
            if post.deleted_at.is_some() {
                out.push(vec![Span::new(dim, "  (deleted)")]);
                continue;
            }
            let inner = columns.saturating_sub(2).max(8);
            for mut line in markdown::lines(&post.body, inner, self.looks.styles) {
                line.insert(0, Span::plain("  "));
                out.push(line);
            }
        }
        out
    }
}

fn plural(n: i64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// Shows the reader until the person leaves. Must be called inside a tokio runtime.
pub async fn run(mut reader: Reader, library: Arc<dyn Library>) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    let mut terminal = Terminal::enter()?;
    let mut painter = Painter::default();
    let mut dirty = true;
    // One look at a time; the next one begins a while after the last has ended, or at once when a thread was chosen.
    let mut looking = tokio::spawn(look(library.clone(), reader.wants(), Duration::ZERO));
    loop {
        if std::mem::take(&mut dirty) {
            let (columns, rows) = terminal.size();
            let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
            reader.draw(&mut buffer);
            if let Some(bytes) = painter.frame(&buffer, None) {
                terminal.write(bytes)?;
            }
        }
        tokio::select! {
            biased;
            input = terminal.next() => {
                let before = reader.chosen;
                match input {
                    None => break,
                    Some(Input::Key(key)) if !reader.key(key) => break,
                    Some(Input::Wheel(lines)) => reader.wheel(lines),
                    Some(Input::Reply(Reply::Synchronized(yes))) => painter.synchronized = yes,
                    Some(Input::Reply(Reply::Ground(r, g, b))) => {
                        reader.looks.theme.learn(r, g, b);
                    }
                    Some(_) => {}
                }
                dirty = true;
                if reader.chosen != before {
                    looking.abort();
                    looking = tokio::spawn(look(library.clone(), reader.wants(), Duration::ZERO));
                }
            }
            signal = signals.next() => match signal {
                Wish::Leave => break,
                Wish::Resize => {
                    painter.forget();
                    dirty = true;
                }
                Wish::Nothing => {}
            },
            news = &mut looking => {
                let chosen = reader.chosen;
                let news = news.unwrap_or_else(|e| News::Failed(e.to_string()));
                dirty |= reader.learn(news);
                let pause = if reader.chosen == chosen { LOOK } else { Duration::ZERO };
                looking = tokio::spawn(look(library.clone(), reader.wants(), pause));
            }
        }
    }
    looking.abort();
    Ok(())
}

/// Looks into the library after a while.
async fn look(library: Arc<dyn Library>, wants: Option<(i64, i64)>, pause: Duration) -> News {
    tokio::time::sleep(pause).await;
    let looked = tokio::task::spawn_blocking(move || {
        let threads = library.threads()?;
        let posts = match wants {
            Some((thread, after)) if threads.iter().any(|t| t.id == thread) => {
                Some((thread, library.posts(thread, after)?))
            }
            _ => None,
        };
        Ok((threads, posts))
    });
    match looked.await {
        Ok(Ok((threads, posts))) => News::Found(threads, posts),
        Ok(Err(why)) => News::Failed(why),
        Err(why) => News::Failed(why.to_string()),
    }
}
