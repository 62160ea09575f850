//! The progress of a download. Input: steps of the library, and when each came. Output: what to write to stderr: on a
//! terminal a line that is repainted below the remarks, otherwise a remark for every 10 %.

use super::{folded, mebibytes};
use crate::face::words;
use crate::render::clean;
use crate::render::wrap::clip;
use kd_app::Progress;
use kd_core::build_log::inert;
use kd_tui::inline::{FRAME, Region};
use std::time::{Duration, Instant};

/// Cells of the bar itself.
const CELLS: u64 = 24;

/// The displayed state of a download.
pub(super) struct Bar {
    /// The columns of the terminal; `None` without one.
    columns: Option<usize>,
    region: Region,
    painted: Option<Instant>,
    /// When the download started or was resumed, and with how many bytes.
    begun: Option<(Instant, u64)>,
    tenths: u64,
    /// The last failure. It is printed only if another source is tried, because the error lists all failures.
    gave_up: Option<String>,
}

impl Bar {
    /// Creates a bar for a terminal of this width; without one, lines are printed instead.
    pub(super) fn new(columns: Option<usize>) -> Self {
        Self {
            columns,
            region: Region::default(),
            painted: None,
            begun: None,
            tenths: 0,
            gave_up: None,
        }
    }

    /// Takes a step. Returns the bytes to write.
    pub(super) fn hear(&mut self, progress: &Progress, now: Instant) -> String {
        match progress {
            Progress::Trying { from, have } => {
                self.begun = Some((now, *have));
                let again = match have {
                    0 => String::new(),
                    have => format!(", resuming after {}", mebibytes(*have)),
                };
                let failed = self.gave_up.take().map(|line| self.remark(&line));
                let now = self.remark(&format!("  from {}{again}", clean::line(from)));
                failed.unwrap_or_default() + &now
            }
            Progress::Bytes { done, total } => self.bytes(*done, *total, now),
            Progress::GaveUp { from, why } => {
                self.gave_up = Some(format!("  {}: {}", clean::line(from), clean::line(why)));
                String::new()
            }
            Progress::Confirmed { sha256 } => {
                self.remark(&format!("  SHA-256 {sha256}, as the hub names it"))
            }
            Progress::Waiting => self.remark("  another kd is downloading it: waiting"),
            Progress::Checking => self.remark("  checking"),
        }
    }

    /// Returns the bytes that remove the line.
    pub(super) fn end(&mut self) -> &'static str {
        self.region.clear()
    }

    fn bytes(&mut self, done: u64, total: u64, now: Instant) -> String {
        let tenths = done.saturating_mul(10) / total.max(1);
        let is_new = std::mem::replace(&mut self.tenths, tenths) < tenths;
        let Some(columns) = self.columns else {
            return match is_new {
                true => self.remark(&format!("  {} %", tenths * 10)),
                false => String::new(),
            };
        };
        let is_soon = |painted: Instant| now.duration_since(painted) < FRAME;
        if self.painted.is_some_and(is_soon) && done < total {
            return String::new();
        }
        self.painted = Some(now);
        let (begun, had) = *self.begun.get_or_insert((now, done));
        let line = line(done, total, done.saturating_sub(had), now - begun);
        let line = clip(&line, columns.saturating_sub(1));
        self.region.frame(vec![line]).unwrap_or_default()
    }

    /// Returns the bytes that print a remark above the line.
    pub(super) fn remark(&mut self, text: &str) -> String {
        let lines = folded(&inert(text), self.columns);
        let text: String = lines.into_iter().map(|line| line + "\n").collect();
        match self.region.is_empty() {
            true => text,
            false => self.region.print(&text, self.region.lines()),
        }
    }
}

/// Formats the progress: a bar, the share, the bytes, their rate and the time left, as far as these are known.
fn line(done: u64, total: u64, got: u64, took: Duration) -> String {
    let total = total.max(1);
    let full = (done.min(total).saturating_mul(CELLS) / total) as usize;
    let bar = "█".repeat(full) + &"░".repeat(CELLS as usize - full);
    let percent = done.min(total).saturating_mul(100) / total;
    let mut line = format!(
        "  {bar} {percent:>3} %  {}/{}",
        mebibytes(done),
        mebibytes(total)
    );
    let rate = got as f64 / took.as_secs_f64();
    let left = Duration::try_from_secs_f64(total.saturating_sub(done) as f64 / rate);
    if let (true, Ok(left)) = (rate >= 1.0, left) {
        line += &format!(
            "  {}/s  {} left",
            mebibytes(rate as u64),
            words::seconds(left)
        );
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn trying(have: u64) -> Progress {
        Progress::Trying {
            from: "the hub".into(),
            have,
        }
    }

    fn bytes(done: u64) -> Progress {
        Progress::Bytes {
            done: done * MIB,
            total: 100 * MIB,
        }
    }

    fn shown(bytes: &str, columns: u16) -> String {
        let mut terminal = vt100::Parser::new(8, columns, 100);
        terminal.process(bytes.replace('\n', "\r\n").as_bytes());
        let rows = terminal.screen().rows(0, columns);
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    #[test]
    fn a_terminal_shows_one_line_below_the_remarks_and_none_at_the_end() {
        let mut bar = Bar::new(Some(80));
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut out = bar.hear(&trying(20 * MIB), at(0));
        out += &bar.hear(&bytes(30), at(1000));
        assert_eq!(
            shown(&out, 80),
            "  from the hub, resuming after 20.0 MiB\n  \
             ███████░░░░░░░░░░░░░░░░░  30 %  30.0 MiB/100.0 MiB  10.0 MiB/s  7.0 s left"
        );
        assert_eq!(bar.hear(&bytes(31), at(1001)), "", "one frame at a time");
        out += &bar.hear(&Progress::Checking, at(1500));
        out += &bar.hear(&bytes(60), at(3000));
        assert_eq!(
            shown(&out, 80),
            "  from the hub, resuming after 20.0 MiB\n  checking\n  \
             ██████████████░░░░░░░░░░  60 %  60.0 MiB/100.0 MiB  13.3 MiB/s  3.0 s left"
        );
        out += bar.end();
        assert_eq!(
            shown(&out, 80),
            "  from the hub, resuming after 20.0 MiB\n  checking"
        );
    }

    #[test]
    fn a_narrow_terminal_shows_the_beginning_of_the_line() {
        let mut bar = Bar::new(Some(20));
        let out = bar.hear(&bytes(50), Instant::now());
        assert_eq!(shown(&out, 20).lines().count(), 1, "{out:?}");
    }

    #[test]
    fn without_a_terminal_each_tenth_is_a_line() {
        let mut bar = Bar::new(None);
        let now = Instant::now();
        let steps = [trying(0), bytes(9), bytes(10), bytes(11), bytes(35)];
        let out: String = steps.iter().map(|step| bar.hear(step, now)).collect();
        assert_eq!(out, "  from the hub\n  10 %\n  30 %\n");
        assert_eq!(bar.end(), "");
    }

    #[test]
    fn a_size_of_zero_and_too_many_bytes_are_drawn() {
        assert!(line(0, 0, 0, Duration::ZERO).contains("  0 %"));
        assert!(line(9, 3, 9, Duration::from_secs(1)).contains("100 %"));
        assert!(line(1, u64::MAX, 1, Duration::from_secs(1)).contains("  0 %"));
    }
}
