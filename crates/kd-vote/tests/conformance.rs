//! Compares our counts with those of other programs: 1,700 profiles of pref_voting, 25 elections of RCTab.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

use kd_vote::{CaseReport, RULES, check, find, read_json_lines, tally};

const GOLDEN: &str = include_str!("data/elections/golden_profiles_pref_voting_1.18.2.jsonl");
const ELECTIONS: &str = include_str!("data/elections/rctab_single_winner.jsonl");

fn compare(text: &str) -> CaseReport {
    let mut all = CaseReport::default();
    for case in read_json_lines(text).unwrap() {
        let report = check(&case);
        all.sets += report.sets;
        all.rounds += report.rounds;
        all.unknown.extend(report.unknown);
        for d in &report.differences {
            eprintln!("line {} ({}) {}: {}", case.line, case.name, d.rule, d.what);
        }
        all.differences.extend(report.differences);
    }
    all
}

#[test]
fn every_recorded_winner_set_of_1700_profiles_is_ours() {
    let report = compare(GOLDEN);
    assert_eq!(report.differences.len(), 0);
    assert_eq!(report.unknown, Vec::<String>::new());
    assert_eq!(report.sets, 41_725, "every recorded set was compared");
}

#[test]
fn every_round_of_25_elections_is_ours() {
    let report = compare(ELECTIONS);
    assert_eq!(report.differences.len(), 0);
    assert_eq!(report.rounds, 160, "every recorded round was compared");
}

#[test]
fn every_name_and_alias_names_one_rule() {
    let mut seen = std::collections::BTreeMap::new();
    for rule in RULES {
        for name in std::iter::once(&rule.name).chain(rule.aliases) {
            assert_eq!(find(name).unwrap().name, rule.name, "{name}");
            assert_eq!(
                seen.insert(name.to_lowercase(), rule.name),
                None,
                "{name} stands twice"
            );
        }
        for text in [rule.doc, rule.source, rule.caveat] {
            assert!(
                text.len() > 3 && !text.ends_with('.'),
                "{}: {text}",
                rule.name
            );
        }
    }
}

#[test]
fn a_wrong_record_is_noticed() {
    let line = ELECTIONS
        .lines()
        .find(|l| l.contains("\"duplicate_test\""))
        .unwrap();
    let case = |text: &str| read_json_lines(text).unwrap().remove(0);
    assert_eq!(check(&case(line)).differences, []);
    let wrong = line.replace(
        "\"Banana\": 4, \"Durian\": 3",
        "\"Banana\": 5, \"Durian\": 3",
    );
    assert_ne!(wrong, line);
    assert_eq!(check(&case(&wrong)).differences.len(), 1);
    let mut stopped = case(line);
    stopped.expected.rounds.pop();
    assert_eq!(
        check(&stopped).differences,
        [],
        "a count that was stopped early equals the first rounds of ours"
    );
    let winner = tally(find("rctab").unwrap(), &stopped.ballots, &stopped.rules).winner;
    assert_eq!(
        winner.map(|c| stopped.rules.candidates[c].as_str()),
        Some("Kumquat")
    );
}

#[test]
fn whoever_is_below_the_agreed_least_goes_in_one_round() {
    let poll = |least: u32| {
        let text = format!(
            r#"{{"candidates":["A","B","C","D"],"rules":{{"minimumVoteThreshold":"{least}","overvoteRule":"exhaustImmediately"}},"ballots":[{{"n":9,"ranks":["A"]}},{{"n":8,"ranks":["B"]}},{{"n":3,"ranks":["C","B"]}},{{"n":2,"ranks":["D","C","B"]}}]}}"#
        );
        let case = read_json_lines(&text).unwrap().remove(0);
        tally(find("irv").unwrap(), &case.ballots, &case.rules)
    };
    let eliminated = |least| {
        poll(least)
            .rounds
            .iter()
            .map(|r| r.eliminated.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(eliminated(1), [vec![3], vec![2], vec![]]);
    assert_eq!(eliminated(4), [vec![2, 3], vec![]]);
    assert_eq!(poll(4).winner, Some(1));
    assert_eq!(
        eliminated(100),
        eliminated(1),
        "a least that nobody reaches drops nobody"
    );
}
