use super::super::reading::lines;
use super::*;

fn change(functions: usize) -> Change {
    let mut text = String::new();
    for file in ["one", "two"] {
        text += &format!("--- a/src/{file}.rs\n+++ b/src/{file}.rs\n@@ -0,0 +1,{functions} @@\n");
        for at in 0..functions {
            text += &format!("+fn {file}_{at}() {{ /* {} */ }}\n", "x".repeat(1000));
        }
    }
    let diff = diff::read(&text).expect("a diff");
    Change {
        base: String::new(),
        head: String::new(),
        base_commit: None,
        head_commit: None,
        lines: lines(&diff),
        diff,
        uses: Vec::new(),
        notices: Vec::new(),
        elsewhere: false,
        left_out: Vec::new(),
        is_unread: false,
        settings_commit: None,
        odd: BTreeSet::new(),
        git: None,
        top: None,
    }
}

#[test]
fn every_part_of_a_large_change_names_the_functions_of_the_others() {
    let parts = change(80).parts();
    assert!(parts.len() > 1);
    for part in &parts {
        for file in ["one", "two"] {
            let row = format!("src/{file}.rs (+80 -0): {file}_0, {file}_1,");
            assert!(part.contains(&row), "{row}: {}", &part[..400]);
        }
        assert!(part.contains("one_7, …\n"), "{}", &part[..400]);
    }
    let [whole] = change(2).parts().try_into().expect("one part");
    assert!(whole.contains("src/one.rs (+2 -0)\n"));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test of time")]
fn large_changes_are_read_in_time() {
    let before = std::time::Instant::now();
    let functions: String = (0..80_000)
        .map(|at| format!("+fn f{at:06}() {{}}\n"))
        .collect();
    let one = format!("--- a/x\n+++ b/x\n@@ -0,0 +1,80000 @@\n{functions}");
    let mut change = change(1);
    change.diff = diff::read(&one).expect("a diff");
    assert!(change.parts().len() > 1);
    let binary =
        |at: u32| format!("diff --git a/{at} b/{at}\nBinary files a/{at} and b/{at} differ\n");
    let mut reading = Reading {
        diff: diff::read(&(0..80_000).map(binary).collect::<String>()).expect("a diff"),
        lines: Lines::new(),
        is_whole: true,
        left_out: Vec::new(),
    };
    reading.leave_out_unshown(false);
    reading.leave_out_unshown(false);
    assert_eq!(reading.left_out.len(), 80_000);
    // Squares take minutes.
    assert!(before.elapsed().as_secs() < 25, "{:?}", before.elapsed());
}

/// Line numbers of files, and the files in which findings can be checked.
type Numbers = (&'static [(&'static str, u32)], &'static [&'static str]);

const NUMBERS: &[Numbers] = &[
    (&[("a", 10), ("b", 900_000)], &["a", "b"]),
    (&[("a", 1_000_001), ("b", u32::MAX), ("c", 7)], &["c"]),
    (
        &[
            ("a", 999_999),
            ("b", 999_999),
            ("c", 999_999),
            ("d", 999_999),
            ("e", 999_999),
            ("z", 200),
        ],
        &["a", "b", "c", "z"],
    ),
    (
        &[
            ("a", 1_000_000),
            ("b", 1_000_000),
            ("c", 1_000_000),
            ("d", 1_000_000),
            ("e", 1_000_000),
            ("y", 90_000),
            ("z", 200),
        ],
        &["a", "b", "c", "y", "z"],
    ),
];

#[test]
fn a_file_with_unknown_lines_takes_no_room_of_others() {
    for (files, known) in NUMBERS {
        let hunk = |(file, line): &(&str, u32)| {
            format!("--- a/{file}\n+++ b/{file}\n@@ -{line} +{line} @@\n-a\n+b\n")
        };
        let text: String = files.iter().map(hunk).collect();
        let mut change = change(1);
        change.diff = diff::read(&text).expect("a diff");
        change.lines = lines(&change.diff);
        let found: Vec<String> = change.files().into_keys().collect();
        assert_eq!(found, *known, "{files:?}");
    }
}

#[test]
fn a_series_that_does_not_apply_keeps_the_lines_of_every_commit() {
    let hunk = |path: &str, hunk: &str| format!("--- a/{path}\n+++ b/{path}\n{hunk}");
    let text = [
        hunk("x", "@@ -1,2 +1,3 @@\n a\n+bug\n c\n"),
        hunk("x", "@@ -9,2 +10,2 @@\n-y\n+z\n w\n"),
        "diff --git a/l b/l\ndeleted file mode 100644\n--- a/l\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-old\n-file\n"
            .to_owned(),
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+target\n".to_owned(),
    ];
    let found = lines(&diff::read(&text.concat()).expect("a diff"));
    let numbered = |path: &str| -> Vec<(u32, &str)> {
        let known = found[path].iter();
        known
            .map(|(number, line)| (*number, line.as_str()))
            .collect()
    };
    assert_eq!(
        numbered("x"),
        [(1, "a"), (2, "bug"), (3, "c"), (10, "z"), (11, "w")]
    );
    assert_eq!(numbered("l"), [(1, "target")]);
}

/// A diff's hunk, and the lines that a code host accepts: new numbers with old ones, `None` for added lines.
type Row = (&'static str, &'static [(u32, Option<u32>)]);

const HUNKS: &[Row] = &[
    (
        "@@ -1,9 +1,10 @@\n a\n b\n c\n d\n e\n+x\n f\n g\n h\n i\n",
        &[
            (3, Some(3)),
            (4, Some(4)),
            (5, Some(5)),
            (6, None),
            (7, Some(6)),
            (8, Some(7)),
            (9, Some(8)),
        ],
    ),
    // A removed line is a change too.
    (
        "@@ -10,9 +10,8 @@\n a\n b\n c\n d\n-x\n e\n f\n g\n h\n",
        &[
            (11, Some(11)),
            (12, Some(12)),
            (13, Some(13)),
            (14, Some(15)),
            (15, Some(16)),
            (16, Some(17)),
        ],
    ),
    // Six lines between two changes are in one hunk; of seven, the middle one is not shown.
    (
        "@@ -1,6 +1,8 @@\n+x\n a\n b\n c\n d\n e\n f\n+y\n",
        &[
            (1, None),
            (2, Some(1)),
            (3, Some(2)),
            (4, Some(3)),
            (5, Some(4)),
            (6, Some(5)),
            (7, Some(6)),
            (8, None),
        ],
    ),
    (
        "@@ -1,7 +1,9 @@\n+x\n a\n b\n c\n d\n e\n f\n g\n+y\n",
        &[
            (1, None),
            (2, Some(1)),
            (3, Some(2)),
            (4, Some(3)),
            (6, Some(5)),
            (7, Some(6)),
            (8, Some(7)),
            (9, None),
        ],
    ),
    // Numbers at their end.
    (
        "@@ -4294967290,9 +4294967290,10 @@\n a\n b\n c\n d\n+x\n e\n f\n g\n h\n i\n",
        &[
            (4_294_967_291, Some(4_294_967_291)),
            (4_294_967_292, Some(4_294_967_292)),
            (4_294_967_293, Some(4_294_967_293)),
            (4_294_967_294, None),
            (4_294_967_295, Some(4_294_967_294)),
        ],
    ),
    (
        "@@ -4294967290,4 +1,5 @@\n+x\n a\n b\n c\n d\n",
        &[
            (1, None),
            (2, Some(4_294_967_290)),
            (3, Some(4_294_967_291)),
            (4, Some(4_294_967_292)),
        ],
    ),
];

#[test]
fn comments_are_possible_where_code_hosts_show_lines() {
    for (hunk, wanted) in HUNKS {
        let diff = diff::read(&format!("--- a/x\n+++ b/x\n{hunk}")).expect("a diff");
        let place = place(&diff.files[0]).expect("a place");
        let rows = place
            .rows
            .iter()
            .flat_map(|(first, last, _)| *first..=*last);
        let found: Vec<_> = rows
            .map(|line| (line, place.find(line).expect("a line of the diff")))
            .collect();
        assert_eq!(found, *wanted, "{hunk}");
    }
}
