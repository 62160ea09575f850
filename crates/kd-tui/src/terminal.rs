//! The terminal: writes frames and sequences, reads the user's input. Its guard, in [`guard`], restores it for the chat
//! screen here, for live output ([`Quiet`]) and for a question of one key ([`Keys`]).

mod guard;
mod question;
mod quiet;

pub use guard::{size, size_of_stderr};
pub use question::{Key, Keys};
pub use quiet::Quiet;

use crate::keys::{Decoder, Input};
use guard::Typed;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{self, Termios};
use rustix::time::Timespec;
use std::io;
use std::thread::JoinHandle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// Where a screen is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// On the terminal's alternate screen: what was there before comes back at the end.
    #[default]
    Alternate,
    /// Below what was printed before, which scrolls up. The terminal keeps what is printed afterwards.
    Inline,
}

/// Alternate screen, no auto-wrap, bracketed paste, focus events, mouse wheel and drags, kitty keyboard protocol, saved title.
const ENTER: &[u8] =
    b"\x1b[22;0t\x1b[?1049h\x1b[?7l\x1b[?2004h\x1b[?1004h\x1b[?1002h\x1b[?1006h\x1b[>1u";
/// Undoes all of that in reverse order; ends a pending synchronized update and shows the cursor.
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[m\x1b[<u\x1b[?1006l\x1b[?1002l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l\x1b[23;0t";
/// Like [`ENTER`] and [`LEAVE`], without the alternate screen. The blank is for tmux, which moves the screen into its history
/// when it is cleared from the very first cell.
const ENTER_INLINE: &[u8] =
    b"\x1b[22;0t\x1b[?7l\x1b[?2004h\x1b[?1004h\x1b[?1002h\x1b[?1006h\x1b[>1u";
const LEAVE_INLINE: &[u8] =
    b"\x1b[?2026l\x1b[m\x1b[<u\x1b[?1006l\x1b[?1002l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[r\x1b[H \x1b[J\r\x1b[23;0t";
/// Asks for the background color, synchronized updates and the keyboard protocol; every terminal answers the last
/// query.
const QUERIES: &[u8] = b"\x1b]11;?\x1b\\\x1b[?2026$p\x1b[?u\x1b[c";
/// Time after which a lone escape counts as the Esc key.
const ESCAPE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 30_000_000,
};

/// The terminal in use.
#[derive(Debug)]
pub(crate) struct Terminal {
    place: Place,
    inputs: UnboundedReceiver<Input>,
    sender: UnboundedSender<Input>,
    reader: Option<(JoinHandle<()>, OwnedFd)>,
}

impl Terminal {
    /// Takes over the terminal. Fails if stdin or stdout is not one.
    pub(crate) fn enter(place: Place) -> io::Result<Self> {
        let (sender, inputs) = mpsc::unbounded_channel();
        let mut terminal = Self {
            place,
            inputs,
            sender,
            reader: None,
        };
        terminal.resume()?;
        terminal.write(QUERIES)?;
        Ok(terminal)
    }

    /// Takes it over again after [`Terminal::pause`].
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        if !termios::isatty(stdout()) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let (enter, leave) = match self.place {
            Place::Alternate => (ENTER.to_vec(), LEAVE),
            Place::Inline => {
                // What was printed before moves into the scrollback.
                let rows = usize::from(self.size().1);
                ([&b"\n".repeat(rows), ENTER_INLINE].concat(), LEAVE_INLINE)
            }
        };
        guard::take(Termios::make_raw, Typed::Kept, &enter, leave)?;
        // Close-on-exec: an agent started meanwhile would otherwise keep its end open.
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let sender = self.sender.clone();
        let reader = std::thread::Builder::new()
            .name("keys".into())
            .spawn(move || read(&stopped, &sender))?;
        self.reader = Some((reader, stop));
        Ok(())
    }

    /// Releases the terminal for a while: to an editor or the shell.
    pub(crate) fn pause(&mut self) {
        if let Some((reader, stop)) = self.reader.take() {
            drop(stop);
            // The thread returns nothing.
            let _ = reader.join();
        }
        guard::restore();
    }

    /// Returns the next input; `None` if the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<Input> {
        if self.reader.as_ref().is_none_or(|(r, _)| r.is_finished()) && self.inputs.is_empty() {
            return None;
        }
        let input = self.inputs.recv().await;
        input.filter(|i| *i != GONE)
    }

    /// Returns columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        size().unwrap_or((80, 24))
    }

    /// Writes bytes.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        guard::write(bytes)
    }
}

/// Writes bytes to the terminal, no matter which part of the program holds it.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    guard::write(bytes)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.pause();
    }
}

/// Marks the end of the input: no terminal sends an empty paste.
const GONE: Input = Input::Paste(String::new());

/// Reads keys until the pipe is closed or the terminal is gone.
fn read(stopped: &OwnedFd, sender: &UnboundedSender<Input>) {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (keys, stop) = (stdin(), stopped.as_fd());
        let mut both = [
            PollFd::new(&keys, PollFlags::IN),
            PollFd::new(&stop, PollFlags::IN),
        ];
        let wait = decoder.is_pending().then_some(&ESCAPE);
        let inputs = match poll(&mut both, wait) {
            Ok(0) => decoder.flush(),
            Ok(_) if !both[1].revents().is_empty() => return,
            Ok(_) => match rustix::io::read(keys, &mut buffer) {
                Ok(n @ 1..) => decoder.feed(&buffer[..n]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
                _ => vec![GONE],
            },
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => vec![GONE],
        };
        for input in inputs {
            let gone = input == GONE;
            if sender.send(input).is_err() || gone {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use portable_pty::{CommandBuilder, PtySize, native_pty_system};
    use std::io::Read;

    /// Set for the copy of the test that runs in its own terminal.
    const INSIDE: &str = "KD_TUI_TEST_INSIDE";

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        if std::env::var_os(INSIDE).is_some() {
            let _terminal = super::Terminal::enter(super::Place::Alternate).expect("a terminal");
            panic!("on purpose");
        }
        let pty = native_pty_system()
            .openpty(PtySize::default())
            .expect("a terminal");
        let modes = || format!("{:?}", pty.master.get_termios().expect("modes"));
        let before = modes();
        let mut command = CommandBuilder::new(std::env::current_exe().expect("this test"));
        command.args([
            "--exact",
            "terminal::tests::a_panic_gives_the_terminal_back_before_it_is_told",
            "--nocapture",
        ]);
        command.env(INSIDE, "1");
        command.env("RUST_BACKTRACE", "0");
        let mut child = pty.slave.spawn_command(command).expect("it runs");
        let mut reader = pty.master.try_clone_reader().expect("a reader");
        let mut screen = vt100::Parser::default();
        let mut taken = false;
        let mut buffer = [0; 4096];
        while !screen.screen().contents().contains("FAILED") {
            let n = reader.read(&mut buffer).expect("it tells the end");
            for byte in &buffer[..n] {
                screen.process(&[*byte]);
                taken |= screen.screen().alternate_screen();
            }
        }
        assert!(!child.wait().expect("it ends").success());
        let screen = screen.screen();
        assert!(taken, "the terminal was ours");
        assert!(screen.contents().contains("on purpose"), "it is told");
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
        assert_eq!(modes(), before);
    }
}
