"""Another process of another will beside the user's command: it swaps files between check and use, holds locks, plants
sockets, and ends what guards."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Callable, Iterator

import sample
from commands import BY_NAME
from harness import Box, Case, KD, spawn

T, B = sample.THREAD, sample.BRANCH


class Swapper:
    """Puts something else into a place, and the first thing back, as fast as it can."""

    def __init__(self, place: Path, others: list[Callable[[Path], None]]) -> None:
        self.place, self.others, self.over = place, others, False
        self.kept = place.with_name(f".{place.name}.first")
        self.turns = 0
        self.thread = threading.Thread(target=self._swap, daemon=True)

    def __enter__(self) -> "Swapper":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        self.thread.join()

    def _swap(self) -> None:
        side = self.place.with_name(f".{self.place.name}.side")
        while not self.over:
            for make in self.others:
                try:
                    gone(side)
                    make(side)
                    if self.place.is_dir() and not self.place.is_symlink():
                        os.rename(self.place, self.kept)
                    os.rename(side, self.place)
                    time.sleep(0.0005)
                    gone(self.place)
                    if self.kept.exists():
                        os.rename(self.kept, self.place)
                    time.sleep(0.0005)
                    self.turns += 1
                except OSError:
                    pass


def gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)


def swapped(where: str, commands: list[str]) -> Callable[[Box], str | None]:
    """The place is a link to the user's files, a FIFO, or what it was, as it happens."""

    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box)
        outside = box.home / "precious"
        outside.mkdir()
        (outside / "0001-king.md").write_text("precious\n")
        (outside / "config.json").write_text("{}")
        others = [lambda path: path.symlink_to(outside), lambda path: path.symlink_to(box.home / ".bashrc"), os.mkfifo]
        box.before()
        with Swapper(box.work / where, others) as swapper:
            for name in commands * 2:
                BY_NAME[name].run(box)
                if found := box.costs():
                    return f"kd {name}: {found}"
        if found := box.harm():
            return found
        box.notes.append(f"{swapper.turns} swaps")
        return None

    return attack


def held_lock(name: str) -> Callable[[Box], str | None]:
    """A lock that somebody holds for ever: commands give up in time, and say who holds it."""

    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box)
        path = box.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
        box.before()
        # A writer waits for 20 s.
        box.seconds = 60
        try:
            for command in ("council status", "council show", "ask --continue", "fsck"):
                BY_NAME[command].run(box)
                if found := box.harm() or box.costs():
                    return f"kd {command}: {found}"
        finally:
            os.close(held)
        return None

    return attack


def growing(where: str, commands: list[str]) -> Callable[[Box], str | None]:
    """A file that grows while it is read."""

    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box)
        path = box.work / where
        over = threading.Event()
        most = 256 << 20 if where.endswith(("jsonl", "log")) else 12 << 20

        def grow() -> None:
            with path.open("a") as file:
                line = ('{"type":"x"}' if where.endswith("jsonl") else "more words") + "\n"
                while not over.is_set() and file.tell() < most:
                    file.write(line * 2000)
                    file.flush()

        box.before()
        writer = threading.Thread(target=grow, daemon=True)
        writer.start()
        try:
            for name in commands:
                BY_NAME[name].run(box)
                if found := box.costs():
                    return f"kd {name}: {found}"
            return box.harm()
        finally:
            over.set()
            writer.join()

    return attack


def keeper_killed(box: Box) -> str | None:
    """Whoever kills the guards of an agent, and then kd, leaves no agent."""
    prog = box.program("prog", "cat > /dev/null; setsid sh -c 'sleep 300 & sleep 300' & sleep 300\n")
    box.own((), council={"members": ["prog"], "timeout": 20}, agents={"prog": {"backend": "command", "dialect": "codex", "command": [str(prog)]}})
    box.cloned({})
    box.seconds = 30
    runs: list = []
    asking = threading.Thread(target=lambda: runs.append(box.kd("ask", "hello")), daemon=True)
    asking.start()
    end = time.monotonic() + 10
    while time.monotonic() < end and not any("sleep" in name for name in names(box)):
        time.sleep(0.05)
    guards = [pid for pid, name in of(box).items() if "sleep" not in name and "prog" not in name and KD in name.split("\0")[:1]]
    for pid in guards[1:]:
        kill(pid)
    time.sleep(0.5)
    for pid in guards[:1]:
        kill(pid)
    asking.join(25)
    end = time.monotonic() + 3
    while time.monotonic() < end and of(box):
        time.sleep(0.05)
    left = of(box)
    return f"left: {[name.replace(chr(0), ' ') for name in left.values()]}" if left else None


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def of(box: Box) -> dict[int, str]:
    found = {}
    for pid in box.alive():
        try:
            found[pid] = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
    return dict(sorted(found.items()))


def names(box: Box) -> list[str]:
    return list(of(box).values())


def removed_while_asked(box: Box) -> str | None:
    """The folder goes away under a running question: nothing is made elsewhere."""
    prog = box.program("prog", f"cat > /dev/null; rm -rf '{box.work}/.kd'; ln -s '{box.home}/.ssh' '{box.work}/.kd'; exit 1\n")
    box.own(("ada",), agents={"prog": {"backend": "command", "dialect": "codex", "command": [str(prog)]}})
    path = box.home / ".config/kd/config.json"
    path.write_text(path.read_text().replace('["ada"]', '["ada", "prog"]', 1))
    box.cloned({})
    box.before()
    box.kd("ask", "hello")
    box.kd("ask", "--continue", "hello")
    return box.harm() or box.costs()


def runtime_dir(kind: str) -> Callable[[Box], str | None]:
    """The folder of run-time files belongs to nobody one can rely on."""

    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box)
        shutil.rmtree(box.run_dir)
        if kind == "a link":
            box.run_dir.symlink_to(box.home / ".ssh")
        elif kind == "open to all":
            box.run_dir.mkdir()
            box.run_dir.chmod(0o777)
            (box.run_dir / "kd").symlink_to(box.home / ".ssh")
        elif kind == "a file":
            box.run_dir.write_text("x")
        box.before()
        for name in ("ask", "council status", "chat", "doctor"):
            BY_NAME[name].run(box)
            if found := box.harm() or box.costs():
                return f"kd {name}: {found}"
        return None

    return attack


def cases() -> Iterator[Case]:
    writers = ["ask --continue", "council show", "fsck --repair", "memory set", "config set"]
    for where in (".kd/config.json", f"{B}/state.json", f"{B}/sessions", f"{B}/logs", f"{B}/threads", T, f"{T}/thread.json", f"{T}/0002-ada.md", f"{T}/.kd-events.jsonl", f"{T}/.kd-index.jsonl", f"{T}/.kd-new", f"{T}/.kd-thread.lock", ".kd/memory.json", ".kd/current", ".kd/branches", ".kd/roles"):
        yield Case(f"rivals/swapped/{where}", "a file of the user is read as a thread, or written", swapped(where, writers))
    yield Case("rivals/swapped/.kd/forum.db", "a file of the user is written", swapped(".kd/forum.db", ["forum post", "forum read"]))
    for name in (f"{T}/.kd-thread.lock", f"{B}/.state.json.lock", f"{B}/sessions/.ada.json.lock"):
        yield Case(f"rivals/a held lock/{name}", "a command waits for ever", held_lock(name))
    for where in (f"{T}/0002-ada.md", f"{T}/.kd-events.jsonl", f"{T}/.stream-ada.jsonl", f"{B}/logs/council-ada.log", f"{B}/sent.jsonl"):
        yield Case(f"rivals/growing/{where}", "a command never comes to the end, or takes more than 200 MiB", growing(where, ["council show", "council status", "council watch", "ask --continue", "fsck"]))
    yield Case("rivals/the keepers are killed", "an agent outlives its council", keeper_killed, ("pids",))
    yield Case("rivals/the folder goes away", "what members say is written elsewhere", removed_while_asked)
    for kind in ("a link", "open to all", "a file", "gone"):
        yield Case(f"rivals/XDG_RUNTIME_DIR/{kind}", "a file of the user is written, or a command breaks", runtime_dir(kind))
