//! Members read findings of others with stand-ins for names: distinct, and the same in all requests.

use crate::room::*;
use kd_core::review::Vote;
use std::collections::BTreeMap;

const LOOP: &str = "    for i in 0..=items.len() {";
const MEAN: &str = "    total(items) / items.len() as u32";

/// Returns the stand-in for a name after "as" in each claim that voters read.
fn shown(ran: &Ran) -> Vec<String> {
    let votes = ran.asked.iter().filter(|request| kind(request) == "votes");
    let claims = votes.flat_map(labels).map(|(_, claim)| claim);
    claims.collect()
}

/// Runs a review in which claude and cyd find something, and dee finds nothing.
fn reviewed(diff: &str) -> Ran {
    let mut open = review(&["claude", "cyd", "dee"]);
    open.parts = vec![diff.to_owned()];
    // The rest of a changed file is not a subject of the review: its names are hidden.
    for file in open.files.values_mut() {
        file.push_str("\n// written by claude\n");
    }
    run(open, |name, request| {
        Reply::Text(match (kind(request), name) {
            ("findings", "claude") => findings(&[finding(
                "src/sum.rs",
                3,
                LOOP,
                "The loop reads past the end, as claude and cyd see.",
            )]),
            ("findings", "cyd") => findings(&[finding(
                "src/sum.rs",
                10,
                MEAN,
                "An empty list divides by zero, as claude sees.",
            )]),
            ("findings", _) => findings(&[]),
            _ => votes(request, |_| "real"),
        })
    })
}

#[test]
fn names_in_findings_have_stand_ins() {
    let ran = reviewed("src/sum.rs, all lines new");
    let mut stands: BTreeMap<String, usize> = BTreeMap::new();
    for claim in shown(&ran) {
        assert!(
            !claim.contains("claude") && !claim.contains("cyd"),
            "{claim}"
        );
        let (_, names) = claim.split_once(" as ").expect("names");
        let names = names.trim_end_matches(['.']).replace(" sees", "");
        for name in names.replace(" see", "").split(" and ") {
            assert!(name.starts_with("member "), "{claim}");
            *stands.entry(name.to_owned()).or_default() += 1;
        }
    }
    // The loop is voted on by cyd and dee, the list by claude and dee: claude is named four times, cyd twice.
    let mut times: Vec<usize> = stands.values().copied().collect();
    times.sort_unstable();
    assert_eq!(times, [2, 4], "{stands:?}");
    // What is shown has the names.
    let claims: Vec<&str> = ran
        .report
        .findings
        .iter()
        .map(|found| found.finding().expect("a finding").claim.as_str())
        .collect();
    assert!(claims.contains(&"The loop reads past the end, as claude and cyd see."));
    assert!(
        ran.report
            .findings
            .iter()
            .all(|f| f.votes_for(Vote::Real) == 2)
    );
}

#[test]
fn names_in_the_change_stay() {
    let ran = reviewed("src/sum.rs: the prompt of claude, called member P");
    for claim in shown(&ran) {
        assert!(
            claim.contains("claude") && !claim.contains("cyd"),
            "{claim}"
        );
        assert!(!claim.contains("member P "), "{claim}");
    }
}
