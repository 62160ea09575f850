//! Finds the thread of a conversation with tools: by the ids of its calls, which clients send back unchanged, or by its
//! words. A second request does not get a thread that is at work: it gets a new one.

use crate::identity::Identity;
use kd_core::acting::Talk;
use kd_core::request::{Said, ToolCall};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum places remembered; the oldest is dropped first. A session has one or a few in each of its hundreds of turns.
const PLACES_MAX: usize = 8192;
/// Maximum conversations remembered for clients that continue by the id of an answer, and their bytes.
const STORED_MAX: usize = 64;
const STORED_BYTES_MAX: usize = 32 << 20;

type Print = [u8; 32];

/// The threads of conversations with tools.
#[derive(Clone, Default)]
pub(super) struct Acts(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    places: VecDeque<(Print, String)>,
    busy: BTreeSet<String>,
    /// The steps of whole conversations, by the id of their last answer, with their sizes. Clients send instructions and
    /// tools again.
    stored: VecDeque<(Print, Arc<[Said]>, usize)>,
}

/// A thread in use, released when dropped.
pub(super) struct Claim {
    acts: Acts,
    thread: String,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.acts.lock().busy.remove(&self.thread);
    }
}

impl Acts {
    /// Returns the thread of a conversation, if it is known and free.
    pub(super) fn find(&self, caller: &Identity, talk: &Talk) -> Option<(String, Claim)> {
        let base = base(caller, talk);
        let news = talk.news().len();
        let before = &talk.said[..talk.said.len() - news];
        let prints = talk.calls().map(|call| of_call(&base, call));
        let words = (!before.is_empty()).then(|| of_words(&base, before));
        let known = self.lock();
        let find = |print: Print| {
            let mut places = known.places.iter().rev();
            places
                .find(|place| place.0 == print)
                .map(|place| place.1.clone())
        };
        let thread = prints.into_iter().find_map(find).or_else(|| find(words?))?;
        drop(known);
        let claim = self.claim(&thread)?;
        Some((thread, claim))
    }

    /// Takes a thread into use; `None` if it is in use.
    pub(super) fn claim(&self, thread: &str) -> Option<Claim> {
        let is_free = self.lock().busy.insert(thread.to_owned());
        is_free.then(|| Claim {
            acts: self.clone(),
            thread: thread.to_owned(),
        })
    }

    /// Remembers the thread of a conversation after an answer: its text, its calls, and its id where the API continues
    /// by id.
    pub(super) fn remember(
        &self,
        caller: &Identity,
        talk: &Talk,
        (text, calls): (&str, &[ToolCall]),
        thread: &str,
        id: Option<&str>,
    ) {
        let base = base(caller, talk);
        let mut whole = talk.said.clone();
        whole.push(Said::Agent {
            text: text.to_owned(),
            calls: calls.to_vec(),
        });
        let mut known = self.lock();
        let places = calls.iter().map(|call| of_call(&base, call));
        let places = places.chain([of_words(&base, &whole)]);
        known
            .places
            .extend(places.map(|print| (print, thread.to_owned())));
        let surplus = known.places.len().saturating_sub(PLACES_MAX);
        known.places.drain(..surplus);
        if let Some(id) = id {
            let bytes = size(&whole);
            known
                .stored
                .push_back((of_id(caller, id), whole.into(), bytes));
            let over = |stored: &VecDeque<(Print, Arc<[Said]>, usize)>| {
                let bytes: usize = stored.iter().map(|talk| talk.2).sum();
                stored.len() > STORED_MAX || bytes > STORED_BYTES_MAX
            };
            while over(&known.stored) {
                known.stored.pop_front();
            }
        }
    }

    /// Returns the steps of the conversation that ended with an answer.
    pub(super) fn stored(&self, caller: &Identity, id: &str) -> Option<Arc<[Said]>> {
        let print = of_id(caller, id);
        let known = self.lock();
        let mut stored = known.stored.iter().rev();
        stored
            .find(|talk| talk.0 == print)
            .map(|talk| Arc::clone(&talk.1))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins a digest: the caller, and how the conversation began. Ids of calls alone are not unique.
fn base(caller: &Identity, talk: &Talk) -> Sha256 {
    let mut print = Sha256::new();
    print.update(caller.print());
    if let Some(Said::User { text }) = talk.said.first() {
        add(&mut print, text);
    }
    print
}

fn of_call(base: &Sha256, call: &ToolCall) -> Print {
    let mut print = base.clone();
    for part in ["call", &call.id, &call.name] {
        add(&mut print, part);
    }
    print.finalize().into()
}

fn of_words(base: &Sha256, said: &[Said]) -> Print {
    let mut print = base.clone();
    for said in said {
        match said {
            Said::User { text } => add(&mut print, text),
            Said::Tool { id, result, .. } => {
                add(&mut print, id);
                add(&mut print, result);
            }
            Said::Agent { text, calls } => {
                add(&mut print, text);
                calls.iter().for_each(|call| add(&mut print, &call.id));
            }
            Said::Picture { picture } => {
                add(&mut print, "picture");
                add(&mut print, &picture.url());
            }
        }
    }
    print.finalize().into()
}

fn of_id(caller: &Identity, id: &str) -> Print {
    let mut print = Sha256::new();
    print.update(caller.print());
    add(&mut print, "answer");
    add(&mut print, id);
    print.finalize().into()
}

/// Adds a part. Clients trim what they keep.
fn add(print: &mut Sha256, part: &str) {
    let part = part.trim();
    print.update((part.len() as u64).to_le_bytes());
    print.update(part);
}

/// Returns about how many bytes of memory steps take.
fn size(said: &[Said]) -> usize {
    let said = said.iter().map(|said| {
        let own = size_of::<Said>();
        own + match said {
            Said::User { text } => text.len(),
            Said::Tool {
                id, name, result, ..
            } => id.len() + name.len() + result.len(),
            Said::Agent { text, calls } => {
                let of = |call: &ToolCall| {
                    let arguments = call.arguments_text().len();
                    size_of::<ToolCall>() + call.id.len() + call.name.len() + arguments
                };
                text.len() + calls.iter().map(of).sum::<usize>()
            }
            Said::Picture { picture } => picture.media_type.len() + picture.size(),
        }
    });
    said.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Tokens;
    use kd_core::request::{Picture, PictureSource, ToolSpec};
    use serde_json::json;

    fn caller(token: &str) -> Identity {
        let tokens = Tokens::parse(token).expect("a token");
        tokens.owner(token).expect("its owner")
    }

    fn talk(first: &str) -> Talk {
        let text = first.to_owned();
        Talk {
            said: vec![Said::User { text }],
            ..Talk::default()
        }
    }

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: "read".into(),
            arguments: json!({}),
            ..ToolCall::default()
        }
    }

    /// The conversation after the result of a call.
    fn after(mut talk: Talk, id: &str) -> Talk {
        talk.said.push(Said::Agent {
            text: "changed by the client".into(),
            calls: vec![call(id)],
        });
        talk.said.push(Said::Tool {
            id: id.into(),
            name: "read".into(),
            result: "ok".into(),
            failed: false,
        });
        talk
    }

    #[test]
    fn a_conversation_is_found_by_its_calls_for_its_caller_only_and_while_it_is_free() {
        let (ada, eve) = (caller("0123456789abcdef"), caller("fedcba9876543210"));
        let acts = Acts::default();
        let found = |who: &Identity, talk: &Talk| acts.find(who, talk).map(|found| found.0);
        acts.remember(&ada, &talk("Fix it."), ("x", &[call("c1")]), "t1", None);
        let next = after(talk("Fix it."), "c1");
        assert_eq!(found(&ada, &next).as_deref(), Some("t1"));
        assert_eq!(found(&eve, &next), None);
        assert_eq!(found(&ada, &after(talk("Fix it."), "c2")), None);
        assert_eq!(found(&ada, &after(talk("Another."), "c1")), None);
        assert_eq!(found(&ada, &talk("Fix it.")), None);
        let (_, claim) = acts.find(&ada, &next).expect("free");
        assert_eq!(found(&ada, &next), None);
        drop(claim);
        assert!(found(&ada, &next).is_some());
        // A conversation without calls is found by its words.
        acts.remember(&ada, &talk("Hi."), ("Hello.", &[]), "t2", None);
        let mut words = talk("Hi.");
        words.said.push(Said::Agent {
            text: "Hello.\n".into(),
            calls: Vec::new(),
        });
        words.said.push(Said::User {
            text: "And?".into(),
        });
        assert_eq!(found(&ada, &words).as_deref(), Some("t2"));
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let ada = caller("0123456789abcdef");
        let acts = Acts::default();
        // Each kind of step counts. What every request repeats is not kept: instructions and tools.
        let text = || "x".repeat(4 << 20);
        let long = |name: String, arguments: serde_json::Value| ToolCall {
            id: "c".into(),
            name,
            arguments,
            ..ToolCall::default()
        };
        let agent = |call| Said::Agent {
            text: String::new(),
            calls: vec![call],
        };
        let tool = |id, name, result| Said::Tool {
            id,
            name,
            result,
            failed: false,
        };
        let picture = Picture {
            media_type: "image/png".into(),
            source: PictureSource::Data(text()),
        };
        for big in [
            Said::User { text: text() },
            agent(long(text(), json!({}))),
            agent(long("read".into(), json!({"path": text()}))),
            tool(text(), String::new(), String::new()),
            tool(String::new(), text(), String::new()),
            tool(String::new(), String::new(), text()),
            Said::Picture { picture },
        ] {
            let acts = Acts::default();
            let mut talk = talk("Hi.");
            talk.said.push(big);
            for n in 0..20 {
                acts.remember(&ada, &talk, ("x", &[]), "t", Some(&format!("r{n}")));
            }
            let bytes: usize = acts.lock().stored.iter().map(|stored| stored.2).sum();
            assert!(
                bytes <= STORED_BYTES_MAX && bytes > STORED_BYTES_MAX / 2,
                "{bytes}"
            );
            assert!(acts.stored(&ada, "r19").is_some() && acts.stored(&ada, "r0").is_none());
        }
        let mut offers = talk("Hi.");
        offers.system = text();
        offers.tools.push(ToolSpec {
            name: "read".into(),
            doc: text(),
            schema: json!({}),
        });
        acts.remember(&ada, &offers, ("x", &[]), "t", Some("r"));
        assert!(acts.lock().stored[0].2 < 4096);
        for _ in 0..PLACES_MAX {
            acts.remember(&ada, &talk("Hi."), ("x", &[]), "t", None);
        }
        assert_eq!(acts.lock().places.len(), PLACES_MAX);
    }
}
