"""The task that DATA is for, by what the data look like."""

from collections.abc import Iterable, Mapping

from foveal.core.errors import UserError
from foveal.data.open import OpenedData
from foveal.tasks.base import Task
from foveal.tasks.registry import all_tasks, dataset_task, default_task


def infer_task(data: OpenedData, named: Mapping[str, object]) -> type[Task]:
    """Return the task that DATA is for.

    `named` are the settings `data.*` that the user gave: one for a label, a source, a target or tags decides;
    else the columns of a table do. Text of any kind is for a language model.
    Raises: UserError: the data are for several tasks alike.
    """
    if data.kind == "missing" and (task := dataset_task(data.name)):
        return task
    return surest_task(data, named, all_tasks().values()) or default_task()


def task_for_data(task: type[Task], data: OpenedData, named: Mapping[str, object]) -> type[Task]:
    """Return the task that gives for DATA what `task` gives for texts, where DATA are no texts.

    To classify images is another task than to classify texts, but users ask for both by one name.
    """
    if task.reads != "text" or task.gives != "label" or data.kind in ("missing", "aligned"):
        return task
    alike = [other for other in all_tasks().values() if other.gives == task.gives]
    return task if task.recognizes(data, named) else surest_task(data, named, alike) or task


def surest_task(
    data: OpenedData, named: Mapping[str, object], tasks: Iterable[type[Task]]
) -> type[Task] | None:
    """Return the task among `tasks` that recognizes the data most surely; None where none does.

    Raises: UserError: several do, equally surely.
    """
    scores = {task: task.recognizes(data, named) for task in tasks}
    highest = max(scores.values())
    surest = [task for task, score in scores.items() if score == highest]
    if highest and len(surest) > 1:
        names = " or ".join(sorted(f"--task {task.name}" for task in surest))
        raise UserError(f"{data}: for several tasks alike; say which: {names}")
    return surest[0] if highest else None
