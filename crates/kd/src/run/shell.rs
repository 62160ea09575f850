//! `kd completions` and `kd man`: shell completions and manual pages, from the same definitions as `--help`.

use crate::args::{Cli, Completions, Man, help, whole};
use crate::error::Error;
use crate::exit::Exit;
use clap::CommandFactory;
use std::io::{self, Write};
use std::path::Path;

pub(super) fn completions(args: &Completions) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut whole(), "kd", &mut script);
    let mut out = crate::out::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(())
}

/// Prints the page of `kd help exit-codes`.
pub(super) fn exit_codes() -> Result<(), Error> {
    let mut command = Cli::command();
    command.build();
    let about = command
        .find_subcommand_mut("exit-codes")
        .and_then(|c| c.get_long_about().cloned());
    let columns = kd_tui::terminal::size().map(|(columns, _)| columns.into());
    let text = help::fit_screen(&about.unwrap_or_default().to_string(), columns);
    write!(crate::out::stdout(), "{text}")?;
    Ok(())
}

pub(super) fn man(args: &Man) -> Result<(), Error> {
    let failed = |e: io::Error| {
        Error::new(
            "output",
            Exit::Error,
            format!("cannot write the man pages to {}", args.dir.display()),
        )
        .because(e)
    };
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, &args.dir).map_err(failed)
}

/// Writes the pages of a command and of those below it.
fn write_pages(command: &clap::Command, dir: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write_pages(below, dir)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = with_examples(&String::from_utf8_lossy(&text));
    std::fs::write(dir.join(page.get_filename()), text)
}

/// Gives the text below the options its name, and keeps its lines: they are commands.
fn with_examples(page: &str) -> String {
    let Some((before, after)) = page.split_once(".SH EXTRA\n") else {
        return page.to_owned();
    };
    let (text, rest) = match after.find("\n.SH ") {
        Some(at) => after.split_at(at + 1),
        None => (after, ""),
    };
    let (name, text) = match text.strip_prefix("Examples:\n") {
        Some(examples) => ("EXAMPLES", examples),
        None => ("NOTES", text),
    };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{before}.SH {name}\n.nf\n{text}{end}.fi\n{rest}")
}
