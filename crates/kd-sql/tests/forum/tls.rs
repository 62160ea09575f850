//! TLS to a real PostgreSQL, with an authority made for the test.

use crate::servers::{Encryption, start};
use kd_sql::forum::{ForumError, ForumStore, Place};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::path::Path;

/// Makes an authority; writes its certificate into a folder.
fn authority(folder: &Path, name: &str) -> Issuer<'static, KeyPair> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(folder.join(name), certificate.pem()).unwrap();
    Issuer::new(params, key)
}

fn server_certificate(by: &Issuer<'_, KeyPair>, host: &str) -> Encryption {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    Encryption {
        certificate: params.signed_by(&key, by).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

fn open(url: &str) -> Result<ForumStore, ForumError> {
    ForumStore::open(&Place::Server(url.to_owned()), None)
}

#[test]
fn certificates_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let ours = authority(folder.path(), "ours.pem");
    authority(folder.path(), "other.pem");
    let root = |name: &str| format!("sslrootcert={}", folder.path().join(name).display());
    let Some(server) = start(Some(&server_certificate(&ours, "localhost"))) else {
        return;
    };
    let url = format!("postgresql://kd@localhost:{}/postgres", server.port);

    for mode in ["require", "verify-ca", "verify-full"] {
        let mut store = open(&format!("{url}?sslmode={mode}&{}", root("ours.pem"))).unwrap();
        assert_eq!(store.counts("main").unwrap(), (0, 0), "{mode}");
    }
    for (what, url) in [
        ("another authority", format!("{url}?{}", root("other.pem"))),
        ("the system's", format!("{url}?sslmode=verify-full")),
        (
            "another host",
            format!(
                "postgresql://kd@127.0.0.1:{}/postgres?{}",
                server.port,
                root("ours.pem")
            ),
        ),
    ] {
        let error = open(&url).unwrap_err();
        assert!(matches!(error, ForumError::Tls { .. }), "{what}: {error}");
        assert!(error.hint().contains("sslrootcert="), "{what}: {error}");
    }
    let error = open(&format!("{url}?{}", root("none.pem"))).unwrap_err();
    assert!(error.to_string().contains("none.pem"), "{error}");
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_required() {
    let Some(server) = start(None) else { return };
    let url = format!("postgresql://kd@localhost:{}/postgres", server.port);
    let error = open(&format!("{url}?sslmode=require")).unwrap_err();
    assert!(error.to_string().contains("offers no TLS"), "{error}");
    assert!(error.hint().contains("ssl = on"), "{error}");
    open(&url).unwrap();
}
