"""The Python of docs/python-api.md, and the example, run as they are written."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import tercet_client

from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server

ROOT = Path(__file__).resolve().parents[2]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python-api.md").read_text("utf-8"), re.S)


@pytest.mark.slow
@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippets_run(snippet: str, tmp_path: Path, tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERCET_CHECKPOINT", "minilm-m3")  # opens sooner than the default one
    if "tercet_client" not in snippet:
        exec(compile(snippet, "python-api.md", "exec"), {})  # noqa: S102 - code of our own page
        return
    client: Any = tercet_client.Client
    with real_server(create_app(Settings(data=tmp_path / "data"), tiny)) as url:
        monkeypatch.setattr(tercet_client, "Client", lambda _url: client(url))
        exec(compile(snippet, "python-api.md", "exec"), {})  # noqa: S102 - code of our own page


def test_the_example_finds_what_it_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/search_in_python.py"))
    first, best, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("3 documents, ")
    assert best.endswith("  kimchi")
