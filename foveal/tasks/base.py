"""What a kind of task brings: its data, its inputs' processors, its model, its scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import nn

from foveal.config import Config
from foveal.core.log import Say
from foveal.core.progress import Watch
from foveal.data.core.prepared_data import NOTHING, Prepared, Taken
from foveal.data.core.rows import Aside
from foveal.metrics.score import Score
from foveal.training.protocols import Batches, Task

Chosen = dict[int, list[int]]
"""Of each row the numbers of its labels (`core.result`)."""


class Given(NamedTuple):
    """What the user typed: paths, or names of the catalogue."""

    data: str
    valid: str | None = None
    test: str | None = None


@dataclass(frozen=True)
class Described:
    """A task on its data in words, to be said before training."""

    data: str
    task: str
    outcomes: int | None
    """A model that knows nothing has a loss of `ln outcomes`; None where it begins knowing something."""
    unit: str
    """What speed is counted in."""


class Answers(NamedTuple):
    """Of each source what the model makes of it, and how probable it holds that, where it says so."""

    sources: list[str]
    outputs: list[str]
    probabilities: list[float] | None = None
    places: list[str] | None = None
    """Where each stands in the data."""
    aside: Sequence[Aside] = ()
    """What gets no answer."""


@dataclass(frozen=True)
class Judged:
    """What a model made of held-out examples, beside what was right, in their order; and the scores of it."""

    sources: list[str]
    references: list[str]
    outputs: list[str]
    lengths: list[int]
    """Of the sources, for a breakdown."""
    scores: list[Score]


@runtime_checkable
class Kind(Protocol):
    """One file of `foveal.tasks`. `Any` stands for its own inputs (a tokenizer, say) and parts of data."""

    def prepare(
        self,
        config: Config,
        given: Given,
        say: Say,
        inputs: Any = None,
        taken: Taken = NOTHING,
    ) -> Prepared[Any, Any]:
        """Read and split the data.

        `inputs` are to be used; else they are made from the training part, but for what is `taken`.
        """

    def prepare_held_out(
        self, config: Config, data: str, inputs: Any, say: Say
    ) -> tuple[Any, dict[str, Any]]:
        """All of `data`, to be measured on, and its facts."""

    def open_inputs(self, folder: Path) -> Any: ...

    def input_files(self, inputs: Any) -> dict[str, bytes]:
        """What `open_inputs` reads back."""

    def model(self, config: Config, inputs: Any) -> nn.Module: ...

    def outline(self, config: Config) -> nn.Module:
        """The model with a vocabulary of the usual size, to be described."""

    def task(self, config: Config, model: Any, inputs: Any, shown: Any = None) -> Task:
        """`shown` is held-out data to take previews from."""

    def training_order(self, config: Config, data: Any) -> Batches: ...

    def held_out_order(self, config: Config, data: Any) -> Batches: ...

    def describe(self, config: Config, data: Prepared[Any, Any]) -> Described: ...

    def amount(self, facts: dict[str, Any]) -> str:
        """How much a part is, in words."""

    def answer(
        self, config: Config, model: Any, inputs: Any, data: str, say: Say, watch: Watch
    ) -> "Answers | None":
        """What the model makes of each source of `data`; None for a language model."""

    def judge(
        self, config: Config, model: Any, inputs: Any, data: Any, chosen: Chosen, watch: Watch
    ) -> "Judged | None":
        """What the model makes of held-out data, scored; None where the loss says it all.

        `chosen` is what its task chose while the loss was measured, where it chooses.
        """
