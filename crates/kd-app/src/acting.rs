//! A request of a program that offers tools: one member acts with them, the others advise it. Or a side request of such
//! a program, such as a title, which the cheapest member answers.

use crate::council::{Opened, Started, continued, held_event, names, new_thread};
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::request::ThreadChoice;
use crate::{ready, seating, secrets, trust};
use kd_core::acting::{Acting, Advice, OpenActing, Talk, quote};
use kd_core::clean::clean_line;
use kd_core::config::{self, Config};
use kd_core::cost::Cost;
use kd_core::last_round::RoundKind;
use kd_core::request::{PictureSource, Said};
use kd_core::seating::{LOCAL, SeatRequest};
use kd_core::secrets::{Masked, Secrets};
use kd_core::{Address, Member, Message, Op, Roster};
use kd_engine::Opening;
use kd_store::user_dirs::make_private;
use kd_store::{Durability, Layout, Thread};
use std::collections::BTreeMap;
use tempfile::TempDir;

/// The heading before the messages of a thread that a program joins.
const EARLIER: &str = "What the user and the council said in this thread before, each line quoted with `| `; it is information, and the conversation goes on below:";
/// Maximum bytes of these messages.
const EARLIER_BYTES_MAX: usize = 64 << 10;
/// Maximum characters of a sender's name.
const NAME_CHARS_MAX: usize = 64;

/// A request of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errand {
    /// The members: one acts, the others advise; empty means as configured.
    pub members: Vec<String>,
    /// The program's conversation and tools.
    pub talk: Talk,
    /// The thread to continue; `None` opens a new one.
    pub thread: Option<String>,
    /// Whether the program named the thread: the members read what others wrote in it.
    pub joins: bool,
    /// Whether this is not the user's question but the program's own, such as a title.
    pub aside: bool,
}

/// Returns whether a backend passes on the tools of a program: services asked over HTTP do. Agent programs use only
/// their own tools, and the built-in model calls none.
fn has_tools(backend: &str) -> bool {
    !config::is_program(backend) && !matches!(backend, LOCAL | "scripted")
}

/// Returns the thread of a request: the given one, a new one, or for a side request one in a folder that is removed with it.
fn place(
    old: Option<Thread>,
    aside: bool,
    seated: &Roster,
    env: &Env,
) -> Result<(Layout, Thread, Option<TempDir>), UserError> {
    match old {
        Some(thread) => Ok((env.layout()?, thread, None)),
        // A side request is not the user's question, so it is not written to their threads.
        None if aside => {
            let (layout, folder) = scratch(env)?;
            let thread = Thread::create(&layout, &names(seated))?;
            let thread = thread.with_durability(Durability::Buffered);
            Ok((layout, thread, Some(folder)))
        }
        None => {
            let (layout, thread) = new_thread(seated, env)?;
            Ok((layout, thread, None))
        }
    }
}

/// Returns when advisers are asked: never for a side request.
fn advice(config: &Config, aside: bool) -> Advice {
    match aside {
        true => Advice::NEVER,
        false => config.serve.advice,
    }
}

/// Puts the messages of a thread that a program joins before the conversation of the program.
fn join(talk: &mut Talk, thread: &Thread) -> Result<(), UserError> {
    let earlier = earlier(&thread.messages()?.messages);
    if !talk.system.is_empty() && !earlier.is_empty() {
        talk.system.push_str("\n\n");
    }
    talk.system.push_str(&earlier);
    Ok(())
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
            joins,
            aside,
        } = errand;
        let mut config = self.config().clone();
        let choice = thread.map_or(ThreadChoice::New, ThreadChoice::Given);
        let old = continued(&choice, self)?;
        config.council.private |= old.as_ref().is_some_and(|t| t.meta().is_private());
        let roster = self.party(&config, members, old.as_ref())?;
        let (acting, advisers) = match aside {
            true => (alone(&config, roster, &talk)?, Vec::new()),
            false => split(&config, roster, &talk)?,
        };
        if let Some(thread) = old.as_ref().filter(|_| joins) {
            join(&mut talk, thread)?;
        }
        let env = self.env();
        let masking = secrets::of(&config, false, env);
        let masked = mask(&masking, &mut talk)?;
        let all: Vec<Member> = std::iter::once(&acting).chain(&advisers).cloned().collect();
        let seated = Roster::new(all.clone(), None);
        ready::make_ready_for(&config, offline, env, &seated, [&acting])?;
        let is_new = old.is_none();
        let (layout, thread, scratch) = place(old, aside, &seated, env)?;
        let opened = Opened::of(layout, &thread, is_new);
        let body = talk.message(is_new);
        let run = || -> Result<_, UserError> {
            let keeps_shape = has_tools(&acting.backend);
            let open = OpenActing {
                thread: thread.id().clone(),
                acting,
                advisers,
                advice: advice(&config, aside),
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
                    formats: false,
                    lease: None,
                    scratch,
                })
            }
            Err(error) => {
                opened.discard_unsaid();
                Err(error)
            }
        }
    }

    /// Returns the members of a request: the named members, the members of the thread, or the configured members.
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
        if let Some(absent) = seating::absent(&seated, sitting.as_deref().unwrap_or_default()) {
            self.env().warn(absent);
        }
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
fn split(
    config: &Config,
    mut party: Vec<Member>,
    talk: &Talk,
) -> Result<(Member, Vec<Member>), UserError> {
    let wanted = config.serve.acting.as_deref();
    let is_wanted = |member: &Member| Some(member.name.as_str()) == wanted;
    let at = party.iter().position(is_wanted);
    let at = at.or_else(|| party.iter().position(|member| has_tools(&member.backend)));
    match at {
        Some(at) if has_tools(&party[at].backend) => {
            let acting = party.remove(at);
            Ok((acting, party))
        }
        at => {
            let party = match at {
                Some(at) => &party[at..=at],
                None => &party,
            };
            Err(nobody_acts(party, talk))
        }
    }
}

/// Returns the error for a party without a member that can act.
fn nobody_acts(party: &[Member], talk: &Talk) -> UserError {
    let why = |member: &Member| {
        let what = match member.backend.as_str() {
            LOCAL => "the built-in model",
            "scripted" => "a script",
            _ => "an agent program, which uses only its own tools",
        };
        format!("{} is {what}", member.name)
    };
    let why: Vec<String> = party.iter().map(why).collect();
    let (what, less) = if !talk.tools.is_empty() {
        ("no member can call the tools of another program", "tools")
    } else if talk.pictures().next().is_some() {
        ("no member can see pictures", "pictures")
    } else {
        ("no member can call the tools of another program", "tools")
    };
    UserError::new(ErrorKind::NoSeat, what)
        .because(why.join("; "))
        .next(format!("add a member that is asked over HTTP, for example `kd config set agents.NAME.backend openai` and `agents.NAME.model`, or send no {less}"))
}

/// Returns the member whose answers cost least. The order is: free members, members by price, members of unknown
/// price, agent programs. Returns the member that answers a side request: the cheapest one, without advisers.
fn alone(config: &Config, party: Vec<Member>, talk: &Talk) -> Result<Member, UserError> {
    cheapest(config, party).ok_or_else(|| nobody_acts(&[], talk))
}

fn cheapest(config: &Config, party: Vec<Member>) -> Option<Member> {
    let price = |member: &Member| match Cost::of(config, member) {
        Cost::Known(price) => (0, price.input.saturating_add(price.output)),
        Cost::Unknown => (1, 0),
        Cost::Budget | Cost::Program => (2, 0),
    };
    party.into_iter().min_by_key(price)
}

/// Returns the newest messages of a thread as a quote. Messages of programs are left out, because programs send their
/// conversation themselves.
fn earlier(messages: &[Message]) -> String {
    let mut kind = RoundKind::Council;
    let mut said = Vec::new();
    for message in messages {
        if message.is_king() {
            kind = RoundKind::of(message);
        }
        if kind != RoundKind::Acting {
            let from = match message.is_king() {
                true => "user".to_owned(),
                false => clean_line(&message.from, NAME_CHARS_MAX),
            };
            said.push(format!("{from}:\n{}", quote(&message.body)));
        }
    }
    let mut bytes = 0;
    let fits = said.iter().rev().take_while(|text| {
        bytes += text.len();
        bytes <= EARLIER_BYTES_MAX
    });
    let left_out = said.len() - fits.count();
    match said.get(left_out..) {
        None | Some([]) => String::new(),
        Some(said) => format!("{EARLIER}\n\n{}", said.join("\n\n")),
    }
}

/// Masks secrets in everything of a request that leaves this machine or is recorded. Ids of calls that contain a
/// secret are replaced, with the same id in a call and its result.
///
/// # Errors
/// If the name of a tool contains one: the program would not know its tool by another name.
fn mask(secrets: &Secrets, talk: &mut Talk) -> Result<Masked, UserError> {
    let Talk {
        system,
        said,
        tools,
        choice: _,
        parallel: _,
        max_tokens: _,
        stop,
        schema,
    } = talk;
    let mut masked = secrets.mask_in_place(system);
    for text in stop {
        masked.add(secrets.mask_in_place(text));
    }
    for tool in tools {
        named(secrets, &tool.name)?;
        masked.add(secrets.mask_in_place(&mut tool.doc));
        masked.add(secrets.mask_json(&mut tool.schema));
    }
    if let Some(schema) = schema {
        masked.add(secrets.mask_json(schema));
    }
    let mut ids = BTreeMap::new();
    for said in said {
        match said {
            Said::User { text } => masked.add(secrets.mask_in_place(text)),
            Said::Tool {
                id, name, result, ..
            } => {
                named(secrets, name)?;
                masked.add(mask_id(secrets, id, &mut ids));
                masked.add(secrets.mask_in_place(result));
            }
            Said::Agent { text, calls } => {
                masked.add(secrets.mask_in_place(text));
                for call in calls {
                    named(secrets, &call.name)?;
                    masked.add(mask_id(secrets, &mut call.id, &mut ids));
                    masked.add(secrets.mask_json(&mut call.arguments));
                }
            }
            Said::Picture { picture } => {
                masked.add(secrets.mask_in_place(&mut picture.media_type));
                // The content of a picture is not read.
                if let PictureSource::Url(url) = &mut picture.source {
                    masked.add(secrets.mask_in_place(url));
                }
            }
        }
    }
    Ok(masked)
}

/// Checks that the name of a tool contains no secret.
fn named(secrets: &Secrets, name: &str) -> Result<(), UserError> {
    match secrets.mask(name).1.is_empty() {
        true => Ok(()),
        false => Err(
            UserError::new(ErrorKind::Usage, "the name of a tool contains a secret")
                .next("rename the tool in the program that offers it"),
        ),
    }
}

/// Replaces an id that contains a secret; `ids` has those before it.
fn mask_id(secrets: &Secrets, id: &mut String, ids: &mut BTreeMap<String, String>) -> Masked {
    let (_, masked) = secrets.mask(id);
    if !masked.is_empty() {
        let number = ids.len();
        let new = ids.entry(std::mem::take(id));
        new.or_insert_with(|| format!("call_masked_{number}"))
            .clone_into(id);
    }
    masked
}

/// A private folder for a thread that is removed after its only answer.
fn scratch(env: &Env) -> Result<(Layout, TempDir), UserError> {
    let own = env.user_dirs().runtime().ok();
    let own = own.filter(|at| make_private(at).is_ok());
    let mut name = tempfile::Builder::new();
    name.prefix("kd-side-");
    let folder = match own {
        Some(own) => name.tempdir_in(own)?,
        None => name.tempdir()?,
    };
    let layout = Layout::create_in(folder.path(), &|name| env.var_os(name))?;
    Ok((layout, folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::request::{Picture, ToolCall, ToolSpec};
    use serde_json::json;

    const SECRET: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";

    /// A request with a secret in every text, names of tools aside.
    fn talk() -> Talk {
        let text = || format!("x {SECRET} y");
        let call = ToolCall {
            id: SECRET.into(),
            name: "read".into(),
            arguments: json!({"path": [text()], text(): 1}),
            ..ToolCall::default()
        };
        let free = ToolCall {
            id: "2".into(),
            name: "read".into(),
            arguments: text().into(),
            ..ToolCall::default()
        };
        let picture = |source| Said::Picture {
            picture: Picture {
                media_type: text(),
                source,
            },
        };
        Talk {
            system: text(),
            said: vec![
                Said::User { text: text() },
                Said::Agent {
                    text: text(),
                    calls: vec![call, free],
                },
                Said::Tool {
                    id: SECRET.into(),
                    name: "read".into(),
                    result: text(),
                    failed: false,
                },
                picture(PictureSource::Url(format!("https://a/{SECRET}"))),
                picture(PictureSource::Data("AAAA".into())),
            ],
            tools: vec![ToolSpec {
                name: "read".into(),
                doc: text(),
                schema: json!({"description": text(), "properties": {"path": {"enum": [text()]}, text(): {}}}),
            }],
            stop: vec![text()],
            schema: Some(json!({"description": text()})),
            ..Talk::default()
        }
    }

    #[test]
    fn no_text_of_a_request_keeps_a_secret_and_calls_keep_their_results() {
        let secrets = Secrets::new([]);
        let mut talk = talk();
        let masked = mask(&secrets, &mut talk).expect("masked");
        let told = format!("{talk:?}");
        assert!(!told.contains(SECRET), "{told}");
        assert_eq!(masked.count(), 18, "{told}");
        let id = talk.calls().last().expect("a call").id.clone();
        assert_eq!(talk.name_of(&id), Some("read"));
        let Said::Tool { id: of, .. } = &talk.said[2] else {
            panic!("a result")
        };
        assert_eq!(*of, id);
        // The program would not know its tool by another name.
        talk.tools[0].name = SECRET.to_owned();
        assert!(mask(&secrets, &mut talk).is_err());
    }
}
