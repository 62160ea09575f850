//! The table of formats: one module and one row each.

mod batch;
mod eee;
mod helm;
mod inspect;
mod lm_eval;
mod promptfoo;

use crate::content::Content;
use crate::file::File;
use crate::record::{Record, Unread, Wanted};

/// A format of recorded answers.
#[derive(Clone, Copy)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// The files, for people.
    pub doc: &'static str,
    /// Whether other files of the same folder complete it.
    pub(crate) is_completed: bool,
    /// Whether a file has this format.
    pub(crate) is: fn(&Content<'_>) -> bool,
    /// Reads a file.
    pub(crate) read: fn(&Input<'_>) -> Result<Vec<Record>, Unread>,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Format({})", self.name)
    }
}

/// All formats.
pub const FORMATS: &[Format] = &[
    inspect::FORMAT,
    lm_eval::FORMAT,
    helm::FORMAT,
    promptfoo::FORMAT,
    eee::FORMAT,
    batch::FORMAT,
];

/// A file to read, and all files.
pub(crate) struct Input<'a> {
    pub(crate) file: &'a File,
    pub(crate) content: &'a Content<'a>,
    pub(crate) files: &'a [File],
    pub(crate) contents: &'a [Content<'a>],
    pub(crate) wanted: &'a Wanted,
}

impl<'a> Input<'a> {
    /// Returns the files of the same folder of this form.
    pub(crate) fn beside(
        &self,
        is: impl Fn(&Content<'_>) -> bool,
    ) -> impl Iterator<Item = &'a File> {
        let folder = self.file.folder();
        let all = self.files.iter().zip(self.contents);
        all.filter(move |(file, content)| file.folder() == folder && is(content))
            .map(|(file, _)| file)
    }

    /// Returns an error about this file.
    pub(crate) fn unread(&self, what: impl Into<String>, hint: impl Into<String>) -> Unread {
        Unread::new(&self.file.path, what, hint)
    }

    /// Returns an error about damaged JSON in this file.
    pub(crate) fn damaged(&self, line: Option<usize>, error: &serde_json::Error) -> Unread {
        let at = line.map_or_else(String::new, |line| format!("line {line}: "));
        self.unread(
            format!("{at}{error}"),
            "write the file again with the tool that made it",
        )
    }

    /// Parses each line.
    ///
    /// # Errors
    /// If one cannot be parsed.
    pub(crate) fn lines<T: serde::de::DeserializeOwned>(&self) -> Result<Vec<T>, Unread> {
        let Content::Lines(_, text) = self.content else {
            return Ok(Vec::new());
        };
        let lines = text.lines().enumerate();
        let full = lines.filter(|(_, line)| !line.trim().is_empty());
        full.map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| self.damaged(Some(at + 1), &error))
        })
        .collect()
    }
}

/// Returns the format of a file.
pub(crate) fn of(content: &Content<'_>) -> Option<&'static Format> {
    FORMATS.iter().find(|format| (format.is)(content))
}

/// Returns whether a file holds no answers, but completes others.
pub(crate) fn completes(content: &Content<'_>) -> bool {
    lm_eval::is_summary(content) || helm::is_part(content) || eee::is_summary(content)
}

/// Returns the error for a file of no known format.
pub(crate) fn unknown(file: &File) -> Unread {
    let known: Vec<String> = FORMATS
        .iter()
        .map(|format| format!("{} ({})", format.name, format.doc))
        .collect();
    let hint = format!(
        "known are {}, a CSV table of answers, and JSON Lines of debates; docs/eval.md shows each",
        known.join(", ")
    );
    Unread::new(&file.path, "the file is of no known format", hint)
}

/// Returns the metric to read: the wanted one, or the first.
///
/// # Errors
/// If the wanted one does not exist, or there is none.
pub(crate) fn metric<'m>(input: &Input<'_>, names: &'m [String]) -> Result<&'m str, Unread> {
    let list = names.join(", ");
    match &input.wanted.metric {
        Some(wanted) => names
            .iter()
            .find(|name| *name == wanted)
            .map(String::as_str)
            .ok_or_else(|| {
                let near = kd_vote::nearest(wanted, names.iter().map(String::as_str));
                let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                input.unread(
                    format!("no metric is named {wanted}{near}"),
                    format!("metrics of this file: {list}"),
                )
            }),
        None => names.first().map(String::as_str).ok_or_else(|| {
            input.unread(
                "no answer has a score",
                "score the answers with the tool that made the file",
            )
        }),
    }
}
