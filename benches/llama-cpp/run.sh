#!/usr/bin/env bash
# Measures kd-local and llama.cpp on the same file, in turns, and prints both with the ratio (kd-local / llama.cpp).
#   KD_MODEL=model.gguf benches/llama-cpp/run.sh [turns]
# Needs cmake, a C++ compiler and libclang besides cargo. Other work on the machine: compare the ratios, not the figures.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${KD_MODEL:?set KD_MODEL to a GGUF file}"
turns=${1:-3}
threads=${KD_THREADS:-2}
export KD_BENCH_ROUNDS=${KD_BENCH_ROUNDS:-3} KD_THREADS=$threads
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# The native build is llama.cpp at its best; ours looks for the processor's features when it runs.
(cd "$here" && RUSTFLAGS="-C target-cpu=native" cargo build --release --quiet)
theirs=${CARGO_TARGET_DIR:-$here/target}/release/llama-cpp-bench
(cd "$here/../.." && cargo bench --quiet -p kd-local --bench council --no-run)
for turn in $(seq "$turns"); do
    (cd "$here/../.." && cargo bench --quiet -p kd-local --bench council) >"$out/ours.$turn"
    "$theirs" "$KD_MODEL" "$threads" "$KD_BENCH_ROUNDS" >"$out/theirs.$turn" 2>/dev/null
done
python3 - "$out" "$turns" <<'PY'
import json, statistics, sys
out, turns = sys.argv[1], int(sys.argv[2])
def read(name):
    rows = (json.loads(line) for line in open(name) if line.startswith("{"))
    return {row["figure"]: row["value"] for row in rows if "figure" in row}
pairs = [(read(f"{out}/ours.{t}"), read(f"{out}/theirs.{t}")) for t in range(1, turns + 1)]
print(f"{'':38}{'kd-local':>10}{'llama.cpp':>11}{'ratio':>8}")
for figure in pairs[0][1]:
    ours = statistics.median(a[figure] for a, _ in pairs)
    theirs = statistics.median(b[figure] for _, b in pairs)
    ratio = statistics.median(a[figure] / b[figure] for a, b in pairs)
    print(f"{figure:38}{ours:10.2f}{theirs:11.2f}{ratio:8.2f}")
PY
