for name in ann bob cyd; do
  says "$name" '{\"answer\": 391, \"confidence\": 0.9}'
done
configure '"council": {"members": ["ann", "bob", "cyd"], "conclude": false}'
echo 'ALTER TABLE a DROP b;' > migration.sql
