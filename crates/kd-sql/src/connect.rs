//! Connections to PostgreSQL, with TLS, for forums and batches. Input: an address. Output: a client.
//!
//! A server on another machine must offer TLS with a certificate that the system trusts, or the authority that the
//! address names with `sslrootcert=FILE`, for the host of the address. A Unix socket or a loopback address needs no TLS,
//! unless the address asks for it with `sslmode`. Certificates and host names are always verified, also with
//! `sslmode=require`.

use percent_encoding::percent_decode_str;
use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The modes that a connection to another machine may have.
const SECURE: &[&str] = &["require", "verify-ca", "verify-full"];
/// The modes without TLS, or with TLS only where the server offers it.
const OPEN: &[&str] = &["disable", "allow", "prefer"];

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// TLS to the server failed.
    #[error("no TLS to the server: {why}")]
    Tls {
        /// The reason.
        why: String,
        /// Advice to the user.
        help: &'static str,
    },
    /// An address of another machine asks for a connection without TLS.
    #[error("`sslmode={mode}` does not protect the connection to another machine")]
    Unencrypted {
        /// The mode.
        mode: String,
    },
    /// A mode that does not exist.
    #[error("{0}")]
    Invalid(String),
    /// The client or the server refused.
    #[error(transparent)]
    Refused(#[from] postgres::Error),
}

/// Describes an error of the client or the server.
pub(crate) fn told(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => db.message().to_owned(),
        None => std::error::Error::source(error)
            .map_or(error.to_string(), |cause| format!("{error}: {cause}")),
    }
}

/// Returns whether a text is the address of a PostgreSQL server.
pub(crate) fn is_address(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// Returns an address for display: without a password.
pub(crate) fn shown(url: &str) -> String {
    // A password may contain any character, also unencoded ones: what is before the last `@` shows at most the user.
    let shown = match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, rest)), Some((_, host))) => {
            let user = rest.split(['@', ':']).next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        _ => url.to_owned(),
    };
    let Some((base, query)) = shown.split_once('?') else {
        return shown;
    };
    let masked = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_password(name) => format!("{name}=***"),
        _ => pair.to_owned(),
    });
    format!("{base}?{}", masked.collect::<Vec<_>>().join("&"))
}

fn is_password(name: &str) -> bool {
    let name = percent_decode_str(name).decode_utf8_lossy();
    name.to_ascii_lowercase().contains("password")
}

/// Returns the user and the database that an address names.
pub(crate) fn names(url: &str) -> (Option<String>, Option<String>) {
    let Ok(Address { config, .. }) = Address::parse(url) else {
        return (None, None);
    };
    let owned = |name: Option<&str>| name.map(str::to_owned);
    (owned(config.get_user()), owned(config.get_dbname()))
}

/// An address, split into the part that the client understands and the settings of TLS.
#[derive(Debug)]
struct Address {
    config: Config,
    /// The certificates to trust; `None` without TLS.
    trust: Option<Trust>,
}

/// The authorities that may sign the server's certificate.
#[derive(Debug, PartialEq, Eq)]
enum Trust {
    /// The authorities of the system.
    System,
    /// The authorities in a PEM file.
    File(PathBuf),
}

/// Connects to a server.
///
/// # Errors
/// It cannot be reached, refuses the user, or TLS fails.
pub(crate) fn connect(url: &str, name: &str, limit: Duration) -> Result<Client, ConnectError> {
    let Address { mut config, trust } = Address::parse(url)?;
    config.application_name(name).connect_timeout(limit);
    notice_silence(&mut config);
    let Some(trust) = trust else {
        return Ok(config.ssl_mode(SslMode::Disable).connect(NoTls)?);
    };
    let connector = MakeRustlsConnect::new(settings(&trust)?);
    config
        .ssl_mode(SslMode::Require)
        .connect(connector)
        .map_err(|error| why(error, &trust))
}

/// How long a connection may be silent while the other side should answer, before it counts as broken: a firewall or a cut
/// drops packets without a word, and the system alone would wait for up to two hours.
const SILENCE: Duration = Duration::from_secs(20);
/// Time without data before the first keepalive probe, and the time between probes.
const PROBE: Duration = Duration::from_secs(5);

/// Makes a connection end if packets get lost for long. Settings in the address hold.
fn notice_silence(config: &mut Config) {
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(PROBE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(PROBE);
    }
    if config.get_keepalives_retries().is_none() {
        let probes = SILENCE.as_secs() / PROBE.as_secs();
        config.keepalives_retries(u32::try_from(probes).unwrap_or(1));
    }
}

impl Address {
    fn parse(url: &str) -> Result<Self, ConnectError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut root, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let value = |value: &str| percent_decode_str(value).decode_utf8_lossy().into_owned();
            match pair.split_once('=') {
                Some(("sslmode", text)) => mode = Some(value(text)),
                Some(("sslrootcert", text)) => root = Some(value(text)),
                _ => rest.push(pair),
            }
        }
        let joint = if rest.is_empty() { "" } else { "?" };
        let config: Config = format!("{base}{joint}{}", rest.join("&")).parse()?;
        let is_secure = match mode.as_deref() {
            Some(mode) if SECURE.contains(&mode) => true,
            Some(mode) if OPEN.contains(&mode) => {
                if !is_local(&config) {
                    return Err(ConnectError::Unencrypted {
                        mode: mode.to_owned(),
                    });
                }
                false
            }
            Some(mode) => {
                return Err(ConnectError::Invalid(format!(
                    "`sslmode` must be one of {}, {}, not `{mode}`",
                    OPEN.join(", "),
                    SECURE.join(", ")
                )));
            }
            None => root.is_some() || !is_local(&config),
        };
        let trust = match root.as_deref() {
            _ if !is_secure => None,
            None | Some("system") => Some(Trust::System),
            Some(path) => Some(Trust::File(path.into())),
        };
        Ok(Self { config, trust })
    }
}

/// Returns whether all traffic stays on this machine.
fn is_local(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(|address| address.is_loopback());
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.trim_start_matches('[').trim_end_matches(']');
            name == "localhost"
                || address
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|address| address.is_loopback())
        }
    })
}

/// Builds the TLS settings of one connection: no provider is installed for the whole process.
fn settings(trust: &Trust) -> Result<ClientConfig, ConnectError> {
    let failed = |error: &dyn std::fmt::Display| ConnectError::Tls {
        why: error.to_string(),
        help: CERTIFICATES,
    };
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| failed(&e))?;
    let builder = match trust {
        Trust::System => {
            let verifier = Verifier::new(provider).map_err(|e| failed(&e))?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
        Trust::File(path) => builder.with_root_certificates(roots(path)?),
    };
    Ok(builder.with_no_client_auth())
}

fn roots(path: &Path) -> Result<RootCertStore, ConnectError> {
    let failed = |why: String| ConnectError::Tls {
        why: format!("{}: {why}", path.display()),
        help: CERTIFICATES,
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| failed(e.to_string()))? {
        let certificate = certificate.map_err(|e| failed(e.to_string()))?;
        roots.add(certificate).map_err(|e| failed(e.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(failed("no certificate is in it".to_owned())),
        false => Ok(roots),
    }
}

/// Advice about a certificate that is not accepted.
const CERTIFICATES: &str = "name the authority that signed the server's certificate in its address: postgresql://user@host/name?sslrootcert=/path/to/ca.pem";
/// Advice about a server without TLS.
const OFFER: &str = "turn TLS on at the server (`ssl = on` in postgresql.conf), or use a tunnel: ssh -L 5432:localhost:5432 HOST, and postgresql://user@localhost/name";

/// Tells a failure of TLS from others.
fn why(error: postgres::Error, trust: &Trust) -> ConnectError {
    // The client has no kinds of errors, only texts.
    if !error.to_string().starts_with("error performing TLS") {
        return error.into();
    }
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let cause = cause.unwrap_or_else(|| error.to_string());
    if cause.contains("does not support TLS") {
        return ConnectError::Tls {
            why: "the server offers no TLS".to_owned(),
            help: OFFER,
        };
    }
    let by = match trust {
        Trust::System => "the system's certificates".to_owned(),
        Trust::File(path) => path.display().to_string(),
    };
    ConnectError::Tls {
        why: format!("the server's certificate is not accepted by {by}: {cause}"),
        help: CERTIFICATES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust(url: &str) -> Option<Trust> {
        Address::parse(url).unwrap().trust
    }

    #[test]
    fn only_this_machine_is_reached_without_tls() {
        for local in [
            "postgresql://u@/db?host=/run/postgresql",
            "postgresql://u@localhost/db",
            "postgresql://u@127.0.0.1/db?sslmode=prefer",
            "postgresql://u@[::1]/db?sslmode=disable",
            "postgresql://u@example.org/db?hostaddr=127.0.0.1",
        ] {
            assert_eq!(trust(local), None, "{local}");
        }
        for far in [
            "postgresql://u@example.org/db",
            "postgresql://u@192.0.2.1/db?sslmode=require",
            "postgresql://u@localhost,example.org/db",
            "postgresql://u@localhost/db?hostaddr=192.0.2.1",
            "postgresql://u@localhost/db?sslmode=verify-full",
            "postgresql://u@example.org/db?sslrootcert=system",
        ] {
            assert_eq!(trust(far), Some(Trust::System), "{far}");
        }
        for named in [
            "postgresql://u@example.org/db?sslrootcert=%2Fca%20a.pem",
            "postgresql://u@localhost/db?sslrootcert=/ca%20a.pem&connect_timeout=3",
        ] {
            assert_eq!(trust(named), Some(Trust::File("/ca a.pem".into())));
        }
    }

    #[test]
    fn another_machine_is_never_reached_without_tls() {
        for mode in OPEN {
            let url = format!("postgresql://u@example.org/db?sslmode={mode}");
            let error = Address::parse(&url).unwrap_err();
            assert!(matches!(error, ConnectError::Unencrypted { .. }), "{mode}");
        }
        let error = Address::parse("postgresql://u@localhost/db?sslmode=on").unwrap_err();
        assert!(error.to_string().contains("verify-full"), "{error}");
    }

    #[test]
    fn a_connection_whose_packets_are_lost_ends_soon_unless_the_address_says_otherwise() {
        let settings = |url: &str| {
            let mut config = Address::parse(url).unwrap().config;
            notice_silence(&mut config);
            (
                config.get_tcp_user_timeout().copied().unwrap(),
                config.get_keepalives_idle(),
                config.get_keepalives_interval(),
                config.get_keepalives_retries(),
            )
        };
        assert_eq!(
            settings("postgresql://u@example.org/db"),
            (SILENCE, PROBE, Some(PROBE), Some(4))
        );
        let minute = Duration::from_secs(60);
        let (user, idle, interval, _) = settings(
            "postgresql://u@example.org/db?tcp_user_timeout=60&keepalives_idle=60&keepalives_interval=60",
        );
        assert_eq!((user, idle, interval), (minute, minute, Some(minute)));
    }

    #[test]
    fn no_password_is_shown() {
        for (url, expected) in [
            ("postgresql://u:pw@h:5/db", "postgresql://u@h:5/db"),
            ("postgresql://u:p?w/@x@h/db?a=b", "postgresql://u@h/db?a=b"),
            (
                "postgresql://u@h/db?password=pw&a=b",
                "postgresql://u@h/db?password=***&a=b",
            ),
            (
                "postgresql://h/db?p%61ssword=pw",
                "postgresql://h/db?p%61ssword=***",
            ),
            (
                "postgresql://h/db?sslpassword=pw",
                "postgresql://h/db?sslpassword=***",
            ),
            (
                "postgresql://u@/db?host=/run",
                "postgresql://u@/db?host=/run",
            ),
            ("postgres://h/db", "postgres://h/db"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }
}
