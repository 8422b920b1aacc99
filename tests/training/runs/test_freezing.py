"""Which parameters of a body are trained."""

import pytest
import torch

from tercet.training.errors import ConfigError
from tercet.training.runs.freezing import train_last_layers


@pytest.mark.parametrize("count", [1, 3, 4])
def test_only_the_last_layers_train(tiny_body: torch.nn.Module, count: int) -> None:
    """Of four layers, in both families."""
    train_last_layers(tiny_body, count)
    kept = tuple(f"encoder.layer.{layer}." for layer in range(4 - count, 4))
    for name, parameter in tiny_body.named_parameters():
        assert parameter.requires_grad == name.startswith(kept), name


def test_of_a_model_with_a_body_its_head_trains_too(tiny_body: torch.nn.Module) -> None:
    model = torch.nn.ModuleDict({"bert": tiny_body, "classifier": torch.nn.Linear(2, 1)})
    train_last_layers(model, 1)
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == name.startswith(("bert.encoder.layer.3.", "classifier.")), name


def test_more_layers_than_there_are(tiny_body: torch.nn.Module) -> None:
    with pytest.raises(ConfigError, match="last_layers: it is 5, but must be at most 4, the body's layers"):
        train_last_layers(tiny_body, 5)
