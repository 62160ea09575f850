//! Watching a fleet, for servers: a view that is never older than needed, and that costs a caller little time even if the
//! database is away.

use kd_core::batch::{FleetView, Overview, Worker, WorkerState};
use kd_sql::fleet::{FleetError, FleetReader, Store};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Batches that are shown.
const BATCHES_MAX: usize = 20;
/// How long a caller waits for the database.
const WAIT: Duration = Duration::from_secs(2);
/// How long a view is shown before the database is asked again.
const FRESH: Duration = Duration::from_secs(1);
/// Time after which a read of the database is abandoned for a new one: a firewall may drop its answer.
const GIVE_UP: Duration = Duration::from_secs(60);
/// Maximum abandoned reads that may still wait.
const GIVEN_UP_MAX: u64 = 4;
/// The part of the time that the database may spend on views: a tenth.
const SHARE: u32 = 9;
/// Over how long the rate of a batch is observed.
const WINDOW: Duration = Duration::from_secs(60);
/// The shortest time over which a rate is computed.
const WINDOW_MIN: Duration = Duration::from_secs(3);

/// Watches the database of a fleet. Clones share everything.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    state: Mutex<State>,
    looked: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The connection, while no thread looks.
    reader: Option<FleetReader>,
    /// The time when the reading thread started.
    looking: Option<Instant>,
    /// The number of the newest look, and how many of all have ended.
    looks: (u64, u64),
    /// Before this, the database is not asked again.
    rests_until: Option<Instant>,
    /// The last reading, and its time.
    last: Option<(Instant, Vec<Overview>, Vec<Worker>)>,
    /// Why the last look failed.
    trouble: Option<String>,
    paces: HashMap<String, Pace>,
}

impl Watch {
    /// Watches a database. Nothing is connected before the first look.
    pub fn new(store: Store) -> Self {
        Self(Arc::new(Shared {
            store,
            state: Mutex::default(),
            looked: Condvar::new(),
        }))
    }

    /// Returns the fleet as it is now, or as it was read last if the database does not answer within 2 s. It blocks up to
    /// that long; while a database does not answer, later calls do not wait.
    pub fn view(&self) -> FleetView {
        let mut state = self.0.lock();
        let now = Instant::now();
        if state.is_due(now) {
            state.looking = Some(now);
            state.looks.0 += 1;
            let number = state.looks.0;
            let reader = state.reader.take();
            let reader = reader.unwrap_or_else(|| FleetReader::new(&self.0.store));
            let shared = Arc::clone(&self.0);
            let spawned = std::thread::Builder::new()
                .name("kd-watch".into())
                .spawn(move || shared.look(reader, number));
            if let Err(error) = spawned {
                state.looking = None;
                state.looks.1 += 1;
                state.trouble = Some(format!("the database cannot be read: {error}"));
            }
        }
        while let Some(since) = state.looking
            && let Some(rest) = WAIT.checked_sub(since.elapsed())
            && !rest.is_zero()
        {
            let waited = self.0.looked.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.view(&self.0.store)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the database on a separate thread: the client must not be used where asynchronous tasks run.
    fn look(&self, mut reader: FleetReader, number: u64) {
        let began = Instant::now();
        let read = reader.look(BATCHES_MAX);
        let mut state = self.lock();
        state.looks.1 += 1;
        if number == state.looks.0 {
            state.took(read, began, Instant::now());
            state.reader = Some(reader);
        }
        drop(state);
        self.looked.notify_all();
    }
}

impl State {
    /// Returns whether the database is to be asked now.
    fn is_due(&self, now: Instant) -> bool {
        let (begun, ended) = self.looks;
        match self.looking {
            Some(since) => now - since >= GIVE_UP && begun - ended <= GIVEN_UP_MAX,
            None => self.rests_until.is_none_or(|until| until <= now),
        }
    }

    /// Keeps what a look gave.
    fn took(
        &mut self,
        read: Result<(Vec<Overview>, Vec<Worker>), FleetError>,
        began: Instant,
        now: Instant,
    ) {
        self.looking = None;
        self.rests_until = Some(now + FRESH.max((now - began) * SHARE));
        match read {
            Ok((mut batches, workers)) => {
                self.trouble = None;
                self.observe(&mut batches, &workers, now);
                self.last = Some((now, batches, workers));
            }
            Err(error) => self.trouble = Some(format!("{error}; {}", error.hint())),
        }
    }

    /// Reports the speed of batches: the observed speed, and until that is known, the speed from the time that
    /// workers have counted.
    fn observe(&mut self, batches: &mut [Overview], workers: &[Worker], now: Instant) {
        let asking = |worker: &&Worker| worker.state() == WorkerState::Working;
        let asking = workers.iter().filter(asking).count();
        let mut paces = std::mem::take(&mut self.paces);
        for one in batches {
            let ended = one.state("answered") + one.state("failed");
            let ended = ended.saturating_sub(one.cached);
            let mut pace = paces.remove(&one.id).unwrap_or_default();
            pace.add(now, ended);
            // Workers count their time each for itself.
            let counted = one.rate().map(|rate| rate * asking as f64);
            one.per_second = match one.running_now {
                true => pace.per_second().or(counted),
                false => None,
            };
            self.paces.insert(one.id.clone(), pace);
        }
    }

    fn view(&self, store: &Store) -> FleetView {
        let trouble = match self.looking {
            Some(since) => Some(format!(
                "the database at {} has not answered for {} s; check that the server runs and can be reached",
                store.shown(),
                since.elapsed().as_secs()
            )),
            None => self.trouble.clone(),
        };
        let (age, batches, workers) = match &self.last {
            Some((at, batches, workers)) => {
                let age = at.elapsed();
                let mut workers = workers.clone();
                for worker in &mut workers {
                    worker.silent += age;
                    worker.up += age;
                }
                (Some(age.as_secs_f64()), batches.clone(), workers)
            }
            None => (None, Vec::new(), Vec::new()),
        };
        FleetView {
            store: store.shown(),
            trouble,
            age,
            batches,
            workers,
        }
    }
}

/// How many questions had ended when.
#[derive(Debug, Default)]
struct Pace(VecDeque<(Instant, u64)>);

impl Pace {
    fn add(&mut self, now: Instant, ended: u64) {
        // `kd batch retry` takes ends back.
        if self.0.back().is_some_and(|(_, before)| *before > ended) {
            self.0.clear();
        }
        self.0.push_back((now, ended));
        while self.0.len() > 2 && self.0.get(1).is_some_and(|(at, _)| now - *at >= WINDOW) {
            self.0.pop_front();
        }
    }

    fn per_second(&self) -> Option<f64> {
        let ((first, before), (last, ended)) = (self.0.front()?, self.0.back()?);
        let time = *last - *first;
        (time >= WINDOW_MIN).then(|| (ended - before) as f64 / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(port: u16) -> Store {
        Store::parse(&format!("postgresql://u:pass-word@127.0.0.1:{port}/db")).unwrap()
    }

    #[test]
    fn a_database_that_is_away_or_silent_is_told_in_a_sentence_without_its_password() {
        // A port on which nothing listens, and one that accepts and never says anything.
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = closed.local_addr().unwrap().port();
        drop(closed);
        let view = Watch::new(store(port)).view();
        let told = view.trouble.unwrap();
        assert!(told.contains("cannot be opened"), "{told}");
        assert!(!told.contains("pass-word") && !view.store.contains("pass-word"));
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let watch = Watch::new(store(silent.local_addr().unwrap().port()));
        let told = watch.view().trouble.unwrap();
        assert!(told.contains("has not answered"), "{told}");
        // The second caller does not wait for it.
        watch.0.lock().looking = Instant::now().checked_sub(WAIT * 2);
        let told = watch.view().trouble.unwrap();
        assert!(told.contains("has not answered for 4 s"), "{told}");
        // One look after the other is given up, but not without end.
        let mut state = State::default();
        let since = Instant::now();
        assert!(state.is_due(since));
        state.looking = Some(since);
        for (begun, later) in [(1, false), (1, true), (4, true), (5, false)] {
            state.looks = (begun, 0);
            let now = since + if later || begun == 5 { GIVE_UP } else { WAIT };
            assert_eq!(state.is_due(now), later, "{begun}");
        }
    }

    #[test]
    fn rates_are_observed_and_old_views_are_kept_with_their_age() {
        let began = Instant::now();
        let batch = |answered| Overview {
            id: "batch-1".into(),
            running_now: true,
            states: [("answered", answered), ("running", 1)].into(),
            seconds: 10.0,
            ..Overview::default()
        };
        let worker = Worker {
            asking: 1,
            lease: WINDOW,
            ..Worker::default()
        };
        let mut state = State::default();
        let mut look = |after: u64, answered| {
            let now = began + Duration::from_secs(after);
            let read = (vec![batch(answered)], vec![worker.clone(), worker.clone()]);
            state.took(Ok(read), now, now);
            let (_, batches, _) = state.last.as_ref().unwrap();
            batches[0].per_second
        };
        // Before anything was observed: two workers with 10 s of work together.
        assert_eq!(look(0, 20), Some(4.0));
        assert_eq!(look(2, 30), Some(6.0));
        assert_eq!(look(10, 60), Some(4.0));
        assert_eq!(look(70, 60), Some(0.0));
        assert_eq!(look(80, 10), Some(2.0), "taken back by a retry");
        state.took(Err(FleetError::Lost("gone".into())), began, began);
        let view = state.view(&store(1));
        assert!(view.trouble.unwrap().contains("gone"));
        assert_eq!((view.batches.len(), view.workers.len()), (1, 2));
        assert!(view.age.is_some());
    }
}
