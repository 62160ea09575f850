//! A deliberation: plans, and runs the plan. A [`Report`](kd_core::deliberation::report::Report) folds what happens then.

use crate::council::{Opened, Started, clock_seed, continued, entered, held_event, new_thread};
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::host::PlanChoice;
use crate::kingdom::Kingdom;
use crate::output::{self, OutputSchema};
use crate::request::{Question, ThreadChoice};
use crate::{ready, trust};
use kd_core::clean::clean_line;
use kd_core::config::Config;
use kd_core::deliberation::{BadChange, Deliberation, Plan, Seat, protocols};
use kd_core::media::Attachment;
use kd_core::output::Schema;
use kd_core::planner::{
    self, Brief, OwnedBrief, PlanError, Planned, Planner, PlannerBrief, presets,
};
use kd_core::prompt::PREAMBLE;
use kd_core::secrets::Secrets;
use kd_core::{Op, Roster};
use kd_engine::{Engine, Opening, Session};
use kd_eval::marks::{Evidence, Published};
use kd_store::{Layout, Thread, memory};
use std::sync::Arc;

/// Maximum characters of a name in an error.
const NAME_CHARS_MAX: usize = 64;

/// A question for a deliberation planned by rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deliberate {
    /// The agents to choose members from; empty means as configured.
    pub members: Vec<String>,
    /// The thread.
    pub thread: ThreadChoice,
    /// The preset and the protocol.
    pub plan: PlanChoice,
    /// Download nothing.
    pub offline: bool,
    /// The JSON schema into which the answer is put too.
    pub output: Option<OutputSchema>,
}

impl Kingdom {
    /// Plans a council by rules and lets it deliberate. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If there is no plan within the limits, a member cannot answer, or the thread cannot be opened.
    pub fn deliberate(
        &self,
        deliberate: Deliberate,
        question: impl Into<Question>,
    ) -> Result<Started, UserError> {
        let Question {
            mut text, media, ..
        } = question.into();
        let env = self.env();
        let secrets = crate::secrets::of(self.config(), false, env);
        crate::secrets::tell(&secrets.mask_in_place(&mut text), env);
        let old = continued(&deliberate.thread, self)?;
        let members = &deliberate.members;
        trust::check(self.project(), trust::Named::only(members), env)?;
        let layout = self.layout();
        let mut config = self.config().clone();
        deliberate.plan.lay_over(&mut config)?;
        let mut planned = plan(&config, layout.as_ref(), &text, members, env)?;
        planned
            .notices
            .extend(trust::texts_line(self.loaded(), layout.as_ref()));
        let roster = roster(&planned.plan);
        ready::make_ready(self.config(), deliberate.offline, env, &roster)?;
        let engine = self.engine(self.config(), secrets);
        planned.plan.output = schema_of(deliberate.output.as_ref());
        let engine = engine.formatting(output::shared(deliberate.output));
        let place = entered(&deliberate.thread, old, &roster, env)?;
        let mut started = start(self, self.config(), &engine, planned, place, &media, None)?;
        if deliberate.thread.forks() {
            started.opened.make_current();
        }
        Ok(started)
    }

    /// Begins to plan a deliberation of a question, with these settings and secrets.
    ///
    /// # Errors
    /// If the memory of the project cannot be read.
    pub fn planning(
        &self,
        config: Config,
        question: Question,
        seed: Option<u64>,
        masked: Secrets,
    ) -> Result<Planning<'_>, UserError> {
        if let Some(miss) = crate::seating::near_miss_in(&question, &config, &[]) {
            self.env().note(miss);
        }
        let Question { text, asked, media } = question;
        let brief = brief(
            &config,
            self.layout().as_ref(),
            text,
            asked,
            seed,
            self.env(),
        )?;
        // One account for the planning and the deliberation.
        let engine = self.engine(&config, masked);
        Ok(Planning {
            media,
            kingdom: self,
            config,
            engine,
            brief,
            output: None,
        })
    }
}

impl PlanChoice {
    /// Lays the choices over the settings.
    ///
    /// # Errors
    /// If there is no such preset or protocol.
    fn lay_over(&self, config: &mut Config) -> Result<(), UserError> {
        let unknown = |kind: &str, name: &str, known: &[&str]| {
            let what = format!("there is no {kind} `{}`", clean_line(name, NAME_CHARS_MAX));
            UserError::usage(what).next(format!("known are {}", known.join(", ")))
        };
        if let Some(name) = &self.preset {
            if presets::find(name).is_none() {
                let known: Vec<&str> = presets::PRESETS.iter().map(|p| p.name).collect();
                return Err(unknown("preset", name, &known));
            }
            config.deliberation.preset = Some(name.clone());
        }
        if let Some(name) = &self.protocol {
            if !protocols::CHOICES.contains(&name.as_str()) {
                return Err(unknown("protocol", name, protocols::CHOICES));
            }
            config.deliberation.protocol.clone_from(name);
        }
        Ok(())
    }
}

/// A deliberation that is being planned.
pub struct Planning<'k> {
    kingdom: &'k Kingdom,
    config: Config,
    engine: Engine,
    /// Pictures and documents that the question names.
    media: Vec<Attachment>,
    /// The planner's input: a host may restrict it.
    pub brief: OwnedBrief,
    /// The JSON schema into which the answer is put too.
    pub output: Option<OutputSchema>,
}

/// A model that plans, in the thread in which the deliberation will run.
pub struct ModelPlanning {
    /// The member that plans.
    pub seat: Seat,
    about: PlannerBrief,
    engine: Engine,
    thread: Thread,
    again: Thread,
    layout: Layout,
}

/// The thread in which a deliberation continues, because a model has planned in it or the council has asked back.
pub struct PlannedIn {
    layout: Layout,
    thread: Thread,
}

impl PlannedIn {
    /// Goes on in the thread of a deliberation that asked back.
    ///
    /// # Errors
    /// If the thread cannot be opened.
    pub fn after(opened: &Opened) -> Result<Self, UserError> {
        Ok(Self {
            layout: opened.layout.clone(),
            thread: Thread::open_folder(&opened.folder)?,
        })
    }
}

impl Planning<'_> {
    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether a model should plan this question.
    pub fn wants_model(&self) -> bool {
        let mode = self.config.deliberation.meta.planning_mode;
        planner::wants_model(mode, &self.brief.asked)
            && self.config.deliberation.council.members.is_none()
    }

    /// Plans by rules.
    ///
    /// # Errors
    /// If there is no plan within the limits.
    pub fn by_rules(&self) -> Result<Planned, UserError> {
        Ok(planner::plan(&self.config, &self.brief.brief())?)
    }

    /// Prepares a model to plan. With `offline` nothing is downloaded.
    ///
    /// # Errors
    /// If the model or a member cannot answer.
    pub fn by_model(&self, offline: bool) -> Result<ModelPlanning, UserError> {
        let (seat, agents) = planner::planner_seat(&self.config, &self.brief.brief())?;
        let draft = self.by_rules()?;
        self.make_ready(&draft.plan, offline)?;
        ready::stay_here(&self.config, self.kingdom.env(), [&seat.member])?;
        let (layout, thread) = new_thread(&roster(&draft.plan), self.kingdom.env())?;
        // The planner sees them before the question is saved.
        kd_store::attachments::keep(thread.path(), &self.media)?;
        Ok(ModelPlanning {
            about: PlannerBrief {
                config: self.config.clone(),
                brief: self.brief.clone(),
                seat: seat.clone(),
                agents,
            },
            again: Thread::open_folder(thread.path())?,
            engine: self.engine.clone(),
            seat,
            thread,
            layout,
        })
    }

    /// Checks that the members of a plan can answer, and downloads the models of built-in ones.
    ///
    /// # Errors
    /// If they cannot.
    pub fn make_ready(&self, plan: &Plan, offline: bool) -> Result<(), UserError> {
        ready::make_ready(&self.config, offline, self.kingdom.env(), &roster(plan))
    }

    /// Opens the session of a plan. Uses a new thread, unless a model has planned in a thread already. Must be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// If the thread cannot be created or opened.
    pub fn start(
        &self,
        mut planned: Planned,
        planned_in: Option<PlannedIn>,
    ) -> Result<Started, UserError> {
        let place = match planned_in {
            Some(planned_in) => (planned_in.layout, planned_in.thread, false),
            None => {
                let (layout, thread) = new_thread(&roster(&planned.plan), self.kingdom.env())?;
                (layout, thread, true)
            }
        };
        let required = self.brief.rest.required;
        planned.plan.output = schema_of(self.output.as_ref());
        let schema = output::shared(self.output.clone());
        let engine = self.engine.clone().formatting(schema);
        let (kingdom, media) = (self.kingdom, &self.media);
        start(
            kingdom,
            &self.config,
            &engine,
            planned,
            place,
            media,
            required,
        )
    }
}

impl ModelPlanning {
    /// Lets the model plan. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the session cannot be opened.
    pub fn start(self) -> Result<(Session, PlannedIn), UserError> {
        let (machine, opened) = Planner::open(self.about);
        let opening = Opening {
            id: self.thread.id().clone(),
            machine: Box::new(machine),
            opened,
            seats: vec![self.seat.member],
        };
        let session = self.engine.run(self.thread, opening)?;
        let planned_in = PlannedIn {
            layout: self.layout,
            thread: self.again,
        };
        Ok((session, planned_in))
    }
}

/// Returns a schema as plans record it.
fn schema_of(output: Option<&OutputSchema>) -> Option<serde_json::Value> {
    output.map(|schema| schema.json().clone())
}

fn start(
    kingdom: &Kingdom,
    config: &Config,
    engine: &Engine,
    planned: Planned,
    (layout, thread, is_new): (Layout, Thread, bool),
    media: &[Attachment],
    required: Option<f64>,
) -> Result<Started, UserError> {
    let say = say(&planned.plan);
    let engine = engine.clone().telling(held_event(kingdom, &[]));
    let engine = kingdom.concluding(engine, config, &layout, required);
    let opened = Opened::of(layout, &thread, is_new);
    let run = || -> Result<_, UserError> {
        kd_store::attachments::keep(thread.path(), media)?;
        let opening = opening(config, planned, &thread)?;
        Ok(engine.run(thread, opening)?)
    };
    match run() {
        Ok(session) => Ok(Started::new(session, say, opened)),
        Err(error) => {
            opened.discard_unsaid();
            Err(error)
        }
    }
}

/// Returns the planner's input, including this folder's data: the user's roles and, if enabled, long-term memory.
/// `layout` is `None` if there is no project yet.
pub(crate) fn brief(
    config: &Config,
    layout: Option<&Layout>,
    question: String,
    asked: String,
    seed: Option<u64>,
    env: &Env,
) -> Result<OwnedBrief, UserError> {
    let remembered = match (layout, config.deliberation.memory.long_term) {
        (Some(layout), true) => memory::read(layout)?,
        _ => Default::default(),
    };
    let (marks, marks_fault) = match config.serves_others {
        // The reasons and the votes of a plan tell what was marked.
        true => (unmarked(), None),
        false => marks(env, planner::kind_of(&config.deliberation, &asked)),
    };
    let own = seed.or_else(|| env.seed_of(&question));
    Ok(OwnedBrief {
        question,
        asked,
        members: Vec::new(),
        rest: Brief {
            seed: own.unwrap_or_else(clock_seed),
            seeded: seed.is_some(),
            personas: layout.map(memory::roles).transpose()?.unwrap_or_default(),
            background: remembered.background(),
            marks,
            marks_fault,
            ..Brief::default()
        },
    })
}

/// Returns what the user's marks say about a kind of question, or why they are not used: an unreadable file must not
/// prevent asking.
#[cfg(feature = "forum")]
pub fn marks(env: &Env, kind: &str) -> (Arc<Evidence>, Option<String>) {
    let now = match env.now() {
        Ok(now) => now,
        Err(error) => return (unmarked(), Some(error.to_string())),
    };
    match kd_sql::marks::of_kind(&env.user_dirs(), kind, now) {
        Ok(marks) => (marks.into(), None),
        Err(error) => (unmarked(), Some(error.to_string())),
    }
}

/// Without databases there are no marks.
#[cfg(not(feature = "forum"))]
pub(crate) fn marks(_env: &Env, _kind: &str) -> (Arc<Evidence>, Option<String>) {
    (unmarked(), None)
}

/// Returns the published results of models, without any marks.
fn unmarked() -> Arc<Evidence> {
    Evidence::default().with(Published::all()).into()
}

/// Returns a text that changes with the user's marks; empty without marks.
#[cfg(feature = "forum")]
pub(crate) fn state_of_marks(env: &Env) -> String {
    kd_sql::marks::state(&env.user_dirs()).unwrap_or_default()
}

/// Plans by rules, where a planner's work could not be shown. `members` are the candidates; empty means as configured.
pub(crate) fn plan(
    config: &Config,
    layout: Option<&Layout>,
    question: &str,
    members: &[String],
    env: &Env,
) -> Result<Planned, UserError> {
    let mut brief = brief(config, layout, question.into(), question.into(), None, env)?;
    brief.members = members.to_vec();
    brief.rest.all_sit = !members.is_empty();
    let mut planned = planner::plan(config, &brief.brief())?;
    let mode = config.deliberation.meta.planning_mode;
    if planner::wants_model(mode, question) && config.deliberation.council.members.is_none() {
        let notice = "rules planned this council: members plan in `kd deliberate` only";
        planned.notices.push(notice.into());
    }
    Ok(planned)
}

/// Returns the machine that carries out a plan in a thread, with its members. It begins with [`say`].
pub(crate) fn opening(
    config: &Config,
    planned: Planned,
    thread: &Thread,
) -> Result<Opening, UserError> {
    let messages = u32::try_from(thread.messages()?.messages.len()).unwrap_or(u32::MAX);
    let Planned { plan, notices } = planned;
    let seats = plan.seats.iter().map(|s| s.member.clone()).collect();
    let preamble = config
        .council
        .preamble
        .clone()
        .unwrap_or_else(|| PREAMBLE.trim().to_owned());
    let (machine, opened) = Deliberation::open(plan, notices, preamble, messages);
    Ok(Opening {
        id: thread.id().clone(),
        machine: Box::new(machine),
        opened,
        seats,
    })
}

/// Returns the op that starts it: the plan's question.
pub(crate) fn say(plan: &Plan) -> Op {
    Op::Say {
        body: plan.question.clone(),
        to: kd_core::Address::All,
    }
}

/// Returns all members of a plan, for preparing their models.
pub(crate) fn roster(plan: &Plan) -> Roster {
    Roster::new(plan.seats.iter().map(|s| s.member.clone()).collect(), None)
}

impl From<BadChange> for UserError {
    fn from(bad: BadChange) -> Self {
        let kind = match &bad {
            BadChange::NoPlan => ErrorKind::NoPlan,
            BadChange::NoMember { .. } => ErrorKind::UnknownMember,
            BadChange::NobodyLeft => ErrorKind::NobodyLeft,
            BadChange::NoRule(_) => ErrorKind::UnknownRule,
            BadChange::BadWeight(_) => ErrorKind::Usage,
        };
        // Names come from the command line and from records.
        let line = |text: &str| clean_line(text, usize::MAX);
        UserError {
            next: bad.hint().as_deref().map(line),
            ..UserError::new(kind, line(&bad.to_string()))
        }
    }
}

impl From<PlanError> for UserError {
    fn from(error: PlanError) -> Self {
        let kind = match &error {
            PlanError::Seating(_) => ErrorKind::UnknownMember,
            PlanError::NoSeat { .. } => ErrorKind::CannotSeat,
            PlanError::TooLow { .. } => ErrorKind::Budget,
            PlanError::NoPrice { .. } => ErrorKind::NoPrice,
        };
        UserError::new(kind, error.to_string()).next(error.hint())
    }
}
