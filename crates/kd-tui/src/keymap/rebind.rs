//! The keys of the user: the table with the changes of `chat.keys`. Wrong changes are reported with what to write, and
//! leave their action as it was.

use super::{Action, KEYS};
use crate::keys::{Code, Key};
use std::collections::BTreeMap;
use std::fmt;

/// Actions that must keep a key: without them, the user could not send a message, or could not leave.
const NEEDED: &[Action] = &[Action::Send, Action::Escape, Action::Interrupt];

/// Finds a newer message while searching.
const NEWER: Key = Key::plain(Code::Char('s')).ctrl();
/// Ends a search.
const ABORT: Key = Key::plain(Code::Char('g')).ctrl();

/// The keys that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    keys: Vec<(Key, Action)>,
    changed: Vec<Action>,
}

impl Default for Keymap {
    fn default() -> Self {
        Self {
            keys: table().collect(),
            changed: Vec::new(),
        }
    }
}

fn table() -> impl Iterator<Item = (Key, Action)> {
    KEYS.iter()
        .flat_map(|row| row.keys.iter().map(|key| (*key, row.action)))
}

/// Returns the name of an action in `chat.keys`.
pub fn name(action: Action) -> &'static str {
    let row = KEYS.iter().find(|row| row.action == action);
    row.map_or("", |row| row.name)
}

impl Keymap {
    /// Applies changes, by the names of actions. Also returns what is wrong with them, one line each.
    pub fn new(changes: &BTreeMap<String, String>) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let mut wanted: Vec<(Action, Vec<Key>)> = Vec::new();
        for (name, written) in changes {
            let Some(row) = KEYS.iter().find(|row| row.name == name) else {
                wrong.push(unknown(name));
                continue;
            };
            match written.split_whitespace().map(parse).collect() {
                Ok(keys) => wanted.push((row.action, keys)),
                Err(why) => wrong.push(format!("chat.keys.{name}: {why}")),
            }
        }
        // A key that two changes want stays where it was, and so do both actions.
        let mut clashes = Vec::new();
        for (at, (one, keys)) in wanted.iter().enumerate() {
            for (other, others) in &wanted[at + 1..] {
                if let Some(key) = keys.iter().find(|key| others.contains(key)) {
                    clashes.extend([*one, *other]);
                    let (one, other) = (name(*one), name(*other));
                    wrong.push(format!(
                        "chat.keys: {key} is {one} and {other}: give one of them another key"
                    ));
                }
            }
        }
        wanted.retain(|(action, keys)| {
            let bare = keys.is_empty() && NEEDED.contains(action);
            if bare {
                wrong.push(format!("chat.keys.{}: it needs a key", name(*action)));
            }
            !bare && !clashes.contains(action)
        });
        // Changes depend on each other, so the finished map is checked. Without changes nothing is missing.
        let mut map = Self::changed(&wanted);
        while let Some((at, key, of)) = map.missing(&wanted) {
            let (taker, _) = wanted.remove(at);
            wrong.push(format!(
                "chat.keys.{}: {key} is the only key of {of}: give {of} another one with chat.keys.{of}",
                name(taker),
                of = name(of)
            ));
            map = Self::changed(&wanted);
        }
        for row in KEYS {
            let taker = || {
                wanted.iter().rev().find_map(|(taker, keys)| {
                    let key = row.keys.iter().rev().find(|key| keys.contains(key))?;
                    Some((*taker, *key))
                })
            };
            if !map.is_changed(row.action)
                && map.of(row.action).next().is_none()
                && let Some((taker, key)) = taker()
            {
                wrong.push(format!(
                    "chat.keys.{}: {key} was {of}, which has no key now: chat.keys.{of} gives it one",
                    name(taker),
                    of = row.name
                ));
            }
        }
        (map, wrong)
    }

    /// Returns the table with changes, if no two of them want the same key.
    fn changed(wanted: &[(Action, Vec<Key>)]) -> Self {
        let is_free = |key: &Key| wanted.iter().all(|(_, keys)| !keys.contains(key));
        let is_kept = |action: &Action| wanted.iter().all(|(changed, _)| changed != action);
        let kept = table().filter(|(key, action)| is_free(key) && is_kept(action));
        let new = wanted
            .iter()
            .flat_map(|(action, keys)| keys.iter().map(|key| (*key, *action)));
        Self {
            keys: kept.chain(new).collect(),
            changed: wanted.iter().map(|(action, _)| *action).collect(),
        }
    }

    /// Returns an action that needs a key and has none, and which of the changes took which key of it.
    fn missing(&self, wanted: &[(Action, Vec<Key>)]) -> Option<(usize, Key, Action)> {
        let bare = |action: &&Action| self.of(**action).next().is_none();
        NEEDED.iter().filter(bare).find_map(|of| {
            let took = |(key, action): (Key, Action)| {
                let at = wanted.iter().position(|(_, keys)| keys.contains(&key))?;
                (action == *of).then_some((at, key, *of))
            };
            table().find_map(took)
        })
    }

    /// Returns the action of a key while typing.
    pub fn action(&self, key: Key) -> Option<Action> {
        let found = self.keys.iter().find(|(k, _)| *k == key);
        found.map(|(_, action)| *action)
    }

    /// Returns the action of a key while searching. There Ctrl+S finds a newer message and Ctrl+G ends the search, as in a
    /// shell, unless these keys do something else in a search.
    pub fn searching(&self, key: Key) -> Option<Action> {
        let action = self.action(key);
        match action {
            None | Some(Action::Stash | Action::Editor) if key == NEWER => Some(Action::Up),
            None | Some(Action::Stash | Action::Editor) if key == ABORT => Some(Action::Escape),
            _ => action,
        }
    }

    /// Returns the key for a hint that finds a newer message while searching.
    pub fn newer(&self) -> String {
        match self.searching(NEWER) {
            Some(Action::Up) => NEWER.to_string(),
            _ => self.label(Action::Up),
        }
    }

    /// Returns the keys of an action.
    pub fn of(&self, action: Action) -> impl Iterator<Item = Key> {
        let keys = self.keys.iter().filter(move |(_, a)| *a == action);
        keys.map(|(key, _)| *key)
    }

    /// Returns the first key of an action for a hint, for example `Ctrl+T`.
    pub fn label(&self, action: Action) -> String {
        let first = self.of(action).next();
        first.map_or_else(|| format!("({})", name(action)), |key| key.to_string())
    }

    /// Returns all keys of an action, for a list.
    pub fn labels(&self, action: Action) -> String {
        let keys: Vec<String> = self.of(action).map(|key| key.to_string()).collect();
        match keys.is_empty() {
            true => "no key".to_owned(),
            false => keys.join(", "),
        }
    }

    /// Returns whether the keys of an action were changed.
    pub fn is_changed(&self, action: Action) -> bool {
        self.changed.contains(&action)
    }
}

fn unknown(written: &str) -> String {
    let near = KEYS
        .iter()
        .map(|row| (strsim::damerau_levenshtein(written, row.name), row.name))
        .filter(|(far, _)| *far <= 2)
        .min();
    let next = match near {
        Some((_, name)) => format!("did you mean {name}?"),
        None => "/keys in the chat lists the actions".to_owned(),
    };
    format!("chat.keys.{written}: there is no such action: {next}")
}

/// Parses a key: `ctrl+r`, `alt+up`, `f5`.
fn parse(written: &str) -> Result<Key, String> {
    let lower = written.to_lowercase();
    let (held, last) = match lower.rsplit_once('+') {
        // `ctrl++`
        Some((held, "")) => (held.strip_suffix('+').unwrap_or_default(), "+"),
        Some((held, last)) => (held, last),
        None => ("", lower.as_str()),
    };
    let mut key = Key::plain(code(last).ok_or_else(|| {
        format!("`{written}` is no key: write for example ctrl+r, alt+up, f5 or shift+pageup")
    })?);
    for word in held.split('+').filter(|word| !word.is_empty()) {
        key = match word {
            "ctrl" | "control" => key.ctrl(),
            "alt" | "option" | "meta" => key.alt(),
            "shift" => key.shift(),
            _ => return Err(format!("`{written}`: `{word}` is none of ctrl, alt, shift")),
        };
    }
    if let Code::Char(c) = key.code {
        if !key.ctrl && !key.alt {
            return Err(format!("{written} writes a character: add ctrl+ or alt+"));
        }
        if key.shift {
            return Err(format!(
                "terminals do not tell {written} apart: leave out shift+"
            ));
        }
        let same = match c {
            'i' => Some("tab"),
            'm' => Some("enter"),
            '[' => Some("escape"),
            'h' => Some("backspace"),
            _ => None,
        };
        if let (true, false, Some(same)) = (key.ctrl, key.alt, same) {
            return Err(format!(
                "terminals send {written} as {same}: choose another key"
            ));
        }
    }
    Ok(key)
}

fn code(word: &str) -> Option<Code> {
    let mut chars = word.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return (!c.is_control() && !c.is_whitespace()).then_some(Code::Char(c));
    }
    if let Some(number) = word.strip_prefix('f') {
        let number: u8 = number.parse().ok()?;
        return (1..=12).contains(&number).then_some(Code::F(number));
    }
    Some(match word {
        "enter" | "return" => Code::Enter,
        "tab" => Code::Tab,
        "backspace" => Code::Backspace,
        "delete" | "del" => Code::Delete,
        "insert" => Code::Insert,
        "escape" | "esc" => Code::Escape,
        "left" => Code::Left,
        "right" => Code::Right,
        "up" => Code::Up,
        "down" => Code::Down,
        "home" => Code::Home,
        "end" => Code::End,
        "pageup" | "pgup" => Code::PageUp,
        "pagedown" | "pgdn" => Code::PageDown,
        "space" => Code::Char(' '),
        _ => return None,
    })
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (held, word) in [
            (self.ctrl, "Ctrl+"),
            (self.alt, "Alt+"),
            (self.shift, "Shift+"),
        ] {
            if held {
                f.write_str(word)?;
            }
        }
        match self.code {
            Code::Char(' ') => f.write_str("Space"),
            Code::Char(c) => write!(f, "{}", c.to_uppercase()),
            Code::F(n) => write!(f, "F{n}"),
            Code::Escape => f.write_str("Esc"),
            Code::PageUp => f.write_str("PgUp"),
            Code::PageDown => f.write_str("PgDn"),
            code @ (Code::Enter
            | Code::Tab
            | Code::Backspace
            | Code::Delete
            | Code::Insert
            | Code::Left
            | Code::Right
            | Code::Up
            | Code::Down
            | Code::Home
            | Code::End) => write!(f, "{code:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(changes: &[(&str, &str)]) -> (Keymap, Vec<String>) {
        let changes = changes.iter().map(|(k, v)| ((*k).into(), (*v).into()));
        Keymap::new(&changes.collect())
    }

    fn key(written: &str) -> Key {
        parse(written).unwrap()
    }

    #[test]
    fn a_change_replaces_the_keys_of_an_action() {
        let (map, wrong) = bound(&[("search", "ctrl+o alt+r"), ("copy", "f9")]);
        assert_eq!(wrong, [""; 0]);
        assert_eq!(map.action(key("ctrl+o")), Some(Action::Search));
        assert_eq!(map.action(key("alt+r")), Some(Action::Search));
        assert_eq!(map.action(key("ctrl+r")), None);
        assert_eq!(map.labels(Action::Search), "Ctrl+O, Alt+R");
        assert_eq!(map.label(Action::Copy), "F9");
        assert!(map.is_changed(Action::Copy) && !map.is_changed(Action::Send));
        assert_eq!(map.action(key("enter")), Some(Action::Send));
    }

    #[test]
    fn two_actions_can_change_places() {
        let (map, wrong) = bound(&[("search", "ctrl+t"), ("thinking", "ctrl+r")]);
        assert_eq!(wrong, [""; 0]);
        assert_eq!(map.action(key("ctrl+t")), Some(Action::Search));
        assert_eq!(map.action(key("ctrl+r")), Some(Action::Thinking));
    }

    #[test]
    fn what_is_wrong_is_told_and_changes_nothing() {
        for (changes, told) in [
            (&[("serch", "ctrl+o")][..], "did you mean search?"),
            (&[("fly", "ctrl+o")], "/keys in the chat lists the actions"),
            (
                &[("search", "hyper+x")],
                "`hyper` is none of ctrl, alt, shift",
            ),
            (&[("search", "ctrl+wat")], "`ctrl+wat` is no key"),
            (&[("search", "x")], "writes a character"),
            (&[("search", "ctrl+i")], "as tab"),
            (
                &[("search", "ctrl+o"), ("copy", "ctrl+o")],
                "is copy and search",
            ),
            (&[("send", "")], "it needs a key"),
            (&[("search", "esc")], "the only key of escape"),
        ] {
            let (map, wrong) = bound(changes);
            assert!(
                wrong.len() == 1 && wrong[0].contains(told),
                "{changes:?}: {wrong:?}"
            );
            for (key, action) in table() {
                assert_eq!(map.action(key), Some(action), "{changes:?}: {key}");
            }
        }
    }

    #[test]
    fn nobody_is_left_without_a_way_to_send_or_out() {
        let rows = || KEYS.iter().map(|row| row.name);
        let values = ["", "enter", "esc", "ctrl+c", "f9"];
        let check = |changes: &[(&str, &str)]| {
            let (map, wrong) = bound(changes);
            for action in NEEDED {
                assert!(map.of(*action).next().is_some(), "{changes:?}: {wrong:?}");
            }
            for (name, _) in changes {
                let row = KEYS.iter().find(|row| row.name == *name).unwrap();
                let told = wrong.iter().any(|line| line.contains(name));
                assert!(told || map.is_changed(row.action), "{changes:?}: {wrong:?}");
            }
        };
        let turns = [("enter", "esc"), ("esc", "ctrl+c"), ("ctrl+c", "enter")];
        for (at, one) in rows().enumerate() {
            for other in rows().skip(at + 1) {
                for (first, second) in turns {
                    check(&[(one, first), (other, second)]);
                }
            }
            for of in NEEDED.iter().map(|of| name(*of)).filter(|of| *of != one) {
                for (first, second) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
                    check(&[(one, first), (of, second)]);
                }
            }
        }
        check(&[
            ("complete", "ctrl+c"),
            ("interrupt", ""),
            ("editor", "escape"),
            ("escape", ""),
        ]);
        check(&[
            ("send", "esc"),
            ("escape", "ctrl+c"),
            ("interrupt", "enter"),
        ]);
        let (map, wrong) = bound(&[("complete", "enter"), ("send", "escape")]);
        assert_eq!((map, wrong.len()), (Keymap::default(), 2));
    }

    #[test]
    fn an_action_that_loses_its_last_key_is_named() {
        let (map, wrong) = bound(&[("search", "ctrl+t")]);
        assert_eq!(
            wrong,
            [
                "chat.keys.search: Ctrl+T was thinking, which has no key now: chat.keys.thinking gives it one"
            ]
        );
        assert_eq!(map.action(key("ctrl+t")), Some(Action::Search));
    }

    #[test]
    fn every_name_is_one_action_and_every_key_is_read_as_it_is_shown() {
        let mut names: Vec<&str> = KEYS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
        for (key, _) in table() {
            let told_apart = key != Key::plain(Code::Char('h')).ctrl();
            if told_apart {
                assert_eq!(parse(&key.to_string()), Ok(key), "{key}");
            }
        }
    }
}
