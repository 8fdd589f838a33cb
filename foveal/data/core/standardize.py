"""Standardising: the mean and deviation of each channel of the training part, and their use."""

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

FloatArray = NDArray[np.float32]

STATISTICS_FILE = "channels.json"


@dataclass(frozen=True)
class Statistics:
    """`(x - mean) / std` of each channel; the deviation of one that is constant is set to 1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def channels(self) -> int:
        """C, the number of channels."""
        return len(self.mean)

    @classmethod
    def from_data(cls, rows: Iterable[FloatArray]) -> "Statistics":
        """Over all steps of all `rows` (T, C), of which there must be one at least.

        Row by row, in float64: the sums of two parts are merged as in Chan et al. 1979.
        """
        count, mean, squares = 0, np.zeros(1), np.zeros(1)
        for row in rows:
            if not len(row):
                continue
            values = row.astype(np.float64)
            own = values.mean(0)
            away, total = own - mean, count + len(row)
            squares = squares + ((values - own) ** 2).sum(0) + away**2 * (count * len(row) / total)
            mean, count = mean + away * (len(row) / total), total
        deviation = np.sqrt(squares / count)
        deviation[deviation == 0] = 1.0  # exactly 0 if constant: the sums of float32 numbers are exact
        return cls(tuple(mean.tolist()), tuple(deviation.tolist()))

    def standardize(self, values: FloatArray) -> FloatArray:
        """(T, C) to (T, C)."""
        return ((values - np.array(self.mean)) / np.array(self.std)).astype(np.float32)

    def to_pixels(self, images: Float[Tensor, "*B C H W"]) -> UInt8[np.ndarray, "*B H W C"]:
        """The pixels of standardised images, to look at."""
        mean, deviation = torch.tensor(self.mean), torch.tensor(self.std)
        found = images.movedim(-3, -1).cpu() * deviation + mean
        levels: UInt8[np.ndarray, "*B H W C"] = found.round().clamp(0, 255).byte().numpy()
        return levels

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "Statistics":
        """What `to_json` gave. Errors: UserError names a file that is missing or damaged."""
        with explain_read_errors(folder / STATISTICS_FILE):
            return cls.from_fields(json.loads((folder / STATISTICS_FILE).read_bytes()))

    @classmethod
    def from_fields(cls, fields: Mapping[str, Iterable[float]]) -> "Statistics":
        """Make statistics of their JSON's fields. Raises: ValueError, KeyError or TypeError for others."""
        known = upgrade_fields(cls, fields)
        return cls(**{name: tuple(map(float, numbers)) for name, numbers in known.items()})


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Say which of a run's files is missing or damaged."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: can't read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: damaged ({error}); get the run's folder anew") from None
