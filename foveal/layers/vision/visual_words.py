"""A bag of visual words: how often each patch of a codebook occurs in an image, regardless of position."""

from contextlib import nullcontext

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.ops.kmeans import kmeans, nearest_center
from foveal.ops.vision.histogram import code_frequencies

MIN_CONTRAST, WHITENING_EPSILON = 0.05, 0.1
"""The standard deviation below which a patch counts as flat, in standard deviations of pixels; and the number
added to the variances before whitening. Coates et al. 2011 use about the same: 0.1 and, for levels up to 255,
the root of 10."""
MAX_PATCHES, KMEANS_ROUNDS = 1 << 15, 10
"""Patches at most that the words are computed from, and the rounds of k-means."""
PIXELS_PER_CHUNK = 1 << 16
"""Pixels of the images whose patches are looked up together."""


class VisualWords(nn.Module):
    """The frequency of each word of a codebook in each quarter of the image (B, K, 2, 2).

    A word stands for the patches of `side` x `side` pixels whose nearest word it is (Csurka et al. 2004, here
    with plain patches instead of SIFT). A patch begins at every second pixel. Each patch is normalized to
    mean 0 and standard deviation 1, and all patches are whitened (ZCA; Coates et al. 2011). The frequencies
    of an image sum to 1. Counting per quarter is the first level of a spatial pyramid (Lazebnik et al. 2006).
    The words are the centers that k-means finds in patches of training images. Before `fit`, the words are
    random vectors.
    """

    mean: Tensor
    whitening: Tensor
    words: Tensor

    def __init__(self, channels: int, words: int, side: int):
        super().__init__()
        self.side, size = side, channels * side**2
        self.patches = nn.Unfold(side, stride=2)
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("whitening", torch.eye(size))
        self.register_buffer("words", torch.randn(words, size))

    @torch.no_grad()
    def fit(self, images: Float[Tensor, "N C H W"]) -> None:
        """Compute the whitening and the words; see `layers.data_dependent_init`.

        Raises: UserError: the images have fewer patches than there are words.
        """
        points = self._sample_patches(images)
        if len(points) < len(self.words):
            raise UserError(
                f"visual-words: {len(self.words)} words can't be made of {len(points)} patches: give more "
                "images to train on, or raise data.image.size"
            )
        values, vectors = torch.linalg.eigh(torch.cov(points.double().T))
        # Both signs of an eigenvector give the same matrix.
        self.whitening.copy_(
            vectors @ torch.diag((values.clamp(min=0) + WHITENING_EPSILON).rsqrt()) @ vectors.T
        )
        self.mean.copy_(points.mean(0))
        self.words.copy_(kmeans(self._whiten(points), len(self.words), KMEANS_ROUNDS))

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K 2 2"]:
        size = max(1, PIXELS_PER_CHUNK // images[0, 0].numel())
        count, device = len(self.words), images.device.type
        has_autocast = torch.amp.is_autocast_available(device)  # not on meta
        # Words must not depend on autocast.
        with torch.autocast(device, enabled=False) if has_autocast else nullcontext():
            codes = [
                self._word_indices(images[start : start + size]) for start in range(0, len(images), size)
            ]
        frequencies = code_frequencies(torch.cat(codes).flatten(1), 4 * count, images.dtype)
        return frequencies.view(-1, 2, 2, count).permute(0, 3, 1, 2)

    def _word_indices(self, images: Float[Tensor, "B C H W"]) -> Int[Tensor, "B h w"]:
        """Return the index of each patch's word, offset by the number of words in all earlier quarters."""
        sides = [(size - self.side) // 2 + 1 for size in images.shape[2:]]
        patches = self._whiten(self._normalize(images)).flatten(0, 1)
        lower, right = (torch.arange(side, device=images.device) * 2 // side for side in sides)
        quarter = lower[:, None] * 2 + right
        return nearest_center(patches, self.words).view(-1, *sides) + len(self.words) * quarter

    def _normalize(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B P F"]:
        """Return the patches, each with mean 0 and, unless flat, standard deviation 1."""
        patches = self.patches(images).mT
        patches = patches - patches.mean(-1, keepdim=True)
        return patches / (patches.square().mean(-1, keepdim=True) + MIN_CONTRAST**2).sqrt()

    def _whiten(self, patches: Float[Tensor, "*N F"]) -> Float[Tensor, "*N F"]:
        return (patches - self.mean) @ self.whitening

    def _sample_patches(self, images: Float[Tensor, "N C H W"]) -> Float[Tensor, "M F"]:
        """Return random patches, equally many from each image."""
        per_image, size = -(-MAX_PATCHES // len(images)), max(1, PIXELS_PER_CHUNK // images[0, 0].numel())
        samples = []
        for start in range(0, len(images), size):
            patches = self._normalize(images[start : start + size])
            indices = torch.rand(patches.shape[:2], device=patches.device).argsort(1)[:, :per_image]
            samples.append(patches.take_along_dim(indices[:, :, None], 1).flatten(0, 1))
        return torch.cat(samples)
