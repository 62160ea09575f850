//! Signals of the system as values for an event loop. Every front end listens through [`Signals`] and decides what each
//! of them means there.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// Ctrl+C.
    Interrupt,
    /// `kill`, or a closed terminal.
    End,
    /// The terminal was resized.
    Resize,
    /// Ctrl+Z.
    Suspend,
    /// The process continues after it was suspended.
    Continue,
}

impl Caught {
    /// Returns whether it asks to stop.
    pub fn stops(self) -> bool {
        match self {
            Caught::Interrupt | Caught::End => true,
            Caught::Resize | Caught::Suspend | Caught::Continue => false,
        }
    }
}

/// The handled signals.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    resize: Signal,
    proceed: Signal,
    /// Only where the terminal must be released first: else the default stop is right.
    suspend: Option<Signal>,
}

impl Signals {
    /// Starts listening. Needs a runtime. `suspend` includes Ctrl+Z.
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub fn listen(suspend: bool) -> io::Result<Self> {
        // Tokio has no names for these, so use the system's numbers.
        let raw = |kind: rustix::process::Signal| SignalKind::from_raw(kind.as_raw());
        let stop = suspend.then(|| signal(raw(rustix::process::Signal::TSTP)));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            resize: signal(SignalKind::window_change())?,
            proceed: signal(raw(rustix::process::Signal::CONT))?,
            suspend: stop.transpose()?,
        })
    }

    /// Returns the next signal.
    pub async fn next(&mut self) -> Caught {
        let suspend = async {
            match &mut self.suspend {
                Some(suspend) => suspend.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::End,
            _ = self.hang_up.recv() => Caught::End,
            _ = self.resize.recv() => Caught::Resize,
            _ = self.proceed.recv() => Caught::Continue,
            _ = suspend => Caught::Suspend,
        }
    }

    /// Waits until a signal asks to stop.
    pub async fn stopped(&mut self) {
        while !self.next().await.stops() {}
    }
}

/// Stops this process like Ctrl+Z; returns when it is continued.
pub fn suspend() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}
