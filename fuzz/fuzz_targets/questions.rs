//! Property: any bytes are read as questions with unique ids, or refused with a line that exists.
#![no_main]

use kd_core::batch::{Fields, Form, read};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    for form in [Form::JsonLines, Form::Csv, Form::Lines] {
        match read(bytes, form, &Fields::default()) {
            Ok(questions) => {
                let ids: BTreeSet<_> = questions.iter().map(|q| &q.id).collect();
                assert_eq!(ids.len(), questions.len());
                assert!(questions.iter().all(|q| !q.text.trim().is_empty() && q.line <= lines));
            }
            Err(error) => assert!((1..=lines).contains(&error.line), "{error:?}"),
        }
    }
});
