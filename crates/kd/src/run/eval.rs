//! `kd eval`: replays recorded answers or simulates members. Input: files. Output: tables, or one JSON object.

mod grid;
pub(super) mod live;
mod page;
mod recorded;
mod sheet;
mod words;
mod written;

use super::here::Here;
use crate::args::eval::{Eval, Format};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::style::Styles;
use kd_app::infile;
use kd_core::formats::{
    EVAL_COUNCILS, EVAL_DRIFT, EVAL_LIST, EVAL_PROMISES, EVAL_REPLAY, EVAL_SIMULATED, Printed,
};
use kd_eval::deciders::{DECIDERS, Way};
use kd_eval::replay::{self, DriftTrial, Empty, Replay, Select, Table, Trial, read_debates};
use kd_eval::simulate::protocols::PROTOCOLS;
use kd_eval::simulate::{Spec, simulate};
use kd_vote::RULES;
use recorded::{Origin, Recorded};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

/// Default number of possible answers: free text has many, but few are given.
const OPTIONS: u64 = 20;

pub(super) fn run(args: &Eval, here: &Here) -> Result<Exit, Error> {
    let styles = here.out_styles();
    if let Some(questions) = &args.live.live {
        return live::run(args, questions.as_deref(), here);
    }
    if args.page.is_none() && matches!(args.format, Some(Format::Md | Format::Html)) {
        let what = "--format md and html are for --live and --page";
        return Err(
            Error::usage(what).next("add --page, or write the recorded answers as csv or eee")
        );
    }
    if args.list {
        list(&mut crate::out::lines(args.json), args.json, &styles)?;
    } else if let Some(path) = &args.simulate {
        let simulated = simulate(&spec(path)?);
        let mut out = io::BufWriter::new(crate::out::lines(args.json));
        if args.json {
            print(&mut out, &simulated, &EVAL_SIMULATED)?;
        } else {
            words::simulated(&mut out, &simulated, &styles)?;
        }
        out.flush()?;
    } else if let Some(councils) = args.page {
        page::write(args, councils, here)?;
    } else {
        let (recorded, mut origin) = recorded::open(args)?;
        match recorded {
            Recorded::Debates(text) => debates(args, &origin, &text, &styles)?,
            Recorded::Table(table) if args.format.is_some() => {
                write(args, &table, &origin, here)?;
            }
            Recorded::Table(table) => {
                let mut out = io::BufWriter::new(crate::out::lines(args.json));
                answers(&mut out, args, &mut origin, &table, &styles)?;
                out.flush()?;
            }
        }
    }
    Ok(Exit::Done)
}

fn debates(args: &Eval, origin: &Origin, text: &str, styles: &Styles) -> Result<(), Error> {
    let places = "a debate's agents are places at a table, with other members each time";
    let needs_names = [
        (
            "members cannot be chosen from debates",
            "--members",
            !args.members.is_empty(),
        ),
        (
            "random councils need named members",
            "--councils",
            args.councils.is_some(),
        ),
        (
            "promises need named members",
            "--promise",
            !args.promise.is_empty(),
        ),
        (
            "only answers of named members can be written",
            "--format",
            args.format.is_some(),
        ),
    ];
    if let Some((what, flag, _)) = needs_names.into_iter().find(|(_, _, given)| *given) {
        return Err(Error::usage(what)
            .because(places)
            .next(format!("omit {flag}, or give a table of answers")));
    }
    let select = Select {
        mode: args.mode.clone(),
        empty: empty(args),
        ..Select::default()
    };
    let replay = read_debates(text, &select).map_err(|e| origin.unreadable(e))?;
    let mut out = io::BufWriter::new(crate::out::lines(args.json));
    report(&mut out, args, origin, &replay, styles)?;
    Ok(out.flush()?)
}

/// Writes the answers, or the decisions on them, in the form of `--format`.
fn write(args: &Eval, table: &Table, origin: &Origin, here: &Here) -> Result<(), Error> {
    match args.format {
        Some(Format::Csv) => return written::csv(args, table, origin, here),
        Some(Format::Md | Format::Html) => {
            return Err(
                Error::usage("--format md and html write the page of --page")
                    .next("add --page, or choose csv or eee"),
            );
        }
        Some(Format::Eee) | None => {}
    }
    let replay = table
        .council(&args.members)
        .map_err(|e| origin.not_shared(e, table))?;
    let ways = ways(args, &["plurality"])?;
    fit(&ways, &replay)?;
    let options = args.options.or(replay.options).unwrap_or(OPTIONS);
    written::eee(args, (&replay, &ways, options), origin, here)
}

fn answers(
    out: &mut impl Write,
    args: &Eval,
    origin: &mut Origin,
    table: &Table,
    styles: &Styles,
) -> Result<(), Error> {
    if args.mode.is_some() {
        return Err(Error::usage("--mode chooses among debates")
            .because("this is a table of answers")
            .next("omit --mode"));
    }
    if args.councils.is_some() {
        return random(out, args, origin, table, styles);
    }
    if args.drift {
        return drifts(out, args, origin, table, styles);
    }
    let replay = table
        .council(&origin.voters(&args.members, table))
        .map_err(|e| origin.not_shared(e, table))?;
    origin.note_missing(table, &replay);
    match args.promise.is_empty() {
        true => report(out, args, origin, &replay, styles),
        false => promises(out, args, origin, &replay, styles),
    }
}

/// Compares random councils with their best members.
fn random(
    out: &mut impl Write,
    args: &Eval,
    origin: &Origin,
    table: &Table,
    styles: &Styles,
) -> Result<(), Error> {
    let ways = ways(args, &["plurality", "log-odds", "weighted", "best", "auto"])?;
    // If one council of the file cannot provide it, none can.
    let sample = table
        .council(&table.members[..1.min(table.members.len())])
        .map_err(|e| origin.unreadable(e))?;
    fit(&ways, &sample)?;
    let options = args.options.or(sample.options).unwrap_or(OPTIONS);
    let count = args.councils.unwrap_or_default() as usize;
    let found = replay::councils(table, &ways, count, args.size as usize, options, args.seed)
        .map_err(|e| origin.unreadable(e))?;
    if args.json {
        print(out, &found, &EVAL_COUNCILS)?;
    } else {
        words::councils(out, &origin.name, &found, styles)?;
    }
    Ok(())
}

/// Measures how soon broken promises are noticed. The change needs the file's other models, so their answers are read
/// too.
fn drifts(
    out: &mut impl Write,
    args: &Eval,
    origin: &Origin,
    table: &Table,
    styles: &Styles,
) -> Result<(), Error> {
    let trial = DriftTrial {
        members: args.members.clone(),
        promises: args.promise.clone(),
        marks: args.marks.iter().map(|n| *n as usize).collect(),
        splits: args.splits as usize,
        seed: args.seed,
    };
    let all = table.council(&[]).map_err(|e| origin.unreadable(e))?;
    let found = replay::drifts(&all, &trial).map_err(|e| origin.unreadable(e))?;
    if args.json {
        tried(out, origin, &found, &EVAL_DRIFT)
    } else {
        Ok(words::drifts(out, &origin.name, &found, styles)?)
    }
}

/// Returns a trial of promises as JSON.
fn tried(
    out: &mut impl Write,
    origin: &Origin,
    found: &impl serde::Serialize,
    format: &Printed,
) -> Result<(), Error> {
    let mut value = serde_json::to_value(found).map_err(io::Error::from)?;
    if let Some(object) = value.as_object_mut() {
        object.insert("file".into(), json!(origin.name));
        object.insert("sha256".into(), json!(origin.sha256));
    }
    print(out, &value, format)
}

/// Prints an object with the version of its format.
fn print(
    out: &mut impl Write,
    found: &impl serde::Serialize,
    format: &Printed,
) -> Result<(), Error> {
    let mut value = serde_json::to_value(found).map_err(io::Error::from)?;
    value[format.field] = json!(format.version);
    Ok(writeln!(out, "{}", json::text(&value, true)?)?)
}

fn promises(
    out: &mut impl Write,
    args: &Eval,
    origin: &Origin,
    replay: &Replay,
    styles: &Styles,
) -> Result<(), Error> {
    let trial = Trial {
        promises: args.promise.clone(),
        marks: args.marks.iter().map(|n| *n as usize).collect(),
        splits: args.splits as usize,
        seed: args.seed,
    };
    let found = replay::promises(replay, &trial).map_err(|e| origin.unreadable(e))?;
    if args.json {
        tried(out, origin, &found, &EVAL_PROMISES)
    } else {
        Ok(words::promises(out, &origin.name, &found, styles)?)
    }
}

fn report(
    out: &mut impl Write,
    args: &Eval,
    origin: &Origin,
    replay: &Replay,
    styles: &Styles,
) -> Result<(), Error> {
    let usual: &[&str] = if replay.named {
        &["plurality"]
    } else {
        &["first-round", "last-round"]
    };
    let ways = ways(args, usual)?;
    fit(&ways, replay)?;
    let options = args.options.or(replay.options).unwrap_or(OPTIONS);
    let report = replay::report(replay, &ways, options, args.seed);
    if args.json {
        let mut value = serde_json::to_value(&report).map_err(io::Error::from)?;
        if let Some(setup) = value.get_mut("setup").and_then(Value::as_object_mut) {
            for (name, value) in origin.fields() {
                setup.insert(name.into(), value);
            }
        }
        print(out, &value, &EVAL_REPLAY)?;
    } else {
        words::sources(out, &origin.sources, &origin.dropped, styles)?;
        words::report(out, &origin.name, &report, styles)?;
    }
    Ok(())
}

fn empty(args: &Eval) -> Empty {
    if args.empty_answers {
        Empty::Answer
    } else {
        Empty::Abstains
    }
}

/// Returns the chosen ways to decide, or the default ones.
fn ways(args: &Eval, usual: &[&str]) -> Result<Vec<Way>, Error> {
    let wanted: Vec<&str> = if args.rule.is_empty() {
        usual.to_vec()
    } else {
        args.rule.iter().map(String::as_str).collect()
    };
    wanted
        .into_iter()
        .map(|name| {
            Way::find(name).ok_or_else(|| {
                let names: Vec<&str> = Way::names().collect();
                let error = Error::usage(format!("no decider is named `{name}`"))
                    .because(format!("ways: {}", names.join(", ")));
                match Way::nearest(name) {
                    Some(n) => error.next(format!("did you mean {n}?")),
                    None => error.next("kd eval --list describes them; so does kd vote rules"),
                }
            })
        })
        .collect()
}

/// Rejects what the record cannot answer.
fn fit(ways: &[Way], replay: &Replay) -> Result<(), Error> {
    for way in ways {
        way.fits(replay).map_err(|why| {
            Error::usage(format!(
                "`{}` cannot be replayed on this record",
                way.name()
            ))
            .because(why)
            .next("kd eval --list shows what each decider needs")
        })?;
    }
    Ok(())
}

fn list(out: &mut impl Write, as_json: bool, styles: &Styles) -> Result<(), Error> {
    if as_json {
        let ways: Vec<Value> = DECIDERS
            .iter()
            .map(|d| json!({"name": d.name, "doc": d.doc, "source": d.source}))
            .collect();
        let protocols: Vec<Value> = PROTOCOLS
            .iter()
            .map(|p| json!({"name": p.name, "doc": p.doc}))
            .collect();
        let object = json!({"ways": ways, "rules": RULES.iter().map(|r| r.name).collect::<Vec<_>>(), "protocols": protocols});
        return print(out, &object, &EVAL_LIST);
    }
    writeln!(
        out,
        "{}",
        styles.bold("Ways to decide recorded questions (--rule)")
    )?;
    for d in DECIDERS {
        writeln!(out, "  {:<16} {}", d.name, d.doc)?;
        writeln!(out, "  {:<16} {}", "", styles.dim(d.source))?;
    }
    writeln!(
        out,
        "  and every rule of `kd vote rules`: votes weigh the odds of their voters, measured on the other half"
    )?;
    writeln!(out, "{}", styles.bold("Protocols that can be simulated"))?;
    for p in PROTOCOLS {
        writeln!(out, "  {:<16} {}", p.name, p.doc)?;
    }
    Ok(())
}

fn spec(path: &Path) -> Result<Spec, Error> {
    Spec::read(&read(path)?).map_err(|wrong| {
        Error::new(
            "simulation",
            Exit::Error,
            format!("{} is not a simulation", recorded::shown(path)),
        )
        .because(wrong.join("\n"))
        .next("kd eval --help shows one; docs/eval.md lists every key")
    })
}

fn read(path: &Path) -> Result<String, Error> {
    infile::read_text(path, infile::ANSWERS_BYTES_MAX).map_err(|e| recorded::unreadable(path, e))
}
