//! `kd doctor`: calls all members at once and shows the results as a table.

use super::here::Here;
use super::trust;
use crate::args::doctor::Doctor;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use futures::future::join_all;
use kd_app::Runtime;
use kd_backends::Backends;
use kd_backends::adapters::agent_cli::HeldBy;
use kd_backends::checkup::{Report, examine};
use kd_backends::discovery::{What, discover};
use kd_backends::remote::RemoteForum;
use kd_backends::servers::{Grant, Servers};
use kd_core::config::{Config, KNOWN_AGENTS};
use kd_core::ledger::Billing;
use kd_core::seating::{self, LOCAL, SeatRequest};
use kd_core::{Member, SeatName};
use kd_forum::account::{Role, Standing};
use std::io::Write;
use std::path::Path;

pub(super) fn run(args: &Doctor, here: &Here) -> Result<Exit, Error> {
    let found = here.find_layout()?;
    let loaded = trust::settings(here, found.as_ref())?;
    kd_app::trust::check(
        &loaded.project,
        kd_app::trust::Named::only(&args.members),
        here,
    )?;
    let config = loaded.config;
    let scratch = kd_app::scratch::folder("kd-doctor-", here)?;
    let runtime = Runtime::new()?;
    let reports = runtime.block_on(async {
        let Called { members, idle } = members(&config, args, here).await?;
        let calls = members.iter().map(|member| {
            let folder = scratch.path().join(member.name.as_str());
            let config = &config;
            async move {
                // A separate folder for each, so that no agent is blamed for another's writes.
                if let Err(error) = std::fs::create_dir(&folder) {
                    return Err(
                        Error::new("io", Exit::Error, "cannot create a scratch folder")
                            .because(error),
                    );
                }
                // Like in the working folder: the scratch folder is ours and empty, but the folders above it are not.
                let options = here.backend_options();
                let backends = Backends::new(config, options).in_folder(folder.clone());
                Ok(examine(&backends, member, &folder, args.timeout).await)
            }
        });
        let reports = join_all(calls).await;
        let reports = reports.into_iter().collect::<Result<Vec<Report>, _>>();
        Ok::<_, Error>((reports?, idle))
    });
    let remotes = match args.members.is_empty() {
        true => runtime.block_on(remotes(&config, here)),
        false => Vec::new(),
    };
    let servers = match args.members.is_empty() {
        true => runtime.block_on(servers(&config, scratch.path(), here)),
        false => Vec::new(),
    };
    // A server that never ends its answer may keep a thread busy.
    drop(runtime);
    let (reports, idle) = reports?;
    let mut out = crate::out::stdout().lock();
    if args.json {
        let mut all: Vec<serde_json::Value> = Vec::new();
        for report in &reports {
            all.extend(serde_json::to_value(report).ok());
        }
        all.extend(remotes.iter().map(Remote::json));
        all.extend(servers.iter().map(FurtherServer::json));
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
            .try_for_each(|remote| writeln!(out, "{}", remote.line()))?;
        for line in servers.iter().flat_map(FurtherServer::lines) {
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

/// A forum on another machine, and whether it answers.
struct Remote {
    name: String,
    /// The name and role there, or why it does not answer.
    standing: Result<Standing, String>,
}

impl Remote {
    fn line(&self) -> String {
        match &self.standing {
            Ok(Standing { name, role }) => {
                let name = name.as_ref().map_or("a member", SeatName::as_str);
                let role = role.map_or("role unknown", Role::word);
                format!("forum {}: answers; you are {name} ({role})", self.name)
            }
            Err(why) => format!("forum {}: {}", self.name, clean::line(why)),
        }
    }

    fn json(&self) -> serde_json::Value {
        let (found, error) = (self.standing.as_ref().ok(), self.standing.as_ref().err());
        let name = found.and_then(|found| found.name.as_ref());
        let role = found.and_then(|found| found.role);
        serde_json::json!({
            "forum": self.name, "answered": found.is_some(), "as": name, "role": role.map(Role::word),
            "error": error,
        })
    }
}

/// Asks each configured remote forum for the user's name and role.
async fn remotes(config: &Config, here: &Here) -> Vec<Remote> {
    let env = here.of_backends(false);
    let calls = config.forum.remotes.iter().map(|(name, config)| {
        let env = &env;
        async move {
            let ask = async {
                let mut forum = RemoteForum::open(name, config, env).await?;
                forum.call("read_rules", &serde_json::json!({})).await
            };
            let standing = ask.await.map_err(|why| why.to_string());
            let standing = standing.map(|answer| Standing::read(&answer));
            let name = name.clone();
            Remote { name, standing }
        }
    });
    join_all(calls).await
}

/// An additional server of forum agents, and whether it answers.
struct FurtherServer {
    name: String,
    agents: Vec<String>,
    tools: Vec<String>,
    faults: Vec<String>,
}

impl FurtherServer {
    fn lines(&self) -> Vec<String> {
        let agents = match self.agents.as_slice() {
            [] => "no agent".to_owned(),
            agents => clean::line(&agents.join(", ")),
        };
        let name = &self.name;
        let mut lines = Vec::new();
        if !self.tools.is_empty() {
            let tools = clean::line(&self.tools.join(", "));
            lines.push(format!("server {name}: answers; {agents} may call {tools}"));
        }
        let faults = self.faults.iter();
        lines.extend(faults.map(|why| format!("server {name}: {}", clean::line(why))));
        lines
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "server": self.name, "answered": !self.tools.is_empty(), "agents": self.agents, "tools": self.tools,
            "errors": self.faults,
        })
    }
}

/// Asks each configured additional server for its tools.
async fn servers(config: &Config, scratch: &Path, here: &Here) -> Vec<FurtherServer> {
    let env = here.of_backends(false);
    let calls = config.forum.servers.iter().map(|(name, config)| {
        let env = &env;
        async move {
            let mut servers = Servers::new(vec![Grant::new(name, config, env)], scratch);
            let tools = servers.tools().await;
            let mut faults: Vec<String> =
                servers.faults().into_iter().map(|(_, why)| why).collect();
            if config.agents.is_empty() {
                faults.push(format!(
                    "no agent may call it: name some in `forum.servers.{name}.agents`"
                ));
            }
            FurtherServer {
                name: name.clone(),
                agents: config.agents.clone(),
                tools: tools.into_iter().map(|tool| tool.name).collect(),
                faults,
            }
        }
    });
    join_all(calls).await
}

/// Returns whether a member answers and, as far as observed, cannot write.
fn is_well(report: &Report) -> bool {
    report.answered && report.read_only != Some(false)
}

/// The members to call, and agent programs that were found but are no members.
struct Called {
    members: Vec<Member>,
    idle: Vec<String>,
}

/// Returns the named members. If none is named, returns those of the council and the configured agents; if nothing is
/// configured, the agent programs on this machine and the built-in model, which is called once, however many members use
/// it.
async fn members(config: &Config, args: &Doctor, here: &Here) -> Result<Called, Error> {
    let seat = |members: Vec<String>| {
        let wishes = SeatRequest {
            members,
            ..SeatRequest::default()
        };
        let seated = seating::seat(config, &wishes)
            .map_err(|e| Error::new("unknown_member", Exit::Usage, e.to_string()))?;
        Ok::<_, Error>(seated.roster.members().to_vec())
    };
    if !args.members.is_empty() {
        return Ok(Called {
            members: seat(args.members.clone())?,
            idle: Vec::new(),
        });
    }
    let mut members = seat(Vec::new())?;
    let built_in = config.agents.is_empty() && members.iter().all(|m| m.backend == LOCAL);
    let others = config.agents.keys().filter(|name| {
        let is_seated = |member: &Member| member.name.as_str() == name.as_str();
        !members.iter().any(is_seated)
    });
    let others: Vec<String> = others.cloned().collect();
    if !others.is_empty() {
        members.extend(seat(others)?);
    }
    let mut programs = Vec::new();
    for found in discover(&here.of_backends(false)).await {
        let known = KNOWN_AGENTS
            .iter()
            .find(|(_, backend)| *backend == found.backend);
        let seated = members.iter().any(|member| member.backend == found.backend);
        if let (What::Program(_), Some((name, _)), false) = (&found.what, known, seated) {
            programs.push((*name).to_owned());
        }
    }
    if built_in && !programs.is_empty() {
        members.splice(0..0, seat(std::mem::take(&mut programs))?);
    }
    let mut local = 0;
    members.retain(|member| {
        local += u32::from(member.backend == LOCAL);
        member.backend != LOCAL || local == 1
    });
    Ok(Called {
        members,
        idle: programs,
    })
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
    let rows: Vec<[String; 7]> = reports.iter().map(row).collect();
    let mut widths = head.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String; 7]| {
        let cells = cells.iter().zip(widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut text = format!("{}\n", styles.dim(&line(&head.map(str::to_owned))));
    for (report, row) in reports.iter().zip(&rows) {
        let shown = line(row);
        text += &match is_well(report) {
            true => format!("{shown}\n"),
            false => format!("{}\n", styles.bad(&shown)),
        };
        let notes = [&report.problem, &report.advice];
        for note in notes.into_iter().flatten() {
            text += &format!("  {} {}\n", styles.glyph("→", ">"), clean::line(note));
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
