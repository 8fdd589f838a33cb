"""Questions about one picture, one after the other, as in a talk."""

from collections.abc import Sequence
from pathlib import Path

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.data.core.rows import Row
from foveal.data.images.image_files import load_image
from foveal.tasks.base import Predictions
from foveal.tasks.session import LoadedRun, task_of
from foveal.tasks.vqa.task import BaseVQATask


def answer_questions(
    loaded: LoadedRun, image_path: Path, questions: Sequence[str], choices: Sequence[str]
) -> Predictions:
    """The answers to `questions`; what was said before a question are those before it, with their answers.

    UserError for a run that answers none, for choices that are missing or that it does not read, for no such
    picture, and for an empty question.
    """
    config, kind = loaded.config, task_of(loaded.config)
    if not isinstance(kind, BaseVQATask):
        raise UserError(
            f"{loaded.run.path}: a run of no questions (task {config.task.name}); leave out --question"
        )
    choosing = "choices" in kind.form.question_columns
    if choosing and len({*choices}) < max(2, len(choices)):
        raise UserError(f"{loaded.run.path} chooses: say what among, two --choice or more, each once")
    if choices and not choosing:
        raise UserError(
            f"{loaded.run.path}: a run without choices (task {config.task.name}); leave out --choice"
        )
    seen = load_image(image_path, config.data.image.size, config.data.image.channels)
    if isinstance(seen, str):
        raise UserError(f"{image_path}: {seen}")
    questions = [" ".join(question.split()) for question in questions]
    if "" in questions:
        raise UserError("--question: it is empty")
    answers: list[str] = []
    said: list[str] = []
    for question in questions:
        fields = {
            "content": seen.content,
            "picture": seen.pixels,
            "question": question,
            "history": " ".join(said),
            "choices": [*choices],
        }
        row = Row(str(image_path), fields)
        _, examples = kind.form.encode_unlabeled([row], loaded.processor, config.data, [])
        answers += kind.predicted_texts(config, loaded.model, loaded.processor, examples, no_progress)
        said += [question, f"{answers[-1]}."]
    return Predictions([f"{image_path}: {question}" for question in questions], answers)
