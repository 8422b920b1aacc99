import gc
import importlib.util
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.native import kernels
from tercet.index.native.kernels import add_statistics, find_packed, sort_packed

TERMS = np.array([0, 2], np.int32)
MASSES = np.array([5, 7], np.int64)


def added(**other: Any) -> tuple[list[int], list[int]]:
    given = {
        "terms": TERMS,
        "frequencies": np.array([1, 3], np.int32),
        "masses": MASSES,
        "total_frequencies": np.zeros(3, np.int64),
        "total_masses": np.ones(3, np.int64),
    } | other
    add_statistics(*given.values())
    return given["total_frequencies"].tolist(), given["total_masses"].tolist()


@pytest.mark.parametrize("package", ["index", "models"])
def test_the_module_is_made_of_the_sources_that_are_here(package: str) -> None:
    root = Path(__file__).resolve().parents[3]
    spec = importlib.util.spec_from_file_location("tercet_setup", root / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    made = importlib.import_module(f"tercet.{package}.native.kernels")
    assert setup.digest(package) == made.SOURCES, "the kernels changed since they were compiled: make setup"


def test_arrays_are_written_in_place() -> None:
    assert added() == ([1, 0, 3], [6, 1, 8])


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("frequencies", np.array([1, 3, 4], np.int32), "frequencies has to be int32[2], not int32[3]"),
        ("frequencies", np.array([1, 3]), "frequencies has to be int32[2], not int64[2]"),
        ("frequencies", np.array([[1, 3]], np.int32), "frequencies has to be int32[2], not int32[1, 2]"),
        ("masses", np.zeros(2), "masses has to be int64[2], not float64[2]"),
        ("terms", np.zeros(2, np.uint32), "terms has to be int32[X], not uint32[2]"),
        ("total_masses", np.zeros(4, np.int64), "total_masses has to be int64[3], not int64[4]"),
        ("masses", np.empty(2, np.dtype([])), "masses has to be int64[2], not T{}[2]"),
        ("masses", np.zeros(2, ">i8"), "masses has to be int64[2], not >q[2]"),
        (
            "masses",
            np.frombuffer(bytes(17), np.int64, 2, 1),
            "masses has to be int64[2], not =q[2], unaligned",
        ),
    ],
)
def test_another_array_is_refused_by_name(name: str, array: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^add_statistics: ") as refused:
        added(**{name: array})
    assert str(refused.value) == f"add_statistics: {message}"


def test_an_array_in_pieces_or_read_only_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"masses has to be int64\[2\] in one piece, not this <class 'numpy.ndarray'>"
    ):
        added(masses=np.zeros(4, np.int64)[::2])
    frozen = np.zeros(3, np.int64)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match=r"total_masses has to be int64\[3\], writable and in one piece"):
        added(total_masses=frozen)
    with pytest.raises(TypeError, match="not this <class 'list'>"):
        added(masses=[5, 7])


def test_an_array_of_nothing_may_lie_anywhere() -> None:
    nothing = np.frombuffer(bytes(1), np.uint8, 0, 1).view(np.int32)
    assert added(terms=nothing, frequencies=nothing, masses=MASSES[:0]) == ([0, 0, 0], [1, 1, 1])


def test_another_number_of_arguments_is_refused() -> None:
    with pytest.raises(TypeError, match="add_statistics takes 5 arguments, not 1"):
        add_statistics(TERMS)  # type: ignore[call-arg]


def test_read_only_arrays_may_be_read() -> None:
    terms = TERMS.copy()
    terms.flags.writeable = False
    assert added(terms=terms) == ([1, 0, 3], [6, 1, 8])


def test_a_damaged_number_is_named() -> None:
    with pytest.raises(
        DamagedIndexError, match="a term in what add_statistics reads is 3, outside of 0 up to 3"
    ):
        added(terms=np.array([0, 3], np.int32))


def test_results_are_arrays_that_own_their_memory() -> None:
    data, offsets = np.frombuffer(b"bab", np.uint8), np.array([0, 1, 2, 3])
    order = sort_packed(data, offsets)
    assert order.tolist() == [1, 0, 2]
    assert order.flags.writeable
    owner = weakref.ref(order)
    part = order[1:]
    del order
    gc.collect()
    assert owner() is None or part.tolist() == [0, 2]
    assert part.tolist() == [0, 2]


def test_empty_results_are_arrays_too() -> None:
    nothing = np.empty(0, np.uint8)
    found = find_packed(
        nothing,
        np.zeros(1, np.int64),
        np.empty(0, np.int64),
        nothing,
        np.zeros(1, np.int64),
        np.empty(0, np.int64),
    )
    assert found.shape == (0,)
    assert found.dtype == np.int64


def test_references_are_given_back() -> None:
    """However a call ends, it holds no array afterwards."""
    masses, wrong = MASSES.copy(), np.zeros(5)
    before = sys.getrefcount(masses), sys.getrefcount(wrong)
    for _ in range(10):
        added(masses=masses)
        with pytest.raises(ValueError, match="total_masses"):
            added(masses=masses, total_masses=wrong)
        with pytest.raises(DamagedIndexError):
            added(masses=masses, terms=np.array([0, 3], np.int32))
    masses.resize(4)  # refused while anything views it
    assert (sys.getrefcount(masses), sys.getrefcount(wrong)) == before


def test_all_variants_have_the_same_kernels() -> None:
    names = [set(kernels.kernels_of(each)) for each in kernels.AVAILABLE_INSTRUCTIONS]
    assert kernels.INSTRUCTIONS in kernels.AVAILABLE_INSTRUCTIONS
    assert "plain" in kernels.AVAILABLE_INSTRUCTIONS
    assert all(each == names[0] for each in names)
    for other in ("other", b"plain", None):
        with pytest.raises(ValueError, match="is not among AVAILABLE_INSTRUCTIONS"):
            kernels.kernels_of(other)  # type: ignore[arg-type]


@pytest.mark.slow
def test_instructions_that_the_processor_has_not_are_named() -> None:
    environment = {**os.environ, "TERCET_INSTRUCTIONS": "other"}
    done = subprocess.run(
        [sys.executable, "-m", "tercet.cli.main", "search", "demo", "tea"],
        env=environment,
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "TERCET_INSTRUCTIONS is other; this processor has ('" in done.stderr
    assert "Traceback" not in done.stderr
