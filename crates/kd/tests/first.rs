//! The first contact: nobody can answer, nothing is configured, nothing is found.

mod support;

use serde_json::json;
use support::Home;

#[test]
fn members_that_cannot_answer_are_told_before_a_thread_is_opened() {
    let home = Home::scripted(&[(
        "ada",
        json!({"runs": [[{"text": "one"}], [{"text": "two"}]]}),
    )]);
    assert_eq!(home.run(&["ask", "First?"]).code, Some(0));
    let threads = || {
        let list = home.run(&["council", "list", "--json"]);
        assert_eq!(list.code, Some(0), "{}", list.err);
        list.out
    };
    let before = threads();
    let config = json!({"agents": {
        "ada": {"backend": "scripted"},
        "bob": {"backend": "anthropic", "model": "m"},
        "cyd": {"backend": "anthropic", "model": "m"},
    }});
    std::fs::write(home.config_file(), config.to_string()).expect("written");
    let claude =
        "install it with `npm install -g @anthropic-ai/claude-code`, then `claude` once to log in";
    let one = format!(
        "error: no member can answer: claude\nwhy: the program `claude` is not there\nnext: {claude}\n"
    );
    let two = format!(
        "error: no member can answer: bob, cyd, claude\n\
         why: bob, cyd: there is no key for `anthropic`\n     \
              claude: the program `claude` is not there\n\
         next: bob, cyd: export ANTHROPIC_API_KEY=…\n      \
               claude: {claude}\n"
    );
    for (line, said) in [
        (&["ask", "--members", "claude", "hi"][..], one.as_str()),
        (&["ask", "--members", "bob,claude,cyd", "hi"], &two),
        (&["ask", "--to", "bob", "hi"], "no key for `anthropic`"),
        (
            &["ask", "--continue", "--members", "bob", "hi"],
            "no key for `anthropic`",
        ),
        (
            &["council", "ask", "--async", "--members", "codex", "hi"],
            "the program `codex`",
        ),
        (
            &["think", "--fast", "bob", "--rigorous", "cyd", "hi"],
            "no key",
        ),
        (
            &["deliberate", "-m", "claude,codex,gemini", "hi?"],
            "the program `gemini`",
        ),
        (
            &["chat", "--new", "--members", "claude"],
            "the program `claude`",
        ),
    ] {
        let refused = home.run(line);
        assert_eq!(refused.code, Some(3), "{line:?}: {}", refused.err);
        assert!(refused.err.contains(said), "{line:?}: {}", refused.err);
        assert_eq!(threads(), before, "{line:?}");
    }
    let json = home.run(&["ask", "--json", "--members", "claude", "hi"]);
    assert_eq!(json.code, Some(3));
    assert_eq!(json.json()["error"]["kind"], "no_seat");
    // One that can answer is enough.
    let some = home.run(&["ask", "--members", "ada,claude", "hi"]);
    assert_eq!(some.code, Some(5), "{}", some.err);
}
