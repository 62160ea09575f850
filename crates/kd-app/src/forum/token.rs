//! Passes the token of a remote forum to the tool server that an agent program starts. Uses a socket, so that no file
//! contains the token, however this process ends.

use crate::error::{ErrorKind as Kind, UserError};
use kd_backends::remote::RemoteForum;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Prefix of the socket names.
const PREFIX: &str = "kd-visit-";

/// A socket that gives the token to every process that can enter its folder, so only to the user's processes. Removed
/// when dropped.
#[derive(Debug)]
pub(super) struct TokenSocket(PathBuf);

impl TokenSocket {
    /// Listens in a folder that only the user can enter. Removes the sockets of killed visits there.
    pub(super) fn listen(folder: &Path, forum: &RemoteForum) -> Result<Self, UserError> {
        let failed = |why: io::Error| {
            let what = format!("no socket can be made in {}", folder.display());
            UserError::new(Kind::Io, what)
                .because(why)
                .next("set XDG_RUNTIME_DIR to a short path")
        };
        sweep(folder).map_err(failed)?;
        let mut token = Vec::new();
        forum.save_key(&mut token)?;
        // It gets its name only when it listens, so that no cleanup takes it for a leftover.
        let made = tempfile::Builder::new()
            .prefix(".kd-visit-")
            .make_in(folder, |at| UnixListener::bind(at))
            .map_err(failed)?;
        let (listener, made) = made.into_parts();
        let hidden = made.keep().map_err(|e| failed(e.error))?;
        let name = hidden.file_name().unwrap_or_default().to_string_lossy();
        let at = folder.join(name.trim_start_matches('.'));
        fs::rename(&hidden, &at).map_err(failed)?;
        std::thread::Builder::new()
            .name("token".into())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    // A disconnected client does not need it.
                    let _ = give(stream, &token);
                }
            })
            .map_err(failed)?;
        Ok(Self(at))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TokenSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn give(mut stream: UnixStream, token: &[u8]) -> io::Result<()> {
    stream.write_all(token)
}

/// Removes sockets without a listener, and the files in which earlier versions stored the token.
fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let (at, kind) = (entry.path(), entry.file_type()?);
        let is_left = kind.is_file()
            || kind.is_socket()
                && UnixStream::connect(&at)
                    .is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
        if is_left {
            fs::remove_file(at)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use kd_backends::Env;
    use kd_core::config::RemoteConfig;

    #[test]
    fn what_killed_visits_left_is_removed_and_what_lives_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let live = UnixListener::bind(at("kd-visit-live")).unwrap();
        drop(UnixListener::bind(at("kd-visit-dead")).unwrap());
        fs::write(at("kd-visit-old"), "0123456789abcdef").unwrap();
        fs::write(at("other"), "").unwrap();
        sweep(folder.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["kd-visit-live", "other"]);
        drop(live);
    }

    #[test]
    fn a_socket_gives_the_token_and_no_file_holds_it() {
        const TOKEN: &str = "0123456789abcdef-alice";
        let config = RemoteConfig {
            url: Some("https://forum.example/mcp".into()),
            key_env: Some("LAB".into()),
            ..RemoteConfig::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let env = Env::of([("LAB", TOKEN)]);
        let forum = runtime
            .block_on(RemoteForum::open("lab", &config, &env))
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let socket = TokenSocket::listen(folder.path(), &forum).unwrap();
        let entries = || fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
        // Only a socket: a killed process leaves no token.
        let kinds: Vec<bool> = entries()
            .map(|entry| entry.file_type().unwrap().is_socket())
            .collect();
        assert_eq!(kinds, [true]);
        let url = forum.url().to_owned();
        let found = RemoteForum::with_key_socket("lab", &url, socket.path()).unwrap();
        let mut token = Vec::new();
        found.save_key(&mut token).unwrap();
        assert_eq!(String::from_utf8(token).unwrap().trim(), TOKEN);
        drop(socket);
        assert_eq!(entries().count(), 0);
        let gone = RemoteForum::with_key_socket("lab", &url, &folder.path().join("kd-visit-x"));
        assert!(gone.is_err_and(|why| why.advice.is_some()));
    }
}
