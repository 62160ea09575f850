//! `kd batch forget`: erases a batch, or a question of one, in the database of a fleet.

use super::super::agreed::agreed;
use super::super::here::Here;
use crate::args::batch::Forget;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::batch::short;
use crate::face::fleet as face;
use kd_app::batch::Shelf;
use std::io::{self, IsTerminal, Write};

pub(super) fn run(args: &Forget, here: &Here) -> Result<Exit, Error> {
    let no_database = || {
        Error::usage("`kd batch forget` erases batches of a database").next(
            "add --store postgresql://user@host/name, or set KD_BATCH_STORE; for this project's own batches: kd forget THREAD",
        )
    };
    let Some(store) = super::store(&args.store, here)? else {
        return Err(no_database());
    };
    let (shelf, batch) = Shelf::with(Some(&store), Some(&args.id), here)?;
    let Shelf::Fleet(mut fleet) = shelf else {
        return Err(no_database());
    };
    let (id, question) = (batch.about.id.as_str(), args.question.as_deref());
    let found = fleet.forget(id, question, true)?;
    let busy = |asking: &std::collections::BTreeMap<String, u64>| {
        Error::usage(face::asking(id, asking)).next(format!(
            "kd batch cancel {}, and the same command when they have finished",
            short(id)
        ))
    };
    if !found.asking.is_empty() {
        return Err(busy(&found.asking));
    }
    if found.questions == 0 && question.is_some() {
        let what = format!("{id} has no question with this id");
        return Err(Error::usage(what).next(format!("kd batch results {} has the ids", short(id))));
    }
    let mut out = crate::out::stdout();
    if !args.yes {
        write!(out, "{}", face::erased(id, question, &found, false))?;
    }
    if args.dry_run {
        return Ok(Exit::Done);
    }
    if !args.yes {
        if !io::stdin().is_terminal() {
            return Err(Error::usage(
                "nothing was erased: there is no terminal to ask for confirmation",
            )
            .next("`--yes` erases what is listed, `--dry-run` only lists it"));
        }
        if !agreed(&format!("Erase it from {}?", fleet.store().shown()))? {
            writeln!(crate::out::stderr(), "nothing was erased")?;
            return Ok(Exit::Interrupted);
        }
    }
    // A worker may have claimed a question meanwhile.
    let erased = fleet.forget(id, question, false)?;
    if !erased.asking.is_empty() {
        return Err(busy(&erased.asking));
    }
    write!(out, "{}", face::erased(id, question, &erased, true))?;
    let mut err = crate::out::stderr();
    if let Some(layout) = here.find_layout()? {
        let fetched = layout.batches_folder().join(id);
        if fetched.exists() {
            let at = super::shown(&fetched);
            writeln!(err, "kept: threads fetched to {at}: kd forget THREAD")?;
        }
    }
    if let Some(output) = &batch.about.output {
        let output = crate::render::clean::line(output);
        writeln!(err, "kept: {output} on the machine that ran the batch")?;
    }
    writeln!(
        err,
        "kept: backups and the write-ahead log of the server, until it replaces them"
    )?;
    Ok(Exit::Done)
}
