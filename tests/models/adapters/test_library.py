"""Adapters by name: found, read once, refused where they do not fit."""

import shutil
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import tercet.models.adapters.library as library_module
from tercet.models.adapters.base import adapter_base
from tercet.models.adapters.files import read_adapter, write_adapter
from tercet.models.adapters.library import AdapterLibrary
from tercet.models.adapters.peft_files import read_adapter_for
from tercet.models.adapters.record import Adapter, AdapterBase, ResolvedAdapter
from tercet.models.adapters.settings import StackSettings
from tercet.models.errors import AdapterNotFoundError, AdapterUnusableError


@pytest.fixture
def root(bert_adapters: Path, tmp_path: Path) -> Path:
    """Adapters that a test may change."""
    return Path(shutil.copytree(bert_adapters, tmp_path / "adapters"))


@pytest.fixture
def base(bert: Path) -> AdapterBase:
    return adapter_base(bert)


def opened(root: Path | None, bert: Path, base: AdapterBase) -> AdapterLibrary:
    return AdapterLibrary(root, bert, base.name, base.fingerprint, 16)


def test_names_are_those_of_folders_with_an_adapter(root: Path, bert: Path, base: AdapterBase) -> None:
    (root / "empty").mkdir()
    (root / "Upper").mkdir()
    shutil.copytree(root / "lora", root / "Upper" / "lora")
    (root / "note.txt").write_text("")
    names = opened(root, bert, base).names
    assert names == (
        "bias",
        "bottleneck",
        "fusion",
        "ia3",
        "lora",
        "mixed",
        "parallel",
        "prefix",
        "prompt",
        "sparse",
        "stack",
        "stack-prefix",
        "unipelt",
        "with-heads",
    )


@pytest.mark.parametrize("missing", [True, False])
def test_no_folder_is_no_adapters(tmp_path: Path, bert: Path, base: AdapterBase, missing: bool) -> None:
    library = opened(None if missing else tmp_path / "none", bert, base)
    assert library.names == ()
    with pytest.raises(AdapterNotFoundError, match="no adapter 'law'; the folder of adapters has none"):
        library.get("law")


@pytest.mark.parametrize("name", ["law", "", "..", "../lora", "lora/", "x" * 10_000, "LORA"])
def test_an_unknown_name_lists_the_known_ones(root: Path, bert: Path, base: AdapterBase, name: str) -> None:
    with pytest.raises(AdapterNotFoundError, match="there are bias, bottleneck, fusion, ia3, lora") as error:
        opened(root, bert, base).get(name)
    assert len(str(error.value)) < 400


def test_a_pair_needs_no_router_and_reads_no_file_twice(
    root: Path, bert: Path, base: AdapterBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Counter[Path]()

    def counted(folder: Path, *given: object) -> Adapter:
        read[folder] += 1
        return read_adapter_for(folder, *given)  # type: ignore[arg-type]  # as they are

    monkeypatch.setattr(library_module, "read_adapter_for", counted)
    library = opened(root, bert, base)
    for upper in ("bias", "bottleneck", "ia3"):
        pair = library.get(f"lora+{upper}")
        assert [part.digest for part in pair.parts] == [library.get(name).digest for name in ("lora", upper)]
    assert set(read.values()) == {1}
    for name in ("lora+law", "lora+", "lora+ia3+bias", "lora+../lora"):
        with pytest.raises(AdapterNotFoundError):
            library.get(name)


def test_one_of_another_base(root: Path, bert: Path, base: AdapterBase) -> None:
    adapter = read_adapter(root / "lora")
    write_adapter(root / "lora", replace(adapter, base=replace(adapter.base, name="other", fingerprint="0")))
    library = opened(root, bert, base)
    for name in ("lora", "stack"):
        with pytest.raises(AdapterUnusableError, match=r"lora belongs to base 'other' \(fingerprint 0\)"):
            library.get(name)
    assert library.get("ia3").record.kind == "ia3"


def test_heads_of_another_size(root: Path, bert: Path, base: AdapterBase) -> None:
    library = AdapterLibrary(root, bert, base.name, base.fingerprint, (1, 8))
    with pytest.raises(AdapterUnusableError, match=r"heads of \(1, 16\) rows .*, its base of \(1, 8\)"):
        library.get("with-heads")


def test_stacks(root: Path, bert: Path, base: AdapterBase) -> None:
    write_adapter(root / "of-stack", Adapter(StackSettings(("stack", "ia3")), base))
    write_adapter(root / "of-nothing", Adapter(StackSettings(("gone", "ia3")), base))
    library = opened(root, bert, base)
    assert [part.kind for part in library.get("stack").parts] == ["bottleneck", "lora"]
    assert library.get("stack").digest != library.get("stack-prefix").digest
    assert library.get("lora").digest == library.get("lora").record.digest
    with pytest.raises(AdapterUnusableError, match="one is a stack itself"):
        library.get("of-stack")
    with pytest.raises(AdapterUnusableError, match="stacks adapter 'gone', which is not there"):
        library.get("of-nothing")


def test_a_stack_has_the_heads_of_its_last_part_with_heads(bert_adapters: Path) -> None:
    plain, own = read_adapter(bert_adapters / "lora"), read_adapter(bert_adapters / "with-heads")
    assert ResolvedAdapter("s", plain, (own, plain)).heads is own.heads
    assert ResolvedAdapter("s", plain, (plain, plain)).heads is None


def test_an_adapter_is_read_once_and_kept(root: Path, bert: Path, base: AdapterBase) -> None:
    library = opened(root, bert, base)
    first = library.get("lora")
    write_adapter(root / "lora", read_adapter(root / "ia3"))
    assert library.get("lora") is first
    write_adapter(root / "new", read_adapter(root / "ia3"))
    with pytest.raises(AdapterNotFoundError):
        library.get("new")
    assert opened(root, bert, base).get("lora").record.kind == "ia3"


def test_threads_get_one_and_the_same(root: Path, bert: Path, base: AdapterBase) -> None:
    library = opened(root, bert, base)
    found: list[ResolvedAdapter] = []
    threads = [threading.Thread(target=lambda: found.append(library.get("stack"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(adapter) for adapter in found}) == 1
