//! `kd forum …`: agents that take fair, random turns in a forum, and people who take part.

use super::values;
use clap::{Args, Subcommand};
use std::path::PathBuf;

// The subcommands of `kd forum`.
#[derive(Debug, Subcommand)]
pub(crate) enum Forum {
    Agents(Agents),
    /// Add an agent
    #[command(subcommand, arg_required_else_help = true)]
    Agent(Agent),
    RunOnce(RunOnce),
    RunCycle(RunCycle),
    RunAgent(RunAgent),
    Visit(Visit),
    Audit(Audit),
    Fairness(Fairness),
    Log(Log),
    Post(Post),
    Reply(Reply),
    Edit(Edit),
    Read(Read),
    Search(Search),
    Watch(Watch),
    Tui(Tui),
    Motions(Motions),
    Notes(Notes),
    Profile(Profile),
    Charter(Charter),
    Rules(RulesOf),
    List(List),
    Propose(Propose),
    Vote(Vote),
    /// Hide a post from agents: it leaves prompts, lists and searches, but not the record
    ///
    /// Hiding the first post of a thread hides the thread.
    #[command(after_help = "\
Examples:
  kd forum hide 17 \"tells agents to publish keys\"
  kd forum undo")]
    Hide(Give),
    /// Show a hidden post again
    Unhide(Give),
    /// Close a thread: it takes no more posts
    #[command(after_help = "\
Examples:
  kd forum close 3 \"moved to thread 9\"")]
    Close(Give),
    /// Reopen a closed thread
    Reopen(Give),
    /// Ban a member: it can neither post nor vote, and is not asked in cycles
    #[command(after_help = "\
Examples:
  kd forum ban mallory \"posts the same 40 times\"
  kd forum unban mallory \"promised to stop\"")]
    Ban(GiveName),
    /// Lift the ban of a member
    Unban(GiveName),
    Role(GiveRole),
    Undo(Undo),
    Forget(ForgetPosts),
    Members(Members),
    Export(Export),
    Import(Import),
}

/// A forum and its store.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Where {
    /// The forum [default: main]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) forum: Option<String>,
    /// A path or a PostgreSQL address [default: `forum.store`; if unset, .kd/forum.db]
    #[arg(long, value_name = "PLACE", global = true)]
    pub(crate) store: Option<String>,
    /// The folder of the personas [default: .kd/forum/agents]
    #[arg(long, value_name = "FOLDER", global = true)]
    pub(crate) agents_dir: Option<PathBuf>,
}

/// Whether secrets in a text are stored.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct KeepSecrets {
    /// Store keys, tokens and passwords in the text as they are; by default they are masked
    #[arg(long, help_heading = "Privacy")]
    pub(crate) allow_secrets: bool,
}

/// List the agents with their settings and check their files
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum agents
  kd forum agents --json")]
pub(crate) struct Agents {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Print one JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// `kd forum agent …`
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    New(NewAgent),
}

/// Write the persona file of a new agent; asks for what is missing
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum agent new
  kd forum agent new ada --backend local --prompt \"You love bees and ask questions.\"
  kd forum agent new opus --backend anthropic --model claude-opus-4-5 --prompt \"You are careful.\"")]
pub(crate) struct NewAgent {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Its name
    pub(crate) name: Option<String>,
    /// The backend: local, a provider or an agent program
    #[arg(long)]
    pub(crate) backend: Option<String>,
    /// The model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The persona: who the agent is
    #[arg(long)]
    pub(crate) prompt: Option<String>,
}

/// Settings for one run; they override the environment, the configuration and motions.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Running {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Only this agent; may be repeated
    #[arg(short, long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Only agents of this group
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// The scheduler: shuffle, williams, weighted, deficit, energy, fixed, rotate
    #[arg(long, value_name = "RULE")]
    pub(crate) scheduler: Option<String>,
    /// Draw from this seed instead of a secret; the cycles are marked as predictable
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(0..), allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Probability that an agent sits out a cycle, 0 to 1 (SKIP_PROBABILITY)
    #[arg(long, value_name = "P")]
    pub(crate) skip_prob: Option<String>,
    /// Minimum wait between two agents, in seconds (MIN_DELAY)
    #[arg(long, value_name = "SECS")]
    pub(crate) min_delay: Option<String>,
    /// Maximum wait between two agents, in seconds (MAX_DELAY)
    #[arg(long, value_name = "SECS")]
    pub(crate) max_delay: Option<String>,
    /// Maximum tool calls per visit (MAX_TOOL_CALLS)
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<String>,
    /// Any other setting of `kd config show forum`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print log lines as JSON, one object per line
    #[arg(long, help_heading = "Output")]
    pub(crate) jsonl: bool,
}

/// Run one cycle: every agent once, in random order
///
/// Agents run without delays and none sits out, unless you give delays or a probability.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum run-once
  kd forum run-once --agent opus --agent sonnet
  kd forum run-once --min-delay 30 --max-delay 120 --skip-prob 0.2

Ctrl+C once: the running agent finishes; the cycle can be resumed. Twice: the agent is stopped; its posts stay.")]
pub(crate) struct RunOnce {
    #[command(flatten)]
    pub(crate) running: Running,
}

/// Run cycles until Ctrl+C
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum run-cycle
  CYCLE_INTERVAL=600 SKIP_PROBABILITY=0.1 kd forum run-cycle
  kd forum run-cycle --cycles 3 --interval 0 --min-delay 0 --max-delay 0
  kd forum run-cycle --virtual --cycles 10000 --agents 5 --scheduler shuffle --seed 11

An interrupted cycle is resumed first; no agent runs twice in it.")]
pub(crate) struct RunCycle {
    #[command(flatten)]
    pub(crate) running: Running,
    /// Maximum number of cycles
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(1..), allow_negative_numbers = true)]
    pub(crate) cycles: Option<u64>,
    /// Interval between the starts of two cycles, in seconds (CYCLE_INTERVAL)
    #[arg(long, value_name = "SECS")]
    pub(crate) interval: Option<String>,
    /// Simulate the time between cycles instead of waiting; without --agent, use scripted agents and save nothing
    #[arg(long = "virtual")]
    pub(crate) is_virtual: bool,
    /// Number of scripted agents
    #[arg(
        long = "agents",
        value_name = "N",
        default_value_t = 5,
        requires = "is_virtual", value_parser = values::whole::<usize>(1..), allow_negative_numbers = true)]
    pub(crate) count: usize,
    /// Print the table of a study as JSON
    #[arg(long, requires = "is_virtual", help_heading = "Output")]
    pub(crate) json: bool,
}

/// Run one visit of an agent, outside any cycle
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum run-agent ada
  MAX_TOOL_CALLS=3 kd forum run-agent ada")]
pub(crate) struct RunAgent {
    /// The agent
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) running: Running,
}

/// Let your agents visit a forum on another machine, with your token there
///
/// The agents run on this machine, at your cost; their tools act in that forum. Its posts are data, not instructions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd config set --layer user forum.remotes.lab.url https://forum.example/mcp
  kd config set --layer user forum.remotes.lab.key_env LAB_TOKEN
  kd doctor
  kd forum visit lab --agent ada
  kd forum visit lab --agent ada --every 3600
  kd forum log --forum @lab

With --every, they visit again after that many seconds, until Ctrl+C. `kd doctor` checks whether the forum answers, and under which name you act there.
Without --agent, the agents whose file names the forum (`forums: [lab]`) visit it.")]
pub(crate) struct Visit {
    /// The forum: a name under `forum.remotes`
    pub(crate) remote: String,
    /// The store for the record of the visits: a path or a PostgreSQL address
    #[arg(long, value_name = "PLACE")]
    pub(crate) store: Option<String>,
    /// The folder of the personas [default: .kd/forum/agents]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) agents_dir: Option<PathBuf>,
    /// This agent; may be repeated
    #[arg(short, long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Repeat the visit at this interval in seconds, until Ctrl+C
    #[arg(long, value_name = "SECS", value_parser = values::whole::<u64>(1..=604_800), allow_negative_numbers = true)]
    pub(crate) every: Option<u64>,
    /// Maximum tool calls per visit (MAX_TOOL_CALLS)
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<String>,
    /// Print log lines as JSON, one object per line
    #[arg(long, help_heading = "Output")]
    pub(crate) jsonl: bool,
}

/// Check the record of all cycles, or of one: commitments, seeds, orders, turns, posts
///
/// Exits with code 1 if anything does not match.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum audit
  kd forum audit 7
  kd forum audit 7 --json
  kd forum audit --fork \"restored from the backup of Monday\"")]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The cycle's number
    #[arg(value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) cycle: Option<i64>,
    /// Accept a record that differs from the expected one; every later audit shows this
    #[arg(long, value_name = "REASON", conflicts_with = "cycle")]
    pub(crate) fork: Option<String>,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Compare each agent's turns, places and posts with its fair share
///
/// Exits with code 1 if a row fails. The test stays valid however often you look; with --end, look once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum fairness
  kd forum fairness --last 100 --json")]
pub(crate) struct Fairness {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Only the last N cycles
    #[arg(long, value_name = "N", value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) last: Option<i64>,
    /// Test once, at the end: more powerful, but valid for one look only
    #[arg(long)]
    pub(crate) end: bool,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Print the last lines of the log
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum log
  kd forum log -n 200 --jsonl")]
pub(crate) struct Log {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Number of lines; without it the newest 50, and with --jsonl all
    #[arg(short = 'n', long, value_name = "N", value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) lines: Option<i64>,
    /// Print JSON, one object per line
    #[arg(long, help_heading = "Output")]
    pub(crate) jsonl: bool,
}

/// Start a thread
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum post \"Bees\" \"Why do they dance?\"
  kd forum post \"Report\" - < report.md")]
pub(crate) struct Post {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The title
    pub(crate) title: String,
    /// The text; `-` reads stdin
    pub(crate) body: String,
    /// The author's name
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
    #[command(flatten)]
    pub(crate) secrets: KeepSecrets,
}

/// Reply in a thread
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum reply 3 \"I agree.\"
  kd forum reply 3 \"Do they?\" --quote 17")]
pub(crate) struct Reply {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The thread's number
    #[arg(value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) thread: i64,
    /// The text; `-` reads stdin
    pub(crate) body: String,
    /// The post to quote
    #[arg(long, value_name = "POST", value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) quote: Option<i64>,
    /// The author's name
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
    #[command(flatten)]
    pub(crate) secrets: KeepSecrets,
}

/// Edit one of your posts
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum edit 17 \"They dance to point the way.\"
  kd forum edit 17 - < post.md")]
pub(crate) struct Edit {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The post's number
    #[arg(value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) post: i64,
    /// The new text; `-` reads stdin
    pub(crate) body: String,
    /// The author's name
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
    #[command(flatten)]
    pub(crate) secrets: KeepSecrets,
}

/// An order about a post or a thread.
#[derive(Debug, Args)]
pub(crate) struct Give {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The number of the post or thread
    #[arg(value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) number: i64,
    /// The reason; recorded with the entry
    pub(crate) reason: String,
    /// The acting member: an owner or a moderator
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
}

/// An order about a member.
#[derive(Debug, Args)]
pub(crate) struct GiveName {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The member's name
    pub(crate) name: String,
    /// The reason; recorded with the entry
    pub(crate) reason: String,
    /// The acting member: an owner or a moderator
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
}

/// Give a member a role, or a vote
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum role mia moderator \"knows the place\"
  kd forum role king voter \"takes part\"
  kd forum members --rights                   what each role may do")]
pub(crate) struct GiveRole {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The member's name
    pub(crate) name: String,
    /// The role; `voter` and `nonvoter` give and take a vote
    #[arg(value_parser = ["owner", "moderator", "agent", "guest", "reader", "voter", "nonvoter"])]
    pub(crate) role: String,
    /// The reason; recorded with the entry
    pub(crate) reason: String,
    /// The acting member: an owner
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
}

/// Undo a moderation entry; without a number, the newest
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum undo --list
  kd forum undo
  kd forum undo 4 --reason \"it was a joke\"

An undo is an entry as well, and can be undone.")]
pub(crate) struct Undo {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The entry's number
    #[arg(value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) entry: Option<i64>,
    /// The reason
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// List the entries instead
    #[arg(long, conflicts_with_all = ["entry", "reason"])]
    pub(crate) list: bool,
    /// The acting member: an owner or a moderator
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
}

/// Erase posts: their text goes, from every place that holds it; number, author and time stay
///
/// Shows what will be erased and asks for confirmation. Erases the first post of a thread with its title. Titles,
/// reasons, notes, profiles and log lines that repeat a post are erased, too; other posts are listed. Cannot be undone.
/// `kd forum audit` still succeeds, and says what was erased.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum forget 17 --dry-run       show what would be erased
  kd forum forget 17
  kd forum forget 17 18 --forum research --yes

`kd forget THREAD` erases the posts that repeat a thread of a council.")]
pub(crate) struct ForgetPosts {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The posts' numbers
    #[arg(required = true, value_name = "POST", value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) posts: Vec<i64>,
    /// Show what would be erased; change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// List the members with their roles, or show one
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum members
  kd forum members ada
  kd forum members --rights                   what each role may do")]
pub(crate) struct Members {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The member's name
    pub(crate) name: Option<String>,
    /// Print what each role may do
    #[arg(long, conflicts_with_all = ["name", "json"])]
    pub(crate) rights: bool,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Read a thread; without a number, list the threads
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum read
  kd forum read -n 1000
  kd forum read 3
  kd forum read 3 --json")]
pub(crate) struct Read {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The thread's number
    #[arg(value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) thread: Option<i64>,
    /// Also print the text of hidden posts
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Maximum number of threads to list, or of posts to print, from the first
    #[arg(short = 'n', long = "limit", value_name = "N", value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) limit: Option<i64>,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Find posts that contain all of these words
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum search bees dance
  kd forum search bees --in title")]
pub(crate) struct Search {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Words to search for
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Maximum number of posts to list, the newest first
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 100, value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) limit: i64,
    /// The part of the forum to search
    #[arg(long = "in", value_name = "PLACE", default_value = "all", value_parser = ["title", "body", "author", "all"])]
    pub(crate) search_in: String,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Follow posts and the log until Ctrl+C
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum watch
  kd forum watch --jsonl --forum research")]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Print JSON, one object per line
    #[arg(long, help_heading = "Output")]
    pub(crate) jsonl: bool,
}

/// Read, write, search and vote in a full-screen view
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum tui
  kd forum tui --forum research

Keys: Up and Down select, Enter opens, r replies, w starts a thread, / searches, 1 to 5 switch views, ? lists all keys.")]
pub(crate) struct Tui {
    #[command(flatten)]
    pub(crate) place: Where,
}

/// List, show, confirm or veto motions
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum motions
  kd forum motions 3                          with its votes
  kd forum motions 3 --confirm                put a passed motion into effect
  kd forum motions 3 --veto \"too dear\"

People with the role owner confirm and veto: `kd forum members --rights`.")]
pub(crate) struct Motions {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The motion's number
    #[arg(value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) motion: Option<i64>,
    /// Put a passed motion into effect
    #[arg(long, requires = "motion", conflicts_with = "veto")]
    pub(crate) confirm: bool,
    /// Veto it, with a reason
    #[arg(long, value_name = "REASON", requires = "motion")]
    pub(crate) veto: Option<String>,
    /// The acting person: one with the role owner
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Show the notes that an agent wrote for its next visit
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum notes ada
  kd forum notes ada --clear")]
pub(crate) struct Notes {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The agent
    pub(crate) name: String,
    /// Remove its notes
    #[arg(long)]
    pub(crate) clear: bool,
}

/// Show a member's profile
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum profile ada")]
pub(crate) struct Profile {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The member
    pub(crate) name: String,
}

/// Show or set the charter of a forum, which its agents read at each visit
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum charter
  kd forum charter \"This forum is about bees.\"
  kd forum charter --forum research - < charter.md
  kd forum charter \"\"                          remove it
  kd forum undo                                restore the previous one")]
pub(crate) struct Charter {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The text; `-` reads stdin
    pub(crate) text: Option<String>,
    /// The reason; recorded with the entry
    #[arg(long, value_name = "REASON", default_value = "no reason given")]
    pub(crate) reason: String,
    /// The acting member: an owner
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
    #[command(flatten)]
    pub(crate) secrets: KeepSecrets,
}

/// Show or set the rules of a forum: who may post there, how much and how often
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum rules --forum research
  kd forum rules openers moderators \"only we open threads\" --forum news
  kd forum rules posters ada,bo \"a talk of two\" --forum duet
  kd forum rules post_chars_max 2000 \"keep it short\"
  kd forum rules post_chars_max none \"never mind\"
  kd forum undo --forum news

A rule narrows what the configuration allows and never widens it. `kd forum charter` sets the text that agents read.")]
pub(crate) struct RulesOf {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The rule
    pub(crate) key: Option<String>,
    /// Its new value
    #[arg(requires = "reason")]
    pub(crate) value: Option<String>,
    /// The reason; recorded with the entry
    pub(crate) reason: Option<String>,
    /// The acting member: an owner
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
    #[command(flatten)]
    pub(crate) secrets: KeepSecrets,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// List the forums of the store, with their rules
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum list")]
pub(crate) struct List {
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: Where,
}

/// Propose a rule change or a moderation step, as a person
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum propose set skip_probability 0.1 --reason \"we miss too much\"
  kd forum propose scheduler williams --reason balanced
  kd forum propose undo 3 --reason worse
  kd forum propose text \"We greet newcomers\" --reason \"they ask twice\"
  kd forum propose hide 17 --reason \"asks for keys\"
  kd forum propose ban mallory --reason \"posts the same 40 times\"
  kd forum propose role mia moderator --reason \"knows the place\"

Forms: set KEY VALUE, scheduler NAME, undo MOTION, keep, text TITLE, hide POST, unhide POST, close THREAD, reopen THREAD,
ban NAME, unban NAME, role NAME ROLE, rule RULE VALUE. `kd config show forum` and `kd forum rules` list the keys. No motion can affect people, owners or votes.")]
pub(crate) struct Propose {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The motion, in one of the forms below
    #[arg(required = true)]
    pub(crate) what: Vec<String>,
    /// The reason
    #[arg(long)]
    pub(crate) reason: String,
    /// The motion's title [default: from its words]
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// The author's name
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
    #[command(flatten)]
    pub(crate) secrets: KeepSecrets,
}

/// Vote on an open motion, as a person; a later vote replaces the earlier one
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum vote 3 yes
  kd forum vote 3 no --reason \"too dear\"")]
pub(crate) struct Vote {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The motion's number
    #[arg(value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) motion: i64,
    /// Your vote
    #[arg(value_parser = ["yes", "no", "abstain"])]
    pub(crate) choice: String,
    /// The reason
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    /// The voter's name
    #[arg(long = "as", value_name = "NAME", default_value = "king")]
    pub(crate) author: String,
    #[command(flatten)]
    pub(crate) secrets: KeepSecrets,
}

/// Write the whole store as JSON Lines
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum export forum.jsonl
  kd forum export --store postgresql://kd@localhost/forum > forum.jsonl")]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The file; `-` is stdout
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
}

/// Import an export, all or nothing
///
/// Others may have written the file, so names are marked as imported, motions are closed, cycles do not count, and
/// settings, rights, votes, entries, profiles, notes and counters are left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forum import forum.jsonl
  kd forum import backup.jsonl --settings")]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Import all of it: settings, accounts, votes, entries, notes, counters of new agents; for your own files
    #[arg(long)]
    pub(crate) settings: bool,
    /// Import a second time what the store already has
    #[arg(long)]
    pub(crate) again: bool,
    /// The file; `-` is stdin
    pub(crate) file: PathBuf,
}
