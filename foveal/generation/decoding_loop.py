"""The step loop: read the prompts, then write one token a row a step, whatever the head's state is made of.

Greedy and sampling are the same loop. The model is to be in evaluation mode (`model.eval()`).
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
from foveal.core.runtime import at_least_float32
from foveal.core.state import State, select_rows
from foveal.generation.sampling import Noise, Sampling, choose_tokens
from foveal.layers.blocks.stack import fuse_for_decoding

Prompt = Sequence[int] | npt.NDArray[np.integer[Any]]
FinishReason = Literal["limit", "stop", "end"]
"""Why a text is over: its length, a stop string, or an end token."""


@runtime_checkable
class CausalDecoder(Protocol):
    """What generation asks of a model: a state that starts, goes on, and can be selected by rows."""

    def init_state(self, memory: Memory | None, batch: int, capacity: int | None = None) -> State: ...

    def __call__(
        self, tokens: Int[Tensor, "B T"], state: State, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State, dict[str, Tensor]]: ...

    def project(self, features: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


class GeneratedToken(NamedTuple):
    """One token. `row` is prompt * samples + sample; `finish_reason` is given with the row's last token."""

    row: int
    token: int
    log_probability: float
    """Under the model itself, in nats, before temperature and truncation."""
    finish_reason: FinishReason | None


def generate(
    head: CausalDecoder,
    prompts: Sequence[Prompt],
    noise_keys: Sequence[str],
    max_new_tokens: int | Sequence[int],
    sampling: Sampling,
    *,
    samples: int = 1,
    memory: Memory | None = None,
    end_tokens: Collection[int] = (),
    stop: Callable[[int, int], bool] = lambda row, token: False,
    chunk: int = 512,
) -> Iterator[GeneratedToken]:
    """Continue each prompt `samples` times by at most `max_new_tokens` tokens, one for all or one for
    each; tokens are yielded as they come.

    A row's tokens are those it would get alone: rows do not know each other, and the noise of a row is
    named by its prompt in `noise_keys`, its sample number and the step. A row is over at a token in
    `end_tokens`, when `stop(row, token)` says so (it is called once a token, in order, not for `end_tokens`),
    or at the limit; then its state is dropped. Prompts are read `chunk` tokens at a time.

    Raises `UserError` for an empty prompt or a limit or number of samples below 1.
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
    noise = [Noise(sampling.seed, text, sample) for text in noise_keys for sample in range(samples)]
    seen: Tensor | None = None

    for step in count():
        uniform = [] if sampling.greedy else [noise[row](step) for row in rows]
        with torch.inference_mode():
            logits = next_logits(head, features)
            if seen is None and sampling.repetition_penalty != 1:
                seen = _token_presence(prompts, logits.shape[-1])[copies.cpu()].to(logits.device)
            tokens = choose_tokens(logits, sampling, seen, uniform)
            chances = log_probabilities(logits, tokens).tolist()
        live = []
        for place, (row, token) in enumerate(zip(rows, tokens.tolist(), strict=True)):
            reason: FinishReason | None = None
            if token in end_tokens:
                reason = "end"
            elif stop(row, token):
                reason = "stop"
            elif step + 1 == limits[row // samples]:
                reason = "limit"
            else:
                live.append(place)
            yield GeneratedToken(row, token, chances[place], reason)
        if not live:
            return
        with torch.inference_mode():
            if seen is not None:
                seen.scatter_(-1, tokens[:, None], True)
            if len(live) < len(rows):
                kept = torch.tensor(live, device=tokens.device)
                rows, tokens, state = [rows[place] for place in live], tokens[kept], select_rows(state, kept)
                seen = None if seen is None else seen[kept]
            with fused.active():
                features, state, _ = head(tokens[:, None], state)
            features = features[:, 0]


def limits_per_prompt(max_new_tokens: int | Sequence[int], prompts: int) -> Sequence[int]:
    """One for each prompt."""
    return [max_new_tokens] * prompts if isinstance(max_new_tokens, int) else max_new_tokens


def prefill(
    head: CausalDecoder, prompts: Sequence[Prompt], memory: Memory | None, chunk: int, extra_capacity: int = 0
) -> tuple[Float[Tensor, "B D"], State]:
    """Read the prompts: the features at each one's last token, and the state after it, room for
    `extra_capacity` in it.

    Prompts of different lengths are padded on the right, where neither features nor state look.
    """
    for number, prompt in enumerate(prompts, 1):
        if not len(prompt):
            raise UserError(f"prompt {number} is empty: a text needs at least one token to start from")
    device = next(head.parameters()).device
    tokens = pad_sequence([torch.from_numpy(np.array(p, dtype=np.int64)) for p in prompts], batch_first=True)
    tokens, lengths = tokens.to(device), torch.tensor([len(p) for p in prompts], device=device)
    shortest = min(len(p) for p in prompts)
    every = torch.arange(len(prompts), device=device)
    state = head.init_state(
        memory, len(prompts), tokens.shape[1] + max(extra_capacity - 1, 0)
    )  # the last is not read
    last: Tensor | None = None
    for start in range(0, tokens.shape[1], chunk):
        part = tokens[:, start : start + chunk]
        held = (lengths - start).clamp(0, part.shape[1])
        features, state, _ = head(part, state, None if start + part.shape[1] <= shortest else held)
        here = features[every, (held - 1).clamp(min=0)]
        last = here if last is None else torch.where(held[:, None] > 0, here, last)
    assert last is not None
    return last, state


def next_logits(head: CausalDecoder, features: Float[Tensor, "R D"]) -> Float[Tensor, "R V"]:
    """The logits, in float32 at least. Raises `RunFailed` if a row has no finite highest one."""
    logits = at_least_float32(head.project(features))
    if not logits.amax(-1).isfinite().all():
        raise RunFailed("the model's output is not finite (NaN or infinite): these weights can't write")
    return logits


def log_probabilities(logits: Float[Tensor, "R V"], tokens: Int[Tensor, " R"]) -> Float[Tensor, " R"]:
    """`log softmax(logits)[token]` of each row, in nats: powers in the logits' precision, sums in float64."""
    highest = logits.amax(-1, keepdim=True)
    sums = (logits - highest).exp_().sum(-1, dtype=torch.float64)
    return (logits.gather(-1, tokens[:, None]).double() - highest).squeeze(-1) - sums.log()


def _token_presence(prompts: Sequence[Prompt], vocabulary: int) -> Bool[Tensor, "B V"]:
    """True for the tokens that occur in each prompt."""
    marks = np.zeros((len(prompts), vocabulary), dtype=bool)
    for mark, prompt in zip(marks, prompts, strict=True):
        mark[np.asarray(prompt)] = True
    return torch.from_numpy(marks)
