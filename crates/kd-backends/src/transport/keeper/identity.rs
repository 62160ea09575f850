//! Recognizes a keeper by its program, its name, and its command line.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The `argv[0]` of a keeper.
pub const NAME: &str = "kd-keeper";

/// The program to start as a keeper.
pub(super) static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Returns the program to start as a keeper, if there is one.
pub(in super::super) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

/// Returns whether a process was started as a keeper, by its `argv[0]`. A process that takes this name is counted too,
/// which only makes the limits below it stricter.
#[cfg(target_os = "linux")]
pub(in super::super) fn is_keeper(pid: i32) -> bool {
    word(pid, 0).is_some_and(|word| word == NAME.as_bytes())
}

/// Returns the socket name of a keeper's tool server: its first argument.
#[cfg(target_os = "linux")]
pub(in super::super) fn socket_of(keeper: i32) -> Option<Vec<u8>> {
    word(keeper, 1).filter(|name| !name.is_empty())
}

/// Returns an argument from the command line of a process.
#[cfg(target_os = "linux")]
fn word(pid: i32, at: usize) -> Option<Vec<u8>> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    words.split(|byte| *byte == 0).nth(at).map(<[u8]>::to_vec)
}
