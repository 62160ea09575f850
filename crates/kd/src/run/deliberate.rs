//! `kd deliberate`: plans, shows the plan, runs it, and shows the result.

mod ask_back;
mod edit;
pub(super) mod record;
mod resume;
mod settings;
mod share;
mod whatif;

use self::ask_back::Answered;
pub(super) use self::settings::settings;
use super::here::Here;
use super::notices::notice_line;
use super::stage::{self, Played};
use super::{attach, choice, first, question, schema, trust};
use crate::args::deliberate::Deliberate;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::deliberation::export::{self, Form};
use crate::face::deliberation::{Deliberating, Manner, tables};
use crate::face::jsonl::JsonLines;
use crate::face::value::ValueOnly;
use crate::face::{Face, Silent, json};
use crate::render::clean;
use crate::render::wrap::wrap;
use kd_app::deliberation::{PlannedIn, Planning};
use kd_app::export::Format as DocumentFormat;
use kd_app::marks::FROM_RECORD;
use kd_app::setup::demo_answers;
use kd_app::threads::Thread;
use kd_app::{Opened, secrets};
use kd_app::{outfile, page};
use kd_core::deliberation::report::Report;
use kd_core::deliberation::{Seat, compared_by, forecast};
use kd_core::planner::{self, Planned};
use kd_core::seating::LOCAL;
use kd_core::view::View;
use kd_eval::marks::Standing;
use kd_vote::Outcome;
use serde_json::{Value, json as object};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

pub(super) fn run(args: &Deliberate, here: &Here) -> Result<Exit, Error> {
    if let Some(id) = &args.resume {
        return resume::run(args, id, here);
    }
    let quiet = args.output.quiet;
    if may_choose(args) {
        choice::ask(here)?;
    }
    stage::check_file(&args.output, here)?;
    check_export(args.export.as_deref(), here)?;
    check_marks(args, here)?;
    let schema = schema::read(args.form.output_schema.as_deref(), here)?;
    let kingdom = trust::open(here, quiet)?;
    let members = kd_app::trust::Named::only(&args.members);
    kd_app::trust::check(kingdom.project(), members, kingdom.env())?;
    let config = settings(args, kingdom.loaded(), here)?;
    kingdom.sweep();
    let mut asked = question::read("deliberate", &args.question, quiet)?;
    let files = attach::Files {
        command: "deliberate",
        words: &args.question,
        options: &args.attach.files,
        for_a_program: args.output.is_json(),
        quiet,
    };
    attach::attach(&files, &mut asked, (&config, &[]), kingdom.env())?;
    let masked = secrets::of(&config, args.privacy.allow_secrets, here);
    secrets::mask(&masked, &mut asked, kingdom.env());
    for notice in &kingdom.loaded().notices {
        kingdom.env().note(notice);
    }
    let mut planning = kingdom.planning(config, asked, args.seed, masked.clone())?;
    planning.output = schema;
    planning.brief.rest.required = args.require;
    planning.brief.members.clone_from(&args.members);
    planning.brief.rest.all_sit = !args.members.is_empty();
    planning.brief.rest.model.clone_from(&args.model);
    planning.brief.rest.timeout = args.timeout.map(|t| t.as_secs());
    planning.brief.rest.tools = args.tools.request();
    let mut planned_in = None;
    let mut planned = if planning.wants_model() {
        let (planned, thread) = plan_by_model(args, &planning, here)?;
        planned_in = Some(thread);
        planned
    } else {
        planning.by_rules()?
    };
    planned.notices.extend(kd_app::trust::texts_line(
        kingdom.loaded(),
        kingdom.layout().as_ref(),
    ));
    if args.edit {
        planned = edit::plan(&planned.plan, planning.config(), &planning.brief)?;
    }
    planned
        .notices
        .extend(kd_app::seating::readers_of_plan(&planned.plan));
    let json = args.output.is_json();
    if args.dry_run {
        return dry_run(args, &planned, here);
    }
    if !quiet && !json {
        show_plan(&planned, here)?;
    }
    planning.make_ready(&planned.plan, args.offline)?;
    let built_in = |seat: &Seat| seat.member.backend == LOCAL;
    let demo = demo_answers(planning.config(), &[]);
    if !quiet && demo && planned.plan.seats.iter().all(built_in) {
        first::notice(kingdom.layout().is_none(), here);
    }
    let first = planned.plan.clone();
    let (mut played, mut opened) = played(args, &planning, planned, planned_in, here)?;
    match (ask_back::answer(args, &first, &played, here)?, &opened) {
        (Answered::With(answer), Some(before)) => {
            let planned = ask_back::planned(first, &played, answer, &masked);
            let there = PlannedIn::after(before)?;
            (played, opened) = self::played(args, &planning, planned, Some(there), here)?;
        }
        (Answered::Stopped, _) => played.stopped = true,
        _ => {}
    }
    let place = opened
        .as_ref()
        .map(|at| (at.layout.clone(), at.folder.clone()));
    let exit = ended((args, here), opened, &played)?;
    if let Some((layout, folder)) = place {
        share::ask(
            (args, here),
            &kingdom,
            planning.config(),
            (&layout, &folder),
            &played,
        );
    }
    Ok(exit)
}

/// Returns whether the question leaves open who answers, and a person waits for the answer.
fn may_choose(args: &Deliberate) -> bool {
    let named = !args.members.is_empty()
        || args.model.is_some()
        || args.plan.is_some()
        || args.privacy.private;
    let for_a_program = args.output.is_json() || args.output.quiet;
    !named && !for_a_program && !args.dry_run && !args.question.is_empty()
}

/// Runs a plan and shows it.
fn played(
    args: &Deliberate,
    planning: &Planning<'_>,
    planned: Planned,
    planned_in: Option<PlannedIn>,
    here: &Here,
) -> Result<(Played, Option<Opened>), Error> {
    let (face, repaint) = face(args, planning.output.is_some(), here);
    let mut opened = None;
    let played = stage::play(face, repaint, stage::UNASKED, || {
        let started = planning.start(planned, planned_in)?;
        opened = Some(started.opened);
        started.session.send(started.say)?;
        Ok(started.session)
    })?;
    Ok((played, opened))
}

/// Writes what a deliberation decided, and says how certain that is and what to type next.
fn ended(
    (args, here): (&Deliberate, &Here),
    opened: Option<Opened>,
    played: &Played,
) -> Result<Exit, Error> {
    let Some(Opened { id, folder, .. }) = opened else {
        return Ok(Exit::Error);
    };
    let report = &played.view.report;
    let promised = report.promised.as_deref();
    finish((args, here), &folder, &played.view)?;
    show_promise(args, promised, played, here);
    if args.resume.is_some() && args.require.is_some() {
        say_why_none(args, report, played);
    }
    if !args.output.quiet && !played.closed {
        closing(&id.0, here);
        if !args.output.is_json() {
            super::mark::next::hint(here);
        }
    }
    let asks_back = report
        .verdict
        .as_ref()
        .is_some_and(|v| v.asks_back.is_some());
    let exit = match (exit(report, played), args.require) {
        (Exit::Done | Exit::Split, _) if asks_back => {
            ask_back::advise(args);
            Exit::AsksBack
        }
        (Exit::Done, Some(share)) if !keeps(promised, share) => {
            // They may have become unreadable while members were asked.
            check_marks(args, here)?;
            Exit::NoPromise
        }
        (exit, _) => exit,
    };
    let exit = exit.with_output(&played.view);
    schema::told(exit, args.output.is_json(), &played.view, &id.0)
}

/// Lets a member plan, in the thread where the deliberation will run.
fn plan_by_model(
    args: &Deliberate,
    planning: &Planning<'_>,
    here: &Here,
) -> Result<(Planned, PlannedIn), Error> {
    let by_model = planning.by_model(args.offline)?;
    let seat = by_model.seat.clone();
    let manner = match args.output.quiet || args.output.is_json() {
        true => Manner::Quiet,
        false => Manner::Plain,
    };
    let face = Box::new(Deliberating::new(manner, here.err_styles(), (80, 24)));
    if manner == Manner::Plain {
        let who = match &seat.member.model {
            Some(model) if *model != seat.agent => format!("{} ({model})", seat.agent),
            _ => seat.agent.clone(),
        };
        notice_line(&format!("{who} plans the council"));
    }
    let mut planned_in = None;
    let played = stage::play(face, false, stage::UNASKED, || {
        let (session, thread) = by_model.start()?;
        planned_in = Some(thread);
        Ok(session)
    })?;
    let report = played.view.report;
    match (report.plan, planned_in) {
        (Some(plan), Some(planned_in)) if !played.stopped => Ok((
            Planned {
                plan: *plan,
                notices: report.notices,
            },
            planned_in,
        )),
        _ => Err(Error::new("plan", Exit::Interrupted, "there is no plan")
            .next("`--planning static` plans by rules")),
    }
}

/// Returns what shows a deliberation, and whether it repaints. `has_schema`: its answer is put into a JSON schema too.
fn face(args: &Deliberate, has_schema: bool, here: &Here) -> (Box<dyn Face>, bool) {
    let quiet = args.output.quiet;
    let size = kd_tui::terminal::size().unwrap_or((100, 24));
    let styles = here.out_styles();
    if args.output.jsonl {
        let lines = JsonLines::new(quiet).with_council(true);
        return (Box::new(lines), false);
    }
    if args.output.json {
        return (Box::new(Silent), false);
    }
    let repaint = here.can_repaint() && !args.output.plain && !quiet;
    let document = !args.output.plain && !io::stdout().is_terminal();
    let manner = match (repaint, quiet) {
        (true, _) => Manner::Live,
        (false, true) => Manner::Quiet,
        (false, false) => Manner::Plain,
    };
    let face = Box::new(Deliberating::new(manner, styles, size).with_document(document));
    if has_schema && stage::is_value_only(&args.output) {
        return (Box::new(ValueOnly::new(face)), repaint);
    }
    (face, repaint)
}

fn dry_run(args: &Deliberate, planned: &Planned, here: &Here) -> Result<Exit, Error> {
    let mut out = crate::out::lines(args.output.is_json());
    if args.output.is_json() {
        let value = object!({
            "v": kd_core::formats::DELIBERATE_PLAN.version,
            "plan": planner::document(&planned.plan), "task": planned.plan.meta.task, "notices": planned.notices,
            "estimate": forecast(&planned.plan), "compared_by": compared_by(&planned.plan),
        });
        writeln!(out, "{}", json::text(&value, true)?)?;
    } else {
        for line in tables::plan(&planned.plan, here.out_styles()) {
            writeln!(out, "{line}")?;
        }
        for notice in &planned.notices {
            writeln!(out, "  note: {}", clean::line(notice))?;
        }
    }
    Ok(Exit::Done)
}

fn show_plan(planned: &Planned, here: &Here) -> Result<(), Error> {
    let mut err = crate::out::error_lines();
    for line in tables::plan(&planned.plan, here.err_styles()) {
        writeln!(err, "{line}")?;
    }
    for notice in &planned.notices {
        writeln!(err, "  note: {}", clean::line(notice))?;
    }
    Ok(())
}

/// Fails if the `--export` file could not be written, or its format is unknown.
fn check_export(path: Option<&Path>, here: &Here) -> Result<(), Error> {
    path.map(DocumentFormat::of_name).transpose()?;
    Ok(outfile::check(path, here)?)
}

/// Writes the results: the JSON object and documents.
fn finish((args, here): (&Deliberate, &Here), folder: &Path, view: &View) -> Result<(), Error> {
    let report = &view.report;
    let thread = Thread::open_folder(folder)?;
    let messages = thread.messages()?.messages;
    if args.output.json {
        let mut out = crate::out::stdout().lock();
        let mut value = with_warranty(export::value(report, &messages), report);
        if let (Some(output), error) = json::output(view) {
            value["output"] = output;
            if let Some(error) = error {
                value["output_error"] = object!(error);
            }
        }
        writeln!(out, "{}", json::text(&value, true)?)?;
    }
    let document = |path: &Path| {
        Ok::<_, Error>(match DocumentFormat::of_name(path)? {
            DocumentFormat::Html => kd_page::document(&[page::of(&thread, None, here)?]),
            DocumentFormat::Json => export::text(Form::Json, report, &messages)?,
            DocumentFormat::Md => export::text(Form::Markdown, report, &messages)?,
        })
    };
    if let Some(path) = &args.export {
        outfile::write(path, document(path)?.as_bytes(), here)?;
    }
    if let Some(path) = &args.output.output {
        // JSON on the screen is JSON in the file, as for every command.
        let text = match args.output.is_json() {
            true => export::text(Form::Json, report, &messages)?,
            false => document(path)?,
        };
        outfile::write(path, text.as_bytes(), here)?;
    }
    Ok(())
}

/// Adds the promise about the new verdict to the JSON object, if the user's own marks give one.
fn with_warranty(mut value: Value, report: &Report) -> Value {
    if let (Some(promised), Some(fields)) = (&report.promised, value.as_object_mut()) {
        fields.remove("promised_then");
        fields.insert("warranty".to_owned(), object!(promised));
    }
    value
}

/// Returns the exit code for the outcome.
fn exit(report: &Report, played: &Played) -> Exit {
    match &report.verdict {
        _ if played.stopped || played.closed => Exit::Interrupted,
        None => Exit::Error,
        Some(verdict) if verdict.outcome == Outcome::CutByBudget => Exit::Cut,
        Some(_) if report.ended == Some(kd_core::event::Outcome::Failed) => Exit::Failed,
        Some(verdict) => match verdict.outcome {
            Outcome::Unanimous | Outcome::Majority | Outcome::Plurality => Exit::Done,
            Outcome::Split => Exit::Split,
            Outcome::NoQuorum => Exit::NoQuorum,
            Outcome::Degraded => Exit::Partial,
            Outcome::CutByBudget => Exit::Cut,
        },
    }
}

/// Shows what is promised about the verdict.
fn show_promise(args: &Deliberate, promised: Option<&Standing>, played: &Played, here: &Here) {
    let Some(promised) = promised.filter(|_| !args.output.is_json() && !played.closed) else {
        return;
    };
    // Nobody who has never marked a verdict has asked for it.
    if promised.marks == 0 && args.require.is_none() {
        return;
    }
    let room = match io::stderr().is_terminal() {
        true => here.columns(),
        false => usize::MAX,
    };
    let words = promised.words();
    wrap(&words, room).iter().for_each(|line| notice_line(line));
}

/// Says why a continued deliberation promises nothing, unless a notice at the verdict already did.
fn say_why_none(args: &Deliberate, report: &Report, played: &Played) {
    let is_said = report.notices.iter().any(|notice| notice == FROM_RECORD);
    let is_shown = is_said && !args.output.quiet;
    if report.verdict.is_some() && !is_shown && !args.output.is_json() && !played.closed {
        notice_line(FROM_RECORD);
    }
}

/// Refuses `--require` if the user's marks cannot be read: nothing could be promised, whatever the members answer.
fn check_marks(args: &Deliberate, here: &Here) -> Result<(), Error> {
    if args.require.is_none() {
        return Ok(());
    }
    let now = here.now()?;
    kd_app::marks::check(now, here).map_err(|why| {
        Error::new(
            "no_promise",
            Exit::NoPromise,
            "your marks cannot be read, so nothing can be promised",
        )
        .because(why.what)
        .next("`kd marks` tests the file; without --require the question is asked all the same")
    })?;
    Ok(())
}

/// Returns whether the promise is at least as high as required.
fn keeps(promised: Option<&Standing>, share: f64) -> bool {
    promised
        .and_then(Standing::right)
        .is_some_and(|right| right >= share)
}

fn closing(id: &str, here: &Here) {
    let styles = here.err_styles();
    let mut err = crate::out::stderr().lock();
    for line in [
        format!("why:    kd why {id}"),
        format!("again:  kd replay {id}"),
        format!("see it: kd show {id}"),
    ] {
        let _ = writeln!(err, "{}", styles.dim(&line));
    }
}
