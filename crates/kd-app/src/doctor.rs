//! Calls members, remote forums and further servers, and reports whether they answer.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::runtime::Runtime;
use crate::scratch;
use crate::trust::{self, Loaded, Named};
use futures::stream::{FuturesUnordered, StreamExt as _};
use kd_backends::Backends;
pub use kd_backends::adapters::agent_cli::HeldBy;
pub use kd_backends::checkup::Report;
use kd_backends::checkup::examine;
use kd_backends::discovery::{What, discover};
use kd_backends::remote::RemoteForum;
use kd_backends::servers::{Grant, Servers};
use kd_core::config::{Config, KNOWN_AGENTS};
use kd_core::seating::{self, LOCAL, SeatRequest};
use kd_core::{Failure, Member};
use kd_forum::account::Standing;
use std::path::Path;
use std::time::Duration;

/// What [`run`] tells while it calls.
#[derive(Debug)]
pub enum Told<'a> {
    /// The names of the members that are called now.
    Called(&'a [String]),
    /// A member was called. They come in the order in which they are done.
    Member(&'a Report),
    /// All members were called; these agent programs were found but are no members.
    Idle(&'a [String]),
    /// A remote forum was called.
    Remote(&'a RemoteReport),
    /// A further server was called.
    Server(&'a ServerReport),
}

/// What was found.
#[derive(Debug)]
pub struct Examined {
    /// The members that were called, in the order of the settings.
    pub members: Vec<Report>,
    /// The remote forums of the settings; empty if members were named.
    pub remotes: Vec<RemoteReport>,
    /// The further servers of forum agents; empty if members were named.
    pub servers: Vec<ServerReport>,
}

/// A forum on another machine, and whether it answers.
#[derive(Debug)]
pub struct RemoteReport {
    /// Its name in the settings.
    pub name: String,
    /// The name and role there, or why it does not answer.
    pub standing: Result<Standing, Failure>,
}

/// A further server of forum agents, and whether it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// Its name in the settings.
    pub name: String,
    /// The agents that may call it.
    pub agents: Vec<String>,
    /// The tools that they may call.
    pub tools: Vec<String>,
    /// The problems.
    pub faults: Vec<String>,
}

/// Calls all members at once, each with a time limit, and if none is named, the forums and servers of the settings.
///
/// `named` are the members to call. If it is empty, the members of the council and the configured agents are called; if
/// nothing is configured, the agent programs on this machine and the built-in model. `told` gets each result when it is
/// known.
///
/// # Errors
/// A named member is unknown or held back, or a scratch folder cannot be created.
pub fn run(
    loaded: &Loaded,
    named: &[String],
    limit: Duration,
    env: &Env,
    told: &mut dyn FnMut(Told<'_>),
) -> Result<Examined, UserError> {
    trust::check(&loaded.project, Named::only(named), env)?;
    let config = &loaded.config;
    let scratch = scratch::folder("kd-doctor-", env)?;
    let runtime = Runtime::new()?;
    let reports = runtime.block_on(async {
        let Called { members, idle } = members(config, named, env).await?;
        let names = members.iter().map(|member| member.name.to_string());
        told(Told::Called(&names.collect::<Vec<_>>()));
        let calls = members.iter().map(|member| {
            let folder = scratch.path().join(member.name.as_str());
            async move {
                // A separate folder for each, so that no agent is blamed for another's writes.
                std::fs::create_dir(&folder).map_err(|error| {
                    UserError::new(ErrorKind::Io, "cannot create a scratch folder").because(error)
                })?;
                // Like in the working folder: the scratch folder is ours and empty, but the folders above it are not.
                let backends =
                    Backends::new(config, env.backend_options()).in_folder(folder.clone());
                Ok::<_, UserError>(examine(&backends, member, &folder, limit).await)
            }
        });
        // An error is reported at the end.
        let mut each = |report: &Result<Report, UserError>| {
            report.iter().for_each(|report| told(Told::Member(report)));
        };
        let reports = all(calls, &mut each).await;
        let reports: Result<Vec<Report>, UserError> = reports.into_iter().collect();
        let reports = reports?;
        if !idle.is_empty() {
            told(Told::Idle(&idle));
        }
        Ok::<_, UserError>(reports)
    });
    let (remotes, servers) = match named.is_empty() && reports.is_ok() {
        true => (
            runtime.block_on(remotes(config, env, told)),
            runtime.block_on(servers(config, scratch.path(), env, told)),
        ),
        false => (Vec::new(), Vec::new()),
    };
    // A server that never ends its answer may keep a thread busy.
    drop(runtime);
    Ok(Examined {
        members: reports?,
        remotes,
        servers,
    })
}

/// Waits for all calls at once, and tells each result when it is known. Returns them in the order of the calls.
async fn all<F: Future>(
    calls: impl Iterator<Item = F>,
    told: &mut dyn FnMut(&F::Output),
) -> Vec<F::Output> {
    let calls = calls
        .enumerate()
        .map(|(at, call)| async move { (at, call.await) });
    let mut calls: FuturesUnordered<_> = calls.collect();
    let mut done = Vec::new();
    while let Some((at, result)) = calls.next().await {
        told(&result);
        done.push((at, result));
    }
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Asks each configured remote forum for the user's name and role.
async fn remotes(config: &Config, env: &Env, told: &mut dyn FnMut(Told<'_>)) -> Vec<RemoteReport> {
    let env = env.of_backends(false);
    let calls = config.forum.remotes.iter().map(|(name, config)| {
        let env = &env;
        async move {
            let ask = async {
                let mut forum = RemoteForum::open(name, config, env).await?;
                forum.call("read_rules", &serde_json::json!({})).await
            };
            let standing = ask.await.map(|answer| Standing::read(&answer));
            let name = name.clone();
            RemoteReport { name, standing }
        }
    });
    all(calls, &mut |report| told(Told::Remote(report))).await
}

/// Asks each configured further server for its tools.
async fn servers(
    config: &Config,
    scratch: &Path,
    env: &Env,
    told: &mut dyn FnMut(Told<'_>),
) -> Vec<ServerReport> {
    let env = env.of_backends(false);
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
            ServerReport {
                name: name.clone(),
                agents: config.agents.clone(),
                tools: tools.into_iter().map(|tool| tool.name).collect(),
                faults,
            }
        }
    });
    all(calls, &mut |report| told(Told::Server(report))).await
}

/// The members to call, and agent programs that were found but are not members.
struct Called {
    members: Vec<Member>,
    idle: Vec<String>,
}

/// Returns the named members. If no member is named, returns the members of the council and the configured agents; if
/// nothing is configured, the agent programs on this machine and the built-in model, which is called once, however
/// many members use it.
async fn members(config: &Config, named: &[String], env: &Env) -> Result<Called, UserError> {
    let seat = |members: Vec<String>| {
        let wishes = SeatRequest {
            members,
            ..SeatRequest::default()
        };
        let seated = seating::seat(config, &wishes)
            .map_err(|e| UserError::new(ErrorKind::UnknownMember, e.to_string()))?;
        Ok::<_, UserError>(seated.roster.members().to_vec())
    };
    if !named.is_empty() {
        return Ok(Called {
            members: seat(named.to_vec())?,
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
    for found in discover(&env.of_backends(false)).await {
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
