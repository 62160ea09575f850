//! JSON as models write it: bare, in a fence, surrounded by text, or damaged in common ways.
//!
//! Input: any text. Output: the objects in it, and how each was found. Nothing is invented: a value cut off by the end
//! of the text is left out.

use serde_json::{Map, Value};

/// The form in which an object was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// The whole text is JSON.
    Exact,
    /// JSON inside a Markdown fence.
    Fenced,
    /// JSON surrounded by text.
    Embedded,
    /// JSON after repairs: trailing commas, quotes, comments, a missing end.
    Repaired,
}

/// An object in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The object.
    pub value: Value,
    /// The form in which it was found.
    pub form: Form,
    /// The position in bytes at which it begins.
    pub start: usize,
    /// The position in bytes at which it ends.
    pub end: usize,
    /// Fields that occur twice with different values.
    pub twice: Vec<String>,
    /// Whether the text ends inside one of its lists.
    pub cut: bool,
}

/// Maximum nesting depth.
const DEPTH_MAX: usize = 48;
/// Maximum length of a field name, in bytes; longer ones are quoted prose.
const NAME_BYTES_MAX: usize = 200;
/// Maximum number of positions tried; a text with more braces is code.
const TRIES_MAX: usize = 400;

/// Finds the outermost objects of a text, in order.
pub fn objects(text: &str) -> Vec<Found> {
    let bare = text.trim();
    // Some programs print the reply as a JSON string.
    if bare.starts_with('"')
        && let Ok(inner) = serde_json::from_str::<String>(bare)
        && inner.contains('{')
    {
        let mut found = objects(&inner);
        for one in &mut found {
            (one.form, one.start, one.end) = (Form::Repaired, 0, text.len());
        }
        return found;
    }
    // The opening brace is missing.
    if bare.starts_with('"') && bare.ends_with('}') && !bare.contains('{') && bare.contains("\":") {
        let mut found = objects(&format!("{{{bare}"));
        for one in &mut found {
            (one.form, one.start, one.end) = (Form::Repaired, 0, text.len());
        }
        return found;
    }
    let mut found = Vec::new();
    let mut at = 0;
    for _ in 0..TRIES_MAX {
        let Some(start) = text
            .get(at..)
            .and_then(|rest| rest.find('{'))
            .map(|b| at + b)
        else {
            break;
        };
        let mut reader = Reader {
            text,
            at: start,
            damaged: false,
            cut: false,
            cut_list: false,
            twice: Vec::new(),
        };
        match reader.object(0) {
            Some(Value::Object(fields)) if !fields.is_empty() || reader.cut => {
                let end = reader.at;
                let exact = !reader.damaged
                    && text
                        .get(start..end)
                        .is_some_and(|t| serde_json::from_str::<Value>(t).is_ok());
                let whole = text.get(start..end).is_some_and(|t| t == bare);
                let form = match (exact, whole, fenced(text, start, end)) {
                    (false, ..) => Form::Repaired,
                    (true, true, _) => Form::Exact,
                    (true, _, true) => Form::Fenced,
                    (true, ..) => Form::Embedded,
                };
                found.push(Found {
                    value: Value::Object(fields),
                    form,
                    start,
                    end,
                    twice: reader.twice,
                    cut: reader.cut_list,
                });
                at = end.max(start + 1);
            }
            _ => at = start + 1,
        }
    }
    found
}

/// Returns whether a range of a text is the whole content of a fence.
fn fenced(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).unwrap_or_default().trim_end();
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    let opens = line
        .strip_prefix("```")
        .or_else(|| line.strip_prefix("~~~"))
        .is_some_and(|rest| {
            rest.trim_start_matches(['`', '~'])
                .chars()
                .all(char::is_alphanumeric)
        });
    let after = text.get(end..).unwrap_or_default().trim_start();
    opens && (after.starts_with("```") || after.starts_with("~~~"))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    damaged: bool,
    /// Whether the text ends inside a value.
    cut: bool,
    twice: Vec<String>,
    /// Whether the text ends inside a list.
    cut_list: bool,
}

/// A value, or nothing if the text ends inside it.
enum Part {
    Whole(Value),
    Cut,
}

/// The next step after an item.
enum Go {
    On,
    /// The text ends before the next item.
    End,
    /// The text ends inside this item.
    Cut,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        if there {
            self.at += c.len_utf8();
        }
        there
    }

    /// Skips whitespace and comments.
    fn blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let comment = if trimmed.starts_with("//") || trimmed.starts_with("# ") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map_or(trimmed.len(), |e| e + 2)
            } else {
                return;
            };
            self.damaged = true;
            self.at += comment;
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let mut fields: Map<String, Value> = Map::new();
        self.items(depth, '{', |reader| {
            let Some(name) = reader.name() else {
                return reader.cut_off(!fields.is_empty());
            };
            reader.blank();
            if !reader.eat(':') && !reader.eat('：') {
                return reader.cut_off(!fields.is_empty());
            }
            reader.blank();
            let Part::Whole(value) = reader.value(depth + 1)? else {
                return Some(Go::Cut);
            };
            // A later value may fill an empty field.
            let says = |earlier: &&Value| !earlier.is_null() && earlier.as_str() != Some("");
            let earlier = fields.get(&name).filter(says);
            if earlier.is_some_and(|earlier| *earlier != value) {
                reader.twice.push(name.clone());
            }
            fields.insert(name, value);
            Some(Go::On)
        })?;
        Some(Value::Object(fields))
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.items(depth, '[', |reader| {
            let Part::Whole(value) = reader.value(depth + 1)? else {
                return Some(Go::Cut);
            };
            items.push(value);
            Some(Go::On)
        })?;
        Some(Value::Array(items))
    }

    /// Reads the items of an object or an array up to its end, with separators.
    fn items(
        &mut self,
        depth: usize,
        open: char,
        mut item: impl FnMut(&mut Self) -> Option<Go>,
    ) -> Option<()> {
        if depth > DEPTH_MAX || !self.eat(open) {
            return None;
        }
        let (is_array, close) = (open == '[', if open == '[' { ']' } else { '}' });
        loop {
            self.blank();
            match self.peek() {
                None => {
                    self.damaged = true;
                    self.cut_list |= is_array;
                    return Some(());
                }
                Some(c) if c == close => {
                    self.at += 1;
                    return Some(());
                }
                Some(',') => {
                    self.at += 1;
                    self.damaged = true;
                    continue;
                }
                // The closing bracket is missing.
                Some('}') if is_array => {
                    self.damaged = true;
                    return Some(());
                }
                Some(_) => {}
            }
            match item(self)? {
                Go::On => {}
                Go::End => {
                    self.damaged = true;
                    return Some(());
                }
                Go::Cut => {
                    (self.damaged, self.cut) = (true, true);
                    return Some(());
                }
            }
            self.blank();
            match self.peek() {
                Some(',') => {
                    self.at += 1;
                    self.blank();
                    let next = self.peek();
                    self.damaged |= next.is_none() || next == Some(close);
                }
                Some(c) if c == close => {}
                Some('}') | None => {}
                Some('"' | '\'' | '“') if !is_array => self.damaged = true,
                Some(c @ (';' | '，')) if !is_array => {
                    self.at += c.len_utf8();
                    self.damaged = true;
                }
                Some(_) => return None,
            }
        }
    }

    /// Decides what to do with an object that has no further field: if the text ends there, the fields so far are
    /// complete.
    fn cut_off(&self, has_fields: bool) -> Option<Go> {
        (self.rest().is_empty() && has_fields).then_some(Go::End)
    }

    fn name(&mut self) -> Option<String> {
        match self.peek()? {
            '"' | '\'' | '“' | '”' | '‘' | '«' | '`' => {
                let from = self.at;
                let name = match self.quoted(true)? {
                    Part::Whole(Value::String(name)) => name,
                    _ => return None,
                };
                (self.at - from <= NAME_BYTES_MAX).then_some(name)
            }
            c if c.is_alphabetic() || c == '_' || c == '$' => {
                self.damaged = true;
                let rest = self.rest();
                let end = rest
                    .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-' || c == '$'))
                    .unwrap_or(rest.len());
                let name = rest[..end].to_owned();
                self.at += end;
                (name.len() <= NAME_BYTES_MAX).then_some(name)
            }
            _ => None,
        }
    }

    fn value(&mut self, depth: usize) -> Option<Part> {
        let Some(first) = self.peek() else {
            return Some(Part::Cut);
        };
        match first {
            '{' => self.object(depth).map(Part::Whole),
            '[' => self.array(depth).map(Part::Whole),
            '"' | '\'' | '“' | '”' | '‘' | '«' | '`' => self.quoted(false),
            _ => self.bare(),
        }
    }

    /// Reads a string in quotes of any kind.
    fn quoted(&mut self, is_name: bool) -> Option<Part> {
        let open = self.peek()?;
        let closes: &[char] = match open {
            '“' | '”' => &['”', '“', '"'],
            '‘' => &['’', '\''],
            '«' => &['»'],
            '\'' => &['\''],
            '`' => &['`'],
            _ => &['"'],
        };
        self.damaged |= open != '"';
        self.at += open.len_utf8();
        let body = self.rest();
        let mut out = String::new();
        let mut chars = body.char_indices();
        while let Some((place, c)) = chars.next() {
            if is_name && place > NAME_BYTES_MAX {
                return None;
            }
            if c == '\\' {
                let from = place;
                match chars.next() {
                    None => {
                        self.at += body.len();
                        return Some(Part::Cut);
                    }
                    Some((_, 'u')) => {
                        let hex = body.get(from..from + 6).unwrap_or_default();
                        // Surrogate pairs are left to `serde_json`.
                        let long = body.get(from..from + 12).unwrap_or_default();
                        let read =
                            |t: &str| serde_json::from_str::<String>(&format!("\"{t}\"")).ok();
                        let (text, more) = match (read(hex), read(long)) {
                            (Some(one), _) => (one, 4),
                            (None, Some(two)) => (two, 10),
                            (None, None) => (String::from("u"), 0),
                        };
                        out.push_str(&text);
                        for _ in 0..more {
                            chars.next();
                        }
                    }
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'r')) => out.push('\r'),
                    Some((_, 'b' | 'f')) => {
                        // `\boxed` and `\frac` without escaping.
                        let letter = body.get(from + 1..from + 2).unwrap_or_default();
                        let word = body.get(from + 2..).and_then(|t| t.chars().next());
                        match word.is_some_and(|c| c.is_ascii_lowercase()) {
                            true => {
                                out.push('\\');
                                out.push_str(letter);
                                self.damaged = true;
                            }
                            false => out.push(' '),
                        }
                    }
                    Some((_, c @ ('"' | '\'' | '\\' | '/' | '`'))) => out.push(c),
                    Some((_, other)) => {
                        self.damaged = true;
                        out.push('\\');
                        out.push(other);
                    }
                }
                continue;
            }
            if closes.contains(&c) && self.is_end(body, place + c.len_utf8(), is_name) {
                self.damaged |= c != '"';
                self.at += place + c.len_utf8();
                return Some(Part::Whole(Value::String(out)));
            }
            if c == '\n' || closes.contains(&c) {
                self.damaged = true;
            }
            out.push(c);
        }
        // The string is never closed. If braces follow, only the quote is missing; otherwise the text was cut off here.
        self.at += body.len();
        self.damaged = true;
        let kept = out.trim_end();
        match kept.strip_suffix('}') {
            Some(kept) if !is_name => {
                let kept = kept.trim_end_matches(['}', ']', ' ', '\n', '\r', '\t', ',']);
                Some(Part::Whole(Value::String(kept.to_owned())))
            }
            _ => Some(Part::Cut),
        }
    }

    /// Returns whether a quote ends its string: only then can the next character follow.
    fn is_end(&self, body: &str, after: usize, is_name: bool) -> bool {
        let rest = body.get(after..).unwrap_or_default();
        let next = rest.trim_start().chars().next();
        match next {
            None => true,
            Some(':' | '：') => is_name,
            Some('}' | ']') => !is_name,
            Some(',') if !is_name => {
                // A comma inside a string is followed by words; after a string, by a field, an item or an end.
                let then = rest.trim_start().get(1..).unwrap_or_default().trim_start();
                match then.chars().next() {
                    None | Some('"' | '\'' | '}' | ']' | '{' | '[' | '“' | '‘' | '/' | '#') => {
                        true
                    }
                    Some(c) if c.is_ascii_digit() || c == '-' => true,
                    Some(_) => {
                        let word: String = then
                            .chars()
                            .take_while(|c| c.is_alphanumeric() || *c == '_')
                            .collect();
                        let then = then.get(word.len()..).unwrap_or_default().trim_start();
                        then.starts_with(':') || matches!(word.as_str(), "true" | "false" | "null")
                    }
                }
            }
            Some('"' | '\'' | '“') if !is_name => {
                // The comma is missing: a field must follow.
                let then = rest.trim_start();
                let quote = then.chars().next().unwrap_or('"');
                let inner = then.get(quote.len_utf8()..).unwrap_or_default();
                let close = if quote == '“' { '”' } else { quote };
                rest.starts_with(['\n', ' ', '\r', '\t'])
                    && inner.find(close).is_some_and(|end| {
                        end < NAME_BYTES_MAX
                            && inner
                                .get(end + close.len_utf8()..)
                                .is_some_and(|t| t.trim_start().starts_with(':'))
                    })
            }
            Some('/' | '#' | ';' | '，') => true,
            Some(_) => false,
        }
    }

    /// Reads a number, a JSON or Python keyword, or an unquoted word.
    fn bare(&mut self) -> Option<Part> {
        let rest = self.rest();
        let end = rest
            .find([',', '}', ']', '\n', '"', '{', '[', ';'])
            .unwrap_or(rest.len());
        let cut = end == rest.len();
        let word = rest[..end].trim();
        let word = word.split(" //").next().unwrap_or(word).trim();
        if word.is_empty() || word.len() > NAME_BYTES_MAX {
            return None;
        }
        let known = match word {
            "true" | "True" | "TRUE" => Some(Value::Bool(true)),
            "false" | "False" | "FALSE" => Some(Value::Bool(false)),
            "null" | "None" | "undefined" | "NaN" | "nil" => Some(Value::Null),
            _ => None,
        };
        let number = serde_json::from_str::<Value>(word)
            .ok()
            .filter(Value::is_number);
        let value = match (known, number) {
            (Some(known), _) => known,
            (None, Some(number)) => number,
            (None, None) => Value::String(word.to_owned()),
        };
        let strict = value.is_number() || matches!(word, "true" | "false" | "null");
        self.damaged |= !strict;
        self.at += end;
        if cut {
            self.damaged = true;
            return Some(Part::Cut);
        }
        Some(Part::Whole(value))
    }
}
