"""`foveal generate RUN`: write text with a trained run."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.build import load
from foveal.commands.continuations import write_continuations
from foveal.commands.decoding import DRAWING, SEARCHING, Drawing, Searching, check
from foveal.commands.drawings import write_drawings
from foveal.commands.gaps import fill_gaps
from foveal.commands.targets import write_captions, write_targets
from foveal.core.errors import UserError
from foveal.core.runtime import choose_device
from foveal.data.aligned import lines_of
from foveal.training.interrupt import Signals


def generate(
    run: Path,
    /,
    *,
    prompt: str | None = None,
    input_: Annotated[Path | None, Parameter(name="--input")] = None,
    tokens: int | None = None,
    drawing: Drawing = DRAWING,
    searching: Searching = SEARCHING,
    attention: Path | None = None,
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
        A UTF-8 file with one prompt a line; for captions a picture, for narrate a
        clip, or a folder or zip of them.
    tokens
        How many tokens to write at most; 500 if not given, or as many as learned positions leave.
    attention
        Write what was read of the source at each word: a .png, .html or .json; of pictures a .png;
        of drawings the canvas after each step, a .png.
    out
        Where --samples drawings go: a .png of all, or a folder to be made with a .png each.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object on standard output.
    """
    check(tokens, drawing, searching)
    with Signals():
        loaded = load(run, choose_device(device))
        plain = drawing == DRAWING and tokens is None
        if out is not None and loaded.config.task.name != "draw":
            raise UserError(f"--out: {run} writes text, on standard output; leave it out")
        match loaded.config.task.name:
            case "language":
                if attention is not None:
                    raise UserError(f"--attention: {run} is a language model, which reads no source")
                write_continuations(loaded, _prompts(prompt, input_), tokens, drawing, searching, json)
            case "translate" | "transduce" | "caption" | "narrate" as task:
                if drawing.stop or tokens is not None:
                    raise UserError(f"{run} writes until a target ends: leave out --stop and --tokens")
                if task in ("translate", "transduce"):
                    write_targets(loaded, _prompts(prompt, input_), drawing, searching, attention, json)
                elif input_ is None or prompt is not None:
                    seen = "clip" if task == "narrate" else "picture"
                    raise UserError(f"{run} reads {seen}s: give --input {seen.upper()}, no --prompt")
                elif task == "narrate" and attention is not None:
                    raise UserError(f"--attention: {run} reads clips; leave it out")
                else:
                    write_captions(loaded, input_, drawing, searching, attention, json)
            case "mask":
                if not plain or attention is not None or searching != Searching(best=searching.best):
                    raise UserError(f"{run} fills gaps: leave out all but --prompt, --input, --best")
                fill_gaps(loaded, _prompts(prompt, input_), searching.best, json)
            case "draw":
                given = Drawing(seed=drawing.seed, samples=drawing.samples)
                if (prompt, input_, tokens, drawing, searching) != (None, None, None, given, SEARCHING):
                    raise UserError(f"{run} draws: leave out all but --samples, --seed, --out, --attention")
                write_drawings(loaded, drawing.samples, drawing.seed, out, attention, json)
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
