//! Property: no bytes crash the GGUF reader or its users, and a tensor has as many bytes as its dimensions say.
#![no_main]

use kd_local::chat::{ChatMessage, ChatTemplate, Role};
use kd_local::gguf::Gguf;
use kd_local::tokenizer::Tokenizer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(gguf) = Gguf::from_bytes(data.to_vec()) else {
        return;
    };
    for tensor in gguf.tensors() {
        let row = tensor.kind.row_bytes(tensor.row_len());
        assert_eq!(row.map(|row| row * tensor.rows()), Some(tensor.bytes.len()));
    }
    let Ok(tokenizer) = Tokenizer::from_gguf(&gguf) else {
        return;
    };
    let mut ids = Vec::new();
    tokenizer.encode("Some text, 12 <|im_end|>\n\n  你好", &mut ids);
    assert!(ids.iter().all(|&id| !tokenizer.is_special(id)));
    if let Ok(chat) = ChatTemplate::from_gguf(&gguf, &tokenizer) {
        chat.render(&[ChatMessage::new(Role::User, "hello")], &tokenizer);
    }
});
