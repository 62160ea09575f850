//! Decides without a judge whether two open answers are the same: same words except for punctuation, same number with
//! its unit, same items in another order, same JSON. Meaningful signs (`<`, `-`, `=`) are kept.

use super::language::Language;
use super::{number, prose, units};
use serde_json::Value;

/// Maximum length of a text compared as a number or a list, in bytes; longer ones are compared by words.
const SHORT_BYTES_MAX: usize = 120;

/// Returns the key used to compare an open answer.
pub fn key(text: &str) -> String {
    let text = prose::without_thoughts(text);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !prose::is_about_confidence(line))
        .collect();
    let text = lines.join("\n");
    let text = text.trim();
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(text) {
        return sorted(&value).to_string();
    }
    if text.contains("```") {
        return code(text);
    }
    let bare = prose::bare(text);
    let stated = prose::labelled_text(text).filter(|_| !bare.contains('\n'));
    let bare = stated.unwrap_or(bare);
    if bare.len() <= SHORT_BYTES_MAX && !bare.contains('\n') {
        if let Some(amount) = amount(&bare) {
            return amount;
        }
        if let Some(list) = list(&bare) {
            return list;
        }
    }
    let mut words = words(&bare);
    // `8 Mb` is not `8 MB`.
    if words.len() == bare.split_whitespace().count() {
        for (word, written) in words.iter_mut().zip(bare.split_whitespace()) {
            if units::is_cased(written) {
                written.trim_end_matches(['.', ',']).clone_into(word);
            }
        }
    }
    words.join(" ")
}

/// Parses a text that is only a number and its unit.
fn amount(text: &str) -> Option<String> {
    let all = number::numbers(text, Language::of(text));
    let [one] = all.as_slice() else { return None };
    let around = format!("{} {}", text.get(..one.start)?, text.get(one.end..)?);
    // A minus sign and a currency before the number belong to it.
    let around = around
        .trim_end_matches(['-', '−', '.'])
        .replace(['-', '−'], " ");
    // `5kg`: no space between number and unit.
    let digits = text.get(one.start..one.end)?;
    let glued = digits.trim_start_matches(|c: char| !c.is_alphabetic());
    let glued = if units::name(glued).is_some() {
        glued
    } else {
        ""
    };
    let around = format!("{around} {glued}");
    let left: Vec<&str> = around
        .split_whitespace()
        .map(|w| w.trim_matches(['.', '*']))
        .filter(|w| !w.is_empty())
        .collect();
    let unit = left.join(" ");
    let unit = match unit.to_lowercase().as_str() {
        "pour cent" | "por ciento" | "per cent" => "%".to_owned(),
        "degrees celsius" | "grad celsius" | "degrés celsius" | "grados celsius" | "° c" => {
            "°C".to_owned()
        }
        "degrees fahrenheit" | "grad fahrenheit" | "degrés fahrenheit" | "grados fahrenheit"
        | "° f" => "°F".to_owned(),
        _ => unit,
    };
    if let Some(amount) = units::amount(&one.key, &unit) {
        return Some(amount);
    }
    if left.len() > 1 {
        return None;
    }
    let unit = unit.to_lowercase();
    Some(format!("{} {unit}", one.key).trim_end().to_owned())
}

/// Parses items in any order: `red, green and blue`.
fn list(text: &str) -> Option<String> {
    if !text.contains([',', '、', '，']) || text.contains(['.', '?', '!', ':', ';', '。']) {
        return None;
    }
    let mut text = text.to_lowercase();
    for and in [" and ", " und ", " et ", " y "] {
        text = text.replace(and, ", ");
    }
    let mut items: Vec<String> = text
        .split([',', '、', '，'])
        .map(|item| words(item).join(" "))
        .filter(|item| !item.is_empty())
        .collect();
    // Clauses are not items.
    if items.len() < 2 || items.iter().any(|item| item.split(' ').count() > 3) {
        return None;
    }
    items.sort();
    items.dedup();
    Some(items.join(", "))
}

/// Strips trailing spaces and empty lines from a text with fenced code.
fn code(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("\n")
}

/// Returns lowercase words without meaningless punctuation.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace()
        .map(|word| {
            word.to_lowercase()
                .replace('’', "'")
                .trim_matches(['*', '_', '`', '"', '“', '”', '„', '«', '»', '\''])
                .trim_end_matches(['.', ',', ';', ':', '!', '。', '，'])
                .trim_matches(['*', '_', '`', '"', '“', '”', '„', '«', '»', '\''])
                .to_owned()
        })
        .filter(|word| !word.is_empty())
        .collect()
}

/// Sorts the fields of objects, and drops the decimal point of whole numbers.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            Value::Object(
                fields
                    .into_iter()
                    .map(|(name, value)| (name.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Number(number) => match number::of_json(number) {
            Some(key) => serde_json::from_str(&key).unwrap_or(value.clone()),
            None => value.clone(),
        },
        leaf => leaf.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn the_same_in_other_words_of_form_is_the_same() {
        for same in [
            &[
                "Use a queue.",
                "use a queue",
                "**Use a queue.**\nConfidence: 0.8",
                "<think>hm</think>Use a queue",
            ][..],
            &["391", "391.", "**391**", "Answer: 391"],
            &["3.5 km", "3,5 Kilometer", "3.5 kilometers"],
            &["2450 N", "2.45 kN", "2,45 kN"],
            &["1200 kJ", "1.2 MJ"],
            &["12 %", "12%", "12 percent", "12 per cent"],
            &["90 minutes", "1.5 hours", "1,5 Stunden", "90min"],
            &["100 °C", "212 °F", "100 degrees Celsius", "100 ° C"],
            &["5 kg", "5kg", "5000 g", "5 Kilogramm"],
            &["red, green and blue", "Blue, red, green"],
            &["{\"a\": 1, \"b\": 2.0}", "{\"b\":2,\"a\":1}"],
            &["```rust\nfn a() {}\n```", "```rust\nfn a() {}  \n\n```"],
        ] {
            for text in same {
                assert_eq!(key(text), key(same[0]), "{text:?} and {:?}", same[0]);
            }
        }
    }

    #[test]
    fn what_differs_in_meaning_stays_apart() {
        for (a, b) in [
            ("Use a queue.", "Do not use a queue."),
            ("x < 5", "x > 5"),
            ("5", "-5"),
            ("3.5 km", "3.5 m"),
            ("3.5", "35"),
            ("100 °C", "100 °F"),
            ("5 kg", "5 lb"),
            ("5 N", "5 N·m"),
            ("2450 N", "2450 kN"),
            ("5kg", "5lb"),
            ("8 Mb", "8 MB"),
            ("$5", "€5"),
            ("100", "100 °C"),
            ("The line carries 8 Mb.", "The line carries 8 MB."),
            ("red, green", "red, blue"),
            ("```\na+b\n```", "```\na-b\n```"),
            ("```py\nif x:\n  y\n```", "```py\nif x:\ny\n```"),
            ("{\"a\":1}", "{\"a\":2}"),
            ("[1,2]", "[2,1]"),
            ("Alice, then Bob.", "Bob, then Alice."),
            ("1 and 2", "1"),
            ("yes", "no"),
            ("C++", "C"),
        ] {
            assert_ne!(key(a), key(b), "{a:?} and {b:?}");
        }
    }
}
