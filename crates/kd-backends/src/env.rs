//! The environment as this crate sees it. Tests provide their own; nothing else reads `std::env`.

use kd_core::search_path;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Looks up environment variables. An empty value counts as unset.
#[derive(Clone)]
pub struct Env(Arc<Lookup>);

impl Env {
    /// Returns the environment of this process.
    pub fn process() -> Self {
        Self(Arc::new(|name| std::env::var(name).ok()))
    }

    /// Creates an environment backed by `lookup`, as far as its values are text.
    pub fn looking_up(lookup: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |name| lookup(name)?.into_string().ok()))
    }

    /// Creates an environment of exactly these variables.
    pub fn of<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let map: BTreeMap<String, String> = pairs
            .into_iter()
            .map(|(k, v)| (k.into(), v.into()))
            .collect();
        Self(Arc::new(move |name| map.get(name).cloned()))
    }

    /// Returns the value of a variable; `None` if it is unset or empty. `PATH` is returned without its relative
    /// entries: see [`search_path::absolute`].
    pub fn get(&self, name: &str) -> Option<String> {
        let value = (self.0)(name).filter(|v| !v.is_empty())?;
        match name {
            "PATH" => search_path::absolute(Some(value.as_ref()))
                .into_string()
                .ok(),
            _ => Some(value),
        }
    }

    /// Returns the folders searched for programs that `kd` starts.
    pub fn search_path(&self) -> String {
        self.get("PATH")
            .unwrap_or_else(|| search_path::DEFAULT.to_owned())
    }

    /// Returns whether a switch is on: set to anything but `0`, `false` or `no`.
    pub fn on(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|v| !matches!(v.to_ascii_lowercase().as_str(), "0" | "false" | "no"))
    }

    /// Returns the user's home directory. A relative one would lie in the project, so it does not count.
    pub fn home(&self) -> Option<PathBuf> {
        let absolute = |name| Some(PathBuf::from(self.get(name)?)).filter(|p| p.is_absolute());
        absolute("HOME").or_else(|| absolute("USERPROFILE"))
    }

    /// Expands `~/` to the home directory.
    pub fn expand(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }
}

impl Default for Env {
    fn default() -> Self {
        Self::process()
    }
}

impl fmt::Debug for Env {
    /// Hides the values: some are keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_folder_is_no_place_for_programs() {
        let env = Env::of([("PATH", ".:/a::bin:/b:")]);
        assert_eq!(env.get("PATH").as_deref(), Some("/a:/b"));
        assert_eq!(Env::of([("PATH", ".")]).search_path(), search_path::DEFAULT);
        assert_eq!(Env::of([("A", "1")]).search_path(), search_path::DEFAULT);
    }

    #[test]
    fn empty_counts_as_unset_and_home_is_expanded() {
        let env = Env::of([("A", ""), ("B", "1"), ("C", "0"), ("HOME", "/h")]);
        assert_eq!(env.get("A"), None);
        assert!(env.on("B") && !env.on("C") && !env.on("D"));
        assert_eq!(env.expand("~/k"), PathBuf::from("/h/k"));
        assert_eq!(env.expand("/k"), PathBuf::from("/k"));
        assert!(!format!("{env:?}").contains("/h"));
    }
}
