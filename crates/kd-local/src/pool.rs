//! A pool of parked threads that compute the pieces of one computation.
//!
//! Takes a number of pieces and a closure; every piece has been computed when the call returns. Pieces are claimed one
//! by one and the caller computes too, so nothing waits for a thread that the system has not scheduled yet: on a busy
//! machine the caller simply does more of the work. The result does not depend on which thread computes a piece.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Number of checks that a waiting thread makes before it parks: some microseconds, the usual gap between two regions
/// of a step.
const LOOKS: usize = 2_000;
/// Interval between reads of the system load.
const LOAD_EVERY: Duration = Duration::from_secs(2);

/// A few parked threads; the caller of [`Pool::run`] is one more.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    active: AtomicUsize,
    load_read: Mutex<Option<Instant>>,
}

struct Shared {
    state: Mutex<State>,
    /// Signaled when a region begins or the pool is dropped.
    begun: Condvar,
    /// Signaled when the last helper leaves a region.
    left: Condvar,
    /// Copy of `State::epoch`, readable without the lock.
    epoch: AtomicUsize,
    /// Copy of `State::inside`, readable without the lock.
    inside: AtomicUsize,
}

#[derive(Default)]
struct State {
    epoch: usize,
    region: Option<Arc<Region>>,
    seats: usize,
    inside: usize,
    parked: usize,
    quit: bool,
}

struct Region {
    work: &'static (dyn Fn(usize) + Sync),
    next: AtomicUsize,
    pieces: usize,
    panic: Mutex<Option<Box<dyn std::any::Any + Send>>>,
}

impl Region {
    fn take_part(&self) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let piece = self.next.fetch_add(1, Ordering::Relaxed);
                if piece >= self.pieces {
                    return;
                }
                (self.work)(piece);
            }
        }));
        if let Err(panic) = outcome {
            self.next.store(self.pieces, Ordering::Relaxed);
            lock(&self.panic).get_or_insert(panic);
        }
    }
}

impl Pool {
    /// Creates a pool of `threads` threads including the caller; at least one.
    pub(crate) fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            begun: Condvar::new(),
            left: Condvar::new(),
            epoch: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
        });
        let workers = (1..threads.max(1))
            .filter_map(|n| {
                let shared = Arc::clone(&shared);
                // If the system refuses another thread, the pool has fewer: slower but correct.
                std::thread::Builder::new()
                    .name(format!("kd-local-{n}"))
                    .spawn(move || help(&shared))
                    .ok()
            })
            .collect::<Vec<_>>();
        let active = AtomicUsize::new(workers.len() + 1);
        Self {
            shared,
            workers,
            active,
            load_read: Mutex::new(None),
        }
    }

    /// Returns the number of threads that take part in the next region, including the caller.
    pub(crate) fn threads(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Reads the system load, at most every two seconds, and uses fewer threads while other processes need the cores.
    pub(crate) fn breathe(&self) {
        let all = self.workers.len() + 1;
        let mut read = lock(&self.load_read);
        if all == 1 || read.is_some_and(|at| at.elapsed() < LOAD_EVERY) {
            return;
        }
        *read = Some(Instant::now());
        if let Some(load) = load_of_machine() {
            self.active
                .store(threads_under_load(all, cores(), load), Ordering::Relaxed);
        }
    }

    /// Computes `work(0)` to `work(pieces - 1)`, each once, on this and other threads, and returns when all are done.
    ///
    /// A panic in `work` is resumed here, after every thread has left.
    pub(crate) fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        let helpers = self.threads().min(pieces).saturating_sub(1);
        if helpers == 0 {
            (0..pieces).for_each(work);
            return;
        }
        let region = Arc::new(Region {
            work: outlive(work),
            next: AtomicUsize::new(0),
            pieces,
            panic: Mutex::new(None),
        });
        {
            let mut state = lock(&self.shared.state);
            state.epoch += 1;
            state.region = Some(Arc::clone(&region));
            state.seats = helpers;
            self.shared.epoch.store(state.epoch, Ordering::Release);
            if state.parked > 0 {
                self.shared.begun.notify_all();
            }
        }
        // Every claimed piece runs inside `take_part`, which does not unwind, so the wait below always happens
        // before `work` goes out of scope.
        region.take_part();
        self.shared.wait_until_left();
        if let Some(panic) = lock(&region.panic).take() {
            resume_unwind(panic);
        }
    }

    /// Splits `out` into chunks of `len` and computes each: `work(index of the chunk, the chunk)`.
    pub(crate) fn run_chunks<T: Send>(
        &self,
        out: &mut [T],
        len: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        if out.len() <= len || self.threads() == 1 {
            out.chunks_mut(len)
                .enumerate()
                .for_each(|(i, chunk)| work(i, chunk));
            return;
        }
        let chunks: Vec<Mutex<&mut [T]>> = out.chunks_mut(len).map(Mutex::new).collect();
        self.run(chunks.len(), &|i| work(i, &mut lock(&chunks[i])));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).quit = true;
        self.shared.epoch.fetch_add(1, Ordering::Release);
        self.shared.begun.notify_all();
        for worker in self.workers.drain(..) {
            // A helper catches every panic of the work, so there is no result to check.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn wait_until_left(&self) {
        lock(&self.state).region = None;
        for _ in 0..LOOKS {
            if self.inside.load(Ordering::Acquire) == 0 {
                return;
            }
            std::hint::spin_loop();
        }
        let mut state = lock(&self.state);
        while state.inside > 0 {
            state = self
                .left
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Returns the threads to use out of `all` on a machine with `cores` cores under `load` (which includes our own
/// threads).
fn threads_under_load(all: usize, cores: usize, load: f64) -> usize {
    let others = load - all as f64;
    if others >= 2.0 * cores as f64 {
        1
    } else if others >= cores as f64 {
        all.div_ceil(2)
    } else {
        all
    }
}

/// Returns the number of runnable processes, averaged over the last minute; `None` if the system does not report it.
fn load_of_machine() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Returns the number of physical cores; if it is unknown, the available parallelism.
pub(crate) fn cores() -> usize {
    let offered = std::thread::available_parallelism().map_or(1, usize::from);
    let Ok(text) = std::fs::read_to_string("/proc/cpuinfo") else {
        return offered;
    };
    let mut seen = std::collections::BTreeSet::new();
    let mut package = "";
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        match key.trim() {
            "physical id" => package = value.trim(),
            "core id" => {
                seen.insert((package, value.trim()));
            }
            _ => {}
        }
    }
    if seen.is_empty() {
        offered
    } else {
        seen.len().min(offered)
    }
}

fn help(shared: &Shared) {
    let mut seen = 0;
    loop {
        for _ in 0..LOOKS {
            if shared.epoch.load(Ordering::Acquire) != seen {
                break;
            }
            std::hint::spin_loop();
        }
        let mut state = lock(&shared.state);
        while state.epoch == seen && !state.quit {
            state.parked += 1;
            state = shared
                .begun
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.parked -= 1;
        }
        if state.quit {
            return;
        }
        seen = state.epoch;
        if state.seats == 0 {
            continue;
        }
        let Some(region) = state.region.clone() else {
            continue;
        };
        state.seats -= 1;
        state.inside += 1;
        shared.inside.store(state.inside, Ordering::Release);
        drop(state);
        region.take_part();
        let mut state = lock(&shared.state);
        state.inside -= 1;
        shared.inside.store(state.inside, Ordering::Release);
        if state.inside == 0 {
            shared.left.notify_one();
        }
    }
}

/// Erases the lifetime of a region's work.
#[allow(unsafe_code)]
fn outlive(work: &(dyn Fn(usize) + Sync)) -> &'static (dyn Fn(usize) + Sync) {
    // SAFETY: only `Pool::run` calls this. It takes the region away and waits until no helper is inside before it
    // returns, on every path: `take_part` catches panics, and a helper that comes later finds no region to enter.
    // A helper that still holds the `Arc<Region>` after leaving only drops it, which does not touch `work`.
    unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) }
}

/// Locks `mutex`, ignoring poisoning: every state is consistent between two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_computed_once() {
        for threads in [1, 2, 5] {
            let pool = Pool::new(threads);
            for pieces in [0, 1, 2, 7, 100] {
                let counts: Vec<AtomicUsize> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
                pool.run(pieces, &|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn chunks_are_disjoint_and_whole() {
        let pool = Pool::new(3);
        let mut out = vec![0usize; 1003];
        for _ in 0..50 {
            pool.run_chunks(&mut out, 10, |i, chunk| {
                chunk
                    .iter_mut()
                    .enumerate()
                    .for_each(|(j, v)| *v += i * 10 + j);
            });
        }
        assert!(out.iter().enumerate().all(|(i, v)| *v == 50 * i));
    }

    #[test]
    fn a_panic_comes_out_and_the_pool_lives_on() {
        let pool = Pool::new(2);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run(64, &|i| assert!(i != 13, "unlucky"));
        }));
        assert!(outcome.is_err());
        let sum = AtomicUsize::new(0);
        pool.run(64, &|i| {
            sum.fetch_add(i, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 64 * 63 / 2);
    }

    #[test]
    fn a_busy_machine_gets_its_cores_back() {
        assert_eq!(threads_under_load(8, 8, 8.0), 8);
        assert_eq!(threads_under_load(8, 8, 16.0), 4);
        assert_eq!(threads_under_load(8, 8, 24.0), 1);
        assert_eq!(threads_under_load(1, 2, 0.0), 1);
    }
}
