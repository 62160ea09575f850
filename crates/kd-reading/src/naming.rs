//! Finds the words of a text that name an option: its name, an inflected form (`declining` for `decline`), most of a
//! long name, or the one word of it that is unique among the options.

use super::language::is_han;
use super::words::{Stop, Word};

/// The name of an option, as words.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) item: usize,
    pub(super) words: Vec<Word>,
    /// Whether it is the option's own name, not a variant.
    pub(super) is_own: bool,
}

/// A run of words that names an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) item: usize,
    /// Whether it is only part of the name.
    pub(super) partial: bool,
}

/// Short words without meaning in a name, and words common outside names.
const COMMON: &[&str] = &[
    "a",
    "an",
    "the",
    "of",
    "to",
    "in",
    "on",
    "at",
    "for",
    "by",
    "with",
    "and",
    "or",
    "it",
    "is",
    "be",
    "do",
    "not",
    "no",
    "yes",
    "now",
    "more",
    "less",
    "all",
    "both",
    "this",
    "that",
    "one",
    "two",
    "three",
    "four",
    "five",
    "first",
    "second",
    "third",
    "fourth",
    "last",
    "next",
    "new",
    "old",
    "plan",
    "option",
    "draft",
    "version",
    "answer",
    "model",
    "choice",
    "candidate",
    "only",
    "use",
    "make",
    "go",
    "keep",
    "der",
    "die",
    "das",
    "ein",
    "eine",
    "und",
    "oder",
    "im",
    "in",
    "am",
    "auf",
    "mit",
    "zu",
    "zum",
    "zur",
    "nicht",
    "erste",
    "zweite",
    "dritte",
    "eins",
    "zwei",
    "drei",
    "le",
    "la",
    "les",
    "un",
    "une",
    "des",
    "de",
    "du",
    "d",
    "l",
    "et",
    "ou",
    "en",
    "au",
    "à",
    "pas",
    "par",
    "dans",
    "chez",
    "avec",
    "pour",
    "bei",
    "beim",
    "um",
    "von",
    "vom",
    "für",
    "premier",
    "première",
    "deuxième",
    "troisième",
    "deux",
    "trois",
    "el",
    "los",
    "las",
    "una",
    "uno",
    "dos",
    "tres",
    "y",
    "o",
    "del",
    "al",
    "con",
    "sin",
    "por",
    "para",
    "más",
    "primero",
    "segundo",
    "tercero",
    "primera",
    "segunda",
    "tercera",
    "的",
    "不",
    "了",
    "一",
    "二",
    "三",
    "个",
];

/// Endings of inflected words, longest first.
const ENDINGS: &[&str] = &[
    "eren", "erer", "eres", "ere", "aría", "ería", "iría", "erais", "irais", "ieren", "ung", "ing",
    "ión", "ier", "ies", "ed", "es", "er", "en", "ez", "ar", "ir", "ón", "s", "e", "n", "t", "y",
    "é", "o", "a",
];
/// Endings of short English verbs.
const VERBAL: &[&str] = &["ing", "ed", "es", "s", "d", "er", "e"];

/// Finds the options named in a sentence, longest names first. `taken` marks the words that belong to a name.
pub(super) fn find(words: &[Word], names: &[Name], taken: &mut [bool]) -> Vec<Named> {
    let mut found = Vec::new();
    for name in names.iter().filter(|n| n.is_own && n.words.len() == 1) {
        parted(words, name, taken, &mut found);
    }
    for name in names.iter().filter(|n| n.is_own) {
        inflected(words, name, taken, &mut found);
    }
    for name in names.iter().filter(|n| n.is_own && n.words.len() > 1) {
        most(words, name, names, taken, &mut found);
    }
    for name in names.iter().filter(|n| n.is_own && n.words.len() > 1) {
        distinctive(words, name, names, taken, &mut found);
    }
    found
}

/// Strips the label and the article from a name: `A) Paris`, `the cat`.
pub(super) fn without_frame(name: &str) -> &str {
    const ARTICLES: &[&str] = &[
        "the ", "a ", "an ", "der ", "die ", "das ", "ein ", "eine ", "le ", "la ", "les ", "l'",
        "l’", "un ", "une ", "el ", "los ", "las ", "una ",
    ];
    let name = name.trim();
    let bare = name.trim_start_matches('(');
    let label = bare
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric())
        .count();
    let unlabelled = bare
        .get(label..)
        .filter(|_| (1..=2).contains(&label))
        .and_then(|rest| rest.strip_prefix([')', '.', ':']))
        .map(str::trim_start)
        .filter(|rest| !rest.is_empty() && rest.starts_with(char::is_alphabetic));
    let name = unlabelled.unwrap_or(name);
    let folded = super::folded::Folded::new(name);
    let rest = ARTICLES
        .iter()
        .find_map(|article| folded.strip_prefix(article));
    rest.map(str::trim)
        .filter(|rest| rest.chars().count() > 1)
        .unwrap_or(name)
}

/// Returns the first of several names in lower case if only its place in the question gave it a capital: `Ice or heat?`
pub(super) fn lowered_first(names: &[String]) -> Option<String> {
    let (first, others) = names.split_first()?;
    let begins_low = |name: &String| name.starts_with(|c: char| c.is_lowercase());
    let plain = |name: &str| name.chars().skip(1).all(|c| !c.is_uppercase());
    let opens = first.starts_with(|c: char| c.is_uppercase()) && plain(first);
    let others_low = !others.is_empty() && others.iter().all(begins_low);
    (opens && others_low).then(|| first.to_lowercase())
}

/// Returns the owner in a Chinese name, if no other option has it: `李工` of `李工的方案`.
pub(super) fn owner<'a>(name: &'a str, all: &[String]) -> Option<&'a str> {
    const CHARS_MIN: usize = 2;
    let (owner, _) = name.split_once('的')?;
    let known = owner.chars().count() >= CHARS_MIN && owner.chars().all(is_han);
    (known && all.iter().filter(|n| n.contains(owner)).count() == 1).then_some(owner)
}

/// Returns a word without the accents of its letters.
pub(super) fn unaccented(word: &str) -> String {
    const PLAIN: [(&str, char); 10] = [
        ("áàâãåä", 'a'),
        ("éèêëě", 'e'),
        ("íìîï", 'i'),
        ("óòôõöø", 'o'),
        ("úùûüů", 'u'),
        ("çčć", 'c'),
        ("ñń", 'n'),
        ("ýÿ", 'y'),
        ("łľ", 'l'),
        ("šśžźż", 's'),
    ];
    let plain = |c: char| {
        PLAIN
            .iter()
            .find(|(all, _)| all.contains(c))
            .map_or(c, |(_, plain)| *plain)
    };
    word.chars().map(plain).collect()
}

/// Returns a name of two words with a hyphen as one word.
pub(super) fn joined(name: &str) -> Option<String> {
    /// Minimum letters of each part: `a-b` is not `ab`.
    const PART_MIN: usize = 3;
    let (one, two) = name.trim().split_once('-')?;
    // `e-mail`
    if one.eq_ignore_ascii_case("e")
        && two.chars().count() > 3
        && two.chars().all(char::is_alphabetic)
    {
        return Some(format!("{one}{two}").to_lowercase());
    }
    let is_part = |part: &str| {
        part.chars().count() >= PART_MIN && part.chars().all(|c| c.is_alphabetic() && !is_han(c))
    };
    (is_part(one) && is_part(two)).then(|| format!("{one}{two}").to_lowercase())
}

/// Returns whether two words are equal except for case and the `v` of a version.
pub(super) fn is_equal(said: &Word, name: &Word) -> bool {
    let owner = said
        .lower
        .strip_suffix("'s")
        .is_some_and(|owner| owner == name.lower);
    /// Minimum letters of a word that may lack its accents.
    const ACCENTED_MIN: usize = 4;
    let accents = || {
        said.lower.is_ascii() != name.lower.is_ascii()
            && said.lower.chars().count() == name.lower.chars().count()
            && name.lower.chars().count() >= ACCENTED_MIN
            && unaccented(&said.lower) == unaccented(&name.lower)
    };
    said.lower == name.lower || owner || accents() || {
        let bare = said.lower.strip_prefix('v').unwrap_or_default();
        let ordinal = [
            ("1st", "first"),
            ("2nd", "second"),
            ("3rd", "third"),
            ("4th", "fourth"),
        ];
        bare == name.lower && bare.starts_with(|c: char| c.is_ascii_digit())
            || ordinal.contains(&(said.lower.as_str(), name.lower.as_str()))
    }
}

/// Returns whether two words are forms of the same word.
pub(super) fn is_same(one: &str, two: &str) -> bool {
    if one == two {
        return true;
    }
    // `even` is not a form of evening.
    const OTHERS: &[&str] = &[
        "even", "ever", "under", "over", "after", "other", "later", "never", "there", "here",
        "being", "doing",
    ];
    if OTHERS.contains(&one) || OTHERS.contains(&two) {
        return false;
    }
    let plain = |word: &str| word.chars().all(char::is_alphabetic) && word.len() >= 3;
    if !plain(one) || !plain(two) || one.chars().next() != two.chars().next() {
        return false;
    }
    let (short, long) = match one.len() <= two.len() {
        true => (one, two),
        false => (two, one),
    };
    if let Some(stem) = short.strip_suffix('y')
        && ["ied", "ies"]
            .iter()
            .any(|ending| long.strip_suffix(ending) == Some(stem))
    {
        return true;
    }
    if short.len() <= 4 {
        return VERBAL.iter().any(|ending| {
            let Some(stem) = long.strip_suffix(ending) else {
                return false;
            };
            let silent = short.strip_suffix('e') == Some(stem) && *ending == "ing";
            let doubled = undoubled(stem) == short && stem != short;
            let plural = stem == short
                && (!matches!(*ending, "d" | "er" | "e") || *ending == "e" && short.len() == 4);
            stem.len() >= 3 && (silent || doubled || plural)
        });
    }
    let (a, b) = (stem(one), stem(two));
    (a == b || a == two || one == b) && a.chars().count().min(b.chars().count()) >= 4
}

fn stem(word: &str) -> &str {
    for ending in ENDINGS {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.chars().count() >= 4
        {
            return undoubled(stem);
        }
    }
    undoubled(word)
}

/// Strips the second of two equal consonants at the end of a stem.
fn undoubled(stem: &str) -> &str {
    let mut chars = stem.chars().rev();
    match (chars.next(), chars.next()) {
        (Some(last), Some(before)) if last == before && !"aeious".contains(last) => {
            &stem[..stem.len() - last.len_utf8()]
        }
        _ => stem,
    }
}

fn is_common(word: &str) -> bool {
    COMMON.contains(&word)
}

/// Finds a name of one word that is written as two: `e-mail` for `email`, `merge sort` for `mergesort`.
fn parted(words: &[Word], name: &Name, taken: &mut [bool], found: &mut Vec<Named>) {
    const LETTERS_MIN: usize = 5;
    let Some(own) = name.words.first().map(|w| w.lower.as_str()) else {
        return;
    };
    if own.chars().count() < LETTERS_MIN || own.chars().any(is_han) {
        return;
    }
    for at in 0..words.len().saturating_sub(1) {
        let (one, two) = (&words[at], &words[at + 1]);
        let near =
            one.end + 1 == two.start && one.stop == Stop::None && !taken[at] && !taken[at + 1];
        if near && own.strip_prefix(one.lower.as_str()) == Some(two.lower.as_str()) {
            taken[at..at + 2].fill(true);
            found.push(Named {
                at,
                length: 2,
                item: name.item,
                partial: false,
            });
        }
    }
}

fn inflected(words: &[Word], name: &Name, taken: &mut [bool], found: &mut Vec<Named>) {
    let length = name.words.len();
    if length == 0 || length > words.len() {
        return;
    }
    for at in 0..=words.len() - length {
        let here = &words[at..at + length];
        let same = here
            .iter()
            .zip(&name.words)
            .all(|(a, b)| is_same(&a.lower, &b.lower) && !is_lowered(&a.text, &b.text));
        let exact = here
            .iter()
            .zip(&name.words)
            .all(|(a, b)| a.lower == b.lower);
        if same && !exact && !taken[at..at + length].contains(&true) {
            taken[at..at + length].fill(true);
            found.push(Named {
                at,
                length,
                item: name.item,
                partial: false,
            });
        }
    }
}

/// Returns whether a capitalized name is written in lower case: `going` is not a form of `Go`.
fn is_lowered(said: &str, name: &str) -> bool {
    let short = name.chars().count() <= 3;
    short && name.starts_with(char::is_uppercase) && said.starts_with(char::is_lowercase)
}

/// Finds runs that hold most words of a long name: `Esperar a la 18` of `esperar a la versión 18`.
fn most(words: &[Word], name: &Name, all: &[Name], taken: &mut [bool], found: &mut Vec<Named>) {
    let own: Vec<&str> = content(name).collect();
    if own.len() < 2 {
        return;
    }
    let span = name.words.len() + 2;
    let matches = |word: &Word| own.iter().any(|w| is_same(&word.lower, w));
    let mut at = 0;
    while at < words.len() {
        if taken[at] || !matches(&words[at]) {
            at += 1;
            continue;
        }
        let end = (at + span).min(words.len());
        let mut hit: Vec<&str> = Vec::new();
        let mut last = at;
        for (place, word) in words.iter().enumerate().take(end).skip(at) {
            if taken[place] {
                break;
            }
            if let Some(w) = own.iter().find(|w| is_same(&word.lower, w))
                && !hit.contains(w)
            {
                hit.push(w);
                last = place;
            }
            if word.stop == Stop::Sentence {
                break;
            }
        }
        let unique = hit.iter().any(|w| is_unique(w, name.item, all));
        if unique && hit.len() >= 2 && 3 * hit.len() >= 2 * own.len() {
            taken[at..=last].fill(true);
            found.push(Named {
                at,
                length: last + 1 - at,
                item: name.item,
                partial: false,
            });
            at = last;
        }
        at += 1;
    }
}

/// Finds words that belong to one name only.
fn distinctive(
    words: &[Word],
    name: &Name,
    all: &[Name],
    taken: &mut [bool],
    found: &mut Vec<Named>,
) {
    for (at, word) in words.iter().enumerate() {
        if taken[at] {
            continue;
        }
        let fits = content(name).any(|own| {
            let ending = word.lower.strip_prefix(own).unwrap_or_default();
            let plural = own.chars().count() >= 5
                && ["s", "es", "n", "en", "re", "ren", "er", "res"].contains(&ending);
            let owner = word.lower.strip_suffix("'s") == Some(own);
            // A single Chinese character is weak evidence, except for list labels.
            let weak = own.chars().all(is_han) && !"甲乙丙丁".contains(own);
            (own == word.lower || plural || owner)
                && !weak
                && is_unique(own, name.item, all)
                && (own.chars().count() > 2 || own.chars().any(|c| !c.is_ascii_lowercase()))
        });
        if fits {
            taken[at] = true;
            found.push(Named {
                at,
                length: 1,
                item: name.item,
                partial: true,
            });
        }
    }
}

/// Returns the words of a name that carry its meaning.
fn content(name: &Name) -> impl Iterator<Item = &str> {
    let words = name.words.iter().map(|w| w.lower.as_str());
    words.filter(|w| !is_common(w))
}

fn is_unique(word: &str, item: usize, all: &[Name]) -> bool {
    all.iter()
        .filter(|other| other.item != item)
        .all(|other| other.words.iter().all(|w| !is_same(&w.lower, word)))
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn forms_of_one_word_are_the_same() {
        for (one, two) in [
            ("decline", "declining"),
            ("cache", "caching"),
            ("buy", "buying"),
            ("ship", "shipping"),
            ("hire", "hiring"),
            ("build", "building"),
            ("mieten", "miete"),
            ("ablehnen", "ablehnung"),
            ("comprar", "compra"),
        ] {
            assert!(is_same(one, two) && is_same(two, one), "{one} {two}");
        }
        for (one, two) in [
            ("not", "notar"),
            ("rust", "trust"),
            ("go", "going"),
            ("keep", "keepsake"),
            ("sql", "sqlite"),
            ("1.9.0", "1.9"),
        ] {
            assert!(!is_same(one, two), "{one} {two}");
        }
    }
}
