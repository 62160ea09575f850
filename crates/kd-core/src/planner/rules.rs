//! Planning by rules: first what sort of task the question is, then the seed's rules of keyword and length. Fast, and
//! the same every time.

use crate::deliberation::answer::AnswerKind;
use crate::deliberation::plan::{Complexity, Task};

/// What the rules make of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The sort of task.
    pub task: Task,
    /// The name of a preset.
    pub preset: &'static str,
    /// Whether to begin anew where agreement is low.
    pub iterate: bool,
    /// How hard it seems.
    pub complexity: Complexity,
    /// What it is about.
    pub domain: &'static str,
    /// How answers can be compared.
    pub answers: AnswerKind,
    /// Why it is that sort of task.
    pub why: String,
    /// Why that preset.
    pub why_preset: String,
}

struct Keyword {
    words: &'static [&'static str],
    preset: &'static str,
    iterate: bool,
    complexity: Complexity,
    domain: &'static str,
}

/// The seed's keyword rules, in its order: the first hit wins.
const KEYWORDS: &[Keyword] = &[
    Keyword {
        words: &["math", "calculate", "solve", "equation"],
        preset: "reasoning",
        iterate: true,
        complexity: Complexity::Complex,
        domain: "technical",
    },
    Keyword {
        words: &["code", "program", "function", "algorithm"],
        preset: "reasoning",
        iterate: true,
        complexity: Complexity::Complex,
        domain: "technical",
    },
    Keyword {
        words: &["simple", "quick", "what is", "define"],
        preset: "small",
        iterate: false,
        complexity: Complexity::Simple,
        domain: "factual",
    },
    Keyword {
        words: &["compare", "analyze", "evaluate", "complex"],
        preset: "diverse",
        iterate: true,
        complexity: Complexity::Complex,
        domain: "general",
    },
    Keyword {
        words: &[
            "debate",
            "argue",
            "pros and cons",
            "pros & cons",
            "pros/cons",
            "pros-cons",
            "should",
        ],
        preset: "diverse",
        iterate: true,
        complexity: Complexity::Complex,
        domain: "general",
    },
];

/// The seed's thresholds of length, in characters.
const SHORT: usize = 100;
const LONG: usize = 500;

/// Words that tell the sort of task, the more telling first.
const TASKS: &[(&[&str], Task)] = &[
    (
        &[
            "step by step on my machine",
            "then run",
            "deploy ",
            "install and",
            "migrate the",
            "refactor the repo",
            "open the file",
        ],
        Task::Sequential,
    ),
    (
        &[
            "estimate",
            "how likely",
            "what probability",
            "forecast",
            "how long will",
            "how much will",
        ],
        Task::Estimate,
    ),
    (
        &[
            "write a test",
            "must compile",
            "regex that",
            "sql query",
            "json that",
            "function that returns",
        ],
        Task::Checkable,
    ),
    (
        &[
            "calculate",
            "solve",
            "prove",
            "how many",
            "what is the sum",
            "equation",
            "puzzle",
            "compute",
            "logic",
        ],
        Task::Reasoning,
    ),
    (
        &[
            "who ",
            "when did",
            "when was",
            "where is",
            "capital of",
            "define",
            "what is",
            "which country",
            "in what year",
        ],
        Task::Knowledge,
    ),
];

/// Plans a question by rules. `asked` is the question without context that was piped in below it.
pub fn find(asked: &str) -> Found {
    let lower = format!("{} ", asked.to_lowercase());
    let answers = answers_of(asked);
    let task = TASKS.iter().find_map(|(words, task)| {
        let hit = words.iter().find(|w| lower.contains(*w))?;
        Some((*task, format!("“{}” tells the task", hit.trim())))
    });
    let (task, why) = task.unwrap_or_else(|| match answers {
        AnswerKind::Number => (Task::Reasoning, "it asks for a number".to_owned()),
        AnswerKind::Text => (Task::Open, "no word tells the task: open text".to_owned()),
        _ => (Task::Open, "its answers can be compared".to_owned()),
    });
    let keyword = KEYWORDS
        .iter()
        .find_map(|k| Some((k, k.words.iter().find(|w| lower.contains(*w))?)));
    let count = asked.chars().count();
    let (why_preset, preset, iterate, complexity, domain) = match keyword {
        Some((rule, word)) => {
            let why = format!("“{word}” takes the preset {}", rule.preset);
            (why, rule.preset, rule.iterate, rule.complexity, rule.domain)
        }
        None if count < SHORT => {
            let why = format!("{count} characters are short: preset small");
            (why, "small", false, Complexity::Simple, "general")
        }
        None if count < LONG => {
            let why = format!("{count} characters: preset standard");
            (why, "standard", false, Complexity::Moderate, "general")
        }
        None => {
            let why = format!("{count} characters are long: preset diverse");
            (why, "diverse", true, Complexity::Complex, "general")
        }
    };
    Found {
        task,
        preset,
        iterate,
        complexity,
        domain,
        answers,
        why,
        why_preset,
    }
}

/// How answers to a question can be compared, where its form tells: options in lines, yes or no, one of two words, a
/// number. Open text otherwise.
pub fn answers_of(asked: &str) -> AnswerKind {
    let options = listed_options(asked);
    if options.len() >= 2 {
        return AnswerKind::Choice { options };
    }
    let Some(question) = last_question(asked) else {
        return AnswerKind::Text;
    };
    let lower = question.to_lowercase();
    if let Some(options) = either_or(question) {
        return AnswerKind::Choice { options };
    }
    let first = lower.split_whitespace().next().unwrap_or_default();
    const VERBS: [&str; 16] = [
        "is", "are", "was", "were", "do", "does", "did", "can", "could", "will", "would", "should",
        "has", "have", "may", "must",
    ];
    if VERBS.contains(&first) && !lower.contains(" or ") {
        return AnswerKind::Choice {
            options: vec!["yes".into(), "no".into()],
        };
    }
    if [
        "how many",
        "how much",
        "calculate",
        "what is the sum",
        "estimate",
    ]
    .iter()
    .any(|w| lower.contains(w))
    {
        return AnswerKind::Number;
    }
    AnswerKind::Text
}

/// Options that stand in lines of their own: `A) …`, `b. …`, `(c) …`, in order from A.
fn listed_options(text: &str) -> Vec<String> {
    let mut options = Vec::new();
    for line in text.lines() {
        let line = line.trim().trim_start_matches('(');
        let mut chars = line.chars();
        let (Some(letter), Some(mark)) = (chars.next(), chars.next()) else {
            continue;
        };
        let wanted = char::from(b'a' + (options.len() % 26) as u8);
        if letter.to_ascii_lowercase() == wanted && matches!(mark, ')' | '.' | ':') {
            let option = chars.as_str().trim().to_owned();
            if !option.is_empty() {
                options.push(option);
            }
        }
    }
    options
}

/// The last sentence that ends in a question mark.
fn last_question(text: &str) -> Option<&str> {
    let end = text.rfind('?')?;
    let start = text[..end]
        .rfind(['.', '!', '?', '\n', ':'])
        .map_or(0, |i| i + 1);
    Some(text[start..end].trim())
}

/// Two single words around the last "or": "… SQLite or PostgreSQL".
fn either_or(question: &str) -> Option<Vec<String>> {
    let (before, after) = question.rsplit_once(" or ")?;
    let second = after.trim();
    let mut words = before.split_whitespace().rev();
    let first = words.next()?.trim_end_matches(',');
    let bare = |w: &str| !w.is_empty() && !w.contains(' ') && w.chars().any(char::is_alphanumeric);
    if !bare(second) || !bare(first) || first.eq_ignore_ascii_case(second) {
        return None;
    }
    let mut options = vec![first.to_owned(), second.to_owned()];
    // "A, B or C"
    while let Some(word) = words.next().and_then(|w| w.strip_suffix(',')) {
        options.insert(0, word.to_owned());
    }
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_question_tells_how_answers_compare() {
        let choice = |text: &str| match answers_of(text) {
            AnswerKind::Choice { options } => options.join("|"),
            other => format!("{other:?}"),
        };
        for (question, kind) in [
            (
                "Should a small team start with SQLite or PostgreSQL?",
                "SQLite|PostgreSQL",
            ),
            ("Red, green or blue?", "Red|green|blue"),
            ("Is this change safe?", "yes|no"),
            ("Which?\nA) one\nB) two\nc. three", "one|two|three"),
            ("How many legs have 3 spiders?", "Number"),
            ("Should we rewrite it or keep what we have?", "Text"),
            ("What would you do?", "Text"),
            ("Tell me a story.", "Text"),
        ] {
            assert_eq!(choice(question), kind, "{question}");
        }
    }

    #[test]
    fn the_task_comes_first_and_the_seeds_rules_choose_the_preset() {
        for (question, task, preset, iterate) in [
            (
                "What is the capital of Australia?",
                Task::Knowledge,
                "small",
                false,
            ),
            (
                "Solve the equation x + 2 = 5.",
                Task::Reasoning,
                "reasoning",
                true,
            ),
            ("Should we adopt Rust?", Task::Open, "diverse", true),
            (
                "Estimate how many piano tuners live in Chicago.",
                Task::Estimate,
                "small",
                false,
            ),
            ("Name a good tea.", Task::Open, "small", false),
        ] {
            let found = find(question);
            assert_eq!(
                (found.task, found.preset, found.iterate),
                (task, preset, iterate),
                "{question}: {}",
                found.why
            );
        }
        let long = "word ".repeat(150);
        assert_eq!(find(&long).preset, "diverse");
        assert_eq!(find(&long[..300]).preset, "standard");
    }
}
