//! Edits, undo, history and folded pastes.

use super::*;

fn with(text: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert(text);
    editor
}

#[test]
fn typed_letters_are_undone_by_words_and_a_paste_at_once() {
    let mut editor = Editor::default();
    for c in "two words".chars() {
        editor.insert(&c.to_string());
    }
    editor.insert("\na paste\nof three lines");
    editor.undo();
    assert_eq!(editor.text(), "two words");
    editor.undo();
    assert_eq!(editor.text(), "two ");
    editor.redo();
    assert_eq!(editor.text(), "two words");
    editor.clear();
    editor.undo();
    assert_eq!(editor.text(), "two words", "what Escape cleared comes back");
}

#[test]
fn a_cursor_never_stands_inside_of_what_is_seen_as_one() {
    let mut editor = with("a👩‍👩‍👧é");
    editor.go(Move::Left);
    editor.go(Move::Left);
    assert_eq!(editor.cursor(), 1);
    editor.delete(Move::Right);
    assert_eq!(editor.text(), "aé");
    let mut joined = with("e");
    joined.insert("\u{301}");
    joined.delete(Move::Left);
    assert_eq!(joined.text(), "");
}

#[test]
fn rows_break_between_words_and_hold_everything() {
    let editor = with("the quick brown fox\nabcdefghijklmnop\n\n日本語日本語");
    let rows: Vec<&str> = editor
        .rows(10)
        .into_iter()
        .map(|r| &editor.text()[r])
        .collect();
    assert_eq!(
        rows,
        [
            "the quick ",
            "brown fox",
            "abcdefghij",
            "klmnop",
            "",
            "日本語日本",
            "語"
        ]
    );
}

#[test]
fn up_and_down_keep_the_column() {
    let mut editor = with("a long line\nx\nanother one");
    assert!(editor.vertical(-1, 40));
    assert_eq!(editor.cursor(), "a long line\nx".len());
    assert!(editor.vertical(-1, 40));
    assert_eq!(editor.cursor(), "a long line".len());
    assert!(!editor.vertical(-1, 40), "the edge is reported");
    assert!(editor.vertical(2, 40));
    assert_eq!(editor.cursor(), editor.text().len());
}

#[test]
fn what_was_sent_comes_back_and_what_was_written_is_kept() {
    let mut editor = Editor::new(vec!["first".into(), "second".into(), "first again".into()]);
    editor.insert("fi");
    assert!(editor.recall(-1));
    assert_eq!(editor.text(), "first again");
    assert!(editor.recall(-1));
    assert_eq!(editor.text(), "first", "`second` does not begin with `fi`");
    assert!(!editor.recall(-1));
    assert!(editor.recall(1));
    assert!(editor.recall(1));
    assert_eq!(editor.text(), "fi");
}

#[test]
fn words_and_lines_are_killed_and_yanked() {
    let mut editor = with("one two three");
    editor.delete(Move::WordLeft);
    assert_eq!(editor.text(), "one two ");
    editor.go(Move::LineStart);
    editor.yank();
    assert_eq!(editor.text(), "threeone two ");
    editor.delete(Move::LineEnd);
    assert_eq!(editor.text(), "three");
}

/// Ten lines, as one paste.
fn lines(word: &str) -> String {
    format!("{word}\n").repeat(10)
}

#[test]
fn the_words_of_a_folded_paste_can_be_typed() {
    let mut editor = with("[pasted 10 lines] ");
    editor.paste(&lines("a"));
    editor.insert(" [pasted 10 lines] ");
    editor.paste(&lines("b"));
    let words = "[pasted 10 lines]";
    assert_eq!(editor.text(), [words; 4].join(" "));
    let whole = format!("{words} {} {words} {}", lines("a"), lines("b"));
    assert_eq!(editor.whole(), whole);
    // A typed one is edited by letters, a folded one as a whole.
    editor.delete(Move::Left);
    assert_eq!(editor.text(), format!("{words} {words} {words} "));
    editor.delete(Move::Left);
    editor.delete(Move::Left);
    assert_eq!(
        editor.whole(),
        format!("{words} {} [pasted 10 lines", lines("a"))
    );
    for _ in 0..3 {
        editor.undo();
    }
    assert_eq!(editor.whole(), whole, "undo brings the texts back");
    assert_eq!(editor.take(), whole);
}

#[test]
fn a_folded_paste_stays_with_its_words() {
    let mut editor = with("x\n");
    editor.paste(&lines("a"));
    editor.insert("\ny");
    editor.go(Move::Start);
    editor.insert("first ");
    assert_eq!(editor.whole(), format!("first x\n{}\ny", lines("a")));
    // Moving up and down never ends inside of the words.
    editor.vertical(1, 40);
    editor.insert("<");
    let after = editor.whole().into_owned();
    assert!(after.contains(&lines("a")), "{after}");
    // Deleted words bring their text back.
    editor.go(Move::LineStart);
    editor.delete(Move::LineEnd);
    assert!(!editor.whole().contains(&lines("a")));
    editor.go(Move::End);
    editor.yank();
    editor.yank();
    assert_eq!(editor.whole().matches(&lines("a")).count(), 2);
    // A draft comes back with its texts after looking at earlier messages.
    let mut editor = Editor::new(vec!["[pasted 10 lines] sent".into()]);
    editor.paste(&lines("a"));
    assert!(editor.recall(-1));
    assert_eq!(editor.whole(), "[pasted 10 lines] sent");
    assert!(editor.recall(1));
    assert_eq!(editor.whole(), lines("a"));
}

proptest::proptest! {
    #[test]
    fn no_edit_breaks_it(
        steps in proptest::collection::vec((0u8..19, "[a👩‍👧é日 \n\u{301}]{0,4}"), 0..60),
        columns in 1usize..20,
    ) {
        let mut editor = Editor::new(vec!["sent".into(), "日本\nx".into()]);
        for (what, text) in steps {
            match what {
                0..=4 => editor.insert(&text),
                5 => editor.delete(Move::Left),
                6 => editor.delete(Move::Right),
                7 => editor.delete(Move::WordLeft),
                8 => editor.delete(Move::LineEnd),
                9 => editor.undo(),
                10 => editor.redo(),
                11 => editor.yank(),
                12 => { editor.vertical(-1, columns); }
                13 => { editor.vertical(1, columns); }
                14 => editor.go(Move::WordLeft),
                15 => editor.go(Move::WordRight),
                16 => { editor.recall(-1); }
                17 => editor.paste(&lines(&text)),
                _ => { editor.recall(1); }
            }
            let rows = editor.rows(columns);
            let (row, _) = editor.place(&rows);
            proptest::prop_assert!(row < rows.len());
            proptest::prop_assert!(editor.text().is_char_boundary(editor.cursor()));
            let all: String = rows.iter().map(|r| &editor.text()[r.clone()]).collect();
            proptest::prop_assert_eq!(all, editor.text().replace('\n', ""));
        }
    }
}

#[test]
fn only_typed_words_may_name_files() {
    let mut editor = Editor::new(vec!["about @old.md".into()]);
    let type_in = |editor: &mut Editor, text: &str| {
        for c in text.chars() {
            editor.insert(&c.to_string());
        }
    };
    type_in(&mut editor, "see @a.md");
    assert!(editor.is_typed() && editor.typed() == "see @a.md");
    // A folded paste is left out; the rest was typed.
    let mail = "mail\n".repeat(20) + "@b.md";
    editor.paste(&mail);
    assert!(!editor.is_typed() && editor.typed().starts_with("see @a.md[pasted"));
    assert!(editor.take().contains("@b.md"));
    // Every way in which other words come into the input.
    let ways: [fn(&mut Editor); 5] = [
        |editor| editor.paste("see @c.md"),
        |editor| editor.set("see @c.md"),
        |editor| assert!(editor.recall(-1)),
        |editor| {
            editor.set("@c.md");
            editor.delete(Move::Start);
            editor.insert("x ");
            editor.yank();
        },
        |editor| editor.give_back("see @c.md", false),
    ];
    for (at, way) in ways.iter().enumerate() {
        type_in(&mut editor, "");
        way(&mut editor);
        type_in(&mut editor, " and @d.md");
        assert!(!editor.is_typed() && editor.typed().is_empty(), "{at}");
        editor.clear();
        type_in(&mut editor, "see @e.md");
        assert!(editor.is_typed(), "{at}: nothing is left of it");
        editor.undo();
        editor.undo();
        editor.undo();
        editor.take();
        assert!(editor.is_typed(), "{at}");
    }
    // What could not be sent is as it was, and so is a draft that was put aside.
    editor.give_back("see @f.md", true);
    assert!(editor.is_typed());
    assert!(!editor.stash() && editor.stash());
    assert_eq!((editor.typed(), editor.is_typed()), ("see @f.md", true));
    // Pasted words without an @ name no file.
    editor.paste(" thanks");
    assert!(editor.is_typed());
}
