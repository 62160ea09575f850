//! Whether promises are kept where members are stopped early, and what it costs to count councils that were stopped early
//! and those of which all were asked as one.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout
)]

mod support;

use jiff::Timestamp;
use kd_eval::deciders::{RECORDED, gold_mark};
use kd_eval::enough::{Aim, Enough, MARGIN};
use kd_eval::marks::{Basis, Evidence, Learned, Mark, Member};
use kd_eval::replay::{Question, Replay};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use support::{FRONTIER, MMLU_PRO, table};

const SETS: [(&str, [&str; 5], [f64; 2]); 4] = [
    ("zeroeval_gsm_44models.csv", FRONTIER, [0.9, 0.95]),
    ("zeroeval_math-l5_43models.csv", FRONTIER, [0.7, 0.8]),
    ("zeroeval_crux_51models.csv", FRONTIER, [0.8, 0.9]),
    ("mmlu_pro_29models.csv", MMLU_PRO, [0.7, 0.8]),
];
/// Questions that all members were asked, which teach the rule and the strengths; marks of verdicts to promise about.
const TAUGHT: usize = 250;
const MARKED: usize = 200;
/// Maximum verdicts on which promises are tested.
const TESTED: usize = 1000;

/// How verdicts stopped early are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counted {
    /// The members asked are a council of their own.
    Apart,
    /// The same council; members that were not asked do not count in the score.
    Together,
    /// The same council; members that were not asked count as silent in the score.
    Silent,
}

/// How members are stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    /// When the rule of `certain-enough` is certain enough.
    Enough,
    /// In every second verdict, when no missing vote can change the leader.
    Settled,
}

fn replay(file: &str, members: &[&str]) -> Replay {
    let names: Vec<String> = members.iter().map(|name| (*name).to_owned()).collect();
    table(file).council(&names).unwrap()
}

/// Returns the marked verdict of a question, for which members are asked in the rule's order.
fn mark(
    at: usize,
    question: &Question,
    members: &[String],
    rule: &Enough,
    stop: Stop,
    counted: Counted,
) -> Option<Mark> {
    let mut asked: Vec<(usize, Option<usize>)> = Vec::new();
    for member in &rule.order {
        asked.push((*member, question.answers[*member]));
        let look = rule.look(&asked);
        let is_over = match stop {
            Stop::Enough => rule.is_enough(look),
            Stop::Settled => at.is_multiple_of(2) && look.is_settled,
        };
        if is_over {
            break;
        }
    }
    let winner = rule.look(&asked).leader?;
    let key = |answer: usize| question.keys[answer].clone();
    let (mut of, mut unasked) = (Vec::new(), Vec::new());
    for (place, name) in members.iter().enumerate() {
        let given = asked.iter().find(|(member, _)| *member == place);
        if given.is_none() && counted != Counted::Silent {
            unasked.push(name.clone());
            continue;
        }
        let answer = given.and_then(|(_, answer)| *answer);
        of.push(Member {
            name: name.clone(),
            model: name.clone(),
            key: answer.map(key),
            backs: answer == Some(winner),
            confidence: None,
        });
    }
    if counted == Counted::Apart {
        unasked.clear();
    }
    Some(Mark {
        message: at as u32 + 1,
        at: Timestamp::from_second(at as i64).unwrap(),
        protocol: "certain-enough".into(),
        members: of,
        unasked,
        stopping: Some(match stop {
            Stop::Enough => "margin".into(),
            Stop::Settled => "settled".into(),
        }),
        winner: Some(key(winner)),
        credit: f64::from(u8::from(question.share_right(&[winner]) == 1.0)),
        answer: None,
        ..gold_mark(at as u32 + 1, question, members)
    })
}

#[derive(Default)]
struct Found {
    answered: f64,
    wrong: u64,
    covered: u64,
    broken: u64,
}

fn measure(replay: &Replay, promise: f64, stop: Stop, counted: Counted, splits: u64) -> Found {
    let members = &replay.members;
    let models: Vec<&str> = members.iter().map(String::as_str).collect();
    let mut found = Found::default();
    for seed in 0..splits {
        let mut order: Vec<&Question> = replay.questions.iter().collect();
        order.shuffle(&mut ChaCha12Rng::seed_from_u64(seed));
        let gold = (0u32..)
            .zip(&order[..TAUGHT])
            .map(|(at, question)| gold_mark(at + 1, question, members));
        let taught = Evidence::of(gold.collect());
        let learned = Learned::of(&taught, RECORDED, &models, |_| true);
        let rule = match stop {
            Stop::Enough => learned
                .enough(&[1.0; 5], Aim::Margin(MARGIN), seed)
                .unwrap(),
            Stop::Settled => Enough::unlearned((0..5).collect(), &[1.0; 5]),
        };
        let marks: Vec<Mark> = (order.iter().enumerate().skip(TAUGHT).take(MARKED + TESTED))
            .filter_map(|(at, question)| mark(at, question, members, &rule, stop, counted))
            .collect();
        let (given, rest) = marks.split_at(MARKED.min(marks.len() / 2));
        let mut evidence = taught;
        given.iter().for_each(|mark| evidence.add(mark.clone()));
        let mut bases: Vec<(Vec<&str>, Basis)> = Vec::new();
        let (mut covered, mut wrong) = (0, 0);
        for verdict in rest {
            let models = verdict.models();
            let at = bases
                .iter()
                .position(|(of, _)| *of == models)
                .unwrap_or_else(|| {
                    bases.push((models, Basis::of(&evidence, verdict, None)));
                    bases.len() - 1
                });
            if bases[at]
                .1
                .right(verdict)
                .is_some_and(|right| right >= promise)
            {
                covered += 1;
                wrong += u64::from(!verdict.is_right());
            }
        }
        found.answered += covered as f64 / rest.len() as f64 / splits as f64;
        found.covered += covered;
        found.wrong += wrong;
        found.broken += u64::from(wrong as f64 > (1.0 - promise) * covered as f64 + 1e-9);
    }
    found
}

#[test]
fn councils_that_were_stopped_early_count_with_those_that_were_not() {
    let (file, members, _) = SETS[2];
    let replay = replay(file, &members);
    let of = |counted| measure(&replay, 0.9, Stop::Settled, counted, 10);
    let (apart, together) = (of(Counted::Apart), of(Counted::Together));
    assert!(together.answered > apart.answered, "{}", together.answered);
    assert!(together.broken <= 1, "{}", together.broken);
}

/// `cargo test --release -p kd-eval --test stopped -- --ignored --nocapture`
#[test]
#[ignore = "it tries 14,400 splits"]
fn promises_are_kept_where_members_are_stopped_early() {
    for stop in [Stop::Enough, Stop::Settled] {
        for (file, members, promises) in SETS {
            let replay = replay(file, &members);
            for promise in promises {
                for counted in [Counted::Apart, Counted::Together, Counted::Silent] {
                    let found = measure(&replay, promise, stop, counted, 300);
                    println!(
                        "{stop:?} {file} {promise}: {counted:?}: answers {:.1} %, {:.1} % of these wrong, broken in {:.1} % of splits",
                        found.answered * 100.0,
                        found.wrong as f64 / found.covered.max(1) as f64 * 100.0,
                        found.broken as f64 / 3.0,
                    );
                }
            }
        }
    }
}
