//! Chooses the members. Input: the configuration and the options of this run. Output: a [`Roster`].

mod served;

use self::served::served_as;
pub use self::served::{SERVICES, service_of, services};
use crate::config::{AgentConfig, Config, KNOWN_AGENTS, ToolUse, is_service};
use crate::ids::{BadSeatName, SeatName};
use crate::models;
use crate::names::look_alike;
use crate::request::{Deadlines, Sampling};
use crate::roles::{self, BUILT_IN_COUNCIL, CHAIR, OTHER_CHAIR, Role};
use crate::roster::{Launch, Member, Roster};
use std::time::Duration;

/// The backend that needs no setup: the built-in model.
pub const LOCAL: &str = "local";

/// Options of this run that override the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeatRequest {
    /// Exactly these members, in this order; empty means as configured.
    pub members: Vec<String>,
    /// The model of every member.
    pub model: Option<String>,
    /// The temperature of every member.
    pub temperature: Option<f32>,
    /// Maximum tokens per answer.
    pub max_tokens: Option<u32>,
    /// Random seed, from which each member gets its own.
    pub seed: Option<u64>,
    /// Seconds per turn.
    pub timeout: Option<u64>,
    /// Whether agents may change files.
    pub writable: Option<bool>,
    /// What every member at a service may do with tools.
    pub tools: Option<ToolUse>,
}

/// A council that can be opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Seated {
    /// Members and chair.
    pub roster: Roster,
    /// Whether this is the built-in council: nothing was configured, or exactly that.
    pub built_in: bool,
    /// Members of a continued thread that cannot take part, and why.
    pub absent: Vec<(SeatName, SeatingError)>,
}

/// The reason why no member can take part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatingError {
    /// An unknown name.
    #[error("there is no member `{name}`{}; members are: {}", nearest_text(.nearest), .choices.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The closest known name.
        nearest: Option<String>,
        /// All known names.
        choices: Vec<String>,
    },
    /// Two members with names that a reader could confuse.
    #[error("`{name}` looks like `{taken}`: rename one of the two")]
    LookAlike {
        /// The second name.
        name: SeatName,
        /// The first name.
        taken: SeatName,
    },
    /// An invalid name.
    #[error(transparent)]
    BadName(#[from] BadSeatName),
}

fn nearest_text(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|n| format!(" (did you mean `{n}`?)"))
        .unwrap_or_default()
}

/// Chooses the members: the requested ones, otherwise `council.members`, otherwise all agents, otherwise the built-in
/// three.
///
/// A name that is not an agent may be a known program (`claude`, `codex` …), a role (played by the built-in model), or
/// a model (`gpt-5`, or one configured for an agent or provider), which selects its backend.
///
/// # Errors
/// If a name is unknown or invalid, or two members have names that look alike.
pub fn seat(config: &Config, wishes: &SeatRequest) -> Result<Seated, SeatingError> {
    let council = &config.council.members;
    let built_in = config.agents.is_empty()
        && (council.is_empty() || *council == BUILT_IN_COUNCIL)
        && wishes.members.is_empty()
        && config.local.model.is_none()
        && wishes.model.is_none();
    let names: Vec<String> = if !wishes.members.is_empty() {
        wishes.members.clone()
    } else if !config.council.members.is_empty() {
        config.council.members.clone()
    } else if !config.agents.is_empty() {
        config.agents.keys().cloned().collect()
    } else {
        BUILT_IN_COUNCIL.map(str::to_owned).to_vec()
    };
    let mut members = Vec::with_capacity(names.len());
    for (place, name) in (0u64..).zip(names) {
        members.push(member(config, wishes, &name, place)?);
    }
    for (at, member) in members.iter().enumerate() {
        let taken = members[..at]
            .iter()
            .find(|m| m.name != member.name && look_alike(m.name.as_str(), member.name.as_str()));
        if let Some(taken) = taken {
            return Err(SeatingError::LookAlike {
                name: member.name.clone(),
                taken: taken.name.clone(),
            });
        }
    }
    let chair = chair(config, wishes, &members)?;
    Ok(Seated {
        roster: Roster::new(members, chair),
        built_in,
        absent: Vec::new(),
    })
}

/// Chooses the members of a continued thread: those that cannot take part are left out, and named in the result. If
/// none can, the configured members are used.
///
/// # Errors
/// If the chair, or a member of the configuration that is needed, cannot take part.
pub fn seat_again(
    config: &Config,
    wishes: &SeatRequest,
    thread: &[SeatName],
) -> Result<Seated, SeatingError> {
    let mut present: Vec<SeatName> = Vec::new();
    let mut absent = Vec::new();
    for name in thread {
        let taken = present
            .iter()
            .find(|other| *other != name && look_alike(other.as_str(), name.as_str()));
        let why = match taken {
            Some(taken) => Some(SeatingError::LookAlike {
                name: name.clone(),
                taken: taken.clone(),
            }),
            None => member(config, wishes, name.as_str(), 0).err(),
        };
        match why {
            Some(why) => absent.push((name.clone(), why)),
            None => present.push(name.clone()),
        }
    }
    let wishes = SeatRequest {
        members: present.iter().map(ToString::to_string).collect(),
        ..wishes.clone()
    };
    let seated = seat(config, &wishes)?;
    Ok(Seated { absent, ..seated })
}

/// Returns every valid name: agents, then known programs, then roles.
pub fn choices(config: &Config) -> Vec<String> {
    let programs = KNOWN_AGENTS.iter().map(|(name, _)| *name);
    let roles = roles::ROLES
        .iter()
        .map(|role| role.name)
        .filter(|name| *name != CHAIR);
    let known = programs
        .chain(roles)
        .filter(|name| !config.agents.contains_key(*name))
        .map(str::to_owned);
    config.agents.keys().cloned().chain(known).collect()
}

pub(crate) fn member(
    config: &Config,
    wishes: &SeatRequest,
    name: &str,
    place: u64,
) -> Result<Member, SeatingError> {
    if let Some(agent) = config.agents.get(name) {
        return Ok(Member {
            launch: Launch::of(name, agent),
            ..from_agent(config, wishes, SeatName::new(name)?, agent, place)
        });
    }
    if let Some((_, backend)) = KNOWN_AGENTS.iter().find(|(known, _)| *known == name) {
        let agent = AgentConfig {
            backend: (*backend).to_owned(),
            ..AgentConfig::default()
        };
        return Ok(from_agent(
            config,
            wishes,
            SeatName::new(name)?,
            &agent,
            place,
        ));
    }
    let role = roles::find(name).filter(|role| role.name != CHAIR);
    if role.is_none()
        && let Some((agent_name, agent)) = models::agent_for(config, name)
    {
        return Ok(Member {
            launch: agent_name.map_or_else(Launch::default, |name| Launch::of(name, &agent)),
            ..from_agent(config, wishes, SeatName::new(name)?, &agent, place)
        });
    }
    match role {
        Some(role) => Ok(from_role(config, wishes, SeatName::new(name)?, role, place)),
        None => {
            let choices = choices(config);
            let nearest = choices
                .iter()
                .map(|choice| (strsim::damerau_levenshtein(name, choice), choice))
                .min()
                .filter(|(distance, choice)| *distance <= 2.max(choice.len() / 3))
                .map(|(_, choice)| choice.clone());
            Err(SeatingError::Unknown {
                name: name.to_owned(),
                nearest,
                choices,
            })
        }
    }
}

fn from_agent(
    config: &Config,
    wishes: &SeatRequest,
    name: SeatName,
    agent: &AgentConfig,
    place: u64,
) -> Member {
    let role = agent.role.as_deref().and_then(roles::find);
    let persona = if agent.prompt.is_empty() {
        role.map(|r| r.persona.to_owned()).unwrap_or_default()
    } else {
        agent.prompt.clone()
    };
    let model = wishes.model.clone().or_else(|| agent.model.clone());
    Member {
        served_as: served_as(config, agent, model.as_deref()),
        model,
        role: agent.role.clone(),
        persona,
        sampling: Sampling {
            temperature: wishes
                .temperature
                .or(agent.temperature)
                .or(role.map(|r| r.temperature)),
            top_p: agent.top_p,
            min_p: agent.min_p,
            max_tokens: wishes.max_tokens.or(agent.max_tokens),
            seed: wishes.seed.map(|s| s.wrapping_add(place)).or(agent.seed),
            stop: Vec::new(),
        },
        deadlines: deadlines(config, wishes.timeout.or(agent.timeout)),
        weight: agent.weight.unwrap_or(1.0),
        writable: wishes
            .writable
            .or(agent.writable)
            .unwrap_or(config.council.writable),
        reads: is_service(&agent.backend) && wishes.tools.unwrap_or(agent.tools) == ToolUse::Read,
        ..Member::new(name, agent.backend.clone())
    }
}

fn from_role(
    config: &Config,
    wishes: &SeatRequest,
    name: SeatName,
    role: &Role,
    place: u64,
) -> Member {
    let agent = AgentConfig {
        backend: LOCAL.to_owned(),
        role: Some(role.name.to_owned()),
        ..AgentConfig::default()
    };
    Member {
        role: Some(role.title.to_owned()),
        ..from_agent(config, wishes, name, &agent, place)
    }
}

/// Returns the built-in model as a member of this name, without a persona.
pub(crate) fn built_in(
    config: &Config,
    wishes: &SeatRequest,
    name: SeatName,
    place: u64,
) -> Member {
    let agent = AgentConfig {
        backend: LOCAL.to_owned(),
        ..AgentConfig::default()
    };
    from_agent(config, wishes, name, &agent, place)
}

/// Returns the chair. It uses the backend of the agent named by `council.chair`, otherwise of the first member, but the
/// chair's persona, so that it does not conclude in the voice of a member.
fn chair(
    config: &Config,
    wishes: &SeatRequest,
    members: &[Member],
) -> Result<Option<Member>, SeatingError> {
    let place = members.len() as u64;
    let lender = match &config.council.chair {
        Some(name) => member(config, wishes, name, place)?,
        None => match members.first() {
            Some(first) => Member {
                sampling: Sampling {
                    seed: wishes.seed.map(|s| s.wrapping_add(place)),
                    ..first.sampling.clone()
                },
                ..first.clone()
            },
            None => return Ok(None),
        },
    };
    let Some(role) = roles::find(CHAIR) else {
        return Ok(None);
    };
    let taken = members.iter().any(|m| m.name.as_str() == CHAIR);
    let name = SeatName::new(if taken { OTHER_CHAIR } else { CHAIR })?;
    Ok(Some(Member {
        name,
        role: Some(role.title.to_owned()),
        persona: role.persona.to_owned(),
        sampling: Sampling {
            temperature: wishes.temperature.or(Some(role.temperature)),
            ..lender.sampling
        },
        writable: false,
        // It writes about what the others say.
        reads: false,
        ..lender
    }))
}

fn deadlines(config: &Config, timeout: Option<u64>) -> Deadlines {
    Deadlines {
        first: Duration::from_secs(config.council.first_secs),
        idle: Duration::from_secs(config.council.idle_secs),
        total: Duration::from_secs(timeout.unwrap_or(config.council.timeout)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(seated: &Seated) -> Vec<&str> {
        seated
            .roster
            .members()
            .iter()
            .map(|m| m.name.as_str())
            .collect()
    }

    #[test]
    fn who_cannot_take_part_again_is_named_and_the_others_stay() {
        let config = with_agents(&["ann", "bob"]);
        let name = |name: &str| SeatName::new(name).expect("a name");
        let again = |thread: &[&str]| {
            let thread: Vec<SeatName> = thread.iter().map(|n| name(n)).collect();
            seat_again(&config, &SeatRequest::default(), &thread).expect("seats")
        };
        for (thread, present, absent) in [
            (&["bob", "ann"][..], &["bob", "ann"][..], &[][..]),
            (&["cyd", "ann"], &["ann"], &["cyd"]),
            (&["cyd"], &["ann", "bob"], &["cyd"]),
        ] {
            let seated = again(thread);
            assert_eq!(names(&seated), present);
            let left: Vec<&str> = seated
                .absent
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            assert_eq!(left, absent);
        }
    }

    fn with_agents(names: &[&str]) -> Config {
        let mut config = Config::default();
        for name in names {
            let agent = AgentConfig {
                backend: "openai".into(),
                ..AgentConfig::default()
            };
            config.agents.insert((*name).to_owned(), agent);
        }
        config
    }

    #[test]
    fn nothing_configured_seats_the_built_in_three_and_a_chair() {
        let seated = seat(&Config::default(), &SeatRequest::default()).unwrap();
        assert!(seated.built_in);
        assert_eq!(names(&seated), BUILT_IN_COUNCIL);
        assert!(seated.roster.members().iter().all(|m| m.backend == LOCAL));
        assert_eq!(seated.roster.chair().unwrap().name.as_str(), CHAIR);
        let mut chosen = Config::default();
        chosen.council.members = BUILT_IN_COUNCIL.map(str::to_owned).to_vec();
        assert!(seat(&chosen, &SeatRequest::default()).unwrap().built_in);
        let model = Some("qwen2.5-1.5b".to_owned());
        chosen.local.model.clone_from(&model);
        assert!(!seat(&chosen, &SeatRequest::default()).unwrap().built_in);
        chosen.local.model = None;
        let named = SeatRequest {
            model,
            ..SeatRequest::default()
        };
        assert!(!seat(&chosen, &named).unwrap().built_in);
        chosen.council.members.pop();
        assert!(!seat(&chosen, &SeatRequest::default()).unwrap().built_in);
    }

    #[test]
    fn the_person_is_before_the_configuration() {
        let mut config = with_agents(&["a", "b", "c"]);
        config.council.members = vec!["b".into(), "a".into()];
        assert_eq!(
            names(&seat(&config, &SeatRequest::default()).unwrap()),
            ["b", "a"]
        );
        let wishes = SeatRequest {
            members: vec!["c".into(), "skeptic".into()],
            temperature: Some(0.1),
            seed: Some(7),
            ..SeatRequest::default()
        };
        let seated = seat(&config, &wishes).unwrap();
        assert_eq!(names(&seated), ["c", "skeptic"]);
        assert_eq!(seated.roster.members()[1].backend, LOCAL);
        let seeds: Vec<_> = seated
            .roster
            .members()
            .iter()
            .map(|m| m.sampling.seed)
            .collect();
        assert_eq!(seeds, [Some(7), Some(8)], "each member has its own chance");
        assert!(
            seated
                .roster
                .members()
                .iter()
                .all(|m| m.sampling.temperature == Some(0.1))
        );
    }

    #[test]
    fn an_unknown_name_is_told_with_the_nearest_and_all_choices() {
        let wishes = SeatRequest {
            members: vec!["claud".into()],
            ..SeatRequest::default()
        };
        let error = seat(&with_agents(&["claude", "codex"]), &wishes).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("did you mean `claude`"), "{text}");
        assert!(text.contains("codex") && text.contains("skeptic"), "{text}");
    }

    #[test]
    fn a_known_program_sits_without_configuration_and_may_write_only_when_asked_to() {
        let wishes = SeatRequest {
            members: vec!["claude".into(), "codex".into()],
            ..SeatRequest::default()
        };
        let seated = seat(&Config::default(), &wishes).unwrap();
        let members = seated.roster.members();
        assert_eq!(
            [&members[0].backend, &members[1].backend],
            ["claude_code", "codex"]
        );
        assert!(members.iter().all(|member| !member.writable));
        let mut config = with_agents(&["a", "b"]);
        config.agents.get_mut("a").unwrap().writable = Some(true);
        let seated = seat(&config, &SeatRequest::default()).unwrap();
        let writes: Vec<bool> = seated.roster.members().iter().map(|m| m.writable).collect();
        assert_eq!(writes, [true, false]);
        assert!(!seated.roster.chair().unwrap().writable);
        let wishes = SeatRequest {
            writable: Some(false),
            ..SeatRequest::default()
        };
        let seated = seat(&config, &wishes).unwrap();
        assert!(seated.roster.members().iter().all(|m| !m.writable));
    }

    #[test]
    fn a_member_called_chair_keeps_its_name() {
        let seated = seat(&with_agents(&["chair", "x"]), &SeatRequest::default()).unwrap();
        assert_eq!(seated.roster.chair().unwrap().name.as_str(), "the-chair");
    }
}
