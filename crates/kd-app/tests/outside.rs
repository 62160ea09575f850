//! A program outside the workspace that depends on this crate by its path.
#![allow(missing_docs)]

use std::fs;
use std::path::Path;
use std::process::Command;

const MAIN: &str = r#"
use kd_app::{Ask, Env, Kingdom, UserError};

#[tokio::main]
async fn main() -> Result<(), UserError> {
    let folder = std::env::current_dir().expect("a folder").join("project");
    std::fs::create_dir_all(&folder).expect("made");
    let mut kingdom = Kingdom::open_with(Env::process().in_folder(&folder))?;
    kingdom.configure(|config| {
        config.agents.entry("ada".into()).or_default().backend = "scripted".into();
        config.council.conclude = false;
    });
    let answers = kingdom.ask(Ask::default(), "Does it build?")?.answers().await?;
    println!("{}: {:?}", answers.messages[0].from, answers.outcome);
    Ok(())
}
"#;

#[test]
fn a_program_outside_the_workspace_asks_a_council() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.ancestors().nth(2).expect("the workspace");
    let dir = tempfile::tempdir().expect("a folder");
    // With the profile of the workspace, dependencies that are built already fit. Its own crates are compiled once more
    // in any case, soonest without optimisation.
    let workspace = fs::read_to_string(root.join("Cargo.toml")).expect("manifest");
    let profile: String = workspace
        .split("\n[")
        .filter(|section| section.starts_with("profile.dev"))
        .filter(|section| !section.starts_with("profile.dev.package.kd-"))
        .map(|section| format!("[{section}\n"))
        .collect();
    let manifest = format!(
        "[package]\nname = \"outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         kd-app = {{ path = {own:?} }}\ntokio = {{ version = \"1\", features = [\"macros\"] }}\n\n{profile}"
    );
    fs::write(dir.path().join("Cargo.toml"), manifest).expect("written");
    fs::copy(root.join("Cargo.lock"), dir.path().join("Cargo.lock")).expect("copied");
    fs::create_dir(dir.path().join("src")).expect("made");
    fs::write(dir.path().join("src/main.rs"), MAIN).expect("written");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| root.join("target").into());
    let ran = Command::new(cargo)
        .args(["run", "--quiet", "--offline"])
        .current_dir(dir.path())
        .env("CARGO_TARGET_DIR", target)
        .env("HOME", dir.path())
        .env("CARGO_HOME", cargo_home())
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(said.trim(), "ada: Complete", "{errors}");
}

/// Returns the folder where cargo stores the sources of the dependencies; the home folder of the program is another
/// one.
fn cargo_home() -> std::path::PathBuf {
    let named = std::env::var_os("CARGO_HOME").map(Into::into);
    let home = || std::env::home_dir().expect("a home").join(".cargo");
    named.unwrap_or_else(home)
}
