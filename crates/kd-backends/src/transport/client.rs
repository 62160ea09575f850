//! HTTP clients, built in one place: user agent, connect timeout, and TLS by rustls with the ring provider.
//!
//! The TLS configuration is handed to each client, so that no provider is installed for the whole process: a program that
//! uses this crate keeps its own choice ([ADR 13](../../../../docs/adr/0013-tls-by-ring.md)).

use reqwest::{Client, ClientBuilder};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for opening a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The certificates that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certificates {
    /// Those that the system trusts.
    System,
    /// None, for a client that only speaks plain HTTP. Saves reading all certificates of the system.
    Nothing,
}

/// The reason why an HTTP client cannot be created: usually, the certificates of the system cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot create an HTTPS client: {0}")]
pub(crate) struct NoClient(String);

/// Creates the HTTP client for an address; `shape` sets what only this client needs. Addresses of this machine are
/// reached without a proxy.
///
/// # Errors
///
/// If the certificates of the system cannot be read.
pub(crate) fn create(
    url: &str,
    certificates: Certificates,
    shape: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, NoClient> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls(certificates)?)
        .user_agent(concat!("kd/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT);
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    let created = shape(builder).build();
    created.map_err(|error| NoClient(error.to_string()))
}

/// Returns whether an address is on this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

fn tls(certificates: Certificates) -> Result<ClientConfig, NoClient> {
    let provider = Arc::new(ring::default_provider());
    let tls = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| NoClient(error.to_string()))?;
    let tls = match certificates {
        Certificates::System => {
            let verifier = Verifier::new(provider).map_err(|error| NoClient(error.to_string()))?;
            tls.dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
        Certificates::Nothing => tls.with_root_certificates(RootCertStore::empty()),
    };
    let mut tls = tls.with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}
