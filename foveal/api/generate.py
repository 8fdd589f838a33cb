"""`foveal.generate` and `foveal.stream`: continuations by any model with the contract of a decoder."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from foveal.api.arguments import one_or_several
from foveal.api.errors import plain_errors
from foveal.core.errors import UserError
from foveal.core.memory import Memory
from foveal.generation.decoding_loop import CausalDecoder
from foveal.generation.options import (
    NO_ATTENTION_MAP,
    BeamSearchOptions,
    SamplingOptions,
    check_generation_options,
)
from foveal.generation.text_stream import (
    GeneratedText,
    StreamingTokenizer,
    TextChunk,
    beam_text,
    collect_texts,
    generate_text,
)

CONTRACT = {
    "init_state": "init_state(memory, batch, capacity), which returns the state at the beginning",
    "project": "project(features), which returns the logits of the next token",
    "parameters": "parameters, as a torch.nn.Module",
}
"""What a model needs for generation beside being called."""
Prompts = str | Tensor | NDArray[np.integer[Any]] | Sequence[str] | Sequence[int] | Sequence[Sequence[int]]


class TokenIds:
    """Stands for a tokenizer: the text of tokens are their ids, separated by spaces."""

    def encode(self, text: str) -> NDArray[np.int64]:
        return np.array(text.split(), dtype=np.int64)

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))

    def decoder(self) -> "TokenIds":
        return self

    def push(self, token: int) -> str:
        """Return the text of the next token."""
        return f"{token} "

    def flush(self) -> str:
        return ""


@plain_errors
def generate(
    model: Any,
    prompts: Prompts,
    *,
    tokenizer: StreamingTokenizer | None = None,
    tokens: int = 100,
    temperature: float | None = None,
    top_k: int = 0,
    top_p: float = 1.0,
    repetition_penalty: float = 1.0,
    stop: str | Sequence[str] = (),
    seed: int = 0,
    samples: int = 1,
    beam: int = 0,
    best: int = 1,
    length_penalty: float = 0.0,
    memory: Memory | None = None,
    end_tokens: Collection[int] = (),
) -> list[GeneratedText]:
    """Return continuations of the prompts, by sampling, or by beam search if `beam` is not 0.

    `model` is any module with the contract of a decoder, or has such a module as `model.head`:

        state = model.init_state(memory, batch, capacity)     tensors, rows first, in dicts and tuples
        features, state, aux = model(tokens, state, lengths)  tokens (B, T), features (B, T, D)
        logits = model.project(features)                      (B, V)

    `lengths` (B,) are None, or those of rows with padding; the state is that after each row's own length.
    `memory` is handed to `init_state`, and `capacity` is the number of tokens to come.

    With a `tokenizer`, such as `run.processor` of a language model, prompts are texts. Without one they are
    sequences of token ids, and the text of a continuation are its ids.

    First in the list are the continuations of the first prompt: `samples`, or the `best` of the beam. Each
    has `text`, `tokens`, `log_probability` in nats, and `finish_reason`: it ends after `tokens` tokens
    (limit), before a text in `stop`, or with a token in `end_tokens` (end). The other options are those of
    `Run.generate`.

    Example:

        >>> model = foveal.create_model("gru", vocabulary=100, settings={"model.width": 16})
        >>> first, second = foveal.generate(model, [[1, 2, 3]], tokens=5, samples=2)
        >>> len(first.tokens), first.finish_reason
        (5, 'limit')

    Raises: UserError: the model lacks a part of the contract, a prompt is empty, or an option does not fit.
    Raises: RunFailed: the logits are not finite.
    """
    head = _decoder(model)
    texts = _as_texts(prompts, tokenizer, getattr(head, "vocabulary", None))
    sampling = SamplingOptions(
        temperature, top_k, top_p, repetition_penalty, one_or_several(stop), seed, samples
    )
    search = BeamSearchOptions(beam, best, length_penalty or None)
    check_generation_options(tokens, sampling, search, NO_ATTENTION_MAP)
    tokenizer = tokenizer or TokenIds()
    with _evaluating(head):
        if beam:
            groups = beam_text(
                head,
                tokenizer,
                texts,
                tokens,
                beam=beam,
                best=best,
                alpha=length_penalty,
                memory=memory,
                end_tokens=end_tokens,
            )
            return [text for group in groups for text in group]
        chunks = generate_text(
            head,
            tokenizer,
            texts,
            tokens,
            sampling.sampling,
            samples=samples,
            memory=memory,
            end_tokens=end_tokens,
            stops=sampling.stop,
        )
        return collect_texts(chunks)


@plain_errors
def stream(
    model: Any,
    prompts: Prompts,
    *,
    tokenizer: StreamingTokenizer | None = None,
    tokens: int = 100,
    temperature: float | None = None,
    top_k: int = 0,
    top_p: float = 1.0,
    repetition_penalty: float = 1.0,
    stop: str | Sequence[str] = (),
    seed: int = 0,
    samples: int = 1,
    memory: Memory | None = None,
    end_tokens: Collection[int] = (),
) -> Iterator[TextChunk]:
    """Return an iterator over the continuations that `generate` samples, piece by piece as they are made.

    A piece has the `row`, in the order of the results of `generate`, its `text`, and, if it is the last of
    its row, the whole continuation as `finished`.

    Example:

        >>> model = foveal.create_model("gru", vocabulary=100, settings={"model.width": 16})
        >>> pieces = [piece.text for piece in foveal.stream(model, [1, 2, 3], tokens=3)]
        >>> len(pieces)
        3

    Raises: UserError: the model lacks a part of the contract, a prompt is empty, or an option does not fit.
    Raises: RunFailed: the logits are not finite.
    """
    head = _decoder(model)
    texts = _as_texts(prompts, tokenizer, getattr(head, "vocabulary", None))
    sampling = SamplingOptions(
        temperature, top_k, top_p, repetition_penalty, one_or_several(stop), seed, samples
    )
    check_generation_options(tokens, sampling, BeamSearchOptions(), NO_ATTENTION_MAP)
    chunks = generate_text(
        head,
        tokenizer or TokenIds(),
        texts,
        tokens,
        sampling.sampling,
        samples=samples,
        memory=memory,
        end_tokens=end_tokens,
        stops=sampling.stop,
    )
    return _while_evaluating(head, chunks)


def _decoder(model: Any) -> CausalDecoder:
    """Return the model, or its head, as a decoder.

    Raises: UserError: neither keeps the contract.
    """
    head = model if isinstance(model, CausalDecoder) else getattr(model, "head", model)
    missing = [words for name, words in CONTRACT.items() if not hasattr(head, name)]
    if missing:
        raise UserError(f"{type(head).__name__} can't generate: it lacks {missing[0]}")
    decoder: CausalDecoder = head
    return decoder


def _as_texts(prompts: Prompts, tokenizer: StreamingTokenizer | None, vocabulary: int | None) -> list[str]:
    """Return the prompts as texts, those of token ids as the ids.

    Raises: UserError: there are none, they are of the wrong kind, or an id is beyond the `vocabulary`.
    """
    several: Any = prompts.tolist() if isinstance(prompts, Tensor) else prompts
    if isinstance(several, str) or (len(several) and isinstance(several[0], int | np.integer)):
        several = [several]
    if not len(several):
        raise UserError("no prompts: give a text or token ids to go on from")
    if tokenizer is not None:
        if not all(isinstance(prompt, str) for prompt in several):
            raise UserError("prompts must be texts with a tokenizer; leave the tokenizer out for token ids")
        return list(several)
    if any(isinstance(prompt, str) for prompt in several):
        raise UserError("prompts of text need a tokenizer: foveal.generate(model, prompts, tokenizer=...)")
    for number, prompt in enumerate(several, 1):
        if not len(prompt):
            raise UserError(f"prompt {number} is empty: give at least one token id to go on from")
        if vocabulary is not None and not 0 <= min(prompt) <= max(prompt) < vocabulary:
            raise UserError(
                f"prompt {number} has token ids from {min(prompt)} to {max(prompt)}, and the model knows 0 "
                f"to {vocabulary - 1}"
            )
    return [" ".join(str(int(token)) for token in prompt) for prompt in several]


def _while_evaluating(head: CausalDecoder, chunks: Iterator[TextChunk]) -> Iterator[TextChunk]:
    with _evaluating(head):
        yield from chunks


@contextmanager
def _evaluating(head: CausalDecoder) -> Iterator[None]:
    """Put a module into evaluation mode meanwhile, with all its parts."""
    modules = [*head.modules()] if isinstance(head, nn.Module) else []
    training = [module.training for module in modules]
    try:
        for module in modules:
            module.training = False
        yield
    finally:
        for module, was_training in zip(modules, training, strict=True):
            module.training = was_training
