//! Reads what evaluation tools have recorded, and joins the answers of several models to one table.
//!
//! Input: files with their names; a file is recognized by its content. Output: the table, the files that were read,
//! and the records that were dropped, with reasons. Each format is one module and one row in [`FORMATS`].

#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![doc = include_str!("../README.md")]

mod content;
mod file;
mod formats;
mod gold;
mod join;
mod record;
mod unzip;
mod written;

pub use file::File;
pub use formats::{FORMATS, Format};
pub use gold::Gold;
pub use join::{About, Dropped, Joined, Source};
pub use record::{Unread, Wanted};
pub use written::{Written, study, written, written_ways};

use content::Content;
use formats::Input;

/// Reads files and joins them. Files beside the named ones may complete them, but hold no answers of their own.
///
/// # Errors
/// If a named file is of no known format or damaged, or no answer is left.
pub fn read(files: &[File], wanted: &Wanted) -> Result<Joined, Unread> {
    let contents: Vec<Content<'_>> = files.iter().map(Content::of).collect();
    let mut joint = join::Join::default();
    for (file, content) in files.iter().zip(&contents) {
        if file.is_beside() {
            continue;
        }
        let Some(format) = formats::of(content) else {
            match (formats::completes(content), file.is_found()) {
                (true, _) => {}
                (false, true) => joint.skip(file),
                (false, false) => return Err(formats::unknown(file)),
            }
            continue;
        };
        let input = Input {
            file,
            content,
            files,
            contents: &contents,
            wanted,
        };
        let records = (format.read)(&input)?;
        joint.add(file, format.name, records);
    }
    joint.finish(wanted)
}

/// Returns whether a file is recorded answers of one of the [`FORMATS`].
pub fn is_known(file: &File) -> bool {
    let content = Content::of(file);
    formats::of(&content).is_some() || formats::completes(&content)
}

/// Returns whether other files of its folder may complete a file: the name of its model, or its scores.
pub fn is_completed(file: &File) -> bool {
    let content = Content::of(file);
    formats::of(&content).is_some_and(|format| format.is_completed)
}
