//! The sentences of a reply and the values in them, as the [gate](super::gate) sees them.

use super::candidates::{Candidate, Standing};
use super::clauses::{Before, Role, Sentence};
use super::cues;
use super::gate_words::{NEGATIONS, TOTALS};
use super::language::is_han;

/// The sentences of a reply, and the values in them.
pub(super) struct Account<'a> {
    pub(super) sentences: &'a [&'a Sentence],
    pub(super) candidates: Vec<Candidate>,
    /// Index of the last sentence that says something.
    pub(super) end: usize,
    pub(super) numbers: bool,
}

/// Maximum bytes read on each side of a value.
const AROUND_BYTES_MAX: usize = 240;
/// Maximum bytes read of a sentence, counted from its end.
const SENTENCE_BYTES_MAX: usize = 600;

/// Maximum words before a colon that belong to the value behind it.
pub(super) const LEAD_WORDS_MAX: usize = 4;

impl Account<'_> {
    /// Returns the mentions of the answer with its highest standing.
    pub(super) fn own(&self) -> impl Iterator<Item = &Candidate> {
        let own = |c: &&Candidate| c.own;
        let best = self.candidates.iter().filter(own).map(|c| c.standing).max();
        let all = self.candidates.iter();
        all.filter(move |c| c.own && Some(c.standing) == best)
    }

    /// Returns the last of them.
    pub(super) fn last(&self) -> Option<&Candidate> {
        self.own().last()
    }

    pub(super) fn is_loose(&self) -> bool {
        self.last().is_some_and(|c| c.standing <= Standing::Loose)
    }

    /// Returns whether another value follows in the same clause without a comparison, or makes up the next one: `tea on
    /// Mondays, coffee on Fridays`.
    pub(super) fn goes_beside(&self, own: &Candidate, other: &Candidate) -> bool {
        const COMPARES: &[&str] = &[
            "than",
            "over",
            "rather",
            "instead",
            "before",
            "from",
            "beats",
            "not",
            "ahead of",
            "statt",
            "anstatt",
            "als",
            "eher",
            "lieber",
            "vor",
            "plutôt",
            "au lieu",
            "avant",
            "plus que",
            "mieux",
            "devant",
            "antes",
            "lugar",
            "vez",
            "mejor",
            "sobre",
            "más que",
            "比",
            "而不是",
            "而非",
            "不如",
            "优于",
            "胜过",
            "好过",
        ];
        const WORDS_MAX: usize = 3;
        let Some(sentence) = self.sentences.get(own.place) else {
            return false;
        };
        if own.place != other.place || other.start < own.start {
            return false;
        }
        let (at, there) = (
            sentence.clause_at(own.start),
            sentence.clause_at(other.start),
        );
        let around = self.around(other);
        if at == there {
            return !cues::has(&around, COMPARES);
        }
        let clause = &sentence.clauses[there];
        let few = |text: &str| {
            let words = text.split(|c: char| !c.is_alphanumeric());
            words.filter(|w| !w.is_empty()).count() < WORDS_MAX
        };
        let joined = matches!(clause.before, Before::Comma | Before::Word);
        there == at + 1
            && joined
            && clause.role == Role::Claim
            && few(&around)
            && !few(&self.around(own))
            && !around.chars().any(is_han)
            && !is_negative(&around)
    }

    /// Returns whether the words around a value commit the author to it: `my choice`, `the answer is`, bold, or nothing.
    pub(super) fn is_strong(&self, candidate: &Candidate) -> bool {
        const COMMITS: &[&str] = &[
            "i",
            "i'd",
            "i'll",
            "my",
            "we",
            "let's",
            "answer",
            "recommend*",
            "best",
            "right",
            "correct",
            "choose",
            "pick",
            "use",
            "go with",
            "take",
            "choice",
            "winner",
            "wins",
            "should",
            "must",
            "ich",
            "mein*",
            "wir",
            "antwort",
            "empfehl*",
            "beste*",
            "richtig*",
            "nehmt",
            "nehmen",
            "wählt",
            "sollte*",
            "je",
            "j'*",
            "mon",
            "ma",
            "nous",
            "réponse",
            "recommand*",
            "meilleur*",
            "bon",
            "bonne",
            "prenez",
            "choisissez",
            "il faut",
            "yo",
            "mi",
            "respuesta",
            "recomiend*",
            "mejor",
            "correct*",
            "elige",
            "elijo",
            "vote",
            "votes",
            "for me",
            "looking for",
            "gesucht*",
            "stimm*",
            "cherch*",
            "buscad*",
            "voto",
            "要找",
            "投",
            "选",
            "debe*",
            "我",
            "答案",
            "推荐",
            "建议",
            "最",
            "应",
            "正确",
        ];
        const ANSWERS: &[&str] = &[
            "answer",
            "looking for",
            "recommend*",
            "should",
            "must",
            "antwort",
            "gesucht*",
            "empfehl*",
            "sollte*",
            "réponse",
            "cherch*",
            "recommand*",
            "respuesta",
            "buscad*",
            "recomiend*",
            "答案",
            "要找",
            "建议",
            "应",
        ];
        const WORDS_MAX: usize = 1;
        let around = self.around(candidate);
        let few = match around.chars().any(is_han) {
            true => around.chars().filter(|c| is_han(*c)).count() <= WORDS_MAX,
            false => {
                around
                    .split(|c: char| !c.is_alphanumeric())
                    .filter(|w| !w.is_empty())
                    .count()
                    <= WORDS_MAX
            }
        };
        let pointed = self.sentences.get(candidate.place).is_some_and(|s| {
            let at = s.clause_at(candidate.start);
            let clause = s.clauses.get(at);
            !self.numbers && clause.is_some_and(|c| c.before == Before::Colon)
        });
        let calculates = self.numbers
            && (cues::has(&around, TOTALS) || cues::has(&around, super::amount_words::STATES));
        let case = self.numbers
            && self
                .sentences
                .get(candidate.place)
                .is_some_and(|s| s.has(Role::Condition));
        candidate.standing == Standing::Committed
            && !case
            && (few
                || pointed
                || !self.numbers && cues::has(&around, COMMITS)
                || around.contains("**")
                || calculates
                || cues::has(&around, ANSWERS))
    }

    /// Returns whether two options have parts of one sentence that are built alike: `tea for guests and milk for me`.
    pub(super) fn are_paired(&self, one: &Candidate, other: &Candidate) -> bool {
        const AND: &[&str] = &[
            "and",
            "und",
            "et",
            "y",
            "while",
            "während",
            "tandis que",
            "mientras",
        ];
        /// Maximum number of words between two options whose verb is shared.
        const GAP_WORDS_MAX: usize = 4;
        const FOR: [&str; 5] = ["for", "für", "pour", "por", "para"];
        let Some(sentence) = self.sentences.get(one.place).filter(|_| !self.numbers) else {
            return false;
        };
        let (first, second) = if one.start < other.start {
            (one, other)
        } else {
            (other, one)
        };
        let part = |from: usize, to: usize| sentence.text.get(from..to).unwrap_or_default();
        let near = first.start.saturating_sub(AROUND_BYTES_MAX);
        let before = part(sentence.text.ceil_char_boundary(near), first.start);
        let between = part(first.end, second.start);
        if between.len() > AROUND_BYTES_MAX {
            return false;
        }
        let behind = part(second.end, sentence.text.len());
        // `原型用茶，生产用奶`
        let last = |text: &str| text.chars().next_back().filter(|c| is_han(*c));
        let split = between.rfind(['，', ',', '；']).map(|at| &between[at..]);
        if let (Some(a), Some(rest)) = (last(before), split) {
            return last(rest) == Some(a) && !is_negative(before) && !is_negative(between);
        }
        // `Price argues for tea, taste for milk.`
        let lead = |text: &str| {
            let word = text
                .trim_end()
                .rsplit(|c: char| !c.is_alphanumeric())
                .next();
            word.map(str::to_lowercase)
                .filter(|word| FOR.contains(&word.as_str()))
        };
        let comma = between.contains([',', ';'])
            && between.split_whitespace().count() <= GAP_WORDS_MAX
            && !is_negative(&between.to_lowercase());
        if comma && lead(before).is_some() && lead(before) == lead(between) {
            return true;
        }
        let word = |text: &str| {
            let words = text
                .split(|c: char| !c.is_alphanumeric())
                .find(|w| !w.is_empty());
            words.map(str::to_lowercase)
        };
        let joined =
            cues::has(&between.to_lowercase(), AND) && !is_negative(&between.to_lowercase());
        joined && word(between).is_some() && word(between) == word(behind)
    }

    pub(super) fn rivals(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|c| !c.own)
    }

    /// Returns the words of the clause around a value, without the value.
    pub(super) fn around(&self, candidate: &Candidate) -> String {
        self.words(candidate, false)
    }

    /// Returns the words around a value; if `led`, with a short clause that a colon joins to it: `Second place: tea`.
    pub(super) fn words(&self, candidate: &Candidate, led: bool) -> String {
        let Some(sentence) = self.sentences.get(candidate.place) else {
            return String::new();
        };
        let at = sentence.clause_at(candidate.start);
        let clause = sentence.clauses.get(at);
        let (mut from, to) = clause.map_or((0, sentence.text.len()), |c| (c.start, c.end));
        let lead = at.checked_sub(1).map(|b| &sentence.clauses[b]);
        if let Some(lead) = lead
            && led
            && sentence.clauses[at].before == Before::Colon
            && lead.lower.split_whitespace().count() <= LEAD_WORDS_MAX
        {
            from = lead.start;
        }
        let text = &sentence.text;
        let from =
            from.max(text.ceil_char_boundary(candidate.start.saturating_sub(AROUND_BYTES_MAX)));
        let to = to.min(text.floor_char_boundary(candidate.end + AROUND_BYTES_MAX));
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        let text = format!(
            "{} {}",
            part(from, candidate.start),
            part(candidate.end.min(to), to)
        );
        text.to_lowercase().replace('’', "'")
    }
}

pub(super) fn lower(sentence: &Sentence) -> String {
    let from = sentence.text.len().saturating_sub(SENTENCE_BYTES_MAX);
    let end = sentence.text.get(sentence.text.ceil_char_boundary(from)..);
    end.unwrap_or_default().to_lowercase().replace('’', "'")
}

pub(super) fn is_negative(lower: &str) -> bool {
    cues::has(lower, NEGATIONS)
}
