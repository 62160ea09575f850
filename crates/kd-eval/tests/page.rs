//! The published page on the public sets is what the program computes.
#![allow(missing_docs, clippy::disallowed_methods, clippy::unwrap_used)]

use kd_eval::page::{Draw, Set, markdown, study};
use kd_eval::replay::{Empty, PUBLIC, Public, Table, fingerprint};
use std::path::PathBuf;

fn here(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the page on these public sets.
fn page(public: &[Public], councils: usize) -> String {
    let read = |set: &Public| {
        let text = std::fs::read_to_string(here("tests/data/replay").join(set.file)).unwrap();
        (
            set.name,
            fingerprint(text.as_bytes()),
            Table::read(&text, Empty::Abstains).unwrap(),
        )
    };
    let tables: Vec<_> = public.iter().map(read).collect();
    let set = |(name, sha256, table)| Set {
        name: str::to_owned(name),
        sha256: String::clone(sha256),
        table,
    };
    let sets: Vec<Set<'_>> = tables
        .iter()
        .map(|(name, sha, table)| set((name, sha, table)))
        .collect();
    let draw = Draw {
        councils,
        size: 5,
        seed: 1,
    };
    markdown(&study(&sets, draw).unwrap())
}

/// Compares with a file; with `BLESS=1` writes it.
fn same(page: &str, file: &str) {
    let file = here(file);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, page).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        page,
        "{}",
        file.display()
    );
}

/// A page on one set with few councils.
#[test]
fn a_small_page_is_what_it_was() {
    same(&page(&PUBLIC[1..2], 3), "tests/data/page-small.md");
}

/// `cargo test --release -p kd-eval --test page -- --ignored`
#[test]
#[ignore = "it decides 160 councils with four rules"]
fn the_published_page_is_what_the_program_computes() {
    same(&page(&PUBLIC, 40), "../../docs/councils.md");
}
