"""A model service on loopback, in the form of OpenAI's Chat Completions, that plays an agent without a model.

    model.py TURNS

To a request that offers a tool for commands, it answers with a call that commits one more line to a file, until TURNS
results came back; then with text. To a request without tools it answers in text. It counts what it bills:
GET /counted returns the tokens and requests so far, by model. It prints its address.
"""

import http.server
import json
import sys
import threading

TURNS = int(sys.argv[1])
SHELLS = ("run", "bash", "shell", "exec_command", "shell_command", "local_shell")
counted: dict[str, dict[str, int]] = {}
lock = threading.Lock()


def shell(tools: list) -> dict | None:
    functions = [tool["function"] for tool in tools]
    return next((f for name in SHELLS for f in functions if f["name"].lower() == name), None)


def call(function: dict, turn: int) -> dict:
    command = f"echo {turn} >> turns.txt && git add -A && git commit -qm turn-{turn} && git log --oneline | wc -l"
    if turn % 10 == 9:
        command = "cat no-such-file; exit 3"
    fields = function["parameters"]["properties"]
    name = "cmd" if "cmd" in fields else "command"
    is_list = fields[name].get("type") == "array"
    arguments = {name: ["bash", "-lc", command] if is_list else command}
    if "description" in fields:
        arguments["description"] = f"turn {turn}"
    return {"index": 0, "id": f"call_{turn}", "type": "function", "function": {"name": function["name"], "arguments": json.dumps(arguments, separators=(",", ":"))}}


def tokens(messages: list) -> int:
    """Counts a conversation as services do: what is said, called and returned, and not how the request is written."""
    letters = 0
    for message in messages:
        content = message.get("content") or ""
        letters += len(content) if isinstance(content, str) else sum(len(part.get("text", "")) for part in content)
        letters += sum(len(call["function"]["arguments"]) for call in message.get("tool_calls") or [])
    return letters // 4 + len(messages)


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply("application/json", json.dumps(counted))

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        function = shell(body.get("tools", []))
        turn = sum(m["role"] == "tool" for m in body["messages"])
        if function and turn < TURNS:
            delta, end = {"content": f"Turn {turn}.", "tool_calls": [call(function, turn)]}, "tool_calls"
        elif body.get("tools"):
            delta, end = {"content": "All turns are done."}, "stop"
        else:
            delta, end = {"content": "Look at the exit code."}, "stop"
        usage = {"prompt_tokens": tokens(body["messages"]), "completion_tokens": len(json.dumps(delta)) // 4}
        with lock:
            sums = counted.setdefault(body["model"], {"requests": 0, "input": 0, "output": 0})
            sums["requests"] += 1
            sums["input"] += usage["prompt_tokens"]
            sums["output"] += usage["completion_tokens"]
        chunks = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            {"choices": [], "usage": usage},
        ]
        events = [json.dumps({"id": "c", "object": "chat.completion.chunk", "model": body["model"], **c}) for c in chunks]
        if not body.get("stream"):
            message = {"role": "assistant", **delta}
            whole = {"choices": [{"index": 0, "message": message, "finish_reason": end}], "usage": usage}
            return self.reply("application/json", json.dumps({"id": "c", "object": "chat.completion", "model": body["model"], **whole}))
        self.reply("text/event-stream", "".join(f"data: {e}\n\n" for e in [*events, "[DONE]"]))

    def reply(self, mime: str, text: str):
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", mime)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
