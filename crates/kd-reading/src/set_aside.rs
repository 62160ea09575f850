//! Sentences that name an option without choosing it now: one to change to later, one that others mistake for the
//! answer, one that the author considered first.

use super::folded::Folded;
use super::options::Options;
use std::borrow::Cow;

/// Maximum size of a reply to examine, in bytes.
const BYTES_MAX: usize = 4000;

/// Phrases of a sentence about a later change, or about the mistake of others.
const NOT_NOW: &[&str] = &[
    "you can always",
    "you could always",
    "we can always",
    "one can always",
    "you can switch",
    "you can move to",
    "you can migrate",
    "you can still move",
    "we can switch",
    "we can move to",
    "we can migrate",
    "if you outgrow",
    "if we outgrow",
    "once you outgrow",
    "when you outgrow",
    "if it ever gets too small",
    "common mistake",
    "common error",
    "frequent mistake",
    "many people choose",
    "many people pick",
    "many people think",
    "people often",
    "students often",
    "often confused",
    "at a larger scale",
    "at larger scale",
    "at a bigger scale",
    "kannst du immer noch",
    "kann man immer noch",
    "können wir immer noch",
    "kannst du später",
    "kann man später",
    "können wir später",
    "später immer noch",
    "häufiger fehler",
    "viele wählen",
    "viele tippen",
    "viele denken",
    "vous pourrez toujours",
    "tu pourras toujours",
    "on pourra toujours",
    "nous pourrons toujours",
    "on peut toujours passer",
    "vous pourrez passer",
    "erreur fréquente",
    "erreur courante",
    "beaucoup choisissent",
    "beaucoup pensent",
    "siempre puedes",
    "siempre podrás",
    "siempre se puede",
    "siempre podemos",
    "siempre podremos",
    "error común",
    "error frecuente",
    "muchos eligen",
    "muchos piensan",
    "以后",
    "将来",
    "日后",
    "需要时再",
    "常见的错误",
    "常见错误",
    "很多人会选",
    "很多人选",
    "很多人误选",
];

/// Phrases of the author's first view, which the reply leaves.
const AT_FIRST: &[&str] = &[
    "i initially leaned",
    "i initially thought",
    "i initially favo",
    "i initially preferred",
    "i originally leaned",
    "i originally thought",
    "i originally favo",
    "at first i leaned",
    "at first i thought",
    "i first thought",
    "i first leaned",
    "i was leaning",
    "my first instinct was",
    "my first thought was",
    "zuerst dachte ich",
    "zunächst dachte ich",
    "anfangs dachte ich",
    "anfangs war ich",
    "anfangs neigte ich",
    "mein erster gedanke war",
    "j'ai d'abord pensé",
    "au début je pensais",
    "au départ je pensais",
    "je pensais d'abord",
    "ma première idée était",
    "al principio pensé",
    "al principio pensaba",
    "primero pensé",
    "mi primera idea era",
    "mi primera idea fue",
    "起初我",
    "一开始我",
    "最初我",
    "我起初",
    "我最初",
];

/// Words that begin the view which holds, in the sentence of the first one.
const TURNS: &[&str] = &[
    ", but ",
    ", aber ",
    ", doch ",
    ", mais ",
    ", pero ",
    "，但是",
    "，但",
    "，不过",
];

/// Removes these sentences from a reply if another sentence names an option.
pub(super) fn without<'a>(text: &'a str, options: &Options) -> Cow<'a, str> {
    if text.len() > BYTES_MAX || options.is_yes_no() || text.contains(['{', '|']) {
        return Cow::Borrowed(text);
    }
    let lower = text.to_lowercase().replace('’', "'");
    let any = |table: &[&str], lower: &str| table.iter().any(|w| lower.contains(w));
    if !any(NOT_NOW, &lower) && !any(AT_FIRST, &lower) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut removed = false;
    for piece in pieces(text) {
        let lower = piece.to_lowercase().replace('’', "'");
        let names = || !options.mentions(piece).is_empty();
        if any(AT_FIRST, &lower) && names() {
            removed = true;
            let folded = Folded::new(piece);
            let turn = TURNS.iter().find_map(|turn| folded.find(turn));
            match turn {
                Some(turn) => out.push_str(piece[turn.end..].trim_start()),
                None => out.push_str(tail(piece)),
            }
        } else if any(NOT_NOW, &lower) && names() && !is_named_before(piece, options) {
            removed = true;
            out.push_str(tail(piece));
        } else {
            out.push_str(piece);
        }
    }
    match removed && !options.mentions(&out).is_empty() {
        true => Cow::Owned(out),
        false => Cow::Borrowed(text),
    }
}

/// Replaces the German idiom for having no other choice, which is not a denial: `führt kein Weg an Linux vorbei`.
pub(super) fn with_idioms(text: &str) -> Cow<'_, str> {
    const NO_WAY: &str = "führt kein weg an ";
    const PAST: &str = " vorbei";
    const NAME_BYTES_MAX: usize = 60;
    let folded = Folded::new(text);
    let Some(from) = folded.find(NO_WAY) else {
        return Cow::Borrowed(text);
    };
    let rest = &text[from.end..];
    match Folded::new(rest).find(PAST) {
        Some(to) if to.start <= NAME_BYTES_MAX => Cow::Owned(format!(
            "{}nehme ich {}{}",
            &text[..from.start],
            &rest[..to.start],
            &rest[to.end..]
        )),
        _ => Cow::Borrowed(text),
    }
}

/// Returns whether a Chinese sentence names its options before the later time: `先用茶，以后再说。`
fn is_named_before(piece: &str, options: &Options) -> bool {
    const LATER: [&str; 3] = ["以后", "将来", "日后"];
    let later = LATER.iter().find_map(|word| piece.find(word));
    later.is_some_and(|at| options.mentions(piece).iter().all(|m| m.end <= at))
}

/// Returns the line breaks and spaces at the end of a sentence.
fn tail(piece: &str) -> &str {
    &piece[piece.trim_end().len()..]
}

/// Splits a text into sentences with the spaces behind them.
fn pieces(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut from = 0;
    let mut ended = false;
    for (at, c) in text.char_indices() {
        if ended && !c.is_whitespace() && !matches!(c, '*' | '_' | ')' | '"' | '”') {
            out.push(&text[from..at]);
            from = at;
        }
        let next = text[at + c.len_utf8()..].chars().next();
        let stops = matches!(c, '。' | '！' | '？' | '；' | '\n')
            || matches!(c, '.' | '!' | '?') && next.is_none_or(|n| n.is_whitespace() || n == '*');
        ended = stops || ended && (c.is_whitespace() || matches!(c, '*' | '_' | ')' | '"' | '”'));
    }
    out.push(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_chosen_now_is_set_aside() {
        let options = Options::new(&["tea".to_owned(), "milk".to_owned()]);
        for (text, want) in [
            ("Tea will do. You can always buy milk.", "Tea will do. "),
            (
                "Tee (tea) reicht.\nMilk kann man später kaufen.",
                "Tee (tea) reicht.\n",
            ),
            (
                "At first I thought of milk, but tea is best.",
                "tea is best.",
            ),
            ("先用 tea。以后再用 milk。", "先用 tea。"),
            // Nothing else is named.
            ("You can always buy milk.", "You can always buy milk."),
            ("Tea is fine. Milk is not.", "Tea is fine. Milk is not."),
        ] {
            assert_eq!(without(text, &options), want, "{text}");
        }
    }
}
