"""The nearest neighbour, and MiniRocket with a ridge classifier.

MiniRocket: Dempster, Schmidt and Webb (2021), https://arxiv.org/abs/2012.08791; several channels as in the
authors' code, with random subsets of channels.
"""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.ten_lines.scores import Score, accuracy

Array = NDArray[Any]
KERNEL_LENGTH, TAPS, FEATURES, MOST_DILATIONS = 9, 3, 9996, 32
GOLDEN_RATIO = (1 + 5**0.5) / 2


def _read(path: Path) -> tuple[list[Array], list[str]]:
    """Return series (T, C) and labels of a .ts file."""
    body = path.read_text(encoding="utf-8").split("@data", 1)[1].strip().splitlines()
    fields = [line.strip().split(":") for line in body]
    series = [np.array([channel.split(",") for channel in row[:-1]], np.float32).T for row in fields]
    return series, [row[-1] for row in fields]


def _resize(series: list[Array], length: int) -> Array:
    """Return the series as (N, C, length), each stretched to the same length."""
    places = np.linspace(0, 1, length)
    rows = [[np.interp(places, np.linspace(0, 1, len(one)), channel) for channel in one.T] for one in series]
    return np.array(rows, np.float32)


class MiniRocket:
    """Shares of positive values of 84 kernels at many dilations and biases, as features."""

    def __init__(self, seed: int = 0):
        self.random = np.random.default_rng(seed)
        self.plan: list[tuple[int, int, Array, Array]] = []

    def _dilations(self, length: int) -> dict[int, int]:
        """Return the numbers of biases by dilation."""
        per_kernel = FEATURES // 84
        most = min(per_kernel, MOST_DILATIONS)
        longest = np.log2((length - 1) / (KERNEL_LENGTH - 1))
        values, counts = np.unique(np.logspace(0, longest, most, base=2).astype(int), return_counts=True)
        counts = (counts * (per_kernel / most)).astype(int)
        for i in range(per_kernel - counts.sum()):
            counts[i % len(counts)] += 1
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    def _convolve(self, x: Array, dilation: int) -> Iterator[Array]:
        """Yield x (N, C, T) convolved with each kernel: -1, and 2 at three of nine taps."""
        reach = dilation * (KERNEL_LENGTH // 2)
        padded = np.pad(x, ((0, 0), (0, 0), (reach, reach)))
        shifts = [padded[..., i * dilation : i * dilation + x.shape[2]] for i in range(KERNEL_LENGTH)]
        base = -np.sum(shifts, axis=0)
        for taps in combinations(range(KERNEL_LENGTH), TAPS):
            yield base + 3 * (shifts[taps[0]] + shifts[taps[1]] + shifts[taps[2]])

    def fit(self, x: Array) -> "MiniRocket":
        quantile = 0
        for dilation, biases in self._dilations(x.shape[2]).items():
            for kernel, full in enumerate(self._convolve(x, dilation)):
                size = int(2 ** self.random.uniform(0, np.log2(min(x.shape[1], 9) + 1)))
                channels = self.random.choice(x.shape[1], size, replace=False)
                example = full[self.random.integers(len(x))][channels].sum(0)
                shares = (np.arange(quantile + 1, quantile + biases + 1) * GOLDEN_RATIO) % 1
                quantile += biases
                self.plan.append((dilation, kernel, channels, np.quantile(example, shares)))
        return self

    def transform(self, x: Array) -> Array:
        features: list[Array] = []
        plan = iter(self.plan)
        for dilation in dict.fromkeys(entry[0] for entry in self.plan):
            reach = dilation * (KERNEL_LENGTH // 2)
            for kernel, full in enumerate(self._convolve(x, dilation)):
                _, _, channels, biases = next(plan)
                out = full[:, channels].sum(1)
                # Every other kernel of every other dilation is without padding.
                if (kernel + dilation) % 2 and out.shape[1] > 2 * reach:
                    out = out[:, reach : out.shape[1] - reach]
                features.extend((out > bias).mean(1) for bias in biases)
        return np.array(features, np.float32).T


def nearest_and_rocket(train: Path, test: Path) -> dict[str, Score]:
    """Return the accuracies of the nearest neighbour and of MiniRocket with a ridge classifier."""
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    (series, labels), (test_series, test_labels) = _read(train), _read(test)
    length = max(KERNEL_LENGTH + 1, *(len(one) for one in series))
    x, test_x = _resize(series, length), _resize(test_series, length)
    mean, deviation = x.mean((0, 2), keepdims=True), x.std((0, 2), keepdims=True) + 1e-8
    x, test_x = (x - mean) / deviation, (test_x - mean) / deviation
    nearest = KNeighborsClassifier(1).fit(x.reshape(len(x), -1), labels)
    rocket = MiniRocket().fit(x)
    ridge = make_pipeline(StandardScaler(with_mean=False), RidgeClassifierCV(np.logspace(-3, 3, 10)))
    ridge.fit(rocket.transform(x), labels)
    return {
        "nearest neighbour": accuracy(nearest.predict(test_x.reshape(len(test_x), -1)), test_labels),
        "MiniRocket + ridge": accuracy(ridge.predict(rocket.transform(test_x)), test_labels),
    }
