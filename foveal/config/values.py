"""What a setting may be: numbers within bounds, and sections without unknown keys."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_SIZE = 1 << 20
"""Of all sizes: what is larger is a slip."""

PositiveInt = Annotated[int, Field(gt=0)]
Size = Annotated[int, Field(gt=0, le=MAX_SIZE)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, coerce_numbers_to_str=True)
