//! Asks a council from a program. The members are scripted, so that it runs without a network or a key: leave out
//! `configure` to ask those that `kd init` found.
//!
//! `cargo run -p kd-app --example ask`
#![allow(clippy::print_stdout)]

use kd_app::{Ask, Kingdom, UserError};

#[tokio::main]
async fn main() -> Result<(), UserError> {
    let folder = std::env::temp_dir().join("kd-example");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut kingdom = Kingdom::open(&folder)?;
    kingdom.configure(|config| {
        for name in ["ada", "grace"] {
            let agent = config.agents.entry(name.into()).or_default();
            agent.backend = "scripted".into();
        }
    });
    let answers = kingdom
        .ask(Ask::default(), "Tabs or spaces?")?
        .answers()
        .await?;
    for message in &answers.messages {
        println!("{}: {}", message.from, message.body.trim());
    }
    Ok(())
}
