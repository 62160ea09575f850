//! A child and all that came of it. Comes in: the number of a process that leads its own session. Goes out: who of its
//! descendants lives, and in the end nobody.
//!
//! Agents start the shells of their tools in groups and sessions of their own, and die before them; so a signal to the
//! agent, or to its group, leaves the shells running. Here descendants are found by four traces: their parent, the
//! session, what was seen before, and a mark in the environment that they inherit. On Linux this process adopts orphans
//! (`PR_SET_CHILD_SUBREAPER`), so that they come home and can be reaped. Elsewhere only the group is stopped.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// The variable in the environment of every agent, inherited by what it starts.
pub const MARK: &str = "KD_FAMILY";

/// A process that can be found again: its number alone may come to belong to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since the machine did; zero where that is not known.
    pub started: u64,
    /// The value of [`MARK`] in its environment.
    pub mark: String,
}

/// How to end a family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// How long the first of them may take to end by itself.
    pub(super) patience: Duration,
    /// The signal that it is asked with.
    pub(super) gentle: Signal,
    /// How long it may take to obey.
    pub(super) grace: Duration,
}

/// How many endings are under way in this process.
static ENDING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();
/// Agents that are in use, by their numbers: for whom they answer, and how they are found again.
static IN_USE: Mutex<BTreeMap<i32, (String, Birth)>> = Mutex::new(BTreeMap::new());

/// Read by who starts an agent, written by who reaps.
static BIRTHS: RwLock<()> = RwLock::new(());

/// The agents that answer just now, each with the label that it was started with. Whoever keeps them on disk can end
/// what a killed process left behind: see [`end_left_over`].
pub fn living() -> Vec<(String, Birth)> {
    let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.values().cloned().collect()
}

/// Agents that are being ended.
static LEAVING: Mutex<BTreeMap<i32, (String, Birth)>> = Mutex::new(BTreeMap::new());

/// Told of every agent that comes or goes; one that answers false is told no more.
type Listener = Box<dyn Fn() -> bool + Send>;
static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());

/// Every agent of this process that may still have something running: those that answer, and those that are being
/// ended.
pub fn alive() -> Vec<(String, Birth)> {
    // In the order of `end`, which moves an agent from the first to the second: else each would wait for the other.
    let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let leaving = LEAVING.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.values().chain(leaving.values()).cloned().collect()
}

/// Asks to be told when [`alive`] changes, until the answer is false. The telling must not wait.
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

/// Whether the run of this program that started a family still lives, so that the family is its own affair.
pub fn has_owner(birth: &Birth) -> bool {
    let mut parts = birth.mark.split('.').map(str::parse::<u64>);
    match (parts.next(), parts.next()) {
        (Some(Ok(pid)), Some(Ok(at))) => {
            i32::try_from(pid).is_ok_and(|pid| platform::runs(pid, at))
        }
        _ => false,
    }
}

/// Held from before an agent is started until it is in use: one that ends at once must not be taken for a stray and
/// reaped before anybody waits for it.
pub(super) fn birth() -> RwLockReadGuard<'static, ()> {
    BIRTHS.read().unwrap_or_else(PoisonError::into_inner)
}

/// This agent is in use: somebody waits for its exit, and nobody else reaps it.
pub(super) fn in_use(label: String, birth: &Birth) {
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.insert(birth.pid, (label, birth.clone()));
    drop(in_use);
    changed();
}

/// Ends a family, on a thread of its own: whoever drops an agent does not wait, and a runtime that shuts down does not
/// stop us. [`settle`] waits. Its output stays open meanwhile.
pub(super) fn end(birth: Birth, ending: Ending, open: Option<OwnedFd>) {
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
        platform::end(&birth, ending);
        drop(open);
    };
    // Without a thread the work is done here: late is better than never.
    if let Err((_, work)) = spawn(work) {
        work();
    }
}

/// Takes one from the count, however the thread ended.
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
    // The work is kept where it can be had back when no thread can be made.
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

/// Waits until every agent that was dropped is gone with all that it started, at most so long. To be called last in
/// `main`: a process that exits earlier leaves them behind. False when some are still there.
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

/// Ends what a run of this program that was killed left behind. False when nothing of it lives any more.
pub fn end_left_over(birth: &Birth) -> bool {
    let lives = platform::lives(birth);
    if lives {
        let ending = Ending {
            patience: Duration::ZERO,
            gentle: Signal::TERM,
            grace: Duration::from_secs(1),
        };
        end(birth.clone(), ending, None);
    }
    lives
}

/// A moment on the clock by which the system notes when processes start; zero where that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Now.
    pub fn now() -> Self {
        Self(platform::now().unwrap_or(0))
    }
}

/// Whether anything of a family lives that started after this moment; true where that is not known.
pub(super) fn younger(birth: &Birth, than: Moment) -> bool {
    platform::younger(birth, than.0)
}

/// A signal to every process of a group that is not our own.
pub(super) fn signal_group(group: i32, signal: Signal) {
    let Some(group) = Pid::from_raw(group).filter(|group| group.as_raw_nonzero().get() > 1) else {
        return;
    };
    if Some(group.as_raw_nonzero().get()) != platform::own_group() {
        // It may be gone already, which is what we want.
        let _ = kill_process_group(group, signal);
    }
}

#[cfg(target_os = "linux")]
pub(super) use platform::{adopt, started};

#[cfg(target_os = "linux")]
mod platform {
    use super::{BIRTHS, Birth, Ending, IN_USE, MARK, signal_group};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open,
        set_child_subreaper, waitid,
    };
    use std::collections::BTreeMap;
    use std::os::fd::OwnedFd;
    use std::sync::{Once, PoisonError};
    use std::time::{Duration, Instant};

    /// How often whoever is left is killed before we give up: a process in the kernel's hands cannot be.
    const ROUNDS_MAX: usize = 12;
    /// How long one round waits.
    const ROUND: Duration = Duration::from_millis(400);

    /// One process, from `/proc/<pid>/stat`.
    #[derive(Clone, Copy, Debug)]
    struct Seen {
        pid: i32,
        parent: i32,
        group: i32,
        session: i32,
        started: u64,
        zombie: bool,
    }

    /// Makes orphans of our children ours.
    pub(in super::super) fn adopt() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // Where it is forbidden, marks and sessions still find them.
            let _ = set_child_subreaper(Some(getpid()));
        });
    }

    /// When a process started.
    pub(in super::super) fn started(pid: i32) -> Option<u64> {
        stat(pid).map(|seen| seen.started)
    }

    /// Our own group; none when it was made outside of our namespace of processes.
    pub(super) fn own_group() -> Option<i32> {
        let us = stat(getpid().as_raw_nonzero().get())?;
        (us.group > 0).then_some(us.group)
    }

    /// Ticks since the machine started.
    pub(super) fn now() -> Option<u64> {
        let ticks = rustix::param::clock_ticks_per_second();
        let text = std::fs::read_to_string("/proc/uptime").ok()?;
        let (seconds, rest) = text.split_once('.')?;
        let hundredths: u64 = rest.get(..2)?.parse().ok()?;
        Some(seconds.parse::<u64>().ok()? * ticks + hundredths * ticks / 100)
    }

    /// Whether anybody of a family but its root started after this.
    pub(super) fn younger(birth: &Birth, than: u64) -> bool {
        let mut family = Family::new(birth);
        let living = family.look();
        living
            .iter()
            .any(|seen| seen.pid != birth.pid && seen.started > than)
    }

    /// Whether a process runs that started then. One that nobody has reaped yet does not.
    pub(super) fn runs(pid: i32, at: u64) -> bool {
        stat(pid).is_some_and(|seen| seen.started == at && !seen.zombie)
    }

    /// Whether anybody of a family lives.
    pub(super) fn lives(birth: &Birth) -> bool {
        !Family::new(birth).look().is_empty()
    }

    /// Ends a family: first by asking, then by force, group by group, until nobody is found.
    pub(super) fn end(birth: &Birth, ending: Ending) {
        let mut family = Family::new(birth);
        let living = family.look();
        if let Some(root) = living.iter().find(|seen| seen.pid == birth.pid) {
            let fd = pidfd(root);
            let gone =
                !ending.patience.is_zero() && wait(std::slice::from_ref(&fd), ending.patience);
            // Whoever joined while we were patient should be known before the root, their trace, is gone.
            family.look();
            if !gone {
                signal_group(root.group, ending.gentle);
                wait(std::slice::from_ref(&fd), ending.grace);
            }
        }
        for _ in 0..ROUNDS_MAX {
            let living = family.look();
            if living.is_empty() {
                break;
            }
            let fds: Vec<Option<OwnedFd>> = living.iter().map(pidfd).collect();
            for seen in &living {
                signal_group(seen.group, Signal::KILL);
                if let Some(pid) = Pid::from_raw(seen.pid) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            wait(&fds, ROUND);
        }
        family.reap();
    }

    /// Who belongs together.
    struct Family<'a> {
        birth: &'a Birth,
        mark: Vec<u8>,
        /// Everybody who was seen once, and when they started.
        known: BTreeMap<i32, u64>,
    }

    impl<'a> Family<'a> {
        fn new(birth: &'a Birth) -> Self {
            Self {
                birth,
                mark: format!("{MARK}={}", birth.mark).into_bytes(),
                known: BTreeMap::new(),
            }
        }

        /// Who lives now.
        fn look(&mut self) -> Vec<Seen> {
            let all = everybody();
            let us = getpid().as_raw_nonzero().get();
            // While a session has members its number goes to nobody else; so if it did, ours is empty.
            let same = |seen: &Seen| self.birth.started == 0 || seen.started == self.birth.started;
            let passed_on = all.get(&self.birth.pid).is_some_and(|seen| !same(seen));
            let mut members: BTreeMap<i32, Seen> = all
                .values()
                .filter(|seen| {
                    let root = seen.pid == self.birth.pid && same(seen);
                    let known = self.known.get(&seen.pid) == Some(&seen.started);
                    let session = seen.session == self.birth.pid && !passed_on;
                    root || known || session || (self.adopted(seen, us) && self.marked(seen.pid))
                })
                .map(|seen| (seen.pid, *seen))
                .collect();
            loop {
                let more: Vec<Seen> = all
                    .values()
                    .filter(|seen| {
                        members.contains_key(&seen.parent)
                            && !members.contains_key(&seen.pid)
                            && seen.pid != us
                    })
                    .copied()
                    .collect();
                if more.is_empty() {
                    break;
                }
                members.extend(more.into_iter().map(|seen| (seen.pid, seen)));
            }
            self.known
                .extend(members.values().map(|seen| (seen.pid, seen.started)));
            members.into_values().filter(|seen| !seen.zombie).collect()
        }

        /// Whether this can be an orphan that came home, to us or to the first process.
        fn adopted(&self, seen: &Seen, us: i32) -> bool {
            (seen.parent == us || seen.parent == 1) && seen.pid != us && !seen.zombie
        }

        fn marked(&self, pid: i32) -> bool {
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
                environ
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == self.mark)
            })
        }

        /// Takes the dead from the table of processes: our own, and every orphan that came home to us and that nobody
        /// waits for. Those lead or share sessions that are not this process's.
        fn reap(&self) {
            let us = getpid().as_raw_nonzero().get();
            let ours = stat(us).map_or(0, |seen| seen.session);
            let _no_births = BIRTHS.write().unwrap_or_else(PoisonError::into_inner);
            let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
            let strays = everybody().into_values().filter(|seen| {
                seen.zombie
                    && seen.parent == us
                    && seen.session != ours
                    && !in_use.contains_key(&seen.pid)
            });
            let strays = strays.map(|seen| seen.pid);
            for pid in strays.chain([self.birth.pid]).filter_map(Pid::from_raw) {
                // Gone already, or not ours: both are well.
                let _ = waitid(
                    WaitId::Pid(pid),
                    WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
                );
            }
        }
    }

    fn everybody() -> BTreeMap<i32, Seen> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return BTreeMap::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(stat)
            .map(|seen| (seen.pid, seen))
            .collect()
    }

    fn stat(pid: i32) -> Option<Seen> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in brackets and may hold anything; nothing after it does.
        let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let fields: Vec<&str> = std::str::from_utf8(&stat[after..])
            .ok()?
            .split_ascii_whitespace()
            .collect();
        let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
        Some(Seen {
            pid,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            started: fields.get(19)?.parse().ok()?,
            zombie: matches!(*fields.first()?, "Z" | "X"),
        })
    }

    fn pidfd(seen: &Seen) -> Option<OwnedFd> {
        let fd = pidfd_open(Pid::from_raw(seen.pid)?, PidfdFlags::empty()).ok()?;
        // The number may have passed to another since we looked.
        (started(seen.pid) == Some(seen.started)).then_some(fd)
    }

    /// Waits until all of these are gone, at most so long.
    fn wait(fds: &[Option<OwnedFd>], limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut open: Vec<&OwnedFd> = fds.iter().flatten().collect();
        while !open.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let mut polled: Vec<PollFd<'_>> = open
                .iter()
                .map(|fd| PollFd::new(*fd, PollFlags::IN))
                .collect();
            let Ok(left) = Timespec::try_from(left) else {
                return false;
            };
            match poll(&mut polled, Some(&left)) {
                Ok(_) => {}
                Err(error) if error == rustix::io::Errno::INTR => {}
                Err(_) => return false,
            }
            let gone: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
            let mut gone = gone.into_iter();
            open.retain(|_| !gone.next().unwrap_or(false));
        }
        true
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use platform::{adopt, started};

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::{Birth, Ending, signal_group};
    use rustix::process::{
        Pid, Signal, WaitOptions, test_kill_process, test_kill_process_group, waitpid,
    };
    use std::time::{Duration, Instant};

    /// How long a killed process may take to be gone.
    const REAPED: Duration = Duration::from_secs(1);

    /// There is nothing like a sub-reaper here.
    pub(in super::super) fn adopt() {}

    /// Not known here.
    pub(in super::super) fn started(_pid: i32) -> Option<u64> {
        None
    }

    /// Our own group.
    pub(super) fn own_group() -> Option<i32> {
        Some(rustix::process::getpgrp().as_raw_nonzero().get())
    }

    /// Not known here.
    pub(super) fn now() -> Option<u64> {
        None
    }

    /// Not known here.
    pub(super) fn younger(_birth: &Birth, _than: u64) -> bool {
        true
    }

    /// Whether a process runs; when it started is not known here.
    pub(super) fn runs(pid: i32, _at: u64) -> bool {
        Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok())
    }

    /// Whether anybody of the group lives.
    pub(super) fn lives(birth: &Birth) -> bool {
        Pid::from_raw(birth.pid).is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    /// Ends the group.
    pub(super) fn end(birth: &Birth, ending: Ending) {
        if !gone(birth, ending.patience) {
            signal_group(birth.pid, ending.gentle);
            if !gone(birth, ending.grace) {
                signal_group(birth.pid, Signal::KILL);
                gone(birth, REAPED);
            }
        }
    }

    /// Whether the group is gone within this time. There is nothing to wait on for a whole group here.
    fn gone(birth: &Birth, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            // Nobody else waits for it any more. One that is not ours is not found, which is well.
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
