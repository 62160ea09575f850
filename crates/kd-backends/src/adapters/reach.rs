//! Computes the paths that a read-only agent can still use: its own state, the working copy (read-only), and the
//! programs that it needs.
//!
//! Input: a row of the table, an environment, a folder. Output: [`Rights`] that the system enforces.

use super::programs::{OTHERS, State, program};
use crate::checkout::{self, GitData};
use crate::env::Env;
use crate::transport::rights::{Rights, system};
use std::path::{Path, PathBuf};

/// Folders of programs and sources in a home directory that contain no keys: the folders of version managers and
/// package managers.
const PROGRAMS_AT_HOME: &[&str] = &[
    ".nvm",
    ".fnm",
    ".volta",
    ".asdf",
    ".proto",
    ".nodenv",
    ".pyenv",
    ".rbenv",
    ".sdkman/candidates",
    ".bun",
    ".deno/bin",
    ".n",
    ".npm-global",
    ".opencode/bin",
    ".rustup/toolchains",
    ".cargo/bin",
    ".cargo/registry/src",
    ".cargo/git/checkouts",
    ".m2/repository",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".nix-profile",
    "go/pkg/mod",
];

/// Variables that name files a program reads.
const FILES: &[&str] = &["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

/// Git settings that every program may read; none of them is a key.
const GIT: &[&str] = &[
    "~/.gitconfig",
    "~/.config/git/config",
    "~/.config/git/ignore",
];

/// Variables that name a file with a program's keys, and settings that are read only if a variable is set.
const KEYS: &[(&str, Option<&str>)] = &[
    ("GOOGLE_APPLICATION_CREDENTIALS", None),
    ("CLAUDE_CODE_USE_BEDROCK", Some("~/.aws")),
    ("CLAUDE_CODE_USE_VERTEX", Some("$XDG_CONFIG_HOME/gcloud")),
    ("GOOGLE_GENAI_USE_VERTEXAI", Some("$XDG_CONFIG_HOME/gcloud")),
];

/// The part of the file system that a program can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// The working copy, and programs; its row lists what else it needs.
    Copy,
    /// Everything except hidden files in home directories, where keys are, and except sockets and temporary files of
    /// other programs, because the needs of the program are unknown.
    Wide,
}

/// Interpreters and launchers: the program is their first argument that is not an option.
const RUNNERS: &[&str] = &[
    "node", "npx", "npm", "pnpm", "yarn", "bun", "bunx", "deno", "python", "python3", "uv", "uvx",
    "pipx", "ruby", "perl",
];

/// Subcommands of launchers that precede the program.
const VERBS: &[&str] = &["run", "exec", "dlx", "x", "tool"];

/// Names whose places in a home directory are shared by many programs or contain keys or code: no program gets them by
/// its name.
const SHARED_NAMES: &[&str] = &[
    "autostart",
    "aws",
    "azure",
    "bash",
    "cache",
    "cargo",
    "config",
    "containers",
    "dash",
    "data",
    "dbus-1",
    "dconf",
    "docker",
    "emacs",
    "env",
    "environment",
    "fish",
    "fonts",
    "gcloud",
    "gh",
    "git",
    "gitconfig",
    "glab-cli",
    "gnupg",
    "gpg",
    "gradle",
    "java",
    "jupyter",
    "kd",
    "keyrings",
    "kingdom",
    "ksh",
    "kube",
    "kubectl",
    "lib",
    "local",
    "m2",
    "mozilla",
    "mutt",
    "netrc",
    "nix",
    "npm",
    "nvim",
    "nvm",
    "opt",
    "pass",
    "password-store",
    "pip",
    "pki",
    "profile",
    "pulumi",
    "pyenv",
    "pypirc",
    "python",
    "rclone",
    "rustup",
    "sh",
    "share",
    "ssh",
    "state",
    "sudo",
    "systemd",
    "terraform",
    "terraform.d",
    "thunderbird",
    "tmux",
    "vim",
    "vscode",
    "xprofile",
    "zsh",
    "zshenv",
];

/// Returns whether the usual places of a name belong to a program of this name.
fn has_places(name: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    let is_settings = ["rc", "profile", "history", "login", "logout"]
        .iter()
        .any(|end| name.ends_with(end));
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && name.chars().all(is_name) && !is_settings && !SHARED_NAMES.contains(&name)
}

/// Returns the name of a program, without its folder, scope, version and extension.
fn stem(word: &str) -> Option<String> {
    let name = Path::new(word).file_name()?.to_string_lossy().into_owned();
    let name = name.split_once('@').map_or(&*name, |(name, _)| name);
    Some(Path::new(name).file_stem()?.to_string_lossy().into_owned())
}

/// Returns the name of the program that a command starts; for an interpreter or launcher, the name of the program that
/// it runs. `None` if that program is in the working folder or its checkout: the folder's author chose that name, so it
/// grants no rights.
pub(super) fn name(argv: &[String], at: Option<&Path>, folder: &Path, env: &Env) -> Option<String> {
    let (first, args) = argv.split_first()?;
    let is_relative = |word: &str| word.contains('/') && env.expand(word).is_relative();
    let is_inside = |path: &Path| is_inside(path, folder, env);
    if is_relative(first) || at.is_some_and(is_inside) {
        return None;
    }
    let own = stem(first)?;
    if !RUNNERS.contains(&own.as_str()) {
        return Some(own);
    }
    let mut words = args.iter().filter(|word| !word.starts_with('-'));
    let word = words.find(|word| !VERBS.contains(&word.as_str()))?;
    let path = env.expand(word);
    let name = stem(word)?;
    // `npx` and others prefer a package of the project.
    let is_package = || {
        let bins = folder.ancestors().map(|up| up.join("node_modules/.bin"));
        bins.map(|bin| bin.join(&name))
            .any(|at| at.symlink_metadata().is_ok())
    };
    let is_scoped = word.starts_with('@');
    let is_here = |ending: &str| {
        folder
            .join(format!("{word}{ending}"))
            .symlink_metadata()
            .is_ok()
    };
    let of_folder = match path.is_absolute() {
        true => is_inside(&path),
        false => (is_relative(word) && !is_scoped) || is_here("") || is_here(".py") || is_package(),
    };
    (!of_folder).then_some(name)
}

/// Returns whether a path is in the folder's checkout. A checkout that contains the home directory is the user's own.
fn is_inside(path: &Path, folder: &Path, env: &Env) -> bool {
    let real = |at: &Path| at.canonicalize().unwrap_or_else(|_| at.to_path_buf());
    let top = real(checkout::top(folder).unwrap_or(folder));
    let is_users = env.home().is_some_and(|home| real(&home).starts_with(&top));
    !is_users && (path.starts_with(&top) || real(path).starts_with(&top))
}

/// Returns the entry of a program in [`OTHERS`].
fn other(name: &str) -> Option<&'static State> {
    let row = OTHERS.iter().find(|(known, _)| *known == name);
    row.map(|(_, state)| state)
}

/// Returns whether a program outside the table has its own sandbox: see [`super::programs::Program::own_sandbox`].
pub(super) fn own_sandbox(name: &str) -> bool {
    match other(name) {
        Some(State::Of(backend)) => program(backend).is_some_and(|program| program.own_sandbox),
        _ => false,
    }
}

/// Returns the state of a program outside the table: its entry in [`OTHERS`], and the usual places for its name.
pub(super) fn state(name: &str) -> Vec<String> {
    let known = match other(name) {
        Some(State::Of(backend)) => program(backend).map_or(&[][..], |program| program.own),
        Some(State::Own(own)) => own,
        None => &[],
    };
    let known = known.iter().map(|at| (*at).to_owned());
    let places = [
        "~/.",
        "$XDG_CONFIG_HOME/",
        "$XDG_DATA_HOME/",
        "$XDG_STATE_HOME/",
        "$XDG_CACHE_HOME/",
    ];
    let usual = places.iter().filter(|_| has_places(name));
    known
        .chain(usual.map(|place| format!("{place}{name}")))
        .collect()
}

/// The agent to compute rights for.
pub(super) struct Agent<'a> {
    /// Its program.
    pub(super) program: &'a Path,
    /// Words of its command that may be paths: scripts and settings.
    pub(super) words: &'a [String],
    /// Its state, in the form of the table.
    pub(super) own: &'a [String],
    pub(super) reads: Reads,
    /// The folder it works in.
    pub(super) folder: &'a Path,
    /// Whether the program belongs to the folder: then its words and the files beside it grant no access.
    pub(super) of_folder: bool,
    /// Finds a checkout's git data outside of it.
    pub(super) git_data: Option<GitData>,
}

/// Computes the rights of an agent. Creates the folders of its state.
pub(super) fn rights(agent: &Agent<'_>, env: &Env) -> Rights {
    let home = env.home().map(|home| home.canonicalize().unwrap_or(home));
    let home = home.as_deref();
    let top = checkout::top(agent.folder);
    let git = top.zip(agent.git_data).map(|(top, data)| data(top));
    let mut read: Vec<PathBuf> = std::iter::once(agent.folder.to_path_buf())
        .chain(top.map(Path::to_path_buf))
        .chain(git.into_iter().flatten())
        .collect();
    read.extend(match agent.of_folder {
        // Links beside it can lead anywhere.
        true => vec![agent.program.to_path_buf()],
        false => installation(agent.program),
    });
    if let Some(home) = home {
        read.extend(PROGRAMS_AT_HOME.iter().map(|path| home.join(path)));
        if agent.reads == Reads::Wide {
            read.extend(wide(home));
        }
    }
    if agent.reads == Reads::Wide && !agent.of_folder {
        let beside = agent.program.parent().filter(|at| at.is_absolute());
        read.extend(beside.map(Path::to_path_buf));
        let paths = agent.words.iter().map(|word| env.expand(word));
        read.extend(paths.filter(|word| word.is_absolute()));
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
    let read = read.into_iter().flat_map(|at| without_keys(at, home));
    let read = read.collect();
    let mut write = Vec::new();
    for path in agent.own {
        let Some(at) = place(path, env) else {
            continue;
        };
        if path.ends_with('/') {
            make(&at);
        }
        write.push(at);
    }
    Rights { read, write }
}

/// Maximum length of the path list passed to a program: the system limits the length of an argument.
const TOLD_BYTES_MAX: usize = 96 * 1024;

/// Returns the paths that commands may read in the agent's own sandbox: real paths, the most important first. Leaves
/// out paths that its settings could read as patterns.
pub(super) fn readable(agent: &Agent<'_>, env: &Env) -> Vec<String> {
    let rights = rights(agent, env);
    let skills = place("$CODEX_HOME/skills", env).or_else(|| place("~/.codex/skills", env));
    let more = skills.into_iter().chain(system());
    let paths = rights.read.into_iter().chain(rights.write).chain(more);
    let mut told: Vec<String> = Vec::new();
    let mut length = 0;
    let plain = |path: &String| !path.contains(['*', '?', '[', '{']) && path != "/";
    let real = |path: PathBuf| {
        path.canonicalize()
            .ok()?
            .into_os_string()
            .into_string()
            .ok()
    };
    for path in paths.filter_map(real).filter(plain) {
        if !told.contains(&path) && length < TOLD_BYTES_MAX {
            length += path.len() + "\"\"=\"read\",".len();
            told.push(path);
        }
    }
    told
}

/// Returns whether a path of the table, or of `agents.<name>.state`, is valid: absolute, or relative to the home
/// directory or a variable.
pub(super) fn is_place(path: &str) -> bool {
    path == "~" || path.starts_with(['/', '$']) || path.starts_with("~/")
}

/// Creates a folder of an agent's state: a missing folder cannot be allowed. If this fails, the agent reports it.
fn make(at: &Path) {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let _ = builder.recursive(true).create(at);
}

/// Folders that a program with [`Reads::Wide`] cannot read: home directories, and the sockets and temporary files of
/// other programs. `/dev`, `/proc` and `/sys` have separate rules.
const NOT_WIDE: &[&str] = &[
    "/home", "/root", "/run", "/tmp", "/var/tmp", "/dev", "/proc", "/sys",
];

/// Returns everything visible from the root down to the home directory. No links: their targets are either visible too,
/// or hidden.
fn wide(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in home.ancestors() {
        // The siblings of a home directory are those of other users.
        let beside = Some(folder) == home.parent() && folder != Path::new("/");
        let is_not_wide = NOT_WIDE.iter().any(|not| folder.starts_with(not));
        if folder != home && (beside || is_not_wide) {
            continue;
        }
        let leads = |at: &Path, to: &Path| to.starts_with(at);
        let may = |at: &PathBuf| {
            !leads(at, home) && !NOT_WIDE.iter().any(|not| leads(at, Path::new(not)))
        };
        found.extend(visible(folder).filter(may));
    }
    found
}

/// Lists the entries of a folder that are neither hidden nor links.
fn visible(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let items = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".");
    items
        .filter(move |item| !is_hidden(&item.file_name()))
        .filter(|item| item.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|item| item.path())
}

fn is_bin(name: &std::ffi::OsStr) -> bool {
    name == "bin" || name == "sbin" || name == ".bin" || name == "shims"
}

/// Resolves a path of the table: `~/` is the home directory, `$NAME/` a variable; `None` if it is not set. The XDG
/// folders have their usual defaults.
fn place(path: &str, env: &Env) -> Option<PathBuf> {
    if path.starts_with('/') {
        return Some(path.into());
    }
    let home = env.home()?;
    let path = path.trim_end_matches('/');
    if path == "~" {
        return Some(home);
    }
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

/// Returns the real path of a folder; for one that contains the home directory, only what is visible there, because
/// keys are in hidden files.
fn without_keys(folder: PathBuf, home: Option<&Path>) -> Vec<PathBuf> {
    let real = folder.canonicalize().unwrap_or(folder);
    match home.filter(|home| home.starts_with(&real)) {
        Some(home) => visible(home).collect(),
        None => vec![real],
    }
}

/// Returns the folders of a program and its libraries: its own folder, the outermost `node_modules` that contains it,
/// and the `lib` beside its `bin`.
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
        let agent = Agent {
            program: Path::new("/home/u/.nvm/v/bin/codex"),
            words: &[],
            own: &own,
            reads: Reads::Copy,
            folder: Path::new("/w/p"),
            of_folder: false,
            git_data: None,
        };
        let rights = rights(&agent, &env);
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

    #[test]
    fn a_command_of_the_users_own_reads_what_is_visible_and_no_keys() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let home = top.join("homes/u");
        for folder in [
            "homes/u/.ssh",
            "homes/u/.config/gh",
            "homes/u/agents",
            "homes/u/src/p",
            "homes/u/.local/bin",
            "homes/other/src",
            "srv/models",
        ] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(home.join(".ssh"), home.join("keys")).unwrap();
        let env = Env::of([("HOME", home.to_str().unwrap())]);
        let words = ["python3", "~/agents/mine.py", "-v"].map(str::to_owned);
        let own = state(&name(&words, None, &home.join("src/p"), &env).unwrap());
        let folder = home.join("src/p");
        let agent = Agent {
            program: Path::new("/usr/bin/python3"),
            words: &words,
            own: &own,
            reads: Reads::Wide,
            folder: &folder,
            of_folder: false,
            git_data: None,
        };
        let rights = rights(&agent, &env);
        // Resolves links, because the system sees real paths.
        let real = |at: &PathBuf| at.canonicalize().unwrap_or_else(|_| at.clone());
        let read: Vec<PathBuf> = rights.read.iter().map(real).collect();
        let can = |at: &str| read.iter().any(|right| top.join(at).starts_with(right));
        for (at, may) in [
            ("homes/u/agents/mine.py", true),
            ("homes/u/src/other", true),
            ("homes/u/.local/bin/x", true),
            ("homes/u/.ssh/id", false),
            ("homes/u/.config/gh/hosts.yml", false),
            ("homes/u/.netrc", false),
            ("homes/other/src", false),
        ] {
            assert_eq!(can(at), may, "{at}");
        }
        for at in [
            "/run/user/1/bus",
            "/tmp/kd-1/x",
            "/root/.ssh",
            "/home/x/.ssh",
        ] {
            assert!(!read.iter().any(|r| Path::new(at).starts_with(r)), "{at}");
        }
        assert!(rights.write.contains(&home.join(".mine")));
        assert!(!rights.write.iter().any(|at| at.ends_with(".-v")));
        assert!(!home.join(".mine").exists(), "only known folders are made");
    }

    #[test]
    fn commands_in_a_sandbox_of_their_own_are_told_real_paths_without_keys() {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().canonicalize().unwrap();
        for folder in [".ssh", ".codex/skills", "src/p", "src/lib[1]", ".nvm"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        let env = Env::of([
            ("HOME", home.to_str().unwrap()),
            ("PATH", "/usr/bin:/nowhere/bin"),
        ]);
        let told = |folder: &str, words: &[String]| {
            let folder = home.join(folder);
            let agent = Agent {
                program: Path::new("/usr/bin/codex"),
                words,
                own: &[],
                reads: if words.is_empty() {
                    Reads::Copy
                } else {
                    Reads::Wide
                },
                folder: &folder,
                of_folder: false,
                git_data: None,
            };
            readable(&agent, &env)
        };
        let own = |path: &str| home.join(path).to_str().unwrap().to_owned();
        let paths = told("src/p", &[]);
        assert_eq!(paths[0], own("src/p"), "first of all the working folder");
        for path in [own(".codex/skills"), own(".nvm"), "/usr".into()] {
            assert!(paths.contains(&path), "{path}: {paths:?}");
        }
        let words = ["codex".to_owned()];
        for paths in [paths, told("src/p", &words), told("", &[])] {
            assert!(
                paths.iter().all(|path| Path::new(path).exists()),
                "{paths:?}"
            );
            for hidden in [".ssh/id", ".codex/auth.json", ".netrc"] {
                let at = home.join(hidden);
                let open = paths.iter().filter(|path| at.starts_with(path));
                assert_eq!(open.count(), 0, "{hidden}: {paths:?}");
            }
        }
        assert!(
            !told("src/lib[1]", &[])
                .iter()
                .any(|path| path.contains('[')),
            "no pattern"
        );
    }

    #[test]
    fn the_state_of_every_program_is_its_own() {
        let env = Env::of([("HOME", "/home/u")]);
        for program in super::super::programs::PROGRAMS {
            assert!(!program.own.is_empty(), "{}", program.backend);
            for path in program.own {
                assert!(is_place(path), "{path}");
                let Some(at) = place(path, &env) else {
                    continue;
                };
                let below_home = at.strip_prefix("/home/u").unwrap();
                assert!(below_home.components().count() >= 1, "{path}");
                let shared = [
                    ".config",
                    ".local/share",
                    ".local/state",
                    ".cache",
                    ".ssh",
                    ".local",
                ];
                assert!(!shared.iter().any(|s| below_home == Path::new(s)), "{path}");
            }
        }
        let adapter = ["node", "/x/claude-agent-acp"].map(str::to_owned);
        let named = |argv: &[String]| name(argv, None, Path::new("/w"), &env).unwrap();
        assert!(state(&named(&adapter)).contains(&"~/.claude/".to_owned()));
        assert!(own_sandbox("codex-acp") && !own_sandbox(&named(&adapter)));
    }

    #[test]
    fn a_program_is_known_by_its_name_behind_launchers_and_options() {
        let env = Env::of([("HOME", "/home/u")]);
        for (argv, found) in [
            (&["/opt/x/codex-acp"][..], "codex-acp"),
            (&["npx", "-y", "@zed-industries/codex-acp"], "codex-acp"),
            (
                &["npx", "-y", "@zed-industries/codex-acp@0.16.0"],
                "codex-acp",
            ),
            (&["npx", "claude-code-acp@latest", "--x"], "claude-code-acp"),
            (&["pnpm", "dlx", "claude-code-acp"], "claude-code-acp"),
            (&["uv", "tool", "run", "mine"], "mine"),
            (&["node", "--no-warnings", "/opt/qwen.js"], "qwen"),
            (&["python3", "-m", "mine"], "mine"),
            (&["mine", "codex-acp"], "mine"),
        ] {
            let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
            let name = name(&argv, None, Path::new("/w/p"), &env);
            assert_eq!(name.as_deref(), Some(found), "{argv:?}");
        }
    }

    #[test]
    fn a_program_of_the_folder_has_no_name() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (home, folder) = (top.join("u"), top.join("u/p/sub"));
        for made in ["u/p/.git", "u/p/tools", "u/p/node_modules/.bin", "u/p/sub"] {
            std::fs::create_dir_all(top.join(made)).unwrap();
        }
        for file in [
            "u/p/tools/codex-acp",
            "u/p/node_modules/.bin/codex-acp",
            "u/p/sub/mine.py",
        ] {
            std::fs::write(top.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink(top.join("u/p/tools"), home.join("bin")).unwrap();
        let env = Env::of([("HOME", home.to_str().unwrap())]);
        let inside = top.join("u/p/tools/codex-acp");
        let inside = inside.to_str().unwrap();
        for argv in [
            &["./tools/codex-acp"][..],
            &["../tools/codex-acp"],
            &["tools/local", "codex-acp"],
            &[inside],
            &["~/bin/codex-acp"],
            &["node", "../tools/codex-acp"],
            &["node", inside],
            &["npx", "-y", "@zed-industries/codex-acp"],
            &["python3", "mine.py"],
            &["python3", "-m", "mine"],
            &["python3"],
        ] {
            let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
            let at = env.expand(&argv[0]);
            assert_eq!(name(&argv, Some(&at), &folder, &env), None, "{argv:?}");
        }
        // On the PATH, by an absolute folder of the project.
        let on_path = name(
            &["local".to_owned()],
            Some(Path::new(inside)),
            &folder,
            &env,
        );
        assert_eq!(on_path, None);
        // In a home directory that is itself a checkout, programs are the user's own.
        std::fs::create_dir(home.join(".git")).unwrap();
        let own = [format!("{}/tools/mine", home.display())];
        assert_eq!(name(&own, None, &home, &env).as_deref(), Some("mine"));
    }

    #[test]
    fn no_name_opens_a_place_that_many_programs_share() {
        for shared in SHARED_NAMES {
            assert_eq!(state(shared), Vec::<String>::new(), "{shared}");
        }
        for shared in [
            "bashrc",
            "zprofile",
            "bash_history",
            "",
            "..",
            ".ssh",
            "-v",
            "a/b",
            "ssh/x",
        ] {
            assert_eq!(state(shared), Vec::<String>::new(), "{shared}");
        }
        assert!(state("mine").contains(&"~/.mine".to_owned()));
    }

    #[test]
    fn neither_a_word_nor_a_link_opens_the_home() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (home, folder) = (top.join("u"), top.join("u/src/p"));
        for made in ["u/.ssh", "u/src/p/tools/bin", "u/src/p/node_modules"] {
            std::fs::create_dir_all(top.join(made)).unwrap();
        }
        let link =
            |from: &str, to: &str| std::os::unix::fs::symlink(to, folder.join(from)).unwrap();
        link("tools/lib", "../../../.ssh");
        link("node_modules/x", "../../..");
        link("up", "../..");
        let env = Env::of([("HOME", home.to_str().unwrap())]);
        let words = [
            "./tools/bin/x",
            "/",
            "~/",
            "~/src/p/up",
            "~/src/p/node_modules/x",
        ]
        .map(str::to_owned);
        let rights = |program: &Path, of_folder| {
            let agent = Agent {
                program,
                words: &words,
                own: &[],
                reads: Reads::Wide,
                folder: &folder,
                of_folder,
                git_data: Some(|_| vec!["/".into()]),
            };
            rights(&agent, &env)
        };
        let key = home.join(".ssh/id");
        for (program, of_folder) in [
            (folder.join("tools/bin/x"), true),
            (folder.join("node_modules/x/y"), true),
            ("/usr/bin/x".into(), false),
            ("/x".into(), false),
        ] {
            let read = rights(&program, of_folder).read;
            let real = |at: &PathBuf| at.canonicalize().unwrap_or_else(|_| at.clone());
            let open: Vec<&PathBuf> = read.iter().filter(|at| key.starts_with(real(at))).collect();
            assert!(open.is_empty(), "{program:?}: {open:?}");
        }
    }
}
