//! `kd export`: a thread as one document.

use super::here::Here;
use super::{outfile, thread};
use crate::args::export::{Export, Format};
use crate::error::Error;
use crate::face::json;
use crate::render::clean;
use kd_store::{Problem, Thread, export};
use std::io::{self, Write};

pub(super) fn run(args: &Export, here: &Here) -> Result<(), Error> {
    let (_, place) = thread::find(here, args.id.as_deref())?;
    let open = Thread::open(&place)?;
    let by_name = args.output.as_deref().is_some_and(outfile::is_json);
    let format = args
        .format
        .unwrap_or(if by_name { Format::Json } else { Format::Md });
    match &args.output {
        Some(path) => outfile::write_with(path, |out| write(&open, format, out))?,
        None => {
            let mut out = io::stdout().lock();
            write(&open, format, &mut out)?;
            out.flush()?;
        }
    }
    Ok(())
}

/// Writes a thread as one document, message after message.
pub(super) fn write(open: &Thread, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let problems = match format {
        Format::Md => {
            out.write_all(export::head(open.meta(), open.count_readable()?).as_bytes())?;
            open.each(|message| -> Result<(), Error> {
                Ok(out.write_all(export::section(&message).as_bytes())?)
            })?
        }
        Format::Json => write_json(open, out)?,
    };
    for problem in &problems {
        let _ = writeln!(
            io::stderr(),
            "warning: {}",
            clean::line(&problem.to_string())
        );
    }
    Ok(())
}

fn write_json(open: &Thread, out: &mut dyn Write) -> Result<Vec<Problem>, Error> {
    const EMPTY: &str = "\"messages\": []";
    let frame = json::text(&export::json(open.meta(), &[]), true)?;
    let (before, after) = frame.split_once(EMPTY).unwrap_or((&frame, ""));
    write!(out, "{before}\"messages\": [")?;
    let mut count = 0usize;
    let problems = open.each(|message| -> Result<(), Error> {
        let comma = if count > 0 { "," } else { "" };
        count += 1;
        // Raw line breaks are between values only, never in a text.
        let text = json::text(&message, true)?.replace('\n', "\n    ");
        Ok(write!(out, "{comma}\n    {text}")?)
    })?;
    let end = if count > 0 { "\n  ]" } else { "]" };
    writeln!(out, "{end}{after}")?;
    Ok(problems)
}

/// A thread as one document.
pub(super) fn text(open: &Thread, format: Format) -> Result<String, Error> {
    let mut bytes = Vec::new();
    write(open, format, &mut bytes)?;
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
        for number in 0..3 {
            let read = thread.messages().unwrap().messages;
            let json = json::text(&export::json(thread.meta(), &read), true).unwrap() + "\n";
            assert_eq!(text(&thread, Format::Json).unwrap(), json);
            let markdown = export::markdown(thread.meta(), &read);
            assert_eq!(text(&thread, Format::Md).unwrap(), markdown);
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
    }
}
