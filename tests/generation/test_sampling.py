"""Choosing a token: the distributions drawn from, and the noise."""

import hashlib
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.core.errors import UserError
from foveal.generation.sampling import (
    GREEDY,
    Noise,
    Sampling,
    choose_tokens,
    keep_top_k,
    keep_top_p,
    penalize_repetition,
    sample_tokens,
)

DRAWS = 100_000
LOGITS = [1.0, -0.5, 2.0, 0.3, 1.9, -3.0, 0.0, 1.2]


def p_value(counts: Tensor, probabilities: Tensor) -> float:
    """Of a chi-square test of `counts` against `probabilities`; counts where those are 0 must be 0."""
    assert counts[probabilities == 0].sum() == 0
    expected, counts = (part[probabilities > 0].double() for part in (probabilities * counts.sum(), counts))
    statistic = ((counts - expected) ** 2 / expected).sum()
    return torch.special.gammaincc(torch.tensor((len(counts) - 1) / 2).double(), statistic / 2).item()


def expected(sampling: Sampling, previous_tokens: list[int]) -> Tensor:
    """The distribution, token by token and from the definitions."""
    penalty = sampling.repetition_penalty
    logits = [
        (x / penalty if x > 0 else x * penalty) if i in previous_tokens else x for i, x in enumerate(LOGITS)
    ]
    weights = [math.exp(x / sampling.temperature) for x in logits]
    order = sorted(range(len(weights)), key=lambda i: -weights[i])
    order = order[: sampling.top_k or None]
    total, kept, reached = sum(weights[i] for i in order), [], 0.0
    for i in order:
        if reached < sampling.top_p:
            kept.append(i)
        reached += weights[i] / total
    nucleus = sum(weights[i] for i in kept)
    return torch.tensor([weights[i] / nucleus if i in kept else 0.0 for i in range(len(weights))]).double()


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.4),
        Sampling(temperature=2.5),
        Sampling(top_k=3),
        Sampling(top_p=0.75),
        Sampling(repetition_penalty=1.7),
        Sampling(temperature=1.5, top_k=6, top_p=0.9, repetition_penalty=1.3),
    ],
    ids=str,
)
def test_draws_follow_the_distribution(sampling: Sampling) -> None:
    seen = [0, 1, 4]
    logits = torch.tensor(LOGITS).double().expand(DRAWS, -1)
    marks = torch.zeros(len(LOGITS), dtype=torch.bool)
    marks[seen] = True
    noise = Noise(5, "some prompt", 0)
    uniform = [noise(step) for step in range(DRAWS)]
    tokens = choose_tokens(logits, sampling, marks.expand(DRAWS, -1), uniform)
    counts = tokens.bincount(minlength=len(LOGITS))
    assert p_value(counts, expected(sampling, seen)) > 1e-4
    # The test itself can tell: a slightly different temperature is noticed.
    other = Sampling(sampling.temperature * 1.05, sampling.top_k, 1.0, sampling.repetition_penalty)
    if sampling.top_p == 1:
        assert p_value(counts, expected(other, seen)) < 1e-4


@pytest.mark.parametrize("axis", ["seed", "sample", "step", "prompt"])
def test_noise_is_uniform_along_every_axis(axis: str) -> None:
    n = 50_000
    numbers = {
        "seed": lambda i: Noise(i, "p", 0)(0),
        "sample": lambda i: Noise(0, "p", i)(0),
        "step": lambda i: Noise(0, "p", 0)(i),
        "prompt": lambda i: Noise(0, f"p{i}", 0)(0),
    }[axis]
    cells = torch.tensor([int(numbers(i) * 100) for i in range(n)]).bincount(minlength=100)
    assert len(cells) == 100
    assert p_value(cells, torch.full((100,), 0.01).double()) > 1e-4


def test_noise_is_what_it_says_for_ever() -> None:
    """Texts of a seed stay the same from version to version."""
    key = hashlib.sha256("3 1 Ünïcode".encode()).digest()
    bits = int.from_bytes(hashlib.sha256(key + (9).to_bytes(8, "big")).digest()[:8], "big") >> 11
    assert Noise(3, "Ünïcode", 1)(9) == bits / 2**53
    assert 0 <= Noise(0, "\ud800", 0)(0) < 1  # half a surrogate pair, as a command line may hold


def test_noise_differs_in_every_part() -> None:
    parts = [(0, "a", 0, 0), (1, "a", 0, 0), (0, "b", 0, 0), (0, "a", 1, 0), (0, "a", 0, 1), (0, "0 a", 0, 0)]
    assert len({Noise(seed, prompt, sample)(step) for seed, prompt, sample, step in parts}) == len(parts)


@pytest.mark.parametrize(
    "limit", [Sampling(top_k=1), Sampling(top_p=1e-300), Sampling(temperature=1e-308), Sampling(top_p=1e-9)]
)
def test_limits_are_greedy(limit: Sampling) -> None:
    logits = torch.randn(500, 50, dtype=torch.float64) * 30
    logits[:250] = logits[:250].round()  # ties are broken alike: the first
    uniform = torch.rand(500).tolist()
    if limit.temperature < 1:
        logits = logits[250:]
        uniform = uniform[250:]
    assert choose_tokens(logits, limit, None, uniform).equal(choose_tokens(logits, GREEDY, None, []))


def test_top_k_keeps_exactly_k_of_equal_ones() -> None:
    kept = keep_top_k(torch.tensor([[1.0, 3.0, 3.0, 3.0, 0.0]]), 2)
    assert kept.tolist() == [[-math.inf, 3.0, 3.0, -math.inf, -math.inf]]
    assert keep_top_k(torch.tensor([[1.0, 2.0]]), 9).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("p", "kept"), [(0.5, [1]), (0.500001, [1, 3]), (0.75, [1, 3]), (0.76, [0, 1, 3]), (1.0, [0, 1, 2, 3])]
)
def test_top_p_keeps_the_smallest_set_that_reaches_p(p: float, kept: list[int]) -> None:
    logits = torch.tensor([[0.125, 0.5, 0.125, 0.25]], dtype=torch.float64).log2() * math.log(2)
    assert keep_top_p(logits, p).isfinite().nonzero()[:, 1].tolist() == kept


def test_repetition_penalty_by_hand() -> None:
    logits = torch.tensor([[2.0, -2.0, 3.0, 0.0], [2.0, -2.0, 3.0, 0.0]])
    seen = torch.tensor([[True, True, False, True], [False, False, True, False]])
    assert penalize_repetition(logits, seen, 2.0).tolist() == [[1.0, -4.0, 3.0, 0.0], [2.0, -2.0, 1.5, 0.0]]


def test_the_ends_of_the_noise() -> None:
    last = 1 - 2.0**-53
    many = torch.zeros(1, 65536, dtype=torch.float64)
    assert sample_tokens(many, torch.tensor([last], dtype=torch.float64)).item() == 65535
    holes = torch.tensor([[-math.inf, 0.0, -math.inf, 1.0, -math.inf]], dtype=torch.float64)
    assert sample_tokens(holes, torch.tensor([0.0]).double()).item() == 1
    assert sample_tokens(holes, torch.tensor([last], dtype=torch.float64)).item() == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", math.inf),
    ],
)
def test_values_out_of_range(name: str, value: float) -> None:
    settings: dict[str, Any] = {name: value}
    with pytest.raises(UserError, match=name.replace("_", "[- ]")) as error:
        Sampling(**settings)
    assert "\n" not in str(error.value)
