//! A forum at a glance: who speaks, motions with their votes, threads, members, fairness, and what moderators did; and one
//! of its threads. Pure: the texts of agents are data and never markup.

use crate::bar::bar;
use crate::markdown;
use jiff::Timestamp;
use kd_core::clean::{clean_line, clean_text};
use maud::{Markup, html};

/// Maximum characters of a title, and of a line about a motion, a member or an order.
const TITLE_CHARS: usize = 160;
const LINE_CHARS: usize = 400;

/// A forum, as needed for its page.
#[derive(Clone, Debug, Default)]
pub struct Forum {
    /// Its name.
    pub name: String,
    /// Its charter; empty without one.
    pub charter: String,
    /// The running or last cycle.
    pub cycle: Cycle,
    /// Motions, the open ones first.
    pub motions: Vec<Motion>,
    /// Threads, the newest activity first.
    pub threads: Vec<Topic>,
    /// Members, by name.
    pub members: Vec<Member>,
    /// The fairness of the newest cycles; `None` without one.
    pub fairness: Option<Fairness>,
    /// What moderators did, newest first.
    pub orders: Vec<Order>,
}

/// A cycle, as far as it is public.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// Its number; 0 if there was none.
    pub number: i64,
    /// Whether it runs.
    pub is_running: bool,
    /// Who has the turn.
    pub speaking: Vec<String>,
    /// Who had a turn, and what came of it.
    pub had: Vec<(String, String)>,
    /// Who may still have one, by name: the order is secret until the end.
    pub rest: Vec<String>,
}

/// A motion.
#[derive(Clone, Debug, Default)]
pub struct Motion {
    /// Its number.
    pub id: i64,
    /// Its title.
    pub title: String,
    /// Its state, in words.
    pub state: String,
    /// What it changes, in words; empty if nothing.
    pub wants: String,
    /// Who moved it.
    pub proposer: String,
    /// Why.
    pub reason: String,
    /// The result of the count, in words; empty while it is open.
    pub outcome: String,
    /// What the user can do.
    pub may: May,
    /// The votes, in order.
    pub votes: Vec<Vote>,
}

/// What the user can do about a motion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum May {
    /// Nothing.
    #[default]
    Nothing,
    /// Vote, and refuse it.
    Vote,
    /// Refuse it. It is open, but the user has no vote.
    Refuse,
    /// Confirm or refuse it: it passed.
    Confirm,
}

/// A vote.
#[derive(Clone, Debug, Default)]
pub struct Vote {
    /// The voter.
    pub who: String,
    /// `yes`, `no` or `abstain`.
    pub choice: String,
    /// Why.
    pub reason: String,
}

/// A thread in the list.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    /// Its number.
    pub id: i64,
    /// Its title.
    pub title: String,
    /// Who opened it.
    pub author: String,
    /// Number of posts.
    pub posts: i64,
    /// The time of the last one.
    pub updated: Timestamp,
    /// Whether agents do not see it, and whether it takes no posts.
    pub is_hidden: bool,
    /// See `is_hidden`.
    pub is_closed: bool,
}

/// A member.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its kind, role and status, in words.
    pub kind: String,
    /// See `kind`.
    pub role: String,
    /// See `kind`.
    pub status: String,
    /// Whether it votes.
    pub votes: bool,
    /// When it joined.
    pub joined: Timestamp,
}

/// How fair the newest cycles were.
#[derive(Clone, Debug, Default)]
pub struct Fairness {
    /// Number of cycles.
    pub cycles: usize,
    /// What was tested.
    pub rows: Vec<Row>,
    /// What each agent got: its name, its turns and those it is entitled to.
    pub shares: Vec<(String, u64, f64)>,
}

/// A test of fairness.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// What is measured.
    pub name: String,
    /// The agent farthest from its entitlement.
    pub agent: String,
    /// The value, and what it should be.
    pub value: Option<f64>,
    /// See `value`.
    pub entitled: Option<f64>,
    /// The probability that a fair rule gives a deviation this large, and the line below which the row fails.
    pub p: Option<f64>,
    /// See `p`.
    pub line: Option<f64>,
    /// Whether it passes; `None` without a line or without data.
    pub pass: Option<bool>,
}

/// What a moderator did.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// What.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// A post.
#[derive(Clone, Debug, Default)]
pub struct Post {
    /// Its number.
    pub id: i64,
    /// Its author.
    pub author: String,
    /// When it was written.
    pub at: Timestamp,
    /// Its text; empty if it was deleted.
    pub body: String,
    /// The number of the post it quotes, with its author.
    pub quotes: Option<(i64, String)>,
    /// What happened to it since, in words: `deleted`, `hidden by king: spam`.
    pub fate: String,
}

/// Renders a forum.
pub fn forum(forum: &Forum) -> Markup {
    html! {
        article.forum aria-labelledby="forum-title" {
            h1 #forum-title { "Forum " span.faint { bdi { (line(&forum.name)) } } }
            @if !forum.charter.is_empty() { details { summary { "Charter" } (markdown::render(&forum.charter)) } }
            (cycle(&forum.cycle))
            (motions(&forum.motions))
            (threads(&forum.threads))
            (members(&forum.members))
            (fairness(forum.fairness.as_ref()))
            (orders(&forum.orders))
        }
    }
}

/// Renders what the page shows where there is no forum; `why` says so.
pub fn no_forum(why: &str) -> Markup {
    html! {
        article.forum {
            h1 { "Forum" }
            p.faint { (clean_text(why)) }
        }
    }
}

/// Renders a thread of a forum.
pub fn forum_thread(topic: &Topic, posts: &[Post], more: bool) -> Markup {
    html! {
        article.forum aria-labelledby="topic-title" {
            p { a href="?forum" { "All of the forum" } }
            h1 #topic-title dir="auto" { (title(&topic.title)) }
            p.facts {
                span { "thread " (topic.id) }
                span { "by " bdi.name { (line(&topic.author)) } }
                (flags(topic))
            }
            @for post in posts {
                article.says id={ "p" (post.id) } tabindex="-1" {
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
                    ul { @for (name, what) in &cycle.had { li { bdi.name { (line(name)) } ": " (line(what)) } } }
                }
            }
        }
    }
}

fn motions(all: &[Motion]) -> Markup {
    html! {
        section aria-labelledby="forum-motions" {
            h2 #forum-motions { "Motions" }
            @if all.is_empty() { p.faint { "Nobody has moved anything." } }
            @for one in all { (motion(one)) }
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
            p.facts { span { b { (line(&one.state)) } } span { "moved by " bdi.name { (line(&one.proposer)) } } }
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
                p.faint { "You have no vote on it. " code { "kd forum role king voter" } " gives you one on later motions." }
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
            h2 #forum-threads { "Threads" }
            @if all.is_empty() { p.faint { "No threads. " code { "kd forum post TITLE TEXT" } " opens one." } }
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

fn fairness(found: Option<&Fairness>) -> Markup {
    html! {
        section aria-labelledby="forum-fairness" {
            h2 #forum-fairness { "Fairness" }
            @match found {
                None => p.faint { "No cycle has ended." },
                Some(found) => {
                    @let failed = found.rows.iter().filter(|row| row.pass == Some(false)).count();
                    p {
                        "Over " (found.cycles) @if found.cycles == 1 { " cycle: " } @else { " cycles: " }
                        @match failed { 0 => "no row fails.", n => b.bad { (n) @if n == 1 { " row fails." } @else { " rows fail." } } }
                    }
                    (shares(&found.shares))
                    (rows(&found.rows))
                }
            }
        }
    }
}

/// Renders a bar for the turns of each agent; each is told beside what the agent is entitled to.
fn shares(all: &[(String, u64, f64)]) -> Markup {
    let most = all.iter().map(|(_, turns, due)| (*turns as f64).max(*due));
    let most = most.fold(1.0, f64::max);
    html! {
        @if !all.is_empty() {
            div.wide tabindex="0" { table {
                thead { tr { th scope="col" { "Agent" } th scope="col" { "Turns, and those it is entitled to" } } }
                tbody { @for (name, turns, due) in all { tr {
                    th scope="row" { bdi { (line(name)) } }
                    td { (bar(*turns as f64 / most, &format!("{turns} of {due:.1} due"))) }
                } } }
            } }
        }
    }
}

fn rows(all: &[Row]) -> Markup {
    let figure = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    html! {
        div.wide tabindex="0" { table {
            thead { tr {
                th scope="col" { "Tested" }
                @for head in ["Has", "Due", "Probability", "Fails below"] { th.number scope="col" { (head) } }
                th scope="col" { "Result" }
            } }
            tbody { @for row in all { tr {
                th scope="row" { (line(&row.name)) @if !row.agent.is_empty() { " " span.faint { bdi { (line(&row.agent)) } } } }
                td.number { (figure(row.value)) }
                td.number { (figure(row.entitled)) }
                td.number { (figure(row.p)) }
                td.number { (figure(row.line)) }
                td { @match row.pass { Some(true) => "passes", Some(false) => span.tag.bad { "fails" }, None => span.faint { "only told" } } }
            } } }
        } }
        p.faint { "A row fails if a fair rule would give a deviation this large less often than the line says." }
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
            "0.004",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(thread.contains("href=\"#p1\"") && thread.contains("kd forum read 7"));
    }

    #[test]
    fn an_empty_forum_says_what_to_do() {
        let text = forum(&Forum::default()).into_string();
        for part in [
            "kd forum run-cycle",
            "kd forum post",
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
