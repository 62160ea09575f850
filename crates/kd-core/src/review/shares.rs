//! A row of the published table of shares.

/// A row of the published table: councils of `of` members, `agreeing` of which made the same finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Members of the council.
    pub of: u32,
    /// Members that made the finding.
    pub agreeing: u32,
    /// The share of real findings.
    pub share: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}
