//! What is kept of a member between runs: `sessions/<agent>.json`, one for each branch and member.

use crate::error::Error;
use crate::json;
use crate::layout::Layout;
use crate::lock::{self, Lock};
use kd_core::ids::SeatName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs;

/// A member's state. Times are RFC 3339 texts, kept as they are; keys that we do not know stay in `extra`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentState {
    /// The member.
    pub name: String,
    /// `idle`, `working`, `blocked`, `done`, `failed`, `stopped`, `stopping`, `awaiting_council`, `needs_king_review`.
    pub status: String,
    /// The backend's id of the conversation that can be taken up again.
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
    /// The backend that answers for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_backend: Option<String>,
    /// When its process was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it last gave a sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<String>,
    /// The commit it started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_sha: Option<String>,
    /// How it failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_kind: Option<String>,
    /// How often a review sent its work back.
    pub review_bounce_count: u32,
    /// Whether a person drives it.
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

/// Reads a member's state; a member that was never kept is idle.
pub fn read(layout: &Layout, seat: &SeatName) -> Result<AgentState, Error> {
    let state: Option<AgentState> = json::read(&layout.session_file(seat))?;
    Ok(state.unwrap_or_else(|| AgentState {
        name: seat.to_string(),
        ..AgentState::default()
    }))
}

/// Changes a member's state under its lock: no change of another process is lost.
pub fn update(
    layout: &Layout,
    seat: &SeatName,
    change: impl FnOnce(&mut AgentState),
) -> Result<AgentState, Error> {
    let path = layout.session_file(seat);
    let folder = path.parent().unwrap_or(&path);
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let _lock = Lock::take(&lock::lock_path(&path), lock::WAIT)?;
    let mut state = read(layout, seat)?;
    change(&mut state);
    json::write(&path, &state)?;
    Ok(state)
}
