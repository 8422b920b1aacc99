"""Adapters that PEFT alone made: what PEFT computes is computed here, and what is not read is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer as Library

torch = pytest.importorskip("torch")

from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from torch.nn import functional
from transformers import AutoModel, AutoModelForSequenceClassification, XLMRobertaConfig, XLMRobertaModel

from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.body import FixedAdapters, install
from tercet.models.adapters.files import read_adapter, write_adapter
from tercet.models.adapters.parts import load_parts
from tercet.models.adapters.peft_files import base_at, read_adapter_for
from tercet.models.adapters.peft_writing import write_peft_adapter
from tercet.models.adapters.record import Adapter, ResolvedAdapter
from tercet.models.encoder import Engine, encode, with_adapter
from tercet.models.errors import AdapterUnusableError, CheckpointError, UnsupportedError
from tercet.models.export_onnx import export_adapter
from tercet.models.loader import load_encoder
from tercet.models.representations import Float32

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),  # PEFT's own
]

TOLERANCE = 1e-5
TEXTS = ["hello world", "the heat of the air, and a wave!", "a wing of air"]
CONFIGS: dict[str, Any] = {
    "lora": LoraConfig(r=3, lora_alpha=5, target_modules=["query", "dense"], use_rslora=True),
    "lora-regex": LoraConfig(r=2, target_modules=r".*layer\.1\.(attention\.self\.value|intermediate\.dense)"),
    "lora-block": LoraConfig(r=2, target_modules=["key", "output.dense"], layers_to_transform=[1]),
    "lora-linear": LoraConfig(r=2, target_modules="all-linear", exclude_modules=["pooler.dense"]),
    "ia3": IA3Config(task_type="FEATURE_EXTRACTION"),  # PEFT's own choice of layers for BERT
    "ia3-outputs": IA3Config(
        target_modules=["query", "intermediate.dense", "attention.output.dense"], feedforward_modules=[]
    ),
}


def make_adapter(base: Any, folder: Path, config: Any, **changes: Any) -> Path:
    """An adapter as training would leave it: no parameter is where it began."""
    model = get_peft_model(base, config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    model.save_pretrained(str(folder))
    if changes:
        reconfigure(folder, **changes)
    return folder


def reconfigure(folder: Path, **values: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def retensor(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "adapter_model.safetensors"
    arrays = load_file(path)
    change(arrays)
    save_file(arrays, path)


@pytest.fixture(scope="module")
def root(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of adapters by PEFT; not to be changed."""
    folder = tmp_path_factory.mktemp("peft")
    for name, config in CONFIGS.items():
        make_adapter(AutoModel.from_pretrained(bert), folder / name, config)
    return folder


@pytest.fixture
def lora(root: Path, tmp_path: Path) -> Path:
    """An adapter that a test may damage."""
    return Path(shutil.copytree(root / "lora", tmp_path / "law"))


def read(folder: Path, checkpoint: Path) -> Adapter:
    return read_adapter_for(folder, checkpoint, base_at(checkpoint, "tiny", "f" * 64))


def states_here(adapter: Adapter, body: Any, ids: Any, mask: Any) -> Any:
    """Hidden states of tokens by our own layers."""
    install(body, FixedAdapters(load_parts(ResolvedAdapter("law", adapter, (adapter,)), body)))
    with torch.no_grad():
        return body.eval()(input_ids=ids, attention_mask=mask).last_hidden_state[mask.bool()]


def states_of_peft(body: Any, folder: Path, ids: Any, mask: Any) -> Any:
    model = PeftModel.from_pretrained(body, str(folder)).eval()
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask).last_hidden_state[mask.bool()]


def batch() -> tuple[Any, Any]:
    ids = torch.randint(5, 40, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    return ids, mask


@pytest.mark.parametrize("name", CONFIGS)
def test_states_are_those_of_peft(root: Path, bert: Path, name: str) -> None:
    adapter = read(root / name, bert)
    assert adapter.kind == name.partition("-")[0]
    plain = AutoModel.from_pretrained(bert)
    expected = states_of_peft(AutoModel.from_pretrained(bert), root / name, *batch())
    found = states_here(adapter, AutoModel.from_pretrained(bert), *batch())
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=0)
    ids, mask = batch()
    assert (plain(ids, mask).last_hidden_state[mask.bool()] - expected).abs().max() > 0.01


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_read(root: Path, bert: Path, tmp_path: Path, dtype: Any) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(root / "lora", tmp_path / "law"))
    path = folder / "adapter_model.safetensors"
    save_file({name: values.to(dtype) for name, values in load_file(path).items()}, path)
    found = read(folder, bert)
    for name, array in read(root / "lora", bert).arrays.items():
        expected = torch.from_numpy(array).to(dtype).float().numpy()
        np.testing.assert_array_equal(found.arrays[name], expected)


def test_one_of_xlm_roberta(tmp_path: Path) -> None:
    config = XLMRobertaConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
    )
    XLMRobertaModel(config).save_pretrained(tmp_path / "base")
    for kind in (
        LoraConfig(r=4, target_modules=["query", "value"]),
        IA3Config(target_modules=["key", "value", "output.dense"], feedforward_modules=["output.dense"]),
    ):
        bodies = [AutoModel.from_pretrained(tmp_path / "base") for _ in range(3)]
        folder = make_adapter(bodies[0], tmp_path / f"{kind.peft_type.value.lower()}", kind)
        found = states_here(read(folder, tmp_path / "base"), bodies[1], *batch())
        expected = states_of_peft(bodies[2], folder, *batch())
        torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=0)


def test_one_trained_below_a_classifier(bert: Path, tmp_path: Path) -> None:
    """Names of its layers have the body's own name before them."""
    whole = AutoModelForSequenceClassification.from_pretrained(bert)
    config = LoraConfig(r=2, target_modules=["query", "value"])
    folder = make_adapter(whole, tmp_path / "law", config)
    assert any(".bert.encoder." in name for name in load_file(folder / "adapter_model.safetensors"))
    model = PeftModel.from_pretrained(AutoModelForSequenceClassification.from_pretrained(bert), str(folder))
    ids, mask = batch()
    with torch.no_grad():
        expected = model.eval().base_model.model.bert(ids, mask).last_hidden_state[mask.bool()]
    found = states_here(read(folder, bert), AutoModel.from_pretrained(bert), ids, mask)
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=0)


def by_peft(checkpoint: Path, folder: Path) -> Float32:
    """Dense vectors of TEXTS by transformers and PEFT."""
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(checkpoint), str(folder)).eval()
    library = Library.from_file(str(checkpoint / "tokenizer.json"))
    library.no_padding()
    library.no_truncation()
    with torch.no_grad():
        rows = [
            model(input_ids=torch.tensor([library.encode(text).ids])).last_hidden_state[0].mean(0)
            for text in TEXTS
        ]
    found: Float32 = functional.normalize(torch.stack(rows), dim=-1).numpy()
    return found


def test_every_engine_gives_what_peft_gives(
    bert: Path, bert_exported: Path, root: Path, tmp_path: Path
) -> None:
    adapters = Path(shutil.copytree(root, tmp_path / "adapters"))
    fingerprints = []
    for name in ("lora", "ia3"):
        export_adapter(bert, adapters / name, int8=False)
    engines: dict[Engine, Path] = {"torch": bert, "onnx": bert_exported, "onnxruntime": bert_exported}
    for engine, checkpoint in engines.items():
        encoder = load_encoder(str(checkpoint), engine, device="cpu", precision="float32", adapters=adapters)
        for name in ("lora", "ia3"):
            found = encode(with_adapter(encoder, name), TEXTS).dense
            np.testing.assert_allclose(found, by_peft(bert, root / name), atol=TOLERANCE)
        fingerprints.append(encoder.adapter_info("lora").fingerprint)
    assert len(set(fingerprints)) == 1


def test_it_goes_with_its_base_alone(lora: Path, bert: Path, tmp_path: Path) -> None:
    for name in ("", None, "me/Bert", "bert", str(bert), "/cache/models--me--bert/snapshots/abc"):
        reconfigure(lora, base_model_name_or_path=name)
        assert read(lora, bert).base.name == "tiny"
    reconfigure(lora, base_model_name_or_path="FacebookAI/xlm-roberta-base")
    encoder = load_encoder(str(bert), "torch", device="cpu", adapters=lora.parent)
    with pytest.raises(
        AdapterUnusableError, match="'FacebookAI/xlm-roberta-base', and this encoder is bert; if"
    ):
        encoder.adapter_info("law")
    other = Path(shutil.copytree(bert, tmp_path / "models--me--xlm-roberta-base" / "snapshots" / "abc"))
    assert read(lora, other).kind == "lora"


def test_ours_goes_first_and_never_replaces_it(lora: Path, bert: Path, bert_adapters: Path) -> None:
    with pytest.raises(CheckpointError, match="holds an adapter of PEFT's; choose another name"):
        write_adapter(lora, read_adapter(bert_adapters / "ia3"))
    with pytest.raises(CheckpointError, match="tercet adapters import"):
        read_adapter(lora)
    shutil.copy(bert_adapters / "ia3" / "adapter.json", lora)
    shutil.copy(bert_adapters / "ia3" / "adapter.safetensors", lora)
    assert read(lora, bert).kind == "ia3"
    assert read(lora, bert).base == adapter_base(bert)


A = "base_model.model.encoder.layer.0.attention.self.query.lora_A.weight"


def unsafe(folder: Path) -> None:
    weights = folder / "adapter_model.safetensors"
    torch.save({}, folder / "adapter_model.bin")
    weights.unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: reconfigure(f, use_dora=True), r"adapter_config\.json: use_dora True is not read here"),
        (lambda f: reconfigure(f, bias="all"), "bias 'all' is not read here"),
        (lambda f: reconfigure(f, modules_to_save=["pooler"]), r"modules_to_save \['pooler'\] is not read"),
        (lambda f: reconfigure(f, layers_pattern="layer"), "layers_pattern 'layer' is not read"),
        (lambda f: reconfigure(f, rank_pattern={"key": 2}), "rank_pattern .* is not read"),
        (lambda f: reconfigure(f, of_the_future=7), "of_the_future 7 is not read here, as it may change"),
        (lambda f: reconfigure(f, init_lora_weights="pissa"), "'pissa' is not read .* base's own weights"),
        (lambda f: reconfigure(f, peft_type="PREFIX_TUNING"), "counts the positions of a text's tokens"),
        (lambda f: reconfigure(f, peft_type="PROMPT_TUNING"), "puts vectors before the tokens"),
        (
            lambda f: reconfigure(f, peft_type=["x"]),
            r"peft_type \['x'\] is not read here: LORA and IA3 can be",
        ),
        (lambda f: reconfigure(f, r=0), "r is 0"),
        (lambda f: reconfigure(f, r=True), "r is True"),
        (lambda f: reconfigure(f, r=10**9), "r is 1000000000, more than the base is wide"),
        (lambda f: reconfigure(f, lora_alpha="5"), "lora_alpha '5'"),
        (lambda f: reconfigure(f, lora_alpha=1e8), "alpha is "),
        (lambda f: reconfigure(f, r=10**400, lora_alpha=10**400), "r is 1000"),
        (
            lambda f: retensor(f, lambda a: a.update({A.replace("layer.0", "layer.00"): a[A]})),
            "belongs to no linear layer",
        ),
        (lambda f: reconfigure(f, lora_dropout="no"), "lora_dropout is 'no'"),
        (lambda f: reconfigure(f, target_modules=7), "target_modules is 7"),
        (lambda f: reconfigure(f, base_model_name_or_path=7), "base_model_name_or_path is 7"),
        (lambda f: reconfigure(f, layers_to_transform=["0"]), "layers_to_transform is"),
        (lambda f: reconfigure(f, target_modules=["query"]), "of a layer that target_modules does not name"),
        (
            lambda f: reconfigure(f, target_modules=["query", "dense", "key"]),
            r"nothing for encoder\.layer\.0\.attention\.self\.key, which target_modules names",
        ),
        (lambda f: reconfigure(f, r=4), r"lora_a has shape \[3, 32\]; its settings and base need \[4"),
        (lambda f: retensor(f, lambda arrays: arrays.pop(A)), r"block 0 has \['lora_b'\]"),
        (lambda f: retensor(f, lambda a: a.update({A: a[A] * np.nan})), "must hold finite"),
        (lambda f: retensor(f, lambda a: a.update({A: a[A].astype(np.float64)})), "numbers of type F64"),
        (lambda f: retensor(f, lambda a: a.update({A: a[A][:, :3].copy()})), r"has shape \[3, 3\]"),
        (
            lambda f: retensor(f, lambda a: a.update({A.replace("layer.0", "layer.7"): a[A]})),
            r"layer\.7\..* belongs to no linear layer of the 2 blocks",
        ),
        (
            lambda f: retensor(f, lambda a: a.update({A.replace("lora_A.weight", "lora_magnitude"): a[A]})),
            "belongs to no linear layer",
        ),
        (
            lambda f: retensor(f, lambda a: a.update({A.replace("model.enc", "model.bert.enc"): a[A]})),
            "begin in several ways",
        ),
        (lambda f: retensor(f, lambda a: a.clear()), "has nothing for"),
        (lambda f: retensor(f, lambda a: a.update(big=np.zeros(3_000_000, np.float32))), "more than the"),
        (unsafe, r"is missing; a pickle such as adapter_model\.bin .* save_pretrained"),
        (lambda f: (f / "adapter_model.safetensors").write_bytes(b"x" * 20), "cannot be read"),
        (lambda f: (f / "adapter_config.json").write_text("[]"), "a JSON object is expected"),
        (lambda f: (f / "adapter_config.json").write_text(" " * (1 << 21)), "more than the 1048576"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_refused(lora: Path, bert: Path, damage: Callable[[Path], Any], message: str) -> None:
    damage(lora)
    with pytest.raises(CheckpointError, match=message) as error:
        read(lora, bert)
    assert str(lora) in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target_modules": ["key"], "feedforward_modules": ["key"]}, "key has its input scaled"),
        (
            {"target_modules": ["output.dense"], "feedforward_modules": []},
            "dense has its output scaled",
        ),
    ],
)
def test_scales_that_are_not_here(bert: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    folder = make_adapter(AutoModel.from_pretrained(bert), tmp_path / "law", IA3Config(**changes))
    with pytest.raises(CheckpointError, match=message):
        read(folder, bert)


def test_feedforward_modules_that_are_not_those_of_the_file(root: Path, bert: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(root / "ia3", tmp_path / "law"))
    reconfigure(folder, feedforward_modules=[])
    with pytest.raises(CheckpointError, match="unlike feedforward_modules"):
        read(folder, bert)


def test_an_expression_of_a_stranger_is_not_run(lora: Path, bert: Path) -> None:
    reconfigure(lora, target_modules="(.*.*)*.*x", exclude_modules="(a|aa)+$")
    assert read(lora, bert).kind == "lora"


@pytest.mark.parametrize("name", ["lora", "ia3", "with-heads"])
def test_peft_opens_what_is_written(bert: Path, bert_adapters: Path, tmp_path: Path, name: str) -> None:
    adapter = read_adapter(bert_adapters / name)
    write_peft_adapter(tmp_path / "law", adapter)
    expected = states_here(adapter, AutoModel.from_pretrained(bert), *batch())
    found = states_of_peft(AutoModel.from_pretrained(bert), tmp_path / "law", *batch())
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=0)
    again = read(tmp_path / "law", bert)
    assert again.settings == adapter.settings
    for key, array in adapter.arrays.items():
        np.testing.assert_array_equal(again.arrays[key], array)
    with pytest.raises(UnsupportedError, match="holds an adapter; give another folder"):
        write_peft_adapter(tmp_path / "law", adapter)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("prefix", "counts the positions"),
        ("prompt", "counts the positions"),
        ("bottleneck", "PEFT has no adapters of kind bottleneck"),
        ("stack", "its parts each alone"),
    ],
)
def test_what_peft_cannot_open_is_not_written(
    bert_adapters: Path, tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        write_peft_adapter(tmp_path / "law", read_adapter(bert_adapters / name))
    assert not (tmp_path / "law").exists()
