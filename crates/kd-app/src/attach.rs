//! Files that the user attaches to a message: found in the words that were typed, checked, and read once.
//!
//! `@PATH` names a file where no member has that name and the file exists. Each file is opened once, so the user is
//! asked about exactly the content that is sent. A file outside the working folder, or one whose name says that it
//! holds secrets, needs consent. Only regular files are attached. UTF-8 text, up to [`FILE_BYTES_MAX`], becomes part
//! of the message ([`kd_core::attached`]), so that its file, every later prompt, limits and the masking of secrets
//! treat it as text of the user. Pictures and PDF documents, recognized by their first bytes, go with the message:
//! [`kd_core::media`].

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::files::at_home;
use crate::request::Question;
use kd_core::attached::{self, append, block};
use kd_core::clean::clean_line;
use kd_core::config::Config;
use kd_core::cost::Cost;
use kd_core::media::{self, Attachment, MEDIA_BYTES_MAX};
use kd_core::mention;
use kd_core::size::size;
use kd_core::spending::{Price, Spent};
use kd_core::{Member, SeatName};
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

mod missing;
mod words;

pub use crate::opened::FILE_BYTES_MAX;

use crate::opened::{Kind, bytes, head as head_of, kind, open};
use crate::sensitive::is_sensitive;
use missing::Missing;
use words::{is_plain, quoted};

/// Maximum bytes of all text files of a message.
pub const ALL_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of files of a message.
const FILES_MAX: usize = 32;
/// The words for a file of no known kind.
const BINARY: &str = "a binary file";
/// Maximum characters of a path in a notice.
const PATH_CHARS_MAX: usize = 120;

/// Why a file needs consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// It is outside the working folder, or a link leads there.
    Outside,
    /// Its name says that it holds keys or passwords.
    Secret,
}

/// A file that the user names.
#[derive(Debug)]
struct Named {
    /// The path as typed.
    typed: String,
    /// The same for notices.
    shown: String,
    /// Where a link leads.
    target: Option<String>,
    /// The file, without links.
    path: PathBuf,
    /// The opened file, or why it cannot be opened.
    file: io::Result<File>,
    /// Whether an option names it, not the text.
    by_option: bool,
    doubt: Option<Doubt>,
}

impl Named {
    /// Names the file, and where a link leads.
    fn told(&self) -> String {
        match &self.target {
            Some(target) => format!("{} (a link to {target})", self.shown),
            None => self.shown.clone(),
        }
    }

    fn file(&self) -> Result<&File, UserError> {
        let unreadable = |why: &io::Error| unreadable(&self.told(), why);
        self.file.as_ref().map_err(unreadable)
    }
}

/// The files that a message names, opened but not read yet.
#[derive(Debug, Default)]
pub struct Attaching {
    files: Vec<Named>,
    /// Words that look like paths, but name no file.
    missing: Missing,
    /// The home folder, for advice.
    home: Option<PathBuf>,
}

/// The files of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// The files as text, in order.
    pub blocks: Vec<String>,
    /// Notices for the user before the message is sent, one line each.
    pub lines: Vec<String>,
    /// Pictures and documents that blocks name.
    pub media: Vec<Attachment>,
}

impl Attaching {
    /// Finds the files of `--attach`, and the files that the user's text names. `known` are the members, whose
    /// names mean no files.
    ///
    /// # Errors
    /// If a file of `--attach` cannot be used, or there are too many.
    pub fn find(
        typed: &str,
        known: &[SeatName],
        options: &[PathBuf],
        env: &Env,
    ) -> Result<Self, UserError> {
        let known: Vec<&SeatName> = known.iter().collect();
        let meant = mention::paths(typed, &known);
        if meant.is_empty() && options.is_empty() {
            return Ok(Self::default());
        }
        let folder = env.folder()?;
        let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let home = env.var("HOME").filter(|home| !home.is_empty());
        let mut found = Self {
            files: Vec::new(),
            missing: Missing::below(&root),
            home: home.map(PathBuf::from),
        };
        for option in options {
            let typed = option.to_string_lossy().into_owned();
            let path = root.join(option).canonicalize();
            let path = path.map_err(|error| unreadable(&shown(&typed), error))?;
            if !path.is_file() {
                let what = format!(
                    "{} cannot be attached: it is no regular file",
                    shown(&typed)
                );
                return Err(UserError::usage(what).next("pipe it in, or name a file"));
            }
            let named = Named {
                by_option: true,
                ..named(typed, &root.join(option), path, &root)
            };
            found.push(named)?;
        }
        for meant in meant {
            let at = |typed: &String| {
                let whole = root.join(at_home(typed, env));
                let path = whole.canonicalize().ok().filter(|path| path.is_file())?;
                // The names of folders above the working folder say nothing about its files.
                let below = |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_owned();
                let doubt = if is_sensitive(&below(&whole)) || is_sensitive(&below(&path)) {
                    Some(Doubt::Secret)
                } else {
                    (!path.starts_with(&root)).then_some(Doubt::Outside)
                };
                Some(Named {
                    doubt,
                    ..named(typed.clone(), &whole, path, &root)
                })
            };
            match meant.iter().find_map(at) {
                Some(named) => found.push(named)?,
                None => found.missing.note(&meant),
            }
        }
        Ok(found)
    }

    /// Adds a file, once.
    fn push(&mut self, named: Named) -> Result<(), UserError> {
        if self.files.iter().any(|file| file.path == named.path) {
            return Ok(());
        }
        if self.files.len() >= FILES_MAX {
            let what = format!(
                "the message names more than {FILES_MAX} files; at most {FILES_MAX} can be attached"
            );
            return Err(UserError::usage(what).next("attach fewer, or join them into one file"));
        }
        self.files.push(named);
        Ok(())
    }

    /// Says which words look like paths, but name no file: notices for the user, one line each. Lists the working folder
    /// at most once.
    pub fn missing(&self, env: &Env) -> Vec<String> {
        self.missing.lines(env)
    }

    /// Returns whether no file is named.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Says which files need consent, and why; `None` if there are none.
    pub fn doubts(&self) -> Option<String> {
        let doubts = self.files.iter().filter_map(|file| {
            Some(match file.doubt? {
                Doubt::Outside => format!("{} is outside of this folder", file.told()),
                Doubt::Secret => format!("{} may hold secrets", file.told()),
            })
        });
        let doubts: Vec<String> = doubts.collect();
        (!doubts.is_empty()).then(|| doubts.join("; "))
    }

    /// Returns the options of a command line that attaches the files that need consent.
    pub fn options(&self) -> String {
        let doubted = self.files.iter().filter(|file| file.doubt.is_some());
        let options: Vec<String> = doubted
            .map(|file| {
                let rest = file.typed.strip_prefix("~/");
                let at_home = rest
                    .zip(self.home.as_ref())
                    .map(|(rest, home)| home.join(rest));
                // Within quotes a shell leaves a `~` as it is.
                let path = at_home.filter(|_| !is_plain(&file.typed));
                let path = path.map_or_else(
                    || file.typed.clone(),
                    |path| path.to_string_lossy().into_owned(),
                );
                match is_plain(&file.typed) {
                    true => format!("--attach {path}"),
                    false => format!("--attach {}", quoted(&path)),
                }
            })
            .collect();
        options.join(" ")
    }

    /// Says what would be attached, by the sizes of the files; `None` if no file is named.
    pub fn line(&self, prices: &[Option<Price>]) -> Option<String> {
        if let Some(doubts) = self.doubts() {
            return Some(format!("asks first: {doubts}"));
        }
        let mut told: Vec<String> = Vec::new();
        let (mut names, mut all, mut tokens) = (Vec::new(), 0, 0);
        for file in &self.files {
            let shown = file.told();
            let head = file.file.as_ref().map_err(ToString::to_string);
            match head.and_then(|file| head_of(file).map_err(|error| error.to_string())) {
                Err(error) => told.push(format!("{shown} cannot be attached: {error}")),
                Ok((head, len)) => {
                    let kind = kind(&head, len > head.len() as u64);
                    match kind {
                        _ if len > kind.bytes_max() => {
                            told.push(format!("{shown} has {}: too long to attach", size(len)));
                            continue;
                        }
                        Kind::Binary => {
                            told.push(format!("{shown} is {BINARY}: only its name is sent"));
                            continue;
                        }
                        Kind::Media(_) => tokens += media::tokens(&head, len),
                        Kind::Text => {
                            tokens += attached::tokens(usize::try_from(len).unwrap_or(usize::MAX));
                        }
                    }
                    names.push(shown);
                    all += len;
                }
            }
        }
        if !names.is_empty() {
            let what = match names.as_slice() {
                [file] => file.clone(),
                files => format!("{} files", files.len()),
            };
            let burden = burden(tokens, prices);
            told.insert(0, format!("attaches {what}: {}, {burden}", size(all)));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Reads the files. `prices` are those of the members that get them: the cost is shown if all prices are known.
    ///
    /// # Errors
    /// If a file cannot be read or is too long, or a file of `--attach` is of no known kind.
    pub fn read(&self, prices: &[Option<Price>]) -> Result<Attached, UserError> {
        let mut read = Attached::default();
        let (mut texts, mut media) = (0, 0);
        for file in &self.files {
            let shown = file.told();
            let (bytes, kind) = contents(file)?;
            let len = bytes.len() as u64;
            if let Kind::Media(kind) = kind {
                media += len;
                within("pictures and documents", media, MEDIA_BYTES_MAX)?;
                read.media.extend(Attachment::new(&file.shown, bytes));
                if let Some(added) = read.media.last() {
                    read.blocks.push(added.block());
                    let burden = burden(added.tokens(), prices);
                    let kind = kind.words();
                    read.lines
                        .push(format!("attached {shown}: {kind}, {}, {burden}", size(len)));
                }
                continue;
            }
            texts += len;
            within("text files", texts, ALL_BYTES_MAX)?;
            let text = match kind {
                Kind::Text => String::from_utf8(bytes).ok(),
                _ => None,
            };
            let Some(text) = text else {
                let what =
                    format!("{shown} is {BINARY}, not UTF-8 text, a picture or a PDF document");
                if file.by_option {
                    return Err(UserError::usage(format!("{what}, and cannot be attached"))
                        .next("name its path in the question: agent programs can read it"));
                }
                read.lines.push(format!(
                    "{what}: only its name is sent; members that read files can open it"
                ));
                continue;
            };
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            let block = block(&file.shown, len, text);
            let tokens = attached::tokens(block.len());
            read.lines.push(format!(
                "attached {shown}: text, {}, {}",
                size(len),
                burden(tokens, prices)
            ));
            read.blocks.push(block);
        }
        Ok(read)
    }
}

impl Attached {
    /// Appends the files to a question.
    pub fn append_to(self, question: &mut Question) {
        question.text = append(&question.text, &self.blocks);
        question.media.extend(self.media);
    }
}

/// Returns the prices of input for the members.
pub fn prices<'m>(
    config: &Config,
    members: impl IntoIterator<Item = &'m Member>,
) -> Vec<Option<Price>> {
    let members = members.into_iter();
    members.map(|m| Cost::of(config, m).price()).collect()
}

/// Formats tokens, and their cost if it is known.
fn burden(tokens: u64, prices: &[Option<Price>]) -> String {
    let cost = cost(tokens, prices).map_or_else(String::new, |cost| format!(", {cost}"));
    format!("about {}{cost}", crate::words::count(tokens, "token"))
}

/// Returns what the members pay for these tokens; `None` if a price is unknown or nobody pays.
fn cost(tokens: u64, prices: &[Option<Price>]) -> Option<String> {
    let mut usd = 0.0;
    for price in prices {
        usd += Spent::of(tokens, 0, Some((*price)?)).usd();
    }
    let members = match prices.len() {
        1 => "1 member".to_owned(),
        n => format!("{n} members"),
    };
    (usd > 0.0).then(|| format!("${usd:.4} for {members}"))
}

/// Describes a file at this path, where the user typed it, and opens it.
fn named(typed: String, whole: &Path, path: PathBuf, root: &Path) -> Named {
    let is_straight = straight(whole) == path;
    let target = path.strip_prefix(root).unwrap_or(&path);
    Named {
        shown: shown(&typed),
        target: (!is_straight).then(|| shown(&target.to_string_lossy())),
        file: open(&path),
        typed,
        path,
        by_option: false,
        doubt: None,
    }
}

/// Returns a path without `.` and `..`, as if nothing in it was a link.
fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                straight.pop();
            }
            part => straight.push(part),
        }
    }
    straight
}

/// Reads a file, and tells its kind.
fn contents(named: &Named) -> Result<(Vec<u8>, Kind), UserError> {
    let failed = |error| unreadable(&named.told(), error);
    let file = named.file()?;
    let (head, len) = head_of(file).map_err(failed)?;
    let max = kind(&head, len > head.len() as u64).bytes_max();
    let (bytes, len) = bytes(file, max).map_err(failed)?;
    let kind = kind(&bytes, false);
    // The file may have become another kind meanwhile.
    let max = match len <= max {
        true => kind.bytes_max(),
        false => max,
    };
    if len > max {
        let what = format!("{} has {}", named.told(), size(len));
        return Err(UserError::usage(what)
            .because(format!("at most {} are attached", size(max)))
            .next("attach a file with only the part that matters"));
    }
    Ok((bytes, kind))
}

/// Checks the bytes of all files of a kind.
fn within(what: &str, bytes: u64, max: u64) -> Result<(), UserError> {
    if bytes <= max {
        return Ok(());
    }
    let what = format!("the attached {what} have more than {} together", size(max));
    Err(UserError::usage(what).next("attach fewer files"))
}

fn unreadable(shown: &str, error: impl Display) -> UserError {
    UserError::new(ErrorKind::Io, format!("{shown} cannot be attached")).because(error)
}

/// Returns a path for notices and headings.
fn shown(path: &str) -> String {
    clean_line(path, PATH_CHARS_MAX)
}

#[cfg(test)]
mod tests;
