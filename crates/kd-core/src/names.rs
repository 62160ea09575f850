//! Names with a meaning to kd, and detection of look-alikes.

use crate::clean::is_invisible;
use unicode_normalization::UnicodeNormalization;

/// The name of the user in every thread.
pub const KING: &str = "king";

/// The word that addresses all members.
pub const ALL: &str = "all";
/// Signs the verdict of a deliberation.
pub const COUNCIL: &str = "council";
/// Signs a forum's own posts.
pub const FORUM: &str = "forum";
/// Labels instructions in prompts.
pub const SYSTEM: &str = "system";

/// A name that no member can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The name, in lower case.
    pub name: &'static str,
    /// Its meaning.
    pub why: &'static str,
}

/// Every reserved name.
pub const RESERVED: &[Reserved] = &[
    Reserved {
        name: KING,
        why: "`king` names the user in every thread",
    },
    Reserved {
        name: ALL,
        why: "`all` addresses every member",
    },
    Reserved {
        name: COUNCIL,
        why: "`council` signs the verdict of a deliberation",
    },
    Reserved {
        name: FORUM,
        why: "`forum` signs the forum's own posts",
    },
    Reserved {
        name: SYSTEM,
        why: "`system` labels instructions in prompts",
    },
];

/// Returns the reserved name that a text is or looks like: `King`, `_council_` and `сouncil` with a Cyrillic letter
/// are caught too.
pub fn reserved(name: &str) -> Option<&'static Reserved> {
    if is_guest(name) {
        return Some(&GUESTS);
    }
    RESERVED.iter().find(|row| look_alike(row.name, name))
}

/// Prefix of the names of MCP callers known neither by `--as` nor by a token.
pub const GUEST: &str = "guest-";

/// The name of a forum reader without a name.
pub const READER: &str = "guest";

const GUESTS: Reserved = Reserved {
    name: READER,
    why: "`guest-…` signs posts of callers without a name of their own",
};

/// Returns whether a name is or looks like a guest name.
fn is_guest(name: &str) -> bool {
    let guest = skeleton(&format!("{GUEST}x"));
    let mark = guest.trim_end_matches('x');
    skeleton(name).starts_with(mark) || look_alike(GUESTS.name, name)
}

/// Returns whether a reader could mistake one name for the other: ignores case, marks at the ends, compatibility forms,
/// letters of other alphabets and invisible characters.
pub fn look_alike(a: &str, b: &str) -> bool {
    skeleton(a) == skeleton(b)
}

/// Returns the form that look-alike names share (Unicode TS #39).
pub fn skeleton(name: &str) -> String {
    let folded: String = name
        .nfkc()
        .filter(|c| !is_invisible(*c))
        .flat_map(char::to_lowercase)
        .collect();
    let bare = folded.trim_matches(|c: char| !c.is_alphanumeric());
    unicode_security::skeleton(bare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SeatName;

    /// Returns spellings of a name that look the same, or nearly.
    fn disguises(name: &str) -> Vec<String> {
        let cyrillic: String = name
            .chars()
            .map(|c| match c {
                'a' => 'а',
                'c' => 'с',
                'e' => 'е',
                'i' => 'і',
                'o' => 'о',
                's' => 'ѕ',
                'y' => 'у',
                c => c,
            })
            .collect();
        let fullwidth: String = name
            .chars()
            .filter_map(|c| char::from_u32(c as u32 + 0xfee0))
            .collect();
        let mut title = name.to_owned();
        title[..1].make_ascii_uppercase();
        vec![
            name.to_owned(),
            name.to_uppercase(),
            title,
            format!("_{name}_"),
            format!("{name}."),
            format!("-{name}"),
            format!("{name}\u{3164}"),
            fullwidth,
            cyrillic,
        ]
    }

    #[test]
    fn no_member_is_called_like_a_reserved_name_in_any_disguise() {
        for row in RESERVED {
            for disguise in disguises(row.name) {
                assert_eq!(reserved(&disguise), Some(row), "{disguise:?}");
                assert!(SeatName::new(&*disguise).is_err(), "{disguise:?}");
            }
            assert!(row.why.contains(row.name), "{}", row.name);
        }
        for free in ["claude", "kings", "councillor", "chair", "systems", "模型"] {
            assert_eq!(reserved(free), None, "{free}");
        }
    }

    #[test]
    fn names_of_other_alphabets_stay_apart() {
        assert!(look_alike("claude", "сlaude"));
        assert!(!look_alike("claude", "claudia"));
        assert!(!look_alike("模型", "模形"));
    }
}
