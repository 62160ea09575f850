//! Finds the fake agent program, and builds it if it does not exist.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the path of this crate's program `fake-agent`. Cargo does not build the programs of dev-dependencies, so the
/// first caller builds it, into the target folder of the calling test.
///
/// # Panics
/// The build fails: no test can continue without it.
pub fn fake_agent() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    // <target>/<profile>/deps/<test>
    let profile = test
        .ancestors()
        .nth(2)
        .expect("tests stand in a folder of cargo");
    let target = profile.parent().expect("tests stand in a folder of cargo");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args([
        "build",
        "--quiet",
        "--offline",
        "--bin",
        "fake-agent",
        "--manifest-path",
    ]);
    command
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .arg("--target-dir")
        .arg(target);
    if profile.file_name().is_some_and(|name| name == "release") {
        command.arg("--release");
    }
    let built = command.status().expect("cargo can be run");
    assert!(built.success(), "fake-agent cannot be built");
    profile.join("fake-agent")
}
