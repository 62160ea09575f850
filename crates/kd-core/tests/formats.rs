//! `docs/formats.md` has the table of formats.

// The walls of kd-core are not those of its tests, which read files and the environment.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // a test that cannot go on may say so

use kd_core::formats::{FORMATS, table};
use std::path::Path;

const BEGIN: &str = "<!-- formats -->\n";
const END: &str = "<!-- /formats -->";

fn docs(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(path)
}

/// `BLESS=1` writes the table instead.
#[test]
fn the_table_of_the_docs_is_that_of_the_code() {
    let file = docs("formats.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let made = format!("{before}{BEGIN}{}{END}{after}", table());
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
