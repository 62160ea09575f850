"""Programs that git would run for the folder: filters, fsmonitor, hooks, pagers, in every place that git reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Callable, Iterator

from commands import BY_NAME
from harness import Box, Case, Held
from injection import landlock

# What the agent of the user says: one whole answer of Codex.
ANSWER = "".join(
    json.dumps(one) + "\n"
    for one in (
        {"type": "thread.started", "thread_id": "t-1"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "I am prog."}},
        {"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 2}},
    )
)
COMMANDS = ["ask", "council review", "doctor", "ask --continue", "think", "council status"]


def user(box: Box) -> None:
    (box.top / "answer").write_text(ANSWER)
    prog = box.program("prog", f"cat > /dev/null; cat '{box.top}/answer'\n")
    box.own((), council={"members": ["prog"], "conclude": False}, agents={"prog": {"backend": "command", "dialect": "codex", "command": [str(prog)]}})


def script(box: Box, what: str) -> str:
    path = box.top / f"planted-{''.join(c if c.isalnum() else '-' for c in what)}.sh"
    path.write_text(f"#!/bin/sh\necho '{what}' >> '{box.canary}/ran'\ncat\n")
    path.chmod(0o755)
    return str(path)


# Lines of `.git/config`, and files beside it. `%` is the planted program.
CONFIGS: dict[str, tuple[str, dict[str, str]]] = {
    "filter.clean": ("[filter \"x\"]\n\tclean = %\n", {".gitattributes": "* filter=x\n"}),
    "filter.smudge": ("[filter \"x\"]\n\tsmudge = %\n", {".gitattributes": "* filter=x\n"}),
    "filter.process": ("[filter \"x\"]\n\tprocess = %\n\trequired = true\n", {".gitattributes": "* filter=x\n"}),
    "filter.clean, required": ("[filter \"x\"]\n\tclean = %\n\trequired = true\n", {".gitattributes": "* filter=x\n"}),
    "filter with = in its name": ("[filter \"x=y\"]\n\tclean = %\n", {".gitattributes": "* filter=x=y\n"}),
    "filter with a dot in its name": ("[filter \"x.y.z\"]\n\tclean = %\n", {".gitattributes": "* filter=x.y.z\n"}),
    "filter in capitals": ("[FILTER \"XyZ\"]\n\tCLEAN = %\n", {".gitattributes": "* filter=XyZ\n"}),
    "filter named lfs": ("[filter \"lfs\"]\n\tclean = %\n\tprocess = %\n", {".gitattributes": "* filter=lfs\n"}),
    "filter in info/attributes": ("[filter \"x\"]\n\tclean = %\n", {".git/info/attributes": "* filter=x\n"}),
    "filter in an included file": ("[include]\n\tpath = more\n", {".git/more": "[filter \"x\"]\n\tclean = %\n", ".gitattributes": "* filter=x\n"}),
    "filter in a file included by a condition": ("[includeIf \"gitdir:**\"]\n\tpath = more\n", {".git/more": "[filter \"x\"]\n\tclean = %\n", ".gitattributes": "* filter=x\n"}),
    "filter in config.worktree": ("[extensions]\n\tworktreeConfig = true\n", {".git/config.worktree": "[filter \"x\"]\n\tclean = %\n", ".gitattributes": "* filter=x\n"}),
    "filter by core.attributesFile": ("[core]\n\tattributesFile = .git/attrs\n[filter \"x\"]\n\tclean = %\n", {".git/attrs": "* filter=x\n"}),
    "2,000 filters": ("".join(f"[filter \"x{n}\"]\n\tclean = %\n" for n in range(2000)), {".gitattributes": "* filter=x1999\n"}),
    "core.fsmonitor": ("[core]\n\tfsmonitor = %\n", {}),
    "core.fsmonitor, version 2": ("[core]\n\tfsmonitor = %\n\tfsmonitorHookVersion = 2\n", {}),
    "core.fsmonitor in an included file": ("[include]\n\tpath = more\n", {".git/more": "[core]\n\tfsmonitor = %\n"}),
    "core.hooksPath": ("[core]\n\thooksPath = .git/planted\n", {f".git/planted/{name}": "#!%" for name in ("post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction", "pre-auto-gc")}),
    "hooks": ("", {f".git/hooks/{name}": "#!%" for name in ("post-index-change", "post-checkout", "reference-transaction", "pre-commit", "fsmonitor-watchman")}),
    "diff.external": ("[diff]\n\texternal = %\n", {}),
    "diff driver": ("[diff \"x\"]\n\tcommand = %\n\ttextconv = %\n", {".gitattributes": "* diff=x\n"}),
    "textconv, cached": ("[diff \"x\"]\n\ttextconv = %\n\tcachetextconv = true\n", {".gitattributes": "* diff=x\n"}),
    "core.pager": ("[core]\n\tpager = %\n[pager]\n\tdiff = %\n\tstatus = %\n\tlog = %\n", {}),
    "alias": ("[alias]\n\tstatus = !%\n\tdiff = !%\n\trev-parse = !%\n\tmerge-base = !%\n\tls-files = !%\n", {}),
    "core.editor and askPass": ("[core]\n\teditor = %\n\taskPass = %\n[sequence]\n\teditor = %\n", {}),
    "core.sshCommand, promisor": ("[core]\n\tsshCommand = %\n\tgitProxy = %\n[remote \"o\"]\n\turl = ssh://h/x\n\tpromisor = true\n\tpartialclonefilter = blob:none\n[extensions]\n\tpartialClone = o\n", {}),
    "remote ext::": ("[remote \"o\"]\n\turl = ext::% x\n\tpromisor = true\n[protocol \"ext\"]\n\tallow = always\n[extensions]\n\tpartialClone = o\n", {}),
    "remote uploadpack": ("[remote \"o\"]\n\turl = .\n\tuploadpack = %\n\tpromisor = true\n[extensions]\n\tpartialClone = o\n", {}),
    "credential.helper": ("[credential]\n\thelper = !%\n", {}),
    "gpg.program": ("[gpg]\n\tprogram = %\n[log]\n\tshowSignature = true\n", {}),
    "core.alternateRefsCommand": ("[core]\n\talternateRefsCommand = %\n", {".git/objects/info/alternates": "../../x\n"}),
    "core.worktree at home": ("[core]\n\tworktree = ../../..\n[filter \"x\"]\n\tclean = %\n", {".git/info/attributes": "* filter=x\n"}),
    "reftable": ("[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefstorage = reftable\n[core]\n\tfsmonitor = %\n[alias]\n\tsymbolic-ref = !%\n", {".git/HEAD": "ref: refs/heads/.invalid\n"}),
    "trace2": ("[trace2]\n\teventTarget = %home/trace\n\tnormalTarget = %home/trace\n", {}),
    "index.fsmonitor untracked cache": ("[core]\n\tuntrackedCache = true\n\tfsmonitor = true\n[fsmonitor]\n\tsocketDir = .git\n", {}),
}


def nothing_runs(box: Box, cwd: Path | None = None, commands: list[str] = COMMANDS) -> str | None:
    """Runs every command, and tells the first that started something, sent something or changed something outside."""
    for name in commands:
        BY_NAME[name].run(box, cwd=cwd)
        if harm := box.harm():
            return f"kd {name}: {harm}"
    return box.costs()


def brought(what: str) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        user(box)
        program = script(box, what)
        lines, files = CONFIGS[what]
        fill = lambda text: text.replace("%home", str(box.home)).replace("%", program)
        box.folder(box.work, {"a.txt": "one\n", "b.txt": "two\n"})
        box.git("init", "-q")
        box.git("add", ".")
        box.git("commit", "-q", "-m", "first")
        box.git("checkout", "-q", "-b", "feature")
        (box.work / "a.txt").write_text("three\n")
        box.git("commit", "-q", "-am", "second")
        (box.work / "b.txt").write_text("four\n")
        with (box.work / ".git" / "config").open("a") as config:
            config.write(fill(lines))
        for name, text in files.items():
            path = box.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(Path(program).read_text() if text == "#!%" else fill(text))
            path.chmod(0o755)
        (box.work / "b.txt").write_text("five\n")
        box.before()
        return nothing_runs(box)

    return attack


def submodule(which: str) -> Callable[[Box], str | None]:
    """`git status` looks into submodules, with the configuration that they bring."""

    def attack(box: Box) -> str | None:
        user(box)
        program = script(box, which)
        sub = box.work / "sub"
        box.folder(sub, {"s.txt": "one\n"})
        box.git("init", "-q", cwd=sub)
        box.git("add", ".", cwd=sub)
        box.git("commit", "-q", "-m", "first", cwd=sub)
        box.folder(box.work, {"a.txt": "one\n", ".gitmodules": '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n'})
        box.git("init", "-q")
        box.git("-c", "advice.addEmbeddedRepo=false", "add", ".")
        box.git("commit", "-q", "-m", "first")
        with (sub / ".git" / "config").open("a") as config:
            config.write({"core.fsmonitor": f"[core]\n\tfsmonitor = {program}\n", "filter.clean": f"[filter \"own\"]\n\tclean = {program}\n", "hooks": f"[core]\n\thooksPath = {box.top}/planted-hooks\n"}[which])
        if which == "filter.clean":
            (sub / ".git" / "info").mkdir(exist_ok=True)
            (sub / ".git" / "info" / "attributes").write_text("* filter=own\n")
        (sub / "s.txt").write_text("two\n")
        (box.work / "a.txt").write_text("two\n")
        box.before()
        return nothing_runs(box)

    return attack


def bare_inside(box: Box) -> str | None:
    """A bare repository among the files of a clone: whoever stands in it is in its configuration's hands."""
    user(box)
    program = script(box, "bare")
    made = box.top / "made"
    box.folder(made, {"a.txt": "one\n"})
    box.git("init", "-q", cwd=made)
    box.git("add", ".", cwd=made)
    box.git("commit", "-q", "-m", "first", cwd=made)
    docs = box.top / "origin" / "docs"
    docs.parent.mkdir()
    (made / ".git").rename(docs)
    box.folder(docs, {
        "a.txt": "two, and longer\n", "info/attributes": "* filter=x\n", "refs/keep": "",
        "config": f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = {program}\n[filter \"x\"]\n\tclean = {program}\n",
    })
    box.cloned({})
    box.before()
    return nothing_runs(box, cwd=box.work / "docs")


def program_in_the_folder(name: str, path: str = "") -> Callable[[Box], str | None]:
    """A program of the folder is not taken for one on the PATH, even where the PATH has entries that mean the folder."""

    def attack(box: Box) -> str | None:
        user(box)
        if path and name != "git":
            box.own((), council={"members": [name], "conclude": False})
        box.env["PATH"] = path + box.env["PATH"]
        text = Path(script(box, name)).read_text()
        box.cloned({f"{folder}{name}": text for folder in ("", "bin/", "node_modules/.bin/", ".kd/bin/")})
        for planted in box.work.rglob(name):
            planted.chmod(0o755)
        box.before()
        return nothing_runs(box, commands=["ask", "doctor", "council review", "forum run-once", "model list"])

    return attack


def python_modules(box: Box) -> str | None:
    """A user without a model: Python, which fetches the built-in one, imports nothing from the folder."""
    # Nothing answers at either place, and pip does not try for long.
    box.env |= {"HF_ENDPOINT": "http://127.0.0.1:9", "PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0", "PIP_TIMEOUT": "1"}
    del box.env["KD_OFFLINE"]
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        del box.env[key]
    text = f"open({str(box.canary / 'ran')!r}, 'a').write('a module of the folder\\n')\n"
    names = ("pip", "zipfile", "shutil", "runpy", "pkgutil", "sitecustomize", "usercustomize")
    box.cloned({f"{name}.py": text for name in names} | {"pip/__init__.py": text, "pip/__main__.py": text})
    box.before()
    for words in (("ask", "hello"), ("model", "pull")):
        run = box.kd(*words)
        if "pip" not in run.err:
            raise RuntimeError(f"kd {' '.join(words)} did not try pip: {run.err[-300:]}")
        if harm := box.harm():
            return f"kd {' '.join(words)}: {harm}"
    return box.costs()


# Tries to read a key, and to write where programs of the user and of kd look.
TRIES = """#!/bin/sh
cat > /dev/null
cat "$HOME/.ssh/id_ed25519"
for at in .bashrc .local/bin/git .local/state/x .config/x .ssh/x .codex/config.toml; do echo x > "$HOME/$at"; done
ls /dev/pts /dev/shm
echo end
"""


def sandbox(files: dict[str, str], command: list[str], backend: str = "command") -> Callable[[Box], str | None]:
    """What a folder brings opens nothing to a member in the sandbox, even where the user allowed its command."""

    def attack(box: Box) -> str | None:
        if not landlock():
            raise Held("this kernel has no Landlock")
        del box.env["KD_COUNCIL_SANDBOX"]
        for made in (".local/bin", ".codex"):
            (box.home / made).mkdir()
        own = box.program("own", TRIES.removeprefix("#!/bin/sh\n"))
        if command:
            config = {"council": {"members": ["m"], "conclude": False}, "agents": {"m": {"backend": backend, "dialect": "text", "command": command}}}
            box.unpacked({".kd/config.json": config, **files})
        else:
            box.own((), council={"members": ["m"], "conclude": False}, agents={"m": {"backend": "command", "dialect": "text", "command": [str(own)]}})
            box.unpacked(files)
        for path in box.work.rglob("tools/*"):
            path.chmod(0o755)
        box.before()
        if command:
            box.kd("trust", "--yes")
        run = box.kd("ask", "hello")
        if "end" not in run.out + run.err:
            raise RuntimeError(f"the member did not run: {run.told()} {run.out[-300:]}")
        if "the user's key" in run.out + run.err:
            return "the member read the user's key"
        return box.harm() or box.costs()

    return attack


def cases() -> Iterator[Case]:
    for to in ("/x/y", "/", "../../.ssh/a/b", "../../../../../../x/y/"):
        yield Case(f"programs/sandbox/gitdir {to.replace('/', '|')}", "a `.git` file opens files to the sandbox", sandbox({".git": f"gitdir: {to}\n"}, []))
    for word in ("/", "~/"):
        yield Case(f"programs/sandbox/argument {word.replace('/', '|')}", "an argument opens files to the sandbox", sandbox({"tools/x": TRIES}, ["./tools/x", word]))
    for name in ("local", "config", "ssh", "codex-acp"):
        yield Case(f"programs/sandbox/name {name}", "the name of a program opens files to it", sandbox({f"tools/{name}": TRIES}, [f"./tools/{name}"]))
        yield Case(f"programs/sandbox/word {name}", "a word after the program opens files to it", sandbox({"tools/x": TRIES}, ["./tools/x", name]))
    for what in CONFIGS:
        yield Case(f"programs/git/{what}", "git runs what the folder's configuration names", brought(what))
    for which in ("core.fsmonitor", "filter.clean"):
        yield Case(f"programs/submodule/{which}", "git runs what a submodule's configuration names", submodule(which))
    yield Case("programs/a bare repository in a clone", "git runs what a folder of a clone names", bare_inside)
    for name in ("git", "claude", "codex", "sh"):
        yield Case(f"programs/in the folder/{name}", "a program of the folder is run for one on the PATH", program_in_the_folder(name))
    for name in ("git", "claude", "codex"):
        for path in (".:", ":", "bin:"):
            would = "a program of the folder is run because the PATH has an entry that means the folder"
            yield Case(f"programs/on the PATH/{path}{name}", would, program_in_the_folder(name, path))
    yield Case("programs/modules of Python", "Python imports a module of the folder", python_modules)
