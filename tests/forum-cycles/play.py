"""Kills a forum's process again and again, and checks its record. See `run`."""

import argparse
import collections
import json
import os
import pathlib
import pwd
import queue
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

KD = os.path.join(os.environ["KD_BIN"], "kd")
AUDIT = pathlib.Path(__file__).resolve().parent.parent / "forum" / "audit.py"
NAMES = "ada bob cyd dan eve fay gus hal ivy jon kim lea".split()
# Answers of a scripted agent in one process: more than a process lives to hear.
ANSWERS = 400
# Changed bytes that both audits must find at the end. Many more are tried in kd-sql/tests/forum/bytes.rs.
CHANGES = 12
# Tables and columns of the record that hold one value for each row, with the key of the row.
RECORD = {
    "cycles": ("id", "number cards plan started_at ended_at interval_ms"),
    "links": ("cycle_id", "chain number origin commitment after_post through_post posts previous next secret seal"),
    "runs": ("id", "agent started_at ended_at outcome deeds reason claim calls tokens"),
    "posts": ("id", "author body created_at"),
}


class Server:
    """A PostgreSQL server of its own in a folder of its own."""

    def __init__(self, top):
        programs = self.programs()
        self.folder = tempfile.mkdtemp(prefix="kdpg", dir="/tmp")
        data = os.path.join(self.folder, "data")
        owner = None
        if os.geteuid() == 0:
            # It refuses to run as root.
            owner = next(n for n in ("postgres", "nobody") if n in {user.pw_name for user in pwd.getpwall()})
            user = pwd.getpwnam(owner)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self.folder, "user": owner}
        subprocess.run([programs / "initdb", "-A", "trust", "-U", "kd", "-E", "UTF8", "--locale=C", "--no-sync", "-D", data], check=True, **quiet)
        self.process = subprocess.Popen([programs / "postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off"], **quiet)
        self.url = f"postgresql://kd@/postgres?host={self.folder}"
        for _ in range(300):
            if subprocess.run([programs / "pg_isready", "-q", "-h", self.folder], **quiet).returncode == 0:
                return
            time.sleep(0.05)
        sys.exit(f"PostgreSQL was started in {self.folder} and does not answer")

    @staticmethod
    def programs():
        """Debian keeps them out of the search path."""
        folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        folders += [pathlib.Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
        return next((f for f in folders if (f / "initdb").is_file() and (f / "postgres").is_file()), None)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Forum:
    """One store, the agents that come and go, and what the killed processes printed."""

    def __init__(self, top, seed, store):
        self.top, self.dice = top, random.Random(seed)
        self.work, self.agents = top / "work", top / "agents"
        self.work.mkdir()
        self.agents.mkdir()
        self.store = ["--store", store] if store else []
        self.env = {"PATH": os.environ["PATH"], "HOME": str(top), "LANG": "C.UTF-8", "CYCLE_INTERVAL": "60"}
        self.counts = collections.Counter()
        self.printed = set()
        self.here, self.banned = set(), set()
        for name in NAMES[:4]:
            self.join(name)

    def kd(self, *words, code=(0,)):
        done = subprocess.run([KD, "forum", *words, *self.store], cwd=self.work, env=self.env, capture_output=True, text=True)
        if done.returncode not in code:
            sys.exit(f"kd forum {' '.join(words)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def join(self, name):
        skip = self.dice.choice(["", "", "preferences:\n  skip_probability: 0.5\n"])
        script = self.top / f"{name}.json"
        (self.agents / f"{name}.yaml").write_text(f"name: {name}\nsystem_prompt: You are {name}.\ngroups: [bees]\nbackend: scripted\nmodel: {script}\n{skip}")
        self.here.add(name)
        self.counts["joined"] += 1

    def leave(self, name):
        (self.agents / f"{name}.yaml").unlink()
        self.here.discard(name)
        self.counts["left"] += 1

    def write_scripts(self):
        """Answers for one process; no body comes twice."""
        start = self.counts["processes"]
        for name in self.here:
            runs = []
            for number in range(ANSWERS):
                body = f"{name} writes {start}.{number}"
                call = self.dice.choice([
                    {"tool": "reply_to_thread", "thread_id": self.dice.randint(1, 5), "body": body},
                    {"tool": "reply_to_thread", "thread_id": 1, "body": body},
                    {"tool": "create_thread", "title": body, "body": body},
                    {"tool": "finish", "did": "reply_to_thread"},
                    {"tool": "finish", "did": "skip"},
                    {"tool": "skip", "reason": "tired"},
                    {"tool": "vote", "motion_id": 1, "choice": "yes"},
                    {"tool": "propose", "kind": "text", "title": body, "value": body, "reason": "why not"},
                ])
                runs.append([{"text": json.dumps(call)}])
            # The last answer is given again and again.
            runs.append([{"text": json.dumps({"tool": "skip", "reason": "no words left"})}])
            (self.top / f"{name}.json").write_text(json.dumps({"runs": runs}))

    def change_company(self):
        """Between two processes, agents join and leave."""
        away = [name for name in NAMES if name not in self.here]
        if away and len(self.here) < 6 and self.dice.random() < 0.5:
            self.join(self.dice.choice(away))
        if len(self.here) > 3 and self.dice.random() < 0.5:
            self.leave(self.dice.choice(sorted(self.here)))

    def order(self):
        """While the process runs, somebody is banned or let back."""
        if self.banned:
            self.kd("unban", self.banned.pop(), "enough")
        else:
            name = self.dice.choice(sorted(self.here))
            self.kd("ban", name, "too loud")
            self.banned.add(name)
            self.counts["banned"] += 1

    def live(self, cycles, kill):
        """Runs a process for at most so many cycles; kills it at a random moment, or lets it end."""
        self.write_scripts()
        self.counts["processes"] += 1
        words = ["run-cycle", "--virtual", "--jsonl", "--group", "bees", "--agents-dir", str(self.agents), "--cycles", str(cycles)]
        process = subprocess.Popen([KD, "forum", *words, *self.store], cwd=self.work, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = queue.Queue()

        def read():
            for line in process.stdout:
                lines.put(line)
            lines.put(None)

        reader = threading.Thread(target=read)
        reader.start()
        heard, last = 0, None
        # Some die before their first line.
        until = self.dice.choice([self.dice.randint(0, 12), self.dice.randint(0, 2 * kill), self.dice.randint(0, 2 * kill)]) if kill else None
        order = self.dice.randint(0, until) if kill and self.dice.random() < 0.2 else None
        while until is None or heard < until:
            if heard == order:
                self.order()
            line = lines.get(timeout=120)
            if line is None:
                break
            heard += 1
            last = self.note(line) or last
        if kill:
            time.sleep(self.dice.random() * 0.004)
            if process.poll() is None:
                process.kill()
                self.counts["killed"] += 1
        process.wait()
        reader.join()
        while not lines.empty():
            line = lines.get()
            last = (line and self.note(line)) or last
        self.counts["killed in a visit"] += bool(kill) and last == "run_started"
        if process.returncode not in (0, -9):
            sys.exit(f"kd forum run-cycle: exit code {process.returncode}\n{process.stderr.read()}")
        process.stderr.close()

    def note(self, line):
        try:
            event = json.loads(line)
        except ValueError:
            return None
        if event.get("post_id") is not None:
            self.printed.add(event["post_id"])
        self.counts["cycles printed"] += event.get("event") == "cycle_complete"
        return event.get("event")


def check(forum, export, found):
    """What the record says, against what was printed; the faults."""
    faults, cycles, runs, posts = [], {}, {}, {}
    for line in export.read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "cycle":
            cycles[record["id"]] = record
        elif record["record"] == "run":
            runs[record["id"]] = record
        elif record["record"] == "post":
            posts[record["id"]] = record
    numbers = sorted(cycle["number"] for cycle in cycles.values())
    if numbers != list(range(1, len(numbers) + 1)):
        faults.append("the cycles are not numbered one after another")
    of_cycle, of_run = collections.defaultdict(list), collections.defaultdict(list)
    for number in sorted(runs):
        of_cycle[runs[number]["cycle_id"]].append(runs[number])
    for cycle in cycles.values():
        planned = [turn["agent"] for turn in cycle["plan"]["turns"]]
        took = [run["agent"] for run in of_cycle[cycle["id"]]]
        if cycle["ended_at"] is None or took != planned:
            faults.append(f"cycle {cycle['number']}: planned were {planned}, and {took} had a turn")
        void = (cycle.get("link") or {}).get("void")
        # Killed between the note of its draw and the record of it, and drawn again for another company: a secret gives one
        # order only, so that nobody can kill the process until an order pleases.
        cut_off = void is not None and void.startswith("another order was drawn") and not took
        found["draws cut off"] = found.get("draws cut off", 0) + cut_off
        if void and not cut_off:
            faults.append(f"cycle {cycle['number']} is void: {void}")
    for number, post in posts.items():
        if post.get("run_id") is not None:
            of_run[post["run_id"]].append(number)
            if post["author"] not in (runs[post["run_id"]]["agent"], "forum"):
                faults.append(f"post {number} is not by the agent of its visit")
    bodies = collections.Counter(post["body"] for post in posts.values() if " writes " in post["body"] and "\n" not in post["body"])
    faults += [f"doubled: {body}" for body, times in bodies.items() if times > 1]
    for number, run in runs.items():
        recorded = [deed["post_id"] for deed in run["deeds"] if deed.get("post_id") is not None]
        opened = [deed["thread_id"] for deed in run["deeds"] if deed["tool"] == "propose"]
        written = [post for post in of_run[number] if posts[post]["thread_id"] not in opened or post in recorded]
        if recorded != written:
            faults.append(f"visit {number} recorded {recorded} and wrote {written}")
        if run["outcome"] == "running":
            faults.append(f"visit {number} never ended")
    faults += [f"post {post} was printed and is gone" for post in forum.printed - set(posts)]
    found |= {"cycles": len(cycles), "visits": len(runs), "posts": len(posts), "visits cut off": sum(r["outcome"] == "interrupted" for r in runs.values())}
    return faults


def audits(forum, record):
    """Whether kd's audit and the independent one pass, and what each computes."""
    kd = json.loads(forum.kd("audit", "--json", code=(0, 1)).splitlines()[-1])["audit"]
    other = subprocess.run([sys.executable, AUDIT, record], capture_output=True, text=True)
    return kd, (json.loads(other.stdout) if other.returncode in (0, 1) and other.stdout else {"faults": [other.stderr[-500:]]})


def compare(ours, theirs):
    """The figures of fairness of kd and of the independent program."""
    near = lambda a, b: abs(a - b) < 1e-5
    rows = {row["key"]: row["p"] for row in ours["rows"]}
    faults = [f"fairness, {key}: {p} and {rows.get(key)}" for key, p in theirs["p"].items() if not near(p, rows[key])]
    by_name = {agent["agent"]: agent for agent in theirs["agents"]}
    for agent in ours["agents"]:
        other = by_name.get(agent["agent"], {})
        for key, value in agent.items():
            if isinstance(value, (int, float)) and key in other and not near(value, other[key]):
                faults.append(f"fairness, {key} of {agent['agent']}: {other[key]} and {value}")
    return faults + ([] if len(by_name) == len(ours["agents"]) else ["fairness: other agents"])


def change_bytes(forum, path, count):
    """Changes one byte of the record at a time; the changes that an audit does not find."""
    missed = {"kd": [], "audit.py": []}
    for number in range(count):
        with sqlite3.connect(path) as db:
            table = forum.dice.choice(sorted(RECORD))
            key, columns = RECORD[table]
            column = forum.dice.choice(columns.split())
            rows = db.execute(f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL AND LENGTH({column}) > 0").fetchall()
            row, value = forum.dice.choice(rows)
            text = list(str(value))
            at = forum.dice.randrange(len(text))
            text[at] = forum.dice.choice([c for c in "0123456789" if c != text[at] and not (at == 0 and c == "0")])
            changed = "".join(text)
            db.execute("PRAGMA foreign_keys = OFF")
            try:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (int(changed) if isinstance(value, int) else changed, row))
            except sqlite3.IntegrityError:
                continue
        db.close()
        kd = subprocess.run([KD, "forum", "audit", "--json", *forum.store], cwd=forum.work, env=forum.env, capture_output=True)
        other = subprocess.run([sys.executable, AUDIT, path], capture_output=True)
        for name, done in (("kd", kd), ("audit.py", other)):
            if done.returncode == 0:
                missed[name].append(f"{table}.{column} of {row}: {value!r:.60} became {changed!r:.60}")
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA foreign_keys = OFF")
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (value, row if column != key else changed))
        db.close()
    return missed


def play(database, args):
    """One database from its first cycle to its checks; the faults."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="kd-forum-cycles-"))
    server = Server(top) if database == "postgres" else None
    try:
        forum = Forum(top, args.seed, server and server.url)
        forum.kd("post", "Bees", "Why do they dance?")
        began, reported = time.monotonic(), 0
        kills = args.kills or max(10, args.cycles // 25)
        # A cycle prints about 18 lines; a third of the processes dies early.
        lines = max(10, 27 * args.cycles // kills)
        while forum.counts["killed"] < kills:
            forum.change_company()
            forum.live(args.cycles, lines)
            if forum.counts["cycles printed"] >= reported + 1000:
                reported = forum.counts["cycles printed"]
                print(f"{database}: {reported} cycles, {forum.counts['killed']} kills, {time.monotonic() - began:.0f} s", flush=True)
        last = json.loads(forum.kd("audit", "--json", code=(0, 1)).splitlines()[-1])["audit"]["cycles"]
        # The one that was cut off goes on, and then those that are missing.
        forum.live(max(2, args.cycles - last + 1), 0)
        took = time.monotonic() - began
        export = top / "export.jsonl"
        forum.kd("export", str(export))
        found = {"database": database, **{k: forum.counts[k] for k in ("processes", "killed", "killed in a visit", "joined", "left", "banned")}}
        faults = check(forum, export, found)
        kd, other = audits(forum, export)
        faults += [f"kd forum audit: {fault}" for fault in kd["faults"]] + [f"audit.py: {fault}" for fault in other["faults"]]
        if not other.get("faults"):
            faults += compare(json.loads(forum.kd("fairness", "--json", "--end", code=(0, 1))), other)
        found |= {"committed draws": kd["committed"], "seconds": round(took)}
        if database == "sqlite":
            missed = change_bytes(forum, forum.work / ".kd/forum.db", args.changes)
            found["changed bytes"] = args.changes
            faults += [f"{name} does not find a changed byte: {what}" for name, all in missed.items() for what in all]
            kd, other = audits(forum, forum.work / ".kd/forum.db")
            faults += [f"after the changes: {fault}" for fault in kd["faults"] + other["faults"]]
        if kills >= 20 and forum.counts["killed in a visit"] == 0:
            faults.append("no kill met a visit")
        if found["cycles"] < args.cycles:
            faults.append(f"{found['cycles']} cycles instead of {args.cycles}")
        print()
        for name, value in found.items():
            print(f"| {name} | {value} |")
        if faults and args.keep:
            print(f"kept: {top}")
        return faults[:20]
    finally:
        if server:
            server.stop()
        if not args.keep:
            shutil.rmtree(top, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(prog="tests/forum-cycles/run")
    parser.add_argument("--cycles", type=int, default=500)
    parser.add_argument("--kills", type=int, default=0, help="default: one in 25 cycles")
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changes", type=int, default=CHANGES, help="changed bytes")
    parser.add_argument("--full", action="store_true", help="10,000 cycles")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    args = parser.parse_args()
    if args.full:
        args.cycles = 10_000
    databases = ["sqlite", "postgres"] if args.database == "both" else [args.database]
    if "postgres" in databases and Server.programs() is None:
        if args.database == "postgres":
            sys.exit("PostgreSQL is not installed")
        print("PostgreSQL is not installed: SQLite alone")
        databases.remove("postgres")
    faults = [f"{database}: {fault}" for database in databases for fault in play(database, args)]
    for fault in faults:
        print(f"FAULT: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
