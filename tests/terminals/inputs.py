"""Lines 1 to 8: what is typed."""
import os, pathlib, signal, time
from stage import Home, Pty, Tmux, line, modes, readable, wait

ROOT = pathlib.Path(__file__).resolve().parents[2]


@line(1, "Enter sends; Shift+Enter where the terminal reports it, Ctrl+J, Alt+Enter and \\ Enter everywhere")
def newline(t):
    home = Home(t)
    with Tmux(home) as chat:
        t.keep("tmux 80x24: it names the key that works here", chat.shows("Ctrl+J: newline", "> "))
        chat.types("one")
        chat.keys("C-j")
        chat.types("two")
        chat.keys("M-Enter")
        chat.types("three\\")
        chat.keys("Enter")
        chat.types("four")
        t.keep("tmux: four lines, not sent", chat.shows("> one", "two", "three", "four"))
        t.equal("nothing is sent by a newline", home.says(), [])
        chat.keys("Enter")
        t.keep("tmux: sent", chat.shows("Ann's answer.", "Bob's answer."))
        t.equal("Enter sends all four lines", home.says(), ["one\ntwo\nthree\nfour"])
        chat.leaves(t)
    home = Home(t)
    with Pty(home) as chat:
        chat.shows("Shift+Enter: newline")
        chat.send("one")
        for key in ("\x1b[13;2u", "\x1b[27;2;13~", "\x1b[13;3u"):
            chat.send(key + "next")
        chat.send("\r")
        wait("the message", home.says)
        t.equal("the kitty protocol's Shift+Enter (two encodings) and Alt+Enter", home.says(), ["one\nnext\nnext\nnext"])
        t.keep("a terminal with the kitty protocol: the hint", "".join(readable(chat.bytes()).partition("Shift+Enter: newline")[1:2]))


@line(2, "Keyboard, paste, focus and mouse modes are restored on every way out; Ctrl+Z suspends, fg repaints")
def exits(t):
    ways = {"/quit": "/quit\r", "Ctrl+C twice": "\x03\x03", "Ctrl+D": "\x04", "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP,
            "SIGTERM while a member answers": None, "no terminal to write to": "closed"}
    for screen in ("always", "never"):
        for name, way in ways.items():
            home = Home(t, {"ann": [["half", 60_000]]}) if way is None else Home(t)
            with Pty(home, KD_SCREEN=screen) as chat:
                chat.shows("newline")
                on, keyboard, titles = modes(chat.bytes())
                wanted = {2004, 1004, 1002, 1006} | ({1049} if screen == "always" else set())
                t.check(f"{screen}, {name}: modes are on in the chat", wanted <= on and keyboard == 1 and titles == 1, f"{on} {keyboard} {titles}")
                if way is None:
                    chat.send("hello\r")
                    chat.shows("streaming")
                if isinstance(way, str) and way != "closed":
                    chat.send(way)
                elif way == "closed":
                    chat.hang_up()
                else:
                    os.kill(chat.pid, way or signal.SIGTERM)
                code = chat.ends()
                t.check(f"{screen}, {name}: ends with {'0' if name in ('/quit', 'Ctrl+D') else '130'}",
                        code == (0 if name in ("/quit", "Ctrl+D") else 130), f"code {code}")
                if way == "closed":
                    continue
                on, keyboard, titles = modes(chat.bytes())
                t.check(f"{screen}, {name}: every mode is off again", on <= {7, 25} and keyboard == 0 and titles == 0, f"{on} {keyboard} {titles}")
                t.check(f"{screen}, {name}: echo and line mode as before", chat.modes() == chat.before)
                if name == "/quit":
                    t.keep(f"chat.screen={screen}: the last bytes", readable(chat.bytes()[-400:]))
    home = Home(t)
    with Tmux(home, command=f"PS1='shell> ' exec bash --norc --noprofile -i", KD=home.kd) as chat:
        chat.shows("shell>")
        chat.types('"$KD" chat')
        chat.keys("Enter")
        chat.shows("Ctrl+J: newline")
        chat.types("a draft")
        chat.shows("> a draft")
        chat.keys("C-z")
        t.keep("Ctrl+Z: the shell", chat.shows("Stopped", "shell>", gone=("Ctrl+J: newline",)))
        chat.types("stty -a | grep -c -- ' -icanon\\| -echo '")
        chat.keys("Enter")
        t.check("the shell has its line mode", "\n0\n" in chat.shows("\n0\n"))
        chat.types("fg")
        chat.keys("Enter")
        t.keep("fg: the chat is painted again", chat.shows("> a draft", "kd chat · council-", gone=("Stopped",)))
        chat.keys("C-c")
        chat.types("/quit")
        chat.keys("Enter")
        chat.shows("go on: kd chat")
    t.said.append("passed  a panic: checked by the test of kd-tui, terminal::tests::a_panic_gives_the_terminal_back_before_it_is_told")


@line(3, "A paste never sends; a long one is folded and sent in full; wide characters around it stay")
def paste(t):
    home = Home(t)
    with Tmux(home) as chat:
        chat.shows("newline")
        chat.types("前")
        text = "".join(f"line {n} 日本語\n" for n in range(1, 501))
        Tmux.call("set-buffer", "-b", "paste", text)
        Tmux.call("paste-buffer", "-p", "-d", "-b", "paste", "-t", chat.name)
        chat.types("後")
        t.keep("tmux 80x24: 500 lines pasted between wide characters", chat.shows("> 前[pasted 500 lines]", "後"))
        t.equal("nothing is sent", home.says(), [])
        chat.keys("C-_")
        chat.keys("C-_")
        t.check("undo takes the whole paste", "pasted" not in chat.shows("> 前", gone=("[pasted",)))
        chat.keys("C-c")
        Tmux.call("set-buffer", "-b", "paste", text)
        chat.types("前")
        Tmux.call("paste-buffer", "-p", "-d", "-b", "paste", "-t", chat.name)
        chat.types("後")
        chat.shows("[pasted 500 lines]")
        chat.keys("Enter")
        wait("the message", home.says)
        sent = home.says()[0]
        t.equal("all lines are sent, in order", sent, "前" + text + "後")
        t.keep("tmux: in the log the message is folded", chat.shows("more lines", "Ctrl+T shows them"))
        chat.leaves(t)
    home = Home(t)
    with Pty(home) as chat:
        chat.shows("newline")
        chat.send("\x1b[200~漢字を\r入力\x03\x1b[A\x1b[201~")
        time.sleep(0.5)
        t.equal("an input method's text in paste marks is text, also control keys in it", home.says(), [])
        chat.send("\r")
        wait("the message", home.says)
        t.equal("it is sent by Enter alone, without control characters", home.says(), ["漢字を\n入力"])


@line(4, "Emacs keys, undo, word jumps, $EDITOR (which stands in for a vim mode)")
def editing(t):
    home = Home(t)
    home.program("ed-it", 'cat "$1" >"$HOME/edited"; printf "from the editor" >"$1"\n')
    with Tmux(home, VISUAL="ed-it") as chat:
        chat.shows("newline")
        steps = [
            ("Ctrl+A and Ctrl+E", "world", ["C-a"], "hello ", ["C-e"], "!", "> hello world!"),
            ("Ctrl+W and Ctrl+Y", "", ["C-w"], "kd, ", ["C-y"], "", "> hello kd, world!"),
            ("Alt+B and Alt+D", "", ["M-b", "M-d"], "you", [], "", "> hello kd, you!"),
            ("Alt+F", "", ["C-a", "M-f"], "!", [], "", "> hello! kd, you!"),
            ("Ctrl+K", "", ["C-k"], "", [], "", "> hello!"),
            ("Ctrl+_ is undo", "", ["C-_"], "", [], "", "> hello! kd, you!"),
            ("Ctrl+Left, Ctrl+Right", "", ["C-e", "C-Left", "C-Left"], "<", ["C-Right"], ">", "> hello! <kd>, you!"),
            ("Ctrl+U", "", ["C-e", "C-u"], "gone", [], "", "> gone"),
        ]
        for what, first, keys, then, more, last, wanted in steps:
            for text, names in ((first, keys), (then, more), (last, ())):
                if text:
                    chat.types(text)
                if names:
                    chat.keys(*names)
            t.keep(what, chat.shows(wanted).rstrip().splitlines()[-1])
            t.check(what, True)
        chat.keys("C-g")
        t.keep("Ctrl+G opens $VISUAL", chat.shows("> from the editor"))
        t.equal("the editor got the draft", (home.path / "edited").read_text().strip(), "gone")
        t.has("docs/chat.md says why there is no vim mode", (ROOT / "docs/chat.md").read_text(), "There is no vim mode.")
        chat.leaves(t)


@line(5, "Up and Down only at the edges; Ctrl+R searches; drafts survive a crash; Ctrl+S puts a draft aside")
def history(t):
    home = Home(t)
    with Tmux(home) as chat:
        chat.shows("newline")
        for number, text in enumerate(("alpha question", "beta question", "gamma"), 1):
            chat.asks(text, "Bob's answer.")
            wait("answers", lambda: len(home.messages()) == 3 * number)
            chat.shows("F2: read")
        chat.types("first")
        chat.keys("C-j")
        chat.types("second")
        chat.keys("Up")
        chat.types("X")
        t.keep("Up inside a draft moves", chat.shows("> firstX", "second"))
        chat.keys("C-c")
        chat.shows(gone=("firstX",))
        chat.keys("Up")
        t.keep("Up in an empty input recalls", chat.shows("> gamma"))
        chat.keys("Up")
        chat.shows("> beta question")
        chat.keys("Down")
        chat.shows("> gamma")
        t.check("Up and Down walk the history at the edges", True)
        chat.keys("C-c")
        chat.keys("C-r")
        chat.types("quest al")
        t.keep("Ctrl+R searches by words in any order", chat.shows("alpha question", "1 of 1"))
        chat.keys("Enter")
        chat.shows("> alpha question")
        t.equal("taking a found message sends nothing", len(home.says()), 3)
        chat.keys("C-c")
        chat.types("put aside")
        chat.keys("C-s")
        t.keep("Ctrl+S puts the draft aside", chat.shows(gone=("> put aside",)))
        chat.keys("C-s")
        chat.shows("> put aside")
        t.check("Ctrl+S brings it back", True)
        chat.types(" and killed")
        wait("the saved draft", lambda: any("and killed" in f.read_text(errors="replace") for f in (home.path / ".local/state/kd").rglob("*") if f.is_file()))
        pane = int(Tmux.call("display-message", "-p", "-t", chat.name, "#{pane_pid}").stdout)
        children = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent(pid) == pane]
        os.kill(children[0], signal.SIGKILL)
        chat.shows("exit code 137")
    with Tmux(home) as chat:
        t.keep("after kill -9 the draft is back", chat.shows("> put aside and killed"))
        chat.leaves(t)


def parent(pid):
    try:
        return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


@line(6, "Completion of /commands, @members and @files by letters in order; F1 or ? shows the keys; ! by choice")
def completion(t):
    home = Home(t)
    (home.work / "src").mkdir()
    (home.work / "src/main.rs").write_text("fn main() {}\n")
    with Tmux(home) as chat:
        chat.shows("newline")
        for typed, wanted in (("/mde", "> /mode"), ("@bb", "> @bob"), ("@smain", "> @src/main.rs")):
            chat.types(typed)
            chat.keys("Tab")
            t.keep(f"{typed} Tab", chat.shows(wanted))
            t.check(f"{typed} Tab completes to {wanted[2:]}", True)
            chat.keys("C-c")
            chat.shows(gone=(wanted,))
        chat.keys("F1")
        t.keep("F1", chat.shows("Ctrl+J, Alt+Enter", "Ctrl+R"))
        chat.keys("Escape")
        chat.shows("Enter: send")
        chat.types("?")
        t.keep("? in an empty input", chat.shows("Ctrl+J, Alt+Enter", "Ctrl+R"))
        chat.keys("Escape")
        chat.shows("Enter: send")
        chat.types("!echo ran")
        chat.keys("Enter")
        t.keep("! without the setting runs nothing", chat.shows("chat.shell"))
        t.equal("and sends nothing", home.says(), [])
        chat.leaves(t)
    home = Home(t, chat={"shell": True})
    with Tmux(home) as chat:
        chat.shows("newline")
        chat.types("!echo ran-$((40+2))")
        chat.keys("Enter")
        t.keep("! with the setting asks", chat.shows("run it? y: yes"))
        t.check("nothing ran before the yes", "ran-42" not in chat.screen())
        time.sleep(0.5)
        chat.keys("y")
        t.keep("! after y: the output is in the draft", chat.shows("ran-42", "nothing is sent yet"))
        chat.leaves(t)


@line(7, "Esc interrupts; Esc Esc edits the last message; Ctrl+C clears, stops, quits; Ctrl+D quits; Ctrl+L redraws")
def stopping(t):
    slow = {"ann": [["Half an answer.", 60_000], ["Ann's answer."]]}
    home = Home(t, slow)
    with Tmux(home) as chat:
        chat.shows("newline")
        chat.asks("first", "streaming", "Half an answer.", "Esc: interrupt")
        chat.types("draft")
        chat.keys("Escape")
        t.keep("Esc stops, keeps the partial answer and the draft", chat.shows("ann (interrupted)", "Half an answer.", "> draft"))
        chat.keys("C-c")
        t.keep("Ctrl+C clears", chat.shows(gone=("> draft",)))
        time.sleep(2.2)
        chat.keys("Escape")
        chat.keys("Escape")
        t.keep("Esc Esc takes the last message back, in a fork", chat.shows("> first", gone=("Half an answer.",)))
        t.equal("the old thread stays", len(home.threads()), 2)
        chat.keys("C-c")
        time.sleep(0.3)
        terminal = Tmux.call("display-message", "-p", "-t", chat.name, "#{pane_tty}").stdout.strip()
        pathlib.Path(terminal).write_text("garbage")
        t.keep("something wrote over the screen", chat.shows("garbage"))
        chat.keys("C-l")
        t.keep("Ctrl+L redraws", chat.shows("kd chat · ", gone=("garbage",)))
        chat.keys("C-d")
        t.keep("Ctrl+D on an empty input quits", chat.shows("exit code 0", "go on: kd chat"))
    home = Home(t, slow)
    with Tmux(home) as chat:
        chat.shows("newline")
        chat.asks("first", "streaming")
        chat.types("draft")
        chat.shows("> draft")
        chat.keys("C-c")
        screen = chat.shows("streaming", gone=("> draft",))
        t.keep("Ctrl+C first clears the draft, the member speaks on", screen)
        chat.keys("C-c")
        t.keep("then it stops the member", chat.shows("ann (interrupted)"))
        # The one that stopped does not count for leaving.
        time.sleep(2.2)
        chat.keys("C-c", "C-c")
        t.keep("twice it quits", chat.shows("exit code 130"))


@line(8, "Every key is rebindable in one file; conflicts are reported")
def rebinding(t):
    home = Home(t, chat={"keys": {"search": "ctrl+o alt+r", "help": "f9", "suspend": "", "copy": "f9", "sned": "f10"}})
    with Tmux(home, columns=200, rows=50) as chat:
        t.keep("wrong entries are named when the chat opens", chat.shows("there is no such action: did you mean send?", "F9 is copy and help"))
        chat.keys("C-o")
        t.keep("Ctrl+O searches now", chat.shows("Esc: back"))
        chat.keys("Escape")
        chat.shows("Enter: send")
        chat.types("/keys")
        chat.keys("Enter")
        screen = chat.shows("Ctrl+O", "search")
        t.keep("/keys", screen)
        chat.keys("Escape")
        chat.shows("Enter: send")
        chat.leaves(t)
    names = set(home.run("config", "show", "--origin")[1].split())
    t.check("the settings come from one file", any("config.json" in name for name in names), str(names)[:300])
