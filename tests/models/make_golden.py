"""Rebuilds tests/models/golden: a tiny random XLM-RoBERTa checkpoint and FlagEmbedding's outputs on it.

usage: python tests/models/make_golden.py PEER_PYTHON [--peer-script FILE]

PEER_PYTHON is the Python of an environment with FlagEmbedding 1.4.2. The checkpoint is made here, with
torch and transformers; the outputs come from the peer, in float32 on a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "models" / "golden"
PEER_SCRIPT = ROOT.parent / "shared" / "peers" / "flagembedding_encode.py"
WIDTH = 32
MAX_LENGTH = 62
# Larger than a real model's, so that a few random layers already tell texts apart.
WEIGHT_DEVIATION = 0.15
TEXTS = (
    "wing",
    "A wing lifts when air flows faster above it.",
    "The heat of the air behind the shock wave is high, and the wave is strong.",
    "밤하늘의 별은 왜 반짝이는가?",
    "서울은 한국의 수도이다.",
    "東京は日本の首都です。",
    "北京是中国的首都。",
    "Der Zug fährt um acht Uhr ab.",
    "Где находится вокзал?",
    "air air air wave wave heat",
    "1 2 3 4 5 6 7 8 9 10",
    "The wave and the wing, the heat and the air: " * 6,
)
WORDS = ("the", "a", "air", "wing", "wave", "heat", "is", "and", "Der", "Zug", "서울", "東京", "北京")
SPECIAL_ROLES = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


def make_tokenizer() -> Tokenizer:
    """Unigram pieces in XLM-R's order: specials, words and characters of the texts, then <mask>."""
    characters = sorted(set("".join(TEXTS)) - {" ", "?"})
    pieces = [f"▁{word}" for word in WORDS] + ["▁", *characters]
    scores = [-4.0] * len(WORDS) + [-6.0] + [-8.0] * len(characters)
    vocabulary = (
        [(name, 0.0) for name in SPECIAL] + list(zip(pieces, scores, strict=True)) + [("<mask>", 0.0)]
    )
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def write_checkpoint(folder: Path) -> None:
    """A random two-layer checkpoint in the layout of BAAI/bge-m3."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **SPECIAL_ROLES,
        model_max_length=MAX_LENGTH,
    ).save_pretrained(folder)
    config = XLMRobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=MAX_LENGTH + 2,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        layer_norm_eps=1e-5,
        initializer_range=WEIGHT_DEVIATION,
    )
    torch.manual_seed(7)
    XLMRobertaModel(config, add_pooling_layer=False).eval().save_pretrained(folder)
    torch.save(torch.nn.Linear(WIDTH, 1).state_dict(), folder / "sparse_linear.pt")
    torch.save(torch.nn.Linear(WIDTH, WIDTH).state_dict(), folder / "colbert_linear.pt")
    for path in folder.iterdir():
        path.chmod(0o644)


def write_outputs(peer_python: str, peer_script: Path, checkpoint: Path, texts: Path, target: Path) -> None:
    """The peer's three outputs, as one safetensors file with the names of `tercet embed --output`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outputs.npz"
        command = [peer_python, peer_script, checkpoint, texts, out, "--max-length", str(MAX_LENGTH)]
        offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
        subprocess.run([*map(str, command), "--runs", "1"], check=True, env=offline)
        with np.load(out) as arrays:
            save_file({name: np.ascontiguousarray(arrays[name]) for name in arrays.files}, target)
    target.chmod(0o644)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("peer_python")
    parser.add_argument("--peer-script", type=Path, default=PEER_SCRIPT)
    arguments = parser.parse_args()
    write_checkpoint(GOLDEN / "checkpoint")
    texts = GOLDEN / "texts.jsonl"
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in TEXTS]
    texts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_outputs(
        arguments.peer_python,
        arguments.peer_script,
        GOLDEN / "checkpoint",
        texts,
        GOLDEN / "flagembedding.safetensors",
    )


if __name__ == "__main__":
    main()
