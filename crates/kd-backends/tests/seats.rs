//! Tests what members share and what they do not share: limits, keys and prices; and that a failing member leaves the
//! others' answers intact.
#![allow(clippy::unwrap_used)]

mod common;

use common::{KEY, backends, hear, member, provider, request};
use futures::StreamExt;
use futures::future::join_all;
use kd_core::config::Price;
use kd_core::{Delta, FailureKind};
use kd_fake::{Fake, Reply, Script, Step, Wire};

#[tokio::test]
async fn two_providers_do_not_share_a_rate_limit_and_two_members_of_one_do() {
    let a = Fake::start(Script::always(Wire::OpenAi, Reply::words(&["a"])))
        .await
        .unwrap();
    let b = Fake::start(Script::always(Wire::OpenAi, Reply::words(&["b"])))
        .await
        .unwrap();
    let mut limited = provider(&a, Wire::OpenAi);
    limited.requests_per_minute = Some(1);
    let mut other = provider(&b, Wire::OpenAi);
    other.requests_per_minute = Some(1);
    let backends = backends([("a", limited), ("b", other)]);
    let (first, second, free) = (
        backends.seat(&member("a")).unwrap(),
        backends.seat(&member("a")).unwrap(),
        backends.seat(&member("b")).unwrap(),
    );
    hear(&*first, request()).await.whole();
    let mut waiting = second.ask(request());
    let other = hear(&*free, request());
    tokio::select! {
        biased;
        item = waiting.next() => panic!("the second member of `a` did not wait: {item:?}"),
        heard = other => assert_eq!(heard.whole(), "b"),
    }
    assert_eq!(
        a.seen().len(),
        1,
        "the request of the second member was not sent"
    );
}

#[tokio::test]
async fn the_others_answer_when_one_fails() {
    let good = Fake::start(Script::always(Wire::Anthropic, Reply::words(&["fine"])))
        .await
        .unwrap();
    let cut = Reply::Stream(vec![Step::Text("ha".into()), Step::Cut]);
    let bad = Fake::start(Script::always(Wire::OpenAi, cut))
        .await
        .unwrap();
    let dead = Fake::start(Script::always(Wire::Gemini, Reply::status(401)))
        .await
        .unwrap();
    let backends = backends([
        ("good", provider(&good, Wire::Anthropic)),
        ("bad", provider(&bad, Wire::OpenAi)),
        ("dead", provider(&dead, Wire::Gemini)),
    ]);
    let seats: Vec<_> = ["good", "bad", "dead", "good"]
        .iter()
        .map(|n| backends.seat(&member(n)).unwrap())
        .collect();
    let heard = join_all(seats.iter().map(|seat| hear(&**seat, request()))).await;
    assert_eq!((heard[0].whole(), heard[3].whole()), ("fine", "fine"));
    assert_eq!(
        (heard[1].text.as_str(), heard[1].failure().kind),
        ("ha", FailureKind::Decode)
    );
    assert_eq!(heard[2].failure().kind, FailureKind::Auth);
}

#[tokio::test]
async fn prices_make_costs_unless_the_service_names_them() {
    let fake = Fake::start(Script::always(Wire::OpenAi, Reply::words(&["x"])))
        .await
        .unwrap();
    let mut config = provider(&fake, Wire::OpenAi);
    config.prices.insert(
        "fake-1".into(),
        Price {
            input: 1.0,
            output: 2.0,
            cached: Some(0.5),
            cache_write: None,
        },
    );
    let priced = backends([("svc", config)]).seat(&member("svc")).unwrap();
    let cost = hear(&*priced, request()).await.usage().cost_usd.unwrap();
    // 8 fresh, 3 cached, 7 output tokens.
    assert!((cost - (8.0 + 1.5 + 14.0) / 1e6).abs() < 1e-12, "{cost}");

    let wire = Wire::OpenAi;
    let told = wire.text("x")
        + "data: {\"choices\": [{\"finish_reason\": \"stop\"}], \"usage\": {\"prompt_tokens\": 1, \"completion_tokens\": 1, \"cost\": 0.25}}\n\ndata: [DONE]\n\n";
    let fake = Fake::start(Script::always(
        wire,
        Reply::Stream(vec![Step::Raw(told.into_bytes().into())]),
    ))
    .await
    .unwrap();
    let mut config = provider(&fake, wire);
    config.prices.insert(
        "fake-1".into(),
        Price {
            input: 1.0,
            output: 2.0,
            cached: None,
            cache_write: None,
        },
    );
    let seat = backends([("svc", config)]).seat(&member("svc")).unwrap();
    assert_eq!(hear(&*seat, request()).await.usage().cost_usd, Some(0.25));
}

#[tokio::test]
async fn the_key_shows_nowhere_whatever_the_service_does_with_it() {
    for wire in Wire::ALL {
        let echo = format!("you sent {KEY}, did you?");
        let in_stream = format!(
            "event: error\ndata: {{\"type\": \"error\", \"error\": {{\"type\": \"invalid_request_error\", \"message\": \"{echo}\"}}}}\n\n"
        );
        let headers = vec![(
            "location".to_owned(),
            format!("http://127.0.0.1:1/?key={KEY}"),
        )];
        let replies = [
            Reply::Status {
                code: 400,
                headers: Vec::new(),
                body: Some(echo.clone()),
            },
            Reply::Status {
                code: 500,
                headers: Vec::new(),
                body: Some(wire.error_body(500, &echo)),
            },
            Reply::Status {
                code: 302,
                headers,
                body: None,
            },
            Reply::Body {
                mime: "application/json".into(),
                body: wire.error_body(200, &echo).into_bytes().into(),
            },
            Reply::Body {
                mime: format!("text/plain; {KEY}"),
                body: b"x".as_slice().into(),
            },
            Reply::Stream(vec![Step::Raw(in_stream.into_bytes().into())]),
        ];
        for reply in replies {
            let fake = Fake::start(Script::always(wire, reply.clone()))
                .await
                .unwrap();
            let config = provider(&fake, wire);
            let heard = hear(&*common::seat(config), request()).await;
            let json = serde_json::to_string(heard.failure()).unwrap();
            assert!(
                !heard.shown.contains(KEY) && !json.contains(KEY),
                "{wire:?} {reply:?}: {}",
                heard.shown
            );
        }
    }
}

#[tokio::test]
async fn nothing_happens_before_the_stream_is_polled() {
    let fake = Fake::start(Script::always(Wire::OpenAi, Reply::words(&["x"])))
        .await
        .unwrap();
    let seat = common::seat(provider(&fake, Wire::OpenAi));
    let unpolled = seat.ask(request());
    hear(&*seat, request()).await.whole();
    drop(unpolled);
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_keep_alive_is_a_sign_of_life() {
    let mut steps = vec![Step::Text("a".into())];
    for _ in 0..12 {
        steps.extend([
            Step::Pause(std::time::Duration::from_millis(100)),
            Step::Raw(b": ping\n\n".as_slice().into()),
        ]);
    }
    steps.extend([Step::Text("b".into()), Step::End]);
    let fake = Fake::start(Script::always(Wire::OpenAi, Reply::Stream(steps)))
        .await
        .unwrap();
    let mut asked = request();
    asked.deadlines.idle = std::time::Duration::from_millis(900);
    let heard = hear(&*common::seat(provider(&fake, Wire::OpenAi)), asked).await;
    assert_eq!(heard.whole(), "ab");
    assert!(
        !heard.shown.contains(&format!(
            "{:?}",
            Delta::Text {
                text: String::new()
            }
        )),
        "an empty piece leaked out"
    );
}

#[tokio::test]
async fn a_small_model_on_this_machine_is_asked_again_if_it_repeats_its_instructions() {
    let told = "Name the biggest risk or hidden assumption, and how to find out cheaply.";
    let echo = Reply::words(&["Right. Name the biggest risk", " or hidden assumption."]);
    for (model, requests) in [("tiny:0.5b", 2), ("large:70b", 1)] {
        let script = Script {
            wire: Wire::OpenAi,
            replies: vec![echo.clone(), Reply::words(&["Use a file."])],
        };
        let fake = Fake::start(script).await.unwrap();
        let backends = backends([("near", provider(&fake, Wire::OpenAi))]);
        let member = kd_core::Member {
            model: Some(model.into()),
            ..member("near")
        };
        let mut request = request();
        request.prompt.persona = told.into();
        let heard = hear(&*backends.seat(&member).unwrap(), request).await;
        assert_eq!(fake.seen().len(), requests, "{model}");
        match requests {
            2 => {
                assert_eq!(heard.whole(), "Use a file.");
                assert!(!heard.shown.contains("hidden assumption"), "never shown");
                let again = heard.retries[0].message.as_str();
                assert_eq!(again, "the model repeated its instructions");
            }
            _ => assert!(heard.whole().contains("hidden assumption")),
        }
    }
}
