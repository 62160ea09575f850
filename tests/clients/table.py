"""Compares the table of clients in docs/serve.md with what the clients did.

    table.py OUTCOMES        (what `run` printed; BLESS=1 writes the numbers and versions into the table)

A row has the client with its version, as `run` names it, and the number of its cases. Clients that were skipped are not compared.
"""

import collections
import os
import pathlib
import re
import sys

here = pathlib.Path(__file__).parent
# Each client: the name of its version in `run`, its words in the table, and how the lines of its cases begin.
CLIENTS = {
    "openai_python": ("`openai` (Python)", ("openai-python", "openai-python responses", "openai chat", "openai responses", "usage", "compactions")),
    "anthropic_python": ("`anthropic` (Python)", ("anthropic-python", "anthropic")),
    "llm": ("`llm`", ("llm", "llm -c")),
    "openai_node": ("`openai` (Node.js)", ("openai-node",)),
    "ai_sdk": ("AI SDK", ("ai",)),
    "acp_typescript": ("ACP SDK (TypeScript)", ("acp (TypeScript)",)),
    "claude_code": ("Claude Code", ("Claude Code",)),
    "codex": ("Codex", ("Codex",)),
    "opencode": ("opencode", ("opencode",)),
}

pins = dict(re.findall(r"^(\w+)=\(?\S+?(?:==|@)(\d[\w.]*)", (here / "run").read_text(), re.M))
passed = collections.Counter()
for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
    if line.startswith("passed  ") and ":" in line:
        begins = line.removeprefix("passed  ").split(":")[0].split(",")[0]
        passed.update(client for client, (_, names) in CLIENTS.items() if begins in names)

docs = here.parent.parent / "docs/serve.md"
text, wrong = docs.read_text(), []
for client, (words, _) in CLIENTS.items():
    row = re.search(rf"^\| {re.escape(words)} (\S+) \| (\d+) \|", text, re.M)
    if not row:
        wrong.append(f"no row begins with `| {words} {pins[client]} |`")
        continue
    cases = str(passed[client] or row[2])
    if (row[1], row[2]) != (pins[client], cases):
        wrong.append(f"{words}: version {row[1]} and {row[2]} cases, but {pins[client]} and {cases} were run")
        text = text.replace(row[0], f"| {words} {pins[client]} | {cases} |")
if os.environ.get("BLESS") == "1":
    docs.write_text(text)
elif wrong:
    sys.exit("FAILED  the table in docs/serve.md; BLESS=1 writes it: " + "; ".join(wrong))
print("passed  the table of clients in docs/serve.md")
