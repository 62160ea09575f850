. "$ROOT/crates/kd/tests/docs/setup/any.sh"
rm -r "$(echo .kd/branches/main/threads/council-*)/.kd-new"
ln -s /nowhere "$(echo .kd/branches/main/threads/council-*)/.kd-new"
