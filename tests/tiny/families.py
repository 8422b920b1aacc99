"""Tiny random checkpoints of the families of encoders, with the files that their repositories have.

Configurations have the keys of the published ones and small numbers; weights are random, so that states of
different texts differ, and come from transformers itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, GteConfig, GteModel, PreTrainedModel

from tercet.models.weights.head_weights import HeadWeights, LinearHead, write_heads
from tests.tiny.late_folders import Layer, write_dense
from tests.tiny.vocabularies import Kind, byte_fallback, byte_pairs, unigrams, word_pieces

WIDTH = 32
COLBERT = 16
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.15,
}
DROPOUT = {"attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.1}
SEED = 7
MODULE = "sentence_transformers.models.{}"
QWEN_QUERY = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

Weights = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Family:
    """One family. name: as people know it; config: of config.json, without `vocab_size`; vocabulary: its
    kind, and then its special tokens, in order of their ids, and of these the first, the last and the
    unknown; pooling: as sentence-transformers has it; layers: rows of each Dense after it; heads: whether
    BGE-M3's stand beside it; exports: whether it has a graph.
    """

    name: str
    config: Mapping[str, Any]
    vocabulary: tuple[Kind, Sequence[str], str, str, str]
    pooling: str = "mean"
    layers: tuple[int, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    heads: bool = False
    exports: bool = True
    body: Callable[[Path], PreTrainedModel] | None = None
    as_published: Callable[[Weights], Weights] = dict
    sides: tuple[str, ...] = ("dense",)

    @property
    def key(self) -> str:
        """Its name in the names of files."""
        return self.name.lower().replace(" ", "-")


def write(family: Family, folder: Path) -> Path:
    """Writes the checkpoint of a family."""
    folder.mkdir(parents=True)
    kind, special, *named = family.vocabulary
    tokenizer = kind(special, *named)
    (folder / "tokenizer.json").write_bytes(tokenizer.to_str().encode())
    _json(folder / "config.json", {**family.config, "vocab_size": tokenizer.get_vocab_size()})
    _json(folder / "tokenizer_config.json", _tokenizer_config(special))
    _write_modules(folder, family)
    torch.manual_seed(SEED)
    model = random_body(folder) if family.body is None else family.body(folder)
    scratch = folder / "scratch"
    model.save_pretrained(scratch)
    weights = family.as_published(load_file(scratch / "model.safetensors"))
    for path in scratch.iterdir():
        path.unlink()
    scratch.rmdir()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if family.heads:
        write_heads(folder, random_heads(WIDTH))
    return folder


def random_body(folder: Path) -> PreTrainedModel:
    """What transformers itself makes of a configuration."""
    config = AutoConfig.from_pretrained(folder)
    return _vary(AutoModel.from_config(config))  # type: ignore[no-untyped-call]  # untyped library


def gte_body(folder: Path) -> PreTrainedModel:
    """The body that Alibaba's repositories call `new`: NTK scaling by 8 from θ = 20,000, 8 values a head."""
    sizes = json.loads((folder / "config.json").read_text())
    known = {name: sizes[name] for name in (*SIZES, "vocab_size", "max_position_embeddings")}
    rotation = {"rope_type": "linear", "rope_theta": 160_000.0, "factor": 8 ** (2 / 8)}
    config = GteConfig(**known, rope_parameters=rotation, layer_norm_eps=1e-12)
    return _vary(GteModel(config))


def gte_weights(weights: Weights) -> Weights:
    """With the prefix and the head of lexical weights that `gte-multilingual-base` has."""
    prefixed = {f"new.{name}": values for name, values in weights.items()}
    head = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(SEED)) * 0.3
    return {**prefixed, "classifier.weight": head, "classifier.bias": torch.tensor([0.1])}


def random_heads(width: int) -> HeadWeights:
    """Heads of lexical weights and token vectors."""
    random = np.random.default_rng(SEED)

    def values(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return random.normal(0, 0.2, shape).astype(np.float32)

    return HeadWeights(
        LinearHead(values(1, width), np.array([0.1], np.float32)),
        LinearHead(values(COLBERT, width), values(COLBERT)),
    )


def _vary(model: PreTrainedModel) -> PreTrainedModel:
    """Also norms and biases, which start as ones and zeros: a lost one should show."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    model.eval()  # type: ignore[no-untyped-call]  # untyped library
    return model


def _tokenizer_config(special: Sequence[str]) -> dict[str, Any]:
    """What the class that a peer loads it with needs to know."""
    padding = next((name for name in special if "pad" in name.lower()), special[0])
    return {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": padding, "model_max_length": 512}


def _write_modules(folder: Path, family: Family) -> None:
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling")]
    for rows, columns in zip(family.layers, (WIDTH, *family.layers), strict=False):
        kinds.append(("Dense", f"{len(kinds)}_Dense"))
        write_dense(folder / kinds[-1][1], Layer(rows, columns), seed=len(kinds))
    kinds.append(("Normalize", f"{len(kinds)}_Normalize"))
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": MODULE.format(kind)}
        for place, (kind, path) in enumerate(kinds)
    ]
    _json(folder / "modules.json", modules)
    (folder / "1_Pooling").mkdir()
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "lasttoken")
    pooling = {f"pooling_mode_{mode}": mode.startswith(family.pooling) for mode in modes}
    pooling["pooling_mode_mean_sqrt_len_tokens"] = False
    _json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": WIDTH, **pooling})
    _json(folder / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})
    _json(
        folder / "config_sentence_transformers.json",
        {"prompts": dict(family.prompts), "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )


def _json(path: Path, values: Any) -> None:
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
DEBERTA_SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
IN_BERT = (word_pieces, BERT_SPECIAL, "[CLS]", "[SEP]", "[UNK]")
IN_XLMR = (unigrams, ROBERTA_SPECIAL, "<s>", "</s>", "<unk>")
OF_ROBERTA = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "layer_norm_eps": 1e-05}
OF_DEBERTA = {
    **SIZES,
    **DROPOUT,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-07,
    "max_position_embeddings": 64,
    "max_relative_positions": -1,
    "pad_token_id": 0,
    "position_biased_input": False,
    "relative_attention": True,
    "type_vocab_size": 0,
}

FAMILIES = (
    Family(
        "BERT",
        {
            **SIZES,
            **DROPOUT,
            "architectures": ["BertModel"],
            "classifier_dropout": None,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
            "max_position_embeddings": 64,
            "model_type": "bert",
            "pad_token_id": 0,
            "position_embedding_type": "absolute",
            "type_vocab_size": 2,
            "use_cache": True,
        },
        IN_BERT,
        pooling="cls",
        heads=True,
        sides=("dense", "sparse", "colbert"),
    ),
    Family(
        "XLM-R",
        {
            **SIZES,
            **DROPOUT,
            **OF_ROBERTA,
            "architectures": ["XLMRobertaModel"],
            "hidden_act": "gelu",
            "max_position_embeddings": 66,
            "model_type": "xlm-roberta",
            "output_past": True,
            "position_embedding_type": "absolute",
            "type_vocab_size": 1,
        },
        IN_XLMR,
        pooling="cls",
        heads=True,
        sides=("dense", "sparse", "colbert"),
    ),
    Family(
        "RoBERTa",
        {
            **SIZES,
            **DROPOUT,
            **OF_ROBERTA,
            "architectures": ["RobertaForMaskedLM"],
            "hidden_act": "gelu",
            "max_position_embeddings": 66,
            "model_type": "roberta",
            "type_vocab_size": 1,
        },
        (byte_pairs, ROBERTA_SPECIAL, "<s>", "</s>", "<unk>"),
    ),
    Family(
        "MPNet",
        {
            **SIZES,
            **DROPOUT,
            **OF_ROBERTA,
            "architectures": ["MPNetForMaskedLM"],
            "hidden_act": "gelu",
            "max_position_embeddings": 66,
            "model_type": "mpnet",
            "relative_attention_num_buckets": 32,
        },
        (word_pieces, (*ROBERTA_SPECIAL[:3], "[UNK]", "<mask>"), "<s>", "</s>", "[UNK]"),
    ),
    Family(
        "DistilBERT",
        {
            "activation": "gelu",
            "architectures": ["DistilBertModel"],
            "attention_dropout": 0.1,
            "dim": WIDTH,
            "dropout": 0.1,
            "hidden_dim": 48,
            "initializer_range": 0.15,
            "max_position_embeddings": 64,
            "model_type": "distilbert",
            "n_heads": 4,
            "n_layers": 2,
            "pad_token_id": 0,
            "sinusoidal_pos_embds": False,
            "tie_weights_": True,
        },
        IN_BERT,
    ),
    Family(
        "DeBERTa",
        {**OF_DEBERTA, "model_type": "deberta", "pos_att_type": "c2p|p2c", "padding_idx": 0},
        (byte_pairs, DEBERTA_SPECIAL, "[CLS]", "[SEP]", "[UNK]"),
    ),
    Family(
        "DeBERTa v3",
        {
            **OF_DEBERTA,
            "model_type": "deberta-v2",
            "norm_rel_ebd": "layer_norm",
            "pos_att_type": "p2c|c2p",
            "position_buckets": 16,
            "share_att_key": True,
        },
        (unigrams, DEBERTA_SPECIAL, "[CLS]", "[SEP]", "[UNK]"),
    ),
    Family(
        "ModernBERT",
        {
            **SIZES,
            "architectures": ["ModernBertForMaskedLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": 1,
            "cls_token_id": 1,
            "eos_token_id": 2,
            "global_attn_every_n_layers": 2,
            "global_rope_theta": 160000.0,
            "hidden_activation": "gelu",
            "initializer_cutoff_factor": 2.0,
            "local_attention": 8,
            "local_rope_theta": 10000.0,
            "max_position_embeddings": 96,
            "mlp_bias": False,
            "model_type": "modernbert",
            "norm_bias": False,
            "norm_eps": 1e-05,
            "pad_token_id": 0,
            "position_embedding_type": "absolute",
            "reference_compile": None,
            "sep_token_id": 2,
        },
        (byte_pairs, DEBERTA_SPECIAL, "[CLS]", "[SEP]", "[UNK]"),
        pooling="cls",
    ),
    Family(
        "gte",
        {
            **SIZES,
            **DROPOUT,
            "architectures": ["NewModel", "NewForTokenClassification"],
            "auto_map": {
                "AutoConfig": "configuration.NewConfig",
                "AutoModel": "modeling.NewModel",
                "AutoModelForTokenClassification": "modeling.NewForTokenClassification",
            },
            "classifier_dropout": 0.0,
            "hidden_act": "gelu",
            "id2label": {"0": "LABEL_0"},
            "label2id": {"LABEL_0": 0},
            "layer_norm_eps": 1e-12,
            "layer_norm_type": "layer_norm",
            "logn_attention_clip1": False,
            "logn_attention_scale": False,
            "max_position_embeddings": 96,
            "model_type": "new",
            "pack_qkv": True,
            "pad_token_id": 1,
            "position_embedding_type": "rope",
            "rope_scaling": {"factor": 8.0, "type": "ntk"},
            "rope_theta": 20000,
            "type_vocab_size": 1,
            "unpad_inputs": False,
            "use_memory_efficient_attention": False,
        },
        IN_XLMR,
        pooling="cls",
        body=gte_body,
        as_published=gte_weights,
        sides=("dense", "sparse"),
    ),
    Family(
        "jina-embeddings-v3",
        {
            **SIZES,
            **DROPOUT,
            "architectures": ["JinaEmbeddingsV3Model"],
            "bos_token_id": 0,
            "eos_token_id": 2,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-05,
            "max_position_embeddings": 96,
            "model_type": "jina_embeddings_v3",
            "pad_token_id": 1,
            "rope_parameters": {"rope_theta": 20000.0, "rope_type": "default"},
            "type_vocab_size": 1,
        },
        IN_XLMR,
    ),
    Family(
        "EmbeddingGemma",
        {
            **SIZES,
            "_sliding_window_pattern": 2,
            "architectures": ["Gemma3TextModel"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "attn_logit_softcapping": None,
            "bos_token_id": 2,
            "eos_token_id": 1,
            "final_logit_softcapping": None,
            "head_dim": 16,
            "hidden_activation": "gelu_pytorch_tanh",
            "layer_types": ["sliding_attention", "full_attention"],
            "max_position_embeddings": 96,
            "model_type": "gemma3_text",
            "num_key_value_heads": 1,
            "pad_token_id": 0,
            "query_pre_attn_scalar": 16,
            "rms_norm_eps": 1e-06,
            "rope_local_base_freq": 10000.0,
            "rope_scaling": None,
            "rope_theta": 1000000.0,
            "sliding_window": 8,
            "use_bidirectional_attention": True,
            "use_cache": True,
        },
        (byte_fallback, ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>"), "<bos>", "<eos>", "<unk>"),
        layers=(48, WIDTH),
        prompts={"query": "task: search result | query: ", "document": "title: none | text: "},
    ),
    Family(
        "Qwen3-Embedding",
        {
            **SIZES,
            "architectures": ["Qwen3ForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "head_dim": 16,
            "hidden_act": "silu",
            "max_position_embeddings": 128,
            "max_window_layers": 2,
            "model_type": "qwen3",
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-06,
            "rope_scaling": None,
            "rope_theta": 1000000,
            "sliding_window": None,
            "tie_word_embeddings": True,
            "use_cache": True,
            "use_sliding_window": False,
        },
        (byte_pairs, ("<|endoftext|>",), "", "<|endoftext|>", "<|endoftext|>"),
        pooling="lasttoken",
        prompts={"query": QWEN_QUERY, "document": ""},
    ),
)
