//! A pool of idle processes. Backends a process out again to a caller that would start it in the same way; stops it if it
//! is not used for a while.

use super::{LEAVE, Process};
use crate::transport::process::Spec;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of idle processes; one more evicts the oldest. An agent takes 0.1 to 0.7 GB.
const WAITING_MAX: usize = 8;

/// The idle processes of one [`crate::Backends`]; dropping it stops them.
pub(crate) struct Pool {
    waiting: Mutex<Vec<Waiting>>,
    keep: Duration,
    /// Whether a service rejected the cache marks in our prompts.
    unmarked: AtomicBool,
    /// The programs that cannot be kept running.
    refused: Mutex<BTreeSet<String>>,
}

struct Waiting {
    process: Process,
    since: Instant,
}

impl Pool {
    /// Creates a pool that keeps unused processes for the given time; zero keeps none.
    pub(crate) fn new(keep: Duration) -> Self {
        Self {
            waiting: Mutex::default(),
            keep,
            unmarked: AtomicBool::default(),
            refused: Mutex::default(),
        }
    }

    /// Returns whether prompts may carry cache marks.
    pub(super) fn marks(&self) -> bool {
        !self.unmarked.load(Relaxed)
    }

    /// Returns whether a program could not be kept running: it is started for each question.
    pub(super) fn refuses(&self, program: &str) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.contains(program)
    }

    /// Records that a program cannot be kept running. Returns whether that is new.
    pub(super) fn refuse(&self, program: &str) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(program.to_owned())
    }

    /// Leaves marks out from now on: a service rejected them.
    pub(super) fn mark_no_more(&self) {
        self.unmarked.store(true, Relaxed);
    }

    /// Takes the most recently used living process that was started in this way.
    pub(super) fn take(&self, spec: &Spec) -> Option<Process> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(at) = waiting
            .iter()
            .rposition(|waiting| alike(&waiting.process.spec, spec))
        {
            let mut process = waiting.remove(at).process;
            if !process.running.gone() {
                process.running.wait_for(Duration::ZERO);
                return Some(process);
            }
        }
        None
    }

    /// Returns whether processes are kept, but none that was started in this way for this member.
    pub(super) fn lacks(&self, spec: &Spec) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut specs = waiting.iter().map(|waiting| &waiting.process.spec);
        !self.keep.is_zero() && !specs.any(|one| alike(one, spec) && one.label == spec.label)
    }

    /// Adds a process. Must be called inside a tokio runtime; otherwise the process ends.
    pub(super) fn put(self: &Arc<Self>, mut process: Process) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.keep.is_zero() {
            return;
        }
        // An idle process exits on its own when its stdin is closed.
        process.running.wait_for(LEAVE);
        let since = Instant::now();
        let gone = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push(Waiting { process, since });
            (waiting.len() > WAITING_MAX).then(|| waiting.remove(0))
        };
        drop(gone);
        let (pool, keep) = (Arc::downgrade(self), self.keep);
        runtime.spawn(async move {
            tokio::time::sleep_until(since + keep).await;
            if let Some(pool) = pool.upgrade() {
                pool.end_idle();
            }
        });
    }

    fn end_idle(&self) {
        let now = Instant::now();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|waiting| now < waiting.since + self.keep);
    }
}

/// Returns whether processes with these two launches can replace each other. The member does not matter, because each
/// question has its own session; file access, and the identity of the tool server, do.
fn alike(one: &Spec, other: &Spec) -> bool {
    one.program == other.program
        && one.args == other.args
        && one.env == other.env
        && one.folder == other.folder
        && one.rights == other.rights
        && one.tools == other.tools
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::process::Gentle;
    use crate::transport::rights::Rights;

    #[test]
    fn a_process_is_not_used_for_other_rights_or_in_the_name_of_another_member() {
        let spec = Spec {
            label: "ada".into(),
            program: "/bin/sh".into(),
            args: Vec::new(),
            env: Vec::new(),
            folder: "/w".into(),
            input: None,
            rights: Some(Rights::default()),
            tools: ["kd", "mcp", "--as", "ada"].map(str::to_owned).into(),
            gentle: Gentle::Terminate,
            grace: Duration::ZERO,
        };
        let with = |change: fn(&mut Spec)| {
            let mut other = spec.clone();
            change(&mut other);
            alike(&spec, &other)
        };
        assert!(with(|other| other.label = "bob".into()));
        assert!(!with(|other| other.rights = None));
        assert!(!with(|other| other.tools[3] = "bob".into()));
        assert!(!with(|other| other.tools = Vec::new()));
    }
}
