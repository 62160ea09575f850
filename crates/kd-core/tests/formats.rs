//! Checks the table of formats in `docs/formats.md`.

// kd-core's lints against I/O do not apply to its tests, which read files and the environment.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // a test that cannot go on may say so

use kd_core::formats::{FORMATS, PRINTED, printed_table, table};
use std::path::Path;

fn docs(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(path)
}

/// `BLESS=1` writes the tables instead.
#[test]
fn the_tables_of_the_docs_are_those_of_the_code() {
    let file = docs("formats.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut made = text.clone();
    for (name, table) in [("formats", table()), ("printed", printed_table())] {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
        let (before, rest) = made.split_once(&begin).unwrap();
        let (_, after) = rest.split_once(&end).unwrap();
        made = format!("{before}{begin}{table}{end}{after}");
    }
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(&file, &made).unwrap();
    }
    assert!(text == made, "run the tests with BLESS=1");
}

#[test]
fn a_format_has_one_row_and_every_link_leads_somewhere() {
    for (at, format) in FORMATS.iter().enumerate() {
        let twin = FORMATS[..at].iter().find(|row| row.what == format.what);
        assert_eq!(twin, None);
        let links = format.schema.split("](").skip(1);
        for link in links.filter_map(|link| link.split([')', '#']).next()) {
            assert!(docs(link).exists(), "{link}");
        }
    }
}

/// Every schema belongs to a row, and every row has one.
#[test]
fn a_schema_belongs_to_one_row() {
    let mut rows: Vec<String> = PRINTED
        .iter()
        .map(|row| format!("{}.schema.json", row.schema))
        .collect();
    let files = std::fs::read_dir(docs("schemas")).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let of_files = |name: &String| FORMATS.iter().any(|row| row.schema.contains(name.as_str()));
    let (stored, mut printed): (Vec<String>, Vec<String>) =
        files.partition(|name| of_files(name) && !rows.contains(name));
    assert_eq!(stored.len(), 3, "{stored:?}");
    rows.sort();
    printed.sort();
    assert_eq!(rows, printed);
}
