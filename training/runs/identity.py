"""What a run's folder was begun with, so that no other run goes on there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tercet.index.wording import reason_of
from tercet.models.adapters.files import RECORD_FILE as ADAPTER_FILE
from tercet.models.adapters.files import ROUTER_FILE
from tercet.models.checkpoint import CONFIG_FILE, SETTINGS_FILE
from tercet.models.fingerprint import file_digest
from tercet.models.formats.peft_config import CONFIG as PEFT_CONFIG
from tercet.models.graphs.record import body_digest
from tercet.models.tokenizer import Tokenizer
from tercet.models.weights.head_weights import HEAD_FILES
from tercet.training.data.pair_table import PairTable
from tercet.training.data.token_store import TokenStore
from tercet.training.distributed import Ranks, wait_for_all
from tercet.training.errors import RunStateError
from tercet.training.files import replacing
from tercet.training.settings.run import RunSettings

IDENTITY_FILE = "identity.json"
# They change nothing that is computed, or, as the base, are compared by their content.
FREE_SETTINGS = frozenset({"name", "base", "save_steps", "save_minutes", "log_steps"})
# Any of these makes a folder a checkpoint, an adapter or a router.
MODEL_FILES = (CONFIG_FILE, SETTINGS_FILE, ADAPTER_FILE, PEFT_CONFIG, ROUTER_FILE)
Identity = dict[str, object]


def run_identity(
    settings: RunSettings,
    base: Path,
    adapters: Mapping[str, object],
    tokenizer: Tokenizer,
    data: Sequence[PairTable | TokenStore],
    ranks: Ranks,
) -> Identity:
    """Settings, processes and the digests of base, tokenizer and training data, as read and tokenized.

    adapters: digests of those that an adapter is made with, by its keys; where they are is free.
    """
    values = settings.model_dump(mode="json", exclude=set(FREE_SETTINGS))
    if adapters:
        values["adapter"].update(adapters)
    heads = [base / name for name in HEAD_FILES if (base / name).is_file()]
    digest = hashlib.sha256()
    for source in data:
        for array in arrays_of(source):
            digest.update(f"{len(array)}\n".encode())
            digest.update(np.ascontiguousarray(array).data)
    identity = {
        "settings": values,
        "processes": ranks.size,
        "base weights": [body_digest(base), *(file_digest(path) for path in heads)],
        "tokenizer": tokenizer.digest,
        "data": digest.hexdigest(),
    }
    plain: Identity = json.loads(json.dumps(identity))
    return plain


def arrays_of(source: PairTable | TokenStore) -> list[npt.NDArray[np.number]]:
    """All that training reads of a source."""
    if isinstance(source, TokenStore):
        return [source.token_ids, source.offsets]
    ragged: list[npt.NDArray[np.number]] = [
        source.positives.rows,
        source.positives.offsets,
        source.negatives.rows,
        source.negatives.offsets,
    ]
    if len(source.scored.scores):
        ragged += [source.scored.rows.rows, source.scored.rows.offsets, source.scored.scores]
    stores = [*arrays_of(source.queries), *arrays_of(source.passages)]
    return [*stores, *ragged, source.training, source.development, source.pool]


def claim_folder(folder: Path, identity: Identity, ranks: Ranks) -> None:
    """Writes the identity of a run that begins; one that goes on must have the same.

    Raises RunStateError, naming what differs.
    """
    path = folder / IDENTITY_FILE
    if path.is_file():
        try:
            written = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunStateError(
                f"{path}: cannot be read ({reason_of(error)}); remove {folder} to begin again"
            ) from error
        odd = differences(written, identity)
        if odd:
            raise RunStateError(
                f"{folder}: a run with other {odd[0]} was begun there; "
                "choose another --output, or remove the folder to begin again"
            )
    wait_for_all(ranks)
    if ranks.rank == 0 and not path.is_file():
        with replacing(path) as file:
            file.write((json.dumps(identity, indent=1) + "\n").encode())


def require_own(output: Path, folder: Path) -> None:
    """Refuses an output with a model that no run there has made: it would be replaced piece by piece.

    folder: the run's. Raises RunStateError.
    """
    present = [name for name in MODEL_FILES if (output / name).exists()]
    if present and not (folder / IDENTITY_FILE).exists():
        raise RunStateError(
            f"{output}: holds {present[0]} of something that no run there has made; choose another --output"
        )


def differences(present: object, wanted: object, where: str = "") -> list[str]:
    """Dotted keys whose values differ, with both values where they are short."""
    if isinstance(present, dict) and isinstance(wanted, dict):
        keys = sorted({*present, *wanted})
        return [
            odd
            for key in keys
            for odd in differences(present.get(key), wanted.get(key), f"{where}.{key}" if where else key)
        ]
    if present == wanted:
        return []
    name = where.removeprefix("settings.")
    return [
        f"{name} ({present!r}, now {wanted!r})"
        if isinstance(wanted, int | float | str) and len(str(wanted)) < 40
        else name
    ]
