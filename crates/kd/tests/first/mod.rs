//! First use: no member available, nothing configured, nothing found.

use crate::support;

mod siblings;

use kd_fake::{Fake, Reply, Seen, Wire};
use portable_pty::{Child, CommandBuilder, MasterPty, native_pty_system};
use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use support::{Home, PATIENCE, Said, pty};

/// `kd` in a terminal with these environment variables.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    bytes: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    master: Box<dyn MasterPty + Send>,
    /// The terminal modes at the start.
    modes: String,
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
            // Nothing listens there.
            ("OLLAMA_HOST", "127.0.0.1:1"),
            (support::SANDBOX, "false"),
        ];
        for (name, value) in fixed.iter().chain(env) {
            command.env(name, value);
        }
        let modes = terminal.master.get_termios().expect("modes").local_flags;
        let child = terminal.slave.spawn_command(command).expect("it runs");
        Self {
            child,
            modes: format!("{modes:?}"),
            keys: terminal.master.take_writer().expect("a keyboard"),
            bytes: pty::listen(terminal.master.as_ref()),
            screen: vt100::Parser::new(40, 80, 0),
            master: terminal.master,
        }
    }

    /// Waits until the screen shows all of the words.
    fn wait_for(&mut self, words: &[&str]) -> String {
        let all = |shown: &str| words.iter().all(|word| shown.contains(word));
        self.wait_until(&format!("{words:?}"), all)
    }

    /// Waits until the screen is as wanted.
    fn wait_until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        loop {
            let shown = self.screen.screen().contents();
            if is_there(&shown) {
                return shown;
            }
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(_) => panic!("{what} never came:\n{shown}"),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("typed");
    }

    /// Returns the exit code and the final screen.
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
        "error: no member can answer: claude\ncause: the program `claude` was not found\nhelp: {claude}\n"
    );
    let two = format!(
        "error: no member can answer: bob, cyd, claude\n\
         cause: bob, cyd: there is no key for `anthropic`\n       \
              claude: the program `claude` was not found\n\
         help: bob, cyd: export ANTHROPIC_API_KEY=…\n      \
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
    // One available member is enough.
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
        "  claude        npm install -g @anthropic-ai/claude-code, then claude once to log in\n",
        "  codex         npm install -g @openai/codex, then codex login\n",
        "\n  gemini  ",
        "\n  opencode  ",
        "\n  cursor-agent  ",
        "  127.0.0.1:1  https://ollama.com/download",
        "  OPENAI_API_KEY                    https://",
        "GEMINI_API_KEY or GOOGLE_API_KEY  https://",
        "Or a larger local model, Qwen2.5 1.5B Instruct",
        "kd model use qwen2.5-1.5b",
        "\nOr a server of your own (vLLM, …): kd config set providers.NAME.base_url URL\n",
        "its advice is poor",
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
    // Enter takes nothing that costs money.
    init.wait_for(&["1. openai", "members? numbers such as 1,2, or all:"]);
    init.press("\r");
    init.wait_for(&["please type numbers from 1 to 1, or all"]);
    init.press("1\r");
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

/// Creates a home without configuration.
fn bare() -> Home {
    let home = Home::new(&json!({}));
    std::fs::remove_file(home.config_file()).expect("removed");
    home
}

/// Puts a Claude Code that answers with this text on its own path.
fn with_claude(home: &Home, text: &str) -> String {
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).expect("made");
    std::fs::hard_link(kd_fake::fake_agent(), bin.join("claude"))
        .or_else(|_| std::fs::copy(kd_fake::fake_agent(), bin.join("claude")).map(drop))
        .expect("a program");
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s-1",
        "usage": {"input_tokens": 3, "output_tokens": 2}});
    let script: Value = json!([
        {"when": "--input-format", "do": [{"complain": "error: unknown option '--input-format'\n"}, {"exit": 1}]},
        {"read": true},
        {"print": format!("{result}\n")},
    ]);
    std::fs::write(bin.join("claude.script"), script.to_string()).expect("written");
    format!("{}:/usr/bin:/bin", bin.display())
}

fn own_file(home: &Home) -> PathBuf {
    home.path().join(".config/kd/config.json")
}

#[test]
fn the_first_question_asks_who_answers_and_remembers() {
    let home = bare();
    let path = with_claude(&home, "Forty-two, says Claude.");
    let env = [("PATH", path.as_str())];
    // Without a terminal, it does not prompt.
    let mut piped = home.kd(&["ask", "Which?"]);
    let piped = piped.env("PATH", &path).env("KD_OFFLINE", "1");
    let piped = Said::of(piped.output().expect("it runs"));
    let unattended = [("PATH", path.as_str()), ("KD_OFFLINE", "1"), ("CI", "true")];
    let (code, shown) = Terminal::open(&home, &["ask", "Which?"], &unattended).end();
    assert_eq!((piped.code, code), (Some(3), 3), "{}{shown}", piped.err);
    assert!(!piped.err.contains("Who should answer?"), "{}", piped.err);
    assert!(!shown.contains("Who should answer?"), "{shown}");
    assert!(!own_file(&home).exists());

    let mut first = Terminal::open(&home, &["ask", "Which?"], &env);
    let asked = first.wait_for(&["Enter picks 1, q quits.\n>"]);
    for line in [
        "Nothing is configured yet. Who should answer?",
        "saved in",
        "~/.config/kd/config.json",
        "  1) claude, found here (uses your subscription)",
        "  2) the built-in demo model (93.8 MiB, no account;",
        "its advice is poor)",
        "  3) a larger local model, Qwen2.5 1.5B Instruct (Q4_K_M) (1.0 GiB to",
    ] {
        assert!(asked.contains(line), "{line}: {asked}");
    }
    // Not one of the offers, and a named key.
    first.press("7\x1b[A");
    first.press("\r");
    first.wait_for(&["> 1\n", "Forty-two, says Claude."]);
    let (code, shown) = first.end();
    assert_eq!(code, 0, "{shown}");
    let written = std::fs::read_to_string(own_file(&home)).expect("written");
    assert!(written.contains(r#""backend": "claude_code""#), "{written}");

    let (code, shown) = Terminal::open(&home, &["ask", "Again?"], &env).end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Forty-two"), "{shown}");
    assert!(
        !shown.contains("Who should answer?"),
        "asked twice:\n{shown}"
    );
}

#[test]
fn whoever_leaves_the_first_question_changes_nothing() {
    let home = bare();
    let path = with_claude(&home, "Never asked.");
    for (args, key) in [
        (&["ask", "Which?"][..], "\x03"),
        (&["ask", "Which?"], "q"),
        (&["ask", "Which?"], "\x1b"),
        (&[], "\x04"),
    ] {
        let mut terminal = Terminal::open(&home, args, &[("PATH", &path)]);
        terminal.wait_for(&["q quits.\n>"]);
        terminal.press(key);
        terminal.wait_for(&["nothing was changed"]);
        let after = terminal.master.get_termios().expect("modes");
        assert_eq!(terminal.modes, format!("{:?}", after.local_flags));
        let (code, shown) = terminal.end();
        assert_eq!(code, 130, "{shown}");
        assert!(!own_file(&home).exists());
        assert!(home.threads().is_empty());
    }
    // A choice that cannot be saved does not count.
    std::fs::remove_dir_all(home.path().join(".config")).expect("removed");
    std::fs::write(home.path().join(".config"), "").expect("written");
    let mut terminal = Terminal::open(&home, &["ask", "Which?"], &[("PATH", &path)]);
    terminal.wait_for(&["q quits.\n>"]);
    terminal.press("1");
    let (code, shown) = terminal.end();
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("cannot be saved in ~/.config"), "{shown}");
    assert!(shown.contains("kd ask --members"), "{shown}");
    std::fs::remove_file(home.path().join(".config")).expect("removed");
    // It does not prompt if members are named.
    for args in [
        &["ask", "--members", "claude", "Which?"][..],
        &["ask", "--json", "--offline", "Which?"],
        &["ask", "--model", "/nowhere.gguf", "Which?"],
    ] {
        let (_, shown) = Terminal::open(&home, args, &[("PATH", &path)]).end();
        assert!(!shown.contains("Who should answer?"), "{args:?}: {shown}");
        assert!(!own_file(&home).exists());
    }
    // The question is not asked either if the folder has members or asks for some.
    let members = json!({"council": {"members": ["claude"]}});
    std::fs::write(home.work().join(".kd/config.json"), members.to_string()).expect("written");
    let mut terminal = Terminal::open(&home, &["ask", "Which?"], &[("PATH", &path)]);
    terminal.wait_for(&["Allow these settings in this folder?"]);
    terminal.press("y\n");
    let (_, shown) = terminal.end();
    assert!(shown.contains("Never asked."), "{shown}");
    assert!(!shown.contains("Who should answer?"), "{shown}");
    assert!(!own_file(&home).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ollama_that_is_found_takes_three_roles() {
    let choose = |seen: &Seen, _| {
        let models = json!({"models": [{"name": "nomic-embed-text"}, {"name": "qwen3:4b"}]});
        let list = Reply::Body {
            mime: "application/json".into(),
            body: models.to_string().into_bytes().into(),
        };
        Some(match seen.path.as_str() {
            "/api/tags" => (Wire::OpenAi, list),
            _ => (Wire::OpenAi, Reply::words(&["Seven."])),
        })
    };
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let fake = Fake::choosing(loopback, choose).await.expect("loopback");
    let home = bare();
    let (url, key) = (fake.url(), ("OPENAI_API_KEY", "sk-never-sent"));
    let env = [("OLLAMA_HOST", url.as_str()), key];
    let mut terminal = Terminal::open(&home, &["ask", "Which?"], &env);
    let asked = terminal.wait_for(&["q quits.\n>"]);
    for line in [
        "  1) qwen3:4b, an Ollama model found here, in three roles (free)",
        "  2) gpt-5-mini in three roles, with the key OPENAI_API_KEY (each answer costs",
        "  3) the built-in demo model",
    ] {
        assert!(asked.contains(line), "{line}: {asked}");
    }
    terminal.press("1");
    terminal.wait_for(&["3 of 3 answered"]);
    let (code, shown) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("skeptic"), "{shown}");
    let seen = fake.seen();
    let asked: Vec<&Seen> = seen.iter().filter(|s| s.path != "/api/tags").collect();
    assert_eq!(asked.len(), 4, "three answers and a conclusion");
    assert!(asked.iter().all(|s| s.json()["model"] == "qwen3:4b"));
    assert!(!format!("{seen:?}").contains("sk-never"));
}

#[test]
fn the_chat_asks_too_and_a_key_that_is_chosen_is_named_and_not_written() {
    let home = bare();
    let key = ("ANTHROPIC_API_KEY", "sk-never-sent");
    let mut chat = Terminal::open(&home, &[], &[key]);
    // Enter does not choose what costs money.
    chat.wait_for(&[
        "1) claude-sonnet-4-5",
        "costs money",
        "Enter picks 2, q quits.\n>",
    ]);
    chat.press("1");
    chat.wait_for(&["Enter: send"]);
    chat.press("/quit\r");
    let (code, shown) = chat.end();
    assert_eq!(code, 0, "{shown}");
    let written = std::fs::read_to_string(own_file(&home)).expect("written");
    assert!(written.contains("ANTHROPIC_API_KEY"), "{written}");
    assert!(!written.contains("sk-never"), "{written}");
    let said = home.run(&["config", "check"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
}

#[test]
fn the_demo_model_that_is_chosen_stays_a_demo() {
    let home = bare();
    let path = with_claude(&home, "Never asked.");
    let env = [("PATH", path.as_str()), ("KD_OFFLINE", "1")];
    let mut terminal = Terminal::open(&home, &["ask", "Which?"], &env);
    terminal.wait_for(&["q quits.\n>"]);
    terminal.press("2");
    let (code, shown) = terminal.end();
    // The model may not be downloaded here.
    assert_eq!(code, 3, "{shown}");
    assert!(
        shown.contains("demo model answers from now on\nto choose again: kd init --user --force"),
        "{shown}"
    );
    let said = home.run(&["config", "show"]);
    assert!(
        said.out.contains(r#"["pragmatist","skeptic","explorer"]"#),
        "{}",
        said.out
    );
    let (_, shown) = Terminal::open(&home, &["ask", "Which?"], &env).end();
    assert!(!shown.contains("Who should answer?"), "{shown}");
}

#[test]
fn a_model_that_cannot_be_had_is_not_set() {
    let home = bare();
    for (key, code, says) in [
        ("qwen2.5-1.5b", 3, "KD_OFFLINE is set"),
        ("nothing", 2, "no model is named nothing"),
    ] {
        let said = home
            .kd(&["model", "use", key])
            .env("KD_OFFLINE", "1")
            .output()
            .expect("kd runs");
        let err = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(code), "{err}");
        assert!(err.contains(says), "{err}");
        assert!(!own_file(&home).exists(), "{key}");
    }
}

#[test]
fn without_home_settings_and_models_are_in_the_home_of_the_account() {
    let home = bare();
    for set in [None, Some(""), Some("relative")] {
        let run = |args: &[&str]| {
            let mut command = home.kd(args);
            command.env_remove("HOME");
            set.map(|set| command.env("HOME", set));
            Said::of(command.output().expect("it runs"))
        };
        let paths = run(&["config", "path"]).out;
        let file = paths.split_whitespace().find(|word| word.starts_with('/'));
        let file = file.unwrap_or_else(|| panic!("{paths}"));
        let account = file.strip_suffix("/.config/kd/config.json");
        let account = account.unwrap_or_else(|| panic!("{paths}"));
        // The path of the model, present or not.
        let model = run(&["model", "path"]);
        let said = model.out + &model.err;
        assert!(said.contains(&format!("{account}/")), "{set:?}: {said}");
        assert!(!said.contains("HOME nor"), "{set:?}: {said}");
    }
}

/// Outside of a project a choice is for all folders, like that of the first question; in a checkout it is for this folder.
#[test]
fn init_says_where_its_choice_holds() {
    let home = Home::new(&json!({}));
    let user = home.config_file();
    std::fs::remove_file(&user).expect("removed");
    std::fs::remove_dir(home.work().join(".kd")).expect("removed");
    let init = |home: &Home| home.run(&["init", "--members", "skeptic"]);
    let said = init(&home);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("in all your folders"), "{}", said.err);
    assert!(user.exists() && !home.work().join(".kd").exists());
    support::checkout(&home.work());
    let said = init(&home);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("in this folder"), "{}", said.err);
    assert!(home.work().join(".kd/config.local.json").exists());
}

#[test]
fn a_check_of_the_settings_names_who_cannot_answer() {
    let home = Home::new(&json!({"agents": {
        "ann": {"backend": "anthropic", "model": "claude-9"},
        "bob": {"backend": "scripted", "model": "bob.json"},
    }}));
    let said = home.run(&["config", "check"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("ann cannot answer"), "{}", said.err);
    assert!(said.err.contains("ANTHROPIC_API_KEY"), "{}", said.err);
    assert!(!said.err.contains("bob cannot answer"), "{}", said.err);
}

/// When a deliberation is over, no stage of it looks as if it still ran.
#[test]
fn the_stages_of_a_deliberation_end_with_it() {
    let says = json!({"runs": [["echo"]]});
    let home = Home::scripted(&[("ann", says.clone()), ("bob", says)]);
    let run = Terminal::open(
        &home,
        &["deliberate", "-m", "ann,bob", "Is it so? yes or no"],
        &[],
    );
    let (_, shown) = run.end();
    assert!(shown.contains("✓ opinions"), "{shown}");
    assert!(!shown.contains('▸'), "{shown}");
}
