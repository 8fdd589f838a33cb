"""The settings of a run's encoder, for a new run of another task that starts from it."""

import json
from typing import Any

from foveal.config import ModelConfig, StackConfig, merge_tables, parse_config, read_preset
from foveal.core.errors import UserError
from foveal.store.run import RunFolder
from foveal.tasks.base import Task
from foveal.tasks.config import checked
from foveal.tasks.read_settings import read_settings
from foveal.tasks.registry import all_tasks, task_of

STACK_WEIGHT_SETTINGS = set(StackConfig.model_fields) - {"dropout"}
"""Settings of a stack on which its weights depend."""


def check_encoder_reuse(run: RunFolder, task: type[Task]) -> None:
    """Check that another task than the run's can start from the run's encoder.

    Raises: UserError: the run has no encoder, or the task does not read what the encoder reads. The error
        names the tasks that do.
    """
    base_task, kind = task_of(run.config), run.config.model.encoder.kind
    if (kind in task.accepted_encoders() and kind != "none") or base_task.model_reused_as in task.encoders:
        return
    reused_as = base_task.model_reused_as if kind == "none" else kind
    if not reused_as:
        raise UserError(
            f"{run.path}: {base_task.name} has no encoder that another task could use: leave out --from"
        )
    others = sorted(other.name for other in all_tasks().values() if reused_as in other.accepted_encoders())
    raise UserError(
        f"{run.path}: its encoder ({reused_as}) does not read the source of {task.name}: leave out --from, "
        f"or name one of the tasks that can start from it: {', '.join(others)}"
    )


def encoder_tables(run: RunFolder, task: type[Task]) -> dict[str, Any]:
    """Return the tables of a task's preset, with the encoder of a run, and the settings that the encoder and
    its processor fix."""
    config = checked(run.config)
    fixed = {*task.fixed_settings()}
    if config.model.encoder.positions.kind == "learned":
        fixed.add("data.max_length")
    kept: dict[str, Any] = {}
    for key in read_settings(config):
        if any(f"{key}.".startswith(f"{prefix}.") for prefix in fixed):
            kept = merge_tables(kept, _only(config.model_dump(), key.split(".")))
    preset = read_preset(task.preset)
    if "data.tokenizer" in fixed:  # the run's tokenizer knows no targets, which get the preset's
        target_tokenizer = parse_config(preset).data.tokenizer
        own = {"shared_vocabulary": False, "target_tokenizer": target_tokenizer}
        kept = merge_tables({"data": own}, kept)
    model = {**preset["model"], "encoder": config.model.encoder.model_dump()}
    return merge_tables({**preset, "model": model}, kept)


def _only(table: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """Return nested tables with only the value at `path`."""
    first, *rest = path
    return {first: _only(table[first], rest) if rest else table[first]}


def encoder_overrides(run: RunFolder) -> list[str]:
    """Return the settings of an encoder that is the stack of a language model run, and those of its tokens.

    The vector of the last token summarizes a text.

    Raises: UserError: the run's tokens are one-hot.
    """
    config = run.config
    if config.model.embedding_width == -1:
        raise UserError(
            f"{run.path}: its tokens are one-hot, which leaves no room for the token that ends a text: train "
            "the language model with model.embedding_width=64, for example"
        )
    learned = config.model.positions.kind == "learned"
    limit = [f"data.max_length={config.data.context_length}"] if learned else []
    tokens = f"data.tokenizer={config.data.tokenizer}", f"data.vocab_size={config.data.vocab_size}"
    reading = "kind=text", "causal=true", "bidirectional=false", "pooling=last"
    others = ModelConfig.model_fields.keys() - STACK_WEIGHT_SETTINGS
    stack = config.model.model_dump(exclude=set(others))
    return [
        *limit,
        *tokens,
        "model.head_pooling=last",
        *(f"model.encoder.{setting}" for setting in (*reading, *_as_overrides(stack))),
    ]


def _as_overrides(table: dict[str, Any], before: str = "") -> list[str]:
    """Return a table as settings `key=value`."""
    settings: list[str] = []
    for name, value in table.items():
        if isinstance(value, dict):
            settings += _as_overrides(value, f"{before}{name}.")
        else:
            settings.append(f"{before}{name}={json.dumps(value)}")
    return settings
