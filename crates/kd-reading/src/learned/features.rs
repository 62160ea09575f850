//! The features of each candidate in a reply, hashed: the words and classes around its mentions, their places
//! in the sentence and in the reply, how often and how last it is named. The last row is "no answer".

use super::tokens::{self, Mention, Sentence, Token, is_stop};
use super::view::{BEGIN, END, Row, View, feature, stem, view, word};
use super::whole::{of_candidate, of_reply, of_tail};

/// Maximum number of mentions of a sentence that are looked at: the first ones and the last ones.
const MENTIONS_MAX: (usize, usize) = (4, 8);
/// Maximum number of sentences that are looked at, counted from the end.
const SENTENCES_MAX: usize = 120;
/// Maximum number of tokens on each side of a mention that are looked at.
const AROUND_MAX: usize = 60;

/// Returns the features of each candidate, and of "no answer".
pub(super) fn of(sides: bool, candidates: usize, sentences: &[Sentence]) -> Vec<Row> {
    let from = sentences.len().saturating_sub(SENTENCES_MAX);
    let sentences = &sentences[from..];
    let tokens: Vec<Vec<Token>> = sentences.iter().map(tokens::of).collect();
    let named: Vec<usize> = (0..sentences.len())
        .filter(|n| !sentences[*n].mentions.is_empty())
        .collect();
    let views: Vec<View> = (0..sentences.len())
        .map(|n| view(n, sentences, &tokens[n], &named))
        .collect();
    let mut rows = vec![Row::new(); candidates + 1];
    for (n, view) in views.iter().enumerate() {
        let before = n.checked_sub(1).and_then(|b| views.get(b));
        let (first, last) = MENTIONS_MAX;
        let count = view.sentence.mentions.len();
        for (at, token) in view.tokens.iter().enumerate() {
            let Some(index) = token.mention else { continue };
            if index >= first && index + last < count {
                continue;
            }
            let Some(row) = rows.get_mut(view.sentence.mentions[index].item) else {
                continue;
            };
            let mut mention = At {
                row,
                sides: if sides { "side" } else { "" },
                view,
                at,
            };
            mention.signs(index, before, views.get(n + 1));
            mention.words();
            mention.classes();
        }
    }
    for (item, row) in rows.iter_mut().enumerate().take(candidates) {
        of_candidate(row, item, candidates, &views, &named, sides);
        of_tail(row, Some(item), &views, &named);
    }
    if let Some(none) = rows.last_mut() {
        of_tail(none, None, &views, &named);
    }
    of_reply(&mut rows, &views, sides);
    for row in &mut rows {
        row.sort_unstable();
        row.dedup();
    }
    rows
}

/// A mention in its sentence.
struct At<'r, 'a> {
    row: &'r mut Row,
    sides: &'static str,
    view: &'a View<'a>,
    at: usize,
}

impl At<'_, '_> {
    fn add(&mut self, parts: &[&str]) {
        let mut all = [self.sides; 8];
        let count = parts.len().min(7);
        all[1..=count].copy_from_slice(&parts[..count]);
        self.row.push(feature(&all[..=count]));
    }

    /// Adds the form and the place of the mention.
    fn signs(&mut self, index: usize, before: Option<&View>, next: Option<&View>) {
        let view = self.view;
        let (place, named, sole) = (view.place, view.named, view.sole);
        let form = view.sentence.form;
        let mention = view.sentence.mentions[index];
        let rejected = if mention.rejected { "rejected" } else { "" };
        self.add(&["rejected", rejected]);
        self.add(&["form", form]);
        self.add(&["place", place]);
        self.add(&["named", named]);
        self.add(&["sole", sole]);
        self.add(&["sole at", sole, place]);
        self.add(&["sole named", sole, named, rejected]);
        self.add(&["sole form", sole, named, form]);
        self.add(&["length", view.length, named]);
        self.add(&["asks", if view.asks { "?" } else { "" }, named]);
        if view.tokens[self.at].bold {
            self.add(&["bold"]);
            self.add(&["bold at", named]);
        }
        if view.tokens[self.at].quoted {
            self.add(&["quoted"]);
        }
        if !mention.shape.is_empty() {
            self.shape(mention);
        }
        if mention.hint {
            let (left, right) = (self.word(-1), self.word(1));
            self.add(&["hint"]);
            self.add(&["hint at", named, sole]);
            self.add(&["hint left", left]);
            self.add(&["hint right", right]);
        }
        if mention.end - mention.start == 1 {
            let (left, right) = (self.word(-1), self.word(1));
            self.add(&["letter"]);
            self.add(&["letter", left, right]);
        }
        if let Some(last) = before.and_then(|b| b.tokens.last())
            && !form.is_empty()
        {
            self.add(&["line before", &last.text]);
        }
        for (name, other) in [("next", next), ("before", before)] {
            if let Some(other) = other {
                let named = !other.sentence.mentions.is_empty();
                let first = word(other.tokens, Some(0));
                self.add(&[name, first, if named { "#" } else { "" }]);
            }
        }
    }

    /// Adds the form of a text that may be a short answer.
    fn shape(&mut self, mention: Mention) {
        const WORDS_MAX: usize = 5;
        let view = self.view;
        let (shape, place) = (mention.shape, view.place);
        let (left, right) = (self.word(-1), self.word(1));
        let own = view.classes.iter().position(|(at, _)| *at == self.at);
        let before = own.and_then(|own| own.checked_sub(1));
        let class = before.map_or(BEGIN, |n| view.classes[n].1);
        let text = view.sentence.text.get(mention.start..mention.end);
        let text = text.unwrap_or_default();
        let words = text.split_whitespace().count().min(WORDS_MAX).to_string();
        let capital = match text.starts_with(char::is_uppercase) {
            true => "A",
            false => "a",
        };
        let begins = if self.at == 0 { "begins" } else { "" };
        self.add(&["shape", shape]);
        self.add(&["shape words", shape, &words, capital, begins]);
        self.add(&["shape at", shape, capital, place, view.named]);
        self.add(&["shape left", shape, left]);
        self.add(&["shape right", shape, right]);
        self.add(&["shape class", shape, class]);
        self.add(&["shape class at", shape, class, place]);
        self.add(&["shape reply", shape, capital, view.length, place]);
    }

    /// Returns the word at a distance from the mention.
    fn word<'a>(&self, distance: isize) -> &'a str
    where
        Self: 'a,
    {
        word(self.view.tokens, self.at.checked_add_signed(distance))
    }

    /// Adds the words around the mention: next to it, in its clause, and in the rest of the sentence.
    fn words(&mut self) {
        let tokens = self.view.tokens;
        let at = self.at;
        let [a, b, c] = [-1, -2, -3].map(|n| word(tokens, at.checked_add_signed(n)));
        let [x, y] = [1, 2].map(|n| word(tokens, Some(at + n)));
        self.add(&["left", a]);
        self.add(&["left 2", b]);
        self.add(&["left 3", c]);
        self.add(&["left 1-2", b, a]);
        self.add(&["left 1-3", c, b, a]);
        self.add(&["right", x]);
        self.add(&["right 2", y]);
        self.add(&["right 1-2", x, y]);
        self.add(&["around", a, x]);
        let stop = tokens[..at].iter().rposition(Token::stops);
        let from = stop.map_or(0, |stop| stop + 1);
        let stop = tokens[at + 1..].iter().position(Token::stops);
        let to = stop.map_or(tokens.len(), |stop| at + 1 + stop);
        let near = |n: &usize| n.abs_diff(at) <= AROUND_MAX;
        for n in (from..at).filter(near) {
            self.bag("clause left", word(tokens, Some(n)));
            if n > from {
                let pair = [word(tokens, Some(n - 1)), word(tokens, Some(n))];
                self.add(&["clause left 2", pair[0], pair[1]]);
            }
        }
        for n in (at + 1..to).filter(near) {
            self.bag("clause right", word(tokens, Some(n)));
            if n + 1 < to {
                let pair = [word(tokens, Some(n)), word(tokens, Some(n + 1))];
                self.add(&["clause right 2", pair[0], pair[1]]);
            }
        }
        let [first, second] = [from, from + 1].map(|n| word(tokens, Some(n)));
        self.add(&["opens", first]);
        self.add(&["opens 2", first, second]);
        let before = word(tokens, from.checked_sub(1));
        self.add(&["between", before, word(tokens, Some(to))]);
        if from > 0 {
            let [first, second] = [0, 1].map(|n| word(tokens, Some(n)));
            self.add(&["sentence opens", first]);
            self.add(&["sentence opens 2", first, second]);
        }
        for n in (0..from).filter(near) {
            self.bag("sentence left", word(tokens, Some(n)));
        }
        for n in (to..tokens.len()).filter(near) {
            self.bag("sentence right", word(tokens, Some(n)));
        }
    }

    fn bag(&mut self, name: &str, word: &str) {
        self.add(&[name, word]);
        if let Some(stem) = stem(word) {
            self.add(&[name, stem, "…"]);
        }
    }

    /// Adds the classes around the mention.
    fn classes(&mut self) {
        let view = self.view;
        let classes = view.classes.as_slice();
        let (named, sole) = (view.named, view.sole);
        let own = classes.iter().position(|(at, _)| *at == self.at);
        let own = own.unwrap_or(0);
        let class = |n: isize| match own.checked_add_signed(n) {
            None => BEGIN,
            Some(n) => classes.get(n).map_or(END, |(_, class)| *class),
        };
        let [a, b, c, x, y] = [-1, -2, -3, 1, 2].map(class);
        self.add(&["class left", a]);
        self.add(&["class left 2", b, a]);
        self.add(&["class left 3", c, b, a]);
        self.add(&["class right", x]);
        self.add(&["class right 2", x, y]);
        self.add(&["classes", a, x]);
        self.add(&["classes 2", b, a, x]);
        self.add(&["class left at", a, named, sole]);
        self.add(&["class left 2 at", b, a, sole]);
        let stops = |(_, class): &(usize, &str)| is_stop(class);
        let from = classes[..own].iter().rposition(stops).map_or(0, |n| n + 1);
        let behind = classes.get(own + 1..).unwrap_or_default();
        let to = behind.iter().position(stops).unwrap_or(behind.len());
        let set = |part: &[(usize, &'_ str)]| {
            let mut set: Vec<String> = part.iter().map(|(_, c)| (*c).to_owned()).collect();
            set.sort_unstable();
            set.dedup();
            set.truncate(AROUND_MAX / 4);
            set
        };
        let (left, right) = (set(&classes[from..own]), set(&behind[..to]));
        for (name, set) in [
            ("class in clause left", &left),
            ("class in clause right", &right),
        ] {
            for (n, one) in set.iter().enumerate() {
                self.add(&[name, one]);
                self.add(&[name, one, named, sole]);
                for other in &set[n + 1..] {
                    self.add(&[name, one, "and", other]);
                }
            }
        }
        for one in &left {
            for other in &right {
                self.add(&["class on both sides", one, other]);
            }
        }
        let opens = classes.first().map_or("", |(_, class)| *class);
        self.add(&["class opens clause", classes.get(from).map_or("", |c| c.1)]);
        self.add(&["class opens", opens]);
        self.add(&["class opens at", opens, named, sole]);
        for one in &set(classes) {
            self.add(&["class in sentence", one]);
            self.add(&["class in sentence at", one, named, sole]);
        }
    }
}
