//! Counts a file of ballots (CSV or JSON Lines) by every rule, or a built-in example without an argument.
//!
//! ```sh
//! cargo run -p kd-vote --example compare_rules -- ballots.csv
//! ```
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program, which reads files and prints"
)]

use kd_vote::{Case, RULES, read_csv, read_json_lines, tally};
use std::error::Error;

const EXAMPLE: &str = "n,rank1,rank2,rank3,rank4\n\
    42,Memphis,Nashville,Chattanooga,Knoxville\n\
    26,Nashville,Chattanooga,Knoxville,Memphis\n\
    15,Chattanooga,Knoxville,Nashville,Memphis\n\
    17,Knoxville,Chattanooga,Nashville,Memphis\n";

fn main() -> Result<(), Box<dyn Error>> {
    let cases = match std::env::args().nth(1) {
        None => vec![read_csv(EXAMPLE)?],
        Some(path) => {
            let text = std::fs::read_to_string(&path)?;
            match path.ends_with(".csv") {
                true => vec![read_csv(&text)?],
                false => read_json_lines(&text)?,
            }
        }
    };
    for case in &cases {
        print_winners(case);
    }
    Ok(())
}

fn print_winners(case: &Case) {
    for rule in RULES {
        let count = tally(rule, &case.ballots, &case.rules);
        if count.winners.is_empty() {
            continue;
        }
        let names: Vec<&str> = count
            .winners
            .iter()
            .map(|c| case.rules.candidates[*c].as_str())
            .collect();
        println!("{:24} {}", rule.name, names.join(" = "));
    }
}
