"""A classifier of small images before training, with held-out images of noise, as an opened run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foveal.core.log import Log
from foveal.data.core.split_data import SplitData
from foveal.data.core.standardize import Statistics
from foveal.data.images.image_examples import ImageExamples, ImageProcessor
from foveal.data.pairs.labels import LabelProcessor
from foveal.data.pairs.pair import PairProcessor
from foveal.store.run import RunFolder
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from foveal.tasks.session import EvaluationData, Session, build_model

SIDE, LABELS = 8, ("cat", "dog", "owl")
STATISTICS = Statistics((120.0, 100.0, 90.0), (60.0, 50.0, 55.0))


@dataclass(frozen=True)
class ImageSession(Session):
    """An opened run whose held-out images are `split`."""

    split: SplitData[ImageExamples]

    def held_out(self, data: str | None, option_hint: str, log: Log = print) -> EvaluationData:
        return EvaluationData(self.split, "test", {})


def image_session(*settings: str, preset: str = "image-classification", images: int = 20) -> ImageSession:
    """Return a run of a network for images of 8 by 8 pixels, with random weights in its last layer, too."""
    config = load_config(preset, [f"data.image.size={SIDE}", "data.image.tta=none", *settings])
    processor = PairProcessor(ImageProcessor(STATISTICS, SIDE), LabelProcessor(LABELS))
    task = task_of(config).bind(processor)
    model: Any = build_model(task, torch.device("cpu")).eval()
    torch.nn.init.normal_(model.head.projection.weight, std=0.3)
    draw = np.random.default_rng(0)
    pixels = [*draw.integers(0, 256, (images, SIDE, SIDE, 3), np.uint8)]
    ids = draw.integers(0, len(LABELS), images)
    examples = ImageExamples.from_data(pixels, processor.source, {"label": ids})
    names = [f"{row}.png" for row in range(images)]
    split = SplitData(names, [LABELS[i] for i in ids], examples, [], {}, "")
    bound = task.bind(processor, model)
    return ImageSession(RunFolder(Path("run"), config, {}), bound, bound.objective(), split)
