//! The first changes of CONTRIBUTING.md can still be made. `cargo run -p xtask -- first-changes` makes them, and runs the
//! tests that the page names.

use xtask::first_changes;

#[test]
fn every_first_change_can_be_made_and_has_a_row() {
    let faults = first_changes::faults(&xtask::root()).unwrap();
    assert_eq!(faults, Vec::<String>::new());
}
