//! Where a name in a text begins and ends.

/// Returns whether a name may begin or end between its own character and the one outside.
pub(crate) type Borders = fn(Option<char>, Option<char>) -> bool;

/// Names end where a word ends, and beside scripts that are written without spaces: `我同意Claude的看法`.
pub(crate) fn of_scripts(inside: Option<char>, outside: Option<char>) -> bool {
    let unspaced = |c: Option<char>| c.is_some_and(is_unspaced);
    of_words(inside, outside) || unspaced(inside) || unspaced(outside)
}

/// The rule of older records: names end where a word ends.
pub(crate) fn of_words(_: Option<char>, outside: Option<char>) -> bool {
    !outside.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// Returns whether a character is of a script without spaces between words, or, as in Korean, with particles joined to
/// names.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        // Thai and Lao, Burmese, Khmer.
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        // Korean.
        | '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7ff}'
        // Chinese and Japanese.
        | '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}
