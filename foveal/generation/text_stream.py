"""Text generation from prompts, streamed through a tokenizer, with stop strings."""

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
    """Decodes tokens as they arrive. An incomplete character is held back until `flush`."""

    def push(self, token: int, /) -> str: ...

    def flush(self) -> str: ...


@runtime_checkable
class StreamingTokenizer(Protocol):
    """The interface of a tokenizer for streaming."""

    def encode(self, text: str, /) -> npt.NDArray[np.integer[Any]]: ...

    def decode(self, tokens: Sequence[int], /) -> str: ...

    def decoder(self) -> TokenStreamDecoder: ...


@dataclass(frozen=True)
class GeneratedText:
    """A finished continuation.

    `tokens` has every generated token, and `log_probability` is their sum in nats under the model. `text`
    excludes an end token, and is cut before a stop string.
    """

    text: str
    tokens: tuple[int, ...]
    log_probability: float
    finish_reason: FinishReason


class TextChunk(NamedTuple):
    """Final text of `row` = prompt * samples + sample. The last chunk of a row has the complete text in
    `finished`."""

    row: int
    text: str
    finished: GeneratedText | None


class StopStringFilter:
    """Passes text on, cut before the first stop string. `pending` may be the start of a stop string.

    If several stop strings match, the one that ends first decides. The cut therefore does not depend on how
    the text is split into tokens.
    """

    def __init__(self, stops: Sequence[str]):
        if not all(stops):
            raise UserError("a stop string is empty: give a text with at least one character")
        self.stops = stops
        self.pending = ""

    def push(self, text: str) -> tuple[str, bool]:
        """Return the text that is final, and whether a stop string follows it."""
        self.pending += text
        matches = [
            (start + len(stop), start) for stop in self.stops if (start := self.pending.find(stop)) >= 0
        ]
        if matches:
            return self.pending[: min(matches)[1]], True
        starts = (n for stop in self.stops for n in range(len(stop)) if self.pending.endswith(stop[:n]))
        final_length = len(self.pending) - max(starts, default=0)
        text, self.pending = self.pending[:final_length], self.pending[final_length:]
        return text, False


class _RowText:
    """The text of one row so far."""

    def __init__(self, tokenizer: StreamingTokenizer, stops: Sequence[str]):
        self.decoder, self.stop_filter = tokenizer.decoder(), StopStringFilter(stops)
        self.new_text = ""
        self.pieces: list[str] = []
        self.tokens: list[int] = []
        self.log_probability = 0.0

    def push(self, token: int) -> bool:
        """Add the text of a token. Return True if the token completes a stop string."""
        self.new_text, stopped = self.stop_filter.push(self.decoder.push(token))
        return stopped

    def close(self) -> bool:
        """Add the text that was held back. Return True if this text completes a stop string."""
        rest, stopped = self.stop_filter.push(self.decoder.flush())
        self.new_text += rest if stopped else rest + self.stop_filter.pending
        return stopped

    def take_new_text(self) -> str:
        """Return the text since the last call."""
        text, self.new_text = self.new_text, ""
        self.pieces.append(text)
        return text


def generate_text(
    head: CausalDecoder,
    tokenizer: StreamingTokenizer,
    prompts: Sequence[str],
    max_new_tokens: int,
    sampling: Sampling,
    *,
    samples: int = 1,
    first_sample: int = 0,
    memory: Memory | None = None,
    end_tokens: Collection[int] = (),
    stops: Sequence[str] = (),
    chunk: int = 512,
) -> Iterator[TextChunk]:
    """Continue each prompt `samples` times by at most `max_new_tokens` tokens, and yield the text in chunks.

    `encode_prompt` defines how an empty prompt starts. The chunks of a row, joined, are its
    `GeneratedText.text`.

    Raises: UserError: as in `generate`; a stop string is empty; or the tokenizer rejects a prompt.
    """
    rows = [_RowText(tokenizer, stops) for _ in range(len(prompts) * samples)]
    generated = generate(
        head,
        [encode_prompt(tokenizer, prompt) for prompt in prompts],
        prompts,
        max_new_tokens,
        sampling,
        samples=samples,
        first_sample=first_sample,
        memory=memory,
        end_tokens=end_tokens,
        stop=lambda row, token: rows[row].push(token),
        chunk=chunk,
    )
    for number, token, log_probability, reason in generated:
        row = rows[number]
        row.tokens.append(token)
        row.log_probability += log_probability
        finished = None
        if reason in ("limit", "end") and row.close():
            reason = "stop"
        text = row.take_new_text()
        if reason is not None:
            finished = GeneratedText("".join(row.pieces), tuple(row.tokens), row.log_probability, reason)
        if text or finished:
            yield TextChunk(number, text, finished)


def collect_texts(chunks: Iterable[TextChunk]) -> list[GeneratedText]:
    """Return all texts of `generate_text`, in the order of the rows."""
    finished = {chunk.row: chunk.finished for chunk in chunks if chunk.finished is not None}
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
    """Run `beam_search` from prompts to text. Return the `best` continuations of each prompt."""
    tokens = [encode_prompt(tokenizer, prompt) for prompt in prompts]
    results = beam_search(
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
        for hypotheses in results
    ]


def encode_prompt(tokenizer: StreamingTokenizer, prompt: str) -> Sequence[int] | npt.NDArray[np.integer[Any]]:
    """Return the tokens of the prompt, behind those of a tokenizer's `prompt_start`. Without these, an empty
    prompt starts from a newline, or from token 0 if there is no newline token."""
    if start := getattr(tokenizer, "prompt_start", ()):
        return np.append(np.array(start, np.int64), tokenizer.encode(prompt))
    if prompt:
        return tokenizer.encode(prompt)
    try:
        newline = tokenizer.encode("\n")
    except UserError:
        return [0]
    return newline if len(newline) else [0]  # tokenizers of words have no newline
