"""Folders of other users, folders that others can write to, and folders beyond the border of the project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, Iterator

import sample
from commands import BY_NAME
from harness import IS_ROOT, Box, Case

NOBODY = 65534
COMMANDS = ["ask", "think", "doctor", "council status", "chat --plain", "forum read", "chat"]


def evil(box: Box) -> dict:
    return {"council": {"members": ["e"], "conclude": False}, "agents": {"e": {"backend": "command", "dialect": "codex", "command": box.touch("planted")}}}


def plant(box: Box, kd: Path, owner: int | None, mode: int = 0o755, everything: bool = True) -> None:
    """A `.kd` with a program in it, and threads of its own."""
    for name, content in sample.FILES.items():
        rest = name.removeprefix(".kd/")
        box.folder(kd, {rest: content if everything else ""})
    box.folder(kd, {"config.json": evil(box), "config.local.json": evil(box)})
    sample.silence(kd)
    if owner is not None:
        for folder, names, files in os.walk(kd):
            for name in [".", *names, *files]:
                os.chown(os.path.join(folder, name), owner, owner, follow_symlinks=False)
    kd.chmod(mode)


def own_repository(box: Box, at: Path) -> Path:
    at.mkdir(parents=True, exist_ok=True)
    box.git("init", "-q", cwd=at)
    return at


def obeyed(box: Box, kd: Path, at: Path, reads: bool = False, commands: list[str] = COMMANDS) -> str | None:
    """Whether the commands at a place ran what that `.kd` names, or (unless it may be read) used its threads."""
    before = snapshot(kd)
    for name in commands:
        run = BY_NAME[name].run(box, cwd=at)
        box.settle()
        if box.ran():
            return f"kd {name}: ran {box.ran()[0]}"
        if reads:
            continue
        if "council-aaaa" in run.out and "What now?" in run.out:
            return f"kd {name}: shows its thread as the user's own"
        if snapshot(kd) != before:
            return f"kd {name}: wrote into it"
    return box.costs()


def snapshot(kd: Path) -> list[tuple]:
    return sorted((str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in kd.rglob("*"))


def foreign(make: Callable[[Box], tuple[Path, Path]], reads: bool = False) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        box.own()
        kd, at = make(box)
        return obeyed(box, kd, at, reads)

    return attack


def shared(box: Box) -> Path:
    """A folder like the one for temporary files."""
    at = box.top / "shared"
    at.mkdir()
    at.chmod(0o1777)
    return at


def in_shared_folder(box: Box) -> tuple[Path, Path]:
    at = shared(box)
    plant(box, at / ".kd", NOBODY)
    return at / ".kd", at


def above_own_folder(box: Box) -> tuple[Path, Path]:
    at = shared(box)
    plant(box, at / ".kd", NOBODY)
    mine = at / "mine" / "deep"
    mine.mkdir(parents=True)
    return at / ".kd", mine


def above_own_repository(box: Box) -> tuple[Path, Path]:
    at = shared(box)
    plant(box, at / ".kd", NOBODY)
    return at / ".kd", own_repository(box, at / "mine")


def of_root_above(box: Box) -> tuple[Path, Path]:
    """Even the user's own: the search stops at the top of a repository."""
    at = box.src
    plant(box, at / ".kd", None)
    return at / ".kd", own_repository(box, at / "mine")


def in_a_foreign_repository(box: Box) -> tuple[Path, Path]:
    at = box.top / "theirs"
    own_repository(box, at)
    plant(box, at / ".kd", NOBODY)
    os.chown(at, NOBODY, NOBODY)
    return at / ".kd", at


def own_kd_in_a_foreign_folder(box: Box) -> tuple[Path, Path]:
    """The folder around it belongs to somebody who can put another `.kd` there at any time."""
    at = box.top / "theirs" / "project"
    plant(box, at / ".kd", None)
    for one in (at, at.parent):
        os.chown(one, NOBODY, NOBODY)
    return at / ".kd", at


def foreign_config_in_own_kd(box: Box) -> tuple[Path, Path]:
    at = box.work
    plant(box, at / ".kd", None)
    for name in ("config.json", "config.local.json"):
        os.chown(at / ".kd" / name, NOBODY, NOBODY)
    return at / ".kd", at


def writable_by(mode: int, group: int | None = None) -> Callable[[Box], tuple[Path, Path]]:
    def make(box: Box) -> tuple[Path, Path]:
        at = own_repository(box, box.work)
        plant(box, at / ".kd", None, mode)
        if group is not None:
            os.chown(at / ".kd", -1, group)
            (at / ".kd").chmod(mode)
        return at / ".kd", at

    return make


def parent_writable(box: Box) -> tuple[Path, Path]:
    at = box.top / "open" / "project"
    plant(box, at / ".kd", None)
    (at.parent).chmod(0o777)
    return at / ".kd", at


def linked_kd(owner: int | None) -> Callable[[Box], tuple[Path, Path]]:
    def make(box: Box) -> tuple[Path, Path]:
        there = box.top / "elsewhere" / "kd"
        plant(box, there, owner)
        at = own_repository(box, box.work)
        os.symlink(there, at / ".kd")
        return there, at

    return make


def git_file(owner: int | None) -> Callable[[Box], tuple[Path, Path]]:
    """An unpacked folder whose `.git` file points to a repository of the attacker: its owner's configuration would count."""

    def make(box: Box) -> tuple[Path, Path]:
        there = box.top / "elsewhere"
        own_repository(box, there)
        plant(box, there / ".kd", None)
        linked = there / ".git" / "worktrees" / "x"
        box.folder(linked, {"HEAD": "ref: refs/heads/main\n", "commondir": "../..\n", "gitdir": f"{box.work}/.git\n"})
        box.folder(box.work, {".git": f"gitdir: {linked}\n", "README.md": "x"})
        if owner is not None:
            for folder, names, files in os.walk(there):
                for name in [".", *names, *files]:
                    os.chown(os.path.join(folder, name), owner, owner, follow_symlinks=False)
        return there / ".kd", box.work

    return make


def sister(owner: int | None) -> Callable[[Box], tuple[Path, Path]]:
    """A repository whose list of worktrees names a folder of the attacker."""

    def make(box: Box) -> tuple[Path, Path]:
        there = box.top / "elsewhere"
        own_repository(box, there)
        plant(box, there / ".kd", owner)
        if owner is not None:
            os.chown(there, owner, owner)
        at = own_repository(box, box.work)
        box.folder(at / ".git" / "worktrees" / "x", {"HEAD": "ref: refs/heads/main\n", "commondir": "../..\n", "gitdir": f"{there}/.git\n"})
        return there / ".kd", at

    return make


def home_is_no_project(where: str) -> Callable[[Box], str | None]:
    """`kd ask` in the home folder must not make a `.kd` that swallows every project below."""

    def attack(box: Box) -> str | None:
        box.own()
        at = {"home": box.home, "shared": shared(box)}[where]
        BY_NAME["ask"].run(box, cwd=at)
        if (at / ".kd").exists():
            return f"kd ask: made {where}/.kd"
        return box.costs()

    return attack


def home_kd_is_not_found_from_below(box: Box) -> str | None:
    box.own()
    plant(box, box.home / ".kd", None)
    below = box.home / "downloads" / "x"
    below.mkdir(parents=True)
    return obeyed(box, box.home / ".kd", below)


def at_the_root(box: Box) -> str | None:
    """A `.kd` in `/`, in a mount namespace where `/` is ours to fill."""
    import subprocess

    from harness import KD

    box.own()
    root = box.top / "root"
    root.mkdir()
    plant(box, root / ".kd", NOBODY)
    work = box.top / "work"
    work.mkdir()
    mounts = [one for one in ("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/dev", "/root", "/work", "/opt", "/home", "/tmp", "/github", "/mnt") if Path(one).exists()]
    lines = ["set -e", f"mount -t tmpfs none {root}", f"cp -a {box.top}/saved/. {root}/"]
    saved = box.top / "saved"
    os.rename(root, saved)
    root.mkdir()
    for one in mounts:
        if Path(one).is_symlink():
            lines.append(f"ln -s {os.readlink(one)} {root}{one}")
        else:
            lines.append(f"mkdir -p {root}{one} && mount --rbind {one} {root}{one}")
    if not any(str(box.top).startswith(one + "/") for one in mounts):
        lines.append(f"mkdir -p {root}{box.top} && mount --rbind {box.top} {root}{box.top}")
    lines.append(f"chmod 755 {root} && cd {root}{work} && exec chroot {root} sh -c 'cd {work} && {KD} ask hello; {KD} doctor; {KD} council status; cd / && {KD} ask hello; ls -A / >&2'")
    done = subprocess.run(["unshare", "-m", "sh", "-c", "\n".join(lines)], env={**box.env, "PATH": "/usr/sbin:/sbin:" + box.env["PATH"]}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if "mount" in done.stderr and "denied" in done.stderr:
        raise __import__("harness").Held("mounting is not allowed here")
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-800:])
    return f"ran {box.ran()[0]}" if box.ran() else None


def cases() -> Iterator[Case]:
    root = ("root",)
    would = "a stranger's `.kd` commands the user"
    table: list[tuple[str, Callable[[Box], tuple[Path, Path]], tuple[str, ...]]] = [
        ("in a shared temporary folder", in_shared_folder, root),
        ("in a shared temporary folder, above the user's folder", above_own_folder, root),
        ("in a shared temporary folder, above the user's repository", above_own_repository, root),
        ("above the top of the user's repository", of_root_above, ()),
        ("in a repository of another user", in_a_foreign_repository, root),
        ("the user's, in a folder of another user", own_kd_in_a_foreign_folder, root),
        ("the user's, with a configuration of another user", foreign_config_in_own_kd, root),
        ("writable by everybody", writable_by(0o777), ()),
        ("writable by a group of others", writable_by(0o775, 65533), root),
        ("below a folder that everybody can write to", parent_writable, ()),
        ("a link to a folder of another user", linked_kd(NOBODY), root),
        ("a link to another folder", linked_kd(None), ()),
        ("of the owner that a .git file names", git_file(None), ()),
        ("of the foreign owner that a .git file names", git_file(NOBODY), root),
        ("of a sister that the list of worktrees names", sister(None), ()),
        ("of a foreign sister that the list of worktrees names", sister(NOBODY), root),
    ]
    for name, make, needs in table:
        # What belongs to the user may be read: only what it wants to run is held back.
        reads = name in ("of the owner that a .git file names", "of a sister that the list of worktrees names")
        yield Case(f"owners/{name}", would, foreign(make, reads), needs)
    yield Case("owners/the home folder's, from below", would, home_kd_is_not_found_from_below)
    yield Case("owners/of another user in /", would, at_the_root, root)
    yield Case("owners/ask in the home folder", "a `.kd` in the home folder swallows every project", home_is_no_project("home"))
    yield Case("owners/ask in a shared temporary folder", "a `.kd` there is found by everybody below", home_is_no_project("shared"), root)
