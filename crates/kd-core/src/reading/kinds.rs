//! How answers to a question can be compared, from the form of the question, in English, German, French, Spanish and
//! Chinese. Input: the question. Output: its options, yes or no, a number, a date, a list; open text otherwise.

use super::folded::Folded;
use super::kind_words::{DATE, NUMBER, OPEN, OR, YES_NO};
use super::language::{Language, is_han};
use super::{lists, moments, option_names, quantities};

/// What a question asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of these.
    Choice(Vec<String>),
    /// Yes or no.
    YesNo,
    /// A number; years are numbers.
    Number,
    /// A day.
    Date,
    /// All of some things, in any order.
    List,
    /// Open text: explanations, lists without an end, code.
    Open,
}

/// The kind of a question.
pub fn of(asked: &str) -> Kind {
    let lines = in_lines(asked);
    if lines.len() >= 2 {
        return Kind::Choice(lines);
    }
    let inline = inline(asked);
    if inline.len() >= 2 {
        return Kind::Choice(inline);
    }
    let question = last_question(asked);
    let lower = question.trim().to_lowercase().replace('’', "'");
    let starts = |words: &[&str]| words.iter().any(|w| begins(&lower, w));
    if let Some(options) = option_names::compared(question).and_then(distinct) {
        return Kind::Choice(options);
    }
    if let Some(options) = either_or(question)
        && !OPEN.iter().any(|w| begins(&lower, w) && *w != "compare")
    {
        return Kind::Choice(options);
    }
    if DATE.iter().any(|w| holds(&lower, w)) || moments::is_asked(&lower) {
        return Kind::Date;
    }
    let first = lower.split([' ', ',']).next().unwrap_or_default();
    let asks = asked.trim_end().ends_with(['?', '？']) || question.len() < asked.trim().len();
    let has_or = OR.iter().any(|or| lower.contains(or));
    if asks
        && !has_or
        && (YES_NO.contains(&first)
            && first != "y"
            && !(first == "was" && Language::of(&lower) == Language::German)
            || lower.starts_with("y a-t-il"))
    {
        return Kind::YesNo;
    }
    if asks && !has_or && is_inverted(&lower) {
        return Kind::YesNo;
    }
    if is_chinese_yes_no(&lower) && !has_or {
        return Kind::YesNo;
    }
    if lists::is_asked(&lower) || question.len() < asked.trim().len() && lists::is_asked(asked) {
        return Kind::List;
    }
    if starts(OPEN) || lower.starts_with("list") {
        return Kind::Open;
    }
    if NUMBER.iter().any(|w| holds(&lower, w))
        || is_arithmetic(&lower)
        || quantities::is_asked(&lower)
    {
        return Kind::Number;
    }
    Kind::Open
}

/// Whether a text begins with a word, behind politeness.
fn begins(lower: &str, word: &str) -> bool {
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let bare = [
        "please ",
        "bitte ",
        "kannst du ",
        "can you ",
        "could you ",
        "请",
    ]
    .iter()
    .find_map(|p| bare.strip_prefix(p))
    .unwrap_or(bare);
    bare.strip_prefix(word).is_some_and(|rest| {
        word.ends_with(' ') || word.chars().any(is_han) || !rest.starts_with(char::is_alphanumeric)
    })
}

/// Whether a text holds a word.
fn holds(lower: &str, word: &str) -> bool {
    lower.match_indices(word).any(|(at, _)| {
        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        word.chars().any(is_han)
            || edge(lower[..at].chars().next_back())
                && edge(lower[at + word.len()..].chars().next())
    })
}

/// Whether a French question without a question word turns verb and pronoun round: `les baleines sont-elles …`.
fn is_inverted(lower: &str) -> bool {
    const ASKS: &[&str] = &[
        "combien",
        "quel",
        "quelle",
        "quels",
        "quelles",
        "comment",
        "pourquoi",
        "où",
        "quand",
        "que",
        "qui",
        "à",
        "en",
        "lequel",
        "laquelle",
        "qu'est-ce",
        "de",
        "depuis",
    ];
    let mut words = lower.split([' ', ',']);
    let first = words.next().unwrap_or_default();
    let turned = [
        "-il", "-elle", "-ils", "-elles", "-on", "-nous", "-vous", "-je",
    ];
    !ASKS.contains(&first) && words.any(|word| turned.iter().any(|t| word.ends_with(t)))
}

fn is_chinese_yes_no(lower: &str) -> bool {
    lower.ends_with('吗')
        || [
            "是否",
            "是不是",
            "能不能",
            "可不可以",
            "要不要",
            "会不会",
            "应不应该",
            "有没有",
            "对不对",
        ]
        .iter()
        .any(|w| lower.contains(w))
}

/// `What is 17*23?`, `3x + 5 = 20`, `17 × 23 = ?`
fn is_arithmetic(lower: &str) -> bool {
    let chars: Vec<char> = lower.chars().filter(|c| !c.is_whitespace()).collect();
    let sign =
        |c: char| matches!(c, '+' | '*' | '×' | '·' | '÷' | '/' | '^' | '−' | '=') || c == '-';
    let operand = |c: char| c.is_ascii_digit() || matches!(c, '(' | ')' | 'x' | '√' | '?');
    let hit = chars.windows(3).any(|w| {
        (w[0].is_ascii_digit() || w[0] == ')' || w[0] == 'x') && sign(w[1]) && operand(w[2])
    });
    if lower.contains("% of ") || lower.contains("% von ") || lower.contains("% de ") {
        return true;
    }
    let words = [
        "plus",
        "minus",
        "times",
        "divided by",
        "mal",
        "geteilt",
        "fois",
        "divisé",
        "más",
        "por",
        "menos",
        "dividido",
        "moins",
        "square root",
        "wurzel",
        "factorial",
        "to the power",
        "乘以",
        "加",
        "减",
        "除以",
        "moduls",
        "mod",
    ];
    let digits = lower.chars().filter(char::is_ascii_digit).count();
    let date = chars.windows(5).any(|w| {
        w[0].is_ascii_digit() && w[1] == '-' && w[2].is_ascii_digit() && w[3] == '-'
            || w[0] == '/' && w[2] == '/'
    });
    (hit && !date && lower.chars().count() < 200)
        || (digits >= 2
            && words.iter().any(|w| holds(lower, w))
            && Language::of(lower) != Language::English)
        || (digits >= 2
            && [
                "plus",
                "minus",
                "times",
                "divided by",
                "to the power",
                "square root",
                "factorial",
            ]
            .iter()
            .any(|w| holds(lower, w)))
}

/// The sentence that asks: the last with a question mark, else the last.
fn last_question(text: &str) -> &str {
    let text = text.trim();
    let ends = ['?', '？'];
    let end = text
        .rfind(ends)
        .unwrap_or(text.trim_end_matches(['.', '!', '。', '！']).len());
    let head = text.get(..end).unwrap_or(text);
    let start = head
        .char_indices()
        .filter(|(at, c)| {
            let next = head[at + c.len_utf8()..].chars().next();
            matches!(c, '!' | '?' | '\n' | '。' | '！' | '？')
                || *c == '.'
                    && next.is_some_and(char::is_whitespace)
                    && !head[..*at].ends_with(" vs")
        })
        .map(|(at, c)| at + c.len_utf8())
        .next_back();
    head.get(start.unwrap_or(0)..).unwrap_or(head).trim()
}

/// Options that stand in lines of their own: `A) …`, `b. …`, `(c) …`, in order from A.
fn in_lines(text: &str) -> Vec<String> {
    let mut options = Vec::new();
    for line in text.lines() {
        let line = line.trim().trim_start_matches(['(', '-', '*', ' ', '（']);
        let mut chars = line.chars();
        let (Some(letter), Some(mark)) = (chars.next(), chars.next()) else {
            continue;
        };
        let wanted = char::from(b'a' + (options.len() % 26) as u8);
        if letter.to_ascii_lowercase() == wanted
            && matches!(mark, ')' | '.' | ':' | '）' | '、' | '：')
        {
            let option = trimmed(chars.as_str());
            // A line with further labels holds all options.
            if !option.is_empty() {
                options.push(option);
            }
        }
    }
    options
}

/// Options inside a line: `(A) iron (B) gold`, `A. 铁 B. 金`, `a) x, b) y`.
fn inline(text: &str) -> Vec<String> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut marks: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while at + 1 < chars.len() {
        let wanted = char::from(b'a' + (marks.len() % 26) as u8);
        let (place, c) = chars[at];
        let before = at.checked_sub(1).map(|b| chars[b].1);
        let after = chars[at + 1].1;
        let bracketed =
            matches!(before, Some('(' | '（' | '[')) && matches!(after, ')' | '）' | ']');
        let free = before.is_none_or(|b| {
            b.is_whitespace()
                || is_han(b)
                || matches!(
                    b,
                    ',' | ';' | ':' | '：' | '，' | '；' | '?' | '？' | '/' | '|'
                )
        });
        let marked = free && matches!(after, ')' | '.' | ':' | '）' | '、' | '：' | '．');
        if c.to_ascii_lowercase() == wanted && (bracketed || marked) {
            let from = if bracketed { chars[at - 1].0 } else { place };
            marks.push((from, chars.get(at + 2).map_or(text.len(), |(p, _)| *p)));
            at += 2;
            continue;
        }
        at += 1;
    }
    if marks.len() < 2 {
        return Vec::new();
    }
    let mut options = Vec::new();
    for (place, (_, from)) in marks.iter().enumerate() {
        let to = marks.get(place + 1).map_or(text.len(), |(next, _)| *next);
        let piece = text.get(*from..to).unwrap_or_default();
        let piece = piece.split(['?', '？', '\n']).next().unwrap_or_default();
        options.push(trimmed(piece));
    }
    match options
        .iter()
        .all(|o| !o.is_empty() && o.chars().count() <= 120)
    {
        true => options,
        false => Vec::new(),
    }
}

fn trimmed(piece: &str) -> String {
    let mut piece = piece.trim();
    for or in ["or", "oder", "ou", "o", "and", "或", "还是"] {
        if let Some(rest) = piece.strip_suffix(or)
            && (rest.ends_with([' ', ',', ';']) || or.chars().all(is_han) && !rest.is_empty())
        {
            piece = rest.trim_end();
        }
    }
    piece
        .trim_matches([
            ',', ';', '.', '。', '，', '；', '、', '/', '|', ' ', '?', '？',
        ])
        .trim()
        .to_owned()
}

/// The options around the last "or": `… SQLite or PostgreSQL`, `Paris, Lyon or Nice`.
fn either_or(question: &str) -> Option<Vec<String>> {
    let folded = Folded::new(question);
    let (at, or) = OR
        .iter()
        .filter_map(|or| Some((folded.rfind(or)?, *or)))
        .max_by_key(|(at, or)| (at.start, or.len()))?;
    let (before, after) = (question.get(..at.start)?, question.get(at.end..)?);
    let han = or.chars().any(is_han);
    let second = after
        .trim()
        .trim_matches(['?', '？', '.', '"', '¿', '“', '”'])
        .trim();
    let second = option_names::without_shared(second, before);
    let second = option_names::without_infinitive(second, question);
    let listed = before.trim_end().trim_end_matches([',', '，', '、']);
    let head_cues = [
        ":",
        "：",
        " of ",
        " between ",
        " among ",
        " von ",
        " zwischen ",
        " unter ",
        " entre ",
        " parmi ",
        " de ",
    ];
    // What introduces the list ends the question proper.
    let folded = Folded::new(listed);
    let intro = head_cues
        .iter()
        .filter_map(|cue| folded.rfind(cue).map(|at| at.end))
        .max();
    let comma = listed
        .rfind([',', '，'])
        .map(|at| at + listed[at..].chars().next().map_or(1, char::len_utf8));
    let pieces = |text: &str| -> Vec<String> {
        text.split([',', '，', '、', ';'])
            .map(bare)
            .filter(|p| !p.is_empty())
            .collect()
    };
    let words = |text: &str| {
        if han {
            text.chars().count().div_ceil(3)
        } else {
            text.split_whitespace().count()
        }
    };
    let short = |text: &str| words(text) <= 4 && !text.is_empty();
    // `Which of Paris, Lyon or Nice is largest?`: the last option ends where a verb begins.
    let verbs = [
        " is ",
        " are ",
        " fits ",
        " makes ",
        " has ",
        " was ",
        " have ",
        " would ",
        " should ",
        " ist ",
        " sind ",
        " hat ",
        " liegt ",
        " est ",
        " a ",
        " sont ",
        " es ",
        " tiene ",
        " son ",
        " est-",
        "更",
        "哪",
        " for ",
        " für ",
        " pour ",
        " para ",
        " in ",
        " to ",
        " as ",
        " when ",
        " wenn ",
        " si ",
        " with ",
        " at ",
        " on ",
        " zum ",
        " zur ",
        " by ",
        " from ",
        ",",
        "，",
        " le matin",
        " le soir",
        " por la mañana",
        " por la noche",
        " am morgen",
        " am abend",
        " quand ",
        " cuando ",
    ];
    let folded = Folded::new(second);
    let second_end = verbs
        .iter()
        .filter_map(|v| folded.find(v).map(|at| at.start))
        .filter(|e| *e > 0)
        .min();
    let tail = second_end.map_or(second, |end| &second[..end]);
    let second = bare(
        if short(second) && !second.contains([',', '，']) && second_end.is_none() {
            second
        } else {
            tail
        },
    );
    if !short(&second) {
        return None;
    }
    if let Some(intro) = intro {
        let mut options = pieces(listed.get(intro..)?);
        if !options.is_empty() && options.iter().all(|o| short(o)) {
            options.push(second);
            return distinct(options);
        }
    }
    // `Which is better, tea or coffee?`: what stands behind the comma, if that is short.
    if let Some(comma) = comma {
        let first = bare(option_names::without_shared(
            listed.get(comma..)?.trim(),
            listed.get(..comma)?,
        ));
        let earlier = pieces(listed.get(..comma)?);
        let lone = |text: &String| words(text) == 1;
        if short(&first) {
            let mut options = vec![first];
            for piece in earlier.iter().rev() {
                match lone(piece) && earlier.len() > 1
                    || lone(piece) && options.len() == 1 && lone(&options[0])
                {
                    true => options.insert(0, piece.clone()),
                    false => {
                        // `Should it be red, green or blue`: the last word of the head is the first option.
                        let last = piece.split_whitespace().next_back().unwrap_or_default();
                        let asks = [
                            "better",
                            "best",
                            "faster",
                            "heavier",
                            "larger",
                            "besser",
                            "schneller",
                            "größer",
                            "mejor",
                            "mieux",
                            "mayor",
                            "correct",
                            "largest",
                            "older",
                            "älter",
                        ];
                        let question_word = [
                            "which", "what", "who", "welche", "welcher", "welches", "was", "wer",
                            "quel", "quelle", "qui", "lequel", "qué", "cuál", "quién", "¿cuál",
                            "¿qué", "哪", "谁",
                        ];
                        let introduces = piece
                            .to_lowercase()
                            .split([' ', '\''])
                            .any(|w| question_word.contains(&w))
                            || asks.contains(&last.to_lowercase().as_str())
                            || han;
                        if !introduces && !last.is_empty() {
                            options.insert(0, last.to_owned());
                        }
                        break;
                    }
                }
            }
            options.push(second);
            return distinct(options);
        }
    }
    if let Some(options) = option_names::chinese(listed, &second).filter(|_| han) {
        return distinct(options);
    }
    // Two single words, or two names of the same make.
    let first = match han {
        true => bare(
            listed
                .rsplit([
                    '，', '选', '用', '是', '喝', '吃', '买', '学', '去', '要', '在',
                ])
                .next()?,
        ),
        false => listed.split_whitespace().next_back().map(bare)?,
    };
    let single = words(&second) == 1 || han;
    let capital = |text: &str| {
        text.split_whitespace().all(|w| {
            w.starts_with(char::is_uppercase) || w.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    if single && !first.is_empty() {
        return distinct(vec![first, second]);
    }
    // `SQLite oder PostgreSQL anfangen`: a verb behind two names.
    let name: Vec<&str> = second
        .split_whitespace()
        .take_while(|w| w.starts_with(char::is_uppercase))
        .collect();
    if name.len() == 1 && words(&second) == 2 && capital(&first) {
        return distinct(vec![first, name[0].to_owned()]);
    }
    if capital(&second) {
        let count = words(&second);
        let all: Vec<&str> = listed.split_whitespace().collect();
        let from = all.len().checked_sub(count)?;
        let first = bare(&all[from..].join(" "));
        if capital(&first) {
            return distinct(vec![first, second]);
        }
        return distinct(vec![bare(all.last()?), second]).filter(|o| capital(&o[0]));
    }
    None
}

fn bare(text: &str) -> String {
    let text = text
        .trim()
        .trim_matches([
            '"', '\'', '“', '”', '„', '«', '»', '`', '*', '.', '?', '？', ':', '：', '(', ')', '¿',
        ])
        .trim();
    let folded = Folded::new(text);
    let articles = [
        "either ",
        "the ",
        "an ",
        "ein ",
        "dem ",
        "entweder ",
        "den ",
        "die ",
        "das ",
        "der ",
        "einen ",
        "eine ",
        "le ",
        "la ",
        "les ",
        "un ",
        "une ",
        "el ",
        "los ",
        "las ",
        "una ",
        "a ",
    ];
    let noun = articles.iter().find_map(|a| folded.strip_prefix(a));
    let noun = noun.filter(|_| !text.starts_with(char::is_uppercase));
    noun.map_or(text, str::trim).to_owned()
}

fn distinct(options: Vec<String>) -> Option<Vec<String>> {
    let mut seen: Vec<String> = options.iter().map(|o| o.to_lowercase()).collect();
    seen.sort();
    seen.dedup();
    let reserved = [
        "not", "nicht", "no", "non", "more", "less", "mehr", "so", "why", "不", "it", "is",
    ];
    // Of two things "both" is no third one.
    let both = options.len() < 3 && seen.iter().any(|o| o == "both" || o == "neither");
    let fits = seen.len() == options.len()
        && options.len() >= 2
        && !both
        && !seen.iter().any(|o| reserved.contains(&o.as_str()));
    fits.then_some(options)
}
