"""Responses by the official Python client against `kd serve`: OPENAI_BASE_URL and OPENAI_API_KEY say where."""

import openai

client = openai.OpenAI(max_retries=0, timeout=60)
QUESTION = "Tabs or spaces?"


def case(name, check):
    assert check, name
    print(f"passed  openai-python responses: {name}")


whole = client.responses.create(model="kd/ask", input=QUESTION, instructions="Be brief.")
case("an answer", whole.output_text.startswith("Spaces.") and whole.status == "completed")
case("who said what", {a["member"] for a in whole.kd["answers"]} >= {"ann", "bob"})
case("usage", whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens)
# What only a provider's own tools and caches have.
hosted = {"access_programs", "image", "input_transformations", "moderation", "prompt_cache_diagnostics", "prompt_cache_options", "tool_usage"}
case("the fields of a response", set(type(whole).model_fields) - set(whole.to_dict()) <= hosted)
sent = {"text": {"format": {"type": "text"}, "verbosity": "low"}, "metadata": {"a": "b"}, "tool_choice": "none", "user": "ada",
        "max_output_tokens": 500, "parallel_tool_calls": False, "safety_identifier": "s"}
kept = client.responses.create(model="kd/ask", input="Tabs or spaces in Go?", instructions="Be brief.", store=False, **sent).to_dict()
case("what it repeats of its request", kept["instructions"] == "Be brief." and {key: kept[key] for key in sent} == sent)
again = client.responses.create(model="kd/ask", input="And in Makefiles?", previous_response_id=whole.id)
case("it goes on by its id", again.kd["thread"] == whole.kd["thread"])
# Words that no other check uses: conversations with the same words cannot be told apart.
turns = [{"role": "user", "content": "Tabs or spaces in Python?"}]
first = client.responses.create(model="kd/ask", input=turns)
turns += [item.to_dict() for item in first.output] + [{"role": "user", "content": "And in Makefiles?"}]
second = client.responses.create(model="kd/ask", input=turns)
case("the conversation goes on in its thread", second.kd["thread"] == first.kd["thread"])

for model in ("kd/ask", "kd/think", "kd/deliberate"):
    pieces, thought = "", ""
    with client.responses.stream(model=model, input=QUESTION) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                pieces += event.delta
            elif event.type == "response.reasoning_summary_text.delta":
                thought += event.delta
        last = stream.get_final_response()
    case(f"{model} streams", pieces and thought and last.output_text == pieces)

failed = list(client.responses.create(model="kd/ask:eve", input=QUESTION, stream=True))[-1]
case("nobody answers, streamed", failed.type == "response.failed" and "eve" in failed.response.error.message)
for name, kind, more in (
    ("an unknown model", openai.NotFoundError, {"model": "gpt-9"}),
    ("an unknown member", openai.UnprocessableEntityError, {"model": "kd/ask:nobody"}),
    ("an unknown answer", openai.BadRequestError, {"previous_response_id": "resp_x"}),
    ("in the background", openai.BadRequestError, {"background": True}),
    ("nobody answers", openai.InternalServerError, {"model": "kd/ask:eve"}),
):
    try:
        client.responses.create(**{"model": "kd/ask", "input": QUESTION, **more})
    except kind as error:
        case(name, error.body and error.body["message"])
    else:
        raise AssertionError(name)
