"""A run of the user's own module, as an object: what `foveal.Trainer` returns."""

import math
from collections.abc import Mapping
from typing import Any

from torch import nn

from foveal.api.errors import plain_errors
from foveal.api.evaluation import RunEvaluation
from foveal.api.own_module.session import LOG_UNITS, ModuleSession, ModuleTask
from foveal.api.results.picture import Picture
from foveal.api.results.scores import Evaluation
from foveal.api.run import Run
from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.inspection.curves.log_records import LoggedTraining
from foveal.inspection.curves.panels import curves_payload
from foveal.inspection.files import write_payload
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder
from foveal.store.sealed import check_finite, load_weights, open_tensors
from foveal.training.evaluate import evaluate
from foveal.training.module.batch import WeightFunction
from foveal.training.module.batches import BatchOptions, HeldOutBatches
from foveal.training.module.objective import ModuleObjective, UserObjective
from foveal.training.module.sources import held_out_batches
from foveal.ui.console import log
from foveal.ui.progress_bar import ProgressBar


class ModuleRun(Run):
    """A run of the user's own module: what `foveal.Trainer` returns.

    The module has the weights that the run keeps, in evaluation mode. Without a task the run predicts and
    generates nothing; call the module.
    """

    def __init__(
        self,
        folder: RunFolder,
        module: nn.Module,
        objective: UserObjective,
        valid: HeldOutBatches | None = None,
        weight: WeightFunction | None = None,
    ):
        super().__init__(folder.path, str(next(module.parameters()).device))
        self.folder = folder
        self._module, self._objective, self._valid, self._weight = module, objective, valid, weight

    @property
    def model(self) -> nn.Module:
        """The module."""
        return self._module

    @property
    def inspected(self) -> ModuleSession:
        """Return what views see of the run."""
        return ModuleSession(self.folder, ModuleTask(self.config, self._module, self._objective, self._valid))

    @property
    def config(self) -> Config:
        """All settings; those of optimizer, schedule and training are read."""
        return self.folder.config

    @plain_errors
    def evaluate(self, data: Any = None) -> Evaluation:  # type: ignore[override]  # a module has no prompts
        """Return the means of the loss and the metrics over all validation batches of the run, or of `data`:
        a DataLoader, a list, any iterable of batches.

        Raises: UserError: there are no batches.
        """
        training = self.config.training
        options = BatchOptions(next(self.model.parameters()).device, training.seed, log, self._weight)
        held_out = self._valid if data is None else held_out_batches(data, options)
        if held_out is None:
            raise UserError(f"{self.path}: trained without valid: run.evaluate(batches)")
        with SignalHandler(), ProgressBar("evaluated", before="evaluating") as progress:
            means = evaluate(
                self.model,
                ModuleObjective(self.model, self._objective),
                held_out,
                precision=training.precision,
                progress=progress,
            )
        split = "valid" if data is None else "data"
        values = {"run": str(self.path), "split": split} | means
        return Evaluation(RunEvaluation(split, {}, means, None, trained_on=False), values)

    @plain_errors
    def curves(self) -> Picture:
        """Return the curves of the training with their diagnosis: losses, gradients, and the learning rate.

        Raises: UserError: a line of the log is damaged.
        """
        return Picture(curves_payload(_logged(self.folder, type(self.model).__name__)))


def write_curves(folder: RunFolder, class_name: str) -> None:
    """Write the curves of a run into its folder."""
    write_payload(curves_payload(_logged(folder, class_name)), folder.curves)


def _logged(folder: RunFolder, class_name: str) -> LoggedTraining:
    return LoggedTraining(folder, f"{folder.path.name}: {class_name}", LOG_UNITS)


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
