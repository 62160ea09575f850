//! The cost of a decision with 100,000 marks in the user's database: what `auto` and `certain-enough` learn before the
//! question is asked, and what is promised about the verdict.
//!
//! *all marks* is the baseline, in the same run: reading every mark, as a decision would without kept sums and indexes.
//! *Alike* marks are all of one council and kind; *spread* ones of 20 kinds and councils.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench has no readers of its interface, and may panic as a test may"
)]

use kd_core::Timestamp;
use kd_eval::enough::{Aim, MARGIN};
use kd_eval::marks::{By, Learned, Mark, Member, VERSION, standing};
use kd_sql::marks::{Marks, like, of_kind, read};
use kd_store::user_dirs::UserDirs;
use std::hint::black_box;
use std::time::Instant;

const MARKS: usize = 100_000;
const ROUNDS: usize = 15;
const MEMBERS: usize = 5;

fn mark(at: usize, groups: usize) -> Mark {
    // A fixed sequence without a pattern.
    let dice = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let (backing, group) = (2 + dice % 4, at % groups);
    let is_right = dice / 4 % 100 < 50 + 10 * backing;
    let member = |seat: usize| Member {
        name: format!("member-{seat}"),
        model: format!("vendor/model-{seat}-2026010{}", group / 4),
        key: Some(if seat < backing { 391 } else { 380 + seat }.to_string()),
        backs: seat < backing,
        confidence: Some(0.8),
    };
    Mark {
        v: VERSION,
        project: "project-8c1f2a".into(),
        thread: format!("council-{at:06x}"),
        message: 6,
        at: Timestamp::from_second(1_700_000_000 + at as i64 * 60).unwrap(),
        by: By::User,
        kind: ["number", "choice", "yes-no", "exact"][group % 4].into(),
        protocol: "vote".into(),
        members: (0..MEMBERS).map(member).collect(),
        unasked: Vec::new(),
        stopping: None,
        winner: Some("391".into()),
        credit: f64::from(u8::from(is_right)),
        // Without it wrong verdicts teach `certain-enough` nothing.
        answer: Some(if is_right { "391" } else { "380" }.into()),
        calls: 5,
        usd: 0.01,
    }
}

/// A function to time, with its name.
type Try<'a> = (&'static str, Box<dyn FnMut() -> bool + 'a>);

fn main() {
    println!("{MARKS} marks, {MEMBERS} members; medians of {ROUNDS}, minimum in brackets");
    println!("{:<34} {:>18} {:>8}", "", "ms", "ratio");
    for (name, groups) in [("alike", 1), ("spread", 20)] {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().as_os_str().to_owned();
        let dirs = UserDirs::from_env(&|name: &str| (name == "HOME").then(|| at.clone()));
        let all: Vec<Mark> = (0..MARKS).map(|at| mark(at, groups)).collect();
        Marks::open(&dirs).unwrap().add_all(&all).unwrap();
        drop(all);
        let verdict = mark(MARKS * groups, groups);
        let models = verdict.models();
        let learn = || {
            let evidence = of_kind(&dirs, &verdict.kind, Timestamp::MAX).unwrap();
            Learned::of(black_box(&evidence), &verdict.kind, &models, |_| true)
        };
        let promise = || {
            let evidence = like(&dirs, &verdict, Timestamp::MAX).unwrap();
            standing(black_box(&evidence), &verdict, None).marks > 0
        };
        let mut tries: [Try<'_>; 7] = [
            ("all marks", Box::new(|| read(&dirs).unwrap().is_empty())),
            ("opening", Box::new(|| Marks::open(&dirs).is_err())),
            (
                "reading a kind",
                Box::new(|| {
                    of_kind(&dirs, &verdict.kind, Timestamp::MAX)
                        .unwrap()
                        .is_empty()
                }),
            ),
            ("auto", Box::new(|| learn().strengths.is_empty())),
            (
                "certain-enough",
                Box::new(|| {
                    let rule = learn().enough(&[1.0; MEMBERS], Aim::Margin(MARGIN), 1);
                    rule.is_some()
                }),
            ),
            ("promise", Box::new(promise)),
            (
                "auto and promise",
                Box::new(|| learn().strengths.is_empty() | promise()),
            ),
        ];
        let mut times = vec![Vec::new(); tries.len()];
        for _ in 0..ROUNDS {
            for ((_, run), times) in tries.iter_mut().zip(&mut times) {
                let begin = Instant::now();
                black_box(run());
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
        times
            .iter_mut()
            .for_each(|times| times.sort_by(f64::total_cmp));
        let whole = times[0][ROUNDS / 2];
        for ((what, _), times) in tries.iter().zip(&times) {
            let (median, least) = (times[ROUNDS / 2], times[0]);
            let ms = format!("{median:.2} ({least:.2})");
            let what = format!("{name}: {what}");
            println!("{what:<34} {ms:>18} {:>8.4}", median / whole);
        }
    }
}
