//! The kinds of answers that questions ask for.

/// The kind of answer that a question asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of these options.
    Choice(Vec<String>),
    /// Yes or no.
    YesNo,
    /// A number.
    Number,
    /// A day, a month or a year.
    Date,
    /// A list of things, in any order.
    List,
    /// Things in order.
    Ranking,
    /// A command, an expression or a program.
    Code,
    /// Open text: explanations, names, open-ended lists.
    Open,
}
