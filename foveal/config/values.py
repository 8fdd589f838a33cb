"""Allowed values of settings: numbers within bounds, and sections without unknown keys."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

MAX_SIZE = 1 << 20
"""The upper bound of all sizes: anything larger is a slip."""

PositiveInt = Annotated[int, Field(gt=0)]
Size = Annotated[int, Field(gt=0, le=MAX_SIZE)]
LayerCount = Annotated[int, Field(gt=0, le=4096)]
"""Each layer takes time and memory to make, whatever its width."""
Fraction = Annotated[float, Field(ge=0, lt=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MAX_LEARNING_RATE = 1e38
"""Updates are float32, whose largest number is 3.4e38."""
LearningRate = Annotated[float, Field(gt=0, le=MAX_LEARNING_RATE, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]


TRUTH_VALUES = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
"""The words for true and false, in any case."""


class StrictModel(BaseModel):
    """A section of a config.

    Each field has a docstring. Its first line is the setting's meaning, printed as a comment in TOML.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, coerce_numbers_to_str=True)

    @field_validator("*", mode="before")
    @classmethod
    def _check_kind(cls, value: Any, info: Any) -> Any:
        """Return the value. Words for true and false, such as yes and no, become true and false.

        Raises: ValueError: a number is true or false, or a truth value has another word.
        """
        expected = cls.model_fields[str(info.field_name)].annotation
        if expected is int and isinstance(value, bool):
            raise ValueError("expected a whole number")
        if expected is float and isinstance(value, bool):
            raise ValueError("expected a number")
        if expected is bool and isinstance(value, (int, float, str)) and not isinstance(value, bool):
            if str(value).lower() not in TRUTH_VALUES:
                raise ValueError("expected true or false (or yes, no, on, off, 1, 0)")
            return TRUTH_VALUES[str(value).lower()]
        return value


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


@dataclass(frozen=True)
class Names:
    """Mark a field whose value names registered parts of a kind, such as mixers.

    `besides` are values that name no part. Commas and + stand between several names. Unless `checked`, what
    reads the setting checks the names. Without `sections`, the settings of the parts are elsewhere.
    """

    kind: str
    besides: tuple[str, ...] = ()
    checked: bool = True
    sections: bool = True

    def names(self, value: str) -> list[str]:
        """Return the names in a value, each once."""
        names = [name.strip() for name in re.split("[,+]", value)] if value else []
        return [*dict.fromkeys(name for name in names if name not in self.besides)]


class PartSection(StrictModel):
    """A section with a section of its own for each part that its fields name (`Names`).

    Parts declare their settings themselves, so these sections are kept here as tables, and
    `foveal.plugins.part_settings` checks them.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, Any]] = Field(init=False)

    @property
    def part_tables(self) -> dict[str, dict[str, Any]]:
        """The sections of parts as they were given, by the name of the section."""
        return self.__pydantic_extra__ or {}
