"""The task that fits DATA, inferred from its content."""

from collections.abc import Iterable, Mapping

from foveal.core.errors import UserError
from foveal.data.open import OpenedData
from foveal.tasks.base import Task
from foveal.tasks.registry import all_tasks, dataset_task, default_task


def infer_task(data: OpenedData, named: Mapping[str, object]) -> type[Task]:
    """Return the task that fits DATA.

    `named` are the user's settings `data.*` that name columns. A setting for a label, a source, a target or
    tags decides. Without such a setting, the columns of a table decide. Other text is for a language model.

    Raises: UserError: the data fit several tasks equally well.
    """
    if data.kind == "missing" and (task := dataset_task(data.name)):
        return task
    return best_matching_task(data, named, all_tasks().values()) or default_task()


def task_for_data(task: type[Task], data: OpenedData, named: Mapping[str, object]) -> type[Task]:
    """Return the task for DATA with the same kind of target as `task`, if `task` reads texts but DATA is not
    text.

    Classification of images and of texts are different tasks, but users may ask for both by one name. A task
    that users name stays if DATA fits another task with the same source better.
    """
    if task.source_kind != "text" or task.target_kind != "label" or data.kind in ("missing", "aligned"):
        return task
    same_target = [other for other in all_tasks().values() if other.target_kind == task.target_kind]
    best = task if task.recognizes(data, named) else best_matching_task(data, named, same_target)
    return task if best is None or best.source_kind == task.source_kind else best


def best_matching_task(
    data: OpenedData, named: Mapping[str, object], tasks: Iterable[type[Task]]
) -> type[Task] | None:
    """Return the task among `tasks` with the highest score for the data; None if no task recognizes them.

    Raises: UserError: several tasks have the highest score.
    """
    scores = {task: task.recognizes(data, named) for task in tasks}
    highest = max(scores.values())
    surest = [task for task, score in scores.items() if score == highest]
    if highest and len(surest) > 1:
        names = " or ".join(sorted(f"--task {task.name}" for task in surest))
        raise UserError(f"{data}: fits several tasks equally well; choose one: {names}")
    return surest[0] if highest else None
