//! Where the fake agent program is. Comes in: nothing. Goes out: a path; the program is built if it is not there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program `fake-agent` of this crate. Cargo builds the programs of other crates' dev-dependencies for nobody, so
/// whoever asks first has it built; into the folder that the asking test stands in.
///
/// # Panics
/// When it cannot be built: no test can go on without it.
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
