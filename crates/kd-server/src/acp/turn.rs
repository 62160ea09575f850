//! One prompt: the council's events as a plan, cards, thoughts and a message.

use super::session::{Begun, card_text, chunk, tell};
use super::{Council, refused};
use crate::answer::{Answer, Told};
use crate::blocking::off;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, PromptResponse, SessionInfoUpdate,
    SessionUpdate, StopReason, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind,
};
use agent_client_protocol::{Client, Result};
use kd_app::host::{Host, Method, PlanChoice, Query};
use kd_core::clean::clean_line;
use kd_core::event::Purpose;
use kd_core::{Event, TurnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Characters of a session's title.
const TITLE_CHARS_MAX: usize = 80;
/// The stages of a council in the order of a plan, and their names.
const STAGES: &[(Purpose, &str)] = &[
    (Purpose::Plan, "plan"),
    (Purpose::Answer, "answer"),
    (Purpose::Exchange, "exchange"),
    (Purpose::Review, "review"),
    (Purpose::Revise, "revise"),
    (Purpose::Compress, "summarize"),
    (Purpose::Vote, "vote"),
    (Purpose::Arbitrate, "compare"),
    (Purpose::Conclude, "conclude"),
    (Purpose::Format, "write JSON"),
];

/// Asks the council, and reports to the client until the end.
///
/// # Errors
/// If no member can be asked, no member answered, or the connection is closed.
pub(super) async fn run(
    council: &Council,
    begun: &Begun<'_>,
    host: Arc<dyn Host>,
    (id, question): (&str, String),
    client: &ConnectionTo<Client>,
) -> Result<PromptResponse> {
    let title = question.lines().find(|line| !line.trim().is_empty());
    let title = clean_line(title.unwrap_or_default(), TITLE_CHARS_MAX);
    let query = Query {
        method: begun.session.method,
        question,
        members: Vec::new(),
        thread: Some(id.to_owned()),
        plan: PlanChoice::default(),
        output: None,
    };
    let started = off(&host, move |host| host.ask(&query)).await;
    let started = started.map_err(refused)?.map_err(|why| refused(why.0))?;
    begun.said();
    if begun.session.is_new {
        let update = SessionInfoUpdate::new().title(title);
        tell(client, id, SessionUpdate::SessionInfoUpdate(update))?;
    }
    let (mut running, mut records) = council.running.start_watched(started);
    let mut board = Board::of(begun.session.method);
    let mut sent = String::new();
    let mut void = false;
    loop {
        let told = tokio::select! {
            Some(event) = records.recv() => {
                for update in board.hear(&event) {
                    tell(client, id, update)?;
                }
                continue;
            }
            told = running.told.recv() => told,
            () = begun.stop.cancelled(), if !board.stopped => {
                board.stopped = true;
                running.stop();
                continue;
            }
        };
        match told {
            Some(Told::Line(line)) => {
                let line = format!("{line}\n");
                tell(client, id, SessionUpdate::AgentThoughtChunk(chunk(&line)))?;
            }
            Some(Told::Text(text)) if !void => {
                sent.push_str(&text);
                tell(client, id, SessionUpdate::AgentMessageChunk(chunk(&text)))?;
            }
            Some(Told::Text(_)) => {}
            Some(Told::Void) => void |= !sent.is_empty(),
            None => break,
        }
    }
    // What is left: the last events arrive with the end.
    while let Ok(event) = records.try_recv() {
        for update in board.hear(&event) {
            tell(client, id, update)?;
        }
    }
    let answer = running.end().await.map_err(refused)?;
    for update in board.close(&answer) {
        tell(client, id, update)?;
    }
    if board.stopped {
        return Ok(PromptResponse::new(StopReason::Cancelled));
    }
    finish(&answer, (&sent, void), id, client)
}

/// Sends the rest of the answer, and ends the prompt. Text that was sent is void if the attempt broke off
/// afterwards.
fn finish(
    answer: &Answer,
    (sent, void): (&str, bool),
    id: &str,
    client: &ConnectionTo<Client>,
) -> Result<PromptResponse> {
    if !answer.is_answer() {
        let thread = answer.thread().unwrap_or_default();
        let why = format!("{} (thread {thread})", answer.failure());
        return Err(refused(why));
    }
    let content = answer.content();
    let rest = match content.strip_prefix(sent).filter(|_| !void) {
        Some(rest) => rest.to_owned(),
        None => format!("\n\n*(interrupted; the answer:)*\n\n{content}"),
    };
    if !rest.is_empty() {
        tell(client, id, SessionUpdate::AgentMessageChunk(chunk(&rest)))?;
    }
    if let Some(promise) = answer.promise() {
        let line = format!("\n\n*{promise}*");
        tell(client, id, SessionUpdate::AgentMessageChunk(chunk(&line)))?;
    }
    Ok(PromptResponse::new(match answer.is_cut() {
        true => StopReason::MaxTokens,
        false => StopReason::EndTurn,
    }))
}

/// The plan and the cards of a prompt.
struct Board {
    /// The stages so far, and how many turns of each are open.
    stages: BTreeMap<usize, u32>,
    /// The open cards: their stage.
    cards: BTreeMap<TurnId, usize>,
    /// The texts of messages, by number, until their turn ends.
    bodies: BTreeMap<u32, String>,
    /// The number of the prompt's message in the thread: turns are numbered from 1 for each prompt, cards are not.
    prompt: u32,
    is_done: bool,
    stopped: bool,
}

impl Board {
    fn of(method: Method) -> Self {
        let known: &[Purpose] = match method {
            Method::Ask | Method::Think => &[Purpose::Answer, Purpose::Conclude],
            Method::Deliberate => &[Purpose::Plan],
        };
        let stages = known.iter().map(|purpose| (stage(*purpose), 0));
        Self {
            stages: stages.collect(),
            cards: BTreeMap::new(),
            bodies: BTreeMap::new(),
            prompt: 0,
            is_done: false,
            stopped: false,
        }
    }

    /// Returns the plan: stages with open turns are in progress, those before them are done.
    fn plan(&self) -> SessionUpdate {
        let last = self.stages.iter().rev().find(|(_, open)| **open > 0);
        let last = last.map(|(at, _)| *at);
        let entries = self.stages.iter().map(|(at, open)| {
            let status = if *open > 0 {
                PlanEntryStatus::InProgress
            } else if self.is_done || last.is_some_and(|last| *at < last) {
                PlanEntryStatus::Completed
            } else {
                PlanEntryStatus::Pending
            };
            PlanEntry::new(STAGES[*at].1, PlanEntryPriority::Medium, status)
        });
        SessionUpdate::Plan(Plan::new(entries.collect()))
    }

    /// Returns the updates that an event makes.
    #[deny(clippy::wildcard_enum_match_arm)]
    fn hear(&mut self, event: &Event) -> Vec<SessionUpdate> {
        match event {
            Event::TurnQueued {
                turn,
                seat,
                purpose,
                ..
            } => {
                let at = stage(*purpose);
                *self.stages.entry(at).or_default() += 1;
                self.cards.insert(*turn, at);
                let title = format!("{seat}: {}", STAGES[at].1);
                let card = ToolCall::new(self.card_id(*turn), title)
                    .kind(ToolKind::Think)
                    .status(ToolCallStatus::InProgress);
                vec![self.plan(), SessionUpdate::ToolCall(card)]
            }
            Event::MessageAdded { message, .. } if message.is_king() => {
                self.prompt = message.seq;
                Vec::new()
            }
            Event::MessageAdded { message, .. } => {
                self.bodies.insert(message.seq, message.body.to_string());
                Vec::new()
            }
            Event::TurnFinished { turn, message, .. } => {
                let body = message.and_then(|seq| self.bodies.remove(&seq));
                self.end(*turn, ToolCallStatus::Completed, body)
            }
            Event::TurnFailed { turn, failure, .. } => {
                let why = Some(failure.message.clone());
                self.end(*turn, ToolCallStatus::Failed, why)
            }
            // The plan and its cards show turns; the answer and its notices are sent when the round has ended.
            Event::ThreadOpened { .. }
            | Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::TurnDelta { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. }
            | Event::SeatMuted { .. }
            | Event::ModeSet { .. }
            | Event::OpRefused { .. }
            | Event::SaveFailed { .. }
            | Event::FloorYielded { .. }
            | Event::PhaseBegan { .. }
            | Event::CouncilSaid { .. }
            | Event::DuetEnded { .. }
            | Event::Deliberated { .. }
            | Event::Promised { .. }
            | Event::Reviewed { .. }
            | Event::HeldBack { .. }
            | Event::Noticed { .. } => Vec::new(),
        }
    }

    fn end(
        &mut self,
        turn: TurnId,
        status: ToolCallStatus,
        text: Option<String>,
    ) -> Vec<SessionUpdate> {
        let Some(at) = self.cards.remove(&turn) else {
            return Vec::new();
        };
        if let Some(open) = self.stages.get_mut(&at) {
            *open = open.saturating_sub(1);
        }
        let mut fields = ToolCallUpdateFields::new().status(status);
        if let Some(text) = text {
            fields = fields.content(card_text(&text));
        }
        let update = ToolCallUpdate::new(self.card_id(turn), fields);
        vec![SessionUpdate::ToolCallUpdate(update)]
    }

    /// Returns the id of a turn's card, unique in the session.
    fn card_id(&self, turn: TurnId) -> String {
        format!("message-{}-{turn}", self.prompt)
    }

    /// Ends all open cards, and the plan.
    fn close(&mut self, answer: &Answer) -> Vec<SessionUpdate> {
        let status = match answer.is_answer() {
            true => ToolCallStatus::Completed,
            false => ToolCallStatus::Failed,
        };
        let open: Vec<TurnId> = self.cards.keys().copied().collect();
        let mut updates: Vec<SessionUpdate> = open
            .into_iter()
            .flat_map(|turn| self.end(turn, status, None))
            .collect();
        self.is_done = answer.is_answer();
        updates.push(self.plan());
        updates
    }
}

/// Returns the place of a stage in a plan.
fn stage(purpose: Purpose) -> usize {
    let at = STAGES.iter().position(|stage| stage.0 == purpose);
    at.unwrap_or_default()
}
