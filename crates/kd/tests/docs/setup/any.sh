# Pages without a setup of their own: members that answer at once, and an earlier question.
says ann "SQLite: one file, no server."
says bob "PostgreSQL, if two programs will ever write at once."
says cyd "SQLite. The load is small."
configure '"council": {"members": ["ann", "bob", "cyd"], "conclude": false}'
kd ask "Which database?"
