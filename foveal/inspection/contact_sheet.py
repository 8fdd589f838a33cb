"""What a model of images is fed, beside the images it was made of, as a PNG."""

import io

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from foveal.data.images.image_examples import ImageExamples
from foveal.training.protocols import Batches

MAX_SHEET_IMAGES, SHEET_WIDTH, TILE_SIZE = 24, 1200, 96
"""Images on a sheet, pixels of its width, and of a small image's side, enlarged."""
GAP, LINE_HEIGHT = 8, 14
"""Pixels between pairs, and of a line of text."""


def contact_sheet(images: ImageExamples, batches: Batches) -> bytes:
    """The first images of the first batch of training: above as they were read, below as they are fed, and
    what belongs to them: a label or a text.

    What is fed is brought back from standardised values to levels; what lies outside 0 to 255 is cut.
    """
    batch = batches.batch(0, 0)
    levels = images.processor.statistics.to_pixels(batch.columns["source"][:MAX_SHEET_IMAGES])
    side = levels.shape[1] * max(1, TILE_SIZE // levels.shape[1])
    columns = max(2, min(len(levels), SHEET_WIDTH // (side + GAP)))
    rows, height = -(-len(levels) // columns), 2 * side + LINE_HEIGHT + GAP
    sheet = Image.new("RGB", (columns * (side + GAP) + GAP, rows * height + GAP), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for number, (row, fed) in enumerate(zip(batch.rows.tolist(), levels, strict=False)):
        x, y = GAP + number % columns * (side + GAP), GAP + number // columns * height
        sheet.paste(_fit_square(images[row], side), (x, y))
        sheet.paste(_fit_square(fed, side), (x, y + side))
        label = images.processor.caption({name: column[number] for name, column in batch.columns.items()})
        while label and draw.textlength(label, font) > side:
            label = label[:-1]
        draw.text((x, y + 2 * side), label, "black", font)
    content = io.BytesIO()
    sheet.save(content, "PNG")
    return content.getvalue()


def _fit_square(pixels: UInt8[np.ndarray, "H W C"], side: int) -> Image.Image:
    """The whole picture within a square, its shape kept, each pixel plain to see."""
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    scale = side / max(image.size)
    width, height = (max(1, round(scale * length)) for length in image.size)
    how = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.BOX
    square = Image.new("RGB", (side, side), "white")
    square.paste(image.resize((width, height), how), ((side - width) // 2, (side - height) // 2))
    return square
