//! Every fuzz target has first inputs, and they are small.

use std::collections::BTreeMap;
use std::fs;

/// Maximum bytes of all first inputs: they are in every checkout.
const BYTES_MAX: u64 = 100_000;

#[test]
fn every_fuzz_target_has_first_inputs_and_they_are_small() {
    let fuzz = xtask::root().join("fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    let targets: Vec<&str> = manifest
        .lines()
        .filter_map(|line| {
            line.strip_prefix("path = \"fuzz_targets/")?
                .strip_suffix(".rs\"")
        })
        .collect();
    assert!(targets.len() > 10, "{targets:?}");

    let mut inputs: BTreeMap<String, u64> = BTreeMap::new();
    for folder in fs::read_dir(fuzz.join("corpus")).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        assert!(targets.contains(&name.as_str()), "no target {name}");
        let sizes = fs::read_dir(folder.path()).unwrap();
        let sizes = sizes.map(|file| file.unwrap().metadata().unwrap().len());
        inputs.insert(name, sizes.sum());
    }
    for target in targets {
        let bytes = inputs.get(target).copied().unwrap_or_default();
        assert!(bytes > 0, "fuzz/corpus/{target} has no input");
        assert!(fuzz.join(format!("fuzz_targets/{target}.rs")).is_file());
    }
    let all: u64 = inputs.values().sum();
    assert!(all <= BYTES_MAX, "{all} bytes");
}
