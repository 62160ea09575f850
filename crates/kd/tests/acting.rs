//! Tools of a client, through the real program: the client's requests are written by hand, the acting member is asked at
//! a loopback server that fakes its service, and advisers play scripts. `tests/clients/run` tests third-party clients.

use crate::support;

use kd_fake::{Fake, Reply, Script, Seen, Step, Wire};
use serde_json::{Value, json};
use support::Home;
use support::served::{Served, TOKEN, bearer, events, named, user};

/// The acting member's service, and a server with it and two advisers.
struct Stage {
    _runtime: tokio::runtime::Runtime,
    fake: Fake,
    served: Served,
    home: Home,
}

impl Stage {
    fn of(wire: Wire, replies: Vec<Reply>, more: Value) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let script = Script { wire, replies };
        let fake = runtime.block_on(Fake::start(script)).expect("it listens");
        let words = if wire == Wire::OpenAi {
            "openai"
        } else {
            "anthropic"
        };
        let home = Home::scripted(&[
            ("bob", json!({"runs": [[{"text": "Read b.rs first."}]]})),
            ("cyd", json!({"runs": [[{"text": "Nothing to add."}]]})),
        ]);
        let mut config: Value =
            serde_json::from_slice(&std::fs::read(home.config_file()).expect("read"))
                .expect("JSON");
        config["providers"] = json!({"svc": {"wire": words, "base_url": fake.url(), "model": "m", "prompt_cache": true}});
        config["agents"]["ann"] = json!({"backend": "svc"});
        config["council"] = json!({"members": ["bob", "ann", "cyd"]});
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        std::fs::write(home.config_file(), config.to_string()).expect("written");
        let served = Served::models(&home);
        Self {
            _runtime: runtime,
            fake,
            served,
            home,
        }
    }

    fn bodies(&self) -> Vec<Value> {
        self.fake.seen().iter().map(Seen::json).collect()
    }
}

/// An answer of the acting member's service: text, calls with their ids, and 11 tokens in and 7 out.
fn reply(wire: Wire, text: &str, calls: &[(&str, &str, &str)]) -> Reply {
    let mut bytes = wire.opening();
    if !text.is_empty() {
        bytes += &wire.text(text);
    }
    if calls.is_empty() {
        bytes += &wire.ending(false, text);
    } else if wire == Wire::OpenAi {
        let data = |value: Value| format!("data: {value}\n\n");
        for (index, (id, name, arguments)) in calls.iter().enumerate() {
            // In pieces, as services send them.
            let (head, tail) = arguments.split_at(arguments.len() / 2);
            let first = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": head}});
            let rest = json!({"index": index, "function": {"arguments": tail}});
            for piece in [first, rest] {
                bytes +=
                    &data(json!({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}));
            }
        }
        bytes +=
            &data(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
        bytes +=
            &data(json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}));
        bytes += "data: [DONE]\n\n";
    } else {
        let event = |name: &str, mut data: Value| {
            data["type"] = name.into();
            format!("event: {name}\ndata: {data}\n\n")
        };
        bytes += &event("content_block_stop", json!({"index": 0}));
        for (at, (id, name, arguments)) in calls.iter().enumerate() {
            let at = at + 1;
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            bytes += &event(
                "content_block_start",
                json!({"index": at, "content_block": block}),
            );
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            bytes += &event("content_block_delta", json!({"index": at, "delta": delta}));
            bytes += &event("content_block_stop", json!({"index": at}));
        }
        bytes += &event(
            "message_delta",
            json!({"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
        );
        bytes += &event("message_stop", json!({}));
    }
    Reply::Stream(vec![Step::Raw(bytes.into_bytes().into())])
}

/// An API that clients speak.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Api {
    Chat,
    Responses,
    Messages,
}

/// What a client made of an answer.
#[derive(Debug, Default)]
struct Heard {
    text: String,
    calls: Vec<(String, String, Value)>,
    end: String,
    input_tokens: u64,
    kd: Value,
}

impl Api {
    /// Builds a request: the steps so far, each `user`, `assistant` with calls, or `tool` with results.
    fn request(self, steps: &[Value], more: Value) -> Value {
        let mut request = json!({"model": "kd/ask"});
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        match self {
            Api::Chat => {
                request["tools"] = json!([{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": schema}}]);
                let messages = steps.iter().flat_map(|step| {
                    if let Some(text) = step["user"].as_str() {
                        return vec![user(text)];
                    }
                    if let Some(results) = step["results"].as_array() {
                        let one = |r: &Value| json!({"role": "tool", "tool_call_id": r[0], "content": r[1]});
                        return results.iter().map(one).collect();
                    }
                    let calls = step["calls"].as_array().cloned().unwrap_or_default();
                    let calls: Vec<Value> = calls.iter().map(|c| json!({"id": c[0], "type": "function", "function": {"name": c[1], "arguments": c[2].to_string()}})).collect();
                    vec![json!({"role": "assistant", "content": step["text"], "tool_calls": calls})]
                });
                request["messages"] = messages.collect();
            }
            Api::Messages => {
                request["max_tokens"] = 512.into();
                request["tools"] =
                    json!([{"name": "read", "description": "Reads.", "input_schema": schema}]);
                let messages = steps.iter().map(|step| {
                    if let Some(text) = step["user"].as_str() {
                        return user(text);
                    }
                    if let Some(results) = step["results"].as_array() {
                        let one = |r: &Value| json!({"type": "tool_result", "tool_use_id": r[0], "content": r[1]});
                        return json!({"role": "user", "content": results.iter().map(one).collect::<Vec<_>>()});
                    }
                    let calls = step["calls"].as_array().cloned().unwrap_or_default();
                    let calls = calls.iter().map(|c| json!({"type": "tool_use", "id": c[0], "name": c[1], "input": c[2]}));
                    let text = json!({"type": "text", "text": step["text"]});
                    json!({"role": "assistant", "content": std::iter::once(text).chain(calls).collect::<Vec<_>>()})
                });
                request["messages"] = messages.collect();
            }
            Api::Responses => {
                request["tools"] = json!([{"type": "function", "name": "read", "description": "Reads.", "parameters": schema}]);
                let items = steps.iter().flat_map(|step| {
                    if let Some(text) = step["user"].as_str() {
                        return vec![user(text)];
                    }
                    if let Some(results) = step["results"].as_array() {
                        let one = |r: &Value| json!({"type": "function_call_output", "call_id": r[0], "output": r[1]});
                        return results.iter().map(one).collect();
                    }
                    let calls = step["calls"].as_array().cloned().unwrap_or_default();
                    let calls = calls.iter().map(|c| json!({"type": "function_call", "call_id": c[0], "name": c[1], "arguments": c[2].to_string()}));
                    let text = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": step["text"]}]});
                    std::iter::once(text).chain(calls).collect()
                });
                request["input"] = items.collect();
            }
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            request[key] = value.clone();
        }
        request
    }

    fn path(self) -> &'static str {
        match self {
            Api::Chat => "/v1/chat/completions",
            Api::Responses => "/v1/responses",
            Api::Messages => "/v1/messages",
        }
    }

    fn send(self, served: &Served, request: &Value) -> (u16, String) {
        let headers = match self {
            Api::Messages => format!("X-Api-Key: {TOKEN}\r\nAnthropic-Version: 2023-06-01\r\n"),
            _ => bearer(),
        };
        served.send("POST", self.path(), &headers, request)
    }

    fn ask(self, served: &Served, mut request: Value, streams: bool) -> Heard {
        request["stream"] = streams.into();
        if self == Api::Chat && streams {
            request["stream_options"] = json!({"include_usage": true});
        }
        let (status, text) = self.send(served, &request);
        assert_eq!(status, 200, "{text}");
        match (self, streams) {
            (Api::Chat, true) => chat_stream(&text),
            (Api::Messages, true) => messages_stream(&text),
            (Api::Responses, true) => {
                let events = named(&text);
                let last = events.last().expect("an end");
                assert_eq!(last["type"], "response.completed", "{text}");
                let done = events
                    .iter()
                    .filter(|e| e["type"] == "response.output_item.done");
                let items: Vec<&Value> = done.map(|e| &e["item"]).collect();
                let output = last["response"]["output"].as_array().expect("items");
                assert_eq!(items, output.iter().collect::<Vec<_>>());
                for done in events
                    .iter()
                    .filter(|e| e["type"] == "response.function_call_arguments.done")
                {
                    let pieces = events.iter().filter(|e| {
                        e["type"] == "response.function_call_arguments.delta"
                            && e["item_id"] == done["item_id"]
                    });
                    let pieces: String = pieces.filter_map(|e| e["delta"].as_str()).collect();
                    assert_eq!(done["arguments"], pieces);
                }
                self.whole(&last["response"])
            }
            (_, false) => self.whole(&serde_json::from_str(&text).expect("JSON")),
        }
    }

    fn whole(self, object: &Value) -> Heard {
        let parse =
            |text: &Value| serde_json::from_str(text.as_str().expect("text")).expect("JSON");
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut heard = Heard {
            kd: object["kd"].clone(),
            ..Heard::default()
        };
        match self {
            Api::Chat => {
                let choice = &object["choices"][0];
                heard.text = word(&choice["message"]["content"]);
                heard.end = word(&choice["finish_reason"]);
                heard.input_tokens = object["usage"]["prompt_tokens"].as_u64().expect("usage");
                for call in choice["message"]["tool_calls"]
                    .as_array()
                    .into_iter()
                    .flatten()
                {
                    let function = &call["function"];
                    heard.calls.push((
                        word(&call["id"]),
                        word(&function["name"]),
                        parse(&function["arguments"]),
                    ));
                }
            }
            Api::Messages => {
                heard.end = word(&object["stop_reason"]);
                let usage = &object["usage"];
                heard.input_tokens = usage["input_tokens"].as_u64().expect("usage")
                    + usage["cache_read_input_tokens"].as_u64().unwrap_or(0);
                for block in object["content"].as_array().expect("blocks") {
                    match block["type"].as_str() {
                        Some("text") => heard.text += &word(&block["text"]),
                        _ => heard.calls.push((
                            word(&block["id"]),
                            word(&block["name"]),
                            block["input"].clone(),
                        )),
                    }
                }
            }
            Api::Responses => {
                heard.end = word(&object["status"]);
                heard.input_tokens = object["usage"]["input_tokens"].as_u64().expect("usage");
                for item in object["output"].as_array().expect("items") {
                    match item["type"].as_str() {
                        Some("message") => heard.text += &word(&item["content"][0]["text"]),
                        Some("function_call") => heard.calls.push((
                            word(&item["call_id"]),
                            word(&item["name"]),
                            parse(&item["arguments"]),
                        )),
                        _ => {}
                    }
                }
            }
        }
        heard
    }
}

fn chat_stream(text: &str) -> Heard {
    let mut message = json!({"content": "", "tool_calls": []});
    let mut object = json!({"choices": [{}]});
    for event in events(text) {
        let delta = &event["choices"][0]["delta"];
        if let Some(piece) = delta["content"].as_str() {
            message["content"] =
                (message["content"].as_str().expect("text").to_owned() + piece).into();
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let calls = message["tool_calls"].as_array_mut().expect("a list");
            assert_eq!(piece["index"], calls.len());
            calls.push(piece.clone());
        }
        if !event["choices"][0]["finish_reason"].is_null() {
            object["choices"][0]["finish_reason"] = event["choices"][0]["finish_reason"].clone();
            object["kd"] = event["kd"].clone();
        }
        if event["usage"].is_object() {
            object["usage"] = event["usage"].clone();
        }
    }
    object["choices"][0]["message"] = message;
    Api::Chat.whole(&object)
}

fn messages_stream(text: &str) -> Heard {
    let mut blocks: Vec<Value> = Vec::new();
    let mut object = json!({});
    for event in named(text) {
        match event["type"].as_str().expect("a type") {
            "content_block_start" => {
                assert_eq!(event["index"], blocks.len(), "{text}");
                blocks.push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let block = blocks.last_mut().expect("a block");
                if let Some(piece) = event["delta"]["text"].as_str() {
                    block["text"] =
                        (block["text"].as_str().expect("text").to_owned() + piece).into();
                }
                if let Some(piece) = event["delta"]["partial_json"].as_str() {
                    block["input"] = serde_json::from_str(piece).expect("JSON");
                }
            }
            "message_delta" => {
                object["stop_reason"] = event["delta"]["stop_reason"].clone();
                object["usage"] = event["usage"].clone();
                object["kd"] = event["kd"].clone();
            }
            _ => {}
        }
    }
    object["content"] = blocks.into();
    Api::Messages.whole(&object)
}

const APIS: [Api; 3] = [Api::Chat, Api::Responses, Api::Messages];

#[test]
fn calls_go_out_and_results_come_in_over_every_api() {
    for (upstream, streams) in [
        (Wire::OpenAi, true),
        (Wire::OpenAi, false),
        (Wire::Anthropic, true),
        (Wire::Anthropic, false),
    ] {
        let both = [
            ("call_a", "read", r#"{"path":"a.rs"}"#),
            ("call_b", "read", r#"{"path":"b.rs"}"#),
        ];
        let replies = APIS.iter().flat_map(|_| {
            [
                reply(upstream, "Reading.", &both),
                reply(upstream, "Done.", &[]),
            ]
        });
        let stage = Stage::of(upstream, replies.collect(), json!({}));
        for (n, api) in APIS.into_iter().enumerate() {
            let first = [json!({"user": format!("Fix it, {n}.")})];
            let heard = api.ask(&stage.served, api.request(&first, json!({})), streams);
            assert_eq!(heard.text, "Reading.", "{api:?}");
            let expected = both.map(|(id, name, text)| {
                (
                    id.to_owned(),
                    name.to_owned(),
                    serde_json::from_str(text).expect("JSON"),
                )
            });
            assert_eq!(heard.calls, expected, "{api:?} {upstream:?} {streams}");
            let end = match api {
                Api::Chat => "tool_calls",
                Api::Responses => "completed",
                Api::Messages => "tool_use",
            };
            assert_eq!(heard.end, end);
            // The standard usage is the acting member's; members have their own.
            assert_eq!(heard.input_tokens, 11);
            let members: Vec<&str> = heard.kd["members"]
                .as_array()
                .expect("members")
                .iter()
                .filter_map(|m| m["member"].as_str())
                .collect();
            assert_eq!(members, ["ann", "bob", "cyd"], "{}", heard.kd);
            let asked = stage.bodies().pop().expect("asked");
            assert!(asked["tools"].to_string().contains("Reads."), "{asked}");
            assert!(
                asked["messages"].to_string().contains("| Read b.rs first."),
                "{asked}"
            );
            assert!(
                !asked["messages"].to_string().contains("Nothing to add"),
                "{asked}"
            );

            let calls: Vec<Value> = heard
                .calls
                .iter()
                .map(|(id, name, input)| json!([id, name, input]))
                .collect();
            let steps = [
                first[0].clone(),
                json!({"text": heard.text, "calls": calls}),
                json!({"results": [["call_a", "fn a"], ["call_b", "fn b"]]}),
            ];
            let next = api.ask(&stage.served, api.request(&steps, json!({})), streams);
            assert_eq!((next.text.as_str(), next.calls.len()), ("Done.", 0));
            assert_eq!(next.kd["thread"], heard.kd["thread"], "{api:?}");
            // No call failed: nobody advised.
            assert_eq!(next.kd["members"].as_array().map(Vec::len), Some(1));
            let asked = stage.bodies().pop().expect("asked").to_string();
            for part in ["call_a", "call_b", "fn a", "fn b", "a.rs"] {
                assert!(asked.contains(part), "{asked}");
            }
        }
        assert_eq!(stage.home.threads().len(), 3);
    }
}

#[test]
fn what_is_sent_twice_begins_alike_and_is_marked_for_the_cache() {
    let call = |n: usize| {
        reply(
            Wire::Anthropic,
            "",
            &[(["c0", "c1", "c2"][n], "read", "{}")],
        )
    };
    let more = json!({"serve": {"advice": {"always": true}}});
    let stage = Stage::of(Wire::Anthropic, vec![call(0), call(1), call(2)], more);
    let mut steps = vec![json!({"user": "Fix it."})];
    for n in 0..3 {
        let heard = Api::Messages.ask(
            &stage.served,
            Api::Messages.request(&steps, json!({"system": "Be brief."})),
            false,
        );
        let (id, name, input) = heard.calls[0].clone();
        steps.push(json!({"text": "x", "calls": [[id, name, input]]}));
        steps.push(json!({"results": [[format!("c{n}"), "ok"]]}));
    }
    let bodies = stage.bodies();
    let strip = |body: &Value| {
        let text = body["messages"]
            .to_string()
            .replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        let at = text.find("Advice of other members").expect("advice");
        text[..at].to_owned()
    };
    for pair in bodies.windows(2) {
        let (before, after) = (strip(&pair[0]), strip(&pair[1]));
        // Up to the block with the advice.
        let shared = before.rfind("{\"text\"").or(before.rfind("{\"type\""));
        let shared = before[..shared.expect("a block")].trim_end_matches(',');
        assert!(after.starts_with(shared), "{shared}\n{after}");
        assert_eq!(pair[0]["system"], pair[1]["system"]);
        let marks = pair[1].to_string().matches("cache_control").count();
        assert_eq!(marks, 2, "system, and what the next request begins with");
    }
}

#[test]
fn a_call_that_was_not_offered_never_reaches_the_client() {
    for api in APIS {
        for bad in [
            ("c1", "rm_rf", "{}"),
            ("c1", "read", "{\"path\": "),
            ("c1", "read", "[]"),
        ] {
            let good = reply(Wire::OpenAi, "Sorry.", &[("c1", "read", "{}")]);
            let stage = Stage::of(
                Wire::OpenAi,
                vec![reply(Wire::OpenAi, "", &[bad]), good],
                json!({}),
            );
            let request = api.request(&[json!({"user": "Fix it."})], json!({}));
            let heard = api.ask(&stage.served, request, true);
            assert_eq!(
                heard.calls,
                [("c1".to_owned(), "read".to_owned(), json!({}))],
                "{api:?} {bad:?}"
            );
            assert!(
                stage.bodies()[1]["messages"]
                    .to_string()
                    .contains("Nothing of this was done")
            );

            let stage = Stage::of(
                Wire::OpenAi,
                vec![reply(Wire::OpenAi, "", &[bad])],
                json!({}),
            );
            let request = api.request(&[json!({"user": "Fix it."})], json!({}));
            let (status, text) = api.send(&stage.served, &request);
            assert_eq!((status, stage.bodies().len()), (502, 3), "{text}");
            let error: Value = serde_json::from_str(&text).expect("JSON");
            assert!(
                error["error"]["message"]
                    .as_str()
                    .is_some_and(|m| m.contains("ann")),
                "{text}"
            );
            // What the service reported is counted, also of the answer that failed.
            let (_, metrics) = stage
                .served
                .send("GET", "/metrics", &bearer(), &Value::Null);
            assert!(
                metrics.contains("kd_tokens_total{member=\"ann\",direction=\"input\"} 33"),
                "{metrics}"
            );
            assert!(
                !metrics.contains("kd_uncounted_turns_total{member=\"ann\"}"),
                "{metrics}"
            );
        }
    }
}

#[test]
fn usage_that_was_not_reported_is_unknown_and_never_an_exact_zero() {
    let data = |value: Value| format!("data: {value}\n\n");
    let bytes = data(json!({"choices": [{"index": 0, "delta": {"content": "Yes."}}]}))
        + &data(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        + "data: [DONE]\n\n";
    let silent = Reply::Stream(vec![Step::Raw(bytes.into_bytes().into())]);
    let stage = Stage::of(Wire::OpenAi, vec![silent], json!({}));
    for api in APIS {
        // Alone, and with advisers whose usage is known.
        for model in ["kd/ask:ann", "kd/ask"] {
            let request = api.request(&[json!({"user": "hi"})], json!({ "model": model }));
            let (status, text) = api.send(&stage.served, &request);
            assert_eq!(status, 200, "{text}");
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            let usage = &answer["usage"];
            assert_eq!(usage["certainty"], "at_least", "{text}");
            let input = usage.get("input_tokens").or(usage.get("prompt_tokens"));
            assert_eq!(
                input,
                Some(&json!(0)),
                "what others used is not its: {text}"
            );
            assert_eq!(answer["kd"]["usage"]["certainty"], "at_least", "{text}");
            let members = answer["kd"]["members"].as_array().expect("members");
            let ann = members
                .iter()
                .find(|of| of["member"] == "ann")
                .expect("ann");
            assert_eq!(ann["usage"]["certainty"], "at_least", "{text}");
        }
    }
    let request = Api::Chat.request(&[json!({"user": "hi"})], json!({"model": "kd/ask:ann"}));
    let mut text = String::new();
    let mut stream = stage
        .served
        .open("POST", "/v1/chat/completions", &bearer(), &request);
    std::io::Read::read_to_string(&mut stream, &mut text).expect("an answer");
    assert!(text.contains("x-kd-input-tokens: >=0"), "{text}");
}

#[test]
fn a_form_reaches_the_acting_member_over_every_api() {
    let answer = r#"{"city":"Bern"}"#;
    let stage = Stage::of(
        Wire::OpenAi,
        vec![reply(Wire::OpenAi, answer, &[])],
        json!({}),
    );
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false});
    let form = json!({"type": "json_schema", "schema": schema});
    for (api, field, more) in [
        (
            Api::Chat,
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}}),
        ),
        (
            Api::Responses,
            "text",
            json!({"format": {"type": "json_schema", "name": "x", "schema": schema}}),
        ),
        (Api::Messages, "output_config", json!({"format": form})),
        (Api::Messages, "output_format", form.clone()),
    ] {
        let ask = |model: &str| {
            let more = json!({"model": model, field: more});
            api.request(&[json!({"user": "Which capital?"})], more)
        };
        for streams in [false, true] {
            assert_eq!(
                api.ask(&stage.served, ask("kd/ask"), streams).text,
                answer,
                "{field}"
            );
            let sent = stage.bodies().pop().expect("asked");
            let sent = &sent["response_format"]["json_schema"]["schema"];
            assert_eq!(sent["properties"]["city"]["type"], "string", "{field}");
        }
    }
}

#[test]
fn a_member_that_cannot_act_is_told_with_what_to_do() {
    let stage = Stage::of(Wire::OpenAi, vec![reply(Wire::OpenAi, "x", &[])], json!({}));
    for api in APIS {
        let request = api.request(&[json!({"user": "hi"})], json!({"model": "kd/ask:bob,cyd"}));
        let (status, text) = api.send(&stage.served, &request);
        assert_eq!(status, 422, "{text}");
        assert!(
            text.contains("bob is a script") && text.contains("agents.NAME.backend"),
            "{text}"
        );
        let request = api.request(&[json!({"results": [["nosuch", "x"]]})], json!({}));
        assert_eq!(api.send(&stage.served, &request).0, 400);
    }
    let forced = json!({"model": "kd/deliberate", "tool_choice": "required"});
    let request = Api::Chat.request(&[json!({"user": "hi"})], forced);
    assert_eq!(Api::Chat.send(&stage.served, &request).0, 400);
    assert!(stage.bodies().is_empty(), "nobody was asked");
}

#[test]
fn choices_reach_the_service_and_no_tool_is_called_where_none_may_be() {
    let answers = vec![reply(Wire::OpenAi, "x", &[("c1", "read", "{}")])];
    let stage = Stage::of(
        Wire::OpenAi,
        answers,
        json!({"serve": {"advice": {"first": false, "failed": false}}}),
    );
    for (api, choice, sent) in [
        (
            Api::Chat,
            json!({"type": "function", "function": {"name": "read"}}),
            json!({"type": "function", "function": {"name": "read"}}),
        ),
        (
            Api::Responses,
            json!({"type": "function", "name": "read"}),
            json!({"type": "function", "function": {"name": "read"}}),
        ),
        (
            Api::Messages,
            json!({"type": "tool", "name": "read"}),
            json!({"type": "function", "function": {"name": "read"}}),
        ),
        (Api::Chat, json!("required"), json!("required")),
        (Api::Messages, json!({"type": "any"}), json!("required")),
        (Api::Chat, json!("auto"), Value::Null),
    ] {
        let request = api.request(&[json!({"user": "hi"})], json!({"tool_choice": choice}));
        assert_eq!(api.ask(&stage.served, request, false).calls.len(), 1);
        assert_eq!(
            stage.bodies().last().expect("asked")["tool_choice"],
            sent,
            "{api:?}"
        );
    }
    let missing = json!({"type": "function", "function": {"name": "write"}});
    let request = Api::Chat.request(&[json!({"user": "hi"})], json!({"tool_choice": missing}));
    assert_eq!(Api::Chat.send(&stage.served, &request).0, 400);
    // After calls, `none` still goes to the acting member; it must answer in text, and here it does not.
    let steps = [
        json!({"user": "hi"}),
        json!({"text": "", "calls": [["c9", "read", {}]]}),
        json!({"results": [["c9", "ok"]]}),
    ];
    let request = Api::Chat.request(&steps, json!({"tool_choice": "none"}));
    let (status, text) = Api::Chat.send(&stage.served, &request);
    assert!(status == 502 && text.contains("allows none"), "{text}");
    // Before any call, it is a question like others.
    let request = Api::Chat.request(
        &[json!({"user": "hi"})],
        json!({"tool_choice": "none", "model": "kd/ask:bob"}),
    );
    assert_eq!(
        Api::Chat.ask(&stage.served, request, false).text,
        "Read b.rs first."
    );
}

#[test]
fn responses_go_on_by_the_id_of_an_answer_and_take_tools_of_free_text() {
    let patch = reply(
        Wire::OpenAi,
        "",
        &[("c1", "apply_patch", r#"{"input":"*** Begin Patch"}"#)],
    );
    let stage = Stage::of(
        Wire::OpenAi,
        vec![patch, reply(Wire::OpenAi, "Done.", &[])],
        json!({}),
    );
    let tools = json!([{"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "definition": "start: x"}}, {"type": "web_search"}]);
    let first = json!({"model": "kd/ask", "input": "Fix it.", "tools": tools, "stream": true});
    let (status, text) = stage
        .served
        .send("POST", "/v1/responses", &bearer(), &first);
    assert_eq!(status, 200, "{text}");
    let events = named(&text);
    let response = &events.last().expect("an end")["response"];
    let call = response["output"]
        .as_array()
        .expect("items")
        .last()
        .expect("a call")
        .clone();
    assert_eq!(
        (&call["type"], &call["input"], &call["call_id"]),
        (
            &json!("custom_tool_call"),
            &json!("*** Begin Patch"),
            &json!("c1")
        )
    );
    let sent = stage.bodies()[0]["tools"].to_string();
    assert!(
        sent.contains("start: x") && !sent.contains("web_search"),
        "{sent}"
    );
    let result = json!([{"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}]);
    let next = json!({"model": "kd/ask", "previous_response_id": response["id"], "input": result, "tools": tools});
    let (status, text) = stage.served.send("POST", "/v1/responses", &bearer(), &next);
    assert_eq!(status, 200, "{text}");
    let next: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(next["kd"]["thread"], response["kd"]["thread"]);
    let asked = stage.bodies().pop().expect("asked")["messages"].to_string();
    assert!(
        asked.contains("Fix it.")
            && asked.contains("*** Begin Patch")
            && asked.contains("\"tool_call_id\":\"c1\""),
        "{asked}"
    );
    // The same by a reference to the call.
    let input = json!([user("Fix it."), {"type": "item_reference", "id": call["id"]}, result[0]]);
    let referred = json!({"model": "kd/ask", "input": input, "tools": tools});
    let (status, text) = stage
        .served
        .send("POST", "/v1/responses", &bearer(), &referred);
    assert_eq!(status, 200, "{text}");
    let asked = stage.bodies().pop().expect("asked")["messages"].to_string();
    assert!(
        asked.contains("*** Begin Patch") && asked.contains("\"tool_call_id\":\"c1\""),
        "{asked}"
    );
    let unknown =
        json!({"model": "kd/ask", "previous_response_id": "resp_x", "input": "hi", "tools": tools});
    assert_eq!(
        stage
            .served
            .send("POST", "/v1/responses", &bearer(), &unknown)
            .0,
        400
    );
}

#[test]
fn side_requests_of_clients_are_answered_by_the_cheapest_member_alone() {
    let stage = Stage::of(Wire::OpenAi, vec![reply(Wire::OpenAi, "x", &[])], json!({}));
    let title = json!({"model": "kd/ask", "messages": [{"role": "system", "content": "You are a title generator. You output ONLY a thread title."}, user("Fix the build")]});
    let (status, answer) = stage.served.chat(&title);
    assert_eq!(status, 200, "{answer}");
    // Scripts are free, the service is not known to be.
    let members = answer["kd"]["members"].as_array().expect("members");
    assert_eq!((members.len(), &members[0]["member"]), (1, &json!("bob")));
    assert!(stage.bodies().is_empty());
    let task = json!({"model": "kd/ask:ann", "messages": [user("hi")], "metadata": {"task": "tags_generation"}});
    let (_, answer) = stage.served.chat(&task);
    assert_eq!(answer["choices"][0]["message"]["content"], "x");
    // Neither is a thread of the user, nor leaves a folder.
    assert_eq!(answer["kd"]["thread"], Value::Null);
    let mut text = String::new();
    let mut stream = stage
        .served
        .open("POST", "/v1/chat/completions", &bearer(), &title);
    std::io::Read::read_to_string(&mut stream, &mut text).expect("an answer");
    assert!(
        text.contains("200 OK") && !text.contains("x-kd-thread"),
        "{text}"
    );
    assert_eq!(stage.home.threads().len(), 0);
    drop(stage.served);
    let left = walk(stage.home.path());
    assert!(
        !left.iter().any(|path| path.contains("kd-side-")),
        "{left:?}"
    );
}

/// All paths below a folder.
fn walk(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        found.push(path.display().to_string());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(walk(&path));
        }
    }
    found
}

/// A picture in an API's form.
fn picture(api: Api, url: &str) -> Value {
    match (api, url.strip_prefix("data:image/png;base64,")) {
        (Api::Chat, _) => json!({"type": "image_url", "image_url": {"url": url}}),
        (Api::Responses, _) => json!({"type": "input_image", "image_url": url}),
        (Api::Messages, Some(data)) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
        }
        (Api::Messages, None) => json!({"type": "image", "source": {"type": "url", "url": url}}),
    }
}

#[test]
fn pictures_reach_the_acting_member_over_every_api_and_advisers_read_of_them() {
    const DATA: &str = "data:image/png;base64,aGVsbG8=";
    for upstream in [Wire::OpenAi, Wire::Anthropic] {
        let replies = APIS.iter().flat_map(|_| {
            [
                reply(upstream, "", &[("c1", "read", "{}")]),
                reply(upstream, "A cat.", &[]),
            ]
        });
        let stage = Stage::of(upstream, replies.collect(), json!({}));
        for api in APIS {
            let word = match api {
                Api::Responses => "input_text",
                _ => "text",
            };
            let shown = json!([{"type": word, "text": "What is it?"}, picture(api, DATA)]);
            let mut request = json!({"model": "kd/ask", "max_tokens": 64});
            let field = if api == Api::Responses {
                "input"
            } else {
                "messages"
            };
            request[field] = json!([{"role": "user", "content": shown}]);
            // With tools and a result that shows a picture; the model sees both.
            let with_tools = api.request(&[], json!({}));
            request["tools"] = with_tools["tools"].clone();
            let heard = api.ask(&stage.served, request.clone(), false);
            assert_eq!(heard.calls.len(), 1, "{api:?}");
            let asked = stage.bodies().pop().expect("asked").to_string();
            let expected = match upstream {
                Wire::OpenAi => json!({"type": "image_url", "image_url": {"url": DATA}}),
                // Its last block may have a mark for the cache.
                _ => picture(Api::Messages, DATA)["source"].clone(),
            };
            assert!(asked.contains(&expected.to_string()), "{api:?}: {asked}");
            let id = heard.calls[0].0.clone();
            let far = picture(api, "https://example.org/b.png");
            let items = request[field].as_array_mut().expect("a list");
            match api {
                Api::Chat => {
                    items.push(json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}}]}));
                    items.push(json!({"role": "tool", "tool_call_id": id, "content": [far]}));
                }
                Api::Responses => {
                    items.push(json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"}));
                    items.push(
                        json!({"type": "function_call_output", "call_id": id, "output": [far]}),
                    );
                }
                Api::Messages => {
                    items.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "read", "input": {}}]}));
                    items.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": [far]}]}));
                }
            }
            let heard = api.ask(&stage.served, request, false);
            assert_eq!(heard.text, "A cat.");
            let asked = stage.bodies().pop().expect("asked").to_string();
            assert!(asked.contains("https://example.org/b.png"), "{asked}");
            let thread = heard.kd["thread"].as_str().expect("an id");
            let record = stage.home.run(&["show", "--all", thread]).out;
            assert!(
                record.contains("[a picture: image/png, 0.0 KiB]"),
                "{record}"
            );
            assert!(!record.contains("aGVsbG8="), "{record}");
        }
    }
}

#[test]
fn pictures_that_no_member_can_see_are_refused_in_words() {
    let stage = Stage::of(Wire::OpenAi, vec![], json!({}));
    let ask = |model: &str, part: Value| {
        let message = json!({"role": "user", "content": [{"type": "text", "text": "See."}, part]});
        let (status, answer) = stage
            .served
            .chat(&json!({"model": model, "messages": [message]}));
        (status, answer["error"]["message"].to_string())
    };
    let good = || picture(Api::Chat, "https://example.org/b.png");
    for (model, part, status, words) in [
        ("kd/deliberate", good(), 400, "pictures are for kd/ask"),
        ("kd/diverse", good(), 400, "pictures are for kd/ask"),
        ("kd/think", good(), 400, "pictures are for kd/ask"),
        ("kd/ask:bob,cyd", good(), 422, "no member can see pictures"),
        (
            "kd/ask",
            picture(Api::Chat, "http://x/a.png"),
            400,
            "https://",
        ),
        (
            "kd/ask",
            picture(Api::Chat, "data:image/svg+xml;base64,aGk="),
            400,
            "image/svg+xml",
        ),
        ("kd/ask", json!({"type": "input_audio"}), 400, "input_audio"),
    ] {
        let (got, why) = ask(model, part);
        assert!(got == status && why.contains(words), "{model}: {got} {why}");
    }
    assert!(stage.bodies().is_empty());
}

#[test]
fn no_secret_in_any_text_of_a_request_reaches_a_member_or_the_record() {
    const SECRET: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
    for upstream in [Wire::OpenAi, Wire::Anthropic] {
        let replies = APIS.iter().map(|_| reply(upstream, "Done.", &[]));
        let stage = Stage::of(upstream, replies.collect(), json!({}));
        for api in APIS {
            let arguments = json!({"path": SECRET, SECRET: 1});
            let steps = [
                json!({"user": SECRET}),
                json!({"text": SECRET, "calls": [[SECRET, "read", arguments]]}),
                json!({"results": [[SECRET, SECRET]]}),
            ];
            let mut request = api.request(&steps, json!({}));
            let tool = match api {
                Api::Chat => &mut request["tools"][0]["function"],
                _ => &mut request["tools"][0],
            };
            tool["description"] = SECRET.into();
            let schema = match api {
                Api::Messages => "input_schema",
                _ => "parameters",
            };
            tool[schema]["properties"][SECRET] = json!({"default": SECRET});
            match api {
                Api::Chat => request["stop"] = json!([SECRET]),
                Api::Messages => {
                    request["stop_sequences"] = json!([SECRET]);
                    request["system"] = SECRET.into();
                }
                Api::Responses => request["instructions"] = SECRET.into(),
            }
            let heard = api.ask(&stage.served, request, false);
            let asked = stage.bodies().pop().expect("asked").to_string();
            assert!(!asked.contains(SECRET), "{api:?}: {asked}");
            assert!(asked.contains("call_masked_0"), "{api:?}: {asked}");
            let notices = heard.kd["notices"].to_string();
            assert!(notices.contains("GitHub token"), "{notices}");
        }
        let kept = walk(stage.home.path());
        for path in kept.iter().filter(|path| path.contains("/.kd/")) {
            let text = std::fs::read(path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(SECRET), "{path}");
        }
    }
}

#[test]
fn the_bill_of_all_members_stands_in_the_extension_and_in_headers() {
    let stage = Stage::of(Wire::OpenAi, vec![reply(Wire::OpenAi, "x", &[])], json!({}));
    let request = Api::Chat.request(&[json!({"user": "hi"})], json!({"model": "kd/ask:ann"}));
    let mut text = String::new();
    let mut stream = stage
        .served
        .open("POST", "/v1/chat/completions", &bearer(), &request);
    std::io::Read::read_to_string(&mut stream, &mut text).expect("an answer");
    for header in [
        "x-kd-thread: ",
        "x-kd-outcome: complete",
        "x-kd-input-tokens: 11",
        "x-kd-output-tokens: 7",
    ] {
        assert!(text.contains(header), "{header}: {text}");
    }
}

#[test]
fn a_failed_request_says_what_it_cost() {
    let refused = (0..8).map(|_| Reply::status(401));
    let stage = Stage::of(Wire::OpenAi, refused.collect(), json!({}));
    let request = Api::Chat.request(&[json!({"user": "hi"})], json!({"model": "kd/ask:ann"}));
    let mut text = String::new();
    let mut stream = stage
        .served
        .open("POST", "/v1/chat/completions", &bearer(), &request);
    std::io::Read::read_to_string(&mut stream, &mut text).expect("an answer");
    assert!(text.starts_with("HTTP/1.1 502"), "{text}");
    for header in [
        "x-kd-outcome: failed",
        "x-kd-input-tokens: 0",
        "x-should-retry: false",
    ] {
        assert!(text.contains(header), "{header}: {text}");
    }
}

#[test]
fn the_record_of_a_conversation_reads_in_order() {
    let call = reply(Wire::OpenAi, "", &[("c1", "read", "{}")]);
    let stage = Stage::of(
        Wire::OpenAi,
        vec![call, reply(Wire::OpenAi, "Done.", &[])],
        json!({}),
    );
    let heard = Api::Chat.ask(
        &stage.served,
        Api::Chat.request(&[json!({"user": "Fix it."})], json!({})),
        false,
    );
    let steps = [
        json!({"user": "Fix it."}),
        json!({"text": "", "calls": [["c1", "read", {}]]}),
        json!({"results": [["c1", "Error: gone"]]}),
    ];
    let next = Api::Chat.ask(&stage.served, Api::Chat.request(&steps, json!({})), false);
    let thread = heard.kd["thread"].as_str().expect("an id");
    assert_eq!(next.kd["thread"], thread);
    let shown = stage.home.run(&["show", "--all", thread]).out;
    let places: Vec<usize> = [
        "Fix it.",
        "Read b.rs first.",
        "[called read with {}]",
        "Error: gone",
        "Done.",
    ]
    .iter()
    .map(|part| {
        shown
            .find(part)
            .unwrap_or_else(|| panic!("{part}: {shown}"))
    })
    .collect();
    assert!(places.is_sorted(), "{shown}");
    // It is a record like others.
    assert_eq!(stage.home.run(&["fsck"]).code, Some(0));
}

#[test]
fn a_thread_in_which_a_request_with_tools_is_answered_takes_no_second_one_and_says_when_to_repeat()
{
    let wire = Wire::OpenAi;
    let replies = vec![reply(wire, "First.", &[]), Reply::Silence];
    let stage = Stage::of(wire, replies, json!({}));
    let run =
        json!({"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}});
    let request = |model: &str, words: &str| json!({"model": model, "messages": [user(words)], "tools": [run]});
    let (status, first) = stage.served.chat(&request("kd/ask", "Go."));
    assert_eq!(status, 200, "{first}");
    let thread = first["kd"]["thread"].as_str().expect("a thread");
    let model = format!("kd/ask@{thread}");
    let path = "/v1/chat/completions";
    let held = stage
        .served
        .open("POST", path, &bearer(), &request(&model, "And on."));
    support::until("the first one is being answered", || {
        (stage.fake.seen().len() == 2).then_some(())
    });
    let mut second = stage
        .served
        .open("POST", path, &bearer(), &request(&model, "Me too."));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut second, &mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a body");
    let head = head.to_lowercase();
    assert!(head.starts_with("http/1.1 409"), "{head}");
    assert!(
        head.contains("\r\nretry-after: ") && head.contains("\r\nx-should-retry: true"),
        "{head}"
    );
    assert!(body.contains("repeat this one after it"), "{body}");
    drop(held);
}
