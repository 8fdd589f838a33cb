"""The plans of a training, `plan.json` of a run: its number of steps, and when the learning rate falls."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from foveal.core.errors import UserError
from foveal.store.dataclass_tables import dataclass_from_dict, dataclass_to_dict

EXTENSION_KEYS = ("budget", "earlier")


@dataclass(frozen=True)
class Plan:
    """The plan made at step `decided_at`: the learning rate falls from step `decay_start` to `total_steps`.

    A one-cycle schedule begins at `decided_at`, and has its peak just before `decay_start`.
    """

    total_steps: int
    decay_start: int
    decided_at: int = field(default=0, metadata={"key": "decided"})


@dataclass(frozen=True)
class Plans:
    """The plans of a run from the first to the one that counts now.

    A training whose budget was extended has a plan for each budget. A later plan counts from the step at
    which it was decided; steps before that step, if they are repeated, follow the plan before.
    """

    plans: tuple[Plan, ...] = ()
    budget: str = ""
    """The last extension, as the user wrote it; empty if there is none."""

    @property
    def newest(self) -> Plan | None:
        """The plan that counts now; None if there is no plan yet."""
        return self.plans[-1] if self.plans else None

    @property
    def extended_at(self) -> int | None:
        """The step at which the budget was extended last; None if it never was."""
        return self.plans[-1].decided_at if self.budget else None

    def at(self, step: int) -> Plan | None:
        """Return the plan of update number `step` (from 0)."""
        extensions = [plan for plan in self.plans[1:] if plan.decided_at <= step]
        return extensions[-1] if extensions else next(iter(self.plans), None)

    def extended(self, plan: Plan, budget: str) -> "Plans":
        """Return the plans with one more."""
        return Plans((*self.plans, plan), budget)

    def to_json(self) -> dict[str, Any]:
        """Return the content of plan.json: the plan that counts now, and after an extension the others."""
        *earlier, newest = map(dataclass_to_dict, self.plans)
        return newest | ({"budget": self.budget, "earlier": earlier} if self.budget else {})


class _Extension(BaseModel):
    model_config = ConfigDict(strict=True)

    budget: str = ""
    earlier: list[dict[str, Any]] = []


def plans_from_json(content: dict[str, Any], name: str) -> Plans:
    """Return the plans in a plan.json. `name` is for the error message.

    Raises: UserError: the content is not that of a plan.json.
    """
    newest = {key: value for key, value in content.items() if key not in EXTENSION_KEYS}
    try:
        extension = _Extension.model_validate(content)
    except ValidationError as error:
        field_name = error.errors()[0]["loc"][0]
        raise UserError(f"{name}: {field_name} has a value that Foveal does not write; restore it") from None
    plans = (dataclass_from_dict(Plan, table, name) for table in (*extension.earlier, newest))
    return Plans(tuple(plans), extension.budget)
