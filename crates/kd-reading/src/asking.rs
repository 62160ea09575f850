//! Finds the sentence of a text that asks, and its words. A text may have context before and after it, asides in
//! parentheses, greetings, and no question mark.

/// Maximum bytes of a text to examine: half from its beginning, half from its end.
const BYTES_MAX: usize = 8 << 10;
/// Maximum length of a quotation or aside in which sentence ends are ignored, in characters.
const ASIDE_CHARS_MAX: usize = 200;
/// Maximum number of sentences to examine, from the beginning and from the end.
const SENTENCES_MAX: usize = 12;
/// Maximum letters of an abbreviation that no table has.
const SHORT_MAX: usize = 4;
/// Maximum number of words of a sentence to examine.
const WORDS_MAX: usize = 160;

/// A sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    /// Its text, without the final punctuation mark.
    pub text: &'a str,
    /// Whether it ends with a question mark.
    pub asks: bool,
}

/// A word, with the punctuation around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// Its original spelling.
    pub text: &'a str,
    /// In lower case, without punctuation.
    pub low: String,
    /// Whether it may be a name: it is capitalized, or the sentence has no capitals.
    pub named: bool,
    /// Whether a clause ends after it.
    pub ends: bool,
}

/// Abbreviations whose period does not end a sentence.
const ABBREVIATIONS: &str = "vs e.g i.e etc z.b bzw ca nr no art abs st dr mr mrs ms mme sr sra ee uu p.ej approx prof inkl max min ggf evtl \
     fr sa so mo di mi do env num max. cf al";

/// Abbreviations whose period ends a sentence only before a word that begins a new one: `Acme Inc. Should we …`.
const NAMES: &str = "fa co corp inc ltd llc bros mt ft prof ing hr frau hrn str sto sta ste gen col sen rep gov rev hon jr phd bsp bspw usw \
     engl frz jh tel abt bd pl mlle dra dña lic arq núm pág vol fig av hl geb kg ges s.a s.l univ dept est";
/// Words that begin a sentence rather than go on with a name.
const OPENERS: &str = "the i we you it they is are was do does did can could will would should shall which what who where when why how if then but \
     so this that wir ich du sie es der die das ist sind soll sollen sollte kann können was wer wo wann wie welche welcher welches \
     nous je tu vous il elle le la les est faut-il quel quelle que qui nosotros yo el los las es son qué cuál quién dónde";
/// Words between alternatives: no sentence begins with them behind an abbreviation.
const JOINERS: &str = "or oder ou o u und and et y e vs";

/// Returns whether a word, without its last period, is an abbreviation that a name may end with: `U.S`, `Inc`, `p.m`.
pub(super) fn is_abbreviated(word: &str) -> bool {
    let low = word.to_lowercase();
    are_initials(&low)
        || [ABBREVIATIONS, NAMES]
            .iter()
            .any(|table| listed(table, &low))
}

/// `u.s`, `d.c`, `a.m`
fn are_initials(low: &str) -> bool {
    let mut letters = low.split('.');
    low.contains('.')
        && letters.all(|l| l.chars().count() == 1 && l.chars().all(char::is_alphabetic))
}

fn listed(table: &str, low: &str) -> bool {
    table.split_whitespace().any(|word| word == low)
}

/// Returns a sentence without the words that begin an example: `z. B.`, `p. ex.`, `e.g.`.
pub(super) fn without_examples(sentence: &str) -> String {
    const EXAMPLES: &[&str] = &[
        "z. B.", "z.B.", "Z. B.", "bspw.", "p. ex.", "par ex.", "p. ej.", "p.ej.", "por ej.",
        "e.g.,", "e.g.", "i.e.",
    ];
    let mut text = sentence.to_owned();
    for example in EXAMPLES {
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|t| t.find(example)) {
            let at = from + at;
            from = at + example.len();
            // A whole word.
            if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.') {
                continue;
            }
            text.replace_range(at..from, "");
            from = at;
        }
    }
    text
}

/// Returns a text cut to the maximum size.
pub(super) fn bounded(text: &str) -> String {
    if text.len() <= BYTES_MAX {
        return text.replace('’', "'").replace(['\u{a0}', '\u{202f}'], " ");
    }
    let head = text
        .get(..text.floor_char_boundary(BYTES_MAX / 2))
        .unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - BYTES_MAX / 2)..)
        .unwrap_or_default();
    format!("{head}\n{tail}").replace('’', "'")
}

/// Replaces code blocks and long quotations with an ellipsis in quotation marks, because their content asks nothing
/// and offers no options.
pub(super) fn without_quotations(text: &str) -> String {
    const PAIRS: [(char, char); 6] = [
        ('«', '»'),
        ('»', '«'),
        ('“', '”'),
        ('„', '“'),
        ('"', '"'),
        ('「', '」'),
    ];
    /// Minimum length of a quotation that is not an option or name: words, or Chinese characters.
    const WORDS_MIN: usize = 6;
    const HAN_MIN: usize = 8;
    let mut out = String::new();
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once("```") {
        let Some((_, behind)) = tail.split_once("```") else {
            break;
        };
        out.push_str(head);
        out.push_str("“…”");
        rest = behind;
    }
    out.push_str(rest);
    // Inline code with brackets or operators.
    let pieces: Vec<&str> = out.split('`').collect();
    if pieces.len() % 2 == 1 && pieces.len() > 1 {
        let masked: Vec<&str> = pieces
            .iter()
            .enumerate()
            .map(
                |(at, piece)| match at % 2 == 1 && piece.contains(['(', '[', '{', ';', '=']) {
                    true => "…",
                    false => piece,
                },
            )
            .collect();
        out = masked.join("`");
    }
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    for (open, close) in PAIRS {
        let mut from = 0;
        while let Some(start) = out
            .get(from..)
            .and_then(|t| t.find(open))
            .map(|at| from + at)
        {
            let inner = start + open.len_utf8();
            let Some(end) = out
                .get(inner..)
                .and_then(|t| t.find(close))
                .map(|at| inner + at)
            else {
                break;
            };
            let said = &out[inner..end];
            let han = said.chars().filter(|c| super::language::is_han(*c)).count();
            let long = said.split_whitespace().count() >= WORDS_MIN || han >= HAN_MIN;
            let stands_in_text = long && plain(&out) - plain(said) > 8;
            from = end + close.len_utf8();
            if stands_in_text {
                out.replace_range(inner..end, "…");
                from = inner + '…'.len_utf8() + close.len_utf8();
            }
        }
    }
    out
}

/// Returns the closing mark of a quotation or an aside.
fn closing(open: char) -> Option<char> {
    Some(match open {
        '(' => ')',
        '[' => ']',
        '（' => '）',
        '«' => '»',
        '“' => '”',
        '„' => '“',
        '"' => '"',
        '`' => '`',
        '「' => '」',
        '《' => '》',
        _ => return None,
    })
}

/// Returns the first sentence of a text, with the mark that ends it; empty if no sentence has a letter or digit. A full
/// stop after an abbreviation, an initial or the number of an item ends none: `St. Gallen`, `No. 5`, `14. Oktober`.
pub fn first_sentence(text: &str) -> &str {
    let first = sentences(text).first().map(|sentence| sentence.text);
    // No letter or digit is before it, so it is found where it is.
    let Some((from, first)) = first.and_then(|first| Some((text.find(first)?, first))) else {
        return "";
    };
    let behind = &text[from + first.len()..];
    let marks = behind.len()
        - behind
            .trim_start_matches(['.', '!', '?', '。', '！', '？'])
            .len();
    &text[from..from + first.len() + marks]
}

/// Splits a text into sentences.
pub(super) fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut out = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while at < chars.len() {
        let (place, c) = chars[at];
        if let Some(close) = closing(c) {
            let within = chars[at + 1..].iter().take(ASIDE_CHARS_MAX);
            let found = within
                .take_while(|(_, c)| *c != '\n')
                .position(|(_, c)| *c == close);
            if let Some(length) = found {
                // If the whole text is one quotation, its content is split.
                let whole = text.get(from..place).is_some_and(|t| t.trim().is_empty())
                    && at + length + 3 >= chars.len();
                at += if whole { 1 } else { length + 2 };
                continue;
            }
        }
        let asks = matches!(c, '?' | '？');
        let ends = asks
            || matches!(c, '!' | '！' | '。' | '\n')
            || c == '.'
                && is_full_stop(text, &chars, at, text.get(from..place).unwrap_or_default());
        if ends {
            push(&mut out, text.get(from..place), asks);
            from = place + c.len_utf8();
        }
        at += 1;
    }
    push(&mut out, text.get(from..), false);
    // The asking sentence is near one of the ends.
    if out.len() > 2 * SENTENCES_MAX {
        out.drain(SENTENCES_MAX..out.len() - SENTENCES_MAX);
    }
    out
}

fn push<'a>(out: &mut Vec<Sentence<'a>>, text: Option<&'a str>, asks: bool) {
    let text = text.unwrap_or_default().trim();
    if text.chars().any(char::is_alphanumeric) {
        out.push(Sentence { text, asks });
    }
}

/// Returns whether a period ends a sentence: whitespace follows it, and no abbreviation or short number precedes it.
/// `before` is what the sentence has before the period.
fn is_full_stop(text: &str, chars: &[(usize, char)], at: usize, before: &str) -> bool {
    let next = chars[at + 1..].iter().map(|(_, c)| *c).take(40);
    let mut next = next.skip_while(|c| matches!(c, ')' | '"' | '”' | '*'));
    match next.next() {
        None => return true,
        Some(c) if !c.is_whitespace() => return false,
        Some(_) => {}
    }
    let follows = next.find(|c| !c.is_whitespace());
    let rest: String = follows.into_iter().chain(next).collect();
    let following = rest.split_whitespace().next().unwrap_or_default();
    let follower = following.trim_matches(|c: char| !c.is_alphanumeric() && c != '-');
    let follower = follower.to_lowercase();
    let start = chars[..at]
        .iter()
        .rposition(|(_, c)| c.is_whitespace() || *c == '(')
        .map_or(0, |at| at + 1);
    let word = text
        .get(chars[start].0..chars[at].0)
        .unwrap_or_default()
        .to_lowercase();
    let short_number = word.len() <= 2 && word.chars().all(|c| c.is_ascii_digit())
        || word.split('.').all(|p| p.len() <= 2 && !p.is_empty())
            && word.contains('.')
            && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let abbreviated = ABBREVIATIONS.split_whitespace().any(|a| a == word);
    // `J. S. Bach`, but `4 m. What is …`
    let letter = text.get(chars[start].0..chars[at].0).unwrap_or_default();
    let initial = letter.chars().count() == 1
        && (letter.chars().all(char::is_uppercase) || follows.is_some_and(char::is_lowercase));
    let ordinal = short_number && follows.is_some_and(char::is_alphanumeric);
    // `the U.S. or Japan`, `the U.S. Navy`, but `in the U.S. Should we …`, `We sell in the U.S. Postgres or …?`
    let may_go_on = are_initials(&word) || listed(NAMES, &word);
    let is_name = follows.is_some_and(char::is_uppercase) && states(before);
    let goes_on = may_go_on && !listed(OPENERS, &follower) && !is_name
        || word.chars().count() <= SHORT_MAX && listed(JOINERS, following);
    // `z. B.`, `d. h.`
    let spaced = letter.chars().count() == 1
        && letter.chars().all(char::is_alphabetic)
        && follower.chars().count() <= 2
        && follower.chars().all(char::is_alphabetic)
        && following.ends_with('.');
    !(abbreviated || initial || ordinal || goes_on || spaced)
}

/// Returns whether a sentence so far only states something: it has a subject first, and neither asks nor lists.
fn states(before: &str) -> bool {
    const SUBJECTS: &str = "we i our my it they he she this these wir ich unser unsere mein meine nous je notre mon ma nosotros yo nuestro nuestra mi";
    let mut words = before.split_whitespace().map(str::to_lowercase);
    words.next().is_some_and(|word| listed(SUBJECTS, &word))
        && !before.contains([',', ':', ';'])
        && !words.any(|word| listed(JOINERS, &word))
}

/// Returns a sentence without its parenthesized parts, and those parts.
pub(super) fn without_asides(sentence: &str) -> (String, Vec<String>) {
    let (mut out, mut asides) = (String::new(), Vec::new());
    let mut rest = sentence;
    while let Some(open) = rest.find(['(', '（']) {
        let wide = usize::from(rest[open..].starts_with('（')) * 2 + 1;
        let inner = &rest[open + wide..];
        let Some(close) = inner.find([')', '）']) else {
            break;
        };
        out.push_str(&rest[..open]);
        // `mentor(in)`, `f(x)`: part of a word.
        let glued = rest[..open].ends_with(|c: char| c.is_ascii_alphanumeric());
        let after = close + inner[close..].chars().next().map_or(1, char::len_utf8);
        match glued {
            true => out.push_str(&rest[open..open + wide + after]),
            false => {
                asides.push(inner[..close].trim().to_owned());
                out.push(' ');
            }
        }
        rest = &inner[after..];
    }
    out.push_str(rest);
    (out, asides)
}

/// Splits a sentence into words. French articles are separate words.
pub(super) fn words(sentence: &str) -> Vec<Word<'_>> {
    let mut out = Vec::new();
    let lower = !sentence.chars().any(char::is_uppercase);
    let word = |text| word(text, lower);
    for piece in sentence.split_whitespace() {
        if out.len() >= WORDS_MAX {
            break;
        }
        let bare = piece.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '\'');
        let lead = bare.find('\'').filter(|at| {
            let head = bare[..*at].to_lowercase();
            matches!(
                head.as_str(),
                "l" | "d" | "j" | "n" | "s" | "c" | "t" | "m" | "qu" | "jusqu" | "lorsqu"
            ) && bare[at + 1..].chars().count() > 1
        });
        if let Some(at) = lead {
            let cut = piece.len() - bare.len() + at + 1;
            out.push(word(&piece[..cut]));
            out.push(word(&piece[cut..]));
        } else {
            out.push(word(piece));
        }
    }
    out
}

fn word(text: &str, lower: bool) -> Word<'_> {
    let edge = |c: char| {
        !c.is_alphanumeric() && !matches!(c, '%' | '€' | '$' | '£' | '+' | '#' | '\'' | '-' | '°')
    };
    let low = text.trim_matches(edge).to_lowercase();
    let dash = matches!(text, "-" | "–" | "—" | "→" | "->" | "…" | "...");
    Word {
        text,
        named: lower
            || text
                .trim_start_matches(|c: char| !c.is_alphanumeric())
                .starts_with(char::is_uppercase),
        ends: dash || text.ends_with([',', ':', ';', '，', '：', '…']),
        low: if dash { String::new() } else { low },
    }
}

/// Strips a prefix, ignoring case.
pub(super) fn strip<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for wanted in prefix.chars() {
        let mut lower = rest.next()?.to_lowercase();
        if lower.next() != Some(wanted) || lower.next().is_some() {
            return None;
        }
    }
    Some(rest.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_a_person_ends_them() {
        for (text, want) in [
            (
                "We are few. Tabs or spaces?",
                &["We are few", "Tabs or spaces"][..],
            ),
            ("Am 3. Mai? Ja.", &["Am 3. Mai", "Ja"]),
            ("Use v2.4, e.g. now. Why?", &["Use v2.4, e.g. now", "Why"]),
            (
                "Fr 14.6., Sa 15.6. oder So?",
                &["Fr 14.6., Sa 15.6. oder So"],
            ),
            ("Say «who? me!» twice. Ok", &["Say «who? me!» twice", "Ok"]),
            ("多少？很多。", &["多少", "很多"]),
            ("\"Is it?\"", &["\"Is it"]),
            ("?!\n", &[]),
        ] {
            let found: Vec<&str> = sentences(text).iter().map(|s| s.text).collect();
            assert_eq!(found, want, "{text}");
        }
        for (text, want) in [
            ("St. Gallen", "St. Gallen"),
            ("No. 5 is best. Or 6.", "No. 5 is best."),
            ("14. Oktober 2025", "14. Oktober 2025"),
            ("Dr. Who agrees. So do we.", "Dr. Who agrees."),
            ("- use v1.2 now! Later more.", "- use v1.2 now!"),
            ("“Go. Now.” Yes.", "“Go. Now.” Yes."),
            ("多少？很多。", "多少？"),
            ("…", ""),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), want, "{text}");
        }
        let (bare, asides) = without_asides("Red (or so) or f(x) (blue)");
        assert_eq!(
            bare.split_whitespace().collect::<Vec<_>>(),
            ["Red", "or", "f(x)"]
        );
        assert_eq!(asides, ["or so", "blue"]);
    }

    #[test]
    fn french_articles_are_words() {
        let low: Vec<String> = words("L'heure d'été, qu'est-ce que c'est ?")
            .into_iter()
            .map(|w| w.low)
            .collect();
        assert_eq!(
            low,
            [
                "l'", "heure", "d'", "été", "qu'", "est-ce", "que", "c'", "est", ""
            ]
        );
    }
}
