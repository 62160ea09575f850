//! The presets: members and voting rule.

/// A preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its purpose, for users.
    pub doc: &'static str,
    /// Roles in member order; the synthesizer is last.
    pub roles: &'static [&'static str],
    /// The voting rule.
    pub voting: &'static str,
    /// Whether it is for questions that should cost little.
    pub is_quick: bool,
}

/// All presets, smallest first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "small",
        doc: "quick and cheap: three opinions, a conclusion",
        roles: &[
            "opinion-giver",
            "opinion-giver",
            "opinion-giver",
            "synthesizer",
        ],
        voting: "plurality",
        is_quick: true,
    },
    Preset {
        name: "standard",
        doc: "most questions: three opinions of different temper, a reviewer, a conclusion",
        roles: &[
            "opinion-giver",
            "skeptic",
            "domain-expert",
            "reviewer",
            "synthesizer",
        ],
        voting: "plurality",
        is_quick: false,
    },
    Preset {
        name: "reasoning",
        doc: "to be worked out: independent solutions, checked by a fact-checker",
        roles: &[
            "opinion-giver",
            "opinion-giver",
            "domain-expert",
            "fact-checker",
            "synthesizer",
        ],
        voting: "weighted",
        is_quick: false,
    },
    Preset {
        name: "diverse",
        doc: "several sides: opposed tempers, an advocate of the devil, ranked ballots",
        roles: &[
            "opinion-giver",
            "skeptic",
            "creative",
            "domain-expert",
            "devil-advocate",
            "fact-checker",
            "synthesizer",
        ],
        voting: "irv",
        is_quick: false,
    },
];

/// Finds a preset by name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}

/// The roles of additional members, in turn.
pub(super) const MORE: &[&str] = &[
    "opinion-giver",
    "creative",
    "skeptic",
    "domain-expert",
    "reviewer",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::{self, Duty};

    #[test]
    fn presets_hold_together() {
        for preset in PRESETS {
            assert!((3..=9).contains(&preset.roles.len()), "{}", preset.name);
            assert!(kd_vote::find(preset.voting).is_some(), "{}", preset.name);
            assert!(
                preset.roles.iter().all(|r| roles::find(r).is_some()),
                "{}",
                preset.name
            );
            let opining = preset
                .roles
                .iter()
                .filter(|r| roles::duties(r).contains(&Duty::Opine))
                .count();
            // Two cannot outvote one another.
            assert!(opining >= 3, "{}", preset.name);
            assert_eq!(preset.roles.last(), Some(&"synthesizer"));
        }
    }
}
