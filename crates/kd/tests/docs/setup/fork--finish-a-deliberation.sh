. "$ROOT/crates/kd/tests/docs/setup/any.sh"
kd deliberate -m ann,bob,cyd --protocol council --seed 3 "Should a small team start with SQLite or PostgreSQL?"
