//! Files that the user attaches to a message: found in the words that were typed, checked, and read once.
//!
//! `@PATH` names a file where no member has that name and the file exists. A file outside the working folder, or one
//! whose name says that it holds secrets, needs consent. Only regular files with UTF-8 text are attached, up to
//! [`FILE_BYTES_MAX`]; they become part of the message ([`kd_core::attached`]), so that its file, every later prompt,
//! limits and the masking of secrets treat them as text of the user.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::files::at_home;
use crate::request::Question;
use kd_core::attached::{self, append, block};
use kd_core::clean::clean_line;
use kd_core::config::Config;
use kd_core::cost::Cost;
use kd_core::mention;
use kd_core::size::size;
use kd_core::spending::{Price, Spent};
use kd_core::{Member, SeatName};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum bytes of a file.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum bytes of all files of a message.
pub const ALL_BYTES_MAX: u64 = 4 << 20;
/// Bytes of a file that are read to tell its kind.
const HEAD_BYTES: u64 = 8 << 10;
/// Maximum number of files of a message.
const FILES_MAX: usize = 32;
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
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    /// The path as typed.
    shown: String,
    /// The file, without links.
    path: PathBuf,
    /// Whether an option names it, not the text.
    by_option: bool,
    doubt: Option<Doubt>,
}

/// The files that a message names, not read yet.
#[derive(Clone, Debug, Default)]
pub struct Attaching {
    files: Vec<Named>,
}

/// The files of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// The files as text, in order.
    pub blocks: Vec<String>,
    /// What the user should know before the message is sent, one line each.
    pub lines: Vec<String>,
}

impl Attaching {
    /// Finds the files: those of `--attach`, and those in the words that the user typed. `known` are the members, whose
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
        let mut found = Self::default();
        for option in options {
            let shown = shown(&option.to_string_lossy());
            let path = root.join(option).canonicalize();
            let path = path.map_err(|error| unreadable(&shown, error))?;
            if !path.is_file() {
                let what = format!("{shown} cannot be attached: it is no regular file");
                return Err(UserError::usage(what).next("pipe it in, or name a file"));
            }
            found.push(Named {
                shown,
                path,
                by_option: true,
                doubt: None,
            });
        }
        for meant in meant {
            let at = |typed: &String| {
                let whole = root.join(at_home(typed, env));
                let path = whole.canonicalize().ok().filter(|path| path.is_file())?;
                // The names of folders above the working folder say nothing about its files.
                let below = |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_owned();
                let doubt = if is_secret(&below(&whole)) || is_secret(&below(&path)) {
                    Some(Doubt::Secret)
                } else {
                    (!path.starts_with(&root)).then_some(Doubt::Outside)
                };
                Some(Named {
                    shown: shown(typed),
                    path,
                    by_option: false,
                    doubt,
                })
            };
            if let Some(named) = meant.iter().find_map(at) {
                found.push(named);
            }
        }
        if found.files.len() > FILES_MAX {
            let what = format!(
                "the message names {} files; at most {FILES_MAX} can be attached",
                found.files.len()
            );
            return Err(UserError::usage(what).next("attach fewer, or join them into one file"));
        }
        Ok(found)
    }

    /// Adds a file, once.
    fn push(&mut self, named: Named) {
        if self.files.iter().all(|file| file.path != named.path) {
            self.files.push(named);
        }
    }

    /// Returns whether no file is named.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Says which files need consent, and why; `None` if there are none.
    pub fn doubts(&self) -> Option<String> {
        let doubts = self.files.iter().filter_map(|file| {
            Some(match file.doubt? {
                Doubt::Outside => format!("{} is outside of this folder", file.shown),
                Doubt::Secret => format!("{} may hold secrets", file.shown),
            })
        });
        let doubts: Vec<String> = doubts.collect();
        (!doubts.is_empty()).then(|| doubts.join("; "))
    }

    /// Returns the files that need consent.
    pub fn doubted(&self) -> Vec<&Path> {
        let doubted = self.files.iter().filter(|file| file.doubt.is_some());
        doubted.map(|file| file.path.as_path()).collect()
    }

    /// Returns the options of a command line that attaches the files that need consent.
    pub fn options(&self) -> String {
        let doubted = self.files.iter().filter(|file| file.doubt.is_some());
        let options: Vec<String> = doubted
            .map(|file| match file.shown.contains(|c: char| !is_plain(c)) {
                true => format!("--attach '{}'", file.shown.replace('\'', "'\\''")),
                false => format!("--attach {}", file.shown),
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
        let (mut texts, mut all) = (Vec::new(), 0);
        for file in &self.files {
            let shown = &file.shown;
            match head_of(&file.path) {
                Err(error) => told.push(format!("{shown} cannot be attached: {error}")),
                Ok((_, len)) if len > FILE_BYTES_MAX => {
                    told.push(format!("{shown} has {}: too long to attach", size(len)));
                }
                Ok((head, len)) => match kind(&head, len > head.len() as u64) {
                    "text" => {
                        texts.push(shown.as_str());
                        all += len;
                    }
                    kind => told.push(format!("{shown} is {kind}: only its name is sent")),
                },
            }
        }
        if !texts.is_empty() {
            let what = match texts.as_slice() {
                [file] => (*file).to_owned(),
                files => format!("{} files", files.len()),
            };
            let tokens = attached::tokens(usize::try_from(all).unwrap_or(usize::MAX));
            let burden = burden(tokens, prices);
            told.insert(0, format!("attaches {what}: {}, {burden}", size(all)));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Reads the files. `prices` are those of the members that get them: what they cost is told where all are known.
    ///
    /// # Errors
    /// If a file cannot be read or is too long, or a file of `--attach` is no text.
    pub fn read(&self, prices: &[Option<Price>]) -> Result<Attached, UserError> {
        let mut read = Attached::default();
        let mut all = 0;
        for file in &self.files {
            let Named { shown, path, .. } = file;
            let bytes = bytes_of(path, shown)?;
            all += bytes.len() as u64;
            if all > ALL_BYTES_MAX {
                let what = format!(
                    "the attached files have more than {} together",
                    size(ALL_BYTES_MAX)
                );
                return Err(UserError::usage(what).next("attach fewer files"));
            }
            let kind = kind(&bytes, false);
            let len = bytes.len() as u64;
            let text = match kind {
                "text" => String::from_utf8(bytes).ok(),
                _ => None,
            };
            let Some(text) = text else {
                let what = format!("{shown} is {kind}, not UTF-8 text");
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
            let block = block(shown, len, text);
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
    pub fn append_to(&self, question: &mut Question) {
        question.text = append(&question.text, &self.blocks);
    }
}

/// Returns the prices of what members read.
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

/// Opens a file without waiting for a pipe that has taken its place, and returns its size.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    match meta.is_file() {
        true => Ok((file, meta.len())),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// Reads the first bytes of a file, and its size.
fn head_of(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let (file, len) = open(path)?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok((head, len))
}

/// Reads a file of at most [`FILE_BYTES_MAX`] bytes.
fn bytes_of(path: &Path, shown: &str) -> Result<Vec<u8>, UserError> {
    let (file, len) = open(path).map_err(|error| unreadable(shown, error))?;
    let mut bytes = Vec::new();
    if len <= FILE_BYTES_MAX {
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(shown, error))?;
    }
    let len = len.max(bytes.len() as u64);
    if len > FILE_BYTES_MAX {
        let what = format!("{shown} has {}", size(len));
        return Err(UserError::usage(what)
            .because(format!("at most {} are attached", size(FILE_BYTES_MAX)))
            .next("attach a file with only the part that matters"));
    }
    Ok(bytes)
}

fn unreadable(shown: &str, error: io::Error) -> UserError {
    UserError::new(ErrorKind::Io, format!("{shown} cannot be attached")).because(error)
}

/// Names the kind of a file by its bytes; `is_cut` means that only the first ones are given.
fn kind(bytes: &[u8], is_cut: bool) -> &'static str {
    let is_text = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // A character at the end may be cut.
        Err(error) => is_cut && error.error_len().is_none(),
    };
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => "a PNG image",
        [0xff, 0xd8, 0xff, ..] => "a JPEG image",
        [b'G', b'I', b'F', b'8', ..] => "a GIF image",
        [b'%', b'P', b'D', b'F', b'-', ..] => "a PDF document",
        _ if is_webp => "a WebP image",
        _ if !is_text || bytes.contains(&0) => "a binary file",
        _ => "text",
    }
}

/// Returns a path for notices and headings.
fn shown(path: &str) -> String {
    clean_line(path, PATH_CHARS_MAX)
}

/// Returns whether a shell reads a character as part of a word.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '+' | ',' | ':' | '@' | '%')
}

/// Folders whose files hold keys or sign-ins.
const SECRET_FOLDERS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
];
/// Files that hold keys, tokens or passwords.
const SECRET_NAMES: &[&str] = &[
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".claude.json",
    "credentials",
    "credentials.json",
    "credentials.toml",
    ".credentials.json",
    "oauth_creds.json",
    "auth.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
];
/// Endings of files that hold keys.
const SECRET_ENDINGS: &[&str] = &[
    "pem", "key", "p12", "pfx", "p8", "jks", "keystore", "kdbx", "ppk", "ovpn",
];
/// Endings of `.env` files that hold examples.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist"];

/// Returns whether the path of a file says that it holds secrets.
fn is_secret(path: &Path) -> bool {
    let lower = |name: &std::ffi::OsStr| name.to_string_lossy().to_lowercase();
    let name = path.file_name().map(lower).unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let mut folders = path.parent().into_iter().flat_map(Path::components);
    let is_env = name == ".env" || name.starts_with(".env.") || name == ".envrc";
    (is_env && !EXAMPLES.contains(&ending))
        || SECRET_NAMES.contains(&name.as_str())
        || SECRET_ENDINGS.contains(&ending)
        || folders.any(|part| SECRET_FOLDERS.contains(&lower(part.as_os_str()).as_str()))
}

#[cfg(test)]
mod tests;
