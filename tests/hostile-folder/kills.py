"""Records of processes in a project: no command may end a process because a file says so.

Each case runs in a pid namespace of its own, where nothing else can die.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator

import sample
from harness import IS_ROOT, KD, MARK, Box, Case

# Each makes the records from what the attacker may know of the victims: pid and start of each.
RECORDS = {
    "pid 1, started 0": [{"pid": 1, "started": 0, "mark": "x"}],
    "pid 1, its start": [{"pid": 1, "started": "$started-init", "mark": "x"}],
    "pid -1": [{"pid": -1, "started": 0, "mark": "x"}],
    "pid 0": [{"pid": 0, "started": 0, "mark": "x"}],
    "minus a group": [{"pid": "-$group", "started": 0, "mark": "x"}],
    "a known pid, started 0": [{"pid": "$child", "started": 0, "mark": "x"}],
    "a known pid, its start": [{"pid": "$child", "started": "$started-child", "mark": "x"}],
    "a known pid, no mark": [{"pid": "$child", "started": "$started-child", "mark": ""}],
    "a known pid, a mark of a dead kd": [{"pid": "$child", "started": "$started-child", "mark": "99999.1.1"}],
    "a known pid, a mark of itself": [{"pid": "$child", "started": "$started-child", "mark": "$child.$started-child.1"}],
    "the leader of a session": [{"pid": "$leader", "started": "$started-leader", "mark": "99999.1.1"}],
    "a session whose leader died": [{"pid": "$dead", "started": 1, "mark": "99999.1.1"}],
    "400 guesses": [{"pid": pid, "started": 1, "mark": "99999.1.1"} for pid in range(2, 402)],
    "400 guesses, started 0": [{"pid": pid, "started": 0, "mark": "99999.1.1"} for pid in range(2, 402)],
    "an agent of another kd": [{"pid": "$marked", "started": "$started-marked", "mark": "$mark"}],
    "an agent of another kd, by its mark alone": [{"pid": 99999, "started": 1, "mark": "$mark"}],
    "an agent of another kd, started 0": [{"pid": "$marked", "started": 0, "mark": "$mark"}],
}
COMMANDS: dict[str, tuple[list[str], str | None]] = {
    "council status": (["council", "status"], None),
    "council list": (["council", "list"], None),
    "council show": (["council", "show"], None),
    "council watch": (["council", "watch", "--timeout", "1"], None),
    "ask": (["ask", "hello"], None),
    "ask --continue": (["ask", "--continue", "hello"], None),
    "think": (["think", "hello"], None),
    "deliberate": (["deliberate", "hello"], None),
    "doctor": (["doctor"], None),
    "mcp": (["mcp", "--as", "c"], '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\n'),
    "chat --plain": (["chat", "--plain"], "hello\n"),
    "council retry": (["council", "retry"], None),
    "council reset": (["council", "reset", "--force"], None),
    "fsck --repair": (["fsck", "--all", "--repair"], None),
    "forum run-once": (["forum", "run-once"], None),
}


def tried(records: list[dict], commands: list[str], extra: dict | None = None, name: str = "z") -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box)
        spec = {
            "kd": KD, "records": records, "commands": [(one, *COMMANDS[one]) for one in commands], "seconds": box.seconds, "extra": extra or {},
            "at": [str(box.work / sample.BRANCH / "sessions" / f"{name}.json")],
        }
        path = box.top / "spec.json"
        path.write_text(json.dumps(spec))
        own = [] if IS_ROOT else ["--user", "--map-root-user"]
        inside = ["unshare", *own, "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, str(Path(__file__).parent / "victims.py"), str(path)]
        done = subprocess.run(inside, cwd=box.work, env={**box.env, "PATH": "/usr/local/bin:/usr/bin:/bin"}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150)
        if done.returncode != 0 or not done.stdout:
            raise RuntimeError(f"{done.returncode}: {done.stderr[-600:]}")
        told = json.loads(done.stdout)
        box.notes.append(f"{len(told['alive'])} of {len(told['all'])} victims live after {len(commands)} commands")
        return told["harm"]

    return attack


def cases() -> Iterator[Case]:
    need = ("pids",)
    for command in COMMANDS:
        yield Case(f"kills/pid 1, started 0/{command}", "every process of the user dies", tried(RECORDS["pid 1, started 0"], [command]), need)
    some = ["council status", "ask", "council watch", "mcp", "council reset"]
    for what, records in RECORDS.items():
        if what != "pid 1, started 0":
            yield Case(f"kills/{what}", "processes of the user die", tried(records, some), need)
    yield Case("kills/the other program's pid", "a process of the user dies", tried([], [*some, "fsck --repair"], {"pid": "$child", "status": "working"}, "ada"), need)
    yield Case("kills/pid beyond 32 bits", "the number wraps to a process of the user", tried([{"pid": "$child+4294967296", "started": 0, "mark": "x"}], some), need)
    yield Case("kills/a member of the council", "processes of the user die", tried(RECORDS["a known pid, started 0"], some, name="ada"), need)
