//! A summary of a deliberation for front ends, as part of the [`View`](crate::view::View): stages, member states,
//! counts, comparisons, the trend. The same fold serves a live terminal, a replayed log and an export.

use super::answer::AnswerKind;
use super::fact::{Counted, Fact, Grouping, Rated};
use super::iteration::{self, Decision};
use super::ledger::Spent;
use super::machine::NEEDLESS;
use super::plan::{PRIVATE, Plan};
use super::spoken::spoken;
use super::stages::{self, is_or_are};
use super::verdict::Verdict;
use crate::event::{Event, Outcome};
use crate::failure::FailureKind;
use crate::ids::{SeatName, ThreadId, TurnId};
use crate::memory::{Line, Session};
use crate::spending::pico;
use crate::usage::Usage;
use kd_eval::marks::Standing;
use serde::Serialize;

/// The summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The thread.
    pub thread: Option<ThreadId>,
    /// The plan.
    pub plan: Option<Box<Plan>>,
    /// Stages in start order.
    pub stages: Vec<StageReport>,
    /// Comparisons of open answers, in order.
    pub groupings: Vec<Grouping>,
    /// The kind shown by the first answers and the reason, if it differs from the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<(AnswerKind, String)>,
    /// Members that were stopped because their answer could no longer change the result.
    pub stopped_early: Vec<SeatName>,
    /// Which members were not asked because the answers were certain enough, in words, by pass.
    pub enough: Vec<String>,
    /// The members that the last of these names. Not in JSON: they are in `enough`.
    #[serde(skip)]
    pub spared: Vec<SeatName>,
    /// The question to the user, and the member that worded it.
    pub asks_back: Option<(SeatName, String)>,
    /// Counts in order.
    pub counts: Vec<Counted>,
    /// Reviews of the last pass: reviewer, author, rating.
    pub ratings: Vec<(SeatName, SeatName, u8)>,
    /// Decisions after passes.
    pub decisions: Vec<Decision>,
    /// The memory.
    pub remembered: Vec<Line>,
    /// Notices about irregularities.
    pub notices: Vec<String>,
    /// Usage of all calls, as reported by the providers.
    pub usage: Usage,
    /// Calls made.
    pub calls: u64,
    /// The verdict.
    pub verdict: Option<Box<Verdict>>,
    /// The promise about the verdict, from the marks of the person who asked. Not in JSON: front ends say whose marks
    /// they are.
    #[serde(skip)]
    pub promised: Option<Box<Standing>>,
    /// Whether the token limit cut the chair's text. Not in JSON: the message has it.
    #[serde(skip)]
    pub conclusion_cut: bool,
    /// The outcome of the round.
    pub ended: Option<Outcome>,
}

/// A stage and the state of its members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageReport {
    /// The pass.
    pub pass: u32,
    /// The round.
    pub round: u32,
    /// Depth of nested sub-councils.
    pub depth: u32,
    /// The issue of a sub-council.
    pub issue: Option<String>,
    /// Its name.
    pub name: String,
    /// Description for users.
    pub title: String,
    /// Members in the order asked.
    pub seats: Vec<SeatReport>,
}

impl StageReport {
    /// Returns a short description with its position in the deliberation.
    pub fn heading(&self) -> String {
        let mut out = String::new();
        if self.pass > 1 {
            out.push_str(&format!("pass {}, ", self.pass));
        }
        if self.depth > 0 {
            out.push_str(&format!("sub-council {}, ", self.depth));
        }
        if self.round > 0 {
            out.push_str(&format!("round {}, ", self.round + 1));
        }
        out.push_str(&self.title);
        out
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.seats.iter().map(|s| s.seat.as_str()).collect();
        names.join(", ")
    }
}

/// A member in a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeatReport {
    /// The member.
    pub seat: SeatName,
    /// Its turn, once asked.
    pub turn: Option<TurnId>,
    /// Its state.
    pub state: SeatState,
    /// The result, in a few words.
    pub what: String,
    /// A reviewer's ratings of each answer. Not in JSON: the events have them.
    #[serde(skip)]
    pub reviews: Vec<Rated>,
}

/// The state of a member in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeatState {
    /// Not asked yet.
    Waiting,
    /// Asked.
    Asked,
    /// Replied.
    Replied,
    /// Failed.
    Failed,
    /// Not asked because of a limit.
    Cut,
}

impl Report {
    /// Returns whether another member failed with the same message before, so its reason and advice are known.
    fn fails_alike(&self, seat: &SeatName, message: &str) -> bool {
        let seats = self.stages.iter().flat_map(|stage| &stage.seats);
        let mut failed = seats.filter(|other| other.state == SeatState::Failed);
        failed.any(|other| other.seat != *seat && other.what == message)
    }

    /// Folds in an event.
    pub(crate) fn fold(&mut self, event: &Event) {
        match event {
            Event::Deliberated { fact } => self.fact(fact),
            Event::Promised { message, promise } => self.promised(*message, promise),
            Event::Noticed { text } => self.notices.push(text.clone()),
            Event::MessageAdded { message, .. } if message.is_cut() => {
                let concludes = message
                    .extra
                    .get("purpose")
                    .is_some_and(|p| p == "conclude");
                self.conclusion_cut |= concludes;
                let whose = match concludes {
                    true => "the conclusion",
                    false => &format!("{}'s answer", message.from),
                };
                let cut_at = match message.cut() {
                    Some("repetition") => "a repetition",
                    _ => "the token limit",
                };
                self.notices.push(format!("{whose} was cut at {cut_at}"));
            }
            Event::FloorYielded { outcome, .. } => self.ended = Some(*outcome),
            // These events are not about the deliberation, or its facts contain the same.
            Event::ThreadOpened { .. }
            | Event::MessageAdded { .. }
            | Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::TurnQueued { .. }
            | Event::TurnDelta { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. }
            | Event::TurnFinished { .. }
            | Event::TurnFailed { .. }
            | Event::SeatMuted { .. }
            | Event::ModeSet { .. }
            | Event::OpRefused { .. }
            | Event::SaveFailed { .. }
            | Event::PhaseBegan { .. }
            | Event::CouncilSaid { .. }
            | Event::DuetEnded { .. }
            | Event::Reviewed { .. }
            | Event::HeldBack { .. } => {}
        }
    }

    /// Takes the promise about the verdict. A record may state anything.
    fn promised(&mut self, message: u32, promise: &Standing) {
        if self.can_be_true(message, promise) {
            self.promised = Some(Box::new(promise.clone()));
        }
    }

    /// Returns whether a promise about a message can be true: it is about the verdict, and its values are sound.
    pub fn can_be_true(&self, message: u32, promise: &Standing) -> bool {
        let verdict = self.verdict.as_ref().and_then(|v| v.message);
        verdict == Some(message) && promise.is_sound()
    }

    /// Returns a progress line for a fact that was already folded in. `dot` separates the parts.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn told(&self, fact: &Fact, dot: &str) -> Option<String> {
        Some(match fact {
            Fact::StageBegan { .. } => {
                let stage = self.stages.last()?;
                format!("{} {dot} {}", stage.heading(), stage.names())
            }
            Fact::AnswerRead { seat, .. }
            | Fact::ReviewRead { seat, .. }
            | Fact::BallotRead { seat, .. } => format!("  {seat}: {}", self.said(seat)?),
            Fact::Noted {
                seat: Some(seat),
                text,
                ..
            } => format!("  {seat}: {text}"),
            Fact::SeatFailed { seat, failure, .. } if failure.kind == FailureKind::Cancelled => {
                format!("  {seat}: interrupted")
            }
            Fact::SeatFailed { seat, failure, .. } if self.fails_alike(seat, &failure.message) => {
                format!("  {seat}: failed for the same reason")
            }
            Fact::SeatFailed { seat, failure, .. } => {
                let advice = failure.advice.as_ref();
                let advice = advice.map(|text| format!("; {text}")).unwrap_or_default();
                format!("  {seat}: failed: {}{advice}", failure.message)
            }
            Fact::AskedEnough { .. } => format!("  {}", enough_words(fact)?),
            Fact::AskedBack { question, by } => format!("  {by} asks you: \"{question}\""),
            Fact::KindSettled { answers, why } => {
                format!("  compared as {}: {why}", answers.words())
            }
            Fact::Grouped(grouping) => format!("  {}", grouping.told()),
            Fact::Counted(counted) if counted.is_one_voice() => return None,
            Fact::Counted(counted) if counted.is_of_estimates() => {
                format!("  {}", counted.notes.join("; "))
            }
            Fact::Counted(counted) => format!(
                "  counted by {}: {}, agreement {:.2}",
                counted.rule,
                counted.form.word(),
                counted.agreement
            ),
            Fact::IterationDecided(decision) => {
                let why = iteration::words(&decision.reason);
                format!("pass {}: {why}", decision.iteration)
            }
            // Shown as the plan, a live row of a member, a notice or the verdict, or not at all.
            Fact::PlanMade { .. }
            | Fact::Opened { .. }
            | Fact::SeatAsked { .. }
            | Fact::SeatReplied { .. }
            | Fact::Cut { .. }
            | Fact::Readings { .. }
            | Fact::Noted { .. }
            | Fact::Remembered { .. }
            | Fact::ChairReplaced { .. }
            | Fact::Stopped
            | Fact::BellRang { .. }
            | Fact::Concluded(_) => return None,
        })
    }

    /// Returns the result of a member in the last stage.
    fn said(&self, seat: &SeatName) -> Option<String> {
        let stage = self.stages.last()?;
        let mut found = stage.seats.iter().rev();
        let found = found.find(|s| &s.seat == seat && s.state == SeatState::Replied)?;
        Some(match found.what.is_empty() {
            true => "done".into(),
            false => found.what.clone(),
        })
    }

    /// Folds in a fact.
    pub(crate) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::PlanMade { plan, notices } => {
                self.plan = Some(plan.clone());
                self.noted(notices);
            }
            Fact::Opened { plan, notices, .. } => {
                // A deliberation begins: discard the state of an earlier one.
                *self = Self {
                    thread: self.thread.clone(),
                    notices: match self.verdict {
                        None => std::mem::take(&mut self.notices),
                        Some(_) => Vec::new(),
                    },
                    plan: Some(plan.clone()),
                    ..Self::default()
                };
                self.noted(notices);
            }
            Fact::StageBegan {
                pass,
                round,
                depth,
                issue,
                stage,
                seats,
            } => {
                if stage == "opinions" && *depth == 0 {
                    self.ratings.clear();
                }
                self.stages.push(StageReport {
                    pass: *pass,
                    round: *round,
                    depth: *depth,
                    issue: issue.clone(),
                    name: stage.clone(),
                    title: stages::find(stage)
                        .map_or(stage.as_str(), |s| s.title)
                        .to_owned(),
                    seats: seats
                        .iter()
                        .map(|seat| SeatReport {
                            seat: seat.clone(),
                            turn: None,
                            state: SeatState::Waiting,
                            what: String::new(),
                            reviews: Vec::new(),
                        })
                        .collect(),
                });
            }
            Fact::SeatAsked { turn, seat, .. } => {
                self.calls += 1;
                if let Some(s) = self.last(seat, SeatState::Waiting) {
                    s.turn = Some(*turn);
                    s.state = SeatState::Asked;
                }
            }
            Fact::SeatReplied {
                turn, usage, text, ..
            } => {
                if let Some(usage) = usage {
                    self.usage.add(usage);
                }
                let plan = self.plan.as_ref().filter(|plan| plan.reading >= PRIVATE);
                let is_empty = match plan {
                    Some(plan) => spoken(plan.reading, text).is_empty(),
                    None => text.is_empty(),
                };
                if let Some(s) = self.turn(*turn) {
                    s.state = SeatState::Replied;
                    if is_empty {
                        s.state = SeatState::Failed;
                        s.what = "empty response".into();
                    }
                }
            }
            Fact::SeatFailed {
                turn,
                seat,
                failure,
                ..
            } => {
                if failure.message == NEEDLESS {
                    self.stopped_early.push(seat.clone());
                }
                if let Some(used) = &failure.used {
                    self.usage.add(&used.usage);
                    // It was counted when asked.
                    self.calls -= u64::from(used.requests == 0).min(self.calls);
                }
                if let Some(s) = self.turn(*turn) {
                    s.state = SeatState::Failed;
                    s.what.clone_from(&failure.message);
                }
            }
            Fact::Cut {
                limit,
                stage,
                seats,
            } => {
                for seat in seats {
                    if let Some(s) = self.last(seat, SeatState::Waiting) {
                        s.state = SeatState::Cut;
                        s.what = limit.words().into();
                    }
                }
                let mut names: Vec<&str> = seats.iter().map(SeatName::as_str).collect();
                names.dedup();
                let not_asked = match names.as_slice() {
                    [] => String::new(),
                    names => format!(
                        ": {} {} not asked",
                        names.join(", "),
                        is_or_are(names.len())
                    ),
                };
                self.notices.push(format!(
                    "{} stops the stage {stage}{not_asked}",
                    limit.words()
                ));
            }
            Fact::AnswerRead {
                seat,
                key,
                confidence,
                notice,
                ..
            } => {
                let mut what = key.clone().unwrap_or_default();
                if let Some(sure) = confidence {
                    what.push_str(&format!(
                        "{}says it is {:.0} % sure",
                        if what.is_empty() { "" } else { ", " },
                        sure * 100.0
                    ));
                }
                self.read(seat, what, notice);
            }
            Fact::ReviewRead {
                seat,
                ratings,
                notice,
                ..
            } => {
                let what: Vec<String> = ratings
                    .iter()
                    .map(|r| format!("{} {}", r.seat, r.rating))
                    .collect();
                self.ratings.retain(|(by, ..)| by != seat);
                self.ratings.extend(
                    ratings
                        .iter()
                        .map(|r| (seat.clone(), r.seat.clone(), r.rating)),
                );
                self.read(seat, what.join(", "), notice);
                let seats = self.stages.last_mut().into_iter();
                let mut seats = seats.flat_map(|stage| &mut stage.seats);
                if let Some(found) = seats.find(|s| s.seat == *seat) {
                    found.reviews.clone_from(ratings);
                }
            }
            Fact::BallotRead {
                seat,
                marks,
                confidence,
                notice,
                ..
            } => {
                let mut what = match marks.is_empty() {
                    true => "abstains".to_owned(),
                    false => marks.join(" > "),
                };
                if let Some(sure) = confidence {
                    what.push_str(&format!(", says it is {:.0} % sure", sure * 100.0));
                }
                self.read(seat, what, notice);
            }
            Fact::Noted { seat, text, stage } => match seat {
                Some(seat) => self.read(seat, text.clone(), &None),
                None => self.notices.push(format!("{stage}: {text}")),
            },
            // The results follow as separate facts.
            Fact::Readings { .. } => {}
            Fact::KindSettled { answers, why } => {
                self.settled = Some((answers.clone(), why.clone()));
            }
            Fact::AskedEnough { spared, .. } => {
                self.enough.extend(enough_words(fact));
                self.spared.clone_from(spared);
            }
            Fact::AskedBack { question, by } => {
                self.asks_back = Some((by.clone(), question.clone()));
            }
            Fact::Grouped(grouping) => {
                self.noted(&grouping.notices);
                self.groupings.push(grouping.clone());
            }
            Fact::Counted(counted) => self.counts.push(counted.clone()),
            Fact::IterationDecided(decision) => self.decisions.push(decision.clone()),
            Fact::Remembered { lines, by } => {
                self.remembered.clone_from(lines);
                if by.is_none() && !lines.is_empty() {
                    self.notices.push(
                        "no member wrote a summary: sentences were extracted from the replies"
                            .into(),
                    );
                }
            }
            Fact::ChairReplaced { from, by, .. } => self.notices.push(match by {
                Some(by) => format!("{from} could not conclude: {by} concludes instead"),
                None => {
                    format!("{from} could not conclude: the answer is extracted from the replies")
                }
            }),
            Fact::Stopped => self.notices.push("stopped by the user".into()),
            Fact::BellRang { over: false } => self
                .notices
                .push("time is nearly over: only the chair is asked".into()),
            Fact::BellRang { over: true } => self.notices.push("time is over".into()),
            Fact::Concluded(verdict) => self.verdict = Some(verdict.clone()),
        }
    }

    /// Returns what long-term memory keeps of the verdict. `None` before the verdict, and if the council asked back
    /// instead of deciding.
    pub fn remembered(&self) -> Option<Session> {
        let (plan, verdict) = (self.plan.as_ref()?, self.verdict.as_ref()?);
        if verdict.asks_back.is_some() {
            return None;
        }
        Some(Session {
            thread: self.thread.clone()?,
            question: plan.question.clone(),
            // If a lot decided a tie, the council did not.
            answer: match (&verdict.winner, verdict.form) {
                (Some(winner), form) if form != kd_vote::Outcome::Split => winner.clone(),
                _ => verdict.heading.clone(),
            },
            message: verdict.message,
        })
    }

    /// Returns the kind of answer that the verdict has: the planned one, unless the answers settled into another.
    pub fn answer_kind(&self) -> Option<&AnswerKind> {
        let settled = self.settled.as_ref().map(|(kind, _)| kind);
        settled.or(self.plan.as_ref().map(|plan| &plan.answers))
    }

    /// Returns the last count of the council itself.
    pub fn count(&self) -> Option<&Counted> {
        let best = self.verdict.as_ref().map_or(0, |v| v.best_pass);
        let of_council = |c: &&Counted| c.depth == 0;
        self.counts
            .iter()
            .rev()
            .filter(of_council)
            .find(|c| best == 0 || c.pass == best)
            .or_else(|| self.counts.iter().rev().find(of_council))
    }

    /// Returns the agreement of each pass.
    pub fn trend(&self) -> Vec<f64> {
        self.decisions.iter().map(|d| d.confidence).collect()
    }

    /// Returns the reserved or used amounts, to show while it runs.
    pub fn spent(&self) -> Spent {
        Spent {
            calls: self.calls + self.usage.repeats,
            tokens: self.usage.tokens(),
            pico_usd: pico(self.usage.cost_usd.unwrap_or(0.0)),
            certainty: self.usage.certainty,
        }
    }

    /// Returns the members in the map: those that voted or answered.
    pub fn members(&self) -> Vec<SeatName> {
        self.count().map_or_else(Vec::new, |c| {
            let mut seats: Vec<SeatName> = Vec::new();
            for first in &c.firsts {
                if !seats.contains(&first.seat) {
                    seats.push(first.seat.clone());
                }
            }
            seats
        })
    }

    /// Keeps notices that are new.
    fn noted(&mut self, notices: &[String]) {
        for notice in notices {
            if !self.notices.contains(notice) {
                self.notices.push(notice.clone());
            }
        }
    }

    fn read(&mut self, seat: &SeatName, what: String, notice: &Option<String>) {
        if let Some(notice) = notice {
            self.notices.push(format!("{seat}: {notice}"));
        }
        let mut seats = self
            .stages
            .last_mut()
            .into_iter()
            .flat_map(|s| &mut s.seats);
        if let Some(found) =
            seats.find(|s| s.seat == *seat && s.state == SeatState::Replied && s.what.is_empty())
        {
            found.what = what;
        }
    }

    fn last(&mut self, seat: &SeatName, state: SeatState) -> Option<&mut SeatReport> {
        let stage = self.stages.last_mut()?;
        stage
            .seats
            .iter_mut()
            .find(|s| s.seat == *seat && s.state == state)
    }

    fn turn(&mut self, turn: TurnId) -> Option<&mut SeatReport> {
        self.stages
            .iter_mut()
            .rev()
            .flat_map(|s| &mut s.seats)
            .find(|s| s.turn == Some(turn))
    }
}
/// Formats that enough members were asked.
fn enough_words(fact: &Fact) -> Option<String> {
    let Fact::AskedEnough {
        asked,
        spared,
        chance,
        settled,
    } = fact
    else {
        return None;
    };
    let names: Vec<&str> = spared.iter().map(SeatName::as_str).collect();
    let why = match (settled, chance) {
        (true, _) => "no missing answer can change the leader".to_owned(),
        (false, Some(chance)) => format!(
            "answers with this lead were right in {:.0} % of the questions with marks of the person who asked",
            chance * 100.0
        ),
        (false, None) => "the answers are certain enough".to_owned(),
    };
    let of = asked.len() + spared.len();
    Some(format!(
        "asked {} of {of} members, without {}: {why}",
        asked.len(),
        names.join(", ")
    ))
}
