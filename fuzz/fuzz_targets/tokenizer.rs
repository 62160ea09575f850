//! Property: any text is encoded without special tokens and decodes to itself.
//!
//! The vocabulary is the smallest complete one: every byte, a few merges, one special token. The first byte of the
//! input selects the word-splitting rules.
#![no_main]

use std::sync::LazyLock;

use kd_local::gguf::Gguf;
use kd_local::tokenizer::Tokenizer;
use libfuzzer_sys::fuzz_target;

static TOKENIZERS: LazyLock<Vec<Tokenizer>> = LazyLock::new(|| {
    ["smollm", "llama-bpe", "qwen2", "gpt-2", "default"]
        .map(tokenizer)
        .into()
});

fuzz_target!(|data: &[u8]| {
    let Some((&rules, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let tokenizer = &TOKENIZERS[usize::from(rules) % TOKENIZERS.len()];
    let mut ids = Vec::new();
    tokenizer.encode(text, &mut ids);
    assert!(ids.iter().all(|&id| !tokenizer.is_special(id)));
    let bytes: Vec<u8> = ids
        .iter()
        .flat_map(|&id| tokenizer.decode_bytes(id))
        .copied()
        .collect();
    assert_eq!(bytes, text.as_bytes());
});

fn tokenizer(pre: &str) -> Tokenizer {
    let shown = |b: &u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let (plain, others): (Vec<u8>, Vec<u8>) = (0..=255).partition(shown);
    let mut tokens: Vec<String> = plain.iter().map(|&b| char::from(b).to_string()).collect();
    tokens.extend(('\u{100}'..).take(others.len()).map(String::from));
    let merges = [
        "Ġ Ġ",
        "ĠĠ ĠĠ",
        "t h",
        "th e",
        "Ġ the",
        "0 0",
        "Ċ Ċ",
        "' s",
        "< |",
        "ä ½",
    ];
    tokens.extend(merges.map(|merge| merge.replace(' ', "")));
    tokens.push("<|im_end|>".into());
    let last = tokens.len() as u32 - 1;

    let text = |s: &str| [&(s.len() as u64).to_le_bytes(), s.as_bytes()].concat();
    let list = |all: &[String]| {
        let head = [
            8u32.to_le_bytes().as_slice(),
            &(all.len() as u64).to_le_bytes(),
        ]
        .concat();
        all.iter().fold(head, |out, s| [out, text(s)].concat())
    };
    let kinds = (0..=last).flat_map(|id| if id == last { 3i32 } else { 1 }.to_le_bytes());
    let kinds = [
        5u32.to_le_bytes().as_slice(),
        &u64::from(last + 1).to_le_bytes(),
        &kinds.collect::<Vec<_>>(),
    ]
    .concat();
    let pairs = [
        ("tokenizer.ggml.model", 8u32, text("gpt2")),
        ("tokenizer.ggml.pre", 8, text(pre)),
        ("tokenizer.ggml.tokens", 9, list(&tokens)),
        ("tokenizer.ggml.token_type", 9, kinds),
        ("tokenizer.ggml.merges", 9, list(&merges.map(String::from))),
        (
            "tokenizer.ggml.eos_token_id",
            4,
            last.to_le_bytes().to_vec(),
        ),
    ];
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(0u64.to_le_bytes());
    file.extend((pairs.len() as u64).to_le_bytes());
    for (key, kind, value) in pairs {
        file.extend(text(key));
        file.extend(kind.to_le_bytes());
        file.extend(value);
    }
    let gguf = Gguf::from_bytes(file).expect("a well-formed file");
    Tokenizer::from_gguf(&gguf).expect("a whole vocabulary")
}
