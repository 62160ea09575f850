//! Finds where a sentence names options, and whether it rejects them.

use super::against::against;
use super::language::is_han;
use super::letters::{is_capital_inside, is_label, is_labelled, is_letter_named, is_verb};
use super::naming::{self, Named};
use super::options::{Mention, NO, Options, SENTENCE_BYTES_MAX};
use super::words::{Stop, Word, words};

/// Words that join two options.
const AND: &[&str] = &[
    "or", "and", "nor", "oder", "und", "noch", "ou", "et", "ni", "o", "y", "或", "和",
];

/// Words between two options that rank the second lower.
const WORSE_SIGNS: &[&str] = &[
    "worse",
    "schlechter",
    "pire",
    "peor",
    "不如",
    "inferior",
    "weaker than",
    "less",
];

/// Returns whether a letter is a unit: `20 °C`, `20 C`.
fn follows_degree(sentence: &str, words: &[Word], at: usize) -> bool {
    let before = sentence[..words[at].start].trim_end();
    let number = |w: &Word| w.stop == Stop::None && w.lower.bytes().all(|b| b.is_ascii_digit());
    before.ends_with(['°', 'º'])
        || matches!(words[at].text.as_str(), "C" | "F" | "K")
            && at.checked_sub(1).is_some_and(|b| number(&words[b]))
}

impl Options {
    /// Returns the mentions of options in a sentence.
    pub fn mentions(&self, sentence: &str) -> Vec<Mention> {
        let from = sentence.len().saturating_sub(SENTENCE_BYTES_MAX);
        let from = sentence.ceil_char_boundary(from);
        let sentence = &sentence[from..];
        let words = words(sentence);
        let mut found: Vec<Named> = Vec::new();
        let mut taken = vec![false; words.len()];
        for name in &self.names {
            let length = name.words.len();
            if length == 0 || length > words.len() {
                continue;
            }
            for at in 0..=words.len() - length {
                let here = &words[at..at + length];
                let same = here
                    .iter()
                    .zip(&name.words)
                    .all(|(a, b)| naming::is_equal(a, b));
                if same
                    && !taken[at..at + length].contains(&true)
                    && self.is_said(&words, at, length)
                    && !is_verb(&words, at, &name.words)
                {
                    taken[at..at + length].fill(true);
                    found.push(Named {
                        at,
                        length,
                        item: name.item,
                        partial: false,
                    });
                }
            }
        }
        if !self.yes_no {
            found.extend(naming::find(&words, &self.names, &mut taken));
        }
        let named = found.iter().any(|n| !n.partial);
        // "A 6, B 8 and C 3": letters followed by numbers are labels, even the article.
        let has_score = |at: &usize| {
            let next = words.get(at + 1);
            next.is_some_and(|w| w.lower.chars().all(|c| c.is_ascii_digit()))
        };
        let scores = (0..words.len())
            .filter(|at| self.labels.contains(&words[*at].text))
            .filter(has_score);
        let scored = scores.count() > 1;
        for (at, word) in words.iter().enumerate() {
            if taken[at] {
                continue;
            }
            if !self.yes_no
                && let Some(item) = self.shortened(&word.lower)
            {
                taken[at] = true;
                found.push(Named {
                    at,
                    length: 1,
                    item,
                    partial: false,
                });
                continue;
            }
            if let Some(item) = self.labels.iter().position(|l| is_labelled(&word.text, l))
                // `20 °C` beside an option's own name is not a label.
                && !(self.are_default && named)
                && (scored || !follows_degree(sentence, &words, at))
                && (scored
                    || is_label(&words, at)
                    || !self.are_default && is_capital_inside(&words, at))
            {
                taken[at] = true;
                found.push(Named {
                    at,
                    length: 1,
                    item,
                    partial: false,
                });
            }
        }
        if !self.are_default && !named {
            self.by_ordinal(&words, &mut taken, &mut found);
        }
        found.sort_unstable();
        let lower = sentence.to_lowercase();
        let worse = found.len() > 1
            && WORSE_SIGNS.iter().any(|w| {
                lower.contains(w)
                    && (w.contains(' ')
                        || w.chars().any(is_han)
                        || words.iter().any(|x| x.lower == *w))
            });
        let mut mentions: Vec<Mention> = Vec::new();
        let mut end_of_last = 0;
        for Named {
            at,
            length,
            item,
            partial,
        } in &found
        {
            // `not A or B`, `over both A and B` reject both.
            let joined = at
                .checked_sub(1)
                .is_some_and(|j| j == end_of_last && AND.contains(&words[j].lower.as_str()))
                || *at == end_of_last
                    && at
                        .checked_sub(1)
                        .is_some_and(|j| words[j].stop == Stop::Clause);
            let carried =
                joined && mentions.last().is_some_and(|m| m.rejected) && !mentions.is_empty();
            let after_only = mentions.last().is_some_and(|_| *at == end_of_last);
            end_of_last = at + length;
            let rejected = against(&words, *at, *length, &taken, !mentions.is_empty())
                || carried && !after_only;
            mentions.push(Mention {
                item: *item,
                rejected,
                start: from + words[*at].start,
                end: from + words[at + length - 1].end,
                partial: *partial,
            });
        }
        // `MySQL 和 SQLite 都不合适` rejects both.
        for n in (1..found.len().min(mentions.len())).rev() {
            let (one, two) = (&found[n - 1], &found[n]);
            let joined = two.at == one.at + one.length + 1
                && ["and", "und", "et", "y", "和", "与"]
                    .contains(&words[two.at - 1].lower.as_str())
                && words[one.at + one.length - 1].stop == Stop::None;
            if joined && mentions[n].rejected {
                mentions[n - 1].rejected = true;
            }
        }
        // `Zero-clause BSD (0BSD)`: the brackets contain its name.
        let named_behind = |n: usize| {
            let (one, two): (&Mention, Option<&Mention>) = (&mentions[n], mentions.get(n + 1));
            two.is_some_and(|two| {
                let between = sentence.get(one.end - from..two.start - from);
                let is_name = |m: &Mention| {
                    let said = sentence.get(m.start - from..m.end - from);
                    let said = said.map(super::words::folded).unwrap_or_default();
                    self.items[m.item].contains(&said)
                };
                one.item != two.item
                    && !is_name(one)
                    && is_name(two)
                    && between.is_some_and(|b| matches!(b.trim(), "(" | "（"))
            })
        };
        let renamed: Vec<bool> = (0..mentions.len()).map(named_behind).collect();
        let mut renamed = renamed.into_iter();
        mentions.retain(|_| renamed.next() != Some(true));
        if worse {
            // Order alone does not tell which option is worse.
            mentions.iter_mut().for_each(|m| m.rejected = false);
        }
        mentions
    }

    /// Finds options by position: `the second one`, `la primera`, `第一个`.
    fn by_ordinal(&self, words: &[Word], taken: &mut [bool], found: &mut Vec<Named>) {
        const ORDINALS: &[&[&str]] = &[
            &[
                "first",
                "erste",
                "ersten",
                "erster",
                "erstes",
                "première",
                "premier",
                "primera",
                "primero",
                "primer",
                "一",
            ],
            &[
                "second",
                "zweite",
                "zweiten",
                "zweiter",
                "zweites",
                "deuxième",
                "seconde",
                "segunda",
                "segundo",
                "二",
            ],
            &[
                "third",
                "dritte",
                "dritten",
                "dritter",
                "drittes",
                "troisième",
                "tercera",
                "tercero",
                "tercer",
                "三",
            ],
            &[
                "fourth",
                "vierte",
                "vierten",
                "quatrième",
                "cuarta",
                "cuarto",
                "四",
            ],
        ];
        const THINGS: &[&str] = &[
            "one",
            "answer",
            "option",
            "candidate",
            "draft",
            "response",
            "proposal",
            "plan",
            "text",
            "version",
            "reply",
            "summary",
            "translation",
            "solution",
            "antwort",
            "entwurf",
            "kandidat",
            "variante",
            "vorschlag",
            "lösung",
            "réponse",
            "proposition",
            "version",
            "option",
            "candidat",
            "respuesta",
            "opción",
            "propuesta",
            "个",
            "份",
            "篇",
        ];
        const ARTICLES: &[&str] = &["the", "der", "die", "das", "den", "la", "le", "el", "第"];
        for at in 0..words.len() {
            let word = &words[at];
            let place = ORDINALS
                .iter()
                .position(|all| all.contains(&word.lower.as_str()));
            let Some(item) = place.filter(|p| *p < self.items.len() && !taken[at]) else {
                continue;
            };
            let article = at
                .checked_sub(1)
                .is_some_and(|b| ARTICLES.contains(&words[b].lower.as_str()));
            let next = words.get(at + 1).filter(|_| word.stop == Stop::None);
            let thing = next.is_some_and(|n| THINGS.contains(&n.lower.as_str()));
            let ends = word.stop != Stop::None || at + 1 == words.len();
            if article && (thing || ends && words.len() <= 6) {
                let length = 1 + usize::from(thing);
                taken[at..at + length].fill(true);
                found.push(Named {
                    at,
                    length,
                    item,
                    partial: false,
                });
            }
        }
    }

    /// Returns the option whose only name begins with a word: `Postgres` for `PostgreSQL`.
    fn shortened(&self, word: &str) -> Option<usize> {
        let long = |name: &str| name.chars().count();
        if long(word) < 5 || word.chars().any(is_han) {
            return None;
        }
        let mut begun = self.items.iter().enumerate().filter(|(_, names)| {
            names.iter().any(|name| {
                // `PostgreSQL` also names Postgres.
                if let Some(more) = word.strip_prefix(name.as_str())
                    && long(name) >= 6
                    && (1..=3).contains(&long(more))
                {
                    return true;
                }
                name.starts_with(word)
                    && name != word
                    && !name.contains(' ')
                    && 10 * long(word) >= 6 * long(name)
            })
        });
        match (begun.next(), begun.next()) {
            (Some((at, _)), None) => Some(at),
            _ => None,
        }
    }

    /// Returns whether this is an actual yes or no, unlike in `no doubt` or `is it`.
    fn is_said(&self, words: &[Word], at: usize, length: usize) -> bool {
        if !self.yes_no {
            if let (1, [letter]) = (length, words[at].lower.as_bytes())
                && letter.is_ascii_alphabetic()
            {
                return is_letter_named(words, at);
            }
            // The right answer is not necessarily the option called `right`.
            let next = words.get(at + length).map_or("", |w| w.lower.as_str());
            let praises =
                ["right", "correct", "best", "better"].contains(&words[at].lower.as_str());
            let things = [
                "answer", "choice", "option", "one", "call", "decision", "move", "way",
            ];
            return !(length == 1 && praises && things.contains(&next));
        }
        let before = at.checked_sub(1).map(|b| &words[b]);
        let last = &words[at + length - 1];
        let first = &words[at];
        let starts = before.is_none()
            || before.is_some_and(|b| matches!(b.stop, Stop::Clause | Stop::Sentence));
        let ends = last.stop != Stop::None || at + length == words.len();
        if [
            "true",
            "false",
            "correct",
            "incorrect",
            "对",
            "不对",
            "是",
            "不",
            "si",
        ]
        .contains(&first.lower.as_str())
        {
            return starts && ends && at == 0;
        }
        let cue = before.is_some_and(|b| {
            [
                "is",
                "say",
                "answer",
                "clear",
                "definite",
                "a",
                "clearly",
                "definitely",
                "resounding",
                "firm",
                "strong",
                "hard",
                "cautious",
                "qualified",
                "eindeutiges",
                "vorsichtiges",
                "clair",
                "grand",
                "claro",
                "answered",
                "said",
                "therefore",
                "so",
                "be",
                "ist",
                "ein",
                "klares",
                "also",
                "sage",
                "est",
                "un",
                "dis",
                "donc",
                "es",
                "digo",
                "rotundo",
                "que",
                "案",
                "是",
                "simple",
                "short",
                "still",
                "say:",
                "absolutely",
                "vote",
                "stimme",
                "mit",
                "with",
            ]
            .contains(&b.lower.as_str())
        });
        // "mmm i think yes", "yes in april"; not "say yes to", "arguments for yes", "yes would".
        const CLEAR: &[&str] = &[
            "yes", "yeah", "yep", "oui", "sí", "nope", "nein", "non", "jawohl", "是的",
        ];
        const SPOKEN_OF: &[&str] = &[
            "for", "against", "the", "of", "if", "wenn", "si", "für", "pour", "zum",
        ];
        const GOES_ON: &[&str] = &[
            "to",
            "would",
            "could",
            "means",
            "men",
            "man",
            "vote",
            "votes",
            "plus",
            "seulement",
            "seul",
            "pas",
            "or",
            "oder",
            "ou",
            "if",
            "answer",
            "button",
        ];
        let clear = CLEAR.contains(&first.lower.as_str())
            && !before
                .is_some_and(|b| SPOKEN_OF.contains(&b.lower.as_str()) && b.stop == Stop::None)
            && !words
                .get(at + length)
                .is_some_and(|n| last.stop == Stop::None && GOES_ON.contains(&n.lower.as_str()));
        if clear && !before.is_some_and(|b| b.lower == "say" && !ends) {
            return true;
        }
        // `It's a no from me`, `Technically yes`, `Yes and I'd do it today`.
        let next = words.get(at + length).map_or("", |w| w.lower.as_str());
        let noun = before.is_some_and(|b| ["a", "ein", "un"].contains(&b.lower.as_str()))
            && ["from", "von", "de", "for"].contains(&next);
        // "No it is not safe."
        const PRONOUNS: &[&str] = &[
            "it", "this", "that", "you", "we", "i", "they", "he", "she", "because", "since",
        ];
        if at == 0 && first.lower == "no" && PRONOUNS.contains(&next) {
            return true;
        }
        let softened = words[..at].iter().all(|w| {
            w.lower.ends_with("ly")
                || [
                    "eher", "plutôt", "más", "bien", "says", "well", "oh", "hell",
                ]
                .contains(&w.lower.as_str())
        });
        let reported = before
            .is_some_and(|b| ["says", "say", "sagt", "dit", "dice"].contains(&b.lower.as_str()));
        let goes_on = at == 0
            && ["yes", "ja", "oui", "sí"].contains(&first.lower.as_str())
            && ["and", "und", "et", "y"].contains(&next)
            && !words
                .get(at + length + 1)
                .is_some_and(|w| NO.contains(&w.lower.as_str()));
        // "Strictly speaking no", "I lean no".
        const JOINS: &[&str] = &[
            "or", "and", "of", "yes", "for", "against", "für", "pour", "para", "oder", "und", "ja",
            "ou", "et", "oui", "o", "y", "sí", "is",
        ];
        let closes = first.lower == "no"
            && ends
            && before.is_some_and(|b| {
                !JOINS.contains(&b.lower.as_str()) && !b.lower.chars().any(is_han)
            });
        closes
            || ends && (starts || cue || softened || reported)
            || noun
            || softened && ["als", "que"].contains(&next)
            || goes_on
            || words.len() == length
            || last.quoted
    }
}
