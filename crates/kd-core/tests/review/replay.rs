//! Recorded reviews, replayed: precision and recall by how many members agree. Derives the published table.
//!
//! `BLESS=1 cargo test -p kd-core --test review published` regenerates it.

use crate::recorded::{Corpus, documented, raw};
use kd_core::review::TABLE;
use kd_core::review::merge::{Judged, merge};
use kd_core::review::shares::Row;
use kd_eval::intervals::wilson;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// The largest council of the table.
const MEMBERS_MAX: usize = 7;
/// Recorded products.
const ALL: usize = 12;
/// Councils drawn per size.
const COUNCILS: usize = 12;
const SEED: u64 = 7;
const DRAWS: usize = 1000;

/// Clusters of one council size and agreement in one pull request, over councils and judges.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    real: f64,
    clusters: f64,
}

/// For findings by at least `agreeing` members: reported clusters, real ones, known defects found, and known defects.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    real: f64,
    clusters: f64,
    found: f64,
    golden: f64,
    runs: f64,
}

#[derive(Default)]
struct Replay {
    /// By size, agreement and pull request.
    cells: BTreeMap<(usize, usize, usize), Cell>,
    /// By judge, size, minimum agreement and pull request.
    cuts: BTreeMap<(String, usize, usize, usize), Cut>,
}

fn councils(tools: usize) -> Vec<Vec<usize>> {
    let mut chance = ChaCha12Rng::seed_from_u64(SEED);
    let mut all: Vec<Vec<usize>> = (0..tools).map(|tool| vec![tool]).collect();
    for size in 2..=MEMBERS_MAX {
        let mut drawn: BTreeSet<Vec<usize>> = BTreeSet::new();
        while drawn.len() < COUNCILS {
            let mut left: Vec<usize> = (0..tools).collect();
            let mut council: Vec<usize> = (0..size)
                .map(|_| left.remove(chance.random_range(0..left.len())))
                .collect();
            council.sort_unstable();
            drawn.insert(council);
        }
        all.extend(drawn);
    }
    all.push((0..tools).collect());
    all
}

fn replayed() -> &'static (Corpus, Replay) {
    static DONE: OnceLock<(Corpus, Replay)> = OnceLock::new();
    DONE.get_or_init(|| {
        let corpus = Corpus::load();
        let mut replay = Replay::default();
        for council in councils(corpus.tools) {
            for review in &corpus.reviews {
                let found: Vec<(usize, &String, &Vec<usize>)> = council
                    .iter()
                    .filter_map(|tool| Some((tool, review.found.get(tool)?)))
                    .flat_map(|(tool, texts)| texts.iter().map(|(t, g)| (*tool, t, g)))
                    .collect();
                let raws: Vec<_> = found
                    .iter()
                    .map(|(tool, text, _)| raw(*tool, text))
                    .collect();
                let size = council.len();
                let mut cuts = vec![(Cut::default(), BTreeSet::new()); size + 1];
                for cluster in merge(&raws, &Judged::new()).clusters {
                    let makers: BTreeSet<usize> = cluster.iter().map(|at| found[*at].0).collect();
                    let golden: BTreeSet<usize> = cluster
                        .iter()
                        .flat_map(|at| found[*at].2.iter().copied())
                        .collect();
                    let real = f64::from(u8::from(!golden.is_empty()));
                    let cell = replay
                        .cells
                        .entry((size, makers.len(), review.pr))
                        .or_default();
                    cell.real += real;
                    cell.clusters += 1.0;
                    for (cut, found) in &mut cuts[1..=makers.len()] {
                        cut.real += real;
                        cut.clusters += 1.0;
                        found.extend(golden.iter().copied());
                    }
                }
                for (least, (cut, found)) in cuts.into_iter().enumerate().skip(1) {
                    let key = (review.judge.clone(), size, least, review.pr);
                    let sum = replay.cuts.entry(key).or_default();
                    sum.real += cut.real;
                    sum.clusters += cut.clusters;
                    sum.found += found.len() as f64;
                    sum.golden += review.golden as f64;
                    sum.runs += 1.0;
                }
            }
        }
        (corpus, replay)
    })
}

/// The 95 % bootstrap interval of a ratio of sums, resampling pull requests: councils overlap, pull requests do not.
fn interval(parts: &[(f64, f64)]) -> (f64, f64) {
    let mut chance = ChaCha12Rng::seed_from_u64(SEED);
    let mut ratios: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let (mut top, mut bottom) = (0.0, 0.0);
            for _ in parts {
                let (t, b) = parts[chance.random_range(0..parts.len())];
                top += t;
                bottom += b;
            }
            if bottom == 0.0 { 0.0 } else { top / bottom }
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    (ratios[DRAWS / 40], ratios[DRAWS - 1 - DRAWS / 40])
}

fn rounded(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}

fn rows(replay: &Replay, use_pr: impl Fn(usize) -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for of in 1..=MEMBERS_MAX {
        for agreeing in 1..=of {
            let parts: Vec<(f64, f64)> = (0..50)
                .filter(|pr| use_pr(*pr))
                .map(|pr| {
                    replay
                        .cells
                        .get(&(of, agreeing, pr))
                        .copied()
                        .unwrap_or_default()
                })
                .map(|cell| (cell.real, cell.clusters))
                .collect();
            let (real, all) = parts
                .iter()
                .fold((0.0, 0.0), |(r, a), p| (r + p.0, a + p.1));
            let (mut low, high) = interval(&parts);
            if low == high {
                // Every cluster was real: resampling shows no variation, so the number of pull requests determines the
                // interval.
                let n = parts.iter().filter(|(_, all)| *all > 0.0).count();
                low = wilson(n as f64, n as u64).low.min(low);
            }
            rows.push(Row {
                of: of as u32,
                agreeing: agreeing as u32,
                share: rounded(if all == 0.0 { 0.0 } else { real / all }),
                low: rounded(low),
                high: rounded(high),
            });
        }
    }
    rows
}

#[test]
fn the_published_table_is_what_the_record_gives() {
    let (_, replay) = replayed();
    let rows = rows(replay, |_| true);
    let mut text = String::from(
        "//! The published table, derived from recorded reviews by `tests/review/replay.rs`, which holds it to them.\n//! `BLESS=1 cargo test -p kd-core --test review published` writes it again.\n\nuse super::shares::Row;\n\n/// Shares of real findings by council size and agreement.\npub const TABLE: &[Row] = &[\n",
    );
    for row in &rows {
        println!(
            "{} of {}: {:.3} ({:.3}-{:.3})",
            row.agreeing, row.of, row.share, row.low, row.high
        );
        text.push_str(&format!(
            "    Row {{\n        of: {},\n        agreeing: {},\n        share: {:?},\n        low: {:?},\n        high: {:?},\n    }},\n",
            row.of, row.agreeing, row.share, row.low, row.high
        ));
    }
    text.push_str("];\n");
    if std::env::var_os("BLESS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/review/published.rs");
        std::fs::write(file, text).expect("the table is written");
        return;
    }
    assert_eq!(rows, TABLE);
    let lines = (1..=MEMBERS_MAX).map(|of| {
        let cells = rows.iter().filter(|row| row.of as usize == of).map(|row| {
            let percent = |x: f64| (x * 100.0).round();
            format!(
                " {} % ({}–{}) |",
                percent(row.share),
                percent(row.low),
                percent(row.high)
            )
        });
        format!("| {of} |{}", cells.collect::<String>())
    });
    documented(&lines.collect::<Vec<_>>());
}

/// Returns precision and recall of councils of a size that report findings of at least `agreeing` members.
fn cut(
    corpus: &Corpus,
    replay: &Replay,
    judge: &str,
    size: usize,
    least: usize,
    testing: bool,
) -> (f64, f64) {
    let parts: Vec<Cut> = (0..50)
        .filter(|pr| corpus.is_for_testing(*pr) == testing)
        .filter_map(|pr| {
            replay
                .cuts
                .get(&(judge.to_owned(), size, least, pr))
                .copied()
        })
        .collect();
    let sum = |of: fn(&Cut) -> f64| parts.iter().map(of).sum::<f64>();
    let precision: Vec<(f64, f64)> = parts.iter().map(|c| (c.real, c.clusters)).collect();
    let recall: Vec<(f64, f64)> = parts.iter().map(|c| (c.found, c.golden)).collect();
    let (p, r) = (
        sum(|c| c.real) / sum(|c| c.clusters),
        sum(|c| c.found) / sum(|c| c.golden),
    );
    let ((pl, ph), (rl, rh)) = (interval(&precision), interval(&recall));
    let what = match (size, least) {
        (1, _) => "one product".to_owned(),
        (_, 1) => format!("all {size}, every finding"),
        (ALL, _) => format!("all {ALL}, at least {least} agree"),
        _ => format!("council of {size}, at least {least} agree"),
    };
    let each = sum(|c| c.clusters) / sum(|c| c.runs);
    let row = format!(
        "| {judge} | {what} | {p:.2} ({pl:.2}–{ph:.2}) | {r:.2} ({rl:.2}–{rh:.2}) | {each:.1} |"
    );
    match testing {
        true => documented(&[row]),
        false => println!("tuning {row}"),
    }
    (p, r)
}

#[test]
fn what_more_members_found_is_more_often_real_on_pull_requests_not_tuned_on() {
    let (corpus, replay) = replayed();
    for judge in ["gpt-5.2", "opus-4.5", "sonnet-4.5"] {
        for testing in [false, true] {
            let at = |size, least| cut(corpus, replay, judge, size, least, testing);
            let (single, single_recall) = at(1, 1);
            let (three, three_recall) = at(3, 2);
            let (five, five_recall) = at(5, 3);
            assert!(three >= single + 0.1, "{three} {single}");
            assert!(five >= three, "{five} {three}");
            assert!(
                three_recall >= single_recall - 0.12,
                "{three_recall} {single_recall}"
            );
            assert!(
                five_recall >= single_recall - 0.15,
                "{five_recall} {single_recall}"
            );
        }
    }
    // Of all products, findings of more of them are more often real, and fewer known defects are among them.
    assert_eq!(corpus.tools, ALL);
    for judge in ["gpt-5.2", "opus-4.5"] {
        let steps: Vec<(f64, f64)> = (1..=6)
            .map(|least| cut(corpus, replay, judge, ALL, least, true))
            .collect();
        for pair in steps.windows(2) {
            assert!(pair[0].0 < pair[1].0 && pair[0].1 > pair[1].1, "{steps:?}");
        }
    }
    // The table of one half predicts the shares of the other.
    let tuned = rows(replay, |pr| !corpus.is_for_testing(pr));
    let tested = rows(replay, |pr| corpus.is_for_testing(pr));
    for (a, b) in tuned.iter().zip(&tested) {
        println!(
            "{} of {}: tuning {:.2}, testing {:.2} ({:.2}-{:.2})",
            a.agreeing, a.of, a.share, b.share, b.low, b.high
        );
        if a.agreeing <= 3 {
            assert!((a.share - b.share).abs() <= 0.2, "{a:?} {b:?}");
        }
    }
}
