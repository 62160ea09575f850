//! `kd forum forget`: shows what repeats a post, asks, and erases it. Only a person at the command can.

use super::super::agreed::agreed;
use super::super::here::Here;
use super::open;
use crate::args::forum::ForgetPosts;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use kd_app::forum::Site;
use kd_app::forum::forget::{FoundPosts, numbers};
use serde_json::{Value, json as object};
use std::io::{self, IsTerminal, Write};

pub(super) fn run(args: &ForgetPosts, here: &Here) -> Result<Exit, Error> {
    let mut site = open(&args.place, here)?;
    let texts = site.texts_of(&args.posts)?;
    let found = site.erase(&args.posts, &texts, true)?;
    if !args.json {
        show(args, &site, &found)?;
    }
    let is_nothing = found.removed.is_empty();
    if !args.dry_run && !args.yes && !is_nothing {
        if !io::stdin().is_terminal() || args.json {
            return Err(Error::usage(
                "nothing was erased: there is no terminal to ask for confirmation",
            )
            .next("`--yes` erases what is listed, `--dry-run` only lists it"));
        }
        if !agreed(&format!("Erase {}?", named(&args.posts)))? {
            writeln!(crate::out::stderr(), "nothing was erased")?;
            return Ok(Exit::Interrupted);
        }
    }
    if !args.dry_run {
        site.erase(&args.posts, &texts, false)?;
    }
    let mut out = crate::out::stdout().lock();
    if args.json {
        writeln!(out, "{}", json::text(&as_json(args, &site, &found), true)?)?;
    } else if !args.dry_run && !is_nothing {
        writeln!(out, "forgotten: {}", named(&args.posts))?;
    }
    Ok(Exit::Done)
}

fn named(posts: &[i64]) -> String {
    match posts {
        [one] => format!("post {one}"),
        many => format!("posts {}", numbers(many)),
    }
}

fn show(args: &ForgetPosts, site: &Site, found: &FoundPosts) -> Result<(), Error> {
    let mut out = crate::out::stdout().lock();
    if found.removed.is_empty() {
        let (which, is, its) = match args.posts.as_slice() {
            [_] => (named(&args.posts), "is", "its"),
            _ => (named(&args.posts), "are", "their"),
        };
        writeln!(
            out,
            "{which} {is} erased already; without {its} text kd cannot find posts that repeat it: search for the words"
        )?;
    }
    for one in &found.removed {
        let at = clean::line(&one.path.display().to_string());
        writeln!(out, "- {}: {at}", one.what)?;
    }
    for post in &found.done.quotes {
        writeln!(out, "post {post} repeats it: kd forum forget {post}")?;
    }
    if let Some(line) = site.keeps() {
        writeln!(out, "not removed: {line}")?;
    }
    Ok(())
}

fn as_json(args: &ForgetPosts, site: &Site, found: &FoundPosts) -> Value {
    object!({
        "v": kd_core::formats::FORUM_FORGET.version,
        "dry_run": args.dry_run,
        "forum": site.forum,
        "posts": found.done.posts,
        "texts": found.done.texts,
        "removed": found.removed,
        "quotes": found.done.quotes,
        "not_removed": site.keeps(),
    })
}
