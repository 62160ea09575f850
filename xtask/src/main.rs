//! `cargo run -p xtask -- TASK`: tasks that cargo does not do.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use clap::{Parser, Subcommand};
use std::error::Error;
use std::process::{Command, ExitCode};

/// Chores of the project.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check that every crate depends only on the crates that the plan allows, and holds at most its share of the lines.
    Edges,
    /// Check that no files of a crate need each other in a circle.
    Cycles,
    /// Make the first changes of CONTRIBUTING.md in a scratch copy, and run the tests that the page names.
    FirstChanges {
        /// Only changes whose name contains this.
        #[arg(default_value = "")]
        name: String,
    },
    /// Draw the real dependency graph into ARCHITECTURE.md.
    Picture,
    /// Write man pages and completions of a release build to a folder.
    Dist {
        /// The folder.
        folder: std::path::PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<(), Box<dyn Error>> {
    let root = xtask::root();
    match args.task {
        Task::Edges => {
            let mut faults = xtask::edges::faults(&xtask::edges::read(&root)?);
            faults.extend(xtask::sizes::faults(&root)?);
            if faults.is_empty() {
                println!("every crate depends only on the crates that the plan allows");
                return Ok(());
            }
            Err(faults.join("\n").into())
        }
        Task::Cycles => {
            let cycles = xtask::cycles::find(&root)?;
            if cycles.is_empty() {
                println!("no new cycle of files in any crate");
                return Ok(());
            }
            let words: Vec<String> = cycles.iter().map(xtask::cycles::words).collect();
            Err(words.join("\n").into())
        }
        Task::FirstChanges { name } => {
            let faults = xtask::first_changes::run(&root, &name, &mut |said| println!("{said}"))?;
            if faults.is_empty() {
                return Ok(());
            }
            Err(faults.join("\n").into())
        }
        Task::Picture => {
            let path = root.join("ARCHITECTURE.md");
            let picture = xtask::edges::picture(&xtask::edges::read(&root)?);
            let text = xtask::replace_between(&std::fs::read_to_string(&path)?, "edges", &picture)
                .ok_or("ARCHITECTURE.md has lost its markers <!-- edges -->")?;
            std::fs::write(path, text)?;
            Ok(())
        }
        Task::Dist { folder } => {
            std::fs::create_dir_all(&folder)?;
            let built = Command::new("cargo")
                .args(["build", "--profile", "dist", "--package", "kd"])
                .current_dir(&root)
                .status()?;
            if !built.success() {
                return Err("the build failed".into());
            }
            let kd = root.join("target/dist/kd");
            for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
                let out = Command::new(&kd).args(["completions", shell]).output()?;
                std::fs::write(folder.join(format!("kd.{shell}")), out.stdout)?;
            }
            let man = Command::new(&kd)
                .arg("man")
                .arg(folder.join("man"))
                .status()?;
            std::fs::copy(&kd, folder.join("kd"))?;
            if man.success() {
                Ok(())
            } else {
                Err("cannot write the man pages".into())
            }
        }
    }
}
