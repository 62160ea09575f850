//! A test environment for one review: scripted members, and messages that are always saved.

use jiff::Timestamp;
use kd_core::ids::TurnId;
use kd_core::machine::{Command, Effects, Input};
use kd_core::review::{OpenReview, Report};
use kd_core::spending::{Account, Keep, Spent};
use kd_core::{
    Delta, Event, Failure, FailureKind, Finish, Machine, Member, Message, Op, Request, Review,
    SeatName,
};
use std::collections::{BTreeMap, VecDeque};

/// The reviewed side of one file.
pub(crate) const CODE: &str = "fn total(items: &[Item]) -> u32 {\n    let mut sum = 0;\n    for i in 0..=items.len() {\n        sum += items[i].price;\n    }\n    sum\n}\n\nfn mean(items: &[Item]) -> u32 {\n    total(items) / items.len() as u32\n}\n";

/// The reply of a member.
pub(crate) enum Reply {
    Text(String),
    /// Streamed in pieces like a model's output, after a failed first attempt; not repeated at the end.
    Streamed(String),
    Fail,
    /// Not sent: a limit forbids it.
    Refused,
}

/// The tokens charged for each answer.
const ANSWER_TOKENS: u32 = 300;

/// The result of a review.
pub(crate) struct Ran {
    pub(crate) report: Report,
    pub(crate) events: Vec<Event>,
    pub(crate) asked: Vec<Request>,
    pub(crate) saved: Vec<Message>,
}

pub(crate) fn member(name: &str) -> Member {
    Member::new(SeatName::new(name).expect("a name"), "scripted")
}

/// Builds a review of one file by these members.
pub(crate) fn review(members: &[&str]) -> OpenReview {
    OpenReview {
        base: "main".into(),
        head: "HEAD".into(),
        title: "Review main..HEAD".into(),
        members: members.iter().map(|name| member(name)).collect(),
        parts: vec!["src/sum.rs, all lines new".into()],
        files: BTreeMap::from([("src/sum.rs".into(), CODE.into())]),
        preamble: "Preamble.".into(),
        seed: 7,
        ..OpenReview::default()
    }
}

/// Returns whether a request asks for findings, votes or pairs.
pub(crate) fn kind(request: &Request) -> &'static str {
    let task = &request.prompt.turn;
    ["\"findings\"", "\"votes\"", "\"pairs\""]
        .into_iter()
        .find(|word| task.contains(word))
        .expect("a kind")
        .trim_matches('"')
}

/// Runs a review to its end, within its limits: every request is charged in full.
pub(crate) fn run(open: OpenReview, mut reply: impl FnMut(&str, &Request) -> Reply) -> Ran {
    let now = Timestamp::UNIX_EPOCH;
    let (mut machine, opened) = Review::open(open);
    let mut account = Account::new(machine.ceiling());
    let mut ran = Ran {
        report: Report::default(),
        events: Vec::new(),
        asked: Vec::new(),
        saved: Vec::new(),
    };
    let say = Op::Say {
        body: "go".into(),
        to: kd_core::Address::All,
    };
    let mut inputs = VecDeque::from([Input::Op(say)]);
    let mut reply = |turn, request: &Request, machine: &Review| {
        let keep = machine.keeps(turn);
        assert_eq!(keep, Keep::from(keep.fixed), "no request is first");
        let bytes = request.prompt.history.len() + request.prompt.turn.len();
        let most = Spent::at_most(bytes as u64, ANSWER_TOKENS, None);
        if account.fits(most + keep.fixed).is_err() {
            return Reply::Refused;
        }
        account.settle(0, most);
        reply(request.seat.as_str(), request)
    };
    take(opened, &machine, &mut ran, &mut inputs, &mut reply);
    while let Some(input) = inputs.pop_front() {
        let effects = machine.step(now, input);
        take(effects, &machine, &mut ran, &mut inputs, &mut reply);
    }
    assert!(machine.is_done(), "the review ended");
    ran
}

fn take(
    effects: Effects,
    machine: &Review,
    ran: &mut Ran,
    inputs: &mut VecDeque<Input>,
    reply: &mut impl FnMut(TurnId, &Request, &Review) -> Reply,
) {
    for event in effects.events {
        if let Event::Reviewed { report } = &event {
            ran.report = (**report).clone();
        }
        ran.events.push(event);
    }
    for command in effects.commands {
        match command {
            Command::Ask { turn, request } => {
                match reply(turn, &request, machine) {
                    Reply::Text(text) => inputs.push_back(Input::Delta {
                        turn,
                        delta: Delta::Finished {
                            finish: Finish::Stop,
                            text: Some(text),
                            usage: None,
                            choices: Vec::new(),
                        },
                    }),
                    Reply::Streamed(text) => {
                        let letters: Vec<char> = text.chars().collect();
                        let half: String = letters[..letters.len() / 2].iter().collect();
                        let pieces = letters.chunks(3).map(|piece| piece.iter().collect());
                        let text = |text: String| Delta::Text { text };
                        let mut deltas = vec![
                            text(half),
                            Delta::Retrying {
                                attempt: 1,
                                after: std::time::Duration::ZERO,
                                failure: Failure::new(FailureKind::Overloaded, "dropped"),
                            },
                        ];
                        deltas.extend(pieces.map(text));
                        deltas.push(Delta::Finished {
                            finish: Finish::Stop,
                            text: None,
                            usage: None,
                            choices: Vec::new(),
                        });
                        inputs.extend(deltas.into_iter().map(|delta| Input::Delta { turn, delta }));
                    }
                    Reply::Refused => {
                        let failure = Failure::new(FailureKind::Limit, "the limit is reached");
                        inputs.push_back(Input::Failed { turn, failure });
                        continue;
                    }
                    Reply::Fail => inputs.push_back(Input::Failed {
                        turn,
                        failure: Failure::new(FailureKind::Timeout, "no answer"),
                    }),
                }
                ran.asked.push(*request);
            }
            Command::Save(draft) => {
                let turn = draft.turn;
                let message = draft.stored(u32::try_from(ran.saved.len()).expect("few") + 1);
                ran.saved.push(message.clone());
                inputs.push_back(Input::Saved { turn, message });
            }
            Command::Cancel { turn } => inputs.push_back(Input::Failed {
                turn,
                failure: Failure::new(FailureKind::Cancelled, "cancelled"),
            }),
            _ => {}
        }
    }
}

/// Builds a finding in the format of replies.
pub(crate) fn finding(file: &str, first: u32, quote: &str, claim: &str) -> serde_json::Value {
    serde_json::json!({"file": file, "lines": {"first": first, "last": first}, "quote": quote, "claim": claim,
        "severity": "major", "evidence": "An input shows it."})
}

/// Builds a reply with findings.
pub(crate) fn findings(all: &[serde_json::Value]) -> String {
    serde_json::json!({"findings": all}).to_string()
}

/// Returns the labels of a request, with the claim of each.
pub(crate) fn labels(request: &Request) -> Vec<(String, String)> {
    let text = request.prompt.history.as_str();
    let mut out: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some((_, label)) = line.strip_prefix("<<").and_then(|l| l.split_once(" id ")) {
            out.push((label.to_owned(), String::new()));
        } else if let (Some(claim), Some(last)) = (line.strip_prefix("claim: "), out.last_mut())
            && last.1.is_empty()
        {
            claim.clone_into(&mut last.1);
        }
    }
    out
}

/// Builds votes on all labels of a request.
pub(crate) fn votes(request: &Request, vote: impl Fn(&str) -> &'static str) -> String {
    let all: Vec<serde_json::Value> = labels(request)
        .iter()
        .map(|(id, claim)| serde_json::json!({"id": id, "vote": vote(claim)}))
        .collect();
    serde_json::json!({"votes": all}).to_string()
}
