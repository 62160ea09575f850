//! What the page does besides asking: it tells stages and hides forms, picks, asks again, searches, and shows the forum.

use super::support::Home;
use super::{Served, bearer, page};
use serde_json::{Value, json};

fn get(served: &Served, path: &str) -> (u16, Value) {
    let (status, _, text) = served.send("GET", path, &bearer(), "");
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// A reply that fits every stage of a deliberation, in pieces with time between them.
fn decides_slowly() -> Value {
    let reply = json!({
        "reason": "so", "answer": "yes", "confidence": 0.8, "choice": "yes", "ranking": ["A", "B"],
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
        "recommendation": "Do it.", "cites": ["A"],
    })
    .to_string();
    let (begin, end) = reply.split_at(reply.len() / 2);
    json!({"runs": [[{"text": begin}, {"sleep_ms": 700}, {"text": end}]]})
}

#[test]
fn a_form_of_a_deliberation_is_no_text_and_the_running_stage_is_told() {
    let home = Home::scripted(&[
        ("ann", decides_slowly()),
        ("bob", decides_slowly()),
        ("cyd", decides_slowly()),
    ]);
    let served = Served::start(&home, "--page");
    let ask =
        json!({"question": "Is it safe? Answer with one of: yes, no", "method": "deliberate"});
    let (status, said) = served.post("/page/ask", &ask);
    assert_eq!(status, 200, "{said}");
    let thread = said["thread"].as_str().expect("a thread");
    let lines = served.follow(thread, |lines| page(lines).contains("class=\"outcome\""));
    let text = |line: &Value| line["text"].as_str().map(str::to_owned);
    let texts: Vec<String> = lines.iter().filter_map(text).collect();
    // Even the answers are forms here.
    assert!(texts.is_empty(), "{texts:?}");
    let states: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["state"].as_str())
        .collect();
    assert!(states.contains(&"answering"), "{states:?}");
    let later = ["reviewing", "voting", "concluding"];
    assert!(
        later.iter().any(|state| states.contains(state)),
        "{states:?}"
    );
    let heads = lines
        .iter()
        .filter_map(|line| line["parts"].as_array())
        .flatten();
    let heads: Vec<&str> = heads.filter_map(|part| part["html"].as_str()).collect();
    assert!(heads.iter().any(|html| html.contains("Now: ")), "{heads:?}");
    let last = page(&lines);
    assert!(!last.contains("Now: "), "{last}");
    assert!(
        last.contains("“yes”"),
        "the decision in the heading: {last}"
    );
}

#[test]
fn an_answer_is_picked_and_a_failed_one_is_asked_again_in_its_place() {
    let fails = json!({"fail": {"kind": "overloaded", "message": "busy"}});
    let home = Home::scripted(&[
        ("ann", json!({"runs": [[{"text": "Spaces."}]]})),
        (
            "bob",
            json!({"runs": [[fails.clone()], [fails], [{"text": "Tabs."}]]}),
        ),
    ]);
    let asked = home.run(&["ask", "-q", "--no-conclude", "Which?"]);
    assert!(asked.code.is_some(), "{}", asked.err);
    let thread = home.threads()[0]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let served = Served::start(&home, "--page");
    let deed = |what: &str, seat: &str| {
        served.post(
            &format!("/page/threads/{thread}/{what}"),
            &json!({"seat": seat}),
        )
    };
    let (status, said) = deed("retry", "ann");
    assert_eq!(status, 422, "{said}");
    assert!(
        said["error"]
            .as_str()
            .is_some_and(|e| e.contains("did not fail")),
        "{said}"
    );
    std::fs::write(
        home.path().join("bob.json"),
        r#"{"runs": [[{"text": "Tabs."}]]}"#,
    )
    .expect("written");
    let (status, said) = deed("retry", "bob");
    assert_eq!(status, 200, "{said}");
    let text = page(&served.follow(&thread, |lines| page(lines).contains("<p>Tabs.</p>")));
    assert_eq!(
        text.matches("data-from=\"bob\"").count(),
        1,
        "in place: {text}"
    );
    let (status, said) = deed("choose", "zoe");
    assert_eq!(status, 422, "{said}");
    let (status, said) = deed("choose", "bob");
    assert_eq!((status, &said["chosen"]), (200, &json!(true)), "{said}");
    let shown = home.run(&["show", &thread, "--json"]);
    assert!(
        shown.out.contains("I choose the answer of bob"),
        "{}",
        shown.out
    );
    assert_eq!(deed("retry", "../x").0, 400);
}

#[test]
fn threads_are_listed_with_their_date_and_found_by_words_of_any_message() {
    let home = Home::scripted(&[(
        "ann",
        json!({"runs": [[{"text": "Use a Queue, it keeps orders."}]]}),
    )]);
    for question in ["How to hand over orders?", "Tabs?"] {
        assert_eq!(home.run(&["ask", "-q", question]).code, Some(0));
    }
    let served = Served::start(&home, "--page");
    let search = |wanted: Value| served.post("/page/search", &wanted);
    let (status, all) = get(&served, "/page/threads");
    assert_eq!(status, 200);
    assert_eq!(all["threads"].as_array().map(Vec::len), Some(2), "{all:#}");
    assert_eq!(all["more"], false);
    assert!(all["threads"][0]["opened"].is_string(), "{all:#}");
    assert_eq!(all["threads"][0]["found"], Value::Null);
    let (_, rest) = search(json!({"skip": 1}));
    assert_eq!(rest["threads"], json!([all["threads"][1]]));
    let (_, found) = search(json!({"words": "HAND over"}));
    assert_eq!(
        found["threads"].as_array().map(Vec::len),
        Some(1),
        "{found:#}"
    );
    assert_eq!(
        found["threads"][0]["found"],
        json!({"seq": 1, "text": "How to hand over orders?"})
    );
    let (_, answers) = search(json!({"words": "queue"}));
    assert_eq!(
        answers["threads"].as_array().map(Vec::len),
        Some(2),
        "{answers:#}"
    );
    assert_eq!(answers["threads"][0]["found"]["seq"], 2);
    assert_eq!(search(json!({"words": "nowhere"})).1["threads"], json!([]));
    assert_eq!(search(json!({"other": 1})).0, 400);
    assert_eq!(search(json!({"words": "x".repeat(501)})).0, 400);
    let (_, members) = get(&served, "/page/members");
    assert_eq!(members["members"][0]["name"], "ann", "{members:#}");
    assert_eq!(members["members"][0]["usual"], true);
}

#[test]
fn the_forum_is_shown_and_the_user_votes_and_refuses() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    let served = Served::start(&home, "--page");
    let html = |path: &str| {
        let (status, page) = get(&served, path);
        assert_eq!(status, 200, "{path}: {page}");
        page["html"].as_str().expect("markup").to_owned()
    };
    // Looking creates none.
    assert!(html("/page/forum").contains("There is no forum in this folder"));
    assert!(html("/page/forum").contains("There is no forum in this folder"));
    for words in [
        &["post", "Bees <script>1</script>", "Why do they **dance**?"][..],
        &[
            "reply",
            "1",
            "Is that <b>so</b>?",
            "--quote",
            "1",
            "--as",
            "eve",
        ],
        &["role", "king", "voter", "I live here"],
        &[
            "propose",
            "text",
            "Honey for all",
            "--reason",
            "it is sweet",
        ],
        &["propose", "text", "No honey", "--reason", "it is sticky"],
        &["hide", "2", "spam"],
    ] {
        let said = home.run(&[&["forum"], words].concat());
        assert!(
            said.code == Some(0) || words[2] == "No honey",
            "{words:?}: {}",
            said.err
        );
    }
    let text = html("/page/forum");
    for part in [
        "Honey for all",
        "it is sweet",
        "data-may=\"vote\"",
        "href=\"?forum=1\"",
        "hid post 2",
        "spam",
        ">eve<",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("<script"), "{text}");
    let thread = html("/page/forum/threads/1");
    for part in [
        "<strong>dance</strong>",
        "&lt;b&gt;so",
        "hidden by king: spam",
        "href=\"#p1\"",
    ] {
        assert!(thread.contains(part), "{part}: {thread}");
    }
    assert_eq!(get(&served, "/page/forum/threads/99").0, 422);
    let decide = |body: Value| served.post("/page/forum/motions/1", &body);
    let vote = json!({"decision": "vote", "choice": "yes", "reason": "I like it"});
    let (status, said) = decide(vote);
    assert_eq!(status, 200, "{said}");
    assert!(html("/page/forum").contains("1 yes") && html("/page/forum").contains("I like it"));
    let (status, said) = decide(json!({"decision": "vote", "choice": "perhaps"}));
    assert_eq!(status, 422, "{said}");
    assert_eq!(decide(json!({"decision": "pass"})).0, 400);
    let (status, said) = decide(json!({"decision": "refuse", "reason": "no money"}));
    assert_eq!(status, 200, "{said}");
    let text = html("/page/forum");
    assert!(text.contains("refused by a person"), "{text}");
    assert!(!text.contains("data-motion=\"1\" data-may"), "{text}");
}

#[test]
fn the_user_writes_in_the_forum_under_the_own_name_and_within_its_rules() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    let served = Served::start(&home, "--page");
    let html = |path: &str| {
        get(&served, path).1["html"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    // A reply and a motion begin no forum, a thread does.
    // Assembled here, so that no file of the repository contains what looks like a key.
    let key = format!("gh{}_{}", "p", "a7Kq2ZmR9xLw4VtB8nYc3HdP6sGf5JjTe1Uy");
    let begin = json!({"title": "Bees <i>", "body": format!("Why do they **dance**? {key}")});
    assert_eq!(
        served
            .post("/page/forum/threads/1", &json!({"body": "So?"}))
            .0,
        422
    );
    assert_eq!(
        served
            .post(
                "/page/forum/motions",
                &json!({"what": "keep", "reason": "good"})
            )
            .0,
        422
    );
    assert!(!home.work().join(".kd/forum.db").exists());
    let (status, placed) = served.post("/page/forum/threads", &begin);
    assert_eq!((status, &placed["thread"]), (200, &json!(1)), "{placed}");
    assert!(
        placed["masked"]
            .as_str()
            .is_some_and(|told| told.contains("masked")),
        "{placed}"
    );
    let (status, placed) = served.post(
        "/page/forum/threads/1",
        &json!({"body": "To point.", "quote": 1}),
    );
    assert_eq!((status, &placed["post"]), (200, &json!(2)), "{placed}");
    let thread = html("/page/forum/threads/1");
    for part in [
        "data-author=\"king\"",
        "<strong>dance</strong>",
        "To point.",
        "to <a href=\"#p1\">",
        "data-open",
    ] {
        assert!(thread.contains(part), "{part}: {thread}");
    }
    assert!(!thread.contains(&key), "{thread}");
    // The commands show the same, with the actor.
    let read = home.run(&["forum", "read", "1"]).out;
    assert!(
        read.contains("#2 king") && read.contains("To point."),
        "{read}"
    );
    // A motion is written as for the command, and a wrong one is explained.
    let propose = |what: &str| {
        served.post(
            "/page/forum/motions",
            &json!({"what": what, "reason": "I say so"}),
        )
    };
    let (status, said) = propose("role eve");
    assert!(
        status == 422
            && said["error"]
                .as_str()
                .is_some_and(|why| why.contains("role NAME ROLE")),
        "{said}"
    );
    assert_eq!(propose("set skip_probability 0.1").0, 200);
    let text = html("/page/forum");
    for part in [
        "You are <bdi class=\"name\">king</bdi>, owner.",
        "You have no vote.",
        "Set skip_probability to 0.1",
        "data-may=\"refuse\"",
        "href=\"?forum=2\"",
        "set KEY VALUE, ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // What the forum refuses is refused here.
    assert_eq!(home.run(&["forum", "close", "1", "enough"]).code, Some(0));
    let (status, said) = served.post("/page/forum/threads/1", &json!({"body": "One more."}));
    assert!(
        status == 422
            && said["error"]
                .as_str()
                .is_some_and(|why| why.contains("closed")),
        "{said}"
    );
    assert!(!html("/page/forum/threads/1").contains("data-open"));
    for (path, body) in [
        ("/page/forum/threads", json!({"title": "", "body": "x"})),
        ("/page/forum/threads", json!({"title": "x", "body": " "})),
        ("/page/forum/threads/99", json!({"body": "x"})),
        ("/page/forum/threads/1", json!({"body": "x", "quote": 99})),
    ] {
        assert_eq!(served.post(path, &body).0, 422, "{path} {body}");
    }
    for (path, body) in [
        (
            "/page/forum/threads",
            json!({"title": "x", "body": "x", "author": "ada"}),
        ),
        ("/page/forum/threads/1", json!({"body": 1})),
        ("/page/forum/threads/one", json!({"body": "x"})),
        ("/page/forum/motions", json!({"what": "keep"})),
    ] {
        assert_eq!(served.post(path, &body).0, 400, "{path} {body}");
    }
    for path in [
        "/page/forum/threads",
        "/page/forum/motions",
        "/page/forum/threads/1",
    ] {
        let (status, _, _) = served.send("POST", path, "Content-Type: application/json\r\n", "{}");
        assert_eq!(status, 401, "{path}");
    }
}

#[test]
fn a_token_with_a_name_does_not_speak_for_the_owner() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    for words in [
        &["post", "Bees", "Why?"][..],
        &["role", "king", "voter", "so"],
        &["propose", "keep", "--reason", "good"],
    ] {
        let said = home.run(&[&["forum"], words].concat());
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let tokens = home.path().join("tokens");
    std::fs::write(
        &tokens,
        "alice 0123456789abcdef-alice\nbob 0123456789abcdef-bob\n0123456789abcdef-mine\n",
    )
    .expect("written");
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
    std::fs::set_permissions(&tokens, mode).expect("set");
    let tokens = tokens.to_str().expect("text");
    let served = Served::of(home.kd(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--page",
        "--tokens",
        tokens,
    ]));
    let asked = home.run(&["ask", "--json", "Is it?"]).json();
    let thread = asked["thread_id"].as_str().expect("an id").to_owned();
    let (choose, mark) = (
        format!("/page/threads/{thread}/choose"),
        format!("/page/threads/{thread}/mark"),
    );
    let vote = json!({"decision": "vote", "choice": "yes"}).to_string();
    for (name, status) in [("alice", 403), ("bob", 403), ("mine", 200)] {
        let headers = format!(
            "Authorization: Bearer 0123456789abcdef-{name}\r\nContent-Type: application/json\r\n"
        );
        for (method, path, body) in [
            ("GET", "/page/forum", ""),
            ("GET", "/page/forum/threads/1", ""),
            ("POST", "/page/forum/threads/1", "{\"body\": \"So.\"}"),
            (
                "POST",
                "/page/forum/threads",
                "{\"title\": \"Ants\", \"body\": \"So.\"}",
            ),
            ("POST", "/page/forum/motions/1", vote.as_str()),
        ] {
            let (got, _, text) = served.send(method, path, &headers, body);
            assert_eq!(got, status, "{name}: {method} {path}: {text}");
        }
        let (got, _, text) = served.send(
            "POST",
            "/page/forum/motions",
            &headers,
            "{\"what\": \"text Tea\", \"reason\": \"so\"}",
        );
        // The owner has moved one in this cycle.
        assert_eq!(got, if status == 200 { 422 } else { 403 }, "{name}: {text}");
        let (got, _, text) = served.send("POST", &choose, &headers, "{\"seat\": \"ann\"}");
        assert_eq!(got, status, "{name}: {text}");
        let (got, _, text) = served.send("POST", &mark, &headers, "{\"mark\": \"wrong\"}");
        // There is no verdict to mark.
        assert_eq!(got == 403, status == 403, "{name}: {text}");
        let voted = home.run(&["forum", "motions", "1"]).out.contains("yes");
        assert_eq!(voted, status == 200, "{name}");
    }
}

#[test]
fn what_a_later_question_costs_is_not_booked_on_the_council_that_decided() {
    let says = |tokens: u64| {
        let usage = |tokens: u64| json!({"finish": {"usage": {"input_tokens": tokens, "output_tokens": 10}}});
        let reply = json!({
            "reason": "so", "answer": "yes", "confidence": 0.8, "choice": "yes", "ranking": ["A", "B"],
            "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
            "recommendation": "Do it.", "cites": ["A"],
        });
        json!({"runs": [[{"text": reply.to_string()}, usage(tokens)]]})
    };
    let home = Home::scripted(&[("ann", says(100)), ("bob", says(200)), ("cyd", says(300))]);
    let said = home.run(&[
        "deliberate",
        "-q",
        "Is it safe? Answer with one of: yes, no",
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let alone = || {
        let page = home.run(&["export", "--format", "html", "-o", "page.html"]);
        assert_eq!(page.code, Some(0), "{}", page.err);
        let page = std::fs::read_to_string(home.work().join("page.html")).expect("written");
        let (_, part) = page.split_once("One member alone").expect("a comparison");
        part.split_once("</section>").expect("its end").0.to_owned()
    };
    let before = alone();
    assert!(
        before.contains("is the result") && before.contains(" ×"),
        "{before}"
    );
    assert!(
        before.contains(">110<") && before.contains(">210<"),
        "{before}"
    );
    let said = home.run(&["ask", "--continue", "And tomorrow?"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(alone(), before);
}
