//! Who sits in the council: members in order, the chair, and who is muted.

use crate::config::AgentConfig;
use crate::ids::SeatName;
use crate::request::{Deadlines, Sampling};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A named voice: backend, model, role, persona, temperature and weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The handle by which it is addressed.
    pub name: SeatName,
    /// The backend's kind, for example `local`, `openai`, `claude_code`.
    pub backend: String,
    /// The model, where the backend serves several.
    pub model: Option<String>,
    /// The part it plays, in a word or two; shown to people.
    pub role: Option<String>,
    /// Its own prompt, added after the shared rules.
    pub persona: String,
    /// How it picks words.
    pub sampling: Sampling,
    /// How long we wait for it.
    pub deadlines: Deadlines,
    /// What its vote counts.
    pub weight: f64,
    /// Whether it may change files.
    pub writable: bool,
    /// How its agent's program is started. Not serialized: a program from a file is never run.
    #[serde(skip)]
    pub launch: Launch,
}

impl Member {
    /// A member of a backend, with nothing else chosen: no role, read only, one vote.
    pub fn new(name: SeatName, backend: impl Into<String>) -> Self {
        Self {
            name,
            backend: backend.into(),
            model: None,
            role: None,
            persona: String::new(),
            sampling: Sampling::default(),
            deadlines: Deadlines::default(),
            weight: 1.0,
            writable: false,
            launch: Launch::default(),
        }
    }

    /// The agent that sits here: what its seats in other places are told by.
    pub fn agent(&self) -> &str {
        self.launch.agent.as_deref().unwrap_or(self.name.as_str())
    }
}

/// How an agent's program is started, copied from its configuration when a member is made from it. Every seat made from
/// that member, whatever its name, starts the same program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The name under `agents`; `None` where nothing is configured.
    pub agent: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What the program prints.
    pub dialect: Option<String>,
    /// Names of further variables that the program may see.
    pub env: Vec<String>,
    /// Further files and folders that the program may read and write in the sandbox.
    pub state: Vec<String>,
    /// Further arguments.
    pub extra_flags: Vec<String>,
    /// Reasoning effort, in the program's words.
    pub effort: String,
    /// Whether the program is kept running between questions; `None` leaves it to the program.
    pub warm: Option<bool>,
}

impl Launch {
    /// The launch settings of a configured agent.
    pub fn of(name: &str, agent: &AgentConfig) -> Self {
        Self {
            agent: Some(name.to_owned()),
            command: agent.command.clone(),
            dialect: agent.dialect.clone(),
            env: agent.env.clone(),
            state: agent.state.clone(),
            extra_flags: agent.extra_flags.clone(),
            effort: agent.effort.clone(),
            warm: agent.warm,
        }
    }
}

/// Members in order, the chair, and who is muted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Roster {
    members: Vec<Member>,
    chair: Option<Member>,
    muted: BTreeSet<SeatName>,
}

impl Roster {
    /// A roster. Of members with the same name the first stays.
    pub fn new(members: Vec<Member>, chair: Option<Member>) -> Self {
        let mut seen = BTreeSet::new();
        let members = members
            .into_iter()
            .filter(|m| seen.insert(m.name.clone()))
            .collect();
        Self {
            members,
            chair,
            muted: BTreeSet::new(),
        }
    }

    /// All members in order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Members who may be asked, in order.
    pub fn unmuted(&self) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(|m| !self.muted.contains(&m.name))
    }

    /// The service that concludes, if there is one.
    pub fn chair(&self) -> Option<&Member> {
        self.chair.as_ref()
    }

    /// The member or chair of a name.
    pub fn get(&self, name: &SeatName) -> Option<&Member> {
        self.members
            .iter()
            .chain(self.chair.as_ref())
            .find(|m| &m.name == name)
    }

    /// Whether a member is skipped.
    pub fn is_muted(&self, name: &SeatName) -> bool {
        self.muted.contains(name)
    }

    /// Mutes or unmutes a member; false if there is no such member or nothing changed.
    pub fn set_muted(&mut self, name: &SeatName, muted: bool) -> bool {
        if !self.members.iter().any(|m| &m.name == name) {
            return false;
        }
        if muted {
            self.muted.insert(name.clone())
        } else {
            self.muted.remove(name)
        }
    }
}
