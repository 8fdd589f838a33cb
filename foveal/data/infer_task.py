"""What DATA is for, by what it looks like."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from foveal.config import TaskName
from foveal.core.errors import UserError
from foveal.data.audio.speech import SNIFFED_FILES, is_audio_folder
from foveal.data.core.rows import Row
from foveal.data.datasets.dataset_cache import dataset_entry, dataset_names
from foveal.data.files.folders import METADATA_FILES, is_zip, metadata_table, open_folder, walk_files
from foveal.data.files.tables import TABLE_SUFFIXES, column_names
from foveal.data.images.image_arrays import array_splits, has_many_images, image_column
from foveal.data.images.image_files import is_image_name
from foveal.data.prepare_examples import split_paths
from foveal.data.series.series_files import is_series, read_series
from foveal.data.video.clip_files import clip_columns, is_clip_data

CONLL_SUFFIXES = (".conllu", ".conll")
COLUMN_SETTINGS: dict[TaskName, tuple[str, ...]] = {
    "translation": ("source", "target"),
    "transduction": ("source", "target"),
    "text-classification": ("text", "label"),
    "tagging": ("tags",),
    "language-model": ("text",),
    "masked-lm": ("text",),
    "speech-recognition": ("text",),
    "audio-classification": ("label",),
    "series-classification": (),
    "series-tagging": (),
    "image-classification": ("label",),
    "glimpses": ("label",),
    "image-generation": (),
    "captioning": ("text",),
    "video-classification": ("label",),
    "frame-tagging": (),
    "video-captioning": ("text",),
    "vqa": ("question", "answer", "history"),
    "vqa-generate": ("question", "answer", "history"),
    "vqa-multiple-choice": ("question", "answer", "choices", "history"),
    "navigation": (),
}
"""The settings `data.*` that name the columns a task reads, those that decide for it first."""


def infer_task(data: str, given_settings: Mapping[str, object]) -> TaskName:
    """The task that DATA is for.

    A data set of the catalogue says its own. `given_settings` are the settings `data.*` that are given: one for a
    label, a source, a target or tags decides; else a table's columns do. Text of any kind is for a language
    model.
    """
    path = Path(data)
    if not path.exists():
        if data in dataset_names():
            return dataset_entry(data).task
        return "translation" if "," in data else "language-model"
    if is_clip_data(split_paths(data)["train"]):
        return _clip_task(data, given_settings)
    if is_image_data(data):
        return _image_task(data, given_settings)
    if is_audio_folder(split_paths(data)["train"]):
        return _audio_task(data, given_settings)
    if any((path / table).is_file() for table in METADATA_FILES):
        return "speech-recognition"
    path = Path(split_paths(data)["train"])
    suffix = path.suffix.lower()
    if suffix in CONLL_SUFFIXES:
        return "tagging"
    if path.is_file() and is_series(path):
        return _series_task(path)
    for task, settings in COLUMN_SETTINGS.items():
        if any(name in given_settings for name in settings if name != "text"):
            return task
    if path.is_file() and suffix in TABLE_SUFFIXES:
        try:
            found = set(column_names(path))
        except UserError:
            return "language-model"  # whose reader says what is wrong with the file
        text = str(given_settings.get("text", "text"))
        return next(
            (task for task, columns in _columns_by_task(text).items() if columns <= found), "language-model"
        )
    return "language-model"


def _image_task(data: str, given_settings: Mapping[str, object]) -> TaskName:
    """By the table: questions and answers; a text for each where a folder's has one and no label."""
    path = Path(split_paths(data)["train"])
    single = image_column(path) is not None
    if path.is_file() and not is_zip(path) and not single:
        return "image-classification"
    table = path if single else metadata_table(open_folder(str(path)))
    try:
        found = set() if table is None else set(column_names(table))
    except UserError:
        return "image-classification"  # whose reader says what is wrong with the table
    question, answer, choices = (
        str(given_settings.get(name, name)) for name in ("question", "answer", "choices")
    )
    if {question, answer} <= found:
        return "vqa-multiple-choice" if choices in found else "vqa"
    text, label = str(given_settings.get("text", "text")), str(given_settings.get("label", "label"))
    return "captioning" if text in found and label not in found else "image-classification"


def _audio_task(data: str, given_settings: Mapping[str, object]) -> TaskName:
    """By the folder's table: a text for each, or a label; without a table folders are labels."""
    table = metadata_table(Path(split_paths(data)["train"]))
    try:
        found = set() if table is None else set(column_names(table))
    except UserError:
        return "speech-recognition"  # whose reader says what is wrong with the table
    text, label = str(given_settings.get("text", "text")), str(given_settings.get("label", "label"))
    return (
        "speech-recognition"
        if text in found or (table is not None and label not in found)
        else "audio-classification"
    )


def _clip_task(data: str, given_settings: Mapping[str, object]) -> TaskName:
    """By what is said of clips: of each frame, in a text, or in a label; a setting that is given decides."""
    found = clip_columns(split_paths(data)["train"])
    if "label" not in given_settings and "text" not in given_settings and "labels" in found:
        return "frame-tagging"
    text, label = str(given_settings.get("text", "text")), str(given_settings.get("label", "label"))
    return "video-captioning" if text in found and label not in found else "video-classification"


def _columns_by_task(text: str) -> dict[TaskName, set[str]]:
    """By the columns of a table its task, where that of texts is called `text`."""
    return {
        "translation": {"source", "target"},
        "text-classification": {text, "label"},
        "tagging": {"tokens", "tags"},
        "series-classification": {"values", "label"},
        "series-tagging": {"values", "labels"},
        "navigation": {"map", "instruction"},
    }


def _series_task(path: Path) -> TaskName:
    """By what is labelled, of the first series that can be used."""
    try:
        first = next(row for row in read_series(path) if isinstance(row, Row))
    except UserError:
        return "series-classification"  # whose reader says what is wrong with the file
    return "series-tagging" if "labels" in first.fields else "series-classification"


def is_image_data(data: str) -> bool:
    """Whether a path is a picture, a file that holds many, or a folder or zip whose first files are some."""
    try:
        if array_splits(data):
            return True
        path = Path(split_paths(data)["train"])
        if path.is_file() and not is_zip(path):
            return has_many_images(str(path)) or is_image_name(path.name)
        folder = open_folder(str(path))
        first = [*islice((name for name in walk_files(folder) if name not in METADATA_FILES), SNIFFED_FILES)]
    except UserError:  # whose reader says what is wrong
        return False
    return 2 * sum(map(is_image_name, first)) > len(first)
