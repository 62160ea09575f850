says ada "One."
says bob "Two."
configure '"council": {"members": ["ada", "bob"], "conclude": false}'
kd ask "Which database?"
cd .kd/branches/main/threads/council-*
rm -rf .kd-* thread.json
cp 0002-*.md 0002-zed.md
mv 0002-ada.md 0002-one.md 2> /dev/null || mv 0003-ada.md 0002-one.md
mv 000?-bob.md 0003-bob.md 2> /dev/null || true
mv 0002-one.md 0002-ada.md
cp 0003-bob.md 0004-ada.md
echo "a text" > 0005-eve.md
touch -d 2026-01-01 *
cd - > /dev/null
