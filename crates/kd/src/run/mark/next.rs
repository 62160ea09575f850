//! `kd marks next`, and the weekly hint: the unmarked verdicts whose marks would teach most.

use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use crate::render::wrap::clip;
use crate::run::here::Here;
use kd_app::marks::{Lesson, hinted, is_hint_due, lessons, total};
use kd_core::formats;
use serde_json::json as object;
use std::io::{self, IsTerminal, Write};

pub(super) fn next(as_json: bool, here: &Here) -> Result<Exit, Error> {
    let lessons = lessons(here)?;
    let mut out = crate::out::lines(as_json);
    if as_json {
        let value = object!({"v": formats::MARKS_NEXT.version, "verdicts": lessons});
        writeln!(out, "{}", json::text(&value, true)?)?;
    } else if lessons.is_empty() {
        writeln!(out, "no verdict of this project is without a mark")?;
    } else {
        let columns = io::stdout().is_terminal().then(|| here.columns());
        for line in lines(&lessons, columns) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(Exit::Done)
}

/// Shows the hint on stderr if it is due. Only on a terminal, and only to users who mark verdicts.
pub(in crate::run) fn hint(here: &Here) {
    let is_terminal = io::stderr().is_terminal() && io::stdout().is_terminal();
    if !is_terminal || !is_hint_due(here) {
        return;
    }
    let layout = here.find_layout().ok().flatten();
    let is_wanted = here
        .settings(layout.as_ref())
        .is_ok_and(|s| s.config.marks.hint);
    if !is_wanted {
        return;
    }
    if total(here).is_ok_and(|marks| marks == 0) {
        return;
    }
    // A hint is not worth an error.
    let Ok(lessons) = lessons(here) else { return };
    if lessons.is_empty() || hinted(here).is_err() {
        return;
    }
    let styles = here.err_styles();
    let mut err = crate::out::stderr().lock();
    let head = "marks of these verdicts would teach most (once a week; or `kd marks next`):";
    let lines = lines(&lessons, Some(here.columns()));
    for line in [head.to_owned()].into_iter().chain(lines) {
        let _ = writeln!(err, "{}", styles.dim(&line));
    }
}

/// Returns a line for each verdict, with the command that marks it.
fn lines(lessons: &[Lesson], columns: Option<usize>) -> Vec<String> {
    let line = |lesson: &Lesson| {
        let id = lesson
            .thread
            .strip_prefix("council-")
            .unwrap_or(&lesson.thread);
        let [id, verdict, question] = [id, &lesson.verdict, &lesson.question].map(clean::line);
        let text = format!("  kd mark {id} right|wrong   {verdict}   {question}");
        columns.map_or_else(
            || text.clone(),
            |columns| clip(&text, columns.saturating_sub(1)),
        )
    };
    lessons.iter().map(line).collect()
}
