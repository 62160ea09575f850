//! The personas that come with the program: one Markdown file each, one row each.

/// A persona: how a voice thinks, apart from the model that speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Role {
    /// Its handle; a built-in member is called by it.
    pub name: &'static str,
    /// What it does, for people.
    pub title: &'static str,
    /// How freely it picks words, 0 to 2.
    pub temperature: f32,
    /// What the member is told about itself.
    pub persona: &'static str,
}

/// Every role.
pub const ROLES: &[Role] = &[
    Role {
        name: "pragmatist",
        title: "the simplest thing that works",
        temperature: 0.6,
        persona: include_str!("pragmatist.md"),
    },
    Role {
        name: "skeptic",
        title: "risks and hidden assumptions",
        temperature: 0.6,
        persona: include_str!("skeptic.md"),
    },
    Role {
        name: "explorer",
        title: "ways that others overlook",
        temperature: 0.9,
        persona: include_str!("explorer.md"),
    },
    Role {
        name: CHAIR,
        title: "concludes from what the members said",
        temperature: 0.3,
        persona: include_str!("chair.md"),
    },
];

/// The members of the council that needs no configuration, in order.
pub const BUILT_IN_COUNCIL: [&str; 3] = ["pragmatist", "skeptic", "explorer"];

/// The role of the service that concludes.
pub const CHAIR: &str = "chair";

/// The role of a name.
pub fn find(name: &str) -> Option<&'static Role> {
    ROLES.iter().find(|role| role.name == name)
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
