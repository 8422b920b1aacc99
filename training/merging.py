"""One checkpoint of several of the same shape: their mean, or a base with what they learned added to it.

The mean of models that were trained from one base often does better than each (model soups, Wortsman et al.
2022, arXiv 2203.05482). What a model learned is its distance from the base, a task vector, which may be
added, scaled and subtracted (Ilharco et al. 2023, arXiv 2212.04089, section 2).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import Tensor

from tercet.models.checkpoint import read_settings
from tercet.models.encoder_model import EncoderModel, load_body, load_model
from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import file_digest
from tercet.models.tokenizer import TOKENIZER_FILES
from tercet.training.runs.base import require_body_and_heads
from tercet.training.runs.checkpoint_writer import write_checkpoint

SUM_TOLERANCE = 1e-6

Tensors = Mapping[str, Tensor]


def merge_checkpoints(
    folders: Sequence[Path], output: Path, base: Path | None = None, weights: Sequence[float] = ()
) -> None:
    """Writes the checkpoint that `merged` gives, with the tokenizer and the settings of the first folder.

    base: may lack heads; then the mean of the others' heads is taken. weights: of each folder, by default
    equal without a base, and 1 with one.
    Raises CheckpointError where the folders do not go together, or the output exists, and ConfigError for a
    kind of checkpoint that is not written here. The output is there once it is whole.
    """
    if output.exists():
        raise CheckpointError(f"{output} exists; name a new folder")
    weights = weights or [1.0 if base is not None else 1 / len(folders)] * len(folders)
    _require_weights(weights, folders, base)
    encoding = read_settings(folders[0])
    for folder in folders:
        require_body_and_heads(folder, read_settings(folder), str(folder))
    for folder in folders[1:]:
        own, others = encoding.to_json(), read_settings(folder).to_json()
        if differing := ", ".join(key for key in {**own, **others} if own.get(key) != others.get(key)):
            raise CheckpointError(f"{folder} has another {differing} than {folders[0]} (tercet.json)")
    for folder in [*folders[1:], *([] if base is None else [base])]:
        if _tokenizer(folder) != _tokenizer(folders[0]):
            raise CheckpointError(f"{folder} has another tokenizer than {folders[0]}")
    models = [load_model(folder, encoding) for folder in folders]
    body = models[0].body
    start = None if base is None else load_body(base).state_dict()
    body.load_state_dict(merged([model.body.state_dict() for model in models], weights, start))
    heads = models[0].heads
    theirs = _base_heads(base, heads.state_dict())
    shares = weights if base is None or theirs is not None else [1 / len(folders)] * len(folders)
    heads.load_state_dict(merged([model.heads.state_dict() for model in models], shares, theirs))
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as work:
        whole = Path(work) / output.name
        model, has_heads = EncoderModel(body, heads), bool(heads.state_dict())
        write_checkpoint(whole, folders[0], model, encoding, with_heads=has_heads)
        whole.rename(output)


def merged(models: Sequence[Tensors], weights: Sequence[float], base: Tensors | None) -> dict[str, Tensor]:
    """By name, `Σ w·θ`, or with a base θ₀ `θ₀ + Σ w·(θ − θ₀)`.

    Raises CheckpointError for a tensor that is missing, of another shape, or of whole numbers that differ.
    """
    result = {}
    for name, first in models[0].items():
        tensors = [model.get(name) for model in (*models, *([] if base is None else [base]))]
        present = [tensor for tensor in tensors if tensor is not None and tensor.shape == first.shape]
        if len(present) != len(tensors):
            raise CheckpointError(f"tensor {name} is not in all checkpoints with the same shape")
        if not first.is_floating_point():
            if any(not tensor.equal(first) for tensor in present):
                raise CheckpointError(f"tensor {name} holds whole numbers, and they differ")
            result[name] = first
            continue
        start = present[len(models)] if base is not None else first.new_zeros(())
        changes = zip(weights, present[: len(models)], strict=True)
        result[name] = start + sum(
            (weight * (tensor - start) for weight, tensor in changes), first.new_zeros(())
        )
    return result


def _require_weights(weights: Sequence[float], folders: Sequence[Path], base: Path | None) -> None:
    if len(weights) != len(folders):
        raise CheckpointError(
            f"{len(weights)} weights were given for {len(folders)} checkpoints; give as many"
        )
    if not all(map(math.isfinite, weights)):
        raise CheckpointError(f"weights are {', '.join(map(str, weights))}; give numbers")
    if base is None and abs(sum(weights) - 1) > SUM_TOLERANCE:
        raise CheckpointError(f"the weights sum to {sum(weights):g}; without a base they must sum to 1")


def _tokenizer(folder: Path) -> dict[str, str]:
    return {name: file_digest(folder / name) for name in TOKENIZER_FILES if (folder / name).is_file()}


def _base_heads(base: Path | None, wanted: Tensors) -> Tensors | None:
    """The heads of a base that has all of them."""
    if base is None:
        return None
    own = load_model(base, read_settings(base)).heads.state_dict()
    return own if own.keys() == wanted.keys() else None
