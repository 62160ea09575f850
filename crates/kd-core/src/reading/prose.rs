//! What a person would take from an answer in words: labelled lines, the option that is chosen and not the one that is
//! rejected, the number of the last line. Whatever can be understood in two ways is not read.

use super::folded::Folded;
use super::language::{Language, is_han};
use super::options::{Mention, Options};
use super::{date, number, refusal, sayings};

/// Words that stand before an answer, in the five languages; a colon, a dash or a copula follows. `true`: it announces a
/// final answer and stands above the others.
const LABELS: &[(&str, bool)] = &[
    ("final answer", true),
    ("my final answer", true),
    ("the final answer", true),
    ("final decision", true),
    ("final choice", true),
    ("final vote", true),
    ("final verdict", true),
    ("final result", true),
    ("final", true),
    ("endgültige antwort", true),
    ("die endgültige antwort", true),
    ("finale antwort", true),
    ("endergebnis", true),
    ("réponse finale", true),
    ("la réponse finale", true),
    ("ma réponse finale", true),
    ("respuesta final", true),
    ("la respuesta final", true),
    ("mi respuesta final", true),
    ("最终答案", true),
    ("最后答案", true),
    ("the answer", false),
    ("the correct answer", false),
    ("correct answer", false),
    ("the correct option", false),
    ("the correct choice", false),
    ("the best answer", false),
    ("the best option", false),
    ("the best choice", false),
    ("my answer", false),
    ("short answer", false),
    ("best answer", false),
    ("answer", false),
    ("ans", false),
    ("the result", false),
    ("result", false),
    ("solution", false),
    ("verdict", false),
    ("decision", false),
    ("my decision", false),
    ("my choice", false),
    ("choice", false),
    ("my vote", false),
    ("vote", false),
    ("ballot", false),
    ("selection", false),
    ("position", false),
    ("my position", false),
    ("conclusion", false),
    ("recommendation", false),
    ("my recommendation", false),
    ("tl;dr", false),
    ("die antwort", false),
    ("die richtige antwort", false),
    ("richtige antwort", false),
    ("meine antwort", false),
    ("kurze antwort", false),
    ("antwort", false),
    ("ergebnis", false),
    ("das ergebnis", false),
    ("lösung", false),
    ("die lösung", false),
    ("wahl", false),
    ("meine wahl", false),
    ("entscheidung", false),
    ("meine entscheidung", false),
    ("stimme", false),
    ("meine stimme", false),
    ("fazit", false),
    ("empfehlung", false),
    ("meine empfehlung", false),
    ("la réponse", false),
    ("la bonne réponse", false),
    ("ma réponse", false),
    ("réponse", false),
    ("résultat", false),
    ("le résultat", false),
    ("choix", false),
    ("mon choix", false),
    ("mon vote", false),
    ("décision", false),
    ("recommandation", false),
    ("la respuesta", false),
    ("la respuesta correcta", false),
    ("mi respuesta", false),
    ("respuesta", false),
    ("resultado", false),
    ("el resultado", false),
    ("elección", false),
    ("mi elección", false),
    ("mi voto", false),
    ("voto", false),
    ("decisión", false),
    ("conclusión", false),
    ("recomendación", false),
    ("正确答案", false),
    ("答案", false),
    ("答", false),
    ("结果", false),
    ("我的选择", false),
    ("选择", false),
    ("结论", false),
    ("我的答案", false),
    ("投票", false),
];

/// What joins a label to its answer where there is no colon.
const COPULAS: &[&str] = &[
    " is ", " ist ", " lautet ", " est ", " es ", "是", "为", " = ", " → ", " -> ", " – ", " — ",
];

/// Words that begin what counts after something that does not.
const CONTRASTS: &[&str] = &[
    "but",
    "however",
    "yet",
    "though",
    "although",
    "nevertheless",
    "aber",
    "jedoch",
    "doch",
    "dennoch",
    "mais",
    "cependant",
    "pourtant",
    "toutefois",
    "pero",
    "sin embargo",
    "aunque",
    "但是",
    "但",
    "不过",
    "然而",
    "while",
    "whereas",
    "während",
];

/// Words that begin a clause which concedes something: the other clause decides.
const CONCEDES: &[&str] = &[
    "even though",
    "even if",
    "although",
    "though",
    "while",
    "whereas",
    "despite",
    "as much as",
    "much as",
    "auch wenn",
    "obwohl",
    "wenngleich",
    "während",
    "so sehr",
    "trotz",
    "même si",
    "bien que",
    "quoique",
    "malgré",
    "autant",
    "aunque",
    "si bien",
    "a pesar de",
    "por mucho que",
    "por más que",
    "虽然",
    "尽管",
];

/// Words that begin what follows from the rest of a sentence.
const FOLLOWS: &[&str] = &[
    "so",
    "therefore",
    "hence",
    "thus",
    "that leaves",
    "daher",
    "deshalb",
    "folglich",
    "somit",
    "donc",
    "por tanto",
    "por lo tanto",
    "así que",
    "所以",
    "因此",
];

/// Words of a mind that changes.
const TURNS: &[&str] = &[
    "wait",
    "actually",
    "on second thought",
    "on reflection",
    "correction",
    "i change",
    "i was wrong",
    "changed my mind",
    "let me correct",
    "i revise",
    "revised",
    "reconsider",
    "scratch that",
    "sorry,",
    "my mistake",
    "instead",
    "corrected",
    "recompute",
    "recalculate",
    "double-check",
    "let me check",
    "check again",
    "nachrechnen",
    "noch einmal",
    "recalcul",
    "vérifions",
    "verifiquemos",
    "重新计算",
    "再算",
    "moment",
    "korrektur",
    "ich korrigiere",
    "bei näherem",
    "nein, doch",
    "ich habe mich geirrt",
    "genauer betrachtet",
    "en fait",
    "je me corrige",
    "attendez",
    "je me suis trompé",
    "à la réflexion",
    "en realidad",
    "espera",
    "corrección",
    "me equivoqué",
    "pensándolo bien",
    "更正",
    "等等",
    "其实",
    "我错了",
    "重新考虑",
];

/// Words of a sentence that decides.
const DECIDES: &[&str] = &[
    "choose",
    "chose",
    "pick",
    "go with",
    "vote for",
    "prefer",
    "recommend",
    "select",
    "opt for",
    "therefore",
    "thus",
    "hence",
    "overall",
    "in conclusion",
    "best",
    "better",
    "winner",
    "wins",
    "correct",
    "right",
    "so ",
    "in short",
    "i'd take",
    "i take",
    "take ",
    "stand by",
    "settle on",
    "use ",
    "in favor of",
    "my answer",
    "it has to be",
    "it's",
    "it is",
    "must be",
    "suffices",
    "is enough",
    "plenty",
    "stands out",
    "comes out ahead",
    "way to go",
    "fits",
    "strongest",
    "job for",
    "gets it",
    "that leaves",
    "reicht",
    "genügt",
    "suffit",
    "basta",
    "wähle",
    "nehme",
    "bin für",
    "rate zu",
    "lohnt",
    "stimme für",
    "empfehle",
    "bevorzuge",
    "daher",
    "deshalb",
    "insgesamt",
    "beste",
    "besser",
    "richtig",
    "entscheide",
    "folglich",
    "somit",
    "choisis",
    "prends",
    "vote pour",
    "préfère",
    "recommande",
    "donc",
    "meilleur",
    "bonne",
    "finalement",
    "opte",
    "elijo",
    "escojo",
    "voto por",
    "prefiero",
    "recomiendo",
    "por tanto",
    "por lo tanto",
    "así que",
    "mejor",
    "correcta",
    "correcto",
    "me quedo",
    "选",
    "推荐",
    "因此",
    "所以",
    "更好",
    "最好",
    "正确",
    "应该",
    "综上",
    "建议",
];

/// Words of somebody who does not choose.
const UNDECIDED: &[&str] = &[
    "both ",
    "either ",
    "neither",
    "it depends",
    "depends on",
    "cannot decide",
    "can't decide",
    "undecided",
    "no preference",
    "hard to say",
    "not sure",
    "toss-up",
    "unclear",
    "equally",
    "beide",
    "weder",
    "kommt darauf an",
    "hängt davon ab",
    "kann mich nicht entscheiden",
    "unentschieden",
    "schwer zu sagen",
    "les deux",
    "ni l'un",
    "ça dépend",
    "cela dépend",
    "difficile à dire",
    "ambos",
    "ambas",
    "ninguno",
    "ninguna",
    "depende",
    "no puedo decidir",
    "difícil de decir",
    "都可以",
    "都行",
    "取决于",
    "难说",
    "不确定",
    "看情况",
    "none of",
    "keine von",
    "aucun des",
    "aucune des",
    "都不",
];

/// What a text in words says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<T> {
    /// This, on a labelled line.
    Labelled(T),
    /// This, in the words of an option.
    Words(T),
    /// This, on its last line.
    LastLine(T),
    /// It can be understood in several ways.
    Several,
    /// It refuses.
    Refused,
    /// Nothing of the kind.
    Nothing,
}

impl<T> Said<T> {
    /// The same of something else.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Said<U> {
        match self {
            Said::Labelled(t) => Said::Labelled(f(t)),
            Said::Words(t) => Said::Words(f(t)),
            Said::LastLine(t) => Said::LastLine(f(t)),
            Said::Several => Said::Several,
            Said::Refused => Said::Refused,
            Said::Nothing => Said::Nothing,
        }
    }
}

/// The option that a text chooses.
pub fn option(text: &str, options: &Options) -> Said<usize> {
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
        Taken::One(at) => return Said::Labelled(at),
        Taken::Several => return Said::Several,
        Taken::None => {}
    }
    let whole = bare(text);
    if let Some(at) = options.stated(&whole) {
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

/// The option that a text without labels chooses.
fn chosen(text: &str, options: &Options) -> Said<usize> {
    match marked_line(text, options) {
        Taken::One(at) => return Said::Words(at),
        Taken::Several => return Said::Several,
        Taken::None => {}
    }
    if let Some(first) = options
        .ranked(text)
        .and_then(|order| order.first().copied())
        && text.contains(['>', '≻'])
    {
        return Said::Words(first);
    }
    if let Some(first) = placed_first(text, options).or_else(|| options.largest_share(text)) {
        return Said::Words(first);
    }
    match (in_sentences(text, options), sayings::yes_or_no(text)) {
        (Said::Nothing, Some(said)) if options.is_yes_no() => {
            let word = if said { "yes" } else { "no" };
            options.stated(word).map_or(Said::Nothing, Said::Words)
        }
        (read, _) => read,
    }
}

/// The option that a labelled line chooses: the line as a whole, else its first sentence where nothing is taken back.
fn labelled_choice(line: &str, options: &Options) -> Taken<usize> {
    let whole = clause_choice(line, options);
    if !matches!(whole, Taken::Several) || turns(line) {
        return whole;
    }
    let parts = sentences(line);
    match parts.split_first() {
        Some((first, rest)) if !rest.is_empty() && !is_undecided(&first.to_lowercase()) => {
            let first = bare(first);
            match options.stated(&first) {
                Some(at) => Taken::One(at),
                None => clause_choice(&first, options),
            }
        }
        _ => whole,
    }
}

/// The one option of a list that is ticked, or that is called right where the others are called wrong.
fn marked_line(text: &str, options: &Options) -> Taken<usize> {
    const GOOD: &[&str] = &[
        "[x]",
        "☑",
        "✅",
        "✓",
        "✔",
        "right",
        "correct",
        "true",
        "best",
        "winner",
        "richtig",
        "korrekt",
        "stimmt",
        "exact",
        "juste",
        "vrai",
        "correcto",
        "correcta",
        "verdadero",
        "正确",
        "对",
    ];
    const BAD: &[&str] = &[
        "[ ]",
        "☐",
        "❌",
        "✗",
        "✘",
        "wrong",
        "incorrect",
        "false",
        "not correct",
        "not right",
        "falsch",
        "nicht richtig",
        "inkorrekt",
        "faux",
        "incorrecto",
        "incorrecta",
        "falso",
        "falsa",
        "错误",
        "不正确",
        "不对",
        "错",
    ];
    let (mut good, mut bad, mut plain) = (Vec::new(), Vec::new(), 0);
    for line in text
        .lines()
        .filter(|l| l.trim().len() > 2 && l.len() <= 300)
    {
        let mut named: Vec<usize> = options
            .mentions(&undecorated(line))
            .iter()
            .map(|m| m.item)
            .collect();
        named.dedup();
        let [item] = named.as_slice() else { continue };
        let lower = line.to_lowercase();
        let has = |marks: &[&str]| {
            marks.iter().any(|mark| {
                let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphabetic() || is_han(c));
                lower.match_indices(mark).any(|(at, _)| {
                    edge(lower[..at].chars().next_back())
                        && edge(lower[at + mark.len()..].chars().next())
                })
            })
        };
        match (has(BAD), has(GOOD)) {
            (true, _) => bad.push(*item),
            (false, true) => good.push(*item),
            (false, false) => plain += 1,
        }
    }
    good.dedup();
    match (good.as_slice(), bad.is_empty(), plain) {
        ([one], false, 0) if !bad.contains(one) => Taken::One(*one),
        ([_, _, ..], false, 0) => Taken::Several,
        _ => Taken::None,
    }
}

/// The option that is put first in words: "B first, then A".
fn placed_first(text: &str, options: &Options) -> Option<usize> {
    const FIRST: &[&str] = &[
        "first",
        "1st",
        "in first place",
        "on top",
        "zuerst",
        "an erster stelle",
        "auf platz 1",
        "en premier",
        "d'abord",
        "primero",
        "en primer lugar",
        "第一",
        "排第一",
    ];
    let lower = text.to_lowercase();
    let ranks = [
        "rank", "order", "then", "second", "dann", "zweite", "puis", "ensuite", "luego", "segundo",
        "其次", "第二", "然后",
    ];
    if options.is_yes_no() || !ranks.iter().any(|w| lower.contains(w)) {
        return None;
    }
    let mut first = Vec::new();
    for part in text.split([',', ';', '.', ':', '\n', '，', '。', '；', '：']) {
        let mentions = options.mentions(part);
        let [one] = mentions.as_slice() else { continue };
        let part = part.trim().to_lowercase();
        if !one.rejected && FIRST.iter().any(|w| part.ends_with(w)) {
            first.push(one.item);
        }
    }
    match first.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

/// Whether a mind changes behind the last labelled line, towards another option.
fn is_taken_back(text: &str, stated: &[Stated], at: usize, options: &Options) -> bool {
    let last = stated.iter().map(|s| s.line).max().unwrap_or(0);
    let rest: Vec<&str> = text.lines().skip(last + 1).collect();
    let rest = rest.join("\n");
    turns(&rest)
        && options
            .mentions(&rest)
            .iter()
            .any(|m| !m.rejected && m.item != at)
}

/// The number that a text gives.
pub fn number(text: &str, language: Language) -> Said<String> {
    let read = |line: &str| match number_of(line, language) {
        Some(key) => Taken::One(key),
        None if number::numbers(line, language).is_empty() => Taken::None,
        None => Taken::Several,
    };
    match labelled(&stated(text), read) {
        Taken::One(key) => return Said::Labelled(key),
        Taken::Several => return Said::Several,
        Taken::None => {}
    }
    if let Some(key) =
        sayings::numeral(text).filter(|_| text.len() <= 200 && !is_undecided(&text.to_lowercase()))
    {
        return Said::Words(key);
    }
    let Some(declined) = refusal::of(text) else {
        return number_in_lines(text, language);
    };
    let gives = sentences(&declined.rest).iter().any(|s| gives_number(s));
    match number_in_lines(&declined.rest, language) {
        Said::LastLine(key) if gives && !declined.outright => Said::LastLine(key),
        Said::LastLine(_) | Said::Several if gives || !declined.outright => Said::Several,
        _ => Said::Refused,
    }
}

/// Whether a sentence beside a refusal gives a number as its result, and does not only mention one.
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

/// The number that a text without labels gives.
fn number_in_lines(text: &str, language: Language) -> Said<String> {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !is_about_confidence(l) && !sayings::is_courtesy(l))
        .collect();
    let with: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|l| !number::numbers(l, language).is_empty())
        .collect();
    let Some(last) = with.last() else {
        return Said::Nothing;
    };
    let all = number::numbers(text, language);
    let alone = all.iter().all(|n| n.key == all[0].key);
    let closing = lines.last() == Some(last);
    let words = last.split_whitespace().count();
    // Undecided words make every number of the line one of several.
    let lower = without_margin(last).to_lowercase();
    if [
        "between ",
        " or ",
        "zwischen ",
        " oder ",
        "entre ",
        " ou ",
        "或",
    ]
    .iter()
    .any(|w| lower.contains(w))
        && !alone
    {
        return Said::Several;
    }
    let parts = sentences(last);
    let closing_part = parts
        .iter()
        .rev()
        .find(|s| !number::numbers(s, language).is_empty());
    // What the line says it is not, and what stood before a change of mind, is no answer.
    let kept = without_rejected(without_margin(last));
    let kept = kept.as_str();
    if kept.len() < last.len()
        && let Some(key) = number_of(kept, language)
    {
        return Said::LastLine(key);
    }
    // A result above is not taken back by a number in passing.
    let result_above = with
        .iter()
        .rev()
        .skip(1)
        .find(|l| is_result(l))
        .and_then(|l| number_of(l, language));
    if let Some(above) = result_above
        && !is_result(last)
        && !turns(last)
        && number_of(last, language).is_some_and(|key| key != above)
        && bare(last).split_whitespace().count() > 2
    {
        return Said::Several;
    }
    let read = number_of(last, language).or_else(|| {
        let part = closing_part.filter(|p| p.len() < last.len() && is_result(p))?;
        number_of(part, language)
    });
    match read {
        Some(key) if alone || closing || is_result(last) || words <= 8 => Said::LastLine(key),
        Some(_) | None => Said::Several,
    }
}

/// A line without the margin of its number: "300, give or take 50", "300 ± 50".
fn without_margin(line: &str) -> &str {
    let folded = Folded::new(line);
    let marks = [
        "give or take",
        "plus or minus",
        "plus/minus",
        "±",
        "+/-",
        "plus oder minus",
        "plus ou moins",
        "más o menos",
        "正负",
    ];
    let cut = marks
        .iter()
        .filter_map(|m| folded.find(m))
        .map(|at| at.start);
    match cut.min().map(|at| &line[..at]) {
        Some(head) if head.contains(|c: char| c.is_ascii_digit()) => head,
        _ => line,
    }
}

/// A line without what stands before its last change of mind, and without numbers that it says are wrong.
fn without_rejected(line: &str) -> String {
    let folded = Folded::new(line);
    let turn = TURNS
        .iter()
        .filter_map(|w| folded.rfind(w).map(|at| at.end))
        .max();
    let line = &line[turn.unwrap_or(0)..];
    let mut out: Vec<&str> = Vec::new();
    let mut drop_next = false;
    for word in line.split_whitespace() {
        let plain: String = word
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric())
            .collect();
        let has_digit = word.contains(|c: char| c.is_ascii_digit());
        if drop_next && has_digit {
            drop_next = false;
            continue;
        }
        drop_next = ["not", "nicht", "pas", "no"].contains(&plain.as_str());
        out.push(word);
    }
    out.join(" ")
}

/// The date that a text gives: that of a labelled line, else the only one, else the one of the last line.
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

/// The number that a line gives: its only one, the one after the last `=`, the bold one, the one after a copula.
pub fn number_of(line: &str, language: Language) -> Option<String> {
    let line = &plain_latex(line);
    if let Some(only) = number::only(line, language) {
        return Some(only);
    }
    if let Some((_, after)) = line.rsplit_once(['=', '≈', '＝']) {
        return number::only(after, language);
    }
    let bold: Vec<&str> = line.split("**").skip(1).step_by(2).collect();
    if let [one] = bold.as_slice()
        && let Some(key) = number::only(one.rsplit('=').next().unwrap_or(one), language)
    {
        return Some(key);
    }
    if let Some((head, tail)) = line.split_once('(')
        && let Some((_, behind)) = tail.split_once(')')
        && let Some(only) = number::only(&format!("{head} {behind}"), language)
    {
        return Some(only);
    }
    let folded = Folded::new(line);
    // What is left of the cue is the question restated.
    let cues = [
        " is ",
        " get ",
        " have ",
        " has ",
        " obtain ",
        " yields ",
        " erhalten ",
        " haben ",
        " hat ",
        " obtient ",
        " ont ",
        " obtenemos ",
        " tienen ",
        " equals ",
        " makes ",
        " gives ",
        " ist ",
        " ergibt ",
        " macht ",
        " sind ",
        " beträgt ",
        " est ",
        " fait ",
        " font ",
        " donne ",
        " vaut ",
        " égale ",
        " es ",
        " da ",
        " son ",
        "等于",
        "是",
        "得",
        "为",
        " are ",
        " total of ",
        " to be ",
        "that's ",
        " comes to ",
        " comes out to ",
        "i.e. ",
        ": ",
        "：",
    ];
    let after = cues
        .iter()
        .filter_map(|cue| folded.rfind(cue).map(|at| at.end))
        .max()?;
    number::only(line.get(after..)?, language)
}

/// The rest of the last labelled line: what open answers are compared by.
pub fn labelled_text(text: &str) -> Option<String> {
    match labelled(&stated(text), |line| match bare(line) {
        line if line.is_empty() => Taken::None,
        line => Taken::One(line),
    }) {
        Taken::One(line) => Some(line),
        _ => None,
    }
}

/// What an open text says beside a refusal; the whole where it holds none.
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

/// A text without words of others between the marks of our prompts: `<<1f2e Answer A` to `1f2e>>`.
fn without_fenced_words(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in text.split('\n') {
        let bare = line.trim();
        inside |= bare.starts_with("<<")
            || bare
                .rsplit_once("<<")
                .is_some_and(|(_, tail)| tail.contains("Answer"));
        if !inside {
            out.push(line);
        }
        inside &= !bare.ends_with(">>");
    }
    // Marks that never close are no marks.
    match inside {
        true => text.to_owned(),
        false => out.join("\n"),
    }
}

/// A text without thoughts: what stands in thinking tags, and before a tag that only closes, is not an answer.
pub fn without_thoughts(text: &str) -> String {
    const TAGS: &[(&str, &str)] = &[
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<thought>", "</thought>"),
        ("<reasoning>", "</reasoning>"),
        ("<reflection>", "</reflection>"),
        ("<scratchpad>", "</scratchpad>"),
        ("<analysis>", "</analysis>"),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<|channel|>analysis", "<|channel|>final"),
        ("<seed:think>", "</seed:think>"),
    ];
    let mut text = without_fenced_words(text);
    for (open, close) in TAGS {
        for _ in 0..THOUGHTS_MAX {
            let Some(end) = text.find(close) else { break };
            let start = text.get(..end).and_then(|t| t.find(open)).unwrap_or(0);
            text.replace_range(start..end + close.len(), "");
        }
        if let Some(last) = text.rfind(close) {
            text.replace_range(..last + close.len(), "");
        }
        if let Some(start) = text.find(open) {
            text.truncate(start);
        }
    }
    for mark in [
        "<|message|>",
        "<|im_end|>",
        "<|end|>",
        "<|eot_id|>",
        "</s>",
        "<|return|>",
        "<answer>",
        "</answer>",
        "<final>",
        "</final>",
    ] {
        if mark.starts_with("<answer") || mark.starts_with("<final") {
            text = text.replace(mark, "\nFinal answer: ");
        } else {
            text = text.replace(mark, "\n");
        }
    }
    text
}

/// What a line, or all lines, say.
enum Taken<T> {
    One(T),
    Several,
    None,
}

/// A labelled statement.
struct Stated {
    text: String,
    is_final: bool,
    /// The line on which it ends, from 0.
    line: usize,
}

/// The labelled statements of a text, in order.
fn stated(text: &str) -> Vec<Stated> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some((_, rest)) = line.split_once("\\boxed") {
            let inner = braced(rest);
            found.push(Stated {
                text: plain_latex(&inner),
                is_final: true,
                line: at,
            });
            continue;
        }
        if let Some(rest) = line.trim().strip_prefix("####")
            && !rest.trim().is_empty()
            && rest.trim().len() <= 60
            && split_label(rest).is_none()
        {
            found.push(Stated {
                text: rest.trim().to_owned(),
                is_final: true,
                line: at,
            });
            continue;
        }
        let clean = undecorated(line);
        let Some((rest, is_final)) = split_label(&clean).or_else(|| announced(&clean)) else {
            continue;
        };
        let rest = rest.trim();
        let mut text = rest.to_owned();
        if bare(rest).is_empty() {
            let next = lines[at + 1..]
                .iter()
                .find(|l| !bare(l).is_empty() && !l.trim().starts_with("```"));
            text = next.map(|l| undecorated(l)).unwrap_or_default();
            if text.contains("\\boxed") {
                continue;
            }
        }
        if !text.is_empty() {
            found.push(Stated {
                text,
                is_final,
                line: at,
            });
        }
    }
    found
}

/// The label at the beginning of a line, and what it says.
fn split_label(line: &str) -> Option<(String, bool)> {
    label_of(line).or_else(|| {
        const ARTICLES: &[&str] = &[
            "the ",
            "my ",
            "our ",
            "so the ",
            "thus the ",
            "die ",
            "das ",
            "mein ",
            "meine ",
            "unser ",
            "unsere ",
            "la ",
            "le ",
            "el ",
            "ma ",
            "mon ",
            "notre ",
            "mi ",
            "nuestra ",
            "nuestro ",
            "我的",
        ];
        let folded = Folded::new(line);
        label_of(ARTICLES.iter().find_map(|a| folded.strip_prefix(a))?)
    })
}

fn label_of(line: &str) -> Option<(String, bool)> {
    let folded = Folded::new(line);
    let mut best: Option<(usize, &str, bool)> = None;
    for (label, is_final) in LABELS {
        let Some(after) = folded.strip_prefix(label) else {
            continue;
        };
        let tail = after.trim_start_matches(['*', '_', '`']);
        let rest = match tail.trim_start().strip_prefix([':', '：', '=', '→']) {
            Some(rest) => Some(rest),
            None => {
                let tail = Folded::new(tail);
                COPULAS.iter().find_map(|c| tail.strip_prefix(c))
            }
        };
        if let Some(rest) = rest
            && best.is_none_or(|(length, ..)| label.len() > length)
        {
            best = Some((label.len(), rest, *is_final));
        }
    }
    let (_, rest, is_final) = best?;
    Some((
        rest.trim_start_matches([':', '：', '*', ' ']).to_owned(),
        is_final,
    ))
}

/// "So the answer is B", "thus my final answer: 391" inside a line.
fn announced(line: &str) -> Option<(String, bool)> {
    let folded = Folded::new(line);
    let mut best: Option<(usize, &str)> = None;
    for words in [
        "final answer",
        "the answer",
        "my answer",
        "correct answer",
        "die antwort",
        "das ergebnis",
        "la réponse",
        "le résultat",
        "la respuesta",
        "el resultado",
        "答案",
        "the result",
        "meine antwort",
        "answer:",
        "antwort:",
        "réponse :",
        "respuesta:",
        "correct option",
        "correct choice",
    ] {
        if let Some(at) = folded.rfind(words).map(|at| at.start)
            && best.is_none_or(|(b, w)| at > b || at == b && words.len() > w.len())
        {
            best = Some((at, words));
        }
    }
    let (at, words) = best?;
    // Another letter before it makes another word of it.
    if line
        .get(..at)?
        .chars()
        .next_back()
        .is_some_and(|c| c.is_alphabetic() && !is_han(c))
    {
        return None;
    }
    let rest = line.get(at..)?;
    let (said, is_final) = split_label(rest)?;
    let negated = said.to_lowercase();
    if ["not ", "nicht ", "pas ", "no ", "不"]
        .iter()
        .any(|n| negated.starts_with(n))
        && negated.len() > 4
    {
        return None;
    }
    Some((said, is_final || words.starts_with("final")))
}

/// What all labelled statements say together: final ones stand above others, later ones above earlier ones.
fn labelled<T: PartialEq>(stated: &[Stated], read: impl Fn(&str) -> Taken<T>) -> Taken<T> {
    for finals in [true, false] {
        let mut last = Taken::None;
        for one in stated.iter().filter(|s| s.is_final == finals) {
            match read(&one.text) {
                Taken::None => {}
                taken => last = taken,
            }
        }
        if !matches!(last, Taken::None) {
            return last;
        }
    }
    Taken::None
}

/// The option that sentences choose: the only one that is not rejected, or the one of the last sentence that decides.
fn in_sentences(text: &str, options: &Options) -> Said<usize> {
    let sentences = sentences(text);
    let mut all: Vec<usize> = Vec::new();
    let mut spoken: Vec<Mention> = Vec::new();
    let mut decided: Option<Taken<usize>> = None;
    let mut any_decides = false;
    let mut conflict = false;
    for (place, sentence) in sentences.iter().enumerate() {
        let lower = sentence.to_lowercase();
        let mut mentions = options.mentions(sentence);
        // A lone yes or no in the middle belongs to something quoted.
        let outer = place == 0 || place + 1 == sentences.len();
        if options.is_yes_no() && !outer && options.stated(&bare(sentence)).is_some() {
            mentions.clear();
        }
        let asks = sentence.trim_end().ends_with(['?', '？']);
        let one_left = asserted(&mentions).len() == 1 && mentions.iter().any(|m| m.rejected);
        let settled = one_left && only_neither(&lower);
        if is_undecided(&lower) && !settled && (mentions.len() != 1 || options.is_yes_no()) {
            decided = Some(Taken::Several);
            continue;
        }
        if mentions.is_empty()
            || asks
            || is_about_confidence(&lower)
            || sayings::is_courtesy(&lower)
        {
            continue;
        }
        spoken.extend(mentions.iter().copied());
        let asserted = asserted(&mentions);
        all.extend(asserted.iter().copied());
        let here = clause_choice(sentence, options);
        // A contrast that leaves one option, and an option that stands alone, decide.
        let left = asserted.len() > 1 && matches!(here, Taken::One(_))
            || options.stated(&bare(sentence)).is_some();
        let cue = |words: &[&str]| has_any(&lower, words);
        let decides = left || cue(DECIDES) || cue(TURNS) || options.is_yes_no();
        if decides {
            any_decides = true;
            match (&decided, here) {
                (_, Taken::None) => {}
                // Two sentences decide differently: the later one counts where it says that it concludes or corrects.
                (Some(Taken::One(before)), Taken::One(now))
                    if *before != now && !concludes(&lower) =>
                {
                    decided = Some(Taken::Several);
                    conflict = true;
                }
                (_, Taken::One(_)) if conflict && !concludes(&lower) => {}
                (_, taken) => {
                    conflict = false;
                    decided = Some(taken);
                }
            }
        } else if let (Some(Taken::One(before)), Taken::One(now)) = (&decided, &here)
            && before != now
            && any_decides
        {
            // Something else is spoken of after the decision, without a decision.
            let contrast = CONTRASTS.iter().any(|w| lower.starts_with(w));
            if contrast {
                decided = Some(Taken::Several);
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    match (decided, all.as_slice()) {
        (Some(Taken::One(at)), _) => Said::Words(at),
        (Some(Taken::Several), _) => Said::Several,
        (_, [one]) => Said::Words(*one),
        (_, []) => match options.left(&spoken) {
            Some(one) if !options.is_yes_no() && (spoken.len() > 1 || forbids(text)) => {
                Said::Words(one)
            }
            _ => Said::Nothing,
        },
        (_, _) => Said::Several,
    }
}

/// Whether one of these words begins in a text where no other word goes on: `so` is not in `also`.
fn has_any(lower: &str, words: &[&str]) -> bool {
    words.iter().any(|word| {
        lower.match_indices(word).any(|(at, _)| {
            let before = lower[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphabetic() || is_han(c))
        })
    })
}

/// Whether a text advises against something in so many words. Of two options the other one is then meant; that one of
/// them is not ideal says less.
fn forbids(text: &str) -> bool {
    const FORBIDS: &[&str] = &[
        "do not ",
        "don't ",
        "should not ",
        "shouldn't ",
        "must not ",
        "never ",
        "no reason to ",
        "avoid ",
        "anything but ",
        "nicht ",
        "auf keinen fall ",
        "kein grund",
        "vermeide",
        "alles außer",
        "ne pas ",
        "aucune raison de ",
        "évite",
        "tout sauf",
        "no debe",
        "no hay razón para ",
        "evita",
        "todo menos",
        "不要",
        "不应",
        "没有理由",
        "避免",
    ];
    has_any(&text.to_lowercase().replace('’', "'"), FORBIDS) && sentences(text).len() <= 2
}

/// Whether a sentence says that it concludes, corrects or sets something against what came before.
fn concludes(lower: &str) -> bool {
    const CONCLUDES: &[&str] = &[
        "therefore",
        "thus",
        "hence",
        "overall",
        "in conclusion",
        "so ",
        "in short",
        "in the end",
        "ultimately",
        "finally",
        "final",
        "all in all",
        "my vote",
        "my answer",
        "my choice",
        "my pick",
        "i choose",
        "i pick",
        "i vote",
        "i select",
        "i recommend",
        "i'd recommend",
        "i would",
        "i'd ",
        "i'll ",
        "i prefer",
        "i go with",
        "i settle",
        "i stand by",
        "still",
        "that said",
        "given ",
        "considering",
        "daher",
        "deshalb",
        "folglich",
        "somit",
        "insgesamt",
        "fazit",
        "letztlich",
        "schließlich",
        "am ende",
        "unterm strich",
        "ich wähle",
        "ich nehme",
        "ich stimme",
        "ich empfehle",
        "ich bevorzuge",
        "ich würde",
        "meine wahl",
        "trotzdem",
        "donc",
        "finalement",
        "en conclusion",
        "au final",
        "je choisis",
        "je prends",
        "je vote",
        "je préfère",
        "je recommande",
        "j'opte",
        "mon choix",
        "je choisirais",
        "je prendrais",
        "por tanto",
        "por lo tanto",
        "así que",
        "en conclusión",
        "finalmente",
        "al final",
        "elijo",
        "escojo",
        "voto por",
        "prefiero",
        "recomiendo",
        "me quedo",
        "mi elección",
        "optaría",
        "因此",
        "所以",
        "综上",
        "总之",
        "最终",
        "我选",
        "我推荐",
        "我建议",
        "结论",
    ];
    let cue = |words: &[&str]| has_any(lower, words);
    let contrast = CONTRASTS.iter().any(|w| {
        lower
            .strip_prefix(w)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphabetic() && !is_han(c)))
            || lower.contains(&format!(", {w} "))
    });
    cue(CONCLUDES) || cue(TURNS) || contrast || lower.starts_with("also ")
}

fn asserted(mentions: &[Mention]) -> Vec<usize> {
    let mut items: Vec<usize> = mentions
        .iter()
        .filter(|m| !m.rejected)
        .map(|m| m.item)
        .collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// The option that one sentence chooses; after a contrast only what follows it.
fn clause_choice(sentence: &str, options: &Options) -> Taken<usize> {
    let mentions = options.mentions(sentence);
    if mentions.is_empty() {
        return Taken::None;
    }
    let folded = Folded::new(sentence);
    let lower = folded.lower();
    // "Neither A nor B: take C" decides.
    let one_left = asserted(&mentions).len() == 1 && mentions.iter().any(|m| m.rejected);
    if is_undecided(lower) && !(one_left && only_neither(lower)) {
        return Taken::Several;
    }
    match asserted(&mentions).as_slice() {
        [one] => Taken::One(*one),
        [] => Taken::None,
        _ => {
            if let Some(choice) = conceding_choice(sentence, &folded, options) {
                return choice;
            }
            let follows = FOLLOWS.iter().filter(|w| {
                w.chars().any(is_han)
                    || !lower.starts_with(**w) && lower.contains(&format!(", {w}"))
            });
            let cut = CONTRASTS
                .iter()
                .filter(|w| !CONCEDES.contains(w))
                .chain(TURNS)
                .chain(follows)
                .filter_map(|word| folded.words(word).last())
                .map(|at| at.end)
                .max();
            let Some(cut) = cut else {
                return Taken::Several;
            };
            // A sentence that begins with the contrast holds two clauses: the second decides.
            let begins = cut < 12;
            let tail = match begins {
                true => match sentence.find([',', '，']) {
                    Some(comma) => &sentence[comma..],
                    None => return Taken::Several,
                },
                false => &sentence[cut..],
            };
            match asserted(&options.mentions(tail)).as_slice() {
                [one] => Taken::One(*one),
                _ => Taken::Several,
            }
        }
    }
}

/// The option of the clause that decides in a sentence with a conceding clause; `None` where it has none.
fn conceding_choice(sentence: &str, folded: &Folded, options: &Options) -> Option<Taken<usize>> {
    let at = CONCEDES
        .iter()
        .filter_map(|word| folded.words(word).next())
        .map(|at| at.start)
        .min()?;
    let one = |clause: &str| match asserted(&options.mentions(clause)).as_slice() {
        [one] => Taken::One(*one),
        _ => Taken::Several,
    };
    // At the beginning the clause ends with a comma, and the rest decides.
    if at < 4 {
        let comma = sentence.find([',', '，'])?;
        return Some(one(&sentence[comma..]));
    }
    let (head, tail) = sentence.split_at(at);
    let decides = |clause: &str| has_any(&clause.to_lowercase(), DECIDES);
    Some(match (decides(head), decides(tail)) {
        (true, false) => one(head),
        (false, true) => one(tail),
        _ => Taken::Several,
    })
}

/// Whether a sentence that does not seem to choose only rules options out.
fn only_neither(lower: &str) -> bool {
    const NEITHER: &[&str] = &["neither", "weder", "ni l'un", "none of"];
    let rest = NEITHER
        .iter()
        .fold(lower.to_owned(), |text, word| text.replace(word, ""));
    !is_undecided(&rest)
}

/// Whether a sentence does not choose.
fn is_undecided(lower: &str) -> bool {
    let lower = lower
        .replace("over both", "over")
        .replace("than both", "than");
    UNDECIDED.iter().any(|w| lower.contains(w))
}

/// Sentences and lines.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines() {
        let line = undecorated(line);
        let mut from = 0;
        for (at, c) in line.char_indices() {
            let end = at + c.len_utf8();
            let next = line.get(end..).and_then(|t| t.chars().next());
            let ends = match c {
                '.' | '!' | '?' => {
                    next.is_none_or(|n| n.is_whitespace() || matches!(n, '*' | '"' | ')'))
                }
                '。' | '！' | '？' | '；' | ';' => true,
                _ => false,
            };
            // `A.` and `1.` begin an item and end no sentence.
            let short = line[from..at].trim().chars().count() <= 1 && c == '.';
            if ends && !short {
                out.push(line[from..end].trim().to_owned());
                from = end;
            }
        }
        out.push(line[from..].trim().to_owned());
    }
    out.retain(|s| s.chars().any(char::is_alphanumeric));
    out
}

/// A line without marks of lists, headings and quotes before it.
fn undecorated(line: &str) -> String {
    let bare = line.trim().trim_start_matches([
        '*', '#', '-', '>', '_', ' ', '•', '✅', '➡', '👉', '\u{fe0f}', '|', '→', '`', '"', '“',
        '\'',
    ]);
    bare.to_owned()
}

/// A text without marks around it.
pub fn bare(text: &str) -> String {
    plain_latex(text)
        .trim()
        .trim_matches([
            '*', '_', '`', '"', '“', '”', '„', '«', '»', '\'', ' ', '#', '|', '>', '✅', '\u{fe0f}',
        ])
        .trim_end_matches(['.', '。', '!', '！', ',', ';'])
        .trim()
        .trim_matches(['*', '_', '`', '"', '“', '”', '„', '«', '»', '\''])
        .trim()
        .to_owned()
}

/// The content of the brace that follows.
fn braced(rest: &str) -> String {
    let Some(inner) = rest.trim_start().strip_prefix('{') else {
        return rest.trim().to_owned();
    };
    let mut depth = 1;
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return inner[..at].to_owned();
        }
    }
    inner.to_owned()
}

/// The longest text in which LaTeX is read, in bytes: an answer is short.
const LATEX_BYTES_MAX: usize = 2000;
/// Thoughts of one kind in a reply; what follows more of them is one thought.
const THOUGHTS_MAX: usize = 50;

/// LaTeX of short answers as plain words.
pub fn plain_latex(text: &str) -> String {
    if !text.contains(['\\', '$']) || text.len() > LATEX_BYTES_MAX {
        return text.to_owned();
    }
    let mut out = text.to_owned();
    for command in [
        r"\text",
        r"\textbf",
        r"\mathrm",
        r"\mathbf",
        r"\boxed",
        r"\operatorname",
    ] {
        while let Some(at) = out.find(&format!("{command}{{")) {
            let inner = braced(&out[at + command.len()..]);
            let end = (at + command.len() + inner.len() + 2).min(out.len());
            out.replace_range(at..end, &inner);
        }
    }
    for name in [r"\dfrac", r"\tfrac", r"\frac"] {
        while let Some(at) = out.find(&format!("{name}{{")) {
            let high = braced(&out[at + name.len()..]);
            let mid = (at + name.len() + high.len() + 2).min(out.len());
            let low = braced(&out[mid..]);
            let end = (mid + low.len() + 2).min(out.len());
            if !out[mid..].starts_with('{') {
                break;
            }
            out.replace_range(at..end, &format!("{high}/{low}"));
        }
    }
    for (from, to) in [
        (r"\(", ""),
        (r"\)", ""),
        (r"\[", ""),
        (r"\]", ""),
        (r"\,", ""),
        (r"\;", " "),
        (r"\!", ""),
        (r"\%", "%"),
        (r"\$", "$"),
        ("{,}", ","),
        (r"\approx", "≈"),
        (r"\quad", " "),
        (r"\ ", " "),
    ] {
        out = out.replace(from, to);
    }
    out.replace('$', "")
}

/// Whether a line states a confidence.
pub fn is_about_confidence(line: &str) -> bool {
    let lower = line.to_lowercase();
    let lower = lower.trim_start_matches(['*', '#', '-', '>', '_', ' ', '|', '"']);
    [
        "confidence",
        "konfidenz",
        "sicherheit",
        "confiance",
        "confianza",
        "certainty",
        "置信",
        "信心",
        "zuversicht",
        "certitude",
        "i am 9",
        "i'm 9",
    ]
    .iter()
    .any(|w| lower.starts_with(w))
}

/// Words of a result.
const RESULTS: &[&str] = &[
    "so ",
    "therefore",
    "thus",
    "hence",
    "total",
    "result",
    "answer",
    "is ",
    "equals",
    "gives",
    "makes",
    "also ",
    "daher",
    "ergibt",
    "ergebnis",
    "antwort",
    "ist ",
    "donc",
    "résultat",
    "est ",
    "font ",
    "fait ",
    "por tanto",
    "así",
    "es ",
    "son ",
    "因此",
    "所以",
    "等于",
    "是",
    "得",
    "共",
    "insgesamt",
    "beträgt",
    "au total",
    "en total",
];

/// Whether a line says that it is the result.
fn is_result(line: &str) -> bool {
    let lower = line.to_lowercase();
    line.contains(['=', '≈', '＝'])
        || line.contains("**")
        || RESULTS.iter().any(|w| lower.contains(w))
}

/// Whether words of a changed mind stand in a text.
pub fn turns(text: &str) -> bool {
    let lower = text.to_lowercase();
    TURNS.iter().any(|w| lower.contains(w))
}
