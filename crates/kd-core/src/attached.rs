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
use crate::markdown::{closing, even_ends, fence};
use crate::size::size;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use std::ops::Range;

/// Maximum characters of a name above a block.
const NAME_CHARS_MAX: usize = 240;
/// The beginning of the line above a block.
const HEAD: &str = "[attached: ";

/// Returns the block of a text file with this name.
pub fn block(name: &str, bytes: u64, text: &str) -> String {
    block_of(name, &size(bytes), language(&plain(name)), text)
}

/// Returns a code block with the file's text in this language, below its name and the remark `about` it.
pub(crate) fn block_of(name: &str, about: &str, language: &str, text: &str) -> String {
    let text = clean_text(text);
    let fence = fence(&[&text]);
    let name = plain(name);
    let end = match text.is_empty() || text.ends_with('\n') {
        true => "",
        false => "\n",
    };
    format!("{HEAD}`{name}`, {about}]\n{fence}{language}\n{text}{end}{fence}")
}

/// Returns a name on one line, without backticks.
fn plain(name: &str) -> String {
    clean_line(name, NAME_CHARS_MAX).replace('`', "'")
}

/// Returns the name in the line above a block; `None` for any other line.
pub(crate) fn name_in(head: &str) -> Option<&str> {
    let (name, about) = head
        .strip_prefix(HEAD)?
        .strip_prefix('`')?
        .split_once('`')?;
    about.ends_with(']').then_some(name)
}

/// Appends blocks to a text of the user. A block of code or HTML that the text leaves open is closed first.
pub fn append(text: &str, blocks: &[String]) -> String {
    let mut body = text.trim().to_owned();
    if blocks.is_empty() {
        return body;
    }
    if closing(&body).is_some() {
        body = even_ends(&body).into_owned();
    }
    if let Some(closing) = closing(&body) {
        body.push('\n');
        body.push_str(&closing);
    }
    for block in blocks {
        if !body.is_empty() {
            body.push_str("\n\n");
        }
        body.push_str(block);
    }
    body
}

/// Returns a message without the text at its end that looks like blocks: the user's own text, unless it looks like a
/// block too.
pub fn typed(body: &str) -> &str {
    match split(body) {
        Some((begins, _)) => body[..begins].trim_end(),
        None => body,
    }
}

/// Returns where the blocks at the end of a message begin, and their number; `None` if there are none.
fn split(body: &str) -> Option<(usize, usize)> {
    if !body.ends_with('`') || !body.contains(HEAD) {
        return None;
    }
    let mut blocks = top_level(body).into_iter().rev();
    let mut begins = None;
    let mut count = 0;
    while let Some((Block::Fenced, _)) = blocks.next() {
        let Some((Block::Words, range)) = blocks.next() else {
            break;
        };
        let head = body[range.clone()].trim_end();
        if !head.starts_with(HEAD) || !head.ends_with(']') || head.contains('\n') {
            break;
        }
        begins = Some(range.start);
        count += 1;
    }
    Some((begins?, count))
}

/// A block that is in no other one.
enum Block {
    Words,
    Fenced,
    Other,
}

fn top_level(body: &str) -> Vec<(Block, Range<usize>)> {
    let mut blocks = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new(body).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let block = match tag {
                        Tag::Paragraph => Block::Words,
                        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => Block::Fenced,
                        _ => Block::Other,
                    };
                    blocks.push((block, range));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    blocks
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

    /// Texts after which a careless block would be swallowed, or would swallow.
    const OPEN: &[&str] = &[
        "look",
        "```\nlook",
        "````\n```\nlook",
        "~~~~ py\nlook",
        "~~~ `x`\n```\nlook",
        "```\nlook\n```",
        "```\nlook\n``` py",
        "```\nlook\n    ```",
        "  ~~~\nlook",
        "- ```\n  look",
        "- ```\n  look\n  ```",
        "1. x\n\n   ~~~ py\n   look",
        "> ```\n> look",
        "> look",
        "x\n\n    look",
        "x\n\n\t```\n\tlook",
        "    ```\nlook",
        "`look",
        "<!-- look",
        "<pre>\nlook",
        "<SCRIPT>\nlook",
        "<div>\nlook",
        "<?php look",
        "<![CDATA[ look",
        "<!X look",
        "[look]: <x",
        "[look]: x \"y",
        "look\n---",
        "---\nlook",
        "| look |\n|---|",
        "[^1]: look",
    ];

    #[test]
    fn a_file_addresses_nobody_even_below_an_open_block() {
        let names = [SeatName::new("ann").unwrap()];
        let known: Vec<&SeatName> = names.iter().collect();
        for words in OPEN {
            for text in [
                "@ann @all",
                "```\n@ann",
                "~~~~\n@ann\n```\n@all",
                "\n\n@ann",
                "-->\n\n@ann ?>\n\n@ann ]]> </pre>\n\n@ann",
                "> @ann\n\n- @ann",
                "\"\n\n@ann",
            ] {
                let blocks = [block("a.txt", 1, text), block("b", 1, "@all")];
                let body = append(words, &blocks);
                let said = mentions(&body, &known);
                assert!(said.seats.is_empty() && !said.all, "{body}");
                assert_eq!(split(&body).map(|(_, count)| count), Some(2), "{body}");
                assert!(body.ends_with(&blocks.join("\n\n")), "{body}");
                // What follows is not swallowed either.
                let below = format!("{body}\n\n@ann");
                assert_eq!(mentions(&below, &known).seats, names, "{below}");
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
        }
        assert_eq!(typed(&append("why?", &[one.clone(), one.clone()])), "why?");
        assert_eq!(typed(&append("", std::slice::from_ref(&one))), "");
        let two = append("why?\n\nhow?", &[one.clone(), block("b c", 2000, "x")]);
        assert_eq!(typed(&two), "why?\n\nhow?");
        assert_eq!(split(&two).map(|(_, count)| count), Some(2));
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
            let expected = match closing(&closed) {
                Some(closing) => format!("{closed}\n{closing}"),
                None => closed,
            };
            prop_assert_eq!(typed(&body), expected.trim_end());
        }

        #[test]
        fn no_words_swallow_a_file_and_no_file_leaves_its_block(
            words in "([-`~>#<!?@ \t\n.1)a]|```|~~~|<!--|<pre>|    ){0,24}",
            text in "([-`~>@ \t\n|a]|```|~~~|-->|</pre>){0,24}",
            name in "[a\\]\\[:\"'<>`\\\\ .(){}*_~#|&;!-]{1,20}",
        ) {
            let names = [SeatName::new("ann").unwrap()];
            let known: Vec<&SeatName> = names.iter().collect();
            let text = format!("{text}\n@ann {text}");
            let words = words.replace("@", "");
            let body = append(&words, &[block(&name, 3, &text), block(&name, 3, &text)]);
            prop_assert!(mentions(&body, &known).seats.is_empty(), "{}", body);
            prop_assert_eq!(split(&body).map(|(_, count)| count >= 2), Some(true), "{}", body);
            let below = format!("{body}\n\n@ann");
            prop_assert_eq!(mentions(&below, &known).seats, names.clone(), "{}", below);
        }
    }
}
