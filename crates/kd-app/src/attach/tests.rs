use super::*;
use kd_core::media::MediaKind;
use rustix::fs::{CWD, FileType, Mode};
use std::os::unix::fs::symlink;

struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let work = dir.path().join("work");
        std::fs::create_dir_all(work.join("src")).expect("made");
        std::fs::write(work.join("src/main.rs"), "fn main() {}\n").expect("written");
        std::fs::write(work.join("my notes.md"), "# Notes\n").expect("written");
        std::fs::write(work.join("claude"), "a file\n").expect("written");
        std::fs::write(work.join(".env"), "KEY=x\n").expect("written");
        std::fs::write(work.join(".env.example"), "KEY=\n").expect("written");
        std::fs::write(work.join("shot.png"), b"\x89PNG\r\n\x1a\n\0").expect("written");
        std::fs::write(work.join("latin"), b"caf\xe9").expect("written");
        std::fs::write(dir.path().join("out.txt"), "outside\n").expect("written");
        symlink("../out.txt", work.join("link")).expect("linked");
        symlink(".env", work.join("harmless.txt")).expect("linked");
        symlink("src", work.join("folder")).expect("linked");
        Self { dir }
    }

    fn find(&self, typed: &str, options: &[&str]) -> Result<Attaching, UserError> {
        let known = [SeatName::new("claude").expect("a name")];
        let options: Vec<PathBuf> = options.iter().map(PathBuf::from).collect();
        Attaching::find(typed, &known, &options, &self.env())
    }

    fn env(&self) -> Env {
        Env::of([("HOME", self.dir.path().to_owned())]).in_folder(self.dir.path().join("work"))
    }

    /// The notices about a message.
    fn lines_of(&self, found: &Attaching) -> String {
        found.missing(&self.env()).join("\n")
    }

    /// The file outside of the working folder.
    fn out(&self) -> String {
        let out = self.dir.path().canonicalize().expect("there");
        out.join("out.txt").display().to_string()
    }

    fn names(&self, typed: &str) -> String {
        let found = self.find(typed, &[]).expect("found");
        let names: Vec<&str> = found.files.iter().map(|f| f.shown.as_str()).collect();
        names.join(" ")
    }
}

#[test]
fn a_file_that_exists_is_attached_and_anything_else_is_text() {
    let folder = Folder::new();
    for (typed, names) in [
        ("What is wrong in @src/main.rs?", "src/main.rs"),
        (
            "@./src/../src/main.rs and @src/main.rs:3",
            "./src/../src/main.rs",
        ),
        (
            "@\"my notes.md\", @folder/main.rs.",
            "my notes.md folder/main.rs",
        ),
        ("@claude, @missing.rs, @src, @src/, @dataclass", ""),
        ("`@src/main.rs` \"@src/main.rs\" a@src/main.rs", ""),
        ("> @src/main.rs", ""),
    ] {
        assert_eq!(folder.names(typed), names, "{typed}");
    }
    let read = folder.find("@src/main.rs @\"my notes.md\"", &["src/main.rs"]);
    let read = read.and_then(|found| found.read(&[])).expect("read");
    assert_eq!(
        read.blocks,
        [
            "[attached: `src/main.rs`, 13 bytes]\n```rust\nfn main() {}\n```",
            "[attached: `my notes.md`, 8 bytes]\n```markdown\n# Notes\n```",
        ]
    );
    assert_eq!(
        read.lines[0],
        "attached src/main.rs: text, 13 bytes, about 15 tokens"
    );
}

#[test]
fn the_cost_is_told_where_every_price_is_known() {
    let folder = Folder::new();
    let found = folder.find("@src/main.rs", &[]).expect("found");
    let price = Price::per_million(100.0, 100.0);
    let line = |prices: &[Option<Price>]| found.read(prices).expect("read").lines.remove(0);
    assert!(line(&[Some(price), Some(price)]).ends_with("tokens, $0.0030 for 2 members"));
    assert!(line(&[Some(price)]).ends_with("tokens, $0.0015 for 1 member"));
    let chip = |typed: &str, prices: &[Option<Price>]| {
        folder.find(typed, &[]).expect("found").line(prices)
    };
    assert_eq!(
        chip("@src/main.rs", &[Some(price)]).as_deref(),
        Some("attaches src/main.rs: 13 bytes, about 4 tokens, $0.0004 for 1 member")
    );
    assert_eq!(
        chip("@src/main.rs @\"my notes.md\"", &[]).as_deref(),
        Some("attaches 2 files: 21 bytes, about 6 tokens")
    );
    assert_eq!(
        chip("@.env", &[]).as_deref(),
        Some("asks first: .env may hold secrets")
    );
    assert_eq!(chip("@missing", &[]), None);
    for prices in [&[Some(price), None][..], &[Some(Price::default())], &[]] {
        assert!(line(prices).ends_with(" tokens"), "{prices:?}");
    }
}

#[test]
fn what_is_outside_or_may_hold_secrets_needs_consent() {
    let folder = Folder::new();
    let out = folder.out();
    let outside = format!("link (a link to {out}) is outside of this folder");
    for (typed, doubts) in [
        ("@src/main.rs @.env.example", None),
        ("@.env", Some(".env may hold secrets")),
        (
            "@harmless.txt",
            Some("harmless.txt (a link to .env) may hold secrets"),
        ),
        ("@link", Some(outside.as_str())),
        (
            "@../out.txt and @~/work/.env",
            Some("../out.txt is outside of this folder; ~/work/.env may hold secrets"),
        ),
    ] {
        let found = folder.find(typed, &[]).expect("found");
        assert_eq!(found.doubts().as_deref(), doubts, "{typed}");
    }
    let named = folder.find("", &[".env", "../out.txt"]).expect("found");
    assert_eq!(named.doubts(), None, "an option is consent");
    assert_eq!(named.read(&[]).expect("read").blocks.len(), 2);
    let mixed = folder.find("@.env", &[".env"]).expect("found");
    assert_eq!(mixed.doubts(), None, "the same file");
    let found = folder.find("@.env @link", &[]).expect("found");
    assert_eq!(found.options(), "--attach .env --attach link");
    let inside = folder.dir.path().join("work/.ssh/project");
    std::fs::create_dir_all(&inside).expect("made");
    std::fs::write(inside.join("plan.md"), "x").expect("written");
    let home = folder.dir.path().to_owned();
    let env = Env::of([("HOME", home)]).in_folder(&inside);
    let found = Attaching::find("@plan.md", &[], &[], &env).expect("found");
    assert_eq!(found.doubts(), None, "the user works there");
    let found = folder.find("@.ssh/project/plan.md", &[]).expect("found");
    assert!(
        found
            .doubts()
            .is_some_and(|doubts| doubts.ends_with("secrets"))
    );
}

#[test]
fn a_link_names_its_target_before_it_is_sent() {
    let folder = Folder::new();
    let out = folder.out();
    for (typed, options, line) in [
        (
            "",
            &["link"][..],
            format!("attached link (a link to {out}): text, 8 bytes"),
        ),
        (
            "@folder/main.rs",
            &[],
            "attached folder/main.rs (a link to src/main.rs): text, 13 bytes".to_owned(),
        ),
        (
            "@src/../src/./main.rs",
            &[],
            "attached src/../src/./main.rs: text, 13 bytes".to_owned(),
        ),
    ] {
        let read = folder
            .find(typed, options)
            .and_then(|found| found.read(&[]));
        let lines = read.expect("read").lines;
        assert!(lines[0].starts_with(&line), "{lines:?}");
    }
    let chip = folder.find("@folder/main.rs", &[]).expect("found");
    assert!(
        chip.line(&[]).is_some_and(
            |line| line.starts_with("attaches folder/main.rs (a link to src/main.rs): ")
        )
    );
}

#[test]
fn the_advised_command_names_the_same_file() {
    let folder = Folder::new();
    let home = folder.dir.path();
    let long = format!("{}.env", "n".repeat(200));
    for name in [
        "my secrets/.env",
        "it's.env",
        "-x.env",
        "a\nb.env",
        long.as_str(),
    ] {
        let path = home.join("work").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, "x").expect("written");
    }
    std::fs::write(home.join("my key.pem"), "x").expect("written");
    let at_home = format!("--attach '{}/my key.pem'", home.display());
    for (typed, options) in [
        ("@~/out.txt", "--attach ~/out.txt"),
        ("@\"~/my key.pem\"", at_home.as_str()),
        ("@\"my secrets/.env\"", "--attach 'my secrets/.env'"),
        ("@\"it's.env\"", "--attach 'it'\\''s.env'"),
        ("@-x.env", "--attach ./-x.env"),
        (&format!("@{long}"), &format!("--attach {long}")),
    ] {
        let found = folder.find(typed, &[]).expect("found");
        assert_eq!(found.options(), options, "{typed}");
    }
}

#[test]
fn a_file_that_takes_the_place_of_another_is_not_read() {
    let folder = Folder::new();
    let work = folder.dir.path().join("work");
    // The folder becomes a link after the file was found, checked and shown.
    let found = folder.find("@src/main.rs", &[]).expect("found");
    assert_eq!(found.doubts(), None);
    let other = folder.dir.path().join("other");
    std::fs::create_dir(&other).expect("made");
    std::fs::write(other.join("main.rs"), "stolen\n").expect("written");
    std::fs::rename(work.join("src"), work.join("was")).expect("moved");
    symlink(&other, work.join("src")).expect("linked");
    let read = found.read(&[]).expect("read");
    assert!(read.blocks[0].contains("fn main"), "{:?}", read.blocks);
    // A link on the way is not followed when the file is opened.
    let main = work.canonicalize().expect("there").join("src/main.rs");
    assert!(open(&main).is_err());
    assert!(open(&other.canonicalize().expect("there").join("main.rs")).is_ok());
}

#[test]
fn pictures_go_with_the_message_and_what_is_binary_is_only_named() {
    let folder = Folder::new();
    let found = folder
        .find("@shot.png @latin @src/main.rs", &[])
        .expect("found");
    let read = found.read(&[]).expect("read");
    let [shot] = &read.media[..] else {
        panic!("{:?}", read.media);
    };
    assert_eq!(&shot.bytes[..], b"\x89PNG\r\n\x1a\n\0");
    assert_eq!(read.blocks.len(), 2);
    assert_eq!(read.blocks[0], shot.block());
    assert_eq!(
        read.lines[..2],
        [
            "attached shot.png: PNG image, 9 bytes, about 1,600 tokens",
            "latin is a binary file, not UTF-8 text, a picture or a PDF document: only its name is sent; members that read files can open it",
        ]
    );
    let named = folder.find("", &["latin"]).expect("found");
    assert!(named.read(&[]).is_err());
    for (bytes, expected) in [
        (&b"GIF89a"[..], Kind::Media(MediaKind::Gif)),
        (b"%PDF-1.7", Kind::Media(MediaKind::Pdf)),
        (b"a\0b", Kind::Binary),
        (b"", Kind::Text),
        ("é".as_bytes(), Kind::Text),
    ] {
        assert_eq!(kind(bytes, false), expected);
    }
    let cut = &"é".as_bytes()[..1];
    assert_eq!(
        (kind(cut, true), kind(cut, false)),
        (Kind::Text, Kind::Binary)
    );
    let named = folder
        .find("@shot.png @src/main.rs @latin", &[])
        .expect("found");
    assert_eq!(
        named.line(&[]).as_deref(),
        Some(
            "attaches 2 files: 22 bytes, about 1,604 tokens; latin is a binary file: only its name is sent"
        )
    );
}

#[test]
fn each_kind_has_its_limits() {
    let folder = Folder::new();
    let file = |name: &str, head: &[u8], len: u64| {
        let path = folder.dir.path().join("work").join(name);
        std::fs::write(&path, head).expect("written");
        let file = File::options().write(true).open(path).expect("opened");
        file.set_len(len).expect("sparse");
    };
    let (png, pdf) = (&b"\x89PNG\r\n\x1a\n"[..], &b"%PDF-1.7"[..]);
    file("long.png", png, media::PICTURE_BYTES_MAX + 1);
    file("long.pdf", pdf, media::DOCUMENT_BYTES_MAX + 1);
    for (typed, why) in [
        ("@long.png", "at most 3.5 MiB"),
        ("@long.pdf", "at most 8.0 MiB"),
    ] {
        let found = folder.find(typed, &[]).expect("found");
        let line = found.line(&[]).expect("told");
        assert!(line.ends_with("too long to attach"), "{line}");
        let error = found.read(&[]).expect_err("too long");
        let cause = error.as_line();
        assert!(cause.contains(why), "{cause}");
    }
    for n in 0..3 {
        file(&format!("{n}.pdf"), pdf, media::DOCUMENT_BYTES_MAX);
    }
    let two = folder.find("@0.pdf @1.pdf", &[]).expect("found");
    assert_eq!(two.read(&[]).expect("read").media.len(), 2);
    let three = folder.find("@0.pdf @1.pdf @2.pdf", &[]).expect("found");
    let error = three.read(&[]).expect_err("too long");
    assert_eq!(
        error.what,
        "the attached pictures and documents have more than 16.0 MiB together"
    );
}

#[test]
fn pipes_devices_and_huge_files_neither_hang_nor_fill_the_memory() {
    let folder = Folder::new();
    let at = |name: &str| folder.dir.path().join("work").join(name);
    let pipe = rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0);
    pipe.expect("made");
    symlink("/dev/zero", at("zero")).expect("linked");
    symlink("loop", at("loop")).expect("linked");
    let huge = File::create(at("huge")).expect("made");
    huge.set_len(1 << 40).expect("sparse");
    assert_eq!(folder.names("@pipe @zero @loop @huge"), "huge");
    let found = folder.find("@huge", &[]).expect("found");
    let told = "huge has 1024.0 GiB: too long to attach";
    assert_eq!(found.line(&[]).as_deref(), Some(told));
    let error = found.read(&[]).expect_err("too long");
    assert_eq!(error.what, "huge has 1024.0 GiB");
    for option in ["pipe", "zero", "loop", "missing", "src"] {
        assert!(folder.find("", &[option]).is_err(), "{option}");
    }
    for name in ["pipe", "zero", "link", "src"] {
        let path = at("").canonicalize().expect("there").join(name);
        assert!(open(&path).is_err(), "{name} took a file's place");
    }
    for n in 0..5 {
        let text = "x".repeat(FILE_BYTES_MAX as usize);
        std::fs::write(at(&format!("big{n}")), text).expect("written");
    }
    let found = folder.find("@big0 @big1 @big2 @big3", &[]).expect("found");
    assert_eq!(found.read(&[]).expect("read").blocks.len(), 4);
    let found = folder
        .find("@big0 @big1 @big2 @big3 @big4", &[])
        .expect("found");
    assert!(found.read(&[]).is_err());
    let many: String = (0..40).map(|n| format!("@many{n} ")).collect();
    for n in 0..40 {
        std::fs::write(at(&format!("many{n}")), "x").expect("written");
    }
    assert!(folder.find(&many, &[]).is_err());
}

#[test]
fn a_path_without_a_file_is_told_and_a_package_or_a_decorator_is_not() {
    let folder = Folder::new();
    std::fs::write(folder.dir.path().join("work/conf.yml"), "a: 1\n").expect("written");
    let lines = |typed: &str| {
        let found = folder.find(typed, &[]).expect("found");
        folder.lines_of(&found)
    };
    for (typed, told) in [
        (
            "What is wrong in @sr/main.rs?",
            "no file sr/main.rs: did you mean @src/main.rs? It is sent as text",
        ),
        (
            "@main.rs, please",
            "no file main.rs: did you mean @src/main.rs? It is sent as text",
        ),
        ("@src/mian", "no file src/mian: it is sent as text"),
        (
            "see @\"my nots.md\"",
            "no file my nots.md: did you mean @my notes.md? It is sent as text",
        ),
        (
            "@confg.yml and @data.xml",
            "no file confg.yml: did you mean @conf.yml? It is sent as text\nno file data.xml: it is sent as text",
        ),
        ("@pic.webp", "no file pic.webp: it is sent as text"),
        (
            "@/etc",
            "/etc is a folder: nothing of it is attached; name a file, as in @/etc/NAME",
        ),
        (
            "@/dev/null",
            "/dev/null is no regular file: it is sent as text",
        ),
        (
            "@x.py, @x.py and @x.py.",
            "no file x.py: it is sent as text",
        ),
        (
            "@~/nothing-like-it",
            "no file ~/nothing-like-it: it is sent as text",
        ),
        (
            "read @./src/",
            "./src/ is a folder: nothing of it is attached; name a file, as in @./src/NAME",
        ),
    ] {
        assert_eq!(lines(typed), told, "{typed}");
    }
    for typed in [
        "@types/node or @angular/core",
        "@dataclass class A",
        "@app.route and @pytest.fixture",
        "@claude @all @somebody",
        "me@example.com, @example.com",
        "`@sr/main.rs`",
        "@.rs",
        "@1.5",
    ] {
        assert_eq!(lines(typed), "", "{typed}");
    }
}

/// A log pasted into a question has many such words.
#[test]
fn many_paths_without_files_are_told_in_a_few_lines() {
    let folder = Folder::new();
    let typed: Vec<String> = (0..900).map(|n| format!("@no{n}.rs")).collect();
    let found = folder.find(&typed.join(" "), &[]).expect("found");
    assert_eq!(
        found.missing.words.len(),
        256,
        "no more words are looked at"
    );
    let lines = folder.lines_of(&found);
    assert_eq!(lines.lines().count(), 6, "{lines}");
    assert!(
        lines.ends_with("and 251 words more like these: nothing is attached for them"),
        "{lines}"
    );
}

/// While the user is typing, nothing is looked for.
#[test]
fn the_working_folder_is_listed_when_a_message_is_sent_only() {
    let folder = Folder::new();
    let found = folder.find("@man.rs", &[]).expect("found");
    assert_eq!(found.line(&[]), None);
    // The file is made after the word was found: only the notice looks at the folder.
    std::fs::write(folder.dir.path().join("work/mann.rs"), "").expect("written");
    assert_eq!(
        folder.lines_of(&found),
        "no file man.rs: did you mean @mann.rs? It is sent as text"
    );
}
