"""Curves of trainings whose course is known: twelve with a problem, and six healthy ones."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from foveal.inspection.diagnosis.history import History

Course = Callable[[Any], Any]
"""A number for each share of a training, from 0 to 1."""
LN10, LN65 = math.log(10), math.log(65)


def constant(t: Any) -> Any:
    return np.ones_like(t)


def linear_decay(t: Any) -> Any:
    """Warm-up in a twentieth, then constant, and from the middle on down to zero."""
    return np.minimum(1.0, np.minimum(20 * t + 0.01, 2 * (1 - t) + 1e-3))


def cosine(t: Any) -> Any:
    return 0.5 + 0.5 * np.cos(math.pi * t)


def falling(start: float, end: float, speed: float) -> Course:
    """An exponential fall: `speed` time constants in the training."""
    return lambda t: end + (start - end) * np.exp(-speed * np.asarray(t))


def power(start: float, end: float, exponent: float, onset: float = 0.005) -> Course:
    """A power law, as the loss of language models falls."""
    scale = 1 - (1 + 1 / onset) ** -exponent
    return lambda t: start - (start - end) * (1 - (1 + np.asarray(t) / onset) ** -exponent) / scale


def history(
    train: Course,
    held_out: Course | None,
    seed: int,
    *,
    steps: int = 1000,
    noise: float = 0.05,
    evaluations: int = 12,
    held_out_noise: float = 0.01,
    rate: Course = constant,
    chance: float | None = LN10,
    nonfinite: tuple[tuple[int, str], ...] = (),
    regularizers: tuple[str, ...] = (),
) -> History:
    """The log of a training with these courses. The noise of a batch is a share of the loss."""
    random = np.random.default_rng(seed)
    t = np.arange(steps) / steps
    loss = train(t) * (1 + noise * random.standard_normal(steps))
    at = np.linspace(0, 1, evaluations + 1)[1:]
    held = np.array([])
    if held_out is not None:
        held = held_out(at) * (1 + held_out_noise * random.standard_normal(evaluations))
    places = np.round(at[: len(held)] * steps).astype(np.int64)
    rates = 0.1 * rate(t)
    return History(np.arange(1, steps + 1), loss, rates, places, held, nonfinite, chance, regularizers)


def _rising(t: Any) -> Any:
    return 0.7 + 1.6 * np.exp(-8 * np.asarray(t)) + 0.9 * np.clip(np.asarray(t) - 0.4, 0, None)


def _spiky(seed: int) -> Course:
    """A fall with twelve jumps, from each of which the loss comes down again in some steps."""

    def course(t: Any) -> Any:
        at = np.random.default_rng(seed).uniform(0.1, 0.98, 12)
        after = np.asarray(t)[..., None] - at
        jumps = np.where(after >= 0, 1.2 * np.exp(-np.clip(after, 0, None) / 0.006), 0.0).sum(-1)
        return falling(2.3, 0.9, 8)(t) + jumps

    return course


def _zigzag(t: Any) -> Any:
    t = np.asarray(t)
    return 0.9 + 1.4 * np.exp(-8 * t) + 0.35 * np.cos(12 * math.pi * t)


def _diverging(t: Any) -> Any:
    t = np.asarray(t)
    return np.where(t < 0.6, falling(2.3, 0.8, 8)(t), 0.8 + 12 * np.clip(t - 0.6, 0, None))


def _late_drop(t: Any) -> Any:
    t = np.asarray(t)
    return 0.4 + 1.9 / (1 + np.exp(40 * (t - 0.4)))


PROBLEMS: dict[str, tuple[str, Callable[[int], History]]] = {
    "held-out loss rises": (
        "overfitting",
        lambda seed: history(falling(2.3, 0.05, 5), _rising, seed),
    ),
    "held-out loss stands": (
        "overfitting",
        lambda seed: history(
            falling(2.3, 0.1, 3), falling(2.3, 1.3, 14), seed, rate=cosine, held_out_noise=0.005
        ),
    ),
    "both losses high": (
        "underfitting",
        lambda seed: history(falling(2.3, 1.9, 12), falling(2.3, 1.92, 12), seed),
    ),
    "stopped while it fell": (
        "not converged",
        lambda seed: history(falling(2.3, 0.2, 1.1), falling(2.3, 0.25, 1.1), seed),
    ),
    "spikes": ("rate too high", lambda seed: history(_spiky(seed), falling(2.3, 1.0, 8), seed)),
    "zigzag": (
        "rate too high",
        lambda seed: history(falling(2.3, 0.85, 8), _zigzag, seed, evaluations=24),
    ),
    "straight and slow": (
        "rate too low",
        lambda seed: history(
            lambda t: 2.3 - 0.2 * t, lambda t: 2.3 - 0.19 * t, seed, noise=0.03, held_out_noise=0.003
        ),
    ),
    "first loss far above ln C": (
        "bad first weights: first loss",
        lambda seed: history(
            lambda t: falling(2.0, 0.4, 5)(t) + 25 * np.exp(-400 * np.asarray(t)),
            falling(2.0, 0.45, 5),
            seed,
            rate=linear_decay,
        ),
    ),
    "flat, then a drop": (
        "bad first weights: flat start",
        lambda seed: history(_late_drop, _late_drop, seed, rate=linear_decay),
    ),
    "held-out loss far below": (
        "leak",
        lambda seed: history(falling(2.3, 1.0, 6), falling(2.0, 0.2, 6), seed, rate=cosine),
    ),
    "loss rises for good": ("divergence", lambda seed: history(_diverging, _diverging, seed)),
    "loss stays, rate high": (
        "plateau",
        lambda seed: history(falling(2.3, 0.9, 16), falling(2.3, 0.95, 16), seed, steps=5000),
    ),
    "NaN": (
        "numbers not finite",
        lambda seed: history(
            power(2.3, 0.4, 0.5), power(2.3, 0.42, 0.5), seed, rate=linear_decay, nonfinite=((301, "loss"),)
        ),
    ),
}
"""Curves by name, each with its right verdict."""


def _steps_down(t: Any) -> Any:
    """A rate that falls tenfold twice; the loss falls with each."""
    t = np.asarray(t)
    return np.where(t < 0.5, 1.0, np.where(t < 0.75, 0.1, 0.01))


def _loss_of_steps_down(t: Any) -> Any:
    t = np.asarray(t)
    first = falling(2.3, 0.75, 9)(t)
    return np.where(t < 0.5, first, np.where(t < 0.75, 0.45, 0.38))


HEALTHY: dict[str, Callable[[int], History]] = {
    "character model": lambda seed: history(
        power(LN65, 1.3, 0.4), power(LN65, 1.4, 0.4), seed, noise=0.03, rate=linear_decay, chance=LN65
    ),
    "cosine with dropout": lambda seed: history(
        falling(2.3, 0.5, 6), falling(2.3, 0.4, 6), seed, rate=cosine, regularizers=("model.dropout=0.2",)
    ),
    "rate in steps": lambda seed: history(_loss_of_steps_down, _loss_of_steps_down, seed, rate=_steps_down),
    "small batches": lambda seed: history(
        power(2.3, 0.4, 0.5), power(2.3, 0.42, 0.5), seed, noise=0.3, steps=4000, held_out_noise=0.02
    ),
    "small gap, few evaluations": lambda seed: history(
        falling(2.3, 0.3, 7), falling(2.3, 0.42, 7), seed, evaluations=6, rate=linear_decay
    ),
    "from earlier weights": lambda seed: history(
        power(0.9, 0.35, 0.4), power(0.8, 0.38, 0.4), seed, steps=200, rate=linear_decay, chance=math.log(100)
    ),
}
"""Curves of healthy trainings."""
