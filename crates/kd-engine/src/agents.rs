//! Records running agent processes on disk: in the user's runtime folder, so that a later run can stop processes left
//! by a killed run, and in the members' states below `.kd`, for display.

use kd_backends::transport::process::{self, Birth};
use kd_core::SeatName;
use kd_core::Timestamp;
use kd_store::run_record::{self, Agent, RunRecord};
use kd_store::session::{self, Process};
use kd_store::{Error, Layout, UserDirs};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};

/// The session records of one branch that this process has written, by member.
pub(crate) struct AgentRegistry {
    sessions: PathBuf,
    thread: String,
    written: BTreeMap<SeatName, Vec<Process>>,
}

impl AgentRegistry {
    /// Creates an empty record.
    pub(crate) fn new(thread: &kd_store::Thread) -> Self {
        Self {
            sessions: thread.sessions_folder(),
            thread: thread.id().0.clone(),
            written: BTreeMap::new(),
        }
    }

    /// Writes what changed. Failing to write a state does not stop a council.
    pub(crate) fn update(&mut self) {
        let mut now: BTreeMap<SeatName, Vec<Process>> = BTreeMap::new();
        for (label, birth) in process::alive() {
            if let Ok(seat) = SeatName::new(label) {
                let run = process::run_of(&birth).to_owned();
                let pid = birth.pid;
                now.entry(seat).or_default().push(Process { pid, run });
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

/// Records this process's agents in the user's runtime folder, on a separate thread that starts with the first agent.
/// Call it once, before agents are started.
pub fn keep_record(dirs: UserDirs) {
    let folder = std::env::current_dir().unwrap_or_default();
    let writer: std::sync::OnceLock<Sender<()>> = std::sync::OnceLock::new();
    process::on_change(move || {
        let writer = writer.get_or_init(|| {
            let (changed, changes) = mpsc::channel::<()>();
            let (dirs, folder) = (dirs.clone(), folder.clone());
            // If no thread can be started, the agents' supervisors and marks still work.
            let _ = std::thread::Builder::new()
                .name("kd-record".into())
                .spawn(move || {
                    while changes.recv().is_ok() {
                        while changes.try_recv().is_ok() {}
                        let _ = run_record::write(&dirs, &own_record(&folder));
                    }
                });
            changed
        });
        writer.send(()).is_ok()
    });
}

fn own_record(folder: &std::path::Path) -> RunRecord {
    let (boot, namespace) = run_record::machine();
    let (pid, started) = process::this_run();
    let agents = process::alive().into_iter().take(run_record::AGENTS_MAX);
    let agents = agents.map(|(seat, birth)| Agent {
        pid: birth.pid,
        started: birth.started,
        mark: birth.mark,
        seat,
    });
    RunRecord {
        pid,
        started,
        folder: folder.to_path_buf(),
        boot,
        namespace,
        agents: agents.collect(),
    }
}

/// Stops the agents left by killed runs of this program, in any project of the user. Returns how many process groups
/// were still alive; [`process::settle`] waits until they are gone.
///
/// # Errors
/// If the records cannot be read.
pub fn end_left_over(dirs: &UserDirs) -> Result<usize, Error> {
    let (boot, namespace) = run_record::machine();
    let mut ended = 0;
    for (path, run) in run_record::read_all(dirs)? {
        // Another container may share the folder: its process IDs have other meanings, and it cleans up itself.
        if run.boot == boot && run.namespace != namespace {
            continue;
        }
        if run.boot == boot {
            if process::is_running(run.pid, run.started) {
                continue;
            }
            let births = run.agents.into_iter().map(|agent| Birth {
                pid: agent.pid,
                started: agent.started,
                mark: agent.mark,
            });
            ended += births.filter(process::end_left_over).count();
        }
        run_record::remove(&path)?;
    }
    Ok(ended)
}

/// Removes processes of finished runs from the members' states of a branch, which are for display only.
///
/// # Errors
/// If the states cannot be listed or written.
pub fn tidy(layout: &Layout) -> Result<(), Error> {
    let sessions = layout.sessions_folder();
    let (own, started) = process::this_run();
    let alive: Vec<i32> = process::alive().iter().map(|(_, b)| b.pid).collect();
    for seat in session::kept(&sessions)? {
        // `kd fsck` reports unreadable states.
        let Ok(state) = session::read_in(&sessions, &seat) else {
            continue;
        };
        let is_over = |p: &Process| match p.run.split_once('.') {
            Some((pid, at)) => match (pid.parse(), at.parse()) {
                (Ok(pid), Ok(at)) if (pid, at) == (own, started) => !alive.contains(&p.pid),
                (Ok(pid), Ok(at)) => !process::is_running(pid, at),
                _ => true,
            },
            None => true,
        };
        if state.processes().iter().any(is_over) {
            session::update_in(&sessions, &seat, |state| {
                let mut left = state.processes();
                left.retain(|p| !is_over(p));
                state.set_processes(&left);
            })?;
        }
    }
    Ok(())
}
