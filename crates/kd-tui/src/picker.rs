//! The thread picker: recent threads with search, and a new one. Takes keys; returns the choice.

use crate::keys::{Code, Key};
use kd_app::ThreadRow;

/// The state of the picker.
#[derive(Clone, Debug, Default)]
pub struct Picker {
    rows: Vec<ThreadRow>,
    search: String,
    chosen: usize,
    /// The thread that is open.
    present: Option<String>,
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picked {
    /// Nothing yet.
    Nothing,
    /// A thread, by ID.
    Thread(String),
    /// A new thread.
    New,
    /// The picker was closed.
    Cancelled,
}

impl Picker {
    /// Creates a picker of these threads, newest first. The one that is open is chosen; if none is, a new one.
    pub fn new(rows: Vec<ThreadRow>, present: Option<String>) -> Self {
        let at = present
            .as_ref()
            .and_then(|id| rows.iter().position(|row| row.id == *id));
        Self {
            rows,
            chosen: at.map_or(0, |at| at + 1),
            present,
            ..Self::default()
        }
    }

    /// Returns whether one of the threads is open.
    pub fn has_present(&self) -> bool {
        self.rows.iter().any(|row| self.is_present(row))
    }

    /// Returns whether a thread is the one that is open.
    pub fn is_present(&self, row: &ThreadRow) -> bool {
        self.present.as_ref() == Some(&row.id)
    }

    /// Returns the search words.
    pub fn search(&self) -> &str {
        &self.search
    }

    /// Returns the threads that match the search.
    pub fn fitting(&self) -> Vec<&ThreadRow> {
        let words: Vec<String> = self
            .search
            .to_lowercase()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        self.rows
            .iter()
            .filter(|row| {
                let text =
                    format!("{} {} {}", row.id, row.members.join(" "), row.question).to_lowercase();
                words.iter().all(|w| text.contains(w.as_str()))
            })
            .collect()
    }

    /// Returns the chosen row: 0 is the new thread, then the matches.
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// Handles a key.
    pub fn key(&mut self, key: Key) -> Picked {
        let rows = self.fitting().len();
        match key.code {
            Code::Escape => {
                if self.search.is_empty() {
                    return Picked::Cancelled;
                }
                self.search.clear();
            }
            Code::Char('c' | 'd') if key.ctrl => return Picked::Cancelled,
            Code::Char('n') if key.ctrl => return Picked::New,
            Code::Enter => {
                return match self
                    .chosen
                    .checked_sub(1)
                    .and_then(|i| self.fitting().get(i).copied())
                {
                    Some(row) => Picked::Thread(row.id.clone()),
                    None => Picked::New,
                };
            }
            Code::Up => self.chosen = self.chosen.saturating_sub(1),
            Code::Down => self.chosen = (self.chosen + 1).min(rows),
            Code::PageUp => self.chosen = self.chosen.saturating_sub(10),
            Code::PageDown => self.chosen = (self.chosen + 10).min(rows),
            Code::Home => self.chosen = 0,
            Code::End => self.chosen = rows,
            Code::Backspace => {
                self.search.pop();
                self.settle();
            }
            Code::Char(c) if !key.ctrl && !key.alt => {
                self.search.push(c);
                self.settle();
            }
            _ => {}
        }
        Picked::Nothing
    }

    /// Adds pasted text to the search words.
    pub fn paste(&mut self, text: &str) {
        self.search.extend(text.chars().filter(|c| !c.is_control()));
        self.settle();
    }

    fn settle(&mut self) {
        let any = !self.fitting().is_empty();
        self.chosen = usize::from(any && !self.search.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, question: &str) -> ThreadRow {
        ThreadRow {
            id: id.into(),
            at: None,
            messages: 3,
            members: vec!["claude".into()],
            question: question.into(),
        }
    }

    fn typed(picker: &mut Picker, text: &str) {
        for c in text.chars() {
            assert_eq!(picker.key(Key::plain(Code::Char(c))), Picked::Nothing);
        }
    }

    #[test]
    fn words_find_a_thread_in_any_order() {
        let mut picker = Picker::new(
            vec![
                row("council-1", "Which database?"),
                row("council-2", "Which colour?"),
            ],
            None,
        );
        typed(&mut picker, "colour which");
        assert_eq!(picker.fitting().len(), 1);
        assert_eq!(
            picker.key(Key::plain(Code::Enter)),
            Picked::Thread("council-2".into())
        );
        typed(&mut picker, " nothing");
        assert_eq!(
            picker.key(Key::plain(Code::Enter)),
            Picked::New,
            "nothing fits: a new one"
        );
        assert_eq!(
            picker.key(Key::plain(Code::Escape)),
            Picked::Nothing,
            "first the search goes"
        );
        assert_eq!(picker.key(Key::plain(Code::Escape)), Picked::Cancelled);
    }

    #[test]
    fn arrows_choose() {
        let rows = || vec![row("council-1", "a"), row("council-2", "b")];
        let mut picker = Picker::new(rows(), Some("council-2".into()));
        assert_eq!(picker.chosen(), 2, "the one that is open");
        assert!(
            picker.is_present(&row("council-2", "b")) && !picker.is_present(&row("council-1", "a"))
        );
        assert_eq!(
            picker.key(Key::plain(Code::Enter)),
            Picked::Thread("council-2".into())
        );
        let mut picker = Picker::new(rows(), None);
        assert_eq!(picker.key(Key::plain(Code::Enter)), Picked::New);
        for _ in 0..5 {
            picker.key(Key::plain(Code::Down));
        }
        assert_eq!(
            picker.key(Key::plain(Code::Enter)),
            Picked::Thread("council-2".into())
        );
    }
}
