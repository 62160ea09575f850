//! Property: any question has a kind, alone and with any answers, without a panic. Options are at least two, named and
//! different; what is read as an option is one of them. The first line is the question, the others are answers.
#![no_main]

use kd_core::deliberation::{AnswerKind, settling};
use kd_reading::kinds::{self, Kind};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

fuzz_target!(|text: String| {
    let mut lines = text.lines();
    let question = lines.next().unwrap_or_default();
    let replies: Vec<&str> = lines.collect();
    let guess = match kinds::found(question) {
        (Kind::Choice(options), _) => AnswerKind::Choice { options },
        (Kind::YesNo, _) => AnswerKind::parse("yes-no").expect("a kind"),
        (Kind::Number, _) => AnswerKind::Number,
        (Kind::Date, _) => AnswerKind::Date,
        (Kind::List, _) => AnswerKind::Set,
        (Kind::Ranking, _) => AnswerKind::Ranking,
        (Kind::Code, _) => AnswerKind::Code,
        (Kind::Open, _) => AnswerKind::Text,
    };
    let mut kinds = vec![guess.clone()];
    for asked in [&guess, &AnswerKind::Text] {
        kinds.extend(settling::settle(question, asked, &guess, &replies).map(|s| s.answers));
    }
    for kind in &kinds {
        if let AnswerKind::Choice { options } = kind {
            let names: BTreeSet<&String> = options.iter().collect();
            assert!(options.len() >= 2 && names.len() == options.len(), "{options:?}");
            assert!(options.iter().all(|o| !o.trim().is_empty()), "{options:?}");
        }
        for reply in &replies {
            if let (Ok((key, _)), AnswerKind::Choice { options }) =
                (kind.read_for(question, reply), kind)
            {
                assert!(options.contains(&key), "{key}");
            }
        }
    }
});
