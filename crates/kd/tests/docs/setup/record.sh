member ann '[[{"text": "SQLite. One file, no server."}]]'
member bob '[[{"text": "PostgreSQL. Two programs will write at once."}]]'
says cyd "SQLite. The load is small."
mv "$HOME/scripts/cyd.json" .
ln -s "$PWD/cyd.json" "$HOME/scripts/cyd.json"
configure '"council": {"members": ["ann", "bob", "cyd"], "conclude": false}'
