"""Questions about images as examples; the same for all kinds of answers."""

from dataclasses import dataclass

from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.images.image_examples import ImageExamples


@dataclass(frozen=True)
class ChoiceTable:
    """The choices of all rows, each once, with their tokens."""

    texts: list[str]
    tokens: RaggedArray


@dataclass(frozen=True)
class VQAExamples(Examples):
    """Columns `image`, an index into `images`; `question`; and the target. Equal images are stored once.

    Column `history` is there if the model reads a history, and `choices`, indices into `choice_table`, if
    rows have their own choices.
    """

    images: ImageExamples
    choice_table: ChoiceTable | None = None

    def choice(self, row: int, number: int) -> str:
        """Return one of the choices of a row."""
        assert self.choice_table is not None
        return self.choice_table.texts[self.columns["choices"][row][number]]
