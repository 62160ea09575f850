//! The guard of the terminal: the only file that changes its modes. Whoever takes the terminal (the chat screen, live
//! output, a question of one key) does so here, and one at a time.
//!
//! However the program ends (a key, an error, a panic, SIGTERM, SIGHUP), the terminal is restored: by the owner when it
//! is dropped, and by the panic hook before a panic message is written.

use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{self, OptionalActions, Termios};
use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

/// The data that restore the terminal while it is taken: its original mode, and the sequences that undo ours.
static TAKEN: Mutex<Option<(Option<Termios>, &'static [u8])>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// The treatment of keys that were typed before a change of modes.
pub(super) enum Typed {
    /// Keys typed before stay.
    Kept,
    /// Keys typed before are discarded.
    Discarded,
}

/// Takes the terminal: changes the modes of stdin and writes `enter`; [`restore`] undoes both, with `leave`.
///
/// # Errors
/// If stdin is not a terminal, or its modes cannot be changed; then nothing is taken.
pub(super) fn take(
    change: impl FnOnce(&mut Termios),
    typed: Typed,
    enter: &[u8],
    leave: &'static [u8],
) -> io::Result<()> {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
    let before = termios::tcgetattr(stdin())?;
    let mut modes = before.clone();
    change(&mut modes);
    let when = match typed {
        Typed::Kept => OptionalActions::Now,
        Typed::Discarded => OptionalActions::Flush,
    };
    hold(Some(before), leave);
    if let Err(why) = termios::tcsetattr(stdin(), when, &modes) {
        restore();
        return Err(why.into());
    }
    write(enter).inspect_err(|_| restore())
}

/// Writes `enter`, without changing modes; [`restore`] writes `leave`.
pub(super) fn take_screen(enter: &[u8], leave: &'static [u8]) {
    hold(None, leave);
    // Nothing can be done about a terminal that is gone.
    let _ = write(enter);
}

fn hold(before: Option<Termios>, leave: &'static [u8]) {
    *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some((before, leave));
}

/// Restores the terminal, once.
pub(super) fn restore() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((before, leave)) = taken else {
        return;
    };
    // Nothing can be done about a terminal that is gone.
    let _ = write(leave);
    if let Some(before) = before {
        let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &before);
    }
}

/// Writes bytes to the terminal.
pub(super) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Returns columns and rows of the terminal on stdout.
pub fn size() -> Option<(u16, u16)> {
    size_of(stdout())
}

/// Returns columns and rows of the terminal on stderr.
pub fn size_of_stderr() -> Option<(u16, u16)> {
    size_of(stderr())
}

fn size_of(stream: impl std::os::fd::AsFd) -> Option<(u16, u16)> {
    let size = termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}
