"""Checkpoints of a published shape with random weights, in the layout of BGE-M3."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from tercet.models.checkpoint import EncodingSettings, Pooling
from tercet.models.representations import OUTPUTS, Output

CHECKPOINTS = Path(__file__).resolve().parent.parent.parent / "checkpoints"
VOCABULARY_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "sentencepiece.bpe.model",
)


@dataclass(frozen=True)
class Shape:
    """A BERT-shaped body and the width of its token vectors. vocabulary: a checkpoint that has its tokens;
    late: whether it has token vectors alone, in the layout of sentence-transformers' MultiVectorEncoder.
    """

    name: str
    layers: int
    width: int
    intermediate: int
    colbert: int
    attention_heads: int
    model_type: str
    vocabulary: str
    pooling: Pooling
    max_length: int
    late: bool = False

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The sides that it has."""
        return ("colbert",) if self.late else OUTPUTS


MINILM = Shape("minilm", 6, 384, 1536, 384, 12, "bert", "minilm-m3", "mean", 512)
BGE_M3 = Shape("bge-m3", 24, 1024, 4096, 1024, 16, "xlm-roberta", "multi-m3", "cls", 8192)
COLBERT = Shape("colbert", 6, 384, 1536, 128, 12, "bert", "minilm-m3", "none", 512, late=True)
SHAPES = {shape.name: shape for shape in (MINILM, BGE_M3, COLBERT)}
LIBRARY = "sentence_transformers"


def write(shape: Shape, folder: Path) -> None:
    """Weights in float32, as published ones are, and all that FlagEmbedding and we read beside them."""
    import torch
    from transformers import AutoConfig, AutoModel

    from tercet.models.heads import Heads

    vocabulary = CHECKPOINTS / shape.vocabulary
    known = json.loads((vocabulary / "config.json").read_text(encoding="utf-8"))
    begins = 2 if shape.model_type == "xlm-roberta" else 0  # its positions are counted from the padding's
    config = AutoConfig.for_model(
        shape.model_type,
        vocab_size=known["vocab_size"],
        pad_token_id=known["pad_token_id"],
        type_vocab_size=1 if begins else known["type_vocab_size"],
        num_hidden_layers=shape.layers,
        hidden_size=shape.width,
        num_attention_heads=shape.attention_heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=shape.max_length + begins,
        layer_norm_eps=1e-5,
    )
    torch.manual_seed(0)
    model = AutoModel.from_config(config, add_pooling_layer=False)  # type: ignore[no-untyped-call]  # untyped
    model.save_pretrained(folder)
    for name in VOCABULARY_FILES:
        if (vocabulary / name).exists():
            shutil.copyfile(vocabulary / name, folder / name)
    if shape.late:
        write_modules(shape, folder)
        return
    settings = EncodingSettings(pooling=shape.pooling, max_length=shape.max_length)
    heads = Heads(shape.width, shape.colbert, settings)
    for head, name in ((heads.sparse, "sparse_linear.pt"), (heads.colbert, "colbert_linear.pt")):
        assert head is not None, "settings that name no sizes give every head"
        torch.save(head.state_dict(), folder / name)
    (folder / "tercet.json").write_text(json.dumps(settings.to_json()), encoding="utf-8")


def write_modules(shape: Shape, folder: Path) -> None:
    """A linear layer for every token, and unit length, as modules after the body."""
    import torch
    from safetensors.torch import save_file

    names = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    dense = {
        "in_features": shape.width,
        "out_features": shape.colbert,
        "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity",
        **names,
    }
    transformer = {
        "transformer_task": "feature-extraction",
        "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        "module_output_name": "token_embeddings",
        "max_seq_length": shape.max_length,
    }
    described = {
        "__version__": {LIBRARY: "6.2.0"},
        "model_type": "MultiVectorEncoder",
        "prompts": {},
        "default_prompt_name": None,
        "similarity_fn_name": "maxsim",
    }
    mask: dict[str, object] = {"skiplist_words": [], "skiplist_tasks": [], "keep_only_token_ids": None}
    kinds = {
        "": "base.modules.transformer.Transformer",
        "1_Dense": "base.modules.dense.Dense",
        "2_MultiVectorMask": "multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask",
        "3_Normalize": "base.modules.normalize.Normalize",
    }
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"{LIBRARY}.{kind}"}
        for place, (path, kind) in enumerate(kinds.items())
    ]
    for name, content in {
        "modules.json": modules,
        "config_sentence_transformers.json": described,
        "sentence_bert_config.json": transformer,
        "1_Dense/config.json": dense,
        "2_MultiVectorMask/config.json": mask,
        "3_Normalize/config.json": names,
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    layer = {"linear.weight": 0.05 * torch.randn(shape.colbert, shape.width)}
    save_file(layer, folder / "1_Dense" / "model.safetensors")
