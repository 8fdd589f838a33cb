"""The view `style-transfer` of a run: an image with the content of one image and the style of another."""

from dataclasses import dataclass, replace
from typing import Any

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.whole_number import WholeNumber
from foveal.data.core.split_data import evenly_spaced
from foveal.encoders.image import ImageEncoder
from foveal.inspection.chosen_input import InputOptions
from foveal.inspection.image_gradients import (
    ChosenImage,
    block_names,
    choose_image,
    frozen,
    gradient_refusal,
    pixel_limits,
)
from foveal.inspection.panels import Caption, ImageRow, Images, Tile
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.style_transfer.compute import StyleLayers, transfer_style
from foveal.inspection.view import View

MAX_STYLE_LAYERS = 4
"""Most layers whose Gram matrices are the style, evenly spaced; the content is the output of the layer in the
middle."""
CAVEAT = (
    "what counts as style is the choice of the layers and their weights; a network for small images, trained "
    "for minutes, has coarser styles than the VGG of the paper"
)


@dataclass(frozen=True)
class StyleTransferOptions(InputOptions):
    style: str | None = None
    """The image with the style; the next row if not given."""
    weight: float = 10.0
    """The weight of the style against the content."""
    tv: float = 0.01
    """The weight of the squared differences of neighboring pixels."""
    steps: WholeNumber = 200
    """Steps of the descent."""


@register_view("style-transfer")
class StyleTransferView(View[StyleTransferOptions]):
    summary = "An image with the content of one image and the style of another."
    Options = StyleTransferOptions
    progress = "steps"

    def fits(self, run: InspectedRun) -> str:
        why = gradient_refusal(run)
        if why or (isinstance(run.model.encoder, ImageEncoder) and block_names(run.model)):
            return why
        return "this view needs feature maps of convolutions"

    def compute(
        self, run: InspectedRun, options: StyleTransferOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        if options.steps < 1 or min(options.weight, options.tv) < 0:
            raise UserError("--steps is 1 or more, --weight and --tv are 0 or more")
        content, style = choose_image(run, options, log), _choose_style(run, options, log)
        blocks = block_names(run.model)
        styles = [blocks[number] for number in evenly_spaced(len(blocks), MAX_STYLE_LAYERS)]
        layers = StyleLayers(blocks[len(blocks) // 2], tuple(styles))
        with frozen(run.model):
            result = transfer_style(
                run.model,
                layers,
                content.tensor[None],
                style.tensor[None],
                pixel_limits(run),
                options.steps,
                options.weight,
                options.tv,
                progress,
            )
        before, after = result.before, result.after
        pixels = run.processor.source.statistics.to_pixels(result.image)[0]
        tiles = (
            Tile(content.pixels, (Caption("content"), Caption(f"style loss {before.style:.2g}", "muted"))),
            Tile(style.pixels, (Caption("style"), Caption("style loss 0", "muted"))),
            Tile(pixels, (Caption("result"), Caption(f"style loss {after.style:.2g}", "muted"))),
        )
        facts = (
            ("content", f"{content.name}: {layers.content}"),
            ("style", f"{style.name}: Gram matrices of {', '.join(styles)}"),
            ("style loss", f"{before.style:.3g} before, {after.style:.3g} after"),
            ("content loss", f"0 before, {after.content:.3g} after"),
            ("descent", f"{options.steps} steps, style weight {options.weight:g}, variation {options.tv:g}"),
        )
        path = str(run.run.path)
        values: dict[str, Any] = {"run": path, "content": content.name, "style": style.name}
        values |= {"style_loss": [float(before.style), float(after.style)]}
        values |= {"content_loss": float(after.content), "layers": list(layers.names)}
        title = f"the content of {content.name}, in the style of {style.name}"
        panels = (Images("", (ImageRow(tiles),), 1.9),)
        return Payload("style-transfer", path, title, panels, CAVEAT, "approximated", facts, values)


def _choose_style(run: InspectedRun, options: StyleTransferOptions, log: Log) -> ChosenImage:
    """Return the image with the style: one of its own, or that of the row after the content.

    Raises: UserError: there is no such image.
    """
    if options.style is not None:
        return choose_image(run, replace(options, data=options.style, row=0), log)
    try:
        return choose_image(run, replace(options, row=options.row + 1), log)
    except UserError as error:
        raise UserError(
            f"no row after row {options.row} has the style: name an image with --style"
        ) from error
