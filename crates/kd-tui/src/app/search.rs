//! Ctrl+R: searches the sent messages. The chosen one goes into the input and is not sent.

use super::App;
use crate::keymap::Action;
use crate::keys::{Code, Key};
use crate::text::clean;

/// A search in sent messages.
#[derive(Clone, Debug, Default)]
pub struct Search {
    query: String,
    chosen: usize,
}

impl Search {
    /// Returns the search words.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Returns the index of the chosen message among the matches.
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// Returns the sent messages that contain all words, newest first, without duplicates.
    pub fn fitting<'a>(&self, sent: &'a [String]) -> Vec<&'a str> {
        let words: Vec<String> = self
            .query
            .split_whitespace()
            .map(str::to_lowercase)
            .collect();
        let mut fitting: Vec<&str> = Vec::new();
        for text in sent.iter().rev() {
            let lower = text.to_lowercase();
            if words.iter().all(|w| lower.contains(w.as_str())) && !fitting.contains(&&**text) {
                fitting.push(text);
            }
        }
        fitting
    }

    fn narrow(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.query);
        self.chosen = 0;
    }
}

impl App {
    /// Handles a key while the search is open.
    pub(super) fn search_key(&mut self, key: Key) {
        let Some(search) = &mut self.search else {
            return;
        };
        let fitting = search.fitting(self.editor.sent());
        let last = fitting.len().saturating_sub(1);
        match self.settings.keys.searching(key) {
            Some(Action::Search | Action::Down) => search.chosen = (search.chosen + 1).min(last),
            Some(Action::Up) => search.chosen = search.chosen.saturating_sub(1),
            Some(Action::Escape | Action::Interrupt) => self.search = None,
            Some(Action::Send | Action::Complete | Action::Right | Action::LineEnd) => {
                if let Some(text) = fitting.get(search.chosen).map(|text| (*text).to_owned()) {
                    self.search = None;
                    self.editor.set(&text);
                }
            }
            Some(Action::DeleteBack) => search.narrow(|query| {
                query.pop();
            }),
            Some(Action::DeleteWord | Action::DeleteToStart) => search.narrow(String::clear),
            Some(_) => {}
            None => match key.code {
                Code::Char(c) if !key.ctrl && !key.alt => search.narrow(|query| query.push(c)),
                _ => {}
            },
        }
    }

    /// Adds pasted text to the search words.
    pub(super) fn search_paste(&mut self, text: &str) {
        if let Some(search) = &mut self.search {
            search.narrow(|query| query.push_str(&clean::line(text)));
        }
    }
}
