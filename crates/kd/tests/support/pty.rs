//! A real pseudo-terminal: its size and its output.

use portable_pty::{MasterPty, PtySize};
use std::io::Read;
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
