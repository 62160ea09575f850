//! Reads the questions of a batch: a file, stdin, or a folder with a file for each.

use crate::args::batch::Run;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::infile;
use kd_core::batch::{self, FILE_BYTES_MAX, Fields, Form, QUESTION_BYTES_MAX, Question, ReadError};
use std::path::Path;

/// Endings of files in a folder of questions.
const ENDINGS: [&str; 2] = ["txt", "md"];

/// Returns the name of a file of questions for people.
pub(super) fn name(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "stdin".to_owned(),
        false => super::shown(path),
    }
}

/// Reads all questions.
pub(super) fn read(args: &Run) -> Result<Vec<Question>, Error> {
    let path = &args.questions;
    if path.is_dir() {
        return folder(path);
    }
    let bytes = infile::read(path, FILE_BYTES_MAX).map_err(|e| {
        Error::new(
            "questions",
            Exit::Error,
            format!("{} could not be read", name(path)),
        )
        .because(e)
        .next("give a file of questions, a folder, or `-` for stdin")
    })?;
    let fields = Fields {
        id: args.id_field.clone(),
        question: args.question_field.clone(),
    };
    let form = Form::of(&path.to_string_lossy(), &bytes);
    batch::read(&bytes, form, &fields).map_err(|error| unreadable(path, &error))
}

fn folder(path: &Path) -> Result<Vec<Question>, Error> {
    let failed = |e: std::io::Error| {
        Error::new(
            "questions",
            Exit::Error,
            format!("{} could not be read", super::shown(path)),
        )
        .because(e)
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let ending = file
            .extension()
            .and_then(|end| end.to_str())
            .unwrap_or_default();
        let is_hidden = file
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        // A link may lead out of the folder, which others may have filled.
        let is_file = file.symlink_metadata().is_ok_and(|meta| meta.is_file());
        if ENDINGS.contains(&ending) && !is_hidden && is_file {
            files.push(file);
        }
    }
    files.sort();
    let mut questions: Vec<Question> = Vec::new();
    for file in &files {
        let text = infile::read_text(file, QUESTION_BYTES_MAX as u64).map_err(|e| {
            Error::new(
                "questions",
                Exit::Error,
                format!("{} could not be read", super::shown(file)),
            )
            .because(e)
            .next("each file of the folder is one question, of at most 1 MiB of UTF-8 text")
        })?;
        let id = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let twin = questions.iter().any(|other| other.id == id);
        let odd = text.contains('\0') || id.contains(char::is_control);
        if text.trim().is_empty() || twin || odd {
            let what = match (twin, odd) {
                (true, _) => format!("two files of {} are named {id}", super::shown(path)),
                (_, true) => format!("{} has NUL bytes or control characters", super::shown(file)),
                _ => format!("{} is empty", super::shown(file)),
            };
            return Err(Error::new("questions", Exit::Error, what).next("rename or remove it"));
        }
        questions.push(Question { id, text, line: 1 });
    }
    if questions.is_empty() {
        let what = format!("{} has no .txt or .md file", super::shown(path));
        return Err(Error::new("questions", Exit::Error, what).next("each file is one question"));
    }
    Ok(questions)
}

fn unreadable(path: &Path, error: &ReadError) -> Error {
    Error::new(
        "questions",
        Exit::Error,
        format!("{}, line {}: {}", name(path), error.line, error.what),
    )
    .next(format!("{}; no question was asked", error.hint))
}
