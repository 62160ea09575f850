//! Every kind of reply with every API, through `kd ask`, `kd think` and `kd deliberate`: a vote is lost only to
//! refusals, empty replies, cut streams, errors, and replies still ambiguous after one more question.
//!
//! `cargo test -p kd --test program replies:: -- --nocapture` prints the table.

use crate::support;

use kd_fake::{Fake, Reply, Seen, Step, Wire};
use serde_json::json;
use std::net::SocketAddr;
use support::{Home, Said};

/// The effect on the member's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vote {
    Counts,
    Lost,
}
use Vote::{Counts, Lost};

/// One kind of reply: gets the request and the number of earlier ones.
struct Kind {
    name: &'static str,
    reply: fn(Wire, &Seen, usize) -> Reply,
    vote: Vote,
    /// Whether `kd ask` and `kd think` accept it as an answer.
    answers: bool,
}

/// The answer of the member under test; with its vote, it has two of three.
const STANDS_FOR: &str = "391";
const OTHER: &str = "401";
const QUESTION: &str = "Which is right: 391 or 401?";

fn object(answer: &str) -> String {
    json!({
        "reason": "worked out", "answer": answer, "confidence": 0.8, "choice": answer,
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
        "ranking": ["A", "B"], "recommendation": "Take it.", "consensus": "It is clear.",
        "support": "Reasons.", "dissent": "none", "cites": ["A"],
    })
    .to_string()
}

fn words(text: &str) -> Reply {
    Reply::words(&[text])
}

fn has_schema(seen: &Seen) -> bool {
    ["json_schema", "responseJsonSchema", "output_config"]
        .iter()
        .any(|word| seen.body.contains(word))
}

const KINDS: &[Kind] = &[
    Kind {
        name: "JSON",
        reply: |_, _, _| words(&object(STANDS_FOR)),
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "JSON in a fence",
        reply: |_, _, _| words(&format!("```json\n{}\n```", object(STANDS_FOR))),
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "words around JSON",
        reply: |_, _, _| {
            words(&format!(
                "Here is my view:\n{}\nThat is all.",
                object(STANDS_FOR)
            ))
        },
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "trailing comma",
        reply: |_, _, _| words(&object(STANDS_FOR).replace('}', ",}").replace(",},", "},")),
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "single quotes",
        reply: |_, _, _| words(&object(STANDS_FOR).replace('"', "'")),
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "plain words",
        reply: |_, _, _| words("I worked it out. I choose 391."),
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "a labelled line",
        reply: |_, _, _| words("17 times 23.\n\n**Final answer:** 391"),
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "two objects, one fits",
        reply: |_, _, _| words(&format!("{{\"step\": 1}}\n{}", object(STANDS_FOR))),
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "429, then good",
        reply: |_, _, n| {
            if n == 0 {
                Reply::status_with(429, "retry-after", "0")
            } else {
                words(&object(STANDS_FOR))
            }
        },
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "400 for a schema",
        reply: |_, seen, _| match has_schema(seen) {
            true => Reply::Status {
                code: 400,
                headers: vec![],
                body: Some(
                    json!({"error": {"message": "json_schema is not supported by this model"}})
                        .to_string(),
                ),
            },
            false => words(&object(STANDS_FOR)),
        },
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "ambiguous, then clear",
        reply: |_, seen, _| {
            words(if seen.body.contains("Your reply to it:") {
                "391"
            } else {
                "It could be 391 or 401."
            })
        },
        vote: Counts,
        answers: true,
    },
    Kind {
        name: "ambiguous for good",
        reply: |_, _, _| words("It could be 391 or 401."),
        vote: Lost,
        answers: true,
    },
    Kind {
        name: "a refusal in words",
        reply: |_, _, _| words("I'm sorry, but I can't help with that."),
        vote: Lost,
        answers: true,
    },
    Kind {
        name: "a refusal of the service",
        reply: |_, _, _| Reply::Stream(vec![Step::Refuse]),
        vote: Lost,
        answers: false,
    },
    Kind {
        name: "nothing",
        reply: |_, _, _| Reply::Stream(vec![Step::End]),
        vote: Lost,
        answers: false,
    },
    Kind {
        name: "a cut stream",
        reply: |_, _, _| Reply::Stream(vec![Step::Text("I choose".into()), Step::Cut]),
        vote: Lost,
        answers: false,
    },
    Kind {
        name: "500",
        reply: |_, _, _| Reply::status(500),
        vote: Lost,
        answers: false,
    },
];

const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// Creates the member under test with one API, and two working ones.
async fn home(kind: &'static Kind, wire: Wire) -> (Home, [Fake; 2]) {
    let shaky = Fake::choosing(SocketAddr::from(LOOPBACK), move |seen, number| {
        Some((wire, (kind.reply)(wire, seen, number)))
    });
    let calm = Fake::choosing(SocketAddr::from(LOOPBACK), |seen, _| {
        let answer = match seen.body.contains("\"model\":\"against\"") {
            true => OTHER,
            false => STANDS_FOR,
        };
        Some((Wire::OpenAi, words(&object(answer))))
    });
    let (shaky, calm) = (
        shaky.await.expect("loopback"),
        calm.await.expect("loopback"),
    );
    let spoken = match wire {
        Wire::Anthropic => "anthropic",
        Wire::Gemini => "gemini",
        _ => "openai",
    };
    let path = |base: String| format!("{base}/v1");
    let base = match wire {
        Wire::OpenAi => path(shaky.url()),
        _ => shaky.url(),
    };
    let home = Home::new(&json!({
        "council": {"conclude": false},
        "agents": {
            "shaky": {"backend": "tested", "model": "tested"},
            "yes": {"backend": "well", "model": "for"},
            "no": {"backend": "well", "model": "against"},
        },
        "providers": {
            "tested": {"wire": spoken, "base_url": base, "attempts": 2},
            "well": {"wire": "openai", "base_url": path(calm.url())},
        },
        "deliberation": {"council": {"size": 4, "members": [
            {"model": "yes", "role": "opinion-giver"}, {"model": "shaky", "role": "opinion-giver"},
            {"model": "no", "role": "opinion-giver"}, {"model": "yes", "role": "synthesizer"},
        ]}},
    }));
    (home, [shaky, calm])
}

/// Returns the effect on the vote of the member under test.
fn vote(home: &Home) -> Vote {
    let said = home.run(&["deliberate", "--json", "--seed", "1", QUESTION]);
    let shown = said.json();
    let counted = &shown["counts"]
        .as_array()
        .and_then(|c| c.last().cloned())
        .unwrap_or_default();
    let firsts = counted["firsts"]
        .as_array()
        .unwrap_or_else(|| panic!("{}", said.out))
        .clone();
    let mine = firsts.iter().find(|f| f["seat"] == "shaky");
    let place = mine.and_then(|f| f["candidate"].as_u64());
    match place {
        Some(at) => {
            assert_eq!(
                counted["candidates"][at as usize], STANDS_FOR,
                "misread: {counted}"
            );
            Counts
        }
        None => Lost,
    }
}

fn answered(said: &Said) -> bool {
    said.code == Some(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_is_lost_only_where_there_is_none() {
    let mut wrong = Vec::new();
    println!("| reply | wire | ask | think | deliberate |\n|---|---|---|---|---|");
    for kind in KINDS {
        for wire in Wire::ALL {
            let (home, _servers) = home(kind, wire).await;
            let counted = vote(&home);
            let ask = answered(&home.run(&["ask", "--json", "-m", "shaky", QUESTION]));
            let (home, _servers) = self::home(kind, wire).await;
            let think = home.run(&[
                "think",
                "--json",
                "--fast",
                "shaky",
                "--rigorous",
                "yes",
                QUESTION,
            ]);
            // If one of the two cannot answer, the other does, and the exit code says so.
            let think = match think.code {
                Some(0) => "answers",
                Some(5) => "the other answers",
                _ => "fails",
            };
            let wanted = if kind.answers {
                "answers"
            } else {
                "the other answers"
            };
            println!(
                "| {} | {wire:?} | {} | {think} | {} |",
                kind.name,
                if ask { "answers" } else { "fails" },
                if counted == Counts { "counts" } else { "lost" },
            );
            if counted != kind.vote || ask != kind.answers || think != wanted {
                wrong.push(format!(
                    "{} on {wire:?}: vote {counted:?}, ask {ask}, think {think}",
                    kind.name
                ));
            }
        }
    }
    assert!(KINDS.len() >= 14);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
