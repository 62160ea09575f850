//! `kd forum fairness` and `kd forum audit`: the record, judged and drawn again.

use super::super::here::Here;
use super::Site;
use crate::args::forum::{Audit, Fairness};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::style::Styles;
use kd_core::forum::fairness::{Sample, Table, table as judge};
use kd_core::forum::words::Run;
use kd_store::forum::{Anchor, Audited, Checked, CycleRecord, ForumError};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

/// Cycles and faults that are listed.
const LISTED: usize = 50;
/// Characters of a full bar.
const BAR: usize = 24;

pub(super) fn table(args: &Fairness, here: &Here) -> Result<Exit, Error> {
    let mut site = Site::open(&args.place, here)?;
    let table = judged(&mut site, args.last)?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&table).unwrap_or_default())?;
    } else {
        print(&table, here.out_styles(), &mut out)?;
    }
    Ok(Exit::Done)
}

/// Judges the last cycles of a forum.
pub(super) fn judged(site: &mut Site, last: i64) -> Result<Table, ForumError> {
    let cycles = site.store.cycles(&site.forum, last)?;
    let names: Vec<String> = cycles
        .last()
        .map(|c| c.cards.candidates.iter().map(|c| c.name.clone()).collect())
        .unwrap_or_default();
    let place = |name: &str| names.iter().position(|n| n == name);
    let mut samples = Vec::with_capacity(cycles.len());
    let mut last_turn: BTreeMap<String, jiff::Timestamp> = BTreeMap::new();
    let mut bounds = Vec::new();
    for cycle in &cycles {
        let mut sample = Sample::default();
        // A cycle of other agents has another order: its sample does not fit, and is counted as left out.
        if cycle.plan.order.len() == names.len() {
            sample.order = cycle.plan.order.iter().filter_map(|n| place(n)).collect();
        }
        for run in site.store.runs_of(cycle.id)? {
            let waited = last_turn
                .insert(run.agent.clone(), run.started_at)
                .map(|then| run.started_at.duration_since(then));
            sample.waits.extend(waited.map(|w| w.as_secs_f64()));
            sample
                .turns
                .extend(place(&run.agent).map(|who| (who, run.tokens.max(0) as u64)));
        }
        bounds.push(cycle.cards.skips_max);
        samples.push(sample);
    }
    bounds.dedup();
    let answers: Vec<(usize, usize)> = site
        .store
        .answers(&site.forum)?
        .into_iter()
        .filter_map(|(from, to)| Some((place(&from)?, place(&to)?)))
        .collect();
    let bound = if let [one] = bounds.as_slice() {
        Some(*one)
    } else {
        None
    };
    Ok(judge(&names, &samples, &answers, bound, None))
}

/// The table and the bars.
pub(super) fn print(table: &Table, styles: Styles, out: &mut dyn Write) -> io::Result<()> {
    let left_out = match table.left_out {
        0 => String::new(),
        n => format!(" ({n} of other agents left out)"),
    };
    writeln!(
        out,
        "fairness over {} cycles of {} agents{left_out}",
        table.cycles,
        table.agents.len()
    )?;
    for row in &table.rows {
        let value = match row.value {
            None => "–".to_owned(),
            Some(v) if v.fract() == 0.0 && v.abs() < 1e6 => format!("{v:.0}"),
            Some(v) if v.abs() >= 100.0 => format!("{v:.1}"),
            Some(v) => format!("{v:.3}"),
        };
        let verdict = match row.pass {
            Some(true) => "pass",
            Some(false) => "FAIL",
            None => "",
        };
        let line = row.line.as_deref().unwrap_or("");
        let line = format!("  {:<32} {value:>10}  {line:<10} {verdict}", row.name);
        writeln!(out, "{}", line.trim_end())?;
    }
    let (full, empty) = if styles.unicode {
        ("█", "░")
    } else {
        ("#", ".")
    };
    let most = table
        .agents
        .iter()
        .map(|a| a.turns)
        .max()
        .unwrap_or(0)
        .max(1);
    if !table.agents.is_empty() {
        writeln!(
            out,
            "\n  {:<20} {:<BAR$} {:>6} {:>6} {:>6} {:>9} {:>8}",
            "agent", "turns", "", "first", "last", "silence", "answered"
        )?;
    }
    for agent in &table.agents {
        let filled = (agent.turns as usize * BAR)
            .div_ceil(most as usize)
            .min(BAR);
        let bar = format!("{}{}", full.repeat(filled), empty.repeat(BAR - filled));
        writeln!(
            out,
            "  {:<20} {bar} {:>6} {:>6} {:>6} {:>9} {:>8}",
            agent.agent,
            agent.turns,
            agent.first_words,
            agent.last_words,
            agent.longest_silence,
            agent.answered
        )?;
    }
    Ok(())
}

pub(super) fn audit(args: &Audit, here: &Here) -> Result<Exit, Error> {
    let mut site = Site::open(&args.place, here)?;
    let mut out = io::stdout().lock();
    if let Some(number) = args.cycle {
        let forum = site.forum.clone();
        let checked = site.store.audit_cycle(&forum, number)?;
        if args.json {
            let text = serde_json::to_string(&checked).unwrap_or_default();
            writeln!(out, "{text}")?;
        } else {
            print_cycle(&checked, &mut out)?;
        }
        return Ok(verdict(checked.faults.is_empty()));
    }
    let mut shown = VecDeque::new();
    let all = site.store.audit(&site.forum, &mut |checked| {
        if shown.len() == LISTED {
            shown.pop_front();
        }
        shown.push_back(checked.clone());
    })?;
    if args.json {
        for checked in &shown {
            let text = serde_json::to_string(&checked.cycle).unwrap_or_default();
            writeln!(out, "{text}")?;
        }
        writeln!(out, "{}", serde_json::json!({"audit": all}))?;
    } else {
        for checked in &shown {
            writeln!(out, "{}", cycle_line(&checked.cycle))?;
        }
        print_audit(&all, &mut out)?;
    }
    Ok(verdict(all.faults.is_empty()))
}

fn verdict(passes: bool) -> Exit {
    if passes { Exit::Done } else { Exit::Error }
}

/// One line of the list.
fn cycle_line(cycle: &CycleRecord) -> String {
    let state = match (cycle.void(), cycle.ended_at) {
        (Some(_), _) => "void",
        (None, Some(_)) => "complete",
        (None, None) => "open",
    };
    let origin = match (cycle.void(), cycle.foreseeable(), &cycle.link) {
        (Some(why), _, _) => format!("void: {why}"),
        (None, Some(why), _) => format!("foreseeable: {why} (seed {})", cycle.cards.seed),
        (None, None, Some(link)) => {
            let commitment = link.commitment.as_deref().unwrap_or_default();
            format!("commitment {}", short(commitment))
        }
        (None, None, None) => String::new(),
    };
    format!(
        "cycle {:<5} {} {state:<9} {} turns by {}, {origin}",
        cycle.number,
        cycle.started_at.strftime("%Y-%m-%d %H:%M:%S"),
        cycle.plan.turns.len(),
        cycle.cards.scheduler,
    )
}

fn print_audit(all: &Audited, out: &mut dyn Write) -> Result<(), Error> {
    let mut kinds = Vec::new();
    for (count, kind) in [
        (all.committed, "by commit and reveal"),
        (all.seeded, "foreseeable: --seed"),
        (all.old, "foreseeable: old record"),
        (all.void, "void"),
    ] {
        if count > 0 {
            kinds.push(format!("{count} {kind}"));
        }
    }
    let kinds = match kinds.as_slice() {
        [] => String::new(),
        kinds => format!(" ({})", kinds.join(", ")),
    };
    let cycles = if all.cycles == 1 { "cycle" } else { "cycles" };
    writeln!(out, "{} {cycles} checked{kinds}", all.cycles)?;
    let anchor = match all.anchor {
        Some(Anchor::Found) => "the newest seal is the one noted outside of the database",
        Some(Anchor::Differs) => "",
        Some(Anchor::None) | None => "no seal is noted on this machine to compare the record with",
    };
    if !anchor.is_empty() {
        writeln!(out, "{anchor}")?;
    }
    if let Some(next) = &all.next {
        writeln!(out, "commitment to the next cycle: {next}")?;
    }
    match all.faults.as_slice() {
        [] => writeln!(out, "drawn again from the record: identical")?,
        faults => {
            for (cycle, fault) in faults.iter().take(LISTED) {
                writeln!(out, "FAULT: cycle {cycle}: {fault}")?;
            }
            if let Some(more) = faults.len().checked_sub(LISTED).filter(|more| *more > 0) {
                writeln!(out, "and {more} more faults")?;
            }
        }
    }
    Ok(())
}

/// One cycle with what everybody did in it.
fn print_cycle(checked: &Checked, out: &mut dyn Write) -> Result<(), Error> {
    let Checked {
        cycle,
        runs,
        faults,
    } = checked;
    writeln!(
        out,
        "cycle {} of `{}`: {} by {}, index {}",
        cycle.number,
        cycle.forum,
        cycle.plan.order.join(", "),
        cycle.cards.scheduler,
        cycle.cards.index
    )?;
    if let Some(why) = cycle.foreseeable() {
        writeln!(out, "foreseeable: {why}, seed {}", cycle.cards.seed)?;
    }
    if let Some(why) = cycle.void() {
        writeln!(out, "void: {why}")?;
    }
    if let Some(link) = &cycle.link {
        for (name, value) in [
            ("commitment", link.commitment.as_ref()),
            ("secret", link.secret.as_ref()),
            ("next commitment", Some(&link.next)),
        ] {
            if let Some(value) = value {
                writeln!(out, "{name}: {value}")?;
            }
        }
    }
    for candidate in &cycle.cards.candidates {
        writeln!(
            out,
            "  {:<20} {}",
            candidate.name,
            what_of(cycle, runs, &candidate.name)
        )?;
    }
    let hidden = cycle.revealed().is_none();
    match faults.as_slice() {
        [] if hidden && cycle.void().is_none() => {
            writeln!(out, "its secret is revealed when it has ended")?;
        }
        [] if hidden => writeln!(out, "its order cannot be drawn again")?,
        [] => writeln!(out, "drawn again from the record: identical")?,
        faults => faults
            .iter()
            .try_for_each(|fault| writeln!(out, "FAULT: {fault}"))?,
    }
    Ok(())
}

/// What a cycle was for one agent: its place, its delay and what it did.
fn what_of(cycle: &CycleRecord, runs: &[Run], name: &str) -> String {
    let sat_out = cycle.plan.sitting_out.iter().find(|s| s.agent == name);
    let what = match sat_out {
        Some(s) => format!("sat out (chance {:.0} %)", s.chance * 100.0),
        None => {
            let turn = cycle.plan.turns.iter().position(|t| t.agent == name);
            let delay = turn
                .and_then(|at| cycle.plan.turns.get(at))
                .map_or(0, |t| t.delay_ms);
            format!(
                "turn {} after {:.1} s",
                turn.map_or(0, |t| t + 1),
                delay as f64 / 1000.0
            )
        }
    };
    let Some(run) = runs.iter().find(|r| r.agent == name) else {
        return what;
    };
    let deeds: Vec<String> = run
        .deeds
        .iter()
        .map(|d| {
            let post = d.post_id.map(|p| format!(" → post {p}"));
            format!("{}{}", d.tool, post.unwrap_or_default())
        })
        .collect();
    let claim = match (&run.claim, run.claim_agrees) {
        (Some(claim), Some(false)) => format!("; said {claim}"),
        _ => String::new(),
    };
    let reason = run.reason.as_ref().map(|r| format!(" ({r})"));
    format!(
        "{what}: {} {}{}{claim}",
        run.outcome.word(),
        deeds.join(", "),
        reason.unwrap_or_default()
    )
}

/// The first digits of a hash.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
