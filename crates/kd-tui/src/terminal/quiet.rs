//! The terminal during live output: no echo of typed keys, no cursor.

use super::guard::{self, Typed};
use rustix::stdio::stdin;
use rustix::termios::{self, LocalModes};

const HIDE_CURSOR: &[u8] = b"\x1b[?25l";
const SHOW_CURSOR: &[u8] = b"\x1b[?25h";

/// The terminal in use for a region that is repainted. Dropping it restores the terminal.
#[derive(Debug)]
pub struct Quiet(());

impl Quiet {
    /// Hides the cursor and typed keys. Ctrl+C and Ctrl+Z still send their signals; typed keys stay for the shell.
    pub fn enter() -> Self {
        let mut quiet = Self(());
        quiet.resume();
        quiet
    }

    /// Takes over the terminal again after a suspend.
    pub fn resume(&mut self) {
        // A background job that changes the terminal's modes would be stopped.
        let ours =
            termios::tcgetpgrp(stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
        let still = |modes: &mut termios::Termios| {
            modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        };
        let taken = ours && guard::take(still, Typed::Kept, HIDE_CURSOR, SHOW_CURSOR).is_ok();
        if !taken {
            guard::take_screen(HIDE_CURSOR, SHOW_CURSOR);
        }
    }

    /// Restores the terminal.
    pub fn release(&mut self) {
        guard::restore();
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.release();
    }
}
