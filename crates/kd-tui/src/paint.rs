//! Turns cells into bytes. Takes the next frame; returns the fewest bytes that change the terminal's content into it,
//! as one synchronized update where supported; nothing if nothing changed.
//!
//! Rows that only moved are moved by the terminal (scrolling region), so that a log growing at its end costs its new
//! lines and not a whole screen.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::sync::Arc;

/// Maximum distance of moved rows that is recognized.
const SHIFT_MAX: i32 = 16;
/// Minimum number of saved rows for which moving rows is worth its bytes.
const SHIFT_GAIN: usize = 3;
/// Maximum number of equal cells between two changed ones that are cheaper to rewrite than to skip.
const GAP: u16 = 4;

/// Begins a synchronized update: the terminal shows nothing of it before its end.
pub(crate) const BEGIN: &str = "\x1b[?2026h";
/// Ends a synchronized update.
pub(crate) const END: &str = "\x1b[?2026l";

/// Tracks what the terminal shows.
#[derive(Debug)]
pub struct Painter {
    shown: Buffer,
    /// The visible cursor position; `None` if hidden.
    cursor: Option<(u16, u16)>,
    /// Whether the content of the screen is unknown.
    stale: bool,
    /// Whether frames are wrapped into synchronized updates.
    pub synchronized: bool,
    out: Vec<u8>,
    /// The position at which the next byte would be written, if known.
    at: Option<(u16, u16)>,
    /// The active style.
    style: (Color, Color, Modifier),
    /// The links that the terminal shows, by row.
    links: Vec<Vec<Link>>,
    /// The links of the next frame.
    next_links: Vec<Link>,
}

/// A part of a row that the terminal opens at an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The row.
    pub y: u16,
    /// The first column.
    pub from: u16,
    /// The column after the last.
    pub to: u16,
    /// The address.
    pub url: Arc<str>,
}

const PLAIN: (Color, Color, Modifier) = (Color::Reset, Color::Reset, Modifier::empty());

impl Default for Painter {
    fn default() -> Self {
        Self {
            shown: Buffer::empty(Rect::ZERO),
            cursor: None,
            stale: true,
            synchronized: false,
            out: Vec::new(),
            at: None,
            style: PLAIN,
            links: Vec::new(),
            next_links: Vec::new(),
        }
    }
}

impl Painter {
    /// Marks the screen as unknown, after another program wrote to it or it was resized: the next frame is painted
    /// completely.
    pub fn forget(&mut self) {
        self.stale = true;
    }

    /// Sets the links of the next frame.
    pub fn link(&mut self, links: Vec<Link>) {
        self.next_links = links;
    }

    /// Returns the bytes that show this frame; `None` if it is already shown.
    pub fn frame(&mut self, next: &Buffer, cursor: Option<(u16, u16)>) -> Option<&[u8]> {
        if next.area != self.shown.area {
            self.stale = true;
        }
        let mut links = vec![Vec::new(); usize::from(next.area.height)];
        for link in std::mem::take(&mut self.next_links) {
            if let Some(row) = links.get_mut(usize::from(link.y)) {
                // Rows move.
                row.push(Link { y: 0, ..link });
            }
        }
        self.links.resize(links.len(), Vec::new());
        let same = next.content == self.shown.content && links == self.links;
        if !self.stale && cursor == self.cursor && same {
            return None;
        }
        self.out.clear();
        self.at = None;
        if self.synchronized {
            self.out.extend_from_slice(BEGIN.as_bytes());
        } else if self.cursor.is_some() {
            self.out.extend_from_slice(b"\x1b[?25l");
        }
        if self.stale {
            // The blank is for tmux, which moves the screen into its history when it is cleared from the very first cell.
            self.out.extend_from_slice(b"\x1b[m\x1b[H \x1b[J\x1b[H");
            self.style = PLAIN;
            self.shown = Buffer::empty(next.area);
            self.links.fill(Vec::new());
        } else {
            self.shift(next, &links);
        }
        for y in 0..next.area.height {
            self.row(next, y, &links[usize::from(y)]);
        }
        self.links = links;
        self.shown.content.clone_from(&next.content);
        match cursor {
            Some((x, y)) => {
                self.go(x, y);
                if !self.synchronized || self.cursor.is_none() || self.stale {
                    self.out.extend_from_slice(b"\x1b[?25h");
                }
            }
            None if self.cursor.is_some() && self.synchronized => {
                self.out.extend_from_slice(b"\x1b[?25l");
            }
            None => {}
        }
        if self.synchronized {
            self.out.extend_from_slice(END.as_bytes());
        }
        self.cursor = cursor;
        self.stale = false;
        Some(&self.out)
    }

    /// Lets the terminal move rows that only changed position.
    fn shift(&mut self, next: &Buffer, links: &[Vec<Link>]) {
        let old = hashes(&self.shown, &self.links);
        let new = hashes(next, links);
        let rows = new.len() as i32;
        let changed = old.iter().zip(&new).filter(|(a, b)| a != b).count();
        if changed < SHIFT_GAIN {
            return;
        }
        // (gain, shift, first row, row after the last)
        let mut best = (0, 0, 0, 0);
        for shift in (-SHIFT_MAX..=SHIFT_MAX).filter(|s| *s != 0) {
            let (mut from, mut gain) = (0, 0);
            for y in 0..=rows {
                let same = y < rows
                    && (0..rows).contains(&(y + shift))
                    && new[y as usize] == old[(y + shift) as usize];
                if same {
                    if new[y as usize] != old[y as usize] {
                        gain += 1;
                    }
                } else {
                    if gain > best.0 {
                        best = (gain, shift, from, y);
                    }
                    (from, gain) = (y + 1, 0);
                }
            }
        }
        let (gain, shift, from, to) = best;
        if gain < SHIFT_GAIN {
            return;
        }
        let (top, bottom) = if shift > 0 {
            (from, to + shift)
        } else {
            (from + shift, to)
        };
        self.style(PLAIN);
        let _ = write!(self.out, "\x1b[{};{}r", top + 1, bottom);
        let _ = match shift {
            1.. => write!(self.out, "\x1b[{shift}S"),
            _ => write!(self.out, "\x1b[{}T", -shift),
        };
        self.out.extend_from_slice(b"\x1b[r");
        self.at = None;
        let width = usize::from(self.shown.area.width);
        let (first, last) = (top as usize * width, bottom as usize * width);
        let by = shift.unsigned_abs() as usize * width;
        let rows = &mut self.links[top as usize..bottom as usize];
        let by_rows = shift.unsigned_abs() as usize;
        if shift > 0 {
            rows.rotate_left(by_rows);
            let keep = rows.len() - by_rows;
            rows[keep..].fill(Vec::new());
        } else {
            rows.rotate_right(by_rows);
            rows[..by_rows].fill(Vec::new());
        }
        let region = &mut self.shown.content[first..last];
        if shift > 0 {
            region.rotate_left(by);
            let keep = region.len() - by;
            region[keep..].fill(Cell::EMPTY);
        } else {
            region.rotate_right(by);
            region[..by].fill(Cell::EMPTY);
        }
    }

    fn row(&mut self, next: &Buffer, y: u16, links: &[Link]) {
        let width = usize::from(next.area.width);
        let span = usize::from(y) * width..(usize::from(y) + 1) * width;
        let new = &next.content[span.clone()];
        let old: Vec<Cell> = {
            let old = &self.shown.content[span];
            if old == new && links == self.links[usize::from(y)] {
                return;
            }
            old.to_vec()
        };
        let linked = !links.is_empty() || !self.links[usize::from(y)].is_empty();
        if linked || new.iter().chain(&old).any(is_contested) {
            self.row_anew(new, y, links);
            return;
        }
        let wide = new.iter().chain(&old).any(|c| columns(c) > 1);
        let end = new
            .iter()
            .rposition(|c| !is_blank(c))
            .map_or(0, |last| last + columns(&new[last]));
        let mut x = 0;
        let mut forced = false;
        while x < width {
            let step = columns(&new[x]).max(1);
            if !forced && new[x] == old[x] {
                x += if wide { 1 } else { step };
                continue;
            }
            // Wide characters affect their neighbors: write the rest of the row.
            if wide && !forced {
                while x > 0 && columns(&new[x - 1]) > 1 {
                    x -= 1;
                }
                forced = true;
                continue;
            }
            if x >= end {
                if old[x..].iter().any(|c| !is_blank(c)) {
                    self.go(x as u16, y);
                    self.style(PLAIN);
                    self.out.extend_from_slice(b"\x1b[K");
                }
                return;
            }
            match self.at {
                Some((at, row)) if row == y && at < x as u16 && x as u16 - at <= GAP => {
                    for c in &new[usize::from(at)..x] {
                        self.cell(c);
                    }
                }
                Some(at) if at == (x as u16, y) => {}
                _ => self.go(x as u16, y),
            }
            self.cell(&new[x]);
            x += step;
            // In the last column, terminals differ in where the cursor waits.
            self.at = (x < width).then_some((x as u16, y));
        }
    }

    /// Rewrites a row whose widths terminals disagree on: clears it first, and repositions after each such character,
    /// so that it neither moves its neighbors nor leaves remains. Rows with links are rewritten too.
    fn row_anew(&mut self, new: &[Cell], y: u16, links: &[Link]) {
        self.style(PLAIN);
        self.go(0, y);
        self.out.extend_from_slice(b"\x1b[2K");
        let last = new.iter().rposition(|c| !is_blank(c));
        let end = last.map_or(0, |last| last + columns(&new[last]));
        let mut x = 0;
        while x < end {
            let cell = &new[x];
            self.go(x as u16, y);
            for link in links {
                if usize::from(link.from) == x {
                    // The same number joins the parts of a wrapped address.
                    let mut hasher = DefaultHasher::new();
                    link.url.hash(&mut hasher);
                    let id = hasher.finish() as u32;
                    let _ = write!(self.out, "\x1b]8;id={id:x};{}\x1b\\", link.url);
                }
            }
            self.cell(cell);
            if links
                .iter()
                .any(|link| usize::from(link.to) == x + columns(cell))
            {
                self.out.extend_from_slice(b"\x1b]8;;\x1b\\");
            }
            x += columns(cell);
            self.at = (x < new.len() && !is_contested(cell)).then_some((x as u16, y));
        }
        if end < new.len() {
            self.go(end as u16, y);
            self.style(PLAIN);
            self.out.extend_from_slice(b"\x1b[K");
        }
    }

    fn cell(&mut self, cell: &Cell) {
        self.style((cell.fg, cell.bg, cell.modifier));
        self.out.extend_from_slice(cell.symbol().as_bytes());
    }

    fn go(&mut self, x: u16, y: u16) {
        if self.at == Some((x, y)) {
            return;
        }
        let _ = match self.at {
            Some((_, row)) if row == y => write!(self.out, "\x1b[{}G", x + 1),
            _ if x == 0 => write!(self.out, "\x1b[{}H", y + 1),
            _ => write!(self.out, "\x1b[{};{}H", y + 1, x + 1),
        };
        self.at = Some((x, y));
    }

    fn style(&mut self, style: (Color, Color, Modifier)) {
        if style == self.style {
            return;
        }
        let (fg, bg, modifier) = style;
        self.out.extend_from_slice(b"\x1b[");
        if style != PLAIN {
            // If no attribute has to be removed, only add the new ones.
            let (was_fg, was_bg, was) = self.style;
            let grows = modifier.contains(was)
                && (fg != Color::Reset || was_fg == Color::Reset)
                && (bg != Color::Reset || was_bg == Color::Reset);
            let mut first = true;
            let mut put = |out: &mut Vec<u8>, code: std::fmt::Arguments<'_>| {
                if !std::mem::take(&mut first) {
                    out.push(b';');
                }
                let _ = out.write_fmt(code);
            };
            if !grows {
                put(&mut self.out, format_args!("0"));
            }
            let have = if grows { was } else { Modifier::empty() };
            for (flag, code) in MODIFIERS {
                if modifier.contains(flag) && !have.contains(flag) {
                    put(&mut self.out, format_args!("{code}"));
                }
            }
            if fg != Color::Reset && !(grows && fg == was_fg) {
                put(&mut self.out, format_args!("{}", Code(fg, 30)));
            }
            if bg != Color::Reset && !(grows && bg == was_bg) {
                put(&mut self.out, format_args!("{}", Code(bg, 40)));
            }
        }
        self.out.push(b'm');
        self.style = style;
    }
}

const MODIFIERS: [(Modifier, u8); 6] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::REVERSED, 7),
    (Modifier::CROSSED_OUT, 9),
];

/// A color as an SGR parameter; 30 for the foreground, 40 for the background.
struct Code(Color, u8);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Code(color, base) = *self;
        let ansi = match color {
            Color::Reset => return write!(f, "{}", base + 9),
            Color::Rgb(r, g, b) => return write!(f, "{};2;{r};{g};{b}", base + 8),
            Color::Indexed(n) => return write!(f, "{};5;{n}", base + 8),
            Color::Black => 0,
            Color::Red => 1,
            Color::Green => 2,
            Color::Yellow => 3,
            Color::Blue => 4,
            Color::Magenta => 5,
            Color::Cyan => 6,
            Color::Gray => 7,
            Color::DarkGray => 60,
            Color::LightRed => 61,
            Color::LightGreen => 62,
            Color::LightYellow => 63,
            Color::LightBlue => 64,
            Color::LightMagenta => 65,
            Color::LightCyan => 66,
            Color::White => 67,
        };
        write!(f, "{}", base + ansi)
    }
}

fn columns(cell: &Cell) -> usize {
    let symbol = cell.symbol();
    if symbol.len() == 1 {
        return 1;
    }
    crate::text::wrap::width(symbol).max(1)
}

fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && (cell.fg, cell.bg, cell.modifier) == PLAIN
}

/// Returns whether terminals may disagree with our width: clusters, emoji, marks, and rare scripts.
fn is_contested(cell: &Cell) -> bool {
    let symbol = cell.symbol();
    if symbol.len() == 1 {
        return false;
    }
    let mut chars = symbol.chars();
    let known = chars.next().is_none_or(|c| {
        matches!(c,
            '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2ff}'        // Latin
            | '\u{370}'..='\u{482}' | '\u{48a}'..='\u{52f}'     // Greek, Cyrillic
            | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' // punctuation
            | '\u{20a0}'..='\u{20bf}'                          // currencies
            | '\u{2190}'..='\u{21ff}' | '\u{2200}'..='\u{22ff}' // arrows, mathematics
            | '\u{2500}'..='\u{25ff}'                          // boxes, blocks, shapes
            | '\u{2654}' | '\u{2605}' | '\u{2717}' // our own marks
            | '\u{3001}'..='\u{3029}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30ff}' // kana
            | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' // Han, Hangul
            | '\u{ff01}'..='\u{ff60}') // full width
    });
    !known || chars.next().is_some()
}

fn hashes(buffer: &Buffer, links: &[Vec<Link>]) -> Vec<u64> {
    let width = usize::from(buffer.area.width).max(1);
    buffer
        .content
        .chunks(width)
        .zip(links)
        .map(|(row, links)| {
            let mut hasher = DefaultHasher::new();
            links.hash(&mut hasher);
            for cell in row {
                cell.symbol().hash(&mut hasher);
                (cell.fg, cell.bg, cell.modifier).hash(&mut hasher);
            }
            hasher.finish()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::style::Style;

    fn buffer(width: u16, lines: &[String]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, lines.len() as u16));
        for (y, line) in lines.iter().enumerate() {
            let style = match y % 3 {
                0 => Style::new(),
                1 => Style::new().fg(Color::Cyan),
                _ => Style::new().add_modifier(Modifier::BOLD),
            };
            buffer.set_stringn(0, y as u16, line, usize::from(width), style);
        }
        buffer
    }

    fn shows(parser: &vt100::Parser, buffer: &Buffer) -> Result<(), String> {
        let screen = parser.screen();
        for y in 0..buffer.area.height {
            let mut x = 0;
            while x < buffer.area.width {
                let wanted = &buffer[(x, y)];
                // Its own appearance depends on the terminal.
                if is_contested(wanted) {
                    x += columns(wanted) as u16;
                    continue;
                }
                let cell = screen.cell(y, x).unwrap();
                let shown = if cell.has_contents() {
                    cell.contents()
                } else {
                    " "
                };
                let bold = wanted.modifier.contains(Modifier::BOLD);
                if shown != wanted.symbol() || (shown != " " && cell.bold() != bold) {
                    return Err(format!("{x},{y}: {shown:?}, not {:?}", wanted.symbol()));
                }
                x += columns(wanted) as u16;
            }
        }
        Ok(())
    }

    fn rows(n: usize, from: usize) -> Vec<String> {
        (from..from + n)
            .map(|i| format!("line {i} of the log"))
            .collect()
    }

    #[test]
    fn the_same_frame_costs_nothing() {
        let mut painter = Painter::default();
        let frame = buffer(30, &rows(10, 0));
        assert!(painter.frame(&frame, Some((0, 0))).is_some());
        assert_eq!(painter.frame(&frame, Some((0, 0))), None);
        let moved = painter.frame(&frame, Some((1, 0))).unwrap();
        assert!(moved.len() < 24, "a cursor that moves is not a repaint");
    }

    #[test]
    fn links_are_written_once_and_move_with_their_rows() {
        let mut painter = Painter::default();
        let mut lines = rows(8, 0);
        lines[7] = "see http://h/x now".into();
        let link = |y| Link {
            y,
            from: 4,
            to: 14,
            url: "http://h/x".into(),
        };
        painter.link(vec![link(7)]);
        let bytes = painter.frame(&buffer(30, &lines), None).unwrap().to_vec();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches("\x1b]8;id=").count(), 1);
        assert!(
            text.contains(";http://h/x\x1b\\http://h/x\x1b]8;;\x1b\\ now"),
            "{text:?}"
        );
        painter.link(vec![link(7)]);
        assert_eq!(painter.frame(&buffer(30, &lines), None), None);
        // Without its link the same text is written again.
        let bytes = painter.frame(&buffer(30, &lines), None).unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(text.contains("see http://h/x now") && !text.contains("]8;"));
    }

    #[test]
    fn rows_that_move_are_moved_by_the_terminal() {
        let mut painter = Painter::default();
        let mut parser = vt100::Parser::new(21, 40, 0);
        let mut lines: Vec<String> = (0..20)
            .map(|i| format!("a rather long line {i} here"))
            .collect();
        lines.push("the status line".into());
        let lay = |lines: &[String]| {
            let mut b = Buffer::empty(Rect::new(0, 0, 40, 21));
            for (y, l) in lines.iter().enumerate() {
                b.set_stringn(0, y as u16, l, 40, Style::new());
            }
            b
        };
        let first = lay(&lines);
        parser.process(painter.frame(&first, None).unwrap());
        lines.remove(0);
        lines.insert(19, "a new line".into());
        let second = lay(&lines);
        let bytes = painter.frame(&second, None).unwrap().to_vec();
        assert!(bytes.len() < 100, "{}", bytes.len());
        parser.process(&bytes);
        shows(&parser, &second).unwrap();
        // And back again.
        let bytes = painter.frame(&first, None).unwrap().to_vec();
        assert!(bytes.len() < 120, "{}", bytes.len());
        parser.process(&bytes);
        shows(&parser, &first).unwrap();
    }

    proptest::proptest! {
        #[test]
        fn the_terminal_shows_the_frame(
            frames in proptest::collection::vec(
                proptest::collection::vec(
                    proptest::sample::select(vec![
                        "", "plain words", "日本語 wide", "a日b本c", "emoji 👍 here", "x", "the same line",
                        "another one that is longer", "ends wide 日", "👩‍👩‍👧 a family", "x\u{ad}y soft", "ℹ ⚙ marks",
                    ]), 8),
                1..8),
        ) {
            let mut painter = Painter::default();
            let mut parser = vt100::Parser::new(8, 28, 0);
            for lines in frames {
                let lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
                let frame = buffer(28, &lines);
                if let Some(bytes) = painter.frame(&frame, None) {
                    parser.process(bytes);
                }
                let shown = shows(&parser, &frame);
                proptest::prop_assert!(shown.is_ok(), "{:?}", shown);
            }
        }
    }
}
