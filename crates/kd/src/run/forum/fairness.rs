//! `kd forum fairness` and `kd forum audit`: evaluate the record and repeat its draws.

use super::super::here::Here;
use super::open;
use crate::args::forum::{Audit, Fairness};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::style::Styles;
use kd_app::forum::{Anchor, Audited, Checked, CycleRecord, ForumError, Site};
use kd_app::words::count;
use kd_core::clean::clean_line;
use kd_forum::fairness::{Look, Row, Table};
use kd_forum::words::Run;
use std::collections::VecDeque;
use std::io::{self, Write};

/// Maximum cycles and faults listed for people.
const LISTED: usize = 50;
/// Characters of a full bar.
const BAR: usize = 24;

pub(super) fn table(args: &Fairness, here: &Here) -> Result<Exit, Error> {
    let mut site = open(&args.place, here)?;
    let look = if args.end { Look::Once } else { Look::Running };
    let table = site.store.fairness(&site.forum, args.last, look)?;
    let mut out = crate::out::lines(args.json);
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&table).unwrap_or_default())?;
    } else {
        print(&table, here.out_styles(), &mut out)?;
    }
    Ok(verdict(table.passes()))
}

/// Evaluates the newest cycles of a forum, for a view that may be opened at any time.
pub(super) fn judged(site: &mut Site, last: i64) -> Result<Table, ForumError> {
    site.store.fairness(&site.forum, Some(last), Look::Running)
}

/// Prints the table and the bars.
pub(super) fn print(table: &Table, styles: Styles, out: &mut dyn Write) -> io::Result<()> {
    let (cycles, agents) = (table.cycles, table.agents.len());
    let look = match table.look {
        Look::Once => "one look, at the end",
        Look::Running => "valid at any number of looks",
    };
    writeln!(
        out,
        "fairness over {} of {} ({look})",
        count(cycles as u64, "cycle"),
        count(agents as u64, "agent")
    )?;
    for (n, what) in [
        (table.foreseeable, "predictable (--seed or old record)"),
        (table.void, "void: only the order counts"),
        (
            table.weighted,
            "with unequal weights: places and neighbors are not judged",
        ),
    ] {
        if n > 0 {
            writeln!(out, "  {n} {what}")?;
        }
    }
    writeln!(
        out,
        "\n  {:<28} {:>8} {:>8} {:>7} {:>10}",
        "", "has", "due", "p", "fails if <"
    )?;
    for row in &table.rows {
        print_row(row, out)?;
    }
    let failed: Vec<&str> = table
        .rows
        .iter()
        .filter(|row| row.pass == Some(false))
        .map(|row| row.name)
        .collect();
    match failed.as_slice() {
        [] => writeln!(out, "verdict: no row fails")?,
        failed => writeln!(out, "verdict: FAIL ({})", failed.join(", "))?,
    }
    print_agents(table, styles, out)
}

fn figure(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        // No minus sign before zero.
        Some(v) if v.fract() == 0.0 && v.abs() < 1e6 => format!("{:.0}", v + 0.0),
        Some(v) if v.abs() >= 100.0 => format!("{v:.1}"),
        Some(v) if v != 0.0 && v.abs() < 0.001 => format!("{v:.0e}"),
        Some(v) => format!("{v:.3}"),
    }
}

fn print_row(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let some = |value: Option<f64>| value.map_or_else(String::new, |v| figure(Some(v)));
    let verdict = match row.pass {
        Some(true) => "pass",
        Some(false) => "FAIL",
        None => "",
    };
    let agent = row.agent.as_deref().unwrap_or_default();
    let visible = row
        .visible
        .map(|v| format!(" (an excess of {:.1} points would be seen)", 100.0 * v));
    let line = format!(
        "  {:<28} {:>8} {:>8} {:>7} {:>10}  {verdict:<4}  {agent}{}",
        row.name,
        figure(row.value),
        some(row.entitled),
        some(row.p),
        some(row.line),
        visible.unwrap_or_default()
    );
    writeln!(out, "{}", line.trim_end())?;
    Ok(())
}

/// Prints each agent's turns beside its fair share.
fn print_agents(table: &Table, styles: Styles, out: &mut dyn Write) -> io::Result<()> {
    if table.agents.is_empty() {
        return Ok(());
    }
    let (full, empty) = if styles.unicode {
        ("█", "░")
    } else {
        ("#", ".")
    };
    let most = table.agents.iter().map(|a| a.turns).max().unwrap_or(0);
    writeln!(
        out,
        "\n  {:<20} {:<BAR$} {:>6} {:>7} {:>6} {:>6} {:>6} {:>6} {:>7} {:>7} {:>8}",
        "agent", "turns", "", "due", "place", "due", "first", "last", "posts", "due", "answered"
    )?;
    for agent in &table.agents {
        let filled = (agent.turns as usize * BAR).div_ceil(most.max(1) as usize);
        let filled = filled.min(BAR);
        let bar = format!("{}{}", full.repeat(filled), empty.repeat(BAR - filled));
        writeln!(
            out,
            "  {:<20} {bar} {:>6} {:>7.1} {:>6.2} {:>6.2} {:>6} {:>6} {:>5.1} % {:>5.1} % {:>8}",
            agent.agent,
            agent.turns,
            agent.turns_entitled,
            agent.place,
            agent.place_entitled,
            agent.first_words,
            agent.last_words,
            100.0 * agent.posts_share,
            100.0 * agent.use_entitled,
            agent.answered
        )?;
    }
    Ok(())
}

pub(super) fn audit(args: &Audit, here: &Here) -> Result<Exit, Error> {
    let mut site = open(&args.place, here)?;
    let mut out = crate::out::lines(args.json);
    if let Some(reason) = &args.fork {
        let (forum, settings) = (site.forum.clone(), site.settings()?);
        let mut leader = site.store.lead(&forum)?;
        site.store
            .fork_record(&mut leader, &settings, reason, jiff::Timestamp::now())?;
    }
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
    let mut written = Ok(());
    let all = site.store.audit(&site.forum, &mut |checked| {
        if args.json {
            // For programs, all of them.
            let text = serde_json::to_string(&checked.cycle).unwrap_or_default();
            if written.is_ok() {
                written = writeln!(out, "{text}");
            }
            return;
        }
        if shown.len() == LISTED {
            shown.pop_front();
        }
        shown.push_back(cycle_line(&checked.cycle));
    })?;
    written?;
    if args.json {
        writeln!(out, "{}", serde_json::json!({"audit": all}))?;
        return Ok(verdict(all.faults.is_empty()));
    }
    for line in &shown {
        writeln!(out, "{line}")?;
    }
    print_audit(&all, &mut out)?;
    out.flush()?;
    if shown.len() < all.cycles {
        writeln!(
            crate::out::stderr(),
            "the newest {} of {} cycles are listed, and all are checked; `--json` lists all",
            shown.len(),
            all.cycles
        )?;
    }
    Ok(verdict(all.faults.is_empty()))
}

fn verdict(passes: bool) -> Exit {
    if passes { Exit::Done } else { Exit::Error }
}

/// Whether the cycle is running and its order is secret until its end.
fn is_hidden(cycle: &CycleRecord) -> bool {
    cycle.revealed().is_none() && cycle.plan.order.is_empty()
}

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
        "cycle {:<5} {} {state:<9} {} by {}, {origin}",
        cycle.number,
        cycle.started_at.strftime("%Y-%m-%d %H:%M:%S"),
        match is_hidden(cycle) {
            true => "turns".to_owned(),
            false => count(cycle.plan.turns.len() as u64, "turn"),
        },
        cycle.cards.scheduler,
    )
}

fn print_audit(all: &Audited, out: &mut dyn Write) -> Result<(), Error> {
    let mut kinds = Vec::new();
    for (n, kind) in [
        (all.committed, "by commit and reveal"),
        (all.seeded, "foreseeable: --seed"),
        (all.old, "foreseeable: old record"),
        (all.void, "void"),
    ] {
        if n > 0 {
            kinds.push(format!("{n} {kind}"));
        }
    }
    let kinds = match kinds.as_slice() {
        [] => String::new(),
        kinds => format!(" ({})", kinds.join(", ")),
    };
    let cycles = count(all.cycles as u64, "cycle");
    writeln!(out, "{cycles} checked{kinds}")?;
    let anchor = match all.anchor {
        Some(Anchor::Found) => "the newest seal matches the one noted outside of the database",
        Some(Anchor::Differs) => "",
        Some(Anchor::None) | None => "no seal is noted on this machine to compare the record with",
    };
    if !anchor.is_empty() {
        writeln!(out, "{anchor}")?;
    }
    if all.imported > 0 {
        let cycles = if all.imported == 1 { "cycle" } else { "cycles" };
        writeln!(out, "{} imported {cycles} not checked", all.imported)?;
    }
    for day in &all.erased {
        let posts = count(day.posts as u64, "post");
        let texts = count(day.texts as u64, "other text");
        writeln!(out, "erased by {} on {}: {posts}, {texts}", day.by, day.day)?;
    }
    let rest = match all.anchor {
        Some(Anchor::Found) => "the rest is as noted when it was erased",
        _ => "its turns are not proved, because nothing is noted on this machine",
    };
    for cycle in &all.shortened {
        writeln!(
            out,
            "cycle {cycle}: a text that its seal covers was erased; {rest}"
        )?;
    }
    for (cycle, why) in &all.forks {
        writeln!(out, "FORK: cycle {cycle}: {}", clean_line(why, 600))?;
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

/// Prints one cycle with every agent's turn.
fn print_cycle(checked: &Checked, out: &mut dyn Write) -> Result<(), Error> {
    let Checked {
        cycle,
        runs,
        faults,
        is_shortened,
    } = checked;
    writeln!(
        out,
        "cycle {} of `{}`: {} by {}, index {}",
        cycle.number,
        cycle.forum,
        match is_hidden(cycle) {
            true => "order not revealed".to_owned(),
            false => cycle.plan.order.join(", "),
        },
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
    if *is_shortened {
        writeln!(
            out,
            "a text that its seal covers was erased, so the seal cannot be computed again"
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

/// Describes a cycle for one agent: its position, its delay and what it did.
fn what_of(cycle: &CycleRecord, runs: &[Run], name: &str) -> String {
    let sat_out = cycle.plan.sitting_out.iter().find(|s| s.agent == name);
    let what = match sat_out {
        Some(s) => format!("sat out (chance {:.0} %)", s.chance * 100.0),
        None if is_hidden(cycle) => match runs.iter().position(|run| run.agent == name) {
            Some(at) => format!("turn {}", at + 1),
            None if cycle.ended_at.is_none() => return "no turn yet".to_owned(),
            None => return "no turn".to_owned(),
        },
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

/// Returns the first digits of a hash.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a table of a forum in which every row is filled.
    fn filled() -> Table {
        use kd_forum::cards::{Candidate, Cards};
        use kd_forum::cycle::draw;
        use kd_forum::fairness::{Judge, Sample};
        let settings = kd_core::config::forum::Settings::default();
        let mut judge = Judge::default();
        for seed in 0..50 {
            let candidates = ["ada", "bo", "cy"].map(Candidate::named).to_vec();
            let cards = Cards::new(&settings, seed, 0, candidates);
            judge.add(&Sample::of(&cards, &draw(&cards)));
        }
        judge.table(Look::Running)
    }

    #[test]
    fn a_verdict_is_seen_on_a_screen_of_eighty_columns() {
        for row in filled().rows {
            for (value, pass) in [(999_999.9, true), (-1234.56, false), (1e-300, false)] {
                let row = Row {
                    agent: None,
                    value: Some(value),
                    entitled: Some(value.abs().min(9_999.9)),
                    p: Some(1e-300),
                    line: Some(1e-300),
                    pass: Some(pass),
                    visible: None,
                    ..row.clone()
                };
                let mut out = Vec::new();
                print_row(&row, &mut out).unwrap();
                let line = String::from_utf8(out).unwrap();
                let line = line.trim_end();
                let word = if pass { "pass" } else { "FAIL" };
                assert!(line.ends_with(word), "{line}");
                // The screen needs a column for its mark.
                assert!(line.chars().count() < 80, "{line}");
            }
        }
    }

    #[test]
    fn zero_has_no_sign() {
        assert_eq!(figure(Some(-0.0)), "0");
        assert_eq!(figure(Some(0.0)), "0");
        assert_eq!(figure(Some(-2.0)), "-2");
    }
}
