"""The part of a task that answers rows, lines and questions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import EpochBatches, ProgressCallback
from foveal.data.files.lines import Line
from foveal.tasks.results import AnsweredRow
from foveal.training.agreement import ALONE, Agreement
from foveal.training.share import results_by_row

TaskT = TypeVar("TaskT", bound="AnsweringTask")
Result = TypeVar("Result")


class AnsweringTask(ABC):
    """What `foveal predict` asks of a task."""

    name: ClassVar[str]
    writes_answers: ClassVar[bool] = False
    """Whether answers are written token by token or move by move, with log-probabilities."""
    together: Agreement = ALONE
    """The ranks that share the batches of answers. They do the same with the answers of all."""

    def shared_by(self: TaskT, together: Agreement) -> TaskT:
        """Return the task with batches that ranks share."""
        task = copy(self)
        task.together = together
        return task

    def by_row(
        self, batches: EpochBatches, work: Callable[[Any], Sequence[Result]], progress: ProgressCallback
    ) -> list[Result]:
        """Return what `work` returns for each row of a batch, for all rows of the data in order."""
        return results_by_row(batches, work, progress, self.together)

    @property
    def label_column(self) -> str:
        """The column of a table with the labels; empty for a task without labels."""
        return ""

    @abstractmethod
    def predict(self, data: str, top: int, log: Log, progress: ProgressCallback) -> list[AnsweredRow]:
        """Return each row of `data` in order, with the `top` likeliest answers of the model.

        Raises: UserError: the task has no answers, or the model can read no row.
        """

    def predict_lines(self, lines: Iterable[Line], top: int) -> Iterator[AnsweredRow]:
        """Yield each line of text with the `top` likeliest answers, as soon as the line is read.

        Raises: UserError: the task reads no lines of text.
        """
        raise UserError(
            f"this run reads no lines of text (task {self.name}); give DATA, a file or folder, in their place"
        )

    def predict_texts(self, texts: Sequence[str], top: int, progress: ProgressCallback) -> list[AnsweredRow]:
        """Return each text with the `top` likeliest answers of the model, all texts in batches.

        Raises: UserError: the task reads no texts.
        """
        return [*self.predict_lines((Line(number, text, "") for number, text in enumerate(texts, 1)), top)]

    def embed(self, data: str | Sequence[str], progress: ProgressCallback) -> Tensor:
        """Return the vector (N, D) of each row of `data`, or of each text: the summary of its encoder.

        Raises: UserError: the task has no encoder, or a row can't be used.
        """
        raise UserError(f"a run of the task {self.name} has no encoder whose vectors could be taken")

    def answer(
        self, data: Path, questions: Sequence[str], choices: Sequence[str], top: int
    ) -> list[AnsweredRow]:
        """Answer questions about a file.

        Raises: UserError: the task answers no questions.
        """
        raise UserError(f"this run reads no questions (task {self.name}); leave out --question")
