//! Merging compared with manually checked pairs, and with plain word clustering under the same measure.

use crate::recorded::{Corpus, documented, raw};
use kd_core::review::Raw;
use kd_core::review::merge::{Judged, Merged, merge};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

const DRAWS: usize = 1000;

#[derive(Deserialize)]
struct Pair {
    pr: usize,
    half: String,
    bin: u32,
    bin_of: u32,
    a: (usize, String),
    b: (usize, String),
    /// The judgment of at least two of the readers.
    same: bool,
    /// The judgment of each reader, made without knowing the others'.
    readers: [bool; 3],
}

fn pairs() -> Vec<Pair> {
    include_str!("../data/review/pairs.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a pair"))
        .collect()
}

/// All findings of a pull request and their clusters, by pull request.
type Clusters = BTreeMap<usize, (Vec<Raw>, Vec<Vec<usize>>)>;

fn together(clusters: &Clusters, pair: &Pair) -> bool {
    let (raws, clusters) = &clusters[&pair.pr];
    let home = |(tool, text): &(usize, String)| {
        let member = format!("t{tool}");
        let at = raws
            .iter()
            .position(|raw| raw.member == member && raw.finding.claim == *text)
            .expect("a recorded finding");
        clusters.iter().position(|cluster| cluster.contains(&at))
    };
    home(&pair.a) == home(&pair.b)
}

fn clustered(corpus: &Corpus, cluster: impl Fn(&[Raw]) -> Vec<Vec<usize>>) -> Clusters {
    let reviews = corpus.reviews.iter().filter(|r| r.judge == "gpt-5.2");
    reviews
        .map(|review| {
            let raws: Vec<Raw> = review
                .found
                .iter()
                .flat_map(|(tool, texts)| texts.iter().map(|(text, _)| raw(*tool, text)))
                .collect();
            let clusters = cluster(&raws);
            (review.pr, (raws, clusters))
        })
        .collect()
}

/// True positives, false positives and false negatives.
#[derive(Default)]
struct Counts {
    right: f64,
    wrong: f64,
    missed: f64,
}

impl Counts {
    fn add(&mut self, merged: bool, same: bool, weight: f64) {
        match (merged, same) {
            (true, true) => self.right += weight,
            (true, false) => self.wrong += weight,
            (false, true) => self.missed += weight,
            (false, false) => {}
        }
    }

    fn precision(&self) -> f64 {
        self.right / (self.right + self.wrong).max(1e-9)
    }

    fn recall(&self) -> f64 {
        self.right / (self.right + self.missed).max(1e-9)
    }

    fn f1(&self) -> f64 {
        let (p, r) = (self.precision(), self.recall());
        2.0 * p * r / (p + r).max(1e-9)
    }
}

/// Counts over a half, optionally weighted by how many pairs of the record a checked pair represents, and by how often
/// its pull request was drawn.
fn counts(
    pairs: &[Pair],
    half: &str,
    weighed: bool,
    prs: Option<&BTreeMap<usize, u32>>,
    merged: impl Fn(&Pair) -> bool,
) -> Counts {
    let mut drawn: BTreeMap<(&str, u32), u32> = BTreeMap::new();
    for pair in pairs {
        *drawn.entry((&pair.half, pair.bin)).or_default() += 1;
    }
    let mut counts = Counts::default();
    for pair in pairs.iter().filter(|p| p.half == half) {
        let share = f64::from(pair.bin_of) / f64::from(drawn[&(half, pair.bin)]);
        let times = prs.map_or(1, |prs| prs.get(&pair.pr).copied().unwrap_or_default());
        let weight = f64::from(times) * if weighed { share } else { 1.0 };
        counts.add(merged(pair), pair.same, weight);
    }
    counts
}

/// Plain word clustering: cosine of TF-IDF over the pull request, single-link clusters at one threshold.
fn by_words(raws: &[Raw], threshold: f64) -> Vec<Vec<usize>> {
    let docs: Vec<BTreeMap<String, f64>> = raws
        .iter()
        .map(|raw| {
            let mut counts = BTreeMap::new();
            let lower = raw.finding.claim.to_lowercase();
            for word in lower.split(|c: char| !c.is_alphanumeric()) {
                if word.len() > 1 {
                    *counts.entry(word.to_owned()).or_insert(0.0) += 1.0;
                }
            }
            counts
        })
        .collect();
    let mut df: BTreeMap<&str, f64> = BTreeMap::new();
    for word in docs.iter().flat_map(BTreeMap::keys) {
        *df.entry(word).or_default() += 1.0;
    }
    let n = docs.len() as f64;
    let vectors: Vec<BTreeMap<&str, f64>> = docs
        .iter()
        .map(|doc| {
            let weighed = doc
                .iter()
                .map(|(w, c)| (w.as_str(), c * ((1.0 + n) / (1.0 + df[w.as_str()])).ln()));
            let vector: BTreeMap<&str, f64> = weighed.collect();
            let norm = vector.values().map(|x| x * x).sum::<f64>().sqrt().max(1e-9);
            vector.into_iter().map(|(w, x)| (w, x / norm)).collect()
        })
        .collect();
    let mut home: Vec<usize> = (0..raws.len()).collect();
    for a in 0..raws.len() {
        for b in a + 1..raws.len() {
            let cosine: f64 = vectors[a]
                .iter()
                .filter_map(|(w, x)| Some(x * vectors[b].get(w)?))
                .sum();
            if cosine >= threshold && home[a] != home[b] {
                let (to, from) = (home[a], home[b]);
                for at in &mut home {
                    if *at == from {
                        *at = to;
                    }
                }
            }
        }
    }
    let ids: BTreeSet<usize> = home.iter().copied().collect();
    ids.into_iter()
        .map(|id| (0..raws.len()).filter(|at| home[*at] == id).collect())
        .collect()
}

/// The 95 % bootstrap interval of a figure, resampling pull requests: pairs of one pull request share findings.
fn interval(pairs: &[Pair], half: &str, figure: impl Fn(&BTreeMap<usize, u32>) -> f64) -> String {
    let prs: Vec<usize> = pairs
        .iter()
        .filter(|p| p.half == half)
        .map(|p| p.pr)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let mut chance = ChaCha12Rng::seed_from_u64(7);
    let mut all: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let mut drawn = BTreeMap::new();
            for _ in &prs {
                let pr = prs[chance.random_range(0..prs.len())];
                *drawn.entry(pr).or_default() += 1;
            }
            figure(&drawn)
        })
        .collect();
    all.sort_by(f64::total_cmp);
    format!(
        "({:.2}–{:.2})",
        all[DRAWS / 40],
        all[DRAWS - 1 - DRAWS / 40]
    )
}

/// Formats the row of a table: precision, recall and F1, each pair once and by the share of its bin.
fn row(pairs: &[Pair], half: &str, name: &str, merged: impl Fn(&Pair) -> bool) -> String {
    let mut row = format!("| {half} | {name} |");
    for weighed in [false, true] {
        for figure in [Counts::precision, Counts::recall, Counts::f1] {
            let all = figure(&counts(pairs, half, weighed, None, &merged));
            let range = interval(pairs, half, |drawn| {
                figure(&counts(pairs, half, weighed, Some(drawn), &merged))
            });
            row += &format!(" {all:.2} {range} |");
        }
    }
    row
}

/// Returns on how many pairs two readers agree, and Cohen's κ.
fn agreement(pairs: &[Pair], a: usize, b: usize) -> (usize, f64) {
    let share = |of: &dyn Fn(&Pair) -> bool| {
        pairs.iter().filter(|p| of(p)).count() as f64 / pairs.len() as f64
    };
    let agreed = share(&|p| p.readers[a] == p.readers[b]);
    let (one, other) = (share(&|p| p.readers[a]), share(&|p| p.readers[b]));
    let by_chance = one * other + (1.0 - one) * (1.0 - other);
    let count = (agreed * pairs.len() as f64).round();
    (count as usize, (agreed - by_chance) / (1.0 - by_chance))
}

#[test]
fn readers_agree_as_the_docs_say_and_the_majority_decides() {
    let pairs = pairs();
    for pair in &pairs {
        let ayes = pair.readers.iter().filter(|same| **same).count();
        assert_eq!(pair.same, ayes >= 2, "{:?} {:?}", pair.a, pair.b);
    }
    let mut said = Vec::new();
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let (count, kappa) = agreement(&pairs, a, b);
        let of = pairs.len();
        said.push(format!(
            "| {} and {} | {count} of {of} | {kappa:.3} |",
            a + 1,
            b + 1
        ));
    }
    let split = pairs
        .iter()
        .filter(|p| p.readers.iter().any(|same| *same != p.readers[0]));
    said.push(format!("The readers differ on {} pairs", split.count()));
    documented(&said);
}

#[test]
fn merging_is_more_precise_than_word_clustering_on_checked_pairs() {
    let (corpus, pairs) = (Corpus::load(), pairs());
    assert!(pairs.len() >= 200);
    for half in ["tuning", "testing"] {
        let here = pairs.iter().filter(|p| p.half == half);
        assert_eq!(here.clone().count(), 110);
        for pair in here {
            assert_eq!(corpus.is_for_testing(pair.pr), half == "testing");
        }
    }
    let own = clustered(&corpus, |raws| merge(raws, &Judged::new()).clusters);
    // The plain clustering gets its best threshold on the tuning half, for a fair comparison.
    let plain = (5..70)
        .step_by(5)
        .map(|percent| {
            let threshold = f64::from(percent) / 100.0;
            let clusters = clustered(&corpus, |raws| by_words(raws, threshold));
            let f1 = counts(&pairs, "tuning", false, None, |p| together(&clusters, p)).f1();
            (f1, threshold, clusters)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .expect("thresholds");
    let mut said = vec![format!("threshold of {:.2}", plain.1)];
    for half in ["tuning", "testing"] {
        for (name, clusters) in [("`kd review`", &own), ("plain words", &plain.2)] {
            said.push(row(&pairs, half, name, |p| together(clusters, p)));
        }
    }
    let by = |clusters, drawn: Option<&BTreeMap<usize, u32>>| {
        counts(&pairs, "testing", false, drawn, |p| together(clusters, p))
    };
    let ahead = |figure: fn(&Counts) -> f64, drawn: Option<&BTreeMap<usize, u32>>| {
        figure(&by(&own, drawn)) - figure(&by(&plain.2, drawn))
    };
    let change = |figure: fn(&Counts) -> f64| {
        let range = interval(&pairs, "testing", |drawn| ahead(figure, Some(drawn)));
        format!("{:+.2} {range}", ahead(figure, None)).replace('-', "−")
    };
    said.push(format!(
        "precision {}, recall {}, F1 {}",
        change(Counts::precision),
        change(Counts::recall),
        change(Counts::f1)
    ));
    documented(&said);
    let own = by(&own, None);
    assert!(own.precision() >= 0.8, "{}", own.precision());
    assert!(own.recall() >= 0.6, "{}", own.recall());
    assert!(ahead(Counts::precision, None) > 0.2);
}

#[test]
fn a_judge_that_reads_well_settles_unclear_pairs() {
    let (corpus, pairs) = (Corpus::load(), pairs());
    let testing = |p: &&Pair| p.half == "testing";
    let mut asked = 0;
    let clusters = clustered(&corpus, |raws| {
        let open = merge(raws, &Judged::new());
        let place = |(tool, text): &(usize, String)| {
            raws.iter()
                .position(|r| r.member == format!("t{tool}") && r.finding.claim == *text)
        };
        // The judge answers like the reader; unread pairs stay undecided.
        let judged: Judged = pairs
            .iter()
            .filter(testing)
            .filter_map(|p| {
                let (a, b) = (place(&p.a)?, place(&p.b)?);
                let at = (a.min(b), a.max(b));
                in_band(&open, raws, at).then_some((at, p.same))
            })
            .collect();
        merge(raws, &judged).clusters
    });
    for pair in pairs.iter().filter(testing) {
        asked += usize::from(together(&clusters, pair) == pair.same);
    }
    let judged = counts(&pairs, "testing", false, None, |p| together(&clusters, p));
    documented(&[format!(
        "precision is {:.2}, recall {:.2}, F1 {:.2} on the testing half ({asked} of 110 pairs right)",
        judged.precision(),
        judged.recall(),
        judged.f1()
    )]);
    assert!(judged.precision() >= 0.8 && judged.recall() >= 0.8);
}

/// Returns whether the rules leave a pair undecided, ignoring the maximum number of pairs.
fn in_band(_open: &Merged, raws: &[Raw], (a, b): (usize, usize)) -> bool {
    kd_core::review::merge::is_unclear(raws, a, b)
}
