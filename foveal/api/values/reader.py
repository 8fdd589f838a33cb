"""What reads values in memory: the task that is to be trained, or a run."""

from pathlib import Path
from typing import Any, NamedTuple

from foveal.config import preset_names, read_preset
from foveal.models.network_registry import NETWORKS
from foveal.store.run import open_run
from foveal.tasks.registry import all_tasks, network_task, task_class

IMAGE_NAMES, SERIES_NAMES = ("image", "img", "images"), ("values", "series")
"""Names of columns of images and of series, the ones of tables first."""
WORD_NAMES = ("tokens", "tags", "labels")
"""Names of columns with a list in each row."""


class Reader(NamedTuple):
    """The kind of source that is read, and the columns."""

    kind: str = ""
    """The kind of source of the task or run: text, image, series ... Empty if it is not known."""
    source: str = "text"
    """The column of texts, for texts without a name."""
    label: str | None = None
    """The column of labels that the user names; None for the only column that can be it."""
    target: str = ""
    """The column of labels or texts of a pair without names; empty if it is not known."""
    needed: frozenset[str] = frozenset()
    """The columns that are read, if there are such columns."""
    task: str | None = None
    """The task, if it is known."""
    channels: int = 0
    """The channels of the images or series that a run reads."""


def training_reader(
    task: str | None = None,
    model: str | None = None,
    text: str | None = None,
    label: str | None = None,
    target: str | None = None,
    start_from: Path | None = None,
) -> Reader:
    """Return the reader of a training, by the options of `foveal.train` that say what is learned.

    Raises: UserError: there is no such task.
    """
    named = {"text": text, "label": label, "target": target}
    named |= {"source": text} if target is not None else {}
    needed = {
        str(named.get(name) or each.DataSettings.model_fields[name].default)
        for each in all_tasks().values()
        for name in each.columns
    }
    kind = _kind_of(task, model, start_from)
    pair = label or ""
    if task is not None and kind and not pair:
        pair = next((text or name for name in task_class(task).columns[-1:] if name == "text"), "")
    fixed = (*IMAGE_NAMES, *SERIES_NAMES, *WORD_NAMES)
    return Reader(kind, text or "text", label, pair, frozenset((*needed, *fixed)), task)


def run_reader(task: Any) -> Reader:
    """Return the reader of a run, by its task, which is bound to the run's processor."""
    data = task.config.data
    names = [str(getattr(data, name)) for name in task.columns]
    source = str(data.source if "source" in task.columns else data.text)
    each_place = task.target_kind == "labels"
    is_text = task.source_kind == "text"
    target = "" if each_place else next((name for name in names[-1:] if name != source or not is_text), "")
    channels = {"image": data.image.channels, "series": getattr(_source(task), "channels", 0)}
    return Reader(
        task.source_kind,
        source,
        None,
        target,
        frozenset((source, *names, *IMAGE_NAMES, *SERIES_NAMES, *WORD_NAMES)),
        task.name,
        channels.get(task.source_kind, 0),
    )


def _source(task: Any) -> Any:
    return getattr(task.processor, "source", None)


def _kind_of(task: str | None, model: str | None, start_from: Path | None) -> str:
    """Return the kind of source of a named task, or of the task of a model or run; empty for a task of texts,
    which may be that of other sources, too."""
    if task is not None:
        kind = task_class(task).source_kind
    elif model in NETWORKS and model not in preset_names():
        kind = network_task().source_kind
    elif model in preset_names():
        kind = task_class(read_preset(str(model)).get("task", {}).get("name", "")).source_kind
    elif start_from is not None and start_from.exists():
        kind = task_class(open_run(start_from).config.task.name).source_kind
    else:
        return ""
    return "" if kind == "text" else kind
