//! Merges findings that describe the same defect, by place and meaning.
//!
//! Input: findings, and a judge's answers about unclear pairs. Output: clusters, and the pairs worth asking a judge
//! about. Two findings of one member stay apart unless they are nearly identical: a member that lists two means two.
//! Clusters merge by the average over all their pairs, so a chain of similar findings does not drift.

use super::{Cluster, Finding, Raw, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum score of a pair that counts as the same. Tuned on the tuning half of the checked pairs.
pub const SAME: f64 = 0.22;
/// Pairs around [`SAME`] are unclear.
const UNCLEAR: std::ops::Range<f64> = 0.14..0.36;
/// Findings below this score never share a cluster, whatever lines they have in common: a third one, in the words of
/// both, cannot join two unrelated ones.
const APART: f64 = 0.1;
/// Minimum score at which two findings of one member are the same.
const OWN: f64 = 0.75;
/// Maximum findings of one member in a cluster that are compared with findings of other members. They are nearly
/// identical.
const COMPARED_MAX: usize = 4;
/// Maximum number of pairs given to a judge.
pub const PAIRS_MAX: usize = 40;
/// Findings up to `NEAR_LINES` apart count as near, from `FAR_LINES` on as far apart.
const NEAR_LINES: u32 = 3;
const FAR_LINES: u32 = 40;

/// Words that say nothing about the defect.
const STOP: &[&str] = &[
    "a",
    "an",
    "the",
    "and",
    "or",
    "of",
    "to",
    "in",
    "is",
    "are",
    "be",
    "been",
    "it",
    "its",
    "this",
    "that",
    "these",
    "those",
    "for",
    "on",
    "with",
    "by",
    "as",
    "at",
    "if",
    "so",
    "do",
    "does",
    "not",
    "no",
    "can",
    "could",
    "may",
    "might",
    "will",
    "would",
    "should",
    "must",
    "from",
    "than",
    "then",
    "into",
    "when",
    "which",
    "where",
    "has",
    "have",
    "had",
    "was",
    "were",
    "but",
    "instead",
    "rather",
    "any",
    "all",
    "also",
    "only",
    "even",
    "because",
    "before",
    "after",
    "during",
    "while",
    "there",
    "their",
    "they",
    "use",
    "used",
    "using",
    "code",
    "issue",
    "risk",
    "potentially",
    "potential",
    "cause",
    "causes",
    "causing",
    "lead",
    "leading",
    "leads",
];

/// A judge's answers: whether two findings, by their indices, are the same.
pub type Judged = BTreeMap<(usize, usize), bool>;

/// Merged findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// The clusters, as indices of their findings.
    pub clusters: Vec<Vec<usize>>,
    /// The merged pairs: two indices, and the rule that merged them.
    pub joined: Vec<(usize, usize, String)>,
    /// Pairs that the rules leave undecided, the least certain first.
    pub unclear: Vec<(usize, usize)>,
}

/// Merges findings. A judge's answers override the rules.
pub fn merge(raws: &[Raw], judged: &Judged) -> Merged {
    let traits = Traits::of(raws);
    let score = |a: usize, b: usize| match judged.get(&(a.min(b), a.max(b))) {
        Some(true) => 1.0,
        Some(false) => -1.0,
        None => traits.score(raws, a, b),
    };
    let mut scores: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    let mut unlike: BTreeSet<(usize, usize)> = BTreeSet::new();
    for a in 0..raws.len() {
        for b in a + 1..raws.len() {
            let s = score(a, b);
            if s <= -1.0 {
                continue;
            }
            scores.insert((a, b), s);
            if !judged.contains_key(&(a, b)) && traits.by_words(raws, a, b) < APART {
                unlike.insert((a, b));
            }
        }
    }
    let pair = |a: usize, b: usize| {
        let at = (a.min(b), a.max(b));
        scores.get(&at).copied().filter(|_| !unlike.contains(&at))
    };
    let mut order: Vec<(usize, usize)> = scores
        .iter()
        .filter(|(_, s)| **s >= SAME)
        .map(|(at, _)| *at)
        .collect();
    order.sort_by(|x, y| scores[y].total_cmp(&scores[x]).then(x.cmp(y)));
    let mut home: Vec<usize> = (0..raws.len()).collect();
    let mut clusters: Vec<Vec<usize>> = (0..raws.len()).map(|at| vec![at]).collect();
    let mut joined = Vec::new();
    for (a, b) in order {
        let (x, y) = (home[a].min(home[b]), home[a].max(home[b]));
        if x == y || !joins(raws, &clusters[x], &clusters[y], pair) {
            continue;
        }
        let how = match judged.get(&(a, b)) {
            Some(_) => "judged".to_owned(),
            None => format!(
                "rules: {} ({:.2})",
                traits.rule(raws, a, b),
                scores[&(a, b)]
            ),
        };
        joined.push((a, b, how));
        let moved = std::mem::take(&mut clusters[y]);
        for at in &moved {
            home[*at] = x;
        }
        clusters[x].extend(moved);
    }
    clusters.retain(|cluster| !cluster.is_empty());
    let mut unclear: Vec<(usize, usize)> = scores
        .iter()
        .filter(|(at, s)| {
            UNCLEAR.contains(*s)
                && !judged.contains_key(at)
                && raws[at.0].member != raws[at.1].member
        })
        .map(|(at, _)| *at)
        .collect();
    let open = |at: &(usize, usize)| (scores[at] - SAME).abs();
    unclear.sort_by(|x, y| open(x).total_cmp(&open(y)).then(x.cmp(y)));
    let unclear = shared_out(raws, unclear);
    Merged {
        clusters,
        joined,
        unclear,
    }
}

/// Limits pairs to [`PAIRS_MAX`], taking one pair of each two members in turn: a member with many findings does not use
/// up the pairs of others.
fn shared_out(raws: &[Raw], pairs: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let mut taken: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut turns: Vec<(usize, usize, (usize, usize))> = Vec::new();
    for (at, (a, b)) in pairs.into_iter().enumerate() {
        let (one, other) = (raws[a].member.as_str(), raws[b].member.as_str());
        let turn = taken.entry((one.min(other), one.max(other))).or_default();
        turns.push((*turn, at, (a, b)));
        *turn += 1;
    }
    turns.sort_unstable();
    turns.truncate(PAIRS_MAX);
    turns.sort_unstable_by_key(|(_, at, _)| *at);
    turns.into_iter().map(|(_, _, pair)| pair).collect()
}

/// Returns whether two clusters are the same: no pair is ruled out or far apart, the average is high enough, and the
/// merged cluster would not hold two different findings of one member.
fn joins(
    raws: &[Raw],
    left: &[usize],
    right: &[usize],
    pair: impl Fn(usize, usize) -> Option<f64>,
) -> bool {
    let mut sum = 0.0;
    for a in left {
        for b in right {
            match pair(*a, *b) {
                Some(s) if s >= APART && (raws[*a].member != raws[*b].member || s >= OWN) => {
                    sum += s;
                }
                _ => return false,
            }
        }
    }
    sum / (left.len() * right.len()) as f64 >= SAME
}

/// Returns whether the rules leave a pair undecided.
pub fn is_unclear(raws: &[Raw], a: usize, b: usize) -> bool {
    UNCLEAR.contains(&Traits::of(raws).score(raws, a, b))
}

/// The judges of pairs, by the indices of their findings: the judge's name, and whether both are the same.
pub type Verdicts = BTreeMap<(usize, usize), (String, bool)>;

/// Builds the clusters of a merge. `notes` are corrections by index of the finding.
///
/// The first finding of a cluster provides the displayed words. It is chosen among the findings with the middle
/// severity (or the higher of two middle ones): the finding that has most words in common with the findings of the
/// other members. So a single one of three or more members cannot replace the words by repeating a finding with
/// another meaning.
pub fn clusters(
    raws: &[Raw],
    merged: &Merged,
    notes: &BTreeMap<usize, String>,
    verdicts: &Verdicts,
) -> Vec<Cluster> {
    let build = |places: &Vec<usize>| {
        let mut places = places.clone();
        represent(raws, &mut places);
        let pair = |a: usize, b: usize| format!("{} + {}", raws[a].member, raws[b].member);
        let joined = merged.joined.iter().filter(|(a, ..)| places.contains(a));
        let mut how: Vec<String> = joined
            .map(|(a, b, rule)| match verdicts.get(&(*a, *b)) {
                Some((judge, _)) => format!("{}: judge {judge}: the same", pair(*a, *b)),
                None => format!("{}: {rule}", pair(*a, *b)),
            })
            .collect();
        let apart = verdicts
            .iter()
            .filter(|((a, b), (_, same))| !same && (places.contains(a) || places.contains(b)));
        how.extend(
            apart.map(|((a, b), (judge, _))| format!("{}: judge {judge}: different", pair(*a, *b))),
        );
        let noted = places.iter().filter_map(|at| Some((at, notes.get(at)?)));
        how.extend(noted.map(|(at, note)| format!("{}: {note}", raws[*at].member)));
        Cluster {
            findings: places.iter().map(|at| raws[*at].clone()).collect(),
            how,
        }
    };
    merged.clusters.iter().map(build).collect()
}

/// Orders the findings of a cluster, the one that represents it first.
fn represent(raws: &[Raw], places: &mut [usize]) {
    let mut highest: BTreeMap<&str, Severity> = BTreeMap::new();
    for raw in places.iter().map(|at| &raws[*at]) {
        let one = highest.entry(&raw.member).or_insert(Severity::Nit);
        *one = raw.finding.severity.max(*one);
    }
    let mut severities: Vec<Severity> = highest.into_values().collect();
    severities.sort_unstable();
    let middle = severities.get(severities.len() / 2).copied();
    let mut of_member: BTreeMap<&str, usize> = BTreeMap::new();
    let mut is_compared = |at: &&usize| {
        let number = of_member.entry(&raws[**at].member).or_default();
        *number += 1;
        *number <= COMPARED_MAX
    };
    let compared: Vec<usize> = places
        .iter()
        .filter(|at| is_compared(at))
        .copied()
        .collect();
    let texts: BTreeMap<usize, [BTreeSet<String>; 3]> = compared
        .iter()
        .map(|at| (*at, texts(&raws[*at].finding)))
        .collect();
    let mut keys: BTreeMap<usize, (bool, f64, usize)> = BTreeMap::new();
    for at in &compared {
        // Each other member counts once, with its finding that is most alike.
        let mut alike: BTreeMap<&str, f64> = BTreeMap::new();
        for other in compared
            .iter()
            .filter(|b| raws[**b].member != raws[*at].member)
        {
            let sum: f64 = texts[at]
                .iter()
                .zip(&texts[other])
                .map(|(a, b)| common(a, b))
                .sum();
            let best = alike.entry(&raws[*other].member).or_default();
            *best = best.max(sum);
        }
        let length = texts[at].iter().map(BTreeSet::len).sum();
        let off = Some(raws[*at].finding.severity) != middle;
        keys.insert(*at, (off, alike.into_values().sum(), length));
    }
    places.sort_by(|a, b| {
        let key = |at: &usize| keys.get(at).copied().unwrap_or((true, -1.0, usize::MAX));
        let (x, y) = (key(a), key(b));
        (x.0.cmp(&y.0))
            .then_with(|| y.1.total_cmp(&x.1))
            .then_with(|| (x.2, a).cmp(&(y.2, b)))
    });
}

/// Returns the words of a finding's claim, evidence and suggested change.
fn texts(finding: &Finding) -> [BTreeSet<String>; 3] {
    let change = finding.change.as_deref().unwrap_or_default();
    [finding.claim.as_str(), &finding.evidence, change].map(words)
}

/// Returns the share of the words that two texts have in common, by the longer one: a text that adds words to another
/// is not closer to a third than the other is.
fn common(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    match a.len().max(b.len()) {
        0 => 0.0,
        longer => a.intersection(b).count() as f64 / longer as f64,
    }
}

/// The words and identifiers of all findings, weighted by how rare they are in this review.
struct Traits {
    words: Vec<BTreeSet<u32>>,
    names: Vec<BTreeSet<u32>>,
    word_weights: Vec<f64>,
    name_weights: Vec<f64>,
}

impl Traits {
    fn of(raws: &[Raw]) -> Self {
        let texts: Vec<&str> = raws.iter().map(|raw| raw.finding.claim.as_str()).collect();
        let (words, word_weights) = weighed(texts.iter().map(|text| words(text)).collect());
        let (names, name_weights) = weighed(texts.iter().map(|text| names(text)).collect());
        Self {
            words,
            names,
            word_weights,
            name_weights,
        }
    }

    /// Returns the similarity of two findings: about 0 for nothing in common, about 1 for the same words.
    fn score(&self, raws: &[Raw], a: usize, b: usize) -> f64 {
        let (left, right) = (&raws[a].finding, &raws[b].finding);
        match left.file == right.file {
            true => self.by_words(raws, a, b) + near(left, right),
            false => -1.0,
        }
    }

    /// Returns the similarity of two claims, wherever they are.
    fn by_words(&self, raws: &[Raw], a: usize, b: usize) -> f64 {
        let (left, right) = (&raws[a].finding, &raws[b].finding);
        let (common, one, other) = shares(&self.words[a], &self.words[b], &self.word_weights);
        let mut score = 0.0;
        if left.claim.trim().to_lowercase() == right.claim.trim().to_lowercase() {
            // The same text always scores 1, even if none of its words count.
            score = 1.0;
        } else if one > 0.0 && other > 0.0 {
            score += 0.5 * common / (one * other).sqrt() + 0.5 * common / one.min(other);
        }
        let (common, one, other) = shares(&self.names[a], &self.names[b], &self.name_weights);
        let all = one + other - common;
        if all > 0.0 {
            score += 0.1 * common / all;
        }
        if one > 0.0 && other > 0.0 && common == 0.0 {
            score -= 0.1;
        }
        score
    }

    /// Returns the strongest reason why two findings are the same.
    fn rule(&self, raws: &[Raw], a: usize, b: usize) -> &'static str {
        let (left, right) = (&raws[a].finding, &raws[b].finding);
        let place = near(left, right);
        let named = !self.names[a].is_disjoint(&self.names[b]);
        match (place > 0.0, named) {
            (true, true) => "near lines, same names and words",
            (true, false) => "near lines, same words",
            (false, true) => "same names and words",
            (false, false) => "same words",
        }
    }
}

/// Returns the amount that the places add to a score; 0 if a place is unknown.
fn near(left: &Finding, right: &Finding) -> f64 {
    if left.lines.first == 0 || right.lines.first == 0 {
        return 0.0;
    }
    let gap = left
        .lines
        .first
        .max(right.lines.first)
        .saturating_sub(left.lines.last.min(right.lines.last));
    match gap {
        0 => 0.12,
        1..=NEAR_LINES => 0.06,
        FAR_LINES.. => -0.15,
        _ => 0.0,
    }
}

/// Returns the weight of the intersection of two sets, and of each set.
fn shares(a: &BTreeSet<u32>, b: &BTreeSet<u32>, weights: &[f64]) -> (f64, f64, f64) {
    let sum = |set: &BTreeSet<u32>| set.iter().map(|w| weights[*w as usize]).sum::<f64>();
    let common = a.intersection(b).map(|w| weights[*w as usize]).sum();
    (common, sum(a), sum(b))
}

/// Replaces set members with numbers and weights them: the rarer, the heavier.
fn weighed(sets: Vec<BTreeSet<String>>) -> (Vec<BTreeSet<u32>>, Vec<f64>) {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for word in sets.iter().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let number: BTreeMap<&str, u32> = counts.keys().copied().zip(0..).collect();
    let all = sets.len() as f64 + 1.0;
    let weights = counts
        .values()
        .map(|count| (all / (f64::from(*count) + 0.5)).ln().max(0.0))
        .collect();
    let sets = sets
        .iter()
        .map(|set| set.iter().map(|word| number[word.as_str()]).collect())
        .collect();
    (sets, weights)
}

/// Splits a text into runs of letters, digits and underscores.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|run| !run.is_empty())
}

/// Returns the words of a claim: lower case, identifiers split into parts, common endings removed.
fn words(text: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for run in runs(text) {
        let mut part = String::new();
        let mut before = ' ';
        for c in run.chars().chain(['_']) {
            let bound =
                c == '_' || c.is_uppercase() && (before.is_lowercase() || before.is_numeric());
            if bound && !part.is_empty() {
                let word = std::mem::take(&mut part);
                if word.chars().count() > 1 && !STOP.contains(&word.as_str()) {
                    out.insert(stem(&word).to_owned());
                }
            }
            if c != '_' {
                part.extend(c.to_lowercase());
            }
            before = c;
        }
    }
    out
}

/// Returns the identifiers and numbers of a claim.
fn names(text: &str) -> BTreeSet<String> {
    let is_name = |run: &&str| {
        let inner = run.trim_matches('_');
        let lower_then_upper = inner
            .chars()
            .zip(inner.chars().skip(1))
            .any(|(a, b)| a.is_lowercase() && b.is_uppercase());
        inner.contains('_') || lower_then_upper || inner.chars().any(|c| c.is_ascii_digit())
    };
    runs(text).filter(is_name).map(str::to_lowercase).collect()
}

fn stem(word: &str) -> &str {
    ["edly", "ing", "ies", "ed", "es", "ly", "s"]
        .iter()
        .filter(|end| word.chars().count() > end.len() + 3)
        .find_map(|end| word.strip_suffix(end))
        .unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_one_member_leave_room_for_those_of_others() {
        let by = |member: &str| Raw {
            member: member.into(),
            finding: Finding::default(),
        };
        // One finding of ann and one of bob, and 80 of eve.
        let mut raws = vec![by("ann"), by("bob")];
        raws.extend((0..80).map(|_| by("eve")));
        let mut pairs: Vec<(usize, usize)> = (2..82).map(|at| (0, at)).collect();
        pairs.extend((2..82).map(|at| (1, at)));
        pairs.push((0, 1));
        let shared = shared_out(&raws, pairs.clone());
        assert_eq!(shared.len(), PAIRS_MAX);
        assert!(shared.contains(&(0, 1)));
        let of = |maker: usize| shared.iter().filter(|(a, b)| *a == maker && *b > 1).count();
        assert!(of(0) >= 19 && of(1) >= 19, "{} {}", of(0), of(1));
        assert_eq!(shared_out(&raws, pairs[..5].to_vec()), pairs[..5]);
    }
}
