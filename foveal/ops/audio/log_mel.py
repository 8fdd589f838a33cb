"""Log-mel frames of a recording: the power in each frequency band, a hundred times per second."""

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from foveal.core.errors import UserError

WINDOW_SECONDS, HOP_SECONDS = 0.025, 0.010
"""Seconds in a frame, and from one frame to the next."""
MIN_POWER = 1e-10
"""Lower bound of the power before the logarithm. A rounding error of 16 bits has about 1e-8 in a band."""


def log_mel(samples: Float[Tensor, " N"], rate: int, bins: int) -> Float[Tensor, "S F"]:
    """Return log-mel frames, `log(max(sum_k M_fk |X_sk|^2, 1e-10))` with F = `bins` bands.

    These are the features of Davis and Mermelstein (1980) without the cosine transform. X_s is the Fourier
    transform of the W = 0.025 `rate` samples from sample 0.01 `rate` s on, under Hann's window. M are the
    `mel_filters`. There are as many frames as fit in the samples. Fewer than W samples are padded with zeros
    to one frame.
    """
    window, hop = window_samples(rate), round(HOP_SECONDS * rate)
    samples = F.pad(samples, (0, max(0, window - len(samples))))
    hann = torch.hann_window(window, dtype=samples.dtype, device=samples.device)
    spectrum = torch.stft(samples, window, hop, window=hann, center=False, return_complex=True)  # (K, S)
    power = spectrum.real.square() + spectrum.imag.square()
    filters = mel_filters(bins, rate, window).to(power)
    return (filters @ power).clamp(min=MIN_POWER).log().T


def window_samples(rate: int) -> int:
    """Return the number of samples in a frame."""
    return round(WINDOW_SECONDS * rate)


@cache
def mel_filters(bins: int, rate: int, window: int) -> Float[Tensor, "F K"]:
    """Return the mel filter bank (F, window // 2 + 1): overlapping triangles of height 1.

    The triangles are equally wide in mel, from 0 to half the `rate`, with `m = 2595 log10(1 + f / 700)` and f
    in Hz (O'Shaughnessy 1987, p. 150).

    Raises: UserError: a triangle is so narrow that it contains no frequency of the transform.
    """
    half = 2595 * torch.tensor(1 + rate / 2 / 700, dtype=torch.float64).log10()
    corners = 700 * (10 ** (torch.linspace(0, 1, bins + 2, dtype=torch.float64) * half / 2595) - 1)
    left, top, right = (corners[i : i + bins, None] for i in range(3))
    frequencies = torch.arange(window // 2 + 1, dtype=torch.float64) * rate / window
    filters = torch.minimum((frequencies - left) / (top - left), (right - frequencies) / (right - top))
    filters = filters.clamp(min=0)
    if not filters.any(1).all():
        raise UserError(
            f"{bins} mel bands are too many for recordings of {rate} samples per second: "
            "some lie between two frequencies of a frame; use fewer"
        )
    return filters
