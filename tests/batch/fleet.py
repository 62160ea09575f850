#!/usr/bin/env python3
"""Figures of batches on several workers, over a PostgreSQL that is started for it:

  tests/batch/fleet.py throughput [--questions 2000] [--pause-ms 1000] [--concurrency 16] [--workers 4,8]
  tests/batch/fleet.py big [--questions 100000] [--pause-ms 0] [--concurrency 16] [--workers 4,8]
  tests/batch/fleet.py rate [--per-minute 600] [--seconds 30] [--workers 8]
  tests/batch/fleet.py soak --minutes 90 [--workers 4] [--questions 5000]

`throughput` compares with `kd batch run` alone at the same concurrency in all. `--pause-ms 0` asks questions that take no time.
`big` does the same with very many questions, and prints a row every few seconds: what is done, and the memory of each process.
Both count the results, and tell the CPU time for a question (of `kd batch run`, the workers, and PostgreSQL with everything that it
does meanwhile), and the size of the database before and after. For one process the database is its file in the data folder.
`rate` asks a service that answers 429 above its rate. `soak` runs one batch after the other, and prints a line each minute: questions
a second, memory of each worker, size and dead rows of the database, and the time from a claim to its end.

KD names the program (target/release/kd, else target/debug/kd). Exits with 1 if a result is lost or double, or a goal of `rate`
is missed (refused under 1 %, used above 90 %).
"""

import argparse
import collections
import http.server
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program():
    for path in (os.environ.get("KD"), ROOT / "target/release/kd", ROOT / "target/debug/kd"):
        if path and pathlib.Path(path).exists():
            return str(pathlib.Path(path).resolve())
    sys.exit("build kd first: cargo build --release")


def owned(*paths):
    """Gives paths to the user of PostgreSQL, which refuses to run as root."""
    if os.geteuid() == 0:
        for path in paths:
            shutil.chown(path, "postgres", "postgres")


class Postgres:
    """A server in a folder of its own, on a socket there."""

    def __init__(self, folder, options="", within=(), initdb_options=()):
        """`options` of the server; `within`: a command that starts another one, for example in a namespace."""
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        initdb = shutil.which("initdb") or (found and str(found[-1]))
        if not initdb:
            sys.exit("PostgreSQL is not installed")
        self.bin = pathlib.Path(initdb).parent
        self.folder = folder / "pg"
        self.folder.mkdir(exist_ok=True)
        self.within, self.user = list(within), []
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            self.user = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
            owned(folder, self.folder)
        self.data = self.folder / "data"
        self.call("initdb", "-A", "trust", "-U", "kd", "-E", "UTF8", "--locale=C", "--no-sync", "-D", self.data, *initdb_options)
        self.options = f"-k {self.folder} -c listen_addresses= -c max_connections=200 {options}"
        self.start()
        self.url = f"postgresql://kd@/postgres?host={self.folder}"

    def call(self, name, *args, check=True):
        command = [*self.within, *self.user, self.bin / name, *args]
        return subprocess.run(command, check=check, cwd=self.folder, stdout=subprocess.DEVNULL).returncode

    def start(self):
        self.call("pg_ctl", "-D", self.data, "-o", self.options, "-l", self.folder / "log", "-w", "start")

    def psql(self):
        # What Debian puts on the PATH is a slow wrapper.
        psql = next(pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql"), None) or shutil.which("psql")
        return psql and [psql, "-h", self.folder, "-U", "kd", "-qAt", "postgres"]

    def sql(self, text):
        command = self.psql()
        if not command:
            return None
        return subprocess.run([*command, "-c", text], check=True, capture_output=True, text=True).stdout.strip()

    def session(self):
        """A session that reads statements from its standard input."""
        return subprocess.Popen(self.psql(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def size_mib(self):
        files = (self.folder / "data/base").rglob("*")
        return sum(path.stat().st_size for path in files if path.is_file()) >> 20

    def processes(self):
        """The server and its processes."""
        first = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        children = pathlib.Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def cpu_seconds(self):
        total = 0
        for pid in self.processes():
            try:
                total += cpu_seconds(pid)
            except (FileNotFoundError, ProcessLookupError):
                pass
        return total

    def memory_mib(self):
        """Memory of all its processes, in which shared memory counts once."""
        total = 0
        for pid in self.processes():
            try:
                shares = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                total += next((int(line.split()[1]) for line in shares if line.startswith("Pss:")), 0)
            except (FileNotFoundError, ProcessLookupError):
                pass
        return total >> 10

    def dead_rows(self):
        dead = self.sql("SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables")
        return "an unknown number of" if dead is None else dead

    def stop(self):
        self.call("pg_ctl", "-D", self.data, "-m", "fast", "stop")


class Machine:
    """A home and a project folder."""

    def __init__(self, folder, name, config, url):
        self.home = folder / name
        (self.home / ".config/kd").mkdir(parents=True)
        (self.home / "work").mkdir()
        (self.home / ".config/kd/config.json").write_text(json.dumps(config))
        self.env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        if url:
            self.env["KD_BATCH_STORE"] = url

    def results_file(self):
        return self.home / "work/r.jsonl"

    def start(self, *args):
        return subprocess.Popen([program(), *args], cwd=self.home / "work", env=self.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def size_mib(self):
        files = self.home.glob(".local/share/kd/batches/*")
        return sum(path.stat().st_size for path in files) >> 20

    def questions(self, count, name="q.txt"):
        text = "".join(f"Question {name} {n}?\n" for n in range(1, count + 1))
        (self.home / "work" / name).write_text(text)
        return name

    def results(self, count, name="r.jsonl"):
        lines = (self.home / "work" / name).read_text().splitlines()
        ids = collections.Counter(json.loads(line)["id"] for line in lines)
        assert len(ids) == count and set(ids.values()) == {1}, f"{len(ids)} of {count} results"


def scripted(folder, pause_ms):
    script = folder / "ada.json"
    script.write_text(json.dumps({"runs": [[{"sleep_ms": pause_ms}, "echo"]]}))
    agent = {"backend": "scripted", "model": str(script)}
    return {"agents": {"ada": agent}, "council": {"members": ["ada"], "conclude": False}}


def workers(folder, config, url, count, concurrency):
    machines = [Machine(folder, f"worker-{n}-{time.monotonic_ns()}", config, url) for n in range(count)]
    return [one.start("worker", "-q", "--concurrency", str(concurrency)) for one in machines]


def end(processes):
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait(timeout=60)


def memory_kib(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def cpu_seconds(pid):
    """CPU time of a process and of its children that have ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def ended(process):
    """Waits for a process; returns its CPU time."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    return usage.ru_utime + usage.ru_stime


class Meter(threading.Thread):
    """Looks at processes until it is stopped: the memory of each, and how many results there are."""

    def __init__(self, processes, database, results, every):
        super().__init__(daemon=True)
        self.processes, self.database, self.results, self.every = processes, database, results, every
        self.peaks = collections.Counter()
        self.over = threading.Event()
        self.done, self.read = 0, 0

    def count(self):
        try:
            with open(self.results, "rb") as file:
                file.seek(self.read)
                while chunk := file.read(1 << 20):
                    self.read += len(chunk)
                    self.done += chunk.count(b"\n")
        except FileNotFoundError:
            pass

    def look(self):
        memory = {}
        for name, process in self.processes.items():
            try:
                memory[name] = memory_kib(process) >> 10
            except (FileNotFoundError, ProcessLookupError, StopIteration):
                continue
            self.peaks[name] = max(self.peaks[name], memory[name])
        if self.database:
            memory["postgres"] = self.database.memory_mib()
            self.peaks["postgres"] = max(self.peaks["postgres"], memory["postgres"])
        return memory

    def run(self):
        began, told = time.monotonic(), (0.0, 0)
        if self.every:
            print("  seconds  questions  per second  MiB of each process", flush=True)
        while not self.over.wait(1):
            memory = self.look()
            took = time.monotonic() - began
            if self.every and took - told[0] >= self.every:
                self.count()
                rate = (self.done - told[1]) / (took - told[0])
                told = (took, self.done)
                shown = "  ".join(f"{name} {mib}" for name, mib in memory.items())
                print(f"  {took:7.0f}  {self.done:9}  {rate:10.0f}  {shown}", flush=True)

    def stop(self):
        self.over.set()
        self.join()


def measured(args, running, database, machine, concurrency):
    """Asks the questions of a machine; returns questions a second and figures for people."""
    name = machine.questions(args.questions)
    before = {process: cpu_seconds(process.pid) for process in running}
    server = database and database.cpu_seconds()
    size = database.size_mib() if database else 0
    began = time.monotonic()
    run = machine.start("batch", "run", name, "-o", "r.jsonl", "-q", "--concurrency", str(concurrency))
    processes = {f"worker {n}": process for n, process in enumerate(running, 1)} | {"batch run": run}
    meter = Meter(processes, database, machine.results_file(), args.every)
    meter.start()
    cpu = ended(run)
    rate = args.questions / (time.monotonic() - began)
    meter.stop()
    machine.results(args.questions)
    each = 1000 / args.questions
    told = f"CPU for a question: {each * cpu:.2f} ms batch run"
    if running:
        told += f", {each * sum(cpu_seconds(process.pid) - before[process] for process in running):.2f} ms workers"
    if database:
        told += f", {each * (database.cpu_seconds() - server):.2f} ms PostgreSQL"
    told += "; most MiB: " + ", ".join(f"{name} {mib}" for name, mib in meter.peaks.items())
    after = database.size_mib() if database else machine.size_mib()
    return rate, f"{told}; database {size} to {after} MiB"


def throughput(args, folder):
    config = scripted(folder, args.pause_ms)
    total = args.concurrency * 4
    alone = Machine(folder, "alone", config, None)
    base, told = measured(args, [], None, alone, min(total, 512))
    print(f"in one process, concurrency {total}: {base:.1f} questions/s; {told}", flush=True)
    for count in args.workers:
        own = pathlib.Path(tempfile.mkdtemp(dir=folder))
        database = Postgres(own)
        running = workers(folder, config, database.url, count, max(1, total // count))
        time.sleep(2)
        runner = Machine(own, f"run-{count}", config, database.url)
        rate, told = measured(args, running, database, runner, 0)
        print(f"{count} workers, {max(1, total // count)} each: {rate:.1f} questions/s ({100 * rate / base:.0f} %); {told}", flush=True)
        end(running)
        database.stop()
        shutil.rmtree(own)


class Service(http.server.BaseHTTPRequestHandler):
    """A service that answers 429 above its rate, measured over the last second."""

    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    recent = collections.deque()
    per_second = 10
    counts = collections.Counter()
    began = None

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        now = time.monotonic()
        with self.lock:
            Service.began = Service.began or now
            while self.recent and self.recent[0] <= now - 1:
                self.recent.popleft()
            refused = len(self.recent) >= self.per_second
            self.counts["refused" if refused else "answered"] += 1
            if not refused:
                self.recent.append(now)
        if refused:
            body, kind, code = b'{"error": {"message": "too many"}}', "application/json", 429
        else:
            chunk = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
            usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
            text = "".join(f"data: {json.dumps(one)}\n\n" for one in (chunk, usage)) + "data: [DONE]\n\n"
            body, kind, code = text.encode(), "text/event-stream", 200
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if refused:
            self.send_header("retry-after", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def rate(args, folder):
    # The service's own rate is slightly above what is asked for: it measures over a second, where a network makes requests uneven.
    Service.per_second = args.per_minute // 60 + 1
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "agents": {"ada": {"backend": "svc", "max_tokens": 10}},
        "council": {"members": ["ada"], "conclude": False, "timeout": 600},
        "providers": {"svc": {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "model": "m",
                              "requests_per_minute": args.per_minute}},
    }
    database = Postgres(folder)
    running = workers(folder, config, database.url, args.workers[0], 4)
    count = args.per_minute * args.seconds // 60
    runner = Machine(folder, "run", config, database.url)
    name = runner.questions(count)
    code = runner.start("batch", "run", name, "-o", "r.jsonl", "-q", "--concurrency", "0").wait()
    took = time.monotonic() - Service.began
    assert code == 0, code
    runner.results(count)
    answered, refused = Service.counts["answered"], Service.counts["refused"]
    share, used = refused / (answered + refused), answered / took / (args.per_minute / 60)
    print(f"{args.workers[0]} workers, {args.per_minute} requests a minute: {answered} answered in {took:.1f} s, "
          f"{refused} refused ({100 * share:.2f} %), {100 * used:.1f} % of the rate used")
    end(running)
    database.stop()
    return 0 if share < 0.01 and used > 0.9 else 1


def soak(args, folder):
    config = scripted(folder, args.pause_ms)
    database = Postgres(folder)
    running = workers(folder, config, database.url, args.workers[0], args.concurrency)
    runner = Machine(folder, "run", config, database.url)
    stop, done, tick = time.monotonic() + 60 * args.minutes, 0, time.monotonic()
    last, number = 0, 0
    while time.monotonic() < stop:
        number += 1
        name = runner.questions(args.questions, f"q{number}.txt")
        began = time.monotonic()
        code = runner.start("batch", "run", name, "-o", "r.jsonl", "-q", "--concurrency", "0").wait()
        assert code == 0, code
        runner.results(args.questions)
        done += args.questions
        each = 1000 * (time.monotonic() - began) * args.workers[0] * args.concurrency / args.questions
        for path in ("r.jsonl", name):
            (runner.home / "work" / path).unlink()
        shutil.rmtree(runner.home / "work/.kd/batches", ignore_errors=True)
        now = time.monotonic()
        if now - tick >= 60 or now >= stop:
            dead, size = database.dead_rows(), database.size_mib()
            memory = " ".join(str(memory_kib(process) >> 10) for process in running)
            print(f"{done} questions, {(done - last) / (now - tick):.0f}/s, {each:.1f} ms each, workers {memory} MiB, "
                  f"database {size} MiB, {dead} dead rows", flush=True)
            tick, last = now, done
    end(running)
    database.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["throughput", "big", "rate", "soak"])
    parser.add_argument("--questions", type=int, default=None)
    parser.add_argument("--every", type=float, default=None, help="seconds from a row of `big` to the next")
    parser.add_argument("--pause-ms", type=int, default=None)
    parser.add_argument("--concurrency", type=int, default=16, help="of each worker; of four together in `throughput` and `big`")
    parser.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")], default=None)
    parser.add_argument("--per-minute", type=int, default=600)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=90)
    args = parser.parse_args()
    args.workers = args.workers or {"throughput": [4, 8], "big": [4, 8], "rate": [8], "soak": [4]}[args.what]
    if args.pause_ms is None:
        args.pause_ms = 0 if args.what in ("big", "soak") else 1000
    args.questions = args.questions or {"big": 100_000, "soak": 5000}.get(args.what, 2000)
    if args.what == "big":
        args.every = args.every or 10
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kd-fleet-", dir="/tmp"))
    os.chmod(folder, 0o755)
    try:
        return {"throughput": throughput, "big": throughput, "rate": rate, "soak": soak}[args.what](args, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
