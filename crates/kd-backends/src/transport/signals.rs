//! Signals of a child before it runs its program.

#![expect(
    unsafe_code,
    reason = "signals are unblocked between the fork and the exec"
)]

use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// Unblocks all signals in a child of the keeper, where they are blocked.
pub(super) fn take_signals(command: &mut Command) {
    // SAFETY: only async-signal-safe functions are called after the fork, and nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            let mut none = MaybeUninit::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
            Ok(())
        });
    }
}
