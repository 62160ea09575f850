. "$ROOT/crates/kd/tests/docs/setup/any.sh"
says claude "SQLite."
says codex "PostgreSQL."
configure '"council": {"members": ["ann", "bob", "cyd"], "conclude": false}'
kd ask "Which database?"
repository
echo '{"id": "q1", "question": "Is 7 prime?"}' > questions.jsonl
