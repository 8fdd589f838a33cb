"""`foveal generate` with a language model: texts that go on from prompts."""

import sys
import time
from typing import Any

from foveal.core.errors import UserError
from foveal.generation.options import SEARCHING, Drawing, Searching, written
from foveal.generation.text_stream import Generation, beam_text, generate_text, prompt_tokens
from foveal.tasks.language_model import unit_of
from foveal.tasks.session import Loaded
from foveal.ui.console import ERROR, result_line

TOKENS = 500


def write_continuations(
    loaded: Loaded, prompts: list[str], tokens: int | None, drawing: Drawing, searching: Searching, json: bool
) -> None:
    """Print what each prompt goes on with: a single text as it comes, others one after the other."""
    if not searching.beam and searching != SEARCHING:
        raise UserError("--best and --length-penalty belong to --beam N: give it too, or leave them out")
    if tokens is None:
        tokens = _room(loaded, prompts)
    live = not (json or searching.beam or len(prompts) * drawing.samples > 1)
    began = time.perf_counter()
    if searching.beam:
        found = _searched(loaded, prompts, tokens, searching)
    else:
        found = _drawn(loaded, prompts, tokens, drawing, live)
    seconds = time.perf_counter() - began
    count = sum(len(one.tokens) for texts in found for one in texts)
    if json:
        result_line(written(loaded, _samples(prompts, found), count, seconds))
        return
    if not live:
        _print_found(prompts, found)
    unit = unit_of(loaded.inputs.kind)
    ERROR.print(f"{count:,} {unit} at {count / seconds:,.0f} a second", style="dim")


def _room(loaded: Loaded, prompts: list[str]) -> int:
    """As many tokens as are written by default, where learned positions leave so many after the prompts."""
    if loaded.model.limit is None:
        return TOKENS
    longest = max(len(prompt_tokens(loaded.inputs, prompt)) for prompt in prompts)
    return max(1, min(TOKENS, loaded.model.limit - longest + 1))  # the last token is not read


def _searched(
    loaded: Loaded, prompts: list[str], tokens: int, searching: Searching
) -> list[list[Generation]]:
    return beam_text(
        loaded.model,
        loaded.inputs,
        prompts,
        tokens,
        beam=searching.beam,
        best=searching.best,
        alpha=searching.length_penalty or 0.0,
    )


def _drawn(
    loaded: Loaded, prompts: list[str], tokens: int, drawing: Drawing, live: bool
) -> list[list[Generation]]:
    """The texts of each prompt; a single one is printed while it is written if `live`."""
    samples, whole = drawing.samples, dict[int, Generation]()
    heading = prompts[0]
    pieces = generate_text(
        loaded.model,
        loaded.inputs,
        prompts,
        tokens,
        drawing.sampling,
        samples=samples,
        stops=drawing.stop,
    )
    for piece in pieces:
        if live:
            _write(heading + piece.text)
            heading = ""
        if piece.whole is not None:
            whole[piece.row] = piece.whole
    if live:
        _write("\n")
    return [[whole[i * samples + j] for j in range(samples)] for i in range(len(prompts))]


def _print_found(prompts: list[str], found: list[list[Generation]]) -> None:
    for prompt, texts in zip(prompts, found, strict=True):
        for number, one in enumerate(texts, 1):
            if len(found) * len(texts) > 1:
                ERROR.rule(f"{number}  (log p = {one.log_probability:.2f})", align="left", style="dim")
            _write(f"{prompt}{one.text}\n")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _samples(prompts: list[str], found: list[list[Generation]]) -> list[dict[str, Any]]:
    return [
        {"prompt": prompt, "text": one.text, "log_probability": one.log_probability, "reason": one.reason}
        for prompt, several in zip(prompts, found, strict=True)
        for one in several
    ]
