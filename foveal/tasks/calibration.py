"""Calibration of a run: one temperature for the logits of its classes, fitted to held-out rows.

(Guo et al. 2017, section 4.2.)
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.metrics.calibration import calibration_error
from foveal.objectives.predicted_labels import ClassObjective
from foveal.store import durable
from foveal.store.dataclass_tables import dataclass_from_dict
from foveal.store.run import RunFolder
from foveal.store.sealed import open_json, seal_json

CALIBRATION_FILE = "calibration.json"
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0
BISECTIONS = 60


@dataclass(frozen=True)
class Calibration:
    """A temperature, and what it changes on the rows to which it is fitted."""

    temperature: float
    places: int
    """The number of labels: rows, or words, steps or frames."""
    loss_before: float
    loss_after: float
    ece_before: float
    ece_after: float
    weights: str
    """The sha256 of the weights."""


def fit_calibration(
    run: RunFolder, task: Any, objective: Any, held_out: Any, progress: ProgressCallback
) -> Calibration:
    """Return the temperature for the labels of a held-out split. The model must be at temperature 1.

    Raises: UserError: the run has no classes, or the model is right everywhere.
    """
    if not isinstance(objective, ClassObjective):
        raise UserError(f"{run.path}: has no classes to calibrate (task {task.name})")
    all_logits, all_labels = list[Tensor](), list[Tensor]()
    for batch in iterate_batches(task.eval_batches(held_out), progress):
        labels = objective.class_labels(batch).cpu()
        known = labels >= 0
        all_logits.append(objective.class_logits(batch).cpu()[known])
        all_labels.append(labels[known])
    width = max(logits.shape[1] for logits in all_logits)
    padded = [F.pad(logits, (0, width - logits.shape[1]), value=-math.inf) for logits in all_logits]
    logits, labels = torch.cat(padded).double(), torch.cat(all_labels)
    if logits.argmax(1).eq(labels).all():
        raise UserError(
            f"{run.path}: all {len(labels):,} labels are right, which does not say how often the model is "
            "wrong: give DATA with more labeled rows: foveal calibrate RUN DATA"
        )
    temperature = fit_temperature(logits, labels)
    before, after = _loss_and_error(logits, labels), _loss_and_error(logits / temperature, labels)
    weights = durable.file_sha256(run.weights)
    return Calibration(temperature, len(labels), before[0], after[0], before[1], after[1], weights)


def fit_temperature(logits: Float[Tensor, "P C"], labels: Int[Tensor, " P"]) -> float:
    """Return the T for which `softmax(logits / T)` has the lowest mean loss, from 0.05 to 20.

    The loss is convex in b = 1 / T. Its slope, the mean of `sum_k p_k z_k - z_label`, rises with b, and is
    zero at the minimum, which bisection finds.
    """
    low, high = 1 / MAX_TEMPERATURE, 1 / MIN_TEMPERATURE
    target = logits.gather(1, labels[:, None]).squeeze(1)
    for _ in range(BISECTIONS):
        middle = math.sqrt(low * high)
        probabilities = (middle * logits).softmax(1)
        expected = torch.where(probabilities > 0, probabilities * logits, 0.0).sum(1)
        if float((expected - target).mean()) > 0:
            high = middle
        else:
            low = middle
    return 1 / math.sqrt(low * high)


def save_calibration(run: RunFolder, calibration: Calibration) -> None:
    """Write the calibration durably into the run."""
    durable.atomic_write(run.path / CALIBRATION_FILE, seal_json(asdict(calibration)))


def apply_calibration(run: RunFolder, model: Any, log: Log) -> None:
    """Set the temperature of a model, if its run is calibrated.

    Raises: UserError: the calibration is damaged or edited.
    """
    path = run.path / CALIBRATION_FILE
    if not path.is_file():
        return
    calibration = dataclass_from_dict(Calibration, open_json(path.read_bytes(), str(path)), str(path))
    if calibration.weights == durable.file_sha256(run.weights):
        model.temperature = calibration.temperature
    else:
        log(f"{path}: of earlier weights, so it is not used; fit it again: foveal calibrate {run.path}")


def _loss_and_error(logits: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return the mean loss and the calibration error."""
    shares, ids = logits.softmax(1).max(1)
    error = calibration_error(shares[:, None].tolist(), ids.eq(labels)[:, None].tolist())
    return float(F.cross_entropy(logits, labels)), error.value
