//! The public API of a library, as a list. Input: its sources. Output: one line for each public item, field, method and
//! implementation, so that a change that breaks programs shows in a diff.
//!
//! Plain `pub` means reachable: the lint `unreachable_pub` holds that. Names are written as in the source; a type that a
//! `use` renames is listed under its name there.

use crate::sources::{Error, PublicItem, Sources};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;

/// The libraries whose API is kept in `docs/api`.
pub const LIBRARIES: &[&str] = &["kd-eval", "kd-forum", "kd-vote"];

/// Returns the public items below the root file of a library, sorted.
///
/// # Errors
/// A file that cannot be read or parsed.
pub fn of(root: &Path) -> Result<String, Error> {
    let sources = Sources::read(root)?;
    let items = sources.modules.iter().flat_map(|module| &module.public);
    let names: BTreeSet<String> = items.filter_map(name).collect();
    let mut lines = BTreeSet::new();
    for (at, module) in sources.modules.iter().enumerate() {
        let path = sources.path_of(at);
        let is_shown = |item: &&PublicItem| {
            let subject = subject(&item.tokens);
            subject.is_none_or(|subject| subject.iter().any(|word| names.contains(word)))
        };
        for item in module.public.iter().filter(is_shown) {
            let found = lines_of(item);
            lines.extend(found.into_iter().map(|line| format!("{path}: {line}")));
        }
    }
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// Returns the lines that one text has and another has not, with a `-` or a `+`.
pub fn differences(old: &str, new: &str) -> Vec<String> {
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
        (old.lines().collect(), new.lines().collect());
    let gone = old.difference(&new).map(|line| format!("- {line}"));
    let come = new.difference(&old).map(|line| format!("+ {line}"));
    gone.chain(come).collect()
}

/// Returns the name of a public type or trait.
fn name(item: &PublicItem) -> Option<String> {
    let is_type = |t: &TokenTree| {
        let words = ["struct", "enum", "trait", "type"];
        words.iter().any(|word| is_word(t, word))
    };
    let at = item.tokens.iter().position(is_type)?;
    is_word(&item.tokens[0], "pub").then(|| item.tokens[at + 1].to_string())
}

/// Returns the words of the type that an implementation is for; `None` for another item.
fn subject(item: &[TokenTree]) -> Option<Vec<String>> {
    let (first, rest) = item.split_first()?;
    if !is_word(first, "impl") {
        return None;
    }
    let end = rest.iter().position(is_body).unwrap_or(rest.len());
    let from = rest[..end].iter().position(|t| is_word(t, "for"));
    let words = rest[from.unwrap_or(0)..end].iter().filter_map(|t| match t {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    Some(words.collect())
}

fn lines_of(item: &PublicItem) -> Vec<String> {
    let tokens = without_attributes(&item.tokens);
    let body = tokens.iter().position(is_body);
    let head = &tokens[..body.unwrap_or(tokens.len())];
    let inner = match body.map(|at| &tokens[at]) {
        Some(TokenTree::Group(group)) => {
            without_attributes(&group.stream().into_iter().collect::<Vec<_>>())
        }
        _ => Vec::new(),
    };
    let derives = item.derives.as_str();
    match keyword(head) {
        "impl" if head.iter().any(|t| is_word(t, "for")) => vec![text(head)],
        "impl" => members(&inner)
            .into_iter()
            .filter(|member| is_public(member))
            .map(|member| format!("{} {{ {} }}", text(head), text(signature(&member))))
            .collect(),
        "struct" if body.is_some() => {
            let fields = parts(&inner);
            let shown: Vec<String> = fields
                .iter()
                .filter(|f| is_public(f))
                .map(|f| text(f))
                .collect();
            let more = if shown.len() < fields.len() {
                ", .."
            } else {
                ""
            };
            vec![format!(
                "{derives}{} {{ {}{more} }}",
                text(head),
                shown.join(", ")
            )]
        }
        "struct" => vec![format!("{derives}{}", tuple(head))],
        "enum" => {
            let variants: Vec<String> = parts(&inner).iter().map(|v| text(v)).collect();
            vec![format!(
                "{derives}{} {{ {} }}",
                text(head),
                variants.join(", ")
            )]
        }
        "trait" => {
            let members = members(&inner);
            let members = members.iter().map(|member| text(signature(member)));
            let mut lines: Vec<String> = members
                .map(|m| format!("{} {{ {m} }}", text(head)))
                .collect();
            lines.push(text(head));
            lines
        }
        "use" => vec![text(&tokens)],
        _ => vec![text(signature(&tokens))],
    }
}

/// Returns the word that says what an item is.
fn keyword(head: &[TokenTree]) -> &'static str {
    const WORDS: &[&str] = &[
        "impl", "struct", "enum", "trait", "use", "fn", "mod", "type",
    ];
    let word = |token: &TokenTree| WORDS.iter().find(|word| is_word(token, word)).copied();
    head.iter().find_map(word).unwrap_or_default()
}

/// Returns an item up to its body or its value.
fn signature(item: &[TokenTree]) -> &[TokenTree] {
    let is_end = |t: &TokenTree| is_body(t) || is_mark(t, ';');
    let is_constant = item
        .iter()
        .take(3)
        .any(|t| is_word(t, "const") || is_word(t, "static"))
        && !item.iter().any(|t| is_word(t, "fn"));
    let end = item
        .iter()
        .position(|t| is_end(t) || is_constant && is_mark(t, '='));
    &item[..end.unwrap_or(item.len())]
}

/// Writes a tuple struct, with `_` for its private fields.
fn tuple(head: &[TokenTree]) -> String {
    let mut out = String::new();
    for token in head {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let fields = parts(&without_attributes(&inner));
                let shown = fields.iter().map(|f| {
                    if is_public(f) {
                        text(f)
                    } else {
                        "_".to_owned()
                    }
                });
                out.push_str(&format!("({})", shown.collect::<Vec<_>>().join(", ")));
            }
            token if is_mark(token, ';') => {}
            token => {
                out.push(' ');
                out.push_str(&token.to_string());
            }
        }
    }
    tidy(out.trim())
}

/// Splits the items of a body.
fn members(body: &[TokenTree]) -> Vec<Vec<TokenTree>> {
    let mut members = vec![Vec::new()];
    for token in body {
        if let Some(last) = members.last_mut() {
            last.push(token.clone());
        }
        if is_body(token) || is_mark(token, ';') {
            members.push(Vec::new());
        }
    }
    members.retain(|member| !member.is_empty());
    members
}

/// Splits fields or variants at the commas outside of generic arguments.
fn parts(body: &[TokenTree]) -> Vec<Vec<TokenTree>> {
    let (mut parts, mut depth) = (vec![Vec::new()], 0);
    for (at, token) in body.iter().enumerate() {
        let is_arrow = at > 0 && is_mark(&body[at - 1], '-');
        depth += i32::from(is_mark(token, '<')) - i32::from(is_mark(token, '>') && !is_arrow);
        match parts.last_mut() {
            Some(last) if depth > 0 || !is_mark(token, ',') => last.push(token.clone()),
            _ => parts.push(Vec::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn without_attributes(tokens: &[TokenTree]) -> Vec<TokenTree> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_attribute = is_mark(&tokens[at], '#')
            && matches!(tokens.get(at + 1), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Bracket);
        match (&tokens[at], is_attribute) {
            (_, true) => at += 1,
            (TokenTree::Group(group), _) if !is_body(&tokens[at]) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let inner = without_attributes(&inner).into_iter().collect();
                out.push(proc_macro2::Group::new(group.delimiter(), inner).into());
            }
            (token, _) => out.push(token.clone()),
        }
        at += 1;
    }
    out
}

/// Returns whether an item or a field is `pub`, not `pub(crate)`.
fn is_public(tokens: &[TokenTree]) -> bool {
    let is_limited = matches!(tokens.get(1), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis)
        && matches!(tokens.get(2), Some(TokenTree::Ident(_)));
    tokens.first().is_some_and(|t| is_word(t, "pub")) && !is_limited
}

fn is_body(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == mark)
}

fn text(tokens: &[TokenTree]) -> String {
    // Fields of a variant keep their braces; attributes in them are left out.
    let clean = |token: &TokenTree| match token {
        TokenTree::Group(group) if is_body(token) => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let inner = without_attributes(&inner).into_iter().collect();
            proc_macro2::Group::new(group.delimiter(), inner).into()
        }
        token => token.clone(),
    };
    tidy(
        &tokens
            .iter()
            .map(clean)
            .collect::<TokenStream>()
            .to_string(),
    )
}

/// Removes the spaces that nobody writes.
fn tidy(text: &str) -> String {
    let mut text = text.replace('\n', " ");
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ;", ""),
        (" : ", ": "),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (",(", ", ("),
        ("->(", "-> ("),
    ] {
        text = text.replace(from, to);
    }
    text
}
