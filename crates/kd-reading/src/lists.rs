//! Lists: the items named in a reply in any order and form, and the order given to the items of a question.

use super::{prose, sameness};
use serde_json::Value;

/// Returns the items named in a reply, normalized and sorted; `None` if it is not a list.
pub fn items(reply: &str) -> Option<Vec<String>> {
    let mut items = in_order(reply)?;
    items.sort();
    items.dedup();
    Some(items)
}

/// Returns the items named in a reply, normalized, in the order given.
pub fn in_order(reply: &str) -> Option<Vec<String>> {
    let text = prose::without_thoughts(reply);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !prose::is_about_confidence(line))
        .collect();
    // A sentence behind the list belongs to no item: `Let me know if you need more.`
    let listed = lines.iter().filter(|line| bullet(line).is_some()).count();
    let last = lines.iter().rposition(|line| bullet(line).is_some());
    let lines = match last {
        Some(last) if listed >= 2 => &lines[..=last],
        _ => &lines[..],
    };
    let bulleted: Vec<&str> = lines.iter().filter_map(|line| bullet(line)).collect();
    let others = lines.len() - bulleted.len();
    // One line may introduce the list.
    let headed = others == 0 || others == 1 && lines[0].ends_with([':', '：']);
    let pieces = match bulleted.len() >= 2 && headed {
        true => bulleted.into_iter().map(str::to_owned).collect(),
        false => split(without_lead(&lines.join("\n")))?,
    };
    let items: Vec<String> = pieces
        .iter()
        .map(|piece| without_aside(piece))
        .map(|piece| sameness::words(without_article(&piece)).join(" "))
        .filter(|item| !item.is_empty())
        .collect();
    (!items.is_empty()).then_some(items)
}

/// Removes a remark in brackets beside the name of an item: `Estonia (capital: Tallinn)`.
fn without_aside(piece: &str) -> String {
    let Some((open, close)) = piece.find(['(', '（']).zip(piece.rfind([')', '）'])) else {
        return piece.to_owned();
    };
    let (head, tail) = (
        piece[..open].to_owned(),
        piece.get(close..).unwrap_or_default(),
    );
    let tail = tail.trim_start_matches([')', '）']);
    let apart = head.is_empty() && tail.starts_with(' ') || head.ends_with(' ');
    let han = head
        .chars()
        .next_back()
        .is_some_and(super::language::is_han);
    match (apart || han) && open < close && piece[open..close].matches(['(', '（']).count() == 1 {
        true => format!("{head}{tail}").replace("  ", " ").trim().to_owned(),
        false => piece.to_owned(),
    }
}

/// Returns the list of a sentence without the words that announce it and the sentences behind it: `The Baltic states
/// are Estonia, Latvia and Lithuania. Finland is not one of them.`
fn without_lead(text: &str) -> &str {
    const VERBS: [&str; 14] = [
        ": ",
        "：",
        " are ",
        " is ",
        " include ",
        " sind ",
        " heißen ",
        " sont ",
        " son ",
        "包括",
        "有：",
        "分别是",
        "是",
        "为",
    ];
    const LEAD_WORDS_MAX: usize = 8;
    let several = |text: &str| text.contains([',', '，', '、']) || text.contains(" and ");
    if text.contains('\n') || text.contains(['→', '>']) || numbered(text).is_some() {
        return text;
    }
    let stop = text
        .match_indices(['.', '。', '!', '！'])
        .find(|(at, mark)| {
            let rest = &text[at + mark.len()..];
            let word = text[..*at]
                .rsplit(|c: char| !c.is_alphabetic())
                .next()
                .unwrap_or_default();
            let more = rest.trim_start().chars().next();
            let apart = rest.starts_with(char::is_whitespace) || mark.len() > 1;
            let sentence = more.is_some_and(|c| c.is_uppercase() || super::language::is_han(c));
            word.chars().count() > 2 && apart && sentence && several(&text[..*at])
        });
    let text = stop.map_or(text, |(at, _)| &text[..at]);
    let place = |verb: &&str| Some((text.find(*verb)?, verb.len()));
    // `There are three: …`: a colon counts before a verb.
    let colon = VERBS[..2].iter().find_map(place);
    let lead = colon.or_else(|| VERBS[2..].iter().filter_map(place).min());
    match lead {
        Some((at, length)) => {
            let (head, tail) = (&text[..at], &text[at + length..]);
            let short = head.split_whitespace().count() <= LEAD_WORDS_MAX;
            match short && !several(head) && several(tail) {
                true => tail.trim_start(),
                false => text,
            }
        }
        None => text,
    }
}

/// Returns the text after a bullet or a number.
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

/// Splits a line at its numbers: `1. red 2. green`, `1) red 2) green`.
fn numbered(text: &str) -> Option<Vec<String>> {
    let mut marks: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    loop {
        let number = (marks.len() + 1).to_string();
        let found = text
            .get(from..)?
            .match_indices(&number)
            .find_map(|(at, _)| {
                let (start, end) = (from + at, from + at + number.len());
                let free = text[..start]
                    .chars()
                    .next_back()
                    .is_none_or(|c| !c.is_alphanumeric() && c != '.');
                let close = text[end..].starts_with(['.', ')', '、', '．']);
                let blank = text[end..]
                    .chars()
                    .nth(1)
                    .is_some_and(|c| !c.is_ascii_digit());
                (free && close && blank).then_some((start, end))
            });
        let Some((start, end)) = found.filter(|_| marks.len() < 50) else {
            break;
        };
        marks.push((start, end));
        from = end;
    }
    if marks.len() < 2 || marks[0].0 > 40 {
        return None;
    }
    let pieces = marks.iter().enumerate().map(|(place, (_, end))| {
        let to = marks.get(place + 1).map_or(text.len(), |(next, _)| *next);
        let piece = text.get(*end..to).unwrap_or_default();
        piece
            .trim_start_matches(['.', ')', '、', '．'])
            .trim()
            .trim_end_matches([',', ';', '，', '；'])
            .to_owned()
    });
    Some(pieces.filter(|piece| !piece.is_empty()).collect())
}

/// Splits a line at numbers, arrows, commas, and the last "and".
fn split(text: &str) -> Option<Vec<String>> {
    if let Some(pieces) = numbered(text) {
        return Some(pieces);
    }
    for arrow in ["→", "->", "⟶", "➜", "=>", " > ", " < ", " ＞ ", " ＜ "] {
        if text.contains(arrow) {
            let pieces = text.trim().trim_end_matches(['.', '。']).split(arrow);
            return Some(
                pieces
                    .map(|p| p.trim().to_owned())
                    .filter(|p| !p.is_empty())
                    .collect(),
            );
        }
    }
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

/// Returns the order in which a reply puts the items of a question, or its own items if the question gives none.
pub fn ranked(given: &[String], reply: &str) -> Option<Vec<String>> {
    if given.len() < 2 {
        return in_order(reply);
    }
    if let Some(items) = in_order(reply) {
        let places: Option<Vec<usize>> = items.iter().map(|item| place_of(given, item)).collect();
        if let Some(places) = places.filter(|places| is_permutation(places, given.len())) {
            return Some(places.iter().map(|at| given[*at].to_lowercase()).collect());
        }
    }
    // In prose, each is named once: `Typo first, then XSS, then the dashboard.`
    let text = prose::without_thoughts(reply).to_lowercase();
    let mut found: Vec<(usize, usize)> = Vec::new();
    for at in 0..given.len() {
        let place = distinct_words(given, at).iter().find_map(|word| {
            let mut places = text.match_indices(word.as_str()).map(|(place, _)| place);
            let first = places.next()?;
            places.next().is_none().then_some(first)
        })?;
        found.push((place, at));
    }
    found.sort_unstable();
    Some(
        found
            .iter()
            .map(|(_, at)| given[*at].to_lowercase())
            .collect(),
    )
}

fn is_permutation(places: &[usize], count: usize) -> bool {
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    sorted.iter().copied().eq(0..count)
}

/// Returns the only given item that `item` names.
fn place_of(given: &[String], item: &str) -> Option<usize> {
    let low = |text: &str| sameness::words(without_article(text)).join(" ");
    if let Some(at) = given.iter().position(|g| low(g) == item) {
        return Some(at);
    }
    let mut named = (0..given.len()).filter(|at| {
        distinct_words(given, *at)
            .iter()
            .any(|word| item.contains(word.as_str()))
    });
    let at = named.next()?;
    named.next().is_none().then_some(at)
}

/// Returns the words unique to one of the given items, in lower case; its full text comes first.
fn distinct_words(given: &[String], at: usize) -> Vec<String> {
    let of = |text: &str| -> Vec<String> {
        let words = text.to_lowercase();
        let words = words.split(|c: char| !c.is_alphanumeric());
        words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    let others: Vec<String> = given
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != at)
        .flat_map(|(_, text)| of(text))
        .collect();
    let whole = given[at].to_lowercase();
    let own = of(&given[at]).into_iter().filter(|word| {
        let long = word.chars().count() >= 3 || word.chars().any(super::language::is_han);
        (long || of(&given[at]).len() == 1) && !others.contains(word)
    });
    std::iter::once(whole).chain(own).collect()
}

/// Returns the items in a JSON value.
pub fn of_value(value: &Value) -> Option<Vec<String>> {
    let text = |item: &Value| match item {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let texts: Vec<String> = value.as_array()?.iter().map(text).collect::<Option<_>>()?;
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
        for reply in [
            "- red\n- green\n- blue\n\nTell me if you need the codes!",
            "The additive colours are red, green, and blue.",
            "There are three: red, green and blue.",
            "Red (like fire), green (like grass), blue",
            "Red, green and blue. Yellow and black are not additive, though.",
            "Die Farben sind blue, red und green.",
            "Les couleurs sont red, green et blue.",
            "Los colores son red, green y blue.",
            "三种颜色是：red、green、blue。还有问题吗？",
        ] {
            let found = items(reply).map(|i| i.join(", "));
            assert_eq!(found.as_deref(), Some("blue, green, red"), "{reply}");
        }
        let found = items("f(x), g(y)").map(|i| i.len());
        assert_eq!(found, Some(2));
        assert_eq!(items(" \n"), None);
    }

    #[test]
    fn an_order_is_the_same_in_any_form() {
        let given: Vec<String> = ["XSS in admin", "slow dashboard", "typo on landing page"]
            .map(str::to_owned)
            .to_vec();
        let order = |reply| ranked(&given, reply).map(|items| items.join(" > "));
        for reply in [
            "1. XSS in admin\n2. slow dashboard\n3. typo on landing page",
            "XSS > dashboard > typo",
            "1) XSS in admin 2) slow dashboard 3) typo on landing page",
            "First the XSS, then the dashboard; the typo can wait.",
        ] {
            let want = "xss in admin > slow dashboard > typo on landing page";
            assert_eq!(order(reply).as_deref(), Some(want), "{reply}");
        }
        assert_ne!(order("dashboard, XSS, typo"), order("XSS, dashboard, typo"));
        assert_eq!(order("The XSS is urgent."), None);
        assert_eq!(
            ranked(&[], "b → a"),
            Some(vec!["b".to_owned(), "a".to_owned()])
        );
    }
}
