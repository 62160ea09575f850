//! The council as a model, through the real program: hand-written requests to the OpenAI and Anthropic APIs.
//! `tests/clients/run` tests third-party clients.

use crate::support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::Duration;
use support::Home;
use support::served::{Served, TOKEN, bearer, events, named, user};

/// Creates two members that answer.
fn council() -> Home {
    let said = |text: &str| json!({"runs": [[{"text": text}]]});
    Home::scripted(&[("ann", said("Spaces.")), ("bob", said("Tabs."))])
}

#[test]
fn without_a_choice_both_faces_are_served() {
    let home = council();
    let served = Served::start(&home, &[], 2);
    assert!(served.urls[0].ends_with("/mcp"), "{:?}", served.urls);
    assert!(served.urls[1].ends_with("/v1"), "{:?}", served.urls);
    assert_eq!(
        served.send("GET", "/v1/models", &bearer(), &Value::Null).0,
        200
    );
    let only = Served::start(&home, &["--mcp"], 1);
    assert_eq!(
        only.send("GET", "/v1/models", &bearer(), &Value::Null).0,
        404
    );
    let only = Served::models(&home);
    assert_eq!(only.send("POST", "/mcp", &bearer(), &json!({})).0, 404);
}

#[test]
fn nobody_gets_in_without_the_token_or_from_another_page() {
    let home = council();
    let served = Served::models(&home);
    let right = bearer();
    for (headers, status) in [
        (String::new(), 401),
        ("Authorization: Bearer 0123456789abcdeF\r\n".to_owned(), 401),
        (format!("{right}Origin: http://evil.example\r\n"), 403),
        (format!("{right}Origin: null\r\n"), 403),
        (right.clone(), 200),
    ] {
        let (got, body) = served.send("GET", "/v1/models", &headers, &Value::Null);
        assert_eq!(got, status, "{headers}{body}");
        let body: Value = serde_json::from_str(&body).expect("JSON, as clients expect");
        assert_eq!(
            body["error"]["message"].is_string(),
            status != 200,
            "{body}"
        );
    }
    for (method, path, status) in [
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/models", 405),
        ("GET", "/v1/models/kd/ask", 200),
        ("GET", "/v1/models/gpt-9", 404),
        ("POST", "/v1/completions", 404),
        ("GET", "/v1/../etc/passwd", 404),
    ] {
        assert_eq!(
            served.send(method, path, &right, &Value::Null).0,
            status,
            "{path}"
        );
    }
    // No member was asked.
    assert_eq!(home.threads().len(), 0);
}

#[test]
fn an_answer_names_who_said_what_and_its_conversation_goes_on() {
    let home = council();
    let served = Served::models(&home);
    let (status, first) =
        served.chat(&json!({"model": "kd/ask", "messages": [user("Tabs or spaces?")]}));
    assert_eq!(status, 200, "{first}");
    let content = first["choices"][0]["message"]["content"]
        .as_str()
        .expect("text");
    assert_eq!(content, "## ann\n\nSpaces.\n\n## bob\n\nTabs.", "{first}");
    assert_eq!(first["choices"][0]["finish_reason"], "stop");
    assert_eq!(first["kd"]["answers"].as_array().map(Vec::len), Some(2));
    let talk = |answer: &str, question: &str| {
        let said = json!({"role": "assistant", "content": answer});
        json!({"model": "kd/ask", "messages": [user("Tabs or spaces?"), said, user(question)]})
    };
    // Clients trim what they keep.
    let (_, second) = served.chat(&talk(&format!("{content}\n"), "Why?"));
    assert_eq!(second["kd"]["thread"], first["kd"]["thread"]);
    // The same point again, and an unknown conversation, get new threads.
    let (_, third) = served.chat(&talk(content, "Why?"));
    let (_, other) = served.chat(&talk("Neither.", "Why?"));
    let threads = [&second, &third, &other].map(|said| said["kd"]["thread"].to_string());
    assert!(threads[0] != threads[1] && threads[1] != threads[2] && threads[0] != threads[2]);
    let shown = home.run(&["show", other["kd"]["thread"].as_str().expect("an id")]);
    assert!(shown.out.contains("| Neither."), "{}", shown.out);
}

#[test]
fn a_stream_tells_progress_as_reasoning_and_then_the_answer() {
    let said = json!({"runs": [[{"text": "Spa"}, {"text": "ces."}]]});
    let home = Home::scripted(&[("ann", said)]);
    let served = Served::models(&home);
    let request = json!({"model": "kd/ask", "messages": [user("Tabs or spaces?")], "stream": true,
        "stream_options": {"include_usage": true}});
    let (status, text) = served.send("POST", "/v1/chat/completions", &bearer(), &request);
    assert_eq!(status, 200, "{text}");
    let events = events(&text);
    let deltas = |name: &str| -> String {
        let of = events
            .iter()
            .filter_map(|e| e["choices"][0]["delta"][name].as_str());
        of.collect()
    };
    assert_eq!(deltas("content"), "Spaces.");
    assert!(deltas("reasoning_content").contains("asking ann"), "{text}");
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let last = &events[events.len() - 1];
    assert!(last["usage"]["total_tokens"].is_u64(), "{last}");
    let end = &events[events.len() - 2];
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
    assert!(end["kd"]["thread"].is_string(), "{end}");
    let ids: Vec<_> = events.iter().map(|e| &e["id"]).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
}

/// Returns the text of a streamed answer, the summary of the council behind it, and whether a thought came after its first
/// piece of text.
fn streamed(path: &str, text: &str) -> (String, Value, bool) {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let kd = events
        .iter()
        .find_map(|event| event.get("kd").or(event["response"].get("kd")));
    let kd = kd.unwrap_or_else(|| panic!("{path}: {text}")).clone();
    let (mut whole, mut late) = (String::new(), false);
    for event in &events {
        let (piece, thought) = match path {
            "/v1/chat/completions" => {
                let delta = &event["choices"][0]["delta"];
                (&delta["content"], delta["reasoning_content"].is_string())
            }
            "/v1/responses" => match event["type"].as_str() {
                Some("response.output_text.delta") => (&event["delta"], false),
                Some("response.reasoning_summary_text.delta") => (&Value::Null, true),
                _ => (&Value::Null, false),
            },
            _ => (
                &event["delta"]["text"],
                event["delta"]["thinking"].is_string(),
            ),
        };
        late |= thought && !whole.is_empty();
        whole += piece.as_str().unwrap_or_default();
    }
    (whole, kd, late)
}

#[test]
fn a_streamed_answer_of_every_model_is_the_whole_one_over_every_api() {
    let home = support::council::served();
    let served = Served::models(&home);
    for model in [
        "ask",
        "ask:ann",
        "think",
        "deliberate",
        "small",
        "standard",
        "reasoning",
        "diverse",
        "vote",
    ] {
        for (path, request) in [
            (
                "/v1/chat/completions",
                json!({"messages": [user("Tabs or spaces?")]}),
            ),
            ("/v1/responses", json!({"input": "Tabs or spaces?"})),
            (
                "/v1/messages",
                json!({"max_tokens": 64, "messages": [user("Tabs or spaces?")], "thinking": {"type": "adaptive"}}),
            ),
        ] {
            let mut request = request;
            request["model"] = format!("kd/{model}").into();
            request["stream"] = true.into();
            let (status, text) = served.send("POST", path, &bearer(), &request);
            assert_eq!(status, 200, "{model} {path}: {text}");
            let (text, kd, late) = streamed(path, &text);
            let whole = kd["answer"].as_str().expect("an answer");
            assert_eq!(text, whole, "{model} {path}");
            assert!(
                !text.starts_with('{') && !text.contains("interrupted"),
                "{model} {path}: {text}"
            );
            assert!(!late, "{model} {path}: a thought after the text");
            let deliberated = !model.starts_with("ask") && model != "think";
            assert_eq!(kd.get("verdict").is_some(), deliberated, "{model}: {kd}");
        }
    }
}

#[test]
fn an_attempt_that_breaks_off_is_followed_by_the_whole_answer_and_its_thread_goes_on() {
    // The first attempt sends something and breaks off; only a service is retried.
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("it listens");
    let url = format!("http://{}", server.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for (n, stream) in server.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !String::from_utf8_lossy(&request).contains("\r\n\r\n") {
                let n = stream.read(&mut piece).expect("a request");
                request.extend_from_slice(&piece[..n]);
            }
            let chunk = |text: &str| {
                let data = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
                format!("data: {data}\n\n")
            };
            let end = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
            let body = match n {
                0 => chunk("bad start"),
                _ => chunk("good answer") + end + "\n\ndata: [DONE]\n\n",
            };
            // The first body is shorter than its stated length.
            let length = if n == 0 { body.len() + 100 } else { body.len() };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    let home = Home::new(&json!({
        "agents": {"ann": {"backend": "svc"}},
        "council": {"members": ["ann"], "conclude": false},
        "providers": {"svc": {"base_url": url, "model": "m"}},
    }));
    let served = Served::models(&home);
    let ask = |messages: Value| {
        let request = json!({"model": "kd/ask", "messages": messages, "stream": true});
        let (_, text) = served.send("POST", "/v1/chat/completions", &bearer(), &request);
        let events = events(&text);
        let pieces = events
            .iter()
            .filter_map(|e| e["choices"][0]["delta"]["content"].as_str());
        let content: String = pieces.collect();
        let thread = events.last().expect("an event")["kd"]["thread"].clone();
        (content, thread)
    };
    let (content, thread) = ask(json!([user("hi")]));
    assert_eq!(content.matches("good answer").count(), 1, "{content}");
    assert!(
        content.ends_with("the answer:)*\n\ngood answer"),
        "{content}"
    );
    let said = json!({"role": "assistant", "content": content});
    let (_, next) = ask(json!([user("hi"), said, user("And?")]));
    assert_eq!(next, thread);
}

#[test]
fn a_long_conversation_and_a_long_name_have_a_bound() {
    let home = council();
    let served = Served::models(&home);
    let ask = |model: &str, text: &str| {
        served
            .chat(&json!({"model": model, "messages": [user(text)]}))
            .0
    };
    assert_eq!(ask("kd/ask", &"x".repeat(3 << 20)), 200);
    assert_eq!(ask("kd/ask", &"x".repeat(5 << 20)), 400);
    assert_eq!(ask(&format!("kd/ask:{}", "ann,".repeat(20_000)), "hi"), 404);
    let null = json!({"model": "kd/ask", "messages": [user("hi")], "stream": null, "stream_options": {"include_usage": null}});
    assert_eq!(served.chat(&null).0, 200);
    assert_eq!(
        served
            .send("GET", "/v1/models/kd/ask:ann", &bearer(), &Value::Null)
            .0,
        200
    );
    let (status, body) = served.send("GET", "/v1/models/%FF", &bearer(), &Value::Null);
    assert_eq!(status, 404);
    assert!(body.contains("\"error\""), "{body}");
}

#[test]
fn failures_have_the_shape_of_the_wire() {
    let failure = json!({"kind": "auth", "message": "the key was refused"});
    let home = Home::scripted(&[("eve", json!({"runs": [[{"fail": failure}]]}))]);
    let served = Served::models(&home);
    let ask = |more: Value| {
        let mut request = json!({"model": "kd/ask", "messages": [user("hi")]});
        for (key, value) in more.as_object().into_iter().flatten() {
            request[key] = value.clone();
        }
        request
    };
    for (request, status, word) in [
        (ask(json!({})), 502, "the key was refused"),
        (ask(json!({"model": "gpt-9"})), 404, "kd/deliberate"),
        (ask(json!({"model": "kd/ask:nobody"})), 422, "nobody"),
        (ask(json!({"n": 3})), 400, "`n` must be 1"),
        (json!([]), 400, "no chat completion"),
    ] {
        let (got, body) = served.chat(&request);
        assert_eq!(got, status, "{body}");
        let message = body["error"]["message"].as_str().expect("a message");
        assert!(message.contains(word), "{body}");
    }
    let (status, text) = served.send(
        "POST",
        "/v1/chat/completions",
        &bearer(),
        &ask(json!({"stream": true})),
    );
    assert_eq!(status, 200);
    let last = events(&text).pop().expect("an event");
    assert!(
        last["error"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("refused")),
        "{last}"
    );
}

#[test]
fn anthropics_wire_tells_answers_streams_and_failures() {
    let said = json!({"runs": [[{"text": "Spa"}, {"text": "ces."}]]});
    let failure = json!({"kind": "auth", "message": "the key was refused"});
    let home = Home::scripted(&[
        ("ann", said),
        ("eve", json!({"runs": [[{"fail": failure}]]})),
    ]);
    let served = Served::models(&home);
    let key = format!("X-Api-Key: {TOKEN}\r\nAnthropic-Version: 2023-06-01\r\n");
    let ask = |model: &str, more: Value| {
        let mut request =
            json!({"model": model, "max_tokens": 64, "messages": [user("Tabs or spaces?")]});
        for (key, value) in more.as_object().into_iter().flatten() {
            request[key] = value.clone();
        }
        served.send("POST", "/v1/messages", &key, &request)
    };
    let object = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let (status, text) = ask("kd/ask:ann", json!({}));
    assert_eq!(status, 200, "{text}");
    let whole = object(&text);
    assert_eq!(
        whole["content"],
        json!([{"type": "text", "text": "Spaces."}])
    );
    assert_eq!(whole["stop_reason"], "end_turn");
    assert_eq!(whole["kd"]["members"][0]["member"], "ann", "{whole}");
    // Thinking goes only to clients that request it: others take the first block for the answer.
    for (more, kinds) in [
        (json!({"stream": true}), &["text"][..]),
        (
            json!({"stream": true, "thinking": {"type": "enabled", "budget_tokens": 1024}}),
            &["thinking", "text"],
        ),
    ] {
        let events = named(&ask("kd/ask:ann", more).1);
        let of = |kind: &str| {
            events
                .iter()
                .filter(|e| e["type"] == kind)
                .cloned()
                .collect::<Vec<_>>()
        };
        let began: Vec<_> = of("content_block_start")
            .iter()
            .map(|e| e["content_block"]["type"].clone())
            .collect();
        assert_eq!(began, kinds);
        assert_eq!(of("content_block_stop").len(), kinds.len());
        let text: String = of("content_block_delta")
            .iter()
            .filter_map(|e| e["delta"]["text"].as_str())
            .collect();
        assert_eq!(text, "Spaces.");
        let end = &of("message_delta")[0];
        assert_eq!(end["delta"]["stop_reason"], "end_turn");
        assert!(end["kd"]["thread"].is_string(), "{end}");
        assert_eq!(events.last().expect("an event")["type"], "message_stop");
    }
    for (model, more, status, kind) in [
        ("kd/ask:eve", json!({}), 502, "api_error"),
        ("gpt-9", json!({}), 404, "not_found_error"),
        ("kd/ask:nobody", json!({}), 422, "invalid_request_error"),
        (
            "kd/ask",
            json!({"tool_choice": {"type": "any"}}),
            400,
            "invalid_request_error",
        ),
    ] {
        let (got, text) = ask(model, more);
        assert_eq!(
            (got, &object(&text)["error"]["type"]),
            (status, &json!(kind)),
            "{text}"
        );
    }
    let failed = named(&ask("kd/ask:eve", json!({"stream": true})).1);
    let last = failed.last().expect("an event");
    assert!(
        last["error"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("refused")),
        "{last}"
    );
    let wrong = served.send(
        "POST",
        "/v1/messages",
        "X-Api-Key: 0123456789abcdeF\r\n",
        &json!({}),
    );
    assert_eq!(
        (wrong.0, &object(&wrong.1)["error"]["type"]),
        (401, &json!("authentication_error"))
    );
    let listed = object(&served.send("GET", "/v1/models", &key, &Value::Null).1);
    assert_eq!(listed["first_id"], "kd/ask");
    let count = json!({"model": "kd/ask", "messages": [user("Tabs or spaces?")]});
    let (status, counted) = served.send("POST", "/v1/messages/count_tokens", &key, &count);
    assert!(
        status == 200 && object(&counted)["input_tokens"].as_u64() > Some(0),
        "{counted}"
    );
    for (more, status) in [
        (json!({"model": "kd/nope", "messages": [user("x")]}), 404),
        (json!({"model": "kd/ask", "messages": []}), 400),
    ] {
        let sent = served.send("POST", "/v1/messages/count_tokens", &key, &more);
        assert_eq!(sent.0, status, "{}", sent.1);
    }
}

#[test]
fn responses_tell_answers_streams_and_failures_and_go_on_by_their_id() {
    let said = json!({"runs": [[{"text": "Spa"}, {"text": "ces."}]]});
    let failure = json!({"kind": "auth", "message": "the key was refused"});
    let home = Home::scripted(&[
        ("ann", said),
        ("eve", json!({"runs": [[{"fail": failure}]]})),
    ]);
    let served = Served::models(&home);
    let ask = |more: Value| {
        let mut request = json!({"model": "kd/ask:ann", "input": "Tabs or spaces?"});
        for (key, value) in more.as_object().into_iter().flatten() {
            request[key] = value.clone();
        }
        served.send("POST", "/v1/responses", &bearer(), &request)
    };
    let object = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let (status, text) = ask(json!({}));
    assert_eq!(status, 200, "{text}");
    let whole = object(&text);
    assert_eq!(whole["output"][0]["content"][0]["text"], "Spaces.");
    assert_eq!(whole["status"], "completed");
    let (_, text) = ask(json!({"input": "Why?", "previous_response_id": whole["id"]}));
    let next = object(&text);
    assert_eq!(next["kd"]["thread"], whole["kd"]["thread"]);
    assert_ne!(next["id"], whole["id"]);
    // It was already continued from there.
    for id in [&whole["id"], &json!("resp_x")] {
        let (status, text) = ask(json!({"input": "Why?", "previous_response_id": id}));
        assert_eq!(
            (status, &object(&text)["error"]["param"]),
            (400, &json!("previous_response_id"))
        );
    }
    let events = named(&ask(json!({"stream": true})).1);
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], place, "{event}");
    }
    let kinds: Vec<_> = events.iter().filter_map(|e| e["type"].as_str()).collect();
    assert_eq!(kinds[0], "response.created");
    let pieces = events
        .iter()
        .filter(|e| e["type"] == "response.output_text.delta");
    let text: String = pieces.filter_map(|e| e["delta"].as_str()).collect();
    assert_eq!(text, "Spaces.");
    let thought = events
        .iter()
        .filter(|e| e["type"] == "response.reasoning_summary_text.delta");
    let thought: String = thought.filter_map(|e| e["delta"].as_str()).collect();
    assert!(thought.contains("asking ann"), "{thought}");
    let last = &events[events.len() - 1];
    assert_eq!(last["type"], "response.completed");
    let items: Vec<_> = last["response"]["output"]
        .as_array()
        .expect("items")
        .iter()
        .map(|i| &i["type"])
        .collect();
    assert_eq!(items, ["reasoning", "message"]);
    assert!(last["response"]["kd"]["thread"].is_string());
    let (status, text) = ask(json!({"model": "kd/ask:eve"}));
    assert_eq!(
        (status, &object(&text)["error"]["type"]),
        (502, &json!("api_error"))
    );
    let failed = named(&ask(json!({"model": "kd/ask:eve", "stream": true})).1);
    let last = failed.last().expect("an event");
    assert_eq!(last["type"], "response.failed");
    assert!(
        last["response"]["error"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("refused")),
        "{last}"
    );
}

#[test]
fn a_reference_to_an_item_is_the_item_and_only_what_is_stored_can_be_referred_to() {
    let said = json!({"runs": [[{"text": "Spaces."}]]});
    let home = Home::scripted(&[("ann", said)]);
    let served = Served::models(&home);
    let ask = |more: Value| {
        let mut request = json!({"model": "kd/ask", "input": [user("Tabs or spaces?")]});
        for (key, value) in more.as_object().into_iter().flatten() {
            request[key] = value.clone();
        }
        served.send("POST", "/v1/responses", &bearer(), &request)
    };
    let object = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let go_on = |answer: &Value| {
        let output = answer["output"].as_array().expect("items").iter();
        let references = output.map(|item| json!({"type": "item_reference", "id": item["id"]}));
        let input = std::iter::once(user("Tabs or spaces?"))
            .chain(references)
            .chain([user("Why?")]);
        ask(json!({"input": input.collect::<Vec<_>>()}))
    };
    let whole = object(&ask(json!({})).1);
    let streamed = named(&ask(json!({"stream": true})).1);
    let streamed = &streamed.last().expect("an end")["response"];
    for answer in [&whole, streamed] {
        assert_eq!(answer["store"], true);
        let (status, text) = go_on(answer);
        assert_eq!(status, 200, "{text}");
        let shown = home.run(&[
            "show",
            "--all",
            object(&text)["kd"]["thread"].as_str().expect("a thread"),
        ]);
        assert!(shown.out.contains("Why?"), "{}", shown.out);
    }
    // What the client does not want to be stored is not.
    let other = object(&ask(json!({"store": false})).1);
    assert_eq!(other["store"], false);
    let (status, text) = go_on(&other);
    assert!(status == 400 && text.contains("is not known"), "{text}");
    let (status, text) = ask(json!({"input": "Why?", "previous_response_id": other["id"]}));
    assert_eq!(status, 400, "{text}");
    let title = json!({"instructions": "You are a title generator.", "input": "hi"});
    assert_eq!(object(&ask(title).1)["store"], false, "a side request");
}

#[test]
fn after_a_client_left_the_conversation_goes_on_by_the_id_of_the_answer_before() {
    let half = json!([{"text": "Half "}, {"sleep_ms": 8_000}, {"text": "whole"}]);
    let said = json!({"runs": [[{"text": "Spaces."}], half, half, [{"text": "Because."}]]});
    let home = Home::scripted(&[("ann", said)]);
    let served = Served::models(&home);
    let send = |request: &Value| {
        let (status, text) = served.send("POST", "/v1/responses", &bearer(), request);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        (status, answer)
    };
    let (_, first) = send(&json!({"model": "kd/ask", "input": "Tabs or spaces?"}));
    let mut next = json!({"model": "kd/ask", "input": "Why?", "previous_response_id": first["id"]});
    for streams in [true, false] {
        next["stream"] = streams.into();
        let stream = support::until("the request is taken", || {
            // Until the server has noticed that a client left, its question is in the way.
            let mut stream = served.open("POST", "/v1/responses", &bearer(), &next);
            let mut line = [0; 12];
            let taken = if streams {
                stream.read_exact(&mut line).expect("a status");
                line.ends_with(b"200")
            } else {
                stream.set_nonblocking(true).expect("set");
                support::until("it is taken or refused", || {
                    let metrics = served.send("GET", "/metrics", &bearer(), &Value::Null).1;
                    let refused = stream.read_exact(&mut line).is_ok();
                    let taken = metrics.contains("kd_councils_running 1");
                    (taken || refused).then_some(!refused)
                })
            };
            taken.then_some(stream)
        });
        drop(stream);
        support::until("the council is interrupted", || {
            let metrics = served.send("GET", "/metrics", &bearer(), &Value::Null).1;
            metrics.contains("kd_councils_running 0").then_some(())
        });
    }
    next["stream"] = false.into();
    let (status, answer) = support::until("the thread is free", || {
        let (status, answer) = send(&next);
        (status != 400).then_some((status, answer))
    });
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["kd"]["thread"], first["kd"]["thread"]);
    assert_eq!(home.threads().len(), 1);
}

#[test]
fn names_paths_and_limits_are_taken_as_clients_send_them() {
    let home = council();
    let served = Served::models(&home);
    let chat = |path: &str, more: Value| {
        let mut request = json!({"model": "kd/ask:ann", "messages": [user("Tabs or spaces?")]});
        for (key, value) in more.as_object().into_iter().flatten() {
            request[key] = value.clone();
        }
        served.send("POST", path, &bearer(), &request)
    };
    for (path, more) in [
        ("/v1/chat/completions", json!({"model": "kd-ask:ann"})),
        ("/v1/chat/completions", json!({"model": " kd/ask "})),
        ("/v1/chat/completions/", json!({})),
        ("/v1/chat/completions", json!({"max_tokens": -1})),
        ("/v1/chat/completions", json!({"max_tokens": 512.0})),
        (
            "/v1/chat/completions",
            json!({"max_completion_tokens": 9_000_000_000_u64}),
        ),
    ] {
        let (status, text) = chat(path, more.clone());
        assert_eq!(status, 200, "{path} {more}: {text}");
    }
    for (more, param) in [
        (json!({"max_tokens": 1.5}), "max_tokens"),
        (
            json!({"messages": [{"role": "user", "content": 3}]}),
            "messages",
        ),
        (json!({"model": null}), "model"),
        (
            json!({"functions": [{"name": "x"}], "function_call": "auto"}),
            "functions",
        ),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
    ] {
        let (status, text) = chat("/v1/chat/completions", more.clone());
        let error: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            (status, &error["error"]["param"]),
            (400, &json!(param)),
            "{more}: {text}"
        );
        let words = error["error"]["message"].as_str().expect("words");
        assert!(
            !words.contains("struct") && !words.contains("enum"),
            "{words}"
        );
    }
    assert_eq!(
        served
            .send("GET", "/v1/models/kd-ask", &bearer(), &Value::Null)
            .0,
        200
    );
    assert_eq!(
        served.send("GET", "/v1/models/", &bearer(), &Value::Null).0,
        200
    );
}

#[test]
fn a_client_that_leaves_interrupts_the_council() {
    let said = json!({"runs": [[{"text": "Half "}, {"sleep_ms": 60_000}, {"text": "whole"}]]});
    let home = Home::scripted(&[("ann", said)]);
    let served = Served::models(&home);
    let request = json!({"model": "kd/ask", "messages": [user("hi")], "stream": true});
    let mut stream = served.open("POST", "/v1/chat/completions", &bearer(), &request);
    let mut seen = String::new();
    support::until("half of the answer", || {
        let mut piece = [0; 512];
        let n = stream.read(&mut piece).expect("a piece");
        seen += &String::from_utf8_lossy(&piece[..n]);
        seen.contains("Half ").then_some(())
    });
    drop(stream);
    let shown = support::until("the interrupted answer", || {
        std::thread::sleep(Duration::from_millis(20));
        let shown = home.run(&["show"]).out;
        shown.contains("interrupted").then_some(shown)
    });
    assert!(shown.contains("Half"), "{shown}");
}

#[test]
fn every_preset_and_every_model_of_the_settings_is_listed_and_answers_over_every_api() {
    let ballot = json!({"runs": [[{"text": "Spaces.\n\nVOTE: Spaces"}]]});
    let home = Home::scripted(&[
        ("ann", ballot.clone()),
        ("bob", ballot.clone()),
        ("cyd", ballot),
    ]);
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(home.config_file()).expect("read")).expect("JSON");
    config["serve"] = json!({"models": {
        "pair": {"members": ["ann", "bob"]},
        "duo": {"method": "think", "members": ["ann", "bob"]},
        "vote": {"method": "deliberate", "protocol": "sample-vote", "preset": "small"},
    }});
    std::fs::write(home.config_file(), config.to_string()).expect("written");
    let served = Served::models(&home);
    let list = |headers: &str| -> Vec<String> {
        let (_, text) = served.send("GET", "/v1/models", headers, &Value::Null);
        let list: Value = serde_json::from_str(&text).expect("JSON");
        let rows = list["data"].as_array().expect("rows").iter();
        rows.map(|row| row["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    let names = list(&bearer());
    let expected = [
        "ask",
        "think",
        "deliberate",
        "small",
        "standard",
        "reasoning",
        "diverse",
        "duo",
        "pair",
        "vote",
    ];
    assert_eq!(names, expected.map(|name| format!("kd/{name}")));
    let anthropic = format!("{}Anthropic-Version: 2023-06-01\r\n", bearer());
    assert_eq!(list(&anthropic), names);
    for name in &names {
        let path = format!("/v1/models/{name}");
        assert_eq!(served.send("GET", &path, &bearer(), &Value::Null).0, 200);
        for (path, request) in [
            (
                "/v1/chat/completions",
                json!({"messages": [user("Tabs or spaces?")]}),
            ),
            ("/v1/responses", json!({"input": "Tabs or spaces?"})),
            (
                "/v1/messages",
                json!({"max_tokens": 64, "messages": [user("Tabs or spaces?")]}),
            ),
        ] {
            let mut request = request;
            request["model"] = name.as_str().into();
            let (status, text) = served.send("POST", path, &bearer(), &request);
            assert_eq!(status, 200, "{name} {path}: {text}");
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(answer["model"], name.as_str());
            let members = answer["kd"]["members"].as_array().map(Vec::len);
            if name == "kd/pair" {
                assert_eq!(members, Some(2), "{text}");
            }
            // What the preset is, the record tells.
            if let Some(preset) = ["small", "standard", "reasoning", "diverse"]
                .into_iter()
                .find(|preset| name == &format!("kd/{preset}"))
            {
                let thread = answer["kd"]["thread"].as_str().expect("a thread");
                let why = home.run(&["why", thread]).out;
                assert!(why.contains(&format!("preset {preset}")), "{why}");
            }
        }
    }
    let unknown = json!({"model": "kd/nope", "messages": [user("x")]});
    let (status, answer) = served.chat(&unknown);
    assert_eq!(status, 404);
    let message = answer["error"]["message"].as_str().expect("words");
    assert!(
        message.contains("kd/diverse") && message.contains("kd/pair"),
        "{message}"
    );
}

#[test]
fn a_model_of_the_settings_has_a_name_of_its_own_and_known_members() {
    let home = council();
    for (models, words) in [
        (json!({"small": {}}), "is a model of `kd serve` already"),
        (json!({"ask": {}}), "is a model of `kd serve` already"),
        (
            json!({"x": {"method": "vote"}}),
            "one of ask, think, deliberate",
        ),
        (json!({"x": {"protocol": "nope"}}), "must be one of"),
        (json!({"x": {"members": ["nobody"]}}), "nobody"),
    ] {
        let mut config: Value =
            serde_json::from_slice(&std::fs::read(home.config_file()).expect("read"))
                .expect("JSON");
        config["serve"] = json!({ "models": models });
        std::fs::write(home.config_file(), config.to_string()).expect("written");
        let said = home.run(&["config", "check"]);
        assert!(said.code != Some(0), "{models}: {}{}", said.out, said.err);
        let told = format!("{}{}", said.out, said.err);
        assert!(told.contains(words), "{models}: {told}");
    }
}

#[test]
fn an_answer_that_broke_off_is_no_reason_why_nobody_answered() {
    let failure = json!({"kind": "decode", "message": "the stream was cut"});
    let broken = json!([{"text": "Half of an answer"}, {"fail": failure}]);
    let home = Home::scripted(&[("ann", json!({"runs": [broken, broken, broken, broken]}))]);
    let served = Served::models(&home);
    let request = json!({"model": "kd/ask", "messages": [user("hi")]});
    let (status, answer) = served.chat(&request);
    assert_eq!(status, 502, "{answer}");
    let words = answer["error"]["message"].as_str().expect("words");
    assert!(words.contains("ann: the stream was cut"), "{words}");
    assert!(!words.contains("Half"), "{words}");
}
