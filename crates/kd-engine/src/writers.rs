//! The threads that write to disk for all sessions of the process.
//!
//! A session has a desk: a queue of orders, and the state that carries them out. A desk with orders waits in line for a
//! free thread, so a process with hundreds of sessions needs only a few threads. The orders of one desk are carried out in
//! sequence, by one thread at a time.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum number of threads: so many can wait for the disk, or for another process, at the same time.
const THREADS_MAX: usize = 16;

/// What carries out the orders of a desk.
pub(crate) trait Work: Send + 'static {
    /// Something to do.
    type Order: Send + 'static;

    /// Carries out orders in sequence. May postpone effects until [`Work::end_of_orders`].
    fn carry_out_all(&mut self, orders: Vec<Self::Order>);

    /// Called when no orders are left for now.
    fn end_of_orders(&mut self);
}

/// The orders of one session, and what carries them out.
pub(crate) struct Desk<W: Work> {
    queue: Mutex<Queue<W::Order>>,
    /// Locked by the thread that works here; `None` once the desk is closed and its last orders are carried out, or after a
    /// panic.
    worker: Mutex<Option<W>>,
}

struct Queue<O> {
    orders: Vec<O>,
    /// Whether the desk is in line, or a thread works here.
    is_active: bool,
    is_closed: bool,
    /// Whether [`written`] waits for it: from [`Desk::close`] until its last orders are carried out.
    is_leaving: bool,
}

impl<W: Work> Desk<W> {
    /// Opens a desk.
    ///
    /// # Errors
    /// If there is no thread, and none can be started.
    pub(crate) fn open(worker: W) -> io::Result<Arc<Self>> {
        LINE.staff()?;
        Ok(Arc::new(Self {
            queue: Mutex::new(Queue {
                orders: Vec::new(),
                is_active: false,
                is_closed: false,
                is_leaving: false,
            }),
            worker: Mutex::new(Some(worker)),
        }))
    }

    /// Adds orders. Does not wait.
    pub(crate) fn put(self: &Arc<Self>, orders: impl IntoIterator<Item = W::Order>) {
        let mut queue = lock(&self.queue);
        queue.orders.extend(orders);
        self.activate(queue);
    }

    /// Lets the worker carry out the orders so far, and drops it on its thread.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut queue = lock(&self.queue);
        queue.is_closed = true;
        if !std::mem::replace(&mut queue.is_leaving, true) {
            lock(&LINE.desks).leaving += 1;
        }
        self.activate(queue);
    }

    fn activate(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue<W::Order>>) {
        if !std::mem::replace(&mut queue.is_active, true) {
            drop(queue);
            LINE.join(self.clone());
        }
    }
}

/// A desk in line.
trait InLine: Send + Sync {
    /// Carries out the orders of the desk. Returns whether there are more by now.
    fn serve(&self) -> bool;
}

impl<W: Work> InLine for Desk<W> {
    fn serve(&self) -> bool {
        let mut place = lock(&self.worker);
        let done = catch_unwind(AssertUnwindSafe(|| {
            let Some(worker) = place.as_mut() else {
                lock(&self.queue).orders.clear();
                return;
            };
            loop {
                let orders = std::mem::take(&mut lock(&self.queue).orders);
                if orders.is_empty() {
                    break;
                }
                worker.carry_out_all(orders);
            }
            worker.end_of_orders();
        }));
        let mut queue = lock(&self.queue);
        if done.is_err() {
            // As the end of a thread would: what waits for this session's orders is told by their drop.
            queue.is_closed = true;
            queue.orders.clear();
        }
        queue.is_active = !queue.orders.is_empty();
        if queue.is_active || !queue.is_closed {
            return queue.is_active;
        }
        let was_leaving = std::mem::take(&mut queue.is_leaving);
        drop(queue);
        // Its drop may remove files.
        let _ = catch_unwind(AssertUnwindSafe(|| *place = None));
        if was_leaving {
            lock(&LINE.desks).leaving -= 1;
            LINE.left.notify_all();
        }
        false
    }
}

/// Desks in line for a thread, the longest waiting first.
struct Line {
    desks: Mutex<Waiting>,
    joined: Condvar,
    left: Condvar,
}

struct Waiting {
    desks: VecDeque<Arc<dyn InLine>>,
    threads: usize,
    /// Threads without work.
    idle: usize,
    /// Closed desks whose last orders are not carried out.
    leaving: usize,
}

static LINE: Line = Line {
    desks: Mutex::new(Waiting {
        desks: VecDeque::new(),
        threads: 0,
        idle: 0,
        leaving: 0,
    }),
    joined: Condvar::new(),
    left: Condvar::new(),
};

/// Waits until what sessions that are gone had ordered is on disk, for at most `limit`. Returns whether it is.
pub fn written(limit: Duration) -> bool {
    let waiting = lock(&LINE.desks);
    let (waiting, _) = LINE
        .left
        .wait_timeout_while(waiting, limit, |waiting| waiting.leaving > 0)
        .unwrap_or_else(PoisonError::into_inner);
    waiting.leaving == 0
}

impl Line {
    /// Starts the first thread, if there is none.
    fn staff(&self) -> io::Result<()> {
        let mut waiting = lock(&self.desks);
        match waiting.threads {
            0 => start(&mut waiting),
            _ => Ok(()),
        }
    }

    fn join(&self, desk: Arc<dyn InLine>) {
        let mut waiting = lock(&self.desks);
        waiting.desks.push_back(desk);
        if waiting.desks.len() <= waiting.idle {
            drop(waiting);
            self.joined.notify_one();
        } else if waiting.threads < THREADS_MAX {
            // If no thread can be started now, the others are here.
            let _ = start(&mut waiting);
        }
    }

    /// Serves the desks in line, one after the other.
    fn work(&self) {
        let mut waiting = lock(&self.desks);
        loop {
            let Some(desk) = waiting.desks.pop_front() else {
                waiting.idle += 1;
                waiting = self
                    .joined
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
                waiting.idle -= 1;
                continue;
            };
            drop(waiting);
            let has_more = desk.serve();
            waiting = lock(&self.desks);
            if has_more {
                waiting.desks.push_back(desk);
            }
        }
    }
}

/// Starts a thread; its place is counted.
fn start(waiting: &mut Waiting) -> io::Result<()> {
    thread::Builder::new()
        .name("kd-scribe".into())
        .spawn(|| LINE.work())?;
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
    struct Clerk {
        told: Sender<Told>,
        ends: usize,
    }

    #[derive(Debug, PartialEq)]
    enum Told {
        Order(u32, ThreadId),
        Dropped(usize),
    }

    /// This order panics.
    const BAD: u32 = u32::MAX;

    impl Work for Clerk {
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
    }

    impl Drop for Clerk {
        fn drop(&mut self) {
            let _ = self.told.send(Told::Dropped(self.ends));
        }
    }

    fn desk() -> (Arc<Desk<Clerk>>, std::sync::mpsc::Receiver<Told>) {
        let (told, heard) = channel();
        (Desk::open(Clerk { told, ends: 0 }).unwrap(), heard)
    }

    #[test]
    fn hundreds_of_desks_have_a_few_threads_and_each_keeps_its_order() {
        let desks: Vec<_> = (0..300).map(|_| desk()).collect();
        for order in 0..50 {
            for (desk, _) in &desks {
                desk.put([2 * order, 2 * order + 1]);
            }
        }
        let mut threads = BTreeSet::new();
        for (desk, heard) in desks {
            desk.close();
            let mut told = Vec::new();
            let ends = loop {
                match heard.recv().unwrap() {
                    Told::Order(order, thread) => {
                        told.push(order);
                        threads.insert(format!("{thread:?}"));
                    }
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
        let (desk, heard) = desk();
        desk.put([1, 2, 3]);
        desk.close();
        let told: Vec<Told> = heard.iter().take(4).collect();
        assert!(matches!(told[3], Told::Dropped(1 | 2)), "{told:?}");
    }

    #[test]
    fn what_closed_desks_had_ordered_can_be_waited_for() {
        let (go, wait) = channel::<()>();
        struct Slow(std::sync::mpsc::Receiver<()>);
        impl Work for Slow {
            type Order = ();
            fn carry_out_all(&mut self, _: Vec<()>) {
                let _ = self.0.recv();
            }
            fn end_of_orders(&mut self) {}
        }
        let desk = Desk::open(Slow(wait)).unwrap();
        desk.put([()]);
        desk.close();
        assert!(!written(Duration::ZERO), "its order is not carried out");
        drop(go);
        assert!(written(Duration::from_secs(60)));
    }

    #[test]
    fn a_panic_ends_one_desk_and_no_thread() {
        for _ in 0..2 * THREADS_MAX {
            let (desk, heard) = desk();
            desk.put([1, BAD, 2]);
            assert!(matches!(heard.recv().unwrap(), Told::Order(1, _)));
            assert_eq!(heard.recv().unwrap(), Told::Dropped(0));
            desk.put([3]);
            desk.close();
            assert!(heard.recv().is_err());
        }
        let (desk, heard) = desk();
        desk.put([4]);
        assert!(matches!(heard.recv().unwrap(), Told::Order(4, _)));
    }

    #[test]
    fn what_is_put_on_a_closed_desk_is_dropped() {
        let (desk, heard) = desk();
        desk.close();
        assert!(matches!(heard.recv().unwrap(), Told::Dropped(_)));
        desk.put([1]);
        drop(desk);
        assert!(heard.recv().is_err());
    }
}
