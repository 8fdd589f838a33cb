"""Which models differ: paired differences over equal seeds, corrected for the number of pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from foveal.metrics.student_t import Mean, mean_interval

SIGNIFICANT = 0.05
"""The probability of telling any pair apart if all models are equal."""
Verdict = Literal["told apart", "indistinguishable"]


@dataclass(frozen=True)
class Difference:
    """The loss of a model minus that of another, over what both were measured on."""

    first: str
    second: str
    mean: Mean
    """The mean difference, its interval, and the probability of such a mean if there is no difference."""
    p_value: float
    """That probability, corrected for the number of pairs."""

    @property
    def verdict(self) -> Verdict:
        return "told apart" if self.p_value < SIGNIFICANT else "indistinguishable"

    def reversed(self) -> "Difference":
        """Return the loss of the second model minus that of the first."""
        value, low, high, p_value = self.mean
        return Difference(self.second, self.first, Mean(-value, -high, -low, p_value), self.p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979): the k-th smallest of n times n - k + 1.

    Whichever hypotheses are true, any of them is rejected with a probability of at most that of the test.
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def paired_differences(losses: Mapping[str, Mapping[int, float]], at_least: int) -> list[Difference]:
    """Return the differences of all pairs of models that have `at_least` seeds in common.

    `losses` are the losses by model and seed. Equal seeds have equal batches, so differences vary less than
    losses.
    """
    means: dict[tuple[str, str], Mean] = {}
    for first, second in combinations(losses, 2):
        seeds = losses[first].keys() & losses[second].keys()
        if len(seeds) >= at_least:
            means[first, second] = mean_interval(
                [losses[first][seed] - losses[second][seed] for seed in seeds]
            )
    return corrected_differences(means)


def corrected_differences(means: Mapping[tuple[str, str], Mean]) -> list[Difference]:
    """Return the differences of pairs, whose p-values are corrected for the number of pairs."""
    corrected = holm([mean.p_value for mean in means.values()])
    return [
        Difference(*names, mean, p_value)
        for (names, mean), p_value in zip(means.items(), corrected, strict=True)
    ]
