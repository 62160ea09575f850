"""Lines 9 to 16: what is drawn."""
import os, re, signal, subprocess, time
from stage import ESC, Home, Pty, Tmux, has, line, modes, readable, sequences, wait

LONG = "".join(f"Sentence {n} of a long answer, with some words to fill the line.\n\n" for n in range(1, 61))
CODE = "Here is code:\n\n```rust\nfn main() {\n    println!(\"a line that is longer than the box {}\", 1234567890123456789012345678901234567890);\n}\n```\n\nAnd a paragraph that is longer than the width of the box, so that it goes on in a second line of the screen."


@line(9, "Only changed cells are written, as synchronized frames, at most 60 a second, without clearing the screen")
def frames(t):
    words = [step for n in range(400) for step in (f"word{n} ", 10)]
    home = Home(t, {"ann": [words], "bob": [words]})
    with Pty(home) as chat:
        chat.shows("newline")
        chat.send("go\r")
        chat.shows("streaming")
        start, begun = len(chat.bytes()), time.monotonic()
        chat.shows("\x1b]2;kd council-", since=start)
        seconds, data = time.monotonic() - begun, chat.bytes()[start:]
        opened, closed = data.count(b"\x1b[?2026h"), data.count(b"\x1b[?2026l")
        t.check("frames are synchronized updates, each closed", opened > 20 and abs(opened - closed) <= 1, f"{opened} {closed}")
        outside = re.sub(rb"\x1b\[\?2026h.*?\x1b\[\?2026l", b"", data, flags=re.S)
        outside = re.sub(rb"\x1b\][^\x07\x1b]*(\x07|\x1b\\)", b"", outside)
        t.check("nothing is drawn outside of them", len(outside) < 2000 and b"word" not in outside[:-1000], readable(outside[:300]))
        t.check("at most 60 frames a second", opened / seconds <= 60, f"{opened} in {seconds:.1f} s")
        clears = len(re.findall(rb"\x1b\[[0-3]?J", data))
        t.equal("the screen is never cleared", clears, 0)
        full = 80 * 24
        t.check("a frame has fewer bytes than half the cells of the screen", len(data) / max(opened, 1) < full / 2, f"{len(data) / max(opened, 1):.0f} bytes a frame")
        t.keep("figures", f"{opened} frames in {seconds:.1f} s, {len(data)} bytes, {len(data) / max(opened, 1):.0f} bytes a frame, {clears} clears")
        t.keep("one frame", readable(re.findall(rb"\x1b\[\?2026h.*?\x1b\[\?2026l", data, re.S)[10]))
    home = Home(t)
    with Pty(home, answers={b"\x1b[c": b"\x1b[?1;2c"}) as chat:
        chat.shows("newline")
        chat.send("go\r")
        chat.shows("Bob's answer.")
        t.check("a terminal that does not know synchronized updates gets none", b"\x1b[?2026h" not in chat.bytes())


@line(10, "It follows only at the end; a badge counts new messages; keys and the wheel scroll; jumps between your messages and members")
def scrolling(t):
    home = Home(t, {"ann": [[LONG], [1500, "Second of ann."], ["x"]], "bob": [["Bob one."], [1500, "Second of bob."], ["y"]]})
    with Tmux(home) as chat:
        chat.shows("newline")
        chat.asks("first question", "Bob one.")
        chat.shows("F2: read")
        chat.types("second question")
        chat.keys("Enter")
        chat.shows("second question", "waiting")
        chat.keys("PPage")
        before = chat.shows("End ↓")
        after = chat.shows("2 new ↓")
        t.equal("it does not move while messages come", after.splitlines()[2:18], before.splitlines()[2:18])
        t.keep("scrolled up: the badge", after)
        chat.keys("End")
        t.keep("End goes to the newest", chat.shows("Second of bob.", gone=("new ↓",)))
        chat.keys("Home")
        t.keep("Home goes to the first", chat.shows("first question", "Sentence 1 of"))
        chat.keys("NPage")
        chat.shows("Sentence", gone=("first question",))
        chat.keys("End")
        chat.shows("Second of bob.")
        chat.keys("M-Up")
        t.keep("Alt+Up goes to your message before", chat.shows("first question"))
        chat.keys("M-Down")
        chat.shows("second question")
        chat.keys("M-2")
        t.keep("Alt+2 shows one member", chat.shows("only bob", "Bob one.", gone=("Second of ann.",)))
        chat.keys("M-0")
        chat.keys("End")
        chat.shows("Second of ann.")
        # The wheel, as tmux passes it on: SGR mouse.
        chat.keys("-H", "1b", "5b", "3c", "36", "34", "3b", "31", "30", "3b", "35", "4d")
        t.keep("the wheel scrolls", chat.shows("End ↓"))
        chat.leaves(t)


@line(11, "chat.screen = auto, always, never; with never the messages stay in the scrollback")
def places(t):
    for value, alternate in (("always", True), ("auto", True), ("never", False)):
        home = Home(t, {"ann": [[LONG]]}, chat={"screen": value})
        with Tmux(home) as chat:
            chat.shows("newline")
            shown = Tmux.call("display-message", "-p", "-t", chat.name, "#{alternate_on}").stdout.strip()
            t.equal(f"{value}: the alternate screen", shown, "1" if alternate else "0")
            chat.asks("hello", "Sentence 60 of")
            chat.leaves(t, value)
            history = chat.screen(history=True)
            kept = all(f"Sentence {n} of" in history for n in (1, 30, 60))
            t.equal(f"{value}: the whole transcript is in the scrollback", kept, not alternate)
            t.keep(f"{value}: the scrollback after leaving", "\n".join(history.splitlines()[:12] + ["…"] + history.rstrip().splitlines()[-6:]))
    home = Home(t)
    with Pty(home, ZELLIJ="0") as chat:
        chat.shows("newline")
        t.check("auto: not in Zellij", 1049 not in modes(chat.bytes())[0])


def clip(data):
    import base64
    return [base64.b64decode(text).decode() for text in re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)(?:\x07|\x1b\\)", data)]


@line(12, "Copy a message, code, all: OSC 52, through tmux and screen, then a program, then a file; drags without borders")
def copying(t):
    home = Home(t, {"ann": [[500, CODE]]})
    with Pty(home) as chat:
        chat.shows("newline")
        chat.send("q\r")
        chat.answered()
        chat.send("\x1b[19~")
        chat.shows("sent the answer")
        t.equal("F8 sends the answer as Markdown by OSC 52", clip(chat.bytes())[-1:], [CODE])
        chat.send("/copy code\r")
        wait("the code", lambda: len(clip(chat.bytes())) == 2)
        t.equal("/copy code sends the code", clip(chat.bytes())[-1].split("\n")[0], "fn main() {")
        chat.send("/copy all\r")
        wait("the thread", lambda: len(clip(chat.bytes())) == 3)
        t.has("/copy all sends the thread", clip(chat.bytes())[-1], "q", "fn main() {", "And a paragraph")
        t.keep("what OSC 52 carried", "\n──\n".join(clip(chat.bytes())))
    with Pty(home, STY="1.screen") as chat:
        chat.shows("And a paragraph")
        chat.send("\x1b[19~")
        chat.shows("OSC 52")
        t.check("in screen it is wrapped", bool(re.search(rb"\x1bP\x1b\]52;c;", chat.bytes())), readable(chat.bytes()[-300:]))
    home.program("xclip", 'cat >"$HOME/clipboard"\n')
    with Pty(home, DISPLAY=":9") as chat:
        chat.shows("And a paragraph")
        chat.send("\x1b[19~")
        chat.shows("by xclip")
        t.equal("a program takes it, and is named", (home.path / "clipboard").read_text(), CODE)
    with Pty(home, TERM_PROGRAM="Apple_Terminal") as chat:
        chat.shows("And a paragraph")
        chat.send("\x1b[19~")
        chat.shows("saved in")
        t.check("without any of them it is a file, and named", CODE in "".join(p.read_text() for p in home.path.rglob("*copied*.md")))
    for passes in ("off", "on"):
        with Tmux(home, options=[("allow-passthrough", passes), ("set-clipboard", "on")]) as chat:
            chat.shows("And a paragraph")
            Tmux.call("set-buffer", "-b", "none", "nothing")
            chat.keys("F8")
            t.keep(f"tmux, allow-passthrough {passes}", chat.shows("into tmux's buffer"))
            t.equal(f"tmux, allow-passthrough {passes}: tmux's buffer", Tmux.call("show-buffer").stdout, CODE)
            rows = chat.screen().splitlines()
            at = next(n for n, row in enumerate(rows) if "And a paragraph" in row)
            mouse = lambda what, x, y, end: chat.types(f"{ESC}[<{what};{x};{y}{end}")
            mouse(0, 3, at + 1, "M")
            mouse(32, 60, at + 2, "M")
            mouse(0, 60, at + 2, "m")
            chat.shows("copied the selection")
            dragged = Tmux.call("show-buffer").stdout
            t.check("a drag copies a paragraph as one line, without borders", "\n" not in dragged and "│" not in dragged and dragged.startswith("And a paragraph"), dragged)
            t.keep("dragged", dragged)
            chat.leaves(t)


@line(13, "Links, title with state, progress; light and dark by query and COLORFGBG; NO_COLOR, dumb, 16, 256, true colour; never colour alone")
def colours(t):
    text = "See https://example.org/a/path for more."
    home = Home(t, {"ann": [["half ", 300, text]], "bob": [["Bob."]]})

    def chat(answers=None, **more):
        with Pty(home, "chat", "--new", answers=answers, **more) as chat:
            chat.shows("newline")
            chat.send("q\r")
            chat.answered()
            return chat.bytes()
    data = chat(FORCE_HYPERLINK="1", COLORTERM="truecolor")
    t.check("OSC 8 links", b"\x1b]8;" in data and b"https://example.org/a/path" in data)
    titles = sequences(data, r"\x1b\]2;(.*?)\x1b\\")
    t.check("the title tells the thread and whether somebody answers", any(x.startswith("… kd council-") for x in titles) and titles[-1].startswith("kd council-"), str(titles))
    t.keep("titles", "\n".join(titles))
    t.check("no links where the terminal is not known for them", b"\x1b]8;" not in chat(TERM="xterm"))
    data = chat(TERM_PROGRAM="ghostty")
    t.check("progress (OSC 9;4) where it is known, and its end", b"\x1b]9;4;3" in data and b"\x1b]9;4;0" in data)
    t.check("no progress elsewhere", b"\x1b]9;4" not in chat(TERM="xterm"))
    kinds = {
        "true colour": (dict(COLORTERM="truecolor"), rb"\x1b\[[0-9;]*38;2;"),
        "256 colours": (dict(TERM="xterm-256color"), rb"\x1b\[[0-9;]*38;5;"),
        "16 colours": (dict(TERM="xterm"), rb"\x1b\[(?:[0-9;]*;)?(?:3[1-6]|9[1-6])[;m]"),
        "NO_COLOR": (dict(NO_COLOR="1", COLORTERM="truecolor"), None),
    }
    anything = rb"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7]|38;[25];[0-9;]*)[;m]"
    for name, (env, pattern) in kinds.items():
        data = chat(**env)
        found = re.findall(pattern or anything, data)
        t.check(name, not found if pattern is None else found, readable(data[-500:]))
        if name != "true colour" and pattern:
            t.check(f"{name}: no true colour", b"38;2;" not in data)
        t.keep(name, ", ".join(sorted({readable(x) for x in re.findall(rb"\x1b\[[0-9;]*m", data)})[:24]))
    dark = chat(COLORTERM="truecolor")
    light = chat(answers={**Pty.ANSWERS, b"\x1b]11;?\x1b\\": b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\"}, COLORTERM="truecolor")
    hues = lambda data: set(re.findall(rb"38;2;[0-9]+;[0-9]+;[0-9]+", data))
    t.check("a light background gives other colours", hues(dark) and len(hues(light) - hues(dark)) > 1, f"{hues(dark)} {hues(light)}")
    silent = {b"\x1b[c": b"\x1b[?1;2c"}
    told = hues(chat(answers=silent, COLORTERM="truecolor", COLORFGBG="0;15"))
    t.check("COLORFGBG counts where the terminal does not answer", told and told <= hues(light) and not told <= hues(dark), f"{told} {hues(light)} {hues(dark)}")
    with Tmux(home, "chat", "--new", NO_COLOR="1") as plain:
        plain.shows("newline")
        plain.types("@a")
        plain.keys("C-c")
        screen = plain.asks("q", "Bob.")
        t.check("names and symbols tell members apart without colour", len({row.split()[0] for row in re.findall(r"┌ (\S+ (?:ann|bob))", screen)}) == 2, screen)
        t.keep("NO_COLOR", screen)
    code, out, err = home.run("ask", "q", CLICOLOR_FORCE="1")
    t.check("CLICOLOR_FORCE colours a pipe", "\x1b[" in out + err)
    code, out, err = home.run("ask", "q")
    t.check("a pipe has no colour otherwise", "\x1b" not in out + err)
    code, out, err = home.run("ask", "q", TERM="dumb", CLICOLOR_FORCE="0")
    t.check("TERM=dumb has none", "\x1b" not in out + err)


@line(14, "60x16 to 300x80, reflow, emoji, joined emoji, right-to-left text; ASCII borders without UTF-8")
def sizes(t):
    text = "Emoji 👍 family 👩‍👩‍👧 flag 🇩🇪 accents é, wide 日本語, Hebrew שלום, Arabic مرحبا.\n\n| a | b |\n|---|---|\n| 1 | two words |\n"
    home = Home(t, {"ann": [[text]], "bob": [["Bob."]]})

    def sound(screen, columns):
        rows = [row for row in screen.splitlines() if row.startswith(("│", "┌", "└"))]
        # tmux counts emoji of several parts its own way, so rows with them are left out.
        plain = [row for row in rows if row.isascii() or not re.search("[\u200d\U0001f1e6-\U0001f1ff👍日שم]", row)]
        return rows and all(row.rstrip().endswith(("│", "┐", "┘")) for row in plain)
    for columns, rows in ((60, 16), (80, 24), (200, 50), (300, 80)):
        with Tmux(home, "chat", "--new", columns=columns, rows=rows) as chat:
            chat.shows("newline" if columns > 60 else ">")
            screen = chat.asks("which", "Bob.", "two words")
            t.check(f"{columns}x{rows}: every box is closed", sound(screen, columns), screen)
            t.check(f"{columns}x{rows}: all scripts are there", all(word in screen for word in ("👍", "日本語", "é", "two words")), screen)
            t.keep(f"{columns}x{rows}", screen)
            for columns_after, rows_after in ((60, 16), (120, 40), (20, 6), (80, 24)):
                chat.resize(columns_after, rows_after)
                time.sleep(0.5)
                screen = chat.shows(">")
                if columns_after >= 60:
                    t.check(f"{columns}x{rows} → {columns_after}x{rows_after}: boxes are closed again", sound(screen, columns_after), screen)
            chat.leaves(t)
    with Tmux(home, "chat", "--new", LANG="C") as chat:
        chat.shows("newline")
        screen = chat.asks("which", "Bob.", "two words")
        t.check("LANG=C: borders and symbols are ASCII", not re.search("[┌│└─●■▲★]", screen), screen)
        t.keep("LANG=C", screen)
        chat.leaves(t)


@line(15, "Notifications: auto, native, osc, bell, off; only without focus; through tmux; for done, partly failed, failed")
def notifications(t):
    fails = [{"fail": {"kind": "auth", "message": "no key", "hint": "", "retryable": False}}]
    home = Home(t, {"ann": [[700, "Ann's answer."]], "bob": [["Bob's answer."]]})

    def told(focused=False, scripts=None, **more):
        with Pty(home, "chat", "--new", **more) as chat:
            chat.shows("newline")
            if not focused:
                chat.send("\x1b[O")
            start = len(chat.bytes())
            chat.send("q\r")
            chat.answered()
            time.sleep(0.4)
            return re.sub(rb"\x1b\]2;.*?\x1b\\", b"", chat.bytes()[start:])
    nine, bell = rb"\x1b\]9;council-[0-9a-z]+: every member has answered\x1b\\", rb"\x07"
    t.check("osc: OSC 9", re.search(nine, told(KD_NOTIFY="osc")))
    t.check("auto: OSC 9 in Ghostty, iTerm2, WezTerm", re.search(nine, told(TERM_PROGRAM="WezTerm")))
    t.check("auto: OSC 99 in kitty", re.search(rb"\x1b\]99;;council", told(TERM="xterm-kitty")))
    t.check("auto: OSC 777 in foot", re.search(rb"\x1b\]777;notify;kd;council", told(TERM="foot")))
    data = told()
    t.check("auto: the bell elsewhere", re.search(bell, data) and not re.search(nine, data))
    t.check("bell", re.search(bell, told(KD_NOTIFY="bell", TERM_PROGRAM="WezTerm")))
    t.check("off: nothing", not re.search(bell + b"|" + nine, told(KD_NOTIFY="off")))
    t.check("with focus: nothing", not re.search(bell + b"|" + nine, told(focused=True, KD_NOTIFY="osc")))
    home.program("notify-send", 'echo "$@" >>"$HOME/notified"\n')
    told(KD_NOTIFY="native", DISPLAY=":9")
    wait("notify-send", (home.path / "notified").exists)
    t.has("native: notify-send", (home.path / "notified").read_text(), "kd: council-", "every member has answered")
    data = told(TMUX="/tmp/none,1,0", KD_NOTIFY="osc")
    t.check("in tmux it is wrapped", re.search(rb"\x1bPtmux;\x1b\x1b\]9;council-[^\x07]*?\x1b\x1b\\\x1b\\", data), readable(data[-400:]))
    # A real tmux, and a real terminal around it that sees what tmux lets through.
    for passes in ("on", "off"):
        with Tmux(home, "chat", "--new", KD_NOTIFY="osc", options=[("allow-passthrough", passes), ("focus-events", "on")]) as chat:
            chat.shows("newline")
            with Pty(home, argv=["tmux", "-S", Tmux.socket, "attach", "-t", chat.name], TERM="xterm-256color") as outer:
                outer.shows("newline")
                outer.send("\x1b[O")
                time.sleep(0.3)
                chat.types(ESC + "[O")
                chat.types("q")
                chat.keys("Enter")
                chat.shows("Ann's answer.")
                if passes == "on":
                    wait("the notification outside of tmux", lambda: re.search(nine, outer.bytes()))
                    t.keep("the terminal around tmux got", readable(re.search(nine, outer.bytes())[0]))
                else:
                    time.sleep(1)
                t.equal(f"allow-passthrough {passes}: whether the terminal around tmux gets OSC 9", bool(re.search(nine, outer.bytes())), passes == "on")
            chat.leaves(t)
    home = Home(t, {"ann": [[700, *fails]], "bob": [["Bob's answer."]]})
    t.check("a failed member is told", re.search(rb"some members answered, some failed", told(KD_NOTIFY="osc")))
    home = Home(t, {"ann": [[700, *fails]]})
    t.check("a failed round is told", re.search(rb"no member could answer", told(KD_NOTIFY="osc")))
    home = Home(t, {"ann": [["Ann's answer."]]})
    (home.path / "outside.txt").write_text("x")
    (home.work / ".env").write_text("KEY=1")
    with Pty(home, KD_NOTIFY="osc") as chat:
        chat.shows("newline")
        chat.send("\x1b[O")
        chat.send("look at @.env\r")
        chat.shows("y: yes")
        time.sleep(0.4)
        t.check("a question that waits for you is told", re.search(rb"\x1b\]9;[^\x1b]*\x1b\\", chat.bytes()), readable(chat.bytes()[-600:]))


@line(16, "--plain, ACCESSIBLE=1, TERM=dumb: lines that are only appended, each with its speaker, without escapes or boxes")
def plain(t):
    home = Home(t, {"ann": [["First line.\n\nSecond.", 300]], "bob": [["Bob."]]})
    for name, args, env in (("--plain", ["--plain"], {}), ("ACCESSIBLE=1", [], {"ACCESSIBLE": "1"}), ("TERM=dumb", [], {"TERM": "dumb"})):
        with Pty(home, "chat", "--new", *args, **env) as chat:
            chat.shows("/help lists the commands")
            chat.send("hello\r")
            chat.shows("your turn (2 answers)")
            chat.send("/quit\r")
            t.equal(f"{name}: leaves with 0", chat.ends(), 0)
            text = chat.text()
            if name != "TERM=dumb":
                # Names may be coloured.
                text = re.sub(r"\x1b\[[0-9;]*m", "", text)
            t.check(f"{name}: no escapes, no repainting", not re.search(r"\x1b|\r(?!\n)|\x08", text), readable(text))
            t.check(f"{name}: no boxes, no spinner", not re.search("[┌│└─⠋⠙]", text))
            said = [row for row in text.replace("\r", "").splitlines() if row.strip() and row not in ("hello", "/quit")]
            wrong = [row for row in said if not re.match(r"(kd: |king +\||ann( +\||:| !)|bob( +\||:| !)|go on: )", row)]
            t.equal(f"{name}: every line begins with its speaker", wrong, [])
            t.check(f"{name}: one line for asked and one for done", text.count("ann: asked") == 1 and text.count("ann: done") == 1)
            t.keep(name, text.replace("\r", ""))
    next(home.work.rglob("state.json")).unlink()
    with Pty(home, "chat", "--plain") as chat:
        chat.shows("type a number or an id")
        t.check("choices are numbered lines", re.search(r"^kd: +1[ .)]", chat.text().replace("\r", ""), re.M), chat.text())
        chat.send("1\r/quit\r")
        t.equal("a number chooses", chat.ends(), 0)
        t.keep("numbered choices", chat.text().replace("\r", ""))
