//! Who said what: the user's message, then the answers side by side, and conclusions at full width.

use crate::Turn;
use crate::facts::{Facts, plain};
use crate::{markdown, quoted};
use kd_core::deliberation::COUNCIL;
use kd_core::event::Purpose;
use kd_core::last_round::RoundKind;
use kd_core::message::{Address, Message, Status};
use maud::{Markup, html};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A part of a thread's page that can replace its former state, found by ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The ID of its element: a section's, or of a round `r` and the number of its first message.
    pub id: String,
    /// The element.
    pub html: String,
    /// The Markdown of its messages, by anchor.
    pub words: Vec<(String, String)>,
}

/// A message of the user and the messages that follow it.
#[derive(Default)]
pub(crate) struct Round<'a> {
    /// The number of its first message.
    pub(crate) first: u32,
    says: Option<&'a Message>,
    /// The answers, one per member, shown side by side.
    answers: Vec<&'a Message>,
    /// Later messages, one below the other.
    after: Vec<&'a Message>,
}

pub(crate) fn body(facts: &Facts<'_>) -> Markup {
    html! {
        @for round in rounds(facts) { (self::round(facts, &round)) }
        @if facts.shown.is_empty() { p.faint { "No messages yet." } }
    }
}

/// Renders a round as a part of the page.
pub(crate) fn part(facts: &Facts<'_>, round: &Round<'_>) -> Part {
    let words = |message: &Message| (facts.anchor(message.seq), plain(&message.body));
    Part {
        id: facts.round(round.first),
        html: self::round(facts, round).into_string(),
        words: round.messages().map(words).collect(),
    }
}

/// Returns a digest of everything that [`part`] renders, which takes a small part of the time.
pub(crate) fn print(facts: &Facts<'_>, round: &Round<'_>) -> u64 {
    let mut digest = DefaultHasher::new();
    round.answers.len().hash(&mut digest);
    for message in round.messages() {
        (message.seq, &message.from, facts.color(&message.from)).hash(&mut digest);
        (addressed(message), concludes(facts, message)).hash(&mut digest);
        is_verdict(facts, message).hash(&mut digest);
        message.status.map(Status::as_str).hash(&mut digest);
        message.reason().hash(&mut digest);
        message.cut_mark().hash(&mut digest);
        turn_facts(message, facts.turns.get(&message.seq)).hash(&mut digest);
        message.body.hash(&mut digest);
        for (range, address) in facts.passages(message.seq) {
            (range.start, range.end, address).hash(&mut digest);
        }
    }
    round.kind().command().hash(&mut digest);
    digest.finish()
}

fn round(facts: &Facts<'_>, round: &Round<'_>) -> Markup {
    let kind = round.kind();
    html! {
        div.round id=(facts.round(round.first)) {
            @if let Some(message) = round.says { (self::message(facts, message, kind)) }
            @if !round.answers.is_empty() {
                div.answers data-answers=(round.answers.len()) {
                    @for answer in &round.answers { (self::message(facts, answer, kind)) }
                }
            }
            @for message in &round.after { (self::message(facts, message, kind)) }
        }
    }
}

impl<'a> Round<'a> {
    /// Returns how its question is answered.
    fn kind(&self) -> RoundKind {
        self.says.map(RoundKind::of).unwrap_or_default()
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = &'a Message> {
        let says = self.says.into_iter();
        let answers = self.answers.iter().copied();
        says.chain(answers).chain(self.after.iter().copied())
    }
}

/// Splits a thread at the messages of the user.
pub(crate) fn rounds<'a>(facts: &Facts<'a>) -> Vec<Round<'a>> {
    let mut rounds: Vec<Round<'a>> = Vec::new();
    let mut heard: BTreeSet<&str> = BTreeSet::new();
    for message in &facts.shown {
        let asks = message.is_question(facts.shown.iter().copied());
        if asks || rounds.is_empty() {
            rounds.push(Round {
                first: message.seq,
                ..Round::default()
            });
            heard.clear();
        }
        let Some(round) = rounds.last_mut() else {
            continue;
        };
        if asks {
            round.says = Some(message);
        } else if message.is_king()
            || concludes(facts, message)
            || !round.after.is_empty()
            || !heard.insert(&message.from)
        {
            round.after.push(message);
        } else {
            round.answers.push(message);
        }
    }
    rounds
}

fn concludes(facts: &Facts<'_>, message: &Message) -> bool {
    let asked = facts.turns.get(&message.seq).and_then(|turn| turn.purpose);
    message.from == COUNCIL
        || asked == Some(Purpose::Conclude)
        || message
            .extra
            .get("purpose")
            .is_some_and(|p| p == "conclude")
}

/// Returns whether it is the verdict that the top of the page shows.
fn is_verdict(facts: &Facts<'_>, message: &Message) -> bool {
    let verdict = facts.verdict().and_then(|verdict| verdict.message);
    verdict == Some(message.seq)
}

/// Renders a message as a card. Its number is its anchor in the page. `kind` is that of its round.
fn message(facts: &Facts<'_>, message: &Message, kind: RoundKind) -> Markup {
    // A program asked, whose tools one member uses.
    let acting = kind == RoundKind::Acting;
    let king = message.is_king();
    let body = message.shown();
    let quotes = king.then(|| quoted::first_name(&body)).flatten();
    let (color, _) = facts.color(&message.from);
    let class = match king {
        true => "king".to_owned(),
        false if concludes(facts, message) => format!("says concludes {color}"),
        false => format!("says {color}"),
    };
    let trouble = message.status.filter(|s| *s != Status::Complete);
    // In other rounds no member is asked alone.
    let retries = trouble.is_some() && kind == RoundKind::Council;
    html! {
        article.(class) id=(facts.anchor(message.seq)) data-seq=(message.seq)
            data-from=[(!king).then(|| plain(&message.from))] data-status=[message.status.map(Status::as_str)]
            data-retry[retries] tabindex="-1" {
            header {
                @if king { b.name { @if acting && quotes.is_some() { "Program" } @else { "You" } } }
                @else { (facts.name(&message.from)) }
                @if let Some(to) = addressed(message) { span.to { "to " bdi { (to) } } }
                @if acting && !king { span.tag { "step" } }
                @else if concludes(facts, message) { span.tag { "conclusion" } }
                @if let Some(status) = trouble { span.tag.bad { (status.as_str()) } }
                span.facts { (turn_facts(message, facts.turns.get(&message.seq))) }
                a.seq href={ "#" (facts.anchor(message.seq)) } title="Link to this message" { "#" (message.seq) }
            }
            @if is_verdict(facts, message) {
                p.facts { a href={ "#" (facts.prefix) "head" } { "The decision is at the top of this page." } }
                details { summary { "The whole text" } div.body dir="auto" { (markdown::render(&body)) } }
            } @else {
                div.body dir="auto" { @if king { (quoted::render(&body)) } @else { (markdown::render_marked(&body, &facts.passages(message.seq))) } }
            }
            @if let Some(reason) = message.reason() { p.facts { (plain(&reason)) } }
        }
    }
}

/// Returns the members that a message addresses; `None` if it addresses everyone.
fn addressed(message: &Message) -> Option<String> {
    match &message.to {
        Address::All | Address::King => None,
        to => Some(plain(&to.to_string())),
    }
}

/// Returns the model, the duration and the usage.
fn turn_facts(message: &Message, turn: Option<&Turn>) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(message.provenance.model.as_deref().map(plain));
    if let Some(turn) = turn {
        parts.extend(turn.seconds.map(|s| format!("{s:.1} s")));
        match turn.tools {
            0 => {}
            1 => parts.push("1 tool".to_owned()),
            tools => parts.push(format!("{tools} tools")),
        }
        if let Some(usage) = &turn.usage {
            parts.push(format!("{} tokens", usage.output_tokens));
            parts.extend(usage.price());
        }
    }
    parts.join(" · ")
}
