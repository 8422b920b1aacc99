"""Trained-looking adapters of every kind for the tiny checkpoints, saved and exported."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="these tests compare with torch: install tercet[torch]")
pytest.importorskip("peft", reason="adapters are trained with peft: install tercet[train]")

from tercet.models.adapters.attach import attach, fill_fusion, save_adapter, trainable_parameters
from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.blocks import ROLES
from tercet.models.adapters.compound_settings import UnipeltSettings
from tercet.models.adapters.files import write_adapter
from tercet.models.adapters.kinds import AdapterSettings
from tercet.models.adapters.record import Adapter
from tercet.models.adapters.settings import (
    BiasSettings,
    BottleneckSettings,
    FusionSettings,
    Ia3Settings,
    LoraSettings,
    MixAndMatchSettings,
    PrefixSettings,
    PromptSettings,
    SparseSettings,
    StackSettings,
)
from tercet.models.checkpoint import read_settings
from tercet.models.encoder_model import load_body
from tercet.models.heads import load_heads
from tercet.models.weights.head_weights import HeadWeights

MadeOnce = Callable[[str, Callable[[Path], object]], Path]

SETTINGS: dict[str, AdapterSettings] = {
    "lora": LoraSettings(rank=3, alpha=6.0, targets=ROLES),
    "ia3": Ia3Settings(),
    "prefix": PrefixSettings(length=5),
    "prompt": PromptSettings(length=3),
    "bottleneck": BottleneckSettings(width=6, nonlinearity="gelu", placement="houlsby"),
    "bias": BiasSettings(),
    "sparse": SparseSettings(count=2000),
    "parallel": BottleneckSettings(width=6, placement="parallel", scale=2.0),
    "mixed": MixAndMatchSettings(length=5, width=6),
    "unipelt": UnipeltSettings(rank=3, alpha=6.0, length=5, width=6),
    "fusion": FusionSettings("houlsby", (6, 6), ("gelu", "gelu"), (1.0, 1.0)),
}
STACKS = {"stack": ("bottleneck", "lora"), "stack-prefix": ("prefix", "ia3")}


@dataclass(frozen=True)
class Family:
    """A checkpoint, its exported form, and a folder of adapters for it; names: those with a graph."""

    checkpoint: Path
    exported: Path
    adapters: Path
    names: tuple[str, ...]


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Weights that a test begins at random are the same in whatever order tests run."""
    torch.manual_seed(0)


def disturb(parameters: list[torch.nn.Parameter], seed: int) -> None:
    """Moves parameters as training would, so that each adapter tells."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in parameters:
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)


def make_adapters(checkpoint: Path, root: Path) -> Path:
    """An adapter of each kind, one with heads of its own, and stacks."""
    base = adapter_base(checkpoint)
    made: dict[str, Adapter] = {}
    for seed, (name, settings) in enumerate(SETTINGS.items()):
        torch.manual_seed(seed)  # weights begin at random
        body = attach(load_body(checkpoint), name, settings)
        disturb(trainable_parameters(body), seed)
        if isinstance(settings, FusionSettings):
            first = made["bottleneck"]
            opposite = {key: -array for key, array in first.arrays.items()}
            fill_fusion(body, name, settings, [first, replace(first, arrays=opposite)])
        made[name] = save_adapter(root / name, body, settings, base, language="ko", description=f"A {name}.")
    heads = load_heads(checkpoint, base.body.hidden_size, read_settings(checkpoint)).weights()
    random = np.random.default_rng(7)
    own = HeadWeights.from_arrays(
        {
            name: array + random.normal(0, 0.1, array.shape).astype(np.float32)
            for name, array in heads.arrays().items()
        },
        "heads",
        base.body.hidden_size,
    )
    write_adapter(root / "with-heads", replace(made["lora"], heads=own))
    for name, parts in STACKS.items():
        write_adapter(root / name, Adapter(StackSettings(parts), base))
    return root


@pytest.fixture(scope="session")
def settings_by_kind() -> dict[str, AdapterSettings]:
    """Settings of each kind that can be trained."""
    return SETTINGS


@pytest.fixture(scope="session")
def moved() -> Callable[[list[torch.nn.Parameter], int], None]:
    """Moves parameters as training would."""
    return disturb


@pytest.fixture(scope="session")
def bert_adapters(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adapters for the tiny BERT, without graphs; not to be changed."""
    return make_adapters(bert, tmp_path_factory.mktemp("bert-adapters"))


def _family(
    made_once: MadeOnce, checkpoint: Path, exported: Path, names: tuple[str, ...], fewer: Family | None = None
) -> Family:
    """names: of the adapters to export; fewer: the same family with some of them exported already."""
    from tercet.models.export_onnx import export_adapter

    there = () if fewer is None else fewer.names

    def write(root: Path) -> None:
        if fewer is None:
            make_adapters(checkpoint, root)
        else:
            shutil.copytree(fewer.adapters, root)
        for name in names:
            if name not in there:
                export_adapter(checkpoint, root / name, int8=False)

    folder = made_once(f"adapters/{exported.name}-{len(names)}", write)
    return Family(checkpoint, exported, folder, names)


@pytest.fixture(scope="session")
def bert_routed(made_once: MadeOnce, bert: Path, bert_exported: Path) -> Family:
    """The tiny BERT with adapters, only those exported that routers choose from: each takes seconds."""
    return _family(made_once, bert, bert_exported, ("ia3", "prefix", "bottleneck"))


@pytest.fixture(scope="session")
def bert_family(made_once: MadeOnce, bert: Path, bert_exported: Path, bert_routed: Family) -> Family:
    """The tiny BERT with adapters, some exported in float32; not to be changed."""
    others = ("prompt", "parallel", "sparse", "unipelt", "fusion", "with-heads", "stack")
    return _family(made_once, bert, bert_exported, (*bert_routed.names, *others), bert_routed)


@pytest.fixture(scope="session")
def xlmr_family(made_once: MadeOnce, golden: Path, xlmr_exported: Path) -> Family:
    """The golden XLM-RoBERTa with adapters, some exported in float32; not to be changed."""
    names = ("lora", "mixed", "prefix")
    return _family(made_once, golden / "checkpoint", xlmr_exported, names)


@pytest.fixture(scope="session", params=["bert", "xlmr"])
def family(request: pytest.FixtureRequest) -> Family:
    """Each of the two."""
    found: Family = request.getfixturevalue(f"{request.param}_family")
    return found
