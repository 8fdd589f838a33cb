"""What DATA is for, by what it looks like."""

from collections.abc import Callable, Mapping
from pathlib import Path

from foveal.config import TaskName
from foveal.data.datasets.dataset_cache import dataset_entry, dataset_names
from foveal.data.open import OpenedData, open_path

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


def infer_task(data: str | OpenedData, given_settings: Mapping[str, object]) -> TaskName:
    """The task that DATA is for.

    A data set of the catalogue says its own. `given_settings` are the settings `data.*` that are given: one
    for a label, a source, a target or tags decides; else a table's columns do. Text of any kind is for a
    language model.
    """
    if isinstance(data, str) and not Path(data).exists():
        if data in dataset_names():
            return dataset_entry(data).task
        return "translation" if "," in data else "language-model"
    opened = data if isinstance(data, OpenedData) else open_path(data)
    if opened.kind in KINDS_BY_COLUMNS:
        return KINDS_BY_COLUMNS[opened.kind](opened, given_settings)
    if opened.kind == "files":
        return "speech-recognition"
    if opened.kind == "conll":
        return "tagging"
    if opened.kind == "series":
        return "series-tagging" if "labels" in opened.columns else "series-classification"
    for task, settings in COLUMN_SETTINGS.items():
        if any(name in given_settings for name in settings if name != "text"):
            return task
    if opened.kind == "table":
        text = str(given_settings.get("text", "text"))
        return next(
            (task for task, columns in _columns_by_task(text).items() if columns <= opened.columns),
            "language-model",
        )
    return "language-model"


def _image_task(data: OpenedData, given_settings: Mapping[str, object]) -> TaskName:
    """By the table: questions and answers; a text for each where a folder's has one and no label."""
    question, answer, choices = (
        str(given_settings.get(name, name)) for name in ("question", "answer", "choices")
    )
    if {question, answer} <= data.columns:
        return "vqa-multiple-choice" if choices in data.columns else "vqa"
    text, label = str(given_settings.get("text", "text")), str(given_settings.get("label", "label"))
    return "captioning" if text in data.columns and label not in data.columns else "image-classification"


def _audio_task(data: OpenedData, given_settings: Mapping[str, object]) -> TaskName:
    """By the folder's table: a text for each, or a label; without a table folders are labels."""
    text, label = str(given_settings.get("text", "text")), str(given_settings.get("label", "label"))
    labeled = data.train.table is None or label in data.columns
    return "audio-classification" if labeled and text not in data.columns else "speech-recognition"


def _clip_task(data: OpenedData, given_settings: Mapping[str, object]) -> TaskName:
    """By what is said of clips: of each frame, in a text, or in a label; a setting that is given decides."""
    if "label" not in given_settings and "text" not in given_settings and "labels" in data.columns:
        return "frame-tagging"
    text, label = str(given_settings.get("text", "text")), str(given_settings.get("label", "label"))
    return (
        "video-captioning" if text in data.columns and label not in data.columns else "video-classification"
    )


KINDS_BY_COLUMNS: dict[str, Callable[[OpenedData, Mapping[str, object]], TaskName]] = {
    "clips": _clip_task,
    "images": _image_task,
    "audio": _audio_task,
}
"""What says the task of such DATA."""


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
