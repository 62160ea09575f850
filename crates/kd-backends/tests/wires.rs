//! Every wire format against every fault: the name of a test is `wire::fault`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{KEY, hear, provider, request, seat};
use kd_core::media::Attachment;
use kd_core::{Delta, FailureKind, Finish};
use kd_fake::{Fake, Reply, Script, Step, Wire};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// One test for each wire format and case.
macro_rules! on_every_wire {
    ($($case:ident),* $(,)?) => {
        mod openai { $(#[tokio::test] async fn $case() { super::$case(kd_fake::Wire::OpenAi).await; })* }
        mod anthropic { $(#[tokio::test] async fn $case() { super::$case(kd_fake::Wire::Anthropic).await; })* }
        mod gemini { $(#[tokio::test] async fn $case() { super::$case(kd_fake::Wire::Gemini).await; })* }
    };
}

on_every_wire!(
    a_good_answer_streams_with_thinking_and_usage,
    the_request_is_what_the_service_expects,
    a_long_history_arrives_with_its_length_and_at_each_attempt,
    a_schema_is_sent_and_words_around_the_answer_are_kept,
    a_refused_form_is_asked_for_less_strictly_from_then_on,
    a_refused_schema_of_the_user_takes_the_schema_from_no_other_request,
    refused_files_are_not_sent_to_the_model_again_and_others_are,
    another_refusal_is_not_taken_for_one_of_the_form,
    delays_between_pieces_do_no_harm,
    bytes_one_by_one_do_no_harm,
    the_token_limit_is_told,
    status_401_is_auth_and_the_echoed_key_is_hidden,
    status_429_waits_as_asked_and_is_asked_again,
    status_429_for_good_is_a_rate_limit,
    status_500_is_overloaded,
    status_529_is_overloaded,
    status_400_404_413_422_are_invalid_and_not_asked_again,
    a_redirect_is_not_followed,
    a_hang_up_before_the_status_is_a_crash,
    nobody_listens_is_missing,
    a_cut_keeps_the_text,
    a_cut_is_asked_again_and_the_text_begins_anew,
    an_end_without_end_mark_is_a_cut,
    silence_before_the_status_is_a_timeout,
    a_stalled_stream_is_a_timeout_and_closes_the_connection,
    a_malformed_event_is_one_notice,
    only_malformed_events_are_a_decode_failure,
    overloaded_in_the_stream_is_overloaded,
    a_refusal_is_refused,
    ten_megabytes_in_pieces_arrive,
    ten_megabytes_in_one_event_arrive,
    an_endless_event_is_refused,
    invalid_utf8_is_replaced,
    a_web_page_is_no_answer,
    an_empty_body_is_a_cut,
    giving_up_closes_the_connection,
    answers_share_connections,
);

async fn fake(wire: Wire, reply: Reply) -> Fake {
    Fake::start(Script::always(wire, reply)).await.unwrap()
}

fn raw(bytes: impl Into<Vec<u8>>) -> Step {
    Step::Raw(Arc::from(bytes.into()))
}

async fn a_good_answer_streams_with_thinking_and_usage(wire: Wire) {
    let steps = vec![
        Step::Thinking("let me ".into()),
        Step::Thinking("see".into()),
        Step::Text("It ".into()),
        Step::Text("is \"so\" — ☃.".into()),
        Step::End,
    ];
    let fake = fake(wire, Reply::Stream(steps)).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.whole(), "It is \"so\" — ☃.");
    assert_eq!(heard.thinking, "let me see");
    assert!(matches!(
        heard.end,
        Ok(Delta::Finished {
            finish: Finish::Stop,
            ..
        })
    ));
    let usage = heard.usage();
    assert_eq!((usage.input_tokens, usage.output_tokens), (11, 7));
    assert_eq!((usage.cached_tokens, usage.thinking_tokens), (3, 2));
    assert!(
        heard.shown.contains("Started { model: Some(\"fake-1\")"),
        "{}",
        heard.shown
    );
}

async fn the_request_is_what_the_service_expects(wire: Wire) {
    let fake = fake(wire, Reply::words(&["ok"])).await;
    let mut asked = request();
    asked.sampling.temperature = Some(0.7);
    asked.sampling.max_tokens = Some(99);
    asked.sampling.stop = vec!["END".into()];
    hear(&*seat(provider(&fake, wire)), asked).await.whole();
    let seen = fake.seen();
    assert_eq!((seen.len(), seen[0].method.as_str()), (1, "POST"));
    let (seen, body) = (&seen[0], seen[0].json());
    let (system, user) = ("RULES\n\nPERSONA", "HISTORY\n\nTURN");
    match wire {
        Wire::Responses => unreachable!("only programs speak it"),
        Wire::OpenAi => {
            assert_eq!(seen.path, "/v1/chat/completions");
            assert_eq!(
                seen.header("authorization"),
                Some(format!("Bearer {KEY}").as_str())
            );
            assert_eq!(
                body,
                json!({"model": "fake-1", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.7,
                    "max_tokens": 99, "stop": ["END"],
                    "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]})
            );
        }
        Wire::Anthropic => {
            assert_eq!(seen.path, "/v1/messages");
            assert_eq!(seen.header("x-api-key"), Some(KEY));
            assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
            assert_eq!(
                body,
                json!({"model": "fake-1", "stream": true, "temperature": 0.7, "max_tokens": 99, "stop_sequences": ["END"],
                    "system": system, "messages": [{"role": "user", "content": user}]})
            );
        }
        Wire::Gemini => {
            assert_eq!(
                seen.path,
                "/v1beta/models/fake-1:streamGenerateContent?alt=sse"
            );
            assert_eq!(seen.header("x-goog-api-key"), Some(KEY));
            assert_eq!(
                body,
                json!({"systemInstruction": {"parts": [{"text": system}]},
                    "contents": [{"role": "user", "parts": [{"text": user}]}],
                    "generationConfig": {"temperature": 0.7, "maxOutputTokens": 99, "stopSequences": ["END"]}})
            );
        }
    }
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert!(!seen.path.contains(KEY));
}

async fn a_long_history_arrives_with_its_length_and_at_each_attempt(wire: Wire) {
    let busy = Reply::status_with(429, "retry-after", "0");
    let replies = vec![busy, Reply::words(&["ok"])];
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let mut config = provider(&fake, wire);
    config.attempts = Some(2);
    let mut asked = request();
    let mut history = "[Previous conversation]\nking: Why?".to_owned();
    let mut starts = Vec::new();
    for n in 0..9_000 {
        starts.push(history.len());
        history.push_str(&format!(
            "\n\nann: {n} \"quoted\" — 日本語 {}",
            "word ".repeat(40)
        ));
    }
    asked.prompt.history = history.as_str().into();
    asked.prompt.starts = starts.into();
    hear(&*seat(config), asked).await.whole();
    let told = format!("{history}\n\nTURN");
    let seen = fake.seen();
    assert_eq!(seen.len(), 2);
    for seen in seen {
        let length = seen.header("content-length").map(str::parse::<usize>);
        assert_eq!(length, Some(Ok(seen.body.len())));
        let body = seen.json();
        let said = match wire {
            Wire::Gemini => &body["contents"][0]["parts"][0]["text"],
            _ => &body["messages"].as_array().unwrap().last().unwrap()["content"],
        };
        // Blocks are joined: the service reads them so.
        let text = match said.as_array() {
            Some(blocks) => blocks.iter().filter_map(|b| b["text"].as_str()).collect(),
            None => said.as_str().unwrap().to_owned(),
        };
        assert!(text == told, "{} bytes of {}", text.len(), told.len());
    }
}

/// The reply of a service that rejects a form.
fn refusal_of_form(wire: Wire) -> Reply {
    let words = match wire {
        Wire::Gemini => "Unknown name \"responseJsonSchema\" at 'generation_config'",
        Wire::Anthropic => "output_config: Extra inputs are not permitted",
        _ => {
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
        }
    };
    Reply::Status {
        code: 400,
        headers: Vec::new(),
        body: Some(wire.error_body(400, words)),
    }
}

async fn a_refused_form_is_asked_for_less_strictly_from_then_on(wire: Wire) {
    let word = || Reply::words(&["Vote: yes"]);
    let replies = vec![refusal_of_form(wire), refusal_of_form(wire), word(), word()];
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let mut asked = request();
    asked.schema = Some(
        json!({"type": "object", "additionalProperties": false, "required": ["vote"],
        "properties": {"vote": {"type": "string"}}}),
    );
    let backend = seat(provider(&fake, wire));
    assert_eq!(hear(&*backend, asked.clone()).await.whole(), "Vote: yes");
    assert_eq!(hear(&*backend, asked).await.whole(), "Vote: yes");
    let seen = fake.seen();
    assert_eq!(seen.len(), 4, "asked three times, then once");
    let form = |at: usize| {
        let body = seen[at].json();
        match wire {
            Wire::Gemini => body["generationConfig"]["responseMimeType"].clone(),
            Wire::Anthropic => body["output_config"].clone(),
            _ => body["response_format"]["type"].clone(),
        }
    };
    if wire == Wire::OpenAi {
        assert_eq!(
            [form(0), form(1)],
            [json!("json_schema"), json!("json_object")]
        );
    }
    for at in [2, 3] {
        assert!(form(at).is_null(), "{}", form(at));
        assert!(seen[at].json().to_string().contains("JSON schema allows"));
    }
}

async fn a_refused_schema_of_the_user_takes_the_schema_from_no_other_request(wire: Wire) {
    let word = || Reply::words(&["Vote: yes"]);
    let replies = vec![refusal_of_form(wire), refusal_of_form(wire), word(), word()];
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let backend = seat(provider(&fake, wire));
    let mut asked = request();
    asked.schema = Some(json!({"type": "object", "properties": {"n": {"pattern": "^x"}}}));
    asked.schema_of_user = true;
    assert_eq!(hear(&*backend, asked).await.whole(), "Vote: yes");
    let mut own = request();
    own.schema = Some(json!({"type": "object", "properties": {"vote": {"type": "string"}}}));
    assert_eq!(hear(&*backend, own).await.whole(), "Vote: yes");
    let seen = fake.seen();
    assert_eq!(seen.len(), 4, "asked three times, then once");
    let last = seen[3].json();
    let schema = match wire {
        Wire::Gemini => &last["generationConfig"]["responseJsonSchema"],
        Wire::Anthropic => &last["output_config"]["format"]["schema"],
        _ => &last["response_format"]["json_schema"]["schema"],
    };
    assert!(schema["properties"]["vote"].is_object(), "{last}");
}

async fn refused_files_are_not_sent_to_the_model_again_and_others_are(wire: Wire) {
    let refusal = Reply::Status {
        code: 400,
        headers: Vec::new(),
        body: Some(wire.error_body(400, "this model does not support image input")),
    };
    let word = || Reply::words(&["Seen."]);
    let replies = vec![refusal, word(), word(), word(), word()];
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let backend = seat(provider(&fake, wire));
    let picture = |last: u8| {
        let bytes = [&b"\x89PNG\r\n\x1a\n"[..], &[last]].concat();
        Attachment::new("shot.png", bytes).unwrap()
    };
    let (one, two) = (picture(1), picture(2));
    for files in [vec![one.clone()], vec![two.clone(), one], vec![two]] {
        let mut asked = request();
        asked.attachments = files;
        assert_eq!(hear(&*backend, asked).await.whole(), "Seen.");
    }
    let has = |body: serde_json::Value| body.to_string().contains("iVBORw0KGg");
    let sent: Vec<bool> = fake.seen().iter().map(|seen| has(seen.json())).collect();
    assert_eq!(sent, [true, false, false, true]);
    let told = fake.seen()[2].json().to_string();
    assert!(told.contains("You cannot see shot.png"), "{told}");
}

async fn another_refusal_is_not_taken_for_one_of_the_form(wire: Wire) {
    let reply = Reply::Status {
        code: 400,
        headers: Vec::new(),
        body: Some(wire.error_body(400, "max_tokens is too large")),
    };
    let fake = fake(wire, reply).await;
    let mut asked = request();
    asked.schema = Some(json!({"type": "object"}));
    let heard = hear(&*seat(provider(&fake, wire)), asked).await;
    assert_eq!(heard.failure().kind, FailureKind::Invalid);
    assert_eq!(fake.seen().len(), 1);
}

async fn a_schema_is_sent_and_words_around_the_answer_are_kept(wire: Wire) {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["vote"],
        "properties": {"vote": {"type": "string", "enum": ["yes", "no"]}}});
    let said = "Sure:\n```json\n{\"vote\": \"yes\",}\n```";
    let fake = fake(wire, Reply::words(&[said])).await;
    let mut asked = request();
    asked.schema = Some(schema.clone());
    let heard = hear(&*seat(provider(&fake, wire)), asked).await;
    assert_eq!(heard.whole(), said, "the reader of the core reads it");
    assert_eq!(fake.seen().len(), 1);
    let body = fake.seen()[0].json();
    let sent = match wire {
        Wire::Responses => unreachable!("only programs speak it"),
        Wire::OpenAi => {
            assert_eq!(body["response_format"]["json_schema"]["strict"], true);
            &body["response_format"]["json_schema"]["schema"]
        }
        Wire::Anthropic => &body["output_config"]["format"]["schema"],
        Wire::Gemini => {
            assert_eq!(
                body["generationConfig"]["responseMimeType"],
                "application/json"
            );
            &body["generationConfig"]["responseJsonSchema"]
        }
    };
    assert_eq!(sent, &schema);
}

async fn delays_between_pieces_do_no_harm(wire: Wire) {
    let fake = fake(wire, Reply::paced(20, Duration::from_millis(3))).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.whole(), " token".repeat(20));
}

async fn bytes_one_by_one_do_no_harm(wire: Wire) {
    let bytes = wire.opening() + &wire.text("Größe ☃") + &wire.text("!") + &wire.ending(false, "");
    let steps = bytes.bytes().map(|b| raw([b])).collect();
    let fake = fake(wire, Reply::Stream(steps)).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.whole(), "Größe ☃!");
    assert_eq!(heard.usage().output_tokens, 7);
}

async fn the_token_limit_is_told(wire: Wire) {
    let fake = fake(
        wire,
        Reply::Stream(vec![Step::Text("half".into()), Step::EndAtLength]),
    )
    .await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.whole(), "half");
    assert!(matches!(
        heard.end,
        Ok(Delta::Finished {
            finish: Finish::Length,
            ..
        })
    ));
}

async fn status_401_is_auth_and_the_echoed_key_is_hidden(wire: Wire) {
    let body = wire.error_body(
        401,
        &format!("Incorrect API key provided: {KEY}. Find yours elsewhere."),
    );
    let reply = Reply::Status {
        code: 401,
        headers: Vec::new(),
        body: Some(body),
    };
    let fake = fake(wire, reply).await;
    let mut config = provider(&fake, wire);
    config.attempts = Some(3);
    let heard = hear(&*seat(config), request()).await;
    let failure = heard.failure();
    assert_eq!(failure.kind, FailureKind::Auth);
    assert!(
        failure
            .message
            .contains("Incorrect API key provided: [key]."),
        "{failure}"
    );
    assert!(failure.hint().contains("SVC_KEY"), "{}", failure.hint());
    assert!(!heard.shown.contains(KEY), "{}", heard.shown);
    assert_eq!(fake.seen().len(), 1, "a wrong key is not tried again");
}

async fn status_429_waits_as_asked_and_is_asked_again(wire: Wire) {
    let replies = vec![
        Reply::status_with(429, "retry-after", "0"),
        Reply::words(&["at last"]),
    ];
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let mut config = provider(&fake, wire);
    config.attempts = Some(2);
    let heard = hear(&*seat(config), request()).await;
    assert_eq!(heard.whole(), "at last");
    assert_eq!(heard.retries.len(), 1);
    assert_eq!(heard.retries[0].kind, FailureKind::RateLimit);
    assert_eq!(heard.retries[0].retry_after, Some(Duration::ZERO));
}

async fn status_429_for_good_is_a_rate_limit(wire: Wire) {
    let fake = fake(wire, Reply::status_with(429, "retry-after", "7")).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    let failure = heard.failure();
    assert_eq!(
        (failure.kind, failure.retry_after),
        (FailureKind::RateLimit, Some(Duration::from_secs(7)))
    );
    assert!(
        failure.message.contains("the fake server says no"),
        "{failure}"
    );
}

async fn status_500_is_overloaded(wire: Wire) {
    let fake = fake(wire, Reply::status(500)).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.failure().kind, FailureKind::Overloaded);
}

async fn status_529_is_overloaded(wire: Wire) {
    let replies = vec![
        Reply::status(529),
        Reply::status(503),
        Reply::words(&["up again"]),
    ];
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let mut config = provider(&fake, wire);
    config.attempts = Some(3);
    let heard = hear(&*seat(config), request()).await;
    assert_eq!(heard.whole(), "up again");
    assert!(
        heard
            .retries
            .iter()
            .all(|f| f.kind == FailureKind::Overloaded)
    );
    assert_eq!(heard.retries.len(), 2);
}

async fn status_400_404_413_422_are_invalid_and_not_asked_again(wire: Wire) {
    for code in [400, 404, 413, 422] {
        let fake = fake(wire, Reply::status(code)).await;
        let mut config = provider(&fake, wire);
        config.attempts = Some(3);
        let heard = hear(&*seat(config), request()).await;
        assert_eq!(heard.failure().kind, FailureKind::Invalid, "{code}");
        assert_eq!(fake.seen().len(), 1, "{code}");
    }
}

async fn a_redirect_is_not_followed(wire: Wire) {
    let other = fake(wire, Reply::words(&["stolen"])).await;
    let fake = fake(wire, Reply::status_with(307, "location", &other.url())).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.failure().kind, FailureKind::Invalid);
    assert!(
        heard.failure().hint().contains("base_url"),
        "{}",
        heard.failure().hint()
    );
    assert_eq!(other.opened(), 0, "the key went nowhere else");
}

async fn a_hang_up_before_the_status_is_a_crash(wire: Wire) {
    let fake = fake(wire, Reply::Hangup).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.failure().kind, FailureKind::Crashed);
}

async fn nobody_listens_is_missing(wire: Wire) {
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let fake = fake(wire, Reply::Hangup).await;
    let mut config = provider(&fake, wire);
    config.base_url = Some(format!("http://{gone}"));
    let heard = hear(&*seat(config), request()).await;
    assert_eq!(heard.failure().kind, FailureKind::Missing);
    assert!(
        heard.failure().message.contains(&gone.to_string()),
        "{}",
        heard.failure()
    );
}

async fn a_cut_keeps_the_text(wire: Wire) {
    let fake = fake(
        wire,
        Reply::Stream(vec![Step::Text("half an".into()), Step::Cut]),
    )
    .await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.text, "half an");
    assert_eq!(heard.failure().kind, FailureKind::Decode);
    assert!(
        heard.failure().message.contains("cut"),
        "{}",
        heard.failure()
    );
}

async fn a_cut_is_asked_again_and_the_text_begins_anew(wire: Wire) {
    let replies = vec![
        Reply::Stream(vec![Step::Text("half an".into()), Step::Cut]),
        Reply::words(&["a whole"]),
    ];
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let mut config = provider(&fake, wire);
    config.attempts = Some(2);
    let heard = hear(&*seat(config), request()).await;
    assert_eq!(heard.whole(), "a whole");
    assert_eq!(heard.retries.len(), 1);
}

async fn an_end_without_end_mark_is_a_cut(wire: Wire) {
    let fake = fake(wire, Reply::Stream(vec![Step::Text("half an".into())])).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(
        (heard.text.as_str(), heard.failure().kind),
        ("half an", FailureKind::Decode)
    );
}

async fn silence_before_the_status_is_a_timeout(wire: Wire) {
    let fake = fake(wire, Reply::Silence).await;
    let mut asked = request();
    asked.deadlines.first = Duration::from_millis(200);
    let heard = hear(&*seat(provider(&fake, wire)), asked).await;
    assert_eq!(heard.failure().kind, FailureKind::Timeout);
    fake.until_closed(1).await;
}

async fn a_stalled_stream_is_a_timeout_and_closes_the_connection(wire: Wire) {
    let fake = fake(
        wire,
        Reply::Stream(vec![Step::Text("begun".into()), Step::Stall]),
    )
    .await;
    let mut asked = request();
    asked.deadlines.idle = Duration::from_millis(200);
    let heard = hear(&*seat(provider(&fake, wire)), asked).await;
    assert_eq!(
        (heard.text.as_str(), heard.failure().kind),
        ("begun", FailureKind::Timeout)
    );
    fake.until_closed(1).await;
}

async fn a_malformed_event_is_one_notice(wire: Wire) {
    let bad = raw(
        "data: {\"choices\": [}\n\ndata: not json\n\nevent: content_block_delta\ndata: [1,\n\n",
    );
    let steps = vec![
        Step::Text("a".into()),
        bad,
        Step::Text("b".into()),
        Step::End,
    ];
    let fake = fake(wire, Reply::Stream(steps)).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.whole(), "ab");
    assert_eq!(heard.notices.len(), 1, "{:?}", heard.notices);
}

async fn only_malformed_events_are_a_decode_failure(wire: Wire) {
    let fake = fake(wire, Reply::Stream(vec![raw("data: {{{\n\n".repeat(50))])).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.failure().kind, FailureKind::Decode);
    assert!(
        heard.failure().message.contains("50 of its events"),
        "{}",
        heard.failure()
    );
}

async fn overloaded_in_the_stream_is_overloaded(wire: Wire) {
    let fake = fake(
        wire,
        Reply::Stream(vec![Step::Text("begun".into()), Step::Overloaded]),
    )
    .await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(
        (heard.text.as_str(), heard.failure().kind),
        ("begun", FailureKind::Overloaded)
    );
    assert!(
        heard.failure().message.contains("the engine is overloaded"),
        "{}",
        heard.failure()
    );
}

async fn a_refusal_is_refused(wire: Wire) {
    let fake = fake(wire, Reply::Stream(vec![Step::Refuse])).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.failure().kind, FailureKind::Refused);
}

async fn ten_megabytes_in_pieces_arrive(wire: Wire) {
    let piece = "x".repeat(1 << 14);
    let mut steps = vec![Step::Text(piece); 640];
    steps.push(Step::End);
    let fake = fake(wire, Reply::Stream(steps)).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.whole().len(), 10 << 20);
}

async fn ten_megabytes_in_one_event_arrive(wire: Wire) {
    let fake = fake(
        wire,
        Reply::Stream(vec![Step::Text("x".repeat(10 << 20)), Step::End]),
    )
    .await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.whole().len(), 10 << 20);
}

async fn an_endless_event_is_refused(wire: Wire) {
    let block: Arc<[u8]> = Arc::from(vec![b'x'; 1 << 20]);
    let mut steps = vec![raw("data: ")];
    steps.extend((0..40).map(|_| Step::Raw(Arc::clone(&block))));
    let fake = fake(wire, Reply::Stream(steps)).await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.failure().kind, FailureKind::Decode);
    assert!(
        heard.failure().message.contains("32 MiB"),
        "{}",
        heard.failure()
    );
}

async fn invalid_utf8_is_replaced(wire: Wire) {
    let mut event = wire.text("a@b").into_bytes();
    let at = event.iter().position(|b| *b == b'@').unwrap();
    event[at] = 0xFF;
    let fake = fake(
        wire,
        Reply::Stream(vec![Step::Text("".into()), raw(event), Step::End]),
    )
    .await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.whole(), "a\u{FFFD}b");
}

async fn a_web_page_is_no_answer(wire: Wire) {
    let page = b"<html>log in to the hotel's network</html>";
    let fake = fake(
        wire,
        Reply::Body {
            mime: "text/html".into(),
            body: Arc::from(page.as_slice()),
        },
    )
    .await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.failure().kind, FailureKind::Invalid);
    assert!(
        heard.failure().hint().contains("base_url"),
        "{}",
        heard.failure().hint()
    );
}

async fn an_empty_body_is_a_cut(wire: Wire) {
    let body = Arc::from(&b""[..]);
    let fake = fake(
        wire,
        Reply::Body {
            mime: "text/event-stream".into(),
            body,
        },
    )
    .await;
    let heard = hear(&*seat(provider(&fake, wire)), request()).await;
    assert_eq!(heard.failure().kind, FailureKind::Decode);
}

async fn giving_up_closes_the_connection(wire: Wire) {
    use futures::StreamExt;
    let fake = fake(
        wire,
        Reply::Stream(vec![Step::Text("begun".into()), Step::Stall]),
    )
    .await;
    let backend = seat(provider(&fake, wire));
    let mut deltas = backend.ask(request());
    while !matches!(deltas.next().await, Some(Ok(Delta::Text { .. }))) {}
    assert_eq!((fake.opened(), fake.closed()), (1, 0));
    drop(deltas);
    fake.until_closed(1).await;
}

async fn answers_share_connections(wire: Wire) {
    let fake = fake(wire, Reply::flood(wire, 10)).await;
    let backend = seat(provider(&fake, wire));
    for _ in 0..5 {
        hear(&*backend, request()).await.whole();
    }
    assert!(
        fake.opened() < 5,
        "{} connections for 5 answers, one after another",
        fake.opened()
    );
}

/// An incomplete token count is not a count: the reservation is charged instead, and no report is below the bill.
#[tokio::test]
async fn a_count_without_the_whole_answer_counts_nothing() {
    let data = |value: serde_json::Value| format!("data: {value}\n\n");
    let openai = |first: serde_json::Value, last: serde_json::Value| {
        let choice = |delta: serde_json::Value, end: serde_json::Value| json!([{"index": 0, "delta": delta, "finish_reason": end}]);
        data(json!({"choices": choice(json!({"content": "long "}), json!(null)), "usage": first}))
            + &data(json!({"choices": choice(json!({"content": "words"}), json!(null))}))
            + &data(json!({"choices": choice(json!({}), json!("stop")), "usage": last}))
            + "data: [DONE]\n\n"
    };
    let anthropic = |last: serde_json::Value| {
        Wire::Anthropic.opening()
            + &Wire::Anthropic.text("long words")
            + &data(
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last}),
            )
            + &data(json!({"type": "message_stop"}))
    };
    let gemini = |first: serde_json::Value, last: serde_json::Value| {
        let parts = |text: &str| json!({"role": "model", "parts": [{"text": text}]});
        data(json!({"candidates": [{"content": parts("long ")}], "usageMetadata": first}))
            + &data(
                json!({"candidates": [{"content": parts("words"), "finishReason": "STOP"}], "usageMetadata": last}),
            )
    };
    let none = || json!(null);
    let whole = || json!({"prompt_tokens": 11, "completion_tokens": 7});
    let counted = || json!({"promptTokenCount": 11, "candidatesTokenCount": 7});
    for (what, wire, text, used) in [
        (
            "both sides",
            Wire::OpenAi,
            openai(none(), whole()),
            Some((11, 7)),
        ),
        (
            "a total for the missing side",
            Wire::OpenAi,
            openai(none(), json!({"prompt_tokens": 11, "total_tokens": 18})),
            Some((11, 7)),
        ),
        (
            "a first count and a last",
            Wire::OpenAi,
            openai(
                json!({"prompt_tokens": 11, "completion_tokens": 1}),
                whole(),
            ),
            Some((11, 7)),
        ),
        (
            "no answer",
            Wire::OpenAi,
            openai(none(), json!({"prompt_tokens": 86})),
            None,
        ),
        (
            "null for the answer",
            Wire::OpenAi,
            openai(
                none(),
                json!({"prompt_tokens": 86, "completion_tokens": null}),
            ),
            None,
        ),
        (
            "zero for the answer",
            Wire::OpenAi,
            openai(none(), json!({"prompt_tokens": 86, "completion_tokens": 0})),
            None,
        ),
        (
            "all zero",
            Wire::OpenAi,
            openai(
                none(),
                json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
            ),
            None,
        ),
        (
            "only a total",
            Wire::OpenAi,
            openai(none(), json!({"total_tokens": 99})),
            None,
        ),
        (
            "a total below its part",
            Wire::OpenAi,
            openai(none(), json!({"prompt_tokens": 9, "total_tokens": 3})),
            None,
        ),
        (
            "only a first count",
            Wire::OpenAi,
            openai(whole(), none()),
            None,
        ),
        (
            "both sides",
            Wire::Anthropic,
            anthropic(json!({"output_tokens": 7})),
            Some((11, 7)),
        ),
        (
            "only the opening count",
            Wire::Anthropic,
            anthropic(none()),
            None,
        ),
        (
            "an ending count of nothing",
            Wire::Anthropic,
            anthropic(json!({})),
            None,
        ),
        (
            "zero at the end",
            Wire::Anthropic,
            anthropic(json!({"output_tokens": 0})),
            None,
        ),
        (
            "both sides",
            Wire::Gemini,
            gemini(none(), counted()),
            Some((11, 7)),
        ),
        (
            "a total for the missing side",
            Wire::Gemini,
            gemini(
                none(),
                json!({"promptTokenCount": 11, "totalTokenCount": 18}),
            ),
            Some((11, 7)),
        ),
        (
            "only the prompt",
            Wire::Gemini,
            gemini(none(), json!({"promptTokenCount": 11})),
            None,
        ),
        (
            "the prompt and thoughts",
            Wire::Gemini,
            gemini(
                none(),
                json!({"promptTokenCount": 11, "thoughtsTokenCount": 5}),
            ),
            None,
        ),
        (
            "only a first count",
            Wire::Gemini,
            gemini(counted(), none()),
            None,
        ),
    ] {
        let fake = fake(wire, Reply::Stream(vec![raw(text)])).await;
        let heard = hear(&*seat(provider(&fake, wire)), request()).await;
        assert_eq!(heard.whole(), "long words", "{wire:?}: {what}");
        let Ok(Delta::Finished { usage, .. }) = &heard.end else {
            panic!("{wire:?}: {what}: {:?}", heard.end);
        };
        let tokens = usage.map(|usage| (usage.input_tokens, usage.output_tokens));
        assert_eq!(tokens, used, "{wire:?}: {what}");
    }
}
