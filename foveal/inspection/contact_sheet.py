"""A model's input images next to their original images, as a PNG."""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from foveal.data.images.image_examples import ImageExamples
from foveal.inspection.style import draw_text, image_png, new_sheet, resize_to_side, to_image
from foveal.training.protocols import Batches

MAX_SHEET_IMAGES, SHEET_WIDTH, TILE_SIZE = 24, 1200, 96
"""Most images on a sheet; pixels of the sheet's width, and of the side of a small image, enlarged."""
GAP, LINE_HEIGHT = 8, 14
"""Pixels between pairs, and of a line of text."""


def contact_sheet(
    images: ImageExamples, batches: Batches, caption: Callable[[Mapping[str, Tensor]], str]
) -> bytes:
    """Return the PNG of the first images of the first training batch.

    Each image is drawn as read from its file, and below it as the model gets it, with its label or text.
    Inputs are converted from standardized values back to pixel values, and clipped to 0 to 255.
    """
    batch = batches.batch(0, 0)
    levels = images.processor.statistics.to_pixels(batch.columns["source"][:MAX_SHEET_IMAGES])
    side = levels.shape[1] * max(1, TILE_SIZE // levels.shape[1])
    columns = max(2, min(len(levels), SHEET_WIDTH // (side + GAP)))
    rows, height = -(-len(levels) // columns), 2 * side + LINE_HEIGHT + GAP
    sheet = new_sheet(columns * (side + GAP) + GAP, rows * height + GAP)
    for number, (row, pixels) in enumerate(zip(batch.rows.tolist(), levels, strict=False)):
        x, y = GAP + number % columns * (side + GAP), GAP + number // columns * height
        sheet.paste(_fit_square(images[row], side), (x, y))
        sheet.paste(_fit_square(pixels, side), (x, y + side))
        label = caption({name: column[number] for name, column in batch.columns.items()})
        draw_text(sheet, (x, y + 2 * side), label, max_width=side)
    return image_png(sheet)


def _fit_square(pixels: UInt8[np.ndarray, "H W C"], side: int) -> Image.Image:
    """Scale the whole image into a square, with its aspect ratio kept."""
    image, square = resize_to_side(to_image(pixels), side), new_sheet(side, side)
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return square
