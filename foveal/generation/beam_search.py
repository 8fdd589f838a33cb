"""Beam search over any head: its state follows the hypotheses through `select_rows`.

Hypotheses are compared by log-probability over the length penalty of GNMT (Wu et al. 2016, equation 14),
((5 + n) / 6)^alpha. One that has ended keeps its place in the beam, so a beam of 1 is greedy decoding at any
penalty, and the live ones get the places that are left.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.memory import Memory
from foveal.core.state import reorder, select_rows
from foveal.generation.decoding_loop import CausalDecoder, Prompt, limits_per_prompt, next_logits, prefill
from foveal.layers.blocks.stack import fuse_for_decoding


@dataclass(frozen=True)
class Hypothesis:
    """A continuation. `tokens` and `log_probability` (nats) include the end token, if it has one."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    finish_reason: Literal["end", "limit"]


@dataclass(frozen=True)
class _Path:
    """A hypothesis in the making. Its past is shared, so that a step costs the same at any length."""

    parent: "_Path | None" = None
    token: int = -1
    length: int = 0
    log_probability: float = 0.0
    ended: bool = False

    def tokens(self) -> tuple[int, ...]:
        backwards, path = [], self
        while path.parent is not None:
            backwards.append(path.token)
            path = path.parent
        return tuple(reversed(backwards))


def length_penalty(length: int, alpha: float) -> float:
    return math.pow((5 + length) / 6, alpha)


@torch.inference_mode()
def beam_search(
    head: CausalDecoder,
    prompts: Sequence[Prompt],
    max_new_tokens: int | Sequence[int],
    *,
    beam: int,
    best: int = 1,
    alpha: float = 0.0,
    memory: Memory | None = None,
    end_tokens: Collection[int] = (),
    chunk: int = 512,
) -> list[list[Hypothesis]]:
    """The `best` hypotheses of each prompt, highest score first, of at most `max_new_tokens` tokens, one
    for all or one for each.

    At each step the best `beam` continuations by log-probability stay, less the places of those that ended.
    Hypotheses still open at the limit are scored at that length. A prompt is done early only if no open
    hypothesis can come among the best any more. Fewer than `best` come back only if no more exist.

    Raises `UserError` for numbers out of range.
    """
    limits = limits_per_prompt(max_new_tokens, len(prompts))
    if min(limits) < 1 or not 1 <= best <= beam:
        raise UserError(
            f"beam {beam}, best {best}, {max_new_tokens} tokens: the beam must be at least as wide as the "
            "number of texts wanted, and all at least 1"
        )
    if not 0 <= alpha < math.inf:
        raise UserError(f"length penalty {alpha}: must be a number from 0 (none) upwards")
    fused = fuse_for_decoding(head)
    with fused.active():
        features, state = prefill(head, prompts, memory, chunk)
    device = features.device
    places = torch.arange(len(prompts), device=device).repeat_interleave(beam)
    features, state = features[places], select_rows(state, places)
    # All places of a prompt start alike: only the first counts.
    nothing = _Path(log_probability=-math.inf)
    beams = {prompt: [_Path()] + [nothing] * (beam - 1) for prompt in range(len(prompts))}
    results: dict[int, list[Hypothesis]] = {}

    while True:
        chances, tokens = _top_log_probabilities(next_logits(head, features), beam)
        totals, parents, chosen = _best_continuations(chances, tokens, list(beams.values()))
        going_on, rows = {}, []
        for place, (prompt, paths) in enumerate(beams.items()):
            grown = []
            for total, parent, token in zip(totals[place], parents[place], chosen[place], strict=True):
                path = paths[parent]
                if total < math.inf:  # else it has ended, and keeps its place
                    path = _Path(
                        path, token, path.length + 1, total, token in end_tokens and total > -math.inf
                    )
                grown.append(path)
            if _is_finished(grown, limits[prompt], best, alpha):
                results[prompt] = _ranked(grown, alpha)[:best]
            else:
                going_on[prompt] = grown
                rows += [place * beam + parent for parent in parents[place]]
        beams = going_on
        if not beams:
            return [results[prompt] for prompt in range(len(prompts))]
        last = torch.tensor([[path.token] for paths in beams.values() for path in paths], device=device)
        if rows != list(range(len(totals) * beam)):  # else all go on as they stand: nothing to copy
            move = reorder if len(beams) == len(totals) else select_rows
            state = move(state, torch.tensor(rows, device=device))
        with fused.active():
            features, state, _ = head(last, state)
        features = features[:, 0]


def _top_log_probabilities(
    logits: Float[Tensor, "R V"], count: int
) -> tuple[Float[Tensor, "R N"], Int[Tensor, "R N"]]:
    """Log-probabilities and tokens of the `count` likeliest, or of all if there are fewer. They are as exact
    as the logits, and float64 so that their sums stay it.

    Of equal ones the first, as in greedy decoding. Top-k promises nothing about equal ones, so where there
    are some all are sorted, which takes as long as a decoder's step.
    """
    more = min(count + 1, logits.shape[1])
    ordered, tokens = logits.topk(more, -1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        ordered, tokens = logits.sort(dim=-1, descending=True, stable=True)
    ordered, tokens = ordered[:, :count], tokens[:, :count]
    return ordered.double() - logits.logsumexp(-1, keepdim=True), tokens


def _best_continuations(
    chances: Float[Tensor, "R N"], tokens: Int[Tensor, "R N"], beams: list[list[_Path]]
) -> tuple[list[list[float]], list[list[int]], list[list[int]]]:
    """Of each prompt, the best `beam` (total, parent, token), three times (P, beam).

    Only the likeliest tokens of each path can be among them. A path that has ended has one continuation,
    itself, of total inf. -inf marks a place left empty.
    """
    beam, N = len(beams[0]), chances.shape[1]
    past = [[path.log_probability] for paths in beams for path in paths]
    ended = torch.tensor([path.ended for paths in beams for path in paths], device=chances.device)
    totals = chances + chances.new_tensor(past)
    totals[ended] = -math.inf
    totals[:, 0].masked_fill_(ended, math.inf)
    ordered, index = totals.reshape(-1, beam * N).sort(dim=-1, descending=True, stable=True)
    index = index[:, :beam]
    chosen = tokens.reshape(-1, beam * N).gather(1, index)
    return ordered[:, :beam].tolist(), (index // N).tolist(), chosen.tolist()


def _is_finished(paths: list[_Path], max_new_tokens: int, best: int, alpha: float) -> bool:
    """True if going on can't change the best.

    Log-probabilities only fall, and the limit's penalty is the kindest: that bounds what a live path can get.
    """
    live = [path for path in paths if not path.ended and path.log_probability > -math.inf]
    if not live or live[0].length == max_new_tokens:
        return True
    ended = _ranked([path for path in paths if path.ended], alpha)
    bound = max(path.log_probability for path in live) / length_penalty(max_new_tokens, alpha)
    return len(ended) >= best and ended[best - 1].score > bound


def _ranked(paths: list[_Path], alpha: float) -> list[Hypothesis]:
    found = [
        Hypothesis(
            path.tokens(),
            path.log_probability,
            path.log_probability / length_penalty(path.length, alpha),
            "end" if path.ended else "limit",
        )
        for path in paths
        if path.log_probability > -math.inf
    ]
    return sorted(found, key=lambda hypothesis: -hypothesis.score)
