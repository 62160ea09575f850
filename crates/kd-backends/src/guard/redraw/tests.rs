use super::*;
use crate::adapters::scripted::{Act, Script, Scripted};
use crate::testing::{request, run};
use kd_core::Prompt;
use std::sync::Mutex;

const TOLD: &str = "You are practical. Recommend the simplest thing that works today, say what it costs, and what would change your mind.";
const ECHO: &str = "Well. Recommend the simplest thing that works today, they say.";

/// Plays one script per attempt, and keeps the requests.
struct Played {
    player: Scripted,
    requests: Mutex<Vec<Request>>,
}

impl Backend for Arc<Played> {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        self.requests.lock().unwrap().push(request.clone());
        self.player.ask(request)
    }
}

/// Builds a guard around scripted attempts, each the pieces of an answer.
fn redraw(answers: &[&[&str]]) -> (Redraw, Arc<Played>) {
    let finish = |pieces: &&[&str]| {
        let acts = pieces.iter().map(|piece| Act::text(piece));
        acts.chain([Act::finish()]).collect()
    };
    let runs = answers.iter().map(finish).collect();
    let played = Arc::new(Played {
        player: Scripted::new(Script { runs }),
        requests: Mutex::default(),
    });
    let redraw = Redraw::new(Arc::new(Arc::clone(&played)), Model::Service);
    (redraw, played)
}

fn asked() -> Request {
    let mut request = request("Why?");
    request.prompt = Prompt {
        persona: TOLD.into(),
        ..request.prompt
    };
    request.sampling.seed = Some(7);
    request.sampling.temperature = Some(0.3);
    request
}

/// Returns what a person sees: all text ever shown, and the final deltas.
async fn shown(redraw: &Redraw, request: Request) -> (String, Vec<Result<Delta, Failure>>) {
    let deltas: Vec<_> = redraw.ask(request).collect().await;
    let mut seen = String::new();
    for delta in &deltas {
        match delta {
            Ok(Delta::Text { text }) => seen.push_str(text),
            Ok(Delta::Finished {
                text: Some(text), ..
            }) => seen.push_str(text),
            _ => {}
        }
    }
    (seen, deltas)
}

#[tokio::test]
async fn an_answer_of_its_own_arrives_as_it_is() {
    let (redraw, played) = redraw(&[&["The simplest ", "thing, wh", "ich is", " a file."]]);
    let (text, end) = run(&redraw, asked()).await;
    assert_eq!(text, "The simplest thing, which is a file.");
    assert!(matches!(end, Ok(Delta::Finished { text: None, .. })));
    assert_eq!(played.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_repetition_is_never_shown_and_drawn_again_with_another_seed() {
    let (redraw, played) = redraw(&[
        &[
            "Well. Recommend the",
            " simplest thing that works today",
            ", ok.",
        ],
        &["Use a file."],
    ]);
    let (seen, deltas) = shown(&redraw, asked()).await;
    assert_eq!(seen, "Well. Use a file.");
    let again = deltas.iter().find_map(|d| match d {
        Ok(Delta::Retrying {
            attempt, failure, ..
        }) => Some((*attempt, failure.message.clone())),
        _ => None,
    });
    let said = "the model repeated its instructions".to_owned();
    assert_eq!(again, Some((1, said)));
    let Some(Ok(Delta::Finished { usage, .. })) = deltas.last() else {
        panic!("{deltas:?}")
    };
    assert_eq!(usage.unwrap().repeats, 1, "the attempt is counted");
    let requests = played.requests.lock().unwrap();
    let [first, second] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert_eq!(first.sampling.seed, Some(7));
    assert_ne!(second.sampling.seed, first.sampling.seed);
    assert_eq!(second.sampling.temperature, Some(0.55), "a little warmer");
}

#[tokio::test]
async fn if_every_attempt_repeats_the_best_beginning_is_the_answer() {
    let (redraw, played) = redraw(&[
        &["I would take one file for now. Then ", TOLD],
        &["I would. ", TOLD],
        &[
            "Perhaps I would take one file. Recommend the ",
            "simplest thing that works today",
        ],
        &["never asked"],
    ]);
    let (seen, deltas) = shown(&redraw, asked()).await;
    let Some(Ok(Delta::Finished {
        finish,
        text: whole,
        ..
    })) = deltas.last()
    else {
        panic!("{deltas:?}")
    };
    assert_eq!(*finish, Finish::Repetition, "marked as cut");
    assert_eq!(whole.as_deref(), Some("I would take one file for now."));
    let notice = Delta::Notice {
        text: "the answer ends where the model repeated its instructions".into(),
    };
    assert!(deltas.contains(&Ok(notice)));
    assert!(!seen.contains("works today"), "{seen}");
    assert_eq!(played.requests.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn nothing_but_repetitions_is_a_failure_that_says_so() {
    let (redraw, played) = redraw(&[&[ECHO]]);
    let (text, end) = run(&redraw, asked()).await;
    let failure = end.unwrap_err();
    assert_eq!(text, "");
    assert_eq!(
        failure.message,
        "the model repeated its instructions (3 attempts)"
    );
    assert!(
        failure.hint().contains("kd model list"),
        "{}",
        failure.hint()
    );
    assert_eq!(failure.used.unwrap().usage.repeats, 3);
    assert_eq!(played.requests.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn the_most_likely_answer_is_not_drawn_again() {
    let (redraw, played) = redraw(&[&[ECHO]]);
    let mut greedy = asked();
    greedy.sampling.temperature = Some(0.0);
    let (_, end) = run(&redraw, greedy).await;
    assert_eq!(
        end.unwrap_err().message,
        "the model repeated its instructions"
    );
    assert_eq!(played.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_empty_answer_is_drawn_again() {
    let (redraw, _) = redraw(&[&[], &[" "], &["Yes."]]);
    let (text, end) = run(&redraw, asked()).await;
    assert_eq!((text.as_str(), end.is_ok()), ("Yes.", true));
}

#[tokio::test]
async fn answers_in_a_schema_are_not_judged_here() {
    let (redraw, _) = redraw(&[&[ECHO]]);
    let mut request = asked();
    request.schema = Some(serde_json::json!({"type": "object"}));
    let (text, end) = run(&redraw, request).await;
    assert!(end.is_ok() && text == ECHO);
}

#[tokio::test]
async fn a_limit_stops_the_attempts() {
    let runs = vec![
        vec![Act::text(ECHO), Act::finish()],
        vec![Act::fail(FailureKind::Limit, "spent")],
    ];
    let redraw = Redraw::new(Arc::new(Scripted::new(Script { runs })), Model::Service);
    let (text, end) = run(&redraw, asked()).await;
    let failure = end.unwrap_err();
    assert_eq!((text.as_str(), failure.kind), ("", FailureKind::Limit));
    assert!(
        failure.message.contains("repeated its instructions"),
        "{}",
        failure.message
    );
}

#[test]
fn beginnings_end_with_a_sentence() {
    for (text, kept) in [
        ("One. Two! Thr", "One. Two!"),
        ("Version 1.2 is", ""),
        ("\n Only this. ", "Only this."),
        ("", ""),
    ] {
        assert_eq!(sentences(text), kept, "{text:?}");
    }
}
