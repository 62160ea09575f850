//! Independent pieces of evidence for an option: its place in the reply, and what the reply says about it and the others.

use super::clauses::{self, Before, Role};
use super::gate_mentions::tells_of_others;
use super::options::{Mention, Options};
use super::prose;
use super::spoken::{DEPENDS, Spoken};
use super::weights::{self, Weighed, Weight};
use super::{cues, gate_account};
use std::collections::BTreeSet;

/// The evidence for one option in a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The first sentence with an option names no other one.
    pub(super) first: bool,
    /// The first sentence with an option names only other ones.
    pub(super) opens_otherwise: bool,
    /// The last sentence with an option names no other one.
    pub(super) last: bool,
    /// The author chooses it, concludes with it, or calls it the best, and does so with no other one.
    pub(super) own: bool,
    /// The last mention of the reply, in its last sentence, praises or chooses it.
    pub(super) closes: bool,
    /// The reply argues against every other option.
    pub(super) against: bool,
    /// It alone is in bold or ticked.
    pub(super) marked: bool,
    /// It has its own sentences, and the other ones, all named, share theirs: `Only tea is hot. Milk and juice are cold.`
    pub(super) apart: bool,
    /// The reply does not argue against it, does not quote it and sets no condition; and it praises no other option.
    pub(super) unopposed: bool,
}

impl Evidence {
    /// Returns whether the option has the evidence that its weight needs. An option that is only named may be one of
    /// several that the reply considers, unless the reply begins and ends with it.
    pub(super) fn supports(self, weight: Option<Weight>) -> bool {
        let framed = self.first && self.last;
        match weight {
            Some(Weight::Named) => framed,
            Some(Weight::Praised) if self.opens_otherwise => self.against,
            Some(Weight::Praised) => framed || self.closes || self.last && self.against,
            Some(Weight::Best) => {
                self.first || self.last || self.closes || self.against || self.marked
            }
            _ => true,
        }
    }

    /// Returns whether two independent pieces of evidence name the option.
    pub(super) fn decides(self) -> bool {
        self.unopposed && self.apart
            || self.marked && (self.own || self.against || self.first || self.last)
    }
}

/// Returns the evidence for an option in the sentences of a reply and the mentions in them.
pub(super) fn of(
    item: usize,
    text: &str,
    weighed: &[Weighed],
    sentences: &[Spoken],
    options: &Options,
) -> Evidence {
    let named = |place: usize| {
        let here = weighed.iter().filter(move |w| w.place == place);
        here.filter(|w| w.weight >= Weight::Named)
    };
    let only = |place: Option<usize>| {
        place.is_some_and(|at| named(at).next().is_some() && named(at).all(|w| w.item == item))
    };
    let first = weighed.iter().map(|w| w.place).min();
    let last = weighed.iter().map(|w| w.place).max();
    // Not `My colleague prefers tea.`
    let own =
        |w: &&Weighed| w.weight >= Weight::Best && !tells_of_others(&sentences[w.place].lower);
    let mut owned = weighed.iter().filter(own).peekable();
    let says = |place: &usize| {
        let said = &sentences[*place];
        !said.sentence.is_aside() && !super::sayings::is_courtesy(&said.lower)
    };
    // The last mention that praises or chooses, if no other one follows.
    let mut upheld = weighed.iter().rev().filter(|w| w.weight >= Weight::Named);
    let final_one = upheld.next().filter(|w| w.weight >= Weight::Praised);
    let end = (0..sentences.len()).rev().find(says);
    Evidence {
        first: only(first),
        opens_otherwise: first.is_some_and(|at| {
            let mut here = weighed.iter().filter(|w| w.place == at);
            here.all(|w| w.item != item && w.weight > Weight::Against)
        }),
        last: only(last),
        own: owned.peek().is_some() && owned.all(|w| w.item == item),
        closes: final_one.is_some_and(|w| w.item == item && Some(w.place) >= end),
        against: (0..options.count())
            .all(|other| other == item || is_faulted(other, weighed, sentences)),
        marked: marked(text, options) == Some(item),
        apart: is_apart(item, weighed, sentences, options),
        unopposed: is_unopposed(item, weighed, sentences, options),
    }
}

/// Words of a question within a sentence.
const ASKS: &[&str] = &[
    "whether",
    "which one",
    "which is",
    "ob",
    "welche*",
    "lequel",
    "laquelle",
    "quel",
    "quelle",
    "cuál",
    "是否",
    "哪个",
    "哪一个",
    "哪种",
];

/// Words that begin a relative clause.
const RELATIVES: [&str; 14] = [
    "who", "which", "whose", "that", "der", "die", "das", "dem", "den", "deren", "qui", "que",
    "quien", "dont",
];

/// Returns whether an option has its own sentences while the other ones share theirs.
fn is_apart(item: usize, weighed: &[Weighed], sentences: &[Spoken], options: &Options) -> bool {
    let items =
        |said: &Spoken| -> BTreeSet<usize> { said.mentions.iter().map(|m| m.item).collect() };
    let named: Vec<BTreeSet<usize>> = sentences.iter().map(items).collect();
    let others = (0..options.count()).filter(|other| *other != item);
    let shared = others.clone().all(|other| {
        let mut own = named
            .iter()
            .filter(|items| items.contains(&other))
            .peekable();
        own.peek().is_some() && own.all(|items| items.len() > 1 && !items.contains(&item))
    });
    // `The one who followed on Bismarck`: not what the sentence is about.
    let related = |w: &Weighed| {
        let clause = sentences[w.place].sentence.clauses.get(w.clause);
        clause.is_some_and(|c| {
            c.before == Before::Comma
                && RELATIVES.iter().any(|word| clauses::begins(&c.lower, word))
        })
    };
    let claims = |w: &&Weighed| w.item == item && w.weight >= Weight::Named && !related(w);
    let plain = weighed.iter().filter(claims).count() > 0;
    // `The vote is open between milk and juice.`
    let asks = |s: &Spoken| {
        let between = |m: &Mention| weights::is_between(&s.sentence, m);
        let open = s.sentence.asks() || cues::has(&s.lower, ASKS) || s.lower.contains("之间");
        !s.mentions.is_empty() && (open || s.mentions.iter().any(between))
    };
    options.count() > 2 && shared && plain && !sentences.iter().any(asks)
}

/// Returns whether the reply does not argue against an option, does not quote it, sets no condition, and praises no
/// other option.
fn is_unopposed(item: usize, weighed: &[Weighed], sentences: &[Spoken], options: &Options) -> bool {
    let praised = |w: &Weighed| w.item != item && w.weight >= Weight::Praised;
    let names = |s: &&Spoken| !s.mentions.is_empty();
    let open = |s: &Spoken| {
        s.sentence.has(Role::Condition)
            || cues::has(&s.lower, DEPENDS)
            || cues::has(&s.lower, cues::HYPOTHETICAL)
            || s.sentence.text.contains(['"', '“', '„', '«'])
    };
    // `A` may be a word.
    let letters = options.names().any(|name| name.chars().count() == 1);
    !letters
        && !weighed.iter().any(praised)
        && !is_faulted(item, weighed, sentences)
        && !sentences.iter().filter(names).any(open)
}

/// Returns whether the reply argues against an option.
fn is_faulted(item: usize, weighed: &[Weighed], sentences: &[Spoken]) -> bool {
    let against = |w: &Weighed| w.item == item && w.weight == Weight::Against;
    let faulted = |said: &Spoken| {
        let mut own = said.mentions.iter().filter(|m| m.item == item);
        own.any(|m| {
            let at = said.sentence.clause_at(m.start);
            let Some(clause) = said.sentence.clauses.get(at) else {
                return false;
            };
            let next = said.sentence.clauses.get(at + 1);
            m.rejected
                || weights::is_faulted(&said.sentence, at, m)
                || gate_account::is_negative(&clause.lower)
                || matches!(clause.role, Role::Condition | Role::Concession)
                || next
                    .is_some_and(|c| c.role == Role::Contrast || cues::has(&c.lower, cues::FAULTS))
        })
    };
    weighed.iter().any(against) || sentences.iter().any(faulted)
}

/// Returns the only option that is alone in bold, or on a line with a tick.
fn marked(text: &str, options: &Options) -> Option<usize> {
    let bold = text.split("**").skip(1).step_by(2);
    let mut items: Vec<usize> = bold
        .filter_map(|b| options.stated(&prose::bare(b)))
        .collect();
    let ticked = text.lines().filter(|l| l.contains(['✅', '✔', '☑', '👉']));
    items.extend(
        ticked.filter_map(|line| match options.mentions(line).as_slice() {
            [one, rest @ ..] if rest.iter().all(|m| m.item == one.item) => Some(one.item),
            _ => None,
        }),
    );
    let first = *items.first()?;
    items.iter().all(|at| *at == first).then_some(first)
}
