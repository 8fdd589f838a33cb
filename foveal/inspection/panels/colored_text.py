"""Text whose tokens are colored by a number each: a unit, an expert, an attribution."""

from dataclasses import dataclass
from typing import Any

from foveal.core.terminal_text import counted
from foveal.inspection.panels.named_array import NamedArray, is_diverging


@dataclass(frozen=True)
class ColoredText:
    """A text, colored once for each row of numbers from `low` to `high`.

    The colors diverge from 0 where `low` is `-high`. Tokens are written one after another: spaces and line
    breaks belong to them.
    """

    title: str
    tokens: tuple[str, ...]
    array: NamedArray
    """Rows, such as units, and a number for each token; NaN has no color."""
    low: float
    high: float
    kinds: tuple[str, ...] = ()
    """The names of the values 0, 1 and so on, where they are kinds and no amounts."""

    def __post_init__(self) -> None:
        if self.array.values.ndim != 2 or self.array.values.shape[1] != len(self.tokens):
            raise ValueError(f"{self.title}: {len(self.tokens)} tokens, but {self.array.values.shape}")

    @property
    def diverging(self) -> bool:
        """Return whether 0 is the middle of the colors."""
        return is_diverging(self.low, self.high)

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        rows = self.array.axes[0]
        names = ": ".join(filter(None, (rows.name, ", ".join(rows.labels))))
        return f"text of {counted(len(self.tokens), 'token')}{f', colored by {names}' if names else ''}"

    def to_json(self) -> dict[str, Any]:
        """Return the tokens and their numbers."""
        scale: dict[str, Any] = {"low": self.low, "high": self.high}
        if self.kinds:
            scale["kinds"] = [*self.kinds]
        return {"tokens": [*self.tokens], "array": self.array.to_json()} | scale
