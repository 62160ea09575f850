//! Formats a conversation as the model was trained to read it.
//!
//! Input: the file's `tokenizer.chat_template` and messages. Output: the tokens of a prompt that ends where the
//! assistant's answer begins. The template is recognized by its special tokens and rendered by this code, not executed:
//! special tokens are inserted as ids and message texts are always encoded as plain text, so a text that contains
//! `<|im_start|>` cannot open a turn.
//!
//! Messages are rendered one by one, so two conversations that begin with the same messages begin with the same tokens
//! and the engine evaluates the common part once.

use crate::error::Error;
use crate::gguf::{Gguf, Value};
use crate::tokenizer::Tokenizer;

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions for the conversation; the first message, if any.
    System,
    /// The user.
    User,
    /// The model itself, in earlier turns.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// The sender.
    pub role: Role,
    /// The text. Never parsed for special tokens.
    pub text: String,
}

/// The prompt format of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTemplate {
    layout: Layout,
    /// Precedes everything, if the model uses it.
    bos: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Layout {
    /// `<|im_start|>role⏎text<|im_end|>⏎`: SmolLM2, Qwen 2 and many others.
    ChatMl {
        start: u32,
        end: u32,
        /// The system message that the template inserts if there is none.
        default_system: Option<String>,
        /// An empty thinking part with which the answer begins, for models that would think first.
        no_thinking: Vec<u32>,
    },
    /// `<|start_header_id|>role<|end_header_id|>⏎⏎text<|eot_id|>`, texts trimmed.
    Llama3 {
        start: u32,
        end: u32,
        turn: u32,
        /// Text that the template puts before the system message (Llama 3.1 and later: two dates).
        preface: &'static str,
    },
}

/// The preface of Llama 3.1 and 3.2. The second date is the template's default; it is fixed, so that the same
/// conversation gives the same prompt every day.
const LLAMA31_PREFACE: &str = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl ChatMessage {
    /// Creates a message from `role`.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            text: text.into(),
        }
    }
}

impl ChatTemplate {
    /// Recognizes the template of a model file.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the file has no template (it is not a chat model) or an unknown one,
    /// [`Error::Tokenizer`] if the template's special tokens are missing from the vocabulary.
    pub fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Self, Error> {
        let Some(template) = gguf.meta("tokenizer.chat_template").and_then(Value::as_str) else {
            return Err(Error::Unsupported {
                what: "a model without a chat template: it continues texts but does not answer questions".into(),
            });
        };
        Self::from_text(template, tokenizer)
    }

    /// Recognizes a template by its text.
    pub(crate) fn from_text(template: &str, tokenizer: &Tokenizer) -> Result<Self, Error> {
        let mark = |text: &str| {
            tokenizer.special(text).ok_or_else(|| Error::Tokenizer {
                what: format!(
                    "the chat template uses `{text}`, which is no special token of the vocabulary"
                ),
            })
        };
        let (layout, bos) = if template.contains("<|im_start|>") && !template.contains("<|im_sep|>")
        {
            let layout = Layout::ChatMl {
                start: mark("<|im_start|>")?,
                end: mark("<|im_end|>")?,
                default_system: default_system(template),
                no_thinking: no_thinking(template, tokenizer),
            };
            (layout, tokenizer.bos_id())
        } else if template.contains("<|start_header_id|>") {
            let later = template.contains("Cutting Knowledge Date");
            let layout = Layout::Llama3 {
                start: mark("<|start_header_id|>")?,
                end: mark("<|end_header_id|>")?,
                turn: mark("<|eot_id|>")?,
                preface: if later { LLAMA31_PREFACE } else { "" },
            };
            // This template names its BOS token itself, whatever the file says about adding one.
            (layout, Some(mark("<|begin_of_text|>")?))
        } else {
            let begin: String = template.chars().take(60).collect();
            return Err(Error::Unsupported {
                what: format!(
                    "the chat template that begins with `{begin}` (known: ChatML, Llama 3)"
                ),
            });
        };
        Ok(Self { layout, bos })
    }

    /// Renders the prompt for the assistant's next message: all messages, then the opening of its turn.
    ///
    /// If the template has a default system message and the first message is not a system message, the default is
    /// inserted, as the reference template does.
    pub fn render(&self, messages: &[ChatMessage], tokenizer: &Tokenizer) -> Vec<u32> {
        let mut out = Vec::new();
        out.extend(self.bos);
        let has_system = messages.first().is_some_and(|m| m.role == Role::System);
        match &self.layout {
            Layout::ChatMl {
                start,
                end,
                default_system,
                no_thinking,
            } => {
                let mut turn = |role: Role, text: &str| {
                    out.push(*start);
                    tokenizer.encode(&format!("{}\n{text}", role.name()), &mut out);
                    out.push(*end);
                    tokenizer.encode("\n", &mut out);
                };
                if let Some(text) = default_system
                    && !has_system
                {
                    turn(Role::System, text);
                }
                for message in messages {
                    turn(message.role, &message.text);
                }
                out.push(*start);
                tokenizer.encode("assistant\n", &mut out);
                out.extend(no_thinking);
            }
            Layout::Llama3 {
                start,
                end,
                turn: turn_end,
                preface,
            } => {
                let open = |role: Role, text: &str, out: &mut Vec<u32>| {
                    out.push(*start);
                    tokenizer.encode(role.name(), out);
                    out.push(*end);
                    tokenizer.encode(&format!("\n\n{text}"), out);
                };
                if !preface.is_empty() && !has_system {
                    open(Role::System, preface, &mut out);
                    out.push(*turn_end);
                }
                for (at, message) in messages.iter().enumerate() {
                    let before = if at == 0 && has_system { preface } else { "" };
                    open(
                        message.role,
                        &format!("{before}{}", message.text.trim()),
                        &mut out,
                    );
                    out.push(*turn_end);
                }
                open(Role::Assistant, "", &mut out);
            }
        }
        out
    }
}

/// Returns what a template with the switch `enable_thinking` puts before an answer if it is off: `kd` shows answers only.
fn no_thinking(template: &str, tokenizer: &Tokenizer) -> Vec<u32> {
    let marks = [tokenizer.special("<think>"), tokenizer.special("</think>")];
    let [Some(open), Some(close)] = marks else {
        return Vec::new();
    };
    if !template.contains("enable_thinking") {
        return Vec::new();
    }
    let mut out = vec![open];
    tokenizer.encode("\n\n", &mut out);
    out.push(close);
    tokenizer.encode("\n\n", &mut out);
    out
}

/// Extracts the literal system message of a ChatML template: the text between `<|im_start|>system⏎` and `<|im_end|>`
/// within one quoted string. Templates write the line end as itself or as `\n`.
fn default_system(template: &str) -> Option<String> {
    const OPEN: &str = "<|im_start|>system";
    let mut rest = template;
    while let Some(at) = rest.find(OPEN) {
        rest = &rest[at + OPEN.len()..];
        let Some(body) = rest.strip_prefix('\n').or_else(|| rest.strip_prefix("\\n")) else {
            continue;
        };
        let Some(end) = body.find("<|im_end|>") else {
            continue;
        };
        let text = &body[..end];
        if !text.is_empty() && !text.contains(['\'', '"', '{', '}', '\\']) {
            return Some(text.to_owned());
        }
    }
    None
}
