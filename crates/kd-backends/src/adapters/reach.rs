//! What an agent that may not write can still use: its own state, the working copy to read, and the programs it needs.
//!
//! Input: a row of the table, an environment, a folder. Output: [`Rights`] that the system enforces.

use crate::env::Env;
use crate::transport::rights::Rights;
use std::path::{Path, PathBuf};

/// Folders of programs in a home, without anybody's keys: those of version managers and package managers.
const PROGRAMS_AT_HOME: &[&str] = &[
    ".nvm",
    ".fnm",
    ".volta",
    ".asdf",
    ".pyenv",
    ".rbenv",
    ".bun",
    ".deno/bin",
    ".n",
    ".npm-global",
    ".opencode/bin",
    ".rustup/toolchains",
    ".cargo/bin",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".nix-profile",
];

/// Variables that name files a program reads.
const FILES: &[&str] = &["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

/// Settings of git that every program may read; none of them is a key.
const GIT: &[&str] = &[
    "~/.gitconfig",
    "~/.config/git/config",
    "~/.config/git/ignore",
];

/// Variables that name a file with a program's keys, and settings that are read only with a variable.
const KEYS: &[(&str, Option<&str>)] = &[
    ("GOOGLE_APPLICATION_CREDENTIALS", None),
    ("CLAUDE_CODE_USE_BEDROCK", Some("~/.aws")),
    ("CLAUDE_CODE_USE_VERTEX", Some("$XDG_CONFIG_HOME/gcloud")),
    ("GOOGLE_GENAI_USE_VERTEXAI", Some("$XDG_CONFIG_HOME/gcloud")),
];

/// The usual state of a program that no row describes.
pub(super) fn usual(program: &str) -> Vec<String> {
    let name = Path::new(program).file_stem().unwrap_or_default();
    let name = name.to_string_lossy();
    let places = [
        "~/.",
        "$XDG_CONFIG_HOME/",
        "$XDG_DATA_HOME/",
        "$XDG_STATE_HOME/",
        "$XDG_CACHE_HOME/",
    ];
    places.map(|place| format!("{place}{name}")).into()
}

/// The rights of a program in a folder; `own` is its state, as the table has it.
pub(super) fn rights(own: &[String], program: &Path, folder: &Path, env: &Env) -> Rights {
    let home = env.home();
    let mut read: Vec<PathBuf> = std::iter::once(folder.to_path_buf())
        .chain(repository(folder))
        .flat_map(|at| without_keys(at, home.as_deref()))
        .collect();
    read.extend(installation(program));
    if let Some(home) = &home {
        read.extend(PROGRAMS_AT_HOME.iter().map(|path| home.join(path)));
    }
    let path = env.get("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|at| at.file_name().is_some_and(is_bin));
    read.extend(folders.filter(|at| at.is_absolute()));
    read.extend(
        FILES
            .iter()
            .filter_map(|name| env.get(name))
            .map(PathBuf::from),
    );
    let keys = KEYS.iter().filter_map(|(name, at)| {
        let set = env.get(name)?;
        at.map_or_else(|| Some(set.into()), |at| place(at, env))
    });
    read.extend(keys);
    read.extend(GIT.iter().filter_map(|path| place(path, env)));
    let write = own.iter().filter_map(|path| place(path, env)).collect();
    Rights { read, write }
}

fn is_bin(name: &std::ffi::OsStr) -> bool {
    name == "bin" || name == "sbin" || name == ".bin" || name == "shims"
}

/// A path of the table: `~/` is the home, `$NAME/` a variable. None where it is not set. The XDG folders have their
/// usual places.
fn place(path: &str, env: &Env) -> Option<PathBuf> {
    let home = env.home()?;
    if let Some(rest) = path.strip_prefix("~/") {
        return Some(home.join(rest));
    }
    let (name, rest) = path
        .strip_prefix('$')?
        .split_once('/')
        .unwrap_or((path.strip_prefix('$')?, ""));
    let set = env
        .get(name)
        .map(PathBuf::from)
        .filter(|at| at.is_absolute());
    let usual = match name {
        "XDG_DATA_HOME" => Some(".local/share"),
        "XDG_STATE_HOME" => Some(".local/state"),
        "XDG_CACHE_HOME" => Some(".cache"),
        "XDG_CONFIG_HOME" => Some(".config"),
        _ => None,
    };
    let at = set.or_else(|| usual.map(|usual| home.join(usual)))?;
    Some(if rest.is_empty() { at } else { at.join(rest) })
}

/// A folder; of one that holds the home only what is visible in the home, for keys are in hidden files.
fn without_keys(folder: PathBuf, home: Option<&Path>) -> Vec<PathBuf> {
    let Some(home) = home.filter(|home| home.starts_with(&folder)) else {
        return vec![folder];
    };
    let items = std::fs::read_dir(home).into_iter().flatten().flatten();
    let is_hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".");
    items
        .filter(|item| !is_hidden(&item.file_name()))
        .map(|item| item.path())
        .collect()
}

/// The top of the repository, and what git keeps of a linked worktree elsewhere.
fn repository(folder: &Path) -> Vec<PathBuf> {
    let Some(top) = folder.ancestors().find(|at| at.join(".git").exists()) else {
        return Vec::new();
    };
    let mut found = vec![top.to_path_buf()];
    if let Ok(text) = std::fs::read_to_string(top.join(".git"))
        && let Some(own) = text.strip_prefix("gitdir:")
    {
        let own = top.join(own.trim());
        // `<common>/worktrees/<name>`
        found.extend(own.ancestors().nth(2).map(Path::to_path_buf));
        found.push(own);
    }
    found
}

/// Where a program and its libraries are: the folder of the program itself, the outermost `node_modules` that it is
/// in, and `lib` beside its `bin`.
fn installation(program: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let real = program.canonicalize();
    for at in [Some(program), real.as_deref().ok()].into_iter().flatten() {
        found.push(at.to_path_buf());
        let modules = at
            .ancestors()
            .filter(|at| at.file_name().is_some_and(|n| n == "node_modules"));
        found.extend(modules.last().map(Path::to_path_buf));
        if let Some(bin) = at.parent().filter(|at| at.file_name().is_some_and(is_bin)) {
            found.push(bin.to_path_buf());
            found.extend(bin.parent().map(|prefix| prefix.join("lib")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_readable_holds_neither_keys_nor_the_whole_home() {
        let env = Env::of([
            ("HOME", "/home/u"),
            ("PATH", "/home/u/.nvm/v/bin:/usr/bin:/home/u"),
            ("CODEX_HOME", "/x/codex"),
        ]);
        let own = [
            "$CODEX_HOME",
            "~/.codex",
            "$XDG_CACHE_HOME/codex",
            "$UNSET_HOME",
        ];
        let own = own.map(str::to_owned);
        let rights = rights(
            &own,
            Path::new("/home/u/.nvm/v/bin/codex"),
            Path::new("/w/p"),
            &env,
        );
        assert_eq!(
            rights.write,
            ["/x/codex", "/home/u/.codex", "/home/u/.cache/codex"].map(PathBuf::from)
        );
        let keys = [
            ".ssh/id",
            ".aws/credentials",
            ".gnupg/x",
            ".config/gh/hosts.yml",
            ".claude/x",
            ".config/kd/config.json",
            ".local/state/kd/x",
            ".mozilla/x",
            ".cargo/credentials.toml",
            ".netrc",
            ".npmrc",
        ];
        for key in keys {
            let at = Path::new("/home/u").join(key);
            let all = rights.read.iter().chain(&rights.write);
            let open: Vec<_> = all.filter(|right| at.starts_with(right)).collect();
            assert!(open.is_empty(), "{key}: {open:?}");
        }
        assert!(rights.read.contains(&"/home/u/.nvm/v/lib".into()));
    }
}
