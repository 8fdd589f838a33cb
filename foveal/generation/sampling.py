"""Sampling of the next token: transformations of the logits, and the random numbers.

Everything here is a function of logits (R, V), one row per text. The order is the usual one: repetition
penalty, temperature, top-k, top-p, sampling. The random numbers are a hash of (seed, prompt, sample, step),
so a text depends neither on its batch nor on other rows.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from foveal.core.errors import UserError
from foveal.core.runtime import exact_dtype


@dataclass(frozen=True)
class Sampling:
    """The sampling settings.

    `temperature` 0 is greedy: the likeliest token. `top_k` 0 and `top_p` 1 keep every token.
    `repetition_penalty` 1 does not penalize.

    Raises: UserError: a value is out of range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise UserError(f"temperature {self.temperature}: must be 0 (greedy) or more")
        if self.top_k < 0:
            raise UserError(f"top-k {self.top_k}: must be a number of tokens, or 0 to keep them all")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top-p {self.top_p}: must be above 0 and at most 1 (1 keeps every token)")
        if not 0 < self.repetition_penalty < math.inf:
            raise UserError(
                f"repetition penalty {self.repetition_penalty}: must be above 0 (1 means no penalty)"
            )

    @property
    def greedy(self) -> bool:
        return self.temperature == 0


GREEDY = Sampling(temperature=0.0)


class Noise:
    """The uniform random numbers in [0, 1) of a sample, `noise(step)`, which depend only on the arguments.

    Two rows with the same prompt and sample number therefore get the same text.
    """

    def __init__(self, seed: int, prompt: str, sample: int):
        text = prompt.encode("utf-8", "surrogatepass")
        self._key = hashlib.sha256(f"{seed} {sample} ".encode() + text).digest()

    def __call__(self, step: int) -> float:
        digest = hashlib.sha256(self._key + step.to_bytes(8, "big")).digest()
        return (int.from_bytes(digest[:8], "big") >> 11) * 2.0**-53


def penalize_repetition(
    logits: Float[Tensor, "R V"], previous_tokens: Bool[Tensor, "R V"], penalty: float
) -> Float[Tensor, "R V"]:
    """Make the `previous_tokens` of a row less likely (CTRL, Keskar et al. 2019, section 4.1).

    Positive logits are divided by the penalty, and negative ones multiplied.
    """
    return torch.where(previous_tokens, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def apply_temperature(logits: Float[Tensor, "R V"], temperature: float) -> Float[Tensor, "R V"]:
    """Return the logits divided by the temperature, shifted so that the highest is 0, which
    prevents overflow at any temperature."""
    return (logits - logits.amax(-1, keepdim=True)) / temperature


def keep_top_k(logits: Float[Tensor, "R V"], k: int) -> Float[Tensor, "R V"]:
    """Keep the k highest logits, and set all others to -inf. Ties go to the lower token id."""
    ordered, index = logits.sort(dim=-1, descending=True, stable=True)
    ordered[:, k:] = -math.inf
    return torch.empty_like(logits).scatter_(-1, index, ordered)


def keep_top_p(logits: Float[Tensor, "R V"], p: float) -> Float[Tensor, "R V"]:
    """Keep the nucleus (Holtzman et al. 2020): the smallest set of tokens whose probability reaches p."""
    ordered, index = logits.sort(dim=-1, descending=True, stable=True)
    before = pad(ordered.softmax(-1).cumsum(-1)[:, :-1], (1, 0))
    ordered = ordered.masked_fill(before >= p, -math.inf)
    return torch.empty_like(logits).scatter_(-1, index, ordered)


def sample_tokens(logits: Float[Tensor, "R V"], uniform: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """Invert the cumulative distribution of softmax(logits) at `uniform` in [0, 1).

    Call this in float64: float32 sums of a large vocabulary would never reach the last tokens. A token of
    probability 0 is never sampled.
    """
    cumulative = logits.softmax(-1).cumsum(-1)
    target = uniform[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, target, right=True).squeeze(-1)


def choose_tokens(
    logits: Float[Tensor, "R V"],
    sampling: Sampling,
    previous_tokens: Bool[Tensor, "R V"] | None,
    uniform: Sequence[float],
) -> Int[Tensor, " R"]:
    """Return the next token of each row.

    `previous_tokens` is needed for a repetition penalty. `uniform` has one number per row.
    """
    if previous_tokens is not None:
        logits = penalize_repetition(logits, previous_tokens, sampling.repetition_penalty)
    if sampling.greedy:
        return logits.argmax(-1)
    logits = apply_temperature(logits.to(exact_dtype(logits.device)), sampling.temperature)
    if sampling.top_k:
        logits = keep_top_k(logits, sampling.top_k)
    if sampling.top_p < 1:
        logits = keep_top_p(logits, sampling.top_p)
    return sample_tokens(logits, torch.tensor(uniform, dtype=logits.dtype, device=logits.device))
