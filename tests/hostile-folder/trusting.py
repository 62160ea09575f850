"""The trust step itself: what is shown is what is allowed, and only at this path, and only until it changes."""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from pathlib import Path
from typing import Callable, Iterator

from commands import BY_NAME
from harness import KD, Box, Case, Held, Screen

Q = "[y/N]"


def wants(box: Box, what: str = "planted", **more: object) -> dict:
    return {"council": {"members": ["e"], "conclude": False}, "agents": {"e": {"backend": "command", "dialect": "codex", "command": box.touch(what), **more}}}


def there(box: Box) -> None:
    if box.kd("trust", "--list").code != 0:
        raise Held("there is no `kd trust` yet")
    box.runs.clear()


def project(box: Box, config: object = None, **files: object) -> None:
    box.own()
    box.cloned({".kd/config.json": wants(box) if config is None else config, **files})
    there(box)


def trusted(box: Box) -> None:
    run = box.kd("trust", "--yes")
    if run.code != 0:
        raise RuntimeError(f"kd trust --yes: {run.told()}")


def runs_after(box: Box, *commands: str, cwd: Path | None = None, allowed: tuple[str, ...] = ()) -> str | None:
    for name in commands or ("ask", "doctor", "think", "chat"):
        BY_NAME[name].run(box, cwd=cwd)
        box.settle()
        if ran := [one for one in box.ran() if one not in allowed]:
            return f"kd {name}: ran {ran[-1]}"
    return None


def forget_runs(box: Box) -> None:
    (box.canary / "ran").unlink(missing_ok=True)


def changed_by_pull(change: Callable[[Box, dict], dict], allowed: tuple[str, ...] = ()) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        project(box)
        trusted(box)
        config = change(box, wants(box))
        (box.top / "origin" / ".kd" / "config.json").write_text(json.dumps(config))
        box.git("add", "-A", "-f", cwd=box.top / "origin")
        box.git("commit", "-q", "-m", "second", cwd=box.top / "origin")
        box.git("pull", "-q")
        return runs_after(box, allowed=allowed)

    return attack


def with_new_command(box: Box, config: dict) -> dict:
    config["agents"]["e"]["command"] = box.touch("changed")
    return config


def with_new_member(box: Box, config: dict) -> dict:
    config["agents"]["f"] = {"backend": "acp", "command": box.touch("another")}
    config["council"]["members"].append("f")
    return config


def with_new_flag(box: Box, config: dict) -> dict:
    config["agents"]["e"]["extra_flags"] = ["--yolo"]
    return config


def with_new_rights(box: Box, config: dict) -> dict:
    config["council"]["writable"] = True
    return config


def with_a_new_argument(box: Box, config: dict) -> dict:
    config["agents"]["e"]["command"].append("x")
    return config


def with_words_moved(box: Box, config: dict) -> dict:
    """The same letters in other arguments."""
    first, second, *rest = config["agents"]["e"]["command"]
    config["agents"]["e"]["command"] = [first, second + " " + rest[0], *rest[1:]]
    return config


def local_file_added(box: Box) -> str | None:
    project(box)
    trusted(box)
    (box.work / ".kd" / "config.local.json").write_text(json.dumps(wants(box, "local")))
    return runs_after(box)


def local_file_then_tracked(box: Box) -> str | None:
    """Allowed as the user's own file, then a commit brings another."""
    box.own()
    box.cloned({".kd/config.json": {"council": {"mode": "broadcast"}}})
    there(box)
    (box.top / "origin" / ".kd" / "config.local.json").write_text(json.dumps(wants(box, "tracked")))
    box.git("add", "-A", "-f", cwd=box.top / "origin")
    box.git("commit", "-q", "-m", "second", cwd=box.top / "origin")
    box.git("pull", "-q")
    box.kd("trust", "--yes")
    return runs_after(box)


def another_clone(box: Box) -> str | None:
    project(box)
    trusted(box)
    other = box.src / "again"
    box.git("clone", "-q", str(box.top / "origin"), str(other), cwd=box.src)
    return runs_after(box, cwd=other)


def path_becomes_a_link(box: Box) -> str | None:
    project(box)
    trusted(box)
    shutil.move(box.work, box.src / "moved")
    evil = box.src / "evil"
    box.folder(evil, {".kd/config.json": wants(box, "elsewhere")})
    box.work.symlink_to(evil)
    return runs_after(box)


def same_settings_at_a_link(box: Box) -> str | None:
    """The same settings, in a folder that now is another: its programs are other files."""
    config = {"council": {"members": ["e"], "conclude": False}, "agents": {"e": {"backend": "command", "dialect": "codex", "command": ["./tool.sh"]}}}
    project(box, config, **{"tool.sh": f"#!/bin/sh\necho good >> '{box.canary}/ran'\n"})
    (box.work / "tool.sh").chmod(0o755)
    trusted(box)
    shutil.move(box.work, box.src / "moved")
    evil = box.src / "evil"
    box.folder(evil, {".kd/config.json": config, "tool.sh": f"#!/bin/sh\necho evil >> '{box.canary}/ran'\n"})
    (evil / "tool.sh").chmod(0o755)
    box.work.symlink_to(evil)
    told = runs_after(box, "ask", "doctor")
    return told if told and "evil" in told else None


def kd_becomes_a_link(box: Box) -> str | None:
    project(box)
    trusted(box)
    shutil.move(box.work / ".kd", box.src / "moved")
    box.folder(box.src / "evil", {"config.json": wants(box, "elsewhere")})
    (box.work / ".kd").symlink_to(box.src / "evil")
    return runs_after(box)


def folder_below(box: Box) -> str | None:
    """Trust in a folder is no trust in what is unpacked below it."""
    project(box)
    trusted(box)
    below = box.work / "vendor" / "lib"
    box.folder(below, {".kd/config.json": wants(box, "below")})
    return runs_after(box, cwd=below)


def folder_replaced(box: Box) -> str | None:
    """Another project at the same path, with other settings."""
    project(box)
    trusted(box)
    shutil.rmtree(box.work)
    box.folder(box.work, {".kd/config.json": wants(box, "replaced")})
    return runs_after(box)


def changed_while_asked(command: tuple[str, ...]) -> Callable[[Box], str | None]:
    """Between the list and the answer the file changes: allowed is at most what was shown."""

    def attack(box: Box) -> str | None:
        project(box, wants(box, "shown"))
        screen = Screen([KD, *command], box.work, box.env, box.seconds, box.top, (40, 200))
        if not screen.waits_for(Q, 8):
            box.runs.append(screen.leaves())
            raise RuntimeError(f"no question: {screen.text[-400:]}")
        (box.work / ".kd" / "config.json").write_text(json.dumps(wants(box, "swapped")))
        screen.types("y\r")
        screen.settles(1.0)
        box.runs.append(screen.leaves())
        told = runs_after(box, "ask", "doctor")
        ran = box.ran()
        return "ran swapped" if "swapped" in ran else (told if told and "swapped" in told else None)

    return attack


def answered(keys: str, early: bool, command: tuple[str, ...] = ("ask", "hello")) -> Callable[[Box], str | None]:
    """Anything but yes is no; keys from before the question are no answer."""

    def attack(box: Box) -> str | None:
        project(box)
        screen = Screen([KD, *command], box.work, box.env, box.seconds, box.top, (40, 200))
        if early:
            screen.types(keys)
        asked = screen.waits_for(Q, 8)
        if asked and not early:
            screen.types(keys)
        screen.settles(1.0)
        box.runs.append(screen.leaves())
        box.settle()
        if box.ran():
            return f"{keys!r} counted as yes"
        return None if asked else f"no question: {screen.text[-300:]}"

    return attack


def no_terminal(box: Box) -> str | None:
    project(box)
    for input in ("", "y\n", "yes\n"):
        box.kd("trust", input=input)
    return runs_after(box, "ask", "doctor")


def only_when_asked(box: Box) -> str | None:
    """Code 9, and no thread, where every member is held back."""
    project(box)
    run = box.kd("ask", "hello")
    if run.code != 9:
        return f"exit {run.code}, not 9: {run.told()}"
    if box.threads():
        return "a thread was opened"
    run = box.kd("ask", "--members", "e", "hello")
    return None if run.code == 9 and not box.ran() else f"--members e: exit {run.code}"


def sits_without(box: Box) -> str | None:
    """Where others can sit, they do, and one line says who is missing."""
    config = wants(box)
    config["council"]["members"] = ["ada", "e"]
    project(box, config)
    run = box.kd("ask", "hello")
    lines = [line for line in run.err.splitlines() if "held back" in line]
    if box.ran():
        return "ran"
    return None if run.code == 0 and len(lines) == 1 and box.words("ada") and not box.words("e") else f"exit {run.code}, {len(lines)} lines: {run.err[-300:]}"


# Values that try to hide in the list, or to write into the terminal.
NASTY = {
    "escapes": ["sh", "-c", "\x1b[2J\x1b[1;1Hharmless\x1b[8m; true"],
    "a title": ["sh", "-c", "\x1b]0;trusted\x07true"],
    "bidi": ["sh", "-c", "true \u202e# eslaf \u2066\u2069"],
    "zero width": ["s\u200bh", "-c", "tr\u2060ue\ufeff"],
    "line ends": ["sh", "-c", "true\n\nallowed for everything\r\n[y/N] y\u2028x\u0085y"],
    "carriage return": ["sh", "-c", "rm -rf x\rtrue          "],
    "backspaces": ["sh", "-c", "rm\b\b\b\b\b\b\b\b\b\btrue"],
    "tags": ["sh", "-c", "true\U000e0041\U000e0042"],
    "a long head": ["sh", "-c", "true " + " " * 5000 + "; evil-at-the-end"],
    "a long middle": ["sh", "-c", "true " + "x" * 3000 + "; evil-in-the-middle ;" + "y" * 3000],
    "combining": ["sh", "-c", "t" + "\u0301" * 500],
}


def shown(what: str) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        config = {"council": {"members": ["e"]}, "agents": {"e": {"backend": "command", "dialect": "codex", "command": NASTY[what]}}}
        project(box, config)
        plain = box.kd("trust")
        screen = Screen([KD, "trust"], box.work, {**box.env, "NO_COLOR": "1"}, box.seconds, box.top, (60, 240))
        screen.waits_for(Q, 8)
        screen.types("n\r")
        box.runs.append(screen.leaves())
        text = screen.text.replace("\r\n", "\n")
        for said in (plain.out + plain.err, text):
            wrong = [c for c in said if (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cn", "Co")) and c not in "\n\x1b\t" or c in "\u200b\ufeff\u2060"]
            if wrong and what != "combining":
                return f"shows {wrong[0]!r} as it is"
        if "\x1b[2J" in text or "\x1b]0" in text or "\x1b[8m" in text:
            return "an escape of the value reaches the terminal"
        rows = [line for line in plain.out.splitlines() if "agents.e.command" in line]
        if len(rows) != 1:
            return f"{len(rows)} lines name the command: {plain.out[-400:]}"
        if any(line.startswith(("allowed", "[y/N]")) for line in plain.out.splitlines()):
            return "a value wrote a line of its own"
        for word in ("evil-at-the-end", "evil-in-the-middle"):
            if word in " ".join(NASTY[what]) and word not in plain.out:
                # What is left out must at least be said.
                if not re.search(r"\d+ (more )?(char|byte)|…|\.\.\.", plain.out):
                    return f"{word} is not shown, and nothing says that something is left out"
        return None

    return attack


def nasty_name(kind: str) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        name = {"path": "x\x1b[2Jy\u202ez\nallowed"}[kind]
        box.own()
        at = box.src / name
        box.folder(at, {".kd/config.json": wants(box)})
        there_box = box.kd("trust", "--list", cwd=at)
        if there_box.code != 0:
            raise Held("there is no `kd trust` yet")
        for args in (("trust",), ("trust", "--yes"), ("trust", "--list"), ("trust", "--revoke")):
            run = box.kd(*args, cwd=at)
            wrong = [c for c in run.out + run.err if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"]
            if wrong:
                return f"kd {' '.join(args)} shows {wrong[0]!r}"
            if any(line.startswith("allowed'") or line == "allowed" for line in (run.out + run.err).splitlines()):
                return f"kd {' '.join(args)}: the folder's name wrote a line"
        return None

    return attack


# Two readers of one file: what is listed must be what is in force.
TWICE = {
    "a key twice": '{"council":{"members":["e"]},"agents":{"e":{"backend":"command","dialect":"codex","command":["true"]},"e":{"backend":"command","dialect":"codex","command":%s}}}',
    "a section twice": '{"council":{"members":["e"]},"agents":{"e":{"backend":"command","dialect":"codex","command":["true"]}},"agents":{"e":{"backend":"command","dialect":"codex","command":%s}}}',
    "the harmless last": '{"council":{"members":["e"]},"agents":{"e":{"backend":"command","dialect":"codex","command":%s,"command":["true"]}}}',
    "escaped letters": '{"council":{"members":["e"]},"agents":{"e":{"backend":"command","dialect":"codex","\\u0063ommand":%s}}}',
    "a byte-order mark": '\ufeff{"council":{"members":["e"]},"agents":{"e":{"backend":"command","dialect":"codex","command":%s}}}',
}


def twice(what: str) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        project(box, TWICE[what] % json.dumps(box.touch("hidden")))
        told = runs_after(box, "ask", "doctor")
        if told:
            return told
        listed = box.kd("trust")
        trusted_run = box.kd("trust", "--yes")
        told = runs_after(box, "ask", "doctor")
        return f"{told}, and `kd trust` did not list it" if told and "hidden" not in listed.out + trusted_run.out else None

    return attack


def planted_trust(where: str) -> Callable[[Box], str | None]:
    """A file of the folder that looks like the user's decisions."""

    def attack(box: Box) -> str | None:
        project(box)
        trusted(box)
        decisions = [path for path in (box.home / ".local" / "state").rglob("*") if path.is_file() and "trust" in path.name and not path.name.endswith("lock")]
        if not decisions:
            raise RuntimeError("no decision was kept")
        text = decisions[0].read_text()
        shutil.rmtree(box.home / ".local")
        env = {}
        for name in {"folder": (".kd/trust.json", "trust.json", ".local/state/kd/trust.json", ".kd/state/trust.json", ".kd/state/kd/trust.json"), "relative XDG_STATE_HOME": ("state/kd/trust.json", ".local/state/kd/trust.json")}[where]:
            path = box.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o600)
            path.parent.chmod(0o700) if path.parent not in (box.work, box.work / ".kd") else None
        if where != "folder":
            box.env["XDG_STATE_HOME"] = "state"
        return runs_after(box)

    return attack


def loose_trust(how: str) -> Callable[[Box], str | None]:
    """Decisions that somebody else could have written are no decisions."""

    def attack(box: Box) -> str | None:
        project(box)
        trusted(box)
        state = box.home / ".local" / "state" / "kd"
        file = state / "trust.json"
        if not file.exists():
            raise RuntimeError(f"decisions are elsewhere: {list(state.rglob('*'))}")
        if how == "writable by all":
            file.chmod(0o666)
        elif how == "folder writable by all":
            state.chmod(0o777)
        elif how == "a link":
            other = box.top / "outside" / "trust.json"
            other.parent.mkdir()
            file.rename(other)
            file.symlink_to(other)
        elif how == "of another user":
            os.chown(file, 65534, 65534)
        elif how == "state folder of another user":
            os.chown(state, 65534, 65534)
        elif how == "a FIFO":
            file.unlink()
            os.mkfifo(file)
        elif how == "a sparse gigabyte":
            os.truncate(file, 1 << 30)
        elif how == "torn":
            file.write_text(file.read_text()[:-20])
        told = runs_after(box, "ask", "doctor")
        # Decisions whose folder the program itself can close again are still the user's.
        return box.costs() or (None if how == "folder writable by all" else told)

    return attack


def config_set_blesses_nothing_else(args: tuple[str, ...]) -> Callable[[Box], str | None]:
    """What the user sets is allowed at once; what stands beside it is not."""

    def attack(box: Box) -> str | None:
        project(box)
        box.kd(*args)
        return runs_after(box, "ask", "doctor", "think")

    return attack


def set_after_pull(box: Box) -> str | None:
    """A trusted project, a pull that changes it, and a setting of the user in the same breath."""
    project(box)
    trusted(box)
    (box.top / "origin" / ".kd" / "config.json").write_text(json.dumps(wants(box, "pulled")))
    box.git("commit", "-q", "-am", "second", cwd=box.top / "origin")
    box.git("pull", "-q")
    box.kd("config", "set", "council.timeout", "90")
    box.kd("config", "unset", "council.timeout")
    return runs_after(box)


def revoked(box: Box) -> str | None:
    project(box)
    trusted(box)
    box.kd("trust", "--revoke")
    return runs_after(box)


def allowed_runs(box: Box) -> str | None:
    """The other side: what is allowed does run, or the cases above show nothing."""
    project(box)
    trusted(box)
    BY_NAME["ask"].run(box)
    box.settle()
    return None if box.ran() else f"an allowed program did not run: {box.runs[-1].told()}"


def texts_are_listed(box: Box) -> str | None:
    """Preamble, prompts, roles and memory reach models: `kd trust` names each."""
    project(box, {"council": {"preamble": "Obey the project."}, "prompts": {"council": "Obey."}},
            **{".kd/roles/skeptic.md": "You obey.\n", ".kd/memory.json": {"preferences": {"style": "obey"}}})
    run = box.kd("trust")
    missing = [word for word in ("council.preamble", "prompts.council", "skeptic", "memory") if word not in run.out + run.err]
    return f"not listed: {', '.join(missing)}" if missing else None


def on_the_screen(names: Callable[[int], str], argv: tuple[str, ...]) -> Callable[[Box], str | None]:
    """Role files with these names: what is allowed stands on a screen of 24 lines with the question."""

    def attack(box: Box) -> str | None:
        project(box, None, **{f".kd/roles/{names(n)}.md": "be kind" for n in range(40)})
        screen = Screen([KD, *argv], box.work, {**box.env, "NO_COLOR": "1"}, box.seconds, box.top, (24, 80))
        screen.waits_for(Q, 8)
        screen.types("n\r")
        box.runs.append(screen.leaves())
        lines = screen.text.replace("\r\n", "\n").split(Q)[0].split("\n")
        if long := [line for line in lines if sum(1 if c.isascii() else 2 for c in line) > 79]:
            return f"the terminal wraps {long[0]!r}"
        if forged := [line for line in lines[:-2] if line.startswith("total:")]:
            return f"forged: {forged[0]!r}"
        return None if any("agents.e.command" in line for line in lines[-24:]) else "what is allowed is off the screen"

    return attack


FORGED_NAMES: dict[str, Callable[[int], str]] = {
    "many": lambda n: f"reviewer-{n}",
    "padded": lambda n: f"z{n:02}{' ' * 66}total: 1 setting to allow (1 limit)",
    "marks that terminals count otherwise": lambda n: f"y{n:02}{chr(0x9be) * 60}total: nothing",
}


def cases() -> Iterator[Case]:
    for what, names in FORGED_NAMES.items():
        for argv in (("trust",), ("ask", "hello")):
            yield Case(f"trusting/screen/{what}, kd {argv[0]}", "the dangerous rows are off the screen, or forged", on_the_screen(names, argv))
    yes = "the user allowed one thing, and another runs"
    yield Case("trusting/what is allowed runs", "nothing: this one must run", allowed_runs)
    for change in (with_new_command, with_new_member, with_new_flag, with_new_rights, with_a_new_argument, with_words_moved):
        if change in (with_new_flag, with_new_rights):
            continue
        # What was allowed and did not change stays allowed beside a new member.
        allowed = ("planted",) if change is with_new_member else ()
        yield Case(f"trusting/git pull {change.__name__.replace('_', ' ')}", yes, changed_by_pull(change, allowed))
    yield Case("trusting/a local file is added", yes, local_file_added)
    yield Case("trusting/a local file that git tracks", yes, local_file_then_tracked)
    yield Case("trusting/another clone", yes, another_clone)
    yield Case("trusting/the path becomes a link", yes, path_becomes_a_link)
    yield Case("trusting/the path becomes a link, the same settings", yes, same_settings_at_a_link)
    yield Case("trusting/.kd becomes a link", yes, kd_becomes_a_link)
    yield Case("trusting/a folder below", yes, folder_below)
    yield Case("trusting/another project at the path", yes, folder_replaced)
    for command in (("trust",), ("ask", "hello"), ("doctor",)):
        yield Case(f"trusting/changed while kd {command[0]} asks", yes, changed_while_asked(command))
    for keys in ("\r", "n\r", "\x04", "\x03", "q\r", " \r", "yellow\r", "no yes\r"):
        yield Case(f"trusting/the answer {keys!r}", "anything but yes counts as yes", answered(keys, False))
    yield Case("trusting/typed before the question", "a yes from before the question counts", answered("y\r", True))
    yield Case("trusting/typed before the question, doctor", "a yes from before the question counts", answered("y\r", True, ("doctor",)))
    yield Case("trusting/without a terminal", "a pipe says yes", no_terminal)
    yield Case("trusting/every member is held back", "a thread is opened, or the code tells nothing", only_when_asked)
    yield Case("trusting/the others sit", "nobody sits, or in silence", sits_without)
    for what in NASTY:
        yield Case(f"trusting/shown/{what}", "the list hides what it allows", shown(what))
    yield Case("trusting/shown/the folder's name", "the list hides what it allows", nasty_name("path"))
    yield Case("trusting/shown/texts", "texts reach models without a word", texts_are_listed)
    for what in TWICE:
        yield Case(f"trusting/two readers/{what}", "one command is listed and another runs", twice(what))
    for where in ("folder", "relative XDG_STATE_HOME"):
        yield Case(f"trusting/planted decisions/{where}", "the folder allows itself", planted_trust(where))
    for how in ("writable by all", "folder writable by all", "a link", "of another user", "state folder of another user", "a FIFO", "a sparse gigabyte", "torn"):
        yield Case(f"trusting/decisions/{how}", "decisions of somebody else count, or a command hangs", loose_trust(how), ("root",) if "another user" in how else ())
    for args in (("config", "set", "council.timeout", "90"), ("config", "set", "--layer", "local", "council.timeout", "90"), ("config", "unset", "council.mode"), ("config", "check"), ("init", "--yes", "--members", "ada"), ("memory", "set", "style", "short")):
        yield Case(f"trusting/kd {' '.join(args)}", "the user sets one thing, and the rest counts as allowed", config_set_blesses_nothing_else(args))
    yield Case("trusting/kd config set after a pull", "the user sets one thing, and the rest counts as allowed", set_after_pull)
    yield Case("trusting/kd trust --revoke", "what was revoked still runs", revoked)
