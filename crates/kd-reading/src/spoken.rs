//! The sentences of a reply with the options that each names.

use super::clauses::{self, Sentence};
use super::options::{Mention, Options};

/// Words that make a choice depend on the case.
pub(super) const DEPENDS: &[&str] = &[
    "depends",
    "depending",
    "kommt darauf an",
    "kommt drauf an",
    "hängt davon ab",
    "je nachdem",
    "dépend",
    "depende",
    "取决于",
    "看情况",
];

/// A sentence, its options, and its lowercase words without them.
pub(super) struct Spoken {
    pub(super) sentence: Sentence,
    pub(super) mentions: Vec<Mention>,
    pub(super) lower: String,
}

/// Splits a text into sentences. The words of options are blanked, so that `both` or `wait` in a name has no effect.
pub(super) fn prepared(text: &str, options: &Options) -> Vec<Spoken> {
    let mut out = Vec::new();
    // One form of the apostrophe, so that positions match.
    for mut sentence in clauses::split(&text.replace('’', "'")) {
        let mentions = options.mentions(&sentence.text);
        let mut blanked = sentence.text.clone();
        if !options.is_yes_no() {
            for mention in &mentions {
                let blank = "x".repeat(mention.end - mention.start);
                blanked.replace_range(mention.start..mention.end, &blank);
            }
        }
        sentence.clauses = clauses::clauses(&blanked);
        out.push(Spoken {
            sentence,
            mentions,
            lower: blanked.to_lowercase().replace('’', "'"),
        });
    }
    out
}
