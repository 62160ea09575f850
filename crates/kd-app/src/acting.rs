//! A request of a program that offers tools: one member acts with them, the others advise it. Or a side request of such
//! a program, such as a title, which the cheapest member answers.

use crate::council::{Opened, Started, continued, held_event, new_thread};
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::request::ThreadChoice;
use crate::{ready, seating, secrets, trust};
use kd_core::acting::{Acting, Advice, OpenActing, Talk};
use kd_core::config::{self, Config};
use kd_core::cost::Cost;
use kd_core::request::Said;
use kd_core::seating::{LOCAL, SeatRequest};
use kd_core::secrets::{Masked, Secrets};
use kd_core::{Address, Member, Op, Roster};
use kd_engine::Opening;
use kd_store::Thread;
use serde_json::Value;

/// A request of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errand {
    /// The members: one acts, the others advise; empty means as configured.
    pub members: Vec<String>,
    /// The program's conversation and tools.
    pub talk: Talk,
    /// The thread to continue; `None` opens a new one.
    pub thread: Option<String>,
    /// Whether this is not the user's question but the program's own, such as a title.
    pub aside: bool,
}

/// Returns whether a backend passes on the tools of a program: services asked over HTTP do. Agent programs use only
/// their own tools, and the built-in model calls none.
fn has_tools(backend: &str) -> bool {
    !config::is_program(backend) && !matches!(backend, LOCAL | "scripted")
}

impl Kingdom {
    /// Answers a program's request. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If no member can act, a member does not exist or is held back, or the thread cannot be opened.
    pub fn act(&self, errand: Errand, offline: bool) -> Result<Started, UserError> {
        let Errand {
            members,
            mut talk,
            thread,
            aside,
        } = errand;
        let mut config = self.config().clone();
        let choice = thread.map_or(ThreadChoice::New, ThreadChoice::Given);
        let old = continued(&choice, self)?;
        config.council.private |= old.as_ref().is_some_and(|t| t.meta().is_private());
        let roster = self.party(&config, members, old.as_ref())?;
        let (acting, advisers) = if aside {
            let cheapest = cheapest(&config, roster);
            (cheapest.ok_or_else(|| nobody_acts(&[]))?, Vec::new())
        } else {
            split(&config, roster)?
        };
        let env = self.env();
        let masking = secrets::of(&config, false, env);
        let masked = mask(&masking, &mut talk);
        let all: Vec<Member> = std::iter::once(&acting).chain(&advisers).cloned().collect();
        let seated = Roster::new(all.clone(), None);
        ready::make_ready_for(&config, offline, env, &seated, [&acting])?;
        let is_new = old.is_none();
        let (layout, thread) = match old {
            Some(thread) => (env.layout()?, thread),
            None => new_thread(&seated, env)?,
        };
        let opened = Opened::of(layout, &thread, is_new);
        let body = talk.message(is_new);
        let run = || -> Result<_, UserError> {
            let keeps_shape = has_tools(&acting.backend);
            let open = OpenActing {
                thread: thread.id().clone(),
                acting,
                advisers,
                advice: if aside {
                    Advice::NEVER
                } else {
                    config.serve.advice
                },
                talk,
                keeps_shape,
                secrets: masking.clone(),
                messages: u32::try_from(thread.count()?).unwrap_or(u32::MAX),
            };
            let opening = opening(open, all, &thread);
            let engine = self.engine(&config, masking).telling(held_event(self, &[]));
            Ok(engine.run(thread, opening)?)
        };
        match run() {
            Ok(session) => {
                if is_new && !aside {
                    // For the next question of the user; this one does not depend on it.
                    let _ = opened.layout.set_current_thread(&opened.id);
                }
                Ok(Started {
                    session,
                    say: Op::Say {
                        body,
                        to: Address::All,
                    },
                    notices: masked.line().into_iter().collect(),
                    opened,
                    acts: true,
                    lease: None,
                })
            }
            Err(error) => {
                opened.discard_unsaid();
                Err(error)
            }
        }
    }

    /// Returns the members of a request: the named ones, those of the thread, or the configured ones.
    fn party(
        &self,
        config: &Config,
        members: Vec<String>,
        old: Option<&Thread>,
    ) -> Result<Vec<Member>, UserError> {
        let thread = old.zip(self.layout());
        let named = trust::Named {
            members: &members,
            thread: thread.map(|(thread, layout)| trust::GoesOn::of(&layout, thread, None)),
            ..trust::Named::default()
        };
        let sitting = trust::check(self.project(), named, self.env())?;
        let request = SeatRequest {
            members: members.clone(),
            ..SeatRequest::default()
        };
        let seated = seating::seat(config, request, sitting.as_deref())?;
        let mut party = seated.roster.members().to_vec();
        if let Some(name) = config.serve.acting.as_ref().filter(|_| members.is_empty())
            && !party.iter().any(|member| member.name.as_str() == name)
        {
            trust::check_named(self.project(), [name.as_str()])?;
            let request = SeatRequest {
                members: vec![name.clone()],
                ..SeatRequest::default()
            };
            let alone = seating::seat(config, request, None)?;
            party.splice(0..0, alone.roster.members().iter().cloned());
        }
        Ok(party)
    }
}

fn opening(open: OpenActing, seats: Vec<Member>, thread: &Thread) -> Opening {
    let (machine, opened) = Acting::open(open);
    Opening {
        id: thread.id().clone(),
        machine: Box::new(machine),
        opened,
        seats,
    }
}

/// Splits a party into the acting member and its advisers.
fn split(config: &Config, mut party: Vec<Member>) -> Result<(Member, Vec<Member>), UserError> {
    let wanted = config.serve.acting.as_deref();
    let is_wanted = |member: &Member| Some(member.name.as_str()) == wanted;
    let at = party.iter().position(is_wanted);
    let at = at.or_else(|| party.iter().position(|member| has_tools(&member.backend)));
    match at {
        Some(at) if has_tools(&party[at].backend) => {
            let acting = party.remove(at);
            Ok((acting, party))
        }
        at => Err(nobody_acts(match at {
            Some(at) => &party[at..=at],
            None => &party,
        })),
    }
}

/// Returns the error for a party without a member that can act.
fn nobody_acts(party: &[Member]) -> UserError {
    let why = |member: &Member| {
        let what = match member.backend.as_str() {
            LOCAL => "the built-in model",
            "scripted" => "a script",
            _ => "an agent program, which uses only its own tools",
        };
        format!("{} is {what}", member.name)
    };
    let why: Vec<String> = party.iter().map(why).collect();
    UserError::new(
        ErrorKind::NoSeat,
        "no member can call the tools of another program",
    )
    .because(why.join("; "))
    .next("add a member that is asked over HTTP, for example `kd config set agents.NAME.backend openai` and `agents.NAME.model`, or send no tools")
}

/// Returns the member whose answers cost least: free ones, then by price, then those of unknown price, then programs.
fn cheapest(config: &Config, party: Vec<Member>) -> Option<Member> {
    let price = |member: &Member| match Cost::of(config, member) {
        Cost::Known(price) => (0, price.input.saturating_add(price.output)),
        Cost::Unknown => (1, 0),
        Cost::Budget | Cost::Program => (2, 0),
    };
    party.into_iter().min_by_key(price)
}

/// Masks secrets in everything that members will read.
fn mask(secrets: &Secrets, talk: &mut Talk) -> Masked {
    let mut masked = secrets.mask_in_place(&mut talk.system);
    for said in &mut talk.said {
        match said {
            Said::User { text } => masked.add(secrets.mask_in_place(text)),
            Said::Tool { result, .. } => masked.add(secrets.mask_in_place(result)),
            Said::Agent { text, calls } => {
                masked.add(secrets.mask_in_place(text));
                for call in calls {
                    mask_value(secrets, &mut call.arguments, &mut masked);
                }
            }
        }
    }
    masked
}

/// Masks secrets in the texts of a JSON value.
fn mask_value(secrets: &Secrets, value: &mut Value, masked: &mut Masked) {
    match value {
        Value::String(text) => masked.add(secrets.mask_in_place(text)),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| mask_value(secrets, item, masked)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| mask_value(secrets, field, masked)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
