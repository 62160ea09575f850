//! The modules of a crate, read from its sources: what each defines, what it imports, and which paths its code names.
//! Tests are left out.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// Re-exports that are followed one after another; more are a loop.
const HOPS_MAX: usize = 32;

/// The reason why the sources could not be read.
#[derive(Debug)]
pub enum Error {
    /// A file could not be read.
    Read(PathBuf, std::io::Error),
    /// A file is not Rust.
    Parse(PathBuf, String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::Parse(path, why) => write!(f, "cannot parse {}: {why}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

/// An item that may be public: with `pub`, or an implementation.
pub(crate) struct PublicItem {
    /// Its `derive` attributes, with a space after each.
    pub(crate) derives: String,
    /// The item, without the attributes before it.
    pub(crate) tokens: Vec<TokenTree>,
}

/// A module of a crate, in a separate file or inline.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Names of what it defines.
    items: BTreeSet<String>,
    /// Names that a `use` brings in, and the path of each.
    pub(crate) imports: BTreeMap<String, Vec<String>>,
    /// Modules whose names are all brought in.
    pub(crate) globs: Vec<Vec<String>>,
    /// Paths in its code.
    pub(crate) paths: BTreeSet<Vec<String>>,
    /// Paths in the patterns of its `match` arms.
    pub(crate) matched: BTreeSet<Vec<String>>,
    /// The number of types `Result<_, String>` in it.
    pub(crate) texts: usize,
    /// Its public items and its implementations.
    pub(crate) public: Vec<PublicItem>,
}

/// The modules of a crate that are not tests. The first is the root.
#[derive(Default)]
pub(crate) struct Sources {
    pub(crate) modules: Vec<Module>,
}

impl Sources {
    /// Reads a crate from its root file.
    pub(crate) fn read(root: &Path) -> Result<Self, Error> {
        let mut sources = Self::default();
        let folder = root.parent().unwrap_or(root).to_path_buf();
        sources.file(root, folder, None)?;
        Ok(sources)
    }

    /// Reads a file as a module; files of its children lie in `folder`.
    fn file(
        &mut self,
        file: &Path,
        folder: PathBuf,
        parent: Option<usize>,
    ) -> Result<usize, Error> {
        let text = std::fs::read_to_string(file).map_err(|e| Error::Read(file.to_path_buf(), e))?;
        let tokens: TokenStream = text
            .parse()
            .map_err(|e: proc_macro2::LexError| Error::Parse(file.to_path_buf(), e.to_string()))?;
        let module = self.module(file, parent);
        self.items(module, tokens, &folder)?;
        Ok(module)
    }

    /// Returns the path of a module below its crate.
    pub(crate) fn path_of(&self, module: usize) -> String {
        let Some(parent) = self.modules[module].parent else {
            return "crate".to_owned();
        };
        let children = &self.modules[parent].children;
        let name = children.iter().find(|(_, child)| **child == module);
        let name = name.map_or("", |(name, _)| name.as_str());
        format!("{}::{name}", self.path_of(parent))
    }

    fn module(&mut self, file: &Path, parent: Option<usize>) -> usize {
        self.modules.push(Module {
            file: file.to_path_buf(),
            parent,
            ..Module::default()
        });
        self.modules.len() - 1
    }

    fn items(&mut self, module: usize, tokens: TokenStream, folder: &Path) -> Result<(), Error> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut is_test = false;
        let mut derives = String::new();
        while at < tokens.len() {
            if let Some((attribute, len)) = attribute(&tokens[at..]) {
                is_test |= is_for_tests(attribute);
                derives += &derived(attribute);
                at += len;
                continue;
            }
            let end = at + item_len(&tokens[at..]);
            let item = &tokens[at..end];
            let derives = std::mem::take(&mut derives);
            if !std::mem::take(&mut is_test) {
                if may_be_public(item) {
                    let tokens = item.to_vec();
                    let item = PublicItem { derives, tokens };
                    self.modules[module].public.push(item);
                }
                self.item(module, item, folder)?;
            }
            at = end;
        }
        Ok(())
    }

    fn item(&mut self, module: usize, item: &[TokenTree], folder: &Path) -> Result<(), Error> {
        let words: Vec<String> = item.iter().map_while(word_or_group).flatten().collect();
        let keyword = words.iter().position(|w| KEYWORDS.contains(&w.as_str()));
        let name = keyword.and_then(|k| match words[k].as_str() {
            "const" | "unsafe" | "async" | "extern" => {
                let inner = words[k..].iter().position(|w| w == "fn");
                words.get(k + inner.unwrap_or(0) + 1)
            }
            "static" => words[k + 1..].iter().find(|w| *w != "mut"),
            _ => words.get(k + 1),
        });
        match (keyword.map(|k| words[k].as_str()), name) {
            (Some("mod"), Some(name)) => {
                let below = folder.join(name);
                let child = match item.last() {
                    Some(TokenTree::Group(body)) => {
                        let file = self.modules[module].file.clone();
                        let child = self.module(&file, Some(module));
                        self.items(child, body.stream(), &below)?;
                        child
                    }
                    _ => {
                        let flat = folder.join(format!("{name}.rs"));
                        let file = if flat.is_file() {
                            flat
                        } else {
                            below.join("mod.rs")
                        };
                        self.file(&file, below, Some(module))?
                    }
                };
                self.modules[module].children.insert(name.clone(), child);
                return Ok(());
            }
            (Some("macro_rules"), _) | (Some("impl"), _) | (Some("use"), _) => {}
            (Some(_), Some(name)) => {
                self.modules[module].items.insert(name.clone());
            }
            _ => {}
        }
        if let Some(TokenTree::Ident(name)) = item.get(2)
            && keyword.is_some_and(|k| words[k] == "macro_rules")
        {
            self.modules[module].items.insert(name.to_string());
        }
        self.code(module, item);
        self.modules[module].texts += texts(item);
        Ok(())
    }

    /// Notes every `use`, every path and every pattern of an arm in a piece of code.
    fn code(&mut self, module: usize, tokens: &[TokenTree]) {
        for pattern in arms(tokens) {
            paths_in(pattern, &mut self.modules[module].matched);
        }
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Ident(word) if word == "use" => {
                    let end = tokens[at..].iter().position(|t| is_punct(t, ';'));
                    let end = end.map_or(tokens.len(), |n| at + n);
                    self.import(module, Vec::new(), &tokens[at + 1..end]);
                    at = end;
                }
                TokenTree::Ident(_) => {
                    let (path, used) = path(&tokens[at..]);
                    if path.len() > 1 {
                        self.modules[module].paths.insert(path);
                    }
                    at += used;
                }
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.code(module, &inner);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Notes what a tree of a `use` brings in.
    fn import(&mut self, module: usize, before: Vec<String>, tree: &[TokenTree]) {
        let (more, used) = path(tree);
        let mut full = before;
        full.extend(more);
        let rest = &tree[used..];
        let rest: Vec<&TokenTree> = rest.iter().filter(|t| !is_punct(t, ':')).collect();
        match rest.first() {
            Some(TokenTree::Group(group)) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for tree in inner.split(|t| is_punct(t, ',')).filter(|t| !t.is_empty()) {
                    self.import(module, full.clone(), tree);
                }
            }
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                self.modules[module].globs.push(full);
            }
            _ => {
                if full.last().is_some_and(|last| last == "self") {
                    full.pop();
                }
                let alias = match rest.get(1) {
                    Some(TokenTree::Ident(alias)) => Some(alias.to_string()),
                    _ => full.last().cloned(),
                };
                if let Some(alias) = alias {
                    self.modules[module].imports.insert(alias, full);
                }
            }
        }
    }

    /// The module that a glob import of `module` opens; `None` for one of another crate.
    pub(crate) fn opened(&self, module: usize, glob: &[String]) -> Option<usize> {
        let (mut here, rest) = self.start(module, glob)?;
        for name in rest {
            here = *self.modules[here].children.get(name)?;
        }
        Some(here)
    }

    /// The module in which a path of `module` begins, and the rest of the path; `None` for a path of another crate.
    fn start<'p>(&self, module: usize, path: &'p [String]) -> Option<(usize, &'p [String])> {
        let mut here = module;
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => here = 0,
            "self" => {}
            "super" => here = self.modules[module].parent?,
            first => {
                let own = &self.modules[module];
                let known = own.children.contains_key(first)
                    || own.imports.get(first).is_some_and(|to| *to != path[..1])
                    || own.items.contains(first);
                return known.then_some((module, path));
            }
        }
        rest = &rest[1..];
        while rest.first().is_some_and(|w| w == "super") {
            here = self.modules[here].parent?;
            rest = &rest[1..];
        }
        Some((here, rest))
    }

    /// The module that defines what a path names; `None` for a module and for what another crate defines.
    pub(crate) fn definer(&self, module: usize, path: &[String], hops: usize) -> Option<usize> {
        if hops > HOPS_MAX {
            return None;
        }
        let (mut here, rest) = self.start(module, path)?;
        for (at, name) in rest.iter().enumerate() {
            let own = &self.modules[here];
            let last = at + 1 == rest.len();
            if own.items.contains(name) && (last || !own.children.contains_key(name)) {
                return Some(here);
            }
            if let Some(child) = own.children.get(name) {
                here = *child;
                continue;
            }
            if let Some(to) = own.imports.get(name) {
                let mut through = to.clone();
                through.extend_from_slice(&rest[at + 1..]);
                // A name that resolves to itself belongs to another crate.
                if through.first() == Some(name) && to.len() == 1 {
                    return None;
                }
                return self.definer(here, &through, hops + 1);
            }
            let found = own.globs.iter().find_map(|glob| {
                let mut through = glob.clone();
                through.extend_from_slice(&rest[at..]);
                let found = self.definer(here, &through, hops + 1)?;
                self.modules[found].items.contains(name).then_some(found)
            });
            return found.or_else(|| (here != module).then_some(here));
        }
        None
    }

    /// Whether a module lies inside another.
    pub(crate) fn is_inside(&self, module: usize, outer: usize) -> bool {
        let parent = |m: &usize| self.modules[*m].parent;
        std::iter::successors(Some(module), parent).any(|m| m == outer)
    }
}

const KEYWORDS: &[&str] = &[
    "use",
    "mod",
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "unsafe",
    "async",
    "extern",
    "impl",
    "macro_rules",
];

/// A word at the start of an item; nothing for what may stand between words, such as `(crate)`.
fn word_or_group(token: &TokenTree) -> Option<Option<String>> {
    match token {
        TokenTree::Ident(word) => Some(Some(word.to_string())),
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => Some(None),
        TokenTree::Literal(_) => Some(None),
        _ => None,
    }
}

/// The attribute that the tokens begin with, outer or inner, and how many tokens it takes.
fn attribute(tokens: &[TokenTree]) -> Option<(&Group, usize)> {
    match tokens {
        [hash, TokenTree::Group(group), ..] if is_punct(hash, '#') => Some((group, 2)),
        [hash, bang, TokenTree::Group(group), ..] if is_punct(hash, '#') && is_punct(bang, '!') => {
            Some((group, 3))
        }
        _ => None,
    }
}

/// Whether an attribute is `#[cfg(test)]` or asks for tests among other things.
fn is_for_tests(attribute: &Group) -> bool {
    let text = attribute.stream().to_string();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
        .collect();
    words.first() == Some(&"cfg") && words.contains(&"test") && !words.contains(&"not")
}

/// Returns a `derive` attribute as text, with a space after it.
fn derived(attribute: &Group) -> String {
    let text = attribute.stream().to_string();
    match text.starts_with("derive") {
        true => format!("#[{text}] ").replace(" (", "(").replace(" ,", ","),
        false => String::new(),
    }
}

/// Returns whether an item is `pub` without a limit, or an implementation.
fn may_be_public(item: &[TokenTree]) -> bool {
    match item {
        [TokenTree::Ident(word), next, ..] if word == "pub" => !matches!(next, TokenTree::Group(_)),
        [TokenTree::Ident(word), ..] => word == "impl",
        _ => false,
    }
}

/// Returns the number of tokens of the first item: up to its `;`, or to its body.
fn item_len(tokens: &[TokenTree]) -> usize {
    let has_body =
        |t: &TokenTree| matches!(t, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
    let words: Vec<String> = tokens
        .iter()
        .take_while(|t| !has_body(t))
        .map_while(word_or_group)
        .flatten()
        .collect();
    let is = |word: &str| words.iter().any(|w| w == word);
    // The braces of a list, or of a value, do not end the item.
    let goes_on = is("use") || (is("static") || is("const")) && !is("fn");
    let ends = |t: &TokenTree| is_punct(t, ';') || has_body(t) && !goes_on;
    tokens
        .iter()
        .position(ends)
        .map_or(tokens.len(), |at| at + 1)
}

/// Returns the patterns of the `match` arms among the tokens, without their guards.
fn arms(tokens: &[TokenTree]) -> impl Iterator<Item = &[TokenTree]> {
    let arrows = (1..tokens.len()).filter(|at| is_arrow(&tokens[at - 1..=*at]));
    arrows.map(|arrow| {
        let before = &tokens[..arrow - 1];
        // The arm before ends with a comma, or with its body in braces. The fields of a pattern are braces too: they
        // follow a name.
        let mut begin = before.len();
        while begin > 0 {
            let is_end = match &before[begin - 1] {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    begin < 2 || !matches!(before[begin - 2], TokenTree::Ident(_))
                }
                token => is_punct(token, ','),
            };
            if is_end {
                break;
            }
            begin -= 1;
        }
        let is_if = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "if");
        let arm = &before[begin..];
        let end = arm.iter().position(is_if).unwrap_or(arm.len());
        &arm[..end]
    })
}

fn is_arrow(pair: &[TokenTree]) -> bool {
    is_punct(&pair[0], '=') && is_punct(&pair[1], '>')
}

/// Notes every path of a pattern, also of those inside it.
fn paths_in(pattern: &[TokenTree], found: &mut BTreeSet<Vec<String>>) {
    let mut at = 0;
    while at < pattern.len() {
        match &pattern[at] {
            TokenTree::Ident(_) => {
                let (path, used) = path(&pattern[at..]);
                if path.len() > 1 {
                    found.insert(path);
                }
                at += used;
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                paths_in(&inner, found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

fn is_punct(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == punct)
}

/// The path that the tokens begin with, and how many tokens it takes.
fn path(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    let mut at = 0;
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        path.push(word.to_string());
        at += 1;
        let goes_on = tokens.get(at).is_some_and(|t| is_punct(t, ':'))
            && tokens.get(at + 1).is_some_and(|t| is_punct(t, ':'))
            && matches!(tokens.get(at + 2), Some(TokenTree::Ident(_)));
        if !goes_on {
            break;
        }
        at += 2;
    }
    (path, at.max(1).min(tokens.len()))
}

/// Counts types `Result<_, String>` in a piece of code.
fn texts(tokens: &[TokenTree]) -> usize {
    let mut count = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                count += texts(&inner);
            }
            TokenTree::Ident(word) if word == "Result" => {
                count += usize::from(ends_in_string(&tokens[at + 1..]));
            }
            _ => {}
        }
    }
    count
}

/// Returns whether the last of several arguments of a generic type is `String`.
fn ends_in_string(arguments: &[TokenTree]) -> bool {
    let (mut depth, mut last) = (0, None);
    for (at, token) in arguments.iter().enumerate() {
        if at > 0 && is_punct(&arguments[at - 1], '-') {
            // The arrow of a function type closes nothing.
            continue;
        }
        match token {
            token if is_punct(token, '<') => depth += 1,
            token if is_punct(token, '>') => depth -= 1,
            token if is_punct(token, ',') && depth == 1 => last = Some(at + 1),
            _ => {}
        }
        if depth == 0 {
            let last = last.map_or(&[][..], |from| &arguments[from..at]);
            return matches!(last, [TokenTree::Ident(name)] if name == "String");
        }
    }
    false
}
