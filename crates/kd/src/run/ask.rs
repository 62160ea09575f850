//! `kd ask`: opens a thread, asks, and says how it went.

use super::here::Here;
use super::notices::{folded, notice_line};
use super::stage::Shows;
use super::{attach, background, choice, first, question, schema, stage, trust};
use crate::args::ask::Ask;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::words;
use kd_app::{Opened, Prepared, Question};
use kd_core::Op;
use kd_core::event::Outcome;
use kd_core::view::View;
use std::io::Write;

/// The task of the council.
pub(super) enum Job {
    /// Answers the question on the command line.
    Ask,
    /// Answers this question about a change.
    Review(Question),
    /// Retries the newest question where answers are missing.
    Retry,
}

pub(super) fn run(args: Ask, here: &Here) -> Result<Exit, Error> {
    carry_out(args, Job::Ask, here)
}

/// The shared implementation of `kd ask`, `kd council ask`, `retry` and `review`.
pub(super) fn carry_out(args: Ask, job: Job, here: &Here) -> Result<Exit, Error> {
    if args.address.is_some() {
        // We were started to outlive the terminal: it must not find us by its session.
        let _ = rustix::process::setsid();
    }
    let quiet = args.output.quiet;
    let hints = matches!(job, Job::Ask) && !args.output.is_json();
    let prepared = prepare(&args, job, here)?;
    if args.background {
        let (op, roster) = (prepared.op().clone(), prepared.roster().clone());
        let (layout, thread) = prepared.enter()?;
        return background::start(&args, &op, &roster, &layout, &thread);
    }
    let refusal = match prepared.op() {
        Op::Retry { .. } => "no member could be asked again",
        _ => stage::UNASKED,
    };
    let mut opened = None;
    let shows = Shows {
        value: args.form.output_schema.is_some(),
        ..Shows::default()
    };
    let ended = stage::perform(&args.output, shows, here, refusal, || {
        let started = prepared.start()?;
        opened = Some(started.opened);
        started.session.send(started.say)?;
        Ok(started.session)
    });
    let Some(opened) = opened else {
        return ended.map(|ended| ended.exit());
    };
    // Removes agents that have ended from the members' states.
    opened.tidy();
    let ended = ended.inspect_err(|_| opened.discard_unsaid())?;
    let Opened { id, .. } = &opened;
    let mut go_on = "kd ask --continue".to_owned();
    if let Some(error) = opened.not_made_current() {
        notice_line(&format!(
            "`--continue` will not find this thread: {}",
            error.what
        ));
        go_on = format!("kd ask --thread {id}");
    }
    if !quiet && !ended.closed {
        closing(&ended.view, &id.0, &go_on, here);
        if hints {
            super::mark::next::hint(here);
        }
    }
    schema::told(ended.exit(), args.output.is_json(), &ended.view, &id.0)
}

/// Seats the council and reads the question. Fails before anything is written, if possible.
fn prepare(args: &Ask, job: Job, here: &Here) -> Result<Prepared, Error> {
    if matches!(job, Job::Ask) && may_choose(args) {
        choice::ask(here)?;
    }
    stage::check_file(&args.output, here)?;
    let schema = schema::read(args.form.output_schema.as_deref(), here)?;
    let quiet = args.output.quiet;
    let kingdom = trust::open(here, quiet)?;
    kingdom.sweep();
    let mut request = args.request();
    request.terms.output = schema;
    let council = match &job {
        Job::Review(_) => kingdom.reviewers(request)?,
        _ => kingdom.council(request)?,
    };
    let prepared = match job {
        Job::Ask => {
            let mut question = question::read("ask", &args.question, quiet)?;
            let files = attach::Files {
                command: "ask",
                words: &args.question,
                options: &args.attach.files,
                for_a_program: args.output.is_json() || args.background,
                quiet,
            };
            let who = (council.config(), council.members());
            attach::attach(&files, &mut question, who, kingdom.env())?;
            council.asked(question)?
        }
        Job::Review(question) => council.asked(question)?,
        Job::Retry => council.again(None)?,
    };
    if prepared.is_built_in() && !quiet {
        first::notice(prepared.is_in_new_project(), here);
    }
    Ok(prepared)
}

/// Returns whether the question leaves open who answers, and a person waits for the answer.
fn may_choose(args: &Ask) -> bool {
    let named = !args.members.is_empty() || args.model.model.is_some() || args.privacy.private;
    let for_a_program = args.output.is_json() || args.output.quiet || args.background;
    let goes_on = args.address.is_some() || args.going.wanted().is_some();
    // If there are no words there is no question, and that error is reported first.
    !named && !for_a_program && !goes_on && !args.question.is_empty()
}

/// Prints the last lines to stderr: the result, the usage, and how to continue.
pub(super) fn closing(view: &View, id: &str, go_on: &str, here: &Here) {
    let styles = here.err_styles();
    let mut parts: Vec<String> = words::outcome(view).into_iter().collect();
    if let Some((_, used)) = view.yielded() {
        parts.push(words::total(&used));
    }
    let dot = format!(" {} ", styles.glyph("·", "-"));
    let head = format!("{id}{dot}{}", parts.join(&dot));
    let columns = kd_tui::terminal::size_of_stderr().map(|(columns, _)| columns.into());
    let mut err = crate::out::stderr().lock();
    for line in [head].into_iter().chain(next_lines(view, id, go_on)) {
        for line in folded(&line, columns) {
            let _ = writeln!(err, "{}", styles.dim(&line));
        }
    }
}

/// Returns what to type next, by how the round ended.
fn next_lines(view: &View, id: &str, go_on: &str) -> Vec<String> {
    let again = format!("again:  kd council retry {id}");
    let go_on = format!("go on:  {go_on} \"…\"");
    let see = format!("see it: kd show {id}");
    // The members of a debate are not asked again, but answer another question.
    match view.outcome.filter(|_| view.debate.is_none()) {
        Some(Outcome::Failed) => vec![again, see],
        Some(Outcome::Partial | Outcome::Interrupted) => vec![go_on, again, see],
        Some(Outcome::Complete) | None => vec![go_on, see],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_type_next_depends_on_the_end() {
        let of = |outcome| {
            let mut view = View::default();
            view.outcome = Some(outcome);
            let lines = next_lines(&view, "council-a8b3", "kd ask --continue");
            lines
                .iter()
                .map(|line| line[..5].to_owned())
                .collect::<Vec<_>>()
                .concat()
        };
        assert_eq!(of(Outcome::Complete), "go onsee i");
        assert_eq!(of(Outcome::Partial), "go onagainsee i");
        assert_eq!(of(Outcome::Failed), "againsee i");
    }
}
