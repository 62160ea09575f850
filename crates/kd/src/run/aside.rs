//! `/think` and `/deliberate` in a chat: prepares an aside for the conversation, from a question or the user's last
//! one.

use super::ask::clock_seed;
use super::deliberate::opening;
use super::{model, seats};
use crate::error::Error;
use kd_core::config::Config;
use kd_core::conversation::How;
use kd_core::duet::DuetLimits;
use kd_core::duet::seats::among;
use kd_core::planner::{self, Brief};
use kd_core::prompt::PREAMBLE;
use kd_core::seating::{LOCAL, Wishes};
use kd_core::slash::Way;
use kd_core::{Aside, Member, OpenDuet, Roster, SeatName};
use kd_store::{Layout, Thread, memory};

/// What an aside is built from.
pub(super) struct Desk<'a> {
    pub(super) config: &'a Config,
    pub(super) layout: &'a Layout,
    pub(super) thread: &'a Thread,
    /// The members of the conversation.
    pub(super) roster: &'a Roster,
    pub(super) muted: &'a [SeatName],
    pub(super) wishes: Wishes,
    pub(super) offline: bool,
}

impl Desk<'_> {
    /// Builds an aside that answers this question, or the user's last one.
    pub(super) fn aside(
        &self,
        way: Way,
        question: Option<String>,
        quiet: bool,
    ) -> Result<Aside, Error> {
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
            return Err(Error::usage("every member is muted: unmute one first"));
        }
        let aside = match way {
            Way::Think => self.think(question, &free)?,
            Way::Deliberate => self.deliberate(question, &free)?,
        };
        let roster = Roster::new(aside.seats(), None);
        model::make_ready(self.config, self.offline, quiet, &roster)?;
        Ok(aside)
    }

    fn last_question(&self) -> Result<String, Error> {
        let messages = self.thread.messages()?.messages;
        let last = messages.iter().rev().find(|m| m.is_king());
        last.map(|m| m.body.to_string())
            .ok_or_else(|| Error::usage("there is no question yet: write one after the command"))
    }

    fn think(&self, question: String, free: &[&Member]) -> Result<Aside, Error> {
        let seats = among(self.config, &self.wishes, free)?;
        let roster = seats.roster();
        let open = OpenDuet {
            thread: self.thread.id().clone(),
            prompts: seats::prompts(self.config, &roster, &self.thread.meta().phase),
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

    fn deliberate(&self, question: String, free: &[&Member]) -> Result<Aside, Error> {
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
        let (marks, marks_fault) = opening::marks();
        let brief = Brief {
            question: &question,
            asked: &question,
            members: &names,
            all_sit: false,
            // Integers that every JSON parser represents exactly.
            seed: self.wishes.seed.unwrap_or_else(clock_seed) & ((1 << 53) - 1),
            seeded: self.wishes.seed.is_some(),
            personas: memory::roles(self.layout)?,
            background: remembered,
            model: self.wishes.model.clone(),
            temperature: self.wishes.temperature,
            timeout: self.wishes.timeout,
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
