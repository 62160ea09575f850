//! From a client's transcript to a question, and from the next transcript back to the thread of the last answer.
//!
//! Clients send the whole conversation each time. Where it goes on behind an answer of ours, its thread goes on with the
//! new question alone; else the question carries the conversation with it.

use super::wire::{Chat, Fault, Message};
use crate::answer::Answer;
use crate::identity::Identity;
use crate::kingdom::{Ask, Method};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// The longest question, in bytes: what a council takes.
const QUESTION_BYTES_MAX: usize = 4 << 20;
/// Conversations that are remembered; the oldest goes first.
const TALKS_MAX: usize = 256;

/// What stands for a conversation up to here.
type Print = [u8; 32];

/// The threads of conversations, by what was said in them.
#[derive(Default)]
pub(super) struct Talks(Mutex<VecDeque<(Print, String)>>);

/// A question, ready to be put.
pub(super) struct Asked {
    /// Where its thread is known, in that.
    pub(super) ask: Ask,
    /// In a new thread.
    pub(super) anew: Ask,
    /// The conversation with its question.
    so_far: Sha256,
}

impl Talks {
    /// The question of a transcript.
    pub(super) fn ask(
        &self,
        caller: &Identity,
        chat: &Chat,
        method: Method,
        members: Vec<String>,
    ) -> Result<Asked, Fault> {
        let (last, before) = chat.messages.split_last().ok_or_else(Fault::path)?;
        let mut so_far = Sha256::new();
        so_far.update(caller.print());
        add(&mut so_far, "model", &chat.model);
        for message in before {
            add(&mut so_far, role(message), &message.text());
        }
        let thread = match before.last() {
            Some(answer) if answer.role == "assistant" => {
                self.take(so_far.clone().finalize().into())
            }
            _ => None,
        };
        add(&mut so_far, role(last), &last.text());
        let anew = Ask {
            method,
            question: question(before, last),
            members,
            thread: None,
        };
        if anew.question.len() > QUESTION_BYTES_MAX {
            let why = "the conversation is longer than 4 MiB: begin a new one";
            return Err(Fault::invalid(Some("messages"), why));
        }
        let ask = match thread {
            None => anew.clone(),
            Some(thread) => Ask {
                question: last.text(),
                thread: Some(thread),
                ..anew.clone()
            },
        };
        Ok(Asked { ask, anew, so_far })
    }

    /// The thread of a conversation. It is forgotten: a second question at the same place begins a thread of its own.
    fn take(&self, print: Print) -> Option<String> {
        let mut talks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = talks.iter().position(|(known, _)| *known == print)?;
        talks.remove(at).map(|(_, thread)| thread)
    }

    /// Remembers where the conversation goes on behind this answer.
    pub(super) fn remember(&self, asked: &Asked, answer: &Answer) {
        let mut print = asked.so_far.clone();
        add(&mut print, "assistant", &answer.content());
        let mut talks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        talks.push_back((print.finalize().into(), answer.thread().to_owned()));
        if talks.len() > TALKS_MAX {
            talks.pop_front();
        }
    }
}

/// Adds a message to a print. Clients trim what they keep.
fn add(print: &mut Sha256, role: &str, text: &str) {
    let text = text.trim();
    print.update((role.len() as u64).to_le_bytes());
    print.update(role);
    print.update((text.len() as u64).to_le_bytes());
    print.update(text);
}

/// The role of a message, where clients and services agree that two words mean one.
fn role(message: &Message) -> &str {
    match message.role.as_str() {
        "developer" => "system",
        "function" => "tool",
        role => role,
    }
}

/// The question with the conversation before it.
fn question(before: &[Message], last: &Message) -> String {
    let last_text = last.text();
    if before.is_empty() {
        return last_text;
    }
    let (systems, talk): (Vec<_>, Vec<_>) = before.iter().partition(|m| role(m) == "system");
    let mut out = String::new();
    let systems: Vec<String> = systems
        .iter()
        .map(|m| m.text())
        .filter(|t| !t.trim().is_empty())
        .collect();
    if !systems.is_empty() {
        let _ = write!(
            out,
            "What the program that asks says:\n\n{}\n\n",
            systems.join("\n\n")
        );
    }
    let said = |message: &Message| {
        let name = message
            .name
            .as_deref()
            .map(|name| format!(" {name}"))
            .unwrap_or_default();
        format!("{}{name}: {}", role(message), message.text())
    };
    let talk: Vec<String> = talk.iter().map(|message| said(message)).collect();
    if !talk.is_empty() {
        let _ = write!(out, "The conversation so far:\n\n{}\n\n", talk.join("\n\n"));
    }
    let title = match role(last) {
        "tool" => "The result of the last call; go on:",
        _ => "The question:",
    };
    let _ = write!(out, "{title}\n\n{last_text}");
    out
}
