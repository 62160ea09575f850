//! Corrections after a labelled answer: `ANSWER: 144`, and below `Correction: it should be 145.`

use super::answer_labels::is_label;
use super::plain::is_about_confidence;

/// Words that begin a correction of the text above.
const BEGIN: &[&str] = &[
    "correction",
    "wait",
    "hold on",
    "actually",
    "scratch that",
    "on second thought",
    "sorry",
    "oops",
    "edit:",
    "erratum",
    "i made a mistake",
    "i made an error",
    "let me correct",
    "korrektur",
    "moment",
    "halt",
    "stopp",
    "berichtigung",
    "nein, ",
    "ich muss mich korrigieren",
    "rectification",
    "attendez",
    "en fait",
    "pardon",
    "je me corrige",
    "corrección",
    "corrijo",
    "espera",
    "perdón",
    "fe de erratas",
    "更正",
    "等等",
    "不对",
    "修正",
    "抱歉",
];

/// Returns whether a line below the last labelled answer takes it back.
pub(super) fn after_label(text: &str) -> bool {
    let mut is_below = false;
    let mut corrects = false;
    for line in text.lines() {
        let bare = line.trim_start_matches([' ', '*', '#', '>', '_', '-', '(', '[']);
        let lower = bare.to_lowercase();
        let title = lower.split([':', '：']).next().unwrap_or_default();
        let is_answer = title.len() < lower.len() && is_label(title) && !is_about_confidence(title);
        let begins = BEGIN.iter().any(|word| {
            let rest = lower.strip_prefix(word);
            rest.is_some_and(|rest| {
                !rest.starts_with(char::is_alphabetic) || word.ends_with(' ') || !word.is_ascii()
            })
        });
        match (begins, is_answer) {
            (true, _) => corrects |= is_below,
            // A new label says it all.
            (false, true) => (is_below, corrects) = (true, false),
            (false, false) => {}
        }
    }
    corrects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_below_the_last_label_counts() {
        for (reply, corrects) in [
            ("ANSWER: 144\n\nCorrection: 145.", true),
            ("**Antwort:** 3\nMoment, es sind vier.", true),
            ("答案：3\n更正：应为4。", true),
            ("ANSWER: 144\nWait, no.\nANSWER: 145", false),
            ("Wait, I see.\nANSWER: 145\nCONFIDENCE: 0.9", false),
            ("ANSWER: 145\nWaiting costs money.", false),
            ("It is 3.", false),
        ] {
            assert_eq!(after_label(reply), corrects, "{reply}");
        }
    }
}
