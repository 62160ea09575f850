//! Splits text into the words that BPE works on, by the rules that a model was trained with.
//!
//! Input: the rules' name (`tokenizer.ggml.pre`) and text. Output: pieces that concatenate to the text.
//!
//! The published rules end in `\s+(?!\S)|\s+`: of the spaces before a word all but the last are one piece. Lookahead
//! needs a backtracking matcher, which is slow and limited; so the pattern here is just `\s+`, which runs in linear
//! time, and [`Stage::last_space_apart`] gives the last space back.

use std::ops::Range;

use fancy_regex::Regex;

use crate::error::Error;

/// The rules of one family of vocabularies.
#[derive(Debug)]
pub(super) struct Splitter {
    stages: Vec<Stage>,
    /// Whether a piece that is itself a token is taken without merging (Llama 3).
    pub(super) whole_words: bool,
}

/// One pass: matches and the gaps between them become the pieces for the next pass.
#[derive(Debug)]
struct Stage {
    pattern: Regex,
    /// A match of white space (without line ends, see [`Spaces`]) leaves its last character to the next piece.
    last_space_apart: Option<Spaces>,
}

/// The matches of white space that come from the `\s+` at the pattern's end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Spaces {
    /// All of them (GPT-2).
    Any,
    /// Those without line ends; the others were matched by `\s*[\r\n]+` (Llama 3, Qwen 2).
    NoLineEnd,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
const LLAMA3: &str = r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+";
const QWEN2: &str = r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+";

impl Splitter {
    /// Returns the rules that a GGUF file calls `pre`, as llama.cpp applies them under that name.
    pub(super) fn named(pre: &str) -> Result<Self, Error> {
        let gpt2 = (GPT2, Some(Spaces::Any));
        let (stages, whole_words): (&[(&str, Option<Spaces>)], bool) = match pre {
            "gpt-2" | "gpt2" => (&[gpt2], false),
            // llama.cpp's rules for a file that names none.
            "default" => (
                &[
                    (r"[\p{P}\$\+<=>\^~\|]+", None),
                    gpt2,
                    (r"\p{N}+", None),
                    ("[0-9][0-9][0-9]", None),
                ],
                false,
            ),
            "smollm" => (&[(r"\p{N}", None), gpt2], false),
            "llama-bpe" | "llama3" | "llama-v3" => (&[(LLAMA3, Some(Spaces::NoLineEnd))], true),
            "qwen2" => (&[(QWEN2, Some(Spaces::NoLineEnd))], false),
            other => {
                return Err(Error::Unsupported {
                    what: format!(
                        "the word-splitting rules `{other}` (known: smollm, llama-bpe, qwen2, gpt-2, default)"
                    ),
                });
            }
        };
        let stages = stages
            .iter()
            .map(|&(pattern, last_space_apart)| {
                let pattern = Regex::new(pattern).map_err(|e| Error::Tokenizer {
                    what: e.to_string(),
                })?;
                Ok(Stage {
                    pattern,
                    last_space_apart,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            stages,
            whole_words,
        })
    }

    /// Appends the pieces of `text` to `out`, in order and without gaps.
    pub(super) fn split(&self, text: &str, out: &mut Vec<Range<usize>>) {
        let start = out.len();
        if !text.is_empty() {
            out.push(0..text.len());
        }
        let mut before = Vec::new();
        for stage in &self.stages {
            before.clear();
            before.extend(out.drain(start..));
            for piece in &before {
                stage.split(text, piece.clone(), out);
            }
        }
    }
}

impl Stage {
    fn split(&self, text: &str, piece: Range<usize>, out: &mut Vec<Range<usize>>) {
        let word = &text[piece.clone()];
        let mut at = 0;
        while at < word.len() {
            // An error means that the matcher gave up; these patterns run without backtracking, so it cannot happen.
            // The rest would stay one piece: other tokens, the same text.
            let Ok(Some(found)) = self.pattern.find_from_pos(word, at) else {
                break;
            };
            let end = self.end(word, found.start(), found.end());
            if at < found.start() {
                out.push(piece.start + at..piece.start + found.start());
            }
            out.push(piece.start + found.start()..piece.start + end);
            at = end;
        }
        if at < word.len() {
            out.push(piece.start + at..piece.end);
        }
    }

    /// Returns the end of a match: before its last space, if a word follows it.
    fn end(&self, word: &str, start: usize, end: usize) -> usize {
        let Some(spaces) = self.last_space_apart else {
            return end;
        };
        let matched = &word[start..end];
        if end == word.len() || !matched.chars().all(char::is_whitespace) {
            return end;
        }
        if spaces == Spaces::NoLineEnd && matched.contains(['\r', '\n']) {
            return end;
        }
        match matched.char_indices().next_back() {
            Some((last, _)) if last > 0 => start + last,
            _ => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces<'a>(pre: &str, text: &'a str) -> Vec<&'a str> {
        let mut out = Vec::new();
        Splitter::named(pre).unwrap().split(text, &mut out);
        let all: Vec<_> = out.iter().map(|r| &text[r.clone()]).collect();
        assert_eq!(all.concat(), text, "nothing is lost");
        all
    }

    #[test]
    fn gpt2_cuts_words_numbers_and_signs() {
        assert_eq!(
            pieces("gpt-2", "I'll pay 25$  now "),
            ["I", "'ll", " pay", " 25", "$", " ", " now", " "]
        );
        assert_eq!(
            pieces("gpt-2", "a\n\nb\u{a0}\u{a0}c"),
            ["a", "\n", "\n", "b", "\u{a0}", "\u{a0}", "c"]
        );
        assert_eq!(pieces("gpt-2", "   "), ["   "]);
        assert_eq!(pieces("gpt-2", ""), [""; 0]);
    }

    #[test]
    fn smollm_takes_digits_one_by_one_and_looks_ahead_within_a_piece_only() {
        assert_eq!(
            pieces("smollm", "in 2026  7"),
            ["in", " ", "2", "0", "2", "6", "  ", "7"]
        );
    }

    #[test]
    fn llama3_takes_three_digits_and_keeps_line_ends_together() {
        assert_eq!(
            pieces("llama-bpe", "12345\n\n  x'LL"),
            ["123", "45", "\n\n", " ", " x", "'LL"]
        );
        assert_eq!(pieces("llama-bpe", "a \n b"), ["a", " \n", " b"]);
        assert_eq!(
            pieces("llama-bpe", "ok!\n\n(x)"),
            ["ok", "!\n\n", "(x", ")"]
        );
        assert_eq!(
            pieces("llama-bpe", "a   \u{2003}  b"),
            ["a", "   \u{2003} ", " b"]
        );
    }

    #[test]
    fn qwen2_takes_one_digit() {
        assert_eq!(
            pieces("qwen2", "x 12\t\ty"),
            ["x", " ", "1", "2", "\t", "\ty"]
        );
    }

    #[test]
    fn the_default_cuts_signs_first() {
        assert_eq!(
            pieces("default", "a,b 12345"),
            ["a", ",", "b", " ", "123", "45"]
        );
    }

    #[test]
    fn unknown_rules_are_named() {
        let error = Splitter::named("tekken").unwrap_err();
        assert!(
            matches!(error, Error::Unsupported { .. }) && error.to_string().contains("`tekken`"),
            "{error}"
        );
    }

    #[test]
    fn a_long_run_of_spaces_is_one_piece() {
        let text = format!("{}x", " ".repeat(2_000_000));
        assert_eq!(pieces("gpt-2", &text), [&text[..1_999_999], " x"]);
    }
}
