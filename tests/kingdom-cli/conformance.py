"""What tests/kingdom-cli/run runs inside the environment that holds kingdom-cli 1.1.0.

Input: the path of its `kd` (argument 1), seconds of writing at once (argument 2), rounds of the full run or 0 (argument
3), ours in $KD. Output: a line for each check, and a closing line `N passed, N failed`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

from kingdom import thread as theirs
from kingdom.config import load_config

THEIR_KD, SECONDS, ROUNDS, OUR_KD = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), os.environ["KD"]
# Rounds of theirs in one thread: each reads the whole thread.
ROUNDS_PER_THREAD = 100
BRANCH = "main"
results: list[bool] = []


def check(what: str, holds: object, told: object = "") -> None:
    results.append(bool(holds))
    print(f"{'ok    ' if holds else 'FAILED'} {what}" + ("" if holds or not told else f"\n       {told}"), flush=True)


# A claude that answers with three words, in the words of the real one.
CLAUDE = r"""#!/bin/sh
case "$1" in --version) echo "2.0.0 (Claude Code)"; exit 0;; esac
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"claude-fake-1"}'
echo '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Theirs "}}}'
echo '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"says so."}}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"Theirs says so.","session_id":"s-1","modelUsage":{"claude-fake-1":{}}}'
"""


class House:
    """A project that both programs use."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        bin_ = folder / "bin"
        for one in (self.home, self.work, bin_):
            one.mkdir(parents=True)
        (bin_ / "claude").write_text(CLAUDE)
        (bin_ / "claude").chmod(0o755)
        self.env = {"HOME": str(self.home), "PATH": f"{bin_}:/usr/bin:/bin", "TZ": "UTC", "LANG": "C.UTF-8", "KD_SKILL_HOME": str(self.home)}
        # Theirs knows no branch before the first commit.
        who = ["-c", "user.name=a", "-c", "user.email=a@b.org", "-c", "commit.gpgsign=false"]
        for line in (["init", "-q", "-b", BRANCH], [*who, "commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run(["git", *line], cwd=self.work, env=self.env, check=True)
        self.kd_folder = self.work / ".kd"
        (self.kd_folder / "branches" / BRANCH).mkdir(parents=True)
        self.config({"agents": {"claude": {"backend": "claude_code"}}, "council": {"members": ["claude"]}})
        script = folder / "ada.json"
        script.write_text(json.dumps({"runs": [[{"text": "Ours says so.\n"}]]}))
        self.local({"council": {"members": ["ada"], "conclude": False}, "agents": {"ada": {"backend": "scripted", "model": str(script)}}})

    def config(self, value: object) -> None:
        (self.kd_folder / "config.json").write_text(json.dumps(value))
        self.ours("trust", "--yes")

    def local(self, value: object) -> None:
        (self.kd_folder / "config.local.json").write_text(json.dumps(value))
        self.ours("trust", "--yes")

    def run(self, program: str, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *args], cwd=self.work, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)

    def ours(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.run(OUR_KD, *args)

    def theirs(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.run(THEIR_KD, *args)

    def thread(self, id_: str) -> Path:
        return self.kd_folder / "branches" / BRANCH / "threads" / id_


def said(run: subprocess.CompletedProcess[str]) -> str:
    return f"code {run.returncode}: {run.stdout[-400:]} {run.stderr[-800:]}"


def messages(folder: Path) -> list[tuple[int, str, str]]:
    return [(m.sequence, m.from_, m.body) for m in theirs.list_messages_from_dir(folder)]


def same_list(house: House, what: str) -> None:
    ours, them = house.ours("council", "list", "--json"), house.theirs("council", "list", "--json")

    def rows(run: subprocess.CompletedProcess[str]) -> dict:
        keys = ("message_count", "topic", "current", "members")
        return {r["id"]: (datetime.fromisoformat(r["created_at"]), *(r[k] for k in keys)) for r in json.loads(run.stdout)}

    try:
        a, b = rows(ours), rows(them)
    except (ValueError, KeyError, TypeError) as error:
        return check(what, False, f"{error}: {said(ours)} / {said(them)}")
    check(what, a == b, f"ours {a}\n       theirs {b}")


def ours_for_them(house: House) -> str:
    """A thread of ours, with a question that is not easy to keep."""
    question = "\n\nWhich?  \r\n---\nfrom: nobody\n\u00fcber \u2028 end\n"
    asked = house.ours("council", "ask", "--json", question)
    check("ours: kd asks", asked.returncode == 0, said(asked))
    id_ = json.loads(asked.stdout)["thread_id"]
    folder = house.thread(id_)
    same_list(house, "theirs lists our thread as we do")
    shown = house.theirs("council", "show", id_, "--all")
    check("theirs shows our thread", shown.returncode == 0 and "Ours says so." in shown.stdout, said(shown))
    status = house.theirs("council", "status", id_, "--json")
    state = json.loads(status.stdout or "{}").get("members", {}).get("ada", {}).get("state")
    check("theirs sees our answer", state == "responded", said(status))
    went_on = house.theirs("council", "ask", "--continue", "--no-watch", "And then?")
    check("theirs continues our thread", went_on.returncode == 0, said(went_on))
    shown = house.ours("council", "show", id_, "--all", "--json")
    heard = [(m["seq"], m["from"]) for m in json.loads(shown.stdout)["messages"]]
    check("ours shows what theirs added", heard == [(1, "king"), (2, "ada"), (3, "king"), (4, "claude")], heard)
    check("theirs reads every body as ours does", [b for *_, b in messages(folder)] == [m["body"].strip() for m in json.loads(shown.stdout)["messages"]])
    same_bytes(house, folder)
    return id_


def same_bytes(house: House, folder: Path) -> None:
    """Each message of the folder, written again by theirs, and its JSON, formatted again by theirs."""
    scratch = theirs.create_thread(house.work, "bytes", "council-0000", ["king"], "council")
    copy = house.kd_folder / "branches" / "bytes" / "threads" / scratch.id
    wrong = []
    for path in sorted(folder.glob("*.md")):
        m = theirs.parse_message(path)
        again = theirs.add_message(
            house.work, "bytes", scratch.id, m.from_, m.to, path.read_bytes().split(b"---\n\n", 1)[1].decode().removesuffix("\n"),
            m.refs, m.status, m.backend, m.model, m.model_source, m.effort, m.effort_source, m.cli_version, m.delivery_id,
        )
        name = next(copy.glob(f"{again.sequence:04d}-*.md"))
        stamp = re.compile(rb"^timestamp: .*$", re.M)
        if name.name != path.name or stamp.sub(b"", name.read_bytes()) != stamp.sub(b"", path.read_bytes()):
            wrong.append((path.read_bytes()[:300], name.read_bytes()[:300]))
    check("message files are the same to the byte", not wrong, wrong)
    branch = folder.parent.parent
    files = [folder / "thread.json", branch / "state.json", *branch.glob("sessions/*.json")]
    odd = [f.name for f in files if f.read_text() != json.dumps(json.loads(f.read_text()), indent=2, sort_keys=True) + "\n"]
    check(f"{len(files)} JSON files are the same to the byte", not odd, odd)


def theirs_for_us(house: House) -> None:
    asked = house.theirs("council", "ask", "--no-watch", "Who is right?")
    check("theirs asks", asked.returncode == 0, said(asked))
    state = json.loads((house.kd_folder / "branches" / BRANCH / "state.json").read_text())
    id_ = state["current_thread"]
    same_list(house, "ours lists their thread as they do")
    shown = house.ours("council", "show", "--all")
    check("ours shows their thread", shown.returncode == 0 and "Theirs says so." in shown.stdout, said(shown))
    ours, them = house.ours("council", "status", id_, "--json"), house.theirs("council", "status", id_, "--json")
    pick = lambda run: {k: json.loads(run.stdout)[k] for k in ("thread_id", "expected", "responded", "pending", "members")}
    check("both tell the same status", pick(ours) == pick(them), f"{said(ours)} / {said(them)}")
    went_on = house.ours("council", "ask", "--continue", "--members", "ada", "--json", "And now?")
    check("ours continues their thread", went_on.returncode == 0, said(went_on))
    numbers = [(s, f) for s, f, _ in messages(house.thread(id_))]
    check("theirs reads what ours added", numbers == [(1, "king"), (2, "claude"), (3, "king"), (4, "ada")], numbers)
    fsck = house.ours("fsck")
    check("kd fsck finds nothing wrong with what both wrote", fsck.returncode == 0, said(fsck))


def settings(house: House) -> None:
    nested = {"chat": {"mode": "natural", "auto_rounds": 2}, "ask": {"mode": "sequential", "auto_messages": 1}}
    agents = {"claude": {"backend": "claude_code"}}
    house.config({"agents": agents, "council": {"timeout": 90, "preamble": "Be brief.", **nested}})
    checked = house.ours("config", "check")
    check("ours reads its nested keys", checked.returncode == 0, said(checked))
    shown = house.ours("config", "show", "--json")
    values = {row["key"]: row["value"] for row in json.loads(shown.stdout)}
    check("ours heeds its keys", values.get("council.timeout") == 90 and values.get("council.preamble") == "Be brief.", values.get("council.timeout"))
    check("theirs reads the same file", load_config(house.work).council.timeout == 90)
    for key, value in (("council.mode", "sequential"), ("agents.claude.temperature", "0.5"), ("council.conclude", "false")):
        done = house.ours("config", "set", key, value)
        told = "config.local.json" in done.stderr
        check(f"ours keeps {key} where theirs does not read, and says so", done.returncode == 0 and told, said(done))
    done = house.ours("config", "set", "council.timeout", "120")
    check("ours keeps council.timeout where both read it", done.returncode == 0 and load_config(house.work).council.timeout == 120, said(done))
    check("theirs still starts", house.theirs("config", "show").returncode == 0)
    house.config({"agents": agents, "council": {"auto_messages": 2, "mode": "sequential"}})
    shown = house.ours("config", "show", "--json")
    values = {row["key"]: row["value"] for row in json.loads(shown.stdout)} if shown.returncode == 0 else {}
    check("ours reads the flat keys of older versions", values.get("council.auto_messages") == 2, said(shown))


THEIR_WRITER = """
import json, sys, time
from pathlib import Path
from kingdom.thread import add_message
base, id_, sender, seconds, pause = Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5])
end, i = time.time() + seconds, 0
while time.time() < end:
    body = f"{sender} {i}\\n" + "More of it.\\n" * (i % 40) + f"end {sender} {i}"
    m = add_message(base, "main", id_, sender, "all", body, status="complete")
    print(json.dumps([m.sequence, sender, body]), flush=True)
    i += 1
    time.sleep(pause)
"""


def at_once(house: House, id_: str) -> None:
    """Four writers of each in one thread. Theirs are its own function for writing; ours are whole runs of kd ask."""
    pause = "0.08"
    writer = [sys.executable, "-c", THEIR_WRITER, str(house.work), id_]
    senders = ["claude", "codex", "cursor", "stranger"]
    them = [subprocess.Popen([*writer, s, str(SECONDS), pause], stdout=subprocess.PIPE, text=True) for s in senders]
    end = time.time() + SECONDS
    ours: list[tuple[int, str, str]] = []
    running: list[tuple[subprocess.Popen[str], Path]] = []
    count, failed = 0, []

    def reap(process: subprocess.Popen[str], log: Path) -> None:
        if process.wait() != 0:
            failed.append(log.read_text()[-400:])
        for line in log.read_text().splitlines():
            record = json.loads(line)
            if record.get("event") == "message_added":
                m = record["message"]
                ours.append((m["seq"], m["from"], m["body"]))

    while time.time() < end or running:
        for one in [r for r in running if r[0].poll() is not None]:
            running.remove(one)
            reap(*one)
        while time.time() < end and len(running) < 4:
            log = house.home / f"{count}.jsonl"
            with log.open("w") as out:
                line = [OUR_KD, "ask", "--jsonl", "--quiet", "--members", "ada", "--thread", id_, f"question {count}"]
                running.append((subprocess.Popen(line, cwd=house.work, env=house.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out), log))
            count += 1
        time.sleep(0.005)
    written = [tuple(json.loads(line)) for p in them for line in p.communicate()[0].splitlines()]
    check(f"{count} rounds of ours ran beside them", not failed and count > 0, failed[:3])
    # A double that theirs made after our last word is parted by our next.
    last = house.ours("ask", "--jsonl", "--quiet", "--members", "ada", "--thread", id_, "the last")
    check("one more round of ours", last.returncode == 0, said(last))
    names = [p.name for p in house.thread(id_).glob("*-*.md")]
    numbers = Counter(n.split("-")[0] for n in names)
    doubles = [n for n, times in numbers.items() if times > 1]
    check(f"no number twice among {len(names)} messages ({len(ours)} of ours, {len(written)} of theirs)", not doubles, doubles[:20])
    there = messages(house.thread(id_))
    missing = set(ours) - {(s, f, b) for s, f, b in there}
    check("each of ours is there, under the number that was told", not missing, sorted(missing)[:3])
    bodies = Counter((f, b) for _, f, b in there)
    lost = Counter((f, b) for _, f, b in written) - bodies
    check("each of theirs is there, whole", not lost, list(lost)[:3])
    moved = len({(s, f) for s, f, _ in written} - {(s, f) for s, f, _ in there})
    print(f"       {moved} of theirs were given another number, because theirs had given one twice")
    fsck = house.ours("fsck", id_)
    check("kd fsck finds nothing wrong afterwards", fsck.returncode == 0, said(fsck))


def loop(house: House, *args: str) -> tuple[threading.Thread, threading.Event, list[str]]:
    """Runs a command of ours again and again until told to stop; collects how failed runs ended."""
    stop, failed = threading.Event(), []

    def go() -> None:
        while not stop.is_set():
            run = house.ours(*args)
            # 5 and 6: members failed, which is not the case here.
            if run.returncode != 0:
                failed.append(said(run))
            stop.wait(0.2)

    thread = threading.Thread(target=go)
    thread.start()
    return thread, stop, failed


def full_thread(house: House, rounds: int, number: int) -> tuple[int, int, int, list[str], list[str]]:
    """So many rounds of theirs in a new thread, one after the other (two of theirs at once remove each other's stream file
    and crash without us), beside ours. Messages of theirs and of ours, doubles, and
    what failed of theirs and of ours."""
    asked = house.theirs("council", "ask", "--no-watch", f"thread {number}")
    crashed = [] if asked.returncode == 0 else [said(asked)]
    id_ = json.loads((house.kd_folder / "branches" / BRANCH / "state.json").read_text())["current_thread"]
    chats = []
    for _ in range(2):
        out = tempfile.TemporaryFile("w+")
        line = [OUR_KD, "chat", "--plain", "--members", "ada", id_]
        chats.append((subprocess.Popen(line, cwd=house.work, env=house.env, stdin=subprocess.PIPE, stdout=out, stderr=out, text=True), out))
    loops = [
        loop(house, "ask", "--async", "--quiet", "--members", "ada", "--thread", id_, "in the background"),
        loop(house, "ask", "--quiet", "--members", "ada", "--thread", id_, "and then?"),
    ]
    running: list[subprocess.Popen[str]] = []
    left, spoken, next_line = rounds - 1, 0, time.time()
    while left > 0 or running:
        for one in [r for r in running if r.poll() is not None]:
            running.remove(one)
            if one.returncode != 0:
                crashed.append(one.communicate()[0][-800:])
        while left > 0 and not running:
            line = [THEIR_KD, "council", "ask", "--continue", "--no-watch", f"round {left}"]
            running.append(subprocess.Popen(line, cwd=house.work, env=house.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            left -= 1
        if time.time() > next_line:
            for chat, _ in chats:
                chat.stdin.write(f"chat says {spoken}\n")
                chat.stdin.flush()
            spoken, next_line = spoken + 1, time.time() + 1
        time.sleep(0.01)
    failed = []
    for thread, stop, told in loops:
        stop.set()
        thread.join()
        failed += told
    for chat, out in chats:
        chat.stdin.close()
        code = chat.wait(timeout=120)
        out.seek(0)
        if code != 0:
            failed.append(f"chat, code {code}: {out.read()[-400:]}")
    # What runs in the background ends by itself; one more word of ours parts a double of theirs.
    before = -1
    while before != (before := len(list(house.thread(id_).iterdir()))):
        time.sleep(2)
    last = house.ours("ask", "--quiet", "--members", "ada", "--thread", id_, "the last")
    failed += [] if last.returncode == 0 else [said(last)]
    there = messages(house.thread(id_))
    numbers = Counter(n.name.split("-")[0] for n in house.thread(id_).glob("*-*.md"))
    bodies = Counter(b.strip() for _, f, b in there if f == "king")
    lost = [f"chat says {n}" for n in range(spoken) if bodies[f"chat says {n}"] != 2]
    lost += [f"round {n}" for n in range(1, rounds) if bodies[f"round {n}"] != 1]
    failed += [f"not there as often as it was said: {', '.join(lost[:5])}"] if lost else []
    their_answers = sum(1 for _, f, _ in there if f == "claude")
    if their_answers < rounds - len(crashed):
        crashed.append(f"{rounds} rounds of theirs brought {their_answers} answers")
    return their_answers, len(there), sum(n - 1 for n in numbers.values()), crashed, failed


def full(house: House) -> None:
    """Many whole rounds of theirs beside chats and rounds of ours."""
    answers = all_messages = doubles = 0
    crashed, failed = [], []
    left, number, start = ROUNDS, 0, time.time()
    while left > 0:
        number += 1
        rounds = min(left, ROUNDS_PER_THREAD)
        theirs_said, there, twice, bad_theirs, bad_ours = full_thread(house, rounds, number)
        answers, all_messages, doubles, left = answers + theirs_said, all_messages + there, doubles + twice, left - rounds
        crashed, failed = crashed + bad_theirs, failed + bad_ours
        print(f"       {ROUNDS - left} rounds, {all_messages} messages, {time.time() - start:.0f} s; {len(crashed)} of theirs and {len(failed)} of ours failed, {doubles} numbers twice", flush=True)
        for why in bad_theirs + bad_ours:
            print(f"       {why}", flush=True)
    check(f"no round of {ROUNDS} of theirs crashed or lost its answer", not crashed, crashed[:3])
    check(f"nothing of ours failed or got lost beside them, {all_messages} messages in all", not failed, failed[:3])
    check("no number twice", doubles == 0, doubles)
    fsck = house.ours("fsck")
    check("kd fsck finds nothing wrong afterwards", fsck.returncode == 0, said(fsck))


def alone(house: House) -> None:
    """For comparison: four writers of theirs without us."""
    theirs.create_thread(house.work, BRANCH, "council-a10e", ["king"], "council")
    writer = [sys.executable, "-c", THEIR_WRITER, str(house.work), "council-a10e"]
    seconds = min(SECONDS, 5.0)
    them = [subprocess.Popen([*writer, s, str(seconds), "0.08"], stdout=subprocess.PIPE, text=True) for s in ("claude", "codex", "cursor", "stranger")]
    for process in them:
        process.communicate()
    numbers = Counter(p.name.split("-")[0] for p in house.thread("council-a10e").glob("*-*.md"))
    print(f"       for comparison, theirs alone in {seconds:g} s: {sum(n - 1 for n in numbers.values())} doubles among {sum(numbers.values())} messages")


with tempfile.TemporaryDirectory() as folder:
    house = House(Path(folder))
    if ROUNDS:
        full(house)
    else:
        first = ours_for_them(house)
        theirs_for_us(house)
        at_once(house, first)
        alone(house)
        settings(house)
print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
sys.exit(0 if all(results) else 1)
