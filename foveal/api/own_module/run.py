"""A run of the user's own module, as an object: what `foveal.Trainer` returns."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from foveal.api.errors import plain_errors
from foveal.api.results.picture import Picture
from foveal.api.results.table import Table
from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.inspection.curves import curves_payload, read_metrics_log
from foveal.inspection.files import write_payload
from foveal.inspection.payload import Payload
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder
from foveal.store.sealed import check_finite, load_weights, open_tensors
from foveal.training.evaluate import evaluate
from foveal.training.module.batch import WeightFunction
from foveal.training.module.batches import BatchOptions
from foveal.training.module.objective import ModuleObjective, UserObjective
from foveal.training.module.sources import held_out_batches
from foveal.ui.console import log
from foveal.ui.progress_bar import ProgressBar

CURVES_FILE = "curves.png"
UNIT = "rows"
"""The unit of the inputs of a step."""


class ModuleRun:
    """A run of the user's own module. The module has the weights that the run keeps, in evaluation mode."""

    def __init__(
        self,
        folder: RunFolder,
        module: nn.Module,
        objective: UserObjective,
        weight: WeightFunction | None = None,
    ):
        self.folder, self.module = folder, module
        self._objective, self._weight = objective, weight

    def __repr__(self) -> str:
        return f"ModuleRun({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The folder."""
        return self.folder.path

    @property
    def config(self) -> Config:
        """All settings; those of optimizer, schedule and training are read."""
        return self.folder.config

    @property
    def metrics(self) -> Table:
        """The log of the training: a row for each step and each evaluation.

        Raises: UserError: a line of the log is damaged.
        """
        file = self.folder.metrics
        return Table([row for kind in ("step", "evaluation") for row in read_metrics_log(file, kind)])

    @plain_errors()
    def evaluate(self, batches: Any) -> dict[str, float]:
        """Return the means of the loss and the metrics over all of `batches`: a DataLoader, a list, any
        iterable.

        Raises: UserError: there are no batches.
        """
        training = self.config.training
        options = BatchOptions(next(self.module.parameters()).device, training.seed, log, self._weight)
        held_out = held_out_batches(batches, options)
        with SignalHandler(), ProgressBar("evaluated", before="evaluating") as progress:
            return evaluate(
                self.module,
                ModuleObjective(self.module, self._objective),
                held_out,
                precision=training.precision,
                progress=progress,
            )

    @plain_errors()
    def curves(self) -> Picture:
        """Return the curves of the training: loss on training and validation data, and the learning rate.

        Raises: UserError: a line of the log is damaged.
        """
        return Picture(module_curves(self.folder, type(self.module).__name__))


def module_curves(folder: RunFolder, class_name: str) -> Payload:
    """Return the curves of a run."""
    return curves_payload(folder.metrics, f"{folder.path.name}: {class_name}", UNIT, None)


def write_curves(folder: RunFolder, class_name: str) -> None:
    """Write the curves of a run into its folder."""
    write_payload(module_curves(folder, class_name), folder.path / CURVES_FILE)


def load_kept_weights(folder: RunFolder, module: nn.Module) -> dict[str, Any]:
    """Fill a module with the weights that a run keeps. Return the facts about them: their step and loss.

    Raises: UserError: the run has no weights yet, or they do not fit the module.
    """
    if not folder.weights.is_file():
        raise UserError(f"{folder.path}: no weights yet: run the script that trains it again")
    tensors, facts = open_tensors(read_regular(folder.weights), str(folder.weights))
    check_finite(tensors, str(folder.weights))
    load_weights(module, tensors, str(folder.weights))
    module.eval()
    return facts


def describe_means(means: Mapping[str, Any]) -> str:
    """Return the loss and the user's metrics of an evaluation in words."""
    own = {key: value for key, value in means.items() if key not in ("kind", "step", "loss", "best_step")}
    loss = means["loss"]
    words = [f"{'loss' if own else ''} {math.nan if loss is None else loss:.4f}".strip()]
    return ", ".join([*words, *(f"{name} {value:.4g}" for name, value in own.items())])
