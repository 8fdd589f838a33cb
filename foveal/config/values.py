"""Allowed values of settings: numbers within bounds, and sections without unknown keys."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_SIZE = 1 << 20
"""The upper bound of all sizes: anything larger is a slip."""

PositiveInt = Annotated[int, Field(gt=0)]
Size = Annotated[int, Field(gt=0, le=MAX_SIZE)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class StrictModel(BaseModel):
    """A section of a config.

    Each field has a docstring. Its first line is the setting's meaning, printed as a comment in TOML.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, coerce_numbers_to_str=True)


@dataclass(frozen=True, init=False)
class ReadIf:
    """Mark a field as read only where another field of its section has one of some values.

    No values stand for every value but the empty one. Of several marks one is enough.

        momentum: Annotated[Fraction, ReadIf("name", "momentum", "muon")] = 0.9
    """

    field: str
    values: tuple[str | bool, ...]

    def __init__(self, field: str, *values: str | bool):
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "values", values)

    def holds(self, section: BaseModel) -> bool:
        """Return whether the other field has such a value."""
        value = getattr(section, self.field)
        return value in self.values if self.values else bool(value)
