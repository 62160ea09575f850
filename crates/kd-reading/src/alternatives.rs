//! Alternatives without labels: joined by "or" (`Should we use SQLite or PostgreSQL?`, `今天还是明天`), separated by slashes
//! (`Rome / Oslo / Bonn`), or compared (`Between Lyon and Nice, which …`).

use super::asking::{self, Word, without_asides, words};
use super::language::{Language, is_han};
use super::option_names;

/// Words between the last two alternatives.
const OR: &str = "or oder ou o u vs vs. versus bzw bzw. ó";
/// Words that precede a noun.
const ARTICLES: &str = "the a an der die das den dem des ein eine einen einem einer kein keine le la les l' un une des \
     el los las una unos unas du";
/// Words that start a prepositional phrase.
const PREPOSITIONS: &str = "in on at with by to for from as via am im an auf mit bei beim zum zur für nach aus vor en a al \
     à au aux con par pour por para sur dans chez avec de";
/// Pronouns that start a clause.
const PRONOUNS: &str =
    "i we you they he she it ich wir du ihr sie man je nous on tu vous ils elles nosotros";
/// Words that start the part shared by all alternatives, after the last one.
const TAIL: &str = "for für pour para to as when wenn si if with at on by from in is are was were fits makes has have would \
     should ist sind hat liegt est sont es tiene son a à zum zur quand cuando than über pendant während auf bei mit the \
     a an le la les el los las der die das un une una ein eine einen dans en por because weil parce porque que which \
     make makes give gives under unter sous this these dieses diese cette este esta now jetzt of zu nach fürs ce cet";
/// Verbs that start a question.
const HEADS: &str = "is are was were do does did can could will would should shall must may has have am soll sollen sollte \
     sollten kann können könnte muss müssen darf dürfen wird werden würde würden ist sind war haben hat nehmen wollen will \
     macht machen lohnt faut-il doit-on peut-on vaut-il devrait-on est-ce est-il est-elle conviene deberíamos debería \
     debemos debo puedo podemos quieres let's lass lasst";
/// Words that make a clause a separate question, so that it contains no alternative.
const QUESTION_WORDS: &str = "which wich what who who's whom whose where when how welche welcher welches welchen welchem was wer wen wem wo \
     wann wie wohin quel quelle quels quelles lequel laquelle qui que où quand comment qu'est-ce qué cuál cuáles quién dónde \
     cuándo cómo qual";
/// Words that start a condition.
const CONDITIONS: &str = "if when given since because wenn falls da weil si quand cuando como puisque for für pour para bei \
     with mit avec con in im en dans";
/// Words before an alternative that are not part of it.
const HEDGES: &str = "rather maybe perhaps just simply better either doch eher lieber einfach vielleicht entweder plutôt \
     simplement soit mejor más bien directamente instead still go use";
/// Adverbs at the end of a question that belong to all alternatives, and pronouns that end a clause.
const ADVERBS: &str = "here there now today then instead overall anyway first hier da dort jetzt heute dafür stattdessen zuerst ici là \
     maintenant aujourd'hui d'abord aquí ahí ahora hoy primero";
const OBJECTS: &str = "it them this that these those es sie ihn das ça lo la los las";

/// Maximum length of an alternative, in words and in characters.
const WORDS_MAX: usize = 10;
const CHARS_MAX: usize = 90;
/// Maximum number of alternatives.
const COUNT_MAX: usize = 12;

fn has(table: &str, word: &str) -> bool {
    !word.is_empty() && table.split_whitespace().any(|w| w == word)
}

/// Returns the alternatives in a sentence.
pub(super) fn of(sentence: &str) -> Option<Vec<String>> {
    if let Some(options) = option_names::compared(sentence) {
        let named = options.iter().map(|option| bare(before_han(option)));
        return distinct(named.collect());
    }
    if let Some(options) = bracketed(sentence).or_else(|| quoted(sentence)) {
        return Some(options);
    }
    if ["判断对错", "判断正误", "是对是错", "对还是错"]
        .iter()
        .any(|w| sentence.contains(w))
    {
        return Some(vec!["对".to_owned(), "错".to_owned()]);
    }
    let sentence = asking::without_examples(sentence);
    let (bare, asides) = without_asides(&sentence);
    if let Some(options) = asides.iter().find_map(|aside| listed(aside)) {
        return Some(options);
    }
    if let Some(options) = strokes(&bare).or_else(|| opposed(&bare)) {
        return Some(options);
    }
    if bare.chars().any(is_han) {
        return chinese(&bare);
    }
    joined(&bare)
}

/// Parses names separated by the same word: `yaml vs toml vs json`.
fn opposed(sentence: &str) -> Option<Vec<String>> {
    const AGAINST: [&str; 6] = [" vs ", " vs. ", " v ", " versus ", " gegen ", " contre "];
    const WORDS_MAX: usize = 3;
    let clause = sentence.rsplit([':', '：', ',', '，', '?', '？']);
    let clause = clause.into_iter().find(|c| {
        let low = c.to_lowercase();
        AGAINST.iter().any(|w| low.matches(w).count() >= 2)
    })?;
    let low = clause.to_lowercase();
    let word = AGAINST.iter().find(|w| low.matches(**w).count() >= 2)?;
    let mut names: Vec<String> = Vec::new();
    let mut from = 0;
    for (at, found) in low.match_indices(word).chain([(low.len(), "")]) {
        names.push(bare(clause.get(from..at)?));
        from = at + found.len();
    }
    // Trim the first and the last piece to the length of those between.
    let long = |name: &String| name.split_whitespace().count() > WORDS_MAX;
    if names[1..names.len() - 1].iter().any(long) {
        return None;
    }
    let size = names[1..names.len() - 1]
        .iter()
        .map(|name| name.split_whitespace().count())
        .max()?;
    let first: Vec<&str> = names[0].split_whitespace().collect();
    let last: Vec<&str> = names[names.len() - 1].split_whitespace().collect();
    // `St. Gallen`
    let is_short = |word: &str| {
        let letters = word.strip_suffix('.').unwrap_or_default();
        (1..=4).contains(&letters.chars().count()) && letters.starts_with(char::is_uppercase)
    };
    let mut from = first.len().saturating_sub(size);
    from -= usize::from(from > 0 && is_short(first[from - 1]));
    let mut to = last.len().min(size);
    to += usize::from(to > 0 && to < last.len() && is_short(last[to - 1]));
    let (first, last) = (first[from..].join(" "), last[..to].join(" "));
    let end = names.len() - 1;
    names[0] = first;
    names[end] = last;
    distinct(names)
}

/// Returns the alternatives in a statement: quotations, or names joined by "between … and" or by "or".
pub(super) fn given(sentence: &str) -> Option<Vec<String>> {
    let mut quoted: Vec<String> = Vec::new();
    for (open, close) in [('"', '"'), ('“', '”'), ('«', '»'), ('„', '“')] {
        let mut rest = sentence;
        while let Some((_, inner)) = rest.split_once(open) {
            let Some((name, after)) = inner.split_once(close) else {
                break;
            };
            quoted.push(bare(name));
            rest = after;
        }
        if quoted.len() >= 2 {
            return distinct(quoted);
        }
        quoted.clear();
    }
    paired(sentence)
        .or_else(|| of(sentence))
        .or_else(|| behind_colon(sentence))
}

/// Returns the alternatives in the first sentence of a text that has any.
pub(super) fn of_text(text: &str) -> Vec<String> {
    let text = asking::bounded(text);
    let sentences = asking::sentences(&text);
    let quoted = given(&text).filter(|names| names.iter().all(|n| n.split(' ').count() <= 3));
    let mut each = sentences.iter().map(|s| s.text);
    each.find_map(of).or(quoted).unwrap_or_default()
}

/// Parses bracketed or tagged names: `[tracing|log|slog]`, `{quarantine ; delete}`,
/// `<opt>vite</opt><opt>webpack</opt>`.
pub(super) fn enclosed(text: &str) -> Option<Vec<String>> {
    const PAIRS: [(char, char); 3] = [('[', ']'), ('{', '}'), ('(', ')')];
    let names = |inner: &str, stop: &[char]| -> Option<Vec<String>> {
        let names: Vec<String> = inner.split(stop).map(bare).collect();
        let is_name = |n: &String| {
            (1..=4).contains(&n.split_whitespace().count()) && !n.contains(['$', '=', '(', '"'])
        };
        let all = names.len() >= 2 && names.iter().all(is_name);
        distinct(names).filter(|_| all)
    };
    for (open, close) in PAIRS {
        let mut rest = text;
        while let Some((_, behind)) = rest.split_once(open) {
            let Some((inner, after)) = behind.split_once(close) else {
                break;
            };
            let stops: &[char] = match open {
                '(' => &['|'],
                _ => &['|', ';'],
            };
            if inner.contains(stops)
                && let Some(options) = names(inner, stops)
            {
                return Some(options);
            }
            rest = after;
        }
    }
    // The same element, repeated.
    let (_, behind) = text.split_once('<')?;
    let (element, _) = behind.split_once('>')?;
    let is_element = !element.is_empty() && element.chars().all(|c| c.is_ascii_alphanumeric());
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let pieces = text.split(open.as_str()).skip(1);
    let inner: Option<Vec<&str>> = pieces.map(|p| Some(p.split_once(&close)?.0)).collect();
    let inner = inner.filter(|_| is_element)?;
    names(&inner.join("|"), &['|'])
}

/// Parses comma-separated names after a colon: `Pick a database: Postgres, MySQL, SQLite`.
pub(super) fn behind_colon(sentence: &str) -> Option<Vec<String>> {
    let (bare_text, _) = without_asides(sentence);
    let at = bare_text.find([':', '：'])?;
    let listed = bare_text.get(at..)?.trim_start_matches([':', '：']);
    let mut pieces: Vec<String> = listed
        .split([',', '，', '、', ';', '；'])
        .map(str::to_owned)
        .collect();
    let last = pieces.pop()?;
    let (one, two) = [" and ", " und ", " et ", " y ", "和"]
        .iter()
        .find_map(|and| last.rsplit_once(and))
        .map_or((last.as_str(), None), |(one, two)| (one, Some(two)));
    pieces.push(one.to_owned());
    pieces.extend(two.map(str::to_owned));
    let names: Vec<String> = pieces
        .iter()
        .map(|p| bare(p))
        .filter(|p| !p.is_empty())
        .collect();
    let short = names
        .iter()
        .all(|n| n.split(' ').count() <= 6 && n.chars().count() <= 40);
    distinct(names).filter(|_| short)
}

/// `between the train at 7 and the one at 8`, `entre … et …`
fn paired(sentence: &str) -> Option<Vec<String>> {
    let (bare_text, _) = without_asides(sentence);
    let all = words(&bare_text);
    let from = all
        .iter()
        .position(|w| has("between zwischen entre", &w.low))?;
    let rest = &all[from + 1..];
    let and = rest.iter().position(|w| has("and und et y e", &w.low))?;
    let (one, behind) = (&rest[..and], &rest[and + 1..]);
    let leading = usize::from(behind.len() > 1 && is_function(&behind[0].low)) + 1;
    let cut = behind
        .iter()
        .skip(leading)
        .position(|w| has("for für pour para in en dans as when", &w.low));
    let stop = behind
        .iter()
        .position(|w| w.ends)
        .map_or(behind.len(), |at| at + 1);
    let two = &behind[..stop.min(cut.map_or(behind.len(), |at| at + leading))];
    let short = |words: &[Word<'_>]| (1..=8).contains(&words.len());
    (short(one) && short(two))
        .then(|| vec![bare(&glued(&texts(one))), bare(&glued(&texts(two)))])
        .and_then(distinct)
}

/// Parses the alternatives in an aside: `(yes, no, later)`, `(yes/no)`.
fn listed(aside: &str) -> Option<Vec<String>> {
    let by_stroke = aside.contains('/') && !aside.contains([',', ';']);
    let pieces: Vec<String> = match by_stroke {
        true => aside.split('/').map(bare).collect(),
        false => aside
            .split([',', '，', '、', '|', ';'])
            .map(|piece| {
                let piece = piece.trim();
                let cut = ["or ", "oder ", "ou ", "o ", "或", "还是"]
                    .iter()
                    .find_map(|or| piece.strip_prefix(or));
                bare(cut.unwrap_or(piece))
            })
            .collect(),
    };
    let short = pieces
        .iter()
        .all(|p| p.split_whitespace().count() <= 3 && p.chars().count() <= 24)
        && pieces.iter().all(|p| p.starts_with(char::is_alphabetic));
    (short && pieces.len() >= if by_stroke { 2 } else { 3 })
        .then_some(pieces)
        .and_then(distinct)
}

/// Parses names separated by slashes or bars: `2.4.8 / 2.5.0`, `marquee | castle hall`.
fn strokes(sentence: &str) -> Option<Vec<String>> {
    let word = sentence.split_whitespace().find(|w| {
        let parts: Vec<&str> = w.split('/').collect();
        let name = |p: &&str| {
            p.chars().count() > 2
                && p.chars()
                    .all(|c| c.is_alphabetic() || matches!(c, '?' | ',' | ':'))
        };
        parts.len() > 2 && parts.iter().all(name)
    });
    if let Some(word) = word {
        return distinct(word.split('/').map(bare).collect());
    }
    let mark = [" / ", " | ", " ／ "]
        .iter()
        .find(|m| sentence.contains(**m))?;
    let pieces: Vec<&str> = sentence.split(mark).collect();
    let (first, last) = (pieces.first()?, pieces.last()?);
    // Text before the first name ends with a colon or a dash; otherwise the first name is as long as the second.
    let cut = [": ", "：", " – ", " — ", " - ", ", "]
        .iter()
        .filter_map(|m| first.rfind(m).map(|at| at + m.len()))
        .max();
    let count = pieces.get(1)?.split_whitespace().count();
    let first = match cut {
        Some(at) => first.get(at..)?.to_owned(),
        None => {
            let all: Vec<&str> = first.split_whitespace().collect();
            let count = if pieces.len() == 2 { 1 } else { count };
            all[all.len().saturating_sub(count.max(1))..].join(" ")
        }
    };
    let tail = words(last);
    let tail: Vec<&str> = tail
        .iter()
        .enumerate()
        .take_while(|(at, w)| *at == 0 || !has(TAIL, &w.low))
        .map(|(_, w)| w.text)
        .collect();
    let mut options = vec![bare(&first)];
    options.extend(pieces[1..pieces.len() - 1].iter().map(|p| bare(p)));
    options.push(bare(&tail.join(" ")));
    let sums = options.iter().all(|o| {
        o.chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '(' | ')' | ' '))
    });
    distinct(options).filter(|_| !sums)
}

/// `Memcached` of `Memcached 做缓存`.
fn before_han(name: &str) -> &str {
    let name = name.trim();
    match name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        true => name.split(is_han).next().unwrap_or(name).trim(),
        false => name,
    }
}

/// `[train] [bus] [bike]`
fn bracketed(sentence: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = sentence;
    while let Some((_, inner)) = rest.split_once('[') {
        let (name, after) = inner.split_once(']')?;
        names.push(bare(name));
        rest = after;
    }
    distinct(names)
}

/// Parses quotations joined by "or": `Is it "das" or "dass"`.
fn quoted(sentence: &str) -> Option<Vec<String>> {
    const MARKS: [(char, char); 4] = [('"', '"'), ('“', '”'), ('«', '»'), ('„', '“')];
    MARKS.iter().find_map(|(open, close)| {
        let mut names: Vec<String> = Vec::new();
        let mut joins = false;
        let mut rest = sentence;
        while let Some((before, inner)) = rest.split_once(*open) {
            let (name, after) = inner.split_once(*close)?;
            let between = before
                .trim()
                .trim_matches([',', ' ', '，', '、'])
                .to_lowercase();
            let or = has(OR, &between) || matches!(between.as_str(), "还是" | "或" | "或者");
            match names.is_empty() || or || between.is_empty() {
                true => joins |= or && !names.is_empty(),
                false if joins => break,
                false => names.clear(),
            }
            names.push(name.trim().to_owned());
            rest = after;
        }
        distinct(names).filter(|_| joins)
    })
}

/// Parses alternatives joined by "or".
fn joined(sentence: &str) -> Option<Vec<String>> {
    let all = words(sentence);
    let or = (1..all.len().saturating_sub(1)).rev().find(|at| {
        let word = &all[*at];
        let negated = |w: &Word<'_>| has("not nicht non no pas", &w.low) && all.len() == at + 2;
        has(OR, &word.low) && !word.text.contains('/') && !negated(&all[at + 1])
    })?;
    let (before, after) = (&all[..or], &all[or + 1..]);
    // A clause that ends before the "or" is not an introduction: `…; or is it`.
    let stop = after
        .iter()
        .position(|w| w.ends)
        .map_or(after.len(), |at| at + 1);
    let mut right: &[Word<'_>] = &after[..stop];
    while right.len() > 1 && has(HEDGES, &right[0].low) {
        right = &right[1..];
    }
    // `SQLite or PostgreSQL here`, but not `buy it here or buy it there`
    if let [head @ .., adverb] = right
        && !head.is_empty()
        && has(ADVERBS, &adverb.low)
        && before.last().is_some_and(|w| !has(ADVERBS, &w.low))
    {
        right = head;
    }
    // `with or without milk`
    const PAIRED: &str = "with without before after mit ohne vor nach avec sans avant après con sin antes después in on";
    if let [.., prep] = before
        && right.len() > 1
        && has(PAIRED, &prep.low)
        && has(PAIRED, &right[0].low)
    {
        let right = nominal(right, sentence);
        let (one, two) = (texts(std::slice::from_ref(prep)), texts(right));
        let first = [one.as_slice(), two.get(1..).unwrap_or_default()].concat();
        return distinct(vec![bare(&glued(&first)), bare(&glued(&two))]);
    }
    let start = region(before);
    let mut pieces: Vec<&[Word<'_>]> = Vec::new();
    for piece in before[start..].split_inclusive(|w| w.ends) {
        if piece.iter().any(|w| !w.low.is_empty()) {
            pieces.push(piece);
        }
    }
    let last = pieces.pop()?;
    let introduced = start > 0;
    let german = Language::of(sentence) == Language::German;
    let full = right;
    let infinitive = last
        .last()
        .is_some_and(|w| w.text.starts_with(char::is_lowercase) && w.low.ends_with("en"));
    let right = nominal(right, if infinitive { "" } else { sentence });
    let mut options: Vec<Vec<&str>> = Vec::new();
    let whole = pieces.is_empty() && introduced || !pieces.is_empty() && is_item(last, right);
    let (first, long) = match whole {
        true => (last, false),
        false => parallel(last, right, full, german),
    };
    options.push(texts(first));
    let mut sibling = first;
    if whole {
        for (place, piece) in pieces.iter().enumerate().rev() {
            if is_item(piece, sibling) && (introduced || place > 0 || !opens(piece, sibling)) {
                options.insert(0, texts(piece));
                sibling = piece;
                continue;
            }
            let question = piece.iter().any(|w| has(QUESTION_WORDS, &w.low));
            let last = piece.last().map_or("", |w| w.low.as_str());
            let question = question || has("better besser mejor mieux", last);
            let condition = has(CONDITIONS, &piece[0].low) && !has(PREPOSITIONS, &sibling[0].low);
            if !question && !condition {
                let (head, _) = parallel(piece, sibling, sibling, german);
                if head.len() <= sibling.len().max(right.len()) + 1 {
                    options.insert(0, texts(head));
                }
            }
            break;
        }
    }
    options.push(texts(if long { full } else { right }));
    named(&options, sentence)
}

/// Returns the start of the alternatives: after a colon, a dash, or a word such as "between".
fn region(before: &[Word<'_>]) -> usize {
    let colon = before
        .iter()
        .rposition(|w| w.text.ends_with([':', '：']) || matches!(w.text, "–" | "—" | "-"));
    let among = before.iter().rposition(|w| {
        has(
            "between among zwischen entre either entweder whether soit",
            &w.low,
        )
    });
    let of = before.iter().enumerate().rposition(|(at, w)| {
        let from = at.saturating_sub(2);
        has("of von unter de parmi", &w.low)
            && before[from..at].iter().any(|w| {
                has(
                    "which one any welche welcher welches lequel laquelle cuál une",
                    &w.low,
                )
            })
    });
    [colon, among, of]
        .iter()
        .flatten()
        .max()
        .map_or(0, |at| at + 1)
        .min(before.len().saturating_sub(1))
}

/// Returns whether all of a piece between commas is an alternative.
fn is_item(piece: &[Word<'_>], sibling: &[Word<'_>]) -> bool {
    let count = piece.iter().filter(|w| !w.low.is_empty()).count();
    let first = &piece[0].low;
    let asks = piece.iter().any(|w| {
        has(QUESTION_WORDS, &w.low)
            || has(
                "better best faster besser best mejor mieux meilleur meilleure",
                &w.low,
            )
    });
    let same = sibling.first().is_some_and(|w| w.low == *first);
    let headed = has(HEADS, first) || has(CONDITIONS, first) && count > 2 || has(PRONOUNS, first);
    !asks && (same && count <= WORDS_MAX || !headed && count <= sibling.len().max(3) + 1)
}

/// Returns whether the first piece of a sentence contains more than the first alternative: `Is the sky red, green or
/// blue`.
fn opens(piece: &[Word<'_>], sibling: &[Word<'_>]) -> bool {
    let same = sibling.first().is_some_and(|w| w.low == piece[0].low);
    !same && piece.len() > sibling.len() + 1
}

/// Returns the last alternative without the words that all alternatives share.
fn nominal<'a, 'b>(right: &'a [Word<'b>], sentence: &str) -> &'a [Word<'b>] {
    let leading = usize::from(right.len() > 1 && is_function(&right[0].low));
    let leading =
        leading + usize::from(right.len() > 2 && leading == 1 && has(ARTICLES, &right[1].low));
    let end = right
        .iter()
        .enumerate()
        .skip(leading + 1)
        .find(|(at, w)| {
            // `a kilo of lead`, `castle hall`: part of the name.
            let of = has("of de von du d'", &w.low) && *at == leading + 1;
            has(TAIL, &w.low) && !of || right[at - 1].ends
        })
        .map_or(right.len(), |(at, _)| at);
    let mut right = &right[..end];
    if let [head @ .., verb] = right
        && !head.is_empty()
    {
        let text = [
            head.last().map_or("", |w| w.text),
            verb.text.trim_end_matches(['?', ',']),
        ]
        .join(" ");
        if !option_names::without_infinitive(&text, sentence).contains(' ') {
            right = head;
        }
    }
    right
}

fn is_function(low: &str) -> bool {
    has(ARTICLES, low) || has(PREPOSITIONS, low) || has(PRONOUNS, low)
}

/// Returns the part of a clause parallel to the other alternative, and whether both span their whole clauses.
fn parallel<'a, 'b>(
    piece: &'a [Word<'b>],
    right: &[Word<'_>],
    full: &[Word<'_>],
    german: bool,
) -> (&'a [Word<'b>], bool) {
    let Some(first) = right.first() else {
        return (piece, false);
    };
    let from = |at: usize| piece.get(at..).filter(|p| !p.is_empty()).unwrap_or(piece);
    let rposition = |fits: &dyn Fn(&str) -> bool| piece.iter().rposition(|w| fits(&w.low));
    if is_function(&first.low) {
        let same = rposition(&|w| w == first.low).or_else(|| {
            [ARTICLES, PREPOSITIONS, PRONOUNS]
                .iter()
                .filter(|class| has(class, &first.low))
                .find_map(|class| rposition(&|w| has(class, w)))
        });
        if let Some(at) = same {
            let clause = has(PRONOUNS, &first.low);
            return (from(at), clause);
        }
    }
    if piece.len() == 1 {
        return (piece, false);
    }
    // `as spam or not spam`
    if has("not nicht no non kein keine pas", &first.low)
        && let Some(same) = right
            .last()
            .filter(|w| right.len() > 1 && piece.last().is_some_and(|p| p.low == w.low))
    {
        let at = piece.iter().rposition(|w| w.low == same.low).unwrap_or(0);
        return (from(at), false);
    }
    // Verbs with objects: `fix the bug or rewrite the parser`.
    if let [_, object, ..] = full
        && is_function(&object.low)
        && let Some(at) = piece.iter().enumerate().skip(1).rposition(|(_, w)| {
            w.low == object.low || has(ARTICLES, &w.low) && has(ARTICLES, &object.low)
        })
        && full.len() <= WORDS_MAX
        && first.text.starts_with(char::is_lowercase)
    {
        return (from(at), true);
    }
    let infinitive = |w: &str| match german {
        true => w.ends_with("en") || w.ends_with("ern"),
        false => ["ar", "er", "ir", "re", "arlo", "arla", "erlo"]
            .iter()
            .any(|e| w.len() > 3 && w.ends_with(e)),
    };
    if german
        && let Some(verb) = full.last().filter(|w| full.len() > 1 && infinitive(&w.low))
        && verb.text.starts_with(char::is_lowercase)
        && piece
            .last()
            .is_some_and(|w| infinitive(&w.low) && w.text.starts_with(char::is_lowercase))
    {
        return (from(piece.len().saturating_sub(full.len())), true);
    }
    if !german
        && full.len() > 1
        && infinitive(&first.low)
        && let Some(at) = rposition(&infinitive).filter(|at| *at + 1 < piece.len())
    {
        return (from(at), true);
    }
    let named = |w: &Word<'_>| {
        let bare = w.text.trim_matches(|c: char| !c.is_alphanumeric());
        bare.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
    };
    // `Shall I rewrite it now or wait`: what ends the first clause is not parallel to a verb.
    let ends_clause = |w: &Word<'_>| has(ADVERBS, &w.low) || has(OBJECTS, &w.low);
    if piece.len() > 3
        && has(HEADS, &piece[0].low)
        && has(PRONOUNS, &piece[1].low)
        && piece.last().is_some_and(ends_clause)
        && !ends_clause(first)
        && !named(first)
    {
        return (from(2), true);
    }
    if right.len() == 1 || right.iter().all(named) {
        // A name of several words: `Visual Basic or Rust`.
        let mut at = piece.len() - 1;
        let longest = if german {
            right.len()
        } else {
            right.len().max(3)
        };
        while at > 1 && piece.len() - at < longest && named(&piece[at]) && named(&piece[at - 1]) {
            at -= 1;
        }
        // `apple pie with cream or cake`: a preposition attaches to its noun.
        while at > 1 && !german && has("de du des d' aux of", &piece[at - 1].low) {
            at -= 2;
        }
        // A single lowercase word against a whole clause: `Should we rewrite it or wait`.
        return (from(at), false);
    }
    // Clauses: the part after the verb and subject of a question, otherwise the whole clause.
    let head = match has(HEADS, &piece[0].low) && piece.len() > 2 {
        true if has(ARTICLES, &piece[1].low) => 3,
        true => 2,
        false => 0,
    };
    let more = piece
        .iter()
        .skip(head)
        .take_while(|w| head > 0 && has("better best to rather besser zu mieux mejor", &w.low));
    let head = head + more.count();
    if head > 0 && right.len() <= 2 && !first.text.starts_with(char::is_lowercase) {
        return (from(piece.len().saturating_sub(right.len())), false);
    }
    (from(head.min(piece.len() - 1)), true)
}

fn texts<'a>(words: &[Word<'a>]) -> Vec<&'a str> {
    words.iter().map(|w| w.text).collect()
}

/// Returns the names of the alternatives without the words they share.
fn named(options: &[Vec<&str>], sentence: &str) -> Option<Vec<String>> {
    let mut names: Vec<String> = options
        .iter()
        .map(|words| bare(&glued(words)))
        .filter(|name| !name.is_empty())
        .collect();
    let lead = |name: &str| name.split(' ').next().unwrap_or_default().to_lowercase();
    let shared = names.first().map(|n| lead(n)).unwrap_or_default();
    let all = names.iter().all(|n| lead(n) == shared && n.contains(' '));
    if all && has(PREPOSITIONS, &shared) {
        names = names
            .iter()
            .map(|n| bare(n.split_once(' ').map_or(n.as_str(), |(_, rest)| rest)))
            .collect();
    }
    // `at 200 or 230 degrees`
    if let [one, rest @ ..] = names.as_mut_slice()
        && has(PREPOSITIONS, &lead(one))
        && rest.iter().all(|n| !has(PREPOSITIONS, &lead(n)))
        && let Some((_, name)) = one.clone().split_once(' ')
    {
        *one = bare(name);
    }
    let count = names.len();
    let verbal = names
        .first()
        .is_some_and(|n| n.ends_with("en") && n.contains(' '));
    if let Some(last) = names.last_mut() {
        if !verbal {
            *last = option_names::without_infinitive(last, sentence).to_owned();
        }
        let before = sentence.rsplit_once(last.as_str()).map_or("", |(b, _)| b);
        if count == 2 {
            let name =
                option_names::without_shared(last, before.rsplit_once(' ').map_or("", |(b, _)| b))
                    .to_owned();
            *last = name;
        }
    }
    let fits = names
        .iter()
        .all(|n| n.chars().count() <= CHARS_MAX && n.split(' ').count() <= WORDS_MAX);
    distinct(names).filter(|_| fits && options.len() == count)
}

/// Joins words as they appear in a sentence: no space after an elided French article.
fn glued(words: &[&str]) -> String {
    let mut out = String::new();
    for word in words {
        if !out.is_empty() && !out.ends_with('\'') {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Returns the alternatives in a Chinese sentence.
fn chinese(sentence: &str) -> Option<Vec<String>> {
    // `苹果、香蕉、西瓜，哪个最甜`
    if let Some((listed, _)) = ["，哪个", "，哪一个", "，谁", "哪个最", "哪个更"]
        .iter()
        .find_map(|which| sentence.split_once(which))
        && !sentence.contains("还是")
    {
        let clause = listed.rsplit(['：', '。', '，']).next().unwrap_or(listed);
        let names: Vec<String> = clause.split(['、', '和', '与']).map(bare).collect();
        let short = names.iter().all(|n| n.chars().count() <= 10);
        if let Some(options) = distinct(names).filter(|_| short) {
            return Some(options);
        }
    }
    let (before, after) = ["还是", "或者", "或", " vs ", "VS", "vs"]
        .iter()
        .find_map(|or| sentence.rsplit_once(or))?;
    let quoted = |text: &str| -> Option<String> {
        let open = text.rfind('“')?;
        let inner = &text[open + '“'.len_utf8()..];
        inner.find('”').map(|to| inner[..to].to_owned())
    };
    if before.trim_end().ends_with('”')
        && after.trim_start().starts_with('“')
        && let (Some(one), Some(two)) = (quoted(before), quoted(after))
    {
        return distinct(vec![one, two]);
    }
    let before = before.trim_end_matches(['，', ',', '、', ' ']);
    let mut right = after.trim_start();
    let end = [
        "，", "：", "。", "、", "？", ",", "更", "比较", "哪", "呢", "好",
    ]
    .iter()
    .filter_map(|m| right.find(m))
    .filter(|at| *at > 0)
    .min();
    right = &right[..end.unwrap_or(right.len())];
    right = before_han(right);
    let right = bare(right);
    if before.contains('、')
        && let Some(options) = option_names::chinese(before, &right)
    {
        return distinct(options.iter().map(|o| bare(o)).collect());
    }
    let clause = before.rsplit(['，', '：', '。', ',', '；']).next()?.trim();
    let first = right.chars().next()?;
    let size = right.chars().count();
    let chars: Vec<char> = clause.chars().collect();
    let ends_alike = |n: usize| {
        let tail: Vec<char> = right.chars().skip(size.saturating_sub(n)).collect();
        chars.len() >= n && size > n && chars[chars.len() - n..] == tail[..]
    };
    let left: String = if chars.len() == size {
        clause.to_owned()
    } else if is_han(first)
        && let Some(at) = chars.iter().rposition(|c| *c == first)
    {
        chars[at..].iter().collect()
    } else if ends_alike(2) && chars.len() >= size {
        chars[chars.len() - size..].iter().collect()
    } else {
        clause
            .rsplit([
                '选', '用', '是', '喝', '吃', '买', '学', '去', '要', '在', '填', '上', '走', '给',
                '找', '为',
            ])
            .find(|p| !p.trim().is_empty())?
            // `选择茶`
            .trim_start_matches('择')
            .to_owned()
    };
    let options = vec![bare(&left), right];
    let fits = options.iter().all(|o| o.chars().count() <= 30);
    distinct(options).filter(|_| fits)
}

/// Strips marks and articles from a name.
fn bare(text: &str) -> String {
    const EDGES: [char; 32] = [
        '"', '\'', '“', '”', '„', '«', '»', '`', '*', '.', '?', '？', ':', '：', '(', ')', '¿',
        ',', '，', ';', '；', '、', '。', '「', '」', '《', '》', '[', ']', ' ', '–', '—',
    ];
    let whole = text.trim();
    let inner = whole.trim_matches(EDGES).trim();
    // The period of an abbreviation is part of it: `the U.S.`, `Acme Inc.`
    let end = whole.len() - whole.trim_start_matches(EDGES).len() + inner.len();
    let last = inner.rsplit(' ').next().unwrap_or_default();
    let is_kept =
        asking::is_abbreviated(last) && whole.get(end..).is_some_and(|t| t.starts_with('.'));
    // `.NET`
    let before = whole.len() - whole.trim_start_matches(EDGES).len();
    let before = whole.get(..before).unwrap_or_default();
    let is_dotted = before.ends_with('.') && !before.ends_with("..");
    let is_dotted = is_dotted && inner.starts_with(char::is_uppercase);
    let owned = format!(
        "{}{inner}{}",
        if is_dotted { "." } else { "" },
        if is_kept { "." } else { "" }
    );
    let text = owned.as_str();
    let article = text.split_once(' ').filter(|(first, _)| {
        first.starts_with(char::is_lowercase) && has(ARTICLES, first) && !first.starts_with("kein")
            || has("either entweder soit", &first.to_lowercase())
    });
    let text = article.map_or(text, |(_, rest)| rest.trim());
    match text.strip_prefix("l'") {
        Some(rest) => rest.to_owned(),
        None => text.to_owned(),
    }
}

/// Returns the alternatives if they differ and are plausible.
fn distinct(options: Vec<String>) -> Option<Vec<String>> {
    let mut seen: Vec<String> = options.iter().map(|o| o.to_lowercase()).collect();
    seen.sort();
    seen.dedup();
    const RESERVED: &str = "not nicht more less mehr weniger so why 不 it is plus moins más menos two three later else similar other";
    // With two options, "both" is not a third one.
    let both = options.len() < 3 && seen.iter().any(|o| o == "both" || o == "neither");
    let fits = seen.len() == options.len()
        && (2..=COUNT_MAX).contains(&options.len())
        && !both
        && seen
            .iter()
            .all(|o| !has(RESERVED, o) && o.chars().any(char::is_alphanumeric));
    fits.then_some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_parallel_parts_of_a_sentence() {
        for (sentence, want) in [
            (
                "Should a small team start with SQLite or PostgreSQL",
                "SQLite|PostgreSQL",
            ),
            (
                "accept their offer of 1.4M or hold out for 1.8M",
                "accept their offer of 1.4M|hold out for 1.8M",
            ),
            (
                "Teamleitung: intern besetzen oder extern suchen",
                "intern besetzen|extern suchen",
            ),
            (
                "Should we fix the bug or rewrite the parser",
                "fix the bug|rewrite the parser",
            ),
            (
                "On garde Paris, on déménage à Nantes ou on passe au télétravail",
                "garde Paris|déménage à Nantes|passe au télétravail",
            ),
            (
                "Should we use SQLite or PostgreSQL here",
                "SQLite|PostgreSQL",
            ),
            (
                "Sollen wir SQLite oder PostgreSQL nehmen",
                "SQLite|PostgreSQL",
            ),
            (
                "Shall I rewrite the retry loop now or wait for the next release",
                "rewrite the retry loop now|wait for the next release",
            ),
            ("Should we buy it here or there", "here|there"),
            ("Should we rewrite it or wait", "rewrite it|wait"),
            ("Next version: 2.4.8 / 2.5.0 / 3.0.0", "2.4.8|2.5.0|3.0.0"),
            (
                "Soll ich zusagen (ja, nein, nachverhandeln)",
                "ja|nein|nachverhandeln",
            ),
            (
                "¿Deberíamos publicar hoy o esperar a mañana",
                "publicar hoy|esperar a mañana",
            ),
            (
                "今年招一名高级工程师，还是招两名初级工程师",
                "招一名高级工程师|招两名初级工程师",
            ),
            ("应填“在”还是“再”", "在|再"),
            ("Is it more or less", ""),
            ("Does it work or not", ""),
        ] {
            assert_eq!(
                of(sentence).unwrap_or_default().join("|"),
                want,
                "{sentence}"
            );
        }
    }
}
