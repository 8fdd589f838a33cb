"""The registry of tasks, which finds every task in this package. A new task is a new file or folder."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from foveal.config import Config, ConfigError
from foveal.config.old_names import TASKS as OLD_TASKS
from foveal.core.errors import UserError
from foveal.plugins.registry import Registry, file_of, package_modules
from foveal.store.run import RunFolder
from foveal.tasks.base import Task

Registered = TypeVar("Registered")


def _named_task(name: str, task: Any) -> type[Task]:
    """Return a task class under a name.

    Raises: UserError: the class is no task.
    """
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise UserError(
            f"{file_of(task.__module__)}: {task.__name__} is no task: a class below foveal.tasks.base.Task"
        )
    task.name = name
    return task


class TaskRegistry(Registry[type[Task]]):
    """The tasks. Ours need no decorator: each is a class with a `name`, in a file or a folder's `task.py`."""

    def imported(self, module: str) -> None:
        for task in [*vars(sys.modules[module]).values()]:
            if _is_task(task) and task.__module__ == module:
                self.add(task.name, task)


TASKS = TaskRegistry("task", lambda: package_modules(__package__, "task"), _named_task)


def register_task(name: str) -> Callable[[Registered], Registered]:
    """Return a decorator that registers a class below `Task` under a name, for `--task NAME`.

    Raises: UserError: another task has this name, or the class is no task.
    """
    return TASKS.decorator(name)


def all_tasks() -> Mapping[str, type[Task]]:
    """Return the tasks by name, those of this package and those of plugins."""
    return dict(TASKS.items())


def task_class(name: str) -> type[Task]:
    """Return the task with a name, or for an empty name the default task.

    Raises: ConfigError: there is no such task. The message gives the nearest name, or the new name of an old
    task.
    """
    if not name:
        return default_task()
    if name in OLD_TASKS and name not in all_tasks():
        raise ConfigError(f"the task {name} is now {OLD_TASKS[name]}")
    return TASKS.find(name, "task.name")


def task_of(config: Config) -> Task:
    """Return the task of a config, bound only to the config."""
    return task_class(config.task.name)(config)


def open_task(run: RunFolder) -> Task:
    """Return the task of a run, bound to the run's processor.

    Raises: UserError: a file of the processor does not have the content that Foveal writes.
    """
    task = task_of(run.config)
    try:
        return task.bind(task.load_processor(run.processor_folder))
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise UserError(
            f"{run.processor_folder}: files that Foveal did not write ({type(error).__name__}: {error}); get "
            "the run's folder again"
        ) from None


def default_task() -> type[Task]:
    """Return the task that is used if neither the user nor the preset names a task."""
    return next(task for task in all_tasks().values() if task.is_default)


def data_settings() -> set[str]:
    """Return the names of the settings in the section `data` of all tasks."""
    return {name for task in all_tasks().values() for name in task.DataSettings.model_fields}


def network_task() -> type[Task]:
    """Return the task that trains published image networks by name."""
    return next(task for task in all_tasks().values() if task.trains_networks)


def labeling_task(encoder: str) -> type[Task]:
    """Return the task that labels whole sources with an encoder of some kind."""
    return next(
        task for task in all_tasks().values() if task.target_kind == "label" and encoder in task.encoders
    )


def import_task(kind: str) -> type[Task]:
    """Return the task for imported models of a kind: decoder, encoder or image-network."""
    return next(task for task in all_tasks().values() if task.imports == kind)


def dataset_task(name: str) -> type[Task] | None:
    """Return the task that a data set of the catalog is made for, if any."""
    return next((task for task in all_tasks().values() if name in task.datasets), None)


def _is_task(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Task) and "name" in vars(value)
