"""`foveal generate RUN`: write text with a trained run."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.core.errors import UserError
from foveal.core.runtime import choose_device
from foveal.core.signals import Signals
from foveal.data.files.aligned import lines_of
from foveal.generation.options import DRAWING, LOOKING, SEARCHING, Drawing, Looking, Searching, check
from foveal.tasks.draw.generate import write_drawings
from foveal.tasks.language_model_generation import write_continuations
from foveal.tasks.masked_lm_generation import fill_gaps
from foveal.tasks.sequence_generation import write_seen, write_targets
from foveal.tasks.session import load

SEEN = {
    "caption": "pictures",
    "narrate": "clips",
    "transcribe": "recordings",
    "reply": "questions about pictures",
}
"""What is read by runs that write of something other than texts."""


def generate(
    run: Path,
    /,
    *,
    prompt: str | None = None,
    input_: Annotated[Path | None, Parameter(name="--input")] = None,
    tokens: int | None = None,
    drawing: Drawing = DRAWING,
    searching: Searching = SEARCHING,
    looking: Looking = LOOKING,
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
    check(tokens, drawing, searching, looking)
    with Signals():
        loaded = load(run, choose_device(device))
        plain = drawing == DRAWING and tokens is None
        if out is not None and loaded.config.task.name != "draw":
            raise UserError(f"--out: {run} writes text, on standard output; leave it out")
        match loaded.config.task.name:
            case "language":
                if looking.attention is not None:
                    raise UserError(f"--attention: {run} is a language model, which reads no source")
                write_continuations(loaded, _prompts(prompt, input_), tokens, drawing, searching, json)
            case "translate" | "transduce" | "caption" | "narrate" | "transcribe" | "reply" as task:
                if drawing.stop or tokens is not None:
                    raise UserError(f"{run} writes until a target ends: leave out --stop and --tokens")
                if task not in SEEN:
                    write_targets(loaded, _prompts(prompt, input_), drawing, searching, looking, json)
                elif input_ is None or prompt is not None:
                    raise UserError(f"{run} reads {SEEN[task]}: give --input PATH, no --prompt")
                else:
                    write_seen(loaded, input_, drawing, searching, looking, json)
            case "mask":
                if not plain or looking != LOOKING or searching != Searching(best=searching.best):
                    raise UserError(f"{run} fills gaps: leave out all but --prompt, --input, --best")
                fill_gaps(loaded, _prompts(prompt, input_), searching.best, json)
            case "draw":
                given = Drawing(seed=drawing.seed, samples=drawing.samples)
                others = (prompt, input_, tokens, drawing, searching, looking.head)
                if others != (None, None, None, given, SEARCHING, None):
                    raise UserError(f"{run} draws: leave out all but --samples, --seed, --out, --attention")
                write_drawings(loaded, drawing.samples, drawing.seed, out, looking.attention, json)
            case other:
                raise UserError(f"{run} answers what it reads (task {other}): foveal predict {run} DATA")


def _prompts(prompt: str | None, path: Path | None) -> list[str]:
    if path is None:
        return [prompt or ""]
    if prompt is not None:
        raise UserError("--prompt and --input can't both be given")
    prompts = []
    for line in lines_of(path):
        if line.why:
            raise UserError(f"{path}, line {line.number}: {line.why}")
        prompts.append(line.text.rstrip("\r\n"))
    if not prompts:
        raise UserError(f"{path}: no prompts: write one a line")
    return prompts
