//! The second connection of a worker, on a separate thread: requests are announced from threads that run asynchronous
//! tasks. Requests that wait for it at the same time are recorded in one transaction.

use super::address::Store;
use super::error::FleetError;
use super::link::Link;
use super::money::{self, Request, Sending};
use kd_core::ledger::NotSent;
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Requests that are recorded together.
const TOGETHER: usize = 256;

/// A call to the database.
type Call = Box<dyn FnOnce(&mut Link) + Send>;

/// Gets whether a request may be sent, or why that is not known.
type Then = Box<dyn FnOnce(Result<Sending, NotSent>) + Send>;

enum Task {
    Announce(Request, Then),
    Call(Call),
}

/// The second connection of a worker.
#[derive(Clone)]
pub(super) struct Clerk {
    tasks: Sender<Task>,
}

impl Clerk {
    pub(super) fn start(store: &Store, lease: Duration) -> Result<Self, FleetError> {
        let link = Link::open(store, lease)?;
        let (tasks, todo) = channel();
        std::thread::Builder::new()
            .name("kd-fleet".into())
            .spawn(move || work(link, &todo))
            .map_err(|e| FleetError::Lost(e.to_string()))?;
        Ok(Self { tasks })
    }

    /// Makes a call, and hands its result to `then` on the thread of the connection.
    pub(super) fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Link) -> Result<T, FleetError> + Send + 'static,
        then: impl FnOnce(Result<T, FleetError>) + Send + 'static,
    ) {
        // If the thread has ended, the call is dropped, and with it what waits for its result.
        let _ = self
            .tasks
            .send(Task::Call(Box::new(move |link| then(call(link)))));
    }

    /// Announces a request, and calls `then` on the thread of the connection with whether it may be sent.
    pub(super) fn announce(
        &self,
        request: Request,
        then: impl FnOnce(Result<Sending, NotSent>) + Send + 'static,
    ) {
        let _ = self.tasks.send(Task::Announce(request, Box::new(then)));
    }
}

fn work(mut link: Link, todo: &Receiver<Task>) {
    let mut next = todo.recv().ok();
    while let Some(task) = next.take() {
        match task {
            Task::Call(call) => call(&mut link),
            Task::Announce(request, then) => {
                let mut requests = vec![request];
                let mut thens = vec![then];
                while next.is_none()
                    && requests.len() < TOGETHER
                    && let Ok(task) = todo.try_recv()
                {
                    match task {
                        Task::Announce(request, then) => {
                            requests.push(request);
                            thens.push(then);
                        }
                        call => next = Some(call),
                    }
                }
                announce(&mut link, &requests, thens);
            }
        }
        next = next.or_else(|| todo.recv().ok());
    }
}

fn announce(link: &mut Link, requests: &[Request], thens: Vec<Then>) {
    for (then, sending) in thens.into_iter().zip(sending(link, requests)) {
        then(sending);
    }
}

/// Records requests; returns for each whether it may be sent.
fn sending(link: &mut Link, requests: &[Request]) -> Vec<Result<Sending, NotSent>> {
    let mut answers = match link.statement(|tx| money::sending(tx, requests)) {
        Ok(all) => all,
        Err(error) => return vec![Err(lost(&error)); requests.len()],
    };
    let mut limited: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, request) in requests.iter().enumerate() {
        if answers.get(at) == Some(&Sending::Limited) {
            limited.entry(&request.batch).or_default().push(at);
        }
    }
    let mut failed = HashMap::new();
    for (batch, places) in limited {
        let some: Vec<&Request> = places.iter().filter_map(|at| requests.get(*at)).collect();
        match link.tx(|tx| money::sending_limited(tx, batch, &some)) {
            Ok(all) => {
                for (at, answer) in places.into_iter().zip(all) {
                    if let Some(one) = answers.get_mut(at) {
                        *one = answer;
                    }
                }
            }
            Err(error) => failed.extend(places.into_iter().map(|at| (at, lost(&error)))),
        }
    }
    let answers = answers.into_iter().enumerate();
    answers
        .map(|(at, answer)| failed.remove(&at).map_or(Ok(answer), Err))
        .collect()
}

fn lost(error: &FleetError) -> NotSent {
    NotSent::Lost(error.to_string())
}
