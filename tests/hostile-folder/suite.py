"""What tests/hostile-folder/run runs: every case, in threads, each in its own folder.

Input: patterns of case names (argument 1 on; all without), the program in $KD. Output: a line for each case with what would
have happened and what did, and a closing line `N passed, N failed`. A line of open.txt fails where its attack no longer gets
through, and where it names no case; with KD_MUST=1 so does a case that cannot be tried here.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import os
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
from harness import Box, Case, Held

HERE = Path(__file__).parent
TABLES = [name for name in ("settings", "owners", "kills", "links", "reading", "speech", "programs", "trusting", "injection", "reviewing", "servers", "output", "shapes", "rivals", "friendly") if (HERE / f"{name}.py").exists()]
MUST = os.environ.get("KD_MUST") == "1"
# Known-open cases that hang are cut sooner: nobody waits for what is known.
OPEN_SECONDS = 6.0


def all_cases() -> list[Case]:
    found = [case for name in TABLES for case in importlib.import_module(name).cases()]
    seen: set[str] = set()
    for case in found:
        assert case.id not in seen, f"{case.id} twice"
        seen.add(case.id)
    return found


def known_open() -> list[str]:
    lines = (HERE / "open.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def matches(id_: str, patterns: list[str]) -> bool:
    return any(id_ == one or fnmatch.fnmatchcase(id_, one.replace("[", "[[]")) or id_.startswith(one.rstrip("/") + "/") for one in patterns)


def lacks(case: Case) -> str | None:
    have = {"root": harness.IS_ROOT, "net": harness.HAS_NET, "pids": harness.HAS_PIDS, "agent": bool(harness.FAKE_AGENT)}
    words = {"root": "root", "net": "a private network namespace", "pids": "a private pid namespace", "agent": "the fake agent"}
    return next((words[need] for need in case.needs if not have[need]), None)


class Tally:
    def __init__(self, opened: list[str], verbose: bool) -> None:
        self.lock = threading.Lock()
        self.opened, self.verbose = opened, verbose
        self.counts = {"passed": 0, "failed": 0, "open": 0, "skipped": 0}
        self.failed: list[tuple[str, str]] = []
        self.closed: list[str] = []

    def say(self, state: str, case: Case, did: str) -> None:
        mark = {"passed": "ok     ", "failed": "FAILED ", "open": "OPEN   ", "skipped": "SKIPPED"}[state]
        with self.lock:
            self.counts[state] += 1
            if state == "failed":
                self.failed.append((case.id, did))
            print(f"{mark} {case.id}\n          would: {case.would}\n          did:   {did}", flush=True)

    def skip(self, case: Case, why: str) -> None:
        self.say("failed" if MUST else "skipped", case, f"cannot be tried here: {why}" if MUST else why)

    def stale(self, id_: str, why: str) -> None:
        with self.lock:
            self.counts["failed"] += 1
            self.closed.append(id_)
            self.failed.append((id_, why))

    def run(self, case: Case, top: Path, keep: bool) -> None:
        is_open = case.id in self.opened
        if lack := lacks(case):
            return self.skip(case, f"needs {lack}")
        box = Box(top)
        start = time.monotonic()
        if is_open:
            box.seconds = OPEN_SECONDS
        try:
            harm = case.attack(box)
            held = "; ".join([*box.notes, box.runs[-1].told()] if box.runs else box.notes) or "nothing"
        except Held as why:
            return self.skip(case, str(why))
        except Exception:
            harm, held = "the case itself broke: " + traceback.format_exc(limit=-3).replace("\n", "\n          "), ""
            is_open = False
        finally:
            if not keep:
                box.close()
        took = time.monotonic() - start
        if took > 10:
            held += f" ({took:.0f} s)"
        if harm:
            self.say("open" if is_open else "failed", case, harm)
        elif is_open:
            self.stale(case.id, "open.txt says that this gets through, and it does not: take the line out")
            print(f"FAILED  {case.id}\n          did:   {held}, and is in open.txt", flush=True)
        else:
            self.say("passed", case, held)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--strict", action="store_true", help="nothing is known to be open")
    parser.add_argument("--write-open", action="store_true", help="make what fails the new list of what is open")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS", "0")) or 5 * (os.cpu_count() or 2))
    options = parser.parse_args()
    everything = all_cases()
    cases = [case for case in everything if not options.patterns or matches(case.id, options.patterns)]
    if options.list:
        print("\n".join(case.id for case in cases))
        return 0
    start = time.monotonic()
    tally = Tally([] if options.strict else known_open(), True)
    for line in set(tally.opened) - {case.id for case in everything}:
        tally.stale(line, "a line of open.txt that names no case")
    top = Path(tempfile.mkdtemp(prefix="kd-hostile-"))
    top.chmod(0o755)
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(tally.run, case, top, options.keep) for case in cases]:
                done.result()
    finally:
        if not options.keep:
            __import__("shutil").rmtree(top, ignore_errors=True)
    if tally.failed:
        print("\nfailed:")
        print("\n".join(f"  {id_}: {did}" for id_, did in tally.failed))
    if options.write_open:
        lines = sorted(({id_ for id_, _ in tally.failed} | set(known_open())) - set(tally.closed))
        (HERE / "open.txt").write_text("# Attacks that are known to get through, a name each. This list must be empty.\n" + "".join(f"{line}\n" for line in lines))
    c = tally.counts
    extra = "".join(f", {c[one]} {name}" for one, name in (("open", "known open"), ("skipped", "skipped")) if c[one])
    print(f"\n{len(cases)} cases in {time.monotonic() - start:.0f} s{extra}")
    print(f"{c['passed']} passed, {c['failed']} failed")
    return 1 if c["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
