"""The head with a norm against its equation."""

import torch

from foveal.heads.norm_classification import NormClassificationHead
from tests.support.grid_memory import memory_of


def test_the_mean_is_normed_then_dropped_out():
    head = NormClassificationHead(400, 3, dropout=0.5).double()
    x = torch.randn(2, 400, 2, 3, dtype=torch.float64)
    mean = x.mean((2, 3))
    centred = mean - mean.mean(1, keepdim=True)
    unit = centred / (centred.square().mean(1, keepdim=True) + 1e-6).sqrt()
    features, _ = head.eval()(memory_of(x))
    torch.testing.assert_close(features, unit, rtol=1e-10, atol=1e-10)
    features, _ = head.train()(memory_of(x))
    kept = features.ne(0)
    assert 0.4 < float(kept.double().mean()) < 0.6
    torch.testing.assert_close(features, (2 * unit).where(kept, 0.0), rtol=1e-10, atol=1e-10)
