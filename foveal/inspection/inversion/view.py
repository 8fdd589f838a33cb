"""The view `inversion` of a run: images made from the features of an image at several layers."""

from dataclasses import dataclass

import numpy as np

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.data.core.split_data import evenly_spaced
from foveal.inspection.chosen_input import InputOptions
from foveal.inspection.image_descent import noise_images
from foveal.inspection.image_gradients import (
    block_names,
    choose_image,
    frozen,
    gradient_refusal,
    pixel_limits,
)
from foveal.inspection.inversion.compute import invert_features
from foveal.inspection.panels import Caption, ImageRow, Images, Tile
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View

MAX_LAYERS, START_NOISE = 5, 0.1
"""Most layers, evenly spaced; and the standard deviation of the noise at the start."""
CAVEAT = (
    "where the features agree, the image has what the layer keeps; the rest is from the start and from the "
    "penalty on differences of neighbors, and a large error says that the descent did not get there"
)


@dataclass(frozen=True)
class InversionOptions(InputOptions):
    layer: str | None = None
    """One block, such as encoder.blocks.2; several, evenly spaced, if not given."""
    steps: WholeNumber = 200
    """Steps of the descent."""
    tv: float = 0.001
    """The weight of the squared differences of neighboring pixels."""
    seed: WholeNumber = 0
    """The seed of the noise at the start."""


@register_view("inversion")
class InversionView(View[InversionOptions]):
    summary = "Images made from the features of an image at several layers."
    Options = InversionOptions
    progress = "steps"

    def fits(self, run: InspectedRun) -> str:
        why = gradient_refusal(run)
        if why or block_names(run.model):
            return why
        return "the encoder of this run has no layers before its head"

    def compute(
        self, run: InspectedRun, options: InversionOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        if options.steps < 1 or options.tv < 0:
            raise UserError("--steps is 1 or more, and --tv 0 or more")
        image, blocks = choose_image(run, options, log), block_names(run.model)
        if options.layer not in (None, *blocks):
            raise UserError(f"--layer {options.layer}: the blocks of this run are {', '.join(blocks)}")
        spaced = [blocks[number] for number in evenly_spaced(len(blocks), MAX_LAYERS)]
        layers = spaced if options.layer is None else [options.layer]
        limits, x = pixel_limits(run), image.tensor[None]
        start = noise_images(1, image.tensor, START_NOISE, options.seed)
        to_pixels = run.processor.source.statistics.to_pixels
        tiles, results = [Tile(image.pixels, (Caption("the image"),))], []
        with frozen(run.model):
            for number, layer in enumerate(layers):

                def report(step: int, steps: int, done: int = number) -> None:
                    progress(done * steps + step, len(layers) * steps)

                settings = options.steps, options.tv
                inverted, error = invert_features(run.model, layer, x, start, limits, *settings, report)
                pixels = to_pixels(inverted)[0]
                distance = float(np.abs(pixels.astype(float) - image.pixels).mean())
                captions = Caption(layer.removeprefix("encoder.")), Caption(f"error {error:.2g}", "muted")
                tiles.append(Tile(pixels, captions))
                results.append({"layer": layer, "error": error, "levels": distance})
        lines = (f"{one['layer']} {one['error']:.2g}" for one in results)
        pixel_lines = (f"{one['levels']:.1f}" for one in results)
        facts = (
            ("image", image.name),
            ("features", f"relative squared error: {', '.join(lines)}"),
            ("pixels", f"mean difference of 255 levels: {', '.join(pixel_lines)}"),
            ("descent", f"{options.steps} steps, variation {options.tv:g}, seed {options.seed}"),
        )
        path = str(run.run.path)
        title = f"{image.name}: images with the same features, layer by layer"
        panels = (Images("", (ImageRow(tuple(tiles)),), 1.5),)
        values = {"run": path, "image": image.name, "layers": results}
        return Payload("inversion", path, title, panels, CAVEAT, "approximated", facts, values)
