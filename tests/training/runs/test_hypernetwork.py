"""Hypernetworks of languages and tasks, by whole runs: a pair that no source has is served, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from tercet.models.adapters.files import read_adapter
from tercet.training.errors import ConfigError
from tests.training.runs.adapters import Run, dense_differs, served

pytestmark = pytest.mark.slow

PAIRS = (("de", "law"), ("ko", "law"), ("de", "tea"))
ADAPTER = {"kind": "hypernetwork", "hypernetwork": {"size": 3, "width": 4}}


def sources(run_values: dict[str, Any]) -> list[dict[str, Any]]:
    """One of each pair, of which the first chooses the checkpoint."""
    [source] = run_values["data"]["sources"]
    return [
        {
            **source,
            "title": f"{language} {task}",
            "development_pairs": 8 if number == 0 else 0,
            "tags": {"language": language, "task": task},
        }
        for number, (language, task) in enumerate(PAIRS)
    ]


def test_a_pair_that_no_source_has_is_served(
    adapt: Run, base: Path, run_values: dict[str, Any], tmp_path: Path, in_training: list[Any]
) -> None:
    adapt("world", ADAPTER, {"data.sources": sources(run_values), "mining": {"every_steps": 6}})
    world: Any = read_adapter(tmp_path / "adapters" / "world")
    assert (world.settings.languages, world.settings.tasks) == (("de", "ko"), ("law", "tea"))
    assert world.heads is not None
    found: dict[tuple[str, str], Any] = {
        (language, task): served(base, tmp_path / "adapters", f"world+{language}+{task}")
        for language in world.settings.languages
        for task in world.settings.tasks
    }
    # After the last evaluation the body has the bottlenecks of the source that holds pairs out.
    np.testing.assert_allclose(found["de", "law"].dense, in_training[0].dense, atol=2e-6)
    unseen = found.pop(("ko", "tea"))
    assert all(dense_differs(unseen, other) for other in found.values())
    assert dense_differs(unseen, served(base, tmp_path / "adapters", None))


def test_every_source_says_what_it_is_of(adapt: Run, run_values: dict[str, Any]) -> None:
    given = sources(run_values)
    rule = (
        r"data\.sources\[1\]\.tags: it is \"left out\", but must be given for each source of a hypernetwork"
    )
    with pytest.raises(ConfigError, match=rule):
        adapt("world", ADAPTER, {"data.sources": [given[0], {**given[1], "tags": None}]})
    with pytest.raises(ConfigError, match=r"data\.sources\[0\]\.tags: .* left out without a hypernetwork"):
        adapt("world", {"kind": "lora"}, {"data.sources": given[:1]})
    spaced = {**given[0], "tags": {"language": "old norse", "task": "law"}}
    with pytest.raises(ConfigError, match=r"data\.sources\[\]\.tags: languages is \('old norse',\)"):
        adapt("world", ADAPTER, {"data.sources": [spaced]})
