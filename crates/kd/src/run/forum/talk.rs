//! Users in the forum: post, reply, read, search, follow; exporting and importing the store.

use super::super::here::Here;
use super::{lines, open, open_any, open_to_create, open_to_write};
use crate::args::forum::{Export, Import, KeepSecrets, Log, Post, Read, Reply, Search, Watch};
use crate::error::Error;
use crate::render::clean;
use jiff::tz::TimeZone;
use kd_app::forum::{Governance, Repeat, Site};
use kd_app::infile;
use kd_app::{ErrorKind, UserError};
use kd_core::clean::clean_line;
use kd_forum::order::Target;
use kd_forum::words::{self, SearchIn};
use serde_json::{Value, json};
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::Path;
use std::time::Duration;

/// Interval between reads of `follow`: posts arrive every few seconds at most.
const LOOK: Duration = Duration::from_millis(300);
/// Default number of threads listed.
const THREADS: i64 = 200;
/// Default number of lines of the log printed for people.
const LOG: i64 = 50;
/// Default number of posts printed.
const POSTS: i64 = 100_000;

/// Notes that a list continues. On stderr, so that programs reading the list do not take it for an item.
fn shown_of(shown: usize, all: i64, what: &str, more: &str) -> io::Result<()> {
    match i64::try_from(shown).unwrap_or(i64::MAX) < all {
        true => writeln!(
            crate::out::stderr(),
            "{shown} of {all} {what} are shown; {more}"
        ),
        false => Ok(()),
    }
}

/// Returns the text, or stdin for `-`, within the limits that also apply to agents.
pub(super) fn body(text: &str) -> Result<String, Error> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut read = String::new();
    io::stdin()
        .lock()
        .take(1 << 20)
        .read_to_string(&mut read)
        .map_err(|e| Error::usage("stdin could not be read as text").because(e))?;
    Ok(read)
}

/// Masks the secrets of a text that is to be stored, and reports them. `keep` is the option that keeps them, if the
/// command has it.
pub(super) fn masked(
    site: &Site,
    text: &str,
    keep: Option<&KeepSecrets>,
    here: &Here,
) -> io::Result<String> {
    let allow = keep.is_some_and(|keep| keep.allow_secrets);
    let mut text = text.to_owned();
    let masked = kd_app::secrets::of(&site.config, allow, here).mask_in_place(&mut text);
    match (masked.summary(), keep) {
        (Some(summary), None) => writeln!(crate::out::stderr(), "{summary}")?,
        (summary, _) => tell_masked(&json!({ "masked": summary }))?,
    }
    Ok(text)
}

/// Reports the secrets that were masked before a text was stored.
pub(super) fn tell_masked(answer: &Value) -> io::Result<()> {
    match answer["masked"].as_str() {
        Some(masked) => writeln!(
            crate::out::stderr(),
            "{masked}; --allow-secrets keeps secrets"
        ),
        None => Ok(()),
    }
}

pub(super) fn post(args: &Post, here: &Here) -> Result<(), Error> {
    let body = body(&args.body)?;
    let mut site = open_to_create(&args.place, &args.secrets, here)?;
    let answer = site.act(
        &args.author,
        "create_thread",
        &json!({"title": args.title, "body": body}),
    )?;
    tell_masked(&answer)?;
    writeln!(crate::out::stdout(), "thread {}", answer["thread_id"])?;
    Ok(())
}

pub(super) fn reply(args: &Reply, here: &Here) -> Result<(), Error> {
    let body = body(&args.body)?;
    let mut site = open_to_write(&args.place, &args.secrets, here)?;
    let arguments = json!({"thread_id": args.thread, "body": body, "quote_post_id": args.quote});
    let answer = site.act(&args.author, "reply_to_thread", &arguments)?;
    tell_masked(&answer)?;
    writeln!(
        crate::out::stdout(),
        "post {} in thread {}",
        answer["post_id"],
        args.thread
    )?;
    Ok(())
}

pub(super) fn read(args: &Read, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let mut out = crate::out::lines(args.json);
    let Some(id) = args.thread else {
        let threads = site
            .store
            .threads(&site.forum, args.limit.unwrap_or(THREADS))?;
        let (all, _) = site.store.counts(&site.forum)?;
        if args.json {
            writeln!(
                out,
                "{}",
                serde_json::to_string(&threads).unwrap_or_default()
            )?;
        } else if threads.is_empty() {
            writeln!(
                out,
                "no threads yet: kd forum post \"A title\" \"Some words\""
            )?;
        }
        for thread in threads.iter().filter(|_| !args.json) {
            let posts = if thread.post_count == 1 {
                "1 post".to_owned()
            } else {
                format!("{} posts", thread.post_count)
            };
            writeln!(
                out,
                "{:>5}  {}  by {} · {posts} · last {} {}{}",
                thread.id,
                clean::text(&thread.title),
                thread.author,
                thread.last_author,
                thread.updated_at.strftime("%Y-%m-%d %H:%M"),
                marks(thread)
            )?;
        }
        out.flush()?;
        shown_of(
            threads.len(),
            all,
            "threads",
            &format!("`kd forum read -n {all}` lists all"),
        )?;
        return Ok(());
    };
    let limit = args.limit.unwrap_or(POSTS);
    let (thread, posts) = site.store.thread(id, 0, limit)?;
    if thread.forum != site.forum {
        let is_in = clean::line(&thread.forum);
        let none = format!("there is no thread {id} in the forum {}", site.forum);
        let next = format!("it is in the forum {is_in}: kd forum read {id} --forum {is_in}");
        return Err(UserError::new(ErrorKind::ForumRefused, none)
            .next(next)
            .into());
    }
    let gone = posts
        .iter()
        .filter(|post| post.deleted_at.is_some())
        .count();
    let more = || {
        let shown = posts.len() - gone;
        shown_of(
            shown,
            thread.post_count,
            "posts",
            &format!("`kd forum read {id} -n N` prints more"),
        )
    };
    if args.json {
        writeln!(
            out,
            "{}",
            json!({"v": kd_core::formats::FORUM_THREAD.version, "thread": thread, "posts": posts})
        )?;
        out.flush()?;
        return Ok(more()?);
    }
    writeln!(out, "{}\n", clean::text(&thread.title))?;
    if thread.hidden_at.is_some() {
        writeln!(
            out,
            "hidden from agents{}\n",
            lines::why(&mut site, &Target::Post(posts.first().map_or(0, |p| p.id)))
        )?;
    }
    if thread.closed_at.is_some() {
        writeln!(
            out,
            "closed{}\n",
            lines::why(&mut site, &Target::Thread(id))
        )?;
    }
    for post in &posts {
        let hidden = post
            .hidden_at
            .map(|_| lines::why(&mut site, &Target::Post(post.id)));
        show(post, hidden.as_deref(), args.hidden, &mut out)?;
    }
    out.flush()?;
    Ok(more()?)
}

/// Returns the marks shown after a thread's line in a list.
fn marks(thread: &words::Thread) -> &'static str {
    match (thread.hidden_at.is_some(), thread.closed_at.is_some()) {
        (true, true) => " · hidden, closed",
        (true, false) => " · hidden",
        (false, true) => " · closed",
        (false, false) => "",
    }
}

/// Prints a post. Its content can start neither an escape sequence nor a line that looks like another post's head: its
/// lines are indented.
fn show(
    post: &words::Post,
    hidden: Option<&str>,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let edited = if post.edited_at.is_some() {
        " (edited)"
    } else {
        ""
    };
    writeln!(
        out,
        "#{} {} · {}{edited}",
        post.id,
        post.author,
        post.created_at.strftime("%Y-%m-%d %H:%M")
    )?;
    if let Some(why) = hidden {
        writeln!(out, "  (hidden{why})")?;
        if !all {
            return writeln!(out);
        }
    }
    if let (Some(id), Some(author)) = (post.quote_post_id, &post.quoted_author) {
        let quoted = post
            .quoted_post_body
            .as_deref()
            .unwrap_or("(deleted or hidden)");
        writeln!(
            out,
            "  > #{id} {author}: {}",
            clean::text(quoted).lines().next().unwrap_or_default()
        )?;
    }
    if post.erased_at.is_some() {
        writeln!(out, "  (erased)")?;
    } else if post.deleted_at.is_some() {
        writeln!(out, "  (deleted)")?;
    }
    clean::text(&post.body)
        .lines()
        .try_for_each(|line| writeln!(out, "  {line}"))?;
    writeln!(out)
}

pub(super) fn search(args: &Search, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let place = SearchIn::parse(&args.search_in).unwrap_or_default();
    let hits = site
        .store
        .search(&site.forum, &args.words.join(" "), place, args.limit)?;
    let mut hidden = Vec::with_capacity(hits.len());
    for hit in &hits {
        hidden.push(site.store.post(hit.post_id)?.hidden_at);
    }
    let mut out = crate::out::lines(args.json);
    if args.json {
        let mut all = serde_json::to_value(&hits).unwrap_or_default();
        for (hit, at) in all.as_array_mut().into_iter().flatten().zip(&hidden) {
            if let Some(at) = at {
                hit["hidden_at"] = at.to_string().into();
            }
        }
        writeln!(out, "{all}")?;
    } else if hits.is_empty() {
        writeln!(out, "nothing found")?;
    }
    for (hit, hidden) in hits.iter().zip(&hidden).filter(|_| !args.json) {
        let excerpt = clean::text(&hit.excerpt);
        let line = match hidden {
            // As in the thread: moderators see a hidden text when they ask for it.
            Some(_) => format!("(hidden; kd forum read {} --hidden)", hit.thread.id),
            None => excerpt.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        writeln!(
            out,
            "{:>5}  {} · #{} {}: {line}",
            hit.thread.id,
            clean::text(&hit.thread.title),
            hit.post_id,
            hit.author
        )?;
    }
    out.flush()?;
    if hits.len() as i64 == args.limit {
        writeln!(
            crate::out::stderr(),
            "only the newest {} are shown; -n {} shows more",
            hits.len(),
            hits.len() * 10
        )?;
    }
    Ok(())
}

pub(super) fn log(args: &Log, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let zone = TimeZone::system();
    let mut out = crate::out::lines(args.jsonl);
    let limit = match (args.lines, args.jsonl) {
        (Some(lines), _) => lines,
        (None, false) => LOG,
        (None, true) => i64::MAX,
    };
    let lines = site.store.log_tail(&site.forum, limit)?;
    for line in &lines {
        match args.jsonl {
            true => writeln!(out, "{}", serde_json::to_string(line).unwrap_or_default())?,
            false => writeln!(out, "{}", clean::text(&line.text(&zone)))?,
        }
    }
    out.flush()?;
    let all = site.store.log_count(&site.forum)?;
    Ok(shown_of(
        lines.len(),
        all,
        "lines",
        &format!("`kd forum log -n {all}` prints all"),
    )?)
}

pub(super) fn watch(args: &Watch, here: &Here) -> Result<(), Error> {
    let mut site = open(&args.place, here)?;
    let mut logged = site.store.log_end(&site.forum)?;
    let mut seen = site
        .store
        .threads(&site.forum, 1)?
        .first()
        .map_or(0, |t| t.last_post_id);
    let zone = TimeZone::system();
    let mut out = crate::out::stdout();
    loop {
        for post in site.store.posts_after(&site.forum, seen, 500)? {
            seen = post.id;
            match args.jsonl {
                true => writeln!(out, "{}", serde_json::to_string(&post).unwrap_or_default())?,
                false => {
                    writeln!(out, "thread {}", post.thread_id)?;
                    show(&post, post.hidden_at.map(|_| ""), false, &mut out)?;
                }
            }
        }
        for (number, line) in site.store.log_after(&site.forum, logged, 500)? {
            logged = number;
            match args.jsonl {
                true => writeln!(out, "{}", serde_json::to_string(&line).unwrap_or_default())?,
                false => writeln!(out, "{}", clean::text(&line.text(&zone)))?,
            }
        }
        out.flush()?;
        std::thread::sleep(LOOK);
    }
}

pub(super) fn export(args: &Export, here: &Here) -> Result<(), Error> {
    let mut site = open_any(&args.place, here)?;
    if args.file == Path::new("-") {
        let mut out = Failing {
            inner: io::BufWriter::new(crate::out::stdout().lock()),
            error: None,
        };
        let done = site.store.export(&mut out);
        // A closed pipe is no fault of the store.
        if let Some(error) = out.error {
            return Err(error.into());
        }
        done?;
        return Ok(out.inner.flush()?);
    }
    kd_app::outfile::check_lines(&args.file, "kd forum export")?;
    let folder = args.file.parent().filter(|p| !p.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let none = format!("there is no folder {}", folder.display());
        return Err(Error::usage(none).next("kd forum export FILE, in a folder that exists"));
    }
    let is_replaced = args.file.exists();
    let mut lines = Vec::new();
    let count = site.store.export(&mut lines)?;
    // It has hidden posts, notes and the log.
    kd_app::outfile::write_private(&args.file, &lines, here)?;
    let replaced = if is_replaced { ", replaced" } else { "" };
    writeln!(
        crate::out::stderr(),
        "{count} lines in {}{replaced}",
        args.file.display()
    )?;
    Ok(())
}

/// Writes, and keeps the error.
struct Failing<W> {
    inner: W,
    error: Option<io::Error>,
}

impl<W: Write> Write for Failing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.inner.write(bytes);
        done.map_err(|error| {
            let kind = error.kind();
            self.error = Some(error);
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

pub(super) fn import(args: &Import, here: &Here) -> Result<(), Error> {
    let mut site = open_any(&args.place, here)?;
    let unread = |e| Error::usage(format!("{} cannot be read", args.file.display())).because(e);
    let governance = match args.settings {
        true => Governance::InForce,
        false => Governance::Closed,
    };
    let file = infile::open(&args.file).map_err(unread)?;
    let repeat = match args.again {
        true => Repeat::Allowed,
        false => Repeat::Refused,
    };
    let mut file = BufReader::new(file);
    if file.fill_buf().map_err(unread)?.is_empty() {
        let empty = format!("{} is empty, and no export of a forum", args.file.display());
        return Err(
            Error::usage(empty).next("kd forum import FILE, written by `kd forum export FILE`")
        );
    }
    let done = site.store.import(&mut file, governance, repeat)?;
    writeln!(
        crate::out::stdout(),
        "{} threads, {} posts, {} other lines",
        done.threads,
        done.posts,
        done.others
    )?;
    if !done.left_out.is_empty() {
        writeln!(
            crate::out::stderr(),
            "left out: {}; `--settings` imports all of it, if the file is your own",
            done.left_out
                .iter()
                .map(|what| clean_line(what, 80))
                .collect::<Vec<_>>()
                .join(", ")
        )?;
    }
    Ok(())
}
