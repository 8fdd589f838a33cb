"""A run of the user's own module as views see it."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from torch import Tensor, nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.store.manifest import LogUnits
from foveal.store.run import RunFolder
from foveal.tasks.warm_start import load_initial_weights
from foveal.training.module.batch import ModuleBatch, leaves
from foveal.training.module.batches import HeldOutBatches
from foveal.training.module.objective import ModuleObjective, UserObjective
from foveal.training.protocols import Batches

UNIT = "rows"
"""The unit of the inputs of a step."""
LOG_UNITS = LogUnits(speed_unit=UNIT, loss_unit=None, num_outcomes=None)
NAME = "own module"
"""What views say in place of a task."""
NO_BATCH = (
    "there is no batch to run the module on: as valid, give foveal.Trainer a function that makes batches, "
    "at the top of a module of yours"
)


@dataclass(frozen=True)
class ModuleTask:
    """What views ask a task, answered for a module of the user's own: it has batches in place of rows.

    Without the user's code, the module is empty, and `missing` says why.
    """

    config: Config
    model: nn.Module
    user_objective: UserObjective | None
    valid: HeldOutBatches | None
    missing: str = ""

    name = NAME
    source_kind = NAME
    processor: None = None
    has_classes = trains_networks = False
    log_units = LOG_UNITS

    def why_no_model(self) -> str:
        return self.missing

    def why_no_batch(self) -> str:
        return self.missing or ("" if self.valid is not None else NO_BATCH)

    def first_batch(self) -> ModuleBatch:
        """Return the first validation batch.

        Raises: UserError: there is none.
        """
        if self.valid is None:
            raise UserError(self.why_no_batch())
        return self.valid.batch(0, 0)

    def columns(self, batch: ModuleBatch) -> dict[str, Tensor]:
        """Return the tensors of a batch by their key, or by their place in it."""
        value = batch.value
        named = value.items() if isinstance(value, Mapping) else enumerate(leaves(value))
        return {str(name): part for name, part in named if isinstance(part, Tensor)}

    def objective(self) -> ModuleObjective:
        """Return the user's objective.

        Raises: UserError: the user's code is missing.
        """
        if self.user_objective is None:
            raise UserError(self.missing)
        return ModuleObjective(self.model, self.user_objective)

    def with_config(self, config: Config) -> "ModuleTask":
        return ModuleTask(config, self.model, self.user_objective, self.valid, self.missing)

    def with_smooth_loss(self) -> "ModuleTask":
        return self

    def train_batches(self, data: Any) -> Batches:
        refuse_rows()


@dataclass(frozen=True)
class ModuleSession:
    """A run of the user's own module, with the methods of `tasks.session.Session` that views use."""

    run: RunFolder
    task: ModuleTask

    @property
    def objective(self) -> ModuleObjective | None:
        return None if self.task.user_objective is None else self.task.objective()

    @property
    def config(self) -> Config:
        return self.task.config

    @property
    def model(self) -> nn.Module:
        return self.task.model

    @property
    def processor(self) -> None:
        return None

    def with_random_weights(self) -> NoReturn:
        raise UserError(
            f"{self.run.path}: the first weights of an own module need not be random, so that its views "
            "have no control: leave it out"
        )

    def with_first_weights(self) -> "ModuleSession":
        """Return the run with a copy of the module, whose weights are those before the training."""
        module = deepcopy(self.model)
        load_initial_weights(self.run, module)
        return replace(self, task=replace(self.task, model=module))

    def held_out(self, data: Any, option_hint: str, log: Any) -> NoReturn:
        refuse_rows()

    def other_run(self, path: str) -> NoReturn:
        refuse_rows()

    def few_held_out(self, log: Any) -> NoReturn:
        refuse_rows()

    def training_data(self, log: Any) -> NoReturn:
        refuse_rows()

    def prepare_other(self, data: str, log: Any, reused: Any, split: bool) -> NoReturn:
        refuse_rows()


def refuse_rows() -> NoReturn:
    """Say that there are no rows to show.

    Raises: UserError: always.
    """
    raise UserError("a run of foveal.Trainer has batches of your own, not rows that a view can read")
