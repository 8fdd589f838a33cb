"""Questions about images as examples, for all three tasks."""

from dataclasses import dataclass

from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.images.image_examples import ImageExamples


@dataclass(frozen=True)
class ChoiceTable:
    """Every choice of all rows once: texts and tokens."""

    texts: list[str]
    tokens: RaggedArray


@dataclass(frozen=True)
class VQAExamples(Examples):
    """Examples with the columns `image`, an index into `images` (each image once), `question`, and the
    target.

    There is a column `history` if the model reads a history, and a column `choices`, indices into
    `choice_table`, if rows have their own choices.
    """

    images: ImageExamples
    choice_table: ChoiceTable | None = None

    def choice(self, row: int, number: int) -> str:
        """Return choice `number` of a row."""
        assert self.choice_table is not None
        return self.choice_table.texts[self.columns["choices"][row][number]]
