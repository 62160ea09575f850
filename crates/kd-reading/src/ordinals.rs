//! Finds options named by their position in the question, in a sentence without other content: `The latter.`, `Lieber
//! letzteres.`

use super::language::is_han;
use super::options::Options;

/// Words for each position.
const PLACES: [&[&str]; 4] = [
    &[
        "first",
        "1st",
        "erste",
        "ersten",
        "erster",
        "erstes",
        "premier",
        "première",
        "1er",
        "1re",
        "primera",
        "primero",
    ],
    &[
        "second",
        "2nd",
        "zweite",
        "zweiten",
        "zweiter",
        "zweites",
        "deuxième",
        "seconde",
        "2e",
        "segunda",
        "segundo",
    ],
    &[
        "third",
        "3rd",
        "dritte",
        "dritten",
        "dritter",
        "drittes",
        "troisième",
        "3e",
        "tercera",
        "tercero",
    ],
    &[
        "fourth",
        "4th",
        "vierte",
        "vierten",
        "vierter",
        "viertes",
        "quatrième",
        "4e",
        "cuarta",
        "cuarto",
    ],
];
/// Words for the first and second of two.
const OF_TWO: [&[&str]; 2] = [
    &[
        "former",
        "ersteres",
        "erstere",
        "ersteren",
        "ersterem",
        "erstgenannte",
        "celui-là",
        "celle-là",
    ],
    &[
        "latter",
        "letzteres",
        "letztere",
        "letzteren",
        "letzterem",
        "letztgenannte",
        "dernier",
        "dernière",
        "último",
        "última",
    ],
];
/// Articles; an ordinal without one does not count: `first, measure`.
const ARTICLES: &[&str] = &[
    "the", "das", "die", "der", "den", "dem", "le", "la", "l'", "el", "lo", "ce", "cette", "cet",
    "this", "that",
];
/// Words that choose or add nothing.
const SMALL: &str = "i i'd i'll i'm we we'd go going with for would say pick picking choose choosing take prefer recommend suggest use vote my \
    answer choice pick option one is be of two these them clearly definitely probably honestly personally rather please it's \
    that's so then just lean leaning towards toward opt \
    ich würde nehme nehmen wähle wählen bevorzuge empfehle bin für klar eindeutig eher lieber ganz das meine wahl antwort ist option \
    variante möglichkeit also dann von beiden zu zum zur \
    je j'opte choisis choisirais prends prendrais préfère préférerais recommande conseille pour dirais plutôt clairement ma mon \
    réponse choix est c'est sans hésiter donc des deux \
    yo elijo elegiría prefiero recomiendo tomaría opto por diría mejor claramente mi respuesta elección opción es de los dos las me \
    quedo con sin duda pues entonces";
const HAN_SMALL: [&str; 17] = [
    "我更",
    "我会",
    "我选",
    "选择",
    "推荐",
    "建议",
    "倾向于",
    "倾向",
    "应该",
    "我",
    "选",
    "是",
    "吧",
    "用",
    "方案",
    "选项",
    "更好",
];
/// Maximum number of words in such a sentence.
const WORDS_MAX: usize = 9;

/// Returns the position named by a sentence that says nothing else.
pub(super) fn only(sentence: &str, options: &Options) -> Option<usize> {
    if options.is_yes_no() {
        return None;
    }
    let count = options.count();
    if sentence.chars().any(is_han) {
        return in_han(sentence, count);
    }
    let lower = sentence.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-')
        .filter(|w| !w.is_empty())
        .collect();
    if words.len() > WORDS_MAX {
        return None;
    }
    let mut named = None;
    for (at, word) in words.iter().enumerate() {
        let place = match OF_TWO.iter().position(|all| all.contains(word)) {
            Some(place) if count == 2 => Some(place),
            Some(_) => return None,
            None => PLACES
                .iter()
                .position(|all| all.contains(word))
                .filter(|_| {
                    at.checked_sub(1)
                        .is_some_and(|b| ARTICLES.contains(&words[b]))
                }),
        };
        match place {
            Some(_) if named.is_some() => return None,
            Some(place) => named = Some(place),
            None if ARTICLES.contains(word) || SMALL.split_whitespace().any(|w| w == *word) => {}
            None => return None,
        }
    }
    named.filter(|place| *place < count)
}

/// Returns the position that the first words of a text name, with an article: `la troisième, la seule qui mesure`.
pub(super) fn named(lower: &str, options: &Options) -> Option<usize> {
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty());
    words.next().filter(|w| ARTICLES.contains(w))?;
    let second = words.next()?;
    let place = PLACES.iter().position(|all| all.contains(&second))?;
    (place < options.count()).then_some(place)
}

fn in_han(sentence: &str, count: usize) -> Option<usize> {
    const NAMED: [(&str, usize); 10] = [
        ("前者", 0),
        ("后者", 1),
        ("第一个", 0),
        ("第二个", 1),
        ("第三个", 2),
        ("第四个", 3),
        ("第一种", 0),
        ("第二种", 1),
        ("第一项", 0),
        ("第二项", 1),
    ];
    let mut rest: String = sentence.chars().filter(|c| c.is_alphanumeric()).collect();
    let mut named = NAMED.iter().filter(|(word, _)| sentence.contains(word));
    let (word, place) = named.next()?;
    if named.next().is_some() || word.ends_with('者') && count != 2 {
        return None;
    }
    rest = rest.replacen(word, "", 1);
    for small in HAN_SMALL {
        rest = rest.replace(small, "");
    }
    (rest.is_empty() && *place < count).then_some(*place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_alone_names_an_option() {
        let two = Options::new(&["tea".to_owned(), "milk".to_owned()]);
        for (text, place) in [
            ("The former.", Some(0)),
            ("I'd go with the latter.", Some(1)),
            ("Lieber letzteres.", Some(1)),
            ("Plutôt le premier.", Some(0)),
            ("Me quedo con la segunda.", Some(1)),
            ("我选后者。", Some(1)),
            ("Not the latter.", None),
            ("The former or the latter.", None),
            ("First, measure.", None),
            ("The third one.", None),
            ("Lieber nicht letzteres.", None),
            ("不选后者。", None),
            ("The former manager said so.", None),
        ] {
            assert_eq!(only(text, &two), place, "{text}");
        }
        let three = Options::new(&["a1".to_owned(), "b1".to_owned(), "c1".to_owned()]);
        assert_eq!(only("The latter.", &three), None);
        assert_eq!(only("The third one.", &three), Some(2));
    }
}
