"""A codebook of the patches of images: which patches occur how often (a bag of visual words), and how similar
all patches are to each of the codebook."""

from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

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
MIN_SIMILARITY = 0.25
"""The similarity below which a word does not count (a; Coates and Ng 2011 take 0.25 to 0.5)."""
PIXELS_PER_CHUNK = 1 << 16
"""Pixels of the images whose patches are looked up together."""


class PatchCodebook(nn.Module):
    """Patches of `side` x `side` pixels of images, and K words: centers that k-means finds in the patches.

    A patch begins at every `stride`-th pixel. Each patch is normalized to mean 0 and standard deviation 1,
    and all patches are whitened (ZCA; Coates et al. 2011). Before `fit`, the words are random vectors.
    """

    network: ClassVar[str]
    """The name of the network, for errors."""
    mean: Tensor
    whitening: Tensor
    words: Tensor

    def __init__(self, channels: int, words: int, side: int, stride: int):
        super().__init__()
        self.side, size = side, channels * side**2
        self.patches = nn.Unfold(side, stride=stride)
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("whitening", torch.eye(size))
        self.register_buffer("words", torch.randn(words, size))

    @torch.no_grad()
    def fit(self, images: Float[Tensor, "N C H W"]) -> None:
        """Compute the whitening and the words; see `layers.data_dependent_init`.

        Raises: UserError: the images have too few patches.
        """
        points = self._sample_patches(images)
        count = self._word_count(len(points))
        values, vectors = torch.linalg.eigh(torch.cov(points.double().T))
        # Both signs of an eigenvector give the same matrix.
        self.whitening.copy_(
            vectors @ torch.diag((values.clamp(min=0) + WHITENING_EPSILON).rsqrt()) @ vectors.T
        )
        self.mean.copy_(points.mean(0))
        self.words[:count] = kmeans(self._whiten(points), count, KMEANS_ROUNDS)

    def _word_count(self, patches: int) -> int:
        """Return the number of words that can be computed from a number of patches: all.

        Raises: UserError: there are fewer patches.
        """
        if patches < len(self.words):
            raise UserError(
                f"{self.network}: {len(self.words)} words can't be made of {patches} patches: give more "
                "images to train on, or raise data.image.size"
            )
        return len(self.words)

    def _normalize(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B P F"]:
        """Return the patches, each with mean 0 and, unless flat, standard deviation 1."""
        patches = self.patches(images).mT
        patches = patches - patches.mean(-1, keepdim=True)
        return patches / (patches.square().mean(-1, keepdim=True) + MIN_CONTRAST**2).sqrt()

    def _whiten(self, patches: Float[Tensor, "*N F"]) -> Float[Tensor, "*N F"]:
        return (patches - self.mean) @ self.whitening

    def _sample_patches(self, images: Float[Tensor, "N C H W"]) -> Float[Tensor, "M F"]:
        """Return random patches, equally many from each image."""
        per_image, samples = -(-MAX_PATCHES // len(images)), []
        for chunk in self._chunks(images):
            patches = self._normalize(chunk)
            indices = torch.rand(patches.shape[:2], device=patches.device).argsort(1)[:, :per_image]
            samples.append(patches.take_along_dim(indices[:, :, None], 1).flatten(0, 1))
        return torch.cat(samples)

    def _chunks(self, images: Float[Tensor, "B C H W"]) -> tuple[Float[Tensor, "b C H W"], ...]:
        """Return the images in chunks of `PIXELS_PER_CHUNK`."""
        return torch.split(images, max(1, PIXELS_PER_CHUNK // images[0, 0].numel()))


class VisualWords(PatchCodebook):
    """The frequency of each word of a codebook in each quarter of the image (B, K, 2, 2).

    A word stands for the patches whose nearest word it is (Csurka et al. 2004, here with plain patches
    instead of SIFT). The frequencies of an image sum to 1. Counting per quarter is the first level of a
    spatial pyramid (Lazebnik et al. 2006).

    Example:

        >>> words, images = layers.VisualWords(3, words=8, side=6), torch.randn(4, 3, 32, 32)
        >>> words.fit(images)
        >>> y = words(images)
        >>> tuple(y.shape), bool(y.sum((1, 2, 3)).sub(1).abs().max() < 1e-5)
        ((4, 8, 2, 2), True)
    """

    network = "visual-words"

    def __init__(self, channels: int, words: int, side: int):
        super().__init__(channels, words, side, stride=2)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K 2 2"]:
        count = len(self.words)
        with without_autocast(images.device.type):
            codes = [self._word_indices(chunk) for chunk in self._chunks(images)]
        frequencies = code_frequencies(torch.cat(codes).flatten(1), 4 * count, images.dtype)
        return frequencies.view(-1, 2, 2, count).permute(0, 3, 1, 2)

    def _word_indices(self, images: Float[Tensor, "B C H W"]) -> Int[Tensor, "B h w"]:
        """Return the index of each patch's word, offset by the number of words in all earlier quarters."""
        sides = [(size - self.side) // 2 + 1 for size in images.shape[2:]]
        patches = self._whiten(self._normalize(images)).flatten(0, 1)
        lower, right = (torch.arange(side, device=images.device) * 2 // side for side in sides)
        quarter = lower[:, None] * 2 + right
        return nearest_center(patches, self.words).view(-1, *sides) + len(self.words) * quarter


class PatchSimilarities(PatchCodebook):
    """The mean similarity of the patches of each ninth of the image to each word, and to each word's negative
    (B, 2K, 3, 3).

    With a whitened patch x and a word d of length 1, the similarities are `max(0, d x - a)` and
    `max(0, -d x - a)` (Coates and Ng 2011, 3.4). Unlike visual words, all words near a patch count.

    Example:

        >>> similarities, images = layers.PatchSimilarities(3, words=8, side=6), torch.randn(4, 3, 32, 32)
        >>> similarities.fit(images)
        >>> tuple(similarities(images).shape)
        (4, 16, 3, 3)
    """

    network = "patch-similarities"

    def __init__(self, channels: int, words: int, side: int):
        super().__init__(channels, words, side, stride=1)
        self.words.copy_(nn.functional.normalize(self.words))
        self.pool = nn.AdaptiveAvgPool2d(3)

    def _word_count(self, patches: int) -> int:
        """Return the number of words that can be computed. The others stay random, so that few images do.

        Raises: UserError: there is a single patch.
        """
        return min(patches, len(self.words)) if patches > 1 else super()._word_count(patches)

    @torch.no_grad()
    def fit(self, images: Float[Tensor, "N C H W"]) -> None:
        super().fit(images)
        self.words.copy_(nn.functional.normalize(self.words))

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D 3 3"]:
        with without_autocast(images.device.type):
            return torch.cat([self._similarities(chunk) for chunk in self._chunks(images)])

    def _similarities(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D 3 3"]:
        rows, columns = (size - self.side + 1 for size in images.shape[2:])
        products = self._whiten(self._normalize(images)) @ self.words.T
        maps = products.mT.reshape(len(images), -1, rows, columns)
        both = torch.cat([maps, -maps], 1)
        return self.pool(both.sub_(MIN_SIMILARITY).relu_())


def without_autocast(device: str) -> AbstractContextManager[object]:
    """Return a context without autocast, on which words must not depend."""
    # There is no autocast on meta.
    has_autocast = torch.amp.is_autocast_available(device)
    return torch.autocast(device, enabled=False) if has_autocast else nullcontext()
