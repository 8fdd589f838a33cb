"""The interface of modules that compute some initial weights from images, such as a codebook of patches."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class DataDependentInit(Protocol):
    """A model, or the first block of an image encoder, that computes some of its weights from images."""

    def fit(self, images: Float[Tensor, "N C H W"]) -> None:
        """Fill buffers, frozen weights or initial weights from images of the training split.

        The images are standardized and not augmented: center crops, as in evaluation. `fit` is called once,
        before the first step of a new run, on the device of the weights. Random choices use torch's
        generator, which the run's seed sets.
        """
