//! What a seat is asked, and what comes back: the only words between the council and the backends.

use crate::failure::Failure;
use crate::ids::SeatName;
use crate::spending::Certainty;
use crate::text::Text;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The four parts of every prompt. Adapters join them in the order that suits their wire: agent programs get one text
/// in the seed's order; HTTP models get the rules and the persona as system text; the built-in model gets the shared
/// parts first and the persona last, so that members share the evaluated prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Preamble and phase prompt: the same for every member.
    pub rules: String,
    /// The member's own prompt: who it is, what it is like.
    pub persona: String,
    /// The history of the thread, the same for every member of a round.
    pub history: Text,
    /// Byte offsets in `history` at which its second and later messages begin, with the empty line before them. Empty
    /// where the next prompt does not begin with this history.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<usize>,
    /// The last line: who is to speak, and how.
    pub turn: String,
}

/// A part of a prompt, sent as one content block where the wire has blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The text. Blocks carry the empty line before them, so that one stays the same when others follow.
    pub text: String,
    /// Whether the member's next prompt is expected to begin with everything up to here.
    pub repeats: bool,
}

impl From<&str> for Block {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            repeats: false,
        }
    }
}

impl Prompt {
    /// The prompt in blocks whose texts, joined, are [`Prompt::as_text`]: what comes before the history, one block per
    /// message, and the turn. A prompt without a history of several messages is one block.
    pub fn blocks(&self) -> Vec<Block> {
        self.blocks_after(&[&self.rules, &self.persona])
            .unwrap_or_else(|| vec![self.as_text().as_str().into()])
    }

    /// History and turn in blocks, one per message. `None` without a history of several messages.
    pub fn history_blocks(&self) -> Option<Vec<Block>> {
        self.blocks_after(&[])
    }

    /// Blocks of these parts, of the history and of the turn.
    fn blocks_after(&self, parts: &[&str]) -> Option<Vec<Block>> {
        let ends = self.starts.iter().skip(1).copied();
        let ends = ends.chain([self.history.len()]);
        let spans = self.starts.iter().copied().zip(ends);
        let pieces: Option<Vec<&str>> = spans.map(|(at, end)| self.history.get(at..end)).collect();
        let first = self.history.get(..*self.starts.first()?)?;
        let pieces = pieces?;
        let mut blocks: Vec<Block> = Vec::with_capacity(pieces.len() + parts.len() + 2);
        for part in parts.iter().copied().chain([first]) {
            push(&mut blocks, part);
        }
        blocks.extend(pieces.into_iter().map(Block::from));
        if let Some(last) = blocks.last_mut() {
            last.repeats = true;
        }
        push(&mut blocks, &self.turn);
        Some(blocks)
    }

    /// One text, in the order of the seed: rules, persona, history, turn. Empty parts are skipped.
    pub fn as_text(&self) -> String {
        let parts = [&*self.rules, &self.persona, &self.history, &self.turn];
        let mut text = String::with_capacity(parts.iter().map(|p| p.len() + 2).sum());
        for part in parts.into_iter().filter(|p| !p.is_empty()) {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(part);
        }
        text
    }
}

/// Adds a part of a prompt as a block, after an empty line; an empty part is skipped.
fn push(blocks: &mut Vec<Block>, part: &str) {
    if !part.is_empty() {
        let gap = if blocks.is_empty() { "" } else { "\n\n" };
        blocks.push(format!("{gap}{part}").as_str().into());
    }
}

/// How a model picks its words. `None` leaves the choice to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// 0 is greedy; 2 is the usual upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Nucleus: the smallest set of tokens whose probabilities reach this, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Tokens less likely than this share of the likeliest are dropped, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f32>,
    /// The most tokens to produce.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Fixes the chance, where the backend can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Texts that end the answer; they are not part of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

/// How long we wait. Zero means without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// To the first sign of life.
    pub first: Duration,
    /// Between two signs of life.
    pub idle: Duration,
    /// In all, retries included.
    pub total: Duration,
}

impl Default for Deadlines {
    /// Two minutes to the first sign, two between signs, ten in all (the seed's `council.timeout`).
    fn default() -> Self {
        Self {
            first: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(600),
        }
    }
}

/// One question to one seat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Who is asked.
    pub seat: SeatName,
    /// What they are told.
    pub prompt: Prompt,
    /// How they pick words.
    pub sampling: Sampling,
    /// A JSON schema that the answer must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
    /// How long we wait.
    pub deadlines: Deadlines,
    /// Whether an agent may change files.
    pub writable: bool,
    /// Tools of ours that the model can call natively, and what was said of them so far. Only HTTP services have a place
    /// for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Box<ToolTalk>>,
}

/// Tools that a model can call, and the talk since the prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolTalk {
    /// What can be called.
    pub tools: Vec<ToolSpec>,
    /// What was said and called after the prompt, in order.
    pub said: Vec<Said>,
    /// A server that has these tools, for agent programs: they call them there, and we hear only how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ToolServer>,
}

/// A program that serves tools of ours on its stdin and stdout, by the Model Context Protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolServer {
    /// What the agent calls it.
    pub name: String,
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The tools that the agent may call without asking anybody.
    pub tools: Vec<String>,
}

impl Request {
    /// The server over which an agent program calls tools of ours.
    pub fn server(&self) -> Option<&ToolServer> {
        self.tools.as_ref()?.server.as_ref()
    }
}

/// A tool, as a model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub doc: String,
    /// The JSON schema of its arguments.
    pub schema: serde_json::Value,
}

/// A tool call of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The service's id of it; the result goes back under it.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// Its arguments; text that was no JSON stands here as a JSON string.
    pub arguments: serde_json::Value,
}

/// One step of the talk after the prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Said {
    /// The model answered.
    Agent {
        /// Its words.
        text: String,
        /// What it called.
        calls: Vec<ToolCall>,
    },
    /// A tool answered.
    Tool {
        /// The id of the call.
        id: String,
        /// The tool.
        name: String,
        /// What came of it.
        result: String,
    },
}

/// What a turn used, as the provider counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the answer, thinking included.
    pub output_tokens: u64,
    /// Of the prompt: tokens that the provider had cached.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Of the prompt: tokens that the provider wrote to its cache, where it charges for that.
    #[serde(skip_serializing_if = "is_zero")]
    pub written_tokens: u64,
    /// Of the answer: tokens of thinking.
    #[serde(skip_serializing_if = "is_zero")]
    pub thinking_tokens: u64,
    /// Price in US dollars, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Requests beyond the first of each turn: retries, and forms of the answer that the service refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: u64,
    /// How exactly the tokens and the price are known.
    #[serde(skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Usage {
    /// Adds another call's usage. A known price plus an unknown one is unknown only if both are.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
        self.written_tokens += other.written_tokens;
        self.thinking_tokens += other.thinking_tokens;
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        self.repeats += other.repeats;
        self.certainty = self.certainty.and(other.certainty);
    }

    /// This total where some call told nothing of what it used: then it is a lower bound. A total that counts nothing says
    /// nothing, and stays as it is.
    pub fn with_uncounted(mut self, uncounted: bool) -> Self {
        if uncounted && self.counts_tokens() {
            self.certainty = self.certainty.and(Certainty::AtLeast);
        }
        self
    }

    /// Whether any token was counted: no request uses none.
    pub fn counts_tokens(&self) -> bool {
        self.input_tokens > 0 || self.output_tokens > 0
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model was done.
    Stop,
    /// The token limit cut it.
    Length,
}

/// One piece of an answer as it arrives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Delta {
    /// The backend took the question; what it says about itself.
    Started {
        /// The model's own name.
        model: Option<String>,
        /// Version of an agent program.
        version: Option<String>,
        /// The backend's id of this conversation.
        session: Option<String>,
    },
    /// More of the answer.
    Text {
        /// The piece.
        text: String,
    },
    /// More of the thinking before the answer.
    Thinking {
        /// The piece.
        text: String,
    },
    /// The agent used a tool.
    Tool {
        /// Its name.
        name: String,
        /// What it was used on, in one line.
        detail: String,
    },
    /// The model calls a tool of ours; the result is asked for by the next request.
    Call {
        /// The call.
        call: ToolCall,
    },
    /// The call failed and will be made again: everything that came so far is void.
    Retrying {
        /// The number of the attempt that failed, from 1.
        attempt: u32,
        /// How long we wait before the next.
        after: Duration,
        /// Why.
        failure: Failure,
    },
    /// Something the king should know that does not end the turn.
    Notice {
        /// One line.
        text: String,
    },
    /// The answer is whole. Always the last delta, and the only sign of success.
    Finished {
        /// Why it ended.
        finish: Finish,
        /// The whole text, when the backend states it and it differs from the joined pieces.
        text: Option<String>,
        /// What it used.
        usage: Option<Usage>,
        /// How likely each label was where the answer chose among labels (built-in model).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<(String, f64)>,
    },
}
