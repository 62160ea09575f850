//! Converts text to token ids and back, with the vocabulary of a GGUF file.
//!
//! Input: `tokenizer.ggml.*` metadata of a byte-level BPE vocabulary (`model = gpt2`), then text. Output: token ids;
//! bytes of ids. Text never becomes a special token: `<|im_end|>` written by a user or a model is encoded as ordinary
//! characters. Only [`Tokenizer::special`] returns special ids, so only code determines a prompt's structure.

mod bpe;
#[cfg(feature = "llama-cpp")]
mod foreign;
mod split;

use std::collections::HashMap;

use self::bpe::{Merges, Scratch};
#[cfg(feature = "llama-cpp")]
pub(crate) use self::foreign::Words;
use self::split::Splitter;
use crate::error::Error;
use crate::gguf::{Array, Gguf, Value};

/// A vocabulary, ready to encode and decode. Thread-safe.
#[derive(Debug)]
pub struct Tokenizer {
    /// The bytes of all tokens, concatenated; token `i` ends at `ends[i]`.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    kinds: Vec<Kind>,
    /// Ordinary tokens by their bytes.
    by_bytes: HashMap<Box<[u8]>, u32>,
    specials: HashMap<Box<str>, u32>,
    /// The token of each single byte. Some vocabularies lack bytes that rarely occur in text.
    byte_ids: [Option<u32>; 256],
    merges: Merges,
    splitter: Splitter,
    bos: Option<u32>,
    eos: Vec<u32>,
    /// A foreign encoder, for vocabularies that are not byte-level BPE.
    #[cfg(feature = "llama-cpp")]
    foreign: Option<foreign::Encode>,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A piece of text.
    Text,
    /// A special token that is shown as text when a model generates it (`<tool_call>`), but is never parsed from text.
    Mark,
    /// A control token: never text (`<|im_end|>`, padding, unused ids).
    Control,
}

/// Special tokens that end an answer, in the supported model families.
const ENDS: [&str; 5] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
];

impl Tokenizer {
    /// Builds the tokenizer of a model file.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another kind of vocabulary or unknown word-splitting rules,
    /// [`Error::Tokenizer`] if the vocabulary is missing or contradicts itself.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, Error> {
        let model = text(gguf, "tokenizer.ggml.model")?;
        if model != "gpt2" {
            return Err(Error::Unsupported {
                what: format!(
                    "the vocabulary kind `{model}` (known: gpt2, that is byte-level BPE)"
                ),
            });
        }
        let pre = gguf
            .meta("tokenizer.ggml.pre")
            .and_then(Value::as_str)
            .unwrap_or("default");
        let splitter = Splitter::named(pre)?;
        let tokens = texts(gguf, "tokenizer.ggml.tokens")?;
        let merges = texts(gguf, "tokenizer.ggml.merges")?;
        if u32::try_from(tokens.len()).is_err() {
            return Err(bad("more tokens than ids"));
        }
        let kinds = kinds(gguf, tokens.len())?;

        let mut this = Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(tokens.len()),
            kinds,
            by_bytes: HashMap::with_capacity(tokens.len()),
            specials: HashMap::new(),
            byte_ids: [None; 256],
            merges: Merges::with_capacity(merges.len()),
            splitter,
            bos: None,
            eos: Vec::new(),
            #[cfg(feature = "llama-cpp")]
            foreign: None,
        };
        this.add_tokens(tokens)?;
        this.add_merges(merges)?;
        this.find_ends(gguf)?;
        Ok(this)
    }

    /// Appends the tokens of `text` to `out`, never special ones. Skips bytes missing from the vocabulary (in SmolLM2
    /// six control characters and two lead bytes of unassigned planes).
    pub fn encode(&self, text: &str, out: &mut Vec<u32>) {
        #[cfg(feature = "llama-cpp")]
        if let Some(encode) = &self.foreign {
            return encode.apply(text, out);
        }
        let mut pieces = Vec::new();
        self.splitter.split(text, &mut pieces);
        let mut scratch = Scratch::default();
        let mut word = Vec::new();
        for piece in pieces {
            let piece = &text.as_bytes()[piece];
            if self.splitter.whole_words
                && let Some(&id) = self.by_bytes.get(piece)
            {
                out.push(id);
                continue;
            }
            word.clear();
            word.extend(piece.iter().filter_map(|&b| self.byte_ids[usize::from(b)]));
            self.merges.apply(&word, &mut scratch, out);
        }
    }

    /// Returns the special token with exactly this text, such as `<|im_end|>`.
    pub fn special(&self, text: &str) -> Option<u32> {
        self.specials.get(text).copied()
    }

    /// Returns the bytes that `id` adds to a text, often only part of a character; empty for a control token or an id
    /// outside the vocabulary.
    pub fn decode_bytes(&self, id: u32) -> &[u8] {
        match self.kinds.get(id as usize) {
            Some(Kind::Text | Kind::Mark) => self.spelling(id),
            _ => &[],
        }
    }

    /// Returns the spelling of `id` in the vocabulary, even for control tokens: `<|im_end|>`. Empty for an unknown id.
    pub fn spelling(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else {
            return &[];
        };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start as usize..end as usize]
    }

    /// Decodes several tokens; invalid UTF-8 becomes U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids
            .iter()
            .flat_map(|&id| self.decode_bytes(id))
            .copied()
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns whether `id` is a special token, which no text encodes to, or outside the vocabulary.
    pub fn is_special(&self, id: u32) -> bool {
        self.kinds.get(id as usize) != Some(&Kind::Text)
    }

    /// Returns the tokens that end an answer, the file's own end-of-sequence token first.
    pub fn eos_ids(&self) -> &[u32] {
        &self.eos
    }

    /// Returns the token that starts every prompt, if the file requests one.
    pub fn bos_id(&self) -> Option<u32> {
        self.bos
    }

    /// Returns whether [`encode`](Self::encode) splits text as in the model's training, wherever the text begins.
    pub(crate) fn is_canonical(&self) -> bool {
        #[cfg(feature = "llama-cpp")]
        if self.foreign.is_some() {
            return false;
        }
        true
    }

    /// Returns the number of tokens. Ids are `0..vocab_len()`.
    pub fn vocab_len(&self) -> usize {
        self.ends.len()
    }

    fn add_tokens(&mut self, tokens: &[Box<str>]) -> Result<(), Error> {
        let byte_of = bytes_by_char();
        for (id, (token, kind)) in (0u32..).zip(tokens.iter().zip(&self.kinds)) {
            let start = self.bytes.len();
            // Special tokens are spelled literally. By convention, so is an ordinary token with a character that
            // represents no byte.
            let spelt = *kind == Kind::Text && token.chars().all(|c| byte_of.contains_key(&c));
            if spelt {
                self.bytes
                    .extend(token.chars().filter_map(|c| byte_of.get(&c)));
            } else {
                self.bytes.extend_from_slice(token.as_bytes());
            }
            let end = u32::try_from(self.bytes.len())
                .map_err(|_| bad("more than 4 GiB of token texts"))?;
            self.ends.push(end);
            if *kind == Kind::Text {
                let bytes = &self.bytes[start..];
                if let [b] = *bytes {
                    self.byte_ids[usize::from(b)].get_or_insert(id);
                }
                self.by_bytes.entry(bytes.into()).or_insert(id);
            } else {
                self.specials.entry(token.clone()).or_insert(id);
            }
        }
        Ok(())
    }

    fn add_merges(&mut self, merges: &[Box<str>]) -> Result<(), Error> {
        let byte_of = bytes_by_char();
        let spelt = |piece: &str| -> Option<Vec<u8>> {
            piece.chars().map(|c| byte_of.get(&c).copied()).collect()
        };
        for (rank, merge) in (0u32..).zip(merges) {
            let wrong = |why: &str| bad(&format!("merge {rank}, `{merge}`, {why}"));
            let Some((left, right)) = merge.split_once(' ') else {
                return Err(wrong("is not two pieces with a space between them"));
            };
            let (Some(left), Some(right)) = (spelt(left), spelt(right)) else {
                return Err(wrong("has a character that maps to no byte"));
            };
            let joined = [&left[..], &right].concat();
            let id = |piece: &[u8]| self.by_bytes.get(piece).copied();
            match (id(&left), id(&right), id(&joined)) {
                (Some(left), Some(right), Some(joined)) => {
                    self.merges.add(left, right, rank, joined)
                }
                _ => return Err(wrong("names a piece that is no ordinary token")),
            }
        }
        Ok(())
    }

    fn find_ends(&mut self, gguf: &Gguf) -> Result<(), Error> {
        let id = |key: &str| -> Result<Option<u32>, Error> {
            let Some(value) = gguf.meta(key) else {
                return Ok(None);
            };
            match value
                .as_u64()
                .and_then(|n| u32::try_from(n).ok())
                .filter(|&n| (n as usize) < self.ends.len())
            {
                Some(id) => Ok(Some(id)),
                None => Err(bad(&format!(
                    "`{key}` is {value:?}, which is no token id below {}",
                    self.ends.len()
                ))),
            }
        };
        let mut eos = Vec::new();
        let named = [
            "tokenizer.ggml.eos_token_id",
            "tokenizer.ggml.eot_token_id",
            "tokenizer.ggml.eom_token_id",
        ];
        for key in named {
            eos.extend(id(key)?);
        }
        eos.extend(ENDS.iter().filter_map(|text| self.special(text)));
        let bos = id("tokenizer.ggml.bos_token_id")?;
        let adds_bos = match gguf
            .meta("tokenizer.ggml.add_bos_token")
            .and_then(Value::as_bool)
        {
            Some(said) => said,
            // As in llama.cpp: a Llama 3 vocabulary uses a BOS token even if the file does not say so.
            None => self.splitter.whole_words,
        };
        for id in eos {
            if !self.eos.contains(&id) {
                self.eos.push(id);
            }
        }
        if self.eos.is_empty() {
            return Err(bad(
                "no token ends an answer: `tokenizer.ggml.eos_token_id` is missing",
            ));
        }
        self.bos = bos.filter(|_| adds_bos);
        Ok(())
    }
}

/// Returns the kinds of all tokens, given as llama.cpp's `llama_token_type`.
fn kinds(gguf: &Gguf, count: usize) -> Result<Vec<Kind>, Error> {
    let Some(value) = gguf.meta("tokenizer.ggml.token_type") else {
        return Err(bad(
            "`tokenizer.ggml.token_type` is missing, so special tokens cannot be told from text",
        ));
    };
    let Some(types) = value.as_array().and_then(Array::as_i32s) else {
        return Err(bad("`tokenizer.ggml.token_type` is no array of i32"));
    };
    if types.len() != count {
        return Err(bad(&format!(
            "{count} tokens, but {} token types",
            types.len()
        )));
    }
    // 1 ordinary, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte (not in byte-level vocabularies)
    let kind = |&n: &i32| match n {
        1 => Kind::Text,
        4 => Kind::Mark,
        _ => Kind::Control,
    };
    Ok(types.iter().map(kind).collect())
}

/// Maps each character of a byte-level vocabulary to its byte: printable Latin-1 to itself, the other bytes in order
/// from U+0100 on (so a space is `Ġ`, a line end `Ċ`).
fn bytes_by_char() -> HashMap<char, u8> {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let shown = (0..=u8::MAX)
        .filter(|&b| printable(b))
        .map(|b| (char::from(b), b));
    let others = (0..=u8::MAX).filter(|&b| !printable(b));
    shown.chain(('\u{100}'..).zip(others)).collect()
}

fn text<'a>(gguf: &'a Gguf, key: &str) -> Result<&'a str, Error> {
    gguf.meta(key)
        .and_then(Value::as_str)
        .ok_or_else(|| bad(&format!("`{key}` is missing or no text")))
}

fn texts<'a>(gguf: &'a Gguf, key: &str) -> Result<&'a [Box<str>], Error> {
    gguf.meta(key)
        .and_then(Value::as_array)
        .and_then(Array::as_strings)
        .ok_or_else(|| bad(&format!("`{key}` is missing or no array of texts")))
}

fn bad(what: &str) -> Error {
    Error::Tokenizer { what: what.into() }
}
