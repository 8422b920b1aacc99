"""Aliases: put, switched and removed; a name is a collection's or an alias's, never both."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tercet.index.catalog.aliases import MOST_COLLECTIONS, Aliases
from tercet.index.collection import Collection, delete_collection, list_collections
from tercet.index.errors import (
    AliasNotFoundError,
    CollectionAliasedError,
    CollectionExistsError,
    CollectionNotFoundError,
    DamagedIndexError,
    InvalidNameError,
    SeveralCollectionsError,
    UnlikeCollectionsError,
)
from tercet.index.inspection import inspect_collection
from tercet.index.verify import verify


@pytest.fixture
def aliases(root: Path, build: Any, three: Any) -> Aliases:
    """Over two collections, `one` and `two`."""
    for name in ("one", "two"):
        build(three, name=name)
    return Aliases(root)


def test_an_alias_means_its_collection_until_it_is_switched(aliases: Aliases, root: Path) -> None:
    assert dict(aliases.all()) == {}
    assert aliases.put("live", "one") == ("one",)
    assert Collection.open(root, "live").settings.name == "one"
    assert inspect_collection(root, "live").settings.name == "one"
    assert verify(root, "live") == []
    other = Aliases(root)  # as another process has it
    assert other.get("live") == ("one",)
    aliases.put("live", "two")
    aliases.put("again", "two")
    assert other.collection_of("live") == "two"
    assert list(other.all().items()) == [("again", ("two",)), ("live", ("two",))]
    assert list_collections(root) == ["one", "two"]
    aliases.remove("live")
    assert other.collection_of("live") == "live"
    with pytest.raises(CollectionNotFoundError, match="'live' does not exist"):
        Collection.open(root, "live")


def test_an_alias_of_an_alias_is_one_of_what_that_means_now(aliases: Aliases) -> None:
    aliases.put("live", "one")
    assert aliases.put("next", "live") == ("one",)
    aliases.put("live", "two")
    assert dict(aliases.all()) == {"live": ("two",), "next": ("one",)}
    assert aliases.put("live", "live") == ("two",)


def test_a_name_is_a_collections_or_an_aliass(
    aliases: Aliases, root: Path, three: Any, make_settings: Any
) -> None:
    with pytest.raises(CollectionExistsError, match="'two' is a collection; give the alias another name"):
        aliases.put("two", "one")
    aliases.put("live", "one")
    with pytest.raises(CollectionExistsError, match="'live' is an alias of collection 'one'"):
        Collection.create(root, "live", make_settings(three[1], "live"))
    assert not (root / "live").exists()


def test_what_does_not_exist_is_named(aliases: Aliases, root: Path, tmp_path: Path) -> None:
    with pytest.raises(CollectionNotFoundError, match="'none' does not exist"):
        aliases.put("live", "none")
    for action in (aliases.get, aliases.remove):
        with pytest.raises(AliasNotFoundError, match="no alias 'live'"):
            action("live")
    for name in ("", "..", "a/b", "Live", ".live"):
        for act in (aliases.get, aliases.collection_of, lambda name: aliases.put(name, "one")):
            with pytest.raises(InvalidNameError, match="does not match"):
                act(name)
    assert dict(aliases.all()) == {}
    assert not (root / "aliases.json").exists()
    assert Aliases(tmp_path / "nowhere").collection_of("one") == "one"


def test_a_collection_that_aliases_mean_is_not_deleted(aliases: Aliases, root: Path) -> None:
    for number in range(6):
        aliases.put(f"a{number}", "one")
    for name in ("one", "a0"):
        with pytest.raises(CollectionAliasedError, match=r"'one' has the alias 'a0', 'a1', .*'a4', …; let"):
            delete_collection(root, name)
    assert list_collections(root) == ["one", "two"]
    for number in range(6):
        aliases.put(f"a{number}", "two")
    delete_collection(root, "one")
    assert list_collections(root) == ["two"]


def test_an_alias_whose_collections_folder_was_removed_leads_to_no_collection(
    aliases: Aliases, root: Path
) -> None:
    aliases.put("live", "one")
    (root / "one").rename(root / "kept")
    with pytest.raises(CollectionNotFoundError, match="'one' does not exist"):
        Collection.open(root, "live")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "holds no JSON object"),
        ('{"aliases": {}}', "format version null"),
        ('{"format_version": 2, "aliases": {}}', "format version 2"),
        ('{"format_version": 1}', "keys missing"),
        ('{"format_version": 1, "aliases": {}, "more": 1}', "unknown"),
        ('{"format_version": 1, "aliases": []}', "aliases is no object; .*give the aliases again"),
        ('{"format_version": 1, "aliases": {"../x": "one"}}', "does not match"),
        ('{"format_version": 1, "aliases": {"live": "../one"}}', "does not match"),
        ('{"format_version": 1, "aliases": {"live": 1}}', "does not match"),
        ('{"format_version": 1, "aliases": {"live": []}}', "does not match"),
        ('{"format_version": 1, "aliases": {"live": ["one"]}}', "does not match"),
        ('{"format_version": 1, "aliases": {"live": ["one", "../two"]}}', "does not match"),
        ('{"format_version": 1, "aliases": {"live": ["one", "one"]}}', "means a collection twice"),
    ],
)
def test_a_damaged_file_is_named_and_harms_no_collection(
    aliases: Aliases, root: Path, content: str, message: str
) -> None:
    (root / "aliases.json").write_text(content)
    for action in (
        lambda: aliases.collection_of("live"),
        lambda: aliases.put("live", "one"),
        lambda: delete_collection(root, "one"),
    ):
        with pytest.raises(DamagedIndexError, match=rf"aliases\.json.*{message}"):
            action()
    assert (root / "aliases.json").read_text() == content
    assert Collection.open(root, "one").snapshot().documents == 3


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_switch_that_fails_leaves_the_former_meaning(
    aliases: Aliases, root: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    aliases.put("live", "one")

    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os if step == "fsync" else Path, step, failing)
        with pytest.raises(OSError, match="No space"):
            aliases.put("live", "two")
    assert aliases.collection_of("live") == "one"
    assert json.loads((root / "aliases.json").read_text())["aliases"] == {"live": "one"}
    assert sorted(path.name for path in root.iterdir()) == ["aliases.json", "aliases.lock", "one", "two"]


def test_many_threads_put_their_aliases_and_none_is_lost(aliases: Aliases, root: Path) -> None:
    def put(first: int) -> None:
        own = Aliases(root)
        for number in range(first, first + 10):
            own.put(f"a{number:02d}", "one")

    threads = [threading.Thread(target=put, args=(10 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(aliases.all()) == [f"a{number:02d}" for number in range(40)]


def test_a_name_goes_to_a_collection_or_an_alias_where_both_are_made_at_once(
    aliases: Aliases, root: Path, three: Any, make_settings: Any
) -> None:
    settings = make_settings(three[1], "new")
    for _ in range(20):
        outcomes: list[str] = []

        def attempt(action: Any, what: str, outcomes: list[str] = outcomes) -> None:
            try:
                action()
            except CollectionExistsError:
                return
            outcomes.append(what)

        threads = [
            threading.Thread(target=attempt, args=(lambda: aliases.put("new", "one"), "alias")),
            threading.Thread(target=attempt, args=(lambda: Collection.create(root, "new", settings), "made")),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 1
        if outcomes == ["alias"]:
            aliases.remove("new")
        else:
            delete_collection(root, "new")


def test_while_files_cannot_be_looked_at_what_was_read_counts(
    aliases: Aliases, monkeypatch: pytest.MonkeyPatch
) -> None:
    aliases.put("live", "one")
    assert aliases.collection_of("live") == "one"

    def failing(*_: object) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("tercet.index.files.versions.os.stat", failing)
        assert [aliases.collection_of(name) for name in ("live", "one", "none")] == ["one", "one", "none"]


def test_an_alias_may_mean_several_collections(aliases: Aliases, root: Path, build: Any, three: Any) -> None:
    build(three, name="three")
    assert aliases.put("all", "two", "one") == ("two", "one")
    assert json.loads((root / "aliases.json").read_text()) == {
        "format_version": 1,
        "aliases": {"all": ["two", "one"]},
    }
    other = Aliases(root)
    assert other.get("all") == other.collections_of("all") == ("two", "one")
    assert aliases.put("more", "all", "three", "one") == ("two", "one", "three")  # what `all` means now
    assert aliases.put("same", "one", "one") == ("one",)
    refused = "'all' means collections 'two' and 'one', .* use one of them by its own name"
    for act in (aliases.collection_of, lambda name: Collection.open(root, name)):
        with pytest.raises(SeveralCollectionsError, match=refused):
            act("all")
    with pytest.raises(SeveralCollectionsError, match=refused):
        delete_collection(root, "all")
    for name, shown in (("three", "'more'"), ("one", "'all', 'more', 'same'")):
        with pytest.raises(CollectionAliasedError, match=f"{name!r} has the alias {shown}"):
            delete_collection(root, name)
    with pytest.raises(CollectionExistsError, match="'all' is an alias of collection 'two' and 'one'"):
        aliases.require_free("all")
    for alias in ("all", "more"):
        aliases.put(alias, "one")
    assert json.loads((root / "aliases.json").read_text())["format_version"] == 1


def test_several_collections_are_there_and_alike(
    aliases: Aliases, root: Path, build: Any, three: Any
) -> None:
    with pytest.raises(CollectionNotFoundError, match="'none' does not exist"):
        aliases.put("all", "one", "none")
    build(three, name="other", fingerprint="e" * 64)
    with pytest.raises(
        UnlikeCollectionsError, match=r"'one' and 'other': their fingerprint is f+ .* and e+ "
    ):
        aliases.put("all", "one", "two", "other")
    for number in range(MOST_COLLECTIONS):
        build(three, name=f"c{number}")
    names = [f"c{number}" for number in range(MOST_COLLECTIONS)]
    assert len(aliases.put("all", *names)) == MOST_COLLECTIONS
    with pytest.raises(SeveralCollectionsError, match="is to mean 33 collections; the limit is 32"):
        aliases.put("all", *names, "one")
    assert aliases.get("all") == tuple(names)
