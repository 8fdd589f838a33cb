"""Loss scaling for float16, in which small gradients are zero (Micikevicius et al. 2018, section 3.2)."""

from dataclasses import dataclass

from foveal.core.runtime import Precision

FIRST_FACTOR, LARGEST_FACTOR, SMALLEST_FACTOR = 2.0**16, 2.0**24, 1.0
STEPS_UNTIL_GROWTH = 2000


@dataclass
class LossScaling:
    """A factor of the loss, by which the gradients are divided after the backward pass.

    The factor is a power of two, so it changes no bit of a gradient that neither overflows nor underflows.
    """

    factor: float = FIRST_FACTOR
    steps: int = 0
    """Steps since the factor has changed."""

    def shrink(self) -> bool:
        """Halve the factor after an overflow. Return False if the factor is the smallest already."""
        if self.factor <= SMALLEST_FACTOR:
            return False
        self.factor, self.steps = self.factor / 2, 0
        return True

    def count_step(self) -> None:
        """Count a step without overflow. After many, the factor doubles."""
        self.steps += 1
        if self.steps == STEPS_UNTIL_GROWTH and self.factor < LARGEST_FACTOR:
            self.factor, self.steps = 2 * self.factor, 0


def make_loss_scaling(precision: Precision) -> LossScaling | None:
    """Return the loss scaling that a precision needs, or None."""
    return LossScaling() if precision == "float16" else None
