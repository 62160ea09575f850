//! Copies of pictures and documents beside the messages that attach them.
//!
//! A copy is named by its contents ([`kd_core::media`]): the same file is stored once in a thread, and a copy whose bytes
//! do not fit its name is never read.

use crate::beneath::{Folder, Kind};
use crate::bounds;
use crate::error::Error;
use crate::{frontmatter, index};
use kd_core::media::{self, Attachment, CopyName, MediaKind, Named};
use std::collections::BTreeSet;
use std::path::Path;

/// The end of the name of a message of the user.
const KINGS: &str = "-king.md";

/// Stores copies in the folder of a thread. One that is there already stays.
///
/// # Errors
/// If a copy cannot be written.
pub fn keep(folder: &Path, files: &[Attachment]) -> Result<(), Error> {
    let folder = Folder::open(folder)?;
    for file in files {
        if stored(&folder, &file.copy).is_none() {
            folder.replace(&*file.copy, &file.bytes)?;
        }
    }
    Ok(())
}

/// Reads a copy; `None` if there is none, or if its bytes do not fit its name.
pub fn read(folder: &Path, named: &Named) -> Option<Attachment> {
    let opened = Folder::open(folder).ok()?;
    let bytes = stored(&opened, &named.copy)?;
    Some(Attachment {
        name: named.name.clone(),
        copy: named.copy.clone(),
        kind: MediaKind::of(&bytes)?,
        path: folder.join(&*named.copy),
        bytes: bytes.into(),
    })
}

fn stored(folder: &Folder, copy: &CopyName) -> Option<Vec<u8>> {
    let bytes = folder.read(&**copy, bounds::COPY).ok().flatten()?;
    copy.fits(&bytes).then_some(bytes)
}

/// Copies the copies that these messages name into another folder.
pub(crate) fn copy(from: &Folder, to: &Folder, messages: &[&str]) -> Result<(), Error> {
    for name in named_by(from, messages.iter().copied())? {
        if let Some(bytes) = stored(from, &name) {
            to.replace(&*name, &bytes)?;
        }
    }
    Ok(())
}

/// Returns the copies that no message names, except copies with a number for which `is_forgotten` is true.
pub(crate) fn orphans(
    folder: &Folder,
    is_forgotten: impl Fn(u32) -> bool,
) -> Result<Vec<CopyName>, Error> {
    let items = folder.items()?;
    let files = items.iter().filter(|item| item.kind == Kind::File);
    let mut copies: Vec<CopyName> = files
        .filter_map(|item| CopyName::parse(item.name.to_str()?))
        .collect();
    if copies.is_empty() {
        return Ok(copies);
    }
    let entries = index::list(folder)?;
    let kept = entries.iter().filter(|entry| !is_forgotten(entry.seq));
    let named = named_by(folder, kept.map(|entry| entry.name.as_str()))?;
    copies.retain(|copy| !named.contains(copy));
    Ok(copies)
}

/// Returns the copies that messages of the user name, by their files. Members cannot attach a file by repeating its
/// name.
fn named_by<'a>(
    folder: &Folder,
    messages: impl Iterator<Item = &'a str>,
) -> Result<BTreeSet<CopyName>, Error> {
    let mut found = BTreeSet::new();
    for name in messages.filter(|name| name.ends_with(KINGS)) {
        let bytes = match folder.read(name, bounds::MESSAGE) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) if error.is_refused_file() => continue,
            Err(error) => return Err(error),
        };
        found.extend(named_in(name, &bytes).into_iter().map(|named| named.copy));
    }
    Ok(found)
}

/// Returns the copies that the file of a message names; none if it is not one of the user's.
pub(crate) fn named_in(name: &str, bytes: &[u8]) -> Vec<Named> {
    if !name.ends_with(KINGS) {
        return Vec::new();
    }
    let body = match frontmatter::parse(bytes).0 {
        Some(parsed) => parsed.body.to_string(),
        None => String::from_utf8_lossy(bytes).into_owned(),
    };
    media::named(&body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn picture(last: u8) -> Attachment {
        let bytes = [b"\x89PNG\r\n\x1a\n", &[last][..]].concat();
        Attachment::new("shot.png", bytes).unwrap()
    }

    #[test]
    fn only_a_copy_that_fits_its_name_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = picture(1);
        let [named] = &media::named(&format!("x\n\n{}", file.block()))[..] else {
            panic!("one is named");
        };
        assert_eq!(read(dir.path(), named), None);
        keep(dir.path(), std::slice::from_ref(&file)).unwrap();
        keep(dir.path(), std::slice::from_ref(&file)).unwrap();
        let path = dir.path().join(&*file.copy);
        let stored = Attachment {
            path: path.clone(),
            ..file.clone()
        };
        assert_eq!(read(dir.path(), named), Some(stored.clone()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        // Another picture, a text, a link to the right bytes.
        for bytes in [&picture(2).bytes[..], b"secret"] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(read(dir.path(), named), None);
        }
        let other = dir.path().join("other");
        fs::write(&other, &file.bytes).unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        assert_eq!(read(dir.path(), named), None);
        keep(dir.path(), &[file]).unwrap();
        assert_eq!(
            read(dir.path(), named),
            Some(stored),
            "the link is replaced"
        );
    }
}
