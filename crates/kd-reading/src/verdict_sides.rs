//! The verdict of a reply to a yes-no question: its first words, the author's own vote, or a last question answered by
//! the author.

use super::clauses::{self, Clause, Role, Sentence};
use super::gate_words::FIRST_PERSON;
use super::language::is_han;
use super::said::Said;
use super::spoken::DEPENDS;
use super::{cues, gate_account, prose, sayings, unknown, voices};

const YES: &[&str] = &[
    "yes", "yeah", "yep", "yup", "ja", "jawohl", "oui", "ouais", "sí", "是", "是的", "对",
];
const NO: &[&str] = &[
    "no", "nope", "nah", "nein", "nö", "nee", "non", "不", "不是", "否",
];

/// Words before the side for which the author votes.
const VOTES: &[&str] = &[
    "i vote",
    "i'd vote",
    "i'm voting",
    "my vote is",
    "my vote is a",
    "my answer is",
    "my answer is a",
    "the answer is",
    "i say",
    "i'd say",
    "i would say",
    "ich stimme mit",
    "ich stimme für",
    "ich sage",
    "ich würde sagen",
    "meine antwort ist",
    "meine antwort lautet",
    "die antwort ist",
    "die antwort lautet",
    "je vote",
    "je dis",
    "je réponds",
    "je dirais",
    "ma réponse est",
    "la réponse est",
    "voto",
    "voto que",
    "mi voto es",
    "digo que",
    "mi respuesta es",
    "la respuesta es",
    "我投",
    "我的回答是",
    "答案是",
    "我说",
];

/// Words of a condition that does not weaken a yes.
const PROVIDED: &[&str] = &[
    "provided",
    "providing",
    "as long as",
    "so long as",
    "assuming",
    "sofern",
    "solange",
    "vorausgesetzt",
    "à condition",
    "pourvu",
    "tant que",
    "siempre que",
    "siempre y cuando",
    "con tal de",
    "只要",
    "前提是",
];

/// Maximum number of sentences of a reply that is read by its shape.
const SENTENCES_MAX: usize = 60;

/// Returns whether a reply says yes; several if it says that this depends on the case.
pub(super) fn of(text: &str) -> Said<bool> {
    let mut said = clauses::sentences(&text.replace('’', "'"));
    said.retain(|s| !prose::is_about_confidence(&s.text));
    let opening = said.iter().position(|s| !s.asks());
    let Some(from) = opening.filter(|_| said.len() <= SENTENCES_MAX) else {
        return Said::Nothing;
    };
    let votes: Vec<(usize, bool)> = said
        .iter()
        .enumerate()
        .filter_map(|(at, s)| Some((at, voted(s)?)))
        .collect();
    // The last sentence with a side.
    let last = said.iter().rposition(has_side);
    let found = match votes.as_slice() {
        [] => led(&said[from], &said[from + 1..]).map(|yes| (from, yes)),
        [first, rest @ ..] if rest.iter().all(|(_, yes)| *yes == first.1) => Some(*first),
        _ => return Said::Nothing,
    };
    let found = found.or_else(|| answered(&said));
    let found = found.or_else(|| last.and_then(|at| Some((at, declared(&said[at])?))));
    match found {
        Some((at, yes)) if !said[at + 1..].iter().any(|s| contests(s, yes)) => Said::Words(yes),
        // `Yes. But not today.`
        Some((at, _)) if said.get(at + 1).is_some_and(turns_short) => Said::Several,
        None if is_courtesy(&said[from]) && said[from + 1..].iter().any(denies) => Said::Several,
        None if depends(&said[from]) => Said::Several,
        _ => Said::Nothing,
    }
}

/// Returns the side if a clause is nothing but a side: `yes`, `nein`.
fn literal(clause: &str) -> Option<bool> {
    let bare = clause.trim_matches(|c: char| !c.is_alphanumeric());
    let bare = bare.trim_start_matches(['也', '又', '但', '而']);
    match (YES.contains(&bare), NO.contains(&bare)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// Returns the side of a fixed phrase. `Oui pour la cuisine` says more than its first word.
fn phrase(clause: &str) -> Option<bool> {
    let mut words = clause.split(|c: char| !c.is_alphanumeric());
    let first = words.find(|w| !w.is_empty())?;
    sayings::yes_or_no(clause).filter(|_| !YES.contains(&first) && !NO.contains(&first))
}

/// Returns the side of the first sentence, unless it limits it. A phrase such as `sure` may also be a courtesy: nothing
/// negative may follow.
fn led(sentence: &Sentence, rest: &[Sentence]) -> Option<bool> {
    let (first, more) = sentence.clauses.split_first()?;
    let said = literal(&first.lower);
    let yes = said.or_else(|| phrase(&first.lower))?;
    let limits = |c: &Clause| {
        let provided = PROVIDED.iter().any(|w| clauses::begins(&c.lower, w));
        matches!(c.role, Role::Contrast | Role::Otherwise | Role::Concession)
            || c.role == Role::Condition && !(yes && provided)
            || literal(&c.lower) == Some(!yes)
    };
    let courtesy = said.is_none()
        && (first.lower.split_whitespace().count() < 2 || first.lower.chars().any(is_han))
        && yes
        && more.iter().any(|c| gate_account::is_negative(&c.lower));
    let denied = said.is_none() && yes && rest.iter().any(denies);
    (!more.iter().any(limits) && !courtesy && !denied).then_some(yes)
}

/// Returns the side for which the author votes in a sentence.
fn voted(sentence: &Sentence) -> Option<bool> {
    if sentence.asks()
        || sentence.has(Role::Condition)
        || sentence.text.contains(['"', '“', '„', '«'])
    {
        return None;
    }
    let mut sides = sentence.clauses.iter().filter_map(|clause| {
        let (start, end) = cues::places(&clause.lower, VOTES).last()?;
        let head = clause.lower.get(..start)?;
        let own = !gate_account::is_negative(head)
            && matches!(clause.role, Role::Claim | Role::Conclusion | Role::Contrast);
        literal(clause.lower.get(end..)?).filter(|_| own)
    });
    let first = sides.next()?;
    sides.all(|side| side == first).then_some(first)
}

/// Returns whether a sentence holds a yes or a no.
fn has_side(sentence: &Sentence) -> bool {
    let lower = gate_account::lower(sentence);
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|w| YES.contains(&w) || NO.contains(&w))
}

/// Returns the side with which the author's own clause ends: `I come down on the side of yes`, `daher ein Ja`.
fn declared(sentence: &Sentence) -> Option<bool> {
    const OR: [&str; 6] = ["or", "oder", "ou", "o", "and", "nor"];
    if sentence.asks()
        || sentence.has(Role::Condition)
        || sentence.has(Role::Otherwise)
        || sentence.text.contains(['"', '“', '„', '«'])
    {
        return None;
    }
    let mut sides = sentence
        .clauses
        .iter()
        .enumerate()
        .filter_map(|(at, clause)| {
            let bare = clause
                .lower
                .trim_end_matches(|c: char| !c.is_alphanumeric());
            let (head, last) = bare.rsplit_once([' ', '\''])?;
            // `from no to yes`, not `a yes or no`
            let words = head.split(' ').filter(|w| literal(w).is_none());
            let words: Vec<&str> = words.collect();
            let joined = words.last().is_some_and(|w| OR.contains(w));
            let own = cues::has(head, FIRST_PERSON)
                && !joined
                && !gate_account::is_negative(&words.join(" "))
                && !voices::is_past(sentence, at);
            let held = matches!(clause.role, Role::Claim | Role::Conclusion | Role::Contrast);
            literal(last).filter(|_| own && held)
        });
    let first = sides.next()?;
    // `One part of me says yes, another one no.`
    let others = sentence.clauses.iter().any(|c| {
        let mut words = c.lower.split(|c: char| !c.is_alphanumeric());
        let last = words.rfind(|w| !w.is_empty());
        last.is_some_and(|w| literal(w) == Some(!first))
    });
    (!others && sides.all(|side| side == first)).then_some(first)
}

/// Returns the side of a last sentence that answers the question before it: `能上线吗？能。`
fn answered(said: &[Sentence]) -> Option<(usize, bool)> {
    let [.., question, answer] = said else {
        return None;
    };
    let [only] = answer.clauses.as_slice() else {
        return None;
    };
    let yes = literal(&only.lower).or_else(|| phrase(&only.lower))?;
    (question.asks() && !answer.asks()).then_some((said.len() - 1, yes))
}

/// Returns whether a later sentence takes a side back, or says the other one.
fn contests(sentence: &Sentence, yes: bool) -> bool {
    let lower = gate_account::lower(sentence);
    // `no,` answers here.
    let turned = cues::places(&lower, cues::TURNS).any(|(start, end)| &lower[start..end] != "no,");
    let other = sentence.clauses.iter().any(|c| {
        let held = !matches!(
            c.role,
            Role::Condition | Role::Concession | Role::Report | Role::Otherwise
        );
        held && literal(&c.lower) == Some(!yes)
    });
    turned
        || other && !sentence.asks()
        || voices::retracts(&lower)
        || cues::has(&lower, cues::CANNOT_CHOOSE)
        || cues::has(&lower, DEPENDS)
        || unknown::is_unknown(&lower)
        || turns_short(sentence)
}

/// Returns whether a short sentence limits the one before it: `But not today.`
fn turns_short(sentence: &Sentence) -> bool {
    const WORDS_MAX: usize = 6;
    let first = sentence.clauses.first().map(|c| c.role);
    first == Some(Role::Contrast) && sentence.text.split_whitespace().count() <= WORDS_MAX
}

/// Returns whether a sentence begins with a yes that may only be polite: `Sure, I can look into that!`
fn is_courtesy(sentence: &Sentence) -> bool {
    const POLITE: [&str; 12] = [
        "sure",
        "of course",
        "certainly",
        "absolutely",
        "klar",
        "gerne",
        "natürlich",
        "bien sûr",
        "claro",
        "por supuesto",
        "当然",
        "好的",
    ];
    let first = sentence.clauses.first().map(|c| c.lower.as_str());
    first.is_some_and(|lower| POLITE.contains(&lower.trim_matches(|c: char| !c.is_alphanumeric())))
}

/// Returns whether a sentence denies something, other than in a contrast.
fn denies(sentence: &Sentence) -> bool {
    gate_account::is_negative(&gate_account::lower(sentence)) && !sentence.has(Role::Contrast)
}

/// Returns whether a short first clause says that the answer depends on the case.
fn depends(sentence: &Sentence) -> bool {
    const WORDS_MAX: usize = 5;
    let first = sentence.clauses.first().map(|c| c.lower.as_str());
    let lower = first.unwrap_or_default();
    let short = match lower.chars().any(is_han) {
        true => lower.chars().count() <= 3 * WORDS_MAX,
        false => lower.split_whitespace().count() <= WORDS_MAX,
    };
    short && cues::has(lower, DEPENDS)
}
