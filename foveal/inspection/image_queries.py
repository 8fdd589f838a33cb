"""Images to look up in a view: files that the user names, or held-out images."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.data import prepare_examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_examples import ImageExamples
from foveal.inspection.run_protocols import InspectedExampleTask, InspectedRun


class ImageQueries(NamedTuple):
    """Images with their file names and labels."""

    images: ImageExamples
    sources: Sequence[str]
    labels: Sequence[str]
    """Empty where unknown."""


def load_image_queries(
    run: InspectedRun,
    prepared: PreparedData[Any, SplitData[ImageExamples]] | None,
    query: str | None,
    log: Log,
) -> ImageQueries:
    """Return the images at `query`, or without a query the held-out images of the `prepared` data.

    Raises: UserError: there is neither a query nor a held-out image.
    """
    if query is not None:
        rows, images, _ = prepare_examples.read_unlabeled(
            run.task.data_format, query, run.processor, run.config.data, log
        )
        return ImageQueries(images, [row.fields["source"] for row in rows], [""] * len(rows))
    held_out = None if prepared is None else prepared.held_out
    if held_out is None:
        raise UserError("there are no held-out images: name an image with --query")
    return ImageQueries(held_out.examples, held_out.sources, held_out.references)


def with_center_crop(task: InspectedExampleTask) -> InspectedExampleTask:
    """Return the task with only the center crop of each image, without test-time augmentation."""
    image = task.config.data.image.model_copy(update={"tta": "none", "tta_scales": "1"})
    data = task.config.data.model_copy(update={"image": image})
    return task.with_config(task.config.model_copy(update={"data": data}))
