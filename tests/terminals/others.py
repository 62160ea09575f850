"""Line 24: other terminals. What is not installed is skipped, and said."""
import base64, getpass, json, os, pathlib, re, shutil, socket, struct, subprocess, tempfile, time, zlib
from stage import ESC, Failed, Home, Pty, Tmux, has, line, modes, quoted, readable, wait

HERE = pathlib.Path(__file__).resolve().parent
ANSWER = "".join(f"Line {n} of the answer.\n\n" for n in range(1, 41))
XTERM_JS = "@xterm/headless@6.0.0"


def home_for(t):
    return Home(t, {"ann": [[step for n in range(1, 41) for step in (f"Line {n} of the answer.\n\n", 75)]]})


def script(home, **more):
    """The command line inside the terminal: it says what the terminal was like before, and after."""
    file = home.path / "inside"
    env = home.env(**more)
    if "TERM" not in more:
        env.pop("TERM")
    keep = ' '.join(f'{name}="${name}"' for name in ("TERM", "STY", "ZELLIJ", "DISPLAY", "WINDOWID", "XTERM_VERSION", "SSH_CONNECTION") if name not in more)
    pairs = " ".join(quoted(f"{name}={value}") for name, value in env.items())
    file.write_text(f"cd {home.work}\necho before the chat\nstty -a >{home.path}/before\n"
                    f"env -i {pairs} {keep} {home.kd} chat\necho \"exit code $?\"\nstty -a >{home.path}/after\nexec sleep 600\n")
    return file


def restored(t, home, what):
    wait("the modes after leaving", lambda: (home.path / "after").exists() and (home.path / "after").read_text())
    sizes = re.compile(r"rows \d+; columns \d+;|speed \d+ baud;")
    before, after = (sizes.sub("", (home.path / name).read_text()) for name in ("before", "after"))
    t.equal(f"{what}: stty -a as before", after, before)


def visit(t, what, home, shows, types, key, resize, copied):
    """The visit of a chat: start, several lines, a stream, scrolling, copying, another size, leaving."""
    shows("newline", "kd chat · council-")
    types("one")
    key("C-j")
    types("two")
    shows("> one", "two")
    t.equal(f"{what}: a new line sends nothing", home.says(), [])
    key("Enter")
    t.keep(f"{what}: streaming", shows("streaming"))
    t.keep(f"{what}: answered", shows("Line 40 of the answer.", "F2: read"))
    t.equal(f"{what}: the message", home.says(), ["one\ntwo"])
    key("PPage")
    shows("End ↓")
    key("End")
    shows("Line 40 of the answer.", gone=("End ↓",))
    t.check(f"{what}: scrolling", True)
    key("F8")
    screen = shows("the answer of ann")
    if copied:
        t.check(f"{what}: the copy arrives outside", wait("the copy", lambda: "Line 40 of the answer." in (copied() or ""), 10))
    if resize:
        resize(100, 30)
        screen = shows("Line 40 of the answer.")
        wait("the new size", lambda: any(row.startswith(("└", "│")) and len(row.rstrip()) == 100 for row in shows("Line 40").splitlines()), 15)
        t.keep(f"{what}: 100x30", shows("Line 40 of the answer."))
        t.check(f"{what}: another size", True)
    key("C-c")
    types("/quit")
    key("Enter")
    screen = shows("exit code 0", "go on: kd chat council-")
    t.keep(f"{what}: after leaving", screen)
    restored(t, home, what)
    return screen


def within_tmux(t, what, home, command, alternate=True, resize=True, copies=True, **more):
    """A terminal program inside tmux, which shows it and keeps what it copies."""
    bare = "unset TMUX TMUX_PANE TERM_PROGRAM TERM_PROGRAM_VERSION; export LANG=C.UTF-8; "
    Tmux.call("delete-buffer")
    with Tmux(home, command=bare + command, options=[("set-clipboard", "on")], **more) as chat:
        chat.call("set-option", "-s", "set-clipboard", "on")
        screen = visit(t, what, home, chat.shows, chat.types, chat.keys, chat.resize if resize else None,
                       (lambda: Tmux.call("show-buffer").stdout) if copies else None)
        if alternate:
            t.has(f"{what}: what was there before is back", screen, "before the chat")
        t.check(f"{what}: the cursor is shown, no mouse mode is left",
                Tmux.call("display-message", "-p", "-t", chat.name, "#{cursor_flag}#{mouse_any_flag}").stdout.strip() == "10")


def gnu_screen(t):
    home = home_for(t)
    folder = home.path / "screens"
    folder.mkdir(mode=0o700)
    try:
        within_tmux(t, "screen", home, f"export SCREENDIR={folder} SCREENRC=/dev/null; exec screen -U -S kd sh {script(home)}", alternate=False)
    finally:
        # It outlives its terminal.
        subprocess.run(["screen", "-S", "kd", "-X", "quit"], env={**os.environ, "SCREENDIR": str(folder)}, capture_output=True)


class Sshd:
    """A server of one's own on loopback, with keys of its own."""

    def __init__(self, home):
        self.home, folder = home, home.path / "ssh"
        folder.mkdir(mode=0o700)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
        shutil.copy(folder / "user.pub", folder / "authorized")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        if os.getuid() == 0:
            pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        options = ["ListenAddress=127.0.0.1", f"HostKey={folder}/host", f"AuthorizedKeysFile={folder}/authorized", "StrictModes=no", "UsePAM=no",
                   "PasswordAuthentication=no", "PidFile=none", "PermitRootLogin=yes", "PrintMotd=no", "PrintLastLog=no", "AcceptEnv=LANG LC_*"]
        self.log = open(folder / "log", "w")
        words = [has("sshd"), "-D", "-e", "-f", "/dev/null", "-p", str(self.port)]
        self.process = subprocess.Popen(words + [word for option in options for word in ("-o", option)], stdout=self.log, stderr=self.log)
        self.client = ["ssh", "-F", "/dev/null", "-p", str(self.port), "-i", str(folder / "user"), "-o", f"UserKnownHostsFile={folder}/known",
                       "-o", "StrictHostKeyChecking=accept-new", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR"]
        self.user = f"{getpass.getuser()}@127.0.0.1"

    def __enter__(self):
        def listens():
            if self.process.poll() is not None:
                raise Failed("sshd ended: " + (self.home.path / "ssh/log").read_text())
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", self.port)) == 0
        wait("sshd", listens)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def ssh(t):
    home = home_for(t)
    with Sshd(home) as server:
        words = " ".join(map(quoted, [*server.client, "-t", server.user, f"sh {script(home)}"]))
        within_tmux(t, "ssh", home, f"exec {words}")


def mosh(t):
    home = home_for(t)
    with Sshd(home) as server:
        client = " ".join(server.client)
        words = " ".join(map(quoted, ["mosh", f"--ssh={client}", "--bind-server=127.0.0.1", "--server=env LANG=C.UTF-8 LC_ALL=C.UTF-8 mosh-server", server.user, "--", "sh", str(script(home))]))
        # It keeps the screen itself, so nothing comes back at the end.
        within_tmux(t, "mosh", home, f"exec {words}", alternate=False)


def zellij(t):
    home = home_for(t)
    config = home.path / "zellij.kdl"
    config.write_text('keybinds clear-defaults=true {}\nshow_startup_tips false\nshow_release_notes false\npane_frames false\nsimplified_ui true\n'
                      f'default_shell "{home.path}/shell"\n')
    shell = home.path / "shell"
    shell.write_text(f"#!/bin/sh\nexec sh {script(home)}\n")
    shell.chmod(0o755)
    layout = home.path / "layout.kdl"
    layout.write_text("layout {\n  pane\n}\n")
    within_tmux(t, "zellij", home, f"exec env HOME={home.path} zellij --config {config} --layout {layout}", alternate=False, resize=False, copies=False)


class Xterm:
    """xterm in an X server without a screen; the keys of X, its printed screen, and a picture."""
    KEYS = {"C-j": "ctrl+j", "Enter": "Return", "PPage": "Prior", "End": "End", "F8": "F8", "C-c": "ctrl+c"}

    def __init__(self, t, home):
        self.t, self.home = t, home
        read, write = os.pipe()
        self.server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x900x24", "-nolisten", "tcp", "-noreset"], pass_fds=[write],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as number:
            self.display = ":" + number.readline().strip()
        self.env = {**home.env(), "DISPLAY": self.display}
        self.printed = home.path / "printed"
        resources = [f"*printerCommand: cat >{self.printed}.new && mv {self.printed}.new {self.printed}", "*printAttributes: 0", "*disallowedWindowOps: 20,21",
                     "*VT100.translations: #override Ctrl <Key>F12: print()"]
        words = ["xterm", "-u8", "-fa", "DejaVu Sans Mono", "-fs", "9", "-geometry", "100x40", *[word for r in resources for word in ("-xrm", r)],
                 "-e", "sh", str(script(home))]
        self.process = subprocess.Popen(words, env=self.env, cwd=home.work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.window = wait(lambda: f"no window of xterm on {self.display}: {self.process.poll()} {self.server.poll()}",
                           lambda: self.xdotool("search", "--onlyvisible", "--class", "xterm").split())[0]
        self.xdotool("windowfocus", self.window)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.process, self.server):
            process.terminate()
            process.wait()

    def xdotool(self, *words):
        return subprocess.run(["xdotool", *words], env=self.env, text=True, capture_output=True).stdout

    def types(self, text):
        self.xdotool("type", "--delay", "4", text)

    def key(self, name):
        self.xdotool("key", self.KEYS[name])

    def resize(self, columns, rows):
        self.xdotool("windowsize", "--usehints", self.window, str(columns), str(rows))

    def screen(self):
        self.printed.unlink(missing_ok=True)
        self.xdotool("key", "ctrl+F12")
        end = time.monotonic() + 2
        while not self.printed.exists() and time.monotonic() < end:
            time.sleep(0.05)
        return self.printed.read_text(errors="replace").replace("\r", "").replace("\f", "") if self.printed.exists() else ""

    def shows(self, *words, gone=(), seconds=30):
        screen = ""

        def so():
            nonlocal screen
            screen = self.screen()
            return all(word in screen for word in words) and not any(word in screen for word in gone)
        wait(lambda: f"missing {words!r} or still there {gone!r} in xterm:\n{screen}", so, seconds)
        return screen

    def picture(self, name):
        """Writes a screenshot, and returns the number of its colours."""
        data = subprocess.run(["xwd", "-silent", "-id", self.window], env=self.env, capture_output=True).stdout
        header = struct.unpack(">25I", data[:100])
        (size, _, _, _, width, height, _, order), bits, row, colours = header[:8], header[11], header[12], header[19]
        if bits != 32:
            raise Failed(f"a window with {bits} bits per pixel")
        at, rows, seen = size + 12 * colours, [], set()
        for y in range(height):
            line = data[at + y * row:at + y * row + 4 * width]
            # Blue comes first in little-endian pixels.
            red, green, blue = (line[2::4], line[1::4], line[0::4]) if order == 0 else (line[1::4], line[2::4], line[3::4])
            seen.update(zip(red, green, blue))
            rows.append(b"\0" + bytes(part for pixel in zip(red, green, blue) for part in pixel))
        chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        picture = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b""))
        ((self.t.pictures or self.home.path) / name).write_bytes(picture)
        return len(seen)


def xterm(t):
    home = home_for(t)
    with Xterm(t, home) as window:
        window.shows("newline")
        visit(t, "xterm", home, window.shows, window.types, window.key, window.resize, None)
    home = home_for(t)
    with Xterm(t, home) as window:
        window.shows("newline")
        window.types("one question")
        window.key("Enter")
        window.shows("Line 40 of the answer.")
        colours = window.picture("line-24-xterm.png")
        t.check("xterm: the picture has text in colours", colours > 8, str(colours))
        window.types("/quit")
        window.key("Enter")
        screen = window.shows("exit code 0")
        t.has("xterm: what was there before is back", screen, "before the chat")


class XtermJs:
    """The parser and the screen of xterm.js, which VS Code's terminal is, on the bytes of a pseudo-terminal."""
    KEYS = {"C-j": "\n", "Enter": "\r", "PPage": "\x1b[5~", "End": "\x1b[F", "F8": "\x1b[19~", "C-c": "\x03"}

    def __init__(self, t, home, module):
        self.pty = Pty(home, argv=["sh", str(script(home, TERM="xterm-256color", COLORTERM="truecolor", TERM_PROGRAM="vscode"))], columns=80, rows=24, answers={})
        self.node = subprocess.Popen(["node", str(HERE / "xterm-js.mjs"), module, "80", "24"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.fed, self.copied = 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pty.__exit__()
        self.node.kill()
        self.node.wait()

    def call(self, **message):
        self.node.stdin.write(json.dumps(message).encode() + b"\n")
        self.node.stdin.flush()
        answer = json.loads(self.node.stdout.readline())
        if answer["said"]:
            self.pty.send(answer["said"])
        self.copied += answer["copied"]
        return answer

    def state(self):
        data = self.pty.bytes()
        answer = self.call(write=base64.b64encode(data[self.fed:]).decode())
        self.fed = len(data)
        return answer

    def resize(self, columns, rows):
        self.state()
        self.call(resize=[columns, rows])
        self.pty.resize(columns, rows)

    def shows(self, *words, gone=(), seconds=30):
        screen = ""

        def so():
            nonlocal screen
            screen = self.state()["screen"]
            return all(word in screen for word in words) and not any(word in screen for word in gone)
        wait(lambda: f"missing {words!r} or still there {gone!r} in xterm.js:\n{screen}", so, seconds)
        return screen


def vscode(t):
    folder = pathlib.Path(tempfile.mkdtemp(dir=t.folder))
    done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), XTERM_JS], text=True, capture_output=True)
    if done.returncode != 0:
        return t.skip("xterm.js", "npm cannot install it: " + (done.stderr.strip().splitlines() or ["?"])[-1])
    home = home_for(t)
    with XtermJs(t, home, str(folder / "node_modules/@xterm/headless/lib-headless/xterm-headless.js")) as terminal:
        terminal.shows("newline")
        state = terminal.state()
        t.check("xterm.js: alternate screen, bracketed paste, mouse and focus are on", state["alternate"] and state["modes"]["bracketedPasteMode"]
                and state["modes"]["mouseTrackingMode"] == "drag" and state["modes"]["sendFocusMode"], str(state["modes"]))
        screen = visit(t, "xterm.js", home, terminal.shows, terminal.pty.send, lambda name: terminal.pty.send(XtermJs.KEYS[name]), terminal.resize,
                       lambda: terminal.copied[-1] if terminal.copied else "")
        t.has("xterm.js: what was there before is back", screen, "before the chat")
        state = terminal.state()
        t.check("xterm.js: every mode is off again", not state["alternate"] and not state["modes"]["bracketedPasteMode"]
                and state["modes"]["mouseTrackingMode"] == "none" and not state["modes"]["sendFocusMode"] and state["modes"]["wraparoundMode"], str(state["modes"]))


@line(24, "Other terminals: tmux, screen, ssh, mosh, xterm, xterm.js (VS Code), zellij")
def terminals(t):
    home = home_for(t)
    within_tmux(t, "tmux", home, f"sh {script(home)}")
    for what, check, needs in (("screen", gnu_screen, ["screen"]), ("ssh", ssh, ["sshd", "ssh", "ssh-keygen"]), ("mosh", mosh, ["mosh", "mosh-server", "sshd"]),
                               ("zellij", zellij, ["zellij"]), ("xterm", xterm, ["xterm", "Xvfb", "xdotool", "xwd"]), ("xterm.js", vscode, ["node", "npm"])):
        missing = [program for program in needs if not has(program)]
        if missing:
            t.skip(what, f"{' and '.join(missing)} not installed")
            continue
        try:
            check(t)
        except Failed as why:
            t.check(f"{what}: {str(why).splitlines()[0][:160]}", False, str(why))
    t.skip("Windows Terminal", "there is no Windows here")
