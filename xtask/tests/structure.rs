//! The dependency rules hold, and their diagram is current.

use std::collections::BTreeSet;
use std::path::Path;
use xtask::edges::{self, Graph};
use xtask::{arms, cycles, errors, purity, sizes, unlisted};

#[test]
fn every_crate_depends_only_on_allowed_crates() {
    let graph = edges::read(&xtask::root()).unwrap();
    assert_eq!(edges::faults(&graph), Vec::<String>::new());
}

#[test]
fn a_dependency_that_is_not_allowed_is_found() {
    let mut graph = Graph::default();
    graph
        .edges
        .insert("kd-core".into(), BTreeSet::from(["kd-store".into()]));
    graph
        .reach
        .insert("kd-local".into(), BTreeSet::from(["tokio".into()]));
    assert_eq!(edges::faults(&graph).len(), 2);
}

#[test]
fn front_ends_use_neither_engine_nor_backends_nor_stores() {
    let below = ["kd-engine", "kd-backends", "kd-local", "kd-store", "kd-sql"];
    for face in ["kd", "kd-tui", "kd-server"] {
        for needed in below {
            let mut graph = Graph::default();
            let needs = BTreeSet::from([needed.to_owned()]);
            graph.edges.insert(face.into(), needs);
            let faults = edges::faults(&graph);
            assert_eq!(faults.len(), 1, "{face} may depend on {needed}");
        }
    }
}

#[test]
fn the_picture_in_architecture_is_the_real_one() {
    let root = xtask::root();
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let picture = edges::picture(&edges::read(&root).unwrap());
    assert_eq!(
        xtask::replace_between(&text, "edges", &picture),
        Some(text),
        "run `cargo run -p xtask -- picture`"
    );
}

#[test]
fn pure_crates_name_nothing_outside() {
    for name in purity::PURE {
        let root = xtask::root().join("crates").join(name).join("src/lib.rs");
        assert_eq!(purity::faults(&root).unwrap(), Vec::<String>::new());
    }
}

/// Writes the files of a crate and returns its root.
fn written(folder: &Path, files: &[(&str, &str)]) -> std::path::PathBuf {
    for (name, text) in files {
        let src = folder.join("crates/one/src");
        std::fs::create_dir_all(&src).expect("a folder");
        std::fs::write(src.join(name), text).expect("a file");
    }
    folder.join("crates/one/src/lib.rs")
}

#[test]
fn each_way_outside_is_found() {
    for code in [
        "fn f() { std::fs::read(\"a\"); }",
        "use std::fs;\nfn f() { fs::File::open(\"a\"); }",
        "use std::fs::OpenOptions;",
        "use std::fs as files;\nfn f() { files::read_dir(\"a\"); }",
        "use std::{env, process::Command};",
        "fn f() { println!(\"{}\", std::time::SystemTime::now()); }",
        "use std::net::*;",
        "mod inner { use std::thread; }",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = written(folder.path(), &[("lib.rs", code)]);
        assert_ne!(
            purity::faults(&root).unwrap(),
            Vec::<String>::new(),
            "{code}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let code = "//! Not std::fs.\n#[cfg(test)]\nmod tests { use std::fs; }\nuse std::collections::BTreeMap;";
    let root = written(folder.path(), &[("lib.rs", code)]);
    assert_eq!(purity::faults(&root).unwrap(), Vec::<String>::new());
}

#[test]
fn files_need_each_other_in_no_circle() {
    let found = cycles::find(&xtask::root()).unwrap();
    let words: Vec<String> = found.iter().map(cycles::words).collect();
    assert!(found.is_empty(), "{}", words.join("\n"));
}

#[test]
fn a_circle_is_found_through_a_reexport_and_a_child_is_none() {
    let lib = "mod a;\nmod b;\npub use b::B;";
    let circles = |a: &str, b: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("xtask")).unwrap();
        written(folder.path(), &[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]);
        cycles::find(folder.path()).unwrap().len()
    };
    let b = "use crate::a::A;\npub struct B(A);";
    assert_eq!(circles("use crate::B;\npub struct A;", b), 1);
    assert_eq!(
        circles("pub struct A;\nfn f() { let _ = crate::b::B::new(); }", b),
        1
    );
    assert_eq!(
        circles(
            "pub struct A;\n#[cfg(test)]\nmod tests { use crate::B; }",
            b
        ),
        0
    );
    assert_eq!(circles("pub struct A;", b), 0);
}

#[test]
fn errors_have_types() {
    let root = xtask::root();
    assert_eq!(errors::faults(&root).unwrap(), Vec::<String>::new());
    let left: usize = errors::LEFT.iter().map(|(_, count)| count).sum();
    assert!(left < 40, "{left}");
}

#[test]
fn an_error_that_is_a_text_is_found_and_one_of_a_test_is_none() {
    let count = |code: &str| {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), &[("lib.rs", code)]);
        let found = errors::count(folder.path()).unwrap();
        found.into_values().sum::<usize>()
    };
    for one in [
        "pub fn f() -> Result<(), String> { Ok(()) }",
        "fn f() -> Result<Vec<(u8, String)>, String> { Ok(vec![]) }",
        "struct S { f: fn(&str) -> Result<fn() -> u8, String> }",
        "type T = Pin<Box<dyn Future<Output = Result<u8, String>> + Send>>;",
        "fn f() { let g = || -> Result<u8, String> { Ok(1) }; }",
        "mod inner { trait T { fn f(&self) -> Result<Option<u8>, String>; } }",
    ] {
        assert_eq!(count(one), 1, "{one}");
    }
    for none in [
        "fn f() -> Result<String, Error> { g() }",
        "fn f() -> io::Result<String> { g() }",
        "fn f() -> Result<BTreeMap<String, String>, Error> { g() }",
        "fn f() -> Result<u8, (usize, String)> { g() }",
        "#[cfg(test)]\nmod tests { fn f() -> Result<u8, String> { Ok(1) } }",
    ] {
        assert_eq!(count(none), 0, "{none}");
    }
}

#[test]
fn files_that_show_events_deny_wildcards() {
    for name in arms::SHOWING {
        let root = xtask::source_root(&xtask::root(), name);
        assert_eq!(arms::faults(&root).unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_match_on_events_without_the_lint_is_found() {
    let faults = |code: &str| {
        let folder = tempfile::tempdir().unwrap();
        let root = written(folder.path(), &[("lib.rs", code)]);
        arms::faults(&root).unwrap().len()
    };
    for matches in [
        "use kd_core::Event;\nfn f(e: &Event) { match e { Event::Noticed { .. } => {} _ => {} } }",
        "use kd_core::event::Event as E;\nfn f(e: &E) { match e { E::Noticed { .. } | E::HeldBack { .. } => {} _ => {} } }",
        "fn f(e: &kd_core::Event) { match Some(e) { Some(kd_core::Event::Noticed { .. }) => {} _ => {} } }",
        "use kd_core::Event;\nfn f(e: &Event) { match e { Event::Noticed { text } if text.is_empty() => {} _ => {} } }",
        "use kd_core::Event;\nfn f(e: &Event) { loop { match e { _ if g() => { } Event::Noticed { .. } => {} _ => {} } } }",
        "use kd_core::deliberation::fact::Fact;\nfn f(e: &Fact) { match e { Fact::Stopped => {} _ => {} } }",
    ] {
        assert_eq!(faults(matches), 1, "{matches}");
        let denied = format!("#![deny(clippy::wildcard_enum_match_arm)]\n{matches}");
        assert_eq!(faults(&denied), 0, "{matches}");
    }
    for none in [
        "use kd_core::Event;\nfn f(e: &Event) { if let Event::Noticed { .. } = e {} }",
        "use kd_core::Event;\nfn f(e: u8) -> Event { match e { _ => Event::Noticed { text: g() } } }",
        "use pulldown_cmark::Event;\nfn f(e: &Event) { match e { Event::Rule => {} _ => {} } }",
        "#[cfg(test)]\nmod tests { use kd_core::Event;\nfn f(e: &Event) { match e { Event::Noticed { .. } => {} _ => {} } } }",
    ] {
        assert_eq!(faults(none), 0, "{none}");
    }
}

#[test]
fn the_table_of_sizes_in_architecture_is_about_right() {
    let root = xtask::root();
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let table = text.split("<!-- sizes -->").nth(1).unwrap();
    let stale = sizes::stale(table, &sizes::read(&root).unwrap());
    assert_eq!(
        stale,
        Vec::<String>::new(),
        "run `cargo run -p xtask -- picture`"
    );
    let sizes = std::collections::BTreeMap::from([("a".into(), 10_000), ("b".into(), 100)]);
    let told = "| `a` | 7900 | 99 % |\n| `c` | 1 | 1 % |\n| all | 7901 | 100 % |";
    let stale = sizes::stale(told, &sizes);
    assert_eq!(
        stale,
        [
            "a has 10000 lines, not 7900",
            "b has no row",
            "there is no crate c"
        ]
    );
}

#[test]
fn no_crate_holds_more_than_its_share_of_the_lines() {
    let sizes = sizes::read(&xtask::root()).unwrap();
    assert_eq!(sizes::faults(&sizes), Vec::<String>::new());
    let folder = tempfile::tempdir().unwrap();
    for (name, lines) in [("a", 20), ("b", 20), ("c", 20), ("d", 19), ("e", 21)] {
        let src = folder.path().join("crates").join(name).join("src/deep");
        std::fs::create_dir_all(&src).unwrap();
        std::fs::write(src.join("x.rs"), "\n".repeat(lines)).unwrap();
    }
    let found = sizes::faults(&sizes::read(folder.path()).unwrap());
    let fault = "e holds 21.0 % of the lines (21 of 100); the maximum is 20 %: split it";
    assert_eq!(found, [fault]);
}

#[test]
fn every_file_of_tests_is_in_a_program() {
    let found = unlisted::find(&xtask::root()).unwrap();
    assert_eq!(
        found,
        Vec::<String>::new(),
        "nothing runs them: add `mod NAME;` to the program of the crate, in tests/program.rs or tests/store.rs"
    );
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("crates/one");
    for (name, text) in [
        (
            "Cargo.toml",
            "autotests = false\n[[test]]\npath = \"tests/all.rs\"\n",
        ),
        ("tests/all.rs", "mod named;\nmod deep;\n"),
        ("tests/named.rs", ""),
        ("tests/deep/mod.rs", ""),
        ("tests/forgotten.rs", ""),
        ("tests/lost/mod.rs", ""),
        ("tests/data/x.json", ""),
    ] {
        std::fs::create_dir_all(one.join(name).parent().unwrap()).unwrap();
        std::fs::write(one.join(name), text).unwrap();
    }
    let found = unlisted::find(folder.path()).unwrap();
    assert_eq!(
        found,
        ["crates/one/tests/forgotten.rs", "crates/one/tests/lost"]
    );
}
