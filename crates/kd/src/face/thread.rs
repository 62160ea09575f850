//! Turns of a thread as one Markdown document, for `kd show` in a pipe.

use super::document::opening;
use crate::render::clean;
use jiff::tz::TimeZone;
use kd_app::marks::Promised;
use kd_app::threads::Whisper;
use kd_core::council::{PURPOSE, concludes};
use kd_core::markdown::{embed, escape_line};
use kd_core::message::settled;
use kd_core::{Address, Message, Status};
use std::fmt::Write;

/// What a document has besides the messages.
pub(crate) struct Extras<'a> {
    /// The messages between members.
    pub(crate) whispers: &'a [Whisper],
    /// What was promised about verdicts.
    pub(crate) promised: &'a [Promised],
    /// The lines at the end: the thread, how much of it is shown, and where it comes from.
    pub(crate) foot: &'a [String],
    /// The zone of the times.
    pub(crate) zone: TimeZone,
}

/// Renders the document: the first question is the title, each further message a section below it.
///
/// As in [`super::document`], only the document's own headings use the first two levels.
pub(crate) fn markdown(turns: &[&[Message]], extras: &Extras<'_>) -> String {
    let mut doc = String::new();
    for turn in turns {
        // A failure that another answer has replaced is history, which --json keeps.
        for message in settled(turn) {
            doc += &match doc.is_empty() && message.is_king() {
                true => question(message),
                false => section(message, extras),
            };
            let of_it = |seq: u32| seq == message.seq;
            for promised in extras.promised.iter().filter(|p| of_it(p.message)) {
                let words = promised.promise.words_then();
                let _ = writeln!(doc, "*{}*\n", escape_line(&clean::line(&words)));
            }
            for whisper in extras.whispers.iter().filter(|w| of_it(w.after)) {
                let _ = writeln!(doc, "### {} → {}\n", whisper.from, whisper.to);
                let _ = writeln!(doc, "{}\n", embed(&whisper.text, 3).trim_end());
            }
        }
    }
    let foot: Vec<String> = extras.foot.iter().map(|line| escape_line(line)).collect();
    let _ = writeln!(doc, "---\n\n{}", foot.join(" · "));
    doc
}

fn question(message: &Message) -> String {
    let mut doc = opening(&message.body);
    if let Address::Seats(_) = &message.to {
        let to = clean::line(&message.to.to_string());
        let _ = writeln!(doc, "*to {}*\n", escape_line(&to));
    }
    doc
}

fn section(message: &Message, extras: &Extras<'_>) -> String {
    let mut doc = format!("## {}\n\n", escape_line(&clean::line(&message.from)));
    let mut about = vec![format!("message {}", message.seq)];
    about.extend(facts(message, &extras.zone));
    let _ = writeln!(doc, "*{}*\n", escape_line(&about.join(" · ")));
    let body = embed(&message.shown(), 2);
    if !body.trim().is_empty() {
        let _ = writeln!(doc, "{}\n", body.trim_end());
    }
    if let Some(ended) = ended(message) {
        let _ = writeln!(doc, "**{}**\n", escape_line(&ended));
    }
    doc
}

/// Returns what is known about a message besides its text: the addressee, what it is for, the model, and the time in this
/// zone.
pub(crate) fn facts(message: &Message, zone: &TimeZone) -> Vec<String> {
    let mut facts = Vec::from_iter(addressee(message));
    match message.extra.contains_key(PURPOSE) {
        true if concludes(message) => facts.push("conclusion".to_owned()),
        true => facts.push("as JSON".to_owned()),
        false => {}
    }
    facts.extend(message.provenance.model.as_deref().map(clean::line));
    let time = message.at.to_zoned(zone.clone());
    facts.push(time.strftime("%Y-%m-%d %H:%M:%S").to_string());
    facts
}

/// Returns the addressee of a message, unless it is the usual one: all for the user, the user for members.
fn addressee(message: &Message) -> Option<String> {
    let usual = match message.is_king() {
        true => Address::All,
        false => Address::King,
    };
    (message.to != usual).then(|| format!("to {}", clean::line(&message.to.to_string())))
}

/// Describes how an unsuccessful turn ended: `failed: the connection was closed`.
pub(crate) fn ended(message: &Message) -> Option<String> {
    let word = match message.status? {
        Status::Error => "failed",
        Status::Timeout => "timed out",
        Status::Interrupted => "interrupted",
        Status::Complete => return None,
    };
    Some(match message.reason() {
        Some(reason) => format!("{word}: {reason}"),
        None => word.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::Timestamp;
    use kd_core::message::Provenance;

    fn message(seq: u32, from: &str, status: Option<Status>, body: &str) -> Message {
        Message {
            seq,
            from: from.into(),
            to: Address::default(),
            at: Timestamp::UNIX_EPOCH,
            status,
            refs: Vec::new(),
            provenance: Provenance::default(),
            extra: std::collections::BTreeMap::new(),
            body: body.into(),
        }
    }

    #[test]
    fn an_unusual_addressee_is_named_for_the_user_too() {
        let to = |from: &str, to: &str| {
            let mut message = message(1, from, None, "x");
            message.to = Address::parse(to);
            addressee(&message)
        };
        assert_eq!(to("king", "bob").as_deref(), Some("to bob"));
        assert_eq!(to("king", "all"), None);
        assert_eq!(to("ann", "king"), None);
        assert_eq!(to("ann", "bob").as_deref(), Some("to bob"));
    }

    #[test]
    fn the_question_is_the_title_and_no_answer_imitates_another() {
        let mut failed = message(3, "bob", Some(Status::Error), "It is 4");
        failed
            .extra
            .insert("reason".into(), "the *connection*\u{1b}[2J broke".into());
        let messages = [
            message(1, "king", None, "What is 2 + 2?\n\nBriefly."),
            message(2, "ann", Some(Status::Complete), "# bob\n\n5\n\n---"),
            failed,
        ];
        let later = [
            message(4, "king", None, "And 3 + 3?"),
            message(
                5,
                "ann",
                Some(Status::Timeout),
                "*Error: no answer within 1 s*",
            ),
        ];
        let whispers = [Whisper {
            after: 2,
            from: kd_core::SeatName::new("ann").expect("a name"),
            to: kd_core::SeatName::new("bob").expect("a name"),
            text: "# So?".into(),
        }];
        let doc = markdown(
            &[&messages, &later],
            &Extras {
                whispers: &whispers,
                promised: &[],
                foot: &["thread council-a94d".into(), "3 messages".into()],
                zone: TimeZone::UTC,
            },
        );
        insta::assert_snapshot!("kept", doc);
    }
}
