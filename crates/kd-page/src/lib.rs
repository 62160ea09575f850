//! A thread as a page: one self-contained HTML document, readable without scripts.
//!
//! Input: messages and the records of a thread. Output: the document, or its sections for a page that is already open.
//! Each section answers one question: who said what, how it was decided, where members differ, how sure they are and
//! what it cost, and what the record contains. No text of a member, a file or a name becomes markup, and a browser
//! fetches nothing: the document's policy allows only its styles and script, by hash.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod bar;
mod batches;
mod decided;
mod differ;
mod document;
mod facts;
mod forum;
pub mod markdown;
mod marked;
mod now;
mod passage;
mod quoted;
mod reader;
mod said;
mod sheet;
mod sure;
mod trail;

pub use batches::batches;
pub use document::{Page, Place, app, page, shell};
pub use facts::{Asked, Relative, Thread, Turn};
pub use forum::{
    Cycle, Fairness, Forum, May, Member, Motion, Order, Post, Row, Topic, Vote, You, forum,
    forum_thread, forum_to_begin, no_forum,
};
pub use maud::Markup;
pub use now::doing;
pub use reader::{Batch, Reader};
pub use said::Part;
pub use sheet::sheet;

use facts::{Facts, plain};
use maud::html;
use serde_json::{Map, Value, json};

/// A section of a thread's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Who said what.
    Said,
    /// How it was decided.
    Decided,
    /// Where members differ.
    Differ,
    /// Confidence and cost.
    Sure,
    /// The record.
    Trail,
}

impl Section {
    /// All sections, in page order.
    pub const ALL: [Self; 5] = [
        Self::Said,
        Self::Decided,
        Self::Differ,
        Self::Sure,
        Self::Trail,
    ];

    /// Returns its name in anchors.
    pub fn id(self) -> &'static str {
        match self {
            Self::Said => "said",
            Self::Decided => "decided",
            Self::Differ => "differ",
            Self::Sure => "sure",
            Self::Trail => "record",
        }
    }

    /// Returns its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Said => "Who said what",
            Self::Decided => "How it was decided",
            Self::Differ => "Where they differ",
            Self::Sure => "How sure, and what it cost",
            Self::Trail => "The record",
        }
    }
}

/// Returns the address of a thread in a document, by its index among the threads of the document.
pub fn address(at: usize) -> String {
    format!("#{}{}", facts::prefix(at), Section::Said.id())
}

/// Renders a thread's header and sections for use inside a document. `at` is its index among the threads of the
/// document.
pub fn thread(thread: &Thread, at: usize) -> Markup {
    article(&Facts::of(thread, at))
}

fn article(facts: &Facts<'_>) -> Markup {
    html! {
        article.thread data-thread=(facts.thread.id) {
            (head(facts))
            (navigation(facts))
            @for section in shown(facts) { (self::section(facts, section)) }
        }
    }
}

/// Returns the sections that have content.
fn shown(facts: &Facts<'_>) -> Vec<Section> {
    let has = |section: &Section| match section {
        Section::Said | Section::Trail => true,
        Section::Decided => facts.report.is_some(),
        Section::Differ => differ::has(facts),
        Section::Sure => sure::has(facts),
    };
    Section::ALL.into_iter().filter(has).collect()
}

fn section(facts: &Facts<'_>, section: Section) -> Markup {
    let id = format!("{}{}", facts.prefix, section.id());
    html! {
        section id=(id) aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } { (section.title()) }
            @match section {
                Section::Said => (said::body(facts)),
                Section::Decided => (decided::body(facts)),
                Section::Differ => (differ::body(facts)),
                Section::Sure => (sure::body(facts)),
                Section::Trail => (trail::body(facts)),
            }
        }
    }
}

fn navigation(facts: &Facts<'_>) -> Markup {
    html! {
        nav.sections id={ (facts.prefix) "nav" } aria-label="Sections" {
            @for section in shown(facts) {
                a href={ "#" (facts.prefix) (section.id()) } { (section.title()) }
            }
        }
    }
}

/// Renders threads as one document, with the Markdown of each message in its data.
pub fn document(threads: &[Thread]) -> String {
    let all = threads.iter().enumerate();
    let all: Vec<Facts<'_>> = all.map(|(at, thread)| Facts::of(thread, at)).collect();
    let main = html! {
        @for facts in &all { (article(facts)) }
    };
    let title = all.iter().map(Facts::title).find(|title| !title.is_empty());
    let words: Map<_, _> = all.iter().flat_map(words).collect();
    let (text, _) = page(&Page {
        title: &title.unwrap_or_default(),
        main,
        data: &json!({ "words": words }),
        place: Place::File,
    });
    text
}

/// Renders a thread for the [`app`]: `{"html", "words"}`, its markup and the Markdown of each message by anchor.
/// Related threads are named without a link, because the client cannot open their pages.
pub fn shown_in_app(mut thread: Thread) -> Value {
    for relative in &mut thread.family {
        relative.page = None;
    }
    let facts = Facts::of(&thread, 0);
    let words: Map<_, _> = words(&facts).collect();
    json!({ "html": article(&facts).into_string(), "words": words })
}

/// Returns the Markdown of each message, by anchor.
fn words(facts: &Facts<'_>) -> impl Iterator<Item = (String, Value)> {
    let all = facts.shown.iter();
    all.map(|message| (facts.anchor(message.seq), plain(&message.body).into()))
}

/// Renders the question, the members and, if there is one, the verdict.
fn head(facts: &Facts<'_>) -> Markup {
    let thread = facts.thread;
    html! {
        header.head id={ (facts.prefix) "head" } {
            h1 dir="auto" { (facts.title()) }
            p.facts {
                span { (thread.id) }
                @if let Some(opened) = thread.opened {
                    span { time datetime=(opened) { (opened.strftime("%Y-%m-%d %H:%M UTC")) } }
                }
                @if !thread.members.is_empty() {
                    span.members {
                        @for name in &thread.members { (facts.name(name)) " " }
                    }
                }
                @if thread.private { span { "private: only members on this machine" } }
            }
            (now::now(facts))
            @if let Some(verdict) = facts.verdict() { (decided::outcome(facts, verdict)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::message::Provenance;
    use kd_core::{Address, Message, Status, ThreadId, Timestamp};
    use std::collections::BTreeMap;

    const HOSTILE: &str = "</title><script>alert(1)</script><b onclick=x>\u{202e}";

    fn message(seq: u32, from: &str, body: &str) -> Message {
        Message {
            seq,
            from: from.into(),
            to: Address::All,
            at: Timestamp::UNIX_EPOCH,
            status: (from != "king").then_some(Status::Complete),
            refs: Vec::new(),
            provenance: Provenance {
                model: Some(HOSTILE.into()),
                ..Provenance::default()
            },
            extra: BTreeMap::new(),
            body: body.into(),
        }
    }

    fn thread(messages: Vec<Message>) -> Thread {
        Thread {
            id: ThreadId("council-ab12".into()),
            opened: Some(Timestamp::UNIX_EPOCH),
            members: vec!["ann".into(), "ben".into(), HOSTILE.into()],
            origin: Some(HOSTILE.into()),
            private: true,
            forgotten: vec![2],
            messages,
            records: Vec::new(),
            family: Vec::new(),
            asked: Vec::new(),
        }
    }

    #[test]
    fn forks_are_a_tree_whose_words_are_text() {
        let mut one = thread(vec![message(1, "king", "a")]);
        let relative = |id: &str, depth, page: Option<&str>| Relative {
            id: ThreadId(id.into()),
            depth,
            left: (depth > 0).then(|| format!("before message {depth} {HOSTILE}")),
            page: page.map(str::to_owned),
        };
        one.family = vec![
            relative("council-ab12", 0, Some("?thread=council-ab12")),
            relative("council-0001", 1, Some("?thread=council-0001")),
            // A file may claim anything: a level is left out, and an id is markup.
            relative(HOSTILE, 3, None),
            relative("council-0002", 1, Some("#t2-said")),
        ];
        let page = document(&[one]);
        let tree = page.split("class=\"tree\"").nth(1).expect("a tree");
        let tree = tree.split("</dd>").next().expect("its end");
        assert_eq!(tree.matches("<li").count(), 4, "{tree}");
        assert_eq!(tree.matches("<ol").count(), 2, "nested twice: {tree}");
        assert_eq!(tree.matches("</ol>").count(), 3, "{tree}");
        assert!(
            tree.contains("aria-current=\"page\">council-ab12<"),
            "{tree}"
        );
        assert!(tree.contains("href=\"?thread=council-0001\""), "{tree}");
        assert!(!tree.contains("<b onclick") && !tree.contains('\u{202e}'));
        assert_eq!(page.matches("<script").count(), 2);
    }

    #[test]
    fn no_word_of_a_thread_becomes_markup() {
        let messages = vec![
            message(1, "king", HOSTILE),
            message(2, "ann", HOSTILE),
            message(3, HOSTILE, "x"),
        ];
        let page = document(&[thread(messages)]);
        assert_eq!(page.matches("<script").count(), 2, "{page}");
        assert!(
            !page.contains("<b onclick") && !page.contains('\u{202e}'),
            "{page}"
        );
        assert_eq!(page.matches("</title>").count(), 1);
    }

    #[test]
    fn a_failed_member_is_asked_again_only_where_that_is_possible() {
        for (asked_with, retries) in [
            (None, 1),
            (Some("think"), 0),
            (Some("deliberate"), 0),
            (Some("review"), 0),
            (Some("serve"), 0),
        ] {
            let mut question = message(1, "king", "Why?");
            let asked_with = asked_with.map(|word| ("asked_with".to_owned(), word.to_owned()));
            question.extra.extend(asked_with);
            let mut failed = message(2, "ann", "Beca");
            failed.status = Some(Status::Error);
            let page = document(&[thread(vec![question, failed, message(3, "ben", "So.")])]);
            assert_eq!(page.matches(" data-retry").count(), retries, "{page}");
        }
    }

    #[test]
    fn answers_to_one_message_stand_side_by_side_and_turns_below() {
        let said = [
            (1, "king"),
            (2, "ann"),
            (3, "ben"),
            (4, "ann"),
            (5, "ben"),
            (6, "king"),
            (7, "ben"),
        ];
        let messages = said
            .iter()
            .map(|(seq, from)| message(*seq, from, "x"))
            .collect();
        let page = super::thread(&thread(messages), 0).into_string();
        let places: Vec<String> = page
            .split("<div class=\"")
            .filter_map(|part| {
                let kind = part.split('"').next()?;
                let inside = part.split("</div>").next()?;
                matches!(kind, "round" | "answers").then(|| (kind, inside))
            })
            .map(|(kind, _)| kind.to_owned())
            .collect();
        assert_eq!(places, ["round", "answers", "round", "answers"]);
        let answers = page.split("data-answers=\"").skip(1);
        let counts: Vec<&str> = answers.map(|a| a.split('"').next().unwrap()).collect();
        assert_eq!(counts, ["2", "1"]);
    }

    #[test]
    fn threads_of_one_document_have_addresses_of_their_own() {
        let one = thread(vec![message(1, "king", "a"), message(2, "ann", "b")]);
        let page = document(&[one.clone(), one]);
        for id in ["m1", "t2-m1", "said", "t2-said", "record", "t2-record"] {
            assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
        }
        for link in page.split("href=\"#").skip(1) {
            let to = link.split('"').next().unwrap();
            assert!(
                page.contains(&format!(" id=\"{to}\"")),
                "{to} leads nowhere"
            );
        }
    }

    #[test]
    fn an_empty_thread_has_a_page() {
        let page = document(&[thread(Vec::new())]);
        assert!(page.contains("No messages yet.") && page.contains("<title>council-ab12</title>"));
    }
}
