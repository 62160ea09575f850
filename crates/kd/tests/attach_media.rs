//! Pictures and PDF documents attached with `@PATH` and `--attach`, through the real program: the bytes on each wire, the
//! notices to members and to the user, and the copy beside the thread.

use crate::support::{Home, Said};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kd_fake::{Fake, Reply, Script, Wire};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\0\0\0\x02\x58\x08\x06\0\0\0";
const PDF: &[u8] = b"%PDF-1.7\n1 0 obj <</Type /Page>> endobj";

/// A home with one member of this wire, a picture and a document.
fn home(fake: &Fake, wire: &str) -> Home {
    let home = Home::new(&json!({
        "agents": {"m1": {"backend": "svc"}},
        "council": {"members": ["m1"], "auto_messages": 0},
        "providers": {"svc": {"base_url": fake.url(), "model": "model-1", "wire": wire}},
    }));
    // The bytes count, not the names.
    fs::write(home.work().join("shot.txt"), PNG).expect("written");
    fs::write(home.work().join("paper.pdf"), PDF).expect("written");
    home
}

async fn asked(home: Home, args: Vec<&'static str>) -> (Home, Said) {
    let run = move || {
        let said = home.run(&args);
        (home, said)
    };
    tokio::task::spawn_blocking(run).await.expect("it ends")
}

/// Returns the names of the copies in the only thread.
fn copies(home: &Home) -> Vec<PathBuf> {
    let threads = home.threads();
    let mut found: Vec<PathBuf> = threads
        .iter()
        .flat_map(|thread| fs::read_dir(thread).expect("a folder"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("attached-"))
        })
        .collect();
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wire_carries_the_bytes_in_every_turn() {
    let (png, pdf) = (STANDARD.encode(PNG), STANDARD.encode(PDF));
    let rows = [
        (
            Wire::OpenAi,
            "openai",
            "/messages",
            "content",
            [
                json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{png}")}}),
                json!({"type": "file", "file": {"filename": "paper.pdf", "file_data": format!("data:application/pdf;base64,{pdf}")}}),
            ],
        ),
        (
            Wire::Anthropic,
            "anthropic",
            "/messages",
            "content",
            [
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}),
                json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": pdf}}),
            ],
        ),
        (
            Wire::Gemini,
            "gemini",
            "/contents",
            "parts",
            [
                json!({"inlineData": {"mimeType": "image/png", "data": png}}),
                json!({"inlineData": {"mimeType": "application/pdf", "data": pdf}}),
            ],
        ),
    ];
    for (wire, name, messages, content, [picture, document]) in rows {
        let fake = Fake::start(Script::always(wire, Reply::words(&["Fine."])));
        let fake = fake.await.expect("it listens");
        let args = vec!["ask", "What is on @shot.txt and in @paper.pdf?"];
        let (home, said) = asked(home(&fake, name), args).await;
        assert_eq!(said.code, Some(0), "{name}: {}", said.err);
        for line in [
            "attached shot.txt: PNG image, 29 bytes, about 615 tokens\n",
            "attached paper.pdf: PDF document, 39 bytes, about 2,000 tokens\n",
        ] {
            assert!(said.err.contains(line), "{name}: {}", said.err);
        }
        // The copy is what members see, also when the file has changed.
        fs::write(home.work().join("shot.txt"), "changed").expect("written");
        let (home, said) = asked(home, vec!["ask", "--continue", "And now?"]).await;
        assert_eq!(said.code, Some(0), "{name}: {}", said.err);
        let seen = fake.seen();
        assert_eq!(seen.len(), 2, "{name}");
        for seen in seen {
            let body = seen.json();
            let last = body
                .pointer(messages)
                .and_then(Value::as_array)
                .and_then(|all| all.last());
            let parts = last.expect("a message")[content]
                .as_array()
                .expect("parts")
                .clone();
            for wanted in [&picture, &document] {
                assert_eq!(
                    parts.iter().filter(|part| *part == wanted).count(),
                    1,
                    "{name}: {parts:?}"
                );
            }
            let text = parts.last().expect("a part").to_string();
            assert!(text.contains("```copy"), "{name}: {text}");
        }
        let copies = copies(&home);
        let stored: Vec<Vec<u8>> = copies
            .iter()
            .map(|path| fs::read(path).expect("read"))
            .collect();
        assert_eq!(stored.len(), 2, "{copies:?}");
        assert!(stored.contains(&PNG.to_vec()) && stored.contains(&PDF.to_vec()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_refuses_files_is_asked_without_them_and_both_are_told() {
    let refusal = Reply::Status {
        code: 400,
        headers: Vec::new(),
        body: Some(Wire::OpenAi.error_body(400, "this model does not support image input")),
    };
    let replies = vec![refusal, Reply::words(&["I cannot see it."])];
    let fake = Fake::start(Script::then(Wire::OpenAi, replies))
        .await
        .expect("it listens");
    let args = vec!["ask", "What is on @shot.txt?"];
    let (_, said) = asked(home(&fake, "openai"), args).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let notice = "m1 did not see shot.txt: its model does not take it";
    assert_eq!(said.err.matches(notice).count(), 1, "{}", said.err);
    let bodies: Vec<String> = fake
        .seen()
        .iter()
        .map(|seen| seen.json().to_string())
        .collect();
    assert_eq!(bodies.len(), 2);
    assert!(bodies[0].contains("image_url") && !bodies[1].contains("image_url"));
    assert!(
        bodies[1].contains("You cannot see shot.txt"),
        "{}",
        bodies[1]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gif_is_not_sent_to_gemini() {
    let fake = Fake::start(Script::always(Wire::Gemini, Reply::words(&["Fine."])));
    let fake = fake.await.expect("it listens");
    let home = home(&fake, "gemini");
    fs::write(home.work().join("move.gif"), b"GIF89a\x01\0\x01\0").expect("written");
    let (_, said) = asked(home, vec!["ask", "See @move.gif"]).await;
    assert!(
        said.err.contains("m1 did not see move.gif: "),
        "{}",
        said.err
    );
    let body = fake.seen()[0].json().to_string();
    assert!(
        !body.contains("inlineData") && body.contains("You cannot see move.gif"),
        "{body}"
    );
}

/// All ways to ask, a fork, and what is left after the message and the thread are forgotten.
#[test]
fn the_copy_follows_the_message() {
    let run = json!(["echo", {"finish": {}}]);
    let echoes: Value = json!({"runs": vec![run; 8]});
    let make = || {
        let home = Home::scripted(&[("ann", echoes.clone()), ("bob", echoes.clone())]);
        fs::write(home.work().join("shot.png"), PNG).expect("written");
        home
    };
    let rows: [&[&str]; 4] = [
        &["ask"],
        &["ask", "--async"],
        &["think"],
        &["deliberate", "--planning", "static"],
    ];
    for args in rows {
        let home = make();
        let said = home.run(&[args, &["What is on @shot.png?"]].concat());
        if args.contains(&"--async") {
            home.run(&["council", "watch"]);
        }
        let line = "attached shot.png: PNG image, 29 bytes, about 615 tokens\n";
        assert!(said.err.contains(line), "{args:?}: {}", said.err);
        assert_eq!(copies(&home).len(), 1, "{args:?}: {}", said.err);
        assert!(!said.err.contains("did not see"), "{args:?}: {}", said.err);
    }
    let home = make();
    Said::fed(
        home.kd(&["chat", "--plain", "--new"]),
        "What is on @shot.png?\n",
    );
    assert_eq!(copies(&home).len(), 1);
    let said = home.run(&["fork"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(copies(&home).len(), 2, "the fork has its own copy");
    let threads = home.threads();
    let id = threads[0].file_name().expect("a name").to_string_lossy();
    let said = home.run(&["forget", &id, "--message", "1", "--yes"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(copies(&home), Vec::<PathBuf>::new());
}
