//! `kd eval --live`: asks the user's own questions of the council, of its best member, and of samples of that member.
//! Estimates, asks for consent, runs one way after the other, and shows the comparison.

mod found;

use super::written;
use crate::args::eval::{Eval, Format};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::batch as face;
use crate::face::json;
use crate::run::agreed::agreed;
use crate::run::here::Here;
use crate::run::notices::notice_line;
use crate::run::trust;
use found::{All, Found};
use kd_app::batch::{Batching, Ended, Why};
use kd_app::infile;
use kd_app::live::{
    Answered, Best, Cost, Known, Live, LiveRequest, PassedOver, Way, marked, samples,
};
use kd_app::share::SharedCouncil;
use kd_app::words::count;
use kd_app::{Limits, Runtime, outfile};
use kd_core::batch::{self, Estimate, FILE_BYTES_MAX, Fields, Form, Of};
use kd_core::formats::EVAL_LIVE_ESTIMATE;
use kd_tui::signals::{Caught, Signals};
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use std::future::pending;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::Notify;

/// Time between two looks at a condition whose changes are notified: network file systems do not notify of changes by
/// other machines.
const LOOK: Duration = Duration::from_secs(10);
/// The same if they cannot be notified.
const LOOK_OFTEN: Duration = Duration::from_millis(500);

pub(super) fn run(args: &Eval, questions: Option<&Path>, here: &Here) -> Result<Exit, Error> {
    let options = &args.live;
    if args.format == Some(Format::Csv) {
        return Err(Error::usage("--format csv writes recorded answers")
            .next("--live can be written as md, html or eee"));
    }
    if args.format == Some(Format::Eee) && args.output.is_none() {
        // Before anything is spent.
        return Err(written::needs_folder());
    }
    outfile::check(
        args.output
            .as_deref()
            .filter(|_| args.format != Some(Format::Eee)),
        here,
    )?;
    if options.report {
        return match questions {
            Some(_) => Err(
                Error::usage("--report compares what was asked before, not a file")
                    .next("kd eval --live --report"),
            ),
            None => report(args, here),
        };
    }
    if options.max_usd == Some(0.0) {
        return Err(Error::usage("--max-usd 0 allows nothing to be asked").next(
            "give a higher amount; --max-calls limits members that cost nothing, and --dry-run estimates",
        ));
    }
    let kingdom = trust::open(here, args.json)?;
    kd_app::trust::check(
        kingdom.project(),
        kd_app::trust::Named::only(&args.members),
        kingdom.env(),
    )?;
    kingdom.sweep();
    let source = match questions {
        Some(path) => crate::render::clean::line(&path.display().to_string()),
        None => "your marked verdicts".to_owned(),
    };
    let known = match questions {
        Some(path) => read(path, &source)?,
        None => {
            let (known, passed_over) = marked(&kingdom)?;
            tell(passed_over);
            known
        }
    };
    let request = LiveRequest {
        members: args.members.clone(),
        best: options.best.clone(),
        limits: Limits {
            usd: options.max_usd,
            calls: options.max_calls,
            tokens: None,
        },
        concurrency: options.concurrency.into(),
        source: source.clone(),
        command: command(args, questions),
        offline: false,
        fresh: false,
    };
    let mut live = kingdom.live(request, known)?;
    let estimates = live.estimate()?;
    if options.dry_run {
        return dry_run(args, &live, &estimates);
    }
    if !agrees(args, &live, &estimates)? {
        writeln!(crate::out::stderr(), "nothing was asked")?;
        return Ok(Exit::Interrupted);
    }
    if args.format == Some(Format::Eee) {
        written::make_folder(args, here)?;
    }
    let answered = match ask(&mut live, None, Manner::of(args.json), None)? {
        Ok(answered) => answered,
        Err(exit) => return Ok(exit),
    };
    let found = Found {
        members: live.members().to_vec(),
        best: live.best().clone(),
        samples: live.samples(),
        source,
        ..Found::of(live.known().to_vec(), answered, args.seed)
    };
    let all = All {
        found: vec![found],
        unmarked: None,
    };
    all.show(args, here)?;
    Ok(all.exit())
}

/// Compares what was kept of shared questions (`eval.share`), each council for itself. Nothing is asked.
fn report(args: &Eval, here: &Here) -> Result<Exit, Error> {
    let kingdom = trust::open(here, args.json)?;
    let shared = kingdom.shared()?;
    tell(shared.passed_over);
    if shared.councils.is_empty() {
        let what = match shared.unmarked {
            0 => "no question was shared yet".to_owned(),
            n => format!(
                "{} wait for their right answers",
                count(n, "shared question")
            ),
        };
        return Err(Error::usage(what).next(match shared.unmarked {
            0 => "`kd config set --layer user eval.share 0.1` also asks a share of your questions of the best member alone",
            _ => "mark their verdicts with the right answers: `kd mark THREAD 391`",
        }));
    }
    let found = |shared: SharedCouncil| {
        let of = |wanted: Way| shared.ways.iter().find(|(way, _)| *way == wanted);
        let best = of(Way::Member).map_or_else(Vec::new, |(_, answered)| {
            answered.agents().cloned().collect()
        });
        Found {
            members: shared
                .council
                .members
                .iter()
                .map(|m| m.name.clone())
                .collect(),
            best: Best {
                name: best.join(", "),
                why: "the best by your marks when each question was asked".to_owned(),
            },
            samples: of(Way::Samples).map_or(0, |(_, answered)| answered.mean_samples() as u32),
            source: "a share of your questions".to_owned(),
            council: Some(shared.council),
            ..Found::of(shared.known, shared.ways, args.seed)
        }
    };
    let all = All {
        found: shared.councils.into_iter().map(found).collect(),
        unmarked: Some(shared.unmarked),
    };
    if args.format == Some(Format::Eee) {
        written::make_folder(args, here)?;
    }
    all.show(args, here)?;
    Ok(all.exit())
}

/// Says which marks were passed over.
fn tell(passed_over: PassedOver) {
    let lines = passed_over.lines();
    lines.iter().for_each(|line| notice_line(line));
}

/// Reads questions with their right answers.
fn read(path: &Path, source: &str) -> Result<Vec<Known>, Error> {
    let failed = |why: &dyn std::fmt::Display| {
        Error::new(
            "questions",
            Exit::Error,
            format!("{source} could not be read"),
        )
        .because(why)
        .next("give CSV or JSON Lines with `id`, `question` and `gold`")
    };
    let bytes = infile::read(path, FILE_BYTES_MAX).map_err(|e| failed(&e))?;
    let form = Form::of(&path.to_string_lossy(), &bytes);
    let wrong = |e: batch::ReadError| {
        let what = format!("{source} line {}: {}", e.line, e.what);
        Error::new("questions", Exit::Error, what).next(e.hint)
    };
    let gold = batch::read_gold(&bytes, form, None).map_err(wrong)?;
    let right: BTreeMap<String, Value> = gold
        .into_iter()
        .filter_map(|row| match row.of {
            Of::Question(id) if !row.answer.is_null() => Some((id, row.answer)),
            _ => None,
        })
        .collect();
    let questions = batch::read(&bytes, form, &Fields::default()).map_err(wrong)?;
    let all = questions.len();
    let known: Vec<Known> = questions
        .into_iter()
        .filter_map(|question| {
            let gold = right.get(&question.id)?.clone();
            Some(Known {
                id: question.id,
                text: question.text,
                gold,
            })
        })
        .collect();
    if known.len() < all {
        let left = count((all - known.len()) as u64, "question");
        notice_line(&format!("{left} without a right answer: not asked"));
    }
    Ok(known)
}

/// Returns the command that continues a run.
fn command(args: &Eval, questions: Option<&Path>) -> String {
    let file = questions.map(|path| format!(" {}", path.display()));
    let members = match args.members.is_empty() {
        true => String::new(),
        false => format!(" --members {}", args.members.join(",")),
    };
    format!("kd eval --live{}{members}", file.unwrap_or_default())
}

/// Returns the lines of an estimate.
fn estimated(live: &Live, estimates: &[(Way, Estimate)]) -> Vec<String> {
    let name = |way: Way| match way {
        Way::Council => format!("council of {}", live.members().join(", ")),
        Way::Member => format!("{} alone ({})", live.best().name, live.best().why),
        Way::Samples => format!("{} sampled at equal cost", live.best().name),
    };
    let lines = estimates
        .iter()
        .map(|(way, estimate)| format!("{}: {}", name(*way), face::estimate(estimate, None)));
    lines.collect()
}

fn dry_run(args: &Eval, live: &Live, estimates: &[(Way, Estimate)]) -> Result<Exit, Error> {
    let mut out = crate::out::stdout().lock();
    if args.json {
        let ways: Vec<Value> = estimates
            .iter()
            .map(|(way, estimate)| object!({"way": way.word(), "estimate": estimate}))
            .collect();
        let value = object!({
            "v": EVAL_LIVE_ESTIMATE.version, "members": live.members(), "best": live.best(), "estimates": ways,
        });
        writeln!(out, "{}", json::text(&value, true)?)?;
        return Ok(Exit::Done);
    }
    for line in estimated(live, estimates) {
        writeln!(out, "{line}")?;
    }
    Ok(Exit::Done)
}

/// Returns whether the user agrees to spend: asked on a terminal, stated by options in a pipe.
fn agrees(args: &Eval, live: &Live, estimates: &[(Way, Estimate)]) -> Result<bool, Error> {
    let options = &args.live;
    let has_budget = options.max_usd.is_some() || options.max_calls.is_some();
    if options.yes {
        return match has_budget {
            true => Ok(true),
            false => Err(Error::usage("--yes needs a budget")
                .next("add --max-usd or --max-calls: the most that all ways together may spend")),
        };
    }
    if !io::stdin().is_terminal() {
        let what = format!(
            "{} would be asked in three ways",
            count(live.known().len() as u64, "question")
        );
        return Err(Error::usage(what).next(
            "confirm with --yes and a budget (--max-usd or --max-calls), or run it in a terminal; --dry-run estimates",
        ));
    }
    for line in estimated(live, estimates) {
        notice_line(&line);
    }
    if !has_budget {
        notice_line("no budget: --max-usd or --max-calls sets one");
    }
    agreed("Ask them?")
}

/// How progress is shown, and what the first Ctrl+C does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Manner {
    /// Progress is shown; open questions get their answers.
    Told,
    /// No progress; open questions get their answers.
    Quiet,
    /// No progress; it ends at once.
    Aside,
}

impl Manner {
    fn of(json: bool) -> Self {
        if json { Self::Quiet } else { Self::Told }
    }
}

/// The condition under which questions may be asked.
#[derive(Clone, Copy)]
pub(in crate::run) struct GoesOn<'a> {
    /// Whether it holds now.
    pub(in crate::run) holds: &'a dyn Fn() -> bool,
    /// Notified when that may have changed; `None` if changes cannot be notified.
    pub(in crate::run) changed: Option<&'a Notify>,
}

impl GoesOn<'_> {
    /// Waits until the condition is false.
    async fn over(self) {
        while (self.holds)() {
            match self.changed {
                Some(changed) => {
                    let _ = tokio::time::timeout(LOOK, changed.notified()).await;
                }
                None => tokio::time::sleep(LOOK_OFTEN).await,
            }
        }
    }
}

/// Asks all ways, without the council if its cost is known already. Returns the exit code if they did not finish.
/// Once `goes_on` is false, requests in flight are stopped and nothing more is sent; `None` is always true.
pub(in crate::run) fn ask(
    live: &mut Live,
    mut council: Option<Cost>,
    manner: Manner,
    goes_on: Option<GoesOn<'_>>,
) -> Result<Result<Vec<(Way, Answered)>, Exit>, Error> {
    let runtime = Runtime::new()?;
    let mut answered: Vec<(Way, Answered)> = Vec::new();
    let is_asked = council.is_some();
    for way in Way::ALL {
        match (way, council, answered.last()) {
            (Way::Council, _, _) if is_asked => continue,
            (Way::Member, None, Some((_, answered))) => council = Some(answered.cost()),
            (Way::Samples, Some(council), Some((_, member))) => {
                live.set_samples(samples(council, member.cost()));
            }
            _ => {}
        }
        if goes_on.is_some_and(|goes_on| !(goes_on.holds)()) {
            return Ok(Err(Exit::Interrupted));
        }
        let batching = live.batching(way)?;
        let old = batching.old().filter(|old| old.counts.is_over()).cloned();
        let batch = match old {
            Some(old) => old,
            None => {
                let (ended, stopped) = runtime.block_on(play(batching, way, manner, goes_on))?;
                let again = "run the same command again: it goes on";
                match ended.why {
                    Why::Stopped | Why::Limit if manner == Manner::Aside => {
                        return Ok(Err(Exit::Interrupted));
                    }
                    Why::Stopped if stopped => {
                        notice_line(&format!("{again} ({} is kept)", ended.batch.about.id));
                        return Ok(Err(Exit::Interrupted));
                    }
                    Why::Limit => {
                        notice_line(&format!("a limit was reached; with a higher one, {again}"));
                        return Ok(Err(Exit::Cut));
                    }
                    Why::Stopped | Why::Over => ended.batch,
                }
            }
        };
        live.book(batch.spent);
        let found = live.answered(way, &batch.about.id)?;
        answered.push((way, found));
    }
    Ok(Ok(answered))
}

/// Runs the batch of a way to its end, and handles signals.
async fn play(
    batching: Batching<'_>,
    way: Way,
    manner: Manner,
    goes_on: Option<GoesOn<'_>>,
) -> Result<(Ended, bool), Error> {
    let mut signals = Signals::listen(false)
        .map_err(|e| Error::new("io", Exit::Error, "cannot handle signals").because(e))?;
    let mut running = batching.start()?;
    let mut told = 0;
    let mut stops = 0_u32;
    let mut progress = running.progress.clone();
    let mut over = pin!(async move {
        match goes_on {
            Some(goes_on) => goes_on.over().await,
            None => pending().await,
        }
    });
    let mut is_over = false;
    loop {
        tokio::select! {
            ended = running.ended() => return Ok((ended?, stops > 0)),
            () = &mut over, if !is_over => {
                is_over = true;
                running.stop();
            }
            Ok(()) = progress.changed() => {
                let counts = progress.borrow_and_update().counts;
                let tenths = counts.ended() * 10 / counts.total.max(1);
                if manner == Manner::Told && tenths > told {
                    told = tenths;
                    notice_line(&format!("{}: {} of {}", way.word(), counts.ended(), counts.total));
                }
            }
            signal = signals.next() => if let Caught::Interrupt | Caught::End = signal {
                stops += 1;
                match stops {
                    1 if manner != Manner::Aside => {
                        notice_line("stopping: open questions get their answers (Ctrl+C again stops them)");
                        running.drain();
                    }
                    _ => running.stop(),
                }
            },
        }
    }
}
