//! The options of a question, and where a text speaks of them: by their label, by their words, for or against.

use super::language::is_han;

/// The options of a question, or the labels of a ballot.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The words of each.
    items: Vec<Vec<String>>,
    /// Their label, as it is written: `B`.
    labels: Vec<String>,
    yes_no: bool,
}

/// Where a text speaks of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Which.
    pub item: usize,
    /// Whether it is spoken against.
    pub rejected: bool,
}

/// The most of a sentence that is looked at, in bytes: its end.
const SENTENCE_BYTES_MAX: usize = 2000;

/// How yes and no are written in the five languages.
const YES: &[&str] = &[
    "yes", "yeah", "yep", "ja", "jawohl", "oui", "sí", "si", "是的", "是", "对", "true", "correct",
];
const NO: &[&str] = &[
    "no",
    "nope",
    "nein",
    "non",
    "否",
    "不是",
    "不",
    "不对",
    "false",
    "incorrect",
];

/// Words before an option that reject it, in the same clause.
const AGAINST_BEFORE: &[&str] = &[
    "not",
    "isn't",
    "don't",
    "doesn't",
    "wouldn't",
    "can't",
    "cannot",
    "never",
    "against",
    "reject",
    "rejects",
    "avoid",
    "instead",
    "rather",
    "unlike",
    "except",
    "won't",
    "shouldn't",
    "rule",
    "ruled",
    "eliminate",
    "exclude",
    "dismiss",
    "skip",
    "neither",
    "nor",
    "without",
    "no",
    "nicht",
    "kein",
    "keine",
    "keinen",
    "gegen",
    "statt",
    "anstatt",
    "anstelle",
    "weder",
    "noch",
    "niemals",
    "nie",
    "ohne",
    "pas",
    "contre",
    "plutôt",
    "jamais",
    "ni",
    "lieu",
    "sans",
    "écarte",
    "en",
    "contra",
    "nunca",
    "vez",
    "lugar",
    "rechazo",
    "descarto",
    "sin",
    "不",
    "非",
    "别",
    "而不",
    "没",
    "反对",
    "不是",
    "不选",
    "排除",
];
/// Comparisons before an option: they reject the second of two.
const COMPARATIVE: &[&str] = &[
    "than",
    "over",
    "als",
    "que",
    "比",
    "beats",
    "beat",
    "outperforms",
    "schlägt",
    "übertrifft",
    "surpasse",
    "supera",
];

/// Words behind an option that reject it.
const AGAINST_AFTER: &[&str] = &[
    "is a close second",
    "is a distant second",
    "is second",
    "comes second",
    "is the runner-up",
    "is the runner up",
    "misses",
    "miss the point",
    "is wrong",
    "is incorrect",
    "is not",
    "isn't",
    "is false",
    "is worse",
    "is out",
    "fails",
    "falls short",
    "are wrong",
    "can be ruled out",
    "is ruled out",
    "is rejected",
    "does not",
    "doesn't",
    "would not",
    "was wrong",
    "cannot",
    "can't",
    "is too",
    "is eliminated",
    "is tempting",
    "looks tempting",
    "seemed",
    "was my first",
    "looked",
    "is overkill",
    "is weaker",
    "lacks",
    "has flaws",
    "would be overkill",
    "would be too",
    "wäre zu",
    "serait trop",
    "sería demasiado",
    "ist falsch",
    "ist nicht",
    "scheidet aus",
    "nicht",
    "reicht nicht",
    "fällt aus",
    "ist schlechter",
    "stimmt nicht",
    "wäre falsch",
    "passt nicht",
    "ist zu",
    "ist keine",
    "ist ausgeschlossen",
    "est faux",
    "est fausse",
    "n'est pas",
    "est incorrect",
    "ne convient pas",
    "est exclu",
    "est moins",
    "est trop",
    "ne suffit pas",
    "es incorrecta",
    "es incorrecto",
    "no es",
    "es falso",
    "es falsa",
    "queda descartad",
    "no sirve",
    "es peor",
    "es demasiado",
    "no funciona",
    "no basta",
    "不对",
    "错",
    "不正确",
    "不行",
    "不合适",
    "不是",
    "是错",
    "不够",
    "太",
];

/// Words that join two options.
const AND: &[&str] = &[
    "or", "and", "nor", "oder", "und", "noch", "ou", "et", "ni", "o", "y", "或", "和",
];

/// Words between two options after which the second is worth less.
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

impl Options {
    /// Options by their words, labelled A, B, … in this order.
    pub fn new(names: &[String]) -> Self {
        let labels = (0..names.len())
            .filter(|at| *at < 26)
            .map(|at| char::from(b'A' + at as u8).to_string());
        Self::made(names, &labels.collect::<Vec<_>>(), true)
    }

    /// Options with labels that the reader was shown.
    pub fn labelled(names: &[String], labels: &[String]) -> Self {
        Self::made(names, labels, false)
    }

    fn made(names: &[String], labels: &[String], are_default: bool) -> Self {
        let lower: Vec<String> = names.iter().map(|n| folded(n)).collect();
        let yes_no =
            lower.len() == 2 && lower.iter().any(|n| n == "yes") && lower.iter().any(|n| n == "no");
        let items = lower
            .iter()
            .map(|name| {
                let more: &[&str] = match name.as_str() {
                    "yes" if yes_no => YES,
                    "no" if yes_no => NO,
                    _ => &[],
                };
                let more = more.iter().map(|w| (*w).to_owned());
                let mut all: Vec<String> = std::iter::once(name.clone()).chain(more).collect();
                all.retain(|w| !w.is_empty());
                all.dedup();
                all
            })
            .collect();
        // An option that is a single letter is its own label.
        let letters = lower
            .iter()
            .any(|n| n.chars().count() == 1 && !n.chars().all(is_han));
        Self {
            items,
            labels: match letters && names != labels || yes_no && are_default {
                true => Vec::new(),
                false => labels.to_vec(),
            },
            yes_no,
        }
    }

    /// The words of each option, in lower case.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.items
            .iter()
            .map(|names| names.first().map_or("", String::as_str))
    }

    /// Whether the options are yes and no.
    pub fn is_yes_no(&self) -> bool {
        self.yes_no
    }

    /// The option that a short statement is: its words, its label, or both.
    pub fn stated(&self, said: &str) -> Option<usize> {
        let said = folded(said);
        if said.is_empty() {
            return None;
        }
        if let Some(at) = self.items.iter().position(|names| names.contains(&said)) {
            return Some(at);
        }
        let mut rest = said.as_str();
        for word in [
            "option",
            "answer",
            "choice",
            "candidate",
            "antwort",
            "réponse",
            "respuesta",
            "opción",
            "choix",
            "选项",
            "答案",
            "label",
            "letter",
            "the",
            "vote for",
            "vote",
            "i choose",
            "i pick",
            "variante",
            "möglichkeit",
            "la",
            "die",
            "le",
            "选择",
            "选",
            "buchstabe",
            "i vote for",
        ] {
            if let Some(more) = rest.strip_prefix(word)
                && (more.starts_with([' ', ':', '(', '[', '*', '"', '“'])
                    || word.chars().all(is_han))
            {
                rest = more.trim_matches([' ', ':', '*', '"', '“', '”']);
            }
        }
        let rest = rest.trim_matches([
            '(', ')', '[', ']', '.', '"', '\'', '*', '`', ' ', '“', '”', '。',
        ]);
        let by_label = |word: &str| self.labels.iter().position(|l| l.to_lowercase() == word);
        if let Some(at) =
            by_label(rest).or_else(|| self.items.iter().position(|n| n.iter().any(|w| w == rest)))
        {
            return Some(at);
        }
        // `B) PostgreSQL`, `B: because`, `PostgreSQL (B)`: the words behind a label must not name another option.
        let cut = rest.find([
            ')', '.', ':', ' ', ']', '—', '–', '-', ',', '(', '。', '，', '、', '：',
        ])?;
        let (label, more) = rest.split_at(cut);
        let at = by_label(label.trim_matches(['(', '[', '*', '"']))?;
        let separated = !more.starts_with(' ')
            || more
                .trim_start()
                .starts_with(['-', '–', '—', '(', ':', '=']);
        let more = more.trim_start_matches([
            ')', '.', ':', ' ', ']', '—', '–', '-', ',', '*', '(', '。', '，', '、', '：', '"',
        ]);
        let named: Vec<usize> = self.mentions(more).iter().map(|m| m.item).collect();
        // A list that goes on with other labels states none of them.
        let goes_on = more.split_whitespace().any(|word| {
            let label = word.trim_end_matches([':', ')', '.']);
            label.len() < word.len() && by_label(label).is_some_and(|other| other != at)
        });
        let agree = !goes_on && named.iter().all(|n| *n == at);
        (agree && (separated || !named.is_empty())).then_some(at)
    }

    /// All options in the order of a line such as `B > A > C`, or of a numbered list.
    pub fn ranked(&self, text: &str) -> Option<Vec<usize>> {
        let whole = self.order_of(text);
        whole.or_else(|| text.lines().rev().find_map(|line| self.order_of(line)))
    }

    fn order_of(&self, text: &str) -> Option<Vec<usize>> {
        if text.len() > SENTENCE_BYTES_MAX {
            return None;
        }
        let count = self.items.len();
        let mut order = Vec::new();
        for piece in text.split(['>', ',', '\n', '≻', ';', '，', '、']) {
            let piece = piece.rsplit([':', '：']).next().unwrap_or(piece).trim();
            let piece = piece.trim_start_matches(|c: char| {
                c.is_ascii_digit() || matches!(c, '.' | ')' | ' ' | '-' | '*')
            });
            let named = || match self.mentions(piece).as_slice() {
                [one] if text.contains(['>', '≻']) && !one.rejected => Some(one.item),
                _ => None,
            };
            if let Some(at) = self.stated(piece).or_else(named) {
                order.push(at);
            } else if piece.chars().any(char::is_alphanumeric) && text.contains(['>', '≻']) {
                return None;
            }
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        (order.len() == count && sorted.len() == count && count > 1).then_some(order)
    }

    /// Where a sentence speaks of options.
    pub fn mentions(&self, sentence: &str) -> Vec<Mention> {
        let from = sentence.len().saturating_sub(SENTENCE_BYTES_MAX);
        let sentence = &sentence[sentence.ceil_char_boundary(from)..];
        let words = words(sentence);
        let mut found: Vec<(usize, usize, usize)> = Vec::new();
        let mut names: Vec<(usize, Vec<Word>)> = Vec::new();
        for (item, all) in self.items.iter().enumerate() {
            names.extend(all.iter().map(|name| (item, self::words(name))));
        }
        // The longest first, so that `New York` is not `York`.
        names.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
        let mut taken = vec![false; words.len()];
        for (item, name) in &names {
            if name.is_empty() || name.len() > words.len() {
                continue;
            }
            for at in 0..=words.len() - name.len() {
                let here = &words[at..at + name.len()];
                let same = here.iter().zip(name).all(|(a, b)| a.lower == b.lower);
                if same
                    && !taken[at..at + name.len()].contains(&true)
                    && self.is_said(&words, at, name.len())
                {
                    taken[at..at + name.len()].fill(true);
                    found.push((at, name.len(), *item));
                }
            }
        }
        // "A 6, B 8 and C 3": letters with numbers behind them are labels, the article too.
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
                found.push((at, 1, item));
                continue;
            }
            if let Some(item) = self.labels.iter().position(|l| *l == word.text)
                && (scored || is_label(&words, at))
            {
                taken[at] = true;
                found.push((at, 1, item));
            }
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
        for (at, length, item) in &found {
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
            });
        }
        if worse {
            // Which is worse than which is not told by order alone.
            mentions.iter_mut().for_each(|m| m.rejected = false);
        }
        mentions
    }

    /// The option with the largest share where shares stand behind at least two: `Rust (80 %), Go (20 %)`.
    pub fn largest_share(&self, text: &str) -> Option<usize> {
        if !text.contains('%') || text.len() > SENTENCE_BYTES_MAX {
            return None;
        }
        let mut shares: Vec<(usize, f64)> = Vec::new();
        let mut rest = text;
        while let Some(end) = rest.find('%') {
            let (part, behind) = rest.split_at(end);
            rest = behind.strip_prefix('%').unwrap_or_default();
            let part = part.trim_end();
            let from = part
                .rfind(|c: char| !c.is_ascii_digit() && c != '.')
                .map_or(0, |at| {
                    at + part[at..].chars().next().map_or(1, char::len_utf8)
                });
            let share: f64 = part.get(from..)?.parse().ok()?;
            match self.mentions(part).as_slice() {
                [one] if !one.rejected => shares.push((one.item, share)),
                _ => return None,
            }
        }
        let most = shares.iter().map(|(_, s)| *s).fold(0.0, f64::max);
        let mut first = shares.iter().filter(|(_, s)| *s == most);
        match (first.next(), first.next(), shares.len()) {
            (Some((item, _)), None, 2..) => Some(*item),
            _ => None,
        }
    }

    /// The option whose only name a word begins: `Postgres` of `PostgreSQL`.
    fn shortened(&self, word: &str) -> Option<usize> {
        let long = |name: &str| name.chars().count();
        if long(word) < 5 || word.chars().any(is_han) {
            return None;
        }
        let mut begun = self.items.iter().enumerate().filter(|(_, names)| {
            names.iter().any(|name| {
                name.starts_with(word) && !name.contains(' ') && 10 * long(word) >= 6 * long(name)
            })
        });
        match (begun.next(), begun.next()) {
            (Some((at, _)), None) => Some(at),
            _ => None,
        }
    }

    /// Whether all options but one are spoken against, and that one is not spoken of: then it is left.
    pub fn left(&self, mentions: &[Mention]) -> Option<usize> {
        let mut left: Vec<usize> = (0..self.items.len()).collect();
        left.retain(|at| mentions.iter().all(|m| m.item != *at));
        match left.as_slice() {
            [one] if self.items.len() > 1 && mentions.iter().all(|m| m.rejected) => Some(*one),
            _ => None,
        }
    }

    /// Whether yes or no is said here, and not `no doubt` or `is it`.
    fn is_said(&self, words: &[Word], at: usize, length: usize) -> bool {
        if !self.yes_no {
            if let (1, [letter]) = (length, words[at].lower.as_bytes())
                && letter.is_ascii_alphabetic()
            {
                return is_letter_named(words, at);
            }
            // The right answer need not be the one that is called `right`.
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
        ends && (starts || cue) || words.len() == length || last.quoted
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    None,
    Clause,
    Sentence,
}

#[derive(Clone, Debug)]
struct Word {
    text: String,
    lower: String,
    /// What stands behind it.
    stop: Stop,
    /// Whether it is in brackets, or a bracket or colon follows.
    marked: bool,
    quoted: bool,
}

fn words(text: &str) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut word = String::new();
    let mut opened = None;
    let push = |word: &mut String, opened: Option<char>, out: &mut Vec<Word>| {
        if !word.is_empty() {
            let text = std::mem::take(word);
            out.push(Word {
                lower: text.to_lowercase().replace('’', "'"),
                text,
                stop: Stop::None,
                marked: matches!(opened, Some('(' | '[' | '*' | '`' | '（' | '【')),
                quoted: matches!(opened, Some('"' | '“' | '„' | '«' | '*' | '\'' | '‘' | '`')),
            });
        }
    };
    let mut before = None;
    let chars: Vec<char> = text.chars().collect();
    for (at, c) in chars.iter().copied().enumerate() {
        let next = chars.get(at + 1).copied();
        let inside = match c {
            '\'' | '’' | '.' | ',' => {
                !word.is_empty()
                    && next.is_some_and(char::is_alphanumeric)
                    && (c == '\''
                        || c == '’'
                        || word.ends_with(|c: char| c.is_ascii_digit())
                            && next.is_some_and(|n| n.is_ascii_digit()))
            }
            '+' | '#' => !word.is_empty(),
            c => (c.is_alphanumeric() || c == '_') && !is_han(c),
        };
        if inside {
            if word.is_empty() {
                opened = before;
            }
            word.push(c);
        } else {
            push(&mut word, opened, &mut out);
            if is_han(c) {
                word.push(c);
                push(&mut word, before, &mut out);
            }
            if let Some(last) = out.last_mut() {
                match c {
                    '.' | '!' | '?' | '。' | '！' | '？' => last.stop = Stop::Sentence,
                    ',' | ';' | ':' | '/' | '，' | '；' | '：' | '、' | '—' | '–' | '\n' | '('
                    | ')' | '（' | '）'
                        if last.stop == Stop::None =>
                    {
                        last.stop = Stop::Clause;
                    }
                    '-' if before == Some(' ') && last.stop == Stop::None => {
                        last.stop = Stop::Clause
                    }
                    _ => {}
                }
                if matches!(c, ')' | ']' | '）' | '】') {
                    last.marked = true;
                }
            }
        }
        before = Some(c);
    }
    push(&mut word, opened, &mut out);
    out
}

/// Whether a letter is an option that is called so, and not the article of `a backup` or the pronoun of `I think`.
fn is_letter_named(words: &[Word], at: usize) -> bool {
    let word = &words[at];
    let is_also_a_word = ["a", "i", "o", "y", "e"].contains(&word.lower.as_str());
    if !is_also_a_word || word.text != word.lower {
        return is_label(words, at);
    }
    let named = |b: usize| CALLED.contains(&words[b].lower.as_str());
    word.marked || words.len() == 1 || at.checked_sub(1).is_some_and(named)
}

/// Words that say that a letter behind them is a label.
const CALLED: &[&str] = &[
    "option",
    "answer",
    "choice",
    "candidate",
    "antwort",
    "réponse",
    "respuesta",
    "opción",
    "label",
    "letra",
    "lettre",
];

/// Whether a capital letter is a label here, and not the article or the pronoun.
fn is_label(words: &[Word], at: usize) -> bool {
    let word = &words[at];
    let before = at.checked_sub(1).map(|b| words[b].lower.as_str());
    let introduced = before.is_some_and(|b| {
        CALLED.contains(&b)
            || [
                "choix",
                "choose",
                "pick",
                "vote",
                "for",
                "prefer",
                "select",
                "wähle",
                "nehme",
                "für",
                "choisis",
                "pour",
                "elijo",
                "por",
                "选",
                "项",
                "als",
                "than",
                "over",
                "with",
                "is",
                "ist",
                "est",
                "es",
                "be",
                "not",
                "nicht",
                "pas",
                "no",
                "投",
                "择",
                "是",
                "给",
                "variante",
                "recommend",
                "take",
                "said",
                "to",
                "答",
                "案",
                "as",
                "zu",
                "à",
                "a",
                "favor",
                "favour",
                "of",
                "und",
                "and",
                "or",
                "oder",
                "ou",
                "o",
                "但",
                "认",
                "为",
                "statt",
                "que",
                "thought",
                "dachte",
                "voto",
                "stimme",
                "prefiero",
                "préfère",
                "nach",
                "instead",
                "rather",
            ]
            .contains(&b)
    });
    let next = words.get(at + 1);
    if word.marked {
        return true;
    }
    match word.text.as_str() {
        // `A man`, `I think`: only where it cannot be the article or the pronoun.
        "A" | "I" | "O" | "Y" | "E" => match next {
            _ if word.stop != Stop::None => true,
            None => true,
            Some(next)
                if [
                    "or", "and", "oder", "und", "ou", "et", "o", "y", "vs", "或", "和",
                ]
                .contains(&next.lower.as_str())
                    && word.text == "A" =>
            {
                true
            }
            Some(next) if introduced => {
                word.text != "I"
                    && ([
                        "is", "was", "because", "over", "ist", "weil", "est", "car", "es",
                        "porque", "and", "or", "but", "than", "und", "oder", "mais", "pero", "as",
                        "here", "since", "has", "looks", "seems", "wins",
                    ]
                    .contains(&next.lower.as_str())
                        || before.is_some_and(|b| CALLED.contains(&b)))
            }
            Some(next) => {
                [
                    "is", "was", "ist", "war", "est", "es", "wins", "beats", "looks", "seems",
                    "has", "fails", "scheidet", "是",
                ]
                .contains(&next.lower.as_str())
                    && word.text == "A"
                    && at == 0
            }
        },
        _ => {
            introduced
                || word.stop != Stop::None
                || next.is_none()
                || at == 0
                || word.text.chars().count() > 1
                || next.is_some_and(|n| n.lower.chars().all(char::is_alphabetic))
        }
    }
}

/// Whether the option at a place is spoken against.
fn against(words: &[Word], at: usize, length: usize, taken: &[bool], not_first: bool) -> bool {
    // Before it, in the same clause, up to the option before.
    let mut from = at;
    for back in 1..=5 {
        let Some(place) = at.checked_sub(back) else {
            break;
        };
        let word = &words[place];
        if word.stop != Stop::None
            || taken[place] && back > 1 && words[place].lower.chars().count() > 1
        {
            break;
        }
        if taken[place] {
            break;
        }
        from = place;
    }
    let before: Vec<&str> = words[from..at].iter().map(|w| w.lower.as_str()).collect();
    let joined = before.join(" ");
    for (place, word) in before.iter().enumerate() {
        let near = before.len() - place <= 5;
        let hit = (AGAINST_BEFORE.contains(word) || COMPARATIVE.contains(word))
            && match *word {
                w if COMPARATIVE.contains(&w) => not_first && before.len() - place <= 3,
                "en" | "lugar" | "vez" => {
                    joined.contains("en lugar de") || joined.contains("en vez de")
                }
                "lieu" => joined.contains("au lieu de"),
                "plutôt" => joined.contains("plutôt que"),
                "instead" => joined.contains("instead of"),
                "rather" => joined.contains("rather than"),
                "rule" | "ruled" => joined.contains("out"),
                "cannot" | "can't" => !followed(words, at + length, "highly enough"),
                "no" => {
                    !joined.contains("no doubt")
                        && !joined.contains("no question")
                        && before.len() - place <= 4
                }
                "not" => !joined.contains("not only") && !joined.contains("why not"),
                "without" | "ohne" | "sans" | "sin" => {
                    !joined.contains("without a doubt")
                        && !joined.contains("ohne zweifel")
                        && !joined.contains("sans doute")
                        && !joined.contains("sin duda")
                }
                _ => true,
            };
        if hit && near {
            return true;
        }
    }
    if [
        "anything but",
        "anyone but",
        "everything but",
        "all but",
        "everything except",
        "alles außer",
        "alles andere als",
        "tout sauf",
        "todo menos",
        "cualquiera menos",
        "cualquier cosa menos",
    ]
    .iter()
    .any(|words| joined.contains(words))
        || joined.replace(' ', "").ends_with("除了")
    {
        return true;
    }
    if joined.ends_with("preferable to")
        || joined.ends_with("superior to")
        || not_first && joined.ends_with("preferred to")
    {
        return true;
    }
    let han = joined.replace(' ', "");
    if ["而不是", "不是", "不选", "不要", "并非", "排除", "反对"]
        .iter()
        .any(|w| han.contains(w))
    {
        return true;
    }
    // Behind it, up to the end of the clause.
    let end = at + length;
    if words[end - 1].stop == Stop::Sentence {
        return false;
    }
    let mut after = String::new();
    for word in words.iter().skip(end).take(6) {
        let glue = if word.lower.chars().all(is_han) {
            ""
        } else {
            " "
        };
        after.push_str(glue);
        after.push_str(&word.lower);
        if word.stop != Stop::None {
            break;
        }
    }
    let after = after.trim();
    words[end - 1].stop == Stop::None && AGAINST_AFTER.iter().any(|w| after.starts_with(w))
}

/// Whether these words follow at a place.
fn followed(words: &[Word], at: usize, by: &str) -> bool {
    by.split(' ')
        .enumerate()
        .all(|(n, word)| words.get(at + n).is_some_and(|w| w.lower == word))
}

/// Words in lower case with single spaces, without marks around them.
fn folded(text: &str) -> String {
    let lower = text.to_lowercase().replace('’', "'");
    let joined: Vec<&str> = lower.split_whitespace().collect();
    joined
        .join(" ")
        .trim_matches([
            '*', '_', '`', '"', '“', '”', '„', '«', '»', '\'', ' ', '.', '!', '。', ',', ';', ':',
        ])
        .to_owned()
}
