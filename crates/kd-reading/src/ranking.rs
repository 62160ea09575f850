//! Rankings: options after list numbers or ordinals, best first.

use super::clauses;
use super::cues;
use super::options::Options;

/// Words that mark a list as ordered by merit.
const RANKED: &[&str] = &[
    "rank",
    "ranked",
    "ranking",
    "rankings",
    "rank order",
    "best first",
    "order of preference",
    "in order",
    "priority",
    "priorities",
    "best to worst",
    "rangliste",
    "rangfolge",
    "reihenfolge",
    "platzierung",
    "priorität*",
    "classement",
    "par ordre",
    "ordre de préférence",
    "priorité*",
    "clasificación",
    "orden de preferencia",
    "ranking",
    "prioridad*",
    "排名",
    "排序",
    "优先级",
    "从高到低",
    "从好到差",
];

/// Ordinals that mark a ranking without another word; `1` is the first place.
const FIRST: &[&str] = &[
    "1st",
    "#1",
    "1er",
    "1re",
    "1ère",
    "1º",
    "1.º",
    "1ª",
    "no. 1",
    "first place",
];

/// Returns the option ranked first.
pub(super) fn first(text: &str, options: &Options) -> Option<usize> {
    let lower = text.to_lowercase();
    let says = cues::has(&lower, RANKED) || FIRST.iter().any(|w| lower.contains(w));
    if !says || cues::has(&lower, &["worst first", "worst to best"]) {
        return None;
    }
    if let Some(first) = in_line(text, options) {
        return Some(first);
    }
    let marks = marks(text);
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (n, (number, from)) in marks.iter().enumerate() {
        let to = marks.get(n + 1).map_or(text.len(), |(_, at)| *at);
        let part = text.get(*from..to)?;
        let part = part.lines().next().unwrap_or_default();
        let head = clauses::clauses(part);
        let end = head.first().map_or(part.len(), |c| c.end);
        let mentions = options.mentions(part.get(..end)?);
        let item = mentions.first()?.item;
        if mentions.iter().any(|m| m.item != item) {
            return None;
        }
        places.push((*number, item));
    }
    let counts_up = places
        .iter()
        .enumerate()
        .all(|(n, (number, _))| *number == n + 1);
    let mut items: Vec<usize> = places.iter().map(|(_, item)| *item).collect();
    items.sort_unstable();
    items.dedup();
    (counts_up && places.len() > 1 && items.len() == places.len()).then(|| places[0].1)
}

/// Returns the first option after a ranking word: `My ranking is B, A, C.`
fn in_line(text: &str, options: &Options) -> Option<usize> {
    let line = text
        .lines()
        .rev()
        .find(|line| cues::has(&line.to_lowercase(), RANKED))?;
    let lower = line.to_lowercase();
    let at = RANKED.iter().filter_map(|w| cues::find(&lower, w)).max()?;
    let rest = line.get(at..)?;
    let cut = [":", "：", " is ", " ist ", " est ", " es ", "是", "为"]
        .iter()
        .filter_map(|w| rest.find(w).map(|at| at + w.len()))
        .min()?;
    let rest = rest.get(cut..)?.split(['.', '。', ';']).next()?;
    let mut order = Vec::new();
    for piece in rest.split([',', '>', '，', '、']) {
        let mentions = options.mentions(piece);
        let item = mentions.first()?.item;
        if mentions.iter().any(|m| m.item != item || m.rejected) || order.contains(&item) {
            return None;
        }
        order.push(item);
    }
    (order.len() > 1 && order.len() == options.names().count()).then(|| order[0])
}

/// Returns the numbers that begin items, each with the position after it: `1.`, `2)`, `1er`, `3rd`, `#1`.
fn marks(text: &str) -> Vec<(usize, usize)> {
    const BEHIND: &[&str] = &[
        ".º", "ère", "eme", "ème", "er", "re", "st", "nd", "rd", "th", "º", "ª", "e", ".", ")",
        ":", "、",
    ];
    let mut out = Vec::new();
    let mut before = '\n';
    for (at, c) in text.char_indices() {
        let opens =
            before.is_whitespace() || matches!(before, '#' | '(' | '*' | '，' | '：' | ',' | ':');
        let next = text.get(at + 1..).unwrap_or_default();
        let single = c.is_ascii_digit() && !next.starts_with(|n: char| n.is_ascii_digit());
        if single && opens {
            let behind = BEHIND.iter().find(|b| {
                next.strip_prefix(**b)
                    .is_some_and(|rest| rest.starts_with([' ', '*', ')', ':', ',', '：']))
                    || **b == "、" && next.starts_with('、')
            });
            let length = match (behind, before) {
                (Some(behind), _) => Some(behind.len()),
                (None, '#') => Some(0),
                _ => None,
            };
            if let (Some(length), Some(number)) = (length, c.to_digit(10)) {
                out.push((number as usize, at + 1 + length));
            }
        }
        before = c;
    }
    out
}
