"""A folder in shapes that nobody makes by accident: `.kd` that is no folder, names, numbers and depths, settings that two
readers could read in two ways."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import struct
import tempfile
from pathlib import Path
from typing import Callable, Iterator

import sample
from commands import BY_NAME
from harness import Box, Case

LOOKS = ["ask", "council list", "council show", "council status", "fsck", "fsck --repair", "config show", "doctor", "trust", "export", "forum read", "memory show", "ask --continue"]
MIB = 1 << 20
NO = {"ran": "a program of the folder runs, a command hangs, or writes elsewhere"}


def looks(box: Box, commands: list[str] = LOOKS) -> str | None:
    for name in commands:
        if name == "trust":
            box.kd("trust")
        else:
            BY_NAME[name].run(box)
        if found := box.harm() or box.costs():
            return f"kd {name}: {found}"
    return None


# -- `.kd` itself ---------------------------------------------------------------------------------------------------


def as_file(path: Path) -> None:
    path.write_text("{}")


def as_socket(path: Path) -> None:
    here = os.open(path.parent, os.O_PATH)
    one = socket.socket(socket.AF_UNIX)
    one.bind(f"/proc/self/fd/{here}/{path.name}")
    one.close()
    os.close(here)


KINDS: dict[str, Callable[[Path], None]] = {
    "a file": as_file,
    "a FIFO": os.mkfifo,
    "a socket": as_socket,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to /": lambda path: path.symlink_to("/"),
    "a link to nothing": lambda path: path.symlink_to("nothing/at/all"),
    "a link to /proc/self": lambda path: path.symlink_to("/proc/self"),
    "a folder nobody may enter": lambda path: path.mkdir(mode=0),
    "a folder nobody may write": lambda path: path.mkdir(mode=0o555),
}


def kd_is(kind: str) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        box.cloned({})
        KINDS[kind](box.work / ".kd")
        box.before()
        return looks(box)

    return attack


def file_is_a_socket(name: str) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box, name)
        as_socket(box.work / name)
        box.before()
        return looks(box)

    return attack


# -- many and deep --------------------------------------------------------------------------------------------------


def many_threads(box: Box) -> str | None:
    box.own()
    threads = box.work / sample.BRANCH / "threads"
    threads.mkdir(parents=True)
    for n in range(10_000):
        os.mkdir(threads / f"council-{n:06d}")
    box.before()
    return looks(box, ["ask", "council list", "council status", "doctor", "council show"])


def many_files(where: str) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box)
        folder = box.work / where
        folder.mkdir(parents=True, exist_ok=True)
        for n in range(100_000 if where == sample.THREAD else 30_000):
            os.close(os.open(folder / f"x{n}{'.yaml' if 'agents' in where else '.md'}", os.O_CREAT | os.O_WRONLY))
        box.before()
        return looks(box, ["ask", "council list", "council show", "council status", "fsck", "forum agents"] if "agents" not in where else ["forum agents", "doctor", "ask"])

    return attack


def deep(box: Box) -> str | None:
    """Folders in folders, deeper than a path can be named."""
    box.own()
    sample.lay(box)
    for start in (sample.THREAD, ".kd/archive", ".kd/roles", ".kd/forum/agents"):
        here = os.open(box.work / start, os.O_DIRECTORY)
        for _ in range(1500):
            os.mkdir("d" * 10, dir_fd=here)
            below = os.open("d" * 10, os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
    box.before()
    found = looks(box)
    os.system(f"rm -rf '{box.work}'")
    return found


def cyclic(box: Box) -> str | None:
    """Threads that are each other, by links."""
    box.own()
    sample.lay(box)
    threads = box.work / sample.BRANCH / "threads"
    (threads / "council-self").symlink_to(".")
    (threads / "council-up").symlink_to("../../..")
    (threads / "council-a").symlink_to("council-b")
    (threads / "council-b").symlink_to("council-a")
    about = threads / "council-aaaa" / "thread.json"
    about.unlink()
    about.symlink_to("thread.json")
    (box.work / ".kd" / "branches" / "other").symlink_to("main")
    (box.work / ".kd" / "current").unlink()
    (box.work / ".kd" / "current").symlink_to("current")
    box.before()
    return looks(box)


NAMES: dict[str, bytes] = {
    "a newline": b"a\nb", "an escape": b"\x1b[2J", "invalid UTF-8": b"\xff\xfe\xc0\x80", "255 bytes": b"n" * 248, "dashes": b"--help", "a dash": b"-", "dots": b"...", "a space": b" ",
    "a star": b"*", "a dollar": b"$(touch pwned)", "quotes": b"'\"`", "a backslash": b"\\", "bidi": "\u202eabc".encode(), "half a surrogate": b"\xed\xa0\x80",
}


def named(what: str) -> Callable[[Box], str | None]:
    """The name as a thread, a message, a branch, a role, a persona and a file beside."""

    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box)
        name = NAMES[what]
        work = os.fsencode(box.work)
        thread = work + b"/.kd/branches/main/threads/" + name
        for folder in (thread, work + b"/.kd/branches/" + name + b"/threads/council-x", work + b"/" + name):
            os.makedirs(folder, exist_ok=True)
        for path in (thread + b"/0001-king.md", thread + b"/0002-" + name[:40] + b".md", work + b"/.kd/branches/" + name + b"/threads/council-x/0001-king.md"):
            Path(os.fsdecode(path)).write_text(sample.message("king", "What now?"))
        for path in (b"/.kd/roles/" + name + b".md", b"/.kd/forum/agents/" + name + b".yaml", b"/.kd/" + name, b"/.kd/branches/main/threads/council-aaaa/" + name):
            Path(os.fsdecode(work + path)).write_text("x")
        box.before()
        if found := looks(box):
            return found
        Path(os.fsdecode(work + b"/.kd/forum/agents/" + name + b".yaml")).unlink()
        return looks(box, ["forum agents", "ask"]) or ("a command of the name ran" if list(box.work.rglob("pwned")) else None)

    return attack


# -- settings that two readers could read in two ways ---------------------------------------------------------------


def hostile(box: Box) -> dict:
    return {"backend": "command", "dialect": "codex", "command": box.touch("ran")}


def texts(box: Box) -> dict[str, str | bytes]:
    evil = json.dumps(hostile(box))
    mild = '{"backend": "local"}'
    members = '"council": {"members": ["e"], "conclude": false}'
    whole = json.dumps({"council": {"members": ["e"]}, "agents": {"e": hostile(box)}})
    return {
        "an agent twice, the worse last": f'{{{members}, "agents": {{"e": {mild}, "e": {evil}}}}}',
        "an agent twice, the worse first": f'{{{members}, "agents": {{"e": {evil}, "e": {mild}}}}}',
        "agents twice": f'{{{members}, "agents": {{"e": {mild}}}, "agents": {{"e": {evil}}}}}',
        "agents twice, the worse first": f'{{{members}, "agents": {{"e": {evil}}}, "agents": {{"e": {mild}}}}}',
        "command twice": f'{{{members}, "agents": {{"e": {{"backend": "local", "command": ["true"], "backend": "command", "dialect": "codex", "command": {json.dumps(box.touch("ran"))}}}}}}}',
        "an escaped key": whole.replace('"agents"', '"\\u0061gents"').replace('"command":', '"comm\\u0061nd":'),
        "an escaped key and the plain one": f'{{{members}, "\\u0061gents": {{"e": {evil}}}, "agents": {{"e": {mild}}}}}',
        "a key in capitals": whole.replace('"agents"', '"AGENTS"'),
        "a key with a dot": f'{{{members}, "agents.e": {evil}, "agents.e.command": {json.dumps(box.touch("ran"))}}}',
        "a key with a zero byte": whole.replace('"agents"', '"agents\\u0000"'),
        "a raw zero byte": whole.replace("{", "{\0", 1),
        "zero bytes after the end": whole + "\0" * 1000,
        "a BOM": b"\xef\xbb\xbf" + whole.encode(),
        "two BOMs": b"\xef\xbb\xbf" * 2 + whole.encode(),
        "UTF-16": whole.encode("utf-16"),
        "UTF-32": whole.encode("utf-32"),
        "Latin-1": whole.replace('"e"', '"\xe9"').encode("latin-1"),
        "half a surrogate": whole.replace('"codex"', '"codex\\ud800"'),
        "a comment that hides": f'{{{members}, "agents": {{"e": {mild} /* }}}} */, // "e": {{\n /* "x": */ "e": {evil} }}}}',
        "a comment without end": whole[:-1] + "/* ",
        "a comment in a comment": f'{{ /* /* */ {members}, "agents": {{"e": {evil}}} }}',
        "a comment by a lone return": f'{{{members}, // x\r"agents": {{"e": {evil}}}\n}}',
        "a comment by U+2028": f'{{{members}, // x\u2028"agents": {{"e": {evil}}}\n}}',
        "an escaped end of a comment": f'{{{members}, "x": "*/ /*", "agents": {{"e": {evil}}}}}',
        "commas at the end": whole.replace("}}", ",},}").replace("]", ",]"),
        "only commas": "{,,,}",
        "two documents": "{}\n" + whole,
        "two documents, the worse first": whole + "\n{}",
        "an array of it": "[" + whole + "]",
        "a string of it": json.dumps(whole),
        "words after it": whole + " and more",
        "NaN": f'{{"council": {{"timeout": NaN, "members": ["e"]}}, "agents": {{"e": {evil}}}}}',
        "Infinity": '{"council": {"timeout": Infinity, "idle_secs": -Infinity}}',
        "1e999": '{"council": {"timeout": 1e999}, "forum": {"skip_probability": 1e-999, "cycle_interval_secs": 1e999}}',
        "an integer of 10,000 digits": '{"council": {"timeout": ' + "9" * 10_000 + "}}",
        "2^64": '{"council": {"timeout": 18446744073709551616, "auto_messages": 18446744073709551615}, "forum": {"max_tool_calls": 4294967297}}',
        "minus one": '{"council": {"timeout": -1, "auto_messages": -1}}',
        "minus zero": '{"council": {"timeout": -0, "idle_secs": -0.0}}',
        "a fraction": '{"council": {"timeout": 0.5, "auto_messages": 1.0000000000000002}}',
        "0x10": '{"council": {"timeout": 0x7fffffffffffffff}}',
        "+1": '{"council": {"timeout": +1, "idle_secs": 01, "first_secs": .5}}',
        "__proto__": f'{{"__proto__": {{"agents": {{"e": {evil}}}}}, "constructor": {{"agents": {{"e": {evil}}}}}, {members}}}',
        "$schema of a file": '{"$schema": "file:///etc/passwd", "$ref": "/etc/passwd", "extends": "/etc/passwd", "include": ["/etc/passwd"]}',
        "100,000 levels": "[" * 100_000,
        "100,000 levels of objects": '{"a":' * 100_000,
        "100,000 members": json.dumps({"council": {"members": [f"m{n}" for n in range(100_000)]}}),
        "100,000 agents": json.dumps({"agents": {f"m{n}": {"backend": "local"} for n in range(20_000)}}),
        "a key of 1 MiB": json.dumps({"k" * (1 << 19): 1}),
        "a text of 900 KiB": json.dumps({"council": {"preamble": "p" * 900_000}}),
        "a name of 100,000 characters": json.dumps({"council": {"members": ["n" * 100_000]}, "agents": {"n" * 100_000: {"backend": "local"}}}),
        "null everywhere": '{"council": null, "agents": null, "providers": null, "forum": null, "local": null}',
        "null for the user's agents": '{"agents": {"ada": null, "bob": null}, "council": {"members": null, "timeout": null}}',
        "the wrong kinds": '{"council": [], "agents": "x", "providers": 3, "forum": true, "local": 1.5}',
        "an empty key": json.dumps({"": {"": ""}, "agents": {"": hostile(box)}, "council": {"members": [""]}}),
        "an agent named as ours": json.dumps({"agents": {name: hostile(box) for name in ("king", "council", "forum", "system", "all", "..", "ada", "bob")}}),
    }


def configured(what: str, place: str) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        text = texts(box)[what]
        box.cloned({place: text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text})
        box.before()
        commands = [("ask", "hello"), ("trust",)]
        if "local" not in place:
            commands += [("ask", "--members", "e", "hello"), ("config", "show", "--origin"), ("doctor",), ("config", "set", "council.timeout", "90"), ("ask", "hello")]
        for argv in commands:
            run = box.kd(*argv)
            if found := box.harm() or box.costs():
                return f"kd {' '.join(argv)}: {found}"
            if "root:x:" in run.out + run.err:
                return f"kd {' '.join(argv)} shows /etc/passwd"
        return None

    return attack


def what_is_shown_is_what_is_allowed(what: str) -> Callable[[Box], str | None]:
    """Where the user allows the list, nothing runs that the list did not name."""

    def attack(box: Box) -> str | None:
        box.own()
        text = texts(box)[what]
        box.cloned({".kd/config.json": text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text})
        box.before()
        shown = box.kd("trust", "--yes")
        named = "echo ran" in shown.out
        box.kd("ask", "hello")
        box.settle()
        ran = box.ran()
        if ran and not named:
            return f"ran, and `kd trust` listed: {shown.out[-300:]!r}"
        return box.costs()

    return attack


def yaml(what: str) -> Callable[[Box], str | None]:
    """Personas: YAML that grows, points at itself, or names types."""

    def attack(box: Box) -> str | None:
        box.own()
        levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" if n else "l0: &l0 [x, x, x, x, x, x, x, x, x]" for n in range(12))
        rows = {
            "a billion laughs": f"{levels}\nname: x\nsystem_prompt: y\n",
            "an anchor of itself": "name: &a [*a]\nsystem_prompt: *a\n",
            "a merge key": "base: &b {backend: codex, command: [sh]}\nname: x\nsystem_prompt: y\n<<: *b\n",
            "types": "name: !!python/object/apply:os.system ['echo ran']\nsystem_prompt: !!binary AAAA\n",
            "10,000 documents": "---\nname: x\nsystem_prompt: y\n" * 10_000,
            "100,000 levels": "name: x\nsystem_prompt: " + "[" * 100_000,
            "100,000 indents": "\n".join(" " * n + "a:" for n in range(1200)),
            "a key twice": "name: ada\nname: bob\nbackend: ada\nbackend: codex\nsystem_prompt: y\n",
            "a value of .nan": "name: x\nsystem_prompt: y\npreferences:\n  skip_probability: .nan\n  weight: .inf\n  energy: -.inf\n  min_delay: 1e999\n",
            "a name of others": "name: ../../../x\nsystem_prompt: y\n",
            "tabs": "name:\tx\n\tsystem_prompt:\ty\n",
        }
        box.cloned({".kd/forum/agents/x.yaml": rows[what]})
        box.before()
        return looks(box, ["forum agents", "forum run-once", "ask", "trust", "doctor"])

    return attack


YAML = ["a billion laughs", "an anchor of itself", "a merge key", "types", "10,000 documents", "100,000 levels", "100,000 indents", "a key twice", "a value of .nan", "a name of others", "tabs"]
TEXTS = list(texts(type("Nobody", (), {"touch": staticmethod(lambda word: ["sh", "-c", "exit 1"])})()))


def several_large_messages(box: Box) -> str | None:
    """Messages at the limit of 16 MiB, several in one thread."""
    box.own()
    body = ("word " * 200 + "\n\n") * (15 * MIB // 1002)
    files = {n: c for n, c in sample.FILES.items() if ".stream-" not in n}
    box.unpacked(files)
    for n in range(4, 12):
        # One at a time: what we take ourselves hides what the program takes.
        sender = "ada" if n % 2 else "bob"
        box.unpacked({f"{sample.THREAD}/{n:04d}-{sender}.md": sample.message(sender, body)})
    box.before()
    # A debug build takes its time; what counts is that it ends, and the memory.
    box.seconds = 60
    return looks(box, ["ask --continue", "export", "export --format json", "council show", "council list", "council status", "chat --plain", "council retry", "why", "fsck", "mcp, tools only", "chat"])


FORUM_LOOKS = ["forum read", "trust", "forum agents", "forum run-once", "doctor", "ask", "fsck", "config show"]


def forum_journal(other: str) -> Callable[[Box], str | None]:
    """A journal that SQLite rolls back when it opens the forum, and that names a file for it to delete."""

    def attack(box: Box) -> str | None:
        box.own()
        files = forum_file()
        page = files[".kd/forum.db"][:4096]
        magic = bytes([0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7])
        total = 1 + sum(page[at] for at in range(len(page) - 200, 0, -200))
        name = (other if other.startswith("..") else str(box.home / other)).encode()
        head = (magic + struct.pack(">IIIII", 1, 1, len(files[".kd/forum.db"]) // 4096, 512, 4096)).ljust(512, b"\0")
        end = struct.pack(">I", 2**30 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
        files[".kd/forum.db-journal"] = head + struct.pack(">I", 1) + page + struct.pack(">I", total & 0xFFFFFFFF) + end
        box.unpacked(files)
        box.before()
        return looks(box, FORUM_LOOKS)

    return attack


def forum_columns(computed: str) -> Callable[[Box], str | None]:
    """A forum whose columns are computed."""

    def attack(box: Box) -> str | None:
        box.own()
        box.unpacked({})
        box.kd("forum", "post", "Bees", "words")
        db = box.work / ".kd" / "forum.db"
        with sqlite3.connect(db) as made:
            made.execute("PRAGMA journal_mode = DELETE")
            for _ in range(6):
                made.execute("INSERT INTO posts (thread_id, author, body, quote_post_id, created_at, edited_at, deleted_at) SELECT thread_id, author, body, quote_post_id, created_at, edited_at, deleted_at FROM posts")
            made.commit()
            made.execute("PRAGMA writable_schema = ON")
            made.execute("UPDATE sqlite_master SET sql = replace(sql, 'body TEXT NOT NULL', ?) WHERE name = 'posts'", (f"body TEXT AS ({computed}) VIRTUAL",))
            made.commit()
        made.close()
        box.before()
        for more in (["read", "1"], ["search", "words"], ["export"]):
            box.kd("forum", *more)
            if found := box.harm() or box.costs():
                return f"kd forum {more[0]}: {found}"
        return looks(box, FORUM_LOOKS)

    return attack


def forum_file() -> dict[str, str | bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forum.db"
        made = sqlite3.connect(path)
        made.execute("CREATE TABLE x (a)")
        made.commit()
        made.close()
        return {".kd/forum.db": path.read_bytes()}


def cases() -> Iterator[Case]:
    for other in ("../../.ssh/id_ed25519", ".ssh/id_ed25519", ".bashrc"):
        yield Case(f"shapes/a journal that names {other}", "SQLite deletes a file of the user", forum_journal(other))
    for computed in ("printf('%.30000000c', 'x')", "iif(printf('%.20000c', 'a') GLOB '*a*a*a*a*a*a*a*a*a*a*b', 'x', 'y')"):
        yield Case(f"shapes/a forum that computes {computed[:12]}", "a command hangs, or takes more than 200 MiB", forum_columns(computed))
    for kind in KINDS:
        yield Case(f"shapes/.kd is {kind}", NO["ran"], kd_is(kind))
    for name in (".kd/config.json", ".kd/current", ".kd/memory.json", f"{sample.BRANCH}/state.json", f"{sample.THREAD}/thread.json", f"{sample.THREAD}/0002-ada.md", f"{sample.THREAD}/.kd-index.jsonl", f"{sample.THREAD}/.kd-events.jsonl", f"{sample.THREAD}/.kd-thread.lock", ".kd/forum.db", ".kd/roles/skeptic.md"):
        yield Case(f"shapes/a socket/{name}", NO["ran"], file_is_a_socket(name))
    yield Case("shapes/10,000 threads", "a command hangs, or takes more than 200 MiB", many_threads)
    yield Case("shapes/100,000 files in a thread", "a command hangs, or takes more than 200 MiB", many_files(sample.THREAD))
    yield Case("shapes/30,000 personas", "a command hangs, or takes more than 200 MiB", many_files(".kd/forum/agents"))
    yield Case("shapes/30,000 roles", "a command hangs, or takes more than 200 MiB", many_files(".kd/roles"))
    yield Case("shapes/1,500 levels", "a command hangs, or overflows", deep)
    yield Case("shapes/threads in a circle", "a command hangs, or writes elsewhere", cyclic)
    yield Case("shapes/messages of 15 MiB", "a command takes more than 200 MiB", several_large_messages)
    for what in NAMES:
        yield Case(f"shapes/names/{what}", NO["ran"], named(what))
    for what in TEXTS:
        for place in (".kd/config.json", ".kd/config.local.json"):
            yield Case(f"shapes/settings/{place}/{what}", NO["ran"], configured(what, place))
        yield Case(f"shapes/allowed/{what}", "what is allowed is more than what was shown", what_is_shown_is_what_is_allowed(what))
    for what in YAML:
        yield Case(f"shapes/persona/{what}", NO["ran"], yaml(what))
