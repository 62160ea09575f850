//! A debate of a fast and a rigorous member.

use crate::council::{Opened, Started, continued, entered, held_event};
use crate::error::UserError;
use crate::kingdom::Kingdom;
use crate::request::{Question, Terms, ThreadChoice};
use crate::setup::demo_answers;
use crate::{output, ready, seating, secrets, trust};
use kd_core::config::Config;
use kd_core::duet::seats::{DuetRequest, Seats, seat};
use kd_core::duet::{DuetLimits, OpenDuet};
use kd_core::seating::SeatRequest;
use kd_core::secrets::Secrets;
use kd_core::{Address, Duet, Op, Roster};
use kd_engine::Opening;
use kd_store::Thread;

/// A question to a fast and a rigorous member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Think {
    /// The member that answers first.
    pub fast: Option<String>,
    /// The member that checks.
    pub rigorous: Option<String>,
    /// The member that answers if they do not agree.
    pub arbiter: Option<String>,
    /// The options with which the members are asked; the member list in it is not used.
    pub all: SeatRequest,
    /// Maximum messages between the two.
    pub messages_max: Option<u32>,
    /// Messages before which an answer is checked by the other member.
    pub messages_min: Option<u32>,
    /// Maximum tokens of all prompts and replies.
    pub tokens_max: Option<u64>,
    /// Seconds after which the answer is asked for.
    pub secs_max: Option<u64>,
    /// The thread.
    pub thread: ThreadChoice,
    /// Limits, privacy, downloads.
    pub terms: Terms,
}

/// Two members that are seated for a question.
pub struct Debate<'k> {
    kingdom: &'k Kingdom,
    think: Think,
    config: Config,
    old: Option<Thread>,
    seats: Seats,
}

/// A debate that can begin.
pub struct PreparedDebate<'k> {
    debate: Debate<'k>,
    question: Question,
    masked: Secrets,
}

impl Kingdom {
    /// Lets a fast and a rigorous member answer together. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If a member cannot answer, or the thread cannot be opened.
    pub fn think(&self, think: Think, question: impl Into<Question>) -> Result<Started, UserError> {
        self.debate(think)?.asked(question.into())?.start()
    }

    /// Seats the members of a debate for a question that is not known yet.
    ///
    /// # Errors
    /// If a member does not exist or is held back, or the thread cannot be read.
    pub fn debate(&self, think: Think) -> Result<Debate<'_>, UserError> {
        let mut config = self.config().clone();
        think.terms.lay_over(&mut config);
        let old = continued(&think.thread, self)?;
        let named = [&think.fast, &think.rigorous, &think.arbiter];
        let named: Vec<String> = named.into_iter().flatten().cloned().collect();
        trust::check(self.project(), trust::Named::only(&named), self.env())?;
        let request = DuetRequest {
            fast: think.fast.clone(),
            rigorous: think.rigorous.clone(),
            arbiter: think.arbiter.clone(),
            all: think.all.clone(),
        };
        let seats = seat(&config, &request).map_err(|e| {
            UserError::from(e).next(
                "`kd think --fast … --rigorous …` with these names, or `kd init` to set up others",
            )
        })?;
        Ok(Debate {
            kingdom: self,
            think,
            config,
            old,
            seats,
        })
    }
}

impl<'k> Debate<'k> {
    /// The fast member, the rigorous member, and the member that answers if these two do not agree.
    #[cfg(feature = "forum")]
    pub(crate) fn members(&self) -> [&kd_core::Member; 3] {
        let Seats {
            fast,
            rigorous,
            arbiter,
        } = &self.seats;
        [fast, rigorous, arbiter.as_ref().unwrap_or(rigorous)]
    }

    /// Returns the settings of the question.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the members.
    pub fn roster(&self) -> Roster {
        self.seats.roster()
    }

    /// Prepares a question: masks secrets, and checks that the members can answer. Nothing is written yet.
    ///
    /// # Errors
    /// If a member cannot answer.
    pub fn asked(self, mut question: Question) -> Result<PreparedDebate<'k>, UserError> {
        let env = self.kingdom.env();
        let masked = secrets::of(&self.config, self.think.terms.allow_secrets, env);
        secrets::mask(&masked, &mut question, env);
        for notice in &self.kingdom.loaded().notices {
            env.note(notice);
        }
        let roster = self.seats.roster();
        let miss = crate::seating::near_miss_in(&question, &self.config, roster.members());
        if let Some(miss) = miss {
            env.note(miss);
        }
        seating::note_readers(&roster, env);
        ready::make_ready(&self.config, self.think.terms.offline, env, &roster)?;
        Ok(PreparedDebate {
            debate: self,
            question,
            masked,
        })
    }
}

impl PreparedDebate<'_> {
    /// Whether the built-in model answers for everyone because nothing is configured.
    pub fn is_built_in(&self) -> bool {
        self.debate.seats.built_in() && demo_answers(&self.debate.config, &[])
    }

    /// Opens the session. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the thread cannot be created or opened.
    pub fn start(self) -> Result<Started, UserError> {
        let Self {
            debate:
                Debate {
                    kingdom,
                    think,
                    config,
                    old,
                    seats,
                },
            question,
            masked,
        } = self;
        let (layout, thread, is_new) = entered(&think.thread, old, &seats.roster(), kingdom.env())?;
        let limits = DuetLimits::of(&config.think, &seats);
        let limits = DuetLimits {
            exchanges_max: think.messages_max.unwrap_or(limits.exchanges_max),
            exchanges_min: think.messages_min.unwrap_or(limits.exchanges_min),
            tokens_max: think.tokens_max.or(limits.tokens_max),
            seconds_max: think.secs_max.or(limits.seconds_max),
            ..limits
        };
        let mut opened = Opened::of(layout, &thread, is_new);
        let run = || -> Result<_, UserError> {
            let opening = opening(&config, seats, &thread, limits)?;
            let engine = kingdom
                .engine(&config, masked)
                .telling(held_event(kingdom, &[]))
                .formatting(output::shared(think.terms.output));
            kd_store::attachments::keep(thread.path(), &question.media)?;
            Ok(engine.run(thread, opening)?)
        };
        match run() {
            Ok(session) => {
                if think.thread.forks() {
                    opened.make_current();
                }
                let say = Op::Say {
                    body: question.text,
                    to: Address::All,
                };
                Ok(Started::new(session, say, opened))
            }
            Err(error) => {
                opened.discard_unsaid();
                Err(error)
            }
        }
    }
}

/// A debate that answers one question in a thread.
fn opening(
    config: &Config,
    seats: Seats,
    thread: &Thread,
    limits: DuetLimits,
) -> Result<Opening, UserError> {
    let roster = seats.roster();
    let (duet, opened) = Duet::open(OpenDuet {
        thread: thread.id().clone(),
        prompts: seating::prompts(config, &roster, &thread.meta().phase),
        history: thread.messages()?.messages,
        limits,
        seats,
    });
    let seated = roster.members().iter().chain(roster.chair()).cloned();
    Ok(Opening {
        id: thread.id().clone(),
        machine: Box::new(duet),
        opened,
        seats: seated.collect(),
    })
}
