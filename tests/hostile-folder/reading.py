"""Every file below `.kd` in another shape (a FIFO, a device, a gigabyte, a directory …), for every command that opens it:
no hang, no crash, under 200 MiB, and nothing written outside.

Which command opens what is not guessed: before the cases are made, each command runs once on a sound `.kd` under inotify.
"""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import struct
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Iterator

import sample
from commands import BY_NAME, COMMANDS
from harness import IS_ROOT, Box, Case

MIB = 1 << 20
IN_OPEN, IN_CREATE = 0x20, 0x100


def fifo(at: Path) -> None:
    os.mkfifo(at)


def zero(at: Path) -> None:
    at.symlink_to("/dev/zero")


def terminal(at: Path) -> None:
    at.symlink_to("/dev/tty")


def sparse(at: Path) -> None:
    with at.open("wb") as file:
        file.write(b"---\nfrom: king\n---\n\n" if at.suffix == ".md" else b"{")
        file.truncate(1 << 30)


def directory(at: Path) -> None:
    at.mkdir()
    (at / "x").write_text("x")


def sock(at: Path) -> None:
    one = socket.socket(socket.AF_UNIX)
    # The name of a socket is short; it is moved where it belongs.
    with tempfile.TemporaryDirectory() as short:
        one.bind(f"{short}/s")
        os.rename(f"{short}/s", at) if os.stat(short).st_dev == os.stat(at.parent).st_dev else None
    one.close()


def device(at: Path) -> None:
    os.mknod(at, stat.S_IFCHR | 0o666, os.makedev(1, 5))


def no_permission(at: Path) -> None:
    at.write_text("x")
    at.chmod(0)


def deep(at: Path) -> None:
    at.write_bytes(b"[" * 100_000 if at.suffix in (".json", ".jsonl", ".log") else b"> " * 100_000 if at.suffix == ".md" else b"a: " + b"[" * 100_000)


def deep_object(at: Path) -> None:
    at.write_bytes(b'{"a":' * 50_000 + b"1" + b"}" * 50_000)


def many(at: Path, start: bytes, piece: bytes, count: int, end: bytes = b"") -> None:
    """Writes in small pieces: what this process holds counts as memory of the programs that it starts."""
    with at.open("wb") as file:
        file.write(start)
        for _ in range(count):
            file.write(piece)
        file.write(end)


def line(at: Path) -> None:
    start = b"---\nfrom: king\nto: all\ntimestamp: 2026-11-01T08:00:00Z\n---\n\n" if at.suffix == ".md" else b'"'
    many(at, start, b"a" * 65536, 63 * 16)


def message_line(at: Path) -> None:
    many(at, b"---\nfrom: king\nto: all\ntimestamp: 2026-11-01T08:00:00Z\n---\n\n", b"a" * 65536, 16 * 16)


def lines(at: Path) -> None:
    many(at, b"", b"\n" * 65536, 256)


def list_of_ones(at: Path) -> None:
    many(at, b"[", b"1," * 32768, 512, b"1]")


def not_text(at: Path) -> None:
    at.write_bytes(bytes(range(256)) * 64)


def empty(at: Path) -> None:
    at.write_bytes(b"")


def wrong_types(at: Path) -> None:
    at.write_text('{"id": [], "members": {"x": 1}, "council": 7, "agents": [], "current_thread": {"a": []}, "branch": -1, "entries": "x", "deliveries": 5, "kd_processes": {"pid": "x"}}')


def itself(at: Path) -> None:
    at.symlink_to(at.name)


KINDS: dict[str, Callable[[Path], None]] = {
    "a FIFO": fifo, "a link to /dev/zero": zero, "a link to /dev/tty": terminal, "a sparse gigabyte": sparse,
    "a folder": directory, "a socket": sock, "a device": device, "no permission": no_permission, "100,000 levels": deep, "50,000 objects": deep_object,
    "a line of 63 MiB": line, "a line of 16 MiB": message_line, "16 million line ends": lines, "16 million numbers": list_of_ones, "not text": not_text,
    "empty": empty, "wrong types": wrong_types, "a link to itself": itself,
}
# A shape that can hang or fill memory is tried with every command that opens the file; the others with the first few.
HEAVY = {"a FIFO", "a link to /dev/zero", "a sparse gigabyte"}


class Watch:
    """Which files of a tree are opened."""

    def __init__(self, root: Path) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK)
        self.root, self.folders = root, {}
        for folder in [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]:
            number = self.libc.inotify_add_watch(self.fd, os.fsencode(folder), IN_OPEN | IN_CREATE)
            self.folders[number] = folder

    def opened(self) -> set[str]:
        found = set()
        while True:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                number, mask, _, size = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + size].rstrip(b"\0").decode(errors="replace")
                at += 16 + size
                if name and number in self.folders:
                    found.add(str((self.folders[number] / name).relative_to(self.root)))
        return found

    def close(self) -> None:
        os.close(self.fd)


def opening() -> dict[str, list[str]]:
    """For each file and folder of the sample the commands that open it."""
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="kd-hostile-map-") as top:

        def one(command) -> tuple[str, set[str]]:
            box = Box(Path(top))
            try:
                box.own()
                sample.lay(box)
                watch = Watch(box.work)
                command.run(box)
                box.settle()
                opened = watch.opened()
                watch.close()
                return command.name, opened
            finally:
                box.close()

        with ThreadPoolExecutor(4) as pool:
            for name, opened in pool.map(one, COMMANDS):
                for file in opened:
                    found.setdefault(file, []).append(name)
    return found


def make(kind: str, at: Path) -> None:
    KINDS[kind](at)
    if ".stream-" in at.name and os.path.lexists(at):
        # A fresh one means that the member speaks elsewhere just now, and is waited for: see speech.py.
        os.utime(at, (1_700_000_000, 1_700_000_000), follow_symlinks=False)


def shaped(name: str, kind: str, commands: list[str]) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box, without=name)
        at = box.work / name
        make(kind, at)
        made = stat.S_IFMT(at.lstat().st_mode) if os.path.lexists(at) else None
        box.before()
        for one in commands:
            # A command that heals or replaces the file leaves it to the next as it was.
            if not os.path.lexists(at) or stat.S_IFMT(at.lstat().st_mode) != made:
                at.parent.mkdir(parents=True, exist_ok=True)
                if not os.path.lexists(at):
                    make(kind, at)
            BY_NAME[one].run(box)
            if wrong := box.costs():
                return f"kd {wrong}"
        return box.harm()

    return attack


def many_names(where: str, count: int) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box)
        folder = box.work / where
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (folder / (f"{number:06d}-x.md" if where == sample.THREAD else f"council-{number:05x}")).touch()
        for name in ("council list", "council show", "council status", "fsck"):
            BY_NAME[name].run(box)
        return box.costs()

    return attack


def quotes(count: int) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box)
        (box.work / sample.THREAD / "0002-ada.md").write_text(sample.message("ada", ">" * count + " deep"))
        for name in ("council show", "export", "ask --continue", "chat"):
            BY_NAME[name].run(box)
        return box.costs()

    return attack


# Commands that read a file which the user names.
NAMED = (
    ("vote", "tally", "--rule", "borda", "f.json"), ("vote", "check", "f.json"), ("forum", "import", "f.json"), ("deliberate", "--plan", "f.json", "hello"),
    ("eval", "--replay", "f.json"), ("eval", "--simulate", "f.json"), ("debug", "decode", "--dialect", "codex", "f.json"), ("config", "check", "f.json"),
)


def named(argv: tuple[str, ...], kind: str) -> Callable[[Box], str | None]:
    """A file that the user names is something else."""

    def attack(box: Box) -> str | None:
        box.own()
        box.cloned({})
        make(kind, box.work / "f.json")
        box.kd(*argv)
        return box.costs()

    return attack


def cases() -> Iterator[Case]:
    for argv in NAMED:
        for kind in ("a FIFO", "a link to /dev/zero", "a sparse gigabyte"):
            yield Case(f"reading/named/{' '.join(argv[:2])}/{kind}", "a command hangs or takes gigabytes", named(argv, kind))
    table = opening()
    names = [*sample.FILES, ".kd/forum.db"]
    for name in names:
        commands = [one for one in BY_NAME if one in table.get(name, [])]
        # Nobody opens it today: those that look at the thread as a whole are tried all the same.
        commands = commands or ["council show", "ask --continue", "fsck --repair"]
        plain = [one for one in commands if one != "chat"]
        for kind in KINDS:
            if (kind == "a device" and not IS_ROOT) or (kind == "no permission" and IS_ROOT):
                continue
            if kind == "a line of 16 MiB" and not name.endswith(".md"):
                continue
            tried = commands if kind in HEAVY else plain[:3]
            yield Case(f"reading/{name}/{kind}", "a command hangs, or takes more than 200 MiB", shaped(name, kind, tried))
    for folder in sample.FOLDERS:
        for kind in ("a FIFO", "a link to /dev/zero", "empty", "a socket"):
            yield Case(f"reading/folder {folder}/{kind}", "a command hangs, or takes more than 200 MiB", shaped(folder, kind, ["council list", "council show", "ask", "fsck --repair", "forum agents", "council status"]))
    yield Case("reading/300,000 quotes", "a message takes 25 s to show", quotes(300_000))
    yield Case("reading/20,000 messages", "a command hangs", many_names(sample.THREAD, 20_000))
    yield Case("reading/20,000 threads", "a command hangs", many_names(f"{sample.BRANCH}/threads", 20_000))
