//! The recorded answers to public sets, and the members that figures are about.
#![allow(dead_code, reason = "each test uses a part of it")]

use kd_eval::replay::{Empty, Table};
use std::path::PathBuf;

/// The files of the sets.
pub(crate) const FILES: [&str; 4] = [
    "zeroeval_gsm_44models.csv",
    "zeroeval_math-l5_43models.csv",
    "zeroeval_crux_51models.csv",
    "mmlu_pro_29models.csv",
];
/// Models that answered all sets but MMLU-Pro.
pub(crate) const FRONTIER: [&str; 5] = [
    "gpt-4o-2024-08-06",
    "claude-3-5-sonnet-20241022",
    "gemini-1.5-pro",
    "Meta-Llama-3.1-405B-Instruct@hyperbolic",
    "Mistral-Large-2",
];
/// Models that answered MMLU-Pro.
pub(crate) const MMLU_PRO: [&str; 5] = [
    "gemini-1.5-pro-002",
    "gemini-1.5-flash-002",
    "Meta-Llama-3_1-70B-Instruct",
    "DeepSeek-Coder-V2",
    "jamba-1.5-large",
];

/// Returns the text of a file of the crate.
pub(crate) fn text(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(path).unwrap()
}

/// Returns the text of a set.
pub(crate) fn recorded(file: &str) -> String {
    text(&format!("tests/data/replay/{file}"))
}

/// Returns the answers to a set; a missing one abstains.
pub(crate) fn table(file: &str) -> Table {
    Table::read(&recorded(file), Empty::Abstains).unwrap()
}
