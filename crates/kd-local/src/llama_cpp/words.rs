//! The vocabulary of a model as llama.cpp reads it.

use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;

use crate::error::Error;
use crate::tokenizer::{Kind, Tokenizer, Words};

/// Reads the vocabulary; texts are still encoded by llama.cpp.
pub(super) fn read(model: &Arc<LlamaModel>) -> Result<Tokenizer, Error> {
    let vocab = model.vocab();
    let token = |id: LlamaToken| {
        let attributes = vocab.attr(id);
        let kind = if attributes.contains(LlamaTokenAttr::UserDefined) {
            Kind::Mark
        } else if attributes
            .intersects(LlamaTokenAttr::Control | LlamaTokenAttr::Unknown | LlamaTokenAttr::Unused)
        {
            Kind::Control
        } else {
            Kind::Text
        };
        (vocab.token_to_piece(id, true, None), kind)
    };
    let encoder = Arc::clone(model);
    Tokenizer::foreign(Words {
        tokens: vocab.tokens().map(token).collect(),
        bos: vocab
            .should_add_bos()
            .then(|| u32::try_from(vocab.bos().0).ok())
            .flatten(),
        ends: vocab
            .tokens()
            .filter(|id| vocab.is_eog(*id))
            .map(|id| id.0 as u32)
            .collect(),
        encode: Box::new(move |text| {
            let tokens = encoder.vocab().tokenize(text.as_bytes(), false, false);
            tokens.into_iter().map(|t| t.0 as u32).collect()
        }),
    })
}
