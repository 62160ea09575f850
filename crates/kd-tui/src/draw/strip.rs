//! The strip above the keys: who has spoken in this round, who is speaking, and who is next. Built from the newest
//! round of the view; the most important part is dropped last.

use crate::panels::{Look, length, since};
use crate::text::wrap::{Line, Span, clip_spans, line_width};
use anstyle::{AnsiColor, Style};
use kd_app::words::count;
use kd_core::Usage;
use kd_core::message::{Message, Status};
use kd_core::view::{Content, State, Trace, Turn, View};
use std::time::Duration;

/// Steps by which the strip is shortened, from everything to only the current speaker.
const LEVELS: u8 = 7;

/// Label of a turn with nothing to add.
const PASSED: &str = "passed";

/// The state of a member in this round.
struct Spoke<'a> {
    name: &'a str,
    /// The result of its last turn, if not an answer.
    instead: Option<&'static str>,
    took: Duration,
    used: Usage,
}

/// Builds the strip. `None` if no member has been asked yet.
pub(super) fn strip(view: &View, look: &Look, width: usize) -> Option<Line> {
    let speaking: Vec<&Turn> = view.growing_turns().collect();
    let spoke = spoke(view, &speaking);
    if spoke.is_empty() && speaking.is_empty() {
        return None;
    }
    let at = |(level, has_sum)| strip_at(view, &spoke, &speaking, look, (level, has_sum));
    // Where the facts of each member do not fit, their sum; names of a running round are worth more.
    let sums = match speaking.is_empty() {
        true => 1..5,
        false => 1..4,
    };
    let steps = [(0, false)]
        .into_iter()
        .chain(sums.map(|level| (level, true)));
    let steps = steps.chain((1..LEVELS).map(|level| (level, false)));
    let fitting = steps.map(at).find(|line| line_width(line) <= width);
    Some(fitting.unwrap_or_else(|| clip_spans(&at((LEVELS - 1, false)), width)))
}

/// Returns the members that have spoken and are neither speaking nor next, in the order of their turns.
fn spoke<'a>(view: &'a View, speaking: &[&Turn]) -> Vec<Spoke<'a>> {
    let mut list: Vec<Spoke<'a>> = Vec::new();
    for panel in view.round() {
        let (name, instead, took) = match &panel.content {
            Content::Message { message, trace, .. } => (
                message.from.as_str(),
                instead(message),
                trace.as_deref().map_or(Duration::ZERO, time),
            ),
            Content::Lost { seat, .. } => (seat.as_str(), Some("failed"), Duration::ZERO),
            _ => continue,
        };
        let at = list.iter().position(|s| s.name == name);
        let one = match at.and_then(|at| list.get_mut(at)) {
            Some(one) => one,
            None => {
                list.push(Spoke {
                    name,
                    instead,
                    took: Duration::ZERO,
                    used: Usage::default(),
                });
                match list.last_mut() {
                    Some(one) => one,
                    None => continue,
                }
            }
        };
        one.instead = instead;
        one.took += took;
        if let Some(used) = panel.content.spent() {
            one.used.add(&used);
        }
    }
    let comes = |name: &str| {
        let next = view.course.iter().flat_map(|course| &course.next);
        speaking.iter().any(|g| g.seat.as_str() == name)
            || next.into_iter().any(|seat| seat.as_str() == name)
    };
    list.retain(|s| !comes(s.name));
    list
}

/// Returns the result of a turn, if not an answer.
fn instead(message: &Message) -> Option<&'static str> {
    match message.status {
        _ if message.is_pass() => Some(PASSED),
        _ if message.is_sound() => None,
        Some(Status::Interrupted) => Some("stopped"),
        Some(Status::Timeout) => Some("timed out"),
        _ => Some("failed"),
    }
}

fn time(trace: &Trace) -> Duration {
    trace
        .span
        .map(|(from, to)| since(from, to))
        .unwrap_or_default()
}

fn strip_at(
    view: &View,
    spoke: &[Spoke<'_>],
    speaking: &[&Turn],
    look: &Look,
    (level, has_sum): (u8, bool),
) -> Line {
    let dim = Style::new().dimmed();
    let dot = look.styles.glyph(" · ", " - ");
    let mut parts: Vec<Line> = Vec::new();
    for one in spoke.iter().filter(|_| level < 5) {
        let (mark, style) = look.speaker(one.name);
        let mut part = match level {
            0..4 => vec![Span::new(style, format!("{mark} {}", one.name))],
            _ => vec![Span::new(style, mark)],
        };
        match one.instead {
            Some(PASSED) if level < 3 => part.push(Span::new(dim, format!(" {PASSED}"))),
            Some(PASSED) | None => {}
            Some(what) => {
                let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
                part.push(match level {
                    0..3 => Span::new(red, format!(" {what}")),
                    _ => Span::new(red, look.styles.glyph("✗", "x")),
                });
            }
        }
        part.push(Span::new(dim, facts(one, level)));
        parts.push(part);
    }
    for growing in speaking {
        let (mark, style) = look.speaker(growing.seat.as_str());
        let what = match growing.state {
            State::Waiting | State::Started if growing.text.is_empty() => "asked",
            State::Retrying { .. } => "asked again",
            _ => "speaks",
        };
        let so_far = growing
            .span
            .filter(|_| level < 5)
            .map(|(from, _)| format!(" {}", length(since(from, look.now))))
            .unwrap_or_default();
        let name = match level {
            0..6 => format!("{mark} {}", growing.seat),
            _ => mark.to_owned(),
        };
        parts.push(vec![
            Span::new(style, name),
            Span::plain(format!(" {what}{so_far}")),
        ]);
    }
    if let Some(course) = &view.course {
        // A member that takes several turns is named once.
        let mut named: Vec<&str> = speaking.iter().map(|g| g.seat.as_str()).collect();
        for (i, seat) in course.next.iter().enumerate() {
            if i > 0 && named.contains(&seat.as_str()) {
                continue;
            }
            named.push(seat.as_str());
            let (mark, style) = look.speaker(seat.as_str());
            let word = match (i, level) {
                (0, _) => " next",
                (1.., 0..2) if i < look.members.len() => " then",
                _ => break,
            };
            let style = style.dimmed();
            parts.push(vec![
                Span::new(style, format!("{mark} {seat}")),
                Span::new(dim, word),
            ]);
        }
        let lead = if level < 5 { "turn " } else { "" };
        let turn = format!("{lead}{} of {}", course.number, course.of);
        parts.push(vec![Span::plain(turn)]);
    }
    if has_sum {
        let mut sum = Usage::default();
        spoke.iter().for_each(|one| sum.add(&one.used));
        let facts = used(&sum);
        if !facts.is_empty() {
            parts.push(vec![Span::new(dim, facts.trim_start().to_owned())]);
        }
    }
    if view.course.is_none() && speaking.is_empty() && view.waiting.is_empty() {
        parts.push(vec![Span::new(Style::new().bold(), "your turn")]);
    }
    let mut line = vec![Span::plain(" ")];
    for (i, part) in parts.into_iter().enumerate() {
        if i > 0 {
            line.push(Span::new(dim, if level < 4 { dot } else { "  " }));
        }
        line.extend(part);
    }
    line
}

/// Returns the facts about a member's turn that fit.
fn facts(one: &Spoke<'_>, level: u8) -> String {
    let mut facts = String::new();
    if level < 2 && one.took.as_secs() > 0 {
        facts.push_str(&format!(" {}", length(one.took)));
    }
    if level < 1 {
        facts.push_str(&used(&one.used));
    }
    facts
}

/// Returns tokens and cost, each after a space.
fn used(used: &Usage) -> String {
    let mut facts = String::new();
    if used.output_tokens > 0 {
        facts.push_str(&format!(" {}", count(used.output_tokens, "token")));
    }
    if let Some(price) = used.price() {
        facts.push_str(&format!(" {price}"));
    }
    facts
}
