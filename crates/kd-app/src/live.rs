//! Does a council pay, for the user's own questions? Asks the same questions, whose right answers are known, of the
//! council, of its best member alone, and of that member sampled at the cost of the council.
//!
//! Each way is a batch, so that an interrupted run can be continued. All ways share one budget. Answers are judged as
//! `kd mark` judges them, and compared question by question.

mod answers;

use answers::places;
pub use answers::{Answered, Cost, Council, CouncilMember, PassedOver, columns, marked, samples};
pub(crate) use answers::{
    Bill, MarkedQuestion, all_marked, all_places, judged, read_rows, thread_of,
};

use crate::batch::{BatchRequest, Batching, How, of};
use crate::error::{ErrorKind, UserError};
use crate::kingdom::Kingdom;
use crate::request::Limits;
use crate::{Deliberate, seating};
use answers::SAMPLES_MAX;
use kd_core::batch::{Estimate, Question as BatchQuestion, Row};
use kd_core::clean::clean_line;
use kd_core::deliberation::{can_be_right, model_of};
use kd_core::planner;
use kd_core::seating::SeatRequest;
use kd_core::spending::Spent;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

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

/// The question, and the limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRequest {
    /// The members of the council; empty means as configured.
    pub members: Vec<String>,
    /// The member that is asked alone; `None` lets marks and settings say which is best.
    pub best: Option<String>,
    /// The limits on the spending of all ways together.
    pub limits: Limits,
    /// How many questions are asked at the same time.
    pub concurrency: usize,
    /// The name of the questions, for lists.
    pub source: String,
    /// The command that continues it, for lists.
    pub command: String,
    /// Download nothing.
    pub offline: bool,
    /// Use no answers that are kept from earlier.
    pub fresh: bool,
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
            .map(|member| (member.name.to_string(), model_of(member).into_owned()))
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
        let now = self.env().now()?;
        let sums = kd_sql::marks::of_kind(&self.env().user_dirs(), "", now)?.sums;
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

    /// Estimates the spending of each way. Before the others are asked, samples are estimated by the calls of the
    /// council.
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

    /// Estimates what the two other ways spend beside an answer of the council.
    pub(crate) fn estimate_beside(&mut self, council: Cost) -> Result<Estimate, UserError> {
        let each = |sum: f64| sum / council.calls.max(1.0);
        let member = Cost {
            calls: 1.0,
            tokens: each(council.tokens),
            usd: council.usd.map(each),
            ..council
        };
        self.set_samples(samples(council, member));
        let mut all = self.batching(Way::Member)?.estimate()?;
        let more = self.batching(Way::Samples)?.estimate()?;
        all.calls.high += more.calls.high;
        all.tokens.high += more.tokens.high;
        if let (Some(all), Some(more)) = (&mut all.usd, more.usd) {
            all.high += more.high;
        }
        all.usd = all.usd.filter(|_| more.usd.is_some());
        Ok(all)
    }

    /// The limits on the spending of all ways together.
    pub(crate) fn limits(&self) -> Limits {
        self.request.limits
    }

    /// Sets the limits on the spending of all ways together.
    pub(crate) fn limit_usd(&mut self, usd: f64) {
        self.request.limits.usd = Some(usd);
    }

    /// The amount spent by ways that have finished.
    pub fn spent(&self) -> Spent {
        self.spent
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

    /// Returns the batch of a way, within the remaining budget.
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
            fresh: self.request.fresh,
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

    /// Returns the remaining budget.
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
        let fell = layout.verdicts()?;
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        if let Some(batches) = of(kingdom.env())? {
            read_rows(&batches, batch, &mut rows)?;
        }
        let mut found = Answered::of_batch(batch);
        for known in &self.known {
            let thread = rows.get(&known.id).and_then(thread_of);
            found.add(way, known, judged(known, thread, (&layout, &places, &fell)));
        }
        Ok(found)
    }
}
