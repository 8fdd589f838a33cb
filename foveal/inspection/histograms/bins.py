"""Histograms with edges at powers of a number, on both sides of zero, the same for all steps."""

from dataclasses import dataclass

import torch
from torch import Tensor

BINS = 64
"""Bins of a histogram, half of them below zero."""


@dataclass(frozen=True)
class SignedBins:
    """Bins whose edges are 0 and ±base^k for k from `lowest` to `lowest` + 30.

    A bin has its lower edge in it. The innermost bins reach to zero, the outermost to infinity.
    """

    base: int
    lowest: int

    def edges(self) -> list[float]:
        """Return the 63 edges between the bins. All are exact in float32."""
        positive = [float(self.base) ** (self.lowest + k) for k in range(BINS // 2 - 1)]
        return [*(-edge for edge in reversed(positive)), 0.0, *positive]

    def counts(self, x: Tensor) -> Tensor:
        """Return the number of finite values other than zero in each of the 64 bins."""
        values = x[x.isfinite() & (x != 0)]
        edges = torch.tensor(self.edges(), device=x.device)
        return torch.bincount(torch.bucketize(values, edges, right=True), minlength=BINS)


OUTPUT_BINS = SignedBins(2, -20)
"""From 1e-6 to 1,024, in factors of two."""
GRADIENT_BINS = SignedBins(4, -25)
"""From 1e-15 to 1,024, in factors of four."""
