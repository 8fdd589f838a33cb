"""Answers to questions about an image, one after the other, as in a dialog."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.data.core.rows import Row
from foveal.data.images.image_files import load_image
from foveal.tasks.results import AnsweredRow

if TYPE_CHECKING:
    from foveal.tasks.vqa.task import BaseVQATask


def answer_questions(
    task: "BaseVQATask", path: Path, questions: Sequence[str], choices: Sequence[str], top: int
) -> list[AnsweredRow]:
    """Return the answers to questions about the image at `path`. The history of a question is the earlier
    questions.

    Raises: UserError: choices are missing or not read, there is no such image, or a question is empty.
    """
    _check_choices(task, choices)
    image = load_image(path, task.config.data.image.size, task.config.data.image.channels)
    if isinstance(image, str):
        raise UserError(f"{path}: {image}")
    questions = [" ".join(question.split()) for question in questions]
    if "" in questions:
        raise UserError("--question: empty; give the text of a question")
    answered, history = list[AnsweredRow](), list[str]()
    for question in questions:
        fields = {
            "content": image.content,
            "picture": image.pixels,
            "question": question,
            "history": " ".join(history),
            "choices": [*choices],
        }
        rows = [Row(str(path), fields)]
        _, examples = task.data_format.encode_unlabeled(rows, task.processor, task.config.data, [])
        (answer,) = task.answers(examples, top, no_progress)
        history += [question, f"{answer.line}."]
        columns = {"file_name": path.name, "question": question}
        answered.append(AnsweredRow(str(path), f"{path}: {question}", columns, answer, ""))
    return answered


def _check_choices(task: "BaseVQATask", choices: Sequence[str]) -> None:
    """Check that there are choices if and only if the task reads choices."""
    needed = "choices" in task.source.question_columns
    if needed and len({*choices}) < max(2, len(choices)):
        raise UserError("a multiple-choice run: give at least two --choice, all different")
    if choices and not needed:
        raise UserError(f"this run has no choices (task {task.name}); leave out --choice")
