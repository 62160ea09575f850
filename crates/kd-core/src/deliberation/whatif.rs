//! Decides a recorded deliberation differently, without a model: without a member, by another rule, with other weights
//! or another seed.
//!
//! Input: a record and a [`Change`]. Output: the counts and the decision that would have followed. The machine runs
//! again; each member it asks gives its recorded reply to the same request at the same position. Ballots and reviews
//! keep their meaning: labels are translated, answers that no longer exist are removed. If a needed reply does not
//! exist, the run stops and names it.

use super::blind;
use super::board::Board;
use super::count::{Source, cast, count_cast};
use super::fact::{Counted, Fact, Labelled, Rated};
use super::iteration::Decision;
use super::machine::{Deliberation, Phase};
use super::plan::{PRIVATE, Plan};
use super::reader::Reading;
use super::robust::{self, Robustness};
use super::stages::{ballot_form, foretells};
use super::standins::StandIns;
use super::verdict::{Dissenter, Verdict};
use crate::event::{Event, Record};
use crate::failure::{Failure, FailureKind};
use crate::ids::{MachineId, SeatName, TurnId};
use crate::machine::{Command, Effects, Input, Machine};
use crate::message::{Address, Draft, Message};
use crate::op::Op;
use crate::prompt::PREAMBLE;
use crate::request::{Delta, Finish, Prompt};
use crate::usage::Usage;
use jiff::Timestamp;
use kd_vote::{Outcome, Reads};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};

/// The change. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Members to leave out.
    pub without: Vec<SeatName>,
    /// Another voting rule.
    pub rule: Option<String>,
    /// Another seed for labels, orders and lots.
    pub seed: Option<u64>,
    /// Weights of members.
    pub weights: Vec<(SeatName, f64)>,
}

/// A change that is not possible.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadChange {
    /// The records contain no deliberation from its beginning.
    #[error("the record does not start with its plan")]
    NoPlan,
    /// No member has this name.
    #[error("{name} is not a member of this deliberation")]
    NoMember {
        /// The name.
        name: String,
        /// The members.
        members: Vec<String>,
    },
    /// No member would be left to answer.
    #[error("no member would be left to answer")]
    NobodyLeft,
    /// There is no such rule.
    #[error("there is no voting rule `{0}`")]
    NoRule(String),
    /// An invalid weight.
    #[error("{0} is not a weight: it must be 0 or more")]
    BadWeight(String),
}

impl BadChange {
    /// Returns what to do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            BadChange::NoPlan => return None,
            BadChange::NoMember { members, .. } => format!("its members: {}", members.join(", ")),
            BadChange::NobodyLeft => "leave out fewer members".to_owned(),
            BadChange::NoRule(name) => {
                let names = kd_vote::RULES.iter().map(|rule| rule.name);
                match kd_vote::nearest(name, names) {
                    Some(near) => format!("did you mean {near}? `kd vote rules` lists them all"),
                    None => "`kd vote rules` lists them".to_owned(),
                }
            }
            BadChange::BadWeight(_) => "for example `--weights bob=2`".to_owned(),
        })
    }
}

/// The hypothetical result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIf {
    /// Counts in order.
    pub counts: Vec<Counted>,
    /// Decisions after passes.
    pub decisions: Vec<Decision>,
    /// The decision; `None` if the run stopped before it.
    pub decided: Option<Decided>,
    /// The reason why the run stopped: the missing reply.
    pub stopped: Option<String>,
    /// Number of recorded replies used.
    pub replies: usize,
    /// Number of these replies whose prompt would have differed.
    pub asked_otherwise: usize,
    /// The robustness of the last count.
    pub robustness: Option<Robustness>,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decided {
    /// The outcome.
    pub outcome: Outcome,
    /// The form of the last count.
    pub form: Outcome,
    /// The heading of the conclusion.
    pub heading: String,
    /// The winner's name in the count.
    pub winner: Option<String>,
    /// The step that broke a tie: `pairwise`, `lot` …; `None` without a tie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untied_by: Option<String>,
    /// The members that ranked the winner first.
    pub support: Vec<SeatName>,
    /// The members that ranked another candidate first.
    pub dissent: Vec<Dissenter>,
    /// Number of passes.
    pub passes: u32,
    /// The pass whose result counts.
    pub best_pass: u32,
}

impl Decided {
    fn of(verdict: &Verdict, board: &Board) -> Self {
        let counted = board.counted.as_ref();
        let winner = counted.and_then(|c| c.candidates.get(c.winner?).cloned());
        let untied_by = counted.and_then(|c| c.tie_path.last()?.split_once(':'));
        Self {
            untied_by: untied_by.map(|(step, _)| step.to_owned()),
            outcome: verdict.outcome,
            form: verdict.form,
            heading: verdict.heading.clone(),
            winner,
            support: verdict.support.clone(),
            dissent: verdict.dissent.clone(),
            passes: verdict.passes,
            best_pass: verdict.best_pass,
        }
    }
}

/// Returns how robust a recorded decision is. `None` if the record does not lead to its verdict, or nobody won.
pub fn robustness(records: &[Record], verdict: &Verdict) -> Option<Robustness> {
    let found = what_if(records, &Change::default(), true).ok()?;
    let decided = found.decided.filter(|d| d.heading == verdict.heading)?;
    decided.winner.and(found.robustness)
}

/// Decides again with a change. `records` belong to one deliberation, as returned by [`last`](super::last). `rest` also
/// computes the robustness of the last count.
///
/// # Errors
/// If the change is not possible.
pub fn what_if(records: &[Record], change: &Change, rest: bool) -> Result<WhatIf, BadChange> {
    let recorded = Recorded::of(records).ok_or(BadChange::NoPlan)?;
    let plan = changed(&recorded.plan, change)?;
    let is_changed = plan != recorded.plan;
    let mut course = Course::new(plan, &recorded);
    if is_changed && recorded.plan.reading >= PRIVATE {
        course.machine.plan.stand_ins = recorded.stand_ins();
    }
    course.run();
    Ok(course.told(rest))
}

/// Returns the rule that would count the ballots, if the change gives weights and that rule uses none.
pub fn without_weights(records: &[Record], change: &Change) -> Option<&'static str> {
    let recorded = Recorded::of(records)?;
    let name = change.rule.as_ref();
    let rule = kd_vote::find(name.unwrap_or(&recorded.plan.voting.method))?;
    (!change.weights.is_empty() && !rule.weighted).then_some(rule.name)
}

/// Applies the change to the plan.
fn changed(plan: &Plan, change: &Change) -> Result<Plan, BadChange> {
    let mut changed = plan.clone();
    let place = |name: &SeatName| {
        plan.place(name).ok_or_else(|| BadChange::NoMember {
            name: name.to_string(),
            members: plan.seats.iter().map(|s| s.name().to_string()).collect(),
        })
    };
    for (name, weight) in &change.weights {
        if !weight.is_finite() || *weight < 0.0 {
            return Err(BadChange::BadWeight(weight.to_string()));
        }
        changed.seats[place(name)?].member.weight = *weight;
    }
    for name in &change.without {
        place(name)?;
    }
    changed.seats.retain(|s| !change.without.contains(s.name()));
    if changed.at_the_table().is_empty() {
        return Err(BadChange::NobodyLeft);
    }
    if let Some(name) = &change.rule {
        let rule = kd_vote::find(name).ok_or_else(|| BadChange::NoRule(name.clone()))?;
        rule.name.clone_into(&mut changed.voting.method);
    }
    changed.seed = change.seed.unwrap_or(plan.seed);
    Ok(changed)
}

/// The position of a request: pass, round, depth, issue, stage.
type Where = (u32, u32, u32, Option<String>, String);

/// A recorded request and its result.
#[derive(Clone, Debug)]
struct Reply {
    labels: Vec<Labelled>,
    prompt: Prompt,
    /// Index of the reply in the record; `None` if there is none.
    at: Option<usize>,
    came: Came,
    message: Option<Message>,
}

#[derive(Clone, Debug)]
enum Came {
    Nothing,
    Text(String, Finish, Option<Usage>),
    Failed(Failure, String),
}

/// The reading of a reply, by name.
#[derive(Clone, Debug)]
enum Read {
    Ballot {
        marks: Vec<String>,
        confidence: Option<f64>,
        reason: String,
    },
    Review {
        ratings: Vec<Rated>,
        ranking: Vec<SeatName>,
    },
}

/// The record, prepared for the run.
struct Recorded {
    plan: Plan,
    preamble: String,
    messages: u32,
    readings: Vec<Reading>,
    replies: BTreeMap<(Where, SeatName), Vec<Reply>>,
    reads: BTreeMap<(Where, SeatName), Read>,
    stages: Vec<Where>,
    /// External input besides replies: the user's stop, the end of the time limit.
    outside: Vec<(usize, Input)>,
}

impl Recorded {
    fn of(records: &[Record]) -> Option<Self> {
        let (from, plan, preamble) =
            records
                .iter()
                .enumerate()
                .find_map(|(at, r)| match fact(&r.event)? {
                    Fact::Opened { plan, preamble, .. } => {
                        Some((at, plan.clone(), preamble.clone()))
                    }
                    _ => None,
                })?;
        let Event::ThreadOpened { messages, .. } = &records.get(from.checked_sub(1)?)?.event else {
            return None;
        };
        let mut recorded = Self {
            plan: *plan,
            preamble: preamble.unwrap_or_else(|| PREAMBLE.trim().to_owned()),
            messages: *messages,
            readings: Vec::new(),
            replies: BTreeMap::new(),
            reads: BTreeMap::new(),
            stages: Vec::new(),
            outside: Vec::new(),
        };
        let mut place = Where::default();
        let mut turns = BTreeMap::new();
        for (at, record) in records.iter().enumerate().skip(from) {
            match &record.event {
                Event::MessageAdded {
                    message,
                    turn: Some(turn),
                    ..
                } => recorded.with(&turns, *turn, |r| r.message = Some(message.clone())),
                Event::Deliberated { fact } => {
                    recorded.take(at, fact, &mut place, &mut turns);
                }
                _ => {}
            }
        }
        Some(recorded)
    }

    /// Returns the stand-ins of the record, which its replies contain.
    fn stand_ins(&self) -> StandIns {
        let mut course = Course::new(self.plan.clone(), self);
        course.run();
        course.machine.plan.stand_ins.clone()
    }

    fn take(
        &mut self,
        at: usize,
        fact: &Fact,
        place: &mut Where,
        turns: &mut BTreeMap<TurnId, ((Where, SeatName), usize)>,
    ) {
        let read = match fact {
            Fact::StageBegan { .. } => {
                *place = where_of(fact);
                self.stages.push(place.clone());
                return;
            }
            Fact::SeatAsked {
                turn,
                seat,
                labels,
                prompt,
                ..
            } => {
                let key = (place.clone(), seat.clone());
                let asked = self.replies.entry(key.clone()).or_default();
                turns.insert(*turn, (key, asked.len()));
                asked.push(Reply {
                    labels: labels.clone(),
                    prompt: prompt.clone(),
                    at: None,
                    came: Came::Nothing,
                    message: None,
                });
                return;
            }
            Fact::SeatReplied {
                turn,
                text,
                finish,
                usage,
                ..
            } => {
                let came = Came::Text(text.clone(), *finish, *usage);
                return self.with(turns, *turn, |r| (r.at, r.came) = (Some(at), came));
            }
            Fact::SeatFailed {
                turn,
                failure,
                text,
                ..
            } => {
                let came = Came::Failed(failure.clone(), text.clone());
                return self.with(turns, *turn, |r| (r.at, r.came) = (Some(at), came));
            }
            Fact::Readings { readings } => return self.readings.extend(readings.iter().cloned()),
            Fact::Stopped => return self.outside.push((at, Input::Op(Op::Interrupt))),
            Fact::BellRang { over } => {
                let timer = super::machine::timer(MachineId::default(), *over);
                return self.outside.push((at, Input::Woke { timer }));
            }
            Fact::BallotRead {
                seat,
                marks,
                confidence,
                reason,
                ..
            } => (
                seat,
                Read::Ballot {
                    marks: marks.clone(),
                    confidence: *confidence,
                    reason: reason.clone(),
                },
            ),
            Fact::ReviewRead {
                seat,
                ratings,
                ranking,
                ..
            } => (
                seat,
                Read::Review {
                    ratings: ratings.clone(),
                    ranking: ranking.clone(),
                },
            ),
            _ => return,
        };
        self.reads.insert((place.clone(), read.0.clone()), read.1);
    }

    fn with(
        &mut self,
        turns: &BTreeMap<TurnId, ((Where, SeatName), usize)>,
        turn: TurnId,
        change: impl FnOnce(&mut Reply),
    ) {
        let found = turns.get(&turn).and_then(|(key, at)| {
            let replies = self.replies.get_mut(key)?;
            replies.get_mut(*at)
        });
        if let Some(reply) = found {
            change(reply);
        }
    }
}

fn where_of(fact: &Fact) -> Where {
    match fact {
        Fact::StageBegan {
            pass,
            round,
            depth,
            issue,
            stage,
            ..
        } => (*pass, *round, *depth, issue.clone(), stage.clone()),
        _ => Where::default(),
    }
}

fn fact(event: &Event) -> Option<&Fact> {
    match event {
        Event::Deliberated { fact } => Some(fact),
        _ => None,
    }
}

/// The result prepared for an open turn.
struct Due {
    came: Came,
    message: Option<Message>,
}

/// A run of the machine on recorded replies.
struct Course<'r> {
    recorded: &'r Recorded,
    machine: Deliberation,
    place: Where,
    /// Number of requests to a member at a position.
    asked: BTreeMap<(Where, SeatName), usize>,
    /// Turns by the index of their reply in the record.
    due: BTreeMap<(usize, TurnId), Due>,
    /// The recorded messages of turns.
    said: BTreeMap<TurnId, Message>,
    outside: VecDeque<(usize, Input)>,
    inputs: VecDeque<Input>,
    messages: u32,
    counts: Vec<Counted>,
    decided: Option<Decided>,
    stopped: Option<String>,
    replies: usize,
    asked_otherwise: usize,
}

/// Maximum steps of a run: more than the inputs of any deliberation.
const STEPS_MAX: usize = 100_000;

impl<'r> Course<'r> {
    fn new(plan: Plan, recorded: &'r Recorded) -> Self {
        let (machine, _) = Deliberation::open_with(
            plan,
            Vec::new(),
            recorded.preamble.clone(),
            recorded.messages,
            recorded.readings.clone(),
        );
        Self {
            recorded,
            machine,
            place: Where::default(),
            asked: BTreeMap::new(),
            due: BTreeMap::new(),
            said: BTreeMap::new(),
            outside: recorded.outside.iter().cloned().collect(),
            inputs: VecDeque::new(),
            messages: recorded.messages,
            counts: Vec::new(),
            decided: None,
            stopped: None,
            replies: 0,
            asked_otherwise: 0,
        }
    }

    fn run(&mut self) {
        self.inputs.push_back(Input::Op(Op::Say {
            body: self.recorded.plan.question.clone(),
            to: Address::All,
        }));
        for _ in 0..STEPS_MAX {
            if self.stopped.is_some() || self.decided.is_some() {
                return;
            }
            let Some(input) = self.inputs.pop_front().or_else(|| self.next_from_record()) else {
                if !self.machine.is_done() && self.stopped.is_none() {
                    self.stopped = Some("the record ends before the decision".into());
                }
                return;
            };
            let effects = self.machine.step(Timestamp::UNIX_EPOCH, input);
            self.take(effects);
        }
    }

    /// Returns the next reply or other external input in the record.
    fn next_from_record(&mut self) -> Option<Input> {
        let next = self.due.keys().next().map(|(at, _)| *at);
        if let Some((at, _)) = self.outside.front()
            && next.is_none_or(|next| *at < next)
            && !self.machine.is_done()
        {
            return self.outside.pop_front().map(|(_, input)| input);
        }
        let ((_, turn), due) = self.due.pop_first()?;
        if let Came::Failed(failure, _) = &due.came
            && failure.message == NEEDLESS
        {
            // It was cancelled in the record; now its reply would have counted.
            let seat = self.machine.open.get(&turn).map(|open| open.seat);
            let seat = seat.and_then(|seat| self.machine.plan().seats.get(seat));
            let name = seat.map_or_else(String::new, |seat| seat.name().to_string());
            self.stopped = Some(format!(
                "{name} was stopped, because the result was certain; here it would have counted"
            ));
            return None;
        }
        self.said.extend(due.message.map(|message| (turn, message)));
        self.replies += 1;
        match due.came {
            Came::Text(text, finish, usage) => Some(Input::Delta {
                turn,
                delta: Delta::Finished {
                    finish,
                    text: Some(text),
                    usage,
                    choices: Vec::new(),
                },
            }),
            Came::Failed(failure, text) if text.is_empty() => Some(Input::Failed { turn, failure }),
            Came::Failed(failure, text) => {
                self.inputs.push_back(Input::Failed { turn, failure });
                let delta = Delta::Text { text };
                Some(Input::Delta { turn, delta })
            }
            Came::Nothing => None,
        }
    }

    fn take(&mut self, effects: Effects) {
        let mut questions: BTreeMap<TurnId, (Where, SeatName, Vec<Labelled>, Prompt)> =
            BTreeMap::new();
        for event in effects.events {
            let Event::Deliberated { fact } = event else {
                continue;
            };
            match *fact {
                Fact::StageBegan { .. } => self.place = where_of(&fact),
                Fact::SeatAsked {
                    turn,
                    seat,
                    labels,
                    prompt,
                    ..
                } => {
                    let question = (self.place.clone(), seat, labels, prompt);
                    questions.insert(turn, question);
                }
                Fact::Counted(counted) => self.counts.push(counted),
                Fact::Concluded(verdict) => self.decide(&verdict),
                _ => {}
            }
        }
        for command in effects.commands {
            if self.stopped.is_some() || self.decided.is_some() {
                return;
            }
            match command {
                Command::Ask { turn, .. } => {
                    if let Some((place, seat, labels, prompt)) = questions.remove(&turn) {
                        self.ask(turn, place, seat, &labels, &prompt);
                    }
                }
                Command::Cancel { turn } => {
                    self.due.retain(|(_, due), _| *due != turn);
                    let failure = Failure::new(FailureKind::Cancelled, "stopped");
                    self.inputs.push_back(Input::Failed { turn, failure });
                }
                Command::Save(draft) => self.save(*draft),
                _ => {}
            }
        }
    }

    fn save(&mut self, draft: Draft) {
        let recorded = draft.turn.and_then(|turn| self.said.remove(&turn));
        self.messages = self.messages.saturating_add(1);
        let seq = recorded.map_or(self.messages, |message| message.seq);
        self.inputs.push_front(Input::Saved {
            turn: draft.turn,
            message: draft.stored(seq),
        });
    }

    fn decide(&mut self, verdict: &Verdict) {
        let (_, board) = self.machine.best();
        self.decided = Some(Decided::of(verdict, &board));
    }

    /// Finds the reply to a request.
    fn ask(
        &mut self,
        turn: TurnId,
        place: Where,
        seat: SeatName,
        labels: &[Labelled],
        prompt: &Prompt,
    ) {
        let stage = place.4.clone();
        let key = (place, seat);
        let before = self.asked.entry(key.clone()).or_default();
        let reply = self.recorded.replies.get(&key);
        let reply = reply.and_then(|replies| replies.get(*before)).cloned();
        *before += 1;
        let failed = matches!(&reply, Some(r) if matches!(r.came, Came::Failed(..)));
        if matches!(self.machine.phase, Phase::Concluding { .. }) && !failed {
            // The chair's text is not simulated: the decision precedes it.
            let items = self.machine.open.get(&turn).map(|t| t.items.clone());
            let seat = self.machine.plan().place(&key.1).unwrap_or_default();
            let items = items.unwrap_or_default();
            let verdict = self.machine.verdict(Some((seat, "", &items)));
            return self.decide(&verdict);
        }
        let Some(mut reply) = reply else {
            self.stopped = Some(self.never_asked(&key.0, &key.1));
            return;
        };
        let Some(at) = reply.at else {
            self.stopped = Some(format!("the record has no reply of {} in {stage}", key.1));
            return;
        };
        if let Err(why) = self.translate(turn, &key, labels, &mut reply) {
            self.stopped = Some(why);
            return;
        }
        if reply.prompt != *prompt {
            self.asked_otherwise += 1;
        }
        // The reply has the stand-ins of the prompt that its member read.
        let stand_ins = self.machine.plan.stand_ins.in_prompt(&reply.prompt.history);
        if let Some(open) = self.machine.open.get_mut(&turn) {
            open.stand_ins = stand_ins;
        }
        let Reply { came, message, .. } = reply;
        self.due.insert((at, turn), Due { came, message });
    }

    fn never_asked(&self, place: &Where, seat: &SeatName) -> String {
        let (pass, .., stage) = place;
        let known = self.recorded.stages.iter();
        if *pass > 1 && !known.clone().any(|(known, ..)| known == pass) {
            return format!("the council would have started pass {pass}, which was not recorded");
        }
        match self.recorded.stages.contains(place) {
            true => format!("{seat} would have been asked in {stage}, and was not"),
            false => {
                format!("it would have come to {stage} in pass {pass}, which was not recorded")
            }
        }
    }

    /// Translates a recorded reply so that it keeps its meaning in this run.
    fn translate(
        &mut self,
        turn: TurnId,
        key: &(Where, SeatName),
        labels: &[Labelled],
        reply: &mut Reply,
    ) -> Result<(), String> {
        let (stage, seat) = (&key.0.4, &key.1);
        let votes = ["vote", "open-vote"].contains(&stage.as_str());
        let (plan, old) = (self.machine.plan(), &self.recorded.plan);
        let form = ballot_form(plan);
        if votes && (form != ballot_form(old) || foretells(plan) && !foretells(old)) {
            return Err(format!(
                "{} reads other ballots than {}: members were never asked for them",
                plan.voting.method, old.voting.method
            ));
        }
        if reply.labels == labels || matches!(reply.came, Came::Failed(..)) {
            return Ok(());
        }
        let items = |labels: &[Labelled]| {
            let mut items: Vec<String> = labels.iter().map(|l| l.item.clone()).collect();
            items.sort();
            items
        };
        if items(labels) == items(&reply.labels) {
            self.relabel(turn, labels, &reply.labels);
            return Ok(());
        }
        if let Some(new) = labels
            .iter()
            .find(|l| reply.labels.iter().all(|old| old.item != l.item))
        {
            return Err(format!(
                "{seat} would have been asked about “{}” in {stage}, and never was",
                new.item
            ));
        }
        let read = self.recorded.reads.get(key);
        let Came::Text(text, ..) = &mut reply.came else {
            return Ok(());
        };
        match read {
            // A ballot unreadable with more labels is unreadable with fewer.
            Some(Read::Ballot { marks, .. }) if marks.is_empty() => {}
            Some(Read::Ballot {
                marks,
                confidence,
                reason,
            }) if votes => {
                let mark = mark(form, marks, labels).ok_or_else(|| {
                    format!("{seat} voted for “{}”, which would not exist", marks[0])
                })?;
                let mut ballot = mark;
                ballot.insert("reason".into(), json!(reason));
                ballot.insert("confidence".into(), json!(confidence));
                *text = Value::Object(ballot).to_string();
            }
            Some(Read::Review { ratings, ranking }) => {
                if !ratings.is_empty() {
                    *text = review(ratings, ranking, labels).to_string();
                }
            }
            _ => {
                return Err(format!(
                    "{seat} would have been asked about fewer answers in {stage}, and never was"
                ));
            }
        }
        Ok(())
    }

    /// Gives the labels of a turn their recorded meaning.
    fn relabel(&mut self, turn: TurnId, labels: &[Labelled], recorded: &[Labelled]) {
        let Some(open) = self.machine.open.get_mut(&turn) else {
            return;
        };
        let mut left: Vec<usize> = (0..labels.len()).collect();
        let mut items = Vec::new();
        for old in recorded {
            let Some(at) = left.iter().position(|at| labels[*at].item == old.item) else {
                return;
            };
            items.extend(open.items.get(left.remove(at)).copied());
        }
        if items.len() == open.items.len() {
            open.items = items;
        }
    }

    fn told(self, rest: bool) -> WhatIf {
        let robustness = rest.then(|| self.robustness()).flatten();
        WhatIf {
            robustness,
            counts: self.counts,
            decisions: self.machine.decisions,
            decided: self.decided,
            stopped: self.stopped,
            replies: self.replies,
            asked_otherwise: self.asked_otherwise,
        }
    }

    /// Computes the robustness of the deciding count.
    fn robustness(&self) -> Option<Robustness> {
        let (_, best) = self.machine.best();
        let open = self.machine.frames.last().map(|frame| &frame.board);
        let board = match (&best.counted, open) {
            (Some(_), _) => &best,
            (None, open) => open?,
        };
        let counted = board.counted.as_ref()?;
        // Without a member, estimates have another mean, which only another deliberation shows.
        let sources = [Source::Answers, Source::Ballots, Source::Rankings];
        let source = sources.into_iter().find(|s| s.word() == counted.source)?;
        let plan = self.machine.plan();
        Some(robust::of(counted, plan, |rule, change| {
            let mut cast = cast(plan, board, source, rule);
            change(&mut cast);
            count_cast(plan, board, source, rule, cast).0
        }))
    }
}

/// The reason why a turn failed whose reply no longer mattered.
const NEEDLESS: &str = super::machine::NEEDLESS;

/// Returns the vote under new labels; `None` if nothing of it is left.
fn mark(form: Reads, marks: &[String], labels: &[Labelled]) -> Option<Map<String, Value>> {
    let label = |item: &str| labels.iter().find(|l| l.item == item).map(|l| &l.label);
    let kept: Vec<&String> = marks.iter().filter_map(|item| label(item)).collect();
    let (name, value) = match form {
        Reads::Choice | Reads::Rounds => ("choice", json!(label(marks.first()?)?)),
        Reads::Ranking | Reads::Paper if !kept.is_empty() => ("ranking", json!(kept)),
        Reads::Approvals if !kept.is_empty() && kept.len() <= labels.len().div_ceil(2) => {
            ("approve", json!(kept))
        }
        Reads::Scores | Reads::Points => {
            let points = marks.iter().filter_map(|mark| {
                let (item, points) = mark.rsplit_once(": ")?;
                Some((label(item)?.clone(), json!(points.parse::<f64>().ok()?)))
            });
            let points: Map<String, Value> = points.collect();
            if points.is_empty() {
                return None;
            }
            ("scores", Value::Object(points))
        }
        _ => return None,
    };
    Some(Map::from_iter([(name.to_owned(), value)]))
}

/// Returns a review under new labels.
fn review(ratings: &[Rated], ranking: &[SeatName], labels: &[Labelled]) -> Value {
    let mut object = Map::new();
    for label in labels {
        if let Some(rated) = ratings.iter().find(|r| r.seat.as_str() == label.item) {
            let about = json!({"rating": rated.rating, "weakness": rated.weakness});
            object.insert(label.label.clone(), about);
        }
    }
    let order: Vec<&String> = ranking
        .iter()
        .filter_map(|seat| labels.iter().find(|l| l.item == seat.as_str()))
        .map(|l| &l.label)
        .collect();
    debug_assert!(
        labels
            .iter()
            .enumerate()
            .all(|(at, l)| l.label == blind::label(at))
    );
    if !order.is_empty() {
        object.insert("ranking".into(), json!(order));
    }
    Value::Object(object)
}
