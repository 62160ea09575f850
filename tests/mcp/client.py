"""Drives `kd mcp` and `kd serve --mcp` with the official Python SDK.

    client.py KD URL TOKEN     in a folder whose members play the scripts of examples/think
"""

import asyncio
import sys

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

kd, url, token = sys.argv[1:]
done = 0


def check(truth, what):
    global done
    if not truth:
        sys.exit(f"FAILED: {what}")
    done += 1


async def talk(streams, where):
    async with ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        tools = {tool.name for tool in (await session.list_tools()).tools}
        check({"ask_council", "think", "deliberate", "create_thread", "search_threads"} <= tools, f"{where}: tools, {tools}")
        steps = []

        async def progress(at, _total, message):
            steps.append((at, message))

        result = await session.call_tool("think", {"question": "Is it so?"}, progress_callback=progress)
        answer = result.structured_content
        check(not result.is_error and answer["answer"], f"{where}: an answer, {answer}")
        check(answer["exchanged"] == 2, f"{where}: a debate")
        check(steps == sorted(steps) and len(steps) >= 5, f"{where}: progress, {steps}")
        heard = []

        async def hear(_at, _total, message):
            heard.append(message)

        held = await session.call_tool("deliberate", {"question": "Is it so, or not?"}, progress_callback=hear)
        verdict = held.structured_content["verdict"]
        check(not held.is_error and verdict["outcome"] and verdict["heading"] in held.structured_content["answer"], f"{where}: a verdict, {held}")
        check(any("opinions" in line for line in heard), f"{where}: stages are heard, {heard}")
        uri = f"kd://thread/{answer['thread']}"
        listed = [str(resource.uri) for resource in (await session.list_resources()).resources]
        check(uri in listed, f"{where}: the thread is listed")
        text = (await session.read_resource(uri)).contents[0].text
        check(answer["answer"] in text and "<council>" not in text, f"{where}: the thread reads")
        made = await session.call_tool("create_thread", {"title": where, "body": "hello", "author": "eve"})
        check(made.structured_content["success"], f"{where}: a post")
        read = await session.call_tool("read_thread", {"thread_id": made.structured_content["thread_id"]})
        check(read.structured_content["thread"]["author"] == "ada", f"{where}: signed by whoever called")
        wrong = await session.call_tool("ask_council", {"question": "x", "members": ["nobody"]})
        check(wrong.is_error and "no member" in wrong.content[0].text, f"{where}: a mistake is explained")


async def main():
    async with stdio_client(StdioServerParameters(command=kd, args=["mcp", "--as", "ada"])) as streams:
        await talk(streams, "stdio")
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        async with streamable_http_client(url, http_client=client) as streams:
            await talk(streams, "http")


asyncio.run(main())
print(f"Python SDK: {done} checks passed")
