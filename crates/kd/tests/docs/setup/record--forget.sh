. "$ROOT/crates/kd/tests/docs/setup/any.sh"
kd fork --before 3 --stay
