//! `kd forum fairness` and `kd forum audit`: the record, judged and drawn again.

use super::super::here::Here;
use super::Site;
use crate::args::forum::{Audit, Fairness};
use crate::error::Error;
use crate::exit::Exit;
use kd_core::forum::cycle::draw;
use kd_core::forum::fairness::{Sample, Table, table as judge};
use kd_store::forum::CycleRecord;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Characters of a full bar.
const BAR: usize = 24;

pub(super) fn table(args: &Fairness, here: &Here) -> Result<Exit, Error> {
    let mut site = Site::open(&args.place, here)?;
    let cycles = site.store.cycles(&site.forum, args.last)?;
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
    let table = judge(&names, &samples, &answers, bound, None);
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&table).unwrap_or_default())?;
    } else {
        print(&table, here, &mut out)?;
    }
    Ok(Exit::Done)
}

/// The table and the bars.
pub(super) fn print(table: &Table, here: &Here, out: &mut dyn Write) -> Result<(), Error> {
    let styles = here.out_styles();
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
    let Some(number) = args.cycle else {
        for cycle in site.store.cycles(&site.forum, 50)? {
            if args.json {
                writeln!(out, "{}", serde_json::to_string(&cycle).unwrap_or_default())?;
                continue;
            }
            let state = if cycle.ended_at.is_some() {
                "complete"
            } else {
                "open"
            };
            writeln!(
                out,
                "cycle {:<5} {} {:<9} {} turns by {}, seed {}",
                cycle.number,
                cycle.started_at.strftime("%Y-%m-%d %H:%M:%S"),
                state,
                cycle.plan.turns.len(),
                cycle.cards.scheduler,
                cycle.cards.seed
            )?;
        }
        return Ok(Exit::Done);
    };
    let cycle = site.store.cycle(&site.forum, number)?;
    let runs = site.store.runs_of(cycle.id)?;
    let faults = faults(
        &cycle,
        &runs.iter().map(|r| r.agent.as_str()).collect::<Vec<_>>(),
    );
    if args.json {
        let object = serde_json::json!({"cycle": cycle, "runs": runs, "faults": faults});
        writeln!(out, "{object}")?;
    } else {
        writeln!(
            out,
            "cycle {number} of `{}`: {} by {} with seed {}, index {}",
            site.forum,
            cycle.plan.order.join(", "),
            cycle.cards.scheduler,
            cycle.cards.seed,
            cycle.cards.index
        )?;
        for candidate in &cycle.cards.candidates {
            let out_of_it = cycle
                .plan
                .sitting_out
                .iter()
                .find(|s| s.agent == candidate.name);
            let what = match out_of_it {
                Some(s) => format!("sat out (chance {:.0} %)", s.chance * 100.0),
                None => {
                    let turn = cycle
                        .plan
                        .turns
                        .iter()
                        .position(|t| t.agent == candidate.name);
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
            let did =
                runs.iter()
                    .find(|r| r.agent == candidate.name)
                    .map_or_else(String::new, |run| {
                        let deeds: Vec<String> = run
                            .deeds
                            .iter()
                            .map(|d| {
                                format!(
                                    "{}{}",
                                    d.tool,
                                    d.post_id
                                        .map(|p| format!(" → post {p}"))
                                        .unwrap_or_default()
                                )
                            })
                            .collect();
                        let claim = match (&run.claim, run.claim_agrees) {
                            (Some(claim), Some(false)) => format!("; said {claim}"),
                            _ => String::new(),
                        };
                        let reason = run
                            .reason
                            .as_ref()
                            .map(|r| format!(" ({r})"))
                            .unwrap_or_default();
                        format!(
                            ": {} {}{reason}{claim}",
                            run.outcome.word(),
                            deeds.join(", ")
                        )
                    });
            writeln!(out, "  {:<20} {what}{did}", candidate.name)?;
        }
        match faults.as_slice() {
            [] => writeln!(out, "drawn again from the record: identical")?,
            faults => faults
                .iter()
                .try_for_each(|fault| writeln!(out, "FAULT: {fault}"))?,
        }
    }
    Ok(if faults.is_empty() {
        Exit::Done
    } else {
        Exit::Error
    })
}

/// Where what was recorded is not what the seed gives, or what ran is not what was drawn.
fn faults(cycle: &CycleRecord, ran: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    if draw(&cycle.cards) != cycle.plan {
        faults.push("the recorded plan is not what its seed and candidates give".to_owned());
    }
    let planned: Vec<&str> = cycle.plan.turns.iter().map(|t| t.agent.as_str()).collect();
    if !planned.starts_with(ran) {
        faults.push(format!(
            "planned were {}, and {} ran",
            planned.join(", "),
            ran.join(", ")
        ));
    }
    if cycle.ended_at.is_some() && ran.len() < planned.len() {
        faults.push("the cycle ended before everybody had a turn".to_owned());
    }
    faults
}
