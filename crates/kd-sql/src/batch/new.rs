//! The parts of a new batch.

/// A question of a new batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its id.
    pub id: String,
    /// Its text, with secrets masked.
    pub text: String,
    /// The key of equal questions: the text and how it is asked.
    pub key: String,
}

/// A batch to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewBatch {
    /// Its id.
    pub id: String,
    /// The key of equal batches.
    pub key: String,
    /// How its questions are asked: `ask`, `think`, `deliberate`.
    pub method: String,
    /// The file of questions, as the user named it.
    pub source: String,
    /// The file of results, as an absolute path; `None` if there is none.
    pub output: Option<String>,
    /// The command that runs it.
    pub command: String,
    /// Whether every question is asked, answered before or not.
    pub fresh: bool,
}
