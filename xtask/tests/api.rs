//! The public API of the libraries is the one in `docs/api`, so that nobody breaks it without seeing it.

use std::fs;
use xtask::api;

#[test]
fn the_public_api_of_the_libraries_is_the_one_in_docs() {
    let root = xtask::root();
    let mut faults = Vec::new();
    for name in api::LIBRARIES {
        let page = root.join("docs/api").join(format!("{name}.txt"));
        let found = api::of(&xtask::source_root(&root, name)).unwrap();
        if std::env::var_os("BLESS").is_some() {
            fs::write(&page, &found).unwrap();
        }
        let kept = fs::read_to_string(&page).unwrap_or_default();
        faults.extend(api::differences(&kept, &found));
    }
    assert!(
        faults.is_empty(),
        "{}\nA line with `-` breaks programs that use it: the next release needs a new minor version (a major one from 1.0 \
         on), and CHANGELOG.md a line. Then `BLESS=1 cargo test -p xtask --test api` writes the lists.",
        faults.join("\n")
    );
}

fn api_of(code: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("lib.rs");
    fs::write(&root, code).expect("a file");
    api::of(&root).expect("Rust")
}

#[test]
fn what_programs_can_use_is_listed_and_nothing_else() {
    let list = api_of(
        "/// Doc.\n#[derive(Clone, Debug)]\npub struct S { /// Doc.\n pub a: Vec<(u8, u8)>, b: u8 }\n\
         pub struct N(u8);\n#[non_exhaustive]\npub enum E { A, B { c: u8 }, C(u8) }\n\
         impl S { pub fn f(&self) -> Result<u8, ()> { Ok(1) } pub(crate) fn g() {} fn h() {} }\n\
         impl Default for N { fn default() -> Self { N(0) } }\n\
         pub trait T { const K: u8 = 1; fn f(&self) -> u8 { 1 } fn g(); }\n\
         pub const C: u8 = 7;\npub mod m { pub fn f(x: &str) {} pub(super) fn g() {} }\n\
         pub use m::f;\nfn private() {}\nstruct P;\nimpl Drop for P { fn drop(&mut self) {} }\n#[cfg(test)]\npub fn only_in_tests() {}",
    );
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(
        lines,
        [
            "crate: #[derive(Clone, Debug)] pub struct S { pub a: Vec<(u8, u8)>, .. }",
            "crate: impl Default for N",
            "crate: impl S { pub fn f(&self) -> Result<u8, ()> }",
            "crate: pub const C: u8",
            "crate: pub enum E { A, B { c: u8 }, C(u8) }",
            "crate: pub mod m",
            "crate: pub struct N(_)",
            "crate: pub trait T",
            "crate: pub trait T { const K: u8 }",
            "crate: pub trait T { fn f(&self) -> u8 }",
            "crate: pub trait T { fn g() }",
            "crate: pub use m::f",
            "crate::m: pub fn f(x: &str)",
        ]
    );
}

#[test]
fn a_change_that_breaks_programs_changes_the_list() {
    let before =
        api_of("#[derive(Clone)]\npub struct S { pub a: u8 }\nimpl S { pub fn f(&self) {} }");
    for after in [
        "pub struct S { pub a: u8 }\nimpl S { pub fn f(&self) {} }",
        "#[derive(Clone)]\npub struct S { pub a: u16 }\nimpl S { pub fn f(&self) {} }",
        "#[derive(Clone)]\npub struct S { pub a: u8, b: u8 }\nimpl S { pub fn f(&self) {} }",
        "#[derive(Clone)]\npub struct S { pub a: u8 }\nimpl S { pub fn f(&mut self) {} }",
        "#[derive(Clone)]\npub struct S { pub a: u8 }\nimpl S { pub(crate) fn f(&self) {} }",
    ] {
        let gone = api::differences(&before, &api_of(after));
        assert!(
            gone.iter().any(|line| line.starts_with("- ")),
            "{after}: {gone:?}"
        );
    }
    let same = "#[derive(Clone)]\npub struct S { pub a: u8 }\nimpl S { pub fn f(&self) { self.g(); } fn g(&self) {} }";
    assert_eq!(
        api::differences(&before, &api_of(same)),
        Vec::<String>::new()
    );
}
