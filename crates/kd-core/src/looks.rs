//! The mark and color of a speaker, by name: the same in every thread and window, wherever a member sits.

use std::collections::BTreeSet;

/// Colors: numbers that differ by less have different colors.
const COLORS: usize = 12;
/// Pairs of a mark and a color.
const LOOKS: usize = 84;

/// Names with a number of their own, so that the usual members never share a mark.
const USUAL: [(&str, usize); 8] = [
    ("claude", 0),
    ("codex", 1),
    ("cursor", 2),
    ("gemini", 3),
    ("opencode", 4),
    ("pragmatist", 0),
    ("skeptic", 1),
    ("explorer", 2),
];

/// Returns the number of a speaker's mark and color among these members. It depends on the name; of names that would share
/// one, the first in the alphabet gets it, and the others the next free ones. A speaker that is no member comes last.
pub fn number<'a>(name: &str, members: impl IntoIterator<Item = &'a str>) -> usize {
    let mut others: Vec<&str> = members.into_iter().collect();
    others.sort_unstable();
    others.dedup();
    let mut taken = BTreeSet::new();
    for other in others {
        let number = free(other, &taken);
        if other == name {
            return number;
        }
        taken.insert(number);
    }
    free(name, &taken)
}

/// Returns the first free number from the one of a name on.
fn free(name: &str, taken: &BTreeSet<usize>) -> usize {
    let usual = USUAL.iter().find(|(usual, _)| *usual == name);
    let own = usual.map_or_else(|| hash(name) % COLORS, |(_, number)| *number);
    let mut all = (own..).map(|number| number % LOOKS);
    all.by_ref()
        .take(LOOKS)
        .find(|number| !taken.contains(number))
        .unwrap_or(own)
}

/// FNV-1a: the same in every version and on every machine.
fn hash(name: &str) -> usize {
    let step = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    name.bytes().fold(0x811c_9dc5, step) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_look_wherever_it_sits() {
        let look = |name: &str, members: &[&str]| number(name, members.iter().copied());
        for members in [
            &["claude", "codex", "cursor"][..],
            &["cursor", "claude", "codex"],
            &["codex", "cursor"],
            &["claude"],
            &[],
        ] {
            let looks = ["claude", "codex", "cursor"].map(|name| look(name, members));
            assert_eq!(looks, [0, 1, 2], "{members:?}");
        }
        // Those without a number of their own keep theirs as well.
        let alone = look("ada", &["ada"]);
        assert_eq!(look("ada", &["zoe", "bob", "ada"]), alone);
        assert_eq!(look("ada", &[]), alone);
    }

    #[test]
    fn no_two_members_share_a_look() {
        let names: Vec<String> = (0..LOOKS).map(|n| format!("member-{n}")).collect();
        let members = || names.iter().map(String::as_str);
        let looks: BTreeSet<usize> = members().map(|name| number(name, members())).collect();
        assert_eq!(looks.len(), LOOKS);
        // A service is told apart from the members, and too many of them still have one.
        let few = || ["claude", "pragmatist"].into_iter();
        let all = BTreeSet::from(["claude", "pragmatist", "codex"].map(|name| number(name, few())));
        assert_eq!(all.len(), 3);
        assert!(number("one-too-many", members()) < LOOKS);
    }
}
