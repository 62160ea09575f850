"""The other side of every fence: in the user's own folder nothing is asked after the first time. Counts the keys."""

from __future__ import annotations

import json
import time
from typing import Callable, Iterator

from harness import KD, Box, Case, Screen

Q = "[y/N]"


def in_terminal(box: Box, *args: str, typed: str = "") -> Screen:
    """Runs a command in a terminal; types only where it is asked a question."""
    screen = Screen([KD, *args], box.work, {**box.env, "NO_COLOR": "1"}, box.seconds, box.top, (40, 160))
    end = screen.start + box.seconds
    while not screen.gone() and time.monotonic() < end:
        before = screen.text.count(Q)
        if not screen.read(3.0) and not screen.gone():
            break
        if screen.text.count(Q) > before and typed:
            screen.types(typed)
    run = screen.leaves() if not screen.gone() else screen.finish()
    box.runs.append(run)
    return screen


def program(box: Box) -> list[str]:
    from programs import ANSWER

    (box.top / "answer").write_text(ANSWER)
    return [str(box.program("mine", f"cat > /dev/null; echo started >> '{box.seen}/mine'; cat '{box.top}/answer'\n"))]


def own(box: Box) -> None:
    box.work.mkdir(parents=True)
    box.git("init", "-q")


def set_by_command(layer: str) -> Callable[[Box], str | None]:
    """Members of one's own, set with `kd config set`: no question at all."""

    def attack(box: Box) -> str | None:
        own(box)
        command = json.dumps(program(box))
        for key, value in (("agents.mine.backend", "command"), ("agents.mine.dialect", "codex"), ("agents.mine.command", command), ("council.members", '["mine"]'), ("council.conclude", "false")):
            run = box.kd("config", "set", "--layer", layer, key, value)
            if run.code != 0:
                return f"kd config set {key}: {run.told()}"
        keys = 0
        for _ in range(3):
            screen = in_terminal(box, "ask", "hello")
            keys += screen.keys
            if Q in screen.text:
                return f"asked: {screen.text[-400:]}"
            if box.runs[-1].code != 0:
                return f"kd ask: exit {box.runs[-1].code}: {screen.text[-300:]}"
        box.notes.append(f"{keys} keys pressed for 3 questions")
        count = len((box.seen / "mine").read_text().splitlines())
        return None if count == 3 else f"the member was started {count} times"

    return attack


def init(box: Box) -> str | None:
    """`kd init`, then three questions: no key but the questions' own."""
    own(box)
    from programs import ANSWER

    (box.top / "answer").write_text(ANSWER)
    for name in ("claude", "codex"):
        box.program(name, f"case $1 in --version) echo 1.0; exit 0;; esac\ncat > /dev/null; cat '{box.top}/answer'\n")
    box.kd("config", "set", "--layer", "user", "council.warm_secs", "0")
    run = box.kd("init", "--yes", "--members", "codex")
    if run.code != 0:
        return f"kd init: {run.told()} {run.err[-200:]}"
    keys = 0
    for _ in range(3):
        screen = in_terminal(box, "ask", "--timeout", "2", "hello")
        keys += screen.keys
        if Q in screen.text:
            return f"asked: {screen.text[-400:]}"
    box.notes.append(f"{keys} keys pressed for 3 questions")
    held = box.kd("ask", "--timeout", "2", "hello")
    return f"held back: {held.err[-300:]}" if "held back" in held.err or held.code == 9 else None


def yes_once(box: Box) -> str | None:
    """A team's folder: one question, one `y`, and none after it; also not in another command."""
    box.own()
    box.cloned({".kd/config.json": {"council": {"members": ["mine"], "conclude": False}, "agents": {"mine": {"backend": "command", "dialect": "codex", "command": program(box)}}}})
    first = in_terminal(box, "ask", "hello", typed="y\r")
    if Q not in first.text:
        return f"no question: {first.text[-300:]}"
    if box.runs[-1].code != 0:
        return f"after yes: exit {box.runs[-1].code}: {first.text[-400:]}"
    keys = first.keys
    for args in (("ask", "hello"), ("ask", "--continue", "hello"), ("think", "hello"), ("council", "status"), ("council", "review")):
        screen = in_terminal(box, *args)
        keys += screen.keys
        if Q in screen.text:
            return f"kd {' '.join(args)} asked again: {screen.text[-300:]}"
    box.notes.append(f"{keys} keys pressed for 6 commands (y and Enter)")
    return None


def no_once(box: Box) -> str | None:
    """No is an answer: it is not asked again until something changes."""
    box.own()
    box.cloned({".kd/config.json": {"council": {"members": ["ada", "mine"]}, "agents": {"mine": {"backend": "command", "dialect": "codex", "command": program(box)}}}})
    first = in_terminal(box, "ask", "hello", typed="n\r")
    if Q not in first.text:
        return f"no question: {first.text[-300:]}"
    again = in_terminal(box, "ask", "hello")
    if Q in again.text:
        return "asked again after no"
    return "started after no" if (box.seen / "mine").exists() else None


def harmless(box: Box) -> str | None:
    """A folder that only lowers limits and chooses modes asks nothing, and all of it counts."""
    box.own()
    box.cloned({".kd/config.json": {"council": {"auto_messages": 0, "timeout": 30, "conclude": False}, "deliberation": {"maxCalls": 5}, "prompts": {"council": "Be brief."}}})
    screen = in_terminal(box, "ask", "hello")
    if Q in screen.text or "held back" in screen.text:
        return f"asked: {screen.text[-300:]}"
    shown = box.kd("config", "show", "--json").out
    values = {row["key"]: row["value"] for row in json.loads(shown)} if shown.startswith("[") else {}
    wrong = [key for key, value in (("council.auto_messages", 0), ("council.timeout", 30), ("deliberation.maxCalls", 5)) if values and values.get(key) != value]
    return f"not in force: {wrong}" if wrong else None


def own_kd_base(box: Box) -> str | None:
    """KD_BASE names a folder explicitly: a link to it is no matter."""
    box.own()
    box.folder(box.src / "real", {".kd/.gitignore": ""})
    box.work.mkdir()
    run = box.kd("ask", "hello", env={"KD_BASE": str(box.src / "real")})
    return None if run.code == 0 and box.threads(box.src / "real") else f"{run.told()}"


def cases() -> Iterator[Case]:
    for layer in ("project", "local"):
        yield Case(f"friendly/kd config set, {layer}", "the user is asked about their own settings", set_by_command(layer))
    yield Case("friendly/kd init", "the user is asked about their own settings", init)
    yield Case("friendly/yes once", "the user is asked twice", yes_once)
    yield Case("friendly/no once", "the user is asked twice", no_once)
    yield Case("friendly/harmless settings", "the user is asked for nothing", harmless)
    yield Case("friendly/KD_BASE", "a folder that the user names is refused", own_kd_base)
