"""Check of a run: its files, its processor, its data, its trained model, and its training replayed."""

import tempfile
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import resolve_device
from foveal.data.core.prepared_data import PreparedData
from foveal.laws.law import LawBroken
from foveal.plugins.stored import open_plugins
from foveal.store.manifest import data_facts
from foveal.store.run import RunFolder, environment_changes, open_run
from foveal.studies.check.check import Target
from foveal.studies.check.law import Law, LawResult, check_laws, law_of_run
from foveal.studies.check.model import check_whole, whole_model
from foveal.studies.check.parts_of_model import check_parts_of_model
from foveal.studies.check.replay import (
    RunReplay,
    checkpoints_of,
    file_hashes,
    logged_rounding,
    logged_steps,
    require_logged_steps,
    require_same_hashes,
)
from foveal.studies.check.run_files import laws_of_files, laws_of_processor, texts_of
from foveal.studies.check.smaller import unreached_windows
from foveal.tasks.base import Task
from foveal.tasks.registry import open_task
from foveal.tasks.session import build_model, prepare_run_data
from foveal.tasks.trained_on import DataChangedError
from foveal.tasks.warm_start import load_run_weights

FIRST_STEPS, MOST_STEPS = 10, 1000
"""If the user gives no number: the first steps that are replayed, and the most between two checkpoints."""
TOLERANCE, HALF_TOLERANCE = 1e-3, 0.05
"""The part of a sum that counts as rounding, in float32 and in 16 bits, where a step was trained otherwise
than it is replayed."""
PIPELINE = "--pp "
"""An option of processes that draw other noise than one process."""
OWN_MODULE = (
    "its script alone can train it again (foveal.Trainer); foveal check FILE.py:NAME checks its module"
)


def run_target(
    path: str, steps: int | None, log: Log, progress: ProgressCallback, trust_plugin: bool
) -> Target:
    """Return a run. No replay of its training has more than `steps` steps, if that is given.

    Raises: UserError: code of a plugin would be executed unasked.
    """
    check = RunCheck(Path(path), steps, log, progress)
    try:
        run = open_run(path)
    except UserError as error:
        return Target(path, "a run", [LawResult("files", "sealed and complete", "BROKEN", str(error))])
    if run.has_own_module:
        return Target(path, "a run of an own module", check.results_of_own_module(run))
    open_plugins(Path(path), run.manifest, log, trust_plugin)
    notes = tuple(unreached_windows(run.config))
    return Target(path, f"a run of {run.config.task.name}", check.results(run), notes)


class RunCheck:
    """The checks of a run, one after the other."""

    def __init__(self, path: Path, steps: int | None, log: Log, progress: ProgressCallback):
        self.path, self.steps, self.log, self.progress = path, steps, log, progress

    def results_of_own_module(self, run: RunFolder) -> Iterator[LawResult]:
        """Yield the results that need no code of the user."""
        yield LawResult("files", "sealed and complete", "holds")
        yield from check_laws("files", lambda: laws_of_files(run))
        yield LawResult("training", "replayed steps are those of the log", "not applicable", OWN_MODULE)

    def results(self, run: RunFolder) -> Iterator[LawResult]:
        """Yield the results of all laws."""
        yield LawResult("files", "sealed and complete", "holds")
        yield from check_laws("files", lambda: laws_of_files(run))
        task = open_task(run)
        data = RunData(run)
        yield from check_laws("processor", lambda: laws_of_processor(run, task, texts_of(data.train)))
        yield from check_laws("data", lambda: [data.law()])
        if run.weights.is_file():
            yield from self._model_results(run, task)
        yield from check_laws("training", lambda: self._replays(run, task, data))

    def _model_results(self, run: RunFolder, task: Task) -> Iterator[LawResult]:
        cpu, task = torch.device("cpu"), _without_freezing(task)
        bound = task.bind(task.processor, build_model(task, cpu).eval())
        try:
            load_run_weights(run, bound)
        except UserError as error:
            yield LawResult("model", "its laws", "not applicable", f"the weights can't be used: {error}")
            return
        whole = whole_model(bound, bound.model, partial(build_model, task, cpu))
        yield from check_whole(whole, bound)
        yield from check_parts_of_model(bound.model, whole)

    def _replays(self, run: RunFolder, task: Task, data: "RunData") -> Iterator[Law]:
        reason = data.reason or _why_no_replay(run)
        if reason:
            yield Law("replayed steps are those of the log", reason=reason)
            return
        assert data.prepared is not None
        device = resolve_device(data_facts(run.manifest, run.path).device)
        replay = Replays(RunReplay(run, task, data.prepared, device, self.progress), self.steps)
        yield replay.law_of_log(f"the first {replay.count} steps", None, 0, replay.count)
        reason = "" if replay.count > 1 else "a single step has no step before it"
        resumes = "a training that is stopped and resumed ends as one that is not"
        yield law_of_run(resumes, replay.resumed, reason)
        yield replay.law_of_checkpoints()


def _without_freezing(task: Task) -> Task:
    """Return the task with a model of which everything is trained, since laws ask for all gradients."""
    training = task.config.training.model_copy(update={"freeze": "none"})
    return task.with_config(task.config.model_copy(update={"training": training}))


class RunData:
    """The data of a run, if they are there and unchanged."""

    def __init__(self, run: RunFolder):
        self.run, self.changed, self.reason = run, "", ""

    @cached_property
    def prepared(self) -> PreparedData[Any, Any] | None:
        try:
            return prepare_run_data(self.run, lambda line: None)
        except DataChangedError as error:
            self.changed = self.reason = str(error)
        except UserError as error:
            self.reason = str(error)
        return None

    @property
    def train(self) -> Any:
        return None if self.prepared is None else self.prepared.train

    def law(self) -> Law:
        """Return the law that the data are those of the training."""
        _ = self.prepared

        def check() -> None:
            if self.changed:
                raise LawBroken(self.changed)

        reason = "" if self.changed or not self.reason else self.reason
        return law_of_run("unchanged since the training", check, reason)


class Replays:
    """The replays of a run, each in a folder of its own that is removed at the end."""

    def __init__(self, replay: RunReplay, steps: int | None):
        self.replay, self.run = replay, replay.run
        self.count = min(FIRST_STEPS if steps is None else steps, logged_steps(self.run))
        self.most = MOST_STEPS if steps is None else steps

    def law_of_log(self, steps: str, start: Path | None, first: int, last: int) -> Law:
        """Return the law that the steps after step `first` are those of the log: bit for bit, or up to
        rounding if they were rounded otherwise than a replay rounds them."""
        name, rounding = f"{steps} are those of the log", logged_rounding(self.run, first + 1, last)
        if PIPELINE in rounding:
            reason = f"they were trained with {rounding}, whose stages draw other noise than one process"
            return Law(name, reason=reason)
        name += f" up to rounding ({rounding})" if rounding else ""
        in_float32 = self.run.config.training.precision == "float32"
        tolerance = 0.0 if not rounding else TOLERANCE if in_float32 else HALF_TOLERANCE
        return law_of_run(name, partial(self._logged, start, first, last, tolerance))

    def resumed(self) -> None:
        """Check that a training that goes on from a checkpoint ends as one that did not stop.

        Raises: LawBroken: it ends with other weights.
        """
        half, last = self.count // 2, self.count
        with TemporaryPath() as folder:
            whole = self.replay.train(folder / "whole", None, last, {half, last})
            own = file_hashes(whole.checkpoint(last))
            resumed = self.replay.train(folder / "resumed", whole.checkpoint(half), last, {last}, whole)
            require_same_hashes(resumed.checkpoint(last), own, last)

    def law_of_checkpoints(self) -> Law:
        """Return the law that the steps from one checkpoint lead to the next one."""
        checkpoints = checkpoints_of(self.run)
        name = "the steps from its checkpoint are those that were"
        if len(checkpoints) < 2:
            return Law(name, reason="the run has no two checkpoints")
        (first, start), (last, end) = checkpoints[-2:]
        if last <= first:
            return Law(name, reason="the run has two checkpoints of one step")
        if last - first <= self.most and not logged_rounding(self.run, first + 1, last):
            name = f"{last - first} steps from checkpoint {first} give the hashes of checkpoint {last}"
            return law_of_run(name, partial(self._to_next, first, start, last, end))
        count = min(self.count, last - first)
        return self.law_of_log(f"{count} steps from checkpoint {first}", start, first, first + count)

    def _to_next(self, first: int, start: Path, last: int, end: Path) -> None:
        with TemporaryPath() as folder:
            replayed = self.replay.train(folder / "next", start, last, {last})
            require_logged_steps(replayed.run, self.run, first + 1, last, 0.0)
            require_same_hashes(replayed.checkpoint(last), file_hashes(end), last)

    def _logged(self, start: Path | None, first: int, last: int, tolerance: float) -> None:
        with TemporaryPath() as folder:
            replayed = self.replay.train(folder / "part", start, last)
            require_logged_steps(replayed.run, self.run, first + 1, last, tolerance)


class TemporaryPath(tempfile.TemporaryDirectory[str]):
    """A temporary folder, as a path."""

    def __enter__(self) -> Path:  # type: ignore[override]
        return Path(super().__enter__())


def _why_no_replay(run: RunFolder) -> str:
    """Return why the training of a run can't be repeated with the same bits; empty if it can."""
    if not run.has_log or not logged_steps(run):
        return "no step was logged"
    if run.manifest["torch"] != torch.__version__:
        return f"made with {environment_changes(run)}: the last bits may differ"
    try:
        resolve_device(data_facts(run.manifest, run.path).device)
    except UserError as error:
        return str(error)
    return ""
