. "$ROOT/crates/kd/tests/docs/setup/any.sh"
repository
git checkout -q main
git checkout -qb more
echo '// more' >> src/use.rs
git commit -qam more
