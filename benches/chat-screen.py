#!/usr/bin/env python3
"""The chat screen of the real `kd`, driven in a pseudo-terminal, beside a program that only echoes keys.

    cargo build --release -p kd
    python3 benches/chat-screen.py target/release/kd

Prints, for threads of 10, 2,000 and 10,000 messages, the time to the first paint of the newest message; and, for the
last one, while eight members stream a hundred pieces a second each: key echo, processor time, memory and bytes.
"""
import fcntl, json, os, pathlib, pty, select, signal, statistics, struct, subprocess, sys, tempfile, termios, time

KD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/kd")
ROWS, COLUMNS = 40, 120
SECONDS = 10
# Capitals that stand in no control sequence and in no word on the screen.
KEYS = "QZXWVYU"
ECHO = "import os,tty\ntty.setraw(0)\nos.write(1,b'ready')\nwhile 1: os.write(1,os.read(0,64))"


class Screen:
    def __init__(self, argv, cwd, env):
        self.begun = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.seen = bytearray()

    def read(self, wait):
        if select.select([self.fd], [], [], wait)[0]:
            try:
                self.seen += os.read(self.fd, 1 << 16)
            except OSError:
                return False
        return True

    def until(self, words, limit=30):
        end = time.perf_counter() + limit
        while words not in self.seen:
            assert time.perf_counter() < end and self.read(0.5) is not None, (words, bytes(self.seen[-2000:]))
        return time.perf_counter()

    def cpu(self):
        fields = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        for line in open(f"/proc/{self.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024

    def idle(self, seconds):
        """Drops what comes for a while; how many bytes that were."""
        del self.seen[:]
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)
        return len(self.seen)

    def echo(self, key):
        del self.seen[:]
        begun = time.perf_counter()
        os.write(self.fd, key.encode())
        while key.encode() not in self.seen and time.perf_counter() < begun + 5:
            self.read(0.5)
        return (time.perf_counter() - begun) * 1000, len(self.seen)

    def kill(self):
        os.kill(self.pid, signal.SIGTERM)
        end = time.perf_counter() + 5
        while self.read(0.2) and time.perf_counter() < end and os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            pass
        os.close(self.fd)


def home(messages):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kd-screen-"))
    work = folder / "work"
    (work / ".kd").mkdir(parents=True)
    members = [f"m{i}" for i in range(1, 9)]
    words = [[{"text": f"word{n % 97} "} if n % 14 else {"text": "\n\n"}, {"sleep_ms": 10}] for n in range(100 * (SECONDS + 5))]
    script = {"runs": [[act for pair in words for act in pair]]}
    (folder / "script.json").write_text(json.dumps(script))
    agents = {m: {"backend": "scripted", "model": str(folder / "script.json")} for m in members}
    config = {"council": {"members": members, "auto_messages": 0}, "agents": agents}
    (work / ".kd" / "config.local.json").write_text(json.dumps(config))
    env = {"HOME": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]}
    screen = Screen([KD, "chat", "--new"], work, env)
    screen.until(b"your message")
    screen.kill()
    thread = next((work / ".kd" / "branches").glob("*/threads/*"))
    body = "Some **words** of an answer, as long as answers are. " * 12
    for n in range(1, messages + 1):
        sender = "king" if n % 9 == 1 else f"m{n % 8 + 1}"
        to = "all" if sender == "king" else "king"
        status = "" if sender == "king" else "status: complete\n"
        text = f"---\nfrom: {sender}\nto: {to}\ntimestamp: 2026-01-01T00:00:00Z\n{status}---\n\n{body}\n\nend{n}\n"
        (thread / f"{n:04}-{sender}.md").write_text(text)
    subprocess.run([KD, "council", "show"], cwd=work, env=env, stdout=subprocess.DEVNULL, check=False)
    return work, env


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    paints = {}
    for messages in (10, 2000, 10000):
        work, env = home(messages)
        times = []
        for _ in range(7):
            screen = Screen([KD, "chat"], work, env)
            times.append((screen.until(f"end{messages}".encode()) - screen.begun) * 1000)
            screen.kill()
        paints[messages] = min(times)
        print(f"first paint, {messages:>6} messages: best {min(times):6.1f} ms, median {statistics.median(times):6.1f} ms")
    print(f"  10,000 beside 10: {paints[10000] / paints[10]:.2f} x")

    floor = Screen([sys.executable, "-c", ECHO], "/", dict(os.environ))
    floor.until(b"ready")
    screen = Screen([KD, "chat"], work, env)
    screen.until(b"end10000")
    screen.idle(3)
    cpu, begun = screen.cpu(), time.perf_counter()
    quiet = screen.idle(5)
    print(f"idle: {100 * (screen.cpu() - cpu) / (time.perf_counter() - begun):.2f} % of a core, {quiet} bytes")
    print(f"memory, 10,000 messages open: {screen.memory():.1f} MB")
    os.write(screen.fd, b"go\r")
    screen.idle(1.5)
    cpu, begun, sent = screen.cpu(), time.perf_counter(), 0
    ours, theirs = [], []
    while time.perf_counter() < begun + SECONDS:
        key = KEYS[len(ours) % len(KEYS)]
        took, bytes_ = screen.echo(key)
        ours.append(took)
        sent += bytes_ + screen.idle(0.05)
        os.write(screen.fd, b"\x7f")
        theirs.append(floor.echo(key)[0])
        sent += screen.idle(0.03)
    wall = time.perf_counter() - begun
    share = (screen.cpu() - cpu) / wall
    print(f"8 members, 100 pieces a second each, {len(ours)} keys:")
    for name, values in (("kd", ours), ("only echoes", theirs)):
        print(f"  key echo, {name:<12} p50 {percentile(values, .5):6.2f} ms, p99 {percentile(values, .99):6.2f} ms, worst {max(values):6.2f} ms")
    print(f"  processor: {100 * share:.1f} % of a core (members and files included)")
    print(f"  to the terminal: {sent / wall / 1000:.1f} kB/s")
    print(f"  memory: {screen.memory():.1f} MB")
    screen.kill()
    floor.kill()


main()
