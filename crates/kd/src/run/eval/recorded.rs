//! The recorded answers that the user named: a table, debates, or files of other evaluation tools, joined.

use crate::args::eval::Eval;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::infile;
use kd_app::words::count;
use kd_eval::replay::{ReadError, Replay, Table, fingerprint};
use kd_records::{About, Dropped, File, Gold, Source, Unread, Wanted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name of the format that has no scores.
const BATCH: &str = "kd-batch";
/// The member name under which `kd batch` records the answer of all.
const COUNCIL: &str = "council";
/// Maximum files of a folder.
const FILES_MAX: usize = 10_000;
/// Members that an error names.
const MEMBERS_SHOWN: usize = 20;
/// Maximum depth of folders below the named one.
const DEPTH_MAX: usize = 8;

/// Recorded answers.
pub(super) enum Recorded {
    /// Members and their answers.
    Table(Table),
    /// The text of debates.
    Debates(String),
}

/// Where recorded answers are from.
#[derive(Default)]
pub(super) struct Origin {
    /// The name of the file, or the number of files.
    pub(super) name: String,
    /// The path, for errors.
    shown: String,
    /// The digest of the content.
    pub(super) sha256: String,
    /// The joined files; empty for a table.
    pub(super) sources: Vec<Source>,
    /// What was dropped.
    pub(super) dropped: Vec<Dropped>,
    /// The questions by id.
    pub(super) about: BTreeMap<String, About>,
}

impl Origin {
    /// Returns the error for answers that cannot be used.
    pub(super) fn unreadable(&self, error: ReadError) -> Error {
        let line = match self.sources.is_empty() {
            true => format!(", line {}", error.line),
            false => String::new(),
        };
        let what = format!("{}{line}: {}", self.shown, error.what);
        Error::new("answers", Exit::Error, what).next(error.hint)
    }

    /// Returns the error if no question was asked of all these members: how many each has answered.
    pub(super) fn not_shared(&self, error: ReadError, table: &Table) -> Error {
        let is_known = |rows: &(kd_eval::replay::Question, Vec<bool>), at: usize| {
            rows.1.get(at) == Some(&false)
        };
        let counts: Vec<String> = table
            .members
            .iter()
            .enumerate()
            .take(MEMBERS_SHOWN)
            .map(|(at, name)| {
                let asked = table
                    .rows()
                    .iter()
                    .filter(|rows| is_known(rows, at))
                    .count();
                format!("{name} ({asked})")
            })
            .collect();
        let error = self.unreadable(error);
        match self.sources.is_empty() {
            true => error,
            false => error.next(format!(
                "members with their questions: {}; choose some with --members, or give files of one task",
                counts.join(", ")
            )),
        }
    }

    /// Returns the fields that say where answers are from.
    pub(super) fn fields(&self) -> [(&'static str, Value); 4] {
        let sources = self.sources.iter().map(|source| {
            json!({
                "file": source.path,
                "format": source.format,
                "models": source.models,
                "answers": source.answers,
            })
        });
        let dropped = self.dropped.iter();
        let dropped =
            dropped.map(|one| json!({"what": one.what, "why": one.why, "example": one.example}));
        [
            ("file", json!(self.name)),
            ("sha256", json!(self.sha256)),
            ("sources", sources.collect()),
            ("left_out", dropped.collect()),
        ]
    }

    /// Returns the members that vote: those that the user named; else all in the table, without the council whose answer
    /// `kd batch` recorded beside theirs.
    pub(super) fn voters(&mut self, named: &[String], table: &Table) -> Vec<String> {
        let is_batch = self.sources.iter().any(|source| source.format == BATCH);
        let has_members = table.members.iter().any(|name| name != COUNCIL);
        let has_council = table.members.iter().any(|name| name == COUNCIL);
        let is_beside = is_batch && has_members && has_council;
        if !(named.is_empty() && is_beside) {
            return named.to_vec();
        }
        let others: Vec<String> = table
            .members
            .iter()
            .filter(|name| *name != COUNCIL)
            .cloned()
            .collect();
        self.dropped.push(Dropped {
            what: "the council".to_owned(),
            why: "it is made of the members' answers and casts no vote beside them".to_owned(),
            example: format!("--members {},{COUNCIL} adds it", others.join(",")),
        });
        others
    }

    /// Adds the questions that a table without these members would have.
    pub(super) fn note_missing(&mut self, table: &Table, replay: &Replay) {
        if self.sources.is_empty() || replay.dropped == 0 {
            return;
        }
        for member in &replay.members {
            let Some(place) = table.members.iter().position(|name| name == member) else {
                continue;
            };
            let mut missing = table
                .rows()
                .iter()
                .filter(|(_, missing)| missing.get(place) == Some(&true));
            let Some((first, _)) = missing.next() else {
                continue;
            };
            self.dropped.push(Dropped {
                what: count(1 + missing.count() as u64, "question"),
                why: format!("no answer of {member}"),
                example: first.id.clone(),
            });
        }
    }
}

/// Reads what the user named.
pub(super) fn open(args: &Eval) -> Result<(Recorded, Origin), Error> {
    let [path] = args.replay.as_slice() else {
        return joined(args, gather(&args.replay)?);
    };
    let (path, model) = named(path);
    if path.is_dir() || model.is_some() {
        return joined(args, gather(&args.replay)?);
    }
    let mut all = Gathered::default();
    let file = File::new(&path.to_string_lossy(), all.read(&path)?);
    let is_csv = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let is_foreign = kd_records::is_known(&file)
        || file.bytes.starts_with(b"PK\x03\x04")
        || is_json_document(&file.bytes);
    if !is_csv && is_foreign {
        all.add(file, &path)?;
        return joined(args, all.files);
    }
    let bytes = file.bytes;
    let origin = Origin {
        name: name(&path),
        shown: shown(&path),
        sha256: fingerprint(&bytes),
        ..Origin::default()
    };
    let text = String::from_utf8(bytes).map_err(|_| unreadable(&path, "it is not UTF-8 text"))?;
    let is_debate = !is_csv
        && text
            .trim_start_matches('\u{feff}')
            .trim_start()
            .starts_with('{');
    if let Some(flag) = unused(args) {
        return Err(
            Error::usage(format!("{flag} is for files of other evaluation tools"))
                .because("this is a table of answers, or debates")
                .next(format!("omit {flag}")),
        );
    }
    match is_debate {
        true => Ok((Recorded::Debates(text), origin)),
        false => {
            let table = Table::read(&text, super::empty(args)).map_err(|e| origin.unreadable(e))?;
            Ok((Recorded::Table(table), origin))
        }
    }
}

/// Returns whether a file is one JSON object over several lines: neither a table nor debates.
fn is_json_document(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    match first {
        Some(b'[') => true,
        Some(b'{') => {
            serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err()
                && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
        }
        _ => false,
    }
}

fn unused(args: &Eval) -> Option<&'static str> {
    let flags = [
        ("--metric", args.metric.is_some()),
        ("--gold", args.gold.is_some()),
    ];
    flags
        .into_iter()
        .find(|(_, given)| *given)
        .map(|(flag, _)| flag)
}

/// Joins files of other evaluation tools.
fn joined(args: &Eval, files: Vec<File>) -> Result<(Recorded, Origin), Error> {
    let gold = match &args.gold {
        Some(path) => Some(gold(path)?),
        None => None,
    };
    let wanted = Wanted {
        metric: args.metric.clone(),
        gold,
    };
    let read = kd_records::read(&files, &wanted).map_err(unread)?;
    let is_marked = read.sources.iter().any(|source| source.format == BATCH);
    if args.gold.is_some() && !is_marked {
        return Err(Error::usage("--gold is for results of `kd batch run`")
            .because("these files have scores of their own")
            .next("omit --gold"));
    }
    let mut digests = String::new();
    for file in &files {
        digests.push_str(&fingerprint(&file.bytes));
    }
    let names: Vec<String> = args
        .replay
        .iter()
        .map(|path| name(&named(path).0))
        .collect();
    let origin = Origin {
        name: match names.as_slice() {
            [one] => one.clone(),
            _ => count(read.sources.len() as u64, "file"),
        },
        shown: match args.replay.as_slice() {
            [one] => shown(&named(one).0),
            _ => "the joined files".to_owned(),
        },
        sha256: match files.as_slice() {
            [one] => fingerprint(&one.bytes),
            _ => fingerprint(digests.as_bytes()),
        },
        sources: read.sources,
        dropped: read.dropped,
        about: read.about,
    };
    Ok((Recorded::Table(read.table), origin))
}

/// Returns a path, and the name of the model in `NAME=PATH`.
fn named(path: &Path) -> (PathBuf, Option<String>) {
    let text = path.to_string_lossy();
    match text.split_once('=') {
        Some((model, rest)) if !path.exists() && !model.is_empty() && Path::new(rest).exists() => {
            (PathBuf::from(rest), Some(model.to_owned()))
        }
        _ => (path.to_owned(), None),
    }
}

/// Reads all named files, the files in named folders, and the files that complete them.
fn gather(paths: &[PathBuf]) -> Result<Vec<File>, Error> {
    let mut all = Gathered::default();
    for path in paths {
        let (path, model) = named(path);
        if path.is_dir() {
            let from = all.files.len();
            all.folder(&path, 0)?;
            for file in all.files.iter_mut().skip(from) {
                file.model.clone_from(&model);
            }
            continue;
        }
        let bytes = all.read(&path)?;
        let mut file = File::new(&path.to_string_lossy(), bytes);
        file.model = model;
        all.add(file, &path)?;
    }
    Ok(all.files)
}

struct Gathered {
    files: Vec<File>,
    left: u64,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            left: infile::ANSWERS_BYTES_MAX,
        }
    }
}

impl Gathered {
    /// Adds a file, and the files that complete it.
    fn add(&mut self, file: File, path: &Path) -> Result<(), Error> {
        let is_completed = kd_records::is_completed(&file) && path.as_os_str() != "-";
        self.files.push(file);
        match is_completed {
            true => self.beside(path),
            false => Ok(()),
        }
    }

    fn read(&mut self, path: &Path) -> Result<Vec<u8>, Error> {
        let bytes = infile::read(path, self.left).map_err(|e| unreadable(path, e))?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        Ok(bytes)
    }

    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), Error> {
        for (path, is_folder) in entries(folder)? {
            if is_folder && depth < DEPTH_MAX {
                self.folder(&path, depth + 1)?;
            } else if !is_folder && may_hold_answers(&path) {
                if self.files.len() >= FILES_MAX {
                    return Err(unreadable(
                        folder,
                        format!("it has more than {FILES_MAX} files"),
                    ));
                }
                let bytes = self.read(&path)?;
                self.files.push(File::found(&path.to_string_lossy(), bytes));
            }
        }
        Ok(())
    }

    /// Reads the other JSON files of the folder of a file.
    fn beside(&mut self, path: &Path) -> Result<(), Error> {
        let folder = path.parent().unwrap_or(path);
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        for (other, is_folder) in entries(folder)? {
            let is_json = other.extension().is_some_and(|end| end == "json");
            let other = match path.parent() {
                Some(parent) => other
                    .file_name()
                    .map_or(other.clone(), |name| parent.join(name)),
                None => other,
            };
            let name = other.to_string_lossy();
            if !is_folder && is_json && !self.files.iter().any(|file| file.path == name) {
                let bytes = self.read(&other)?;
                self.files.push(File::beside(&name, bytes));
            }
        }
        Ok(())
    }
}

/// Returns the files and folders in a folder, sorted. Links are left out.
fn entries(folder: &Path) -> Result<Vec<(PathBuf, bool)>, Error> {
    let failed = |e: std::io::Error| unreadable(folder, e);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_file() || kind.is_dir() {
            found.push((entry.path(), kind.is_dir()));
        }
    }
    found.sort();
    Ok(found)
}

fn may_hold_answers(path: &Path) -> bool {
    let end = path
        .extension()
        .and_then(|end| end.to_str())
        .unwrap_or_default();
    ["json", "jsonl", "eval"].contains(&end)
}

fn gold(path: &Path) -> Result<Gold, Error> {
    let text =
        infile::read_text(path, infile::ANSWERS_BYTES_MAX).map_err(|e| unreadable(path, e))?;
    Gold::read(&text).map_err(|(line, why)| {
        let what = format!("{}, line {line}: {why}", shown(path));
        Error::new("answers", Exit::Error, what)
            .next("give a CSV table or JSON Lines with `id` and `gold` for each question")
    })
}

/// Returns the error of a file of an unknown format.
fn unread(error: Unread) -> Error {
    let Unread { path, what, hint } = error;
    let what = crate::render::clean::line(&format!("{path}: {what}"));
    Error::new("answers", Exit::Error, what).next(hint)
}

/// Returns a path for people.
pub(super) fn shown(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "stdin".to_owned(),
        false => path.display().to_string(),
    }
}

/// Returns the file name of a path.
pub(super) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "stdin".into();
    }
    path.file_name()
        .map_or_else(|| shown(path), |n| n.to_string_lossy().into_owned())
}

/// Returns the error for a file that cannot be read.
pub(super) fn unreadable(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(
        "answers",
        Exit::Error,
        format!("{} could not be read", shown(path)),
    )
    .because(why)
    .next("give files with recorded answers, or `-` for stdin; kd eval --help lists the formats")
}
