"""Statistics of a model's layers at some steps of its training, written to a log of the run.

They are measured by a pass of its own over a small batch that stays the same. The steps themselves are
neither hooked nor changed, so the weights are bit for bit those of a training without statistics.
"""

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from foveal.store.metrics_log import MetricsLog
from foveal.store.plan import Plan

EARLY_STEPS = (0, 10, 30)
FIRST_GAP, GAP_DOUBLES_AT = 100, 2000
LayerProbe = Callable[[], Mapping[str, Any]]
"""Measures the layers of the model that is trained, and returns a record for the log. It may draw random
numbers and change buffers; both are restored."""


def statistics_due(step: int, plan: Plan | None) -> bool:
    """Return whether layers are measured after `step` steps: before the first, after 10, 30 and each 100
    steps, more rarely the longer a training is, and after the last.

    The gap doubles at 2,000 steps, 4,000, 8,000 ... so 32,000 steps have about 60 measurements, and each
    doubling has ten more.
    """
    if step in EARLY_STEPS or (plan is not None and step >= plan.total_steps):
        return True
    gap = FIRST_GAP * 2 ** max(0, math.ceil(math.log2(max(step, 1) / GAP_DOUBLES_AT)))
    return step % gap == 0


class LayerStatistics:
    """Measures a model around the steps of its training, and writes a line for each measurement.

    A line has the step, what `probe` returns, and the norms of each layer's weights and of their last update
    (None before the first step). A probe that fails is logged as an `error`, and training goes on.
    """

    def __init__(self, model: nn.Module, probe: LayerProbe, log: MetricsLog):
        self.model, self.log = model, log
        self._probe = probe
        self._before: dict[str, Tensor] = {}

    def before_step(self, step: int, plan: Plan | None) -> float:
        """Measure the first weights before the first step. Keep the weights if step number `step`, from 0,
        is followed by a measurement. Return the seconds that this took."""
        started = time.perf_counter()
        self._before = {}
        if step == 0:
            self._write(0)
        if statistics_due(step + 1, plan):
            self._before = {name: weight.detach().clone() for name, weight in self._trained()}
        return time.perf_counter() - started

    def after_step(self, step: int, plan: Plan | None) -> None:
        """Measure the weights after `step` steps if it is time to."""
        if statistics_due(step, plan):
            self._write(step)
        self._before = {}

    def _write(self, step: int) -> None:
        try:
            with unchanged(self.model):
                measured = self._probe()
        except Exception as error:  # a picture that is missing is no reason to end a training
            measured = {"error": " ".join(f"{type(error).__name__}: {error}".split())}
        self.log.write({"step": step, **measured, "updates": self._updates()})

    def _updates(self) -> list[dict[str, Any]]:
        """Return the norms of the weights of each layer and of their last update."""
        squares: defaultdict[str, list[tuple[int, float, float]]] = defaultdict(list)
        for name, weight in self._trained():
            before = self._before.get(name, weight.detach())
            change = float((weight.detach() - before).norm())
            squares[name.rpartition(".")[0]].append((weight.numel(), float(before.norm()), change))
        rows = []
        for layer, parts in squares.items():
            counts, norms, changes = zip(*parts, strict=True)
            update = math.hypot(*changes) if self._before else None
            sizes = {"weights": sum(counts), "weight_norm": math.hypot(*norms), "update_norm": update}
            rows.append({"layer": layer} | sizes)
        return rows

    def _trained(self) -> Iterator[tuple[str, nn.Parameter]]:
        return (pair for pair in self.model.named_parameters() if pair[1].requires_grad)


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Return a context after which buffers, modes and the random generators are as before."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    modes = [(module, module.training) for module in model.modules()]
    states = random.getstate(), np.random.get_state()
    gpu = next(model.parameters()).device
    devices = [gpu] if gpu.type != "cpu" else []
    with torch.random.fork_rng(devices, device_type=gpu.type if devices else "cuda"):
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, value in buffers:
                    buffer.copy_(value)
            for module, mode in modes:
                module.training = mode
            random.setstate(states[0])
            np.random.set_state(states[1])
