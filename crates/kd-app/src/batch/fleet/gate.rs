//! The gate of this worker: takes slots of services from the database in small blocks, and keeps their pauses.

use kd_backends::{Gate, GatedService};
use kd_sql::fleet::{FleetAccount, Slots};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long the pause of a service without a rate is known.
const KNOWN: Duration = Duration::from_secs(1);
/// Blocks in a minute: a block holds the slots of half a second.
const BLOCKS: u32 = 120;

/// The gate.
#[derive(Clone)]
pub(super) struct FleetGate {
    account: FleetAccount,
    services: Arc<Mutex<HashMap<String, Service>>>,
    runtime: tokio::runtime::Handle,
}

impl std::fmt::Debug for FleetGate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetGate").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Service {
    waiting: VecDeque<oneshot::Sender<Instant>>,
    /// Whether slots are being taken.
    asking: bool,
    /// The end of a pause that this process knows of.
    paused: Option<Instant>,
    /// When the next slot of this process alone is.
    own: Option<Instant>,
    /// Until when it is known that there is no other pause.
    known: Option<Instant>,
}

impl Service {
    /// Takes slots of this process alone if the slots of the fleet are unavailable. The service's rate still applies
    /// to this process.
    fn own(&mut self, per_minute: Option<u32>, count: u32, now: Instant) -> Slots {
        let every = per_minute.map_or(Duration::ZERO, |n| Duration::from_secs(60) / n.max(1));
        let first = self.own.unwrap_or(now).max(now);
        self.own = Some(first + every * count);
        Slots {
            wait: first - now,
            every,
        }
    }
}

impl FleetGate {
    pub(super) fn new(account: FleetAccount) -> Self {
        Self {
            account,
            services: Arc::default(),
            runtime: tokio::runtime::Handle::current(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Service>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits in line for a slot. `None` if no slot is needed, because the service has no rate and any pause is
    /// already known.
    fn queue(&self, service: &GatedService) -> Option<oneshot::Receiver<Instant>> {
        let mut services = self.lock();
        let state = services.entry(service.name.clone()).or_default();
        let is_known = state.known.is_some_and(|until| until > Instant::now());
        if service.per_minute.is_none() && is_known {
            return None;
        }
        let (tell, told) = oneshot::channel();
        state.waiting.push_back(tell);
        Some(told)
    }

    /// Takes slots for waiting requests, unless another call is doing so.
    fn take(&self, service: &GatedService) {
        let count = {
            let mut services = self.lock();
            let state = services.entry(service.name.clone()).or_default();
            state.waiting.retain(|one| !one.is_closed());
            if state.asking || state.waiting.is_empty() {
                return;
            }
            state.asking = true;
            let most = service.per_minute.map_or(u32::MAX, |n| (n / BLOCKS).max(1));
            u32::try_from(state.waiting.len())
                .unwrap_or(u32::MAX)
                .min(most)
        };
        let (gate, of) = (self.clone(), service.clone());
        self.account.slots(
            service.name.clone(),
            service.per_minute,
            count,
            move |slots| {
                let runtime = gate.runtime.clone();
                runtime.spawn(async move {
                    let slots = slots.unwrap_or_else(|_| {
                        let mut services = gate.lock();
                        let state = services.entry(of.name.clone()).or_default();
                        state.own(of.per_minute, count, Instant::now())
                    });
                    gate.hand_out(&of, count, slots);
                });
            },
        );
    }

    fn hand_out(&self, service: &GatedService, count: u32, slots: Slots) {
        let first = Instant::now() + slots.wait;
        {
            let mut services = self.lock();
            let state = services.entry(service.name.clone()).or_default();
            state.asking = false;
            if service.per_minute.is_none() {
                state.known = Some(Instant::now() + KNOWN);
                if slots.wait > Duration::ZERO {
                    state.paused = state.paused.max(Some(first));
                }
            }
            for n in 0..count {
                let Some(one) = state.waiting.pop_front() else {
                    break;
                };
                let _ = one.send(first + slots.every * n);
            }
        }
        self.take(service);
    }

    /// Returns when this process may send after all pauses that it knows.
    fn paused(&self, name: &str) -> Option<Instant> {
        let services = self.lock();
        services
            .get(name)?
            .paused
            .filter(|until| *until > Instant::now())
    }
}

impl Gate for FleetGate {
    fn turn(&self, service: &GatedService) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (gate, service) = (self.clone(), service.clone());
        Box::pin(async move {
            loop {
                let slot = gate.queue(&service);
                if let Some(slot) = slot {
                    gate.take(&service);
                    if let Ok(at) = slot.await {
                        tokio::time::sleep_until(at).await;
                    }
                }
                let Some(until) = gate.paused(&service.name) else {
                    return;
                };
                tokio::time::sleep_until(until).await;
                // With a rate, everybody takes a new slot after a pause: together they would be too many again.
                if service.per_minute.is_none() {
                    return;
                }
            }
        })
    }

    fn pause(&self, service: &GatedService, time: Duration) {
        {
            let mut services = self.lock();
            let state = services.entry(service.name.clone()).or_default();
            state.paused = state.paused.max(Some(Instant::now() + time));
        }
        self.account.pause(service.name.clone(), time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_slots_of_the_fleet_a_process_keeps_to_the_rate_by_itself() {
        let mut service = Service::default();
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let taken = service.own(Some(60), 3, now);
        assert_eq!((taken.wait, taken.every), (Duration::ZERO, second));
        assert_eq!(service.own(Some(60), 1, now).wait, second * 3);
        assert_eq!(
            service.own(Some(60), 1, now + second * 9).wait,
            Duration::ZERO
        );
        let free = Service::default().own(None, u32::MAX, now);
        assert_eq!((free.wait, free.every), (Duration::ZERO, Duration::ZERO));
    }
}
