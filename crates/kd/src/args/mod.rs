//! The command line: one file per group of commands. Parses `argv` into a [`Cli`], checking only its form. Help,
//! completions and man pages are all generated from these definitions.

pub(crate) mod acp;
pub(crate) mod ask;
pub(crate) mod batch;
pub(crate) mod chat;
pub(crate) mod config;
pub(crate) mod cost;
pub(crate) mod council;
pub(crate) mod debug;
pub(crate) mod deliberate;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod exit_codes;
pub(crate) mod export;
pub(crate) mod forget;
pub(crate) mod fork;
pub(crate) mod forum;
pub(crate) mod fsck;
pub(crate) mod help;
pub(crate) mod init;
pub(crate) mod mark;
pub(crate) mod mcp;
pub(crate) mod model;
pub(crate) mod prices;
pub(crate) mod refusal;
pub(crate) mod review;
pub(crate) mod seal;
pub(crate) mod serve;
pub(crate) mod suggest;
pub(crate) mod think;
pub(crate) mod trust;
mod values;
pub(crate) mod vote;
pub(crate) mod worker;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const ABOUT: &str = "A council of AI agents in your terminal";

const EXAMPLES: &str = "\
Examples:
  kd ask \"Should a small team start with SQLite or PostgreSQL?\"
  git diff | kd ask \"Is this change safe?\"
  kd ask --continue \"And for ten users?\"
  kd ask -m claude,codex \"Which schema would you keep?\"
  kd                     chat; in a pipe, this help
  kd deliberate \"Should we move to SQLite this year?\"
  kd show                the newest question and its answers

No setup is needed: without a configuration, a small built-in model plays every member.
Help for a command: kd help ask
Exit codes: kd help exit-codes";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "kd", version, about = ABOUT, after_help = EXAMPLES, arg_required_else_help = true,
          disable_help_subcommand = false, disable_help_flag = true, disable_version_flag = true,
          // `help::fit` breaks the lines.
          term_width = 0, help_template = help::OVERVIEW, subcommand_required = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    /// Print the version
    #[arg(short = 'V', long, action = clap::ArgAction::Version, help_heading = "Global options")]
    version: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// Colors: auto, always or never; NO_COLOR, CLICOLOR_FORCE and FORCE_COLOR are honored
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto,
          hide_possible_values = true, hide_default_value = true, help_heading = "Global options")]
    pub(crate) color: Color,
    /// Print help; -h prints a summary
    #[arg(short, long, global = true, action = clap::ArgAction::Help, help_heading = "Global options")]
    help: Option<bool>,
}

/// `--color`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal that supports them
    #[default]
    Auto,
    /// Even in pipes and files
    Always,
    /// No colors
    Never,
}

impl From<Color> for crate::render::style::Color {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

/// The commands, in the order of `kd --help`. At each start only these lines are built. The options of a command are built
/// when it is called, which saves the other commands most of a millisecond. So each line is written twice: here and above
/// the options.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Ask the council a question
    Ask(Box<ask::Ask>),
    /// Chat with the council in the terminal
    Chat(chat::Chat),
    /// Have a fast and a rigorous model debate until they agree
    Think(Box<think::Think>),
    /// Plan a council, collect opinions and reviews, vote, conclude
    Deliberate(Box<deliberate::Deliberate>),
    /// Explain how the council reached its decision
    Why(deliberate::Why),
    /// Repeat a decision from its record, without a model, and compare
    Replay(deliberate::Replay),
    /// Mark a verdict as right or wrong
    Mark(mark::Mark),
    /// List, export, import or forget marks of verdicts
    Marks(mark::Marks),
    /// Show, set or forget what deliberations remember
    #[command(arg_required_else_help = true)]
    Memory(Group<deliberate::Memory>),
    /// List, show, follow and retry the threads of this folder
    #[command(arg_required_else_help = true)]
    Council(Group<council::Council>),
    /// Review a change: findings with severity, votes and the probability that each is real
    Review(Box<review::Review>),
    /// Show the newest question and its answers
    Last(council::Last),
    /// Show the messages of a thread
    Show(council::Show),
    /// List the threads of this branch, the newest last
    #[command(visible_alias = "ls")]
    List(council::List),
    /// Show who has answered the newest question
    Status(council::Status),
    /// Test every member and show what is missing
    Doctor(doctor::Doctor),
    /// Start a new thread that shares the beginning of another
    Fork(fork::Fork),
    /// Remove a thread or a message from every place that holds it
    Forget(forget::Forget),
    /// Export a thread as one document
    Export(export::Export),
    /// Seal a thread in a file that shows any later change
    Seal(seal::Seal),
    /// Check a sealed file, without its thread and without a network
    Verify(seal::Verify),
    /// Create a thread from a sealed file
    Import(seal::Import),
    /// Check the files of threads and repair them
    Fsck(fsck::Fsck),
    /// Set up your own agents and models
    Init(init::Init),
    /// Show what the settings of this folder would do, and allow them
    Trust(trust::Trust),
    /// Show, check and change settings
    #[command(arg_required_else_help = true)]
    Config(Group<config::Config>),
    /// Download, check and measure models for the built-in engine
    #[command(arg_required_else_help = true)]
    Model(Group<model::Model>),
    /// Show the spending of today and this month
    Cost(cost::Cost),
    /// Show or update the prices of models
    Prices(prices::Prices),
    /// Count ballots by any rule, or check recorded counts
    #[command(arg_required_else_help = true)]
    Vote(Group<vote::Vote>),
    /// Run an MCP server on stdin and stdout, for an agent
    Mcp(mcp::Mcp),
    /// Run an agent for editors on stdin and stdout (Agent Client Protocol)
    Acp(acp::Acp),
    /// Serve the council to programs: as a model, over MCP, and as a page
    Serve(serve::Serve),
    /// Measure councils on recorded answers, simulated members or your own questions
    Eval(Box<eval::Eval>),
    /// Inspect the output of agent programs
    #[command(arg_required_else_help = true)]
    Debug(Group<debug::Debug>),
    /// Ask a file of questions, and write one result for each
    #[command(arg_required_else_help = true)]
    Batch(Group<batch::Batch>),
    /// Answer questions of batches on a database
    Worker(Box<worker::Worker>),
    /// Run a forum where agents take fair, random turns
    #[command(arg_required_else_help = true)]
    Forum(Box<Group<forum::Forum>>),
    /// Print completions for a shell
    Completions(Completions),
    /// Explain the exit codes
    #[command(hide = true)]
    ExitCodes(exit_codes::ExitCodes),
    /// Write the man pages to a folder
    Man(Man),
}

// A command with subcommands. They are built only when the command is used, like the options of other commands. (A doc
// comment here would become the help of every group.)
#[derive(Debug, Args)]
pub(crate) struct Group<C: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: C,
}

/// Builds the whole command line with the commands of its groups, from which `kd help council …` is completed.
pub(crate) fn whole() -> clap::Command {
    type Augment = fn(clap::Command) -> clap::Command;
    let groups: [(&str, Augment); 8] = [
        ("batch", batch::Batch::augment_subcommands),
        ("memory", deliberate::Memory::augment_subcommands),
        ("council", council::Council::augment_subcommands),
        ("config", config::Config::augment_subcommands),
        ("model", model::Model::augment_subcommands),
        ("vote", vote::Vote::augment_subcommands),
        ("debug", debug::Debug::augment_subcommands),
        ("forum", forum::Forum::augment_subcommands),
    ];
    let listed = <Cli as clap::CommandFactory>::command();
    let names = listed.get_subcommands().map(|c| c.get_name().to_owned());
    let names: Vec<String> = names.collect();
    // Commands with both options and subcommands.
    let both: [(&'static str, Augment); 5] = [
        ("review", review::Review::augment_args),
        ("worker", worker::Worker::augment_args),
        ("marks", mark::Marks::augment_args),
        ("seal", seal::Seal::augment_args),
        ("prices", prices::Prices::augment_args),
    ];
    // A changed entry moves to the end, so change all of them, in order.
    let whole = both.into_iter().fold(listed, |whole, (name, augment)| {
        whole.mut_subcommand(name, |listed| {
            let about = listed.get_about().cloned().unwrap_or_default();
            augment(clap::Command::new(name).about(about))
        })
    });
    names.into_iter().fold(whole, |whole, name| {
        let group = groups.iter().find(|(group, _)| *group == name);
        whole.mut_subcommand(&name, |listed| match group {
            Some((name, augment)) => augment(
                clap::Command::new(*name)
                    .about(listed.get_about().cloned().unwrap_or_default())
                    .subcommand_required(true)
                    .arg_required_else_help(true),
            ),
            None => listed,
        })
    })
}

/// Print completions for a shell
///
/// Install them, for example:
///   bash        kd completions bash > ~/.local/share/bash-completion/completions/kd
///   zsh         kd completions zsh > "${fpath[1]}/_kd"
///   fish        kd completions fish > ~/.config/fish/completions/kd.fish
///   elvish      kd completions elvish >> ~/.config/elvish/rc.elv
///   powershell  kd completions powershell >> $PROFILE
#[allow(rustdoc::broken_intra_doc_links, reason = "the syntax of a shell")]
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Write the man pages to a folder
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; created if missing
    pub(crate) dir: PathBuf,
}

#[cfg(test)]
mod outputs;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::any::TypeId;

    #[test]
    fn the_definitions_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_list_of_commands_says_what_their_help_says() {
        let (listed, mut built) = (Cli::command(), Cli::command());
        built.build();
        for (listed, built) in listed.get_subcommands().zip(built.get_subcommands()) {
            let about = |command: &clap::Command| command.get_about().map(ToString::to_string);
            assert_eq!(about(listed), about(built), "{}", listed.get_name());
            assert!(about(listed).is_some(), "{}", listed.get_name());
            assert_eq!(listed.is_hide_set(), built.is_hide_set());
        }
    }

    #[test]
    fn help_of_every_command_of_a_group_is_completed() {
        let mut built = Cli::command();
        built.build();
        let mut script = Vec::new();
        clap_complete::generate(clap_complete::Shell::Bash, &mut whole(), "kd", &mut script);
        let script = String::from_utf8(script).expect("a script is a text");
        let mut groups = 0;
        for group in built.get_subcommands().filter(|c| c.get_name() != "help") {
            let below = group.get_subcommands().filter(|c| c.get_name() != "help");
            for command in below {
                let (group, command) = (group.get_name(), command.get_name());
                assert!(
                    script.contains(&format!("kd__subcmd__help__subcmd__{group},{command})")),
                    "kd help {group} {command}"
                );
                groups += 1;
            }
        }
        assert!(groups > 30, "{groups}");
    }

    #[test]
    fn help_reads_as_written() {
        for path in [
            &[][..],
            &["ask"],
            &["cost"],
            &["prices"],
            &["chat"],
            &["think"],
            &["council"],
            &["council", "chat"],
            &["council", "ask"],
            &["council", "show"],
            &["council", "list"],
            &["council", "status"],
            &["doctor"],
            &["council", "watch"],
            &["council", "retry"],
            &["council", "review"],
            &["council", "reset"],
            &["review"],
            &["review", "mark"],
            &["fsck"],
            &["debug", "decode"],
            &["export"],
            &["fork"],
            &["forget"],
            &["seal"],
            &["verify"],
            &["import"],
            &["mark"],
            &["marks"],
            &["replay"],
            &["init"],
            &["config"],
            &["config", "show"],
            &["config", "set"],
            &["trust"],
            &["model"],
            &["model", "pull"],
            &["mcp"],
            &["acp"],
            &["serve"],
            &["eval"],
            &["completions"],
            &["exit-codes"],
            &["deliberate"],
            &["batch"],
            &["batch", "run"],
        ] {
            let argv = ["kd"].iter().chain(path).chain(&["--help"]);
            let help = Cli::command()
                .try_get_matches_from(argv)
                .expect_err("help is an early exit");
            let name = format!(
                "help-{}",
                if path.is_empty() {
                    "kd".into()
                } else {
                    path.join("-")
                }
            );
            insta::assert_snapshot!(name, help::fit(&help.to_string(), 80));
        }
    }

    #[test]
    fn a_typo_is_answered_with_the_nearest_word() {
        let error = Cli::try_parse_from(["kd", "aks", "x"]).expect_err("a typo");
        let told = suggest::unknown(&error, &["aks".into(), "x".into()]).expect("no command");
        assert!(
            told.to_string().contains("`kd ask`")
                || told.next.is_some_and(|n| n.contains("`kd ask`"))
        );
        let error = Cli::try_parse_from(["kd", "ask", "x", "--memebrs", "a"]).expect_err("a typo");
        assert!(error.to_string().contains("'--members'"), "{error}");
    }

    /// Every number that is typed wrong is answered with what to write.
    #[test]
    fn a_wrong_number_says_what_to_write() {
        fn walk(command: &clap::Command, path: &[String], seen: &mut usize) {
            for arg in command.get_arguments() {
                let kind = arg.get_value_parser().type_id();
                let numbers = [
                    TypeId::of::<u16>(),
                    TypeId::of::<u32>(),
                    TypeId::of::<u64>(),
                    TypeId::of::<usize>(),
                    TypeId::of::<i32>(),
                    TypeId::of::<i64>(),
                    TypeId::of::<f32>(),
                    TypeId::of::<f64>(),
                    TypeId::of::<std::time::Duration>(),
                ];
                if !numbers.iter().any(|number| kind == *number) {
                    continue;
                }
                if arg.get_long().is_none() && arg.get_index() != Some(1) {
                    continue;
                }
                *seen += 1;
                for value in ["x", "0", "-1"] {
                    let long = arg.get_long().map(|long| format!("--{long}"));
                    let words = ["kd".to_owned()].into_iter().chain(path.iter().cloned());
                    let words: Vec<String> = words.chain(long).chain([value.to_owned()]).collect();
                    let read = Cli::command().try_get_matches_from(&words);
                    let Err(error) = read else { continue };
                    let text = error.to_string();
                    let is_value = error.kind() == clap::error::ErrorKind::ValueValidation;
                    assert!(value != "x" || is_value, "{words:?}: {text}");
                    assert!(
                        !text.contains("unexpected argument '-1'"),
                        "{words:?}: {text}"
                    );
                    if is_value {
                        let teaches = ["write a", "must be greater"];
                        let teaches = teaches.iter().any(|words| text.contains(words));
                        assert!(teaches, "{words:?}: {text}");
                    }
                }
            }
            for below in command.get_subcommands() {
                let path = [path, &[below.get_name().to_owned()]].concat();
                walk(below, &path, seen);
            }
        }
        let mut built = Cli::command();
        built.build();
        let mut seen = 0;
        walk(&built, &[], &mut seen);
        assert!(seen > 60, "{seen}");
    }

    #[test]
    fn options_that_exclude_each_other_are_refused() {
        for line in [
            "forget a94d --older 1d",
            "forget --message 2 --older 1d",
            "forget --message 2 --older 1d --yes",
            "forget --message 2",
            "forget a94d --dry-run --yes",
            "forget",
            "memory forget domain --all",
            "memory forget",
            "fork --before 2 --stage review",
            "seal a94d --from x.json",
            "seal key --sign",
            "replay a94d b3f1",
            "export a94d b3f1",
            "verify",
            "import",
            "deliberate --resume a94d --rule irv",
            "deliberate --resume a94d --iterate",
            "deliberate --resume a94d question",
            "show --all --last 2",
            "list --all --batch x",
            "eval --replay x --members a,b --councils 3",
            "eval --replay x --members a,b --size 3",
            "eval --replay x --promise 0.9 --size 3",
            "eval --replay x --councils 3 --marks 5",
            "eval --replay x --councils 3 --splits 5",
            "eval --replay x --rule irv --drift",
            "eval --replay x --json -o y",
            "eval --replay x --councils 3 -o y",
        ] {
            let words = std::iter::once("kd").chain(line.split_whitespace());
            assert!(Cli::try_parse_from(words).is_err(), "{line}");
        }
    }

    #[test]
    fn every_flag_of_ask_combines() {
        let line = "kd ask --continue --to claude,codex --members claude,codex,gpt --model m --temperature 0.3 \
                    --max-tokens 200 --timeout 2m --seed 7 --no-conclude --plain --jsonl --quiet --color never \
                    -o out.md --offline What now ?";
        let cli = Cli::try_parse_from(line.split_whitespace()).expect("all of it");
        let Command::Ask(ask) = cli.command else {
            panic!("ask")
        };
        assert_eq!(ask.question, ["What", "now", "?"]);
        assert_eq!(ask.timeout.expect("given").as_secs(), 120);
        assert_eq!(ask.to.len(), 2);
        assert!(Cli::try_parse_from(["kd", "ask", "x", "--json", "--jsonl"]).is_err());
    }
}
