//! A keeper as a separate program, for programs whose `main` cannot be one: tests, and hosts not written in Rust. See
//! [`kd_backends::transport::keeper`].

use std::io::Write;

fn main() -> std::process::ExitCode {
    kd_backends::transport::keeper::enter();
    let words = b"kd-keeper: started by programs that run agents, not by hand\n";
    // There is nobody to tell if stderr is closed.
    let _ = std::io::stderr().write_all(words);
    std::process::ExitCode::from(2)
}
