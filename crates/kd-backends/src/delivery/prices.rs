//! Downloads litellm's price list, at the user's request.

use super::hub::one_host;
use crate::status::io_words;
use crate::transport::client::is_loopback;

/// Maximum size of the list in bytes: the one of 2026 has 3 MiB.
pub const LIST_BYTES_MAX: u64 = 32 << 20;

/// Returns the address of the list at a commit or branch of litellm.
pub fn address(commit: &str) -> String {
    format!(
        "https://raw.githubusercontent.com/BerriAI/litellm/{commit}/model_prices_and_context_window.json"
    )
}

/// The reason why no list was downloaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The address is not encrypted, and not on this machine.
    #[error("an address begins with https://")]
    Address,
    /// No HTTPS client can be created.
    #[error("{0}")]
    Client(String),
    /// The address does not answer, or stops in the middle.
    #[error("it cannot be reached ({0})")]
    Unreachable(String),
    /// It answers something else than the list.
    #[error("it answered {0}")]
    Status(String),
    /// It sends more than [`LIST_BYTES_MAX`].
    #[error("it is longer than {} MiB", LIST_BYTES_MAX >> 20)]
    TooLong,
}

/// Downloads an address. Sends nothing but the request.
///
/// # Errors
/// If the address may not be used, does not answer, or answers no list.
pub async fn fetch(url: &str) -> Result<Vec<u8>, ListError> {
    let may = url.starts_with("https://") || (is_loopback(url) && url.starts_with("http://"));
    if !may {
        return Err(ListError::Address);
    }
    let client = one_host(url).map_err(|e| ListError::Client(e.to_string()))?;
    let unreachable = |e: reqwest::Error| ListError::Unreachable(io_words(&e));
    let mut response = client.get(url).send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(ListError::Status(response.status().to_string()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > LIST_BYTES_MAX {
            return Err(ListError::TooLong);
        }
    }
    Ok(bytes)
}

/// Returns the SHA-256 of a list, in hexadecimal.
pub fn fingerprint(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    kd_core::hex::hex(&Sha256::digest(bytes))
}
