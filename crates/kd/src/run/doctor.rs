//! `kd doctor`: calls all members at once and shows each result when it is known, as the row of a table.

use super::here::Here;
use super::trust;
use crate::args::doctor::Doctor;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::face::words::Growing;
use crate::render::clean;
use crate::render::style::Styles;
use crate::render::wrap::width;
use kd_app::doctor::{Examined, HeldBy, RemoteReport, Report, ServerReport, Told};
use kd_core::SeatName;
use kd_core::ledger::Billing;
use kd_forum::account::{Role, Standing};
use serde_json::{Value, json as object};
use std::io::{self, Write};

pub(super) fn run(args: &Doctor, here: &Here) -> Result<Exit, Error> {
    let found = here.find_layout()?;
    let loaded = trust::settings(here, found.as_ref())?;
    let mut out = crate::out::lines(args.json);
    let mut page = Page::new(here);
    // Whoever reads the output may close it; the calls go on.
    let mut written: io::Result<()> = Ok(());
    let examined = kd_app::doctor::run(&loaded, &args.members, args.timeout, here, &mut |told| {
        if !args.json && written.is_ok() {
            let text = page.told(told);
            written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        }
    })?;
    written?;
    let Examined {
        members: reports,
        remotes,
        servers,
    } = &examined;
    if args.json {
        let mut all: Vec<Value> = Vec::new();
        for report in reports {
            all.extend(serde_json::to_value(report).ok());
        }
        all.extend(remotes.iter().map(remote_json));
        all.extend(servers.iter().map(server_json));
        writeln!(out, "{}", json::text(&all, true)?)?;
    } else {
        write!(out, "{}", totals(reports))?;
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

/// The columns, and the width of their longest cell, if it is known before the calls.
const COLUMNS: [(&str, usize); 7] = [
    ("member", 0),
    ("found", 3),
    ("signed in", 3),
    ("streams", 5),
    ("read-only", 10),
    ("first word", 7),
    ("version", 8),
];

/// Formats the results one by one.
struct Page {
    styles: Styles,
    table: Growing<7>,
    columns: Option<usize>,
    /// The members whose problem was told, and the problem with its advice.
    told: Vec<(String, Option<String>, Option<String>)>,
}

impl Page {
    fn new(here: &Here) -> Self {
        let columns = kd_tui::terminal::size().map(|(columns, _)| columns.into());
        let (heads, widths) = (COLUMNS.map(|(head, _)| head), COLUMNS.map(|(_, most)| most));
        Self {
            styles: here.out_styles(),
            table: Growing::new(heads, widths, columns),
            columns,
            told: Vec::new(),
        }
    }

    fn told(&mut self, told: Told<'_>) -> String {
        match told {
            Told::Called(names) => {
                let names = names.iter().map(|name| width(&clean::line(name)));
                let mut widths = COLUMNS.map(|(_, most)| most);
                widths[0] = names.max().unwrap_or(0);
                self.table = Growing::new(COLUMNS.map(|(head, _)| head), widths, self.columns);
                let head = self.table.heading();
                head.map_or(String::new(), |head| self.styles.dim(&head) + "\n")
            }
            Told::Member(report) => self.member(report),
            Told::Idle(idle) => format!(
                "found, but no member: {}; `kd doctor {}` tests it\n",
                idle.join(", "),
                idle.join(" ")
            ),
            Told::Remote(remote) => remote_line(remote) + "\n",
            Told::Server(server) => {
                let lines = server_lines(server).into_iter();
                lines.map(|line| line + "\n").collect()
            }
        }
    }

    /// Formats a member: its row, and advice below where something is wrong.
    fn member(&mut self, report: &Report) -> String {
        let mut text = String::new();
        for line in self.table.row(&row(report)) {
            text += &match is_well(report) {
                true => line,
                false => self.styles.bad(&line),
            };
            text.push('\n');
        }
        // The same cause is reported once.
        let is_alike = |(_, problem, advice): &&(String, Option<String>, Option<String>)| {
            report.problem.is_some() && (problem, advice) == (&report.problem, &report.advice)
        };
        if let Some((member, ..)) = self.told.iter().find(is_alike) {
            text += &format!("  {} as for {member}\n", self.styles.glyph("→", ">"));
            return text;
        }
        let member = clean::line(&report.member);
        self.told
            .push((member, report.problem.clone(), report.advice.clone()));
        let notes = [&report.problem, &report.advice];
        for note in notes.into_iter().flatten() {
            let mut label = self.styles.glyph("→", ">");
            for line in clean::text(note).lines() {
                text += &format!("  {label} {line}\n");
                label = " ";
            }
        }
        text
    }
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

/// Formats what holds for all members together: who pays, and what keeps agents from writing.
fn totals(reports: &[Report]) -> String {
    let read_only = ways("read-only", reports, |report| {
        report.read_only_by.as_deref()
    });
    let paid = |report: &Report| report.billing != Billing::Free;
    let billed = ways("billed to", reports, |report| {
        report.billed_to.as_deref().filter(|_| paid(report))
    });
    billed + &read_only + &readers(reports)
}

/// Names the members that read files with tools, and where the files go.
fn readers(reports: &[Report]) -> String {
    let readers = reports.iter().filter(|report| report.reads_files);
    let told = |report: &Report| {
        let (member, service) = (clean::line(&report.member), clean::line(&report.backend));
        format!("may read files here: {member}; what it reads is sent to {service}\n")
    };
    readers.map(told).collect()
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
        report.version.as_deref().map_or("-".into(), clean::line),
    ]
}
