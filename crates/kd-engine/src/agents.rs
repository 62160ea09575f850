//! Which agent programs run for whom, in the members' states on disk. Comes in: what the backends started. Goes out:
//! `pid`, `started_at` and the marks by which a later run finds what a killed one left behind.

use kd_backends::transport::process::{self, Birth};
use kd_core::SeatName;
use kd_core::Timestamp;
use kd_store::session::{self, Process};
use kd_store::{Error, Layout};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What this process has written into the states of one branch.
pub(crate) struct Roll {
    sessions: PathBuf,
    thread: String,
    written: BTreeMap<SeatName, Vec<Process>>,
}

impl Roll {
    /// Nothing is written yet.
    pub(crate) fn new(thread: &kd_store::Thread) -> Self {
        Self {
            sessions: thread.sessions_folder(),
            thread: thread.id().0.clone(),
            written: BTreeMap::new(),
        }
    }

    /// Writes what changed. A state that cannot be written is no reason to stop a council.
    pub(crate) fn call(&mut self) {
        let mut now: BTreeMap<SeatName, Vec<Process>> = BTreeMap::new();
        for (label, birth) in process::alive() {
            if let Ok(seat) = SeatName::new(label) {
                now.entry(seat).or_default().push(of_birth(birth));
            }
        }
        let gone: Vec<SeatName> = self.written.keys().cloned().collect();
        for seat in gone {
            now.entry(seat).or_default();
        }
        for (seat, ours) in now {
            let before = self
                .written
                .get(&seat)
                .map(Vec::as_slice)
                .unwrap_or_default();
            if before == ours {
                continue;
            }
            let written = session::update_in(&self.sessions, &seat, |state| {
                state.name = seat.to_string();
                let mut all = state.processes();
                all.retain(|p| !before.contains(p));
                all.extend(
                    ours.iter()
                        .filter(|p| !all.contains(p))
                        .cloned()
                        .collect::<Vec<_>>(),
                );
                if !ours.is_empty() {
                    let at = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                    state.started_at = Some(at);
                    state.thread = Some(self.thread.clone());
                }
                state.set_processes(&all);
            });
            if written.is_ok() {
                self.written.insert(seat, ours);
            }
        }
        self.written.retain(|_, processes| !processes.is_empty());
    }
}

/// Ends what runs of this program that were killed have left behind on a branch, and takes it out of the members'
/// states. Gives how many families were still alive; [`process::settle`] waits until they are gone.
pub fn end_left_over(layout: &Layout) -> Result<usize, Error> {
    let sessions = layout.sessions_folder();
    let mut ended = 0;
    for seat in session::kept(&sessions)? {
        // A state that nobody can read names no process; `kd fsck` tells of it.
        let Ok(state) = session::read_in(&sessions, &seat) else {
            continue;
        };
        let ours = process::alive();
        let is_kept = |p: &Process| {
            let birth = to_birth(p);
            let mine = p.mark.starts_with(&format!("{}.", std::process::id()));
            process::has_owner(&birth) && (!mine || ours.iter().any(|(_, b)| *b == birth))
        };
        let lost: Vec<Process> = state
            .processes()
            .into_iter()
            .filter(|p| !is_kept(p))
            .collect();
        if lost.is_empty() {
            continue;
        }
        for one in &lost {
            ended += usize::from(process::end_left_over(&to_birth(one)));
        }
        session::update_in(&sessions, &seat, |state| {
            let mut left = state.processes();
            left.retain(|p| !lost.contains(p));
            state.set_processes(&left);
        })?;
    }
    Ok(ended)
}

fn of_birth(birth: Birth) -> Process {
    Process {
        pid: birth.pid,
        started: birth.started,
        mark: birth.mark,
    }
}

fn to_birth(process: &Process) -> Birth {
    Birth {
        pid: process.pid,
        started: process.started,
        mark: process.mark.clone(),
    }
}
