//! Rounds in a process of their own: the log of such a process, and whether its round has begun.

use crate::error::UserError;
use kd_core::{Event, Record};
use kd_store::{Thread, beneath, bounds};
use std::fs::File;
use std::path::Path;

/// Opens the log of a background process, to append to it.
///
/// # Errors
/// It cannot be opened.
pub fn open_log(log: &Path) -> Result<File, UserError> {
    Ok(beneath::append(log)?)
}

/// Returns the last line of a log; empty if there is none.
pub fn last_line(log: &Path) -> String {
    let (end, _) = beneath::read_end(log, bounds::LOG_END).unwrap_or_default();
    let end = String::from_utf8_lossy(&end);
    end.lines().last().unwrap_or_default().to_owned()
}

/// Returns whether the round of a process that has ended was completed.
pub fn is_completed(log: &Path) -> bool {
    let record = serde_json::from_str::<Record>(&last_line(log));
    record.is_ok_and(|record| matches!(record.event, Event::FloorYielded { .. }))
}

/// Returns the number of the newest message of a thread; 0 if it has none.
///
/// # Errors
/// The thread cannot be read.
pub fn newest_message(thread: &Thread) -> Result<u32, UserError> {
    let newest = thread.tail(1)?.messages;
    Ok(newest.last().map_or(0, |m| m.seq))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_ended_between_two_looks_has_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let yielded = r#"{"v":1,"seq":9,"ts":"2026-01-01T00:00:00Z","thread":"council-3e2c","event":"floor_yielded","outcome":"complete","usage":{"input_tokens":0,"output_tokens":0}}"#;
        for (text, ran_to_its_end) in [
            (format!("{yielded}\n"), true),
            ("error: there is no model\n".to_owned(), false),
            (format!("{yielded}\nerror: there is no model\n"), false),
            (String::new(), false),
        ] {
            std::fs::write(&log, &text).expect("written");
            assert_eq!(is_completed(&log), ran_to_its_end, "{text}");
        }
    }
}
