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
    /// Check that crates depend only on allowed crates, none holds more than its share of the lines, front ends drop no
    /// event with a wildcard, and errors have types.
    Edges,
    /// Check that no files of a crate need each other in a circle.
    Cycles,
    /// Make the first changes of CONTRIBUTING.md in a scratch copy, and run the tests that the page names.
    FirstChanges {
        /// Only changes whose name contains this.
        #[arg(default_value = "")]
        name: String,
    },
    /// Draw the dependencies of the crates into ARCHITECTURE.md, and write the table of their sizes.
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
            faults.extend(xtask::sizes::faults(&xtask::sizes::read(&root)?));
            for name in xtask::arms::SHOWING {
                faults.extend(xtask::arms::faults(&xtask::source_root(&root, name))?);
            }
            faults.extend(xtask::errors::faults(&root)?);
            if faults.is_empty() {
                println!(
                    "crates depend only on allowed crates, front ends handle every event, and errors have types"
                );
                return Ok(());
            }
            Err(faults.join("\n").into())
        }
        Task::Cycles => {
            let cycles = xtask::cycles::find(&root)?;
            if cycles.is_empty() {
                println!("no cycle of files in any crate");
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
            let graph = xtask::edges::read(&root)?;
            let picture = xtask::edges::picture(&graph);
            let sizes = xtask::sizes::read(&root)?;
            let table = xtask::sizes::table(&sizes, &graph, &xtask::cycles::find(&root)?);
            let text = std::fs::read_to_string(&path)?;
            let text = xtask::replace_between(&text, "edges", &picture)
                .ok_or("ARCHITECTURE.md has lost its markers <!-- edges -->")?;
            let text = xtask::replace_between(&text, "sizes", &table)
                .ok_or("ARCHITECTURE.md has lost its markers <!-- sizes -->")?;
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
