//! API keys of services: reads a key from its source, and keeps it from being shown anywhere else.

use crate::env::Env;
use crate::secret_file::{self, Links};
use kd_core::clean::clean_text;
use kd_core::{Failure, FailureKind};
use secrecy::{ExposeSecret, SecretString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Timeout for a command that prints a key.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// Minimum bytes of a key that is searched in files.
const KEY_MIN: usize = 8;
/// Maximum bytes read from a key file or a command's output.
const KEY_MAX: u64 = 16 << 10;

/// A key. Wiped from memory on drop; [`fmt::Debug`] does not show it.
#[derive(Clone)]
pub struct Key(SecretString);

/// The place where a key is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The first of these environment variables that is set.
    Env(Vec<String>),
    /// The first line of a file.
    File(PathBuf),
    /// The first line that a command prints.
    Command(Vec<String>),
}

impl Key {
    /// Creates a key from a text, without surrounding whitespace; `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.lines().next().unwrap_or_default().trim();
        (!text.is_empty()).then(|| Self(SecretString::from(text.to_owned())))
    }

    /// Returns the key itself, for the one place that sends it.
    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns whether a text contains the key. Short ones are in many texts.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let key = self.expose();
        key.len() >= KEY_MIN && text.contains(key)
    }

    /// Removes the key from a text, also where escape sequences or invisible characters hide it, or where the text was cut
    /// off in it.
    pub fn redact(&self, text: &str) -> String {
        let key = self.expose();
        // Some services echo the key JSON-escaped.
        let escaped = key.escape_default().to_string();
        let without = |text: &str| text.replace(key, "[key]").replace(&escaped, "[key]");
        let mut out = without(text);
        let clean = clean_text(&out);
        if clean.contains(key) || clean.contains(&escaped) {
            out = without(&clean);
        }
        let end = out.trim_end_matches('…').len();
        let begins = |len: &usize| {
            key.get(..*len)
                .is_some_and(|part| out[..end].ends_with(part))
        };
        if let Some(len) = (KEY_MIN..key.len()).rev().find(begins) {
            out.replace_range(end - len..end, "[key]");
        }
        out
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::Env(names) => write!(f, "the environment ({})", names.join(" or ")),
            KeySource::File(path) => write!(f, "the file {}", path.display()),
            KeySource::Command(argv) => write!(
                f,
                "the command `{}`",
                argv.first().map_or("", String::as_str)
            ),
        }
    }
}

impl KeySource {
    /// Returns the key if no command has to run for it.
    pub(crate) fn present(&self, env: &Env) -> Vec<Key> {
        match self {
            KeySource::Env(names) => {
                let values = names.iter().filter_map(|name| env.get(name));
                values.filter_map(|value| Key::new(&value)).collect()
            }
            KeySource::File(path) => from_file(path).into_iter().collect(),
            KeySource::Command(_) => Vec::new(),
        }
    }

    /// Reads the key. `Ok(None)` if no environment variable is set; a file or command without a key is a failure,
    /// because it was configured explicitly.
    ///
    /// # Errors
    /// If the key file cannot be read, is not private, or has an empty first line; or if the key command fails, takes
    /// too long, or prints nothing.
    pub async fn key(&self, env: &Env) -> Result<Option<Key>, Failure> {
        match self {
            KeySource::Env(names) => Ok(names
                .iter()
                .find_map(|n| env.get(n))
                .and_then(|v| Key::new(&v))),
            KeySource::File(path) => from_file(path).map(Some),
            KeySource::Command(argv) => from_command(argv, env).await.map(Some),
        }
    }
}

fn auth(message: String, advice: &str) -> Failure {
    Failure::new(FailureKind::Auth, message).advise(advice)
}

/// Returns the key in a file that the settings name, so that it can be masked; `None` if it cannot be read.
pub fn in_file(path: &str, env: &Env) -> Option<String> {
    let key = from_file(&env.expand(path)).ok()?;
    Some(key.expose().to_owned())
}

fn from_file(path: &Path) -> Result<Key, Failure> {
    let shown = path.display();
    // Key files are often links into a folder of secrets.
    let text = secret_file::read(path, KEY_MAX, Links::Follow).map_err(|refused| {
        auth(
            format!("cannot read the key file {shown}: {refused}"),
            refused.hint(),
        )
    })?;
    Key::new(&text).ok_or_else(|| {
        auth(
            format!("the first line of the key file {shown} is empty"),
            "put the key into its first line",
        )
    })
}

/// Returns the folder for a key command: the home directory, so that `python3 -m keyring` or a launcher with per-folder
/// settings loads no code from a project. A command with a word such as `./tools/key` runs in the working folder.
fn folder_of(argv: &[String], env: &Env) -> Option<PathBuf> {
    let is_here = |word: &String| word.starts_with("./") || word.starts_with("../");
    if argv.iter().any(is_here) {
        return None;
    }
    let home = env.home().filter(|home| home.is_dir());
    Some(home.unwrap_or_else(|| "/".into()))
}

async fn from_command(argv: &[String], env: &Env) -> Result<Key, Failure> {
    let Some((program, args)) = argv.split_first() else {
        return Err(auth(
            "the key command is empty".into(),
            "name a program and its arguments",
        ));
    };
    let run = async {
        let mut command = tokio::process::Command::new(program);
        if let Some(folder) = folder_of(argv, env) {
            command.current_dir(folder);
        }
        let mut child = command
            .args(args)
            .env("PATH", env.search_path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut text = Vec::new();
        if let Some(out) = child.stdout.take() {
            out.take(KEY_MAX).read_to_end(&mut text).await?;
        }
        Ok::<_, std::io::Error>((text, child.wait().await?))
    };
    let advice = "run the command by hand to see what it says";
    match tokio::time::timeout(COMMAND_LIMIT, run).await {
        Err(_) => Err(auth(
            format!(
                "the key command `{program}` took longer than {} s",
                COMMAND_LIMIT.as_secs()
            ),
            advice,
        )),
        Ok(Err(error)) => Err(auth(
            format!("the key command `{program}` cannot be run: {error}"),
            advice,
        )),
        Ok(Ok((_, status))) if !status.success() => Err(auth(
            format!("the key command `{program}` failed ({status})"),
            advice,
        )),
        Ok(Ok((text, _))) => Key::new(&String::from_utf8_lossy(&text)).ok_or_else(|| {
            auth(
                format!("the key command `{program}` printed nothing"),
                advice,
            )
        }),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const SECRET: &str = "sk-test-0123456789";

    fn command(script: &str) -> KeySource {
        KeySource::Command(vec!["sh".into(), "-c".into(), script.into()])
    }

    #[tokio::test]
    async fn a_key_command_runs_in_the_home_and_searches_no_relative_folder() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let shown = home.to_str().unwrap();
        let env = Env::of([("HOME", shown), ("PATH", ".:/usr/bin:/bin")]);
        let key = command("pwd; exit").key(&env).await.unwrap().unwrap();
        assert_eq!(key.expose(), shown);
        let key = command("echo $PATH").key(&env).await.unwrap().unwrap();
        assert_eq!(key.expose(), "/usr/bin:/bin");
        for here in ["./x", "../x"] {
            let argv = ["sh", "-c", "pwd", here].map(str::to_owned);
            let key = KeySource::Command(argv.to_vec()).key(&env).await;
            assert_ne!(key.unwrap().unwrap().expose(), shown, "{here}");
        }
    }

    #[test]
    fn a_key_that_is_hidden_or_cut_off_is_removed_too() {
        let key = Key::new(SECRET).unwrap();
        for (text, redacted) in [
            (format!("a {SECRET} b"), "a [key] b"),
            ("a sk-te\u{200b}st-0123456789 b".to_owned(), "a [key] b"),
            ("a sk-te\u{1b}[0mst-0123456789 b".to_owned(), "a [key] b"),
            (format!("a {}…", &SECRET[..12]), "a [key]…"),
            (format!("a {}", &SECRET[..8]), "a [key]"),
            ("a sk-test b".to_owned(), "a sk-test b"),
        ] {
            assert_eq!(key.redact(&text), redacted, "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_key_comes_from_environment_file_or_command() {
        let env = Env::of([("SECOND", SECRET), ("FIRST", "")]);
        let found = KeySource::Env(vec!["FIRST".into(), "SECOND".into()])
            .key(&env)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.expose(), SECRET);
        assert!(
            KeySource::Env(vec!["FIRST".into()])
                .key(&env)
                .await
                .unwrap()
                .is_none()
        );

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("  {SECRET}\nsecond line\n")).unwrap();
        let found = KeySource::File(file.path().into())
            .key(&env)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.expose(), SECRET);

        let found = command(&format!("echo {SECRET}; echo more"))
            .key(&env)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.expose(), SECRET);
    }

    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused_with_the_way_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), SECRET).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let failure = KeySource::File(file.path().into())
            .key(&Env::default())
            .await
            .unwrap_err();
        assert_eq!(failure.kind, FailureKind::Auth);
        assert!(failure.hint().contains("chmod 600"), "{failure:?}");
    }

    #[tokio::test]
    async fn commands_and_files_that_give_nothing_fail_without_showing_what_they_printed() {
        for script in ["exit 3", "true", "echo", "echo sk-half; exit 1"] {
            let failure = command(script).key(&Env::default()).await.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Auth);
            assert!(!format!("{failure:?}").contains("sk-half"));
        }
        let none = KeySource::Command(vec!["/nowhere/no-such-program".into()]);
        assert_eq!(
            none.key(&Env::default()).await.unwrap_err().kind,
            FailureKind::Auth
        );
        let none = KeySource::File("/nowhere/key".into());
        assert_eq!(
            none.key(&Env::default()).await.unwrap_err().kind,
            FailureKind::Auth
        );
    }

    #[test]
    fn a_key_never_shows_itself() {
        let key = Key::new(SECRET).unwrap();
        assert_eq!(format!("{key:?}"), "[key]");
        assert_eq!(
            key.redact(&format!("bad key {SECRET}, said \"{SECRET}\"")),
            "bad key [key], said \"[key]\""
        );
    }
}
