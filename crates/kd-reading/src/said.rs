//! The result of reading prose.

/// The result of reading prose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<T> {
    /// Stated on a labelled line.
    Labelled(T),
    /// Stated in the words of an option.
    Words(T),
    /// Stated on the last line.
    LastLine(T),
    /// Several readings.
    Several,
    /// A refusal.
    Refused,
    /// Nothing of the requested kind.
    Nothing,
}

impl<T> Said<T> {
    /// Maps the value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Said<U> {
        match self {
            Said::Labelled(t) => Said::Labelled(f(t)),
            Said::Words(t) => Said::Words(f(t)),
            Said::LastLine(t) => Said::LastLine(f(t)),
            Said::Several => Said::Several,
            Said::Refused => Said::Refused,
            Said::Nothing => Said::Nothing,
        }
    }
}
