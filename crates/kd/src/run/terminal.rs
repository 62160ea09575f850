//! The terminal while the live region stands: no echo of typed keys, no cursor; and everything as it was when the guard
//! is dropped, whatever ended us.

use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use std::io::Write;

const HIDE_CURSOR: &[u8] = b"\x1b[?25l";
const SHOW_CURSOR: &[u8] = b"\x1b[?25h";

/// Columns and rows of the terminal on stdout.
pub(super) fn size() -> Option<(u16, u16)> {
    size_of(stdout())
}

/// Columns and rows of the terminal on stderr.
pub(super) fn size_of_stderr() -> Option<(u16, u16)> {
    size_of(stderr())
}

fn size_of(stream: impl std::os::fd::AsFd) -> Option<(u16, u16)> {
    let size = termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// The terminal, borrowed for the live region.
pub(super) struct Quiet {
    before: Option<Termios>,
}

impl Quiet {
    /// Hides the cursor and what is typed. Ctrl+C and Ctrl+Z still make their signals; what is typed stays for the
    /// shell.
    pub(super) fn enter() -> Self {
        let mut quiet = Self { before: None };
        quiet.resume();
        quiet
    }

    /// Takes the terminal again after a suspend.
    pub(super) fn resume(&mut self) {
        // A job in the background may not touch the terminal's modes: it would be stopped.
        let ours =
            termios::tcgetpgrp(stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
        if ours && let Ok(before) = termios::tcgetattr(stdin()) {
            let mut modes = before.clone();
            modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
            if termios::tcsetattr(stdin(), OptionalActions::Now, &modes).is_ok() {
                self.before = Some(before);
            }
        }
        write(HIDE_CURSOR);
    }

    /// Gives the terminal back.
    pub(super) fn release(&mut self) {
        if let Some(before) = self.before.take() {
            // Nothing can be done about a terminal that has gone.
            let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &before);
        }
        write(SHOW_CURSOR);
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.release();
    }
}

fn write(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}
