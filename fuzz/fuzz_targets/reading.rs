//! Property: any reply is parsed or not, and any question has a kind, without a panic. A parsed option is one of those
//! asked for, and a bare label after the reply's thinking is read as itself.
#![no_main]

use kd_reading::{Answer, Options, Wanted, choice, kinds, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|reply: String| {
    let names = ["SQLite", "PostgreSQL", "no database"].map(str::to_owned).to_vec();
    let options = Wanted::Option(Options::new(&names));
    let given = Wanted::Ranking(names.clone());
    for wanted in [
        options.clone(),
        Wanted::Number,
        Wanted::Date,
        Wanted::Json,
        Wanted::List,
        given,
        Wanted::Code,
        Wanted::Short,
    ] {
        if let Ok((Answer::Option(at), _)) = read(&wanted, &reply) {
            assert!(at < names.len());
        }
    }
    let _ = kinds::of(&reply);
    let _ = choice(&names, &reply, &reply).is_ok_and(|(at, _)| at < names.len());
    let bare = format!("<think>{}</think>B", reply.replace('<', ""));
    let (answer, _) = read(&options, &bare).expect("a bare label");
    assert_eq!(answer, Answer::Option(1));
});
