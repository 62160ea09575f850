//! Planning by rules: first the type of task, then keyword and length rules. Fast and deterministic.

use crate::deliberation::answer::AnswerKind;
use crate::deliberation::plan::{Complexity, Task};
use kd_reading::kinds::{self, Kind};

/// The result of the rules for a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The type of task.
    pub task: Task,
    /// The name of a preset.
    pub preset: &'static str,
    /// Whether to iterate if agreement is low.
    pub iterate: bool,
    /// Estimated difficulty.
    pub complexity: Complexity,
    /// Subject area.
    pub domain: &'static str,
    /// The kind of answer, which decides how answers are compared.
    pub answers: AnswerKind,
    /// Whether the form of the question shows that; otherwise it is a guess.
    pub is_told: bool,
    /// The reason for this type of task.
    pub why: String,
    /// The reason for this preset.
    pub why_preset: String,
}

struct Keyword {
    words: &'static [&'static str],
    preset: &'static str,
    iterate: bool,
    complexity: Complexity,
    domain: &'static str,
}

/// Keyword rules in order: the first match wins.
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

/// Length thresholds, in characters.
const SHORT: usize = 100;
const LONG: usize = 500;

/// Words that show the type of task, most specific first.
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

/// Plans a question by rules. `asked` is the question without piped context.
pub fn find(asked: &str) -> Found {
    let lower = format!("{} ", asked.to_lowercase());
    let (answers, is_told) = guessed(asked);
    let task = TASKS.iter().find_map(|(words, task)| {
        let hit = words.iter().find(|w| lower.contains(*w))?;
        Some((*task, format!("“{}” shows the task", hit.trim())))
    });
    let (task, why) = task.unwrap_or_else(|| match answers {
        AnswerKind::Number => (Task::Reasoning, "it asks for a number".to_owned()),
        AnswerKind::Text => (
            Task::Open,
            "no keyword names the task, so it is open text".to_owned(),
        ),
        _ => (Task::Open, "its answers can be compared".to_owned()),
    });
    let keyword = KEYWORDS
        .iter()
        .find_map(|k| Some((k, k.words.iter().find(|w| lower.contains(*w))?)));
    let count = asked.chars().count();
    let (why_preset, preset, iterate, complexity, domain) = match keyword {
        Some((rule, word)) => {
            let why = format!("“{word}” suggests the preset {}", rule.preset);
            (why, rule.preset, rule.iterate, rule.complexity, rule.domain)
        }
        None if count < SHORT => {
            let why = format!("the question is short ({count} characters): preset small");
            (why, "small", false, Complexity::Simple, "general")
        }
        None if count < LONG => {
            let why = format!("the question has {count} characters: preset standard");
            (why, "standard", false, Complexity::Moderate, "general")
        }
        None => {
            let why = format!("the question is long ({count} characters): preset diverse");
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
        is_told,
        why,
        why_preset,
    }
}

/// Returns the kind of answer if the form of the question shows it; otherwise open text.
pub fn answers_of(asked: &str) -> AnswerKind {
    guessed(asked).0
}

/// Returns the kind of answer, and whether the form of the question shows it.
fn guessed(asked: &str) -> (AnswerKind, bool) {
    let (kind, is_told) = kinds::found(asked);
    let answers = match kind {
        Kind::Choice(options) => AnswerKind::Choice { options },
        Kind::YesNo => AnswerKind::Choice {
            options: vec!["yes".into(), "no".into()],
        },
        Kind::Number => AnswerKind::Number,
        Kind::Date => AnswerKind::Date,
        Kind::List => AnswerKind::Set,
        Kind::Ranking => AnswerKind::Ranking,
        Kind::Code => AnswerKind::Code,
        Kind::Open => AnswerKind::Text,
    };
    (answers, is_told)
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
            ("Calculate 17*23.", "Number"),
            ("What year did WW2 end?", "Date"),
            ("Which is heavier: (A) iron (B) gold?", "iron|gold"),
            ("Ist das sicher?", "yes|no"),
            ("On what date did it end?", "Date"),
            ("Is this change safe?", "yes|no"),
            ("Which?\nA) one\nB) two\nc. three", "one|two|three"),
            ("How many legs have 3 spiders?", "Number"),
            (
                "Should we rewrite it or keep what we have?",
                "rewrite it|keep what we have",
            ),
            ("Rank these: lead, iron, gold", "Ranking"),
            ("Which git command undoes the last commit?", "Code"),
            ("Name the Baltic states.", "Set"),
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
