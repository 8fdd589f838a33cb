"""What begins from images: a codebook of patches, a whitening, a canvas."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class DataDependentInit(Protocol):
    """The first block of an encoder of images, or a model, some of whose weights are computed at first."""

    def fit(self, images: Float[Tensor, "N C H W"]) -> None:
        """Fill its buffers, frozen or first weights from images of the training part.

        They are standardised and not augmented: centres, as in evaluation. Called once, before a new run's
        first step, on the device of the weights. Random choices are torch's, which the run's seed sets.
        """
