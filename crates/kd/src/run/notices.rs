//! Notices of the library on stderr: remarks as lines, downloads as a progress bar.

use crate::face::words;
use crate::render::clean;
use crate::render::wrap::fold;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kd_app::{Download, Notice, Progress};
use kd_core::build_log::inert;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// Shows a notice on stderr.
pub(super) fn notice_line(text: &str) {
    say(&inert(&clean::line(text)));
}

/// Writes lines of prose to stderr, on a terminal wrapped between their words.
pub(super) fn say(text: &str) {
    let columns = kd_tui::terminal::size_of_stderr().map(|(columns, _)| columns.into());
    let lines: String = text
        .lines()
        .flat_map(|line| folded(line, columns))
        .map(|line| line + "\n")
        .collect();
    // If this cannot be written, nobody reads it.
    let _ = crate::out::stderr().lock().write_all(lines.as_bytes());
}

/// Wraps a line of prose at the columns of a terminal, if there is one. Its later lines are indented.
pub(super) fn folded(line: &str, columns: Option<usize>) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    match columns {
        Some(columns) => fold(line, columns, indent + 2),
        None => vec![line.to_owned()],
    }
}

/// Shows the notices of the library.
pub(super) fn printer() -> impl Fn(&Notice) + Send + Sync {
    let bar: Mutex<Option<Bar>> = Mutex::default();
    move |notice| match notice {
        Notice::Note(text) | Notice::Warning(text) => notice_line(text),
        Notice::Download(step) => {
            let mut bar = bar.lock().unwrap_or_else(PoisonError::into_inner);
            download(step, &mut bar);
        }
        _ => {}
    }
}

fn download(step: &Download, bar: &mut Option<Bar>) {
    match step {
        Download::Begun { model, folder } => {
            say(&format!(
                "downloading {}: {}, licence {}, into {}",
                model.title,
                mebibytes(model.bytes),
                model.licence,
                folder.display()
            ));
            *bar = Some(Bar::new(model.bytes));
        }
        Download::Progress(progress) => {
            if let Some(bar) = bar {
                bar.hear(progress);
            }
        }
        Download::Ended { model, took } => {
            if let Some(bar) = bar.take() {
                bar.end();
            }
            if let Some(took) = took {
                let took = words::seconds(*took);
                say(&format!(
                    "{} is downloaded; its checksum matches ({took})",
                    model.key
                ));
            }
        }
    }
}

/// Progress on stderr: a bar on a terminal, otherwise a line for every 10 %.
struct Bar {
    bar: ProgressBar,
    lines: bool,
    tenths: u64,
}

impl Bar {
    fn new(bytes: u64) -> Self {
        let terminal =
            io::stderr().is_terminal() && std::env::var("TERM").is_ok_and(|t| t != "dumb");
        let bar = if terminal {
            ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        let template = "  {bar:24} {percent:>3} %  {bytes}/{total_bytes}  {bytes_per_sec}  {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self {
            bar,
            lines: !terminal,
            tenths: 0,
        }
    }

    fn hear(&mut self, progress: &Progress) {
        match progress {
            Progress::Trying { from, have } => {
                let again = if *have > 0 {
                    format!(", resuming after {}", mebibytes(*have))
                } else {
                    String::new()
                };
                self.say(&format!("  from {}{again}", clean::line(from)));
            }
            Progress::Bytes { done, total } => {
                self.bar.set_length(*total);
                self.bar.set_position(*done);
                let tenths = done.saturating_mul(10) / (*total).max(1);
                if self.lines && tenths > self.tenths {
                    self.say(&format!("  {} %", tenths * 10));
                }
                self.tenths = tenths;
            }
            Progress::GaveUp { from, why } => {
                self.say(&format!("  {}: {}", clean::line(from), clean::line(why)))
            }
            Progress::Confirmed { sha256 } => {
                self.say(&format!("  SHA-256 {sha256}, as the hub names it"));
            }
            Progress::Waiting => self.say("  another kd is downloading it: waiting"),
            Progress::Checking => self.say("  checking"),
        }
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| say(line));
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Formats a size: `93.8 MiB`, `1.0 GiB`.
pub(super) fn mebibytes(bytes: u64) -> String {
    const MIB: f64 = (1_u64 << 20) as f64;
    match bytes as f64 / MIB {
        mib if mib >= 1000.0 => format!("{:.1} GiB", mib / 1024.0),
        mib => format!("{mib:.1} MiB"),
    }
}
