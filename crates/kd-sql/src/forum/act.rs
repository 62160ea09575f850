//! Executes agents' calls. Input: the caller, and a call of [`kd_forum::tools`]. Output: the answer as JSON in
//! the format of the first forum server: `{"success": true, …}`, or `{"success": false, "error": …}` with a message
//! that the agent can act on. Only a database failure is an error.

use super::company::Texts;
use super::db::Db;
use super::error::ForumError;
use super::motions::{self, Proposal};
use super::posts::NewPost;
use super::sight::Sight;
use super::{ForumStore, accounts, names, pace, runs};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kd_core::clean::clean_line;
use kd_core::config::forum::Settings;
use kd_core::ids::SeatName;
use kd_core::names::KING;
use kd_core::names::{GUEST, READER};
use kd_core::secrets::Masked;
use kd_forum::CLERK;
use kd_forum::account::{Account, Kind, Proof, Role, Status};
use kd_forum::bounds::{EXCERPT, Page, excerpt};
use kd_forum::company::{self, NOTES_MAX};
use kd_forum::fairness::Look;
use kd_forum::governance::{Motion, MotionState};
use kd_forum::tools::{self, BODY_MAX, Call};
use kd_forum::words::Choice;
use kd_forum::words::{Deed, Post, Thread};
use serde_json::{Value, json};

/// Maximum posts read from the database for one page: an answer has no room for more.
const POSTS_MAX: i64 = 300;
/// Maximum votes listed with a motion, the newest.
const VOTES_SHOWN: usize = 30;
/// Maximum characters of a vote's reason.
const VOTE_REASON: usize = 200;

/// Number of cycles whose fairness is shown to an agent.
const FAIRNESS_CYCLES: i64 = 1_000;

/// The settings of a call: those that limit it, and those that a motion compares with.
#[derive(Clone, Copy, Debug)]
pub struct CallSettings<'a> {
    /// The settings in effect, with those of the running command.
    pub run: &'a Settings,
    /// The configuration without the changes by motions, which the store adds. A motion changes what is stored, so the
    /// flags of one command must not make it look like a change that saves calls.
    pub configured: &'a Settings,
}

impl<'a> From<&'a Settings> for CallSettings<'a> {
    /// For calls outside of a command with settings of its own.
    fn from(settings: &'a Settings) -> Self {
        Self {
            run: settings,
            configured: settings,
        }
    }
}

/// The caller of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Caller {
    /// The name under which everything is written.
    pub name: String,
    /// The forum.
    pub forum: String,
    /// Whether it is a person.
    pub person: bool,
    /// The proof of the name. An unproven name belongs to a guest.
    pub proof: Proof,
    /// The visit of the call; `None` for calls outside of one, which are not counted.
    pub run: Option<i64>,
}

impl Caller {
    /// Creates a caller after checking the name: no agent may use the forum's own.
    ///
    /// # Errors
    /// If the name is invalid or the forum's own.
    pub fn new(name: &str, forum: &str) -> Result<Self, ForumError> {
        if name == CLERK {
            return Err(ForumError::Forbidden(format!(
                "`{CLERK}` is the forum itself: write under your own name"
            )));
        }
        SeatName::writer(name).map_err(|e| ForumError::Invalid(e.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            forum: forum.to_owned(),
            person: false,
            proof: Proof::Nothing,
            run: None,
        })
    }

    /// Sets how the name was proven.
    #[must_use]
    pub fn proven(self, proof: Proof) -> Self {
        Self { proof, ..self }
    }

    /// Creates the caller for the person who owns the forum.
    ///
    /// # Errors
    /// If the name is invalid or the forum's own.
    pub fn person(name: &str, forum: &str) -> Result<Self, ForumError> {
        // The only name that no agent can have.
        let checked = if name == KING { "person" } else { name };
        Ok(Self {
            name: name.to_owned(),
            person: true,
            proof: Proof::Owner,
            ..Self::new(checked, forum)?
        })
    }

    /// Returns the account that this caller acts as, for a caller without one.
    fn account(&self, now: Timestamp) -> Result<Account, ForumError> {
        let kind = match self.person {
            true => Kind::Person,
            false if self.name.starts_with(GUEST) => Kind::Guest,
            false if self.proof == Proof::Nothing => {
                return Err(ForumError::Forbidden(format!(
                    "nothing shows that you are `{}`: use a token with this name, or start the server with `--as`",
                    self.name
                )));
            }
            false => Kind::Agent,
        };
        // Anyone can take a guest's name, so guests share one account.
        let name = match kind {
            Kind::Guest => READER,
            _ => &self.name,
        };
        Ok(Account::new(&self.forum, name, kind, self.proof, now))
    }
}

impl ForumStore {
    /// Parses and executes a call by its name and arguments. During a visit it is counted first, even if it is invalid;
    /// a call over the limit is refused.
    ///
    /// # Errors
    /// If the database fails. A refused call is an answer with `"success": false`, not an error.
    pub fn call<'a>(
        &mut self,
        caller: &Caller,
        terms: impl Into<CallSettings<'a>>,
        name: &str,
        arguments: &Value,
        now: Timestamp,
    ) -> Result<Value, ForumError> {
        let CallSettings { run, configured } = terms.into();
        let settings = &self.narrow(&caller.forum, run)?;
        let (arguments, masked) = self.masked(arguments);
        let (number, call) = match self.read(caller, settings, name, &arguments)? {
            Ok(read) => read,
            Err(answer) => return Ok(answer),
        };
        let terms = CallSettings {
            run: settings,
            configured,
        };
        let answer = told(self.act(caller, terms, &call, number, now))?;
        Ok(with_masked(answer, &masked))
    }

    /// Returns the arguments of a call without secrets.
    pub(super) fn masked(&self, arguments: &Value) -> (Value, Masked) {
        let mut arguments = arguments.clone();
        let masked = self.masking.mask_json(&mut arguments);
        (arguments, masked)
    }

    /// Counts and parses a call: returns its number in the visit and the call, or the refusal.
    pub(super) fn read(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        name: &str,
        arguments: &Value,
    ) -> Result<Result<(i64, Call), Value>, ForumError> {
        let counted = self.count(caller, settings, name, arguments)?;
        Ok(
            counted.and_then(|number| match tools::read(name, arguments) {
                Ok(call) => Ok((number, call)),
                Err(why) => Err(refused(&why.to_string())),
            }),
        )
    }

    /// Counts a call of a visit; returns its number, or the refusal.
    pub(super) fn count(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        name: &str,
        arguments: &Value,
    ) -> Result<Result<i64, Value>, ForumError> {
        let Some(run) = caller.run else {
            return Ok(Ok(0));
        };
        // Nobody acts in another's visit.
        let of = (caller.forum.as_str(), caller.name.as_str());
        let counted = match tools::leaves(name, arguments) {
            true => runs::check_open(&mut self.db, run, of),
            false => runs::count_call(&mut self.db, run, of),
        };
        let number = match counted {
            Ok(number) => number,
            Err(error) if error.is_refusal() => return Ok(Err(refused(&error.to_string()))),
            Err(error) => return Err(error),
        };
        if number > i64::from(settings.max_tool_calls) {
            return Ok(Err(refused(&format!(
                "tool call limit exceeded ({} a visit): your visit is over",
                settings.max_tool_calls
            ))));
        }
        Ok(Ok(number))
    }

    #[expect(clippy::too_many_lines, reason = "one match over the tools")]
    pub(super) fn act(
        &mut self,
        caller: &Caller,
        terms: CallSettings<'_>,
        call: &Call,
        number: i64,
        now: Timestamp,
    ) -> Result<Value, ForumError> {
        let settings = terms.run;
        let me = caller.name.as_str();
        let forum = caller.forum.as_str();
        let sight = match caller.person {
            true => Sight::All,
            false => Sight::Public,
        };
        let key = caller.run.map(|run| (run, number));
        match call {
            Call::ListThreads { limit, offset } => self.threads_json(caller, sight, (*limit, *offset), now),
            Call::ReadThread { thread_id, after_post_id } => self.thread_json(caller, sight, *thread_id, *after_post_id, now),
            Call::SearchThreads { query, search_in, limit, offset } => {
                let hits = self.search_for(sight, forum, query, *search_in, offset + limit + 1)?;
                let found = hits.iter().map(|hit| {
                    let mut thread = thread_json(&hit.thread, None);
                    thread["post_id"] = hit.post_id.into();
                    thread["post_author"] = hit.author.as_str().into();
                    thread["excerpt"] = hit.excerpt.as_str().into();
                    Ok(thread)
                });
                paged(json!({"success": true, "query": query}), "threads", found, *limit, *offset)
            }
            Call::CreateThread { title, body } => self.db_deed(caller, settings, call, now, |store| {
                let new = NewPost { author: me, body, quote: None, call: key };
                let (thread, post) = store.create_thread(forum, title, &new, now)?;
                let answer = json!({"success": true, "thread_id": thread.id, "post_id": post.id, "message": format!("thread {} is open", thread.id)});
                Ok((deed(call, Some(thread.id), Some(post.id), None), answer))
            }),
            Call::ReplyToThread { thread_id, body, quote_post_id } => self.db_deed(caller, settings, call, now, |store| {
                let into = super::rows::threads::find(&mut store.db, *thread_id)?;
                in_forum(&into, forum)?;
                if into.hidden_at.is_some() && sight == Sight::Public {
                    return Err(ForumError::Missing { what: "thread", id: *thread_id });
                }
                let rules = store.rules(forum)?;
                rules.check_age(*thread_id, into.updated_at, now)?;
                let new = NewPost { author: me, body, quote: *quote_post_id, call: key };
                let post = store.reply(*thread_id, &new, now)?;
                let answer = json!({"success": true, "post_id": post.id, "thread_id": thread_id, "message": format!("post {} is written", post.id)});
                Ok((deed(call, Some(*thread_id), Some(post.id), None), answer))
            }),
            Call::EditPost { post_id, body } => self.db_deed(caller, settings, call, now, |store| {
                post_in_forum(store, *post_id, forum)?;
                let post = store.edit_post(*post_id, me, body, now)?;
                let answer = json!({"success": true, "post_id": post_id, "thread_id": post.thread_id});
                Ok((deed(call, Some(post.thread_id), Some(*post_id), None), answer))
            }),
            Call::DeletePost { post_id } => self.db_deed(caller, settings, call, now, |store| {
                post_in_forum(store, *post_id, forum)?;
                let post = store.delete_post(*post_id, me, caller.person, now)?;
                let answer = json!({"success": true, "post_id": post_id, "thread_id": post.thread_id});
                Ok((deed(call, Some(post.thread_id), Some(*post_id), None), answer))
            }),
            Call::News { limit } => self.news_json(me, forum, *limit, now),
            Call::Remember { text, how } => {
                self.check_owns_notes(caller, now)?;
                let notes = self.remember(forum, me, *how, text, now)?;
                let used = notes.chars().count();
                Ok(json!({"success": true, "notes": notes, "characters": used, "characters_max": NOTES_MAX}))
            }
            Call::Recall => {
                self.check_owns_notes(caller, now)?;
                Ok(json!({"success": true, "notes": self.notes(forum, me)?}))
            }
            Call::WriteProfile { text } => self.db_deed(caller, settings, call, now, |store| {
                known(me)?;
                super::company::put(&mut store.db, Texts::Profiles, forum, me, text, now)?;
                Ok((deed(call, None, None, None), json!({"success": true, "message": "your profile is written"})))
            }),
            Call::ReadProfile { name } => {
                let profile = self.profile(forum, name)?;
                let banned = accounts::find(&mut self.db, forum, name)?
                    .is_some_and(|account| account.status == Status::Banned);
                match profile.is_empty() || (banned && sight == Sight::Public) {
                    true => Ok(refused(&format!("`{}` has written no profile", clean_line(name, 64)))),
                    false => Ok(json!({"success": true, "name": name, "profile": profile})),
                }
            }
            Call::ReadRules => {
                let rules = self.rules(forum)?;
                let set: Vec<Value> = rules
                    .set()
                    .map(|(rule, value)| json!({"rule": rule.key, "value": value, "means": rule.doc}))
                    .collect();
                let account = accounts::find(&mut self.db, forum, me)?;
                let role = account.map_or(Role::Reader, |account| account.role);
                Ok(json!({"success": true, "charter": self.charter(forum)?, "rules": set, "you": me, "role": role}))
            }
            Call::ReadLog { limit, offset } => {
                // The newest are kept if not all fit.
                let lines = self.log_tail(forum, offset + limit + 1)?;
                let newest = lines.iter().rev().map(|line| Ok(line.text(&TimeZone::UTC).into()));
                let mut answer = paged(json!({"success": true, "times": "UTC"}), "lines", newest, *limit, *offset)?;
                if let Some(lines) = answer["lines"].as_array_mut() {
                    lines.reverse();
                }
                Ok(answer)
            }
            Call::Fairness { offset } => self.fairness_json(me, forum, *offset),
            Call::ListMotions { limit, offset } => {
                let motions = self.motions_for(sight, forum, offset + limit + 1)?;
                let listed = motions.into_iter().map(|motion| self.motion_json(motion));
                paged(json!({"success": true}), "motions", listed, *limit, *offset)
            }
            Call::Propose { kind, key: parameter, value, title, reason } => self.db_deed(caller, settings, call, now, |store| {
                let what = Proposal { kind: *kind, key: parameter.as_deref(), value: value.as_deref(), title, reason };
                super::db::lock(&mut store.db, forum)?;
                let new = NewPost { author: me, call: key, ..NewPost::default() };
                let motion = motions::propose(&mut store.db, (forum, store.own), terms.configured, what, &new, now)?;
                let answer = json!({"success": true, "motion_id": motion.id, "thread_id": motion.thread_id, "closes_after_cycle": motion.closes_after});
                Ok((deed(call, motion.thread_id, None, Some(motion.id)), answer))
            }),
            Call::Vote { motion_id, choice, reason } => self.db_deed(caller, settings, call, now, |store| {
                motions::check_shown(&mut store.db, sight, *motion_id)?;
                let motion = motions::vote(&mut store.db, forum, *motion_id, me, *choice, reason, now)?;
                let answer = json!({"success": true, "motion_id": motion_id, "choice": choice});
                Ok((deed(call, motion.thread_id, None, Some(*motion_id)), answer))
            }),
            Call::Skip { reason } | Call::Finish { reason, .. } => {
                if let Some(run) = caller.run {
                    let (claim, said) = match call {
                        Call::Finish { did, thread_id, .. } if did != "skip" => ((did.clone(), *thread_id), None),
                        _ => (("skip".to_owned(), None), Some(reason.as_str()).filter(|r| !r.is_empty())),
                    };
                    self.db.whole(|db| runs::leaves(db, run, &claim, said))?;
                }
                Ok(json!({"success": true, "message": "your visit is over", "reason": reason}))
            }
        }
    }

    /// Checks that a caller owns the notes of its name.
    fn check_owns_notes(&mut self, caller: &Caller, now: Timestamp) -> Result<(), ForumError> {
        known(&caller.name)?;
        let account = caller.account(now)?;
        match accounts::find(&mut self.db, &account.forum, &account.name)? {
            Some(known) if known.kind != account.kind => Err(ForumError::Forbidden(format!(
                "the notes of `{}` are its own",
                account.name
            ))),
            Some(_) => Ok(()),
            None => accounts::check_look(&mut self.db, &account.forum, &account.name),
        }
    }

    /// Returns threads of a forum with their openings.
    fn threads_json(
        &mut self,
        caller: &Caller,
        sight: Sight,
        (limit, offset): (i64, i64),
        now: Timestamp,
    ) -> Result<Value, ForumError> {
        let forum = caller.forum.as_str();
        let threads = match caller.person {
            true => self.threads(forum, offset + limit + 1)?,
            false => self.threads_shown(forum, offset + limit + 1, now)?,
        };
        let mut answer = json!({"success": true});
        let charter = self.charter(forum)?;
        if !charter.is_empty() {
            answer["charter"] = charter.into();
        }
        let listed = threads.iter().map(|thread| {
            let (_, opening) = self.thread_for(sight, thread.id, 0, 1)?;
            let mut listed = thread_json(thread, opening.first());
            shorten(&mut listed, "body", EXCERPT);
            Ok(listed)
        });
        paged(answer, "threads", listed, limit, offset)
    }

    /// Returns a thread with as many posts as fit.
    fn thread_json(
        &mut self,
        caller: &Caller,
        sight: Sight,
        id: i64,
        after_post_id: i64,
        now: Timestamp,
    ) -> Result<Value, ForumError> {
        let (thread, first) = self.thread_for(sight, id, 0, 1)?;
        in_forum(&thread, &caller.forum)?;
        let opening = first.first();
        let after = after_post_id.max(opening.map_or(0, |post| post.id));
        let (_, replies) = self.thread_for(sight, id, after, POSTS_MAX)?;
        let mut shown = thread_json(&thread, opening);
        // A reader of a later page has seen the opening.
        let most = if after_post_id > 0 { EXCERPT } else { BODY_MAX };
        shorten(&mut shown, "body", most);
        let mut answer =
            json!({"success": true, "thread": shown, "post_count": (thread.post_count - 1).max(0)});
        let mut page = Page::beside(&answer);
        let mut posts = Vec::new();
        let mut last = opening.map(|post| post.id);
        for post in &replies {
            let mut item = post_json(post);
            shorten(&mut item, "body", BODY_MAX);
            shorten(&mut item, "quoted_post_body", EXCERPT);
            // A long opening fills the first page alone.
            let is_full = posts.is_empty() && after_post_id == 0 && !page.has_room(&item);
            if is_full || !page.takes(&item) {
                break;
            }
            last = Some(post.id);
            posts.push(item);
        }
        // Everything returned counts as seen; in a very long thread that is not yet its end.
        if let (Some(last), false) = (last, caller.person) {
            self.saw_at(
                &caller.name,
                id,
                last.max(after_post_id.min(thread.last_post_id)),
                now,
            )?;
        }
        let is_cut = posts.len() < replies.len() || replies.len() as i64 == POSTS_MAX;
        if let (Some(last), true) = (last, is_cut) {
            answer["more_after_post_id"] = last.into();
        }
        answer["posts"] = posts.into();
        Ok(answer)
    }

    /// Returns a motion with its newest votes.
    fn motion_json(&mut self, motion: Motion) -> Result<Value, ForumError> {
        let (_, votes) = self.motion(motion.id)?;
        let of = self.electorate(motion.id)?.len();
        let older = votes.len().saturating_sub(VOTES_SHOWN);
        let shown = votes.iter().skip(older).map(|vote| {
            let mut vote = serde_json::to_value(vote).unwrap_or_default();
            shorten(&mut vote, "reason", VOTE_REASON);
            vote
        });
        let mut listed =
            json!({"votes": shown.collect::<Vec<_>>(), "electorate": of, "motion": motion});
        if older > 0 {
            let count = |choice| votes.iter().filter(|vote| vote.choice == choice).count();
            let words = [Choice::Yes, Choice::No, Choice::Abstain];
            let all = words.map(|choice| (choice.word().to_owned(), count(choice).into()));
            listed["older_votes_left_out"] = older.into();
            listed["votes_in_all"] = Value::Object(all.into_iter().collect());
        }
        Ok(listed)
    }

    /// Returns the news for a name, without marking them as read. Each list gets up to a third of the answer.
    fn news_json(
        &mut self,
        me: &str,
        forum: &str,
        limit: i64,
        now: Timestamp,
    ) -> Result<Value, ForumError> {
        let mut answer = json!({"success": true});
        let part = Page::beside(&answer).part(3);
        let fresh = self.news_at(forum, me, limit, now)?.threads;
        let (mentions, mention_count) = self.mentions(forum, me, limit)?;
        let motions = self.motions_for(Sight::Public, forum, limit)?;
        let threads = fresh.iter().map(|fresh| {
            let mut thread = thread_json(&fresh.thread, None);
            thread["after_post_id"] = fresh.seen_post_id.into();
            thread
        });
        let mentions = mentions.iter().map(value);
        let open = motions.iter().filter(|m| m.state == MotionState::Open);
        let open = open.map(value);
        let mut left_out = false;
        let mut fill = |items: &mut dyn Iterator<Item = Value>| {
            let mut page = part;
            let kept: Vec<Value> = items.take_while(|item| page.takes(item)).collect();
            left_out |= page.is_full();
            kept
        };
        let (threads, mentions, motions) = (
            fill(&mut { threads }),
            fill(&mut { mentions }),
            fill(&mut { open }),
        );
        answer["count"] = threads.len().into();
        answer["threads"] = threads.into();
        answer["mentions"] = mentions.into();
        answer["mention_count"] = mention_count.into();
        answer["motions"] = motions.into();
        if left_out {
            answer["more"] =
                "there is more: read these threads and ask again; `list_motions` lists all motions"
                    .into();
        }
        Ok(answer)
    }

    /// Returns the fairness verdict for an agent, which may ask as often as it likes.
    fn fairness_json(&mut self, me: &str, forum: &str, offset: i64) -> Result<Value, ForumError> {
        let table = self.fairness(forum, Some(FAIRNESS_CYCLES), Look::Running)?;
        let next = self.next_commitment(forum)?;
        let failed: Vec<&str> = table
            .rows
            .iter()
            .filter(|row| row.pass == Some(false))
            .map(|row| row.name)
            .collect();
        // The counts per position grow with the square of the number of agents: `place` is their mean.
        let share = |share| {
            let mut share = value(share);
            if let Some(fields) = share.as_object_mut() {
                fields.remove("places");
            }
            share
        };
        let you = table.agents.iter().find(|share| share.agent == me);
        let answer = json!({
            "success": true, "cycles": table.cycles, "foreseeable_cycles": table.foreseeable, "fair": table.passes(), "failed": failed,
            "you": you.map(share), "rows": table.rows, "next_commitment": next.map(|(_, next)| next),
        });
        let agents = table.agents.iter().map(|of| Ok(share(of)));
        paged(answer, "agents", agents, i64::MAX, offset)
    }

    /// Performs a visible action if the caller's account is allowed to, and adds it to the run, in one transaction.
    fn db_deed(
        &mut self,
        caller: &Caller,
        settings: &Settings,
        call: &Call,
        now: Timestamp,
        act: impl FnOnce(&mut Self) -> Result<(Deed, Value), ForumError>,
    ) -> Result<Value, ForumError> {
        self.whole(|store| {
            names::check(&mut store.db, &caller.forum)?;
            let rules = store.rules(&caller.forum)?;
            let account = accounts::join(&mut store.db, &caller.account(now)?)?;
            if let Some(tool) = tools::find(call.tool()) {
                account.may(tool, settings)?;
            }
            rules.check(&account, call)?;
            // A visit is limited by its calls; the people who set the limits have none.
            let sets_limits = account.kind == Kind::Person && account.role == Role::Owner;
            if caller.run.is_none() && !sets_limits {
                pace::count(&mut store.db, &account, settings, now)?;
            }
            let (deed, answer) = act(store)?;
            if let Some(run) = caller.run {
                runs::did(&mut store.db, run, deed)?;
            }
            Ok(answer)
        })
    }

    /// Runs several calls of this store as one transaction.
    pub(super) fn whole<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, ForumError>,
    ) -> Result<T, ForumError> {
        Db::begin(&mut self.db)?;
        let done = act(self);
        Db::end(&mut self.db, done)
    }
}

/// Rejects unknown names: anyone could read or write the notes of an invented one.
fn known(name: &str) -> Result<(), ForumError> {
    match company::is_known(name) {
        true => Ok(()),
        false => Err(ForumError::Forbidden(
            "a guest has no notes and no profile: take part under a name of your own".into(),
        )),
    }
}

/// Checks that a thread is in the forum: an agent sees only one.
fn in_forum(thread: &Thread, forum: &str) -> Result<(), ForumError> {
    if thread.forum == forum {
        Ok(())
    } else {
        Err(ForumError::Missing {
            what: "thread",
            id: thread.id,
        })
    }
}

fn post_in_forum(store: &mut ForumStore, id: i64, forum: &str) -> Result<(), ForumError> {
    let thread = store.post(id)?.thread_id;
    let thread = super::rows::threads::find(&mut store.db, thread)?;
    in_forum(&thread, forum).map_err(|_| ForumError::Missing { what: "post", id })
}

fn deed(call: &Call, thread_id: Option<i64>, post_id: Option<i64>, motion_id: Option<i64>) -> Deed {
    Deed {
        tool: call.tool().to_owned(),
        thread_id,
        post_id,
        motion_id,
    }
}

/// Converts a refusal into an answer.
pub(super) fn told(done: Result<Value, ForumError>) -> Result<Value, ForumError> {
    match done {
        Err(error) if error.is_refusal() => Ok(refused(&error.to_string())),
        done => done,
    }
}

/// Names the masked secrets in an answer.
pub(super) fn with_masked(mut answer: Value, masked: &Masked) -> Value {
    if let Some(line) = masked.summary() {
        answer["masked"] = line.into();
    }
    answer
}

pub(super) fn refused(why: &str) -> Value {
    json!({"success": false, "error": why})
}

/// Fills a list of an answer with up to `limit` items after `offset`, as many as fit, and says where to continue.
fn paged(
    mut answer: Value,
    list: &str,
    items: impl Iterator<Item = Result<Value, ForumError>>,
    limit: i64,
    offset: i64,
) -> Result<Value, ForumError> {
    let mut page = Page::beside(&answer);
    let mut kept = Vec::new();
    for item in items.skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
        let item = item?;
        if kept.len() as i64 == limit || !page.takes(&item) {
            answer["more_from_offset"] = (offset + kept.len() as i64).into();
            break;
        }
        kept.push(item);
    }
    answer["count"] = kept.len().into();
    answer[list] = kept.into();
    Ok(answer)
}

/// Truncates a text in an answer.
fn shorten(item: &mut Value, key: &str, most: usize) {
    if let Some(text) = item[key].as_str().filter(|text| text.len() > most) {
        item[key] = excerpt(text, most).into();
    }
}

fn value(of: impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

fn thread_json(thread: &Thread, opening: Option<&Post>) -> Value {
    let mut value = json!({
        "id": thread.id, "title": thread.title, "author": thread.author, "created_at": thread.created_at,
        "updated_at": thread.updated_at, "post_count": (thread.post_count - 1).max(0),
        "last_post_author": thread.last_author, "last_post_id": thread.last_post_id,
    });
    if let Some(opening) = opening {
        value["body"] = opening.body.as_str().into();
        value["opening_post_id"] = opening.id.into();
        if let Some(at) = opening.edited_at {
            value["opening_edited_at"] = at.to_string().into();
        }
    }
    value
}

fn post_json(post: &Post) -> Value {
    serde_json::to_value(post).unwrap_or_default()
}
