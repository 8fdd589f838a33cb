"""The cost of training the user's own module, measured in a trial step."""

from dataclasses import dataclass

from torch import nn

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.training.dry_run import dry_run
from foveal.training.module.batches import UNKNOWN_LENGTH
from foveal.training.module.objective import ModuleObjective
from foveal.training.plan import StepTimer, budget_to_steps, parse_budget
from foveal.training.protocols import Batches
from foveal.ui.console import format_bytes


@dataclass(frozen=True)
class ModuleCost:
    """Memory, and the number and time of the steps, estimated by a first step."""

    first_loss: float
    rows: int
    """The rows of the first batch."""
    step_seconds: float
    steps: int
    memory_bytes: int

    def __str__(self) -> str:
        memory = f"about {format_bytes(self.memory_bytes)} of memory"
        return f"{memory}; {1000 * self.step_seconds:.0f} ms a step; about {self.steps:,} steps"


def measure_module_cost(
    module: nn.Module, objective: ModuleObjective, batches: Batches, config: Config
) -> ModuleCost:
    """Run a step on the first batch on trial. Weights and buffers are restored.

    Raises: UserError: the loss can't be used, or the budget is in epochs, whose length is not known.
    """
    budget, accumulation = parse_budget(config.training.budget), config.training.grad_accumulation
    first = batches.batch(0, 0)
    if not first.weight:
        raise UserError("train: the first batch has no rows, or the weight 0; leave out empty batches")
    check_length(config.training.budget, batches)
    measured = dry_run(module, objective, first, config)
    step_seconds = measured.seconds * accumulation + measured.update_seconds
    if budget.unit == "seconds":
        steps = StepTimer(budget.amount, config.schedule).expected(0, 0.0, step_seconds).total_steps
    else:
        steps = budget_to_steps(budget, batches.per_epoch, accumulation, first.tokens * accumulation)
    return ModuleCost(measured.loss, first.tokens, step_seconds, steps, measured.memory_bytes)


def check_length(budget: str, batches: Batches) -> None:
    """Check that a budget can be converted to steps.

    Raises: UserError: the budget is in epochs, whose length is not known.
    """
    if parse_budget(budget).unit == "epochs" and batches.per_epoch == UNKNOWN_LENGTH:
        raise UserError(
            f"budget={budget!r}: train has no length, so its epochs can't be planned: give "
            "batches_per_epoch, or a budget such as 1000steps or 10m"
        )
