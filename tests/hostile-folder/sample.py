"""A `.kd` as it grows in use: every kind of file once."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from harness import Box

THREAD = ".kd/branches/main/threads/council-aaaa"
BRANCH = ".kd/branches/main"


def message(sender: str, body: str, more: str = "") -> str:
    to = "all" if sender == "king" else "king"
    status = "" if sender == "king" else "status: complete\n"
    return f"---\nfrom: {sender}\nto: {to}\ntimestamp: 2026-11-01T08:00:00Z\n{status}{more}---\n\n{body}\n"


FILES: dict[str, object] = {
    ".kd/config.json": {"council": {"mode": "broadcast"}},
    ".kd/config.local.json": {"council": {"conclude": False}},
    ".kd/.gitignore": "*.json\n!config.json\n",
    ".kd/current": "main\n",
    ".kd/memory.json": {"entries": []},
    ".kd/roles/skeptic.md": "You doubt.\n",
    ".kd/forum/agents/ada.yaml": "name: ada\nbackend: ada\nsystem_prompt: You are ada.\n",
    f"{BRANCH}/state.json": {"branch": "main", "current_thread": "council-aaaa"},
    f"{BRANCH}/sent.jsonl": '"hello"\n',
    f"{BRANCH}/drafts/council-aaaa.md": "a draft",
    f"{BRANCH}/sessions/ada.json": {"name": "ada", "status": "idle"},
    f"{BRANCH}/logs/council-ada.log": "a line\n",
    f"{BRANCH}/logs/ask-council-aaaa.log": "a line\n",
    f"{THREAD}/thread.json": {"created_at": "2026-11-01T08:00:00Z", "id": "council-aaaa", "members": ["king", "ada", "bob"], "pattern": "council", "phase": "council"},
    f"{THREAD}/0001-king.md": message("king", "What now?"),
    f"{THREAD}/0002-ada.md": message("ada", "This."),
    f"{THREAD}/0003-bob.md": message("bob", "That."),
    f"{THREAD}/.kd-index.jsonl": "",
    f"{THREAD}/.kd-events.jsonl": "",
    f"{THREAD}/.kd-thread.lock": "",
    f"{THREAD}/.stream-ada.jsonl": '{"type":"x"}\n',
    f"{THREAD}/.pending-messages.json": {"deliveries": []},
    f"{THREAD}/.kd-queue-1-0.jsonl": "",
    f"{THREAD}/.kd-new/1-0.jsonl": "",
    ".kd/archive/old/threads/council-bbbb/0001-king.md": message("king", "Once?"),
}
FOLDERS = [
    ".kd", ".kd/branches", BRANCH, f"{BRANCH}/threads", THREAD, f"{THREAD}/.kd-new", f"{THREAD}/.kd-lost", f"{BRANCH}/sessions", f"{BRANCH}/logs",
    f"{BRANCH}/drafts", ".kd/roles", ".kd/forum", ".kd/forum/agents", ".kd/archive", ".kd/archive/old/threads/council-bbbb",
]
# Files that appear beside others while they are written.
MADE_LATER = [".kd/forum.db", ".kd/forum.db-wal", ".kd/forum.db-journal", f"{BRANCH}/.state.json.lock", f"{BRANCH}/sessions/.ada.json.lock", ".kd/.memory.json.lock"]


def lay(box: Box, without: str = "") -> Path:
    """The sample in the user's folder, but for one file or folder."""
    files = {name: content for name, content in FILES.items() if not without or (name != without and not name.startswith(without + "/"))}
    box.unpacked(files)
    (box.work / Path(without or ".kd/x").parent).mkdir(parents=True, exist_ok=True)
    silence(box.work / ".kd")
    return box.work


def silence(kd: Path) -> None:
    """Makes the stream one that nobody writes any more: a fresh one means that the member speaks elsewhere just now."""
    stream = kd / THREAD.removeprefix(".kd/") / ".stream-ada.jsonl"
    if os.path.lexists(stream):
        os.utime(stream, (1_700_000_000, 1_700_000_000), follow_symlinks=False)
