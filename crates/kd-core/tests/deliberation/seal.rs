//! Sealed records: the Python verifier recounts the ballots of random deliberations and agrees.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the verifier in Python is a program that reads files"
)]
use crate::room::{plan, run, seat};
use crate::whatif::{Dice, wanting};
use kd_core::deliberation::{AnswerKind, Fact};
use kd_core::seal::{Kind, Piece, SALT_BYTES, Seal};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const RUNS: u64 = 1_000;
/// Counts of each rule among them, at least.
const COUNTS_MIN: usize = 5;

#[test]
fn two_implementations_agree_on_decisions() {
    let verifier = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/seal/verify.py");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sealed");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut files = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..4 * RUNS {
        if files.len() as u64 == RUNS {
            break;
        }
        let mut dice = Dice(number);
        let mut plan = plan();
        plan.protocol = ["council", "vote"][dice.roll(2)].into();
        // Every rule in turn.
        plan.voting.method = kd_vote::RULES[number as usize % kd_vote::RULES.len()]
            .name
            .into();
        for extra in ["dan", "fay", "gus"].iter().take(dice.roll(4)) {
            plan.seats.insert(2, seat(extra, "opinion-giver"));
        }
        for seat in &mut plan.seats {
            seat.member.weight = [1.0, 1.0, 2.0, 0.5][dice.roll(4)];
            seat.reliability = [None, Some(0.6), Some(0.7), Some(0.9)][dice.roll(4)];
        }
        plan.seed = number;
        plan.answers = AnswerKind::parse("choice:yes,no,maybe,later").expect("known");
        let wants = ["yes", "no", "maybe", "later"];
        let run = run(&plan, |asked| wanting(asked, number, &wants));
        let mut counted = run.facts().filter_map(|fact| match fact {
            Fact::Counted(c) if c.source == "ballots" => Some(c.rule.clone()),
            _ => None,
        });
        let Some(first) = counted.next() else {
            continue;
        };
        for rule in counted.chain([first]) {
            *counts.entry(rule).or_default() += 1;
        }
        let pieces = run.records.iter().map(|record| Piece {
            kind: Kind::Event,
            name: ".kd-events.jsonl".into(),
            text: serde_json::to_string(record).expect("JSON"),
            salt: [number as u8; SALT_BYTES],
        });
        let seal = Seal::new("council-test", "", pieces).expect("sealed");
        let file = folder.join(format!("{number}.json"));
        std::fs::write(&file, seal.to_bytes().expect("bytes")).expect("written");
        files.push(file);
    }
    assert_eq!(files.len() as u64, RUNS, "{counts:?}");
    for rule in kd_vote::RULES {
        assert!(
            counts.get(rule.name).is_some_and(|n| *n >= COUNTS_MIN),
            "{}: {counts:?}",
            rule.name
        );
    }
    // Shown with `--nocapture`.
    println!(
        "{} sealed deliberations; counts by rule: {counts:?}",
        files.len()
    );
    let counts: usize = counts.values().sum();
    let python = |files: &[std::path::PathBuf]| {
        let ran = Command::new("python3")
            .args([verifier, "--recount"])
            .args(files)
            .output();
        let ran = ran.ok()?;
        Some((
            ran.status.code(),
            String::from_utf8_lossy(&ran.stdout).into_owned(),
        ))
    };
    let Some(said) = python(&files) else {
        eprintln!("skipped: no python3 here");
        return;
    };
    assert_eq!(said, (Some(0), format!("{RUNS} files, {counts} counts\n")));

    // A record sealed with another winner is detected.
    let text = std::fs::read_to_string(&files[0]).expect("read");
    let seal = Seal::read(text.as_bytes()).expect("a seal");
    let lie = |text: String| match text.split_once("\"winners\":[") {
        Some((before, rest)) if before.contains("\"fact\":\"counted\"") => {
            let after = rest.split_once(']').expect("a list").1;
            format!("{before}\"winners\":[9]{after}")
        }
        _ => text,
    };
    let pieces = seal.entries.iter().map(|entry| Piece {
        kind: entry.kind,
        name: entry.name.clone(),
        text: lie(entry.opened.clone().expect("there").text),
        salt: [0; SALT_BYTES],
    });
    let seal = Seal::new("council-test", "", pieces).expect("sealed");
    std::fs::write(&files[0], seal.to_bytes().expect("bytes")).expect("written");
    let (code, said) = python(&files[..1]).expect("it ran before");
    assert_eq!(code, Some(12), "{said}");
    assert!(said.contains("recorded [9]"), "{said}");
    let _ = std::fs::remove_dir_all(&folder);
}
