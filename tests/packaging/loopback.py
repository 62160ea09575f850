"""Servers on loopback: files of a release, an npm registry, and a model behind HTTPS."""

import base64
import hashlib
import http.server
import io
import json
import ssl
import tarfile
import threading
import urllib.parse


class Server:
    """Serves until `close`; remembers the paths that were asked for."""

    def __init__(self, answer, context=None):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = urllib.parse.unquote(self.path)
                seen.append(path)
                self.rfile.read(int(self.headers.get("content-length", 0)))
                mime, body = answer(path) or (None, None)
                self.send_response(200 if mime else 404)
                self.send_header("content-type", mime or "text/plain")
                self.send_header("content-length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            do_POST = do_GET

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                """A client that refuses our certificate hangs up; that is what is tested."""

        self.server = Quiet(("127.0.0.1", 0), Handler)
        scheme = "http"
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def files(folder):
    """Serves the files of a folder."""

    def answer(path):
        file = folder / path.lstrip("/")
        return ("application/octet-stream", file.read_bytes()) if file.is_file() else None

    return Server(answer)


def registry(tarballs):
    """Serves npm packages, as the registry does."""
    packages, blobs = {}, {}
    for tarball in tarballs:
        data = tarball.read_bytes()
        with tarfile.open(fileobj=io.BytesIO(data)) as packed:
            manifest = json.load(packed.extractfile("package/package.json"))
        packages[manifest["name"]] = (manifest, tarball.name, data)
        blobs[f"/{tarball.name}"] = data

    def answer(path):
        if path in blobs:
            return "application/octet-stream", blobs[path]
        if path.lstrip("/") not in packages:
            return None
        manifest, name, data = packages[path.lstrip("/")]
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        dist = {"tarball": f"{server.url}/{name}", "integrity": integrity}
        version = manifest["version"]
        body = {
            "name": manifest["name"],
            "dist-tags": {"latest": version},
            "versions": {version: manifest | {"dist": dist}},
        }
        return "application/json", json.dumps(body).encode()

    server = Server(answer)
    return server


def model(words, certificate, key):
    """Serves an OpenAI-compatible model that always says `words`, behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": words}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"

    def answer(path):
        return ("text/event-stream", stream.encode()) if path == "/v1/chat/completions" else None

    return Server(answer, context)
