"""Defaults by the size and shape of the data: the preset, settings and published weights of a training for
which the user chose no model."""

from dataclasses import dataclass

from foveal.data.open import OpenedData

MAX_COUNTED_ROWS = 20_000
"""Rows that are counted at most before the data are read."""


@dataclass(frozen=True)
class DefaultsRequest:
    """What the defaults depend on."""

    data: OpenedData
    trains: bool = False
    """Whether the user set how long or how to train, so that a closed form is no answer."""
    pretrained: bool = True
    """Whether published weights may be fetched."""


@dataclass(frozen=True)
class Defaults:
    """The defaults of a training."""

    preset: str
    reason: str = ""
    """Why these defaults suit the data, for the line that is shown. Empty if there was nothing to choose."""
    settings: tuple[str, ...] = ()
    """Settings in place of the preset's."""
    weights: str = ""
    """The name of the published weights that the training starts from; empty for none."""
    undo: str = ""
    """The options that choose the next best model instead."""
    advice: str = ""
    """A line that says that the data will not do, and what would. Empty if there is nothing to say."""

    def __str__(self) -> str:
        start = f"the weights {self.weights}" if self.weights else self.preset
        more = f" with {' '.join(self.settings)}" if self.settings and not self.weights else ""
        return f"{start}{more}, since {self.reason}; else {self.undo}"


@dataclass(frozen=True)
class ClosedForm:
    """The preset of a classifier in closed form, which is the default for up to `most_rows` rows."""

    preset: str
    most_rows: int
    rows: str
    """What the rows are, such as texts."""
    features: str
    """What the classifier reads, such as n-grams of characters."""

    def defaults(self, count: int, preset: str) -> Defaults:
        """Return the defaults for `count` rows, where `preset` is the task's own."""
        if not 0 < count <= self.most_rows:
            return Defaults(preset)
        reason = f"{count:,} {self.rows} are few: {self.features} and a classifier in closed form"
        return Defaults(self.preset, reason, undo=f"--model {preset}")
