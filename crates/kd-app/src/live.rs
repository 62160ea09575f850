//! Does a council pay, for the user's own questions? Asks the same questions, whose right answers are known, of the
//! council, of its best member alone, and of that member sampled at the cost of the council.
//!
//! Each way is a batch, so that an interrupted run goes on; all of them share one budget. Answers are judged as `kd mark`
//! judges them, and compared question by question.

use crate::batch::{BatchRequest, Batching, How, of};
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::marks::{records, verdict};
use crate::request::Limits;
use crate::{Deliberate, seating};
use kd_core::batch::{Estimate, Question as BatchQuestion, Row, Status};
use kd_core::clean::clean_line;
use kd_core::config;
use kd_core::deliberation::report::Report;
use kd_core::deliberation::{Seat, can_be_right, judge_by_value, model_of};
use kd_core::planner;
use kd_core::roles::Duty;
use kd_core::seating::SeatRequest;
use kd_core::spending::Spent;
use kd_core::usage::Certainty;
use kd_core::view::View;
use kd_eval::replay::{Question, Replay};
use kd_store::user_dirs::project_key;
use kd_store::{Layout, Place, Thread};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Maximum samples of the best member.
const SAMPLES_MAX: u64 = 100;
/// Maximum characters of a name.
const NAME_CHARS: usize = 64;

/// A way to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The council, as the settings say.
    Council,
    /// Its best member alone.
    Member,
    /// That member sampled, as often as the cost of the council buys.
    Samples,
}

impl Way {
    /// The ways, in the order in which they are asked: the number of samples follows from the cost of the others.
    pub const ALL: [Self; 3] = [Self::Council, Self::Member, Self::Samples];

    /// Returns its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Council => "council",
            Self::Member => "member",
            Self::Samples => "samples",
        }
    }
}

/// A question whose right answer is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Its id, unique among the questions.
    pub id: String,
    /// Its text.
    pub text: String,
    /// The right answer: a text or another JSON value.
    pub gold: Value,
}

/// What is asked, and within which limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRequest {
    /// The members of the council; empty means as configured.
    pub members: Vec<String>,
    /// The member that is asked alone; `None` lets marks and settings say which is best.
    pub best: Option<String>,
    /// What all ways together may spend.
    pub limits: Limits,
    /// How many questions are asked at the same time.
    pub concurrency: usize,
    /// The name of the questions, for lists.
    pub source: String,
    /// The command that goes on, for lists.
    pub command: String,
    /// Download nothing.
    pub offline: bool,
}

/// The member that is asked alone, and how it was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Best {
    /// Its name.
    pub name: String,
    /// Why it counts as the best.
    pub why: String,
}

/// Questions being asked in three ways.
pub struct Live {
    kingdoms: BTreeMap<Way, Kingdom>,
    request: LiveRequest,
    known: Vec<Known>,
    members: Vec<String>,
    best: Best,
    /// Spent by ways that are over.
    spent: Spent,
}

/// How a way answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answered {
    /// The batch.
    pub batch: String,
    /// By question: the answer in the form used for comparison (`None` without a decision), and whether it is right.
    judged: BTreeMap<String, (Option<String>, bool)>,
    /// The questions that cannot be judged, and why.
    faults: BTreeMap<String, String>,
    /// The number of threads, and what they spent.
    threads: u64,
    spent: Spent,
    /// Whether the price of some member is unknown.
    is_unpriced: bool,
    /// The agents that were asked.
    agents: BTreeSet<String>,
    /// How often each agent was sampled, over all threads; 0 if none was.
    samples: u64,
}

/// What a way spent for a question, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Requests to models.
    pub calls: f64,
    /// Tokens of prompts and answers.
    pub tokens: f64,
    /// US dollars; `None` if some price is unknown.
    pub usd: Option<f64>,
    /// The precision of the amounts.
    #[serde(skip)]
    pub certainty: Certainty,
}

impl Answered {
    /// Returns the average cost of a question.
    pub fn cost(&self) -> Cost {
        let mean = |sum: f64| sum / self.threads.max(1) as f64;
        Cost {
            calls: mean(self.spent.calls as f64),
            tokens: mean(self.spent.tokens as f64),
            usd: (!self.is_unpriced).then(|| mean(self.spent.usd())),
            certainty: self.spent.certainty,
        }
    }

    /// The agents that were asked.
    pub fn agents(&self) -> impl Iterator<Item = &String> {
        self.agents.iter()
    }

    /// Returns how often its member was sampled for a question, on average.
    pub fn mean_samples(&self) -> u64 {
        (self.samples + self.threads / 2) / self.threads.max(1)
    }

    /// Adds the answer to a question.
    pub(crate) fn add(&mut self, way: Way, known: &Known, judged: Result<Judged, String>) {
        match judged {
            Ok(judged) => {
                self.is_unpriced |= judged.bill.is_unpriced;
                self.judged.insert(known.id.clone(), judged.answer);
                self.threads += 1;
                self.spent += judged.bill.spent;
                self.agents.extend(judged.agents);
                self.samples += judged.samples;
            }
            Err(why) => {
                let why = format!("{}: {why}", way.word());
                self.faults.insert(known.id.clone(), why);
            }
        }
    }
}

/// What a deliberation spent, and whether the price of some member is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bill {
    pub(crate) spent: Spent,
    is_unpriced: bool,
}

impl Bill {
    pub(crate) fn of(report: &Report) -> Self {
        let has_price =
            |seat: &Seat| seat.price.is_some() || config::keeps_budget(&seat.member.backend);
        let plan = report.plan.as_ref();
        Self {
            spent: (report.verdict.as_ref()).map_or_else(|| report.spent(), |v| v.spent),
            is_unpriced: plan.is_some_and(|plan| !plan.seats.iter().all(has_price)),
        }
    }

    /// Returns it as the cost of one question.
    pub(crate) fn cost(self) -> Cost {
        let answered = Answered {
            threads: 1,
            spent: self.spent,
            is_unpriced: self.is_unpriced,
            ..Answered::default()
        };
        answered.cost()
    }
}

/// Returns how many samples of a member cost as much as the council, whose conclusion counts: by money, else by tokens,
/// else by calls.
pub fn samples(council: Cost, member: Cost) -> u32 {
    let pairs = [
        // Money that leaves out a price does not compare.
        (council.usd.unwrap_or(0.0), member.usd.unwrap_or(0.0)),
        (council.tokens, member.tokens),
        (council.calls, member.calls),
    ];
    let priced = pairs
        .into_iter()
        .find(|(ours, one)| *ours > 0.0 && *one > 0.0);
    let (ours, one) = priced.unwrap_or((1.0, 1.0));
    // One more call concludes.
    let buys = (ours / one).round() - 1.0;
    buys.clamp(1.0, SAMPLES_MAX as f64) as u32
}

impl Kingdom {
    /// Prepares to ask questions in three ways. Nothing is asked or written yet.
    ///
    /// # Errors
    /// If there are no questions, a member does not exist, or the marks cannot be read.
    pub fn live(&self, request: LiveRequest, known: Vec<Known>) -> Result<Live, UserError> {
        if known.is_empty() {
            let what = "there is no question whose right answer is known";
            return Err(UserError::usage(what).next(
                "give a file of questions with `gold`, or mark verdicts with their right answers: `kd mark 391`",
            ));
        }
        let settings = &self.config().deliberation;
        let is_comparable =
            |known: &Known| can_be_right(&planner::answers_of(settings, &known.text), &known.gold);
        if let Some(known) = known.iter().find(|known| !is_comparable(known)) {
            let gold = match &known.gold {
                Value::String(text) => clean_line(text, NAME_CHARS),
                other => clean_line(&other.to_string(), NAME_CHARS),
            };
            let kind = planner::kind_of(settings, &known.text);
            let what = format!(
                "the right answer of {} cannot be compared: `{gold}` is no answer to a {kind} question",
                clean_line(&known.id, NAME_CHARS),
            );
            return Err(UserError::usage(what).next(
                "correct `gold`, or set the kind of all questions: `kd config set deliberation.answer KIND`; nothing was asked",
            ));
        }
        self.ways(request, known)
    }

    /// Prepares the ways to ask these questions.
    pub(crate) fn ways(&self, request: LiveRequest, known: Vec<Known>) -> Result<Live, UserError> {
        let members = self.members(&request)?;
        let best = self.best(&request, &members)?;
        let alone = |protocol: &'static str| {
            let name = best.name.clone();
            self.changed(move |config| {
                config.deliberation.protocol = protocol.to_owned();
                config.deliberation.preset = None;
                config.deliberation.council.members = None;
                config.council.members = vec![name];
                config.council.chair = None;
            })
        };
        let kingdoms = BTreeMap::from([
            (Way::Council, self.changed(|_| {})),
            (Way::Member, alone("solo")),
            (Way::Samples, alone("sample-vote")),
        ]);
        Ok(Live {
            kingdoms,
            request,
            known,
            members: members.iter().map(|(name, _)| name.clone()).collect(),
            best,
            spent: Spent::default(),
        })
    }

    /// Returns the members of the council with their models.
    fn members(&self, request: &LiveRequest) -> Result<Vec<(String, String)>, UserError> {
        let wishes = SeatRequest {
            members: request.members.clone(),
            ..SeatRequest::default()
        };
        let seated = seating::seat(self.config(), wishes, None)?;
        let members = seated.roster.members().iter();
        Ok(members
            .map(|member| (member.name.to_string(), model_of(member).to_owned()))
            .collect())
    }

    /// Returns the best of these members: as the user says, by the marks, by the settings, or the first.
    fn best(&self, request: &LiveRequest, members: &[(String, String)]) -> Result<Best, UserError> {
        if let Some(name) = &request.best {
            let name = name.clone();
            if !members.iter().any(|(known, _)| *known == name) {
                let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                let what = format!(
                    "{} is no member of this council",
                    clean_line(&name, NAME_CHARS)
                );
                return Err(UserError::new(ErrorKind::UnknownMember, what)
                    .next(format!("members are: {}", names.join(", "))));
            }
            let why = "as you say".to_owned();
            return Ok(Best { name, why });
        }
        let sums = kd_sql::marks::of_kind(&self.env().user_dirs(), "")?.sums;
        let marked = |model: &str| {
            let of = sums.iter().filter(|(_, known, _)| *known == model);
            of.fold((0, 0), |(right, all), (_, _, sum)| {
                (right + sum.right, all + sum.questions)
            })
        };
        let estimate = |(right, all): (u64, u64)| (right as f64 + 1.0) / (all as f64 + 2.0);
        let by_marks = members.iter().map(|(name, model)| (name, marked(model)));
        let by_marks = by_marks.filter(|(_, (_, all))| *all > 0);
        // The first of equals.
        let by_marks = by_marks
            .rev()
            .max_by(|a, b| estimate(a.1).total_cmp(&estimate(b.1)));
        if let Some((name, (right, all))) = by_marks {
            return Ok(Best {
                name: name.clone(),
                why: format!("right in {right} of {all} marked questions"),
            });
        }
        let agents = &self.config().agents;
        let stated = |name: &String| agents.get(name).and_then(|agent| agent.reliability);
        let by_settings = members
            .iter()
            .filter_map(|(name, _)| Some((name, stated(name)?)));
        if let Some((name, share)) = by_settings.rev().max_by(|a, b| a.1.total_cmp(&b.1)) {
            return Ok(Best {
                name: name.clone(),
                why: format!("its reliability in the settings is {share}"),
            });
        }
        let first = members
            .first()
            .ok_or_else(|| UserError::usage("the council has no member"))?;
        Ok(Best {
            name: first.0.clone(),
            why: "the first member: no marks say which is best; --best NAME chooses another"
                .to_owned(),
        })
    }
}

impl Live {
    /// The member that is asked alone.
    pub fn best(&self) -> &Best {
        &self.best
    }

    /// The members of the council.
    pub fn members(&self) -> &[String] {
        &self.members
    }

    /// The questions.
    pub fn known(&self) -> &[Known] {
        &self.known
    }

    /// Estimates what each way spends. Before the others are asked, samples are estimated by the calls of the council.
    ///
    /// # Errors
    /// If there is no plan within the limits.
    pub fn estimate(&mut self) -> Result<Vec<(Way, Estimate)>, UserError> {
        let council = self.batching(Way::Council)?.estimate()?;
        let calls = council.calls.high / council.asked.max(1);
        self.set_samples(calls.saturating_sub(1).clamp(1, SAMPLES_MAX) as u32);
        let mut found = vec![(Way::Council, council)];
        for way in [Way::Member, Way::Samples] {
            found.push((way, self.batching(way)?.estimate()?));
        }
        Ok(found)
    }

    /// How often the best member is sampled.
    pub fn samples(&self) -> u32 {
        let kingdom = self.kingdoms.get(&Way::Samples);
        kingdom.map_or(0, |kingdom| kingdom.config().deliberation.samples)
    }

    /// Sets how often the best member is sampled.
    pub fn set_samples(&mut self, samples: u32) {
        if let Some(kingdom) = self.kingdoms.get_mut(&Way::Samples) {
            kingdom.configure(|config| config.deliberation.samples = samples);
        }
    }

    /// Books what a way spent that is over: the budget is one for all.
    pub fn book(&mut self, spent: Spent) {
        self.spent += spent;
    }

    /// Returns the batch of a way, within what is left of the budget.
    ///
    /// # Errors
    /// If the budget is spent, or the database of batches cannot be read.
    pub fn batching(&self, way: Way) -> Result<Batching<'_>, UserError> {
        let Some(kingdom) = self.kingdoms.get(&way) else {
            return Err(UserError::new(ErrorKind::Engine, "this way is not asked"));
        };
        let members = match way {
            Way::Council => self.request.members.clone(),
            Way::Member | Way::Samples => vec![self.best.name.clone()],
        };
        let how = How::Deliberate(Deliberate {
            members,
            offline: self.request.offline,
            ..Deliberate::default()
        });
        let request = BatchRequest {
            how,
            source: format!("{} ({})", self.request.source, way.word()),
            command: self.request.command.clone(),
            output: None,
            fresh: false,
            limits: self.left()?,
            concurrency: self.request.concurrency,
            attempts: 3,
            pause: Duration::from_secs(5),
            every: None,
            provider_batch: false,
            fleet: None,
            log: None,
        };
        let questions = self
            .known
            .iter()
            .enumerate()
            .map(|(at, known)| BatchQuestion {
                id: known.id.clone(),
                text: known.text.clone(),
                line: at + 1,
            });
        kingdom.batch(request, questions.collect())
    }

    /// Returns what is left of the budget.
    fn left(&self) -> Result<Limits, UserError> {
        let mut left = self.request.limits;
        let over = |what: &str, flag: &str| {
            let what = format!("the budget of {what} is spent, and not every way has answered");
            Err(UserError::new(ErrorKind::Budget, what).next(format!(
                "run the same command with a higher `{flag}`: it goes on"
            )))
        };
        if let Some(calls) = &mut left.calls {
            *calls = calls.saturating_sub(self.spent.calls);
            if *calls == 0 {
                return over("calls", "--max-calls");
            }
        }
        if let Some(tokens) = &mut left.tokens {
            *tokens = tokens.saturating_sub(self.spent.tokens);
            if *tokens == 0 {
                return over("tokens", "--max-total-tokens");
            }
        }
        if let Some(usd) = &mut left.usd {
            *usd -= self.spent.usd();
            if *usd <= 0.0 {
                return over("dollars", "--max-usd");
            }
        }
        Ok(left)
    }

    /// Reads and judges the answers of a batch.
    ///
    /// # Errors
    /// If the database or the threads of the project cannot be read.
    pub fn answered(&self, way: Way, batch: &str) -> Result<Answered, UserError> {
        let Some(kingdom) = self.kingdoms.get(&way) else {
            return Ok(Answered::default());
        };
        let layout = kingdom.env().layout()?;
        let places = places(layout.batch_threads()?);
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        if let Some(batches) = of(kingdom.env())? {
            read_rows(&batches, batch, &mut rows)?;
        }
        let mut found = Answered {
            batch: batch.to_owned(),
            ..Answered::default()
        };
        for known in &self.known {
            let thread = rows.get(&known.id).and_then(thread_of);
            found.add(way, known, judged(known, thread, (&layout, &places)));
        }
        Ok(found)
    }
}

/// Returns threads by their id.
pub(crate) fn places(found: Vec<Place>) -> BTreeMap<String, Place> {
    let named = found.into_iter().map(|place| (place.id.0.clone(), place));
    named.collect()
}

/// Reads the rows of a batch, by question.
pub(crate) fn read_rows(
    batches: &kd_sql::batch::Batches,
    batch: &str,
    rows: &mut BTreeMap<String, Row>,
) -> Result<(), UserError> {
    batches.results(batch, |line| {
        if let Ok(row) = serde_json::from_str::<Row>(line) {
            rows.insert(row.id.clone(), row);
        }
        Ok::<_, UserError>(())
    })
}

/// Returns the thread of a row that has an answer.
pub(crate) fn thread_of(row: &Row) -> Option<&str> {
    let row = (row.status == Status::Answered).then_some(row)?;
    row.thread.as_deref()
}

/// Returns the answers as columns, one for each way, and the questions left out because some way cannot be judged.
pub fn columns(known: &[Known], ways: &[(Way, Answered)]) -> (Replay, Vec<(String, String)>) {
    let mut replay = Replay {
        members: ways.iter().map(|(way, _)| way.word().to_owned()).collect(),
        named: true,
        ..Replay::default()
    };
    let mut left_out = Vec::new();
    for known in known {
        let faults = ways.iter().find_map(|(_, one)| one.faults.get(&known.id));
        if let Some(why) = faults {
            left_out.push((known.id.clone(), why.clone()));
            continue;
        }
        let mut question = Question {
            id: known.id.clone(),
            ..Question::default()
        };
        for (_, one) in ways {
            let answer = one.judged.get(&known.id).and_then(|(key, right)| {
                let key = key.clone()?;
                let at = question.keys.iter().position(|k| *k == key);
                Some(at.unwrap_or_else(|| {
                    question.keys.push(key);
                    question.right.push(*right);
                    question.keys.len() - 1
                }))
            });
            question.answers.push(answer);
        }
        replay.questions.push(question);
    }
    (replay, left_out)
}

/// How a thread answered a question.
pub(crate) struct Judged {
    /// The answer in the form used for comparison (`None` without a decision), and whether it is right.
    answer: (Option<String>, bool),
    bill: Bill,
    agents: BTreeSet<String>,
    samples: u64,
}

/// Judges the answer to a question in a thread.
pub(crate) fn judged(
    known: &Known,
    thread: Option<&str>,
    (layout, places): (&Layout, &BTreeMap<String, Place>),
) -> Result<Judged, String> {
    let id = thread.ok_or("it was not answered")?;
    let place = places.get(id).ok_or("its thread was forgotten")?;
    let thread = Thread::open(place).map_err(|why| why.to_string())?;
    let report = match records(&thread).map_err(|why| why.as_line())? {
        Some(records) => View::of(&records).report,
        None => return Err("its thread has no deliberation".to_owned()),
    };
    let plan = report.plan.as_deref();
    let voters = plan.map_or(&[][..], |plan| &plan.seats);
    let voters = voters.iter().filter(|seat| seat.has(Duty::Opine));
    let mut found = Judged {
        answer: (None, false),
        bill: Bill::of(&report),
        agents: voters.map(|seat| seat.agent.clone()).collect(),
        samples: plan.map_or(0, |plan| u64::from(plan.samples)),
    };
    // Who decides nothing is not right.
    let Some((mut mark, report)) = verdict(layout, &thread).map_err(|why| why.as_line())? else {
        return Ok(found);
    };
    judge_by_value(&mut mark, &known.gold, &report).map_err(|why| match mark.winner {
        None => "an open answer cannot be compared".to_owned(),
        Some(_) => clean_line(&why.to_string(), 4 * NAME_CHARS),
    })?;
    found.answer = (mark.winner.clone(), mark.is_right());
    Ok(found)
}

/// Returns the questions of this project whose right answers the user's marks tell, with the newest mark of each. Equal
/// questions are asked once. Private threads are left out.
///
/// # Errors
/// If the marks or the threads of the project cannot be read.
pub fn marked(kingdom: &Kingdom) -> Result<Vec<Known>, UserError> {
    let mut texts = BTreeSet::new();
    let mut found = all_marked(kingdom)?;
    found.retain(|known| texts.insert(known.text.clone()));
    Ok(found)
}

/// Returns the same with equal questions.
pub(crate) fn all_marked(kingdom: &Kingdom) -> Result<Vec<Known>, UserError> {
    let env = kingdom.env();
    let layout = env.layout()?;
    let project = project_key(layout.root());
    let mut places = places(layout.all_threads(true)?);
    places.extend(self::places(layout.batch_threads()?));
    let mut found: Vec<Known> = Vec::new();
    for mark in kd_sql::marks::read(&env.user_dirs())? {
        let right = mark.winner.clone().filter(|_| mark.credit == 1.0);
        let gold = mark
            .answer
            .clone()
            .filter(|_| mark.winner.is_some())
            .or(right);
        let (Some(gold), true) = (gold, mark.project == project) else {
            continue;
        };
        let Some(thread) = places
            .get(&mark.thread)
            .and_then(|place| Thread::open(place).ok())
        else {
            continue;
        };
        if thread.meta().is_private() {
            continue;
        }
        let Ok(Some((newest, report))) = verdict(&layout, &thread) else {
            continue;
        };
        let Some(plan) = report.plan.filter(|_| newest.message == mark.message) else {
            continue;
        };
        found.push(Known {
            id: format!("{}#{}", mark.thread, mark.message),
            text: plan.question,
            gold: Value::String(gold),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_cost_as_much_as_the_council_with_its_conclusion() {
        let cost = |usd: f64, tokens: f64, calls: f64| Cost {
            calls,
            tokens,
            usd: Some(usd),
            certainty: Certainty::Exact,
        };
        let unpriced = |cost: Cost| Cost { usd: None, ..cost };
        let (council, member) = (cost(0.06, 900.0, 4.0), cost(0.01, 100.0, 1.0));
        let of_way = |is_unpriced| Answered {
            threads: 2,
            is_unpriced,
            ..Answered::default()
        };
        assert_eq!(of_way(false).cost().usd, Some(0.0));
        assert_eq!(of_way(true).cost().usd, None);
        assert_eq!(samples(unpriced(council), member), 8);
        assert_eq!(samples(council, unpriced(member)), 8);
        // Money decides where it is known, else tokens, else calls.
        assert_eq!(samples(cost(0.06, 900.0, 4.0), cost(0.01, 100.0, 1.0)), 5);
        assert_eq!(samples(cost(0.0, 900.0, 4.0), cost(0.01, 100.0, 1.0)), 8);
        assert_eq!(samples(cost(0.0, 0.0, 4.0), cost(0.0, 0.0, 1.0)), 3);
        // Never none, and never without end.
        assert_eq!(samples(cost(0.0, 0.0, 0.0), cost(0.0, 0.0, 0.0)), 1);
        assert_eq!(samples(cost(0.01, 0.0, 0.0), cost(0.02, 0.0, 0.0)), 1);
        assert_eq!(samples(cost(9e9, 0.0, 0.0), cost(0.01, 0.0, 0.0)), 100);
    }
}
