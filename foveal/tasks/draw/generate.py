"""Generated drawings on a sheet or in a folder, and the steps of the first drawings."""

import time
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import derived_seed
from foveal.generation.events import Artifact, GenerationEvent, Summary
from foveal.generation.request import GenerateRequest
from foveal.tasks.draw import plot
from foveal.tasks.draw.model import DrawModel
from foveal.training.agreement import Agreement
from foveal.training.share import share
from foveal.ui.console import check_png_path

STEP_ROWS, BATCH_SIZE = 8, 250
"""Drawings whose steps are shown, and drawings in a batch."""


def check_drawing_paths(request: GenerateRequest) -> None:
    """Check the paths for drawings.

    Raises: UserError: no path is given, or a path exists or can't be an image.
    """
    out, steps = request.out, request.attention.attention
    if out is None and steps is None:
        raise UserError(f"{request.run} draws images: give --out sheet.png or --out FOLDER")
    if out is not None and out.suffix.lower() != ".png" and out.exists():
        raise UserError(f"{out}: exists; name a new folder, or a .png")
    check_png_path(steps)


def generate_drawings(
    model: DrawModel, request: GenerateRequest, progress: ProgressCallback, together: Agreement
) -> Iterator[GenerationEvent]:
    """Yield `--out`, a .png of all drawings or of each drawing, and `--attention`, the canvas after each
    step.

    A drawing is a function of the seed and its number, and does not depend on other drawings.
    """
    samples, seed, out = request.sampling.samples, request.sampling.seed, request.out
    began, json = time.perf_counter(), {}
    drawings = _draw(model, samples, seed, progress, together)
    seconds = time.perf_counter() - began
    if out is not None:
        json["drawings"] = str(out)
        if out.suffix.lower() == ".png":
            yield Artifact("out", "", plot.image_grid(drawings))
        else:
            digits = len(str(samples - 1))
            for index, drawing in enumerate(drawings):
                yield Artifact("out", f"{index:0{digits}}.png", plot.encode_png(drawing))
    if request.attention.attention is not None:
        json["steps"] = str(request.attention.attention)
        canvases, windows = sample_canvases(model, range(min(STEP_ROWS, samples)), seed)
        yield Artifact("attention", "", plot.step_grid(to_pixels(canvases), windows.cpu().numpy()))
    yield Summary(samples, "drawings", seconds, {"count": samples, **json, "seconds": seconds})


def _draw(
    model: DrawModel, samples: int, seed: int, progress: ProgressCallback, together: Agreement
) -> UInt8[np.ndarray, "N H W"]:
    """Return finished drawings."""

    def draw(batch: int) -> UInt8[np.ndarray, "B H W"]:
        numbers = range(samples)[batch * BATCH_SIZE : (batch + 1) * BATCH_SIZE]
        canvases, _ = sample_canvases(model, numbers, seed)
        return to_pixels(canvases[:, -1])

    return np.concatenate([*share(-(-samples // BATCH_SIZE), draw, progress, together)])


def sample_canvases(
    model: DrawModel, numbers: range, seed: int
) -> tuple[Float[Tensor, "B T H W"], Float[Tensor, "B T 4"]]:
    """Return the canvases and windows of the drawings with these `numbers`."""
    shape = (model.steps, model.latent)
    noise = [
        np.random.default_rng(derived_seed(seed, "drawing", number)).standard_normal(shape, np.float32)
        for number in numbers
    ]
    with torch.inference_mode():
        output = model.sample(torch.from_numpy(np.stack(noise)).to(model.canvas.device))
    return output.canvases, output.write_windows


def to_pixels(canvases: Float[Tensor, "*B H W"]) -> UInt8[np.ndarray, "*B H W"]:
    """Convert log-odds to pixel values from 0 to 255."""
    pixels: UInt8[np.ndarray, "*B H W"] = (255 * canvases.sigmoid()).round().byte().cpu().numpy()
    return pixels
