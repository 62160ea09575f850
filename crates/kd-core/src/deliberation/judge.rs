//! Judges a verdict by a word of the user. Input: the mark of a verdict ([`super::unmarked`]) and `right`, `wrong`, a
//! share, or the right answer. Output: the mark with its credit.

use super::AnswerKind;
use super::report::Report;
use crate::clean::clean_line;
use kd_eval::marks::Mark;
use serde_json::Value;

/// The reason why a word does not mark a verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unjudged {
    /// The word is `right` or `wrong`, and also an option of the question.
    #[error("`{0}` is a mark and an option of this question")]
    IsOption(String),
    /// The word is neither a mark nor an answer to a question of this kind.
    #[error("`{word}` is not a mark of {} question", article(kind))]
    IsNoMark {
        /// The word.
        word: String,
        /// The kind of the question.
        kind: String,
    },
    /// The value of a file is not an answer to a question of this kind.
    #[error("`{value}` is not an answer to {} question", article(kind))]
    IsNoAnswer {
        /// The value as the file has it, shortened.
        value: String,
        /// The kind of the question.
        kind: String,
    },
}

/// Maximum characters of a value in a message.
const VALUE_CHARS_MAX: usize = 60;

impl Unjudged {
    /// Returns what to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::IsOption(word) => format!(
                "1.0 for a right verdict, 0.0 for a wrong one, `answer: {word}` if this option is the right answer"
            ),
            Self::IsNoAnswer { .. } => "an answer as the council would give it".to_owned(),
            Self::IsNoMark { .. } => {
                "`right`, `wrong`, a share such as 0.7, or an answer as the council would give it"
                    .to_owned()
            }
        }
    }
}

fn article(kind: &str) -> String {
    match kind {
        "text" | "judged" => "an open".to_owned(),
        "exact" => "an exact".to_owned(),
        kind => format!("a {kind}"),
    }
}

/// Marks a verdict as the user says: `right`, `wrong`, a share, or the right answer.
///
/// # Errors
/// The word could mean two things, or nothing.
pub fn judge(mark: &mut Mark, word: &str, report: &Report) -> Result<(), Unjudged> {
    if let Some(kind) = report.answer_kind() {
        check_not_option(word, kind)?;
    }
    let is_share = |text: &str| text.contains('.') && mark.kind != "number";
    let share = |text: &str| {
        let share: Option<f64> = text.parse().ok().filter(|_| is_share(text));
        share.filter(|share| (0.0..=1.0).contains(share))
    };
    match word.to_lowercase().as_str() {
        "right" => mark.credit = 1.0,
        "wrong" => mark.credit = 0.0,
        text => match share(text) {
            Some(share) => mark.credit = share,
            None => return judge_by_answer(mark, word, report),
        },
    }
    Ok(())
}

/// Marks a verdict by the right answer, read like the members' answers: the verdict is right if both are the same.
///
/// # Errors
/// The text is not an answer to a question of this kind, or the verdict cannot be compared with an answer.
fn judge_by_answer(mark: &mut Mark, answer: &str, report: &Report) -> Result<(), Unjudged> {
    let question = report.plan.as_ref();
    let question = question.map_or("", |plan| plan.question.as_str());
    let key = report
        .answer_kind()
        .and_then(|kind| kind.read_for(question, answer).ok());
    let (Some((key, _)), Some(winner)) = (key, &mark.winner) else {
        return Err(Unjudged::IsNoMark {
            word: clean_line(answer, VALUE_CHARS_MAX),
            kind: mark.kind.clone(),
        });
    };
    mark.credit = f64::from(u8::from(key == *winner));
    mark.answer = Some(key);
    Ok(())
}

/// Marks a verdict by the right answer in a file. Unlike a member's reply, the value must be exactly the
/// answer: an object is not read as a number, and neither is a sentence that contains a number.
///
/// # Errors
/// If the value is not an answer to a question of this kind, or the verdict cannot be compared with an answer.
pub fn judge_by_value(mark: &mut Mark, value: &Value, report: &Report) -> Result<(), Unjudged> {
    let text = report.answer_kind().and_then(|kind| as_answer(kind, value));
    let judged = text.map(|text| judge_by_answer(mark, &text, report));
    let written = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    judged.and_then(Result::ok).ok_or(Unjudged::IsNoAnswer {
        value: clean_line(&written, VALUE_CHARS_MAX),
        kind: mark.kind.clone(),
    })
}

/// Returns whether a value can be the right answer to a question of this kind. An open kind may settle into another one
/// once there are answers.
pub fn can_be_right(kind: &AnswerKind, value: &Value) -> bool {
    matches!(kind, AnswerKind::Text | AnswerKind::Judged)
        || as_answer(kind, value).is_some_and(|text| kind.read_for("", &text).is_ok())
}

/// Returns a value as the text of an answer of this kind; `None` if it cannot be one.
fn as_answer(kind: &AnswerKind, value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    // A cell of a CSV file can hold a list or an object too.
    let nested = serde_json::from_str::<Value>(&text).unwrap_or(Value::Null);
    let is_bool = value.is_boolean();
    let fits = match kind {
        AnswerKind::Json => true,
        AnswerKind::Set | AnswerKind::Ranking => !is_bool && !nested.is_object(),
        AnswerKind::Code => value.is_string(),
        _ => !nested.is_array() && !nested.is_object(),
    };
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if !fits || text.chars().any(is_control) {
        return None;
    }
    match kind {
        AnswerKind::Choice { options } => match value {
            Value::Bool(value) if *options == ["yes", "no"] => {
                Some(if *value { "yes" } else { "no" }.to_owned())
            }
            Value::Bool(_) | Value::Number(_) => options.contains(&text).then_some(text),
            _ => Some(text),
        },
        AnswerKind::Number => (!is_bool && is_number_alone(&text)).then_some(text),
        AnswerKind::Date => (!is_bool).then_some(text),
        _ => Some(text),
    }
}

/// Returns whether a text is a number and nothing else: it has no words besides commands of TeX and the `e` of
/// an exponent.
fn is_number_alone(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphabetic() && c != '\\');
    !text.contains('\n')
        && words.all(|word| word.is_empty() || word.starts_with('\\') || matches!(word, "e" | "E"))
}

/// Rejects `right` and `wrong` if the question has an option of that name.
fn check_not_option(word: &str, kind: &AnswerKind) -> Result<(), Unjudged> {
    let AnswerKind::Choice { options } = kind else {
        return Ok(());
    };
    let is_mark = ["right", "wrong"].contains(&word.to_lowercase().as_str());
    match is_mark
        && options
            .iter()
            .any(|option| option.eq_ignore_ascii_case(word))
    {
        true => Err(Unjudged::IsOption(word.to_owned())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_of_another_type_is_no_answer() {
        let values = [
            json!(40),
            json!("40"),
            json!(true),
            json!([1, 2]),
            json!({"a": 1}),
            json!("[1]"),
            json!("{\"a\":1}"),
            json!("\u{1b}]0;x\u{7}\u{1b}[31mevil 1"),
        ];
        // Which of the values can be an answer, by kind.
        for (kind, fits) in [
            (
                "number",
                [true, true, false, false, false, false, false, false],
            ),
            (
                "date",
                [true, true, false, false, false, false, false, false],
            ),
            (
                "yes-no",
                [false, true, true, false, false, false, false, false],
            ),
            (
                "choice:40,true",
                [true, true, true, false, false, false, false, false],
            ),
            (
                "exact",
                [true, true, true, false, false, false, false, false],
            ),
            ("set", [true, true, false, true, false, true, false, false]),
            (
                "ranking",
                [true, true, false, true, false, true, false, false],
            ),
            ("json", [true, true, true, true, true, true, true, false]),
            (
                "code",
                [false, true, false, false, false, true, true, false],
            ),
        ] {
            let kind = AnswerKind::parse(kind).expect("a kind");
            let found = values
                .each_ref()
                .map(|value| as_answer(&kind, value).is_some());
            assert_eq!(found, fits, "{kind:?}");
        }
    }

    #[test]
    fn a_number_is_the_whole_value() {
        for text in [
            "40",
            "-1,000.5",
            "1e-9",
            "$40",
            "40 %",
            "1/2",
            "\\frac{1}{2}",
            "3 000",
        ] {
            assert!(is_number_alone(text), "{text}");
        }
        for text in ["40 or 41", "about 40", "evil 1", "40\n41", "null 0", "四十"] {
            assert!(!is_number_alone(text), "{text}");
        }
    }
}
