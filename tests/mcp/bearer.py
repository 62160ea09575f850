"""Passes requests on to a server and adds a bearer token: for test tools that know none. Prints its own address.

    bearer.py http://127.0.0.1:7717/mcp TOKEN
"""

import http.client
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

target, token = urlsplit(sys.argv[1]), sys.argv[2]
HOP = {"connection", "transfer-encoding", "keep-alive"}


class Pass(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        ours, theirs = f":{self.server.server_port}", f":{target.port}"
        headers = {name: value.replace(ours, theirs) if name.lower() in ("host", "origin") else value
                   for name, value in self.headers.items() if name.lower() not in HOP}
        headers["Authorization"] = f"Bearer {token}"
        there = http.client.HTTPConnection(target.hostname, target.port)
        there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            there.putheader(name, value)
        there.endheaders(body)
        answer = there.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP | {"content-length", "date", "server"}:
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        while piece := answer.read1(65536):
            self.wfile.write(piece)
            self.wfile.flush()
        self.close_connection = True

    do_GET = do_POST = do_DELETE = forward

    def log_message(self, *_):
        pass


class Quiet(ThreadingHTTPServer):
    """Says nothing of clients that leave before the end of a stream."""

    def handle_error(self, *_):
        pass


server = Quiet(("127.0.0.1", 0), Pass)
print(f"http://127.0.0.1:{server.server_port}{target.path}", flush=True)
server.serve_forever()
