"""`foveal generate RUN`: write text with a trained run."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.data.files.aligned import read_lines
from foveal.generation.options import (
    DEFAULT_BEAM_SEARCH,
    DEFAULT_SAMPLING,
    NO_ATTENTION_MAP,
    AttentionMapOptions,
    BeamSearchOptions,
    SamplingOptions,
    check_generation_options,
)
from foveal.tasks.draw.generate import write_images
from foveal.tasks.language_model_generation import print_continuations
from foveal.tasks.masked_lm_generation import fill_gaps
from foveal.tasks.sequence_generation import print_targets, print_targets_of_data
from foveal.tasks.session import load

FILE_INPUTS = {
    "captioning": "pictures",
    "video-captioning": "clips",
    "speech-recognition": "recordings",
    "vqa-generate": "questions about pictures",
}
"""What is read by runs that write of something other than texts."""


def generate(
    run: Path,
    /,
    *,
    prompt: str | None = None,
    input_: Annotated[Path | None, Parameter(name="--input")] = None,
    tokens: int | None = None,
    sampling_options: SamplingOptions = DEFAULT_SAMPLING,
    beam_options: BeamSearchOptions = DEFAULT_BEAM_SEARCH,
    attention_options: AttentionMapOptions = NO_ATTENTION_MAP,
    out: Path | None = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write text with RUN, its target for a source or picture, what a text's gaps hide, or draw images.

    Parameters
    ----------
    run
        The run folder.
    prompt
        The text to continue, a new line if not given; the source to write a target for; or for a masked
        language model a text with [MASK] for each token to guess.
    input_
        A UTF-8 file with one prompt a line; a picture, a recording or a clip, or a folder or zip of them; or
        a table of questions about pictures.
    tokens
        How many tokens to write at most; 500 if not given, or as many as learned positions leave.
    out
        Where --samples drawings go: a .png of all, or a folder to be made with a .png each.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object on standard output.
    """
    check_generation_options(tokens, sampling_options, beam_options, attention_options)
    with SignalHandler():
        loaded = load(run, resolve_device(device))
        plain = sampling_options == DEFAULT_SAMPLING and tokens is None
        if out is not None and loaded.config.task.name != "image-generation":
            raise UserError(f"--out: {run} writes text, on standard output; leave it out")
        match loaded.config.task.name:
            case "language-model":
                if attention_options.attention is not None:
                    raise UserError(f"--attention: {run} is a language model, which reads no source")
                print_continuations(
                    loaded, _read_prompts(prompt, input_), tokens, sampling_options, beam_options, json
                )
            case (
                "translation"
                | "transduction"
                | "captioning"
                | "video-captioning"
                | "speech-recognition"
                | "vqa-generate" as task
            ):
                if sampling_options.stop or tokens is not None:
                    raise UserError(f"{run} writes until a target ends: leave out --stop and --tokens")
                if task not in FILE_INPUTS:
                    print_targets(
                        loaded,
                        _read_prompts(prompt, input_),
                        sampling_options,
                        beam_options,
                        attention_options,
                        json,
                    )
                elif input_ is None or prompt is not None:
                    raise UserError(f"{run} reads {FILE_INPUTS[task]}: give --input PATH, no --prompt")
                else:
                    print_targets_of_data(
                        loaded, input_, sampling_options, beam_options, attention_options, json
                    )
            case "masked-lm":
                if (
                    not plain
                    or attention_options != NO_ATTENTION_MAP
                    or beam_options != BeamSearchOptions(best=beam_options.best)
                ):
                    raise UserError(f"{run} fills gaps: leave out all but --prompt, --input, --best")
                fill_gaps(loaded, _read_prompts(prompt, input_), beam_options.best, json)
            case "image-generation":
                given = SamplingOptions(seed=sampling_options.seed, samples=sampling_options.samples)
                others = (prompt, input_, tokens, sampling_options, beam_options, attention_options.head)
                if others != (None, None, None, given, DEFAULT_BEAM_SEARCH, None):
                    raise UserError(f"{run} draws: leave out all but --samples, --seed, --out, --attention")
                write_images(
                    loaded,
                    sampling_options.samples,
                    sampling_options.seed,
                    out,
                    attention_options.attention,
                    json,
                )
            case other:
                raise UserError(f"{run} answers what it reads (task {other}): foveal predict {run} DATA")


def _read_prompts(prompt: str | None, path: Path | None) -> list[str]:
    if path is None:
        return [prompt or ""]
    if prompt is not None:
        raise UserError("--prompt and --input can't both be given")
    prompts = []
    for line in read_lines(path):
        if line.reason:
            raise UserError(f"{path}, line {line.number}: {line.reason}")
        prompts.append(line.text.rstrip("\r\n"))
    if not prompts:
        raise UserError(f"{path}: no prompts: write one a line")
    return prompts
