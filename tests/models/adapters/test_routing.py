"""Routers behind the encoder contract: what a text goes through, batches, fingerprints, refusals."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.files import read_adapter, write_adapter
from tercet.models.adapters.merging import merge_adapters
from tercet.models.adapters.record import Adapter
from tercet.models.adapters.router_files import write_router
from tercet.models.adapters.routers import (
    CentroidSettings,
    FixedSettings,
    GateSettings,
    Router,
    RouterBase,
    SoftSettings,
)
from tercet.models.adapters.settings import StackSettings
from tercet.models.encoder import Encoder, encode, with_adapter
from tercet.models.errors import AdapterNotFoundError, AdapterNotServedError, AdapterUnusableError
from tercet.models.loader import load_encoder
from tercet.models.representations import OUTPUTS, Representations, Route

TEXTS = ["hello world", "", "wing", "the heat of the air, and a wave!", "밤하늘의 별 東京", "word " * 100]
# Adapters that the onnx engine has graphs of, too.
HARD = ("ia3", "prefix", "bottleneck", None)


def assert_close(one: Representations, other: Representations, tolerance: float = 1e-5) -> None:
    np.testing.assert_array_equal(one.tokens, other.tokens)
    np.testing.assert_allclose(one.dense, other.dense, atol=tolerance)
    np.testing.assert_allclose(one.colbert.vectors, other.colbert.vectors, atol=tolerance)
    for row in range(len(one)):
        left = dict(zip(*(array.tolist() for array in one.sparse.row(row)), strict=True))
        right = dict(zip(*(array.tolist() for array in other.sparse.row(row)), strict=True))
        for token in left.keys() | right.keys():
            assert abs(left.get(token, 0.0) - right.get(token, 0.0)) <= tolerance


@pytest.fixture(scope="module")
def base(bert: Path) -> RouterBase:
    found = adapter_base(bert)
    return RouterBase(found.name, found.fingerprint)


@pytest.fixture(scope="module")
def centroids(bert: Path) -> np.ndarray[Any, Any]:
    """The vectors of four texts, so that each is nearest to itself."""
    dense = encode(load_encoder(str(bert), "torch", device="cpu"), [TEXTS[i] for i in (0, 2, 3, 4)]).dense
    assert dense is not None
    return dense


@pytest.fixture
def root(bert_adapters: Path, tmp_path: Path, base: RouterBase, centroids: Any) -> Path:
    """Adapters, and routers among them, that a test may change."""
    root = Path(shutil.copytree(bert_adapters, tmp_path / "adapters"))
    arrays = {"centroids": centroids}
    write_router(root / "by-domain", Router(CentroidSettings(HARD), base, arrays, "By domain."))
    gate = {"weight": centroids, "bias": np.zeros(4, np.float32)}
    write_router(root / "by-gate", Router(GateSettings(HARD), base, gate))
    for name, temperature in (("cold", 1e-6), ("warm", 0.2)):
        settings = SoftSettings(HARD, "centroid", temperature)
        write_router(root / name, Router(settings, base, arrays))
    table = {"ko": "prefix", "en": None}
    write_router(root / "by-language", Router(FixedSettings("language", table, "ia3")))
    write_router(root / "by-collection", Router(FixedSettings("collection", {"cases": "bottleneck"})))
    return root


@pytest.fixture
def on_torch(bert: Path, root: Path) -> Callable[[], Encoder]:
    return lambda: load_encoder(str(bert), "torch", device="cpu", adapters=root)


@pytest.fixture
def on_onnx(bert_exported: Path, bert_routed: Any, root: Path) -> Callable[[], Encoder]:
    """Graphs of the adapters take half a minute to make, so only slow tests ask this engine."""
    for name in bert_routed.names:
        shutil.copytree(bert_routed.adapters / name, root / name, dirs_exist_ok=True)
    return lambda: load_encoder(str(bert_exported), precision="float32", device="cpu", adapters=root)


@pytest.fixture(params=["torch", pytest.param("onnx", marks=pytest.mark.slow)])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    opened: Callable[[], Encoder] = request.getfixturevalue(f"on_{request.param}")
    return opened()


def tokens_of(encoder: Encoder, texts: list[str]) -> Any:
    return encoder.tokenizer.tokenize(texts)


@pytest.mark.parametrize("router", ["by-domain", "by-gate"])
def test_each_text_goes_through_the_adapter_of_its_route(encoder: Encoder, router: str) -> None:
    found = encode(with_adapter(encoder, router), TEXTS)
    assert found.routes is not None
    chosen = [route.adapters[0] for route in found.routes if route is not None]
    assert [chosen[i] for i in (0, 2, 3, 4)] == list(HARD)
    assert_close(found, encoder.encode_tokens(tokens_of(encoder, TEXTS), OUTPUTS, chosen))


def test_a_batch_with_several_routes_equals_each_text_alone(encoder: Encoder) -> None:
    names = ["by-domain", None, "by-domain", "ia3", "by-gate", "by-domain", "prefix", "by-language:ko"]
    texts = [TEXTS[i % len(TEXTS)] for i in range(len(names))]
    together = encoder.encode_tokens(tokens_of(encoder, texts), OUTPUTS, names)
    alone = [
        encoder.encode_tokens(tokens_of(encoder, [text]), OUTPUTS, [name])
        for text, name in zip(texts, names, strict=True)
    ]
    assert_close(together, Representations.concatenate(alone))
    assert together.routes is not None
    assert [route is not None for route in together.routes] == [
        bool(name) and name in ("by-domain", "by-gate") for name in names
    ]
    assert together.routes == Representations.concatenate(alone).routes


@pytest.mark.parametrize("output", OUTPUTS)
def test_only_what_is_asked_for(encoder: Encoder, output: Any) -> None:
    found = encoder.encode_tokens(tokens_of(encoder, TEXTS), [output], ["by-domain"] * len(TEXTS))
    assert [name for name in OUTPUTS if getattr(found, name) is not None] == [output]
    assert found.routes is not None
    assert len(found.routes) == len(found) == len(TEXTS)


def test_no_texts(encoder: Encoder) -> None:
    assert len(encode(with_adapter(encoder, "by-domain"), [])) == 0


@pytest.mark.slow
def test_engines_agree(on_torch: Any, on_onnx: Any) -> None:
    one, other = on_torch(), on_onnx()
    assert one.adapter_info("by-domain").fingerprint == other.adapter_info("by-domain").fingerprint
    found = [encode(with_adapter(each, "by-domain"), TEXTS) for each in (one, other)]
    assert found[0].routes == found[1].routes
    assert_close(*found)


def test_soft_with_a_low_temperature_equals_hard(on_torch: Any) -> None:
    encoder = on_torch()
    hard, soft = (encode(with_adapter(encoder, name), TEXTS) for name in ("by-domain", "cold"))
    assert_close(soft, hard)
    assert soft.routes is not None
    assert {route.adapters for route in soft.routes if route} == {HARD}


def test_a_soft_batch_equals_each_text_alone(on_torch: Any) -> None:
    encoder = on_torch()
    names = ["warm", "warm", "ia3", "warm", None, "by-domain"]
    together = encoder.encode_tokens(tokens_of(encoder, TEXTS), OUTPUTS, names)
    alone = [
        encoder.encode_tokens(tokens_of(encoder, [text]), OUTPUTS, [name])
        for text, name in zip(TEXTS, names, strict=True)
    ]
    assert_close(together, Representations.concatenate(alone))


def test_the_best_two_are_mixed(on_torch: Any, root: Path, base: RouterBase, centroids: Any) -> None:
    settings = SoftSettings(HARD, "centroid", 0.2, top=2)
    write_router(root / "best", Router(settings, base, {"centroids": centroids}))
    encoder = on_torch()
    found = encode(with_adapter(encoder, "best"), TEXTS)
    assert found.routes is not None
    assert all(len(route.adapters) == 2 for route in found.routes if route)
    assert_close(found, encoder._engine.encode_tokens(tokens_of(encoder, TEXTS), OUTPUTS, found.routes))


@pytest.mark.slow
def test_a_pair_of_tags_that_nobody_listed_is_served_as_the_stack_of_both(
    bert: Path, root: Path, on_torch: Any, on_onnx: Any
) -> None:
    domain = FixedSettings("domain", {"law": "lora", "news": "bias"})
    languages = FixedSettings("language", {"ko": "prefix", "de": "bottleneck"}, upper=domain)
    write_router(root / "by-both", Router(languages))
    write_adapter(root / "german-news", Adapter(StackSettings(("bottleneck", "bias")), adapter_base(bert)))
    encoder = on_torch()
    pair = with_adapter(encoder, "by-both:de:news")
    assert pair.info.adapter == "bottleneck+bias"
    found, stack = (encode(each, TEXTS) for each in (pair, with_adapter(encoder, "german-news")))
    assert_close(found, stack, 0.0)
    assert pair.info.fingerprint == encoder.adapter_info("german-news").fingerprint
    described = {each.name: each for each in encoder.describe_adapters()}
    assert described["prefix+lora"].kind == "stack"
    assert described["prefix+lora"].fingerprint == encoder.adapter_info("prefix+lora").fingerprint
    with pytest.raises(AdapterNotFoundError, match=r"no adapter 'bias\+lora'"):
        with_adapter(encoder, "bias+lora")
    with pytest.raises(AdapterNotServedError, match="is made of others, and has no graph"):
        with_adapter(on_onnx(), "by-both:de:news")
    assert with_adapter(on_onnx(), "by-both:de").info.adapter == "bottleneck"


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize(
    "pair",
    [
        ("lora", "prefix"),
        ("with-heads", "bottleneck"),
        ("stack-prefix", None),
        ("parallel", "ia3"),
        ("mixed", "sparse"),
    ],
)
def test_all_the_weight_on_one_is_that_one(bert: Path, root: Path, weights: Any, pair: Any) -> None:
    from tercet.models.torch_encoder import TorchEncoder

    engine = TorchEncoder(bert, "bert", device="cpu", adapters=root)
    tokens = engine.tokenizer.tokenize(TEXTS)
    mixed = engine.encode_tokens(tokens, OUTPUTS, [Route(pair, weights)] * len(TEXTS))
    one = pair[weights.index(1.0)]
    assert_close(mixed, engine.encode_tokens(tokens, OUTPUTS, [one] * len(TEXTS)))


def test_prompts_are_not_mixed_with_others(bert: Path, root: Path) -> None:
    from tercet.models.torch_encoder import TorchEncoder

    engine = TorchEncoder(bert, "bert", device="cpu", adapters=root)
    tokens = engine.tokenizer.tokenize(TEXTS)
    route = Route(("prompt", "ia3"), (0.5, 0.5))
    with pytest.raises(AdapterNotServedError, match=r"\['prompt', 'ia3'\] has a soft prompt"):
        engine.encode_tokens(tokens, OUTPUTS, [route] * len(TEXTS))


def test_a_soft_router_takes_no_prompts(on_torch: Any, root: Path, base: RouterBase, centroids: Any) -> None:
    names = ("ia3", "prompt", "bottleneck", None)
    arrays = {"centroids": centroids}
    write_router(root / "soft", Router(SoftSettings(names, "centroid"), base, arrays))
    write_router(root / "hard", Router(CentroidSettings(names), base, arrays))
    encoder = on_torch()
    with pytest.raises(AdapterNotServedError, match=r"'soft' is soft, and \['prompt'\] have .* kind gate"):
        with_adapter(encoder, "soft")
    found = encode(with_adapter(encoder, "hard"), TEXTS)
    assert found.routes is not None
    chosen = [route.adapters[0] for route in found.routes if route is not None]
    assert [chosen[i] for i in (0, 2, 3, 4)] == list(names)
    assert_close(found, encoder.encode_tokens(tokens_of(encoder, TEXTS), OUTPUTS, chosen))


@pytest.mark.parametrize("name", ["lora", "ia3", "sparse"])
def test_mixing_equals_merging_parameters(bert: Path, root: Path, name: str) -> None:
    from tercet.models.torch_encoder import TorchEncoder

    one = read_adapter(root / name)
    turned = {key: array[::-1].copy() for key, array in one.arrays.items() if key != "indices"}
    other = replace(one, arrays={**one.arrays, **turned})
    write_adapter(root / "other", other)
    write_adapter(root / "merged", merge_adapters([one, other], "weighted", [3, 1]))
    engine = TorchEncoder(bert, "bert", device="cpu", adapters=root)
    tokens = engine.tokenizer.tokenize(TEXTS)

    def encoded(adapter: Any) -> Representations:
        return engine.encode_tokens(tokens, OUTPUTS, [adapter] * len(TEXTS))

    assert_close(encoded(Route((name, "other"), (0.75, 0.25))), encoded("merged"))
    write_adapter(root / "twin", one)
    again = TorchEncoder(bert, "bert", device="cpu", adapters=root)
    twins = again.encode_tokens(tokens, OUTPUTS, [Route((name, "twin"), (0.5, 0.5))] * len(TEXTS))
    assert_close(twins, encoded(name))
    assert np.abs(twins.dense - encoded("other").dense).max() > 1e-3


def test_heads_are_mixed_as_their_parameters(bert: Path, root: Path) -> None:
    from tercet.models.torch_encoder import TorchEncoder

    one = read_adapter(root / "with-heads")
    assert one.heads is not None
    arrays = {name: array + np.float32(0.1) for name, array in one.heads.arrays().items()}
    moved = type(one.heads).from_arrays(arrays, "heads", one.base.body.hidden_size)
    write_adapter(root / "other", replace(one, heads=moved))
    other = read_adapter(root / "other")
    write_adapter(root / "merged", merge_adapters([one, other], "weighted", [3, 1]))
    engine = TorchEncoder(bert, "bert", device="cpu", adapters=root)
    tokens = engine.tokenizer.tokenize(TEXTS)
    mixed = engine.encode_tokens(tokens, OUTPUTS, [Route(("with-heads", "other"), (0.75, 0.25))] * len(TEXTS))
    assert_close(mixed, engine.encode_tokens(tokens, OUTPUTS, ["merged"] * len(TEXTS)))


@pytest.mark.slow
def test_the_onnx_engine_mixes_nothing(on_onnx: Any) -> None:
    encoder = on_onnx()
    with pytest.raises(AdapterNotServedError, match=r"router 'warm' is soft.*use the torch engine"):
        with_adapter(encoder, "warm")
    described = {each.name: each for each in encoder.describe_adapters()}
    assert (described["warm"].kind, described["warm"].fingerprint) == ("soft", None)
    assert "use the torch engine" in (described["warm"].problem or "")


def test_fixed_routers_stand_for_an_adapter(encoder: Encoder) -> None:
    assert with_adapter(encoder, "by-language:ko").info == encoder.adapter_info("prefix")
    assert with_adapter(encoder, "by-language").info == encoder.adapter_info("ia3")
    assert with_adapter(encoder, "by-language:en").info == encoder.info
    assert with_adapter(encoder, "by-collection", "cases").info.adapter == "bottleneck"
    assert with_adapter(encoder, "by-collection", "news").info.adapter is None
    with pytest.raises(AdapterNotFoundError, match="no fixed router 'ia3'"):
        with_adapter(encoder, "ia3:ko")


def test_routers_are_listed_after_adapters(on_torch: Any) -> None:
    encoder = on_torch()
    routers = [each for each in encoder.describe_adapters() if each.router is not None]
    names = ["by-collection", "by-domain", "by-gate", "by-language", "cold", "warm"]
    assert [each.name for each in routers] == names
    assert [each.name for each in encoder.describe_adapters()][-6:] == names
    assert routers[1].router == {"adapters": list(HARD)}
    assert (routers[1].description, routers[1].problem) == ("By domain.", None)
    assert len({each.fingerprint for each in routers}) == 6


def test_the_fingerprint_covers_every_adapter_below(on_torch: Any, root: Path, base: RouterBase) -> None:
    before = on_torch().adapter_info("by-domain")
    assert before.adapter == "by-domain"
    assert on_torch().adapter_info("by-domain") == before
    adapter = read_adapter(root / "ia3")
    changed = {key: array * np.float32(1.01) for key, array in adapter.arrays.items()}
    write_adapter(root / "ia3", replace(adapter, arrays=changed))
    after = on_torch().adapter_info("by-domain").fingerprint
    turned = np.roll(np.eye(32, dtype=np.float32)[:4], 1, 0)
    write_router(root / "by-domain", Router(CentroidSettings(HARD), base, {"centroids": turned}))
    assert len({before.fingerprint, after, on_torch().adapter_info("by-domain").fingerprint}) == 3


@pytest.mark.slow
def test_a_missing_adapter_is_named(encoder: Encoder, on_torch: Any, root: Path) -> None:
    shutil.rmtree(root / "prefix")
    for name in ("by-domain", "by-language", "by-language:en"):
        with pytest.raises(AdapterNotFoundError, match=r"router 'by-.*' names the adapters \['prefix'\]"):
            with_adapter(on_torch(), name)
    described = {each.name: each.problem for each in on_torch().describe_adapters()}
    assert "['prefix']" in (described["by-domain"] or "")


def test_a_router_in_a_router_is_refused(on_torch: Any, root: Path) -> None:
    write_router(root / "nested", Router(FixedSettings("domain", {}, "by-domain")))
    with pytest.raises(AdapterNotFoundError, match=r"names the adapters \['by-domain'\]"):
        with_adapter(on_torch(), "nested")


def test_a_damaged_one_is_refused(on_torch: Any, root: Path) -> None:
    (root / "by-domain" / "router.safetensors").write_bytes(b"")
    (root / "prefix" / "adapter.safetensors").write_bytes(b"")
    with pytest.raises(
        AdapterUnusableError, match=r"router 'by-domain' cannot be used: .*router\.safetensors"
    ):
        with_adapter(on_torch(), "by-domain")
    with pytest.raises(AdapterUnusableError, match="adapter 'prefix' cannot be used"):
        with_adapter(on_torch(), "by-gate")
    described = {each.name: each for each in on_torch().describe_adapters()}
    assert "the log names the file" in (described["by-domain"].problem or "")


def test_one_of_another_base(on_torch: Any, root: Path) -> None:
    arrays = {"centroids": np.eye(32, dtype=np.float32)[:4]}
    write_router(root / "by-domain", Router(CentroidSettings(HARD), RouterBase("other", "0"), arrays))
    with pytest.raises(AdapterUnusableError, match=r"learned on base 'other' \(fingerprint 0\)"):
        with_adapter(on_torch(), "by-domain")


def test_an_unknown_name_lists_routers_too(on_torch: Any) -> None:
    with pytest.raises(
        AdapterNotFoundError, match="no adapter 'law'; there are bias, bottleneck, by-collection"
    ):
        with_adapter(on_torch(), "law")
