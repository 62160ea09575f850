//! Keys of the forum screen when nothing is being written: one table, which also produces the help. Actions shared with
//! `kd chat`'s reading mode use the same keys.

use crate::keys::{Code, Key};

/// The content of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Threads and their posts.
    #[default]
    Threads,
    /// Motions to change the rules.
    Motions,
    /// The members.
    Members,
    /// Whether turns were distributed fairly.
    Fairness,
    /// The running cycle and the log.
    Now,
}

impl View {
    /// Every view with its name; its key is its position, from 1.
    pub const ALL: &[(Self, &str)] = &[
        (Self::Threads, "threads"),
        (Self::Motions, "motions"),
        (Self::Members, "members"),
        (Self::Fairness, "fairness"),
        (Self::Now, "now"),
    ];

    /// Returns whether it has a list on the left.
    pub fn has_list(self) -> bool {
        matches!(self, Self::Threads | Self::Motions | Self::Members)
    }
}

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Act {
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    In,
    Back,
    Side,
    PostAfter,
    PostBefore,
    View(View),
    Search,
    Write,
    Reply,
    Quote,
    Edit,
    Copy,
    Vote,
    Confirm,
    Refuse,
    Close,
    Role,
    Undo,
    Unfold,
    Help,
    Redraw,
    Suspend,
    Leave,
}

/// A row of the table: keys, their action, and their help text.
pub struct Row {
    /// The keys.
    pub keys: &'static [Key],
    /// Their action.
    pub act: Act,
    /// Keys and meaning, as shown in the help. Rows without it are variants of the row above.
    pub help: Option<(&'static str, &'static str)>,
}

const fn c(c: char) -> Key {
    Key::plain(Code::Char(c))
}

const fn p(code: Code) -> Key {
    Key::plain(code)
}

const fn row(keys: &'static [Key], act: Act, help: Option<(&'static str, &'static str)>) -> Row {
    Row { keys, act, help }
}

/// All keys.
#[rustfmt::skip] // a table
pub const KEYS: &[Row] = &[
    row(&[p(Code::Up), c('k')], Act::Up, Some(("Up Down, k j", "select in the list; scroll the text"))),
    row(&[p(Code::Down), c('j')], Act::Down, None),
    row(&[p(Code::Enter), p(Code::Right), c('l')], Act::In, Some(("Enter, Right, l", "open the selection"))),
    row(&[p(Code::Escape), p(Code::Left), c('h')], Act::Back, Some(("Esc, Left, h", "back to the list; end the search"))),
    row(&[p(Code::Tab)], Act::Side, Some(("Tab", "the other pane"))),
    row(&[p(Code::PageUp), c('b')], Act::PageUp, Some(("PgUp PgDn, b Space", "scroll by pages (the wheel scrolls, too)"))),
    row(&[p(Code::PageDown), c(' ')], Act::PageDown, None),
    row(&[p(Code::Home), c('g')], Act::Top, Some(("Home End, g G", "the beginning; the end, which follows new posts"))),
    row(&[p(Code::End), c('G')], Act::Bottom, None),
    row(&[c('n')], Act::PostAfter, Some(("n p", "the next, the previous post"))),
    row(&[c('p')], Act::PostBefore, None),
    row(&[c('1')], Act::View(View::Threads), Some(("1 2 3 4 5", "threads, motions, members, fairness, now"))),
    row(&[c('2')], Act::View(View::Motions), None),
    row(&[c('3')], Act::View(View::Members), None),
    row(&[c('4')], Act::View(View::Fairness), None),
    row(&[c('5')], Act::View(View::Now), None),
    row(&[c('/')], Act::Search, Some(("/", "search: all words must be in a post"))),
    row(&[c('w')], Act::Write, Some(("w", "start a thread; in the motions: propose one"))),
    row(&[c('r')], Act::Reply, Some(("r, R", "reply; reply with a quote of the chosen post"))),
    row(&[c('R')], Act::Quote, None),
    row(&[c('e')], Act::Edit, Some(("e", "edit one of your posts"))),
    row(&[c('c')], Act::Copy, Some(("c", "copy the chosen post"))),
    row(&[c('v')], Act::Vote, Some(("v", "vote on the chosen motion"))),
    row(&[c('a')], Act::Confirm, Some(("a", "confirm a passed motion: it takes effect"))),
    row(&[c('x')], Act::Refuse, Some(("x", "hide the chosen post, or show it again; in the motions: veto; in the members: ban or unban"))),
    row(&[c('z')], Act::Close, Some(("z", "close the thread, or open it again"))),
    row(&[c('o')], Act::Role, Some(("o", "give the chosen member a role or a vote"))),
    row(&[c('u')], Act::Undo, Some(("u", "undo what was hidden, closed, banned or given"))),
    row(&[c('t')], Act::Unfold, Some(("t", "show or fold the text of hidden posts"))),
    row(&[p(Code::F(1)), c('?')], Act::Help, Some(("?, F1", "this help"))),
    row(&[c('l').ctrl()], Act::Redraw, Some(("Ctrl+L, Ctrl+Z", "redraw; suspend"))),
    row(&[c('z').ctrl()], Act::Suspend, None),
    row(&[c('q'), c('c').ctrl(), c('d').ctrl()], Act::Leave, Some(("q, Ctrl+C", "leave"))),
];

/// Keys while writing; the moving and deleting keys of `kd chat` also work.
pub(super) const WRITING: &[(&str, &str)] = &[
    ("Enter", "send"),
    ("Ctrl+J, Alt+Enter, \\ Enter", "new line"),
    ("Ctrl+G", "write in $VISUAL or $EDITOR"),
    ("Ctrl+_, Alt+_", "undo, redo"),
    ("Esc, Ctrl+C", "clear the input; again: cancel"),
];

/// Returns the action of a key.
pub(super) fn act(key: Key) -> Option<Act> {
    KEYS.iter().find(|r| r.keys.contains(&key)).map(|r| r.act)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_and_none_of_them_is_left_out_of_the_help() {
        let mut keys: Vec<Key> = KEYS.iter().flat_map(|r| r.keys).copied().collect();
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all);
        let told: String = KEYS
            .iter()
            .filter_map(|r| r.help)
            .map(|h| format!(" {} ", h.0))
            .collect();
        for key in keys {
            if let (Code::Char(c), false, true) = (key.code, key.ctrl, key.code != Code::Char(' '))
            {
                let ends = |other: char| !other.is_alphanumeric();
                assert!(
                    told.split([' ', ',']).any(|word| word.chars().eq([c]))
                        || told.contains(&format!(" {c},"))
                        || ends(c),
                    "{c}"
                );
            }
        }
    }

    #[test]
    fn what_the_chat_has_while_reading_has_the_same_key() {
        use crate::keymap::{Action, reading};
        for (chat, here) in [
            (Action::LineUp, Act::Up),
            (Action::LineDown, Act::Down),
            (Action::PageUp, Act::PageUp),
            (Action::PageDown, Act::PageDown),
            (Action::Top, Act::Top),
            (Action::Bottom, Act::Bottom),
            (Action::KingBefore, Act::PostBefore),
            (Action::KingAfter, Act::PostAfter),
            (Action::Copy, Act::Copy),
            (Action::Help, Act::Help),
        ] {
            let keys = KEYS
                .iter()
                .filter(|row| row.act == here)
                .flat_map(|row| row.keys);
            assert!(
                keys.clone().any(|key| reading(*key) == Some(chat)),
                "{here:?}"
            );
        }
    }
}
