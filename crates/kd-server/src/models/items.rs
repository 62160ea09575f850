//! The items of earlier answers by their IDs: clients of OpenAI Responses send only the ID of an item that the server
//! stores.

use super::fault::{Fault, NAME_CHARS_MAX};
use crate::identity::Identity;
use kd_core::clean::clean_line;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum items remembered, and their bytes; the oldest are dropped first.
const ITEMS_MAX: usize = 8192;
const BYTES_MAX: usize = 32 << 20;

type Print = [u8; 32];

/// The items.
#[derive(Default)]
pub(super) struct Items(Mutex<Known>);

#[derive(Default)]
struct Known {
    items: VecDeque<(Print, Value, usize)>,
    bytes: usize,
}

impl Items {
    /// Remembers the items of an answer for its caller.
    pub(super) fn remember(&self, caller: &Identity, items: Vec<Value>) {
        let mut known = self.lock();
        for item in items {
            let Some(id) = item["id"].as_str() else {
                continue;
            };
            let bytes = item.to_string().len();
            let print = print(caller, id);
            known.items.push_back((print, item, bytes));
            known.bytes += bytes;
        }
        while known.items.len() > ITEMS_MAX || known.bytes > BYTES_MAX {
            let Some((_, _, bytes)) = known.items.pop_front() else {
                break;
            };
            known.bytes -= bytes;
        }
    }

    /// Returns an item of a caller.
    fn find(&self, caller: &Identity, id: &str) -> Option<Value> {
        let print = print(caller, id);
        let known = self.lock();
        let mut items = known.items.iter().rev();
        items
            .find(|item| item.0 == print)
            .map(|item| item.1.clone())
    }

    /// Puts the items in the place of the references to them. `param` is the field that holds them.
    ///
    /// # Errors
    /// If one is not known.
    pub(super) fn resolve(
        &self,
        caller: &Identity,
        items: &mut [Value],
        param: &'static str,
    ) -> Result<(), Fault> {
        for item in items {
            let is_reference = match item["type"].as_str() {
                Some(kind) => kind == "item_reference",
                None => item.get("role").is_none() && item["id"].is_string(),
            };
            if is_reference {
                let id = item["id"].as_str().unwrap_or_default();
                *item = self.find(caller, id).ok_or_else(|| unknown(id, param))?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn print(caller: &Identity, id: &str) -> Print {
    let mut print = Sha256::new();
    print.update(caller.print());
    print.update(id);
    print.finalize().into()
}

fn unknown(id: &str, param: &'static str) -> Fault {
    let id = clean_line(id, NAME_CHARS_MAX);
    let why = format!(
        "the item `{id}` is not known: the server remembers those of its newest answers until it exits; send the item itself, which clients do after `store: false`"
    );
    Fault::invalid(Some(param), why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Tokens;
    use serde_json::json;

    fn caller(token: &str) -> Identity {
        let tokens = Tokens::parse(token).expect("a token");
        tokens.owner(token).expect("its owner")
    }

    #[test]
    fn a_reference_becomes_the_item_for_its_caller_only() {
        let (ada, eve) = (caller("0123456789abcdef"), caller("fedcba9876543210"));
        let items = Items::default();
        let said = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": []});
        items.remember(&ada, vec![said.clone()]);
        let question = json!({"role": "user", "content": "hi", "id": "msg_2"});
        for reference in [
            json!({"type": "item_reference", "id": "msg_1"}),
            json!({"id": "msg_1"}),
        ] {
            let mut input = [question.clone(), reference.clone()];
            items.resolve(&ada, &mut input, "input").expect("known");
            assert_eq!(input, [question.clone(), said.clone()]);
            let mut input = [question.clone(), reference];
            let fault = items
                .resolve(&eve, &mut input, "input")
                .expect_err("not hers");
            assert!(fault.message.contains("`msg_1`"), "{}", fault.message);
        }
        let fault = items.resolve(&ada, &mut [json!({"type": "item_reference"})], "input");
        assert!(fault.is_err());
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let ada = caller("0123456789abcdef");
        let items = Items::default();
        let item = |n: usize, text: String| json!({"id": format!("msg_{n}"), "text": text});
        for n in 0..20 {
            items.remember(&ada, vec![item(n, "x".repeat(4 << 20))]);
        }
        let bytes = items.lock().bytes;
        assert!(bytes <= BYTES_MAX && bytes > BYTES_MAX / 2, "{bytes}");
        assert!(items.find(&ada, "msg_19").is_some() && items.find(&ada, "msg_0").is_none());
        for n in 0..=ITEMS_MAX {
            items.remember(&ada, vec![item(n, String::new())]);
        }
        let known = items.lock();
        let sum: usize = known.items.iter().map(|item| item.2).sum();
        assert_eq!((known.items.len(), known.bytes), (ITEMS_MAX, sum));
    }
}
