//! `kd deliberate --resume`: finishes a deliberation that was forked at a stage or interrupted.

use super::super::here::Here;
use super::super::{stage, trust};
use super::{ended, face, settings};
use crate::args::deliberate::Deliberate;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::{ErrorKind, secrets};

pub(super) fn run(args: &Deliberate, id: &str, here: &Here) -> Result<Exit, Error> {
    let quiet = args.output.quiet;
    stage::check_file(&args.output, here)?;
    super::check_export(args.export.as_deref(), here)?;
    super::check_marks(args, here)?;
    let kingdom = trust::open(here, quiet)?;
    let config = settings(args, kingdom.loaded(), here)?;
    kingdom.sweep();
    let masked = secrets::of(&config, args.privacy.allow_secrets, here);
    let mut resuming = kingdom
        .resuming(
            Some(id),
            config,
            args.model.as_deref(),
            args.tools.request(),
        )
        .map_err(|error| match error.kind {
            ErrorKind::NoThread if id.contains(char::is_whitespace) => {
                error.next("--resume takes the id of a thread; `kd ask --continue \"…\"` asks more")
            }
            _ => error,
        })?;
    resuming.required = args.require;
    resuming.make_ready(args.offline)?;
    let (face, repaint) = face(args, resuming.plan().output.is_some(), here);
    let mut opened = None;
    // Held until the deliberation is over.
    let mut lease = None;
    let played = stage::play(face, repaint, stage::UNASKED, || {
        let started = resuming.start(masked)?;
        lease = started.lease;
        opened = Some(started.opened);
        Ok(started.session)
    })?;
    drop(lease);
    ended((args, here), opened, &played)
}
