"""An agent that compacts its conversation by the usage that it is told, with the plain model and with the council.

    compactions.py MODEL-SERVICE        (OPENAI_BASE_URL and OPENAI_API_KEY: the council, whose acting member asks that service)

The council must tell, at each of 50 turns with a tool, the usage of its acting member alone: as much as the plain model where
nobody advises, and more only by the advice. The agent then compacts as often as with the plain model.
"""

import os
import sys

import openai

TURNS = 50
# Tokens after which the agent replaces what was said by a summary: several times in 50 turns.
MOST = 700
RUN = {
    "type": "function",
    "function": {
        "name": "run",
        "description": "Runs a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


def case(name, check, told=""):
    assert check, f"{name}: {told}"
    print(f"passed  {name}")


def agent(client: openai.OpenAI, model: str, most: int) -> tuple[list[tuple[int, int]], int]:
    """Takes 50 turns. Returns the tokens in of each, with the number of advisers, and the number of compactions."""
    system = {"role": "system", "content": "You work here."}
    said, used, compactions = [system, {"role": "user", "content": "Commit fifty times."}], [], 0
    while len(used) < TURNS:
        answer = client.chat.completions.create(model=model, messages=said, tools=[RUN])
        members = len(answer.kd["members"]) if hasattr(answer, "kd") else 1
        used.append((answer.usage.prompt_tokens, members - 1))
        message = answer.choices[0].message
        calls = [{"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}} for c in message.tool_calls]
        said.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        for call in calls:
            failed = "exit 3" in call["function"]["arguments"]
            said.append({"role": "tool", "tool_call_id": call["id"], "content": "Exit code: 3" if failed else "Exit code: 0\n7"})
        if answer.usage.prompt_tokens > most:
            compactions += 1
            said = [system, {"role": "user", "content": f"Commit fifty times. {len(used)} are done."}]
    return used, compactions


plain_model = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0, timeout=120)
council = openai.OpenAI(max_retries=0, timeout=120)
plain, _ = agent(plain_model, "acts", sys.maxsize)
ours, _ = agent(council, "kd/ask", sys.maxsize)
told = [(turn, p, o, advisers) for turn, ((p, _), (o, advisers)) in enumerate(zip(plain, ours))]
if os.environ.get("VERBOSE"):
    print(told)
alone = [(p, o) for _, p, o, advisers in told if advisers == 0]
case("usage: the acting member's own, as told by the plain model, in every turn without advice", len(alone) == 45 and all(p == o for p, o in alone), told)
case("usage: more only by the advice in the others", all(p < o < p + 400 for _, p, o, advisers in told if advisers > 0), told)
_, by_plain = agent(plain_model, "acts", MOST)
_, by_council = agent(council, "kd/ask", MOST)
case(f"compactions: {by_council} in {TURNS} turns, by the plain model {by_plain}", 1 < by_council <= by_plain, (by_plain, by_council))
