//! A real pseudo-terminal: its size and its output.

use super::{Home, SANDBOX};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};

pub(crate) fn size(columns: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols: columns,
        pixel_width: 0,
        pixel_height: 0,
    }
}

/// Reads the program's output on a thread, so that a test can wait for it.
pub(crate) fn listen(master: &dyn MasterPty) -> Receiver<Vec<u8>> {
    let mut reader = master.try_clone_reader().expect("a reader");
    let (sender, bytes) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = reader.read(&mut buffer) {
            if sender.send(buffer[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    bytes
}

/// The program on a terminal.
pub(crate) struct OnTerminal {
    /// The process.
    pub(crate) child: Box<dyn Child + Send + Sync>,
    /// What it prints; ends when it does.
    pub(crate) bytes: Receiver<Vec<u8>>,
    /// The keyboard.
    pub(crate) keys: Box<dyn Write + Send>,
    _master: Box<dyn MasterPty + Send>,
}

/// Starts the program in a home, on a terminal of these columns and 24 rows, without colors, and with further variables.
pub(crate) fn on_terminal(
    home: &Home,
    columns: u16,
    more: &[(&str, &str)],
    args: &[&str],
) -> OnTerminal {
    let pty = native_pty_system()
        .openpty(size(columns, 24))
        .expect("a terminal");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_kd"));
    command.env_clear();
    let common = [
        ("PATH", "/usr/bin:/bin"),
        ("TERM", "xterm"),
        ("NO_COLOR", "1"),
        (SANDBOX, "false"),
    ];
    for (name, value) in common.iter().chain(more) {
        command.env(name, value);
    }
    command.env("HOME", home.path());
    command.args(args);
    command.cwd(home.work());
    let child = pty.slave.spawn_command(command).expect("it starts");
    drop(pty.slave);
    OnTerminal {
        child,
        bytes: listen(pty.master.as_ref()),
        keys: pty.master.take_writer().expect("a keyboard"),
        _master: pty.master,
    }
}
