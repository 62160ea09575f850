"""Anthropic's Python client against `kd serve`: ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY say where."""

import anthropic

client = anthropic.Anthropic(max_retries=0, timeout=60)
QUESTION = {"role": "user", "content": "Tabs or spaces?"}
ASK = {"model": "kd/ask", "max_tokens": 1024, "messages": [QUESTION]}


def case(name, check):
    assert check, name
    print(f"passed  anthropic-python: {name}")


names = [model.id for model in client.models.list()]
case("models", names[:3] == ["kd/ask", "kd/think", "kd/deliberate"] and "kd/diverse" in names)
case("one model", client.models.retrieve("kd/ask").display_name == "kd/ask")
case("a count of tokens", client.messages.count_tokens(model="kd/ask", messages=[QUESTION]).input_tokens > 0)

whole = client.messages.create(**ASK, system="Be brief.")
text = whole.content[0].text
case("an answer", text.startswith("Spaces.") and whole.stop_reason == "end_turn")
case("who said what", {a["member"] for a in whole.kd["answers"]} >= {"ann", "bob"})
# Its system text tells it from the conversations of other checks.
turns = [QUESTION, {"role": "assistant", "content": whole.content}, {"role": "user", "content": "And in Makefiles?"}]
again = client.messages.create(**{**ASK, "messages": turns}, system="Be brief.")
case("the conversation goes on in its thread", again.kd["thread"] == whole.kd["thread"])

for model in names:
    for thinking in ({"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}):
        with client.messages.stream(**{**ASK, "model": model}, thinking=thinking) as stream:
            pieces = "".join(stream.text_stream)
            last = stream.get_final_message()
        kinds = [block.type for block in last.content]
        wanted = ["text"] if thinking["type"] == "disabled" else ["thinking", "text"]
        case(f"{model} streams {' and '.join(wanted)}", kinds == wanted and last.content[-1].text == pieces)
back = [QUESTION, {"role": "assistant", "content": last.content}, {"role": "user", "content": "And in Makefiles?"}]
case("thoughts sent back", client.messages.create(**{**ASK, "messages": back}).content)

for name, kind, more in (
    ("an unknown model", anthropic.NotFoundError, {"model": "gpt-9"}),
    ("an unknown member", anthropic.UnprocessableEntityError, {"model": "kd/ask:nobody"}),
    ("nobody answers", anthropic.InternalServerError, {"model": "kd/ask:eve"}),
    ("a prefilled answer", anthropic.BadRequestError, {"messages": [QUESTION, {"role": "assistant", "content": "{"}]}),
):
    try:
        client.messages.create(**{**ASK, **more})
    except kind as error:
        case(name, error.body["error"]["message"])
    else:
        raise AssertionError(name)
try:
    list(client.messages.create(**{**ASK, "model": "kd/ask:eve"}, stream=True))
except anthropic.APIStatusError as error:
    case("nobody answers, streamed", "eve" in str(error))
else:
    raise AssertionError("nobody answers, streamed")
try:
    anthropic.Anthropic(api_key="0123456789abcdef-wrong", max_retries=0).models.list()
except anthropic.AuthenticationError:
    case("another token", True)
else:
    raise AssertionError("another token")
