"""What the checks stand on: a home with scripted members, `kd` in tmux and in a raw pseudo-terminal, and the result of each line."""
import contextlib, fcntl, json, os, pathlib, pty, re, select, shutil, signal, struct, subprocess, tempfile, termios, threading, time

PATIENCE = 30
LOOK = 0.05
ESC = "\x1b"
CHECKS = {}


class Failed(Exception):
    """A condition that never came true."""


class Skipped(Exception):
    """A check that cannot be made here."""


def line(number, title):
    """Registers the check of a line."""
    def add(check):
        CHECKS[number] = (title, check)
        return check
    return add


class Record:
    """What the check of a line saw: its conditions and its captures."""

    def __init__(self, kd, folder):
        self.kd, self.folder = kd, folder
        self.said, self.captures, self.skipped, self.good = [], [], [], True

    def check(self, what, holds, why=""):
        self.good &= bool(holds)
        self.said.append(("passed" if holds else "FAILED") + "  " + what + ("" if holds or not why else f"\n        {why}"))
        return holds

    def equal(self, what, got, wanted):
        return self.check(what, got == wanted, f"got {got!r}, not {wanted!r}")

    def has(self, what, text, *words):
        missing = [word for word in words if word not in text]
        return self.check(what, not missing, f"missing {missing!r} in:\n{text}")

    def keep(self, title, text):
        self.captures.append(f"── {title} ──\n{text.rstrip()}\n")

    def skip(self, what, why):
        self.skipped.append(f"SKIPPED {what}: {why}")
        self.said.append(self.skipped[-1])

    def text(self, title):
        return "\n".join([title, *self.said, "", *self.captures])


def wait(what, condition, seconds=PATIENCE):
    """Looks again until the condition holds, and returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(what() if callable(what) else f"never: {what}")
        time.sleep(LOOK)


class Home:
    """An empty home, with scripted members."""

    def __init__(self, record, scripts=None, **config):
        self.kd, self.path = record.kd, pathlib.Path(tempfile.mkdtemp(prefix="home-", dir=record.folder))
        self.work = self.path / "work"
        self.config = self.path / ".config/kd/config.json"
        for folder in (self.work, self.config.parent, self.path / "bin"):
            folder.mkdir(parents=True)
        scripts = scripts if scripts is not None else {"ann": [["Ann's answer."]], "bob": [["Bob's answer."]]}
        agents = {name: self.script(name, *runs) for name, runs in scripts.items()}
        council = {"members": list(scripts), "auto_messages": 0, **config.pop("council", {})}
        self.settings = {"council": council, "agents": {**agents, **config.pop("agents", {})}, **config}
        self.save()

    def save(self):
        self.config.write_text(json.dumps(self.settings, indent=1))

    def script(self, name, *runs):
        """The settings of a member that plays these answers; a number waits for so many milliseconds."""
        def act(step):
            match step:
                case str(): return {"text": step}
                case int(): return {"sleep_ms": step}
            return step
        file = self.path / f"{name}.json"
        file.write_text(json.dumps({"runs": [[act(step) for step in run] for run in runs]}))
        return {"backend": "scripted", "model": str(file)}

    def program(self, name, text):
        """A program in front of the search path."""
        file = self.path / "bin" / name
        file.write_text("#!/bin/sh\n" + text)
        file.chmod(0o755)
        return file

    def env(self, **more):
        env = {"HOME": str(self.path), "PATH": f"{self.path}/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC",
               "TERM": "xterm-256color", "KD_COUNCIL_SANDBOX": "false", "SHELL": "/bin/sh"}
        env.update(more)
        return {name: value for name, value in env.items() if value is not None}

    def run(self, *args, given=None, **more):
        """Runs a command line; returns its exit code, standard output and standard error."""
        done = subprocess.run([self.kd, *args], cwd=self.work, env=self.env(**more), input=given, text=True, timeout=120,
                              stdin=None if given is not None else subprocess.DEVNULL, capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def threads(self):
        return sorted(self.work.glob(".kd/branches/*/threads/council-*"))

    def messages(self, thread=-1):
        """Sender and text of every message of a thread."""
        threads = self.threads()
        if not threads:
            return []
        found = []
        for file in sorted(threads[thread].glob("[0-9]*.md")):
            head, _, body = file.read_text().partition("\n---\n")
            found.append((re.search(r"^from: (.*)$", head, re.M)[1], body.strip("\n")))
        return found

    def says(self, who="king"):
        return [body for sender, body in self.messages() if sender == who]


class Tmux:
    """A command line in tmux, with a server of its own for the whole run."""
    socket = None
    count = 0

    @classmethod
    def call(cls, *args, **more):
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent", "TERM": "xterm-256color"}
        return subprocess.run(["tmux", "-S", cls.socket, "-f", "/dev/null", *args], env=env, text=True, capture_output=True, **more)

    def __init__(self, home, *args, columns=80, rows=24, options=(), command=None, **more):
        Tmux.count += 1
        self.name, self.home = f"s{Tmux.count}", home
        self.columns, self.rows = columns, rows
        env = home.env(**more)
        env.pop("TERM")
        if "TERM" in more:
            env["TERM"] = more["TERM"]
        words = " ".join(f"'{word}'" for word in (home.kd, *(args or ("chat",))))
        command = command or f"stty -a >{home.path}/before; {words}; echo \"exit code $?\"; stty -a >{home.path}/after; exec cat"
        pairs = [f"{name}={value}" for name, value in env.items()]
        # tmux passes on what its own server had; the program gets only what a home has, and tmux's own variables.
        inner = ["env", "-i", *pairs]
        script = home.path / f"start-{self.name}"
        for name in ("before", "after"):
            (home.path / name).unlink(missing_ok=True)
        script.write_text("exec " + " ".join(map(quoted, inner)) + (" " if "TERM" in more else ' TERM="$TERM" ')
                          + 'TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" TERM_PROGRAM="$TERM_PROGRAM" TERM_PROGRAM_VERSION="$TERM_PROGRAM_VERSION" '
                          + "sh -c " + quoted(command))
        self.call("new-session", "-d", "-s", self.name, "-x", str(columns), "-y", str(rows), "-c", str(home.work), f"sh {script}")
        for name, value in options:
            self.call("set-option", "-t", self.name, name, value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("kill-session", "-t", self.name)

    def types(self, text):
        self.call("send-keys", "-t", self.name, "-l", text)

    def keys(self, *names):
        self.call("send-keys", "-t", self.name, *names)

    def screen(self, history=False):
        return self.call("capture-pane", "-p", "-t", self.name, *(["-S", "-"] if history else [])).stdout

    def colours(self):
        return self.call("capture-pane", "-p", "-e", "-t", self.name).stdout

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.call("resize-window", "-t", self.name, "-x", str(columns), "-y", str(rows))

    def shows(self, *words, gone=(), seconds=PATIENCE):
        """Waits for these words, and for the absence of others; returns the screen."""
        end = time.monotonic() + seconds
        while True:
            screen = self.screen()
            missing = [word for word in words if word not in screen]
            left = [word for word in gone if word in screen]
            if not missing and not left:
                return screen
            if time.monotonic() > end:
                raise Failed(f"missing {missing!r}, still there {left!r} on:\n{screen}")
            time.sleep(LOOK)

    def asks(self, text, *words, **more):
        self.types(text)
        self.keys("Enter")
        return self.shows(*words, **more) if words else None

    def leaves(self, record=None, what="leaving restores the modes of the terminal", code=0):
        """Leaves by /quit; checks the exit code and the modes."""
        self.keys("C-c")
        self.types("/quit")
        self.keys("Enter")
        screen = self.shows("exit code")
        if record:
            record.has(f"{what}: exit code {code}", screen, f"exit code {code}", "go on: kd chat council-")
            wait("the modes after leaving", lambda: (self.home.path / "after").exists() and (self.home.path / "after").read_text())
            size = re.compile(r"rows \d+; columns \d+;")
            before, after = (size.sub("", (self.home.path / name).read_text()) for name in ("before", "after"))
            record.equal(f"{what}: stty -a as before", after, before)
        return screen


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


class Pty:
    """A command line in a pseudo-terminal that answers what it is asked, and keeps every byte."""
    # What a capable terminal answers: background, synchronized updates, keyboard protocol, and what it is.
    ANSWERS = {b"\x1b]11;?\x1b\\": b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\", b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[?u": b"\x1b[?0u",
               b"\x1b[c": b"\x1b[?62;4c"}

    def __init__(self, home, *args, columns=80, rows=24, answers=None, argv=None, **more):
        self.answers = dict(self.ANSWERS) if answers is None else answers
        self.seen, self.code, self.lock = bytearray(), None, threading.Lock()
        self.hung = False
        argv = argv or [home.kd, *(args or ("chat",))]
        master, slave = os.openpty()
        self.fd = master
        self.resize(columns, rows)
        self.slave = slave
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(argv, cwd=home.work, env=home.env(**more), stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.pid = self.process.pid
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.thread.join()
        if not self.hung:
            os.close(self.fd)
            os.close(self.slave)

    def listen(self):
        while not self.hung:
            try:
                if not select.select([self.fd], [], [], 0.2)[0]:
                    if self.process.poll() is not None:
                        return
                    continue
                piece = os.read(self.fd, 1 << 16)
            except (OSError, ValueError):
                return
            with self.lock:
                self.seen += piece
                # Each question is answered once.
                for question in [q for q in self.answers if q in self.seen]:
                    with contextlib.suppress(OSError):
                        os.write(self.fd, self.answers.pop(question))

    def bytes(self):
        with self.lock:
            return bytes(self.seen)

    def text(self):
        return self.bytes().decode("utf-8", "replace")

    def send(self, data):
        os.write(self.fd, data.encode() if isinstance(data, str) else data)

    def hang_up(self):
        """Closes the terminal under the program."""
        self.hung = True
        self.thread.join()
        os.close(self.fd)
        os.close(self.slave)

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def shows(self, *words, seconds=PATIENCE, since=0):
        """Waits until these words were written."""
        def missing():
            return [word for word in words if word not in self.text()[since:]]
        return wait(lambda: f"missing {missing()!r} in:\n{readable(self.bytes()[-4000:])}", lambda: not missing(), seconds)

    def answered(self):
        """Waits until the title said that somebody answers, and that nobody does any more."""
        wait(lambda: f"no end in:\n{readable(self.bytes()[-2000:])}", lambda: -1 < self.text().rfind("]2;… ") < self.text().rfind("]2;kd "))

    def ends(self, seconds=PATIENCE):
        """Waits for its end; returns the exit code, the negative number of a signal."""
        self.code = self.process.wait(seconds)
        time.sleep(2 * LOOK)
        return self.code

    def modes(self):
        return termios.tcgetattr(self.slave)


def readable(data):
    """Bytes with every control character as a word."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    names = {"\x1b": "␛", "\x07": "␇", "\r": "␍"}
    return "".join(names.get(c, c if c == "\n" or c >= " " and c != "\x7f" else f"<{ord(c):02x}>") for c in text)


def modes(data):
    """The modes that a terminal is in after these bytes: those of DEC that are on, the depth of keyboard flags, saved titles."""
    on, keyboard, titles = set(), 0, 0
    for kind in re.findall(rb"\x1b\[(\?[0-9;]+[hl]|>[0-9]*u|<[0-9]*u|2[23];[0-9]t)", data):
        kind = kind.decode()
        if kind[0] == "?":
            for number in kind[1:-1].split(";"):
                (on.add if kind[-1] == "h" else on.discard)(int(number))
        elif kind[-1] == "t":
            titles += 1 if kind.startswith("22") else -1
        else:
            keyboard += 1 if kind[0] == ">" else -1
    return on, keyboard, titles


def sequences(data, pattern):
    return re.findall(pattern, data.decode("utf-8", "replace"), re.S)


def has(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
