//! `/think` and `/deliberate` in a chat: prepares an aside for the conversation, from a question or the user's last
//! one.

use crate::council::clock_seed;
use crate::deliberation;
use crate::env::Env;
use crate::error::UserError;
use crate::{ready, seating};
use kd_core::config::Config;
use kd_core::conversation::How;
use kd_core::duet::DuetLimits;
use kd_core::duet::seats::among;
use kd_core::planner::{self, Brief};
use kd_core::prompt::PREAMBLE;
use kd_core::seating::{LOCAL, SeatRequest};
use kd_core::slash::Way;
use kd_core::{Aside, Member, OpenDuet, Roster, SeatName};
use kd_store::{Layout, Thread, memory};

/// Plans asides: holds the data from which an aside is built.
pub struct AsidePlanner<'a> {
    /// The settings.
    pub config: &'a Config,
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
    /// Builds an aside that answers this question, or the user's last one.
    ///
    /// # Errors
    /// If there is no question, or a member cannot answer.
    pub fn aside(&self, way: Way, question: Option<String>, env: &Env) -> Result<Aside, UserError> {
        let question = match question {
            Some(question) => question,
            None => self.last_question()?,
        };
        let free: Vec<&Member> = self
            .roster
            .members()
            .iter()
            .filter(|m| !self.muted.contains(&m.name))
            .collect();
        if free.is_empty() {
            return Err(UserError::usage("every member is muted: unmute one first"));
        }
        let aside = match way {
            Way::Think => self.think(question, &free)?,
            Way::Deliberate => self.deliberate(question, &free, env)?,
        };
        let roster = Roster::new(aside.seats(), None);
        ready::make_ready(self.config, self.offline, env, &roster)?;
        Ok(aside)
    }

    fn last_question(&self) -> Result<String, UserError> {
        let messages = self.thread.messages()?.messages;
        let last = messages.iter().rev().find(|m| m.is_king());
        last.map(|m| m.body.to_string()).ok_or_else(|| {
            UserError::usage("there is no question yet: write one after the command")
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
        let (marks, marks_fault) = deliberation::marks(env);
        let brief = Brief {
            question: &question,
            asked: &question,
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
            marks,
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
        })
    }
}
