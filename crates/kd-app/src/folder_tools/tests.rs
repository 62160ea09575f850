use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

static GOES_ON: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The walks of this test.
    pub(super) static WALKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn walks() -> usize {
    WALKS.with(std::cell::Cell::get)
}

const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
const OWN: &str = "a-key-that-a-service-knows";

struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let stage = Self { dir };
        for (path, text) in [
            ("src/main.rs", "fn main() {\n    run();\n}\n"),
            ("src/deep/run.rs", "pub fn run() {}\n// The END\n"),
            ("README.md", "Run it.\n"),
            (".github/ci.yml", "run: tests\n"),
            (".gitignore", "/target\n*.log\n"),
            ("target/out.rs", "fn run() {}\n"),
            ("app.log", "run\n"),
            ("src/.gitignore", "private/\n"),
            ("src/private/run.rs", "run\n"),
            (".git/config", "run\n"),
            (".kd/config.json", "run\n"),
            ("sub/.kd/x.md", "run\n"),
            (".env", "run\n"),
            (".env.example", "run\n"),
            ("sub/.ENV.local", "run\n"),
            ("id_rsa", "run\n"),
            (".ssh/known_hosts", "run\n"),
            ("token.txt", "run\n"),
            ("key.rs", &format!("// run\nconst KEY: &str = \"{OWN}\";\n")),
            (
                "notes.md",
                &format!("run with {TOKEN} now\nand hunter2hunter2\n"),
            ),
        ] {
            let path = stage.work().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        fs::write(stage.dir.path().join("outside.txt"), "run outside\n").expect("written");
        fs::create_dir(stage.dir.path().join("other")).expect("made");
        fs::write(stage.dir.path().join("other/run.rs"), "run outside\n").expect("written");
        symlink("../outside.txt", stage.work().join("link.txt")).expect("linked");
        symlink("../other", stage.work().join("linked")).expect("linked");
        symlink("src/main.rs", stage.work().join("inner.rs")).expect("linked");
        stage
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn run_within(&self, call: &FolderCall, bytes: usize) -> Ran {
        let variables = [
            ("MY_PASSWORD".to_owned(), "hunter2hunter2".to_owned()),
            ("EDITOR".to_owned(), "fn main() {".to_owned()),
        ];
        let bounds = Bounds {
            bytes,
            until: Instant::now() + Duration::from_secs(600),
            stop: &GOES_ON,
            holds_key: &|text| text.contains(OWN),
        };
        FolderTools::new(variables).run(&self.work(), call, &bounds)
    }

    fn run(&self, call: &FolderCall) -> Ran {
        self.run_within(call, 1 << 20)
    }

    fn lines(&self, call: &FolderCall) -> Vec<String> {
        let ran = self.run(call);
        assert!(!ran.failed, "{}", ran.text);
        let mut lines = ran.text.lines().map(str::to_owned);
        assert_eq!(lines.next().as_deref(), Some(DATA_LINE));
        lines.collect()
    }
}

fn list(path: &str) -> FolderCall {
    FolderCall::List { path: path.into() }
}

fn read(path: &str) -> FolderCall {
    lines(path, 1, None)
}

fn lines(path: &str, start: usize, end: Option<usize>) -> FolderCall {
    FolderCall::Read {
        path: path.into(),
        start,
        end,
    }
}

fn search(pattern: &str, path: &str) -> FolderCall {
    FolderCall::Search {
        pattern: pattern.into(),
        is_regex: false,
        ignores_case: false,
        path: path.into(),
    }
}

#[test]
fn files_are_listed_read_and_found() {
    let stage = Stage::new();
    assert_eq!(
        stage.lines(&list("src")),
        [
            "src/.gitignore (9 bytes)",
            "src/deep/run.rs (27 bytes)",
            "src/main.rs (25 bytes)"
        ]
    );
    let all = stage.lines(&list("")).join(" ");
    assert!(
        all.contains("README.md (") && all.contains(".github/ci.yml ("),
        "{all}"
    );
    assert_eq!(
        stage.lines(&lines("src/main.rs", 2, Some(9))),
        ["src/main.rs, lines 2 to 3 of 3:", "2\t    run();", "3\t}"]
    );
    assert_eq!(
        stage.lines(&search("run", "src")),
        [
            "src/deep/run.rs:1: pub fn run() {}",
            "src/main.rs:2:     run();"
        ]
    );
    assert_eq!(
        stage.lines(&search("run()", "src/main.rs")),
        ["src/main.rs:2:     run();"]
    );
    let call = FolderCall::Search {
        pattern: "^// the (end|start)$".into(),
        is_regex: true,
        ignores_case: true,
        path: String::new(),
    };
    assert_eq!(stage.lines(&call), ["src/deep/run.rs:2: // The END"]);
    assert_eq!(stage.lines(&search("nowhere", "")), ["(no line has it)"]);
}

/// Whatever a call names: what is not for members appears in no listing and no search, and cannot be read.
#[test]
fn nobody_gets_what_is_not_for_members() {
    let stage = Stage::new();
    let closed = [
        "target/out.rs",
        "app.log",
        "src/private/run.rs",
        ".git/config",
        ".GIT/config",
        ".kd/config.json",
        "sub/.kd/x.md",
        ".env",
        ".env.example",
        "sub/.ENV.local",
        "id_rsa",
        ".ssh/known_hosts",
        "token.txt",
        "key.rs",
        "link.txt",
        "linked/run.rs",
        "inner.rs",
    ];
    let listed = stage.lines(&list("")).join("\n");
    let found = stage.lines(&search("run", "")).join("\n");
    for path in closed {
        let ran = stage.run(&read(path));
        assert!(ran.failed, "{path}: {}", ran.text);
        assert!(!found.contains(path), "{path}: {found}");
        // Its name is no secret.
        assert!(
            path == "key.rs" || !listed.contains(path),
            "{path}: {listed}"
        );
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if !matches!(folder, "" | "sub") {
            for call in [list(folder), search("run", folder), search("run", path)] {
                let ran = stage.run(&call);
                assert!(
                    !ran.text.contains("run\n") && !ran.text.contains(": run"),
                    "{call}: {}",
                    ran.text
                );
            }
        }
    }
    assert!(
        !found.contains("outside") && !listed.contains("known_hosts"),
        "{found}"
    );
}

#[test]
fn secrets_are_masked_before_anything_is_searched() {
    let stage = Stage::new();
    let text = stage.lines(&read("notes.md")).join("\n");
    assert!(!text.contains(TOKEN) && !text.contains("hunter2"), "{text}");
    assert!(
        text.contains("1\trun with ghp_[secret") && text.contains("2\tand hu[secret"),
        "{text}"
    );
    for guess in ["ghp_abc", "hunter2"] {
        assert_eq!(
            stage.lines(&search(guess, "")),
            ["(no line has it)"],
            "{guess}"
        );
    }
    // The name of a file may be a secret.
    fs::write(stage.work().join(format!("of {TOKEN}.txt")), "needle").unwrap();
    let names = stage.lines(&list("")).join("\n");
    let hits = stage.lines(&search("needle", "")).join("\n");
    for text in [names, hits] {
        assert!(!text.contains(TOKEN) && text.contains("of ghp_["), "{text}");
    }
    // Other variables are no secrets.
    assert!(
        stage
            .lines(&read("src/main.rs"))
            .join("\n")
            .contains("fn main() {")
    );
}

#[test]
fn odd_files_are_told_and_results_are_bounded() {
    let stage = Stage::new();
    let work = stage.work();
    fs::write(work.join("shot.png"), b"\x89PNG\r\n\x1a\n\0").expect("written");
    fs::write(work.join("latin.txt"), b"caf\xe9\n").expect("written");
    fs::write(work.join("empty.txt"), "").expect("written");
    fs::write(work.join("escape.txt"), "a\u{1b}[2Jb\n").expect("written");
    let huge = fs::File::create(work.join("huge.txt")).expect("created");
    huge.set_len(1 << 40).expect("sparse");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        work.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .expect("a pipe");
    for (path, expected) in [
        ("shot.png", "is a binary file"),
        ("latin.txt", "is a binary file"),
        ("huge.txt", "has 1024.0 GiB: at most 4.0 MiB are read"),
        ("pipe", "pipe cannot be read"),
        ("nosuch.rs", "does not exist"),
        ("src", "is a folder"),
        ("target/out.rs", "left out by .gitignore, or a link"),
        (".env", "not for members"),
        ("key.rs", "holds a key of a service"),
    ] {
        let ran = stage.run(&read(path));
        assert!(
            ran.failed && ran.text.contains(expected),
            "{path}: {}",
            ran.text
        );
    }
    assert_eq!(
        stage.lines(&read("empty.txt")),
        ["empty.txt, lines 1 to 0 of 0:"]
    );
    assert_eq!(stage.lines(&read("escape.txt"))[1], "1\tab");
    let ran = stage.run(&lines("src/main.rs", 9, None));
    assert!(
        ran.failed && ran.text.contains("has only 3 lines"),
        "{}",
        ran.text
    );
    let bad = FolderCall::Search {
        pattern: "(".into(),
        is_regex: true,
        ignores_case: false,
        path: String::new(),
    };
    assert!(stage.run(&bad).text.contains("no regular expression"));
    let long: String = (1..5_000).map(|n| format!("line {n} has it\n")).collect();
    fs::write(work.join("long.txt"), long).expect("written");
    let ran = stage.run_within(&read("long.txt"), 2_000);
    assert!(
        ran.text.len() <= 2_000 && ran.text.len() > 1_500,
        "{}",
        ran.text.len()
    );
    let next = ran.text.rsplit_once("start_line ").map(|(_, next)| next);
    let next: usize = next
        .and_then(|next| next.trim_end_matches(')').parse().ok())
        .expect("a line");
    assert!(
        ran.text.contains(&format!("\n{}\tline", next - 1)),
        "{}",
        ran.text
    );
    let found = stage.lines(&search("has it", ""));
    assert_eq!(found.len(), FOUND_MAX + 1);
    assert!(
        found[FOUND_MAX].contains("narrower"),
        "{}",
        found[FOUND_MAX]
    );
    let ran = stage.run_within(&list(""), 400);
    assert!(
        ran.text.len() <= 400 && ran.text.contains("more files"),
        "{}",
        ran.text
    );
    // Without time, nothing is searched.
    let bounds = Bounds {
        bytes: 1 << 20,
        until: Instant::now(),
        stop: &GOES_ON,
        holds_key: &|_| false,
    };
    let stopped = Bounds {
        until: Instant::now() + Duration::from_secs(600),
        stop: &AtomicBool::new(true),
        ..bounds
    };
    for bounds in [bounds, stopped] {
        let ran = FolderTools::new([]).run(&work, &search("run", ""), &bounds);
        assert!(
            ran.text.contains("not all files were searched"),
            "{}",
            ran.text
        );
    }
}

/// Colour codes and characters that nobody sees hide no secret: what is sent is what was searched for secrets.
#[test]
fn a_secret_behind_a_colour_code_is_masked() {
    let stage = Stage::new();
    let zero = '\u{200b}';
    let (begin, end) = TOKEN.split_at(9);
    let text = format!(
        "\u{1b}[32m{TOKEN}\u{1b}[0m\n\u{1b}[1mhunter2hunter2\u{1b}[0m\n{begin}{zero}{end}\n"
    );
    fs::write(stage.work().join("ci.md"), text).expect("written");
    let text = stage.lines(&read("ci.md")).join("\n");
    assert!(
        !text.contains("ghp_abc") && !text.contains("hunter2hunter2"),
        "{text}"
    );
    for guess in ["ghp_abc", "hunter2"] {
        assert_eq!(
            stage.lines(&search(guess, "ci.md")),
            ["(no line has it)"],
            "{guess}"
        );
    }
    // Nor the key of a service.
    let (begin, end) = OWN.split_at(5);
    fs::write(stage.work().join("own.md"), format!("{begin}{zero}{end}")).expect("written");
    assert!(stage.run(&read("own.md")).failed);
}

/// Only `.gitignore` decides what is left out: a project, or a user of a folder above it, cannot take it back.
#[test]
fn no_other_file_opens_what_gitignore_names() {
    let stage = Stage::new();
    for path in [".ignore", "src/.ignore", "../.ignore", ".rgignore"] {
        fs::write(stage.work().join(path), "!*\n!app.log\n!private\n").expect("written");
    }
    for path in ["app.log", "src/private/run.rs", "target/out.rs"] {
        assert!(stage.run(&read(path)).failed, "{path}");
    }
    let listed = stage.lines(&list("")).join("\n");
    assert!(!listed.contains("app.log"), "{listed}");
    // Nor does one leave out files.
    fs::write(stage.work().join(".ignore"), "*\n").expect("written");
    assert!(!stage.run(&read("src/main.rs")).failed);
}

/// Rules count from the root of the checkout on, and outside of one from the folder on.
#[test]
fn rules_of_folders_above_the_checkout_do_not_count() {
    let stage = Stage::new();
    fs::write(stage.dir.path().join(".gitignore"), "*\n").expect("written");
    assert!(!stage.run(&read("src/main.rs")).failed);
    assert!(stage.run(&read("app.log")).failed);
    // In a folder of the checkout, the rules of its root count.
    let run = |path: &str| {
        let bounds = Bounds {
            bytes: 1 << 20,
            until: Instant::now() + Duration::from_secs(600),
            stop: &GOES_ON,
            holds_key: &|_| false,
        };
        FolderTools::new([]).run(&stage.work().join("src"), &read(path), &bounds)
    };
    fs::write(stage.work().join("src/app.log"), "run\n").expect("written");
    assert!(run("app.log").failed && !run("main.rs").failed);
    // Outside of a checkout, a folder is on its own.
    fs::remove_dir_all(stage.work().join(".git")).expect("removed");
    assert!(!run("main.rs").failed);
    assert!(!stage.run(&read("src/main.rs")).failed);
    assert!(stage.run(&read("app.log")).failed);
}

/// A search costs one walk, not one for each file.
#[test]
fn a_search_visits_each_folder_once() {
    let stage = Stage::new();
    for n in 0..40 {
        let path = stage.work().join(format!("many/{n}.rs"));
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, "it is here\n").expect("written");
    }
    let before = walks();
    assert_eq!(stage.lines(&search("it is here", "many")).len(), 40);
    assert_eq!(walks() - before, 1);
}

/// A pattern that takes long ends at the time, also within one file.
#[test]
fn a_slow_pattern_is_refused_or_ends_in_time() {
    let stage = Stage::new();
    let regex = |pattern: &str| FolderCall::Search {
        pattern: pattern.into(),
        is_regex: true,
        ignores_case: false,
        path: "long.rs".into(),
    };
    let file = stage.work().join("long.rs");
    fs::write(&file, "a".repeat(900_000) + "END").expect("written");
    // Only the beginning of a line is searched, which is told.
    let lines = stage.lines(&regex("END"));
    assert_eq!(
        lines,
        ["(no line has it; of long lines only the first 4000 characters were searched)"]
    );
    for pattern in [
        "(?:[a-z]{0,60}){0,60}[0-9]",
        "(?:[a-z][a-z0-9]?){0,2000}[A-Z]",
    ] {
        let ran = stage.run(&regex(pattern));
        assert!(
            ran.failed
                && ran
                    .text
                    .contains("no regular expression that can be searched"),
            "{}",
            ran.text
        );
    }
    // The time is looked at within a file: of its lines, only some are searched.
    fs::write(&file, "a\n".repeat(400_000)).expect("written");
    let looked = std::cell::Cell::new(0);
    let ended = || {
        looked.set(looked.get() + 1);
        looked.get() > 3
    };
    let pattern = Regex::new("b").expect("a pattern");
    let text = fs::read_to_string(&file).expect("read");
    let searched = lines_with(&text, &pattern, &ended, &mut |_, _| true);
    assert!(!searched.is_whole);
    assert_eq!(looked.get(), 4);
}

/// Folders of source are no files of secrets, whatever they are called.
#[test]
fn source_below_a_folder_called_token_is_read() {
    let stage = Stage::new();
    for path in ["src/token/mod.rs", "secrets/tests.rs", "credentials/a/b.rs"] {
        let file = stage.work().join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(file, "run\n").expect("written");
        assert!(!stage.run(&read(path)).failed, "{path}");
        let listed = stage.lines(&list("")).join("\n");
        assert!(listed.contains(path), "{listed}");
    }
    for path in [
        "secrets/token.txt",
        "secrets/id_rsa",
        "secrets/.env",
        "secrets/prod.json",
        "credentials/a/db.yml",
    ] {
        fs::write(stage.work().join(path), "run\n").expect("written");
        assert!(stage.run(&read(path)).failed, "{path}");
    }
    let listed = stage.lines(&list("secrets"));
    assert_eq!(listed, ["secrets/tests.rs (4 bytes)"]);
}

/// A `.gitignore` that is no file would block its reader for ever.
#[test]
fn a_pipe_called_gitignore_blocks_nobody() {
    let stage = Stage::new();
    let pipe = |path: PathBuf| {
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, rustix::fs::Mode::RWXU, 0)
            .expect("a pipe");
    };
    pipe(stage.work().join("odd/.gitignore"));
    fs::write(stage.work().join("odd/run.rs"), "run\n").expect("written");
    assert!(stage.run(&read("odd/run.rs")).failed);
    let found = stage.lines(&search("run", "")).join("\n");
    assert!(found.contains("src/main.rs") && !found.contains("odd/"));
    pipe(stage.work().join(".git/info/exclude"));
    assert!(stage.run(&read("src/main.rs")).failed);
}
