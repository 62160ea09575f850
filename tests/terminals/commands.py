"""Lines 17 to 23, and 25: the command line."""
import json, os, pathlib, re, shutil, signal, subprocess, tempfile, time
from stage import Home, Pty, Skipped, Tmux, has, line, wait

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fails(kind="auth"):
    return [{"fail": {"kind": kind, "message": f"scripted {kind}"}}]


@line(17, "In a pipe kd starts no screen; stdin is the prompt or the context; results on stdout, everything else on stderr")
def pipes(t):
    home = Home(t, {"ann": [["Ann's answer."]]})
    code, out, err = home.run()
    t.check("kd alone in a pipe prints the help and fails with 2", code == 2 and "Usage" in out + err and "\x1b" not in out + err, f"{code} {out[:200]}{err[:200]}")
    code, out, err = home.run("ask", "-", given="The question?\n")
    t.equal("- reads the question", (code, home.says()), (0, ["The question?"]))
    t.check("the answers are on stdout, as one document", out.startswith("# The question?") and "Ann's answer." in out and "go on" not in out and "asked" not in out, out)
    t.has("the progress and what to type next are on stderr", err, "ann: asked", "go on:", "council-")
    t.keep("stdout", out)
    t.keep("stderr", err)
    home.run("ask", "Is this safe?", given="diff --git a b\n")
    t.has("stdin is context below a question", "\n".join(m for f in [home] for m in f.says()) + "\n".join(x.read_text() for x in home.work.rglob("0001-king.md")), "Is this safe?", "diff --git a b")
    code, out, err = home.run("chat", given="hello\n/quit\n")
    t.check("kd chat in a pipe prints lines", code == 0 and "ann  | Ann's answer." in out.replace("ann |", "ann  |") and "\x1b" not in out + err, out + err)
    code, out, err = home.run("ask", "-q", "again")
    t.equal("--quiet leaves stderr empty", err, "")


def valid(t, what, name, text, lines=False):
    """Checks an output against a published schema."""
    try:
        values = [json.loads(row) for row in text.splitlines()] if lines else [json.loads(text)]
    except ValueError as error:
        return t.check(what, False, f"{error}: {text[:300]}")
    try:
        import jsonschema
    except ImportError:
        return t.check(f"{what} (the schema was not checked: no module jsonschema)", True)
    schema = json.loads((ROOT / f"docs/schemas/{name}.schema.json").read_text())
    wrong = [error.message for value in values for error in jsonschema.Draft202012Validator(schema).iter_errors(value)]
    return t.check(f"{what}: {name}.schema.json", values and not wrong, str(wrong[:2]))


def listed(kd, path=()):
    """Every command that can be typed, and its help."""
    text = subprocess.run([kd, *path, "--help"], text=True, capture_output=True, env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"}).stdout
    usages = re.findall(r"^(?:Usage:| {6}) (kd .*)$", text, re.M)
    found = [(path, text)] if path and any("COMMAND>" not in usage for usage in usages) else []
    if any("COMMAND>" in usage for usage in usages):
        sections = re.findall(r"^([A-Z][a-z ]*):\n((?:  .*\n)+)", text, re.M)
        rows = "".join(rows for name, rows in sections if name not in ("Global options", "Examples"))
        for name in re.findall(r"^  ([a-z][a-z-]*) ", rows, re.M):
            if name != "help":
                found += listed(kd, (*path, name))
    return found


@line(18, "--json and --jsonl; events with v, seq and ts; published schemas; the thread's id in every output and on exit")
def outputs(t):
    home = Home(t)
    for what, name, args in (
        ("ask", "ask", ["ask", "q"]), ("think", "ask", ["think", "q"]), ("show", "show", ["show"]), ("list", "list", ["list"]),
        ("status", "status", ["status"]), ("fork", "fork", ["fork"]), ("export", "export", ["export"]), ("doctor", "doctor", ["doctor"]),
        ("config show", "settings", ["config", "show"]), ("config check", "config-check", ["config", "check"]),
        ("config path", "config-path", ["config", "path"]), ("cost", "cost", ["cost"]), ("prices", "prices", ["prices"]), ("fsck", "fsck", ["fsck"]),
        ("marks", "marks", ["marks"]), ("trust --list", "trust-list", ["trust", "--list"]), ("model list", "models", ["model", "list"]),
        ("memory show", "memory", ["memory", "show"]), ("vote rules", "rules", ["vote", "rules"]), ("batch list", "batch-list", ["batch", "list"]),
        ("deliberate --dry-run", "deliberate-plan", ["deliberate", "--dry-run", "A or B?"]), ("forum list", "forum-list", ["forum", "list"]),
        ("an error", "error", ["show", "nothing"]),
    ):
        code, out, err = home.run(*args, "--json")
        valid(t, f"{what} --json", name, out)
        if what in ("ask", "think", "show", "list", "status", "fork", "export"):
            t.has(f"{what} --json names the thread", out, "council-")
        if what == "ask":
            t.keep("kd ask --json", out)
    for args in (["ask", "q"], ["think", "q"], ["deliberate", "Is 17 prime? yes or no"]):
        code, out, err = home.run(*args, "--jsonl")
        valid(t, f"{args[0]} --jsonl", "record", out, lines=True)
        rows = [json.loads(row) for row in out.splitlines()]
        t.check(f"{args[0]} --jsonl: every event has v, seq, ts, in order", all({"v", "seq", "ts"} <= set(row) for row in rows)
                and [row["seq"] for row in rows] == sorted(row["seq"] for row in rows), str(rows[:1]))
        t.check(f"{args[0]} --jsonl: the first event names the thread", "council-" in out.splitlines()[0])
    code, out, err = home.run("chat", "--jsonl", "--new", given='{"say": "hello\\nthere"}\n')
    valid(t, "chat --jsonl", "record", out, lines=True)
    t.keep("kd chat --jsonl", out[:3000])
    without = [" ".join(path) for path, text in listed(t.kd) if not re.search(r"--json|--jsonl|--format", text)]
    # The reasons are in crates/kd/src/args/outputs.rs, whose test fails for a command that is in neither list.
    reasons = set(re.findall(r'^    \("([a-z -]+)", ', (ROOT / "crates/kd/src/args/outputs.rs").read_text(), re.M))
    t.equal("every other command has JSON or a reason not to", sorted(set(without) - reasons), [])
    t.keep("commands without JSON", "\n".join(sorted(without)))
    with Tmux(home, "chat", "--new") as chat:
        chat.shows("newline")
        t.keep("on exit the id and how to go on", chat.leaves(t))


@line(19, "--continue, --thread ID, --fork, -o FILE, --output-schema, all together")
def threads(t):
    home = Home(t, {"ann": [["Ann says 6."], ['{"answer": 6}']]})
    home.run("ask", "What is 2+2?")
    first = home.threads()[0].name
    home.run("ask", "-c", "And 2+3?")
    t.equal("-c goes on in the current thread", (len(home.threads()), len(home.messages())), (1, 4))
    home.run("ask", "--thread", first, "And?")
    t.equal("--thread goes on in the named one", (len(home.threads()), len(home.messages())), (1, 6))
    home.run("ask", f"--continue={first.removeprefix('council-')[:3]}", "And?")
    t.equal("--continue=PREFIX too", (len(home.threads()), len(home.messages())), (1, 8))
    code, out, err = home.run("ask", "--fork", "In the fork")
    t.equal("--fork goes on in a fork of the current thread", (code, len(home.threads())), (0, 2))
    other = next(thread for thread in home.threads() if thread.name != first)
    t.equal("the old thread stays", len(list((home.threads()[0].parent / first).glob("[0-9]*.md"))), 8)
    t.equal("the fork has its messages and the new ones", len(list(other.glob("[0-9]*.md"))), 10)
    t.keep("kd ask --fork", out + err)
    home.run("ask", "--resume", first, "Resumed")
    t.equal("--resume ID is --thread ID", len(list((home.threads()[0].parent / first).glob("[0-9]*.md"))), 10)
    schema = home.work / "schema.json"
    schema.write_text('{"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"], "additionalProperties": false}')
    code, out, err = home.run("ask", f"--fork={first}", "-o", "answer.md", "--output-schema", "schema.json", "--json", "All together")
    t.equal("--fork=ID, -o, --output-schema and --json together: exit code", code, 0)
    t.check("-o wrote the file", (home.work / "answer.md").exists() and "6" in (home.work / "answer.md").read_text())
    value = json.loads(out)
    t.equal("the output fits the schema", value.get("output"), {"answer": 6})
    t.equal("there are three threads", len(home.threads()), 3)
    t.keep("all together", out + err)
    code, out, err = home.run("chat", first, given="/quit\n")
    t.has("kd chat ID resumes", out + err, first)


@line(20, "Documented exit codes")
def codes(t):
    home = Home(t)
    documented = dict(re.findall(r"^\s+(\d+)\s+(.*)$", home.run("help", "exit-codes")[1], re.M))
    t.keep("kd help exit-codes", "\n".join(f"{code:>4} {text}" for code, text in documented.items()))
    yes, no = '{"answer": "yes", "reason": "r", "confidence": 0.9}', '{"answer": "no", "reason": "r", "confidence": 0.9}'
    cases = {
        "0": (["ask", "q"], {"ann": [["A."]]}), "1": (["show", "nothing"], {"ann": [["A."]]}), "2": (["ask", "--wrong"], {"ann": [["A."]]}),
        "3": (["ask", "q"], {"ann": None}), "4": (["deliberate", "--max-calls", "3", "Is 17 prime? yes or no"], None),
        "5": (["ask", "q"], {"ann": [["A."]], "bob": [fails()]}), "6": (["ask", "q"], {"ann": [fails()], "bob": [fails()]}),
        "7": (["deliberate", "--protocol", "vote", "Is it so? yes or no"], {"ann": [[yes]], "bob": [[no]], "cyd": [[yes]], "dan": [[no]]}),
        "124": (["ask", "--timeout", "1", "q"], {"ann": [[60_000]]}),
    }
    for code, (args, scripts) in cases.items():
        home = Home(t, {name: runs or [["x"]] for name, runs in (scripts or {"ann": [[yes]], "bob": [[yes]], "cyd": [[yes]]}).items()})
        if scripts and None in scripts.values():
            home.settings["agents"]["ann"] = {"backend": "command", "dialect": "text", "command": ["/nonexistent/program"]}
            home.save()
        got, out, err = home.run(*args)
        t.equal(f"{code}: {documented.get(code)} (kd {' '.join(args)})", str(got), code)
    home = Home(t, {"ann": [["half", 60_000]]})
    running = subprocess.Popen([t.kd, "ask", "q"], cwd=home.work, env=home.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait("the stream", lambda: list(home.work.rglob(".stream*")) or list(home.work.rglob("0001-king.md")))
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    t.equal("130: interrupted", running.returncode, 130)
    t.check("every code that was tried is documented", set(cases) | {"130"} <= set(documented))


@line(21, "--dry-run with members, calls and price; doctor with a real call; config check and show --origin; --version; examples in the help")
def looking(t):
    home = Home(t)
    code, out, err = home.run("deliberate", "--dry-run", "A or B?")
    t.has("deliberate --dry-run", out + err, "ann", "bob", "call")
    t.equal("it asks nobody", home.threads(), [])
    t.keep("kd deliberate --dry-run", out + err)
    code, out, err = home.run("doctor")
    t.has("kd doctor", out + err, "ann", "bob")
    t.keep("kd doctor", out + err)
    code, out, err = home.run("config", "check")
    t.equal("config check", code, 0)
    home.config.write_text('{"council": {"membrs": []}}')
    code, out, err = home.run("config", "check")
    t.check("config check names the mistake, its file and the right name", code == 2 and "config.json" in out + err and "members" in out + err, out + err)
    t.keep("kd config check", out + err)
    home.save()
    code, out, err = home.run("config", "show", "council.members", "--origin")
    t.has("config show --origin", out, "config.json")
    t.keep("kd config show --origin", out)
    code, out, err = home.run("--version")
    t.check("--version", code == 0 and re.match(r"kd \d+\.\d+\.\d+", out), out)
    for command in ("ask", "chat", "think", "deliberate", "fork", "config show"):
        t.has(f"kd {command} --help has examples", home.run(*command.split(), "--help")[1], "Examples:")


@line(22, "Completions for five shells and man pages from the same definition; did-you-mean")
def shells(t):
    home = Home(t)
    checks = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"], "elvish": ["elvish", "-compileonly"], "powershell": None}
    for shell, command in checks.items():
        code, out, err = home.run("completions", shell)
        t.check(f"{shell}: completions name commands and options", code == 0 and "deliberate" in out and "output-schema" in out and "fork" in out, err)
        file = home.path / f"kd.{shell}"
        file.write_text(out)
        if command and has(command[0]):
            done = subprocess.run([*command, str(file)], text=True, capture_output=True)
            t.check(f"{shell} reads them", done.returncode == 0, done.stderr)
        else:
            t.skip(f"{shell} reads them", f"no {command[0] if command else 'pwsh'} here")
    script = f'PATH={pathlib.Path(t.kd).parent}:$PATH; source {home.path}/kd.bash; COMP_WORDS=(kd delib); COMP_CWORD=1; _kd kd delib kd; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], text=True, capture_output=True)
    t.equal("bash completes kd delib", done.stdout.split(), ["deliberate"])
    code, out, err = home.run("man", str(home.path / "man"))
    pages = sorted(page.name for page in (home.path / "man").glob("*.1"))
    commands = {"kd-" + "-".join(path) + ".1" for path, _ in listed(t.kd)}
    t.check("man pages: one for each command", code == 0 and commands <= set(pages), f"missing {sorted(commands - set(pages))[:8]}")
    t.keep("man pages", "\n".join(pages))
    formatter = next((words for words in (["man", "--warnings", "-l"], ["groff", "-man", "-Tutf8", "-ww"], ["mandoc", "-Tlint"]) if has(words[0])), None)
    if formatter:
        for page in ("kd.1", "kd-ask.1", "kd-config-show.1"):
            done = subprocess.run([*formatter, str(home.path / "man" / page)], text=True, capture_output=True, env={**os.environ, "MANWIDTH": "80", "LANG": "C.UTF-8"})
            t.check(f"{formatter[0]} shows {page}", done.returncode == 0 and "NAME" in done.stdout and not done.stderr, done.stderr[:300])
        t.check("the lines of examples are kept", "  kd config show agents.claude --origin\n" in re.sub(".\b", "", done.stdout), done.stdout)
        t.keep(page, re.sub(".\b", "", done.stdout)[:2500])
    else:
        t.skip("man pages are formatted", "no man, groff or mandoc here")
    for args, wanted in ((["aks", "q"], "kd ask"), (["ask", "--jsno", "q"], "--json"), (["deliberat"], "deliberate"), (["chat", "--resume"], "kd chat")):
        code, out, err = home.run(*args)
        t.check(f"kd {' '.join(args)}: did you mean {wanted}", code == 2 and wanted in err, err)
        t.keep(f"kd {' '.join(args)}", err)


@line(23, "Standard folders; built-in < user < project < KD_* < flags, and which won; keys from the environment or a command, private files")
def layers(t):
    home = Home(t)
    folders = {name: home.path / f"x-{name.lower()}" for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    xdg = {f"XDG_{name}_HOME": str(folder) for name, folder in folders.items()}
    (folders["CONFIG"] / "kd").mkdir(parents=True)
    shutil.copy(home.config, folders["CONFIG"] / "kd/config.json")
    home.config.unlink()
    code, out, err = home.run("ask", "q", **xdg)
    t.equal("it reads XDG_CONFIG_HOME", code, 0)
    t.check("it writes below XDG_STATE_HOME or XDG_DATA_HOME", any(folder.rglob("*") for folder in (folders["STATE"], folders["DATA"])))
    made = [str(path.relative_to(home.path)) for path in home.path.rglob("*") if ".local" in path.parts or ".cache" in path.parts]
    t.equal("and nothing into the default folders", made, [])
    home = Home(t)
    secret = "sk-test-0123456789abcdefghijkl"

    def origin(*flags, **env):
        code, out, err = home.run("config", "show", "council.timeout", "--origin", *flags, **env)
        return out.strip()
    rows = [("built-in", origin())]
    home.run("config", "set", "--layer", "user", "council.timeout", "101")
    rows.append(("user", origin()))
    (home.work / ".kd").mkdir(exist_ok=True)
    (home.work / ".kd/config.json").write_text('{"council": {"timeout": 50}}')
    home.run("trust", "--yes")
    rows.append(("project", origin()))
    rows.append(("environment", origin(KD_COUNCIL_TIMEOUT="33")))
    t.keep("which layer won", "\n".join(f"{name}: {text}" for name, text in rows))
    for (name, text), wanted in zip(rows, (("600", "built-in"), ("101", "config.json"), ("50", ".kd/config.json"), ("33", "KD_COUNCIL_TIMEOUT"))):
        t.has(f"{name} wins", text, *wanted)
    home.settings["providers"] = {"svc": {"wire": "openai", "base_url": "http://127.0.0.1:9", "key_env": "MY_KEY"}}
    home.settings["agents"]["cyd"] = {"backend": "svc", "model": "m"}
    home.save()
    code, out, err = home.run("config", "check")
    t.equal("a key is named by its variable", code, 0)
    code, out, err = home.run("ask", "-m", "cyd", f"my key is {secret}", MY_KEY=secret, KD_LOG="trace", RUST_LOG="trace")
    written = "".join(path.read_text(errors="replace") for path in home.path.rglob("*") if path.is_file() and path.stat().st_size < 1 << 20 and os.access(path, os.R_OK))
    t.check("a key reaches no output, thread, log or error", secret not in out + err + written, out + err)
    private = [path for folder in (".local/state/kd", ".local/share/kd") for path in (home.path / folder).rglob("*") if path.is_file()]
    open_to_others = [str(path) for path in private if path.stat().st_mode & 0o077 and path.parent.stat().st_mode & 0o077]
    t.check("files of the user's own are private", private and not open_to_others, str(open_to_others))


@line(25, "No network but the configured endpoints: no socket beyond loopback and unix")
def network(t):
    home = Home(t, council={"members": ["ann", "bob"]})
    code, out, err = home.run("--version")
    commands = {"kd ask": (["ask", "q"], None), "kd think": (["think", "q"], None), "kd deliberate": (["deliberate", "Is 17 prime? yes or no"], None),
                "kd chat": (["chat", "--new"], "hello\n/think\n/quit\n"), "kd doctor": (["doctor"], None), "kd list": (["list"], None), "kd config check": (["config", "check"], None)}
    if has("strace"):
        for name, (args, given) in commands.items():
            trace = home.path / "trace"
            done = subprocess.run(["strace", "-f", "-qq", "-e", "trace=socket,connect,sendto,bind", "-o", str(trace), t.kd, *args], cwd=home.work,
                                  env=home.env(), input=given, text=True, capture_output=True, timeout=180)
            if "ptrace" in done.stderr and not trace.exists():
                t.skip("strace", done.stderr.strip())
                break
            calls = [row.split(None, 1)[1] for row in trace.read_text().splitlines() if re.search(r"(socket|connect|sendto|bind)\(", row)]
            # An address is named by connect, bind and sendto; sendto without one uses what was connected.
            named = [row for row in calls if not row.startswith("socket(") and "NULL, 0" not in row]
            beyond = [row for row in named if "AF_UNIX" not in row and "AF_NETLINK" not in row and not re.search(r'inet_addr\("127\.|"::1"', row)]
            t.equal(f"{name}: addresses beyond unix and loopback", beyond, [])
            if name != "kd doctor":
                # It looks for a model server on loopback.
                t.equal(f"{name}: sockets of the internet", [row for row in calls if "AF_INET" in row], [])
            t.keep(f"strace {name}", "\n".join(calls[:10]) or "no socket at all")
    else:
        t.skip("strace", "it is not installed")
    alone = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-rn"]
    if has("unshare") and subprocess.run([*alone, "true"], capture_output=True).returncode == 0:
        for name, (args, given) in commands.items():
            done = subprocess.run([*alone, t.kd, *args], cwd=home.work, env=home.env(), input=given, text=True, capture_output=True, timeout=120)
            t.check(f"{name}: works without any network", done.returncode in (0, 7) and "network" not in done.stderr, done.stdout + done.stderr)
        with Pty(home, argv=[*alone, t.kd, "chat", "--new"]) as chat:
            chat.shows("newline")
            chat.send("hello\r")
            chat.shows("Ann's answer.", "Bob's answer.")
            t.check("the screen of kd chat works without any network", True)
    else:
        t.skip("unshare -n", "no namespaces here")
