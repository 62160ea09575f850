//! `kd doctor`: calls all members at once and shows the results as a table.

use super::here::Here;
use super::trust;
use crate::args::doctor::Doctor;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::{json, words};
use crate::render::clean;
use kd_app::doctor::{Examined, HeldBy, RemoteReport, Report, ServerReport};
use kd_core::SeatName;
use kd_core::ledger::Billing;
use kd_forum::account::{Role, Standing};
use serde_json::{Value, json as object};
use std::io::Write;

pub(super) fn run(args: &Doctor, here: &Here) -> Result<Exit, Error> {
    let found = here.find_layout()?;
    let loaded = trust::settings(here, found.as_ref())?;
    let Examined {
        members: reports,
        idle,
        remotes,
        servers,
    } = kd_app::doctor::run(&loaded, &args.members, args.timeout, here)?;
    let mut out = crate::out::lines(args.json);
    if args.json {
        let mut all: Vec<Value> = Vec::new();
        for report in &reports {
            all.extend(serde_json::to_value(report).ok());
        }
        all.extend(remotes.iter().map(remote_json));
        all.extend(servers.iter().map(server_json));
        writeln!(out, "{}", json::text(&all, true)?)?;
    } else {
        write!(out, "{}", table(&reports, here))?;
        if !idle.is_empty() {
            let names = idle.join(" ");
            writeln!(
                out,
                "found, but no member: {}; `kd doctor {names}` tests it",
                idle.join(", ")
            )?;
        }
        remotes
            .iter()
            .try_for_each(|remote| writeln!(out, "{}", remote_line(remote)))?;
        for line in servers.iter().flat_map(server_lines) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()?;
    let well = reports.iter().filter(|report| is_well(report)).count()
        + remotes
            .iter()
            .filter(|remote| remote.standing.is_ok())
            .count()
        + servers
            .iter()
            .filter(|server| server.faults.is_empty())
            .count();
    Ok(match well {
        n if n == reports.len() + remotes.len() + servers.len() => Exit::Done,
        0 => Exit::Failed,
        _ => Exit::Partial,
    })
}

fn remote_line(remote: &RemoteReport) -> String {
    match &remote.standing {
        Ok(Standing { name, role }) => {
            let name = name.as_ref().map_or("a member", SeatName::as_str);
            let role = role.map_or("role unknown", Role::word);
            format!("forum {}: answers; you are {name} ({role})", remote.name)
        }
        Err(why) => format!("forum {}: {}", remote.name, clean::line(&why.to_string())),
    }
}

fn remote_json(remote: &RemoteReport) -> Value {
    let found = remote.standing.as_ref().ok();
    let error = remote.standing.as_ref().err().map(ToString::to_string);
    let name = found.and_then(|found| found.name.as_ref());
    let role = found.and_then(|found| found.role);
    object!({
        "forum": remote.name, "answered": found.is_some(), "as": name, "role": role.map(Role::word),
        "error": error,
    })
}

fn server_lines(server: &ServerReport) -> Vec<String> {
    let agents = match server.agents.as_slice() {
        [] => "no agent".to_owned(),
        agents => clean::line(&agents.join(", ")),
    };
    let name = &server.name;
    let mut lines = Vec::new();
    if !server.tools.is_empty() {
        let tools = clean::line(&server.tools.join(", "));
        lines.push(format!("server {name}: answers; {agents} may call {tools}"));
    }
    let faults = server.faults.iter();
    lines.extend(faults.map(|why| format!("server {name}: {}", clean::line(why))));
    lines
}

fn server_json(server: &ServerReport) -> Value {
    object!({
        "server": server.name, "answered": !server.tools.is_empty(), "agents": server.agents, "tools": server.tools,
        "errors": server.faults,
    })
}

/// Returns whether a member answers and, as far as observed, cannot write.
fn is_well(report: &Report) -> bool {
    report.answered && report.read_only != Some(false)
}

/// Formats one line per member, with advice below where something is wrong; then what keeps agents from writing.
fn table(reports: &[Report], here: &Here) -> String {
    let styles = here.out_styles();
    let head = [
        "member",
        "found",
        "version",
        "signed in",
        "streams",
        "read-only",
        "first word",
    ];
    let head = head.map(str::to_owned);
    let rows = std::iter::once(head).chain(reports.iter().map(row));
    let mut blocks = words::blocks(&rows.collect::<Vec<_>>(), 7).into_iter();
    let head = blocks.next().unwrap_or_default();
    let mut text: String = head.iter().map(|line| styles.dim(line) + "\n").collect();
    for (at, (report, block)) in reports.iter().zip(blocks).enumerate() {
        for line in block {
            text += &match is_well(report) {
                true => line,
                false => styles.bad(&line),
            };
            text.push('\n');
        }
        // The same cause is reported once.
        let alike = |before: &&Report| {
            report.problem.is_some()
                && (&before.problem, &before.advice) == (&report.problem, &report.advice)
        };
        if let Some(before) = reports[..at].iter().find(alike) {
            let member = clean::line(&before.member);
            text += &format!("  {} as for {member}\n", styles.glyph("→", ">"));
            continue;
        }
        let notes = [&report.problem, &report.advice];
        for note in notes.into_iter().flatten() {
            let mut label = styles.glyph("→", ">");
            for line in clean::text(note).lines() {
                text += &format!("  {label} {line}\n");
                label = " ";
            }
        }
    }
    let read_only = ways("read-only", reports, |report| {
        report.read_only_by.as_deref()
    });
    let paid = |report: &Report| report.billing != Billing::Free;
    let billed = ways("billed to", reports, |report| {
        report.billed_to.as_deref().filter(|_| paid(report))
    });
    text + &billed + &read_only
}

/// Describes what keeps agents from writing, or who pays: one line if it is the same for all, otherwise one line per
/// variant.
fn ways<'r>(
    title: &str,
    reports: &'r [Report],
    way: impl Fn(&'r Report) -> Option<&'r str>,
) -> String {
    let mut ways: Vec<(&str, Vec<&str>)> = Vec::new();
    for report in reports {
        let Some(by) = way(report) else {
            continue;
        };
        match ways.iter_mut().find(|(way, _)| *way == by) {
            Some((_, members)) => members.push(&report.member),
            None => ways.push((by, vec![&report.member])),
        }
    }
    let only = ways.len() == 1;
    let line = |(by, members): &(&str, Vec<&str>)| match only {
        true => format!("{title}: {}\n", clean::line(by)),
        false => format!(
            "{title}: {}: {}\n",
            clean::line(&members.join(", ")),
            clean::line(by)
        ),
    };
    ways.iter().map(line).collect()
}

fn row(report: &Report) -> [String; 7] {
    let word = |known: Option<bool>| match known {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    };
    [
        clean::line(&report.member),
        word(Some(report.found)).to_owned(),
        report.version.as_deref().map_or("-".into(), clean::line),
        word(report.authenticated).to_owned(),
        match report.streams {
            Some(false) => "whole",
            known => word(known),
        }
        .to_owned(),
        match (report.read_only, report.write_tried) {
            (None, Some(false)) => "not tried",
            (Some(true), _) if report.held_by == Some(HeldBy::Flags) => "flags only",
            (known, _) => word(known),
        }
        .to_owned(),
        report
            .first_token_secs
            .map_or("-".into(), |secs| format!("{secs:.2} s")),
    ]
}
