"""Which unit follows a probe: the search for it on one half of a text, and its correlation on the other half.

For a probe y and the values x_u of unit u after each token, r_u is Pearson's correlation of x_u and y. The
search takes the unit with the largest |r_u| on the first half of the text; the second half says how well this
unit follows the probe (Karpathy, Johnson and Fei-Fei 2015 looked for such cells by eye). The best of many
units has a large |r| by chance, and neighbors in a text are alike. So the control repeats search and report
with the labels moved along the text in a circle: what is left has nothing to do with the probe.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.inspection.cells.probes import Probe
from foveal.inspection.read_states import bounded_values

SHIFTS = 6
"""Controls of each probe."""
SMALLEST_VARIANCE = 1e-12
"""Variances below which a unit or a probe is constant."""

States = Mapping[str, Float[Tensor, "_ _ _"]]
Halves = tuple[dict[str, Float[Tensor, "U L"]], dict[str, Float[Tensor, "U L"]]]
"""The correlation of each unit with each label, by layer: on the first half and on the second half."""


class Cell(NamedTuple):
    """A unit that follows a probe."""

    probe: str
    layer: str
    unit: int
    search_r: float
    """Correlation on the half of the text in which the unit was searched."""
    r: float
    """Correlation on the other half."""
    control: float
    """Mean |r| on the other half of the units that the same search takes for labels moved along the text."""


def token_labels(
    probes: Mapping[str, Probe], text: str, characters: Int[np.ndarray, " N"]
) -> Float[np.ndarray, "N P"]:
    """Return the value of each probe after each token: that at the token's last character.

    `characters` are the numbers of characters of the tokens.
    """
    last = np.clip(characters.cumsum() - 1, 0, len(text) - 1)
    return np.stack([probe(text)[last] for probe in probes.values()], 1)


def with_controls(labels: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N L"]:
    """Return the labels, and then all of them moved along the text in a circle, `SHIFTS` times."""
    distances = np.random.default_rng(0).uniform(0.1, 0.9, SHIFTS) * len(labels)
    return np.concatenate([labels, *(np.roll(labels, int(distance), 0) for distance in distances)], 1)


class _Sums:
    """Sums over the positions so far, from which correlations follow."""

    def __init__(self) -> None:
        self.count = 0
        self.x: Tensor | float = 0.0
        self.xx: Tensor | float = 0.0
        self.y: Tensor | float = 0.0
        self.yy: Tensor | float = 0.0
        self.xy: Tensor | float = 0.0

    def add(self, x: Float[Tensor, "N U"], y: Float[Tensor, "N L"]) -> None:
        self.count += len(x)
        self.x, self.xx = self.x + x.sum(0), self.xx + x.square().sum(0)
        self.y, self.yy = self.y + y.sum(0), self.yy + y.square().sum(0)
        self.xy = self.xy + x.mT @ y

    def correlations(self) -> Float[Tensor, "U L"]:
        """Return `cov(x, y) / (std(x) std(y))`; 0 for a unit or a label that is constant."""
        x, y = torch.as_tensor(self.x) / self.count, torch.as_tensor(self.y) / self.count
        covariance = self.xy / self.count - x[:, None] * y
        x_variance, y_variance = self.xx / self.count - x.square(), self.yy / self.count - y.square()
        scale = x_variance.clamp(min=0)[:, None].sqrt() * y_variance.clamp(min=0).sqrt()
        varies = (x_variance > SMALLEST_VARIANCE)[:, None] & (y_variance > SMALLEST_VARIANCE)
        return torch.where(varies, covariance / scale.clamp(min=SMALLEST_VARIANCE), 0.0)


def correlate_halves(states: Iterable[States], labels: Float[Tensor, "R T L"]) -> Halves:
    """Return the correlations over the first half of the rows and over the second half, from the states in
    chunks along the rows."""
    sums: tuple[dict[str, _Sums], dict[str, _Sums]] = {}, {}
    half, start = len(labels) // 2, 0
    for chunk in states:
        for name, values in chunk.items():
            x = bounded_values(name, values).double().cpu()
            y = labels[:, start : start + x.shape[1]]
            for part, rows in zip(sums, (slice(half), slice(half, None)), strict=True):
                part.setdefault(name, _Sums()).add(x[rows].flatten(0, 1), y[rows].flatten(0, 1))
        start += x.shape[1]
    first, second = ({name: each.correlations() for name, each in part.items()} for part in sums)
    return first, second


def find_cells(halves: Halves, probes: Sequence[str]) -> list[Cell]:
    """Return the unit for each probe that occurs in both halves. Labels are as of `with_controls`."""
    search, report = (torch.cat([*part.values()]) for part in halves)
    units = [(name, unit) for name, values in halves[0].items() for unit in range(len(values))]
    best = search.abs().argmax(0)
    reported = report.gather(0, best[None])[0]
    controls = reported.abs().view(-1, len(probes))[1:].mean(0).tolist()
    cells = []
    for number, probe in enumerate(probes):
        if search[:, number].any() and report[:, number].any():
            index = int(best[number])
            r = float(search[index, number]), float(reported[number])
            cells.append(Cell(probe, *units[index], *r, controls[number]))
    return cells


def follow_unit(halves: Halves, layer: str, unit: int, probes: Sequence[str]) -> list[Cell]:
    """Return what one unit follows: each probe that occurs in both halves, with the same numbers as
    `find_cells`, but no search over units."""
    only: Halves = ({layer: halves[0][layer][unit : unit + 1]}, {layer: halves[1][layer][unit : unit + 1]})
    return [cell._replace(unit=unit) for cell in find_cells(only, probes)]
