"""The official Python client against `kd serve`: OPENAI_BASE_URL and OPENAI_API_KEY say where."""

import openai

client = openai.OpenAI(max_retries=0, timeout=60)
QUESTION = {"role": "user", "content": "Tabs or spaces?"}


def case(name, check):
    assert check, name
    print(f"passed  openai-python: {name}")


def refused(name, kind, **request):
    try:
        client.chat.completions.create(**request)
    except kind as error:
        case(name, error.body and error.body["message"])
    else:
        raise AssertionError(name)


names = [model.id for model in client.models.list()]
case("models", names[:3] == ["kd/ask", "kd/think", "kd/deliberate"] and "kd/diverse" in names)
case("one model", client.models.retrieve("kd/ask").owned_by == "kd")

whole = client.chat.completions.create(model="kd/ask", messages=[QUESTION], temperature=0.2)
text = whole.choices[0].message.content
case("an answer", text.startswith("Spaces.") and whole.choices[0].finish_reason == "stop")
case("who said what", {a["member"] for a in whole.kd["answers"]} >= {"ann", "bob"})
case("usage", whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens)

again = client.chat.completions.create(
    model="kd/ask",
    messages=[QUESTION, {"role": "assistant", "content": text}, {"role": "user", "content": "And in Makefiles?"}],
)
case("the conversation goes on in its thread", again.kd["thread"] == whole.kd["thread"])
other = client.chat.completions.create(
    model="kd/ask",
    messages=[QUESTION, {"role": "assistant", "content": "Neither."}, {"role": "user", "content": "Why?"}],
)
case("another conversation has another thread", other.kd["thread"] != whole.kd["thread"])

for model in names:
    pieces, thought, end = "", "", None
    stream = client.chat.completions.create(
        model=model, messages=[QUESTION], stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    for chunk in chunks:
        for choice in chunk.choices:
            pieces += choice.delta.content or ""
            thought += getattr(choice.delta, "reasoning_content", None) or ""
            end = choice.finish_reason or end
    case(f"{model} streams", pieces and thought and end == "stop" and chunks[-1].usage)

one = client.chat.completions.create(model="kd/ask:ann", messages=[QUESTION])
case("members in the name", one.choices[0].message.content == "Spaces. They look the same everywhere.")
parts = [{"type": "text", "text": "Tabs or spaces?"}]
one = client.chat.completions.create(model="kd/ask:ann", messages=[{"role": "user", "content": parts}])
case("parts of text", one.choices[0].message.content)

refused("an unknown model", openai.NotFoundError, model="gpt-9", messages=[QUESTION])
refused("an unknown member", openai.UnprocessableEntityError, model="kd/ask:nobody", messages=[QUESTION])
refused("two answers", openai.BadRequestError, model="kd/ask", messages=[QUESTION], n=2)
picture = [{"type": "image_url", "image_url": {"url": "data:,"}}]
refused("a picture", openai.BadRequestError, model="kd/ask", messages=[{"role": "user", "content": picture}])
refused("nobody answers", openai.InternalServerError, model="kd/ask:eve", messages=[QUESTION])
try:
    list(client.chat.completions.create(model="kd/ask:eve", messages=[QUESTION], stream=True))
except openai.APIError as error:
    case("nobody answers, streamed", "eve" in error.message)
else:
    raise AssertionError("nobody answers, streamed")
try:
    openai.OpenAI(api_key="0123456789abcdef-wrong", max_retries=0).models.list()
except openai.AuthenticationError:
    case("another token", True)
else:
    raise AssertionError("another token")

# A client that leaves: the council is interrupted, and the server goes on.
stream = client.chat.completions.create(model="kd/ask", messages=[QUESTION], stream=True)
next(iter(stream))
stream.close()
case("a client that leaves", client.models.list())
