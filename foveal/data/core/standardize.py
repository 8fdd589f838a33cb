"""Standardization by the mean and standard deviation of each channel of the training split."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.typing import NDArray
from torch import Tensor

from foveal.config.old_names import upgrade_fields
from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json

FloatArray = NDArray[np.float32]

STATISTICS_FILE = "channels.json"


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of each channel, for `(x - mean) / std`. `std` is 1 for constant
    channels."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def channels(self) -> int:
        """C, the number of channels."""
        return len(self.mean)

    @classmethod
    def identity(cls, channels: int) -> "Statistics":
        """Return the statistics of values that are standardized already."""
        return cls((0.0,) * channels, (1.0,) * channels)

    @classmethod
    def from_data(cls, rows: Iterable[FloatArray]) -> "Statistics":
        """Compute the statistics over all steps of all `rows` (T, C). There must be at least one step.

        The computation is row by row in float64. The sums of rows are merged as in Chan et al. 1979.
        """
        count, mean, squares = 0, np.zeros(1), np.zeros(1)
        for row in rows:
            if not len(row):
                continue
            values = row.astype(np.float64)
            row_mean = values.mean(0)
            delta, total = row_mean - mean, count + len(row)
            squares = squares + ((values - row_mean) ** 2).sum(0) + delta**2 * (count * len(row) / total)
            mean, count = mean + delta * (len(row) / total), total
        std = np.sqrt(squares / count)
        std[std == 0] = 1.0  # exactly 0 if constant: the sums of float32 numbers are exact
        return cls(tuple(mean.tolist()), tuple(std.tolist()))

    def standardize(self, values: FloatArray) -> FloatArray:
        """Standardize the channels of `values` (T, C)."""
        return ((values - np.array(self.mean)) / np.array(self.std)).astype(np.float32)

    def to_pixels(self, images: Float[Tensor, "*B C H W"]) -> UInt8[np.ndarray, "*B H W C"]:
        """Return the pixel values of standardized images, for display."""
        mean, std = torch.tensor(self.mean), torch.tensor(self.std)
        levels = images.movedim(-3, -1).cpu() * std + mean
        pixels: UInt8[np.ndarray, "*B H W C"] = levels.round().clamp(0, 255).byte().numpy()
        return pixels

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "Statistics":
        """Read what `to_json` wrote.

        Raises: UserError: the file is missing or damaged.
        """
        with explain_read_errors(folder / STATISTICS_FILE):
            return cls.from_fields(parse_json((folder / STATISTICS_FILE).read_bytes()))

    @classmethod
    def from_fields(cls, fields: Mapping[str, Iterable[float]]) -> "Statistics":
        """Return the statistics with the fields of their JSON.

        Raises: ValueError, KeyError or TypeError: the fields are not those of statistics.
        """
        known = upgrade_fields(cls, fields)
        return cls(**{name: tuple(map(float, numbers)) for name, numbers in known.items()})


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading a run's file into a UserError that names the file.

    Raises: UserError: the file is missing or damaged.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise UserError(f"{path}: damaged ({error}); get the run's folder again") from None
