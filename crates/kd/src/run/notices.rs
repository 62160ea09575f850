//! Notices of the library on stderr: remarks as lines, downloads as a progress bar.

mod bar;

use crate::face::words;
use crate::render::clean;
use crate::render::wrap::fold;
use bar::Bar;
pub(super) use kd_app::words::mebibytes;
use kd_app::{Download, Notice};
use kd_core::build_log::inert;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Shows a notice on stderr.
pub(super) fn notice_line(text: &str) {
    say(&inert(&clean::line(text)));
}

/// Maximum changed messages that are named.
const CHANGED_MAX: usize = 5;

/// Says on stderr which messages differ from what their thread's log recorded.
pub(super) fn tell_changed(changed: &[String]) {
    for line in changed.iter().take(CHANGED_MAX) {
        notice_line(&format!("note: {line}"));
    }
    if let Some(more) = changed.len().checked_sub(CHANGED_MAX).filter(|n| *n > 0) {
        let messages = kd_app::words::count(more as u64, "other message");
        notice_line(&format!("note: {messages} differ from the record too"));
    }
}

/// Writes lines of prose to stderr, on a terminal wrapped between their words.
pub(super) fn say(text: &str) {
    let columns = kd_tui::terminal::size_of_stderr().map(|(columns, _)| columns.into());
    let lines: String = text
        .lines()
        .flat_map(|line| folded(line, columns))
        .map(|line| line + "\n")
        .collect();
    write(&lines);
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
        Notice::Note(text) | Notice::Warning(text) => {
            match &mut *bar.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(bar) => write(&bar.remark(&clean::line(text))),
                None => notice_line(text),
            }
        }
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
            *bar = Some(Bar::new(drawing_columns()));
        }
        Download::Progress(progress) => {
            if let Some(bar) = bar {
                write(&bar.hear(progress, Instant::now()));
            }
        }
        Download::Ended { model, took } => {
            if let Some(mut bar) = bar.take() {
                write(bar.end());
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

/// Returns the columns in which a bar is drawn; `None` if stderr is not a terminal that can repaint a line.
fn drawing_columns() -> Option<usize> {
    let can_repaint = std::env::var("TERM").is_ok_and(|term| term != "dumb");
    let size = kd_tui::terminal::size_of_stderr().filter(|_| can_repaint);
    size.map(|(columns, _)| columns.into())
}

/// Writes bytes to stderr.
fn write(bytes: &str) {
    // If this cannot be written, stderr was closed.
    let _ = crate::out::stderr().lock().write_all(bytes.as_bytes());
}
