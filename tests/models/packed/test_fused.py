"""The product that applies GELU: what the two layers give, where they may be one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tercet.models.packed.fused import fuse_gelu, linear_gelu

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
        ],
    ),
]


@pytest.mark.parametrize("device", DEVICES)
def test_it_gives_what_the_two_layers_give(device: str) -> None:
    torch.manual_seed(0)
    states, weight, bias = (torch.randn(*size, device=device) for size in ((1, 7, 32), (64, 32), (64,)))
    expected = functional.gelu(functional.linear(states, weight, bias))
    found = linear_gelu(states, weight, bias)
    torch.testing.assert_close(found, expected, atol=1e-6 if device == "cpu" else 2e-3, rtol=0)


class Wide(nn.Module):
    """Layers with an activation each, of which the first may be one operation with it."""

    def __init__(self) -> None:
        super().__init__()
        self.plain, self.shared, self.tanh = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.without = nn.Linear(8, 4, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        states = functional.gelu(self.plain(states))
        shared = self.shared(states)
        states = functional.gelu(shared) + shared
        states = functional.gelu(self.tanh(states), approximate="tanh")
        return functional.gelu(self.without(states))


def test_only_where_nothing_else_reads_the_layer_and_the_form_is_exact() -> None:
    torch.manual_seed(0)
    wide, states = Wide(), torch.randn(1, 3, 4)
    targets: list[list[object]] = []

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]) -> object:
        fuse_gelu(graph)
        targets.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
        return graph

    torch._dynamo.reset()
    with torch.inference_mode():
        found = torch.compile(wide, backend=backend, fullgraph=True)(states)
        torch.testing.assert_close(found, wide(states), atol=1e-6, rtol=0)
    (calls,) = targets
    assert calls.count(torch.ops.tercet.linear_gelu.default) == 1
    assert calls.count(functional.gelu) == 3
