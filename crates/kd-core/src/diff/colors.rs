//! Diffs with the colors of a terminal, as `git diff --color=always` writes them.

use std::borrow::Cow;

/// Removes the colors of a colored diff: one whose headers are colored. Another text is unchanged: its escape sequences
/// belong to the files.
pub fn without_colors(diff: &[u8]) -> Cow<'_, [u8]> {
    const HEADS: [&[u8]; 3] = [b"diff --", b"--- ", b"@@ "];
    let is_colored_head = |line: &[u8]| {
        line.starts_with(b"\x1b[") && {
            let plain = stripped(line);
            HEADS.iter().any(|head| plain.starts_with(head))
        }
    };
    match diff.split(|byte| *byte == b'\n').any(is_colored_head) {
        true => Cow::Owned(stripped(diff)),
        false => Cow::Borrowed(diff),
    }
}

/// Removes the sequences that set colors (`ESC [ 1;31 m`) or clear the rest of a line (`ESC [ K`).
fn stripped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == 0x1b
            && let Some(sequence) = after.strip_prefix(b"[")
        {
            let digits = sequence
                .iter()
                .take_while(|b| matches!(b, b'0'..=b'9' | b';'));
            let digits = digits.count();
            if matches!(sequence.get(digits), Some(b'm' | b'K')) {
                rest = &sequence[digits + 1..];
                continue;
            }
        }
        out.push(*byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_colored_diff_loses_its_colors() {
        let colored = b"\x1b[1mdiff --git a/x b/x\x1b[m\n\x1b[36m@@ -1 +1,2 @@\x1b[m\n a\x1b[m\n\x1b[32m+\x1b[m\x1b[32mb\x1b[m\n";
        let plain = b"diff --git a/x b/x\n@@ -1 +1,2 @@\n a\n+b\n";
        assert_eq!(*without_colors(colored), plain[..]);
        // A file with escapes, and a sequence that is no color.
        let file = b"diff --git a/x b/x\n@@ -1 +1 @@\n-\x1b[31mred\n+\x1b[2Jx\x1b[";
        assert_eq!(*without_colors(file), file[..]);
        let cut = b"\x1b[1m--- a/x\n\x1b[2J\x1b[\x1b";
        assert_eq!(*without_colors(cut), b"--- a/x\n\x1b[2J\x1b[\x1b"[..]);
    }
}
