//! Tests `kd chat` from outside: two agent programs and a scripted member in a real terminal, killed while they speak,
//! and resumed; lines in a pipe; signals.

use crate::support;

use kd_core::{Message, Status};
use portable_pty::{Child, CommandBuilder, MasterPty, native_pty_system};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use support::{Home, PATIENCE, Said, pty, whole};

/// Creates a home where `claude` and `codex` are scripted programs and `ann` is a script.
fn home() -> Home {
    let home = Home::new(&json!({}));
    let script = home.path().join("ann.json");
    std::fs::write(&script, r#"{"runs": [[{"text": "Ann's answer."}]]}"#).expect("written");
    let config = json!({
        "council": {"members": ["claude", "codex", "ann"], "auto_messages": 0},
        "agents": {
            "claude": {"backend": "claude_code", "warm": false},
            "codex": {"backend": "codex", "warm": false},
            "ann": {"backend": "scripted", "model": script},
        },
    });
    let file = home.config_file();
    std::fs::write(file, config.to_string()).expect("written");
    std::fs::create_dir(home.path().join("bin")).expect("made");
    for name in ["claude", "codex"] {
        let program = home.path().join("bin").join(name);
        std::fs::hard_link(kd_fake::fake_agent(), &program)
            .or_else(|_| std::fs::copy(kd_fake::fake_agent(), &program).map(drop))
            .expect("a program");
    }
    plays(&home, "codex", &codex("Codex's answer."));
    home
}

fn plays(home: &Home, name: &str, steps: &Value) {
    let file = home.path().join("bin").join(format!("{name}.script"));
    std::fs::write(file, steps.to_string()).expect("written");
}

fn print(value: &Value) -> Value {
    json!({"print": format!("{value}\n")})
}

fn codex(text: &str) -> Value {
    json!([
        {"read": true},
        print(&json!({"type": "thread.started", "thread_id": "t-1"})),
        print(&json!({"type": "turn.started"})),
        print(&json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": text}})),
        print(&json!({"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 2}})),
    ])
}

fn claude_piece(text: &str) -> Value {
    print(
        &json!({"type": "stream_event", "session_id": "s-1", "event": {"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": text}}}),
    )
}

fn claude(text: &str) -> Value {
    json!([
        {"read": true},
        claude_piece(text),
        print(&json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s-1",
            "usage": {"input_tokens": 3, "output_tokens": 2}})),
    ])
}

/// Half an answer, then silence for a while.
fn claude_hangs() -> Value {
    json!([
        {"read": true},
        claude_piece("Half an answer.\n\n"),
        {"sleep_millis": 20_000},
        claude_piece("Too late."),
    ])
}

/// A chat in a real terminal.
struct Chat {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    bytes: Receiver<Vec<u8>>,
    said: String,
    _master: Box<dyn MasterPty + Send>,
}

impl Chat {
    fn open(home: &Home, args: &[&str]) -> Self {
        let terminal = native_pty_system()
            .openpty(pty::size(100, 40))
            .expect("a terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_kd"));
        command.args(args);
        command.cwd(home.work());
        command.env_clear();
        command.env("HOME", home.path());
        command.env(support::SANDBOX, "false");
        command.env("TERM", "xterm-256color");
        command.env("NO_COLOR", "1");
        command.env(
            "PATH",
            format!("{}:/usr/bin:/bin", home.path().join("bin").display()),
        );
        let child = terminal.slave.spawn_command(command).expect("it runs");
        Self {
            child,
            keys: terminal.master.take_writer().expect("a keyboard"),
            bytes: pty::listen(terminal.master.as_ref()),
            said: String::new(),
            _master: terminal.master,
        }
    }

    fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).expect("typed");
        self.keys.flush().expect("typed");
    }

    fn waits_for(&mut self, words: &[&str]) {
        while !words.iter().all(|w| self.said.contains(w)) {
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.said.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{words:?} never came:\n{}", self.said),
            }
        }
    }

    /// Waits until the screen shows a text. Cells that do not change are not painted again, so the output lacks them.
    fn shows(&mut self, text: &str) {
        loop {
            while let Ok(bytes) = self.bytes.try_recv() {
                self.said.push_str(&String::from_utf8_lossy(&bytes));
            }
            let mut screen = vt100::Parser::new(40, 100, 0);
            screen.process(self.said.as_bytes());
            let contents = screen.screen().contents();
            if contents.contains(text) {
                return;
            }
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.said.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} never came:\n{contents}"),
            }
        }
    }

    /// Clears the captured output, so that later waits match only new output.
    fn forgets(&mut self) {
        self.said.clear();
    }

    fn signals(&self, name: &str) {
        let pid = self.child.process_id().expect("it runs").to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("sent").success());
    }

    fn ends_with(mut self, code: u32) -> String {
        self.waits_for(&["go on: kd chat council-"]);
        assert_eq!(
            self.child.wait().expect("it ends").exit_code(),
            code,
            "{}",
            self.said
        );
        self.said
    }
}

fn thread(home: &Home) -> Vec<Message> {
    let threads = home.threads();
    assert_eq!(threads.len(), 1, "{threads:?}");
    whole(&threads[0]).into_values().collect()
}

fn lines(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .map(|m| format!("{}: {}", m.from, m.body))
        .collect()
}

fn leftovers(thread: &Path) -> Vec<String> {
    let names = std::fs::read_dir(thread).expect("a thread");
    let names = names.map(|e| e.expect("entry").file_name().to_string_lossy().into_owned());
    names.filter(|n| n.starts_with(".stream-")).collect()
}

/// Returns the files of queued messages in the user's state folder.
fn queues(home: &Home) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![home.path().join(".local/state/kd")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if entry.file_name().to_string_lossy().starts_with("queue-") {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the programs running with this home.
fn alive_in(home: &Home) -> Vec<String> {
    let mark = format!("HOME={}\0", home.path().display());
    let programs = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    programs
        .filter(|program| {
            let environ = std::fs::read(program.path().join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environ).contains(&mark)
        })
        .filter_map(|program| std::fs::read_to_string(program.path().join("cmdline")).ok())
        .collect()
}

#[test]
fn killed_while_they_speak_and_resumed_nothing_is_lost_and_nobody_is_asked_twice() {
    let home = home();
    plays(&home, "claude", &claude_hangs());
    let mut chat = Chat::open(&home, &["chat", "--plain"]);
    chat.waits_for(&["kd: thread council-", "claude, codex, ann", "/help lists"]);
    chat.types("Which?\r");
    chat.waits_for(&["codex: done", "ann: done", "claude | Half an answer."]);
    chat.types("And then?\r");
    chat.waits_for(&["your message waits"]);
    chat.signals("-KILL");
    chat.child.wait().expect("dead");
    assert_eq!(thread(&home).len(), 3, "the question and two answers");
    assert_eq!(queues(&home).len(), 1, "kept in the user's state folder");

    plays(&home, "claude", &claude("Claude's answer."));
    let mut chat = Chat::open(&home, &["chat", "--plain"]);
    chat.waits_for(&[
        "kd: the last session ended before claude had answered message 1: asking now",
        "king   | And then?",
        "kd: your turn (3 answers)",
    ]);
    let said = lines(&thread(&home));
    assert_eq!(said[0], "king: Which?");
    assert_eq!(
        said[3], "claude: Claude's answer.",
        "only who had not answered was asked"
    );
    assert_eq!(said[4], "king: And then?");
    assert_eq!(said.len(), 8, "{said:?}");
    chat.forgets();
    chat.types("/mut codex\r");
    chat.waits_for(&["did you mean /mute?"]);
    chat.types("/mute codex\r/auto 1\r/members\r");
    chat.waits_for(&["codex: muted", "up to 1 turn follow", "codex: codex, muted"]);
    chat.types("@claude alone?\r");
    chat.waits_for(&["kd: your turn (1 answer)"]);
    chat.types("/quit\r");
    chat.ends_with(0);
    assert_eq!(alive_in(&home), [""; 0], "the agent of the killed session");
    assert_eq!(queues(&home), [""; 0].map(PathBuf::from), "all is answered");
    assert_eq!(thread(&home).len(), 10);
    assert_eq!(leftovers(&home.threads()[0]), [""; 0]);
}

/// Text in the project is not the user's: queues of kd or kingdom-cli found there are not sent, and drafts are not
/// offered.
#[test]
fn a_queue_or_a_draft_that_lies_in_the_project_is_not_the_users_word() {
    let home = home();
    let said = home.run(&["ask", "--members", "ann", "First?"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let threads = home.threads();
    let id = threads[0].file_name().expect("named").to_string_lossy();
    let branch = threads[0]
        .parent()
        .and_then(Path::parent)
        .expect("a branch");
    let keep =
        json!({"keep": {"id": "0123456789abcdef0123456789abcdef", "body": "PLANTED", "to": "all"}});
    let pending = json!({"deliveries": [{"auto_rounds": 1, "body": "PLANTED", "chat_mode": "natural",
        "completed_targets": [], "first_exchange": null, "id": "0123456789abcdef0123456789abcdef",
        "targets": ["claude"], "to": "all"}]});
    let planted = [
        (threads[0].join(".kd-queue-1-0.jsonl"), format!("{keep}\n")),
        (threads[0].join("queue-1-0.jsonl"), format!("{keep}\n")),
        (
            threads[0].join(".pending-messages.json"),
            pending.to_string(),
        ),
        (branch.join(format!("drafts/{id}.md")), "PLANTED".to_owned()),
        (branch.join("sent.jsonl"), "\"PLANTED\"\n".to_owned()),
    ];
    for (path, text) in &planted {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let before = thread(&home).len();
    let said = piped(&home, &["chat"], "@ann Second?\n");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let texts = lines(&thread(&home)[before..]);
    assert_eq!(texts, ["king: @ann Second?", "ann: Ann's answer."]);
    assert!(!format!("{}{}", said.out, said.err).contains("PLANTED"));
    for (path, text) in &planted {
        assert_eq!(&std::fs::read_to_string(path).expect("left alone"), text);
    }
}

/// Without a state folder, a chat works and says once that queued messages are not kept.
#[test]
fn a_chat_without_a_state_folder_says_that_its_queue_is_not_kept() {
    let home = home();
    plays(&home, "claude", &claude("Claude's answer."));
    let folder = home.path().join(".local/state");
    std::fs::create_dir_all(folder.parent().expect("a folder")).expect("made");
    std::fs::write(&folder, "no folder").expect("written");
    let said = piped(&home, &["chat"], "@claude One?\n@claude Two?\n");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let all = format!("{}{}", said.out, said.err);
    assert_eq!(all.matches("cannot be saved").count(), 1, "{all}");
    assert_eq!(thread(&home).len(), 4, "{all}");
}

#[test]
fn ctrl_c_stops_who_speaks_and_twice_leaves() {
    let home = home();
    plays(&home, "claude", &claude_hangs());
    let mut chat = Chat::open(&home, &["council", "chat", "--plain", "--new"]);
    chat.waits_for(&["/help lists"]);
    chat.types("@claude why?\r");
    chat.waits_for(&["claude | Half an answer."]);
    chat.types("\x03");
    chat.waits_for(&[
        "again quits",
        "claude ! interrupted",
        "kd: your turn (stopped)",
    ]);
    let stopped = thread(&home);
    assert_eq!(stopped[1].status, Some(Status::Interrupted));
    let kept = "Half an answer.\n\n*[Interrupted — response may be incomplete]*";
    assert_eq!(stopped[1].body, kept, "the partial answer is saved");
    plays(&home, "claude", &claude("Claude's answer."));
    chat.types("/retry\r");
    chat.waits_for(&[
        "claude: asked again",
        "claude | Claude's answer.",
        "(1 answer)",
    ]);
    assert_eq!(thread(&home)[2].replaces(), Some(2));
    chat.forgets();
    chat.types("\x03");
    chat.waits_for(&["again quits"]);
    chat.types("\x03");
    chat.ends_with(130);
}

#[test]
fn a_key_of_the_reading_mode_continues_in_a_fork_without_the_last_question() {
    let home = home();
    let mut chat = Chat::open(&home, &["chat"]);
    chat.waits_for(&["your message;"]);
    let messages = |wanted: usize| {
        support::until("messages", || {
            let threads = home.threads();
            let whole = threads.iter().any(|t| whole(t).len() == wanted);
            whole.then_some(())
        });
    };
    for (question, wanted) in [("@ann First?", 2), ("@ann Second?", 4)] {
        chat.types(&format!("{question}\r"));
        messages(wanted);
        // The answer is saved shortly before the turn ends; keys that change the thread wait for the end.
        chat.shows("your turn");
    }
    let source = home.threads();
    assert_eq!(source.len(), 1);
    chat.types("\x1bOQ");
    chat.waits_for(&["reading;"]);
    chat.types("u");
    chat.waits_for(&["/thread goes back"]);
    let threads = home.threads();
    let fork = threads
        .iter()
        .find(|t| !source.contains(t))
        .expect("a fork");
    assert_eq!((whole(fork).len(), whole(&source[0]).len()), (2, 4));
    chat.types("@ann Third?\r");
    support::until("the answer", || (whole(fork).len() == 4).then_some(()));
    let said: Vec<String> = whole(fork).values().map(|m| m.body.to_string()).collect();
    assert!(
        said[0].contains("First?") && said[2].contains("Third?"),
        "{said:?}"
    );
    assert_eq!(whole(&source[0]).len(), 4);
    chat.types("/quit\r");
    chat.ends_with(0);
}

#[test]
fn the_screen_offers_to_finish_a_fork_of_a_deliberation_and_finishes_it() {
    let reply = json!({
        "reason": "so", "answer": "yes", "confidence": 0.8, "choice": "yes", "ranking": ["A", "B"],
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
        "recommendation": "Do it.", "cites": ["A"],
    });
    let plays = json!({"runs": [[{"text": reply.to_string()}]]});
    let home = Home::scripted(&[
        ("ann", plays.clone()),
        ("bob", plays.clone()),
        ("cyd", plays),
    ]);
    let said = piped(&home, &["chat"], "/deliberate Is it safe? yes or no\n");
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let source = home.threads();
    let shared = whole(&source[0]).len();
    assert_eq!(home.run(&["fork", "--stage", "review"]).code, Some(0));
    let mut chat = Chat::open(&home, &["chat"]);
    chat.shows("deliberation has not ended: /resume finishes it");
    chat.types("/resume\r");
    chat.shows("The council is unanimous");
    let threads = home.threads();
    let mut forks = threads.iter().filter(|t| !source.contains(t));
    let fork = forks.next().expect("a fork");
    support::until("the conclusion", || {
        (whole(fork).len() == shared).then_some(())
    });
    chat.types("/fork 2\r");
    chat.shows("/thread goes back");
    support::until("a fork of the fork", || {
        (home.threads().len() == 3).then_some(())
    });
    chat.types("/quit\r");
    chat.ends_with(0);
    let listed = home.run(&["council", "list"]).out;
    assert!(
        listed.contains("\n  └ council-"),
        "one below the other: {listed}"
    );
}

#[test]
fn quit_waits_and_a_second_one_does_not() {
    let home = home();
    plays(&home, "claude", &claude_hangs());
    let mut chat = Chat::open(&home, &["chat", "--plain"]);
    chat.waits_for(&["/help lists"]);
    chat.types("@claude why?\r");
    chat.waits_for(&["claude | Half an answer."]);
    chat.types("And then?\r");
    chat.waits_for(&["your message waits"]);
    chat.types("/quit\r");
    chat.waits_for(&[
        "quitting after the running turns",
        "1 of your messages still waits",
    ]);
    chat.types("/quit\r");
    let said = chat.ends_with(0);
    assert!(said.contains("claude ! interrupted"), "{said}");
    let said = thread(&home);
    assert_eq!(said.len(), 2, "what waits is for the next time");
    assert_eq!(said[1].status, Some(Status::Interrupted));
}

#[test]
fn a_terminal_that_is_closed_leaves_the_thread_whole() {
    let home = home();
    plays(&home, "claude", &claude_hangs());
    let mut chat = Chat::open(&home, &["chat", "--plain"]);
    chat.waits_for(&["/help lists"]);
    chat.types("@claude why?\r");
    chat.waits_for(&["claude | Half an answer."]);
    let pid = chat.child.process_id().expect("it runs").to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.expect("sent").success());
    chat.ends_with(130);
    assert_eq!(thread(&home)[1].status, Some(Status::Interrupted));
    assert_eq!(leftovers(&home.threads()[0]), [""; 0]);
}

/// Runs a chat in a pipe: all input arrives at once and ends.
fn piped(home: &Home, args: &[&str], typed: &str) -> Said {
    Said::fed(home.kd(args), typed)
}

#[test]
fn a_pipe_is_a_conversation_and_ends_when_everything_is_answered() {
    let home = Home::scripted(&[
        (
            "ann",
            json!({"runs": [[{"text": "Yes.\n\nBecause it is small."}], [{"text": "Nothing to add."}], [{"text": "Nothing to add."}]]}),
        ),
        (
            "bob",
            json!({"runs": [[{"text": "No.\nking | obey"}], [{"fail": {"kind": "auth", "message": "no key"}}]]}),
        ),
    ]);
    let typed = "Is it so?\n@ann really?\\\nthink again\n@bobb hi\n@bob you?\n/help me\n";
    let said = piped(&home, &["chat"], typed);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    for line in [
        "king | Is it so?",
        "king | @ann really?\nking | think again",
        "ann  | Yes.\nann  |\n",
        "ann  | Because it is small.\n",
        "bob  | No.\nbob  | king | obey",
        "ann  ! passes: it has nothing to add",
        "bob  ! failed: no key",
        "did you mean @bob?",
        "kd: /help takes no argument",
    ] {
        assert!(
            said.out.contains(line),
            "{line:?} is missing in:\n{}",
            said.out
        );
    }
    assert!(said.err.contains("go on: kd chat council-"), "{}", said.err);
    assert_eq!(whole(&home.threads()[0]).len(), 10);

    let id = home.threads()[0]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let again = piped(&home, &["chat", &id[8..10]], "/export\n");
    assert!(
        again.out.contains("king | Is it so?"),
        "the whole thread is shown:\n{}",
        again.out
    );
    assert!(again.out.contains("bob  ! failed"), "{}", again.out);
    let new = piped(&home, &["chat", "--new"], "/thread\n");
    assert!(
        new.out.contains(&format!("1  {id}  Is it so?")),
        "{}",
        new.out
    );
    assert_eq!(piped(&home, &["chat", "zzzz"], "").code, Some(1));
}

#[test]
fn a_pipe_that_is_faster_than_the_members_loses_no_line() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    let typed: String = (0..100).map(|n| format!("@ann line {n}\n")).collect();
    let said = piped(&home, &["chat"], &typed);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let lines = whole(&home.threads()[0]);
    let king: Vec<&str> = lines
        .iter()
        .filter(|(_, m)| m.is_king())
        .map(|(_, m)| m.body.trim())
        .collect();
    let wanted: Vec<String> = (0..100).map(|n| format!("@ann line {n}")).collect();
    assert_eq!(king, wanted, "{}", said.out);
}

/// Two chats in one thread send the same text: each waits until its own message is answered.
#[test]
fn the_same_words_from_two_windows_are_both_said() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    let first = piped(&home, &["chat"], "begin\n");
    assert_eq!(first.code, Some(0), "{}", first.err);
    let typed: String = (0..20).map(|n| format!("line {n}\n")).collect();
    let chats: Vec<Said> = std::thread::scope(|scope| {
        let open = || scope.spawn(|| piped(&home, &["chat"], &typed));
        let chats = [open(), open()];
        chats.map(|chat| chat.join().expect("it ends")).into()
    });
    for chat in &chats {
        assert_eq!(chat.code, Some(0), "{}\n{}", chat.out, chat.err);
    }
    let messages = whole(&home.threads()[0]);
    for n in 0..20 {
        let words = format!("line {n}");
        let said = messages
            .iter()
            .filter(|(_, m)| m.is_king() && m.body.trim() == words);
        assert_eq!(said.count(), 2, "{words}: {}", chats[0].out);
    }
    assert_eq!(queues(&home), [""; 0].map(PathBuf::from), "all is said");
}

/// A message that waits in one window ends the turns of another one: the member that speaks may finish.
#[test]
fn a_message_that_waits_in_one_window_ends_the_turns_of_another() {
    let bob = json!({"runs": [[{"text": "Bob's answer."}]]});
    let home = Home::scripted(&[("ann", json!({"runs": []})), ("bob", bob)]);
    let hold = home.path().join("hold");
    std::fs::write(&hold, "").expect("written");
    // The third answer, the first turn after the answers, ends when the file is gone.
    let words = "cat > /dev/null; echo >> \"$1.calls\"; if [ $(wc -l < \"$1.calls\") = 3 ]; then \
                 while [ -e \"$1\" ]; do sleep 0.05; done; fi; echo \"Ann's answer.\"";
    let command = ["/bin/sh", "-c", words, "ann", &hold.display().to_string()];
    let text = std::fs::read_to_string(home.config_file()).expect("its settings");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["agents"]["ann"] = json!({"backend": "command", "dialect": "text", "command": command});
    std::fs::write(home.config_file(), config.to_string()).expect("written");
    let mut here = Chat::open(&home, &["chat", "--plain"]);
    here.waits_for(&["/help lists"]);
    here.types("First?\r");
    here.waits_for(&["kd: your turn (2 answers)"]);
    here.types("Second?\r");
    let calls = || std::fs::read_to_string(home.path().join("hold.calls")).unwrap_or_default();
    let begun = Instant::now();
    while calls().lines().count() < 3 {
        assert!(begun.elapsed() < PATIENCE, "ann was not asked again");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut there = Chat::open(&home, &["chat", "--plain"]);
    there.waits_for(&["/help lists", "ann: answers another program"]);
    there.types("/auto 0\rThird?\r");
    there.waits_for(&["your message waits for ann, which another program is asking"]);
    std::fs::remove_file(&hold).expect("removed");
    there.waits_for(&["kd: your turn (2 answers)"]);
    here.waits_for(&["you spoke again"]);
    for chat in [&mut here, &mut there] {
        chat.types("/quit\r");
    }
    here.ends_with(0);
    there.ends_with(0);
    let messages = whole(&home.threads()[0]);
    let from: Vec<&str> = messages.values().map(|m| m.from.as_str()).collect();
    let of = |name: &str| from.iter().filter(|from| **from == name).count();
    assert_eq!((of("king"), of("ann"), of("bob")), (3, 4, 3), "{from:?}");
}

#[test]
fn a_broken_model_fails_its_members_only_and_ends_the_chat_if_it_is_all_there_is() {
    let echo = json!({"backend": "scripted", "model": "echo"});
    let home = Home::new(
        &json!({"agents": {"ann": echo}, "council": {"members": ["ann", "skeptic"], "conclude": false}}),
    );
    let model = home.path().join("model.gguf");
    std::fs::write(&model, "no model").expect("written");
    let mut kd = home.kd(&["chat"]);
    kd.env("KD_MODEL", &model);
    let said = Said::fed(kd, "hi\n/quit\n");
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    assert!(said.out.contains("1 answer, 1 failed"), "{}", said.out);

    let home = Home::new(&json!({}));
    let mut kd = home.kd(&["chat"]);
    kd.env("KD_MODEL", &model);
    let said = Said::fed(kd, "hi\n/quit\n");
    assert_eq!(said.code, Some(3), "{}\n{}", said.out, said.err);
    assert!(
        said.err.contains("does not start with the letters GGUF"),
        "{}",
        said.err
    );

    // A file truncated after its magic bytes is noticed only when members answer.
    std::fs::remove_dir_all(home.work().join(".kd")).expect("removed");
    std::fs::write(&model, "GGUF and no more").expect("written");
    let mut kd = home.kd(&["chat"]);
    kd.env("KD_MODEL", home.path().join("model.gguf"));
    std::fs::copy(&model, home.path().join("model.gguf")).expect("copied");
    let said = Said::fed(kd, "hi\n/quit\n");
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let told = "kd: your turn (0 answers, 3 failed)";
    assert!(said.out.contains(told), "{}", said.out);
    // Whoever names a model knows who answers.
    assert!(
        !said.err.contains("the small built-in model"),
        "{}",
        said.err
    );
}

#[test]
fn a_debate_and_a_deliberation_are_part_of_the_conversation() {
    let home = Home::scripted(&[
        (
            "ann",
            json!({"runs": [
                [{"text": "Small."}],
                [{"text": "A moment. <council>Is it"}, {"text": " so?</council>"}],
                [{"text": "Answer: yes\nConfidence: 0.9"}],
            ]}),
        ),
        (
            "bob",
            json!({"runs": [[{"text": "Large."}], [{"text": "It is so."}], [{"text": "Answer: yes\nConfidence: 0.8"}]]}),
        ),
    ]);
    let typed =
        "/think\nWhich?\n/think Is it so?\n/deliberate Is 17 prime? yes or no\n/think\n/stop\n";
    let said = piped(&home, &["chat"], typed);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    for line in [
        "kd: there is no question yet",
        "king | Which?",
        "king | Is it so?\nann: asked\nann  | A moment.\n",
        "ann: wrote 9 characters to bob\nbob: asked\nbob  | It is so.",
        "kd: the debate: agreed after 1 message",
        "king | Is 17 prime? yes or no",
        "kd: opinions",
        "kd: counted by ",
        "kd: your turn (",
    ] {
        assert!(
            said.out.contains(line),
            "{line:?} is missing in:\n{}",
            said.out
        );
    }
    assert!(!said.out.contains("council>"), "{}", said.out);
    let said = lines(&thread(&home));
    assert_eq!(
        said[3..6],
        ["king: Is it so?", "ann: A moment.", "bob: It is so."]
    );

    let id = home.threads()[0]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let again = home.run(&["replay", &id]);
    assert!(
        again.out.contains("agree byte for byte"),
        "{}\n{}",
        again.out,
        again.err
    );
    assert_eq!(home.run(&["why", &id]).code, Some(0));
}

#[test]
fn what_another_kd_does_in_the_thread_is_seen_and_its_members_are_not_asked_twice() {
    let home = Home::scripted(&[
        (
            "ann",
            json!({"runs": [[{"text": "Ann's answer.\n\n"}, {"sleep_ms": 3000}, {"text": "All of it."}]]}),
        ),
        ("bob", json!({"runs": [[{"text": "Bob's answer."}]]})),
    ]);
    let mut chat = Chat::open(&home, &["chat", "--plain"]);
    chat.waits_for(&["/help lists"]);
    chat.types("/auto 0\r");
    chat.waits_for(&["no turns follow the answers"]);
    let mut other = home
        .kd(&["ask", "--continue", "@ann", "why?"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    chat.waits_for(&["king | @ann why?", "ann: answers another program"]);
    chat.types("And you all?\r");
    chat.waits_for(&["your message waits for ann, which another program is asking"]);
    assert!(other.wait().expect("it ends").success());
    chat.waits_for(&[
        "ann  | All of it.",
        "ann: asked",
        "bob: asked",
        "kd: your turn (2 answers)",
    ]);
    chat.types("/quit\r");
    let said = chat.ends_with(0);
    assert_eq!(
        said.matches("Bob's answer.").count(),
        1,
        "nothing is said twice:\n{said}"
    );
    assert_eq!(whole(&home.threads()[0]).len(), 5);
}

/// Members are added to a thread and removed from it, from the next message on, and the choice is kept.
#[test]
fn members_come_and_go() {
    let says = |text: &str| json!({"runs": [[{"text": text}], [{"text": text}], [{"text": text}]]});
    let home = Home::scripted(&[
        ("ann", says("I am ann.")),
        ("bob", says("I am bob.")),
        ("cyd", says("I am cyd.")),
    ]);
    let chat = |args: &[&str], input: &str| Said::fed(home.kd(&[&["chat"], args].concat()), input);
    let said = chat(&["--new", "-m", "ann"], "/auto 0\nOne?\n");
    assert!(
        said.out.contains("I am ann.") && !said.out.contains("I am bob."),
        "{}",
        said.out
    );
    // The settings name others: the thread keeps its own, and says so.
    let said = chat(&[], "/auto 0\nTwo?\n");
    assert!(
        said.out
            .contains("the members of this thread are ann; your settings name ann, bob, cyd"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("I am bob."), "{}", said.out);
    let said = chat(&[], "/add bob\n/auto 0\nThree?\n");
    assert!(
        said.out.contains("bob takes part from now on"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("I am bob.") && said.out.contains("I am ann."),
        "{}",
        said.out
    );
    for (line, told) in [
        ("/add bob", "bob is a member already"),
        ("/add nobody", "nobody"),
        ("/remove cyd", "cyd is no member of this thread"),
    ] {
        let said = chat(&[], &format!("{line}\n"));
        assert!(said.out.contains(told), "{line}: {}", said.out);
    }
    // Also where the members were named for the chat.
    let said = chat(&["-m", "ann,bob"], "/remove ann\n/auto 0\nFour?\n");
    assert!(
        said.out.contains("ann takes part no longer"),
        "{}",
        said.out
    );
    let after = said.out.split("takes part no longer").nth(1).expect("more");
    let after = after.split("Four?").last().expect("more");
    assert!(
        after.contains("I am bob.") && !after.contains("ann | I am ann."),
        "{}",
        said.out
    );
    assert!(
        chat(&[], "/remove bob\n")
            .out
            .contains("bob is the only member")
    );
    let shown = home.run(&["show", "--json"]).json();
    assert_eq!(shown["members"], json!(["bob"]), "{shown}");
}

#[test]
fn a_program_can_drive_a_chat() {
    let script = json!({"runs": [[{"text": "Tabs."}], [{"text": "Spaces."}]]});
    let home = Home::scripted(&[("ann", script)]);
    let input = "/auto 0\n{\"say\": \"Tabs or\\nspaces?\"}\n/mute nobody\n{\"shout\": 1}\n{\"say\": \"/quit\"}\n";
    let said = Said::fed(home.kd(&["chat", "--jsonl", "--new"]), input);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["event"], "thread_opened", "{}", lines[0]);
    assert_eq!(lines[0]["members"], json!(["ann"]));
    let messages = support::announced(said.out.as_bytes());
    let bodies: Vec<&str> = messages.iter().map(|message| &*message.body).collect();
    // What is said is not a command, and has any number of lines.
    assert_eq!(bodies, ["Tabs or\nspaces?", "Tabs.", "/quit", "Spaces."]);
    assert!(
        said.err.contains("line 4: unknown field `shout`"),
        "{}",
        said.err
    );
    assert!(
        lines.iter().any(|line| line["event"] == "op_refused"),
        "{}",
        said.out
    );
    let thread = lines[0]["thread"].as_str().expect("an id");
    assert!(home.threads()[0].ends_with(thread), "{thread}");
}

/// A clone lacks `thread.json`, and its settings may lack members: who spoke is asked, who is not there is named, and
/// nobody takes their place.
#[test]
fn a_thread_after_a_clone_asks_its_own_members() {
    let says = |text: &str| json!({"runs": [[{"text": text}], [{"text": text}], [{"text": text}]]});
    let home = Home::scripted(&[
        ("ann", says("I am ann.")),
        ("bob", says("I am bob.")),
        ("cyd", says("I am cyd.")),
    ]);
    let said = Said::fed(
        home.kd(&["chat", "--new", "-m", "cyd,ann"]),
        "/auto 0\nOne?\n",
    );
    assert!(said.out.contains("I am cyd."), "{}", said.out);
    let thread = home.threads()[0].clone();
    std::fs::remove_file(thread.join("thread.json")).expect("it was there");
    let answer = whole(&thread)
        .into_values()
        .find(|message| message.from == "ann")
        .expect("an answer");
    let named = |seq: u32, name: &str| thread.join(format!("{seq:04}-{name}.md"));
    let text = std::fs::read_to_string(named(answer.seq, "ann")).expect("read");
    let concluded = text.replace("from: ann", "from: chair");
    std::fs::write(named(4, "chair"), concluded).expect("written");
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(home.config_file()).expect("read")).expect("JSON");
    config["agents"]
        .as_object_mut()
        .expect("agents")
        .remove("cyd");
    config["council"]["members"] = json!(["ann", "bob"]);
    std::fs::write(home.config_file(), config.to_string()).expect("written");
    let told = "your settings have no member named cyd: of this thread these are asked: ann";
    let said = Said::fed(home.kd(&["chat"]), "/auto 0\nTwo?\n");
    let after = said.out.split("Two?").last().expect("more");
    assert!(said.out.contains(told), "{}{}", said.out, said.err);
    assert!(
        after.contains("I am ann.") && !after.contains("I am bob."),
        "{}",
        said.out
    );
    let said = home.run(&["ask", "--continue", "Three?"]);
    assert!(said.err.contains(told), "{}", said.err);
    assert!(
        said.out.contains("I am ann.") && !said.out.contains("I am bob."),
        "{}",
        said.out
    );
}

/// Lines of a program wait for what comes before them, so that each message goes where the line before says, and every
/// line of output is one event with the next number.
#[test]
fn lines_of_a_program_wait_for_the_thread_they_are_for() {
    let says = |text: &str| json!({"runs": [[{"text": text}], [{"text": text}], [{"text": text}]]});
    let home = Home::scripted(&[("ann", says("I am ann.")), ("bob", says("I am bob."))]);
    let input = "/auto 0\n/mode sequential\n{\"say\": \"One?\"}\n/add bob\n{\"say\": \"Two?\"}\n/new\n\
                 {\"say\": \"Three?\"}\n{\"say\": \" \"}\n/add nobody\n/export\n/copy\n";
    let said = Said::fed(home.kd(&["chat", "--jsonl", "--new", "-m", "ann"]), input);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect();
    let seqs: Vec<u64> = lines
        .iter()
        .filter_map(|line| line["seq"].as_u64())
        .collect();
    assert_eq!(
        seqs,
        (1..=lines.len() as u64).collect::<Vec<_>>(),
        "{}",
        said.out
    );
    let of = |event: &str| {
        let event = event.to_owned();
        lines.iter().filter(move |line| line["event"] == event)
    };
    let opened: Vec<&Value> = of("thread_opened").map(|line| &line["members"]).collect();
    assert_eq!(
        opened,
        [&json!(["ann"]), &json!(["ann", "bob"]), &json!(["ann"])]
    );
    let threads: Vec<&Value> = of("thread_opened").map(|line| &line["thread"]).collect();
    assert!(threads[0] == threads[1] && threads[1] != threads[2]);
    let words: Vec<(bool, &str)> = of("message_added")
        .map(|line| {
            (
                line["thread"] == *threads[0],
                line["message"]["body"].as_str().expect("text"),
            )
        })
        .collect();
    assert_eq!(
        words,
        [
            (true, "One?"),
            (true, "I am ann."),
            (true, "Two?"),
            (true, "I am ann."),
            (true, "I am bob."),
            (false, "Three?"),
            (false, "I am ann."),
        ],
        "{}",
        said.out
    );
    // The settings of the session are kept with the members changed.
    let (second, two) = (
        lines
            .iter()
            .rposition(|line| line["members"] == json!(["ann", "bob"])),
        lines
            .iter()
            .position(|line| line["message"]["body"] == "Two?"),
    );
    let between = &lines[second.expect("opened")..two.expect("said")];
    let set = between
        .iter()
        .rfind(|line| line["event"] == "mode_set")
        .expect("set");
    assert_eq!(
        (&set["mode"], &set["auto_messages"]),
        (&json!("sequential"), &json!(0))
    );
    let refused: Vec<&str> = of("op_refused")
        .filter_map(|line| line["why"].as_str())
        .collect();
    assert_eq!(refused.len(), 4, "{refused:?}");
    for (why, part) in refused
        .iter()
        .zip(["empty message", "nobody", "file's name", "screen"])
    {
        assert!(why.contains(part), "{refused:?}");
    }
}

/// A change of members keeps who is not in this chat, and writes nothing for one that cannot answer.
#[test]
fn a_member_that_cannot_answer_is_not_added() {
    let says = json!({"runs": [[{"text": "Yes."}], [{"text": "Yes."}]]});
    let home = Home::scripted(&[("ann", says.clone()), ("bob", says.clone()), ("cyd", says)]);
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(home.config_file()).expect("read")).expect("JSON");
    config["agents"]["dan"] = json!({"backend": "codex", "command": ["no-such-program-here"]});
    std::fs::write(home.config_file(), config.to_string()).expect("written");
    Said::fed(home.kd(&["chat", "--new", "-m", "ann"]), "/auto 0\nOne?\n");
    let members = || home.run(&["show", "--json"]).json()["members"].clone();
    let said = Said::fed(home.kd(&["chat"]), "/add dan\n/auto 0\nTwo?\n");
    assert!(
        said.out.contains("no member can answer: dan"),
        "{}",
        said.out
    );
    assert!(said.out.contains("| Yes."), "{}", said.out);
    assert_eq!(members(), json!(["ann"]));
    let said = Said::fed(home.kd(&["chat", "-m", "bob"]), "/add cyd\n");
    assert!(said.out.contains("cyd takes part"), "{}", said.out);
    assert_eq!(members(), json!(["ann", "cyd"]));
}

/// One request to stop reaches the members, although the output is not read.
#[test]
fn a_reader_that_does_not_read_does_not_keep_the_members_going() {
    // More than a pipe holds, then a long silence of the other member.
    let long = "word ".repeat(100_000);
    for (args, input) in [
        (
            &["chat", "--jsonl", "--new"][..],
            "/auto 0\n{\"say\": \"One?\"}\n",
        ),
        (&["chat", "--plain", "--new"], "/auto 0\nOne?\n"),
        (&["ask", "--jsonl", "One?"], ""),
    ] {
        let home = Home::scripted(&[
            ("ann", json!({"runs": [[{"text": long}]]})),
            (
                "bob",
                json!({"runs": [[{"text": "Half.\n\n"}, {"sleep_ms": 600_000}]]}),
            ),
        ]);
        let mut child = home
            .kd(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let mut lines = child.stdin.take().expect("piped");
        lines.write_all(input.as_bytes()).expect("written");
        let lines = (args[0] == "chat").then_some(lines);
        let thread = support::until("the answer", || {
            let thread = home.threads().first()?.clone();
            let answers = whole(&thread);
            let asked = thread.join(".stream-bob.jsonl").exists();
            (answers.len() == 2 && asked).then_some(thread)
        });
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
        let bob = support::until("the end of the turn", || {
            let messages = whole(&thread);
            messages.into_values().find(|message| message.from == "bob")
        });
        assert_eq!(bob.status, Some(Status::Interrupted), "{args:?}");
        assert_eq!(child.try_wait().expect("waited"), None, "{args:?}");
        drop(lines);
        child.kill().expect("killed");
        child.wait().expect("waited");
    }
}

/// A line that is neither a message nor a command is refused with its number, and the next one works.
#[test]
fn a_wrong_line_of_a_program_is_refused_with_its_number() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    let mut child = home
        .kd(&["chat", "--jsonl", "--new"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || {
        let long = vec![b'x'; 33 << 20];
        let lines: [&[u8]; 7] = [
            b"/auto 0\nplain words\n[\"a\"]\n{\"say\": 1}\n{\"shout\": \"a\"}\n",
            b"{\"say\": \"a\", \"say\": \"b\"}\n{\"say\": \"\xff\"}\n{\"say\": \"\0\"}\n",
            &long,
            b"\n/mute nobody\n/nothing\n",
            b"{\"say\": \"a\\\n",
            b"/thread council-none\n",
            b"{\"say\": \"Is it so?\"}\n",
        ];
        lines.iter().for_each(|line| {
            stdin.write_all(line).expect("written");
        });
    });
    let said = Said::of(child.wait_with_output().expect("it ends"));
    writer.join().expect("written");
    let events: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let refused: Vec<&str> = events
        .iter()
        .filter(|event| event["event"] == "op_refused")
        .filter_map(|event| event["why"].as_str())
        .collect();
    let numbers: Vec<u32> = (2..=13).collect();
    let named: Vec<u32> = refused
        .iter()
        .filter_map(|why| {
            why.strip_prefix("line ")?
                .split([' ', ':'])
                .next()?
                .parse()
                .ok()
        })
        .collect();
    // The machine refuses to mute nobody: its event has no line.
    let own: Vec<u32> = numbers.into_iter().filter(|number| *number != 10).collect();
    assert_eq!(named, own, "{refused:?}");
    assert_eq!(refused.len(), 12, "{refused:?}");
    let messages = support::announced(said.out.as_bytes());
    let bodies: Vec<&str> = messages.iter().map(|message| &*message.body).collect();
    assert_eq!(bodies, ["Is it so?", "Yes."]);
}

/// A member that one window removes is not asked by another window of the same thread.
#[test]
fn a_member_removed_in_one_window_is_not_asked_by_another() {
    let says = |text: &str| json!({"runs": [[{"text": text}], [{"text": text}], [{"text": text}]]});
    let home = Home::scripted(&[("ann", says("I am ann.")), ("bob", says("I am bob."))]);
    let mut chat = Chat::open(&home, &["chat", "--plain"]);
    chat.waits_for(&["/help lists"]);
    chat.types("/auto 0\r");
    chat.waits_for(&["no turns follow the answers"]);
    let said = Said::fed(home.kd(&["chat"]), "/remove bob\n");
    assert!(said.out.contains("takes part no longer"), "{}", said.out);
    chat.types("One?\r");
    chat.waits_for(&[
        "another window removed bob from this thread",
        "kd: your turn (1 answer)",
    ]);
    let said = Said::fed(home.kd(&["chat"]), "/add bob\n");
    assert!(said.out.contains("takes part from now on"), "{}", said.out);
    chat.types("Two?\r");
    chat.waits_for(&[
        "another window added bob again",
        "kd: your turn (2 answers)",
    ]);
    chat.types("/quit\r");
    let said = chat.ends_with(0);
    assert_eq!(said.matches("I am bob.").count(), 1, "{said}");
}

/// `/deliberate` asks no member either that another window removed, in a chat with the settings' members and in one with
/// named members.
#[test]
fn a_removed_member_is_not_asked_by_a_deliberation() {
    let says = |answer: &str| {
        let reply = json!({"answer": answer, "confidence": 0.9, "reason": "r", "choice": answer});
        json!({"runs": [[{"text": reply.to_string()}]]})
    };
    for args in [
        &["chat", "--plain"][..],
        &["chat", "--plain", "-m", "ann,bob,cyd"],
    ] {
        let home = Home::scripted(&[
            ("ann", says("391")),
            ("bob", says("391")),
            ("cyd", says("391")),
        ]);
        let mut chat = Chat::open(&home, args);
        chat.waits_for(&["/help lists"]);
        chat.types("/auto 0\r");
        chat.waits_for(&["no turns follow the answers"]);
        let said = Said::fed(home.kd(&["chat"]), "/remove bob\n");
        assert!(said.out.contains("takes part no longer"), "{}", said.out);
        chat.types("/deliberate What is 17*23?\r");
        chat.waits_for(&["another window removed bob from this thread", "your turn"]);
        chat.types("/quit\r");
        let said = chat.ends_with(0);
        assert!(
            said.contains("ann: asked") && said.contains("cyd: asked"),
            "{said}"
        );
        assert!(!said.contains("bob: asked"), "{said}");
    }
}

/// A removal by another window is apart from the user's own `/mute`, and ends with the user's own `/add`.
#[test]
fn a_removal_elsewhere_is_no_mute() {
    let says = |text: &str| json!({"runs": [[{"text": text}], [{"text": text}], [{"text": text}]]});
    let home = || Home::scripted(&[("ann", says("I am ann.")), ("bob", says("I am bob."))]);
    let other = |home: &Home, line: &str| {
        let said = Said::fed(home.kd(&["chat"]), line);
        assert!(said.out.contains("takes part"), "{}", said.out);
    };
    for args in [
        &["chat", "--plain"][..],
        &["chat", "--plain", "-m", "ann,bob"],
    ] {
        let home = home();
        let mut chat = Chat::open(&home, args);
        chat.waits_for(&["/help lists"]);
        chat.types("/auto 0\r");
        chat.waits_for(&["no turns follow the answers"]);
        other(&home, "/remove bob\n");
        chat.types("One?\r");
        chat.waits_for(&["another window removed bob", "kd: your turn (1 answer)"]);
        chat.forgets();
        chat.types("/unmute bob\r");
        chat.waits_for(&["/add bob brings it back"]);
        chat.types("/add bob\r");
        chat.waits_for(&["bob takes part from now on", "/help lists"]);
        chat.types("Two?\r");
        chat.waits_for(&["bob  | I am bob.", "kd: your turn (2 answers)"]);
        chat.types("/quit\r");
        chat.ends_with(0);
    }
    let home = home();
    let mut chat = Chat::open(&home, &["chat", "--plain"]);
    chat.waits_for(&["/help lists"]);
    chat.types("/auto 0\r");
    chat.waits_for(&["no turns follow the answers"]);
    chat.types("/mute bob\r");
    chat.waits_for(&["bob: muted"]);
    other(&home, "/remove bob\n");
    chat.types("One?\r");
    chat.waits_for(&["another window removed bob", "kd: your turn (1 answer)"]);
    other(&home, "/add bob\n");
    chat.forgets();
    chat.types("Two?\r");
    chat.waits_for(&["another window added bob again", "kd: your turn (1 answer)"]);
    chat.types("@bob And you?\r");
    chat.waits_for(&["bob is muted: unmute it first"]);
    chat.types("/quit\r");
    let said = chat.ends_with(0);
    assert!(!said.contains("I am bob."), "{said}");
}

/// A `thread.json` that cannot be read loses nothing: the members are those that spoke, and a change of them says what to do.
#[test]
fn a_torn_thread_file_is_not_overwritten() {
    let says = |text: &str| json!({"runs": [[{"text": text}], [{"text": text}], [{"text": text}]]});
    let home = Home::scripted(&[("ann", says("I am ann.")), ("bob", says("I am bob."))]);
    Said::fed(home.kd(&["chat", "--new", "-m", "ann"]), "/auto 0\nOne?\n");
    let file = home.threads()[0].join("thread.json");
    let sound = std::fs::read_to_string(&file).expect("read");
    for (text, advice) in [
        (&sound[..sound.len() / 2], "repair"),
        ("", "repair"),
        ("[]", "repair"),
        (
            &sound.replacen('{', "{\"kd_version\": 99, ", 1),
            "update kd",
        ),
    ] {
        std::fs::write(&file, text).expect("written");
        let said = Said::fed(home.kd(&["chat"]), "/auto 0\n/add bob\nTwo?\n");
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains("thread.json"), "{text}: {all}");
        assert!(all.contains(advice), "{text}: {all}");
        let now = std::fs::read_to_string(&file).expect("read");
        assert_eq!(now, text, "it stays as it is");
        assert!(!all.contains("I am bob."), "{all}");
    }
    // While the chat is open, too.
    std::fs::write(&file, &sound).expect("written");
    let mut chat = Chat::open(&home, &["chat", "--plain"]);
    chat.waits_for(&["/help lists"]);
    let newer = sound.replacen('{', "{\"kd_version\": 99, ", 1);
    std::fs::write(&file, &newer).expect("written");
    chat.types("/add bob\r");
    chat.waits_for(&["update kd"]);
    chat.types("/quit\r");
    chat.ends_with(0);
    assert_eq!(std::fs::read_to_string(&file).expect("read"), newer);
    std::fs::write(&file, &sound).expect("written");
    let said = Said::fed(home.kd(&["chat"]), "/add bob\n");
    assert!(said.out.contains("takes part from now on"), "{}", said.out);
}

/// A program that drives kd and does not read its output can still end it.
#[test]
fn a_reader_that_does_not_read_makes_nothing_deaf() {
    // More than a pipe holds.
    let long = "word ".repeat(100_000);
    for args in [
        &["chat", "--jsonl", "--new"][..],
        &["chat", "--plain", "--new"],
        &["ask", "--jsonl", "One?"],
    ] {
        let home = Home::scripted(&[("ann", json!({"runs": [[{"text": long}]]}))]);
        let mut child = home
            .kd(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let mut lines = child.stdin.take();
        match &mut lines {
            Some(lines) if args[..2] == ["chat", "--jsonl"] => lines
                .write_all(b"/auto 0\n{\"say\": \"One?\"}\n")
                .expect("written"),
            Some(lines) if args[0] == "chat" => {
                lines.write_all(b"/auto 0\nOne?\n").expect("written")
            }
            // A question may come from standard input.
            _ => drop(lines.take()),
        }
        support::until("the answer", || {
            let thread = home.threads().first()?.clone();
            thread.join("0002-ann.md").exists().then_some(())
        });
        let pid = rustix::process::Pid::from_child(&child);
        let status = support::until("the end", || {
            // A process that has ended takes no signal.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            child.try_wait().expect("waited")
        });
        assert_eq!(status.code(), Some(130), "{args:?}");
    }
}

/// Choices in a pipe wait for each other, like every line that can only be used while nobody speaks.
#[test]
fn two_choices_in_a_pipe_are_both_written() {
    for way in [&["--plain"][..], &["--jsonl"]] {
        let says = |text: &str| json!({"runs": [[{"text": text}]]});
        let home = Home::scripted(&[("ann", says("A.")), ("bob", says("B."))]);
        let args = [&["chat", "--new"][..], way].concat();
        let first = match way {
            ["--jsonl"] => "{\"say\": \"Which?\"}",
            _ => "Which?",
        };
        let input = format!("/auto 0\n{first}\n/pick ann\n/pick bob\n/pick ann\n");
        let said = Said::fed(home.kd(&args), &input);
        assert!(!said.out.contains("members are speaking"), "{}", said.out);
        let messages = whole(&home.threads()[0]).into_values();
        let chosen: Vec<String> = messages
            .filter(|message| message.body.starts_with("I choose"))
            .map(|message| message.body.to_string())
            .collect();
        assert_eq!(chosen.len(), 3, "{chosen:?}: {}", said.out);
        assert!(chosen[1].contains("bob"), "{chosen:?}");
    }
}

/// Returns how many answers each message of the user got, in order.
fn answered(thread: &Path) -> Vec<(String, usize)> {
    let mut answered: Vec<(String, usize)> = Vec::new();
    for message in whole(thread).into_values() {
        match (message.is_king(), answered.last_mut()) {
            (true, _) => answered.push((message.body.trim().to_owned(), 0)),
            (false, Some(last)) => last.1 += 1,
            (false, None) => panic!("an answer to nothing"),
        }
    }
    answered
}

/// All input of a pipe is there at once: a command still acts only on the lines after it.
#[test]
fn commands_in_a_pipe_leave_earlier_lines_alone() {
    for way in ["--plain", "--jsonl"] {
        let says = |text: &str| json!({"runs": [[{"text": text}]]});
        let home = Home::scripted(&[("ann", says("A.")), ("bob", says("B."))]);
        let say = |text: &str| match way {
            "--jsonl" => format!("{{\"say\": \"{text}\"}}"),
            _ => text.to_owned(),
        };
        let [one, two, three, four] = ["one", "two", "three", "four"].map(say);
        let input = format!("/auto 0\n{one}\n{two}\n/mute bob\n{three}\n/mode manual\n{four}\n");
        let said = Said::fed(home.kd(&["chat", "--new", way]), &input);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let counts: Vec<usize> = answered(&home.threads()[0])
            .iter()
            .map(|(_, n)| *n)
            .collect();
        assert_eq!(counts, [2, 2, 1, 0], "{way}: {}", said.out);
    }
}

#[test]
fn mutes_and_the_mode_stay_in_the_next_thread() {
    let says = |text: &str| json!({"runs": [[{"text": text}]]});
    let home = Home::scripted(&[("ann", says("A.")), ("bob", says("B."))]);
    let input = "/mute bob\n/mode sequential\none\n/new\ntwo\n/mode\n";
    let said = piped(&home, &["chat", "--new"], input);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let threads = home.threads();
    assert_eq!(threads.len(), 2);
    for thread in &threads {
        assert_eq!(answered(thread)[0].1, 1, "{}", said.out);
    }
    let told = said.out.lines().rfind(|line| line.contains("mode s"));
    assert!(
        told.is_some_and(|l| l.contains("sequential")),
        "{}",
        said.out
    );
}

#[test]
fn an_export_replaces_only_an_earlier_export_of_the_thread() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "A."}]]}))]);
    let notes = home.work().join("notes.md");
    std::fs::write(&notes, "my notes\n").expect("written");
    let input =
        "/auto 0\none\n/export notes.md\n/export own.md\n/mode\ntwo\n/mark right\n/export own.md\n";
    let said = piped(&home, &["chat", "--new"], input);
    assert!(
        said.out
            .contains("notes.md exists and is no export of this thread"),
        "{}",
        said.out
    );
    assert_eq!(std::fs::read_to_string(&notes).expect("read"), "my notes\n");
    let own = std::fs::read_to_string(home.work().join("own.md")).expect("read");
    assert!(own.contains("two"), "{own}\n{}", said.out);
}

#[test]
fn the_beginning_of_several_threads_names_them() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "A."}]]}))]);
    assert_eq!(home.run(&["ask", "Well?"]).code, Some(0));
    let one = home.threads().remove(0);
    for name in ["council-4138", "council-42e3"] {
        let other = one.with_file_name(name);
        std::fs::create_dir(&other).expect("made");
        std::fs::copy(one.join("0001-king.md"), other.join("0001-king.md")).expect("copied");
    }
    for args in [&["show", "4"][..], &["chat", "4"]] {
        let said = home.run(args);
        assert!(
            said.err
                .contains("`council-4` could be council-4138, council-42e3")
                || said.err.contains("could be") && said.err.contains("council-4138"),
            "{}",
            said.err
        );
    }
}

#[test]
fn wrong_keys_are_mistakes_of_the_settings() {
    let home = Home::new(&json!({"chat": {"keys": {"nosuch": "ctrl+x", "send": ""}}}));
    for more in [&[][..], &["--json"]] {
        let said = home.run(&[&["config", "check"][..], more].concat());
        assert_eq!(said.code, Some(2), "{}", said.out);
        let told = said.out + &said.err;
        assert!(
            told.contains("nosuch") && told.contains("chat.keys.send: it needs a key"),
            "{told}"
        );
    }
    std::fs::write(
        home.config_file(),
        r#"{"chat": {"keys": {"search": "ctrl+o"}}}"#,
    )
    .expect("written");
    assert_eq!(home.run(&["config", "check"]).code, Some(0));
}
