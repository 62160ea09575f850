//! Property: every dialect of agent programs decodes any lines, and any exit, without a panic, and is ready for the next
//! turn.
#![no_main]

use kd_backends::dialects::{DIALECTS, Exit, ExitSeen};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for dialect in &DIALECTS {
        let mut decoder = dialect.decoder();
        for turn in 0..2 {
            for line in data.split(|b| *b == b'\n') {
                decoder.line(line);
            }
            let exit = ExitSeen {
                how: if turn == 0 { Exit::Unseen } else { Exit::Code(1) },
                stderr: String::from_utf8_lossy(data).into_owned(),
            };
            let _ = decoder.end(&exit);
        }
    }
});
