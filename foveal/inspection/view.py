"""The kind of thing that `foveal inspect` shows: a view computes a payload, and renderers draw payloads."""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, NamedTuple, TypeVar

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.payload import Payload
from foveal.inspection.run_protocols import InspectedModel, InspectedRun

OptionsT = TypeVar("OptionsT")


class Ablation(NamedTuple):
    """What it costs to remove what a view highlights."""

    removed: str
    """The removed part, such as `head 3 of stack.blocks.0.mixer`."""
    outcome: str
    """Whose log-probability is compared, such as `the reference`."""
    before: float
    after: float
    """Log-probabilities in nats."""
    targets: int = 1
    """The targets whose log-probabilities are added up, such as tokens; 1 for a single one or a mean."""


class View(ABC, Generic[OptionsT]):
    """A view of a run, registered with `@register_view(NAME)`: `foveal inspect RUN NAME` shows it."""

    name: str
    """The name under which the view is registered."""
    summary: ClassVar[str]
    """One line for the list of views."""
    Options: type[OptionsT]
    """A frozen dataclass, in which each option has a default; the docstrings of its fields are the help."""
    progress: ClassVar[str] = "inspected"
    """The word before the progress bar."""
    is_default: ClassVar[bool] = False
    """Whether a model before training is shown by this view where the user names none."""

    needs_model: ClassVar[bool] = True
    """Whether the view needs more of a run than its folder."""
    depends_on_weights: ClassVar[bool] = True
    """Whether the same view of a model with random weights is a control of this one."""

    def fits(self, run: InspectedRun) -> str:
        """Return why the view has nothing to show of a run; an empty text if it has."""
        return ""

    @abstractmethod
    def compute(self, run: InspectedRun, options: OptionsT, log: Log, progress: ProgressCallback) -> Payload:
        """Return the payload. Print nothing, write nothing, and do not change the model.

        Raises: UserError: an option does not fit the run.
        """

    def control_options(self, options: OptionsT, payload: Payload) -> OptionsT:
        """Return the options with which the control shows what a payload shows, such as the same head."""
        return options

    def ablate(self, run: InspectedRun, options: OptionsT, log: Log) -> tuple[Ablation, ...]:
        """Return what it costs to remove what the view highlights; nothing if it highlights no part of a
        model or an input. The model is unchanged afterwards.

        Raises: UserError: an option does not fit the run.
        """
        return ()


class ModelView(View[OptionsT]):
    """A view of a run that can also show a model before training."""

    @abstractmethod
    def compute_untrained(
        self, model: InspectedModel, options: OptionsT, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Return the payload for a model before training.

        Raises: UserError: an option does not fit the model.
        """
