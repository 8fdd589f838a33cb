"""`foveal generate RUN`: write text with a trained run."""

import sys
import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foveal.build import Loaded, load
from foveal.build.language import unit_of
from foveal.build.writing import BEAM
from foveal.commands.console import ERROR, result_line
from foveal.commands.targets import write_targets
from foveal.core.errors import UserError
from foveal.core.runtime import choose_device
from foveal.data.text import read_text
from foveal.generation.sampling import Sampling
from foveal.generation.text import Generation, beam_text, generate_text, prompt_tokens
from foveal.tasks.sequence import SequenceTask
from foveal.training.interrupt import Signals

DEFAULT = Sampling(temperature=0.8)
TOKENS = 500


def generate(
    run: Path,
    /,
    *,
    prompt: str | None = None,
    input_: Annotated[Path | None, Parameter(name="--input")] = None,
    tokens: int | None = None,
    temperature: float = DEFAULT.temperature,
    top_k: int = DEFAULT.top_k,
    top_p: float = DEFAULT.top_p,
    repetition_penalty: float = DEFAULT.repetition_penalty,
    stop: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    seed: int = DEFAULT.seed,
    samples: int = 1,
    beam: int = 0,
    best: int = 1,
    length_penalty: float | None = None,
    attention: Path | None = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write text with RUN, or its target for a source (a translation). With --json one object at the end.

    Parameters
    ----------
    run
        The run folder.
    prompt
        The text to continue, a new line if not given; or the source to write a target for.
    input_
        A UTF-8 file with one prompt a line.
    tokens
        How many tokens to write at most; 500 if not given, or as many as learned positions leave.
    temperature
        Below 1 likelier tokens are preferred; 0 always takes the likeliest (greedy).
    top_k
        Draw from this many likeliest tokens; 0 means all.
    top_p
        Draw from the smallest set of likeliest tokens with this probability.
    repetition_penalty
        Above 1 tokens that were there before become less likely.
    stop
        End before this text; may be given several times.
    seed
        Another seed gives other samples; the same gives the same.
    samples
        How many texts to write for each prompt.
    beam
        Search with this many hypotheses instead of sampling.
    best
        How many of the beam's hypotheses to show.
    length_penalty
        The beam's preference for longer texts (alpha of Wu et al. 2016); 0 if not given, 1 for targets.
    attention
        Write what was read of the source at each word: a .png, .html or .json.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object on standard output.
    """
    prompts = _prompts(prompt, input_)
    sampling = Sampling(temperature, top_k, top_p, repetition_penalty, seed)
    if beam and (sampling != DEFAULT or stop or samples > 1):
        raise UserError(
            "--beam searches for the likeliest texts and draws nothing: with it leave out --temperature, "
            "--top-k, --top-p, --repetition-penalty, --seed, --stop and --samples (--best N shows several)"
        )
    if sampling.greedy and samples > 1:
        raise UserError("--temperature 0 always writes the same text: leave out --samples, or raise it")
    if (tokens is not None and tokens < 1) or samples < 1 or beam < 0 or best < 1:
        raise UserError("--tokens, --samples and --best must be at least 1, --beam at least 0")
    with Signals():
        loaded = load(run, choose_device(device))
        if isinstance(loaded.task, SequenceTask):
            if loaded.config.task.name == "transcribe":
                raise UserError(f"{run} transcribes recordings: foveal predict {run} FOLDER")
            if sampling != DEFAULT or stop or samples > 1 or tokens is not None:
                raise UserError(
                    f"{run} writes the likeliest text for a source by beam search: leave out all but "
                    "--prompt, --input, --beam, --best, --length-penalty, --attention"
                )
            write_targets(loaded, prompts, beam or BEAM, best, length_penalty, attention, json)
            return
        if not beam and (best > 1 or length_penalty is not None):
            raise UserError("--best and --length-penalty belong to --beam N: give it too, or leave them out")
        if attention is not None:
            raise UserError(f"--attention: {run} is a language model, which reads no source")
        if tokens is None:
            tokens = _room(loaded, prompts)
        began = time.perf_counter()
        if beam:
            found = beam_text(
                loaded.model,
                loaded.inputs,
                prompts,
                tokens,
                beam=beam,
                best=best,
                alpha=length_penalty or 0.0,
            )
            if not json:
                _print_found(prompts, found)
        else:
            found = _sample(loaded, prompts, tokens, sampling, samples, stop, show=not json)
        seconds = time.perf_counter() - began
    written = sum(len(one.tokens) for texts in found for one in texts)
    if json:
        result_line(_result(run, prompts, found, seconds))
    else:
        unit = unit_of(loaded.inputs.kind)
        ERROR.print(f"{written:,} {unit} at {written / seconds:,.0f} a second", style="dim")


def _prompts(prompt: str | None, path: Path | None) -> list[str]:
    if path is None:
        return [prompt or ""]
    if prompt is not None:
        raise UserError("--prompt and --input can't both be given")
    prompts = "".join(read_text(path)).splitlines()
    if not prompts:
        raise UserError(f"{path}: no prompts: write one a line")
    return prompts


def _room(loaded: Loaded, prompts: list[str]) -> int:
    """As many tokens as are written by default, where learned positions leave so many after the prompts."""
    if loaded.model.limit is None:
        return TOKENS
    longest = max(len(prompt_tokens(loaded.inputs, prompt)) for prompt in prompts)
    return max(1, min(TOKENS, loaded.model.limit - longest + 1))  # the last token is not read


def _sample(
    loaded: Loaded,
    prompts: list[str],
    tokens: int,
    sampling: Sampling,
    samples: int,
    stops: tuple[str, ...],
    show: bool,
) -> list[list[Generation]]:
    """Every row's text; shown as it comes if there is one row, else one after the other."""
    rows = len(prompts) * samples
    whole: dict[int, Generation] = {}
    heading = prompts[0]
    pieces = generate_text(
        loaded.model, loaded.inputs, prompts, tokens, sampling, samples=samples, stops=stops
    )
    for piece in pieces:
        if show and rows == 1:
            _write(heading + piece.text)
            heading = ""
        if piece.whole is not None:
            whole[piece.row] = piece.whole
    found = [[whole[i * samples + j] for j in range(samples)] for i in range(len(prompts))]
    if show and rows == 1:
        _write("\n")
    elif show:
        _print_found(prompts, found)
    return found


def _print_found(prompts: list[str], found: list[list[Generation]]) -> None:
    for prompt, texts in zip(prompts, found, strict=True):
        for number, one in enumerate(texts, 1):
            if len(found) * len(texts) > 1:
                ERROR.rule(f"{number}  (log p = {one.log_probability:.2f})", align="left", style="dim")
            _write(f"{prompt}{one.text}\n")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _result(run: Path, prompts: list[str], found: list[list[Generation]], seconds: float) -> dict[str, Any]:
    texts = [
        {"prompt": prompt, "text": one.text, "log_probability": one.log_probability, "reason": one.reason}
        for prompt, several in zip(prompts, found, strict=True)
        for one in several
    ]
    written = sum(len(one.tokens) for several in found for one in several)
    return {
        "run": str(run),
        "samples": texts,
        "tokens": written,
        "seconds": seconds,
        "tokens_per_second": written / seconds,
    }
