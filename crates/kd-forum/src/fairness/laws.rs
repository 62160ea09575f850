//! Every scheduler keeps the promises in its row; the unfair ones fail where they should. The large table of error rate
//! and power is in `tests/fairness.rs`.

use super::super::cards::Candidate;
use super::super::cycle::draw;
use super::super::schedulers::SCHEDULERS;
use super::super::study::{Study, study};
use super::*;
use kd_core::config::forum::Settings;

const RUNS: u64 = 100;
/// A fair rule fails a row less than once in a hundred runs; even six would be implausible (one in 2,000).
const FAILURES_MAX: usize = 6;

fn judged(what: &Study) -> Judge {
    let mut judge = Judge::default();
    study(what, &mut |sample| judge.add(sample));
    judge
}

#[test]
fn the_levels_of_all_rows_together_are_at_most_one_percent() {
    const { assert!(level::ALL <= 0.01 + 1e-12) };
    let lines: f64 = Judge::default()
        .table(Look::Once)
        .rows
        .iter()
        .filter_map(|row| row.line)
        .sum();
    assert!((lines - level::ALL).abs() < 1e-12, "{lines}");
}

#[test]
fn an_agents_share_of_posts_and_its_due_are_of_the_same_cycles() {
    let mut judge = Judge::default();
    for seed in 0..12 {
        let mut names = vec!["ada", "bo"];
        // It joins late and floods.
        names.extend((seed >= 10).then_some("spam"));
        let candidates = names.into_iter().map(Candidate::named).collect();
        let cards = Cards::new(&Settings::default(), seed, 0, candidates);
        let plan = draw(&cards);
        let mut sample = Sample::of(&cards, &plan);
        sample.turns = plan
            .order
            .iter()
            .map(|agent| Turn {
                agent,
                posts: if agent == "spam" { 6 } else { 1 },
                ..Turn::default()
            })
            .collect();
        judge.add(&sample);
    }
    let table = judge.table(Look::Once);
    let spam = table.agents.iter().find(|agent| agent.agent == "spam");
    let spam = spam.unwrap();
    assert_eq!((spam.posts, spam.posts_share), (12, 12.0 / 16.0));
    let row = table.row("posts").unwrap();
    assert_eq!(row.agent.as_deref(), Some("spam"));
    assert_eq!(row.value, Some(spam.posts_share));
    assert_eq!(row.entitled, Some(spam.use_entitled));
}

#[test]
fn schedulers_pass_and_fail_the_rows_that_they_should() {
    for scheduler in SCHEDULERS {
        let settings = Settings {
            scheduler: scheduler.name.into(),
            ..Settings::default()
        };
        let mut failed: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..RUNS {
            let judge = judged(&Study::alike(&settings, 5, 300, seed));
            for look in [Look::Once, Look::Running] {
                let table = judge.table(look);
                assert_eq!(table.cycles, 300);
                for row in table.rows.iter().filter(|row| row.pass == Some(false)) {
                    *failed.entry(row.key).or_default() += 1;
                }
            }
        }
        for row in Judge::default().table(Look::Once).rows {
            let n = failed.get(row.key).copied().unwrap_or(0);
            let promised = match row.key {
                "mean_place" => scheduler.promises.mean_place,
                "neighbors" => scheduler.promises.carry_over,
                "places" | "first_places" | "first_words" | "last_words" => {
                    scheduler.promises.position
                }
                _ => true,
            };
            let name = scheduler.name;
            match promised {
                true => assert!(n <= FAILURES_MAX, "{name} fails {} {n} times", row.key),
                // Both kinds of tests detect it in each run.
                false => assert_eq!(n, 2 * RUNS as usize, "{name} must fail {}", row.key),
            }
        }
    }
}

/// Runs cycles in which each agent does what `uses` says in each of its turns.
fn used(agents: Vec<Candidate>, cycles: u64, uses: impl Fn(&str) -> u64) -> Table {
    let mut cards = Cards::new(&Settings::default(), 11, 0, agents);
    let mut judge = Judge::default();
    for index in 0..cycles {
        cards.index = index;
        let plan = draw(&cards);
        let mut sample = Sample::of(&cards, &plan);
        for turn in &mut sample.turns {
            turn.posts = uses(turn.agent);
        }
        judge.add(&sample);
        for candidate in &mut cards.candidates {
            let turn = plan.turns.iter().any(|t| t.agent == candidate.name);
            candidate.lived(turn, 0);
        }
    }
    judge.table(Look::Running)
}

#[test]
fn an_agent_that_posts_ten_times_a_visit_fails_and_one_that_asked_to_skip_does_not() {
    let five = || ["a", "b", "c", "d", "e"].map(Candidate::named).to_vec();
    let loud = used(five(), 200, |name| if name == "c" { 10 } else { 1 });
    let row = loud.row("posts").unwrap();
    assert_eq!((row.pass, row.agent.as_deref()), (Some(false), Some("c")));
    assert!((row.entitled.unwrap() - 0.2).abs() < 0.01, "{row:?}");
    let mut own = five();
    own[1].skip_probability = 0.7;
    own[2].skip_probability = 0.0;
    let asked = used(own, 500, |_| 1);
    assert!(asked.passes(), "{:?}", asked.rows);
    let b = &asked.agents[1];
    assert!(b.turns < 250 && (b.turns as f64 - b.turns_entitled).abs() < 40.0);
}

#[test]
fn agents_that_join_and_leave_keep_the_history() {
    let mut judge = Judge::default();
    let settings = Settings {
        scheduler: "fixed".into(),
        ..Settings::default()
    };
    for index in 0..200 {
        // One of six takes part from the middle on, another until then.
        let here = |i: usize| i < 4 || (index < 100) == (i == 4);
        let names = ["a", "b", "c", "d", "e", "f"];
        let agents = (0..6)
            .filter(|i| here(*i))
            .map(|i| Candidate::named(names[i]));
        let cards = Cards::new(&settings, 7, index, agents.collect());
        let plan = draw(&cards);
        judge.add(&Sample::of(&cards, &plan));
    }
    let table = judge.table(Look::Once);
    assert_eq!((table.cycles, table.agents.len()), (200, 6));
    let cycles: Vec<u64> = table.agents.iter().map(|a| a.cycles).collect();
    assert_eq!(cycles, [200, 200, 200, 200, 100, 100]);
    assert_eq!(table.row("mean_place").unwrap().pass, Some(false));
    assert_eq!(table.agents[0].place, 1.0);
    assert_eq!(table.agents[0].place_entitled, 3.0);
}

#[test]
fn nothing_to_judge_is_no_failure_and_due_agents_may_not_be_left_out() {
    let none = Judge::default().table(Look::Running);
    assert!(none.passes() && none.rows.iter().all(|row| row.value.is_none()));
    let mut candidate = Candidate::named("a");
    candidate.skipped = 3;
    let cards = Cards::new(
        &Settings::default(),
        1,
        0,
        vec![candidate, Candidate::named("b")],
    );
    let plan = draw(&cards);
    let mut sample = Sample::of(&cards, &plan);
    sample.turns.retain(|turn| turn.agent != "a");
    let mut judge = Judge::default();
    judge.add(&sample);
    let table = judge.table(Look::Once);
    assert_eq!(table.row("longest_silence").unwrap().pass, Some(false));
    assert!(!table.passes());
}
