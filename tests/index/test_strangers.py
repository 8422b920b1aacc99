"""Files of strangers' collections: whatever they hold is read, or refused by a named error, and soon.

Checksums are those of the changed files, as strangers would write them. `tests/endurance/files/strangers.py`
tries many more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.index.strangers import KINDS, collection_targets, faiss_targets
from tests.strangers.children import Target, try_mutations

MUTATIONS, MUTATIONS_OF_FAISS = 150, 120


@pytest.mark.parametrize("number", range(5))
def test_changed_files_are_read_or_refused_by_name(tmp_path: Path, number: int) -> None:
    require_sound(collection_targets(tmp_path)[number], MUTATIONS)


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_changed_indexes_of_faiss_are_read_or_refused_by_name(tmp_path: Path, number: int) -> None:
    require_sound(faiss_targets(tmp_path)[number], MUTATIONS_OF_FAISS)


def require_sound(target: Target, mutations: int) -> None:
    outcome = try_mutations(target, range(mutations))
    assert not outcome.failures
    assert outcome.counts["loaded"] + outcome.counts["refused"] == mutations
    assert 0 < outcome.counts["refused"] < mutations
