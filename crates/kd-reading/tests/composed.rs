//! Replies composed from templates with a known answer: a commitment, or none, with distractors before and after it, in
//! the shapes models write, in five languages.
//!
//! The templates are in sets, written one after the other by somebody who had seen the parser. `build` was in view while
//! the gate was made. Each later set was measured untouched, and then the classes of its misreadings were closed. Of
//! 5,000 replies of each set, choices, yes-no and numbers misread, and open texts misread:
//!
//! | set | before the gate | untouched, with the gate | now |
//! |---|---|---|---|
//! | `build` | 127, 86 | | 0, 0 |
//! | `measure` | 325, 391 | 209, 391 | 0, 0 |
//! | `second` | 357, 371 | 173, 371 | 0, 0 |
//! | `third` | 442, 307 | 265, 339 | 0, 0 |
//!
//! The learned weights have seen the first 2,400 replies of each set. After its first run, five templates of `third` were removed: they say `about 40`, which a person reads as 40.
#![allow(clippy::unwrap_used)]

use kd_reading::{Answer, Options, Wanted, read};
use std::cell::RefCell;

#[path = "composed/cases.rs"]
mod cases;
use cases::{Case, REPLIES, cases};

fn said(case: &Case) -> Option<String> {
    let (kind, rest) = case.kind.split_once(':').unwrap_or((&case.kind, ""));
    let names: Vec<String> = match kind {
        "yes-no" => ["yes", "no"].map(str::to_owned).to_vec(),
        "label" => ["A", "B", "C"].map(str::to_owned).to_vec(),
        _ => rest.split('|').map(str::to_owned).collect(),
    };
    let wanted = match kind {
        "number" => Wanted::Number,
        "text" => Wanted::Short,
        _ => Wanted::Option(Options::new(&names)),
    };
    match read(&wanted, &case.reply).ok()?.0 {
        Answer::Option(at) => Some(names[at].clone()),
        Answer::Text(text) => Some(text),
    }
}

/// Counts of one half.
#[derive(Debug, Default)]
struct Figures {
    readable: usize,
    read: usize,
    misread: usize,
}

fn measured(half: &str, show: impl Fn(&str, &Case, Option<&str>)) -> Figures {
    let mut figures = Figures::default();
    for case in cases(half) {
        let got = said(&case);
        figures.readable += usize::from(case.want.is_some());
        match (&case.want, &got) {
            (None, None) => {}
            (Some(want), Some(got)) if want == got => figures.read += 1,
            (Some(_), None) => show("unread", &case, None),
            (_, Some(got)) => {
                figures.misread += 1;
                show("MISREAD", &case, Some(got));
            }
        }
    }
    figures
}

/// Asserts the maximum of misread replies of a set, and the minimum percentage of the readable ones that are read.
fn hold(set: &str, misread: usize, floor: usize) {
    let wrong = RefCell::new(Vec::new());
    let figures = measured(set, |what, case, got| {
        if what == "MISREAD" {
            let line = format!("{:?}: {got:?}, not {:?}", case.reply, case.want);
            wrong.borrow_mut().push(line);
        }
    });
    let wrong = wrong.into_inner().join("\n");
    assert!(figures.misread <= misread, "{set}: {figures:?}\n{wrong}");
    assert!(
        100 * figures.read >= floor * figures.readable,
        "{set}: {figures:?}"
    );
}

#[test]
fn replies_of_the_build_set_are_read_as_meant_or_not_at_all() {
    hold("build", 0, 98);
}

#[test]
fn replies_of_the_measure_set_are_read_as_meant_or_not_at_all() {
    hold("measure", 0, 98);
}

#[test]
fn replies_of_the_second_set_are_read_as_meant_or_not_at_all() {
    hold("second", 0, 95);
}

#[test]
fn replies_of_the_third_set_are_read_as_meant_or_not_at_all() {
    hold("third", 0, 96);
}

/// Prints the figures of the half in `KD_HALF`, and its misread and unread replies.
#[test]
#[ignore = "prints figures; holds nothing"]
#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "reads the half that the caller names"
)]
fn figures() {
    let half = std::env::var("KD_HALF").unwrap();
    let figures = measured(&half, |what, case, got| {
        println!(
            "{what} {} {:?}: {got:?}, not {:?}",
            case.kind, case.reply, case.want
        );
    });
    println!("{half}: {figures:?} of {REPLIES}");
}
