"""Step 3: the base with the new table, as a checkpoint folder."""

from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from tokenizers import Tokenizer

from models.checkpoint import CONFIG_FILE, SETTINGS_FILE, read_json
from models.head_weights import HEADS_FILE
from models.representations import Float32
from models.tokenizer import TOKENIZER_FILE
from models.torch_encoder import load_body, without_loading_report
from training.multilingual.align import unpadded
from training.multilingual.initial_table import aligned_table, prefix_neighbours

# The mean of the words, not of unused entries and single characters, which come first.
FIRST_WORD = 2000
# From so many alignments on a piece needs no help of its neighbours, and below the second has none.
KNOWN, UNKNOWN = 3.0, 0.5
UNKNOWN_ID = 100
# Where scripts without spaces begin.
FIRST_UNSPACED = 0x2E80


def write_start(base: Path, tokenizer: Path, counts: Path, output: Path) -> None:
    """Writes body, heads and settings of the base, the tokenizer, and the aligned table."""
    body = load_body(base)
    english: Float32 = body.get_input_embeddings().weight.detach().numpy()  # type: ignore[operator]
    vocabulary = Tokenizer.from_file(str(tokenizer)).get_vocab()
    pieces = [""] * len(vocabulary)
    for piece, row in vocabulary.items():
        pieces[row] = piece
    total = sum(sparse.load_npz(path) for path in sorted(counts.glob("*.npz"))).tocsr()
    table = initial_table(total, english, pieces, unpadded(base / TOKENIZER_FILE))
    body.resize_token_embeddings(len(table), mean_resizing=False)  # type: ignore[operator]
    with torch.no_grad():
        body.get_input_embeddings().weight.copy_(torch.from_numpy(table))  # type: ignore[operator]
    output.mkdir(parents=True, exist_ok=True)
    for name in (SETTINGS_FILE, HEADS_FILE, "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(base / name, output / name)
    shutil.copyfile(tokenizer, output / TOKENIZER_FILE)
    with without_loading_report():
        body.save_pretrained(output)  # type: ignore[operator]
    if read_json(output / CONFIG_FILE)["vocab_size"] != len(table):
        raise ValueError(f"{output / CONFIG_FILE} has not the size of the table, {len(table)}")


def initial_table(counts: object, english: Float32, pieces: list[str], base: Tokenizer) -> Float32:
    """All V embeddings float32[V, D]: the base's own first, unchanged.

    A piece of few alignments takes after pieces that begin alike, or else after what the base makes of its
    letters without accents; a word without spaces after its characters.
    """
    own = len(english)
    aligned = np.asarray(counts.sum(axis=1)).ravel()  # type: ignore[attr-defined]
    fallback = np.tile(english[FIRST_WORD:].mean(axis=0), (len(pieces), 1)).astype(np.float32)
    for row in range(own, len(pieces)):
        ids = base_tokens(base, pieces[row])
        if ids:
            fallback[row] = english[ids].mean(axis=0)
    table = aligned_table(counts, english, fallback)
    known = aligned >= KNOWN
    known[:own] = False
    neighbours = prefix_neighbours(pieces, known)
    for row in range(own, len(pieces)):
        if not known[row] and neighbours[row] and ord(pieces[row][-1]) < FIRST_UNSPACED:
            fallback[row] = table[neighbours[row]].mean(axis=0)
    table = aligned_table(counts, english, fallback)
    rows = {piece: row for row, piece in enumerate(pieces)}
    for row in range(own, len(pieces)):
        piece = pieces[row]
        if aligned[row] < UNKNOWN and len(piece) > 1 and ord(piece[0]) >= FIRST_UNSPACED:
            parts = [rows[c] for c in piece if c in rows and aligned[rows[c]] >= UNKNOWN]
            if parts:
                table[row] = table[parts].mean(axis=0)
    table[:own] = english
    return table


def base_tokens(base: Tokenizer, piece: str) -> list[int]:
    """The base's tokens of a piece of Latin letters without its accents; none for other scripts."""
    inside = piece.startswith("##")
    letters = unicodedata.normalize("NFD", piece.removeprefix("##"))
    plain = "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
    if not plain or not plain.isascii():
        return []
    whole = base.token_to_id("##" + plain) if inside else None
    ids = [whole] if whole is not None else base.encode(plain, add_special_tokens=False).ids
    return [token for token in ids if token != UNKNOWN_ID]
