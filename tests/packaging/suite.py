"""Packs, installs and starts a program; see `run`."""

import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib

import loopback

ROOT = pathlib.Path(__file__).resolve().parents[2]
KD = pathlib.Path(os.environ["KD"])
TOOLS = pathlib.Path(os.environ["KD_TOOLS"])
MUST = os.environ.get("KD_MUST") == "1"
TARGETS = {
    "x86_64-unknown-linux-musl": "linux-x64",
    "aarch64-unknown-linux-musl": "linux-arm64",
    "x86_64-apple-darwin": "darwin-x64",
    "aarch64-apple-darwin": "darwin-arm64",
}
OWN = f"{ {'arm64': 'aarch64', 'amd64': 'x86_64'}.get(platform.machine(), platform.machine()) }-unknown-linux-musl"
SCRIPTED = {"council": {"members": ["echo"], "conclude": False}, "agents": {"echo": {"backend": "scripted", "model": "echo"}}}


class Skip(Exception):
    """What is missing to try a case."""


def run(command, home, check=0, env=None, **more):
    """Runs a command in an empty home; returns what it printed on both streams, and requires its exit code."""
    clean = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KD_OFFLINE": "1"} | (env or {})
    command = [str(word) for word in command]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=600, **more)
    said = done.stdout + done.stderr
    if check is not None and done.returncode != check:
        raise AssertionError(f"{' '.join(command)} exited with {done.returncode}, not {check}:\n{said}")
    return said


def expect(said, *words):
    for word in words:
        assert word in said, f"{word!r} is missing in:\n{said}"


def version():
    """The version of the workspace; the program must print the same."""
    said = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    expect(run([KD, "--version"], "/nowhere"), f"kd {said}")
    return said


def need(tool):
    found = shutil.which(tool)
    if not found:
        raise Skip(f"there is no {tool} here")
    return found


def configure(home, config):
    folder = home / ".config/kd"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))


def npm(at):
    """`npm install` from a registry takes the package of this platform only, and the command works."""
    need("npm")
    want = version()
    other = at / "other"
    other.write_text("not for this platform\n")
    programs = [f"{target}={KD if target == OWN else other}" for target in TARGETS]
    packages = at / "packages"
    run([ROOT / "packaging/npm/fill", want, packages, *programs], at)
    for folder in sorted(packages.iterdir()):
        run(["npm", "pack", "--silent", folder], at, cwd=at)
    names = [json.loads((folder / "package.json").read_text()) for folder in packages.iterdir()]
    assert not any("scripts" in manifest for manifest in names), "a package runs a script when it is installed"
    server = loopback.registry(at.glob("*.tgz"))
    home, work = at / "home", at / "work"
    home.mkdir(), work.mkdir()
    (home / ".npmrc").write_text(f"registry={server.url}/\naudit=false\nfund=false\nupdate-notifier=false\n")
    (work / "package.json").write_text('{"private": true}')
    run(["npm", "install", "@kingdom-council/kd"], home, cwd=work)
    taken = [path for path in server.seen if path.endswith(".tgz")]
    assert sorted(taken) == [f"/kingdom-council-kd-{want}.tgz", f"/kingdom-council-kd-{TARGETS[OWN]}-{want}.tgz"], taken
    expect(run(["npx", "kd", "--version"], home, cwd=work), f"kd {want}")
    # The exit code, the terminal's width and the arguments arrive.
    run(["npx", "kd", "nonsense"], home, cwd=work, check=2)
    launcher = work / "node_modules/.bin/kd"
    configure(home, SCRIPTED)
    expect(run([launcher, "ask", "Is @types/node text?"], home, cwd=work), "Is @types/node text?")
    # The launcher is not taken for another program called kd.
    path = f"{launcher.parent}:{os.environ['PATH']}"
    said = run(["kd", "doctor"], home, cwd=work, check=None, env={"PATH": path})
    assert str(launcher) not in said, said
    signals(launcher, home, work)
    # Installed for the user, and removed.
    run(["npm", "install", "--global", "--prefix", at / "global", "@kingdom-council/kd"], home)
    expect(run([at / "global/bin/kd", "--version"], home), f"kd {want}")
    run(["npm", "uninstall", "--global", "--prefix", at / "global", "@kingdom-council/kd"], home)
    assert not (at / "global/bin/kd").exists(), "npm uninstall leaves the command"
    # Without optional packages, the command says what to do.
    bare = at / "bare"
    bare.mkdir()
    (bare / "package.json").write_text('{"private": true}')
    run(["npm", "install", "--omit=optional", "@kingdom-council/kd"], home, cwd=bare)
    expect(run([bare / "node_modules/.bin/kd"], home, check=1), "is missing", "npm install --include=optional")
    server.close()


def signals(launcher, home, work):
    """A signal to the launcher reaches the program, and the launcher exits as the program would."""
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
    codes = []
    for program in [KD, launcher]:
        # It answers until its stdin ends.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started = subprocess.Popen([program, "mcp"], env=env, cwd=work, **pipes)
        started.stdin.write(json.dumps(hello).encode() + b"\n")
        started.stdin.flush()
        expect(started.stdout.readline().decode(), '"serverInfo"')
        children = pathlib.Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        started.send_signal(signal.SIGTERM)
        codes.append(started.wait(60))
    assert codes[0] == codes[1], codes
    assert len(children) == 1, children
    stat = pathlib.Path(f"/proc/{children[0]}/stat")
    # A zombie does not run.
    assert not stat.exists() or ") Z " in stat.read_text(), "the program runs on"


def wheel(at):
    """A wheel built by maturin installs the program, with pip, uv and pipx."""
    want = version()
    match = re.search(r"/(?:([a-z0-9_]+-[a-z0-9-]+)/)?(debug|release|dist)/kd$", str(KD))
    if not match:
        raise Skip(f"{KD} is not in cargo's target folder")
    target, profile = match.groups()
    wheels = at / "wheels"
    words = ["--profile", "dev" if profile == "debug" else profile, "--out", wheels]
    words += ["--target", target] if target else []
    # As in publish-pypi.yml; a program that links the C library of this machine gets a wheel for this machine.
    static = bool(target and target.endswith("musl"))
    fits = ["manylinux2014", "musllinux_1_2"] if static else ["linux"]
    for name in fits:
        words += ["--compatibility", name]
    built = subprocess.run([TOOLS / "maturin", "build", *words], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = wheels.glob("*.whl")
    print(f"  {file.name}, {file.stat().st_size / 2**20:.1f} MiB")
    expect(file.name, f"kingdom_council-{want}-py3-none-", *fits)
    home = at / "home"
    run([sys.executable, "-m", "venv", at / "venv"], home)
    run([at / "venv/bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", file], home)
    expect(run([at / "venv/bin/kd", "--version"], home), f"kd {want}")
    run([at / "venv/bin/pip", "uninstall", "--quiet", "--yes", "kingdom-council"], home)
    assert not (at / "venv/bin/kd").exists(), "pip uninstall leaves the command"
    offline = ["--offline", "--no-python-downloads", "--python", sys.executable]
    expect(run([TOOLS / "uvx", *offline, "--from", file, "kd", "--version"], home), f"kd {want}")
    run([TOOLS / "uv", "tool", "install", *offline, file], home)
    expect(run([home / ".local/bin/kd", "--version"], home), f"kd {want}")
    run([TOOLS / "uv", "tool", "uninstall", "kingdom-council"], home)
    # Its first use fetches a pip from the index.
    env = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    run([TOOLS / "pipx", "install", "--python", sys.executable, file], home, env=env)
    expect(run([home / ".local/bin/kd", "--version"], home), f"kd {want}")


def installer(at):
    """The shell installer puts the program of an archive in place, and refuses an archive with another checksum."""
    need("curl"), need("xz"), need("git")
    want = version()
    name = f"kd-{OWN}"
    release = at / "release"
    packed = release / name
    packed.mkdir(parents=True)
    shutil.copy(KD, packed / "kd")
    for file in ["README.md", "LICENSE", "CHANGELOG.md"]:
        shutil.copy(ROOT / file, packed / file)
    run(["tar", "--create", "--file", release / f"{name}.tar.xz", "--use-compress-program", "xz -0 -T0", name], at, cwd=release)
    scripts = write_installers(at, release / f"{name}.tar.xz")
    home = at / "home"
    home.mkdir()
    server = loopback.files(release)
    env = {"KD_DOWNLOAD_URL": server.url}
    said = run(["sh", scripts / "kd-installer.sh"], home, env=env)
    expect(said, "kd is installed. Next: kd doctor")
    installed = home / ".cargo/bin/kd"
    expect(run([installed, "--version"], home), f"kd {want}")
    expect((home / ".profile").read_text(), ".cargo/env")
    # One folder of your own, and no change to the files of the shell.
    alone = at / "alone"
    alone.mkdir()
    run(["sh", scripts / "kd-installer.sh"], alone, env=env | {"KD_UNMANAGED_INSTALL": str(alone / "bin")})
    expect(run([alone / "bin/kd", "--version"], alone), f"kd {want}")
    assert [file.name for file in alone.iterdir()] == ["bin"], list(alone.iterdir())
    # An archive that somebody changed.
    with open(release / f"{name}.tar.xz", "ab") as archive:
        archive.write(b"x")
    fresh = at / "fresh"
    fresh.mkdir()
    said = run(["sh", scripts / "kd-installer.sh"], fresh, check=1, env=env)
    expect(said, "checksum mismatch")
    assert not (fresh / ".cargo/bin/kd").exists()
    server.close()
    formula = (scripts / "kd.rb").read_text()
    expect(formula, "class Kd < Formula", *[f"kd-{target}.tar.xz" for target in TARGETS])


def write_installers(at, archive):
    """Has dist write the installers for an archive, in a copy of the repository; returns their folder."""
    copy = at / "copy"
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for file in filter(None, listed.split("\0")):
        if (ROOT / file).is_file():
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, copy / file)
    dist = TOOLS / "dist"
    cargo = {name: os.environ[name] for name in ["CARGO_HOME", "RUSTUP_HOME"] if name in os.environ}
    home = pathlib.Path.home()
    said = run([dist, "plan", "--output-format=json"], home, cwd=copy, env=cargo)
    plan = json.loads(said[said.index("{"):said.rindex("}") + 1])
    binstall(plan["artifacts"])
    hashed = subprocess.run(["sha256sum", archive], capture_output=True, text=True, check=True).stdout.split()[0]
    plan["artifacts"] = {archive.name: plan["artifacts"][archive.name] | {"checksums": {"sha256": hashed}}}
    out = copy / "target/distrib"
    out.mkdir(parents=True)
    # What the job that built the archive leaves for the job that writes the installers.
    (out / f"{OWN}-dist-manifest.json").write_text(json.dumps(plan))
    run([dist, "build", "--artifacts=global", "--output-format=json"], home, cwd=copy, env=cargo)
    return out


def root(at):
    """In a root with nothing but the program it answers, verifies HTTPS, and says what it misses."""
    want = version()
    inside = pathlib.Path("/home/kd")
    folder = at / "root"
    for name in ["bin", "work", "home/kd"]:
        (folder / name).mkdir(parents=True)
    shutil.copy(KD, folder / "bin/kd")
    for library in libraries():
        (folder / library.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library.resolve(), folder / library.relative_to("/"))
    enter = ["unshare", "--map-root-user", f"--root={folder}", "--wd=/work", "/bin/kd"]
    try:
        run([*enter, "--version"], inside)
    except AssertionError as why:
        raise Skip(f"no namespace with another root: {str(why).splitlines()[-1]}") from None

    def kd(*words, check=0, config=None, **more):
        configure(folder / inside.relative_to("/"), config or SCRIPTED)
        return run([*enter, *words], inside, check, {"PATH": "/bin"}, **more)

    expect(kd("--version"), f"kd {want}")
    expect(kd("ask", "Which one?"), "Which one?")
    expect(kd("list"), "Which one?")
    expect(kd("completions", "bash"), "_kd")
    # What cannot work without other programs says which one is missing.
    expect(kd("review", check=None), "error: ", "git")
    claude = {"agents": {"ann": {"backend": "claude_code"}}, "council": {"members": ["ann"]}}
    expect(kd("ask", "Which?", check=3, config=claude), "error: ", "claude")
    expect(kd("init", "--yes", check=3), "agent programs on the PATH")
    https(at, folder, kd)


def libraries():
    """The shared libraries of the program; none if it is static."""
    said = subprocess.run(["ldd", KD], capture_output=True, text=True).stdout
    return [pathlib.Path(path) for path in re.findall(r"(/\S+) \(0x", said)]


def https(at, folder, kd):
    """Servers are verified with the certificates in /etc/ssl/certs, and refused without."""
    need("openssl")
    authority, stranger = certificates(at, "authority"), certificates(at, "stranger")
    server = loopback.model("words over TLS", authority / "server.pem", authority / "server.key")
    config = {
        "council": {"members": ["ann"], "conclude": False},
        "agents": {"ann": {"backend": "lab", "model": "m"}},
        "providers": {"lab": {"wire": "openai", "base_url": f"{server.url}/v1"}},
    }
    bundle = folder / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True)
    expect(kd("ask", "Which?", check=6, config=config), "No CA certificates")
    bundle.write_bytes((stranger / "ca.pem").read_bytes())
    expect(kd("ask", "Which?", check=6, config=config), "certificate")
    assert not server.seen, "the question was sent to a server with a wrong certificate"
    bundle.write_bytes((authority / "ca.pem").read_bytes())
    expect(kd("ask", "Which?", config=config), "words over TLS")
    server.close()


def certificates(at, name):
    """Creates an authority and a server's certificate by it, in a folder."""
    folder = at / name
    folder.mkdir()
    openssl = lambda *words: run(["openssl", *words], at, cwd=folder)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", f"/CN={name}")
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "server.pem", "-days", "2", "-extfile", "san")
    return folder


def image(at):
    """The container image starts, as any user, and has certificates."""
    buildah = need("buildah")
    if libraries():
        raise Skip(f"{KD} is not static")
    certificates(at, "authority")
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    run([ROOT / "packaging/image/context", at / "context", at / "authority/ca.pem", f"{arch}={KD}"], at)
    # Storage of its own, in the folder that is removed.
    command = [buildah, "--root", at / "storage", "--runroot", at / "runtime", "--storage-driver", "vfs"]
    home = at / "home"
    home.mkdir()
    run([*command, "build", "--isolation", "chroot", "--tag", "kd", at / "context"], home)
    for user in ["65532:65532", "1234:1234"]:
        work = at / f"work-{user.split(':')[0]}"
        work.mkdir()
        work.chmod(0o777)
        container = run([*command, "from", "localhost/kd"], home).split()[-1]
        inside = [*command, "run", "--isolation", "chroot", "--user", user, "--volume", f"{work}:/work", container, "--"]
        for name, value in [("backend", "scripted"), ("model", "echo")]:
            run([*inside, "/bin/kd", "config", "set", "--layer", "user", f"agents.echo.{name}", value], home)
        # By a file: this isolation may lose what a program prints just before its end.
        run([*inside, "/bin/kd", "ask", "--members", "echo", "-o", "answer.md", "Which one?"], home)
        expect((work / "answer.md").read_text(), "Which one?")
    run([*command, "rm", "--all"], home)


def binstall(artifacts):
    """`cargo binstall` looks for the archives that dist names."""
    package = tomllib.loads((ROOT / "crates/kd/Cargo.toml").read_text())["package"]
    url = package["metadata"]["binstall"]["pkg-url"]
    assert package["metadata"]["binstall"]["pkg-fmt"] == "txz"
    for target in TARGETS:
        words = {"name": package["name"], "target": target, "archive-suffix": ".tar.xz"}
        name = url.rsplit("/", 1)[1]
        for word, value in words.items():
            name = name.replace(f"{{ {word} }}", value)
        assert name in artifacts, f"{name} is none of {sorted(artifacts)}"


CASES = {"npm": npm, "wheel": wheel, "installer": installer, "root": root, "image": image}


def main():
    failed = 0
    for name in sys.argv[1:] or CASES:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="kd-packaging-") as folder:
            try:
                CASES[name](pathlib.Path(folder))
                word = "ok"
            except Skip as why:
                word, failed = f"SKIPPED: {why}", failed + MUST
            except (AssertionError, OSError, subprocess.TimeoutExpired) as why:
                word, failed = f"FAILED\n{why}", failed + 1
        print(f"{name}: {word} ({time.monotonic() - began:.1f} s)", flush=True)
    sys.exit(min(failed, 1))


main()
