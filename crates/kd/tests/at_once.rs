//! Several programs that ask in one thread at the same time.

use crate::support;

use serde_json::json;
use support::{Home, Said};

#[test]
fn questions_asked_in_one_thread_at_once_are_each_answered() {
    // It answers the newest question of its prompt, as a model would.
    let newest = "sleep 0.3; grep '^king' | tail -n 1";
    let agent =
        json!({"backend": "command", "dialect": "text", "command": ["/bin/sh", "-c", newest]});
    let home = Home::new(&json!({"agents": {"ann": agent}, "council": {"members": ["ann"]}}));
    assert_eq!(home.run(&["ask", "-q", "king of what?"]).code, Some(0));
    let thread = home.threads().pop().expect("a thread");
    let id = thread
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let asked = [1, 2, 3, 4].map(|n| {
        let question = format!("Is {n} a prime?");
        let command = home.kd(&["ask", "--thread", &id, "--json", &question]);
        (question, std::thread::spawn(move || Said::fed(command, "")))
    });
    for (question, said) in asked {
        let said = said.join().expect("it ends");
        assert_eq!(said.code, Some(0), "{}", said.err);
        let answer = said.json()["answers"][0]["text"].to_string();
        assert!(answer.contains(&question), "{question}: {answer}");
    }
}
