"""A server of this machine that answers as OpenAI's chat completions do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], bytes]


def completion(content: str | None, prompt_tokens: int = 100, answer_tokens: int = 10) -> Reply:
    """An answer with this content."""
    body = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": answer_tokens},
    }
    return 200, {}, json.dumps(body).encode()


def failure(status: int, message: str, **headers: str) -> Reply:
    """A failure with the server's words."""
    body = json.dumps({"error": {"message": message}}).encode()
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, body


@dataclass
class ChatLog:
    """What a server was asked. requests: bodies, in order; most: how many at a time."""

    url: str
    reply: Callable[[str], Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    at_once: int = 0
    most: int = 0

    @property
    def prompts(self) -> list[str]:
        return [request["messages"][0]["content"] for request in self.requests]


@contextmanager
def chat_server(reply: Callable[[str], Reply]) -> Iterator[ChatLog]:
    """A running server. reply: what it answers to a prompt."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                log.requests.append(body)
                log.headers.append({name.lower(): value for name, value in self.headers.items()})
                log.paths.append(self.path)
                log.at_once += 1
                log.most = max(log.most, log.at_once)
            status, headers, content = log.reply(body["messages"][0]["content"])
            with lock:
                log.at_once -= 1
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    log = ChatLog(f"http://127.0.0.1:{server.server_address[1]}/v1", reply)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield log
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
