//! Signals as events for the loop in [`super::ask`].

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Stop: Ctrl+C, a closed terminal, or `kill`.
    Stop,
    /// The terminal was resized.
    Resize,
    /// Ctrl+Z.
    Suspend,
}

/// The handled signals.
pub(super) struct Signals {
    int: Signal,
    term: Signal,
    hup: Signal,
    winch: Signal,
    /// Only with a live region: without one, the default stop is right.
    tstp: Option<Signal>,
}

impl Signals {
    /// Starts listening. Needs a runtime. `live` includes Ctrl+Z.
    pub(super) fn listen(live: bool) -> io::Result<Self> {
        // Tokio has no name for this signal, so use the system's number.
        let tstp = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            winch: signal(SignalKind::window_change())?,
            tstp: if live { Some(signal(tstp)?) } else { None },
        })
    }

    /// Returns the next signal.
    pub(super) async fn next(&mut self) -> Wish {
        let suspend = async {
            match &mut self.tstp {
                Some(tstp) => tstp.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.int.recv() => Wish::Stop,
            _ = self.term.recv() => Wish::Stop,
            _ = self.hup.recv() => Wish::Stop,
            _ = self.winch.recv() => Wish::Resize,
            _ = suspend => Wish::Suspend,
        }
    }
}

/// Stops this process like Ctrl+Z; returns when it is continued.
pub(super) fn suspend() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}
