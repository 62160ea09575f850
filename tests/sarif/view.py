"""Reviews a change by scripted members, and compares what sarif-tools shows with the report."""

import csv
import json
import subprocess
import sys
from pathlib import Path

KD, SARIF, WORK = sys.argv[1], sys.argv[2], Path(sys.argv[3])
HOME = WORK / "home"
REPOSITORY = HOME / "work"
ENV = {"HOME": str(HOME), "PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1"}
LEVELS = {"blocker": "error", "major": "error", "minor": "warning", "nit": "note"}


def finding(file, line, quote, claim, severity):
    return {"file": file, "lines": {"first": line, "last": line}, "quote": quote, "claim": claim,
            "severity": severity, "evidence": "see [x](https://evil.example) {0}"}


FINDINGS = {
    "ann": [
        finding("src/mean.rs", 2, "    list.len() / 0", "Divides by zero.", "blocker"),
        finding("src/mean.rs", 1, "fn mean(list: &[u32]) -> usize {", "<script>alert(1)</script> The result is no mean.", "minor"),
        finding("a b#c?.rs", 1, "let spaced = 1;", "A name with spaces is hard to type.", "nit"),
        finding("src/mean.rs", 9, "not there", "Invented.", "major"),
    ],
    "bob": [finding("src/mean.rs", 2, "    list.len() / 0", "It divides by zero.", "major")],
    "cyd": [],
}


def run(*command, cwd=REPOSITORY):
    done = subprocess.run(command, cwd=cwd, env=ENV, capture_output=True, text=True)
    if done.returncode:
        fail(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def git(*args):
    run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", *args)


def fail(why):
    print(f"FAILED  {why}")
    sys.exit(1)


def check(what, holds, shown=""):
    if not holds:
        fail(f"{what}\n{shown}")
    print(f"passed  {what}")


def prepare():
    (HOME / ".config/kd").mkdir(parents=True)
    (REPOSITORY / "src").mkdir(parents=True)
    agents = {}
    for name, findings in FINDINGS.items():
        votes = [{"id": label, "vote": "real"} for label in "ABCD"]
        pairs = [{"id": label, "same": False} for label in "ABCD"]
        text = json.dumps({"findings": findings, "votes": votes, "pairs": pairs})
        script = HOME / f"{name}.json"
        script.write_text(json.dumps({"runs": [[{"text": text}, {"finish": {}}]]}))
        agents[name] = {"backend": "scripted", "model": str(script)}
    settings = {"agents": agents, "council": {"members": list(agents)}}
    (HOME / ".config/kd/config.json").write_text(json.dumps(settings))
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    (REPOSITORY / "src/mean.rs").write_text("fn mean(list: &[u32]) -> usize {\n    list.len() / 0\n}\n")
    (REPOSITORY / "a b#c?.rs").write_text("let spaced = 1;\n")
    git("add", ".")
    git("commit", "-qm", "two")


def main():
    prepare()
    for name in ("one", "two"):
        run(KD, "review", "HEAD~1..HEAD", "--quiet", "--all", "--format", "sarif", "-o", f"../{name}.sarif")
    report = json.loads(run(KD, "review", "show", "--format", "json"))["report"]
    told = sorted(
        (f["file"], f["lines"]["first"], LEVELS[f["severity"]])
        for f in (one["cluster"]["findings"][0]["finding"] for one in report["findings"])
    )
    check("three findings are reported, one is dropped", (len(told), len(report["dropped"])) == (3, 1), told)

    run(SARIF, "csv", "-o", "one.csv", "one.sarif", cwd=HOME)
    with open(HOME / "one.csv", newline="", encoding="utf-8") as rows:
        rows = list(csv.DictReader(rows))
    shown = sorted((r["Location"].replace("%20", " ").replace("%23", "#").replace("%3F", "?"), int(r["Line"]), r["Severity"]) for r in rows)
    check("the viewer lists each finding at its file, line and level", shown == told, f"{shown}\n{told}")
    check("the viewer names the tool", all(r["Tool"] == "kd review" for r in rows))
    check("the viewer shows P(real)", all("P(real) " in r["Description"] for r in rows), rows)

    summary = run(SARIF, "summary", "one.sarif", cwd=HOME)
    for level in ("error", "warning", "note"):
        count = sum(1 for one in told if one[2] == level)
        check(f"the summary counts {count} of level {level}", f"{level}: {count}" in summary, summary)

    same = run(SARIF, "diff", "one.sarif", "two.sarif", cwd=HOME)
    check("a second run has the same findings", "all levels: +0 +0" in same, same)

    run(SARIF, "html", "-o", "one.html", "one.sarif", cwd=HOME)
    page = (HOME / "one.html").read_text(encoding="utf-8")
    check("the page of the viewer has the findings", "Divides by zero." in page or "divides by zero." in page, page[:2000])
    run(SARIF, "codeclimate", "-o", "one.json", "one.sarif", cwd=HOME)
    issues = json.loads((HOME / "one.json").read_text())
    check("the viewer converts each finding", len(issues) == 3 and all(i["fingerprint"] for i in issues), issues)


main()
