//! Stand-ins for the names of members, models and vendors in the texts that members read: each name has its own, the same
//! in the whole deliberation. Otherwise answers that are such names ("Use Claude.", "Use Codex.") would become equal.
//! Replies that use a stand-in get the name back.

use kd_vote::lot;
use std::cell::RefCell;

/// The first letter of a stand-in; letters before it look like labels of answers.
const FIRST: u8 = b'M';
const LETTERS: usize = 14;
/// The first of the private characters that mark replaced names until all are: a stand-in may contain a name.
const MARKS: u32 = 0xf_0000;
/// Maximum number of stand-ins: members can name as many models as they like. Further names are all the same.
const STAND_INS_MAX: usize = 100;
const FURTHER: &str = "another model";

/// The stand-ins of a deliberation or a review, in the order of their first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct StandIns {
    seed: u64,
    /// The text that all members read, in lower case.
    subject: String,
    known: RefCell<Vec<StandIn>>,
}

#[derive(Clone, Debug)]
struct StandIn {
    /// The name in lower case, without separators.
    key: String,
    /// The name as it was first written.
    name: String,
    shown: String,
}

impl StandIns {
    /// Creates stand-ins, of which none is in the text that all members read.
    pub(crate) fn new(seed: u64, subject: &str) -> Self {
        Self {
            seed,
            subject: subject.to_lowercase(),
            known: RefCell::default(),
        }
    }

    /// Returns the mark of a name, for [`Self::shown`].
    pub(super) fn mark(&self, name: &str) -> String {
        let key: String = name
            .chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect();
        let mut known = self.known.borrow_mut();
        let at = match known.iter().position(|k| k.key == key) {
            Some(at) => at,
            None if known.len() >= STAND_INS_MAX => return FURTHER.to_owned(),
            None => {
                let shown = self.drawn(&key, &known);
                known.push(StandIn {
                    key,
                    name: name.to_owned(),
                    shown,
                });
                known.len() - 1
            }
        };
        let mark = u32::try_from(at)
            .ok()
            .and_then(|at| char::from_u32(MARKS + at));
        mark.map_or_else(String::new, String::from)
    }

    /// Replaces marks by the stand-ins.
    pub(super) fn shown(&self, text: &str) -> String {
        let known = self.known.borrow();
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            let at = u32::from(c).checked_sub(MARKS).map(|at| at as usize);
            match at.and_then(|at| known.get(at)) {
                Some(stand_in) => out.push_str(&stand_in.shown),
                None => out.push(c),
            }
        }
        out
    }

    /// Returns the stand-ins in a prompt, each with its name.
    pub(super) fn in_prompt(&self, prompt: &str) -> Vec<(String, String)> {
        let known = self.known.borrow();
        let shown = known.iter().filter(|k| prompt.contains(&k.shown));
        shown.map(|k| (k.shown.clone(), k.name.clone())).collect()
    }

    /// Draws a stand-in that is neither in use nor in the text that all members read.
    fn drawn(&self, key: &str, known: &[StandIn]) -> String {
        let first = usize::from(lot(self.seed, "stand-in", key)[0]);
        let mut turns = 0;
        loop {
            for step in 0..LETTERS {
                let letter = char::from(FIRST + ((first + step) % LETTERS) as u8);
                let number = match turns {
                    0 => String::new(),
                    n => (n + 1).to_string(),
                };
                let shown = format!("member {letter}{number}");
                let is_new = known.iter().all(|k| k.shown != shown);
                if is_new && !self.subject.contains(&shown.to_lowercase()) {
                    return shown;
                }
            }
            turns += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_stand_ins_of_their_own_and_keep_them() {
        let stand_ins = StandIns::new(7, "Is member P, member Q or Member R right?");
        let marks: Vec<String> = (0..40)
            .map(|n| stand_ins.mark(&format!("name {n}")))
            .collect();
        let shown: Vec<String> = marks.iter().map(|m| stand_ins.shown(m)).collect();
        let mut distinct = shown.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 40, "{shown:?}");
        for taken in ["member P", "member Q", "member R"] {
            assert!(!shown.iter().any(|s| s == taken), "{shown:?}");
        }
        assert_eq!(stand_ins.mark("NAME-7"), marks[7]);
        // A reply that names thousands of models costs no more than one that names a hundred.
        let many: Vec<String> = (0..5000)
            .map(|n| stand_ins.mark(&format!("name {n}")))
            .collect();
        assert_eq!(stand_ins.known.borrow().len(), STAND_INS_MAX);
        assert_eq!((&many[7], many[4999].as_str()), (&marks[7], FURTHER));
        assert_eq!(
            stand_ins.in_prompt(&format!("So says {}.", shown[7])),
            [(shown[7].clone(), "name 7".to_owned())]
        );
    }
}
