//! The course of a deliberation: which stage comes next, when another pass starts, and how it ends.
//!
//! A frame is a unit of work: a pass of the council, a sub-council on one issue, or the summary between two passes.
//! Frames form a stack; the top frame runs its protocol step by step.

use super::answer::AnswerKind;
use super::board::Board;
use super::count::{Source, count};
use super::fact::Fact;
use super::frame::{Frame, Kind};
use super::iteration::{self, Action, PassEnd};
use super::ledger::{Cut, Spent, prompt_bytes, wire_bytes};
use super::machine::{COUNCIL, Deliberation, Phase, fact};
use super::plan::{Plan, VOICED, WAITS};
use super::protocols::{self, Ending, Protocol, Step};
use super::settling::{self, Settled};
use super::stages::{self, Asking, Conclusion, Stage, StageInput, compose};
use super::strategies::{self, Next};
use super::turn::Waiting;
use super::verdict::{Dissenter, Tallied, Verdict, Voices, heading, outcome};
use crate::event::{Event, Outcome as RoundOutcome, Purpose};
use crate::machine::{Command, Effects};
use crate::memory::{Line, Memory, sentences};
use crate::request::Prompt;
use crate::roles::Duty;
use jiff::Timestamp;
use kd_reading::code;
use kd_vote::Outcome;
use std::ops::Add;

/// The steps of a summary.
static SUMMING_UP: &[Step] = &[Step::Ask(&stages::compress::STAGE)];

/// The steps of a question to the user.
static ASKING_BACK: &[Step] = &[Step::Ask(&stages::ask_back::STAGE)];

impl Deliberation {
    /// Pushes the first pass.
    pub(super) fn open_first(&mut self) {
        let board = Board {
            question: self.plan.question.clone(),
            pass: 1,
            seats: self.plan.at_the_table(),
            ..Board::default()
        };
        self.frames
            .push(Frame::new(board, self.protocol.steps, Kind::Pass));
    }

    /// Advances as far as possible without further input.
    pub(super) fn advance(&mut self, now: Timestamp, fx: &mut Effects) {
        loop {
            self.ask_waiting(now, fx);
            if !self.open.is_empty() {
                self.stop_needless(fx);
                return;
            }
            match self.phase {
                Phase::Waiting | Phase::Saving | Phase::Writing(_) | Phase::Done => return,
                _ if self.stopped => {
                    self.phase = Phase::Done;
                    fx.events.push(Event::FloorYielded {
                        outcome: RoundOutcome::Interrupted,
                        usage: self.usage,
                    });
                    return;
                }
                Phase::Running => self.go(now, fx),
                Phase::Concluding { .. } => self.conclude(now, fx),
            }
        }
    }

    /// Runs one step of the top frame.
    fn go(&mut self, now: Timestamp, fx: &mut Effects) {
        let Some(frame) = self.frames.last_mut() else {
            self.phase = Phase::Concluding { tried: Vec::new() };
            return;
        };
        match frame.steps.get(frame.at) {
            None => self.end_frame(fx),
            Some(Step::Ask(stage)) if frame.begun => {
                frame.begun = false;
                frame.at += 1;
                if stage.purpose == Purpose::Answer {
                    self.settle(fx);
                }
                let Some(frame) = self.frames.last_mut() else {
                    return;
                };
                let facts = (stage.end)(&mut frame.board, &self.plan);
                facts.into_iter().for_each(|f| fact(fx, f));
            }
            Some(Step::Ask(stage)) => {
                if self.begin_stage(stage, now, fx) == 0
                    && let Some(frame) = self.frames.last_mut()
                {
                    // A member that could not be asked is absent as well.
                    let facts = (stage.end)(&mut frame.board, &self.plan);
                    facts.into_iter().for_each(|f| fact(fx, f));
                    frame.at += 1;
                }
            }
            Some(Step::Count(source)) => {
                let source = *source;
                frame.at += 1;
                self.count(source, fx);
            }
            Some(Step::Recount(source)) => {
                let source = *source;
                frame.at += 1;
                if frame.board.arbiter.is_some() {
                    self.count(source, fx);
                }
            }
            Some(Step::StopIf(holds)) => {
                frame.at = match holds(&self.plan, &frame.board) {
                    true => frame.steps.len(),
                    false => frame.at + 1,
                };
            }
            Some(Step::Again { to, when }) => {
                if self.cut.is_none() && when(&self.plan, &frame.board) {
                    frame.board.round += 1;
                    frame.at = *to;
                } else {
                    frame.at += 1;
                }
            }
        }
    }

    /// Lets the first answers decide how answers compare. This holds for later rounds and every vote.
    fn settle(&mut self, fx: &mut Effects) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        // If members are asked one after the other, a single answer decides nothing yet.
        if self.plan.enough.is_some() && frame.board.answers.len() < 2 {
            return;
        }
        let Some(guess) = self.plan.take_guess() else {
            return;
        };
        let replies: Vec<&str> = frame
            .board
            .answers
            .iter()
            .map(|a| a.reply.as_str())
            .collect();
        let (question, asked) = (&self.plan.question, &self.plan.answers);
        let kinds = serde_json::to_string(&(asked, &guess)).unwrap_or_default();
        let found: Option<Settled> = self.plan.reader.read(
            "kind",
            &format!("{kinds} {question}"),
            &replies.join("\0"),
            || settling::settle(question, asked, &guess, &replies),
        );
        let Some(Settled { answers, why }) = found else {
            return;
        };
        self.plan.settle(&answers);
        fact(fx, Fact::KindSettled { answers, why });
        for read in stages::read_again(&mut frame.board, &self.plan) {
            fact(fx, read);
        }
    }

    fn count(&mut self, source: Source, fx: &mut Effects) {
        if let Some(frame) = self.frames.last_mut() {
            let (counted, untied) = count(&self.plan, &frame.board, source);
            frame.board.counted = Some(counted.clone());
            frame.board.untied = untied;
            fact(fx, Fact::Counted(counted));
        }
    }

    /// Asks all members of a stage within the limits; returns how many.
    fn begin_stage(&mut self, stage: &'static Stage, now: Timestamp, fx: &mut Effects) -> usize {
        let Some(frame) = self.frames.last_mut() else {
            return 0;
        };
        let wanted = (stage.seats)(&self.plan, &frame.board);
        if wanted.is_empty() {
            return 0;
        }
        let board = &frame.board;
        let mut askings = Vec::new();
        for (at, seat) in wanted.iter().copied().enumerate() {
            let sample = wanted[..at].iter().filter(|s| **s == seat).count() as u32;
            let input = StageInput {
                plan: &self.plan,
                board,
                seat,
                sample,
            };
            askings.extend((stage.ask)(&input).map(|asking| (seat, sample, asking)));
        }
        let names = |seats: &[usize]| {
            seats
                .iter()
                .map(|s| self.plan.seats[*s].name().clone())
                .collect()
        };
        let issue = match &frame.kind {
            Kind::Issue(issue) => Some(issue.clone()),
            _ => None,
        };
        fact(
            fx,
            Fact::StageBegan {
                pass: board.pass,
                round: board.round,
                depth: board.depth,
                issue,
                stage: stage.name.into(),
                seats: names(&askings.iter().map(|(seat, ..)| *seat).collect::<Vec<_>>()),
            },
        );
        frame.begun = true;
        let mut opened = 0;
        let mut left_out = Vec::new();
        let mut limit = self.cut;
        let all = askings.len() as u64;
        for (at, (seat, sample, asking)) in askings.into_iter().enumerate() {
            if !self.waiting.is_empty() {
                self.wait(stage, seat, sample, asking);
                continue;
            }
            let asked = match limit {
                Some(cut) => Err(cut),
                None => self.ask(
                    stage,
                    (seat, sample),
                    asking.clone(),
                    all - at as u64,
                    now,
                    fx,
                ),
            };
            match asked {
                Ok(()) => opened += 1,
                Err(cut) if self.may_wait(cut) => self.wait(stage, seat, sample, asking),
                Err(cut) => {
                    limit = Some(cut);
                    left_out.push(seat);
                }
            }
        }
        if let Some(limit) = limit {
            self.leave_out(stage, limit, left_out, fx);
        }
        if opened == 0
            && let Some(frame) = self.frames.last_mut()
        {
            frame.begun = false;
        }
        opened
    }

    /// Returns whether a request that a limit prevents may fit once an open turn has ended: a turn rarely uses all that
    /// is reserved for it.
    fn may_wait(&self, cut: Cut) -> bool {
        let is_reserved = matches!(cut, Cut::Tokens | Cut::Money);
        self.plan.spending >= WAITS && self.cut.is_none() && is_reserved && !self.open.is_empty()
    }

    fn wait(&mut self, stage: &'static Stage, seat: usize, sample: u32, asking: Asking) {
        self.waiting.push_back(Waiting {
            stage,
            seat,
            sample,
            asking,
        });
    }

    /// Asks the waiting members, in order, as far as the limits allow now. Once no turn is open, those that still do not
    /// fit are left out.
    fn ask_waiting(&mut self, now: Timestamp, fx: &mut Effects) {
        if self.stopped {
            self.waiting.clear();
        }
        while let Some(next) = self.waiting.pop_front() {
            let among = self.waiting.len() as u64 + 1;
            let asked = match self.cut {
                Some(cut) => Err(cut),
                None => {
                    let asking = next.asking.clone();
                    self.ask(next.stage, (next.seat, next.sample), asking, among, now, fx)
                }
            };
            match asked {
                Ok(()) => {}
                Err(cut) if self.may_wait(cut) => {
                    self.waiting.push_front(next);
                    return;
                }
                Err(cut) => {
                    let rest: Vec<Waiting> = self.waiting.drain(..).collect();
                    let seats = rest.iter().map(|waiting| waiting.seat);
                    let seats = [next.seat].into_iter().chain(seats).collect();
                    self.leave_out(next.stage, cut, seats, fx);
                }
            }
        }
    }

    /// Records that a limit leaves members out of a stage.
    fn leave_out(
        &mut self,
        stage: &'static Stage,
        limit: Cut,
        left_out: Vec<usize>,
        fx: &mut Effects,
    ) {
        let seats = left_out
            .iter()
            .map(|s| self.plan.seats[*s].name().clone())
            .collect();
        // A comparison or a question back that a limit prevents does not change the vote.
        if !stages::is_aside(stage) {
            self.cut.get_or_insert(limit);
        }
        fact(
            fx,
            Fact::Cut {
                limit,
                stage: stage.name.into(),
                seats,
            },
        );
        self.absent(stage, left_out);
    }

    /// Records that members were not asked in a stage.
    fn absent(&mut self, stage: &Stage, seats: Vec<usize>) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let absent = match stage.purpose {
            Purpose::Vote => &mut frame.board.absent.ballots,
            Purpose::Review => &mut frame.board.absent.reviews,
            Purpose::Answer => &mut frame.board.absent.answers,
            _ => return,
        };
        absent.extend(seats);
    }

    /// Cancels turns that can no longer change the result: the leader has more votes than all open turns together.
    fn stop_needless(&mut self, fx: &mut Effects) {
        let Some(frame) = self.frames.last() else {
            return;
        };
        let Some(Step::Ask(stage)) = frame.steps.get(frame.at) else {
            return;
        };
        let plain = kd_vote::find(&self.plan.voting.method).is_some_and(|rule| rule.certain_stop)
            && self.plan.voting.threshold.is_none()
            && self.plan.seats.iter().all(|s| s.member.weight == 1.0);
        let firsts = stage.purpose == Purpose::Answer
            && self.protocol.certain
            && self.plan.answers.is_keyed();
        if !plain
            || !frame.begun
            || self.plan.iteration.enabled
            || frame.kind != Kind::Pass
            || !firsts
        {
            return;
        }
        let mut votes: Vec<(&str, usize)> = Vec::new();
        for key in frame.board.answers.iter().filter_map(|a| a.key.as_deref()) {
            match votes.iter_mut().find(|(k, _)| *k == key) {
                Some((_, n)) => *n += 1,
                None => votes.push((key, 1)),
            }
        }
        let missing = self.open.len() + self.waiting.len();
        if !kd_vote::is_certain(votes.iter().map(|(_, n)| *n), missing) {
            return;
        }
        let waiting: Vec<usize> = self.waiting.drain(..).map(|w| w.seat).collect();
        if let Some(frame) = self.frames.last_mut() {
            frame.board.absent.needless.extend(&waiting);
        }
        self.absent(stage, waiting);
        for (id, turn) in &mut self.open {
            if !turn.needless && turn.speaks() {
                turn.needless = true;
                fx.commands.push(Command::Cancel { turn: *id });
            }
        }
    }

    /// Ends the top frame after its last step.
    fn end_frame(&mut self, fx: &mut Effects) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        match frame.kind.clone() {
            Kind::Pass => self.end_pass(frame.board, fx),
            Kind::Issue(issue) => self.end_issue(&issue, frame.board),
            Kind::AskingBack => self.asks_back = frame.board.asks_back,
            Kind::SummingUp(action) => {
                if self.memory.summary.is_empty() {
                    let lines = stages::extract(&frame.board);
                    self.memory.summary.clone_from(&lines);
                    fact(fx, Fact::Remembered { lines, by: None });
                }
                self.next_pass(action);
            }
        }
    }

    fn end_pass(&mut self, board: Board, fx: &mut Effects) {
        let end = self.pass_end(&board);
        self.memory.confidence_trend.push(end.agreement);
        self.take_notes(&board);
        self.passes.push((board, end));
        let ends: Vec<PassEnd> = self.passes.iter().map(|(_, end)| end.clone()).collect();
        let mut decision = iteration::decide(
            &self.plan.iteration,
            &ends,
            self.cut.map(|c| c.words()),
            !self.reserves().is_empty(),
        );
        if self.plan.spending > 0 {
            let before = self.decisions.iter().filter_map(|d| d.spent);
            decision.spent = Some(self.ledger.used() - before.fold(Spent::default(), Spent::add));
        }
        fact(fx, Fact::IterationDecided(decision.clone()));
        let action = decision.action;
        self.decisions.push(decision);
        if action == Action::Stop {
            if self.plan.ask_back.is_some() && self.cut.is_none() && !self.over {
                let (_, board) = self.best();
                let frame = Frame::new(board, ASKING_BACK, Kind::AskingBack);
                self.frames.push(frame);
            }
            return;
        }
        self.memory.summary.clear();
        if self.plan.memory.enabled {
            let board = self
                .passes
                .last()
                .map(|(b, _)| b.clone())
                .unwrap_or_default();
            let steps = if self.plan.memory.compression {
                SUMMING_UP
            } else {
                &[]
            };
            self.frames
                .push(Frame::new(board, steps, Kind::SummingUp(action)));
        } else {
            self.next_pass(action);
        }
    }

    /// Returns the reserve members that have not joined.
    pub(super) fn reserves(&self) -> Vec<usize> {
        let joined = |s: &usize| self.passes.iter().any(|(b, _)| b.seats.contains(s));
        let mut seats = self.plan.with(Duty::Reserve);
        seats.retain(|s| !joined(s));
        seats
    }

    fn pass_end(&self, board: &Board) -> PassEnd {
        let counted = board.counted.as_ref();
        let keyed = self.plan.answers.is_keyed();
        let stands = counted.map_or_else(Vec::new, |counted| {
            counted
                .firsts
                .iter()
                .map(|f| {
                    let of = |c: usize| {
                        let candidate = board.candidates.get(c)?;
                        Some(match keyed {
                            true => candidate.name.as_str(),
                            false => candidate.text.as_str(),
                        })
                    };
                    let all: Vec<&str> = f.all().filter_map(of).collect();
                    (!all.is_empty()).then(|| all.join(" = "))
                })
                .collect()
        });
        let agreement = counted.map_or(0.0, |c| c.agreement);
        PassEnd {
            agreement,
            news: self.passes.last().is_none_or(|(before, end)| {
                // A changed answer and more agreement are progress too.
                let moved = match keyed {
                    true => end.stands != stands,
                    false => agreement > end.agreement,
                };
                board.has_news(before) || self.plan.reading > 0 && moved
            }),
            unanimous: counted.is_some_and(|c| c.form == Outcome::Unanimous && c.voters >= 2),
            tokens: self.ledger.used().tokens,
            stands,
        }
    }

    /// Adds the results of a pass to the working memory.
    fn take_notes(&mut self, board: &Board) {
        let Some(counted) = &board.counted else {
            return;
        };
        for (at, candidate) in board.candidates.iter().enumerate() {
            let backers = counted.backers_of(at) as u64;
            let Some(point) = sentences(&candidate.text, 1).into_iter().next() else {
                continue;
            };
            let line = Line::new(&point, candidate.messages.iter().copied());
            if counted.winner == Some(at) && 3 * backers >= 2 * counted.voters {
                Memory::add(&mut self.memory.consensus_points, line);
            } else if backers > 0 {
                Memory::add(&mut self.memory.disagreements, line);
            }
        }
        let winner = counted.winner.and_then(|w| board.candidates.get(w));
        if let Some(winner) = winner {
            for review in &board.reviews {
                for (author, rating, weakness) in &review.ratings {
                    if winner.authors.contains(author) && *rating <= 7 && !weakness.is_empty() {
                        let line = Line::new(weakness, winner.messages.iter().copied());
                        Memory::add(&mut self.memory.open_questions, line);
                    }
                }
            }
        }
        if let Some((before, end)) = self.passes.last()
            && let Some(winner) = winner
            && before.winner().is_some_and(|w| w.text != winner.text)
        {
            let text = sentences(&winner.text, 1)
                .into_iter()
                .next()
                .unwrap_or_default();
            let line = Line::new(
                &format!(
                    "After agreement {:.2} the leading answer became: {text}",
                    end.agreement
                ),
                winner.messages.iter().copied(),
            );
            Memory::add(&mut self.memory.refinements, line);
        }
    }

    /// Passes the result of a sub-council to the council.
    fn end_issue(&mut self, issue: &str, board: Board) {
        let decided = board.winner();
        if let Some(winner) = decided {
            let text = sentences(&winner.text, 1)
                .into_iter()
                .next()
                .unwrap_or_else(|| winner.name.clone());
            let line = Line::new(
                &format!("On “{issue}”: {text}"),
                winner.messages.iter().copied(),
            );
            Memory::add(&mut self.memory.refinements, line);
            self.memory.open_questions.retain(|q| q.text != issue);
            // The main pass below was created before this was known.
            self.tell_context();
        } else if board.depth < self.plan.iteration.max_depth && board.candidates.len() > 1 {
            let deeper = strategies::deeper(issue, &board);
            self.frames.extend(deeper);
        }
    }

    /// Gives the waiting passes the current memory as context.
    fn tell_context(&mut self) {
        let (memory, most) = (&self.memory, self.plan.memory.max_context_tokens);
        for frame in self.frames.iter_mut().filter(|f| f.kind == Kind::Pass) {
            let focus = "Settle what is still open, with what the sub-councils found.";
            frame.board.context = memory.context(frame.board.pass, focus, most);
        }
    }

    /// Pushes the frames of the next pass.
    fn next_pass(&mut self, action: Action) {
        let Some((last, _)) = self.passes.last() else {
            return;
        };
        let next = Next {
            plan: &self.plan,
            protocol: self.protocol,
            last,
            memory: &self.memory,
            reserves: self.reserves(),
            escalate: action == Action::Escalate,
        };
        let frames = strategies::next(&next);
        self.frames = frames;
    }

    /// Adds a fact to the memory.
    pub(super) fn remember(&mut self, read: &Fact) {
        if let Fact::Remembered { lines, .. } = read {
            self.memory.summary.clone_from(lines);
        }
    }

    /// Returns the maximum cost of the final answer, whichever chair is tried first.
    pub(super) fn closing(plan: &Plan, protocol: &Protocol, preamble: &str) -> Spent {
        if protocol.ending == Ending::Winner {
            return Spent::default();
        }
        let fixed = plan.question.len() + stages::material_bytes_max(plan);
        let mut most = Spent::default();
        for seat in stages::chairs(plan).into_iter().map(|s| &plan.seats[s]) {
            let prompt = Prompt {
                rules: preamble.to_owned(),
                persona: seat.member.persona.clone(),
                ..Prompt::default()
            };
            let bytes = match plan.spending {
                0 => prompt_bytes(&prompt) + fixed as u64 + 2500,
                // A line break takes two bytes in JSON.
                _ => wire_bytes(&prompt) + (fixed + fixed / 16) as u64 + 2500,
            };
            let call = Spent::at_most(bytes, plan.limits.answer_tokens, seat.price);
            most = Spent {
                calls: 1,
                tokens: most.tokens.max(call.tokens),
                pico_usd: most.pico_usd.max(call.pico_usd),
                ..most
            };
        }
        most
    }

    /// Returns the pass whose result counts, and its board.
    pub(super) fn best(&self) -> (usize, Board) {
        let ends: Vec<PassEnd> = self.passes.iter().map(|(_, end)| end.clone()).collect();
        if ends.is_empty() {
            return (0, Board::default());
        }
        let at = iteration::best(&ends);
        (at, self.passes[at].0.clone())
    }

    /// Asks the chair, or a substitute, to conclude; otherwise composes the answer from the messages.
    fn conclude(&mut self, now: Timestamp, fx: &mut Effects) {
        let (_, board) = self.best();
        let nothing = board.candidates.is_empty();
        let Phase::Concluding { tried } = &self.phase else {
            return;
        };
        let tried = tried.clone();
        let alone = self.protocol.ending == Ending::Winner && board.winner().is_some();
        if !nothing && !alone && !self.over && tried.len() < 2 {
            let next = stages::chairs(&self.plan).into_iter().find(|s| {
                let silent = board.absent.answers.contains(s) && board.answer_of(*s).is_none();
                !tried.contains(s) && !silent
            });
            if let Some(failed) = tried.last() {
                self.replaced(*failed, next, fx);
            }
            if let Some(seat) = next {
                let mut now_tried = tried.clone();
                now_tried.push(seat);
                self.phase = Phase::Concluding { tried: now_tried };
                self.frames = vec![Frame::new(board, &[], Kind::Pass)];
                let asking = self.frames.last().and_then(|frame| {
                    (stages::conclude::STAGE.ask)(&StageInput {
                        plan: &self.plan,
                        board: &frame.board,
                        seat,
                        sample: 0,
                    })
                });
                let (pass, depth) = self
                    .frames
                    .last()
                    .map_or((1, 0), |f| (f.board.pass, f.board.depth));
                if let Some(asking) = asking {
                    fact(
                        fx,
                        Fact::StageBegan {
                            pass,
                            round: 0,
                            depth,
                            issue: None,
                            stage: stages::conclude::STAGE.name.into(),
                            seats: vec![self.plan.seats[seat].name().clone()],
                        },
                    );
                    match self.ask(&stages::conclude::STAGE, (seat, 0), asking, 1, now, fx) {
                        Ok(()) => return,
                        Err(limit) => {
                            self.cut.get_or_insert(limit);
                            fact(
                                fx,
                                Fact::Cut {
                                    limit,
                                    stage: stages::conclude::STAGE.name.into(),
                                    seats: vec![self.plan.seats[seat].name().clone()],
                                },
                            );
                        }
                    }
                }
            }
        } else if let Some(failed) = tried.last()
            && !self.over
        {
            self.replaced(*failed, None, fx);
        }
        let verdict = self.verdict(None);
        let mut draft = self.draft(None, COUNCIL, verdict.answer.clone(), None, now);
        draft.extra.insert("purpose".into(), "conclude".into());
        draft
            .extra
            .insert("outcome".into(), verdict.outcome.word().into());
        self.phase = Phase::Writing(Box::new(verdict));
        fx.commands.push(Command::Save(Box::new(draft)));
    }

    fn replaced(&mut self, failed: usize, by: Option<usize>, fx: &mut Effects) {
        let from = self.plan.seats[failed].name().clone();
        let why = self
            .troubles
            .last()
            .cloned()
            .unwrap_or_else(|| "it did not answer".into());
        fact(
            fx,
            Fact::ChairReplaced {
                from,
                by: by.map(|s| self.plan.seats[s].name().clone()),
                why,
            },
        );
    }

    /// Returns the verdict. `said` is the chair, its reply, and the meaning of its labels.
    pub(super) fn verdict(&self, said: Option<(usize, &str, &[usize])>) -> Verdict {
        let (best, board) = self.best();
        let name = |s: usize| self.plan.seats[s].name().clone();
        let counted = board.counted.as_ref();
        let form = counted.map_or(Outcome::NoQuorum, |c| c.form);
        let cut = self.cut.is_some();
        let ended = outcome(form, cut, self.failed);
        let (backers, voters) = counted.map_or((0, 0), |c| (c.backers, c.voters));
        // Older records do not mention abstentions in the heading.
        let abstained = counted.map_or(0, |c| c.electorate.saturating_sub(c.voters));
        let abstained = if self.plan.writing > 0 { abstained } else { 0 };
        let needless = counted.map_or(0, |c| {
            let silent = c.firsts.iter().filter(|f| f.is_silent());
            let places = silent.filter_map(|f| self.plan.place(&f.seat));
            places.filter(|s| board.absent.needless.contains(s)).count() as u64
        });
        let needless = if self.plan.writing < VOICED {
            0
        } else {
            needless
        };
        let tallied = Tallied {
            backers,
            voters,
            abstained: abstained.saturating_sub(needless),
            needless,
        };
        let title = heading(ended, form, tallied, &self.voices(&board));
        let winner = counted.and_then(|c| c.winner);
        let mut support = Vec::new();
        let mut dissent = Vec::new();
        for first in counted.map(|c| c.firsts.as_slice()).unwrap_or_default() {
            if winner.is_some_and(|winner| first.backs(winner)) {
                support.push(first.seat.clone());
            } else if !first.is_silent() {
                let names = counted.and_then(|c| first.names(&c.candidates));
                dissent.push(Dissenter {
                    seat: first.seat.clone(),
                    stands_for: names.unwrap_or_default(),
                    reason: first.reason.clone(),
                });
            }
        }
        let mut above = Vec::new();
        if let Phase::Concluding { tried } = &self.phase {
            let by = said.map(|(seat, ..)| seat);
            for failed in tried.iter().filter(|s| Some(**s) != by) {
                above.push(match by {
                    Some(by) => format!(
                        "{} could not conclude: {} does so in its place.",
                        name(*failed),
                        name(by)
                    ),
                    None => format!(
                        "{} could not conclude: this is taken from what was said.",
                        name(*failed)
                    ),
                });
            }
        }
        if let Some(cut) = self.cut {
            above.push(format!(
                "{} cut the deliberation: this is the best so far.",
                capital(cut.words())
            ));
        }
        for trouble in self.troubles.iter().take(5) {
            above.push(trouble.clone());
        }
        let by = said.map(|(seat, ..)| name(seat));
        let about = Conclusion {
            plan: &self.plan,
            board: &board,
            heading: &title,
            outcome: ended,
            dissent: &dissent,
            above: &above,
            by: by.as_ref(),
            asks_back: self.asks_back.as_ref(),
        };
        let (mut answer, cites) = compose(&about, said.map(|(_, text, items)| (text, items)));
        if board.candidates.is_empty() {
            answer.push_str("\n\nNobody gave an answer that could be used.");
        }
        Verdict {
            outcome: ended,
            form,
            heading: title,
            winner: winner.and_then(|w| board.candidates.get(w)).map(|c| {
                let code = code::of(&c.text)
                    .filter(|_| self.plan.answers == AnswerKind::Code && c.text.contains("```"));
                match (code, self.plan.answers.is_keyed()) {
                    (Some(code), _) => code,
                    (None, true) => c.name.clone(),
                    (None, false) => c.text.clone(),
                }
            }),
            confidence: counted.map_or(0.0, |c| c.agreement),
            support,
            dissent,
            answer,
            by,
            message: None,
            asks_back: self
                .asks_back
                .as_ref()
                .map(|(_, question)| question.clone()),
            cites,
            passes: self.passes.len() as u32,
            best_pass: best as u32 + 1,
            stopped: self
                .decisions
                .last()
                .map(|d| d.reason.clone())
                .unwrap_or_default(),
            spent: self.ledger.used(),
            troubles: self.troubles.clone(),
        }
    }

    /// Returns the name of the counted things on a board, for its heading.
    fn voices(&self, board: &Board) -> Voices {
        let Some(counted) = board
            .counted
            .as_ref()
            .filter(|_| self.plan.writing >= VOICED)
        else {
            return Voices::Council;
        };
        if counted.is_of_estimates() {
            return Voices::Estimates(super::count::middle_word(counted.voters as usize));
        }
        let Some(first) = board.answers.first().filter(|_| counted.is_of_answers()) else {
            return Voices::Council;
        };
        if board.answers.iter().any(|answer| answer.sample > 0) {
            return Voices::Samples(self.plan.seats[first.seat].name().clone());
        }
        if protocols::reviews(self.protocol.name) && counted.is_one_voice() {
            let attackers = board.seats.len().saturating_sub(1);
            return match board.absent.reviews.len() < attackers {
                true => Voices::Checked,
                false => Voices::Council,
            };
        }
        match stages::opinions::unasked(&self.plan, board).is_empty() {
            true => Voices::Council,
            false => Voices::Asked,
        }
    }

    /// Finishes once the answer is on disk or cannot be written.
    pub(super) fn finish(&mut self, message: Option<u32>, fx: &mut Effects) {
        let Phase::Writing(verdict) = std::mem::replace(&mut self.phase, Phase::Done) else {
            return;
        };
        let mut verdict = *verdict;
        verdict.message = message;
        verdict.spent = self.ledger.used();
        let nobody = self.passes.iter().all(|(b, _)| b.answers.is_empty());
        let round = match (nobody, self.failed || self.cut.is_some()) {
            (true, _) => RoundOutcome::Failed,
            (false, true) => RoundOutcome::Partial,
            (false, false) => RoundOutcome::Complete,
        };
        fact(fx, Fact::Concluded(Box::new(verdict)));
        fx.events.push(Event::FloorYielded {
            outcome: round,
            usage: self.usage,
        });
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}
