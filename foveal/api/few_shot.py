"""The examples before a prompt, from a table or from values in memory."""

from collections.abc import Sequence
from pathlib import Path

from foveal.api.values.reader import Reader
from foveal.config import DataConfig, parse_overrides, validate_section
from foveal.core.errors import UserError
from foveal.generation.few_shot import DEFAULT_TEMPLATE, FewShotPrompt, PromptTemplate
from foveal.tasks.base import Task
from foveal.tasks.shapes.few_shot import check_example, read_examples

Examples = str | Path | Sequence[Sequence[str]]
"""A table of examples, or pairs of a source and a target."""
PAIR_COLUMNS = DataConfig()
"""The columns of a table of examples or pairs, if the user names no others."""
PAIR_SETTINGS = ("source", "target", "encoding")
PAIR_READER = Reader("text", "source", target="target", needed=frozenset(("source", "target")))
"""What reads pairs in memory."""


def pair_columns(overrides: Sequence[str]) -> DataConfig:
    """Return the columns of a table of examples or pairs, such as data.source=wrong data.target=right.

    Raises: UserError: an override is of another setting.
    """
    tables = parse_overrides(overrides)
    named = tables.get("data", {})
    if tables.keys() - {"data"} or not isinstance(named, dict) or named.keys() - {*PAIR_SETTINGS}:
        known = ", ".join(f"data.{name}" for name in PAIR_SETTINGS)
        raise UserError(f"{' '.join(overrides)}: with --shots only {known} can be given; leave out others")
    return validate_section(DataConfig, named, "data")


def few_shot_prompt(
    task: Task,
    run: str,
    shots: Examples | None,
    template: str | None,
    columns: DataConfig = PAIR_COLUMNS,
) -> FewShotPrompt | None:
    """Return the prompt of examples that the user gave; None if there are none.

    Raises: UserError: the task takes no examples, there is a template alone, or an example can't be used.
    """
    if shots is None:
        if template is not None:
            raise UserError("--template is that of --shots: add --shots FILE, or leave out --template")
        return None
    if not task.takes_shots:
        raise UserError(
            f"--shots: {run} (task {task.name}) continues no text: give a language model, or leave out "
            "--shots"
        )
    parsed = PromptTemplate.parse(DEFAULT_TEMPLATE if template is None else template)
    if isinstance(shots, str | Path):
        return FewShotPrompt(read_examples(str(shots), columns), parsed)
    return FewShotPrompt(_checked(shots), parsed)


def _checked(examples: Sequence[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Return pairs of texts in memory.

    Raises: UserError: there are none, or a pair can't be used.
    """
    if not len(examples):
        raise UserError("shots: no examples; give pairs of a source and a target")
    for number, pair in enumerate(examples, 1):
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise UserError(f"shots, pair {number}: expected a source and a target, two texts")
        check_example(f"shots, pair {number}", *pair)
    return tuple((source.strip(), target.strip()) for source, target in examples)
