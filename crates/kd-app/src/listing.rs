//! Lists the threads of a branch, newest first, in pages, and searches them for words.

use crate::env::Env;
use crate::error::UserError;
use crate::host::{Listed, Listing};
use crate::threads;
use kd_core::Timestamp;
use kd_core::clean::clean_line;
use kd_store::Thread;

/// Maximum characters of a topic: the beginning of the first question.
const TOPIC_CHARS: usize = 80;
/// Characters before words that were found.
const FOUND_BEFORE: usize = 24;

/// Returns the threads that are wanted, newest first, and whether there are more. Reads messages only of those.
///
/// # Errors
/// If a thread cannot be read.
pub(crate) fn list(env: &Env, wanted: &Listing) -> Result<(Vec<Listed>, bool), UserError> {
    let Some(layout) = env.find_layout()? else {
        return Ok((Vec::new(), false));
    };
    let mut all = Vec::new();
    // A client has no use for the note.
    let mut left_out = threads::LeftOut::default();
    for place in layout.threads()? {
        let Some(thread) = left_out.open(&place)? else {
            continue;
        };
        let opened = match thread.meta().created() {
            Some(at) => Some(at),
            None => thread.head(1)?.messages.first().map(|first| first.at),
        };
        all.push((opened, thread));
    }
    all.sort_by(|(a, x), (b, y)| (b, &y.id().0).cmp(&(a, &x.id().0)));
    let words = wanted.words.trim().to_lowercase();
    let (mut listed, mut passed) = (Vec::new(), 0);
    for (opened, thread) in all {
        let found = match words.as_str() {
            "" => None,
            words => match found_in(&thread, words)? {
                None => continue,
                found => found,
            },
        };
        passed += 1;
        if passed <= wanted.skip {
            continue;
        }
        if listed.len() == wanted.most {
            return Ok((listed, true));
        }
        listed.push(listed_of(&thread, opened, found)?);
    }
    Ok((listed, false))
}

/// Describes a thread in a listing.
fn listed_of(
    thread: &Thread,
    opened: Option<Timestamp>,
    found: Option<(u32, String)>,
) -> Result<Listed, UserError> {
    let head = thread.head(1)?.messages;
    let lines = head.first().into_iter().flat_map(|m| m.body.lines());
    let topic = lines.into_iter().find(|line| !line.trim().is_empty());
    let lineage = thread.meta().lineage();
    Ok(Listed {
        id: thread.id().0.clone(),
        topic: clean_line(topic.unwrap_or_default(), TOPIC_CHARS),
        messages: thread.count()?,
        fork: lineage.map(|from| (from.of.0.clone(), from.words())),
        opened,
        updated: thread.tail(1)?.messages.last().map(|last| last.at),
        found,
    })
}

/// Returns the newest message of a thread that contains words, given in lower case: its number, and the words with
/// the text around them.
fn found_in(thread: &Thread, words: &str) -> Result<Option<(u32, String)>, UserError> {
    let messages = thread.messages()?.messages;
    Ok(messages.iter().rev().find_map(|message| {
        let mut lines = message.body.lines();
        let line = lines.find(|line| line.to_lowercase().contains(words))?;
        // Letters may have another length in lower case: what is before is counted in characters.
        let before = line.to_lowercase().split(words).next()?.chars().count();
        let from = before.saturating_sub(FOUND_BEFORE);
        let mut shown: String = line.chars().skip(from).collect();
        if from > 0 {
            shown.insert(0, '…');
        }
        Some((message.seq, clean_line(&shown, TOPIC_CHARS)))
    }))
}
