#!/usr/bin/env bash
# Measures kd-local and llama.cpp in one process, in turns, and prints both with the ratio (kd-local / llama.cpp).
#   KD_MODEL=model.gguf benches/llama-cpp/run.sh [ROUNDS] [THREADS]
# Needs cmake, a C++ compiler and libclang besides cargo; the first build takes some ten minutes of processor time.
# Other work on the machine: compare the ratios and the processor time, not the wall clock.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${KD_MODEL:?set KD_MODEL to a GGUF file}"
# The native build is llama.cpp at its best; ours looks for the processor's features when it runs.
cd "$here"
RUSTFLAGS="-C target-cpu=native" cargo build --release --quiet
exec "${CARGO_TARGET_DIR:-$here/target}/release/llama-cpp-bench" "$KD_MODEL" "${1:-5}" "${2:-2}"
