//! Property: any bytes are read as recorded answers, or refused with advice; every answer is one of its question.
#![no_main]

use kd_records::{File, Wanted, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match read(&[File::new("folder/file", bytes.to_vec())], &Wanted::default()) {
        Ok(joined) => {
            for (question, missing) in joined.table.rows() {
                assert_eq!(missing.len(), joined.table.members.len());
                assert_eq!(question.keys.len(), question.right.len());
                let answers = question.answers.iter().flatten();
                assert!(answers.clone().all(|at| *at < question.keys.len()));
            }
        }
        Err(error) => assert!(!error.hint.is_empty(), "{error:?}"),
    }
});
