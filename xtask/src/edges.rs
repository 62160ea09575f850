//! Crate dependency rules. Reads `cargo metadata`; returns the real edges between the workspace's crates, violations of
//! the rules, and a diagram.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates of pure code that every other crate may depend on.
const COMMON: &[&str] = &["kd-core", "kd-eval", "kd-reading", "kd-vote"];

/// The allowed dependencies: (crate, crates it may depend on, besides the common ones).
pub const ALLOWED: &[(&str, &[&str])] = &[
    // Front ends: everything with effects comes to them through kd-app.
    (
        "kd",
        &[
            "kd-app",
            "kd-tui",
            "kd-server",
            "kd-page",
            "kd-forum",
            "kd-records",
        ],
    ),
    ("kd-tui", &["kd-app", "kd-forum"]),
    ("kd-server", &["kd-app", "kd-page", "kd-forum"]),
    (
        "kd-app",
        &[
            "kd-engine",
            "kd-backends",
            "kd-store",
            "kd-sql",
            "kd-page",
            "kd-forum",
        ],
    ),
    (
        "kd-engine",
        &["kd-backends", "kd-store", "kd-forum", "kd-sql"],
    ),
    ("kd-backends", &["kd-local"]),
    ("kd-store", &[]),
    ("kd-sql", &["kd-store", "kd-forum"]),
    ("kd-local", &[]),
    ("kd-page", &[]),
    ("kd-core", &["kd-eval", "kd-reading", "kd-vote"]),
    ("kd-eval", &["kd-vote"]),
    ("kd-records", &[]),
    ("kd-reading", &[]),
    ("kd-vote", &[]),
    ("kd-forum", &[]),
];

/// Crates that only tests may use.
const TEST_ONLY: &[&str] = &["kd-fake"];
/// Development crates that are not part of the program.
const DEVELOPMENT: &[&str] = &["xtask", "kd-fake"];

/// Crates that touch the outside world. Pure crates reach none of them.
const OUTSIDE: &[&str] = &["tokio", "reqwest", "rustix", "notify", "getrandom"];

/// Crates that must not be reachable from a crate, even indirectly: this keeps the core pure.
pub const NEVER: &[(&str, &[&str])] = &[
    ("kd-core", OUTSIDE),
    ("kd-eval", OUTSIDE),
    // `zip` draws randomness to encrypt, which nothing here does.
    ("kd-records", &["tokio", "reqwest", "rustix", "notify"]),
    ("kd-reading", OUTSIDE),
    ("kd-vote", OUTSIDE),
    ("kd-forum", OUTSIDE),
    ("kd-page", &["tokio", "reqwest", "rustix", "notify"]),
    ("kd-local", &["tokio", "reqwest", "kd-core"]),
    (
        "kd-store",
        &["tokio", "reqwest", "futures", "rusqlite", "postgres"],
    ),
    // Tokio is inside the PostgreSQL client, behind blocking calls: docs/adr/0006-forum-in-sql.md.
    ("kd-sql", &["reqwest"]),
    // The engine runs forums only with its feature `forum`.
    ("kd-tui", &["rusqlite", "postgres"]),
    ("kd-server", &["rusqlite", "postgres"]),
];

/// The dependencies in the manifests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Crate → crates that its code (not its tests) uses.
    pub edges: BTreeMap<String, BTreeSet<String>>,
    /// Crate of [`NEVER`] → every crate its normal dependencies reach.
    pub reach: BTreeMap<String, BTreeSet<String>>,
}

/// Reads the dependencies from `cargo metadata` (offline: the lock file has everything).
///
/// # Errors
/// If `cargo metadata` or `cargo tree` fails.
pub fn read(root: &Path) -> Result<Graph, cargo_metadata::Error> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .exec()?;
    let names: BTreeMap<_, _> = metadata
        .packages
        .iter()
        .map(|p| (p.id.clone(), p.name.to_string()))
        .collect();
    let members: BTreeSet<_> = metadata
        .workspace_packages()
        .iter()
        .map(|p| p.name.to_string())
        .collect();
    let mut graph = Graph::default();
    for node in metadata.resolve.iter().flat_map(|r| &r.nodes) {
        let name = &names[&node.id];
        if members.contains(name) {
            let needs = node
                .deps
                .iter()
                .filter(|d| d.dep_kinds.iter().any(|k| k.kind == DependencyKind::Normal))
                .map(|d| names[&d.pkg].clone())
                .filter(|needed| members.contains(needed));
            graph.edges.insert(name.clone(), needs.collect());
        }
    }
    for (name, _) in NEVER {
        graph.reach.insert((*name).to_string(), reach(root, name)?);
    }
    Ok(graph)
}

/// Returns every crate that a crate's code reaches, with the features it has when built alone. `cargo metadata` cannot
/// tell: it includes features requested by tests and other crates.
fn reach(root: &Path, name: &str) -> Result<BTreeSet<String>, cargo_metadata::Error> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = std::process::Command::new(cargo)
        .args([
            "tree", "--locked", "--edges", "normal", "--target", "all", "--prefix", "none",
            "--format", "{p}",
        ])
        .args(["--package", name])
        .current_dir(root)
        .output()?;
    if !tree.status.success() {
        return Err(cargo_metadata::Error::CargoMetadata {
            stderr: String::from_utf8_lossy(&tree.stderr).into_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&tree.stdout)
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect())
}

/// Returns all violations of the rules.
pub fn faults(graph: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, needs) in &graph.edges {
        if DEVELOPMENT.contains(&name.as_str()) {
            continue;
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) else {
            faults.push(format!(
                "{name} has no row in ALLOWED (xtask/src/edges.rs): list the crates that it may depend on"
            ));
            continue;
        };
        for needed in needs {
            if TEST_ONLY.contains(&needed.as_str()) {
                faults.push(format!(
                    "{name} → {needed}: only tests may depend on {needed}"
                ));
            } else if !allowed.contains(&needed.as_str())
                && (COMMON.contains(&name.as_str()) || !COMMON.contains(&needed.as_str()))
            {
                faults.push(format!("{name} → {needed} is not an allowed dependency: see ALLOWED in xtask/src/edges.rs"));
            }
        }
    }
    for (name, never) in NEVER {
        for dep in *never {
            if graph.reach.get(*name).is_some_and(|r| r.contains(*dep)) {
                faults.push(format!("{name} depends on {dep}, which is never allowed"));
            }
        }
    }
    faults
}

/// Renders the real edges as a Mermaid diagram, including those implied by other paths.
pub fn picture(graph: &Graph) -> String {
    let mut out = String::from("```mermaid\ngraph TD\n");
    for (name, needs) in &graph.edges {
        if DEVELOPMENT.contains(&name.as_str()) {
            continue;
        }
        for needed in needs {
            out.push_str(&format!("    {name} --> {needed}\n"));
        }
    }
    out.push_str("```\n");
    out
}
