"""Beam search with any head. The head's state follows the hypotheses through `select_rows`.

Hypotheses are compared by log-probability over the length penalty of GNMT (Wu et al. 2016, equation 14), ((5
+ n) / 6)^alpha. A finished hypothesis keeps its slot in the beam, so a beam of 1 is greedy decoding with any
penalty. Unfinished hypotheses get the other slots.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.memory import Memory
from foveal.core.runtime import exact_dtype
from foveal.core.state import reorder, select_rows
from foveal.generation.decoding_loop import CausalDecoder, Prompt, limits_per_prompt, next_logits, prefill
from foveal.layers.blocks.stack import fuse_for_decoding

MAX_LENGTH_PENALTY = 50
"""The power of the length at most: that of a million tokens is still a number."""
DOUBTFUL_NATS = 1.5
"""Nats a token above which a model hardly knows what follows; trained models have less on their outputs."""


@dataclass(frozen=True)
class Hypothesis:
    """A continuation. `tokens` and `log_probability` (nats) include the end token, if the
    hypothesis ended."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    finish_reason: Literal["end", "limit"]


@dataclass(frozen=True)
class BeamPath:
    """A partial hypothesis. Paths share their prefixes, so the cost of a step does not grow with
    the length."""

    parent: "BeamPath | None" = None
    token: int = -1
    length: int = 0
    log_probability: float = 0.0
    ended: bool = False

    def tokens(self) -> tuple[int, ...]:
        """Return all tokens of the path, the first one first."""
        backwards, path = [], self
        while path.parent is not None:
            backwards.append(path.token)
            path = path.parent
        return tuple(reversed(backwards))


class BeamStep(NamedTuple):
    """A step of the search for one prompt: the slots before and after it, and the logits of those before.

    A path after the step is one of those before, which had ended, or has one of them as its parent.
    """

    prompt: int
    logits: Float[Tensor, "R V"]
    before: Sequence[BeamPath]
    after: Sequence[BeamPath]


def length_penalty(length: int, alpha: float) -> float:
    """Return the length penalty ((5 + n) / 6)^alpha."""
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
    doubtful_limits: Sequence[int] | None = None,
    chunk: int = 512,
    watch: Callable[[BeamStep], None] | None = None,
) -> list[list[Hypothesis]]:
    """Return the `best` hypotheses of each prompt, the highest score first.

    `max_new_tokens` is a single limit for all prompts, or a limit per prompt. At each step, the `beam`
    continuations with the highest log-probability are kept, minus the slots of finished hypotheses.
    Hypotheses that are unfinished at the limit are scored at that length. A prompt ends early only if no
    unfinished hypothesis can still be among the best; or after its number of tokens in `doubtful_limits`, if
    every hypothesis has more than 1.5 nats a token, as those of an untrained model have. Fewer than `best`
    hypotheses are returned only if no more exist. `watch` receives each step of each prompt.

    Raises: UserError: a number is out of range.
    """
    limits = limits_per_prompt(max_new_tokens, len(prompts))
    if min(limits) < 1 or not 1 <= best <= beam:
        raise UserError(
            f"beam {beam}, best {best}, {max_new_tokens} tokens: all must be at least 1, "
            "and the beam at least as large as best"
        )
    if not 0 <= alpha <= MAX_LENGTH_PENALTY:
        raise UserError(f"length penalty {alpha}: must be 0 (no penalty) to {MAX_LENGTH_PENALTY}")
    fused = fuse_for_decoding(head)
    with fused.active():
        features, state = prefill(head, prompts, memory, chunk)
    device = features.device
    prompt_ids = torch.arange(len(prompts), device=device).repeat_interleave(beam)
    features, state = features[prompt_ids], select_rows(state, prompt_ids)
    # All slots of a prompt start alike, so only the first counts.
    empty_slot = BeamPath(log_probability=-math.inf)
    beams = {prompt: [BeamPath()] + [empty_slot] * (beam - 1) for prompt in range(len(prompts))}
    results: dict[int, list[Hypothesis]] = {}

    while True:
        logits = next_logits(head, features)
        log_probs, tokens = top_log_probabilities(logits, beam)
        totals, parents, last_tokens = _best_continuations(log_probs, tokens, list(beams.values()))
        unfinished, rows = {}, []
        for position, (prompt, paths) in enumerate(beams.items()):
            extended = []
            for total, parent, token in zip(
                totals[position], parents[position], last_tokens[position], strict=True
            ):
                path = paths[parent]
                if total < math.inf:  # else the path has ended, and keeps its slot
                    path = BeamPath(
                        path, token, path.length + 1, total, token in end_tokens and total > -math.inf
                    )
                extended.append(path)
            if watch is not None:
                watch(BeamStep(prompt, logits[position * beam : (position + 1) * beam], paths, extended))
            doubtful = doubtful_limits is not None and _is_doubtful(extended, doubtful_limits[prompt])
            if doubtful or _is_finished(extended, limits[prompt], best, alpha):
                results[prompt] = _ranked(extended, alpha)[:best]
            else:
                unfinished[prompt] = extended
                rows += [position * beam + parent for parent in parents[position]]
        beams = unfinished
        if not beams:
            return [results[prompt] for prompt in range(len(prompts))]
        last = torch.tensor([[path.token] for paths in beams.values() for path in paths], device=device)
        if rows != list(range(len(totals) * beam)):  # else every row continues itself: nothing to copy
            select = reorder if len(beams) == len(totals) else select_rows
            state = select(state, torch.tensor(rows, device=device))
        with fused.active():
            features, state, _ = head(last, state)
        features = features[:, 0]


def top_log_probabilities(
    logits: Float[Tensor, "R V"], count: int
) -> tuple[Float[Tensor, "R N"], Int[Tensor, "R N"]]:
    """Return log-probabilities and tokens of the `count` most likely tokens, or of all tokens if there are
    fewer.

    The log-probabilities are as exact as the logits. They are float64, so that their sums stay exact too.
    Ties go to the lower token id, as in greedy decoding. Top-k does not guarantee this, so rows with ties are
    sorted completely, which takes as long as a decoder's step.
    """
    size = min(count + 1, logits.shape[1])
    ordered, tokens = logits.topk(size, -1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        ordered, tokens = logits.sort(dim=-1, descending=True, stable=True)
    ordered, tokens = ordered[:, :count], tokens[:, :count]
    return ordered.to(exact_dtype(ordered.device)) - logits.logsumexp(-1, keepdim=True), tokens


def _best_continuations(
    log_probs: Float[Tensor, "R N"], tokens: Int[Tensor, "R N"], beams: list[list[BeamPath]]
) -> tuple[list[list[float]], list[list[int]], list[list[int]]]:
    """Return the best `beam` continuations (total, parent, token) of each prompt, as three lists (P, beam).

    Only the most likely tokens of each path can be among them. A finished path has a single continuation,
    itself, with total inf. -inf marks an empty slot.
    """
    beam, N = len(beams[0]), log_probs.shape[1]
    past = [[path.log_probability] for paths in beams for path in paths]
    ended = torch.tensor([path.ended for paths in beams for path in paths], device=log_probs.device)
    totals = log_probs + log_probs.new_tensor(past)
    totals[ended] = -math.inf
    totals[:, 0].masked_fill_(ended, math.inf)
    ordered, index = totals.reshape(-1, beam * N).sort(dim=-1, descending=True, stable=True)
    index = index[:, :beam]
    chosen = tokens.reshape(-1, beam * N).gather(1, index)
    return ordered[:, :beam].tolist(), (index // N).tolist(), chosen.tolist()


def _is_finished(paths: list[BeamPath], max_new_tokens: int, best: int, alpha: float) -> bool:
    """Return True if more steps can't change the best hypotheses.

    Log-probabilities can only fall, and the penalty is the mildest at the limit. Together they bound the
    score of an unfinished path.
    """
    live = [path for path in paths if not path.ended and path.log_probability > -math.inf]
    if not live or live[0].length == max_new_tokens:
        return True
    ended = _ranked([path for path in paths if path.ended], alpha)
    bound = max(path.log_probability for path in live) / length_penalty(max_new_tokens, alpha)
    return len(ended) >= best and ended[best - 1].score > bound


def _is_doubtful(paths: list[BeamPath], limit: int) -> bool:
    """Return True if the paths have `limit` tokens, and all of them are unlikely."""
    nats = [-path.log_probability / path.length for path in paths if path.log_probability > -math.inf]
    return max(path.length for path in paths) >= limit and min(nats) > DOUBTFUL_NATS


def _ranked(paths: list[BeamPath], alpha: float) -> list[Hypothesis]:
    """Return the hypotheses of the paths, the highest score first."""
    hypotheses = [
        Hypothesis(
            path.tokens(),
            path.log_probability,
            path.log_probability / length_penalty(path.length, alpha),
            "end" if path.ended else "limit",
        )
        for path in paths
        if path.log_probability > -math.inf
    ]
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
