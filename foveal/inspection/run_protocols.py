"""The protocols through which views use a run or a model. Views import no task and no command."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.store.run import RunFolder

if TYPE_CHECKING:  # views that need no model are imported without torch
    from torch import Tensor

    from foveal.data.core.examples import Examples
    from foveal.data.core.prepared_data import PreparedData, ReusedProcessors
    from foveal.training.protocols import Batches, Objective


@runtime_checkable
class InspectedTask(Protocol):
    """The methods of `tasks.base.Task` that every view uses."""

    @property
    def name(self) -> str: ...

    @property
    def config(self) -> Config: ...

    @property
    def processor(self) -> Any: ...

    @property
    def model(self) -> Any: ...

    @property
    def source_kind(self) -> str: ...

    @property
    def has_classes(self) -> bool: ...

    @property
    def trains_networks(self) -> bool: ...

    def with_config(self, config: Config) -> "InspectedTask": ...

    def with_smooth_loss(self) -> "InspectedTask": ...

    def objective(self) -> "Objective": ...

    def train_batches(self, data: Any) -> "Batches": ...


@runtime_checkable
class InspectedExampleTask(InspectedTask, Protocol):
    """The methods of a task that learns from examples. A task with classes also has `predicted_labels`."""

    @property
    def data_format(self) -> Any: ...

    def with_config(self, config: Config) -> "InspectedExampleTask": ...

    def eval_batches(self, data: Any) -> "Batches": ...

    def example_batches(self, examples: Any) -> "Batches": ...

    def predicted_texts(self, examples: Any, progress: ProgressCallback) -> list[str]: ...


@runtime_checkable
class InspectedRun(Protocol):
    """The methods of `tasks.session.Session` that views use."""

    @property
    def run(self) -> RunFolder: ...

    @property
    def task(self) -> Any:
        """An `InspectedTask`, or an `InspectedExampleTask` if the task learns from examples."""

    @property
    def objective(self) -> Any: ...

    @property
    def config(self) -> Config: ...

    @property
    def model(self) -> Any: ...

    @property
    def processor(self) -> Any: ...

    def held_out(self, data: str | None, option_hint: str, log: Log) -> Any:
        """Return a held-out split, its name and its facts: all of `data`, or the run's own held-out split."""

    def with_random_weights(self) -> "InspectedRun":
        """Return the same run with a model of its own, whose weights are those of before any training."""

    def with_first_weights(self) -> "InspectedRun":
        """Return the same run with a model of its own, whose weights are those that its training began
        with."""

    def other_run(self, path: str) -> "InspectedRun":
        """Open another run on the same device."""

    def few_held_out(self, log: Log) -> "tuple[Examples, list[str], list[Any]]":
        """Return a few held-out examples, their names and their references."""

    def training_data(self, log: Log) -> "PreparedData[Any, Any]":
        """Return the run's own data, prepared as for training."""

    def prepare_other(
        self, data: str, log: Log, reused: "ReusedProcessors", split: bool
    ) -> "PreparedData[Any, Any]":
        """Return other data, prepared as for training. Without `split`, all rows are in the
        training split."""


@runtime_checkable
class OwnBatchesTask(Protocol):
    """The methods in place of a task's, for a module of the user's own: it has batches in place of rows."""

    def why_no_model(self) -> str:
        """Return why the module can't be run; an empty text if it can."""

    def why_no_batch(self) -> str:
        """Return why there is no batch to run the module on; an empty text if there is one."""

    def first_batch(self) -> Any:
        """Return the first validation batch, as the objective takes it."""

    def columns(self, batch: Any) -> "dict[str, Tensor]":
        """Return the tensors of a batch by name."""


def why_no_batch(run: InspectedRun) -> str:
    """Return why a run has no batch to run its model on; an empty text if it has."""
    return run.task.why_no_batch() if isinstance(run.task, OwnBatchesTask) else ""


def own_batch(run: InspectedRun, chooses_rows: bool, log: Log) -> Any:
    """Return the first validation batch of an own module; None for a run of a task.

    Raises: UserError: an option that chooses rows was given (`chooses_rows`), and an own module has none.
    """
    if not isinstance(run.task, OwnBatchesTask):
        return None
    if chooses_rows:
        raise UserError(f"{run.run.path}: an own module has batches of its own: leave out options of rows")
    log("shown is the first validation batch")
    return run.task.first_batch()


@runtime_checkable
class InspectedModel(Protocol):
    """A model before training."""

    @property
    def name(self) -> str:
        """The preset, file or network that the user named."""

    @property
    def config(self) -> Config: ...

    def initialized(
        self, initializations: Sequence[str], data: str | None, log: Log
    ) -> Iterator[tuple[str, InspectedTask, Any]]:
        """Yield each initialization, the task with a model that has these initial weights, and the same
        batch."""


def held_out_examples(run: InspectedRun, data: str | None, log: Log) -> tuple[Any, str]:
    """Return the split that a view shows and its name: all of `data`, or the run's own held-out split."""
    part, split, _ = run.held_out(data, "with --data", log)
    if data is None:
        log(f"shown are rows of the run's {split} split, which were held out; --data names others")
    return part, split
