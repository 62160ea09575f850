use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

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
        holds_key: &|_| false,
    };
    let ran = FolderTools::new([]).run(&work, &search("run", ""), &bounds);
    assert!(
        ran.text.contains("not all files were searched"),
        "{}",
        ran.text
    );
}
