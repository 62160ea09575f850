//! A tokenizer with a foreign encoder: its tokens are copied, its encoder is called.
//!
//! The guarantees of the built-in tokenizer hold: text never becomes a special token, and control tokens have no text.

use std::collections::HashMap;

use super::bpe::Merges;
use super::split::Splitter;
use super::{ENDS, Kind, Tokenizer, bad};
use crate::error::Error;

type Call = Box<dyn Fn(&str) -> Vec<u32> + Send + Sync>;

/// A foreign encoder of plain text.
pub(crate) struct Encode(Call);

/// The parts of a foreign vocabulary.
pub(crate) struct Words {
    /// Each token's bytes (for control tokens, their spelling) and kind.
    pub(crate) tokens: Vec<(Vec<u8>, Kind)>,
    /// Starts every prompt, if the model uses it.
    pub(crate) bos: Option<u32>,
    /// The tokens that end an answer.
    pub(crate) ends: Vec<u32>,
    /// Encodes plain text as tokens, none of them special.
    pub(crate) encode: Call,
}

impl Encode {
    pub(super) fn apply(&self, text: &str, out: &mut Vec<u32>) {
        out.extend((self.0)(text));
    }
}

impl std::fmt::Debug for Encode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encode")
    }
}

impl Tokenizer {
    /// Creates a tokenizer from a foreign vocabulary.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] if no token ends an answer, or the texts are too long.
    pub(crate) fn foreign(words: Words) -> Result<Self, Error> {
        let mut this = Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(words.tokens.len()),
            kinds: Vec::with_capacity(words.tokens.len()),
            by_bytes: HashMap::new(),
            specials: HashMap::new(),
            byte_ids: [None; 256],
            merges: Merges::with_capacity(0),
            splitter: Splitter::named("default")?,
            bos: words.bos,
            eos: words.ends,
            foreign: Some(Encode(words.encode)),
        };
        for (id, (bytes, kind)) in (0u32..).zip(words.tokens) {
            this.bytes.extend_from_slice(&bytes);
            let end = u32::try_from(this.bytes.len())
                .map_err(|_| bad("more than 4 GiB of token texts"))?;
            this.ends.push(end);
            this.kinds.push(kind);
            if kind != Kind::Text
                && let Ok(text) = String::from_utf8(bytes)
            {
                this.specials.entry(text.into()).or_insert(id);
            }
        }
        let named: Vec<u32> = ENDS.iter().filter_map(|text| this.special(text)).collect();
        for id in named {
            if !this.eos.contains(&id) {
                this.eos.push(id);
            }
        }
        if this.eos.is_empty() {
            return Err(bad("no token ends an answer"));
        }
        Ok(this)
    }
}
