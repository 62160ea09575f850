//! The cost of a decision with 100,000 marks, of which the database returns sums and the newest ones: the strengths of
//! members, the weights of their votes, when enough of them have answered, and the promise of the verdict.
//!
//! `plain count` is the baseline: one loop over the same marks that counts how often the first member supported a right
//! verdict. It alternates with the others. *Alike* marks are all of one council and kind; *spread* ones of 20 kinds and
//! councils.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench has no readers of its interface, and may panic as a test may"
)]

use jiff::Timestamp;
use kd_eval::enough::{Aim, MARGIN};
use kd_eval::marks::{
    Basis, By, Evidence, Learned, Mark, Member, RECENT, Sums, VERSION, standing, strengths,
};
use std::hint::black_box;
use std::time::Instant;

const MARKS: usize = 100_000;
const ROUNDS: usize = 31;
const MEMBERS: usize = 5;

/// SplitMix64: the same marks in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

fn mark(at: usize, group: usize, dice: &mut Dice) -> Mark {
    let backing = 2 + dice.below(4) as usize;
    // More support means more often right.
    let is_right = dice.below(100) < 50 + 10 * backing as u64;
    let member = |seat: usize| Member {
        name: format!("member-{seat}"),
        model: format!("vendor/model-{}-2026010{}", seat, group / 4),
        key: Some(if seat < backing {
            "391".into()
        } else {
            format!("{}", 380 + seat)
        }),
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
        kind: ["number", "choice", "yes-no", "text"][group % 4].into(),
        protocol: "council".into(),
        members: (0..MEMBERS).map(member).collect(),
        unasked: Vec::new(),
        stopping: None,
        winner: Some("391".into()),
        credit: f64::from(u8::from(is_right)),
        // Without it wrong verdicts teach `certain-enough` nothing. The last member dissents mostly.
        answer: Some(if is_right { "391" } else { "384" }.into()),
        calls: 5,
        usd: 0.01,
    }
}

fn marks(groups: usize) -> Vec<Mark> {
    let mut dice = Dice(1);
    (0..MARKS)
        .map(|at| mark(at, at % groups, &mut dice))
        .collect()
}

/// Returns the newest of some marks, oldest first.
fn newest(marks: &[Mark], is_wanted: impl Fn(&Mark) -> bool) -> Vec<Mark> {
    let wanted = marks.iter().rev().filter(|mark| is_wanted(mark));
    let mut newest: Vec<Mark> = wanted.take(RECENT).cloned().collect();
    newest.reverse();
    newest
}

fn plain(marks: &[Mark]) -> usize {
    let hits = |mark: &&Mark| mark.credit >= 0.5 && mark.members[0].backs;
    marks.iter().filter(hits).count()
}

/// A function to time, with its name.
type Try<'a> = (&'static str, Box<dyn FnMut() -> bool + 'a>);

fn main() {
    println!("{MARKS} marks, {MEMBERS} members; medians of {ROUNDS}, minimum in brackets");
    println!("{:<34} {:>16} {:>8}", "", "ms", "ratio");
    for (name, groups) in [("alike", 1), ("spread", 20)] {
        let marks = marks(groups);
        let verdict = mark(MARKS, 0, &mut Dice(2));
        let models = verdict.models();
        let all = Evidence::of(marks.clone());
        // What the database of marks returns for a decision.
        let evidence = Evidence {
            recent: newest(&marks, |mark| {
                mark.kind == verdict.kind && mark.models() == models
            }),
            ..all.clone()
        };
        let basis = Basis::of(&evidence, &verdict, None);
        let learn = || Learned::of(black_box(&evidence), "number", &models, |_| true);
        let costs = [1.0; MEMBERS];
        let mut tries: [Try<'_>; 7] = [
            ("plain count", Box::new(|| plain(black_box(&marks)) > 0)),
            (
                "sums of all marks",
                Box::new(|| Sums::of(black_box(&marks)).iter().next().is_none()),
            ),
            (
                "strengths",
                Box::new(|| strengths(black_box(&evidence), "number", &models).is_empty()),
            ),
            ("questions in common", Box::new(|| learn().rows.is_empty())),
            (
                "rule of certain-enough",
                Box::new(|| learn().enough(&costs, Aim::Margin(MARGIN), 1).is_some()),
            ),
            (
                "promise of a verdict",
                Box::new(|| {
                    standing(black_box(&evidence), &verdict, None)
                        .right()
                        .is_some()
                }),
            ),
            (
                "promise of one more verdict",
                Box::new(|| basis.standing(black_box(&verdict)).right().is_some()),
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
        let floor = times[0][ROUNDS / 2];
        for ((what, _), times) in tries.iter().zip(&times) {
            let (median, least) = (times[ROUNDS / 2], times[0]);
            let ms = format!("{median:.2} ({least:.2})");
            println!(
                "{:<34} {ms:>16} {:>8.1}",
                format!("{name}: {what}"),
                median / floor
            );
        }
    }
}
