import pytest

from tests.index.native.damage import Target, run, targets


@pytest.mark.slow
@pytest.mark.parametrize("target", targets("models"), ids=lambda target: target.kernel)
def test_damaged_inputs_are_refused_or_harmless(target: Target) -> None:
    """Few of them here; `tests/index/native/try_damage.py` tries many."""
    refused = run(target, 1_000, 1)
    assert 0 <= refused < 1_000
