#!/usr/bin/env python3
"""The chat screen of the real `kd` in a pseudo-terminal, beside a minimal screen of our own in the same run.

    cargo build --release -p kd -p kd-fake
    python3 benches/chat-screen.py target/release/kd [paint] [idle] [stream] [http]

For threads of 10, 2,000 and 10,000 messages: the time from exec to the first paint of the newest message. Then, with the
largest thread open: processor time, memory and bytes while nothing happens, and the same with the echo of keys while
eight members stream a hundred pieces a second each. The minimal screen lists the folder, paints the newest messages,
streams the same pieces by itself and repaints thirty times a second: no Markdown, no layout, nothing kept on disk.

`http`: the memory of `kd` alone, with the eight members at a model service on loopback (`kd-fake`, beside `kd`), for each
wire format: when the thread is open, the most while the eight prompts are sent, and after 20 s of streaming.
"""
import fcntl, json, os, pathlib, pty, select, shutil, signal, statistics, struct, subprocess, sys, tempfile, termios, time

KD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/kd")
PARTS = sys.argv[2:] or ["paint", "idle", "stream", "http"]
ROWS, COLUMNS = 40, 120
SIZES = (10, 2_000, 10_000)
ROUNDS = 9
SECONDS = 15
IDLE_SECONDS = 30
# Capitals that stand in no control sequence and in no word on either screen.
KEYS = "QZXWVYU"
MINIMAL = r"""
import os, select, sys, time, tty
tty.setraw(0)
folder, rows, cols = sys.argv[1], 40, 120
names = sorted((n for n in os.listdir(folder) if n.endswith('.md')), key=lambda n: int(n.split('-')[0]))[-12:]
log = [line[:cols] for n in names for line in open(os.path.join(folder, n)).read().splitlines()]
words, texts, begun, keys, drawn, n = '', [''] * 8, 0, '', 0, 0
def paint():
    lines = log + ['m%d: %s' % (i + 1, t[-100:]) for i, t in enumerate(texts) if t]
    body = ''.join('\x1b[%d;1H%s\x1b[K' % (y + 1, l) for y, l in enumerate(lines[-rows + 2:]))
    os.write(1, ('\x1b[?2026h' + body + '\x1b[%d;1H> %s\x1b[K\x1b[?2026l' % (rows, keys)).encode())
paint()
while True:
    wait = None if not begun else max(0, 0.01 - (time.time() - begun - n * 0.01))
    if select.select([0], [], [], wait)[0]:
        for c in os.read(0, 64).decode():
            if c == '\r': begun, keys = time.time(), ''
            elif c == '\x7f': keys = keys[:-1]
            elif c == '\x03': sys.exit()
            else: keys += c
        paint()
    while begun and time.time() - begun > n * 0.01:
        texts = [t + 'word%d ' % (n % 97) for t in texts]
        n += 1
    if begun and time.time() - drawn > 0.033:
        drawn = time.time()
        paint()
"""


class Screen:
    """A program in a terminal of its own."""

    def __init__(self, argv, cwd, env):
        self.begun = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(argv[0], argv, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.seen = bytearray()
        self.bytes = 0

    def read(self, wait):
        if select.select([self.fd], [], [], wait)[0]:
            try:
                piece = os.read(self.fd, 1 << 16)
            except OSError:
                return False
            self.seen += piece
            self.bytes += len(piece)
        return True

    def until(self, words, limit=60):
        """When these words came."""
        end = time.perf_counter() + limit
        while words not in self.seen:
            if time.perf_counter() > end or not self.read(0.5):
                raise SystemExit(f"{words} never came: {bytes(self.seen[-2000:])}")
        return time.perf_counter()

    def cpu(self):
        """Seconds of processor time, of threads that have ended, too."""
        fields = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, what):
        """Megabytes that are resident: all, or those that are not pages of files."""
        for line in open(f"/proc/{self.pid}/status"):
            if line.startswith(what):
                return int(line.split()[1]) / 1024

    def drop(self, seconds):
        """Reads and forgets for a while."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)
        del self.seen[:]

    def echo(self, key):
        """Milliseconds from a key to its letter on the screen."""
        del self.seen[:]
        begun = time.perf_counter()
        os.write(self.fd, key.encode())
        while key.encode() not in self.seen and time.perf_counter() < begun + 5:
            self.read(0.5)
        return (time.perf_counter() - begun) * 1000

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        end = time.perf_counter() + 10
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.perf_counter() > end:
                os.kill(self.pid, signal.SIGKILL)
            self.read(0.05)
        os.close(self.fd)


def home(messages, provider=None):
    """A home whose current thread holds so many messages, and eight members that stream: scripted ones, or the models of
    a provider."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kd-screen-"))
    work = folder / "work"
    (work / ".kd").mkdir(parents=True)
    members = [f"m{i}" for i in range(1, 9)]
    pieces = [{"text": f"word{n % 97} "} if n % 14 else {"text": "\n\n"} for n in range(100 * (SECONDS + 8))]
    script = {"runs": [[act for piece in pieces for act in (piece, {"sleep_ms": 10})]]}
    (folder / "script.json").write_text(json.dumps(script))
    agents = {m: {"backend": "scripted", "model": str(folder / "script.json")} for m in members}
    config = {"council": {"members": members, "auto_messages": 0}, "agents": agents}
    if provider:
        config["providers"] = {"fake": provider}
        config["agents"] = {m: {"backend": "fake", "model": "any"} for m in members}
    (folder / ".config" / "kd").mkdir(parents=True)
    (folder / ".config" / "kd" / "config.json").write_text(json.dumps(config))
    env = {"HOME": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]}
    screen = Screen([KD, "chat", "--new"], work, env)
    screen.until(b"your message")
    screen.end()
    thread = next((work / ".kd" / "branches").glob("*/threads/*"))
    body = "Some **words** of an answer, as long as answers are. " * 12
    for n in range(1, messages + 1):
        sender = "king" if n % 9 == 1 else f"m{n % 8 + 1}"
        to = "all" if sender == "king" else "king"
        status = "" if sender == "king" else "status: complete\n"
        text = f"---\nfrom: {sender}\nto: {to}\ntimestamp: 2026-01-01T00:00:00Z\n{status}---\n\n{body}\n\nend{n}\n"
        (thread / f"{n:04}-{sender}.md").write_text(text)
    # Whoever writes so many messages leaves the index behind; here `kd` makes it once, by reading.
    subprocess.run([KD, "council", "show"], cwd=work, env=env, stdout=subprocess.DEVNULL, check=True)
    kd = lambda: Screen([KD, "chat"], work, env)
    minimal = lambda: Screen([sys.executable, "-S", "-E", "-c", MINIMAL, str(thread)], work, env)
    return folder, (kd, minimal)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def row(name, ours, theirs, unit, digits=1):
    ratio = f"{ours / theirs:6.2f} x" if theirs else "     –"
    print(f"{name:<44} {ours:9.{digits}f} {theirs:9.{digits}f} {unit:<5} {ratio}", flush=True)


def paint():
    for messages in SIZES:
        folder, starts = home(messages)
        times = ([], [])
        for _ in range(ROUNDS):
            for start, took in zip(starts, times):
                screen = start()
                took.append((screen.until(f"end{messages}".encode()) - screen.begun) * 1000)
                screen.end()
        row(f"first paint, {messages:,} messages, median", *map(statistics.median, times), "ms")
        row(f"first paint, {messages:,} messages, best", *map(min, times), "ms")
        shutil.rmtree(folder)


def opened():
    """Both screens with the largest thread, at rest."""
    folder, starts = home(SIZES[-1])
    screens = [start() for start in starts]
    for screen in screens:
        screen.until(f"end{SIZES[-1]}".encode())
        screen.drop(3)
    return folder, screens


def idle():
    folder, screens = opened()
    for screen in screens:
        cpu, sent = screen.cpu(), screen.bytes
        screen.drop(IDLE_SECONDS)
        screen.idle = (100 * (screen.cpu() - cpu) / IDLE_SECONDS, screen.bytes - sent)
    row("idle, share of a core", *(s.idle[0] for s in screens), "%", 3)
    row("idle, bytes to the terminal", *(s.idle[1] for s in screens), "bytes", 0)
    row("memory at rest", *(s.memory("VmRSS") for s in screens), "MB")
    row("  of it not of files", *(s.memory("RssAnon") for s in screens), "MB")
    for screen in screens:
        screen.end()
    shutil.rmtree(folder)


def stream():
    folder, screens = opened()
    echoes = ([], [])
    shares, rates, memories, highest, firsts = [], [], [], [], []
    for screen, took in zip(screens, echoes):
        begun = time.perf_counter()
        os.write(screen.fd, b"go\r")
        firsts.append((screen.until(b"word1") - begun) * 1000)
        screen.drop(1.5)
        cpu, sent, begun = screen.cpu(), screen.bytes, time.perf_counter()
        while time.perf_counter() < begun + SECONDS:
            took.append(screen.echo(KEYS[len(took) % len(KEYS)]))
            screen.drop(0.02)
            os.write(screen.fd, b"\x7f")
            screen.drop(0.02)
        wall = time.perf_counter() - begun
        shares.append(100 * (screen.cpu() - cpu) / wall)
        rates.append((screen.bytes - sent) / wall / 1000)
        memories.append(screen.memory("VmRSS"))
        highest.append(screen.memory("VmHWM"))
        screen.end()
    print(f"eight members, a hundred pieces a second each, {len(echoes[0])} keys:")
    row("Enter to the first piece", *firsts, "ms")
    for name, share in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0)):
        row(f"key to echo, {name}", *(percentile(e, share) for e in echoes), "ms", 2)
    row("share of a core (members and files included)", *shares, "%")
    row("to the terminal", *rates, "kB/s")
    row("memory", *memories, "MB")
    row("  the most since the start", *highest, "MB")
    shutil.rmtree(folder)


def http():
    """The memory while eight members of a service are asked, by wire format."""
    for wire in ("openai", "anthropic", "gemini"):
        fake = subprocess.Popen([os.path.join(os.path.dirname(KD), "kd-fake"), wire, "100000", "10000"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        url = fake.stdout.readline().strip()
        folder, (kd, _) = home(SIZES[-1], {"wire": wire, "base_url": url})
        screen = kd()
        screen.until(f"end{SIZES[-1]}".encode())
        screen.drop(3)
        rest = [screen.memory("VmRSS"), screen.memory("RssAnon")]
        os.write(screen.fd, b"go\r")
        screen.drop(20)
        after = [screen.memory("VmRSS"), screen.memory("RssAnon")]
        print(f"{wire}, MB at rest (not of files), most, after 20 s of streaming (not of files): {rest[0]:.1f} ({rest[1]:.1f}), "
              f"{screen.memory('VmHWM'):.1f}, {after[0]:.1f} ({after[1]:.1f})", flush=True)
        screen.end()
        fake.stdin.close()
        fake.wait()
        shutil.rmtree(folder)


def main():
    print(f"{'':<44} {'kd':>9} {'minimal':>9}        kd / minimal")
    for part in PARTS:
        {"paint": paint, "idle": idle, "stream": stream, "http": http}[part]()


if __name__ == "__main__":
    main()
