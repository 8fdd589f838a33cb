"""Questions about one picture, one after the other, as in a talk."""

from collections.abc import Sequence
from pathlib import Path

from foveal.core.errors import UserError
from foveal.core.progress import unwatched
from foveal.data.core.rows import Row
from foveal.data.images.image_files import picture_of
from foveal.tasks.base import Answers
from foveal.tasks.session import Loaded, kind_of
from foveal.tasks.vqa.task import AskKind


def asked(loaded: Loaded, picture: Path, questions: Sequence[str], choices: Sequence[str]) -> Answers:
    """The answers to `questions`; what was said before a question are those before it, with their answers.

    UserError for a run that answers none, for choices that are missing or that it does not read, for no such
    picture, and for an empty question.
    """
    config, kind = loaded.config, kind_of(loaded.config)
    if not isinstance(kind, AskKind):
        raise UserError(
            f"{loaded.run.path}: a run of no questions (task {config.task.name}); leave out --question"
        )
    choosing = "choices" in kind.form.asked
    if choosing and len({*choices}) < max(2, len(choices)):
        raise UserError(f"{loaded.run.path} chooses: say what among, two --choice or more, each once")
    if choices and not choosing:
        raise UserError(
            f"{loaded.run.path}: a run without choices (task {config.task.name}); leave out --choice"
        )
    seen = picture_of(picture, config.data.image.size, config.data.image.channels)
    if isinstance(seen, str):
        raise UserError(f"{picture}: {seen}")
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
        row = Row(str(picture), fields)
        _, examples = kind.form.encode_questions([row], loaded.inputs, config.data, [])
        answers += kind.found(config, loaded.model, loaded.inputs, examples, unwatched)
        said += [question, f"{answers[-1]}."]
    return Answers([f"{picture}: {question}" for question in questions], answers)
