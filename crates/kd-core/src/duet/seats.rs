//! Who sits in a duet. Comes in: the configuration and what the person asked for. Goes out: a fast seat, a rigorous one,
//! and maybe an arbiter.

use super::prompts::{FAST, RIGOROUS};
use crate::config::Config;
use crate::ids::SeatName;
use crate::roster::{Member, Roster};
use crate::seating::{self, LOCAL, SeatingError, Wishes};

/// The names of the seats where one member takes both.
const FAST_SEAT: &str = "fast";
const RIGOROUS_SEAT: &str = "rigorous";
const ARBITER_SEAT: &str = "arbiter";

/// How freely the built-in model picks words in each seat.
const FAST_TEMPERATURE: f32 = 0.6;
const RIGOROUS_TEMPERATURE: f32 = 0.3;

/// The seats of a duet. All names differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Seats {
    /// Looks first.
    pub fast: Member,
    /// Checks, and answers when the exchange is cut.
    pub rigorous: Member,
    /// Answers in place of the rigorous seat when the exchange is cut.
    pub arbiter: Option<Member>,
}

/// Whom the person wants this time, over the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DuetWishes {
    /// The fast seat.
    pub fast: Option<String>,
    /// The rigorous seat.
    pub rigorous: Option<String>,
    /// The arbiter.
    pub arbiter: Option<String>,
    /// Model, temperature and the like; `members` is not looked at.
    pub all: Wishes,
}

impl Seats {
    /// The member of a seat.
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

    /// Who is written to by a seat: the fast one writes to the rigorous one, everybody else to the fast one.
    pub fn other(&self, seat: &SeatName) -> &SeatName {
        if *seat == self.fast.name {
            &self.rigorous.name
        } else {
            &self.fast.name
        }
    }

    /// Both seats as members, the arbiter as their chair: what an engine looks names up in.
    pub fn roster(&self) -> Roster {
        Roster::new(
            vec![self.fast.clone(), self.rigorous.clone()],
            self.arbiter.clone(),
        )
    }

    /// Whether the built-in model has both seats.
    pub fn built_in(&self) -> bool {
        self.fast.backend == LOCAL && self.rigorous.backend == LOCAL
    }
}

/// Seats a duet: whom the person names, else `think.fast` and `think.rigorous`, else the first two members of the
/// council, else the built-in model twice. One member in two seats sits there under the names of the seats.
pub fn seat(config: &Config, wishes: &DuetWishes) -> Result<Seats, SeatingError> {
    let council: Vec<&String> = if config.council.members.is_empty() {
        config.agents.keys().collect()
    } else {
        config.council.members.iter().collect()
    };
    let think = &config.think;
    let fast = wishes.fast.as_ref().or(think.fast.as_ref());
    let rigorous = wishes.rigorous.as_ref().or(think.rigorous.as_ref());
    // A seat that is not named is taken by a member that has no seat yet, if there is one.
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

/// Seats a duet among those who sit in a conversation: `think.fast` and `think.rigorous` where they sit there, else the
/// first who are free.
///
/// # Errors
/// When nobody sits there, or `think.arbiter` names nobody.
pub fn among(config: &Config, wishes: &Wishes, members: &[&Member]) -> Result<Seats, SeatingError> {
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
            &DuetWishes {
                all: wishes.clone(),
                ..DuetWishes::default()
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

/// An arbiter under a name of its own.
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

/// A member in the first or second seat; `shared` if it has both.
fn one(
    config: &Config,
    wishes: &DuetWishes,
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

/// A member with the part that it plays in the first or second seat.
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
        let wishes = DuetWishes {
            fast: fast.map(str::to_owned),
            rigorous: rigorous.map(str::to_owned),
            ..DuetWishes::default()
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
        let seats = seat(&config, &DuetWishes::default()).unwrap();
        assert_eq!(seats.arbiter.unwrap().name.as_str(), "arbiter");
    }

    #[test]
    fn in_a_conversation_those_sit_who_are_there() {
        let mut config = with(&["a", "b", "c"]);
        let all = seating::seat(&config, &Wishes::default()).unwrap().roster;
        let members: Vec<&Member> = all.members().iter().collect();
        let names = |config: &Config, members: &[&Member]| {
            let seats = among(config, &Wishes::default(), members).unwrap();
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
        let wishes = DuetWishes {
            fast: Some("claud".into()),
            ..DuetWishes::default()
        };
        let error = seat(&with(&["claude"]), &wishes).unwrap_err().to_string();
        assert!(error.contains("did you mean `claude`"), "{error}");
    }
}
