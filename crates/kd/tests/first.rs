//! The first contact: nobody can answer, nothing is configured, nothing is found.

mod support;

use portable_pty::{Child, CommandBuilder, MasterPty, native_pty_system};
use serde_json::json;
use std::io::Write;
use std::sync::mpsc::Receiver;
use support::{Home, PATIENCE, Said, pty};

/// `kd` in a terminal, in an environment of these variables.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    bytes: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    fn open(home: &Home, args: &[&str], env: &[(&str, &str)]) -> Self {
        let terminal = native_pty_system()
            .openpty(pty::size(80, 40))
            .expect("a terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_kd"));
        command.args(args);
        command.cwd(home.work());
        command.env_clear();
        let own = home.path().to_str().expect("text");
        let fixed = [
            ("HOME", own),
            ("PATH", "/usr/bin:/bin"),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            // Nobody answers there.
            ("OLLAMA_HOST", "127.0.0.1:1"),
            (support::SANDBOX, "false"),
        ];
        for (name, value) in fixed.iter().chain(env) {
            command.env(name, value);
        }
        let child = terminal.slave.spawn_command(command).expect("it runs");
        Self {
            child,
            keys: terminal.master.take_writer().expect("a keyboard"),
            bytes: pty::listen(terminal.master.as_ref()),
            screen: vt100::Parser::new(40, 80, 0),
            master: terminal.master,
        }
    }

    /// Waits until the screen shows all of these.
    fn wait_for(&mut self, words: &[&str]) -> String {
        loop {
            let shown = self.screen.screen().contents();
            if words.iter().all(|word| shown.contains(word)) {
                return shown;
            }
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(_) => panic!("{words:?} never came:\n{shown}"),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("typed");
    }

    /// The exit code, and the screen at the end.
    fn end(mut self) -> (u32, String) {
        let code = self.child.wait().expect("it ends").exit_code();
        drop(self.keys);
        drop(self.master);
        while let Ok(bytes) = self.bytes.recv_timeout(PATIENCE) {
            self.screen.process(&bytes);
        }
        (code, self.screen.screen().contents())
    }
}

#[test]
fn kd_alone_opens_the_chat_on_a_terminal_and_prints_its_help_in_a_pipe() {
    let home = Home::scripted(&[("ada", json!({"runs": [[{"text": "Well met."}]]}))]);
    let mut chat = Terminal::open(&home, &[], &[]);
    chat.wait_for(&["Enter: send"]);
    chat.press("Hello?\r");
    chat.wait_for(&["Well met."]);
    chat.press("/quit\r");
    let (code, shown) = chat.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("go on: kd chat"), "{shown}");

    let piped = Said::fed(home.kd(&[]), "");
    assert_eq!(piped.code, Some(2));
    assert!(piped.err.contains("Usage: kd"), "{}", piped.err);
    assert_eq!(home.threads().len(), 1);
}

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

#[test]
fn init_that_finds_nothing_lists_what_it_looked_for() {
    let home = Home::scripted(&[]);
    let init = || {
        let mut command = home.kd(&["init"]);
        command.env("PATH", home.path());
        command.env("OLLAMA_HOST", "127.0.0.1:1");
        command
    };
    let said = Said::of(init().output().expect("it runs"));
    assert_eq!(said.code, Some(3), "{}", said.err);
    for what in [
        "claude\n      npm install -g @anthropic-ai/claude-code, then claude once to log in",
        "codex\n      npm install -g @openai/codex, then codex login",
        "  gemini\n",
        "  opencode\n",
        "  agent or cursor-agent\n",
        "127.0.0.1:1\n      install it from https://ollama.com/download",
        "OPENAI_API_KEY\n      export OPENAI_API_KEY=…  (key: https://",
        "GEMINI_API_KEY or GOOGLE_API_KEY\n",
        "its advice is worthless",
    ] {
        assert!(said.err.contains(what), "{what}: {}", said.err);
    }
    assert!(!home.work().join(".kd/config.local.json").exists());
}

#[test]
fn init_suggests_a_model_and_an_empty_answer_takes_it() {
    let home = Home::scripted(&[]);
    let key = ("OPENAI_API_KEY", "sk-never-sent");
    let mut init = Terminal::open(&home, &["init"], &[key]);
    init.wait_for(&["1. openai", "members? numbers"]);
    init.press("\r");
    init.wait_for(&["model of openai? [gpt-5-mini]"]);
    init.press("\r");
    let (code, shown) = init.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("openai (gpt-5-mini) is a member"), "{shown}");
    let file = home.work().join(".kd/config.local.json");
    let written = std::fs::read_to_string(&file).expect("written");
    assert!(written.contains(r#""model": "gpt-5-mini""#), "{written}");
    assert!(!written.contains("sk-never"), "{written}");

    let mut named = home.kd(&["init", "--force", "--yes", "--members", "openai"]);
    let named = Said::of(named.env(key.0, key.1).output().expect("it runs"));
    assert_eq!(named.code, Some(0), "{}", named.err);
    assert!(named.err.contains("openai (gpt-5-mini)"), "{}", named.err);
}
