//! Mentions of values of the requested kind, and how the reply speaks of each, as the [gate](super::gate) sees them.

/// The reader's judgment of one mention of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Ruled out by the author.
    Rejected,
    /// In a condition, a concession, a report, a calculation or a comparison.
    Explained,
    /// Mentioned, and nothing tells what for.
    Loose,
    /// Praised.
    Favoured,
    /// Chosen, concluded or stated as the result.
    Committed,
}

/// A mention of a value of the requested kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Whether its value is the answer that was found.
    pub(super) own: bool,
    pub(super) standing: Standing,
    /// Index of its sentence.
    pub(super) place: usize,
    /// Its byte range in the sentence.
    pub(super) start: usize,
    pub(super) end: usize,
}
