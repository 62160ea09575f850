//! The items of earlier answers by their IDs: clients of OpenAI Responses send only the ID of an item that the server
//! stores.

use super::fault::{Fault, NAME_CHARS_MAX};
use crate::http::BODY_BYTES_MAX;
use crate::identity::Identity;
use kd_core::clean::clean_line;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
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
    items: HashMap<Print, Item>,
    /// The oldest first, by their numbers. An item that was replaced is here under its old number, too.
    order: VecDeque<(Print, u64)>,
    bytes: usize,
    next: u64,
}

struct Item {
    number: u64,
    value: Value,
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
            let number = known.next;
            known.next += 1;
            known.bytes += bytes;
            known.order.push_back((print, number));
            let item = Item {
                number,
                value: item,
                bytes,
            };
            if let Some(replaced) = known.items.insert(print, item) {
                known.bytes -= replaced.bytes;
            }
        }
        while known.order.len() > ITEMS_MAX || known.bytes > BYTES_MAX {
            let Some((print, number)) = known.order.pop_front() else {
                break;
            };
            if known
                .items
                .get(&print)
                .is_some_and(|item| item.number == number)
                && let Some(item) = known.items.remove(&print)
            {
                known.bytes -= item.bytes;
            }
        }
    }

    /// Returns an item of a caller if it has at most `left` bytes, which it takes from them.
    fn find(&self, caller: &Identity, id: &str, left: &mut usize) -> Result<Value, Refused> {
        let known = self.lock();
        let item = known
            .items
            .get(&print(caller, id))
            .ok_or(Refused::Unknown)?;
        *left = left.checked_sub(item.bytes).ok_or(Refused::Long)?;
        Ok(item.value.clone())
    }

    /// Puts the items in the place of the references to them. `param` is the field that holds them.
    ///
    /// # Errors
    /// If one is not known, or all together are longer than a request may be.
    pub(super) fn resolve(
        &self,
        caller: &Identity,
        items: &mut [Value],
        param: &'static str,
    ) -> Result<(), Fault> {
        let mut left = BODY_BYTES_MAX;
        for item in items {
            let is_reference = match item["type"].as_str() {
                Some(kind) => kind == "item_reference",
                None => item.get("role").is_none() && item["id"].is_string(),
            };
            if is_reference {
                let id = item["id"].as_str().unwrap_or_default();
                *item = self
                    .find(caller, id, &mut left)
                    .map_err(|why| why.fault(id, param))?;
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

/// The reason why a reference cannot be followed.
enum Refused {
    Unknown,
    Long,
}

impl Refused {
    fn fault(&self, id: &str, param: &'static str) -> Fault {
        let why = match self {
            Self::Unknown => format!(
                "the item `{}` is not known: the server remembers those of its newest answers until it exits; send the item itself, which clients do after `store: false`",
                clean_line(id, NAME_CHARS_MAX)
            ),
            Self::Long => format!(
                "the items that the request refers to have more than {} MiB together: refer to fewer of them",
                BODY_BYTES_MAX >> 20
            ),
        };
        Fault::invalid(Some(param), why)
    }
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
        let is_known = |id| items.find(&ada, id, &mut usize::MAX.clone()).is_ok();
        assert!(is_known("msg_19") && !is_known("msg_0"));
        for n in 0..=ITEMS_MAX {
            items.remember(&ada, vec![item(n, String::new())]);
        }
        let known = items.lock();
        let sum: usize = known.items.values().map(|item| item.bytes).sum();
        assert_eq!((known.items.len(), known.bytes), (ITEMS_MAX, sum));
    }

    #[test]
    fn an_item_that_is_remembered_again_counts_once() {
        let ada = caller("0123456789abcdef");
        let items = Items::default();
        for text in ["old", "newer"] {
            items.remember(&ada, vec![json!({"id": "msg_1", "text": text})]);
        }
        let found = items.find(&ada, "msg_1", &mut 1024);
        assert!(found.is_ok_and(|item| item["text"] == "newer"));
        let known = items.lock();
        let sum: usize = known.items.values().map(|item| item.bytes).sum();
        assert_eq!((known.items.len(), known.bytes), (1, sum));
    }

    #[test]
    fn references_make_no_request_longer_than_one_may_be() {
        let ada = caller("0123456789abcdef");
        let items = Items::default();
        items.remember(
            &ada,
            vec![json!({"id": "msg_1", "text": "x".repeat(1 << 20)})],
        );
        let mut few = vec![json!({"type": "item_reference", "id": "msg_1"}); 7];
        items.resolve(&ada, &mut few, "input").expect("they fit");
        let mut many = vec![json!({"type": "item_reference", "id": "msg_1"}); 20_000];
        let fault = items
            .resolve(&ada, &mut many, "input")
            .expect_err("too long");
        assert!(fault.message.contains("8 MiB"), "{}", fault.message);
        let resolved = many.iter().filter(|item| item["type"].is_null()).count();
        assert_eq!(resolved, 7, "what is left is not copied");
    }
}
