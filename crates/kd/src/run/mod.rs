//! The commands: one file each. Comes in: the checked command line. Goes out: bytes on stdout and stderr, and how it
//! ended. Nothing is built before it is needed: only `ask` and `model` start a runtime.

mod aside;
mod ask;
mod background;
mod chat;
mod config;
mod debug;
mod deliberate;
mod doctor;
mod eval;
mod export;
mod first;
mod forum;
mod fsck;
mod here;
mod init;
mod kingdom;
mod list;
mod mcp;
mod memory;
mod model;
mod outfile;
mod question;
mod reset;
mod retry;
mod review;
mod screen;
mod seats;
mod serve;
mod shell;
mod show;
mod signals;
mod stage;
mod status;
mod terminal;
mod think;
mod thread;
mod vote;
mod watch;

use crate::args::{Cli, Command, council};
use crate::error::Error;
use crate::exit::Exit;
use here::Here;

/// Does what the command line says.
pub(crate) fn main(cli: Cli) -> Exit {
    let here = Here::new(cli.global.color);
    let json = cli.command.wants_json();
    match dispatch(cli, &here) {
        Ok(exit) => exit,
        Err(error) => {
            if !error.is_closed_pipe() {
                error.report(json);
            }
            error.exit
        }
    }
}

fn dispatch(cli: Cli, here: &Here) -> Result<Exit, Error> {
    match cli.command {
        Command::Ask(args) | Command::Council(council::Council::Ask(args)) => {
            return ask::run(*args, here);
        }
        Command::Think(args) => return think::run(*args, here),
        Command::Show(args) | Command::Council(council::Council::Show(args)) => {
            show::run(&args, here)?;
        }
        Command::Chat(args) | Command::Council(council::Council::Chat(args)) => {
            return chat::run(&args, here);
        }
        Command::Council(council::Council::List(args)) => list::run(&args, here)?,
        Command::Council(council::Council::Status(args)) => status::run(&args, here)?,
        Command::Doctor(args) => return doctor::run(&args, here),
        Command::Council(council::Council::Watch(args)) => return watch::run(&args, here),
        Command::Council(council::Council::Retry(args)) => return retry::run(*args, here),
        Command::Council(council::Council::Review(args)) => return review::run(*args, here),
        Command::Council(council::Council::Reset(args)) => return reset::run(&args, here),
        Command::Export(args) => export::run(&args, here)?,
        Command::Fsck(args) => return fsck::run(&args, here),
        Command::Debug(args) => return debug::run(&args),
        Command::Init(args) => init::run(&args, here)?,
        Command::Config(args) => return config::run(&args, here),
        Command::Model(args) => return model::run(&args, here),
        Command::Deliberate(args) => return deliberate::run(&args, here),
        Command::Why(args) => return deliberate::record::why(&args, here),
        Command::Replay(args) => return deliberate::record::replay(&args, here),
        Command::Memory(args) => return memory::run(&args, here),
        Command::Vote(args) => return vote::run(&args, here),
        Command::Mcp(args) => return mcp::run(&args, here),
        Command::Serve(args) => return serve::run(&args, here),
        Command::Eval(args) => return eval::run(&args, here),
        Command::Forum(args) => return forum::run(&args, here),
        Command::Completions(args) => shell::completions(&args)?,
        Command::ExitCodes(_) => shell::exit_codes()?,
        Command::Man(args) => shell::man(&args)?,
    }
    Ok(Exit::Done)
}

impl Command {
    /// Whether errors are wanted as JSON too.
    fn wants_json(&self) -> bool {
        use crate::args::{config::Config, model::Model, vote::Vote};
        match self {
            Command::Ask(args) | Command::Council(council::Council::Ask(args)) => {
                args.output.json || args.output.jsonl
            }
            Command::Deliberate(args) => args.output.json || args.output.jsonl,
            Command::Replay(args) => args.json,
            Command::Think(args) => args.output.json || args.output.jsonl,
            Command::Show(args) | Command::Council(council::Council::Show(args)) => args.json,
            Command::Council(council::Council::List(args)) => args.json,
            Command::Council(council::Council::Status(args)) => args.json,
            Command::Doctor(args) => args.json,
            Command::Council(council::Council::Watch(args)) => {
                args.output.json || args.output.jsonl
            }
            Command::Council(council::Council::Retry(args)) => {
                args.output.json || args.output.jsonl
            }
            Command::Council(council::Council::Review(args)) => {
                args.output.json || args.output.jsonl
            }
            Command::Fsck(args) => args.json,
            Command::Config(Config::Show(args)) => args.json,
            Command::Model(Model::List(args)) => args.json,
            Command::Model(Model::Bench(args)) => args.json,
            Command::Eval(args) => args.json,
            Command::Forum(args) => args.wants_json(),
            Command::Vote(Vote::Tally(args)) => args.json,
            Command::Vote(Vote::Check(args)) => args.json,
            Command::Vote(Vote::Rules(args)) => args.json,
            _ => false,
        }
    }
}
