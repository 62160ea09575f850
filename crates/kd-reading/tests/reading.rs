//! Replies as models write them, with a person's reading of each: none misread, at least 97 percent read.
//!
//! `tuned.jsonl` and `drafted.jsonl` were written together with the parser. The others were written independently or
//! after it was finished; their first lines report the initial run, before any fix.
#![allow(clippy::unwrap_used)]

use kd_reading::kinds::{self, Kind};
use kd_reading::{Answer, Options, Step, Unread, Wanted, read};
use serde_json::Value;

/// Returns the text of a corpus. `hinted.jsonl` only teaches the learned weights.
fn corpus(file: &str) -> &'static str {
    match file {
        "tuned.jsonl" => include_str!("data/replies/tuned.jsonl"),
        "held-out.jsonl" => include_str!("data/replies/held-out.jsonl"),
        "third.jsonl" => include_str!("data/replies/third.jsonl"),
        "fourth.jsonl" => include_str!("data/replies/fourth.jsonl"),
        "fifth.jsonl" => include_str!("data/replies/fifth.jsonl"),
        "sixth.jsonl" => include_str!("data/replies/sixth.jsonl"),
        "seventh.jsonl" => include_str!("data/replies/seventh.jsonl"),
        "assistants.jsonl" => include_str!("data/replies/assistants.jsonl"),
        "engineers.jsonl" => include_str!("data/replies/engineers.jsonl"),
        "small-models.jsonl" => include_str!("data/replies/small-models.jsonl"),
        "everyday.jsonl" => include_str!("data/replies/everyday.jsonl"),
        "context.jsonl" => include_str!("data/replies/context.jsonl"),
        "terse.jsonl" => include_str!("data/replies/terse.jsonl"),
        "reasoned.jsonl" => include_str!("data/replies/reasoned.jsonl"),
        "odd-forms.jsonl" => include_str!("data/replies/odd-forms.jsonl"),
        "cut-off.jsonl" => include_str!("data/replies/cut-off.jsonl"),
        "verdicts.jsonl" => include_str!("data/replies/verdicts.jsonl"),
        "unseen.jsonl" => include_str!("data/replies/unseen.jsonl"),
        "voices.jsonl" => include_str!("data/replies/voices.jsonl"),
        "pinned.jsonl" => include_str!("data/replies/pinned.jsonl"),
        "varied.jsonl" => include_str!("data/replies/varied.jsonl"),
        "drafted.jsonl" => include_str!("data/replies/drafted.jsonl"),
        "advice.jsonl" => include_str!("data/replies/advice.jsonl"),
        "exams.jsonl" => include_str!("data/replies/exams.jsonl"),
        "closed.jsonl" => include_str!("data/replies/closed.jsonl"),
        "seats.jsonl" => include_str!("data/replies/seats.jsonl"),
        "tactful.jsonl" => include_str!("data/replies/tactful.jsonl"),
        "council.jsonl" => include_str!("data/replies/council.jsonl"),
        "weighed.jsonl" => include_str!("data/replies/weighed.jsonl"),
        "consulted.jsonl" => include_str!("data/replies/consulted.jsonl"),
        "advised.jsonl" => include_str!("data/replies/advised.jsonl"),
        "supported.jsonl" => include_str!("data/replies/supported.jsonl"),
        "appraised.jsonl" => include_str!("data/replies/appraised.jsonl"),
        "implied.jsonl" => include_str!("data/replies/implied.jsonl"),
        "blind.jsonl" => include_str!("data/replies/blind.jsonl"),
        "recent.jsonl" => include_str!("data/replies/recent.jsonl"),
        "candid.jsonl" => include_str!("data/replies/candid.jsonl"),
        "deceptive.jsonl" => include_str!("data/replies/deceptive.jsonl"),
        "questions-seats.jsonl" => include_str!("data/replies/questions-seats.jsonl"),
        "questions-advice.jsonl" => include_str!("data/replies/questions-advice.jsonl"),
        "questions-exams.jsonl" => include_str!("data/replies/questions-exams.jsonl"),
        "questions-tuned.jsonl" => include_str!("data/replies/questions-tuned.jsonl"),
        "questions-held-out.jsonl" => include_str!("data/replies/questions-held-out.jsonl"),
        other => panic!("there is no corpus {other}"),
    }
}

/// The labels of a ballot.
const LABELS: [&str; 4] = ["A", "B", "C", "D"];

/// Returns the kind of answer, and the name of each option.
fn wanted(kind: &str) -> (Wanted, Vec<String>) {
    let (kind, rest) = kind.split_once(':').unwrap_or((kind, ""));
    let names: Vec<String> = rest.split('|').map(str::to_owned).collect();
    match kind {
        "choice" => (Wanted::Option(Options::new(&names)), names),
        "yes-no" => {
            let names = vec!["yes".to_owned(), "no".to_owned()];
            (Wanted::Option(Options::new(&names)), names)
        }
        "label" => {
            let labels: Vec<String> = LABELS[..names.len()]
                .iter()
                .map(|l| (*l).to_owned())
                .collect();
            (Wanted::Option(Options::labelled(&names, &labels)), labels)
        }
        "number" => (Wanted::Number, Vec::new()),
        "text" => (Wanted::Short, Vec::new()),
        "json" => (Wanted::Json, Vec::new()),
        other => panic!("{other} is no kind"),
    }
}

fn said(kind: &str, reply: &str) -> Result<(String, Step), Unread> {
    let (wanted, names) = wanted(kind);
    read(&wanted, reply).map(|(answer, step)| match answer {
        Answer::Option(at) => (names[at].clone(), step),
        Answer::Text(text) => (text, step),
    })
}

/// Iterates over the cases of a corpus, one per line.
fn cases(text: &str) -> impl Iterator<Item = Value> {
    let lines = text.lines().filter(|line| line.contains("\"reply\""));
    lines.map(|line| serde_json::from_str(line).unwrap())
}

/// Parses a corpus; returns how many replies are readable, and how many were read. Panics on a misread reply.
fn measured(file: &str) -> (usize, usize) {
    measured_to(file, 97)
}

/// As [`measured`], with another minimum percentage.
fn measured_to(file: &str, floor: usize) -> (usize, usize) {
    let text = corpus(file);
    let (mut readable, mut unread, mut misread) = (0, Vec::new(), Vec::new());
    for case in cases(text) {
        let (kind, reply) = (
            case["kind"].as_str().unwrap(),
            case["reply"].as_str().unwrap(),
        );
        let want = case["want"].as_str();
        readable += usize::from(want.is_some());
        match (want, said(kind, reply)) {
            (Some(want), Ok((got, _))) if got == want => {}
            (_, Ok(got)) => misread.push(format!("{reply:?}: {got:?}, not {want:?}")),
            (Some(want), Err(why)) => unread.push(format!("{reply:?}: {why:?}, not {want}")),
            (None, Err(_)) => {}
        }
    }
    assert!(
        misread.is_empty(),
        "{file}: misread:\n{}",
        misread.join("\n")
    );
    assert!(
        100 * unread.len() <= (100 - floor) * readable,
        "{file}: {} of {readable} are not read:\n{}",
        unread.len(),
        unread.join("\n")
    );
    (readable, unread.len())
}

#[test]
fn no_reply_is_misread_and_nearly_all_are_read() {
    let (readable, _) = measured("tuned.jsonl");
    let (held_out, _) = measured("held-out.jsonl");
    for later in [
        "third.jsonl",
        "fourth.jsonl",
        "fifth.jsonl",
        "sixth.jsonl",
        "seventh.jsonl",
        "assistants.jsonl",
        "everyday.jsonl",
        "reasoned.jsonl",
        "odd-forms.jsonl",
        "cut-off.jsonl",
        "verdicts.jsonl",
        "voices.jsonl",
        "unseen.jsonl",
        "varied.jsonl",
        "tactful.jsonl",
        "council.jsonl",
        "pinned.jsonl",
    ] {
        measured(later);
    }
    // Fixed by class only, and left open by the gate where a commitment is missing: fewer are read, and none is misread.
    measured_to("engineers.jsonl", 95);
    measured_to("small-models.jsonl", 95);
    measured_to("drafted.jsonl", 94);
    measured_to("context.jsonl", 93);
    measured_to("terse.jsonl", 96);
    measured_to("advice.jsonl", 93);
    measured_to("exams.jsonl", 87);
    measured_to("seats.jsonl", 85);
    measured_to("closed.jsonl", 91);
    measured_to("weighed.jsonl", 86);
    measured_to("consulted.jsonl", 90);
    measured_to("advised.jsonl", 88);
    measured_to("supported.jsonl", 93);
    // Many tell their answer in other words than the question's.
    measured_to("appraised.jsonl", 94);
    measured_to("implied.jsonl", 72);
    measured_to("recent.jsonl", 90);
    measured_to("blind.jsonl", 96);
    assert!(readable + held_out >= 300, "{readable} {held_out}");
}

/// What the parser makes of replies that were never used to improve it; the figures are in
/// docs/deliberation.md. Do not fix the parser for single cases of this corpus: it would then measure nothing.
#[test]
fn replies_that_nobody_tuned_to() {
    assert_eq!(figures_of("candid.jsonl"), (112, 19, 3, 0));
    // Written to deceive: the wrong answer is named more often or more clearly than the right one.
    assert_eq!(figures_of("deceptive.jsonl"), (38, 53, 13, 0));
}

/// Returns how many replies of a corpus are read right, unread, misread, and read although they have no answer.
fn figures_of(file: &str) -> (usize, usize, usize, usize) {
    let (mut right, mut unread, mut misread, mut invented) = (0, 0, 0, 0);
    for case in cases(corpus(file)) {
        let said = said(
            case["kind"].as_str().unwrap(),
            case["reply"].as_str().unwrap(),
        );
        match (case["want"].as_str(), said) {
            (Some(want), Ok((got, _))) if got == want => right += 1,
            (Some(_), Ok(_)) => misread += 1,
            (Some(_), Err(_)) => unread += 1,
            (None, Ok(_)) => invented += 1,
            (None, Err(_)) => {}
        }
    }
    (right, unread, misread, invented)
}

/// Returns the kind of a question in the words of the corpora.
fn kind_of(question: &str) -> String {
    match kinds::of(question) {
        Kind::Choice(options) => format!("choice:{}", options.join("|")),
        Kind::YesNo => "yes-no".into(),
        Kind::Number => "number".into(),
        Kind::Date => "date".into(),
        Kind::List | Kind::Ranking => "list".into(),
        Kind::Code => "code".into(),
        Kind::Open => "open".into(),
    }
}

/// Returns whether a kind is the one of the corpus. A ranking names several items too.
fn is_kind(case: &Value, found: &str) -> bool {
    let wanted = case["kind"].as_str();
    wanted == Some(found) || (wanted, found) == (Some("ranking"), "list")
}

#[test]
fn the_kind_of_a_question_is_recognised_in_five_languages() {
    let (mut count, mut wrong) = (0, Vec::new());
    for file in [
        "questions-tuned.jsonl",
        "questions-held-out.jsonl",
        "questions-advice.jsonl",
        "questions-exams.jsonl",
        "questions-seats.jsonl",
    ] {
        let text = corpus(file);
        for line in text.lines().filter(|l| l.contains("\"question\"")) {
            let case: Value = serde_json::from_str(line).unwrap();
            let question = case["question"].as_str().unwrap();
            let found = kind_of(question);
            count += 1;
            if !is_kind(&case, &found) {
                wrong.push(format!("{question}: {found}, not {}", case["kind"]));
            }
        }
    }
    assert!(count >= 200, "{count}");
    assert!(
        100 * wrong.len() <= 5 * count,
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn each_step_has_its_name_in_the_record() {
    for (reply, step, words) in [
        (r#"{"answer":"a1"}"#, Step::Exact, "exact JSON"),
        (
            "```json\n{\"answer\":\"a1\"}\n```",
            Step::Fenced,
            "fenced JSON",
        ),
        (r#"Here: {"answer":"a1"}"#, Step::Embedded, "embedded JSON"),
        (r#"{"answer":"a1",}"#, Step::Repaired, "repaired JSON"),
        ("Answer: a1", Step::Labelled, "labelled line"),
        ("I choose a1.", Step::Words, "option words"),
    ] {
        assert_eq!(
            said("choice:a1|b1", reply),
            Ok(("a1".into(), step)),
            "{reply}"
        );
        assert_eq!(step.words(), words);
    }
    let number = said("number", "6 times 7 makes 42");
    assert_eq!(number, Ok(("42".into(), Step::LastLine)));
}

#[test]
fn a_reply_cut_at_any_byte_is_read_as_what_it_says_or_not_at_all() {
    for reply in [
        r#"{"reason":"r","answer":"PostgreSQL","confidence":0.8}"#,
        "Sure:\n```json\n{\"answer\": \"PostgreSQL\", \"reason\": \"SQLite locks\"}\n```",
        "{'answer': 'PostgreSQL', 'reason': 'x',}",
    ] {
        for end in 0..reply.len() {
            if let Some(cut) = reply.get(..end)
                && let Ok((got, _)) = said("choice:SQLite|PostgreSQL", cut)
            {
                assert_eq!(got, "PostgreSQL", "{cut}");
            }
        }
    }
}

#[test]
fn hostile_replies_end_soon() {
    for piece in [
        "{",
        "{\"a\":",
        "[[",
        "{\"a\":[",
        "{'",
        "**",
        "\\boxed{",
        "\\frac{1}{",
        "<think>",
        "</think>",
        "1,",
        "A or B, not ",
        "Answer:\n",
        "if SQLite so ",
        "(SQLite ",
        "- SQLite: 1\n",
        "Option 1: SQLite\n",
        "1 + ",
        "12 = ",
        "**1** ",
        "yes no ",
        "a b ",
        "\"",
        "```\n",
    ] {
        let reply = piece.repeat(5_000);
        for kind in [
            "choice:SQLite|PostgreSQL",
            "number",
            "label:1|2|3",
            "yes-no",
            "text",
            "json",
        ] {
            let _ = said(kind, &reply);
        }
    }
}

/// Letters that get longer or shorter in lower case, and some that do not.
const MOVING: [&str; 7] = ["İ", "Ω", "K", "Å", "Ⱥ", "ẞ", "é"];

#[test]
fn letters_that_change_their_length_break_no_reader() {
    let texts = [
        "{0}5±1{1}",
        "about {0}5, give or {1}take{0} 1",
        "{0}{1} wait, no: 17 {0}",
        "{0} is {1} 391 {0}",
        "the answer: {0}{1}",
        "Final answer {0}is{1} B",
        "so {0} the answer is {1}b",
        "{0}SQLite, but {1}PostgreSQL{0}",
        "although {0}SQLite{1}, PostgreSQL{0} fits",
        "5{0}{1}",
        "12 {0}{1}illion",
        "Is it {0}tea or {1}coffee{0} is {1}best?",
        "{0}of {1}tea, milk or {0} {1}is the{0}",
        "12 {0}ay {1}2024",
        "I {0}won't{1}; {0}",
    ];
    for text in texts {
        for one in MOVING {
            for two in MOVING {
                let text = text.replace("{0}", one).replace("{1}", two);
                for kind in [
                    "choice:SQLite|PostgreSQL",
                    "number",
                    "label:1|2",
                    "yes-no",
                    "text",
                ] {
                    let _ = said(kind, &text);
                }
                let _ = read(&Wanted::Date, &text);
                let _ = kinds::of(&text);
            }
        }
    }
    // Positions refer to the original text: the text after such letters is parsed correctly.
    for (kind, text, want) in [
        ("number", "İΩ 5 ± 1", "5"),
        ("number", "12 and İΩ: wait, 17", "17"),
        (
            "choice:SQLite|PostgreSQL",
            "İΩ SQLite is small, but I choose PostgreSQL.",
            "PostgreSQL",
        ),
        ("text", "Antwort: İstanbul", "İstanbul"),
    ] {
        let said = said(kind, text).map(|(answer, _)| answer);
        assert_eq!(said.as_deref(), Ok(want), "{text}");
    }
    let options = vec!["İzmir".to_owned(), "Ankara".to_owned()];
    assert_eq!(kinds::of("İzmir or Ankara?"), Kind::Choice(options));
}

#[test]
fn a_reply_that_contradicts_itself_is_not_read() {
    for (kind, reply) in [
        ("choice:Rust|Go", "Answer: Rust\nAnswer: Go"),
        ("choice:Rust|Go", "I recommend Rust.\n\nFinal answer: Go"),
        (
            "choice:Rust|Go",
            "{\"answer\": \"Rust\"}\n\nFinal answer: Go",
        ),
        (
            "choice:Rust|Go",
            "{\"answer\": \"Rust\"}\n\nOn reflection that is wrong.",
        ),
        ("choice:Rust|Go", "Rust. Hmm, honestly, I can't decide."),
        ("choice:Rust|Go", "Rust for the core, Go for the rest."),
        ("choice:Rust|Go", "Rust if it must be fast, Go otherwise."),
        ("choice:Rust|Go", "Rust is fast. Go is simple."),
        ("label:one draft|two draft", "A: 7/10\nB: 9/10"),
        ("label:one draft|two draft", "Final answer: A\n\nor B, hmm"),
        ("yes-no", "Yes\n\nNo"),
        ("yes-no", "Maybe yes, maybe no."),
        ("yes-no", "In theory yes, in practice no."),
        ("yes-no", "是，也不是。"),
        (
            "number",
            "The answer is 5. The answer is 7. The answer is 5.",
        ),
        ("number", "I'd estimate 30, maybe 35."),
        ("number", "1, 2, 3, 4"),
        ("number", "Between 5 and 10."),
    ] {
        assert!(
            said(kind, reply).is_err(),
            "{reply}: {:?}",
            said(kind, reply)
        );
    }
}

#[test]
fn what_an_answer_rules_out_is_no_refusal() {
    for (kind, reply, want) in [
        (
            "choice:Rust|Go",
            "I won't use Go here. Rust is the better choice.",
            "Rust",
        ),
        (
            "choice:Rust|Go",
            "I will not round up for Go: I'd pick Rust.",
            "Rust",
        ),
        ("choice:Rust|Go", "As an AI, I'd recommend Rust.", "Rust"),
        (
            "choice:Rust|Go",
            "As an aid to memory: Rust is best.",
            "Rust",
        ),
        ("choice:Rust|Go", "Als KI empfehle ich Rust.", "Rust"),
        (
            "choice:Rust|Go",
            "Als Kind der Achtziger wähle ich Rust.",
            "Rust",
        ),
        ("choice:Rust|Go", "抱歉，我选 Rust。", "Rust"),
        ("yes-no", "No. I won't ship this.", "no"),
        ("number", "I will not round: 17*23 = 391", "391"),
        ("number", "I'm not able to run code, but it is 391.", "391"),
        ("text", "I won't use Go here.\n\nAnswer: Rust", "Rust"),
    ] {
        let said = said(kind, reply).map(|(answer, _)| answer);
        assert_eq!(said.as_deref(), Ok(want), "{reply}");
    }
    // A reply that declines but still gives an answer of this kind is requested once more.
    for (kind, reply) in [
        (
            "choice:Rust|Go",
            "I can't answer for your team. Rust is the better choice.",
        ),
        (
            "choice:Rust|Go",
            "I'm unable to pick a winner. Rust is best for speed.",
        ),
        ("number", "I don't know for sure, but it is about 391."),
        ("text", "I can't help you choose, but Rust is better."),
    ] {
        assert_eq!(said(kind, reply), Err(Unread::Ambiguous), "{reply}");
    }
    for (kind, reply) in [
        ("choice:Rust|Go", "I won't answer. Rust has many users."),
        (
            "choice:Rust|Go",
            "I'd rather not say whether Rust is better.",
        ),
        ("choice:Rust|Go", "As an AI I cannot choose Rust."),
        (
            "choice:Rust|Go",
            "I'm sorry, but I can't help with that. Let me know if you have other questions.",
        ),
        ("number", "I can't help with 17*23."),
        ("text", "I can't answer that. Sorry."),
    ] {
        assert_eq!(said(kind, reply), Err(Unread::Refused), "{reply}");
    }
}

/// Prints how the replies of the file in `KD_REPLIES` are read, and with `KD_FAILURES=1` each that is not read right; for newly written
/// corpora.
#[test]
#[ignore = "prints figures; holds nothing"]
#[allow(
    clippy::disallowed_methods,
    reason = "reads the file that the caller names"
)]
fn measured_file() {
    let file = std::env::var("KD_REPLIES").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let shown = std::env::var("KD_FAILURES").is_ok_and(|flag| flag == "1");
    let mut counts = std::collections::BTreeMap::<_, Counts>::new();
    for (n, case) in cases(&text).enumerate() {
        let (kind, reply) = (
            case["kind"].as_str().unwrap(),
            case["reply"].as_str().unwrap(),
        );
        let want = case["want"].as_str();
        let said = said(kind, reply);
        let failed = match (want, &said) {
            (Some(want), Ok((got, _))) if got == want => None,
            (Some(_), Ok(_)) => Some("MISREAD"),
            (Some(_), Err(_)) => Some("unread"),
            (None, Ok(_)) => Some("INVENTED"),
            (None, Err(_)) => None,
        };
        let name = kind.split(':').next().unwrap_or_default().to_owned();
        for name in [name, "all".to_owned()] {
            let counts = counts.entry(name).or_default();
            match want {
                Some(_) => counts.readable += 1,
                None => counts.unreadable += 1,
            }
            match failed {
                Some("MISREAD") => counts.misread += 1,
                Some("INVENTED") => counts.invented += 1,
                Some(_) => {}
                None => counts.read += usize::from(want.is_some()),
            }
        }
        if let Some(how) = failed.filter(|_| shown) {
            println!("{how} {n} {kind} {reply:?}: {said:?}, not {want:?}");
        }
    }
    for (kind, counts) in counts {
        let Counts {
            readable,
            read,
            misread,
            unreadable,
            invented,
        } = counts;
        println!(
            "{kind}: {read} of {readable} read, {misread} misread; {invented} of {unreadable} invented"
        );
    }
}

/// How the replies of a file are read.
#[derive(Default)]
struct Counts {
    readable: usize,
    read: usize,
    misread: usize,
    unreadable: usize,
    invented: usize,
}

/// Prints the questions of the corpus in `KD_KINDS` whose kind is not recognized; for newly written corpora.
#[test]
#[ignore = "prints figures; holds nothing"]
#[allow(
    clippy::disallowed_methods,
    reason = "reads the file that the caller names"
)]
fn kinds_figures() {
    let file = std::env::var("KD_KINDS").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let (mut all, mut right) = (0, 0);
    for line in text.lines().filter(|l| l.contains("\"question\"")) {
        let case: Value = serde_json::from_str(line).unwrap();
        let question = case["question"].as_str().unwrap();
        let found = kind_of(question);
        all += 1;
        match is_kind(&case, &found) {
            true => right += 1,
            false => println!("KIND {question:?}: {found}, not {}", case["kind"]),
        }
    }
    println!("{all} questions, {right} kinds right");
}
