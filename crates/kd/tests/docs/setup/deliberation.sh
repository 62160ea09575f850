cp "$ROOT"/examples/deliberate/*.json .
mv config.json "$HOME/.config/kd/config.json"
