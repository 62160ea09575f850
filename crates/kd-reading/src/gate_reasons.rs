//! The reasons for which a reply stays open. Input: the account of a reply. Output: whether the reason holds.

use super::candidates::{Candidate, Standing};
use super::clauses::{Before, Role, Sentence};
use super::cues;
use super::gate_account::{Account, is_negative, lower};
use super::gate_mentions::{is_aside, is_ranked};
use super::gate_words::{BOUNDS, DECIDES, EMPTY, FIRST_PERSON, LACKS, TOTALS, UNABLE};
use super::language::is_han;

/// Returns whether the last sentence gives no answer: `I can't compute that.`
pub(super) fn gives_up(account: &Account) -> bool {
    let Some(sentence) = account.sentences.get(account.end) else {
        return false;
    };
    let ends = |c: &Candidate| c.place >= account.end;
    let committed = |c: &Candidate| c.standing == Standing::Committed;
    if account
        .own()
        .any(|c| ends(c) && (committed(c) || !account.numbers))
    {
        return false;
    }
    let lower = lower(sentence);
    cues::has(&lower, UNABLE) && cues::has(&lower, DECIDES)
        || cues::has(&lower, LACKS)
        || cues::has(&lower, cues::CANNOT_CHOOSE)
        || is_negative(&lower)
            && cues::has(
                &lower,
                &[
                    "none of",
                    "nichts davon",
                    "aucune de ces",
                    "aucun de ces",
                    "ninguna de estas",
                    "ninguno de estos",
                    "都不",
                ],
            )
}

/// Returns whether no mention of the answer commits to it.
pub(super) fn is_unfounded(account: &Account) -> bool {
    account.own().all(|c| c.standing <= Standing::Explained)
}

/// Returns whether the words around two values are the same for the most part.
pub(super) fn says_the_same(one: &str, other: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let mut out = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '\'') {
            if word.chars().any(is_han) {
                out.extend(
                    word.chars()
                        .filter(|c| is_han(*c))
                        .filter(|c| !matches!(c, '是' | '的'))
                        .map(String::from),
                );
            } else if word.chars().any(char::is_alphabetic) && !EMPTY.contains(&word) {
                out.push(word.to_owned());
            }
        }
        out
    };
    let (one, other) = (words(one), words(other));
    let (few, many) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let fits = |a: &String, b: &String| {
        let long = a.chars().count() > 3 && b.chars().count() > 3;
        a == b || long && (a.starts_with(b.as_str()) || b.starts_with(a.as_str()))
    };
    let shared = few
        .iter()
        .filter(|a| many.iter().any(|b| fits(a, b)))
        .count();
    shared > 0 && 2 * shared >= few.len() && 3 * shared >= many.len()
}

/// Returns whether the reply says the same about another value, in the same, the next or the previous sentence.
pub(super) fn is_parallel(account: &Account) -> bool {
    let Some(own) = account.last() else {
        return false;
    };
    let around = account.around(own);
    let least = match account.numbers {
        true => Standing::Loose,
        false => Standing::Explained,
    };
    // `7 days of 24 hours, 168 hours in total`
    let totals = |text: &str| text.contains('=') || cues::has(text, TOTALS);
    const EQUALLY: &[&str] = &[
        "as much", "as many", "so viel*", "ebenso", "genauso", "autant", "tanto", "tanta",
        "tantos", "tantas", "equally", "一样",
    ];
    const OTHER: &[&str] = &[
        "else",
        "otherwise",
        "the other",
        "sonst",
        "andernfalls",
        "die andere",
        "der andere",
        "das andere",
        "sinon",
        "l'autre",
        "si no",
        "de lo contrario",
        "la otra",
        "el otro",
        "否则",
        "另一",
    ];
    let bound = account.numbers && cues::has(&around, BOUNDS);
    account.rivals().any(|r| {
        let beside = r.place == own.place && r.standing > Standing::Rejected;
        let told = |c: &Candidate| account.around(c);
        let role = |c: &Candidate| {
            let sentence = account.sentences[c.place];
            sentence
                .clauses
                .get(sentence.clause_at(c.start))
                .map(|c| c.role)
        };
        // `A if speed counts, B if safety counts`
        let cases = |c: &Candidate| {
            let clauses = &account.sentences[c.place].clauses;
            clauses.iter().filter(|c| c.role == Role::Condition).count()
        };
        let otherwise = account.numbers && [role(own), role(r)].contains(&Some(Role::Otherwise));
        (beside
            && (bound
                || otherwise
                || cues::has(&told(r), OTHER) && !cues::has(&told(r), &["instead"])))
            || r.place == own.place && cues::has(&around, EQUALLY)
            || beside && cases(r) > 1
            || beside && account.are_paired(own, r)
    }) || account.rivals().any(|r| {
        let clause = |c: &Candidate| account.sentences.get(c.place).map(|s| s.clause_at(c.start));
        let other = account.around(r);
        r.standing >= least
            && r.place == own.place
            && clause(r) != clause(own)
            && !(account.numbers && (around.contains('=') || totals(&around) && !totals(&other)))
            && says_the_same(&around, &other)
    })
}

/// Returns whether a later sentence commits itself to another value.
pub(super) fn commits_later(account: &Account) -> bool {
    let Some(own) = account.last() else {
        return false;
    };
    account.rivals().any(|r| {
        // A check of the result: `x = 25. 25 · 4 = 100.`
        let mut all = account.candidates.iter();
        let checks = all.any(|c| c.own && c.place == r.place);
        r.place > own.place && r.standing == Standing::Committed && !checks
    })
}

/// Returns whether the last sentence with values names only others; a strong commitment at the beginning outweighs them.
pub(super) fn ends_otherwise(account: &Account) -> bool {
    let Some(own) = account.last() else {
        return false;
    };
    let first = account.candidates.iter().map(|c| c.place).min();
    let opens = first == Some(own.place) && account.is_strong(own);
    let named = account.candidates.iter();
    let named = named.filter(|c| c.standing > Standing::Explained);
    let last = named.map(|c| c.place).max();
    let elsewhere = |last: usize| {
        let mut all = account.candidates.iter();
        last > own.place && all.all(|c| !c.own || c.place != last)
    };
    !opens && last.is_some_and(elsewhere)
}

/// Returns whether options are named after one that nothing strong commits to.
pub(super) fn is_outtalked(account: &Account) -> bool {
    let Some(own) = account.last() else {
        return false;
    };
    let follows = |r: &Candidate| {
        r.place > own.place && r.standing > Standing::Rejected && !is_aside(account, r)
    };
    !account.numbers && !account.is_strong(own) && account.rivals().any(follows)
}

/// Returns whether the author speaks of another option before an option in passing: `I'd put my money on tea. The friends
/// of coffee will be disappointed.`
pub(super) fn is_spoken_for(account: &Account) -> bool {
    let Some(own) = account
        .last()
        .filter(|_| account.is_loose() && !account.numbers)
    else {
        return false;
    };
    let speaks = |r: &Candidate| {
        let sentence = account.sentences.get(r.place);
        sentence.is_some_and(|s| cues::has(&lower(s), FIRST_PERSON))
    };
    let mut rivals = account.rivals();
    rivals.any(|r| r.place < own.place && r.standing > Standing::Rejected && speaks(r))
}

/// Returns whether the reply ends with a bound or with another number alone: `The list has 40 rows. At least 35.`
pub(super) fn ends_short(account: &Account) -> bool {
    const WORDS_MAX: usize = 4;
    let (Some(own), Some(last)) = (account.last(), account.sentences.get(account.end)) else {
        return false;
    };
    if !account.numbers || own.place >= account.end {
        return false;
    }
    let short = match last.text.chars().any(is_han) {
        true => last.text.chars().count() <= 3 * WORDS_MAX,
        false => last.text.split_whitespace().count() <= WORDS_MAX,
    };
    // `1945. It began in 1939.`
    let first = account.sentences.first().map(|s| s.text.as_str());
    let alone = own.place == 0 && first.is_some_and(|t| t.split_whitespace().count() == 1);
    let told = alone && last.text.split_whitespace().count() > WORDS_MAX / 2;
    let ends = |c: &Candidate| c.place == account.end;
    let bounded = cues::has(&lower(last), BOUNDS) && account.candidates.iter().any(ends);
    bounded || short && !told && account.rivals().any(ends)
}

/// Returns whether a later sentence rules the option out: `Tea is better. Neither tea nor coffee helps.`
pub(super) fn is_ruled_out(account: &Account) -> bool {
    let Some(own) = account.last().filter(|_| !account.numbers) else {
        return false;
    };
    let mut all = account.candidates.iter();
    all.any(|c| c.own && c.place > own.place && c.standing == Standing::Rejected)
}

/// Returns whether several numbers come last, after one that nothing strong commits to.
pub(super) fn ends_with_several(account: &Account) -> bool {
    let Some(own) = account.last().filter(|_| account.numbers) else {
        return false;
    };
    let all = || account.candidates.iter();
    let last = all().map(|c| c.place).max().unwrap_or(0);
    let count = all().filter(|c| c.place == last).count();
    !account.is_strong(own) && last > own.place && count > 1
}

/// Returns whether an earlier sentence commits more strongly to another number.
pub(super) fn is_outweighed(account: &Account) -> bool {
    let Some(own) = account.last().filter(|_| account.numbers) else {
        return false;
    };
    let mut rivals = account.rivals();
    !account.is_strong(own) && rivals.any(|r| r.place < own.place && account.is_strong(r))
}

/// Returns whether a value mentioned in passing is next to another value that nothing explains.
pub(super) fn has_rival(account: &Account) -> bool {
    let Some(own) = account.last() else {
        return false;
    };
    let least = match own.standing {
        Standing::Rejected | Standing::Explained | Standing::Loose => Standing::Explained,
        Standing::Favoured | Standing::Committed => Standing::Loose,
    };
    let later = |r: &Candidate| own.standing <= Standing::Favoured && r.place > own.place;
    let equal = |r: &Candidate| {
        account.numbers
            && own.standing == r.standing
            && own.standing == Standing::Loose
            && r.place != own.place
    };
    let beside = |r: &Candidate| !account.numbers && account.goes_beside(own, r) || equal(r);
    let mut rivals = account.rivals();
    rivals.any(|r| r.standing >= least && !is_ranked(account, r) && (later(r) || beside(r)))
}

/// Returns whether the sentence of an option continues with something better: `There's a case for tea; there's a
/// better one for asking.`
pub(super) fn is_bettered(account: &Account) -> bool {
    const BETTER: &[&str] = &["better", "mieux", "mehr", "besser", "más", "mejor", "更"];
    let Some(own) = account
        .last()
        .filter(|own| !account.numbers && !account.is_strong(own))
    else {
        return false;
    };
    let sentence = account.sentences[own.place];
    let rest = sentence.clauses.get(sentence.clause_at(own.start) + 1..);
    let named = |c: &super::clauses::Clause| {
        let mut all = account.candidates.iter();
        all.any(|m| m.place == own.place && (c.start..c.end).contains(&m.start))
    };
    let mut rest = rest.unwrap_or_default().iter();
    rest.any(|c| {
        let apart = c.before == Before::Semicolon || c.lower.chars().any(is_han);
        apart && cues::has(&c.lower, BETTER) && !named(c)
    })
}

/// Returns whether the reply continues after a value mentioned in passing with more than a plain explanation.
pub(super) fn goes_on(account: &Account) -> bool {
    let Some(own) = account.last().filter(|_| account.is_loose()) else {
        return false;
    };
    if own.place >= account.end {
        return false;
    }
    let alone = own.place == 0 && account.rivals().next().is_none();
    let plain = |s: &&Sentence| {
        let lower = lower(s);
        !s.asks()
            && !is_negative(&lower)
            && !cues::has(&lower, FIRST_PERSON)
            && !s.has(Role::Condition)
            && !s.has(Role::Conclusion)
            && !s.has(Role::Contrast)
    };
    /// Maximum sentences of an explanation.
    const EXPLANATION_MAX: usize = 12;
    if account.end - own.place > EXPLANATION_MAX {
        return true;
    }
    let rest = account.sentences.get(own.place + 1..=account.end);
    !alone || !rest.unwrap_or_default().iter().all(plain)
}

/// Returns whether the clause of a value in passing denies something, other than in a phrase of praise.
pub(super) fn is_denied(account: &Account) -> bool {
    const PRAISES: &[&str] = &[
        "can't go wrong",
        "cannot go wrong",
        "can't beat",
        "cannot beat",
        "hard to beat",
        "no te equivocas",
        "no hay nada mejor",
        "kein weg vorbei",
        "keinen weg",
        "nichts besseres",
        "not only",
        "nicht nur",
        "non seulement",
        "no solo",
        "no sólo",
        "enough",
        "no question",
        "no doubt",
        "without a doubt",
        "without hesitation",
        "ohne zweifel",
        "zweifellos",
        "sans hésit*",
        "sans aucun doute",
        "sin duda*",
        "sin dudarlo",
        "不二",
        "不如",
        "没错",
        "无疑",
        "毫无疑问",
    ];
    let Some(own) = account.last().filter(|own| !account.is_strong(own)) else {
        return false;
    };
    let around = account.around(own);
    // `the no-GC constraint`
    let plain = around.replace("no-", "").replace("non-", "");
    is_negative(&plain) && !cues::has(&around, PRAISES)
}
