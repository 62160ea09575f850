//! The threads that write to disk for all sessions of the process.
//!
//! A session has a serial queue: its orders, and the state that carries them out. A queue with orders waits for a free
//! thread of the pool, so a process with hundreds of sessions needs only a few threads. The orders of one queue are carried
//! out in sequence, by one thread at a time.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum number of threads, and so of sessions whose writes can wait for the disk or another process at the same time.
const THREADS_MAX: usize = 16;

/// Carries out the orders of a queue.
pub(crate) trait Work: Send + 'static {
    /// Something to do.
    type Order: Send + 'static;

    /// Carries out orders in sequence. May postpone effects until [`Work::end_of_orders`].
    fn carry_out_all(&mut self, orders: Vec<Self::Order>);

    /// Called when no orders are left for now.
    fn end_of_orders(&mut self);

    /// Called in place of both after a panic in one of them, also for later orders: reports the
    /// orders that were not carried out, so that no caller waits for them.
    fn give_up(&mut self, orders: Vec<Self::Order>);
}

/// The orders of one session, and the writer that carries them out.
pub(crate) struct SerialQueue<W: Work> {
    state: Mutex<State<W::Order>>,
    /// Locked by the thread that works here; `None` once the queue is closed and its last orders are carried out.
    worker: Mutex<Option<W>>,
}

struct State<O> {
    orders: Vec<O>,
    /// Whether the queue waits for a thread, or a thread works here.
    is_active: bool,
    is_closed: bool,
    /// Whether the worker has panicked.
    is_broken: bool,
    /// Whether [`written`] waits for it: from [`SerialQueue::close`] until its last orders are carried out.
    is_leaving: bool,
}

impl<W: Work> SerialQueue<W> {
    /// Opens a queue.
    ///
    /// # Errors
    /// If there is no thread, and none can be started.
    pub(crate) fn open(worker: W) -> io::Result<Arc<Self>> {
        POOL.start_first()?;
        Ok(Arc::new(Self {
            state: Mutex::new(State {
                orders: Vec::new(),
                is_active: false,
                is_closed: false,
                is_broken: false,
                is_leaving: false,
            }),
            worker: Mutex::new(Some(worker)),
        }))
    }

    /// Adds orders. Does not wait.
    pub(crate) fn put(self: &Arc<Self>, orders: impl IntoIterator<Item = W::Order>) {
        let mut state = lock(&self.state);
        state.orders.extend(orders);
        self.activate(state);
    }

    /// Lets the worker carry out the orders so far, and drops it on its thread.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        if !std::mem::replace(&mut state.is_leaving, true) {
            lock(&POOL.waiting).leaving += 1;
        }
        self.activate(state);
    }

    fn activate(self: &Arc<Self>, mut state: MutexGuard<'_, State<W::Order>>) {
        if !std::mem::replace(&mut state.is_active, true) {
            drop(state);
            POOL.schedule(self.clone());
        }
    }
}

/// A queue that waits for a thread.
trait Waits: Send + Sync {
    /// Carries out the orders of the queue. Returns whether there are more by now.
    fn run(&self) -> bool;
}

impl<W: Work> Waits for SerialQueue<W> {
    fn run(&self) -> bool {
        let mut place = lock(&self.worker);
        let done = catch_unwind(AssertUnwindSafe(|| {
            let Some(worker) = place.as_mut() else {
                lock(&self.state).orders.clear();
                return;
            };
            loop {
                let (orders, is_broken) = {
                    let mut state = lock(&self.state);
                    (std::mem::take(&mut state.orders), state.is_broken)
                };
                match (is_broken, orders.is_empty()) {
                    (true, true) => return,
                    (true, false) => worker.give_up(orders),
                    (false, true) => break,
                    (false, false) => worker.carry_out_all(orders),
                }
            }
            worker.end_of_orders();
        }));
        if done.is_err() {
            let orders = {
                let mut state = lock(&self.state);
                state.is_broken = true;
                std::mem::take(&mut state.orders)
            };
            if let Some(worker) = place.as_mut() {
                let _ = catch_unwind(AssertUnwindSafe(|| worker.give_up(orders)));
            }
        }
        let mut state = lock(&self.state);
        state.is_active = !state.orders.is_empty();
        if state.is_active || !state.is_closed {
            return state.is_active;
        }
        let was_leaving = std::mem::take(&mut state.is_leaving);
        drop(state);
        // Its drop may remove files.
        let _ = catch_unwind(AssertUnwindSafe(|| *place = None));
        if was_leaving {
            lock(&POOL.waiting).leaving -= 1;
            POOL.left.notify_all();
        }
        false
    }
}

/// The threads, and the queues that wait for one, the longest waiting first.
struct Pool {
    waiting: Mutex<Waiting>,
    joined: Condvar,
    left: Condvar,
}

struct Waiting {
    queues: VecDeque<Arc<dyn Waits>>,
    threads: usize,
    /// Threads without work.
    idle: usize,
    /// Closed queues whose last orders are not carried out.
    leaving: usize,
}

static POOL: Pool = Pool {
    waiting: Mutex::new(Waiting {
        queues: VecDeque::new(),
        threads: 0,
        idle: 0,
        leaving: 0,
    }),
    joined: Condvar::new(),
    left: Condvar::new(),
};

/// Waits at most `limit` until the orders of ended sessions are on disk. Returns whether it is.
pub fn written(limit: Duration) -> bool {
    let waiting = lock(&POOL.waiting);
    let (waiting, _) = POOL
        .left
        .wait_timeout_while(waiting, limit, |waiting| waiting.leaving > 0)
        .unwrap_or_else(PoisonError::into_inner);
    waiting.leaving == 0
}

impl Pool {
    /// Starts the first thread, if there is none.
    fn start_first(&self) -> io::Result<()> {
        let mut waiting = lock(&self.waiting);
        match waiting.threads {
            0 => start(&mut waiting),
            _ => Ok(()),
        }
    }

    fn schedule(&self, queue: Arc<dyn Waits>) {
        let mut waiting = lock(&self.waiting);
        waiting.queues.push_back(queue);
        if waiting.queues.len() <= waiting.idle {
            drop(waiting);
            self.joined.notify_one();
        } else if waiting.threads < THREADS_MAX {
            // If no thread can be started now, the others are here.
            let _ = start(&mut waiting);
        }
    }

    /// Runs the waiting queues, one after the other.
    fn work(&self) {
        let mut waiting = lock(&self.waiting);
        loop {
            let Some(queue) = waiting.queues.pop_front() else {
                waiting.idle += 1;
                waiting = self
                    .joined
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
                waiting.idle -= 1;
                continue;
            };
            drop(waiting);
            let has_more = queue.run();
            waiting = lock(&self.waiting);
            if has_more {
                waiting.queues.push_back(queue);
            }
        }
    }
}

/// Starts a thread; its place is counted.
fn start(waiting: &mut Waiting) -> io::Result<()> {
    thread::Builder::new()
        .name("kd-scribe".into())
        .spawn(|| POOL.work())?;
    waiting.threads += 1;
    Ok(())
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::collections::BTreeSet;
    use std::sync::mpsc::{Sender, channel};
    use std::thread::{ThreadId, current};

    /// Tells which thread carried out which orders, and when it is dropped.
    struct Recorder {
        told: Sender<Told>,
        ends: usize,
    }

    #[derive(Debug, PartialEq)]
    enum Told {
        Order(u32, ThreadId),
        GivenUp(u32),
        Dropped(usize),
    }

    /// This order panics.
    const BAD: u32 = u32::MAX;

    impl Work for Recorder {
        type Order = u32;

        fn carry_out_all(&mut self, orders: Vec<u32>) {
            for order in orders {
                assert_ne!(order, BAD, "a bad order");
                self.told.send(Told::Order(order, current().id())).unwrap();
            }
        }

        fn end_of_orders(&mut self) {
            self.ends += 1;
        }

        fn give_up(&mut self, orders: Vec<u32>) {
            for order in orders {
                self.told.send(Told::GivenUp(order)).unwrap();
            }
        }
    }

    impl Drop for Recorder {
        fn drop(&mut self) {
            let _ = self.told.send(Told::Dropped(self.ends));
        }
    }

    fn queue() -> (Arc<SerialQueue<Recorder>>, std::sync::mpsc::Receiver<Told>) {
        let (told, heard) = channel();
        (
            SerialQueue::open(Recorder { told, ends: 0 }).unwrap(),
            heard,
        )
    }

    #[test]
    fn hundreds_of_queues_have_a_few_threads_and_each_keeps_its_order() {
        let queues: Vec<_> = (0..300).map(|_| queue()).collect();
        for order in 0..50 {
            for (queue, _) in &queues {
                queue.put([2 * order, 2 * order + 1]);
            }
        }
        let mut threads = BTreeSet::new();
        for (queue, heard) in queues {
            queue.close();
            let mut told = Vec::new();
            let ends = loop {
                match heard.recv().unwrap() {
                    Told::Order(order, thread) => {
                        told.push(order);
                        threads.insert(format!("{thread:?}"));
                    }
                    Told::GivenUp(order) => panic!("{order}"),
                    Told::Dropped(ends) => break ends,
                }
            };
            assert_eq!(told, (0..100).collect::<Vec<_>>());
            assert!(ends > 0);
        }
        assert!(threads.len() <= THREADS_MAX, "{}", threads.len());
    }

    #[test]
    fn orders_given_together_are_ended_together() {
        let (queue, heard) = queue();
        queue.put([1, 2, 3]);
        queue.close();
        let told: Vec<Told> = heard.iter().take(4).collect();
        assert!(matches!(told[3], Told::Dropped(1 | 2)), "{told:?}");
    }

    #[test]
    fn what_closed_queues_had_ordered_can_be_waited_for() {
        let (go, wait) = channel::<()>();
        struct Slow(std::sync::mpsc::Receiver<()>);
        impl Work for Slow {
            type Order = ();
            fn carry_out_all(&mut self, _: Vec<()>) {
                let _ = self.0.recv();
            }
            fn end_of_orders(&mut self) {}
            fn give_up(&mut self, _: Vec<()>) {}
        }
        let queue = SerialQueue::open(Slow(wait)).unwrap();
        queue.put([()]);
        queue.close();
        assert!(!written(Duration::ZERO), "its order is not carried out");
        drop(go);
        assert!(written(Duration::from_secs(60)));
    }

    #[test]
    fn a_panic_ends_one_queue_and_no_thread() {
        for _ in 0..2 * THREADS_MAX {
            let (queue, heard) = queue();
            queue.put([1, BAD]);
            assert!(matches!(heard.recv().unwrap(), Told::Order(1, _)));
            // What is ordered later is given up too, not forgotten.
            queue.put([3]);
            assert_eq!(heard.recv().unwrap(), Told::GivenUp(3));
            queue.close();
            assert_eq!(heard.recv().unwrap(), Told::Dropped(0));
        }
        let (queue, heard) = queue();
        queue.put([4]);
        assert!(matches!(heard.recv().unwrap(), Told::Order(4, _)));
    }

    #[test]
    fn what_is_put_in_a_closed_queue_is_dropped() {
        let (queue, heard) = queue();
        queue.close();
        assert!(matches!(heard.recv().unwrap(), Told::Dropped(_)));
        queue.put([1]);
        drop(queue);
        assert!(heard.recv().is_err());
    }
}
