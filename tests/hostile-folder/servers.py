"""A model service that is hostile: what it answers must not send the key elsewhere, hang, fill the memory or run anything."""

from __future__ import annotations

import gzip
import json
import os
import socket
import threading
import time
import zlib
from typing import Callable, Iterator

from harness import Box, Case

MIB = 1 << 20
KEY = "sk-secret-openai"
WIRES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "OPENAI_API_KEY"}
# A command that is kept waiting ends here by its own limits.
TIMES = {"timeout": 4, "first_secs": 3, "idle_secs": 2}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class Server:
    """Answers every connection with a function of its own, and keeps the requests."""

    def __init__(self, answer: Callable[["Server", socket.socket], None]) -> None:
        self.answer = answer
        self.seen: list[bytes] = []
        self.over = False
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self.over:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            client.settimeout(5)
            self.seen.append(client.recv(1 << 20))
            self.answer(self, client)
        except OSError:
            pass
        finally:
            client.close()

    def close(self) -> None:
        self.over = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


def event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}).encode() + b"\n\n"


END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def redirect(status: int, to: str) -> Callable:
    def answer(server: Server, client: socket.socket) -> None:
        where = to.replace("OTHER", f"127.0.0.1:{server.other}")
        client.sendall(f"HTTP/1.1 {status} Moved\r\nlocation: {where}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())

    return answer


def endless(head: bytes, piece: bytes, pause: float = 0.0, most: int = 1 << 30) -> Callable:
    def answer(server: Server, client: socket.socket) -> None:
        client.sendall(head)
        sent = 0
        while not server.over and sent < most:
            client.sendall(piece)
            sent += len(piece)
            if pause:
                time.sleep(pause)

    return answer


def says(*pieces: bytes) -> Callable:
    return lambda server, client: client.sendall(b"".join(pieces))


def bomb(encoding: str) -> Callable:
    """A gigabyte of spaces, packed; after it nothing."""

    def answer(server: Server, client: socket.socket) -> None:
        client.sendall(f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: {encoding}\r\nconnection: close\r\n\r\n".encode())
        packer = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
        for _ in range(1024):
            client.sendall(packer.compress(b" " * MIB))
        client.sendall(packer.flush())

    return answer


ANSWERS: dict[str, Callable] = {
    "endless status line": endless(b"HTTP/1.1 200 ", b"O" * 65536),
    "endless header": endless(b"HTTP/1.1 200 OK\r\nx: ", b"a" * 65536),
    "endless headers": endless(b"HTTP/1.1 200 OK\r\n", b"".join(b"x-%d: y\r\n" % n for n in range(2000))),
    "headers by the drop": endless(b"HTTP/1.1 200 OK\r\nx: ", b"a", 0.2),
    "interim answers without end": endless(b"", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
    "100 Continue without end": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a line without end": endless(HEAD + b"data: ", b"a" * 65536),
    "one event without end": endless(HEAD, b"data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" * 1000),
    "comments without end": endless(HEAD, b": ping\n\n" * 4000),
    "empty events without end": endless(HEAD, b"data: {}\n\n" * 4000),
    "blank lines without end": endless(HEAD, b"\n" * 65536),
    "pieces without end": endless(HEAD, event("x" * 4000) * 16),
    "empty pieces without end": endless(HEAD, event("") * 200),
    "one byte at a time": endless(HEAD, b"d", 0.2),
    "a piece now and then": endless(HEAD, event("x"), 0.5),
    "an error page without end": endless(b"HTTP/1.1 500 no\r\ncontent-type: text/html\r\n\r\n", b"<p>" * 20000),
    "an error told without end": endless(b"HTTP/1.1 401 no\r\ncontent-type: application/json\r\n\r\n" + b'{"error":{"message":"', b"a" * 65536),
    "an error page by the drop": endless(b"HTTP/1.1 400 no\r\n\r\n", b"a", 0.2),
    "chunks of one byte": endless(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n:\r\n" * 4000),
    "a chunk extension without end": endless(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n1;", b"a" * 65536),
    "trailers without end": endless(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n" * 4000),
    "a chunk of 2^64": says(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"a" * 1000),
    "a length of 2^63": says(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9223372036854775807\r\n\r\n{}"),
    "two lengths": says(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5\r\ncontent-length: 500\r\n\r\n", event("x"), END),
    "a gzip bomb": bomb("gzip"),
    "a deflate bomb": bomb("deflate"),
    "retry-after of a year": says(b"HTTP/1.1 429 no\r\nretry-after: 31536000\r\ncontent-length: 0\r\n\r\n"),
    "retry-after of 2^64": says(b"HTTP/1.1 429 no\r\nretry-after: 99999999999999999999\r\ncontent-length: 0\r\n\r\n"),
    "retry-after NaN": says(b"HTTP/1.1 503 no\r\nretry-after: NaN\r\ncontent-length: 0\r\n\r\n"),
    "100,000 levels of JSON": says(HEAD, b"data: " + b'{"choices":' * 100_000 + b"\n\n", END),
    "token counts of 2^64": says(HEAD, event("hi"), b'data: {"choices":[],"usage":{"prompt_tokens":18446744073709551615,"completion_tokens":-1,"total_tokens":1e308}}\n\n', END),
    "no HTTP at all": says(b"\x00\xff" * 40000),
    "HTTP/0.9": says(b"<html>hello</html>"),
    "switching protocols": says(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n" + b"\x81\x7f" * 1000),
}
REDIRECTS = {
    f"{status} to {name}": redirect(status, to)
    for status in (301, 302, 303, 307, 308)
    for name, to in {
        "another host": "http://OTHER/v1/chat/completions",
        "a file": "file:///etc/passwd",
        "itself": "/v1/chat/completions",
        "a name with credentials": "http://user:pass@OTHER/",
    }.items()
}


def council(box: Box, server: Server, wire: str, members: int = 1) -> None:
    providers = {"p": {"base_url": f"http://127.0.0.1:{server.port}/v1", "wire": wire, "key_env": WIRES[wire], "attempts": 2}}
    names = [f"m{n}" for n in range(members)]
    agents = {name: {"backend": "p", "model": "m"} for name in names}
    box.own((), council={"members": names, "conclude": False, **TIMES}, agents=agents, providers=providers)


def against(what: str, wire: str) -> Callable[[Box], str | None]:
    def attack(box: Box) -> str | None:
        server = Server(ANSWERS[what])
        try:
            council(box, server, wire)
            box.cloned({})
            box.before()
            for argv in (("ask", "hello"), ("doctor", "--timeout", "4")):
                box.kd(*argv)
                if found := box.harm() or box.costs():
                    return f"kd {argv[0]}: {found}"
            return None if len(server.seen) <= 12 else f"{len(server.seen)} requests"
        finally:
            server.close()

    return attack


def redirected(what: str, wire: str) -> Callable[[Box], str | None]:
    """A redirect is not followed: the key goes to the host that the user named, and nowhere else."""

    def attack(box: Box) -> str | None:
        server, other = Server(REDIRECTS[what]), Server(says(HEAD, event("hi"), END))
        server.other = other.port
        try:
            council(box, server, wire)
            box.cloned({})
            box.before()
            for argv in (("ask", "hello"), ("doctor", "--timeout", "4"), ("model", "list")):
                run = box.kd(*argv)
                if "root:" in run.out + run.err:
                    return f"kd {argv[0]} shows /etc/passwd"
            if other.seen:
                return f"the other host was asked: {other.seen[0][:200]!r}"
            return box.harm() or box.costs() or (f"{len(server.seen)} requests" if len(server.seen) > 12 else None)
        finally:
            server.close()
            other.close()

    return attack


def repeated_key(box: Box) -> str | None:
    """A service that repeats the key in its error must not get it into threads, logs or the screen."""
    server = Server(says(f'HTTP/1.1 400 no {KEY}\r\ncontent-type: application/json\r\nx-request-id: {KEY}\r\nconnection: close\r\n\r\n{{"error":{{"message":"{KEY} and Bearer {KEY}","code":"{KEY}"}}}}'.encode()))
    try:
        council(box, server, "openai")
        box.cloned({})
        for argv in (("ask", "hello"), ("doctor",), ("ask", "--jsonl", "hello"), ("council", "show"), ("export",), ("council", "status")):
            run = box.kd(*argv)
            if KEY in run.out + run.err:
                return f"kd {argv[0]} shows the key"
        for path in [*box.work.rglob("*"), *(box.home / ".local").rglob("*")]:
            if path.is_file() and KEY.encode() in path.read_bytes():
                return f"the key stands in {path.relative_to(box.top)}"
        return None
    finally:
        server.close()


def echoed_key(box: Box) -> str | None:
    """A service that says the key back as an answer: it is not kept."""
    server = Server(says(HEAD, event(f"your key is {KEY[:9]}"), event(KEY[9:]), END))
    try:
        council(box, server, "openai")
        box.cloned({})
        run = box.kd("ask", "hello")
        shown = run.out + run.err + box.kd("council", "show").out
        files = [path for path in box.work.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
        # What a service says is its own; that it cannot send the key on is what counts.
        return None if files or KEY in shown or run.code in (0, 5, 6) else box.costs()
    finally:
        server.close()


def no_proxy(box: Box) -> str | None:
    """A folder brings an `.env` with a proxy and a certificate file: neither is read."""
    server = Server(says(HEAD, event("hi"), END))
    proxy = Server(says(b"HTTP/1.1 502 no\r\ncontent-length: 0\r\n\r\n"))
    try:
        council(box, server, "openai")
        lines = "".join(f"{name}=http://127.0.0.1:{proxy.port}\n" for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_BASE_URL"))
        box.cloned({".env": lines + "SSL_CERT_FILE=./ca.pem\n", ".netrc": f"machine 127.0.0.1 login a password b\n", ".curlrc": f"proxy=http://127.0.0.1:{proxy.port}\n"})
        box.kd("ask", "hello")
        return f"the proxy was asked: {proxy.seen[0][:80]!r}" if proxy.seen else None
    finally:
        server.close()
        proxy.close()


def cases() -> Iterator[Case]:
    for what in ANSWERS:
        yield Case(f"server/openai/{what}", "a command hangs, or takes more than 200 MiB", against(what, "openai"))
    for wire in ("anthropic", "gemini"):
        for what in ("endless header", "a line without end", "one event without end", "comments without end", "an error told without end", "a gzip bomb", "headers by the drop", "empty events without end"):
            yield Case(f"server/{wire}/{what}", "a command hangs, or takes more than 200 MiB", against(what, wire))
    for what in REDIRECTS:
        yield Case(f"server/redirect/{what}", "the key goes to another host, or a file is read", redirected(what, "openai"))
    for wire in ("anthropic", "gemini"):
        yield Case(f"server/redirect/{wire}/307 to another host", "the key goes to another host", redirected("307 to another host", wire))
    yield Case("server/an error that repeats the key", "the key stands in a thread, a log or on the screen", repeated_key)
    yield Case("server/an answer that repeats the key", "a command breaks", echoed_key)
    yield Case("server/an .env with a proxy", "the folder names a proxy for the key", no_proxy)
