"""`foveal generate` with a language model: texts that go on from prompts."""

import sys
import time
from typing import Any

from foveal.core.errors import UserError
from foveal.generation.options import DEFAULT_BEAM_SEARCH, BeamSearchOptions, SamplingOptions, generation_json
from foveal.generation.text_stream import GeneratedText, beam_text, encode_prompt, generate_text
from foveal.tasks.language_model import token_unit
from foveal.tasks.session import LoadedRun
from foveal.ui.console import STDERR, print_json

DEFAULT_MAX_TOKENS = 500


def print_continuations(
    loaded: LoadedRun,
    prompts: list[str],
    tokens: int | None,
    sampling_options: SamplingOptions,
    beam_options: BeamSearchOptions,
    json: bool,
) -> None:
    """Print what each prompt goes on with: a single text as it comes, others one after the other."""
    if not beam_options.beam and beam_options != DEFAULT_BEAM_SEARCH:
        raise UserError("--best and --length-penalty belong to --beam N: give it too, or leave them out")
    if tokens is None:
        tokens = _default_max_tokens(loaded, prompts)
    live = not (json or beam_options.beam or len(prompts) * sampling_options.samples > 1)
    began = time.perf_counter()
    if beam_options.beam:
        found = _beam_search(loaded, prompts, tokens, beam_options)
    else:
        found = _sample(loaded, prompts, tokens, sampling_options, live)
    seconds = time.perf_counter() - began
    count = sum(len(one.tokens) for texts in found for one in texts)
    if json:
        print_json(generation_json(loaded, _samples_json(prompts, found), count, seconds))
        return
    if not live:
        _print_texts(prompts, found)
    unit = token_unit(loaded.processor.kind)
    STDERR.print(f"{count:,} {unit} at {count / seconds:,.0f} a second", style="dim")


def _default_max_tokens(loaded: LoadedRun, prompts: list[str]) -> int:
    """As many tokens as are written by default, where learned positions leave so many after the prompts."""
    if loaded.model.limit is None:
        return DEFAULT_MAX_TOKENS
    longest = max(len(encode_prompt(loaded.processor, prompt)) for prompt in prompts)
    return max(1, min(DEFAULT_MAX_TOKENS, loaded.model.limit - longest + 1))  # the last token is not read


def _beam_search(
    loaded: LoadedRun, prompts: list[str], tokens: int, beam_options: BeamSearchOptions
) -> list[list[GeneratedText]]:
    return beam_text(
        loaded.model,
        loaded.processor,
        prompts,
        tokens,
        beam=beam_options.beam,
        best=beam_options.best,
        alpha=beam_options.length_penalty or 0.0,
    )


def _sample(
    loaded: LoadedRun, prompts: list[str], tokens: int, sampling_options: SamplingOptions, live: bool
) -> list[list[GeneratedText]]:
    """The texts of each prompt; a single one is printed while it is written if `live`."""
    samples, whole = sampling_options.samples, dict[int, GeneratedText]()
    heading = prompts[0]
    pieces = generate_text(
        loaded.model,
        loaded.processor,
        prompts,
        tokens,
        sampling_options.sampling,
        samples=samples,
        stops=sampling_options.stop,
    )
    for piece in pieces:
        if live:
            _write_stdout(heading + piece.text)
            heading = ""
        if piece.finished is not None:
            whole[piece.row] = piece.finished
    if live:
        _write_stdout("\n")
    return [[whole[i * samples + j] for j in range(samples)] for i in range(len(prompts))]


def _print_texts(prompts: list[str], continuations: list[list[GeneratedText]]) -> None:
    for prompt, texts in zip(prompts, continuations, strict=True):
        for number, one in enumerate(texts, 1):
            if len(continuations) * len(texts) > 1:
                STDERR.rule(f"{number}  (log p = {one.log_probability:.2f})", align="left", style="dim")
            _write_stdout(f"{prompt}{one.text}\n")


def _write_stdout(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _samples_json(prompts: list[str], continuations: list[list[GeneratedText]]) -> list[dict[str, Any]]:
    return [
        {
            "prompt": prompt,
            "text": one.text,
            "log_probability": one.log_probability,
            "reason": one.finish_reason,
        }
        for prompt, several in zip(prompts, continuations, strict=True)
        for one in several
    ]
