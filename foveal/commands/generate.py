"""`foveal generate RUN`: generate text or images with a trained run."""

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from foveal.api.few_shot import few_shot_prompt, pair_columns
from foveal.api.generation import ArtifactWriter, collect_events
from foveal.commands.ranks import launch_to_use, working_together
from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.core.whole_number import WholeNumber
from foveal.generation.events import Artifact, Chunk, GenerationEvent, Output
from foveal.generation.options import (
    DEFAULT_BEAM_SEARCH,
    DEFAULT_SAMPLING,
    NO_ATTENTION_MAP,
    AttentionMapOptions,
    BeamSearchOptions,
    SamplingOptions,
    check_generation_options,
)
from foveal.generation.request import GenerateRequest
from foveal.tasks.session import load
from foveal.ui.console import STDERR, log, print_json, write_exact
from foveal.ui.progress_bar import ProgressBar


def generate(
    run: Path,
    /,
    *columns: str,
    prompt: str | None = None,
    input_: Annotated[Path | None, Parameter(name="--input")] = None,
    shots: Path | None = None,
    template: str | None = None,
    tokens: WholeNumber | None = None,
    sampling_options: SamplingOptions = DEFAULT_SAMPLING,
    beam_options: BeamSearchOptions = DEFAULT_BEAM_SEARCH,
    attention_options: AttentionMapOptions = NO_ATTENTION_MAP,
    out: Path | None = None,
    device: str = "auto",
    ranks: int | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Generate with RUN: the continuation of a text, a target for a source, masked words, or images.

    Parameters
    ----------
    run
        The run folder.
    columns
        Names of the columns of --shots, such as data.source=wrong data.target=right.
    prompt
        The text to continue, a new line if not given; the source to write a target for; or for a masked
        language model a text with [MASK] for each token to predict.
    input_
        A UTF-8 file with one prompt per line; an image, a recording or a clip, or a folder or zip of them; or
        a table of questions about images.
    shots
        A table of examples, with columns source and target, that a language model reads before each prompt.
    template
        The text of an example, with {source} and {target}; \\n is a line break.
    tokens
        The largest number of tokens to generate; if not given 500, or as many as learned positions allow.
    out
        The file for --samples images: a .png with all of them, or a folder to create with a .png for each.
    device
        cpu, cuda, mps, or auto.
    ranks
        The number of processes on this machine that share the prompts, the sources or the samples.
    json
        Print one JSON object on standard output.
    """
    check_generation_options(tokens, sampling_options, beam_options, attention_options)
    if columns and shots is None:
        raise UserError(f"{columns[0]}: columns are those of --shots: add --shots FILE")
    is_single = input_ is None and sampling_options.samples == 1
    alone = "a single text is written" if is_single else ""
    if launch_to_use(ranks, alone):
        return
    with working_together(alone) as together:
        task = load(run, resolve_device(device)).task.shared_by(together)
        request = GenerateRequest(
            str(run),
            prompt,
            input_,
            tokens,
            sampling_options,
            beam_options,
            attention_options,
            out,
            not json,
            few_shot_prompt(task, str(run), shots, template, pair_columns(columns)),
        )
        task.check_generate(request)
        with ProgressBar("generated") as progress:
            events = task.generate(request, log, progress)
            if not together.world.is_main:
                deque(events, maxlen=0)  # the main rank writes the texts of all
                return
            result = _show(events, request) if request.stream else collect_events(events, request)
    if json:
        print_json({"run": str(run)} | result)


def _show(events: Iterable[GenerationEvent], request: GenerateRequest) -> dict[str, Any]:
    """Write the files among the events; print a single text while it is generated, and several one by one."""
    outputs, is_live, summary = list[Output](), False, None
    with ArtifactWriter(request) as files:
        for event in events:
            if isinstance(event, Chunk):
                is_live = True
                write_exact(event.text)
            elif isinstance(event, Output):
                outputs.append(event)
            elif isinstance(event, Artifact):
                files.write(event)
            else:
                summary = event
    if is_live:
        write_exact("\n")
    else:
        _print_outputs(outputs)
    files.print_paths(is_result=not outputs)
    if summary is not None and summary.seconds:
        speed = f"{summary.amount:,} {summary.unit} at {summary.amount / summary.seconds:,.0f} a second"
        STDERR.print(speed, style="dim")
    return {}


def _print_outputs(outputs: list[Output]) -> None:
    for output in outputs:
        if output.title and len(outputs) > 1:
            STDERR.rule(Text(output.title), align="left", style="dim")
        write_exact(output.text)
