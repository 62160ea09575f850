"""Runs as the first process of a pid namespace: starts victims, plants records that name them, runs commands, counts.

Input: a file with what to plant and to run. Output: one JSON object: who was there, who lives, and what went wrong.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


spec = json.loads(Path(sys.argv[1]).read_text())
sleep = ["sleep", "300"]
quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
child = subprocess.Popen(sleep, **quiet).pid
leader = subprocess.Popen(sleep, start_new_session=True, **quiet).pid
group = subprocess.Popen(sleep, process_group=0, **quiet).pid
# A session whose leader is gone: its member is found by the session's number alone.
read, write = os.pipe()
dead = subprocess.Popen(["sh", "-c", f"sleep 300 & echo $! >&{write}; exit 0"], start_new_session=True, pass_fds=[write], **quiet)
os.close(write)
orphan = int(os.read(read, 32))
os.close(read)
dead.wait()
# What another kd has started: it lives, and carries its owner's mark.
mark = f"{child}.{started(child)}.1"
marked = subprocess.Popen(sleep, start_new_session=True, env={**os.environ, "KD_FAMILY": mark}, **quiet).pid
victims = {"a child": child, "a session's leader": leader, "a group's leader": group, "an orphan": orphan, "an agent of another kd": marked}
values = {"$child": child, "$leader": leader, "$group": group, "$dead": dead.pid, "$marked": marked}
values |= {f"$started-{name}": started(pid) for name, pid in (("init", 1), ("child", child), ("leader", leader), ("marked", marked))}


def fill(value: object) -> object:
    if isinstance(value, dict):
        return {key: fill(one) for key, one in value.items()}
    if isinstance(value, list):
        return [fill(one) for one in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    if value == "$mark":
        return mark
    if "+" in value:
        return values[value.split("+")[0]] + int(value.split("+")[1])
    if value.startswith("-$"):
        return -values[value[1:]]
    if value in values:
        return values[value]
    for name in sorted(values, key=len, reverse=True):
        value = value.replace(name, str(values[name]))
    return value


def plant() -> None:
    for at in spec["at"]:
        path = Path(at)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"name": path.stem, "status": "idle", "kd_processes": fill(spec["records"]), **fill(spec["extra"])}))


harm = None
for name, argv, input in spec["commands"]:
    plant()
    run = subprocess.Popen([spec["kd"], *argv], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        run.communicate((input or "").encode(), timeout=spec["seconds"])
    except subprocess.TimeoutExpired:
        harm = f"kd {name}: hangs"
        run.kill()
        break
    gone = [who for who, pid in victims.items() if not lives(pid)]
    if gone:
        harm = f"kd {name}: killed {', '.join(gone)}"
        break
    if run.returncode < 0:
        harm = f"kd {name}: killed itself (signal {-run.returncode})"
        break
print(json.dumps({"harm": harm, "all": list(victims), "alive": [who for who, pid in victims.items() if lives(pid)]}))
sys.stdout.flush()
for pid in victims.values():
    if lives(pid):
        os.kill(pid, signal.SIGKILL)
