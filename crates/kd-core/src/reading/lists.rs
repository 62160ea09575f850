//! Lists with an end: questions that ask for all of some things (`Name the Baltic states.`), and the things that a reply
//! names, in whatever order and form.

use super::{prose, sameness};
use serde_json::Value;

/// How a question begins that asks for all of some things. What follows must be plural where the article does not tell.
const CUES: &[(&str, bool)] = &[
    ("name the ", true),
    ("list the ", true),
    ("list all ", false),
    ("name all ", false),
    ("give the ", true),
    ("enumerate the ", false),
    ("what are the ", false),
    ("which are the ", false),
    ("nenne die ", true),
    ("nenne alle ", false),
    ("nennen sie die ", true),
    ("nennen sie alle ", false),
    ("zähle die ", true),
    ("zähle alle ", false),
    ("was sind die ", false),
    ("citez les ", false),
    ("cite les ", false),
    ("énumérez les ", false),
    ("énumère les ", false),
    ("nommez les ", false),
    ("nomme les ", false),
    ("listez les ", false),
    ("quels sont les ", false),
    ("quelles sont les ", false),
    ("nombra los ", false),
    ("nombra las ", false),
    ("enumera los ", false),
    ("enumera las ", false),
    ("menciona los ", false),
    ("menciona las ", false),
    ("lista los ", false),
    ("lista las ", false),
    ("cuáles son los ", false),
    ("cuáles son las ", false),
    ("donnez les ", false),
    ("donne les ", false),
    ("indiquez les ", false),
    ("di los ", false),
    ("di las ", false),
    ("dime los ", false),
    ("dime las ", false),
    ("说出", false),
    ("请说出", false),
    ("请给出", false),
    ("列出", false),
    ("请列出", false),
    ("列举", false),
    ("请列举", false),
];

/// Words anywhere that ask for all of some things.
const ALL: &[&str] = &[
    "all of them",
    "name them all",
    "list them all",
    "alle nennen",
    "nenne alle",
    "nenne sie alle",
    "-les tous",
    "-les toutes",
    "los todos",
    "las todas",
    "有哪些",
    "哪几个",
    "全部列出",
];

/// Things without an end: whoever lists them makes a choice.
const ENDLESS: &[&str] = &[
    "reason",
    "way",
    "advantage",
    "disadvantage",
    "benefit",
    "drawback",
    "difference",
    "cause",
    "risk",
    "pros",
    "cons",
    "step",
    "tip",
    "idea",
    "example",
    "effect",
    "consequence",
    "best",
    "main",
    "most",
    "implication",
    "trade-off",
    "tradeoff",
    "option",
    "alternative",
    "challenge",
    "gründe",
    "vorteile",
    "nachteile",
    "unterschiede",
    "ursachen",
    "risiken",
    "schritte",
    "tipps",
    "ideen",
    "beispiele",
    "beste",
    "wichtigste",
    "folgen",
    "raison",
    "avantage",
    "inconvénient",
    "différence",
    "risque",
    "étape",
    "conseil",
    "idée",
    "exemple",
    "meilleur",
    "meilleure",
    "conséquence",
    "principale",
    "principaux",
    "razone",
    "ventaja",
    "desventaja",
    "diferencia",
    "causa",
    "riesgo",
    "paso",
    "consejo",
    "ejemplo",
    "mejore",
    "principale",
    "consecuencia",
    "原因",
    "理由",
    "优点",
    "缺点",
    "区别",
    "方法",
    "步骤",
    "建议",
    "例子",
    "影响",
    "风险",
    "好处",
    "办法",
];

/// Whether a question asks for all of some things.
pub fn is_asked(asked: &str) -> bool {
    let lower = asked.trim().to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '-')
        .filter(|w| !w.is_empty())
        .collect();
    let is_endless = |word: &&str| {
        ENDLESS.contains(word)
            || [*word; 2]
                .iter()
                .zip(["s", "n"])
                .any(|(word, end)| word.strip_suffix(end).is_some_and(|w| ENDLESS.contains(&w)))
    };
    let han = ENDLESS
        .iter()
        .any(|w| !w.is_ascii() && w.chars().all(super::language::is_han) && lower.contains(w));
    if han || words.iter().any(is_endless) {
        return false;
    }
    if ALL.iter().any(|cue| lower.contains(cue)) {
        return true;
    }
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let bare = bare
        .strip_prefix("please ")
        .or(bare.strip_prefix("bitte "))
        .unwrap_or(bare);
    let cued = CUES.iter().any(|(cue, must_be_plural)| {
        bare.strip_prefix(cue)
            .is_some_and(|rest| !must_be_plural || has_plural(rest))
    });
    cued || is_german_plural(bare)
}

/// Whether one of the first words looks plural, or is a number.
fn has_plural(rest: &str) -> bool {
    const NUMBERS: &[&str] = &[
        "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "zwei", "drei",
        "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn",
    ];
    let mut words = rest.split([' ', ',', '.', '?']).take(4);
    words.any(|word| {
        let plural = word.len() > 3
            && (word.ends_with(['n', 's']) || word.ends_with("er"))
            && !word.ends_with("ss")
            && !word.ends_with("tion");
        NUMBERS.contains(&word) || plural && !matches!(word, "often" | "when" | "than")
    })
}

/// `Welche Nachbarländer hat …`, but not `Welche Farbe hat …`.
fn is_german_plural(lower: &str) -> bool {
    let mut words = lower.split_whitespace();
    let (Some("welche"), Some(thing), Some(verb)) = (words.next(), words.next(), words.next())
    else {
        return false;
    };
    let plural = thing.ends_with("er") || thing.ends_with("en");
    let singular = ["nummer", "mauer", "steuer", "oper", "mutter", "feder"];
    let verbs = ["hat", "haben", "gehören", "umfasst", "bilden", "grenzen"];
    plural && !singular.iter().any(|s| thing.ends_with(s)) && verbs.contains(&verb)
}

/// The things that a reply names, each in its normal form, sorted; none where it is no list.
pub fn items(reply: &str) -> Option<Vec<String>> {
    let text = prose::without_thoughts(reply);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !prose::is_about_confidence(line))
        .collect();
    let bulleted: Vec<&str> = lines.iter().filter_map(|line| bullet(line)).collect();
    let others = lines.len() - bulleted.len();
    // One line may introduce them.
    let headed = others == 0 || others == 1 && lines[0].ends_with([':', '：']);
    let pieces = match bulleted.len() >= 2 && headed {
        true => bulleted.into_iter().map(str::to_owned).collect(),
        false => split(&lines.join("\n"))?,
    };
    let mut items: Vec<String> = pieces
        .iter()
        .map(|piece| sameness::words(without_article(piece)).join(" "))
        .filter(|item| !item.is_empty())
        .collect();
    items.sort();
    items.dedup();
    (!items.is_empty()).then_some(items)
}

/// The text behind a bullet or a number.
fn bullet(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix(['-', '*', '•', '–']) {
        return Some(rest.trim()).filter(|rest| !rest.is_empty());
    }
    let digits = line
        .find(|c: char| !c.is_ascii_digit())
        .filter(|d| *d > 0)?;
    let rest = line.get(digits..)?;
    let rest = rest.strip_prefix(['.', ')', '、', '．'])?.trim();
    (!rest.is_empty()).then_some(rest)
}

/// The pieces of a line: between commas, and around the last "and".
fn split(text: &str) -> Option<Vec<String>> {
    let mut text = text
        .trim()
        .trim_end_matches(['.', '。'])
        .replace(['，', '、', '；', ';', '\n'], ",");
    for and in [" and ", " und ", " et ", " y ", " e ", " & "] {
        text = text.replace(and, ",");
    }
    if text.chars().any(super::language::is_han) {
        text = text.replace(['和', '与', '及'], ",");
    }
    let pieces: Vec<String> = text
        .split(',')
        .map(|piece| {
            let piece = piece.trim();
            let and = ["and ", "und ", "et ", "y "]
                .iter()
                .find_map(|a| piece.strip_prefix(a));
            and.unwrap_or(piece).trim().to_owned()
        })
        .filter(|piece| !piece.is_empty())
        .collect();
    (!pieces.is_empty()).then_some(pieces)
}

fn without_article(piece: &str) -> &str {
    const ARTICLES: &[&str] = &[
        "the ", "die ", "der ", "das ", "le ", "la ", "les ", "el ", "los ", "las ", "l'", "l’",
    ];
    let lower = piece.to_lowercase();
    let article = ARTICLES.iter().find(|a| lower.starts_with(**a));
    article.and_then(|a| piece.get(a.len()..)).unwrap_or(piece)
}

/// The things in a JSON value.
pub fn of_value(value: &Value) -> Option<Vec<String>> {
    let texts: Vec<&str> = value
        .as_array()?
        .iter()
        .map(Value::as_str)
        .collect::<Option<_>>()?;
    items(&texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_same_in_any_order_and_form() {
        for reply in [
            "red, green, blue",
            "Blue, red and green.",
            "- green\n- blue\n- red",
            "The colours are:\n1. red\n2. green\n3. blue",
            "red; blue; green\nConfidence: 0.9",
        ] {
            let found = items(reply).map(|i| i.join(", "));
            assert_eq!(found.as_deref(), Some("blue, green, red"), "{reply}");
        }
        assert_eq!(items("红、绿、蓝。"), items("蓝，红和绿"));
        assert_eq!(items(" \n"), None);
    }

    #[test]
    fn a_list_without_an_end_is_no_list() {
        for asked in [
            "List three reasons to learn Rust.",
            "What are the advantages of Go?",
            "Name a good tea.",
            "Name the capital of France.",
            "Nenne die Hauptstadt.",
            "Welche Farbe hat der Himmel?",
            "Quels sont les risques ?",
            "¿Cuáles son las mejores ideas?",
            "列出三个理由。",
        ] {
            assert!(!is_asked(asked), "{asked}");
        }
    }
}
