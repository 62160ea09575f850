//! Judges a verdict by a word of the user. Input: the mark of a verdict ([`super::unmarked`]) and `right`, `wrong`, a
//! share, or the right answer. Output: the mark with its credit.

use super::AnswerKind;
use super::report::Report;
use kd_eval::marks::Mark;

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
}

impl Unjudged {
    /// Returns what to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::IsOption(word) => format!(
                "1.0 for a right verdict, 0.0 for a wrong one, `answer: {word}` if this option is the right answer"
            ),
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
    if let Some(kind) = kind(report) {
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
/// The text is no answer to a question of this kind, or the verdict cannot be compared with an answer.
pub fn judge_by_answer(mark: &mut Mark, answer: &str, report: &Report) -> Result<(), Unjudged> {
    let question = report.plan.as_ref();
    let question = question.map_or("", |plan| plan.question.as_str());
    let key = kind(report).and_then(|kind| kind.read_for(question, answer).ok());
    let (Some((key, _)), Some(winner)) = (key, &mark.winner) else {
        return Err(Unjudged::IsNoMark {
            word: answer.to_owned(),
            kind: mark.kind.clone(),
        });
    };
    mark.credit = f64::from(u8::from(key == *winner));
    mark.answer = Some(key);
    Ok(())
}

/// Returns the kind of answer that the verdict has.
fn kind(report: &Report) -> Option<&AnswerKind> {
    let settled = report.settled.as_ref().map(|(kind, _)| kind);
    settled.or(report.plan.as_ref().map(|plan| &plan.answers))
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
