use super::*;

fn of(text: &str) -> Diff {
    read(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn names(diff: &Diff) -> Vec<(Option<&str>, Option<&str>)> {
    let files = diff.files.iter();
    files
        .map(|f| (f.old.as_deref(), f.new.as_deref()))
        .collect()
}

/// A header and the names before and after.
type Row = (&'static str, Option<&'static str>, Option<&'static str>);

/// Headers that git and diff write above the hunks of a file.
const HEADS: &[Row] = &[
    ("--- a/x.rs\n+++ b/x.rs\n", Some("x.rs"), Some("x.rs")),
    ("--- i/x.rs\n+++ w/x.rs\n", Some("x.rs"), Some("x.rs")),
    ("--- x.rs\n+++ x.rs\n", Some("x.rs"), Some("x.rs")),
    ("--- a/x.rs\n+++ a/x.rs\n", Some("a/x.rs"), Some("a/x.rs")),
    (
        "--- x.rs.orig\t2020-01-01\n+++ x.rs\t2020-01-02\n",
        Some("x.rs.orig"),
        Some("x.rs"),
    ),
    (
        "diff --git a/n.rs b/n.rs\nnew file mode 100644\n--- /dev/null\n+++ b/n.rs\n",
        None,
        Some("n.rs"),
    ),
    (
        "diff --git a/n.rs b/n.rs\ndeleted file mode 100644\n--- a/n.rs\n+++ /dev/null\n",
        Some("n.rs"),
        None,
    ),
    (
        "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n",
        None,
        Some("e"),
    ),
    (
        "diff --git a/a b.rs b/a b.rs\nold mode 100644\nnew mode 100755\n",
        Some("a b.rs"),
        Some("a b.rs"),
    ),
    (
        "diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n",
        Some("o"),
        Some("n"),
    ),
    (
        "diff --git a/x b/y b/x b/z\nsimilarity index 90%\nrename from x b/y\nrename to x b/z\n",
        Some("x b/y"),
        Some("x b/z"),
    ),
    (
        "diff --git \"a/\\303\\251\\t\\\"q\" \"b/\\303\\251\\t\\\"q\"\nBinary files differ\n",
        Some("é\t\"q"),
        Some("é\t\"q"),
    ),
    (
        "--- \"a/l\\nx\"\n+++ \"b/l\\nx\"\n",
        Some("l\nx"),
        Some("l\nx"),
    ),
    (
        "diff --cc m.rs\nindex 1,2..3\n--- a/m.rs\n+++ b/m.rs\n",
        Some("m.rs"),
        Some("m.rs"),
    ),
    (
        "diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ\n",
        Some("i.png"),
        Some("i.png"),
    ),
];

#[test]
fn the_names_of_every_head_are_read() {
    for (head, old, new) in HEADS {
        assert_eq!(names(&of(head)), [(*old, *new)], "{head}");
        // A second file after it makes no difference.
        let two = format!("{head}diff --git a/2 b/2\n--- a/2\n+++ b/2\n@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(names(&of(&two)).len(), 2, "{two}");
    }
}

/// Returns the numbers of the added lines.
fn added(file: &FileDiff) -> Vec<u32> {
    let numbered = file.hunks.iter().flat_map(Hunk::numbered);
    let added = numbered.filter(|(_, line)| line.kind == LineKind::Added);
    added.filter_map(|(number, _)| number).collect()
}

#[test]
fn lines_are_counted_so_that_a_file_cannot_end_its_hunk() {
    let diff = of(
        "--- a/q.sql\n+++ b/q.sql\n@@ -3,3 +3,4 @@ fn f()\n context\n--- a comment\n+++ b/other\n+@@ -1 +1 @@\n \n\\ No newline at end of file\n-- \n2.40\n",
    );
    assert_eq!(diff.files.len(), 1);
    let file = &diff.files[0];
    assert_eq!(file.counts(), (2, 1));
    assert_eq!(file.hunks[0].heading, "fn f()");
    assert_eq!(added(file), [4, 5]);
    assert_eq!(file.after()[&5], "@@ -1 +1 @@");
    assert_eq!(file.after()[&6], "");
}

#[test]
fn a_merge_is_read_against_all_its_parents() {
    let diff = of(
        "diff --cc m\n--- a/m\n+++ b/m\n@@@ -1,3 -1,2 +1,3 @@@\n  same\n- ours\n -theirs\n++both\n +from ours\n",
    );
    let kinds: Vec<LineKind> = diff.files[0].hunks[0]
        .lines
        .iter()
        .map(|l| l.kind)
        .collect();
    use LineKind::{Added, Context, Removed};
    assert_eq!(kinds, [Context, Removed, Removed, Added, Added]);
}

#[test]
fn mails_windows_and_cut_spaces_are_read() {
    let text = "From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n x.rs | 2 +-\n\ndiff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n-- \n2.40\n";
    let diff = of(text);
    assert_eq!(diff.counts(), (1, 1));
    assert_eq!(of(&text.replace('\n', "\r\n")), diff);
}

#[test]
fn what_is_cut_short_is_refused_with_its_line() {
    for (hunk, line) in [
        ("@@ -1,2 +1,2 @@\n a\n", 3),
        ("@@ -1,2 +1,2 @@\n a\ndiff --git a/y b/y\n", 5),
        ("@@ -1,2 +1,1 @@\n+a\n+b\n", 5),
        ("@@ nonsense @@\n", 3),
        ("@@ -1,99999999999 +1 @@\n", 3),
    ] {
        let text = format!("--- a/x\n+++ b/x\n{hunk}");
        let error = read(&text).expect_err(hunk);
        assert_eq!(error.line, line, "{hunk}: {error}");
    }
    assert_eq!(of("no diff at all\n@@ a social line\n"), Diff::default());
}

#[test]
fn no_text_makes_the_reader_fail_in_another_way() {
    // Pieces of diffs in random order, cut anywhere: a seeded random walk.
    let pieces = [
        "diff --git a/x b/y\n",
        "diff --git \"a/\\30",
        "--- a/x\n",
        "+++ b/x\n",
        "--- /dev/null\n",
        "@@ -1,2 +1,3 @@ f\n",
        "@@@ -1 -1 +1 @@@\n",
        "@@ -0,0 +1 @@\n",
        " a\n",
        "+b\n",
        "-c\n",
        "\n",
        "\\ No newline\n",
        "é",
        "\"",
        "rename from ",
        "Binary files a and b differ\n",
        "GIT binary patch\n",
        "diff --cc m\n",
        "\r\n",
        "\u{1b}]0;x\n",
        "@@",
        "++x\n",
        " +x\n",
    ];
    let mut seed: u64 = 7;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let mut read_ones = 0;
    for _ in 0..20_000 {
        let text: String = (0..next(14)).map(|_| pieces[next(pieces.len())]).collect();
        let Ok(mut diff) = read(&text) else { continue };
        read_ones += usize::from(!diff.files.is_empty());
        diff.clean();
        let parts = split(&diff, 64);
        let text_of_parts: String = parts.iter().map(|part| part.text.as_str()).collect();
        let heads = text_of_parts.lines().filter(|row| row.starts_with("=== "));
        assert!(heads.count() >= diff.files.len(), "{text:?}");
        assert!(diff.clean().is_empty(), "cleaning twice: {text:?}");
    }
    assert!(read_ones > 1000, "{read_ones}");
}

#[test]
fn hidden_characters_are_taken_out_and_told() {
    let mut diff = of("--- a/x\n+++ b/x\n@@ -1 +1,3 @@\n a\n+b\u{202e}c\n+d\u{2028}e\u{1b}[2J\n");
    assert_eq!(diff.clean(), [("x".to_owned(), 2), ("x".to_owned(), 3)]);
    let after = diff.files[0].after();
    assert_eq!((after[&2], after[&3]), ("bc", "d e"));
}

#[test]
fn parts_hold_every_line_once_and_stay_within_their_bound() {
    let mut text = String::new();
    for file in 0..30 {
        let folder = ["b", "a", "c/d"][file % 3];
        text += &format!("--- a/{folder}/f{file}\n+++ b/{folder}/f{file}\n@@ -1 +1,41 @@\n a\n");
        for line in 0..40 {
            text += &format!("+line {line} of {file}\n");
        }
    }
    let diff = of(&text);
    let parts = split(&diff, 4000);
    assert!(parts.len() > 5 && parts.iter().all(|p| p.text.len() <= 4000));
    let folders: Vec<&str> = parts
        .iter()
        .flat_map(|p| &p.files)
        .map(|f| f.rsplit_once('/').expect("a folder").0)
        .collect();
    assert!(folders.is_sorted(), "{folders:?}");
    let whole: String = parts.iter().map(|p| p.text.as_str()).collect();
    for file in 0..30 {
        for line in 0..40 {
            let row = format!("{:>5} + line {line} of {file}\n", line + 2);
            assert_eq!(whole.matches(&row).count(), 1, "{row}");
        }
    }
    // A hunk longer than a part is split between lines, each piece with its number and file.
    let parts = split(&diff, 400);
    assert!(
        parts
            .iter()
            .all(|p| p.text.len() <= 400 && p.text.starts_with("=== "))
    );
}

#[test]
fn a_rename_is_read_whatever_its_names_look_like() {
    for (old, new) in [
        ("src/a.rs", "src/much_longer.rs"),
        ("src/much_longer.rs", "a.rs"),
        ("a b", "b a c"),
        ("same.rs", "emas.rs"),
        ("x", "../../o"),
    ] {
        for word in ["rename", "copy"] {
            let text = format!(
                "diff --git a/{old} b/{new}\nsimilarity index 100%\n{word} from {old}\n{word} to {new}\n"
            );
            let files = of(&text).files;
            let names = files.first().map(|f| (f.old.as_deref(), f.new.as_deref()));
            assert_eq!(names, Some((Some(old), Some(new))), "{text}");
        }
    }
}

#[test]
fn lines_before_a_change_are_known_by_their_numbers() {
    let diff = of("--- a/x\n+++ b/x\n@@ -3,3 +3,2 @@\n a\n-b\n-c\n+d\n");
    let before: Vec<_> = diff.files[0].before().into_iter().collect();
    assert_eq!(before, [(3, "a"), (4, "b"), (5, "c")]);
}

#[test]
fn lines_of_which_only_the_beginning_is_shown_are_named() {
    let long = "x".repeat(LINE_BYTES_MAX);
    let diff = of(&format!(
        "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n-{long}y\n+{long}\n+{long}y\n"
    ));
    assert_eq!(diff.cut_lines(), [("x", 0), ("x", 3)]);
}

/// Quotes a name as git does.
fn git_quoted(prefix: &str, name: &[u8]) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if name.iter().all(is_plain) {
        return format!("{prefix}{}", String::from_utf8_lossy(name));
    }
    let mut out = format!("\"{prefix}");
    for byte in name {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            byte if is_plain(byte) => out.push(char::from(*byte)),
            byte => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out + "\""
}

/// Names that git can track.
const NAMES: &[&[u8]] = &[
    b"x.rs",
    b"~x.rs",
    b"x\\..\\y",
    b"C:\\",
    b"a  b",
    b" a",
    b"a ",
    b" ",
    b"`a`",
    b"\"a\"",
    b"'a'",
    b"a\tb",
    b"a\nb",
    b"a\r",
    b"a\x1b[2Jb",
    b"-x",
    b"--- a",
    b"+++ b",
    b"a---b",
    b"a/x",
    b"b/x",
    b"a/a/x",
    b"dev/null",
    b"\xff.rs",
    b"\xfe.rs",
    b"\\xff.rs",
    b"\xf4\x8f\xbf\xbf.rs",
    "é".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{200b}".as_bytes(),
    "x.rs\u{200b}".as_bytes(),
    "x.rs\u{202e}".as_bytes(),
    "x.rs (2)".as_bytes(),
    "模型".as_bytes(),
    b":(top)x",
    b"a => b",
    b"GIT binary patch",
    &[b'l'; 399],
    &[b'l'; 400],
    &[b'l'; 401],
    &[b'l'; 402],
    &[b'l'; 4000],
];

#[test]
fn every_name_that_git_tracks_is_read_and_has_a_shown_name_of_its_own() {
    let mut text = String::new();
    for name in NAMES {
        let [old, new] = ["a/", "b/"].map(|prefix| git_quoted(prefix, name));
        // Git ends a name with a space by a tab.
        let tab = if name.contains(&b' ') { "\t" } else { "" };
        text += &format!(
            "diff --git {old} {new}\n--- {old}{tab}\n+++ {new}{tab}\n@@ -1 +1 @@\n-a\n+b\n"
        );
        text += &format!("diff --git {old} {new}\nold mode 100644\nnew mode 100755\n");
    }
    let mut diff = of(&text);
    let read: Vec<&str> = diff.files.iter().map(FileDiff::path).collect();
    let wanted: Vec<String> = NAMES
        .iter()
        .flat_map(|name| [decoded(name), decoded(name)])
        .collect();
    assert_eq!(read, wanted);
    let names = diff.shown_names();
    assert_eq!(names.len(), NAMES.len());
    let shown: std::collections::BTreeSet<&String> = names.values().collect();
    assert_eq!(shown.len(), NAMES.len(), "{names:#?}");
    for (path, shown) in &names {
        assert_eq!(shown_name(shown), *shown, "{path:?}");
        assert!(shown.chars().count() <= NAME_CHARS_MAX, "{path:?}");
        assert!(
            !shown.contains(['\n', '\t', '\u{1b}', '\u{202e}']),
            "{shown:?}"
        );
        assert!(!shown.is_empty());
    }
    for plain in ["x.rs", "a  b", " a", "a ", "x.rs (2)", "a---b", "\\xff.rs"] {
        assert_eq!(names[plain], plain);
    }
    diff.clean();
    assert!(diff.clean().is_empty(), "cleaning twice");
}

/// A diff without its names, and what it does to line endings.
const ENDINGS: &[(&str, &str)] = &[
    (
        "@@ -1,2 +1,2 @@\n-a\n-b\n+a\r\n+b\r\n",
        "line endings LF to CRLF",
    ),
    (
        "@@ -1,2 +1,2 @@\n-a\r\n-b\r\n+a\n+b\n",
        "line endings CRLF to LF",
    ),
    (
        "@@ -1,2 +1,2 @@\n a\n-b\n+b\r\n",
        "line endings LF to mixed",
    ),
    (
        "@@ -1,2 +1,2 @@\n a\r\n-b\n+b\r\n",
        "line endings mixed to CRLF",
    ),
    ("@@ -0,0 +1 @@\n+a\r\n", "line endings CRLF"),
    (
        "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n",
        "no newline at the end now",
    ),
    (
        "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n",
        "newline at the end now",
    ),
    (
        "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
        "",
    ),
    (
        "@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n",
        "",
    ),
    ("@@ -1,2 +1,2 @@\n a\n-b\n+c\n", ""),
    ("@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", ""),
    ("@@ -1 +0,0 @@\n-a\r\n", ""),
    // A whole mail with CRLF.
    ("@@ -1 +1 @@\r\n-a\r\n+b\r\n", ""),
    ("@@ -0,0 +1 @@\r\n+b\r\n", ""),
];

#[test]
fn line_endings_that_lines_do_not_show_are_facts() {
    for (hunk, fact) in ENDINGS {
        let diff = of(&format!(
            "--- a/x\n+++ b/x\n{hunk}--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
        ));
        let facts: Vec<String> = diff.files[0].facts().collect();
        assert_eq!(facts.join(", "), *fact, "{hunk:?}");
        assert_eq!(diff.files[1].facts().count(), 0, "{hunk:?}");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test of time")]
fn thousands_of_names_that_look_alike_are_told_apart_in_time() {
    let before = std::time::Instant::now();
    let text: String = (0..20_000)
        .map(|at: u32| {
            let marks = |c: char| if c == '1' { '\u{200b}' } else { '\u{200c}' };
            let hidden: String = format!("{at:b}").chars().map(marks).collect();
            format!("--- /dev/null\n+++ b/x{hidden}.rs\n@@ -0,0 +1 @@\n+a\n")
        })
        .collect();
    let names = of(&text).shown_names();
    let shown: std::collections::BTreeSet<&String> = names.values().collect();
    assert_eq!(shown.len(), 20_000);
    assert!(names.values().any(|name| name == "x.rs (20000)"));
    // Squares take minutes.
    assert!(before.elapsed().as_secs() < 20, "{:?}", before.elapsed());
}

/// The header of a file, and what it says besides lines.
const FACTS: &[(&str, &str)] = &[
    (
        "old mode 100644\nnew mode 100755\n",
        "changed x (+0 -0, mode 100644 to 100755)",
    ),
    (
        "new file mode 100755\n",
        "added x (+0 -0, executable, empty)",
    ),
    ("new file mode 100644\n", "added x (+0 -0, empty)"),
    ("deleted file mode 100644\n", "deleted x (+0 -0, empty)"),
    (
        "new file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc/passwd\n",
        "added x (+1 -0, symbolic link)",
    ),
    (
        "index 1..2 120000\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "changed x (+1 -1, symbolic link)",
    ),
    (
        "index 1..2 160000\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "changed x (+1 -1, submodule, only its commit is shown)",
    ),
    (
        "new file mode 100644\nindex 0..2\nBinary files /dev/null and b/x differ\n",
        "added x (binary)",
    ),
    (
        "index 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "changed x (+1 -1)",
    ),
    (
        "old mode 9\nnew mode 99999999999\nindex 1..2 junk\n",
        "changed x (+0 -0)",
    ),
];

#[test]
fn what_lines_do_not_show_is_said() {
    for (head, said) in FACTS {
        let diff = of(&format!("diff --git a/x b/x\n{head}"));
        assert_eq!(diff.summary(), format!("{said}\n"), "{head}");
        let facts: Vec<String> = diff.files[0].facts().collect();
        let part = &split(&diff, PART_BYTES_MAX)[0].text;
        assert!(facts.iter().all(|fact| part.contains(fact)), "{part}");
    }
}

#[test]
fn only_a_header_of_git_says_that_binary_data_follows() {
    let literal = "GIT binary patch\nliteral 9000000000\nzcmV\n\n";
    let plain = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n a\n+GIT binary patch\n";
    for (text, has) in [
        (format!("diff --git a/x b/x\n{literal}"), true),
        (
            format!("diff --git a/x b/x\nnew file mode 100644\nindex 0..1\n{literal}"),
            true,
        ),
        (format!("diff --git nonsense\n{literal}"), true),
        (format!("{plain}diff --git a/y b/y\n{literal}"), true),
        (
            format!("diff --git a/x b/x\r\n{}", literal.replace('\n', "\r\n")),
            true,
        ),
        (format!("Subject: GIT binary patch\n\n{plain}"), false),
        (
            format!("Subject: [PATCH] read a\n GIT binary patch\n\n{plain}"),
            false,
        ),
        (
            format!("Subject: x\n\nGIT binary patch\n\n---\n{plain}"),
            false,
        ),
        (
            format!("{plain}-- \n2.40\n\nFrom 1\nSubject: y\n\nGIT binary patch\n{plain}"),
            false,
        ),
        (plain.to_owned(), false),
    ] {
        assert_eq!(of(&text).has_literals, has, "{text}");
    }
}

#[test]
fn lines_beyond_the_largest_number_have_none() {
    for (first, count) in [
        (u32::MAX, 1),
        (u32::MAX, 3),
        (u32::MAX - 1, 4),
        (0, 2),
        (1, 1),
    ] {
        let context = " a\n".repeat(count);
        let mut diff = of(&format!(
            "--- a/x\n+++ b/x\n@@ -{first},{count} +{first},{} @@\n{context}+b\n",
            count + 1
        ));
        diff.clean();
        let file = &diff.files[0];
        let known = |more| (u64::from(u32::MAX - first) + 1).min((count + more) as u64) as usize;
        assert_eq!(file.after().len(), known(1), "{first} {count}");
        assert_eq!(file.before().len(), known(0), "{first} {count}");
        assert!(!split(&diff, 64).is_empty());
        assert!(diff.cut_lines().is_empty() && added(file).len() <= 1);
    }
}

/// Heads of files without any line, and whether their contents differ.
const TEXTLESS: &[(&str, bool)] = &[
    ("diff --git a/x b/x\nindex 0fdf397..e65626a 100644\n", true),
    (
        "diff --git a/o b/n\nsimilarity index 66%\nrename from o\nrename to n\nindex 0fdf397..e65626a\n",
        true,
    ),
    (
        "diff --git a/o b/n\nsimilarity index 66%\nrename from o\nrename to n\n",
        true,
    ),
    ("diff --git a/x b/x\ndissimilarity index 90%\n", true),
    (
        "diff --git a/x b/x\ndeleted file mode 100644\nindex 0fdf397..0000000\n",
        true,
    ),
    (
        "diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n",
        false,
    ),
    (
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
        false,
    ),
    (
        "diff --git a/x b/x\nnew file mode 100644\nindex 0000000..e69de29\n",
        false,
    ),
    (
        "diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n",
        false,
    ),
    (
        "diff --git a/x b/x\nindex 0fdf397..e65626a 100644\nBinary files a/x and b/x differ\n",
        false,
    ),
    (
        "diff --git a/x b/x\nindex 0fdf397..e65626a 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        false,
    ),
];

#[test]
fn contents_that_differ_without_a_line_are_noticed() {
    for (text, textless) in TEXTLESS {
        let diff = of(text);
        assert_eq!(diff.files.len(), 1, "{text}");
        assert_eq!(diff.files[0].textless, *textless, "{text}");
        assert_eq!(
            diff.summary().contains("text not shown"),
            *textless,
            "{text}"
        );
        assert!(diff.unread.is_none(), "{text}");
    }
}

#[test]
fn files_that_only_a_line_names_are_files() {
    let file = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    for (line, path) in [
        (
            "Submodule my sub 1234567..89abcde:\n  > a commit\n  < another\n",
            "my sub",
        ),
        ("Submodule sub 0000000...89abcde (new submodule)\n", "sub"),
    ] {
        for text in [
            format!("{file}{line}"),
            format!("{line}{file}"),
            line.to_owned(),
        ] {
            let diff = of(&text);
            let module = diff.files.iter().find(|f| f.is_submodule()).expect(&text);
            assert_eq!(module.path(), path, "{text}");
            assert!(diff.unread.is_none(), "{text}");
        }
        // In a mail it is prose.
        assert_eq!(of(&format!("Subject: a\n\n{file}{line}")).files.len(), 1);
    }
    let plain = "diff -r a/x b/x\n1\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    for (line, path, binary) in [
        ("Binary files a/i.py and b/i.py differ\n", "i.py", true),
        ("Files a/i.py and b/i.py differ\n", "i.py", true),
        ("Only in b/src: new.py\n", "b/src/new.py", false),
    ] {
        for text in [format!("{plain}{line}"), format!("{line}{plain}")] {
            let diff = of(&text);
            let hidden = diff.files.iter().find(|f| f.path() == path).expect(&text);
            assert_eq!(
                (hidden.binary, hidden.textless),
                (binary, !binary),
                "{text}"
            );
            assert_eq!(diff.files.len(), 2, "{text}");
        }
    }
}

#[test]
fn lines_of_another_diff_program_are_counted() {
    let file = "diff --git a/x b/x\nindex 1234567..89abcde 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n";
    let show = "commit 1234567\nAuthor: a\nDate:   b\n\n    message\n\n x.py | 2 +-\n 1 file changed, 1 insertion(+)\n\n";
    for known in [
        file.to_owned(),
        format!("{file}{file}"),
        format!("{show}{file}{show}{file}"),
        format!("hi before all files\n{file}"),
        format!(
            "From 1234567 Mon Sep 17\nSubject: a\n\nb\n---\n{file}-- \n2.39\n\nFrom 1 Mon\nprose\n{file}"
        ),
        format!("Date: today\nSubject: a\n\n{file}prose\n"),
        "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\nIndex: x\n=====\n".to_owned(),
    ] {
        assert_eq!(of(&known).unread, None, "{known}");
    }
    for (text, unread) in [
        (format!("{file}hi b.py /tmp/b.py\nmore\n{file}"), (9, 2)),
        (
            format!("{file}diff --git a/y b/y\nindex 1234567..89abcde\nhi y\n"),
            (11, 1),
        ),
    ] {
        assert_eq!(of(&text).unread, Some(unread), "{text}");
    }
}
