"""A run as an object: evaluate it, predict, generate, embed and inspect with it, and go on training."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.api.arguments import one_or_several
from foveal.api.errors import plain_errors
from foveal.api.evaluation import evaluate_run, evaluate_shots
from foveal.api.few_shot import PAIR_READER, Examples, few_shot_prompt
from foveal.api.generating_run import GeneratingRun
from foveal.api.interruption import interruptible
from foveal.api.prediction import apply_threshold, are_texts, check_is_no_text, check_numbers
from foveal.api.results.answer_table import AnswerTable
from foveal.api.results.log_table import log_table
from foveal.api.results.picture import Picture
from foveal.api.results.predictions import prediction_table
from foveal.api.results.run_facts import run_facts
from foveal.api.results.scores import Evaluation
from foveal.api.results.table import Table
from foveal.api.training.report import ignore_result
from foveal.api.training.resume import ResumeOptions, resume_run
from foveal.api.values.reader import run_reader
from foveal.api.values.stored import stored_path
from foveal.api.view import choose_view, compute_view, view_options
from foveal.config import Config
from foveal.core.runtime import resolve_device
from foveal.inspection.run_protocols import InspectedRun
from foveal.tasks.base import Task
from foveal.tasks.results import AnsweredRow
from foveal.tasks.session import Session
from foveal.tasks.session import load as load_session
from foveal.training.callbacks import check_callbacks
from foveal.ui.console import log as console_log
from foveal.ui.console import silence
from foveal.ui.progress_bar import ProgressBar


class Run(GeneratingRun):
    """A run folder, and what can be done with it.

    The model is read when it is first needed. `foveal.train` returns a run, `foveal.load` opens one.
    """

    def __init__(self, path: str | Path, device: str = "auto", trust_plugin: bool = False):
        self.path = Path(path)
        """The folder."""
        self.device, self._trust_plugin = device, trust_plugin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}: {', '.join(run_facts(self.path))})"

    def __getstate__(self) -> dict[str, Any]:  # the model is read again from the path
        return {name: value for name, value in vars(self).items() if name != "session"}

    @cached_property
    @plain_errors
    def session(self) -> Session:
        """The opened run.

        Raises: UserError: the path is not a run, is damaged, or has no weights yet.
        """
        return load_session(self.path, resolve_device(self.device), trust_plugin=self._trust_plugin)

    @property
    def inspected(self) -> InspectedRun:
        return self.session

    @property
    def model(self) -> Any:  # torch declares each part of an nn.Module as Tensor | Module
        """The model with the run's weights, in evaluation mode: a `torch.nn.Module`."""
        return self.session.model

    @property
    def processor(self) -> Any:
        """The tokenizer, labels or statistics of images, by which inputs become tensors."""
        return self.session.processor

    @property
    def task(self) -> Task:
        """The task, bound to processor and model, which is in evaluation mode."""
        self.session.model.eval()
        task: Task = self.session.task
        return task

    @property
    def config(self) -> Config:
        """All settings."""
        return self.session.config

    def _path_of(self, data: Any) -> str:
        """Return the path of data for this run: values in memory are stored in the cache."""
        return stored_path(data, run_reader(self.task))

    @property
    def metrics(self) -> Table:
        """The log of the training: a row for each step and each evaluation.

        Raises: UserError: a line of the log is damaged.
        """
        return log_table(self.path)

    @plain_errors
    def evaluate(
        self, data: Any = None, *, shots: Examples | None = None, template: str | None = None
    ) -> Evaluation:
        """Return the scores on the held-out data of the run, or on all of `data`: a path, or values in memory
        as for `foveal.train`.

        With `shots`, a table or pairs of texts, a language model answers the sources of a table of pairs
        behind these examples, which `template` writes as for `foveal evaluate`.

        Raises: UserError: the data can't be read, the run has no held-out data, or an example does not fit.
        """
        examples = few_shot_prompt(self.task, str(self.path), shots, template)
        if examples is None:
            evaluation = evaluate_run(self.session, None if data is None else self._path_of(data))
        else:
            pairs = None if data is None else stored_path(data, PAIR_READER)
            evaluation = evaluate_shots(self.session, pairs, examples)
        return Evaluation(evaluation, evaluation.to_json(self.session))

    @plain_errors
    def predict(self, data: Any, *, top: int | None = None, threshold: float | None = None) -> Table:
        """Return the answer to each row of `data`, in order: a path, a list of texts, or other values in
        memory as for `foveal.train`.

        The columns of a row come first, then `answer`, `probability`, with `top` the likeliest answers in
        `top_k`, and for a row that can't be used the `reason`. Answers less probable than `threshold` are
        "unsure".

        Raises: UserError: the data can't be read, or an option does not fit.
        """
        check_numbers(top, threshold)
        task = self.task
        rows: Iterable[AnsweredRow]
        with ProgressBar("predicted") as progress:
            if are_texts(data):
                rows = task.predict_texts(data, top or 1, progress)
            else:
                check_is_no_text(data, task)
                rows = task.predict(self._path_of(data), top or 1, console_log, progress)
        rows = apply_threshold(rows, threshold, task, str(self.path))
        records = AnswerTable(rows, task.writes_answers, top is not None).records()
        in_memory = not isinstance(data, str | Path)
        return prediction_table(records, self.session.label_values, top is not None, in_memory)

    @plain_errors
    def embed(self, data: Any) -> NDArray[np.float32]:
        """Return the vector (N, D) that the encoder makes of each row of `data`.

        Raises: UserError: the run has no encoder, or a row can't be used.
        """
        with ProgressBar("embedded") as progress:
            source = [*data] if are_texts(data) else self._path_of(data)
            vectors: NDArray[np.float32] = self.task.embed(source, progress).numpy()
        return vectors

    @plain_errors
    def inspect(self, view: str | None = None, *, control: bool = False, **options: Any) -> Picture:
        """Return a view of the run: a picture with its numbers. `options` are those of the view
        (`foveal inspect RUN VIEW --help`). With `control`, the same view of random weights follows, and what
        it costs to remove what the view highlights.

        Raises: UserError: there is no such view, option or control, or the view does not fit the run.
        """
        chosen = choose_view(view)
        if options.get("data") is not None:
            options["data"] = self._path_of(options["data"])
        self.model.eval()
        return Picture(compute_view(chosen, self.inspected, view_options(chosen, options), control))

    @plain_errors
    def curves(self) -> Picture:
        """Return the curves of the training with their diagnosis: losses, gradients, and the learning rate.

        Raises: UserError: a line of the log is damaged.
        """
        return self.inspect("curves")

    @plain_errors
    def resume(
        self,
        budget: str | None = None,
        *,
        log: str | Sequence[str] = (),
        callbacks: object = (),
        quiet: bool = False,
    ) -> "Run":
        """Train a stopped run to its end, and return it.

        Ctrl-C stops it again, and saves. Before the training goes on, it is a `KeyboardInterrupt`.

        A `budget` such as `+10m` adds to the training, and `20m` is its new total; a finished run goes on,
        too. `log`, `callbacks` and `quiet` are those of `foveal.train`; loggers come beside those of the run.
        It is trained on the `device` that it was opened for; `auto` is the run's own.

        Raises: UserError: the run is finished, or its data have changed.
        """
        device = None if self.device == "auto" else self.device
        options = ResumeOptions(
            device, budget, one_or_several(log), tuple(check_callbacks(callbacks)), self._trust_plugin
        )
        with silence(quiet), interruptible() as signals:
            resume_run(self.path, options, signals, ignore_result)
        self.__dict__.pop("session", None)
        return self
