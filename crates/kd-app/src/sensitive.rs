//! File names that say that a file holds keys, tokens or passwords.
//!
//! Input: a path. Output: whether it does. Names are compared without case, and without the endings that editors and people
//! give to copies: `.env~`, `id_rsa.old`, `.npmrc.bak`. A name can be wrong in both directions, so it decides only whether
//! the user is asked; [`kd_core::secrets`] masks what looks like a secret in the text itself.

use std::ffi::OsStr;
use std::path::Path;

/// Folders whose files hold keys or sign-ins.
const FOLDERS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".gcloud",
    "gcloud",
    ".kube",
    ".docker",
    ".oci",
    ".chef",
    ".password-store",
    ".terraform.d",
    ".electrum",
    ".bitcoin",
    ".mozilla",
    "wireguard",
    "keychains",
];
/// Files in, or anywhere below, a folder.
const IN_FOLDERS: &[(&str, &str)] = &[
    (".git", "config"),
    (".hg", "hgrc"),
    (".m2", "settings.xml"),
    (".m2", "settings-security.xml"),
    (".nuget", "nuget.config"),
    (".config", "hub"),
    ("gh", "hosts.yml"),
    ("glab-cli", "config.yml"),
    ("etc", "shadow"),
    ("etc", "gshadow"),
];
/// Whole names.
const NAMES: &[&str] = &[
    ".envrc",
    ".dev.vars",
    ".hgrc",
    ".sentryclirc",
    ".condarc",
    ".flaskenv",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    "pgpass.conf",
    ".my.cnf",
    ".mylogin.cnf",
    ".htpasswd",
    ".htdigest",
    ".gitconfig",
    ".git-credentials",
    ".claude.json",
    ".dockercfg",
    ".dockerconfigjson",
    ".s3cfg",
    ".boto",
    ".passwd-s3fs",
    ".terraformrc",
    "terraform.rc",
    ".vault-token",
    ".vault_pass",
    "vault_pass.txt",
    "vault_pass",
    ".esmtprc",
    ".msmtprc",
    ".muttrc",
    ".fetchmailrc",
    ".remote-sync.json",
    ".ftpconfig",
    "sftp-config.json",
    "sftp.json",
    "rclone.conf",
    "filezilla.xml",
    "recentservers.xml",
    "sitemanager.xml",
    "auth.json",
    "wp-config.php",
    "database.yml",
    "local.settings.json",
    "logins.json",
    "key3.db",
    "key4.db",
    "signons.sqlite",
    "cookies.sqlite",
    "cookies.txt",
    "wallet.dat",
    "secring.gpg",
    ".bash_history",
    ".zsh_history",
    ".sh_history",
    ".history",
    "fish_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".python_history",
    ".node_repl_history",
];
/// Endings.
const ENDINGS: &[&str] = &[
    "env",
    "pem",
    "key",
    "p8",
    "p12",
    "pfx",
    "pkcs12",
    "pkcs8",
    "jks",
    "jceks",
    "bks",
    "keystore",
    "keytab",
    "keychain",
    "kdb",
    "kdbx",
    "kwallet",
    "agilekeychain",
    "opvault",
    "1pif",
    "psafe3",
    "ppk",
    "ovpn",
    "snk",
    "gpg",
    "tfvars",
    "tfstate",
    "htpasswd",
];
/// Words in the names of files of data: `token.txt`, `db-password.yml`, `client_secret_1.json`.
const WORDS: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "creds",
    "token",
    "tokens",
    "apikey",
    "apikeys",
    "api_key",
    "api_keys",
    "access_key",
    "access_keys",
    "private_key",
    "privatekey",
    "master_key",
    "service_account",
    "serviceaccount",
    "kubeconfig",
];
/// Endings of files of data.
const DATA: &[&str] = &[
    "",
    "txt",
    "json",
    "jsonc",
    "json5",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "config",
    "cnf",
    "csv",
    "tsv",
    "xml",
    "properties",
    "plist",
    "env",
];
/// Ends of the names of private SSH keys.
const SSH_KEYS: &[&str] = &[
    "rsa",
    "dsa",
    "ecdsa",
    "ed25519",
    "ecdsa_sk",
    "ed25519_sk",
    "xmss",
];
/// Parts of the names of examples: `.env.example`, `token.schema.json`. They excuse no key: `ios_dist.p12` holds one.
const EXAMPLES: &[&str] = &[
    "example", "examples", "sample", "template", "dist", "schema",
];
/// Ends of the names of copies.
const COPIES: &[&str] = &[
    "~",
    ".bak",
    ".backup",
    ".bkp",
    ".old",
    ".orig",
    ".save",
    ".saved",
    ".copy",
    " copy",
    "-copy",
    "_copy",
    ".tmp",
    ".swp",
    ".swo",
    ".swn",
    ".new",
    ".prev",
    ".rej",
    ".disabled",
    ".off",
];

/// Returns whether the path of a file says that it holds secrets.
pub(crate) fn is_sensitive(path: &Path) -> bool {
    let lower = |name: &OsStr| name.to_string_lossy().to_lowercase();
    let Some(whole) = path.file_name().map(lower) else {
        return false;
    };
    let folders = path.parent().into_iter().flat_map(Path::components);
    let folders: Vec<String> = folders.map(|part| lower(part.as_os_str())).collect();
    if folders
        .iter()
        .any(|folder| FOLDERS.contains(&folder.as_str()))
    {
        return true;
    }
    let name = original(&whole);
    // Copies that an editor makes begin with a dot of their own.
    [name, name.strip_prefix('.').unwrap_or(name)]
        .iter()
        .any(|name| {
            let in_folder = |(folder, file): &(&str, &str)| {
                file == name && folders.iter().any(|part| part == folder)
            };
            NAMES.contains(name) || IN_FOLDERS.iter().any(in_folder) || is_kind(name)
        })
}

/// Returns a name without the ends that copies of a file have.
fn original(name: &str) -> &str {
    let mut name = name.trim().trim_matches('#');
    name = name.strip_prefix(".#").unwrap_or(name);
    loop {
        let before = name;
        for end in COPIES {
            name = name
                .strip_suffix(end)
                .filter(|rest| !rest.is_empty())
                .unwrap_or(name);
        }
        // `.env.1`, `.env.2024-05-01`, `.env.~1~`, `id_rsa (1)`
        let digits = |c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | '~' | '(' | ')');
        let rest = name.trim_end_matches(digits);
        if rest.len() < name.len()
            && let Some(rest) = rest
                .strip_suffix(['.', ' '])
                .filter(|rest| !rest.is_empty())
        {
            name = rest;
        }
        if name == before {
            return name;
        }
    }
}

/// Returns whether a name is of a kind that holds secrets.
fn is_kind(name: &str) -> bool {
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, ending),
        _ => (name, ""),
    };
    let mut parts = name.split(['.', '-', '_']);
    let is_env = [".env.", ".env-", ".env_"]
        .iter()
        .any(|begin| name.starts_with(begin));
    if is_env {
        return parts
            .next_back()
            .is_none_or(|last| !EXAMPLES.contains(&last));
    }
    if ENDINGS.contains(&ending) || name == ".env" {
        return true;
    }
    let is_key = |name: &str| {
        SSH_KEYS.iter().any(|kind| {
            let after = name
                .strip_prefix("id_")
                .and_then(|rest| rest.strip_prefix(kind));
            after.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
                || name
                    .strip_suffix(kind)
                    .is_some_and(|rest| rest.ends_with('_'))
        })
    };
    if ending != "pub" && (is_key(name) || (is_key(stem) && DATA.contains(&ending))) {
        return true;
    }
    if parts.any(|part| EXAMPLES.contains(&part)) {
        return false;
    }
    let words = format!("_{}_", stem.replace(['.', '-', ' '], "_"));
    DATA.contains(&ending)
        && WORDS
            .iter()
            .any(|word| words.contains(&format!("_{word}_")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that are not in the tables.
    const KINDS: &[&str] = &[
        ".env",
        ".env.local",
        ".env.production",
        ".env-staging",
        "prod.env",
        ".env.example.local",
        "sample_id_rsa",
        "id_rsa",
        "id_ed25519",
        "id_ed25519_sk",
        "id_rsa_work",
        "id_rsa.work",
        "id_rsa.txt",
        "deploy_rsa",
        "server.PEM",
        "vpn.ovpn",
        "vault.kdbx",
        "cert.p12",
        "terraform.tfstate",
        "token",
        ".token",
        "token.txt",
        "github-token.txt",
        "Passwords.csv",
        "db_password.yml",
        "client_secret_1234.json",
        "api-key.txt",
        "service-account.json",
        "application_default_credentials.json",
        "oauth_creds.json",
        ".credentials.json",
        "kubeconfig",
        "kubeconfig.yaml",
        "secrets.toml",
    ];

    #[test]
    fn every_name_is_known_and_so_is_its_copy() {
        let names = NAMES.iter().copied().chain(KINDS.iter().copied());
        let named = names.map(str::to_owned);
        let ended = ENDINGS.iter().map(|ending| format!("x.{ending}"));
        let worded = WORDS.iter().map(|word| format!("{word}.json"));
        for name in named.chain(ended).chain(worded) {
            for copy in COPIES
                .iter()
                .chain(&["", ".1", ".2024-05-01", " (1)", ".~2~", ".bak.old"])
            {
                let path = format!("/w/src/{name}{copy}");
                assert!(is_sensitive(Path::new(&path)), "{path}");
            }
            for copy in [
                format!(".{name}.swp"),
                format!("#{name}#"),
                name.to_uppercase(),
            ] {
                assert!(is_sensitive(Path::new(&copy)), "{copy}");
            }
        }
        // A key stays a key, even if a part of its name is one that examples have.
        let certain = ENDINGS.iter().map(|ending| format!(".{ending}"));
        let certain = certain.chain(SSH_KEYS.iter().map(|kind| format!("_{kind}")));
        for certain in certain.collect::<Vec<_>>() {
            for example in EXAMPLES {
                for name in [
                    format!("{example}{certain}"),
                    format!("ios_{example}{certain}"),
                    format!("prod.{example}{certain}"),
                ] {
                    assert!(is_sensitive(Path::new(&name)), "{name}");
                }
            }
        }
        for folder in FOLDERS {
            let path = format!("home/{folder}/deep/x.md");
            assert!(is_sensitive(Path::new(&path)), "{path}");
        }
        for (folder, name) in IN_FOLDERS {
            for path in [
                format!("{folder}/{name}"),
                format!("a/{folder}/b/{name}.bak"),
            ] {
                assert!(is_sensitive(Path::new(&path)), "{path}");
            }
            let path = format!("a/{name}");
            assert!(!is_sensitive(Path::new(&path)), "{path}");
        }
    }

    #[test]
    fn other_names_are_not_asked_about() {
        for name in [
            ".env.example",
            ".env.sample~",
            ".env-dist",
            ".env.local.example",
            "prod.tfvars.example",
            "server.key.template",
            "secrets.template.yaml",
            "token.schema.json",
            "id_ed25519.pub",
            "id_rsa.pub.bak",
            "id_rsakey.rs",
            "keys.rs",
            "token.rs",
            "secrets.py",
            "password_test.go",
            "tokenizer.json",
            "docs/secrets.md",
            "config",
            "config.json",
            "settings.xml",
            ".envoy",
            ".gitignore",
            "environment.yml",
            "monkey.txt",
            "history.md",
            "Cargo.lock",
            "main.rs.bak",
            "notes.1",
            "~",
            "#",
            "1",
            "..",
            "",
        ] {
            assert!(!is_sensitive(Path::new(name)), "{name}");
        }
    }
}
