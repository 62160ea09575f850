//! `kd export`: exports a thread as one document.

use super::here::Here;
use super::thread::LeftOut;
use super::{outfile, page, secrets, thread};
use crate::args::export::{Export, Format};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use kd_core::redact::Redactor;
use kd_store::{Layout, Problem, Thread, export, fork};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Write};

pub(super) fn run(args: &Export, here: &Here) -> Result<(), Error> {
    let (layout, place) = thread::find(here, args.id.as_deref())?;
    let open = Thread::open(&place)?;
    let forks = match args.tree {
        true => forks(&layout, open)?,
        false => vec![open],
    };
    let mut redactor = match args.redact {
        true => Some(redactor(&forks, here)?),
        false => None,
    };
    let by_name = args.output.as_deref().map_or(Format::Md, Format::of_name);
    let format = args.format.unwrap_or(by_name);
    match &args.output {
        Some(path) => outfile::write_with(path, |out| {
            write_all(&forks, format, args.tree, redactor.as_mut(), out)
        })?,
        None => {
            let mut out = io::stdout().lock();
            write_all(&forks, format, args.tree, redactor.as_mut(), &mut out)?;
            out.flush()?;
        }
    }
    if let Some(redactor) = redactor {
        let _ = writeln!(
            io::stderr(),
            "{}; read it before you share it: a secret in plain words is not recognised",
            redactor.line()
        );
    }
    Ok(())
}

/// Creates the redactor for these threads: known formats and the user's keys, home folder and name.
fn redactor(threads: &[Thread], here: &Here) -> Result<Redactor, Error> {
    let layout = here.find_layout()?;
    let config = here.config(layout.as_ref())?.config;
    let members = threads
        .iter()
        .flat_map(|thread| thread.meta().members.clone());
    let members: Vec<String> = members.collect();
    let (home, user) = (here.var("HOME"), here.var("USER"));
    let secrets = secrets::of(&config, false);
    Ok(Redactor::new(
        secrets,
        home.as_deref(),
        user.as_deref(),
        &members,
    ))
}

/// Returns a message or record without private data.
pub(super) fn redacted<T: Serialize + DeserializeOwned>(
    message: T,
    redactor: Option<&mut Redactor>,
) -> Result<T, Error> {
    let Some(redactor) = redactor else {
        return Ok(message);
    };
    let fault = |e: serde_json::Error| {
        Error::new("redact", Exit::Error, "a message could not be redacted").because(e.to_string())
    };
    let mut value = serde_json::to_value(&message).map_err(fault)?;
    redactor.value(&mut value);
    serde_json::from_value(value).map_err(fault)
}

/// Returns a thread and every fork of it, each below its source.
fn forks(layout: &Layout, top: Thread) -> Result<Vec<Thread>, Error> {
    let mut threads = Vec::new();
    let mut left_out = LeftOut::default();
    for place in layout.all_threads(true)? {
        if place.id != *top.id() {
            threads.extend(left_out.open(&place)?);
        }
    }
    left_out.tell();
    threads.retain(|thread| thread.meta().lineage().is_some());
    threads.sort_by(|a, b| {
        let key = |t: &Thread| (t.meta().created(), t.id().clone());
        key(a).cmp(&key(b))
    });
    threads.insert(0, top);
    let lineages: Vec<_> = threads
        .iter()
        .enumerate()
        // The origin of the first one is not part of the tree.
        .map(|(at, t)| (t.id().clone(), t.meta().lineage().filter(|_| at > 0)))
        .collect();
    let below = fork::tree(&lineages).into_iter().enumerate();
    let below = below.take_while(|(line, (depth, _))| *line == 0 || *depth > 0);
    let order: Vec<usize> = below.map(|(_, (_, at))| at).collect();
    let mut threads: Vec<Option<Thread>> = threads.into_iter().map(Some).collect();
    Ok(order
        .into_iter()
        .filter_map(|at| threads[at].take())
        .collect())
}

/// Writes one thread, or a tree of them as one document.
fn write_all(
    threads: &[Thread],
    format: Format,
    tree: bool,
    mut redactor: Option<&mut Redactor>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Html {
        let mut pages = Vec::new();
        for thread in threads {
            pages.push(page::of(thread, redactor.as_deref_mut())?);
        }
        return Ok(out.write_all(kd_page::document(&pages).as_bytes())?);
    }
    if !tree || format == Format::Md {
        for (at, thread) in threads.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            write_redacted(thread, format, redactor.as_deref_mut(), out)?;
        }
        return Ok(());
    }
    write!(
        out,
        "{{\n\"v\": {},\n\"threads\": [\n",
        kd_core::formats::EXPORT.version
    )?;
    for (at, thread) in threads.iter().enumerate() {
        if at > 0 {
            writeln!(out, ",")?;
        }
        write_redacted(thread, format, redactor.as_deref_mut(), out)?;
    }
    writeln!(out, "]\n}}")?;
    Ok(())
}

/// Writes a thread as one document, message by message.
pub(super) fn write(open: &Thread, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    write_redacted(open, format, None, out)
}

fn write_redacted(
    open: &Thread,
    format: Format,
    mut redactor: Option<&mut Redactor>,
    out: &mut dyn Write,
) -> Result<(), Error> {
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
            open.each(|message| -> Result<(), Error> {
                let message = redacted(message, redactor.as_deref_mut())?;
                Ok(out.write_all(export::section(&message).as_bytes())?)
            })?
        }
        Format::Json => write_json(open, redactor, out)?,
        Format::Html => {
            let page = page::of(open, redactor)?;
            out.write_all(kd_page::document(&[page]).as_bytes())?;
            return Ok(());
        }
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

fn write_json(
    open: &Thread,
    mut redactor: Option<&mut Redactor>,
    out: &mut dyn Write,
) -> Result<Vec<Problem>, Error> {
    const EMPTY: &str = "\"messages\": []";
    let mut frame = export::json(open.meta(), &[]);
    if let Some(redactor) = redactor.as_deref_mut() {
        redactor.value(&mut frame);
    }
    let frame = json::text(&frame, true)?;
    let (before, after) = frame.split_once(EMPTY).unwrap_or((&frame, ""));
    write!(out, "{before}\"messages\": [")?;
    let mut count = 0usize;
    let problems = open.each(|message| -> Result<(), Error> {
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
