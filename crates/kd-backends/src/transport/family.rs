//! A child and all its descendants, called its family.
//!
//! Input: the started process, which leads its own session. Output: which of its descendants are alive, and in the end
//! none.
//!
//! Agents start the shells of their tools in separate groups and sessions, and exit before them. So a signal to the
//! agent, or to its group, leaves the shells running. On Linux, descendants are found by four traces: their parent,
//! the session, an earlier scan, and a mark in the environment that they inherit. On other systems only the group is
//! stopped.
//!
//! Before any signal, the process is verified to be the one that was started: see [`end_left_over`].

use rustix::process::Signal;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The environment variable that marks every agent and the processes that it starts.
pub const MARK: &str = "KD_FAMILY";

/// Identifies a process across process id reuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Its process id.
    pub pid: i32,
    /// The start time, in clock ticks since boot; zero if unknown.
    pub started: u64,
    /// The value of [`MARK`] in its environment.
    pub mark: String,
}

/// The steps and time limits for stopping a family of processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// Time limit for the root to exit without a signal.
    pub(super) patience: Duration,
    /// The signal that asks it to exit.
    pub(super) gentle: Signal,
    /// Time limit for it to exit after that signal.
    pub(super) grace: Duration,
}

/// Number of families that this process is stopping.
static ENDING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();
/// Agents in use, by process id, with their labels.
static IN_USE: Mutex<BTreeMap<i32, (String, Birth)>> = Mutex::new(BTreeMap::new());

/// Returns the agents in use, each with the label it was started with. Saved to disk, the list lets a later run stop
/// the processes that a killed run left behind: see [`end_left_over`].
pub fn living() -> Vec<(String, Birth)> {
    let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.values().cloned().collect()
}

/// Agents being stopped.
static LEAVING: Mutex<BTreeMap<i32, (String, Birth)>> = Mutex::new(BTreeMap::new());

/// Called whenever an agent starts or ends; removed once it returns false.
type Listener = Box<dyn Fn() -> bool + Send>;
static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());

/// Returns every agent of this process that may have something running: agents in use and agents being stopped.
pub fn alive() -> Vec<(String, Birth)> {
    // Lock in the same order as `end`, which moves an agent from the first to the second; otherwise they could
    // deadlock.
    let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let leaving = LEAVING.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.values().chain(leaving.values()).cloned().collect()
}

/// Calls `tell` when [`alive`] changes, until it returns false. It must not block.
pub fn on_change(tell: impl Fn() -> bool + Send + 'static) {
    LISTENERS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Box::new(tell));
}

fn changed() {
    LISTENERS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|tell| tell());
}

/// Returns whether the process with this id and start time is still running.
pub fn is_running(pid: i32, started: u64) -> bool {
    platform::runs(pid, started)
}

/// Returns the id of this process and its start time (zero if unknown).
pub fn this_run() -> (i32, u64) {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    (pid, started(pid).unwrap_or(0))
}

/// Returns the run of this program that started a family: its process id and start time, separated by a dot.
pub fn run_of(birth: &Birth) -> &str {
    birth.mark.rsplit_once('.').map_or("", |(run, _)| run)
}

/// Records an agent that is in use.
pub(super) fn in_use(label: String, birth: &Birth) {
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.insert(birth.pid, (label, birth.clone()));
    drop(in_use);
    changed();
}

/// Stops a family on a separate thread, so that dropping an agent does not block and a runtime that shuts down does not
/// interrupt it. [`settle`] waits for it. The family's output stays open until then.
pub(super) fn end(birth: Birth, ending: Ending, open: Option<OwnedFd>, keeper: Option<Socket>) {
    begin_end(birth, ending, (open, keeper), Trust::Own);
}

/// Our end of the socket to a keeper.
pub(super) type Socket = std::os::unix::net::UnixStream;

/// Held until a family is stopped: its output, and the socket of its keeper.
type Held = (Option<OwnedFd>, Option<Socket>);

fn begin_end(birth: Birth, ending: Ending, held: Held, trust: Trust) {
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(agent) = in_use.remove(&birth.pid) {
        LEAVING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(birth.pid, agent);
    }
    drop(in_use);
    *ENDING.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    let work = move || {
        let _done = Done(birth.pid);
        if held.1.is_none() || !platform::ended_by_keeper(&birth, ending) {
            platform::end(&birth, ending, trust);
        }
        drop(held);
    };
    // If no thread can be started, the work runs here: late is better than never.
    if let Err((_, work)) = spawn(work) {
        work();
    }
}

/// Decrements the count on drop, however the thread ends.
struct Done(i32);

impl Drop for Done {
    fn drop(&mut self) {
        LEAVING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.0);
        changed();
        *ENDING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_all();
    }
}

fn spawn<F: FnOnce() + Send + 'static>(work: F) -> Result<(), (std::io::Error, F)> {
    // Keeps the work recoverable if no thread can be started.
    let slot = std::sync::Arc::new(Mutex::new(Some(work)));
    let inner = std::sync::Arc::clone(&slot);
    let take = |slot: &Mutex<Option<F>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    let made = std::thread::Builder::new()
        .name("kd-reaper".into())
        .spawn(move || {
            if let Some(work) = take(&inner) {
                work();
            }
        });
    match made {
        Ok(_) => Ok(()),
        Err(error) => match take(&slot) {
            Some(work) => Err((error, work)),
            None => Ok(()),
        },
    }
}

/// Waits up to `limit` until every dropped agent and its descendants are gone. Call this last in `main`: a process that
/// exits earlier leaves them running. Returns false if some remain.
pub fn settle(limit: Duration) -> bool {
    let until = Instant::now() + limit;
    let mut ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    while *ending > 0 {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        ending = ENDED
            .wait_timeout(ending, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
    true
}

/// Stops the processes that a killed run of this program left behind. Returns false if none of them is alive.
///
/// The record may be wrong, old or forged, so nothing is signaled because of a process id alone. The root counts only
/// if its id is above 1, it started when the record says (a record without that time is ignored), it belongs to this
/// user, is neither this process nor one of its ancestors, and carries the mark in its own environment. Its session and
/// its descendants count only then; any other process only if it carries the mark itself. On systems other than Linux
/// this cannot be verified, and nothing is signaled.
pub fn end_left_over(birth: &Birth) -> bool {
    let lives = platform::left_over(birth);
    if lives {
        let ending = Ending {
            patience: Duration::ZERO,
            gentle: Signal::TERM,
            grace: Duration::from_secs(1),
        };
        begin_end(birth.clone(), ending, (None, None), Trust::Record);
    }
    lives
}

/// The origin of a [`Birth`], which decides how far it is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// This process started it and has not reaped it yet.
    Own,
    /// It was read from a record.
    Record,
}

/// A time on the clock that the system uses for process start times; zero if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Returns the current time.
    pub fn now() -> Self {
        Self(platform::now().unwrap_or(0))
    }
}

/// Returns whether a family has a living member, other than the agent itself, that started after this time; true if
/// unknown.
pub(super) fn younger(birth: &Birth, kept: bool, than: Moment) -> bool {
    platform::younger(birth, kept, than.0)
}

/// Signals the group of a child that this process started and has not reaped.
pub(super) fn signal_group(birth: &Birth, signal: Signal) {
    platform::signal_group(birth, signal);
}

pub(super) use platform::started;

#[cfg(target_os = "linux")]
mod platform {
    use super::super::proc::{
        self, Seen, everybody, handle, has_variable, is_own_user, own_pid, stat, strike, wait,
    };
    use super::{Birth, Ending, MARK, Trust};
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
    use std::collections::{BTreeMap, BTreeSet};
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    pub(in super::super) use super::super::proc::started;

    /// Maximum number of attempts to kill survivors: a process stuck in the kernel cannot be killed.
    const ROUNDS_MAX: usize = 12;
    /// Duration of one round.
    const ROUND: Duration = Duration::from_millis(400);
    /// Time limit for a keeper to kill processes that ignore signals.
    const KEEPER: Duration = Duration::from_secs(12);
    /// Maximum number of scans for processes that started while others were being stopped.
    const LOOKS_MAX: usize = 8;

    /// Returns clock ticks since boot.
    pub(super) fn now() -> Option<u64> {
        let ticks = rustix::param::clock_ticks_per_second();
        let text = std::fs::read_to_string("/proc/uptime").ok()?;
        let (seconds, rest) = text.split_once('.')?;
        let hundredths: u64 = rest.get(..2)?.parse().ok()?;
        Some(seconds.parse::<u64>().ok()? * ticks + hundredths * ticks / 100)
    }

    /// Returns whether a keeper has stopped its family: it exits with 0 when no process is left. If it was killed or
    /// does not exit, the family still has to be stopped.
    pub(super) fn ended_by_keeper(birth: &Birth, ending: Ending) -> bool {
        let Some(keeper) = stat(birth.pid).filter(|seen| seen.started == birth.started) else {
            return false;
        };
        let fd = handle(&keeper);
        let limit = ending.patience + ending.grace + KEEPER;
        if fd.is_none() || !wait(std::slice::from_ref(&fd), limit) {
            return false;
        }
        let Some(pid) = Pid::from_raw(birth.pid) else {
            return false;
        };
        let status = waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        );
        matches!(status, Ok(Some(status)) if status.exit_status() == Some(0))
    }

    /// Returns whether any process of a family, except its root, started after this time.
    pub(super) fn younger(birth: &Birth, kept: bool, than: u64) -> bool {
        if kept {
            let living = proc::descendants(birth.pid);
            let children = living.iter().filter(|seen| seen.parent == birth.pid);
            // The oldest child of a keeper is the agent; the others are orphans.
            let agent = children.min_by_key(|seen| (seen.started, seen.pid));
            let others = living.iter().filter(|seen| Some(*seen) != agent);
            return others.into_iter().any(|seen| seen.started > than);
        }
        let mut family = Family::new(birth, Trust::Own);
        let living = family.look();
        living
            .iter()
            .any(|seen| seen.pid != birth.pid && seen.started > than)
    }

    /// Returns whether the process with this start time is running. A zombie does not count.
    pub(super) fn runs(pid: i32, at: u64) -> bool {
        at != 0 && stat(pid).is_some_and(|seen| seen.started == at && !seen.zombie)
    }

    /// Returns whether any process of a recorded family is alive.
    pub(super) fn left_over(birth: &Birth) -> bool {
        !Family::new(birth, Trust::Record).look().is_empty()
    }

    /// Signals the process group of a child.
    pub(super) fn signal_group(birth: &Birth, signal: Signal) {
        let ours = |seen: &Seen| {
            birth.pid > 1
                && seen.started == birth.started
                && seen.parent == own_pid()
                && seen.group == birth.pid
        };
        if let Some(pid) = Pid::from_raw(birth.pid)
            && stat(birth.pid).is_some_and(|seen| ours(&seen))
        {
            // It may be gone already, which is fine.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Stops a family: first gracefully, then by force, until no process is found.
    pub(super) fn end(birth: &Birth, ending: Ending, trust: Trust) {
        let mut family = Family::new(birth, trust);
        let living = family.look();
        if let Some(root) = living.iter().find(|seen| seen.pid == birth.pid) {
            let fd = handle(root);
            let gone =
                !ending.patience.is_zero() && wait(std::slice::from_ref(&fd), ending.patience);
            // Find processes that started meanwhile before the root, which leads to them, is gone.
            let living = family.look();
            if !gone {
                let mut group = living.iter().filter(|seen| seen.group == birth.pid);
                group.by_ref().for_each(|seen| strike(seen, ending.gentle));
                wait(std::slice::from_ref(&fd), ending.grace);
            }
        }
        for _ in 0..ROUNDS_MAX {
            let living = family.still();
            if living.is_empty() {
                break;
            }
            let fds: Vec<Option<OwnedFd>> = living.iter().map(handle).collect();
            living.iter().for_each(|seen| strike(seen, Signal::KILL));
            wait(&fds, ROUND);
        }
        if trust == Trust::Own
            && let Some(pid) = Pid::from_raw(birth.pid)
        {
            // Only our own children can be reaped; the system rejects any other id.
            let _ = waitid(
                WaitId::Pid(pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
            );
        }
    }

    /// The processes of a family.
    struct Family<'a> {
        birth: &'a Birth,
        trust: Trust,
        mark: Vec<u8>,
        /// The root was seen and verified: it leads its session.
        verified: bool,
        /// Every process seen so far, with its start time.
        known: BTreeMap<i32, u64>,
    }

    impl<'a> Family<'a> {
        fn new(birth: &'a Birth, trust: Trust) -> Self {
            Self {
                birth,
                trust,
                mark: format!("{MARK}={}", birth.mark).into_bytes(),
                verified: false,
                known: BTreeMap::new(),
            }
        }

        /// Stops all processes (SIGSTOP), so that none can start another, and returns the living ones.
        fn still(&mut self) -> Vec<Seen> {
            let mut stopped = BTreeSet::new();
            let mut living = self.look();
            for _ in 0..LOOKS_MAX {
                let before = stopped.len();
                for seen in &living {
                    if stopped.insert((seen.pid, seen.started)) {
                        strike(seen, Signal::STOP);
                    }
                }
                if stopped.len() == before {
                    break;
                }
                living = self.look();
            }
            living
        }

        /// Returns the living processes.
        fn look(&mut self) -> Vec<Seen> {
            let all = everybody();
            let never = proc::lineage(&all);
            let may = |seen: &Seen| seen.pid > 1 && seen.started != 0 && !never.contains(&seen.pid);
            let root = all.get(&self.birth.pid);
            let same = root.is_some_and(|seen| may(seen) && self.is_root(seen));
            self.verified |= same;
            // A session's id is not reused while the session has members; so if it was reused, ours is empty.
            let passed_on = root.is_some() && !same;
            let mut members: BTreeMap<i32, Seen> = all
                .values()
                .filter(|seen| may(seen))
                .filter(|seen| {
                    (same && seen.pid == self.birth.pid)
                        || self.known.get(&seen.pid) == Some(&seen.started)
                        || (self.verified && !passed_on && seen.session == self.birth.pid)
                        || self.is_marked(seen.pid)
                })
                .map(|seen| (seen.pid, *seen))
                .collect();
            loop {
                let joins = |seen: &&Seen| {
                    members.contains_key(&seen.parent)
                        && !members.contains_key(&seen.pid)
                        && may(seen)
                };
                let more: Vec<Seen> = all.values().filter(joins).copied().collect();
                if more.is_empty() {
                    break;
                }
                members.extend(more.into_iter().map(|seen| (seen.pid, seen)));
            }
            self.known
                .extend(members.values().map(|seen| (seen.pid, seen.started)));
            members.into_values().filter(|seen| !seen.zombie).collect()
        }

        /// Returns whether this process is the one that was started.
        fn is_root(&self, seen: &Seen) -> bool {
            seen.started == self.birth.started
                && match self.trust {
                    Trust::Own => seen.parent == own_pid(),
                    Trust::Record => self.is_marked(seen.pid),
                }
        }

        fn is_marked(&self, pid: i32) -> bool {
            !self.birth.mark.is_empty() && is_own_user(pid) && has_variable(pid, &self.mark)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::{Birth, Ending, Trust};
    use rustix::process::{
        Pid, Signal, WaitOptions, kill_process_group, test_kill_process, test_kill_process_group,
        waitpid,
    };
    use std::time::{Duration, Instant};

    /// Time limit for a killed process to disappear.
    const REAPED: Duration = Duration::from_secs(1);

    /// Unknown on this system.
    pub(in super::super) fn started(_pid: i32) -> Option<u64> {
        None
    }

    /// Unknown on this system.
    pub(super) fn now() -> Option<u64> {
        None
    }

    /// Unknown on this system.
    pub(super) fn younger(_birth: &Birth, _kept: bool, _than: u64) -> bool {
        true
    }

    /// Returns whether a process is running; start times are unknown on this system.
    pub(super) fn runs(pid: i32, _at: u64) -> bool {
        Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok())
    }

    /// This system has no keepers.
    pub(super) fn ended_by_keeper(_birth: &Birth, _ending: Ending) -> bool {
        false
    }

    /// Records cannot be verified on this system.
    pub(super) fn left_over(_birth: &Birth) -> bool {
        false
    }

    /// Signals the process group of a child.
    pub(super) fn signal_group(birth: &Birth, signal: Signal) {
        if let Some(group) = Pid::from_raw(birth.pid).filter(|_| birth.pid > 1) {
            let _ = kill_process_group(group, signal);
        }
    }

    fn lives(birth: &Birth) -> bool {
        Pid::from_raw(birth.pid).is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    /// Stops the group.
    pub(super) fn end(birth: &Birth, ending: Ending, _trust: Trust) {
        if !gone(birth, ending.patience) {
            signal_group(birth, ending.gentle);
            if !gone(birth, ending.grace) {
                signal_group(birth, Signal::KILL);
                gone(birth, REAPED);
            }
        }
    }

    /// Waits up to `limit` for the group to disappear, by polling: nothing reports the end of a whole group here.
    fn gone(birth: &Birth, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            // Reaps it: nothing else waits for it. An id that is not our child is not found, which is fine.
            let _ = Pid::from_raw(birth.pid).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
            if !lives(birth) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
