"""What all classifiers share: their parameters, and a run as the fitted model."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from foveal.sklearn.errors import InputError, list_rows
from foveal.sklearn.kept_run import KeptRun
from foveal.sklearn.runs import answer_values, count_skipped, train_run
from foveal.sklearn.targets import Targets, read_targets
from foveal.tasks.registry import labeling_task
from foveal.tasks.results import AnsweredRow
from foveal.ui.console import silence

TRAIN_OPTIONS = ("model", "start_from", "budget", "epochs", "lr", "batch", "seed", "device", "pretrained")
"""The parameters that `foveal.train` takes as they are."""


class RunClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base class of the classifiers.

    Parameters
    ----------
    model, start_from, budget, epochs, lr, batch, seed, device, pretrained, settings
        As for `foveal.train`.
    run
        The folder of the run that `fit` makes. A further fit, also that of a clone, takes the next free name:
        runs/mood, runs/mood-2 ... If not given, the run is in the folder `sklearn` of the user's cache.
    verbose
        1 shows the training, 0 shows nothing.

    Attributes
    ----------
    classes_
        The classes, sorted, of the type that y has.
    run_
        The run (`foveal.Run`), for what estimators have not: `run_.inspect("confusion", data=...)`.
    labels_
        The names of the classes in the run, in the order of `classes_`.
    class_frequencies_
        The part of the training rows in each class.
    n_features_in_, n_channels_in_
        For series: the steps of each, if all had equally many in `fit`, and the channels.
    """

    _encoder: ClassVar[str]
    """A kind of encoder of the task."""
    _column: ClassVar[str]
    """The column of X in the table of a run."""

    def __init__(
        self,
        *,
        model: str | None = None,
        start_from: str | Path | None = None,
        budget: str | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        batch: int | None = None,
        seed: int | None = None,
        device: str = "auto",
        pretrained: Literal["auto", "no"] = "auto",
        settings: Mapping[str, Any] | None = None,
        run: str | Path | None = None,
        verbose: int = 0,
    ):
        self.model = model
        self.start_from = start_from
        self.budget = budget
        self.epochs = epochs
        self.lr = lr
        self.batch = batch
        self.seed = seed
        self.device = device
        self.pretrained = pretrained
        self.settings = settings
        self.run = run
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> "RunClassifier":
        """Train a run on X and the labels y, and return the classifier.

        No rows are held out for a test, which is left to cross-validation. A network that is trained holds
        out a part of them to choose its best weights: `settings={"data.valid_fraction": 0.1}`.

        Raises: UserError: X, y or a parameter can't be used.
        Raises: RunFailed: the training failed.
        Raises: KeyboardInterrupt: the training was interrupted. Its run can be resumed, as a run alone.
        """
        sources = self._sources(X, is_fit=True)
        targets = read_targets(y, len(sources), self)
        self._check_classes(targets)
        run = train_run(
            {self._column: sources, "label": targets.labels},
            labeling_task(self._encoder).name,
            self.run,
            type(self).__name__,
            self.settings,
            {name: getattr(self, name) for name in TRAIN_OPTIONS} | {"quiet": not self.verbose},
        )
        if skipped := count_skipped(run):
            count = f"{skipped:,} of {len(sources):,} rows of X"
            warnings.warn(f"{count} can't be used, all in {run.path / 'skipped.jsonl'}", stacklevel=2)
        self.run_ = run
        self.classes_, self.labels_ = targets.classes, targets.names
        self.class_frequencies_ = np.bincount(targets.ids) / len(targets.ids)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability (N, C) of each class, in the order of `classes_`.

        A row that the model can't read, such as an empty text, gets `class_frequencies_`, with a warning.

        Raises: NotFittedError: `fit` was not called.
        Raises: UserError: X can't be used.
        """
        check_is_fitted(self, "run_")
        sources = self._sources(X, is_fit=False)
        with silence(not self.verbose):
            rows = self._answers(sources)
        columns = {name: column for column, name in enumerate(self.labels_)}
        probabilities = np.zeros((len(rows), len(columns)))
        unread = []
        for index, row in enumerate(rows):
            if row.answer is None:
                unread.append(index)
                probabilities[index] = self.class_frequencies_
                continue
            likeliest: Sequence[Any] = row.answer.top
            for name, probability in likeliest:
                probabilities[index, columns[name]] = probability
        if unread:
            reason = f"X, {list_rows(unread)}: {rows[unread[0]].reason}"
            warnings.warn(f"{reason}; predicted by the frequencies of the classes", stacklevel=2)
        return probabilities / probabilities.sum(1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class (N,) of each row.

        Raises: NotFittedError: `fit` was not called.
        Raises: UserError: X can't be used.
        """
        likeliest: NDArray[Any] = self.predict_proba(X).argmax(1)
        return self.classes_[likeliest]

    def _sources(self, X: Any, is_fit: bool) -> list[Any]:
        """Return the sources of X, checked.

        Raises: InputError: X can't be used, or is empty.
        """
        sources = self._read(X, is_fit)
        if not sources:
            raise InputError("X has 0 samples: give a row or more")
        return sources

    @abstractmethod
    def _read(self, X: Any, is_fit: bool) -> list[Any]:
        """Return the sources of X.

        Raises: InputError: X can't be used.
        """

    def _check_classes(self, targets: Targets) -> None:
        """Check that a run can learn the classes.

        Raises: InputError: there are too many.
        """

    def _answers(self, sources: list[Any]) -> list[AnsweredRow]:
        """Return each source with the probabilities of all classes."""
        return answer_values(self.run_, self._column, sources, len(self.labels_))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle, with the path of the run and its hash.

        Raises: UserError: the run is gone.
        """
        state = {**super().__getstate__()}
        if "run_" in state:
            state["run_"] = KeptRun.of(state["run_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a pickle.

        Raises: UserError: the run is gone, or has changed.
        """
        kept = state.get("run_")
        super().__setstate__(state if kept is None else state | {"run_": kept.open()})
