"""Summary statistics of a log-mel spectrogram, with linear and kernel classifiers."""

from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from benchmarks.ten_lines.scores import Score, accuracy

RATE, WINDOW, HOP, BANDS = 16000, 512, 160, 64


def _mel_filters() -> NDArray[Any]:
    """Return triangles (bins, bands), evenly spaced in mel."""
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 2) / 2595) - 1)
    bins = np.linspace(0, RATE / 2, WINDOW // 2 + 1)[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(rising, falling))


def _statistics(path: Path, filters: NDArray[Any]) -> NDArray[Any]:
    """Return mean and deviation of every band over time, and the length of the recording."""
    from scipy.signal import resample_poly

    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    divisor = gcd(rate, RATE)
    mono = resample_poly(samples.mean(1), RATE // divisor, rate // divisor)
    mono = np.pad(mono, (0, max(0, WINDOW - len(mono))))
    windows = np.lib.stride_tricks.sliding_window_view(mono, WINDOW)[::HOP]
    mel = np.log(np.abs(np.fft.rfft(windows * np.hanning(WINDOW))) ** 2 @ filters + 1e-6)
    return np.concatenate([mel.mean(0), mel.std(0), [np.log(len(mono))]])


def mel_statistics(train: Path, test: Path) -> dict[str, Score]:
    """Return the accuracies of classifiers on the statistics of recordings in a folder for each class."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    filters = _mel_filters()
    paths, test_paths = sorted(train.glob("*/*")), sorted(test.glob("*/*"))
    features = [_statistics(path, filters) for path in paths]
    test_features = [_statistics(path, filters) for path in test_paths]
    labels, test_labels = [p.parent.name for p in paths], [p.parent.name for p in test_paths]
    scores = {}
    for name, classifier in {"logistic": LogisticRegression(max_iter=2000, C=0.1), "SVM": SVC(C=10)}.items():
        model = make_pipeline(StandardScaler(), classifier).fit(features, labels)
        scores[f"{name} on log-mel statistics"] = accuracy(model.predict(test_features), test_labels)
    return scores
