# The usual members, and a file of 1229 bytes.
says ann "SQLite: one file, no server."
says bob "PostgreSQL, if two programs will ever write at once."
says cyd "SQLite. The load is small."
configure '"council": {"members": ["ann", "bob", "cyd"], "conclude": false}'
kd ask "Which database?"
mkdir -p src
printf '%01228d\n' 0 > src/main.rs
