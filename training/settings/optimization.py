"""Settings of `tercet train` about steps and learning rates; a stage that trains heads has more of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tercet.training.settings.table import AtLeast0, AtLeast1, Factor, Positive, Table, require

Precision = Literal["float32", "bfloat16", "float16"]
FromZero = Annotated[float, Field(ge=0, lt=1)]


class OptimizationSettings(Table):
    """AdamW with a linear warm-up over `warmup` of the steps, then a linear or cosine decay to zero.

    What begins to train later, after `head_warmup_steps`, warms up then, over `warmup` of the steps left.
    Either `steps` or `epochs` is given. learning_rate is the body's. dropout: of the body, by default what
    its configuration says. clip: largest norm of the gradient, 0 for none. frozen_embeddings: the table of
    word embeddings stays as it is. last_layers: only so many of the body's last layers train.
    """

    learning_rate: Positive
    steps: AtLeast1 | None = None
    epochs: AtLeast1 | None = None
    dropout: FromZero | None = None
    weight_decay: Factor = 0.01
    warmup: FromZero = 0.1
    decay: Literal["linear", "cosine", "none"] = "linear"
    clip: Factor = 1.0
    precision: Precision = "float32"
    frozen_embeddings: bool = False
    last_layers: AtLeast1 | None = None

    @model_validator(mode="after")
    def _single_length(self) -> OptimizationSettings:
        given = (self.steps is not None) + (self.epochs is not None)
        require(given == 1, "steps and epochs", given, "1 of the two")
        return self


class HeadsOptimization(OptimizationSettings):
    """Of a stage that trains more than the body: heads, or what pre-training predicts by and throws away.

    heads_learning_rate: of these, by default the body's. head_warmup_steps: only they train for so many steps
    at first, so that what begins at random does not spoil a trained body.
    """

    heads_learning_rate: Positive | None = None
    head_warmup_steps: AtLeast0 = 0


class FinetuneOptimization(HeadsOptimization):
    """frozen_body: the body never trains."""

    frozen_body: bool = False

    @model_validator(mode="after")
    def _a_frozen_body_has_no_layers_that_train(self) -> FinetuneOptimization:
        layers = self.last_layers if self.frozen_body else None
        require(layers is None, "last_layers", layers, "left out with frozen_body")
        return self
