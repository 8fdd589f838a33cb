"""Clusters: each round against its definition, and what chance the start gives each point."""

import numpy as np
import pytest
import torch
from torch import Tensor

from foveal.ops import kmeans as module
from foveal.ops.kmeans import kmeans, kmeans_plus_plus, nearest_center


@pytest.fixture
def points() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(300, 5, dtype=torch.float64)


def rounds_by_definition(points: Tensor, centers: Tensor, rounds: int) -> Tensor:
    x, c = points.numpy(), centers.numpy().copy()
    for _ in range(rounds):
        labels = [int(np.argmin([((p - q) ** 2).sum() for q in c])) for p in x]
        c = np.array([x[np.equal(labels, k)].mean(0) if k in labels else c[k] for k in range(len(c))])
    return torch.from_numpy(c)


def test_rounds(points, monkeypatch):
    start = points[:7] * torch.tensor([1.0, 1, 1, 1, 1, 1, 100])[:, None]  # the last has no point
    monkeypatch.setattr(module, "kmeans_plus_plus", lambda points, count: start.clone())
    found = kmeans(points, 7, rounds=4)
    torch.testing.assert_close(found, rounds_by_definition(points, start, 4))
    assert torch.equal(found[6], start[6])


def test_as_scikit_learn(points, monkeypatch):
    cluster = pytest.importorskip("sklearn.cluster")
    start = points[:6].clone()
    monkeypatch.setattr(module, "kmeans_plus_plus", lambda points, count: start)
    theirs = cluster.KMeans(6, init=start.numpy(), n_init=1, max_iter=100, tol=0).fit(points.numpy())
    torch.testing.assert_close(kmeans(points, 6, 100), torch.from_numpy(theirs.cluster_centers_))


def test_many_points_are_looked_up_piece_by_piece(points, monkeypatch):
    whole = nearest_center(points, points[:9])
    monkeypatch.setattr(module, "POINTS_PER_CHUNK", 70)
    assert torch.equal(nearest_center(points, points[:9]), whole)


def test_far_clusters_are_found():
    torch.manual_seed(0)
    middles = torch.tensor([[0.0, 0], [100, 0], [0, 100], [100, 100]])
    points = (middles[:, None] + torch.randn(4, 50, 2)).flatten(0, 1)
    found = kmeans(points, 4, rounds=3)
    wanted = points.view(4, 50, 2).mean(1)
    torch.testing.assert_close(found[nearest_center(wanted, found)], wanted)


def test_the_start_prefers_what_is_far():
    """Of 0, 1 and 3: after 0, 3 has nine times the chance of 1; and no point is taken twice."""
    torch.manual_seed(0)
    points = torch.tensor([[0.0], [1], [3]])
    pairs = [kmeans_plus_plus(points, 2).flatten().tolist() for _ in range(3000)]
    after = [second for first, second in pairs if first == 0]
    assert len(after) == pytest.approx(1000, abs=100)
    assert after.count(3) / len(after) == pytest.approx(0.9, abs=0.03)
    assert all(first != second for first, second in pairs)
    assert sorted(kmeans_plus_plus(points, 3).flatten().tolist()) == [0, 1, 3]
