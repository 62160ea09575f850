//! Recorded reviews of a public benchmark: see `tests/data/review/README.md`.

use kd_core::review::{Finding, Raw};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Head {
    prs: Vec<String>,
    tools: usize,
}

/// The products' findings in a pull request, as extracted by one judge.
#[derive(Deserialize)]
pub(crate) struct Recorded {
    pub(crate) judge: String,
    pub(crate) pr: usize,
    /// Number of known defects.
    pub(crate) golden: usize,
    /// By product: text, and the known defects it matches.
    pub(crate) found: BTreeMap<usize, Vec<(String, Vec<usize>)>>,
}

/// All recorded reviews.
pub(crate) struct Corpus {
    prs: Vec<String>,
    pub(crate) tools: usize,
    pub(crate) reviews: Vec<Recorded>,
}

impl Corpus {
    pub(crate) fn load() -> Self {
        let mut lines = include_str!("../data/review/recorded.jsonl").lines();
        let head: Head = serde_json::from_str(lines.next().expect("a head")).expect("the head");
        let reviews = lines
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_str(line).expect("a review"))
            .collect();
        Self {
            prs: head.prs,
            tools: head.tools,
            reviews,
        }
    }

    /// Returns whether a pull request is for testing rather than tuning. Drawn by seed, before anything was measured.
    pub(crate) fn is_for_testing(&self, pr: usize) -> bool {
        let seeded = format!("kingdom-review-7 https://github.com/{}", self.prs[pr]);
        Sha256::digest(seeded.as_bytes())[0] & 1 == 1
    }
}

/// Returns a product's finding; the record has no line numbers.
pub(crate) fn raw(tool: usize, text: &str) -> Raw {
    Raw {
        member: format!("t{tool}"),
        finding: Finding {
            claim: text.to_owned(),
            ..Finding::default()
        },
    }
}

/// Prints figures and checks that `docs/review-precision.md` contains each.
pub(crate) fn documented(figures: &[String]) {
    let docs = include_str!("../../../../docs/review-precision.md");
    figures.iter().for_each(|figure| println!("{figure}"));
    for figure in figures {
        assert!(docs.contains(figure.as_str()), "{figure}");
    }
}
