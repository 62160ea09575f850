//! Suggestions for misspelled names.

/// Returns the candidate closest to an unknown word, if it is close enough.
///
/// ```
/// let names = kd_vote::RULES.iter().map(|rule| rule.name);
/// assert_eq!(kd_vote::nearest("shulze", names).as_deref(), Some("schulze"));
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if word.len() > 100 {
        return None;
    }
    let flat = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let word_flat = flat(word);
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::osa_distance(&word_flat, &flat(candidate));
            (distance, candidate)
        })
        .filter(|(distance, candidate)| {
            let longer = word.chars().count().max(candidate.chars().count());
            *distance <= (longer / 3).max(1) && *distance < longer
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}
