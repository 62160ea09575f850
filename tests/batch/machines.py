"""A fleet for tests/batch/faults.py: machines with workers, a service that counts what it is asked, and a database on a network and
on disks that can fail."""

import collections
import hashlib
import http.server
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import fleet

WORKERS = 3
LEASE = 1.0


class Skip(Exception):
    """Something that a fault needs is not here."""


class Broken(Exception):
    """The fleet did what it must not do."""


def need(*programs):
    if os.geteuid() != 0:
        raise Skip("only root can do it")
    for name in programs:
        if not shutil.which(name):
            raise Skip(f"{name} is not installed")


class Service(http.server.BaseHTTPRequestHandler):
    """Answers after a pause that depends on the question. The key of a request tells which process sent it."""

    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    asked, answered = collections.Counter(), collections.defaultdict(list)
    pause_ms, poison, kill = (20, 200), None, None

    @classmethod
    def reset(cls):
        with cls.lock:
            cls.asked, cls.answered = collections.Counter(), collections.defaultdict(list)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        number = int(re.findall(r"Question (\d+)\?", body)[-1])
        who = self.headers.get("authorization", "").removeprefix("Bearer ")
        with self.lock:
            asked = self.asked
            asked[number] += 1
            answered = self.answered
        low, high = self.pause_ms
        digest = hashlib.sha256(str(number).encode()).digest()
        time.sleep((low + digest[0] * (high - low) / 255) / 1000)
        if number == Service.poison:
            Service.kill(who)
        chunk = {"choices": [{"index": 0, "delta": {"content": digest.hex()[:12]}, "finish_reason": "stop"}]}
        usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}
        text = "".join(f"data: {json.dumps(one)}\n\n" for one in (chunk, usage)) + "data: [DONE]\n\n"
        if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
        with self.lock:
            answered[number].append(who)

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # The process that asked was killed.

    def log_message(self, *_):
        pass


class Network:
    """A namespace for the server, and a pair of devices between it and this machine."""

    def __init__(self, folder):
        need("ip", "ss", "openssl", "setpriv")
        number = os.getpid() % 250
        self.name, self.device, self.inner = f"kd{os.getpid()}", f"kdo{os.getpid()}", f"kdi{os.getpid()}"
        self.here, self.there = f"10.213.{number}.1", f"10.213.{number}.2"
        self.within = ["ip", "netns", "exec", self.name]
        made = self.ip("netns", "add", self.name, check=False)
        if made or self.ip("link", "add", self.device, "type", "veth", "peer", "name", self.inner, check=False):
            raise Skip("no network namespaces or devices can be made here")
        self.ip("link", "set", self.inner, "netns", self.name)
        self.ip("addr", "add", f"{self.here}/30", "dev", self.device)
        self.ip("-n", self.name, "addr", "add", f"{self.there}/30", "dev", self.inner)
        self.ip("-n", self.name, "link", "set", "lo", "up")
        self.link("up")
        self.ip("-n", self.name, "link", "set", self.inner, "up")
        openssl = lambda *words: subprocess.run(["openssl", *words], check=True, cwd=folder, stderr=subprocess.DEVNULL)
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority")
        openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
        (folder / "san").write_text(f"subjectAltName=IP:{self.there}")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", "server.pem", "-days", "2", "-extfile", "san")
        fleet.owned(folder, folder / "server.key", folder / "server.pem")
        os.chmod(folder / "server.key", 0o600)
        self.options = (f"-c listen_addresses={self.there} -c ssl=on -c ssl_key_file={folder}/server.key "
                        f"-c ssl_cert_file={folder}/server.pem")
        self.url = f"postgresql://kd@{self.there}/postgres?sslrootcert={folder}/ca.pem"

    def ip(self, *words, check=True):
        return subprocess.run(["ip", *words], check=check, stderr=None if check else subprocess.DEVNULL).returncode

    def link(self, state):
        self.ip("link", "set", self.device, state)

    def deaf(self, is_deaf):
        """Sends packets to an address that nobody has, in both directions."""
        for at, device, far in ([], self.device, self.there), (["-n", self.name], self.inner, self.here):
            if is_deaf:
                self.ip(*at, "neigh", "replace", far, "lladdr", "02:00:00:00:00:99", "dev", device, "nud", "permanent")
            else:
                self.ip(*at, "neigh", "del", far, "dev", device)

    def forget(self):
        """Ends the connections at the server's side."""
        subprocess.run([*self.within, "ss", "-K", "dst", self.here], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def remove(self):
        self.ip("netns", "del", self.name, check=False)
        self.ip("link", "del", self.device, check=False)


class Disk:
    """A small disk of its own on a folder, which can be filled."""

    def __init__(self, folder, mib):
        need("mount")
        self.folder = folder
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=755", "none", folder], stderr=subprocess.DEVNULL).returncode:
            raise Skip("no disk can be mounted here")

    def fill(self):
        with open(self.folder / "ballast", "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass

    def free(self):
        (self.folder / "ballast").unlink(missing_ok=True)

    def remove(self):
        subprocess.run(["umount", "-l", self.folder], check=False)


class Process:
    """A start of `kd`, with a name that the service sees."""

    def __init__(self, site, machine, args, url, env):
        site.starts += 1
        self.who, self.machine, self.killed, self.env = f"{machine.home.name}.{site.starts}", machine, False, env
        self.log = machine.home / "log"
        env = machine.env | {"KD_BATCH_STORE": url, "SVC_KEY": self.who} | env
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen([fleet.program(), *args], cwd=machine.home / "work", env=env,
                                          stdout=subprocess.DEVNULL, stderr=log)

    def kill(self):
        self.killed = True
        self.child.kill()
        self.child.wait()

    def said(self):
        return self.log.read_text()[-2000:]


class Site:
    """A fleet: three machines with a worker, and one that runs batches. Each seed has a schema of its own."""

    def __init__(self, folder, fault):
        self.folder, self.fault, self.starts = folder, fault, 0
        # A transaction that is held is not a fault of a worker: a slow machine must not make it one.
        self.lease = "10s" if fault == "snapshot" else f"{LEASE:g}s"
        self.network = Network(folder) if fault in ("cut", "silent") else None
        self.disk, initdb = None, []
        options = ""
        if fault == "disk":
            need("mount")
            (folder / "pg").mkdir()
            self.disk = Disk(folder / "pg", 96)
            initdb, options = ["--wal-segsize=1"], "-c min_wal_size=2MB -c max_wal_size=8MB"
        if self.network:
            options = self.network.options
        self.database = fleet.Postgres(folder, options, self.network.within if self.network else [], initdb)
        if self.network:
            with open(self.database.data / "pg_hba.conf", "a") as file:
                file.write(f"hostssl all kd {self.network.here}/32 trust\n")
            self.database.call("pg_ctl", "-D", self.database.data, "reload")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        agent = {"backend": "svc", "max_tokens": 10}
        config = {
            "agents": {"ada": agent},
            "council": {"members": ["ada"], "conclude": False},
            "providers": {"svc": {"base_url": f"http://127.0.0.1:{self.server.server_port}/v1", "model": "m", "key_env": "SVC_KEY",
                                  "prices": {"m": {"input": 1.0, "output": 5.0}}}},
        }
        self.machines = [fleet.Machine(folder, f"worker{n}", config, None) for n in range(WORKERS)]
        self.runner = fleet.Machine(folder, "runner", config, None)
        if fault == "results-disk":
            self.disk = Disk(self.runner.home / "work", 4)
        if fault == "worker-disk":
            self.disk = Disk(self.machines[0].home / "work", 1)
        self.workers, self.running = [], None

    def begin(self, seed, count):
        self.schema, self.count = f"s{seed}", count
        self.database.sql(f"CREATE SCHEMA {self.schema}")
        for path in (self.runner.home / "work").iterdir():
            if path.name != "ballast":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        text = "".join(f"Question {n}?\n" for n in range(1, count + 1))
        (self.runner.home / "work/q.txt").write_text(text)
        for machine in [self.runner, *self.machines]:
            (machine.home / "log").unlink(missing_ok=True)
        Service.reset()
        self.workers = [self.worker(n) for n in range(WORKERS)]
        self.run()

    def url(self, over_network):
        base = self.network.url if over_network and self.network else self.database.url
        return f"{base}&options=-csearch_path%3D{self.schema}"

    def worker(self, at, **env):
        # The last worker is never cut off.
        return Process(self, self.machines[at], ["worker", "--lease", self.lease, "--concurrency", "4"], self.url(at < WORKERS - 1), env)

    def run(self, asks=0, over_network=False):
        args = ["batch", "run", "q.txt", "-o", "r.jsonl", "--lease", self.lease, "--pause", "1s", "--concurrency", str(asks),
                "--attempts", "3" if self.fault == "poison" else "20"]
        self.asks, self.over_network = asks, over_network
        self.running = Process(self, self.runner, args, self.url(over_network), {})

    def again(self):
        self.run(self.asks, self.over_network)

    def restart(self, at):
        self.workers[at].kill()
        self.workers[at] = self.worker(at, **self.workers[at].env)

    def wait(self, may_end=()):
        """Waits for the batch. Processes that were killed, or may end, are started again."""
        deadline, ends = time.monotonic() + 300, 0
        while True:
            if time.monotonic() > deadline:
                raise Broken(f"no end after 300 s: {self.sql('SELECT state, count(*) FROM kd_jobs GROUP BY 1')}\n{self.running.said()}")
            for at, worker in enumerate(self.workers):
                if worker.child.poll() is None:
                    continue
                if not worker.killed and "workers" not in may_end:
                    raise Broken(f"{worker.who} ended with {worker.child.returncode}: {worker.said()}")
                ends += not worker.killed
                self.workers[at] = self.worker(at, **worker.env)
            code = self.running.child.poll()
            if code is None:
                time.sleep(0.02)
                continue
            if code == (5 if self.fault == "poison" else 0):
                return ends
            if not self.running.killed and "run" not in may_end:
                raise Broken(f"`kd batch run` ended with {code}: {self.running.said()}")
            ends += not self.running.killed
            if self.fault == "results-disk" and not self.running.killed and "No space left" not in self.running.said():
                raise Broken(f"an error that does not name the disk: {self.running.said()}")
            time.sleep(0.3)
            self.again()

    def sql(self, text):
        return self.database.sql(f"SET search_path TO {self.schema}; {text}")

    def end(self):
        """Ends the workers, so that nothing is open any more, and returns what the batch says of itself."""
        for worker in self.workers:
            worker.child.send_signal(signal.SIGTERM)
        for worker in self.workers:
            try:
                worker.child.wait(timeout=30)
            except subprocess.TimeoutExpired:
                worker.kill()
                raise Broken(f"{worker.who} does not end: {worker.said()}") from None
        left = [path.name for machine in self.machines for path in (machine.home / "work/.kd/batches").glob("*")]
        if left:
            raise Broken(f"threads are left on the disks of workers: {left}")
        status = subprocess.run([fleet.program(), "batch", "status", "--json"], cwd=self.runner.home / "work", text=True,
                                env=self.runner.env | {"KD_BATCH_STORE": self.url(False)}, capture_output=True, check=True)
        return json.loads(status.stdout)

    def drop(self):
        for process in [*self.workers, self.running]:
            if process and process.child.poll() is None:
                process.child.send_signal(signal.SIGCONT)
                process.kill()

    def close(self):
        self.drop()
        self.server.shutdown()
        if self.disk:
            self.disk.free()
        self.database.call("pg_ctl", "-D", self.database.data, "-m", "immediate", "stop", check=False)
        for one in (self.disk, self.network):
            if one:
                one.remove()

    def lines(self):
        text = (self.runner.home / "work/r.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]
