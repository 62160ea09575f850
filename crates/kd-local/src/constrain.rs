//! Holds a model to a JSON schema: only tokens that can still become a valid answer may be drawn.
//!
//! In: a vocabulary (once per model) and a schema (once per answer). Out: for each step the allowed
//! tokens, the tokens that need no step at all because nothing else is possible, and the moment in
//! which a vote is chosen. The grammar work is done by `llguidance`; what is ours is the fitting of
//! the schema ([`schema`]) and the reading of votes ([`Choice`]).
//!
//! One answer goes like this:
//! ```no_run
//! # fn model(_: &[u32]) -> Vec<f32> { vec![] }
//! # fn draw(_: &[f32], _: &kd_local::constrain::Mask) -> u32 { 0 }
//! # fn answer(vocab: &kd_local::constrain::Vocab, schema: &serde_json::Value) -> Result<(), kd_local::Error> {
//! use kd_local::constrain::Constraint;
//! let mut c = Constraint::new(vocab, schema)?;
//! c.watch(&["agree".into(), "disagree".into()]);
//! let mut logits = model(&c.forced()?); // what is certain goes along with the prompt
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

/// A token whose text is longer than this is never allowed in constrained answers: the grammar
/// library's tree of tokens is as deep as the longest one and walked recursively.
const MAX_TOKEN_BYTES: usize = 512;

/// What all constrained answers of one model share. Cheap to make: the tree of all tokens is built
/// by the first [`Constraint`] (0.15 to 0.35 s for 50,000 tokens), or earlier by [`warm`](Self::warm).
pub struct Vocab {
    tokenizer: Arc<Tokenizer>,
    factory: OnceLock<Result<ParserFactory, Error>>,
}

/// One answer on its way to being valid JSON. Belongs to one generation; make a new one for the next.
pub struct Constraint {
    tokenizer: Arc<Tokenizer>,
    matcher: Matcher,
    /// As handed to the grammar compiler.
    schema: Value,
    /// What may come next; computed once per step.
    mask: Option<Mask>,
    token_cap: usize,
    text: Vec<u8>,
    watch: Option<Watch>,
}

/// The tokens that may come next, one bit per id.
#[derive(Debug, Clone, PartialEq)]
pub struct Mask(SimpleVob);

impl Vocab {
    /// The vocabulary of `tokenizer`. Does no work yet.
    pub fn new(tokenizer: Arc<Tokenizer>) -> Self {
        Self {
            tokenizer,
            factory: OnceLock::new(),
        }
    }

    /// Builds the tree of tokens now, so that the first constrained answer need not wait for it.
    /// Safe to call from any thread, several times; later calls do nothing.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] if the vocabulary cannot be used for this.
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
    /// An answer that follows `schema`.
    ///
    /// Where the schema leaves lengths open, bounds are put in (strings 1000 characters, arrays 32 elements,
    /// objects only the named keys), so the answer is always valid for the schema as given, too.
    /// White space is fixed: one space after `,` and `:`.
    ///
    /// # Errors
    /// [`Error::Schema`] if the schema cannot be met or uses a keyword that cannot be enforced.
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

    /// Watches for the places where the schema lets a key's value be chosen among `labels` (an `enum` of
    /// texts that holds them all); see [`choice`](Self::choice). Gives whether there is such a key.
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

    /// The tokens that may come next. When the answer is complete: only those that end it.
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

    /// The choice that the next token makes among the watched labels, if it makes one. Ask after
    /// [`forced`](Self::forced), before drawing. Each occurrence of the key is told once, at the
    /// first token that tells labels apart.
    ///
    /// # Errors
    /// As [`mask`](Self::mask).
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

    /// Takes the token that was drawn.
    ///
    /// # Errors
    /// [`Error::Schema`] if it was not allowed; the constraint is of no use then.
    pub fn accept(&mut self, token: u32) -> Result<(), Error> {
        self.matcher
            .consume_token(token)
            .map_err(|e| wrong(&e.to_string()))?;
        self.wrote(&[token]);
        Ok(())
    }

    /// Takes all tokens that are certain now and gives them out, in order: the model need not be
    /// asked for them, only told. Empty when there is a choice to make, or the answer is complete.
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

    /// Whether the answer is complete: nothing more may follow.
    pub fn is_done(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// The most tokens that a valid answer takes, forced ones and the end included: with this
    /// much room no answer is cut. An upper bound by bytes, some three times what English text takes.
    /// Only parts that no bound can be given for (fractions, recursive schemas, formats) are estimated.
    pub fn token_cap(&self) -> usize {
        self.token_cap
    }

    /// What has been written so far.
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
    /// Whether `id` may come next.
    pub fn allows(&self, id: u32) -> bool {
        (id as usize) < self.0.len() && self.0.get(id as usize)
    }

    /// The bits, lowest id in the lowest bit of the first word. Bits past the vocabulary are not set.
    pub fn words(&self) -> &[u32] {
        self.0.as_slice()
    }

    /// The allowed ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter()
    }

    /// How many ids are allowed.
    pub fn count(&self) -> usize {
        self.0.num_set()
    }
}

/// Our tokenizer as the grammar library wants it.
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

    // Only where the encoding is the very one that the model was trained with are tokens forced.
    fn tokenize_is_canonical(&self) -> bool {
        self.tokenizer.is_canonical()
    }
}

fn build(tokenizer: &Arc<Tokenizer>) -> Result<ParserFactory, Error> {
    let words: Vec<Vec<u8>> = (0..tokenizer.vocab_len() as u32)
        .map(|id| match tokenizer.spelling(id) {
            long if long.len() > MAX_TOKEN_BYTES => Vec::new(),
            // The library's way to mark what is not text, so that no string can contain it.
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
        // Errors are shown to people: without the whole grammar in them.
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

/// The part of a message that people read; the rest is a trace.
fn first_line(said: &str) -> String {
    said.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect()
}
