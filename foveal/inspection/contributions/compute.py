"""What the parts of a source contribute to the tokens of a text, by ablation.

With x the source and x_(-s) the source whose part s is replaced by a baseline,

    contribution(t, s) = ln p(y_t | y_1 .. y_(t-1), x) - ln p(y_t | y_1 .. y_(t-1), x_(-s))

in nats: positive where the part made the token likelier. This is occlusion (Zeiler and Fergus 2014), for
words as in Li et al. 2016. The baseline of a token is the mean of all token vectors, that of a patch the mean
color of the image, and that of frames the mean over time.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.runtime import exact_dtype
from foveal.inspection.text_writer import TextWriter
from foveal.layers.ngram_lookup import NgramLookup
from foveal.ops.ngram_lookup import NOTHING

ROWS = 16
"""Sources that are read together."""
MOST_TOKENS, MOST_BLOCKS, GRID = 64, 40, 8
"""Tokens, blocks of frames, and rows and columns of patches at most."""
BASELINES = {
    "tokens": "the mean of all token vectors",
    "patches": "the mean color of the image",
    "frames": "the mean over time",
}


@dataclass(frozen=True)
class Parts:
    """The parts of a source: slices of its column, each with a name."""

    kind: str
    slices: Sequence[tuple[slice, ...]]
    names: tuple[str, ...]
    grid: tuple[int, int] | None = None
    """Rows and columns of patches."""


def token_parts(names: Sequence[str]) -> Parts:
    """Return each of the last tokens as a part."""
    first = max(0, len(names) - MOST_TOKENS)
    return Parts("tokens", [(slice(t, t + 1),) for t in range(first, len(names))], tuple(names[first:]))


def frame_parts(names: Sequence[str]) -> Parts:
    """Return blocks of frames, which are named by their first frame."""
    limits = _limits(len(names), MOST_BLOCKS)
    slices = [(slice(*limit),) for limit in limits]
    return Parts("frames", slices, tuple(names[start] for start, _ in limits))


def patch_parts(height: int, width: int, grid: tuple[int, int] | None) -> Parts:
    """Return patches of an image: those of the model's own grid, if it is not finer than 8 x 8."""
    rows, columns = (min(GRID, size) for size in (grid or (GRID, GRID)))
    down, across = _limits(height, rows), _limits(width, columns)
    places = [(slice(None), slice(*row), slice(*column)) for row in down for column in across]
    names = tuple(f"{row + 1},{column + 1}" for row in range(len(down)) for column in range(len(across)))
    return Parts("patches", places, names, (len(down), len(across)))


def _limits(size: int, count: int) -> list[tuple[int, int]]:
    """Return the first and last limits of `count` blocks at most that cover `size` positions."""
    edges = torch.linspace(0, size, min(count, size) + 1).round().int().tolist()
    return [*pairwise(edges)]


def baseline(source: Tensor, parts: Parts, unknown: int) -> Tensor:
    """Return a source (1, ...) that is the baseline everywhere; `unknown` stands for a token."""
    if parts.kind == "tokens":
        return torch.full_like(source, unknown)
    axes = (2, 3) if parts.kind == "patches" else (1,)
    return source.mean(axes, keepdim=True).expand_as(source)


def contributions(
    score: Callable[[Tensor], Float[Tensor, "R n"]], source: Tensor, parts: Parts, base: Tensor
) -> Float[Tensor, "n S"]:
    """Return the contribution of each part to each token.

    `score` gives the log-probabilities of the tokens for sources (R, ...). The whole source is scored in each
    batch again, so that a part that is not read contributes exactly 0.
    """
    differences = []
    for start in range(0, len(parts.slices), ROWS - 1):
        places = parts.slices[start : start + ROWS - 1]
        rows = source.repeat(1 + len(places), *[1] * (source.dim() - 1))
        for number, place in enumerate(places, 1):
            rows[number][place] = base[0][place]
        scores = score(rows)
        differences.append(scores[:1] - scores[1:])
    return torch.cat(differences).T


@contextmanager
def unknown_token(module: nn.Module, embedding: Any) -> Iterator[None]:
    """Let the number after an embedding's last token stand for an unknown one: the mean of all vectors.

    An n-gram lookup has never read this number.
    """

    def read_known(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        tokens, *others = arguments
        unknown.append(tokens == embedding.size)
        return (tokens.masked_fill(unknown[-1], 0), *others)

    def set_mean(_: nn.Module, arguments: Any, vectors: Tensor) -> Tensor:
        return torch.where(unknown.pop()[..., None], mean.to(vectors), vectors)

    def forget(_: nn.Module, arguments: tuple[Tensor]) -> tuple[Tensor]:
        followers = arguments[0]
        return (followers.masked_fill(followers > embedding.size, NOTHING),)

    unknown = list[Tensor]()
    device = next(module.parameters()).device
    with torch.no_grad():
        mean = embedding(torch.arange(embedding.size, device=device)[None])[0].mean(0)
    with ExitStack() as stack:
        handles = [
            embedding.register_forward_pre_hook(read_known),
            embedding.register_forward_hook(set_mean),
            *(
                lookup.register_forward_pre_hook(forget)
                for lookup in module.modules()
                if isinstance(lookup, NgramLookup)
            ),
        ]
        for handle in handles:
            stack.callback(handle.remove)
        yield


def log_probabilities(
    writer: TextWriter, prompts: Int[Tensor, "R P"], memory: Memory | None, tokens: Sequence[int]
) -> Float[Tensor, "R n"]:
    """Return the log-probability of each of `tokens` after each prompt, in nats."""
    written = torch.tensor(tokens, device=prompts.device).expand(len(prompts), -1)
    read = torch.cat([prompts, written[:, :-1]], 1)
    features, _, _ = writer.head(read, writer.head.init_state(memory, len(read)))
    logits = writer.head.project(features[:, prompts.shape[1] - 1 :])
    exact = logits.to(exact_dtype(logits.device))
    return exact.log_softmax(-1).gather(2, written[..., None])[..., 0]


def prompt_contributions(writer: TextWriter, tokens: Sequence[int]) -> tuple[Tensor, Parts]:
    """Return the contributions (n, S) of the last tokens of a prompt to the tokens after it."""
    head: Any = writer.head
    parts = token_parts(writer.names(writer.prompt))
    prompt = torch.tensor([writer.prompt], device=next(head.parameters()).device)
    base = baseline(prompt, parts, head.embedding.size)
    with torch.inference_mode(), unknown_token(head, head.embedding):
        values = contributions(
            lambda rows: log_probabilities(writer, rows, None, tokens), prompt, parts, base
        )
    return values, parts


def source_contributions(
    model: Any, writer: TextWriter, batch: Any, names: Sequence[str], tokens: Sequence[int]
) -> tuple[Tensor, Parts]:
    """Return the contributions (n, S) of the parts of an encoder's source to the tokens of its target."""
    device = next(model.parameters()).device
    source, lengths = batch.columns["source"].to(device), batch.lengths.get("source")
    prompt = torch.tensor([writer.prompt], device=device)

    def score(rows: Tensor) -> Tensor:
        same = {} if lengths is None else {"source": lengths.to(device).expand(len(rows))}
        with ExitStack() as stack:
            if parts.kind == "tokens":
                # The decoder may share the embedding, and never reads an unknown token.
                stack.enter_context(unknown_token(model.encoder, model.encoder.embedding))
            memory, _ = model.encode({"source": rows}, same)
        return log_probabilities(writer, prompt.expand(len(rows), -1), memory, tokens)

    parts = _parts(source, names, writer.memory)
    unknown = model.encoder.embedding.size if parts.kind == "tokens" else 0
    with torch.inference_mode():
        return contributions(score, source, parts, baseline(source, parts, unknown)), parts


def _parts(source: Tensor, names: Sequence[str], memory: Memory | None) -> Parts:
    """Return the parts of a source: tokens (1, S), frames (1, T, ...) or the patches of an image."""
    if not source.is_floating_point():
        return token_parts(names)
    if names:
        return frame_parts(names)
    grids = [segment.grid for segment in memory.segments if segment.grid] if memory else []
    return patch_parts(source.shape[2], source.shape[3], grids[0] if grids else None)
