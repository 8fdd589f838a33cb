"""The decoding loop: read the prompts, then generate one token per row per step, with any kind of state.

Greedy decoding and sampling use the same loop. The model must be in evaluation mode (`model.eval()`).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from foveal.core.errors import RunFailed, UserError
from foveal.core.memory import Memory
from foveal.core.runtime import at_least_float32, exact_dtype
from foveal.core.state import State, select_rows
from foveal.generation.sampling import Noise, Sampling, choose_tokens
from foveal.layers.blocks.stack import fuse_for_decoding

Prompt = Sequence[int] | npt.NDArray[np.integer[Any]]
MIN_SHARED_PREFIX = 16
"""Tokens that all prompts begin with, from which on they are read once."""
FinishReason = Literal["limit", "stop", "end"]
"""Why a text ended: the length limit, a stop string, or an end token."""


@runtime_checkable
class CausalDecoder(Protocol):
    """The interface of a model for generation: a state that is initialized, updated, and selected by rows."""

    def init_state(self, memory: Memory | None, batch: int, capacity: int | None = None) -> State: ...

    def __call__(
        self, tokens: Int[Tensor, "B T"], state: State, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State, dict[str, Tensor]]: ...

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


class DecodingStart(NamedTuple):
    """What a text is generated from: a decoder, the tokens that it reads first, and the memory that it
    attends to."""

    head: CausalDecoder
    prompt: Prompt
    memory: Memory | None = None


class GeneratedToken(NamedTuple):
    """A generated token. `row` is prompt * samples + sample. `finish_reason` is set for the last token of the
    row."""

    row: int
    token: int
    log_probability: float
    """Log-probability under the model itself, in nats, before temperature and truncation."""
    finish_reason: FinishReason | None


def generate(
    head: CausalDecoder,
    prompts: Sequence[Prompt],
    noise_keys: Sequence[str],
    max_new_tokens: int | Sequence[int],
    sampling: Sampling,
    *,
    samples: int = 1,
    first_sample: int = 0,
    memory: Memory | None = None,
    end_tokens: Collection[int] = (),
    stop: Callable[[int, int], bool] = lambda row, token: False,
    chunk: int = 512,
    watch: Callable[[Tensor, Tensor], None] | None = None,
) -> Iterator[GeneratedToken]:
    """Continue each prompt `samples` times, and yield the tokens as they are generated.

    `max_new_tokens` is a single limit for all prompts, or a limit per prompt. The tokens of a row are the
    same as if the row were generated alone: rows do not affect each other, and the noise of a row is a
    function of its prompt in `noise_keys`, its sample number (from `first_sample`) and the step. A row ends
    at a token in `end_tokens`, when `stop(row, token)` returns True, or at the limit. The state of the row is
    then dropped. `stop` is called once for each token, in order, but not for `end_tokens`. Prompts are read
    `chunk` tokens at a time. `watch` receives the logits (R, V) of each step, and the tokens (R,) that were
    chosen by them.

    Raises: UserError: a prompt is empty, or a limit or the number of samples is below 1.
    """
    limits = limits_per_prompt(max_new_tokens, len(prompts))
    if min(limits) < 1 or samples < 1:
        raise UserError(f"can't write {samples} samples of {max_new_tokens} tokens: both must be at least 1")
    fused = fuse_for_decoding(head)
    with torch.inference_mode(), fused.active():
        features, state = prefill(head, prompts, memory, chunk, max(limits))
        copies = torch.arange(len(prompts), device=features.device).repeat_interleave(samples)
        features, state = features[copies], select_rows(state, copies)
    rows = list(range(len(prompts) * samples))
    numbers = range(first_sample, first_sample + samples)
    noise = [Noise(sampling.seed, text, sample) for text in noise_keys for sample in numbers]
    present: Tensor | None = None

    for step in count():
        uniform = [] if sampling.greedy else [noise[row](step) for row in rows]
        with torch.inference_mode():
            logits = next_logits(head, features)
            if present is None and sampling.repetition_penalty != 1:
                present = _token_presence(prompts, logits.shape[-1])[copies.cpu()].to(logits.device)
            tokens = choose_tokens(logits, sampling, present, uniform)
            log_probs = log_probabilities(logits, tokens).tolist()
            if watch is not None:
                watch(logits, tokens)
        live = []
        for position, (row, token) in enumerate(zip(rows, tokens.tolist(), strict=True)):
            reason: FinishReason | None = None
            if token in end_tokens:
                reason = "end"
            elif stop(row, token):
                reason = "stop"
            elif step + 1 == limits[row // samples]:
                reason = "limit"
            else:
                live.append(position)
            yield GeneratedToken(row, token, log_probs[position], reason)
        if not live:
            return
        with torch.inference_mode():
            if present is not None:
                present.scatter_(-1, tokens[:, None], True)
            if len(live) < len(rows):
                kept_rows = torch.tensor(live, device=tokens.device)
                rows, tokens, state = (
                    [rows[position] for position in live],
                    tokens[kept_rows],
                    select_rows(state, kept_rows),
                )
                present = None if present is None else present[kept_rows]
            with fused.active():
                features, state, _ = head(tokens[:, None], state)
            features = features[:, 0]


def limits_per_prompt(max_new_tokens: int | Sequence[int], prompts: int) -> Sequence[int]:
    """Return one limit for each prompt."""
    return [max_new_tokens] * prompts if isinstance(max_new_tokens, int) else max_new_tokens


def prefill(
    head: CausalDecoder, prompts: Sequence[Prompt], memory: Memory | None, chunk: int, extra_capacity: int = 0
) -> tuple[Float[Tensor, "B D"], State]:
    """Read the prompts. Return the features at the last token of each prompt, and the state after that token.

    The state has capacity for `extra_capacity` more tokens. Prompts of different lengths are padded on the
    right, which affects neither features nor state. What all prompts begin with, such as the examples of a
    few-shot prompt, is read once: its state is that of every row.

    Raises: UserError: a prompt is empty.
    """
    for number, prompt in enumerate(prompts, 1):
        if not len(prompt):
            raise UserError(f"prompt {number} is empty: a text needs at least one token to start from")
    device = next(head.parameters()).device
    tokens = pad_sequence([torch.from_numpy(np.array(p, dtype=np.int64)) for p in prompts], batch_first=True)
    tokens, lengths = tokens.to(device), torch.tensor([len(p) for p in prompts], device=device)
    shortest = min(len(p) for p in prompts)
    all_rows = torch.arange(len(prompts), device=device)
    capacity = tokens.shape[1] + max(extra_capacity - 1, 0)  # the last new token is not read
    shared = shared_prefix(tokens, shortest) if memory is None else 0
    state = head.init_state(memory, 1 if shared else len(prompts), capacity)
    for start in range(0, shared, chunk):
        _, state, _ = head(tokens[:1, start : min(start + chunk, shared)], state)
    state = select_rows(state, torch.zeros_like(all_rows)) if shared else state
    last: Tensor | None = None
    for start in range(shared, tokens.shape[1], chunk):
        tokens_chunk = tokens[:, start : start + chunk]
        chunk_lengths = (lengths - start).clamp(0, tokens_chunk.shape[1])
        features, state, _ = head(
            tokens_chunk, state, None if start + tokens_chunk.shape[1] <= shortest else chunk_lengths
        )
        chunk_features = features[all_rows, (chunk_lengths - 1).clamp(min=0)]
        last = (
            chunk_features if last is None else torch.where(chunk_lengths[:, None] > 0, chunk_features, last)
        )
    assert last is not None
    return last, state


def shared_prefix(tokens: Int[Tensor, "B T"], shortest: int) -> int:
    """Return how many tokens all of several rows begin with, without the last token of the `shortest` row; 0
    if there are few."""
    if len(tokens) == 1:
        return 0
    differs = (tokens != tokens[:1]).any(0)[: shortest - 1]
    shared = int(differs.long().argmax()) if differs.any() else len(differs)
    return shared if shared >= MIN_SHARED_PREFIX else 0


def next_logits(head: CausalDecoder, features: Float[Tensor, "R D"]) -> Float[Tensor, "R V"]:
    """Return the logits in float32 or a higher precision.

    Raises: RunFailed: a row's highest logit is not finite.
    """
    logits = at_least_float32(head.project(features))
    if not logits.amax(-1).isfinite().all():
        raise RunFailed("the model's output is not finite (NaN or infinite): these weights can't generate")
    return logits


def log_probabilities(logits: Float[Tensor, "R V"], tokens: Int[Tensor, " R"]) -> Float[Tensor, " R"]:
    """Return `log softmax(logits)[token]` of each row, in nats. Exponentials are computed in the logits'
    precision, and sums in float64."""
    highest = logits.amax(-1, keepdim=True)
    exact = exact_dtype(logits.device)
    sums = (logits - highest).exp_().sum(-1, dtype=exact)
    return (logits.gather(-1, tokens[:, None]).to(exact) - highest).squeeze(-1) - sums.log()


def _token_presence(prompts: Sequence[Prompt], vocabulary: int) -> Bool[Tensor, "B V"]:
    """Return True for the tokens that occur in each prompt."""
    present = np.zeros((len(prompts), vocabulary), dtype=bool)
    for row, prompt in zip(present, prompts, strict=True):
        row[np.asarray(prompt)] = True
    return torch.from_numpy(present)
