//! The processes of this machine, as `/proc` shows them.
//!
//! Input: process ids. Output: parents, sessions, start times, and signals that reach only the process that was seen.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, geteuid, getpid, kill_process, pidfd_open, pidfd_send_signal,
};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// One process, from `/proc/<pid>/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// The start time, in clock ticks since boot.
    pub(super) started: u64,
    pub(super) zombie: bool,
}

/// Returns every visible process, by its id.
pub(super) fn everybody() -> BTreeMap<i32, Seen> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(stat)
        .map(|seen| (seen.pid, seen))
        .collect()
}

/// Returns all living descendants of a process.
pub(super) fn descendants(of: i32) -> Vec<Seen> {
    let found = by_lists_of_children(of).unwrap_or_else(|| among_everybody(of));
    let found = found.into_iter().filter(|pid| *pid != of);
    found.filter_map(stat).filter(|seen| !seen.zombie).collect()
}

/// Reads the lists of children recursively: fast enough to catch a process that starts its successor and exits. `None`
/// if the system keeps no such lists.
fn by_lists_of_children(of: i32) -> Option<BTreeSet<i32>> {
    let mut found = BTreeSet::from([of]);
    let mut next = vec![of];
    while let Some(pid) = next.pop() {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for thread in threads.flatten() {
            match std::fs::read_to_string(thread.path().join("children")) {
                Ok(list) => {
                    let children = list.split_ascii_whitespace().filter_map(|c| c.parse().ok());
                    next.extend(children.filter(|child| found.insert(*child)));
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && pid == of => {
                    // A thread that has just ended has no list either.
                    if thread.path().exists() {
                        return None;
                    }
                }
                Err(_) => {}
            }
        }
    }
    Some(found)
}

fn among_everybody(of: i32) -> BTreeSet<i32> {
    let all = everybody();
    let mut found = BTreeSet::from([of]);
    loop {
        let before = found.len();
        let children = all.values().filter(|seen| found.contains(&seen.parent));
        let children: Vec<i32> = children.map(|seen| seen.pid).collect();
        found.extend(children);
        if found.len() == before {
            return found;
        }
    }
}

/// Reads one process.
pub(super) fn stat(pid: i32) -> Option<Seen> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything; nothing after it contains a parenthesis.
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

/// Returns the id of this process.
pub(super) fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// Returns the start time of a process.
pub(super) fn started(pid: i32) -> Option<u64> {
    stat(pid).map(|seen| seen.started)
}

/// Returns whether a process belongs to the user of this one.
pub(super) fn is_own_user(pid: i32) -> bool {
    std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == geteuid().as_raw())
}

/// Returns whether a process was started with this `NAME=value` in its environment.
pub(super) fn has_variable(pid: i32, variable: &[u8]) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|v| v == variable))
}

/// Returns this process and all its ancestors: none of them is ever signaled.
pub(super) fn lineage(all: &BTreeMap<i32, Seen>) -> BTreeSet<i32> {
    let mut line = BTreeSet::new();
    let mut at = own_pid();
    while at > 0 && line.insert(at) {
        at = all.get(&at).map_or(0, |seen| seen.parent);
    }
    line
}

/// Opens a handle on the process that was seen; `None` if it is gone or its id was reused.
pub(super) fn handle(seen: &Seen) -> Option<OwnedFd> {
    let fd = pidfd_open(Pid::from_raw(seen.pid)?, PidfdFlags::empty()).ok()?;
    (started(seen.pid) == Some(seen.started)).then_some(fd)
}

/// Signals the process that was seen. On systems without process handles it uses the id, right after checking it again.
pub(super) fn strike(seen: &Seen, signal: Signal) {
    let Some(pid) = Pid::from_raw(seen.pid).filter(|_| seen.pid > 1 && seen.started != 0) else {
        return;
    };
    // It may be gone already, or belong to another user: nothing can be done about either.
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) if started(seen.pid) == Some(seen.started) => {
            let _ = pidfd_send_signal(fd, signal);
        }
        Err(Errno::NOSYS) if started(seen.pid) == Some(seen.started) => {
            let _ = kill_process(pid, signal);
        }
        _ => {}
    }
}

/// Waits until all of these processes have exited; returns false on timeout.
pub(super) fn wait(handles: &[Option<OwnedFd>], limit: Duration) -> bool {
    let until = Instant::now() + limit;
    let mut open: Vec<&OwnedFd> = handles.iter().flatten().collect();
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
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
        let gone: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut gone = gone.into_iter();
        open.retain(|_| !gone.next().unwrap_or(false));
    }
    true
}
