"""From prompts to text as it streams: a tokenizer, the step loop, and scissors for stop strings."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from foveal.core.errors import UserError
from foveal.core.memory import Memory
from foveal.generation.beam_search import beam_search
from foveal.generation.decoding_loop import Head, Reason, generate
from foveal.generation.sampling import Sampling


@runtime_checkable
class TokenDecoder(Protocol):
    """Tokens to text as they come; what is not yet a whole character is held back until `flush`."""

    def push(self, token: int, /) -> str: ...

    def flush(self) -> str: ...


@runtime_checkable
class Tokenizer(Protocol):
    def encode(self, text: str, /) -> npt.NDArray[np.integer[Any]]: ...

    def decode(self, tokens: Sequence[int], /) -> str: ...

    def decoder(self) -> TokenDecoder: ...


@dataclass(frozen=True)
class Generation:
    """A finished continuation.

    `tokens` is every token drawn and `log_probability` their sum in nats under the model; `text` leaves out
    an end token and is cut before a stop string.
    """

    text: str
    tokens: tuple[int, ...]
    log_probability: float
    reason: Reason


class Piece(NamedTuple):
    """Text of `row` = prompt * samples + sample that will not change any more; the last brings the whole."""

    row: int
    text: str
    whole: Generation | None


class Scissors:
    """Text in, text out, cut before the first stop string; what might be the start of one is `held`.

    Which string ends first decides, so the cut does not depend on how the text is split into tokens.
    """

    def __init__(self, stops: Sequence[str]):
        if not all(stops):
            raise UserError("a stop string is empty: give the text at which to stop")
        self.stops = stops
        self.held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """The text that is sure to stay, and whether a stop string was found after it."""
        self.held += text
        found = [(at + len(stop), at) for stop in self.stops if (at := self.held.find(stop)) >= 0]
        if found:
            return self.held[: min(found)[1]], True
        starts = (n for stop in self.stops for n in range(len(stop)) if self.held.endswith(stop[:n]))
        sure = len(self.held) - max(starts, default=0)
        text, self.held = self.held[:sure], self.held[sure:]
        return text, False


class _Row:
    """The text of one row so far."""

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]):
        self.decoder, self.scissors = tokenizer.decoder(), Scissors(stops)
        self.fresh = ""
        self.pieces: list[str] = []
        self.tokens: list[int] = []
        self.log_probability = 0.0

    def push(self, token: int) -> bool:
        """Add a token's text; True if that completes a stop string."""
        self.fresh, stopped = self.scissors.push(self.decoder.push(token))
        return stopped

    def close(self) -> bool:
        """Add what was held back; True if that completes a stop string."""
        rest, stopped = self.scissors.push(self.decoder.flush())
        self.fresh += rest if stopped else rest + self.scissors.held
        return stopped

    def take(self) -> str:
        fresh, self.fresh = self.fresh, ""
        self.pieces.append(fresh)
        return fresh


def generate_text(
    head: Head,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    limit: int,
    sampling: Sampling,
    *,
    samples: int = 1,
    memory: Memory | None = None,
    end: Collection[int] = (),
    stops: Sequence[str] = (),
    chunk: int = 512,
) -> Iterator[Piece]:
    """Continue each prompt `samples` times by at most `limit` tokens, in pieces as they come.

    An empty prompt starts from `first_tokens`. Joined, a row's pieces are its `Generation.text`.
    Raises `UserError` as `generate` does, for an empty stop string, and for what the tokenizer refuses.
    """
    rows = [_Row(tokenizer, stops) for _ in range(len(prompts) * samples)]
    written = generate(
        head,
        [prompt_tokens(tokenizer, prompt) for prompt in prompts],
        prompts,
        limit,
        sampling,
        samples=samples,
        memory=memory,
        end=end,
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
        text = row.take()
        if reason is not None:
            whole = Generation("".join(row.pieces), tuple(row.tokens), row.log_probability, reason)
        if text or whole:
            yield Piece(number, text, whole)


def collect(pieces: Iterable[Piece]) -> list[Generation]:
    """All of `generate_text`, in the order of its rows."""
    finished = {piece.row: piece.whole for piece in pieces if piece.whole is not None}
    return [finished[row] for row in sorted(finished)]


def beam_text(
    head: Head,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    limit: int,
    *,
    beam: int,
    best: int = 1,
    alpha: float = 0.0,
    memory: Memory | None = None,
    end: Collection[int] = (),
    chunk: int = 512,
) -> list[list[Generation]]:
    """`beam_search` from prompts to text: the `best` continuations of each prompt."""
    tokens = [prompt_tokens(tokenizer, prompt) for prompt in prompts]
    found = beam_search(
        head, tokens, limit, beam=beam, best=best, alpha=alpha, memory=memory, end=end, chunk=chunk
    )
    return [
        [
            Generation(
                tokenizer.decode([token for token in hypothesis.tokens if token not in end]),
                hypothesis.tokens,
                hypothesis.log_probability,
                hypothesis.reason,
            )
            for hypothesis in hypotheses
        ]
        for hypotheses in found
    ]


def prompt_tokens(tokenizer: Tokenizer, prompt: str) -> Sequence[int] | npt.NDArray[np.integer[Any]]:
    """The prompt's tokens; an empty one starts from a newline, or from token 0 if there is no newline."""
    if prompt:
        return tokenizer.encode(prompt)
    try:
        found = tokenizer.encode("\n")
    except UserError:
        return [0]
    return found if len(found) else [0]  # words know no line ends
