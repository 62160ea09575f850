//! `/think`, `/deliberate` and `/resume` in a chat: prepares an aside for the conversation, from a question, from the
//! user's last one, or from the record of a deliberation that has not ended.

use crate::council::clock_seed;
use crate::deliberation;
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::resume::Unfinished;
use crate::{ready, seating};
use kd_core::attached::typed;
use kd_core::clean::clean_text;
use kd_core::config::Config;
use kd_core::conversation::How;
use kd_core::duet::DuetLimits;
use kd_core::duet::seats::among;
use kd_core::planner::{self, Brief};
use kd_core::prompt::PREAMBLE;
use kd_core::seating::{LOCAL, SeatRequest};
use kd_core::slash::Way;
use kd_core::{Aside, Machine, MachineId, Member, OpenDuet, Roster, SeatName};
use kd_store::config::Project;
use kd_store::{Layout, Thread, memory};

/// Plans asides: holds the data from which an aside is built.
pub struct AsidePlanner<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The settings of the folder, and which of them are held back.
    pub project: &'a Project,
    /// The place where the thread is stored.
    pub layout: &'a Layout,
    /// The thread.
    pub thread: &'a Thread,
    /// The members of the conversation.
    pub roster: &'a Roster,
    /// Members that are not asked.
    pub muted: &'a [SeatName],
    /// The members, and the options with which they are asked.
    pub request: SeatRequest,
    /// Download nothing.
    pub offline: bool,
}

impl AsidePlanner<'_> {
    /// Builds an aside that answers this question, or the user's last one, or that finishes a deliberation.
    ///
    /// # Errors
    /// If there is no question or no deliberation to finish, or a member cannot answer.
    pub fn aside(&self, way: Way, question: Option<String>, env: &Env) -> Result<Aside, UserError> {
        let aside = match way {
            Way::Think => self.think(self.question(question)?, &self.free()?)?,
            Way::Deliberate => self.deliberate(self.question(question)?, &self.free()?, env)?,
            Way::Resume => self.resume()?,
        };
        let roster = Roster::new(aside.seats(), None);
        ready::make_ready(self.config, self.offline, env, &roster)?;
        Ok(aside)
    }

    /// Returns the members that are not muted.
    fn free(&self) -> Result<Vec<&Member>, UserError> {
        let free: Vec<&Member> = self
            .roster
            .members()
            .iter()
            .filter(|m| !self.muted.contains(&m.name))
            .collect();
        match free.is_empty() {
            true => Err(UserError::usage("every member is muted: unmute one first")),
            false => Ok(free),
        }
    }

    /// Returns the question, or the user's last one.
    fn question(&self, asked: Option<String>) -> Result<String, UserError> {
        if let Some(question) = asked {
            return Ok(question);
        }
        let messages = self.thread.messages()?.messages;
        let last = messages
            .iter()
            .rev()
            .find(|m| m.is_king() && !m.is_choice(&messages));
        last.map(|m| m.body.to_string()).ok_or_else(|| {
            UserError::usage("there is no question yet: write one after the command")
        })
    }

    fn resume(&self) -> Result<Aside, UserError> {
        let model = self.request.model.as_deref();
        let found = Unfinished::of(
            self.thread,
            self.project,
            self.config,
            model,
            self.request.tools,
        )?;
        let (resumed, lease) = found.resume(self.thread, self.config)?;
        if resumed.machine.id() == MachineId::default() {
            let id = clean_text(&self.thread.id().0);
            return Err(UserError::new(
                ErrorKind::Refused,
                format!("the deliberation of {id} was begun outside of a chat"),
            )
            .next(format!("kd deliberate --resume {id} finishes it")));
        }
        Ok(Aside {
            question: resumed.machine.plan().question.clone(),
            how: How::Resume(Box::new(resumed)),
            notices: Vec::new(),
            guard: Some(Box::new(lease)),
        })
    }

    fn think(&self, question: String, free: &[&Member]) -> Result<Aside, UserError> {
        let seats = among(self.config, &self.request, free)?;
        let roster = seats.roster();
        let open = OpenDuet {
            thread: self.thread.id().clone(),
            prompts: seating::prompts(self.config, &roster, &self.thread.meta().phase),
            history: Vec::new(),
            limits: DuetLimits::of(&self.config.think, &seats),
            seats,
        };
        Ok(Aside {
            question,
            how: How::Think(Box::new(open)),
            notices: Vec::new(),
            guard: None,
        })
    }

    fn deliberate(
        &self,
        question: String,
        free: &[&Member],
        env: &Env,
    ) -> Result<Aside, UserError> {
        // A role of the built-in model is not an agent to which a planner could give a role.
        let known =
            |m: &&&Member| m.backend != LOCAL || self.config.agents.contains_key(m.name.as_str());
        let names: Vec<String> = free
            .iter()
            .filter(known)
            .map(|m| m.name.to_string())
            .collect();
        let mut config = self.config.clone();
        if names.len() < self.roster.members().len() {
            // A muted member cannot be the chair either.
            config.council.members.clone_from(&names);
            let muted = |name: &String| self.muted.iter().any(|m| m.as_str() == name);
            config.council.chair = config.council.chair.filter(|name| !muted(name));
        }
        let long = self.config.deliberation.memory.long_term;
        let remembered = match long {
            true => memory::read(self.layout)?.background(),
            false => String::new(),
        };
        let (marks, marks_fault) =
            deliberation::marks(env, planner::kind_of(&config.deliberation, &question));
        let brief = Brief {
            question: &question,
            // What attached files say does not choose how to answer.
            asked: typed(&question),
            members: &names,
            all_sit: false,
            // Integers that every JSON parser represents exactly.
            seed: self.request.seed.unwrap_or_else(clock_seed) & ((1 << 53) - 1),
            seeded: self.request.seed.is_some(),
            personas: memory::roles(self.layout)?,
            background: remembered,
            model: self.request.model.clone(),
            temperature: self.request.temperature,
            timeout: self.request.timeout,
            tools: self.request.tools,
            marks,
            required: None,
            marks_fault,
        };
        let mut planned = planner::plan(&config, &brief)?;
        if planner::wants_model(config.deliberation.meta.planning_mode, &question) {
            planned
                .notices
                .push("planned by rules; `kd deliberate` lets a model plan".to_owned());
        }
        let preamble = config.council.preamble.clone();
        Ok(Aside {
            question,
            how: How::Deliberate {
                plan: Box::new(planned.plan),
                preamble: preamble.unwrap_or_else(|| PREAMBLE.trim().to_owned()),
            },
            notices: planned.notices,
            guard: None,
        })
    }
}
