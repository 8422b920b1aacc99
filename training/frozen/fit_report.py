"""What a fit has measured, for the log and the model card."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EpochReport:
    """Mean losses of an epoch by term, and development nDCG@10 by source, then by side."""

    number: int
    losses: dict[str, float]
    development: dict[str, dict[str, float]]

    @property
    def figure(self) -> float:
        """What the epoch is judged by: nDCG@10 of the plain sum, averaged over the sources."""
        return sum(sides["sum"] for sides in self.development.values()) / len(self.development)

    def __str__(self) -> str:
        losses = ", ".join(f"{name} {value:.3f}" for name, value in self.losses.items()) or "before training"
        lines = [f"epoch {self.number}: {losses}; development nDCG@10 of the sum {self.figure:.4f}"]
        for source, sides in self.development.items():
            lines.append(f"  {source}: " + ", ".join(f"{side} {value:.4f}" for side, value in sides.items()))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class FitReport:
    """All epochs, the starting point first.

    width: of a hidden state; training_pairs: pairs of each source that were trained on.
    """

    width: int
    epochs: tuple[EpochReport, ...]
    training_pairs: tuple[int, ...]

    @property
    def best(self) -> EpochReport:
        """The epoch whose heads were kept: the first of highest figure."""
        return max(self.epochs, key=lambda epoch: epoch.figure)
