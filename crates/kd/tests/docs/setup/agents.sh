says claude "SQLite."
says codex "PostgreSQL."
says mine "Yes."
configure '"council": {"members": ["claude", "codex"], "conclude": false}'
