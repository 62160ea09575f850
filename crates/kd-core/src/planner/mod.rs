//! Plans a deliberation: members, roles, protocol, voting rule and limits.
//!
//! Input: the settings, merged with the options of this run, and the question. Output: a [`Plan`] that names only
//! existing agents, roles, rules and protocols, and notices for the user.

mod ask_back;
mod document;
mod enough;
mod model;
pub mod presets;
pub mod rules;
mod seats;

pub use document::document;
pub use model::{OwnedBrief, Planner, PlannerBrief, schema};

use crate::config::{self, Config, DeliberationConfig, MemberPlan, ToolUse};
use crate::cost::{Cost, program_warning};
use crate::deliberation::STRENGTHS;
use crate::deliberation::answer::AnswerKind;
use crate::deliberation::model_of;
use crate::deliberation::plan::{
    Complexity, ITERATE, Iteration, Limits, MemoryPlan, Meta, Plan, PlanningMode, READING,
    SPENDING, Seat, Task, Voting, WRITING,
};
use crate::deliberation::protocols::Asks;
use crate::deliberation::stages::{self, is_or_are};
use crate::deliberation::{Cut, Deliberation, Spent, counted_by, forecast, protocols};
use crate::ids::SeatName;
use crate::models;
use crate::roles::{self, Duty};
use crate::roster::Member;
use crate::seating::{self, LOCAL, SeatRequest, SeatingError};
use enough::Asked;
use kd_eval::auto::{Auto, Known, Strength, auto};
use kd_eval::marks::{By, Evidence, Learned, Source};
use kd_vote::NANOS;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The input of a plan.
#[derive(Clone, Debug, Default)]
pub struct Brief<'a> {
    /// The whole question, including piped input.
    pub question: &'a str,
    /// The question without piped input.
    pub asked: &'a str,
    /// The available members; empty means as configured.
    pub members: &'a [String],
    /// Whether all of them must take part, because the user named them.
    pub all_sit: bool,
    /// Seed for all randomness.
    pub seed: u64,
    /// Whether models are seeded too.
    pub seeded: bool,
    /// The user's replacements for role prompts, by role.
    pub personas: BTreeMap<String, String>,
    /// Memory across questions; empty unless opted in.
    pub background: String,
    /// Overrides the model of every member.
    pub model: Option<String>,
    /// Overrides the temperature of every member.
    pub temperature: Option<f32>,
    /// Overrides the timeout of a turn, in seconds.
    pub timeout: Option<u64>,
    /// Overrides what members at services may do with tools.
    pub tools: Option<ToolUse>,
    /// The user's verdict marks, from which `auto` estimates the strength of members. Shared, as there may be many.
    pub marks: Arc<Evidence>,
    /// The share of right verdicts that the user requires to be promised.
    pub required: Option<f64>,
    /// The reason why the marks are missing, if they could not be read.
    pub marks_fault: Option<String>,
}

/// A plan, and notices for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// The reason why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// No member is available.
    #[error(transparent)]
    Seating(#[from] SeatingError),
    /// A limit is too low even for the final answer.
    #[error("{} is too low: the final answer alone may use {tokens} tokens and {calls} call (${usd:.4})", .cut.words())]
    TooLow {
        /// The limit.
        cut: Cut,
        /// Required tokens.
        tokens: u64,
        /// Required calls.
        calls: u64,
        /// Required US dollars.
        usd: f64,
    },
    /// Some named members cannot take part.
    #[error("{} cannot take part: {why}", .names.join(", "))]
    NoSeat {
        /// The members.
        names: Vec<String>,
        /// The reason.
        why: String,
    },
    /// Money is limited, but the price of a member is unknown.
    #[error("the price of {seat} is unknown, so a cost limit cannot be enforced")]
    NoPrice {
        /// The member.
        seat: String,
        /// The provider whose prices are missing.
        provider: String,
    },
}

impl PlanError {
    /// Returns advice for the user.
    pub fn hint(&self) -> String {
        match self {
            PlanError::Seating(_) => {
                "name configured agents; `kd init` lists what is installed".into()
            }
            PlanError::TooLow { .. } => {
                "raise the limit, or lower `deliberation.answerTokens`".into()
            }
            PlanError::NoSeat { .. } => "name fewer members, or change that setting".into(),
            PlanError::NoPrice { provider, .. } => {
                format!(
                    "set `providers.{provider}.prices.<model>.input` and `.output`, or omit `--max-usd`"
                )
            }
        }
    }
}

/// The choices of a planner; `None` is left to rules and presets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// The members: model, role, persona.
    pub members: Option<Vec<MemberPlan>>,
    /// The number of members.
    pub size: Option<u32>,
    /// The voting rule.
    pub method: Option<String>,
    /// Whether to iterate.
    pub iterate: Option<bool>,
    /// Maximum passes.
    pub max_iterations: Option<u32>,
    /// Difficulty of the question.
    pub complexity: Option<Complexity>,
    /// Subject area.
    pub domain: Option<String>,
    /// The reason.
    pub reasoning: Option<String>,
    /// The planning mode that made the choices.
    pub mode: PlanningMode,
}

/// Returns whether the user's marks can change a plan.
pub fn uses_marks(settings: &DeliberationConfig) -> bool {
    settings.protocol == protocols::AUTO || learns(protocol_of(&settings.protocol))
}

/// Returns the kind of question that a plan will have: whose marks teach about its members.
pub fn kind_of(settings: &DeliberationConfig, asked: &str) -> &'static str {
    answers_of(settings, asked).name()
}

/// Returns the kind of answers to a question, with its options: by the settings or by rules.
pub fn answers_of(settings: &DeliberationConfig, asked: &str) -> AnswerKind {
    named(settings).unwrap_or_else(|| rules::find(asked).answers)
}

/// Returns the kind of answer that the settings name.
fn named(settings: &DeliberationConfig) -> Option<AnswerKind> {
    let answer = settings.answer.as_deref()?;
    AnswerKind::parse(answer).ok()
}

/// Returns whether a protocol uses rules learned from marks.
fn learns(protocol: &str) -> bool {
    protocols::find(protocol).is_some_and(|protocol| protocol.learns)
}

/// Plans by rules.
///
/// # Errors
/// Those of [`plan_with`].
pub fn plan(config: &Config, brief: &Brief<'_>) -> Result<Planned, PlanError> {
    plan_with(config, brief, &Choice::default())
}

/// Plans by rules what a planner left open. Explicit settings override the planner.
///
/// # Errors
/// If a member is unknown or cannot take part, a limit is too low for the final answer, or costs are limited and the
/// price of a member is unknown.
pub fn plan_with(
    config: &Config,
    brief: &Brief<'_>,
    choice: &Choice,
) -> Result<Planned, PlanError> {
    let settings = &config.deliberation;
    let found = rules::find(brief.asked);
    let mut notices = Vec::new();
    let preset = settings.preset.as_deref().unwrap_or(found.preset);
    let preset = presets::find(preset).unwrap_or(&presets::PRESETS[1]);
    let named = named(settings);
    let guess = named.is_none().then(|| found.answers.clone());
    let answers = named.unwrap_or(found.answers.clone());
    // An explicit kind means that answers count separately or are compared by a program only.
    let judged = match answers {
        AnswerKind::Judged => true,
        _ => answers.is_comparable() && settings.answer.is_none(),
    };
    let mut seats = seats::seats(
        config,
        brief,
        choice,
        preset,
        &settings.protocol,
        &mut notices,
    )?;
    // A question with comparable answers is not open text, whatever its words.
    let task = match found.task {
        Task::Open if answers.is_keyed() => Task::Reasoning,
        task => task,
    };
    let learned = learned(brief, answers.name(), &seats);
    let auto = (settings.protocol == protocols::AUTO).then(|| choose(task, &seats, &learned));
    let protocol = protocol_of(auto.as_ref().map_or(&settings.protocol, |a| a.protocol));
    if settings.council.members.is_none() && settings.council.size.is_none() {
        // A second seat of an agent has no vote: where nothing is reviewed, it has no work.
        let reviews = protocols::reviews(protocol);
        seats.retain(|seat| reviews || !seat.no_vote || seat.has(Duty::Opine));
    }
    // An explicit request needs no reason.
    let listed = settings.council.members.is_some() || choice.members.is_some();
    let why_seats = match &settings.preset {
        _ if listed => None,
        Some(preset) => Some(format!("preset {preset}, as asked")),
        None => Some(found.why_preset.clone()),
    };
    let mut why: Vec<String> = [found.why.clone()].into_iter().chain(why_seats).collect();
    if let Some(auto) = &auto {
        notices.push(format!("auto chose {protocol}: {}", auto.why.join("; ")));
        notices.extend(auto.warning.clone());
        why.extend(auto.why.iter().map(|w| format!("auto: {w}")));
        why.extend(learned_words(
            answers.name(),
            &seats,
            &learned,
            are_imported(brief),
        ));
        let fault = brief.marks_fault.as_ref();
        notices.extend(fault.map(|fault| format!("your marks are not used: {fault}")));
        let opining = seats.iter_mut().filter(|s| s.has(Duty::Opine));
        for (seat, weight) in opining.zip(&auto.weights) {
            seat.member.weight = *weight as f64 / NANOS as f64;
        }
    }
    let enough = learns(protocol).then(|| {
        let asked = Asked {
            learned: &learned,
            measured: is_measured(&seats, &learned),
            imported: are_imported(brief),
            kind: answers.name(),
            certainty: settings.certainty,
            seed: brief.seed,
        };
        enough::rule(&mut seats, &asked)
    });
    if let Some((_, told)) = &enough {
        notices.push(format!("{protocol}: {told}"));
        let fault = brief.marks_fault.as_ref();
        notices.extend(fault.map(|fault| format!("your marks are not used: {fault}")));
    }
    let method = settings
        .council
        .voting
        .method
        .as_deref()
        .or(choice.method.as_deref())
        .or(auto.as_ref().map(|a| a.rule))
        .or(enough.as_ref().map(|_| "weighted"))
        .unwrap_or(preset.voting);
    let method = kd_vote::find(method)
        .unwrap_or_else(|| kd_vote::usual(kd_vote::Reads::Choice))
        .name
        .to_owned();
    let ceiling = settings.ceiling();
    let all_local = seats.iter().all(|s| s.member.backend == LOCAL);
    let iteration = &settings.iteration;
    let enabled = iteration.enabled
        || choice.iterate.unwrap_or(false)
            && settings.iteration == crate::config::IterationConfig::default();
    if found.iterate && !enabled {
        notices.push(ITERATE.into());
    }
    // A guess must not change how answers are read: the answers show how they compare.
    let open = guess.is_some() && !found.is_told && task != Task::Estimate;
    let (answers, judged) = match open {
        true => (AnswerKind::Text, true),
        false => (answers, judged),
    };
    let mut plan = Plan {
        question: brief.question.to_owned(),
        meta: Meta {
            planning_mode: choice.mode,
            complexity: settings
                .meta
                .complexity
                .or(choice.complexity)
                .unwrap_or(found.complexity),
            domain: settings
                .meta
                .domain
                .clone()
                .or(choice.domain.clone())
                .unwrap_or_else(|| found.domain.to_owned()),
            task,
            reasoning: settings
                .meta
                .reasoning
                .clone()
                .or(choice.reasoning.clone())
                .unwrap_or_else(|| why.join("; ")),
        },
        protocol: protocol.to_owned(),
        seats,
        answers,
        voting: Voting {
            method,
            threshold: settings.council.voting.threshold,
        },
        rounds: settings.rounds,
        samples: settings.samples,
        iteration: Iteration {
            enabled,
            max_iterations: choice
                .max_iterations
                .unwrap_or(iteration.max_iterations)
                .min(iteration.max_iterations),
            max_depth: iteration.max_depth,
            convergence_threshold: iteration.convergence_threshold,
            improvement_threshold: iteration.improvement_threshold,
            strategy: iteration.strategy,
        },
        memory: MemoryPlan {
            enabled: settings.memory.enabled,
            compression: settings.memory.compression,
            max_context_tokens: settings.memory.max_context_tokens,
        },
        limits: Limits {
            calls: ceiling.calls,
            tokens: ceiling.tokens,
            micro_usd: ceiling.micro_usd,
            duration_ms: enabled.then_some(iteration.max_duration_ms),
            answer_tokens: settings
                .answer_tokens
                .unwrap_or(if all_local { 192 } else { 2048 }),
            peer_bytes: None,
        },
        background: brief.background.clone(),
        seed: brief.seed,
        reading: READING,
        guess,
        judged,
        spending: SPENDING,
        writing: WRITING,
        output: None,
        fitted: auto.as_ref().is_some_and(|auto| auto.fitted),
        enough: enough.map(|(rule, _)| rule),
        ask_back: None,
    };
    if settings.ask_back {
        plan.ask_back = Some(ask_back::rule(&plan, brief));
    }
    notices.extend(fit(&mut plan));
    if brief.all_sit {
        notices.extend(unasked(&plan));
    }
    check(&plan)?;
    warn(&plan, auto.is_some(), &mut notices);
    let asked = settings.council.voting.method.as_deref();
    let asked = asked.and_then(kd_vote::find).map(|rule| rule.name);
    if let Some(asked) = asked.filter(|asked| counted_by(&plan) != Some(asked)) {
        let by = counted_by(&plan).map_or("takes the middle of the estimates".to_owned(), |rule| {
            format!("counts by {rule}")
        });
        notices.push(format!(
            "the rule {asked} has no effect: the protocol {} {by}",
            plan.protocol
        ));
    }
    Ok(Planned { plan, notices })
}

/// Returns whether a mode asks a model to plan a question: `hybrid` does if the rules call it complex.
pub fn wants_model(mode: PlanningMode, asked: &str) -> bool {
    model::wants_model(mode, asked)
}

/// Returns the member that plans, and the agents it may choose.
///
/// # Errors
/// If the planner, or the agent chosen for it, is unknown or has an invalid name.
pub fn planner_seat(config: &Config, brief: &Brief<'_>) -> Result<(Seat, Vec<String>), PlanError> {
    let agents = agents(config, brief);
    let name = config
        .deliberation
        .meta
        .planner
        .clone()
        .unwrap_or_else(|| fast(config, &agents).unwrap_or(&agents[0]).clone());
    let wanted = MemberPlan {
        model: name,
        role: "moderator".into(),
        ..MemberPlan::default()
    };
    let mut seat = seat(config, brief, &wanted, &[], 0)?;
    if let Ok(name) = SeatName::new("planner") {
        seat.member.name = name;
    }
    Ok((seat, agents))
}

/// Returns the first agent with a fast model, which suffices for planning.
fn fast<'a>(config: &Config, agents: &'a [String]) -> Option<&'a String> {
    let is_fast = |name: &&String| {
        let model = config.agents.get(*name).and_then(|a| a.model.as_deref());
        models::is_fast(model.unwrap_or(name))
    };
    agents.iter().find(is_fast)
}

/// Reduced sizes of answers if limits are low: tokens of an answer, and bytes of it in the prompts of other members.
const LOWERED: [(u32, u32); 3] = [(1024, 1000), (512, 600), (256, 300)];

/// Shortens answers until the final answer takes at most half of the limits, so that there is room for the answers
/// that it concludes from. Returns a notice if it did.
fn fit(plan: &mut Plan) -> Option<String> {
    let usual = plan.limits;
    let has_room = |plan: &Plan| {
        let mut half = plan.clone();
        half.limits.tokens = plan.limits.tokens.map(|most| most / 2);
        half.limits.micro_usd = plan.limits.micro_usd.map(|most| most / 2);
        affordable(&half).is_ok()
    };
    for (tokens, bytes) in LOWERED {
        if has_room(plan) {
            break;
        }
        plan.limits.answer_tokens = usual.answer_tokens.min(tokens);
        plan.limits.peer_bytes = Some(bytes);
    }
    let is_lowered = plan.limits != usual;
    // Shorter answers do not help with a limit on calls, and a limit that is too low in any case is reported as an error.
    if !is_lowered || affordable(plan).is_err() {
        return None;
    }
    Some(format!(
        "the limit is low: answers have at most {} tokens in place of {}, and members read at most {} bytes of each other's answers",
        plan.limits.answer_tokens,
        usual.answer_tokens,
        plan.limits.peer_bytes.unwrap_or_default()
    ))
}

/// Checks that the limits of a plan allow its final answer.
fn affordable(plan: &Plan) -> Result<(), (Cut, Spent)> {
    Deliberation::affordable(plan, crate::prompt::PREAMBLE.trim())
}

/// Checks a plan before any request.
fn check(plan: &Plan) -> Result<(), PlanError> {
    let unpriced = |s: &&Seat| s.price.is_none() && !config::is_program(&s.member.backend);
    if plan.limits.micro_usd.is_some()
        && let Some(seat) = plan.seats.iter().find(unpriced)
    {
        return Err(PlanError::NoPrice {
            seat: seat.name().to_string(),
            provider: seat.member.backend.clone(),
        });
    }
    affordable(plan).map_err(|(cut, most)| PlanError::TooLow {
        cut,
        tokens: most.tokens,
        calls: most.calls,
        usd: most.usd(),
    })
}

/// Returns which of the members named by the user a protocol does not ask, or may not ask, and why.
fn unasked(plan: &Plan) -> Option<String> {
    let protocol = protocols::find(&plan.protocol)?;
    let (order, sure) = stages::asked_first(plan, protocol);
    let (sure, rest) = order.split_at_checked(sure)?;
    let names = |seats: &[usize]| -> String {
        let names: Vec<&str> = seats
            .iter()
            .map(|s| plan.seats[*s].agent.as_str())
            .collect();
        names.join(", ")
    };
    let is_one = protocol.asks == Asks::One;
    (!rest.is_empty()).then(|| match is_one {
        true => format!(
            "{} asks {} alone, the strongest of the named members or the first of equal ones: {} {} not asked for an answer; `--protocol vote` asks all",
            protocol.name,
            names(sure),
            names(rest),
            is_or_are(rest.len())
        ),
        false => format!(
            "{} asks {} first, and {} only while the result is not certain; `--protocol vote` asks all",
            protocol.name,
            names(sure),
            names(rest)
        ),
    })
}

/// Tells which members give an opinion without a vote: their agents vote in other seats.
fn without_votes(plan: &Plan) -> Option<String> {
    let silent = plan
        .seats
        .iter()
        .filter(|s| s.no_vote && s.has(Duty::Opine));
    let told = silent.filter_map(|seat| {
        let same = |other: &&Seat| other.agent == seat.agent && other.has(Duty::Vote);
        let voter = plan.seats.iter().find(same)?;
        Some(format!(
            "{} ({} votes as {})",
            seat.name(),
            seat.agent,
            voter.name()
        ))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "an opinion, but no vote, since two seats of an agent are no two opinions: {}",
            told.join(", ")
        )
    })
}

/// Adds notices for the user.
fn warn(plan: &Plan, by_auto: bool, notices: &mut Vec<String>) {
    let idle = |s: &&Seat| s.has(Duty::Moderate) || s.has(Duty::Reserve);
    let idle: Vec<&str> = plan
        .seats
        .iter()
        .filter(idle)
        .map(|s| s.name().as_str())
        .collect();
    if !plan.iteration.enabled && !idle.is_empty() {
        notices.push(format!(
            "{}: moderators and backups work between passes only; --iterate allows more passes",
            idle.join(", ")
        ));
    }
    notices.extend(without_votes(plan));
    let expected = forecast(plan).calls;
    if let Some(most) = plan.limits.calls.filter(|most| *most < expected) {
        let calls = if most == 1 { "call" } else { "calls" };
        notices.push(format!(
            "the limit of {most} {calls} is below the {expected} that this plan asks for: it may end without a vote"
        ));
    }
    let known: Vec<f64> = plan.seats.iter().filter_map(|s| s.reliability).collect();
    if let (Some(best), Some(worst)) = (
        known.iter().copied().reduce(f64::max),
        known.iter().copied().reduce(f64::min),
    ) && best - worst > 0.05
        && !by_auto
    {
        notices.push(format!(
            "members are unequal ({worst:.2} to {best:.2} right): a plain vote of unequal members loses to the best of them; weigh them (--rule log-odds) or use --protocol auto"
        ));
    }
    let inexact = |s: &&Seat| s.price.is_none() && !config::keeps_budget(&s.member.backend);
    let unpriced = plan.seats.iter().filter(inexact);
    let unpriced: Vec<&str> = unpriced.map(|s| s.name().as_str()).collect();
    if plan.limits.micro_usd.is_some() && !unpriced.is_empty() {
        notices.push(program_warning(&unpriced));
    }
    let programs = [
        "claude_code",
        "codex",
        "cursor",
        "gemini",
        "opencode",
        "acp",
    ];
    if plan
        .seats
        .iter()
        .any(|s| programs.contains(&s.member.backend.as_str()))
    {
        notices.push(
            "agent programs add their own text to prompts and may use more tokens than reserved"
                .into(),
        );
    }
}

/// Returns what the user's marks teach about the members that give opinions, on this kind of question.
fn learned(brief: &Brief<'_>, kind: &str, seats: &[Seat]) -> Learned {
    let opining = seats.iter().filter(|s| s.has(Duty::Opine));
    let models: Vec<_> = opining.map(|s| model_of(&s.member)).collect();
    let models: Vec<&str> = models.iter().map(|model| &**model).collect();
    // Only there are votes what each member answered without seeing the others.
    let is_blind = |name: &str| protocols::find(name).is_some_and(|protocol| protocol.certain);
    Learned::of(&brief.marks, kind, &models, is_blind)
}

/// Returns whether all marks of this kind of question were imported.
fn are_imported(brief: &Brief<'_>) -> bool {
    let marks = &brief.marks.recent;
    !marks.is_empty() && marks.iter().all(|mark| mark.by == By::Import)
}

/// Describes the strengths of members, each with its 95 % interval and its origin; `None` if none is known.
fn learned_words(kind: &str, seats: &[Seat], learned: &Learned, imported: bool) -> Option<String> {
    let opining = seats.iter().filter(|s| s.has(Duty::Opine));
    let known = opining.zip(learned.strengths.iter().zip(&learned.sources));
    let told: Vec<String> = known
        .filter(|(seat, _)| seat.reliability.is_none())
        .filter_map(|(seat, (strength, source))| {
            let strength = (*strength)?;
            let percent = |share: f64| format!("{:.0}", share * 100.0);
            let interval = strength.interval();
            Some(format!(
                "{} {} % ({} to {}; {})",
                seat.name(),
                percent(strength.estimate()),
                percent(interval.low),
                percent(interval.high),
                source.words()
            ))
        })
        .collect();
    let told = told.join(", ");
    let is_marked = learned.sources.iter().any(|of| of.here + of.wider > 0);
    // The record may reach other readers, who have marks of their own.
    let whose = match (is_marked, imported) {
        (true, true) => "; all marks are imported",
        (true, false) => "; marks are of the person who asked",
        (false, _) => "",
    };
    (!told.is_empty())
        .then(|| format!("{STRENGTHS}{kind} questions, with 95 % intervals: {told}{whose}"))
}

/// Returns whether the strength of each member that gives opinions is configured, or measured by marks of this kind.
fn is_measured(seats: &[Seat], learned: &Learned) -> bool {
    let mut opining = seats.iter().filter(|s| s.has(Duty::Opine));
    let mut sources = learned.sources.iter();
    opining.all(|seat| {
        let source = sources.next();
        seat.reliability.is_some() || source.is_some_and(Source::is_measured)
    })
}

/// Returns the choice of `auto` for the members that give opinions, in table names.
fn choose(task: Task, seats: &[Seat], learned: &Learned) -> Auto {
    use kd_eval::auto::Task as Kind;
    let opining = || seats.iter().filter(|s| s.has(Duty::Opine));
    // Configured reliabilities replace what marks say.
    let is_learned = opining().all(|seat| seat.reliability.is_none());
    let members = opining()
        .zip(&learned.strengths)
        .map(|(s, learned)| {
            // A configured reliability is assumed to be measured: it counts as a hundred questions.
            let written = s.reliability.map(|right| Strength {
                right,
                questions: 100,
            });
            written.or(*learned)
        })
        .collect();
    auto(&Known {
        task: match task {
            Task::Knowledge => Kind::Knowledge,
            Task::Reasoning => Kind::Reasoning,
            Task::Open => Kind::OpenText,
            Task::Checkable => Kind::Checkable,
            Task::Sequential => Kind::Sequential,
            Task::Estimate => Kind::Estimate,
        },
        members,
        joint: is_learned.then(|| learned.joint()).flatten(),
        silent: learned.silent.clone(),
        measured: is_measured(seats, learned),
        thrifty: false,
    })
}

/// Returns the table name of a protocol named by `auto` or the settings.
fn protocol_of(name: &str) -> &'static str {
    let name = if name == "gate-debate" {
        "gated-debate"
    } else {
        name
    };
    protocols::find(name)
        .unwrap_or(protocols::PROTOCOLS[0])
        .name
}

/// Returns the available agents, in order; the built-in model if none is configured.
fn agents(config: &Config, brief: &Brief<'_>) -> Vec<String> {
    let names: Vec<String> = if !brief.members.is_empty() {
        brief.members.to_vec()
    } else if !config.council.members.is_empty() {
        config.council.members.clone()
    } else {
        config.agents.keys().cloned().collect()
    };
    match names.is_empty() {
        true => vec![LOCAL.to_owned()],
        false => names,
    }
}

fn seat(
    config: &Config,
    brief: &Brief<'_>,
    wanted: &MemberPlan,
    taken: &[Seat],
    place: u64,
) -> Result<Seat, PlanError> {
    let base = base(config, brief, &wanted.model, place)?;
    let role = roles::find(&wanted.role);
    let plain = base.backend == LOCAL && !config.agents.contains_key(&wanted.model);
    let agent = base.launch.agent.as_ref().unwrap_or(&wanted.model);
    let agent = config.agents.get(agent);
    let own_words = agent.map(|a| a.prompt.clone()).filter(|p| !p.is_empty());
    let mut persona = wanted
        .system_prompt
        .clone()
        .or_else(|| brief.personas.get(&wanted.role).cloned())
        .or_else(|| role.map(|r| r.persona.to_owned()))
        .unwrap_or_default();
    if wanted.system_prompt.is_none()
        && let Some(words) = own_words
    {
        persona = format!("{}\n{}", words.trim(), persona.trim());
    }
    if let Some(label) = &wanted.persona {
        persona = format!("You are the {label}. {}", persona.trim());
    }
    let wants = |name: &str| taken.iter().all(|s| s.name().as_str() != name);
    let stem = match plain {
        true => wanted.role.clone(),
        false if wants(&wanted.model) => wanted.model.clone(),
        false => format!("{}-{}", wanted.model, wanted.role),
    };
    let mut name = stem.clone();
    let mut count = 2;
    while !wants(&name) {
        name = format!("{stem}-{count}");
        count += 1;
    }
    let temperature = wanted
        .temperature
        .or(brief.temperature)
        .or(agent.and_then(|a| a.temperature))
        .or(role.map(|r| r.temperature));
    let price = Cost::of(config, &base).price();
    let mut member = Member {
        name: SeatName::new(name).map_err(SeatingError::from)?,
        role: Some(wanted.role.clone()),
        persona: persona.trim().to_owned(),
        weight: wanted.weight.unwrap_or(base.weight),
        writable: false,
        ..base
    };
    member.sampling.temperature = temperature;
    Ok(Seat {
        member,
        agent: wanted.model.clone(),
        role: wanted.role.clone(),
        persona: wanted.persona.clone(),
        no_vote: false,
        price,
        reliability: agent.and_then(|a| a.reliability),
    })
}

/// Returns an agent as it is configured now, as a member; `model` is for agents that name none.
///
/// # Errors
/// If nobody has this name.
pub fn configured(config: &Config, agent: &str, model: Option<&str>) -> Result<Member, PlanError> {
    let brief = Brief {
        model: model.map(str::to_owned),
        ..Brief::default()
    };
    base(config, &brief, agent, 0)
}

/// Returns the agent of a name as a member; the built-in model for `local`.
fn base(config: &Config, brief: &Brief<'_>, name: &str, place: u64) -> Result<Member, PlanError> {
    let local = name == LOCAL && !config.agents.contains_key(LOCAL);
    let wishes = SeatRequest {
        members: vec![if local {
            "opinion-giver".to_owned()
        } else {
            name.to_owned()
        }],
        model: brief.model.clone(),
        seed: brief.seeded.then(|| brief.seed.wrapping_add(place)),
        timeout: brief.timeout,
        tools: brief.tools,
        ..SeatRequest::default()
    };
    let mut alone = config.clone();
    alone.council.chair = None;
    let seated = seating::seat(&alone, &wishes)?;
    seated.roster.members().first().cloned().ok_or_else(|| {
        PlanError::Seating(SeatingError::Unknown {
            name: name.to_owned(),
            nearest: None,
            choices: seating::choices(config),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AgentConfig;
    use crate::deliberation::plan::Strategy;

    fn five() -> (Config, Vec<String>) {
        let mut config = Config::default();
        let names: Vec<String> = (1..=5).map(|n| format!("m{n}")).collect();
        for name in &names {
            let agent = AgentConfig {
                backend: "scripted".into(),
                ..AgentConfig::default()
            };
            config.agents.insert(name.clone(), agent);
        }
        (config, names)
    }

    #[test]
    fn the_chair_has_no_vote_where_a_member_is_free() {
        let (mut config, names) = five();
        config.deliberation.preset = Some("small".into());
        let chair = |config: &Config, members: &[String]| {
            let brief = Brief {
                question: "Why?",
                asked: "Why?",
                members,
                ..Brief::default()
            };
            let plan = plan(config, &brief).unwrap().plan;
            let chair = plan.seats.iter().find(|s| s.has(Duty::Conclude)).unwrap();
            let votes = |s: &&Seat| s.has(Duty::Vote) && s.agent == chair.agent;
            (chair.agent.clone(), plan.seats.iter().any(|s| votes(&s)))
        };
        assert_eq!(chair(&config, &names), ("m4".to_owned(), false));
        assert_eq!(chair(&config, &names[..3]), ("m1".to_owned(), true));
        assert_eq!(chair(&config, &names[..2]), ("m1".to_owned(), true));
        // A chair from the settings too, whichever member it is.
        for name in &names {
            config.council.chair = Some(name.clone());
            assert_eq!(chair(&config, &names), (name.clone(), false));
        }
        config.council.chair = Some("m2".into());
        assert_eq!(chair(&config, &names[..2]), ("m2".to_owned(), true));
    }

    #[test]
    fn unequal_members_are_told_of_auto_unless_it_chose() {
        let (mut config, names) = five();
        for (name, right) in names.iter().zip([0.9, 0.6, 0.6, 0.6, 0.6]) {
            if let Some(agent) = config.agents.get_mut(name) {
                agent.reliability = Some(right);
            }
        }
        let brief = Brief {
            question: "Is it safe?",
            asked: "Is it safe?",
            ..Brief::default()
        };
        let told = |config: &Config| {
            let notices = plan(config, &brief).unwrap().notices;
            notices.iter().any(|n| n.contains("use --protocol auto"))
        };
        assert!(told(&config));
        config.deliberation.protocol = "auto".into();
        assert!(!told(&config));
    }

    #[test]
    fn roles_that_have_no_work_without_passes_are_told() {
        let (mut config, _) = five();
        let seats = [
            ("m1", "opinion-giver"),
            ("m2", "moderator"),
            ("m3", "opinion-giver"),
        ];
        let seats = seats.map(|(model, role)| MemberPlan {
            model: model.into(),
            role: role.into(),
            ..MemberPlan::default()
        });
        config.deliberation.council.members = Some(seats.to_vec());
        let brief = Brief {
            question: "Why?",
            asked: "Why?",
            ..Brief::default()
        };
        let told = |config: &Config| {
            let notices = plan(config, &brief).unwrap().notices;
            notices.iter().any(|n| n.starts_with("m2: moderators"))
        };
        assert!(told(&config));
        config.deliberation.iteration.enabled = true;
        assert!(!told(&config));
    }

    #[test]
    fn escalate_has_somebody_to_join_where_the_seats_are_listed() {
        let (mut config, _) = five();
        let seats = ["m1", "m2", "m3"].map(|model| MemberPlan {
            model: model.into(),
            role: "opinion-giver".into(),
            ..MemberPlan::default()
        });
        config.deliberation.council.members = Some(seats.to_vec());
        config.deliberation.iteration.enabled = true;
        let brief = Brief {
            question: "Why?",
            asked: "Why?",
            ..Brief::default()
        };
        let reserves = |config: &Config| {
            let planned = plan(config, &brief).unwrap();
            let count = planned.plan.with(Duty::Reserve).len();
            (
                count,
                planned.notices.iter().any(|n| n.contains("m5 and m4 join")),
            )
        };
        assert_eq!(reserves(&config), (0, false));
        let sizeless = |config: &Config| {
            let notices = plan(config, &brief).unwrap().notices;
            notices
                .iter()
                .any(|n| n.contains("`council.size` is missing"))
        };
        assert!(sizeless(&config), "the seed's schema requires it");
        config.deliberation.council.size = Some(3);
        assert!(!sizeless(&config));
        config.deliberation.iteration.strategy = Strategy::Escalate;
        assert_eq!(reserves(&config), (2, true));
    }

    #[test]
    fn whoever_the_user_names_has_a_seat_or_the_error_says_why() {
        let (mut config, names) = five();
        let brief = Brief {
            question: "What is 17*23?",
            asked: "What is 17*23?",
            members: &names,
            all_sit: true,
            ..Brief::default()
        };
        let planned = plan(&config, &brief).unwrap().plan;
        for name in &names {
            let opines = |s: &Seat| s.agent == *name && s.has(Duty::Opine);
            assert!(planned.seats.iter().any(opines), "{name}");
        }
        config.deliberation.council.size = Some(4);
        let error = plan(&config, &brief).unwrap_err().to_string();
        assert!(error.contains("m4") && error.contains("size"), "{error}");
        let many: Vec<String> = (0..10).map(|n| format!("m{}", n % 5 + 1)).collect();
        config.deliberation.council.size = None;
        let twice = Brief {
            members: &many,
            ..brief
        };
        assert!(
            plan(&config, &twice).is_ok(),
            "a name listed twice takes part once"
        );
    }
}
