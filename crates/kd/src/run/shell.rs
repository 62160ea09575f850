//! `kd completions` and `kd man`: shell completions and manual pages, from the same definitions as `--help`.

use crate::args::{Cli, Completions, Man, help, whole};
use crate::error::Error;
use crate::exit::Exit;
use clap::CommandFactory;
use std::io::{self, Write};

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
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, &args.dir).map_err(failed)
}
