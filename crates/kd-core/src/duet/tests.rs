//! Tests of the debate with its environment simulated, by hand or at random.

use super::draft::{THINK, UPDATE};
use super::seats::Seats;
use super::*;
use crate::event::Outcome;
use crate::failure::{Failure, FailureKind};
use crate::ids::TurnId;
use crate::message::{Draft, Provenance, Status};
use crate::request::{Delta, Finish, Request};
use crate::roster::Member;
use proptest::prelude::*;

pub(super) fn member(name: &str) -> Member {
    Member {
        persona: format!("I am {name}."),
        ..Member::new(SeatName::new(name).unwrap(), "scripted")
    }
}

/// A debate and all its effects. Drafts are written immediately.
struct Bench {
    duet: Duet,
    events: Vec<Event>,
    drafts: Vec<Draft>,
    asked: Vec<Request>,
    open: Option<TurnId>,
    timers: Vec<TimerId>,
    seq: u32,
}

impl Bench {
    fn new(limits: DuetLimits, arbiter: bool) -> Self {
        let (duet, opened) = Duet::open(OpenDuet {
            thread: ThreadId("council-0001".into()),
            seats: Seats {
                fast: member("fast"),
                rigorous: member("rigorous"),
                arbiter: arbiter.then(|| member("judge")),
            },
            prompts: PromptRules::default(),
            history: Vec::new(),
            limits,
        });
        Self {
            duet,
            events: opened.events,
            drafts: Vec::new(),
            asked: Vec::new(),
            open: None,
            timers: Vec::new(),
            seq: 0,
        }
    }

    fn asked_of(limits: DuetLimits) -> Self {
        let mut bench = Self::new(limits, false);
        bench.say("Is the universe cyclic?");
        bench
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = vec![input];
        while !inputs.is_empty() {
            let fx = self.duet.step(Timestamp::UNIX_EPOCH, inputs.remove(0));
            self.events.extend(fx.events);
            for command in fx.commands {
                match command {
                    Command::Ask { turn, request } => {
                        assert_eq!(self.open, None, "one seat speaks at a time");
                        self.asked.push(*request);
                        self.open = Some(turn);
                    }
                    Command::Cancel { turn } => {
                        self.open = None;
                        let failure = Failure::new(FailureKind::Cancelled, "stopped by the user");
                        inputs.push(Input::Failed { turn, failure });
                    }
                    Command::Save(draft) => {
                        self.seq += 1;
                        let message = Message {
                            seq: self.seq,
                            from: draft.from.clone(),
                            to: draft.to.clone(),
                            at: draft.at,
                            status: draft.status,
                            refs: Vec::new(),
                            provenance: Provenance::default(),
                            extra: draft.extra.clone(),
                            body: draft.body.as_str().into(),
                        };
                        inputs.push(Input::Saved {
                            turn: draft.turn,
                            message,
                        });
                        self.drafts.push(*draft);
                    }
                    Command::Keep(_) | Command::Forget { .. } => panic!("a duet keeps nothing"),
                    Command::Wake { timer, .. } => self.timers.push(timer),
                }
            }
        }
    }

    fn say(&mut self, body: &str) {
        self.feed(Input::Op(Op::Say {
            body: body.into(),
            to: Address::All,
        }));
    }

    fn text(&mut self, text: &str) {
        let turn = self.open.expect("somebody speaks");
        self.feed(Input::Delta {
            turn,
            delta: Delta::Text { text: text.into() },
        });
    }

    fn reply(&mut self, text: &str) {
        self.text(text);
        let turn = self.open.take().expect("somebody speaks");
        self.feed(Input::Delta {
            turn,
            delta: Delta::Finished {
                finish: Finish::Stop,
                text: None,
                usage: None,
                choices: Vec::new(),
            },
        });
    }

    fn fail(&mut self) {
        let turn = self.open.take().expect("somebody speaks");
        let failure = Failure::new(FailureKind::Overloaded, "it is busy");
        self.feed(Input::Failed { turn, failure });
    }

    fn speaker(&self) -> &str {
        self.open.expect("somebody speaks");
        self.asked.last().unwrap().seat.as_str()
    }

    /// Returns the end: reason, number of messages, answer, outcome.
    fn end(&self) -> (DuetEnd, u32, Option<&str>, Outcome) {
        assert_eq!(self.open, None);
        let [
            Event::DuetEnded {
                why,
                exchanged,
                answer,
            },
            Event::FloorYielded { outcome, .. },
        ] = &self.events[self.events.len() - 2..]
        else {
            panic!("{:#?}", self.events.last())
        };
        let body = answer.map(|n| self.drafts[n as usize - 1].body.as_str());
        (*why, *exchanged, body, *outcome)
    }

    /// Returns the text visible to the user: everything except messages between the members.
    fn shown(&self) -> String {
        let mut shown = String::new();
        for event in &self.events {
            match event {
                Event::CouncilSaid { .. } => {}
                event => shown += &serde_json::to_string(event).unwrap(),
            }
        }
        shown + &serde_json::to_string(&self.drafts).unwrap()
    }
}

fn limits(max: u32) -> DuetLimits {
    DuetLimits {
        exchanges_max: max,
        ..DuetLimits::default()
    }
}

#[test]
fn they_debate_until_a_reply_has_no_tag() {
    let mut bench = Bench::asked_of(DuetLimits::default());
    assert_eq!(bench.speaker(), "fast");
    bench.text("A hard one; I ask rigorous.\n<coun");
    let shown = bench.shown();
    assert!(
        shown.contains("I ask rigorous.") && !shown.contains("<coun"),
        "at once, and no more"
    );
    bench.reply("cil>SECRET one</council>");
    assert_eq!(bench.speaker(), "rigorous");
    let prompt = bench.asked[1].prompt.as_text();
    assert!(
        prompt.contains("\nfast: A hard one; I ask rigorous.\n\nfast (to rigorous): SECRET one"),
        "{prompt}"
    );
    bench.reply("<council>SECRET two</council>");
    assert_eq!(bench.speaker(), "fast");
    bench.reply("Probably not.");
    assert_eq!(
        bench.end(),
        (DuetEnd::Agreed, 2, Some("Probably not."), Outcome::Complete)
    );
    assert!(!bench.shown().contains("SECRET"), "{}", bench.shown());
    assert_eq!(
        bench.drafts.len(),
        3,
        "a reply with nothing for the king has no file"
    );
    assert_eq!(bench.drafts[1].extra[THINK], UPDATE);
    let said: Vec<_> = bench
        .events
        .iter()
        .filter_map(|e| match e {
            Event::CouncilSaid { from, text, .. } => Some((from.as_str(), text.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(
        said,
        [
            ("fast", Some("SECRET one")),
            ("rigorous", Some("SECRET two"))
        ]
    );
}

#[test]
fn what_the_seats_wrote_is_not_in_the_next_question() {
    let mut bench = Bench::asked_of(DuetLimits::default());
    bench.reply("Wait. <council>SECRET</council>");
    bench.reply("Yes.");
    bench.say("And why?");
    let prompt = bench.asked[2].prompt.as_text();
    assert!(
        prompt.contains("rigorous: Yes.") && !prompt.contains("SECRET"),
        "{prompt}"
    );
}

#[test]
fn a_reply_without_a_tag_is_checked_where_that_is_wanted() {
    let mut bench = Bench::asked_of(DuetLimits {
        exchanges_min: 1,
        ..DuetLimits::default()
    });
    bench.reply("No.");
    assert_eq!(bench.speaker(), "rigorous");
    bench.reply("No, and here is why.");
    assert_eq!(
        bench.end(),
        (
            DuetEnd::Agreed,
            1,
            Some("No, and here is why."),
            Outcome::Complete
        )
    );
    assert_eq!(bench.drafts[1].extra[THINK], UPDATE);
}

#[test]
fn a_reply_that_was_cut_or_drawn_again_is_no_agreement() {
    let finish = |finish| Delta::Finished {
        finish,
        text: None,
        usage: None,
        choices: Vec::new(),
    };
    let again = |kind| Delta::Retrying {
        attempt: 1,
        after: Default::default(),
        failure: Failure::new(kind, "it repeated its instructions"),
    };
    for (before, finish, ends) in [
        (None, finish(Finish::Length), DuetEnd::Unclear),
        (None, finish(Finish::Repetition), DuetEnd::Unclear),
        (
            Some(again(FailureKind::Decode)),
            finish(Finish::Stop),
            DuetEnd::Unclear,
        ),
        (
            Some(again(FailureKind::Overloaded)),
            finish(Finish::Stop),
            DuetEnd::Agreed,
        ),
    ] {
        let mut bench = Bench::asked_of(DuetLimits::default());
        let turn = bench.open.expect("somebody speaks");
        if let Some(delta) = before {
            bench.feed(Input::Delta { turn, delta });
        }
        bench.text("No.");
        bench.open = None;
        bench.feed(Input::Delta {
            turn,
            delta: finish,
        });
        assert_eq!(bench.end(), (ends, 0, Some("No."), Outcome::Complete));
    }
    // A cut reply that another one follows shows none either.
    let mut bench = Bench::asked_of(DuetLimits {
        exchanges_min: 1,
        ..DuetLimits::default()
    });
    let turn = bench.open.take().expect("somebody speaks");
    let delta = finish(Finish::Length);
    bench.feed(Input::Delta {
        turn,
        delta: Delta::Text { text: "No".into() },
    });
    bench.feed(Input::Delta { turn, delta });
    bench.reply("No, and here is why.");
    assert_eq!(bench.end().0, DuetEnd::Unclear);
}

#[test]
fn the_cap_makes_the_rigorous_seat_answer_or_the_arbiter() {
    for (arbiter, decides) in [(false, "rigorous"), (true, "judge")] {
        let mut bench = Bench::new(limits(2), arbiter);
        bench.say("Q");
        bench.reply("<council>one thing</council>");
        bench.reply("<council>another thing</council>");
        assert_eq!(bench.speaker(), decides);
        assert!(!bench.asked[2].prompt.as_text().contains("<council>"));
        bench.reply("So be it.");
        assert_eq!(
            bench.end(),
            (DuetEnd::Cap, 2, Some("So be it."), Outcome::Complete)
        );
    }
}

#[test]
fn a_circle_ends_the_exchange() {
    let mut bench = Bench::asked_of(DuetLimits::default());
    bench.reply("<council>I think it is the cache, really.</council>");
    bench.reply("<council>No: it is the clock.</council>");
    bench.reply("<council>i think it is the CACHE really</council>");
    assert_eq!(bench.speaker(), "rigorous");
    bench.reply("Both.");
    assert_eq!(
        bench.end(),
        (DuetEnd::Cycle, 3, Some("Both."), Outcome::Complete)
    );
}

#[test]
fn tokens_and_time_end_the_exchange_too() {
    let mut bench = Bench::asked_of(DuetLimits {
        tokens_max: Some(900),
        ..DuetLimits::default()
    });
    assert!(bench.asked[0].sampling.max_tokens.unwrap() <= 450);
    bench.reply(&format!("<council>{}</council>", "many words ".repeat(200)));
    assert_eq!(bench.asked[1].sampling.max_tokens, Some(64));
    bench.reply("Short.");
    assert_eq!(
        bench.end(),
        (DuetEnd::Budget, 1, Some("Short."), Outcome::Complete)
    );

    let mut bench = Bench::asked_of(DuetLimits {
        seconds_max: Some(9),
        ..DuetLimits::default()
    });
    bench.text("I wonder <council>whe");
    let timer = bench.timers[0];
    bench.feed(Input::Woke { timer });
    assert_eq!(bench.speaker(), "rigorous");
    bench.reply("In time.");
    assert_eq!(
        bench.end(),
        (DuetEnd::Time, 0, Some("In time."), Outcome::Complete)
    );
    assert_eq!(bench.drafts[1].status, Some(Status::Interrupted));
    bench.feed(Input::Woke { timer });
}

#[test]
fn if_one_seat_fails_the_other_goes_on_and_says_so() {
    let mut bench = Bench::asked_of(DuetLimits::default());
    bench.fail();
    assert_eq!(bench.speaker(), "rigorous");
    assert!(bench.asked[1].prompt.turn.contains("fast cannot take part"));
    bench.reply("Alone, then.");
    assert_eq!(
        bench.end(),
        (DuetEnd::Alone, 0, Some("Alone, then."), Outcome::Partial)
    );
    assert!(
        bench
            .shown()
            .contains("fast failed (it is busy): rigorous continues without it")
    );

    let mut bench = Bench::asked_of(DuetLimits::default());
    bench.reply("Hm. <council>check this</council>");
    bench.fail();
    assert_eq!(bench.speaker(), "fast");
    bench.reply("Unchecked: yes.");
    assert_eq!(
        bench.end(),
        (DuetEnd::Alone, 1, Some("Unchecked: yes."), Outcome::Partial)
    );

    let mut bench = Bench::asked_of(DuetLimits::default());
    bench.fail();
    bench.fail();
    assert_eq!(bench.end(), (DuetEnd::Failed, 0, None, Outcome::Failed));
}

#[test]
fn an_answer_is_never_empty() {
    // If all members write only inside tags until the end, that text is the answer.
    let mut bench = Bench::asked_of(limits(1));
    bench.reply("<council>a</council>");
    for decider in ["rigorous", "fast"] {
        assert_eq!(bench.speaker(), decider);
        bench.reply(&format!("<council>{decider} says 42</council>"));
    }
    assert_eq!(
        bench.end(),
        (DuetEnd::Cap, 1, Some("fast says 42"), Outcome::Complete)
    );
    assert!(bench.shown().contains("it is shown without them"));
    // The deciding member fails: the last visible text is the answer.
    let mut bench = Bench::asked_of(limits(1));
    bench.reply("I lean to yes. <council>a</council>");
    bench.fail();
    bench.fail();
    assert_eq!(
        bench.end(),
        (DuetEnd::Cap, 1, Some("I lean to yes."), Outcome::Partial)
    );
    // A blank reply counts as failed.
    let mut bench = Bench::asked_of(limits(1));
    bench.reply(" <council> </council>\n");
    assert_eq!(bench.speaker(), "rigorous");
}

#[test]
fn a_retry_and_a_restated_answer_void_what_came() {
    let mut bench = Bench::asked_of(DuetLimits::default());
    let turn = bench.open.unwrap();
    bench.text("half <council>SECRET");
    let failure = Failure::new(FailureKind::Overloaded, "busy");
    bench.feed(Input::Delta {
        turn,
        delta: Delta::Retrying {
            attempt: 1,
            after: Default::default(),
            failure,
        },
    });
    bench.reply("whole");
    assert_eq!(bench.end().2, Some("whole"));

    let mut bench = Bench::asked_of(DuetLimits::default());
    let turn = bench.open.take().unwrap();
    bench.feed(Input::Delta {
        turn,
        delta: Delta::Thinking {
            text: "so <council>SECRET</council> it is".into(),
        },
    });
    let text = Some("All: <council>SECRET</council> done".to_owned());
    bench.feed(Input::Delta {
        turn,
        delta: Delta::Finished {
            finish: Finish::Stop,
            text,
            usage: None,
            choices: vec![],
        },
    });
    assert_eq!(bench.speaker(), "rigorous");
    assert!(!bench.shown().contains("SECRET"), "{}", bench.shown());
    assert_eq!(bench.drafts[1].body, "All:  done");
}

#[test]
fn the_king_interrupts_and_may_ask_again() {
    let mut bench = Bench::asked_of(DuetLimits::default());
    bench.say("and this?");
    bench.text("Some");
    bench.feed(Input::Op(Op::Interrupt));
    assert_eq!(bench.drafts[1].status, Some(Status::Interrupted));
    assert!(bench.duet.is_idle());
    assert_eq!(bench.drafts.len(), 3, "waiting words are kept");
    bench.say("again");
    bench.reply("Yes.");
    assert_eq!(bench.end().3, Outcome::Complete);
    bench.feed(Input::Op(Op::Mute {
        seat: SeatName::new("fast").unwrap(),
    }));
    assert!(matches!(bench.events.last(), Some(Event::OpRefused { .. })));
}

/// A random action.
#[derive(Clone, Debug)]
enum Act {
    Reply(String),
    Text(String),
    Fail,
    Wake,
    Interrupt,
    Stop,
    Say,
}

fn act() -> impl Strategy<Value = Act> {
    let words = proptest::sample::select(vec![
        "yes",
        "<council>SECRET a</council>",
        "<council>SECRET b</council> so",
        "<council>SECRET c",
        "",
        " ",
        "\u{1b}[1m",
        "<COUNCIL x='1'>SECRET d</COUNCIL",
        "</council>",
        "<council ",
        "fast: <council>SECRET e</council>",
    ]);
    prop_oneof![
        8 => words.clone().prop_map(|w| Act::Reply(w.to_owned())),
        3 => words.prop_map(|w| Act::Text(w.to_owned())),
        2 => Just(Act::Fail),
        1 => Just(Act::Wake),
        1 => Just(Act::Interrupt),
        1 => Just(Act::Stop),
        1 => Just(Act::Say),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the members do: it ends, every turn ends once, the answer is not empty, and nothing private is shown
    /// unless a notice says that it is the answer.
    #[test]
    fn whatever_happens(acts in proptest::collection::vec(act(), 0..40), max in 1u32..5, min in 0u32..3, tokens in proptest::option::of(300u64..2000), arbiter: bool) {
        let mut bench = Bench::new(DuetLimits { exchanges_max: max, exchanges_min: min, tokens_max: tokens, seconds_max: Some(5), ..DuetLimits::default() }, arbiter);
        bench.say("Q");
        for act in acts {
            let speaks = bench.open.is_some();
            match act {
                Act::Reply(text) if speaks => bench.reply(&text),
                Act::Text(text) if speaks => bench.text(&text),
                Act::Fail if speaks => bench.fail(),
                Act::Wake => {
                    let timer = *bench.timers.last().unwrap();
                    bench.feed(Input::Woke { timer });
                }
                Act::Interrupt => bench.feed(Input::Op(Op::Interrupt)),
                Act::Stop => bench.feed(Input::Op(Op::Stop { seat: SeatName::new("fast").unwrap() })),
                Act::Say => bench.say("more"),
                _ => {}
            }
        }
        let mut bound = 0;
        while bench.open.is_some() {
            bench.reply("<council>SECRET and still more of it</council>");
            bound += 1;
            prop_assert!(bound < 400, "it never ends");
        }
        prop_assert!(bench.duet.is_idle());
        let mut open = std::collections::BTreeSet::new();
        for event in &bench.events {
            match event {
                Event::TurnQueued { turn, .. } => prop_assert!(open.insert(*turn)),
                Event::TurnFinished { turn, .. } | Event::TurnFailed { turn, .. } => {
                    prop_assert!(open.remove(turn));
                }
                _ => {}
            }
        }
        prop_assert!(open.is_empty());
        prop_assert!(bench.drafts.iter().all(|d| !d.body.trim().is_empty()));
        let shown = bench.shown();
        prop_assert!(!shown.contains("SECRET") || shown.contains("it is shown without them"));
        prop_assert!(!shown.to_lowercase().contains("<council"));
    }
}
