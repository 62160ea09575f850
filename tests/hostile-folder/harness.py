"""A folder somebody else made, a user who enters it, and what the program then did.

Input: the program in $KD. Output: a `Box` for each case: a fresh home, the user's own settings, a hostile project, a canary
that planted programs write to, listeners that count, and a look at every file outside the project before and after.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import termios
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterable

KD = os.environ["KD"]
FAKE_AGENT = os.environ.get("FAKE_AGENT", "")
# A command ends within this time on an idle machine, and takes no more of a processor.
SECONDS_MAX = 20.0
# On a busy machine, time in which programs wait for a processor counts for nothing, up to this many times as long.
STRETCH_MAX = 4
MIB = 1 << 20


def resting() -> int:
    """What the program takes when it does nothing: most of it is its code, which is large in a debug build."""
    child = subprocess.Popen([KD, "--version"], stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    return used.ru_maxrss * 1024


# What a folder may make a command take, above that.
MEMORY_MAX = 200 * MIB + min(resting(), 40 * MIB)
# A program that reads without a bound ends here and not with the machine.
ADDRESS_SPACE_MAX = 3 << 29
MARK = "KD_HOSTILE_BOX"
# An address that no case may reach; it exists in the private network namespace only.
FOREIGN_HOST = "10.9.9.9"

IS_ROOT = os.geteuid() == 0
HAS_NET = os.environ.get("KD_HOSTILE_NET") == "1"
HAS_PIDS = os.environ.get("KD_HOSTILE_PIDS") == "1"


NO_COMMAND = ("error: unexpected argument", "error: unrecognized subcommand", "error: the following required arguments")


class Held(Exception):
    """The case cannot be tried here; the text says what is missing."""


@dataclass
class Case:
    """One attack."""

    id: str
    would: str
    attack: Callable[["Box"], "str | None"]
    needs: tuple[str, ...] = ()


class Patience:
    """The time that a command may take, without the time in which any program here waited for a processor."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.start, self.waited = time.monotonic(), self.waiting()

    @staticmethod
    def waiting() -> float:
        """How long programs of this machine have waited for a processor, in seconds; 0 where the kernel does not count."""
        try:
            some = Path("/proc/pressure/cpu").read_text().split("\n")[0]
            return int(some.rpartition("total=")[2]) / 1e6
        except (OSError, ValueError):
            return 0.0

    def left(self) -> float:
        """The seconds that are left if nobody waits from now on; none are left after the longest stretch."""
        took = time.monotonic() - self.start
        if took > STRETCH_MAX * self.seconds:
            return 0.0
        return max(0.0, self.seconds - took + min(took, self.waiting() - self.waited))


@dataclass
class Run:
    """What a command said and used."""

    argv: list[str]
    code: int | None
    out: str
    err: str
    memory: int
    seconds: float
    processor: float
    timed_out: bool

    def told(self) -> str:
        what = "timed out" if self.timed_out else f"exit {self.code}"
        line = next((one for one in self.err.splitlines() if one.strip()), "")
        return f"{what}{': ' + line.strip()[:140] if line else ''}"


@dataclass
class Listener:
    """Counts connections and keeps what they said first."""

    socket: socket.socket
    port: int
    seen: list[bytes] = field(default_factory=list)

    @classmethod
    def open(cls, host: str = "") -> "Listener":
        one = socket.create_server((host, 0), backlog=16)
        self = cls(one, one.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            client.settimeout(0.5)
            try:
                self.seen.append(client.recv(65536))
                client.sendall(b"HTTP/1.1 500 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            except OSError:
                self.seen.append(b"")
            client.close()

    def close(self) -> None:
        # `close` alone leaves `accept` waiting.
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


class Box:
    """One case's world, below one temporary folder."""

    def __init__(self, top: Path) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="box-", dir=top))
        self.home = self.top / "home"
        self.src = self.home / "src"
        self.work = self.src / "clone"
        self.neighbour = self.src / "neighbour"
        self.canary = self.top / "canary"
        self.bin = self.top / "bin"
        self.run_dir = self.top / "run"
        # What programs of the user write down about how they were started.
        self.seen = self.top / "seen"
        self.seconds = SECONDS_MAX
        self.runs: list[Run] = []
        self.notes: list[str] = []
        # The user has these three; what kd keeps for them goes below.
        standard = [self.home / one for one in (".local/state", ".local/share", ".cache")]
        for one in (self.src, self.neighbour, self.canary, self.bin, self.run_dir, self.seen, self.home / ".ssh", *standard):
            one.mkdir(parents=True)
        self.run_dir.chmod(0o700)
        (self.home / ".ssh" / "id_ed25519").write_text("the user's key\n")
        (self.home / ".ssh" / "known_hosts").write_text("hosts\n")
        (self.home / ".bashrc").write_text("# the user's shell\n")
        (self.neighbour / "notes.md").write_text("the user's notes\n")
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.run_dir),
            "KD_OFFLINE": "1",
            "OPENAI_API_KEY": "sk-secret-openai",
            "ANTHROPIC_API_KEY": "sk-secret-anthropic",
            "AWS_SECRET_ACCESS_KEY": "secret-aws",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            # What a planted program does must be seen, not held by the sandbox. The cases of the sandbox take this away.
            "KD_COUNCIL_SANDBOX": "false",
            MARK: self.top.name,
        }
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = a\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgsign = false\n"
        )
        self.listener: Listener | None = None

    # -- the user ---------------------------------------------------------------------------------------------------

    def own(self, members: Iterable[str] = ("ada", "bob"), **more: object) -> None:
        """The user's own settings: members that play a script, and whatever else."""
        agents = {}
        for name in members:
            script = self.top / f"{name}.json"
            script.write_text(json.dumps({"runs": [[{"text": f"I am {name}."}]]}))
            agents[name] = {"backend": "scripted", "model": str(script)}
        config = {"council": {"members": list(members), "conclude": False}, "agents": agents}
        merge(config, more)
        path = self.home / ".config" / "kd" / "config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(config))

    def program(self, name: str, script: str) -> Path:
        """A program of the user on the PATH."""
        path = self.bin / name
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return path

    # -- the attacker -----------------------------------------------------------------------------------------------

    def touch(self, what: str) -> list[str]:
        """A command that leaves word of itself."""
        return ["sh", "-c", f"echo {what} >> '{self.canary}/ran'; exit 1"]

    def listen(self) -> int:
        self.listener = self.listener or Listener.open()
        return self.listener.port

    def git(self, *args: str, cwd: Path | None = None) -> None:
        done = subprocess.run(
            ["git", *args], cwd=cwd or self.work, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"git {' '.join(args)}: {done.stderr}")

    def cloned(self, files: dict[str, object], links: dict[str, str] | None = None) -> Path:
        """A repository with these files, committed by somebody else (`git add -f`), and cloned by the user."""
        origin = self.top / "origin"
        self.folder(origin, {"README.md": "# A project\n", **files}, links)
        self.git("init", "-q", cwd=origin)
        self.git("add", "-A", "-f", cwd=origin)
        self.git("commit", "-q", "-m", "first", cwd=origin)
        self.git("clone", "-q", str(origin), str(self.work), cwd=self.src)
        return self.work

    def unpacked(self, files: dict[str, object], links: dict[str, str] | None = None) -> Path:
        """The same out of a tarball: what git does not carry stays."""
        self.folder(self.work, files, links)
        return self.work

    def folder(self, root: Path, files: dict[str, object], links: dict[str, str] | None = None) -> None:
        root.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content))
        for name, target in (links or {}).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)

    # -- what happens -----------------------------------------------------------------------------------------------

    def on_screen(self, *args: str) -> Run:
        """Runs a command as on a terminal: in a pipe, some commands print a Markdown document. Without its colors."""
        run = self.kd(*args, "--color", "always")
        run.out = re.sub(r"\x1b\[[0-9;]*m", "", run.out)
        return run

    def kd(self, *args: str, cwd: Path | None = None, input: str | None = None, env: dict[str, str] | None = None, seconds: float | None = None) -> Run:
        """Runs the program to its end, or to the time-out. One that gets `seconds` is expected to go on until then."""
        run = spawn([KD, *args], cwd or self.work, {**self.env, **(env or {})}, input, seconds or self.seconds, self.top)
        run.timed_out = run.timed_out and seconds is None
        self.runs.append(run)
        # A case that types what is no command tries nothing.
        if run.code == 2 and any(line.startswith(NO_COMMAND) for line in run.err.splitlines()):
            raise AssertionError(f"kd {' '.join(args)}: {run.told()}")
        return run

    def chat(self, *args: str, typed: str = "hello", cwd: Path | None = None, size: tuple[int, int] = (30, 100), until: str | None = None) -> "Screen":
        """Opens `kd chat` in a terminal, types without Enter, and leaves."""
        screen = Screen([KD, "chat", *args], cwd or self.work, self.env, self.seconds, self.top, size)
        screen.waits_for(until or "", 5)
        screen.settles(0.6)
        if typed:
            screen.types(typed)
            screen.settles(0.8)
        run = screen.leaves()
        self.runs.append(run)
        return screen

    def before(self) -> None:
        """Looks at everything outside the project."""
        self.earlier = self.look()

    def look(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for root in (self.home, self.top / "outside", self.top / "origin", self.bin):
            walk(root, found, self.top, self.ours)
        return found

    def ours(self, path: str) -> bool:
        """Whether the program may write there: its own folders of the user, and `.kd` of the project."""
        allowed = ("home/.local/state/kd", "home/.local/share/kd", "home/.cache/kd", "home/src/clone/.kd", "home/src/clone/.git")
        return any(path == one or path.startswith(one + "/") for one in allowed)

    def harm(self) -> str | None:
        """What went wrong so far: the first of what ran, what was sent, what changed outside."""
        self.settle()
        ran = self.ran()
        if ran:
            return f"ran: {' '.join(sorted(set(ran)))}"
        if self.listener and self.listener.seen:
            return f"sent: {self.listener.seen[0][:160]!r}"
        changed = self.changed()
        if changed:
            return "changed outside the project: " + ", ".join(changed[:6])
        return None

    def ran(self) -> list[str]:
        path = self.canary / "ran"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def changed(self) -> list[str]:
        now = self.look()
        names = {name for name in {*now, *self.earlier} if now.get(name) != self.earlier.get(name)}
        parents = {str(Path(name).parent) for name in names}
        kinds = lambda name: "new " if name not in self.earlier else "gone " if name not in now else ""
        # Folders above are named by what is in them.
        return sorted(kinds(name) + name for name in names if not (name in parents and name in now and name in self.earlier))

    def costs(self) -> str | None:
        """The first command that hung or took too much memory."""
        for run in self.runs:
            what = " ".join(run.argv[1:4])
            if run.timed_out:
                return f"{what}: hangs (over {self.seconds:.0f} s, {run.memory // MIB} MiB)"
            if run.processor > SECONDS_MAX:
                return f"{what}: takes {run.processor:.0f} s of a processor"
            if run.memory > MEMORY_MAX:
                return f"{what}: {run.memory // MIB} MiB"
            # Ctrl+C before the program has the terminal ends it as it ends any.
            if run.code is not None and run.code < 0 and not (run.argv[1] == "chat" and run.code == -signal.SIGINT):
                return f"{what}: died by signal {-run.code}"
            if run.code == 101 or "panicked at" in run.err:
                return f"{what}: panicked: {run.err[-300:]}"
        return None

    def threads(self, root: Path | None = None) -> list[Path]:
        return sorted((root or self.work).glob(".kd/branches/*/threads/*/"))

    def words(self, sender: str, root: Path | None = None) -> list[str]:
        """The bodies of all messages from a sender, in all threads of the project."""
        found = []
        for path in sorted((root or self.work).glob(".kd/branches/*/threads/*/*.md")):
            head, _, body = path.read_text(errors="replace").removeprefix("---\n").partition("\n---\n")
            if f"from: {sender}" in head.split("\n"):
                found.append(body.strip())
        return found

    # -- the end ----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Waits until background commands of this box are gone, for 3 s at most."""
        end = time.monotonic() + 3
        while self.alive() and time.monotonic() < end:
            time.sleep(0.02)

    def alive(self) -> list[int]:
        """Processes that carry this box's mark, or run below its folder."""
        found = []
        needle = f"{MARK}={self.top.name}\0".encode()
        for item in os.scandir("/proc"):
            if not item.name.isdigit() or int(item.name) == os.getpid():
                continue
            try:
                with open(f"/proc/{item.name}/environ", "rb") as file:
                    marked = needle in file.read() + b"\0"
                if marked or os.readlink(f"/proc/{item.name}/cwd").startswith(str(self.top)):
                    if Path(f"/proc/{item.name}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                        found.append(int(item.name))
            except OSError:
                continue
        return found

    def close(self) -> None:
        if self.listener:
            self.listener.close()
        for pid in self.alive():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for folder, names, _ in os.walk(self.top):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    try:
                        os.chmod(path, 0o700)
                    except OSError:
                        pass
        shutil.rmtree(self.top, ignore_errors=True)


def merge(base: dict, more: dict) -> dict:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = value
    return base


def walk(root: Path, found: dict[str, str], top: Path, skipped: Callable[[str], bool]) -> None:
    """What stands below a folder: kind, mode and a hash of the content. Links are looked at, not followed."""
    try:
        meta = root.lstat()
    except OSError:
        return
    name = str(root.relative_to(top))
    if skipped(name):
        return
    kind = stat.S_IFMT(meta.st_mode)
    if kind == stat.S_IFLNK:
        found[name] = "-> " + os.readlink(root)
    elif kind == stat.S_IFREG:
        digest = hashed(root) if meta.st_size < 64 * MIB else str(meta.st_size)
        found[name] = f"{meta.st_mode:o} {digest}"
    elif kind == stat.S_IFDIR:
        found[name] = f"{meta.st_mode:o}"
        for item in sorted(os.listdir(root)):
            walk(root / item, found, top, skipped)
    else:
        found[name] = f"{meta.st_mode:o}"


def hashed(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(65536):
            digest.update(piece)
    return digest.hexdigest()


def limits() -> list[str]:
    """The prefix that bounds a child's memory; `prlimit` belongs to util-linux, as `unshare` does."""
    return ["prlimit", f"--as={ADDRESS_SPACE_MAX}", "--core=0"]


def wait(pid: int, seconds: float) -> tuple[int | None, resource.struct_rusage | None]:
    """Waits for a child; `None` where it takes longer. Gives what it used."""
    patience = Patience(seconds)
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while not poll.poll(max(50, patience.left() * 1000)):
            if patience.left() == 0:
                return None, None
    finally:
        os.close(fd)
    _, status, used = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), used


def spawn(argv: list[str], cwd: Path, env: dict[str, str], input: str | None, seconds: float, scratch: Path) -> Run:
    with tempfile.TemporaryFile(dir=scratch) as out, tempfile.TemporaryFile(dir=scratch) as err, tempfile.TemporaryFile(dir=scratch) as stdin:
        if input is not None:
            stdin.write(input.encode())
            stdin.seek(0)
        start = time.monotonic()
        forget_peak()
        child = subprocess.Popen(
            [*limits(), *argv], cwd=cwd, env=env, stdin=stdin if input is not None else subprocess.DEVNULL,
            stdout=out, stderr=err, start_new_session=True,
        )
        code, used = wait(child.pid, seconds)
        timed_out = code is None
        if timed_out:
            memory = high_water(child.pid)
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except OSError:
                pass
            os.waitpid(child.pid, 0)
        else:
            memory = peak(used)
        child.returncode = 0 if code is None else code
        took = time.monotonic() - start
        out.seek(0)
        err.seek(0)
        text = lambda file: file.read(2 * MIB).decode(errors="replace")
        return Run(argv, code, text(out), text(err), memory, took, processor(used), timed_out)


def forget_peak() -> None:
    """Begins to count our own highest memory anew."""
    Path("/proc/self/clear_refs").write_text("5")


def peak(used: resource.struct_rusage) -> int:
    """The highest memory of a child; 0 where it took no more than we did: its count begins with ours at its start."""
    memory = used.ru_maxrss * 1024
    return memory if memory > high_water(os.getpid()) else 0


def processor(used: resource.struct_rusage | None) -> float:
    """The seconds of a processor that a child and what it waited for used; 0 for one that was cut."""
    return used.ru_utime + used.ru_stime if used else 0.0


def high_water(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Screen:
    """A terminal with a program in it. Answers what programs ask a terminal at the start."""

    def __init__(self, argv: list[str], cwd: Path, env: dict[str, str], seconds: float, scratch: Path, size: tuple[int, int] = (30, 100)) -> None:
        self.argv, self.patience = argv, Patience(seconds)
        self.master, slave = pty.openpty()
        name = os.ttyname(slave)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.bytes = b""
        self.keys = 0
        self.start = time.monotonic()
        forget_peak()
        # The leader of a session that opens a terminal owns it.
        self.child = subprocess.Popen(
            [*limits(), "sh", "-c", f'exec "$@" <{name} >{name} 2>&1', "sh", *argv], cwd=cwd, env={**env, "TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        self.slave = slave
        self.code: int | None = None
        self.used: resource.struct_rusage | None = None
        self.ended = False

    @property
    def text(self) -> str:
        return self.bytes.decode(errors="replace")

    def read(self, seconds: float) -> bool:
        """Reads what comes within this time; whether anything came."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            return False
        self.bytes += piece
        for asked, answer in ((b"\x1b[6n", b"\x1b[1;1R"), (b"\x1b[c", b"\x1b[?62;c")):
            if asked in piece:
                os.write(self.master, answer)
        return bool(piece)

    def gone(self) -> bool:
        if not self.ended:
            pid, status, used = os.wait4(self.child.pid, os.WNOHANG)
            if pid:
                self.ended, self.code, self.used = True, os.waitstatus_to_exitcode(status), used
                self.child.returncode = self.code
        return self.ended

    def waits_for(self, word: str, seconds: float) -> bool:
        """Reads until this stands there (or anything at all, for an empty word)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.gone():
            if (word and word in self.text) or (not word and self.bytes):
                return True
            self.read(0.1)
        while self.read(0):
            pass
        return word in self.text

    def settles(self, seconds: float) -> None:
        """Reads until nothing has come for this time, for 4 s at most."""
        end = time.monotonic() + 4
        while self.read(seconds) and time.monotonic() < end:
            pass

    def types(self, keys: str) -> None:
        self.keys += len(keys)
        try:
            os.write(self.master, keys.encode())
        except OSError:
            pass

    def leaves(self) -> Run:
        """Ctrl+C, Ctrl+D, then the terminal is closed; how it ended."""
        for keys in ("\x03", "\x03", "\x04", "\x03\x03"):
            if self.gone():
                break
            self.types(keys)
            self.keys -= len(keys)
            until = time.monotonic() + 0.7
            while not self.gone() and time.monotonic() < until and self.patience.left():
                self.read(0.05)
        while not self.gone() and self.patience.left():
            self.read(0.1)
        return self.finish()

    def finish(self) -> Run:
        timed_out = not self.gone()
        if timed_out:
            memory = high_water(self.child.pid)
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except OSError:
                pass
            os.waitpid(self.child.pid, 0)
            self.ended, self.child.returncode = True, -9
        else:
            while self.read(0):
                pass
            memory = peak(self.used)
        os.close(self.slave)
        os.close(self.master)
        return Run(self.argv, None if timed_out else self.code, self.text, "", memory, time.monotonic() - self.start, processor(self.used), timed_out)
