//! Evaluates the answers of each way: reads its threads, judges them as `kd mark` does, and adds up their cost.

use super::{Known, NAME_CHARS, Way};
use crate::error::UserError;
use crate::kingdom::Kingdom;
use crate::marks::{records, verdict};
use crate::words::count;
use kd_core::Timestamp;
use kd_core::batch::{Row, Status};
use kd_core::clean::clean_line;
use kd_core::config;
use kd_core::deliberation::report::Report;
use kd_core::deliberation::{Plan, Seat, judge_by_value, model_of, protocols};
use kd_core::roles::Duty;
use kd_core::spending::Spent;
use kd_core::usage::Certainty;
use kd_core::view::View;
use kd_eval::marks::{ANSWER_BYTES_MAX, is_shortened, shortened};
use kd_eval::replay::{Question, Replay};
use kd_store::user_dirs::project_key;
use kd_store::{Layout, Place, Thread, Verdicts};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum samples of the best member.
pub(super) const SAMPLES_MAX: u64 = 100;

/// How a way answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answered {
    /// The batch.
    pub batch: String,
    /// By question: the answer in the form used for comparison (`None` without a decision), and whether it is right.
    judged: BTreeMap<String, (Option<String>, bool)>,
    /// The questions that cannot be judged, and why.
    faults: BTreeMap<String, String>,
    /// The number of threads, and their spending.
    threads: u64,
    spent: Spent,
    /// Those whose spending is known exactly.
    exact: (u64, Spent),
    /// Whether the price of some member is unknown.
    is_unpriced: bool,
    /// The agents that were asked.
    agents: BTreeSet<String>,
    /// How often each agent was sampled, over all threads; 0 if none was.
    samples: u64,
}

/// The average spending of a way for a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Requests to models.
    pub calls: f64,
    /// Tokens of prompts and answers.
    pub tokens: f64,
    /// US dollars; `None` if some price is unknown.
    pub usd: Option<f64>,
    /// The precision of the amounts.
    #[serde(skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

impl Answered {
    /// Creates it for a batch, without answers yet.
    pub(super) fn of_batch(batch: &str) -> Self {
        Self {
            batch: batch.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the average cost of a question. A request that is stopped, because the result is certain without it,
    /// counts with the most that it may have cost, which is many times the usual cost: if at least half of the
    /// questions have none, the average is of these.
    pub fn cost(&self) -> Cost {
        let (threads, spent, certainty) = match self.exact {
            _ if self.spent.certainty.is_exact() => (self.threads, self.spent, Certainty::Exact),
            (exact, spent) if 2 * exact >= self.threads => (exact, spent, Certainty::About),
            _ => (self.threads, self.spent, self.spent.certainty),
        };
        let mean = |sum: f64| sum / threads.max(1) as f64;
        Cost {
            calls: mean(spent.calls as f64),
            tokens: mean(spent.tokens as f64),
            usd: (!self.is_unpriced).then(|| mean(spent.usd())),
            certainty,
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

    /// Adds the answers of the same way to other questions.
    pub(crate) fn merge(&mut self, other: Self) {
        self.judged.extend(other.judged);
        self.faults.extend(other.faults);
        self.threads += other.threads;
        self.spent += other.spent;
        self.exact.0 += other.exact.0;
        self.exact.1 += other.exact.1;
        self.is_unpriced |= other.is_unpriced;
        self.agents.extend(other.agents);
        self.samples += other.samples;
    }

    /// Returns whether the answer to a question cannot be judged.
    pub(crate) fn is_faulty(&self, id: &str) -> bool {
        self.faults.contains_key(id)
    }

    /// Adds the answer to a question.
    pub(crate) fn add(&mut self, way: Way, known: &Known, judged: Result<Judged, Unjudged>) {
        match judged {
            Ok(judged) => {
                self.is_unpriced |= judged.bill.is_unpriced;
                self.judged.insert(known.id.clone(), judged.answer);
                self.threads += 1;
                self.spent += judged.bill.spent;
                if judged.bill.spent.certainty.is_exact() {
                    self.exact.0 += 1;
                    self.exact.1 += judged.bill.spent;
                }
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

/// The amount that a deliberation spent, and whether the price of some member is unknown.
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

    pub(crate) fn spent(self) -> Spent {
        self.spent
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

/// Returns the number of samples of a member that cost as much as the council, including its conclusion. Compares
/// money, otherwise tokens, otherwise calls.
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

/// Returns threads by their id.
pub(crate) fn places(found: Vec<Place>) -> BTreeMap<String, Place> {
    let named = found.into_iter().map(|place| (place.id.0.clone(), place));
    named.collect()
}

/// Returns the threads of a project, including threads of batches, by their id.
pub(crate) fn all_places(layout: &Layout) -> Result<BTreeMap<String, Place>, UserError> {
    let mut found = places(layout.all_threads(true)?);
    found.extend(places(layout.batch_threads()?));
    Ok(found)
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

/// The reason why the answer to a question cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unjudged {
    /// No thread answers it.
    #[error("it was not answered")]
    Unanswered,
    /// Its thread is gone.
    #[error("its thread was forgotten")]
    Forgotten,
    /// Its thread cannot be read.
    #[error("{0}")]
    Unread(String),
    /// Its thread was not deliberated.
    #[error("its thread has no deliberation")]
    NoDeliberation,
    /// It is an open answer.
    #[error("an open answer cannot be compared")]
    Open,
    /// The right answer does not fit the question.
    #[error("{0}")]
    Incomparable(String),
}

impl From<UserError> for Unjudged {
    fn from(error: UserError) -> Self {
        Self::Unread(error.as_line())
    }
}

/// Judges the answer to a question in a thread.
pub(crate) fn judged(
    known: &Known,
    thread: Option<&str>,
    (layout, places, fell): (&Layout, &BTreeMap<String, Place>, &Verdicts),
) -> Result<Judged, Unjudged> {
    let id = thread.ok_or(Unjudged::Unanswered)?;
    let place = places.get(id).ok_or(Unjudged::Forgotten)?;
    let thread = Thread::open(place).map_err(|why| Unjudged::Unread(why.to_string()))?;
    let report = match records(&thread)? {
        Some(records) => View::of(&records).report,
        None => return Err(Unjudged::NoDeliberation),
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
    // A way without a decision is not right.
    let Some((mut mark, report)) = verdict(layout, &thread, fell)? else {
        return Ok(found);
    };
    judge_by_value(&mut mark, &known.gold, &report).map_err(|why| match mark.winner {
        None => Unjudged::Open,
        Some(_) => Unjudged::Incomparable(clean_line(&why.to_string(), 4 * NAME_CHARS)),
    })?;
    found.answer = (mark.winner.clone(), mark.is_right());
    Ok(found)
}

/// A council of marked questions: councils are compared with others only if all of this is equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Council {
    /// Its members, in the order of their names.
    pub members: Vec<CouncilMember>,
    /// The protocol.
    pub protocol: String,
    /// The rule by which members are not asked, as in marks; `None` if the protocol has only one.
    pub stopping: Option<String>,
}

/// A member of a [`Council`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CouncilMember {
    /// Its name.
    pub name: String,
    /// Its model, as in marks.
    pub model: String,
}

impl Council {
    /// Returns the council of a plan: the members that are asked for a vote.
    fn of(plan: &Plan) -> Self {
        let voters = plan.seats.iter().filter(|seat| seat.has(Duty::Opine));
        let mut members: Vec<CouncilMember> = voters
            .map(|seat| CouncilMember {
                name: seat.agent.clone(),
                model: model_of(&seat.member).into_owned(),
            })
            .collect();
        members.sort();
        Self {
            members,
            protocol: plan.protocol.clone(),
            stopping: protocols::stopping(plan),
        }
    }
}

/// A marked question.
pub(crate) struct MarkedQuestion {
    /// The question with its right answer.
    pub(crate) known: Known,
    /// The council that was asked.
    pub(crate) council: Council,
    /// The time when its thread was opened, if that is known.
    pub(crate) at: Option<Timestamp>,
}

/// Marks without a question to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// Rows of the file that cannot be read, of any project.
    pub unreadable: u64,
    /// Marks of this project whose right answer was too long to be stored in full.
    pub shortened: u64,
}

impl PassedOver {
    /// Says which questions were skipped, and what to type next.
    pub fn lines(self) -> Vec<String> {
        let unreadable = match self.unreadable {
            0 => None,
            n => Some(format!(
                "{} cannot be read and {} passed over: `kd marks` names them",
                count(n, "mark"),
                if n == 1 { "is" } else { "are" },
            )),
        };
        let shortened = match self.shortened {
            0 => None,
            n => Some(format!(
                "{} left out: a mark keeps a digest of a right answer of more than {ANSWER_BYTES_MAX} bytes",
                count(n, "question")
            )),
        };
        unreadable.into_iter().chain(shortened).collect()
    }
}

/// Returns the questions of this project whose right answers the user's marks give, with the newest mark of each. Equal
/// questions are asked once. Private threads are left out, and marks without a question.
///
/// # Errors
/// If the file of marks or the threads of the project cannot be read.
pub fn marked(kingdom: &Kingdom) -> Result<(Vec<Known>, PassedOver), UserError> {
    let layout = kingdom.env().layout()?;
    let mut texts = BTreeSet::new();
    let at = (&layout, &all_places(&layout)?, &layout.verdicts()?);
    let (found, passed_over) = all_marked(kingdom, at)?;
    let mut found: Vec<Known> = found.into_iter().map(|marked| marked.known).collect();
    found.retain(|known| texts.insert(known.text.clone()));
    Ok((found, passed_over))
}

/// Returns the same with equal questions; `places`: [`all_places`].
pub(crate) fn all_marked(
    kingdom: &Kingdom,
    (layout, places, fell): (&Layout, &BTreeMap<String, Place>, &Verdicts),
) -> Result<(Vec<MarkedQuestion>, PassedOver), UserError> {
    let env = kingdom.env();
    let project = project_key(layout.root());
    let mut found = Vec::new();
    let all = kd_sql::marks::read_readable(&env.user_dirs())?;
    let mut passed_over = PassedOver {
        unreadable: all.unreadable.len() as u64,
        ..PassedOver::default()
    };
    for mark in all.marks {
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
        let Ok(Some((newest, report))) = verdict(layout, &thread, fell) else {
            continue;
        };
        let Some(plan) = report.plan.filter(|_| newest.message == mark.message) else {
            continue;
        };
        // Of a long answer the mark has a digest, and the thread has the answer if the council gave it.
        let whole = (newest.winner.into_iter())
            .chain(newest.members.into_iter().filter_map(|member| member.key))
            .find(|answer| shortened(answer).as_ref() == Some(&gold));
        let gold = match whole {
            Some(whole) => whole,
            None if is_shortened(&gold) => {
                passed_over.shortened += 1;
                continue;
            }
            None => gold,
        };
        found.push(MarkedQuestion {
            council: Council::of(&plan),
            at: thread.meta().created(),
            known: Known {
                id: format!("{}#{}", mark.thread, mark.message),
                text: plan.question,
                gold: Value::String(gold),
            },
        });
    }
    Ok((found, passed_over))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_request_does_not_make_a_way_expensive() {
        let spent = |tokens, certainty| Spent {
            calls: 1,
            tokens,
            certainty,
            ..Spent::default()
        };
        let exact = (2, spent(200, Certainty::Exact));
        let cost = |threads, more| {
            let answered = Answered {
                threads,
                spent: exact.1 + more,
                exact,
                ..Answered::default()
            };
            let cost = answered.cost();
            (cost.tokens, cost.certainty)
        };
        let bound = spent(4000, Certainty::AtMost);
        assert_eq!(cost(2, Spent::default()), (100.0, Certainty::Exact));
        assert_eq!(cost(4, bound), (100.0, Certainty::About));
        // Too few to speak for the others.
        assert_eq!(cost(5, bound), (840.0, Certainty::AtMost));
    }

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
