//! The real vocabulary of SmolLM2 as a GGUF without tensors, assembled from `data/`. For the contents of the files, see
//! `data/make_tokenizer_reference.py`.

#![allow(dead_code, reason = "each test binary uses its part")]

use kd_local::gguf::Gguf;
use kd_local::tokenizer::Tokenizer;
use serde_json::Value;

use super::writer::Writer;

pub(crate) fn reference() -> Value {
    serde_json::from_str(include_str!("../data/tokenizer-reference.json")).unwrap()
}

/// Returns tokens and merges in GGUF's notation.
pub(crate) fn vocabulary() -> (Vec<String>, Vec<String>) {
    let reference = reference();
    let mut tokens: Vec<String> = reference["specials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s.as_str().unwrap().to_owned())
        .collect();
    tokens.extend(
        reference["bytes"]
            .as_str()
            .unwrap()
            .chars()
            .map(String::from),
    );
    let mut merges = Vec::new();
    for pair in include_bytes!("../data/smollm2-merges.bin").chunks_exact(4) {
        let id = |at: usize| usize::from(u16::from_le_bytes([pair[at], pair[at + 1]]));
        merges.push(format!("{} {}", tokens[id(0)], tokens[id(2)]));
        let joined = format!("{}{}", tokens[id(0)], tokens[id(2)]);
        tokens.push(joined);
    }
    (tokens, merges)
}

/// Returns the model file's text metadata, with the word-splitting rules `pre`.
pub(crate) fn writer(pre: &str) -> Writer {
    let (tokens, merges) = vocabulary();
    let kinds: Vec<i32> = (0..tokens.len())
        .map(|id| if id < 17 { 3 } else { 1 })
        .collect();
    Writer::default()
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", pre)
        .strings("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &kinds)
        .strings("tokenizer.ggml.merges", &merges)
        .u32("tokenizer.ggml.bos_token_id", 1)
        .u32("tokenizer.ggml.eos_token_id", 2)
        .bool("tokenizer.ggml.add_bos_token", false)
        .str(
            "tokenizer.chat_template",
            reference()["chat_template"].as_str().unwrap(),
        )
}

pub(crate) fn gguf(pre: &str) -> Gguf {
    Gguf::from_bytes(writer(pre).finish()).unwrap()
}

pub(crate) fn tokenizer() -> Tokenizer {
    Tokenizer::from_gguf(&gguf("smollm")).unwrap()
}
