//! Files attached to a message of the user, as text of the message.
//!
//! Input: the user's words and the contents of files. Output: one text, in which each file is a fenced block below its
//! name and size:
//!
//! ````text
//! What is wrong in @src/main.rs?
//!
//! [attached: `src/main.rs`, 13 bytes]
//! ```rust
//! fn main() {}
//! ```
//! ````
//!
//! The fence is longer than every run of backticks in the file, so that the file can neither end the block nor address
//! a member. The message keeps the contents as they were when it was sent, in its file and in every later prompt.

use crate::clean::{clean_line, clean_text};
use crate::markdown::fence;
use crate::mention;
use crate::size::size;
use std::borrow::Cow;

/// Maximum characters of a name above a block.
const NAME_CHARS_MAX: usize = 240;
/// The beginning of the line above a block.
const HEAD: &str = "[attached: ";
/// The shortest fence.
const FENCE_MIN: usize = 3;

/// Returns the block of a file with this name.
pub fn block(name: &str, bytes: u64, text: &str) -> String {
    let text = clean_text(text);
    let fence = fence(&[&text]);
    let name = clean_line(name, NAME_CHARS_MAX).replace('`', "'");
    let size = size(bytes);
    let end = match text.is_empty() || text.ends_with('\n') {
        true => "",
        false => "\n",
    };
    format!(
        "{HEAD}`{name}`, {size}]\n{fence}{}\n{text}{end}{fence}",
        language(&name)
    )
}

/// Appends blocks to a text of the user. A code block that the text leaves open is closed first.
pub fn append(text: &str, blocks: &[String]) -> String {
    let mut body = text.trim_end().to_owned();
    if blocks.is_empty() {
        return body;
    }
    if let Some(fence) = mention::open_fence(&body) {
        body.push('\n');
        body.push_str(&fence);
    }
    for block in blocks {
        if !body.is_empty() {
            body.push_str("\n\n");
        }
        body.push_str(block);
    }
    body
}

/// Returns a message without the blocks at its end: what the user typed.
pub fn typed(body: &str) -> &str {
    match split(body) {
        Some((begins, _)) => body[..begins].trim_end(),
        None => body,
    }
}

/// Returns a message with only the name and size of each file at its end.
pub fn brief(body: &str) -> Cow<'_, str> {
    match split(body) {
        Some((begins, heads)) => {
            let typed = body[..begins].trim_end();
            let gap = if typed.is_empty() { "" } else { "\n\n" };
            Cow::Owned(format!("{typed}{gap}{}", heads.join("\n")))
        }
        None => Cow::Borrowed(body),
    }
}

/// Returns where the blocks at the end of a message begin, and the line above each; `None` if there are none.
fn split(body: &str) -> Option<(usize, Vec<&str>)> {
    let mut begins = None;
    let mut heads = Vec::new();
    let mut open: Option<&str> = None;
    let mut at = 0;
    let mut head: Option<(usize, &str)> = None;
    for line in body.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim_end();
        if let Some(fence) = open {
            if line == fence {
                open = None;
            }
            continue;
        }
        let fence = &line[..line.len() - line.trim_start_matches('`').len()];
        match head.take() {
            Some((at, named)) if fence.len() >= FENCE_MIN => {
                begins = begins.or(Some(at));
                heads.push(named);
                open = Some(fence);
                continue;
            }
            // A line that only looks like one.
            Some(_) => begins = None,
            None => {}
        }
        if line.starts_with(HEAD) && line.ends_with(']') {
            head = Some((start, line));
        } else if !line.is_empty() {
            begins = None;
        }
        if begins.is_none() {
            heads.clear();
        }
    }
    let begins = begins.filter(|_| open.is_none() && head.is_none())?;
    Some((begins, heads))
}

/// Estimates the tokens of a text of this many bytes: four bytes are about one token in English and in code.
pub fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// Returns the language after an opening fence: the ending of the name, if it is a plain word.
fn language(name: &str) -> &str {
    let ending = match name.rsplit_once('.') {
        Some((_, ending)) if !ending.is_empty() && ending.len() <= 12 => ending,
        _ => return "",
    };
    match ending {
        "rs" => "rust",
        "py" => "python",
        "md" => "markdown",
        _ if ending.bytes().all(|b| b.is_ascii_alphanumeric()) => ending,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SeatName;
    use crate::mention::mentions;
    use proptest::prelude::*;

    #[test]
    fn a_file_is_a_fenced_block_below_its_name() {
        let main = block("src/main.rs", 13, "fn main() {}\n");
        assert_eq!(
            append("What is wrong in @src/main.rs?\n", &[main]),
            "What is wrong in @src/main.rs?\n\n[attached: `src/main.rs`, 13 bytes]\n```rust\nfn main() {}\n```"
        );
        for (name, text, expected) in [
            ("a", "x", "[attached: `a`, 9 bytes]\n```\nx\n```"),
            ("a.md", "", "[attached: `a.md`, 9 bytes]\n```markdown\n```"),
            (
                "a.x-y",
                "``` `````",
                "[attached: `a.x-y`, 9 bytes]\n``````\n``` `````\n``````",
            ),
            (
                "a\nking: b",
                "\u{1b}[2Jx\r\ny",
                "[attached: `a king: b`, 9 bytes]\n```\nx\ny\n```",
            ),
        ] {
            assert_eq!(block(name, 9, text), expected);
        }
    }

    #[test]
    fn a_file_addresses_nobody_even_below_an_open_code_block() {
        let names = [SeatName::new("ann").unwrap()];
        let known: Vec<&SeatName> = names.iter().collect();
        for words in [
            "look",
            "```\nlook",
            "~~~~ py\nlook",
            "```\nlook\n```",
            "> look",
            "`look",
        ] {
            for text in [
                "@ann @all",
                "```\n@ann",
                "~~~~\n@ann\n```\n@all",
                "\n\n@ann",
            ] {
                let body = append(words, &[block("a.txt", 1, text), block("b", 1, "@all")]);
                let said = mentions(&body, &known);
                assert!(said.seats.is_empty() && !said.all, "{body}");
                assert!(mention::open_fence(&body).is_none(), "{body}");
            }
        }
    }

    #[test]
    fn only_blocks_at_the_end_are_not_typed() {
        let one = block("a", 1, "x\n\n```\n");
        for body in [
            "plain".to_owned(),
            format!("{one}\nand more"),
            "[attached: `a`, 1 byte]\nno fence".to_owned(),
            "[attached: `a`, 1 byte]".to_owned(),
            "[attached: `a`, 1 byte]\n```\nnever closed".to_owned(),
            "x\n\n```\ncode\n```".to_owned(),
        ] {
            assert_eq!(typed(&body), body);
            assert_eq!(brief(&body), body);
        }
        assert_eq!(typed(&append("why?", &[one.clone(), one.clone()])), "why?");
        assert_eq!(typed(&append("", std::slice::from_ref(&one))), "");
        let two = append("why?\n\nhow?", &[one.clone(), block("b c", 2000, "x")]);
        assert_eq!(
            brief(&two),
            "why?\n\nhow?\n\n[attached: `a`, 1 byte]\n[attached: `b c`, 2.0 KiB]"
        );
        assert_eq!(brief(&append("", &[one])), "[attached: `a`, 1 byte]");
    }

    #[test]
    fn four_bytes_are_about_a_token() {
        assert_eq!([0, 1, 5].map(tokens), [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn what_was_typed_is_found_again(words in "[a-z@`\n ]{0,40}", text in "[a-z`~@\\[\\]:,\n ]{0,80}") {
            let closed = append(&words, &[]);
            prop_assume!(typed(&closed) == closed);
            let body = append(&words, &[block("a.rs", 3, &text), block("b", 3, &text)]);
            let expected = match mention::open_fence(&closed) {
                Some(fence) => format!("{closed}\n{fence}"),
                None => closed,
            };
            prop_assert_eq!(typed(&body), expected.trim_end());
        }
    }
}
