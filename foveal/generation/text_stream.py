"""From prompts to text as it streams: a tokenizer, the step loop, and scissors for stop strings."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from foveal.core.errors import UserError
from foveal.core.memory import Memory
from foveal.generation.beam_search import beam_search
from foveal.generation.decoding_loop import CausalDecoder, FinishReason, generate
from foveal.generation.sampling import Sampling


@runtime_checkable
class TokenStreamDecoder(Protocol):
    """Tokens to text as they come; what is not yet a whole character is held back until `flush`."""

    def push(self, token: int, /) -> str: ...

    def flush(self) -> str: ...


@runtime_checkable
class StreamingTokenizer(Protocol):
    def encode(self, text: str, /) -> npt.NDArray[np.integer[Any]]: ...

    def decode(self, tokens: Sequence[int], /) -> str: ...

    def decoder(self) -> TokenStreamDecoder: ...


@dataclass(frozen=True)
class GeneratedText:
    """A finished continuation.

    `tokens` is every token drawn and `log_probability` their sum in nats under the model; `text` leaves out
    an end token and is cut before a stop string.
    """

    text: str
    tokens: tuple[int, ...]
    log_probability: float
    finish_reason: FinishReason


class TextChunk(NamedTuple):
    """Text of `row` = prompt * samples + sample that will not change any more; the last brings the whole."""

    row: int
    text: str
    finished: GeneratedText | None


class StopStringFilter:
    """Text in, text out, cut before the first stop string; what might be the start of one is `pending`.

    Which string ends first decides, so the cut does not depend on how the text is split into tokens.
    """

    def __init__(self, stops: Sequence[str]):
        if not all(stops):
            raise UserError("a stop string is empty: give the text at which to stop")
        self.stops = stops
        self.pending = ""

    def push(self, text: str) -> tuple[str, bool]:
        """The text that is sure to stay, and whether a stop string was found after it."""
        self.pending += text
        found = [(at + len(stop), at) for stop in self.stops if (at := self.pending.find(stop)) >= 0]
        if found:
            return self.pending[: min(found)[1]], True
        starts = (n for stop in self.stops for n in range(len(stop)) if self.pending.endswith(stop[:n]))
        sure = len(self.pending) - max(starts, default=0)
        text, self.pending = self.pending[:sure], self.pending[sure:]
        return text, False


class _RowText:
    """The text of one row so far."""

    def __init__(self, tokenizer: StreamingTokenizer, stops: Sequence[str]):
        self.decoder, self.scissors = tokenizer.decoder(), StopStringFilter(stops)
        self.new_text = ""
        self.pieces: list[str] = []
        self.tokens: list[int] = []
        self.log_probability = 0.0

    def push(self, token: int) -> bool:
        """Add a token's text; True if that completes a stop string."""
        self.new_text, stopped = self.scissors.push(self.decoder.push(token))
        return stopped

    def close(self) -> bool:
        """Add what was held back; True if that completes a stop string."""
        rest, stopped = self.scissors.push(self.decoder.flush())
        self.new_text += rest if stopped else rest + self.scissors.pending
        return stopped

    def take_new_text(self) -> str:
        fresh, self.new_text = self.new_text, ""
        self.pieces.append(fresh)
        return fresh


def generate_text(
    head: CausalDecoder,
    tokenizer: StreamingTokenizer,
    prompts: Sequence[str],
    max_new_tokens: int,
    sampling: Sampling,
    *,
    samples: int = 1,
    memory: Memory | None = None,
    end_tokens: Collection[int] = (),
    stops: Sequence[str] = (),
    chunk: int = 512,
) -> Iterator[TextChunk]:
    """Continue each prompt `samples` times by at most `max_new_tokens` tokens, in pieces as they come.

    An empty prompt starts from `first_tokens`. Joined, a row's pieces are its `GeneratedText.text`.
    Raises `UserError` as `generate` does, for an empty stop string, and for what the tokenizer refuses.
    """
    rows = [_RowText(tokenizer, stops) for _ in range(len(prompts) * samples)]
    written = generate(
        head,
        [encode_prompt(tokenizer, prompt) for prompt in prompts],
        prompts,
        max_new_tokens,
        sampling,
        samples=samples,
        memory=memory,
        end_tokens=end_tokens,
        stop=lambda row, token: rows[row].push(token),
        chunk=chunk,
    )
    for number, token, log_probability, reason in written:
        row = rows[number]
        row.tokens.append(token)
        row.log_probability += log_probability
        whole = None
        if reason in ("limit", "end") and row.close():
            reason = "stop"
        text = row.take_new_text()
        if reason is not None:
            whole = GeneratedText("".join(row.pieces), tuple(row.tokens), row.log_probability, reason)
        if text or whole:
            yield TextChunk(number, text, whole)


def collect_texts(pieces: Iterable[TextChunk]) -> list[GeneratedText]:
    """All of `generate_text`, in the order of its rows."""
    finished = {piece.row: piece.finished for piece in pieces if piece.finished is not None}
    return [finished[row] for row in sorted(finished)]


def beam_text(
    head: CausalDecoder,
    tokenizer: StreamingTokenizer,
    prompts: Sequence[str],
    max_new_tokens: int,
    *,
    beam: int,
    best: int = 1,
    alpha: float = 0.0,
    memory: Memory | None = None,
    end_tokens: Collection[int] = (),
    chunk: int = 512,
) -> list[list[GeneratedText]]:
    """`beam_search` from prompts to text: the `best` continuations of each prompt."""
    tokens = [encode_prompt(tokenizer, prompt) for prompt in prompts]
    found = beam_search(
        head,
        tokens,
        max_new_tokens,
        beam=beam,
        best=best,
        alpha=alpha,
        memory=memory,
        end_tokens=end_tokens,
        chunk=chunk,
    )
    return [
        [
            GeneratedText(
                tokenizer.decode([token for token in hypothesis.tokens if token not in end_tokens]),
                hypothesis.tokens,
                hypothesis.log_probability,
                hypothesis.finish_reason,
            )
            for hypothesis in hypotheses
        ]
        for hypotheses in found
    ]


def encode_prompt(tokenizer: StreamingTokenizer, prompt: str) -> Sequence[int] | npt.NDArray[np.integer[Any]]:
    """The prompt's tokens; an empty one starts from a newline, or from token 0 if there is no newline."""
    if prompt:
        return tokenizer.encode(prompt)
    try:
        found = tokenizer.encode("\n")
    except UserError:
        return [0]
    return found if len(found) else [0]  # words know no line ends
