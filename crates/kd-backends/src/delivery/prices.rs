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

/// Downloads an address. Sends nothing but the request.
///
/// # Errors
/// The reason, as a text for the user.
pub async fn fetch(url: &str) -> Result<Vec<u8>, String> {
    let may = url.starts_with("https://") || (is_loopback(url) && url.starts_with("http://"));
    if !may {
        return Err("an address begins with https://".to_owned());
    }
    let client = one_host(url)?;
    let unreachable = |e: reqwest::Error| format!("it cannot be reached ({})", io_words(&e));
    let mut response = client.get(url).send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(format!("it answered {}", response.status()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > LIST_BYTES_MAX {
            return Err(format!("it is longer than {} MiB", LIST_BYTES_MAX >> 20));
        }
    }
    Ok(bytes)
}

/// Returns the SHA-256 of a list, in hexadecimal.
pub fn fingerprint(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    kd_core::hex::hex(&Sha256::digest(bytes))
}
