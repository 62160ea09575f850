//! `kd eval --live`: asks the user's own questions of the council, of its best member, and of samples of that member.
//! Estimates, asks for consent, runs one way after the other, and shows the comparison.

use super::sheet::{Part, Sheet, number, words};
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
use kd_app::batch::{Batching, Ended, Why};
use kd_app::infile;
use kd_app::live::{Answered, Known, Live, LiveRequest, Way, marked, samples};
use kd_app::words::count;
use kd_app::{Limits, Runtime, outfile};
use kd_core::batch::{self, Estimate, FILE_BYTES_MAX, Fields, Form, Of};
use kd_core::formats::{EVAL_LIVE, EVAL_LIVE_ESTIMATE};
use kd_eval::intervals::Interval;
use kd_eval::live::{Compared, compared};
use kd_eval::paired::Verdict;
use kd_eval::replay::Replay;
use kd_records::About;
use kd_tui::signals::{Caught, Signals};
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// Time between two looks at the progress.
const LOOK: Duration = Duration::from_millis(500);
/// Questions named that were left out.
const LEFT_OUT_SHOWN: usize = 5;

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
        None => marked(&kingdom)?,
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
    let answered = match ask(&mut live, args.json)? {
        Ok(answered) => answered,
        Err(exit) => return Ok(exit),
    };
    let (replay, left_out) = live.columns(&answered);
    let found = Found {
        compared: compared(&replay, args.seed),
        replay,
        left_out,
        answered,
        source,
    };
    found.show(args, &live, here)?;
    Ok(match found.compared.questions {
        0 => Exit::Failed,
        _ => Exit::Done,
    })
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

/// Returns the command that goes on with a run.
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

/// Asks all ways. Returns the exit code if they did not come to an end.
fn ask(live: &mut Live, quiet: bool) -> Result<Result<Vec<(Way, Answered)>, Exit>, Error> {
    let runtime = Runtime::new()?;
    let mut answered: Vec<(Way, Answered)> = Vec::new();
    for way in Way::ALL {
        if let (Way::Samples, [(_, council), (_, member)]) = (way, answered.as_slice()) {
            live.set_samples(samples(council.cost(), member.cost()));
        }
        let batching = live.batching(way)?;
        let old = batching.old().filter(|old| old.counts.is_over()).cloned();
        let batch = match old {
            Some(old) => old,
            None => {
                let (ended, stopped) = runtime.block_on(play(batching, way, quiet))?;
                let again = "run the same command again: it goes on";
                match ended.why {
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
async fn play(batching: Batching<'_>, way: Way, quiet: bool) -> Result<(Ended, bool), Error> {
    let mut signals = Signals::listen(false)
        .map_err(|e| Error::new("io", Exit::Error, "cannot handle signals").because(e))?;
    let mut running = batching.start()?;
    let mut told = 0;
    let mut stops = 0_u32;
    let mut tick = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            ended = running.ended() => return Ok((ended?, stops > 0)),
            _ = tick.tick() => {
                let counts = running.progress.borrow().counts;
                let tenths = counts.ended() * 10 / counts.total.max(1);
                if !quiet && tenths > told {
                    told = tenths;
                    notice_line(&format!("{}: {} of {}", way.word(), counts.ended(), counts.total));
                }
            }
            signal = signals.next() => if let Caught::Interrupt | Caught::End = signal {
                stops += 1;
                match stops {
                    1 => {
                        notice_line("stopping: open questions get their answers (Ctrl+C again stops them)");
                        running.drain();
                    }
                    _ => running.stop(),
                }
            },
        }
    }
}

/// What was found.
struct Found {
    compared: Compared,
    replay: Replay,
    left_out: Vec<(String, String)>,
    answered: Vec<(Way, Answered)>,
    source: String,
}

impl Found {
    fn show(&self, args: &Eval, live: &Live, here: &Here) -> Result<(), Error> {
        if args.format == Some(Format::Eee) {
            return written::files(&self.eee(live), args, here);
        }
        let text = match (args.format, args.json) {
            (_, true) => json::text(&self.json(live), true)? + "\n",
            (Some(Format::Md), _) => self.sheet(live).markdown(),
            (Some(Format::Html), _) => {
                let sheet = self.sheet(live);
                kd_page::sheet(&sheet.title, &sheet.markdown())
            }
            _ => self.sheet(live).text(),
        };
        match &args.output {
            Some(path) => Ok(outfile::write(path, text.as_bytes(), here)?),
            None => Ok(crate::out::stdout().lock().write_all(text.as_bytes())?),
        }
    }

    /// Returns the name of a way for people.
    fn name(&self, way: &str, live: &Live) -> String {
        let best = &live.best().name;
        match way {
            "council" => "the council".to_owned(),
            "member" => format!("{best} alone"),
            _ => match live.samples() {
                1 => format!("{best}, 1 sample"),
                n => format!("{best}, {n} samples"),
            },
        }
    }

    fn members(&self, live: &Live) -> Vec<Vec<String>> {
        let of = |(way, _): &(Way, Answered)| match way {
            Way::Council => live.members().to_vec(),
            Way::Member | Way::Samples => vec![live.best().name.clone()],
        };
        self.answered.iter().map(of).collect()
    }

    fn json(&self, live: &Live) -> Value {
        let ways = self
            .compared
            .ways
            .iter()
            .zip(&self.answered)
            .zip(self.members(live));
        let ways: Vec<Value> = ways
            .map(|((way, (_, answered)), members)| {
                object!({
                    "way": way.way, "members": members, "batch": answered.batch, "right": way.right,
                    "interval": way.interval, "cost": answered.cost(),
                })
            })
            .collect();
        let left_out: Vec<Value> = self
            .left_out
            .iter()
            .map(|(id, why)| object!({"id": id, "why": why}))
            .collect();
        object!({
            "v": EVAL_LIVE.version, "members": live.members(), "best": live.best(), "samples": live.samples(),
            "questions": self.compared.questions, "left_out": left_out, "ways": ways, "pairs": self.compared.pairs,
        })
    }

    fn eee(&self, live: &Live) -> Vec<kd_records::Written> {
        let known = live.known().iter();
        let about = known.map(|known| {
            let gold = match &known.gold {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let about = About {
                task: "own-questions".to_owned(),
                id: known.id.clone(),
                input: known.text.clone(),
                gold: vec![gold],
            };
            (known.id.clone(), about)
        });
        kd_records::written_ways(
            &self.replay,
            &self.members(live),
            &about.collect(),
            written::now(),
        )
    }

    fn sheet(&self, live: &Live) -> Sheet {
        let pct = |share: f64| format!("{:.1}", share * 100.0);
        let range = |i: Interval| format!("{}–{}", pct(i.low), pct(i.high));
        let best = live.best();
        let mut parts = vec![Part::Line(format!(
            "{} of {} · council of {} · best member {} ({})",
            count(self.compared.questions, "question"),
            self.source,
            live.members().join(", "),
            best.name,
            best.why
        ))];
        let ways = self.compared.ways.iter().zip(&self.answered);
        let ways = ways.map(|(way, (_, answered))| {
            let cost = answered.cost();
            vec![
                self.name(&way.way, live),
                pct(way.right),
                range(way.interval),
                format!("{:.1}", cost.calls),
                format!("{}{:.0}", cost.certainty.sign(), cost.tokens),
                match cost.usd {
                    Some(usd) => format!("{}{usd:.4}", cost.certainty.sign()),
                    None => "price unknown".to_owned(),
                },
            ]
        });
        let heads = vec![
            words("way"),
            number("right, %"),
            number("95 % interval"),
            number("calls per question"),
            number("tokens"),
            number("$"),
        ];
        parts.push(Part::Table(heads, ways.collect()));
        let signed = |points: f64| format!("{:+.1}", points * 100.0);
        let pairs = self.compared.pairs.iter().map(|pair| {
            let c = &pair.comparison;
            let verdict = match c.verdict {
                Verdict::NotShown if c.detectable > 0.0 => format!(
                    "{} (it would see {:.1})",
                    c.verdict.word(),
                    c.detectable * 100.0
                ),
                verdict => verdict.word().to_owned(),
            };
            vec![
                self.name(&pair.way, live),
                self.name(&pair.beside, live),
                signed(c.difference),
                format!("{} to {}", signed(c.interval.low), signed(c.interval.high)),
                format!("{:.4}", c.p),
                verdict,
            ]
        });
        let heads = vec![
            words("compared"),
            words("beside"),
            number("points"),
            number("95 % interval"),
            number("p"),
            words("verdict"),
        ];
        parts.push(Part::Table(heads, pairs.collect()));
        if !self.left_out.is_empty() {
            let named = self.left_out.iter().take(LEFT_OUT_SHOWN);
            let named: Vec<String> = named.map(|(id, why)| format!("{id} ({why})")).collect();
            parts.push(Part::Line(format!(
                "{} left out: {}{}",
                count(self.left_out.len() as u64, "question"),
                named.join("; "),
                if self.left_out.len() > LEFT_OUT_SHOWN {
                    "; …"
                } else {
                    ""
                }
            )));
        }
        Sheet {
            title: "Does a council pay?".to_owned(),
            parts,
        }
    }
}
