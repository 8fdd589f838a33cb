"""Series to the features of MiniRocket: fixed convolutions with thresholds from training series."""

from contextlib import nullcontext

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.encoders.make_memory import make_memory
from foveal.layers.blocks.moe import AuxLosses
from foveal.ops import minirocket

SLOTS, MAX_DILATIONS, MAX_CHANNELS = 119, 32, 9
"""Features of a kernel, dilations at most, and channels of a kernel at most, as published."""
MIN_DEVIATION = 1e-3
"""The standard deviation below which a share counts as constant."""
VALUES_PER_CHUNK = 1 << 20
"""Responses that are computed together, which bounds the memory."""


class MiniRocketEncoder(nn.Module):
    """`memory, aux = encoder(values, lengths)`: 9,996 features in a single vector (Dempster et al. 2021).

    A feature is the share of steps at which a convolution of the series is above a threshold. The 84 kernels
    are fixed. Each has up to 32 dilations, and adds up a random set of channels for each dilation. Thresholds
    are quantiles of the convolution of one training series. Features are standardized over the training
    series. Before `fit`, all thresholds are 0. Nothing is learned by gradients.

    Example:

        >>> encoder = layers.MiniRocketEncoder(2)
        >>> series, lengths = torch.randn(4, 30, 2), torch.full((4,), 30)
        >>> encoder.fit(series, lengths)
        >>> memory, aux = encoder(series, lengths)
        >>> tuple(memory.vectors.shape)
        (4, 1, 9996)
    """

    dilations: Tensor
    thresholds: Tensor
    channels: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(self, d_in: int):
        super().__init__()
        self.d_in, self.width = d_in, minirocket.KERNELS * SLOTS
        self.limit, self.aux_names = None, ()
        self.register_buffer("dilations", torch.ones(SLOTS, dtype=torch.int64))
        self.register_buffer("thresholds", torch.zeros(SLOTS, minirocket.KERNELS))
        self.register_buffer("channels", torch.ones(MAX_DILATIONS, minirocket.KERNELS, d_in))
        self.register_buffer("mean", torch.zeros(self.width))
        self.register_buffer("deviation", torch.ones(self.width))

    def input_block(self) -> nn.Module:
        """Return this encoder, whose thresholds are fitted to training series."""
        return self

    @torch.no_grad()
    def fit(self, values: Float[Tensor, "N S C"], lengths: Int[Tensor, " N"]) -> None:
        """Choose dilations, channels and thresholds for training series; see
        `layers.data_dependent_init`."""
        chosen = minirocket.dilations(int(lengths.max()), SLOTS, MAX_DILATIONS)
        self.dilations.copy_(torch.tensor(chosen))
        self.channels.copy_(self._random_channels())
        levels = minirocket.quantiles(minirocket.KERNELS * SLOTS).view(SLOTS, -1)
        for index, (dilation, slots) in enumerate(self._groups()):
            rows = torch.randint(len(values), (minirocket.KERNELS,))
            responses = minirocket.dilated_convolution(values[rows].mT, self.channels[index], dilation)
            begins, ends = minirocket.counted_steps(lengths[rows], dilation, index)
            for kernel in range(minirocket.KERNELS):
                own = responses[kernel, kernel, begins[kernel, kernel] : ends[kernel, kernel]].double()
                own_levels = levels[slots, kernel].to(own.device)
                self.thresholds[slots, kernel] = own.quantile(own_levels).to(self.thresholds.dtype)

        features = self._positive_shares(values, lengths)
        self.mean.copy_(features.mean(0))
        self.deviation.copy_(features.std(0, unbiased=False))

    def forward(
        self, values: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Memory, AuxLosses]:
        if lengths is None:
            lengths = torch.full(values.shape[:1], values.shape[1], device=values.device)
        features = (self._positive_shares(values, lengths) - self.mean) / self.deviation.clamp(
            min=MIN_DEVIATION
        )
        return make_memory(features[:, None], None, "times", "mean"), {}

    def _positive_shares(
        self, values: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B D"]:
        rows = max(1, VALUES_PER_CHUNK // (minirocket.KERNELS * values.shape[1]))
        # The features must not depend on autocast.
        with torch.no_grad(), _without_autocast(values.device.type):
            parts = zip(torch.split(values, rows), torch.split(lengths, rows), strict=True)
            return torch.cat([self._shares_of_rows(*part) for part in parts])

    def _shares_of_rows(
        self, values: Float[Tensor, "B S C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B D"]:
        present = torch.arange(values.shape[1], device=values.device) < lengths[:, None]
        series = values.where(present[:, :, None], 0.0).mT
        features = []
        for index, (dilation, slots) in enumerate(self._groups()):
            responses = minirocket.dilated_convolution(series, self.channels[index], dilation)
            counted = minirocket.counted_steps(lengths, dilation, index)
            shares = minirocket.positive_shares(responses, *counted, self.thresholds[slots].T)
            features.append(shares.flatten(1))
        return torch.cat(features, 1)

    def _groups(self) -> list[tuple[int, slice]]:
        """Return each dilation with the slots that have it."""
        values, counts = torch.unique_consecutive(self.dilations, return_counts=True)
        ends = counts.cumsum(0).tolist()
        return [
            (dilation, slice(end - count, end))
            for dilation, count, end in zip(values.tolist(), counts.tolist(), ends, strict=True)
        ]

    def _random_channels(self) -> Float[Tensor, "G K C"]:
        """Return a random set of channels for each dilation and kernel; small sets are as likely as large."""
        most = min(self.d_in, MAX_CHANNELS)
        shape = (MAX_DILATIONS, minirocket.KERNELS, 1)
        sizes = (2 ** (torch.rand(shape) * torch.log2(torch.tensor(most + 1.0)))).floor().clamp(max=most)
        ranks = torch.rand(*shape[:2], self.d_in).argsort(2).argsort(2)
        return (ranks < sizes).float()


def _without_autocast(device: str) -> torch.autocast | nullcontext[None]:
    has_autocast = torch.amp.is_autocast_available(device)  # not on meta
    return torch.autocast(device, enabled=False) if has_autocast else nullcontext()
