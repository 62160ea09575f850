//! Weighs what a text says about each option. Every mention gets a weight from its clause: chosen, best, praised,
//! named, or nothing if it is rejected, conditional, conceded or reported. The heaviest option is the answer, unless
//! another one weighs the same or later text retracts it. A misread reply is worse than an unread one: in doubt, it is
//! ambiguous.

use super::candidates::{Candidate, Standing};
use super::clauses::{self, Form, Role, Sentence};
use super::cues;
use super::evidence;
use super::gate::{self, Open};
use super::options::{Mention, Options};
use super::said::Said;
use super::spoken::{DEPENDS, Spoken, prepared};
use super::standing::says_both;
use super::voices;
use super::weights::{Weighed, Weight, alternatives, of_sentence};

/// A sentence that leaves the choice open.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    place: usize,
    /// Whether it explicitly makes no choice, whatever came before.
    outright: bool,
}

/// Words of a guess.
const MAYBE: &[&str] = &[
    "maybe",
    "perhaps",
    "possibly",
    "not sure",
    "vielleicht",
    "peut-être",
    "quizás",
    "quizá",
    "tal vez",
    "也许",
    "或许",
];

/// Returns the option chosen by a text.
pub(super) fn decide(text: &str, options: &Options) -> Said<usize> {
    let sentences = prepared(text, options);
    let mut weighed: Vec<Weighed> = Vec::new();
    let mut spoken: Vec<Mention> = Vec::new();
    let mut doubts: Vec<Doubt> = Vec::new();
    let mut turns: Vec<usize> = Vec::new();
    let (mut reserved, mut guesses) = (false, false);
    for (place, said) in sentences.iter().enumerate() {
        let Spoken {
            sentence,
            mentions,
            lower,
        } = said;
        if super::prose::is_about_confidence(lower) {
            continue;
        }
        let turns_here = cues::has(lower, cues::TURNS);
        if place > 0 && sentence.is_aside() && !turns_here && mentions.is_empty() {
            continue;
        }
        if turns_here {
            turns.push(place);
        }
        if sentence.form == Some(Form::Row) {
            continue;
        }
        reserved |= mentions.iter().any(|m| {
            let clause = sentence.clause_at(m.start);
            !sentence.clauses.is_empty() && voices::is_reserved(sentence, clause, mentions)
        });
        let names = |w: &Weighed| w.weight >= Weight::Named;
        let mut here = of_sentence(sentence, place, mentions, options);
        if mentions.is_empty()
            && let Some(item) = pointed_at(sentence, lower, &spoken)
        {
            here.push(Weighed::pointed(item, place));
        }
        if mentions.is_empty()
            && (voices::retracts(lower) || !options.is_yes_no() && chooses_another(sentence, lower))
        {
            doubts.push(Doubt {
                place,
                outright: true,
            });
        }
        if leaves_another(lower, mentions) {
            doubts.push(Doubt {
                place,
                outright: true,
            });
        }
        // `It depends: for guests tea, for me milk.`
        let named = |w: &Weighed| {
            w.weight >= Weight::Named && here.first().is_some_and(|f| f.item != w.item)
        };
        if cues::has(lower, DEPENDS) && here.iter().any(named) {
            here.iter_mut()
                .for_each(|w| w.weight = w.weight.min(Weight::Nothing));
            doubts.push(Doubt {
                place,
                outright: true,
            });
        }
        // `My colleague says tea, and I agree.`
        if let Some(one) = here.first().copied()
            && here
                .iter()
                .all(|w| w.item == one.item && w.weight == Weight::Nothing)
            && sentence.clauses[one.clause..]
                .iter()
                .any(|c| voices::agrees(&c.lower))
        {
            here.push(Weighed::pointed(one.item, place));
        }
        if mentions.is_empty()
            && let Some(last) = weighed.last()
            && last.weight == Weight::Nothing
            && last.place + 1 == place
            && voices::agrees_with_the_last(lower)
        {
            here.push(Weighed::pointed(last.item, place));
        }
        guesses =
            cues::has(lower, MAYBE) && here.iter().any(names) || guesses && mentions.is_empty();
        let next = sentences.get(place + 1).map(|s| &s.sentence);
        if let Some(weight) = answered(sentence, next, mentions) {
            here.iter_mut().for_each(|w| w.weight = weight);
        }
        let decides = here.iter().any(|w| w.weight >= Weight::Best);
        if !decides && let Some(outright) = doubt(lower, mentions) {
            doubts.push(Doubt { place, outright });
        }
        if super::weights::is_conditional(sentence) && alternatives(sentence, &here) {
            doubts.push(Doubt {
                place,
                outright: false,
            });
        }
        if options.is_yes_no() && (says_both(sentence) || cues::has(lower, MAYBE)) {
            doubts.push(Doubt {
                place,
                outright: true,
            });
            continue;
        }
        if super::sayings::is_courtesy(lower) && !decides {
            continue;
        }
        spoken.extend(mentions.iter().copied());
        weighed.extend(here);
    }
    without_lists(&mut weighed, list_lines(text) > 2);
    settle_last(&mut weighed, &sentences);
    let said = match resolve(&weighed, &doubts, &turns, &spoken, text, options) {
        // A text that only reports the views of others has not chosen.
        Said::Nothing if reserved => Said::Several,
        // `Not sure. Maybe tea.`
        Said::Words(_) if !doubts.is_empty() && guesses => Said::Several,
        Said::Words(item) => match is_open(item, &weighed, &sentences, options) {
            true => Said::Several,
            false => Said::Words(item),
        },
        said => said,
    };
    if options.is_yes_no() {
        return said;
    }
    let evidence = |item: usize| evidence::of(item, text, &weighed, &sentences, options);
    match said {
        Said::Words(item) if !evidence(item).supports(heaviest(item, &weighed)) => Said::Several,
        Said::Several if !guesses => {
            let undoubted = |item: &usize| {
                let mut own = weighed.iter().filter(|w| w.item == *item);
                let last = own.rfind(|w| w.weight >= Weight::Named).map(|w| w.place);
                doubts.iter().all(|d| last.is_some_and(|at| d.place <= at))
            };
            let held = |item: &usize| {
                evidence(*item).decides() && is_held(*item, &weighed, &sentences, options)
            };
            let mut items = (0..options.count()).filter(held);
            match (items.next().filter(undoubted), items.next()) {
                (Some(item), None) => Said::Words(item),
                _ => Said::Several,
            }
        }
        said => said,
    }
}

/// Returns the highest weight of an option.
fn heaviest(item: usize, weighed: &[Weighed]) -> Option<Weight> {
    let own = weighed.iter().filter(|w| w.item == item);
    own.map(|w| w.weight).max()
}

/// Maximum number of mentions beside which lone letters are looked for.
const LONE_LETTERS_MAX: usize = 64;

/// Returns the capital letters of other options that were taken for words: `A` in `A or B, both are fine`.
fn lone_letters(
    item: usize,
    known: &[Candidate],
    sentences: &[Spoken],
    options: &Options,
) -> Vec<Candidate> {
    let names: Vec<String> = options.names().map(str::to_uppercase).collect();
    let mut out = Vec::new();
    // A reply that repeats itself without end says no more than its first mentions.
    if known.len() > LONE_LETTERS_MAX {
        return out;
    }
    for (place, said) in sentences.iter().enumerate() {
        if out.len() > LONE_LETTERS_MAX {
            break;
        }
        let text = &said.sentence.text;
        for (at, name) in names.iter().enumerate() {
            if name.len() != 1 || at == item {
                continue;
            }
            for (start, _) in text.match_indices(name.as_str()) {
                let end = start + name.len();
                let joins = |c: Option<char>| {
                    c.is_some_and(|c| {
                        c.is_alphanumeric() && !super::language::is_han(c) || c == '\''
                    })
                };
                let free =
                    !joins(text[..start].chars().next_back()) && !joins(text[end..].chars().next());
                if free
                    && !known
                        .iter()
                        .any(|c| c.place == place && c.start <= start && start < c.end)
                {
                    let standing = Standing::Loose;
                    out.push(Candidate {
                        own: false,
                        standing,
                        place,
                        start,
                        end,
                    });
                }
            }
        }
    }
    out
}

/// Returns whether the [gate](super::gate) leaves the choice of an option open.
fn is_open(item: usize, weighed: &[Weighed], sentences: &[Spoken], options: &Options) -> bool {
    let all: Vec<&Sentence> = sentences.iter().map(|s| &s.sentence).collect();
    if !weighed.iter().any(|w| w.item == item) {
        return !options.is_yes_no() && gate::leaves_open(&all);
    }
    let candidates = candidates(item, weighed, sentences, options);
    match options.is_yes_no() {
        true => gate::is_qualified(&all, &candidates),
        false => gate::open(&all, &candidates, false).is_some(),
    }
}

/// Returns whether nothing but the place of the other options leaves the choice of an option open.
fn is_held(item: usize, weighed: &[Weighed], sentences: &[Spoken], options: &Options) -> bool {
    let all: Vec<&Sentence> = sentences.iter().map(|s| &s.sentence).collect();
    let candidates = candidates(item, weighed, sentences, options);
    gate::open(&all, &candidates, false).is_none_or(|reason| {
        matches!(
            reason,
            Open::EndsOtherwise | Open::Outtalked | Open::Rival | Open::GoesOn | Open::Denied
        )
    })
}

/// Returns the mentions of the options, as the gate sees them.
fn candidates(
    item: usize,
    weighed: &[Weighed],
    sentences: &[Spoken],
    options: &Options,
) -> Vec<Candidate> {
    // `a` and `y` are words rather than the options A and Y.
    let is_word = |w: &&Weighed| {
        let text = sentences
            .get(w.place)
            .and_then(|s| s.sentence.text.get(w.start..w.end));
        text.is_some_and(|t| t.trim().len() == 1 && t.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    let mut candidates: Vec<Candidate> = weighed
        .iter()
        .filter(|w| w.item == item || !is_word(w))
        .map(|w| Candidate {
            own: w.item == item,
            standing: match w.weight {
                Weight::Against => Standing::Rejected,
                Weight::Nothing => Standing::Explained,
                Weight::Named => Standing::Loose,
                Weight::Praised => Standing::Favoured,
                Weight::Best | Weight::Chosen => Standing::Committed,
            },
            place: w.place,
            start: w.start,
            end: w.end,
        })
        .collect();
    if !options.is_yes_no() {
        candidates.extend(lone_letters(item, &candidates, sentences, options));
    }
    candidates
}

/// Returns whether a short sentence without an option advises to take something, or concludes with it: `Take the
/// rail.`, `Then the ninth.`
fn takes_another(sentence: &Sentence, lower: &str) -> bool {
    const TAKES: &[&str] = &[
        "take the",
        "take a",
        "go with",
        "pick the",
        "choose the",
        "use the",
        "nehmt",
        "nimm",
        "nehmen sie",
        "nehmen wir",
        "wählt",
        "wähle",
        "prenez",
        "prends",
        "choisissez",
        "optez",
        "optons",
        "coged",
        "coge",
        "elegid",
        "elige",
        "tomad",
        "optad",
        "我投",
        "我选",
        "我会选",
        "那就",
        "还是选",
        "就选",
        "就用",
    ];
    const POINTS: &[&str] = &[
        "it", "that", "this", "that one", "this one", "them", "das", "dies", "diese*", "den",
        "sie", "ihn", "es", "le", "la", "les", "celui*", "celle*", "lo", "esa", "ese", "esta",
        "este", "这", "它", "此", "前者", "后者", "first", "second", "former", "latter", "erste*",
        "zweite*", "premier*", "primer*", "segund*",
    ];
    const WORDS_MAX: usize = 4;
    const HAN_MAX: usize = 12;
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let Some(lead) = TAKES.iter().find(|w| {
        clauses::begins(bare, w) || w.chars().any(super::language::is_han) && bare.contains(**w)
    }) else {
        return false;
    };
    let at = bare.find(lead).map_or(0, |at| at + lead.len());
    let rest = bare.get(at..).unwrap_or_default();
    let rest = rest.trim_matches(|c: char| !c.is_alphanumeric());
    let short = match rest.chars().any(super::language::is_han) {
        true => rest.chars().count() <= HAN_MAX,
        false => (1..=WORDS_MAX).contains(&rest.split_whitespace().count()),
    };
    !rest.is_empty() && short && !sentence.asks() && !cues::has(rest, POINTS)
}

/// Lets an option that is the whole last sentence settle a text with a contrast before it: `A is my usual pick. But here
/// it fails. B.`
fn settle_last(weighed: &mut [Weighed], sentences: &[Spoken]) {
    let Some((end, last)) = sentences.iter().enumerate().next_back() else {
        return;
    };
    let earlier = weighed
        .iter()
        .filter(|w| w.place < end && w.weight >= Weight::Best);
    let Some(from) = earlier.map(|w| w.place).max() else {
        return;
    };
    let contrasts = |s: &Spoken| {
        let first = s.sentence.clauses.first();
        first.is_some_and(|c| c.role == Role::Contrast)
    };
    let turns = sentences
        .get(from + 1..end)
        .is_some_and(|all| all.iter().any(contrasts));
    let words = last.sentence.text.split_whitespace().count();
    if turns && words <= 4 && last.sentence.clauses.len() == 1 {
        for one in weighed.iter_mut().filter(|w| w.place == end) {
            one.settles |= one.weight == Weight::Chosen;
        }
    }
}

/// Returns whether a sentence says that only one thing is left, and names none of the options: `There is only one thing
/// left: the good old fax.`
fn leaves_another(lower: &str, mentions: &[Mention]) -> bool {
    const LEAVES: &[&str] = &[
        "only one thing left",
        "only one left",
        "only option left",
        "goes to",
        "geht an",
        "revient à",
        "revient au",
        "revient donc à",
        "revient donc au",
        "corresponde a",
        "that leaves",
        "this leaves",
        "which leaves",
        "leaves us with",
        "bleibt nur",
        "bleibt nur noch",
        "bleibt also nur",
        "ne reste que",
        "ne reste plus que",
        "reste donc",
        "solo queda",
        "sólo queda",
        "queda solo",
        "只剩",
        "只能选",
    ];
    const EMPTY: &[&str] = &[
        "one", "only one", "eine", "einer", "eines", "une", "un", "uno", "una", "一个", "一种",
    ];
    let Some((_, end)) = cues::places(lower, LEAVES).last() else {
        return false;
    };
    let rest = lower.get(end..).unwrap_or_default();
    let rest = rest.trim_matches(|c: char| !c.is_alphanumeric());
    // Options are blanked.
    !rest.is_empty() && !EMPTY.contains(&rest) && !mentions.iter().any(|m| m.end > end)
}

/// Returns whether a sentence without an option chooses something in bold: `I'd do the **castle**.`
pub(super) fn chooses_another(sentence: &Sentence, lower: &str) -> bool {
    const OWN: &[&str] = &[
        "i'd do",
        "i'd pick",
        "i'd take",
        "i'd choose",
        "i'd go",
        "i'd use",
        "i would do",
        "i would pick",
        "i would take",
        "i would choose",
        "i would go",
        "i would use",
        "i pick",
        "i choose",
        "i recommend",
        "my pick",
        "my choice",
        "ich würde",
        "ich nehme",
        "ich wähle",
        "ich empfehle",
        "je prendrais",
        "je choisirais",
        "je choisis",
        "je recommande",
        "yo haría",
        "elegiría",
        "elijo",
        "recomiendo",
        "我选",
        "我会选",
        "我推荐",
        "我建议",
    ];
    /// Maximum words of a name.
    const WORDS_MAX: usize = 4;
    if takes_another(sentence, lower) {
        return true;
    }
    let bold = sentence.text.split("**").nth(1).unwrap_or_default();
    let words = bold.split_whitespace().count();
    let names = (1..=WORDS_MAX).contains(&words) && bold.chars().any(char::is_alphabetic);
    names && cues::has(lower, OWN) && !super::weights::is_negated(lower, OWN)
}

/// Returns the option that a sentence without one refers back to as the author's choice: `This is my recommendation.`
fn pointed_at(sentence: &Sentence, lower: &str, spoken: &[Mention]) -> Option<usize> {
    const POINTS: &[&str] = &[
        "this", "that", "that's", "it", "it's", "das", "dies", "diese", "dieser", "dieses",
        "c'est", "ce", "cette", "celui-ci", "celle-ci", "esta", "este", "esa", "ese", "eso",
        "esto", "这", "它", "此",
    ];
    const OWN_CHOICE: &[&str] = &[
        "my recommendation",
        "my pick",
        "my choice",
        "my vote",
        "my answer",
        "what i recommend",
        "what i'd pick",
        "what i'd choose",
        "what i would choose",
        "the one i recommend",
        "the one i'd pick",
        "the one i'd choose",
        "the one to take",
        "gets my vote",
        "meine empfehlung",
        "meine wahl",
        "meine antwort",
        "bekommt meine stimme",
        "ma recommandation",
        "mon choix",
        "ma réponse",
        "ce que je recommande",
        "ce que je choisirais",
        "mi recomendación",
        "mi elección",
        "mi voto",
        "mi respuesta",
        "la que recomiendo",
        "lo que recomiendo",
        "我的推荐",
        "我的选择",
        "我的建议",
    ];
    const WORDS_MAX: usize = 9;
    let last = spoken.last().filter(|m| !m.rejected)?;
    let short = lower.split_whitespace().count() <= WORDS_MAX;
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let points = POINTS.iter().any(|w| clauses::begins(bare, w));
    let plain = !sentence.asks() && sentence.clauses.len() <= 2;
    let owns = cues::has(lower, OWN_CHOICE) && !super::weights::is_negated(lower, OWN_CHOICE);
    (short && points && plain && owns).then_some(last.item)
}

/// Returns the opinion of the next sentence about the option named in a question: `Rust? Yes.`
fn answered(sentence: &Sentence, next: Option<&Sentence>, mentions: &[Mention]) -> Option<Weight> {
    let [_] = mentions else { return None };
    let short = sentence.text.split_whitespace().count() <= 3;
    if !sentence.asks() || !short {
        return None;
    }
    let lower = next?.text.to_lowercase();
    let starts = |words: &'static [&'static str]| {
        words
            .iter()
            .any(|w| clauses::begins(&lower, w.trim_end_matches('*')))
    };
    match (
        starts(cues::ACCEPTS),
        starts(cues::REJECTS) || starts(cues::FAULTS),
    ) {
        (true, false) => Some(Weight::Chosen),
        (false, true) => Some(Weight::Against),
        _ => None,
    }
}

/// Returns whether a text explicitly chooses another option, and no later contrast or conclusion outweighs it.
pub(super) fn rivals(text: &str, item: usize, options: &Options) -> bool {
    const MINE: &[&str] = &[
        "i recommend",
        "i choose",
        "i pick",
        "i vote",
        "i'd pick",
        "i'd choose",
        "i would choose",
        "i would pick",
        "my vote",
        "my choice",
        "mein votum",
        "meine stimme",
        "ma voix",
        "mi voto",
        "我投",
        "ich wähle",
        "ich empfehle",
        "je choisis",
        "je recommande",
        "elijo",
        "recomiendo",
        "我选",
        "我推荐",
    ];
    let mut rival = false;
    for (place, said) in prepared(text, options).iter().enumerate() {
        if !cues::has(&said.lower, MINE) && !MINE.iter().any(|m| said.lower.starts_with(m)) {
            continue;
        }
        for one in of_sentence(&said.sentence, place, &said.mentions, options) {
            if one.weight == Weight::Chosen {
                rival = one.item != item;
            }
        }
    }
    rival
}

/// Returns `Some` if a sentence leaves the choice open; the value tells whether it does so explicitly.
fn doubt(lower: &str, mentions: &[Mention]) -> Option<bool> {
    if cues::has(lower, cues::CANNOT_CHOOSE) {
        return Some(true);
    }
    let rest = lower.replace("over both", "").replace("than both", "");
    let left = mentions.iter().filter(|m| !m.rejected).count();
    if mentions.iter().any(|m| m.rejected) && left <= 1 {
        return None;
    }
    cues::has(&rest, cues::UNDECIDED).then_some(false)
}

/// Counts the lines that first name a thing and then describe it: `wool: warm`.
fn list_lines(text: &str) -> usize {
    let names = |line: &&str| {
        let line = line.trim().trim_start_matches(['-', '*', '•', ' ']);
        let cut = line
            .find([':', '：'])
            .or_else(|| line.find(" – "))
            .or_else(|| line.find(" - "));
        let head = cut.and_then(|at| line.get(..at)).unwrap_or_default();
        (1..=3).contains(&head.split_whitespace().count()) && !super::prose::is_label(head)
    };
    text.lines().filter(names).count()
}

/// Removes the weight from lines that only list the options: each is alone at the beginning of a line of the same form.
fn without_lists(weighed: &mut [Weighed], many: bool) {
    let heads: Vec<(usize, (Form, bool))> = weighed
        .iter()
        .filter_map(|w| w.heads.map(|h| (w.item, (kind(h.0), h.1))))
        .collect();
    for one in weighed.iter_mut() {
        let Some((form, followed)) = one.heads else {
            continue;
        };
        let same = (kind(form), followed);
        let listed = many && followed
            || heads
                .iter()
                .any(|(item, head)| *item != one.item && *head == same);
        if listed && one.weight > Weight::Named {
            one.weight = one.beside.max(Weight::Named);
        }
    }
}

/// Returns the mentions, marked as rejected where they weigh against their option.
fn against(spoken: &[Mention], weighed: &[Weighed]) -> Vec<Mention> {
    let mut mentions = spoken.to_vec();
    for mention in &mut mentions {
        let mut own = weighed.iter().filter(|w| w.item == mention.item).peekable();
        mention.rejected |= own.peek().is_some() && own.all(|w| w.weight == Weight::Against);
    }
    mentions
}

fn kind(form: Form) -> Form {
    match form {
        Form::Numbered(_) => Form::Numbered(0),
        form => form,
    }
}

/// Combines all weights into an answer.
fn resolve(
    weighed: &[Weighed],
    doubts: &[Doubt],
    turns: &[usize],
    spoken: &[Mention],
    text: &str,
    options: &Options,
) -> Said<usize> {
    let heaviest = weighed
        .iter()
        .map(|w| w.weight)
        .max()
        .unwrap_or(Weight::Nothing);
    if heaviest >= Weight::Praised {
        let top: Vec<&Weighed> = weighed.iter().filter(|w| w.weight == heaviest).collect();
        let Some(last) = top.last() else {
            return Said::Nothing;
        };
        let other = top.iter().rev().find(|w| w.item != last.item);
        if let Some(other) = other {
            let turned = turns.iter().any(|t| (other.place..=last.place).contains(t));
            // A vote after a list of verdicts.
            let votes = !last.judged
                && top.iter().all(|w| w.judged || w.item == last.item)
                && weighed.iter().all(|w| w.place <= last.place);
            if !last.settles && !turned && !votes {
                return Said::Several;
            }
        }
        // Later text may retract it.
        let after = |w: &&Weighed| (w.place, w.clause) > (last.place, last.clause);
        let opposed = weighed.iter().filter(after).any(|w| {
            w.item != last.item
                && (w.weight >= Weight::Best
                    || w.weight >= Weight::Named
                        && w.place > last.place
                        && turns.contains(&w.place))
        });
        let against = weighed.iter().filter(after).any(|w| {
            w.item == last.item
                && w.weight == Weight::Against
                && w.place > last.place
                && turns.contains(&w.place)
        });
        let doubted = doubts.iter().any(|d| {
            d.place > last.place && (d.outright || heaviest <= Weight::Praised)
                || heaviest <= Weight::Praised && d.outright
        });
        return match opposed || against || doubted {
            true => Said::Several,
            false => Said::Words(last.item),
        };
    }
    let mut items: Vec<usize> = weighed
        .iter()
        .filter(|w| w.weight == Weight::Named)
        .map(|w| w.item)
        .collect();
    items.sort_unstable();
    items.dedup();
    match items.as_slice() {
        _ if options.is_yes_no() && doubts.iter().any(|d| d.outright) => Said::Several,
        [one] if doubts.is_empty() => Said::Words(*one),
        [] if doubts.is_empty() => match options.left(&against(spoken, weighed)) {
            Some(one)
                if !options.is_yes_no()
                    && (spoken.len() > 1 || super::prose_words::forbids(text)) =>
            {
                Said::Words(one)
            }
            _ => Said::Nothing,
        },
        _ => Said::Several,
    }
}
