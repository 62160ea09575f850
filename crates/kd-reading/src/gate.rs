//! The last check of an answer found in prose. A value is taken only from a position of commitment, and only if each
//! competing value in the reply is accounted for. [`open`] returns the reason why a reply stays open; [`REASONS`] is
//! the complete table.

use super::candidates::{Candidate, Standing};
use super::clauses::{Before, Role, Sentence};
use super::cues;
use super::gate_account::{Account, is_negative, lower};
use super::gate_mentions::{
    is_aside, is_bounded, is_examined, is_foreign, is_listed, is_ranked, is_relative,
};
use super::gate_reasons::{
    commits_later, ends_otherwise, ends_short, ends_with_several, gives_up, goes_on, has_rival,
    is_bettered, is_denied, is_outtalked, is_outweighed, is_parallel, is_ruled_out, is_spoken_for,
    is_unfounded,
};
use super::language::is_han;

/// Why a reply stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// Only reported, listed, ranked second, conditional or ruled out.
    Unfounded,
    /// The reply ends without a decision.
    GivesUp,
    /// The reply says the same about another value: `either 5 or 7`, `tea for guests, milk for me`.
    Parallel,
    /// A later sentence commits to another value.
    CommitsLater,
    /// The last sentence with values names only others.
    EndsOtherwise,
    /// Other options are named after one without a strong commitment.
    Outtalked,
    /// The author speaks of another option before one in passing.
    SpokenFor,
    /// The reply ends with a bound, or with another number alone.
    EndsShort,
    /// A later sentence rules the option out.
    RuledOut,
    /// Several numbers come last.
    EndsWithSeveral,
    /// An earlier sentence commits more strongly to another number.
    Outweighed,
    /// A value in passing, and another one that nothing explains.
    Rival,
    /// The sentence continues with something better that is not an option.
    Bettered,
    /// A value mentioned in passing; the rest of the reply may contain the answer.
    GoesOn,
    /// A value in passing, in a clause that denies something.
    Denied,
}

type Check = fn(&Account) -> bool;

/// Kinds of mentions that are not an answer in any wording: the choice of somebody else, a rank after the first, one
/// item of a list.
const EXPLAINED: [fn(&Account, &Candidate) -> bool; 7] = [
    is_foreign,
    is_ranked,
    is_listed,
    is_aside,
    is_examined,
    is_relative,
    is_bounded,
];

/// The reasons, in the order in which they are checked.
const REASONS: [(Open, Check); 15] = [
    (Open::Unfounded, is_unfounded),
    (Open::GivesUp, gives_up),
    (Open::Parallel, is_parallel),
    (Open::CommitsLater, commits_later),
    (Open::EndsOtherwise, ends_otherwise),
    (Open::Outtalked, is_outtalked),
    (Open::SpokenFor, is_spoken_for),
    (Open::EndsShort, ends_short),
    (Open::RuledOut, is_ruled_out),
    (Open::EndsWithSeveral, ends_with_several),
    (Open::Outweighed, is_outweighed),
    (Open::Rival, has_rival),
    (Open::Bettered, is_bettered),
    (Open::GoesOn, goes_on),
    (Open::Denied, is_denied),
];

/// Returns why the found answer is not certain. `numbers` tells whether the values are numbers.
pub(super) fn open(
    sentences: &[&Sentence],
    candidates: &[Candidate],
    numbers: bool,
) -> Option<Open> {
    let says = |s: &&Sentence| {
        let lower = lower(s);
        !super::sayings::is_courtesy(&s.text)
            && !super::prose::is_about_confidence(&s.text)
            && !is_sureness(&lower)
            && !s.is_aside()
    };
    let mut account = Account {
        sentences,
        candidates: ends_of(candidates),
        end: sentences.iter().rposition(says).unwrap_or(0),
        numbers,
    };
    let explained: Vec<bool> = account
        .candidates
        .iter()
        .map(|c| c.standing > Standing::Explained && EXPLAINED.iter().any(|fits| fits(&account, c)))
        .collect();
    for (candidate, explained) in account.candidates.iter_mut().zip(explained) {
        if explained {
            candidate.standing = Standing::Explained;
        }
    }
    let mut failing = REASONS.iter().filter(|(_, fails)| fails(&account));
    failing.next().map(|(reason, _)| *reason)
}

/// Maximum number of mentions kept from the beginning, and from the end, of a reply.
const MENTIONS_MAX: (usize, usize) = (8, 40);

/// Returns the first and the last mentions of a long reply, and all of a short one.
fn ends_of(candidates: &[Candidate]) -> Vec<Candidate> {
    let (first, last) = MENTIONS_MAX;
    match candidates.len() > first + last {
        true => [&candidates[..first], &candidates[candidates.len() - last..]].concat(),
        false => candidates.to_vec(),
    }
}

/// Returns whether yes or no appears only after words that are not the author's, and more text follows: `On paper yes,
/// in practice it never worked.`
pub(super) fn is_qualified(sentences: &[&Sentence], candidates: &[Candidate]) -> bool {
    const OWN: &[&str] = &[
        "i",
        "i'd",
        "i'm",
        "my",
        "me",
        "we",
        "our",
        "so",
        "then",
        "thus",
        "therefore",
        "hence",
        "answer",
        "is",
        "it's",
        "short",
        "line",
        "verdict",
        "final",
        "vote",
        "but",
        "overall",
        "conclusion",
        "well",
        "okay",
        "ok",
        "oh",
        "hmm",
        "and",
        "or",
        "ich",
        "wir",
        "mein*",
        "also",
        "daher",
        "somit",
        "folglich",
        "antwort",
        "kurz*",
        "ist",
        "lautet",
        "fazit",
        "aber",
        "unterm",
        "ergebnis",
        "na",
        "nun",
        "insgesamt",
        "je",
        "j'*",
        "ma",
        "mon",
        "nous",
        "donc",
        "réponse",
        "est",
        "c'est",
        "bref",
        "mais",
        "eh",
        "bien",
        "conclusion",
        "yo",
        "mi",
        "nosotros",
        "así",
        "tanto",
        "respuesta",
        "es",
        "resumen",
        "pero",
        "pues",
        "bueno",
        "conclusión",
        "que",
        "claro",
        "por",
        "am",
        "sure",
        "absolutely",
        "definitely",
        "clearly",
        "certainly",
        "of course",
        "natürlich",
        "klar",
        "sicher",
        "我",
        "所以",
        "因此",
        "答案",
        "是",
        "总之",
        "结论",
        "那",
        "嗯",
        "但",
        "故",
        "综上",
        "说",
    ];
    let candidates = &ends_of(candidates)[..];
    let mut own = candidates
        .iter()
        .filter(|c| c.own && c.standing > Standing::Explained)
        .peekable();
    let qualified = |c: &Candidate| {
        let Some(sentence) = sentences.get(c.place) else {
            return false;
        };
        let at = sentence.clause_at(c.start);
        let Some(clause) = sentence.clauses.get(at) else {
            return false;
        };
        let head = sentence
            .text
            .get(clause.start..c.start)
            .unwrap_or_default()
            .to_lowercase();
        let leads = head.chars().any(char::is_alphabetic) && !cues::has(near_end(&head), OWN);
        let next = sentence.clauses.get(at + 1);
        let goes_on = next
            .is_some_and(|c| c.role != Role::Reason && c.before != Before::Colon && !c.in_brackets);
        let before = candidates
            .iter()
            .any(|r| !r.own && r.place == c.place && r.end <= c.start);
        leads && (goes_on || before || c.place + 1 < sentences.len())
    };
    let both = |c: &Candidate| {
        let rival = |r: &&Candidate| !r.own && r.place == c.place && r.start > c.end;
        let earlier = |r: &&Candidate| !r.own && r.place == c.place && r.end < c.start;
        let sentence = sentences.get(c.place);
        let turns = sentence.is_some_and(|s| {
            cues::has(&lower(s), cues::TURNS) || s.has(Role::Contrast) || s.has(Role::Conclusion)
        });
        !turns && candidates.iter().any(|r| rival(&r) || earlier(&r)) && qualified(c)
    };
    own.peek().is_some() && (own.clone().all(qualified) || own.any(both))
}

/// Returns the last words of a text.
fn near_end(text: &str) -> &str {
    const WORDS_MAX: usize = 5;
    let mut starts = text.rmatch_indices(' ').map(|(at, _)| at);
    let start = starts.nth(WORDS_MAX).unwrap_or(0);
    text.get(start..).unwrap_or(text)
}

/// Returns whether the reply leaves the remaining options open after its rejections.
pub(super) fn leaves_open(sentences: &[&Sentence]) -> bool {
    let account = Account {
        sentences,
        candidates: Vec::new(),
        end: sentences.len().saturating_sub(1),
        numbers: false,
    };
    const NEITHER: &[&str] = &["neither", "weder", "ni", "都说服不了", "都不"];
    const REGRETS: &[&str] = &[
        "regret",
        "bereuen",
        "verkehrt",
        "regretterez",
        "arrepentir*",
        "后悔",
    ];
    let doubts = |s: &&Sentence| {
        let lower = lower(s);
        cues::has(&lower, REGRETS) || cues::has(&lower, NEITHER) && s.clauses.len() < 3
    };
    gives_up(&account) || sentences.iter().any(doubts)
}

/// Returns whether a sentence only tells how sure its author is: `I'm 90 % sure.`
fn is_sureness(lower: &str) -> bool {
    const SURE: &[&str] = &[
        "sure",
        "certain",
        "confident",
        "confidence",
        "sicher",
        "überzeugt",
        "sûr",
        "sûre",
        "certain",
        "certaine",
        "seguro",
        "segura",
        "把握",
        "确定",
        "肯定",
    ];
    const WORDS_MAX: usize = 8;
    let short = match lower.chars().any(is_han) {
        true => lower.chars().count() <= 2 * WORDS_MAX,
        false => lower.split_whitespace().count() <= WORDS_MAX,
    };
    short && cues::has(lower, SURE) && !is_negative(lower) && !lower.contains(['?', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clauses;

    /// Parses a text in which a mark follows each value: `tea[L]`; `*` marks the answer.
    fn account(marked: &str) -> (Vec<Sentence>, Vec<Candidate>) {
        let mut plain = String::new();
        for part in marked.split('[') {
            plain.push_str(part.split_once(']').map_or(part, |(_, rest)| rest));
        }
        let sentences = clauses::sentences(&plain);
        let mut values = marked.split('[').peekable();
        let mut candidates = Vec::new();
        let (mut place, mut from) = (0, 0);
        while let Some(part) = values.next() {
            let Some(mark) = values.peek().and_then(|next| next.split_once(']')) else {
                break;
            };
            let lead = |c: char| c.is_whitespace() || is_han(c) || "\"“，。（(→".contains(c);
            let value = part.rsplit(lead).next().unwrap_or_default();
            let value = value.rsplit(']').next().unwrap_or_default();
            let found = loop {
                let text = &sentences[place].text;
                match text.get(from..).and_then(|t| t.find(value)) {
                    Some(at) => break from + at,
                    None => (place, from) = (place + 1, 0),
                }
            };
            from = found + value.len();
            candidates.push(Candidate {
                own: mark.0.ends_with('*'),
                standing: match mark.0.chars().next() {
                    Some('R') => Standing::Rejected,
                    Some('E') => Standing::Explained,
                    Some('L') => Standing::Loose,
                    Some('F') => Standing::Favoured,
                    _ => Standing::Committed,
                },
                place,
                start: found,
                end: from,
            });
        }
        (sentences, candidates)
    }

    fn reason(marked: &str, numbers: bool) -> Option<Open> {
        let (sentences, candidates) = account(marked);
        open(&sentences.iter().collect::<Vec<_>>(), &candidates, numbers)
    }

    type Cases = [(Option<Open>, &'static [&'static str])];

    /// Returns the cases with another reason.
    fn differing(cases: &Cases, numbers: bool) -> Vec<String> {
        let cases = cases.iter();
        let cases = cases.flat_map(|(want, replies)| replies.iter().map(move |r| (want, *r)));
        cases
            .map(|(want, reply)| (*want, reason(reply, numbers), reply))
            .filter(|(want, found, _)| want != found)
            .map(|(want, found, reply)| format!("{reply}: {found:?}, not {want:?}"))
            .collect()
    }

    #[test]
    fn each_reason_leaves_a_choice_open() {
        assert_eq!(differing(CHOICES, false), Vec::<String>::new());
    }

    #[test]
    fn each_reason_leaves_a_number_open() {
        assert_eq!(differing(NUMBERS, true), Vec::<String>::new());
    }

    const CHOICES: &Cases = &[
        (
            Some(Open::Unfounded),
            &[
                "My colleague prefers tea[C*].",
                "Mi compañero prefiere tea[C*].",
                "Second choice: tea[C*].",
                "tea[C*] ist meine zweite Wahl.",
                "The options are tea[C*], coffee[C] and cocoa[C].",
                "Sans cela, tea[L*] contre coffee[R].",
                "Let me compare tea[C*] with the rest.",
                "The team that chose tea[C*] was sorry.",
                "I know them. (tea[L*] was close.)",
            ],
        ),
        (
            Some(Open::GivesUp),
            &[
                "tea[L*] is fast. I'd need more information.",
                "tea[C*] ist schnell. Das kann ich nicht entscheiden.",
                "tea[C*] est rapide. Je ne peux pas trancher.",
                "tea[C*] es rápido. No puedo decidir.",
                "我选tea[C*]。我算不出来，也没法说。",
            ],
        ),
        (
            Some(Open::Parallel),
            &[
                "tea[C*] gains on price, coffee[L] gains on taste.",
                "tea[C*] for guests and coffee[C] for hosts.",
                "tea[C*] if you value calm, coffee[L] if you value speed.",
                "Il y a autant de raisons de prendre tea[C*] que coffee[R].",
                "原型用tea[C*]，生产用coffee[C]。",
            ],
        ),
        (
            Some(Open::CommitsLater),
            &["I choose tea[C*]. I choose coffee[C]."],
        ),
        (
            Some(Open::EndsOtherwise),
            &["Some had cocoa[L]. tea[C*] is hot. The money goes on coffee[L]."],
        ),
        (
            Some(Open::Outtalked),
            &["tea[C*] is hotter. For me it may be coffee[E]."],
        ),
        (
            Some(Open::SpokenFor),
            &["I put money on coffee[E]. The friends of tea[L*] will be sad."],
        ),
        (
            Some(Open::RuledOut),
            &["I'd choose tea[C*]. But tea[R*] does not help."],
        ),
        (
            Some(Open::Rival),
            &["Mondays I'd say tea[C*], on Fridays coffee[L]."],
        ),
        (
            Some(Open::Bettered),
            &["There's a case for tea[F*]; there's a better one for asking."],
        ),
        (
            Some(Open::GoesOn),
            &[
                "tea[L*] is mild. How many guests are there?",
                "tea[L*] is mild. I have a proposal.",
            ],
        ),
        (Some(Open::Denied), &["tea[L*] is not mild."]),
        (
            None,
            &[
                "coffee[L] is fast. I choose tea[C*].",
                "I choose tea[C*]. coffee[L] is for others.",
                "I choose tea[C*]. coffee[C] is my second choice.",
                "I choose tea[C*] over coffee[L].",
                "tea[L*] is mild. The leaves keep for a year.",
                "tea[L*] can't go wrong.",
                "tea[L*].",
            ],
        ),
    ];

    const NUMBERS: &Cases = &[
        (
            Some(Open::Unfounded),
            &[
                "In any case more than 40[C*].",
                "No more than 40[C*], no fewer than 30[L].",
                "反正比40[C*]多。",
            ],
        ),
        (
            Some(Open::GivesUp),
            &[
                "First, we get 12[C*]. I can't compute that.",
                "40[C*] are known. The third figure is missing.",
            ],
        ),
        (
            Some(Open::Parallel),
            &[
                "One source has 5[C*], the other has 7[L].",
                "要么是5[L]，要么是7[L*]。",
            ],
        ),
        (
            Some(Open::CommitsLater),
            &["We get 40[C*]. So the total is 35[C]."],
        ),
        (
            Some(Open::EndsOtherwise),
            &["There are 5[L] left. The page has 40[C*] lines. Then there are 35[L]."],
        ),
        (
            Some(Open::EndsShort),
            &[
                "The list has 40[C*] rows. At least 40[E*].",
                "So the total is 40[C*]. 35[E] then.",
            ],
        ),
        (
            Some(Open::EndsWithSeveral),
            &["It gives 40[C*]. We know 40[E*] and 35[E]."],
        ),
        (
            Some(Open::Outweighed),
            &["The answer is 40[C]. Last year there were 35[C*] instead."],
        ),
        (
            Some(Open::Rival),
            &["The brochure has 40[L*] pages. The flyer has 35[E] pages."],
        ),
        (
            Some(Open::GoesOn),
            &["The brochure has 40[L*] pages. We are happy with it."],
        ),
        (
            None,
            &[
                "The list has 40[L] rows. So the total is 39[C*].",
                "7[L] days of 24[L] hours are 168[C*] hours in total.",
                "The total is 40[C*]. 8[E] times 5[E] gives 40[C*].",
                "It has 40[L*] pages. The cover is red.",
            ],
        ),
    ];
}
