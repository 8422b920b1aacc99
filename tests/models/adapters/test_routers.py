"""What a router chooses, by hand, and what is no router."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tercet.models.adapters.routers import (
    CentroidSettings,
    FixedSettings,
    GateSettings,
    Router,
    RouterBase,
    SoftSettings,
    resolve,
    router_json,
    router_settings,
)
from tercet.models.errors import AdapterNotFoundError, CheckpointError
from tercet.models.representations import Route

BASE = RouterBase("tiny", "f" * 64)
AXES = np.eye(2, dtype=np.float32)
X = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [-0.6, 0.8]], np.float32)


def test_the_nearest_centroid_in_two_dimensions() -> None:
    router = Router(CentroidSettings(("law", None)), BASE, {"centroids": AXES})
    assert [route.adapters[0] for route in router.routes(X)] == ["law", "law", None, None]
    assert {route.weights for route in router.routes(X)} == {(1.0,)}
    nearest = np.linalg.norm(X[:, None] - AXES[None], axis=2).argmin(1)
    assert [["law", None][each] for each in nearest] == [route.adapters[0] for route in router.routes(X)]


def test_a_tie_goes_to_the_first() -> None:
    router = Router(CentroidSettings(("tea", "law")), BASE, {"centroids": AXES})
    assert router.routes(np.full((1, 2), 0.5**0.5, np.float32))[0].adapters == ("tea",)


def test_a_gate_has_a_bias() -> None:
    arrays = {"weight": AXES, "bias": np.array([0, 0.5], np.float32)}
    router = Router(GateSettings(("law", "tea")), BASE, arrays)  # scores (1, .5), (.8, 1.1), …
    assert [route.adapters[0] for route in router.routes(X)] == ["law", "tea", "tea", "tea"]


def test_soft_weights_are_a_softmax() -> None:
    settings = SoftSettings(("law", "tea"), "centroid", temperature=0.2)
    router = Router(settings, BASE, {"centroids": AXES})
    route = router.routes(X[1:2])[0]  # scores .8 and .6, a difference of 1 after the temperature
    assert route.adapters == ("law", "tea")
    assert route.weights == pytest.approx((np.e / (1 + np.e), 1 / (1 + np.e)))
    cold = Router(SoftSettings(("law", "tea"), "centroid", 1e-6), BASE, {"centroids": AXES})
    assert cold.routes(X[1:2]) == [Route(("law", "tea"), (1.0, 0.0))]


def test_the_best_two_are_mixed_by_their_own_softmax() -> None:
    settings = SoftSettings(("law", "tea", None), "gate", temperature=0.5, top=2)
    weight = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    router = Router(settings, BASE, {"weight": weight, "bias": np.array([0, 0, -0.7], np.float32)})
    routes = router.routes(X)  # scores (1, 0, .3), (.8, .6, .7), (.6, .8, .7), (−.6, .8, −.5)
    assert [route.adapters for route in routes] == [
        ("law", None),
        ("law", None),
        ("tea", None),
        ("tea", None),
    ]
    assert routes[0].weights == pytest.approx((1 / (1 + np.exp(-1.4)), 1 / (1 + np.exp(1.4))))


def test_a_row_is_routed_alike_in_any_batch() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(50, 64)).astype(np.float32)
    arrays = {
        "weight": random.normal(size=(5, 64)).astype(np.float32),
        "bias": np.zeros(5, np.float32),
    }
    router = Router(GateSettings(("a", "b", "c", "d", None)), BASE, arrays)
    together = router.routes(vectors)
    assert together == [router.routes(row[None])[0] for row in vectors]
    assert len(set(together)) == 5


def test_tables_within_tables_are_refused_however_deep() -> None:
    values: dict[str, Any] = {"by": "domain", "table": {}, "default": None}
    for _ in range(900):
        values = {"by": "domain", "table": {}, "default": None, "upper": values}
    with pytest.raises(CheckpointError, match="and no upper"):
        FixedSettings("language", {}, upper=values)  # type: ignore[arg-type]  # as a file has it


def test_fixed_routers_choose_by_tag_or_collection() -> None:
    language = FixedSettings("language", {"ko": "korean", "en": None}, default="any")
    collection = FixedSettings("collection", {"cases": "law"})
    fixed = {"by-language": language, "by-collection": collection}.get
    assert resolve("by-language:ko", None, fixed) == "korean"
    assert resolve("by-language:en", "ko", fixed) is None
    assert resolve("by-language:de", None, fixed) == "any"
    assert resolve("by-language", "ko", fixed) == "any"
    assert resolve("by-collection", "cases", fixed) == "law"
    assert resolve("by-collection", "news", fixed) is None
    assert resolve("by-collection:cases", "news", fixed) == "law"
    assert resolve("law", "cases", fixed) == "law"
    with pytest.raises(AdapterNotFoundError, match=r"no fixed router 'law', which alone .* tag 'ko'"):
        resolve("law:ko", None, fixed)


def test_a_pair_of_tags_that_nobody_listed_is_a_pair_of_adapters() -> None:
    domain = FixedSettings("domain", {"law": "law", "news": "news", "all": None})
    both = FixedSettings("language", {"ko": "korean", "de": "german"}, upper=domain)
    fixed = {"by-both": both, "by-domain": domain}.get
    assert resolve("by-both:ko:law", None, fixed) == "korean+law"
    assert resolve("by-both:de:news", None, fixed) == "german+news"
    assert resolve("by-both:de:all", None, fixed) == "german"
    assert resolve("by-both:de", None, fixed) == "german"
    assert resolve("by-both:fr:law", None, fixed) == "law"
    assert resolve("by-both:fr:all", None, fixed) is None
    assert both.adapters == ("korean", "german", None, "law", "news")
    assert set(both.pairs) == {"korean+law", "korean+news", "german+law", "german+news"}
    assert domain.pairs == ()
    with pytest.raises(AdapterNotFoundError, match=r"router 'by-domain' takes one tag; leave 'ko' out"):
        resolve("by-domain:law:ko", None, fixed)
    with pytest.raises(AdapterNotFoundError, match=r"router 'by-both' takes two tags; leave 'x' out"):
        resolve("by-both:ko:law:x", None, fixed)
    kept = FixedSettings(
        "language", {"ko": "law"}, upper=FixedSettings("collection", {"cases": "law"}, "tea")
    )
    assert resolve("by-both:ko", "cases", {"by-both": kept}.get) == "law"  # one adapter is not laid on itself
    assert resolve("by-both:ko", "news", {"by-both": kept}.get) == "law+tea"


@pytest.mark.parametrize(
    "settings",
    [
        FixedSettings("domain", {"cases": "law"}, None),
        FixedSettings("domain", {"cases": "law"}, None, FixedSettings("language", {}, "tea")),
        CentroidSettings(("law", None)),
        GateSettings(("law", "tea")),
        SoftSettings(("law", "tea"), "centroid", 0.5),
        SoftSettings(("law", "tea", None), "gate", top=2),
    ],
)
def test_settings_as_json(settings: Any) -> None:
    values = json.loads(json.dumps(router_json(settings)))
    assert router_settings(settings.kind, values) == settings
    assert None not in (
        values.get("top", 0),
        values.get("upper", 0),
        (values.get("upper") or {}).get("upper", 0),
    )


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("hard", {}, "kind is 'hard'; it must be one of"),
        (["fixed"], {}, "kind is"),
        ("gate", {"adapters": ["a", "b"], "bias": 1}, r"unknown keys \['bias'\]"),
        ("gate", {}, "settings of kind gate need"),
        ("gate", {"adapters": ["a"]}, "among two or more"),
        ("gate", {"adapters": ["a", "a"]}, "each named once"),
        ("gate", {"adapters": ["a", "../b"]}, r"'\.\./b' is no adapter's name"),
        ("gate", {"adapters": "ab"}, "among two or more"),
        ("soft", {"adapters": ["a", "b"], "temperature": 0}, "temperature is 0"),
        ("soft", {"adapters": ["a", "b"], "temperature": float("nan")}, "temperature is nan"),
        ("soft", {"adapters": ["a", "b"], "scores": "dense"}, "scores is 'dense'"),
        (
            "soft",
            {"adapters": ["a", "b"], "top": 1},
            "top is 1; it must be a number from 2 to .* adapters, 2",
        ),
        ("soft", {"adapters": ["a", "b"], "top": 3}, "top is 3"),
        ("soft", {"adapters": ["a", "b"], "top": True}, "top is True"),
        ("fixed", {"by": "domain", "table": {}, "upper": {"by": "domain", "table": {}}}, "upper is"),
        ("fixed", {"by": "domain", "table": {}, "upper": {"by": "length", "table": {}}}, "by is 'length'"),
        ("fixed", {"by": "domain", "table": {}, "upper": {"tags": {}}}, r"unknown keys \['tags'\]"),
        ("fixed", {"by": "domain", "table": {}, "upper": "by-language"}, "upper is"),
        ("fixed", {"by": "length", "table": {}}, "by is 'length'"),
        ("fixed", {"by": "language", "table": ["ko"]}, "table is"),
        ("fixed", {"by": "language", "table": {"a b": "law"}}, "keys must match"),
        ("fixed", {"by": "language", "table": {"ko": 3}}, "3 is no adapter's name"),
        ("fixed", {"by": "language", "table": {}, "default": "LAW"}, "'LAW' is no adapter's name"),
    ],
)
def test_settings_that_are_refused(kind: Any, values: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        router_settings(kind, values)


@pytest.mark.parametrize(
    ("settings", "base", "arrays", "message"),
    [
        (GateSettings(("a", "b")), BASE, {"centroids": AXES}, r"has tensors \['bias', 'weight'\]"),
        (CentroidSettings(("a", "b")), None, {"centroids": AXES}, "has no base"),
        (FixedSettings("domain", {}), BASE, {}, "has a base"),
        (CentroidSettings(("a", "b", "c")), BASE, {"centroids": AXES}, "routes among 3"),
        (CentroidSettings(("a", "b")), BASE, {"centroids": AXES[0]}, "has shape"),
        (CentroidSettings(("a", "b")), BASE, {"centroids": 2 * AXES}, "must be unit vectors"),
        (CentroidSettings(("a", "b")), BASE, {"centroids": AXES * np.nan}, "finite float32"),
        (CentroidSettings(("a", "b")), BASE, {"centroids": np.eye(2)}, "finite float32"),
    ],
)
def test_arrays_that_are_refused(settings: Any, base: Any, arrays: Any, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        Router(settings, base, arrays)


def test_the_digest_is_of_what_is_computed() -> None:
    one = Router(SoftSettings(("a", "b"), "centroid", 1.0), BASE, {"centroids": AXES})
    told = Router(SoftSettings(("a", "b"), "centroid", 1.0), BASE, {"centroids": AXES}, "for people")
    colder = Router(SoftSettings(("a", "b"), "centroid", 0.5), BASE, {"centroids": AXES})
    turned = Router(SoftSettings(("a", "b"), "centroid", 1.0), BASE, {"centroids": AXES[::-1].copy()})
    assert one.digest == told.digest
    assert len({one.digest, colder.digest, turned.digest}) == 3
