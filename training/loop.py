"""The training loop, the same for every stage."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from tercet.training.distributed import Ranks, share_weights
from tercet.training.errors import DivergedError, RunStoppedError
from tercet.training.gradient_sums import GradientSums
from tercet.training.m3.development import judged_side, mean_of
from tercet.training.memory import TRIM_STEPS, give_back_freed_memory
from tercet.training.optimizer import first_step_of_body, in_body, make_optimizer, rate_factor, set_rates
from tercet.training.runs.log import RunLog
from tercet.training.runs.readings import Readings
from tercet.training.runs.saves import SaveTimes, StopRequested, stop_requests
from tercet.training.runs.state import (
    BEST_FILE,
    Progress,
    load_state,
    put_weights,
    read_tensors,
    save_state,
    write_tensors,
)
from tercet.training.settings.optimization import OptimizationSettings
from tercet.training.settings.run import RunSettings
from tercet.training.step import Stage

Report = Callable[[dict[str, object]], None]
"""Is told every line of the log."""
LOG_STEPS = {"cpu": 1, "cuda": 10}
"""After how many steps losses are read, unless the settings say: a CPU has no work left to wait for."""


def train(
    stage: Stage,
    model: nn.Module,
    settings: RunSettings,
    folder: Path,
    ranks: Ranks,
    report: Report,
) -> Progress:
    """Trains to the end, from the state saved in `folder` where there is one.

    The first process's model is left with the weights of the best development figure, or the last ones
    without a development set. Raises RunStateError and DivergedError, and RunStoppedError where a signal asks
    for a stop before the last step: the state is saved then.
    """
    with stop_requests() as stop_requested:
        return _train(stage, model, settings, folder, ranks, report, stop_requested)


def _train(
    stage: Stage,
    model: nn.Module,
    settings: RunSettings,
    folder: Path,
    ranks: Ranks,
    report: Report,
    stop_requested: StopRequested,
) -> Progress:
    optimization = settings.optimization
    body_from = first_step_of_body(optimization)
    steps = optimization.steps or (optimization.epochs or 0) * stage.steps_per_epoch
    folder.mkdir(parents=True, exist_ok=True)
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    optimizer = make_optimizer(model, optimization)
    device = next(model.parameters()).device.type
    scaler = torch.amp.GradScaler(device, enabled=optimization.precision == "float16")
    share_weights(model.parameters(), ranks)
    progress = load_state(folder, trained, optimizer, scaler, ranks)
    log = RunLog(folder, progress.step) if ranks.rank == 0 else None
    readings = Readings(ranks)
    sums = GradientSums(trained.values(), ranks)
    saving = SaveTimes(settings, ranks, stop_requested)
    log_steps = settings.log_steps or LOG_STEPS[device]

    def note(line: dict[str, object]) -> None:
        if log is not None:
            log.write(line)
            report({**line, "steps": steps})

    def read() -> None:
        for reading in readings.read():
            require_finite(reading.losses, reading.norm, reading.step, optimization)
            note(
                {
                    "step": reading.step,
                    "losses": reading.losses,
                    "gradient_norm": reading.norm if math.isfinite(reading.norm) else None,
                    "learning_rate": reading.rate,
                    "tokens": reading.tokens,
                    "seconds": reading.seconds,
                }
            )

    def evaluate() -> None:
        model.eval()
        figures = stage.evaluate()  # the same on all processes
        if figures:
            note({"step": progress.step, "development": figures})
            figure = mean_of(figures, judged_side(settings.stage))
            if progress.best_figure is None or figure > progress.best_figure:
                progress.best_figure, progress.best_step = figure, progress.step
                if ranks.rank == 0:
                    write_tensors(folder / BEST_FILE, {name: p.detach() for name, p in trained.items()})

    if progress.step == 0:
        evaluate()
    while progress.step < steps:
        began = time.monotonic()
        step = progress.step
        train_body(trained, step >= body_from)
        set_rates(optimizer, step, steps, optimization)
        model.train()
        step_report = stage.accumulate(step, scaler.scale, sums.before_last_backward)
        sums.finish()
        scaler.unscale_(optimizer)
        clipped_from = clip(trained, optimization.clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        progress.step += 1
        rate = rate_factor(step, body_from, steps, optimization) * optimization.learning_rate
        seconds = time.monotonic() - began
        readings.add(progress.step, step_report.losses, clipped_from, rate, step_report.tokens, seconds)
        done = progress.step == steps
        evaluates = done or progress.step % settings.evaluate_steps == 0
        saves = saving.due(progress.step, last=done)
        if evaluates or saves or progress.step % log_steps == 0:
            read()  # first, so that nothing is saved of a run that has diverged
        if progress.step % TRIM_STEPS == 0:
            give_back_freed_memory()
        if evaluates:
            evaluate()
        if saves:
            save_state(folder, progress, trained, optimizer, scaler, ranks)
        if saving.stopping:
            raise RunStoppedError(
                f"stopped after step {progress.step} of {steps}, which is saved; the same command goes on"
            ) from KeyboardInterrupt()
    if progress.best_figure is not None and ranks.rank == 0:
        put_weights(trained, read_tensors(folder / BEST_FILE), folder / BEST_FILE)
    model.eval()
    return progress


def train_body(trained: dict[str, nn.Parameter], trains: bool) -> None:
    """Whether gradients flow into the body's trained weights; into the others they always do."""
    for name, parameter in trained.items():
        if in_body(name):
            parameter.requires_grad_(trains)


def require_finite(
    losses: Mapping[str, float], norm: float, step: int, optimization: OptimizationSettings
) -> None:
    """Raises DivergedError where a loss or the gradient is no number any more.

    In float16 a gradient may overflow: such a step is left out, and the scale of the next one halved.
    """
    values = dict(losses) if optimization.precision == "float16" else {**losses, "gradient norm": norm}
    for name, value in values.items():
        if not math.isfinite(value):
            raise DivergedError(
                f"step {step}: {name} is {value}; lower optimization.learning_rate, now "
                f"{optimization.learning_rate:g}, or take another precision than {optimization.precision}"
            )


def clip(trained: dict[str, nn.Parameter], largest: float) -> Tensor:
    """Scales the gradient down to the norm `largest`, 0 for no limit, and returns its norm before."""
    limit = largest or float("inf")
    return nn.utils.clip_grad_norm_(trained.values(), limit, error_if_nonfinite=False)
