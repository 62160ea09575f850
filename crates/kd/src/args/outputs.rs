//! Tests of the JSON output of commands: each has some, or a reason why not.

use super::Cli;
use clap::CommandFactory;

const CHANGES: &str = "it changes something and confirms that; the exit code tells scripts enough";
const FORMAT: &str = "its output is a format of its own";
const LINE: &str = "its output is one line, or a text as its author wrote it";
const RUNS: &str = "it runs until it is stopped, and speaks a protocol or draws a screen";

/// Commands without JSON, and the reason.
const WITHOUT: &[(&str, &str)] = &[
    ("acp", RUNS),
    ("batch cancel", CHANGES),
    ("batch forget", CHANGES),
    ("batch results", FORMAT),
    ("batch retry", CHANGES),
    ("completions", FORMAT),
    ("config schema", FORMAT),
    ("config set", CHANGES),
    ("config unset", CHANGES),
    ("council reset", CHANGES),
    ("debug decode", FORMAT),
    ("exit-codes", LINE),
    ("forum agent new", CHANGES),
    ("forum ban", CHANGES),
    ("forum charter", LINE),
    ("forum close", CHANGES),
    ("forum edit", CHANGES),
    ("forum export", FORMAT),
    ("forum hide", CHANGES),
    ("forum import", CHANGES),
    ("forum notes", LINE),
    ("forum post", CHANGES),
    ("forum profile", LINE),
    ("forum propose", CHANGES),
    ("forum reopen", CHANGES),
    ("forum reply", CHANGES),
    ("forum role", CHANGES),
    ("forum tui", RUNS),
    ("forum unban", CHANGES),
    ("forum undo", CHANGES),
    ("forum unhide", CHANGES),
    ("forum vote", CHANGES),
    ("man", CHANGES),
    ("marks export", FORMAT),
    ("marks forget", CHANGES),
    ("marks import", CHANGES),
    ("mcp", RUNS),
    ("memory forget", CHANGES),
    ("memory set", CHANGES),
    ("model path", LINE),
    ("model pull", CHANGES),
    ("model rm", CHANGES),
    ("model use", CHANGES),
    ("model verify", LINE),
    ("prices reset", CHANGES),
    ("prices update", CHANGES),
    ("review mark", CHANGES),
    ("review marks forget", CHANGES),
    ("seal key", LINE),
    ("serve", RUNS),
    ("worker", RUNS),
];

/// Calls `each` with every command that can be typed, and the words after `kd`.
fn walk(command: &clap::Command, path: &str, each: &mut impl FnMut(&str, &clap::Command)) {
    let group = command.is_subcommand_required_set() || path.is_empty();
    if !group {
        each(path, command);
    }
    for below in command.get_subcommands().filter(|c| c.get_name() != "help") {
        let path = format!("{path} {}", below.get_name());
        walk(below, path.trim_start(), each);
    }
}

fn built() -> clap::Command {
    let mut built = Cli::command();
    built.build();
    built
}

fn has(command: &clap::Command, id: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_id() == id)
}

/// Returns whether a command prints one JSON value with some option.
fn has_json(command: &clap::Command) -> bool {
    let formats = command
        .get_arguments()
        .filter(|arg| arg.get_id() == "format");
    let mut formats = formats.flat_map(clap::Arg::get_possible_values);
    has(command, "json") || formats.any(|value| value.get_name() == "json")
}

#[test]
fn every_command_prints_json_or_has_a_reason_not_to() {
    let (mut missing, mut without, mut seen) = (Vec::new(), Vec::new(), 0);
    walk(&built(), "", &mut |path, command| {
        seen += 1;
        let reason = WITHOUT.iter().find(|(name, _)| *name == path);
        match (has_json(command) || has(command, "jsonl"), reason) {
            (false, None) => missing.push(path.to_owned()),
            (false, Some((name, _))) => without.push(*name),
            (true, _) => {}
        }
    });
    assert!(missing.is_empty(), "no --json and no reason: {missing:?}");
    let mut rows: Vec<&str> = WITHOUT.iter().map(|(name, _)| *name).collect();
    rows.sort_unstable();
    without.sort_unstable();
    assert_eq!(rows, without, "rows of commands that have JSON or are gone");
    assert!(seen > 80, "{seen}");
}

/// Commands whose JSON has the row of another command, by the words after `kd`.
const SAME_OUTPUT: &[(&str, &str)] = &[
    ("council ask", "ask"),
    ("council last", "show"),
    ("last", "show"),
    ("council retry", "ask"),
    ("council review", "ask"),
    ("council watch", "ask"),
    ("council show", "show"),
    ("council think", "think"),
    ("council why", "why"),
    ("council list", "list"),
    ("council status", "status"),
    ("council deliberate", "deliberate"),
    ("council export", "export"),
];

/// A new command or option with JSON output needs a row in [`kd_core::formats::PRINTED`], and so a schema.
#[test]
fn every_json_output_has_a_row_in_the_table_of_formats() {
    let mut found = Vec::new();
    walk(&built(), "", &mut |path, command| {
        if has_json(command) {
            found.push((path.to_owned(), false));
            if has(command, "dry_run") {
                found.push((path.to_owned(), true));
            }
        }
    });
    assert!(found.len() > 40, "{found:?}");
    let rows = || kd_core::formats::PRINTED.iter().map(|row| row.by);
    let is_described = |(path, is_dry): &&(String, bool)| {
        let same = SAME_OUTPUT.iter().find(|(one, _)| one == path);
        let path = same.map_or(path.as_str(), |(_, other)| other);
        let names = |by: &str| {
            by.contains(&format!("`kd {path} "))
                && by.contains("json")
                && (!is_dry || by.contains("--dry-run"))
        };
        rows().any(names)
    };
    let missing: Vec<_> = found.iter().filter(|one| !is_described(one)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
