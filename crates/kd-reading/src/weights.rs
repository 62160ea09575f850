//! The weight of each mention of an option in a sentence: from its clause, its neighbors and its position.

use super::clauses::{self, Before, Form, Role, Sentence};
use super::cues;
use super::language::is_han;
use super::options::{Mention, Options};
use super::standing::{goes_on, is_alone, stands_out};
use super::voices;

/// The weight of a mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Rejected.
    Against,
    /// In a condition, a concession, a question or a report.
    Nothing,
    Named,
    Praised,
    /// Called the best, or a conclusion.
    Best,
    /// Chosen explicitly, or stated alone.
    Chosen,
}

/// A mention and its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighed {
    pub(super) item: usize,
    pub(super) weight: Weight,
    /// Index of the sentence.
    pub(super) place: usize,
    /// Index of the clause in it.
    pub(super) clause: usize,
    /// The byte range of the mention in its sentence.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The weight given by the rest of its sentence.
    pub(super) beside: Weight,
    /// Whether its sentence concludes, or corrects or outweighs earlier text.
    pub(super) settles: bool,
    /// Whether it is one of several options followed by a colon and a verdict: `Tea – correct`.
    pub(super) judged: bool,
    /// If the option is alone at the beginning of a line: the form of the line, and whether a colon follows.
    pub(super) heads: Option<(Form, bool)>,
}

impl Weighed {
    /// Creates the weight of an option that a sentence chooses by referring back to it.
    pub(super) fn pointed(item: usize, place: usize) -> Self {
        Self {
            item,
            weight: Weight::Chosen,
            place,
            clause: 0,
            start: 0,
            end: 0,
            beside: Weight::Nothing,
            settles: false,
            judged: false,
            heads: None,
        }
    }
}

/// Phrases for a thought that was considered and is not the answer.
pub(super) const CONSIDERED: &[&str] = &[
    "considered",
    "i thought about",
    "i thought of",
    "at first",
    "initially",
    "originally",
    "my first instinct",
    "my first thought",
    "was tempted",
    "dachte zuerst",
    "dachte erst",
    "zuerst gedacht",
    "zuerst dachte",
    "anfangs",
    "ursprünglich",
    "erwogen",
    "j'avais pensé",
    "j'ai pensé à",
    "j'ai envisagé",
    "au début",
    "initialement",
    "consideré",
    "pensé primero",
    "primero pensé",
    "j'ai d'abord pensé",
    "je pensais",
    "pensaba",
    "ich dachte",
    "pensé en",
    "al principio",
    "inicialmente",
    "考虑过",
    "一开始",
    "起初",
    "原本",
    "本来想",
];

/// Weighs the mentions of a sentence.
pub(super) fn of_sentence(
    sentence: &Sentence,
    place: usize,
    mentions: &[Mention],
    options: &Options,
) -> Vec<Weighed> {
    let mut out: Vec<Weighed> = Vec::new();
    for mention in mentions {
        let clause = sentence.clause_at(mention.start);
        let (weight, alone) = weight(sentence, clause, mention, mentions, options);
        let first = alone && clause == 0;
        let followed = sentence
            .clauses
            .get(1)
            .is_some_and(|next| next.before == Before::Colon);
        let form = sentence.form.or(followed.then_some(Form::Plain));
        out.push(Weighed {
            item: mention.item,
            weight,
            place,
            clause,
            start: mention.start,
            end: mention.end,
            beside: Weight::Nothing,
            settles: false,
            judged: clause == 0 && sentence.form.is_some() && followed,
            heads: form.filter(|_| first).map(|form| (form, followed)),
        });
    }
    let conditional = is_conditional(sentence) && alternatives(sentence, &out);
    if conditional {
        for one in &mut out {
            one.weight = one.weight.min(Weight::Nothing);
        }
    }
    let mut items: Vec<usize> = out
        .iter()
        .filter(|w| w.weight >= Weight::Named)
        .map(|w| w.item)
        .collect();
    items.sort_unstable();
    items.dedup();
    // The rest of the sentence applies to its only option.
    if let [only] = items.as_slice()
        && !conditional
    {
        let own: Vec<usize> = out.iter().map(|w| w.clause).collect();
        let says = |words: &'static [&'static str]| {
            sentence.clauses.iter().enumerate().any(|(n, c)| {
                !own.contains(&n)
                    && matches!(c.role, Role::Claim | Role::Conclusion | Role::Contrast)
                    && !c.in_brackets
                    // `It remains disputed` leaves nothing.
                    && cues::places(&c.lower, words)
                        .any(|(from, to)| !REMAINS.contains(&&c.lower[from..to]))
                    && !is_negated(&c.lower, words)
            })
        };
        if says(cues::CHOOSES) || says(cues::BEST) {
            for one in out.iter_mut().filter(|w| w.item == *only) {
                let own = &sentence.clauses[one.clause];
                let claims = matches!(own.role, Role::Claim | Role::Conclusion | Role::Contrast);
                if one.weight >= Weight::Named && claims && !is_hypothetical(&own.lower) {
                    one.weight = one.weight.max(Weight::Best);
                    one.beside = Weight::Best;
                }
            }
        }
    }
    let lower = sentence.text.to_lowercase();
    for one in &mut out {
        one.settles = cues::has(&lower, cues::TURNS)
            || sentence.clauses[..=one.clause]
                .iter()
                .any(|c| matches!(c.role, Role::Conclusion | Role::Contrast))
            || sentence.text.contains(['∴', '⇒', '→', '➜', '👉']);
    }
    out
}

/// Returns whether a sentence applies only in some case.
pub(super) fn is_conditional(sentence: &Sentence) -> bool {
    // `Rust, or failing that Go` is a choice and its substitute.
    let has_case = |c: &clauses::Clause| c.role == Role::Otherwise && !cues::has(&c.lower, FAILING);
    sentence.has(Role::Condition)
        || sentence.clauses.iter().any(has_case)
            && !sentence.text.to_lowercase().starts_with("prefer")
}

/// Phrases that introduce a substitute.
const FAILING: &[&str] = &["failing that", "faute de quoi", "en su defecto"];

/// `还是坐高铁吧`, `就 4090 吧`
fn proposes_in_han(lower: &str) -> bool {
    let end = lower.trim_end_matches(|c: char| !c.is_alphanumeric());
    end.ends_with('吧') && (lower.contains('就') || lower.contains("还是") || lower.contains('选'))
}

/// Returns whether a conditional sentence gives another option for the other case.
pub(super) fn alternatives(sentence: &Sentence, weighed: &[Weighed]) -> bool {
    let mut items: Vec<usize> = weighed
        .iter()
        .filter(|w| {
            let clause = &sentence.clauses[w.clause];
            let chosen = clause.role == Role::Condition && cues::has(&clause.lower, cues::CHOOSES);
            w.weight >= Weight::Named
                || clause.role == Role::Otherwise
                || chosen
                || is_case(sentence, w.clause)
        })
        .map(|w| w.item)
        .collect();
    items.sort_unstable();
    items.dedup();
    items.len() > 1
}

/// Returns whether a clause holds only under the condition in its neighbor.
pub(super) fn is_case(sentence: &Sentence, at: usize) -> bool {
    let claims = sentence.clauses[at].role == Role::Claim;
    let beside = |n: Option<usize>| {
        n.and_then(|n| sentence.clauses.get(n))
            .is_some_and(|c| c.role == Role::Condition)
    };
    claims && (beside(at.checked_sub(1)) || beside(Some(at + 1)))
}

/// Returns the weight of a mention, and whether it is alone in its clause.
pub(super) fn weight(
    sentence: &Sentence,
    at: usize,
    mention: &Mention,
    mentions: &[Mention],
    options: &Options,
) -> (Weight, bool) {
    let clause = &sentence.clauses[at];
    if mention.rejected {
        return (Weight::Against, false);
    }
    let lead: String = sentence.clauses[..at]
        .iter()
        .rev()
        .take_while(|_| clause.before == Before::Colon)
        .take(1)
        .map(|c| c.lower.clone())
        .collect();
    let alone =
        is_alone(sentence, at, mentions, mention, options) && !goes_on_behind_bracket(sentence, at);
    if cues::has(&lead, cues::MINOR) && !cues::has(&lead, cues::BEST)
        || cues::has(&lead, cues::EXPLAINS)
    {
        return (Weight::Nothing, alone);
    }
    if sentence.asks() {
        return (Weight::Nothing, alone);
    }
    let says = |words: &'static [&'static str]| {
        is_near(clause, mention, words) && !is_negated(&clause.lower, words)
    };
    if voices::is_reserved(sentence, at, mentions) {
        return (Weight::Nothing, alone);
    }
    match clause.role {
        // "Kafka is the standard, though for ten messages RabbitMQ is plenty."
        Role::Concession
            if clauses::begins(&clause.lower, "though")
                && at > 0
                && (says(cues::PRAISES) || says(cues::BEST) || says(cues::CHOOSES)) =>
        {
            return (Weight::Praised, alone);
        }
        Role::Condition | Role::Concession | Role::Report => return (Weight::Nothing, alone),
        _ => {}
    }
    // `Given that the firewall blocks A, there is one left: the fax.`
    let main = |c: &clauses::Clause| c.role == Role::Claim && matches!(c.before, Before::Comma);
    let chosen = cues::has(&clause.lower, cues::CHOOSES) || cues::has(&clause.lower, cues::BEST);
    if clause.role == Role::Reason
        && at == 0
        && !chosen
        && sentence.clauses.iter().skip(1).any(main)
    {
        return (Weight::Nothing, alone);
    }
    if is_between(sentence, mention) || is_later(clause, mention) {
        return (Weight::Nothing, alone);
    }
    if cues::has(&clause.lower, CONSIDERED) && !cues::has(&clause.lower, cues::TURNS) {
        return (Weight::Nothing, alone);
    }
    if clause.in_brackets {
        let chosen = alone
            && at.checked_sub(1).is_none_or(|b| {
                let before = &sentence.clauses[b].lower;
                cues::has(before, cues::CHOOSES)
                    || cues::has(before, cues::BEST)
                    || cues::has(before, &["should", "solltest", "sollten", "sollte"])
            });
        let only = mentions.iter().all(|m| m.item == mention.item);
        return match chosen {
            true => (Weight::Chosen, true),
            false if only && !is_hypothetical(&clause.lower) => (Weight::Named, alone),
            false => (Weight::Nothing, alone),
        };
    }
    // "Go → no", "Rust: yes".
    if alone
        && let Some(next) = sentence.clauses.get(at + 1)
        && next.before == Before::Colon
    {
        let starts = |words: &'static [&'static str]| {
            let bare = next.lower.trim_start_matches(|c: char| {
                !c.is_alphanumeric() && !matches!(c, '✅' | '✓' | '✔' | '❌' | '✗')
            });
            words.iter().any(|w| match w.chars().count() <= 3 {
                true => bare.trim_end_matches(|c: char| !c.is_alphanumeric()) == *w,
                false => clauses::begins(bare, w.trim_end_matches('*')),
            })
        };
        if next.role == Role::Condition
            && matches!(sentence.form, Some(Form::Bullet | Form::Numbered(_)))
        {
            return (Weight::Nothing, alone);
        }
        match (starts(cues::ACCEPTS), starts(cues::REJECTS)) {
            (false, true) => return (Weight::Against, alone),
            (true, false) => return (Weight::Chosen, false),
            _ => {}
        }
    }
    if options.is_yes_no() {
        // "Yes, I know that others say so."
        const GRANTS: &[&str] = &[
            "i know",
            "i understand",
            "i see",
            "i get",
            "i realise",
            "i realize",
            "ich weiß",
            "je sais",
            "lo sé",
            "ya sé",
            "我知道",
        ];
        let grants = sentence
            .clauses
            .get(at + 1)
            .is_some_and(|c| GRANTS.iter().any(|w| clauses::begins(&c.lower, w)));
        if grants {
            return (Weight::Nothing, alone);
        }
        return (Weight::Chosen, alone);
    }
    let so_is = ["so is", "so are", "so does", "so do", "so would"];
    if clause.role == Role::Otherwise || so_is.iter().any(|w| clauses::begins(&clause.lower, w)) {
        return (Weight::Nothing, alone);
    }
    if cues::has(&clause.lower, cues::AGAINST) && !is_negated(&clause.lower, cues::AGAINST)
        || voices::advises_against(&clause.lower)
    {
        return (Weight::Against, alone);
    }
    if alone
        && let Some(next) = sentence.clauses.get(at + 1)
        && next.before == Before::Comma
        && begins_with_fault(&next.lower)
    {
        return (Weight::Nothing, alone);
    }
    if concludes_behind_colon(sentence, at, mention)
        && mentions
            .iter()
            .all(|m| m.item == mention.item || m.rejected)
    {
        return (Weight::Best, alone);
    }
    if alone && stands_out(sentence, at) && !goes_on(sentence, at, mentions, mention) {
        return (Weight::Chosen, true);
    }
    let hypothetical = is_hypothetical(&clause.lower) && !cues::has(&clause.lower, cues::OWN);
    let many = {
        let mut items: Vec<usize> = mentions
            .iter()
            .filter(|m| sentence.clause_at(m.start) == at && !m.rejected)
            .map(|m| m.item)
            .collect();
        items.sort_unstable();
        items.dedup();
        items.len() > 1
    };
    if is_next_step(clause, mention) && mentions.iter().any(|m| m.item != mention.item) {
        return (Weight::Nothing, alone);
    }
    if says(cues::CHOOSES)
        || mentions
            .iter()
            .all(|m| m.rejected || m.item == mention.item)
            && clause
                .lower
                .get(..mention.start.saturating_sub(clause.start))
                .is_some_and(ends_in_own_conditional)
        || !many && proposes_in_han(&clause.lower)
        || has_modal(clause, mention) && (!hypothetical || cues::has(&clause.lower, cues::OWN))
    {
        return (Weight::Chosen, alone);
    }
    const WOULD_BE: &[&str] = &[
        "that would be",
        "it would be",
        "this would be",
        "das wäre",
        "ce serait",
        "eso sería",
    ];
    let told = clause
        .lower
        .get(..mention.start.saturating_sub(clause.start))
        .unwrap_or_default()
        .trim_end();
    if WOULD_BE.iter().any(|w| told.ends_with(w)) {
        return (Weight::Best, alone);
    }
    if hypothetical {
        let best = says(cues::BEST) && !many;
        return (
            if best {
                Weight::Praised
            } else {
                Weight::Nothing
            },
            alone,
        );
    }
    let single = mentions
        .iter()
        .all(|m| m.rejected || m.item == mention.item);
    // "Since budget was your top concern, Netlify."
    let ends =
        alone && at > 0 && at + 1 == sentence.clauses.len() && clause.before == Before::Comma;
    if says(cues::BEST)
        || clause.role == Role::Conclusion
            && (single || !many && clause.lower.len() < CONCLUSION_BYTES_MAX)
        || ends && single
    {
        return (Weight::Best, alone);
    }
    if is_imperative(sentence, mention) && single {
        return (Weight::Best, alone);
    }
    if !many && is_faulted(sentence, at, mention) {
        return (Weight::Nothing, alone);
    }
    let own = is_hypothetical(&clause.lower) && cues::has(&clause.lower, cues::OWN);
    if own && !many || says(cues::PRAISES) || clause.role == Role::Contrast && !many {
        return (Weight::Praised, alone);
    }
    (Weight::Named, alone)
}

/// Returns whether an option begins the short last clause of a sentence, behind a reason and a colon: `It must be there
/// on Thursday: UPS Express.`
fn concludes_behind_colon(sentence: &Sentence, at: usize, mention: &Mention) -> bool {
    const WORDS_MAX: usize = 3;
    let clause = &sentence.clauses[at];
    let reason = at.checked_sub(1).map(|b| &sentence.clauses[b]);
    clause.before == Before::Colon
        && at + 1 == sentence.clauses.len()
        && mention.start <= clause.start + 1
        && clause.lower.split_whitespace().count() <= WORDS_MAX
        && reason.is_some_and(|c| c.role == Role::Reason)
}

/// Returns whether a clause continues after a bracket: `The lift (B) is faster`.
fn goes_on_behind_bracket(sentence: &Sentence, at: usize) -> bool {
    let next = |n: usize| sentence.clauses.get(n);
    let (Some(aside), Some(rest)) = (next(at + 1), next(at + 2)) else {
        return false;
    };
    let between = sentence.text.get(aside.start..rest.start);
    let closes =
        between.is_some_and(|t| t.trim_end_matches([' ', '*', '_']).ends_with([')', '）']));
    aside.in_brackets && !rest.in_brackets && closes && rest.role == Role::Claim
}

/// Returns whether a clause begins with a fault: `too steep`, `it's too steep`.
pub(super) fn begins_with_fault(lower: &str) -> bool {
    const SUBJECTS: &[&str] = &[
        "c'est", "it's", "it is", "that's", "das ist", "es ist", "es", "ist", "is",
    ];
    let bare = SUBJECTS
        .iter()
        .find_map(|s| lower.strip_prefix(s).filter(|rest| rest.starts_with(' ')))
        .map_or(lower, str::trim_start);
    cues::FAULTS
        .iter()
        .any(|w| clauses::begins(bare, w.trim_end_matches('*')))
}

/// Returns whether a fault is found with an option, in its clause or directly after its colon.
pub(super) fn is_faulted(sentence: &Sentence, at: usize, mention: &Mention) -> bool {
    let clause = &sentence.clauses[at];
    let from = mention.end.saturating_sub(clause.start);
    let own = clause.lower.get(from..).unwrap_or_default();
    let next = sentence.clauses.get(at + 1).filter(|c| {
        own.trim().is_empty()
            && matches!(c.before, Before::Colon | Before::Comma)
            && c.role == Role::Claim
    });
    let faults = |text: &str| cues::has(text, cues::FAULTS) && !is_negated(text, cues::FAULTS);
    faults(own) || next.is_some_and(|c| faults(&c.lower))
}

/// Returns whether an option ends a short imperative sentence: `Macht Eis!`
pub(super) fn is_imperative(sentence: &Sentence, mention: &Mention) -> bool {
    if matches!(sentence.form, Some(Form::Heading | Form::Bold | Form::Row)) {
        return false;
    }
    const OTHERS: &[&str] = &[
        "of", "for", "de", "von", "du", "à", "pros", "cons", "pro", "contra", "is", "are", "not",
        "no", "nicht", "kein", "keine", "pas", "sin", "against", "or", "and", "also", "auch", "vs",
    ];
    let head = sentence
        .text
        .get(..mention.start)
        .unwrap_or_default()
        .to_lowercase();
    let words: Vec<&str> = head
        .split(|c: char| !c.is_alphabetic() && c != '\'')
        .filter(|w| !w.is_empty())
        .collect();
    let tail = sentence.text.get(mention.end..).unwrap_or_default();
    (1..=2).contains(&words.len())
        && !tail.chars().any(char::is_alphanumeric)
        && !words.iter().any(|w| OTHERS.contains(w))
        && sentence.clauses.len() == 1
}

/// Returns whether an option comes later in time than another: `and move to Postgres once …`.
pub(super) fn is_next_step(clause: &clauses::Clause, mention: &Mention) -> bool {
    const STEPS: &[&str] = &[
        "and move to",
        "and switch to",
        "and migrate to",
        "and upgrade to",
        "then move to",
        "then switch to",
        "later move to",
        "and later",
        "then migrate to",
        "und später",
        "und dann zu",
        "puis passer à",
        "puis passez à",
        "y luego",
        "y después",
        "之后再",
        "以后再",
        "再换",
    ];
    let to = mention.start.saturating_sub(clause.start);
    let before = clause.lower.get(..to).unwrap_or_default();
    STEPS.iter().any(|step| cues::find(before, step).is_some())
}

/// Maximum length of a concluding clause with only an option, in bytes.
const CONCLUSION_BYTES_MAX: usize = 60;
/// Maximum number of words between an option and words about it.
pub(super) const NEAR_WORDS: usize = 7;

/// Words that leave the option after them.
const REMAINS: [&str; 5] = ["leaves", "bleibt", "reste", "il reste", "queda"];

/// Returns whether one of these words is near an option in its clause.
pub(super) fn is_near(
    clause: &clauses::Clause,
    mention: &Mention,
    words: &'static [&'static str],
) -> bool {
    let from = mention.start.saturating_sub(clause.start);
    let to = mention.end.saturating_sub(clause.start);
    let between = |text: Option<&str>| {
        let text = text.unwrap_or_default();
        match text.chars().any(is_han) {
            true => text.chars().count() / 2,
            false => text.split_whitespace().count(),
        }
    };
    cues::places(&clause.lower, words).any(|(at, end)| {
        // A word within the name does not count: `Go for I/O`.
        if at < to && end > from {
            return false;
        }
        // `Only tea remains` leaves tea, `tea leaves no stain` does not.
        if at >= to
            && clause
                .lower
                .get(at..end)
                .is_some_and(|w| REMAINS.contains(&w))
        {
            return false;
        }
        let gap = match (at >= to, end <= from) {
            (true, _) => between(clause.lower.get(to..at)),
            (_, true) => between(clause.lower.get(end..from)),
            _ => 0,
        };
        gap <= NEAR_WORDS
    })
}

/// Returns whether a text ends in a verb in the conditional of the first person, beside small words: `yo pondría`, `je
/// mettrais du`, `I'd stay in`.
pub(super) fn ends_in_own_conditional(before: &str) -> bool {
    const AVOIDS: &str = "avoid skip drop exclude reject dismiss leave ditch replace question doubt worry think know need love like hate miss \
        say add argue expect assume consider compare look check hope fear enjoy guess have be see call rank ask find reconsider revisit rethink review \
        éviterais écarterais exclurais laisserais remplacerais douterais penserais aimerais dirais attendrais comparerais \
        considérerais regarderais vérifierais supposerais estimerais aurais serais réexaminerais reconsidérerais évitería \
        evitaría descartaría excluiría dejaría reemplazaría quitaría dudaría querría gustaría pensaría diría esperaría compararía \
        consideraría miraría reconsideraría revisaría";
    const SMALL: &str = "a an the in on for with to into up it them la le les un une du de des en sur el los las una por con lo";
    let is = |table: &str, word: &str| table.split_whitespace().any(|w| w == word);
    if !["rais", "ría", "'d ", "would"]
        .iter()
        .any(|mark| before.contains(mark))
    {
        return false;
    }
    let words: Vec<&str> = before
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
        .collect();
    let small = words.iter().rev().take_while(|w| is(SMALL, w)).count();
    let Some((verb, rest)) = words[..words.len() - small].split_last() else {
        return false;
    };
    if small > 2 || is(AVOIDS, verb) {
        return false;
    }
    let subject = rest.last().copied().unwrap_or_default();
    let elided = verb.strip_prefix("j'").unwrap_or(verb);
    let french =
        elided.ends_with("rais") && (subject == "je" || elided != *verb) && !is(AVOIDS, elided);
    let spanish = verb.ends_with("ría")
        && verb.chars().count() > 4
        && !is(
            "sería estaría habría podría tendría debería haría costaría",
            verb,
        )
        && (subject == "yo" || rest.is_empty());
    let english = matches!(subject, "i'd" | "we'd")
        || subject == "would" && rest.len() > 1 && matches!(rest[rest.len() - 2], "i" | "we");
    french || spanish || english && !verb.ends_with("ly")
}

/// Returns whether the words directly before an option choose it.
pub(super) fn has_modal(clause: &clauses::Clause, mention: &Mention) -> bool {
    let to = mention.start.saturating_sub(clause.start);
    let before = clause.lower.get(..to).unwrap_or_default();
    let before = before.trim_end_matches([' ', '*', '_', '`', '"', '“', '„', '«', '\'', ':']);
    cues::MODALS
        .iter()
        .any(|modal| before.ends_with(modal) && cues::find(before, modal).is_some())
}

/// Returns whether an option is one of two after `between`.
pub(super) fn is_between(sentence: &Sentence, mention: &Mention) -> bool {
    const BETWEEN: &[&str] = &[
        "from",
        "von",
        "between",
        "zwischen",
        "entre",
        "from among",
        "among",
        "介于",
    ];
    let head = sentence
        .text
        .get(..mention.start)
        .unwrap_or_default()
        .to_lowercase();
    // `from 1914 to 1918`, but not `from Bordeaux`.
    let counts = sentence
        .text
        .get(mention.start..)
        .is_some_and(|t| t.starts_with(|c: char| c.is_ascii_digit()));
    let words = BETWEEN
        .iter()
        .filter(|w| counts || !matches!(**w, "from" | "von"));
    let Some(at) = words.filter_map(|w| cues::find(&head, w)).max() else {
        return false;
    };
    // `between the two I lean to Postgres`
    const BOTH: [&str; 9] = [
        " the two",
        " the three",
        " these",
        " them",
        " den beiden",
        " beiden",
        " les deux",
        " los dos",
        " las dos",
    ];
    let behind = head[at..].trim_start_matches(char::is_alphabetic);
    if BOTH.iter().any(|both| behind.starts_with(both)) {
        return false;
    }
    // The pair ends with the second option.
    !head[at..].contains([',', '，', '、', ';', ':', '：'])
        && head[at..].split_whitespace().count() <= 5
}

/// Returns whether the words after an option rank it later or lower.
pub(super) fn is_later(clause: &clauses::Clause, mention: &Mention) -> bool {
    let from = mention.end.saturating_sub(clause.start);
    let after = clause.lower.get(from..).unwrap_or_default();
    cues::has(after, cues::LATER)
}

pub(super) fn is_hypothetical(lower: &str) -> bool {
    cues::has(lower, cues::HYPOTHETICAL)
}

/// Returns whether the first of these words in a clause is negated.
pub(super) fn is_negated(lower: &str, words: &'static [&'static str]) -> bool {
    const NOT: &[&str] = &[
        "not",
        "don't",
        "doesn't",
        "isn't",
        "wouldn't",
        "can't",
        "cannot",
        "shouldn't",
        "won't",
        "never",
        "no",
        "nicht",
        "kein",
        "keine",
        "keinen",
        "nie",
        "pas",
        "ne",
        "n'est",
        "jamais",
        "aucune",
        "no",
        "nunca",
        "tampoco",
    ];
    let Some((at, _)) = cues::places(lower, words).next() else {
        return false;
    };
    let before: Vec<&str> = lower[..at].split_whitespace().collect();
    let near = before
        .iter()
        .rev()
        .take(3)
        .any(|w| NOT.contains(&w.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'')));
    let han = lower[..at]
        .chars()
        .rev()
        .take(2)
        .any(|c| matches!(c, '不' | '没' | '别' | '未'));
    let behind: Vec<&str> = lower[at..].split_whitespace().skip(1).take(2).collect();
    near || han
        || behind.iter().any(|w| {
            [
                "nicht", "pas", "not", "kein", "keine", "keinen", "nie", "jamais", "never",
            ]
            .contains(w)
        })
}
