"""Plain values to frozen dataclasses: every key is checked, and an error names it by its dotted path."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from training.errors import ConfigError
from training.settings.reader import read_settings, require, settings_from


@dataclass(frozen=True, slots=True)
class Leaf:
    size: int
    rate: float = 0.5

    def __post_init__(self) -> None:
        require(self.size >= 1, "size", self.size, "at least 1")


@dataclass(frozen=True, slots=True)
class Tree:
    name: str
    leaves: tuple[Leaf, ...]
    kind: Literal["oak", "fir"] = "oak"
    other: Literal["left", "right"] | None = None
    best: Leaf | None = None
    height: float | None = None
    words: tuple[str, ...] = ()
    tall: bool = False
    root: Leaf = field(default_factory=lambda: Leaf(9))


def tree(**values: object) -> Tree:
    return settings_from(Tree, {"name": "t", "leaves": [{"size": 1}], **values}, "")


def test_values_take_their_types_and_absent_ones_their_defaults() -> None:
    found = tree(leaves=[{"size": 2, "rate": 1}, {"size": 3}], other="left", best={"size": 4}, words=["a"])
    assert found == Tree("t", (Leaf(2, 1.0), Leaf(3)), "oak", "left", Leaf(4), None, ("a",), False, Leaf(9))
    assert type(found.leaves[0].rate) is float


def test_null_stands_for_an_optional_that_is_not_given() -> None:
    assert tree(other=None, best=None, height=None) == tree()
    with pytest.raises(ConfigError, match=r"^name: expected str, found None$"):
        tree(name=None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"nmae": "t"}, r"^nmae: unknown setting; known are best, height, kind, leaves, name"),
        ({"best": {"size": 1, "sise": 1}}, r"^best\.sise: unknown setting; known are rate, size$"),
        ({"leaves": [{"size": 1}, {}]}, r"^leaves\[1\]\.size: this setting is required$"),
        ({"leaves": {"size": 1}}, r"^leaves: expected a list, found \{'size': 1\}$"),
        ({"leaves": [3]}, r"^leaves\[0\]: expected a table of settings, found 3$"),
        ({"leaves": [{"size": 0}]}, r"^leaves\[0\]\.size: it is 0, but must be at least 1$"),
        ({"root": {"size": -2}}, r"^root\.size: it is -2, but must be at least 1$"),
        ({"best": {"size": 1.0}}, r"^best\.size: expected int, found 1\.0$"),
        ({"best": {"size": True}}, r"^best\.size: expected int, found True$"),
        ({"height": "tall"}, r"^height: expected float, found 'tall'$"),
        ({"tall": 1}, r"^tall: expected bool, found 1$"),
        ({"kind": "elm"}, r"^kind: expected one of 'oak', 'fir', found 'elm'$"),
        ({"other": "up"}, r"^other: expected one of 'left', 'right', found 'up'$"),
        ({"kind": ["oak"]}, r"^kind: expected one of"),
        ({"words": ["a", 1]}, r"^words\[1\]: expected str, found 1$"),
        ({"words": "a"}, r"^words: expected a list, found 'a'$"),
    ],
)
def test_an_error_names_the_dotted_key(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tree(**values)


def test_a_missing_key_and_something_else_than_a_table() -> None:
    with pytest.raises(ConfigError, match=r"^name: this setting is required$"):
        settings_from(Tree, {}, "")
    with pytest.raises(ConfigError, match=r"^settings: expected a table of settings, found \[\]$"):
        settings_from(Tree, [], "")


def test_toml_and_json_say_the_same_and_errors_name_the_file(tmp_path: Path) -> None:
    toml, plain = tmp_path / "tree.toml", tmp_path / "tree.json"
    toml.write_text('name = "t"\nkind = "fir"\n[[leaves]]\nsize = 1\n')
    plain.write_text(json.dumps({"name": "t", "kind": "fir", "leaves": [{"size": 1}]}))
    assert read_settings(Tree, toml) == read_settings(Tree, plain) == tree(kind="fir")
    plain.write_text('{"name": "t"}')
    with pytest.raises(ConfigError, match=r"tree\.json: leaves: this setting is required"):
        read_settings(Tree, plain)
    for path, content in ((toml, b"name = "), (plain, b"{"), (plain, b"\xff")):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=f"{path.name}: cannot be read as {path.suffix}"):
            read_settings(Tree, path)
    with pytest.raises(ConfigError, match="absent"):
        read_settings(Tree, tmp_path / "absent.toml")
