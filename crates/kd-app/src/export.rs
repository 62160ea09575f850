//! A thread as one document: Markdown, a web page, or JSON.

use crate::env::Env;
use crate::error::UserError;
use crate::infile;
use crate::json;
use crate::marks::{self, Promised};
use crate::outfile;
use crate::page::{self, redacted};
use kd_core::redact::Redactor;
use kd_store::{Problem, Thread, export};
use std::fs::Metadata;
use std::io::Write;
use std::path::Path;

/// Maximum bytes of a file that is looked at before it is replaced.
const EXPORT_BYTES_MAX: u64 = 64 << 20;
/// Lines of an exported Markdown document before its first message, at most.
const HEAD_LINES: usize = 16;

/// The forms of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Markdown.
    Md,
    /// One web page with everything inside.
    Html,
    /// One JSON object.
    Json,
}

impl Format {
    /// Returns the format that the name of a file asks for: Markdown if it has no ending.
    ///
    /// # Errors
    /// If it ends in something else: a document in another format than its name says helps nobody.
    pub fn of_name(path: &Path) -> Result<Self, UserError> {
        let Some(end) = outfile::ending(path) else {
            return Ok(Self::Md);
        };
        match end.as_str() {
            "md" | "markdown" | "txt" | "text" => Ok(Self::Md),
            "html" | "htm" => Ok(Self::Html),
            "json" => Ok(Self::Json),
            end => {
                let what = format!("{}: kd cannot write .{end}", path.display());
                let name = path.with_extension("html");
                let next = match end {
                    "pdf" => format!("a browser prints a web page as PDF: -o {}", name.display()),
                    _ => "end the name in .md (Markdown), .html (a web page) or .json".to_owned(),
                };
                let error = UserError::usage(what);
                Err(error.because("it writes .md, .html and .json").next(next))
            }
        }
    }
}

/// Writes a thread as one document, message by message.
///
/// # Errors
/// If the thread cannot be read, or `out` written.
pub fn write(
    open: &Thread,
    format: Format,
    env: &Env,
    out: &mut dyn Write,
) -> Result<(), UserError> {
    write_redacted(open, format, None, env, out)
}

/// Like [`write()`], without private data if there is a redactor.
///
/// # Errors
/// Those of [`write()`].
pub fn write_redacted(
    open: &Thread,
    format: Format,
    mut redactor: Option<&mut Redactor>,
    env: &Env,
    out: &mut dyn Write,
) -> Result<(), UserError> {
    let problems = match format {
        Format::Md => {
            let head = export::head(
                open.meta(),
                open.count_readable()?,
                open.head(1)?.messages.first(),
            );
            let head = match redactor.as_deref_mut() {
                Some(redactor) => redactor.text(&head),
                None => head,
            };
            out.write_all(head.as_bytes())?;
            let promised = promised(open, redactor.is_some());
            open.each(|message| -> Result<(), UserError> {
                let message = redacted(message, redactor.as_deref_mut())?;
                out.write_all(export::section(&message).as_bytes())?;
                for promised in promised.iter().filter(|p| p.message == message.seq) {
                    writeln!(out, "\n*{}*", promised.promise.words_then())?;
                }
                Ok(())
            })?
        }
        Format::Json => write_json(open, redactor, out)?,
        Format::Html => {
            let page = page::of(open, redactor, env)?;
            out.write_all(kd_page::document(&[page]).as_bytes())?;
            return Ok(());
        }
    };
    for problem in &problems {
        env.warn(format!("warning: {problem}"));
    }
    Ok(())
}

/// Returns whether a file is an export of this thread, in whatever form. Without knowing, it is none.
pub fn is_of(open: &Thread, file: &Path) -> bool {
    let is_file = |meta: Metadata| meta.is_file();
    if !file.symlink_metadata().is_ok_and(is_file) {
        return false;
    }
    let Ok(text) = infile::read_text(file, EXPORT_BYTES_MAX) else {
        return false;
    };
    let id = &open.id().0;
    if text.starts_with("# ") {
        let line = format!("- thread: {id}");
        return text.lines().take(HEAD_LINES).any(|l| l == line);
    }
    let is_document = text.starts_with("<!DOCTYPE html>") || text.starts_with('{');
    is_document && text.contains(&format!("\"{id}\""))
}

/// Returns the promises about the verdicts of a thread. The user's marks are private.
fn promised(open: &Thread, redacts: bool) -> Vec<Promised> {
    match redacts {
        true => Vec::new(),
        // Messages are exported also if the log cannot be read.
        false => marks::promised(open).unwrap_or_default(),
    }
}

fn write_json(
    open: &Thread,
    mut redactor: Option<&mut Redactor>,
    out: &mut dyn Write,
) -> Result<Vec<Problem>, UserError> {
    const EMPTY: &str = "\"messages\": []";
    let mut frame = export::json(open.meta(), &[]);
    if let Some(redactor) = redactor.as_deref_mut() {
        redactor.value(&mut frame);
    }
    let promised = promised(open, redactor.is_some());
    if !promised.is_empty() {
        frame["promised_then"] = serde_json::json!(promised);
    }
    let frame = json::text(&frame, true)?;
    let (before, after) = frame.split_once(EMPTY).unwrap_or((&frame, ""));
    write!(out, "{before}\"messages\": [")?;
    let mut count = 0usize;
    let problems = open.each(|message| -> Result<(), UserError> {
        let comma = if count > 0 { "," } else { "" };
        count += 1;
        let message = redacted(message, redactor.as_deref_mut())?;
        // Line breaks occur only between values, never inside a string.
        let text = json::text(&message, true)?.replace('\n', "\n    ");
        Ok(write!(out, "{comma}\n    {text}")?)
    })?;
    let end = if count > 0 { "\n  ]" } else { "]" };
    writeln!(out, "{end}{after}")?;
    Ok(problems)
}

/// Returns a thread as one document.
///
/// # Errors
/// Those of [`write()`].
pub fn text(open: &Thread, format: Format, env: &Env) -> Result<String, UserError> {
    let mut bytes = Vec::new();
    write(open, format, env, &mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::Address;
    use kd_core::message::{Draft, Provenance};
    use kd_store::Layout;
    use std::collections::BTreeMap;

    #[test]
    fn message_by_message_the_document_is_the_same() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join(".kd")).unwrap();
        let layout = Layout::find(top.path(), &|_| None).unwrap();
        let thread = Thread::create(&layout, &[]).unwrap();
        let env = Env::of::<&str, &str>([]);
        for number in 0..3 {
            let read = thread.messages().unwrap().messages;
            let json = json::text(&export::json(thread.meta(), &read), true).unwrap() + "\n";
            assert_eq!(text(&thread, Format::Json, &env).unwrap(), json);
            let markdown = export::markdown(thread.meta(), &read);
            assert_eq!(text(&thread, Format::Md, &env).unwrap(), markdown);
            let body = format!("line \"{number}\"\n\n[]\n");
            let draft = Draft {
                turn: None,
                from: "king".into(),
                to: Address::All,
                at: jiff::Timestamp::UNIX_EPOCH,
                status: None,
                refs: Vec::new(),
                provenance: Provenance::default(),
                extra: BTreeMap::new(),
                body,
            };
            thread.append(&draft).unwrap();
        }
        let other = Thread::create(&layout, &[]).unwrap();
        for (format, name) in [
            (Format::Md, "a.md"),
            (Format::Json, "a.json"),
            (Format::Html, "a.html"),
        ] {
            let file = top.path().join(name);
            std::fs::write(&file, text(&thread, format, &env).unwrap()).unwrap();
            assert!(is_of(&thread, &file) && !is_of(&other, &file), "{name}");
        }
        let notes = top.path().join("notes.md");
        std::fs::write(&notes, format!("my notes about {}", thread.id())).unwrap();
        assert!(!is_of(&thread, &notes) && !is_of(&thread, top.path()));
    }
}
