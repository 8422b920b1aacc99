"""Adapters behind the encoder contract: mixed batches, engines that agree, fingerprints, refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.files import read_adapter, write_adapter
from tercet.models.encoder import Encoder, encode, with_adapter
from tercet.models.errors import AdapterNotFoundError, AdapterNotServedError, AdapterUnusableError
from tercet.models.export_onnx import export_adapter
from tercet.models.graphs.record import read_export
from tercet.models.loader import load_encoder
from tercet.models.representations import OUTPUTS, Representations
from tests.models.conftest import graph_in

pytestmark = pytest.mark.slow

KINDS = ["lora", "ia3", "bias", "sparse", "prefix", "prompt", "bottleneck", "parallel", "mixed", "unipelt"]
ALL = sorted([*KINDS, "fusion", "with-heads", "stack", "stack-prefix"])
TEXTS = [
    "hello world",
    "",
    "wing",
    "the heat of the air, and a wave!",
    "밤하늘의 별 東京",
    "word " * 100,
    "a wing of air",
    "hello, hello!",
]


def assert_close(one: Representations, other: Representations, tolerance: float) -> None:
    np.testing.assert_array_equal(one.tokens, other.tokens)
    np.testing.assert_allclose(one.dense, other.dense, atol=tolerance)
    np.testing.assert_array_equal(one.colbert.offsets, other.colbert.offsets)
    np.testing.assert_allclose(one.colbert.vectors, other.colbert.vectors, atol=tolerance)
    for row in range(len(one)):
        left = dict(zip(*(array.tolist() for array in one.sparse.row(row)), strict=True))
        right = dict(zip(*(array.tolist() for array in other.sparse.row(row)), strict=True))
        for token in left.keys() | right.keys():
            assert abs(left.get(token, 0.0) - right.get(token, 0.0)) <= tolerance


@pytest.fixture(scope="module")
def torch_encoder(family: Any) -> Encoder:
    return load_encoder(str(family.checkpoint), "torch", device="cpu", adapters=family.adapters)


@pytest.fixture(scope="module")
def onnx_encoder(family: Any) -> Encoder:
    return load_encoder(
        str(family.exported), precision="float32", device="cpu", adapters=family.adapters, adapter_sessions=2
    )


@pytest.fixture(scope="module", params=["torch", "onnx"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    found: Encoder = request.getfixturevalue(f"{request.param}_encoder")
    return found


@pytest.fixture(scope="module")
def names(encoder: Encoder, family: Any) -> list[str]:
    """The adapters that the engine can use: of the onnx engine those with a graph."""
    return ALL if encoder.info.engine == "torch" else list(family.names)


@pytest.fixture(scope="module")
def alone(encoder: Encoder, names: list[str]) -> dict[tuple[str, str | None], Representations]:
    """Each text with each adapter, in a batch of its own."""
    found = {}
    for name in (*names, None):
        for text in TEXTS:
            tokens = encoder.tokenizer.tokenize([text])
            found[text, name] = encoder.encode_tokens(tokens, OUTPUTS, [name])
    return found


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_mixed_batch_equals_each_text_alone(
    encoder: Encoder, names: list[str], alone: Any, data: st.DataObject
) -> None:
    cases = st.tuples(st.sampled_from(TEXTS), st.sampled_from([*names, None]))
    chosen = data.draw(st.lists(cases, min_size=1, max_size=12))
    tokens = encoder.tokenizer.tokenize([text for text, _ in chosen])
    together = encoder.encode_tokens(tokens, OUTPUTS, [name for _, name in chosen])
    assert_close(together, Representations.concatenate([alone[case] for case in chosen]), 1e-5)


def test_a_batch_without_padding(encoder: Encoder, names: list[str], alone: Any) -> None:
    adapters = [*names, None, *names]
    tokens = encoder.tokenizer.tokenize(["hello world"] * len(adapters))
    together = encoder.encode_tokens(tokens, OUTPUTS, adapters)
    expected = [alone["hello world", adapter] for adapter in adapters]
    assert_close(together, Representations.concatenate(expected), 1e-5)
    # Those with heads have the dense vector of "lora"; all others tell.
    assert len(np.unique(together.dense.round(4), axis=0)) >= len({*adapters}) - 1


def test_engines_agree(torch_encoder: Encoder, onnx_encoder: Encoder, family: Any) -> None:
    for name in (*family.names, None):
        one, other = (encode(with_adapter(each, name), TEXTS) for each in (torch_encoder, onnx_encoder))
        assert_close(one, other, 1e-5)


def test_engines_share_fingerprints_of_float_adapters(
    torch_encoder: Encoder, onnx_encoder: Encoder, family: Any
) -> None:
    prints = {name: torch_encoder.adapter_info(name).fingerprint for name in family.names}
    assert prints == {name: onnx_encoder.adapter_info(name).fingerprint for name in family.names}
    assert len({*prints.values(), torch_encoder.info.fingerprint}) == len(family.names) + 1
    assert torch_encoder.info.adapter is None
    assert torch_encoder.adapter_info("prefix").adapter == "prefix"
    assert torch_encoder.adapter_info("prefix").name == torch_encoder.info.name


def test_the_base_is_untouched_by_adapters(family: Any, torch_encoder: Encoder) -> None:
    plain = load_encoder(str(family.checkpoint), "torch", device="cpu")
    assert plain.info == torch_encoder.info
    assert_close(encode(plain, TEXTS), encode(torch_encoder, TEXTS), 0.0)


def test_own_heads_leave_the_dense_vector_alone(torch_encoder: Encoder) -> None:
    own, base_heads = (encode(with_adapter(torch_encoder, name), TEXTS) for name in ("with-heads", "lora"))
    np.testing.assert_allclose(own.dense, base_heads.dense, atol=1e-6)
    assert abs(own.colbert.vectors - base_heads.colbert.vectors).max() > 1e-3


@pytest.mark.parametrize("output", OUTPUTS)
def test_only_what_is_asked_for(encoder: Encoder, names: list[str], output: Any) -> None:
    adapters = [names[0], None, names[-1]]
    tokens = encoder.tokenizer.tokenize(TEXTS[:3])
    found = encoder.encode_tokens(tokens, [output], adapters)
    assert [name for name in OUTPUTS if getattr(found, name) is not None] == [output]


def test_no_texts(encoder: Encoder) -> None:
    assert len(encode(with_adapter(encoder, "prefix"), [])) == 0


def test_an_unknown_adapter_is_never_ignored(encoder: Encoder) -> None:
    tokens = encoder.tokenizer.tokenize(["wing", "air"])
    with pytest.raises(
        AdapterNotFoundError, match="no adapter 'law'; there are bias, bottleneck, fusion, ia3, lora"
    ):
        encoder.encode_tokens(tokens, OUTPUTS, [None, "law"])
    with pytest.raises(AdapterNotFoundError):
        with_adapter(encoder, "law")


def test_what_adapters_there_are(encoder: Encoder, names: list[str]) -> None:
    found = {each.name: each for each in encoder.describe_adapters()}
    assert list(found) == ALL
    assert found["prefix"].kind == "prefix"
    assert found["prefix"].language == "ko"
    for name in names:
        assert found[name].fingerprint == encoder.adapter_info(name).fingerprint
        assert found[name].problem is None


def test_threads_with_different_adapters(encoder: Encoder, names: list[str], alone: Any) -> None:
    failures: list[Exception] = []

    def work(name: str | None) -> None:
        try:
            for _ in range(3):
                found = encoder.encode_tokens(encoder.tokenizer.tokenize(TEXTS), OUTPUTS, [name] * len(TEXTS))
                expected = Representations.concatenate([alone[text, name] for text in TEXTS])
                assert_close(found, expected, 1e-5)
        except Exception as error:  # noqa: BLE001 - any failure of the thread fails the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in (*names, None)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_few_graphs_are_open_at_a_time(onnx_encoder: Any, family: Any) -> None:
    for name in family.names:
        encode(with_adapter(onnx_encoder, name), ["wing"])
        assert len(onnx_encoder._adapters._open) <= 2
        assert next(reversed(onnx_encoder._adapters._open)) == name


@pytest.fixture
def root(bert_family: Any, tmp_path: Path) -> Path:
    """Adapters of the tiny BERT, with their graphs, that a test may change."""
    return Path(shutil.copytree(bert_family.adapters, tmp_path / "adapters"))


def on_onnx(exported: Path, root: Path, precision: str = "float32", **options: Any) -> Encoder:
    return load_encoder(str(exported), precision=precision, device="cpu", adapters=root, **options)


def test_an_adapter_without_a_graph(bert_exported: Path, root: Path) -> None:
    encoder = on_onnx(bert_exported, root)
    with pytest.raises(
        AdapterNotServedError, match=r"no exported graph.*tercet export BASE --adapter FOLDER"
    ):
        encode(with_adapter(encoder, "lora"), ["wing"])
    described = {each.name: each for each in encoder.describe_adapters()}
    assert "no exported graph" in (described["lora"].problem or "")
    assert described["lora"].fingerprint is None
    assert encode(encoder, ["wing"]).dense is not None
    with pytest.raises(AdapterNotServedError, match="precision 'int8' has no exported graph"):
        on_onnx(bert_exported, root, "int8").adapter_info("ia3")


def test_a_graph_older_than_its_adapter(bert_exported: Path, root: Path) -> None:
    write_adapter(root / "ia3", read_adapter(root / "lora"))
    encoder = on_onnx(bert_exported, root)
    with pytest.raises(AdapterUnusableError, match="exported before the adapter or its base changed"):
        encoder.adapter_info("ia3")
    described = {each.name: each for each in encoder.describe_adapters()}
    assert described["ia3"].problem == "it is damaged, or belongs to another base; the log names the file"


def test_a_damaged_graph(bert_exported: Path, root: Path) -> None:
    graph = root / "ia3" / "onnx" / "model.onnx"
    graph.write_bytes(graph.read_bytes() + b" ")
    with pytest.raises(AdapterUnusableError, match="damaged or was changed"):
        on_onnx(bert_exported, root).adapter_info("ia3")


def test_a_graph_that_is_replaced_while_it_is_closed(bert_exported: Path, root: Path) -> None:
    encoder = on_onnx(bert_exported, root, adapter_sessions=1)
    for name in ("ia3", "prefix"):
        encode(with_adapter(encoder, name), ["wing"])
    shutil.copyfile(root / "prefix" / "onnx" / "model.onnx", root / "ia3" / "onnx" / "model.onnx")
    with pytest.raises(AdapterUnusableError, match="damaged or was changed"):
        encode(with_adapter(encoder, "ia3"), ["wing"])


def test_int8_has_a_fingerprint_of_its_own(bert: Path, bert_exported: Path, root: Path) -> None:
    with graph_in(root / "bottleneck"):
        report = export_adapter(bert, root / "bottleneck", int8=True)
    assert set(read_export(root / "bottleneck").graphs) == {"float32", "int8"}
    floats, encoder = on_onnx(bert_exported, root), on_onnx(bert_exported, root, "int8")
    assert encoder.adapter_info("bottleneck").precision == "int8"
    assert encoder.adapter_info("bottleneck").fingerprint == report.fingerprint
    assert floats.adapter_info("bottleneck").fingerprint != report.fingerprint
    one, other = (encode(with_adapter(each, "bottleneck"), TEXTS) for each in (encoder, floats))
    assert (one.dense * other.dense).sum(1).min() > 0.98


def test_an_export_writes_into_the_adapters_folder_only(root: Path) -> None:
    folder = root / "ia3"
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {"adapter.json", "adapter.safetensors", "onnx/export.json", "onnx/model.onnx"}
    record = json.loads((folder / "onnx" / "export.json").read_text())
    assert record["adapter"] == read_adapter(folder).digest


def test_a_body_that_takes_no_adapters_is_served_without(bert: Path, root: Path, tmp_path: Path) -> None:
    from transformers import ModernBertConfig, ModernBertModel

    folder = Path(shutil.copytree(bert, tmp_path / "modern"))
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    special = {f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")}
    config = ModernBertConfig(vocab_size=71, max_position_embeddings=48, **sizes, **special)
    ModernBertModel(config).save_pretrained(folder)
    adapter = read_adapter(root / "lora")
    write_adapter(root / "lora", replace(adapter, base=adapter_base(folder)))
    encoder = load_encoder(str(folder), "torch", device="cpu", adapters=root)
    assert encode(encoder, ["wing"]).dense is not None
    with pytest.raises(AdapterNotServedError, match="ModernBertModel has no layer"):
        encoder.adapter_info("lora")
    with pytest.raises(AdapterUnusableError, match="belongs to base 'bert'"):
        encoder.adapter_info("ia3")


def test_serving_adapters_never_imports_torch_or_peft(bert_family: Any, repository: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tercet.models.loader import load_encoder\n"
        "from tercet.models.encoder import encode, with_adapter\n"
        f"encoder = load_encoder({str(bert_family.exported)!r}, precision='float32', "
        f"adapters=Path({str(bert_family.adapters)!r}))\n"
        "encode(with_adapter(encoder, 'prefix'), ['hello'])\n"
        "sys.exit(sorted({'torch', 'transformers', 'peft'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
