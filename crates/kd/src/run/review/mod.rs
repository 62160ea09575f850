//! `kd review`: reads a change, lets members review it, and shows the findings; marks findings, and shows earlier
//! reviews.

mod change;
mod condition;
mod cost;
mod reading;
mod settings;
mod sides;
mod watching;

use self::change::Change;
use self::condition::Condition;
use self::cost::Estimate;
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
use kd_app::review::report::{self, Kept};
use crate::face::review::{document, terminal};
use crate::render::clean;
use jiff::Timestamp;
use kd_app::infile;
use kd_app::seating::REVIEW;
use kd_app::words::count;
use kd_app::{SeatRequest, outfile, secrets};
use kd_backends::Backends;
use kd_core::config::{Config, is_program};
use kd_core::cost::Cost;
use kd_core::formats::{self, Newer};
use kd_core::prompt::PREAMBLE;
use kd_core::review::{OpenReview, Report};
use kd_core::seating::LOCAL;
use kd_core::secrets::Masked;
use kd_core::{Address, Event, Member, Op, Roster, SeatName};
use kd_engine::{Engine, Opening};
use kd_store::git_command::GitCommand;
use kd_store::reviews::{self, Reviews};
use kd_store::{Thread, log};
use serde_json::json as object;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Maximum bytes of a report file.
const REPORT_BYTES_MAX: u64 = 32 << 20;

pub(super) fn run(args: Review, here: &Here) -> Result<Exit, Error> {
    match &args.command {
        Some(Command::Mark(args)) => mark(args, here),
        Some(Command::Marks(args)) => marks(args, here),
        Some(Command::Show(args)) => show(args, here),
        None => review(&args, here),
    }
}

/// Returns the reviews of this repository: by the git folder shared by its worktrees, else by the working folder.
pub(super) fn reviews(here: &Here) -> Result<Reviews, Error> {
    let folder = here.folder()?;
    let shared =
        GitCommand::new(folder).and_then(|git| git.read(&["rev-parse", "--git-common-dir"]));
    let repository = match shared {
        Ok(shared) => folder.join(PathBuf::from(shared.trim_end_matches(['\n', '\r']))),
        Err(_) => folder.to_path_buf(),
    };
    Ok(Reviews::of(&here.user_dirs(), &repository)?)
}

/// Returns the report of a thread, or the newest one.
fn report(reviews: &Reviews, thread: Option<&str>) -> Result<Kept, Error> {
    let found = reviews.report(thread)?;
    let Some((_, value)) = found else {
        let what = match thread {
            Some(thread) => format!("there is no review `{}` here", clean::line(thread)),
            None => "there are no reviews here yet".to_owned(),
        };
        let next = match thread {
            Some(_) => "kd review show (without an id) shows the newest one",
            None => "kd review",
        };
        return Err(Error::new("no_review", Exit::Error, what).next(next));
    };
    serde_json::from_value(value)
        .map_err(|e| Error::new("store", Exit::Error, "the report cannot be read").because(e))
}

fn show(args: &Show, here: &Here) -> Result<Exit, Error> {
    let file = args.thread.as_deref().map(Path::new);
    let kept = match file.filter(|file| file.as_os_str() == "-" || outfile::is_json(file)) {
        Some(file) => read_report(file)?,
        None => report(&reviews(here)?, args.thread.as_deref())?,
    };
    give(&kept, &args.shown, here)?;
    Ok(Exit::Done)
}

/// Reads a report written by `--format json`.
fn read_report(file: &Path) -> Result<Kept, Error> {
    let named = clean::line(&file.display().to_string());
    let failed = |why: &dyn std::fmt::Display| {
        Error::usage(format!("{named} is not the report of a review"))
            .because(why)
            .next("kd review --format json -o FILE.json writes one")
    };
    let text = infile::read_text(file, REPORT_BYTES_MAX).map_err(|e| failed(&e))?;
    formats::REVIEWS
        .check(formats::stated(text.as_bytes(), "version"))
        .map_err(|newer| failed(&format!("it has {newer}")).next(Newer::HINT))?;
    let kept: Kept = serde_json::from_str(&text).map_err(|e| failed(&e))?;
    match kept.version {
        report::VERSION => Ok(kept),
        other => Err(failed(&format!("its version is {other}"))),
    }
}

/// Prints or writes a report.
fn give(kept: &Kept, shown: &Shown, here: &Here) -> Result<(), Error> {
    if let Some(path) = &shown.output {
        let text = document(kept, shown.format, shown.all)?;
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
    let kept = report(&reviews, args.thread.as_deref())?;
    let found: Vec<_> = kept
        .report
        .findings
        .iter()
        .filter(|finding| finding.id == args.id || finding.id.starts_with(&args.id))
        .collect();
    let exact = found.iter().position(|finding| finding.id == args.id);
    let finding = match (found.as_slice(), exact) {
        (_, Some(at)) => found[at],
        ([one], _) if !args.id.is_empty() => one,
        (found, _) => {
            let what = match found.len() {
                0 => format!("the review has no finding `{}`", clean::line(&args.id)),
                n => format!("`{}` could be {n} findings", clean::line(&args.id)),
            };
            return Err(Error::new("no_finding", Exit::Usage, what)
                .next("kd review show --all lists the findings with their ids"));
        }
    };
    let verdict = match args.verdict {
        Verdict::Accepted => reviews::Verdict::Accepted,
        Verdict::Dismissed => reviews::Verdict::Dismissed,
    };
    let old = reviews.mark(reviews::Mark {
        id: finding.id.clone(),
        verdict,
        agreeing: finding.agreeing(),
        of: kept.reviewers_of(finding),
        thread: kept.thread.clone(),
        at: Timestamp::now(),
    })?;
    let was = match old {
        Some(old) if old.verdict != verdict => format!(" (was {})", word(old.verdict)),
        _ => String::new(),
    };
    let all = reviews.marks()?.len() as u64;
    writeln!(
        crate::out::stdout(),
        "{} is {}{was}; this repository has {}",
        clean::line(&finding.id),
        word(verdict),
        count(all, "mark")
    )?;
    Ok(Exit::Done)
}

fn word(verdict: reviews::Verdict) -> &'static str {
    match verdict {
        reviews::Verdict::Accepted => "accepted",
        reviews::Verdict::Dismissed => "dismissed",
    }
}

fn marks(args: &Marks, here: &Here) -> Result<Exit, Error> {
    let reviews = reviews(here)?;
    let mut out = crate::out::stdout().lock();
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
fn review(args: &Review, here: &Here) -> Result<Exit, Error> {
    let conditions = args.fail_on.iter().map(|text| Condition::read(text));
    let conditions: Vec<Condition> = conditions.collect::<Result<_, _>>()?;
    match args.dry_run {
        true => has_no_report(&args.shown)?,
        false => outfile::check(args.shown.output.as_deref(), here)?,
    }
    let env = here.env(args.quiet);
    let mut change = Change::of(args, here)?;
    let layout = here.find_layout()?;
    if let Some(layout) = &layout {
        kd_app::process::sweep(&env, layout);
    }
    let mut loaded = settings::load(here, layout.as_ref(), &change, args.quiet)?;
    terms(&args.spending, args.privacy, args.offline).lay_over(&mut loaded.config);
    let members = match args.members.is_empty() {
        true => loaded.config.council.review_members.clone(),
        false => args.members.clone(),
    };
    let named = kd_app::trust::Named {
        members: &args.members,
        reviews: true,
        ..kd_app::trust::Named::default()
    };
    kd_app::trust::check(&loaded.project, named, &env)?;
    let seated = kd_app::seating::seat(&loaded.config, seats(args, members), None)?;
    if seated.built_in && loaded.config.local.model.is_none() {
        return Err(no_members());
    }
    // Nobody concludes a review.
    let roster = Roster::new(seated.roster.members().to_vec(), None);
    change
        .notices
        .extend(disk_notice(&change, roster.members()));
    change
        .notices
        .extend(demo_notice(&loaded.config, roster.members()));
    let mut parts = change.parts();
    let secrets = kd_app::secrets::of(&loaded.config, args.privacy.allow_secrets, here);
    let mut masked = Masked::default();
    for part in &mut parts {
        masked.add(secrets.mask_in_place(part));
    }
    secrets::tell(&masked, &env);
    let reviews = reviews(here)?;
    let opening = opening(&change, &loaded.config, &roster, parts, marks_of(&reviews)?);
    let estimate = Estimate::of(&loaded.config, &opening);
    // Said before any member is asked.
    let shortage = opening.shortage();
    if args.dry_run {
        let parts = opening.parts.len();
        return dry_run(args, &change, parts, &roster, &estimate, shortage);
    }
    if !args.quiet {
        tell_before(&change, &estimate, shortage.as_deref(), &roster);
        loaded.notices.iter().for_each(|notice| tell(notice));
    }
    kd_app::ready::make_ready(&loaded.config, args.offline, &env, &roster)?;
    let asked = Asked {
        config: &loaded.config,
        change: &change,
        conditions: &conditions,
    };
    let (kept, end) = perform(args, here, &asked, opening, &reviews)?;
    give(&kept, &args.shown, here)?;
    if !args.quiet {
        closing(&kept, here);
    }
    let shows_verdict = args.shown.output.is_none() && args.shown.format == Format::Terminal;
    Ok(ended(&kept, end, shows_verdict))
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

/// The error if nobody is configured: in CI, a missing key or file would pass for a review without findings.
fn no_members() -> Error {
    Error::new(
        "no_seat",
        Exit::NoSeat,
        "no members are configured, and the small built-in model cannot review code",
    )
    .next(
        "`kd init` sets up agent programs, keys and Ollama; then name members with council.review_members or --members",
    )
}

/// Returns a notice if only the small built-in model reviews, because the user named it.
fn demo_notice(config: &Config, members: &[Member]) -> Option<String> {
    let is_demo = |member: &Member| member.backend == LOCAL && member.model.is_none();
    (config.local.model.is_none() && members.iter().all(is_demo)).then(|| {
        "only the small built-in model reviews: it cannot review code, and its findings are worthless (kd init)"
            .to_owned()
    })
}

/// Returns the request for members.
fn seats(args: &Review, members: Vec<String>) -> SeatRequest {
    SeatRequest {
        members,
        timeout: args.timeout.map(|t| t.as_secs()),
        ..SeatRequest::default()
    }
}

/// Returns the exit code, and names the findings that meet a condition, unless the report on the screen does.
fn ended(kept: &Kept, end: Exit, shows_verdict: bool) -> Exit {
    let is_met = kept
        .fail_on
        .as_ref()
        .is_some_and(|fail_on| !fail_on.met.is_empty());
    if let Some(verdict) = kept.verdict().filter(|_| is_met && !shows_verdict) {
        tell(&verdict);
    }
    // An incomplete review may have found enough.
    match end {
        Exit::Interrupted => end,
        _ if is_met => Exit::Findings,
        end => end,
    }
}

/// Tells what will be asked and at what cost, before any member is asked.
fn tell_before(change: &Change, estimate: &Estimate, shortage: Option<&str>, roster: &Roster) {
    tell(&change.title());
    tell(&estimate.line());
    shortage.iter().for_each(|notice| tell(notice));
    change.notices.iter().for_each(|notice| tell(notice));
    if roster.members().len() == 1 {
        tell("only one member reviews: no other checks its findings (kd review --members a,b,c)");
    }
}

/// Returns a notice if agent programs, which read the files on disk, do not find those under review there.
fn disk_notice(change: &Change, members: &[Member]) -> Option<String> {
    let programs = members.iter().filter(|m| is_program(&m.backend));
    let names: Vec<&str> = programs.map(|m| m.name.as_str()).collect();
    (change.elsewhere && !names.is_empty()).then(|| {
        format!(
            "agent programs read the files of your working folder, not those of {}: {}",
            change.head,
            names.join(", ")
        )
    })
}

/// Returns the inputs of a review. Files are empty: voters and quotes need them, the plan does not.
fn opening(
    change: &Change,
    config: &Config,
    roster: &Roster,
    parts: Vec<String>,
    marks: kd_core::review::Marks,
) -> OpenReview {
    let members = roster.members();
    let price = |member: &Member| {
        let price = Cost::of(config, member).price()?;
        Some((member.name.clone(), price))
    };
    OpenReview {
        base: change.base.clone(),
        head: change.head.clone(),
        title: change.title(),
        members: members.to_vec(),
        parts,
        files: BTreeMap::new(),
        preamble: match &config.council.preamble {
            Some(preamble) => preamble.clone(),
            None => PREAMBLE.trim().to_owned(),
        },
        guidance: config.prompts.review.clone(),
        judged: true,
        ceiling: config.limits.ceiling(),
        prices: members.iter().filter_map(price).collect(),
        marks,
        seed: kd_app::council::clock_seed(),
        messages: 0,
        notices: change.notices.clone(),
    }
}

/// What a review is asked with.
struct Asked<'a> {
    config: &'a Config,
    change: &'a Change,
    conditions: &'a [Condition],
}

/// Lets the members review, and saves the report.
fn perform(
    args: &Review,
    here: &Here,
    asked: &Asked<'_>,
    mut opening: OpenReview,
    reviews: &Reviews,
) -> Result<(Kept, Exit), Error> {
    let seats = opening.members.clone();
    let names: Vec<SeatName> = seats.iter().map(|m| m.name.clone()).collect();
    let layout = kd_app::council::new_layout(&here.env(args.quiet))?;
    let thread = Thread::create_for(&layout, &names, REVIEW)?;
    let (id, folder) = (thread.id().clone(), thread.path().to_owned());
    let (title, parts) = (opening.title.clone(), opening.parts.len());
    // Voters see this code, and quotes are looked up in it.
    let secrets = kd_app::secrets::of(asked.config, args.privacy.allow_secrets, here);
    opening.files = asked.change.files();
    for text in opening.files.values_mut() {
        secrets.mask_keeping_lines(text);
    }
    let (machine, opened) = kd_core::review::Review::open(opening);
    let opening = Opening {
        id: id.clone(),
        machine: Box::new(machine),
        opened,
        seats,
    };
    let face = Watching::new(args.shown.format == Format::JsonlEvents, args.quiet, parts);
    // In a tree under review, what agent programs run and obey is not trusted, even if the user trusted it before.
    let agents = kd_backends::Options {
        trusted: false,
        ..here.backend_options()
    };
    let engine = Engine::new(Backends::new(asked.config, agents))
        .telling(here.held_event())
        .masking(secrets);
    let played = stage::play(Box::new(face), false, stage::UNASKED, || {
        let session = engine.run(thread, opening)?;
        session.send(Op::Say {
            body: title,
            to: Address::All,
        })?;
        Ok(session)
    })?;
    let _ = kd_engine::agents::tidy(&layout);
    let failures = Failures::of(&played.view);
    let outcome = played.view.outcome;
    let report = played.view.review.map(|report| *report);
    let Some(report) = report.or_else(|| logged(&folder)) else {
        return Err(
            Error::new("no_report", Exit::Interrupted, "the review has no report").next(format!(
                "partial answers are saved: kd council show {}",
                id.0
            )),
        );
    };
    let end = match () {
        () if played.stopped || played.closed => Exit::Interrupted,
        () => watching::exit(outcome, &report, failures),
    };
    let kept = keeping(asked, &id.0, report);
    let value = serde_json::to_value(&kept).map_err(io::Error::other)?;
    if let Err(error) = reviews.keep(&id, &value) {
        notice_line(&format!(
            "`kd review show` will not find this review: {error}"
        ));
    }
    Ok((kept, end))
}

/// Returns a report with what its formats need of the change.
fn keeping(asked: &Asked<'_>, thread: &str, report: Report) -> Kept {
    let change = asked.change;
    let (added, removed) = change.diff.counts();
    Kept {
        version: report::VERSION,
        thread: thread.to_owned(),
        base_commit: change.base_commit.clone(),
        head_commit: change.head_commit.clone(),
        size: (change.diff.files.len(), added, removed),
        places: change.places(),
        left_out: change.left_out.clone(),
        fail_on: Condition::check(asked.conditions, &report.findings),
        report,
    }
}

/// Returns the report in a thread's log.
fn logged(folder: &Path) -> Option<Report> {
    let records = log::read(&Thread::open_folder(folder).ok()?).ok()?.records;
    records
        .into_iter()
        .rev()
        .find_map(|record| match record.event {
            Event::Reviewed { report } => Some(*report),
            _ => None,
        })
}

/// Returns the user's marks, by how many members agreed.
fn marks_of(reviews: &Reviews) -> Result<kd_core::review::Marks, Error> {
    let mut marks = kd_core::review::Marks::default();
    for mark in reviews.marks()? {
        let accepted = mark.verdict == reviews::Verdict::Accepted;
        marks.add(mark.agreeing, mark.of, accepted);
    }
    Ok(marks)
}

fn dry_run(
    args: &Review,
    change: &Change,
    parts: usize,
    roster: &Roster,
    estimate: &Estimate,
    shortage: Option<String>,
) -> Result<Exit, Error> {
    let notices: Vec<&String> = shortage.iter().chain(&change.notices).collect();
    let members: Vec<&str> = roster.members().iter().map(|m| m.name.as_str()).collect();
    let mut out = crate::out::stdout().lock();
    if args.is_json() {
        let value = object!({
            "v": kd_core::formats::REVIEW_ESTIMATE.version,
            "base": change.base, "head": change.head, "files": change.diff.files.len(), "parts": parts,
            "members": members, "estimate": estimate, "notices": notices,
        });
        writeln!(out, "{}", json::text(&value, true)?)?;
        return Ok(Exit::Done);
    }
    let mut lines = vec![change.title()];
    lines.extend(
        change
            .diff
            .summary()
            .lines()
            .map(|line| format!("  {line}")),
    );
    lines.push(format!("members: {}", members.join(", ")));
    let parts = count(parts as u64, "part");
    lines.push(format!("{parts}: {}", estimate.line()));
    lines.extend(notices.iter().map(|notice| format!("note: {notice}")));
    for line in lines {
        writeln!(out, "{}", hung(&line, &io::stdout()))?;
    }
    Ok(Exit::Done)
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
