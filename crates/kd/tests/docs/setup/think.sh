cp "$ROOT"/examples/think/*.json .
cp lite.json "$HOME/scripts/haiku.json"
MEMBERS='"lite": {"backend": "scripted", "model": "lite.json"}, "prime": {"backend": "scripted", "model": "prime.json"}'
MEMBERS="$MEMBERS, \"haiku\": {\"backend\": \"scripted\", \"model\": \"lite.json\"}"
MEMBERS="$MEMBERS, \"opus\": {\"backend\": \"scripted\", \"model\": \"prime.json\"}"
says gpt "Yes."
configure '"think": {"fast": "lite", "rigorous": "prime"}'
echo "1. Move to SQLite." > plan.md
