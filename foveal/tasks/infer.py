"""The task that fits DATA, inferred from its content, and why."""

from collections.abc import Iterable, Mapping
from shlex import join, quote
from typing import NamedTuple

from foveal.core.errors import UserError
from foveal.data.files.mending import comment_lines_hint, no_header_hint
from foveal.data.files.tables import list_columns
from foveal.data.guess_columns import guess_columns, row_in_header
from foveal.data.open import OpenedData
from foveal.tasks.base import Task
from foveal.tasks.fit import Fit
from foveal.tasks.registry import all_tasks, dataset_task, default_task

MAX_OTHERS_SHOWN = 3
"""Other tasks that the data fit, which are listed."""


class TaskChoice(NamedTuple):
    """A task for DATA, and why it was chosen."""

    task: type[Task]
    reason: str
    """A clause that says what was seen."""
    others: tuple[str, ...] = ()
    """The names of other tasks that the data fit."""

    def __str__(self) -> str:
        """Return the line that tells the user about the choice."""
        others = " or ".join(f"--task {name}" for name in self.others[:MAX_OTHERS_SHOWN]) or "--task NAME"
        return f"taken as {self.task.name} because {self.reason}; else {others}"


def infer_task(data: OpenedData, named: Mapping[str, object]) -> type[Task]:
    """Return the task of `choose_task`."""
    return choose_task(data, named).task


def choose_task(data: OpenedData, named: Mapping[str, object]) -> TaskChoice:
    """Return the task that fits DATA, and why.

    `named` are the user's settings `data.*` that name columns. A setting for a label, a source, a target or
    tags decides. Without such a setting, the columns of a table decide. Running text is for a language model.

    Raises: UserError: the data fit no task, or several tasks equally well.
    """
    if data.kind == "missing" and (task := dataset_task(data.name)):
        return TaskChoice(task, f"the data set {data.name} is made for it")
    if data.kind == "table":
        data.train.known_columns()  # or the error of a damaged table
    choice = best_matching_task(data, named, all_tasks().values())
    if choice is None:
        raise UserError(f"{data}: {_no_fit_reason(data)}")
    if choice.task is default_task() and data.kind == "table" and "text" not in named:
        _check_no_labels(data)
    return choice


def describe_named_task(data: OpenedData, task: type[Task], origin: str) -> str:
    """Return the line that tells the user about a task that the option `origin` names.

    Raises: UserError: a preset names the task, but DATA look like no data of any task.
    """
    if data.kind == "unknown" and origin != "--task":
        raise UserError(f"{data}: {_no_fit_reason(data)}")
    seen = "" if data.kind in ("unknown", "missing") else f" ({data.evidence.reason})"
    return f"taken as {task.name} because {origin} says so{seen}"


def task_for_data(task: type[Task], data: OpenedData, named: Mapping[str, object]) -> type[Task]:
    """Return the task for DATA with the same kind of target as `task`, if `task` reads texts but DATA is not
    text.

    Classification of images and of texts are different tasks, but users may ask for both by one name. A task
    that users name stays if DATA fits another task with the same source better.
    """
    if task.source_kind != "text" or task.target_kind != "label" or data.kind in ("missing", "aligned"):
        return task
    if task.recognizes(data, named).score:
        return task
    same_target = [other for other in all_tasks().values() if other.target_kind == task.target_kind]
    best = best_matching_task(data, named, same_target)
    return task if best is None or best.task.source_kind == task.source_kind else best.task


def best_matching_task(
    data: OpenedData, named: Mapping[str, object], tasks: Iterable[type[Task]]
) -> TaskChoice | None:
    """Return the task among `tasks` with the highest score for the data; None if no task recognizes them.

    Raises: UserError: several tasks have the highest score.
    """
    fits: list[tuple[type[Task], Fit]] = [
        (task, task.recognizes(data, named)) for task in tasks if _recognizes_by_itself(task)
    ]
    ranked = sorted((fit for fit in fits if fit[1].score), key=lambda fit: -fit[1].score)
    if not ranked:
        return None
    surest = [task for task, fit in ranked if fit.score == ranked[0][1].score]
    if len(surest) > 1:
        names = " or ".join(sorted(f"--task {task.name}" for task in surest))
        reason = ranked[0][1].reason
        raise UserError(f"{data}: {reason}: it fits several tasks equally well; choose one: {names}")
    others = tuple(task.name for task, _ in ranked[1:])
    return TaskChoice(ranked[0][0], ranked[0][1].reason, others)


def _recognizes_by_itself(task: type[Task]) -> bool:
    """Return whether a task recognizes its data in a way of its own, and not that of the task it is based
    on."""
    owner = next(base for base in task.__mro__ if "recognizes" in vars(base))
    return owner is task or "name" not in vars(owner)


def _no_fit_reason(data: OpenedData) -> str:
    """Say why the data fit no task, and how to mend that."""
    if data.kind != "table":
        return f"{data.evidence.reason}. To learn it as it is: --task {default_task().name}"
    if hint := comment_lines_hint(data.train):
        return hint
    columns = f"no task reads the columns {list_columns(data.train.columns)}"
    guess = guess_columns(data.train)
    value = row_in_header(data.train)
    if hint := no_header_hint([*data.splits.values()], guess.text, guess.label, value):
        return hint
    if hint := next((hint for task in all_tasks().values() if (hint := task.columns_hint(data))), ""):
        return f"{columns}; {hint}"
    if guess.text and guess.label:
        settings = join([f"data.text={guess.text}", f"data.label={guess.label}"])
        return f"{columns}; is it labeled texts? {settings}"
    pairs = "data.source=NAME data.target=NAME"
    return f"{columns}; name those to learn: data.text=NAME, and data.label=NAME, or {pairs}"


def _check_no_labels(data: OpenedData) -> None:
    """Check that no column beside the text looks like labels.

    Raises: UserError: a column does, so that the table can be read in two ways.
    """
    label = guess_columns(data.train, "text").label
    if label:
        setting = quote(f"data.label={label}")
        raise UserError(
            f"{data}: texts alone, or texts with the labels in '{label}'? add {setting}, or --task "
            f"{default_task().name}"
        )
