//! The outer form of a file: by which it is recognized.

use crate::file::File;
use crate::unzip;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};

/// The outer form of a file.
#[derive(Debug)]
pub(crate) enum Content<'f> {
    /// An archive, with the names in it.
    Archive(BTreeSet<String>),
    /// One JSON object, with its keys.
    Object(Keys),
    /// A JSON list, with the keys of its first object.
    List(Keys),
    /// A JSON object on each line, with the keys of the first.
    Lines(Keys, &'f str),
    /// Something else.
    Other,
}

/// The keys of an object.
#[derive(Debug, Default)]
pub(crate) struct Keys(BTreeSet<String>);

impl Keys {
    /// Returns whether all of these are there.
    pub(crate) fn have(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.0.contains(*name))
    }

    fn of(object: BTreeMap<String, IgnoredAny>) -> Self {
        Self(object.into_keys().collect())
    }
}

impl<'f> Content<'f> {
    pub(crate) fn of(file: &'f File) -> Self {
        if file.bytes.starts_with(b"PK\x03\x04") {
            return unzip::names(&file.bytes).map_or(Content::Other, Content::Archive);
        }
        let Ok(text) = std::str::from_utf8(&file.bytes) else {
            return Content::Other;
        };
        let text = text.trim_start_matches('\u{feff}').trim();
        match text.as_bytes().first() {
            Some(b'{') => object(text),
            Some(b'[') => list(text),
            _ => Content::Other,
        }
    }
}

fn object(text: &str) -> Content<'_> {
    let mut values =
        serde_json::Deserializer::from_str(text).into_iter::<BTreeMap<String, IgnoredAny>>();
    let Some(Ok(first)) = values.next() else {
        return Content::Other;
    };
    let rest = text.get(values.byte_offset()..).unwrap_or_default();
    let keys = Keys::of(first);
    match rest.trim().is_empty() && text.contains('\n') {
        true => Content::Object(keys),
        false => Content::Lines(keys, text),
    }
}

fn list(text: &str) -> Content<'_> {
    /// The first element; the others are skipped.
    struct First(Keys);
    impl<'de> Deserialize<'de> for First {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = First;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a list of objects")
                }
                fn visit_seq<A: serde::de::SeqAccess<'de>>(
                    self,
                    mut all: A,
                ) -> Result<First, A::Error> {
                    let first: Option<BTreeMap<String, IgnoredAny>> = all.next_element()?;
                    while all.next_element::<IgnoredAny>()?.is_some() {}
                    Ok(First(Keys::of(first.unwrap_or_default())))
                }
            }
            deserializer.deserialize_seq(Visitor)
        }
    }
    match serde_json::from_str::<First>(text) {
        Ok(First(keys)) => Content::List(keys),
        Err(_) => Content::Other,
    }
}
