//! The file of results: one JSON line for each question. The database is the source; the file is written from it.
//!
//! At the start of a run it is replaced by the results so far, then each result is appended when it is in the database, and
//! at the end it is replaced once more, in the order of the questions.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::outfile;
use kd_core::batch::Row;
use kd_core::formats::{BATCH_RESULT, Newer};
use kd_sql::batch::Batches;
use kd_store::beneath;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of a file that show whether it contains results.
const HEAD_BYTES: u64 = 256;

/// A file of results.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    env: Env,
    file: Option<File>,
}

impl Results {
    /// Checks that a file of results can be written there. A file with other content is never replaced.
    ///
    /// # Errors
    /// If the file exists with other content, or cannot be written.
    pub fn new(path: &Path, env: &Env) -> Result<Self, UserError> {
        outfile::check(Some(path), env)?;
        outfile::check_lines(path, "-o")?;
        let whole = env.folder()?.join(path);
        let folder = whole.parent().unwrap_or(&whole);
        if beneath::is_below_kd(&whole) || outfile::is_of_kernel(folder) {
            let what = format!("{} is no place for results", path.display());
            return Err(UserError::new(ErrorKind::Output, what)
                .next("give -o the name of a file; `kd batch results` prints them"));
        }
        check_old(&whole, path)?;
        Ok(Self {
            path: whole,
            env: env.clone(),
            file: None,
        })
    }

    /// Says so if the file, where there is one, has the results of another batch, which are about to be replaced.
    pub(super) fn tell_other(file: Option<&Self>, batch: &str, env: &Env) {
        let Some(file) = file else { return };
        let head = head(&file.path, &file.path).ok().flatten();
        let other = head.as_deref().and_then(about).map(|(_, other)| other);
        if let Some(other) = other.filter(|other| *other != batch.as_bytes()) {
            let other = String::from_utf8_lossy(other);
            env.warn(format!(
                "{} had the results of {other}; this is another batch, because a question, an option or a setting differs: `kd batch results {other}` prints them",
                file.path.display()
            ));
        }
    }

    /// The same for an optional file.
    ///
    /// # Errors
    /// Those of [`Results::new`].
    pub(super) fn of(path: Option<&Path>, env: &Env) -> Result<Option<Self>, UserError> {
        path.map(|path| Self::new(path, env)).transpose()
    }

    /// Replaces the file by all results of a batch, in the order of the questions.
    ///
    /// # Errors
    /// If it cannot be written, or was replaced by something else.
    pub fn rewrite(&mut self, batches: &Batches, batch: &str) -> Result<(), UserError> {
        self.rewrite_with(|out| {
            batches.results(batch, |line| {
                out.write_all(line.as_bytes())?;
                out.write_all(b"\n")?;
                Ok::<_, UserError>(())
            })
        })
    }

    /// Replaces the file by what `write` writes.
    pub(super) fn rewrite_with(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        check_old(&self.path, &self.path)?;
        self.file = None;
        outfile::write_with(&self.path, &self.env, write)
    }

    /// Appends results.
    ///
    /// # Errors
    /// If they cannot be written. They are in the database.
    pub fn append(&mut self, rows: &[Row]) -> Result<(), UserError> {
        let mut bytes = Vec::new();
        for row in rows {
            serde_json::to_writer(&mut bytes, row).map_err(|e| self.failed(&e.into()))?;
            bytes.push(b'\n');
        }
        let written = self.opened().and_then(|file| file.write_all(&bytes));
        written.map_err(|e| self.failed(&e))
    }

    fn opened(&mut self) -> std::io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => outfile::open_to_append(&self.path)?,
        };
        Ok(self.file.insert(file))
    }

    fn failed(&self, error: &std::io::Error) -> UserError {
        let what = format!("{} could not be written", self.path.display());
        UserError::new(ErrorKind::Output, what)
            .because(error)
            .next("no result is lost: run the same command again, which writes the whole file")
    }
}

/// Checks that a file to write to does not exist, or contains results of this batch.
///
/// # Errors
/// If it contains something else, or cannot be read.
pub fn check_own(path: &Path, batch: &str, env: &Env) -> Result<(), UserError> {
    let whole = env.folder()?.join(path);
    let Some(head) = head(&whole, path)? else {
        return Ok(());
    };
    if head.is_empty() || about(&head).is_some_and(|(_, id)| id == batch.as_bytes()) {
        return Ok(());
    }
    let what = format!(
        "{} exists and is not the results of {batch}",
        path.display()
    );
    Err(UserError::new(ErrorKind::Output, what)
        .next("give -o another name, or add --force to replace the file"))
}

/// Fails if the file exists and does not contain results.
fn check_old(path: &Path, told: &Path) -> Result<(), UserError> {
    let Some(head) = head(path, told)? else {
        return Ok(());
    };
    match about(&head) {
        Some((version, _)) => BATCH_RESULT.check(Some(version)).map_err(|newer| {
            let what = format!("{} has {newer}", told.display());
            UserError::new(ErrorKind::TooNew, what).next(Newer::HINT)
        }),
        None if head.is_empty() => Ok(()),
        None => Err(UserError::new(
            ErrorKind::Output,
            format!(
                "{} exists and was not written by `kd batch`",
                told.display()
            ),
        )
        .next("give -o another name, or move the file; no member was asked")),
    }
}

/// Returns the first bytes of a file; `None` if nothing is there, or a device.
fn head(path: &Path, told: &Path) -> Result<Option<Vec<u8>>, UserError> {
    let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    if !is_file {
        return Ok(None);
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.map_err(|e| {
        let what = format!("{} could not be read", told.display());
        UserError::new(ErrorKind::Output, what).because(e)
    })?;
    Ok(Some(head))
}

/// Returns the version and the batch at the beginning of a file of results.
fn about(head: &[u8]) -> Option<(u64, &[u8])> {
    // Bytes, because the text of a question may be cut in the middle of a character.
    let rest = head.strip_prefix(b"{\"v\":")?;
    let comma = rest.iter().position(|byte| *byte == b',')?;
    let (version, rest) = (rest.get(..comma)?, rest.get(comma + 1..)?);
    let version = std::str::from_utf8(version).ok()?.parse().ok()?;
    let rest = rest.strip_prefix(b"\"batch\":\"")?;
    let quote = rest.iter().position(|byte| *byte == b'"')?;
    Some((version, rest.get(..quote)?))
}
