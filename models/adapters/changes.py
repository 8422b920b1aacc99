"""What adapters do to one linear layer: small modules, each put around what lies below it.

Each takes the layer's input x float[B, L, in] and a function for everything below it, the base layer and
the adapters on top of it, and gives float[B, L, out]. `fold` puts a change into a layer's own weights.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from tercet.models.adapters.compound_settings import HypernetworkSettings
from tercet.models.adapters.settings import BottleneckSettings, FusionSettings, Nonlinearity

Below = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[Nonlinearity, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "tanh": torch.tanh,
    "silu": functional.silu,
}
SMALL_STD = 0.02  # as BERT starts its own layers


class Change(nn.Module, ABC):
    """A change of one linear layer."""

    @abstractmethod
    def forward(self, x: Tensor, below: Below) -> Tensor:
        """The changed output for the input x."""

    def fold(self, linear: nn.Linear) -> bool:
        """Makes the change part of the layer's weights; False where it cannot be."""
        return False


class Addition(Change):
    """below(x) + e(z), where z is the input x or, with `reads_output`, below(x)."""

    reads_output: bool = False

    def forward(self, x: Tensor, below: Below) -> Tensor:
        """Adds a function of the input or output."""
        y = below(x)
        return y + self.added(y if self.reads_output else x).to(y.dtype)

    @abstractmethod
    def added(self, z: Tensor) -> Tensor:
        """What is added, as a function of what it reads."""


class Lora(Addition):
    """below(x) + scale · B·A·x. dropout: the share of the input that A does not see in training."""

    def __init__(self, lora_a: Tensor, lora_b: Tensor, scale: float, dropout: float = 0.0) -> None:
        super().__init__()
        self.lora_a = nn.Parameter(lora_a)
        self.lora_b = nn.Parameter(lora_b)
        self.scale = scale
        self.dropout = nn.Dropout(dropout)

    def added(self, z: Tensor) -> Tensor:
        """scale · B·A·z."""
        low = functional.linear(self.dropout(z), self.lora_a)
        return functional.linear(low, self.lora_b) * self.scale

    def fold(self, linear: nn.Linear) -> bool:
        """W + scale · B·A."""
        linear.weight.data += self.scale * (self.lora_b @ self.lora_a).data
        return True


class ScaledInput(Change):
    """below(l ⊙ x)."""

    def __init__(self, scale: Tensor) -> None:
        super().__init__()
        self.scale = nn.Parameter(scale)

    def forward(self, x: Tensor, below: Below) -> Tensor:
        """Scales the input of everything below."""
        return below(x * self.scale.to(x.dtype))

    def fold(self, linear: nn.Linear) -> bool:
        """Columns of W."""
        linear.weight.data *= self.scale.data
        return True


class ScaledOutput(Change):
    """l ⊙ below(x)."""

    def __init__(self, scale: Tensor) -> None:
        super().__init__()
        self.scale = nn.Parameter(scale)

    def forward(self, x: Tensor, below: Below) -> Tensor:
        """Scales the output of everything below."""
        y = below(x)
        return y * self.scale.to(y.dtype)

    def fold(self, linear: nn.Linear) -> bool:
        """Rows of W, and the bias."""
        linear.weight.data *= self.scale.data[:, None]
        if linear.bias is not None:
            linear.bias.data *= self.scale.data
        return True


class Shifted(Change):
    """below(x) + bias."""

    def __init__(self, bias: Tensor) -> None:
        super().__init__()
        self.bias = nn.Parameter(bias)

    def forward(self, x: Tensor, below: Below) -> Tensor:
        """Adds to the output of everything below."""
        y = below(x)
        return y + self.bias.to(y.dtype)

    def fold(self, linear: nn.Linear) -> bool:
        """The bias, where the layer has one."""
        if linear.bias is None:
            return False
        linear.bias.data += self.bias.data
        return True


class SparseWeights(nn.Module):
    """Changes of some weights. indices: int64[k], where they are; values: float[k], what is added to them."""

    indices: Tensor

    def __init__(self, indices: Tensor, values: Tensor) -> None:
        super().__init__()
        self.register_buffer("indices", indices)
        self.values = nn.Parameter(values)


class Sparse(Change):
    """below(x) + Δ·x, where Δ float[out, in] is 0 but at some places."""

    def __init__(self, weights: SparseWeights, start: int, shape: tuple[int, int]) -> None:
        """weights: of this layer and others; start: the index of its first one; shape: [out, in]."""
        super().__init__()
        self.weights, self.start, self.shape = weights, start, shape

    def forward(self, x: Tensor, below: Below) -> Tensor:
        """Adds to the output."""
        return below(x) + functional.linear(x, self.change().to(x.dtype))

    def fold(self, linear: nn.Linear) -> bool:
        """W + Δ."""
        linear.weight.data += self.change().data
        return True

    def change(self) -> Tensor:
        """Δ."""
        size = self.shape[0] * self.shape[1]
        places = self.weights.indices - self.start
        # Those of other layers go to one place behind, which is cut off: no size depends on the indices.
        places = torch.where((places >= 0) & (places < size), places, size)
        flat = self.weights.values.new_zeros(size + 1).index_put((places,), self.weights.values)
        return flat[:size].view(self.shape)


class Bottleneck(Addition):
    """y + s·(U·σ(D·z + d) + u) with y = below(x), and z = y, or x where it is parallel to what is below.

    U and u start at 0, so that it starts as the identity.
    """

    def __init__(self, size: int, settings: BottleneckSettings) -> None:
        super().__init__()
        self.down = nn.Linear(size, settings.width)
        self.up = nn.Linear(settings.width, size)
        self.settings = settings
        self.reads_output = settings.placement != "parallel"
        nn.init.normal_(self.down.weight, std=SMALL_STD)
        for zero in (self.down.bias, self.up.weight, self.up.bias):
            nn.init.zeros_(zero)

    def added(self, z: Tensor) -> Tensor:
        """In the precision of its own weights."""
        middle = ACTIVATIONS[self.settings.nonlinearity](self.down(z.to(self.down.weight.dtype)))
        up: Tensor = self.up(middle)
        return up * self.settings.scale


class Gated(Addition):
    """below(x) + σ(w·z + b) · e(z), the gate being a number for each token, and e(z) what a change adds."""

    def __init__(self, change: Addition, gate: nn.Linear) -> None:
        """gate: from the width of z to 1."""
        super().__init__()
        self.change, self.gate = change, gate
        self.reads_output = change.reads_output

    def added(self, z: Tensor) -> Tensor:
        """What the change adds, times the gate."""
        added = self.change.added(z)
        return torch.sigmoid(self.gate(z.to(self.gate.weight.dtype))).to(added.dtype) * added


class Generated(Addition):
    """y + U·σ(D·y + d) + u with y = below(x), where D, d, U and u are parts of a product G·v.

    The rows of G for U and u start at 0, so that it starts as the identity.
    """

    reads_output = True

    def __init__(self, size: int, settings: HypernetworkSettings, vector: Callable[[], Tensor]) -> None:
        """vector: v, float[2 · settings.size], as it is now."""
        super().__init__()
        width, wide = settings.width, 2 * settings.size
        self.shapes = ((width, size), (width,), (size, width), (size,))
        self.generator = nn.Parameter(torch.zeros(width * (2 * size + 1) + size, wide))
        # v has numbers from N(0, 1), so that those of D are from N(0, SMALL_STD²).
        nn.init.normal_(self.generator.data[: width * size], std=SMALL_STD / math.sqrt(wide))
        self.nonlinearity = settings.nonlinearity
        self.vector = vector

    def added(self, z: Tensor) -> Tensor:
        """By the parameters of the moment."""
        flat = functional.linear(self.vector(), self.generator)
        parts = torch.split(flat, [math.prod(shape) for shape in self.shapes])
        down, down_bias, up, up_bias = (
            part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)
        )
        middle = functional.linear(z.to(down.dtype), down, down_bias)
        return functional.linear(ACTIVATIONS[self.nonlinearity](middle), up, up_bias)


class Fusion(Change):
    """y + V·Σ_n a_n·e_n with y = below(x), e_n what the n-th bottleneck adds, a = softmax_n(Q·z · K·e_n).

    z is what the bottlenecks read: y, or x where they are parallel to what is below. They are frozen. The
    attention is over the bottlenecks at one token, so no other token has a part in it.
    """

    def __init__(self, size: int, settings: FusionSettings) -> None:
        super().__init__()
        self.query = nn.Parameter(SMALL_STD * torch.randn(size, size))
        self.key = nn.Parameter(SMALL_STD * torch.randn(size, size))
        # V less the identity, so that weight decay draws V to the identity.
        self.value = nn.Parameter(torch.zeros(size, size))
        self.bottlenecks = nn.ModuleList(Bottleneck(size, each) for each in settings.bottlenecks)
        self.bottlenecks.requires_grad_(False)
        self.parallel = settings.placement == "parallel"

    def forward(self, x: Tensor, below: Below) -> Tensor:
        """Adds a mixture of what the bottlenecks add."""
        y = below(x)
        z = (x if self.parallel else y).to(self.query.dtype)
        # What a child of a module has is a tensor or a module to torch's types, never a method.
        parts = [bottleneck.added(z) for bottleneck in self.bottlenecks]  # type: ignore[operator]
        added = torch.stack(parts, dim=-2)  # (B, L, N, d)
        # Q·z · K·e = (Kᵀ·Q·z) · e: two products for a token, however many bottlenecks there are.
        projected = functional.linear(functional.linear(z, self.query), self.key.T)
        attention = (projected.unsqueeze(-2) * added).sum(-1, keepdim=True).softmax(-2)  # (B, L, N, 1)
        mixed = (attention * added).sum(-2)
        return y + (mixed + functional.linear(mixed, self.value)).to(y.dtype)


def through(changes: Sequence[Change], x: Tensor, base: Below) -> Tensor:
    """The output of a base layer under changes, the innermost first."""
    if not changes:
        return base(x)
    changed: Tensor = changes[-1](x, lambda given: through(changes[:-1], given, base))
    return changed
