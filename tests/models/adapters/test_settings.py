"""Settings of adapters: what they refuse, and the tensors that follow from them."""

from typing import Any

import pytest

from tercet.models.adapters.blocks import BodyShape
from tercet.models.adapters.kinds import KINDS, settings_json, settings_of
from tercet.models.adapters.settings import (
    BottleneckSettings,
    FusionSettings,
    Ia3Settings,
    LoraSettings,
    PrefixSettings,
    SparseSettings,
    is_adapter_name,
)
from tercet.models.errors import CheckpointError

BODY = BodyShape(layers=1, hidden_size=4, intermediate_size=10)


def test_tensors_by_hand() -> None:
    assert LoraSettings(rank=2, targets=("query", "output")).shapes(BODY) == {
        "layers.0.query.lora_a": (2, 4),
        "layers.0.query.lora_b": (4, 2),
        "layers.0.output.lora_a": (2, 10),
        "layers.0.output.lora_b": (4, 2),
    }
    assert Ia3Settings(targets=("key", "intermediate", "output")).shapes(BODY) == {
        "layers.0.key.scale": (4,),
        "layers.0.intermediate.scale": (10,),
        "layers.0.output.scale": (10,),  # of its input
    }
    assert SparseSettings(count=80, targets=("output", "intermediate")).shapes(BODY) == {
        "indices": (80,),
        "values": (80,),
    }
    assert PrefixSettings(3).shapes(BODY) == {
        "layers.0.prefix_key": (3, 4),
        "layers.0.prefix_value": (3, 4),
    }
    assert BottleneckSettings(width=2).shapes(BODY) == {
        "layers.0.output.down.weight": (2, 4),
        "layers.0.output.down.bias": (2,),
        "layers.0.output.up.weight": (4, 2),
        "layers.0.output.up.bias": (4,),
    }
    assert BottleneckSettings(width=2, placement="parallel").shapes(BODY) == {
        "layers.0.residual.down.weight": (2, 4),
        "layers.0.residual.down.bias": (2,),
        "layers.0.residual.up.weight": (4, 2),
        "layers.0.residual.up.bias": (4,),
    }
    assert BottleneckSettings(placement="houlsby").targets == ("attention_output", "output")
    assert BottleneckSettings().targets == BottleneckSettings(placement="feed_forward").targets == ("output",)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("stack", "fusion", "hypernetwork")])
def test_settings_survive_json(kind: str) -> None:
    settings = settings_of(kind, {})
    assert settings_of(kind, settings_json(settings)) == settings


def test_a_fusion_has_the_tensors_of_its_bottlenecks() -> None:
    bottlenecks = (BottleneckSettings(2, "gelu", scale=2.0), BottleneckSettings(3, "relu"))
    settings = FusionSettings.of(bottlenecks)
    assert settings.bottlenecks == bottlenecks
    assert settings_of("fusion", settings_json(settings)) == settings
    assert settings.shapes(BODY) == {
        "layers.0.output.query": (4, 4),
        "layers.0.output.key": (4, 4),
        "layers.0.output.value": (4, 4),
        "layers.0.output.bottlenecks.0.down.weight": (2, 4),
        "layers.0.output.bottlenecks.0.down.bias": (2,),
        "layers.0.output.bottlenecks.0.up.weight": (4, 2),
        "layers.0.output.bottlenecks.0.up.bias": (4,),
        "layers.0.output.bottlenecks.1.down.weight": (3, 4),
        "layers.0.output.bottlenecks.1.down.bias": (3,),
        "layers.0.output.bottlenecks.1.up.weight": (4, 3),
        "layers.0.output.bottlenecks.1.up.bias": (4,),
    }


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("lora", {"ranks": 4}, r"unknown keys \['ranks'\]"),
        ("lora", {"rank": 0}, "rank is 0"),
        ("lora", {"rank": True}, "rank is True"),
        ("lora", {"rank": 2.5}, "rank is 2.5"),
        ("lora", {"alpha": float("nan")}, "alpha is nan"),
        ("lora", {"alpha": "8"}, "alpha is '8'"),
        ("lora", {"dropout": 1.0}, r"from 0 and below 1"),
        ("lora", {"targets": []}, "targets is"),
        ("lora", {"targets": ["query", "query"]}, "distinct roles"),
        ("lora", {"targets": ["pooler"]}, "distinct roles"),
        ("lora", {"targets": [["query"]]}, "distinct roles"),
        ("lora", {"targets": "query"}, "distinct roles"),
        ("ia3", {"targets": None}, "targets is None"),
        ("sparse", {"count": 0}, "count is 0"),
        ("sparse", {"targets": []}, "targets is"),
        ("prefix", {"length": -1}, "length is -1"),
        ("bottleneck", {"width": "wide"}, "width is 'wide'"),
        ("bottleneck", {"nonlinearity": "sine"}, "nonlinearity is 'sine'"),
        ("bottleneck", {"scale": float("inf")}, "scale is inf"),
        ("bottleneck", {"targets": ["residual"]}, r"unknown keys \['targets'\]"),
        ("lora", {"targets": ["residual"]}, "distinct roles"),
        ("bottleneck", {"placement": ["feed_forward"]}, "placement is"),
        (
            "bottleneck",
            {"placement": "pfeiffer"},
            r"placement is 'pfeiffer'; it must be one of \['houlsby', 'feed_forward', 'parallel'\]",
        ),
        ("prompt", {"length": 0}, "length is 0"),
        ("mix_and_match", {"length": 0}, "length is 0"),
        ("mix_and_match", {"nonlinearity": "sine"}, "nonlinearity is 'sine'"),
        ("mix_and_match", {"placement": "houlsby"}, r"unknown keys \['placement'\]"),
        ("hypernetwork", {"languages": ["ko"]}, r"tasks is \(\)"),
        ("hypernetwork", {"languages": ["ko", "ko"], "tasks": ["law"]}, "distinct names"),
        ("hypernetwork", {"languages": ["../ko"], "tasks": ["law"]}, "distinct names"),
        ("hypernetwork", {"languages": ["ko"], "tasks": ["law"], "size": 0}, "size is 0"),
        ("hypernetwork", {"languages": ["ko"], "tasks": ["law"], "width": 0}, "width is 0"),
        ("unipelt", {"rank": 0}, "rank is 0"),
        ("unipelt", {"length": 0}, "length is 0"),
        ("unipelt", {"width": 0}, "width is 0"),
        ("fusion", {}, "two bottlenecks or more"),
        ("fusion", {"widths": [2], "nonlinearities": ["relu"], "scales": [1.0]}, "two bottlenecks or more"),
        ("fusion", {"widths": [2, 3], "nonlinearities": ["relu"] * 2, "scales": [1.0]}, "one of each"),
        ("fusion", {"widths": 2, "nonlinearities": "ab", "scales": [1.0, 1.0]}, "one of each"),
        ("fusion", {"widths": [2, 0], "nonlinearities": ["relu"] * 2, "scales": [1.0] * 2}, "width is 0"),
        (
            "fusion",
            {"widths": [2, 2], "nonlinearities": ["relu", []], "scales": [1.0] * 2},
            "nonlinearity is",
        ),
        ("stack", {"adapters": ["a"]}, "two adapters or more"),
        ("stack", {"adapters": ["a", "../b"]}, "two adapters or more"),
        ("stack", {}, "two adapters or more"),
        ("lorra", {}, "kind is 'lorra'"),
    ],
)
def test_what_is_refused(kind: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        settings_of(kind, values)


def test_weights_are_counted_by_layer_and_role() -> None:
    matrices = list(BodyShape(layers=2, hidden_size=4, intermediate_size=10).matrices())
    assert [matrix.start for matrix in matrices] == [
        *(0, 16, 32, 48, 64, 104),
        *(144, 160, 176, 192, 208, 248),
    ]
    assert matrices[4] == (0, "intermediate", 64, (10, 4))
    assert matrices[-1] == (1, "output", 248, (4, 10))


def test_no_more_weights_change_than_there_are() -> None:
    with pytest.raises(CheckpointError, match=r"count is 17; the layers \['query'\] have 16 weights"):
        SparseSettings(count=17, targets=("query",)).shapes(BODY)


@pytest.mark.parametrize("sizes", [(0, 4, 4), (1, None, 4), (1, 4, True)])
def test_a_body_without_sizes(sizes: Any) -> None:
    with pytest.raises(CheckpointError, match="whole number"):
        BodyShape(*sizes)


def test_a_body_that_no_machine_has_is_refused_before_it_is_counted_through() -> None:
    with pytest.raises(CheckpointError, match="layers is 200000; it must be at most 1024"):
        BodyShape(200_000, 4, 4)


def test_names() -> None:
    assert is_adapter_name("law-ko_2")
    for name in ("", ".", "..", "a/b", "A", "-a", "a" * 65, "a\n", "ä", None, 3):
        assert not is_adapter_name(name)
