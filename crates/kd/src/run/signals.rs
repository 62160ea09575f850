//! Signals as events of the loop in [`super::ask`].

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the outside wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Stop: Ctrl+C, a closed terminal, or `kill`.
    Stop,
    /// The terminal has another size.
    Resize,
    /// Ctrl+Z.
    Suspend,
}

/// The signals we listen to.
pub(super) struct Signals {
    int: Signal,
    term: Signal,
    hup: Signal,
    winch: Signal,
    /// Only while a live region stands: without one the usual stop is right.
    tstp: Option<Signal>,
}

impl Signals {
    /// Begins to listen. Needs a runtime. `live` also listens to Ctrl+Z.
    pub(super) fn listen(live: bool) -> io::Result<Self> {
        // Tokio has no name for this signal; its number is the system's.
        let tstp = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            winch: signal(SignalKind::window_change())?,
            tstp: if live { Some(signal(tstp)?) } else { None },
        })
    }

    /// The next wish.
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

/// Stops this process as Ctrl+Z would; returns when it is continued.
pub(super) fn suspend() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}
