"""The commands that a user types in a folder somebody else made."""

from __future__ import annotations

import json
from dataclasses import dataclass

from harness import Box, Run


def mcp_lines(*calls: tuple[str, dict]) -> str:
    """An MCP client on stdin: greets, lists, calls."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    lines: list[dict] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "resources/list"},
    ]
    for number, (tool, arguments) in enumerate(calls, 4):
        lines.append({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
    return "".join(json.dumps(line) + "\n" for line in lines)


@dataclass(frozen=True)
class Command:
    name: str
    argv: tuple[str, ...]
    stdin: str | None = None
    # Asks members or opens what they are made of.
    asks: bool = False
    screen: bool = False

    def run(self, box: Box, cwd=None) -> Run:
        if self.screen:
            box.chat(*self.argv, cwd=cwd)
            return box.runs[-1]
        return box.kd(*self.argv, input=self.stdin, cwd=cwd)


COMMANDS = [
    Command("ask", ("ask", "hello"), asks=True),
    Command("ask --continue", ("ask", "--continue", "hello"), asks=True),
    Command("ask --async", ("ask", "--async", "hello"), asks=True),
    Command("ask from stdin", ("ask", "-"), "hello\n", asks=True),
    Command("think", ("think", "hello"), asks=True),
    Command("deliberate", ("deliberate", "hello"), asks=True),
    Command("deliberate --dry-run", ("deliberate", "--dry-run", "hello"), asks=True),
    Command("chat", (), asks=True, screen=True),
    Command("chat --plain", ("chat", "--plain"), "hello\n", asks=True),
    Command("doctor", ("doctor",), asks=True),
    Command("council retry", ("council", "retry"), asks=True),
    Command("council review", ("council", "review"), asks=True),
    Command("mcp", ("mcp", "--as", "client"), mcp_lines(("ask_council", {"question": "hello"}), ("list_threads", {})), asks=True),
    Command("forum run-once", ("forum", "run-once"), asks=True),
    Command("council status", ("council", "status")),
    Command("council list", ("council", "list", "--all")),
    Command("council show", ("council", "show", "--all")),
    Command("show", ("show",)),
    Command("last", ("last",)),
    Command("list", ("list",)),
    Command("status", ("status",)),
    Command("council watch", ("council", "watch", "--timeout", "1")),
    Command("council reset", ("council", "reset", "--force")),
    Command("fsck", ("fsck", "--all")),
    Command("fsck --repair", ("fsck", "--all", "--repair")),
    Command("export", ("export",)),
    Command("export --format json", ("export", "--format", "json")),
    Command("why", ("why",)),
    Command("replay", ("replay",)),
    Command("memory show", ("memory", "show")),
    Command("memory set", ("memory", "set", "style", "short")),
    Command("forum agents", ("forum", "agents")),
    Command("forum read", ("forum", "read")),
    Command("forum post", ("forum", "post", "title", "body")),
    Command("forum log", ("forum", "log")),
    Command("mcp, tools only", ("mcp", "--as", "client"), mcp_lines(("list_threads", {}), ("get_status", {}))),
    Command("model list", ("model", "list")),
    Command("model path", ("model", "path")),
    Command("config show", ("config", "show", "--origin")),
    Command("config check", ("config", "check")),
    Command("config path", ("config", "path")),
    Command("config set", ("config", "set", "council.timeout", "90")),
    Command("completions", ("completions", "bash")),
]
BY_NAME = {command.name: command for command in COMMANDS}
ASKING = [command for command in COMMANDS if command.asks]
LOOKING = [command for command in COMMANDS if not command.asks]
