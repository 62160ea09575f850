//! Panels, the elements of the log: each item of the view becomes a card (edge, title, lines) for a width. One file per
//! kind; cards know nothing of scrolling, and the log knows nothing of the inside of cards.

#![deny(clippy::wildcard_enum_match_arm)]

mod coming;
mod failed;
mod message;
mod notice;
mod queued;
mod streaming;
mod waiting;

use crate::keymap::{Action, Keymap};
use crate::text::growing::Growing;
use crate::text::style::{Styles, speaker};
use crate::text::wrap::{Line, Span, wrap_spans};
use crate::text::{clean, markdown};
use anstyle::{AnsiColor, Style};
use kd_app::words::count;
use kd_core::looks;
use kd_core::message::{Address, Message};
use kd_core::names::KING;
use kd_core::view::{Content, State, Trace, Turn};
use kd_core::{Failure, SeatName, Timestamp, Usage};
use std::sync::Arc;
use std::time::Duration;

/// Prose wider than this is hard to read.
pub const COLUMNS_MAX: usize = 120;

/// The look of all panels.
#[derive(Clone, Debug)]
pub struct Look {
    /// Colours and glyphs.
    pub styles: Styles,
    /// Columns of a card, including its edges.
    pub columns: usize,
    /// Columns of the screen.
    pub wide: usize,
    /// Members in order.
    pub members: Vec<SeatName>,
    /// The current time.
    pub now: Timestamp,
    /// Whether thinking is shown in full.
    pub unfolded: bool,
    /// The time limit of a member; `None` if unknown.
    pub gives_up: Option<Duration>,
    /// Time zone for displayed times.
    pub zone: jiff::tz::TimeZone,
    /// The keys, for hints.
    pub keys: Arc<Keymap>,
    /// How messages are framed.
    pub frame: Frame,
}

/// How messages are framed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frame {
    /// A box around every message.
    #[default]
    Box,
    /// A bar at the left.
    Bar,
}

/// An element of the log.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// An arriving answer.
    Turn(&'a Turn),
    /// Another element of the view.
    Panel(&'a Content),
    /// A member whose turn comes, and how many come before it.
    Coming(&'a SeatName, usize),
    /// A queued message of the user.
    Queued(&'a str, &'a Address),
}

/// A panel, laid out.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// The style of its edges.
    pub edge: Style,
    /// The speaker and facts about the message.
    pub title: Line,
    /// Lines between the title and the body.
    pub head: Vec<Line>,
    /// The text.
    pub body: Body,
    /// Below the text.
    pub foot: Vec<Line>,
    /// Lines without a box around them.
    pub bare: bool,
}

/// The text of a card.
#[derive(Clone, Debug, Default)]
pub enum Body {
    /// None.
    #[default]
    None,
    /// Lines laid out once.
    Lines(Vec<Line>),
    /// The growing lines, stored beside the card, with a cursor after them.
    Growing,
}

impl Card {
    /// Returns a line of its text, and the column where it begins; `None` for its border. `body` are the lines of the body,
    /// growing or not.
    pub fn text_line<'c>(&'c self, body: &'c [Line], at: usize) -> Option<(usize, &'c Line)> {
        if self.bare {
            let titles = usize::from(!self.title.is_empty());
            return match at.checked_sub(titles) {
                None => Some((1, &self.title)),
                Some(at) => Some((0, self.head.get(at)?)),
            };
        }
        // The upper border.
        let at = at.checked_sub(1)?;
        // A growing text has a line for its cursor before the first word.
        let rows = body
            .len()
            .max(usize::from(matches!(self.body, Body::Growing)));
        let line = match at.checked_sub(self.head.len()) {
            None => self.head.get(at),
            Some(at) if at < rows => body.get(at),
            Some(at) => self.foot.get(at - rows),
        };
        line.map(|line| (2, line))
    }
}

impl Look {
    /// Returns the columns inside a card.
    pub fn inner(&self) -> usize {
        self.columns.saturating_sub(4).max(8)
    }

    /// Returns the mark and style of a speaker.
    pub fn speaker(&self, name: &str) -> (&'static str, Style) {
        if name == KING {
            return (self.styles.glyph("♔", "K"), Style::new().bold());
        }
        let number = looks::number(name, self.members.iter().map(SeatName::as_str));
        (self.styles.mark(number), speaker(number))
    }

    /// Returns the style of a speaker's edge; bold is for text only.
    fn edge(&self, name: &str) -> Style {
        Style::new().fg_color(self.speaker(name).1.get_fg_color())
    }

    /// Returns the beginning of every title: mark and name.
    fn name(&self, name: &str) -> Line {
        let (mark, style) = self.speaker(name);
        vec![Span::new(style, format!("{mark} {}", clean::line(name)))]
    }

    fn dim(&self, text: impl Into<String>) -> Span {
        Span::new(Style::new().dimmed(), text)
    }

    fn dot(&self) -> &'static str {
        self.styles.glyph(" · ", " - ")
    }

    /// Wraps plain text in a style.
    fn words(&self, style: Style, text: &str) -> Vec<Line> {
        clean::text(text)
            .lines()
            .flat_map(|line| wrap_spans(&[Span::new(style, line)], self.inner()))
            .collect()
    }

    fn markdown(&self, text: &str) -> Body {
        Body::Lines(markdown::lines(text, self.inner(), self.styles))
    }

    /// Like [`Look::words`], for text the user typed: line breaks are kept.
    fn typed(&self, text: &str) -> Body {
        let mut fenced = false;
        let mut lines = String::with_capacity(text.len() + 16);
        for line in text.lines() {
            fenced ^= line.trim_start().starts_with("```");
            lines.push_str(line);
            lines.push_str(if fenced { "\n" } else { "  \n" });
        }
        self.markdown(&lines)
    }

    /// Formats the thinking of a finished answer.
    fn thought(&self, trace: &Trace) -> Vec<Line> {
        if !trace.thinking.trim().is_empty() || trace.thought == 0 {
            return self.thinking(&trace.thinking, false);
        }
        // Only the length is saved.
        let sign = self.styles.glyph("▸", ">");
        let chars = count(trace.thought as u64, "char");
        let text = format!("{sign} thought, {chars}");
        vec![vec![Span::new(
            Style::new().dimmed().italic(),
            crate::text::wrap::clip(&text, self.inner()),
        )]]
    }

    /// Formats the thinking of a growing answer: one line, or all of it.
    fn thinking(&self, thinking: &str, goes_on: bool) -> Vec<Line> {
        if thinking.trim().is_empty() {
            return Vec::new();
        }
        let style = Style::new().dimmed().italic();
        let chars = count(thinking.chars().count() as u64, "char");
        if self.unfolded {
            let mut lines = self.words(style, thinking.trim());
            lines.push(Line::new());
            return lines;
        }
        let word = if goes_on { "thinks" } else { "thought" };
        let sign = self.styles.glyph("▸", ">");
        let text = format!(
            "{sign} {word}, {chars}{}{} shows it",
            self.dot(),
            self.keys.label(Action::Thinking)
        );
        vec![vec![Span::new(
            style,
            crate::text::wrap::clip(&text, self.inner()),
        )]]
    }
}

fn red() -> Style {
    Style::new().fg_color(Some(AnsiColor::Red.into()))
}

fn yellow() -> Style {
    Style::new().fg_color(Some(AnsiColor::Yellow.into()))
}

/// Formats a duration in its largest useful units.
pub fn length(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{} s", time.as_secs()),
        s @ 60..3600 if s.is_multiple_of(60) => format!("{} min", s / 60),
        s @ 60..3600 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// Returns the time since `from`.
pub fn since(from: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(from)).unwrap_or_default()
}

/// Returns whether a panel changes with time.
pub fn is_alive(shown: Shown<'_>) -> bool {
    matches!(shown, Shown::Turn(_))
}

/// Returns the member a panel belongs to, for showing one member only; `None` if it concerns everyone.
pub fn whose<'a>(shown: Shown<'a>) -> Option<&'a str> {
    match shown {
        Shown::Panel(Content::Message { message, .. }) => Some(&message.from),
        Shown::Turn(turn) => Some(turn.seat.as_str()),
        Shown::Panel(Content::Stream(seat)) => Some(seat.as_str()),
        Shown::Panel(Content::Lost { seat, .. }) => Some(seat.as_str()),
        Shown::Panel(Content::Turn(_) | Content::Notice(_) | Content::Refusal(_)) => None,
        Shown::Coming(seat, _) => Some(seat.as_str()),
        Shown::Queued(..) => Some(KING),
    }
}

/// Lays out a message: complete, or failed.
fn said(
    message: &Message,
    failure: Option<&Failure>,
    usage: Option<&Usage>,
    trace: Option<&Trace>,
    look: &Look,
) -> Card {
    match message.is_sound() {
        true => message::card(message, usage, trace, look),
        false => failed::message(message, failure, trace, look),
    }
}

/// Lays out a panel. `growing` caches the layout of a growing text.
pub fn card(shown: Shown<'_>, look: &Look, growing: &mut Growing) -> Card {
    match shown {
        Shown::Panel(Content::Message {
            message,
            failure,
            usage,
            trace,
            ..
        }) => said(
            message,
            failure.as_ref(),
            usage.as_ref(),
            trace.as_deref(),
            look,
        ),
        Shown::Turn(turn) => {
            let silent = turn.text.is_empty() && turn.thinking.is_empty();
            match turn.state {
                State::Waiting | State::Started | State::Retrying { .. } if silent => {
                    waiting::card(turn, look)
                }
                State::Waiting
                | State::Started
                | State::Thinking
                | State::Tool { .. }
                | State::Answering
                | State::Retrying { .. }
                | State::Whole(_)
                | State::Done
                | State::Failed(_) => streaming::card(turn, look, growing),
            }
        }
        // The log resolves them to their turn.
        Shown::Panel(Content::Turn(_) | Content::Stream(_)) => Card::default(),
        Shown::Panel(Content::Lost {
            seat,
            text,
            failure,
        }) => failed::lost(seat, text, failure, look),
        Shown::Panel(Content::Notice(text)) => notice::card(text, look),
        Shown::Panel(Content::Refusal(text)) => notice::refusal(text, look),
        Shown::Coming(seat, place) => coming::card(seat, place, look),
        Shown::Queued(body, to) => queued::card(body, to, look),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        vec![Span::plain(text)]
    }

    #[test]
    fn borders_are_no_text() {
        let card = Card {
            title: line("ann"),
            head: vec![line("thought")],
            body: Body::Growing,
            foot: vec![line("files")],
            ..Card::default()
        };
        let body = [line("words")];
        let text = |at| {
            card.text_line(&body, at)
                .map(|(left, l)| (left, l[0].text.as_str()))
        };
        let all: Vec<_> = (0..5).map(text).collect();
        let (thought, words, files) = ((2, "thought"), (2, "words"), (2, "files"));
        assert_eq!(all, [None, Some(thought), Some(words), Some(files), None]);
        let text = |at| card.text_line(&[], at).map(|(_, l)| l[0].text.as_str());
        assert_eq!([text(2), text(3)], [None, Some("files")], "no word yet");
        let bare = Card {
            bare: true,
            ..card.clone()
        };
        let text = |at| {
            bare.text_line(&[], at)
                .map(|(left, l)| (left, l[0].text.as_str()))
        };
        assert_eq!(
            [text(0), text(1), text(2)],
            [Some((1, "ann")), Some((0, "thought")), None]
        );
    }
}
