//! `kd vote …`: counts the ballots of a file by any voting rule, or compares counts with recorded ones.

use super::here::Here;
use crate::args::vote::{Check, Rules as RulesArgs, Tally as TallyArgs, Ties, Vote};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use kd_app::infile;
use kd_core::formats;
use kd_vote::{
    Amount, Case, RULES, ReadError, Reads, Rule, Tally, TiePolicy, read_csv, read_json_lines,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

pub(super) fn run(args: &Vote, here: &Here) -> Result<Exit, Error> {
    match args {
        Vote::Tally(args) => tally(args, here),
        Vote::Check(args) => check(args),
        Vote::Rules(args) => rules(args, here),
    }
}

fn tally(args: &TallyArgs, here: &Here) -> Result<Exit, Error> {
    let wanted = args
        .rule
        .iter()
        .map(|name| find(name))
        .collect::<Result<Vec<_>, _>>()?;
    let mut cases = read(&args.file)?;
    let styles = here.out_styles();
    let several = cases.len() > 1;
    let mut out = io::BufWriter::new(crate::out::lines(args.json));
    for case in &mut cases {
        case.rules.weighted |= args.weighted;
        if let Some(seed) = args.seed {
            case.rules.seed = seed;
        }
        if args.approvals_max.is_some() {
            case.rules.approvals_max = args.approvals_max;
        }
        if let Some(share) = args.threshold {
            case.rules.super_majority = kd_vote::nanos(share);
        }
        if let Some(ties) = args.ties {
            case.rules.runoff.ties = policy(ties);
        }
        for (at, rule) in wanted.iter().enumerate() {
            rule.takes(case.rules.candidates.len()).map_err(|refused| {
                Error::new("ballots", Exit::Error, refused.to_string())
                    .next("kd vote rules shows how many candidates each rule takes")
            })?;
            let counted = kd_vote::tally(rule, &case.ballots, &case.rules);
            if args.json {
                writeln!(out, "{}", json::text(&tally_json(case, &counted), false)?)?;
                continue;
            }
            if several || at > 0 {
                let name = if case.name.is_empty() {
                    format!("line {}", case.line)
                } else {
                    clean::line(&case.name)
                };
                writeln!(out, "{}", styles.bold(&format!("{name} · {}", rule.name)))?;
            }
            show(&mut out, case, rule, &counted)?;
        }
    }
    out.flush()?;
    notices(&cases);
    Ok(Exit::Done)
}

/// Prints a count round by round.
fn show(out: &mut impl Write, case: &Case, rule: &Rule, tally: &Tally) -> io::Result<()> {
    let name = |c: usize| clean::line(&case.rules.candidates[c]);
    let names = |set: &[usize]| match set {
        [] => "nobody".to_owned(),
        set => set.iter().map(|c| name(*c)).collect::<Vec<_>>().join(", "),
    };
    for (at, round) in tally.rounds.iter().enumerate() {
        writeln!(out, "Round {}", at + 1)?;
        let mut standing = round.tally.clone();
        standing.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
        table(out, &standing, name)?;
        if let Some(exhausted) = round.exhausted.as_ref().filter(|e| !e.is_zero()) {
            writeln!(out, "  exhausted: {exhausted}")?;
        }
        for note in &round.notes {
            writeln!(out, "  {}", clean::line(note))?;
        }
        if !round.eliminated.is_empty() {
            writeln!(out, "  dropped: {}", names(&round.eliminated))?;
        }
        if !round.elected.is_empty() {
            writeln!(out, "  elected: {}", names(&round.elected))?;
        }
    }
    if tally.rounds.is_empty() {
        let mut standing: Vec<(usize, Amount)> = tally
            .scores
            .iter()
            .enumerate()
            .filter_map(|(c, s)| Some((c, s.clone()?)))
            .collect();
        standing.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
        if standing.is_empty() && rule.reads == Reads::Ranking {
            pairs(out, case, rule, name)?;
        }
        table(out, &standing, name)?;
    }
    for step in &tally.tie_path {
        writeln!(
            out,
            "tie · {}: {} · left: {}",
            step.step,
            clean::line(&step.why),
            names(&step.left)
        )?;
    }
    for note in &tally.notes {
        writeln!(out, "note: {}", clean::line(note))?;
    }
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for abstention in &tally.abstained {
        let n = reasons.entry(abstention.why.as_str()).or_default();
        *n = n.saturating_add(abstention.count);
    }
    let abstained = reasons.values().fold(0, |n: u64, m| n.saturating_add(*m));
    for (why, n) in reasons {
        writeln!(out, "abstained: {n} · {}", clean::line(why))?;
    }
    let counted = tally.electorate.saturating_sub(abstained);
    writeln!(out, "ballots counted: {counted} of {}", tally.electorate)?;
    if !tally.rounds.is_empty() || tally.winners.len() != 1 {
        writeln!(out, "winners: {}", names(&tally.winners))?;
    }
    let winner = tally.winner.map_or("nobody".to_owned(), name);
    writeln!(out, "{}: {winner} · {}", rule.name, tally.outcome.word())
}

/// Maximum candidates in a printed table of pairs.
const PAIRS_MAX: usize = 20;

/// Prints how many voters prefer each candidate to each other one: what a rule compares that has neither rounds nor
/// scores.
fn pairs(
    out: &mut impl Write,
    case: &Case,
    rule: &Rule,
    name: impl Fn(usize) -> String,
) -> io::Result<()> {
    let candidates = case.rules.candidates.len();
    if candidates > PAIRS_MAX {
        return writeln!(
            out,
            "Pairs: not shown for {candidates} candidates (at most {PAIRS_MAX})"
        );
    }
    let rows = kd_vote::pairwise(rule, &case.ballots, &case.rules);
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(Amount::to_string).collect())
        .collect();
    let longest = rows.iter().flatten().map(String::len).max();
    let width = longest.unwrap_or(0).max(candidates.to_string().len());
    writeln!(out, "Pairs: votes for the row against the column")?;
    let columns: String = (1..=candidates).map(|n| format!("  {n:>width$}")).collect();
    writeln!(out, "  {:>width$}{columns}", "")?;
    for (c, row) in rows.iter().enumerate() {
        write!(out, "  {:>width$}", c + 1)?;
        for (d, votes) in row.iter().enumerate() {
            let votes = if c == d { "-" } else { votes };
            write!(out, "  {votes:>width$}")?;
        }
        writeln!(out, "  {}", name(c))?;
    }
    Ok(())
}

/// Prints amounts aligned below each other.
fn table(
    out: &mut impl Write,
    rows: &[(usize, Amount)],
    name: impl Fn(usize) -> String,
) -> io::Result<()> {
    let width = rows
        .iter()
        .map(|(_, a)| a.to_string().len())
        .max()
        .unwrap_or(0);
    for (c, amount) in rows {
        writeln!(out, "  {:>width$}  {}", amount.to_string(), name(*c))?;
    }
    Ok(())
}

fn tally_json(case: &Case, tally: &Tally) -> Value {
    let name = |c: &usize| case.rules.candidates[*c].clone();
    let names = |set: &[usize]| -> Vec<String> { set.iter().map(name).collect() };
    let amounts = |rows: &[(usize, Amount)]| -> Map<String, Value> {
        rows.iter().map(|(c, a)| (name(c), json!(a))).collect()
    };
    let rounds: Vec<Value> = tally
        .rounds
        .iter()
        .map(|r| {
            json!({
                "tally": amounts(&r.tally), "eliminated": names(&r.eliminated), "elected": names(&r.elected),
                "exhausted": r.exhausted, "notes": r.notes,
            })
        })
        .collect();
    let scores: Vec<(usize, Amount)> = tally
        .scores
        .iter()
        .enumerate()
        .filter_map(|(c, s)| Some((c, s.clone()?)))
        .collect();
    let ties: Vec<Value> = tally
        .tie_path
        .iter()
        .map(|t| json!({"step": t.step, "why": t.why, "left": names(&t.left)}))
        .collect();
    let dissent: Vec<Value> = tally
        .dissent
        .iter()
        .map(|d| json!({"voter": d.voter, "n": d.count, "first": names(&d.first)}))
        .collect();
    json!({
        "v": formats::TALLY.version,
        "line": case.line,
        "name": case.name,
        "rule": tally.rule,
        "winners": names(&tally.winners),
        "winner": tally.winner.as_ref().map(name),
        "outcome": tally.outcome,
        "margin": tally.margin,
        "scores": amounts(&scores),
        "rounds": rounds,
        "tie_path": ties,
        "electorate": tally.electorate,
        "abstained": tally.abstained,
        "dissent": dissent,
        "notes": tally.notes,
    })
}

fn check(args: &Check) -> Result<Exit, Error> {
    let cases = read(&args.file)?;
    let (mut sets, mut rounds) = (0, 0);
    let mut unknown: BTreeMap<String, u64> = BTreeMap::new();
    let mut compared: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut differences = Vec::new();
    for case in &cases {
        let report = kd_vote::check(case);
        sets += report.sets;
        rounds += report.rounds;
        for (rule, _) in &case.expected.winners {
            compared.entry(rule.clone()).or_default().0 += 1;
        }
        for name in report.unknown {
            *unknown.entry(name).or_default() += 1;
        }
        for d in report.differences {
            compared.entry(d.rule.clone()).or_default().1 += 1;
            differences.push((case, d));
        }
    }
    compared.retain(|rule, _| !unknown.contains_key(rule));
    if sets + rounds == 0 {
        let known = if unknown.is_empty() {
            "it has neither `winners` nor `rounds`".to_owned()
        } else {
            format!(
                "no recorded rule is known: {}",
                unknown.keys().cloned().collect::<Vec<_>>().join(", ")
            )
        };
        return Err(Error::new(
            "nothing_to_compare",
            Exit::Error,
            format!("{} has nothing to compare", args.file.display()),
        )
        .because(known)
        .next("kd vote check --help shows what a file records; kd vote rules lists the names"));
    }
    let mut out = io::BufWriter::new(crate::out::lines(args.json));
    if args.json {
        let list: Vec<Value> = differences
            .iter()
            .map(|(case, d)| json!({"line": case.line, "name": case.name, "rule": d.rule, "what": d.what}))
            .collect();
        let by_rule: Map<String, Value> = compared
            .iter()
            .map(|(rule, (n, bad))| (rule.clone(), json!({"compared": n, "differences": bad})))
            .collect();
        let object = json!({
            "v": formats::CHECK.version, "polls": cases.len(), "sets": sets, "rounds": rounds, "by_rule": by_rule,
            "unknown_rules": unknown, "differences": list,
        });
        writeln!(out, "{}", json::text(&object, true)?)?;
    } else {
        for (case, d) in &differences {
            let name = if case.name.is_empty() {
                String::new()
            } else {
                format!(" ({})", clean::line(&case.name))
            };
            writeln!(
                out,
                "line {}{name} · {}: {}",
                case.line,
                clean::line(&d.rule),
                clean::line(&d.what)
            )?;
        }
        for (rule, (n, bad)) in compared.iter().filter(|(_, (n, _))| *n > 0) {
            let verdict = if *bad == 0 {
                "all equal".to_owned()
            } else {
                format!("{bad} differ")
            };
            writeln!(out, "  {n:>6}  {} · {verdict}", clean::line(rule))?;
        }
        for (rule, n) in &unknown {
            writeln!(
                out,
                "  {n:>6}  {} · unknown rule: not compared",
                clean::line(rule)
            )?;
        }
        let verdict = match differences.len() {
            0 => "no difference".to_owned(),
            1 => "1 difference".to_owned(),
            n => format!("{n} differences"),
        };
        writeln!(
            out,
            "polls: {} · winner sets: {sets} · rounds: {rounds} · {verdict}",
            cases.len()
        )?;
    }
    out.flush()?;
    notices(&cases);
    Ok(if differences.is_empty() {
        Exit::Done
    } else {
        Exit::Error
    })
}

fn rules(args: &RulesArgs, here: &Here) -> Result<Exit, Error> {
    let one = args.name.as_deref().map(find).transpose()?;
    let list: Vec<&Rule> = one.map_or_else(|| RULES.iter().collect(), |rule| vec![rule]);
    let mut out = io::BufWriter::new(crate::out::lines(args.json));
    if args.json {
        let rows: Vec<Value> = list
            .iter()
            .map(|r| {
                json!({
                    "name": r.name, "aliases": r.aliases, "doc": r.doc, "source": r.source,
                    "caveat": r.caveat, "reads": r.reads.words(),
                    "candidates_max": r.candidates_max,
                    "satisfies": r.satisfies.iter().map(|a| format!("{a:?}").to_lowercase()).collect::<Vec<_>>(),
                })
            })
            .collect();
        writeln!(out, "{}", json::text(&Value::Array(rows), true)?)?;
    } else {
        let styles = here.out_styles();
        for rule in list {
            writeln!(out, "{}", styles.bold(rule.name))?;
            writeln!(out, "  {}", rule.doc)?;
            writeln!(out, "  reads: {}", rule.reads.words())?;
            writeln!(out, "  candidates: up to {}", rule.candidates_max)?;
            writeln!(out, "  {}", styles.dim(&format!("caveat: {}", rule.caveat)))?;
            writeln!(out, "  {}", styles.dim(&format!("source: {}", rule.source)))?;
            if !rule.aliases.is_empty() {
                writeln!(
                    out,
                    "  {}",
                    styles.dim(&format!("also: {}", rule.aliases.join(", ")))
                )?;
            }
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn policy(ties: Ties) -> TiePolicy {
    match ties {
        Ties::Batch => TiePolicy::Batch,
        Ties::Parallel => TiePolicy::Parallel,
        Ties::Backward => TiePolicy::Backward,
        Ties::Forward => TiePolicy::Forward,
        Ties::Borda => TiePolicy::Borda,
        Ties::Seeded => TiePolicy::Seeded,
    }
}

fn find(name: &str) -> Result<&'static Rule, Error> {
    kd_vote::find(name).ok_or_else(|| {
        let near = near(name);
        let next = if near.is_empty() {
            "kd vote rules lists all rules".to_owned()
        } else {
            format!(
                "did you mean {}? kd vote rules lists all rules",
                near.join(" or ")
            )
        };
        Error::usage(format!("no rule is named `{name}`")).next(next)
    })
}

/// Maximum rules that are suggested for an unknown name.
const NEAR_MAX: usize = 3;

/// Returns the rules with similar names, the nearest first.
fn near(name: &str) -> Vec<&'static str> {
    let typed = name.to_lowercase();
    let names = || RULES.iter().map(|r| r.name);
    let spelled = RULES
        .iter()
        .flat_map(|r| std::iter::once(r.name).chain(r.aliases.iter().copied()));
    let nearest = kd_vote::nearest(name, spelled).and_then(|n| kd_vote::find(&n));
    let mut near: Vec<&'static str> = match nearest {
        Some(rule) => std::iter::once(rule.name)
            .chain(names().filter(|n| *n != rule.name && n.contains(rule.name)))
            .collect(),
        None => names()
            .filter(|n| n.contains(&typed) || typed.contains(n))
            .collect(),
    };
    near.truncate(NEAR_MAX);
    near
}

/// Reads a ballot file; CSV by its name, or if its first byte does not start a JSON object.
fn read(path: &Path) -> Result<Vec<Case>, Error> {
    let stdin = path.as_os_str() == "-";
    let shown = if stdin {
        "stdin".to_owned()
    } else {
        path.display().to_string()
    };
    let bytes = infile::read(path, infile::BALLOTS_BYTES_MAX).map_err(|e| {
        Error::new("ballots", Exit::Error, format!("{shown} could not be read"))
            .because(e)
            .next("give a file of ballots, or `-` for stdin")
    })?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        Error::new(
            "ballots",
            Exit::Error,
            format!("{shown}, line {line}: this is not UTF-8 text"),
        )
        .next("save the file as UTF-8")
    })?;
    let csv = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("csv"))
        || !text
            .trim_start_matches('\u{feff}')
            .trim_start()
            .starts_with(['{', '['])
            && !text.trim().is_empty();
    let read = if csv {
        read_csv(&text).map(|case| vec![case])
    } else {
        read_json_lines(&text)
    };
    read.map_err(|ReadError { line, what, hint }| {
        Error::new(
            "ballots",
            Exit::Error,
            format!("{shown}, line {line}: {what}"),
        )
        .next(hint)
    })
}

/// Prints what was left out of the polls of a file, or counted otherwise than somebody may expect.
fn notices(cases: &[Case]) {
    let mut err = crate::out::stderr();
    for line in cases.iter().flat_map(|case| case.notices.lines()) {
        let _ = writeln!(err, "note: {}", clean::line(&line));
    }
    for (who, ballots) in strangers(cases) {
        let on = kd_app::words::count(ballots, "ballot");
        let _ = writeln!(
            err,
            "note: `{}` is on {on} but is not a candidate",
            clean::line(&who)
        );
    }
}

/// Returns the names on ballots that are not candidates, over all polls. Candidates excluded by name do not count.
fn strangers(cases: &[Case]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for case in cases {
        for (who, ballots) in &case.strangers {
            *all.entry(who.clone()).or_default() += ballots;
        }
    }
    all
}
