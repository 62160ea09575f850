//! A file to read.

/// A file with the name that the user sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The path.
    pub path: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The name of the model, if the user gave one.
    pub model: Option<String>,
    role: Role,
}

/// Why a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The user named it.
    Named,
    /// It was found in a folder that the user named.
    Found,
    /// It is in the folder of a named file.
    Beside,
}

impl File {
    /// A file that the user named: an unknown format is an error.
    pub fn new(path: &str, bytes: Vec<u8>) -> Self {
        Self {
            path: path.to_owned(),
            bytes,
            model: None,
            role: Role::Named,
        }
    }

    /// A file of a folder that the user named: an unknown format is skipped.
    pub fn found(path: &str, bytes: Vec<u8>) -> Self {
        Self {
            role: Role::Found,
            ..Self::new(path, bytes)
        }
    }

    /// A file beside a named one: its answers are not read.
    pub fn beside(path: &str, bytes: Vec<u8>) -> Self {
        Self {
            role: Role::Beside,
            ..Self::new(path, bytes)
        }
    }

    pub(crate) fn is_found(&self) -> bool {
        self.role == Role::Found
    }

    pub(crate) fn is_beside(&self) -> bool {
        self.role == Role::Beside
    }

    /// Returns the path of its folder.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Returns the name without folders.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the name of its folder without the folders above.
    pub(crate) fn folder_name(&self) -> &str {
        self.folder().rsplit('/').next().unwrap_or_default()
    }
}
