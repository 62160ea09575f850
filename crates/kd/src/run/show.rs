//! `kd show`: shows the messages of a thread, on a terminal as in live output, in a pipe as one Markdown document.

use super::here::Here;
use super::notices::tell_changed;
use crate::args::council::Show;
use crate::error::Error;
use crate::face::json;
use crate::face::thread::{self, ended};
use crate::render::style::{Styles, speaker};
use crate::render::wrap::{clip, wrap};
use crate::render::{clean, markdown};
use jiff::tz::TimeZone;
use kd_app::marks::Promised;
use kd_app::threads::{Thread, Whisper, whispers};
use kd_core::last_round::RoundKind;
use kd_core::message::settled;
use kd_core::{Message, SeatName, Status};
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

pub(super) fn run(args: &Show, here: &Here) -> Result<(), Error> {
    let (_, place) = kd_app::threads::find(here, args.id.as_deref())?;
    let thread = Thread::open(&place)?;
    let read = if args.all {
        thread.messages()?
    } else {
        kd_app::threads::newest(&thread, args.last as usize)?
    };
    for problem in &read.problems {
        let _ = writeln!(
            crate::out::error_lines(),
            "warning: {}",
            clean::line(&problem.to_string())
        );
    }
    let all = kd_app::threads::turns(&read.messages);
    let keep = if args.all {
        all.len()
    } else {
        all.len().min(args.last as usize)
    };
    let turns = &all[all.len() - keep..];
    let whispers = if args.council {
        whispers(&thread, turns)?
    } else {
        Vec::new()
    };
    let promised = promised(&thread, turns);
    let changed = kd_app::threads::changed(&thread, turns.iter().flat_map(|turn| turn.iter()));
    tell_changed(&changed);
    let mut out = crate::out::stdout().lock();
    if args.json {
        let messages: Vec<&Message> = turns.iter().flat_map(|t| t.iter()).collect();
        let lineage = thread.meta().lineage();
        let mut object = serde_json::json!({
            "v": kd_core::formats::SHOW.version,
            "thread_id": thread.id(),
            "members": thread.members(),
            "message_count": thread.count()?,
            "messages": messages,
        });
        if let Some(lineage) = lineage {
            object["fork"] = serde_json::json!(lineage);
        }
        if let Some(origin) = thread.meta().origin() {
            object["imported"] = serde_json::json!(origin);
        }
        if thread.meta().is_private() {
            object["private"] = serde_json::json!(true);
        }
        let forgotten = thread.meta().forgotten();
        if !forgotten.is_empty() {
            object["forgotten"] = serde_json::json!(forgotten);
        }
        if !changed.is_empty() {
            object["changed_messages"] = serde_json::json!(changed);
        }
        if !promised.is_empty() {
            object["promised_then"] = serde_json::json!(promised);
        }
        if args.council {
            object["council"] = whispers
                .iter()
                .map(|w| serde_json::json!({"after": w.after, "from": w.from, "to": w.to, "text": w.text}))
                .collect();
        }
        writeln!(out, "{}", json::text(&object, true)?)?;
        return Ok(());
    }
    let shown: usize = turns.iter().map(|t| t.len()).sum();
    let styles = here.out_styles();
    // Forced colors are for a pager, which shows what a terminal would.
    if !std::io::stdout().is_terminal() && !styles.color {
        let foot = [
            format!("thread {}", thread.id()),
            count(&thread, shown, args.all)?,
        ];
        let extras = thread::Extras {
            whispers: &whispers,
            promised: &promised,
            foot: &foot.into_iter().chain(origins(&thread)).collect::<Vec<_>>(),
            zone: TimeZone::system(),
        };
        out.write_all(thread::markdown(turns, &extras).as_bytes())?;
        out.flush()?;
        return Ok(());
    }
    let page = Page {
        members: &thread.members(),
        columns: here.columns(),
        styles,
        zone: TimeZone::system(),
    };
    let mut text = page.head(&thread, shown, args.all)?;
    for turn in turns {
        page.turn(turn, (&whispers, &promised), &mut text);
    }
    if args.council && whispers.is_empty() {
        let _ = writeln!(
            text,
            "{}",
            page.styles
                .dim("no members wrote to each other here (they do in `kd think`)")
        );
    }
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Returns the promises about the verdicts in these turns, from the marks of the person who asked. A log that cannot be
/// read, for example of a newer version, promises nothing: the messages are shown all the same.
fn promised(thread: &Thread, turns: &[&[Message]]) -> Vec<Promised> {
    let mut shown = turns.iter().flat_map(|turn| turn.iter());
    // Only a deliberation is worth reading the log.
    let is_deliberated = |m: &Message| m.is_king() && RoundKind::of(m) == RoundKind::Deliberation;
    if !shown.any(is_deliberated) {
        return Vec::new();
    }
    kd_app::marks::promised(thread).unwrap_or_default()
}

/// Describes how many messages of a thread are shown.
fn count(thread: &Thread, shown: usize, all: bool) -> Result<String, Error> {
    let count = thread.count()?;
    let whole = kd_app::words::count(count as u64, "message");
    Ok(match shown < count {
        false => whole,
        // The others cannot be read.
        true if all => format!("{shown} of {whole}"),
        true => format!("{shown} of {whole} (--all for the whole thread)"),
    })
}

/// Describes where a thread comes from, and whom it may ask.
fn origins(thread: &Thread) -> impl Iterator<Item = String> {
    let private = "private: asks only members on this machine";
    let origins = [
        (thread.meta().is_private()).then(|| private.to_owned()),
        (thread.meta().lineage()).map(|of| format!("fork of {}", super::fork::origin(&of))),
        (thread.meta().origin()).map(|of| super::seal::origin(&of)),
    ];
    origins.into_iter().flatten()
}

/// Formats messages for a page of some width.
struct Page<'a> {
    members: &'a [SeatName],
    columns: usize,
    styles: Styles,
    zone: TimeZone,
}

impl Page<'_> {
    fn head(&self, thread: &Thread, shown: usize, all: bool) -> Result<String, Error> {
        let said = count(thread, shown, all)?;
        let dot = self.styles.glyph("·", "-");
        let id = clean::line(&thread.id().0);
        let origins: String = origins(thread)
            .map(|line| self.styles.dim(&clip(&line, self.columns)) + "\n")
            .collect();
        Ok(format!(
            "{} {dot} {}\n{}\n",
            self.styles.bold(&id),
            self.styles.dim(&said),
            origins
        ))
    }

    fn turn(
        &self,
        turn: &[Message],
        (whispers, promised): (&[Whisper], &[Promised]),
        text: &mut String,
    ) {
        // A failure that another answer has replaced is history, which --json keeps.
        for message in settled(turn) {
            self.message(message, text);
            for promised in promised.iter().filter(|p| p.message == message.seq) {
                self.promise(promised, text);
            }
            for whisper in whispers.iter().filter(|w| w.after == message.seq) {
                self.whisper(whisper, text);
            }
        }
    }

    /// Formats what was promised about a verdict.
    fn promise(&self, promised: &Promised, text: &mut String) {
        let columns = self.columns.saturating_sub(3).min(100);
        for line in wrap(&promised.promise.words_then(), columns) {
            let _ = writeln!(text, "  {}", self.styles.dim(&line));
        }
        text.push('\n');
    }

    /// Formats a message between members.
    fn whisper(&self, whisper: &Whisper, text: &mut String) {
        let styles = self.styles;
        let head = format!("{} {} {}", whisper.from, styles.glyph("→", ">"), whisper.to);
        let _ = writeln!(text, "{}", styles.dim(&head));
        let columns = self.columns.saturating_sub(3).min(100);
        for line in markdown::render(&whisper.text, columns, styles) {
            let _ = writeln!(text, "{}", format!("  {line}").trim_end());
        }
        text.push('\n');
    }

    /// Formats a message as in live output: only its label starts at the first column.
    fn message(&self, message: &Message, text: &mut String) {
        let styles = self.styles;
        let name = clean::line(&message.from);
        let (mark, style) = if message.is_king() {
            (styles.glyph("♔", "K"), anstyle::Style::new().bold())
        } else {
            let members = self.members.iter().map(|member| member.as_str());
            let number = kd_core::looks::number(&message.from, members);
            (styles.mark(number), speaker(number))
        };
        let mut facts = vec![format!("#{}", message.seq)];
        facts.extend(thread::facts(message, &self.zone));
        let dot = format!(" {} ", styles.glyph("·", "-"));
        let facts = format!("{dot}{}", facts.join(&dot));
        let room = self
            .columns
            .saturating_sub(crate::render::wrap::width(&name) + 3);
        let facts = crate::render::wrap::clip(&facts, room);
        let _ = writeln!(
            text,
            "{}{}",
            styles.paint(style, &format!("{mark} {name}")),
            styles.dim(&facts)
        );
        let columns = self.columns.saturating_sub(3).min(100);
        for line in markdown::render(&message.shown(), columns, styles) {
            let _ = writeln!(text, "{}", format!("  {line}").trim_end());
        }
        if let Some(ended) = ended(message) {
            let glyph = match message.status {
                Some(Status::Timeout) => styles.glyph("⧖", "x"),
                Some(Status::Interrupted) => styles.glyph("⊘", "x"),
                _ => styles.glyph("✗", "x"),
            };
            for line in wrap(&format!("{glyph} {ended}"), columns) {
                let _ = writeln!(text, "  {}", styles.bad(&line));
            }
        }
        text.push('\n');
    }
}
