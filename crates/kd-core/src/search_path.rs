//! The folders in which `kd` looks for programs.

use std::ffi::{OsStr, OsString};

/// The folders searched if `PATH` names no valid ones.
pub const DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns a `PATH` without relative and empty entries. Those refer to the working folder, and a project folder must
/// not provide the programs that `kd` starts.
pub fn absolute(path: Option<&OsStr>) -> OsString {
    let folders = std::env::split_paths(path.unwrap_or_default());
    let absolute: Vec<_> = folders.filter(|folder| folder.is_absolute()).collect();
    match std::env::join_paths(absolute) {
        Ok(path) if !path.is_empty() => path,
        // An empty `PATH` also means the working folder.
        _ => DEFAULT.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_folders_are_searched() {
        for (path, searched) in [
            ("/a:/b", "/a:/b"),
            (":/a", "/a"),
            ("/a:", "/a"),
            ("/a::/b", "/a:/b"),
            (".:/a:./bin:node_modules/.bin:../x:/b", "/a:/b"),
            ("~/bin:/a", "/a"),
            ("", DEFAULT),
            (".", DEFAULT),
            (":", DEFAULT),
        ] {
            assert_eq!(absolute(Some(path.as_ref())), searched, "{path:?}");
        }
        assert_eq!(absolute(None), DEFAULT);
    }
}
