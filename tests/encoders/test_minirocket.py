"""MiniRocket: its features by their definition, fitted to training series, and blind to padding."""

import numpy as np
import pytest
import torch

from foveal.encoders.minirocket import SLOTS, MiniRocketEncoder
from foveal.ops import minirocket
from foveal.ops.jit.dispatch import record_paths, reference_only


def fitted(channels: int = 2, steps: int = 40) -> tuple[MiniRocketEncoder, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    values, lengths = torch.randn(12, steps, channels).cumsum(1), torch.randint(3, steps + 1, (12,))
    lengths[0] = steps
    encoder = MiniRocketEncoder(channels)
    encoder.fit(values, lengths)
    return encoder, values, lengths


def share_by_definition(
    series: np.ndarray, weights: np.ndarray, dilation: int, threshold: float, inside: bool
) -> float:
    """Return a feature of one series (S,) by loops."""
    steps, margin, above, count = len(series), 4 * dilation, 0, 0
    inside = inside and steps > 2 * margin
    for step in range(margin, steps - margin) if inside else range(steps):
        total = 0.0
        for tap in range(9):
            place = step + (tap - 4) * dilation
            if 0 <= place < steps:
                total += float(weights[tap]) * float(series[place])
        above, count = above + (total > threshold), count + 1
    return above / count


def test_kernels_are_all_orders_of_three_heavy_weights() -> None:
    weights = minirocket.kernels()
    assert len({tuple(row.tolist()) for row in weights}) == 84
    assert bool(weights.sum(1).eq(0).all())


def test_features_are_shares_of_steps_above_thresholds() -> None:
    encoder, values, lengths = fitted()
    features = encoder._positive_shares(values, lengths)
    groups, kernels = encoder._groups(), minirocket.kernels().numpy()
    assert len({dilation for dilation, _ in groups}) > 2
    start = 0
    for index, (dilation, slots) in enumerate(groups):
        count = slots.stop - slots.start
        for kernel in (0, 1, 50):
            for row in (0, 3):
                chosen = encoder.channels[index, kernel].bool()
                series = values[row, : lengths[row]][:, chosen].sum(1).numpy()
                threshold = float(encoder.thresholds[slots.start, kernel])
                inside = (kernel + index) % 2 == 1
                expected = share_by_definition(series, kernels[kernel], dilation, threshold, inside)
                found = float(features[row, start + kernel * count])
                assert found == pytest.approx(expected, abs=1.01 / len(series))  # a tie may round either way
        start += 84 * count
    assert start == encoder.width == 84 * SLOTS


def test_thresholds_come_from_training_series() -> None:
    encoder, values, lengths = fitted()
    features = encoder._positive_shares(values, lengths)
    assert 0.3 < float(features.mean()) < 0.7
    assert bool(encoder.channels.sum(2).ge(1).all())
    spread = features.std(0)
    assert float(spread.gt(0).float().mean()) > 0.9
    standardized = encoder(values, lengths)[0].summary
    torch.testing.assert_close(standardized.mean(0), torch.zeros(encoder.width), rtol=0, atol=1e-4)
    varied = standardized.std(0, unbiased=False)[spread > 0.01]
    torch.testing.assert_close(varied, torch.ones(len(varied)), rtol=1e-3, atol=1e-3)


def test_kernel_and_reference_are_equal() -> None:
    encoder, values, lengths = fitted()
    with record_paths() as paths:
        fast = encoder(values, lengths)[0].summary
    with reference_only():
        assert torch.equal(fast, encoder(values, lengths)[0].summary)
    assert "positive_shares:kernel" in paths


def test_padding_changes_nothing() -> None:
    encoder, values, lengths = fitted()
    for row in (1, 5):
        alone = encoder(values[row : row + 1, : lengths[row]])[0].summary
        longer = torch.cat([values, torch.full((12, 7, 2), 99.0)], 1)
        torch.testing.assert_close(encoder(longer, lengths)[0].summary[row], alone[0])


@pytest.mark.parametrize("steps", [1, 2, 9])
def test_short_series_have_features(steps: int) -> None:
    encoder = MiniRocketEncoder(1)
    values = torch.randn(4, steps, 1)
    encoder.fit(values, torch.full((4,), steps))
    assert bool(encoder(values)[0].summary.isfinite().all())


def test_a_seed_gives_the_same_fit() -> None:
    first, second = fitted()[0].state_dict(), fitted()[0].state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
