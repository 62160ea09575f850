//! The slash commands of a chat: one table for every front end.
//!
//! Input: a line of the user. Output: the command, or why it is invalid, with the closest command. A line that does not
//! begin with a slash is a message, as is one that begins with two (the first is stripped) or with something that looks
//! like a path.

use crate::ids::{BadSeatName, SeatName};
use crate::op::Op;
use std::fmt;

/// The argument of a command, for parsing and completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// A member's name.
    Member,
    /// A member's name, or nothing.
    MaybeMember,
    /// The name of an agent of the settings.
    Agent,
    /// A mode, or nothing.
    MaybeMode,
    /// A number, or nothing.
    MaybeNumber,
    /// A thread id or a prefix of one, or nothing.
    MaybeThread,
    /// A member's name, `code`, `all`, or nothing.
    MaybePart,
    /// A file's name, or nothing.
    MaybeFile,
    /// A question, or nothing.
    MaybeQuestion,
    /// A judgment of a verdict.
    Judgment,
    /// Two members' names, or nothing.
    MaybeTwo,
}

/// A slash command.
#[derive(Clone, Copy)]
pub struct SlashCommand {
    /// Its name, without the slash.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Its argument as shown in the help.
    pub args: &'static str,
    /// The argument, for parsing.
    pub takes: Takes,
    /// Its description, in one line.
    pub doc: &'static str,
    /// Whether it requires a screen.
    pub screen_only: bool,
    make: fn(Option<&str>) -> Result<Slash, BadArgument>,
}

impl fmt::Debug for SlashCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlashCommand(/{})", self.name)
    }
}

/// The reason why a command does not take its argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum BadArgument {
    /// The text to write instead.
    #[error("{0}")]
    Write(&'static str),
    /// A count that is not a number.
    #[error("`{0}` is not a whole number of 1 or more")]
    Count(String),
    /// A number of turns that is not a number.
    #[error("{0} is not a number of turns: write 0, 1, 2 … or `default`")]
    Turns(String),
    /// A name that no member can have.
    #[error(transparent)]
    Name(#[from] BadSeatName),
}

/// A parsed slash command.
#[derive(Clone, Debug, PartialEq)]
pub enum Slash {
    /// An operation of the council.
    Op(Op),
    /// Show the mode and the available ones.
    ShowMode,
    /// Show how many turns follow the answers.
    ShowAuto,
    /// List the members.
    Members,
    /// Change who takes part in this thread.
    Seat(Seating),
    /// Switch to the named thread, or choose one.
    Thread(Option<String>),
    /// Start a new thread.
    New,
    /// Continue in a fork of this thread.
    Fork(Fork),
    /// Copy something.
    Copy(Part),
    /// Write the thread to a file, or show it as Markdown.
    Export(Option<String>),
    /// Answer a question, or the last one, in an aside.
    Aside(Way, Option<String>),
    /// Mark the newest verdict as right, wrong, or by the right answer.
    Mark(String),
    /// Show the newest answers of two members side by side, of the newest two without names.
    Compare(Option<(SeatName, SeatName)>),
    /// Pick parts of the newest answers for the next message.
    Merge,
    /// Show or fold the thinking.
    Thinking,
    /// List the keys.
    Keys,
    /// Show the help.
    Help,
    /// Quit when the running turns have ended; if repeated, immediately.
    Quit,
}

/// A change of the members of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seating {
    /// This agent takes part too, as the last.
    Add(SeatName),
    /// This member takes part no longer. Its messages stay.
    Remove(SeatName),
}

/// The messages that a fork keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The whole thread.
    Whole,
    /// The part before the message with this number.
    Before(u32),
    /// Everything except the newest messages of the user, up to this number, and the answers to them.
    Rewind(u32),
}

/// The protocol of an aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A debate of a fast and a rigorous member.
    Think,
    /// A deliberation.
    Deliberate,
    /// The rest of the thread's deliberation that has not ended.
    Resume,
}

/// The text to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The newest answer.
    Last,
    /// The newest answer of a member.
    Of(SeatName),
    /// The newest code block.
    Code,
    /// The whole thread.
    All,
}

/// All commands, in help order.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "mute",
        aliases: &[],
        args: "<member>",
        takes: Takes::Member,
        doc: "skip a member until you quit: it is not asked and costs nothing",
        screen_only: false,
        make: |arg| Ok(Slash::Op(Op::Mute { seat: needed(arg)? })),
    },
    SlashCommand {
        name: "unmute",
        aliases: &[],
        args: "<member>",
        takes: Takes::Member,
        doc: "ask a muted member again",
        screen_only: false,
        make: |arg| Ok(Slash::Op(Op::Unmute { seat: needed(arg)? })),
    },
    SlashCommand {
        name: "retry",
        aliases: &[],
        args: "[member]",
        takes: Takes::MaybeMember,
        doc: "ask failed members again; the new answer replaces the failed one",
        screen_only: false,
        make: |arg| {
            Ok(Slash::Op(Op::Retry {
                seat: arg.map(seat).transpose()?,
            }))
        },
    },
    SlashCommand {
        name: "stop",
        aliases: &[],
        args: "[member]",
        takes: Takes::MaybeMember,
        doc: "stop one member, or all of them (as Esc does); partial answers are saved",
        screen_only: false,
        make: |arg| {
            Ok(Slash::Op(match arg {
                Some(name) => Op::Stop { seat: seat(name)? },
                None => Op::Interrupt,
            }))
        },
    },
    SlashCommand {
        name: "think",
        aliases: &[],
        args: "[question]",
        takes: Takes::MaybeQuestion,
        doc: "a fast and a rigorous member debate and answer; without text, your last question",
        screen_only: false,
        make: |arg| Ok(Slash::Aside(Way::Think, arg.map(str::to_owned))),
    },
    SlashCommand {
        name: "deliberate",
        aliases: &[],
        args: "[question]",
        takes: Takes::MaybeQuestion,
        doc: "opinions, reviews, a vote and a conclusion; without text, your last question",
        screen_only: false,
        make: |arg| Ok(Slash::Aside(Way::Deliberate, arg.map(str::to_owned))),
    },
    SlashCommand {
        name: "resume",
        aliases: &[],
        args: "",
        takes: Takes::Nothing,
        doc: "finish the deliberation of this thread that was forked or killed",
        screen_only: false,
        make: |_| Ok(Slash::Aside(Way::Resume, None)),
    },
    SlashCommand {
        name: "mark",
        aliases: &[],
        args: "<right|wrong|answer>",
        takes: Takes::Judgment,
        doc: "mark the newest verdict of this thread: right, wrong, a share, or the right answer",
        screen_only: false,
        make: |arg| {
            let word = arg.ok_or(BadArgument::Write(
                "write `right`, `wrong`, or the right answer",
            ))?;
            Ok(Slash::Mark(word.to_owned()))
        },
    },
    SlashCommand {
        name: "pick",
        aliases: &["choose"],
        args: "<member>",
        takes: Takes::Member,
        doc: "record that you choose a member's newest answer; nobody is asked, all see it next turn",
        screen_only: false,
        make: |arg| Ok(Slash::Op(Op::Choose { seat: needed(arg)? })),
    },
    SlashCommand {
        name: "compare",
        aliases: &["diff"],
        args: "[member member]",
        takes: Takes::MaybeTwo,
        doc: "two answers side by side, with the words that differ marked; alone, the newest two",
        screen_only: true,
        make: |arg| {
            let Some(names) = arg else {
                return Ok(Slash::Compare(None));
            };
            let names: Vec<&str> = names.split_whitespace().collect();
            let &[one, other] = names.as_slice() else {
                return Err(BadArgument::Write("name two members, or none"));
            };
            let (one, other) = (seat(one)?, seat(other)?);
            if one == other {
                return Err(BadArgument::Write("name two different members"));
            }
            Ok(Slash::Compare(Some((one, other))))
        },
    },
    SlashCommand {
        name: "merge",
        aliases: &[],
        args: "",
        takes: Takes::Nothing,
        doc: "tick parts of the newest answers; they become the draft of your next message",
        screen_only: true,
        make: |_| Ok(Slash::Merge),
    },
    SlashCommand {
        name: "mode",
        aliases: &[],
        args: "[mode]",
        takes: Takes::MaybeMode,
        doc: "set the turn order: broadcast, sequential, natural or manual; alone, show it",
        screen_only: false,
        make: |arg| {
            Ok(match arg {
                Some(mode) => Slash::Op(Op::Mode {
                    mode: mode.to_lowercase(),
                }),
                None => Slash::ShowMode,
            })
        },
    },
    SlashCommand {
        name: "auto",
        aliases: &[],
        args: "[N|default]",
        takes: Takes::MaybeNumber,
        doc: "set how many turns follow the answers: 0 for none, `default` for the mode's own",
        screen_only: false,
        make: |arg| {
            Ok(match arg {
                None => Slash::ShowAuto,
                Some("default") => Slash::Op(Op::Auto { messages: None }),
                Some(number) => Slash::Op(Op::Auto {
                    messages: Some(
                        number
                            .parse()
                            .map_err(|_| BadArgument::Turns(number.to_owned()))?,
                    ),
                }),
            })
        },
    },
    SlashCommand {
        name: "members",
        aliases: &["who"],
        args: "",
        takes: Takes::Nothing,
        doc: "list the members: muted ones and those that speak",
        screen_only: false,
        make: |_| Ok(Slash::Members),
    },
    SlashCommand {
        name: "add",
        aliases: &[],
        args: "<agent>",
        takes: Takes::Agent,
        doc: "let another agent take part in this thread from now on",
        screen_only: false,
        make: |arg| Ok(Slash::Seat(Seating::Add(needed(arg)?))),
    },
    SlashCommand {
        name: "remove",
        aliases: &[],
        args: "<member>",
        takes: Takes::Member,
        doc: "let a member take part in this thread no longer; its messages stay",
        screen_only: false,
        make: |arg| Ok(Slash::Seat(Seating::Remove(needed(arg)?))),
    },
    SlashCommand {
        name: "thread",
        aliases: &["threads"],
        args: "[id]",
        takes: Takes::MaybeThread,
        doc: "switch to another thread, or choose one",
        screen_only: false,
        make: |arg| Ok(Slash::Thread(arg.map(str::to_owned))),
    },
    SlashCommand {
        name: "new",
        aliases: &[],
        args: "",
        takes: Takes::Nothing,
        doc: "start a new thread",
        screen_only: false,
        make: |_| Ok(Slash::New),
    },
    SlashCommand {
        name: "fork",
        aliases: &[],
        args: "[N]",
        takes: Takes::MaybeNumber,
        doc: "continue in a copy of this thread; with N, without message N and later ones",
        screen_only: false,
        make: |arg| {
            Ok(Slash::Fork(match arg {
                None => Fork::Whole,
                Some(number) => Fork::Before(counted(number)?),
            }))
        },
    },
    SlashCommand {
        name: "rewind",
        aliases: &[],
        args: "[N]",
        takes: Takes::MaybeNumber,
        doc: "go back before your last message, or your last N; the old thread stays",
        screen_only: false,
        make: |arg| Ok(Slash::Fork(Fork::Rewind(arg.map_or(Ok(1), counted)?))),
    },
    SlashCommand {
        name: "copy",
        aliases: &[],
        args: "[member|code|all]",
        takes: Takes::MaybePart,
        doc: "copy the newest answer, a member's, the newest code, or the whole thread",
        screen_only: true,
        make: |arg| {
            Ok(Slash::Copy(match arg {
                None => Part::Last,
                Some("code") => Part::Code,
                Some("all") => Part::All,
                Some(name) => Part::Of(seat(name)?),
            }))
        },
    },
    SlashCommand {
        name: "export",
        aliases: &[],
        args: "[file]",
        takes: Takes::MaybeFile,
        doc: "write the thread as Markdown (or a web page or JSON, by the file's name)",
        screen_only: false,
        make: |arg| Ok(Slash::Export(arg.map(str::to_owned))),
    },
    SlashCommand {
        name: "thinking",
        aliases: &[],
        args: "",
        takes: Takes::Nothing,
        doc: "show or fold the thinking of the members",
        screen_only: true,
        make: |_| Ok(Slash::Thinking),
    },
    SlashCommand {
        name: "keys",
        aliases: &[],
        args: "",
        takes: Takes::Nothing,
        doc: "list the keys and the names by which `chat.keys` of your settings changes them",
        screen_only: true,
        make: |_| Ok(Slash::Keys),
    },
    SlashCommand {
        name: "help",
        aliases: &["h", "?"],
        args: "",
        takes: Takes::Nothing,
        doc: "these commands",
        screen_only: false,
        make: |_| Ok(Slash::Help),
    },
    SlashCommand {
        name: "quit",
        aliases: &["exit", "q"],
        args: "",
        takes: Takes::Nothing,
        doc: "quit when the running turns have ended; again, quit at once",
        screen_only: false,
        make: |_| Ok(Slash::Quit),
    },
];

/// The meaning of a line of the user.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A message to the members.
    Say(String),
    /// A command.
    Slash(Slash),
    /// An invalid command: the reason, and a correction.
    Wrong(String),
}

/// Parses a line, or several lines sent together.
pub fn read(line: &str) -> Line {
    let text = line.trim();
    let Some(rest) = text.strip_prefix('/') else {
        return Line::Say(text.to_owned());
    };
    if rest.starts_with('/') {
        return Line::Say(rest.to_owned());
    }
    let (name, arg) = match rest.split_once(char::is_whitespace) {
        Some((name, arg)) => (name, Some(arg.trim()).filter(|arg| !arg.is_empty())),
        None => (rest, None),
    };
    // `/usr/bin is full` begins with a path.
    if name.contains(['/', '.']) {
        return Line::Say(text.to_owned());
    }
    let lower = name.to_lowercase();
    let Some(command) = find(&lower) else {
        return Line::Wrong(match nearest(&lower) {
            Some(near) => format!("there is no /{name}: did you mean /{}?", near.name),
            None => {
                format!(
                    "there is no /{name}: /help lists the commands (write //{name} to send it as text)"
                )
            }
        });
    };
    if let (Takes::Nothing, Some(arg)) = (command.takes, arg) {
        let name = command.name;
        return Line::Wrong(format!("/{name} takes no argument, but got `{arg}`"));
    }
    match (command.make)(arg) {
        Ok(slash) => Line::Slash(slash),
        Err(why) => Line::Wrong(format!("/{} {}: {why}", command.name, command.args)),
    }
}

/// Finds a command by name or alias.
pub fn find(name: &str) -> Option<&'static SlashCommand> {
    COMMANDS
        .iter()
        .find(|c| c.name == name || c.aliases.contains(&name))
}

/// Returns the command closest to a misspelled name: one that it is a prefix of, otherwise one spelled similarly.
pub fn nearest(name: &str) -> Option<&'static SlashCommand> {
    let begun = || {
        let mut begun = COMMANDS
            .iter()
            .filter(|c| !name.is_empty() && c.name.starts_with(name));
        begun.next().filter(|_| begun.next().is_none())
    };
    let near = || {
        let far = |c: &SlashCommand| strsim::damerau_levenshtein(name, c.name);
        let far_max = 1 + name.chars().count() / 4;
        COMMANDS
            .iter()
            .map(|c| (far(c), c))
            .filter(|(far, _)| *far <= far_max.min(2))
            .min_by_key(|(far, _)| *far)
            .map(|(_, c)| c)
    };
    begun().or_else(near)
}

/// Returns the help, one line per command, for a front end with or without a screen.
pub fn help(screen: bool) -> Vec<String> {
    COMMANDS
        .iter()
        .filter(|c| screen || !c.screen_only)
        .map(|c| {
            let head = format!("/{} {}", c.name, c.args);
            format!("{head:<24} {}", c.doc)
        })
        .collect()
}

fn counted(text: &str) -> Result<u32, BadArgument> {
    let number = text.trim_start_matches('#').parse().ok();
    let number = number.filter(|number| *number > 0);
    number.ok_or_else(|| BadArgument::Count(text.to_owned()))
}

fn needed(arg: Option<&str>) -> Result<SeatName, BadArgument> {
    seat(arg.ok_or(BadArgument::Write("name a member"))?)
}

fn seat(name: &str) -> Result<SeatName, BadArgument> {
    Ok(SeatName::new(name.trim_start_matches('@'))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claude() -> SeatName {
        SeatName::new("claude").unwrap()
    }

    #[test]
    fn lines_are_read_as_people_mean_them() {
        let say = |text: &str| Line::Say(text.to_owned());
        let op = |op| Line::Slash(Slash::Op(op));
        for (line, read_as) in [
            (" hello ", say("hello")),
            ("//mute is a command", say("/mute is a command")),
            ("/usr/bin/kd is slow", say("/usr/bin/kd is slow")),
            ("/etc/hosts", say("/etc/hosts")),
            ("a\n/mute claude", say("a\n/mute claude")),
            ("/mute @claude", op(Op::Mute { seat: claude() })),
            ("/MUTE claude", op(Op::Mute { seat: claude() })),
            ("/retry", op(Op::Retry { seat: None })),
            (
                "/retry claude",
                op(Op::Retry {
                    seat: Some(claude()),
                }),
            ),
            ("/stop", op(Op::Interrupt)),
            (
                "/mode Natural",
                op(Op::Mode {
                    mode: "natural".into(),
                }),
            ),
            ("/mode", Line::Slash(Slash::ShowMode)),
            ("/auto 0", op(Op::Auto { messages: Some(0) })),
            ("/auto default", op(Op::Auto { messages: None })),
            ("/copy code", Line::Slash(Slash::Copy(Part::Code))),
            (
                "/export a b.md",
                Line::Slash(Slash::Export(Some("a b.md".into()))),
            ),
            ("/think", Line::Slash(Slash::Aside(Way::Think, None))),
            (
                "/think which\none?",
                Line::Slash(Slash::Aside(Way::Think, Some("which\none?".into()))),
            ),
            (
                "/deliberate why? ",
                Line::Slash(Slash::Aside(Way::Deliberate, Some("why?".into()))),
            ),
            ("/resume", Line::Slash(Slash::Aside(Way::Resume, None))),
            ("/mark 391 m", Line::Slash(Slash::Mark("391 m".into()))),
            ("/pick @claude", op(Op::Choose { seat: claude() })),
            ("/compare", Line::Slash(Slash::Compare(None))),
            ("/merge", Line::Slash(Slash::Merge)),
            ("/thinking", Line::Slash(Slash::Thinking)),
            ("/fork", Line::Slash(Slash::Fork(Fork::Whole))),
            ("/fork #7", Line::Slash(Slash::Fork(Fork::Before(7)))),
            ("/rewind", Line::Slash(Slash::Fork(Fork::Rewind(1)))),
            ("/rewind 2", Line::Slash(Slash::Fork(Fork::Rewind(2)))),
            ("/exit", Line::Slash(Slash::Quit)),
            ("/?", Line::Slash(Slash::Help)),
        ] {
            assert_eq!(read(line), read_as, "{line:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_the_way_out() {
        for (line, told) in [
            ("/mut claude", "did you mean /mute?"),
            ("/hlep", "did you mean /help?"),
            ("/memb", "did you mean /members?"),
            ("/delib", "did you mean /deliberate?"),
            ("/xyzzy", "write //xyzzy to send it"),
            ("/mute", "name a member"),
            ("/mute king", "names the user"),
            ("/auto many", "is not a number of turns"),
            ("/new thread", "takes no argument"),
            ("/resume a94d", "takes no argument"),
            ("/fork 0", "not a whole number of 1"),
            ("/rewind all", "not a whole number of 1"),
            ("/", "/help lists the commands"),
        ] {
            let Line::Wrong(why) = read(line) else {
                panic!("{line:?} was understood");
            };
            assert!(why.contains(told), "{line:?}: {why}");
        }
    }

    #[test]
    fn every_command_takes_what_its_row_says() {
        for command in COMMANDS {
            // Arguments that the command must accept, and arguments that it must refuse; "" is not an argument.
            let (accepts, refuses): (&[&str], &[&str]) = match command.takes {
                Takes::Nothing => (&[""], &["ada"]),
                Takes::Member | Takes::Agent => (&["ada", "@ada"], &["", "a/b", "king"]),
                Takes::MaybeMember => (&["", "ada", "@ada"], &["a/b", "king"]),
                Takes::MaybeNumber => (&["", "2"], &["-1", "many"]),
                Takes::MaybePart => (&["", "code", "all", "ada"], &["a/b"]),
                Takes::MaybeMode => (&["", "natural"], &[]),
                Takes::Judgment => (&["right", "0.7", "the answer is 391"], &[""]),
                Takes::MaybeTwo => (&["", "ada @bob"], &["ada", "ada ada", "a/b c"]),
                Takes::MaybeThread | Takes::MaybeFile | Takes::MaybeQuestion => (&["", "x y"], &[]),
            };
            let line = |arg: &str| read(&format!("/{} {arg}", command.name));
            for arg in accepts {
                let read = line(arg);
                assert!(
                    matches!(read, Line::Slash(_)),
                    "/{} {arg}: {read:?}",
                    command.name
                );
            }
            for arg in refuses {
                let read = line(arg);
                assert!(
                    matches!(read, Line::Wrong(_)),
                    "/{} {arg}: {read:?}",
                    command.name
                );
            }
            let optional = command.args.starts_with('[');
            assert_eq!(
                optional || command.args.is_empty(),
                accepts.contains(&""),
                "/{} {}",
                command.name,
                command.args
            );
        }
    }

    #[test]
    fn every_name_means_one_command_and_every_row_has_help() {
        let mut names: Vec<&str> = Vec::new();
        for command in COMMANDS {
            names.push(command.name);
            names.extend(command.aliases);
            assert_eq!(command.takes == Takes::Nothing, command.args.is_empty());
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(help(true).len(), COMMANDS.len());
        assert!(help(false).iter().all(|line| !line.starts_with("/copy")));
    }
}
