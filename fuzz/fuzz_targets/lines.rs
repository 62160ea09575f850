//! Property: what users type is read without a panic: mentions are known members, each once; slash commands are known.
#![no_main]

use kd_core::SeatName;
use kd_core::mention::mentions;
use kd_core::slash;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let names = ["ada", "Bob", "chair-2"].map(|name| SeatName::new(name).expect("a name"));
    let known: Vec<_> = names.iter().collect();
    let found = mentions(text, &known);
    for (at, seat) in found.seats.iter().enumerate() {
        assert!(names.contains(seat));
        assert!(!found.seats[..at].contains(seat), "{seat} is found twice");
    }
    let _ = slash::read(text);
});
