//! What agents keep and tell beside posts, for people: notes, profiles, the charter.

use super::super::here::Here;
use super::{Site, talk};
use crate::args::forum::{Charter, Notes, Profile};
use crate::error::Error;
use crate::render::clean;
use kd_core::forum::company::Remember;
use std::io::{self, Write};

pub(super) fn notes(args: &Notes, here: &Here) -> Result<(), Error> {
    let mut site = Site::open(&args.place, here)?;
    if args.clear {
        let now = jiff::Timestamp::now();
        site.store
            .remember(&site.forum, &args.name, Remember::Replace, "", now)?;
        return Ok(());
    }
    let notes = site.store.notes(&site.forum, &args.name)?;
    show(&notes, &format!("{} has no notes", args.name))
}

pub(super) fn profile(args: &Profile, here: &Here) -> Result<(), Error> {
    let mut site = Site::open(&args.place, here)?;
    let profile = site.store.profile(&site.forum, &args.name)?;
    show(&profile, &format!("{} has written no profile", args.name))
}

pub(super) fn charter(args: &Charter, here: &Here) -> Result<(), Error> {
    let mut site = Site::open(&args.place, here)?;
    if let Some(text) = &args.text {
        let text = talk::body(text)?;
        let now = jiff::Timestamp::now();
        site.store.set_charter(&site.forum, &text, now)?;
        return Ok(());
    }
    let charter = site.store.charter(&site.forum)?;
    show(
        &charter,
        &format!("the forum {} has no charter", site.forum),
    )
}

fn show(text: &str, none: &str) -> Result<(), Error> {
    let shown = match text.is_empty() {
        true => none.into(),
        false => clean::text(text),
    };
    writeln!(io::stdout(), "{shown}")?;
    Ok(())
}
