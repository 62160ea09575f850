//! Keys: one table that defines their actions, the help, and the hints below the log.

mod rebind;

pub use self::rebind::{Keymap, name};
use crate::editor::{Editor, Move};
use crate::keys::{Code, Key};

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    Send,
    Newline,
    Escape,
    Interrupt,
    Leave,
    Complete,
    CompleteBack,
    Up,
    Down,
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    DeleteBack,
    DeleteForward,
    DeleteWord,
    DeleteWordForward,
    DeleteToStart,
    DeleteToEnd,
    Yank,
    Undo,
    Redo,
    Search,
    Stash,
    Editor,
    PageUp,
    PageDown,
    LineUp,
    LineDown,
    Top,
    Bottom,
    KingBefore,
    KingAfter,
    Focus(u8),
    Everybody,
    Thinking,
    Retry,
    Copy,
    CopyCode,
    Rewind,
    MarkRight,
    MarkWrong,
    Read,
    Compare,
    Merge,
    Help,
    Redraw,
    Suspend,
}

/// A row of the table: keys, their action, and their help text. Rows without help are variants of the row above.
pub struct Row {
    /// The keys.
    pub keys: &'static [Key],
    /// Their action.
    pub action: Action,
    /// The name of the action in `chat.keys`.
    pub name: &'static str,
    /// Keys and meaning, as shown in the help.
    pub help: Option<(&'static str, &'static str)>,
}

const fn c(c: char) -> Key {
    Key::plain(Code::Char(c))
}

const fn p(code: Code) -> Key {
    Key::plain(code)
}

const fn row(
    keys: &'static [Key],
    action: Action,
    name: &'static str,
    help: Option<(&'static str, &'static str)>,
) -> Row {
    Row {
        keys,
        action,
        name,
        help,
    }
}

/// All keys with a special meaning.
pub const KEYS: &[Row] = &[
    row(
        &[p(Code::Enter)],
        Action::Send,
        "send",
        Some(("Enter", "send")),
    ),
    row(
        &[
            p(Code::Enter).shift(),
            p(Code::Enter).alt(),
            p(Code::Enter).ctrl(),
            c('j').ctrl(),
        ],
        Action::Newline,
        "newline",
        Some((
            "Ctrl+J, Alt+Enter, \\ Enter",
            "new line (Shift+Enter where the terminal supports it)",
        )),
    ),
    row(
        &[p(Code::Escape)],
        Action::Escape,
        "escape",
        Some((
            "Esc",
            "stop the members (keeps a draft); else clear the input; twice: edit your last message",
        )),
    ),
    row(
        &[c('c').ctrl()],
        Action::Interrupt,
        "interrupt",
        Some((
            "Ctrl+C",
            "clear the input; else stop the members; again quits",
        )),
    ),
    row(
        &[c('d').ctrl()],
        Action::Leave,
        "quit",
        Some(("Ctrl+D", "quit, if the input is empty")),
    ),
    row(
        &[p(Code::Tab)],
        Action::Complete,
        "complete",
        Some(("Tab", "complete @member, /command, @file")),
    ),
    row(
        &[p(Code::Tab).shift()],
        Action::CompleteBack,
        "complete-back",
        None,
    ),
    row(
        &[p(Code::Up), c('p').ctrl()],
        Action::Up,
        "up",
        Some(("Up, Down", "move; at the edge: earlier messages of yours")),
    ),
    row(&[p(Code::Down), c('n').ctrl()], Action::Down, "down", None),
    row(
        &[c('r').ctrl()],
        Action::Search,
        "search",
        Some((
            "Ctrl+R",
            "search your messages; again: older, Enter uses it",
        )),
    ),
    row(
        &[c('s').ctrl()],
        Action::Stash,
        "stash",
        Some(("Ctrl+S", "put the draft aside; take it back")),
    ),
    row(&[p(Code::Left), c('b').ctrl()], Action::Left, "left", None),
    row(
        &[p(Code::Right), c('f').ctrl()],
        Action::Right,
        "right",
        None,
    ),
    row(
        &[p(Code::Left).ctrl(), p(Code::Left).alt(), c('b').alt()],
        Action::WordLeft,
        "word-left",
        Some(("Alt+B, Alt+F", "a word left, right (Ctrl+Left, Ctrl+Right)")),
    ),
    row(
        &[p(Code::Right).ctrl(), p(Code::Right).alt(), c('f').alt()],
        Action::WordRight,
        "word-right",
        None,
    ),
    row(
        &[p(Code::Home), c('a').ctrl()],
        Action::LineStart,
        "line-start",
        Some((
            "Home, End",
            "of the line; of the thread if the input is empty (Ctrl+A, Ctrl+E: the line)",
        )),
    ),
    row(
        &[p(Code::End), c('e').ctrl()],
        Action::LineEnd,
        "line-end",
        None,
    ),
    row(
        &[
            p(Code::Backspace),
            c('h').ctrl(),
            p(Code::Backspace).shift(),
        ],
        Action::DeleteBack,
        "delete-back",
        None,
    ),
    row(
        &[p(Code::Delete)],
        Action::DeleteForward,
        "delete-forward",
        None,
    ),
    row(
        &[
            c('w').ctrl(),
            p(Code::Backspace).alt(),
            p(Code::Backspace).ctrl(),
        ],
        Action::DeleteWord,
        "delete-word",
        Some((
            "Ctrl+W, Ctrl+U, Ctrl+K",
            "delete the word, to the start, to the end of the line",
        )),
    ),
    row(
        &[c('d').alt(), p(Code::Delete).ctrl()],
        Action::DeleteWordForward,
        "delete-word-forward",
        None,
    ),
    row(
        &[c('u').ctrl()],
        Action::DeleteToStart,
        "delete-to-start",
        None,
    ),
    row(&[c('k').ctrl()], Action::DeleteToEnd, "delete-to-end", None),
    row(
        &[c('y').ctrl()],
        Action::Yank,
        "yank",
        Some(("Ctrl+Y", "paste what was deleted")),
    ),
    row(
        &[c('_').ctrl(), c('/').ctrl()],
        Action::Undo,
        "undo",
        Some(("Ctrl+_, Alt+_", "undo, redo")),
    ),
    row(&[c('_').alt()], Action::Redo, "redo", None),
    row(
        &[c('g').ctrl()],
        Action::Editor,
        "editor",
        Some(("Ctrl+G", "write in $VISUAL or $EDITOR")),
    ),
    row(
        &[p(Code::PageUp)],
        Action::PageUp,
        "page-up",
        Some(("PgUp, PgDn, wheel", "scroll (Shift+Up, Shift+Down: a line)")),
    ),
    row(&[p(Code::PageDown)], Action::PageDown, "page-down", None),
    row(&[p(Code::Up).shift()], Action::LineUp, "line-up", None),
    row(
        &[p(Code::Down).shift()],
        Action::LineDown,
        "line-down",
        None,
    ),
    row(
        &[p(Code::Home).ctrl()],
        Action::Top,
        "first-message",
        Some(("Ctrl+Home, Ctrl+End", "the first message, the newest")),
    ),
    row(
        &[p(Code::End).ctrl()],
        Action::Bottom,
        "newest-message",
        None,
    ),
    row(
        &[p(Code::Up).alt()],
        Action::KingBefore,
        "my-message-before",
        Some(("Alt+Up, Alt+Down", "your message before, after")),
    ),
    row(
        &[p(Code::Down).alt()],
        Action::KingAfter,
        "my-message-after",
        None,
    ),
    row(
        &[c('1').alt()],
        Action::Focus(1),
        "focus-1",
        Some(("Alt+1 … Alt+9", "only this member; Alt+0: all")),
    ),
    row(&[c('2').alt()], Action::Focus(2), "focus-2", None),
    row(&[c('3').alt()], Action::Focus(3), "focus-3", None),
    row(&[c('4').alt()], Action::Focus(4), "focus-4", None),
    row(&[c('5').alt()], Action::Focus(5), "focus-5", None),
    row(&[c('6').alt()], Action::Focus(6), "focus-6", None),
    row(&[c('7').alt()], Action::Focus(7), "focus-7", None),
    row(&[c('8').alt()], Action::Focus(8), "focus-8", None),
    row(&[c('9').alt()], Action::Focus(9), "focus-9", None),
    row(&[c('0').alt()], Action::Everybody, "focus-all", None),
    row(
        &[c('t').ctrl()],
        Action::Thinking,
        "thinking",
        Some(("Ctrl+T", "show or fold the thinking")),
    ),
    row(
        &[p(Code::F(5))],
        Action::Retry,
        "retry",
        Some(("F5", "ask failed members again")),
    ),
    row(
        &[p(Code::F(6))],
        Action::MarkRight,
        "mark-right",
        Some((
            "F6, F7",
            "mark the newest verdict right, wrong (/mark does more)",
        )),
    ),
    row(&[p(Code::F(7))], Action::MarkWrong, "mark-wrong", None),
    row(
        &[p(Code::F(8)), c('c').alt()],
        Action::Copy,
        "copy",
        Some(("F8", "copy the newest answer (/copy does more)")),
    ),
    row(
        &[p(Code::F(2))],
        Action::Read,
        "read",
        Some((
            "F2",
            "read: letters scroll, copy, compare, merge (j k n p g G, 1-9 0, t, c C, d, m, u)",
        )),
    ),
    row(
        &[p(Code::F(1))],
        Action::Help,
        "help",
        Some(("F1", "this help")),
    ),
    row(
        &[c('l').ctrl()],
        Action::Redraw,
        "redraw",
        Some(("Ctrl+L", "redraw the screen")),
    ),
    row(
        &[c('z').ctrl()],
        Action::Suspend,
        "suspend",
        Some(("Ctrl+Z", "suspend; `fg` resumes")),
    ),
];

/// Single letters in reading mode. None of them asks a member, which could cost money.
pub const READING: &[(char, Action)] = &[
    ('k', Action::LineUp),
    ('j', Action::LineDown),
    ('b', Action::PageUp),
    (' ', Action::PageDown),
    ('g', Action::Top),
    ('G', Action::Bottom),
    ('p', Action::KingBefore),
    ('n', Action::KingAfter),
    ('t', Action::Thinking),
    ('c', Action::Copy),
    ('C', Action::CopyCode),
    ('d', Action::Compare),
    ('m', Action::Merge),
    ('u', Action::Rewind),
    ('?', Action::Help),
    ('0', Action::Everybody),
    ('1', Action::Focus(1)),
    ('2', Action::Focus(2)),
    ('3', Action::Focus(3)),
    ('4', Action::Focus(4)),
    ('5', Action::Focus(5)),
    ('6', Action::Focus(6)),
    ('7', Action::Focus(7)),
    ('8', Action::Focus(8)),
    ('9', Action::Focus(9)),
];

/// Returns the action of a key while typing, by the table.
pub fn action(key: Key) -> Option<Action> {
    KEYS.iter()
        .find(|r| r.keys.contains(&key))
        .map(|r| r.action)
}

/// Carries out an editing action. Returns false if the action concerns something else.
pub fn edit(editor: &mut Editor, action: Action) -> bool {
    match action {
        Action::Newline => editor.insert("\n"),
        Action::Left => editor.go(Move::Left),
        Action::Right => editor.go(Move::Right),
        Action::WordLeft => editor.go(Move::WordLeft),
        Action::WordRight => editor.go(Move::WordRight),
        Action::LineStart => editor.go(Move::LineStart),
        Action::LineEnd => editor.go(Move::LineEnd),
        Action::DeleteBack => editor.delete(Move::Left),
        Action::DeleteForward => editor.delete(Move::Right),
        Action::DeleteWord => editor.delete(Move::WordLeft),
        Action::DeleteWordForward => editor.delete(Move::WordRight),
        Action::DeleteToStart => editor.delete(Move::LineStart),
        Action::DeleteToEnd => editor.delete(Move::LineEnd),
        Action::Yank => editor.yank(),
        Action::Undo => editor.undo(),
        Action::Redo => editor.redo(),
        _ => return false,
    }
    true
}

/// Returns a key's additional action in reading mode.
pub fn reading(key: Key) -> Option<Action> {
    let Code::Char(c) = key.code else { return None };
    if key.ctrl || key.alt {
        return None;
    }
    READING.iter().find(|(k, _)| *k == c).map(|(_, a)| *a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        let mut keys: Vec<Key> = KEYS.iter().flat_map(|r| r.keys).copied().collect();
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all);
        let mut letters: Vec<char> = READING.iter().map(|(c, _)| *c).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), READING.len());
    }

    #[test]
    fn the_newline_that_works_everywhere_is_there() {
        for bytes in [b"\n".as_slice(), b"\x1b\r", b"\x1b[13;2u", b"\x1b[27;2;13~"] {
            let read = crate::keys::Decoder::default().feed(bytes);
            let [crate::keys::Input::Key(key)] = read.as_slice() else {
                panic!("{bytes:?}");
            };
            assert_eq!(action(*key), Some(Action::Newline), "{bytes:?}");
        }
    }
}
