//! Finds the backend that answers for a member, and wraps it in guards.

use crate::Backend;
use crate::adapters::agent_cli::{self, AgentCli, HeldBy};
use crate::adapters::local::{Engines, Local};
use crate::adapters::persistent::{PersistentAgent, Pool};
use crate::adapters::programs::CODEX_READS_SINCE;
use crate::adapters::programs::{CONFIGURED, PROGRAMS, is_agent};
use crate::adapters::{self, scripted};
use crate::checkout::GitData;
use crate::collect::{Collected, Collector, Counted, Untimed};
use crate::env::Env;
use crate::folder::FolderReader;
use crate::guard::{
    Backoff, Folder, Gate, Gated, Model, Paid, Rate, Reads, Redraw, Retry, Room, Silence, Total,
    Untouched,
};
use crate::keys::Key;
use crate::providers::{Clients, Service};
use crate::spending::{Day, Spending};
use crate::transport::http::Http;
use crate::transport::rights;
use kd_core::config::{Config, LocalConfig, ProviderConfig};
use kd_core::ledger::{Billing, Ledger, Payer};
use kd_core::prices::Prices;
use kd_core::{Failure, FailureKind, Member};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// External settings of [`Backends`].
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The environment in which keys and switches are looked up.
    pub env: Env,
    /// Whether the user trusts the agents' working folder. Only then the trust check of an agent program itself is
    /// disabled.
    pub trusted: bool,
    /// Pauses and attempts for retries of services; `providers.<name>.attempts` overrides the number of attempts.
    pub backoff: Backoff,
    /// The ledger that records requests, and the daily limit.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// Finds a checkout's git data outside of it. Without it, agents in a sandbox cannot read the git directory of
    /// linked worktrees and submodules.
    pub git_data: Option<GitData>,
    /// Backends of the program that uses this crate, by name.
    pub own: OwnBackends,
    /// The gate of a fleet. With it, agent programs are refused: no fleet uses anybody's login.
    pub gate: Option<Arc<dyn Gate>>,
    /// The folder in which agents work and from which relative paths of programs are read. If unset, it is the folder
    /// of the process.
    pub folder: Option<PathBuf>,
    /// Gathers requests to services with batch endpoints, if there is one.
    pub collector: Option<Collector>,
    /// Reads the folder for members at a service that may. Without it, no such member reads files.
    pub reader: Option<Reader>,
}

/// Reads the folder for members at a service.
#[derive(Clone)]
pub struct Reader(pub Arc<dyn FolderReader>);

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader")
    }
}

/// Backends of the program that uses this crate, by name. They hide configured ones of that name.
#[derive(Clone, Default)]
pub struct OwnBackends(pub BTreeMap<String, Arc<dyn Backend>>);

impl std::fmt::Debug for OwnBackends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// All backends of one process: clients, limits and models are created on first use, and shared.
///
/// It does not know agents by name: how to start a program comes with the member ([`kd_core::Launch`]), so agents
/// cannot be confused here.
pub struct Backends {
    providers: BTreeMap<String, ProviderConfig>,
    prices: Prices,
    local: LocalConfig,
    pub(crate) env: Env,
    clients: Arc<Clients>,
    services: Mutex<BTreeMap<String, Arc<Service>>>,
    engines: Arc<Engines>,
    /// Running scripts, by member and script.
    scripts: Mutex<BTreeMap<(String, String), Arc<dyn Backend>>>,
    /// The backends of the program that uses this crate.
    own: OwnBackends,
    /// Idle agent programs.
    pool: Arc<Pool>,
    /// The folder in which agents work; `None` is the current folder.
    folder: Option<PathBuf>,
    /// The folder from which relative paths of programs start; `None` is the current folder.
    start: Option<PathBuf>,
    trusted: bool,
    /// Whether the system blocks read-only agents from other files.
    sandbox: bool,
    /// Whether only members that run on this machine are allowed.
    private: bool,
    /// The account for all requests.
    spending: Spending,
    backoff: Backoff,
    git_data: Option<GitData>,
    collector: Option<Collector>,
    gate: Option<Arc<dyn Gate>>,
    /// Unset where other machines ask.
    reader: Option<Reader>,
}

/// Creates a member's backend: one row for each kind that is neither an HTTP service nor an agent program.
type Seat = fn(&Backends, &Member, &Spending) -> Result<Arc<dyn Backend>, Failure>;

/// The kinds of backend by name. HTTP services and agent programs have tables of their own, [`crate::providers`] and
/// [`adapters::programs`], and the configuration.
const TABLE: &[(&str, Seat)] = &[("local", local_seat), ("scripted", scripted_seat)];

impl Backends {
    /// Creates the backends of a configuration. Opens, reads and calls nothing yet.
    pub fn new(config: &Config, options: Options) -> Self {
        Self {
            providers: config.providers.clone(),
            prices: config.prices.clone(),
            local: config.local.clone(),
            env: options.env,
            clients: Arc::default(),
            services: Mutex::default(),
            engines: Arc::default(),
            scripts: Mutex::default(),
            pool: Arc::new(Pool::new(Duration::from_secs(config.council.warm_secs))),
            folder: options.folder.clone(),
            start: options.folder,
            own: options.own,
            trusted: options.trusted,
            sandbox: config.council.sandbox,
            private: config.council.private,
            spending: Spending::recorded(
                config.limits.ceiling(),
                Day {
                    ledger: options.ledger,
                    usd: config.limits.usd_per_day,
                },
            ),
            backoff: options.backoff,
            git_data: options.git_data,
            collector: options.collector,
            // What other machines ask reads no files here.
            reader: options
                .reader
                .filter(|_| options.gate.is_none() && !config.serves_others),
            gate: options.gate,
        }
    }

    /// Returns the account for all requests, within `limits` of the configuration.
    pub fn spending(&self) -> &Spending {
        &self.spending
    }

    /// Returns the backend of a member, charged to the default account. Calls nothing; a missing key, or a built-in
    /// model that is not downloaded, is reported by the first answer.
    ///
    /// # Errors
    /// If only members on this machine are allowed and this one runs elsewhere, its backend or dialect is unknown, it
    /// has no model or command, its script cannot be loaded, or the cost limit is too low for its program.
    pub fn seat(&self, member: &Member) -> Result<Arc<dyn Backend>, Failure> {
        self.seat_paid(member, &self.spending)
    }

    /// Like [`Backends::seat`], charged to this account.
    ///
    /// # Errors
    /// Those of [`Backends::seat`].
    pub fn seat_paid(
        &self,
        member: &Member,
        spending: &Spending,
    ) -> Result<Arc<dyn Backend>, Failure> {
        if self.private {
            self.stays_here(member)?;
        }
        if self.gate.is_some() && self.is_agent(member) {
            let why = format!(
                "`{}` is an agent program ({}), which no fleet runs",
                member.name, member.backend
            );
            return Err(Failure::new(FailureKind::Missing, why)
                .advise("use members at a service with a key, or the built-in model"));
        }
        if let Some(collector) = &self.collector {
            return match self.collected(member, spending, collector)? {
                Some(backend) => Ok(backend),
                None => {
                    let direct = self.direct_seat(member, spending)?;
                    Ok(Arc::new(Counted::new(collector, direct)))
                }
            };
        }
        self.direct_seat(member, spending)
    }

    fn direct_seat(
        &self,
        member: &Member,
        spending: &Spending,
    ) -> Result<Arc<dyn Backend>, Failure> {
        if let Some(own) = self.own.0.get(&member.backend) {
            let payer = payer(member, member.model.clone(), Billing::Unknown);
            let paid = Paid::new(Arc::clone(own), &spending.paid_by(payer));
            return Ok(timed(Arc::new(paid), spending));
        }
        match TABLE.iter().find(|(name, _)| *name == member.backend) {
            Some((_, seat)) => seat(self, member, spending),
            None if self.is_agent(member) => agent_program(self, member, spending),
            None => self.service_seat(member, spending),
        }
    }

    /// Returns whether only members that run on this machine are allowed (`council.private`).
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// Checks that a member's prompts stay on this machine, as far as that can be known: true for the built-in model
    /// and services at a loopback address. What such a service does with them is up to the service.
    ///
    /// # Errors
    /// The prompts leave this machine, or might.
    pub fn stays_here(&self, member: &Member) -> Result<(), Failure> {
        let name = &member.name;
        let why = if self.own.0.contains_key(&member.backend) {
            format!("nobody can tell where the backend of `{name}` sends what it reads")
        } else if TABLE.iter().any(|(own, _)| *own == member.backend) {
            return Ok(());
        } else if CONFIGURED.contains(&member.backend.as_str()) {
            format!("kd does not know where the program of `{name}` sends what it reads")
        } else if self.is_agent(member) {
            format!("the program of `{name}` sends what it reads to its provider")
        } else {
            let Some(service) = self.service(&member.backend) else {
                return Err(self.unknown(&member.backend));
            };
            let model = member.model.as_deref().or(service.model.as_deref());
            // Ollama forwards these to its cloud.
            let is_passed_on =
                model.is_some_and(|m| m.ends_with("-cloud") || m.ends_with(":cloud"));
            match (service.is_loopback(), is_passed_on) {
                (true, false) => return Ok(()),
                (true, true) => format!("the model of `{name}` runs elsewhere"),
                (false, _) => format!("`{name}` is asked over the network, at {}", service.host()),
            }
        };
        let advice =
            "use members that run on this machine: the built-in model, or a service at localhost";
        Err(Failure::new(FailureKind::Invalid, why).advise(advice))
    }

    /// Starts the program of a member that is likely to be asked soon, if it can be kept running: some need seconds to
    /// start. Sends nothing to it; if it is not asked, it ends after `council.warm_secs`. Must be called inside a tokio
    /// runtime.
    pub fn prepare(&self, member: &Member) {
        if self.is_agent(member)
            && let Ok(program) = self.agent_cli(member)
            && let Some(warm) = self.warm(member, &program)
        {
            warm.prepare(member.writable);
        }
    }

    /// Returns the way in which a member is paid, and a description: "its own login".
    pub fn billing(&self, member: &Member) -> (Billing, String) {
        if TABLE.iter().any(|(own, _)| *own == member.backend) {
            return (Billing::Free, "nobody (runs on this machine)".to_owned());
        }
        if !self.is_agent(member) {
            let billing = self
                .service(&member.backend)
                .map(|service| service.billing(member.model.as_deref()));
            return match billing.unwrap_or_default() {
                Billing::Free => (Billing::Free, "nobody (runs on this machine)".to_owned()),
                Billing::Unknown => (Billing::Unknown, "unknown".to_owned()),
                billing => (billing, format!("your key of {}", member.backend)),
            };
        }
        let keys = agent_cli::program(&member.backend).and_then(|program| program.keys);
        let Some(keys) = keys else {
            return (
                Billing::Unknown,
                "the account in its own settings".to_owned(),
            );
        };
        match keys.iter().find(|name| self.env.on(name)) {
            Some(name) => (Billing::Key, format!("the key of its environment ({name})")),
            None => (
                Billing::Login,
                "its own login (a subscription, or its account)".to_owned(),
            ),
        }
    }

    /// Returns the persistent form of a member's program, if it is to be kept running.
    fn warm(&self, member: &Member, program: &AgentCli) -> Option<PersistentAgent> {
        let (link, unasked) = program.link()?;
        member.launch.warm.unwrap_or(unasked).then(|| {
            let once = program.answers_once();
            PersistentAgent::new(program.clone(), link, Arc::clone(&self.pool), once)
        })
    }

    /// Sets the agents' working folder.
    #[must_use]
    pub fn in_folder(mut self, folder: PathBuf) -> Self {
        self.folder = Some(folder);
        self
    }

    /// Returns the mechanism that prevents an agent from writing in read-only turns, and a description.
    ///
    /// # Errors
    /// The member is not an agent program.
    pub fn read_only_by(&self, member: &Member) -> Result<(HeldBy, String), Failure> {
        let agent = self.agent_cli(member)?;
        let by = agent.held_by();
        let own = "by its own flags";
        let words = match (by, rights::held()) {
            (HeldBy::OwnSandbox, _) if agent.is_told_reads() => {
                let since = CODEX_READS_SINCE;
                format!(
                    "by its own sandbox, with a list of what commands may read (honored since {since})"
                )
            }
            (HeldBy::OwnSandbox, _) => {
                "by its own sandbox, in which commands can read what you can".to_owned()
            }
            (HeldBy::Landlock, version) => {
                format!(
                    "by Landlock (ABI {}) and {own}",
                    version.unwrap_or_default()
                )
            }
            (HeldBy::Flags, _) if !self.sandbox => {
                format!("{own} only: `council.sandbox` is off")
            }
            (HeldBy::Flags, _) => format!("{own} only: Landlock is not available"),
        };
        Ok((by, words))
    }

    /// Returns whether this member is an agent program, which can use tools itself.
    pub fn is_agent(&self, member: &Member) -> bool {
        is_agent(&member.backend)
    }

    /// Returns why a member cannot answer, as far as this shows without any call: no program, no key in the
    /// environment, no model. The built-in model, key files and key commands count as present.
    pub fn missing(&self, member: &Member) -> Option<Failure> {
        let is_own = self.own.0.contains_key(&member.backend);
        if is_own || TABLE.iter().any(|(own, _)| *own == member.backend) {
            return None;
        }
        if self.is_agent(member) {
            return self.program(member).err();
        }
        let Some(service) = self.service(&member.backend) else {
            return Some(self.unknown(&member.backend));
        };
        if member.model.is_none() && service.model.is_none() {
            return Some(no_model(member));
        }
        service.missing_key()
    }

    /// Returns the path of a member's program.
    ///
    /// # Errors
    /// It is not installed, or the member is not an agent program.
    pub fn program(&self, member: &Member) -> Result<PathBuf, Failure> {
        self.agent_cli(member)?.program()
    }

    /// Returns the agent program of a member, as configured.
    fn agent_cli(&self, member: &Member) -> Result<AgentCli, Failure> {
        let launch = &member.launch;
        let choice = agent_cli::Choice {
            model: member.model.clone(),
            effort: Some(launch.effort.clone()),
            extra: launch.extra_flags.clone(),
            command: launch.command.clone(),
            sees: launch.env.clone(),
            state: launch.state.clone(),
            folder: self.folder.clone(),
            start: self.start.clone(),
            trusted: self.trusted,
            agent: launch
                .agent
                .clone()
                .unwrap_or_else(|| member.name.as_str().to_owned()),
            name: member.name.as_str().to_owned(),
            sandbox: self.sandbox,
            git_data: self.git_data,
        };
        if let Some(program) = agent_cli::program(&member.backend) {
            return Ok(AgentCli::new(program, choice, self.env.clone()));
        }
        if choice.command.is_empty() {
            return Err(Failure::new(
                FailureKind::Invalid,
                format!("`{}` has no program", member.name),
            )
            .advise(format!(
                "set `agents.{}.command`; docs/agents.md shows how",
                launch.agent.as_deref().unwrap_or(member.name.as_str())
            )));
        }
        let dialect = launch.dialect.as_deref().unwrap_or("acp");
        let argv = choice.command.clone();
        AgentCli::command(argv, dialect, choice, self.env.clone())
    }

    /// Returns the backend that asks a member through provider batches; `None` if its service has none.
    fn collected(
        &self,
        member: &Member,
        spending: &Spending,
        collector: &Collector,
    ) -> Result<Option<Arc<dyn Backend>>, Failure> {
        let is_other = self.own.0.contains_key(&member.backend)
            || TABLE.iter().any(|(name, _)| *name == member.backend)
            || self.is_agent(member);
        let service = match is_other {
            true => None,
            false => self.service(&member.backend),
        };
        let Some(service) = service.filter(|service| service.batch_price().is_some()) else {
            return Ok(None);
        };
        let Some(model) = member.model.clone().or_else(|| service.model.clone()) else {
            return Err(no_model(member));
        };
        let attempts = service.attempts.unwrap_or(self.backoff.attempts).max(1);
        let payer = payer(member, Some(model.clone()), service.billing(Some(&model)));
        let dialect = adapters::dialect(service.wire);
        let collected = Collected::new(
            collector,
            (service, dialect, model),
            spending.paid_by(payer),
            &self.spending,
        );
        let backoff = Backoff {
            attempts,
            ..self.backoff
        };
        let retrying = Retry::new(Arc::new(collected), backoff);
        Ok(Some(Arc::new(Untimed(Arc::new(retrying)))))
    }

    fn service_seat(
        &self,
        member: &Member,
        spending: &Spending,
    ) -> Result<Arc<dyn Backend>, Failure> {
        let Some(service) = self.service(&member.backend) else {
            return Err(self.unknown(&member.backend));
        };
        let Some(model) = member.model.clone().or_else(|| service.model.clone()) else {
            return Err(no_model(member));
        };
        let attempts = service.attempts.unwrap_or(self.backoff.attempts).max(1);
        let limit = service.limit.clone();
        let gate = self.gate.clone().map(|gate| (gate, service.gated()));
        let payer = payer(member, Some(model.clone()), service.billing(Some(&model)));
        let is_small = service.is_loopback() && kd_core::models::is_small(&model);
        let dialect = adapters::dialect(service.wire);
        let price = service.price(&model);
        let mut backend: Arc<dyn Backend> = Arc::new(Silence::new(Arc::new(Http::new(
            service,
            dialect,
            model,
            spending.paid_by(payer),
        ))));
        if let Some((gate, service)) = gate {
            backend = Arc::new(Gated::new(backend, gate, service));
        } else if let Some(limit) = limit {
            backend = Arc::new(Rate::new(backend, limit));
        }
        let retrying = Retry::new(
            Arc::new(Room::new(backend, spending)),
            Backoff {
                attempts,
                ..self.backoff
            },
        );
        let mut backend: Arc<dyn Backend> = Arc::new(retrying);
        if is_small {
            backend = Arc::new(Redraw::new(backend, Model::Service));
        }
        if let Some(Reader(reader)) = self.reader.clone().filter(|_| member.reads) {
            let folder = Folder {
                reader,
                path: self.folder.clone(),
                keys: self.keys(),
            };
            backend = Arc::new(Reads::new(backend, folder, spending.clone(), price));
        }
        Ok(Arc::new(Total::new(backend)))
    }

    /// Returns what finds the keys of all services, as far as they are known.
    fn keys(&self) -> Arc<dyn Fn() -> Vec<Key> + Send + Sync> {
        let known = crate::providers::KNOWN.iter().map(|known| known.name);
        let names = self.providers.keys().map(String::as_str).chain(known);
        let services: Vec<Arc<Service>> = names.filter_map(|name| self.service(name)).collect();
        Arc::new(move || services.iter().flat_map(|s| s.known_keys()).collect())
    }

    /// Returns the service of a name; creates it on first use.
    pub(crate) fn service(&self, name: &str) -> Option<Arc<Service>> {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = services.get(name) {
            return Some(Arc::clone(service));
        }
        let service = Arc::new(Service::new(
            name,
            self.providers.get(name),
            &self.env,
            &self.clients,
            &self.prices,
        )?);
        services.insert(name.to_owned(), Arc::clone(&service));
        Some(service)
    }

    fn unknown(&self, name: &str) -> Failure {
        let own = TABLE.iter().map(|(n, _)| *n);
        let programs = PROGRAMS.iter().map(|p| p.backend).chain(CONFIGURED);
        let known = crate::providers::KNOWN.iter().map(|k| k.name);
        let configured = self.providers.keys().map(String::as_str);
        let mut names: Vec<&str> = own.chain(programs).chain(known).chain(configured).collect();
        names.sort_unstable();
        names.dedup();
        Failure::new(
            FailureKind::Missing,
            format!("there is no backend `{name}`"),
        )
        .advise(format!(
            "use one of {}, or a service under `providers`",
            names.join(", ")
        ))
    }
}

fn no_model(member: &Member) -> Failure {
    let agent = member.launch.agent.as_deref();
    let agent = agent.unwrap_or(member.name.as_str());
    let backend = &member.backend;
    Failure::new(
        FailureKind::Invalid,
        format!("`{}` has no model for `{backend}`", member.name),
    )
    .advise(format!(
        "set `agents.{agent}.model` or `providers.{backend}.model`"
    ))
}

/// Returns the payer, for the ledger.
fn payer(member: &Member, model: Option<String>, billing: Billing) -> Payer {
    Payer {
        member: member.name.to_string(),
        service: member.backend.clone(),
        model,
        billing,
    }
}

/// Adds deadlines only: backends in this process are not retried.
fn timed(backend: Arc<dyn Backend>, spending: &Spending) -> Arc<dyn Backend> {
    let silence = Arc::new(Silence::new(backend));
    Arc::new(Total::new(Arc::new(Room::new(silence, spending))))
}

fn local_seat(
    backends: &Backends,
    member: &Member,
    spending: &Spending,
) -> Result<Arc<dyn Backend>, Failure> {
    let model = member.model.as_deref();
    let local = Local::new(
        Arc::clone(&backends.engines),
        &backends.local,
        model,
        &backends.env,
    );
    let spending = spending.paid_by(payer(member, member.model.clone(), Billing::Free));
    let mut config = backends.local.clone();
    if let Some(model) = model {
        config.model = Some(model.to_owned());
    }
    let paid = Paid::new(Arc::new(local), &spending);
    let silence = Arc::new(Silence::new(Arc::new(paid)));
    let room = Arc::new(Room::new(silence, &spending));
    let redrawn = Redraw::new(room, Model::File(config, backends.env.clone()));
    Ok(Arc::new(Total::new(Arc::new(redrawn))))
}

/// One script player per member, so that its calls play one run after another.
fn scripted_seat(
    backends: &Backends,
    member: &Member,
    spending: &Spending,
) -> Result<Arc<dyn Backend>, Failure> {
    let model = member.model.as_deref().unwrap_or("echo");
    let mut players = backends
        .scripts
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let key = (member.name.to_string(), model.to_owned());
    let player = match players.get(&key) {
        Some(player) => player.clone(),
        None => {
            let script = scripted::Script::load(model)?;
            let player: Arc<dyn Backend> = Arc::new(scripted::Scripted::new(script));
            players.insert(key, player.clone());
            player
        }
    };
    drop(players);
    let spending = spending.paid_by(payer(member, None, Billing::Free));
    Ok(timed(Arc::new(Paid::new(player, &spending)), &spending))
}

/// Agent programs retry on their own, so they get no [`Retry`] guard.
fn agent_program(
    backends: &Backends,
    member: &Member,
    spending: &Spending,
) -> Result<Arc<dyn Backend>, Failure> {
    let (program, budget) = backends
        .agent_cli(member)?
        .within(spending.share_pico_usd())?;
    let advice = program.advice_unheard();
    // A kept process would share the budget of its first question among all of them.
    let warm = backends.warm(member, &program).filter(|_| budget.is_none());
    let backend: Arc<dyn Backend> = match warm {
        Some(warm) => Arc::new(warm),
        None => Arc::new(program),
    };
    let agent = member.launch.agent.as_deref().unwrap_or(&member.backend);
    let spending = spending.paid_by(payer(
        member,
        member.model.clone(),
        backends.billing(member).0,
    ));
    let paid = Paid::program(backend, &spending, agent, budget);
    let watched = Untouched::new(
        Arc::new(paid),
        backends.env.clone(),
        backends.folder.clone(),
    );
    let silence = Arc::new(Silence::new(Arc::new(watched)));
    let room = Arc::new(Room::new(silence, &spending));
    Ok(Arc::new(Total::new(room).advise_unheard(advice)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::SeatName;

    fn member(backend: &str, model: Option<&str>) -> Member {
        Member {
            model: model.map(str::to_owned),
            ..Member::new(SeatName::new("ada").unwrap(), backend)
        }
    }

    fn failure(backends: &Backends, member: &Member) -> Failure {
        match backends.seat(member) {
            Ok(_) => panic!("{} was seated", member.backend),
            Err(failure) => failure,
        }
    }

    #[test]
    fn private_questions_go_to_nobody_beyond_this_machine() {
        let config: Config = serde_json::from_value(serde_json::json!({
            "council": {"private": true},
            "providers": {
                "near": {"wire": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m"},
                "six": {"wire": "openai", "base_url": "http://[::1]:1/v1", "model": "m"},
                "far": {"wire": "openai", "base_url": "https://far.example/v1", "model": "m"},
                "lan": {"wire": "openai", "base_url": "http://192.0.2.7:1/v1", "model": "m"},
                "alike": {"wire": "openai", "base_url": "http://localhost.example/v1", "model": "m"},
                "login": {"wire": "openai", "base_url": "http://localhost@far.example/v1", "model": "m"},
            },
        }))
        .unwrap();
        let backends = Backends::new(&config, Options::default());
        for (backend, model) in [
            ("local", None),
            ("scripted", None),
            ("near", None),
            ("six", None),
            ("ollama", Some("qwen3:4b")),
        ] {
            assert!(backends.seat(&member(backend, model)).is_ok(), "{backend}");
        }
        let away = PROGRAMS.iter().map(|p| (p.backend, None));
        let away = away.chain(CONFIGURED.iter().map(|name| (*name, None)));
        let known = crate::providers::KNOWN.iter();
        let known = known.filter(|known| !crate::transport::client::is_loopback(known.base_url));
        let away = away.chain(known.map(|known| (known.name, Some("m"))));
        let more = [
            ("far", None),
            ("lan", None),
            ("alike", None),
            ("login", None),
            ("ollama", Some("qwen3-coder:480b-cloud")),
            ("ollama", Some("glm-4.6:cloud")),
        ];
        let mut count = 0;
        for (backend, model) in away.chain(more) {
            let failure = failure(&backends, &member(backend, model));
            assert_eq!(failure.kind, FailureKind::Invalid, "{backend}");
            assert!(failure.hint().contains("localhost"), "{backend}");
            count += 1;
        }
        assert!(count > 12, "{count}");
        assert_eq!(
            failure(&backends, &member("nosuch", None)).kind,
            FailureKind::Missing
        );
    }

    #[test]
    fn what_is_missing_shows_before_anybody_is_called() {
        let config: Config = serde_json::from_value(serde_json::json!({
            "providers": {
                "near": {"wire": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m"},
                "filed": {"wire": "openai", "base_url": "https://f.example/v1", "model": "m", "key_file": "/nowhere/key"},
            },
        }))
        .unwrap();
        let env = Env::of([("PATH", "/nowhere"), ("ANTHROPIC_API_KEY", "k")]);
        let options = Options {
            env,
            ..Options::default()
        };
        let backends = Backends::new(&config, options);
        for (backend, model, said, next) in [
            ("claude_code", None, "program `claude`", "npm install"),
            ("acp", None, "has no program", "agents.ada.command"),
            (
                "openai",
                Some("m"),
                "no key for `openai`",
                "export OPENAI_API_KEY=",
            ),
            ("anthropic", None, "has no model", "agents.ada.model"),
            ("opanai", None, "no backend", "openai"),
        ] {
            let failure = backends.missing(&member(backend, model)).expect(backend);
            assert!(failure.message.contains(said), "{failure:?}");
            assert!(failure.hint().contains(next), "{failure:?}");
        }
        for (backend, model) in [
            ("local", None),
            ("scripted", None),
            ("near", None),
            ("filed", None),
            ("ollama", Some("m")),
            ("anthropic", Some("m")),
        ] {
            assert_eq!(backends.missing(&member(backend, model)), None, "{backend}");
        }
    }

    #[test]
    fn whoever_cannot_be_seated_is_told_why_and_what_to_do() {
        let backends = Backends::new(
            &Config::default(),
            Options {
                env: Env::of([("A", "b")]),
                ..Options::default()
            },
        );
        for program in agent_cli::PROGRAMS {
            assert!(backends.seat(&member(program.backend, None)).is_ok());
        }
        let acp = failure(&backends, &member("acp", None));
        assert_eq!(acp.kind, FailureKind::Invalid);
        assert!(acp.hint().contains("agents.ada.command"), "{}", acp.hint());
        let unknown = failure(&backends, &member("opanai", Some("x")));
        assert_eq!(unknown.kind, FailureKind::Missing);
        assert!(
            unknown.hint().contains("openai") && unknown.hint().contains("scripted"),
            "{}",
            unknown.hint()
        );
        assert_eq!(
            failure(&backends, &member("openai", None)).kind,
            FailureKind::Invalid
        );
        assert!(backends.seat(&member("openai", Some("m"))).is_ok());
        assert!(backends.seat(&member("scripted", None)).is_ok());
    }
}
