//! Amounts as databases store them, which have no unsigned integers.

/// Converts an amount for the database; more than it can hold counts as its maximum.
pub(crate) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
