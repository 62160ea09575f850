//! `kd forum tui`: connects the screen of `kd-tui` to the store.

use super::super::here::Here;
use super::{fairness, lines, motions, open};
use crate::args::forum::Tui;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::style::Styles;
use kd_app::forum::{ForumError, Site};
use kd_app::{ErrorKind, UserError};
use kd_core::names::KING;
use kd_forum::account::{Role, Status};
use kd_forum::governance::MotionState;
use kd_forum::order::{Entry, Target};
use kd_forum::words::SearchIn;
use kd_tui::forum::{Deed, Done, Found, Item, Library, Looks, PAGE, Reader, View, Wants};
use kd_tui::theme::{Choice, Depth, Theme, depth, ground};
use serde_json::{Value, json};
use std::io::{IsTerminal, stdin, stdout};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum motions and hits listed.
const MOTIONS: i64 = 200;
const HITS: i64 = 200;
/// Cycles read for the fairness table.
const CYCLES: i64 = 100_000;

pub(super) fn run(args: &Tui, here: &Here) -> Result<(), Error> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(
            Error::usage("the reader needs a terminal").next("kd forum read, kd forum watch")
        );
    }
    let site = open(&args.place, here)?;
    let env = |name: &str| here.var(name);
    let styles = here.out_styles();
    let shade = if styles.color {
        depth(&env)
    } else {
        Depth::None
    };
    let looks = Looks {
        theme: Theme::new(Choice::Auto, shade, ground(&env)),
        styles,
        zone: jiff::tz::TimeZone::system(),
    };
    let failed =
        |e: std::io::Error| Error::new("io", Exit::Error, "cannot start an OS thread").because(e);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(failed)?;
    let reader = Reader::new(&site.forum, looks);
    let shelf = Shelf {
        styles,
        site: Mutex::new(site),
    };
    let ended = runtime.block_on(kd_tui::forum::run(reader, Arc::new(shelf)));
    runtime.shutdown_timeout(Duration::from_millis(500));
    ended.map_err(|e| {
        Error::new("terminal", Exit::Error, "the terminal cannot be used")
            .because(e)
            .next("kd forum read and kd forum watch work everywhere")
    })
}

/// The store, as used by the screen.
struct Shelf {
    styles: Styles,
    site: Mutex<Site>,
}

impl Shelf {
    fn ask<T>(
        &self,
        what: impl FnOnce(&mut Site) -> Result<T, ForumError>,
    ) -> Result<T, UserError> {
        let mut site = self.site.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(what(&mut site)?)
    }

    fn read(&self, site: &mut Site, wants: &Wants) -> Result<Found, ForumError> {
        let forum = site.forum.clone();
        let store = &mut site.store;
        let open = store.motions(&forum, MOTIONS)?;
        let mut found = Found {
            threads: store.threads(&forum, wants.threads)?,
            counts: store.counts(&forum)?,
            open_motions: open.iter().filter(|m| m.state == MotionState::Open).count(),
            me: me(site)?,
            ..Found::default()
        };
        let store = &mut site.store;
        if let Some(words) = &wants.search {
            let hits = store.search(&forum, words, SearchIn::All, HITS)?;
            found.hits = Some((words.clone(), hits));
        }
        if let Some(id) = wants.thread {
            match store.thread(id, wants.after, PAGE) {
                Ok((thread, posts)) => {
                    found.thread = Some(thread);
                    found.posts = posts;
                }
                Err(ForumError::Missing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if let (Some(thread), Some((first, last))) = (&found.thread, wants.again) {
            let (_, posts) = store.thread(thread.id, first - 1, PAGE)?;
            found.again = posts.into_iter().filter(|p| p.id <= last).collect();
        }
        // The reason for hiding a post is shown in its place.
        let hidden = found.posts.iter().chain(&found.again);
        let hidden: Vec<i64> = hidden
            .filter(|p| p.hidden_at.is_some())
            .map(|p| p.id)
            .collect();
        for id in hidden {
            let why = lines::why(site, &Target::Post(id));
            found.hidden.insert(id, why);
        }
        let store = &mut site.store;
        match wants.view {
            View::Threads => {}
            View::Motions => {
                for motion in open {
                    let (_, votes) = store.motion(motion.id)?;
                    found.items.push(Item {
                        key: motion.id.to_string(),
                        title: format!("{} {}", motion.id, motion.title),
                        note: motion.state.word().replace('_', " "),
                        text: lines::about_motion(&motion, &votes),
                    });
                }
            }
            View::Members => {
                for member in site.store.members(&forum)? {
                    found.items.push(Item {
                        key: member.name.clone(),
                        title: member.name.clone(),
                        note: match member.status {
                            Status::Active => member.role.word().to_owned(),
                            status => status.word().to_owned(),
                        },
                        text: lines::about_member(site, &member)?,
                    });
                }
            }
            View::Fairness => {
                let table = fairness::judged(site, CYCLES)?;
                let mut text = Vec::new();
                // Writing to memory does not fail.
                let _ = fairness::print(&table, self.styles, &mut text);
                let text = String::from_utf8_lossy(&text).into_owned();
                found.text = text.lines().map(str::to_owned).collect();
            }
            View::Now => found.text = lines::now(site)?,
        }
        Ok(found)
    }
}

fn ordered(entry: Entry) -> Done {
    Done {
        told: match entry.undoes {
            Some(_) => format!("entry {}: you {}", entry.id, entry.what()),
            None => format!("entry {}: you {}; u undoes it", entry.id, entry.what()),
        },
        thread: None,
    }
}

/// Adds the secrets that were masked before a text was stored.
fn with_masked(told: String, answer: &Value) -> String {
    match answer["masked"].as_str() {
        Some(masked) => format!("{told}; {masked}"),
        None => told,
    }
}

/// Returns the user's name and role in the forum.
fn me(site: &mut Site) -> Result<(String, String), ForumError> {
    let member = site.store.member(&site.forum, KING)?;
    let role = member.map_or(Role::Owner, |member| member.role);
    Ok((KING.to_owned(), role.word().to_owned()))
}

impl Library for Shelf {
    fn look(&self, wants: &Wants) -> Result<Found, UserError> {
        self.ask(|site| self.read(site, wants))
    }

    fn act(&self, deed: &Deed) -> Result<Done, UserError> {
        let now = jiff::Timestamp::now();
        let mut site = self.site.lock().unwrap_or_else(PoisonError::into_inner);
        let told = |error: Error| UserError {
            next: error.next,
            ..UserError::new(ErrorKind::Forum, error.what)
        };
        let mut call = |tool: &str, arguments: Value| {
            let answer = site.act(KING, tool, &arguments);
            answer.map_err(|error| told(error.into()))
        };
        match deed {
            Deed::Open { title, body } => {
                let answer = call("create_thread", json!({"title": title, "body": body}))?;
                let thread = answer["thread_id"].as_i64();
                let told = format!("thread {} is open", thread.unwrap_or_default());
                Ok(Done {
                    told: with_masked(told, &answer),
                    thread,
                })
            }
            Deed::Reply {
                thread,
                quote,
                body,
            } => {
                let arguments = json!({"thread_id": thread, "body": body, "quote_post_id": quote});
                let answer = call("reply_to_thread", arguments)?;
                let told = format!("post {} is written", answer["post_id"]);
                Ok(Done {
                    told: with_masked(told, &answer),
                    thread: Some(*thread),
                })
            }
            Deed::Edit { post, body } => {
                let answer = call("edit_post", json!({"post_id": post, "body": body}))?;
                Ok(Done {
                    told: with_masked(format!("post {post} is changed"), &answer),
                    thread: None,
                })
            }
            Deed::Propose { what, reason } => {
                let answer = motions::propose(&mut site, KING, what, None, reason).map_err(told)?;
                Ok(Done {
                    told: format!("motion {} is open", answer["motion_id"]),
                    thread: None,
                })
            }
            Deed::Vote {
                motion,
                choice,
                reason,
            } => {
                let arguments =
                    json!({"motion_id": motion, "choice": choice.word(), "reason": reason});
                call("vote", arguments)?;
                Ok(Done {
                    told: format!("your vote on motion {motion}: {}", choice.word()),
                    thread: None,
                })
            }
            Deed::Order { order, reason } => {
                let forum = site.forum.clone();
                let entry = site.store.give_order(&forum, KING, order, reason, now);
                Ok(ordered(entry?))
            }
            Deed::Undo { entry, reason } => {
                let forum = site.forum.clone();
                let entry = site.store.undo_order(&forum, KING, *entry, reason, now);
                Ok(ordered(entry?))
            }
            Deed::Confirm { motion } => {
                let configured = site.config.forum.settings.clone();
                let motion = site.store.confirm_motion(*motion, KING, &configured, now)?;
                Ok(Done {
                    told: format!(
                        "motion {}: {}",
                        motion.id,
                        motion.state.word().replace('_', " ")
                    ),
                    thread: None,
                })
            }
            Deed::Veto { motion, reason } => {
                site.store.veto_motion(*motion, KING, reason, now)?;
                Ok(Done {
                    told: format!("motion {motion} is refused"),
                    thread: None,
                })
            }
        }
    }

    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}
