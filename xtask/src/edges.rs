//! The rooms and the doors between them. Comes in: `cargo metadata`. Goes out: the real edges between the crates of the
//! house, what is wrong with them, and their picture.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The doors that the plan draws: (room, rooms it may enter). Every room may enter `kd-core`.
pub const DOORS: &[(&str, &[&str])] = &[
    ("kd", &["kd-engine", "kd-backends", "kd-store"]),
    ("kd-engine", &["kd-backends", "kd-store"]),
    ("kd-backends", &["kd-local"]),
    ("kd-store", &[]),
    ("kd-local", &[]),
    ("kd-core", &[]),
];

/// Rooms that only tests may enter.
const TEST_ROOMS: &[&str] = &["kd-fake"];
/// Rooms that belong to the workshop, not to the house.
const WORKSHOP: &[&str] = &["xtask", "kd-fake"];

/// Crates that must not be reachable from a room, whatever stands between: the purity that the walls are for.
pub const NEVER: &[(&str, &[&str])] = &[
    (
        "kd-core",
        &["tokio", "reqwest", "rustix", "notify", "getrandom"],
    ),
    ("kd-local", &["tokio", "reqwest", "kd-core"]),
    ("kd-store", &["tokio", "reqwest"]),
];

/// What the manifests really say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct House {
    /// Room → rooms that its code (not its tests) enters.
    pub edges: BTreeMap<String, BTreeSet<String>>,
    /// Room → everything its normal dependencies reach.
    pub reach: BTreeMap<String, BTreeSet<String>>,
}

/// Reads the house from `cargo metadata` (offline: the lock file tells all).
pub fn read(root: &Path) -> Result<House, cargo_metadata::Error> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .exec()?;
    let names: BTreeMap<_, _> = metadata
        .packages
        .iter()
        .map(|p| (p.id.clone(), p.name.to_string()))
        .collect();
    let mut next: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in metadata.resolve.iter().flat_map(|r| &r.nodes) {
        let deps = node
            .deps
            .iter()
            .filter(|d| d.dep_kinds.iter().any(|k| k.kind == DependencyKind::Normal))
            .map(|d| names[&d.pkg].clone());
        next.entry(names[&node.id].clone())
            .or_default()
            .extend(deps);
    }
    let mut house = House::default();
    for package in metadata.workspace_packages() {
        let name = package.name.to_string();
        let rooms: BTreeSet<_> = metadata
            .workspace_packages()
            .iter()
            .map(|p| p.name.to_string())
            .collect();
        let direct = next.get(&name).cloned().unwrap_or_default();
        house
            .edges
            .insert(name.clone(), direct.intersection(&rooms).cloned().collect());
        let mut reach = BTreeSet::new();
        let mut todo: Vec<_> = direct.into_iter().collect();
        while let Some(dep) = todo.pop() {
            if reach.insert(dep.clone()) {
                todo.extend(next.get(&dep).into_iter().flatten().cloned());
            }
        }
        house.reach.insert(name, reach);
    }
    Ok(house)
}

/// Everything that the plan forbids and the manifests do.
pub fn faults(house: &House) -> Vec<String> {
    let mut faults = Vec::new();
    for (room, doors) in &house.edges {
        if WORKSHOP.contains(&room.as_str()) {
            continue;
        }
        let Some((_, allowed)) = DOORS.iter().find(|(name, _)| name == room) else {
            faults.push(format!(
                "{room} is not in the plan: draw its doors in DOORS"
            ));
            continue;
        };
        for door in doors {
            if TEST_ROOMS.contains(&door.as_str()) {
                faults.push(format!("{room} → {door}: only tests may enter {door}"));
            } else if door != "kd-core" && !allowed.contains(&door.as_str()) {
                faults.push(format!("{room} → {door} is no door of the plan"));
            }
        }
    }
    for (room, never) in NEVER {
        for dep in *never {
            if house.reach.get(*room).is_some_and(|r| r.contains(*dep)) {
                faults.push(format!("{room} reaches {dep}, which it must never do"));
            }
        }
    }
    faults
}

/// The real edges as a Mermaid picture. Edges that another road already implies are left in: this is the truth, not a
/// sketch.
pub fn picture(house: &House) -> String {
    let mut out = String::from("```mermaid\ngraph TD\n");
    for (room, doors) in &house.edges {
        if WORKSHOP.contains(&room.as_str()) {
            continue;
        }
        for door in doors {
            out.push_str(&format!("    {room} --> {door}\n"));
        }
    }
    out.push_str("```\n");
    out
}
