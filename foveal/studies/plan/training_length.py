"""How long a model is trained: as published, or by the budget of its settings."""

from pydantic import BaseModel, ConfigDict

from foveal.core.terminal_text import counted
from foveal.training.plan import budget_to_steps, parse_budget


class TrainingLength(BaseModel):
    """The tokens or images of a training. `flops` are the operations as a paper reckons them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: int
    source: str
    """The place in a paper, or the steps of a budget."""
    flops: float | None = None
    reckoning: str = ""
    """How the paper reckons them, if not 6 for each parameter and token."""


def length_of_budget(text: str, batch_tokens: int, unit: str) -> TrainingLength | None:
    """Return the length of a training with a budget in steps or tokens; None for one in epochs or time, whose
    steps are unknown without data. `unit` is that of a step's tokens.

    Raises: UserError: the budget has another form.
    """
    budget = parse_budget(text)
    if budget.unit in ("epochs", "seconds"):
        return None
    steps = budget_to_steps(budget, 1, 1, batch_tokens)
    source = f"{counted(steps, 'step')} of {batch_tokens:,} {unit}"
    return TrainingLength(tokens=steps * batch_tokens, source=source)
