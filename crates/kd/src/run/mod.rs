//! The commands, one file each. Takes the validated command line; writes to stdout and stderr, and returns the result.
//! Each command creates only what it needs: a runtime, a project, a thread.

mod acp;
mod agreed;
mod ask;
mod attach;
mod background;
mod batch;
mod chat;
mod choice;
mod config;
mod cost;
mod debug;
mod deliberate;
mod descriptors;
mod doctor;
mod eval;
mod export;
mod first;
mod forget;
mod fork;
mod forum;
mod fsck;
mod here;
mod init;
mod list;
mod mark;
mod mcp;
mod memory;
mod model;
mod namesake;
mod notices;
mod prices;
mod prose_review;
mod question;
mod reset;
mod retry;
mod review;
mod schema;
mod screen;
mod seal;
mod serve;
mod shell;
mod show;
mod stage;
mod status;
mod think;
mod trust;
mod vote;
mod watch;
mod worker;

use crate::args::council::Council;
use crate::args::{Cli, Command};
use crate::error::Error;
use crate::exit::Exit;
use here::Here;

/// Runs the command and returns its exit code.
pub(crate) fn main(cli: Cli) -> Exit {
    let here = Here::new(cli.global.color);
    kd_app::process::keep_record(&here);
    let json = cli.command.wants_json();
    let ready = descriptors::check().and_then(|()| not_too_deep(&cli.command, &here));
    match ready.and_then(|()| dispatch(cli, &here)) {
        Ok(exit) => exit,
        Err(error) => {
            if !error.is_closed_pipe() {
                error.report(
                    json,
                    kd_tui::terminal::size_of_stderr().map(|(columns, _)| columns.into()),
                );
            }
            error.exit
        }
    }
}

/// Refuses to ask members in a council nested too deeply inside others.
fn not_too_deep(command: &Command, here: &Here) -> Result<(), Error> {
    if command.asks() {
        kd_app::process::check_depth(here)?;
    }
    Ok(())
}

fn dispatch(cli: Cli, here: &Here) -> Result<Exit, Error> {
    match cli.command {
        Command::Ask(args) => return ask::run(*args, here),
        Command::Think(args) => return think::run(*args, here),
        Command::Review(args) => return review::run(*args, here),
        Command::Show(args) => show::run(&args, here)?,
        Command::Last(args) => show::run(&args.into(), here)?,
        Command::List(args) => list::run(&args, here)?,
        Command::Status(args) => status::run(&args, here)?,
        Command::Chat(args) => return chat::run(&args, here),
        Command::Council(group) => return council(group.command, here),
        Command::Doctor(args) => {
            let exit = doctor::run(&args, here)?;
            if args.members.is_empty() {
                namesake::tell(here);
            }
            return Ok(exit);
        }
        Command::Export(args) => export::run(&args, here)?,
        Command::Fork(args) => fork::run(&args, here)?,
        Command::Forget(args) => return forget::run(&args, here),
        Command::Seal(args) => seal::run(&args, here)?,
        Command::Verify(args) => seal::verify(&args)?,
        Command::Import(args) => seal::import(&args, here)?,
        Command::Fsck(args) => return fsck::run(&args, here),
        Command::Debug(args) => return debug::run(&args.command),
        Command::Init(args) => return init::run(&args, here).inspect(|_| namesake::tell(here)),
        Command::Trust(args) => return trust::run(&args, here),
        Command::Config(args) => return config::run(&args.command, here),
        Command::Model(args) => return model::run(&args.command, here),
        Command::Deliberate(args) => return deliberate::run(&args, here),
        Command::Batch(args) => return batch::run(&args.command, here),
        Command::Worker(args) => return worker::run(&args, here),
        Command::Why(args) => return deliberate::record::why(&args, here),
        Command::Replay(args) => return deliberate::record::replay(&args, here),
        Command::Mark(args) => return mark::mark(&args, here),
        Command::Marks(args) => return mark::marks(&args, here),
        Command::Memory(args) => return memory::run(&args.command, here),
        Command::Cost(args) => cost::run(&args, here)?,
        Command::Prices(args) => prices::run(&args, here)?,
        Command::Vote(args) => return vote::run(&args.command, here),
        Command::Acp(args) => return acp::run(&args, here),
        Command::Mcp(args) => return mcp::run(&args, here),
        Command::Serve(args) => return serve::run(&args, here),
        Command::Eval(args) => return eval::run(&args, here),
        Command::Forum(args) => return forum::run(&args.command, here),
        Command::Completions(args) => shell::completions(&args)?,
        Command::ExitCodes(_) => shell::exit_codes()?,
        Command::Man(args) => shell::man(&args)?,
    }
    Ok(Exit::Done)
}

fn council(command: Council, here: &Here) -> Result<Exit, Error> {
    match command {
        Council::Ask(args) => return ask::run(*args, here),
        Council::Chat(args) => return chat::run(&args, here),
        Council::Show(args) => show::run(&args, here)?,
        Council::List(args) => list::run(&args, here)?,
        Council::Status(args) => status::run(&args, here)?,
        Council::Watch(args) => return watch::run(&args, here),
        Council::Retry(args) => return retry::run(*args, here),
        Council::Review(args) => return prose_review::run(*args, here),
        Council::Reset(args) => return reset::run(&args, here),
    }
    Ok(Exit::Done)
}

impl Command {
    /// Returns whether it asks members. `mcp` and `serve` have other uses; a member they ask at too great a depth
    /// fails.
    fn asks(&self) -> bool {
        use crate::args::forum::Forum;
        match self {
            Command::Ask(_) | Command::Chat(_) | Command::Think(_) | Command::Deliberate(_) => true,
            Command::Worker(args) => args.command.is_none(),
            Command::Review(args) => args.command.is_none() && !args.dry_run,
            Command::Batch(group) => {
                matches!(&group.command, crate::args::batch::Batch::Run(args) if !args.dry_run)
            }
            Command::Council(group) => matches!(
                &group.command,
                Council::Ask(_) | Council::Chat(_) | Council::Retry(_) | Council::Review(_)
            ),
            Command::Forum(group) => matches!(
                &group.command,
                Forum::RunOnce(_) | Forum::RunCycle(_) | Forum::RunAgent(_)
            ),
            _ => false,
        }
    }

    /// Returns whether errors should be JSON too.
    fn wants_json(&self) -> bool {
        use crate::args::{config::Config, model::Model, vote::Vote};
        match self {
            Command::Ask(args) => args.output.is_json(),
            Command::Deliberate(args) => args.output.is_json(),
            Command::Replay(args) => args.json,
            Command::Review(args) => args.is_json(),
            Command::Think(args) => args.output.is_json(),
            Command::Show(args) => args.json,
            Command::Last(args) => args.json,
            Command::List(args) => args.json,
            Command::Status(args) => args.json,
            Command::Council(group) => match &group.command {
                Council::Ask(args) => args.output.is_json(),
                Council::Show(args) => args.json,
                Council::List(args) => args.json,
                Council::Status(args) => args.json,
                Council::Watch(args) => args.output.is_json(),
                Council::Retry(args) => args.output.is_json(),
                Council::Review(args) => args.output.is_json(),
                Council::Chat(_) | Council::Reset(_) => false,
            },
            Command::Worker(args) => args.wants_json(),
            Command::Batch(group) => {
                use crate::args::batch::Batch;
                match &group.command {
                    Batch::Run(args) => args.json,
                    Batch::Status(args) => args.json,
                    Batch::List(args) => args.json,
                    Batch::Results(_) | Batch::Retry(_) | Batch::Cancel(_) | Batch::Forget(_) => {
                        false
                    }
                }
            }
            Command::Doctor(args) => args.json,
            Command::Fork(args) => args.json,
            Command::Forget(args) => args.json,
            Command::Seal(args) => args.json,
            Command::Verify(args) => args.json,
            Command::Import(args) => args.json,
            Command::Mark(args) => args.json,
            Command::Marks(args) => args.json,
            Command::Fsck(args) => args.json,
            Command::Config(group) => match &group.command {
                Config::Show(args) => args.json,
                Config::Check(args) => args.json,
                Config::Path(args) => args.json,
                Config::Schema | Config::Set(_) | Config::Unset(_) => false,
            },
            Command::Why(args) => args.is_json(),
            Command::Export(args) => args.is_json(),
            Command::Init(args) => args.json,
            Command::Trust(args) => args.json,
            Command::Model(group) => match &group.command {
                Model::List(args) => args.json,
                Model::Bench(args) => args.json,
                _ => false,
            },
            Command::Cost(args) => args.json,
            Command::Prices(args) => args.json,
            Command::Eval(args) => args.json,
            Command::Forum(group) => group.command.wants_json(),
            Command::Vote(group) => match &group.command {
                Vote::Tally(args) => args.json,
                Vote::Check(args) => args.json,
                Vote::Rules(args) => args.json,
            },
            _ => false,
        }
    }
}
