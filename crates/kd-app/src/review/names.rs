//! Lists of names in notices.

/// Lists the first names and the number of the others, formatted for a notice; `None` if there are none.
pub(super) fn first_of(names: &[String], max: usize) -> Option<String> {
    let shown = names.get(..max).unwrap_or(names).join(", ");
    match names.len().saturating_sub(max) {
        0 => (!names.is_empty()).then_some(shown),
        more => Some(format!("{shown} and {more} more")),
    }
}
