//! Kinds and keys of the answers to questions that name options, ask for numbers with units, or for a choice of two.

use kd_core::config::Config;
use kd_core::deliberation::{AnswerKind, settling};
use kd_core::planner::{self, Brief};
use kd_reading::kinds::Kind;
use std::collections::BTreeSet;

/// A question, replies, and the option named by each.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static [Option<&'static str>],
);

/// Questions that label numbers.
const LABELLED: &[Row] = &[
    (
        "What is 2+2? (A) 3 (B) 4 (C) 5",
        &["(B)", "4", "C"],
        &[Some("4"), Some("4"), Some("5")],
    ),
    (
        "What is 2+2? (A) 3 (B) 4 (C) 5",
        &["(B)", "4", "B) 4"],
        &[Some("4"); 3],
    ),
    (
        "What is 2+2? (A) 3 (B) 4 (C) 5",
        &["The answer is (B), 4.", "B", "B"],
        &[Some("4"); 3],
    ),
    (
        "How many legs has a spider? (A) 6 (B) 8 (C) 10",
        &["(B)", "8", "C"],
        &[Some("8"), Some("8"), Some("10")],
    ),
    (
        "How many legs has a spider? (A) 6 (B) 8 (C) 10",
        &["B", "B", "(C)"],
        &[Some("8"), Some("8"), Some("10")],
    ),
    (
        "Wie viele Beine hat eine Spinne? A) 6 B) 8 C) 10",
        &["B", "8", "C"],
        &[Some("8"), Some("8"), Some("10")],
    ),
    (
        "Combien de pattes a une araignée ? (A) 6 (B) 8 (C) 10",
        &["B", "8", "La réponse est B."],
        &[Some("8"); 3],
    ),
    (
        "¿Cuántas patas tiene una araña? a) 6 b) 8 c) 10",
        &["b", "8", "B)"],
        &[Some("8"); 3],
    ),
    (
        "蜘蛛有几条腿？A. 6 B. 8 C. 10",
        &["B", "8", "C"],
        &[Some("8"), Some("8"), Some("10")],
    ),
    (
        "In which year did the wall fall? A) 1961 B) 1989 C) 1990",
        &["B", "1989", "A"],
        &[Some("1989"), Some("1989"), Some("1961")],
    ),
    (
        "What is the price? (A) $5 (B) $8 (C) $10",
        &["B", "$8", "(A)"],
        &[Some("$8"), Some("$8"), Some("$5")],
    ),
    (
        "What is 50% of 50%? (A) 100% (B) 25%",
        &["B", "25%", "(A)"],
        &[Some("25%"), Some("25%"), Some("100%")],
    ),
];

#[test]
fn labelled_numbers_are_the_options_whatever_the_answers_repeat() {
    for (question, replies, wanted) in LABELLED {
        let (kind, found) = keys(question, replies);
        assert!(matches!(kind, AnswerKind::Choice { .. }), "{question}");
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        assert_eq!(found, *wanted, "{question} {replies:?}");
    }
}

#[test]
fn a_rejected_option_gets_no_vote() {
    for (reply, rejected) in [
        ("I'd say (B), not (C).", "5"),
        ("Not (C), but (B).", "5"),
        ("B, nicht C.", "5"),
        ("(B), pas (C).", "5"),
        ("(B), no (C).", "5"),
    ] {
        let replies = [reply, "4", "C"];
        let (_, found) = keys("What is 2+2? (A) 3 (B) 4 (C) 5", &replies);
        assert_ne!(found[0].as_deref(), Some(rejected), "{reply}");
        assert_ne!(found[0].as_deref(), Some("C"), "{reply}");
    }
}

#[test]
fn numbers_with_different_units_are_compared_with_their_units() {
    for (question, replies, open) in [
        (
            "At what temperature does water boil?",
            ["100 °C", "100 °F", "100 °C"],
            true,
        ),
        ("How heavy is it in total?", ["5 kg", "5 lb", "5"], true),
        ("How fast is the line?", ["8 Mb", "8 MB", "8 Mb"], true),
        (
            "How long is the flight?",
            ["90 minutes", "1.5 hours", "90 min"],
            true,
        ),
        (
            "Wie lange dauert der Flug?",
            ["90 Minuten", "1,5 Stunden", "2 h"],
            true,
        ),
        ("Combien coûte-t-il ?", ["5 €", "5 $", "5 €"], true),
        ("¿Cuánto pesa?", ["5 kg", "5 libras", "5 kg"], true),
        ("飞行时间是多少小时？", ["90分钟", "90小时", "90分钟"], true),
        ("How heavy is it?", ["5 kg", "5", "5 kilograms"], false),
        (
            "How long is the flight?",
            ["90 min", "90 minutes", "90"],
            false,
        ),
    ] {
        let (kind, keys) = keys(question, &replies);
        match open {
            true => assert_ne!(kind, AnswerKind::Number, "{question}"),
            false => assert!(
                kind == AnswerKind::Number && keys.iter().all(|key| *key == keys[0]),
                "{question} {kind:?} {keys:?}"
            ),
        }
    }
}

#[test]
fn a_comma_makes_no_list_of_one_answer() {
    for (question, reply, wanted) in [
        (
            "Wie viele Einwohner hat Wien?",
            "Rund 2,03 Millionen.",
            "2030000",
        ),
        ("What is 17*23?", "Three hundred and ninety-one.", "391"),
        ("Combien font 12,5 x 4 ?", "Cela fait 50,0.", "50"),
        ("17乘以23等于多少？", "等于391，不是381。", "391"),
        (
            "How many moons does Mars have?",
            "Two: Phobos and Deimos.",
            "2",
        ),
        (
            "Ist 97 eine Primzahl?",
            "Kein Teiler gefunden, also ja.",
            "yes",
        ),
        ("¿Es 91 un número primo?", "Para nada, es 7×13.", "no"),
    ] {
        let (_, keys) = keys(question, &[reply; 3]);
        assert_eq!(keys, vec![Some(wanted.to_owned()); 3], "{question}");
    }
}

#[test]
fn options_whose_borders_are_not_certain_are_left_to_the_answers() {
    for question in [
        "Is SQLite or PostgreSQL better?",
        "Are cats or dogs more intelligent?",
        "Ist SQLite oder PostgreSQL besser?",
        "Est-ce que Rust ou Go est plus rapide ?",
        "Rust vs Go for a CLI?",
        "Was it Newton or Leibniz who published calculus first?",
        "Is it true or false that the earth is flat?",
        "Should we rewrite it in Rust or keep the Go code or do nothing?",
    ] {
        let (kind, _) = keys(question, &[]);
        assert_eq!(kind, AnswerKind::Text, "{question}");
    }
    for (question, wanted) in [
        ("你选择茶还是咖啡？", ["茶", "咖啡"]),
        (
            "小团队应该选择 SQLite 还是 PostgreSQL？",
            ["SQLite", "PostgreSQL"],
        ),
        ("Which is faster, Rust or Go?", ["Rust", "Go"]),
        ("Is 91 prime or composite?", ["prime", "composite"]),
    ] {
        let (kind, _) = keys(question, &[]);
        let options = wanted.map(str::to_owned).to_vec();
        assert_eq!(kind, AnswerKind::Choice { options }, "{question}");
    }
}

/// Returns the kind by which replies are compared, and each reply's key.
fn keys(question: &str, replies: &[&str]) -> (AnswerKind, Vec<Option<String>>) {
    let brief = Brief {
        question,
        asked: question,
        ..Brief::default()
    };
    let plan = planner::plan(&Config::default(), &brief)
        .expect("a plan")
        .plan;
    let guess = plan.guess.clone().expect("a guess");
    let settled = settling::settle(question, &plan.answers, &guess, replies);
    let kind = settled.map_or(plan.answers, |settled| settled.answers);
    let keys = replies
        .iter()
        .map(|reply| kind.read_for(question, reply).ok().map(|(key, _)| key))
        .collect();
    (kind, keys)
}

/// A small random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Questions and answers of the corpora, and pieces that appear between them.
fn pieces() -> Vec<String> {
    const MARKS: [&str; 24] = [
        "?",
        "？",
        " or ",
        " oder ",
        "还是",
        ": ",
        ", ",
        "(A) ",
        "\n- ",
        "1. ",
        "yes/no",
        "**",
        "```",
        "{\"answer\":",
        "İ",
        "ẞ",
        "\u{200b}",
        "\u{0}",
        "=",
        "½",
        "12/10/1492",
        "-",
        "<think>",
        "«",
    ];
    let corpora = [
        include_str!("../data/replies/mixed.jsonl"),
        include_str!("../data/replies/mixed-telegraphic.jsonl"),
    ];
    let lines = corpora.iter().flat_map(|text| text.lines());
    let mut found: Vec<String> = MARKS.iter().map(|m| (*m).to_owned()).collect();
    for line in lines.filter(|line| line.contains("\"question\"")) {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        found.extend(row["question"].as_str().map(str::to_owned));
        let replies = row["replies"].as_array().into_iter().flatten();
        found.extend(replies.filter_map(|r| r.as_str().map(str::to_owned)));
    }
    found
}

/// Joins random parts of random pieces.
fn garbled(dice: &mut Dice, pieces: &[String]) -> String {
    let mut out = String::new();
    for _ in 0..=dice.below(4) {
        let piece = &pieces[dice.below(pieces.len())];
        let cut = |at: usize| piece.floor_char_boundary(at);
        let (a, b) = (
            cut(dice.below(piece.len() + 1)),
            cut(dice.below(piece.len() + 1)),
        );
        out.push_str(match dice.below(3) {
            0 => piece,
            _ => &piece[a.min(b)..a.max(b)],
        });
    }
    out
}

/// The seeded counterpart of `fuzz/fuzz_targets/kinds.rs`.
#[test]
fn any_question_has_a_kind_with_any_answers() {
    let pieces = pieces();
    let mut dice = Dice(12);
    let (mut choices, mut settled) = (0, 0);
    for _ in 0..600 {
        let question = garbled(&mut dice, &pieces);
        let replies: Vec<String> = (0..dice.below(5))
            .map(|_| garbled(&mut dice, &pieces))
            .collect();
        let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
        let guess = match kd_reading::kinds::found(&question).0 {
            Kind::Choice(options) => AnswerKind::Choice { options },
            Kind::YesNo => AnswerKind::parse("yes-no").expect("a kind"),
            Kind::Number => AnswerKind::Number,
            Kind::Date => AnswerKind::Date,
            Kind::List => AnswerKind::Set,
            Kind::Ranking => AnswerKind::Ranking,
            Kind::Code => AnswerKind::Code,
            Kind::Open => AnswerKind::Text,
        };
        let mut kinds = vec![guess.clone()];
        for asked in [&guess, &AnswerKind::Text] {
            let found = settling::settle(&question, asked, &guess, &replies);
            settled += usize::from(found.is_some());
            kinds.extend(found.map(|s| s.answers));
        }
        for kind in &kinds {
            let AnswerKind::Choice { options } = kind else {
                replies
                    .iter()
                    .for_each(|reply| drop(kind.read_for(&question, reply)));
                continue;
            };
            choices += 1;
            let names: BTreeSet<&String> = options.iter().collect();
            let all = options.len() >= 2 && names.len() == options.len();
            assert!(
                all && options.iter().all(|o| !o.trim().is_empty()),
                "{question}: {options:?}"
            );
            for reply in &replies {
                if let Ok((key, _)) = kind.read_for(&question, reply) {
                    assert!(options.contains(&key), "{question}: {reply}: {key}");
                }
            }
        }
    }
    assert!(choices > 40 && settled > 40, "{choices} {settled}");
}
