"""The section `data` of questions about images."""

from foveal.config import DataConfig


class VQADataConfig(DataConfig):
    """The section `data` with the columns of questions."""

    question: str = "question"
    """Column of a table that has the question about an image."""
    answer: str = "answer"
    """Column of a table that has the answer to the question."""
    choices: str = "choices"
    """Column of the answers to choose among: a list, or texts with bars between them."""
    history: str = "history"
    """Column of the dialog before the question, if there is one; none leaves the dialog out."""


def vqa_data(config: DataConfig) -> VQADataConfig:
    """Return the section `data` of a config of these tasks with its own type."""
    assert isinstance(config, VQADataConfig)
    return config
