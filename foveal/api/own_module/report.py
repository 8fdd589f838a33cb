"""What the training of the user's own module prints before its first step, and after its last."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from foveal.api.own_module.cost import ModuleCost
from foveal.store.run import RunFolder
from foveal.training.module.batches import UNKNOWN_LENGTH
from foveal.training.protocols import Batches
from foveal.training.snapshot import TrainingCounters
from foveal.ui.console import format_duration, print_facts


def print_setup(
    folder: RunFolder, module: nn.Module, batches: Batches, valid: Batches | None, cost: ModuleCost
) -> None:
    """Print module, batches and cost before the training."""
    parameters = sum(weight.numel() for weight in module.parameters())
    trained = sum(weight.numel() for weight in module.parameters() if weight.requires_grad)
    partly = f", {trained:,} of them trained" if trained < parameters else ""
    length = batches.per_epoch
    epoch = "of unknown number" if length == UNKNOWN_LENGTH else f"{length:,} in an epoch"
    held_out = "" if valid is None else f"; valid {valid.per_epoch:,}"
    rows = [
        ("module", f"{type(module).__name__}: {parameters:,} parameters{partly}"),
        ("batches", f"{epoch}, the first of {cost.rows:,} rows{held_out}"),
        ("first loss", f"{cost.first_loss:.4f}"),
        ("cost", str(cost)),
        ("run", f"{folder.path}  (budget {folder.config.training.budget})"),
    ]
    print_facts(rows)


def print_summary(folder: RunFolder, facts: Mapping[str, Any], counters: TrainingCounters) -> None:
    """Print the steps of a training, and the weights that its run keeps."""
    loss = facts["loss"]
    best = "the last" if loss is None else f"of step {facts['step']:,}, the best on valid: loss {loss:.4f}"
    trained = f"{counters.step:,} steps in {format_duration(counters.seconds)} of training"
    print_facts([("trained", trained), ("weights", f"{folder.weights} ({best})"), ("run", str(folder.path))])
