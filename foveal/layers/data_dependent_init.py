"""The interface of modules that compute some initial weights from training data, such as a codebook."""

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class DataDependentInit(Protocol):
    """A model, or the first block of an encoder, that computes some of its weights from sources."""

    def fit(self, *inputs: Tensor) -> None:
        """Fill buffers, frozen weights or initial weights from sources of the training split.

        The inputs are those that the encoder reads: standardized images (N, C, H, W) without augmentation,
        center crops as in evaluation; or padded series or tokens with their lengths. `fit` is called once,
        before the first step of a new run, on the device of the weights. Random choices use torch's
        generator, which the run's seed sets.
        """
