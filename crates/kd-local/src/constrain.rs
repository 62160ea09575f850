//! Constrains a model to a JSON schema: only tokens that can still lead to a valid answer may be drawn.
//!
//! Input: a vocabulary (once per model) and a schema (once per answer). Output for each step: the allowed tokens, the
//! forced tokens that need no model step, and the choice of a vote when it is made. `llguidance` does the grammar work;
//! this module adapts the schema ([`schema`]) and reads the votes ([`Choice`]).
//!
//! Generating one answer:
//! ```no_run
//! # fn model(_: &[u32]) -> Vec<f32> { vec![] }
//! # fn draw(_: &[f32], _: &kd_local::constrain::Mask) -> u32 { 0 }
//! # fn answer(vocab: &kd_local::constrain::Vocab, schema: &serde_json::Value) -> Result<(), kd_local::Error> {
//! use kd_local::constrain::Constraint;
//! let mut c = Constraint::new(vocab, schema)?;
//! c.watch(&["agree".into(), "disagree".into()]);
//! let mut logits = model(&c.forced()?); // forced tokens are evaluated with the prompt
//! while !c.is_done() {
//!     if let Some(choice) = c.choice()? {
//!         println!("{:?}: {:?}", choice.labels(), choice.probabilities(&logits));
//!     }
//!     let token = draw(&logits, c.mask()?);
//!     c.accept(token)?;
//!     let mut next = vec![token];
//!     next.extend(c.forced()?); // one model step for all of them
//!     logits = model(&next);
//! }
//! # Ok(()) }
//! ```

mod choice;
mod schema;

use std::sync::{Arc, OnceLock};

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{
    InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenizerEnv,
};
use llguidance::{Matcher, ParserFactory, panic_utils};
use serde_json::Value;

pub use self::choice::Choice;
use self::choice::Watch;
use crate::error::Error;
use crate::tokenizer::Tokenizer;

/// Tokens longer than this are never allowed in constrained answers: the grammar library walks its token tree
/// recursively, as deep as the longest token.
const MAX_TOKEN_BYTES: usize = 512;

/// The state shared by all constrained answers of one model. Cheap to create: the first [`Constraint`] builds the token
/// tree (0.15 to 0.35 s for 50,000 tokens), or an earlier call of [`warm`](Self::warm).
pub struct Vocab {
    tokenizer: Arc<Tokenizer>,
    factory: OnceLock<Result<ParserFactory, Error>>,
}

/// The state of one constrained answer. Use a new one for each generation.
pub struct Constraint {
    tokenizer: Arc<Tokenizer>,
    matcher: Matcher,
    /// The schema given to the grammar compiler.
    schema: Value,
    /// The allowed next tokens; computed once per step.
    mask: Option<Mask>,
    token_cap: usize,
    text: Vec<u8>,
    watch: Option<Watch>,
}

/// The set of allowed next tokens, one bit per id.
#[derive(Debug, Clone, PartialEq)]
pub struct Mask(SimpleVob);

impl Vocab {
    /// Wraps `tokenizer`. Does no work yet.
    pub fn new(tokenizer: Arc<Tokenizer>) -> Self {
        Self {
            tokenizer,
            factory: OnceLock::new(),
        }
    }

    /// Builds the token tree now, so that the first constrained answer does not wait for it. Thread-safe and
    /// idempotent.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] if the vocabulary is unsuitable.
    pub fn warm(&self) -> Result<(), Error> {
        self.factory().map(|_| ())
    }

    fn factory(&self) -> Result<&ParserFactory, Error> {
        self.factory
            .get_or_init(|| build(&self.tokenizer))
            .as_ref()
            .map_err(Error::clone)
    }
}

impl std::fmt::Debug for Vocab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let built = self.factory.get().is_some();
        f.debug_struct("Vocab")
            .field("tokens", &self.tokenizer.vocab_len())
            .field("built", &built)
            .finish()
    }
}

impl Constraint {
    /// Creates the constraint for one answer that follows `schema`.
    ///
    /// Unbounded parts get limits (strings 1000 characters, arrays 32 elements, objects only the named keys), so every
    /// answer is also valid under the original schema. White space is fixed: one space after `,` and `:`.
    ///
    /// # Errors
    /// [`Error::Schema`] if the schema cannot be satisfied or uses a keyword that cannot be enforced.
    pub fn new(vocab: &Vocab, schema: &Value) -> Result<Self, Error> {
        let factory = vocab.factory()?;
        let tight = schema::tighten(schema)?;
        let token_cap = schema::token_cap(&tight);
        let grammar = TopLevelGrammar::from_json_schema(tight.clone());
        let parser = panic_utils::catch_unwind(std::panic::AssertUnwindSafe(|| {
            factory.create_parser(grammar)
        }));
        let matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            return Err(wrong(&error));
        }
        let tokenizer = Arc::clone(&vocab.tokenizer);
        Ok(Self {
            tokenizer,
            matcher,
            schema: tight,
            mask: None,
            token_cap,
            text: Vec::new(),
            watch: None,
        })
    }

    /// Watches for keys whose value the schema restricts to an `enum` that contains all `labels`; see
    /// [`choice`](Self::choice). Returns whether there is such a key.
    pub fn watch(&mut self, labels: &[String]) -> bool {
        let keys = schema::keys_choosing(&self.schema, labels);
        if keys.is_empty() || labels.len() < 2 {
            return false;
        }
        let mut watch = Watch::new(&keys, labels);
        watch.look(&self.text);
        self.watch = Some(watch);
        true
    }

    /// Returns the allowed next tokens. For a complete answer, only tokens that end it.
    ///
    /// # Errors
    /// [`Error::Schema`] if the grammar's limits are exceeded.
    pub fn mask(&mut self) -> Result<&Mask, Error> {
        let mask = match self.mask.take() {
            Some(mask) => mask,
            None => Mask(
                self.matcher
                    .compute_mask_or_eos()
                    .map_err(|e| wrong(&e.to_string()))?,
            ),
        };
        Ok(self.mask.insert(mask))
    }

    /// Returns the choice among the watched labels that the next token makes, if any. Call it after
    /// [`forced`](Self::forced), before drawing. Each occurrence of the key is reported once, at the first token that
    /// distinguishes labels.
    ///
    /// # Errors
    /// As for [`mask`](Self::mask).
    pub fn choice(&mut self) -> Result<Option<Choice>, Error> {
        if !self
            .watch
            .as_ref()
            .is_some_and(|watch| watch.is_near(&self.text))
        {
            return Ok(None);
        }
        self.mask()?;
        let (Some(watch), Some(mask)) = (&mut self.watch, &self.mask) else {
            return Ok(None);
        };
        Ok(watch.choice(&self.text, mask.iter(), &self.tokenizer))
    }

    /// Accepts the drawn token.
    ///
    /// # Errors
    /// [`Error::Schema`] if it was not allowed; the constraint is unusable afterwards.
    pub fn accept(&mut self, token: u32) -> Result<(), Error> {
        self.matcher
            .consume_token(token)
            .map_err(|e| wrong(&e.to_string()))?;
        self.wrote(&[token]);
        Ok(())
    }

    /// Accepts and returns all tokens that are forced now, in order: they need no sampling, but the model must still
    /// evaluate them. Empty if there is a choice to make or the answer is complete.
    ///
    /// # Errors
    /// [`Error::Schema`] if the grammar's limits are exceeded.
    pub fn forced(&mut self) -> Result<Vec<u32>, Error> {
        if !self.tokenizer.is_canonical() {
            return Ok(Vec::new());
        }
        let tokens = self.matcher.consume_ff_tokens();
        if self.matcher.is_error() {
            return Err(wrong(&self.matcher.get_error().unwrap_or_default()));
        }
        self.wrote(&tokens);
        Ok(tokens)
    }

    /// Returns whether the answer is complete: nothing more may follow.
    pub fn is_done(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// Returns the maximum tokens of a valid answer, including forced tokens and the end token: with this limit no
    /// answer is cut. An upper bound in bytes, about three times what English text takes. Only parts that cannot be
    /// bounded (fractions, recursive schemas, formats) are estimated.
    pub fn token_cap(&self) -> usize {
        self.token_cap
    }

    /// Returns the text written so far.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    fn wrote(&mut self, tokens: &[u32]) {
        if tokens.is_empty() {
            return;
        }
        self.mask = None;
        for &token in tokens {
            self.text
                .extend_from_slice(self.tokenizer.decode_bytes(token));
        }
        if let Some(watch) = &mut self.watch {
            watch.look(&self.text);
        }
    }
}

impl std::fmt::Debug for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.text);
        f.debug_struct("Constraint")
            .field("text", &text)
            .field("done", &self.is_done())
            .finish_non_exhaustive()
    }
}

impl Mask {
    /// Returns whether `id` may come next.
    pub fn allows(&self, id: u32) -> bool {
        (id as usize) < self.0.len() && self.0.get(id as usize)
    }

    /// Returns the bits, lowest id in the lowest bit of the first word. Bits past the vocabulary are not set.
    pub fn words(&self) -> &[u32] {
        self.0.as_slice()
    }

    /// Iterates over the allowed ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter()
    }

    /// Counts the allowed ids.
    pub fn count(&self) -> usize {
        self.0.num_set()
    }
}

/// Adapts the tokenizer to the grammar library.
struct Env {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            let mut out = Vec::new();
            self.tokenizer.encode(text, &mut out);
            out
        })
    }

    // Tokens are forced only if the encoding is exactly the one that the model was trained with.
    fn tokenize_is_canonical(&self) -> bool {
        self.tokenizer.is_canonical()
    }
}

fn build(tokenizer: &Arc<Tokenizer>) -> Result<ParserFactory, Error> {
    let words: Vec<Vec<u8>> = (0..tokenizer.vocab_len() as u32)
        .map(|id| match tokenizer.spelling(id) {
            long if long.len() > MAX_TOKEN_BYTES => Vec::new(),
            // The library's marker for special tokens, so that no string can contain them.
            text if tokenizer.is_special(id) => [&[TokTrie::SPECIAL_TOKEN_MARKER], text].concat(),
            text => text.to_vec(),
        })
        .collect();
    let built = panic_utils::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let ends = tokenizer.eos_ids();
        let info = TokRxInfo::new(words.len() as u32, ends[0]);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(ends);
        let env: TokEnv = Arc::new(Env {
            tokenizer: Arc::clone(tokenizer),
            trie,
        });
        let able = InferenceCapabilities {
            ff_tokens: tokenizer.is_canonical(),
            ..InferenceCapabilities::default()
        };
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&env, able, &slices)?;
        factory.quiet();
        // Errors are shown to users: leave out the full grammar.
        factory.limits_mut().verbose_errors = false;
        Ok(factory)
    }));
    built.map_err(|e| Error::Tokenizer {
        what: format!(
            "no grammar can be built on it: {}",
            first_line(&e.to_string())
        ),
    })
}

fn wrong(said: &str) -> Error {
    Error::Schema {
        what: first_line(said),
    }
}

/// Returns the first line of a message; the rest is a trace.
fn first_line(said: &str) -> String {
    said.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect()
}
