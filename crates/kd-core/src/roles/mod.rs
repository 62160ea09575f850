//! The built-in personas: one Markdown file and one table row each.

/// A persona: a way of thinking, independent of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Role {
    /// Its name, also used for a built-in member.
    pub name: &'static str,
    /// Description for users.
    pub title: &'static str,
    /// Sampling temperature, 0 to 2.
    pub temperature: f32,
    /// The persona text in the member's prompt.
    pub persona: &'static str,
    /// Its duties in a deliberation.
    pub duties: &'static [Duty],
}

/// A duty in a deliberation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Gives an opinion.
    Opine,
    /// Reviews the opinions of others.
    Review,
    /// Votes.
    Vote,
    /// Concludes.
    Conclude,
    /// Breaks ties.
    Arbitrate,
    /// Summarizes between passes.
    Moderate,
    /// Joins if agreement is low, then acts as a member.
    Reserve,
}

/// The duties of a member.
const MEMBER: &[Duty] = &[Duty::Opine, Duty::Review, Duty::Vote];
/// The duties of a judge.
const JUDGE: &[Duty] = &[Duty::Review, Duty::Vote];

/// All roles.
pub const ROLES: &[Role] = &[
    Role {
        name: "pragmatist",
        title: "the simplest thing that works",
        temperature: 0.6,
        persona: include_str!("pragmatist.md"),
        duties: MEMBER,
    },
    Role {
        name: "skeptic",
        title: "risks and hidden assumptions",
        temperature: 0.6,
        persona: include_str!("skeptic.md"),
        duties: MEMBER,
    },
    Role {
        name: "explorer",
        title: "ways that others overlook",
        temperature: 0.9,
        persona: include_str!("explorer.md"),
        duties: MEMBER,
    },
    Role {
        name: CHAIR,
        title: "concludes from what the members said",
        temperature: 0.3,
        persona: include_str!("chair.md"),
        duties: &[Duty::Conclude],
    },
    Role {
        name: "opinion-giver",
        title: "a reasoned position of its own",
        temperature: 0.6,
        persona: include_str!("opinion-giver.md"),
        duties: MEMBER,
    },
    Role {
        name: "reviewer",
        title: "judges the opinions of others",
        temperature: 0.3,
        persona: include_str!("reviewer.md"),
        duties: JUDGE,
    },
    Role {
        name: "synthesizer",
        title: "combines all perspectives and concludes",
        temperature: 0.3,
        persona: include_str!("synthesizer.md"),
        duties: &[Duty::Conclude],
    },
    Role {
        name: "devil-advocate",
        title: "challenges the emerging consensus",
        temperature: 0.5,
        persona: include_str!("devil-advocate.md"),
        duties: JUDGE,
    },
    Role {
        name: "fact-checker",
        title: "verifies claims",
        temperature: 0.2,
        persona: include_str!("fact-checker.md"),
        duties: JUDGE,
    },
    Role {
        name: "domain-expert",
        title: "specialized knowledge",
        temperature: 0.5,
        persona: include_str!("domain-expert.md"),
        duties: MEMBER,
    },
    Role {
        name: "moderator",
        title: "guides, and sums up between passes",
        temperature: 0.3,
        persona: include_str!("moderator.md"),
        duties: &[Duty::Moderate],
    },
    Role {
        name: "creative",
        title: "novel ideas",
        temperature: 0.9,
        persona: include_str!("creative.md"),
        duties: MEMBER,
    },
    Role {
        name: "arbiter",
        title: "breaks ties",
        temperature: 0.2,
        persona: include_str!("arbiter.md"),
        duties: &[Duty::Arbitrate],
    },
    Role {
        name: "backup",
        title: "joins when agreement is low",
        temperature: 0.6,
        persona: include_str!("backup.md"),
        duties: &[Duty::Reserve],
    },
];

/// The members of the built-in council, in order.
pub const BUILT_IN_COUNCIL: [&str; 3] = ["pragmatist", "skeptic", "explorer"];

/// The role of the service that concludes.
pub const CHAIR: &str = "chair";
/// The name of who concludes where a member is named like [`CHAIR`].
pub const OTHER_CHAIR: &str = "the-chair";

/// Finds a role by name.
pub fn find(name: &str) -> Option<&'static Role> {
    ROLES.iter().find(|role| role.name == name)
}

/// Returns the duties of a role. An unknown role has the duties of a member.
pub fn duties(name: &str) -> &'static [Duty] {
    find(name).map_or(MEMBER, |role| role.duties)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SeatName;

    #[test]
    fn every_role_can_take_a_seat_and_is_short() {
        for role in ROLES {
            assert!(SeatName::new(role.name).is_ok(), "{}", role.name);
            assert_eq!(find(role.name), Some(role), "a name stands twice");
            assert!((0.0..=2.0).contains(&role.temperature));
            let words = role.persona.split_whitespace().count();
            assert!((10..60).contains(&words), "{}: {words} words", role.name);
        }
        assert!(BUILT_IN_COUNCIL.iter().all(|name| find(name).is_some()));
    }
}
