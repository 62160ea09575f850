//! The user's own price table, which overrides the built-in one if it is newer.

use crate::error::Error;
use crate::private;
use crate::user_dirs::UserDirs;
use kd_core::prices::{Prices, Table};
use std::path::{Path, PathBuf};

/// Maximum bytes of a table: ten thousand models.
const BYTES_MAX: u64 = 4 << 20;

/// Returns the path of the table.
///
/// # Errors
/// [`Error::NoHome`] if no data folder is known.
pub fn path(dirs: &UserDirs) -> Result<PathBuf, Error> {
    Ok(dirs.data()?.join("prices.tsv"))
}

/// Returns the effective table: the user's, unless the built-in one is newer.
///
/// # Errors
/// The user's table cannot be read, or is invalid.
pub fn load(dirs: &UserDirs) -> Result<Prices, Error> {
    let Ok(path) = path(dirs) else {
        return Ok(Prices::default());
    };
    let Some(bytes) = private::read(&path, BYTES_MAX)? else {
        return Ok(Prices::default());
    };
    let table = parse(&path, &bytes)?;
    let own = Prices::default();
    // Dates in this format compare as text.
    match table.date >= own.table().date {
        true => Ok(Prices::of(table)),
        false => Ok(own),
    }
}

/// Saves a table. Returns its path.
///
/// # Errors
/// It cannot be written.
pub fn save(dirs: &UserDirs, table: &Table) -> Result<PathBuf, Error> {
    let path = path(dirs)?;
    private::replace(&path, table.to_text().as_bytes())?;
    Ok(path)
}

/// Removes the user's table. Returns whether there was one.
///
/// # Errors
/// It cannot be removed.
pub fn reset(dirs: &UserDirs) -> Result<bool, Error> {
    let path = path(dirs)?;
    let was = path.exists();
    private::remove(&path)?;
    Ok(was)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Table, Error> {
    let wrong = |why: String| Error::Prices {
        path: path.to_path_buf(),
        why,
    };
    let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    Table::parse(text).map_err(|error| wrong(error.to_string()))
}
