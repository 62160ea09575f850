. "$ROOT/crates/kd/tests/docs/setup/any.sh"
