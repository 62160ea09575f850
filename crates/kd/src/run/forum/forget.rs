//! `kd forum forget`: shows what repeats a post, asks, and erases it. Only a person at the command can.

use super::super::agreed::agreed;
use super::super::here::Here;
use super::open;
use crate::args::forum::ForgetPosts;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use jiff::Timestamp;
use kd_app::forum::Site;
use kd_core::names::KING;
use kd_sql::forum::{self, Erased, Place, Posts, SERVER_KEEPS};
use kd_store::forget::{Found, Pieces};
use serde_json::{Value, json as object};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

pub(super) fn run(args: &ForgetPosts, here: &Here) -> Result<Exit, Error> {
    let mut site = open(&args.place, here)?;
    let pieces = pieces(&mut site, &args.posts)?;
    let found = erase(&mut site, args, &pieces, true)?;
    if !args.json {
        show(&site, &found)?;
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
        erase(&mut site, args, &pieces, false)?;
    }
    let mut out = crate::out::stdout().lock();
    if args.json {
        writeln!(out, "{}", json::text(&as_json(args, &site, &found), true)?)?;
    } else if !args.dry_run && !is_nothing {
        writeln!(out, "forgotten: {}", named(&args.posts))?;
    }
    Ok(Exit::Done)
}

/// What was found of the posts.
struct Looked {
    done: Erased,
    removed: Vec<Found>,
}

/// Returns what identifies the texts of the posts, and the titles of the threads that they open.
fn pieces(site: &mut Site, posts: &[i64]) -> Result<Pieces, Error> {
    let mut pieces = Pieces::default();
    for id in posts {
        let post = site.store.post(*id)?;
        pieces.add(&post.body);
        let (thread, opening) = site.store.thread(post.thread_id, 0, 1)?;
        if opening.first().is_some_and(|first| first.id == *id) {
            pieces.add(&thread.title);
        }
    }
    Ok(pieces)
}

fn erase(site: &mut Site, args: &ForgetPosts, pieces: &Pieces, dry: bool) -> Result<Looked, Error> {
    let repeats = |text: &str| pieces.are_quoted_in(text);
    let posts = Posts::These(&site.forum, &args.posts);
    // The posts last: without their text a repeated command would not find the lines of the log.
    let lines = forum::forget_log(&site.logs, &repeats, dry)?;
    let done = site
        .store
        .erase(posts, &repeats, KING, Timestamp::now(), dry)?;
    let path = PathBuf::from(site.store.place().shown());
    let mut removed = forum::erased(&done, &path);
    removed.extend(lines);
    Ok(Looked { done, removed })
}

fn named(posts: &[i64]) -> String {
    match posts {
        [one] => format!("post {one}"),
        many => format!("posts {}", forum::numbers(many)),
    }
}

fn keeps(site: &Site) -> Option<&'static str> {
    matches!(site.store.place(), Place::Server(_)).then_some(SERVER_KEEPS)
}

fn show(site: &Site, found: &Looked) -> Result<(), Error> {
    let mut out = crate::out::stdout().lock();
    if found.removed.is_empty() {
        writeln!(out, "nothing is left of it")?;
    }
    for one in &found.removed {
        let at = clean::line(&one.path.display().to_string());
        writeln!(out, "- {}: {at}", one.what)?;
    }
    for post in &found.done.quotes {
        writeln!(out, "post {post} repeats it: kd forum forget {post}")?;
    }
    if let Some(line) = keeps(site) {
        writeln!(out, "not removed: {line}")?;
    }
    Ok(())
}

fn as_json(args: &ForgetPosts, site: &Site, found: &Looked) -> Value {
    object!({
        "v": kd_core::formats::FORUM_FORGET.version,
        "dry_run": args.dry_run,
        "forum": site.forum,
        "posts": found.done.posts,
        "texts": found.done.texts,
        "removed": found.removed,
        "quotes": found.done.quotes,
        "not_removed": keeps(site),
    })
}
