//! Parts of answers to tick; the ticked ones become the draft of the next message, quoted by name. Takes keys; returns
//! the draft.

use crate::keys::{Code, Key};

/// A part of an answer: a paragraph, a list or a block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The member.
    pub from: String,
    /// The text.
    pub text: String,
    /// Whether it is ticked.
    pub ticked: bool,
}

/// The state of the choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    pieces: Vec<Piece>,
    chosen: usize,
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// Nothing yet.
    Nothing,
    /// The draft.
    Draft(String),
    /// The choice was closed.
    Cancelled,
}

impl Merge {
    /// Creates a choice among the parts of these answers: names and texts.
    pub fn new<'a>(answers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let pieces = answers.into_iter().flat_map(|(from, text)| {
            split(text).into_iter().map(move |text| Piece {
                from: from.to_owned(),
                text,
                ticked: false,
            })
        });
        Self {
            pieces: pieces.collect(),
            chosen: 0,
        }
    }

    /// Returns the parts.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the index of the part at the cursor.
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// Returns the number of ticked parts.
    pub fn ticked(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.ticked).count()
    }

    /// Handles a key.
    pub fn key(&mut self, key: Key) -> Merged {
        let last = self.pieces.len().saturating_sub(1);
        match key.code {
            Code::Char('c' | 'd') if key.ctrl => return Merged::Cancelled,
            Code::Escape => return Merged::Cancelled,
            Code::Enter => {
                return match self.ticked() {
                    0 => Merged::Nothing,
                    _ => Merged::Draft(self.draft()),
                };
            }
            Code::Char(' ' | 'x') => {
                if let Some(piece) = self.pieces.get_mut(self.chosen) {
                    piece.ticked = !piece.ticked;
                }
            }
            Code::Up | Code::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            Code::Down | Code::Char('j') => self.chosen = (self.chosen + 1).min(last),
            Code::Home | Code::Char('g') => self.chosen = 0,
            Code::End | Code::Char('G') => self.chosen = last,
            _ => {}
        }
        Merged::Nothing
    }

    /// Quotes the ticked parts, with the name before the parts of each member.
    fn draft(&self) -> String {
        let mut out = String::new();
        let mut from = None;
        for piece in self.pieces.iter().filter(|piece| piece.ticked) {
            match from {
                Some(name) if name == &piece.from => out.push_str(">\n"),
                _ => {
                    if !out.is_empty() {
                        out.push('\n');
                    }
                    out.push_str(&format!("{} wrote:\n", piece.from));
                }
            }
            for line in piece.text.lines() {
                out.push_str(format!("> {line}").trim_end());
                out.push('\n');
            }
            from = Some(&piece.from);
        }
        out.push('\n');
        out
    }
}

/// Splits Markdown at empty lines outside of code blocks.
fn split(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut open: Option<&str> = None;
    let mut new = true;
    for line in text.lines() {
        let start = line.trim_start();
        let fence = ["```", "~~~"].into_iter().find(|f| start.starts_with(f));
        if line.trim().is_empty() && open.is_none() {
            new = true;
            continue;
        }
        match (open, fence) {
            (None, Some(fence)) => open = Some(fence),
            (Some(begun), Some(fence)) if begun == fence => open = None,
            _ => {}
        }
        match pieces.last_mut() {
            Some(piece) if !new => {
                piece.push('\n');
                piece.push_str(line);
            }
            _ => pieces.push(line.to_owned()),
        }
        new = false;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(merge: &mut Merge, keys: &str) -> Merged {
        let mut last = Merged::Nothing;
        for c in keys.chars() {
            let code = if c == '\n' {
                Code::Enter
            } else {
                Code::Char(c)
            };
            last = merge.key(Key::plain(code));
        }
        last
    }

    #[test]
    fn answers_are_split_at_empty_lines_but_code_stays_whole() {
        let parts = split("One\ntwo.\n\n\n```sh\na\n\nb\n```\n\n- x\n- y\n");
        assert_eq!(parts, ["One\ntwo.", "```sh\na\n\nb\n```", "- x\n- y"]);
    }

    #[test]
    fn ticked_parts_are_quoted_by_name() {
        let mut merge = Merge::new([("ann", "First.\n\nSecond\nline."), ("bob", "Third.")]);
        assert_eq!(
            press(&mut merge, "\n"),
            Merged::Nothing,
            "nothing is ticked"
        );
        let draft = press(&mut merge, " jx\n");
        let both = "ann wrote:\n> First.\n>\n> Second\n> line.\n\n";
        assert_eq!(draft, Merged::Draft(both.into()));
        let draft = press(&mut merge, "kxjj \n");
        let other = "ann wrote:\n> Second\n> line.\n\nbob wrote:\n> Third.\n\n";
        assert_eq!(draft, Merged::Draft(other.into()));
        assert_eq!(merge.key(Key::plain(Code::Escape)), Merged::Cancelled);
    }
}
