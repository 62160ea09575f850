//! The state machine of a review: asks every member for findings, merges them, collects votes, and reports.
//!
//! Input: [`Input`]s. Output: [`Effects`]; the last ones contain [`Event::Reviewed`] and a message. A member that fails
//! or replies with something else loses only its own part: the findings and votes of others do not depend on it.

mod judging;
mod report;
mod voting;

use self::voting::Voting;
use super::budget::Plan;
use super::merge::{Merged, Verdicts, clusters};
use super::{Cluster, Dropped, OpenReview, Raw, Vote, ask, check, counted, message, read};
use crate::clean::{Cleaner, clean_line};
use crate::deliberation::hide::Hidden;
use crate::event::{Event, Outcome, Purpose};
use crate::failure::{Failure, FailureKind, Used};
use crate::hearing::Hearing;
use crate::ids::TurnId;
use crate::machine::{Command, Effects, Input, Machine};
use crate::message::Message;
use crate::names::COUNCIL;
use crate::op::Op;
use crate::request::{Delta, Request};
use crate::spending::{Ceiling, Keep};
use crate::usage::Usage;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum bytes of a reply.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Maximum characters of a reason.
const LINE_CHARS_MAX: usize = 400;
/// Maximum findings of a review; more are dropped, with a notice.
const RAWS_MAX: usize = 600;

/// The state machine.
#[derive(Debug)]
pub struct Review {
    open: OpenReview,
    /// The names that members do not read in findings of others.
    hidden: Hidden,
    phase: Phase,
    turns: BTreeMap<TurnId, Turn>,
    last_turn: u32,
    sums: Vec<Sum>,
    /// Findings in order of arrival.
    found: Vec<Found>,
    /// The findings in order of turns, so that the order of replies does not matter.
    raws: Vec<Raw>,
    /// For each finding, the index of the part of the change in which it is.
    sources: Vec<usize>,
    /// The members that reviewed each part.
    covered: Vec<BTreeSet<usize>>,
    notes: BTreeMap<usize, String>,
    dropped: Vec<Dropped>,
    /// Members' answers about unclear pairs.
    verdicts: Verdicts,
    merged: Merged,
    clusters: Vec<Cluster>,
    votes: Vec<BTreeMap<String, Vote>>,
    voting: Vec<Voting>,
    plan: Plan,
    /// The members that were asked for findings a second time.
    repaired: Vec<bool>,
    notices: Vec<String>,
    usage: Usage,
    interrupted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Saving,
    Finding,
    Judging,
    Voting,
    Writing,
    Done,
}

/// A finding that arrived.
#[derive(Debug)]
struct Found {
    turn: TurnId,
    part: usize,
    raw: Raw,
    /// The correction of its lines.
    note: Option<String>,
}

#[derive(Debug)]
struct Turn {
    member: usize,
    /// The part of the change under review.
    part: usize,
    /// The clusters or pairs shown, by label: their indices.
    shown: Vec<(String, usize)>,
    /// The turn that first asked for this: a repeated request keeps its place.
    first: TurnId,
    /// The request, as long as it may be repeated once.
    request: Option<Box<Request>>,
    text: String,
    ear: Hearing,
}

/// The results of a member's parts.
#[derive(Clone, Debug, Default)]
struct Sum {
    findings: u32,
    dropped: u32,
    /// Number of findings that are left out because they exceed the member's share.
    surplus: usize,
    replied: usize,
    failed: Vec<String>,
}

/// Returns the text whose names stay: the change, and the user's own instructions. A name elsewhere in a changed file
/// is not part of the review.
fn subject(open: &OpenReview) -> String {
    let texts = open.parts.iter().chain([&open.guidance]);
    let texts: Vec<&str> = texts.map(String::as_str).collect();
    texts.join("\n")
}

/// Returns the maximum findings of each member, so that an early member with many findings leaves room for the others.
fn share(members: usize) -> u32 {
    u32::try_from(RAWS_MAX / members.max(1)).unwrap_or(u32::MAX)
}

impl Machine for Review {
    fn step(&mut self, now: Timestamp, input: Input) -> Effects {
        let mut fx = Effects::default();
        match input {
            Input::Op(op) => self.op(op, now, &mut fx),
            Input::Delta { turn, delta } => self.hear(turn, delta, &mut fx),
            Input::Failed { turn, failure } => self.fail(turn, failure, &mut fx),
            Input::Saved { message, .. } => self.saved(message, &mut fx),
            Input::SaveFailed { turn, why } => self.save_failed(turn, &why, &mut fx),
            Input::Found { mut message } => {
                message.clean();
                fx.events.push(Event::MessageAdded {
                    message,
                    turn: None,
                    found: true,
                });
            }
            Input::FoundDelta { seat, mut delta } => {
                if let Delta::Text { text } | Delta::Thinking { text } = &mut delta {
                    Cleaner::default().clean_in_place(text);
                }
                fx.events.push(Event::StreamFound { seat, delta });
            }
            Input::FoundEnd { seat } => fx.events.push(Event::StreamLost { seat }),
            // A review keeps no delivery, sets no timer, and takes no other input.
            Input::FoundGone { .. }
            | Input::FoundWaiting
            | Input::Kept { .. }
            | Input::KeepFailed { .. }
            | Input::Freed { .. }
            | Input::Woke { .. } => {}
        }
        self.advance(now, &mut fx);
        fx
    }

    fn ceiling(&self) -> Ceiling {
        self.open.ceiling
    }

    /// Reviews leave enough for comparisons and votes.
    fn keeps(&self, turn: TurnId) -> Keep {
        if !self.turns.contains_key(&turn) {
            return Keep::default();
        }
        match self.phase {
            Phase::Finding => self.plan.after_review(&self.repaired).into(),
            Phase::Judging => self.plan.after_judge().into(),
            _ => Keep::default(),
        }
    }
}

impl Review {
    /// Opens a review. The user's message, [`Op::Say`], starts it; [`OpenReview::title`] is the message text.
    pub fn open(open: OpenReview) -> (Self, Effects) {
        let opened = Event::ThreadOpened {
            members: open.members.iter().map(|m| m.name.clone()).collect(),
            messages: open.messages,
        };
        let notices = open.notices.clone();
        let review = Self {
            sums: vec![Sum::default(); open.members.len()],
            voting: vec![Voting::default(); open.members.len()],
            repaired: vec![false; open.members.len()],
            plan: Plan::of(&open),
            hidden: Hidden::of(&open.members, &subject(&open), open.seed),
            open,
            phase: Phase::Waiting,
            turns: BTreeMap::new(),
            last_turn: 0,
            found: Vec::new(),
            raws: Vec::new(),
            sources: Vec::new(),
            covered: Vec::new(),
            notes: BTreeMap::new(),
            dropped: Vec::new(),
            verdicts: Verdicts::new(),
            merged: Merged::default(),
            clusters: Vec::new(),
            votes: Vec::new(),
            notices,
            usage: Usage::default(),
            interrupted: false,
        };
        let effects = Effects {
            commands: Vec::new(),
            events: vec![opened],
        };
        (review, effects)
    }

    /// Returns whether the report is written.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    fn op(&mut self, op: Op, now: Timestamp, fx: &mut Effects) {
        match (op, self.phase) {
            (Op::Say { .. }, Phase::Waiting) => {
                let draft = message::question(self.open.title.clone(), now);
                fx.commands.push(Command::Save(Box::new(draft)));
                self.phase = Phase::Saving;
            }
            (Op::Interrupt, Phase::Waiting | Phase::Writing | Phase::Done)
            | (Op::Close | Op::Resume | Op::TakeBack, _) => {}
            (Op::Interrupt, _) => {
                self.interrupted = true;
                let turns = self.turns.keys().copied();
                fx.commands
                    .extend(turns.map(|turn| Command::Cancel { turn }));
            }
            (Op::Stop { seat }, _) => {
                let members = &self.open.members;
                let turns = self.turns.iter();
                let turns = turns.filter(|(_, turn)| members[turn.member].name == seat);
                fx.commands
                    .extend(turns.map(|(turn, _)| Command::Cancel { turn: *turn }));
            }
            _ => fx.events.push(Event::OpRefused {
                why: "a review takes no messages: start another with `kd review`".into(),
            }),
        }
    }

    fn hear(&mut self, id: TurnId, mut delta: Delta, fx: &mut Effects) {
        let Some(turn) = self.turns.get_mut(&id) else {
            return;
        };
        turn.ear.clean(&mut delta);
        let mut ended = None;
        match &delta {
            Delta::Text { text } if turn.text.len() + text.len() > TEXT_BYTES_MAX => {
                fx.commands.push(Command::Cancel { turn: id });
                let why = format!("the reply exceeded {TEXT_BYTES_MAX} bytes");
                return self.fail(id, Failure::new(FailureKind::Decode, why), fx);
            }
            Delta::Text { text } => turn.text.push_str(text),
            Delta::Retrying { .. } => turn.text.clear(),
            Delta::Finished { text, usage, .. } => {
                if let Some(whole) = text {
                    turn.text.clone_from(whole);
                }
                ended = Some(*usage);
            }
            _ => {}
        }
        fx.events.push(Event::TurnDelta { turn: id, delta });
        if let Some(usage) = ended
            && let Some(turn) = self.turns.remove(&id)
        {
            if let Some(usage) = &usage {
                self.usage.add(usage);
            }
            self.end(id, turn, usage, fx);
        }
    }

    /// Parses a complete reply. One that cannot be read is a failed turn, and is requested once more.
    fn end(&mut self, id: TurnId, turn: Turn, usage: Option<Usage>, fx: &mut Effects) {
        let text = &turn.text[..turn.text.floor_char_boundary(TEXT_BYTES_MAX)];
        let seat = self.open.members[turn.member].name.clone();
        let Some(why) = self.unreadable(&turn, text) else {
            fx.events.push(Event::TurnFinished {
                turn: id,
                seat,
                message: None,
                usage,
                tools: 0,
                thought: 0,
            });
            return self.take(&turn, text);
        };
        let request = turn.request.as_deref().filter(|_| !self.interrupted);
        let message = match request {
            Some(_) => format!("{why}; asked once more"),
            None => why.to_owned(),
        };
        let used = usage.map(|usage| Box::new(Used { requests: 1, usage }));
        fx.events.push(Event::TurnFailed {
            turn: id,
            seat,
            failure: Failure {
                used,
                ..Failure::new(FailureKind::Decode, message)
            },
            message: None,
        });
        let Some(request) = request else {
            return self.take(&turn, text);
        };
        let request = ask::repair(&self.open, request, text, why);
        self.repaired[turn.member] = true;
        let again = Turn {
            request: None,
            text: String::new(),
            ear: Hearing::default(),
            ..turn
        };
        self.put(again, request, fx);
    }

    /// Takes the content of a reply according to its phase.
    fn take(&mut self, turn: &Turn, text: &str) {
        let name = self.open.members[turn.member].name.to_string();
        let labels: Vec<String> = turn.shown.iter().map(|(label, _)| label.clone()).collect();
        match self.phase {
            Phase::Finding => self.take_findings(turn, text),
            Phase::Judging => self.take_verdicts(turn, &name, text, &labels),
            Phase::Voting => self.take_votes(turn, &name, text, &labels),
            _ => {}
        }
    }

    /// Returns the reason why a reply does not have the form that its phase asked for.
    fn unreadable(&self, turn: &Turn, text: &str) -> Option<&'static str> {
        let labels = || {
            turn.shown
                .iter()
                .map(|(label, _)| label.clone())
                .collect::<Vec<_>>()
        };
        match self.phase {
            Phase::Finding => read::findings(text).err(),
            Phase::Judging => read::same(text, &labels())
                .is_empty()
                .then_some("the reply answers for no pair"),
            Phase::Voting => read::votes(text, &labels())
                .is_empty()
                .then_some("the reply holds no vote"),
            _ => None,
        }
    }

    fn take_findings(&mut self, turn: &Turn, text: &str) {
        let member = turn.member;
        let sum = &mut self.sums[member];
        let name = self.open.members[member].name.to_string();
        let found = match read::findings(text) {
            Ok(found) => found,
            Err(why) => {
                sum.failed.push(why.to_owned());
                return;
            }
        };
        sum.replied += 1;
        self.covered[turn.part].insert(member);
        if found.left_out > 0 {
            let left_out = counted(found.left_out, "unreadable or surplus finding");
            self.notices.push(format!("{name}: {left_out} left out"));
        }
        if found.cut {
            self.notices.push(format!(
                "{name}: the reply ends before its list of findings does; the last ones are missing"
            ));
        }
        let share = share(self.open.members.len());
        for finding in found.findings {
            let checked = check::check(&finding, |path| {
                self.open.files.get(path).map(String::as_str)
            });
            match checked {
                Ok(_) if sum.findings >= share => sum.surplus += 1,
                Ok(checked) => {
                    sum.findings += 1;
                    let raw = Raw {
                        member: name.clone(),
                        finding: checked.finding,
                    };
                    self.found.push(Found {
                        turn: turn.first,
                        part: turn.part,
                        raw,
                        note: checked.note,
                    });
                }
                Err(why) => {
                    sum.dropped += 1;
                    self.dropped.push(Dropped {
                        member: name.clone(),
                        finding,
                        why: why.to_string(),
                    });
                }
            }
        }
    }

    fn fail(&mut self, id: TurnId, mut failure: Failure, fx: &mut Effects) {
        let Some(turn) = self.turns.remove(&id) else {
            return;
        };
        failure.message = clean_line(&failure.message, LINE_CHARS_MAX);
        let why = failure.message.strip_prefix("not sent: ");
        let why = why.unwrap_or(&failure.message).to_owned();
        if let Some(used) = &failure.used {
            self.usage.add(&used.usage);
        }
        let name = self.open.members[turn.member].name.clone();
        match self.phase {
            Phase::Finding => self.sums[turn.member].failed.push(why),
            Phase::Judging => self.notices.push(format!(
                "{name} could not judge unclear pairs: {why}; the rules decided"
            )),
            _ => self.no_votes(&turn, &why),
        }
        fx.events.push(Event::TurnFailed {
            turn: id,
            seat: name,
            failure,
            message: None,
        });
    }

    fn saved(&mut self, mut message: Message, fx: &mut Effects) {
        message.clean();
        let ours = message.from == COUNCIL;
        let king = message.is_king();
        fx.events.push(Event::MessageAdded {
            message,
            turn: None,
            found: false,
        });
        match self.phase {
            Phase::Saving if king => self.begin(fx),
            Phase::Writing if ours => self.finish(fx),
            _ => {}
        }
    }

    fn save_failed(&mut self, turn: Option<TurnId>, why: &str, fx: &mut Effects) {
        let why = clean_line(why, LINE_CHARS_MAX);
        fx.events.push(Event::SaveFailed { turn, why });
        if matches!(self.phase, Phase::Saving | Phase::Writing) {
            self.finish(fx);
        }
    }

    /// Asks every member about every part.
    fn begin(&mut self, fx: &mut Effects) {
        self.phase = Phase::Finding;
        self.covered = vec![BTreeSet::new(); self.open.parts.len()];
        for part in 0..self.open.parts.len() {
            for member in 0..self.open.members.len() {
                let request = ask::findings(&self.open, member, part);
                self.ask((member, part), request, Vec::new(), fx);
            }
        }
    }

    fn ask(
        &mut self,
        (member, part): (usize, usize),
        request: Request,
        shown: Vec<(String, usize)>,
        fx: &mut Effects,
    ) {
        let turn = Turn {
            member,
            part,
            shown,
            first: TurnId::new(self.last_turn + 1),
            request: Some(Box::new(request.clone())),
            text: String::new(),
            ear: Hearing::default(),
        };
        self.put(turn, request, fx);
    }

    fn put(&mut self, turn: Turn, request: Request, fx: &mut Effects) {
        self.last_turn += 1;
        let id = TurnId::new(self.last_turn);
        fx.events.push(Event::TurnQueued {
            turn: id,
            seat: self.open.members[turn.member].name.clone(),
            purpose: match self.phase {
                Phase::Voting => Purpose::Vote,
                Phase::Judging => Purpose::Arbitrate,
                _ => Purpose::Review,
            },
            replaces: None,
            ahead: Vec::new(),
        });
        fx.commands.push(Command::Ask {
            turn: id,
            request: Box::new(request),
        });
        self.turns.insert(id, turn);
    }

    /// Proceeds once every open turn has ended.
    fn advance(&mut self, now: Timestamp, fx: &mut Effects) {
        while self.turns.is_empty() {
            match self.phase {
                Phase::Finding => {
                    self.found.sort_by_key(|found| found.turn);
                    for (at, found) in self.found.drain(..).enumerate() {
                        self.raws.push(found.raw);
                        self.sources.push(found.part);
                        self.notes.extend(found.note.map(|note| (at, note)));
                    }
                    self.merged = self.merge();
                    self.phase = Phase::Judging;
                    self.ask_judges(fx);
                }
                Phase::Judging => {
                    self.merged = self.merge();
                    self.clusters = clusters(&self.raws, &self.merged, &self.notes, &self.verdicts);
                    self.votes = vec![BTreeMap::new(); self.clusters.len()];
                    self.phase = Phase::Voting;
                    self.deal_votes();
                }
                Phase::Voting => {
                    // A request shows a limited number of findings, so members may be asked several times.
                    if !self.ask_votes(fx) {
                        self.phase = Phase::Writing;
                        self.write(now, fx);
                    }
                }
                Phase::Waiting | Phase::Saving | Phase::Writing | Phase::Done => return,
            }
        }
    }

    fn write(&mut self, now: Timestamp, fx: &mut Effects) {
        let report = self.report();
        let draft = message::verdict(&report, now);
        fx.events.push(Event::Reviewed {
            report: Box::new(report),
        });
        fx.commands.push(Command::Save(Box::new(draft)));
    }

    fn finish(&mut self, fx: &mut Effects) {
        let replied = self.sums.iter().filter(|sum| sum.replied > 0).count();
        // A vote that is missing is no vote against a finding.
        let whole = self.sums.iter().all(|sum| sum.failed.is_empty())
            && self.voting.iter().all(|voting| voting.missing == 0);
        let outcome = match (self.interrupted, replied, whole) {
            (true, ..) => Outcome::Interrupted,
            (_, 0, _) if !self.sums.is_empty() => Outcome::Failed,
            (.., true) => Outcome::Complete,
            _ => Outcome::Partial,
        };
        self.phase = Phase::Done;
        fx.events.push(Event::FloorYielded {
            outcome,
            usage: self.usage,
        });
    }
}
