//! Makes each first change of CONTRIBUTING.md in a scratch copy of the checkout, and runs the test that the page names.
//!
//! Input: the files that git tracks. Output: a line for each change, and an error if a named test fails for an honest
//! change or passes for a false one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text to insert into a file.
struct Edit {
    file: &'static str,
    /// The insertion goes before the first line that starts with `before`, after the line that contains `after`.
    after: &'static str,
    before: &'static str,
    text: &'static str,
}

/// A change that a contributor could make first.
pub struct Change {
    /// Its name: the first column of the table in CONTRIBUTING.md.
    pub name: &'static str,
    /// The new file and its content, where the change has one.
    file: Option<(&'static str, &'static str)>,
    /// The rows.
    edits: &'static [Edit],
    /// An edit that breaks the promise of the change: with it the test must fail.
    lie: Lie,
    /// Whether the judge is run once before with `BLESS=1`, which writes the pages that are generated from the table.
    blessed: bool,
    /// Arguments of the `cargo` command that judges the change.
    judge: &'static [&'static str],
}

/// A replacement in a file, after the change was made.
struct Lie {
    file: &'static str,
    truth: &'static str,
    lie: &'static str,
}

const VOTING_RULE: &str = r#"//! First places minus last places.

use crate::profile::Profile;
use crate::{Amount, Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "first-minus-last",
    aliases: &[],
    doc: "the most first places, minus last places, win",
    source: "an example of CONTRIBUTING.md",
    caveat: "ignores everything between the ends of a ballot",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    let (firsts, lasts) = (profile.firsts(&poll.standing), profile.lasts(&poll.standing));
    let all = profile.weight();
    let amounts: Vec<Amount> = firsts.iter().zip(&lasts).map(|(f, l)| f.clone() + (&all - l)).collect();
    super::scored(poll, amounts, Vec::new())
}
"#;

/// Every change that is tried.
pub const CHANGES: &[Change] = &[
    Change {
        name: "role",
        file: Some((
            "crates/kd-core/src/roles/historian.md",
            "You look for precedents. Say who tried this before, what became of it, and which circumstances differ today. Prefer one documented case to three remembered ones, and say how sure you are of each.\n",
        )),
        edits: &[Edit {
            file: "crates/kd-core/src/roles/mod.rs",
            after: "pub const ROLES",
            before: "];",
            text: "    Role {\n        name: \"historian\",\n        title: \"what happened when others tried\",\n        \
                   temperature: 0.6,\n        persona: include_str!(\"historian.md\"),\n        duties: MEMBER,\n    },\n",
        }],
        lie: Lie {
            file: "crates/kd-core/src/roles/historian.md",
            truth: " Say who tried this before, what became of it, and which circumstances differ today. Prefer one documented case to three remembered ones, and say how sure you are of each.",
            lie: "",
        },
        blessed: false,
        judge: &["test", "-p", "kd-core", "--lib", "roles"],
    },
    Change {
        name: "voting rule",
        file: Some((
            "crates/kd-vote/src/methods/first_minus_last.rs",
            VOTING_RULE,
        )),
        edits: &[
            Edit {
                file: "crates/kd-vote/src/methods/mod.rs",
                after: "mod dowdall;",
                before: "mod irv;",
                text: "mod first_minus_last;\n",
            },
            Edit {
                file: "crates/kd-vote/src/methods/mod.rs",
                after: "pub const RULES",
                before: "];",
                text: "    first_minus_last::RULE,\n",
            },
        ],
        lie: Lie {
            file: "crates/kd-vote/src/methods/first_minus_last.rs",
            truth: "&[Axiom::Anonymous]",
            lie: "&[Axiom::Anonymous, Axiom::Condorcet]",
        },
        blessed: false,
        judge: &["test", "-p", "kd-vote"],
    },
    Change {
        name: "protocol of a conversation",
        file: Some((
            "crates/kd-core/src/protocols/reverse.rs",
            r#"//! All members one by one, in the reverse order of the list.

use super::turns::Turns;
use super::{Move, Protocol, ProtocolKind, Table, nobody};
use crate::ids::SeatName;

pub(super) const KIND: ProtocolKind = ProtocolKind {
    name: "reverse",
    doc: "one by one, the last member of the list first",
    at_once: false,
    new: |_seed| Box::new(Reverse::default()),
};

#[derive(Debug, Default)]
struct Reverse {
    turns: Turns,
}

impl Protocol for Reverse {
    fn next(&mut self, table: &Table<'_>) -> Move {
        if table.spoke.is_empty() {
            if table.seats.is_empty() {
                return nobody();
            }
            self.turns = Turns::new(table.seats.iter().rev().cloned());
        }
        self.turns.next(table)
    }

    fn ahead(&self, table: &Table<'_>) -> Vec<SeatName> {
        self.turns.ahead(table)
    }
}
"#,
        )),
        edits: &[
            Edit {
                file: "crates/kd-core/src/protocols/mod.rs",
                after: "mod natural;",
                before: "mod sequential;",
                text: "mod reverse;\n",
            },
            Edit {
                file: "crates/kd-core/src/protocols/mod.rs",
                after: "pub const PROTOCOLS",
                before: "];",
                text: "    reverse::KIND,\n",
            },
        ],
        lie: Lie {
            file: "crates/kd-core/src/protocols/reverse.rs",
            truth: "        self.turns.next(table)\n",
            lie: "        self.turns = Turns::new(table.seats.iter().cloned());\n        self.turns.next(table)\n",
        },
        blessed: false,
        judge: &["test", "-p", "kd-core", "--lib", "protocols"],
    },
    Change {
        name: "scheduler of the forum",
        file: Some((
            "crates/kd-forum/src/schedulers/reverse.rs",
            r#"//! The reverse of a random order, which is a random order.

use super::{FAIR, Scheduler, as_set};

pub(super) const ROW: Scheduler = Scheduler {
    name: "reverse",
    doc: "a new random order each cycle, read backward",
    order: |draw| {
        let mut order = draw.shuffled();
        order.reverse();
        order
    },
    skip: as_set,
    weighs: false,
    promises: FAIR,
};
"#,
        )),
        edits: &[
            Edit {
                file: "crates/kd-forum/src/schedulers/mod.rs",
                after: "mod fixed;",
                before: "mod rotate;",
                text: "mod reverse;\n",
            },
            Edit {
                file: "crates/kd-forum/src/schedulers/mod.rs",
                after: "pub const SCHEDULERS",
                before: "];",
                text: "    reverse::ROW,\n",
            },
            Edit {
                file: "crates/kd-core/src/config/forum.rs",
                after: "pub const SCHEDULER_NAMES",
                before: "];",
                text: "    \"reverse\",\n",
            },
        ],
        lie: Lie {
            file: "crates/kd-forum/src/schedulers/reverse.rs",
            truth: "let mut order = draw.shuffled();",
            lie: "let mut order: Vec<usize> = (0..draw.candidates.len()).collect();",
        },
        blessed: false,
        judge: &["test", "-p", "kd-forum", "schedulers"],
    },
    Change {
        name: "slash command of a chat",
        file: None,
        edits: &[Edit {
            file: "crates/kd-core/src/slash.rs",
            after: "pub const COMMANDS",
            before: "];",
            text: r#"    SlashCommand {
        name: "again",
        aliases: &[],
        args: "[member]",
        takes: Takes::MaybeMember,
        doc: "the same as /retry",
        screen_only: false,
        make: |arg| {
            Ok(Slash::Op(Op::Retry {
                seat: arg.map(seat).transpose()?,
            }))
        },
    },
"#,
        }],
        lie: Lie {
            file: "crates/kd-core/src/slash.rs",
            truth: "args: \"[member]\",\n        takes: Takes::MaybeMember,\n        doc: \"the same",
            lie: "args: \"<member>\",\n        takes: Takes::Member,\n        doc: \"the same",
        },
        blessed: false,
        judge: &["test", "-p", "kd-core", "--lib", "slash"],
    },
    Change {
        name: "setting",
        file: None,
        edits: &[
            Edit {
                file: "crates/kd-core/src/config/keys.rs",
                after: "key(\"council.private\"",
                before: "    key(",
                text: "    key(\"council.patience_secs\", WAIT, \"30\", \"Seconds until a silent member is named in a notice; 0 means never.\").limit(Limit::ZeroIsNone),\n",
            },
            Edit {
                file: "crates/kd-core/src/config/mod.rs",
                after: "pub struct CouncilConfig",
                before: "}",
                text: "    /// Seconds until a silent member is named in a notice; 0 means never.\n    pub patience_secs: u64,\n",
            },
            Edit {
                file: "crates/kd-core/src/config/mod.rs",
                after: "impl Default for CouncilConfig",
                before: "        }",
                text: "            patience_secs: 30,\n",
            },
        ],
        lie: Lie {
            file: "crates/kd-core/src/config/keys.rs",
            truth: "council.patience_secs\", WAIT, \"30\"",
            lie: "council.patience_secs\", WAIT, \"60\"",
        },
        blessed: true,
        judge: &["test", "-p", "kd-core", "--lib", "--test", "config"],
    },
];

/// Makes the changes whose name contains `wanted`, one after another, and tells `say` what each test says. Returns what
/// is wrong.
///
/// # Errors
/// If the checkout cannot be copied, or a test does not judge as CONTRIBUTING.md promises.
pub fn run(root: &Path, wanted: &str, say: &mut dyn FnMut(&str)) -> io::Result<Vec<String>> {
    let copy = root.join("target/first-changes/checkout");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    copy_tracked(root, &copy)?;
    let mut faults = Vec::new();
    for change in CHANGES.iter().filter(|c| c.name.contains(wanted)) {
        let kept = apply(&copy, change)?;
        let pages = pages(&copy, change)?;
        if change.blessed {
            judge(root, &copy, change, true)?;
        }
        let honest = judge(root, &copy, change, false)?;
        let mut said = format!(
            "{}: cargo {}: passes: {honest}",
            change.name,
            change.judge.join(" ")
        );
        if !honest {
            faults.push(format!(
                "{}: the named test fails for an honest change",
                change.name
            ));
        }
        falsify(&copy, &change.lie)?;
        let fooled = judge(root, &copy, change, false)?;
        said += &format!(", a false one fails: {}", !fooled);
        if fooled {
            faults.push(format!(
                "{}: the named test passes for a false change",
                change.name
            ));
        }
        say(&said);
        restore(kept.into_iter().chain(pages), change, &copy)?;
    }
    Ok(faults)
}

/// Returns which changes cannot be made as they are written, or are not in CONTRIBUTING.md. Builds nothing: that the tests
/// judge as promised is what [`run`] shows.
///
/// # Errors
/// If a file cannot be read.
pub fn faults(root: &Path) -> io::Result<Vec<String>> {
    let page = fs::read_to_string(root.join("CONTRIBUTING.md"))?;
    let mut faults = Vec::new();
    for change in CHANGES {
        let row = page
            .lines()
            .find(|l| l.starts_with(&format!("| {} ", change.name)));
        match row {
            None => faults.push(format!("{}: no row in CONTRIBUTING.md", change.name)),
            Some(row) => faults.extend(unnamed(change, row)),
        }
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        if let Some((path, text)) = change.file {
            texts.insert(path, text.to_owned());
        }
        for edit in change.edits {
            if !texts.contains_key(edit.file) {
                texts.insert(edit.file, fs::read_to_string(root.join(edit.file))?);
            }
            match texts.get(edit.file).and_then(|text| inserted(text, edit)) {
                Some(text) => drop(texts.insert(edit.file, text)),
                None => faults.push(nowhere(change, edit)),
            }
        }
        let lie = &change.lie;
        if !texts
            .get(lie.file)
            .is_some_and(|text| text.contains(lie.truth))
        {
            faults.push(format!(
                "{}: {} has no `{}` to falsify",
                change.name, lie.file, lie.truth
            ));
        }
        for (path, text) in texts.iter().filter(|(path, _)| path.ends_with(".rs")) {
            if let Err(error) = text.parse::<proc_macro2::TokenStream>() {
                faults.push(format!("{}: {path} is no Rust: {error}", change.name));
            }
        }
    }
    Ok(faults)
}

/// Returns the files of a change that its row of CONTRIBUTING.md does not name.
fn unnamed(change: &Change, row: &str) -> Vec<String> {
    let files = change.edits.iter().map(|edit| edit.file);
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let missing = files.map(name).filter(|name| !row.contains(name.as_str()));
    missing
        .map(|file| {
            format!(
                "{}: its row in CONTRIBUTING.md names no {file}",
                change.name
            )
        })
        .collect()
}

fn nowhere(change: &Change, edit: &Edit) -> String {
    format!(
        "{}: {} has no `{}` after `{}`",
        change.name, edit.file, edit.before, edit.after
    )
}

/// Copies the files that git tracks.
fn copy_tracked(root: &Path, to: &Path) -> io::Result<()> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()?;
    for name in listed
        .stdout
        .split(|b| *b == 0)
        .filter(|name| !name.is_empty())
    {
        let name = String::from_utf8_lossy(name).into_owned();
        let target = to.join(&name);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        if root.join(&name).is_file() {
            fs::copy(root.join(&name), target)?;
        }
    }
    Ok(())
}

/// Makes a change; returns the old content of every changed file.
fn apply(copy: &Path, change: &Change) -> io::Result<Vec<(PathBuf, String)>> {
    let mut kept: Vec<(PathBuf, String)> = Vec::new();
    if let Some((path, text)) = change.file {
        fs::write(copy.join(path), text)?;
    }
    for edit in change.edits {
        let path = copy.join(edit.file);
        let old = fs::read_to_string(&path)?;
        let new = inserted(&old, edit).ok_or_else(|| {
            io::Error::other(format!(
                "{}: no `{}` after `{}`",
                edit.file, edit.before, edit.after
            ))
        })?;
        fs::write(&path, new)?;
        if !kept.iter().any(|(known, _)| *known == path) {
            kept.push((path, old));
        }
    }
    Ok(kept)
}

fn inserted(text: &str, edit: &Edit) -> Option<String> {
    let after = text.find(edit.after)?;
    let line = after + text[after..].find('\n')? + 1;
    let mut at = line;
    for candidate in text[line..].split_inclusive('\n') {
        if candidate.starts_with(edit.before) {
            return Some(format!("{}{}{}", &text[..at], edit.text, &text[at..]));
        }
        at += candidate.len();
    }
    None
}

/// The generated pages that a blessed run changes, with their content.
fn pages(copy: &Path, change: &Change) -> io::Result<Vec<(PathBuf, String)>> {
    let pages: &[&str] = match change.blessed {
        true => &[
            "docs/configuration.md",
            "crates/kd-core/tests/data/config/schema.json",
        ],
        false => &[],
    };
    let read = |page: &&str| {
        let path = copy.join(page);
        fs::read_to_string(&path).map(|text| (path, text))
    };
    pages.iter().map(read).collect()
}

/// Makes a change break its promise.
fn falsify(copy: &Path, lie: &Lie) -> io::Result<()> {
    let path = copy.join(lie.file);
    let text = fs::read_to_string(&path)?;
    if !text.contains(lie.truth) {
        return Err(io::Error::other(format!(
            "{}: no `{}` to falsify",
            lie.file, lie.truth
        )));
    }
    fs::write(path, text.replace(lie.truth, lie.lie))
}

fn restore(
    kept: impl Iterator<Item = (PathBuf, String)>,
    change: &Change,
    copy: &Path,
) -> io::Result<()> {
    for (path, text) in kept {
        fs::write(path, text)?;
    }
    match change.file {
        Some((path, _)) => fs::remove_file(copy.join(path)),
        None => Ok(()),
    }
}

/// Runs the test of a change. It has a separate target folder; otherwise cargo mistakes the copy for the checkout.
fn judge(root: &Path, copy: &Path, change: &Change, bless: bool) -> io::Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    if bless {
        command.env("BLESS", "1");
    }
    let out = command
        .args(change.judge)
        .args(["--locked", "--quiet"])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", root.join("target/first-changes/target"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .output()?;
    let passed = String::from_utf8_lossy(&out.stdout).contains("test result: ok.");
    Ok(out.status.success() && passed)
}
