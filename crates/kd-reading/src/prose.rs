//! Reads an answer in prose as a person would: labelled lines, the chosen option rather than a rejected one, the number
//! on the last line. Ambiguous text is not read.

use super::answer_labels::Taken;
use super::language::{Language, is_han};
use super::lettered::Led;
use super::marks::marked_line;
use super::options::Options;
use super::prose_words::{DECIDES, RESULTS, has_any};
use super::statements::{Stated, announced, labelled, stated};
use super::{clauses, date, number, refusal, sayings};

pub use super::said::Said;

pub use super::prose_words::turns;

pub use super::statements::labelled_text;

pub(super) use super::answer_labels::is_label;

pub use super::plain::{bare, is_about_confidence, plain_latex};

pub(super) use super::plain::sentences;

pub use super::thoughts::{THINKING_TAGS, after_thinking, without_thoughts};

/// Returns the option chosen by a text.
pub fn option(text: &str, options: &Options) -> Said<usize> {
    let text = &super::lettered::in_capitals(text, options);
    let kept = super::set_aside::without(text, options);
    let (mut apart, mut left) = (None, None);
    match super::lettered::apart(&kept, options) {
        Led::Apart(item, text) => apart = Some((item, text)),
        Led::Turned(item) => left = Some(item),
        Led::Torn => return Said::Several,
        Led::Plain => {}
    }
    let said = match &apart {
        Some((_, apart)) => said_option(apart, options),
        None => said_option(&super::set_aside::with_idioms(&kept), options),
    };
    match said {
        Said::Labelled(at) | Said::Words(at) if left == Some(at) => Said::Several,
        // The explanation does not outweigh the letter.
        Said::Labelled(at) | Said::Words(at)
            if apart.as_ref().is_some_and(|(item, _)| *item != at) && !turns(text) =>
        {
            Said::Several
        }
        Said::Labelled(at) | Said::Words(at)
            if options.is_yes_no()
                && super::lettered::leads_otherwise(text, options.stated("yes") == Some(at)) =>
        {
            Said::Several
        }
        Said::Labelled(_) | Said::Words(_) if ends_unknown(text) => Said::Several,
        said => said,
    }
}

/// Returns whether the last sentence says that the author no longer knows.
fn ends_unknown(text: &str) -> bool {
    const GIVES_UP: [&str; 8] = [
        "je ne sais plus",
        "i don't know anymore",
        "i no longer know",
        "i'm not sure anymore",
        "ich weiß es nicht mehr",
        "weiß nicht mehr",
        "ya no sé",
        "ya no lo sé",
    ];
    let last = sentences(text).into_iter().next_back().unwrap_or_default();
    let lower = last.to_lowercase().replace('’', "'");
    GIVES_UP.iter().any(|words| lower.contains(words))
}

fn said_option(text: &str, options: &Options) -> Said<usize> {
    let text = &super::rewritten::without_arrows(text);
    let text = &super::rewritten::named(text, options);
    let text = &super::rewritten::without_underscores(text, options);
    let own;
    let text = match options.is_yes_no() {
        true => {
            own = super::rewritten::own_han(super::rewritten::without_form(text));
            own.as_str()
        }
        false => text,
    };
    let stated = stated(text);
    let labelled = labelled(&stated, |line| {
        let line = bare(line);
        match options.stated(&line) {
            Some(at) => Taken::One(at),
            None => labelled_choice(&line, options),
        }
    });
    match labelled {
        Taken::One(at) if is_taken_back(text, &stated, at, options) => return Said::Several,
        Taken::One(at) if has_rival(text, &stated, at, options) => return Said::Several,
        Taken::One(at) => return Said::Labelled(at),
        Taken::Several => return Said::Several,
        Taken::None => {}
    }
    // `(A) reads best. But I go with (B).` says more than its label.
    let whole = bare(text);
    if let Some(at) = options.stated(&whole)
        && sentences(text).len() < 3
        && !turns(text)
    {
        return Said::Words(at);
    }
    let Some(declined) = refusal::of(text) else {
        return chosen(text, options);
    };
    let decides = options.is_yes_no()
        || sentences(&declined.rest)
            .iter()
            .any(|s| has_any(&s.to_lowercase(), DECIDES) || options.stated(&bare(s)).is_some());
    match chosen(&declined.rest, options) {
        Said::Words(at) if decides && !declined.outright => Said::Words(at),
        Said::Words(_) | Said::Several if decides => Said::Several,
        _ => Said::Refused,
    }
}

/// Returns the option chosen by a text without labels; labels in brackets count if nothing else is found.
fn chosen(text: &str, options: &Options) -> Said<usize> {
    match chosen_as_written(text, options) {
        Said::Nothing => super::rewritten::without_brackets(text, options)
            .map_or(Said::Nothing, |bare| chosen_as_written(&bare, options)),
        said => said,
    }
}

fn chosen_as_written(text: &str, options: &Options) -> Said<usize> {
    for marked in [
        super::ticks::marked(text, options),
        marked_line(text, options),
    ] {
        match marked {
            Taken::One(at) => return Said::Words(at),
            Taken::Several => return Said::Several,
            Taken::None => {}
        }
    }
    let side = |yes: bool| options.stated(if yes { "yes" } else { "no" });
    let verdict = match options.is_yes_no() {
        true => super::verdict_sides::of(text).map(side),
        false => super::verdict::of(text, options).map(Some),
    };
    match verdict {
        Said::Words(Some(at)) => return Said::Words(at),
        Said::Several => return Said::Several,
        _ => {}
    }
    if let Some(first) = options
        .ranked(text)
        .and_then(|order| order.first().copied())
        && text.contains(['>', '≻'])
    {
        return Said::Words(first);
    }
    if let Some(first) = super::ranking::first(text, options)
        && !options.is_yes_no()
    {
        return Said::Words(first);
    }
    const EITHER: [&str; 7] = [
        "不是不",
        "并非不",
        "未必不",
        "不能说不",
        "也不是没",
        "既不",
        "既没",
    ];
    if options.is_yes_no() && EITHER.iter().any(|w| text.contains(w)) {
        return Said::Several;
    }
    if options.is_yes_no() && super::unknown::is_unknown(text) {
        return Said::Several;
    }
    if let Some(placed) = by_place(text, options) {
        return placed;
    }
    if let Some(first) = options.largest_share(text) {
        return Said::Words(first);
    }
    match (
        super::weigh::decide(text, options),
        sayings::yes_or_no(text),
    ) {
        (Said::Nothing, said) if options.is_yes_no() => {
            let side = said.or_else(|| super::asked::chinese_side(text));
            let lower = text.to_lowercase().replace('’', "'");
            if side.is_none()
                && (super::cues::has(&lower, super::cues::CANNOT_CHOOSE)
                    || super::cues::has(&lower, &["es kommt auf", "ça dépend", "depends on"]))
            {
                return Said::Several;
            }
            let Some(said) = side.or_else(|| {
                super::stance::of(text).filter(|_| !is_unable(text) && !super::asks_back(text))
            }) else {
                return Said::Nothing;
            };
            let word = if said { "yes" } else { "no" };
            options.stated(word).map_or(Said::Nothing, Said::Words)
        }
        (read, _) => read,
    }
}

/// Returns whether a sentence says that its author cannot answer: `Je ne peux malheureusement pas répondre`.
fn is_unable(text: &str) -> bool {
    sentences(text).iter().any(|s| {
        let lower = s.to_lowercase().replace('’', "'");
        super::cues::has(&lower, super::gate_words::UNABLE)
            && super::cues::has(&lower, super::gate_words::DECIDES)
            && super::cues::has(&lower, super::gate_words::FIRST_PERSON)
    })
}

/// Returns the option that the first sentence names by position alone, unless other sentences name another one.
fn by_place(text: &str, options: &Options) -> Option<Said<usize>> {
    let parts = sentences(text);
    let (first, rest) = parts.split_first()?;
    let at = super::ordinals::only(first, options)?;
    // `B fails the second test.`
    if !options.mentions(first).is_empty() {
        return None;
    }
    if rest.is_empty() {
        return Some(Said::Words(at));
    }
    let rest = rest.join(" ");
    Some(match super::weigh::decide(&rest, options) {
        Said::Words(other) if other == at => Said::Words(at),
        Said::Nothing if !super::voices::retracts(&rest.to_lowercase()) => Said::Words(at),
        _ => Said::Several,
    })
}

/// Returns the option chosen by a labelled line: the whole line, otherwise its first sentence if nothing is retracted.
fn labelled_choice(line: &str, options: &Options) -> Taken<usize> {
    let parts = sentences(line);
    let first = match parts.split_first() {
        Some((first, rest)) if !rest.is_empty() && !turns(line) => chosen(&bare(first), options),
        _ => Said::Nothing,
    };
    match (first, chosen(line, options)) {
        (Said::Words(at), _) | (Said::Nothing, Said::Words(at)) => Taken::One(at),
        (Said::Several, _) | (_, Said::Several) => Taken::Several,
        _ => Taken::None,
    }
}

/// Returns whether the author changes to another option after the last labelled line.
fn is_taken_back(text: &str, stated: &[Stated], at: usize, options: &Options) -> bool {
    let last = stated.iter().map(|s| s.line).max().unwrap_or(0);
    let rest: Vec<&str> = text.lines().skip(last + 1).collect();
    let rest = rest.join("\n");
    let lower = rest.trim_start().to_lowercase();
    let again = ["or ", "oder ", "ou ", "o ", "hmm", "或"]
        .iter()
        .any(|w| lower.starts_with(w));
    let other = |s: &clauses::Sentence| {
        let case = s.has(clauses::Role::Condition);
        let mut named = options.mentions(&s.text).into_iter();
        !case && named.any(|m| !m.rejected && m.item != at)
    };
    (turns(&rest) || again) && clauses::sentences(&rest).iter().any(other)
}

/// Returns whether a text chooses another option as clearly as its label does, without a change of mind.
fn has_rival(text: &str, stated: &[Stated], at: usize, options: &Options) -> bool {
    if turns(text) {
        return false;
    }
    let finals = stated.iter().filter(|s| s.is_final).count();
    let mut rivals = stated.iter().filter(|s| s.is_final || finals == 0);
    let differs = |s: &Stated| {
        options
            .stated(&bare(&s.text))
            .is_some_and(|other| other != at)
    };
    rivals.any(differs) || super::weigh::rivals(text, at, options)
}

/// Returns the number given by a text.
pub fn number(text: &str, language: Language) -> Said<String> {
    let whole = |line: &str| match super::amounts::decide(line, language) {
        Said::LastLine(key) => Taken::One(key),
        Said::Nothing => Taken::None,
        _ => Taken::Several,
    };
    // The first statement behind a label answers: `The answer is 6. That is 4 more than last year.`
    let read = |line: &str| match first_statement(line).map(whole) {
        Some(Taken::One(key)) => Taken::One(key),
        _ => whole(line),
    };
    if wavers(text, language) {
        return Said::Several;
    }
    match labelled(&stated(text), read) {
        Taken::One(key) => return Said::Labelled(key),
        Taken::Several => return Said::Several,
        Taken::None => {}
    }
    if let Some(key) = own_line(text, language) {
        return Said::Labelled(key);
    }
    let Some(declined) = refusal::of(text) else {
        return super::amounts::decide(text, language);
    };
    let gives = sentences(&declined.rest).iter().any(|s| gives_number(s));
    match super::amounts::decide(&declined.rest, language) {
        Said::LastLine(key) if gives && !declined.outright => Said::LastLine(key),
        Said::LastLine(_) | Said::Several if gives || !declined.outright => Said::Several,
        _ => Said::Refused,
    }
}

/// Returns the number that is alone on a line, in bold, as a formula or after an equals sign: `**391**`, `$$x = 5$$`.
fn own_line(text: &str, language: Language) -> Option<String> {
    const BYTES_MAX: usize = 40;
    let mut found: Option<String> = None;
    if turns(text) || text.lines().count() < 2 {
        return None;
    }
    for line in text.lines().map(str::trim) {
        let marked = line.starts_with("**") && line.ends_with("**")
            || line.starts_with("$$") && line.ends_with("$$")
            || line.starts_with("= ");
        if !marked || line.len() > BYTES_MAX {
            continue;
        }
        let plain = plain_latex(&bare(line));
        // `**Total: 1,500 €**`
        let value = plain.rsplit(['=', '：']).next().unwrap_or_default();
        let value = value.rsplit(": ").next().unwrap_or_default().trim();
        let letters = value.chars().filter(|c| c.is_alphabetic()).count();
        let key = number::only(value, language).filter(|_| letters <= 3)?;
        if found.as_ref().is_some_and(|other| *other != key) {
            return None;
        }
        found = Some(key);
    }
    found
}

/// Returns the first statement of a labelled line that goes on with another one; `None` if it changes its mind.
fn first_statement(line: &str) -> Option<&str> {
    const NEW: &[char] = &['.', '。'];
    let at = line
        .match_indices(NEW)
        .map(|(at, end)| (at, at + end.len()))
        .find(|(_, end)| {
            let rest = line.get(*end..).unwrap_or_default();
            let next = rest.trim_start().chars().next();
            let apart = rest.starts_with(char::is_whitespace) || next.is_some_and(is_han);
            apart && next.is_some_and(|c| c.is_uppercase() || is_han(c) || c == '(')
        });
    let head = line.get(..at?.0)?;
    let numbered = head.contains(|c: char| c.is_ascii_digit());
    let rest = line.get(head.len()..).unwrap_or_default().to_lowercase();
    let takes_back =
        super::cues::has(&rest, super::amounts::REVOKES) || super::voices::retracts(&rest);
    (numbered && !turns(line) && !takes_back).then_some(head)
}

/// Returns whether a text returns to an answer that it had dropped: 5, 7, 5.
fn wavers(text: &str, language: Language) -> bool {
    let keys = sentences(text)
        .into_iter()
        .filter_map(|s| announced(&s).and_then(|(said, _)| number::only(&said, language)));
    let mut given: Vec<String> = Vec::new();
    for key in keys {
        if given.last() != Some(&key) {
            if given.contains(&key) {
                return true;
            }
            given.push(key);
        }
    }
    false
}

/// Returns whether a sentence next to a refusal gives a number as its result rather than only mentioning it.
fn gives_number(sentence: &str) -> bool {
    const ABOUT: &[&str] = &[
        "about",
        "approximately",
        "around",
        "roughly",
        "etwa",
        "ungefähr",
        "environ",
        "aproximadamente",
        "unos",
        "约",
    ];
    let lower = sentence.to_lowercase();
    sentence.contains(['=', '≈', '＝'])
        || sentence.contains("**")
        || sentence.split_whitespace().count() <= 3
        || has_any(&lower, RESULTS)
        || has_any(&lower, ABOUT)
}

/// Returns the date given by a text: from a labelled line, otherwise the only one, otherwise the one on the last line.
pub fn date(text: &str) -> Said<String> {
    let read = |line: &str| match date::only(line) {
        Some(key) => Taken::One(key),
        None => Taken::None,
    };
    if let Taken::One(key) = labelled(&stated(text), read) {
        return Said::Labelled(key);
    }
    if let Some(key) = date::only(text) {
        return Said::Words(key);
    }
    if let Some(key) = date::concluded(text) {
        return Said::LastLine(key);
    }
    let mut lines = text
        .lines()
        .rev()
        .filter(|l| !l.trim().is_empty() && !is_about_confidence(l));
    match lines.next().and_then(date::only) {
        Some(key) => Said::LastLine(key),
        None if refusal::is_all(text) => Said::Refused,
        None if date::dates(text).is_empty() => Said::Nothing,
        None => Said::Several,
    }
}

/// Returns the answer in an open text besides a refusal; all of it if there is no refusal.
pub(super) fn open_answer(text: &str) -> Said<&str> {
    let Some(declined) = refusal::of(text) else {
        return Said::Words(text);
    };
    let decides = |s: &String| has_any(&s.to_lowercase(), DECIDES) && !sayings::is_courtesy(s);
    match sentences(&declined.rest).iter().any(decides) {
        true if declined.outright => Said::Several,
        true => Said::Words(text),
        false => Said::Refused,
    }
}

/// Returns whether a text chooses an option other than `item`, explicitly or on its final line.
pub fn contradicts(text: &str, item: usize, options: &Options) -> bool {
    let statements = stated(text);
    let finals = statements.iter().filter(|s| s.is_final);
    let read = |s: &Stated| match labelled_choice(&bare(&s.text), options) {
        Taken::One(at) => Some(at),
        _ => options.stated(&bare(&s.text)),
    };
    let last = finals.filter_map(read).next_back();
    last.is_some_and(|at| at != item)
}

/// Returns whether a text retracts the text before it, or says that no answer can be given.
pub fn takes_back(text: &str) -> bool {
    const WRONG: &[&str] = &[
        "that is wrong",
        "that's wrong",
        "this is wrong",
        "that was wrong",
        "is incorrect",
        "was incorrect",
        "i was wrong",
        "disregard",
        "ignore the above",
        "das ist falsch",
        "das war falsch",
        "c'est faux",
        "était faux",
        "es incorrecto",
        "está mal",
        "错了",
        "不对",
        "有误",
    ];
    let lower = text.to_lowercase().replace('’', "'");
    super::cues::has(&lower, WRONG) || super::cues::has(&lower, super::cues::CANNOT_CHOOSE)
}
