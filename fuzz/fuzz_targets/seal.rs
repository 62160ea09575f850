//! Property: a sealed file is read only if writing it gives the same bytes.
#![no_main]

use kd_core::seal::Seal;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(seal) = Seal::read(data) {
        assert_eq!(seal.to_bytes().expect("canonical"), data);
    }
});
