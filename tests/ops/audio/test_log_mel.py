"""Log-mel frames against the definition, written out with NumPy's transform and one triangle at a time."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.ops.audio.log_mel import log_mel, mel_filters


def triangle(f: float, left: float, top: float, right: float) -> float:
    if left < f <= top:
        return (f - left) / (top - left)
    return (right - f) / (right - top) if top < f < right else 0.0


def by_definition(samples: NDArray[np.float64], rate: int, bins: int) -> NDArray[np.float64]:
    window, hop = rate * 25 // 1000, rate // 100
    samples = np.append(samples, np.zeros(max(0, window - len(samples))))
    mel = lambda f: 2595 * math.log10(1 + f / 700)  # noqa: E731
    hertz = lambda m: 700 * (10 ** (m / 2595) - 1)  # noqa: E731
    corners = [hertz(mel(rate / 2) * i / (bins + 1)) for i in range(bins + 2)]
    frames = []
    for start in range(0, len(samples) - window + 1, hop):
        hann = [0.5 - 0.5 * math.cos(2 * math.pi * n / window) for n in range(window)]
        power = np.abs(np.fft.rfft(samples[start : start + window] * hann)) ** 2
        frame = []
        for left, top, right in zip(corners, corners[1:], corners[2:], strict=False):
            total = sum(p * triangle(k * rate / window, left, top, right) for k, p in enumerate(power))
            frame.append(math.log(max(total, 1e-10)))
        frames.append(frame)
    return np.array(frames)


@pytest.mark.parametrize(("rate", "bins"), [(8000, 40), (16000, 80), (11000, 23)])
@pytest.mark.parametrize("size", [1, 150, 1000, 2345])
def test_equals_the_definition(rate, bins, size):
    samples = np.random.default_rng(size).normal(size=size) * 0.1
    expected = by_definition(samples, rate, bins)
    found = log_mel(torch.from_numpy(samples), rate, bins)
    assert found.shape == expected.shape
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=1e-9, atol=1e-9)
    single = log_mel(torch.from_numpy(samples.astype(np.float32)), rate, bins)
    torch.testing.assert_close(single.double(), found, rtol=0, atol=2e-3)


def test_one_frame_each_hop():
    """Window 200, hop 80 at 8 kHz: less than a window is one frame, and a rest at the end makes none."""
    for size, frames in ((1, 1), (199, 1), (200, 1), (279, 1), (280, 2), (8000, 98)):
        assert log_mel(torch.randn(size), 8000, 20).shape == (frames, 20)


def test_a_tone_is_loudest_in_its_band_and_silence_is_the_floor():
    rate, bins = 16000, 40
    tops = 700 * (10 ** (torch.arange(1, bins + 1) / (bins + 1) * math.log10(1 + rate / 1400)) - 1)
    for band in (5, 17, 33):
        tone = torch.sin(2 * math.pi * tops[band] * torch.arange(rate) / rate)
        assert log_mel(tone, rate, bins).argmax(1).eq(band).all()
    floor = log_mel(torch.zeros(1000), rate, bins)
    torch.testing.assert_close(floor, torch.full_like(floor, math.log(1e-10)))


def test_neighbouring_triangles_add_up_to_one():
    filters = mel_filters(40, 16000, 400)
    total = filters.sum(0)
    first, last = int(filters[0].argmax()), int(filters[-1].argmax())
    torch.testing.assert_close(total[first + 1 : last], torch.ones(last - first - 1, dtype=torch.float64))


def test_too_many_bands_are_refused():
    with pytest.raises(
        UserError, match="120 mel bands are too many for recordings of 8000 samples per second"
    ):
        log_mel(torch.randn(1000), 8000, 120)
