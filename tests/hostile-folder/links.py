"""Links in place of files and folders below `.kd`: nothing outside is written, deleted or shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, Iterator

import sample
from commands import BY_NAME
from harness import Box, Case

SECRET = "OUTSIDE-SECRET"
# In the order of a day's work: what a link could be written through by.
WRITERS = ["council show", "ask --continue", "chat --plain", "ask", "think", "council retry", "council reset", "memory set", "config set", "forum post",
           "forum run-once", "mcp", "export", "fsck --repair"]
DELIBERATE = ["deliberate", "council watch", "chat", "council list", "export --format json"]


def target_of(box: Box, name: str) -> Path:
    """What stands outside, in a form that kd would take for its own."""
    at = box.top / "outside" / Path(name).name.lstrip(".")
    at.parent.mkdir(parents=True, exist_ok=True)
    content = sample.FILES.get(name, "")
    if name.endswith(".md"):
        at.write_text(sample.message("king", SECRET))
    elif name.endswith("jsonl"):
        at.write_text(f'"{SECRET}"\n')
    elif isinstance(content, dict):
        at.write_text(__import__("json").dumps({**content, "note": SECRET}))
    else:
        at.write_text(SECRET + "\n")
    return at


def secret_is_told(box: Box) -> str | None:
    for run in box.runs:
        if SECRET in run.out + run.err:
            return f"kd {' '.join(run.argv[1:3])} shows what stands outside"
    if any(SECRET in path.read_text(errors="replace") for path in (box.work / ".kd").rglob("*") if path.is_file() and not path.is_symlink()):
        return "what stands outside was copied into the project"
    return None


def through(box: Box, names: list[str]) -> str | None:
    box.before()
    for name in names:
        BY_NAME[name].run(box)
        if harm := box.harm():
            return f"kd {name}: {harm}"
    return secret_is_told(box) or box.costs()


def file_link(name: str, dangling: bool, commands: list[str]) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box, without=name)
        target = target_of(box, name)
        if dangling:
            target.unlink()
        os.symlink(target, box.work / name)
        return through(box, commands)

    return attack


def folder_link(name: str, commands: list[str]) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        outside = box.top / "outside" / "folder"
        sample.lay(box)
        # What stood there stands outside now, with files of the user beside it.
        at = box.work / name
        if at.exists():
            outside.parent.mkdir(parents=True, exist_ok=True)
            at.rename(outside)
        else:
            outside.mkdir(parents=True)
            at.parent.mkdir(parents=True, exist_ok=True)
        for extra in ("id_ed25519", "1-7.jsonl", "notes.md", ".profile", ".stream-bob.jsonl", "x.tmp"):
            (outside / extra).write_text("of the user\n")
        os.symlink(outside, at)
        return through(box, commands)

    return attack


def cloned_link(links: dict[str, str], files: dict[str, object], commands: list[str]) -> Callable[[Box], str | None]:
    """The link comes by `git clone`, relative to wherever the clone is."""

    def attack(box: Box) -> str | None:
        box.own()
        box.cloned({**{n: c for n, c in sample.FILES.items() if not any(n == l or n.startswith(l + "/") for l in links)}, **files}, links)
        sample.silence(box.work / ".kd")
        return through(box, commands)

    return attack


def hard_link(name: str) -> Callable[[Box], str | None]:
    """A second name of a file of the user: an unpacked archive can hold one."""

    def attack(box: Box) -> str | None:
        box.own()
        sample.lay(box, without=name)
        os.link(target_of(box, name), box.work / name)
        box.before()
        for one in ("ask --continue", "chat --plain", "memory set", "config set", "fsck --repair"):
            BY_NAME[one].run(box)
        changed = [one for one in box.changed() if "outside" in one]
        return f"written through: {changed}" if changed else None

    return attack


def a_linked_log_is_told(box: Box) -> str | None:
    """What is passed over is said, once, on every front end that asks."""
    box.own()
    sample.lay(box, f"{sample.THREAD}/.kd-events.jsonl")
    (box.work / sample.THREAD / ".kd-events.jsonl").symlink_to(box.home / ".bashrc")
    box.before()
    for argv in (("ask", "--continue", "hello"), ("ask", "--continue", "--jsonl", "hello"), ("think", "hello")):
        run = box.kd(*argv, *(("--thread", "council-aaaa") if argv[0] == "think" else ()))
        if argv[0] == "think" and run.code == 2:
            continue
        if (run.out + run.err).count("events are not logged") != 1:
            return f"kd {' '.join(argv)} says nothing of the link: {run.err[-300:]}"
    return box.harm() or box.costs()


def output_link(argv: tuple[str, ...], name: str, link: str) -> Callable[[Box], str | None]:
    """A file or folder that a result is written to is a link of the clone."""

    def attack(box: Box) -> str | None:
        box.own()
        box.cloned({}, {name: link})
        box.kd("ask", "hello")
        box.runs.clear()
        box.before()
        box.kd(*argv)
        box.settle()
        # The file itself may replace the link.
        changed = [what for what in box.changed() if not what.endswith("src/clone/council.md")]
        return f"written through: {changed}" if changed else box.costs()

    return attack


OUTPUTS = (("export", "-o"), ("ask", "hello", "-o"), ("think", "hello", "-o"), ("deliberate", "hello", "--export"), ("deliberate", "hello", "-o"), ("forum", "export"))


def cases() -> Iterator[Case]:
    for argv in OUTPUTS:
        yield Case(f"links/output/{' '.join(argv)}", "a result is written into ~/.bashrc", output_link((*argv, "council.md"), "council.md", "../../.bashrc"))
        yield Case(f"links/output folder/{' '.join(argv)}", "a result is written into ~/.config", output_link((*argv, "out/council.md"), "out", "../../.config"))
    files = [*sample.FILES, *sample.MADE_LATER]
    for name in files:
        yield Case(f"links/file/{name}", "a file outside is written, or shown", file_link(name, False, WRITERS))
        yield Case(f"links/new file/{name}", "a file outside is made", file_link(name, True, WRITERS))
    for name in sample.FOLDERS:
        yield Case(f"links/folder/{name}", "files outside are written, changed or deleted", folder_link(name, WRITERS))
        yield Case(f"links/folder, more commands/{name}", "files outside are written, changed or deleted", folder_link(name, DELIBERATE))
    t = sample.THREAD
    up = "../" * 6
    yield Case("links/clone/.kd-new to ~/.ssh", "`ask --continue` deletes every file of ~/.ssh", cloned_link({f"{t}/.kd-new": f"{up}../.ssh"}, {}, ["ask --continue"]))
    yield Case("links/clone/.kd-new to ~/.ssh, chat", "the first message of a chat deletes every file of ~/.ssh", cloned_link({f"{t}/.kd-new": f"{up}../.ssh"}, {}, ["chat --plain"]))
    yield Case("links/clone/.kd-events.jsonl to ~/.bashrc", "a model's words are appended to ~/.bashrc", cloned_link({f"{t}/.kd-events.jsonl": f"{up}../.bashrc"}, {}, ["ask --continue", "chat --plain"]))
    yield Case("links/clone/sent.jsonl to ~/.bashrc", "the user's words are appended to ~/.bashrc", cloned_link({f"{sample.BRANCH}/sent.jsonl": "../../../../../.bashrc"}, {}, ["chat --plain", "chat"]))
    yield Case("links/clone/a thread to ~/.ssh", "`fsck --repair` changes files in ~/.ssh", cloned_link({f"{sample.BRANCH}/threads/council-etc": "../../../../../../.ssh"}, {}, ["fsck --repair", "council list", "council show"]))
    yield Case("links/clone/logs to ~/.ssh", "a log is written in ~/.ssh", cloned_link({f"{sample.BRANCH}/logs": "../../../../../.ssh"}, {}, ["ask", "ask --async", "council watch"]))
    yield Case("links/clone/.kd to the neighbour", "threads are written into another project", cloned_link({".kd": "../neighbour"}, {}, ["ask", "memory set", "forum post", "config set"]))
    for name in (f"{t}/.kd-events.jsonl", f"{sample.BRANCH}/sent.jsonl", f"{sample.BRANCH}/state.json", ".kd/memory.json", f"{t}/thread.json", f"{t}/.kd-index.jsonl"):
        yield Case(f"links/hard link/{name}", "a file of the user is written through its second name", hard_link(name))
    yield Case("links/a linked log is told", "what members say is not logged, without a word", a_linked_log_is_told)
