//! Strips words from option names that belong to the surrounding sentence: shared prepositions, or a verb after the
//! last option.

use super::language::{Language, is_han};

/// Prepositions that may precede every option.
const BEFORE: &[&str] = &[
    "in", "on", "at", "with", "by", "to", "for", "am", "im", "an", "auf", "mit", "bei", "beim",
    "zum", "zur", "en", "a", "al", "à", "au", "con", "par", "pour", "por", "para", "sur",
];

/// Strips a preposition from an option if the words before it have the same one: `in Redis or in PostgreSQL`.
pub(super) fn without_shared<'a>(option: &'a str, before: &str) -> &'a str {
    let Some((first, rest)) = option.split_once(' ') else {
        return option;
    };
    let lower = first.to_lowercase();
    let shared = BEFORE.contains(&lower.as_str())
        && before
            .to_lowercase()
            .split_whitespace()
            .any(|word| word == lower);
    if shared { rest.trim() } else { option }
}

/// Strips the infinitive at the end of a German question from the last option: `… oder am Freitag sein?`
pub(super) fn without_infinitive<'a>(option: &'a str, question: &str) -> &'a str {
    const MODALS: &[&str] = &[
        "soll", "sollen", "sollte", "sollten", "kann", "können", "muss", "müssen", "darf", "will",
        "wollen", "würde", "würden", "wird", "werden",
    ];
    let first = question.trim().to_lowercase();
    let modal = first.split(' ').any(|word| MODALS.contains(&word));
    let Some((head, verb)) = option.rsplit_once(' ') else {
        return option;
    };
    let is_verb = verb.starts_with(char::is_lowercase) && (verb.ends_with("en") || verb == "sein");
    match modal && is_verb && Language::of(question) == Language::German {
        true => head.trim(),
        false => option,
    }
}

/// Returns the two things that a question compares: `Between Lyon and Nice, which …`, `长江和黄河哪个更长`.
pub(super) fn compared(question: &str) -> Option<Vec<String>> {
    const BETWEEN: &[(&str, &str)] = &[
        ("between ", " and "),
        ("zwischen ", " und "),
        ("entre ", " et "),
        ("entre ", " y "),
    ];
    let question = question.trim().trim_start_matches('¿');
    if question.chars().any(is_han) {
        let (before, _) = ["哪个", "哪一个", "哪种", "谁更"]
            .iter()
            .find_map(|which| question.split_once(which))?;
        let (one, two) = ["和", "与", "跟"]
            .iter()
            .find_map(|and| before.rsplit_once(and))?;
        let short = |name: &str| (1..=8).contains(&name.chars().count());
        let one = one.rsplit(['，', '：', '。']).next()?;
        return (short(one) && short(two)).then(|| vec![one.to_owned(), two.to_owned()]);
    }
    let (pair, _) = question.split_once(',')?;
    BETWEEN.iter().find_map(|(between, and)| {
        let head = pair.get(..between.len())?;
        let rest = pair.get(between.len()..)?;
        let (one, two) = rest.split_once(and)?;
        let short = |name: &str| name.split_whitespace().count() <= 3;
        let fits = head.to_lowercase() == *between && short(one) && short(two);
        fits.then(|| vec![one.trim().to_owned(), two.trim().to_owned()])
    })
}

/// Returns the options in a Chinese list: `太阳是恒星、行星还是卫星`. `before` is the text before the last "or".
pub(super) fn chinese(before: &str, last: &str) -> Option<Vec<String>> {
    let (head, listed) = before.split_once('、')?;
    let first = head
        .rsplit([
            '，', '：', '选', '用', '是', '喝', '吃', '买', '学', '去', '要', '在',
        ])
        .next()?;
    let options: Vec<String> = std::iter::once(first)
        .chain(listed.split('、'))
        .chain([last])
        .map(|option| option.trim().to_owned())
        .collect();
    options
        .iter()
        .all(|option| !option.is_empty() && option.chars().count() <= 12)
        .then_some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_sentence_adds_is_no_part_of_a_name() {
        assert_eq!(
            without_shared("in PostgreSQL", "store it in Redis"),
            "PostgreSQL"
        );
        assert_eq!(
            without_shared("in PostgreSQL", "keep Redis"),
            "in PostgreSQL"
        );
        let question = "Soll es am Montag oder am Freitag sein?";
        assert_eq!(without_infinitive("Freitag sein", question), "Freitag");
        assert_eq!(without_infinitive("am Freitag", question), "am Freitag");
        let options = chinese("太阳是恒星、行星", "卫星").unwrap_or_default();
        assert_eq!(options, ["恒星", "行星", "卫星"]);
        for (question, pair) in [
            ("Between Lyon and Nice, which is larger?", ["Lyon", "Nice"]),
            ("¿Entre té y café, cuál prefieres?", ["té", "café"]),
            ("长江和黄河哪个更长", ["长江", "黄河"]),
        ] {
            assert_eq!(compared(question).unwrap_or_default(), pair);
        }
        assert_eq!(compared("Between us, which one would you take?"), None);
    }
}
