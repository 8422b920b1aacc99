"""Names of devices."""

import pytest

from tercet.models.device import choose_device
from tercet.models.errors import UnsupportedError


@pytest.mark.parametrize(
    ("device", "cuda", "expected"),
    [
        ("auto", False, ("cpu", 0)),
        ("auto", True, ("cuda", 0)),
        ("cpu", True, ("cpu", 0)),
        ("cuda", True, ("cuda", 0)),
        ("cuda:3", True, ("cuda", 3)),
    ],
)
def test_known_names(device: str, cuda: bool, expected: tuple[str, int]) -> None:
    assert choose_device(device, cuda=cuda, remedy="") == expected


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:7", "CUDA", "", "auto:1"])
def test_other_names_are_refused(device: str) -> None:
    with pytest.raises(UnsupportedError, match="is not known; choose auto, cpu, cuda or cuda:NUMBER"):
        choose_device(device, cuda=True, remedy="")


def test_a_missing_gpu_is_an_error_with_its_remedy() -> None:
    with pytest.raises(UnsupportedError, match="'cuda:1' was asked for, but there is none; use cpu"):
        choose_device("cuda:1", cuda=False, remedy="there is none; use cpu")
