//! Requests to members and their responses: the interface between the council and the backends.

use crate::failure::Failure;
use crate::ids::SeatName;
use crate::media::Attachment;
use crate::text::Text;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// The four parts of every prompt. Adapters join them to suit their API: agent programs get one text; HTTP models get
/// the rules and the persona as system text; the built-in model gets the shared parts first and the persona last, so
/// that members share the evaluated prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Preamble and phase prompt: the same for every member.
    pub rules: String,
    /// The member's persona.
    pub persona: String,
    /// The history of the thread, the same for every member of a round.
    pub history: Text,
    /// Byte offsets in `history` at which its second and later messages begin, including the empty line before them.
    /// Empty if the next prompt does not begin with this history.
    #[serde(default, skip_serializing_if = "Starts::is_empty")]
    pub starts: Starts,
    /// The last line: who speaks next, and how.
    pub turn: String,
}

/// Positions in a text. A clone shares them: a long history has thousands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<usize>", into = "Vec<usize>")]
pub struct Starts(Arc<[usize]>);

impl Starts {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deref for Starts {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<Vec<usize>> for Starts {
    fn from(starts: Vec<usize>) -> Self {
        Self(starts.into())
    }
}

impl From<Starts> for Vec<usize> {
    fn from(starts: Starts) -> Self {
        starts.to_vec()
    }
}

/// A part of a prompt, sent as one content block if the API has blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The text. It includes the empty line before it, so that its text stays the same when further steps follow.
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
    /// Splits the prompt into blocks that join to [`Prompt::as_text`]: the parts before the history, one block per
    /// message, and the turn. A prompt without a history of several messages is one block.
    pub fn blocks(&self) -> Vec<Block> {
        self.blocks_after(&[&self.rules, &self.persona])
            .unwrap_or_else(|| vec![self.as_text().as_str().into()])
    }

    /// Returns history and turn in blocks, one per message. `None` without a history of several messages.
    pub fn history_blocks(&self) -> Option<Vec<Block>> {
        self.blocks_after(&[])
    }

    /// Returns blocks of these parts, the history and the turn.
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

    /// Returns one text: rules, persona, history, turn. Empty parts are skipped.
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

/// Appends a part of a prompt as a block, after an empty line; an empty part is skipped.
fn push(blocks: &mut Vec<Block>, part: &str) {
    if !part.is_empty() {
        let gap = if blocks.is_empty() { "" } else { "\n\n" };
        blocks.push(format!("{gap}{part}").as_str().into());
    }
}

/// Sampling parameters. `None` leaves the choice to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// 0 is greedy; 2 is the usual upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Nucleus sampling: the smallest set of tokens whose probabilities sum to this, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Drops tokens with a probability below this share of the most likely one, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f32>,
    /// Maximum tokens to generate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Random seed, if the backend supports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Texts that end the answer and are not part of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

/// Timeouts. Zero means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// Timeout until the first response.
    pub first: Duration,
    /// Timeout between two responses.
    pub idle: Duration,
    /// Timeout of the whole request, including retries.
    pub total: Duration,
}

impl Default for Deadlines {
    /// Two minutes until the first response, two between responses, ten in total.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(600),
        }
    }
}

/// A request to one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The member.
    pub seat: SeatName,
    /// The prompt.
    pub prompt: Prompt,
    /// The sampling parameters.
    pub sampling: Sampling,
    /// The required JSON schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
    /// Whether the schema is the user's. A service may refuse this request because of its content, which does not
    /// affect other requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schema_of_user: bool,
    /// The timeouts.
    pub deadlines: Deadlines,
    /// Whether an agent may change files.
    pub writable: bool,
    /// Whether a member at a service may read the user's folder with tools, if its backend has them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads: bool,
    /// Our tools that the model can call natively, and the conversation about them so far. Only for HTTP services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Box<ToolTalk>>,
    /// The pictures and documents that the prompt names. The engine adds them; they are in no record of a request.
    #[serde(skip)]
    pub attachments: Vec<Attachment>,
}

/// Tools that a model can call, and the conversation since the prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolTalk {
    /// The available tools.
    pub tools: Vec<ToolSpec>,
    /// The steps after the prompt, in order.
    pub said: Vec<Said>,
    /// A server that provides these tools to agent programs, which call it directly; we only see the final result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ToolServer>,
    /// Which tools the model may or must call.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub choice: ToolChoice,
    /// Whether the model can answer without these tools: they are left out if its service refuses them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether the model may make several calls at once; `None` leaves it to the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// The number of steps with which the next request is expected to begin, for services that cache what is marked.
    /// `None` marks nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
}

/// Which tools a model may or must call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// None: it must answer in text.
    None,
    /// Some tool.
    Required,
    /// This tool.
    Named(String),
}

impl ToolChoice {
    /// Returns whether the model decides.
    pub fn is_auto(&self) -> bool {
        *self == ToolChoice::Auto
    }
}

/// A program that serves our tools on stdin and stdout with the Model Context Protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolServer {
    /// Its name for the agent.
    pub name: String,
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The tools that the agent may call without confirmation.
    pub tools: Vec<String>,
}

impl Request {
    /// Returns the server through which an agent program calls our tools.
    pub fn server(&self) -> Option<&ToolServer> {
        self.tools.as_ref()?.server.as_ref()
    }
}

/// Separates the name of an MCP server from the name of its tool.
pub const TOOL_SEPARATOR: &str = "__";

/// The answer to a tool call of another MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerAnswer {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The answer, with `success`.
    pub answer: serde_json::Value,
}

impl ServerAnswer {
    /// Creates the answer to a call that reached no server, by the full name of the tool.
    pub fn refused(name: &str, why: &str) -> Self {
        Self {
            server: crate::clean::clean_line(name, 64),
            tool: String::new(),
            answer: serde_json::json!({"success": false, "error": why}),
        }
    }
}

/// The description of a tool for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// The description of the tool.
    pub doc: String,
    /// The JSON schema of its arguments.
    pub schema: serde_json::Value,
}

/// A tool call of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The service's id of the call, which the result refers to.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments; text that is not JSON becomes a JSON string.
    pub arguments: serde_json::Value,
    /// What the service wants to get back with the call (Gemini's `thoughtSignature`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl ToolCall {
    /// Returns the arguments as the model wrote them: JSON, or whatever else it was.
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            serde_json::Value::String(text) => text.clone(),
            arguments => arguments.to_string(),
        }
    }
}

/// A step of the conversation after the prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Said {
    /// A message of the user, or of the program that asks for the user.
    User {
        /// The text.
        text: String,
    },
    /// The model answered.
    Agent {
        /// Its text.
        text: String,
        /// Its tool calls.
        calls: Vec<ToolCall>,
    },
    /// A tool returned a result.
    Tool {
        /// The id of the call.
        id: String,
        /// The tool.
        name: String,
        /// The result.
        result: String,
        /// Whether the call failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
    /// The user showed a picture, or a tool did with the result before it.
    Picture {
        /// The picture.
        picture: Picture,
    },
}

/// A picture, for models that see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// Its type, such as `image/png`; empty if only its address is known.
    pub media_type: String,
    /// Its bytes in base64, or its `https` address.
    pub source: PictureSource,
}

/// The location of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureSource {
    /// The bytes, in base64.
    Data(String),
    /// At this address, from which the service loads it.
    Url(String),
}

impl Picture {
    /// Returns its size in a request.
    pub fn size(&self) -> usize {
        match &self.source {
            PictureSource::Data(data) | PictureSource::Url(data) => data.len(),
        }
    }

    /// Returns the address of the picture, or a `data:` address that contains it.
    pub fn url(&self) -> String {
        match &self.source {
            PictureSource::Data(data) => format!("data:{};base64,{data}", self.media_type),
            PictureSource::Url(url) => url.clone(),
        }
    }

    /// Describes the picture for members and records that do not see it.
    pub fn words(&self) -> String {
        match &self.source {
            PictureSource::Data(data) => {
                // Four characters are three bytes.
                let kib = (data.len() as f64) * 0.75 / 1024.0;
                format!("[a picture: {}, {kib:.1} KiB]", self.media_type)
            }
            PictureSource::Url(url) => format!("[a picture: {url}]"),
        }
    }
}

/// The reason why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model finished.
    Stop,
    /// The token limit cut the answer.
    Length,
    /// The answer was cut where the model repeated its prompt.
    Repetition,
}

impl Finish {
    /// Returns the word in messages for what cut an answer; `None` if the model finished.
    pub(crate) fn cut(self) -> Option<&'static str> {
        match self {
            Self::Stop => None,
            Self::Length => Some("length"),
            Self::Repetition => Some("repetition"),
        }
    }
}

/// One piece of an arriving answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Delta {
    /// The backend accepted the request; its information about itself.
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
        /// The target of the tool, such as a file name, in one line.
        detail: String,
    },
    /// The model calls one of our tools; the next request contains the result.
    Call {
        /// The call.
        call: ToolCall,
    },
    /// The call failed and will be retried: all pieces so far are void.
    Retrying {
        /// The number of the attempt that failed, from 1.
        attempt: u32,
        /// The delay before the next attempt.
        after: Duration,
        /// The reason.
        failure: Failure,
    },
    /// A notice for the user that does not end the turn.
    Notice {
        /// One line.
        text: String,
    },
    /// The answer is complete. Always the last delta, and the only sign of success.
    Finished {
        /// The reason why it ended.
        finish: Finish,
        /// The whole text, if the backend sends it and it differs from the joined pieces.
        text: Option<String>,
        /// Its usage.
        usage: Option<Usage>,
        /// The probability of each label if the answer chose among labels (built-in model).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<(String, f64)>,
    },
}
