//! Classifies questions by the form of their answers, in English, German, French, Spanish and Chinese. Input: the
//! question. Output: its options, yes/no, number, date, list, order or code; otherwise open text.
//!
//! Checked in this order: labelled options, alternatives joined by "or", and the grammar of the sentence that asks.

use super::asking::{self, Sentence};
use super::kind_words::{CHOOSE, COMPUTE, HOW, HOW_MANY, LIST_FORMS, any_in, has};
use super::labels::{self, Labelled};
use super::{alternatives, date, grammar};

pub use super::kind::Kind;

/// Returns the kind of a question.
pub fn of(asked: &str) -> Kind {
    found(asked).0
}

/// Returns the kind of a question, and whether its form shows it. If not, the kind is a guess and the answers decide.
pub fn found(asked: &str) -> (Kind, bool) {
    let text = asking::without_quotations(&asking::bounded(asked));
    if super::asked::offers_sides(&text) {
        return (Kind::YesNo, true);
    }
    let enclosed = alternatives::enclosed(&text);
    if let Some(options) = enclosed.filter(|o| o.len() >= 2 && !is_yes_no(o)) {
        return (Kind::Choice(options), true);
    }
    let labelled = labels::of(&text);
    let rest = labelled.as_ref().map_or(text.as_str(), |(_, rest)| rest);
    let sentences = asking::sentences(rest);
    let asking = asking_one(&sentences);
    let alone = sentences.len() == 1;
    let found = asking.and_then(|at| grammar::found(&sentences[at], alone));
    let (by_grammar, sure) = found.map_or((None, false), |(kind, sure)| (Some(kind), sure));
    if let Some((labelled, _)) = labelled {
        return (with_labels(labelled, by_grammar), true);
    }
    let Some(at) = asking else {
        return (Kind::Open, false);
    };
    let asks = by_grammar.as_ref().filter(|_| sure);
    if has_alternatives(&sentences[at], asks)
        && let Some(options) = options(
            &sentences,
            at,
            !matches!(asks, Some(Kind::Number | Kind::List)),
        )
    {
        // The boundaries of an option are uncertain; the answers decide.
        if matches!(&options, Kind::Choice(names) if !are_whole(names)) {
            return (Kind::Open, false);
        }
        return (options, true);
    }
    match by_grammar {
        None | Some(Kind::Open) if wants_list(&sentences, at) => (Kind::List, true),
        // A year is a date without month and day.
        Some(Kind::Number) if date::asks_year(sentences[at].text) => (Kind::Date, true),
        kind => (kind.unwrap_or(Kind::Open), sure),
    }
}

/// Returns whether these are labelled options of the question: `(A) 3 (B) 4`.
pub fn are_labelled(asked: &str, options: &[String]) -> bool {
    let labelled = labels::of(&asking::without_quotations(&asking::bounded(asked)));
    labelled.is_some_and(|(found, _)| match found {
        Labelled::Letters(o) | Labelled::Numbers(o) | Labelled::Bullets(o) => o == options,
    })
}

/// Returns whether a question shows these options with the letters A, B, … before them.
pub(super) fn are_lettered(asked: &str, options: &[String]) -> bool {
    let labelled = labels::of(&asking::without_quotations(&asking::bounded(asked)));
    matches!(labelled, Some((Labelled::Letters(found), _)) if found == options)
}

/// Returns whether another sentence asks for a list: `What do I need? List it.`
fn wants_list(sentences: &[Sentence<'_>], asking: usize) -> bool {
    let mut others = sentences.iter().enumerate().filter(|(at, _)| *at != asking);
    others.any(|(_, s)| s.text.len() < 80 && any_in(LIST_FORMS, &s.text.to_lowercase()))
}

/// Returns the things that a question asks to put in order: `Rank these: a, b, c`.
pub fn given(asked: &str) -> Vec<String> {
    let text = asking::bounded(asked);
    if let Some((Labelled::Letters(o) | Labelled::Numbers(o) | Labelled::Bullets(o), _)) =
        labels::of(&text)
    {
        return o;
    }
    let sentences = asking::sentences(&text);
    let mut texts = sentences.iter().map(|s| s.text);
    let mut given = texts
        .find_map(alternatives::behind_colon)
        .unwrap_or_default();
    // `React, Vue or Svelte?`
    const OR: [&str; 6] = [" or ", " oder ", " ou ", " o ", "还是", "或"];
    let last = given.last().cloned().unwrap_or_default();
    if let Some((one, two)) = OR.iter().find_map(|or| last.split_once(or)) {
        given.pop();
        given.extend([one, two].map(|name| name.trim().to_owned()));
    }
    given
}

/// Returns the kind of a question with labelled options. Numbers and bullets can also label given data.
fn with_labels(labelled: Labelled, by_grammar: Option<Kind>) -> Kind {
    match (labelled, by_grammar) {
        (_, Some(Kind::Ranking)) => Kind::Ranking,
        (Labelled::Letters(_), Some(Kind::List)) => Kind::List,
        (Labelled::Letters(options), _) => Kind::Choice(options),
        (
            Labelled::Numbers(options) | Labelled::Bullets(options),
            None | Some(Kind::YesNo | Kind::Open),
        ) => Kind::Choice(options),
        (_, Some(kind)) => kind,
    }
}

/// Returns the sentence that asks: the last with a question mark, otherwise the last that asks by its grammar,
/// otherwise the first.
fn asking_one(sentences: &[Sentence<'_>]) -> Option<usize> {
    let marked: Vec<usize> = (0..sentences.len())
        .filter(|at| sentences[*at].asks)
        .collect();
    if let Some(last) = marked.last() {
        // `Tabs or spaces? Why?`
        let words = sentences[*last].text.split_whitespace().count();
        let why = words <= 2 && marked.len() > 1;
        return Some(if why { marked[marked.len() - 2] } else { *last });
    }
    (0..sentences.len())
        .rev()
        .find(
            |at| matches!(grammar::kind(&sentences[*at], true), Some(kind) if kind != Kind::YesNo),
        )
        .or_else(|| {
            (0..sentences.len()).rev().find(|at| {
                matches!(
                    grammar::found(&sentences[*at], true),
                    Some((Kind::YesNo, true))
                )
            })
        })
        .or_else(|| (0..sentences.len()).find(|at| alternatives::of(sentences[*at].text).is_some()))
        .or((!sentences.is_empty()).then_some(0))
}

/// Returns whether the parts joined by "or" in a sentence are alternatives to choose from.
fn has_alternatives(sentence: &Sentence<'_>, by_grammar: Option<&Kind>) -> bool {
    let first = grammar::without_lead(sentence.text);
    let first = first
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default()
        .to_lowercase();
    match by_grammar {
        None | Some(Kind::YesNo | Kind::Open) => {
            let open = "why warum wieso weshalb pourquoi how wie comment cómo explain erkläre explique explica describe beschreibe write schreibe écris escribe \
                discuss summarize difference unterschied";
            !has(open, &first)
                && !sentence.text.starts_with("为什么")
                && !sentence.text.contains("区别")
        }
        // `Which day suits: Monday or Friday`, `What weighs more, lead or gold`
        Some(Kind::Number) => {
            let how_many = has(HOW_MANY, &first) || has(HOW, &first) || has(COMPUTE, &first);
            !how_many && sentence.text.contains([':', '：', ','])
        }
        Some(Kind::Date | Kind::List) => sentence.text.contains([':', '：', ',', '，', '/']),
        Some(_) => has(CHOOSE, &first),
    }
}

/// Returns the options of the sentence that asks, or of a neighbor if it has none: `Train or plane? Which would you
/// take?`
fn options(sentences: &[Sentence<'_>], at: usize, listed: bool) -> Option<Kind> {
    let text = sentences[at].text;
    let here = alternatives::of(text);
    let options = here.or_else(|| {
        // `My homework: which of these flies?`
        let behind = text
            .split_once([':', '：'])
            .map(|(_, behind)| behind.trim());
        let asks = grammar::asks_which(text) || behind.is_some_and(grammar::asks_which);
        let which = listed && asks;
        if let Some(options) = alternatives::behind_colon(text).filter(|_| which) {
            return Some(options);
        }
        if !which || text.split_whitespace().count() > 14 {
            return None;
        }
        let before = sentences[..at].iter().rev();
        before
            .map(|s| s.text)
            .find_map(alternatives::given)
            .or_else(|| {
                let next = sentences.get(at + 1)?.text;
                // `Which of these flies? bat, cat, rat`
                let listed = || alternatives::behind_colon(&format!(": {next}"));
                alternatives::of(next).or_else(|| any_in(OF_THESE, text).then(listed)?)
            })
    })?;
    Some(match is_yes_no(&options) {
        true => Kind::YesNo,
        false => Kind::Choice(options),
    })
}

/// Phrases of a question about things listed next to it.
const OF_THESE: &str = "of these|of those|of the following|von diesen|davon|der folgenden|folgenden|parmi|de ces|suivants|suivantes|\
    de estos|de estas|siguientes|下列|以下|下面";

/// Returns whether options contain no part of the surrounding sentence, unlike `Is SQLite`, `est plus rapide`, `for a
/// CLI`.
fn are_whole(options: &[String]) -> bool {
    const COPULAS: &str = "is are was were est sont était ist sind war waren es son era fue eran";
    const PURPOSES: &str = "for für pour para";
    const CLAUSES: &str = "who that which qui que quien";
    const OR: &str = "or oder ou";
    let words = |option: &String| -> Vec<String> {
        let lower = option.to_lowercase();
        lower.split_whitespace().map(str::to_owned).collect()
    };
    let all: Vec<Vec<String>> = options.iter().map(words).collect();
    let in_some = |is: &dyn Fn(&[String]) -> bool| {
        let count = all.iter().filter(|words| is(words)).count();
        count > 0 && count < all.len()
    };
    let begins = |table: &str, words: &[String]| words.first().is_some_and(|w| has(table, w));
    let holds = |table: &str, words: &[String]| words.iter().any(|w| has(table, w));
    !(in_some(&|words| begins(COPULAS, words))
        || in_some(&|words| begins(PURPOSES, words))
        || in_some(&|words| holds(CLAUSES, words))
        || in_some(&|words| holds(OR, words)))
}

/// Returns whether two options are yes and no.
fn is_yes_no(options: &[String]) -> bool {
    const YES: &str = "yes ja oui sí si 是 y 可以 有 能 要";
    const NO: &str = "no nein non 否 不是 n 不可以 没有 不能 不要 不";
    let [one, two] = options else { return false };
    let (one, two) = (one.to_lowercase(), two.to_lowercase());
    has(YES, &one) && has(NO, &two) || has(NO, &one) && has(YES, &two)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_and_numbers_stay_whole_in_options() {
        for (question, options) in [
            (
                "Should we move to St. Gallen, Chur or Bern?",
                &["St. Gallen", "Chur", "Bern"][..],
            ),
            ("Which city: St. Gallen, Chur?", &["St. Gallen", "Chur"]),
            (
                "Which one (St. Gallen, Chur, Bern)?",
                &["St. Gallen", "Chur", "Bern"],
            ),
            (
                "St. Gallen vs. Chur vs. Bern?",
                &["St. Gallen", "Chur", "Bern"],
            ),
            (
                "Chur vs. Bern vs. St. Gallen?",
                &["Chur", "Bern", "St. Gallen"],
            ),
            (
                "Should we host in the U.S., the U.K. or Germany?",
                &["U.S.", "U.K.", "Germany"],
            ),
            (
                "Which market first: U.S., U.K., E.U.?",
                &["U.S.", "U.K.", "E.U."],
            ),
            (
                "Do we ship to Washington D.C., New York or Boston?",
                &["Washington D.C.", "New York", "Boston"],
            ),
            (
                "Should we ask Dr. Meyer, Prof. Huber or Mr. Smith?",
                &["Dr. Meyer", "Prof. Huber", "Mr. Smith"],
            ),
            (
                "Which is better: A.I. Corp., Acme Inc. or Foo Ltd.?",
                &["A.I. Corp.", "Acme Inc.", "Foo Ltd."],
            ),
            (
                "Should we meet at 9 a.m., 11 a.m. or 3 p.m.?",
                &["9 a.m.", "11 a.m.", "3 p.m."],
            ),
            (
                "Which carrier: DHL, U.S. Postal Service, or UPS?",
                &["DHL", "U.S. Postal Service", "UPS"],
            ),
            (
                "Python 3.12, 3.13 or 3.14?",
                &["Python 3.12", "3.13", "3.14"],
            ),
            (
                "Should we use Node.js, Vue.js or ASP.NET?",
                &["Node.js", "Vue.js", "ASP.NET"],
            ),
            ("Use .NET or Java?", &[".NET", "Java"]),
            (
                "Do you prefer e.g. Rust, Go or Zig?",
                &["Rust", "Go", "Zig"],
            ),
            (
                "Should we pick Postgres (with replicas, backups) or MySQL (single node)?",
                &["Postgres", "MySQL"],
            ),
            (
                "We are a team in the U.S. Should we use Rust or Go?",
                &["Rust", "Go"],
            ),
            (
                "We sell in the U.S. Postgres or MySQL?",
                &["Postgres", "MySQL"],
            ),
            (
                "We work for Acme Inc. Kubernetes or Nomad?",
                &["Kubernetes", "Nomad"],
            ),
            (
                "Use U.S. Postal Service or UPS?",
                &["U.S. Postal Service", "UPS"],
            ),
            (
                "I work at Acme Inc. Which is better, Rust or Go?",
                &["Rust", "Go"],
            ),
            (
                "Welche Stadt: St. Gallen, Chur oder Bern?",
                &["St. Gallen", "Chur", "Bern"],
            ),
            (
                "Sollen wir z. B. Rust, Go oder Zig nehmen?",
                &["Rust", "Go", "Zig"],
            ),
            (
                "Soll es Dr. Meier oder Prof. Huber machen?",
                &["Dr. Meier", "Prof. Huber"],
            ),
            (
                "Should the margin be 1,5 cm, 2,5 cm oder 3 cm?",
                &["1,5 cm", "2,5 cm", "3 cm"],
            ),
            (
                "Faut-il aller à St. Étienne, Lyon ou Nice ?",
                &["St. Étienne", "Lyon", "Nice"],
            ),
            ("Faut-il choisir p. ex. Rust ou Go ?", &["Rust", "Go"]),
            ("Faut-il 1,5 L, 2 L ou 2,5 L ?", &["1,5 L", "2 L", "2,5 L"]),
            (
                "Vaut-il mieux M. Dupont, Mme Durand ou M. Martin ?",
                &["M. Dupont", "Mme Durand", "M. Martin"],
            ),
            (
                "Faut-il aller chez Dupont S.A. ou chez Martin ?",
                &["Dupont S.A.", "Martin"],
            ),
            (
                "¿Elegimos EE. UU., Canadá o México?",
                &["EE. UU.", "Canadá", "México"],
            ),
            (
                "¿Es mejor el Sr. García o la Sra. López?",
                &["Sr. García", "Sra. López"],
            ),
            (
                "¿Nos conviene S.A., S.L. o autónomo?",
                &["S.A.", "S.L.", "autónomo"],
            ),
            ("应该用 Python 3.12 还是 3.13？", &["Python 3.12", "3.13"]),
            (
                "选 St. Gallen、Chur 还是 Bern？",
                &["St. Gallen", "Chur", "Bern"],
            ),
            ("去 U.S. 还是 U.K.？", &["U.S.", "U.K."]),
        ] {
            let options = options.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(of(question), Kind::Choice(options), "{question}");
        }
    }
}
