"""The examples as a user runs them, against the demo. `make outside` runs these tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from tercet_client import Client

EXAMPLES = Path(__file__).resolve().parent.parent
QUESTION = "why does bread dough rise?"
ANSWER = "Yeast makes gas [1]."


def run(script: str, *arguments: str, **environment: str) -> str:
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def chat_server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that answers as an OpenAI-compatible one does, and what it was asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            message = {"role": "assistant", "content": ANSWER}
            body = json.dumps(
                {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": asked[-1]["model"],
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1", asked
    server.shutdown()
    server.server_close()


def test_retrieval_for_a_language_model_shows_its_prompt_where_there_is_none(url: str) -> None:
    said = run("rag_langchain.py", QUESTION, "--url", url)
    prompt, answer = said.split("--- the answer ---")
    assert "[1] " in prompt
    assert f"Question: {QUESTION}" in prompt
    assert "dough" in answer
    assert answer.rstrip().endswith("[1]")


def test_retrieval_for_a_language_model_asks_the_one_it_is_given(
    url: str, chat_server: tuple[str, list[dict[str, Any]]]
) -> None:
    address, asked = chat_server
    model = ("--model", "some-model", "--base-url", address)
    said = run("rag_langchain.py", QUESTION, "--url", url, *model, OPENAI_API_KEY="none")
    assert said.rstrip().endswith(ANSWER)
    [request] = asked
    assert request["model"] == "some-model"
    assert QUESTION in request["messages"][1]["content"]
    assert "[3] " in request["messages"][1]["content"]


def test_korean_questions_find_their_answers(url: str, client: Client) -> None:
    try:
        for question, answer in (
            ("비밀번호가 기억나지 않아요", "비밀번호를 잊어버렸어요."),
            ("택배는 언제 와요?", "주문한 물건은 언제 도착하나요?"),
            ("사이즈가 안 맞아요", "옷이 작은데 교환할 수 있나요?"),
            ("미국으로 보내 주나요?", "해외로도 보내 주나요?"),
        ):
            said = run("korean_faq.py", question, "--url", url)
            assert answer in said.splitlines()[1], said
            assert "bm25" in said
        said = run("korean_faq.py", "비밀번호가 기억나지 않아요", "--topic", "배송", "--url", url)
        assert "[배송]" in said
        assert "[계정]" not in said
        assert client.collection("korean-faq").description["documents"] == 12
    finally:
        client.delete_collection("korean-faq")


def test_the_routes_are_asked_without_a_client(url: str) -> None:
    assert "en-bakers-yeast" in run("http_client.py", url)


def test_the_notebook_runs_and_is_stored_without_outputs(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    notebook = nbformat.read(EXAMPLES / "three_scores.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    images = [out for cell in cells for out in cell.outputs if "image/png" in out.get("data", {})]
    assert len(images) == 4
    assert cells[0].outputs[0]["data"]["text/plain"].startswith("[('en-honeybee-dance'")
