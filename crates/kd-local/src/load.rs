//! Loads a model file: with the built-in code, or with llama.cpp.

use crate::engine::{Carrier, Engine, Options};
use crate::error::Error;
use crate::gguf::Gguf;
use std::path::{Path, PathBuf};

impl Engine {
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Gguf`], [`Error::Unsupported`] or [`Error::Tokenizer`] about the file, [`Error::Worker`]
    /// if a thread cannot be started.
    pub fn load(path: &Path, options: Options) -> Result<Self, Error> {
        let name = path
            .file_stem()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let carrier = match options.carrier {
            None => carrier_wanted()?,
            some => some,
        };
        if carrier == Some(Carrier::LlamaCpp) {
            return with_llama_cpp(path, name, &options);
        }
        let ours = Gguf::open(PathBuf::from(path))
            .and_then(|gguf| Self::start(gguf, name.clone(), options.clone()));
        match ours {
            Err(Error::Unsupported { .. } | Error::Tokenizer { .. })
                if carrier.is_none() && cfg!(feature = "llama-cpp") =>
            {
                with_llama_cpp(path, name, &options)
            }
            ours => ours,
        }
    }
}

/// Reads `KD_ENGINE`.
fn carrier_wanted() -> Result<Option<Carrier>, Error> {
    match std::env::var("KD_ENGINE").as_deref().map(str::trim) {
        Err(_) | Ok("" | "auto") => Ok(None),
        Ok("built-in") => Ok(Some(Carrier::BuiltIn)),
        Ok("llama-cpp") => Ok(Some(Carrier::LlamaCpp)),
        Ok(other) => Err(Error::Unsupported {
            what: format!("KD_ENGINE={other} (known: auto, built-in, llama-cpp)"),
        }),
    }
}

#[cfg(feature = "llama-cpp")]
fn with_llama_cpp(path: &Path, name: String, options: &Options) -> Result<Engine, Error> {
    crate::llama_cpp::load(path, name, options)
}

#[cfg(not(feature = "llama-cpp"))]
fn with_llama_cpp(_: &Path, _: String, _: &Options) -> Result<Engine, Error> {
    Err(Error::Unsupported {
        what: "llama.cpp, which is not built in".into(),
    })
}
