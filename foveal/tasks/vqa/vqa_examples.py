"""Examples of questions about images, for all three tasks."""

from dataclasses import dataclass

from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.images.image_examples import ImageExamples


@dataclass(frozen=True)
class ChoiceTable:
    """The texts and tokens of all distinct choices of all rows."""

    texts: list[str]
    tokens: RaggedArray


@dataclass(frozen=True)
class VQAExamples(Examples):
    """Examples with the columns `image`, `question` and those of the target.

    `image` is an index into `images`, where each image is stored once. If the model reads a history, there is
    a column `history`. If rows have their own choices, there is a column `choices`, indices into
    `choice_table`.
    """

    images: ImageExamples
    choice_table: ChoiceTable | None = None

    def choices(self, row: int) -> list[str]:
        """Return the choices of a row."""
        assert self.choice_table is not None
        return [self.choice_table.texts[index] for index in self.columns["choices"][row].tolist()]
