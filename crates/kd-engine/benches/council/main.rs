//! Measures what a council costs above its baseline: CPU time, wall time beyond the server's pace, memory, and the
//! effect of one failing request in ten.
//!
//! `cargo bench -p kd-engine --bench council [-- cpu | wall | load | faults]`, and with `KD=target/release/kd` also
//! `-- serve`: the same load through one `kd serve`, and `-- first`: what that adds to the first token.
//!
//! Each part (`part`) and the fake server (`serve`) run as a new process of this program, so that each figure measures
//! one process doing one thing. `ours` and `floor` alternate; medians of the rounds are printed. `ours` is engine,
//! store and HTTP backend with one thread per question and messages synced to disk; `floor`, the baseline, makes the
//! same calls over raw sockets and nothing else.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench has no readers of its interface, and may panic as a test may"
)]

mod floor;
mod house;
mod part;
mod served;
mod server;

use part::{Figures, Part, Who};
use server::Server;

/// Members of the large council.
const NINE: usize = 9;
/// Rounds in which `ours` and `floor` alternate.
const ROUNDS: usize = 5;

/// The behavior of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 100 tokens at once.
    Burst100,
    /// 200 tokens at once.
    Burst200,
    /// The first token after 200 ms, then one every 5 ms, 100 in total.
    Paced,
    /// Like `Burst100`, but one request in ten fails.
    Faulty,
    /// The first token after 20 ms, then one every 2 ms, 10 in total.
    Soon,
}

impl Kind {
    const ALL: [Kind; 5] = [
        Kind::Burst100,
        Kind::Burst200,
        Kind::Paced,
        Kind::Faulty,
        Kind::Soon,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Burst100 => "burst100",
            Kind::Burst200 => "burst200",
            Kind::Paced => "paced",
            Kind::Faulty => "faulty",
            Kind::Soon => "soon",
        }
    }

    fn parse(word: &str) -> Kind {
        Kind::ALL.into_iter().find(|k| k.word() == word).unwrap()
    }
}

/// The time at which the last token of [`Kind::Paced`] is due, in milliseconds.
const IDEAL_MS: f64 = 200.0 + 99.0 * 5.0;

fn main() {
    // `cargo bench` adds `--bench`.
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve", kind] => server::serve(Kind::parse(kind)),
        ["relay", address] => server::relay(address),
        ["part", ref rest @ ..] => part::run(rest),
        _ => {
            let wanted = |name: &str| args.is_empty() || args.contains(&name);
            if wanted("cpu") {
                cpu();
            }
            if wanted("wall") {
                wall();
            }
            if wanted("load") {
                load();
            }
            if wanted("faults") {
                faults();
            }
            match std::env::var_os("KD") {
                Some(kd) => {
                    if wanted("serve") {
                        served::load(kd.as_ref());
                    }
                    if wanted("first") {
                        served::first_token(kd.as_ref());
                    }
                }
                None if args.contains(&"serve") || args.contains(&"first") => {
                    panic!("KD is the path of the program");
                }
                None => {}
            }
        }
    }
}

/// Alternates `ours` and `floor`.
fn pairs(server: &Server, part: Part) -> (Figures, Figures) {
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(part::spawn(Who::Ours, part, &server.url));
        floor.push(part::spawn(Who::Floor, part, &server.url));
    }
    (Figures::median(&ours), Figures::median(&floor))
}

fn cpu() {
    println!("\nCPU ms per 1,000 streamed tokens, messages written (goal: 2.5, 2.5 x floor)");
    println!("{:<44}{:>8}{:>8}{:>8}", "", "floor", "ours", "ratio");
    for (what, kind, questions, tokens) in [
        ("9 members x 200 tokens, no pace", Kind::Burst200, 200, 200),
        ("9 members x 100 tokens, no pace", Kind::Burst100, 200, 100),
        ("9 members x 100 tokens, 5 ms a token", Kind::Paced, 4, 100),
    ] {
        let server = Server::start(kind);
        let (ours, floor) = pairs(
            &server,
            Part {
                members: NINE,
                at_once: 1,
                questions,
            },
        );
        let per = |f: &Figures| f.cpu_ms / (NINE * tokens) as f64 * 1000.0;
        let (ours, floor) = (per(&ours), per(&floor));
        println!("{what:<44}{floor:>8.2}{ours:>8.2}{:>8.2}", ours / floor);
    }
}

fn wall() {
    println!("\nwall ms above the ideal of {IDEAL_MS} ms (goal: 5 for ours)");
    println!("{:<44}{:>8}{:>8}{:>8}", "", "floor", "ours", "differ");
    let server = Server::start(Kind::Paced);
    for members in [1, 3, NINE] {
        let (ours, floor) = pairs(
            &server,
            Part {
                members,
                at_once: 1,
                questions: 4,
            },
        );
        let (ours, floor) = (ours.wall_ms - IDEAL_MS, floor.wall_ms - IDEAL_MS);
        let what = format!("{members} members, question to all on disk");
        println!("{what:<44}{floor:>8.1}{ours:>8.1}{:>8.1}", ours - floor);
    }
}

fn load() {
    println!(
        "\n9 members x 100 tokens: questions per CPU-second (goal: 350, and at 128 70 % of that at 16)"
    );
    println!(
        "{:<12}{:>10}{:>10}{:>8}{:>14}{:>14}{:>14}",
        "at once", "floor", "ours", "ratio", "floor peak MB", "our peak MB", "our q/s"
    );
    let server = Server::start(Kind::Burst100);
    for (at_once, questions) in [(1, 200), (16, 400), (128, 640)] {
        let (ours, floor) = pairs(
            &server,
            Part {
                members: NINE,
                at_once,
                questions,
            },
        );
        let (ours_per, floor_per) = (1000.0 / ours.cpu_ms, 1000.0 / floor.cpu_ms);
        println!(
            "{at_once:<12}{floor_per:>10.0}{ours_per:>10.0}{:>8.2}{:>14.1}{:>14.1}{:>14.0}",
            floor_per / ours_per,
            floor.peak_mb,
            ours.peak_mb,
            ours.per_second
        );
    }
}

fn faults() {
    let questions = 200;
    println!(
        "\none request in ten fails (429, 500, cut); {questions} questions, 8 at once, 9 members"
    );
    let server = Server::start(Kind::Faulty);
    let part = Part {
        members: NINE,
        at_once: 8,
        questions,
    };
    let figures = part::spawn(Who::Ours, part, &server.url);
    let requests = server.stop();
    println!(
        "lost {} (goal 0); whole {:.1} % (goal 99); requests x {:.3} (goal 1.2)",
        figures.lost,
        figures.whole as f64 / questions as f64 * 100.0,
        // The warm-up sends requests too.
        requests as f64 / ((questions + part.at_once) * NINE) as f64
    );
}
