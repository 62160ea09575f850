"""The official Python clients with tools against `kd serve`: 50 turns each in a working copy of their own.

    tools.py WORKING-COPIES MODEL-SERVICE

Every turn runs a real command. The bill of `kd` is compared with what the service counted.
"""

import json
import pathlib
import subprocess
import sys
import urllib.request

import anthropic
import openai

TURNS = 50
top, service = pathlib.Path(sys.argv[1]), sys.argv[2]
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
QUESTION = "Commit fifty times."


def case(name, check):
    assert check, name
    print(f"passed  {name}")


def copy(name: str) -> pathlib.Path:
    folder = top / name
    folder.mkdir()
    for args in (["init", "-q"], ["config", "user.email", "t@example.org"], ["config", "user.name", "t"]):
        subprocess.run(["git", *args], cwd=folder, check=True)
    return folder


def run(folder: pathlib.Path, command: str) -> tuple[str, bool]:
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    return f"Exit code: {done.returncode}\n{done.stdout}{done.stderr}", done.returncode != 0


def counted() -> dict:
    with urllib.request.urlopen(f"{service}/counted") as answer:
        return json.load(answer)


def commits(folder: pathlib.Path) -> int:
    return int(run(folder, "git log --oneline | wc -l")[0].split()[-1])


class Bill:
    """What a session was billed: by kd, and by the service."""

    def __init__(self):
        self.before, self.input, self.output, self.threads, self.advised = counted(), 0, 0, set(), 0

    def add(self, kd: dict):
        self.input += kd["usage"]["input_tokens"]
        self.output += kd["usage"]["output_tokens"]
        self.threads.add(kd["thread"])
        self.advised += len(kd["members"]) - 1

    def agrees(self) -> bool:
        after = counted()
        sums = [sum(m[key] for m in c.values()) for key in ("input", "output") for c in (after, self.before)]
        return (self.input, self.output) == (sums[0] - sums[1], sums[2] - sums[3])


def ends(name: str, folder: pathlib.Path, bill: Bill, turns: int):
    # Every tenth command fails and commits nothing.
    case(f"{name}: {TURNS} turns with tools", turns == TURNS and commits(folder) == TURNS - TURNS // 10)
    case(f"{name}: one thread", len(bill.threads) == 1)
    case(f"{name}: advice at the start and after failures only", bill.advised == 1 + TURNS // 10)
    case(f"{name}: the bill is what the service counted", bill.agrees())


def messages(streams: bool):
    client, name = anthropic.Anthropic(max_retries=0, timeout=120), f"anthropic, {'streamed' if streams else 'complete'}"
    folder, bill, turns = copy(f"anthropic-{streams}"), Bill(), 0
    said = [{"role": "user", "content": QUESTION}]
    tools = [{"name": "run", "description": "Runs a command.", "input_schema": SCHEMA}]
    while True:
        wish = {"model": "kd/ask", "max_tokens": 1000, "messages": said, "tools": tools, "system": "You work here."}
        if streams:
            with client.messages.stream(**wish) as stream:
                for event in stream:
                    if event.type == "message_delta":
                        bill.add(event.kd)
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(**wish)
            bill.add(answer.kd)
        said.append({"role": "assistant", "content": [b.model_dump(include={"type", "text", "id", "name", "input"}) for b in answer.content]})
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            break
        assert answer.stop_reason == "tool_use", answer
        results = []
        for use in uses:
            text, failed = run(folder, use.input["command"])
            results.append({"type": "tool_result", "tool_use_id": use.id, "content": text, "is_error": failed})
            turns += 1
        said.append({"role": "user", "content": results})
    ends(name, folder, bill, turns)


def chat(streams: bool):
    client, name = openai.OpenAI(max_retries=0, timeout=120), f"openai chat, {'streamed' if streams else 'complete'}"
    folder, bill, turns = copy(f"chat-{streams}"), Bill(), 0
    said = [{"role": "system", "content": "You work here."}, {"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": {"name": "run", "description": "Runs a command.", "parameters": SCHEMA}}]
    while True:
        if streams:
            with client.chat.completions.stream(model="kd/ask", messages=said, tools=tools) as stream:
                for event in stream:
                    if event.type == "chunk" and getattr(event.chunk, "kd", None):
                        bill.add(event.chunk.kd)
                message = stream.get_final_completion().choices[0].message
        else:
            answer = client.chat.completions.create(model="kd/ask", messages=said, tools=tools)
            bill.add(answer.kd)
            message = answer.choices[0].message
        calls = [{"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}} for c in message.tool_calls or []]
        if not calls:
            break
        said.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        for call in calls:
            text, _ = run(folder, json.loads(call["function"]["arguments"])["command"])
            said.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            turns += 1
    ends(name, folder, bill, turns)


def responses(by_id: bool):
    client, name = openai.OpenAI(max_retries=0, timeout=120), f"openai responses, {'by id' if by_id else 'complete'}"
    folder, bill, turns = copy(f"responses-{by_id}"), Bill(), 0
    said, previous = [{"role": "user", "content": QUESTION}], None
    tools = [{"type": "function", "name": "run", "description": "Runs a command.", "parameters": SCHEMA, "strict": False}]
    while True:
        wish = {"previous_response_id": previous} if previous else {}
        with client.responses.stream(model="kd/ask", input=said, tools=tools, **wish) as stream:
            for _ in stream:
                pass
            answer = stream.get_final_response()
        bill.add(answer.kd)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            break
        if by_id:
            said, previous = [], answer.id
        else:
            said += [item.model_dump(include={"type", "id", "call_id", "name", "arguments", "role", "content"}) for item in answer.output if item.type != "reasoning"]
        for call in calls:
            text, _ = run(folder, json.loads(call.arguments)["command"])
            said.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
            turns += 1
    ends(name, folder, bill, turns)


for streams in (True, False):
    messages(streams)
    chat(streams)
    responses(streams)
