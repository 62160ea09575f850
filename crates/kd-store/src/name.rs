//! Names in file names: branches, threads and senders use a restricted alphabet.

use crate::error::Error;
use std::fmt::Write as _;
use unicode_normalization::UnicodeNormalization;

/// Converts a text to the alphabet of file names: decomposed (NFKD), ASCII only, lower case, every other character a
/// `-`, runs of `-` merged, none at the ends. `feature/kd-chat` becomes `feature-kd-chat`, `Ünïcode_x` becomes
/// `unicode-x`.
///
/// # Errors
/// [`Error::BadName`] if nothing remains of the text.
pub fn normalise(text: &str, what: &'static str) -> Result<String, Error> {
    let name = squeeze(text);
    if name.is_empty() {
        return Err(Error::BadName {
            text: text.to_owned(),
            what,
        });
    }
    Ok(name)
}

/// Returns the sender's part of a file name. A name without any character of the alphabet (`模型`) is spelled by its code
/// points (`u6a21-u578b`): a member must be able to speak under any name.
pub fn sender(from: &str) -> String {
    let name = squeeze(from);
    if !name.is_empty() {
        return name;
    }
    let mut spelt = String::new();
    // 24 characters keep the file name well below the limit of 255 bytes.
    for c in from.chars().take(24) {
        let dash = if spelt.is_empty() { "" } else { "-" };
        let _ = write!(spelt, "{dash}u{:x}", u32::from(c));
    }
    if spelt.is_empty() {
        spelt.push_str("nobody");
    }
    spelt
}

fn squeeze(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.nfkd().filter(char::is_ascii) {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        // A file name has at most 255 bytes, including the number, the dash and the extension.
        if name.len() >= 200 {
            break;
        }
    }
    name.truncate(name.trim_end_matches('-').len());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_what_the_other_program_makes_of_them() {
        for (text, name) in [
            ("feature/kd-chat", "feature-kd-chat"),
            ("gpt_5", "gpt-5"),
            ("Ünïcode_x", "unicode-x"),
            ("--a//b--", "a-b"),
            ("gpt-5.1", "gpt-5-1"),
            ("ﬁne", "fine"),
        ] {
            assert_eq!(normalise(text, "branch").unwrap(), name);
        }
        for text in ["", "///", "模型"] {
            assert!(normalise(text, "branch").is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_sender_has_a_file_name_that_stays_in_its_folder() {
        assert_eq!(sender("模型"), "u6a21-u578b");
        assert_eq!(sender("../../etc/passwd"), "etc-passwd");
        assert_eq!(sender(""), "nobody");
        assert!(sender(&"模".repeat(500)).len() < 230);
        assert!(sender(&"x".repeat(500)).len() <= 200);
    }
}
