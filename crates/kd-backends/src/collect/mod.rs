//! Provider batches: requests of many questions to a service with batch endpoints are gathered, handed over together, and
//! each gets its reply when the provider is done. Protocols do not know of it; other members are asked directly.
//!
//! Input: requests, as [`crate::Backends`] gets them. Output: the same deltas as of a direct request, later. A
//! [`ParcelStore`] records the submitted requests, so that nothing is paid for twice after a killed run.

mod anthropic;
mod ask;
mod deliver;
mod endpoints;
mod gemini;
mod http;
mod openai;
mod outcome;
mod pauses;
mod polls;
mod settle;
mod store;
mod wire;

pub(crate) use ask::{Collected, Counted, Untimed};
pub use deliver::cancel;
pub use store::{KeptReply, ParcelError, ParcelItem, ParcelRecord, ParcelResult, ParcelStore};

use crate::providers::Service;
use crate::spending::{Permit, Spending};
use http::Link;
use kd_core::spending::Spent;
use kd_core::{Delta, Failure, Timestamp, Usage};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OnceCell, oneshot, watch};
use tokio::time::Instant;
use wire::Endpoint;

/// Requests are submitted when no new request has come for this long and no member is being asked directly.
const QUIET: Duration = Duration::from_secs(1);
/// Requests are handed over at the latest after this time, even if a member is still being asked directly.
const GATHER_MAX: Duration = Duration::from_secs(60);
/// Time between two looks at the collected requests.
const LOOK: Duration = Duration::from_millis(100);

/// The messages of a collector to its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A provider has accepted a batch.
    Sent {
        /// The service.
        service: String,
        /// The id at the provider.
        id: String,
        /// Its requests.
        requests: usize,
    },
    /// A provider batch of an earlier run is waited for.
    Resumed {
        /// The service.
        service: String,
        /// The id at the provider.
        id: String,
        /// Its requests.
        requests: usize,
    },
    /// A provider batch is over.
    Over {
        /// The service.
        service: String,
        /// The id at the provider.
        id: String,
        /// Requests with a reply.
        replied: usize,
        /// Requests that failed.
        failed: usize,
        /// Requests that the provider did not get to, or cancelled.
        unasked: usize,
    },
    /// Something the user should know.
    Warning(String),
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let requests = |n: usize| match n {
            1 => "1 request".to_owned(),
            n => format!("{n} requests"),
        };
        match self {
            Told::Sent {
                service,
                id,
                requests: n,
            } => write!(f, "{service}: batch {id} with {}", requests(*n)),
            Told::Resumed {
                service,
                id,
                requests: n,
            } => write!(
                f,
                "{service}: waiting for batch {id} of an earlier run, with {}",
                requests(*n)
            ),
            Told::Over {
                service,
                id,
                replied,
                failed,
                unasked,
            } => {
                write!(f, "{service}: batch {id} is over, {replied} answered")?;
                if *failed > 0 {
                    write!(f, ", {failed} failed")?;
                }
                if *unasked > 0 {
                    write!(f, ", {unasked} not asked by the provider")?;
                }
                Ok(())
            }
            Told::Warning(text) => write!(f, "warning: {text}"),
        }
    }
}

/// Number of requests in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Provider batches that are not over.
    pub parcels: u64,
    /// Their requests.
    pub requests: u64,
}

/// Gathers requests for provider batches. Clones share everything.
#[derive(Clone)]
pub struct Collector(Arc<Inner>);

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Collector")
    }
}

type Tell = dyn Fn(Told) + Send + Sync;

struct Inner {
    store: Arc<dyn ParcelStore>,
    tell: Box<Tell>,
    /// Distinguishes the names of this run from the names of other runs.
    run: String,
    state: Mutex<State>,
    loaded: OnceCell<()>,
    /// The number of batches that are being handed over.
    handing: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    links: BTreeMap<String, (Arc<Service>, Spending)>,
    groups: BTreeMap<(String, String), Group>,
    /// Replies, and requests at a provider, that no request of this run has taken, by digest.
    free: HashMap<String, VecDeque<Free>>,
    /// Requests of this run that wait, by id.
    waiting: HashMap<String, oneshot::Sender<Answer>>,
    /// Provider batches of earlier runs whose service is not known yet.
    left: Vec<ParcelRecord>,
    /// Members that are being asked directly.
    direct: usize,
    /// When the last request came.
    last: Option<Instant>,
    numbers: u64,
    counts: Waiting,
}

/// Requests that are gathered for a model of a service.
struct Group {
    link: Link,
    queue: VecDeque<Item>,
    since: Instant,
}

/// A request that was gathered.
struct Item {
    id: String,
    digest: String,
    thread: Option<String>,
    /// The request, as JSON.
    bytes: Vec<u8>,
    permit: Option<Permit>,
    most: Spent,
    usage: Usage,
}

/// Something from an earlier run.
#[derive(Clone, Debug, PartialEq)]
enum Free {
    Reply(String),
    Pending(String),
    /// It stays at the provider, and cannot be had now: sent again, it would be paid for twice.
    Left(Failure),
}

/// What is left of a request that has its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// A reply in the store.
    Reply,
    /// Nothing: it may be sent again.
    Nothing,
    /// The request at the provider, whose result is not known.
    Pending,
}

/// The answer to a request.
struct Answer {
    deltas: Vec<Delta>,
    failure: Option<Failure>,
    /// The status and text of an error, to see whether the form of the answer was refused.
    error: Option<(u16, String)>,
}

impl Answer {
    fn failed(failure: Failure) -> Self {
        Self {
            deltas: Vec::new(),
            failure: Some(failure),
            error: None,
        }
    }
}

impl Collector {
    /// Creates a collector. `run` distinguishes this run from all others: letters and digits only.
    pub fn new(
        store: Arc<dyn ParcelStore>,
        run: &str,
        tell: impl Fn(Told) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            tell: Box::new(tell),
            run: run.to_owned(),
            state: Mutex::default(),
            loaded: OnceCell::new(),
            handing: watch::Sender::new(0),
        }))
    }

    /// Returns how many requests are at providers.
    pub fn waiting(&self) -> Waiting {
        self.0.lock().counts
    }

    /// Waits until no batch is being handed over: after that, everything at a provider is in the store.
    pub async fn settle(&self) {
        let mut handing = self.0.handing.subscribe();
        // The sender lives in `self`.
        let _ = handing.wait_for(|handing| *handing == 0).await;
    }

    /// Registers a service whose requests are gathered, and the account that they are charged to.
    fn know(&self, service: &Arc<Service>, spending: &Spending) {
        let mut state = self.0.lock();
        let entry = state.links.entry(service.name.clone());
        entry.or_insert_with(|| (Arc::clone(service), spending.clone()));
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the store on a thread that may block.
    async fn stored<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&dyn ParcelStore) -> Result<T, ParcelError> + Send + 'static,
    ) -> Result<T, ParcelError> {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || call(&*store)).await;
        done.unwrap_or_else(|error| Err(ParcelError::Stopped(error.to_string())))
    }

    /// Reads what earlier runs have left, once, and follows their provider batches as far as their service is known.
    async fn load(self: &Arc<Self>) -> Result<(), ParcelError> {
        let load = || async {
            let (open, kept) = self
                .stored(|store| Ok((store.open()?, store.kept()?)))
                .await?;
            let mut state = self.lock();
            for reply in kept {
                let free = state.free.entry(reply.digest).or_default();
                free.push_back(Free::Reply(reply.id));
            }
            for parcel in &open {
                for item in &parcel.items {
                    let free = state.free.entry(item.digest.clone()).or_default();
                    free.push_back(Free::Pending(item.id.clone()));
                }
            }
            state.left = open;
            Ok::<(), ParcelError>(())
        };
        self.loaded.get_or_try_init(load).await?;
        self.follow_left();
        Ok(())
    }

    fn follow_left(self: &Arc<Self>) {
        let mut known = Vec::new();
        {
            let mut state = self.lock();
            let left = std::mem::take(&mut state.left);
            for parcel in left {
                match state.links.get(&parcel.service).cloned() {
                    Some(link) => known.push((parcel, link)),
                    None => state.left.push(parcel),
                }
            }
        }
        for (parcel, (service, spending)) in known {
            tokio::spawn(deliver::follow(Arc::clone(self), parcel, service, spending));
        }
    }

    /// Adds a request to its group; its answer comes through the receiver.
    fn gather(self: &Arc<Self>, link: &Link, mut item: Item) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let key = (link.service.name.clone(), link.model.clone());
        let mut state = self.lock();
        state.numbers += 1;
        item.id = format!("{}-{}", self.run, state.numbers);
        let now = Instant::now();
        state.last = Some(now);
        state.waiting.insert(item.id.clone(), sender);
        let is_new = !state.groups.contains_key(&key);
        let group = state.groups.entry(key.clone()).or_insert_with(|| Group {
            link: link.clone(),
            queue: VecDeque::new(),
            since: now,
        });
        group.queue.push_back(item);
        drop(state);
        if is_new {
            tokio::spawn(watch_group(Arc::clone(self), key));
        }
        receiver
    }

    /// Takes something of an earlier run with this digest.
    fn take_free(&self, digest: &str) -> Option<(Free, Option<oneshot::Receiver<Answer>>)> {
        let mut state = self.lock();
        let free = state.free.get_mut(digest)?;
        // A reply that is there comes first.
        let at = free.iter().position(|one| matches!(one, Free::Reply(_)));
        let taken = free.remove(at.unwrap_or(0));
        if free.is_empty() {
            state.free.remove(digest);
        }
        let taken = taken?;
        let receiver = match &taken {
            Free::Pending(id) => {
                let (sender, receiver) = oneshot::channel();
                state.waiting.insert(id.clone(), sender);
                Some(receiver)
            }
            Free::Reply(_) | Free::Left(_) => None,
        };
        Some((taken, receiver))
    }

    /// Passes an answer to the request that waits for it. Without one, a reply and the failure of what stays at the provider are
    /// kept for a later request with the same digest.
    fn hand_over(&self, id: &str, digest: &str, answer: Answer, rest: Rest) {
        let mut state = self.lock();
        if let Some(sender) = state.waiting.remove(id) {
            // If the request was given up, the reply stays in the store for the next run.
            let _ = sender.send(answer);
            return;
        }
        let free = state.free.entry(digest.to_owned()).or_default();
        free.retain(|one| *one != Free::Pending(id.to_owned()));
        match (rest, answer.failure) {
            (Rest::Reply, _) => free.push_back(Free::Reply(id.to_owned())),
            (Rest::Pending, Some(failure)) => free.push_back(Free::Left(failure)),
            (Rest::Pending | Rest::Nothing, _) => {}
        }
        if free.is_empty() {
            state.free.remove(digest);
        }
    }

    /// Returns a name for a provider batch.
    fn name(&self) -> String {
        let mut state = self.lock();
        state.numbers += 1;
        format!("{}-b{}", self.run, state.numbers)
    }
}

/// Submits the requests that a group has gathered, until none are left.
async fn watch_group(inner: Arc<Inner>, key: (String, String)) {
    loop {
        tokio::time::sleep(LOOK).await;
        let taken = {
            let mut state = inner.lock();
            let is_quiet =
                state.last.is_none_or(|last| last.elapsed() >= QUIET) && state.direct == 0;
            let Some(group) = state.groups.get_mut(&key) else {
                return;
            };
            if group.queue.is_empty() {
                state.groups.remove(&key);
                return;
            }
            let endpoint = endpoints::endpoint(group.link.service.wire);
            let (count, is_full) = fitting(&group.queue, endpoint);
            let is_due = is_full || is_quiet || group.since.elapsed() >= GATHER_MAX;
            is_due.then(|| {
                group.since = Instant::now();
                let items: Vec<Item> = group.queue.drain(..count).collect();
                (group.link.clone(), items)
            })
        };
        if let Some((link, items)) = taken {
            tokio::spawn(deliver::deliver(Arc::clone(&inner), link, items));
        }
    }
}

/// Returns how many requests fit into one provider batch, and whether they fill it.
fn fitting(queue: &VecDeque<Item>, endpoint: &dyn Endpoint) -> (usize, bool) {
    let (requests_max, bytes_max) = endpoint.most();
    let mut bytes = 0_usize;
    for (at, item) in queue.iter().enumerate() {
        bytes = bytes.saturating_add(item.bytes.len() + 1);
        // One that is too large goes alone, and the service says so.
        if at > 0 && (at >= requests_max || bytes > bytes_max) {
            return (at, true);
        }
    }
    (queue.len(), queue.len() >= requests_max)
}

/// Returns the digest of a request: the same request in a later run has the same.
fn digest(service: &Service, model: &str, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [
        service.name.as_bytes(),
        service.base.as_bytes(),
        model.as_bytes(),
        body,
    ] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    kd_core::hex::hex(&hash.finalize())
}

fn now() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::FailureKind;

    /// A store without anything.
    struct Empty;

    impl ParcelStore for Empty {
        fn open(&self) -> Result<Vec<ParcelRecord>, ParcelError> {
            Ok(Vec::new())
        }

        fn kept(&self) -> Result<Vec<KeptReply>, ParcelError> {
            Ok(Vec::new())
        }

        fn take(&self, _: &str, _: Option<&str>) -> Result<Option<String>, ParcelError> {
            Ok(None)
        }

        fn sending(&self, _: &ParcelRecord) -> Result<(), ParcelError> {
            Ok(())
        }

        fn sent(&self, _: &str, _: &str) -> Result<(), ParcelError> {
            Ok(())
        }

        fn unsent(&self, _: &str) -> Result<(), ParcelError> {
            Ok(())
        }

        fn unknown(&self, _: &str) -> Result<(), ParcelError> {
            Ok(())
        }

        fn ended(&self, _: &str, _: &[ParcelResult]) -> Result<(), ParcelError> {
            Ok(())
        }
    }

    /// A question may begin after the batch with its request was given up.
    #[test]
    fn what_stays_at_a_provider_is_not_sent_again_by_a_question_that_begins_later() {
        let failure = Failure::new(FailureKind::Auth, "the results are not known");
        let reply = Free::Reply("r-1".into());
        for (rest, left) in [
            (Rest::Pending, Some(Free::Left(failure.clone()))),
            (Rest::Reply, Some(reply)),
            (Rest::Nothing, None),
        ] {
            let inner = Collector::new(Arc::new(Empty), "r", |_| {}).0;
            let pending = VecDeque::from([Free::Pending("r-1".into())]);
            inner.lock().free.insert("digest".into(), pending);
            inner.hand_over("r-1", "digest", Answer::failed(failure.clone()), rest);
            let free = inner.take_free("digest").map(|(free, _)| free);
            assert_eq!(free, left, "{rest:?}");
            assert!(inner.take_free("digest").is_none(), "{rest:?}: once");
        }
    }
}
