#!/usr/bin/env python3
"""Disturbs a fleet by seeds: real `kd worker` and `kd batch run` over a PostgreSQL that is started for it, and a service that counts
what it is asked. Every result is compared with an undisturbed run, and what the batch says that it spent with the service's count.

  tests/batch/faults.py [FAULT ...] [--seeds 3] [--full]      all faults but `snapshot`; --full: 50 seeds
  tests/batch/faults.py FAULT --first SEED --seeds 1          one seed again
  tests/batch/faults.py snapshot [--hold-seconds 600] [--pause-ms 100]

  worker        workers are killed, and started again
  run           `kd batch run` is killed, and run again
  database      the server is shut down at once, or all its processes are killed; it recovers
  cut           the network to the database is down for longer than the lease (root, iproute2, openssl)
  silent        packets to and from the database are lost without a word, and the server forgets its connections (the same)
  stop          a worker is stopped (SIGSTOP) past its lease, and continued
  disk          the database's disk is full, then has space again (root: a tmpfs)
  results-disk  the disk of `kd batch run` is full (root: a tmpfs)
  worker-disk   the disk of a worker is full (root: a tmpfs)
  clock         the clocks of two workers are an hour off, and one is killed (libfaketime)
  poison        a question kills the worker that asks it
  snapshot      a transaction stays open: questions a second and dead rows before, while, and after

A fault that needs something that is not here is skipped, and said so. KD names the program. Exits with 1 if a result is lost, double
or different, or if more was asked than the batch counted.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from machines import LEASE, WORKERS, Broken, Service, Site, Skip


def kill_database(site, dice):
    data = site.database.data
    if dice.random() < 0.5:
        site.database.call("pg_ctl", "-D", data, "-m", "immediate", "stop")
    else:
        pid = int((data / "postmaster.pid").read_text().split()[0])
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        all_pids = [pid, *map(int, children)]
        for one in all_pids:
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while any(is_alive(one) for one in all_pids):
            time.sleep(0.01)
        # A dead process that nobody has waited for yet would count as a server that runs.
        for path in (data / "postmaster.pid", *site.database.folder.glob(".s.PGSQL.*.lock")):
            path.unlink()
    time.sleep(dice.uniform(0, 0.5))
    start_database(site)


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def start_database(site):
    """Starts the server; processes that it left may still end."""
    for last in [False] * 20 + [True]:
        try:
            return site.database.start()
        except subprocess.CalledProcessError:
            if last:
                raise
            time.sleep(0.2)


def disturb(site, dice):
    """Does what the fault is; returns which processes may end by themselves."""
    fault = site.fault
    pause = lambda low, high: time.sleep(dice.uniform(low, high))
    # The first questions are being asked.
    begun, deadline = dice.randrange(1, site.count // 2), time.monotonic() + 30
    while sum(Service.asked.values()) < begun and time.monotonic() < deadline:
        time.sleep(0.005)
    if fault == "worker":
        for _ in range(6):
            pause(0.05, 0.2)
            site.restart(dice.randrange(WORKERS))
    elif fault == "run":
        for _ in range(4):
            pause(0, 0.4)
            site.running.kill()
            ids = [json.loads(line)["id"] for line in whole_lines(site.runner.home / "work/r.jsonl")]
            if len(set(ids)) != len(ids):
                raise Broken(f"a result was written twice: {ids}")
            site.run(asks=dice.choice([0, 2]))
    elif fault == "database":
        for _ in range(2):
            pause(0, 0.5)
            kill_database(site, dice)
    elif fault == "cut":
        site.network.link("down")
        pause(1.2 * LEASE, 2.5 * LEASE)
        site.network.link("up")
    elif fault == "silent":
        ends_sessions = dice.random() < 0.5
        if ends_sessions:
            # Statements wait for a lock, so that workers wait for answers, which will never come.
            lock = site.database.session()
            lock.stdin.write(f"BEGIN; LOCK TABLE {site.schema}.kd_workers;\n")
            lock.stdin.flush()
            time.sleep(0.4)
        site.network.deaf(True)
        pause(1.2 * LEASE, 2 * LEASE)
        if ends_sessions:
            # As a machine that was replaced: nothing that is sent later tells the workers that their sessions are over.
            site.network.forget()
            lock.communicate("ROLLBACK;\n")
        pause(0, 2 * LEASE)
        site.network.deaf(False)
    elif fault == "stop":
        for _ in range(2):
            pause(0, 0.3)
            worker = site.workers[dice.randrange(WORKERS)]
            worker.child.send_signal(signal.SIGSTOP)
            pause(1.2 * LEASE, 2 * LEASE)
            worker.child.send_signal(signal.SIGCONT)
    elif fault in ("disk", "results-disk", "worker-disk"):
        site.disk.fill()
        pause(0.3, 1.5)
        site.disk.free()
        if fault == "disk" and site.database.call("pg_ctl", "-D", site.database.data, "status", check=False):
            start_database(site)
        return {"results-disk": ("run",)}.get(fault, ())
    elif fault == "clock":
        site.restart(dice.randrange(WORKERS))
    return ()


def whole_lines(path):
    """The lines that a process had written when it was killed."""
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


FAKETIME = ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"]


def prepare(site, dice):
    if site.fault == "clock":
        library = next((path for path in FAKETIME if os.path.exists(path)), None)
        if not library:
            raise Skip("libfaketime is not installed")
        for at, shift in ((0, "+1h"), (1, "-1h")):
            site.workers[at].kill()
            site.workers[at] = site.worker(at, LD_PRELOAD=library, FAKETIME=shift, FAKETIME_DONT_FAKE_MONOTONIC="1")
    if site.fault == "poison":
        Service.poison = dice.randrange(1, site.count + 1)

        def kill(who):
            for worker in site.workers:
                if worker.who == who:
                    worker.kill()
        Service.kill = kill
    if site.fault in ("cut", "silent") and dice.random() < 0.5:
        site.running.kill()
        site.run(over_network=True)


def compare(site, expected):
    """Returns figures of a run; fails if a result is lost, double or different, or if more was spent than counted."""
    found = site.lines()
    answers = {}
    for line in found:
        answers.setdefault(line["id"], []).append(line.get("answers", [{}])[0].get("text") if line["status"] == "answered" else None)
    poison = site.fault == "poison" and str(Service.poison)
    lost = [one for one in expected if one not in answers]
    wrong = [one for one in expected if one in answers and answers[one][0] != (None if one == poison else expected[one])]
    double = len(found) - len(answers)
    problems = []
    if lost or wrong or double or set(answers) - set(expected):
        problems.append(f"lost {lost}, double {double}, different {[(n, answers[n]) for n in wrong]}")
    if poison:
        reasons = [line["reason"] for line in found if line["id"] == poison]
        if reasons != ["a worker was lost 3 times while this question was asked"]:
            problems.append(f"the poisonous question: {reasons}")
    status = site.end()
    stored, open_jobs, left, *rows = site.sql(
        "SELECT count(DISTINCT place) FROM kd_results; SELECT count(*) FROM kd_jobs WHERE state NOT IN (2, 3);"
        "SELECT count(*) FROM kd_requests r JOIN kd_workers w ON w.id = r.worker WHERE w.ended IS NOT NULL;"
        "SELECT place, name, encode(sha256(bytes), 'hex') FROM kd_threads").splitlines()
    if stored != str(site.count) or open_jobs != "0":
        problems.append(f"the database has {stored} results, and {open_jobs} jobs are open")
    # The threads are here, byte for byte as in the database.
    stored = {tuple(row.split("|")[:2]): row.split("|")[2] for row in rows}
    for line in found:
        files = (site.runner.home / "work/.kd/batches").glob(f"*/threads/{line['thread']}/*") if line.get("thread") else []
        here = {(str(line["n"]), file.name): hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}
        # A process that was killed may have left locks beside them.
        wanted = {key: value for key, value in stored.items() if key[0] == str(line["n"])}
        if {key: here.get(key) for key in wanted} != wanted or line.get("thread") and not wanted:
            problems.append(f"the thread of {line['id']} differs: {sorted(here)}")
    spent, asked = status["spent"], sum(Service.asked.values())
    tokens = 6 * sum(map(len, Service.answered.values()))
    if spent["calls"] < asked or spent["tokens"] < tokens or left != "0":
        problems.append(f"the service was asked {asked} times ({tokens} tokens); the batch counts {spent}; {left} open")
    if problems:
        raise Broken("; ".join(problems))
    alive = {worker.who for worker in [*site.workers, site.running] if not worker.killed}
    late = sum(max(0, sum(who in alive for who in all_who) - 1) for all_who in Service.answered.values())
    return {"questions": site.count, "repeated": asked - site.count, "late": late}


def sequence(folder, fault, seeds, count):
    """Runs the seeds of a fault; returns its row of the table."""
    site = Site(folder, fault)
    row, failed = collections.Counter(), []
    try:
        Service.poison = None
        site.fault = "none"
        site.begin(0, count)
        site.wait()
        expected = {line["id"]: line["answers"][0]["text"] for line in site.lines()}
        compare(site, expected)
        site.fault = fault
        for seed in seeds:
            dice = random.Random(f"{fault} {seed}")
            began = time.monotonic()
            try:
                site.begin(seed, count)
                prepare(site, dice)
                row["ended"] += site.wait(disturb(site, dice))
                row.update(compare(site, expected))
            except Broken as error:
                failed.append(seed)
                print(f"{fault}, seed {seed}: {error}", file=sys.stderr, flush=True)
            site.drop()
            row["seconds"] += time.monotonic() - began
    finally:
        site.close()
    return row, failed


def snapshot(folder, args):
    """Holds a transaction open, and prints what becomes of the queue meanwhile."""
    site = Site(folder, "snapshot")
    Service.pause_ms = (args.pause_ms, args.pause_ms)
    before, after = min(60, args.hold_seconds), min(60, args.hold_seconds)
    rate = WORKERS * 4 * 1000 / (args.pause_ms + 20)
    count = int(rate * (before + args.hold_seconds + after) * 1.2)
    psql = None
    try:
        site.begin(1, count)
        began, rates = time.monotonic(), {}

        def measure(name, seconds):
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0.5:
                part, done = min(left, 60), sum(Service.asked.values())
                start = time.monotonic()
                time.sleep(part)
                now = (sum(Service.asked.values()) - done) / (time.monotonic() - start)
                rates.setdefault(name, []).append(now)
                dead, size = site.database.dead_rows(), site.database.size_mib()
                print(f"{time.monotonic() - began:6.0f} s, {name}: {now:.1f} questions/s, {dead} dead rows, {size} MiB", flush=True)
                if site.running.child.poll() is not None:
                    raise Broken(f"the batch is over too early: {site.running.said()}")

        time.sleep(2)
        measure("before", before)
        psql = site.database.session()
        # With a number of its own, so that it also holds back the search for new results.
        psql.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id(), count(*) FROM pg_class;\n")
        psql.stdin.flush()
        measure("held", args.hold_seconds)
        psql.communicate("COMMIT;\n")
        measure("after", after)
        collected = len(site.lines())
        asked = sum(Service.asked.values())
        mean = {name: sum(all_rates) / len(all_rates) for name, all_rates in rates.items()}
        print(f"held {args.hold_seconds} s: " + ", ".join(f"{name} {value:.1f} questions/s" for name, value in mean.items())
              + f"; {asked} asked, {collected} collected")
        repeated = sum(n - 1 for n in Service.asked.values())
        starved = min(rates["held"]) < 0.7 * mean["before"]
        if starved or repeated or collected < 0.9 * asked:
            raise Broken(f"starved: {starved}, repeated: {repeated}, collected {collected} of {asked}")
    finally:
        if psql:
            psql.kill()
        site.close()


FAULTS = ["worker", "run", "database", "cut", "silent", "stop", "disk", "results-disk", "worker-disk", "clock", "poison"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, "snapshot", []], metavar="FAULT")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--hold-seconds", type=float, default=600)
    parser.add_argument("--pause-ms", type=int, default=100)
    args = parser.parse_args()
    seeds = range(args.first, args.first + (50 if args.full else args.seeds))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"{'fault':13} {'seeds':>6} {'questions':>10} {'repeated':>9} {'dropped':>8} {'ended':>6} {'failed':>7} {'s/seed':>7}", flush=True)
    code = 0
    for fault in args.faults or FAULTS:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kd-faults-"))
        os.chmod(folder, 0o755)
        try:
            if fault == "snapshot":
                snapshot(folder, args)
                continue
            row, failed = sequence(folder, fault, seeds, args.questions)
            print(f"{fault:13} {len(seeds):6} {row['questions']:10} {row['repeated']:9} {row['late']:8} {row['ended']:6} {len(failed):7} "
                  f"{row['seconds'] / len(seeds):7.1f}", flush=True)
            code = code or int(bool(failed))
        except Skip as why:
            print(f"{fault:13} skipped: {why}", flush=True)
        except Broken as error:
            print(f"{fault}: {error}", file=sys.stderr)
            code = 1
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
