//! The dependency rules hold, and their diagram is current.

use std::collections::BTreeSet;
use xtask::edges::{self, House};

#[test]
fn every_crate_enters_only_the_rooms_of_the_plan() {
    let house = edges::read(&xtask::root()).unwrap();
    assert_eq!(edges::faults(&house), Vec::<String>::new());
}

#[test]
fn a_door_that_is_not_drawn_is_found() {
    let mut house = House::default();
    house
        .edges
        .insert("kd-core".into(), BTreeSet::from(["kd-store".into()]));
    house
        .reach
        .insert("kd-local".into(), BTreeSet::from(["tokio".into()]));
    assert_eq!(edges::faults(&house).len(), 2);
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
