//! Every scheduler keeps what its row promises, over a hundred seeded runs; the unfair ones fail where they should.

use super::super::schedulers::SCHEDULERS;
use super::super::settings::Settings;
use super::super::study::{Study, study};
use super::*;

const RUNS: u64 = 100;
/// A fair rule fails a row of one percent about once in a hundred runs; six are beyond all chance (one in 2,000).
const FAILURES_MAX: usize = 6;

#[test]
fn schedulers_pass_and_fail_the_rows_that_they_should() {
    let (agents, cycles) = (5, 300);
    let shuffles = Shuffles::new(agents, cycles, 1);
    for scheduler in SCHEDULERS {
        let settings = Settings {
            scheduler: scheduler.name.into(),
            ..Settings::default()
        };
        let mut failed: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..RUNS {
            let done = study(&Study::alike(&settings, agents, cycles, seed));
            let table = table(
                &done.names,
                &done.samples,
                &[],
                Some(settings.skips_max),
                Some(&shuffles),
            );
            assert_eq!(table.cycles, cycles);
            for row in table.rows.iter().filter(|row| row.pass == Some(false)) {
                *failed.entry(row.key).or_default() += 1;
            }
        }
        let failures = |key: &str| failed.get(key).copied().unwrap_or(0);
        for (key, promised) in [
            ("position_p", scheduler.promises.position),
            ("carry_over_p", scheduler.promises.carry_over),
            ("jain_last", scheduler.promises.last_word),
        ] {
            let n = failures(key);
            if promised {
                assert!(
                    n <= FAILURES_MAX,
                    "{} fails {key} {n} times of {RUNS}",
                    scheduler.name
                );
            } else {
                assert_eq!(
                    n, RUNS as usize,
                    "{} must fail {key} always",
                    scheduler.name
                );
            }
        }
        assert_eq!(failures("longest_silence"), 0, "{}", scheduler.name);
        assert!(failures("jain_turns") <= FAILURES_MAX, "{}", scheduler.name);
    }
}

#[test]
fn known_orders_have_the_figures_of_the_paper_table() {
    let fixed = |n: usize, t: usize, order: fn(usize, usize) -> Vec<usize>| {
        let names: Vec<String> = (0..n).map(|i| i.to_string()).collect();
        let samples: Vec<Sample> = (0..t)
            .map(|c| {
                let order = order(n, c);
                Sample {
                    turns: order.iter().map(|who| (*who, 1)).collect(),
                    order,
                    waits: Vec::new(),
                }
            })
            .collect();
        table(&names, &samples, &[(0, 1), (1, 0), (0, 2)], None, None)
    };
    let rotate = fixed(3, 60, |n, c| (0..n).map(|i| (i + c) % n).collect());
    assert_eq!(rotate.row("position_x2").unwrap().value, Some(0.0));
    assert_eq!(rotate.row("carry_over_x2").unwrap().value, Some(120.0));
    assert!(!rotate.passes());
    let rotate = fixed(5, 200, |n, c| (0..n).map(|i| (i + c) % n).collect());
    assert_eq!(rotate.row("carry_over_x2").unwrap().value, Some(2400.0));
    let always = fixed(3, 60, |n, _| (0..n).collect());
    let last = always.row("jain_last").unwrap();
    assert!(
        last.value.unwrap() < 0.47 && last.pass == Some(false),
        "{last:?}"
    );
    assert_eq!(always.row("entropy_min").unwrap().value, Some(0.0));
    assert!((always.row("reciprocity").unwrap().value.unwrap() - 2.0 / 3.0).abs() < 1e-12);
    let none = table(&[], &[], &[], None, None);
    assert!(
        none.passes() && none.rows.iter().all(|row| row.value.is_none()),
        "nothing to judge is no failure"
    );
}
