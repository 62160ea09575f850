//! Phrases shared by several outputs.

use crate::render::clean;
use crate::render::wrap::width;
use jiff::Timestamp;
use kd_app::words::{count, debate, grouped};
use kd_core::event::{DuetEnd, DuetPhase, Outcome, Purpose};
use kd_core::view::{Debate, State, Turn, View};
use kd_core::{FailureKind, Usage};
use std::time::Duration;

/// `0.4 s`, `12 s`, `3 min 05 s`.
pub(crate) fn seconds(time: Duration) -> String {
    let s = time.as_secs_f64();
    if s < 10.0 {
        format!("{s:.1} s")
    } else if s < 60.0 {
        format!("{s:.0} s")
    } else {
        format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
    }
}

/// Aligns rows into columns as wide as their widest cell; the first `left` columns are left-aligned, the others
/// right-aligned. The first row is the heading. On a terminal that is too narrow, each row becomes a block of its cells
/// with their headings.
pub(crate) fn table<const N: usize>(rows: &[[String; N]], left: usize) -> String {
    let lines = blocks(rows, left).concat();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Formats the rows of a table, each in its own lines; none for the heading where each row has the headings.
pub(crate) fn blocks<const N: usize>(rows: &[[String; N]], left: usize) -> Vec<Vec<String>> {
    let aligned = aligned(rows, left);
    let columns = kd_tui::terminal::size().map(|(columns, _)| columns.into());
    match columns.filter(|columns| aligned.iter().any(|line| width(line) > *columns)) {
        Some(columns) => stacked(rows, columns),
        None => aligned.into_iter().map(|line| vec![line]).collect(),
    }
}

/// Formats each row as a block: its first cell, and below it the others with their headings.
fn stacked<const N: usize>(rows: &[[String; N]], columns: usize) -> Vec<Vec<String>> {
    let Some((head, rows)) = rows.split_first() else {
        return Vec::new();
    };
    std::iter::once(Vec::new())
        .chain(rows.iter().map(|row| block(head, row, columns)))
        .collect()
}

/// Formats a row as a block.
fn block<const N: usize>(head: &[String; N], row: &[String; N], columns: usize) -> Vec<String> {
    let mut lines = vec![row[0].trim_end().to_owned()];
    let mut line = String::new();
    let cells = head.iter().zip(row).skip(1);
    for (head, cell) in cells.filter(|(_, cell)| !cell.is_empty()) {
        let item = format!("{head} {cell}");
        let item = item.trim();
        if !line.is_empty() && width(&line) + 2 + width(item) > columns {
            lines.push(std::mem::take(&mut line));
        }
        line += &format!("  {item}");
    }
    lines.extend(Some(line).filter(|line| !line.is_empty()));
    lines
}

/// A table whose rows are printed one by one, before the others are known.
pub(crate) struct Growing<const N: usize> {
    head: [String; N],
    /// The widths of the columns; the last takes what is left.
    widths: [usize; N],
    columns: Option<usize>,
}

impl<const N: usize> Growing<N> {
    /// Creates a table for a terminal of some columns, or for a pipe. A column is at least as wide as its heading.
    pub(crate) fn new(head: [&str; N], widths: [usize; N], columns: Option<usize>) -> Self {
        let widths = std::array::from_fn(|at| widths[at].max(width(head[at])));
        Self {
            head: head.map(str::to_owned),
            widths,
            columns,
        }
    }

    /// Returns the columns of a terminal where each row is a block, because the table is too wide.
    fn narrow(&self) -> Option<usize> {
        let all: usize = self.widths.iter().map(|width| width + 2).sum();
        self.columns.filter(|columns| all > *columns + 2)
    }

    /// Returns the heading; `None` where each row has the headings.
    pub(crate) fn heading(&self) -> Option<String> {
        match self.narrow() {
            Some(_) => None,
            None => self.row(&self.head).pop(),
        }
    }

    /// Formats a row.
    pub(crate) fn row(&self, cells: &[String; N]) -> Vec<String> {
        if let Some(columns) = self.narrow() {
            return block(&self.head, cells, columns);
        }
        let cells = cells.iter().zip(self.widths);
        let cells = cells.map(|(cell, most)| {
            let blank = " ".repeat(most.saturating_sub(width(cell)));
            format!("{cell}{blank}")
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let room = self.columns.unwrap_or(usize::MAX);
        vec![crate::render::wrap::clip(line.trim_end(), room)]
    }
}

/// Formats each row as one line, with columns as wide as their widest cell.
fn aligned<const N: usize>(rows: &[[String; N]], left: usize) -> Vec<String> {
    let widths: [usize; N] =
        std::array::from_fn(|at| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(at, (cell, most))| {
                let blank = " ".repeat(most.saturating_sub(width(cell)));
                match at < left {
                    true => format!("{cell}{blank}"),
                    false => format!("{blank}{cell}"),
                }
            });
        let line = cells.collect::<Vec<_>>().join("  ");
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Describes what a member is doing now. Without the time, nothing is counted down.
pub(crate) fn doing(turn: &Turn, now: Option<Timestamp>) -> String {
    match &turn.state {
        State::Waiting | State::Started => "waiting for the first word".into(),
        State::Thinking if turn.text.is_empty() => {
            format!("thinking, {}", count(turn.thinking_chars as u64, "char"))
        }
        State::Tool { name, .. } => format!("using {}", clean::line(name)),
        State::Thinking | State::Answering | State::Whole(_) => count(turn.chars as u64, "char"),
        State::Retrying { at, failure, .. } => {
            let left = at.zip(now).map(|(at, now)| at.duration_since(now));
            let left = left.and_then(|left| Duration::try_from(left).ok());
            let left = left.unwrap_or_default();
            let why = clean::line(&failure.message);
            if left.is_zero() {
                format!("asking again: {why}")
            } else {
                format!("asking again in {} s: {why}", left.as_secs_f64().ceil())
            }
        }
        State::Done => "done".into(),
        State::Failed(failure) if failure.kind == FailureKind::Cancelled => "interrupted".into(),
        State::Failed(failure) => format!("failed: {}", clean::line(&failure.message)),
    }
}

/// Formats what a finished turn took, joined by `between`: `model-1 · 3.0 s · 42 tokens`.
pub(crate) fn took(turn: &Turn, between: &str) -> String {
    let mut parts = Vec::new();
    if let Some(phase) = turn.phase {
        parts.push(part(phase).to_owned());
    } else if turn.purpose == Purpose::Conclude {
        parts.push("conclusion".to_owned());
    } else if turn.purpose == Purpose::Format {
        parts.push("as JSON".to_owned());
    }
    parts.extend(turn.model.as_deref().map(clean::line));
    parts.extend(turn.took().map(seconds));
    parts.extend(turn.usage.as_ref().map(usage));
    parts.join(between)
}

/// Formats the tokens of one answer: `42 tokens`, with the price if known. An upper bound is marked `≤`.
pub(crate) fn usage(usage: &Usage) -> String {
    let tokens = match usage.counts_tokens() {
        true => format!(
            "{}{}",
            usage.certainty.sign(),
            count(usage.output_tokens, "token")
        ),
        false => "tokens unknown".to_owned(),
    };
    priced(tokens, usage)
}

/// Formats total tokens: `1,200 tokens in, 42 out`, with the price if known.
pub(crate) fn total(usage: &Usage) -> String {
    let tokens = match usage.counts_tokens() {
        true => format!(
            "{}{} in, {} out",
            usage.certainty.sign(),
            count(usage.input_tokens, "token"),
            grouped(usage.output_tokens)
        ),
        false => "tokens unknown".to_owned(),
    };
    priced(tokens, usage)
}

fn priced(tokens: String, usage: &Usage) -> String {
    match usage.price() {
        Some(price) => format!("{tokens}, {price}"),
        None => tokens,
    }
}

/// Names the purpose of a duet's turn.
pub(crate) fn part(phase: DuetPhase) -> &'static str {
    match phase {
        DuetPhase::FirstLook => "first look",
        DuetPhase::Debate => "debate",
        DuetPhase::Decision => "decision",
    }
}

/// Describes how a duet ended.
fn duet(end: &Debate, outcome: Outcome) -> String {
    let missing = if outcome == Outcome::Partial {
        "; a member failed"
    } else {
        ""
    };
    let how = debate(end.why, end.exchanged, missing);
    match end.why {
        DuetEnd::Agreed if end.exchanged == 0 => format!("{how} (--min-messages 1 has it checked)"),
        _ => how,
    }
}

/// Describes how the round ended, in one line that names missing members.
pub(crate) fn outcome(view: &View) -> Option<String> {
    let outcome = view.outcome?;
    if let Some(end) = &view.debate {
        return Some(duet(end, outcome));
    }
    // A member that was asked again counts once, with its last answer.
    let mut asked: Vec<&Turn> = Vec::new();
    for turn in view.turns.iter().filter(|t| t.purpose == Purpose::Answer) {
        match asked.iter_mut().find(|one| one.seat == turn.seat) {
            Some(one) => *one = turn,
            None => asked.push(turn),
        }
    }
    let answered = asked.iter().filter(|t| t.state == State::Done).count();
    let missing: Vec<&str> = asked
        .iter()
        .filter(|t| t.failure().is_some())
        .map(|t| t.seat.as_str())
        .collect();
    let of = format!("{answered} of {}", asked.len());
    Some(match outcome {
        Outcome::Complete => format!("{of} answered"),
        Outcome::Partial if missing.is_empty() => {
            format!("{of} answered; the conclusion is missing")
        }
        Outcome::Partial => format!("{of} answered; without {}", missing.join(", ")),
        Outcome::Failed => format!("no member answered: {} failed", missing.join(", ")),
        Outcome::Interrupted => format!("interrupted; {of} answered, partial answers are saved"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::spending::money;
    use kd_core::usage::Certainty;

    #[test]
    fn what_was_used_is_told_or_unknown() {
        let used = |input_tokens, output_tokens, cost_usd| Usage {
            input_tokens,
            output_tokens,
            cost_usd,
            ..Usage::default()
        };
        for (used, one, all) in [
            (
                used(32_000, 35, Some(0.033)),
                "35 tokens, $0.0330",
                "32,000 tokens in, 35 out, $0.0330",
            ),
            (used(1, 0, None), "0 tokens", "1 token in, 0 out"),
            (used(0, 0, None), "tokens unknown", "tokens unknown"),
            (
                used(0, 0, Some(0.5)),
                "tokens unknown, $0.5000",
                "tokens unknown, $0.5000",
            ),
        ] {
            assert_eq!(
                (usage(&used), total(&used)),
                (one.to_owned(), all.to_owned())
            );
        }
    }

    #[test]
    fn bounds_are_marked_and_rounded_away_from_what_they_bound() {
        let used = |certainty| Usage {
            input_tokens: 1200,
            output_tokens: 42,
            cost_usd: Some(0.012_34),
            certainty,
            ..Usage::default()
        };
        for (certainty, text) in [
            (Certainty::Exact, "1,200 tokens in, 42 out, $0.0123"),
            (Certainty::AtMost, "≤ 1,200 tokens in, 42 out, ≤ $0.0124"),
            (Certainty::AtLeast, "≥ 1,200 tokens in, 42 out, ≥ $0.0123"),
            (Certainty::About, "≈ 1,200 tokens in, 42 out, ≈ $0.0123"),
        ] {
            assert_eq!(total(&used(certainty)), text);
        }
        assert_eq!(usage(&used(Certainty::AtMost)), "≤ 42 tokens, ≤ $0.0124");
        assert_eq!(money(0.0123, Certainty::AtMost), "≤ $0.0123");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1, "char"), "1 char");
        assert_eq!(count(1_234_567, "token"), "1,234,567 tokens");
        assert_eq!(seconds(Duration::from_millis(340)), "0.3 s");
        assert_eq!(seconds(Duration::from_secs(59)), "59 s");
        assert_eq!(seconds(Duration::from_secs(185)), "3 min 05 s");
    }
}
