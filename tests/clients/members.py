"""Writes a configuration with members that play scripts: two that answer, one that fails, one that is slow."""

import json
import pathlib
import sys

home = pathlib.Path(sys.argv[1])


def script(name: str, acts: list) -> dict:
    path = home / f"{name}.json"
    path.write_text(json.dumps({"runs": [acts]}))
    return {"backend": "scripted", "model": str(path)}


failure = {"kind": "auth", "message": "the key was refused"}
config = {
    "council": {"members": ["ann", "bob"], "auto_messages": 0},
    "agents": {
        "ann": script("ann", [{"text": "Spaces. "}, {"text": "They look the same everywhere."}]),
        "bob": script("bob", [{"text": "Spaces. ünï and 中文 line up."}]),
        "eve": script("eve", [{"fail": failure}]),
        "sam": script("sam", [{"text": "one\n\nt"}, {"text": "wo\n"}, {"text": "  three"}, {"sleep_ms": 60_000}]),
    },
}
(home / ".config/kd/config.json").write_text(json.dumps(config))
