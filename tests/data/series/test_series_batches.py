"""Training batches of series: every series once, of equal sizes, changed as written, a pure function."""

from typing import Any

import numpy as np
import pytest
import torch

from foveal.config import DataConfig, SeriesConfig
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.series.series_source import SeriesSource

COUNT, CHANNELS = 37, 2


def examples(steps: int | None = None) -> Examples:
    """Series of 1 to 9 steps, or of `steps`, each with its number as the label."""
    chance = np.random.default_rng(0)
    rows = [chance.normal(size=(steps or 1 + row % 9, CHANNELS)).astype(np.float32) for row in range(COUNT)]
    return Examples({"source": RaggedArray.from_rows(rows), "label": np.arange(COUNT)})


def batches(data: Examples, seed: int = 0, batch_tokens: int = 20, **series: Any) -> Any:
    config = DataConfig(batch_tokens=batch_tokens, series=SeriesConfig(**series))
    return SeriesSource().train_batches(data, config, seed)


@pytest.mark.parametrize("series", [{"batch_size": 8}, {"jitter": 0.1}, {"batch_size": 8, "scaling": 0.1}])
def test_every_series_once_and_a_pure_function(series: dict[str, Any]) -> None:
    data = examples()
    one, again, other = batches(data, **series), batches(data, **series), batches(data, seed=1, **series)
    orders = []
    for epoch in range(3):
        labels = [one.batch(epoch, index).columns["label"] for index in range(one.per_epoch)]
        orders.append(torch.cat(labels).tolist())
        assert sorted(orders[-1]) == [*range(COUNT)]
    assert orders[0] != orders[1]
    for index in reversed(range(one.per_epoch)):  # in any order
        first, second = one.batch(2, index), again.batch(2, index)
        assert torch.equal(first.columns["source"], second.columns["source"])
        assert torch.equal(first.lengths["source"], second.lengths["source"])
        assert first.tokens == int(first.lengths["source"].sum())
    assert not all(
        torch.equal(one.batch(0, index).columns["label"], other.batch(0, index).columns["label"])
        for index in range(min(one.per_epoch, other.per_epoch))
    )


@pytest.mark.parametrize(("batch_size", "sizes"), [(8, {7, 8}), (36, {18, 19}), (37, {37}), (1000, {37})])
def test_sizes_differ_by_one_however_long_the_series_are(batch_size: int, sizes: set[int]) -> None:
    """So no last batch is too small for a norm, and long series are not alone in a batch."""
    long = batches(examples(steps=50), batch_size=batch_size)
    assert {len(long.batch(0, index).rows) for index in range(long.per_epoch)} == sizes
    assert {len(batches(examples(steps=50)).batch(0, 0).rows)} == {1}


def test_a_series_is_changed_alike_in_any_batch() -> None:
    """The change depends on seed, epoch and series; the padding stays zero."""
    data = examples()
    change: dict[str, Any] = {"jitter": 0.3, "scaling": 0.2}
    seen: list[dict[int, torch.Tensor]] = []
    for size in (4, 16):
        given, found = batches(data, batch_size=size, **change), {}
        for index in range(given.per_epoch):
            batch = given.batch(1, index)
            for row, values, n in zip(
                batch.rows.tolist(), batch.columns["source"], batch.lengths["source"].tolist(), strict=True
            ):
                assert values[n:].eq(0).all()
                found[row] = values[:n]
        seen.append(found)
    assert all(torch.equal(seen[0][row], seen[1][row]) for row in range(COUNT))
    source: Any = data.columns["source"]
    assert not any(np.array_equal(seen[0][row].numpy(), source[row]) for row in range(COUNT))


def test_noise_and_factors_have_the_deviations_that_are_set() -> None:
    data = examples(steps=400)
    plain: Any = data.columns["source"]
    noisy, scaled = batches(data, batch_size=COUNT, jitter=0.3), batches(data, batch_size=COUNT, scaling=0.2)
    batch = noisy.batch(0, 0)
    noise = batch.columns["source"] - torch.from_numpy(plain.padded(batch.rows.numpy())[0])
    assert abs(float(noise.std()) - 0.3) < 0.01
    assert abs(float(noise.mean())) < 0.01
    logs = []
    for epoch in range(20):
        batch = scaled.batch(epoch, 0)
        ratio = batch.columns["source"] / torch.from_numpy(plain.padded(batch.rows.numpy())[0])
        torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio))  # one factor for a channel
        logs.append(ratio[:, 0].log())
    factors = torch.stack(logs)
    assert abs(float(factors.std()) - 0.2) < 0.02
    assert abs(float(factors.mean())) < 0.02
    assert not torch.allclose(factors[..., 0], factors[..., 1], atol=0.01)
