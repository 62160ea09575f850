//! The state of a member between runs: `sessions/<agent>.json`, one per branch and member.

use crate::beneath::Folder;
use crate::bounds;
use crate::error::Error;
use crate::json;
use crate::layout::{self, Layout};
use crate::lock::{self, Lock};
use kd_core::ids::SeatName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// A member's state. Times are RFC 3339 strings, kept as they are; unknown keys are kept in `extra`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentState {
    /// The member.
    pub name: String,
    /// `idle`, `working`, `blocked`, `done`, `failed`, `stopped`, `stopping`, `awaiting_council`, `needs_king_review`.
    pub status: String,
    /// The backend's id of a conversation that can be resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_id: Option<String>,
    /// The agent's process while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The ticket it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// The thread it speaks in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Its backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_backend: Option<String>,
    /// The time when its process was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The time when it was last active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<String>,
    /// The commit it started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_sha: Option<String>,
    /// The kind of failure, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_kind: Option<String>,
    /// Number of times that a review sent its work back.
    pub review_bounce_count: u32,
    /// Whether a person controls it.
    pub hand_mode: bool,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Default for AgentState {
    fn default() -> Self {
        Self {
            name: String::new(),
            status: "idle".into(),
            resume_id: None,
            pid: None,
            ticket: None,
            thread: None,
            agent_backend: None,
            started_at: None,
            last_activity: None,
            start_sha: None,
            failure_kind: None,
            review_bounce_count: 0,
            hand_mode: false,
            extra: Map::new(),
        }
    }
}

/// The key of a member's agent processes; `pid` names only the newest.
const AGENTS: &str = "kd_agents";
/// The key of earlier versions. It is removed and never read.
const AGENTS_BEFORE: &str = "kd_processes";
/// Maximum number of processes listed per member.
const AGENTS_MAX: usize = 64;

/// A process of a member, for display. This file belongs to the project, so it may say anything: no process is ever
/// signaled because of it. [`crate::run_record`] has the records that a later run acts on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its process id.
    pub pid: i32,
    /// The run of `kd` that started it.
    pub run: String,
}

impl AgentState {
    /// Returns the member's recorded processes.
    pub fn processes(&self) -> Vec<Process> {
        let listed = self.extra.get(AGENTS).cloned().unwrap_or_default();
        let mut listed: Vec<Process> = serde_json::from_value(listed).unwrap_or_default();
        listed.truncate(AGENTS_MAX);
        listed
    }

    /// Records the member's processes; without any it becomes idle.
    pub fn set_processes(&mut self, processes: &[Process]) {
        let processes = &processes[processes.len().saturating_sub(AGENTS_MAX)..];
        self.extra.remove(AGENTS_BEFORE);
        self.pid = processes.last().and_then(|p| u32::try_from(p.pid).ok());
        match serde_json::to_value(processes) {
            Ok(listed) if !processes.is_empty() => {
                self.extra.insert(AGENTS.into(), listed);
                self.status = WORKING.into();
            }
            _ => {
                self.extra.remove(AGENTS);
                self.started_at = None;
                if self.status == WORKING {
                    self.status = AgentState::default().status;
                }
            }
        }
    }
}

/// The status of a member at work.
const WORKING: &str = "working";

/// Lists the members with a stored state on a branch.
///
/// # Errors
/// If the folder cannot be listed.
pub fn kept(sessions: &Path) -> Result<Vec<SeatName>, Error> {
    let Some(folder) = Folder::find(sessions)? else {
        return Ok(Vec::new());
    };
    let mut seats: Vec<SeatName> = folder
        .items()?
        .into_iter()
        .filter_map(|item| {
            let name = item.name.into_string().ok()?;
            SeatName::new(name.strip_suffix(".json")?).ok()
        })
        .collect();
    seats.sort();
    Ok(seats)
}

/// Reads a member's state; without a file it is idle.
///
/// # Errors
/// If the file cannot be read, is too large, or is malformed.
pub fn read(layout: &Layout, seat: &SeatName) -> Result<AgentState, Error> {
    read_in(&layout.sessions_folder(), seat)
}

/// Like [`read`], in the given sessions folder.
///
/// # Errors
/// Those of [`read`].
pub fn read_in(sessions: &Path, seat: &SeatName) -> Result<AgentState, Error> {
    let state: Option<AgentState> =
        json::read_bounded(&layout::session_file_in(sessions, seat), bounds::SESSION)?;
    Ok(state.unwrap_or_else(|| AgentState {
        name: seat.to_string(),
        ..AgentState::default()
    }))
}

/// Changes a member's state under its lock, so that no change of another process is lost.
///
/// # Errors
/// Those of [`read`]; also if the state is locked for too long or cannot be written.
pub fn update(
    layout: &Layout,
    seat: &SeatName,
    change: impl FnOnce(&mut AgentState),
) -> Result<AgentState, Error> {
    update_in(&layout.sessions_folder(), seat, change)
}

/// Like [`update`], in the given sessions folder.
///
/// # Errors
/// Those of [`update`].
pub fn update_in(
    sessions: &Path,
    seat: &SeatName,
    change: impl FnOnce(&mut AgentState),
) -> Result<AgentState, Error> {
    let path = layout::session_file_in(sessions, seat);
    Folder::make(sessions)?;
    let _lock = Lock::take(&lock::lock_path(&path), lock::WAIT)?;
    let mut state = read_in(sessions, seat)?;
    change(&mut state);
    json::write(&path, &state)?;
    Ok(state)
}
