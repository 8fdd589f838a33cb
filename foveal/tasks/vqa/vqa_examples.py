"""Questions about images as examples: what is read is the same however they are answered."""

from dataclasses import dataclass

from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.images.image_examples import ImageExamples


@dataclass(frozen=True)
class ChoiceTable:
    """Every choice of all rows once: the texts and their tokens."""

    texts: list[str]
    tokens: RaggedArray


@dataclass(frozen=True)
class VQAExamples(Examples):
    """Columns `image`, a number into `images`, each of which is there once; `question`; and the target.

    Column `history` is there if the model reads a history, and `choices`, numbers into `choice_table`, if
    rows bring their own.
    """

    images: ImageExamples
    choice_table: ChoiceTable | None = None

    def choice(self, row: int, number: int) -> str:
        """Return one of the choices that a row brings."""
        assert self.choice_table is not None
        return self.choice_table.texts[self.columns["choices"][row][number]]
