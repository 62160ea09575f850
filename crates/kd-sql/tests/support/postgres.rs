//! A PostgreSQL server for tests: `KD_TEST_POSTGRES_URL` names one. Without it, a server is started here if its programs are
//! installed. If they are not, what needs it is skipped with a note, unless `KD_TEST_POSTGRES=required`.
#![allow(dead_code, reason = "not every test program needs all of it")]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns an address with a new empty schema, if there is a server.
pub(crate) fn postgres_schema() -> Option<String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let Some(server) = server() else {
        assert!(
            std::env::var("KD_TEST_POSTGRES").as_deref() != Ok("required"),
            "KD_TEST_POSTGRES=required, and there is no PostgreSQL: install it, or set KD_TEST_POSTGRES_URL"
        );
        eprintln!(
            "no PostgreSQL here: not tested on it (install postgresql, or set KD_TEST_POSTGRES_URL)"
        );
        return None;
    };
    let schema = format!(
        "kd_{}_{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let mut client =
        postgres::Client::connect(server, postgres::NoTls).expect("the server answers");
    client
        .batch_execute(&format!(
            "DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}"
        ))
        .expect("a schema");
    let joint = if server.contains('?') { '&' } else { '?' };
    Some(format!("{server}{joint}options=-csearch_path%3D{schema}"))
}

/// Returns the server of this test program.
fn server() -> Option<&'static str> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER
        .get_or_init(Server::find)
        .as_ref()
        .map(|server| server.url.as_str())
}

/// The certificate of a server and its key, as PEM.
pub(crate) struct Encryption {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A separate server on a loopback port.
pub(crate) struct Listening {
    pub(crate) port: u16,
    _server: Server,
}

/// Starts a server on a port, with TLS or without. `None` if its programs are missing and not required.
pub(crate) fn start(encryption: Option<&Encryption>) -> Option<Listening> {
    let Some(programs) = programs() else {
        assert!(
            std::env::var("KD_TEST_POSTGRES").as_deref() != Ok("required"),
            "KD_TEST_POSTGRES=required, and there is no PostgreSQL: install it"
        );
        eprintln!("no PostgreSQL here: TLS is not tested (install postgresql)");
        return None;
    };
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("its number").port();
    drop(free);
    let server = Server::start(&programs, Some((port, encryption)))?;
    Some(Listening {
        port,
        _server: server,
    })
}

struct Server {
    url: String,
    /// The server ends with this test program: its standard input is our pipe.
    _child: Option<Child>,
}

impl Server {
    fn find() -> Option<Self> {
        if let Ok(url) = std::env::var("KD_TEST_POSTGRES_URL") {
            return Some(Self { url, _child: None });
        }
        Self::start(&programs()?, None)
    }

    /// Starts a fresh server in a new folder, on a socket in that folder, and on a port of loopback if one is given.
    fn start(programs: &Path, port: Option<(u16, Option<&Encryption>)>) -> Option<Self> {
        let folder = tempfile::Builder::new()
            .prefix("kdpg")
            .tempdir_in("/tmp")
            .expect("a folder")
            .keep();
        let owner = unprivileged();
        if let Some((uid, gid)) = owner {
            std::os::unix::fs::chown(&folder, Some(uid), Some(gid)).expect("its owner");
        }
        let data = folder.join("data");
        let run = |program: &str| {
            let mut command = Command::new(programs.join(program));
            if let Some((uid, gid)) = owner {
                command.gid(gid).uid(uid);
            }
            command
                .current_dir(&folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        };
        let made = run("initdb")
            .args([
                "-A",
                "trust",
                "-U",
                "kd",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .status()
            .is_ok_and(|status| status.success());
        if !made {
            return None;
        }
        let mut settings: Vec<String> = Vec::new();
        let mut set = |setting: String| settings.extend(["-c".to_owned(), setting]);
        match &port {
            None => set("listen_addresses=".to_owned()),
            Some((port, encryption)) => {
                set("listen_addresses=localhost".to_owned());
                set(format!("port={port}"));
                if let Some(encryption) = encryption {
                    let key = folder.join("server.key");
                    std::fs::write(&key, &encryption.key).expect("a key");
                    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600))
                        .expect("its mode");
                    if let Some((uid, gid)) = owner {
                        std::os::unix::fs::chown(&key, Some(uid), Some(gid)).expect("its owner");
                    }
                    let certificate = folder.join("server.pem");
                    std::fs::write(&certificate, &encryption.certificate).expect("a certificate");
                    set("ssl=on".to_owned());
                    set(format!("ssl_key_file={}", key.display()));
                    set(format!("ssl_cert_file={}", certificate.display()));
                }
            }
        }
        // A shell beside the server waits for our pipe to close, so that the server ends with the test program.
        let script = "program=$1; data=$2; folder=$3; shift 3; \
                      \"$program\" -D \"$data\" -k \"$folder\" -c fsync=off -c max_connections=64 \"$@\" & server=$!; \
                      cat >/dev/null; kill -INT $server; wait $server; rm -rf \"$folder\"";
        let mut command = Command::new("/bin/sh");
        if let Some((uid, gid)) = owner {
            command.gid(gid).uid(uid);
        }
        let child = command
            .args(["-c", script, "sh"])
            .args([&programs.join("postgres"), &data, &folder])
            .args(&settings)
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let url = match port {
            None => format!("postgresql://kd@/postgres?host={}", folder.display()),
            Some((port, _)) => format!(
                "postgresql://kd@/postgres?host={}&port={port}",
                folder.display()
            ),
        };
        for _ in 0..300 {
            if postgres::Client::connect(&url, postgres::NoTls).is_ok() {
                return Some(Self {
                    url,
                    _child: Some(child),
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!(
            "PostgreSQL was started in {} and does not answer",
            folder.display()
        );
    }
}

/// Returns the folder of `initdb` and `postgres`: Debian does not put them on the PATH.
fn programs() -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    folders.sort();
    folders.reverse();
    folders.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// PostgreSQL refuses to run as root: returns another user to run it.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    named("postgres").or_else(|| named("nobody"))
}
