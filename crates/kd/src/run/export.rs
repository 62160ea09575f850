//! `kd export`: exports a thread as one document.

use super::here::Here;
use super::notices::tell_changed;
use crate::args::export::Export;
use crate::error::Error;
use kd_app::export::{Format, write_redacted};
use kd_app::forks::with_forks;
use kd_app::threads::Thread;
use kd_app::{outfile, page};
use kd_core::redact::Redactor;
use std::io::Write;

pub(super) fn run(args: &Export, here: &Here) -> Result<(), Error> {
    let (layout, place) = kd_app::threads::find(here, args.id.as_deref())?;
    let open = Thread::open(&place)?;
    let forks = match args.tree {
        true => with_forks(&layout, open, here)?,
        false => vec![open],
    };
    for thread in &forks {
        tell_changed(&kd_app::threads::all_changed(thread)?);
    }
    let mut redactor = match args.redact {
        true => Some(redactor(&forks, here)?),
        false => None,
    };
    let format = match (args.is_json(), args.format) {
        (true, _) => Format::Json,
        (false, Some(format)) => format.into(),
        (false, None) => match &args.output {
            Some(path) => Format::of_name(path)?,
            None => Format::Md,
        },
    };
    match &args.output {
        Some(path) => outfile::write_with(path, here, |out| {
            write_all(&forks, format, args.tree, redactor.as_mut(), (here, out))
        })?,
        None => {
            let mut out = crate::out::stdout().lock();
            write_all(
                &forks,
                format,
                args.tree,
                redactor.as_mut(),
                (here, &mut out),
            )?;
            out.flush()?;
        }
    }
    if let Some(redactor) = redactor {
        let _ = writeln!(
            crate::out::stderr(),
            "{}; read it before you share it: a secret in plain words is not recognized",
            redactor.line()
        );
    }
    Ok(())
}

/// Creates the redactor for these threads: known formats and the user's keys, home folder and name.
fn redactor(threads: &[Thread], here: &Here) -> Result<Redactor, Error> {
    let layout = here.find_layout()?;
    let config = here.settings(layout.as_ref())?.config;
    let members = threads
        .iter()
        .flat_map(|thread| thread.meta().members.clone());
    let members: Vec<String> = members.collect();
    let (home, user) = (here.var("HOME"), here.var("USER"));
    let secrets = kd_app::secrets::of(&config, false, here);
    Ok(Redactor::new(
        secrets,
        home.as_deref(),
        user.as_deref(),
        &members,
    ))
}

/// Writes one thread, or a tree of them as one document.
fn write_all(
    threads: &[Thread],
    format: Format,
    tree: bool,
    mut redactor: Option<&mut Redactor>,
    (here, out): (&Here, &mut dyn Write),
) -> Result<(), Error> {
    if format == Format::Html {
        let mut pages = Vec::new();
        let lineages = threads.iter().enumerate();
        let lineages: Vec<_> = lineages
            .map(|(at, t)| (t.id().clone(), t.meta().lineage().filter(|_| at > 0)))
            .collect();
        for thread in threads {
            let mut page = page::of(thread, redactor.as_deref_mut(), here)?;
            page.family = kd_app::forks::family(&lineages, thread.id(), |id| {
                let at = lineages.iter().position(|(other, _)| other == id)?;
                Some(kd_page::address(at))
            });
            pages.push(page);
        }
        return Ok(out.write_all(kd_page::document(&pages).as_bytes())?);
    }
    if !tree || format == Format::Md {
        for (at, thread) in threads.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            write_redacted(thread, format, redactor.as_deref_mut(), here, out)?;
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
        write_redacted(thread, format, redactor.as_deref_mut(), here, out)?;
    }
    writeln!(out, "]\n}}")?;
    Ok(())
}
