//! Chooses the members of a debate. Input: the settings and the options of this run. Output: a fast and a rigorous
//! member, and optionally an arbiter.

use super::prompts::{FAST, RIGOROUS};
use crate::config::Config;
use crate::ids::SeatName;
use crate::roster::{Member, Roster};
use crate::seating::{self, LOCAL, SeatRequest, SeatingError};

/// The names used if one member has both parts.
const FAST_SEAT: &str = "fast";
const RIGOROUS_SEAT: &str = "rigorous";
const ARBITER_SEAT: &str = "arbiter";

/// Temperature of the built-in model in each part.
const FAST_TEMPERATURE: f32 = 0.6;
const RIGOROUS_TEMPERATURE: f32 = 0.3;

/// The members of a debate. All names differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Seats {
    /// Replies first.
    pub fast: Member,
    /// Checks, and answers if the exchange is cut.
    pub rigorous: Member,
    /// Answers in place of the rigorous member if the exchange is cut.
    pub arbiter: Option<Member>,
}

/// Options of this run that override the settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DuetRequest {
    /// The fast member.
    pub fast: Option<String>,
    /// The rigorous member.
    pub rigorous: Option<String>,
    /// The arbiter.
    pub arbiter: Option<String>,
    /// Model, temperature and other overrides; `members` is ignored.
    pub all: SeatRequest,
}

impl Seats {
    /// Returns the member of a name.
    pub fn get(&self, seat: &SeatName) -> Option<&Member> {
        [
            Some(&self.fast),
            Some(&self.rigorous),
            self.arbiter.as_ref(),
        ]
        .into_iter()
        .flatten()
        .find(|m| &m.name == seat)
    }

    /// Returns the recipient of a member's messages: the rigorous member for the fast one, the fast member for all
    /// others.
    pub fn other(&self, seat: &SeatName) -> &SeatName {
        if *seat == self.fast.name {
            &self.rigorous.name
        } else {
            &self.fast.name
        }
    }

    /// Returns both as members and the arbiter as their chair, for name lookups.
    pub fn roster(&self) -> Roster {
        Roster::new(
            vec![self.fast.clone(), self.rigorous.clone()],
            self.arbiter.clone(),
        )
    }

    /// Returns whether the built-in model has both parts.
    pub fn built_in(&self) -> bool {
        self.fast.backend == LOCAL && self.rigorous.backend == LOCAL
    }
}

/// Chooses the members: as named by the user, otherwise `think.fast` and `think.rigorous`, otherwise the first two
/// members of the council, otherwise the built-in model twice. One member with both parts gets the names of the parts.
///
/// # Errors
/// If a name is unknown or invalid.
pub fn seat(config: &Config, wishes: &DuetRequest) -> Result<Seats, SeatingError> {
    let council: Vec<&String> = if config.council.members.is_empty() {
        config.agents.keys().collect()
    } else {
        config.council.members.iter().collect()
    };
    let think = &config.think;
    let fast = wishes.fast.as_ref().or(think.fast.as_ref());
    let rigorous = wishes.rigorous.as_ref().or(think.rigorous.as_ref());
    // An unnamed part goes to a member without one, if possible.
    let free = |taken: Option<&String>| {
        let other = council.iter().find(|name| Some(**name) != taken);
        other.or(council.first()).copied()
    };
    let fast = fast.or_else(|| free(rigorous));
    let rigorous = rigorous.or_else(|| free(fast));
    let both = fast == rigorous;
    let fast = one(config, wishes, fast, 0, both)?;
    let rigorous = one(config, wishes, rigorous, 1, both)?;
    let arbiter = match wishes.arbiter.as_ref().or(think.arbiter.as_ref()) {
        Some(name) => {
            let arbiter = seating::member(config, &wishes.all, name, 2)?;
            Some(as_arbiter(arbiter, &fast, &rigorous)?)
        }
        None => None,
    };
    Ok(Seats {
        fast,
        rigorous,
        arbiter,
    })
}

/// Chooses the members among the members of a conversation: `think.fast` and `think.rigorous` if present, otherwise
/// the first free ones.
///
/// # Errors
/// If there are no members, or `think.arbiter` names an unknown one.
pub fn among(
    config: &Config,
    wishes: &SeatRequest,
    members: &[&Member],
) -> Result<Seats, SeatingError> {
    let think = &config.think;
    let named = |name: &Option<String>| {
        let name = name.as_deref()?;
        members.iter().copied().find(|m| m.name.as_str() == name)
    };
    let free = |taken: Option<&Member>| {
        let other = members.iter().copied();
        let other = other.filter(|m| taken.is_none_or(|t| t.name != m.name));
        other.chain(members.iter().copied()).next()
    };
    let (fast, rigorous) = (named(&think.fast), named(&think.rigorous));
    let fast = fast.or_else(|| free(rigorous));
    let rigorous = rigorous.or_else(|| free(fast));
    let (Some(fast), Some(rigorous)) = (fast, rigorous) else {
        return seat(
            config,
            &DuetRequest {
                all: wishes.clone(),
                ..DuetRequest::default()
            },
        );
    };
    let both = fast.name == rigorous.name;
    let arbiter = match think.arbiter.as_ref() {
        Some(name) => Some(seating::member(config, wishes, name, 2)?),
        None => None,
    };
    let fast = dressed(fast.clone(), 0, both)?;
    let rigorous = dressed(rigorous.clone(), 1, both)?;
    Ok(Seats {
        arbiter: arbiter
            .map(|a| as_arbiter(a, &fast, &rigorous))
            .transpose()?,
        fast,
        rigorous,
    })
}

/// Returns an arbiter under its own name.
fn as_arbiter(
    mut arbiter: Member,
    fast: &Member,
    rigorous: &Member,
) -> Result<Member, SeatingError> {
    if arbiter.name == fast.name || arbiter.name == rigorous.name {
        arbiter.name = SeatName::new(ARBITER_SEAT)?;
    }
    Ok(arbiter)
}

/// Returns the member for the first or second part. `shared`: the same member has both parts.
fn one(
    config: &Config,
    wishes: &DuetRequest,
    name: Option<&String>,
    place: u64,
    shared: bool,
) -> Result<Member, SeatingError> {
    let member = match name {
        Some(name) => seating::member(config, &wishes.all, name, place)?,
        None => {
            let seat = if place == 0 { FAST_SEAT } else { RIGOROUS_SEAT };
            seating::built_in(config, &wishes.all, SeatName::new(seat)?, place)
        }
    };
    dressed(member, place, shared)
}

/// Configures a member for the first or second part.
fn dressed(mut member: Member, place: u64, shared: bool) -> Result<Member, SeatingError> {
    let (seat, persona, temperature) = if place == 0 {
        (FAST_SEAT, FAST, FAST_TEMPERATURE)
    } else {
        (RIGOROUS_SEAT, RIGOROUS, RIGOROUS_TEMPERATURE)
    };
    if shared {
        member.name = SeatName::new(seat)?;
    }
    member.persona = format!("{}\n{}", member.persona.trim(), persona.trim())
        .trim()
        .to_owned();
    member.role = Some(seat.to_owned());
    if member.backend == LOCAL {
        member.sampling.temperature.get_or_insert(temperature);
    }
    Ok(member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AgentConfig;

    fn with(agents: &[&str]) -> Config {
        let mut config = Config::default();
        for name in agents {
            let agent = AgentConfig {
                backend: "openai".into(),
                ..AgentConfig::default()
            };
            config.agents.insert((*name).to_owned(), agent);
        }
        config
    }

    fn names(config: &Config, fast: Option<&str>, rigorous: Option<&str>) -> [String; 2] {
        let wishes = DuetRequest {
            fast: fast.map(str::to_owned),
            rigorous: rigorous.map(str::to_owned),
            ..DuetRequest::default()
        };
        let seats = seat(config, &wishes).unwrap();
        assert_ne!(seats.fast.persona, seats.rigorous.persona);
        [seats.fast.name.to_string(), seats.rigorous.name.to_string()]
    }

    #[test]
    fn there_are_always_two_seats() {
        assert_eq!(names(&with(&[]), None, None), ["fast", "rigorous"]);
        assert_eq!(names(&with(&["a"]), None, None), ["fast", "rigorous"]);
        assert_eq!(names(&with(&["a", "b", "c"]), None, None), ["a", "b"]);
        assert_eq!(names(&with(&["a", "b"]), Some("b"), None), ["b", "a"]);
        assert_eq!(names(&with(&["a", "b"]), None, Some("a")), ["b", "a"]);
        assert_eq!(
            names(&with(&["a"]), Some("a"), Some("a")),
            ["fast", "rigorous"]
        );
        assert_eq!(
            names(&with(&["a"]), Some("skeptic"), None),
            ["skeptic", "a"]
        );
        let mut config = with(&["a", "b", "c"]);
        config.think.fast = Some("c".into());
        config.think.arbiter = Some("c".into());
        assert_eq!(names(&config, None, None), ["c", "a"]);
        let seats = seat(&config, &DuetRequest::default()).unwrap();
        assert_eq!(seats.arbiter.unwrap().name.as_str(), "arbiter");
    }

    #[test]
    fn in_a_conversation_those_sit_who_are_there() {
        let mut config = with(&["a", "b", "c"]);
        let all = seating::seat(&config, &SeatRequest::default())
            .unwrap()
            .roster;
        let members: Vec<&Member> = all.members().iter().collect();
        let names = |config: &Config, members: &[&Member]| {
            let seats = among(config, &SeatRequest::default(), members).unwrap();
            [seats.fast.name.to_string(), seats.rigorous.name.to_string()]
        };
        assert_eq!(names(&config, &members), ["a", "b"]);
        assert_eq!(
            names(&config, &members[1..]),
            ["b", "c"],
            "who is muted is left out"
        );
        assert_eq!(names(&config, &members[..1]), ["fast", "rigorous"]);
        config.think.rigorous = Some("a".into());
        assert_eq!(names(&config, &members), ["b", "a"]);
        config.think.fast = Some("gone".into());
        assert_eq!(names(&config, &members), ["b", "a"]);
    }

    #[test]
    fn an_unknown_name_is_told() {
        let wishes = DuetRequest {
            fast: Some("claud".into()),
            ..DuetRequest::default()
        };
        let error = seat(&with(&["claude"]), &wishes).unwrap_err().to_string();
        assert!(error.contains("did you mean `claude`"), "{error}");
    }
}
