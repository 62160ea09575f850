//! The mark and color of a speaker, by name: the same in every thread and window, wherever a member sits.

use std::collections::BTreeSet;

/// Colors: numbers that differ by less have different colors.
pub const COLORS: usize = 12;
/// Marks, each with one in ASCII: numbers that differ by less than their count have different marks.
const ALL: [(&str, &str); MARKS] = [
    ("●", "o"),
    ("■", "#"),
    ("▲", "^"),
    ("◆", "*"),
    ("★", "+"),
    ("▼", "v"),
    ("✚", "%"),
];
const MARKS: usize = 7;
/// Pairs of a mark and a color. Every pair has a number, because the two have no common divisor.
const LOOKS: usize = MARKS * COLORS;

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

/// Returns the mark of a number, and the same in ASCII.
pub fn mark(number: usize) -> (&'static str, &'static str) {
    ALL[number % MARKS]
}

/// Returns the number of a speaker's mark and color among these members. It depends on the name. If several names
/// would share a mark, a well-known name gets it, otherwise the first in the alphabet; the others get the next free
/// mark, as long as there is one. A speaker that is not a member comes last.
pub fn number<'a>(name: &str, members: impl IntoIterator<Item = &'a str>) -> usize {
    let mut others: Vec<&str> = members.into_iter().collect();
    others.sort_unstable_by_key(|other| (usual(other).is_none(), *other));
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

/// Returns the first free number from the one of a name on: with a free mark and color, else a free mark, else both shared
/// with others, but not with the same one.
fn free(name: &str, taken: &BTreeSet<usize>) -> usize {
    let own = usual(name).unwrap_or_else(|| hash(name) % COLORS);
    let all = || (own..own + LOOKS).map(|number| number % LOOKS);
    let is_free = |number: &usize, of: usize| taken.iter().all(|other| other % of != number % of);
    all()
        .find(|number| is_free(number, MARKS) && is_free(number, COLORS))
        .or_else(|| all().find(|number| is_free(number, MARKS)))
        .or_else(|| all().find(|number| is_free(number, LOOKS)))
        .unwrap_or(own)
}

fn usual(name: &str) -> Option<usize> {
    let usual = USUAL.iter().find(|(usual, _)| *usual == name);
    usual.map(|(_, number)| *number)
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
        // Names without their own number keep their look as well.
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
        // As long as there are enough, they share no mark either, whatever their names.
        for from in 0..LOOKS - MARKS {
            let few = || names[from..from + MARKS].iter().map(String::as_str);
            let marks: BTreeSet<usize> = few().map(|name| number(name, few()) % MARKS).collect();
            assert_eq!(marks.len(), MARKS, "{from}");
        }
        let three = || ["cyd", "dee", "eve"].into_iter();
        let marks: BTreeSet<usize> = three().map(|name| number(name, three()) % MARKS).collect();
        assert_eq!(marks.len(), 3);
        // A service has another look than the members. A name gets a look even if none is free.
        let few = || ["claude", "pragmatist"].into_iter();
        let all = BTreeSet::from(["claude", "pragmatist", "codex"].map(|name| number(name, few())));
        assert_eq!(all.len(), 3);
        assert!(number("one-too-many", members()) < LOOKS);
    }
}
