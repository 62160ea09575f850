//! Planning by a model: a fast member answers with a JSON plan. The reply is checked against existing names; after one
//! failed repair, the rules plan and the user is notified.

use super::{Brief, Choice, PlanError, Planned, plan, plan_with, rules};
use crate::clean::clean_line;
use crate::config::{Config, MemberPlan};
use crate::deliberation::plan::{Complexity, PlanningMode};
use crate::deliberation::{Fact, Seat};
use crate::deliberation::{json_bytes, wire_bytes};
use crate::event::{Event, Outcome, Purpose};
use crate::failure::{Failure, FailureKind};
use crate::hearing::Hearing;
use crate::ids::{SeatName, TurnId};
use crate::machine::{Command, Effects, Input, Machine};
use crate::op::Op;
use crate::request::{Delta, Prompt, Request};
use crate::roles;
use crate::spending::{Ceiling, Spent};
use crate::usage::Usage;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The planner's prompt.
const SYSTEM: &str = "You are a council planning assistant. Analyze the question and decide the optimal council.\nConsider: the question's complexity (simple fact or complex reasoning), its domain, whether several perspectives are needed, whether iterative refinement would help.";
/// The voting rules that the planner may choose.
const METHODS: [&str; 4] = ["majority", "confidence", "weighted", "ranked-choice"];
/// Maximum attempts: one, and another if the plan is unusable.
const ATTEMPTS_MAX: u32 = 2;
/// Maximum tokens of a plan.
const PLAN_TOKENS: u32 = 900;
/// Maximum bytes of a plan.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Returns the plan schema, restricted to existing models and roles.
pub fn schema(agents: &[String]) -> Value {
    let role_names: Vec<&str> = roles::ROLES.iter().map(|r| r.name).collect();
    json!({"type": "object", "properties": {
        "complexity": {"enum": ["simple", "moderate", "complex", "expert"]},
        "domain": {"enum": ["general", "technical", "creative", "ethical", "factual"]},
        "councilSize": {"type": "integer", "minimum": 3, "maximum": 9},
        "roles": {"type": "array", "minItems": 3, "maxItems": 9, "items": {"type": "object", "properties": {
            "role": {"enum": role_names},
            "model": {"enum": agents},
            "persona": {"type": "string", "maxLength": 40},
        }, "required": ["role", "model", "persona"], "additionalProperties": false}},
        "allowIterations": {"type": "boolean"},
        "maxIterations": {"type": "integer", "minimum": 1, "maximum": 5},
        "votingMethod": {"enum": METHODS},
        "reasoning": {"type": "string", "maxLength": 200},
    }, "required": ["complexity", "domain", "councilSize", "roles", "allowIterations", "maxIterations", "votingMethod", "reasoning"],
    "additionalProperties": false})
}

/// The input of the planner's state machine.
#[derive(Clone, Debug)]
pub struct PlannerBrief {
    /// The settings.
    pub config: Config,
    /// The input of the plan.
    pub brief: OwnedBrief,
    /// The member that plans.
    pub seat: Seat,
    /// The agents it may choose.
    pub agents: Vec<String>,
}

/// An owned [`Brief`].
#[derive(Clone, Debug, Default)]
pub struct OwnedBrief {
    /// The whole question.
    pub question: String,
    /// The question without piped input.
    pub asked: String,
    /// The available members.
    pub members: Vec<String>,
    /// The rest.
    pub rest: Brief<'static>,
}

impl OwnedBrief {
    /// Borrows it for the planning functions.
    pub fn brief(&self) -> Brief<'_> {
        Brief {
            question: &self.question,
            asked: &self.asked,
            members: &self.members,
            ..self.rest.clone()
        }
    }
}

/// The state machine that asks a member for a plan, and again if it is unusable.
#[derive(Debug)]
pub struct Planner {
    about: Box<PlannerBrief>,
    attempts: u32,
    text: String,
    ear: Hearing,
    usage: Usage,
    /// Planning costs, deducted from the limits of the deliberation.
    spent: Spent,
    /// The worst case of the open request.
    reserved: Spent,
    done: Option<Result<Planned, PlanError>>,
}

impl Planner {
    /// Creates a planner and returns its first effects.
    pub fn open(about: PlannerBrief) -> (Self, Effects) {
        let mut planner = Self {
            about: Box::new(about),
            attempts: 0,
            text: String::new(),
            ear: Hearing::default(),
            usage: Usage::default(),
            spent: Spent::default(),
            reserved: Spent::default(),
            done: None,
        };
        let mut fx = Effects {
            events: vec![Event::ThreadOpened {
                members: vec![planner.about.seat.name().clone()],
                messages: 0,
            }],
            commands: Vec::new(),
        };
        planner.ask(None, &mut fx);
        (planner, fx)
    }

    fn ask(&mut self, wrong: Option<&str>, fx: &mut Effects) {
        self.attempts += 1;
        self.text.clear();
        self.ear = Hearing::default();
        let turn = TurnId::new(self.attempts);
        let member = &self.about.seat.member;
        let schema = schema(&self.about.agents);
        let roles: Vec<String> = roles::ROLES
            .iter()
            .map(|r| format!("{} ({})", r.name, r.title))
            .collect();
        let repair = wrong
            .map(|why| format!(" Your plan could not be used: {why}. Answer once more."))
            .unwrap_or_default();
        let prompt = Prompt {
            rules: SYSTEM.to_owned(),
            history: format!("Question to analyze:\n\n{}", self.about.brief.asked).into(),
            turn: format!(
                "---\nRoles: {}. Models: {}. Plan the council: one entry of \"roles\" for each seat, one of them synthesizer.{repair} Reply with JSON only.",
                roles.join(", "),
                self.about.agents.join(", ")
            ),
            ..Prompt::default()
        };
        let mut sampling = member.sampling.clone();
        sampling.temperature = Some(0.3);
        sampling.max_tokens = Some(PLAN_TOKENS);
        fx.events.push(Event::TurnQueued {
            turn,
            seat: member.name.clone(),
            purpose: Purpose::Plan,
            replaces: None,
            ahead: Vec::new(),
        });
        self.reserved = Spent::at_most(
            wire_bytes(&prompt) + 2 * json_bytes(&schema.to_string()),
            PLAN_TOKENS,
            self.about.seat.price,
        );
        fx.commands.push(Command::Ask {
            turn,
            request: Box::new(Request {
                attachments: Vec::new(),
                schema_of_user: false,
                reads: false,
                seat: member.name.clone(),
                prompt,
                sampling,
                schema: Some(schema),
                deadlines: member.deadlines,
                writable: false,
                tools: None,
            }),
        });
    }

    fn name(&self) -> SeatName {
        self.about.seat.name().clone()
    }

    fn replied(&mut self, fx: &mut Effects) {
        let text = std::mem::take(&mut self.text);
        fx.events.push(Event::TurnFinished {
            turn: TurnId::new(self.attempts),
            seat: self.name(),
            message: None,
            usage: None,
            tools: 0,
            thought: 0,
        });
        let reading = Reading {
            config: &self.about.config,
            agents: &self.about.agents,
            last: self.attempts >= ATTEMPTS_MAX,
        };
        match reading.choice(&text) {
            Ok(Chosen { choice, notices }) => {
                let made = plan_with(&self.about.config, &self.about.brief.brief(), &choice);
                self.end(made, notices, fx);
            }
            Err(why) if self.attempts < ATTEMPTS_MAX => {
                fx.events.push(Event::Noticed {
                    text: format!(
                        "{}'s plan could not be used ({why}): asking once more",
                        self.name()
                    ),
                });
                self.ask(Some(&why), fx);
            }
            Err(why) => self.fall_back(&why, fx),
        }
    }

    fn fall_back(&mut self, why: &str, fx: &mut Effects) {
        let made = plan(&self.about.config, &self.about.brief.brief());
        let notice = format!("{} could not plan ({why}): planning by rules", self.name());
        self.end(made, vec![notice], fx);
    }

    fn end(&mut self, made: Result<Planned, PlanError>, more: Vec<String>, fx: &mut Effects) {
        let spent = self.spent;
        let made = made.map(|mut planned| {
            planned.plan.limits.take(spent);
            planned.notices.splice(0..0, more);
            fx.events.push(Event::Deliberated {
                fact: Box::new(Fact::PlanMade {
                    plan: Box::new(planned.plan.clone()),
                    notices: planned.notices.clone(),
                }),
            });
            planned
        });
        if let Err(error) = &made {
            fx.events.push(Event::OpRefused {
                why: format!("{error}; {}", error.hint()),
            });
        }
        self.done = Some(made);
        fx.events.push(Event::FloorYielded {
            outcome: Outcome::Complete,
            usage: self.usage,
        });
    }
}

impl Machine for Planner {
    fn ceiling(&self) -> Ceiling {
        self.about.config.deliberation.ceiling()
    }

    fn step(&mut self, _now: Timestamp, input: Input) -> Effects {
        let mut fx = Effects::default();
        let open = TurnId::new(self.attempts);
        match input {
            _ if self.done.is_some() => {}
            Input::Delta { turn, mut delta } if turn == open => {
                self.ear.clean(&mut delta);
                match &delta {
                    // A longer text is not a plan.
                    Delta::Text { text } if self.text.len() + text.len() < TEXT_BYTES_MAX => {
                        self.text.push_str(text);
                    }
                    Delta::Retrying { .. } => self.text.clear(),
                    Delta::Finished { text, usage, .. } => {
                        if let Some(text) = text {
                            self.text.clone_from(text);
                        }
                        if let Some(usage) = usage {
                            self.usage.add(usage);
                        }
                        self.spent += match usage {
                            Some(usage) if usage.counts_tokens() => {
                                let price = self.about.seat.price;
                                Spent::of_turn(usage.repeats + 1, usage, price)
                            }
                            _ => self.reserved,
                        };
                        self.replied(&mut fx);
                        return fx;
                    }
                    _ => {}
                }
                fx.events.push(Event::TurnDelta { turn, delta });
            }
            Input::Failed { turn, mut failure } if turn == open => {
                failure.message = clean_line(&failure.message, 400);
                if let Some(used) = &failure.used {
                    self.usage.add(&used.usage);
                    let price = self.about.seat.price;
                    self.spent += Spent::of_turn(used.requests, &used.usage, price);
                }
                fx.events.push(Event::TurnFailed {
                    turn,
                    seat: self.name(),
                    failure: failure.clone(),
                    message: None,
                });
                self.fall_back(&failure.message, &mut fx);
            }
            Input::Op(Op::Interrupt) => {
                fx.commands.push(Command::Cancel { turn: open });
                let stopped = Failure::new(FailureKind::Cancelled, "stopped by the user");
                fx.events.push(Event::TurnFailed {
                    turn: open,
                    seat: self.name(),
                    failure: stopped,
                    message: None,
                });
                self.fall_back("it was stopped", &mut fx);
            }
            _ => {}
        }
        fx
    }
}

/// Parses a planner's reply: holds the valid names, and whether this is the last attempt.
struct Reading<'a> {
    config: &'a Config,
    /// The available agents.
    agents: &'a [String],
    /// Whether this is the last attempt: then a contradictory plan is corrected rather than refused.
    last: bool,
}

/// A choice, and the corrections to report to the user.
#[derive(Debug, PartialEq)]
struct Chosen {
    choice: Choice,
    notices: Vec<String>,
}

impl Reading<'_> {
    /// Parses the choice in a reply and checks it against existing names. Accepts every reply that matches the schema
    /// and does not contradict itself.
    fn choice(&self, text: &str) -> Result<Chosen, String> {
        let is_plan = |value: &Value| kd_reading::field(value, "roles").is_some();
        let (value, _) =
            kd_reading::object(text, is_plan).map_err(|_| "it is no JSON object with roles")?;
        let word = |name: &str| value.get(name).and_then(Value::as_str);
        let size = whole(&value, "councilSize")?.ok_or("\"councilSize\" is missing")?;
        if !(3..=9).contains(&size) {
            return Err(format!("\"councilSize\" is {size}, not 3 to 9"));
        }
        let method = word("votingMethod").ok_or("\"votingMethod\" is missing")?;
        if kd_vote::find(method).is_none() {
            return Err(format!("\"{method}\" is no voting method"));
        }
        let complexity: Complexity =
            serde_json::from_value(value.get("complexity").cloned().unwrap_or_default())
                .map_err(|_| "\"complexity\" is not simple, moderate, complex or expert")?;
        let iterate = value
            .get("allowIterations")
            .and_then(Value::as_bool)
            .ok_or("\"allowIterations\" is missing")?;
        let mut notices = Vec::new();
        let members = self.members(&value, &mut notices)?;
        let count = members.len();
        if !(3..=9).contains(&count) {
            return Err(format!(
                "{count} members are listed under \"roles\", not 3 to 9"
            ));
        }
        if size != count as u64 {
            let why = format!(
                "\"councilSize\" is {size}, but {count} members are listed under \"roles\""
            );
            if !self.last {
                return Err(format!("{why}: make them equal"));
            }
            notices.push(format!("the plan's {why}: those {count} take part"));
        }
        Ok(Chosen {
            choice: Choice {
                // If size and list disagree, the list takes precedence.
                size: None,
                members: Some(members),
                method: Some(method.to_owned()),
                iterate: Some(iterate),
                max_iterations: whole(&value, "maxIterations")?.map(|n| n.clamp(1, 5) as u32),
                complexity: Some(complexity),
                domain: word("domain").map(|d| clean_line(d, 40)),
                reasoning: word("reasoning").map(|r| clean_line(r, 300)),
                mode: PlanningMode::Llm,
            },
            notices,
        })
    }

    fn members(&self, value: &Value, notices: &mut Vec<String>) -> Result<Vec<MemberPlan>, String> {
        let listed = value
            .get("roles")
            .and_then(Value::as_array)
            .ok_or("\"roles\" is no list")?;
        let text = |entry: &Value, name: &str| {
            let text = entry.get(name).and_then(Value::as_str).unwrap_or_default();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let mut members = Vec::new();
        let (mut no_role, mut no_model) = (0, 0);
        for (at, entry) in listed.iter().enumerate() {
            let role = text(entry, "role").unwrap_or_else(|| {
                no_role += 1;
                "opinion-giver".to_owned()
            });
            if roles::find(&role).is_none() {
                return Err(format!("\"{role}\" is no role"));
            }
            let model = match text(entry, "model") {
                Some(model) => self.agent(&model)?,
                None => {
                    no_model += 1;
                    self.agents
                        .get(at % self.agents.len().max(1))
                        .cloned()
                        .unwrap_or_default()
                }
            };
            members.push(MemberPlan {
                model,
                role,
                persona: text(entry, "persona")
                    .map(|p| clean_line(&p, 40))
                    .filter(|p| !p.is_empty()),
                ..MemberPlan::default()
            });
        }
        // The schema requires neither.
        if no_role > 0 {
            notices.push(format!(
                "the plan names no role for {no_role} of its members: they give opinions"
            ));
        }
        if no_model > 0 {
            notices.push(format!(
                "the plan names no model for {no_model} of its members: they are taken in turn"
            ));
        }
        Ok(members)
    }

    /// Returns the agent meant by a plan's model: by agent name, or the agent with this model.
    fn agent(&self, model: &str) -> Result<String, String> {
        if self.agents.iter().any(|agent| agent == model) {
            return Ok(model.to_owned());
        }
        let same = |name: &&String| {
            let agent = self.config.agents.get(*name);
            agent.is_some_and(|agent| agent.model.as_deref() == Some(model))
        };
        match self.agents.iter().find(same) {
            Some(name) => Ok(name.clone()),
            None => Err(format!(
                "\"{model}\" is no model that can take part; these can: {}",
                self.agents.join(", ")
            )),
        }
    }
}

/// Parses a whole number in a field, including `3.0`; `None` if the field is missing.
fn whole(value: &Value, name: &str) -> Result<Option<u64>, String> {
    let Some(number) = value.get(name).filter(|v| !v.is_null()) else {
        return Ok(None);
    };
    let fits = |n: &f64| n.fract() == 0.0 && (0.0..1e9).contains(n);
    match number.as_f64().filter(fits) {
        Some(number) => Ok(Some(number as u64)),
        None => Err(format!("\"{name}\" is {number}, not a whole number")),
    }
}

/// Returns whether a mode asks a model to plan this question: `hybrid` does if the rules call it complex.
pub(super) fn wants_model(mode: PlanningMode, asked: &str) -> bool {
    match mode {
        PlanningMode::Static => false,
        PlanningMode::Llm => true,
        PlanningMode::Hybrid => rules::find(asked).complexity >= Complexity::Complex,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents() -> Vec<String> {
        vec!["ada".into(), "bob".into()]
    }

    fn reply(model: &str, size: u32) -> String {
        json!({"complexity": "complex", "domain": "technical", "councilSize": size,
            "roles": [{"role": "opinion-giver", "model": "ada", "persona": "A"}, {"role": "skeptic", "model": model, "persona": ""},
                      {"role": "synthesizer", "model": "ada", "persona": ""}],
            "allowIterations": true, "maxIterations": 9, "votingMethod": "ranked-choice", "reasoning": "r"})
        .to_string()
    }

    fn read(text: &str, last: bool) -> Result<Chosen, String> {
        let agents = agents();
        let mut config = Config::default();
        let agent = crate::config::AgentConfig {
            backend: "openai".into(),
            model: Some("gpt-5".into()),
            ..Default::default()
        };
        config.agents.insert("bob".into(), agent);
        Reading {
            config: &config,
            agents: &agents,
            last,
        }
        .choice(text)
    }

    #[test]
    fn a_plan_names_nobody_and_nothing_that_does_not_exist() {
        let good = read(&reply("bob", 3), false).unwrap();
        assert!(good.notices.is_empty());
        assert_eq!(good.choice.max_iterations, Some(5));
        assert_eq!(good.choice.members.as_ref().unwrap()[1].persona, None);
        for (bad, why) in [
            (reply("gpt-9", 3), "these can: ada, bob"),
            (reply("bob", 12), "councilSize"),
            ("no json".into(), "no JSON"),
            (reply("bob", 3).replace("skeptic", "wizard"), "no role"),
            (
                reply("bob", 3).replace("ranked-choice", "dice"),
                "no voting method",
            ),
            (
                reply("bob", 3).replace("\"councilSize\":3", "\"councilSize\":3.5"),
                "whole number",
            ),
        ] {
            for last in [false, true] {
                let error = read(&bad, last).unwrap_err();
                assert!(error.contains(why), "{error}");
            }
        }
    }

    #[test]
    fn hybrid_asks_a_model_only_if_the_rules_call_a_question_complex() {
        let complex = "Compare the architecture, the costs and the risks of three designs, and recommend a strategy.";
        for (asked, hybrid) in [("What is a queue?", false), (complex, true)] {
            assert!(!wants_model(PlanningMode::Static, asked));
            assert!(wants_model(PlanningMode::Llm, asked));
            assert_eq!(wants_model(PlanningMode::Hybrid, asked), hybrid, "{asked}");
        }
    }

    #[test]
    fn an_agent_is_named_by_its_model_too() {
        let good = read(&reply("gpt-5", 3), false).unwrap();
        assert_eq!(good.choice.members.unwrap()[1].model, "bob");
    }

    #[test]
    fn a_plan_that_contradicts_itself_is_repaired_or_else_settled_and_shown() {
        let error = read(&reply("bob", 7), false).unwrap_err();
        assert!(error.contains("is 7, but 3 members"), "{error}");
        let settled = read(&reply("bob", 7), true).unwrap();
        assert_eq!(settled.choice.members.unwrap().len(), 3);
        assert!(
            settled.notices[0].contains("is 7, but 3"),
            "{:?}",
            settled.notices
        );
    }
}
