//! `kd review`: reads a change, lets members review it, and shows the findings; marks findings, and shows earlier
//! reviews.

mod watching;

use self::watching::{Watching, hung, tell};
use super::here::Here;
use super::notices::notice_line;
use super::stage;
use crate::args::ask::terms;
use crate::args::review::{
    Command, Format, Mark, Marks, MarksCommand, Review, Show, Shown, Verdict,
};
use crate::error::Error;
use crate::exit::{Exit, Failures};
use crate::face::json;
use crate::face::review::{document, terminal};
use crate::render::clean;
use kd_app::review::report::Kept;
use kd_app::review::{self, ChangeRequest, Condition, Estimate, reviews};
use kd_app::words::count;
use kd_app::{Kingdom, ReviewRequest, Reviewing, outfile};
use kd_core::formats;
use serde_json::json as object;
use std::io::{self, Write};
use std::path::Path;

pub(super) fn run(args: Review, here: &Here) -> Result<Exit, Error> {
    match &args.command {
        Some(Command::Mark(args)) => mark(args, here),
        Some(Command::Marks(args)) => marks(args, here),
        Some(Command::Show(args)) => show(args, here),
        None => run_review(&args, here),
    }
}

fn show(args: &Show, here: &Here) -> Result<Exit, Error> {
    let file = args.thread.as_deref().map(Path::new);
    let kept = match file.filter(|file| file.as_os_str() == "-" || outfile::is_json(file)) {
        Some(file) => review::read(file)?,
        None => review::find(&reviews(here)?, args.thread.as_deref())?,
    };
    give(&kept, &args.shown, here)?;
    Ok(Exit::Done)
}

/// Returns the format of a file: the one of `--format`, otherwise the one that its name asks for.
fn file_format(path: &Path, format: Format) -> Result<Format, Error> {
    if format != Format::Terminal {
        return Ok(format);
    }
    let Some(end) = outfile::ending(path) else {
        return Ok(Format::Markdown);
    };
    match end.as_str() {
        "md" | "markdown" | "txt" | "text" => Ok(Format::Markdown),
        "json" => Ok(Format::Json),
        "sarif" => Ok(Format::Sarif),
        end => Err(
            Error::usage(format!("{}: kd cannot write .{end}", path.display()))
                .because("a review is written as .md, .json or .sarif")
                .next("end the name in one of them, or name the format: --format markdown"),
        ),
    }
}

/// Fails if a report would replace another file, unless the user says so.
fn may_replace(shown: &Shown, here: &Here) -> Result<(), Error> {
    match &shown.output {
        Some(path) if !shown.force => Ok(review::may_replace(path, here)?),
        _ => Ok(()),
    }
}

/// Prints or writes a report.
fn give(kept: &Kept, shown: &Shown, here: &Here) -> Result<(), Error> {
    if let Some(path) = &shown.output {
        may_replace(shown, here)?;
        let text = document(kept, file_format(path, shown.format)?, shown.all)?;
        return Ok(outfile::write(path, text.as_bytes(), here)?);
    }
    let mut out = crate::out::stdout().lock();
    if shown.format != Format::Terminal {
        return Ok(write!(out, "{}", document(kept, shown.format, shown.all)?)?);
    }
    for line in terminal(kept, shown.all, here.out_styles(), here.columns()) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn mark(args: &Mark, here: &Here) -> Result<Exit, Error> {
    let reviews = reviews(here)?;
    let verdict = match args.verdict {
        Verdict::Accepted => review::Verdict::Accepted,
        Verdict::Dismissed => review::Verdict::Dismissed,
    };
    let (id, old) = review::mark(&reviews, &args.id, verdict, args.thread.as_deref())?;
    let was = match old {
        Some(old) if old.verdict != verdict => format!(" (was {})", word(old.verdict)),
        _ => String::new(),
    };
    let all = reviews.marks()?.len() as u64;
    writeln!(
        crate::out::stdout(),
        "{} is {}{was}; this repository has {}",
        clean::line(&id),
        word(verdict),
        count(all, "mark")
    )?;
    Ok(Exit::Done)
}

fn word(verdict: review::Verdict) -> &'static str {
    match verdict {
        review::Verdict::Accepted => "accepted",
        review::Verdict::Dismissed => "dismissed",
    }
}

fn marks(args: &Marks, here: &Here) -> Result<Exit, Error> {
    let reviews = reviews(here)?;
    let mut out = crate::out::lines(args.json);
    if let Some(MarksCommand::Forget) = args.command {
        let forgot = reviews.forget()?;
        writeln!(out, "forgot {}", count(forgot as u64, "mark"))?;
        return Ok(Exit::Done);
    }
    let marks = reviews.marks()?;
    if args.json {
        writeln!(
            out,
            "{}",
            json::text(
                &object!({"version": formats::REVIEWS.version, "marks": marks}),
                true
            )?
        )?;
        return Ok(Exit::Done);
    }
    if marks.is_empty() {
        notice_line("no marks yet: kd review mark ID accepted");
    }
    for mark in &marks {
        writeln!(
            out,
            "{}  {:<9}  {} of {} agreed  {}",
            clean::line(&mark.id),
            word(mark.verdict),
            mark.agreeing,
            mark.of,
            clean::line(&mark.thread)
        )?;
    }
    Ok(Exit::Done)
}

/// Reads the change, asks the members, saves the report and shows it.
fn run_review(args: &Review, here: &Here) -> Result<Exit, Error> {
    let conditions = args.fail_on.iter().map(|text| Condition::read(text));
    let conditions: Vec<Condition> = conditions.collect::<Result<_, _>>()?;
    match args.dry_run {
        true => has_no_report(&args.shown)?,
        false => {
            outfile::check(args.shown.output.as_deref(), here)?;
            may_replace(&args.shown, here)?;
        }
    }
    if let Some(path) = &args.shown.output {
        file_format(path, args.shown.format)?;
    }
    let request = ReviewRequest {
        change: ChangeRequest {
            range: args.range.clone(),
            staged: args.staged,
            branch: args.branch.clone(),
            pr: args.pr.clone(),
        },
        members: args.members.clone(),
        timeout_secs: args.timeout.map(|t| t.as_secs()),
        conditions,
        terms: terms(&args.spending, args.privacy, args.offline),
    };
    let reviewing = Kingdom::review(&here.env(args.quiet), request)?;
    if args.dry_run {
        return dry_run(args, &reviewing);
    }
    if !args.quiet {
        tell_before(&reviewing);
    }
    reviewing.make_ready()?;
    let (kept, end) = perform(args, reviewing)?;
    give(&kept, &args.shown, here)?;
    if !args.quiet {
        closing(&kept, here);
    }
    let shows_verdict = args.shown.output.is_none() && args.shown.format == Format::Terminal;
    Ok(ended(&kept, end, shows_verdict))
}

/// Lets the members review, shows what they do, and stores the report.
fn perform(args: &Review, reviewing: Reviewing) -> Result<(Kept, Exit), Error> {
    let events = args.shown.format == Format::JsonlEvents;
    let face = Watching::new(events, args.quiet, reviewing.parts());
    let mut keeping = None;
    let played = stage::play(Box::new(face), false, stage::UNASKED, || {
        let (started, keeps) = reviewing.start()?;
        keeping = Some(keeps);
        started.session.send(started.say)?;
        Ok(started.session)
    })?;
    let Some(keeping) = keeping else {
        return Err(Error::usage(stage::UNASKED));
    };
    let failures = Failures::of(&played.view);
    let outcome = played.view.outcome;
    let kept = keeping.keep(played.view)?;
    let end = match () {
        () if played.stopped || played.closed => Exit::Interrupted,
        () => watching::exit(outcome, &kept.report, failures),
    };
    Ok((kept, end))
}

/// Fails if options for a report are named: a dry run has none.
fn has_no_report(shown: &Shown) -> Result<(), Error> {
    if shown.output.is_none() && matches!(shown.format, Format::Terminal | Format::Json) {
        return Ok(());
    }
    Err(
        Error::usage("--dry-run asks nobody, so there is no report to write")
            .next("leave out -o and --format; --format json prints the estimate as JSON"),
    )
}

/// Returns the exit code. Names the findings that meet a condition and the files that nobody saw, unless the report on the
/// screen already names them.
fn ended(kept: &Kept, end: Exit, shows_verdict: bool) -> Exit {
    let is_met = kept
        .fail_on
        .as_ref()
        .is_some_and(|fail_on| !fail_on.met.is_empty());
    let is_unseen = kept
        .fail_on
        .as_ref()
        .is_some_and(|fail_on| !fail_on.unseen.is_empty());
    let is_told = (is_met || is_unseen) && !shows_verdict;
    if let Some(verdict) = kept.verdict().filter(|_| is_told) {
        tell(&verdict);
    }
    // An incomplete review may have found enough. What nobody saw does not pass for free of findings.
    match end {
        Exit::Interrupted => end,
        _ if is_met => Exit::Findings,
        Exit::Done if is_unseen => Exit::Partial,
        end => end,
    }
}

/// Tells what will be asked and at what cost, before any member is asked.
fn tell_before(reviewing: &Reviewing) {
    tell(&reviewing.title());
    tell(&estimated(reviewing.estimate()));
    reviewing.shortage().iter().for_each(|notice| tell(notice));
    reviewing.notices().iter().for_each(|notice| tell(notice));
    if reviewing.members().len() == 1 {
        tell("only one member reviews: no other checks its findings (kd review --members a,b,c)");
    }
    let loaded = reviewing.loaded();
    loaded.notices.iter().for_each(|notice| tell(notice));
}

fn dry_run(args: &Review, reviewing: &Reviewing) -> Result<Exit, Error> {
    let shortage = reviewing.shortage();
    let notices: Vec<&String> = shortage.iter().chain(reviewing.notices()).collect();
    let members = reviewing.members().iter().map(|m| m.name.as_str());
    let members: Vec<&str> = members.collect();
    let mut out = crate::out::stdout().lock();
    if args.is_json() {
        let value = object!({
            "v": formats::REVIEW_ESTIMATE.version,
            "base": reviewing.base(), "head": reviewing.head(), "files": reviewing.files(), "parts": reviewing.parts(),
            "members": members, "estimate": reviewing.estimate(), "notices": notices,
        });
        writeln!(out, "{}", json::text(&value, true)?)?;
        return Ok(Exit::Done);
    }
    let mut lines = vec![reviewing.title()];
    let summary = reviewing.summary();
    lines.extend(summary.lines().map(|line| format!("  {line}")));
    lines.push(format!("members: {}", members.join(", ")));
    let parts = count(reviewing.parts() as u64, "part");
    lines.push(format!("{parts}: {}", estimated(reviewing.estimate())));
    lines.extend(notices.iter().map(|notice| format!("note: {notice}")));
    for line in lines {
        writeln!(out, "{}", hung(&line, &io::stdout()))?;
    }
    Ok(Exit::Done)
}

/// Formats the estimate.
fn estimated(estimate: &Estimate) -> String {
    let usd = match estimate.usd {
        Some((low, high)) => {
            let (low, high) = (format!("${low:.2}"), format!("${high:.2}"));
            match low == high {
                true => low,
                false => format!("{low} to {high}"),
            }
        }
        None => "price unknown".to_owned(),
    };
    let range = |low: u64, high: u64, unit: &str| match low == high {
        true => format!("{low}{unit}"),
        false => format!("{low}{unit} to {high}{unit}"),
    };
    let thousands = |n: u64| n.div_ceil(1000);
    let calls = match estimate.calls {
        (1, 1) => "1 request".to_owned(),
        (low, high) => range(low, high, "") + " requests",
    };
    let tokens = range(
        thousands(estimate.tokens.0),
        thousands(estimate.tokens.1),
        "k",
    );
    format!("{calls}, about {tokens} tokens, {usd}")
}

fn closing(kept: &Kept, here: &Here) {
    let styles = here.err_styles();
    let mut err = crate::out::stderr().lock();
    let mark = kept
        .report
        .findings
        .first()
        .map(|finding| finding.id.as_str());
    let mut lines = vec![format!("see it: kd review show {}", kept.thread)];
    if let Some(id) = mark {
        lines.push(format!(
            "mark:   kd review mark {} accepted   (or dismissed)",
            clean::line(id)
        ));
    }
    for line in lines {
        let _ = writeln!(err, "{}", styles.dim(&line));
    }
}
