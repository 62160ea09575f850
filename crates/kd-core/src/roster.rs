//! The members of the council in order, the chair, and the muted members.

use crate::config::AgentConfig;
use crate::ids::SeatName;
use crate::request::{Deadlines, Sampling};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A member: backend, model, role, persona, temperature and weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The name by which it is addressed.
    pub name: SeatName,
    /// The backend's kind, for example `local`, `openai`, `claude_code`.
    pub backend: String,
    /// The model, if the backend has several.
    pub model: Option<String>,
    /// The name of its model in marks, with its provider or backend: `model@provider`, or `model@provider-3f1c90ab`
    /// with a fingerprint of the address or command in the settings. `None` if the name of the model or of the
    /// backend says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_as: Option<String>,
    /// Its role in a word or two, for display.
    pub role: Option<String>,
    /// Its persona, added after the shared rules.
    pub persona: String,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// Timeouts.
    pub deadlines: Deadlines,
    /// The weight of its vote.
    pub weight: f64,
    /// Whether it may change files.
    pub writable: bool,
    /// Whether it may read the user's folder with tools, if a service answers for it. Not serialized: no file gives this
    /// right.
    #[serde(skip)]
    pub reads: bool,
    /// The command and settings that start its agent program. Not serialized: a program from a file is never run.
    #[serde(skip)]
    pub launch: Launch,
}

impl Member {
    /// Creates a member with defaults: no role, read-only, one vote.
    pub fn new(name: SeatName, backend: impl Into<String>) -> Self {
        Self {
            name,
            backend: backend.into(),
            model: None,
            served_as: None,
            role: None,
            persona: String::new(),
            sampling: Sampling::default(),
            deadlines: Deadlines::default(),
            weight: 1.0,
            writable: false,
            reads: false,
            launch: Launch::default(),
        }
    }

    /// Returns its agent, which stays the same under other member names.
    pub fn agent(&self) -> &str {
        self.launch.agent.as_deref().unwrap_or(self.name.as_str())
    }
}

/// The command and settings that start an agent's program, copied from its configuration when a member is created.
/// Every member that is derived from this one starts the same program, whatever its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The name under `agents`; `None` if not configured.
    pub agent: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The output format of the program.
    pub dialect: Option<String>,
    /// Names of additional environment variables passed to the program.
    pub env: Vec<String>,
    /// Additional files and folders that the program may read and write in the sandbox.
    pub state: Vec<String>,
    /// Additional arguments.
    pub extra_flags: Vec<String>,
    /// Reasoning effort, in the program's terms.
    pub effort: String,
    /// Whether the program is kept running between questions; `None` leaves it to the program.
    pub warm: Option<bool>,
}

impl Launch {
    /// Returns the launch settings of a configured agent.
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

/// The members in order, the chair, and the muted members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Roster {
    members: Vec<Member>,
    chair: Option<Member>,
    muted: BTreeSet<SeatName>,
}

impl Roster {
    /// Creates a roster. Of members with the same name, the first is kept.
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

    /// Returns all members in order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the members that may be asked, in order.
    pub fn unmuted(&self) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(|m| !self.muted.contains(&m.name))
    }

    /// Returns the service that concludes, if any.
    pub fn chair(&self) -> Option<&Member> {
        self.chair.as_ref()
    }

    /// Returns the member or chair of a name.
    pub fn get(&self, name: &SeatName) -> Option<&Member> {
        self.members
            .iter()
            .chain(self.chair.as_ref())
            .find(|m| &m.name == name)
    }

    /// Returns whether a member is muted.
    pub fn is_muted(&self, name: &SeatName) -> bool {
        self.muted.contains(name)
    }

    /// Mutes or unmutes a member; returns `false` if there is no such member or nothing changed.
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
