"""The re-rankers of a folder: cross-encoders in its sub-folders, each known by its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tercet.models.adapters.settings import is_adapter_name
from tercet.models.checkpoint import CONFIG_FILE
from tercet.models.errors import CheckpointError, RerankerNotServedError, RerankerUnusableError

if TYPE_CHECKING:
    from tercet.models.cross_encoder import CrossEncoder


def reranker_names(root: Path) -> tuple[str, ...]:
    """The names of all re-rankers below a folder, in order; none where there is no such folder."""
    if not root.is_dir():
        return ()
    names = (path.name for path in root.iterdir() if is_adapter_name(path.name))  # others may be unreadable
    return tuple(sorted(name for name in names if (root / name / CONFIG_FILE).is_file()))


def load_reranker(root: Path, name: str, device: str, threads: int | None) -> CrossEncoder:
    """The re-ranker of a name that there is.

    device: auto, cpu, cuda or cuda:NUMBER; threads: of a pass on a CPU, by default `usable_cores`.
    Raises RerankerUnusableError, RerankerNotServedError where torch is not installed, and what
    `open_cross_encoder` raises for the device.
    """
    try:  # only now, since serving without re-rankers needs no torch
        from tercet.models.cross_encoder import open_cross_encoder
    except ImportError as error:
        raise RerankerNotServedError(
            f"re-rankers need torch and transformers ({error}): pip install -c constraints.txt -e '.[torch]'"
        ) from error
    try:
        return open_cross_encoder(root / name, device, threads)
    except CheckpointError as error:
        raise RerankerUnusableError(f"re-ranker {name!r} cannot be used: {error}") from error
