//! An overview of a forum: who speaks, motions with their votes, threads, members, fairness, and actions of
//! moderators; and one of its threads. Pure: the texts of agents are data and never markup.

mod data;
mod fairness;

pub use data::{Cycle, Fairness, Forum, May, Member, Motion, Order, Post, Row, Topic, Vote, You};

use crate::bar::bar;
use crate::markdown;
use jiff::Timestamp;
use kd_core::clean::{clean_line, clean_text};
use maud::{Markup, html};

/// Maximum characters of a title, and of a line about a motion, a member or an order.
const TITLE_CHARS: usize = 160;
const LINE_CHARS: usize = 400;

/// Renders a forum.
pub fn forum(forum: &Forum) -> Markup {
    html! {
        article.forum aria-labelledby="forum-title" data-running[forum.cycle.is_running] {
            h1 #forum-title { "Forum " span.faint { bdi { (line(&forum.name)) } } }
            (you(&forum.you))
            @if !forum.charter.is_empty() { details { summary { "Charter" } (markdown::render(&forum.charter)) } }
            (cycle(&forum.cycle))
            (motions(forum))
            (threads(&forum.threads))
            (members(&forum.members))
            (fairness::section(forum.fairness.as_ref()))
            (orders(&forum.orders))
        }
    }
}

/// Renders what the page shows where the forum is not shown; `why` says so.
pub fn no_forum(why: &str) -> Markup {
    html! {
        article.forum {
            h1 { "Forum" }
            p.faint { (clean_text(why)) }
        }
    }
}

/// Renders what the page shows where nobody has written yet.
pub fn forum_to_begin() -> Markup {
    html! {
        article.forum {
            div.titled data-new { h1 { "Forum" } }
            p { "There is no forum in this folder yet. A first thread begins one, and " code { "kd forum agent new" } " adds agents, which take turns in it." }
        }
    }
}

/// Renders a thread of a forum.
pub fn forum_thread(topic: &Topic, posts: &[Post], more: bool) -> Markup {
    html! {
        article.forum aria-labelledby="topic-title" data-topic=(topic.id) data-open[!topic.is_closed && !more] {
            p { a href="?forum" { "All of the forum" } }
            h1 #topic-title dir="auto" { (title(&topic.title)) }
            p.facts {
                span { "thread " (topic.id) }
                span { "by " bdi.name { (line(&topic.author)) } }
                (flags(topic))
            }
            @for post in posts {
                article.says id={ "p" (post.id) } data-post=(post.id) data-author=(line(&post.author)) tabindex="-1" {
                    header {
                        bdi.name { (line(&post.author)) }
                        @if let Some((id, author)) = &post.quotes { span.to { "to " a href={ "#p" (id) } { "#" (id) } " of " bdi { (line(author)) } } }
                        @if !post.fate.is_empty() { span.tag.bad { (line(&post.fate)) } }
                        span.facts { (moment(post.at)) }
                        a.seq href={ "#p" (post.id) } { "#" (post.id) }
                    }
                    div.body dir="auto" { (markdown::render(&post.body)) }
                }
            }
            @if topic.is_closed { p.faint { "The thread is closed: it takes no posts." } }
            @if more { p.faint { "Only the first posts are shown: " code { "kd forum read " (topic.id) } } }
        }
    }
}

fn line(text: &str) -> String {
    clean_line(text, LINE_CHARS)
}

fn title(text: &str) -> String {
    clean_line(text, TITLE_CHARS)
}

fn moment(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (at.strftime("%Y-%m-%d %H:%M UTC")) } }
}

fn cycle(cycle: &Cycle) -> Markup {
    html! {
        section aria-labelledby="forum-now" {
            h2 #forum-now { "Who speaks" }
            @if cycle.number == 0 {
                p.faint { "No cycle has run. " code { "kd forum run-cycle" } " runs one." }
            } @else {
                p { "Cycle " (cycle.number) @if cycle.is_running { " runs." } @else { " has ended." } }
                @for name in &cycle.speaking { p.now { b { "Now:" } bdi.name { (line(name)) } } }
                @if cycle.is_running && !cycle.rest.is_empty() {
                    p {
                        "May speak next: "
                        @for (at, name) in cycle.rest.iter().enumerate() { @if at > 0 { ", " } bdi { (line(name)) } }
                        ". " span.faint { "By name: the order is secret until the end of the cycle, and some may sit out." }
                    }
                }
                @if !cycle.had.is_empty() {
                    p { "Had a turn:" }
                    ul { @for (name, what) in &cycle.had { li { bdi.name { (line(name)) } ", " (line(what)) } } }
                }
            }
        }
    }
}

/// Says who the user is here.
fn you(you: &You) -> Markup {
    html! {
        p {
            "You are " bdi.name { (line(&you.name)) } ", " (line(&you.role)) "."
            @if !you.votes {
                " " span.faint { "You have no vote. " code { "kd forum role " (line(&you.name)) " voter REASON" } " gives you one on later motions." }
            }
        }
    }
}

fn motions(forum: &Forum) -> Markup {
    html! {
        section aria-labelledby="forum-motions" {
            div.titled data-forms=(line(&forum.forms.join(", "))) { h2 #forum-motions { "Motions" } }
            @if forum.motions.is_empty() { p.faint { "Nobody has moved anything." } }
            @for one in &forum.motions { (motion(one)) }
        }
    }
}

fn motion(one: &Motion) -> Markup {
    let count = |choice: &str| {
        one.votes
            .iter()
            .filter(|vote| vote.choice == choice)
            .count()
    };
    let (yes, no, abstain) = (count("yes"), count("no"), count("abstain"));
    let all = one.votes.len().max(1) as f64;
    html! {
        section.motion aria-label={ "Motion " (one.id) } data-motion=(one.id) data-may=[may(one.may)] {
            h3 dir="auto" { "Motion " (one.id) ": " (title(&one.title)) }
            p.facts { span { b { (line(&one.state)) } } span { "moved by " bdi.name { (line(&one.proposer)) } } @if let Some(thread) = one.thread { a href={ "?forum=" (thread) } { "discussion" } } }
            @if !one.wants.is_empty() { p dir="auto" { "Wants: " (line(&one.wants)) } }
            div.body dir="auto" { (markdown::render(&one.reason)) }
            @if !one.outcome.is_empty() { p dir="auto" { "Result: " (line(&one.outcome)) } }
            @for (word, n) in [("yes", yes), ("no", no), ("abstained", abstain)] {
                @if n > 0 { div { (bar(n as f64 / all, &format!("{n} {word}"))) } }
            }
            @if one.votes.is_empty() { p.faint { "No votes." } }
            @else {
                details {
                    summary { "Votes" }
                    ul { @for vote in &one.votes {
                        li dir="auto" {
                            bdi.name { (line(&vote.who)) } ": " (line(&vote.choice))
                            @if !vote.reason.is_empty() { ". " (line(&vote.reason)) }
                        }
                    } }
                }
            }
            @if one.may == May::Refuse {
                p.faint { "You have no vote on it: who votes was settled when it was moved." }
            }
        }
    }
}

fn may(may: May) -> Option<&'static str> {
    match may {
        May::Nothing => None,
        May::Vote => Some("vote"),
        May::Refuse => Some("refuse"),
        May::Confirm => Some("confirm"),
    }
}

fn threads(all: &[Topic]) -> Markup {
    html! {
        section aria-labelledby="forum-threads" {
            div.titled data-new { h2 #forum-threads { "Threads" } }
            @if all.is_empty() { p.faint { "No threads." } }
            @else {
                div.wide tabindex="0" { table {
                    thead { tr { th scope="col" { "Thread" } th scope="col" { "By" } th.number scope="col" { "Posts" } th scope="col" { "Last post" } } }
                    tbody { @for one in all { tr {
                        th scope="row" dir="auto" { a href={ "?forum=" (one.id) } { (title(&one.title)) } " " (flags(one)) }
                        td { bdi { (line(&one.author)) } }
                        td.number { (one.posts) }
                        td { (moment(one.updated)) }
                    } } }
                } }
            }
        }
    }
}

fn flags(topic: &Topic) -> Markup {
    html! {
        @if topic.is_hidden { span.tag.bad { "hidden" } }
        @if topic.is_closed { " " span.tag { "closed" } }
    }
}

fn members(all: &[Member]) -> Markup {
    html! {
        section aria-labelledby="forum-members" {
            h2 #forum-members { "Members" }
            @if all.is_empty() { p.faint { "No members." } }
            @else {
                div.wide tabindex="0" { table {
                    thead { tr { @for head in ["Member", "Kind", "Role", "Votes", "Status", "Joined"] { th scope="col" { (head) } } } }
                    tbody { @for one in all { tr {
                        th scope="row" { bdi { (line(&one.name)) } }
                        td { (line(&one.kind)) }
                        td { (line(&one.role)) }
                        td { @if one.votes { "yes" } @else { "no" } }
                        td { @if one.status == "active" { "active" } @else { span.tag.bad { (line(&one.status)) } } }
                        td { (moment(one.joined)) }
                    } } }
                } }
            }
        }
    }
}

fn orders(all: &[Order]) -> Markup {
    html! {
        section aria-labelledby="forum-orders" {
            h2 #forum-orders { "Moderation" }
            @if all.is_empty() { p.faint { "Nothing was hidden, and nobody was banned." } }
            @else {
                ul { @for one in all {
                    li dir="auto" {
                        (moment(one.at)) " " bdi.name { (line(&one.by)) } " " (line(&one.what))
                        @if !one.reason.is_empty() { ": " (line(&one.reason)) }
                    }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "<b onclick=x>\u{202e}</section>";

    fn example() -> Forum {
        Forum {
            name: HOSTILE.into(),
            charter: HOSTILE.into(),
            cycle: Cycle {
                number: 3,
                is_running: true,
                speaking: vec![HOSTILE.into()],
                had: vec![("bea".into(), HOSTILE.into())],
                rest: vec!["cyd".into()],
            },
            motions: vec![Motion {
                id: 4,
                title: HOSTILE.into(),
                state: "open".into(),
                reason: HOSTILE.into(),
                may: May::Vote,
                thread: Some(7),
                votes: vec![
                    Vote {
                        who: HOSTILE.into(),
                        choice: "yes".into(),
                        reason: HOSTILE.into(),
                    },
                    Vote {
                        who: "cyd".into(),
                        choice: "no".into(),
                        ..Vote::default()
                    },
                ],
                ..Motion::default()
            }],
            threads: vec![Topic {
                id: 7,
                title: HOSTILE.into(),
                is_hidden: true,
                ..Topic::default()
            }],
            members: vec![Member {
                name: HOSTILE.into(),
                status: "banned".into(),
                ..Member::default()
            }],
            fairness: Some(Fairness {
                cycles: 9,
                rows: vec![Row {
                    name: "turns".into(),
                    agent: HOSTILE.into(),
                    p: Some(0.5),
                    line: Some(0.004),
                    pass: Some(false),
                    ..Row::default()
                }],
                shares: vec![(HOSTILE.into(), 3, 2.5)],
            }),
            orders: vec![Order {
                by: HOSTILE.into(),
                what: "banned x".into(),
                reason: HOSTILE.into(),
                ..Order::default()
            }],
            you: You {
                name: HOSTILE.into(),
                role: HOSTILE.into(),
                votes: false,
            },
            forms: vec![HOSTILE.into()],
        }
    }

    #[test]
    fn all_of_a_forum_is_shown_and_none_of_it_is_markup() {
        let text = forum(&example()).into_string();
        let posts = [Post {
            id: 1,
            author: HOSTILE.into(),
            body: HOSTILE.into(),
            quotes: Some((1, HOSTILE.into())),
            fate: HOSTILE.into(),
            ..Post::default()
        }];
        let thread = forum_thread(&example().threads[0], &posts, true).into_string();
        for text in [&text, &thread] {
            assert!(
                !text.contains("<b onclick") && !text.contains('\u{202e}'),
                "{text}"
            );
            let count = |part: &str| text.matches(part).count();
            assert_eq!(count("<section"), count("</section>"), "{text}");
        }
        for part in [
            "Cycle 3 runs.",
            "May speak next: <bdi>cyd</bdi>",
            "1 yes",
            "1 no",
            "data-motion=\"4\" data-may=\"vote\"",
            "href=\"?forum=7\"",
            "hidden",
            "banned",
            "1 row fails.",
            "3 of 2.5 due",
            "0.500, line 0.004",
            "You have no vote.",
            "data-running",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(thread.contains("href=\"#p1\"") && thread.contains("kd forum read 7"));
        // There is no reply field in a closed thread, or if not all posts are shown.
        assert!(!thread.contains("data-open"));
        let mut topic = example().threads.remove(0);
        assert!(
            forum_thread(&topic, &posts, false)
                .into_string()
                .contains("data-topic=\"7\" data-open")
        );
        topic.is_closed = true;
        assert!(
            !forum_thread(&topic, &posts, false)
                .into_string()
                .contains("data-open")
        );
    }

    #[test]
    fn an_empty_forum_says_what_to_do() {
        let text = forum(&Forum::default()).into_string();
        for part in [
            "kd forum run-cycle",
            "data-new",
            "Nobody has moved",
            "No cycle has ended",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            no_forum("<i>none</i>")
                .into_string()
                .contains("&lt;i&gt;none")
        );
    }
}
