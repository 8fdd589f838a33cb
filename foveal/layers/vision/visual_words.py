"""A bag of visual words: which patches an image is made of, whatever their order."""

from contextlib import nullcontext

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.ops.kmeans import kmeans, nearest_center
from foveal.ops.vision.histogram import code_frequencies

MIN_CONTRAST, WHITENING_EPSILON = 0.05, 0.1
"""Below which a patch's deviation counts as none, in standard deviations of pixels; and what is added to the
variances before whitening. Coates et al. 2011 have about these, 0.1 and, on levels to 255, the root of 10."""
MAX_PATCHES, KMEANS_ROUNDS = 1 << 15, 10
"""As many patches at most the words are made of, in so many rounds."""
PIXELS_PER_CHUNK = 1 << 16
"""Of the images whose patches are looked up at a time."""


class VisualWords(nn.Module):
    """How often each word of a codebook is seen, in each quarter of the image (B, K, 2, 2).

    A word stands for the patches of `side` x `side` pixels that are nearer to it than to any other (Csurka
    et al. 2004, with plain patches instead of SIFT). Patches begin at every second pixel; of each the mean
    is taken off, it is divided by its deviation, and all are whitened (ZCA; Coates et al. 2011). The numbers
    of an image sum to 1. Counting by quarters is the first level of a spatial pyramid (Lazebnik et al. 2006).
    The words are the centres that k-means finds in patches of training images; until `fit`, random vectors.
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
        """See `layers.data_dependent_init`; UserError if the images have fewer patches than words."""
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
        many = max(1, PIXELS_PER_CHUNK // images[0, 0].numel())
        count, device = len(self.words), images.device.type
        known = torch.amp.is_autocast_available(device)  # not on meta
        with torch.autocast(device, enabled=False) if known else nullcontext():  # so words don't depend on it
            pieces = [self._word_indices(images[at : at + many]) for at in range(0, len(images), many)]
        found = code_frequencies(torch.cat(pieces).flatten(1), 4 * count, images.dtype)
        return found.view(-1, 2, 2, count).permute(0, 3, 1, 2)

    def _word_indices(self, images: Float[Tensor, "B C H W"]) -> Int[Tensor, "B h w"]:
        """The number of each patch's word, and after those of one quarter come those of the next."""
        sides = [(size - self.side) // 2 + 1 for size in images.shape[2:]]
        patches = self._whiten(self._normalize(images)).flatten(0, 1)
        below, right = (torch.arange(side, device=images.device) * 2 // side for side in sides)
        quarter = below[:, None] * 2 + right
        return nearest_center(patches, self.words).view(-1, *sides) + len(self.words) * quarter

    def _normalize(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B P F"]:
        """The patches, each of mean 0 and, where there is anything to see, of deviation 1."""
        patches = self.patches(images).mT
        patches = patches - patches.mean(-1, keepdim=True)
        return patches / (patches.square().mean(-1, keepdim=True) + MIN_CONTRAST**2).sqrt()

    def _whiten(self, patches: Float[Tensor, "*N F"]) -> Float[Tensor, "*N F"]:
        return (patches - self.mean) @ self.whitening

    def _sample_patches(self, images: Float[Tensor, "N C H W"]) -> Float[Tensor, "M F"]:
        """As many of each image."""
        each, many = -(-MAX_PATCHES // len(images)), max(1, PIXELS_PER_CHUNK // images[0, 0].numel())
        found = []
        for at in range(0, len(images), many):
            patches = self._normalize(images[at : at + many])
            chosen = torch.rand(patches.shape[:2], device=patches.device).argsort(1)[:, :each]
            found.append(patches.take_along_dim(chosen[:, :, None], 1).flatten(0, 1))
        return torch.cat(found)
