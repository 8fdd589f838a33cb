"""`foveal generate` with a run that draws: images out of nothing, on a sheet or in a folder."""

import time
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.runtime import derived_seed
from foveal.store.durable import atomic_folder, atomic_write, write_synced
from foveal.tasks.draw import plot
from foveal.tasks.draw.model import DrawModel
from foveal.tasks.session import LoadedRun
from foveal.ui.console import STDERR, check_png_path, print_json
from foveal.ui.progress_bar import ProgressBar

STEP_ROWS, BATCH_SIZE = 8, 250
"""Drawings whose steps are shown, and drawings made at once."""


def write_images(
    loaded: LoadedRun,
    samples: int,
    seed: int,
    out: Path | None,
    steps: Path | None,
    json: bool,
) -> None:
    """Write `samples` drawings to `out`, a .png of all of them or a folder to be made with one each; and to
    the .png `steps` the canvas after each step of the first of them.

    A drawing is a function of (seed, its number), whatever others are drawn. Errors: UserError for no place,
    or one that is taken.
    """
    if out is None and steps is None:
        raise UserError(f"{loaded.run.path} draws: say where to, --out sheet.png or --out FOLDER")
    one_each = out is not None and out.suffix.lower() != ".png"
    if out is not None and one_each and out.exists():
        raise UserError(f"{out}: there already; name a folder to be made, or a .png")
    check_png_path(steps)
    began, model = time.perf_counter(), loaded.model
    last, places = [], {}
    with ProgressBar("drawn") as watch:
        for start in range(0, samples, BATCH_SIZE):
            watch(start, samples)
            canvases, _ = sample_canvases(model, range(start, min(start + BATCH_SIZE, samples)), seed)
            last.append(to_pixels(canvases[:, -1]))
    drawings = np.concatenate(last)
    seconds = time.perf_counter() - began
    if out is not None and one_each:
        digits = len(str(samples - 1))
        with atomic_folder(out) as folder:
            for number, drawing in enumerate(drawings):
                write_synced(folder / f"{number:0{digits}}.png", plot.encode_png(drawing))
    elif out is not None:
        atomic_write(out, plot.image_grid(drawings))
    if out is not None:
        places["drawings"] = str(out)
    if steps is not None:
        canvases, windows = sample_canvases(model, range(min(STEP_ROWS, samples)), seed)
        atomic_write(steps, plot.step_grid(to_pixels(canvases), windows.cpu().numpy()))
        places["steps"] = str(steps)
    if json:
        print_json({"run": str(loaded.run.path), "samples": samples, **places, "seconds": seconds})
    else:
        print("\n".join(places.values()))
        STDERR.print(f"{samples:,} drawings at {samples / seconds:,.0f} a second", style="dim")


def sample_canvases(
    model: DrawModel, numbers: range, seed: int
) -> tuple[Float[Tensor, "B T H W"], Float[Tensor, "B T 4"]]:
    """The canvases and windows of the drawings of these `numbers`."""
    shape = (model.steps, model.latent)
    noise = [
        np.random.default_rng(derived_seed(seed, "drawing", number)).standard_normal(shape, np.float32)
        for number in numbers
    ]
    with torch.inference_mode():
        drawn = model.sample(torch.from_numpy(np.stack(noise)).to(model.canvas.device))
    return drawn.canvases, drawn.write_windows


def to_pixels(canvases: Float[Tensor, "*B H W"]) -> UInt8[np.ndarray, "*B H W"]:
    """Log-odds to 0 .. 255."""
    found: UInt8[np.ndarray, "*B H W"] = (255 * canvases.sigmoid()).round().byte().cpu().numpy()
    return found
