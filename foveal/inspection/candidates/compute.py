"""The probabilities of the next token at each step of a generated text.

At step t a model has logits z over the vocabulary, and

    p(v) = exp(z_v) / sum_u exp(z_u)        H = -sum_v p(v) ln p(v)

Sampling draws from p after the temperature T, `softmax(z / T)`; beam search adds ln p over the steps.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from foveal.core.runtime import exact_dtype
from foveal.generation.beam_search import BeamPath, BeamStep, beam_search, length_penalty
from foveal.generation.decoding_loop import FinishReason, generate
from foveal.generation.sampling import Sampling, apply_temperature
from foveal.inspection.text_writer import TextWriter


class Candidate(NamedTuple):
    """A token that might come next."""

    token: int
    log_probability: float


class WrittenToken(NamedTuple):
    """A generated token, and what else might have come."""

    token: int
    log_probability: float
    """In nats, under the model itself."""
    rank: int
    """1 is the likeliest token."""
    entropy: float
    """Of the distribution of the next token, in nats."""
    candidates: tuple[Candidate, ...]
    """The likeliest tokens, from the likeliest on."""
    sampled_from: float | None = None
    """The probability of the token after the temperature; None where nothing was sampled."""


class WrittenText(NamedTuple):
    """A generated text, token by token."""

    tokens: list[WrittenToken]
    finish_reason: FinishReason

    @property
    def log_probability(self) -> float:
        """The sum over the tokens, in nats."""
        return math.fsum(token.log_probability for token in self.tokens)


def written_token(logits: Float[Tensor, " V"], token: int, top: int) -> WrittenToken:
    """Return a token with the `top` likeliest ones at its step."""
    log_probs = logits.to(exact_dtype(logits.device)).log_softmax(-1)
    ordered, tokens = log_probs.sort(descending=True, stable=True)
    rank = int((tokens == token).nonzero()) + 1
    # Tokens of probability 0 add nothing to the entropy.
    entropy = float(-(log_probs.exp() * log_probs).nan_to_num(0.0).sum())
    pairs = zip(tokens[:top].tolist(), ordered[:top].tolist(), strict=True)
    return WrittenToken(token, float(log_probs[token]), rank, entropy, tuple(map(Candidate._make, pairs)))


def sampled_text(writer: TextWriter, sampling: Sampling, top: int) -> WrittenText:
    """Sample a text, or write the likeliest token at each step, and return the distributions it came from."""
    written = list[WrittenToken]()

    def watch(logits: Tensor, tokens: Tensor) -> None:
        token = written_token(logits[0], int(tokens[0]), top)
        if not sampling.greedy:
            scaled = apply_temperature(logits[:1].to(exact_dtype(logits.device)), sampling.temperature)
            token = token._replace(sampled_from=float(scaled.softmax(-1)[0, token.token]))
        written.append(token)

    generated = generate(
        writer.head,
        [writer.prompt],
        [writer.noise_key],
        writer.limit,
        sampling,
        memory=writer.memory,
        end_tokens=writer.end_tokens,
        watch=watch,
    )
    reasons = [token.finish_reason for token in generated]
    assert reasons[-1] is not None
    return WrittenText(written, reasons[-1])


def searched_text(writer: TextWriter, beam: int, alpha: float, top: int) -> WrittenText:
    """Return the best text of a beam search, with the distributions at the steps of this text."""
    steps = list[list[tuple[BeamPath, Tensor]]]()

    def watch(step: BeamStep) -> None:
        steps.append([*zip(step.before, step.logits, strict=True)])

    paths = best_path(run_beam_search(writer, beam, alpha, watch), alpha)
    written = []
    for path, slots in zip(paths, steps, strict=False):
        logits = next(logits for before, logits in slots if before is path.parent)
        written.append(written_token(logits, path.token, top))
    return WrittenText(written, "end" if paths[-1].ended else "limit")


def run_beam_search(
    writer: TextWriter, beam: int, alpha: float, watch: Callable[[BeamStep], None]
) -> list[BeamPath]:
    """Search, and return the paths that are left at the end."""
    last = list[BeamPath]()

    def watch_last(step: BeamStep) -> None:
        last[:] = step.after
        watch(step)

    beam_search(
        writer.head,
        [writer.prompt],
        writer.limit,
        beam=beam,
        alpha=alpha,
        memory=writer.memory,
        end_tokens=writer.end_tokens,
        watch=watch_last,
    )
    return [path for path in last if path.log_probability > -math.inf]


def path_score(path: BeamPath, alpha: float) -> float:
    """Return the log-probability over the length penalty."""
    return path.log_probability / length_penalty(path.length, alpha)


def best_path(paths: list[BeamPath], alpha: float) -> list[BeamPath]:
    """Return the path with the highest score, as the paths after each of its tokens."""
    path: BeamPath | None = max(paths, key=lambda path: path_score(path, alpha))
    steps = []
    while path is not None and path.length:
        steps.append(path)
        path = path.parent
    return steps[::-1]
