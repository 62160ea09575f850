//! Builds prompts with the chat templates that llama.cpp knows.
//!
//! The template is rendered with placeholders instead of the messages. The messages' texts are then inserted between
//! the pieces, encoded as plain text: nothing that a user or a model wrote can become structure.

use std::sync::Arc;

use llama_cpp_2::model::{LlamaChatMessage, LlamaModel};

use crate::chat::{ChatMessage, Role};
use crate::engine::Layout;
use crate::error::Error;
use crate::tokenizer::Tokenizer;

/// Delimit the number of a message in a placeholder; no template contains them.
const MARKS: (char, char) = ('\u{f0000}', '\u{f0001}');

/// Returns the text of the model's chat template.
pub(super) fn template(model: &LlamaModel) -> Result<String, Error> {
    let text = model.chat_template(None).map_err(|_| Error::Unsupported {
        what: "a model without a chat template: it continues texts but does not answer questions"
            .into(),
    })?;
    text.to_string().map_err(|_| Error::Tokenizer {
        what: "the chat template is not text".into(),
    })
}

/// Returns a layout that follows llama.cpp; fails at once for an unknown template.
pub(super) fn foreign(
    model: &Arc<LlamaModel>,
    tokenizer: &Arc<Tokenizer>,
) -> Result<Arc<Layout>, Error> {
    let (model, tokenizer) = (Arc::clone(model), Arc::clone(tokenizer));
    pieces(&model, &[Role::User, Role::Assistant, Role::User])?;
    Ok(Arc::new(move |messages: &[ChatMessage]| {
        let roles: Vec<Role> = messages.iter().map(|m| m.role).collect();
        let mut out = Vec::new();
        for piece in pieces(&model, &roles)? {
            match piece {
                Piece::Marks(text) => {
                    let vocab = model.vocab();
                    let tokens = vocab.tokenize(text.as_bytes(), false, true);
                    out.extend(tokens.into_iter().map(|t| t.0 as u32));
                }
                Piece::Message(i) => {
                    if let Some(message) = messages.get(i) {
                        tokenizer.encode(message.text.trim(), &mut out);
                    }
                }
            }
        }
        if let Some(bos) = tokenizer.bos_id()
            && out.first() != Some(&bos)
        {
            out.insert(0, bos);
        }
        Ok(out)
    }))
}

#[derive(Debug, PartialEq)]
enum Piece {
    /// Text of the template, in which special tokens are recognized.
    Marks(String),
    /// The text of this message.
    Message(usize),
}

fn pieces(model: &LlamaModel, roles: &[Role]) -> Result<Vec<Piece>, Error> {
    let unknown = |why: String| Error::Unsupported {
        what: format!("a chat template that llama.cpp cannot fill: {why}"),
    };
    let template = model
        .chat_template(None)
        .map_err(|e| unknown(e.to_string()))?;
    let chat: Result<Vec<_>, _> = roles
        .iter()
        .enumerate()
        .map(|(i, role)| {
            let mark = format!("{}{i}{}", MARKS.0, MARKS.1);
            LlamaChatMessage::new(role.name().into(), mark)
        })
        .collect();
    let chat = chat.map_err(|e| unknown(e.to_string()))?;
    let filled = model
        .apply_chat_template(&template, &chat, true)
        .map_err(|e| unknown(e.to_string()))?;
    cut(&filled, roles.len()).ok_or_else(|| unknown("it leaves messages out".into()))
}

/// Splits a rendered template into pieces; `None` unless each of the `count` messages occurs exactly once.
fn cut(filled: &str, count: usize) -> Option<Vec<Piece>> {
    let (mut rest, mut out, mut seen) = (filled, Vec::new(), vec![false; count]);
    while let Some((before, after)) = rest.split_once(MARKS.0) {
        let (number, after) = after.split_once(MARKS.1)?;
        let i: usize = number.parse().ok()?;
        if std::mem::replace(seen.get_mut(i)?, true) {
            return None;
        }
        if !before.is_empty() {
            out.push(Piece::Marks(before.into()));
        }
        out.push(Piece::Message(i));
        rest = after;
    }
    if !rest.is_empty() {
        out.push(Piece::Marks(rest.into()));
    }
    seen.iter().all(|s| *s).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_template_is_cut_at_its_messages() {
        let (a, b) = MARKS;
        let filled = format!("<s>[INST] {a}0{b}\n\n{a}1{b} [/INST]");
        let pieces = cut(&filled, 2).unwrap();
        assert_eq!(
            pieces,
            [
                Piece::Marks("<s>[INST] ".into()),
                Piece::Message(0),
                Piece::Marks("\n\n".into()),
                Piece::Message(1),
                Piece::Marks(" [/INST]".into()),
            ]
        );
        // A missing, repeated or unknown message must not be dropped silently.
        assert_eq!(cut(&filled, 3), None);
        assert_eq!(cut(&format!("{a}0{b}{a}0{b}"), 1), None);
        assert_eq!(cut(&format!("{a}7{b}"), 1), None);
    }
}
