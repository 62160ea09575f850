//! Formats `--help`. Input: clap's output without a width limit. Output: the same, fitted to the terminal: prose is
//! wrapped, a comment beside an example moves below it, and a long command continues after a `\`.

use clap::error::ErrorKind;
use kd_tui::text::style::{Color, Styles};
use kd_tui::text::wrap::width;
use std::io::{self, IsTerminal, Write};

/// Maximum columns of a line: longer lines are hard to read.
const COLUMNS_MAX: usize = 100;
/// Columns of the help without a terminal.
const COLUMNS_PIPE: usize = 80;
/// Minimum columns of a description next to a name.
const BESIDE_MIN: usize = 32;
/// Maximum indent of a command in the examples; what is further right is a comment.
const EXAMPLE_INDENT: usize = 8;
/// The heading of the options that every command takes.
const GLOBAL: &str = "Global options:";

/// The commands in groups, as `kd --help` lists them. No line is longer than 60 columns.
pub(crate) const OVERVIEW: &str = "\
{about}

{usage-heading} {usage}

Ask:
  ask          Get several opinions, and a conclusion
  think        Get one answer; a second member checks doubts
  deliberate   Decide by opinions, reviews and a vote
  chat         Chat with all members
  review       Find problems in a change, and vote on them

Look back:
  last         Show the newest question and its answers
  show         Show the messages of a thread
  list         List the threads of this branch
  status       Show who has answered and who has not
  council      Follow, retry and reset a thread
  why          Explain how a deliberation was decided
  replay       Repeat that decision from its record
  mark         Mark a verdict as right or wrong
  marks        List, export, import or forget marks
  memory       Show or forget what deliberations remember
  cost         Show the spending of today and this month
  export       Export a thread as one document
  fork         Start a thread with the beginning of another
  forget       Remove a thread or a message everywhere
  seal         Seal a thread against any later change
  verify       Check a sealed file
  import       Create a thread from a sealed file
  fsck         Check the files of threads and repair them

Set up:
  init         Choose your agents and models
  doctor       Test every member, show what is missing
  config       Show, check and change settings
  trust        Allow or refuse the settings of a folder
  model        Download models for the built-in engine
  prices       Show or update the prices of models
  mcp          Run an MCP server for an agent
  acp          Run an agent for editors
  serve        Serve the council as a model, and MCP
  completions  Print completions for a shell
  man          Write the man pages to a folder

Lab:
  batch        Ask a file of questions
  worker       Answer questions of batches
  forum        Run a forum where agents take turns
  eval         Measure how well councils decide
  vote         Count ballots by any rule
  debug        Inspect the output of agent programs

Global options:
{options}{after-help}";

/// Prints help, wrapped to the terminal. Returns false if the error is no help.
pub(crate) fn print(error: &clap::Error, columns: Option<usize>) -> bool {
    let missing = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !missing && error.kind() != ErrorKind::DisplayHelp {
        return false;
    }
    let terminal = match missing {
        true => io::stderr().is_terminal(),
        false => io::stdout().is_terminal(),
    };
    let styles = Styles::decide(Color::Auto, terminal, &|name| std::env::var(name).ok());
    let text = match styles.color {
        true => error.render().ansi().to_string(),
        false => error.render().to_string(),
    };
    let text = fit_screen(&text, columns);
    // If this cannot be written, there is nowhere to report it.
    let _ = match missing {
        true => crate::out::stderr().write_all(text.as_bytes()),
        false => crate::out::stdout().write_all(text.as_bytes()),
    };
    true
}

/// Wraps a help text to a terminal, or to the usual columns without one.
pub(crate) fn fit_screen(text: &str, columns: Option<usize>) -> String {
    fit(text, columns.unwrap_or(COLUMNS_PIPE).min(COLUMNS_MAX))
}

/// Wraps a help text to a number of columns.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut examples = false;
    let lines = global_last(text);
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            examples = false;
        } else if shown(line).ends_with(':') && !line.starts_with(' ') {
            examples = shown(line) == "Examples:";
        }
        let mut line = line.to_owned();
        // A comment that goes on in the next line moves as a whole.
        loop {
            let too_wide = shown_width(&line) > columns;
            let goes_on = |next: &&str| {
                examples && is_comment(next) && (too_wide || shown_width(next) > columns)
            };
            let Some(next) = lines.next_if(goes_on) else {
                break;
            };
            let indent = line.len() - line.trim_start().len();
            let gap = if split(&line, indent).1.is_empty() {
                "  "
            } else {
                " "
            };
            line = format!("{line}{gap}{}", next.trim());
        }
        // Reflow prose that was broken for a wider screen.
        while is_prose(&line) && (shown_width(&line) > columns || line.len() > 60) {
            let Some(next) = lines.next_if(|next| is_prose(next) && flows(&line, next)) else {
                break;
            };
            line = format!("{line} {next}");
        }
        for line in fit_line(line.trim_end(), columns, examples) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

/// Returns the lines, with the global options after all others.
fn global_last(text: &str) -> Vec<&str> {
    // A section is a heading and the indented lines below it.
    let mut sections: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.lines() {
        if !line.is_empty() && !line.starts_with(' ') {
            sections.push(Vec::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push(line);
        }
    }
    let is_options = |section: &Vec<&str>| {
        let mut below = section.iter().skip(1).map(|line| shown(line));
        below
            .next()
            .is_some_and(|line| line.trim_start().starts_with('-'))
    };
    let global = |section: &Vec<&str>| section.first().is_some_and(|l| shown(l) == GLOBAL);
    let from = sections.iter().position(global);
    let to = sections.iter().rposition(is_options);
    if let (Some(from), Some(to)) = (from, to) {
        // One blank line between two sections, wherever they come from.
        let mut moved = sections.remove(from);
        moved.retain(|line| !line.trim().is_empty());
        if let Some(before) = sections.get_mut(to.saturating_sub(1)) {
            while before.last().is_some_and(|line| line.trim().is_empty()) {
                before.pop();
            }
            before.push("");
        }
        moved.push("");
        sections.insert(to, moved);
    }
    let mut lines = sections.concat();
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

fn fit_line(line: &str, columns: usize, example: bool) -> Vec<String> {
    if shown_width(line) <= columns {
        return vec![line.to_owned()];
    }
    let indent = line.len() - line.trim_start().len();
    let (left, right) = match value(line, indent) {
        Some(gap) => (&line[..gap], line[gap..].trim_start()),
        None => split(line, indent),
    };
    let mut lines = match example && !is_comment(line) {
        true => command(left, columns, indent + 4),
        false if right.is_empty() => return wrapped(left, columns, indent, indent),
        false => vec![left.to_owned()],
    };
    if right.is_empty() {
        return lines;
    }
    let column = shown_width(&line[..line.len() - right.len()]);
    let longest = right.split_whitespace().map(shown_width).max();
    if !example && column + longest.unwrap_or(0).max(BESIDE_MIN) <= columns {
        let head = &line[..line.len() - right.len()];
        let mut beside = wrapped(right, columns - column, 0, 0).into_iter();
        let first = beside.next().unwrap_or_default();
        let rest = beside.map(|line| format!("{:column$}{line}", ""));
        return std::iter::once(format!("{head}{first}"))
            .chain(rest)
            .collect();
    }
    if !example {
        lines = wrapped(left, columns, indent, indent);
    }
    let below = format!("{:1$}{right}", "", indent + 4);
    lines.extend(wrapped(&below, columns, indent + 4, indent + 4));
    lines
}

/// Returns whether a line of the examples has no command, but continues the comment above it.
fn is_comment(line: &str) -> bool {
    let indent = line.len() - line.trim_start().len();
    indent > EXAMPLE_INDENT && split(line, indent).1.is_empty()
}

/// Returns the end of the name in a line of the possible values, `- markdown: One document`: the longest name has a gap of
/// one blank.
fn value(line: &str, indent: usize) -> Option<usize> {
    let name = line[indent..].strip_prefix("- ")?;
    let end = name.find(": ")?;
    let is_word = name[..end].chars().all(|c| c.is_alphanumeric() || c == '-');
    is_word.then_some(indent + 2 + end + 1)
}

/// Splits a line at its first gap of two blanks.
fn split(line: &str, indent: usize) -> (&str, &str) {
    match line[indent..].find("  ") {
        Some(gap) => (&line[..indent + gap], line[indent + gap..].trim_start()),
        None => (line, ""),
    }
}

/// Breaks a command between its words, never inside quotes.
fn command(line: &str, columns: usize, hang: usize) -> Vec<String> {
    let (mut words, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) if !line[start..at].trim().is_empty() => {
                words.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[start..]);
    // A flag stays with its value.
    let mut parts: Vec<String> = Vec::new();
    for word in words {
        match parts.last_mut() {
            Some(flag) if is_flag(flag) && word.starts_with(char::is_alphanumeric) => {
                *flag = format!("{flag} {word}");
            }
            _ => parts.push(word.to_owned()),
        }
    }
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    joined(&words, columns, hang, " \\")
}

fn wrapped(line: &str, columns: usize, indent: usize, hang: usize) -> Vec<String> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let first = words.first().map_or(0, |word| indent + word.len());
    if let Some(word) = words.first_mut() {
        *word = &line[..first.min(line.len())];
    }
    joined(&words, columns, hang, "")
}

/// Joins words to lines; `more` ends each line but the last.
fn joined(words: &[&str], columns: usize, hang: usize, more: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for (at, word) in words.iter().enumerate() {
        let last = at + 1 == words.len();
        let room = columns.saturating_sub(if last { 0 } else { more.len() });
        if line.is_empty() {
            line.push_str(word);
        } else if shown_width(&line) + 1 + shown_width(word) <= room {
            line = format!("{line} {word}");
        } else {
            lines.push(format!("{line}{more}"));
            line = format!("{:hang$}{word}", "");
        }
    }
    lines.push(line);
    lines
}

fn is_flag(word: &str) -> bool {
    word.starts_with("--") && !word.contains([' ', '='])
}

fn is_prose(line: &str) -> bool {
    let text = shown(line);
    !text.trim().is_empty()
        && !text.starts_with([' ', '-'])
        && !text.contains("  ")
        && !text.ends_with(':')
        && !text.starts_with("Usage:")
}

/// Returns whether a sentence continues on the next line.
fn flows(line: &str, next: &str) -> bool {
    !line.ends_with(['.', ':']) || next.starts_with(char::is_lowercase)
}

/// Returns the text without colors.
fn shown(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                chars.by_ref().find(|c| c.is_ascii_alphabetic());
            }
            c => out.push(c),
        }
    }
    out
}

fn shown_width(line: &str) -> usize {
    match line.contains('\x1b') {
        true => width(&shown(line)),
        false => width(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, whole};
    use clap::{CommandFactory, Parser};

    /// Returns the help of every command, with its path.
    fn all() -> Vec<(String, String)> {
        let mut built = Cli::command();
        built.build();
        let mut paths = vec![Vec::new()];
        let mut at = 0;
        while let Some(path) = paths.get(at).cloned() {
            at += 1;
            let command = path.iter().fold(&built, |command, name: &String| {
                command.find_subcommand(name).expect("a command")
            });
            for below in command.get_subcommands().filter(|c| c.get_name() != "help") {
                let mut path = path.clone();
                path.push(below.get_name().to_owned());
                paths.push(path);
            }
        }
        let mut texts = Vec::new();
        for path in paths {
            for flag in ["-h", "--help"] {
                let argv = ["kd"].into_iter().chain(path.iter().map(String::as_str));
                let help = Cli::command().try_get_matches_from(argv.chain([flag]));
                let help = help.expect_err("help is an early exit").to_string();
                texts.push((format!("kd {} {flag}", path.join(" ")), help));
            }
        }
        texts
    }

    #[test]
    fn every_help_fits_and_keeps_its_examples_whole() {
        let texts = all();
        assert!(texts.len() > 150, "{}", texts.len());
        let mut examples = 0;
        for (name, text) in &texts {
            for columns in [60, 80] {
                let fitted = fit(text, columns);
                for line in fitted.lines() {
                    assert!(width(line) <= columns, "{name} at {columns}: {line:?}");
                }
                // Only commands go on after a backslash.
                for line in fitted.lines().filter(|line| line.ends_with(" \\")) {
                    let indent = line.len() - line.trim_start().len();
                    assert!((2..=6).contains(&indent), "{name} at {columns}: {line:?}");
                }
                // A broken line continues after a backslash, as in a shell.
                let mut read = String::new();
                for line in fitted.lines() {
                    match line.strip_suffix(" \\") {
                        Some(line) if read.ends_with(' ') => read += &format!("{} ", line.trim()),
                        Some(line) => read += &format!("{line} "),
                        None if read.ends_with(' ') => read += &format!("{}\n", line.trim()),
                        None => read += &format!("{line}\n"),
                    }
                }
                let block = text.split("Examples:\n").nth(1).unwrap_or_default();
                for line in block.lines().take_while(|line| !line.trim().is_empty()) {
                    let (left, right) = split(line, line.len() - line.trim_start().len());
                    assert!(
                        is_comment(line) || read.contains(left),
                        "{name} at {columns}: {left:?} in\n{fitted}"
                    );
                    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let told = if is_comment(line) { line } else { right };
                    assert!(flat(&fitted).contains(&flat(told)), "{name}: {told:?}");
                    examples += 1;
                }
            }
        }
        assert!(examples > 200, "{examples}");
    }

    /// Splits a line as a shell does, up to the first pipe or redirection of output.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (c, quote) {
                ('"' | '\'', None) => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (c, Some(open)) if c == open => quote = None,
                ('|' | '>' | ';' | '&', None) => break,
                ('<', None) => {
                    words.extend(word.take());
                    break;
                }
                (' ', None) => words.extend(word.take()),
                (c, _) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    /// Examples are commands as they are typed, with models, rules, protocols and settings that exist.
    #[test]
    fn examples_name_what_there_is() {
        let mut seen = std::collections::BTreeSet::new();
        let mut named = std::collections::BTreeMap::<&str, usize>::new();
        for (name, text) in all() {
            let block = text.split("Examples:\n").nth(1).unwrap_or_default();
            let block = block.lines().take_while(|line| !line.trim().is_empty());
            let lines = block.flat_map(|line| {
                let (left, _) = split(line, line.len() - line.trim_start().len());
                left.split('|').map(str::to_owned).collect::<Vec<_>>()
            });
            for line in lines.filter(|line| line.trim_start().starts_with("kd ")) {
                if !seen.insert(line.trim().to_owned()) {
                    continue;
                }
                let words = words(line.trim());
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{name}: {line}: {error}");
                }
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let command = words[1];
                let mut is = |what, is_known: bool| {
                    assert!(is_known, "{name}: no such {what}: {line}");
                    *named.entry(what).or_default() += 1;
                };
                if let ["kd", "model", "pull" | "verify" | "rm", model] = words[..] {
                    let known = kd_app::models::MODELS;
                    is("model", known.iter().any(|m| m.key == model));
                }
                if let ["kd", "config", "set" | "unset", .., key, _] = words[..] {
                    let path = key.parse().expect("a path");
                    is("setting", kd_core::config::find_key(&path).is_some());
                }
                for pair in words.windows(2) {
                    match pair {
                        ["--rule", rules] if command != "eval" => {
                            let mut rules = rules.split(',');
                            is("rule", rules.all(|rule| kd_vote::find(rule).is_some()));
                        }
                        ["--protocol", protocol] => {
                            let all = kd_core::deliberation::protocols::CHOICES;
                            is("protocol", all.contains(protocol));
                        }
                        _ => {}
                    }
                }
            }
        }
        let kinds: Vec<_> = named.keys().copied().collect();
        assert_eq!(kinds, ["model", "protocol", "rule", "setting"], "{named:?}");
        assert!(seen.len() > 100, "{}", seen.len());
    }

    #[test]
    fn the_overview_lists_every_command_once() {
        let command = Cli::command();
        let listed: Vec<&str> = OVERVIEW
            .lines()
            .filter(|line| line.starts_with("  "))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        let mut named: Vec<&str> = command
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        named.sort_unstable();
        assert_eq!(sorted, named);
        assert!(OVERVIEW.lines().all(|line| width(line) <= 60));
        assert_eq!(
            whole().get_subcommands().count(),
            command.get_subcommands().count()
        );
    }

    #[test]
    fn global_options_are_the_last() {
        for (name, text) in &all() {
            if name.contains("exit-codes") {
                continue;
            }
            let text = fit(text, 80);
            let heads: Vec<&str> = text
                .lines()
                .filter(|l| !l.starts_with(' ') && l.ends_with(':'))
                .collect();
            let globals = heads.iter().position(|head| *head == GLOBAL);
            let options = heads.iter().rposition(|head| {
                text.split(&format!("{head}\n"))
                    .nth(1)
                    .is_some_and(|part| part.trim_start().starts_with('-'))
            });
            assert!(globals.is_some() && globals == options, "{name}: {heads:?}");
        }
    }

    #[test]
    fn long_lines_break_where_they_may() {
        let text = "Examples:\n  kd ask --to a \"one two three\" --plain   what it does\n\nOptions:\n  -x, --example <FILE>  a rather long text about this one\n";
        assert_eq!(
            fit(text, 34),
            "Examples:\n  kd ask --to a \"one two three\" \\\n      --plain\n      what it does\n\nOptions:\n  -x, --example <FILE>\n      a rather long text about\n      this one\n"
        );
        let text = "Examples:\n  kd ask --to a \"…\"      one comment that is\n                          long, and goes on\n";
        assert_eq!(
            fit(text, 40),
            "Examples:\n  kd ask --to a \"…\"\n      one comment that is long, and goes\n      on\n"
        );
        assert_eq!(fit(text, 80), text);
        assert_eq!(fit("One two three\n", 7), "One two\nthree\n");
        assert_eq!(fit("\x1b[1mOne\x1b[0m two\n", 7), "\x1b[1mOne\x1b[0m two\n");
    }
}
